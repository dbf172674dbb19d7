"""Our own results files: one `Result` a line, written and read back without loss."""

from __future__ import annotations

import errno
import json
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, TypeVar

import msgspec

from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import Json, NotJson, parse_json, well_formed
from callmark.records.results import Result
from callmark.store.problems import typed_problem

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
    # Of what was opened, not of the name: that may lead elsewhere by now.
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


Record = TypeVar("Record", bound=msgspec.Struct)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Result).decode


def encode_result(result: Result) -> bytes:
    """One line of UTF-8 JSON with its line end. Equal results, equal bytes."""
    return encode_record(result) + b"\n"


def encode_record(record: msgspec.Struct) -> bytes:
    """One line of UTF-8 JSON without its end."""
    try:
        return _encode(record)
    except (UnicodeEncodeError, OverflowError):
        # Lone surrogates and integers of any size can come from a model; a run survives them.
        plain = _without_surrogates(msgspec.to_builtins(record))
        text = json.dumps(plain, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return text.encode()


def decode_record(data: bytes, kind: type[Record]) -> Record:
    """What `encode_record` gave."""
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        return msgspec.convert(parse_line(data), kind)


def decode_result(line: bytes) -> Result:
    """A complete line; NotJson says `field: what is wrong`. Unknown fields are ignored."""
    try:
        return _decode(line)
    except msgspec.ValidationError as error:
        raise NotJson(typed_problem(error)) from None
    except (msgspec.DecodeError, UnicodeError, RecursionError, ValueError):
        pass
    try:
        return msgspec.convert(parse_line(line), Result)
    except msgspec.ValidationError as error:
        raise NotJson(typed_problem(error)) from None


def read_results(path: Path) -> Iterator[Result]:
    """The complete lines of a results file, in order, one at a time."""
    return (result for _, result in numbered_results(path))


def numbered_results(path: Path) -> Iterator[tuple[int, Result]]:
    """The same, each with the number of its line."""
    return ((line.number, result) for line, result in _lines_and_results(path))


def placed_results(path: Path) -> Iterator[tuple[int, Result]]:
    """The same, each with the byte at which its line begins: `result_at` takes it."""
    return ((line.offset, result) for line, result in _lines_and_results(path))


def result_at(path: Path, offset: int) -> Result:
    """The line that begins at this byte; BadInput if none does."""
    with open_input(path) as stream:
        stream.seek(offset)
        line = Line(1, offset, stream.readline())
    try:
        return decode_result(line.json)
    except NotJson as error:
        raise BadInput(f"{path}: byte {offset}: no result begins here: {error}") from None


def _lines_and_results(path: Path) -> Iterator[tuple[Line, Result]]:
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.data):
                continue
            try:
                result = decode_result(line.json)
            except NotJson as error:
                raise BadInput(f"{path}:{line.number}: {error}") from None
            yield line, result


def find_result(path: Path, sample_id: str, trial: int) -> tuple[int, Result]:
    """One trial of a results file and its line; UsageError says what the file has instead."""
    ids: set[str] = set()
    trials: set[int] = set()
    for line, result in numbered_results(path):
        if result.sample_id == sample_id:
            if result.trial == trial:
                return line, result
            trials.add(result.trial)
        ids.add(result.sample_id)
    if trials:
        has = ", ".join(map(str, sorted(trials)))
        raise UsageError(f"{path}: {sample_id} has no trial {trial}; it has {has}")
    from difflib import get_close_matches

    near = get_close_matches(sample_id, ids, 3)
    hint = f"; near to it: {', '.join(near)}" if near else f"; it holds {len(ids)} samples"
    raise UsageError(f"{path}: no sample {sample_id!r}{hint}")


def _without_surrogates(value: Json) -> Json:
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list | tuple):
        return [_without_surrogates(entry) for entry in value]
    if isinstance(value, dict):
        return {well_formed(key): _without_surrogates(entry) for key, entry in value.items()}
    return value
