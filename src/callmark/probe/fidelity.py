"""What did the fine-tune do to the tool calls? From the answers of two views, or outputs that
somebody already has, to one result.

Four signals: the change in valid calls, the format of the calls and the disagreement of arguments
where both views made a valid call, and the share of the tuned view's valid calls that name a tool
they may not."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypedDict, TypeGuard, assert_never

import msgspec

from callmark.errors import BadInput, UsageError
from callmark.probe.answers import (
    argument_changes,
    check_ends,
    disagreement,
    group_failures,
    is_invented,
    likeness_of,
    read_answer,
)
from callmark.probe.records import (
    CaseOutcome,
    FidelityResult,
    GateWord,
    ProbeEvidence,
    ViewAnswer,
    ViewCall,
    WrittenAnswer,
    standing_of,
)
from callmark.probe.spec import (
    FidelitySpec,
    SpecReader,
    ToolUseCase,
    Where,
    cases_of,
    check_format,
    check_tools,
    expected_formats,
    keys_of,
)
from callmark.probe.stats import (
    MIN_CASES,
    NULLS_BELOW_BASE,
    NullStats,
    ValidityChange,
    null_stats_of,
    rank_text,
    score_of,
    validity_change,
    z_by_rank,
    z_gate_applies,
)
from callmark.records.jsontext import Json, plain_object, well_formed
from callmark.records.problems import show_value
from callmark.stats.estimates import SAME, SampledValue, interval_95

Output = str | WrittenAnswer
CEILING = 0.95  # from here on nulls have no room to be better than the base
FEW_CALLS = 0.5  # of the cases: a base that makes fewer calls has little to lose


class Nulls(msgspec.Struct, frozen=True, kw_only=True):
    """What random adapters reached on the same cases: their rates, or what is known of them."""

    rates: tuple[float, ...] = ()
    stats: NullStats | None = None
    by_rank: dict[str, NullStats] | None = None

    @property
    def known(self) -> NullStats | None:
        return self.stats or null_stats_of(self.rates)


def fidelity(
    spec: FidelitySpec,
    base_outputs: Sequence[Output],
    tuned_outputs: Sequence[Output],
    *,
    nulls: Nulls | None = None,
    seed: int = 0,
) -> FidelityResult:
    """The result of one output of each view for each case of the spec."""
    if not spec.cases:
        what = "no tool-use cases (inline 'cases' was empty)"
        return FidelityResult(name=spec.name, verdict="skip", message=what)
    outcomes = tuple(_outcomes(spec, base_outputs, tuned_outputs))
    asked = _asked(outcomes)
    if not asked:
        what = "no case expects a call: cases with a gold_tool_name are needed"
        return FidelityResult(name=spec.name, verdict="skip", message=what)
    change = validity_change(
        [outcome.base.valid for outcome in asked],
        [outcome.tuned.valid for outcome in asked],
        spec.assert_validity_delta_gte,
    )
    return finalise(_judge(spec, outcomes, change, nulls or Nulls(), seed))


def valid_rate(spec: FidelitySpec, outputs: Sequence[Output]) -> float:
    """The share of cases that one view answered with a valid call: what nulls are measured by."""
    answers = _pair(spec.cases, outputs, "outputs")
    valid = [
        read_answer(text, case, spec.schema).valid
        for case, text in answers
        if case.gold_tool_name is not None
    ]
    return sum(valid) / len(valid) if valid else 0.0


def _asked(outcomes: Sequence[CaseOutcome]) -> tuple[CaseOutcome, ...]:
    """The cases that expect a call; the others say nothing about valid ones."""
    return tuple(one for one in outcomes if one.gold_tool_name is not None)


def error_result(name: str, message: str) -> FidelityResult:
    """The probe could not be run: an adapter that is not applied, tools that no prompt holds."""
    return FidelityResult(name=name, verdict="error", message=message)


def finalise(result: FidelityResult) -> FidelityResult:
    """No number that is none leaves the probe. Without its main number a result is an error."""
    numbers = {
        field: value if value is None or math.isfinite(value) else None
        for field in ("score", "raw", "z_score", "base_value", "ft_value")
        for value in (getattr(result, field),)
    }
    if result.raw is not None and numbers["raw"] is None:
        numbers["score"] = None
        what = f"the main number is not finite ({result.raw}): {result.message}"
        return msgspec.structs.replace(
            result, verdict="error", decision=None, message=what, **numbers
        )
    interval = result.ci_95
    if interval is not None and not all(map(math.isfinite, interval)):
        interval = None
    return msgspec.structs.replace(result, ci_95=interval, **numbers)


def _outcomes(
    spec: FidelitySpec, base_outputs: Sequence[Output], tuned_outputs: Sequence[Output]
) -> Iterable[CaseOutcome]:
    before = _pair(spec.cases, base_outputs, "base_outputs")
    after = _pair(spec.cases, tuned_outputs, "tuned_outputs")
    for (case, base_text), (_, tuned_text) in zip(before, after, strict=True):
        base = read_answer(base_text, case, spec.schema)
        tuned = read_answer(tuned_text, case, spec.schema)
        # Where no call is expected, none can be right or agree with another.
        expected = case.gold_tool_name is not None
        ours, theirs = (_valid_call(one) if expected else None for one in (tuned, base))
        both = None if ours is None or theirs is None else (theirs, ours)
        ordered = spec.ordered_lists
        yield CaseOutcome(
            gold_tool_name=case.gold_tool_name,
            standing=standing_of(base, tuned),
            base=base,
            tuned=tuned,
            disagreement=None if both is None else disagreement(*both, ordered_lists=ordered),
            changes=() if both is None else argument_changes(*both, ordered_lists=ordered),
            hallucinated=None if ours is None else is_invented(ours.name, case, spec.allowed_tools),
            likeness=likeness_of(base, tuned),
        )


def _judge(
    spec: FidelitySpec,
    outcomes: tuple[CaseOutcome, ...],
    change: ValidityChange,
    nulls: Nulls,
    seed: int,
) -> FidelityResult:
    rate, known = change.tuned_rate, nulls.known
    z = None if known is None else known.z(rate)
    evidence = _evidence(spec, outcomes, change, nulls, seed)
    hallucination = evidence.hallucination_rate
    hallucination_ok = None
    if hallucination is not None:
        hallucination_ok = hallucination <= spec.assert_hallucination_lte + SAME
    holds = [change.delta >= spec.assert_validity_delta_gte - SAME, hallucination_ok is True]
    format_kept = _format_gate(spec, evidence)
    holds.append(format_kept != "fail")
    if z is not None and evidence.z_gate_applied:
        holds.append(z >= spec.assert_z_gte - SAME)
    return FidelityResult(
        name=spec.name,
        verdict="pass" if all(holds) else "fail",
        decision=change.decision,
        decision_reason=_decision_reason(change),
        score=score_of(change, hallucination, z),
        raw=rate,
        z_score=z,
        base_value=change.base_rate,
        ft_value=rate,
        ci_95=evidence.raw_ci_95,
        hallucination_ok=hallucination_ok,
        format_kept=format_kept,
        evidence=evidence,
        message=_message(spec, change, evidence, z),
    )


def _evidence(
    spec: FidelitySpec,
    outcomes: tuple[CaseOutcome, ...],
    change: ValidityChange,
    nulls: Nulls,
    seed: int,
) -> ProbeEvidence:
    rate, known = change.tuned_rate, nulls.known
    disagreements = [one.disagreement for one in outcomes if one.disagreement is not None]
    invented = [one.hallucinated for one in outcomes if one.hallucinated is not None]
    asked = _asked(outcomes)
    silent = [one for one in outcomes if one.gold_tool_name is None]
    flags = [float(outcome.tuned.valid) for outcome in asked]
    interval = interval_95(SampledValue("mean", (flags,)), seed)
    return ProbeEvidence(
        json_valid_rate_base=change.base_rate,
        json_valid_rate_ft=rate,
        validity_delta=change.delta,
        mean_arg_disagreement=_mean(disagreements),
        hallucination_rate=_mean(invented),
        num_cases=change.n,
        num_arg_pairs_compared=len(disagreements),
        num_hallucinated=sum(invented),
        num_hallucinated_base=_invented_by_base(spec, outcomes),
        z_by_rank=z_by_rank(rate, nulls.by_rank),
        # One case leaves nothing to draw from: the seed's interval is the value itself.
        raw_ci_95=(rate, rate) if interval is None else (interval.low, interval.high),
        weight=spec.weight,
        num_valid_base=change.base_valid,
        num_valid_ft=change.tuned_valid,
        num_lost=change.lost,
        num_gained=change.gained,
        num_both_fail=sum(1 for one in asked if one.standing == "both_fail"),
        p_value=change.p,
        smallest_drop=change.smallest_drop,
        validity_delta_lower_95=change.lower_bound,
        null_mean=None if known is None else _finite(known.mean),
        null_std=None if known is None else _finite(known.std),
        num_nulls=None if known is None else known.n,
        null_rank=rank_text(rate, nulls.rates, known),
        z_gate_applied=z_gate_applies(known, change.base_rate)
        and known is not None
        and known.z(rate) is not None,
        num_no_call=len(silent),
        num_unwanted_base=sum(1 for one in silent if not one.base.valid),
        num_unwanted_ft=sum(1 for one in silent if not one.tuned.valid),
        **_formats(spec, asked),
        num_same_text=sum(1 for one in outcomes if one.likeness == "same_text"),
        num_same_call=sum(1 for one in outcomes if one.likeness != "other_call"),
        checks=check_ends(outcomes),
        failures=group_failures(spec, outcomes),
        cases=outcomes,
    )


class _Formats(TypedDict):
    num_format_pairs: int
    num_format_changed: int
    formats_base: dict[str, int]
    formats_ft: dict[str, int]
    expected_format: str | None


def _formats(spec: FidelitySpec, outcomes: Sequence[CaseOutcome]) -> _Formats:
    """How calls are written, over cases that are valid in both views; with an expectation, over
    all valid calls of the tuned one. What a server gives apart from the text has no format."""
    expected = None if spec.expect_format is None else expected_formats(spec.expect_format)
    pairs = [
        (one.base.format, one.tuned.format)
        for one in outcomes
        if one.tuned.valid and one.tuned.format is not None
        if expected is not None or (one.base.valid and one.base.format is not None)
    ]
    changed = [
        after for before, after in pairs if (after not in expected if expected else after != before)
    ]
    base = Counter(before for before, _ in pairs if before is not None)
    tuned = Counter(after for _, after in pairs if after is not None)
    return _Formats(
        num_format_pairs=len(pairs),
        num_format_changed=len(changed),
        formats_base=dict(sorted(base.items())),
        formats_ft=dict(sorted(tuned.items())),
        expected_format=spec.expect_format,
    )


def _format_gate(spec: FidelitySpec, evidence: ProbeEvidence) -> GateWord | None:
    """Another format is a warning, for a parser may read both; `minimal` stands for one that
    reads the base's only, and who says which format he expects means it."""
    pairs = evidence.num_format_pairs
    if not pairs:
        return None
    if (pairs - evidence.num_format_changed) / pairs >= spec.assert_format_kept_gte - SAME:
        return "pass"
    return "fail" if spec.schema == "minimal" or spec.expect_format is not None else "warn"


