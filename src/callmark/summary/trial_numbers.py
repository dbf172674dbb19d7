"""What one trial comes to: the row of numbers that every metric is made of."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import UNSET

from callmark.records.results import Result, Scores
from callmark.records.statements import GOOD, NEUTRAL, Statement

NOT_APPLICABLE = -1
# A dump of the results is no answer: above this share of at least so many leaves, or with so many
# characters of JSON word for word.
MOST_COPIED, FEWEST_LEAVES, MOST_VERBATIM = 0.8, 20, 200
_NOT_CHECKED = frozenset(("user_said", "not_claimed", "unchecked"))
Reduce = Literal["mean", "any", "first"]

# name -> (array type, how the trials of a sample become one number). -1: does not apply.
COLUMNS: dict[str, tuple[str, Reduce]] = {
    "f1_lax": ("d", "mean"),
    "f1_strict": ("d", "mean"),
    "call_f1": ("d", "mean"),
    "spans_total": ("I", "first"),
    "over_cap": ("I", "mean"),
    "spans": ("I", "mean"),
    "required": ("I", "mean"),
    "grounded_lax": ("I", "mean"),
    "grounded_strict": ("I", "mean"),
    "found_lax": ("I", "mean"),
    "found_strict": ("I", "mean"),
    "unsupported": ("I", "mean"),
    "values": ("I", "mean"),
    "looked_up": ("I", "mean"),
    "hits": ("I", "mean"),
    "has_span": ("b", "mean"),
    "has_grounded": ("b", "mean"),
    "valid_call": ("b", "mean"),
    "args_valid": ("b", "mean"),
    "parity": ("b", "mean"),
    "recovered": ("b", "mean"),
    "gave_up": ("b", "any"),
    "contaminated": ("b", "any"),
    "negative_ok": ("b", "mean"),
    "clarify_ok": ("b", "mean"),
    "locale_ok": ("b", "mean"),
    "privacy_ok": ("b", "mean"),
    "checks_ok": ("b", "mean"),
    "answered": ("b", "mean"),
    "flagged": ("b", "mean"),
    "unchecked": ("I", "mean"),
    "judged": ("I", "mean"),
    "copy_ok": ("b", "mean"),
    "copy_ratio": ("d", "mean"),
    "invented": ("I", "mean"),
    "arguments": ("I", "mean"),
    "served": ("b", "any"),
    "unresolved": ("b", "any"),
    "keyed": ("b", "any"),
    "presence": ("b", "first"),
    "marker": ("b", "first"),
    "unchanged": ("b", "mean"),
    "kind": ("b", "first"),
    "place": ("I", "first"),
}


def numbers_of(scores: Scores, *, served: bool) -> tuple[int | float, ...]:
    """The numbers of one trial, in the order of `COLUMNS`."""
    calls, lax, strict = scores.calls, scores.lax, scores.strict
    values = scores.values
    checked = sum(count for label, count in values.items() if label not in _NOT_CHECKED)
    copying, arguments = scores.copying, scores.arguments or ()
    ratio = None if copying is None else copying.ratio
    stated = [one for one in scores.statements if one.label not in NEUTRAL] if served else []
    return (
        lax.f1,
        strict.f1,
        NOT_APPLICABLE if scores.call_f1 is None else scores.call_f1,
        scores.spans_total,
        scores.spans_over_cap,
        scores.spans_counted,
        scores.facts_required,
        lax.grounded,
        strict.grounded,
        lax.found,
        strict.found,
        values.get("unsupported", 0),
        checked,
        calls.looked_up,
        calls.hits,
        scores.spans_total > 0,
        any(span.lax and span.scored for span in scores.spans),
        calls.attempts > 0 and scores.json_args_valid is True,
        _flag(scores.json_args_valid),
        _flag(scores.multi_call_parity_ok),
        _flag(scores.recovered),
        scores.gave_up_honestly is True,
        bool(scores.controls_with_integration),
        _flag(scores.negative_control_ok),
        _flag(scores.clarify_ok),
        _flag(scores.locale_probe_ok),
        scores.privacy_ok,
        _flag(scores.checks_ok),
        _flag(scores.answered),
        _flag(is_flagged(stated)),
        sum(one.label == "unchecked" for one in stated),
        len(stated),
        _flag(is_no_copy(scores)),
        NOT_APPLICABLE if ratio is None else ratio,
        sum(one.origin == "invented" for one in arguments),
        len(arguments),
        served,
        scores.unresolved,
        scores.strict_keys,
        scores.recall_kind == "presence",
        scores.span_extractor == "marker",
        NOT_APPLICABLE if scores.changes is UNSET else not scores.changes,
    )


def is_integrating(scores: Scores) -> bool:
    """Whether the answer is judged by its integration. "Your order is cancelled" is a right answer
    without a value: under `claims` only required facts say that there should be one."""
    return scores.span_extractor == "marker" or scores.recall_kind == "facts"


def has_served(result: Result) -> bool:
    """Whether a tool gave the model anything, in the trial or in its prompt."""
    if any(entry.served for entry in result.tool_trace):
        return True
    prompt = result.prompt
    return not isinstance(prompt, str) and any(one.get("role") == "tool" for one in prompt)


def is_flagged(statements: Iterable[Statement]) -> bool | None:
    """Whether one of them has a firm flag; None: none is checked. A good label or a firm flag
    makes a statement checked: what only an advisory rule flags counts neither for nor against."""
    checked = [one.is_firm for one in statements if one.is_firm or one.label in GOOD]
    return any(checked) if checked else None


def is_no_copy(scores: Scores) -> bool | None:
    """Whether the answer selects; None: too little was served to tell, or nobody says which facts
    are needed."""
    copying = scores.copying
    if copying is None or copying.ratio is None or scores.recall_kind != "facts":
        return None
    if scores.changes is not UNSET:
        return None  # the facts are those that somebody stated, needed or not
    if copying.leaves < FEWEST_LEAVES:
        return None
    return copying.ratio <= MOST_COPIED and copying.verbatim < MOST_VERBATIM


def _flag(value: bool | None) -> int:
    return NOT_APPLICABLE if value is None else int(value)
