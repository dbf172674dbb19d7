"""`callmark compare`: two runs from their files to one comparison; of several, each against the
first."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Annotated, get_args

import msgspec

from callmark._version import __version__
from callmark.compare.metrics import (
    MetricPart,
    PairedSides,
    Ruling,
    decide,
    judge_samples,
    parts_of,
    rulings,
)
from callmark.compare.records import (
    MARGIN,
    MOST_DROPPED,
    PRIMARY,
    Check,
    Compared,
    Comparison,
    Decision,
    Listed,
    MeasuredRun,
    PairCounts,
    PointCheck,
    RunMatrix,
    SpendingPair,
)
from callmark.compare.sides import (
    COMPARED_INPUTS,
    Matched,
    Side,
    check_inputs,
    match,
    other_scorers,
)
from callmark.config import RunConfig, load_config
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.plugins import added_scorers
from callmark.records.jsontext import Json
from callmark.records.problems import hint
from callmark.records.report import Metric
from callmark.records.results import Result, Scoring
from callmark.records.seams import Progress, Standing
from callmark.run.play import cross_scorer
from callmark.run.rescore import Rescored, measures_kept, rescore
from callmark.run.resume import locate_conflict
from callmark.scorers.score import SCORER_VERSION
from callmark.stats.columns import ConflictingResults
from callmark.stats.estimates import SAME, Pairs
from callmark.store.files import (
    atomic_writer,
    decode_result,
    encode_result,
    read_results,
    result_at,
)
from callmark.store.run_index import SMALLEST, read_index
from callmark.store.runs import file_of, is_report, unfinished
from callmark.store.spending import Measured, average_spending, read_spending
from callmark.summary.gates import is_measure
from callmark.summary.metrics import CrossScore, Made, Subset
from callmark.summary.run_index import RunIndex, unpack_index
from callmark.summary.trials import Trials

SEED = 42
F1 = "integration_f1_macro_lax"
GROUP_METRICS = (F1, "integration_f1_macro_strict", "call_f1_macro", "valid_call_rate")
SHOWN = 5  # sample ids in a message


class CompareOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`common`: only samples that are the same on both sides; else runs over other data are
    refused. `max_f1_delta`: the point check of that name. `max_ratio`: how many times what A takes
    (tokens, latency, cost) B may take. `quarantined`: samples that no decision looks at."""

    primary: tuple[str, ...] = PRIMARY
    margin: Annotated[float, msgspec.Meta(gt=0, lt=1)] = MARGIN
    common: bool = False
    as_stored: bool = False
    max_f1_delta: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None
    max_ratio: dict[Measured, Annotated[float, msgspec.Meta(gt=0)]] = {}
    seed: int = SEED
    scorer_version: str | None = None
    quarantined: tuple[str, ...] = ()


def compare_sides(a: Side, b: Side, options: CompareOptions) -> Comparison:
    """Raises FingerprintMismatch where the two are not comparable."""
    checks = check_inputs(a, b)
    refuse_others(checks, a.inputs(), b.inputs(), common=options.common)
    # Two models call differently, so they are served other fixtures: a sign of an edit only where
    # the fixtures as a whole are not known to be the same.
    hashes = ["item", "tools"] + ["fixtures"] * (checks["fixtures_sha256"] != "equal")
    leave_out = hashes if options.common else ()
    matched = match(a, b, leave_out=leave_out, quarantined=options.quarantined)
    checks["span_extractor"] = "different" if matched.other_extractor.count else "equal"
    _refuse_pairs(matched)
    sides = PairedSides(a, b, matched, options.seed)
    parts = sides.parts()
    _refuse_unknown(options.primary, parts)
    found = _rule(sides, parts, options, _why_open(matched.counts, options))
    past = judge_samples(a, b, matched)
    decision, reason = decide(found, past)
    groups = _groups(sides)
    compared = {name: sides.compared(part) for name, part in parts.items()}
    return Comparison(
        decision=decision,
        decision_reason=reason,
        paired=True,
        a=a.facts(),
        b=b.facts(),
        comparable=checks,
        common=options.common,
        as_stored=options.as_stored,
        scorer_version=options.scorer_version,
        margin=options.margin,
        seed=options.seed,
        pairs=matched.counts,
        primary=tuple(_with_ruling(compared[name], found[name]) for name in options.primary),
        exploratory=(
            *(one for name, one in compared.items() if name not in options.primary),
            *sides.chance(),
        ),
        flips={name: sides.flips(parts[name]) for name in options.primary},
        own_past=past,
        point_check=point_check(compared[F1].difference, options.max_f1_delta),
        warnings=(
            *_warnings(checks, matched, options),
            *_scorer_warnings(a, b),
            *_fault_warnings(a, b),
        ),
        by_tool=groups["by_tool"],
        by_slice=groups["by_slice"],
        by_locale=groups["by_locale"],
    )


