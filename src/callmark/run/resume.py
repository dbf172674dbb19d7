"""What pins a run (its fingerprints), and what an earlier run left behind: are its lines those of
this run, and is there anything left to ask? Every line is compared with the sample that it is
about before it counts."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from callmark._version import __version__
from callmark.calls.formats import Format
from callmark.config import RunConfig
from callmark.datasets.reader import Dataset
from callmark.datasets.schema import metadata_problems
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.plugins import plugin_marks
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    digest,
    plain,
    plain_object,
    want_list,
    want_object,
)
from callmark.records.problems import show_value
from callmark.records.report import Report, ReportHeader
from callmark.records.results import (
    Decoding,
    Fingerprints,
    Result,
    ScorerMark,
    Scoring,
    implausible,
)
from callmark.records.samples import Header, Sample
from callmark.records.seams import Observed, Runner
from callmark.run.play import Evaluator
from callmark.scorers.score import SCORER_VERSION
from callmark.stats.columns import ConflictingResults, KeyIndex
from callmark.store.files import read_report, read_results
from callmark.store.journal import DoneTrials, Journal
from callmark.store.recorded import Recorded, RecordedIndex, read_recorded
from callmark.summary.summary import counted_warnings

if TYPE_CHECKING:
    from callmark.run.prepare import Setup

Check = Literal["equal", "different", "unchecked"]

# What a header can pin. The tokenizer is known only to runners that have one.
PINNED = ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256", "tokenizer_fingerprint")
LIBRARIES = ("msgspec", "jsonschema-rs", "json-repair", "Babel", "phonenumbers", "python-stdnum")

# Settings beside the fingerprints on which the lines of a results file depend. What is left out
# (gates, report, limits on errors) may change between a run and its resumption.
RESUME_SETTINGS = (
    "repeat",
    "num_shards",
    "shard_index",
    "span_extractor",
    "integration_span_cap",
    "strict_keys",
    "url_allowlist",
    "privacy_echo",
    "tiers",
    "redact_pii",
    "miss_reply",
    "limit",
    "only",
    "slice",
)
MAY_GROW = ("limit",)
# What a merge has to go by that no line depends on.
MERGE_SETTINGS = (
    "determinism_mode",
    "max_errors",
    "fail_on_gate_failure",
    "fail_on_inconclusive",
)


def runner_fingerprint(
    config: RunConfig,
    runner: Runner,
    decoding: Decoding,
    *,
    wrapper_sha256: str | None,
    system: str | None,
    formats: Sequence[Format],
    plugins: Sequence[Json] = (),
    template: str | None = None,
) -> str:
    """`plugins`: the marks of the runner and of the formats that do not ship with callmark."""
    return digest(
        {
            **({"plugins": [*plugins]} if plugins else {}),
            **({"response_template": template} if template else {}),
            "runner": runner.name,
            "prompt_wrapper_sha256": wrapper_sha256,
            "system": system,
            "parse_text": config.parse_text,
            "formats": list(dict.fromkeys(row.name for row in formats)),
            "max_turns": decoding.max_turns,
            "max_tokens": decoding.max_tokens,
            "tool_choice": decoding.tool_choice,
            **runner.fingerprint_parts(),
        }
    )


def compare_pinned(header: Header, computed: Fingerprints) -> dict[str, Check]:
    """For each fingerprint that the header pins. What cannot be computed is never equal."""
    checks: dict[str, Check] = {}
    for name in PINNED:
        pinned, found = getattr(header, name), getattr(computed, name)
        if pinned is not None:
            same: Check = "equal" if pinned == found else "different"
            checks[name] = "unchecked" if found is None else same
    return checks


def refuse_other_pins(
    where: str,
    header: Header,
    computed: Fingerprints,
    checks: dict[str, Check],
    *,
    may_differ: bool,
) -> list[str]:
    """Raises if anything differs from what the header at `where` says; warnings instead where that
    was asked for."""
    differing = [
        f"{name}: the header of the dataset has {_show(getattr(header, name))},"
        f" this run {_show(getattr(computed, name))}"
        for name, check in checks.items()
        if check == "different"
    ]
    if differing and not may_differ:
        raise FingerprintMismatch(
            f"{where}: made for other data than this:\n  "
            + "\n  ".join(differing)
            + "\nUse the dataset, tools and fixtures that belong together, or explore with"
            " --no-fail-on-fingerprint-mismatch."
        )
    unchecked = [
        f"{name}: pinned by the header of the dataset, but this run cannot compute it: unchecked"
        for name, check in checks.items()
        if check == "unchecked"
    ]
    return differing + unchecked


def resume_key(
    config: RunConfig,
    fingerprints: Fingerprints,
    decoding: Decoding,
    allowed: frozenset[str],
    only: frozenset[str] | None,
    scorers: Sequence[ScorerMark] = (),
) -> dict[str, Json]:
    """Everything that must be equal for one journal to hold the lines of two runs."""
    settings = {name: getattr(config, name) for name in RESUME_SETTINGS}
    chosen = {"only": None if only is None else digest(sorted(only))}
    everything = {
        **msgspec.structs.asdict(fingerprints),
        **settings,
        **chosen,
        "decoding": msgspec.structs.asdict(decoding),
        "allowed_tools": sorted(allowed),
        "scorer_version": SCORER_VERSION,
        **({"scorers": scorers} if scorers else {}),
    }
    return plain_object(everything)


def shard_settings(config: RunConfig, key: dict[str, Json]) -> dict[str, Json]:
    """What all shards of a run share beside what stands in the header of their reports. `key` is
    their `resume_key`."""
    in_header = ReportHeader.__struct_fields__
    shared = {name: value for name, value in key.items() if name not in in_header}
    return {**shared, **{name: getattr(config, name) for name in MERGE_SETTINGS}}


def provenance(checks: dict[str, Check]) -> dict[str, Json]:
    """Where the numbers come from. Shown, never a key."""
    return {
        "callmark": __version__,
        "python": platform.python_version(),
        "host": f"{platform.system()} {platform.machine()}",
        "libraries": {name: _version_of(name) for name in LIBRARIES},
        "pinned": dict(checks),
        **({"plugins": marks} if (marks := plugin_marks()) else {}),
    }


def _version_of(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _show(value: Json) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def locate_conflict(conflict: ConflictingResults, path: Path) -> BadInput:
    """The same with file and lines."""
    if not path.is_file():
        return BadInput(f"{path}: {conflict}")
    first, second = conflict.sample_ids
    found = [line for line in read_recorded(path) if _is_meant(line, conflict)]
    line = found[-1].line
    if first == second:
        what = f"sample_id: {show_value(first)}, trial {conflict.trial}"
        advice = "number repeated answers with `trial`"
        return BadInput(f"{path}:{line}: {what} stands on line {found[0].line} too: {advice}")
    other = next(entry for entry in found if entry.sample_id != found[-1].sample_id)
    what = (
        f"index: {conflict.index} is that of {show_value(other.sample_id)} on line {other.line} too"
    )
    advice = "results of different datasets cannot be summarised together"
    return BadInput(f"{path}:{line}: {what}: {advice}")


def unasked(index: RecordedIndex, dataset: Dataset, count: int) -> BadInput:
    """Some lines have an id or a trial that no sample of the dataset asked for: names the first."""
    trials = KeyIndex(numbers_only=True)
    for sample in dataset.samples():
        found = 0
        while index.get(sample.sample_id, found) is not None:
            found += 1
        trials.setdefault(sample.sample_id, found + 1)
    for line in read_recorded(index.path):
        asked = trials.setdefault(line.sample_id, 0).value
        if line.trial >= asked - 1:
            break
    what = f"sample_id: {show_value(line.sample_id)} is no sample of {dataset.name}"
    if asked:
        what = f"trial: is {line.trial}, but {show_value(line.sample_id)} has no trial {asked - 1}"
    more = f" ({count - 1} more such lines)" if count > 1 else ""
    return BadInput(f"{index.path}:{line.line}: {what}{more}: is it the right dataset?")


def _is_meant(line: Recorded, conflict: ConflictingResults) -> bool:
    first, second = conflict.sample_ids
    if first == second:
        return line.sample_id == first and line.trial == conflict.trial
    return line.sample_id in conflict.sample_ids


NOT_KNOWN = "who answered is not known: the results were there, but no report that says so"


class FinishedOutput(msgspec.Struct, frozen=True):
    """Results that are complete. `told`: what their report or their journal says of who answered;
    None: the journal still has to be asked."""

    sha256: str
    told: Observed | None


class TrialsAsked:
    """The trials of a run, to find the lines that are none of them. Memory: 27 bytes a sample."""

    def __init__(self, setup: Setup, evaluator: Evaluator) -> None:
        self._setup = setup
        self._line = LineCheck(setup, evaluator)
        self._known: KeyIndex | None = None  # a run that resumes nothing never reads it

    def problem_of(self, result: Result | NotJson) -> str | None:
        """`field: what is wrong`; None: this run could have written it."""
        if isinstance(result, NotJson):
            return str(result)
        problem = self._line.problem_of(result)
        if problem is not None:
            return problem
        found = self._samples().find(f"{result.item_sha256}:{result.sample_id}")
        if found is None:
            return self._who(result)
        index = found[1]
        if index != result.index:
            return f"index: is {result.index}, but the sample stands at {index}"
        return None

    def _samples(self) -> KeyIndex:
        if self._known is None:
            self._known = KeyIndex()
            for sample in self._setup.selection.chosen(self._setup.dataset):
                self._known.add(f"{sample.item_sha256}:{sample.sample_id}", 0, sample.index)
        return self._known

    def _who(self, result: Result) -> str:
        for sample in self._setup.selection.chosen(self._setup.dataset):
            if sample.sample_id == result.sample_id:
                return (
                    f"item_sha256: is {show_value(result.item_sha256)}, but"
                    f" {show_value(sample.sample_id)} of {self._setup.dataset.name} has"
                    f" {show_value(sample.item_sha256)}"
                )
        return f"sample_id: {show_value(result.sample_id)} is no sample of this run"


class LineCheck:
    """What all lines of one run share, and what no line can say."""

    def __init__(self, setup: Setup, evaluator: Evaluator) -> None:
        config = setup.config
        self._trials = config.repeat
        scoring = msgspec.structs.replace(evaluator.scoring, redacted=config.redact_pii)
        # As they are read back: what was a tuple may have become a list.
        self._shared: dict[str, msgspec.Struct] = {
            "fingerprints": msgspec.convert(plain(setup.fingerprints), Fingerprints),
            "decoding": msgspec.convert(plain(setup.decoding), Decoding),
            "scoring": msgspec.convert(plain(scoring), Scoring),
        }

    def problem_of(self, result: Result) -> str | None:
        problems = metadata_problems(result.metadata)
        if problems:
            return problems[0]
        if not 0 <= result.trial < self._trials:
            return f"trial: is {result.trial}, but this run has {self._trials} of each sample"
        for name, ours in self._shared.items():
            theirs = getattr(result, name)
            if theirs != ours:
                return f"{name}{_difference(theirs, ours)}"
        if result.status == "error":
            return None
        return "scores: is missing" if result.scores is None else implausible(result.scores)


def finished_output(
    setup: Setup, evaluator: Evaluator, out: Path, journal: Journal
) -> FinishedOutput | None:
    """The results of this very run, if `--resume` finds them whole: then nobody has to be asked.
    None: there is something to do, or these are the results of another run."""
    may_be = journal.is_new or journal.written is not None
    if not (setup.config.resume and may_be and out.is_file()):
        return None
    with out.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    if journal.written is not None:
        if journal.written != sha256 or not _is_whole(setup, evaluator, out):
            return None
        return FinishedOutput(sha256, None)
    report = _report_of(setup.config)
    is_ours = report is not None and _is_of_run(report, setup.resume_key)
    is_its_own = report is not None and report.shard and report.shard.results_sha256 == sha256
    if (is_its_own and not is_ours) or not _is_whole(setup, evaluator, out):
        return None
    if report is None or not is_ours:
        return FinishedOutput(sha256, Observed(warnings=(NOT_KNOWN,)))
    if not is_its_own:
        raise BadInput(
            f"{out}: is not the file that {setup.config.report} was written with: it was changed,"
            f" or that report is of another run. `callmark score {out}` judges it as it is;"
            " --restart runs everything again"
        )
    return FinishedOutput(sha256, _told_by(report))


def _is_whole(setup: Setup, evaluator: Evaluator, out: Path) -> bool:
    """Every trial of this run in the order of the dataset, nothing else, and few enough lost."""
    check, lost = LineCheck(setup, evaluator), 0
    results = read_results(out)
    try:
        for sample in setup.selection.chosen(setup.dataset):
            for trial in range(setup.config.repeat):
                result = next(results, None)
                if result is None or not _is_of(sample, trial, result, setup):
                    return False
                if check.problem_of(result) is not None:
                    return False
                lost += result.status == "error"
        is_over = next(results, None) is None
    except BadInput:
        return False
    return is_over and lost <= setup.config.errors_allowed(setup.trials)


def _is_of(sample: Sample, trial: int, result: Result, setup: Setup) -> bool:
    return (
        (result.index, result.sample_id, result.trial) == (sample.index, sample.sample_id, trial)
        and result.item_sha256 == sample.item_sha256
        and result.offered_tools_sha256 == setup.offers.to(sample).sha256
    )


def _report_of(config: RunConfig) -> Report | None:
    if config.report is None or not Path(config.report).is_file():
        return None
    try:
        return read_report(Path(config.report))
    except (BadInput, UsageError):
        return None


def _is_of_run(report: Report, key: Mapping[str, Json]) -> bool:
    if report.shard is None:
        return False
    known = {**plain_object(report.header), **report.shard.settings}
    return all(name in known and known[name] == value for name, value in key.items())


def _told_by(report: Report) -> Observed:
    """Without the warnings that follow from the numbers: these are made anew."""
    counted = counted_warnings(report.header.gates.values(), report.counts)
    given = report.warnings[: len(report.warnings) - len(counted)]
    return Observed(provenance=report.provenance, warnings=given)


def _difference(theirs: msgspec.Struct, ours: msgspec.Struct) -> str:
    """Both values of the first field that differs."""
    left, right = plain_object(theirs), plain_object(ours)
    name = next(name for name in {**left, **right} if left.get(name) != right.get(name))
    has, wanted = show_value(left.get(name)), show_value(right.get(name))
    return f".{name}: is {has}, but this run has {wanted}"


SEGMENTS = "segments"  # of a report's provenance: all of them, where they are not alike
RUNS = "the runs behind this journal"
SHARDS = "the shards"


class FinishedTrials(Protocol):
    """Where finished trials are kept, and which ones already were."""

    def done(self) -> DoneTrials: ...

    def append(self, lines: bytes, count: int = 1, place: tuple[int, int] | None = None) -> object:
        """`place`: index and trial, if it is one line."""
        ...

    def note_spent(self, lines: bytes) -> None:
        """What finished trials took, as lines of the file beside the results."""

    def note_origin(self, seen: Observed) -> None: ...

    def not_ours(self, what: str, line: int | None = None) -> BadInput: ...


def origin_of(seen: Observed, common: dict[str, Json]) -> Observed:
    """What is told of who answers, without what was measured. `common`: of this machine."""
    return Observed(provenance={**common, **seen.provenance}, warnings=seen.warnings)


class Origins:
    """Who answered: in earlier runs (`before`), in this one. `told`: all of it, by the report of a
    run that is over; `damage`: what was lost of it."""

    def __init__(self, setup: Setup) -> None:
        self.before: list[Observed] = []
        self.told: Observed | None = None
        self.damage: tuple[str, ...] = ()
        self._now: Observed | None = None
        self._latest: tuple[dict[str, Json], tuple[str, ...]] | None = None
        self._setup = setup
        self._common = provenance(setup.pinned)
        if setup.config.model_revision is not None:
            self._common["model_revision"] = setup.config.model_revision

    def note(self, kept: FinishedTrials) -> None:
        """Before the trials that it is about: a trial whose origin is not known is none."""
        seen = self._setup.runner.observed()
        if self._latest == (seen.provenance, seen.warnings):
            return
        self.take(origin_of(seen, self._common), kept)
        # Only now: what was refused once is refused for every trial that was still on its way.
        self._latest = dict(seen.provenance), seen.warnings

    def take(self, seen: Observed, kept: FinishedTrials) -> None:
        if seen == self._now:
            return
        if self.before and self._setup.config.determinism_mode:
            joined_origin([*self.before, seen], RUNS, deterministic=True)
        self._now = seen
        kept.note_origin(seen)

    def joined(self) -> Observed:
        """All of them, told as one."""
        told = self.told
        if told is None:
            origins = self.before if self._now is None else [*self.before, self._now]
            origins = origins or [origin_of(Observed(), self._common)]
            alone = len(origins) == 1
            told = origins[0] if alone else joined_origin(origins, RUNS, deterministic=False)
        return msgspec.structs.replace(told, warnings=(*told.warnings, *self.damage))


def joined_origin(origins: Sequence[Observed], who: str, *, deterministic: bool) -> Observed:
    """All of them told as one, each listed if they differ. `who` has them, for messages."""
    provenance, differing = agree_on_provenance(
        [one.provenance for one in origins], who, deterministic=deterministic
    )
    warnings = dict.fromkeys(text for one in origins for text in one.warnings)
    return Observed(provenance=provenance, warnings=(*warnings, *differing))


def agree_on_provenance(
    provenances: Sequence[dict[str, Json]], who: str, *, deterministic: bool
) -> tuple[dict[str, Json], list[str]]:
    """One provenance from those of all, and warnings of what they do not agree in."""
    parts = _distinct(provenances)
    differing: dict[str, list[Json]] = {}
    joined = want_object(_join(parts, "", differing))
    warnings = [
        f"{who} do not agree in {path}: {' and '.join(map(_tell, values))}"
        for path, values in differing.items()
    ]
    if warnings and deterministic:
        raise FingerprintMismatch(f"{warnings[0]}; in determinism mode they must")
    return ({**joined, SEGMENTS: parts} if warnings else joined), warnings


def _distinct(provenances: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Each once, those that a report lists already too."""
    found: dict[str, dict[str, Json]] = {}
    for one in provenances:
        for part in map(want_object, want_list(one.get(SEGMENTS)) or [one]):
            found.setdefault(canonical_json(part), part)
    return list(found.values())


def _join(values: Sequence[Json], path: str, differing: dict[str, list[Json]]) -> Json:
    first = values[0]
    if all(value == first for value in values):
        return first
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) == len(values):
        names = dict.fromkeys(name for value in objects for name in value)
        return {
            name: _join(
                [value[name] for value in objects if name in value],
                f"{path}.{name}" if path else name,
                differing,
            )
            for name in names
        }
    told = {canonical_json(value): value for value in values if value != []}
    if len(told) > 1:
        differing[path] = list(told.values())
    lists = [value for value in values if isinstance(value, list)]
    if len(lists) == len(values):
        entries = {canonical_json(entry): entry for value in lists for entry in value}
        return [entries[key] for key in sorted(entries)]
    return first


def _tell(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(map(_tell, value))
    return value if isinstance(value, str) else canonical_json(msgspec.to_builtins(value))
