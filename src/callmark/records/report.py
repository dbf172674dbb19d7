"""The report: everything that one run, or one file of results, says about a model.

Nothing is rounded and nothing depends on a clock, except what stands below `timing`. A number
without data is None. Changing the fields means changing `REPORT_VERSION`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date
from typing import Literal, assert_never

import msgspec

from callmark.records.jsontext import Json, JsonRecord
from callmark.records.problems import KeySet, show_value
from callmark.records.results import Decoding, Drawn
from callmark.records.samples import Kind
from callmark.stats.estimates import Method


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """Why a sample counts for no gate, up to and including which day, and who sees to it.
    `expired`: that day is over, and the sample counts again."""

    owner: str
    until: date
    why: str
    expired: bool = False


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that the settings put into quarantine, and how its scored trials did. `trials` 0:
    it has none here."""

    sample_id: str
    owner: str
    until: date
    why: str
    expired: bool
    passed: int
    trials: int


# A quarantine without an owner, an end and a reason would never be lifted: it needs all three.
_QUARANTINE_FIELDS = {"owner": "who sees to it", "until": "its last day", "why": "the reason"}


def quarantine_problems(entries: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with `{id: {owner, until, why}}` as a file has it: where, and what."""
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        path = (str(name),)
        if not isinstance(entry, Mapping):
            yield path, f"must be {{owner, until, why}}, not {show_value(entry)}"
            continue
        for key in entry:
            if key not in _QUARANTINE_FIELDS:
                keys = KeySet(known=tuple(_QUARANTINE_FIELDS))
                yield (*path, str(key)), keys.refusal(str(key), entry.keys())
        for key, what in _QUARANTINE_FIELDS.items():
            given = entry.get(key)
            if given is None or given == "":
                yield path, f"says no {key}: {what}"
            elif key == "until":
                if problem := day_problem(given):
                    yield (*path, key), problem
            elif not isinstance(given, str):
                yield (*path, key), f"must be text, not {show_value(given)}"


def day_problem(value: Json) -> str | None:
    """Why this is no day; None: it is one."""
    what = f"must be a day such as 2027-01-31, not {show_value(str(value))}"
    # YAML reads 2027-01-31 as a date, and one with a time as a datetime, which is a date as well.
    if not isinstance(value, str):
        return None if type(value) is date else what
    try:
        return None if date.fromisoformat(value).isoformat() == value else what
    except ValueError:
        return what


REPORT_VERSION = "2.0.0"
FAILING_CAP = 1000  # sample ids listed per gate; the count beside them is complete
MISSES_CAP = 100
LONGEST_RAW = 500
ERRORS_CAP = 100

Policy = Literal["hard_fail", "count_based_misses", "clear_fail", "confident", "warning_only"]
Op = Literal[">=", "<=", ">", "="]
Source = Literal["default", "header", "config", "flag"]
Status = Literal["pass", "fail", "warn", "inconclusive", "n/a"]
Verdict = Literal["pass", "fail", "inconclusive", "incomplete", "empty"]
Number = int | float


class Metric(msgspec.Struct, frozen=True, kw_only=True):
    """`n` is the number of samples behind the value. `numerator` and `denominator` are what a
    share or a mean was made of; F1 of pooled counts has none of its own. `reason` says why there
    is no value."""

    value: Number | None
    numerator: Number | None = None
    denominator: Number | None = None
    n: int
    ci_95: tuple[float, float] | None = None
    method: Method | None = None
    reason: str | None = None


class GateRule(msgspec.Struct, frozen=True, kw_only=True):
    """A gate in force. `source` is the highest place that said anything about it; `loosened`, that
    it forgives more than the shipped one. A value beyond `warn` is a warning, though the gate
    holds."""

    name: str
    op: Op
    bound: Number
    policy: Policy
    pct: float | None = None
    warn: Number | None = None
    zero_tolerance: bool = False
    any_n: bool = False
    source: Source = "default"
    loosened: bool = False


class GateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What a gate said. `value` is what was compared with `bound`: the metric's value, or the
    lower end of its interval where `compared` says so. `misses` of `n` samples were below the
    bound and `allowed` may be; `needed_n` samples would decide what is open."""

    name: str
    status: Status
    value: Number | None
    op: Op
    bound: Number
    policy: Policy
    n: int
    source: Source
    loosened: bool
    compared: Literal["value", "ci_95_low"] = "value"
    reason: str | None = None
    misses: int | None = None
    allowed: int | None = None
    needed_n: int | None = None


class ReportHeader(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the numbers depend on. None: not there, not known, or not the same in all results."""

    report_version: str = REPORT_VERSION
    dataset_version: str | int | float | None = None
    dataset_sha256: str | None = None
    tool_registry_sha256: str | None = None
    fixtures_sha256: str | None = None
    tokenizer_fingerprint: dict[str, Json] | None = None
    prompt_wrapper_sha256: str | None = None
    runner_fingerprint: str | None = None
    model_fingerprint: str | None = None
    faults_sha256: str | None = None
    runner: str | None = None
    model: str | None = None
    decoding: Decoding | None = None
    seed: int | None = None
    integration_span_cap: int | None = None
    span_extractor: Literal["marker", "claims", "auto"] | None = None
    min_eligible_for_gates: int = 15
    fail_on_fingerprint_mismatch: bool = True
    scorer_version: str | None = None
    repeat: int = 1
    num_shards: int = 1
    shard_index: int = 0
    gates: dict[str, GateRule] = {}
    quarantine: dict[str, Quarantine] = {}

    @property
    def in_quarantine(self) -> frozenset[str]:
        """The samples that count for no gate."""
        return frozenset(name for name, entry in self.quarantine.items() if not entry.expired)


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """Samples by kind, those with a score; `unscored` are those whose every trial is an error.
    `quarantined` samples are in none of the others, but their trials are counted."""

    samples: int
    scored: int
    eligible: int
    controls: int
    negative_controls: int
    clarify: int
    unclassified: int
    unresolved: int
    unscored: dict[Kind, int]
    trials: int
    trials_error: int
    trials_missing: int
    gave_up_honestly: int
    recall_by_presence: int
    extractors: dict[str, int]
    stops: dict[str, int]
    quarantined: int = 0


class Failing(msgspec.Struct, frozen=True):
    """The samples behind a shortfall, in the order of the dataset: all up to `FAILING_CAP`."""

    count: int
    sample_ids: tuple[str, ...]


class ToolDelta(msgspec.Struct, frozen=True):
    """`strict` None: no strict key is set for these samples, and none occurs in their results."""

    lax: float
    strict: float | None
    delta_lax_minus_strict: float | None
    sample_count: int


class MetricBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The main metrics over one locale or one slice."""

    n: int
    num_eligible: int
    spans_over_cap: Number
    metrics: dict[str, Metric]


class SampleRate(msgspec.Struct, frozen=True, kw_only=True):
    """How many of a sample's scored trials passed, as a share with its Wilson interval."""

    sample_id: str
    passed: int
    trials: int
    rate: float
    ci_95: tuple[float, float]


class Noise(msgspec.Struct, frozen=True, kw_only=True):
    """By how much a metric moves though nothing changed. `sd`: of its value in a run with one trial
    of each of the same samples. `floor`: two such runs differ by less in 95 of 100 cases.
    `samples`: those with two trials or more, which it is estimated from."""

    sd: float
    floor: float
    samples: int


class Repeat(msgspec.Struct, frozen=True, kw_only=True):
    """Over `trials` trials of each sample: the share that passes, the share of samples whose every
    trial passes, and the share whose verdict is not always the same. `steady`, `flaky` and `broken`
    samples pass always, sometimes, never; `samples` are the first of the latter two, in the order
    of the dataset. `steady_ci_95`: the interval of a sample that passes `trials` of `trials`."""

    trials: int
    pass_at_1: Metric
    pass_hat_k: Metric
    flip_share: Metric
    steady: int = 0
    flaky: int = 0
    broken: int = 0
    steady_ci_95: tuple[float, float] | None = None
    samples: tuple[SampleRate, ...] = ()
    noise: dict[str, Noise] = {}


class MissedCall(msgspec.Struct, frozen=True):
    sample_id: str
    trial: int
    name: str
    key_normalized: Json


class Misses(msgspec.Struct, frozen=True):
    """Calls without a fixture: all counted by tool, the first `MISSES_CAP` listed. `wrong_calls`,
    by tool, are none of them: no fixture either, but every call that was expected has one."""

    count: int
    by_tool: dict[str, int]
    first: tuple[MissedCall, ...]
    wrong_calls: dict[str, int] = {}


class UnparsedAttempt(msgspec.Struct, frozen=True):
    """`raw` is what a format would have to read, cut off at `LONGEST_RAW` characters."""

    sample_id: str
    trial: int
    name: str | None
    raw: str


class UnparsedAttempts(msgspec.Struct, frozen=True):
    """What looked like calls in no known format: all counted, the first `MISSES_CAP` listed."""

    count: int = 0
    first: tuple[UnparsedAttempt, ...] = ()


class ErrorTrial(msgspec.Struct, frozen=True):
    sample_id: str
    trial: int
    error: str | None


class Errors(msgspec.Struct, frozen=True):
    """Trials that infrastructure lost: never scored, all counted, the first listed."""

    count: int
    first: tuple[ErrorTrial, ...]


class PrivacyCounts(msgspec.Struct, frozen=True):
    by_kind: dict[str, int]
    by_severity: dict[str, int]
    echoed: int
    invented_urls: int


class StatementCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The statements of all scored answers by label, the flags among them by the rule that raised
    them, and the leaves of all arguments by where they come from."""

    labels: dict[str, int] = {}
    firm: dict[str, int] = {}
    advisory: dict[str, int] = {}
    origins: dict[str, int] = {}


class PowerAt(msgspec.Struct, frozen=True):
    """A model whose true rate is `rate` fails in this share of all runs."""

    rate: float
    fails: float


class Power(msgspec.Struct, frozen=True):
    """What `n` samples can tell: how often the gate fails models of these true rates, by its policy
    and bound, if every sample is wholly right or wrong and independent of the others."""

    gate: str
    n: int
    at: tuple[PowerAt, ...]


class GroundingCounts(msgspec.Struct, frozen=True):
    """What all scored answers state, whatever was expected of their samples: recorded
    conversations without a dataset have no other grounding numbers."""

    spans: int
    grounded_lax: int
    grounded_strict: int
    values: dict[str, int]


class Timing(msgspec.Struct, frozen=True, kw_only=True):
    """All that a clock or a meter measured; two equal runs differ only here. `more` takes token
    and cost totals and whatever else a runner measures."""

    wall_time_sec: float | None = None
    scoring_sec: float | None = None
    sec_per_100: float | None = None
    exceeded: bool | None = None
    perf_budget: GateOutcome | None = None
    more: dict[str, Json] = {}


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """What a merge needs to know of the results that were written with a report: how many lines
    and what is in them, how many samples all shards have together, and the settings beside the
    header that all shards must share. An unsharded run is the only shard of its kind."""

    results_lines: int
    results_sha256: str
    selected_samples: int
    settings: dict[str, Json]


class Report(JsonRecord, Drawn, msgspec.Struct, frozen=True, kw_only=True):
    """What a run comes to, as `report.json` has it: `verdict`, `metrics`, `gates`, `counts`, the
    `header` with everything that was pinned, … (docs/reports.md). `callmark.run`, `merge` and
    `verify_dataset` return it; `.to_dict()` gives it as plain JSON values.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> report = callmark.verify_dataset(demo.dataset, fixtures=demo.fixtures)
    >>> report.verdict == report.to_dict()["verdict"]
    True
    """

    report_version: str = REPORT_VERSION
    header: ReportHeader
    verdict: Verdict
    verdict_reason: str
    gates_ok: bool | None
    complete: bool
    partial: bool
    summary: dict[str, Number | None]
    metrics: dict[str, Metric]
    metrics_miss_free: dict[str, Metric]
    counts: Counts
    gates: tuple[GateOutcome, ...]
    failing: dict[str, Failing]
    integration_span_count_histogram: dict[str, int]
    per_tool_deltas: dict[str, ToolDelta]
    locales: dict[str, MetricBlock]
    slices: dict[str, MetricBlock]
    repeat: Repeat | None
    quarantine: tuple[Quarantined, ...] = ()
    misses: Misses
    unparsed: UnparsedAttempts = UnparsedAttempts()
    errors: Errors
    privacy: PrivacyCounts
    grounding: GroundingCounts = GroundingCounts(0, 0, 0, {})
    statements: StatementCounts = StatementCounts()
    power: Power | None = None
    warnings: tuple[str, ...]
    provenance: dict[str, Json]
    shard: Shard | None = None
    timing: Timing

    @property
    def warning_gates(self) -> frozenset[str]:
        """The gates that only warn: a sample that falls short of one has not failed."""
        return frozenset(one.name for one in self.gates if one.policy == "warning_only")


def gates_ok_of(verdict: Verdict) -> bool | None:
    return {"pass": True, "fail": False}.get(verdict)


def exit_code(
    report: Report, *, fail_on_gate_failure: bool = True, fail_on_inconclusive: bool = False
) -> int:
    """0 passed, 1 failed, 2 empty, 4 incomplete, 5 inconclusive. Without `fail_on_gate_failure`
    gates that fail or stay open leave 0; `fail_on_inconclusive` makes any open gate a 5. The
    open gates of a shard are judged after the merge and do not count here."""
    is_shard = report.header.num_shards > 1
    is_open = any(outcome.status == "inconclusive" for outcome in report.gates)
    match report.verdict:
        case "empty":
            return 0 if is_shard else 2
        case "incomplete":
            return 4
        case "fail":
            return 1 if fail_on_gate_failure else 0
        case "inconclusive":
            return 5 if not is_shard and (fail_on_gate_failure or fail_on_inconclusive) else 0
        case "pass":
            return 5 if is_open and fail_on_inconclusive else 0
        case _:
            assert_never(report.verdict)