def point_check(difference: float | None, limit: float | None) -> PointCheck | None:
    """The parity of two runs, as a plain limit on the difference."""
    if limit is None:
        return None
    delta = None if difference is None else abs(difference)
    ok = None if delta is None else delta <= limit + SAME
    return PointCheck(metric=F1, delta=delta, limit=limit, ok=ok)


def refuse_others(
    checks: Mapping[str, Check], a: Mapping[str, Json], b: Mapping[str, Json], *, common: bool
) -> None:
    """With `common` the samples themselves say what changed; how they are read must be the same
    in any case."""
    edited = () if common else COMPARED_INPUTS
    differing = [
        name
        for name, check in checks.items()
        if check == "different" and (name in edited or name not in COMPARED_INPUTS)
    ]
    if not differing:
        return
    lines = [f"  {name}: A has {_value(a[name])}, B has {_value(b[name])}" for name in differing]
    advice = "Score both again with the same settings."
    if all(name in COMPARED_INPUTS for name in differing):
        advice = "Compare the samples that are still the same with --common."
    raise FingerprintMismatch("\n".join(["the runs are not comparable:", *lines, advice]))


def _value(value: Json) -> str:
    return "several" if value is None else str(value)


def _refuse_pairs(matched: Matched) -> None:
    for what, pairs in (
        ("the sample itself (prompt or metadata)", matched.other_items),
        ("span_extractor", matched.other_extractor),
    ):
        if pairs.count:
            raise FingerprintMismatch(
                f"the runs are not comparable: {pairs.count} samples differ in {what}:"
                f" {_show(pairs)}; compare the ones that are the same with --common"
            )


def _scorer_warnings(a: Side, b: Side) -> list[str]:
    return [
        f"the measures of {name} are not compared: A and B were not scored by the same source and"
        " version of it; --plugin FILE scores both with one"
        for name in other_scorers(a, b)
    ]


def _fault_warnings(a: Side, b: Side) -> list[str]:
    if a.header.faults_sha256 == b.header.faults_sha256:
        return []
    return ["A and B had other faults planted (faults_sha256): a difference may be due to those"]


def _refuse_unknown(primary: Sequence[str], parts: Mapping[str, MetricPart]) -> None:
    """A plug-in's measure is known once the lines were read."""
    for name in primary:
        if name not in parts:
            known = hint(name, [one for one in parts if is_measure(one)])
            raise UsageError(
                f"primary_metrics: {name} is no measure that one scorer gave to both runs{known};"
                " --plugin FILE loads a scorer"
            )


def check_primary(names: Sequence[str]) -> None:
    """Refuses what cannot be tested, before anything is read."""
    # No list of names to keep in step: the metrics of no samples say which ones there are.
    nothing = parts_of(Subset(Trials().samples(), (), 0))
    testable = [name for name, part in nothing.items() if part.is_testable]
    if not names:
        raise UsageError("primary_metrics: name at least one metric to decide about")
    for name in names:
        if name in testable or is_measure(name):
            continue
        what = "is no metric of a sample"
        if name in nothing:
            what = "is pooled over samples and has no value for each"
        raise UsageError(f"primary_metrics: {name} {what}; known: {', '.join(testable)}")


def _rule(
    sides: PairedSides,
    parts: Mapping[str, MetricPart],
    options: CompareOptions,
    open_reason: str | None,
) -> dict[str, Ruling]:
    primary: dict[str, Pairs] = {name: sides.pairs(parts[name]) for name in options.primary}
    return rulings(primary, margin=options.margin, seed=options.seed, open_reason=open_reason)


