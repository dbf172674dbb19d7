"""Reading a dataset twice as a stream: first everything is checked, then samples come out.

A million items need no memory for a million items: of the first reading only counts, a hash and
the places of the ids are kept."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Literal, Self

import msgspec

from callmark.datasets.schema import (
    HEADER_KEY,
    BadHeader,
    header_keys,
    header_of,
    is_header,
    item_keys,
    item_problems,
)
from callmark.errors import BadInput, OutputFailed
from callmark.records.jsontext import Json, NotJson, digest_parsed, want_object
from callmark.records.problems import Problems, show_value
from callmark.records.samples import (
    Header,
    Kind,
    Sample,
    brought_tools,
    expectation_of,
    sample_id_of,
    sample_of,
    tools_of_checks,
)
from callmark.stats.columns import KeyIndex
from callmark.store.files import Line, is_blank, lines_of, object_of, open_input


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the dataset holds, known before anything is run. Numbers of samples throughout."""

    samples: int
    kinds: dict[Kind, int]
    expecting_calls: int
    multi_call: int
    retry: int
    with_facts: int
    locale_probes: dict[str, int]  # by locale; "" where the sample names none
    locales: dict[str, int]
    slices: dict[str, int]
    clusters: bool
    tools: dict[str, int]  # by expected tool
    offered: dict[str, int]  # by tool that samples name in `metadata.tools`
    offered_line: dict[str, int]  # where such a tool is named first
    checked_line: dict[str, int] = {}  # the same for tools that checks name
    brought: frozenset[str] = frozenset()  # tools whose specs stand in samples


class FactTally:
    """Counts for `Facts`, one item at a time."""

    def __init__(self) -> None:
        self.samples = 0
        self._kinds: Counter[Kind] = Counter()
        self._numbers: Counter[str] = Counter()
        self._probes: Counter[str] = Counter()
        self._locales: Counter[str] = Counter()
        self._slices: Counter[str] = Counter()
        self._tools: Counter[str] = Counter()
        self._offered: Counter[str] = Counter()
        self._offered_line: dict[str, int] = {}
        self._checked_line: dict[str, int] = {}
        self._brought: set[str] = set()

    def count(self, item: dict[str, Json], line: int) -> None:
        expectation = expectation_of(want_object(item.get("metadata")))
        calls = expectation.calls
        self.samples += 1
        self._kinds[expectation.kind] += 1
        if calls:
            self._numbers["expecting_calls"] += 1
            self._numbers["multi_call"] += len(calls) > 1
        if expectation.retry:
            self._numbers["retry"] += 1
        if expectation.required_facts:
            self._numbers["with_facts"] += 1
        if expectation.cluster is not None:
            self._numbers["clusters"] += 1
        if expectation.locale_probe:
            self._probes[expectation.locale or ""] += 1
        if expectation.locale:
            self._locales[expectation.locale] += 1
        for one in expectation.slices:
            self._slices[one] += 1
        for name in {call.name for call in calls}:
            self._tools[name] += 1
        if expectation.tools:
            self._count_tools(expectation.tools, brought_tools(expectation), line)
        if expectation.checks:
            for tool in tools_of_checks(expectation.checks):
                self._checked_line.setdefault(tool, line)

    def _count_tools(self, tools: Sequence[str], own: frozenset[str], line: int) -> None:
        self._brought |= own
        for tool in set(tools) - own:
            self._offered[tool] += 1
            self._offered_line.setdefault(tool, line)

    def facts(self) -> Facts:
        numbers = self._numbers
        return Facts(
            samples=self.samples,
            kinds=dict(sorted(self._kinds.items())),
            expecting_calls=numbers["expecting_calls"],
            multi_call=numbers["multi_call"],
            retry=numbers["retry"],
            with_facts=numbers["with_facts"],
            locale_probes=dict(sorted(self._probes.items())),
            locales=dict(sorted(self._locales.items())),
            slices=dict(sorted(self._slices.items())),
            clusters=bool(numbers["clusters"]),
            tools=dict(sorted(self._tools.items())),
            offered=dict(sorted(self._offered.items())),
            offered_line=dict(sorted(self._offered_line.items())),
            checked_line=dict(sorted(self._checked_line.items())),
            brought=frozenset(self._brought),
        )


Item = dict[str, Json]


def located_items(stream: BinaryIO, name: str) -> Iterator[tuple[Line, Item]]:
    """Every item with its line; the header is left out."""
    is_first = True
    for line in lines_of(stream, name):
        if is_blank(line.json):
            continue
        item = located_object(line, name)
        if not (is_first and _is_header(item, line, name)):
            yield line, item
        is_first = False


