"""The files of a shard: its results, and the report that was written with them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import msgspec

from callmark.errors import BadInput, Incomplete, UsageError
from callmark.records.jsontext import NotJson
from callmark.records.report import Report, Shard
from callmark.records.results import Result
from callmark.store.files import decode_result, lines_of, open_input, read_report
from callmark.store.spending import is_timing

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
        return tuple(_open(file, _report_of(file)) for file in named)
    if len(reports) != len(paths):
        raise UsageError(
            f"--reports: {len(paths)} results files, but {len(reports)} reports:"
            " name one for each, in the same order"
        )
    return tuple(map(_open, paths, reports))


def _results_in(path: Path) -> list[Path]:
    """The shards of a folder; those too of which only the report is there, to be named."""
    if not path.is_dir():
        return [] if is_timing(path) else [path]  # *.jsonl names what stands beside them too
    found = path.glob(f"{RESULTS}{_SHARD}*.jsonl")
    shards = {file.name for file in found if not is_timing(file)}
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


def _open(results: Path, path: Path) -> ShardFile:
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


class Located(NamedTuple):
    """`file` is the number of the file among those that were read."""

    sample_id: str
    trial: int
    file: int
    offset: int

    @property
    def key(self) -> tuple[str, int]:
        return self.sample_id, self.trial


class LocatedResults:
    """All lines of some files, sorted by id; lines of one id keep their order."""

    def __init__(self, paths: Sequence[Path]) -> None:
        with ExitStack() as stack:
            self._streams = [stack.enter_context(open_input(path)) for path in paths]
            found = [
                one
                for file, path in enumerate(paths)
                for one in _lines(file, path, self._streams[file])
            ]
            self._opened = stack.pop_all()
        self.lines = sorted(found, key=lambda one: one.sample_id)

    def read(self, one: Located) -> Result:
        stream = self._streams[one.file]
        stream.seek(one.offset)
        return decode_result(stream.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _lines(file: int, path: Path, stream: BinaryIO) -> Iterator[Located]:
    for line in lines_of(stream, str(path)):
        try:
            result = decode_result(line.data)
        except NotJson as error:
            raise BadInput(f"{path}:{line.number}: {error}") from None
        yield Located(result.sample_id, result.trial, file, line.offset)