def _why_open(counts: PairCounts, options: CompareOptions) -> str | None:
    missing = counts.dropped.count
    if not options.common:  # samples that only one side has are as good as lost
        missing += counts.removed.count + counts.added.count
    total = counts.paired + missing
    if not total or missing / total <= MOST_DROPPED + SAME:
        return None
    return f"{missing} of {total} pairs are missing, more than {MOST_DROPPED:.0%}"


def _with_ruling(compared: Compared, ruling: Ruling) -> Compared:
    return msgspec.structs.replace(compared, role="primary", **msgspec.structs.asdict(ruling))


def _groups(sides: PairedSides) -> dict[str, dict[str, tuple[Compared, ...]]]:
    """The main metrics by tool, slice and locale."""
    found: dict[str, dict[str, tuple[Compared, ...]]] = {}
    for group, subsets in sides.groups().items():
        found[group] = {}
        for name, subset in subsets.items():
            parts = parts_of(subset)
            found[group][name] = tuple(sides.compared(parts[metric]) for metric in GROUP_METRICS)
    return found


def _warnings(checks: Mapping[str, Check], matched: Matched, options: CompareOptions) -> list[str]:
    found = [
        f"{name}: not known on both sides, so unchecked"
        for name, check in checks.items()
        if check == "unchecked"
    ]
    counts = matched.counts
    if not options.common:
        for side, only in (("A", counts.removed), ("B", counts.added)):
            if only.count:
                found.append(f"{only.count} samples are only in {side}: {_show(only)}")
    if matched.other_tools.count:
        found.append(
            f"{matched.other_tools.count} samples were offered other tools: "
            f"{_show(matched.other_tools)}"
        )
    if counts.changed_in.get("fixtures"):
        found.append(
            f"{counts.changed_in['fixtures']} samples were served other fixtures and are left out;"
            " where two models call differently, this favours those that call alike"
        )
    return found


def _show(listed: Listed) -> str:
    more = f" and {listed.count - SHOWN} more" if listed.count > SHOWN else ""
    return ", ".join(listed.sample_ids[:SHOWN]) + more


class Tools(msgspec.Struct, frozen=True):
    """With which tools arguments are checked again where a run has stored none beside its results;
    None: the built-in ones. `instead`: in any case, because somebody said so."""

    registry: str | None = None
    allowlist: str | None = None
    instead: bool = False


