"""The dataset's own gates beside those on its answers: one report, one verdict."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callmark.core.gates import JudgeContext, gates_ok_of, judge
from callmark.core.report import GateOutcome, GateRule, Report, Status, Verdict
from callmark.verifying.composition import Composition

TEACHER_TEXTS = "dataset_teacher_texts"
# What judging by the numbers alone gives, where the truth is that something was not checked:
# items without a text to look at, and spans that no tokenizer was held against.
_NOT_CHECKED: dict[str, Status] = {TEACHER_TEXTS: "fail", "dataset_spans": "pass"}
_SETTLED: frozenset[Status] = frozenset({"pass", "n/a"})


def with_dataset_gates(
    report: Report, composition: Composition, rules: Sequence[GateRule]
) -> Report:
    """The report on the answers, and what the dataset's own gates add to it."""
    measures = composition.measures()
    context = JudgeContext(min_eligible=report.header.min_eligible_for_gates)
    outcomes = tuple(
        _explained(outcome, composition) for outcome in judge(rules, measures, context)
    )
    verdict, reason = combined_verdict(report.verdict, report.verdict_reason, outcomes)
    loosened = [f"gate {rule.name} is LOOSENED by {rule.source}" for rule in rules if rule.loosened]
    gates = {**report.header.gates, **{rule.name: rule for rule in rules}}
    metrics = {name: measure.metric for name, measure in measures.items()}
    return msgspec.structs.replace(
        report,
        header=msgspec.structs.replace(report.header, gates=gates),
        verdict=verdict,
        verdict_reason=reason,
        gates_ok=gates_ok_of(verdict),
        metrics={**report.metrics, **metrics},
        gates=(*report.gates, *outcomes),
        failing=dict(sorted({**report.failing, **composition.failing()}.items())),
        warnings=(*report.warnings, *composition.warnings(), *loosened),
    )


def combined_verdict(
    verdict: Verdict, reason: str, outcomes: Sequence[GateOutcome]
) -> tuple[Verdict, str]:
    """A dataset fails if its answers do or one of its own gates does. Items that could not be
    verified keep it from passing."""
    binding = [outcome for outcome in outcomes if outcome.policy != "warning_only"]
    failed = [outcome.name for outcome in binding if outcome.status == "fail"]
    passed = [outcome.name for outcome in binding if outcome.status == "pass"]
    unverified = [
        outcome.reason or outcome.name
        for outcome in binding
        if outcome.name == TEACHER_TEXTS and outcome.status == "inconclusive"
    ]
    if verdict in ("incomplete", "empty"):
        return verdict, reason
    if failed:
        before = reason if verdict == "fail" else "failed:"
        return "fail", f"{before}{',' if verdict == 'fail' else ''} {', '.join(failed)}"
    if verdict != "pass":
        return verdict, reason
    if unverified:
        return "inconclusive", unverified[0]
    return "pass", ", ".join([reason, *passed])


def _explained(outcome: GateOutcome, composition: Composition) -> GateOutcome:
    status = outcome.status
    if _NOT_CHECKED.get(outcome.name) == status:
        status = "inconclusive"
    if status in _SETTLED:
        return outcome
    why = composition.reasons()[outcome.name]()
    return msgspec.structs.replace(outcome, status=status, reason=why)
