"""Finished runs to write in every form: good ones, bad ones, hostile ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec
from tests.builders import make_error, make_result, numbered, rules_with

from callmark.records.report import Report, ReportHeader
from callmark.records.results import CallDifferences, Result
from callmark.reports.finished_run import FinishedRun
from callmark.store.files import encode_result
from callmark.summary.summary import Summariser


def report_of(results: Iterable[Result], **gates: object) -> Report:
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(), rules_with(**gates))


def finished(
    folder: Path, results: list[Result], *, fail_on_inconclusive: bool = False, **gates: object
) -> FinishedRun:
    path = folder / "results.jsonl"
    path.write_bytes(b"".join(map(encode_result, results)))
    return FinishedRun(
        report=report_of(results, **gates),
        results=path,
        fail_on_inconclusive=fail_on_inconclusive,
    )


def mixed() -> list[Result]:
    """Thirty good samples, one that leaks, one contaminated control, one that was lost."""
    return numbered(
        [
            *(make_result() for _ in range(30)),
            make_result(privacy_ok=False),
            make_result(kind="control", controls_with_integration=1),
            make_error(),
        ]
    )


def hostile_result(text: str, index: int = 0) -> Result:
    """A failing trial with this text wherever a report may show one."""
    result = make_result(
        index,
        sample_id=f"{text}{index}",
        output=text,
        metadata={"locale": text, "slices": [text], "scenario": text},
        f1=0.0,
        multi_call_parity_ok=False,
    )
    assert result.scores is not None
    calls = msgspec.structs.replace(
        result.scores.calls,
        errors=(text,),
        differences=CallDifferences(missing=(text,), extra=(text,)),
    )
    scores = msgspec.structs.replace(result.scores, calls=calls, json_args_valid=False)
    return msgspec.structs.replace(result, scores=scores)
