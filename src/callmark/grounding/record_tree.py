"""The served results as records: every leaf knows its record, every record its kin and its names.

A record is an object; what a list or an object of like objects holds are siblings. Records are
numbered in the order in which they are met, so that kinship is a comparison of two numbers. The
index finds leaves by what they say."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import TypeVar

import snowballstemmer  # type: ignore[import-untyped]

from callmark.grounding.dates import (
    LEAST_EPOCH,
    Moment,
    minute_key,
    moment_keys,
    moments_elsewhere,
    moments_of_epoch,
)
from callmark.grounding.evidence import (
    MAX_DEPTH,
    Served,
    escape,
    flat,
    is_number,
    parts_of,
)
from callmark.grounding.numbers import SCALE, TOLERANCE, of_json
from callmark.grounding.reading import read_leaf
from callmark.grounding.tables import head_of, records_of_text, width_of
from callmark.grounding.text import Frozen, fold, once
from callmark.grounding.values import Value, identifier_key
from callmark.records.jsontext import Json, texts_in, want_list, want_object
from callmark.records.trace import is_mcp_result, read_inside

_OPENING = frozenset("{[")
_WRAPPING = frozenset(("name", "value", "label", "displayName", "login", "text", "title"))
LONGEST_CODE = 20  # characters
_CODED = re.compile(r"[A-Z]{1,6}-?\d{2,}[A-Z\d-]*")
_NAME_WORD = re.compile(r"[^\W_]+")
_KEY_WORD = re.compile(
    r"[A-ZÀ-ÖØ-Þ]+(?![a-zß-öø-ÿ])|[A-ZÀ-ÖØ-Þ]?[a-zß-öø-ÿ]+|\d+|[^\W\d_A-Za-zÀ-ÖØ-öø-ÿ]+"
)
_NAMING = frozenset(
    """
    id ids name title number code sku email username titel bezeichnung nummer kennung nombre título
    titulo número numero código codigo nom titre intitulé numéro
    barcode dealname hostname filename isbn ean vin uuid guid slug
    """.split()
)
# Words that many records have in common, whatever else their keys say.
_NOT_NAMING = frozenset("origin destination city status type state country first last".split())
_DIGIT = re.compile(r"\d")
_KEY_NUMBER = re.compile(r"(?:[A-Za-z][A-Za-z_]*?_?)?(\d{2,5})(?:[A-Za-z_]+)?")
_LETTER = re.compile(r"[^\W\d_]")
_PERIOD = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|(?<![^\W\d_])(?:Q[1-4]|H[12]|W\d\d)(?!\w)", re.I)
_LETTERS = re.compile(r"[^\W\d_]{4}")

_SUFFIXED = (
    *("'", "s", "y", "e", "i", "ed", "ing", "al", "ful", "ll", "er", "ator", "ion", "ant", "ent"),
    *("ism", "ic"),
)
_stem = snowballstemmer.stemmer("english").stemWord


@lru_cache(maxsize=1 << 16)
def stem(word: str) -> str:
    folded = word.casefold()
    # No suffix ends so: half of all words, and no two answers have the same numbers.
    if folded[-1:].isdecimal() or not (folded.endswith(_SUFFIXED) or folded[:1] == "'"):
        return folded
    stemmed: str = _stem(folded)
    return stemmed


@lru_cache(maxsize=1 << 14)
def key_words(key: str) -> tuple[str, ...]:
    """`RestaurantsTakeOut` and `total_price` in words, lower case."""
    return tuple(word.casefold() for word in _KEY_WORD.findall(key))


@lru_cache(maxsize=1 << 14)
def key_stems(key: str) -> tuple[str, ...]:
    return tuple(map(stem, key_words(key)))


@lru_cache(maxsize=1 << 14)
def is_naming(key: str) -> bool:
    words = key_words(key)
    return bool(words) and words[-1] in _NAMING and words[0] not in _NOT_NAMING


class ResultRecord:
    """One object of one result. `last` is the number of the last record inside it."""

    __slots__ = (
        *("_texts", "children", "fields", "key", "kind", "last", "names", "number", "parent"),
        *("path", "served"),
    )

    def __init__(
        self,
        number: int,
        served: Served,
        path: str,
        key: str,
        kind: str,
        parent: ResultRecord | None,
    ) -> None:
        self.number = number
        self.last = number
        self.served = served
        self.path = path
        self.key = key
        self.kind = kind
        self.parent = parent
        self.fields: list[Field] = []
        self.children: list[ResultRecord] | tuple[()] = ()  # few records have any
        self.names: list[str] = []
        self._texts: frozenset[str] | None = None

    def texts(self) -> frozenset[str]:
        """Its leaves that are texts, once it is whole."""
        if self._texts is None:
            self._texts = frozenset(one.value for one in self.fields if isinstance(one.value, str))
        return self._texts

    def holds(self, other: ResultRecord) -> bool:
        return self.number <= other.number <= self.last

    def is_kin(self, other: ResultRecord) -> bool:
        """One is the other, or lies inside it."""
        return self.holds(other) or other.holds(self)

    def within(self) -> Iterator[ResultRecord]:
        yield self
        for child in self.children:
            yield from child.within()

    def ancestors(self) -> Iterator[ResultRecord]:
        """What it is a part of, the nearest first; not the whole result, unless it is a record."""
        above = self.parent
        while above is not None:
            if above.fields:
                yield above
            above = above.parent

    def counts_for(self, turn: int | None) -> bool:
        return turn is None or self.served.turn is None or self.served.turn < turn


class Field(Frozen, frozen=True, gc=True):
    """One leaf. `echo`: it repeats an argument of its own call; `number` is that of its value."""

    record: ResultRecord
    path: str
    key: str
    value: Json
    echo: bool
    number: int | None

    @property
    def call(self) -> int:
        return self.record.served.call

    def counts_for(self, turn: int | None) -> bool:
        return self.record.counts_for(turn)


def served_before(fields: list[Field], turn: int | None) -> list[Field]:
    """Those that count for what is said in a turn; all of them where that is not known."""
    if turn is None:
        return fields
    return [one for one in fields if (at := one.record.served.turn) is None or at < turn]


class Series(Frozen, frozen=True):
    """One list: where it stands and what it holds."""

    record: ResultRecord
    path: str
    key: str
    items: list[Json]


class RecordTree:
    """Every record, leaf and list of the results that are no errors."""

    def __init__(self, served: Iterable[Served]) -> None:
        self.records: list[ResultRecord] = []
        self.fields: list[Field] = []
        self.said, self._text_fields = list[str](), list[Field]()  # the leaves that are texts
        self.series: list[Series] = []
        self.keys: set[str] = set()
        self.texts: dict[str, list[Field]] = {}  # by what they say, folded
        for one in served:
            if not one.error:
                self._add(one)
        self._name_by_codes()

    @property
    def text_fields(self) -> Iterator[tuple[str, Field]]:
        """The leaves that are texts, with them. No pair is kept: there may be tens of thousands."""
        return zip(self.said, self._text_fields, strict=True)

    def _name_by_codes(self) -> None:
        """`"flights": ["LH1808"]`: what looks like an identifier and stands in one record only is
        a name of it, whatever its key."""
        found: dict[str, ResultRecord | None] = {}
        for value, field in self.text_fields:
            if "A" <= value[:1] <= "Z" and len(value) <= LONGEST_CODE and _CODED.fullmatch(value):
                known = found.setdefault(value, field.record)
                if known is not field.record:
                    found[value] = None
        for value, record in found.items():
            if record is not None and not record.names and record.kind.endswith("/*"):
                _name(record, value)

    @once
    def groups(self) -> list[list[ResultRecord]]:
        """The records of each list or table, two at least."""
        found: dict[tuple[int, str], list[ResultRecord]] = {}
        for record in self.records:
            if record.parent is not None and record.kind.endswith("/*"):
                found.setdefault((record.parent.number, record.kind), []).append(record)
        return [group for group in found.values() if len(group) > 1]

    def _add(self, served: Served) -> None:
        self._served = served
        self._echoes = {fold(text) for text in texts_in(served.arguments)}
        root = self._record(served.root, "", "", None)
        if is_mcp_result(served.result):
            for path, key, value in parts_of(served.result):
                self._visit(value, f"{served.root}{path}", key, root, "", 0)
        else:
            self._visit(served.result, served.root, "", root, "", 0)
        root.last = len(self.records) - 1

    def _record(self, path: str, key: str, kind: str, parent: ResultRecord | None) -> ResultRecord:
        record = ResultRecord(len(self.records), self._served, path, key, kind, parent)
        self.records.append(record)
        if parent is not None:
            parent.children = parent.children or []
            parent.children.append(record)
        return record

    def _visit(
        self, value: Json, path: str, key: str, record: ResultRecord, kind: str, depth: int
    ) -> None:
        if depth > MAX_DEPTH:
            return
        if isinstance(value, str):
            value = read_inside(value)
        elif value is None or isinstance(value, bool | int | float):
            self._visit_leaf(value, path, key, record)
            return
        if isinstance(value, dict):
            self._visit_object(value, path, key, record, kind, depth)
        elif isinstance(value, list):
            self.series.append(Series(record, path, key, value))
            for index, entry in enumerate(value):
                self._visit(entry, f"{path}/{index}", key, record, f"{kind}/*", depth + 1)
        else:
            self._visit_leaf(value, path, key, record)
            if isinstance(value, str) and "\n" in value:
                for entry in records_of_text(value):
                    self._visit_object(dict(entry), path, key, record, f"{kind}/*", depth + 1)

    def _visit_object(
        self,
        value: dict[str, Json],
        path: str,
        key: str,
        parent: ResultRecord,
        kind: str,
        depth: int,
    ) -> None:
        record = self._record(path, key, kind, parent) if depth else parent
        if _DIGIT.search(key):
            _name(record, key)
        # `{"HAT001": {…}, "HAT002": {…}}` is a list whose entries have names.
        is_table = len(value) > 1 and all(isinstance(entry, dict) for entry in value.values())
        if is_table and depth:
            self.series.append(Series(parent, path, key, list(value.values())))
        self.keys.update(value)
        # In one order, so that a score does not hang on that of a server's keys.
        for name in sorted(value):
            entry, pointer = value[name], f"{path}/{escape(name)}"
            is_leaf = not isinstance(entry, (dict, list))
            if isinstance(entry, str):
                is_leaf = "\n" not in entry and entry.lstrip()[:1] not in _OPENING
            if is_leaf:
                if depth < MAX_DEPTH:
                    self._visit_leaf(entry, pointer, name, record)
                continue
            inner = _wrapped_in(entry) if len(value) > 1 else None
            if inner is not None and depth < MAX_DEPTH:  # `"status": {"name": "In Review"}`
                self.keys.add(inner)
                self._visit_leaf(want_object(entry)[inner], f"{pointer}/{inner}", name, record)
                continue
            below = f"{kind}/*" if is_table else f"{kind}/{name}"
            is_rows = isinstance(entry, list) and entry and isinstance(entry[0], list)
            width = width_of(entry) if is_rows else 0
            if width:
                head = head_of(value, width) or [f"{name}_{at}" for at in range(width)]
                self._visit_rows(entry, head, pointer, name, record, below, depth + 1)
                continue
            self._visit(entry, pointer, name, record, below, depth + 1)
        first, last = value.get("first_name"), value.get("last_name")
        if isinstance(first, str) and isinstance(last, str):
            _name(record, f"{first} {last}")
        record.last = len(self.records) - 1

    def _visit_rows(
        self,
        rows: Json,
        head: Sequence[str],
        path: str,
        key: str,
        parent: ResultRecord,
        kind: str,
        depth: int,
    ) -> None:
        """`"rows": [["AMER", 12], ["EMEA", 7]]`: records whose keys stand beside them."""
        entries = [dict(zip(head, want_list(row), strict=True)) for row in want_list(rows)]
        self.series.append(Series(parent, path, key, list(entries)))
        self.keys.update(head)
        for index, entry in enumerate(entries):
            record = self._record(f"{path}/{index}", key, f"{kind}/*", parent)
            for column, (name, cell) in enumerate(entry.items()):
                self._visit_leaf(cell, f"{path}/{index}/{column}", name, record)
            record.last = len(self.records) - 1

    def _visit_leaf(self, value: Json, path: str, key: str, record: ResultRecord) -> None:
        if isinstance(value, str):
            folded = fold(value)
            field = Field(record, path, key, value, folded in self._echoes, None)
            self.said.append(value)
            self._text_fields.append(field)
            self.texts.setdefault(folded, []).append(field)
            is_told = True
        else:
            number = value * SCALE if type(value) is int else number_of(value)
            field = Field(record, path, key, value, False, number)
            is_told = number is not None
        self.fields.append(field)
        record.fields.append(field)
        if is_told and is_naming(key):
            _name(record, str(value))


def _wrapped_in(entry: Json) -> str | None:
    """The only key of an object that says nothing but what its own key is."""
    if not isinstance(entry, dict) or len(entry) != 1:
        return None
    [(key, value)] = entry.items()
    is_short = isinstance(value, str) and "\n" not in value and value[:1] not in ("{", "[")
    return key if key in _WRAPPING and (is_short or isinstance(value, int | float)) else None


def _name(record: ResultRecord, text: str) -> None:
    if 3 <= len(text) <= 80:
        record.names.append(text)


def number_of(value: Json) -> int | None:
    if value is None or isinstance(value, str | bool) or not is_number(value):
        return None
    return of_json(value)


@lru_cache(maxsize=1 << 12)
def shape_of(identifier: str) -> str:
    """What identifiers of one kind have in common: digits are alike, and so are letters where there
    are no words: `hat000`, `000`, `aa0a`."""
    key = identifier_key(identifier)
    digits = _DIGIT.sub("0", key)
    return digits if _LETTERS.search(key) else _LETTER.sub("a", digits)


_BEFORE = frozenset("prev previous prior last yoy ly earlier".split())
_DATED_KEY = re.compile(r"\d{4}-\d\d-\d\d")
_WINDOW = re.compile(r"([01]\d|2[0-4])\s?[-–]\s?([01]\d|2[0-4])")
LONG_TEXT = 400  # characters of a text that tells a story
DESCRIPTION = 200  # of one that describes something
FEW_FIELDS = 8
MOST_HYPHENS = 8  # of an identifier that may be named by its end
FEW_TIMES = 3  # leaves with one time of day; which of more is meant?
MAX_CANDIDATES = 200  # of one value; whatever stands more often can be bound to nothing
_SHORT = 40
_Key = TypeVar("_Key", int, str)


class RecordIndex:
    """Numbers, identifiers, moments and links, each with the leaves that state them."""

    def __init__(self, tree: RecordTree) -> None:
        self.tree = tree
        self.numbers: dict[int, list[Field]] = {}
        self.identifiers: dict[str, list[Field]] = {}
        self.links: dict[str, list[Field]] = {}
        self.moments: dict[tuple[int | None, ...], list[tuple[Moment, Field]]] = {}
        self._minutes: dict[tuple[int | None, ...], list[tuple[Moment, Field]]] = {}
        self._shaped: dict[str, Field] = {}
        self.years: dict[str, list[Field]] = {}
        self.has_bare = self._has_echoes = False
        has_days = any(map(_DATED_KEY.match, tree.keys))
        for record in tree.records if has_days else ():
            if record.fields and _DATED_KEY.match(record.key):
                self._add_text(record.key, record.fields[0])
        for field in tree.fields:
            if not field.key:
                self.has_bare = True
            if field.echo:
                self._has_echoes = True
            if has_days and _DATED_KEY.match(field.key):  # `"rates": {"2026-11-09": 198.42}`
                self._add_text(field.key, field)
            if field.number is not None:
                _note(self.numbers, field.number, field)
                if LEAST_EPOCH * SCALE <= field.number < 10**4 * LEAST_EPOCH * SCALE:
                    for moment in moments_of_epoch(field.number // SCALE, key_words(field.key)):
                        self._add_moment(moment, field)
            elif isinstance(field.value, str):
                text = field.value
                if not (len(text) <= _SHORT and _says_nothing(text)):
                    self._add_text(text, field)

    def names_a_key(self, key: str) -> bool:
        """`PM2.5` where a key is `pm2_5` or `pm25_ugm3`."""
        return key in self.keys or _bare(key) in self._key_words

    @once
    def keys(self) -> frozenset[str]:
        return frozenset(map(identifier_key, self.tree.keys))

    @once
    def shapes(self) -> dict[str, Field]:
        """The first leaf with an identifier of each shape; hardly any answer is asked for one."""
        found: dict[str, Field] = {}
        for text, field in self._shaped.items():
            found.setdefault(shape_of(text), field)
        return found

    @once
    def numbers_of_keys(self) -> frozenset[str]:
        """`30` of `downloads_30d`, `1350` of `base_1350m`, 2025 of `Net Income - 2025 ($M)`."""
        found = (_KEY_NUMBER.fullmatch(key) for key in self.tree.keys)
        years = set(_PERIOD.findall(" ".join(self.tree.keys)))
        return frozenset(years.union(one[1] for one in found if one is not None))

    @once
    def _key_words(self) -> frozenset[str]:
        """The words of the keys that have digits, and what neighbours are together."""
        found: set[str] = set()
        for key in self.tree.keys:
            parts = _NAME_WORD.findall(key.casefold()) if _DIGIT.search(key) else []
            found.update(parts)
            found.update(first + second for first, second in pairwise(parts))
        return frozenset(found)

    @once
    def _ordered(self) -> list[int]:
        return sorted(self.numbers)

    def may_be_less(self, value: Value) -> bool:
        """Could a leaf state this number with a minus sign, or as a name?"""
        is_name = value.text in self.identifiers or value.text in self.years
        return is_name or (bool(self._ordered) and self._ordered[0] <= TOLERANCE)

    def _add_text(self, text: str, field: Field) -> None:
        for value in read_leaf(text):
            for one in flat((value,)) if value.inner else (value,):
                self._add_value(one, field)
        if ":" in text or text.startswith("PT"):
            for moment in moments_elsewhere(text):
                self._add_moment(moment, field)
        if len(text) <= _SHORT and _DIGIT.search(text):
            _note(self.identifiers, identifier_key(text), field)
            self._shaped.setdefault(text, field)

    def _add_value(self, value: Value, field: Field) -> None:
        for reading in value.readings:
            _note(self.numbers, reading, field)
        for moment in value.moments:
            self._add_moment(moment, field)
        if value.kind == "identifier":
            _note(self.identifiers, value.key, field)
            for part in _PERIOD.findall(value.text):  # `2026-Q1`
                _note(self.years if part.isdecimal() else self.identifiers, part.casefold(), field)
            if _LETTER.search(value.key) and (bare := _bare(value.key)) != value.key:
                _note(self.identifiers, bare, field)
            self._shaped.setdefault(value.key, field)
        elif value.kind in ("url", "email"):
            _note(self.links, value.key, field)

    def _add_moment(self, moment: Moment, field: Field) -> None:
        if moment.year is not None:
            _note(self.years, str(moment.year), field)
        for key in moment_keys(moment):
            found = self.moments.setdefault(key, [])
            if len(found) < MAX_CANDIDATES:
                found.append((moment, field))
                if moment.hour is not None:  # most are asked for with their minute
                    self._minutes.setdefault(minute_key(key, moment), []).append((moment, field))

    def stating(self, value: Value, turn: int | None, *, echoes: bool = False) -> list[Field]:
        """The leaves that state this value, echoes of arguments left out unless asked for."""
        found = self._stating(value)
        if self._has_echoes and not echoes:
            found = [field for field in found if not field.echo]
        return served_before(found, turn)

    def _stating(self, value: Value) -> list[Field]:
        found: list[Field] = []
        match value.kind:
            case "number":
                for reading in value.readings:
                    for near in self.between(reading - TOLERANCE, reading + TOLERANCE):
                        found += self.numbers[near]
                if value.text.isdecimal():
                    found += self.identifiers.get(value.text, ())
                    found += self.years.get(value.text, ())
            case "identifier":
                found += self.identifiers.get(value.key, ())
                if not found and _LETTER.search(value.key):
                    found += self.identifiers.get(_bare(value.key), ())
                if not found and value.text.endswith("s"):  # `both P1s`
                    found += self.identifiers.get(value.key[:-1], ())
            case "moment":
                for moment in value.moments:
                    found += self._at(moment)
            case "url" | "email":
                found += self.links.get(value.key, ())
            case "quote" | "code":
                found += self.identifiers.get(identifier_key(value.text), ())
        return found

    def _at(self, moment: Moment) -> Iterator[Field]:
        if moment.groundable:
            key = moment_keys(moment)[0]
            found = self.moments.get(key, ())
            if moment.hour is not None and moment.minute is not None:
                found = self._minutes.get(minute_key(key, moment), ())
            for other, field in found:
                if moment.agrees(other):
                    yield field

    def years_of(self, moment: Moment) -> frozenset[int]:
        """The years in which some leaf has this day and month."""
        found = self.moments.get((moment.month, moment.day), ())
        return frozenset(other.year for other, _ in found if other.year is not None)

    def weekdays_of(self, value: Value) -> frozenset[int]:
        """Of the dates that have this day of the month, or this time."""
        if value.text.isdecimal():
            return self._weekdays_by_day.get(int(value.text[:3]), frozenset())  # no day has more
        moment = value.moments[0] if value.moments else Moment()
        known = self._minutes.get((moment.hour, None, None, moment.hour, moment.minute), ())
        found = {one.weekday for one, _ in known}  # opening hours have a time without a date
        is_clear = None not in found and len(known) <= FEW_TIMES
        return frozenset(day for day in found if is_clear and day is not None)

    @once
    def _weekdays_by_day(self) -> dict[int, frozenset[int]]:
        found: dict[int, set[int]] = {}
        for key, moments in self.moments.items():
            for one, _ in moments if len(key) == 2 else ():
                if one.day is not None and one.weekday is not None:
                    found.setdefault(one.day, set()).add(one.weekday)
        return {day: frozenset(weekdays) for day, weekdays in found.items()}

    def is_year_before(self, digits: str) -> bool:
        """2025, where results of 2026 have a key for the year before."""
        return (
            len(digits) == 4
            and str(int(digits) + 1) in self.years
            and any(not _BEFORE.isdisjoint(key_words(key)) for key in self.tree.keys)
        )

    @once
    def _lengths(self) -> list[int]:
        """How long the texts of the results are."""
        return list(map(len, self.tree.said))

    @once
    def is_prose(self) -> bool:
        """Are the results texts, and hardly any fields? Texts say things that no rule reads."""
        long = len([length for length in self._lengths if length > LONG_TEXT])
        return long > 0 and len(self.tree.fields) - long < FEW_FIELDS

    @once
    def describes(self) -> bool:
        """Do the results describe something in prose, beside what their fields say?"""
        return not self.is_prose and max(self._lengths, default=0) > DESCRIPTION

    def between(self, low: int, high: int) -> list[int]:
        """The numbers from `low` to `high` that some leaf states."""
        ordered = self._ordered
        return ordered[bisect_left(ordered, low) : bisect_right(ordered, high)]

    def held_before(self, turn: int | None) -> Iterator[tuple[int, Field]]:
        """The numbers that were served before that turn, each with the first leaf that has it."""
        for number, fields in self.numbers.items():
            if fields[0].counts_for(turn):
                yield number, fields[0]

    def ending_in(self, digits: str) -> Field | None:
        """A leaf whose identifier ends in these digits."""
        found = self._endings.get(digits[-4:], ())
        return next((field for key, field in found if key.endswith(digits)), None)

    def ends_with(self, key: str) -> Field | None:
        """A leaf whose identifier ends so, after a hyphen."""
        return self._after_hyphen.get(key)

    @once
    def _after_hyphen(self) -> dict[str, Field]:
        found: dict[str, Field] = {}
        for key, fields in self.identifiers.items():
            parts = key.split("-", MOST_HYPHENS)
            for at in range(1, len(parts)):
                found.setdefault("-".join(parts[at:]), fields[0])
        return found

    @once
    def line_counts(self) -> frozenset[int]:
        """How many lines the texts have, with their first one and without it."""
        lengths = (len(list(filter(str.strip, text.splitlines()))) for text in self.tree.said)
        return frozenset(one for length in lengths if length > 1 for one in (length, length - 1))

    @once
    def parts_of_texts(self) -> dict[str, Field]:
        """`mvt5w` of `checkout-7d9f6-mvt5w`: what stands between other signs, as it is written."""
        found: dict[str, Field] = {}
        for text, field in self.tree.text_fields:
            for part in _NAME_WORD.findall(text):
                found.setdefault(part, field)
        return found

    def window_at(self, value: Value) -> Field | None:
        """`16-20`, where 4 PM is meant."""
        moment = value.moments[0] if value.moments else None
        if moment is None or moment.hour is None or moment.has_day or moment.minute:
            return None
        return self._windows.get(moment.hour)

    @once
    def _windows(self) -> dict[int, Field]:
        found: dict[int, Field] = {}
        for text, field in self.tree.text_fields:
            window = _WINDOW.fullmatch(text)
            for hour in window.groups() if window else ():
                found.setdefault(int(hour), field)
        return found

    @once
    def _endings(self) -> dict[str, list[tuple[str, Field]]]:
        endings: dict[str, list[tuple[str, Field]]] = {}
        for key, fields in self.identifiers.items():
            if len(key) > 4 and key[-4:].isdecimal():
                endings.setdefault(key[-4:], []).append((key, fields[0]))
        return endings


@lru_cache(maxsize=1 << 13)
def _says_nothing(text: str) -> bool:
    """No value, no time and no digit: most short texts."""
    return not (_DIGIT.search(text) or ":" in text or text.startswith("PT") or read_leaf(text))


@lru_cache(maxsize=1 << 12)
def _bare(key: str) -> str:
    """Letters and digits alone: `pm25` of `pm2.5`."""
    return "".join(filter(str.isalnum, key))


def _note(index: dict[_Key, list[Field]], key: _Key, field: Field) -> None:
    found = index.get(key)
    if found is None:
        index[key] = [field]
    elif len(found) < MAX_CANDIDATES and found[-1] is not field:
        found.append(field)


class RecordSubject(Frozen, frozen=True):
    """What a value is said of. `beside`: the name stands right before it, so that nobody else can
    be meant; `inherited`: by what the line stands under, or after; `loose`: by what is no name, but
    tells the record from its siblings; `distant`: in another sentence of its line."""

    records: tuple[ResultRecord, ...]
    beside: bool = False
    inherited: bool = False
    loose: bool = False
    distant: bool = False
