"""A finished run, made ready for its page: read once, then its top and its index are files, and a
sample is read from its place in the results when somebody asks for it."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import msgspec

from callmark.records.jsontext import Json, NotJson, canonical_json
from callmark.records.report import GateRule, Report
from callmark.records.results import Result
from callmark.reports.html.indexed_run import IndexedSurvey, find_index, survey_of
from callmark.reports.html.overview import BINS, Distribution, PageHead, run_head
from callmark.reports.html.page import (
    Index,
    IndexBuilder,
    Row,
    Survey,
    falling_short,
    page_json,
    row_of,
)
from callmark.reports.layout import one_line
from callmark.store.files import (
    decode_result,
    object_of,
    placed_results,
    read_results,
    result_at,
)
from callmark.store.journal import MAGIC
from callmark.summary.metrics import CrossScore
from callmark.summary.summary import DEFAULT_SEED
from callmark.summary.trials import Trials
from callmark.view.catalogue import FoundRun, Stamp, report_paths, stamp_of

KEPT = 8


class JudgedRun(msgspec.Struct, frozen=True):
    """The report of a run; `note` says where it comes from, if not from beside the results."""

    report: Report
    cross_score: CrossScore | None = None
    note: str = ""


class Ready(msgspec.Struct, frozen=True):
    """Two files that hold JSON as the page reads it."""

    head: Path
    index: Path


Judge = Callable[[Path], JudgedRun]
Key = tuple[str, Stamp, tuple[Stamp | None, ...]]
F1_PLOT = "f1"
NOT_COUNTED = Distribution((0.0,) * (BINS + 2), None)


class Openings:
    """The runs that were looked at last."""

    def __init__(self, folder: Path, judge: Judge) -> None:
        self._folder = folder
        self._judge = judge
        self._lock = threading.Lock()
        self._judged: dict[Key, JudgedRun] = {}
        self._ready: dict[Key, Ready] = {}
        self._made = 0

    def verdict(self, run: FoundRun) -> bytes:
        """The top of the page as far as the report alone says it: nobody waits for that."""
        judged = self._report_of(run)
        head = run_head(judged.report, run.name, NOT_COUNTED, (1, 1, 1))
        plots = tuple(plot for plot in head.plots if plot.id != F1_PLOT)
        return page_json(msgspec.structs.replace(_note_verdict(head, judged), plots=plots))

    def open(self, run: FoundRun) -> Ready:
        """One at a time: two readers of a big file would only slow each other down."""
        key = _key(run)
        with self._lock:
            if key not in self._ready:
                self._ready[key] = self._prepared(run)
                while len(self._ready) > KEPT:
                    old = self._ready.pop(next(iter(self._ready)))
                    old.head.unlink(missing_ok=True)
                    old.index.unlink(missing_ok=True)
            return self._ready[key]

    def _report_of(self, run: FoundRun) -> JudgedRun:
        key = _key(run)
        if key not in self._judged:
            latest = dict(list(self._judged.items())[1 - KEPT :])
            self._judged = latest | {key: self._judge(run.path)}
        return self._judged[key]

    def _prepared(self, run: FoundRun) -> Ready:
        judged = self._report_of(run)
        survey, offsets, listed = _survey(run.path, judged)
        index = IndexBuilder()
        judged_rows = survey.judged(lambda: read_results(run.path))
        for row, offset, is_listed in zip(judged_rows, offsets, listed, strict=True):
            if is_listed:
                index.add(row, offset)
        trials, rows = len(listed), sum(listed)
        head = run_head(judged.report, run.name, survey.distribution(), (trials, trials, trials))
        if rows < trials:
            head = msgspec.structs.replace(head, left_out=_left_out(trials, rows))
        self._made += 1
        ready = Ready(
            self._folder / f"{self._made}.head.json", self._folder / f"{self._made}.index.json"
        )
        ready.head.write_bytes(page_json(_note_verdict(head, judged)))
        ready.index.write_bytes(page_json(index.built()))
        return ready


def _survey(results: Path, judged: JudgedRun) -> tuple[Survey, array[int], bytes | bytearray]:
    """With where each line begins, and whether it is listed. What left an index is not read."""
    index = find_index(results)
    if index is not None:
        known = survey_of(judged.report, judged.cross_score, index)
        if isinstance(known, IndexedSurvey):
            known.list_all(partial(result_at, results))
            return known, index.offsets, bytes([1]) * len(index)
    survey = Survey(judged.report, judged.cross_score)
    offsets: array[int] = array("Q")
    for offset, result in placed_results(results):
        survey.add(result)
        offsets.append(offset)
    return survey, offsets, survey.choice().rows


def _key(run: FoundRun) -> Key:
    """A report may be written after its results."""
    return run.id, run.stamp, tuple(map(stamp_of, report_paths(run.path)))


def _note_verdict(head: PageHead, judged: JudgedRun) -> PageHead:
    if not judged.note:
        return head
    return msgspec.structs.replace(head, warnings=(judged.note, *head.warnings))


def _left_out(trials: int, rows: int) -> str:
    return (
        f"{trials} trials, {rows} of them are listed: failing ones first, then a seeded choice. "
        "Any other can be opened by its id: put #s=ID&t=0 at the end of the address."
    )


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


def read_piece(journal: Path, asked: int, rules: Mapping[str, GateRule]) -> JournalPiece:
    """`rules`: the gates by which samples are marked as falling short."""
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
        index=_index(list(placed.values()), rules),
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


def _index(placed: list[tuple[int, Result]], rules: Mapping[str, GateRule]) -> Index:
    trials = Trials()
    for _, result in placed:
        trials.add(result)
    fails = falling_short(trials, rules, DEFAULT_SEED)
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
