"""Why a person wants to look at a trial: what it was asked for and did not do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.core.gate_rules import is_below
from callmark.core.repeats import PASSING_F1
from callmark.core.results import Result
from callmark.core.scores import Scores

_SHOWN = 3  # of the details of one verdict


def why_failed(result: Result) -> tuple[str, ...]:
    """One sentence for each verdict that went against the trial; none: it did not fail."""
    scores = result.scores
    if scores is None or result.status == "error":
        return (f"not scored: {result.error or 'no reason is given'}",)
    return tuple(_reasons(scores, echo_denied=result.scoring.privacy_echo == "deny"))


def _reasons(scores: Scores, *, echo_denied: bool) -> Iterator[str]:
    for verdict, what, details in _verdicts(scores, echo_denied=echo_denied):
        if verdict is False:
            cut = " …" if len(details) > _SHOWN else ""
            yield f"{what}: {'; '.join(details[:_SHOWN])}{cut}" if details else what
    lax = scores.lax
    if scores.kind == "eligible" and is_below(lax.f1, PASSING_F1):
        unsupported = scores.values.get("unsupported", 0)
        said = f", {unsupported} values that no result supports" if unsupported else ""
        yield (
            f"F1 {lax.f1:.3f}: {lax.grounded} of {scores.spans_counted} spans grounded,"
            f" {lax.found} of {scores.facts_required} facts found{said}"
        )


def _verdicts(
    scores: Scores, *, echo_denied: bool
) -> Iterator[tuple[bool | None, str, Sequence[str]]]:
    """The verdict, what it says when it is False, and what more is known then."""
    yield scores.json_args_valid, "invalid arguments", scores.calls.errors
    yield scores.multi_call_parity_ok, "not the expected calls", _other_calls(scores)
    yield scores.recovered, "did not recover from an error", ()
    yield scores.negative_control_ok, "stated something that no tool had found", ()
    yield scores.clarify_ok, "did not ask back", ()
    yield scores.locale_probe_ok, "a number or date read in another locale", ()
    yield scores.privacy_ok, "privacy", _breaches(scores, echo_denied=echo_denied)
    yield not scores.controls_with_integration, "a control with a call or an integration", ()
    yield not scores.unresolved, "a call without a fixture", ()


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
