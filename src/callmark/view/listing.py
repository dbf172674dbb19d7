"""The list of runs: of each its verdict, what it depends on, and its metrics for the trend."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from callmark.core.belonging import differing_fingerprint
from callmark.core.report import Number, Report
from callmark.errors import BadInput
from callmark.reports.layout import Style
from callmark.reports.neutral import one_line
from callmark.reports.terminal import VERDICT_STYLE, verdict_line
from callmark.view.catalogue import Folder, FoundRun, Stamp, report_paths, stamp_of

SHORT = 10
SHOWN_PINS = {
    "dataset": "dataset_sha256",
    "fixtures": "fixtures_sha256",
    "tools": "tool_registry_sha256",
    "model": "model_fingerprint",
    "runner": "runner_fingerprint",
}
ReadReport = Callable[[Path], Report]


class Point(msgspec.Struct, frozen=True):
    """One metric of one run; `low` and `high` are the ends of its 95 % interval."""

    value: Number
    n: int
    low: float | None = None
    high: float | None = None


class Bound(msgspec.Struct, frozen=True):
    op: str
    bound: Number
    status: str


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """`written`: when the file was changed last, in seconds since 1970; only the viewer shows a
    time. `pins` are the first digits of fingerprints; `reason` says why there is no verdict."""

    id: str
    name: str
    finished: bool
    written: float
    word: str
    style: Style
    reason: str
    samples: int | None = None
    trials: int | None = None
    errors: int | None = None
    model: str = ""
    dataset: str = ""
    pins: dict[str, str] = {}
    metrics: dict[str, Point] = {}
    gates: dict[str, Bound] = {}


class RunListing(msgspec.Struct, frozen=True):
    folder: str
    runs: tuple[RunRow, ...]
    left_out: str


class Lister:
    """Reads each report once, and again when it has changed."""

    def __init__(self, root: Path, read_report: ReadReport) -> None:
        self._name = one_line(str(root), 300)
        self._read_report = read_report
        self._read: dict[Path, tuple[Stamp, Report | str]] = {}

    def listing(self, folder: Folder) -> RunListing:
        read: dict[Path, tuple[Stamp, Report | str]] = {}
        rows = tuple(self._row(found, read) for found in folder.runs)
        self._read = read
        return RunListing(self._name, rows, folder.left_out)

    def _row(self, found: FoundRun, read: dict[Path, tuple[Stamp, Report | str]]) -> RunRow:
        if not found.finished:
            return _row(found, "unfinished", "quiet", "its journal is still there")
        why = "no report beside it"
        for path in report_paths(found.path):
            stamp = stamp_of(path)
            if stamp is None:
                continue
            before = self._read.get(path)
            known = before if before and before[0] == stamp else (stamp, self._report(path))
            read[path] = known
            report = known[1]
            if isinstance(report, str):
                why = report
            elif (why_not := _stranger(report, found)) is None:
                return _reported_row(found, report)
            else:
                why = f"{one_line(path.name, 100)} is about another run ({why_not})"
        return _row(found, "no report", "quiet", why)

    def _report(self, path: Path) -> Report | str:
        try:
            return self._read_report(path)
        except BadInput as error:
            return one_line(str(error), 300)


def _stranger(report: Report, found: FoundRun) -> str | None:
    if found.first is None:
        return "it has trials, the file none" if report.counts.trials else None
    return differing_fingerprint(report.header, found.first)


def _row(found: FoundRun, word: str, style: Style, reason: str) -> RunRow:
    return RunRow(
        id=found.id,
        name=one_line(found.name, 300),
        finished=found.finished,
        written=found.stamp.mtime_ns / 1e9,
        word=word,
        style=style,
        reason=reason,
        pins={} if found.first is None else _pins(found.first),
    )


def _reported_row(found: FoundRun, report: Report) -> RunRow:
    header, counts = report.header, report.counts
    version = header.dataset_version
    return msgspec.structs.replace(
        _row(found, report.verdict, VERDICT_STYLE[report.verdict], _reason(report)),
        samples=counts.samples,
        trials=counts.trials,
        errors=counts.trials_error,
        model=one_line(_model(header.model or ""), 100),
        dataset="" if version is None else one_line(str(version), 60),
        pins=_pins(header),
        metrics={
            name: Point(metric.value, metric.n, *(metric.ci_95 or (None, None)))
            for name, metric in report.metrics.items()
            if metric.value is not None
        },
        gates={gate.name: Bound(gate.op, gate.bound, gate.status) for gate in report.gates},
    )


def _reason(report: Report) -> str:
    return one_line(verdict_line(report).cells[1].text.strip(), 300)


def _model(name: str) -> str:
    """Of a file its last part: the rest is the same in every row."""
    return name.rpartition("/")[2] if name.startswith("/") else name


def _pins(holder: msgspec.Struct) -> dict[str, str]:
    found = {label: getattr(holder, name) for label, name in SHOWN_PINS.items()}
    return {label: one_line(pin[:SHORT]) for label, pin in found.items() if pin is not None}
