"""One sample as columns of numbers: as its result line gives them, and as the truth has them.

The names are those of the truth. Shares are made of counts here, not taken from the line: whoever
proves a sum has to add up himself."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

import msgspec

from callmark.records.jsontext import want_list, want_object, want_text, want_texts
from callmark.records.results import Result, Scores

Numbers = Mapping[str, int | float | None]
HEAVY = "teacher_heavy"
LONG = "long_context"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """What the dataset says about a sample (`expects` are the tools that it is about), and which
    tools answered in its trial."""

    kind: str
    expects: tuple[str, ...]
    locale: str | None
    is_probe: bool
    slices: tuple[str, ...]
    served_by: tuple[str, ...]

    @property
    def language(self) -> str:
        return (self.locale or "").replace("-", "_").split("_")[0].lower()


class Row(msgspec.Struct, frozen=True):
    sample_id: str
    place: Place
    numbers: Numbers

    def count(self, name: str) -> int:
        value = self.numbers[name]
        if not isinstance(value, int):
            raise TypeError(f"{self.sample_id}: {name} is {value!r}, not a count")
        return value

    def flag(self, name: str) -> int | None:
        return None if self.numbers[name] is None else self.count(name)

    def share(self, name: str) -> Fraction | None:
        """A share that is no more than a quotient of small counts."""
        value = self.numbers[name]
        return None if value is None else Fraction(value).limit_denominator(1000)

    def f1(self, side: str) -> Fraction:
        """From the counts; `side` is lax or strict."""
        spans = self.count("spans")
        precision = Fraction(self.count(f"grounded_{side}"), spans) if spans else Fraction(0)
        recall = Fraction(self.count(f"found_{side}"), self.count("required"))
        total = precision + recall
        return 2 * precision * recall / total if total else Fraction(0)


def measured(line: Result) -> dict[str, int | float | None]:
    """The columns of one result line."""
    scores = _scores_of(line)
    calls, values, lax, strict = scores.calls, scores.values, scores.lax, scores.strict
    return {
        "f1_lax": lax.f1,
        "f1_strict": strict.f1,
        "spans_total": scores.spans_total,
        "over_cap": scores.spans_over_cap,
        "spans": scores.spans_counted,
        "required": scores.facts_required,
        "grounded_lax": lax.grounded,
        "grounded_strict": strict.grounded,
        "found_lax": lax.found,
        "found_strict": strict.found,
        "unsupported": values["unsupported"],
        "values": sum(values[label] for label in ("supported", "derived", "unsupported")),
        "has_span": int(scores.spans_total > 0),
        "has_grounded": int(any(span.lax and span.scored for span in scores.spans)),
        "call_f1": scores.call_f1,
        "looked_up": calls.looked_up,
        "hits": calls.hits,
        "valid_call": int(calls.attempts > 0 and calls.attempts == calls.valid_attempts),
        "args_valid": _flag(scores.json_args_valid),
        "parity": _flag(scores.multi_call_parity_ok),
        "recovered": _flag(scores.recovered),
        "gave_up": int(scores.gave_up_honestly is True),
        "contaminated": scores.controls_with_integration or 0,
        "negative_ok": _flag(scores.negative_control_ok),
        "clarify_ok": _flag(scores.clarify_ok),
        "locale_ok": _flag(scores.locale_probe_ok),
        "privacy_ok": int(scores.privacy_ok),
        "checks_ok": _flag(scores.checks_ok),
        "unresolved": int(scores.unresolved),
        "presence": int(scores.recall_kind == "presence"),
        "marker": int(scores.span_extractor == "marker"),
    }


def place_of(line: Result) -> Place:
    metadata = line.metadata
    is_probe = bool(metadata.get("locale_probe"))
    locale = metadata.get("locale") or (metadata.get("language") if is_probe else None)
    slices = list(want_texts(metadata.get("slices")))
    slices += [name for name in (LONG, HEAVY) if metadata.get(name) and name not in slices]
    served = {want_text(one.name) for one in line.tool_trace if one.status in ("ok", "error")}
    calls = map(want_object, want_list(metadata.get("call_sequence")))
    return Place(
        kind=_scores_of(line).kind,
        expects=tuple(sorted({want_text(call["name"]) for call in calls})),
        locale=None if locale is None else want_text(locale),
        is_probe=is_probe,
        slices=tuple(slices),
        served_by=tuple(sorted(served)),
    )


def _scores_of(line: Result) -> Scores:
    if line.scores is None:
        raise TypeError(f"{line.sample_id}: has no scores: {line.error}")
    return line.scores


def _flag(value: bool | None) -> int | None:
    return None if value is None else int(value)