def _message(
    spec: FidelitySpec, change: ValidityChange, evidence: ProbeEvidence, z: float | None
) -> str:
    # 0 before and 0 after is no drop, and must not be called a pass: no call was ever seen.
    if not change.base_valid and not change.tuned_valid:
        return (
            f"no valid tool call in either view (0 of {change.n} cases): nothing was preserved and "
            "nothing lost; are the tools in the prompts, and can this model call them at all?"
        )
    signals = (
        f"validity ft={change.tuned_rate:.0%} (base={change.base_rate:.0%}, "
        f"Δ={change.delta:+.0%}), hallucination={_percent(evidence.hallucination_rate)}"
    )
    if evidence.num_format_changed:
        counts = f"{evidence.num_format_changed} of {evidence.num_format_pairs}"
        signals += f", format changed in {counts}"
    keep = _nulls_keep(evidence)
    if z is not None:
        note = f" ({keep}, so its gate does not apply)" if keep else ""
        return f"{signals}, z={z:+.2f}σ vs null{note}"
    if evidence.null_rank is not None:
        return f"{signals}, {evidence.null_rank}{f' ({keep})' if keep else ''}"
    return f"{signals} (no calibration for {spec.kind})"


def _nulls_keep(evidence: ProbeEvidence) -> str | None:
    """Why nulls say nothing here, if they do not."""
    mean, base = evidence.null_mean, evidence.json_valid_rate_base
    if mean is None or z_gate_applies(NullStats(mean=mean), base):
        return None
    if base >= CEILING - SAME:
        return f"the base is at its ceiling: {base:.0%}, nulls {mean:.0%}"
    if base <= NULLS_BELOW_BASE + SAME:
        return f"the base has too few calls for nulls to lose any: {base:.0%}, nulls {mean:.0%}"
    return f"nulls keep the format: {mean:.0%} against {base:.0%} of the base"


