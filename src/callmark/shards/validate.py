"""`callmark validate-sharding`: run a dataset once as a whole and once in shards, each in a process
of its own whose environment leaves nothing to chance, and compare what they wrote."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal, NamedTuple, TypedDict

import msgspec

from callmark.calls.registry import Registry, normalise
from callmark.config import RunConfig, load_config
from callmark.errors import BadInput, CallmarkError, UsageError
from callmark.records.jsontext import (
    Json,
    JsonRecord,
    canonical_json,
    plain,
    plain_object,
    want_list,
    want_object,
)
from callmark.records.problems import typed_problem
from callmark.records.report import Report, ReportHeader
from callmark.records.results import Fingerprints, Result
from callmark.records.samples import shard_of
from callmark.run.offers import open_registry
from callmark.run.play import cross_scorer
from callmark.shards.merge import Located, LocatedResults, shard_names
from callmark.store.files import atomic_writer, check_writable, make_folder, read_report
from callmark.summary.gates import SHARD_GATES
from callmark.summary.summary import summarize_results

_MOST_SHOWN = 120
_ABSENT = object()


class Tolerance(NamedTuple):
    """For numbers with a fraction; whole numbers are counts."""

    atol: float
    rtol: float

    def holds(self, ours: Json, theirs: Json) -> bool:
        if isinstance(ours, float) and isinstance(theirs, float):
            allowed = max(self.atol, self.rtol * max(abs(ours), abs(theirs)))
            return abs(ours - theirs) <= allowed
        return type(ours) is type(theirs) and bool(ours == theirs)


def differences(
    ours: Json, theirs: Json, tolerance: Tolerance, path: str = ""
) -> Iterator[tuple[str, dict[str, Json]]]:
    """(path, both values) of everything that differs."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for name in {**ours, **theirs}:
            inner = f"{path}.{name}" if path else str(name)
            pair = ours.get(name, _ABSENT), theirs.get(name, _ABSENT)
            yield from differences(*pair, tolerance, inner)
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for at, pair in enumerate(zip(ours, theirs, strict=True)):
            yield from differences(*pair, tolerance, f"{path}[{at}]")
    elif not tolerance.holds(ours, theirs):
        yield path, {"baseline": _there(ours), "sharded": _there(theirs)}


def examples(ours: Result, theirs: Result, tolerance: Tolerance, registry: Registry) -> str | None:
    """The first thing in which two results of one trial differ."""
    for path, values in differences(_view(ours, registry), _view(theirs, registry), tolerance):
        shown = [canonical_json(values[side])[:_MOST_SHOWN] for side in ("baseline", "sharded")]
        return f"{path} is {shown[0]} without shards, {shown[1]} with them"
    return None


def _view(result: Result, registry: Registry) -> dict[str, Json]:
    """A result without its fingerprints, which have a check of their own, and with every call in
    the words of the broker, which knows the tools of the run."""
    view = plain_object(result)
    del view["fingerprints"]
    entries = map(want_object, want_list(view["tool_trace"]))
    for entry, call in zip(entries, result.tool_trace, strict=True):
        normalised = normalise(call.name, call.arguments, registry=registry)
        if normalised is not None:
            entry["name"], entry["arguments"] = normalised.name, normalised.key
            entry.pop("raw", None)
    return view


def _there(value: Json) -> Json:
    return None if value is _ABSENT else value


BASELINE = ("results.baseline.jsonl", "report.baseline.json")
ATOL = RTOL = 1e-6
SHOWN = 5
Marks = Fingerprints | ReportHeader
Heading = Literal["EQUAL", "EQUAL, BUT A GATE FAILED", "NOT EQUAL", "NOT COMPARED"]
_CONTROLS = "controls_with_integration"
_MUST_BE_ZERO = f"{_CONTROLS} (must be 0)"
# What a summary of concatenated lines cannot know, or what every shard has of its own.
_NOT_SUMMARISED = frozenset({"num_shards", "shard_index", "gates"})


class Validation(JsonRecord, msgspec.Struct, frozen=True, kw_only=True):
    """What `sharding_validation.json` holds. A check that could not be made did not hold.
    `callmark.validate_sharding` returns it; `.to_dict()` is what is written.

    >>> import callmark
    >>> callmark.Validation(num_shards=2, reasons=("no fixtures",)).to_dict()["ok"]
    False
    """

    ok: bool = False
    num_shards: int
    dataset_sha256: str | None = None
    runner_fingerprint: str | None = None
    model_fingerprint: str | None = None
    per_example_mismatches: int = 0
    metric_diffs: dict[str, dict[str, Json]] = {}
    shard_sizes: tuple[int, ...] = ()
    duplicates: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    fingerprints_match: bool = False
    coverage_ok: bool = False
    metrics_match: bool = False
    gates_ok: bool = False
    reasons: tuple[str, ...]

    @property
    def heading(self) -> Heading:
        """Only what differs makes shards unequal. A gate that fails with and without them fails the
        validation, but says nothing against the shards."""
        if not self.shard_sizes:
            return "NOT COMPARED"
        if self.ok:
            return "EQUAL"
        is_same = (
            self.fingerprints_match
            and self.coverage_ok
            and not self.per_example_mismatches
            and (self.metrics_match or self.metric_diffs.keys() == {_MUST_BE_ZERO})
        )
        return "EQUAL, BUT A GATE FAILED" if is_same else "NOT EQUAL"


