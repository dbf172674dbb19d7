"""What did the fine-tune do to the tool calls? From the answers of two views to one result.

Three signals: the change in valid calls, the disagreement of arguments where both views made a
valid call, and the share of the tuned view's valid calls that name a tool they may not."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import assert_never

import msgspec

from callmark.calls.attempts import MalformedCall, ToolCall
from callmark.calls.ledger import read_turn
from callmark.calls.scan import Scanner
from callmark.calls.schema import compile_once, schema_errors
from callmark.errors import UsageError
from callmark.probe.records import (
    CaseOutcome,
    FidelityResult,
    ProbeEvidence,
    ViewAnswer,
    ViewCall,
    exit_code,
)
from callmark.probe.spec import FidelitySpec, SchemaMode, ToolUseCase
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
from callmark.records.jsontext import Json, canonical_json, want_list, want_object
from callmark.run.offers import installed_formats
from callmark.stats.estimates import SAME, SampledValue, interval_95

Check = Callable[[dict[str, Json]], tuple[str, ...]]
Leaves = dict[tuple[str, ...], str]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}


def read_answer(text: str, case: ToolUseCase, mode: SchemaMode) -> ViewAnswer:
    """Every call in the text is tried: in whatever format it is written, or with `minimal` as a
    JSON object with a name and an object of arguments (alone, in a fence, or amid other text)."""
    check = _check_of(case, mode)
    unfit: ViewAnswer | None = None
    for found in _minimal_calls(text) if mode == "minimal" else _calls(text):
        answer = ViewAnswer(False, None, found) if isinstance(found, str) else _fit(found, check)
        if answer.valid:
            return answer
        if unfit is None or (unfit.call is None and answer.call is not None):
            unfit = answer
    return unfit or ViewAnswer(False, None, "there is no call in the text")


def _fit(call: ViewCall, check: Check) -> ViewAnswer:
    errors = check(call.arguments)
    return ViewAnswer(False, call, errors[0]) if errors else ViewAnswer(True, call)


def _calls(text: str) -> Iterator[ViewCall | str]:
    """The calls of every known format; of one that cannot be read, why."""
    for attempt in read_turn(text, offered=None, formats=installed_formats()).attempts:
        match attempt:
            case ToolCall(name=name, arguments=arguments):
                yield ViewCall(name, arguments)
            case MalformedCall(reason=reason):
                yield reason
            case _:
                assert_never(attempt)


def _minimal_calls(text: str) -> Iterator[ViewCall | str]:
    """The outermost JSON objects of what the model said, thoughts left out."""
    scanner = Scanner(read_turn(text, offered=None, formats=()).text)
    position, is_broken = scanner.find("{", 0), False
    while position >= 0:
        element = scanner.value_at(position)
        if element is None:
            if not is_broken:  # once: a long text of braces must not be read for each of them
                yield scanner.reason_at(position, len(scanner.text))
            is_broken, end = True, position + 1
        else:
            end = element.end
            match element.value:
                case {"name": str(name), "arguments": dict(arguments)}:
                    yield ViewCall(name, arguments)
                case {"name": str()}:
                    yield "the call has no object of arguments"
                case _:
                    yield "the JSON object names no tool"
        position = scanner.find("{", end)


def is_invented(name: str, case: ToolUseCase, allowed: tuple[str, ...] | None) -> bool:
    """Whether a call names a tool that it may not: exact, case and all."""
    return name != case.gold_tool_name if allowed is None else name not in allowed


def disagreement(one: ViewCall, other: ViewCall, *, ordered_lists: bool) -> float:
    """The share of leaves in which two sets of arguments differ; one that only one of them has
    differs. Two empty sets agree."""
    left = dict(_leaves(one.arguments, ordered_lists))
    right = dict(_leaves(other.arguments, ordered_lists))
    paths = left.keys() | right.keys()
    if not paths:
        return 0.0
    return sum(1 for path in paths if left.get(path) != right.get(path)) / len(paths)


def _leaves(
    value: Json, ordered: bool, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict) and (value or not path):
        for key, inner in value.items():
            yield from _leaves(inner, ordered, (*path, key))
    else:
        # As text: 2 and 2.0, true and 1 are equal in Python, but not the same argument.
        yield path, canonical_json(value if ordered else _without_order(value))


def _without_order(value: Json) -> Json:
    if isinstance(value, list):
        return sorted((_without_order(entry) for entry in value), key=canonical_json)
    if isinstance(value, dict):
        return {key: _without_order(entry) for key, entry in value.items()}
    return value


def _check_of(case: ToolUseCase, mode: SchemaMode) -> Check:
    if mode == "minimal":
        return lambda arguments: tuple(_minimal_errors(case.parameters, arguments))
    validator = compile_once(case.parameters)
    return lambda arguments: schema_errors(validator, arguments)


def _minimal_errors(parameters: dict[str, Json], arguments: dict[str, Json]) -> Iterator[str]:
    """Required keys and plain type tags; every other rule, and every other key, is let be."""
    for name in want_list(parameters.get("required")):
        if name not in arguments:
            yield f"/: {name} is missing"
    properties = want_object(parameters.get("properties"))
    for name, value in arguments.items():
        schema = properties.get(name)
        tag = schema.get("type") if isinstance(schema, dict) else None
        types = _TYPES.get(tag) if isinstance(tag, str) else None
        if types is not None and not _is_of(value, types):
            yield f"/{name}: is no {tag}"


def _is_of(value: Json, types: tuple[type, ...]) -> bool:
    # To Python true is an integer, to JSON it is not.
    return type(value) is bool if types == (bool,) else type(value) in types


__all__ = ["FidelityResult", "Nulls", "error_result", "exit_code", "fidelity", "valid_rate"]

CEILING = 0.95  # from here on nulls have no room to be better than the base


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
    base_outputs: Sequence[str],
    tuned_outputs: Sequence[str],
    *,
    nulls: Nulls | None = None,
    seed: int = 0,
) -> FidelityResult:
    """The result of one output of each view for each case of the spec."""
    if not spec.cases:
        what = "no tool-use cases (inline 'cases' was empty)"
        return FidelityResult(name=spec.name, verdict="skip", message=what)
    outcomes = tuple(_outcomes(spec, base_outputs, tuned_outputs))
    change = validity_change(
        [outcome.base.valid for outcome in outcomes],
        [outcome.tuned.valid for outcome in outcomes],
        spec.assert_validity_delta_gte,
    )
    return finalise(_judge(spec, outcomes, change, nulls or Nulls(), seed))


def valid_rate(spec: FidelitySpec, outputs: Sequence[str]) -> float:
    """The share of cases that one view answered with a valid call: what nulls are measured by."""
    answers = _pair(spec.cases, outputs, "outputs")
    valid = [read_answer(text, case, spec.schema).valid for case, text in answers]
    return sum(valid) / len(valid)


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
    spec: FidelitySpec, base_outputs: Sequence[str], tuned_outputs: Sequence[str]
) -> Iterable[CaseOutcome]:
    before = _pair(spec.cases, base_outputs, "base_outputs")
    after = _pair(spec.cases, tuned_outputs, "tuned_outputs")
    for (case, base_text), (_, tuned_text) in zip(before, after, strict=True):
        base = read_answer(base_text, case, spec.schema)
        tuned = read_answer(tuned_text, case, spec.schema)
        ours, theirs = _valid_call(tuned), _valid_call(base)
        yield CaseOutcome(
            gold_tool_name=case.gold_tool_name,
            base=base,
            tuned=tuned,
            disagreement=None
            if ours is None or theirs is None
            else disagreement(theirs, ours, ordered_lists=spec.ordered_lists),
            hallucinated=None if ours is None else is_invented(ours.name, case, spec.allowed_tools),
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
    flags = [float(outcome.tuned.valid) for outcome in outcomes]
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
        z_by_rank=z_by_rank(rate, nulls.by_rank),
        # One case leaves nothing to draw from: the seed's interval is the value itself.
        raw_ci_95=(rate, rate) if interval is None else (interval.low, interval.high),
        weight=spec.weight,
        num_valid_base=change.base_valid,
        num_valid_ft=change.tuned_valid,
        num_lost=change.lost,
        num_gained=change.gained,
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
        cases=outcomes,
    )


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
    return f"{counts}; {shown}{bound}"


def _pair(
    cases: Sequence[ToolUseCase], outputs: Sequence[str], name: str
) -> list[tuple[ToolUseCase, str]]:
    if len(cases) != len(outputs):
        raise UsageError(
            f"{name}: holds {len(outputs)} outputs for {len(cases)} cases: give one for each"
        )
    return list(zip(cases, outputs, strict=True))


def _valid_call(answer: ViewAnswer) -> ViewCall | None:
    return answer.call if answer.valid else None


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{share:.0%}"
