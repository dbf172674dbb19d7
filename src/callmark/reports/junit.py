"""A run as JUnit XML: one case for the verdict, for each gate, and for each trial that failed.

Written for readers that were written for unit tests: no element and no attribute beyond what the
schemas of Jenkins and Surefire both know, and only characters that XML 1.0 may hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import BinaryIO, Literal, assert_never

import msgspec

from callmark.records.report import GateOutcome, Report
from callmark.reports.finished_run import FailedTrial, FinishedRun, failed_trials
from callmark.reports.layout import neutralise, one_line
from callmark.reports.terminal import gate_text, verdict_text
from callmark.summary.metrics import label_of, sentence_of

LONGEST_NAME = 200
LONGEST_TEXT = 4000
_NO_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}  # the only others that XML 1.0 forbids

Outcome = Literal["passed", "failure", "error", "skipped"]


class JunitCase(msgspec.Struct, frozen=True):
    """`text` explains the outcome; of a case that passed it is what is worth knowing."""

    name: str
    outcome: Outcome
    message: str = ""
    text: str = ""


class JunitSuite(msgspec.Struct, frozen=True):
    name: str
    cases: tuple[JunitCase, ...]
    note: str = ""


def write_junit(finished: FinishedRun, stream: BinaryIO) -> None:
    suites = tuple(_suites(finished))
    counts = Counter(case.outcome for suite in suites for case in suite.cases)
    total = f'tests="{counts.total()}" failures="{counts["failure"]}" errors="{counts["error"]}"'
    stream.write(b'<?xml version="1.0" encoding="UTF-8"?>\n')
    stream.write(f'<testsuites name="callmark" {total}>\n'.encode())
    for suite in suites:
        for text in _suite_lines(suite):
            stream.write(f"{text}\n".encode())
    stream.write(b"</testsuites>\n")


def _suites(finished: FinishedRun) -> Iterator[JunitSuite]:
    strict = finished.fail_on_inconclusive
    yield JunitSuite("callmark.verdict", (_verdict_case(finished.report, strict=strict),))
    yield JunitSuite(
        "callmark.gates", tuple(_gate_case(one, strict=strict) for one in finished.gates)
    )
    failed = failed_trials(finished)
    left_out = failed.count - len(failed.first)
    note = f"{left_out} more trials failed and are not listed here" if left_out else ""
    yield JunitSuite("callmark.samples", tuple(map(_trial_case, failed.first)), note)


def _verdict_case(report: Report, *, strict: bool) -> JunitCase:
    reason = verdict_text(report)
    match report.verdict:
        case "pass":
            return JunitCase("verdict", "passed", text=f"{reason}; {report.verdict_reason}")
        case "fail":
            return JunitCase("verdict", "failure", reason)
        case "inconclusive" if report.header.num_shards > 1 and not strict:
            return JunitCase("verdict", "skipped", f"inconclusive: {reason}")
        case "inconclusive" | "incomplete" | "empty":
            return JunitCase("verdict", "error", f"{report.verdict}: {reason}")
        case _:
            assert_never(report.verdict)


def _gate_case(gate: GateOutcome, *, strict: bool) -> JunitCase:
    said = gate_text(gate)
    match gate.status:
        case "pass":
            return JunitCase(gate.name, "passed", text=said)
        case "warn":
            return JunitCase(gate.name, "passed", text=f"warning: {said}")
        case "fail":
            return JunitCase(gate.name, "failure", said)
        case "inconclusive":
            return JunitCase(gate.name, "error" if strict else "skipped", f"inconclusive: {said}")
        case "n/a":
            words = f"{label_of(gate.name)}: {sentence_of(gate.name)}"
            return JunitCase(gate.name, "skipped", f"n/a: {gate.reason}. {words}")
        case _:
            assert_never(gate.status)


def _trial_case(failed: FailedTrial) -> JunitCase:
    trial = f" trial {failed.trial}" if failed.trial else ""
    return JunitCase(
        failed.sample_id + trial,
        "error" if failed.lost else "failure",
        failed.reasons[0],
        "\n".join((*failed.reasons, *failed.flags)),
    )


def _suite_lines(suite: JunitSuite) -> Iterator[str]:
    counts = Counter(case.outcome for case in suite.cases)
    yield (
        f'  <testsuite name="{suite.name}" tests="{len(suite.cases)}"'
        f' failures="{counts["failure"]}" errors="{counts["error"]}"'
        f' skipped="{counts["skipped"]}" time="0">'
    )
    for case in suite.cases:
        yield from _case_lines(suite.name, case)
    if suite.note:
        yield f"    <system-out>{_text(suite.note)}</system-out>"
    yield "  </testsuite>"


def _case_lines(suite: str, case: JunitCase) -> Sequence[str]:
    head = (
        f'    <testcase classname="{suite}" name="{_attribute(case.name, LONGEST_NAME)}" time="0"'
    )
    message = f'message="{_attribute(case.message, LONGEST_TEXT)}"'
    match case.outcome:
        case "passed" if not case.text:
            return (f"{head}/>",)
        case "passed":
            inner = f"<system-out>{_text(case.text)}</system-out>"
        case "skipped":
            inner = f"<skipped {message}/>"
        case "failure" | "error":
            text = _text(case.text or case.message)
            inner = f'<{case.outcome} {message} type="{suite}">{text}</{case.outcome}>'
        case _:
            assert_never(case.outcome)
    return (f"{head}>", f"      {inner}", "    </testcase>")


def _attribute(text: str, limit: int) -> str:
    return escape(one_line(text, limit).translate(_NO_XML))


def _text(text: str) -> str:
    """With its line ends. `>` is escaped, so nothing ends here that did not begin here."""
    shown = neutralise(text).translate(_NO_XML)
    return escape(shown if len(shown) <= LONGEST_TEXT else shown[: LONGEST_TEXT - 1] + "…")
