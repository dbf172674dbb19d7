"""The results and the report of a whole run from the files of its shards.

Nothing is scored again. The lines are copied as they are, in the order of the dataset, and
summarised as the run itself would have done: so both files are those of an unsharded run."""

from __future__ import annotations

import hashlib
import heapq
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

import msgspec

from callmark.config import errors_allowed
from callmark.datasets.reader import Dataset, open_dataset
from callmark.errors import BadInput, CallmarkError, FingerprintMismatch, Incomplete, UsageError
from callmark.records.jsontext import Json, NotJson, canonical_json, want_number
from callmark.records.report import Report, ReportHeader, Shard, Timing, exit_code
from callmark.records.results import Fingerprints, Result
from callmark.records.samples import shard_of
from callmark.records.seams import Progress, Standing
from callmark.run.conclude import RunOutcome, read_summary, write_report
from callmark.run.offers import ToolsOfResults, store_specs
from callmark.run.play import cross_scorer
from callmark.run.resume import SHARDS, agree_on_provenance
from callmark.store.files import (
    atomic_writer,
    check_writable,
    decode_result,
    lines_of,
    open_input,
    read_report,
)
from callmark.store.spending import (
    SpendingFile,
    encode_spending,
    is_timing,
    read_spending,
    sum_up_spending,
)
from callmark.summary.summary import (
    Scope,
    Summariser,
    SummaryState,
    counted_warnings,
    quarantine_warnings,
)

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


# Where a model lies may differ from machine to machine: its fingerprint says which one it is.
_OWN = frozenset({"num_shards", "shard_index", "model", "gates"})


def one_run(files: Sequence[ShardFile]) -> tuple[ShardFile, ...]:
    """The shards by their index, if all are there, once, and of one and the same run."""
    if not files:
        raise BadInput("merge: no shard was named")
    files = sorted(files, key=lambda file: file.index)
    first = files[0]
    for before, file in pairwise(files):
        if file.report.header.num_shards != first.report.header.num_shards:
            raise BadInput(f"{file}, but {first}: these are shards of different runs")
        if file.index == before.index:
            raise BadInput(f"{file} is there twice: also {before.results}; name each shard once")
    for file in files[1:]:
        _refuse_other(first, file)
    number = first.report.header.num_shards
    missing = sorted(set(range(number)) - {file.index for file in files})
    if missing:
        shown = ", ".join(map(str, missing[:20]))
        raise BadInput(
            f"merge: of {number} shards these are missing: {shown}; run them, or name their files"
        )
    return tuple(files)


def _refuse_other(first: ShardFile, other: ShardFile) -> None:
    ours, theirs = _values_of(first), _values_of(other)
    differing = [
        f"  {name}: shard {first.index} has {_show(ours.get(name))},"
        f" shard {other.index} {_show(theirs.get(name))}"
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name)
    ]
    if differing:
        raise FingerprintMismatch(
            f"{other}: belongs to another run than {first.results}:\n"
            + "\n".join(differing)
            + "\nRun both shards with the same dataset, tools, fixtures, model and settings."
        )


def _values_of(file: ShardFile) -> dict[str, Json]:
    header = file.report.header
    values = {
        name: getattr(header, name) for name in ReportHeader.__struct_fields__ if name not in _OWN
    }
    if header.model_fingerprint is None:
        values["model"] = header.model
    return {
        **values,
        **{f"gates.{name}": rule for name, rule in header.gates.items()},
        **file.facts.settings,
        "partial": file.report.partial,
        "selected_samples": file.facts.selected_samples,
    }


