"""Whose value it is: whether the record and the field that an answer names have it, or others."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence

from callmark.grounding import arithmetic, claims, field_words
from callmark.grounding.binding import (
    NEAREST,
    Binder,
    find_all_kin,
    find_joined,
    find_kin,
    is_like,
    is_named_by,
)
from callmark.grounding.field_words import Measures
from callmark.grounding.further import FurtherWorkings
from callmark.grounding.majority import LineRecords
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE, SCALE_DIGITS
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    RecordSubject,
    key_stems,
    stem,
)
from callmark.grounding.spans import TOLD_CHANGE, Outline, Span
from callmark.grounding.text import Frozen, once
from callmark.grounding.values import Value, decimals_of, is_one_value
from callmark.grounding.workings import TurnAt
from callmark.records.statements import StatementLabel

MOST_OWN = 8  # values of one record under one key; with more, nobody can say which is meant
_IT = re.compile(r"[\s*_]*(?:it|they|he|she|es|sie|er|il|elle|ils|elles)\b", re.IGNORECASE)
_CODE = re.compile(r"[A-Z\d]*-?\d+-\d+|[A-Z]+-?\d+")
_UNIT = re.compile(r"[ \u00a0-]?([^\W\d_]{1,12})")
# Slips: one digit is another, or two neighbours have changed places. What an answer worked out
# hardly ever comes so near.
MOST_DIGITS = 15
# How likely a number out of the blue may be to lie so near to a leaf: 4 digits among 20 leaves.
MOST_CHANCE = 0.08


class StatementFinding(Frozen, frozen=True):
    """One statement and its label. `fields` are the leaves that it rests on, or that it should
    have; `because` names what was expected."""

    start: int
    end: int
    label: StatementLabel
    rule: str
    fields: tuple[Field, ...] = ()
    because: str = ""


class Attribution:
    """One answer against the records: what its values are said of."""

    def __init__(
        self,
        outline: Outline,
        values: list[Value],
        index: RecordIndex,
        binder: Binder,
        said: Said,
        turn_at: TurnAt,
    ) -> None:
        self.text = outline.text
        self.outline = outline
        self.values = values
        self.index = index
        self.said = said
        self.turn_at = turn_at
        self._binder = binder
        self._remembered: list[Value] = []  # numbers that later ones may be worked out from

    def _found(
        self, value: Value, label: StatementLabel, rule: str, *fields: Field, because: str = ""
    ) -> StatementFinding:
        return StatementFinding(value.start, value.end, label, rule, fields, because)

    def bind(self, value: Value, sentence: Span, fields: Sequence[Field]) -> StatementFinding:
        if self._binder.is_name(value):
            return self._found(value, "supported", "name", *fields[:3])
        subject = self._binder.subject_of(value, sentence)
        fields = _without_whole_texts(fields) if self.index.has_bare else fields
        # What a calculator gives is nobody's.
        is_bare = self.index.has_bare and any(not field.key for field in fields)
        if is_bare or value.kind in ("quote", "code", "url", "email"):
            return self._found(value, "supported", "match", *fields[:3])
        if subject is None:
            return (
                self._other_field(value, sentence, fields)
                or self._of_another_line(value, sentence, fields)
                or self._found(value, "supported", "match", *fields[:3])
            )
        kin = find_kin(fields, subject)
        if kin is not None and len(subject.records) > 1 and not subject.beside:
            other = self._of_another(value, sentence, fields)
            other = other or self._of_another_line(value, sentence, fields)
            if other is not None:
                return other
        if kin is not None:
            return (
                self._wrong_field(value, sentence, subject, fields)
                or self._other_field(value, sentence, find_all_kin(fields, subject))
                or self._found(value, "supported", "bound", kin)
            )
        joined = find_joined(fields, subject)
        if joined is not None:
            return self._found(value, "supported", "joined", joined)
        if not subject.beside and self.outline.tells_a_change(value, sentence):
            return self._found(value, "supported", "change", *fields[:3])
        return (
            self._misattributed(value, subject, fields)
            or self._other_field(value, sentence, fields)
            or self._of_another_line(value, sentence, fields)
            or self._found(value, "supported", "unbound", *fields[:3])
        )

    def _of_another_line(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        if value.kind not in ("number", "moment") or self.outline.is_offered(value):
            return None
        if not any(value.readings or (1,)) or self._comes_from_its_line(value):
            return None
        if self.outline.tells_a_change(value, sentence) or claims.is_hedged(self.text, value):
            return None
        if self._workings.find(value, sentence) is not None:
            return None
        if not all(self.measures.may_be_meant(value, field) for field in fields):
            return None
        other = self._lines.other_than_most(value, fields, self._states)
        if other is None:
            return None
        because = _place(other.of_other)
        return self._found(value, "misattributed", "binding", other.own, because=because)

    def _of_another(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """`Netflix €10.99, Spotify €15.99`: each is said of what stands before it."""
        nearest = self._binder.adjacent_to(value, sentence)
        if (
            nearest is None
            or find_kin(fields, nearest) is not None
            or find_joined(fields, nearest) is not None
            or self.outline.tells_a_change(value, sentence)
        ):
            return None
        return self._misattributed(value, nearest, fields)

    def _wrong_field(
        self, value: Value, sentence: Span, subject: RecordSubject, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """`Departure: 10:00`, where 10:00 is the arrival and the departure is another time."""
        if not self._binder.is_labelled(value) or self.outline.tells_a_change(value, sentence):
            return None
        label = self._binder.label_of(value)
        if not label or is_named_by(label, fields[0]):
            return None
        named = self._binder.named_fields(self._binder.narrow(subject, value), label, value)
        named = [field for field in named if self.measures.may_be_meant(value, field)]
        if not named or any(self._states(field, value) for field in named):
            return None
        if any(is_named_by(label, field) for field in fields):  # last: there may be many
            return None
        return self._grouped(value, sentence, named[0].key) or self._found(
            value, "wrong_field", "field", named[0], because=_place(fields[0])
        )

    def _other_field(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """`arriving at 10:00`, which is the departure of whatever record states it."""
        if not 0 < len(fields) <= MOST_OWN or value.kind not in ("number", "moment"):
            return None
        is_word = value.kind == "number" and not any(map(str.isdecimal, value.text))
        if is_word or not all(is_one_value(one.value, value.kind) for one in fields):
            return None
        near = self.outline.near(value, self.outline.line_at(value.start).span)
        if TOLD_CHANGE.search(self.text, *self.outline.near(value, sentence)):
            return None
        others = list(self.values_around(value, near))
        around = [(one.start, one.end) for one in others]
        before, after = field_words.windows(self.text, value.start, value.end, near, around)
        # `3 nights at £245`: the word belongs to the number before it.
        beside = [one for one in others if one.end == before[0] or one.start == after[1]]
        label = self._binder.label_of(value) if self._binder.is_labelled(value) else frozenset()
        heads = field_words.classes_of(label)
        said = [field_words.words_said(self.text, *span) for span in (before, after)]

        def could_be(field: Field) -> bool:
            return (
                is_one_value(field.value, value.kind)
                and is_like(field, value, partly=True)
                and self.measures.could_measure(value, field)
                and not any(self._states(field, one) for one in beside)
            )

        for is_after in (False, True):
            words = said[is_after] if is_after else said[0] | heads
            also = said[0] | said[1] | heads
            named = field_words.find_named(fields, words, also, could_be)
            if (
                named
                and not any(self._states(one.field, value) for one in named)
                and all(
                    one.telling <= heads
                    or field_words.is_adjacent(
                        self.text, (before, after)[is_after], one, after=is_after
                    )
                    for one in named
                )
            ):
                return self._grouped(value, sentence, named[0].field.key) or self._found(
                    value, "wrong_field", "field", named[0].field, because=_place(fields[0])
                )
        return None

    def values_around(self, value: Value, span: Span) -> Iterator[Value]:
        """The other values of the span, those near it."""
        at = bisect_left(self.values, value.start, key=lambda one: one.start)
        for one in self.values[max(0, at - 3) : at + 4]:
            if one is not value and span[0] <= one.start and one.end <= span[1]:
                yield one

    def _misattributed(
        self, value: Value, subject: RecordSubject, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """Only where the record has another value of its own under that key."""
        if value.kind == "identifier" and (subject.loose or subject.inherited):
            return None  # it names what is spoken of next
        if self.outline.is_offered(value):
            return None
        # What is told apart by something that is no name is meant too often in passing.
        if subject.loose and not self._binder.is_labelled(value):
            return None
        start = self.outline.sentence_at(value.start)[0]
        is_distant = subject.distant and _IT.match(self.text, start) is None
        if subject.inherited or is_distant or subject.loose:
            label = self._binder.label_of(value) | self._binder.words_beside(value)
            fields = [
                field
                for field in fields
                if label.intersection(key_stems(field.key) + key_stems(field.record.key))
            ]
        fields = [field for field in fields if is_like(field, value, partly=subject.beside)]
        if not fields:
            return None
        widely = subject.inherited and len(subject.records) == 1
        own = [
            field
            for record in subject.records[:NEAREST]
            for field in self._binder.own_fields(record, fields, widely=widely)
            if is_like(field, value, partly=subject.beside)
        ]
        stated = next((one for one in own if self._states(one, value)), None)
        if stated is not None:
            return self._found(value, "user_said" if stated.echo else "supported", "echo", stated)
        if not 0 < len(own) <= MOST_OWN:
            return None
        echoed = find_kin(self.index.stating(value, None, echoes=True), subject)
        if echoed is not None:
            return self._found(value, "user_said", "echo", echoed)
        return self._excused(value, fields) or self._blame(value, subject, fields, own[0])

    def _excused(self, value: Value, fields: Sequence[Field]) -> StatementFinding | None:
        """Said before, a measure, named above, or worked out from what its line states."""
        if self._workings.speaks_of_before(value):
            return self._found(value, "supported", "again", *fields[:1])
        if claims.MEASURE.search(self.text, max(0, value.start - 40), value.start):
            return self._found(value, "supported", "unbound", *fields[:3])
        if self._workings.is_named_before(value, fields):
            return self._found(value, "supported", "bound", *fields[:1])
        if self._comes_from_its_line(value):
            return self._found(value, "derived", "difference")
        return None

    def _blame(
        self, value: Value, subject: RecordSubject, fields: Sequence[Field], own: Field
    ) -> StatementFinding:
        because = _place(fields[0])
        is_named = not (subject.loose or subject.inherited or subject.distant)
        rule = "record" if is_named else "binding"
        return self._found(value, "misattributed", rule, own, because=because)

    def _comes_from_its_line(self, value: Value) -> bool:
        """`42 of 60, so 18 are missing`; `| 42 | 60 | 18 |`"""
        if value.kind != "number" or not value.readings:
            return False
        line = self.outline.near(value, self.outline.line_at(value.start).span)
        told = [
            abs(one.readings[0])
            for one in self.values_around(value, line)
            if one.readings and one.kind == "number"
        ]
        wanted = abs(value.readings[0])
        known = {number for number in told if number != wanted}
        return any(number + wanted in known or wanted - number in known for number in known)

    def _other_than_named(self, value: Value, sentence: Span) -> StatementFinding | None:
        """`Available seats: 7`, said of a record that has 3; `6GB RAM` of one with `8GB`: whoever
        else may have said 7, or 6."""
        if value.kind not in ("number", "moment") or claims.is_word_of_some(self.text, value):
            return None
        subject = self._binder.subject_of(value, sentence)
        if subject is None or not (
            subject.beside or not self.outline.tells_a_change(value, sentence)
        ):
            return None
        if subject.loose and not self._binder.is_labelled(value):
            return None
        named: list[Field] = []
        unit = _UNIT.match(self.text, value.end) if value.kind == "number" else None
        noun = frozenset((stem(unit[1]),)) if unit else frozenset()
        if unit is not None:
            named = self._binder.counted_fields(subject, stem(unit[1]))
        if not named and self._binder.is_labelled(value):
            label = self._binder.label_of(value)
            narrowed = self._binder.narrow(subject, value)
            named = self._binder.named_fields(narrowed, label, value) or self._binder.named_fields(
                narrowed, label | noun, value
            )
        if not named and noun:
            named = self._binder.named_fields(subject, noun, value)
        # A price under `5 days` is none of days, and `two subjects` are no `subject: 104-002`.
        named = [
            field
            for field in named
            if self.measures.may_be_meant(value, field)
            and not (value.kind == "number" and _CODE.fullmatch(str(field.value)))
        ]
        if not named or any(self._states(field, value) for field in named):
            return None
        if Slips.is_slip(value, named[0]) and not self.index.is_prose:
            return self._found(value, "unsupported", "misread", named[0])
        total = self._workings.total_of(value, named[0].key)
        if total is not None:  # `18 parcels delivered`, of several records
            return self._found(value, "derived", total.rule, *total.fields, because=total.because)
        return self._found(value, "misattributed", "binding", named[0])

    def _states(self, field: Field, value: Value) -> bool:
        """Does the leaf state the value, be it as an echo, or rounded?"""
        number = field.number
        if number is not None and value.readings:
            return any(abs(number - one) <= arithmetic.half_unit(value) for one in value.readings)
        return any(one is field for one in self.index.stating(value, None, echoes=True))

    def _grouped(self, value: Value, sentence: Span, key: str = "") -> StatementFinding | None:
        """What records come to together; under this `key`, all of them."""
        worked = self._workings.find_grouped(value, sentence)
        worked = worked or self._workings.find_of_percent(value)
        if worked is None and key:
            worked = self._workings.total_of(value, key)
        if worked is None:
            return None
        return self._found(value, "derived", worked.rule, because=worked.because)

    @once
    def measures(self) -> Measures:
        return Measures(self.index)

    @once
    def _lines(self) -> LineRecords:
        return LineRecords(self.outline, self.values, self.index, self._binder, self.turn_at)

    @once
    def _slips(self) -> Slips:
        return Slips(self.index)

    @once
    def _workings(self) -> FurtherWorkings:
        given = (self.outline, self.values, self.index, self._binder, self.said, self.turn_at)
        workings = FurtherWorkings(*given, self._things)
        for value in self._remembered:
            workings.remember(value)
        return workings

    @once
    def _things(self) -> arithmetic.CountedThings:
        lists = self.index.tree.series
        return arithmetic.CountedThings(self.outline, lists, self.said, self._binder)


def _without_whole_texts(fields: Sequence[Field]) -> Sequence[Field]:
    """A text that is a table states what its rows state: the rows say of what."""
    told = {field.call for field in fields if field.key}
    return [field for field in fields if field.key or field.call not in told]


def _place(field: Field) -> str:
    return f"{field.value} is {field.key} of {field.path}"


class Slips:
    """The numbers of the results, and how many of them have so many digits."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def leaf_near(self, value: Value, turn: int | None) -> Field | None:
        """The leaf that was misread, unless one so near may well be there by chance."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        reading, decimals = abs(value.readings[0]), decimals_of(value)
        digits = _digits_of(reading, decimals)
        if not 2 < len(digits) <= MOST_DIGITS or value.form.factor != 1:
            return None
        telling = len(_telling(digits) if not decimals else digits)
        if self._of_length[telling] * telling > MOST_CHANCE * 10 ** (telling - 1):
            return None
        for slip in _slips_of(digits):
            near: int = int(slip) * SCALE // 10**decimals
            if decimals and near % SCALE == 0:
                continue  # 92.6 is no slip of 92
            found = self._index.numbers.get(near, []) + self._index.numbers.get(-near, [])
            if fields := [field for field in found if field.counts_for(turn)]:
                return fields[0]
        return None

    @staticmethod
    def is_slip(value: Value, field: Field) -> bool:
        """Is the number a slip away from this very leaf, which the answer names?"""
        if value.kind != "number" or not value.readings or value.form.percent or not field.number:
            return False
        decimals = decimals_of(value)
        digits = _digits_of(abs(value.readings[0]), decimals)
        if not 2 < len(digits) <= MOST_DIGITS or value.form.factor != 1:
            return False
        near = _digits_of(abs(field.number), decimals)
        return abs(field.number) * 10**decimals % SCALE == 0 and near in _slips_of(digits)

    @once
    def _of_length(self) -> Counter[int]:
        """Distinct numbers by how many digits they have, with and without their decimals."""
        return Counter(
            length
            for number in self._index.numbers
            for length in {
                len(str(abs(number) // SCALE)),
                len(_stated(abs(number))),
                len(_telling(_stated(abs(number)))),
            }
        )


def _digits_of(reading: int, decimals: int) -> str:
    return str(reading * 10**decimals // SCALE) if decimals <= SCALE_DIGITS else ""


def _telling(digits: str) -> str:
    """398,000 has three digits that tell it from others: a rounded number is near to many."""
    return digits.rstrip("0") if digits.endswith("00") else digits


def _stated(number: int) -> str:
    """The digits of a leaf as it stands there: 84.5 has three."""
    return str(number).rstrip("0") if number % SCALE else str(number // SCALE)


def _slips_of(digits: str) -> Iterator[str]:
    for at, digit in enumerate(digits):
        for other in "0123456789"[at == 0 :]:
            if other != digit:
                yield digits[:at] + other + digits[at + 1 :]
        if at and digit != digits[at - 1] and (at > 1 or digit != "0"):
            yield digits[: at - 1] + digit + digits[at - 1] + digits[at + 1 :]