def validate_files(
    folder: Path,
    num_shards: int,
    *,
    atol: float = ATOL,
    rtol: float = RTOL,
    registry: Registry | None = None,
) -> Validation:
    """The files of a baseline and its shards, compared in all eight steps' ways. `registry` has the
    tools that all of them were run with, the built-in ones by default."""
    names = [shard_names(index) for index in range(num_shards)]
    reports = [read_report(folder / report) for _, report in (BASELINE, *names)]
    with (
        LocatedResults([folder / BASELINE[0]]) as alone,
        # Concatenated by id; of equal ids the lower shard comes first.
        LocatedResults([folder / results for results, _ in names]) as together,
    ):
        tools = open_registry(None) if registry is None else registry
        return _Comparison(alone, together, reports, Tolerance(atol, rtol), tools).verdict()


class _Comparison:
    def __init__(
        self,
        alone: LocatedResults,
        together: LocatedResults,
        reports: Sequence[Report],
        tolerance: Tolerance,
        registry: Registry,
    ) -> None:
        self._tolerance = tolerance
        self._registry = registry
        self._baseline, *self._shards = reports
        self._num_shards = len(self._shards)
        self._alone_files, self._together_files = alone, together
        self._alone, self._together = alone.lines, together.lines

    def verdict(self) -> Validation:
        header = self._baseline.header
        coverage = self._coverage()
        mismatches, first_mismatches, other_fingerprints = self._examples()
        fingerprints = [*self._fingerprints(), *other_fingerprints]
        diffs, unsummarised = self._metrics()
        gates = list(self._gates())
        reasons = (*fingerprints, *coverage, *first_mismatches, *unsummarised, *gates)
        reasons += tuple(f"metric {name}{_both(diff)}" for name, diff in diffs.items())
        return Validation(
            ok=not reasons,
            num_shards=self._num_shards,
            dataset_sha256=header.dataset_sha256,
            runner_fingerprint=header.runner_fingerprint,
            model_fingerprint=header.model_fingerprint,
            per_example_mismatches=mismatches,
            metric_diffs=diffs,
            shard_sizes=tuple(
                len({one.sample_id for one in self._together if one.file == shard})
                for shard in range(self._num_shards)
            ),
            duplicates=tuple(self._duplicates()),
            missing=tuple(self._missing()),
            fingerprints_match=not fingerprints,
            coverage_ok=not coverage,
            metrics_match=not diffs and not unsummarised,
            gates_ok=not gates,
            reasons=reasons,
        )

    def _fingerprints(self) -> Iterator[str]:
        for shard, report in enumerate(self._shards):
            for name in _other_names(self._baseline.header, report.header):
                ours, theirs = getattr(self._baseline.header, name), getattr(report.header, name)
                yield f"fingerprint {name}: the baseline has {ours}, shard {shard} {theirs}"

    def _coverage(self) -> list[str]:
        known = {one.key for one in self._alone}
        strange = [one for one in self._together if one.key not in known]
        astray = [
            one
            for one in self._together
            if one.key in known and shard_of(one.sample_id, self._num_shards) != one.file
        ]
        return [
            *_name_samples("missing from all shards", self._missing()),
            *_name_samples("in the shards more than once", self._duplicates()),
            *_name_samples(
                "in the shards, but not in the baseline", (one.sample_id for one in strange)
            ),
            *_name_samples(
                "in a shard that its id does not belong to", (one.sample_id for one in astray)
            ),
        ]

    def _missing(self) -> list[str]:
        there = {one.key for one in self._together}
        return _ids(one for one in self._alone if one.key not in there)

    def _duplicates(self) -> list[str]:
        times = Counter(one.key for one in self._together)
        return _ids(one for one in self._together if times[one.key] > 1)

    def _examples(self) -> tuple[int, list[str], list[str]]:
        """How many trials differ, in what the first of them do, and which fingerprints differ."""
        alone = {one.key: one for one in self._alone}
        shown: list[str] = []
        fingerprints: dict[str, None] = {}
        count = 0
        for one in self._together:
            other = alone.get(one.key)
            if other is None:
                continue
            ours, theirs = self._alone_files.read(other), self._together_files.read(one)
            for name in _other_names(ours.fingerprints, theirs.fingerprints):
                fingerprints[f"fingerprint {name}: differs in lines of shard {one.file}"] = None
            differing = examples(ours, theirs, self._tolerance, self._registry)
            count += differing is not None
            if differing is not None and len(shown) < SHOWN:
                shown.append(f"sample {one.sample_id!r}, trial {one.trial}: {differing}")
        return count, shown, list(fingerprints)

    def _metrics(self) -> tuple[dict[str, dict[str, Json]], list[str]]:
        """The baseline's report against a summary of the concatenated lines."""
        try:
            results = map(self._together_files.read, self._together)
            again = _summary_of(results, self._baseline, self._registry)
        except BadInput as error:
            return {}, [f"the concatenated results cannot be summarised: {error}"]
        whole = plain_object(self._baseline)
        diffs: dict[str, dict[str, Json]] = {}
        for part in ("summary", "integration_span_count_histogram", "per_tool_deltas"):
            prefix = "" if part == "summary" else part
            diffs.update(differences(whole[part], again[part], self._tolerance, prefix))
        contaminated = [want_object(report["summary"])[_CONTROLS] for report in (whole, again)]
        if any(contaminated):
            diffs[_MUST_BE_ZERO] = {"baseline": contaminated[0], "sharded": contaminated[1]}
        return diffs, []

    def _gates(self) -> Iterator[str]:
        for shard, report in enumerate(self._shards):
            if not report.complete:
                yield f"shard {shard} is incomplete"
            for gate in report.gates:
                if gate.status == "fail" and gate.name in SHARD_GATES:
                    yield (
                        f"shard {shard}: gate {gate.name} failed:"
                        f" {gate.value} is not {gate.op} {gate.bound}"
                    )


