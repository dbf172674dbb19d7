"""Where the arguments of calls come from: said, served, a default, derived, or invented."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from datetime import date
from functools import cached_property
from itertools import combinations, islice, pairwise
from typing import NamedTuple

from callmark.calls.registry import Registry, ToolSpec
from callmark.grounding.arithmetic import find_equations
from callmark.grounding.dates import Moment
from callmark.grounding.evidence import MAX_DEPTH, flat, is_number
from callmark.grounding.numbers import SCALE, of_json
from callmark.grounding.record_tree import Field, key_words, number_of
from callmark.grounding.text import fold
from callmark.grounding.values import Value, identifier_key, values_of
from callmark.grounding.words import NUMBER_WORDS
from callmark.records.jsontext import Json
from callmark.records.statements import ArgumentOrigin, Origin
from callmark.records.trace import TraceEntry
from callmark.scorers.integration import TrialReading, message_text, prompt_texts

_TOKEN = re.compile(r"[^\W_]+")
_PROPER = re.compile(r"[A-Z][\w'’]+(?:[ -][A-Z][\w'’]+)*")
_CODE = re.compile(r"[A-Z]{2,5}")
_DAYS_AWAY: tuple[tuple[int, re.Pattern[str]], ...] = tuple(
    (days, re.compile(rf"\b(?:{words})\b", re.IGNORECASE))
    for days, words in (
        (0, r"today|tonight|now|heute|hoy|aujourd['’]hui"),
        (1, r"tomorrow|morgen|mañana|demain|(?:next|following) day|day (?:after|later)|lendemain"),
        (-1, r"yesterday|gestern|ayer|hier|day (?:before|earlier)|previous day"),
        (1, r"by (?:one|a|1) day|um einen Tag"),
        (-1, r"by (?:one|a|1) day|um einen Tag"),
        (2, r"by (?:two|2) days"),
        (-2, r"by (?:two|2) days"),
        (2, r"day after tomorrow|übermorgen|pasado mañana|après-demain|two days (?:after|later)"),
        (7, r"next week|a week (?:later|after|from)|nächste Woche|próxima semana"),
    )
)
_WEEKDAYS = re.compile(
    r"\b(?:(mon|lunes|lundi)|(tue|die|martes|mardi)|(wed|mittw|mi[ée]rcoles|mercredi)"
    r"|(thu|don|jueves|jeudi)|(fri|frei|viernes|vendredi)|(sat|sam|s[áa]bado)"
    r"|(sun|sonn|domingo|dimanche))(?:day|s?day|nesday|rsday|urday|tag|nerstag|enstag|och|edi)?\b",
    re.IGNORECASE,
)
_ANY_DAY = re.compile(r"\b(?:between|any ?(?:day|time|date)|flexible|range)\b", re.IGNORECASE)
_NEAR_DAYS = 14
_MANY = 300  # numbers or names that a value is tried to be made of
_SMALL = 13
_ID_DIGITS = 4
_HOURS = 25
_TEN = 10 * SCALE
_RECENT = 12
_LONG_WORDS, _LONG = 8, 80
# What a model writes in its own words: no claim, but the values in it are.
_PROSE = frozenset(
    """
    query q text message messages thought thoughts summary reason reasoning expression content body
    description prompt note notes comment comments subject question instructions explanation
    keywords search
    """.split()
)
_PROGRAM = frozenset("code script command cmd sql program source regex pattern".split())
_MONEY_WORDS = frozenset("price cost amount fee fare total balance".split())
_YEARS = range(1900, 2100)


def trace_arguments(reading: TrialReading, registry: Registry) -> tuple[ArgumentOrigin, ...] | None:
    """Of every leaf of the arguments of well-formed calls; None: there was none."""
    entries = [
        (index, entry)
        for index, entry in enumerate(reading.trace.tool_trace)
        if entry.status != "malformed" and isinstance(entry.arguments, dict)
    ]
    shown = _Shown(reading)
    origins = [
        ArgumentOrigin(call=index, path=leaf.path, origin=found.origin, source=found.source)
        for index, entry in entries
        for leaf, found in _trace_call(entry, shown, registry)
    ]
    return tuple(origins) or None


class _Leaf(NamedTuple):
    """`keys`: the names on the way to it, None for a place in a list."""

    path: str
    keys: tuple[str | None, ...]
    value: Json

    @property
    def words(self) -> tuple[str, ...]:
        named = [key for key in self.keys if key is not None]
        return key_words(named[-1]) if named else ()


class _Found(NamedTuple):
    """`source`: the leaf of a result, or how it was derived."""

    origin: Origin
    source: str = ""


_INVENTED = _Found("invented")


def _trace_call(
    entry: TraceEntry, shown: _Shown, registry: Registry
) -> Iterator[tuple[_Leaf, _Found]]:
    spec = registry.spec(registry.resolve(entry.name or "") or "")
    leaves = list(_leaves(entry.arguments))
    tracer = _Tracer(shown, entry.turn if shown.has_turns else None, spec, entry.arguments, leaves)
    for leaf in leaves:
        yield leaf, tracer.trace(leaf)


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


class _Words:
    """Texts as words and pairs of neighbours, each with the turns before it was first shown: a
    text whose words and pairs are all known stands there, or as good as."""

    def __init__(self) -> None:
        self._words: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}

    def add(self, text: str, turn: int) -> None:
        tokens = _TOKEN.findall(fold(text))
        for word in tokens:
            self._words.setdefault(word, turn)
        for pair in pairwise(tokens):
            self._pairs.setdefault(pair, turn)

    def holds(self, tokens: list[str], turn: int | None) -> bool:
        return self.knows(tokens, turn) and all(
            _is_before(self._pairs.get(pair), turn) for pair in pairwise(tokens)
        )

    def knows(self, tokens: list[str], turn: int | None) -> bool:
        return bool(tokens) and all(_is_before(self._words.get(word), turn) for word in tokens)

    def missing(self, tokens: list[str], turn: int | None) -> list[str]:
        return [word for word in tokens if not _is_before(self._words.get(word), turn)]


def _is_before(at: int | None, turn: int | None) -> bool:
    return at is not None and (turn is None or at < turn)


class _Shown:
    """What the model was told and shown before a call. Each part is read when it is asked for."""

    def __init__(self, reading: TrialReading) -> None:
        self._reading = reading
        self.records = reading.records
        self.has_turns = reading.trace.turns is not None

    @cached_property
    def texts(self) -> list[tuple[str, int]]:
        reading = self._reading
        texts = [(text, 0) for text in prompt_texts(reading.sample.prompt)]
        return texts + [(said.text, said.turn) for said in reading.trace.said]

    @cached_property
    def of_users(self) -> list[tuple[str, int]]:
        """Without system texts, which say `after` and `next` of everything."""
        prompt = self._reading.sample.prompt
        if isinstance(prompt, str):
            return self.texts
        asked = [(message_text(one), 0) for one in prompt if one.get("role") == "user"]
        return asked + [(said.text, said.turn) for said in self._reading.trace.said]

    @cached_property
    def said(self) -> _Words:
        words = _Words()
        for text, turn in self.texts:
            words.add(text, turn)
        return words

    @cached_property
    def served(self) -> _Words:
        words = _Words()
        for field in self.records.tree.fields:
            if isinstance(field.value, str):
                words.add(field.value, field.record.served.turn or 0)
            words.add(field.key, field.record.served.turn or 0)
        for key in sorted(self.records.tree.keys):
            words.add(key, 0)
        return words

    @cached_property
    def leaves(self) -> dict[str, Field]:
        """The texts of results, whole, each with the first leaf that holds it."""
        leaves: dict[str, Field] = {}
        for field in self.records.tree.fields:
            if isinstance(field.value, str):
                leaves.setdefault(fold(field.value), field)
        return leaves

    @cached_property
    def keys(self) -> dict[str, str]:
        """The names of objects that results hold, `payment_methods: {card_12: {…}}`."""
        keys: dict[str, str] = {}
        for record in self.records.tree.records:
            if record.key:
                keys.setdefault(fold(record.key), _place(record.served.call, record.path))
        return keys

    @cached_property
    def _values(self) -> list[tuple[Value, int]]:
        locale = self._reading.sample.expectation.locale
        return [(one, turn) for text, turn in self.texts for one in flat(values_of(text, locale))]

    @cached_property
    def said_numbers(self) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for value, turn in self._values:
            for reading in value.readings:
                numbers.setdefault(reading, turn)
        for text, turn in self.texts:
            for word in _TOKEN.findall(fold(text)):
                number = NUMBER_WORDS.get(word)
                if number is not None:
                    numbers.setdefault(number * SCALE, turn)
        return numbers

    @cached_property
    def moments(self) -> dict[tuple[int | None, int | None], list[tuple[Moment, int]]]:
        """What was said, by month and day; times of day apart."""
        found: dict[tuple[int | None, int | None], list[tuple[Moment, int]]] = {}
        for value, turn in self._values:
            for moment in value.moments:
                known = found.setdefault((moment.month, moment.day), [])
                if len(known) < _MANY:
                    known.append((moment, turn))
        return found

    @cached_property
    def days(self) -> dict[int, int]:
        """Whole dates that were said or served."""
        days: dict[int, int] = {}
        for known in self.moments.values():
            for moment, turn in known:
                _note_day(days, moment, turn)
        for served in self.records.moments.values():
            for moment, field in served:
                _note_day(days, moment, field.record.served.turn or 0)
        return days

    @cached_property
    def days_away(self) -> dict[int, int]:
        """How far from a day that was named the users said that they meant."""
        found: dict[int, int] = {}
        for text, turn in self.of_users:
            for days, words in _DAYS_AWAY:
                if words.search(text):
                    found.setdefault(days, turn)
        return found

    @cached_property
    def weekdays(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for text, turn in self.of_users:
            for match in _WEEKDAYS.finditer(text):
                found.setdefault((match.lastindex or 1) - 1, turn)
        return found

    @cached_property
    def any_day(self) -> int | None:
        return min((turn for text, turn in self.of_users if _ANY_DAY.search(text)), default=None)

    @cached_property
    def names(self) -> list[tuple[str, int]]:
        """Capitalised words of users, for what is short for them."""
        found: dict[str, int] = {}
        for text, turn in self.of_users:
            for name in _PROPER.findall(text):
                found.setdefault(re.sub(r"\W", "", name).casefold(), turn)
        return list(found.items())[-_MANY:]

    @cached_property
    def amounts(self) -> dict[int, int]:
        """Numbers of results with decimals: few others are made of two of them by chance."""
        found: dict[int, int] = {}
        for number, fields in self.records.numbers.items():
            if number % SCALE and len(found) < _MANY:
                found[number] = min(field.record.served.turn or 0 for field in fields)
        return found

    @cached_property
    def proposed(self) -> dict[int, int]:
        """Numbers that the model itself named in a turn that the user replied to."""
        replied = sorted({said.turn for said in self._reading.trace.said})
        found: dict[int, int] = {}
        for value in self._reading.grounder.values:
            turn = self._reading.turn_at(value.start)
            if turn is None:
                continue
            at = bisect_left(replied, turn)
            if at < len(replied):
                for reading in value.readings:
                    found.setdefault(reading, replied[at])
        return found


def _note_day(days: dict[int, int], moment: Moment, turn: int) -> None:
    day = _ordinal(moment)
    if day is not None:
        days[day] = min(turn, days.get(day, turn))


def _ordinal(moment: Moment) -> int | None:
    if moment.year is None or moment.month is None or moment.day is None:
        return None
    try:
        return date(moment.year, moment.month, moment.day).toordinal()
    except ValueError:
        return None


def _place(call: int, path: str) -> str:
    return f"call {call} {path or '/'}" if call >= 0 else f"the prompt {path or '/'}"


class _Tracer:
    """The leaves of one call."""

    def __init__(
        self,
        shown: _Shown,
        turn: int | None,
        spec: ToolSpec | None,
        arguments: Json,
        leaves: list[_Leaf],
    ) -> None:
        self._shown = shown
        self._turn = turn
        self._spec = spec
        self._arguments = arguments
        self._leaves = leaves
        self._told: dict[tuple[str | None, ...], _Words] = {}

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
            or self._paid(leaf, number)
            or self._computed(number)
        )

    # --- texts

    def _trace_text(self, leaf: _Leaf, text: str) -> _Found:
        tokens = _TOKEN.findall(fold(text))
        values = list(flat(values_of(text)))
        if len(values) == 1 and values[0].moments and values[0].text == text.strip():
            return self._served_text(text) or self._trace_moment(values[0])
        if not tokens or self._shown.said.holds(tokens, self._turn):
            return _Found("said")
        return (
            self._served_text(text)
            or self._default(leaf)
            or self._written(leaf, text, tokens, values)
            or self._assembled(text, tokens)
            or self._reformed(text, values)
        )

    def _trace_moment(self, value: Value) -> _Found:
        for moment in value.moments:
            for known, turn in self._shown.moments.get((moment.month, moment.day), ()):
                if _is_before(turn, self._turn) and known == moment:
                    return _Found("said")
        known_day = any(map(self._knows_moment, value.moments))
        return _Found("derived", "a day that was named otherwise") if known_day else _INVENTED

    def _served_text(self, text: str) -> _Found | None:
        folded = fold(text)
        field = self._shown.leaves.get(folded)
        if field is not None and field.counts_for(self._turn):
            return _served(field)
        for field in self._shown.records.identifiers.get(identifier_key(text), ()):
            if field.counts_for(self._turn):
                return _served(field)
        key = self._shown.keys.get(folded)
        return None if key is None else _Found("served", key)

    def _written(
        self, leaf: _Leaf, text: str, tokens: list[str], values: list[Value]
    ) -> _Found | None:
        """In the model's own words: only the values in it can be invented."""
        words = leaf.words
        if words and words[-1] in _PROGRAM:
            kinds: tuple[str, ...] = ("url", "email")
        elif (words and words[-1] in _PROSE) or len(tokens) >= _LONG_WORDS or len(text) > _LONG:
            kinds = ("url", "email", "moment", "number", "identifier")
        else:
            return None
        right = {at for at, one in find_equations(text, values).items() if one.holds}
        stated: list[int] = []
        for at, value in enumerate(values):
            is_fine = value.kind not in kinds or at in right or _is_trivial(value)
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
        return None

    def _is_short_for_a_name(self, code: str) -> bool:
        letters = code.casefold()
        return any(
            _is_before(turn, self._turn) and name[0] == letters[0] and _runs_through(letters, name)
            for name, turn in self._shown.names
        )

    def _reformed(self, text: str, values: list[Value]) -> _Found:
        """`$305` for 305, `12 May` for a date; words that nobody used are invented."""
        rest = text
        for value in reversed(values):
            rest = rest[: value.start] + " " + rest[value.end :]
        if values and all(map(self._knows, values)) and self._shows(_TOKEN.findall(fold(rest))):
            return _Found("derived", "a value in another form")
        return _INVENTED

    # --- values

    def _shows(self, tokens: list[str]) -> bool:
        missing = self._shown.said.missing(tokens, self._turn)
        return not missing or not self._shown.served.missing(missing, self._turn)

    def _knows(self, value: Value) -> bool:
        if value.readings:
            return any(self._trace_number(one) is not None for one in value.readings)
        if value.moments:
            return any(map(self._knows_moment, value.moments))
        return self._served_text(value.text) is not None or self._shows(
            _TOKEN.findall(fold(value.text))
        )

    def _rests_on(self, value: Value, stated: list[int]) -> bool:
        return self._knows(value) or any(
            _is_made_of(stated, one) or self._computed(one) is not _INVENTED
            for one in value.readings
        )

    def _knows_moment(self, moment: Moment) -> bool:
        """Said or served, as far as it was: the year may go without saying."""
        shown = self._shown
        for known, turn in shown.moments.get((moment.month, moment.day), ()):
            if _is_before(turn, self._turn) and known.agrees(moment):
                return True
        keys = ((moment.month, moment.day), (moment.hour, None, None))
        for key in keys:
            for known, field in shown.records.moments.get(key, ()):
                if field.counts_for(self._turn) and (moment.agrees(known) or known.agrees(moment)):
                    return True
        day = _ordinal(moment)
        return day is not None and self._knows_day(day)

    def _knows_day(self, day: int) -> bool:
        """`tomorrow`, `next Friday`, `any day between …`, counted from a day that is known."""
        shown, turn = self._shown, self._turn

        def is_known(one: int) -> bool:
            return _is_before(shown.days.get(one), turn)

        if any(_is_before(at, turn) and is_known(day - off) for off, at in shown.days_away.items()):
            return True
        before = any(map(is_known, range(day - _NEAR_DAYS, day)))
        if before and _is_before(shown.weekdays.get((day - 1) % 7), turn):
            return True
        after = any(map(is_known, range(day + 1, day + _NEAR_DAYS)))
        return before and after and _is_before(shown.any_day, turn)

    def _trace_number(self, number: int) -> _Found | None:
        shown = self._shown
        for near in (number, number - 1, number + 1):
            if _is_before(shown.said_numbers.get(near), self._turn):
                return _Found("said")
            for field in shown.records.numbers.get(near, ()):
                if field.counts_for(self._turn):
                    return _served(field)
        return None

    def _computed(self, number: int) -> _Found:
        """A count of what is listed, an amount that the user agreed to, or one made of two."""
        is_small = number % SCALE == 0 and 0 < number < _SMALL * SCALE
        if is_small and (number == SCALE or number // SCALE in self._lengths):
            return _Found("derived", "a count")
        if _is_before(self._shown.proposed.get(number), self._turn):
            return _Found("derived", "proposed to the user")
        for count in self._lengths:
            is_multiple = 1 < count < _SMALL and number % count == 0
            each = number // count if is_multiple else 0
            if each >= _TEN and _is_before(self._shown.said_numbers.get(each), self._turn):
                return _Found("derived", "a product")
        amounts = self._shown.amounts if number % SCALE else {}
        for one, turn in amounts.items():
            if not _is_before(turn, self._turn):
                continue
            if _is_before(amounts.get(number - one), self._turn):
                return _Found("derived", "a sum")
            if _is_before(amounts.get(number + one), self._turn):
                return _Found("derived", "a difference")
        return _INVENTED

    def _paid(self, leaf: _Leaf, number: int) -> _Found | None:
        """What the things that the same call names cost together, by itself or with the other
        amounts beside it."""
        beside = sum(
            of_json(other.value)
            for other in self._leaves
            if other.keys == leaf.keys and is_number(other.value) and other.path != leaf.path
        )
        if beside and self._trace_number(number + beside) is not None:
            return _Found("derived", "the rest of an amount")
        counts = {1, *(len(one) for one in _lists(self._arguments))}
        for total in self._prices:
            if any(one in (number, number + beside) for one in (total * n for n in counts)):
                return _Found("derived", "a sum of what is named")
        return None

    @cached_property
    def _prices(self) -> frozenset[int]:
        """Prices of the records that the call names, each, in pairs, and all together."""
        texts = [leaf.value for leaf in self._leaves if isinstance(leaf.value, str)]
        chosen = {fold(text) for text in texts}
        prices: list[int] = []  # under a key that the call names: `"cabin": "economy"`
        others: list[int] = []
        for text in sorted(set(texts)):
            named = self._shown.records.identifiers.get(identifier_key(text), ())
            fields = [one for field in named[:4] for one in islice(_numbers_below(field), _MANY)]
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

    @cached_property
    def _lengths(self) -> frozenset[int]:
        inside = (len(one) for one in _lists(self._arguments))
        shown = (
            len(series.items)
            for series in self._shown.records.tree.series
            if series.record.counts_for(self._turn)
        )
        return frozenset((*inside, *shown))

    # --- the tool's own words

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
            told = self._told[leaf.keys] = _Words()
            for text in (self._spec.description, *(node.get("description") for node in nodes)):
                if isinstance(text, str):
                    told.add(text, 0)
        tokens = _TOKEN.findall(fold(str(leaf.value)))
        return _Found("default") if told.holds(tokens, None) else None


def _served(field: Field) -> _Found:
    return _Found("served", _place(field.call, field.path))


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
