"""`OUT.index`: what the readers of a run would have to read all of its results for. It says nothing
that the results do not say: whoever finds none, or one of another file, reads those."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path
from shutil import copyfileobj
from typing import BinaryIO

import msgspec

from callmark.store.files import atomic_writer, open_input

ENDING = ".index"
# Fewer trials are read at once; of more no list is shown whole.
INDEXED = range(2_000, 250_001)
SMALLEST = 1 << 20  # bytes of results that so many trials take at least
_VERSION = 1
_LONGEST_HEAD = 1 << 12


class _Head(msgspec.Struct, frozen=True, kw_only=True):
    """Whose index it is, and who can read it."""

    index: int
    callmark: str
    byteorder: str
    results_bytes: int
    results_sha256: str
    numbers_bytes: int
    rows_bytes: int
    sha256: str  # of what follows this line


class IndexParts(msgspec.Struct, frozen=True):
    """`numbers`: one record; `rows`: one line for each trial."""

    numbers: bytes
    rows: bytes
    results_bytes: int


def index_path(results: Path) -> Path:
    return results.with_name(results.name + ENDING)


def write_index(
    results: Path, results_sha256: str, parts: tuple[bytes, BinaryIO], *, version: str
) -> None:
    """Beside results of this hash: the numbers, and the rows from their beginning. `version`: of
    callmark; another one does not believe it."""
    numbers, rows = parts
    rows.seek(0)
    sha256 = _hashed(rows, numbers)
    head = _Head(
        index=_VERSION,
        callmark=version,
        byteorder=sys.byteorder,
        results_bytes=results.stat().st_size,
        results_sha256=results_sha256,
        numbers_bytes=len(numbers),
        rows_bytes=rows.tell(),
        sha256=sha256,
    )
    rows.seek(0)
    with atomic_writer(index_path(results)) as stream:
        stream.write(msgspec.json.encode(head) + b"\n" + numbers)
        copyfileobj(rows, stream)


def read_index(results: Path, *, version: str) -> IndexParts | None:
    """The index of these very bytes, if there is one that this version wrote: the results are
    hashed, which is a small part of what reading them takes."""
    try:
        with index_path(results).open("rb") as stream:
            head = msgspec.json.decode(stream.readline(_LONGEST_HEAD), type=_Head)
            if not _is_ours(head, results, version):
                return None
            numbers = stream.read(head.numbers_bytes)
            rows = stream.read(head.rows_bytes + 1)
        sha256 = hashlib.sha256(numbers)
        sha256.update(rows)
        if len(rows) != head.rows_bytes or sha256.hexdigest() != head.sha256:
            return None
        with open_input(results) as stream:
            found = _hashed(stream)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
    if found != head.results_sha256:
        return None
    return IndexParts(numbers, rows, head.results_bytes)


def _hashed(stream: BinaryIO, before: bytes = b"") -> str:
    sha256 = hashlib.sha256(before)
    while piece := stream.read(1 << 20):
        sha256.update(piece)
    return sha256.hexdigest()


def _is_ours(head: _Head, results: Path, version: str) -> bool:
    ours = (_VERSION, version, sys.byteorder)
    size = results.stat().st_size
    return (head.index, head.callmark, head.byteorder) == ours and head.results_bytes == size
