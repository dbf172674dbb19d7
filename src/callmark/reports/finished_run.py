"""A finished run as the forms of a report see it: the report, and its trials where they are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.errors import UsageError
from callmark.records.report import GateOutcome, Report
from callmark.records.results import Result
from callmark.reports.statements import explain_firm
from callmark.store.files import read_results
from callmark.summary.failing import why_failed
from callmark.summary.metrics import CrossScore

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
    count, warnings = 0, finished.report.warning_gates
    first: list[FailedTrial] = []
    for result in read_results(finished.results):
        reasons = why_failed(result, warnings, finished.report.header.gates)
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