def find_header(stream: BinaryIO, name: str) -> tuple[Line, Item] | None:
    """The header line, in whichever form, if the dataset begins with one."""
    for line in lines_of(stream, name):
        if not is_blank(line.json):
            item = located_object(line, name)
            return (line, item) if _is_header(item, line, name) else None
    return None


def header_fields(header: Item) -> Item:
    """What a header says, the same for both forms."""
    mark = header[HEADER_KEY]
    if isinstance(mark, dict):
        return mark
    return {name: value for name, value in header.items() if name != HEADER_KEY}


def line_of_sample(path: Path, sample_id: str) -> int | None:
    with open_input(path) as stream:
        for line, item in located_items(stream, str(path)):
            if sample_id_of(item) == sample_id:
                return line.number
    return None


def located_object(line: Line, name: str) -> Item:
    try:
        return object_of(line.json)
    except NotJson as error:
        raise BadInput(f"{name}:{line.number}: {error}") from None


def _is_header(item: Item, line: Line, name: str) -> bool:
    try:
        return is_header(item)
    except BadHeader as error:
        raise BadInput(f"{name}:{line.number}: {error}") from None


STDIN = "<stdin>"


class Checked(msgspec.Struct, frozen=True, kw_only=True):
    """What the first reading found out: with it another process needs no first reading."""

    name: str
    path: str
    header: Header
    header_place: str
    has_header: bool
    sha256: str
    facts: Facts
    warnings: tuple[str, ...]
    stamp: tuple[int, int, int, int]


# Called for every item of the first reading with its id and the offset of its line.
NoteItem = Callable[[str, int], None]


class Dataset:
    """A dataset that passed its first reading. Leaving the context removes a spooled copy."""

    def __init__(self, source: _Source, checked: Checked) -> None:
        self.name = checked.name
        self.header = checked.header
        self.has_header = checked.has_header
        self.header_place = checked.header_place
        self.sha256 = checked.sha256
        self.facts = checked.facts
        self.warnings = checked.warnings
        self.checked = checked
        self._source = source

    def samples(self, is_wanted: Callable[[str], bool] | None = None) -> Iterator[Sample]:
        """The second reading. A file that is not the one that was checked ends it. `is_wanted` is
        asked by id, before anything is made of an item."""
        for index, sample_id, item in self._items():
            if is_wanted is None or is_wanted(sample_id):
                sha256 = digest_parsed(item)
                yield sample_of(item, index=index, sample_id=sample_id, item_sha256=sha256)

    def ids(self) -> Iterator[str]:
        """Of all samples, in their order."""
        return (sample_id for _, sample_id, _ in self._items())

    def _items(self) -> Iterator[tuple[int, str, dict[str, Json]]]:
        with self._source.open() as stream:
            self._check_unchanged(stream)
            stream.seek(0)
            yield from self._second_reading(stream)

    def _check_unchanged(self, stream: BinaryIO) -> None:
        stream.seek(0)
        # The stamp is cheap and mostly enough; a copied or touched file with the same bytes is
        # fine, too.
        if _stamp(stream) != self.checked.stamp and _sha256_of(stream, self.name) != self.sha256:
            raise self._changed()

    def line_of(self, sample: Sample) -> int:
        """Where a sample stands. Read again to find out: of a million no place is kept."""
        with self._source.open() as stream:
            items = islice(located_items(stream, self.name), sample.index, None)
            return next(line.number for line, _ in items)

    def _second_reading(self, stream: BinaryIO) -> Iterator[tuple[int, str, dict[str, Json]]]:
        hasher = hashlib.sha256()
        index = 0
        header_due = self.has_header
        for line in lines_of(stream, self.name):
            if header_due:
                header_due = is_blank(line.json)
                continue
            hasher.update(line.data)
            if is_blank(line.json):
                continue
            try:
                item = object_of(line.json)
            except NotJson:
                raise self._changed() from None
            yield index, sample_id_of(item), item
            index += 1
        # Every trial would carry a dataset hash that is not that of what was asked.
        if hasher.hexdigest() != self.sha256:
            raise self._changed()

    def _changed(self) -> BadInput:
        return BadInput(
            f"{self.name}: the file changed while it was in use:"
            " run it again when nothing writes to it"
        )

    def close(self) -> None:
        self._source.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class PartOfDataset(Dataset):
    """Some samples of a dataset that was checked elsewhere, read without reading the others."""

    def __init__(self, checked: Checked, index: Sequence[int], offset: Sequence[int]) -> None:
        """`index` and `offset` of each of them."""
        super().__init__(_Source(checked.name, Path(checked.path)), checked)
        self._index = index
        self._offset = offset
        self.count = len(index)

    def _items(self) -> Iterator[tuple[int, str, dict[str, Json]]]:
        with self._source.open() as stream:
            self._check_unchanged(stream)
            for index, offset in zip(self._index, self._offset, strict=True):
                stream.seek(offset)
                try:
                    item = object_of(Line(0, offset, stream.readline()).json)
                except NotJson:
                    raise self._changed() from None
                yield index, sample_id_of(item), item
            # Somebody may have written to it while it was read.
            self._check_unchanged(stream)


