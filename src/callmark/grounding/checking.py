"""Statements: what an answer says of the results, value by value and clause by clause."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from callmark.grounding import arithmetic
from callmark.grounding.match import Said
from callmark.grounding.measures import Measures
from callmark.grounding.numbers import SCALE
from callmark.grounding.outline import Outline
from callmark.grounding.record_index import RecordIndex
from callmark.grounding.record_tree import (
    Field,
    Mention,
    Record,
    Series,
    key_stems,
    number_of,
    shape_of,
    stem,
)
from callmark.grounding.spans import Span
from callmark.grounding.values import Value, decimals_of, identifier_key
from callmark.grounding.words import names_an_ending
from callmark.records.statements import FLAGS, StatementLabel

SMALL = 13  # a whole number below it stands in every result
_WORD = re.compile(r"[^\W\d_]{2,}")
_MONEY = re.compile(r"[$€£¥₹₽₩₺]\s?[-−]?$")
_MONEY_AFTER = re.compile(r"\s?(?:USD|EUR|GBP|CHF|dollars?|euros?|€|£)\b")
_HEDGE = re.compile(
    r"(?:\b(?:about|around|approx\w*\.?|roughly|nearly|almost|over|under|more than|less than|some"
    r"|at least|above|below|at most|mehr als|mindestens|über|weniger als|unter|más de|al menos"
    r"|menos de|plus de|moins de|circa|ca\.|etwa|rund|ungefähr|fast|unos|unas|aproximadamente"
    r"|casi|environ|près de)\s|[~≈])"
    r"[$€£]?$",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    r"\b(?:over|more than|at least|above|mehr als|über|mindestens|más de|al menos|plus de)\s"
    r"[$€£]?$",
    re.IGNORECASE,
)
_BELOW = re.compile(
    r"\b(?:under|less than|almost|nearly|below|at most|up to|fast|weniger als|unter|casi|menos de"
    r"|moins de|près de)\s[$€£]?$",
    re.IGNORECASE,
)
_WORDS_BEFORE = re.compile(r"(?:[^\W\d_]+ ){0,2}[^\W\d_]+[ #]{1,2}$")
_DURATION = re.compile(
    r"[\s-]?(?:business[\s-])?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|seconds?)\b"
)
_PROMISE = re.compile(
    r"\b(?:within|in|last|past|next|up to|at least|about|around|after|every|takes?|allow|for)\s"
    r"(?:the\s)?(?:\d+\s?(?:-|–|to)\s?)?$",
    re.IGNORECASE,
)
_EXAMPLE = re.compile(
    r"(?:e\.g\.,?|for example,?|such as|like|z\. ?B\.|p\. ?ej\.)\s?[\"“(]?$", re.I
)
_CHANGE = re.compile(
    r"\b(?:from|instead|chang\w+|swap\w*|updat\w+|mov(?:e|ed|ing)|exchang\w+|replac\w+|new"
    r"|originally|previous\w*|versus|vs|compared|differen\w+|refund\w*|total)\b|->|→|➝",
    re.IGNORECASE,
)


class Finding(NamedTuple):
    """One statement and its label. `fields` are the leaves that it rests on, or that it should
    have; `because` names what was expected."""

    start: int
    end: int
    label: StatementLabel
    rule: str
    fields: tuple[Field, ...] = ()
    because: str = ""


TurnAt = Callable[[int], int | None]


class Checker:
    """One answer against the records and what the user said."""

    def __init__(
        self,
        outline: Outline,
        values: list[Value],
        index: RecordIndex,
        said: Said,
        turn_at: TurnAt,
        failed: Said | None = None,
    ) -> None:
        """`failed`: what results that are errors say. They support nothing."""
        self.text = outline.text
        self.outline = outline
        self.values = values
        self.index = index
        self.measures = Measures(index)
        self.said = said
        self.failed = failed
        self.turn_at = turn_at
        self.stated: list[Value] = []
        self._mentions = index.names.mentions(outline.text)
        self._mention_starts = [mention.start for mention in self._mentions]
        self._equations = arithmetic.find_equations(outline.text, values)

    def check(self) -> Iterator[Finding]:
        for at, value in enumerate(self.values):
            finding = self._judge(at, value)
            if value.readings and finding.label not in FLAGS:
                self.stated.append(value)
            yield finding

    # --- one value

    def _judge(self, at: int, value: Value) -> Finding:
        equation = self._equations.get(at)
        if equation is not None:
            label: StatementLabel = "calculated" if equation.holds else "miscalculated"
            because = "" if equation.holds else f"it comes to {_plain(equation.result)}"
            return Finding(value.start, value.end, label, "equation", (), because)
        turn = self.turn_at(value.start)
        sentence = self.outline.sentence_at(value.start)
        fields, wrong = self.measures.in_its_unit(value, self.index.stating(value, turn))
        joined = self._joined(value, turn)
        if joined is not None:
            return joined
        if self._is_small(value):
            return self._small(value, sentence, fields, wrong)
        if fields:
            return self._bind(value, sentence, fields)
        return (
            self._converted(value, turn)
            or self._rounded(value, sentence)
            or self._ending(value)
            or self._quoted(value)
            or self._said(value, turn)
            or self._implied(value, sentence)
            or self._mismatched(value, wrong)
            or self._identifier(value, sentence)
            or self._not_claimed(value, sentence)
            or self._found(value, "unsupported", "value")
        )

    def _said(self, value: Value, turn: int | None) -> Finding | None:
        if self.said.holds(value, turn):
            return self._found(value, "user_said", "said")
        if self.failed is not None and self.failed.holds(value, turn):
            return self._found(value, "user_said", "failure")
        return None

    def _found(
        self, value: Value, label: StatementLabel, rule: str, *fields: Field, because: str = ""
    ) -> Finding:
        return Finding(value.start, value.end, label, rule, fields, because)

    def _is_small(self, value: Value) -> bool:
        if value.kind != "number" or not value.readings or value.form.percent:
            return False
        if decimals_of(value):  # `12.0` says more than `12`
            return False
        reading = value.readings[0]
        return reading % SCALE == 0 and 0 <= reading < SMALL * SCALE and not self._is_money(value)

    def _is_money(self, value: Value) -> bool:
        before = self.text[max(0, value.start - 3) : value.start]
        if value.text.startswith("-") or self.text[value.start : value.end].startswith(
            ("-$", "−$")
        ):
            return True
        return _MONEY.search(before) is not None or (
            _MONEY_AFTER.match(self.text, value.end) is not None
        )

    def _small(
        self, value: Value, sentence: Span, fields: Sequence[Field], wrong: Sequence[Field]
    ) -> Finding:
        counted = self._count(value)
        if counted is not None:
            if counted.label in FLAGS and not value.text.isdecimal():
                # `for each of the three passengers` speaks of the user's plan as often as not.
                return self._said(value, self.turn_at(value.start)) or (
                    self._not_claimed(value, sentence) or counted
                )
            return counted
        linked = [field for field in fields if self._is_linked(value, field, sentence)]
        if linked:
            return self._bind(value, sentence, linked)
        turn = self.turn_at(value.start)
        near = [
            field
            for field in wrong
            if self.measures.is_of_its_kind(value, field) or self._is_linked(value, field, sentence)
        ]
        found = (
            self._converted(value, turn) or self._said(value, turn) or self._mismatched(value, near)
        )
        if found is not None:
            return found
        if _DURATION.match(self.text, value.end):
            return self._found(value, "not_claimed", "duration")
        return self._found(value, "unchecked", "small number")

    def _is_linked(self, value: Value, field: Field, sentence: Span) -> bool:
        """Do words of the leaf's key, or the words beside the number in it, stand near?"""
        start, end = max(sentence[0], value.start - 60), min(sentence[1], value.end + 40)
        near = {stem(word) for word in _WORD.findall(self.text[start:end])}
        if near.intersection(key_stems(field.key)):
            return True
        if not isinstance(field.value, str):
            return False
        after = _WORD.search(self.text, value.end, min(len(self.text), value.end + 20))
        return after is not None and stem(after[0]) in map(stem, _WORD.findall(field.value[:60]))

    def _count(self, value: Value) -> Finding | None:
        nouns = [stem(word) for word in _WORD.findall(self.text[value.end : value.end + 40])[:2]]
        if not nouns or "\n" in self.text[value.end : value.end + 12]:
            return None
        stated = value.readings[0] // SCALE
        most: tuple[int, str] | None = None
        for series in self._series_of(nouns):
            if len(series.items) == stated:
                return self._found(
                    value, "derived", "count", because=f"the length of {series.path}"
                )
            if most is None or len(series.items) > most[0]:
                most = (len(series.items), series.path)
        if most is not None and stated > most[0]:
            return self._found(value, "miscounted", "count", because=f"{most[1]} has {most[0]}")
        return None

    def _series_of(self, nouns: Sequence[str]) -> Iterator[Series]:
        return (series for noun in nouns for series in self._series_by_noun.get(noun, ()))

    @cached_property
    def _series_by_noun(self) -> dict[str, list[Series]]:
        found: dict[str, list[Series]] = {}
        for series in self.index.tree.series:
            stems = key_stems(series.key)
            if stems:
                found.setdefault(stems[-1], []).append(series)
        return found

    # --- matching

    def _converted(self, value: Value, turn: int | None) -> Finding | None:
        field = self.measures.converted(value, arithmetic.half_unit(value)) if value.unit else None
        if field is None or not field.counts_for(turn):
            return None
        return self._found(value, "converted", "unit", field)

    def _mismatched(self, value: Value, wrong: Sequence[Field]) -> Finding | None:
        """The right number in another unit, currency or scale."""
        if not wrong:
            return None
        unit = self.measures.unit_of(wrong[0], value.readings)
        because = f"it is in {unit}, not {value.unit}" if unit and value.unit else "another scale"
        return self._found(value, "unit_mismatch", "unit", wrong[0], because=because)

    def _rounded(self, value: Value, sentence: Span) -> Finding | None:
        if value.kind != "number" or not value.readings:
            return None
        before = self.text[max(0, value.start - 24) : value.start]
        hedged = _HEDGE.search(before) is not None
        decimals = decimals_of(value)
        digits = "".join(filter(str.isdecimal, value.text))
        if len(digits.strip("0")) < 2 and not hedged:
            return None
        half = arithmetic.half_unit(value)
        if hedged and not decimals:
            half *= 10 ** (len(digits) - len(digits.rstrip("0")))
        reading = value.readings[0]
        # `more than 240` may be 248, `under 250` as well.
        low = reading - half * (0 if _ABOVE.search(before) else 2 if _BELOW.search(before) else 1)
        high = reading + half * (2 if _ABOVE.search(before) else 0 if _BELOW.search(before) else 1)
        near = self.index.between(low, high)[:20]
        for number in near:
            if number % (2 * half) == 0:
                continue  # not rounded: as coarse as what is stated
            for field in self.index.numbers[number][:8]:
                if hedged or decimals or self._is_linked(value, field, sentence):
                    return self._found(value, "rounded", "match", field)
        return None

    def _joined(self, value: Value, turn: int | None) -> Finding | None:
        """`HAT 023`: digits that are an identifier with the words before them."""
        if not value.text.isdecimal() or len(value.text) < 2:
            return None
        window = max(0, value.start - 40)
        words = _WORDS_BEFORE.search(self.text[window : value.start])
        if words is None:
            return None
        starts = [found.start() for found in _WORD.finditer(words[0])]
        for start in starts:
            key = identifier_key(self.text[window + words.start() + start : value.end])
            for field in self.index.identifiers.get(key, ()):
                if field.counts_for(turn) and not field.echo:
                    return self._found(value, "supported", "name", field)
        return None

    def _ending(self, value: Value) -> Finding | None:
        """`ending in 7880`, and four digits or more of an identifier."""
        if not value.text.isdecimal() or len(value.text) < 3:
            return None
        if len(value.text) < 5 and not names_an_ending(self.text, value.start):
            return None
        field = self.index.ending_in(value.text)
        return None if field is None else self._found(value, "supported", "ending", field)

    def _quoted(self, value: Value) -> Finding | None:
        if value.kind not in ("quote", "code"):
            return None
        return self._found(value, "unchecked", "quotation")

    def _identifier(self, value: Value, sentence: Span) -> Finding | None:
        is_number = value.kind == "number" and value.text.isdecimal() and len(value.text) >= 6
        if value.kind != "identifier" and not is_number:
            return None
        before = self.text[max(0, value.start - 40) : value.start]
        if value.key in self.index.keys or not any(map(str.isdecimal, value.text)):
            return self._found(value, "unchecked", "word")
        if _EXAMPLE.search(before):
            return self._found(value, "not_claimed", "example")
        if before.endswith(("***", "•", "xx", "XX")):
            return self._found(value, "unchecked", "masked")
        near = self.index.shapes.get(shape_of(value.text))
        return None if near is None else self._found(value, "altered", "identifier", near)

    def _not_claimed(self, value: Value, sentence: Span) -> Finding | None:
        before = self.text[max(sentence[0], value.start - 30) : value.start]
        if _DURATION.match(self.text, value.end) and _PROMISE.search(before):
            return self._found(value, "not_claimed", "duration")
        if self.outline.is_proposed(sentence):
            return self._found(value, "not_claimed", "proposal")
        if value.moments and not any(moment.groundable for moment in value.moments):
            return self._found(value, "unchecked", "month")
        return None

    # --- binding

    def _bind(self, value: Value, sentence: Span, fields: Sequence[Field]) -> Finding:
        if self._is_name(value):
            return self._found(value, "supported", "name", *fields[:3])
        mentions = self._said_of(value, sentence)
        if not mentions or value.kind in ("quote", "code", "url", "email"):
            return self._found(value, "supported", "match", *fields[:3])
        records = _most_specific(mentions)
        for field in fields:
            if any(record.is_kin(field.record) for record in records):
                return self._found(value, "supported", "bound", field)
        names = {name for record in records for name in record.names}
        for field in fields:
            if _names_one(field.record, names):
                return self._found(value, "supported", "joined", field)
        if _CHANGE.search(self.text, *sentence):
            return self._found(value, "supported", "change", *fields[:3])
        keys = {field.key for field in fields}
        for record in records:
            own = [one for one in _own_fields(record, keys) if _is_like(one, value)]
            if 0 < len(own) <= 6:
                return self._found(
                    value, "misattributed", "binding", own[0], because=_place(fields[0])
                )
        return self._found(value, "supported", "unbound", *fields[:3])

    def _is_name(self, value: Value) -> bool:
        """Does the value name a record itself?"""
        at = bisect_left(self._mention_starts, value.end) - 1
        return at >= 0 and self._mentions[at].end > value.start

    def _said_of(self, value: Value, sentence: Span) -> Sequence[Mention]:
        """The records that the value is said of: those that its clause names, else its sentence,
        else its line, its siblings before it, what it stands under."""
        for start, end in (self.outline.clause_at(value.start), sentence):
            found = self._mentions_in(start, end, value)
            if found:
                return found
        line = self.outline.line_at(value.start)
        found = self._mentions_in(line.start, value.start, value)
        if found:
            return found[-1:]
        for start, end in reversed((*line.heads, *line.siblings)):
            found = self._mentions_in(start, end, value)
            if found:
                return found
        return ()

    def _mentions_in(self, start: int, end: int, but: Value) -> list[Mention]:
        at = bisect_left(self._mention_starts, start)
        found = []
        while at < len(self._mentions) and self._mentions[at].start < end:
            mention = self._mentions[at]
            if not mention.start < but.end <= mention.end and not (
                but.start <= mention.start < but.end
            ):
                found.append(mention)
            at += 1
        return found

    # --- arithmetic

    def _implied(self, value: Value, sentence: Span) -> Finding | None:
        if value.kind != "number" or not value.readings:
            return None
        line = self.outline.line_at(value.start)
        around = [(line.start, line.end), *line.heads[-1:]]
        cues = " ".join(self.text[start:end] for start, end in around)
        # Cents tell numbers apart: the more of them a number has, the further back it may look.
        reach = arithmetic.FAR if "." in value.text else arithmetic.RECENT
        run = [one for one in self.stated[-reach:] if self._is_alike(one, value)]
        operands = [one.readings[0] for one in run]
        operands += [
            one.readings[0]
            for one in self.values_after(value, sentence[1])
            if self._is_alike(one, value)
        ]
        operands += self._amounts(value, sentence)
        if "." in value.text:
            operands += [
                one.readings[0]
                for one in self.values_after(value, len(self.text))
                if self._is_alike(one, value)
            ]
            operands += self._prices
        column = self.index.columns.get(abs(value.readings[0]))
        if column is not None and arithmetic.announces_a_sum(cues):
            return self._found(value, "derived", "sum", because=f"{column[1]} of all {column[0]}")
        mean = self._mean(value) if arithmetic.announces_an_average(cues) else None
        if mean is not None:
            return self._found(value, "derived", "average", because=f"{mean[1]} of all {mean[0]}")
        found = arithmetic.follows(
            value, cues, operands, [one.readings[0] for one in run], self._factors(cues)
        )
        if found is None:
            return None
        because = " and ".join(map(_plain, found.operands))
        return self._found(value, "derived", found.rule, because=f"a {found.rule} of {because}")

    def _mean(self, value: Value) -> tuple[str, str] | None:
        half = arithmetic.half_unit(value)
        at = bisect_left(self.index.means, (value.readings[0] - half - 1,))
        if at < len(self.index.means) and self.index.means[at][0] <= value.readings[0] + half:
            return self.index.means[at][1:]
        return None

    def _is_alike(self, one: Value, other: Value) -> bool:
        return bool(one.readings) and self._is_money(one) == self._is_money(other)

    def values_after(self, value: Value, end: int) -> list[Value]:
        at = bisect_left(self.values, value.end, key=lambda one: one.start)
        found: list[Value] = []
        while at < len(self.values) and self.values[at].start < end and len(found) < 6:
            found.append(self.values[at])
            at += 1
        return found

    @cached_property
    def _prices(self) -> list[int]:
        """Amounts with decimals that results hold: few numbers are their difference by chance."""
        return [number for number in self.index.numbers if number % SCALE][:200]

    def _amounts(self, value: Value, sentence: Span) -> list[int]:
        """The numbers of the records that the value is said of."""
        found: list[int] = []
        for record in _most_specific(self._said_of(value, sentence)):
            for inner in record.within():
                for field in inner.fields:
                    number = number_of(field.value)
                    if number is not None:
                        found.append(number)
                if len(found) > 40:
                    return found
        return found

    def _factors(self, cues: str) -> list[int]:
        """How many of something there are: lengths of lists, and small numbers near."""
        stems = {stem(word) for word in _WORD.findall(cues)}
        lengths = {
            len(series.items)
            for one in stems
            for series in self._series_by_noun.get(one, ())
            if 1 < len(series.items) < SMALL
        }
        named = {int(found) for found in re.findall(r"(?<![\w.,$€£])\d{1,2}(?![\w.,%])", cues)}
        words = {number for word, number in _NUMBER_WORDS.items() if stem(word) in stems}
        return sorted(lengths | named | words)


