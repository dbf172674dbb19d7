"""A run that goes on: its journal, read piece by piece from where the reader was."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from callmark.core.jsontext import Json, NotJson, canonical_json
from callmark.core.report import Number
from callmark.core.results import Result
from callmark.core.summary import DEFAULT_SEED
from callmark.core.trials import Trials
from callmark.reports.html import falling_short
from callmark.reports.html_index import Index, IndexBuilder, Row, row_of
from callmark.reports.neutral import one_line
from callmark.store.journal_head import MAGIC
from callmark.store.jsonl import object_of
from callmark.store.lines import decode_result

PIECE_BYTES = 4 << 20


class JournalPiece(msgspec.Struct, frozen=True, kw_only=True):
    """`start`: where it begins, which is 0 instead of what was asked if the journal began anew.
    `next`: where the following one begins; `more`: it is already there. `age`: seconds since
    the last trial was written. `pins`: what the run depends on, in the piece that says so."""

    start: int
    next: int
    more: bool
    age: float
    pins: tuple[tuple[str, str], ...]
    index: Index


def read_piece(journal: Path, asked: int, bounds: Mapping[str, Number]) -> JournalPiece:
    """`bounds`: of the gates by which samples are marked as falling short."""
    with journal.open("rb") as stream:
        size = stream.seek(0, 2)
        written = time.time() - journal.stat().st_mtime
        stream.seek(max(0, asked - 1))
        begins = asked == 0 or (asked <= size and stream.read(1) == b"\n")
        start = stream.seek(asked if begins else 0)
        data = stream.read(PIECE_BYTES)
        if b"\n" not in data and len(data) == PIECE_BYTES:
            data += stream.readline()
    whole = data[: data.rfind(b"\n") + 1]
    pins: dict[str, str] = {}
    placed: dict[tuple[str, int], tuple[int, Result]] = {}
    for offset, line in _lines(whole, start):
        if line.startswith(MAGIC):
            pins |= _pins(line)
        elif (result := _result(line)) is not None:
            placed[result.sample_id, result.trial] = offset, result
    end = start + len(whole)
    return JournalPiece(
        start=start,
        next=end,
        more=bool(whole) and end < size,
        age=max(0.0, written),
        pins=tuple(pins.items()),
        index=_index(list(placed.values()), bounds),
    )


def _lines(data: bytes, start: int) -> Iterator[tuple[int, bytes]]:
    for text in data.split(b"\n")[:-1]:
        line = text + b"\n"
        yield start, line
        start += len(line)


def _result(line: bytes) -> Result | None:
    """None: something that only `--resume` will complain about."""
    try:
        return decode_result(line)
    except NotJson:
        return None


def _pins(line: bytes) -> dict[str, str]:
    try:
        found: Json = object_of(line).get("fingerprints")
    except NotJson:
        return {}
    if not isinstance(found, dict):
        return {}
    return {
        one_line(name, 100): one_line(
            value if isinstance(value, str) else canonical_json(value), 300
        )
        for name, value in found.items()
        if value is not None
    }


def _index(placed: list[tuple[int, Result]], bounds: Mapping[str, Number]) -> Index:
    trials = Trials()
    for _, result in placed:
        trials.add(result)
    fails = falling_short(trials, bounds, DEFAULT_SEED)
    index = IndexBuilder()
    for offset, result in placed:
        index.add(_row(result, fails.get(result.index, ())), offset)
    return index.built()


def _row(result: Result, fails: tuple[str, ...]) -> Row:
    """Nothing passes before the run has ended."""
    row = row_of(result, fails)
    status = tuple(
        "nothing short so far" if one == "passes" else one for one in row.facets["status"]
    )
    return msgspec.structs.replace(row, facets={**row.facets, "status": status})
