"""Why a trial failed, in sentences: one for each verdict that went against it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec import UNSET

from callmark.records.jsontext import canonical_json
from callmark.records.report import GateRule
from callmark.records.results import Result, Scores
from callmark.records.samples import explain_check
from callmark.summary.failing import PASSING_F1
from callmark.summary.gates import is_below, is_satisfied
from callmark.summary.metrics import CHECKS, FLAGGED, INVENTED, UNCHANGED, label_words
from callmark.summary.trials import has_served, is_integrating, is_no_copy

_SHOWN = 3  # of the details of one verdict


def why_failed(
    result: Result, warnings: Collection[str] = (), rules: Mapping[str, GateRule] | None = None
) -> tuple[str, ...]:
    """One sentence for each verdict that went against the trial; none: it did not fail.
    `warnings`: the gates that only warn; what falls short of one of them has not failed. `rules`:
    the gates in force; a plug-in's measure is right or wrong only where one of them is about it."""
    scores = result.scores
    if scores is None or result.status == "error":
        return (f"not scored: {result.error or 'no reason is given'}",)
    echo_denied = result.scoring.privacy_echo == "deny"
    return tuple(
        _sentence(verdict)
        for verdict in (
            *_verdicts(scores, echo_denied=echo_denied),
            *(_flag_verdicts(scores) if has_served(result) else ()),
            *_number_verdicts(scores, missing_facts(result)),
            *_measure_verdicts(scores, rules or {}),
        )
        if verdict.ok is False and verdict.gate not in warnings
    )


class _Verdict(NamedTuple):
    """The gate that it counts for, what it says when it is False, and what more is known then."""

    gate: str
    ok: bool | None
    what: str
    details: Sequence[str] = ()


def _sentence(verdict: _Verdict) -> str:
    details = verdict.details
    cut = " …" if len(details) > _SHOWN else ""
    return f"{verdict.what}: {'; '.join(details[:_SHOWN])}{cut}" if details else verdict.what


def missing_facts(result: Result) -> tuple[str, ...]:
    """The required facts that the answer does not state, as the dataset writes them. A line that
    somebody edited, or an older scorer wrote, may name none."""
    scores, facts = result.scores, result.metadata.get("required_facts")
    if scores is None or scores.missing_facts is UNSET or not isinstance(facts, list):
        return ()
    places = (at for at in scores.missing_facts if at < len(facts))
    return tuple(canonical_json(facts[at]) for at in places)


def missing_text(missing: Sequence[str]) -> str:
    """`; missing: "gate B12", 45`, or nothing."""
    cut = ", …" if len(missing) > _SHOWN else ""
    return f"; missing: {', '.join(missing[:_SHOWN])}{cut}" if missing else ""


def _number_verdicts(scores: Scores, missing: Sequence[str]) -> Iterator[_Verdict]:
    """What a number decides: the calls (where no stricter verdict names them), then the F1."""
    if scores.call_f1 is not None and scores.multi_call_parity_ok is not False:
        right = not is_below(scores.call_f1, PASSING_F1)
        said = f"call F1 {scores.call_f1:.3f}"
        yield _Verdict("call_f1_macro", right, said, _other_calls(scores))
    lax = scores.lax
    if scores.kind == "eligible" and is_integrating(scores):
        unsupported = scores.values.get("unsupported", 0)
        told = missing_text(missing)
        sign = ";" if told else ","
        values = "1 value" if unsupported == 1 else f"{unsupported} values"
        said = f"{sign} {values} that no result supports" if unsupported else ""
        yield _Verdict(
            "integration_f1_macro_lax",
            not is_below(lax.f1, PASSING_F1),
            f"F1 {lax.f1:.3f}: {lax.grounded} of {scores.spans_counted} spans grounded,"
            f" {lax.found} of {scores.facts_required} facts found{told}{said}",
        )


def _flag_verdicts(scores: Scores) -> Iterator[_Verdict]:
    """Each firm flag in its own words, the first of them."""
    firm = [f"{label_words(one.label)}: {one.because}" for one in scores.statements if one.is_firm]
    for number, because in enumerate(firm[:_SHOWN], start=1):
        cut = " …" if number == _SHOWN < len(firm) else ""
        yield _Verdict(FLAGGED, False, f"{because}{cut}")


def _measure_verdicts(scores: Scores, rules: Mapping[str, GateRule]) -> Iterator[_Verdict]:
    invented = [one for one in scores.arguments or () if one.origin == "invented"]
    if INVENTED in rules and invented:
        places = [f"call {one.call} {one.path}" for one in invented]
        yield _Verdict(INVENTED, False, "arguments that nobody said and no result served", places)
    for name, value in scores.added.items():
        rule = rules.get(name)
        if rule is not None and value is not None:
            said = f"{name} is {show_measure(value)}"
            yield _Verdict(name, is_satisfied(rule, value), said)


def show_measure(value: bool | float | None) -> str:
    """As a person reads it."""
    match value:
        case None:
            return "not judged"
        case bool():
            return "yes" if value else "no"
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.3f}"


def _verdicts(scores: Scores, *, echo_denied: bool) -> Iterator[_Verdict]:
    calls, breaches = scores.calls, _breaches(scores, echo_denied=echo_denied)
    clean = not scores.controls_with_integration
    for verdict in (
        ("json_args_valid_rate", scores.json_args_valid, "invalid arguments", calls.errors),
        (
            "multi_call_parity_rate",
            scores.multi_call_parity_ok,
            "not the expected calls",
            _other_calls(scores),
        ),
        ("error_recovery_rate", scores.recovered, "did not recover from an error"),
        (
            "negative_control_ok_rate",
            scores.negative_control_ok,
            "stated something that no tool had found",
        ),
        ("clarify_ok_rate", scores.clarify_ok, "did not ask back"),
        ("locale_probe_ok_rate", scores.locale_probe_ok, "a number or date read in another locale"),
        ("privacy_ok_rate", scores.privacy_ok, "privacy", breaches),
        ("controls_with_integration", clean, "a control with a call or an integration"),
        ("fixture_hit_rate", not scores.unresolved, "a call without a fixture"),
        ("answered_rate", scores.answered, "no answer after the last result"),
        ("copy_ratio_ok_rate", is_no_copy(scores), "the results are repeated", _copied(scores)),
    ):
        yield _Verdict(*verdict)
    if scores.changes is not UNSET:
        yield _Verdict(UNCHANGED, not scores.changes, "changed", scores.changes)
    for check in scores.checks:
        yield _Verdict(CHECKS, check.ok, f"check {explain_check(check)}")


def _copied(scores: Scores) -> tuple[str, ...]:
    copying = scores.copying
    if copying is None:
        return ()
    stated = f"{copying.stated} of {copying.leaves} leaves"
    return (f"{stated}, {copying.verbatim} characters of JSON word for word",)


def _other_calls(scores: Scores) -> tuple[str, ...]:
    differences = scores.calls.differences
    listed = {
        "missing": differences.missing,
        "extra": differences.extra,
        "differs": differences.differing,
    }
    found = [f"{word} {call}" for word, calls in listed.items() for call in calls]
    return (*found, "in another order") if differences.reordered else tuple(found)


def _breaches(scores: Scores, *, echo_denied: bool) -> tuple[str, ...]:
    """Without what was found: personal data do not belong in one more file."""
    kinds = {
        f"{finding.kind} in {finding.where}"
        for finding in scores.privacy.findings
        if finding.severity in ("high", "medium") and (echo_denied or not finding.echoed)
    }
    return (*sorted(kinds), *(f"invented URL {url}" for url in scores.privacy.invented_urls))