def _decision_reason(change: ValidityChange) -> str:
    counts = f"{change.lost} of {change.n} cases lost, {change.gained} gained, p = {change.p:.3g}"
    shown = f"{change.n} cases could have shown a drop of {change.smallest_drop or 0:.0%}"
    if change.smallest_drop is None:
        shown = f"with {change.base_valid} valid calls before, no drop could be shown"
    worst = f"{max(0.0, -change.lower_bound):.1%}"
    match change.decision:
        case "no_regression":
            bound = f"; a drop of more than {worst} is ruled out (one-sided 95 %)"
        case "no_drop_seen":
            bound = f"; a drop of up to {worst} is not ruled out (one-sided 95 %)"
        case "inconclusive" if change.n < MIN_CASES:
            bound = f"; fewer than {MIN_CASES} cases cannot say that nothing was lost"
        case "inconclusive" | "regression":
            bound = ""
        case _:
            assert_never(change.decision)
    return f"{counts}; {shown}{bound}{_weak_base(change)}"


def _weak_base(change: ValidityChange) -> str:
    """Cases that the base cannot do say little, however many they are, unless calls are lost."""
    if change.decision == "regression" or change.base_valid >= FEW_CALLS * change.n:
        return ""
    made = f"{change.base_valid} of the {change.n} cases"
    return f"; the base makes a valid call in only {made} and can lose no other: ask what it can do"


