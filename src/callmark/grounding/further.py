"""What takes more than one step to work out: two steps, what the user said, and days and times that
lie so far from others. Asked after all else."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, permutations

from callmark.grounding.arithmetic import (
    SMALL,
    Steps,
    Sum,
    Wanted,
    Worked,
    announces_a_sum,
    digits_of,
    half_unit,
    may_go_with,
    products,
    readings_of,
    sets_against,
    share_of,
    shares,
    sums,
    work_out,
    worked_of,
)
from callmark.grounding.binding import NEAREST
from callmark.grounding.chains import (
    AT_HAND,
    LIKELY,
    MOST_NEAR,
    Operands,
    is_told_as_rate,
    of_percents,
    plain_shares,
    work_out_in_two,
)
from callmark.grounding.claims import MULTIPLIED
from callmark.grounding.dates import Moment
from callmark.grounding.match import is_earlier
from callmark.grounding.numbers import SCALE, TOLERANCE, decimal_text
from callmark.grounding.reading import convert, dimension_of, scale_of_key, unit_of_key
from callmark.grounding.reckoning import Around, Reckoning, minutes_said
from callmark.grounding.record_tree import Field, ResultRecord, key_stems, key_words, stem
from callmark.grounding.spans import WIDE, OutlineLine, Span
from callmark.grounding.sums import BY, number_in
from callmark.grounding.text import SIGNS, once
from callmark.grounding.values import Value, decimals_of
from callmark.grounding.workings import (
    BESIDE,
    CLOSE,
    FAR_OFF,
    FEW_NUMBERS,
    FURTHER,
    MAX_TERMS,
    MOST_NUMBERS,
    MOST_TRIES,
    NEAREST_TERMS,
    TELLING,
    Workings,
)

_WORD = re.compile(r"[^\W\d_]{3,}")
_OF_ALL = re.compile(
    r"\s(?:out\s)?(?:of|von|de|sur)\s(?:the\s|den\s|las\s|los\s|les\s|all\s)?(\d{1,5})(?![\d.,]*\d)"
)
_WEIGHED = re.compile(
    r"\b(?:average|mean|weight\w*|gpa|points|durchschnitt\w*|mittel\w*|gewicht\w*|schnitt|punkte"
    r"|promedio|media|ponderad\w+|puntos|moyenne|pondéré\w*|coefficient\w*)\b",
    re.IGNORECASE,
)
_THE = re.compile(
    rf"\b(?:the|this|that|der|die|das|diese[rns]?|el|los|les|ces?)\s[{SIGNS}]?$", re.I
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_SMALL_COINS = frozenset("cpm ct cts cent cents pence p centimes".split())
_NOUN = re.compile(r"[ \u00a0][^\W\d_]{4,}s\b")
_SCALED = re.compile(
    r"(?i)\b(?:millions?|mio|billions?|mrd|thousands?|tsd|millones|milliarden?)\b"
    rf"|[{SIGNS}]\s?(?:m|k|bn)\b|\b(?:m|k|bn)\s?[{SIGNS}]"
)
MOST_TIMES = 366  # days of a year, people at a party
_PER_ONE = re.compile(
    r"\s?(?:per|each|an?|pro|je|par|por|al|/)\s?[^\W\d_]{2,}|\s(?:each|apiece)\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(r"[(\[][+−-]\d+[)\]]")
_LAST_WORD = re.compile(r"([^\W\d_]{4,})\s?\(\D{0,3}$")
# What is counted in, or left out: `£107 with a bag`, `before tax`.
_WITH = re.compile(
    r"\b(with|includ\w+|incl|plus|mit|inkl\w*|zzgl|zuzüglich|samt|con|inclu[iy]\w+|más|avec|compris\w*"
    r"|without|exclud\w+|excl|before|less|minus|ohne|exkl\w*|abzüglich|vor|sin|exclu[iy]\w+|antes"
    r"|sans|hors|avant)\b([^.;!?\n|\d]{1,40})",
    re.IGNORECASE,
)
_OUT = re.compile(
    r"(?:without|excl|before|less|minus|ohne|exkl|ab|vor|sin|antes|sans|hors|av)", re.I
)
_PER = frozenset("per each pro je por par".split())
_PERCENT_KEYS = frozenset(
    "pct percent percentage rate discount tax vat prozent rabatt steuersatz mwst porcentaje"
    " descuento iva pourcentage remise tva taux".split()
)


def _keys(because: str) -> list[str]:
    return [part for word in because.split() for part in key_words(word)]


class FurtherWorkings(Workings):
    """The same, and what is further away."""

    @once
    def rough(self) -> set[int]:
        """Where numbers stand that are too rough to be checked."""
        return set()

    def find(self, value: Value, sentence: Span) -> Worked | None:
        is_row = self.text.startswith("|", self.outline.line_at(value.start).start)
        found = (
            self._share_of_all(value, sentence)
            or (self.find_of_percent(value, plain_shares) if is_row else None)
            or super().find(value, sentence)
        )
        if found is not None:
            return found
        if value.kind == "moment":
            return self._reckoned(value, sentence)
        if not value.readings or not value.unit:
            return None
        return self._apart(value, sentence) or self._per_one(value, sentence)

    def _per_one(self, value: Value, sentence: Span) -> Worked | None:
        """`231 € in all, so 77 € a day`, for three days."""
        if _PER_ONE.match(self.text, value.end) is None or not value.readings[0]:
            return None
        half, each = half_unit(value), abs(value.readings[0])
        for whole in self._beside(value, sentence):
            times = (2 * whole + each) // (2 * each)  # no float is as large as some numbers
            if not 2 <= times <= MOST_TIMES or abs(whole - times * each) > times * half:
                continue
            scaled = times * SCALE
            turn = self.turn_at(value.start)
            held = (one.counts_for(turn) for one in self.index.numbers.get(scaled, ()))
            if any(held) or self.said.holds_number(scaled, turn):
                return Worked("rate", f"{decimal_text(whole)} for {times}")
        return None

    def find_among_few(self, value: Value) -> Worked | None:
        """Where the results hold few numbers, one step from them, whatever the words say."""
        if value.kind != "number" or not value.readings or len(self.index.numbers) > FEW_NUMBERS:
            return None
        numbers = [one for one, _ in self.index.held_before(self.turn_at(value.start)) if one]
        reading = abs(value.readings[0])
        if value.form.percent and digits_of(value) < 2:  # `0.2%`: 20 of 10,000, and no rounding
            exact = (one for one in shares(numbers[:FEW_NUMBERS]) if one[0] == reading)
            return next((worked_of(Sum(*one[1:])) for one in exact), None)
        if digits_of(value) < 2 or (not value.unit and _YEAR.fullmatch(value.text)):
            return None
        if reading < SMALL * SCALE and not (value.unit or value.form.percent):
            return None
        column = self.column_of(value)
        if column is not None and not value.form.percent:
            return Worked("sum", str(column))
        mean = self._mean(value) if digits_of(value) > 2 else None
        if mean is not None:
            return Worked("average", str(mean))
        ways: list[Steps] = [sums, products, of_percents(self._shares_held)]
        if value.form.percent:
            ways = [shares]
        elif digits_of(value) < TELLING - 1 and not (self.is_money(value) or self._has_rate):
            del ways[1]  # `75 guests` are no 5 lanes at 15 tables
        for steps in ways:
            found = work_out(self._wanted(value), numbers, steps, FAR_OFF)
            if found is not None and not self._is_digit_apart(value, found):
                return worked_of(found)
        return None

    @once
    def _has_rate(self) -> bool:
        """`seatsPerRow`: so many of something for each of another."""
        fields = (one for one in self.index.tree.fields if one.number)
        return any(not _PER.isdisjoint(key_words(one.key)) for one in fields)

    @once
    def _totals_of_records(self) -> list[tuple[int, frozenset[int]]]:
        """`{"wind": 14400, "solar": 4800, "gas": 5100}`: what such records come to, and of what."""
        found = []
        for record in self.index.tree.records:
            numbers = [one.number for one in record.fields if one.number is not None]
            if len(numbers) > 2 and len(numbers) == len(record.fields):
                found.append((sum(numbers), frozenset(numbers)))
        return found

    def _share_of_all(self, value: Value, sentence: Span) -> Worked | None:
        """What its sentence names, as a share of what all of its kind come to."""
        totals = self._totals_of_records if value.form.percent else []
        parts = self._named(value, sentence) if totals else []
        for whole, numbers in totals[:3]:
            named = [part for part in parts if part in numbers]
            for part in (*named[:NEAREST_TERMS], sum(set(named))):
                found = share_of(self._wanted(value), part, [whole], FURTHER)
                if found is not None:
                    return worked_of(found)
        return None

    def speaks_of_before(self, value: Value) -> bool:
        """`the £45`, which was stated before."""
        before = self.text[max(0, value.start - 12) : value.start]
        return _THE.search(before) is not None and any(
            one.readings[:1] == value.readings[:1] for one in self.stated if value.readings
        )

    def total_of(self, value: Value, key: str) -> Worked | None:
        """What all records, or those of one kind, come to under this key."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        wanted, turn = abs(value.readings[0]), self.turn_at(value.start)
        start, end = self.outline.near(value, self.outline.line_at(value.start).span)
        if any(wanted == sum(column) for column in self._binder.columns_around(value)):
            return Worked("sum", f"{key} of those that are named")
        least = self._least_totals.get(key, [])
        if len(least) < 2 or sum(least) > wanted + TOLERANCE:
            return None
        around = {stem(word) for word in _WORD.findall(self.text[start:end])}
        for one in self._sums.near(wanted - TOLERANCE, wanted + TOLERANCE):
            kinds = one.words.difference(key_stems(key))
            is_told = one.how == "sum" or (one.how == "part" and not kinds.isdisjoint(around))
            if is_told and one.field.key == key and one.field.counts_for(turn):
                return Worked(one.how, f"{one.how} of {one.because}", (one.field,))
        return None

    @once
    def _least_totals(self) -> dict[str, list[int]]:
        """The two smallest numbers under each key: no total of it is less than both of them. Below
        zero, or in the first field of a record, which stands for all of it, anything may be."""
        found: dict[str, list[int]] = {}
        for record in self.index.tree.records:
            for at, field in enumerate(record.fields):
                number = number_in(field)
                if number is not None:
                    least = found.setdefault(field.key, [])
                    least += [number] if at and number > 0 else [0, 0]
                    least.sort()
                    del least[2:]
        return found

    def find_in_two(self, value: Value, sentence: Span) -> Worked | None:
        """In two steps, or with what the user said."""
        if value.kind != "number" or not value.readings:
            return None
        self._tries += 1
        is_small = abs(value.readings[0]) < SMALL * SCALE and not decimals_of(value)
        is_year = not value.unit and _YEAR.fullmatch(value.text) is not None
        is_bare = is_small and not value.form.percent and not self.is_money(value)
        if self._tries > MOST_TRIES or is_year:
            return None
        if is_bare and _CHANGE.search(self.text[max(0, value.start - 2) : value.end + 1]):
            return self._changed(value, sentence)
        if is_bare:
            cues = self._cues(value, sentence)
            return self.find_grouped(value, sentence) if announces_a_sum(cues) else None
        if value.form.percent and self.index.is_prose:
            return None
        if not value.form.percent and (joined := self._with_a_part(value, sentence)):
            return joined
        if (grouped := self.find_grouped(value, sentence)) is not None:
            return grouped
        near = self._operands(value, sentence)
        if near is None:
            return None  # a part that nobody knows
        digits, wanted = digits_of(value), self._wanted(value)
        if value.form.percent:  # any of the hundred could stand there
            wanted = wanted._replace(step=wanted.high - wanted.low)
        found = work_out_in_two(value, wanted, near, digits)
        if found is None and value.unit and digits >= TELLING - 1 and not decimals_of(value):
            half = (
                SCALE * value.form.factor // 2
            )  # `another $582`, without a word that it is rounded
            reading = abs(value.readings[0])
            wanted = Wanted(reading - half, reading + half, 2 * half)
            found = work_out_in_two(value, wanted, near._replace(held=(), said=()), digits)
        if found is not None:
            return Worked(found.rule, found.because)
        return self._weighed(value) or self._multiplied(
            value, [*near.counts, *self._multipliers], near
        )

    def _operands(self, value: Value, sentence: Span) -> Operands | None:
        """What it may have been worked out of in two steps."""
        line = self.outline.line_at(value.start)
        at = bisect_left(self._starts, value.start)
        before = self.values[max(0, at - BESIDE) : at]
        close = [one for one in reversed(before) if one.start >= line.start - CLOSE]
        close += self.values_after(value, line.end)[:5]
        cues = self._cues(value, sentence)
        if self.index.is_prose and not (announces_a_sum(cues) or sets_against(cues)):
            close = [one for one in close if one.unit and one.unit == value.unit]
        percents = [
            abs(one.readings[0])
            for one in close
            if one.form.percent and one.readings and sentence[0] <= one.start < value.start
        ]
        turn = self.turn_at(value.start)
        numbers, _ = self.said.known()
        near_text = self.text[slice(*self.outline.near(value, sentence))]
        factors = [
            SCALE * one
            for one in self._factors(near_text, turn)
            if one > 1 and SCALE * one not in map(abs, value.readings)
        ]
        if value.form.percent and close and close[0].start in self.rough:
            return None
        near = Operands(
            readings_of(one for one in close if may_go_with(one, value)),
            self._amounts(value, sentence)[:MOST_NEAR] + self._amounts_above(value, sentence),
            [abs(one) for one, at in numbers.items() if one and is_earlier(at, turn)][-MAX_TERMS:],
            [*percents, *self._shares_held],
            " ".join(
                (self._cues(value, sentence), *(self.text[a:b][:CLOSE] for a, b in line.heads[-1:]))
            ),
            any(
                "100" in key or not _SMALL_COINS.isdisjoint(key_words(key))
                for key in (*self.index.tree.keys, near_text.casefold())
            ),
            self._held(turn),
            self._named(value, sentence),
            factors,
        )
        if self.index.is_prose:  # full of numbers that are of anything
            near = near._replace(recorded=(), said=(), held=(), named=())
        return near._replace(foreign=self._foreign(value, close, near))

    def find_grouped(self, value: Value, sentence: Span) -> Worked | None:
        """What the records of one kind come to, where a row, an item or a sentence names it."""
        if value.kind != "number" or not value.readings or len(self._asked) >= MOST_TRIES:
            return None
        if value.start not in self._asked:
            self._asked[value.start] = self._grouped(value, sentence)
        return self._asked[value.start]

    @once
    def _has_scales(self) -> bool:
        return any(scale_of_key(key_words(key)) > 1 for key in self.index.tree.keys)

    @once
    def _asked(self) -> dict[int, Worked | None]:
        return {}

    def _grouped(self, value: Value, sentence: Span) -> Worked | None:
        line = self.outline.line_at(value.start)
        is_row = self.text.startswith("|", line.start)
        spans = [(line.start, line.end) if is_row or line.level else sentence, *line.heads[-1:]]
        head = self._binder.head_cell(value, line) if is_row else None
        if head is not None:
            spans.append(head)
        text = " ".join(self.text[start : min(end, start + WIDE)] for start, end in spans)
        if head is not None:  # `| Pier | …` over `| A | …`
            text = f"{self._row_name(line)} {text}"
        words = frozenset(stem(word) for word in _WORD.findall(text))
        subject = self._binder.subject_of(value, sentence)
        records = () if subject is None else subject.records
        last = _LAST_WORD.search(self.text, max(0, value.start - CLOSE), value.start)
        if last is not None:  # `albuterol ($1,753.60)`
            records = self._sums.records_with(stem(last[1])) or records
        whole = digits_of(value) > TELLING
        turn = self.turn_at(value.start)
        found = self._sums.of_kinds(text, words, records, turn, whole=whole)
        wanted = self._wanted(value)
        half, twice = wanted.vicinity()
        if self._has_scales and (value.form.factor > 1 or _SCALED.search(text)):  # `_kusd`, in $m
            own = [one for record in records[:1] for one in record.fields[:MOST_NEAR]]
            found += [(one.number, one.key) for one in own if one.number]
            found += [
                (number * times // SCALE, because)
                for number, because in found
                for times in (SCALE * 1000, SCALE * 10**6, SCALE // 1000, SCALE // 10**6)
            ]
        if value.form.percent:  # a share may be kept as a fraction, or be one of a column
            found += [(100 * number, because) for number, because in found if number <= SCALE]
            found += self._shares_of(records)
        if not (value.form.percent or is_row or is_told_as_rate(self._cues(value, sentence))):
            found = [one for one in found if BY not in one[1]]
        near = sum(1 for number, _ in found if half <= number <= twice)
        fitting = [one for one in found if wanted.low <= one[0] <= wanted.high]
        column = self.column_of(value) if not fitting and not whole else None
        if column is not None:
            return Worked("sum", str(column))
        chance = wanted.chance(near)
        if chance > (AT_HAND if is_row else LIKELY):  # then a key has to be named too
            fitting = [one for one in fitting if not words.isdisjoint(map(stem, _keys(one[1])))]
        return (
            Worked("part", fitting[0][1])
            if fitting and chance <= (1 if is_row else AT_HAND)
            else None
        )

    def counts_a_kind(self, value: Value, sentence: Span) -> bool:
        """`All three loads`, in an item that is about those of one kind."""
        line = self.outline.line_at(value.start)
        start, end = (line.start, line.end) if line.level else sentence
        words = frozenset(stem(word) for word in _WORD.findall(self.text[start:end][:WIDE]))
        return self._sums.has_kind_of(words, value.readings[0] // SCALE)

    def _row_name(self, line: OutlineLine) -> str:
        top = self.outline.table_head(line)
        cells = (self.text[one.start : one.end] for one in (top, line) if one is not None)
        return " ".join(cell.split("|")[1].strip(" *") for cell in cells if "|" in cell[1:])

    def find_of_percent(
        self, value: Value, steps_of: Callable[[Sequence[int]], Steps] = of_percents
    ) -> Worked | None:
        """`$276.40 | $138.20 | counts at 50%`: a number and a share of the same line."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        line = self.outline.line_at(value.start)
        at = bisect_left(self._starts, line.start)
        beside = [one for one in self.values[at : at + MOST_NEAR] if one.start < line.end]
        shares = [abs(one.readings[0]) for one in beside if one.form.percent and one.readings]
        wholes = readings_of(one for one in beside if one.start != value.start)
        found = work_out(self._wanted(value), wholes, steps_of(shares), LIKELY)
        return None if found is None else worked_of(found)

    def _changed(self, value: Value, sentence: Span) -> Worked | None:
        """`8 seats (−2)`: from one number of the record to another."""
        subject = self._binder.subject_of(value, sentence)
        for record in subject.records[:1] if subject is not None else ():
            numbers = [one for one in record.fields[:MOST_NEAR] if one.number is not None]
            for one, other in permutations(numbers, 2):
                if (one.number or 0) - (other.number or 0) == value.readings[0]:
                    because = f"from {other.key} to {one.key}"
                    return Worked("difference", because, (one, other))
        return None

    def is_named_before(self, value: Value, fields: Sequence[Field]) -> bool:
        """`Jonah (11)`: a part of the name of a record that has it."""
        last = _LAST_WORD.search(self.text, max(0, value.start - CLOSE), value.start)
        if last is None:
            return False
        return any(
            isinstance(one.value, str) and last[1] in one.value.split()
            for field in fields[:MOST_NEAR]
            for one in field.record.fields[:MOST_NEAR]
        )

    def _shares_of(self, records: Sequence[ResultRecord]) -> Iterator[tuple[int, str]]:
        """How much of each column one record holds."""
        for field in records[0].fields[:MOST_NEAR] if len(records) == 1 else ():
            for total in self._sums.totals_with(field.number or 0):
                share = 100 * SCALE * abs(field.number or 0) // (total or 1)
                yield share, f"{field.key} of all"

    def _with_a_part(self, value: Value, sentence: Span) -> Worked | None:
        """Two numbers of one record, one of them by its name: `£107 with a bag`."""
        start, end = self.outline.near(value, sentence)
        start, end = max(start, value.start - CLOSE), min(end, value.end + CLOSE)
        wanted = self._wanted(value)
        for told in _WITH.finditer(self.text, start, end):
            is_out = _OUT.match(told[1]) is not None
            words = {stem(word) for word in _WORD.findall(told[2])}
            parts = [part for word in sorted(words) for part in self._fields_by_word.get(word, ())]
            for part in parts[:MOST_NUMBERS]:
                for other in islice(part.record.fields, MOST_NEAR):
                    if other is part or not other.number or not part.number:
                        continue
                    number = other.number - part.number if is_out else other.number + part.number
                    if wanted.low <= abs(number) <= wanted.high:
                        because = f"{other.key} {'less' if is_out else 'and'} {part.key}"
                        return Worked("difference" if is_out else "sum", because, (other, part))
        return None

    @once
    def _fields_by_word(self) -> dict[str, list[Field]]:
        found: dict[str, list[Field]] = {}
        for field in self.index.tree.fields:
            if field.number:
                for word in key_stems(field.key):
                    fields = found.setdefault(word, [])
                    if len(fields) < MOST_NUMBERS:
                        fields.append(field)
        return found

    def _foreign(self, value: Value, close: list[Value], near: Operands) -> frozenset[int]:
        """The operands that are of another dimension wherever they stand: nobody adds kilometres
        to pounds."""
        if not value.unit:
            return frozenset()
        kind = dimension_of(value.unit)
        stated: dict[int, list[str]] = {}
        amounts = {abs(one.readings[0]) for one in close if one.readings and self.is_money(one)}
        foreign: set[int] = set()
        for one in close:
            if one.readings:
                number = abs(one.readings[0])
                stated.setdefault(number, []).append(one.unit)
                # `$163.4 million across 91,730 policies`
                if kind == "money" and number not in amounts and self._counts(one):
                    foreign.add(number)
        for number in {*near.stated, *near.recorded, *near.said}:
            fields = islice(self.index.numbers.get(number, ()), MOST_NEAR)
            units = [*stated.get(number, ()), *(unit_of_key(key_words(f.key)) for f in fields)]
            if units and all(unit and dimension_of(unit) != kind for unit in units):
                foreign.add(number)
        return frozenset(foreign)

    def _counts(self, value: Value) -> bool:
        """Does it say how many there are of what stands behind it?"""
        return not (value.unit or decimals_of(value)) and bool(_NOUN.match(self.text, value.end))

    def _multiplied(self, value: Value, counts: list[int], near: Operands) -> Worked | None:
        """So many times anything that the results hold; so much of what they give per 100."""
        if value.form.percent or value.form.factor > 1:
            return None
        if digits_of(value) < TELLING - 1 and not self.is_money(value):
            counts = self._multipliers
        parts = [one // 100 for one in near.said] if near.has_hundreds else []
        wanted, found, close = self._wanted(value), None, 0
        for count in dict.fromkeys([*counts, *parts]):
            low, high = (
                wanted.low * SCALE // max(count, 1),
                -(-wanted.high * SCALE // max(count, 1)),
            )
            close += len(self.index.between(low // 2, 2 * high))
            for number in self.index.between(low, high) if found is None else ():
                if self.index.numbers[number][0].number is not None and number != count:
                    found = Worked("product", f"{decimal_text(count)} times {decimal_text(number)}")
        is_told = is_told_as_rate(near.cues) or bool(self._multipliers)
        return found if wanted.chance(close) <= (AT_HAND if is_told else LIKELY) else None

    def is_filtered(self, value: Value) -> bool:
        """`16 of the 23 passed`: by what they were chosen, no rule knows."""
        if value.kind != "number" or not value.text.isdecimal() or not value.readings:
            return False
        whole = _OF_ALL.match(self.text, value.end)
        if whole is None:
            return False
        number = int(whole[1]) * SCALE
        counted = self._sums.near(number, number)
        return value.readings[0] < number and any(one.how == "count" for one in counted)

    def _weighed(self, value: Value) -> Worked | None:
        """`a weighted average of 87.9`."""
        start, end = self.outline.near(value, self.outline.line_at(value.start).span)
        if not decimals_of(value) or not _WEIGHED.search(self.text, start, end):
            return None
        wanted = self._wanted(value)
        half, twice = wanted.vicinity()
        turn = self.turn_at(value.start)
        weighed = [(one, why) for one, why, first in self._sums.weighed if first.counts_for(turn)]
        near = [one for one, _ in weighed if half <= one <= twice]
        for number, because in weighed:
            if wanted.low <= number <= wanted.high and wanted.chance(len(near)) <= AT_HAND:
                return Worked("mean", because)
        return None

    def _held(self, turn: int | None) -> list[int]:
        if len(self.index.numbers) > MOST_NUMBERS:
            return []
        return [abs(one) for one, first in self.index.held_before(turn) if first.number is not None]

    @once
    def _multipliers(self) -> list[int]:
        """`multiplied by 1.5`."""
        return [
            value.readings[0]
            for value in self.values
            if value.readings
            and MULTIPLIED.search(self.text[max(0, value.start - 40) : value.start])
        ][:3]

    @once
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

    @once
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
            found = found or self._from_anywhere(wanted, near)
            seconds = 60 * (wanted.hour or 0) + (wanted.minute or 0)
            if found is None and wanted.second is None and self._reckoning.seconds_apart(seconds):
                found = "from one time to another"
            if found is None and wanted.second is None and self._reckoning.lasts(seconds):
                found = "a length of time as minutes and seconds, or as hours and minutes"
        return None if found is None else Worked("time", found)

    @once
    def _times_stated(self) -> tuple[list[Moment], list[int]]:
        moments = [one.moments[0] for one in self.values if one.moments]
        spans = [minutes for one in self.values if (minutes := minutes_said(one))]
        return [one for one in moments if not one.has_day], spans

    def _from_anywhere(self, wanted: Moment, near: Around) -> str | None:
        """From the times and lengths of time that the whole answer states, if they are few."""
        if near.beside or not wanted.minute:
            return None
        times, spans = self._times_stated
        if len(times) > MAX_TERMS or len(spans) > BESIDE:
            return None
        return self._reckoning.time(wanted, near._replace(beside=times, spans=spans), [])

    def _around_moment(self, value: Value, sentence: Span) -> Around:
        at = bisect_left(self._starts, value.start)
        near = [*self.values[max(0, at - BESIDE) : at], *self.values[at + 1 : at + 3]]
        start, end = self.outline.near(value, self.outline.line_at(value.start).span)
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
        records = self._records_of(value, sentence)
        minutes = minutes_said(value)
        if minutes and self._reckoning.minutes_apart(minutes, records):
            return Worked("duration", "from one time to another")
        if value.unit == "y" and self._reckoning.years_apart(value.readings[0] // SCALE):
            return Worked("duration", "from one year to another")
        days = convert(value.readings[0], value.unit, "d")
        if not days or days % SCALE or days // SCALE < 2:
            return None
        near = self._around_moment(value, sentence)
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
