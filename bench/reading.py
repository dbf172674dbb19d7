"""What it costs to look at results that are there: a comparison in units of decoding both files,
the viewer's first look and the page in seconds of CPU."""

from __future__ import annotations

import hashlib
import json
import os
import time
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from bench.size import callmark, short_id, write_recorded
from callmark.compare.compare import CompareOptions, SideLines, compare_runs
from callmark.records.report import Report, ReportHeader
from callmark.reports.html.indexed_run import samples_as_written, survey_of_run
from callmark.reports.html.page import write_run_page
from callmark.run.indexing import IndexRows
from callmark.run.play import cross_scorer
from callmark.store.files import read_report, read_results
from callmark.store.journal import OutputLines
from callmark.summary.summary import Summariser
from callmark.view.catalogue import RunCatalogue
from callmark.view.opened import JudgedRun, Openings

RUN = 2000  # that are played; the others have the same answers under other ids
PAIRS = 20_000
OPENED = 100_000
ROUNDS = 5
NOTES = (
    "Played are 2,000 samples; the rest of a file are the same lines under other ids. B gives up on"
    " every twentieth question. Each file has the index that a run leaves beside its results, made"
    " from its lines; hashing the results and holding lines against the index are part of each"
    " figure. Without an index all lines are read, and 500 answers are held against the results of"
    " others, for the level of chance: that is scoring.",
)


def _cpu(work: Callable[[], object]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def _played(folder: Path) -> tuple[list[dict[str, object]], Report]:
    files = write_recorded(folder, RUN, short_id)
    callmark("run", "--quiet", *files, "--no-html", "--out", folder / "played.jsonl")
    lines = (folder / "played.jsonl").read_bytes().splitlines()
    return [json.loads(line) for line in lines], read_report(folder / "report.json")


def _repeat(lines: list[dict[str, object]], path: Path, size: int, *, worse: bool = False) -> Path:
    path.parent.mkdir(exist_ok=True)
    with path.open("w", encoding="utf-8") as file:
        for number in range(size):
            line = {**lines[number % len(lines)], "index": number, "sample_id": short_id(number)}
            if worse and number % 20 == 0:
                line |= {"model_output": "I do not know.", "turns": [], "spans": []}
            file.write(json.dumps(line, separators=(",", ":")) + "\n")
    return path


def _index(results: Path) -> None:
    """As a run leaves it behind, which these lines were not written by."""
    summariser = Summariser(cross_scorer())
    with IndexRows(results) as rows, results.open("rb") as lines:
        for result in read_results(results):
            summariser.add(result)
            rows.add(result, None)
        summariser.report(ReportHeader(), ())
        sizes = array("I", map(len, lines))
        sha256 = hashlib.sha256(results.read_bytes()).hexdigest()
        rows.write(OutputLines(sha256, sizes), summariser)


def _decode(*paths: Path) -> None:
    for path in paths:
        for _ in read_results(path):
            pass


def _compare(a: Path, b: Path) -> None:
    options = CompareOptions()
    with SideLines(a, options) as one, SideLines(b, options) as other:
        compare_runs(one, other, options)
        assert not one.is_scored_again
        assert not other.is_scored_again


def _write_page(results: Path, report: Report) -> None:
    with Path(os.devnull).open("wb") as stream:
        survey = survey_of_run(results, report, cross_scorer())
        write_run_page(
            stream,
            report,
            lambda: read_results(results),
            name="run",
            cross_score=cross_scorer(),
            survey=survey,
            samples=None if survey is None else samples_as_written(results),
        )


def _open(results: Path, report: Report) -> None:
    with TemporaryDirectory() as scratch:
        openings = Openings(Path(scratch), lambda _: JudgedRun(report, cross_scorer()))
        (run,) = RunCatalogue(results.parent).scan().runs
        openings.open(run)


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, figure, bound), each as soon as it is known."""
    with TemporaryDirectory() as name:
        lines, report = _played(Path(name))
        a = _repeat(lines, Path(name, "a", "results.jsonl"), PAIRS)
        b = _repeat(lines, Path(name, "b", "results.jsonl"), PAIRS, worse=True)
        counts = msgspec.structs.replace(report.counts, trials=PAIRS)
        whole = msgspec.structs.replace(report, counts=counts)
        works = (lambda: _decode(a, b), lambda: _compare(a, b), lambda: _write_page(a, whole))
        read, read_page = [_best(work, 2) for work in works[1:]]
        _index(a)
        _index(b)
        found = [_cpu(work) for work in works]
        for _ in range(ROUNDS - 1):
            found = [min(known, _cpu(work)) for known, work in zip(found, works, strict=True)]
        decoded, compared, page = found
        pairs = f"compare {PAIRS:,} pairs ÷ decode both files"
        yield f"CPU: {pairs}", f"{compared / decoded:.2f}", "<= 1.5"
        yield "  without their indexes", f"{read / decoded:.1f}", ""
        yield f"CPU s: the page of {PAIRS:,} trials", f"{page:.2f}", "<= 2"
        yield "  without its index", f"{read_page:.1f}", ""
        many = _repeat(lines, Path(name, "many", "results.jsonl"), OPENED)
        _index(many)
        opened = _best(lambda: _open(many, whole), 3)
        yield f"CPU s: view, first open of {OPENED:,} trials", f"{opened:.2f}", "<= 2"


def _best(work: Callable[[], object], rounds: int) -> float:
    return min(_cpu(work) for _ in range(rounds))
