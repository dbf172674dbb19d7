"""What the results come to: totals, means and counts of records that are alike, all of them or
those with one value in common, and how long each lasts.

Built when the first number is met that nothing states; as many entries as there are leaves, times
a small number."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import combinations, islice, pairwise, permutations, product
from operator import itemgetter

from callmark.grounding.dates import Moment
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import is_money_key, read_leaf, unit_of_key
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord, key_stems, key_words
from callmark.grounding.text import CODES, Frozen, once

FEW = 12  # records of one kind any two of which may be set against each other
MOST_COLUMNS = 16
FEW_KINDS = 6
MOST_SORTED = 200  # records that are sorted by two keys
MOST_KINDS = 40  # values of one key that sort records into kinds
LONGEST_KIND = 40  # characters of such a value
LONGEST_NUMBER = 24  # characters of a text that is one number
MOST_NEAR = 60  # entries near a number that are looked at
MOST_IN_GROUP = 2000  # records that are sorted into kinds for what is said of one
MOST_KEYS = 9  # of one record that are set against each other
MOST_GROUPS = 12  # kinds and pairs of kinds that a line may speak of
_PRICES = frozenset("rate unit price cpm tariff".split())
_WHOLE = re.compile(r"(?<![\d.,])\d{1,6}(?![\d.,]*\d)")
_DAYS = re.compile(
    r"(?i)\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|mär|mai|okt|dez)\w*\.?\s"
    r"(\d{1,2})\s?[–-]\s?(\d{1,2})\b"
)
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
DAY = "day"
BY = " divided by "
_DAY = re.compile(r"\d{4}-(\d\d)-(\d\d)")
_STARTS = frozenset(
    "start starts started begin begins from departure depart departs departed dep since open opens"
    " planned scheduled time".split()
)
_ENDS = frozenset(
    "end ends ended until to till arrival arrive arrives arrived arr finish finished close"
    " closes".split()
)


_NO_WEIGHTS = frozenset(
    "id ids number no nr num code zip year index rank position crn sku upc ean isbn phone".split()
)


class ResultSum(Frozen, frozen=True):
    """`how`: sum, part (of one kind), rest (all but one), mean, count, pair (of two), difference,
    duration. `words` are those of the key
    and of what the records have in common."""

    number: int
    how: str
    because: str
    words: frozenset[str]
    field: Field
    is_plain: bool = True  # a count of all, or of one of a few kinds


_Entry = tuple[int, str, str, frozenset[str], Field, bool]  # those of a `ResultSum`
_NUMBER = itemgetter(0)


class ResultColumn(Frozen, frozen=True):
    """The numbers under one key, `records` beside them. `is_time`: minutes, worked out."""

    key: str
    fields: tuple[Field, ...]
    numbers: tuple[int, ...]
    is_time: bool = False


class _Kind(Frozen, frozen=True):
    """Records that have one value in common: a text, by its words, or a number."""

    key: str
    value: str
    records: tuple[ResultRecord, ...]
    stems: frozenset[str]
    number: int | None = None

    def is_in(self, text: str) -> bool:
        name = self.value
        if len(name) < 2 or not name.isalnum():
            name = f"{' '.join(key_words(self.key)[-1:])} {name}"
        at = text.lower().find(name.lower()) if name.strip() else -1
        return at >= 0 and not text[max(0, at - 1) : at].isalnum() and not _goes_on(text, at, name)


def _goes_on(text: str, at: int, name: str) -> bool:
    return text[at + len(name) : at + len(name) + 1].isalnum()


class ResultSums:
    """Found by number."""

    def __init__(self, tree: RecordTree) -> None:
        self._cells = _Cells()
        # As plain tuples: hardly any of them is ever asked for.
        self._found: list[_Entry] = []
        self._times: list[_Entry] = []
        self._totals: dict[int, list[int]] = {}
        self.lengths: list[int] = []  # how many records there are of a kind
        self._groups = list(_groups(tree))
        for records in self._groups:
            self._add_group(records)
        for record in tree.records:
            self._add_record(record)
        self._found.sort(key=_NUMBER)
        self._times.sort(key=_NUMBER)

    def near(self, low: int, high: int, *, is_time: bool = False) -> list[ResultSum]:
        """Those from `low` to `high`, without sign; `is_time`: of minutes."""
        found = self._times if is_time else self._found
        at = bisect_left(found, low, key=_NUMBER)
        stop = bisect_left(found, high + 1, key=_NUMBER)
        return [ResultSum(*entry) for entry in found[at : min(stop, at + MOST_NEAR)]]

    @once
    def weighed(self) -> list[tuple[int, str, ResultRecord]]:
        """What one column comes to if another one weighs it, and its mean then; of all records and
        of all but those of one kind. With each the first of them."""
        found: dict[tuple[int, str], ResultRecord] = {}
        for records in islice(self._groups, FEW):
            groups = [records]
            if len(records) <= MOST_SORTED:
                for _, _, kind in islice(_kinds(records), FEW):
                    left_out = {one.number for one in kind}
                    groups.append([one for one in records if one.number not in left_out])
            for group in groups:
                for one in _weigh(group):
                    found.setdefault(one, records[0])
        return [(*one, found[one]) for one in sorted(found)]

    def of_kinds(
        self,
        text: str,
        words: frozenset[str],
        subject: Sequence[ResultRecord],
        turn: int | None,
        *,
        whole: bool,
    ) -> list[tuple[int, str]]:
        """What the records served before that turn come to that have in common what the text, of
        which these are the `words`, names: of each kind, of two kinds at once, of several that are
        alike, of the days from one to another; those of the `subject`; and with `whole` all that
        are alike."""
        numbers = frozenset(int(one) * SCALE for one in _WHOLE.findall(text)[:FEW_KINDS])
        named = list(islice(self._kinds_named(words), FEW_KINDS))
        named += islice((one for one in self._short if one.is_in(text)), FEW_KINDS)
        measured = [one for number in sorted(numbers) for one in self._by_number.get(number, ())]
        groups: dict[frozenset[int], tuple[str, Sequence[ResultRecord]]] = {}

        def add(label: str, records: Sequence[ResultRecord]) -> None:
            if records and len(groups) < MOST_GROUPS and records[0].counts_for(turn):
                groups.setdefault(frozenset(one.number for one in records), (label, records))

        for one in (*named, *(one for one in measured if one.key == DAY)):
            add(one.value, one.records)
        for label, records in (*_both(named, measured[:FEW]), *_alike(named)):
            add(label, records)
        for first, last in _DAYS.findall(text)[:2]:
            days = range(int(first), min(int(last), 31) + 1)
            of_days = (self._by_number.get(day * SCALE, ()) for day in days)
            kinds = [one for several in of_days for one in several if one.key == DAY]
            add(f"{first} to {last}", [record for one in kinds for record in one.records])
        if 0 < len(subject) <= MOST_SORTED:
            add("what is named", subject)
        if whole:
            for records in self._groups[:FEW_KINDS]:
                if len(records) <= MOST_IN_GROUP:
                    add("all", records)
        return [
            found
            for marks, (label, records) in groups.items()
            for found in self._come_to(marks, label, records)
        ]

    def records_with(self, word: str) -> tuple[ResultRecord, ...]:
        """Those of the one kind that has this word in its name."""
        found = self._by_stem.get(word, {})
        return next(iter(found.values())) if len(found) == 1 else ()

    @once
    def _by_stem(self) -> dict[str, dict[str, tuple[ResultRecord, ...]]]:
        found: dict[str, dict[str, tuple[ResultRecord, ...]]] = {}
        for kind in self._all_kinds:
            for word in kind.stems:
                found.setdefault(word, {})[kind.value] = kind.records
        return found

    def has_kind_of(self, words: frozenset[str], count: int) -> bool:
        """Whether a kind that these words name has so many records."""
        return any(len(one.records) == count for one in self._kinds_named(words))

    def _kinds_named(self, words: frozenset[str]) -> Iterator[_Kind]:
        for word in sorted(words & self._by_word.keys()):
            yield from (one for one in self._by_word[word] if one.stems <= words)

    def _come_to(
        self, marks: frozenset[int], label: str, records: Sequence[ResultRecord]
    ) -> list[tuple[int, str]]:
        found = self._reckoned.get(marks)
        if found is None:
            columns = [one for one in self._cells.columns_of(records) if not one.is_time]
            found = self._reckoned[marks] = list(_reckon(columns, records, label))
        return found

    @once
    def _reckoned(self) -> dict[frozenset[int], list[tuple[int, str]]]:
        return {}

    @once
    def _short(self) -> list[_Kind]:
        """`arm A`, `S3`: too short for a word."""
        return [one for one in self._all_kinds if not one.stems and one.number is None][:MOST_KINDS]

    @once
    def _by_word(self) -> dict[str, list[_Kind]]:
        """Kinds by the longest word of theirs."""
        found: dict[str, list[_Kind]] = {}
        for kind in self._all_kinds:
            if kind.stems:
                found.setdefault(max(sorted(kind.stems), key=len), []).append(kind)
        return found

    @once
    def _by_number(self) -> dict[int, list[_Kind]]:
        found: dict[int, list[_Kind]] = {}
        for kind in self._all_kinds:
            if kind.number is not None:
                found.setdefault(kind.number, []).append(kind)
        return found

    @once
    def _all_kinds(self) -> list[_Kind]:
        found: list[_Kind] = []
        for records in self._groups[:FEW]:
            if len(records) > MOST_IN_GROUP:
                continue
            for key, value, members in _kinds(records, alone=len(records) <= MOST_SORTED):
                stems = frozenset(one for one in key_stems(value) if len(one) > 2)
                found.append(_Kind(key, value, tuple(members), stems))
            found += _measured_kinds(records)
            found += _days(records)
        return found

    def totals_with(self, number: int) -> list[int]:
        """What the columns that hold this number come to."""
        return self._totals.get(abs(number), [])

    # --- building

    def _add_group(self, records: Sequence[ResultRecord]) -> None:
        columns = list(self._cells.columns_of(records))
        for one, other in pairwise(records):
            self._add_gap(one, other)
        if len(self.lengths) < FEW and len(records) * SCALE not in self.lengths:
            self.lengths.append(len(records) * SCALE)
        for column in columns:
            self._add_column(column, frozenset(key_stems(column.key)), "all")
            total = abs(sum(column.numbers))
            for number in column.numbers:
                totals = self._totals.setdefault(abs(number), [])
                if len(totals) < FEW and total not in totals:
                    totals.append(total)
        sums = [(one, sum(one.numbers)) for one in columns if not one.is_time]
        for (column, first), (_, second) in combinations(sums[:FEW], 2):
            self._add(abs(first - second), "difference", f"all {column.key}", column)
        fields = columns[0].fields if columns else records[0].fields[:1]
        if not fields:
            return
        known = ResultColumn(records[0].key, tuple(fields), ())
        self._add(len(records) * SCALE, "count", f"{len(records)} of {records[0].key}", known)
        self._add_kinds(records, known)

    def _add_kinds(self, records: Sequence[ResultRecord], known: ResultColumn) -> None:
        kinds = list(_kinds(records))
        sizes = Counter(key for key, _, _ in kinds)
        for key, value, kind in kinds:
            words = frozenset((*key_stems(key), *key_stems(value)))
            is_plain = sizes[key] <= FEW_KINDS
            self._add(len(kind) * SCALE, "count", f"{key} {value}", known, words, is_plain)
            if 1 < len(kind) < len(records):
                self._add_columns(kind, words, value)
        # All but one kind: what was sold without what was sent back, of each product as well.
        for key, value, kind in kinds[:FEW] if len(records) <= MOST_SORTED else ():
            left_out = {one.number for one in kind}
            rest = [one for one in records if one.number not in left_out]
            if 1 < len(rest) < len(records):
                words = frozenset((*key_stems(key), *key_stems(value)))
                self._add(len(rest) * SCALE, "count", f"not {key} {value}", known, words, False)
                self._add_columns(rest, words, f"not {value}")
                for by, name, members in _kinds(rest):
                    if by != key and 1 < len(members) < len(rest):
                        self._add_columns(members, frozenset(key_stems(name)), f"{name}")

    def _add_columns(self, records: Sequence[ResultRecord], words: frozenset[str], of: str) -> None:
        for column in self._cells.columns_of(records):
            self._add_column(column, words.union(key_stems(column.key)), of)

    def _add_gap(self, one: ResultRecord, other: ResultRecord) -> None:
        """From the end of one to the start of the next, and from start to start."""
        ends, starts = _edges_of(one), _edges_of(other)
        if starts[0] is None:
            return
        for edge in ends:
            first = None if edge is None else _moment_in(edge)
            last = _moment_in(starts[0])
            minutes = None if first is None or last is None else minutes_between(first, last)
            if minutes:
                column = ResultColumn("gap", (starts[0],), ())
                self._add_time(minutes * SCALE, "gap", f"{one.path} to {other.path}", column)

    def _add_column(self, column: ResultColumn, words: frozenset[str], of: str) -> None:
        numbers = column.numbers
        if len(numbers) < 2:
            return
        total = sum(numbers)
        found: list[tuple[int, str]] = [
            (abs(total), "sum" if of == "all" else "part"),
            (abs(total) // len(numbers), "mean"),
        ]
        if of == "all":  # how many have one at all
            found.append((len(numbers) * SCALE, "count"))
        gains = sum([number for number in numbers if number > 0])
        if gains not in (0, total):  # what came in, and what went out
            found += [(gains, "sum"), (gains - total, "sum")]
        if len(numbers) <= FEW:  # all but one of them
            found += [(abs(total - number), "rest") for number in numbers]
        if of == "all" and len(numbers) <= FEW and not column.is_time:
            for one, other in combinations(numbers, 2):
                found += [(abs(one - other), "difference"), (abs(one + other), "pair")]
        because, field = f"{column.key} of {of}", column.fields[0]
        if column.is_time:
            told = self._times
            words = frozenset()
        else:
            told = self._found
        told += [
            (number, how, because, words, field, column.is_time or how != "count")
            for number, how in found
            if number
        ]

    def _add_record(self, record: ResultRecord) -> None:
        """Two fields of one record set against each other, and how long it lasts."""
        lasts = self._cells.minutes_of(record)
        if lasts is not None:
            column = ResultColumn("duration", (lasts[1],), ())
            self._add_time(lasts[0], "duration", record.path, column)
        fields = [(one, number) for one in record.fields[:FEW] if (number := number_in(one))]
        if 2 < len(fields) == len(record.fields):  # `income: {grants, gifts, interest}`
            column = ResultColumn(record.key, tuple(one for one, _ in fields), ())
            total = abs(sum(number for _, number in fields))
            self._add(total, "sum", record.path, column, frozenset(key_stems(record.key)))
        for (one, first), (other, second) in combinations(fields, 2):
            self._add(
                abs(first - second),
                "difference",
                f"{one.key} and {other.key} of {record.path}",
                ResultColumn(one.key, (one,), ()),
                frozenset((*key_stems(one.key), *key_stems(other.key))),
            )

    def _add(
        self,
        number: int,
        how: str,
        because: str,
        column: ResultColumn,
        words: frozenset[str] = frozenset(),
        is_plain: bool = True,
    ) -> None:
        if column.is_time:
            self._add_time(number, how, because, column)
        elif number:
            self._found.append((number, how, because, words, column.fields[0], is_plain))

    def _add_time(self, number: int, how: str, because: str, column: ResultColumn) -> None:
        if number:
            self._times.append((number, how, because, frozenset(), column.fields[0], True))


def _both(
    named: Sequence[_Kind], measured: Sequence[_Kind]
) -> Iterator[tuple[str, list[ResultRecord]]]:
    """Those of two kinds at once."""
    for one, other in (*combinations(named, 2), *product(named, measured)):
        if one.key != other.key:
            inside = {record.number for record in other.records}
            both = [record for record in one.records if record.number in inside]
            yield f"{one.value}, {other.value}", both


def _alike(named: Sequence[_Kind]) -> Iterator[tuple[str, list[ResultRecord]]]:
    """Several kinds under one key, together."""
    for key in dict.fromkeys(one.key for one in named):
        alike = [one for one in named if one.key == key]
        if len(alike) > 1:
            known = {record.number: record for one in alike for record in one.records}
            yield " and ".join(one.value for one in alike), list(known.values())


def _measured_kinds(records: Sequence[ResultRecord]) -> Iterator[_Kind]:
    """`depth_cm: 30`, where a few numbers come again and again."""
    by_key: dict[str, dict[int, list[ResultRecord]]] = {}
    for record in records:
        for field in record.fields[:MOST_COLUMNS]:
            if type(field.value) is int and field.number is not None:
                kinds = by_key.setdefault(field.key, {})
                if len(kinds) <= FEW:
                    kinds.setdefault(field.number, []).append(record)
    for key, kinds in by_key.items():
        if 1 < len(kinds) <= FEW and len(kinds) < len(records):
            for number, members in kinds.items():
                yield _Kind(key, f"{key} {number // SCALE}", tuple(members), frozenset(), number)


def _days(records: Sequence[ResultRecord]) -> Iterator[_Kind]:
    """Those of one month, and of one day, by the first day that they have."""
    by_month: dict[int, list[ResultRecord]] = {}
    by_day: dict[int, list[ResultRecord]] = {}
    for record in records:
        for field in record.fields[:MOST_COLUMNS]:
            day = _DAY.match(field.value) if isinstance(field.value, str) else None
            if day is not None:
                by_month.setdefault(int(day[1]), []).append(record)
                by_day.setdefault(int(day[2]), []).append(record)
                break
    for number, members in by_day.items() if 1 < len(by_day) <= MOST_KINDS else ():
        yield _Kind(DAY, f"day {number}", tuple(members), frozenset(), number * SCALE)
    for month, members in by_month.items() if len(by_month) > 1 else ():
        if 1 <= month <= 12:
            name = _MONTHS[month - 1]
            yield _Kind("month", name, tuple(members), frozenset(key_stems(name)))


def _reckon(
    columns: Sequence[ResultColumn], records: Sequence[ResultRecord], label: str
) -> Iterator[tuple[int, str]]:
    """Totals, means and spreads; quantities at their prices; rates within one record."""
    yield len(records) * SCALE, f"count of {label}"
    for column in columns:
        numbers = column.numbers
        if len(numbers) > 1:
            total = sum(numbers)
            yield abs(total), f"sum of {column.key} of {label}"
            mean = abs(total) * 2 // len(numbers)
            yield (mean + 1) // 2, f"mean of {column.key} of {label}"  # halves are rounded up
            yield max(numbers) - min(numbers), f"range of {column.key} of {label}"
    rows = [{one.key: number for one, number in _numbers_of(record)} for record in records]
    keys = [one.key for one in columns if _NO_WEIGHTS.isdisjoint(key_words(one.key))][:MOST_KEYS]
    for key, other in permutations(keys, 2):
        pairs = [(row[key], row[other]) for row in rows if row.get(key) and row.get(other)]
        if not pairs:
            continue
        if _is_price(other):
            total = sum(abs(one * price) for one, price in pairs)
            yield total // SCALE, f"{key} times {other} of {label}"
            if "cpm" in key_words(other):
                yield total // SCALE // 1000, f"{key} times {other} of {label}"
        first, second = (abs(sum(part)) for part in zip(*pairs, strict=True))
        if second:
            for times in (1, 100):  # per cent, or per 100 km
                yield times * first * SCALE // second, f"{key}{BY}{other} of {label}"
        if key < other and not set(key_stems(key)).isdisjoint(key_stems(other)):
            yield first + second, f"sum of {key} and {other} of {label}"
        if key < other:
            yield abs(first - second), f"difference of {key} and {other} of {label}"


def _is_price(key: str) -> bool:
    words = key_words(key)
    return is_money_key(words) or not _PRICES.isdisjoint(words) or unit_of_key(words) in CODES


def _numbers_of(record: ResultRecord) -> Iterator[tuple[Field, int]]:
    for field in record.fields[:MOST_COLUMNS]:
        number = number_in(field)
        if number is not None:
            yield field, number


def _weigh(records: Sequence[ResultRecord]) -> Iterator[tuple[int, str]]:
    rows = [{one.key: number_in(one) for one in record.fields[:FEW]} for record in records]
    keys = list(
        dict.fromkeys(
            key
            for row in rows
            for key, one in row.items()
            if one is not None and _NO_WEIGHTS.isdisjoint(key_words(key))
        )
    )
    for key, weight in permutations(keys[:FEW_KINDS], 2):
        pairs = [(row[key], row[weight]) for row in rows if row.get(key) and row.get(weight)]
        total = sum(abs(one or 0) * abs(other or 0) for one, other in pairs)
        weights = sum(abs(other or 0) for _, other in pairs)
        if len(pairs) > 1 and weights:
            yield total // weights, f"{key}, weighed by {weight}"
            yield total // SCALE, f"{key} times {weight}"


def _groups(tree: RecordTree) -> Iterator[list[ResultRecord]]:
    """Records that are siblings of one kind."""
    groups: dict[tuple[int, str, str], list[ResultRecord]] = {}
    for record in tree.records:
        if record.parent is not None and record.fields:
            name = record.key if record.kind.endswith("/*") else ""
            asked = (record.parent.number, record.kind, name if name.isalpha() else "")
            groups.setdefault(asked, []).append(record)
    yield from (records for records in groups.values() if len(records) > 1)


class _Cells:
    """The numbers of records and how long they last: each is read once, however many groups it
    is a member of."""

    def __init__(self) -> None:
        self._numbers: dict[int, list[tuple[Field, int]]] = {}
        self._minutes: dict[int, tuple[int, Field] | None] = {}

    def minutes_of(self, record: ResultRecord) -> tuple[int, Field] | None:
        if record.number not in self._minutes:
            self._minutes[record.number] = _minutes_of(record)
        return self._minutes[record.number]

    def numbers_of(self, record: ResultRecord) -> list[tuple[Field, int]]:
        found = self._numbers.get(record.number)
        if found is None:
            found = self._numbers[record.number] = [
                (field, number)
                for field in record.fields[:MOST_COLUMNS]
                if (number := number_in(field)) is not None
            ]
        return found

    def columns_of(self, records: Sequence[ResultRecord]) -> Iterator[ResultColumn]:
        found: dict[str, tuple[list[Field], list[int]]] = {}
        times: tuple[list[Field], list[int]] = ([], [])
        for record in records:
            for field, number in self.numbers_of(record):
                column = found.get(field.key)
                if column is None:
                    column = found[field.key] = ([], [])
                column[0].append(field)
                column[1].append(number)
            lasts = self.minutes_of(record)
            if lasts is not None:
                times[0].append(lasts[1])
                times[1].append(lasts[0])
        for key, (fields, numbers) in list(found.items())[:MOST_COLUMNS]:
            yield ResultColumn(key, tuple(fields), tuple(numbers))
        if len(times[0]) > 1:
            yield ResultColumn("duration", tuple(times[0]), tuple(times[1]), is_time=True)


def _kinds(
    records: Sequence[ResultRecord], *, alone: bool = False
) -> Iterator[tuple[str, str, list[ResultRecord]]]:
    """Records that have a short text, a yes or a no in common; `alone`: or that only one has."""
    by_key: dict[str, dict[str, list[ResultRecord]]] = {}
    for record in records:
        for field in record.fields[:MOST_COLUMNS]:
            value = field.value
            if isinstance(value, str | bool) and len(str(value)) <= LONGEST_KIND:
                kinds = by_key.setdefault(field.key, {})
                if len(kinds) <= MOST_KINDS:
                    kinds.setdefault(str(value), []).append(record)
    for key, kinds in sorted(by_key.items(), key=lambda one: len(one[1])):
        if len(kinds) <= MOST_KINDS and (alone or len(kinds) < len(records)):
            for value, members in kinds.items():
                yield key, value, members


def number_in(field: Field) -> int | None:
    """The number that a leaf is, be it written as a text: `-64.18`, `$12`."""
    if field.number is not None:
        return field.number
    if not isinstance(field.value, str) or not 0 < len(field.value) <= LONGEST_NUMBER:
        return None
    values = read_leaf(field.value)
    if len(values) != 1 or not values[0].readings:
        return None
    one = values[0]
    is_whole = one.start <= 1 and len(field.value) - one.end <= 4
    return one.readings[0] if is_whole and one.kind == "number" else None


def _minutes_of(record: ResultRecord) -> tuple[int, Field] | None:
    """From what begins to what ends, where a record has one of each."""
    start, end = _edges_of(record)
    if start is None or end is None:
        return None
    first, last = _moment_in(start), _moment_in(end)
    minutes = None if first is None or last is None else minutes_between(first, last)
    return None if minutes is None else (minutes * SCALE, start)


def _edges_of(record: ResultRecord) -> tuple[Field | None, Field | None]:
    start = end = None
    for field in record.fields[:MOST_COLUMNS]:
        words = key_words(field.key)
        if not isinstance(field.value, str) or not words:
            continue
        if start is None and not _STARTS.isdisjoint(words):
            start = field
        elif end is None and not _ENDS.isdisjoint(words):
            end = field
    return start, end


def _moment_in(field: Field) -> Moment | None:
    values = read_leaf(str(field.value)) if len(str(field.value)) <= LONGEST_KIND else ()
    moments = [one.moments[0] for one in values if one.moments and one.moments[0].hour is not None]
    return moments[0] if len(moments) == 1 else None


def minutes_between(first: Moment, last: Moment) -> int | None:
    """Of two times, of the same day where none is told; the second is the later one."""
    if first.hour is None or last.hour is None:
        return None
    minutes = (last.hour - first.hour) * 60 + (last.minute or 0) - (first.minute or 0)
    if first.has_day and last.has_day and first.year and last.year:
        days = days_between(first, last)
        return None if days is None else days * 24 * 60 + minutes
    return minutes % (24 * 60)


def days_between(first: Moment, last: Moment) -> int | None:
    """Of two days; of one year where none is told."""
    if not (first.has_day and last.has_day):
        return None
    year = first.year or last.year or 2001
    try:
        one = datetime(first.year or year, first.month or 1, first.day or 1)
        other = datetime(last.year or year, last.month or 1, last.day or 1)
    except ValueError:
        return None
    return (other - one).days
