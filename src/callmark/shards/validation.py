"""Is a sharded run the same as an unsharded one? Decided from the files that both wrote.

Nothing is run here: a folder with `results.baseline.jsonl`, `report.baseline.json` and those of
every shard goes in, a verdict with its reasons comes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from callmark.calls.registry import Registry
from callmark.core.gates import SHARD_GATES
from callmark.core.identity import shard_of
from callmark.core.jsontext import Json, plain
from callmark.core.report import Report, ReportHeader
from callmark.core.results import Fingerprints, Result
from callmark.core.summary import summarize_results
from callmark.errors import BadInput
from callmark.running.evaluate import cross_scorer
from callmark.running.offers import open_registry
from callmark.shards.equality import Tolerance, differences, examples
from callmark.shards.files import shard_names
from callmark.shards.located import Located, LocatedResults
from callmark.store.report_file import read_report

BASELINE = ("results.baseline.jsonl", "report.baseline.json")
ATOL = RTOL = 1e-6
SHOWN = 5
Marks = Fingerprints | ReportHeader
Heading = Literal["EQUAL", "EQUAL, BUT A GATE FAILED", "NOT EQUAL", "NOT COMPARED"]
_CONTROLS = "controls_with_integration"
_MUST_BE_ZERO = f"{_CONTROLS} (must be 0)"
# What a summary of concatenated lines cannot know, or what every shard has of its own.
_NOT_SUMMARISED = frozenset({"num_shards", "shard_index", "gates"})


class Validation(msgspec.Struct, frozen=True, kw_only=True):
    """What `sharding_validation.json` holds. A check that could not be made did not hold."""

    ok: bool = False
    num_shards: int
    dataset_sha256: str | None = None
    runner_fingerprint: str | None = None
    model_fingerprint: str | None = None
    per_example_mismatches: int = 0
    metric_diffs: dict[str, Json] = {}
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
            *_named("missing from all shards", self._missing()),
            *_named("in the shards more than once", self._duplicates()),
            *_named("in the shards, but not in the baseline", (one.sample_id for one in strange)),
            *_named("in a shard that its id does not belong to", (one.sample_id for one in astray)),
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

    def _metrics(self) -> tuple[dict[str, Json], list[str]]:
        """The baseline's report against a summary of the concatenated lines."""
        try:
            results = map(self._together_files.read, self._together)
            again = _summary_of(results, self._baseline, self._registry)
        except BadInput as error:
            return {}, [f"the concatenated results cannot be summarised: {error}"]
        whole: dict[str, Json] = plain(self._baseline)
        diffs: dict[str, Json] = {}
        for part in ("summary", "integration_span_count_histogram", "per_tool_deltas"):
            prefix = "" if part == "summary" else part
            diffs.update(differences(whole[part], again[part], self._tolerance, prefix))
        contaminated = [report["summary"][_CONTROLS] for report in (whole, again)]
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
        **header,
    )


def _other_names(ours: Marks, theirs: Marks) -> list[str]:
    names = Fingerprints.__struct_fields__
    return [name for name in names if getattr(ours, name) != getattr(theirs, name)]


def _ids(found: Iterable[Located]) -> list[str]:
    return sorted({one.sample_id for one in found})


def _named(what: str, sample_ids: Iterable[str]) -> Iterator[str]:
    found: Sequence[str] = sorted(set(sample_ids))
    if found:
        more = f" and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
        yield f"samples {what}: {', '.join(found[:SHOWN])}{more}"


def _both(diff: Json) -> str:
    alone, together = diff["baseline"], diff["sharded"]
    if alone == together:
        return f" is {alone} with and without shards"
    return f" differs: {alone} without shards, {together} with them"
