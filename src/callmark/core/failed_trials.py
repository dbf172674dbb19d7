"""Why a person wants to look at a trial: what it was asked for and did not do."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from callmark.core.gate_rules import is_below
from callmark.core.repeats import PASSING_F1
from callmark.core.results import Result
from callmark.core.scores import Scores

_SHOWN = 3  # of the details of one verdict


def why_failed(result: Result, warnings: Collection[str] = ()) -> tuple[str, ...]:
    """One sentence for each verdict that went against the trial; none: it did not fail.
    `warnings`: the gates that only warn; what falls short of one of them has not failed."""
    scores = result.scores
    if scores is None or result.status == "error":
        return (f"not scored: {result.error or 'no reason is given'}",)
    echo_denied = result.scoring.privacy_echo == "deny"
    return tuple(
        _sentence(verdict)
        for verdict in (*_verdicts(scores, echo_denied=echo_denied), *_scored(scores))
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


def _scored(scores: Scores) -> Iterator[_Verdict]:
    """What a number decides: the calls (where no stricter verdict names them), then the F1."""
    if scores.call_f1 is not None and scores.multi_call_parity_ok is not False:
        right = not is_below(scores.call_f1, PASSING_F1)
        said = f"call F1 {scores.call_f1:.3f}"
        yield _Verdict("call_f1_macro", right, said, _other_calls(scores))
    lax = scores.lax
    if scores.kind == "eligible":
        unsupported = scores.values.get("unsupported", 0)
        said = f", {unsupported} values that no result supports" if unsupported else ""
        yield _Verdict(
            "integration_f1_macro_lax",
            not is_below(lax.f1, PASSING_F1),
            f"F1 {lax.f1:.3f}: {lax.grounded} of {scores.spans_counted} spans grounded,"
            f" {lax.found} of {scores.facts_required} facts found{said}",
        )


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
    ):
        yield _Verdict(*verdict)


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
