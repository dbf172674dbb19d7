"""What `run`, `score` and `demo` print when they are done."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

from callmark.errors import BadInput, UsageError
from callmark.reports.layout import FOLD, Block, neutralise, write

if TYPE_CHECKING:
    from callmark.records.report import MissedCall, Report
    from callmark.records.results import Result
    from callmark.reports.finished_run import FinishedRun, WantedForm
    from callmark.summary.failing import StatementList

READ_TRIALS = 1000  # whose statements a terminal counts
SHOWN_REJECTED = 3  # samples with a wrong statement, in a command to copy


class RunPaths(NamedTuple):
    """Where the files of a run are, as far as there are any, and the dataset that it is about."""

    results: str | None = None
    report: str | None = None
    page: str | None = None
    fixtures: str | None = None
    registry: str | None = None
    redact_pii: bool = False
    dataset: str | None = None


def add_detail_options(parser: argparse.ArgumentParser, what: str, more: str) -> None:
    """How much is printed: `what` in one line, the short report, or all of it."""
    section = parser.add_argument_group("what is printed").add_mutually_exclusive_group()
    section.add_argument("--quiet", action="store_true", help=f"only the {what} and warnings")
    section.add_argument("-v", "--verbose", action="store_true", help=f"{more} as well")


def present(
    report: Report,
    places: RunPaths,
    *,
    quiet: bool,
    verbose: bool = False,
    more: Sequence[str] = (),
    is_log: bool = False,
) -> None:
    """The report, or its first line; what a person should know is said in any case. `is_log`: its
    findings were told before."""
    from callmark.reports.terminal import log_blocks, report_blocks, verdict_line

    if quiet:
        write([verdict_line(report)], sys.stdout)
        say_warnings(report.warnings)
        return
    results = places.results if report.complete else None
    tables = _tables(report) if verbose else None
    steps = [*_next_steps(report, places), *more]
    if is_log:
        told = log_blocks(report, results=results, tables=tables, next_steps=steps)
        write(told, sys.stdout, FOLD)
        return
    blocks = report_blocks(
        report,
        results=results,
        tables=tables,
        misses=explained_misses(report, places),
        statements=first_statements(report, places),
        changes=first_changes(report, places),
        next_steps=steps,
    )
    write(blocks, sys.stdout, FOLD)


def _tables(report: Report) -> Iterator[Block]:
    from callmark.reports.terminal import table_blocks

    return table_blocks(report)


def say_warnings(warnings: Sequence[str]) -> None:
    """Beside what is printed, so that whoever reads that finds nothing else in it."""
    for text in warnings:
        print(f"warning: {neutralise(text)}", file=sys.stderr)


def first_statements(report: Report, places: RunPaths) -> StatementList | None:
    """Those of the first trials: a run may have a million, and a person reads a few."""
    from callmark.store.files import read_results
    from callmark.summary.failing import list_statements

    if places.results is None or not report.complete or not Path(places.results).is_file():
        return None
    return list_statements(islice(read_results(Path(places.results)), READ_TRIALS))


def first_changes(report: Report, places: RunPaths) -> list[str]:
    """What the first samples do otherwise than it was observed: `id: calls a instead of b`."""
    from callmark.reports.terminal import SHOWN_CHANGES
    from callmark.store.files import read_results
    from callmark.summary.metrics import UNCHANGED

    if places.results is None or UNCHANGED not in report.failing or not report.complete:
        return []
    changed = (
        f"{result.sample_id}: {'; '.join(result.scores.changes)}"
        for result in read_results(Path(places.results))
        if result.scores is not None and result.scores.changes
    )
    return list(islice(changed, SHOWN_CHANGES))


def explained_misses(report: Report, places: RunPaths) -> list[str]:
    """The first different calls without a fixture, each with the fixture that came nearest."""
    if not report.misses.count:
        return []
    if places.fixtures is None:
        return ["no fixtures were given: name their folder with --fixtures"]
    from callmark.broker.broker import ToolBroker
    from callmark.broker.nearest import explain_miss
    from callmark.records.jsontext import canonical_json
    from callmark.reports.terminal import SHOWN_MISSES
    from callmark.run.offers import open_registry
    from callmark.scorers.redaction import redact_pii

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
    from callmark.summary.gates import TOO_FEW
    from callmark.summary.metrics import FLAGGED, UNCHANGED

    if places.page is not None:
        yield f"{places.page}: every sample in a browser"
    failed = {gate.name for gate in report.gates if gate.status == "fail"}
    if places.results is not None and failed & report.failing.keys():
        shown = f"callmark show {shlex.quote(str(places.results))}"
        yield f"{shown}: which samples failed, and why"
    if places.report is not None:
        yield f"{places.report}: all numbers (--verbose prints them)"
    if places.results is None:
        return
    if not report.complete:
        yield f"{places.results}.journal: what is finished; the same command with --resume goes on"
        if report.errors.count:
            allowed = f"--resume --max-errors {report.errors.count}"
            yield f"{allowed}: the same, and it ends even if as many are lost again"
        return
    if places.page is None:
        yield f"{places.results}: every trial"
    if report.misses.count:
        fixtures = f" --fixtures {places.fixtures}" if places.fixtures else ""
        yield f"callmark fixtures suggest {places.results}{fixtures}"
    if report.verdict == "inconclusive" and any(
        (gate.reason or "").endswith(TOO_FEW) for gate in report.gates
    ):
        yield "--min-eligible-for-gates 1: the same command judges what there is"
    observed = report.metrics.get(UNCHANGED)
    # Where some are accepted, somebody has asked for it and was told what is left, and why.
    is_observed = observed is not None and observed.n == report.counts.samples
    if places.dataset is not None and is_observed and _can_be_accepted(Path(places.results)):
        flagged = report.failing.get(FLAGGED)
        wrong = () if flagged is None else flagged.sample_ids[:SHOWN_REJECTED]
        rejects = "".join(f" --reject {shlex.quote(sample_id)}" for sample_id in wrong)
        but = ", but for what was flagged" if wrong else ""
        accept = f"callmark dataset accept {shlex.quote(places.dataset)} --all{rejects}"
        yield f"{accept}: what was observed is right{but}"


def _can_be_accepted(results: Path) -> bool:
    """Whether any of the first samples would be accepted without its name."""
    from callmark.datasets.accept import is_incomplete
    from callmark.store.files import read_results

    first = islice(read_results(results), READ_TRIALS) if results.is_file() else ()
    return any(not is_incomplete({"prompt": one.prompt, "metadata": one.metadata}) for one in first)


def open_finished(
    run: Path, report: Path | None = None, *, fail_on_inconclusive: bool = False
) -> FinishedRun:
    """`run`: a results file, a report, or a folder. `report`: the report of those results."""
    from callmark.reports.finished_run import FinishedRun
    from callmark.run.play import cross_scorer
    from callmark.shards.merge import report_beside
    from callmark.store.files import read_report
    from callmark.store.runs import REPORT, file_of, is_report

    path = file_of(run)
    if is_report(path):
        if report is not None:
            raise UsageError(f"--report: {path} is itself a report: give one or the other")
        return FinishedRun(report=read_report(path), fail_on_inconclusive=fail_on_inconclusive)
    if report is None:
        beside = (report_beside(path), path.with_name(REPORT))
        report = next((one for one in beside if one.is_file()), None)
    if report is None:
        found = summarise_lines(path)
    else:
        found = read_report(report)
        _check_same_run(path, report, found)
    return FinishedRun(
        report=found,
        results=path,
        cross_score=cross_scorer(),
        fail_on_inconclusive=fail_on_inconclusive,
    )


def open_unfinished(journal: Path) -> FinishedRun:
    """What is known of a run by its journal: judged as its report was, if it has written one."""
    import msgspec

    from callmark.api import summarize_results
    from callmark.records.report import Report
    from callmark.reports.finished_run import FinishedRun
    from callmark.store.files import read_report
    from callmark.store.journal import finished_trials
    from callmark.store.runs import REPORT

    report = journal.with_name(REPORT)
    if report.is_file():
        return FinishedRun(report=read_report(report))
    found = summarize_results(finished_trials(journal))
    return FinishedRun(report=msgspec.convert(found, Report))


def summarise_lines(path: Path) -> Report:
    """By the scores that the lines have. Their metadata decide who is counted for what, and
    anybody may have edited them."""
    import msgspec

    from callmark.api import summarize_results
    from callmark.datasets.schema import metadata_problems
    from callmark.records.report import Report
    from callmark.run.resume import locate_conflict
    from callmark.stats.columns import ConflictingResults
    from callmark.store.files import numbered_results

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
        raise locate_conflict(conflict, path) from None
    except BadInput as error:
        if str(error).startswith(f"{path}:"):
            raise
        raise BadInput(f"{path}:{line}: {str(error).removeprefix('results: ')}") from None


def _check_same_run(results: Path, path: Path, report: Report) -> None:
    """Two files in one folder need not belong together."""
    from callmark.store.files import read_results
    from callmark.summary.summary import differing_fingerprint

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


STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
OWN_FORMS = (".json", ".md", ".html")
# The endings that `reports.finished_run` knows, for the help text: they load all writers.
REPORT_FORMS = (".html", ".xml", ".md", ".csv", ".parquet", ".json")


def add_form_options(parser: argparse.ArgumentParser) -> None:
    section = parser.add_argument_group("other forms of the report")
    _add_o(section, "also write this file", REPORT_FORMS)
    section.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    section.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write Markdown for a pull request"
    )


def _add_o(section: argparse._ArgumentGroup, what: str, endings: Iterable[str]) -> None:
    section.add_argument(
        "-o",
        dest="forms",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help=f"{what}; the ending gives the format ({', '.join(endings)}); may be repeated",
    )


def forms_of(options: argparse.Namespace, *, has_trials: bool = True) -> tuple[WantedForm, ...]:
    """The forms that were asked for; that they can be written is checked now. `has_trials`: the
    command writes the lines that a table is made of."""
    from callmark.plugins import rows_of
    from callmark.reports.finished_run import wanted_form
    from callmark.store.files import check_writable

    named = {options.junit: ".xml", options.markdown: ".md"}
    forms = [wanted_form(path, added=rows_of("report")) for path in options.forms]
    forms += [wanted_form(path, form) for path, form in named.items() if path is not None]
    if not has_trials and any(form.of_trials for form in forms):
        raise UsageError("-o: a table needs the scored lines: add --out FILE")
    for form in forms:
        check_writable(form.path)
    return tuple(forms)


def add_own_forms(parser: argparse.ArgumentParser, what: str) -> None:
    """For what is no report of a run: JSON, Markdown, a page."""
    section = parser.add_argument_group("output")
    _add_o(section, f"write the {what}", OWN_FORMS)
    section.add_argument("--json", type=Path, metavar="FILE", help=f"write the {what} as JSON")
    section.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write Markdown for a pull request"
    )
    section.add_argument("--html", type=Path, metavar="FILE", help="write a page for a browser")


def own_forms_of(options: argparse.Namespace) -> dict[Path, str]:
    """Files and their endings; that they can be written is checked now."""
    from callmark.store.files import check_writable

    forms = {path: path.suffix.lower() for path in options.forms}
    for path, ending in forms.items():
        if ending not in OWN_FORMS:
            known = ", ".join(OWN_FORMS)
            raise UsageError(
                f"-o: {path}: cannot tell the format from the name; it can end in {known}"
            )
    named = {options.json: ".json", options.markdown: ".md", options.html: ".html"}
    forms |= {path: ending for path, ending in named.items() if path is not None}
    for path in forms:
        check_writable(path)
    return forms


def write_own_forms(
    forms: Mapping[Path, str], writers: Mapping[str, Callable[[BinaryIO], object]]
) -> None:
    from callmark.store.files import atomic_writer

    for path, ending in forms.items():
        with atomic_writer(path) as stream:
            writers[ending](stream)


def append_step_summary(markdown: Callable[[], str]) -> None:
    """On GitHub a step may say something in Markdown. If that cannot be written, the run is as
    good as it was."""
    path = os.environ.get(STEP_SUMMARY)
    if not path:
        return
    text = f"{markdown()}\n"
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        reason = error.strerror or error
        print(f"warning: {STEP_SUMMARY}: {path}: not written: {reason}", file=sys.stderr)
