"""What a number may have been worked out from: sums, differences, products and shares of what the
answer states and the results hold."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable
from itertools import accumulate, combinations, islice, permutations

from callmark.grounding import arithmetic
from callmark.grounding.arithmetic import (
    SMALL,
    Steps,
    Wanted,
    Worked,
    added,
    digits_of,
    is_round,
    may_be_added,
    may_go_with,
    products,
    readings_of,
    share_of,
    shares,
    sums,
    work_out,
    worked_of,
)
from callmark.grounding.binding import NEAREST, Binder
from callmark.grounding.counting import CountedThings
from callmark.grounding.list_columns import ListColumn, ListColumns
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE, TOLERANCE, decimal_text
from callmark.grounding.reading import convert, dimension_of, is_money, is_money_key
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import WIDE, Outline, OutlineLine, Span
from callmark.grounding.sums import ResultSum, ResultSums, days_between, minutes_between
from callmark.grounding.text import once
from callmark.grounding.values import Value, decimals_of

MAX_TERMS = 12  # of a sum
TELLING = 4  # so many digits tell a number from others
# How many others may be expected to give a number as well, of what stands beside it, of what is
# near, and of all that there is.
AT_HAND, FURTHER, FAR_OFF, HARDLY = 0.4, 0.2, 0.08, 0.01
BESIDE_SHARE = 0.7
FEW_NUMBERS = 6
NEAREST_TERMS = 6  # of the record that is spoken of
MOST_NUMBERS = 60  # in all results, any two of which may have been set against each other
MOST_COLUMNS = 40  # of the tables and lists of an answer
MOST_TRIES = 400  # numbers of one answer that are looked at so closely
BESIDE = 6  # numbers before one in its sentence
CLOSE = 40  # characters around a number whose words say how it came about
NEAR_TIME = 80  # characters between a time and how long before or after it something is
_THE_REST = re.compile(
    r"\b(?:other|rest|remain\w*|übrige\w*|restliche\w*|andere\w*|otro|resto|restante|autres?|reste)\b"
    r"[^.;!?]{0,30}$",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_YEARLY = re.compile(
    r"\b(?:month\w*|year\w*|annual\w*|monat\w*|jahr\w*|jährlich\w*|mes(?:es)?|mensual\w*|años?"
    r"|anual\w*|mois|mensuel\w*|(?:par\s|l['’])an|ans|années?|annuel\w*)\b",
    re.IGNORECASE,
)

TurnAt = Callable[[int], int | None]


class Workings:
    """One answer: what it stated so far, and what follows from it."""

    def __init__(
        self,
        outline: Outline,
        values: list[Value],
        index: RecordIndex,
        binder: Binder,
        said: Said,
        turn_at: TurnAt,
        things: CountedThings,
    ) -> None:
        self.text = outline.text
        self.outline = outline
        self.values = values
        self._starts = [value.start for value in values]
        self.index = index
        self.said = said
        self.turn_at = turn_at
        self.stated: list[Value] = []
        self._binder = binder
        self._things = things
        self._by_label: dict[frozenset[str], list[int]] = {}
        self._unlabelled: list[Value] = []  # what has to be added to them once they are asked for
        self._line_ends: list[tuple[int, int]] = []
        self._money: dict[int, bool] = {}
        self._tries = 0
        self.told: list[tuple[int, ResultRecord]] = []  # where the leaves of which record stand
        self.unclear: set[int] = set()  # may have been worked out, and may not: so would much else

    def is_money(self, value: Value) -> bool:
        known = self._money.get(value.start)
        if known is None:
            known = self._money[value.start] = is_money(self.text, value)
        return known

    def is_rough(self, value: Value) -> bool:
        """`roughly €400,000`: so few digits may stand for much that is worked out. What is counted
        is not."""
        if value.kind != "number" or not value.unit or digits_of(value) > 2:
            return False
        rounding = arithmetic.rounding_of(value, *arithmetic.words_around(self.text, value))
        return rounding is not None and rounding.is_hedged

    def find(self, value: Value, sentence: Span) -> Worked | None:
        if value.kind == "moment":
            return self._time_beside(value)
        if value.kind != "number" or not value.readings:
            return None
        if value.form.percent:
            return (
                self._rest_of_hundred(value, sentence)
                or self._announced(value, sentence)
                or self._calculated(value, sentence)
                or self._of_results(value, sentence)
            )
        if value.text.isdecimal() and self.index.is_year_before(value.text):
            return Worked("year", "the year before")
        if len(value.readings) > 1 and value.form.factor == 1:  # `30 pence`
            least = value.readings[-1]
            value = value._replace(readings=(least,), text=decimal_text(least))
        return (
            self._announced(value, sentence)
            or self._total_stated(value)
            or self._of_results(value, sentence)
            or self._calculated(value, sentence)
            or self._lasting(value)
        )

    def _announced(self, value: Value, sentence: Span) -> Worked | None:
        """What a word such as `total` or `difference` stands beside."""
        is_fine = decimals_of(value) >= arithmetic.CENTS
        line = self.outline.line_at(value.start)
        # Cents tell numbers apart: the more of them a number has, the further it may look.
        reach = line.span if is_fine or digits_of(value) >= TELLING else sentence
        around = [self.outline.near(value, reach), *line.heads[-1:]]
        cues = " ".join(self.text[start : min(end, start + WIDE)] for start, end in around)
        if not is_fine and not arithmetic.announces(cues):
            return None
        recent = self.stated[-(arithmetic.FAR if is_fine else arithmetic.RECENT) :]
        is_weak = not is_fine and digits_of(value) < TELLING - 1
        if is_weak:
            cues = self._cues(value, sentence)
        if is_weak and not arithmetic.sets_against(cues):
            recent = [one for one in recent if one.start >= self._first_of(line)]
        run = [one for one in recent if self._is_alike(one, value) and may_go_with(one, value)]
        operands = [one.readings[0] for one in run]
        operands += [
            one.readings[0]
            for one in self.values_after(value, sentence[1])
            if self._is_alike(one, value) and may_go_with(one, value)
        ]
        amounts = self._amounts(value, sentence)
        operands += amounts
        factors = self._factors(cues, self.turn_at(value.start))
        for factor in factors:  # `$50 for each of 3`, where the $50 stand in the policy
            each, rest = divmod(abs(value.readings[0]), max(factor, 1))
            if factor > 1 and not rest and self.said.holds_number(each, self.turn_at(value.start)):
                operands.append(each)
        if is_fine:
            operands += [
                one.readings[0]
                for one in self.values_after(value, len(self.text))
                if self._is_alike(one, value)
            ]
            operands += self._prices
        column = self.column_of(value) if arithmetic.announces_a_sum(cues) else None
        if column is not None:
            return Worked("sum", str(column))
        mean = self._mean(value) if arithmetic.announces_an_average(cues) else None
        if mean is not None:
            return Worked("average", str(mean))
        found = arithmetic.follows(
            value,
            cues,
            operands,
            [one.readings[0] for one in run],
            amounts[:8],
            factors,
            self._columns(value),
        ) or arithmetic.of_two(value, [one.readings[0] for one in run])
        if found is None or self._is_digit_apart(value, found):
            return None
        if found.rule in ("sum", "difference"):  # no minutes from degrees
            beside = [*recent, *self.values_after(value, sentence[1])]
            alike = {abs(one.readings[0]) for one in beside if may_be_added(one, value)}
            other = {abs(one.readings[0]) for one in beside if one.readings} - alike
            if not other.isdisjoint(found.operands):
                return None
        return worked_of(found)

    def _is_digit_apart(self, value: Value, found: arithmetic.Sum) -> bool:
        """$7.76 from 3.76 and 4: any amount is a digit that stands somewhere away from a like one.
        Unless that digit is an amount as well."""
        if found.rule not in ("sum", "difference") or len(found.operands) != 2:
            return False
        if decimals_of(value) < arithmetic.CENTS and not self.is_money(value):
            return False
        digits = {one for one in map(abs, found.operands) if one < 10 * SCALE and one % SCALE == 0}
        return not digits <= self._small_amounts

    @once
    def _small_amounts(self) -> frozenset[int]:
        """Whole amounts below 10 that the answer or a result calls money."""
        stated = {
            abs(one.readings[0]) for one in self.values if one.readings and self.is_money(one)
        }
        held = {
            field.number
            for field in self.index.tree.fields
            if field.number and field.number < 10 * SCALE and is_money_key(key_words(field.key))
        }
        return frozenset(stated | held)

    def _first_of(self, line: OutlineLine) -> int:
        """Where what it belongs to begins: its heading, or the lines beside it in a list."""
        starts = [start for start, _ in (*line.heads[-1:], *line.siblings)]
        return min((line.start, *starts)) if line.level else line.start

    def _span_of(self, value: Value) -> tuple[int, int]:
        """What the number may have been before it was rounded, where it says so, has decimals, or
        has so many digits that cents are left out."""
        wanted = abs(value.readings[0])
        rounding = arithmetic.rounding_of(value, *arithmetic.words_around(self.text, value))
        is_long = digits_of(value) >= TELLING  # `$15,584`, of amounts with cents
        if rounding is None or not (rounding.is_hedged or decimals_of(value) or is_long):
            return wanted - TOLERANCE, wanted + TOLERANCE
        low, high = sorted((abs(rounding.low), abs(rounding.high)))
        return low, high

    def _calculated(self, value: Value, sentence: Span) -> Worked | None:
        """One step from the numbers beside it, from those of the record that it is said of, or
        from totals."""
        is_share = value.form.percent
        is_small = abs(value.readings[0]) < arithmetic.LEAST * SCALE and not decimals_of(value)
        if is_small and not is_share:
            return None
        self._tries += 1
        if self._tries > MOST_TRIES:
            return None
        wanted = self._wanted(value)
        cues = self._cues(value, sentence)
        is_row = self.text.startswith("|", self.outline.line_at(value.start).start)
        if is_share and not (is_row or arithmetic.announces_as("share", cues)):
            return None
        parts = self._beside(value, sentence) or readings_of(reversed(self.stated[-2:]))
        for part in parts[:2] if is_share else ():
            line = self.outline.line_at(value.start)
            wholes = readings_of(one for one in self.stated[-BESIDE:] if one.start >= line.start)
            totals = [*self._sums.totals_with(part)[:3], *self._stated_totals_with(part)[:2]]
            found = (
                share_of(wanted, part, totals, AT_HAND)
                or share_of(wanted, part, self._sums.lengths[:2], AT_HAND / 2)
                or share_of(wanted, part, wholes, AT_HAND / 2)
            )
            if found is not None:
                return worked_of(found)
        ways: list[tuple[Steps, bool]] = [(shares, True)]
        if not is_share:
            is_total = arithmetic.announces_as("sum", cues)
            is_compared = is_row or arithmetic.announces_as("difference", cues)
            is_sum = is_total and not is_compared and digits_of(value) < TELLING
            ways = [(added if is_sum else sums, is_total or is_compared)]
            if not value.unit or dimension_of(value.unit) != "time":
                is_rate = arithmetic.announces_as("product", cues) or _YEARLY.search(cues)
                ways.append((products, is_row or bool(is_rate)))
        for steps, is_announced in ways:
            worked = self._one_step(value, sentence, wanted, steps, is_announced=is_announced)
            if worked is not None:
                return worked
        return None

    def _rest_of_hundred(self, value: Value, sentence: Span) -> Worked | None:
        """`the other 95%`, after shares of 4% and 1%."""
        if _THE_REST.search(self.text, max(sentence[0], value.start - WIDE), value.start) is None:
            return None
        so_far = 0
        for one in reversed([one for one in self.stated[-BESIDE:] if one.form.percent]):
            so_far += one.readings[0]
            if 100 * SCALE - so_far == value.readings[0]:
                return Worked("rest", "what is left of 100%")
        return None

    def _one_step(
        self, value: Value, sentence: Span, wanted: Wanted, steps: Steps, *, is_announced: bool
    ) -> Worked | None:
        """A word has to announce it, or the number has digits enough, or it is one step from the
        record whose other numbers stand beside it."""
        is_fine = decimals_of(value) >= arithmetic.CENTS or digits_of(value) >= TELLING - 1
        if steps is products and not (is_announced or is_fine):
            return None
        found = work_out(wanted, self._of_neighbours(value, sentence), steps, FURTHER)
        if found is not None and not self._is_digit_apart(value, found):
            return worked_of(found)
        if not is_announced and digits_of(value) < TELLING:
            return None
        operands: list[int] = []
        for more, at_most in (
            (self._beside, BESIDE_SHARE if steps is shares else AT_HAND),
            (self._named, FURTHER if is_announced else FAR_OFF),
            (self._in_record, AT_HAND if is_announced else FAR_OFF),
            (self._around, FURTHER if is_announced else FAR_OFF),
            (self._all_numbers, FAR_OFF),
        ):
            operands += more(value, sentence)
            found = work_out(wanted, operands, steps, at_most)
            is_far = not is_announced and found is not None and is_round(min(found.operands))
            if is_far and steps is sums:
                continue
            if found is not None and not self._is_digit_apart(value, found):
                return worked_of(found)
            if is_announced and more == self._in_record and wanted.low > 0:
                found = work_out(wanted, operands, steps, math.inf)
                if found is not None and not self._is_digit_apart(value, found):
                    self.unclear.add(value.start)
        return None

    def _cues(self, value: Value, sentence: Span) -> str:
        """The words right around it, in its sentence or row."""
        line = self.outline.line_at(value.start)
        start, end = (line.start, line.end) if line.level else sentence
        return self.text[max(start, value.start - CLOSE) : min(end, value.end + CLOSE)]

    def _stated_totals_with(self, part: int) -> list[int]:
        return [
            total
            for column, total in zip(self._stated_columns, self._stated_totals, strict=True)
            if any(number == part for _, number in column)
        ]

    def _wanted(self, value: Value) -> Wanted:
        decimals = decimals_of(value)
        digits = "".join(filter(str.isdecimal, value.text))
        zeros = 0 if decimals else len(digits) - len(digits.rstrip("0"))
        step = SCALE * value.form.factor * 10**zeros // 10**decimals
        if value.form.percent:
            half = max(arithmetic.half_unit(value), 1)
            return Wanted(abs(value.readings[0]) - half, abs(value.readings[0]) + half, step)
        return Wanted(*self._span_of(value), step)

    def _named(self, value: Value, sentence: Span) -> list[int]:
        """The leaves whose keys its sentence names, where these are few."""
        start, end = self.outline.near(value, sentence)
        words, turn = (
            {stem(one) for one in _WORD.findall(self.text[start:end])},
            self.turn_at(start),
        )
        found = [
            field.number
            for word in sorted(words & self._by_key_word.keys())
            for field in self._by_key_word[word]
            if field.number and field.counts_for(turn)
        ]
        is_yearly = _YEARLY.search(self.text, start, end) is not None
        # `50 years` are no product of 12.
        is_yearly = is_yearly and _YEARLY.match(self.text, value.end + 1) is None
        months = [12 * SCALE] if is_yearly else []
        return [*months, *(found if len(found) <= MAX_TERMS else ())]

    @once
    def _by_key_word(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self.index.tree.fields:
            if field.number:
                for word in key_stems(field.key):
                    fields = found.setdefault(word, [])
                    if len(fields) <= MAX_TERMS:
                        fields.append(field)
        return found

    def _all_numbers(self, value: Value, sentence: Span) -> list[int]:
        """All that results hold, where that is little and the number has digits enough."""
        numbers = self.index.numbers
        least = TELLING - (2 if len(numbers) <= FEW_NUMBERS else 1)
        if len(numbers) > MOST_NUMBERS or digits_of(value) < least:
            return []
        turn = self.turn_at(value.start)
        return [one for one, first in self.index.held_before(turn) if first.number is not None]

    def _beside(self, value: Value, sentence: Span) -> list[int]:
        """The numbers of its sentence or row, the nearest of them."""
        line = self.outline.line_at(value.start)
        start, end = sentence
        if self.text.startswith("|", line.start) or line.level:
            start, end = line.start, line.end
        before = [one for one in self.stated[-BESIDE:] if one.start >= start]
        found = [*reversed(before), *self.values_after(value, end)]
        return readings_of(one for one in found if may_go_with(one, value))

    def _of_neighbours(self, value: Value, sentence: Span) -> list[int]:
        """All numbers of the one record that the values right before and after it are of."""
        turn, records = self.turn_at(value.start), dict[int, ResultRecord]()
        for start, record in self.told[-1:]:
            if start >= sentence[0]:
                records[record.number] = record
        for one in self.values_after(value, sentence[1])[:1]:
            fields = self.index.stating(one, turn)[:3]
            records.update((field.record.number, field.record) for field in fields)
        if len(records) != 1:
            return []
        (record,) = records.values()
        return [one.number for one in record.fields if one.number][:NEAREST_TERMS]

    def _in_record(self, value: Value, sentence: Span) -> list[int]:
        return self._amounts(value, sentence)[:MAX_TERMS]

    def _around(self, value: Value, sentence: Span) -> list[int]:
        """Numbers of the lines before, columns and totals."""
        line = self.outline.line_at(value.start)
        recent = [one for one in self.stated[-BESIDE:] if one.start >= line.start - WIDE]
        parts = self._beside(value, sentence)[:3]
        totals = [total for part in parts for total in self._sums.totals_with(part)[:2]]
        columns = self._lists.totals(self.turn_at(value.start))
        totals += columns if len(columns) <= FEW_NUMBERS else []
        others = [  # a total that the number is a part of explains nothing
            total for starts, total in self._starts_and_totals[:6] if value.start not in starts
        ]
        return [*readings_of(recent), *totals, *self._sums.lengths[:3], *others]

    @once
    def _starts_and_totals(self) -> list[tuple[frozenset[int], int]]:
        return [
            (frozenset(at for at, _ in column), total)
            for column, total in zip(self._stated_columns, self._stated_totals, strict=True)
        ]

    @once
    def _stated_columns(self) -> list[list[tuple[int, int]]]:
        """The numbers of each column of the tables of the answer, and those at the ends of the
        items of its lists, with their places."""
        columns: dict[tuple[int, int, str, str], list[tuple[int, int]]] = {}
        for value in self.values:
            if not value.readings or value.kind != "number" or value.form.percent:
                continue
            line = self.outline.line_at(value.start)
            head = self.outline.table_head(line)
            if head is not None:
                column = self.outline.column_of(line, value.start)
                key = (head.start, column, "")
            elif line.level:
                key = (line.heads[-1][0] if line.heads else -1, -1, value.unit)
            else:
                continue
            for place, at in (("first", 0), ("last", 1)):
                found = columns.setdefault((*key, place), [])
                is_same = bool(found) and found[-1][0] >= line.start
                if is_same and at:
                    found.pop()
                if at or not is_same:
                    found.append((value.start, value.readings[0]))
        return [column for column in columns.values() if len(column) > 1]

    @once
    def _stated_totals(self) -> list[int]:
        return [sum(number for _, number in column) for column in self._stated_columns]

    def _total_stated(self, value: Value) -> Worked | None:
        """What a table or list of the answer comes to, before it, after it, or above it."""
        low, high = self._span_of(value)
        if digits_of(value) < TELLING - 2:
            return None
        line = self.outline.line_at(value.start)
        for starts, sums_so_far in self._running_totals:
            first, last = bisect_left(starts, line.start), bisect_left(starts, line.end)
            before = sums_so_far[first]
            others = before + sums_so_far[-1] - sums_so_far[last]
            for number, count in ((others, len(starts) - last + first), (before, first)):
                if count > 1 and low <= abs(number) <= high:
                    return Worked("sum", f"{count} numbers of a table or list")
        return None

    @once
    def _running_totals(self) -> list[tuple[list[int], list[int]]]:
        """Where the numbers of each column stand, and what those before each come to."""
        return [
            (
                [at for at, _ in column],
                list(accumulate((number for _, number in column), initial=0)),
            )
            for column in self._stated_columns[:MOST_COLUMNS]
        ]

    def _of_results(self, value: Value, sentence: Span) -> Worked | None:
        """What the records come to, all of them or those of one kind."""
        is_time = bool(value.unit) and dimension_of(value.unit) == "time"
        low, high = self._span_of(value)
        if is_time:
            short, long = convert(low, value.unit, "min"), convert(high, value.unit, "min")
            low, high = short or 0, long or 0
        turn = self.turn_at(value.start)
        found = [
            one for one in self._sums.near(low, high, is_time=is_time) if one.field.counts_for(turn)
        ]
        if not found:
            return None
        line = self.outline.line_at(value.start)
        around = [self.outline.near(value, line.span), *line.heads[-1:]]
        wide = " ".join(self.text[start : min(end, start + 3 * WIDE)] for start, end in around)
        words = {stem(word) for word in _WORD.findall(wide)}
        cues = self._cues(value, sentence)
        for one in found:
            is_linked = not words.isdisjoint(one.words)
            if self._is_told(value, one, cues, is_linked=is_linked):
                return Worked(one.how, f"{one.how} of {one.because}", (one.field,))
        return None

    def _is_told(self, value: Value, one: ResultSum, cues: str, *, is_linked: bool) -> bool:
        """The fewer digits a number has, the more has to speak for what it comes from."""
        digits = digits_of(value)
        is_announced = arithmetic.announces_as(one.how, cues)
        if value.form.percent and one.how != "mean":
            return False
        match one.how:
            case "duration":
                return True
            case "gap":
                return is_announced
            case "count":
                return not decimals_of(value) and (one.is_plain or is_linked)
            case "mean":
                is_of_all = one.because.endswith(" of all") and not self._has_another(one)
                if is_linked and decimals_of(value) and is_of_all:
                    return True
                return is_announced and (is_linked or digits >= TELLING - 1)
            case "part":
                return digits >= TELLING or is_linked
            case "rest" | "pair" | "difference":
                return digits > TELLING or is_announced
        is_bare = value.form.factor == 1 and not decimals_of(value)
        if is_bare and digits == TELLING - 1 and not (is_announced or is_linked):
            wanted = self._wanted(value)  # `$106`, which some flights cost together
            return wanted.chance(len(self._sums.near(*wanted.vicinity()))) <= HARDLY
        return digits >= TELLING - 1 or is_announced or is_linked

    def _has_another(self, one: ResultSum) -> bool:
        """`rated 4.3 stars`, where what is spoken of has `stars` of its own beside those of its
        reviews."""
        keys = {field.key for word in one.words for field in self._by_key_word.get(word, ())}
        return len(keys) > 1

    @once
    def _sums(self) -> ResultSums:
        return ResultSums(self.index.tree)

    def _lasting(self, value: Value) -> Worked | None:
        """`90 minutes`, from one time to another that stand beside it."""
        if not value.unit or dimension_of(value.unit) != "time":
            return None
        least, most = self._span_of(value)
        low, high = convert(least, value.unit, "min"), convert(most, value.unit, "min")
        times = [one.moments[0] for one in self._moments_beside(value)]
        said = self.said.known()[1]
        times += [one for hour in range(24) for one, _ in said.get((hour, None, None), ())[:1]][
            :BESIDE
        ]
        for first, last in permutations(times, 2):
            minutes = minutes_between(first, last)
            if minutes is not None and (low or 0) <= minutes * SCALE <= (high or 0):
                return Worked("duration", "from one time to another")
        return self._days_apart(value, low or 0)

    def _days_apart(self, value: Value, minutes: int) -> Worked | None:
        """`48 hours before`, of two days that stand beside it."""
        at = bisect_left(self._starts, value.start)
        near = self.values[max(0, at - 2 * BESIDE) : at + 4]
        days = [one.moments[0] for one in near if one.moments and one.moments[0].has_day]
        for first, last in combinations(days, 2):
            apart = days_between(first, last)
            if apart and abs(abs(apart) * 24 * 60 * SCALE - minutes) <= SCALE:
                return Worked("duration", "from one day to another")
        return None

    def _time_beside(self, value: Value) -> Worked | None:
        """`two hours before, at 16:30`."""
        wanted = value.moments[0] if value.moments else None
        if wanted is None or wanted.hour is None or wanted.has_day:
            return None
        lasting = [
            one
            for one in (*self.stated[-3:], *self.values_after(value, value.end + NEAR_TIME))
            if one.unit and one.readings and abs(one.start - value.start) <= NEAR_TIME
        ]
        spans = {convert(abs(one.readings[0]), one.unit, "min") for one in lasting}
        for other in self._moments_beside(value):
            minutes = minutes_between(other.moments[0], wanted)
            if minutes is None:
                continue
            for span in filter(None, (minutes * SCALE, (24 * 60 - minutes) * SCALE)):
                if span in spans:
                    return Worked("time", f"{other.text} and {decimal_text(span)} minutes")
        return None

    def _moments_beside(self, value: Value) -> list[Value]:
        at = bisect_left(self._starts, value.start)
        near = [*self.values[max(0, at - BESIDE) : at], *self.values[at + 1 : at + 4]]
        return [
            one
            for one in near
            if one.moments
            and one.moments[0].hour is not None
            and abs(one.start - value.start) <= WIDE
        ]

    def remember(self, value: Value) -> None:
        """By its label, and as the last number of its line: what a total may add up."""
        self.stated.append(value)
        line = self.outline.line_at(value.start)
        if self._line_ends and self._line_ends[-1][0] == line.start:
            self._line_ends.pop()
        self._line_ends.append((line.start, value.readings[0]))
        self._unlabelled.append(value)

    def _add_labels(self) -> None:
        for value in self._unlabelled:
            if self._binder.is_labelled(value):
                label = self._binder.label_of(value)
                self._by_label.setdefault(label, []).append(value.readings[0])
        self._unlabelled.clear()

    def _columns(self, value: Value) -> list[list[int]]:
        """Numbers that belong together: of the records around, of lines with one label, and at the
        ends of the lines before."""
        self._add_labels()
        label = self._binder.label_of(value)
        labelled = [
            column[-MAX_TERMS:]
            for words, column in islice(reversed(self._by_label.items()), NEAREST)
            if words and words < label and len(column) > 1
        ]
        ends = [number for _, number in self._line_ends[-MAX_TERMS:]]
        return [*self._binder.columns_around(value), *labelled, ends]

    @once
    def _lists(self) -> ListColumns:
        return ListColumns(self.index.tree)

    def column_of(self, value: Value) -> ListColumn | None:
        return self._lists.of_total(abs(value.readings[0]), self.turn_at(value.start))

    def _mean(self, value: Value) -> ListColumn | None:
        number, half = value.readings[0], arithmetic.half_unit(value)
        return self._lists.of_mean(number - half, number + half, self.turn_at(value.start))

    def _is_alike(self, one: Value, other: Value) -> bool:
        return bool(one.readings) and self.is_money(one) == self.is_money(other)

    def values_after(self, value: Value, end: int) -> list[Value]:
        at = bisect_left(self._starts, value.end)
        found: list[Value] = []
        while at < len(self.values) and self.values[at].start < end and len(found) < 6:
            found.append(self.values[at])
            at += 1
        return found

    @once
    def _prices(self) -> list[int]:
        """Amounts with decimals that results hold: few numbers are their difference by chance."""
        found = [number for number in self.index.numbers if number % SCALE]
        return found if len(found) <= MOST_NUMBERS else []

    def _amounts(self, value: Value, sentence: Span) -> list[int]:
        """The numbers of the records that the value is said of."""
        subject = self._binder.subject_of(value, sentence)
        return [] if subject is None else list(islice(self._binder.numbers_of(subject), 40))

    def _factors(self, cues: str, turn: int | None) -> list[int]:
        """How many of something there are: lengths of lists, and small numbers near."""
        stems = {stem(word) for word in _WORD.findall(cues)}
        lengths = {
            len(series.items)
            for one in stems
            for series in self._things.lists_of((one,), turn)
            if 1 < len(series.items) < SMALL
        }
        return sorted(lengths | arithmetic.counts_in(cues, stems))
