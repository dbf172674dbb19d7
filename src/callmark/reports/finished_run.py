"""A finished run as the forms of a report see it: the report, and its trials where they are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.errors import PluginError, UsageError
from callmark.records.report import GateOutcome, Report
from callmark.records.results import Result
from callmark.records.seams import PluginRow
from callmark.store.files import atomic_writer, read_results
from callmark.summary.failing import explain_firm
from callmark.summary.metrics import CrossScore
from callmark.summary.reasons import why_failed

LISTED_TRIALS = 1000  # failing trials that a form names; the number of all stands beside them


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """`results`: the file with the trials; None: there is only the report. `cross_score` gives
    the distribution of chance that a page shows beside the answers' own."""

    report: Report
    results: Path | None = None
    cross_score: CrossScore | None = None
    fail_on_inconclusive: bool = False

    @property
    def gates(self) -> tuple[GateOutcome, ...]:
        """All of them, the budget that a clock measured last."""
        budget = self.report.timing.perf_budget
        return self.report.gates if budget is None else (*self.report.gates, budget)

    def trials(self) -> Iterator[Result]:
        """Every trial, one at a time; none where there is only a report."""
        return iter(()) if self.results is None else read_results(self.results)

    def why_failed(self, result: Result) -> tuple[str, ...]:
        """By the gates of this run; nothing of a scored sample that is in quarantine."""
        header = self.report.header
        if result.sample_id in header.in_quarantine and result.scores is not None:
            return ()
        return why_failed(result, self.report.warning_gates, header.gates)

    def file_of_trials(self, form: str) -> Path:
        if self.results is None:
            raise UsageError(f"{form}: needs the trials, a report has none: name the results file")
        return self.results


class FailedTrial(msgspec.Struct, frozen=True):
    """`trial` None: a report names only the sample. `lost`: infrastructure failed, not a model.
    `flags`: the sentences of its firm flags that no reason tells already."""

    sample_id: str
    trial: int | None
    reasons: tuple[str, ...]
    lost: bool = False
    flags: tuple[str, ...] = ()


class FailedTrials(msgspec.Struct, frozen=True):
    count: int
    first: tuple[FailedTrial, ...]


def failed_trials(finished: FinishedRun) -> FailedTrials:
    """Read as a stream: the first are kept, all are counted. Without trials, what the report
    says about the samples behind each shortfall."""
    if finished.results is None:
        return _of_report(finished.report)
    count = 0
    first: list[FailedTrial] = []
    for result in read_results(finished.results):
        reasons = finished.why_failed(result)
        if not reasons:
            continue
        count += 1
        if len(first) < LISTED_TRIALS:
            lost = result.scores is None
            flags = explain_firm(result.scores, told="\n".join(reasons))
            first.append(FailedTrial(result.sample_id, result.trial, reasons, lost, flags))
    return FailedTrials(count, tuple(first))


def _of_report(report: Report) -> FailedTrials:
    short: dict[str, list[str]] = {}
    binding = {outcome.name for outcome in report.gates} - report.warning_gates
    for name, failing in report.failing.items():
        if name not in binding:
            continue
        for sample_id in failing.sample_ids:
            short.setdefault(sample_id, []).append(name)
    found = [
        FailedTrial(sample_id, None, (f"short of {', '.join(names)}",))
        for sample_id, names in short.items()
    ]
    lost = [
        FailedTrial(one.sample_id, one.trial, (f"not scored: {one.error}",), lost=True)
        for one in report.errors.first
    ]
    both = [*found, *lost]
    return FailedTrials(len(both), tuple(both[:LISTED_TRIALS]))


Writer = Callable[[FinishedRun, BinaryIO], None]


def write_json(finished: FinishedRun, stream: BinaryIO) -> None:
    stream.write(msgspec.json.format(msgspec.json.encode(finished.report), indent=2) + b"\n")


# Where the writer of each form is: a run loads those that somebody asked for.
FORMATS: dict[str, str] = {
    ".html": "callmark.reports.html.page:write_html",
    ".xml": "callmark.reports.junit:write_junit",
    ".md": "callmark.reports.markdown:write_markdown",
    ".csv": "callmark.reports.tables:write_csv",
    ".parquet": "callmark.reports.tables:write_parquet",
    ".json": "callmark.reports.finished_run:write_json",
}
_OF_TRIALS = frozenset({".csv", ".parquet"})
STATEMENTS = "statements"  # `-o statements:FILE`: a row for each statement
_OF_STATEMENTS: dict[str, str] = {
    ".csv": "callmark.reports.tables:write_statements_csv",
    ".parquet": "callmark.reports.tables:write_statements_parquet",
}


class WantedForm(msgspec.Struct, frozen=True):
    """A file that somebody asked for, and what writes it. `of_trials`: it holds nothing but
    trials: without them there is nothing to write."""

    path: Path
    write: Writer
    of_trials: bool = False


def wanted_form(path: Path, form: str | None = None, added: Sequence[PluginRow] = ()) -> WantedForm:
    """`form`: one of FORMATS, by default the ending of the name; an unknown one is refused before
    anything is run. `added`: the reports of plug-ins, which `NAME:FILE` chooses too."""
    for row in added:
        own = str(row.given["ending"]).lower()
        if own in FORMATS:
            raise UsageError(f"{row.home}: report {row.name}: {own} is a form of callmark's own")
        name, colon, file = str(path).partition(":")
        if colon and file and name == row.name:
            return WantedForm(Path(file), _write_with(row))
        if path.name.lower().endswith(own):
            return WantedForm(path, _write_with(row))
    chosen, colon, file = str(path).partition(":")
    if colon and file and chosen == STATEMENTS:
        table = Path(file)
        if table.suffix.lower() not in _OF_STATEMENTS:
            raise UsageError(f"-o: {path}: a table of statements ends in .csv or .parquet")
        return WantedForm(table, _find(_OF_STATEMENTS[table.suffix.lower()]), of_trials=True)
    ending = form or path.suffix.lower()
    if ending not in FORMATS:
        known = ", ".join((*FORMATS, *(str(row.given["ending"]) for row in added)))
        raise UsageError(f"-o: {path}: cannot tell the format from the name; it can end in {known}")
    return WantedForm(path, _find(FORMATS[ending]), ending in _OF_TRIALS)


def _find(place: str) -> Writer:
    module, _, name = place.partition(":")
    writer: Writer = getattr(import_module(module), name)
    return writer


def _write_with(row: PluginRow) -> Writer:
    def write(finished: FinishedRun, stream: BinaryIO) -> None:
        written = row.target(finished)
        if isinstance(written, str):
            written = written.encode("utf-8", "surrogatepass")
        if not isinstance(written, bytes):
            what = f"must return text or bytes, not {type(written).__name__}"
            raise PluginError(f"{row.home}: the report {row.name} {what}")
        stream.write(written)

    return write


def write_forms(finished: FinishedRun, forms: Sequence[WantedForm]) -> None:
    for form in forms:
        with atomic_writer(form.path) as stream:
            form.write(finished, stream)
