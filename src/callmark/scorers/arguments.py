"""Where the arguments of calls come from: said, served, a default, derived, or invented."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, islice

from callmark.calls.registry import Registry, ToolSpec
from callmark.grounding.arithmetic import find_equations
from callmark.grounding.dates import Moment, names_of_month
from callmark.grounding.evidence import MAX_DEPTH, flat, is_number
from callmark.grounding.numbers import SCALE, of_json
from callmark.grounding.record_tree import Field, key_words, number_of
from callmark.grounding.text import AIRPORT_CITIES, Frozen, fold, once, tokens_of
from callmark.grounding.values import Value, identifier_key, values_of
from callmark.records.jsontext import Json
from callmark.records.results import ArgumentOrigin, Origin
from callmark.records.samples import NOT_RECORDED, prompt_texts
from callmark.records.trace import TraceEntry
from callmark.scorers.integration import ToldWords, TrialReading, is_before
from callmark.scorers.shown import MANY, ShownTexts, ordinal_of, place_of

_CODE = re.compile(r"[A-Z]{2,5}")
_MONTH = re.compile(r"(?P<y>\d{4})-(?P<m>0[1-9]|1[0-2])")
_NEAR_DAYS = 14
_SMALL = 13
_ID_DIGITS = 4
_HOURS = 25
_TEN = 10 * SCALE
_RECENT = 12
_LONG_WORDS, _LONG = 8, 80
# What a model writes in its own words: no claim, but the values in it are.
_PROSE = frozenset(
    """
    query queries q text message messages thought thoughts summary reason reasoning expression
    content body description prompt note notes comment comments subject question questions
    instruction instructions explanation keywords search request task goal plan todo todos
    """.split()
)
# A list that a model keeps for itself: whatever stands below is its own.
_PLANS = frozenset("plan todo todos".split())
# What a model writes or makes: a path that it chooses is no invention, an address in it may be one.
_PROGRAM = frozenset(
    """
    code script command commands cmd sql program source regex pattern keystrokes keys path paths
    filepath file files filename dir directory folder cwd workdir patch diff string str html json
    yaml
    """.split()
)
# How much of a list is asked for: nobody has to say it, unless the call changes something.
_PAGING = frozenset("limit offset page".split())
_PAGING_KEYS = frozenset(
    (
        *(("page", "size"), ("per", "page"), ("page", "number"), ("top", "k"), ("top", "n")),
        *(("max", "results"), ("num", "results"), ("max", "items"), ("max", "hits")),
    )
)
_MOST_PAGED = 1000 * SCALE
_CHANGING = frozenset("set update create change increase raise add put post write edit".split())
_MONEY_WORDS = frozenset("price cost amount fee fare total balance".split())
_YEARS = range(1900, 2100)
_DIGIT = re.compile(r"\d")


def trace_arguments(reading: TrialReading, registry: Registry) -> tuple[ArgumentOrigin, ...] | None:
    """Of every leaf of the arguments of well-formed calls; None: there was none, or it is not known
    what the user gave."""
    if NOT_RECORDED in prompt_texts(reading.sample.prompt):
        return None
    entries = [
        (index, entry)
        for index, entry in enumerate(reading.trace.tool_trace)
        if entry.status != "malformed" and isinstance(entry.arguments, dict)
    ]
    shown: list[ShownTexts] = []

    def open_shown() -> ShownTexts:
        if not shown:  # most arguments were just said
            shown.append(ShownTexts(reading))
        return shown[0]

    origins = [
        ArgumentOrigin(call=index, path=leaf.path, origin=found.origin, source=found.source)
        for index, entry in entries
        for leaf, found in _trace_call(entry, reading, open_shown, registry)
    ]
    # The order of the keys of an object says nothing.
    return tuple(sorted(origins, key=lambda one: (one.call, one.path))) or None


class _Leaf(Frozen, frozen=True):
    """`keys`: the names on the way to it, None for a place in a list."""

    path: str
    keys: tuple[str | None, ...]
    value: Json

    @property
    def words(self) -> tuple[str, ...]:
        named = [key for key in self.keys if key is not None]
        return key_words(named[-1]) if named else ()

    @property
    def is_planned(self) -> bool:
        above = (key for key in self.keys[:-1] if key is not None)
        return None in self.keys and any(fold(key) in _PLANS for key in above)


class _Found(Frozen, frozen=True):
    """`source`: the leaf of a result, or how it was derived."""

    origin: Origin
    source: str = ""


_INVENTED = _Found("invented")


def _trace_call(
    entry: TraceEntry,
    reading: TrialReading,
    open_shown: Callable[[], ShownTexts],
    registry: Registry,
) -> Iterator[tuple[_Leaf, _Found]]:
    spec = registry.spec(registry.resolve(entry.name or "") or "")
    leaves = list(_leaves(entry.arguments))
    turn = entry.turn if reading.trace.turns is not None else None

    def is_tool(text: str) -> bool:
        return registry.spec(text) is not None

    tracer = _Tracer(reading.told_words, open_shown, turn, spec, is_tool, entry.arguments, leaves)
    for leaf in leaves:
        found = tracer.trace(leaf)
        number = number_of(leaf.value)
        if number is not None and found.origin == "derived":
            open_shown().derived.setdefault(number, entry.turn or 0)
        yield leaf, found


def _leaves(
    value: Json, path: str = "", keys: tuple[str | None, ...] = (), depth: int = 0
) -> Iterator[_Leaf]:
    if depth <= MAX_DEPTH and isinstance(value, dict) and value:
        for key, entry in value.items():
            pointer = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
            yield from _leaves(entry, pointer, (*keys, key), depth + 1)
    elif depth <= MAX_DEPTH and isinstance(value, list) and value:
        for index, entry in enumerate(value):
            yield from _leaves(entry, f"{path}/{index}", (*keys, None), depth + 1)
    elif path:
        yield _Leaf(path, keys, value)


class _Tracer:
    """The leaves of one call."""

    def __init__(
        self,
        told: ToldWords,
        open_shown: Callable[[], ShownTexts],
        turn: int | None,
        spec: ToolSpec | None,
        is_tool: Callable[[str], bool],
        arguments: Json,
        leaves: list[_Leaf],
    ) -> None:
        self._said = told
        self._open_shown = open_shown
        self._turn = turn
        self._spec = spec
        self._is_tool = is_tool
        self._arguments = arguments
        self._leaves = leaves
        self._told: dict[tuple[str | None, ...], ToldWords] = {}

    @once
    def _programs(self) -> str:
        """The code and commands of the call."""
        texts = (one.value for one in self._leaves if one.words and one.words[-1] in _PROGRAM)
        return "\n".join(text for text in texts if isinstance(text, str))

    @once
    def _shown(self) -> ShownTexts:
        return self._open_shown()

    def trace(self, leaf: _Leaf) -> _Found:
        value = leaf.value
        if value is None or value in ("", [], {}, 0) or isinstance(value, bool):
            return _Found("default")
        if isinstance(value, str):
            return self._trace_text(leaf, value)
        if not is_number(value):
            return _INVENTED  # infinite, or too deep to be read
        number = of_json(value)
        return (
            self._trace_number(number)
            or self._default(leaf)
            or self._paged(leaf, number)
            or self._paid(leaf, number)
            or self._computed(number)
        )

    # --- texts

    def _trace_text(self, leaf: _Leaf, text: str) -> _Found:
        tokens = tokens_of(text)
        values = list(flat(values_of(text))) if _DIGIT.search(text) else []
        if len(values) == 1 and values[0].moments and values[0].text == text.strip():
            return self._served_text(text) or self._trace_moment(values[0])
        if not tokens or self._said.holds(tokens, self._turn):
            return _Found("said")
        values = values or list(flat(values_of(text)))
        return (
            self._served_text(text)
            or self._default(leaf)
            or (_Found("default") if self._is_tool(text) else None)
            or self._written(leaf, text, tokens, values)
            or self._assembled(text, tokens)
            or self._reformed(text, values)
        )

    def _trace_moment(self, value: Value) -> _Found:
        for moment in value.moments:
            for known, turn in self._shown.moments.get((moment.month, moment.day), ()):
                if is_before(turn, self._turn) and known == moment:
                    return _Found("said")
        known_day = any(map(self._knows_moment, value.moments))
        return _Found("derived", "a day that was named otherwise") if known_day else _INVENTED

    def _served_text(self, text: str) -> _Found | None:
        folded = fold(text)
        field = self._shown.leaf_saying(folded)
        if field is not None and field.counts_for(self._turn):
            return _served(field)
        found = self._first(self._shown.records.identifiers.get(identifier_key(text), ()))
        if found is not None:
            return found
        key = self._shown.keys.get(folded)
        return None if key is None else _Found("served", key)

    def _written(
        self, leaf: _Leaf, text: str, tokens: list[str], values: list[Value]
    ) -> _Found | None:
        """In the model's own words: only the values in it can be invented."""
        words = leaf.words
        if leaf.is_planned:
            return _Found("derived", "its own plan")
        beside = ""
        if words and words[-1] in _PROGRAM:
            kinds: tuple[str, ...] = ("url", "email")
        elif (words and words[-1] in _PROSE) or len(tokens) >= _LONG_WORDS or len(text) > _LONG:
            kinds = ("url", "email", "moment", "number", "identifier")
            beside = self._programs  # what the call does is told beside it
        else:
            return None
        right = {at for at, one in find_equations(text, values).items() if one.holds}
        stated: list[int] = []
        for at, value in enumerate(values):
            is_fine = value.kind not in kinds or at in right or _is_trivial(value)
            is_fine = is_fine or value.text in beside
            if not is_fine and not self._rests_on(value, stated):
                return _Found("invented", value.text)
            stated += value.readings[:1]
        return _Found("derived", "its own words")

    def _assembled(self, text: str, tokens: list[str]) -> _Found | None:
        if self._shown.served.holds(tokens, self._turn):
            return _Found("served", "a text of a result")
        if self._shows(tokens):
            return _Found("derived", "words that were shown")
        digits = re.sub(r"\D", "", text)
        if len(digits) >= _ID_DIGITS and len(tokens) == 1 and self._shows([digits]):
            return _Found("derived", "digits that were shown")
        if _CODE.fullmatch(text) and self._is_short_for_a_name(text):
            return _Found("derived", "short for a name")
        month = _MONTH.fullmatch(text)
        if month is not None and self._shows([month["y"]]) and self._names_month(int(month["m"])):
            return _Found("derived", "a month that was named")
        return None

    def _names_month(self, number: int) -> bool:
        return any(self._shows(tokens_of(name)) for name in names_of_month(number))

    def _is_short_for_a_name(self, code: str) -> bool:
        letters = code.casefold()
        city = AIRPORT_CITIES.get(code)
        if city is not None and self._shows(city.split()):
            return True
        return any(
            is_before(turn, self._turn) and name[0] == letters[0] and _runs_through(letters, name)
            for name, turn in self._shown.names
        )

    def _reformed(self, text: str, values: list[Value]) -> _Found:
        """`$305` for 305, `12 May` for a date; words that nobody used are invented."""
        rest = text
        for value in reversed(values):
            rest = rest[: value.start] + " " + rest[value.end :]
        if values and all(map(self._knows, values)) and self._shows(tokens_of(rest)):
            return _Found("derived", "a value in another form")
        return _INVENTED

    # --- values

    def _shows(self, tokens: list[str]) -> bool:
        missing = self._said.missing(tokens, self._turn)
        return not missing or not self._shown.served.missing(missing, self._turn)

    def _knows(self, value: Value) -> bool:
        if value.readings:
            return any(self._trace_number(one) is not None for one in value.readings)
        if value.moments:
            return any(map(self._knows_moment, value.moments))
        return self._served_text(value.text) is not None or self._shows(tokens_of(value.text))

    def _rests_on(self, value: Value, stated: list[int]) -> bool:
        return self._knows(value) or any(
            _is_made_of(stated, one) or self._computed(one) is not _INVENTED
            for one in value.readings
        )

    def _knows_moment(self, moment: Moment) -> bool:
        """Said or served, as far as it was: the year may go without saying."""
        shown = self._shown
        for known, turn in shown.moments.get((moment.month, moment.day), ()):
            if is_before(turn, self._turn) and known.agrees(moment):
                return True
        keys = ((moment.month, moment.day), (moment.hour, None, None))
        for key in keys:
            for known, field in shown.records.moments.get(key, ()):
                if field.counts_for(self._turn) and (moment.agrees(known) or known.agrees(moment)):
                    return True
        day = ordinal_of(moment)
        return day is not None and self._knows_day(day)

    def _knows_day(self, day: int) -> bool:
        """`tomorrow`, `next Friday`, `any day between …`, counted from a day that is known."""
        shown, turn = self._shown, self._turn

        def is_known(one: int) -> bool:
            return is_before(shown.days.get(one), turn)

        if any(is_before(at, turn) and is_known(day - off) for off, at in shown.days_away.items()):
            return True
        before = any(map(is_known, range(day - _NEAR_DAYS, day)))
        if before and is_before(shown.weekdays.get((day - 1) % 7), turn):
            return True
        after = any(map(is_known, range(day + 1, day + _NEAR_DAYS)))
        return before and after and is_before(shown.any_day, turn)

    def _trace_number(self, number: int) -> _Found | None:
        shown = self._shown
        for near in (number, number - 1, number + 1, -number):  # a refund of 50 is served as -50
            if is_before(shown.said_numbers.get(near), self._turn):
                return _Found("said")
            found = self._first(shown.records.numbers.get(near, ()))
            if found is not None:
                return found
        return None

    def _first(self, fields: Iterable[Field]) -> _Found | None:
        places = [(one.call, one.path) for one in fields if one.counts_for(self._turn)]
        return _Found("served", place_of(*min(places))) if places else None

    def _computed(self, number: int) -> _Found:
        """A count of what is listed, an amount that the user agreed to, or one made of two."""
        is_small = number % SCALE == 0 and 0 < number < _SMALL * SCALE
        if is_small and (number == SCALE or number // SCALE in self._lengths):
            return _Found("derived", "a count")
        if is_before(self._shown.proposed.get(number), self._turn):
            return _Found("derived", "proposed to the user")
        if is_before(self._shown.derived.get(number), self._turn):
            return _Found("derived", "an earlier argument")
        for count in self._lengths:
            is_multiple = 1 < count < _SMALL and number % count == 0
            each = number // count if is_multiple else 0
            if each >= _TEN and is_before(self._shown.said_numbers.get(each), self._turn):
                return _Found("derived", "a product")
        amounts = self._shown.amounts if number % SCALE else {}
        for one, turn in amounts.items():
            if not is_before(turn, self._turn):
                continue
            if is_before(amounts.get(number - one), self._turn):
                return _Found("derived", "a sum")
            if is_before(amounts.get(number + one), self._turn):
                return _Found("derived", "a difference")
        return _INVENTED

    def _paid(self, leaf: _Leaf, number: int) -> _Found | None:
        """What the things that the same call names cost together, by itself or with the other
        amounts beside it."""
        beside = self._sums[leaf.keys] - number
        if beside and self._trace_number(number + beside) is not None:
            return _Found("derived", "the rest of an amount")
        for total in self._prices:
            if any(one in (number, number + beside) for one in (total * n for n in self._counts)):
                return _Found("derived", "a sum of what is named")
        return None

    @once
    def _sums(self) -> dict[tuple[str | None, ...], int]:
        """What the numbers under one name come to, all entries of its lists together."""
        sums: dict[tuple[str | None, ...], int] = {}
        for leaf in self._leaves:
            if is_number(leaf.value):
                sums[leaf.keys] = sums.get(leaf.keys, 0) + of_json(leaf.value)
        return sums

    @once
    def _counts(self) -> frozenset[int]:
        """How many of something the call lists."""
        lengths = (len(one) for one in _lists(self._arguments))
        return frozenset((1, *(length for length in lengths if length < _SMALL)))

    @once
    def _prices(self) -> frozenset[int]:
        """Prices of the records that the call names, each, in pairs, and all together."""
        texts = [leaf.value for leaf in self._leaves if isinstance(leaf.value, str)]
        chosen = {fold(text) for text in texts}
        prices: list[int] = []  # under a key that the call names: `"cabin": "economy"`
        others: list[int] = []
        for text in sorted(set(texts)):
            named = self._shown.records.identifiers.get(identifier_key(text), ())
            fields = [one for field in named[:4] for one in islice(_numbers_below(field), MANY)]
            fields = [one for one in fields if one.counts_for(self._turn)]
            for one in fields:
                number = number_of(one.value) or 0
                if fold(one.key) in chosen:
                    prices.append(number)
                elif not _MONEY_WORDS.isdisjoint(key_words(one.key)):
                    others.append(number)
        found = (prices or others)[:_RECENT]
        pairs = {one + other for one, other in combinations(found, 2)}
        return frozenset((*found, *pairs, sum(found)))

    @once
    def _lengths(self) -> frozenset[int]:
        shown = (
            len(series.items)
            for series in self._shown.records.tree.series
            if series.record.counts_for(self._turn)
        )
        return self._counts | {length for length in shown if length < _SMALL}

    # --- the tool's own words

    def _paged(self, leaf: _Leaf, number: int) -> _Found | None:
        words = leaf.words
        is_paging = words in _PAGING_KEYS or (words[-1:] and words[-1] in _PAGING)
        if not is_paging or number % SCALE or not 0 < number <= _MOST_PAGED:
            return None
        name = () if self._spec is None else key_words(self._spec.name)
        return _Found("default") if _CHANGING.isdisjoint(name) else None

    def _default(self, leaf: _Leaf) -> _Found | None:
        if self._spec is None:
            return None
        nodes = list(_schema_nodes(self._spec.parameters, leaf.keys))
        for node in nodes:
            options = [*_listed(node, "enum"), *_listed(node, "examples")]
            options += [node[name] for name in ("const", "default") if name in node]
            if any(_is_same(option, leaf.value) for option in options):
                return _Found("default")
        told = self._told.get(leaf.keys)
        if told is None:
            told = self._told[leaf.keys] = ToldWords()
            for text in (self._spec.description, *(node.get("description") for node in nodes)):
                if isinstance(text, str):
                    told.add(text, 0)
        tokens = tokens_of(str(leaf.value))
        return _Found("default") if told.holds(tokens, None) else None


def _served(field: Field) -> _Found:
    return _Found("served", place_of(field.call, field.path))


def _numbers_below(field: Field) -> Iterator[Field]:
    for record in field.record.within():
        for one in record.fields:
            if is_number(one.value):
                yield one


def _is_trivial(value: Value) -> bool:
    """Numbers that nobody asks the origin of: small ones, round ones, years."""
    if value.kind != "number" or not value.readings:
        return False
    whole, rest = divmod(abs(value.readings[0]), SCALE)
    return rest == 0 and (whole < _HOURS or whole in _YEARS or len(str(whole).rstrip("0")) == 1)


def _is_made_of(stated: list[int], number: int) -> bool:
    """A sum, difference or small multiple of numbers that stand just before it."""
    known = set(stated[-_RECENT:])
    return any(
        number - one in known
        or number + one in known
        or (one > 0 and number % one == 0 and 1 < number // one < _SMALL)
        for one in known
    )


def _runs_through(letters: str, name: str) -> bool:
    rest = iter(name)
    return all(letter in rest for letter in letters)


def _lists(value: Json) -> Iterator[list[Json]]:
    stack = [value]
    while stack:
        one = stack.pop()
        if isinstance(one, list):
            yield one
            stack.extend(one)
        elif isinstance(one, dict):
            stack.extend(one.values())


def _listed(node: dict[str, Json], name: str) -> list[Json]:
    found = node.get(name)
    return found if isinstance(found, list) else []


def _is_same(option: Json, value: Json) -> bool:
    if isinstance(option, str) and isinstance(value, str):
        return fold(option) == fold(value)
    return number_of(option) is not None and number_of(option) == number_of(value)


def _schema_nodes(root: dict[str, Json], keys: Iterable[str | None]) -> Iterator[dict[str, Json]]:
    """The schemas of one place: alternatives are all followed."""
    nodes = list(_alternatives(root, root))
    for key in keys:
        below: list[Json] = []
        for node in nodes:
            properties = node.get("properties")
            if key is None:
                below.append(node.get("items"))
            elif isinstance(properties, dict) and key in properties:
                below.append(properties[key])
            else:
                below.append(node.get("additionalProperties"))
        nodes = [one for child in below for one in _alternatives(child, root)]
    yield from nodes


def _alternatives(node: Json, root: dict[str, Json], depth: int = 0) -> Iterator[dict[str, Json]]:
    if not isinstance(node, dict) or depth > 4:
        return
    yield node
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target: Json = root
        for part in reference[2:].split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        yield from _alternatives(target, root, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        for child in _listed(node, name):
            yield from _alternatives(child, root, depth + 1)
