"""What tells the records of one list apart, though no key calls it a name: a text or a day that
only one of them has, and the part of a name that no other name holds."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from functools import lru_cache

from callmark.grounding.binding import Mention, Names, words_of_name
from callmark.grounding.dates import Moment
from callmark.grounding.reading import read_leaf
from callmark.grounding.record_tree import (
    Field,
    RecordTree,
    ResultRecord,
    is_naming,
    key_words,
)
from callmark.grounding.schedule import WEEKDAYS, weekdays_in
from callmark.grounding.text import NUMBER_WORDS, STOP_WORDS, fold
from callmark.grounding.values import Value

LONGEST_TEXT = 40  # characters of a text that may tell a record from the others
MOST_WORDS = 6
MOST_SIBLINGS = 2000  # of one list; the names of a longer one are not gathered
WEEK = 7
_CODE = re.compile(r"[A-Z]{1,5}-?\d{1,5}[A-Z]?")
_LETTERS = re.compile(r"[^\W\d_]{3}")
_PROPER = re.compile(r"[A-ZÀ-Ý][a-zß-ÿ]")
_CAPITAL_BEFORE = re.compile(r"(?<![.!?:]\s)(?<!\n)\b[A-ZÀ-Ý]\w*[ -]$")
_CAPITAL_AFTER = re.compile(r"[ -][A-ZÀ-Ý]")
# Keys whose texts many records could share, even if these do not, and texts about a record.
_NOT_TELLING = frozenset(
    """
    status state type kind category condition currency unit units country origin destination note
    notes description message comment reason url link image gender language timezone
    method mode level priority severity class result outcome
    """.split()
)
_DAY_WORDS = frozenset("date day start starts begin begins when departure".split())


MEASURED_ROWS, MEASURES = 8, 3  # records of one list, and numbers of each, that make a table
_MEASURE = re.compile(r"[-+]?[$€£]?\d{1,12}(?:[.,]\d{1,6})*\s?%?")


def has_measured_table(groups: Iterable[Sequence[ResultRecord]]) -> bool:
    """Many records with several numbers each: parts, means, rates and differences of them are more
    than any rule follows."""
    return any(
        len(group) >= MEASURED_ROWS
        and sum(sum(map(_is_measure, one.fields)) >= MEASURES for one in group) >= MEASURED_ROWS
        for group in groups
    )


def _is_measure(field: Field) -> bool:
    is_text = isinstance(field.value, str) and _MEASURE.fullmatch(field.value) is not None
    return (is_text or field.number is not None) and not is_naming(field.key)


class SiblingNames:
    """Where an answer, of which these are the `words`, mentions records in such a way."""

    def __init__(self, tree: RecordTree, words: frozenset[str]) -> None:
        self._words = words
        self._called: dict[int, list[str]] = {}
        self._parts: set[tuple[str, ...]] = set()
        self._groups = [one for one in tree.groups if len(one) <= MOST_SIBLINGS]
        self._tree = tree
        self._records = tree.records
        self._gather()

    def _gather(self) -> None:
        whole: dict[str, list[ResultRecord]] = {}
        for record in self._records:
            for name in record.names:
                whole.setdefault(name, []).append(record)
        for group in self._groups:
            for text, record in _unique_texts(group):
                whole.setdefault(text, []).append(record)
                if self._words.issuperset(words_of_name(text)):
                    self._called.setdefault(record.number, []).append(text)
        self._gather_parts(whole)

    def _gather_parts(self, whole: dict[str, list[ResultRecord]]) -> None:
        """`Miradouro` of `Hotel Miradouro Azul`, where it is a part of no other name."""
        parts: dict[tuple[str, ...], str | None] = {}
        for name, records in whole.items():
            for part in _parts_of(words_of_name(name), self._words):
                known = parts.setdefault(part, name)
                # `Orbit` of the deal `Orbit rollout` of `Orbit Ltd`: one record has both names.
                if known is not None and whole[known] != records:
                    parts[part] = None
        for part, full in parts.items():
            if full is not None and " ".join(part) not in self._tree.texts:
                # A `Patio` in which others meet is no part of the name `Jazz en el Patio`.
                self._parts.add(part)
                for record in whole[full]:
                    self._called.setdefault(record.number, []).append(" ".join(part))

    def mentions(self, text: str, values: Sequence[Value]) -> list[Mention]:
        """From left to right. `values` are those of the text: days may stand for records."""
        named = [self._records[number] for number in sorted(self._called)]
        called = Names(named, lambda record: self._called[record.number])
        found: list[Mention] = []
        for one in called.mentions(text):
            is_part = words_of_name(text[one.start : one.end]) in self._parts
            if not is_part or _stands_alone(text, one):
                found.append(one._replace(is_part=is_part))
        taken = {one.start for one in found}
        found += [one for one in self._mentions_of_days(text, values) if one.start not in taken]
        return sorted(found, key=lambda one: (one.start, one.end))

    def _mentions_of_days(self, text: str, values: Sequence[Value]) -> Iterator[Mention]:
        by_day: dict[tuple[int, int], list[tuple[int, ResultRecord]]] = {}
        by_weekday: dict[int, list[ResultRecord]] = {}
        for group in self._groups:
            days = list(_unique_days(group))
            for day, record in days:
                by_day.setdefault((day.month, day.day), []).append((day.year, record))
            ordinals = [day.toordinal() for day, _ in days]
            if days and max(ordinals) - min(ordinals) < WEEK:
                for day, record in days:
                    by_weekday.setdefault(day.weekday(), []).append(record)
        for value in values if by_day else ():
            moment = next((one for one in value.moments if one.has_day), Moment())
            named = by_day.get((moment.month or 0, moment.day or 0), ())
            records = [one for year, one in named if moment.year in (None, year)]
            if records:
                yield Mention(value.start, value.end, tuple(records), is_day=True)
        is_named = bool(by_weekday) and not WEEKDAYS.isdisjoint(self._words)
        for start, end, weekday in weekdays_in(text) if is_named else ():
            records = by_weekday.get(weekday, [])
            if records:
                yield Mention(start, end, tuple(records), is_day=True)


def _stands_alone(text: str, mention: Mention) -> bool:
    """Part of a name, and of no other: not the `Court` of `Tennis Court Road`."""
    return text[mention.start].isupper() and not (
        _CAPITAL_BEFORE.search(text, max(0, mention.start - 30), mention.start)
        or _CAPITAL_AFTER.match(text, mention.end)
    )


def _unique_texts(group: Sequence[ResultRecord]) -> Iterator[tuple[str, ResultRecord]]:
    """The short texts under keys that are another one for every record of the group."""
    columns: dict[str, list[tuple[str, ResultRecord]]] = {}
    for record in group:
        for field in record.fields:
            if isinstance(field.value, str) and field.value and is_telling(field.key):
                columns.setdefault(field.key, []).append((field.value, record))
    for column in columns.values():
        if len(column) < 2 or not all(_is_name(text) for text, _ in column):
            continue
        texts = Counter([fold(text) for text, _ in column])
        if len(texts) == len(column):
            yield from column
        elif 2 * len(texts) > len(column) and all(_PROPER.match(text) for text, _ in column):
            # `Trattoria Vela` was paid twice; `Kaffee Kern` tells one payment from the others.
            yield from (one for one in column if texts[fold(one[0])] == 1)


@lru_cache(maxsize=1 << 12)
def is_telling(key: str) -> bool:
    words = key_words(key)
    return bool(words) and words[-1] not in _NOT_TELLING


@lru_cache(maxsize=1 << 12)
def _is_name(text: str) -> bool:
    """A few words or a code, and no number, date or address."""
    if _CODE.fullmatch(text):
        return True
    if len(text) > LONGEST_TEXT or not _LETTERS.search(text):
        return False
    words = words_of_name(text)
    return len(words) <= MOST_WORDS and not any(
        one.kind in ("moment", "url", "email") or (one.kind == "number" and one.text == text)
        for one in read_leaf(text)
    )


def _unique_days(group: Iterable[ResultRecord]) -> Iterator[tuple[date, ResultRecord]]:
    """The days of the group, if each of its records has one, and another one."""
    found: list[tuple[date, ResultRecord]] = []
    for record in group:
        days = [day for field in record.fields if (day := _day_of(field)) is not None]
        if len(days) != 1:
            return
        found.append((days[0], record))
    if len({day for day, _ in found}) == len(found):
        yield from found


def _day_of(field: Field) -> date | None:
    if not isinstance(field.value, str) or not 8 <= len(field.value) <= LONGEST_TEXT:
        return None
    if _DAY_WORDS.isdisjoint(key_words(field.key)):
        return None
    for value in read_leaf(field.value):
        for moment in value.moments:
            if moment.year is not None and moment.month is not None and moment.day is not None:
                try:
                    return date(moment.year, moment.month, moment.day)
                except ValueError:
                    return None
    return None


def _parts_of(words: tuple[str, ...], known: frozenset[str]) -> Iterator[tuple[str, ...]]:
    """Runs of the words of a name, shorter than all of it, with a word that tells something."""
    if not 1 < len(words) <= MOST_WORDS:
        return
    for first in range(len(words)):
        for last in range(first + 1, len(words) + 1):
            part = words[first:last]
            if part[-1] not in known:
                break
            if len(part) < len(words) and part[0] in known and any(map(_tells, part)):
                yield part


def _tells(word: str) -> bool:
    return len(word) > 3 and word.isalpha() and word not in STOP_WORDS and word not in NUMBER_WORDS
