"""Whose value it is: whether the record and the field that an answer names have it, or others."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import TYPE_CHECKING

from callmark.grounding import arithmetic, claims, field_words
from callmark.grounding.binding import (
    NEAREST,
    best_named,
    is_like,
)
from callmark.grounding.field_words import scope_of, words_of
from callmark.grounding.numbers import SCALE, SCALE_DIGITS
from callmark.grounding.reading import dimension_of, is_money_key
from callmark.grounding.record_fields import find_kin, name_of_unit
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    RecordSubject,
    ResultRecord,
    is_naming,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import TOLD_CHANGE, Span
from callmark.grounding.text import once
from callmark.grounding.values import Value, decimals_of, is_one_value, is_small
from callmark.grounding.workings import CLOSE, FEW_NUMBERS

if TYPE_CHECKING:
    from callmark.grounding.checking import Checker, StatementFinding
    from callmark.grounding.majority import DescribedItems, LineRecords

MOST_ABOVE = 24  # values of the lines before it in its block
MOST_OWN = 8  # values of one record under one key; with more, nobody can say which is meant
_IT = re.compile(r"[\s*_]*(?:it|they|he|she|es|sie|er|il|elle|ils|elles)\b", re.IGNORECASE)
_CODE = re.compile(r"[A-Z\d]*-?\d+-\d+|[A-Z]+-?\d+")
_UNIT = re.compile(r"[ \u00a0-]?([^\W\d_]{1,12})(?:-([^\W\d_]{2,12}))?")
# Slips: one digit is another, or two neighbours have changed places. What an answer worked out
# hardly ever comes so near.
FEWEST_DIGITS = 3  # shorter ones are reckoned too often to be called misread
MOST_DIGITS = 15
# How likely a number out of the blue may be to lie so near to a leaf: 4 digits among 20 leaves.
MOST_ALIKE = 24  # fields of one key; which of more is meant?
# What is reckoned is nobody's own.
_WORKED_OUT = re.compile(
    r"\b(?:works? out|would (?:cost|be|come|make)|in total|altogether|all told|adds? up|insgesamt"
    r"|ergibt|au total|en total)\b",
    re.IGNORECASE,
)
# `three days earlier`, `56 hours away`, `2 adults × £110`
_SET_AGAINST = re.compile(
    r"\s(?:[^\W\d_]+\s){1,2}(?:earlier|later|sooner|longer|shorter|faster|slower|more|less|fewer|ago"
    r"|away|late|early|apart|since|[×x*]\s?\S?\d)",
    re.IGNORECASE,
)
_TIMES = re.compile(r"(?<![\w.])\d{1,3}\s?[×x]\s\S|\bevery\s[*_]*$|\b(?:has|have) been\s[*_]*$")
_SO_MANY_TIMES = re.compile(r"\s(?:[^\W\d_]+\s){1,2}[×x*]\s?\S?\d")
_WORD = re.compile(r"[^\W\d_]{2,}")
_LASTING = re.compile(
    r"[\s-](?:hour|minute|day|night|week|month|year|stunde|minute|tag|nacht|woche|monat|jahr|hora|día"
    r"|noche|semana|mes|año|heure|jour|nuit|semaine|mois|an)(?:s|n|e|en|es)?\b",
    re.IGNORECASE,
)
_OF_TIME = frozenset(
    """
    hour hours minute minutes day days night nights week weeks month months year years duration term
    period notice warranty validity time stay length wait age h min d
    """.split()
)
# `8 bar with the same capacity is not available` is said of no item that there is.
_NOT_OFFERED = re.compile(
    r"[^.;\n]{0,80}(?:\b(?:not|no longer)|n['’]t)\s(?:\w+\s)?"
    r"(?:available|listed|offered|in stock|sold)\b"
    r"|[^.;\n]{0,80}\b(?:unavailable|out of stock)\b",
    re.IGNORECASE,
)
MOST_RECORDS = 200
MOST_OF_RECORD = 24  # numbers of one record that are taken from each other
MOST_CHANCE = 0.08


def are_told(fields: Sequence[Field]) -> bool:
    """Do the keys say what each is, so that another could be meant? `count` does not."""
    return all(words_of(one, scope_of(one)) for one in fields)


# `2 × €12.99`
_TIMES_IT = re.compile(r"[×*x]\s?[€$£]?$")


class Attribution:
    """Asked where the record or the field that an answer names has no such value."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker

    @once
    def _lines(self) -> LineRecords:
        from callmark.grounding.majority import LineRecords  # of results that hold lists

        one = self._checker
        return LineRecords(one.outline, one.values, one.index, one.binder, one.turn_at)

    def find_other_field(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """`arriving at 10:00`, which is the departure of whatever record states it."""
        checker = self._checker
        text, outline, binder = checker.text, checker.outline, checker.binder
        if value.kind not in ("number", "moment") or not are_told(fields):
            return None
        if value.kind == "number" and not any(map(str.isdecimal, value.text)):
            return None
        near = outline.near(value, outline.line_at(value.start).span)
        if outline.finds(TOLD_CHANGE, *outline.near(value, sentence)):
            return None
        others = list(checker.values_around(value, near))
        around = [(one.start, one.end) for one in others]
        before, after = field_words.windows(text, value.start, value.end, near, around)
        # `3 nights at £245`: the word belongs to the number before it.
        beside = [one for one in others if one.end == before[0] or one.start == after[1]]
        label = binder.label_of(value) if binder.is_labelled(value) else frozenset()
        heads = field_words.classes_of(label)
        said = [field_words.words_said(text, *span) for span in (before, after)]

        def could_be(field: Field) -> bool:
            return (
                is_one_value(field.value, value.kind)
                and is_like(field, value, partly=True)
                and checker.measures.could_measure(value, field)
                and claims.is_of_a_size(value, field)
                and not any(checker.states(field, one) for one in beside)
            )

        for is_after in (False, True):
            words = said[is_after] if is_after else said[0] | heads
            also = said[0] | said[1] | heads
            named = field_words.find_named(fields, words, also, could_be)
            if (
                named
                and not any(checker.states(one.field, value) for one in named)
                and all(
                    one.telling <= heads
                    or field_words.is_adjacent(text, (before, after)[is_after], one, after=is_after)
                    for one in named
                )
            ):
                own, because = named[0].field, place_of_field(fields[0])
                return checker.grouped(value, sentence, own.key) or checker.found(
                    value, "wrong_field", "field", own, because=because
                )
        return None

    def find_of_line(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """What most of its line is about has another value there. Whether it may be meant otherwise
        is asked last: it costs more."""
        one = self._checker
        if value.kind not in ("number", "moment") or not any(value.readings or (1,)):
            return None
        other = self._lines.other_than_most(value, fields, one.states)
        if (
            other is None
            or one.outline.is_offered(value)
            or one.outline.tells_a_change(value, sentence)
            or claims.is_hedged(one.text, value)
            or not all(one.measures.may_be_meant(value, field) for field in fields)
            or self.comes_from_its_line(value)
            or one.workings.find(value, sentence) is not None
        ):
            return None
        because = place_of_field(other.of_other)
        return self._checker.found(value, "misattributed", "binding", other.own, because=because)

    @once
    def _described(self) -> DescribedItems:
        from callmark.grounding.majority import DescribedItems

        one = self._checker
        return DescribedItems(one.outline, one.values, one.index, one.binder, one.turn_at)

    def find_of_described(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """What is described around it has another value, although it was found as it is."""
        one = self._checker
        if value.kind not in ("number", "moment", "identifier"):
            return None
        other = self._described.other_than(value, fields, one.states)
        if (
            other is None
            or claims.is_hedged(one.text, value)
            or self._is_of_none(value, sentence)
            or self.comes_from_its_line(value)
            or _is_difference_in(value, (other.own.record,))
        ):
            return None
        worked = one.workings.find(value, sentence)
        if worked is not None and not any(field in fields for field in worked.fields):
            return None
        because = place_of_field(other.of_other)
        return one.found(value, "misattributed", "binding", other.own, because=because)

    def find_of_subject(
        self, value: Value, subject: RecordSubject, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """Only where the record has another value of its own under that key."""
        if value.kind == "identifier" and (subject.loose or subject.inherited):
            return None  # it names what is spoken of next
        if self._checker.outline.is_offered(value) or _SO_MANY_TIMES.match(
            self._checker.text, value.end
        ):
            return None
        # What is told apart by something that is no name is meant too often in passing.
        if subject.loose and not self._checker.binder.is_labelled(value):
            return None
        start = self._checker.outline.sentence_at(value.start)[0]
        is_distant = subject.distant and _IT.match(self._checker.text, start) is None
        if subject.inherited or is_distant or subject.loose:
            label = self._checker.binder.label_of(value) | self._checker.binder.words_beside(value)
            fields = [
                field
                for field in fields
                if label.intersection(key_stems(field.key) + key_stems(field.record.key))
            ]
        fields = [field for field in fields if is_like(field, value, partly=subject.beside)]
        if self._is_a_while(value):
            # `6 patients over four hours`, where another ward has four free beds
            fields = [one for one in fields if not _OF_TIME.isdisjoint(key_words(one.key))]
        if not fields:
            return None
        widely = subject.inherited and len(subject.records) == 1
        own = [
            field
            for record in subject.records[:NEAREST]
            for field in self._checker.binder.own_fields(record, fields, widely=widely)
            if is_like(field, value, partly=subject.beside)
        ]
        stated = next((one for one in own if self._checker.states(one, value)), None)
        if stated is not None:
            return self._checker.found(
                value, "user_said" if stated.echo else "supported", "echo", stated
            )
        if not 0 < len(own) <= MOST_OWN or self._is_told_before(value, own):
            return None
        if subject.inherited and self._is_told_above(value, own):
            return None
        echoed = find_kin(self._checker.index.stating(value, None, echoes=True), subject)
        if echoed is not None:
            return self._checker.found(value, "user_said", "echo", echoed)
        if value.form.percent and not self._checker.measures.is_share(fields[0]):
            return None  # `25% of them`, where another record has 25
        return self._excused(value, subject, fields) or self._blame(value, subject, fields, own[0])

    def _is_told_before(self, value: Value, own: Sequence[Field]) -> bool:
        """`HDL (58) and triglycerides (115)`: the record that is named has told its own value, and
        another name follows that no record has."""
        one = self._checker
        sentence = one.outline.sentence_at(value.start)
        before = [each for each in one.values_around(value, sentence) if each.end <= value.start]
        if not before or one.binder.mentions_in((before[-1].end, value.start)):
            return False
        return any(one.states(field, before[-1]) for field in own)

    def _is_told_above(self, value: Value, own: Sequence[Field]) -> bool:
        """`- New home (order #W1): 592 Elm Avenue`, over `- Old address: 760 Elm Avenue`: the line
        that names the record has told its own value."""
        one = self._checker
        siblings = one.outline.line_at(value.start).siblings
        if not siblings:
            return False
        last = bisect_left(one.values, value.start, key=attrgetter("start"))
        above = one.values[max(0, last - MOST_ABOVE) : last]
        return any(
            one.states(field, each)
            for each in above
            if each.start >= siblings[0][0]
            for field in own
        )

    def _excused(
        self, value: Value, subject: RecordSubject, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """Said before, a measure, named above, or worked out from what its line states."""
        if self._checker.workings.speaks_of_before(value):
            return self._checker.found(value, "supported", "again", *fields[:1])
        if claims.MEASURE.search(self._checker.text, max(0, value.start - 40), value.start):
            return self._checker.found(value, "supported", "unbound", *fields[:3])
        if self._checker.workings.is_named_before(value, fields):
            return self._checker.found(value, "supported", "bound", *fields[:1])
        if _TIMES_IT.search(self._checker.text, max(0, value.start - 4), value.start):
            return self._checker.found(value, "supported", "unbound", *fields[:3])
        if self.comes_from_its_line(value) or _is_difference_in(value, subject.records):
            return self._checker.found(value, "derived", "difference")
        return None

    def _blame(
        self, value: Value, subject: RecordSubject, fields: Sequence[Field], own: Field
    ) -> StatementFinding:
        because = place_of_field(fields[0])
        is_named = not (subject.loose or subject.inherited or subject.distant)
        rule = "record" if is_named else "binding"
        return self._checker.found(value, "misattributed", rule, own, because=because)

    def comes_from_its_line(self, value: Value) -> bool:
        """`42 of 60, so 18 are missing`; `| 42 | 60 | 18 |`"""
        if value.kind != "number" or not value.readings:
            return False
        line = self._checker.outline.near(value, self._checker.outline.line_at(value.start).span)
        told = [
            abs(one.readings[0])
            for one in self._checker.values_around(value, line)
            if one.readings and one.kind == "number"
        ]
        wanted = abs(value.readings[0])
        known = {number for number in told if number != wanted}
        return any(number + wanted in known or wanted - number in known for number in known)

    def find_other_than_named(self, value: Value, sentence: Span) -> StatementFinding | None:
        """`Available seats: 7`, said of a record that has 3; `6GB RAM` of one with `8GB`: whoever
        else may have said 7, or 6."""
        if value.kind not in ("number", "moment") or claims.is_word_of_some(
            self._checker.text, value
        ):
            return None
        binder = self._checker.binder
        subject = binder.subject_of(value, sentence)
        if subject is None or not (
            subject.beside or not self._checker.outline.tells_a_change(value, sentence)
        ):
            return None
        if subject.loose and not binder.is_labelled(value):
            return None
        named = self._named_around(value, subject)
        named = [field for field in named if self._may_hold(value, field)]
        if not named or any(self._checker.states(field, value) for field in named):
            return None
        if self._is_of_none(value, sentence):
            return None
        if (
            Slips.is_slip(value, named[0])
            and not self._checker.index.is_prose
            and not self._checker.contrasts.is_counted_on(value, named[0], sentence)
        ):
            return self._checker.found(value, "unsupported", "misread", named[0])
        may_differ = not self._is_labelled_as(value, named[0])
        if self._is_said_to_differ(value, sentence, named[0]) and (
            self.comes_from_its_line(value)
            or (may_differ and _is_difference_in(value, (named[0].record,)))
        ):
            return self._checker.found(value, "derived", "difference", named[0])
        total = self._total_of(value, named)
        return total or self._checker.found(value, "misattributed", "binding", named[0])

    def _is_said_to_differ(self, value: Value, sentence: Span, named: Field) -> bool:
        """Small numbers are the difference of any two: a word has to say so, and none that the key
        has, such as `available` of `available_seats`."""
        one = self._checker
        if not is_small(value) or one.text.startswith("|", one.outline.line_at(value.start).start):
            return True
        start, end = one.outline.near(value, sentence)
        words = one.text[max(start, value.start - CLOSE) : min(end, value.end + CLOSE)]
        path = named.path.casefold()
        told = (found for found in arithmetic.find_comparisons(words))
        return any(word.casefold() not in path for word in told)

    def _total_of(self, value: Value, named: Sequence[Field]) -> StatementFinding | None:
        """`18 parcels delivered`, of several records; `$580`, of the two flights of one way."""
        for key in dict.fromkeys(field.key for field in named):
            # One flight may stand in several results.
            parts = {(_name_of(one), one.number): one for one in named if one.key == key}
            if len(parts) > 1 and sum(number or 0 for _, number in parts) in value.readings:
                return self._checker.found(value, "derived", "sum", *parts.values())
        total = self._checker.workings.total_of(value, named[0].key)
        if total is None:
            return None
        return self._checker.found(
            value, "derived", total.rule, *total.fields, because=total.because
        )

    def fields_of_part(self, value: Value, sentence: Span, fields: Sequence[Field]) -> list[Field]:
        """Those of them that lie under the key that the label of the value names."""
        binder = self._checker.binder
        subject = binder.subject_of(value, sentence) if binder.is_labelled(value) else None
        if subject is None:
            return []
        part = binder.fields_of_part(binder.narrow(subject, value), binder.label_of(value))
        return [field for field in fields if any(field is one for one in part)]

    def _named_around(self, value: Value, subject: RecordSubject) -> list[Field]:
        """The fields of the record that the unit, the label or the noun of a number names."""
        binder = self._checker.binder
        unit = _UNIT.match(self._checker.text, value.end) if value.kind == "number" else None
        named = [] if unit is None else self._counted(value, subject, name_of_unit(unit[1]))
        # `0 non-free`, of `nonfree_baggages`
        noun = frozenset((stem(unit[1] + (unit[2] or "")),)) if unit else frozenset()
        if not named and binder.is_labelled(value):
            label = binder.label_of(value)
            narrowed = binder.narrow(subject, value)
            named = binder.named_fields(narrowed, label, value) or binder.named_fields(
                narrowed, label | noun, value
            )
            named = named or binder.fields_of_part(narrowed, label)
        if not named and noun:
            named = binder.named_fields(subject, noun, value)
        return named

    def _counted(self, value: Value, subject: RecordSubject, unit: str) -> list[Field]:
        """What lasts so long must be spoken of: `5 hours battery`. Much else takes hours."""
        found = self._checker.binder.counted_fields(subject, unit)
        if not found or dimension_of(unit) != "time":
            return found
        around = self._checker.text[max(0, value.start - 25) : value.end + 25]
        stems = frozenset(map(stem, _WORD.findall(around.casefold())))
        return [field for field in found if not stems.isdisjoint(key_stems(field.key))]

    def find_unlike_any(self, value: Value, sentence: Span) -> StatementFinding | None:
        """`Non-free bags: 4`, where all that has such a key has another number, whatever is spoken
        of."""
        binder, outline = self._checker.binder, self._checker.outline
        if value.kind != "number" or not value.text.isdecimal() or outline.is_proposed(sentence):
            return None
        unit = _UNIT.match(self._checker.text, value.end)
        words = frozenset[str]()
        if unit is not None:
            words = frozenset((stem(unit[1] + (unit[2] or "")),))
        if binder.is_labelled(value):
            words |= binder.label_of(value)
        elif unit is None or not unit[2]:
            return None
        named = best_named(self._fields_of_any(words), words, value)
        named = [field for field in named if self._may_hold(value, field)]
        turn = self._checker.turn_at(value.start)
        if not any(field.counts_for(turn) for field in named) or len(named) > MOST_ALIKE:
            return None
        if any(self._checker.states(field, value) for field in named):
            return None
        if self._is_of_none(value, sentence) or self.comes_from_its_line(value):
            return None
        if outline.tells_a_change(value, sentence):
            return None
        if self._checker.workings.total_of(value, named[0].key) is not None:
            return None
        return self._checker.found(value, "unsupported", "value", named[0])

    def _fields_of_any(self, words: frozenset[str]) -> list[Field]:
        return [field for word in sorted(words) for field in self._by_stem.get(word, ())]

    @once
    def _by_stem(self) -> dict[str, list[Field]]:
        """Numbers, by the words of their keys."""
        found: dict[str, list[Field]] = {}
        for field in self._checker.index.tree.fields:
            if field.number is not None:
                for one in key_stems(field.key):
                    known = found.setdefault(one, [])
                    if len(known) <= MOST_ALIKE:
                        known.append(field)
        return found

    def _is_labelled_as(self, value: Value, field: Field) -> bool:
        """`Seats in economy: 8` is what it says, and no difference."""
        binder = self._checker.binder
        return binder.is_labelled(value) and binder.label_of(value).issuperset(key_stems(field.key))

    def is_other_share(self, value: Value) -> bool:
        """Worked out in a way that no rule follows: no leaf states a share, and no share of the
        answer could be followed."""
        checker = self._checker
        if not value.form.percent or len(checker.index.numbers) <= FEW_NUMBERS:
            return False
        if checker.measures.has_shares:
            return False
        return not any(one.form.percent for one in checker.remembered)

    def _is_of_none(self, value: Value, sentence: Span) -> bool:
        """Worked out, set against something else, or of what is not offered."""
        outline, text = self._checker.outline, self._checker.text
        line = outline.line_at(value.start)
        return bool(
            outline.says(_WORKED_OUT, sentence)
            or _NOT_OFFERED.match(text, value.end, sentence[1])
            or _SET_AGAINST.match(text, value.end)
            or _TIMES.search(text, max(line.start, value.start - 80), value.start)
        )

    def _may_hold(self, value: Value, field: Field) -> bool:
        """A price under `5 days` is none of days, `two subjects` are no `subject: 104-002`, and 21%
        of a battery no `battery_mah: 210`."""
        if value.form.percent and abs(field.number or 0) > 100 * SCALE:
            return False
        if value.form.percent and decimals_of(value) and isinstance(field.value, int):
            return self._checker.measures.is_share(field)  # `cancelled: 12`, which is 1.5% of 812
        if _LASTING.match(self._checker.text, value.end) and is_money_key(key_words(field.key)):
            return False  # `€24 for two hours`, at an `hourly_rate` of 12
        is_code = value.kind == "number" and (
            _CODE.fullmatch(str(field.value)) is not None
            or (field.number is None and is_naming(field.key))  # `2 orders` is no `order_id: "#W1"`
        )
        return self._checker.measures.may_be_meant(value, field) and not is_code

    def _is_a_while(self, value: Value) -> bool:
        """`four hours`, in words."""
        in_words = value.kind == "number" and not any(map(str.isdecimal, value.text))
        return in_words and _LASTING.match(self._checker.text, value.end) is not None


def _name_of(field: Field) -> str:
    """That of its record, or of what it is a part of."""
    record = field.record
    named = (one.names[0] for one in (record, *record.ancestors()) if one.names)
    return next(named, f"{field.call} {field.path}")


def _is_difference_in(value: Value, records: Sequence[ResultRecord]) -> bool:
    """`five spots left`, of 16 with 11 booked."""
    if not value.readings or value.kind != "number":
        return False
    wanted = abs(value.readings[0])
    for record in records[:NEAREST]:
        numbers = {one.number for one in record.fields[:MOST_OF_RECORD] if one.number}
        if any(number - wanted in numbers for number in numbers):
            return True
    return False


class Slips:
    """The numbers of the results, and how many of them have so many digits."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index
        self._near: dict[tuple[int, int, int | None], Field | None] = {}

    def leaf_near(self, value: Value, turn: int | None) -> Field | None:
        """The leaf that was misread, unless one so near may well be there by chance."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        reading, decimals = abs(value.readings[0]), decimals_of(value)
        digits = _digits_of(reading, decimals)
        if not FEWEST_DIGITS <= len(digits) <= MOST_DIGITS or value.form.factor != 1:
            return None
        telling = len(_telling(digits) if not decimals else digits)
        if self._of_length[telling] * telling > MOST_CHANCE * 10 ** (telling - 1):
            return None
        asked = (reading, decimals, turn)
        if asked not in self._near:  # by two rules, and of equal numbers
            self._near[asked] = self._find_near(digits, *asked)
        return self._near[asked]

    def _find_near(
        self, digits: str, reading: int, decimals: int, turn: int | None
    ) -> Field | None:
        for slip in _slips_of(digits):
            near: int = int(slip) * SCALE // 10**decimals
            if decimals and near % SCALE == 0:
                continue  # 92.6 is no slip of 92
            found = self._index.numbers.get(near, []) + self._index.numbers.get(-near, [])
            if fields := [field for field in found if field.counts_for(turn)]:
                return None if self._is_of_two(reading) else fields[0]
        return None

    def _is_of_two(self, reading: int) -> bool:
        """What two numbers of one record come to: `rent` and `utilities`."""
        for numbers in self._by_record:
            if any(reading - one in numbers or reading + one in numbers for one in numbers):
                return True
        return False

    @once
    def _by_record(self) -> list[frozenset[int]]:
        records = self._index.tree.records[:MOST_RECORDS]
        found = (
            {one.number for one in each.fields[:MOST_OF_RECORD] if one.number} for each in records
        )
        return [frozenset(numbers) for numbers in found if len(numbers) > 1]

    @staticmethod
    def is_slip(value: Value, field: Field, *, may_be_share: bool = False) -> bool:
        """Is the number a slip away from this very leaf, which the answer names?"""
        if value.kind != "number" or not value.readings or not field.number:
            return False
        if value.form.percent and not may_be_share:
            return False
        decimals = decimals_of(value)
        digits = _digits_of(abs(value.readings[0]), decimals)
        if not FEWEST_DIGITS <= len(digits) <= MOST_DIGITS or value.form.factor != 1:
            return False
        near = _digits_of(abs(field.number), decimals)
        return abs(field.number) * 10**decimals % SCALE == 0 and near in _slips_of(digits)

    def leaf_of(self, value: Value, subject: RecordSubject) -> list[Field]:
        """The leaf of the record spoken of that it is a slip away from, if there is one."""
        near = (
            one
            for record in subject.records[:NEAREST]
            for one in record.fields[:MOST_OF_RECORD]
            if self.is_slip(value, one, may_be_share=True)
        )
        return list(islice(near, 1))

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


def place_of_field(field: Field) -> str:
    return f"{field.value} is {field.key} of {field.path}"
