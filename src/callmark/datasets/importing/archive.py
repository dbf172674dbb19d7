"""An `.eval` archive of Inspect, read without trusting it: names choose what is read, no name
ever becomes a path, and no member may unpack to more than it says or than is allowed."""

from __future__ import annotations

import re
import struct
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from callmark.core.jsontext import NotJson
from callmark.datasets.importing.desk import Record
from callmark.datasets.importing.lenient import parse_log
from callmark.errors import BadInput, MissingExtra
from callmark.store.jsonl import open_input

MAX_MEMBER = 1 << 28
MAX_TOTAL = 1 << 33
HEADERS = ("header.json", "_journal/start.json")
SAMPLE = re.compile(r"samples/.+\.json")

_ZSTANDARD = 93
_STDLIB = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_ENCRYPTED = 1


def records_of_archive(path: Path) -> Iterator[Record]:
    """The header, then every sample; their numbers count from 1."""
    try:
        with open_input(path) as stream, zipfile.ZipFile(stream) as archive:
            members = _latest(archive.infolist())
            header = next((members[name] for name in HEADERS if name in members), None)
            if header is None:
                raise BadInput(f"{path}: holds no header.json: no log of Inspect")
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
    data = _unpacked(archive, info, where)
    if len(data) != info.file_size:
        raise BadInput(f"{where}: unpacks to another size than the archive says")
    try:
        return parse_log(data)
    except NotJson as error:
        raise BadInput(f"{where}:{error.line}: {error}") from None


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str) -> bytes:
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