_LISTED_KEYS = 20
_KEPT_KEYS = 1000  # somebody may have used ids as keys
_MOST_MORE = _KEPT_KEYS - _LISTED_KEYS
_NO_HEADER = (
    "{name}: no header line: nothing says which tools and fixtures it was made for;"
    " `callmark dataset seal` writes one"
)


def open_dataset(path: Path | Literal["-"], note: NoteItem | None = None) -> Dataset:
    """Reads and checks a whole dataset; `-` is standard input. Up to 20 problems are named."""
    source = _source_of(path)
    try:
        with source.open() as stream:
            first = _FirstReading(source.name, stream, note)
            first.run()
        return Dataset(source, first.checked(source.path))
    except BaseException:
        source.close()
        raise


def dataset_sha256(path: str | PathLike[str]) -> str:
    """Hash a dataset, as its header pins it in `dataset_sha256`.

    Args:
        path: the dataset, a JSONL file, packed or not.

    Returns:
        SHA-256 (hex) over its bytes after the header line; over all bytes if there is none.

    Raises:
        UsageError: there is no such file.
        BadInput: it cannot be read.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> len(callmark.dataset_sha256(demo_paths().dataset))
    64
    """
    with open_input(Path(path)) as stream:
        return _sha256_of(stream, str(path))


class _FirstReading:
    def __init__(self, name: str, stream: BinaryIO, note: NoteItem | None) -> None:
        self.header: Header | None = None
        self.header_line = 1
        self.kept: dict[str, int] = {}  # unknown keys, and the line of the first of each
        self.hasher = hashlib.sha256()
        self.tally = FactTally()
        self.stamp = _stamp(stream)
        self._name = name
        self._stream = stream
        self._ids = KeyIndex()
        self._problems = Problems()
        self._note = note

    def checked(self, path: Path) -> Checked:
        return Checked(
            name=self._name,
            path=str(path),
            header=self.header or Header(),
            header_place=f"{self._name}:{self.header_line}",
            has_header=self.header is not None,
            sha256=self.hasher.hexdigest(),
            facts=self.tally.facts(),
            warnings=_warnings_of(self._name, self),
            stamp=self.stamp,
        )

    def run(self) -> None:
        first, other_form = True, None
        for line in lines_of(self._stream, self._name):
            self.hasher.update(line.data)
            if is_blank(line.json):
                continue
            # One line may be spoilt. What is no JSON lines at all is said once, not line by line.
            if first:
                other_form = _other_form(line, self._name)
            elif other_form is not None and not _is_object(line):
                break
            else:
                other_form = None
            try:
                self._take(line, first)
            except (NotJson, BadHeader) as error:
                self._problems.add(f"{self._name}:{line.number}", str(error))
            first = False
            if self._problems.is_enough:
                break
        if other_form is not None:
            raise BadInput(other_form)
        # After all lines: two samples of one id would be one trial in the journal, and one of them
        # lost.
        for number, earlier, offset in self._ids.clashes():
            self._problems.add(f"{self._name}:{number}", self._clash(offset, earlier))
        self._problems.raise_if_any()
        if not self.tally.samples:
            what = "has no items" if self.header is None else "has a header, but no items"
            raise BadInput(f"{self._name}: the dataset is empty: it {what}")

    def _take(self, line: Line, first: bool) -> None:
        item = object_of(line.json)
        if is_header(item):
            if not first:
                raise BadHeader("__header__: only the first line may be a header")
            self.hasher = hashlib.sha256()
            self.header = Header()
            self.header_line = line.number
            keys = header_keys(item)
            self._problems.add(f"{self._name}:{line.number}", keys.slips)
            self._keep(keys.kept, line.number)
            self.header = header_of(item)
            return
        keys = item_keys(item)
        problems = item_problems(item, keys)
        if problems:
            self._problems.add(f"{self._name}:{line.number}", problems)
            return
        self._keep(keys.kept, line.number)
        sample_id = sample_id_of(item)
        self._ids.add(sample_id, line.number, line.offset)
        if self._note is not None:
            self._note(sample_id, line.offset)
        self.tally.count(item, line.number)

    def _keep(self, keys: Sequence[str], line: int) -> None:
        for key in keys:
            if len(self.kept) < _KEPT_KEYS:
                self.kept.setdefault(key, line)

    def _clash(self, offset: int, earlier: int) -> str:
        self._stream.seek(offset)
        item = object_of(Line(0, offset, self._stream.readline()).json)
        metadata = want_object(item.get("metadata"))
        if metadata.get("sample_id") in (None, "") and item.get("sample_id") in (None, ""):
            return f"sample_id: none is given, and the item is the same as on line {earlier}"
        return f"sample_id: {show_value(sample_id_of(item))} is the id of line {earlier} too"


