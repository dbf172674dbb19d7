"""Does a span hold what the evidence says? Labels for its values, matches for its grounding."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from callmark.grounding import arithmetic, numbers
from callmark.grounding.dates import Moment, moment_keys
from callmark.grounding.evidence import (
    RUN_TOKENS,
    Evidence,
    Leaf,
    Texts,
    best_of,
    flat,
    is_number,
)
from callmark.grounding.numbers import SCALE, find_number_words, of_json, read_unlocalised
from callmark.grounding.pieces import is_text, telling
from callmark.grounding.record_tree import stem
from callmark.grounding.resolvers import resolved_id, stands_in
from callmark.grounding.spans import Insides, Span
from callmark.grounding.text import (
    ByteOffsets,
    Folded,
    Frozen,
    PlacedWords,
    admits_failure,
    break_literal_newlines,
    find_at_boundaries,
    fold,
    is_boundary,
    names_an_ending,
    once,
    place_tokens,
    token_pattern,
)
from callmark.grounding.values import PARTIAL_DIGITS, Value, ends_in, identifier_key, values_of
from callmark.records.jsontext import Json, cut_value
from callmark.records.results import Match, ValueMark
from callmark.records.statements import StatementLabel
from callmark.records.trace import read_inside

K = TypeVar("K", int, str, tuple[int, str])
MomentsSaid = dict[tuple[int | None, ...], list[tuple[Moment, int]]]

# `HAT 023`, `credit card 4421486`: up to three words before digits may be an identifier. Looked
# for from its digits backwards: most words stand before no digit.
_DIGIT_AFTER_WORD = re.compile(r"[ #]\d(?:(?<=[^\W\d_][ #]\d)|(?<=[^\W\d_][ #][ #]\d))")
_REST = re.compile(r"[\w-]*")
_WORDS_BACKWARDS = re.compile(r"[ #]?[^\W\d_]+(?: [^\W\d_]+){0,2}")
_FEW = re.compile(r"\d(?<![\w.,]\d)\d{0,2}(?![\d_]|[.,]\d)")
_BESIDE = re.compile(r"[ \u00a0-]?([^\W\d_]+)(?:[ \u00a0-]([^\W\d_]{2,}))?")
_LIMIT = re.compile(
    r"\b(?:up to|at (?:the )?(?:most|least)|max(?:imum|imal|\.)?(?: of)?|(?:more|fewer|less) than"
    r"|limit(?:ed)? (?:of|to)|höchstens|mindestens|bis zu|como máximo|hasta|au plus|jusqu'à)\s\w+$",
    re.IGNORECASE,
)
_NEAR = 80  # characters that hold three words, nearly always


class Utterance(NamedTuple):
    """A text of the user (or a call's argument), and the turns that came before it: it counts
    for what is said in a later turn."""

    turn: int
    text: str | int | float


class Said:
    """Indexed when the first question is asked: most answers never ask. `names` are the field
    names that the model was shown: no values of the evidence, and no inventions either."""

    def __init__(
        self,
        utterances: Iterable[Utterance],
        locale: str | None,
        names: Iterable[tuple[int, str]] = (),
    ) -> None:
        self._utterances = utterances
        self._names = names
        self._locale = locale
        self._numbers: dict[int, int] = {}
        self._keys: dict[str, int] = {}
        self._moments: MomentsSaid = {}
        self._counted: dict[tuple[int, str], int] = {}
        self._endings: dict[str, list[tuple[str, int]]] | None = None
        self._folded: list[tuple[str, int]] = []
        self._indexed = False
        self.texts: list[tuple[int, str]] = []  # once something was asked

    def holds(self, value: Value, turn: int | None) -> bool:
        if value.kind == "number":
            return any(self.holds_number(reading, turn) for reading in value.readings)
        if value.kind == "moment":
            return any(
                is_earlier(at, turn) and stated.agrees(moment)
                for stated in value.moments
                for moment, at in self.known()[1].get(moment_keys(stated)[0], ())
            )
        if value.kind in ("quote", "code"):
            key = identifier_key(value.key)
            return self.holds_text(value.key, turn) or self.holds_key(key, turn)
        return self.holds_key(value.key, turn)

    def known(self) -> tuple[dict[int, int], MomentsSaid]:
        """All numbers and moments, each with its turn."""
        self._index()
        return self._numbers, self._moments

    def holds_key(self, key: str, turn: int | None) -> bool:
        self._index_names()
        at = self._keys.get(key)
        return at is not None and is_earlier(at, turn)

    def holds_ending(self, digits: str, turn: int | None) -> bool:
        self._index_names()
        if self._endings is None:
            self._endings = {}
            for key, at in self._keys.items():
                self._endings.setdefault(key[-PARTIAL_DIGITS:], []).append((key, at))
        return any(
            ends_in(key, digits) and is_earlier(at, turn)
            for key, at in self._endings.get(digits[-PARTIAL_DIGITS:], ())
        )

    def holds_text(self, folded: str, turn: int | None) -> bool:
        self._index()
        return any(
            is_earlier(at, turn) and find_at_boundaries(folded, text) >= 0
            for text, at in self._folded
        )

    def holds_number(self, scaled: int, turn: int | None) -> bool:
        self._index()
        return any(
            is_earlier(self._numbers[near], turn)
            for near in (scaled, scaled - 1, scaled + 1)
            if near in self._numbers
        )

    def counts(self, number: int, nouns: Iterable[str], turn: int | None) -> bool:
        """Did the user say so many of it? `nouns` are stems; "": a number and nothing behind it."""
        self._index()
        known = self._counted
        told = (known[number, noun] for noun in nouns if (number, noun) in known)
        return any(is_earlier(at, turn) for at in told)

    def _index(self) -> None:
        if self._indexed:
            return
        self._indexed = True
        for turn, text in self._utterances:
            if not isinstance(text, str):
                number = of_json(text)
                _note(self._numbers, number, turn)
                if number % SCALE == 0:
                    _note(self._counted, (number // SCALE, ""), turn)
                continue
            self.texts.append((turn, text))
            read = _read_utterance(text, self._locale)
            self._folded.append((read.folded, turn))
            for key in read.keys:
                _note(self._keys, key, turn)
            for number in read.numbers:
                _note(self._numbers, number, turn)
            for counted in read.counted:
                _note(self._counted, counted, turn)
            for moment in read.moments:
                self._add_moment(moment, turn)

    def _index_names(self) -> None:
        self._index()
        for turn, name in dict.fromkeys(self._names):
            _note(self._keys, identifier_key(name), turn)
        self._names = ()

    def _add_moment(self, moment: Moment, turn: int) -> None:
        for key in moment_keys(moment):
            found = self._moments.setdefault(key, [])
            if len(found) < MOST_MOMENTS and (moment, turn) not in found:
                found.append((moment, turn))


class _UtteranceReading(NamedTuple):
    """What one text says."""

    folded: str
    keys: tuple[str, ...]
    numbers: tuple[int, ...]
    counted: tuple[tuple[int, str], ...]
    moments: tuple[Moment, ...]


@lru_cache(maxsize=1 << 9)  # a system prompt comes back with every sample
def _read_utterance(text: str, locale: str | None) -> _UtteranceReading:
    folded = fold(text)
    joined = [
        identifier_key(found[start:])
        for found in _words_and_digits(folded)
        for start in _word_starts(found)
    ]
    values = [
        value for one in dict.fromkeys((None, locale)) for value in flat(values_of(text, one))
    ]
    numbers = [reading for value in values for reading in value.readings]
    in_words = find_number_words(text, locale)
    words = [one.number * SCALE for one in in_words]
    return _UtteranceReading(
        folded,
        tuple(dict.fromkeys((*joined, *(value.key for value in values if value.key)))),
        tuple(dict.fromkeys((*numbers, *words))),
        tuple(dict.fromkeys(_counted_in(text, in_words))),
        tuple(dict.fromkeys(moment for value in values for moment in value.moments)),
    )


def _counted_in(text: str, in_words: Iterable[numbers.NumberWord]) -> Iterator[tuple[int, str]]:
    """Small numbers with what they count or measure: `two bags`, `10x zoom`."""
    told = [(one.end(), int(one[0])) for one in _FEW.finditer(text)]
    for end, number in (*told, *((one.end, one.number) for one in in_words)):
        if _LIMIT.search(text, max(0, end - 24), end):
            continue  # `at most five passengers` counts nobody
        beside = _BESIDE.match(text, end)
        words = [] if beside is None else [one for one in beside.groups() if one]
        yield from ((number, stem(word)) for word in words or [""])


def _note(turns: dict[K, int], key: K, turn: int) -> None:
    """Remember when something was said first."""
    turns[key] = min(turn, turns.get(key, turn))


def _words_and_digits(folded: str) -> Iterator[str]:
    end = 0
    for found in _DIGIT_AFTER_WORD.finditer(folded):
        start = found.start()
        before = folded[max(end, start - _NEAR) : max(end, start)][::-1]
        words = _WORDS_BACKWARDS.match(before)
        if words is not None and words.end() >= _NEAR - 1:  # they may be longer
            words = _WORDS_BACKWARDS.match(folded[end:start][::-1])
        rest = _REST.match(folded, found.end())
        if words is not None and rest is not None:
            end = rest.end()
            yield folded[start - words.end() : end]


def _word_starts(phrase: str) -> list[int]:
    return [0, *(match.end() for match in re.finditer(" (?=[^\\W\\d_])", phrase))]


def is_earlier(at: int, turn: int | None) -> bool:
    return turn is None or at < turn


def names_in(value: Json) -> set[str]:
    """Every key of a JSON value: a word that the model was shown."""
    names: set[str] = set()
    stack = [value]
    while stack:
        value = stack.pop()
        if isinstance(value, str) and "{" in value:
            value = read_inside(value)
        if isinstance(value, dict):
            names.update(value)
            inside: Iterable[Json] = value.values()
        else:
            inside = value if isinstance(value, list) else ()
        stack += [  # what keys may stand in
            one
            for one in inside
            if ("{" in one if isinstance(one, str) else isinstance(one, (dict, list)))
        ]
    return names


def argument_leaves(arguments: Json) -> Iterable[str | int | float]:
    """Texts and numbers of a call's arguments."""
    stack = [arguments]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        elif isinstance(value, str) or is_number(value):
            yield value


MOST_MOMENTS = 50  # of one day or hour that the user named
_RUN = range(RUN_TOKENS)
IDENTIFIER_DIGITS = 3  # so many digits after a word may be an identifier with it
_EDGED = frozenset(("number", "moment", "url", "email", "identifier"))


class SpanGrounding(Frozen, frozen=True):
    """`matches` ground the span; `marks` label each of its checkable values."""

    matches: tuple[Match, ...]
    derived: tuple[Match, ...]
    marks: tuple[ValueMark, ...]


class Grounder:
    """One answer with its values, set against the evidence and what the user said."""

    def __init__(self, text: str, values: list[Value], evidence: Evidence, said: Said) -> None:
        self.text = text
        self.values = values
        self._starts = [value.start for value in values]
        self.evidence = evidence
        self.said = said
        self.to_bytes = ByteOffsets(text)
        # A literal line break ends a sentence, and its `n` is part of no word.
        self._broken = break_literal_newlines(text)

    def ground(self, span: Span, turn: int | None) -> SpanGrounding:
        values = self.values_in(span)
        errors = self._failure_counts(span)
        matches: list[Match] = []
        computed: list[Match] = []
        marks: list[ValueMark] = []
        for value in values:
            match = self._support(value, turn, errors)
            label: StatementLabel = "supported"
            if match is not None:
                if match.kind != "month":
                    matches.append(match)
            elif self._was_said(value, turn):
                label = "user_said"
            else:
                found = self._derived(value, turn)
                label = "derived" if found else "unsupported"
                if found:
                    computed.append(found)
            marks.append(
                ValueMark(self.to_bytes(value.start), self.to_bytes(value.end), value.kind, label)
            )
        if not any(match.strict for match in matches):  # else the text could add nothing
            unsupported = [
                value
                for value, mark in zip(values, marks, strict=True)
                if mark.label == "unsupported"
            ]
            matches += self._texts(span, unsupported, turn, errors)
        return SpanGrounding(tuple(matches), tuple(computed), tuple(marks))

    def find_texts(
        self, span: Span, turn: int | None, unsupported: list[Value]
    ) -> tuple[Match, ...]:
        """What the span repeats of the texts of results, beside its values."""
        return tuple(self._texts(span, unsupported, turn, self._failure_counts(span)))

    def find_failure(self, span: Span, value: Value, turn: int | None) -> Match | None:
        """A value of a result that is an error, in a span that says that something failed."""
        return self._support(value, turn, True) if self._failure_counts(span) else None

    def match_leaf(
        self, value: Value, call: int, path: str, leaf: Json, strict: bool, derived: bool
    ) -> Match:
        return Match(
            self.to_bytes(value.start),
            self.to_bytes(value.end),
            call,
            path,
            cut_value(leaf),
            value.kind,
            "derived" if derived else "value",
            strict,
        )

    def values_in(self, span: Span) -> list[Value]:
        first = bisect_left(self._starts, span[0])
        return self.values[first : bisect_left(self._starts, span[1], lo=first)]

    def _failure_counts(self, span: Span) -> bool:
        """May error results ground this span? Only if it says that something failed."""
        return self.evidence.has_errors and admits_failure(self.text[span[0] : span[1]])

    # --- values

    def _support(self, value: Value, turn: int | None, errors: bool) -> Match | None:
        evidence = self.evidence
        match value.kind:
            case "number":
                return self._number(value, turn, errors)
            case "moment":
                for moment in value.moments:
                    leaf = evidence.moment(moment, turn, errors)
                    if leaf is not None:
                        kind = "moment" if moment.groundable else "month"
                        return self._match(value.start, value.end, leaf, kind)
                return None
            case "url" | "email":
                leaf = evidence.link(value.key, turn, errors)
                return self._maybe(value.start, value.end, leaf, value.kind)
            case "identifier":
                return self._identifier(value, turn, errors)
            case "quote" | "code":
                return self._quotation(value, turn, errors)

    def _number(self, value: Value, turn: int | None, errors: bool) -> Match | None:
        for reading in value.readings:
            leaf = self.evidence.number(reading, turn, errors)
            if leaf is not None:
                return self._match(value.start, value.end, leaf, "number")
        if value.text.isdecimal():
            start, leaf = self._joined_identifier(value, turn, errors)
            if leaf is not None:
                return self._match(start, value.end, leaf, "identifier")
            leaf = self.evidence.identifier_ending(value.text, turn, errors)
            leaf = leaf or self._partial(value, turn, errors)
            return self._maybe(value.start, value.end, leaf, "identifier")
        return None

    def _partial(self, value: Value, turn: int | None, errors: bool) -> Leaf | None:
        """`ending in 7880`."""
        if not self._says_ending(value):
            return None
        return self.evidence.partial(value.text, turn, errors)

    def _says_ending(self, value: Value) -> bool:
        return value.text.isdecimal() and names_an_ending(self.text, value.start)

    def _joined_identifier(
        self, value: Value, turn: int | None, errors: bool
    ) -> tuple[int, Leaf | None]:
        """`HAT 023` and `credit card 4421486`: up to three words before the digits."""
        for start, key in self.joined_keys(value):
            leaf = self.evidence.identifier(key, turn, errors)
            if leaf is not None:
                return start, leaf
        return value.start, None

    def joined_keys(self, value: Value) -> Iterator[tuple[int, str]]:
        """Identifiers that the value may be the end of: where they begin, and their keys."""
        for start in self._words_before(value.start):
            yield start, identifier_key(self.text[start : value.end])

    def _was_said(self, value: Value, turn: int | None) -> bool:
        if self.said.holds(value, turn):
            return True
        if value.inner and all(self._was_said(each, turn) for each in value.inner):
            return True
        if not value.text.isdecimal():
            return False
        return any(self.said.holds_key(key, turn) for _, key in self.joined_keys(value)) or (
            self._says_ending(value) and self.said.holds_ending(value.text, turn)
        )

    def _words_before(self, position: int) -> Iterator[int]:
        """Where the last one, two, three words before a position begin."""
        for _ in range(3):
            window = max(0, position - 40)
            before = self.text[window:position].rstrip(" \t\u00a0#")
            blanks = position - window - len(before)
            if not 1 <= blanks <= 2 or not before or not before[-1].isalpha():
                return
            words = token_pattern(before).findall(before)
            position = window + len(before) - len(words[-1])
            yield position

    def _with_its_words(self, value: Value) -> Value:
        """In `paypal 261484` that nothing supports, the word belongs to an identifier that is
        wrong, and is no evidence by itself."""
        if value.text.isdecimal() and len(value.text) >= IDENTIFIER_DIGITS:
            for start in self._words_before(value.start):
                value = value._replace(start=start)
        return value

    def _identifier(self, value: Value, turn: int | None, errors: bool) -> Match | None:
        leaf = self.evidence.identifier(value.key, turn, errors)
        if leaf is None and value.text.startswith("#") and value.key.isdecimal():
            reading = read_unlocalised(value.key)
            leaf = None if reading is None else self.evidence.number(reading, turn, errors)
        if leaf is None:
            # The blank may stand inside: `HAT 023A`.
            start, leaf = self._joined_identifier(value, turn, errors)
            leaf = leaf or self._partial(value, turn, errors)
            if leaf is None and value.inner:  # `22C` for a temperature of 22
                return self._support(value.inner[0], turn, errors)
            return self._maybe(start, value.end, leaf, "identifier")
        return self._match(value.start, value.end, leaf, "identifier")

    def _quotation(self, value: Value, turn: int | None, errors: bool) -> Match | None:
        leaf = self.evidence.identifier(identifier_key(value.text), turn, errors)
        leaf = leaf or self.evidence.texts.quoting(value.key, turn, errors)
        if leaf is not None:
            return self._match(value.start, value.end, leaf, value.kind)
        found: list[Match] = []
        for each in value.inner:  # a suggested reply: “Yes, modify #W5166363 to item_id 3265”
            support = self._support(each, turn, errors)
            if support is not None:
                found.append(support)
            elif not self._was_said(each, turn):
                return None
        return found[0] if found else None

    def _derived(self, value: Value, turn: int | None) -> Match | None:
        if value.kind == "url":
            return self._resolved(value, turn)
        for reading in value.readings:
            found = arithmetic.explain_from_few(self.evidence, reading, turn)
            if found is not None:
                leaves, how = found
                leaf = leaves[0]
                return Match(
                    self.to_bytes(value.start),
                    self.to_bytes(value.end),
                    leaf.call,
                    leaf.path,
                    how,
                    "number",
                    "derived",
                    all(each.strict for each in leaves),
                )
        return None

    def _resolved(self, value: Value, turn: int | None) -> Match | None:
        """`https://doi.org/10.1000/182`, where a result holds that DOI."""
        identifier = resolved_id(value.text)
        if identifier is None:
            return None
        leaf = self.evidence.identifier(identifier_key(identifier), turn, False)
        if leaf is None:
            leaf = self.evidence.texts.quoting(identifier, turn, False)
            if leaf is None or not stands_in(identifier, leaf.folded):
                return None
        return replace(self._match(value.start, value.end, leaf, "url"), cls="derived")

    # --- texts

    def _texts(
        self, span: Span, unsupported: list[Value], turn: int | None, errors: bool
    ) -> list[Match]:
        placed = self._placed_in(span)
        if placed is None:
            said = fold(self.text[span[0] : span[1]])
            texts, words, places = self.evidence.texts, token_pattern(said).findall(said), []
            begins = [at for at in range(len(words)) if texts.begins_at(words, at)]
            has_runs = True
        else:
            texts = self._repeated
            begins_at, tokens = self._beginnings
            low = bisect_left(begins_at, span[0])
            high = bisect_left(begins_at, span[1], low)
            has_runs = not unsupported and self._has_runs(span)
            if low == high and not has_runs:
                return []
            first = bisect_left(placed.starts, span[0])
            last = bisect_left(placed.starts, span[1], first)
            begins = [at - first for at in tokens[low:high]]
            words, places = placed.words[first:last], placed.starts[first:last]
        found: dict[Leaf, Match] = {}
        if begins:
            found = self._pieces(span, texts, words, places, begins, unsupported, turn, errors)
        if has_runs and not found and not unsupported:
            for first, last, leaf in self._runs(texts, words, turn, errors):
                folded = Folded(self.text[span[0] : span[1]])
                starts = _token_starts(folded.text)
                end = starts[last] + len(words[last])
                place = self._place(span, folded, starts[first], end)
                found.setdefault(leaf, self._match(*place, leaf, "run"))
        return list(found.values())

    @once
    def _placed(self) -> PlacedWords | None:
        """The tokens of the answer, read once; None where they have to be read span by span."""
        return place_tokens(self._broken)

    def _placed_in(self, span: Span) -> PlacedWords | None:
        """None also for an emphasis that ends in the middle of a token: `_so it was_`."""
        if not (is_boundary(self._broken, span[0]) and is_boundary(self._broken, span[1])):
            return None
        return None if self.text.find("\\n", *span) >= 0 else self._placed

    @once
    def _repeated(self) -> Texts:
        """The texts of results, as far as the answer may repeat them."""
        return self.evidence.texts_with(frozenset(self._placed.words if self._placed else ()))

    @once
    def _beginnings(self) -> tuple[list[int], list[int]]:
        """Where tokens of the answer begin some of them, and which tokens these are."""
        texts, placed = self._repeated, self._placed
        if not texts.pieces or placed is None:
            return [], []
        words, heads = placed.words, texts.pieces.keys()
        likely = [at for at, word in enumerate(words) if word in heads]
        tokens = [at for at in likely if texts.begins_at(words, at)]
        return [placed.starts[at] for at in tokens], tokens

    @once
    def _run_places(self) -> tuple[list[int], list[int]]:
        """Where the first tokens of runs begin that some text holds, and where their last ones."""
        known, placed = self._repeated.runs, self._placed
        if not known or placed is None:
            return [], []
        runs = zip(*(placed.words[at:] for at in _RUN), strict=False)
        found = [at for at, run in enumerate(runs) if run in known]
        starts = placed.starts
        return [starts[at] for at in found], [starts[at + RUN_TOKENS - 1] for at in found]

    def _has_runs(self, span: Span) -> bool:
        """Does one of them lie in it?"""
        firsts, lasts = self._run_places
        at = bisect_left(firsts, span[0])
        return at < len(firsts) and lasts[at] < span[1]

    def _pieces(
        self,
        span: Span,
        texts: Texts,
        words: list[str],
        places: list[int],
        begins: list[int],
        unsupported: list[Value],
        turn: int | None,
        errors: bool,
    ) -> dict[Leaf, Match]:
        """Beside what nothing supports, only whole texts count."""
        found: dict[Leaf, Match] = {}
        edges: Insides | None = None
        folded = Folded(self.text[span[0] : span[1]])
        if places and len(folded.text) == span[1] - span[0]:  # else blanks were folded
            starts = [places[at] - span[0] for at in begins]
        else:
            all_starts = _token_starts(folded.text)
            starts = [all_starts[at] for at in begins]
        for at, start in zip(begins, starts, strict=True):
            for piece, leaves in texts.begun_by(words, at, folded.text, start):
                if not folded.text.startswith(piece.text, start):
                    continue
                end = start + len(piece.text)
                if (unsupported and not piece.whole) or not (
                    is_boundary(folded.text, end) and is_text(piece.text)
                ):
                    continue
                if edges is None:
                    values = [*self.values_in(span), *map(self._with_its_words, unsupported)]
                    edges = Insides((one.start, one.end) for one in values if one.kind in _EDGED)
                leaf = best_of(leaves, turn, errors)
                if leaf is None or leaf in found:
                    continue
                place = self._place(span, folded, start, end)
                if not edges.cut_by(place):
                    found[leaf] = self._match(*place, leaf, "text" if piece.whole else "line")
        return found

    def _runs(
        self, texts: Texts, words: list[str], turn: int | None, errors: bool
    ) -> Iterator[tuple[int, int, Leaf]]:
        """Runs of at least five tokens that a longer leaf holds: first and last token, leaf."""
        if len(words) < RUN_TOKENS:
            return
        known = texts.runs
        if not known:
            return
        found = [known.get(run) for run in zip(*(words[at:] for at in _RUN), strict=False)]
        runs = [None if leaves is None else best_of(leaves, turn, errors) for leaves in found]
        first = 0
        while first < len(runs):
            leaf, last = runs[first], first
            while leaf is not None and last + 1 < len(runs) and runs[last + 1] is leaf:
                last += 1
            if leaf is not None and telling(words[first : last + RUN_TOKENS]):
                yield first, last + RUN_TOKENS - 1, leaf
            first = last + 1

    def _place(self, span: Span, folded: Folded, start: int, end: int) -> Span:
        return span[0] + folded.origin(start), span[0] + folded.origin(end - 1) + 1

    def _maybe(self, start: int, end: int, leaf: Leaf | None, kind: str) -> Match | None:
        return None if leaf is None else self._match(start, end, leaf, kind)

    def _match(self, start: int, end: int, leaf: Leaf, kind: str) -> Match:
        return Match(
            self.to_bytes(start),
            self.to_bytes(end),
            leaf.call,
            leaf.path,
            cut_value(leaf.value),
            kind,
            "error" if leaf.error else "value",
            leaf.strict,
        )


def _token_starts(folded: str) -> list[int]:
    return [one.start() for one in token_pattern(folded).finditer(folded)]
