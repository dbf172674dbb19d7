"""Writing files so that nothing that was there is lost: whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import io
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import msgspec

from callmark.errors import BadInput, CannotWrite, OutputFailed, UsageError
from callmark.records.jsontext import Json, NotJson, parse_json, replace_surrogates
from callmark.records.problems import hint, typed_problem
from callmark.records.report import Report
from callmark.records.results import Result

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

# A line wraps payloads that were each read with the smaller limit of their own.
LINE_DEPTH = 200
MOST_NAMES = 1000
_BOM = b"\xef\xbb\xbf"


class Line(NamedTuple):
    number: int
    offset: int
    data: bytes  # with its line end

    @property
    def json(self) -> bytes:
        return self.data.removeprefix(_BOM) if self.offset == 0 else self.data


def _near(path: Path) -> str:
    """`; did you mean eval.jsonl?`: what stands where it was looked for."""
    with suppress(OSError, ValueError):
        names = sorted(one.name for one in islice(path.parent.iterdir(), MOST_NAMES))
        return hint(path.name, names)
    return ""


def open_input(path: Path) -> BinaryIO:
    """A file that somebody named, to be read; BadInput if it is no file. Pipes, devices and sockets
    are refused: they may never answer, or never end."""
    try:
        # Without O_NONBLOCK opening a pipe waits for somebody who writes into it.
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except FileNotFoundError:
        raise BadInput(f"{path}: no such file{_near(path)}") from None
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


def filled_lines(path: Path) -> Iterator[Line]:
    """Every line of a file that somebody named, but for blank ones."""
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if not is_blank(line.json):
                yield line


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
        plain = replace_surrogates(msgspec.to_builtins(record))
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


def lines_in(path: Path) -> Iterator[Line]:
    """Those of a file that are not blank."""
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if not is_blank(line.data):
                yield line


def _lines_and_results(path: Path) -> Iterator[tuple[Line, Result]]:
    for line in lines_in(path):
        try:
            result = decode_result(line.json)
        except NotJson as error:
            raise BadInput(f"{path}:{line.number}: {error}") from None
        yield line, result


def find_result(path: Path, sample_id: str, trial: int) -> tuple[int, Result]:
    """One trial of a results file and its line; UsageError says what the file has instead."""
    return find_among(numbered_results(path), path, sample_id, trial)


def find_among(
    results: Iterable[tuple[int, Result]], path: Path, sample_id: str, trial: int
) -> tuple[int, Result]:
    """One of these trials, which `path` holds."""
    ids: set[str] = set()
    trials: set[int] = set()
    for line, result in results:
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


_Describe = Callable[[OSError], OutputFailed]
_NEXT = "Free some space or choose another place, then run it again."


@contextmanager
def atomic_writer(path: Path, *, what_next: str = _NEXT) -> Iterator[BinaryIO]:
    """A binary file that takes the place of `path` when the block ends well, and never before:
    written beside it, handed to the disk, renamed. On any failure the old file is untouched."""
    target = _target_of(path)
    kept = " What stood there before is unchanged." if target.is_file() else ""

    def describe(error: OSError) -> OutputFailed:
        return output_failed(path, error, what_next, kept)

    if not has_place(target):
        # A device or pipe such as /dev/stdout: nothing to keep, and renaming would replace it.
        with _stream(lambda: _open(target), describe) as device:
            yield device
        return
    _remove_leftovers(target)
    temporary = _temporary_for(target)
    try:
        with _stream(lambda: _create(temporary), describe) as stream:
            yield stream
            stream.flush()
            _sync(stream, describe)
            # Renamed while it is open, so still locked: nobody takes it for a leftover.
            _replace(temporary, target, describe)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(target.parent)


def has_place(path: Path) -> bool:
    """Whether a file stands or could stand there, with others beside it; not /dev/stdout, whatever
    that leads to."""
    if _open_already(path) is not None:
        return False
    return not path.exists() or path.is_file()


def check_writable(path: Path) -> None:
    """Before anything is run: could `path` be written? Makes the folders above it."""
    try:
        target = _target_of(path)
        mode = _mode_of(target)
        if stat.S_ISDIR(mode):
            raise CannotWrite(f"{path}: is a folder: give the name of a file in it")
        if mode and not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if has_place(target):
            # Only writing tells: quotas and some network file systems let os.access say yes.
            make_folder(target.parent)
            _remove_leftovers(target)
            probe = _temporary_for(target)
            probe.touch(exist_ok=False)
            probe.unlink()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise CannotWrite(
            f"{path}: cannot be written: {reason}. Choose another place, or change its permissions."
        ) from None


def output_failed(path: Path, error: OSError, what_next: str, kept: str = "") -> OutputFailed:
    reason = error.strerror or str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        reason = f"the disk is full ({reason})"
    return OutputFailed(f"{path}: could not be written: {reason}.{kept}", what_next)


def sync_folder(folder: Path) -> None:
    """Makes a rename or a new file survive a power cut, where the file system can do that."""
    with suppress(OSError):
        fd = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        # Said as it is: something stands there, but it is no folder.
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR)) from None


class _Reporting(io.FileIO):
    """Turns a write that fails into a sentence at the place where it fails, so that an error of
    the code between two writes is never taken for one."""

    def __init__(self, fd: int, describe: _Describe) -> None:
        super().__init__(fd, "wb")
        self._describe = describe

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except OSError as error:
            raise self._describe(error) from None


@contextmanager
def _stream(opened: Callable[[], int], describe: _Describe) -> Iterator[BinaryIO]:
    try:
        fd = opened()
    except OSError as error:
        raise describe(error) from None
    stream = io.BufferedWriter(_Reporting(fd, describe))
    try:
        yield stream
        stream.flush()
    finally:
        # What could not be flushed has been reported; closing would report it again.
        with suppress(OutputFailed):
            stream.close()


def _sync(stream: BinaryIO, describe: _Describe) -> None:
    try:
        os.fsync(stream.fileno())
    except OSError as error:
        raise describe(error) from None


def _replace(temporary: Path, target: Path, describe: _Describe) -> None:
    try:
        temporary.replace(target)
    except OSError as error:
        raise describe(error) from None


def _target_of(path: Path) -> Path:
    # A link stays a link: what it points at is replaced.
    return path.resolve() if path.is_symlink() and has_place(path) else path


def _open_already(path: Path) -> int | None:
    """The number of the open file that a name such as /dev/stdout or /dev/fd/3 stands for."""
    try:
        link = path.parent.resolve() / path.name
        if link.is_symlink() and not link.is_relative_to("/proc"):
            link = link.parent / link.readlink()
    except (OSError, ValueError):
        return None
    ours = link.parent in (Path("/proc/self/fd"), Path(f"/proc/{os.getpid()}/fd"))
    return int(link.name) if ours and link.name.isdecimal() else None


def _open(target: Path) -> int:
    """Where the one who opened it stands, so that nobody writes over the other."""
    number = _open_already(target)
    return os.open(target, os.O_WRONLY) if number is None else os.dup(number)


def _mode_of(target: Path) -> int:
    try:
        return target.stat().st_mode
    except FileNotFoundError:
        return 0


def _temporary_for(target: Path) -> Path:
    return target.with_name(f"{_temporary_prefix(target)}{secrets.token_hex(6)}.tmp")


def _temporary_prefix(target: Path) -> str:
    # A hash: the name itself may already be as long as a name can be.
    return f".callmark-{hashlib.sha256(os.fsencode(target.name)).hexdigest()[:12]}-"


def _create(temporary: Path) -> int:
    """A new file, locked as long as it is open: so nobody takes it for a leftover."""
    make_folder(temporary.parent)
    while True:
        # Not tempfile: its files are private, results are as readable as the umask says.
        fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        if temporary.exists():
            return fd
        os.close(fd)  # removed as a leftover before it was locked


def _remove_leftovers(target: Path) -> None:
    """What a killed process left behind when it was about to write this very file. Whoever is
    writing it now holds a lock; where there are no locks nothing is removed."""
    for path in _leftovers(target):
        with suppress(OSError):
            fd = os.open(path, os.O_RDWR)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                path.unlink()
            finally:
                os.close(fd)


def _leftovers(target: Path) -> list[Path]:
    prefix = _temporary_prefix(target)
    try:
        return [path for path in target.parent.iterdir() if path.name.startswith(prefix)]
    except OSError:  # not there yet, or a folder that may be written but not listed
        return []


def read_report(path: Path) -> Report:
    return read_json_record(path, Report, "report of a run")


def read_json_record(path: Path, kind: type[Record], what: str) -> Record:
    """`what` it should have been, for the message."""
    with open_input(path) as stream:
        data = stream.read()
    try:
        value = parse_json(data.removeprefix(b"\xef\xbb\xbf"), max_depth=LINE_DEPTH)
        if _is_of_old_name(value):
            raise BadInput(
                f"{path}: was written by an older version of this program under another name:"
                " run it again"
            )
        return msgspec.convert(value, kind)
    except NotJson as error:
        raise BadInput(f"{path}: is no {what}: {error}") from None
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: is no {what}: {typed_problem(error)}") from None


def _is_of_old_name(value: Json) -> bool:
    """A report says which program wrote it, beside the libraries that it used."""
    match value:
        case {"provenance": {"libraries": _, "python": _, **more}}:
            return "callmark" not in more
    return False


def run_name(results: Path) -> str:
    """A run goes by its folder, or by its file where that has a name of its own."""
    whole = results.resolve()
    return whole.parent.name or whole.stem if whole.name == "results.jsonl" else whole.stem


def run_names(results: Sequence[str]) -> tuple[str, ...]:
    """Short, as long as they tell the runs apart."""
    short = tuple(run_name(Path(path)) for path in results)
    return short if len(set(short)) == len(short) else tuple(results)