def _is_object(line: Line) -> bool:
    try:
        object_of(line.json)
    except NotJson:
        return False
    return True


def _other_form(line: Line, name: str) -> str | None:
    """What to say of a file whose first line is that of another kind of file."""
    first, text = line.json, line.json.strip()
    source = "FILE" if name == STDIN else name
    imported = f"`callmark dataset import {source} --out NEW.jsonl` makes one of it"
    if text.startswith(b"["):
        what = f"is a JSON list; {imported}"
    elif first.startswith(_TABLES):
        what = f"is a Parquet table or an archive; {imported}"
    elif text == b"{":
        what = f"is a JSON value that goes over many lines; {imported}"
    elif _is_row_of_names(text.decode("utf-8", "replace")):
        what = (
            'seems to be CSV; write each row as {"prompt": …, "metadata": {…}}, for example with'
            " Python's csv.DictReader and json.dumps"
        )
    elif _is_prose(text):
        what = f"begins with {show_value(text[:_SHOWN].decode())}"
    else:
        return None
    place = f"{name}:{line.number}"
    return f"{place}: a dataset has one JSON object on each line, but this {what}"


def _is_prose(text: bytes) -> bool:
    """A program or a letter: its first line has words, and none of the signs of JSON."""
    return re.fullmatch(rb"[A-Za-z#][\w .,;:'()=-]*", text) is not None and b" " in text


_SHOWN = 40
_TABLES = (b"PAR1", b"PK\x03\x04")
_NAME = re.compile(r"[\w .-]*")


def _is_row_of_names(text: str) -> bool:
    cells = re.split(r"[,;\t]", text)
    return len(cells) > 1 and all(_NAME.fullmatch(cell.strip().strip('"')) for cell in cells)


class _Source:
    """A file that can be opened twice: the user's own, or a copy of what came once only."""

    def __init__(self, name: str, path: Path, *, spooled: bool = False) -> None:
        self.name = name
        self.path = path
        self._spooled = spooled

    def open(self) -> BinaryIO:
        return open_input(self.path)

    def close(self) -> None:
        if self._spooled:
            self.path.unlink(missing_ok=True)


def _source_of(path: Path | Literal["-"]) -> _Source:
    if path == "-":
        return _Source(STDIN, _spool(sys.stdin.buffer), spooled=True)
    return _Source(str(path), Path(path))


def _spool(stream: BinaryIO) -> Path:
    fd, name = tempfile.mkstemp(prefix="callmark-", suffix=".jsonl")
    try:
        with os.fdopen(fd, "wb") as copy:
            shutil.copyfileobj(stream, copy)
    except BaseException as error:
        Path(name).unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise OutputFailed(
                f"{name}: the dataset could not be copied there: {error.strerror}."
                " Free some space, or let TMPDIR point to another folder."
            ) from None
        raise
    return Path(name)


def _sha256_of(stream: BinaryIO, name: str) -> str:
    hasher = hashlib.sha256()
    for line in lines_of(stream, name):
        hasher.update(line.data)
        if is_blank(line.json):
            continue
        if _opens_with_header(line, name):
            hasher = hashlib.sha256()
        break
    while block := stream.read(1 << 20):
        hasher.update(block)
    return hasher.hexdigest()


def _opens_with_header(line: Line, name: str) -> bool:
    try:
        return is_header(object_of(line.json))
    except NotJson:
        return False
    except BadHeader as error:
        raise BadInput(f"{name}:{line.number}: {error}") from None


def _stamp(stream: BinaryIO) -> tuple[int, int, int, int]:
    status = os.fstat(stream.fileno())
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _warnings_of(name: str, first: _FirstReading) -> tuple[str, ...]:
    warnings = [_NO_HEADER.format(name=name)] if first.header is None else []
    if first.kept:
        listed = [f"{key} (line {line})" for key, line in first.kept.items()]
        more = len(listed) - _LISTED_KEYS
        rest = "" if more <= 0 else f" and {more} more" + ("" if more < _MOST_MORE else " or more")
        warnings.append(
            f"{name}: unknown keys, kept and otherwise without effect:"
            f" {', '.join(listed[:_LISTED_KEYS])}{rest}; a key that starts with x_ is not listed"
        )
    return tuple(warnings)