def _invented_by_base(spec: FidelitySpec, outcomes: Iterable[CaseOutcome]) -> int:
    """What the base did as well is not the fine-tune's doing."""
    return sum(
        is_invented(call.name, case, spec.allowed_tools)
        for case, one in zip(spec.cases, outcomes, strict=True)
        if case.gold_tool_name is not None and (call := _valid_call(one.base)) is not None
    )


def _pair(
    cases: Sequence[ToolUseCase], outputs: Sequence[Output], name: str
) -> list[tuple[ToolUseCase, WrittenAnswer]]:
    if len(cases) != len(outputs):
        raise UsageError(
            f"{name}: holds {len(outputs)} outputs for {len(cases)} cases: give one for each"
        )
    written = (WrittenAnswer(one) if isinstance(one, str) else one for one in outputs)
    return list(zip(cases, written, strict=True))


def _valid_call(answer: ViewAnswer) -> ViewCall | None:
    return answer.call if answer.valid else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.0%}"


_TOO_LARGE = 2**1023


def tool_use_fidelity(
    cases: Iterable[ToolUseCase | Mapping[str, Json]],
    base_outputs: Sequence[str | None],
    tuned_outputs: Sequence[str | None],
    *,
    null_rates: Sequence[float] = (),
    null_stats: Mapping[str, Json] | None = None,
    null_stats_by_rank: Mapping[str, Mapping[str, Json]] | None = None,
    spec: FidelitySpec | Mapping[str, Json] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Say what a fine-tune did to the tool calls, from outputs that you already have.

    Args:
        cases: what was asked: `prompt`, `tool_spec`, `gold_tool_name`, …
        base_outputs: what the model before answered, one text per case; None is no answer.
        tuned_outputs: the same of the model after.
        null_rates: the rates of changed calls under adapters that learnt nothing.
        null_stats: `{mean, std, n, degenerate}` of such adapters, each optional; without a mean
            there is no z.
        null_stats_by_rank: the same for each rank.
        spec: the fields of a suite entry, its cases apart.
        seed: of the intervals.

    Returns:
        `verdict`, `decision`, `score`, `raw`, `z_score`, `base_value`, `ft_value`, `ci_95`,
        `evidence` and `message`.

    Raises:
        BadInput: what is wrong with the arguments, each by its place.

    >>> import callmark
    >>> case = {"prompt": "Boats?", "gold_tool_name": "search",
    ...         "tool_spec": {"name": "search", "parameters": {"type": "object"}}}
    >>> call = '<tool_call>{"name": "search", "arguments": {}}</tool_call>'
    >>> found = callmark.tool_use_fidelity([case], [call], ["I do not know."])
    >>> found["base_value"], found["ft_value"]
    (1.0, 0.0)
    """
    reader = SpecReader()
    made = _spec_of(cases, spec, reader)
    base = _texts(base_outputs, "base_outputs", reader)
    tuned = _texts(tuned_outputs, "tuned_outputs", reader)
    nulls = Nulls(
        rates=_rates(null_rates, reader),
        stats=_stats(null_stats, reader, ("null_stats",)),
        by_rank=_stats_by_rank(null_stats_by_rank, reader),
    )
    if not _is_number(seed) or isinstance(seed, float):
        reader.add(("seed",), f"must be a whole number, not {show_value(seed)}")
    if made is None or reader.problems.count:
        raise BadInput(reader.problems.found)
    return plain_object(fidelity(made, base, tuned, nulls=nulls, seed=seed))


def read_spec_values(
    cases: Iterable[ToolUseCase | Mapping[str, Json]], spec: Mapping[str, Json] | None
) -> FidelitySpec:
    """Cases and the other fields of a suite entry, checked; raises BadInput."""
    reader = SpecReader()
    made = _spec_of(cases, spec, reader)
    if made is None or reader.problems.count:
        raise BadInput(reader.problems.found)
    return made


def _spec_of(cases: Json, given: Json, reader: SpecReader) -> FidelitySpec | None:
    listed = list(cases) if isinstance(cases, Iterable) and not _is_text(cases) else cases
    if isinstance(listed, list):
        listed = reader.plain([_as_plain(case) for case in listed], ("cases",))
    value = reader.plain(_as_plain({} if given is None else given), ("spec",))
    if reader.problems.count:
        return None
    if isinstance(value, dict) and value.pop("cases", None):
        reader.add(("spec", "cases"), "give the cases as the first argument")
    spec = reader.record(value, FidelitySpec, ("spec",))
    made = cases_of(listed, reader, ("cases",))
    if spec is None or reader.problems.count:
        return None
    check_tools(made, spec.schema, reader, ("cases",))
    check_format(spec, reader, ("spec",))
    return msgspec.structs.replace(spec, cases=made)


def _as_plain(value: Json) -> Json:
    return msgspec.structs.asdict(value) if isinstance(value, msgspec.Struct) else value


def _texts(outputs: Json, name: str, reader: SpecReader) -> list[str]:
    """A model that answered with nothing may give None."""
    if _is_text(outputs) or not isinstance(outputs, Sequence):
        reader.add((name,), f"must be a list of texts, not {show_value(outputs)}")
        return []
    texts = []
    for at, text in enumerate(outputs):
        if not isinstance(text, str | None):
            reader.add((name, at), f"must be a text, not {show_value(text)}")
        else:
            texts.append(well_formed(text or ""))
    return texts


def _rates(rates: Json, reader: SpecReader) -> tuple[float, ...]:
    if _is_text(rates) or not isinstance(rates, Sequence):
        reader.add(("null_rates",), f"must be a list of rates, not {show_value(rates)}")
        return ()
    for at, rate in enumerate(rates):
        if not _is_number(rate) or not 0 <= rate <= 1:
            reader.add(("null_rates", at), f"must be a number from 0 to 1, not {show_value(rate)}")
    return tuple(rates)


def _stats(given: Json, reader: SpecReader, where: Where) -> NullStats | None:
    """Numbers that are none (NaN) stay: they give no z."""
    if given is None:
        return None
    if not isinstance(given, Mapping):
        reader.add(where, f"must be an object, not {show_value(given)}")
        return None
    for field, value in given.items():
        if field not in NullStats.__struct_fields__:
            reader.add((*where, str(field)), keys_of(NullStats).refusal(str(field)))
        elif value is not None and not _is_number(value) and not isinstance(value, bool):
            reader.add((*where, field), f"must be a number, not {show_value(value)}")
    n: Json = given.get("n")
    return NullStats(
        mean=given.get("mean"),
        std=given.get("std"),
        n=int(n) if _is_number(n) and 0 <= n < 2**53 else None,
        degenerate=given.get("degenerate") or False,
    )


def _stats_by_rank(given: Json, reader: SpecReader) -> dict[str, NullStats] | None:
    where = ("null_stats_by_rank",)
    if given is None:
        return None
    if not isinstance(given, Mapping):
        reader.add(where, f"must be an object {{rank: stats}}, not {show_value(given)}")
        return None
    found = {
        well_formed(str(rank)): _stats(stats, reader, (*where, str(rank)))
        for rank, stats in given.items()
    }
    return {rank: stats for rank, stats in found.items() if stats is not None}


def _is_text(value: Json) -> bool:
    return isinstance(value, str | bytes | Mapping)


def _is_number(value: Json) -> TypeGuard[int | float]:
    """Of a size that can be reckoned with."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return isinstance(value, float) or abs(value) < _TOO_LARGE