_NUMBER_WORDS = {
    "two": 2, "both": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
    "nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "zwei": 2, "drei": 3, "vier": 4, "dos": 2,
    "tres": 3, "cuatro": 4, "deux": 2, "trois": 3, "quatre": 4,
}  # fmt: skip


def _most_specific(mentions: Sequence[Mention]) -> list[Record]:
    """Without those that merely hold another one: an order, where one of its items is named."""
    records = {record.number: record for one in mentions for record in one.records}
    ordered = sorted(records)
    kept = []
    for place, number in enumerate(ordered):
        following = ordered[place + 1] if place + 1 < len(ordered) else None
        if following is None or following > records[number].last:
            kept.append(records[number])
    return kept


def _names_one(record: Record, names: set[str]) -> bool:
    """Does the record, or the one that it is a part of, hold one of these names as a value?"""
    near = [record] if record.parent is None or record.names else [record, record.parent]
    return any(
        isinstance(field.value, str) and field.value in names
        for one in near
        for field in one.fields
    )


def _own_fields(record: Record, keys: set[str]) -> Iterator[Field]:
    for inner in record.within():
        for field in inner.fields:
            if field.key in keys:
                yield field


def _is_like(field: Field, value: Value) -> bool:
    if value.kind == "number":
        return number_of(field.value) is not None or (
            isinstance(field.value, str) and any(map(str.isdecimal, field.value))
        )
    return isinstance(field.value, str) and any(map(str.isdecimal, field.value))


def _place(field: Field) -> str:
    return f"{field.value} is {field.key} of {field.path}"


def _plain(scaled: int) -> str:
    whole, rest = divmod(abs(scaled), SCALE)
    text = f"{whole}.{rest:012d}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text
