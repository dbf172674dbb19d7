"""A finished run, made ready for its page: read twice, then its top and its index are files, and
a sample is read from its place in the results when somebody asks for it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec

from callmark.core.chance import CrossScore
from callmark.core.report import Report
from callmark.reports.html import BINS, Survey
from callmark.reports.html_file import page_json
from callmark.reports.html_index import IndexBuilder, row_of
from callmark.reports.html_overview import Distribution, run_head
from callmark.reports.html_records import PageHead
from callmark.store.lines import placed_results, read_results
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
        return page_json(msgspec.structs.replace(_noted(head, judged), plots=plots))

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
        survey = Survey(judged.report, judged.cross_score)
        for result in read_results(run.path):
            survey.add(result)
        short, choice = survey.falls_short(), survey.choice()
        warnings = judged.report.warning_gates
        index = IndexBuilder()
        for at, (offset, result) in enumerate(placed_results(run.path)):
            if choice.rows[at]:
                index.add(row_of(result, short.get(result.index, ()), warnings), offset)
        trials, rows, _ = choice.counts()
        head = run_head(judged.report, run.name, survey.distribution(), (trials, trials, trials))
        if rows < trials:
            head = msgspec.structs.replace(head, left_out=_left_out(trials, rows))
        self._made += 1
        ready = Ready(
            self._folder / f"{self._made}.head.json", self._folder / f"{self._made}.index.json"
        )
        ready.head.write_bytes(page_json(_noted(head, judged)))
        ready.index.write_bytes(page_json(index.built()))
        return ready


def _key(run: FoundRun) -> Key:
    """A report may be written after its results."""
    return run.id, run.stamp, tuple(map(stamp_of, report_paths(run.path)))


def _noted(head: PageHead, judged: JudgedRun) -> PageHead:
    if not judged.note:
        return head
    return msgspec.structs.replace(head, warnings=(judged.note, *head.warnings))


def _left_out(trials: int, rows: int) -> str:
    return (
        f"{trials} trials, {rows} of them are listed: failing ones first, then a seeded choice. "
        "Any other can be opened by its id: put #s=ID&t=0 at the end of the address."
    )
