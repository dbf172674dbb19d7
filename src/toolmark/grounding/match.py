"""Does a span hold what the evidence says? Labels for its values, matches for its grounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from toolmark.core.jsontext import Json
from toolmark.core.scores import Match, ValueLabel, ValueMark
from toolmark.grounding import derived
from toolmark.grounding.evidence import RUN_TOKENS, Evidence, Leaf, telling
from toolmark.grounding.numbers import read_unlocalised
from toolmark.grounding.said import Said
from toolmark.grounding.spans import Span
from toolmark.grounding.text import ByteOffsets, Folded, is_boundary, token_pattern
from toolmark.grounding.values import Value, identifier_key
from toolmark.grounding.words import admits_failure

_EDGED = frozenset(("number", "moment", "url", "email", "identifier"))


class SpanGrounding(NamedTuple):
    """`matches` ground the span; `marks` label each of its checkable values."""

    matches: tuple[Match, ...]
    derived: tuple[Match, ...]
    marks: tuple[ValueMark, ...]

    @property
    def unsupported(self) -> bool:
        return any(mark.label == "unsupported" for mark in self.marks)

    @property
    def wholly_user_said(self) -> bool:
        return (
            bool(self.marks)
            and not self.matches
            and all(mark.label == "user_said" for mark in self.marks)
        )


class Grounder:
    """One answer with its values, set against the evidence and what the user said."""

    def __init__(self, text: str, values: list[Value], evidence: Evidence, said: Said) -> None:
        self.text = text
        self.values = values
        self.evidence = evidence
        self.said = said
        self.to_bytes = ByteOffsets(text)

    def ground(self, span: Span, turn: int | None) -> SpanGrounding:
        values = [self._with_its_words(value) for value in self.values_in(span)]
        errors = self._failure_counts(span)
        matches: list[Match] = []
        computed: list[Match] = []
        marks: list[ValueMark] = []
        for value in values:
            match = self._support(value, turn, errors)
            label: ValueLabel = "supported"
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
        unsupported = any(mark.label == "unsupported" for mark in marks)
        if not any(match.strict for match in matches):  # else the text could add nothing
            matches += self._texts(span, values, turn, errors, whole_only=unsupported)
        return SpanGrounding(tuple(matches), tuple(computed), tuple(marks))

    def values_in(self, span: Span) -> list[Value]:
        start, end = span
        return [value for value in self.values if start <= value.start < end]

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
            return self._maybe(value.start, value.end, leaf, "identifier")
        return None

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
        return self.said.holds(value, turn) or (
            value.text.isdecimal()
            and any(self.said.holds_key(key, turn) for _, key in self.joined_keys(value))
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
        """`paypal 261484` where the evidence has a `paypal_1261484`: the digits are no number,
        and the word, which belongs to the identifier, is no evidence by itself."""
        if value.text.isdecimal():
            for start in self._words_before(value.start):
                words = identifier_key(self.text[start : value.start])
                if self.evidence.has_identifiers_like(words, len(value.text)):
                    key = identifier_key(self.text[start : value.end])
                    return Value(start, value.end, "identifier", value.text, key=key)
        return value

    def _identifier(self, value: Value, turn: int | None, errors: bool) -> Match | None:
        leaf = self.evidence.identifier(value.key, turn, errors)
        if leaf is None and value.text.startswith("#") and value.key.isdecimal():
            reading = read_unlocalised(value.key)
            leaf = None if reading is None else self.evidence.number(reading, turn, errors)
        if leaf is None:
            # The blank may stand inside: `HAT 023A`.
            start, leaf = self._joined_identifier(value, turn, errors)
            return self._maybe(start, value.end, leaf, "identifier")
        return self._match(value.start, value.end, leaf, "identifier")

    def _quotation(self, value: Value, turn: int | None, errors: bool) -> Match | None:
        leaf = self.evidence.identifier(identifier_key(value.text), turn, errors)
        leaf = leaf or self.evidence.quoted(value.key, turn, errors)
        if leaf is not None:
            return self._match(value.start, value.end, leaf, value.kind)
        inner = [self._support(each, turn, errors) for each in value.inner]
        return inner[0] if inner and all(inner) else None

    def _derived(self, value: Value, turn: int | None) -> Match | None:
        for reading in value.readings:
            found = derived.explain(self.evidence, reading, turn)
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

    # --- texts

    def _texts(
        self, span: Span, values: list[Value], turn: int | None, errors: bool, *, whole_only: bool
    ) -> list[Match]:
        pieces = self.evidence.pieces()
        if not pieces and not self.evidence.runs():
            return []
        folded = Folded(self.text[span[0] : span[1]])
        tokens = list(token_pattern(folded.text).finditer(folded.text))
        found: dict[tuple[int, str], Match] = {}
        for token in tokens:
            for piece in pieces.get(token[0], ()):
                leaf = piece.leaf
                if whole_only and not piece.whole:
                    continue
                if not leaf.counts_for(turn) or (leaf.error and not errors):
                    continue
                end = token.start() + len(piece.text)
                if not folded.text.startswith(piece.text, token.start()):
                    continue
                if is_boundary(folded.text, end):
                    kind = "text" if piece.whole else "line"
                    place = self._place(span, folded, token.start(), end)
                    if not _cuts_a_value(place, values):
                        found.setdefault((leaf.call, leaf.path), self._match(*place, leaf, kind))
        if not found and not whole_only:
            words = [token[0] for token in tokens]
            for run_start, run_end, leaf in self._runs(words, turn, errors):
                place = self._place(span, folded, tokens[run_start].start(), tokens[run_end].end())
                found.setdefault((leaf.call, leaf.path), self._match(*place, leaf, "run"))
        return list(found.values())

    def _runs(
        self, words: list[str], turn: int | None, errors: bool
    ) -> list[tuple[int, int, Leaf]]:
        """Runs of at least five tokens that a longer leaf holds, each as long as it goes."""
        found: list[tuple[int, int, Leaf]] = []
        if len(words) < RUN_TOKENS:
            return found
        for text, leaf in self.evidence.runs():
            if not leaf.counts_for(turn) or (leaf.error and not errors):
                continue
            first = 0
            while first + RUN_TOKENS <= len(words):
                last = first + RUN_TOKENS
                if f" {' '.join(words[first:last])} " not in text:
                    first += 1
                    continue
                while last < len(words) and f" {' '.join(words[first : last + 1])} " in text:
                    last += 1
                if telling(words[first:last]):
                    found.append((first, last - 1, leaf))
                first = last
        return found

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
            shown(leaf.value),
            kind,
            "error" if leaf.error else "value",
            leaf.strict,
        )


def shown(value: Json, longest: int = 200) -> Json:
    """A leaf's value as a match records it: long texts are cut."""
    if isinstance(value, str) and len(value) > longest:
        return value[: longest - 1] + "…"
    return value


def _cuts_a_value(place: Span, values: list[Value]) -> bool:
    """A text match must not begin or end inside a number, date, URL or identifier."""
    start, end = place
    return any(
        value.kind in _EDGED and (value.start < start < value.end or value.start < end < value.end)
        for value in values
    )
