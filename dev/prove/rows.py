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
_UNCHECKED = frozenset(("user_said", "not_claimed", "unchecked"))
_SUPPORTED = frozenset(("supported", "rounded", "converted", "calculated", "derived"))
_FEWEST_LEAVES, _LARGEST_COPY, _LONGEST_COPY = 20, Fraction(4, 5), 200
_FEWEST_DIFFERENT = _FEWEST_UNASKED = 10
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
    """`recounted`: what the truth does not speak of, taken from the line and only added up."""

    sample_id: str
    place: Place
    numbers: Numbers
    recounted: Numbers

    def _number(self, name: str) -> int | float | None:
        return self.numbers[name] if name in self.numbers else self.recounted[name]

    def count(self, name: str) -> int:
        value = self._number(name)
        if not isinstance(value, int):
            raise TypeError(f"{self.sample_id}: {name} is {value!r}, not a count")
        return value

    def flag(self, name: str) -> int | None:
        return None if self._number(name) is None else self.count(name)

    @property
    def integrates(self) -> bool:
        """Read with `claims`, only facts that are required say that there is something to tell."""
        return self.place.kind == "eligible" and bool(
            self.count("marker") or not self.count("presence")
        )

    @property
    def copy_ratio(self) -> Fraction | None:
        leaves = self.count("leaves")
        return Fraction(self.count("leaves_stated"), leaves) if leaves else None

    @property
    def is_no_copy(self) -> bool | None:
        leaves, asked = self.count("leaves"), self.count("found_lax")
        fewest = _FEWEST_DIFFERENT if self.count("leaves_served") else _FEWEST_LEAVES
        if self.count("presence") or leaves < fewest:
            return None
        unasked = self.count("leaves_stated") - asked
        is_most = unasked > _LARGEST_COPY * (leaves - asked) and unasked >= _FEWEST_UNASKED
        return not is_most and self.count("verbatim") < _LONGEST_COPY

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
        "values": sum(count for label, count in values.items() if label not in _UNCHECKED),
        "has_span": int(scores.spans_total > 0),
        "has_grounded": int(any(span.lax and span.scored for span in scores.spans)),
        **_measured_statements(line, scores),
        "answered": _flag(scores.answered),
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


def _measured_statements(line: Result, scores: Scores) -> dict[str, int | None]:
    """None of them counts where no tool gave anything."""
    served = any(one.status in ("ok", "error") for one in line.tool_trace)
    stated = [one for one in scores.statements if served]
    firm = sum(one.tier == "firm" for one in stated)
    good = sum(one.label in _SUPPORTED for one in stated)
    return {
        "flagged": int(firm > 0) if firm + good else None,
        "unchecked": sum(one.label == "unchecked" for one in stated),
        "judged": sum(one.label not in ("user_said", "not_claimed") for one in stated),
    }


def recounted(line: Result) -> dict[str, int]:
    """What the truth of a generated sample does not speak of."""
    scores = _scores_of(line)
    copying, arguments = scores.copying, scores.arguments or ()
    return {
        "leaves": 0 if copying is None else copying.leaves,
        "leaves_served": (copying and copying.served) or 0,
        "leaves_stated": 0 if copying is None else copying.stated,
        "verbatim": 0 if copying is None else copying.verbatim,
        "arguments": len(arguments),
        "invented": sum(one.origin == "invented" for one in arguments),
    }


def row_of(line: Result) -> Row:
    return Row(line.sample_id, place_of(line), measured(line), recounted(line))


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
