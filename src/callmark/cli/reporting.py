"""What `run`, `score` and `demo` print when they are done."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.broker.nearest import explain_miss
from callmark.core.jsontext import canonical_json
from callmark.core.report import MissedCall, Report
from callmark.reports.layout import write
from callmark.reports.neutral import neutralise
from callmark.reports.terminal import SHOWN_MISSES, report_blocks, verdict_line
from callmark.running.offers import open_registry
from callmark.scorers.redaction import redact_pii


class RunPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where the files of a run are, as far as there are any."""

    results: str | None = None
    report: str | None = None
    page: str | None = None
    fixtures: str | None = None
    registry: str | None = None
    redact_pii: bool = False


def present(report: Report, places: RunPaths, *, quiet: bool, more: Sequence[str] = ()) -> None:
    """The whole report, or its first line; what a person should know is said in any case."""
    if quiet:
        write([verdict_line(report)], sys.stdout)
        say_warnings(report.warnings)
        return
    steps = [*_next_steps(report, places), *more]
    write(
        report_blocks(report, misses=explained_misses(report, places), next_steps=steps), sys.stdout
    )


def say_warnings(warnings: Sequence[str]) -> None:
    """Beside what is printed, so that whoever reads that finds nothing else in it."""
    for text in warnings:
        print(f"warning: {neutralise(text)}", file=sys.stderr)


def explained_misses(report: Report, places: RunPaths) -> list[str]:
    """The first different calls without a fixture, each with the fixture that came nearest."""
    if not report.misses.count or places.fixtures is None:
        return []
    broker = ToolBroker(places.fixtures, open_registry(places.registry))
    different: dict[tuple[str, str], MissedCall] = {}
    for miss in report.misses.first:
        different.setdefault((miss.name, canonical_json(miss.key_normalized)), miss)
    texts = [
        explain_miss(broker, miss.name, miss.key_normalized, miss.sample_id).text(
            places.results or "results.jsonl"
        )
        for miss in islice(different.values(), SHOWN_MISSES)
    ]
    return [redact_pii(text) for text in texts] if places.redact_pii else texts


def _next_steps(report: Report, places: RunPaths) -> Iterator[str]:
    if places.report is not None:
        yield f"{places.report}: all numbers"
    if places.page is not None:
        yield f"{places.page}: look at them, and at every sample, in a browser"
    if places.results is None:
        return
    if report.complete:
        yield f"{places.results}: every trial with its calls and scores"
    else:
        yield f"{places.results}.journal: what is finished; the same command with --resume goes on"
        return
    if report.misses.count:
        fixtures = f" --fixtures {places.fixtures}" if places.fixtures else ""
        yield f"callmark fixtures suggest {places.results}{fixtures}"
    warnings = report.warning_gates
    for _, failing in sorted(report.failing.items(), key=lambda one: one[0] in warnings):
        if failing.sample_ids:
            yield f"callmark show {places.results} {failing.sample_ids[0]}"
            return
