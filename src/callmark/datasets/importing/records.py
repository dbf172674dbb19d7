"""The entries of a source, whatever holds them: lines, one JSON document, an archive, a table, a
folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from callmark.core.jsonplaces import lines_of_entries
from callmark.core.jsontext import Json, NotJson, parse_json
from callmark.datasets.importing.archive import records_of_archive
from callmark.datasets.importing.desk import Record
from callmark.datasets.importing.folder import INDEX, records_of_folder
from callmark.datasets.importing.lenient import MAX_DEPTH, parse_log
from callmark.datasets.importing.table import records_of_table
from callmark.errors import BadInput
from callmark.store.jsonl import is_blank, lines_of, open_input

Container = Literal["lines", "document", "archive", "table", "folder"]
# Of a document that is an object, these lists are its entries.
ENTRIES = ("samples", "simulations")

_MAGIC: dict[bytes, Container] = {b"PK\x03\x04": "archive", b"PAR1": "table"}
_BOM = b"\xef\xbb\xbf"
_BLANK = " \t\r\n"


def container_of(path: Path) -> Container:
    """By the file's first bytes, never by its name."""
    if path.is_dir():
        return "folder"
    with open_input(path) as stream:
        magic = stream.read(4)
        if magic in _MAGIC:
            return _MAGIC[magic]
        stream.seek(0)
        first, others = None, False
        for line in lines_of(stream, str(path)):
            if is_blank(line.json):
                continue
            if first is not None:
                others = True
                break
            first = line.json
    if first is None:
        raise BadInput(f"{path}: is empty")
    try:
        value = parse_json(first, max_depth=MAX_DEPTH)
    except NotJson:
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
    has_entries = isinstance(value, list) and value and isinstance(value[0], dict | list)
    return bool(has_entries and not (isinstance(value[0], dict) and "role" in value[0]))


def _of_lines(path: Path) -> Iterator[Record]:
    with open_input(path) as stream:
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
    with open_input(path) as stream:
        data = stream.read().removeprefix(_BOM)
    try:
        value = parse_log(data)
    except NotJson as error:
        raise BadInput(f"{path}:{error.line}: {error}") from None
    text = data.decode()
    if isinstance(value, list):
        yield from map(Record, lines_of_entries(text), value)
        return
    name = next(
        (one for one in ENTRIES if isinstance(value, dict) and isinstance(value.get(one), list)),
        None,
    )
    if name is None and isinstance(value, dict) and INDEX in value:
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
