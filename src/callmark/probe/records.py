"""What the fidelity probe says. Nothing is rounded, and nothing depends on a clock."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

import msgspec

from callmark.compare.records import Comparison
from callmark.compare.records import exit_code as exit_code_of_comparison
from callmark.records.jsontext import Json

Verdict = Literal["pass", "fail", "skip", "error"]

CATEGORY = "attribution"

# `format_kept` of a probe; None: no call was written as text in both views.
GateWord = Literal["pass", "warn", "fail"]
Decision = Literal["regression", "no_regression", "no_drop_seen", "inconclusive"]


class ViewCall(msgspec.Struct, frozen=True):
    name: str
    arguments: dict[str, Json]


class WrittenAnswer(msgspec.Struct, frozen=True):
    """What a view wrote to one question. `ended`: it ended its turn by itself; None: not known.
    `structured`: its calls came apart from the text, in a server's own form."""

    text: str
    ended: bool | None = None
    structured: bool = False


class ViewAnswer(msgspec.Struct, frozen=True):
    """The first call of a text that fits the tool's schema; if none does, the first that could be
    read at all, and why it does not fit. `cause`: the same in words that are equal for all cases
    of the kind. `format`: how the call is written; None: there is none, or it is structured.
    `runs_on`: more text follows the last call; `repeats`: so many calls are there already.
    `structured`: a server gave its calls apart from the text, where they are written out here."""

    valid: bool
    call: ViewCall | None = None
    reason: str | None = None
    text: str = ""
    format: str | None = None
    ended: bool | None = None
    cause: str | None = None
    runs_on: bool = False
    repeats: int = 0
    structured: bool = False


class ArgumentChange(msgspec.Struct, frozen=True, kw_only=True):
    """A leaf of the arguments that base and tuned view give differently. A side that does not
    give it has no field here."""

    path: str
    base: Json | msgspec.UnsetType = msgspec.UNSET
    tuned: Json | msgspec.UnsetType = msgspec.UNSET


Standing = Literal["kept", "lost", "gained", "both_fail"]
Likeness = Literal["same_text", "same_call", "other_call"]


class CaseOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """One case in both views; without a `gold_tool_name` the right answer makes no call.
    `likeness`: what both views' answers share; the texts of structured calls are not compared.
    `disagreement` and `changes`: only where both calls are valid; `hallucinated`: only where the
    tuned one is."""

    gold_tool_name: str | None
    standing: Standing
    base: ViewAnswer
    tuned: ViewAnswer
    disagreement: float | None
    changes: tuple[ArgumentChange, ...] = ()
    hallucinated: bool | None
    likeness: Likeness | None = None


def standing_of(base: ViewAnswer, tuned: ViewAnswer) -> Standing:
    if base.valid:
        return "kept" if tuned.valid else "lost"
    return "gained" if tuned.valid else "both_fail"


class TurnCheck(msgspec.Struct, frozen=True, kw_only=True):
    """How often something about the turns of each view is not as it should be, of `n`."""

    name: Literal["never_ends", "runs_on", "repeats", "ignores_results", "renders_otherwise"]
    base: int
    tuned: int
    n: int
    note: str = ""


class Rendering(msgspec.Struct, frozen=True, kw_only=True):
    """Prompts that the tokenizer saved with the fine-tune renders otherwise than the base's."""

    prompts: int
    different: int
    note: str


class FailureGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of the tuned view that fail for one reason; `cases` counts from 1."""

    cause: str
    count: int
    num_lost: int
    num_both_fail: int
    cases: tuple[int, ...]


class ProbeEvidence(msgspec.Struct, frozen=True, kw_only=True):
    """Rates without a denominator are None."""

    json_valid_rate_base: float
    json_valid_rate_ft: float
    validity_delta: float
    mean_arg_disagreement: float | None
    hallucination_rate: float | None
    num_cases: int
    num_arg_pairs_compared: int
    num_hallucinated: int
    z_by_rank: dict[str, float] | None
    raw_ci_95: tuple[float, float] | None
    weight: float
    num_valid_base: int
    num_valid_ft: int
    num_lost: int
    num_gained: int
    num_both_fail: int
    p_value: float
    smallest_drop: float | None
    validity_delta_lower_95: float
    null_mean: float | None
    null_std: float | None
    num_nulls: int | None
    null_rank: str | None
    z_gate_applied: bool
    num_no_call: int = 0
    num_unwanted_base: int = 0
    num_unwanted_ft: int = 0
    num_format_pairs: int = 0
    num_format_changed: int = 0
    num_hallucinated_base: int | None = None  # nobody counted
    formats_base: dict[str, int] = {}
    formats_ft: dict[str, int] = {}
    expected_format: str | None = None
    num_same_text: int = 0
    num_same_call: int = 0
    checks: tuple[TurnCheck, ...] = ()
    failures: tuple[FailureGroup, ...] = ()
    cases: tuple[CaseOutcome, ...]


class FidelityResult(msgspec.Struct, frozen=True, kw_only=True):
    """`verdict` is the point rule; `decision` asks whether chance explains the drop."""

    name: str
    kind: str = "tool_use_fidelity"
    category: str = CATEGORY
    verdict: Verdict
    decision: Decision | None = None
    decision_reason: str | None = None
    score: float | None = None
    raw: float | None = None
    z_score: float | None = None
    base_value: float | None = None
    ft_value: float | None = None
    ci_95: tuple[float, float] | None = None
    hallucination_ok: bool | None = None
    format_kept: GateWord | None = None
    evidence: ProbeEvidence | None = None
    message: str


def exit_code(result: FidelityResult, *, require_power: bool = False) -> int:
    """0: no regression, or no drop was seen; 1: a regression, or tools are invented, or the format
    is not kept where that fails, or nothing could be measured; 5: it cannot be told.
    `require_power`: no drop seen is not enough."""
    evidence = result.evidence
    if result.verdict == "error" or result.decision == "regression":
        return 1
    if evidence is not None and not evidence.num_valid_base + evidence.num_valid_ft:
        return 1
    if result.hallucination_ok is False or result.format_kept == "fail":
        return 1
    enough = ("no_regression",) if require_power else ("no_regression", "no_drop_seen")
    return 0 if result.decision in enough and result.hallucination_ok else 5


PROBE_VERSION = "1.0.0"


class NullRates(msgspec.Struct, frozen=True, kw_only=True):
    """What the nulls of one rank reached: the share of cases with a valid call, one for each."""

    rank_multiplier: float
    rates: tuple[float, ...]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The nulls of one probe. `sentinels`: there were no cases, so two trivial ones were asked."""

    probe: str
    num_cases: int
    sentinels: bool = False
    ranks: tuple[NullRates, ...]


class NullResult(msgspec.Struct, frozen=True, kw_only=True):
    """`kind: null_adapter`. `unavailable`: why no null was made."""

    name: str
    kind: str = "null_adapter"
    method: str
    init_scale: float | None
    runs: int
    unavailable: str | None = None
    calibrations: tuple[Calibration, ...] = ()


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the suite, with the names of its cases, in their order."""

    result: FidelityResult
    case_names: tuple[str, ...]


class Checkpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One state of a model in training. `path`: its folder; None: it was asked in memory."""

    label: str
    path: str | None = None
    step: int | None = None


# `loses`: a regression that the fixed sequence confirms; `dips`: one that it does not reach.
CheckpointStanding = Literal["holds", "loses", "dips", "error"]


class SeriesPoint(msgspec.Struct, frozen=True, kw_only=True):
    """`valid_ci_95`: the Wilson interval of the share of valid calls."""

    checkpoint: Checkpoint
    standing: CheckpointStanding
    valid_ci_95: tuple[float, float] | None
    result: FidelityResult


class SeriesResult(msgspec.Struct, frozen=True, kw_only=True):
    """Checkpoints in the order of training. `first_losing`: from here to the end all are worse."""

    points: tuple[SeriesPoint, ...]
    first_losing: str | None


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """`comparison`: base and tuned through the whole pipeline, where a dataset was given.
    `series`: every checkpoint, of which `results` hold the last one."""

    probe_version: str = PROBE_VERSION
    callmark_version: str
    models: dict[str, Json]
    seed: int
    views: dict[str, Json]
    results: tuple[ProbeResult, ...]
    nulls: NullResult | None = None
    series: SeriesResult | None = None
    comparison: Comparison | None = None
    warnings: tuple[str, ...] = ()
    exit_code: int
    timing: dict[str, Json] = {}


def is_probe_report(data: bytes) -> bool:
    """Whether a file is what `callmark probe --json` writes: it says so in its first field."""
    return b"".join(data[:64].split()).startswith(b'{"probe_version"')


def read_probe_report(data: bytes) -> ProbeReport:
    """The report of an earlier probe; raises msgspec.MsgspecError."""
    return msgspec.json.decode(data, type=ProbeReport)


def exit_code_of(
    results: Iterable[FidelityResult],
    comparison: Comparison | None,
    *,
    require_power: bool = False,
) -> int:
    """The gravest of all: 1, then 5, then 0. A probe that was skipped has decided nothing."""
    codes = {exit_code(result, require_power=require_power) for result in results}
    if comparison is not None:
        codes.add(exit_code_of_comparison(comparison))
    return next((code for code in (1, 5) if code in codes), 0 if codes else 5)
