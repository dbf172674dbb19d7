"""Reading JSON lines: a file that a person named, one line at a time, with its place."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from callmark.core.jsontext import Json, NotJson, parse_json
from callmark.errors import BadInput

# A line wraps payloads that were each read with the smaller limit of their own.
LINE_DEPTH = 200
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    number: int
    offset: int
    data: bytes  # with its line end

    @property
    def json(self) -> bytes:
        return self.data.removeprefix(_BOM) if self.offset == 0 else self.data


def open_input(path: Path) -> BinaryIO:
    try:
        return path.open("rb")
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except IsADirectoryError:
        raise BadInput(f"{path}: is a folder, a file is needed") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{path}: cannot be read: {reason}") from None


def lines_of(stream: BinaryIO, name: str) -> Iterator[Line]:
    """Every line, blank ones too. Only line feeds end a line."""
    offset = 0
    number = 0
    try:
        for data in stream:
            number += 1
            yield Line(number, offset, data)
            offset += len(data)
    except OSError as error:
        raise BadInput(f"{name}:{number + 1}: cannot be read: {error.strerror}") from None


def is_blank(data: bytes) -> bool:
    return data.isspace() or not data


def parse_line(data: bytes) -> Json:
    """One line as JSON; NotJson says what is wrong with it."""
    return parse_json(data, max_depth=LINE_DEPTH)


def object_of(data: bytes) -> dict[str, Json]:
    value = parse_line(data)
    if not isinstance(value, dict):
        raise NotJson(f"must be a JSON object, not {_kind_of(value)}")
    return value


def _kind_of(value: Json) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case list():
            return "a list"
        case str():
            return "a string"
    return "a number"