def _summary_of(results: Iterable[Result], baseline: Report, registry: Registry) -> dict[str, Json]:
    header = {
        name: plain(value)
        for name in ReportHeader.__struct_fields__
        if name not in _NOT_SUMMARISED and (value := getattr(baseline.header, name)) is not None
    }
    return summarize_results(
        results,
        rules=tuple(baseline.header.gates.values()),
        cross_score=cross_scorer(registry),
        header=header,
    )


def _other_names(ours: Marks, theirs: Marks) -> list[str]:
    names = Fingerprints.__struct_fields__
    return [name for name in names if getattr(ours, name) != getattr(theirs, name)]


def _ids(found: Iterable[Located]) -> list[str]:
    return sorted({one.sample_id for one in found})


def _name_samples(what: str, sample_ids: Iterable[str]) -> Iterator[str]:
    found: Sequence[str] = sorted(set(sample_ids))
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"samples {what}: {', '.join(found[:SHOWN])}{more}"


def _both(diff: Mapping[str, Json]) -> str:
    alone, together = diff["baseline"], diff["sharded"]
    if alone == together:
        return f" is {alone} with and without shards"
    return f" differs: {alone} without shards, {together} with them"


OUTPUT = "sharding_validation.json"
NUM_SHARDS = 4
DIFFERS = 1
# What a run ends with that wrote its results: passed, a gate failed, inconclusive.
FINISHED = frozenset({0, 1, 5})
ENVIRONMENT = {"PYTHONHASHSEED": "0", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
_SOURCES = Path(__file__).parents[2]
_NotNegative = Annotated[float, msgspec.Meta(ge=0)]

Say = Callable[[str], None]


class ShardingConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`config`: a settings file for all runs; what is named here wins over it."""

    dataset: str
    model: str | None = None
    runner: str | None = None
    num_shards: Annotated[int, msgspec.Meta(ge=1)] = NUM_SHARDS
    fixtures: str | None = None
    prompt_wrapper: str | None = None
    config: str | None = None
    seed: int | None = None
    atol: _NotNegative = ATOL
    rtol: _NotNegative = RTOL
    output: str = OUTPUT
    temp_dir: str | None = None


class ShardingSettings(TypedDict, total=False):
    """The same as keyword arguments."""

    dataset: str | PathLike[str]
    model: str | PathLike[str] | None
    runner: str | None
    num_shards: int
    fixtures: str | PathLike[str] | None
    prompt_wrapper: str | PathLike[str] | None
    config: str | PathLike[str] | None
    seed: int | None
    atol: float
    rtol: float
    output: str | PathLike[str]
    temp_dir: str | PathLike[str] | None


class ValidationOutcome(msgspec.Struct, frozen=True):
    validation: Validation
    exit_code: int


class RunFailed(CallmarkError):
    """A child process wrote no results: there is nothing to compare."""

    def __init__(self, what: str, code: int, said: str) -> None:
        super().__init__(f"{what} failed with exit code {code}: {said}")
        self.exit_code = code


def validate_sharding(
    config: ShardingConfig | Mapping[str, Json], *, say: Say | None = None
) -> ValidationOutcome:
    """The report is written in any case; exit code 0: equal, 1: not, or a gate failed; else that of
    the run that failed."""
    if not isinstance(config, ShardingConfig):
        config = sharding_config(config)
    if config.dataset == "-":
        raise UsageError("--dataset: must be a file: standard input can be read only once")
    check_writable(Path(config.output))
    code = DIFFERS
    try:
        with _folder(config) as folder:
            _run_all(config, folder, say)
            validation = validate_files(
                folder,
                config.num_shards,
                atol=config.atol,
                rtol=config.rtol,
                registry=open_registry(_settings_of(config).registry),
            )
    except CallmarkError as error:
        code = error.exit_code
        validation = Validation(num_shards=config.num_shards, reasons=(str(error),))
    text = msgspec.json.format(msgspec.json.encode(validation), indent=2)
    with atomic_writer(Path(config.output)) as stream:
        stream.write(text + b"\n")
    return ValidationOutcome(validation, 0 if validation.ok else code)


def sharding_config(settings: Mapping[str, Json]) -> ShardingConfig:
    try:
        return msgspec.convert(dict(settings), ShardingConfig)
    except msgspec.ValidationError as error:
        raise UsageError(f"validate-sharding: {typed_problem(error)}") from None


@contextmanager
def _folder(config: ShardingConfig) -> Iterator[Path]:
    """Where the runs write: the named folder, which stays, or one that goes."""
    if config.temp_dir is None:
        with TemporaryDirectory(prefix="callmark-sharding-") as name:
            yield Path(name)
        return
    folder = Path(config.temp_dir)
    try:
        make_folder(folder)
    except OSError as error:
        raise UsageError(f"--temp-dir: {folder}: cannot be made: {error.strerror}") from None
    yield folder


def _run_all(config: ShardingConfig, folder: Path, say: Say | None) -> None:
    # Also for the baseline: a settings file may name a number of shards, or an engine.
    _run_one(config, folder, "the baseline", BASELINE, _part(1, 0), say)
    for index in range(config.num_shards):
        part = _part(config.num_shards, index)
        what = f"shard {index} of {config.num_shards}"
        _run_one(config, folder, what, shard_names(index), part, say)


def _settings_of(config: ShardingConfig) -> RunConfig:
    """As the runs read them: the named file, or the one in this folder."""
    return load_config(None if config.config is None else Path(config.config), {})


def _part(num_shards: int, index: int) -> tuple[str, ...]:
    return ("--num-shards", str(num_shards), "--shard-index", str(index))


def _run_one(
    config: ShardingConfig,
    folder: Path,
    what: str,
    names: tuple[str, str],
    part: tuple[str, ...],
    say: Say | None,
) -> None:
    if say is not None:
        say(f"running {what}")
    results, report = (folder / name for name in names)
    for old in (results, report):
        old.unlink(missing_ok=True)  # what an earlier run left must not speak for this one
    written = ("--out", str(results), "--report", str(report), "--no-html", "--restart", "--quiet")
    finished = subprocess.run(  # noqa: S603 - this very program, with the user's own file names
        [sys.executable, "-m", "callmark", "run", *run_flags(config), *part, *written],
        env=child_environment(os.environ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        check=False,
    )
    if finished.returncode not in FINISHED:
        said = finished.stderr.partition("callmark: error: ")[2].strip()  # warnings come before
        verdict = " ".join(finished.stdout.split())
        why = said or verdict or finished.stderr.strip() or "it said nothing"
        raise RunFailed(what, finished.returncode, why)


def run_flags(config: ShardingConfig) -> list[str]:
    """What the runs of the baseline and of each shard have in common."""
    named = {
        "--in": config.dataset,
        "--model": config.model,
        "--runner": config.runner,
        "--fixtures": config.fixtures,
        "--prompt-wrapper": config.prompt_wrapper,
        "--config": config.config,
        "--seed": config.seed,
    }
    given = [word for flag, value in named.items() if value is not None for word in (flag, value)]
    # With a cache the shards would only show that they read the same file as the baseline.
    return [*map(str, given), "--determinism-mode", "--no-cache"]


def child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """Ours, with one thread and one hash seed, this very package before any other, and no place for
    summaries: these runs are nobody's step."""
    paths = filter(None, (str(_SOURCES), ours.get("PYTHONPATH")))
    kept = {name: value for name, value in ours.items() if name != "GITHUB_STEP_SUMMARY"}
    return {**kept, **ENVIRONMENT, "PYTHONPATH": os.pathsep.join(paths)}
