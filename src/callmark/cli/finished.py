"""A run that somebody names: its report and its trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.api import summarize_results
from callmark.comparing.opening import REPORT, file_of, is_report
from callmark.core.belonging import differing_fingerprint
from callmark.core.report import Report
from callmark.core.results import Result
from callmark.core.trial_keys import ConflictingResults
from callmark.datasets.schema import metadata_problems
from callmark.errors import BadInput, UsageError
from callmark.reports.finished import FinishedRun
from callmark.running.conflicts import located
from callmark.running.evaluate import cross_scorer
from callmark.shards.files import report_beside
from callmark.store.lines import numbered_results, read_results
from callmark.store.report_file import read_report


def open_finished(
    run: Path, report: Path | None = None, *, fail_on_inconclusive: bool = False
) -> FinishedRun:
    """`run`: a results file, a report, or a folder. `report`: the report of those results."""
    path = file_of(run)
    if is_report(path):
        if report is not None:
            raise UsageError(f"--report: {path} is a report already: give one of them")
        return FinishedRun(report=read_report(path), fail_on_inconclusive=fail_on_inconclusive)
    if report is None:
        beside = (report_beside(path), path.with_name(REPORT))
        report = next((one for one in beside if one.is_file()), None)
    if report is None:
        found = summarised(path)
    else:
        found = read_report(report)
        _check_same_run(path, report, found)
    return FinishedRun(
        report=found,
        results=path,
        cross_score=cross_scorer(),
        fail_on_inconclusive=fail_on_inconclusive,
    )


def summarised(path: Path) -> Report:
    """By the scores that the lines have. Their metadata decide who is counted for what, and
    anybody may have edited them."""
    line = 0

    def checked() -> Iterator[Result]:
        nonlocal line
        for line, result in numbered_results(path):
            problems = metadata_problems(result.metadata)
            if problems:
                raise BadInput(f"{path}:{line}: {problems[0]}")
            yield result

    try:
        return msgspec.convert(summarize_results(checked()), Report)
    except ConflictingResults as conflict:
        raise located(conflict, path) from None
    except BadInput as error:
        if str(error).startswith(f"{path}:"):
            raise
        raise BadInput(f"{path}:{line}: {str(error).removeprefix('results: ')}") from None


def _check_same_run(results: Path, path: Path, report: Report) -> None:
    """Two files in one folder need not belong together."""
    trials, of_report = 0, report.header
    for result in read_results(results):
        trials += 1
        differs = differing_fingerprint(of_report, result.fingerprints)
        if differs is not None:
            raise _other_run(results, path, f"{differs} differs")
    if trials != report.counts.trials:
        raise _other_run(
            results, path, f"{trials} trials, the report counts {report.counts.trials}"
        )


def _other_run(results: Path, report: Path, why: str) -> BadInput:
    return BadInput(
        f"{results}: {why}: {report} is of another run; name the right one with --report,"
        " or score the results again: callmark score"
    )
