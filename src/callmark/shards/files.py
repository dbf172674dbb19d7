"""The files of a shard: its results, and the report that was written with them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from callmark.core.report import Report, Shard
from callmark.errors import BadInput, Incomplete, UsageError
from callmark.store.report_file import read_report

RESULTS, REPORT = "results", "report"
_SHARD = ".shard_"


class ShardFile(msgspec.Struct, frozen=True):
    """A shard that is complete, as its report says."""

    results: Path
    report_path: Path
    report: Report
    facts: Shard

    @property
    def index(self) -> int:
        return self.report.header.shard_index

    def __str__(self) -> str:
        return f"{self.results}: shard {self.index} of {self.report.header.num_shards}"


def shard_names(shard_index: int) -> tuple[str, str]:
    """What a shard writes if nobody names its results and report."""
    return f"{RESULTS}{_SHARD}{shard_index}.jsonl", f"{REPORT}{_SHARD}{shard_index}.json"


def shard_results(results: Path, shard_index: int) -> Path:
    """Where a shard writes whose run would write to `results`."""
    return results.with_name(f"{results.name.removesuffix('.jsonl')}{_SHARD}{shard_index}.jsonl")


def report_beside(results: Path) -> Path:
    """`results.X.jsonl` has `report.X.json`; any other `NAME.jsonl` has `NAME.report.json`."""
    stem = results.name.removesuffix(".jsonl")
    if stem == RESULTS or stem.startswith(f"{RESULTS}."):
        return results.with_name(f"{REPORT}{stem.removeprefix(RESULTS)}.json")
    return results.with_name(f"{stem}.{REPORT}.json")


def open_shards(
    paths: Sequence[Path], reports: Sequence[Path] | None = None
) -> tuple[ShardFile, ...]:
    """`paths` are results files, or folders of them. `reports`: those of the results, in the same
    order; None: they stand beside them."""
    if reports is None:
        named = [file for path in paths for file in _results_in(path)]
        return tuple(_opened(file, _report_of(file)) for file in named)
    if len(reports) != len(paths):
        raise UsageError(
            f"--reports: {len(paths)} results files, but {len(reports)} reports:"
            " name one for each, in the same order"
        )
    return tuple(map(_opened, paths, reports))


def _results_in(path: Path) -> list[Path]:
    """The shards of a folder; those too of which only the report is there, to be named."""
    if not path.is_dir():
        return [path]
    shards = {file.name for file in path.glob(f"{RESULTS}{_SHARD}*.jsonl")}
    for file in path.glob(f"{REPORT}{_SHARD}*.json"):
        shards.add(f"{RESULTS}{file.name.removeprefix(REPORT)}l")
    whole = path / f"{RESULTS}.jsonl"
    if not shards and not whole.is_file():
        raise BadInput(
            f"{path}: holds neither {RESULTS}{_SHARD}0.jsonl nor {whole.name};"
            " results with other names are named one by one"
        )
    return [path / name for name in sorted(shards)] or [whole]


def _report_of(results: Path) -> Path:
    beside = report_beside(results)
    if beside.is_file():
        return beside
    alone = results.with_name(f"{REPORT}.json")  # a folder for each shard
    if alone.is_file():
        return alone
    if not results.exists():
        raise BadInput(f"{results}: no such file")
    raise BadInput(f"{results}: its report {beside.name} is not beside it: name it with --reports")


def _opened(results: Path, path: Path) -> ShardFile:
    report = read_report(path)
    header, counts = report.header, report.counts
    who = f"{results}: shard {header.shard_index} of {header.num_shards}"
    if not report.complete:
        lost = counts.trials_missing + counts.trials_error
        raise Incomplete(
            f"{who} is incomplete ({lost} trials are missing or ended in an error, says {path});"
            " run the same command with --resume, then merge"
        )
    if report.shard is None:
        raise BadInput(
            f"{who}: {path} was not written together with results by `callmark run`, so nothing"
            " says whether the file is whole; run the shard again with --out"
        )
    return ShardFile(results, path, report, report.shard)
