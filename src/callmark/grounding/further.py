"""What takes more than one step to work out: two steps, what the user said, and days and times that
lie so far from others. Asked after all else."""

from __future__ import annotations

import re
from bisect import bisect_left
from functools import cached_property
from itertools import islice

from callmark.grounding.chains import MOST_NEAR, Near, work_out_in_two
from callmark.grounding.match import is_earlier
from callmark.grounding.numbers import SCALE, TOLERANCE
from callmark.grounding.reading import convert, dimension_of
from callmark.grounding.reckoning import Around, Reckoning, minutes_said
from callmark.grounding.record_tree import NEAREST, ResultRecord, key_stems, key_words, stem
from callmark.grounding.spans import WIDE, Span
from callmark.grounding.values import Value, decimals_of
from callmark.grounding.workings import (
    BESIDE,
    CLOSE,
    MAX_TERMS,
    MOST_TRIES,
    SMALL,
    Worked,
    Workings,
    digits_of,
    may_go_with,
    readings_of,
)

_WORD = re.compile(r"[^\W\d_]{3,}")
_YEAR = re.compile(r"(?:19|20)\d\d")
_PERCENT_KEYS = frozenset(
    "pct percent percentage rate discount tax vat prozent rabatt steuersatz mwst porcentaje"
    " descuento iva pourcentage remise tva taux".split()
)


class FurtherWorkings(Workings):
    """The same, and what is further away."""

    def find(self, value: Value, sentence: Span) -> Worked | None:
        found = super().find(value, sentence)
        if found is not None:
            return found
        if value.kind == "moment":
            return self._reckoned(value, sentence)
        return self._apart(value, sentence) if value.readings and value.unit else None

    def total_of(self, value: Value, key: str) -> Worked | None:
        """What all records, or those of one kind, come to under this key."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        wanted, turn = abs(value.readings[0]), self.turn_at(value.start)
        start, end = self.outline.near(value, self.outline.line_at(value.start))
        if any(wanted == sum(column) for column in self._binder.columns_around(value)):
            return Worked("sum", f"{key} of those that are named")
        around = {stem(word) for word in _WORD.findall(self.text[start:end])}
        for one in self._sums.near(wanted - TOLERANCE, wanted + TOLERANCE):
            kinds = one.words.difference(key_stems(key))
            is_told = one.how == "sum" or (one.how == "part" and not kinds.isdisjoint(around))
            if is_told and one.field.key == key and one.field.counts_for(turn):
                return Worked(one.how, f"{one.how} of {one.because}", (one.field,))
        return None

    def find_in_two(self, value: Value, sentence: Span) -> Worked | None:
        """In two steps, or with what the user said."""
        if value.kind != "number" or not value.readings:
            return None
        is_small = abs(value.readings[0]) < SMALL * SCALE and not decimals_of(value)
        is_year = not value.unit and _YEAR.fullmatch(value.text) is not None
        if self._tries > MOST_TRIES or is_year or (is_small and not self.is_money(value)):
            return None
        line = self.outline.line_at(value.start)
        at = bisect_left(self.values, value.start, key=lambda one: one.start)
        before = self.values[max(0, at - BESIDE) : at]
        close = [one for one in reversed(before) if one.start >= line.start - CLOSE]
        close += self.values_after(value, line.end)[:3]
        percents = [
            abs(one.readings[0])
            for one in close
            if one.form.percent and one.readings and one.start >= sentence[0]
        ]
        turn = self.turn_at(value.start)
        numbers, _ = self.said.known()
        near = Near(
            readings_of(one for one in close if may_go_with(one, value)),
            [*self._amounts(value, sentence)[:MOST_NEAR], *self._amounts_above(value, sentence)],
            [abs(one) for one, at in numbers.items() if one and is_earlier(at, turn)][-MAX_TERMS:],
            [*percents, *self._shares_held],
            self._cues(value, sentence),
            any("100" in key for key in self.index.tree.keys),
        )
        found = work_out_in_two(value, self._wanted(value), near, digits_of(value))
        return None if found is None else Worked(found.rule, found.because)

    @cached_property
    def _shares_held(self) -> list[int]:
        """What results give in per cent, where that is little."""
        found = [
            one.number
            for one in self.index.tree.fields
            if one.number
            and 0 < one.number < 100 * SCALE
            and not _PERCENT_KEYS.isdisjoint(key_words(one.key))
        ]
        return list(dict.fromkeys(found)) if len(found) <= BESIDE else []

    def _amounts_above(self, value: Value, sentence: Span) -> list[int]:
        """The numbers beside the list that the records stand in: `days` over offers."""
        subject = self._binder.subject_of(value, sentence)
        above = subject.records[0].ancestors() if subject is not None and subject.records else ()
        numbers = [one.number for record in above for one in record.fields if one.number]
        return numbers[:BESIDE]

    @cached_property
    def _reckoning(self) -> Reckoning:
        return Reckoning(self.index, self.said)

    def _reckoned(self, value: Value, sentence: Span) -> Worked | None:
        """So many days or minutes from another day or time."""
        wanted = value.moments[0] if value.moments else None
        if wanted is None or not wanted.groundable:
            return None
        near, records = self._around_moment(value, sentence), self._records_of(value, sentence)
        if wanted.has_day:
            found = self._reckoning.day(wanted, near, records) if wanted.hour is None else None
        else:
            found = self._reckoning.time(wanted, near, records) if wanted.minute else None
        return None if found is None else Worked("time", found)

    def _around_moment(self, value: Value, sentence: Span) -> Around:
        at = bisect_left(self.values, value.start, key=lambda one: one.start)
        near = [*self.values[max(0, at - BESIDE) : at], *self.values[at + 1 : at + 3]]
        start, end = self.outline.near(value, self.outline.line_at(value.start))
        close = [one for one in near if one.start >= start - WIDE]
        inside = [one for one in close if sentence[0] <= one.start < sentence[1]]
        return Around(
            [one.moments[0] for one in inside if one.moments],
            [one.moments[0] for one in close if one.moments],
            self.text[slice(*self.outline.near(value, sentence))],
            self.text[start:end],
            [minutes for one in inside or close if (minutes := minutes_said(one))],
        )

    def _apart(self, value: Value, sentence: Span) -> Worked | None:
        """`23 days after you applied`, `1 minute 12 seconds slower`."""
        if dimension_of(value.unit) != "time":
            return None
        seconds = convert(value.readings[0], value.unit, "s")
        if seconds and seconds % SCALE == 0 and self._reckoning.seconds_apart(seconds // SCALE):
            return Worked("duration", "from one time to another")
        days = convert(value.readings[0], value.unit, "d")
        if not days or days % SCALE or days // SCALE < 2:
            return None
        near, records = self._around_moment(value, sentence), self._records_of(value, sentence)
        if self._reckoning.days_apart(days // SCALE, near, records):
            return Worked("duration", "from one day to another")
        return None

    def _records_of(self, value: Value, sentence: Span) -> list[ResultRecord]:
        """Those that it is said of and what they are a part of; all, where there are few."""
        subject = self._binder.subject_of(value, sentence)
        if subject is None:
            records = self.index.tree.records
            return list(records) if len(records) <= MAX_TERMS else []
        own = list(subject.records[:NEAREST])
        inner = [one for record in own for one in islice(record.within(), BESIDE)]
        return [*inner, *(above for record in own[:1] for above in record.ancestors())]
