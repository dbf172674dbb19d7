"""`RESULTS.summary`: the numbers of a shard's lines, so that a merge need not read them again.

It may be thrown away at any time: a merge that finds none, or one that does not belong to the
results, reads the lines."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from callmark._version import __version__
from callmark.core.jsontext import sha256_hex
from callmark.core.report import Report
from callmark.core.summary import Summariser
from callmark.core.summary_state import SummaryState
from callmark.store.files import atomic_writer


class _Head(msgspec.Struct, frozen=True):
    """Whose summary it is, and who can read it."""

    callmark: str
    byteorder: str
    results_sha256: str
    summary_sha256: str


class _File(msgspec.Struct, frozen=True):
    head: _Head
    summary: bytes


def summary_path(results: Path) -> Path:
    return results.with_name(f"{results.name}.summary")


def write_summary(results: Path, report: Report, summariser: Summariser) -> None:
    """Nothing is written for a shard whose lines have to be read in any case."""
    path = summary_path(results)
    state = None if report.shard is None else summariser.state()
    if report.shard is None or state is None:
        path.unlink(missing_ok=True)
        return
    summary = msgspec.msgpack.encode(state)
    file = _File(_head(report.shard.results_sha256, summary), summary)
    with atomic_writer(path) as stream:
        stream.write(msgspec.msgpack.encode(file))


def read_summary(results: Path, results_sha256: str) -> SummaryState | None:
    """The summary of these very results, if there is one that this version wrote."""
    try:
        file = msgspec.msgpack.decode(summary_path(results).read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
    if file.head != _head(results_sha256, file.summary):
        return None
    return msgspec.msgpack.decode(file.summary, type=SummaryState)


def _head(results_sha256: str, summary: bytes) -> _Head:
    return _Head(__version__, sys.byteorder, results_sha256, sha256_hex(summary))
