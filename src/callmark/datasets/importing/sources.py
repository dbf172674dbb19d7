"""What somebody names as the source of an import (files, folders, globs, standard input), and its
entries, whatever holds them: lines, one JSON document, an archive, a table, a folder."""

from __future__ import annotations

import glob
import gzip
import io
import json
import os
import re
import shutil
import struct
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO, Literal, cast

import msgspec

from callmark.datasets.importing.desk import Record
from callmark.errors import BadInput, MissingExtra
from callmark.records.jsontext import Json, NotJson, lines_of_entries, parse_json
from callmark.records.problems import show_value
from callmark.store.files import LINE_DEPTH, is_blank, lines_of, open_input, read_input

# What is written of an entry wraps it once more, and has to be read again.
MAX_DEPTH = LINE_DEPTH - 20
_NOT_A_NUMBER = re.compile(rb"\b(?:NaN|Infinity)\b")


def parse_log(data: bytes) -> Json:
    try:
        return parse_json(data, max_depth=MAX_DEPTH)
    except NotJson:
        if not _NOT_A_NUMBER.search(data):
            raise
    try:
        value = json.loads(data.decode(), parse_constant=lambda _: None)
        return parse_json(json.dumps(value), max_depth=MAX_DEPTH)
    except (ValueError, RecursionError):
        return parse_json(data, max_depth=MAX_DEPTH)  # says what is wrong and where


_GZIP = b"\x1f\x8b"


def open_log(path: Path) -> BinaryIO:
    """A file to read, unpacked on the way if it is packed with gzip, whatever its name."""
    stream = open_input(path)
    magic = stream.read(len(_GZIP))
    stream.seek(0)
    return cast("BinaryIO", io.BufferedReader(_Gunzip(stream, path))) if magic == _GZIP else stream


class _Gunzip(io.RawIOBase):
    """A damaged archive is bad input, wherever in it the damage is met."""

    def __init__(self, stream: BinaryIO, path: Path) -> None:
        self._packed = stream
        self._path = path
        self._stream = gzip.GzipFile(fileobj=stream, mode="rb")

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        try:
            data = self._stream.read1(len(buffer))
        except (EOFError, OSError, zlib.error) as error:
            raise BadInput(f"{self._path}: is damaged: {error}") from None
        buffer[: len(data)] = data
        return len(data)

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return self._stream.seek(offset, whence)

    def tell(self) -> int:
        return self._stream.tell()

    def close(self) -> None:
        self._stream.close()
        self._packed.close()
        super().close()


MAX_MEMBER = 1 << 28
MAX_TOTAL = 1 << 33
MAX_DOCUMENT = 1 << 31  # it is read whole; a packed one may unpack to anything
HEADERS = ("header.json", "_journal/start.json")
SAMPLE = re.compile(r"samples/.+\.json")

_ZSTANDARD = 93
_STDLIB = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 1


def records_of_archive(path: Path) -> Iterator[Record]:
    """The header, then every sample; their numbers count from 1."""
    try:
        with open_log(path) as stream, zipfile.ZipFile(stream) as archive:
            members = _latest(archive.infolist())
            header = next((members[name] for name in HEADERS if name in members), None)
            if header is None:
                raise BadInput(f"{path}: has no header.json, so it is not an Inspect log")
            samples = [info for name, info in members.items() if SAMPLE.fullmatch(name)]
            total = header.file_size + sum(info.file_size for info in samples)
            if total > MAX_TOTAL:
                raise BadInput(f"{path}: would unpack to {total} bytes, more than {MAX_TOTAL}")
            yield Record(1, _archived_value(path, archive, header))
            for number, info in enumerate(samples, start=1):
                yield Record(number, _archived_value(path, archive, info))
    except (zipfile.BadZipFile, NotImplementedError, struct.error, OSError) as error:
        raise BadInput(f"{path}: cannot be read as an archive: {error}") from None


