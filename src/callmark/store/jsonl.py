"""Reading JSON lines: a file that a person named, one line at a time, with its place."""

from __future__ import annotations

import errno
import os
import stat
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
    """A file that somebody named, to be read; BadInput if it is no file. Pipes, devices and sockets
    are refused: they may never answer, or never end."""
    try:
        # Without O_NONBLOCK opening a pipe waits for somebody who writes into it.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file") from None
    except (OSError, ValueError) as error:
        if isinstance(error, OSError) and error.errno == errno.ENXIO:
            raise _no_file(path, "a socket") from None
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(f"{path}: cannot be read: {reason}") from None
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode) and not _is_null(found):
        os.close(fd)
        if stat.S_ISDIR(found.st_mode):
            raise BadInput(f"{path}: is a folder, a file is needed")
        raise _no_file(path, "a pipe" if stat.S_ISFIFO(found.st_mode) else "a device")
    return os.fdopen(fd, "rb")


def read_input(path: Path) -> bytes:
    """All bytes of a file that somebody named, or BadInput."""
    with open_input(path) as stream:
        try:
            return stream.read()
        except OSError as error:
            raise BadInput(f"{path}: cannot be read: {error.strerror}") from None


def _no_file(path: Path, what: str) -> BadInput:
    return BadInput(
        f"{path}: is {what}, not a regular file; write it to a file first"
        " (where `-` is accepted, it may be piped to standard input)"
    )


def _is_null(found: os.stat_result) -> bool:
    """/dev/null is how people say "no such file, on purpose": it ends at once."""
    return stat.S_ISCHR(found.st_mode) and found.st_rdev == Path(os.devnull).stat().st_rdev


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