def _show(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(msgspec.to_builtins(value))


def joined_warnings(files: Sequence[ShardFile]) -> list[str]:
    """What the shards warn of beside what follows from their numbers, each once."""
    found: dict[str, None] = {}
    for file in files:
        report = file.report
        counted = [
            *counted_warnings(report.header.gates.values(), report.counts),
            *quarantine_warnings(report.quarantine, has_all=False),
        ]
        given = len(report.warnings) - len(counted)
        found.update(dict.fromkeys(report.warnings[:given]))
    return list(found)


def joined_provenance(files: Sequence[ShardFile]) -> tuple[dict[str, Json], list[str]]:
    """Where the shards come from, and what they do not agree in. A shard without a sample saw
    nothing that it could tell of."""
    telling = [file.report for file in files if file.report.counts.trials]
    reports: Sequence[Report] = telling or [files[0].report]
    settings = files[0].facts.settings
    return agree_on_provenance(
        [report.provenance for report in reports],
        SHARDS,
        deterministic=bool(settings.get("determinism_mode")),
    )


def summed_measures(files: Sequence[ShardFile]) -> dict[str, Json]:
    return add_up_measured([file.report.timing.more for file in files])


def add_up_measured(measured: Sequence[Mapping[str, Json]]) -> dict[str, Json]:
    """What the runners counted: whole numbers and seconds add up, a highest stays the highest."""
    totals: dict[str, int | float] = {}
    for name, value in _adding_up(measured):
        if name.startswith("highest"):
            totals[name] = max(value, totals.get(name, value))
        else:
            totals[name] = value + totals.get(name, 0)
    return {**totals}


def _adding_up(measured: Sequence[Mapping[str, Json]]) -> Iterator[tuple[str, int | float]]:
    for one in measured:
        for name, value in one.items():
            if isinstance(value, bool) or not isinstance(value, int | float):
                continue
            if isinstance(value, int) or name.endswith("_sec"):
                yield name, value


# index, trial, shard, the line, and its result unless the shard's summary has told of it: in the
# order of a results file
_Line = tuple[int, int, int, bytes, Result | None]
_AGAIN = "copy it again, or run the shard again"


def merge_shards(
    paths: Sequence[Path],
    *,
    out: Path | None,
    report: Path | None,
    progress: Progress | None = None,
    dataset: Path | None = None,
    reports: Sequence[Path] | None = None,
) -> RunOutcome:
    """`paths`: the results files of all shards in any order, or folders of them; `reports`, if they
    do not stand beside them. With `dataset`, every sample is looked up there. Nothing is written
    unless everything fits."""
    started = time.perf_counter()
    files = one_run(open_shards(paths, reports))
    _check_places(files, out, report)
    with ExitStack() as stack:
        summariser = Summariser(cross_scorer())
        if dataset is None:
            lines = _merge(files, [_known_or_read(file, summariser, stack) for file in files])
        else:
            lines = _merge(files, [_lines_of(file, stack) for file in files])
            lines = _of_dataset(lines, files, stack.enter_context(open_dataset(dataset)))
        stream = None if out is None else stack.enter_context(atomic_writer(out))
        written = hashlib.sha256()
        done, total = 0, sum(file.facts.results_lines for file in files)
        for _, _, shard, data, result in lines:
            if stream is not None:
                stream.write(data)
            written.update(data)
            if result is not None:
                try:
                    summariser.add(result)
                except BadInput as error:
                    raise BadInput(f"{files[shard]}: {error}; {_AGAIN}") from None
            done += 1
            if progress is not None:
                progress(Standing(done, total))
        _check_number(files, done)
        if out is not None:
            _carry_specs(files, out)
            _carry_spending(files, out)
        facts = msgspec.structs.replace(
            files[0].facts, results_lines=done, results_sha256=written.hexdigest()
        )
        merged = _report(files, summariser, facts, time.perf_counter() - started)
    if report is not None:
        write_report(report, merged)
    return RunOutcome(merged, _exit_code(merged, facts))


def _carry_specs(files: Sequence[ShardFile], out: Path) -> None:
    """The tools of the run, which the shards have beside them, to where the whole goes. Nothing is
    scored here: without them the results are as good, until somebody scores them again."""
    sha256 = files[0].report.header.tool_registry_sha256
    for file in files:
        with suppress(FingerprintMismatch, BadInput):
            store_specs(out, ToolsOfResults(file.results).of(sha256).registry)
            return


def _carry_spending(files: Sequence[ShardFile], out: Path) -> None:
    """What the trials took, in the order of the dataset."""
    lines = sorted(
        (line for file in files for line in read_spending(file.results)),
        key=lambda line: (line.index, line.trial),
    )
    kept = SpendingFile(out)
    kept.start()
    kept.append(b"".join(map(encode_spending, lines)))
    kept.close()


def _check_places(files: Sequence[ShardFile], out: Path | None, report: Path | None) -> None:
    read = {path.absolute() for file in files for path in (file.results, file.report_path)}
    if out is not None and report is not None and out.absolute() == report.absolute():
        raise UsageError(f"--report: {report} is the file of --out: choose another one")
    for path in (out, report):
        if path is None:
            continue
        if path.absolute() in read:
            raise UsageError(f"{path}: is a file of a shard: choose another one")
        check_writable(path)


def _merge(files: Sequence[ShardFile], shards: Sequence[Iterator[_Line]]) -> Iterator[_Line]:
    """All lines in the order of the dataset; without a gap, if the whole dataset was run."""
    has_all = not files[0].report.partial
    before, gap = (-1, 0), None
    for line in heapq.merge(*shards):
        index, trial, shard, _, _ = line
        if (index, trial) == before:
            raise BadInput(
                f"{files[shard]}: another shard has a sample at the same place of the dataset"
                f" ({index}, trial {trial}): they read different datasets"
            )
        if gap is None and index > before[0] + 1:
            gap = before[0] + 1
        before = index, trial
        yield line
    if has_all and gap is not None:
        raise BadInput(
            f"merge: no shard has the sample at place {gap} of the dataset (from 0);"
            " --in DATASET says which one that is"
        )


def _known_or_read(file: ShardFile, summariser: Summariser, stack: ExitStack) -> Iterator[_Line]:
    """With the summary that a shard wrote beside its results no line has to be read as JSON."""
    state = read_summary(file.results, file.facts.results_sha256)
    if state is None:
        return _lines_of(file, stack)
    summariser.extend(state)
    return _known_lines(file, state, summariser, stack)


def _known_lines(
    file: ShardFile, state: SummaryState, summariser: Summariser, stack: ExitStack
) -> Iterator[_Line]:
    """The lines of a shard whose places are known: they are what the run wrote if their hash is."""
    stream = stack.enter_context(open_input(file.results))
    hasher = hashlib.sha256()
    wanted = set(state.chance)
    shard, lines = file.index, 0
    for index, trial, data in zip(
        state.trials.index.numbers(), state.trials.trial.numbers(), stream, strict=False
    ):
        hasher.update(data)
        lines += 1
        if (index, trial) in wanted:
            summariser.add_to_chance(_result_of(file, lines, data))
        yield index, trial, shard, data, None
    hasher.update(stream.read(1))  # nothing follows the last line that is known
    if lines != file.facts.results_lines or hasher.hexdigest() != file.facts.results_sha256:
        for _ in _lines_of(file, stack):  # which ends by saying what is wrong, and with which line
            pass


def _lines_of(file: ShardFile, stack: ExitStack) -> Iterator[_Line]:
    """The lines of one shard, each checked by itself; at the end, whether they are all there."""
    header, number = file.report.header, file.report.header.num_shards
    expected = Fingerprints(
        **{name: getattr(header, name) for name in Fingerprints.__struct_fields__}
    )
    stream = stack.enter_context(open_input(file.results))
    hasher = hashlib.sha256()
    before = (-1, 0)
    lines = 0
    for line in lines_of(stream, str(file.results)):
        hasher.update(line.data)
        lines += 1
        result = _result_of(file, line.number, line.data)
        home = shard_of(result.sample_id, number)
        key = result.index, result.trial
        if home != file.index or key <= before or result.fingerprints != expected:
            where = f"{file}, line {line.number}: sample {result.sample_id!r}, trial {result.trial}"
            raise _wrong_line(where, file, result, expected, is_twice=key == before)
        before = key
        yield *key, file.index, line.data, result
    facts = file.facts
    if lines != facts.results_lines:
        what = f"holds {lines} lines, but {facts.results_lines} were written, says"
        raise BadInput(f"{file}: {what} {file.report_path}; {_AGAIN}")
    if hasher.hexdigest() != facts.results_sha256:
        what = f"was changed since it was written (its SHA-256 is not that of {file.report_path})"
        raise BadInput(f"{file}: {what}; {_AGAIN}")


def _result_of(file: ShardFile, number: int, data: bytes) -> Result:
    if not data.endswith(b"\n"):
        raise BadInput(f"{file}, line {number}: is cut off; {_AGAIN}")
    try:
        return decode_result(data)
    except NotJson as error:
        raise BadInput(f"{file}, line {number}: {error}; {_AGAIN}") from None


def _wrong_line(
    where: str, file: ShardFile, result: Result, expected: Fingerprints, *, is_twice: bool
) -> CallmarkError:
    home = shard_of(result.sample_id, file.report.header.num_shards)
    if home != file.index:
        return BadInput(f"{where}: does not belong here, but to shard {home}; {_AGAIN}")
    for name in Fingerprints.__struct_fields__:
        line, run = getattr(result.fingerprints, name), getattr(expected, name)
        if line != run:
            return FingerprintMismatch(
                f"{where}: {name}: is {line}, but the report of this run has {run}"
            )
    what = "is there twice" if is_twice else "is not in the order of the dataset"
    return BadInput(f"{where}: {what}; {_AGAIN}")


def _of_dataset(
    lines: Iterator[_Line], files: Sequence[ShardFile], dataset: Dataset
) -> Iterator[_Line]:
    """The same lines, each compared with the sample that stands at its place."""
    header = files[0].report.header
    if dataset.sha256 != header.dataset_sha256:
        raise FingerprintMismatch(
            f"{dataset.name}: dataset_sha256: is {dataset.sha256},"
            f" but the shards were run on {header.dataset_sha256}"
        )
    has_all = not files[0].report.partial
    samples = iter(dataset.samples())
    sample = None
    for line in lines:
        index, trial, shard, _, result = line
        while sample is None or sample.index < index:
            sample = next(samples, None)
            if sample is None:
                break
            if has_all and sample.index < index:
                raise _missing(sample.sample_id, files, dataset)
        if sample is None or result is None or sample.sample_id != result.sample_id:
            name = None if result is None else result.sample_id
            raise BadInput(
                f"{files[shard]}: sample {name!r}, trial {trial}:"
                f" is no sample of {dataset.name} at place {index}; {_AGAIN}"
            )
        yield line
    rest = next(samples, None)
    if has_all and rest is not None:
        raise _missing(rest.sample_id, files, dataset)


def _limit_of(settings: Mapping[str, Json]) -> int | str:
    limit = settings["max_errors"]
    return limit if isinstance(limit, str) else int(want_number(limit))


def _missing(sample_id: str, files: Sequence[ShardFile], dataset: Dataset) -> BadInput:
    home = files[shard_of(sample_id, len(files))]
    return BadInput(f"{home}: sample {sample_id!r} of {dataset.name} is missing; {_AGAIN}")


def _check_number(files: Sequence[ShardFile], lines: int) -> None:
    wanted = files[0].facts.selected_samples * files[0].report.header.repeat
    if lines != wanted:
        raise BadInput(
            f"merge: the shards hold {lines} trials together, but the run has {wanted};"
            " --in DATASET says which samples are missing or too many"
        )


def _report(
    files: Sequence[ShardFile], summariser: Summariser, facts: Shard, seconds: float
) -> Report:
    first = files[0].report
    header = msgspec.structs.replace(first.header, num_shards=1, shard_index=0, gates={})
    provenance, differing = joined_provenance(files)
    timings = [file.report.timing for file in files]
    timing = Timing(
        wall_time_sec=seconds + sum(timing.wall_time_sec or 0.0 for timing in timings),
        scoring_sec=sum(timing.scoring_sec or 0.0 for timing in timings),
        more=summed_measures(files)
        | sum_up_spending(line for file in files for line in read_spending(file.results)),
    )
    trials = facts.selected_samples * header.repeat
    return summariser.report(
        header,
        tuple(first.header.gates.values()),
        scope=Scope(
            partial=first.partial,
            expected_trials=trials,
            errors_allowed=errors_allowed(_limit_of(facts.settings), trials),
        ),
        timing=timing,
        provenance=provenance,
        warnings=(*joined_warnings(files), *differing),
        shard=facts,
    )


def _exit_code(report: Report, facts: Shard) -> int:
    return exit_code(
        report,
        fail_on_gate_failure=bool(facts.settings["fail_on_gate_failure"]),
        fail_on_inconclusive=bool(facts.settings["fail_on_inconclusive"]),
    )
