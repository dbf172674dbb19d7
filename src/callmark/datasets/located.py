"""Items with their places in the file, for those who compare or change datasets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from callmark.core.identity import sample_id_of
from callmark.core.jsontext import Json, NotJson
from callmark.datasets.schema import HEADER_KEY, BadHeader, is_header
from callmark.errors import BadInput
from callmark.store.jsonl import Line, is_blank, lines_of, object_of, open_input

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