def compare_runs(
    a: Path | SideLines,
    b: Path | SideLines,
    options: CompareOptions,
    *,
    tools: Tools | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """B against A, sample by sample. A side that another scorer scored, or with other settings, is
    scored again by the installed one, unless the options keep what it has."""
    check_primary(options.primary)
    a, b = (
        side if isinstance(side, SideLines) else SideLines(side, options, tools) for side in (a, b)
    )
    path_a, path_b = a.path, b.path
    kinds = is_report(path_a), is_report(path_b)
    if all(kinds):
        if options.common:
            raise UsageError("--common: two reports hold no samples: name the results of both")
        # Most comparisons are of results, and this one asks the functions above.
        from callmark.compare.reports import compare_reports

        return compare_reports(path_a, path_b, options)
    if any(kinds):
        report, results = (path_a, path_b) if kinds[0] else (path_b, path_a)
        raise unfinished(report.parent) or BadInput(
            f"{report}: is a report, {results} are results: name the results of both"
            " (paired), or both reports (differences only)"
        )
    return compare_read(options, (a, read_side(a, progress)), (b, read_side(b, progress)))


def compare_read(options: CompareOptions, *read: tuple[SideLines, Side]) -> Comparison:
    """Two sides that were read to their ends, with all that stands beside their results."""
    (a, side_a), (b, side_b) = read
    options = msgspec.structs.replace(options, scorer_version=SCORER_VERSION)
    found = compare_sides(side_a, side_b, options)
    said = dict.fromkeys((*a.warnings(), *b.warnings()))
    return msgspec.structs.replace(
        found,
        timing=compare_spending(a.path, b.path, options.max_ratio),
        warnings=(*found.warnings, *said),
    )


def compare_spending(a: Path, b: Path, limits: Mapping[Measured, float]) -> dict[str, SpendingPair]:
    """What a trial takes on both sides, by what stands beside the results of each."""
    mine, theirs = average_spending(read_spending(a)), average_spending(read_spending(b))
    found: dict[str, SpendingPair] = {}
    for name in get_args(Measured):
        one, other, limit = mine.get(name), theirs.get(name), limits.get(name)
        if one is None and other is None and limit is None:
            continue
        ratio = None if not one or other is None else other / one
        ok = None if limit is None or ratio is None else ratio <= limit + SAME
        found[name] = SpendingPair(a=one, b=other, ratio=ratio, limit=limit, ok=ok)
    return found


class SideLines:
    """The results of one run as the installed scorer sees them. Lines that it wrote itself, with
    the same settings, are taken as they are; if one of them is older, all are scored again, once:
    who reads them a second time (`keep`) reads a copy."""

    def __init__(
        self, run: Path, options: CompareOptions, tools: Tools | None = None, *, keep: bool = False
    ) -> None:
        self.path = file_of(run)
        self.cross_score: CrossScore | None = None
        self._as_stored = options.as_stored
        self._tools = tools or Tools()
        self._keep = keep
        self._is_alike = not self._tools.instead
        self._copy: IO[bytes] | None = None
        self._unloaded: dict[str, None] = {}
        self._rescored: Rescored | None = None

    def __enter__(self) -> SideLines:
        return self

    def __exit__(self, *ending: object) -> None:
        if self._copy is not None:
            self._copy.close()

    def read(self) -> Iterator[Result]:
        """Raises ScoredOtherwise where it becomes clear that the lines have to be scored again:
        `read` once more does that."""
        if is_report(self.path):
            return iter(())
        if self._as_stored:
            return read_results(self.path)
        if self._copy is not None:
            self._copy.seek(0)
            return (decode_result(line) for line in self._copy)
        if self._is_alike:
            self.cross_score = cross_scorer()
            return self._stored()
        return self._scored()

    @property
    def is_scored_again(self) -> bool:
        return self._rescored is not None

    def warnings(self) -> list[str]:
        """What a person should know of it, once all lines were read."""
        if self._rescored is not None:
            return self._rescored.warnings()
        return [measures_kept(name) for name in self._unloaded]

    def index(self) -> RunIndex | None:
        """What a run left for those who would read all of its lines, where they can be taken as
        they are; None: read them."""
        if self._as_stored or not self._is_alike or self.path.stat().st_size < SMALLEST:
            return None
        parts = read_index(self.path, version=__version__)
        index = parts and unpack_index(parts, partial(result_at, self.path))
        if not index:
            return None
        ours = {one.mark.name: one.mark for one in added_scorers()}
        for scoring in index.numbers.scorings:
            marks = {mark.name: mark for mark in scoring.added}
            if not _is_of_this_scorer(scoring) or not ours.items() <= marks.items():
                return None
            self._unloaded.update(dict.fromkeys(marks.keys() - ours.keys()))
        self.cross_score = cross_scorer()
        return index

    def _stored(self) -> Iterator[Result]:
        ours = {one.mark.name: one.mark for one in added_scorers()}
        try:
            for result in read_results(self.path):
                marks = {mark.name: mark for mark in result.scoring.added}
                if not _is_of_this_scorer(result.scoring) or not ours.items() <= marks.items():
                    break
                self._unloaded.update(dict.fromkeys(marks.keys() - ours.keys()))
                yield result
            else:
                return
        except BadInput:
            pass  # lines of another program, or broken ones: scoring says which
        self._is_alike = False
        self._unloaded.clear()
        raise ScoredOtherwise

    def _scored(self) -> Iterator[Result]:
        again = self._rescored = rescore(self.path, _config(self._tools))
        self.cross_score = again.cross_score
        if not self._keep:
            return again.results
        self._copy = TemporaryFile()  # noqa: SIM115 - closed by __exit__
        return self._copied(again.results, self._copy)

    def _copied(self, results: Iterator[Result], copy: IO[bytes]) -> Iterator[Result]:
        for result in results:
            copy.write(encode_result(result))
            yield result


@lru_cache
def _is_of_this_scorer(scoring: Scoring) -> bool:
    """Whether this scorer wrote the line, with the settings that it names."""
    return scoring == scoring.marked(SCORER_VERSION)


class ScoredOtherwise(Exception):
    """A line of the file was scored by another scorer, or with other settings."""


def results_compared(run: Path, tools: Tools) -> Iterator[Result]:
    """The results of one run, scored as `compare_runs` sees them; none of a report."""
    lines = SideLines(run, CompareOptions(), tools)
    try:
        for _ in lines.read():  # to the end: only then it is known that all can be taken
            pass
    except ScoredOtherwise:
        pass
    return lines.read()


def write_comparison(path: Path, comparison: Comparison) -> None:
    with atomic_writer(path) as stream:
        stream.write(comparison_bytes(comparison))


def comparison_bytes(comparison: Comparison | RunMatrix) -> bytes:
    return msgspec.json.format(msgspec.json.encode(comparison), indent=2) + b"\n"


def read_side(lines: SideLines, progress: Progress | None) -> Side:
    """One side, read to its end."""
    try:
        return _filled(lines, progress)
    except ScoredOtherwise:
        return _filled(lines, progress)


def _filled(lines: SideLines, progress: Progress | None) -> Side:
    index = lines.index()
    results = iter(()) if index is not None else lines.read()
    side = Side(str(lines.path), lines.cross_score, scored_again=lines.is_scored_again)
    done = 0
    if index is not None:
        side.take(index, partial(result_at, lines.path))
        done = len(index)
    for done, result in enumerate(results, start=1):
        side.add(result)
        if progress is not None:
            progress(Standing(done, done))
    if not done:
        raise BadInput(f"{lines.path}: has no results to compare")
    try:
        _ = side.samples
    except ConflictingResults as conflict:
        raise locate_conflict(conflict, lines.path) from None
    return side


def _config(tools: Tools) -> RunConfig:
    """The lines say what they were scored with; no file of the current folder has a say."""
    named: dict[str, Json] = {"registry": tools.registry, "allowlist": tools.allowlist}
    given = {name: value for name, value in named.items() if value is not None}
    config = load_config(Path(os.devnull), given)
    if tools.instead:
        return config
    return msgspec.structs.replace(config, sources={**config.sources, "registry": "config"})


WORST_FIRST: tuple[Decision, ...] = ("regression", "inconclusive", "non_inferior")


def compare_many(
    runs: Sequence[SideLines], options: CompareOptions, *, progress: Progress | None = None
) -> RunMatrix:
    """Every run but the first against the first; each is read once."""
    check_primary(options.primary)
    for lines in runs:
        if is_report(lines.path):
            raise unfinished(lines.path.parent) or UsageError(
                f"{lines.path}: is a report, and only two of those can be compared;"
                " of three and more runs name the results"
            )
    read = [(lines, read_side(lines, progress)) for lines in runs]
    base, *others = read
    comparisons = tuple(compare_read(options, base, other) for other in others)
    found = {one.decision for one in comparisons}
    return RunMatrix(
        decision=next(decision for decision in WORST_FIRST if decision in found),
        runs=tuple(_measured(side, options.quarantined, options.seed) for _, side in read),
        comparisons=comparisons,
    )


def _measured(side: Side, quarantined: Collection[str], seed: int) -> MeasuredRun:
    samples = side.samples
    kept = [at for at in range(len(samples)) if samples.id_at(at) not in quarantined]
    parts = parts_of(Subset(samples, kept, seed))
    found = {name: _metric(part) for name, part in parts.items()}
    known = {name: metric for name, metric in found.items() if metric.value is not None}
    return MeasuredRun(facts=side.facts(), metrics=known)


def _metric(part: MetricPart) -> Metric:
    """A count as the share of its samples: runs may differ in size."""
    definition = part.definition
    if definition.made == "count":
        made: Made = "rate" if part.is_yes_no else "mean"
        definition = msgspec.structs.replace(definition, made=made)
    return part.subset.metric(definition)