def _latest(infos: list[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """A member that was written again counts as it was written last, at its first place."""
    members: dict[str, zipfile.ZipInfo] = {}
    for info in infos:
        members[info.filename] = info
    return members


def _archived_value(path: Path, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> object:
    where = f"{path}: {info.filename!r}"
    if info.file_size > MAX_MEMBER:
        raise BadInput(f"{where}: unpacks to {info.file_size} bytes, more than {MAX_MEMBER}")
    if info.flag_bits & _ENCRYPTED:
        raise BadInput(f"{where}: is encrypted")
    data = _unpack(archive, info, where)
    if len(data) != info.file_size:
        raise BadInput(f"{where}: unpacks to another size than the archive says")
    try:
        return parse_log(data)
    except NotJson as error:
        raise BadInput(f"{where}:{error.line}: {error}") from None


def _unpack(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> bytes:
    """At most one byte more than the archive says, so that a lie shows and does no harm."""
    limit = info.file_size + 1
    try:
        if info.compress_type == _ZSTANDARD:
            data = _zstandard(_raw(archive.fp, info), limit)
            if len(data) == info.file_size and zlib.crc32(data) != info.CRC:
                raise ValueError("the checksum differs")
            return data
        if info.compress_type not in _STDLIB:
            raise BadInput(f"{where}: compression method {info.compress_type} is not known")
        with archive.open(info) as member:
            return member.read(limit)
    except (EOFError, ValueError, NotImplementedError, zlib.error) as error:
        raise BadInput(f"{where}: is damaged: {error}") from None


def _raw(stream: IO[bytes] | None, info: zipfile.ZipInfo) -> bytes:
    """The packed bytes of a member whose method the standard library does not know."""
    if stream is None or info.compress_size > MAX_MEMBER:
        raise ValueError("the packed size is too large")
    stream.seek(info.header_offset)
    fields = _LOCAL_HEADER.unpack(stream.read(_LOCAL_HEADER.size))
    if fields[0] != b"PK\x03\x04":
        raise ValueError("no member begins where the archive says")
    stream.seek(fields[-2] + fields[-1], 1)
    return stream.read(info.compress_size)


def _zstandard(packed: bytes, limit: int) -> bytes:
    try:
        import pyarrow
    except ImportError:
        raise MissingExtra("reading this .eval log (zstandard)", "inspect") from None
    try:
        with pyarrow.CompressedInputStream(pyarrow.BufferReader(packed), "zstd") as stream:
            data: bytes = stream.read(limit)
            return data
    except pyarrow.ArrowException as error:
        raise ValueError(error) from None


FRAME = "results.json"
SIMULATIONS = "simulations"
INDEX = "simulation_index"


def records_of_folder(folder: Path) -> Iterator[Record]:
    """The frame, then every simulation; their numbers count from 1."""
    if not (folder / FRAME).is_file() or not (folder / SIMULATIONS).is_dir():
        raise BadInput(
            f"{folder}: is a folder without {FRAME} and {SIMULATIONS}/, as tau2 writes them;"
            " name a file"
        )
    frame = _value(folder / FRAME)
    files = {path.stem: path for path in sorted((folder / SIMULATIONS).glob("*.json"))}
    listed = _list(frame)
    missing = [name for name in listed if name not in files]
    if missing:
        raise BadInput(
            f"{folder / FRAME}: {INDEX}: {len(missing)} simulations have no file in"
            f" {SIMULATIONS}/, the first is {missing[0]!r}"
        )
    yield Record(1, frame)
    for number, name in enumerate(dict.fromkeys([*listed, *files]), start=1):
        yield Record(number, _value(files[name]))


def _list(frame: Json) -> list[str]:
    index = frame.get(INDEX) if isinstance(frame, dict) else None
    entries = index if isinstance(index, list) else []
    return [str(entry.get("id")) for entry in entries if isinstance(entry, dict)]


def _value(path: Path) -> Json:
    try:
        return parse_log(read_input(path))
    except NotJson as error:
        raise BadInput(f"{path}:{error.line}: {error}") from None


# Key of the file's own metadata: the header of a table that was exported from here, whose
# columns hold JSON texts.
OURS = b"callmark.header"
JSON_COLUMNS = ("prompt", "metadata", "rest")
_ROWS = 1024


def records_of_table(path: Path) -> Iterator[Record]:
    """Rows count from 1. A null is an absent field."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("reading Parquet", "parquet") from None
    try:
        with open_log(path) as stream, parquet.ParquetFile(stream) as table:
            kept = table.schema_arrow.metadata or {}
            ours = OURS in kept
            if ours:
                yield Record(0, {"__header__": _json(kept[OURS], f"{path}: {OURS.decode()}")})
            number = 0
            for batch in table.iter_batches(_ROWS):
                for row in batch.to_pylist():
                    number += 1
                    yield Record(number, _item(row, f"{path}:{number}") if ours else _present(row))
    except (arrow.ArrowException, OSError) as error:
        raise BadInput(f"{path}: cannot be read as Parquet: {error}") from None


def _item(row: dict[str, Json], place: str) -> Json:
    item: dict[str, Json] = {}
    for name, value in row.items():
        if value is None:
            continue
        if name == "rest":
            rest = _json(value, f"{place}: {name}")
            if not isinstance(rest, dict):
                raise BadInput(f"{place}: {name}: must hold a JSON object")
            item |= rest
        elif name != "sample_id":
            item[name] = _json(value, f"{place}: {name}") if name in JSON_COLUMNS else value
    return item


def _json(text: Json, where: str) -> Json:
    if not isinstance(text, bytes | str):
        raise BadInput(f"{where}: must be a text that holds JSON, not {type(text).__name__}")
    try:
        return parse_json(text, max_depth=MAX_DEPTH)
    except NotJson as error:
        raise BadInput(f"{where}: {error}") from None


def _present(value: Json) -> Json:
    """Columns of structs fill up with nulls what other rows have."""
    if isinstance(value, dict):
        return {name: _present(inner) for name, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_present(entry) for entry in value]
    if isinstance(value, str | int | float | bool | None):
        return value
    return str(value)


Container = Literal["lines", "document", "archive", "table", "folder"]
# Of a document that is an object, these lists are its entries.
ENTRIES = ("samples", "simulations")

# What a message has not: an entry that says its type and holds one of these is a whole of its own.
_ENTRY_KEYS = frozenset(
    {
        *("messages", "interactions", "request", "steps", "payload", "sessionId", "session_id"),
        *("uuid", "run_type", "trace_id", "span_id"),
    }
)

_MAGIC: dict[bytes, Container] = {b"PK\x03\x04": "archive", b"PAR1": "table"}
_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\r\n"
_SHOWN = 60  # of a file that is no JSON
_MARK = re.compile(r"[^ \t\r\n]")


def container_of(path: Path) -> Container:
    """By the file's first bytes, never by its name."""
    if path.is_dir():
        return "folder"
    with open_log(path) as stream:
        magic = stream.read(4)
        if magic in _MAGIC:
            return _MAGIC[magic]
        stream.seek(0)
        first, number, others = None, 1, False
        for line in lines_of(stream, str(path)):
            if is_blank(line.json):
                continue
            if first is not None:
                others = True
                break
            first, number = line.json, line.number
    if first is None:
        raise BadInput(f"{path}: is empty")
    try:
        value = parse_json(first, max_depth=MAX_DEPTH)
    except NotJson:
        if not first.lstrip().startswith((b"{", b"[")):
            raise BadInput(f"{path}:{number}: {_describe_text(first)}") from None
        return "document" if _goes_on(first) or not others else "lines"
    return "lines" if others or not _is_document(value) else "document"


def records_of(path: Path, container: Container) -> Iterator[Record]:
    match container:
        case "archive":
            return records_of_archive(path)
        case "table":
            return records_of_table(path)
        case "folder":
            return records_of_folder(path)
        case "document":
            return _of_document(path)
        case "lines":
            return _of_lines(path)


def _describe_text(first: bytes) -> str:
    """What a file that is no JSON begins with."""
    shown = show_value(first[:_SHOWN].decode("utf-8", "replace").strip())
    return (
        f"not JSON: begins with {shown}. callmark reads JSON, JSON lines, Parquet and Inspect"
        " archives, packed with gzip or not, and folders of these"
    )


def _goes_on(first: bytes) -> bool:
    """Whether a line that is no JSON is the beginning of some: what is wrong is that it ends."""
    text = first.decode("utf-8", "replace").rstrip()
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.pos >= len(text) - 1
    except (ValueError, RecursionError):
        return False
    return False


def _is_document(value: Json) -> bool:
    if isinstance(value, dict):
        return any(isinstance(value.get(name), list) for name in (*ENTRIES, INDEX))
    if not isinstance(value, list) or not value or not isinstance(value[0], dict | list):
        return False
    return not _is_conversation(value)


def _is_conversation(entries: list[Json]) -> bool:
    """Whether a list is one conversation, message by message, and not a list of conversations."""
    first = entries[0] if entries else None
    if not isinstance(first, dict):
        return False
    is_typed = isinstance(first.get("type"), str) and not _ENTRY_KEYS & first.keys()
    return "role" in first or "lc" in first or is_typed or {"from", "value"} <= first.keys()


def _of_lines(path: Path) -> Iterator[Record]:
    with open_log(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.json):
                continue
            try:
                yield Record(line.number, parse_json(line.json, max_depth=MAX_DEPTH))
            except NotJson as error:
                raise BadInput(f"{path}:{line.number}: {error}") from None


def _of_document(path: Path) -> Iterator[Record]:
    """A list by its entries; an object whose entries are a list first without them, then each of
    them; any other object as it is."""
    with open_log(path) as stream:
        data = stream.read(MAX_DOCUMENT + 1).removeprefix(_BOM)
    if len(data) > MAX_DOCUMENT:
        raise BadInput(f"{path}: is one JSON document of more than {MAX_DOCUMENT} bytes")
    try:
        value = parse_log(data)
    except NotJson as error:
        if _is_followed(data):
            yield from _of_documents(data.decode(), path)
            return
        raise BadInput(f"{path}:{error.line}: {error}") from None
    text = data.decode()
    if isinstance(value, list) and _is_conversation(value):
        yield Record(1, value)
        return
    if isinstance(value, list):
        yield from map(Record, lines_of_entries(text), value)
        return
    if not isinstance(value, dict):
        yield Record(1, value)
        return
    name = next((one for one in ENTRIES if isinstance(value.get(one), list)), None)
    if name is None and INDEX in value:
        yield from records_of_folder(path.parent)
        return
    if name is None:
        yield Record(1, value)
        return
    entries = value.pop(name)
    start = _start_of_member(text, name)
    before = text.count("\n", 0, start)
    yield Record(1, value)
    lines = (line + before for line in lines_of_entries(text[start:]))
    yield from map(Record, lines, entries)


def _is_followed(data: bytes) -> bool:
    """Whether one document ends and another begins."""
    try:
        text = data.decode()
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.msg == "Extra data" and text[error.pos] in "{["
    except (ValueError, RecursionError):
        pass
    return False


def _of_documents(text: str, path: Path) -> Iterator[Record]:
    """One after the other over many lines each, as console exporters and `jq` print them."""
    scan = json.JSONDecoder().raw_decode
    at, line = 0, 1
    while (start := _next_mark(text, at)) is not None:
        line += text.count("\n", at, start)
        try:
            end = scan(text, start)[1]
        except (ValueError, RecursionError):
            end = len(text)  # the strict reader says what is wrong
        try:
            yield Record(line, parse_log(text[start:end].encode()))
        except NotJson as error:
            raise BadInput(f"{path}:{line + error.line - 1}: {error}") from None
        line += text.count("\n", start, end)
        at = end


def _next_mark(text: str, at: int) -> int | None:
    """Where the next thing begins that is no blank."""
    found = _MARK.search(text, at)
    return None if found is None else found.start()


def _start_of_member(text: str, name: str) -> int:
    """Where the list below a name of the outermost object begins; of two the last counts."""
    decode = json.JSONDecoder().raw_decode
    at = _after_blank(text, 0) + 1
    start = at
    while text[at := _after_blank(text, at)] != "}":
        key, at = decode(text, at)
        at = _after_blank(text, _after_blank(text, at) + 1)
        if key == name:
            start = at
        at = _after_blank(text, decode(text, at)[1])
        at += text[at] == ","
    return start


def _after_blank(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


STANDARD_INPUT = "-"
_GLOB_MARKS = frozenset("*?[")


class LogFile(msgspec.Struct, frozen=True):
    """One file to read. `name`: what people call it; `found`: in a folder or by a pattern, so that
    it may be something else than a log."""

    path: Path
    name: str
    found: bool = False


def list_files(sources: Sequence[str | Path], stack: ExitStack) -> list[LogFile]:
    """Every file that the sources stand for, each once, in the order of the sources; within one of
    them sorted by name. Standard input is spooled to a file that goes with the stack."""
    files: dict[Path, LogFile] = {}
    for source in sources:
        for file in _files_of(str(source), stack):
            files.setdefault(file.path.absolute(), file)
    if not files:
        raise BadInput(f"{', '.join(map(str, sources))}: no file in it")
    return list(files.values())


def _files_of(source: str, stack: ExitStack) -> Iterator[LogFile]:
    path = Path(source)
    if source == STANDARD_INPUT:
        yield _spool(stack)
    elif path.is_dir() and not _is_one_log(path):
        yield from _walk(path)
    elif not path.exists() and is_pattern(source):
        # A pattern may begin anywhere, which `Path.glob` does not take.
        matches = sorted(glob.glob(source, recursive=True))  # noqa: PTH207
        if not matches:
            raise BadInput(f"{source}: matches no file")
        for match in map(Path, matches):
            if match.is_dir() and not _is_one_log(match):
                # `logs/**` matches the folders and, by themselves, the files in them.
                yield from () if "**" in source else _walk(match)
            else:
                yield LogFile(match, str(match), found=True)
    else:
        yield LogFile(path, source)


def is_pattern(source: str) -> bool:
    return not _GLOB_MARKS.isdisjoint(source)


def _walk(folder: Path) -> Iterator[LogFile]:
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if here != folder and _is_one_log(here):
            folders.clear()
            yield LogFile(here, str(here), found=True)
            continue
        folders.sort()
        for name in sorted(names):
            yield LogFile(here / name, str(here / name), found=True)


def _is_one_log(folder: Path) -> bool:
    """tau2 writes one run as a folder."""
    return (folder / FRAME).is_file() and (folder / SIMULATIONS).is_dir()


def _spool(stack: ExitStack) -> LogFile:
    """What it is can only be told by looking at it twice."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "standard-input"
    with path.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
    return LogFile(path, STANDARD_INPUT)
