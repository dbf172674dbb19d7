"""Faults in what the answer states: nothing, something else, in the wrong form, too early."""

from __future__ import annotations

import re
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from callmark.datasets.generate.languages import english
from callmark.datasets.generate.records import (
    Answer,
    Day,
    Draft,
    MadeSample,
    Misformed,
    Number,
    Span,
    Stated,
)
from callmark.datasets.generate.topics import REMARKS, VAGUE
from callmark.datasets.generate.truth import (
    GROUNDING,
    STATEMENTS,
    Planted,
    PlantedFault,
    TrueScores,
    Truth,
    integration_truth,
    pick,
    statements_truth,
)
from callmark.records.jsontext import canonical_json

# argument -> how an answer repeats it
_ECHOES = {
    "q": 'I searched for "{0}"',
    "path": "I read the file `{0}`",
    "file_id": "I read the upload `{0}`",
    "url": "I opened {0}",
}
_NUMBER = re.compile(r"\d+(?:\.\d{1,3})?")
_SCALE = 1000  # no number of a sample has more than three decimals
_LARGEST_FACTOR = 20
_Kind = TypeVar("_Kind", Number, Day)


def is_probe(sample: MadeSample) -> bool:
    return bool(sample.draft.metadata.get("locale_probe"))


def has_one_span(sample: MadeSample) -> bool:
    """And is no probe, which needs a number whatever else it says."""
    spans = sample.draft.answer.spans
    return sample.recipe.kind == "eligible" and len(spans) == 1 and not is_probe(sample)


def ungrounded_span(sample: MadeSample, rng: Random) -> Planted:
    return _with_one_span(sample, pick(rng, VAGUE))


def has_echo(sample: MadeSample) -> bool:
    return has_one_span(sample) and bool(_echo_of(sample.draft))


def echoed_argument(sample: MadeSample, rng: Random) -> Planted:
    """An address is the user's; what is quoted, no rule can check."""
    echo = _echo_of(sample.draft)
    planted = _with_one_span(sample, echo)
    quoted = int(echo.endswith(('"', "`")))
    return Planted(planted.answer, {**planted.moved, **statements_truth(0, unchecked=quoted)})


def has_number(sample: MadeSample) -> bool:
    return sample.recipe.kind == "eligible" and _span_with(sample.draft, Number) is not None


def altered_number(sample: MadeSample, rng: Random) -> Planted:
    """One digit is another one, and no result, sum or product of results explains it."""
    number = _first(sample.draft, Number)
    known = _known_numbers(sample.draft)
    digits = str(number.units)
    while True:
        place = 1 + rng.randrange(len(digits) - 1)
        other = (int(digits[place]) + 1 + rng.randrange(9)) % 10
        altered = Number(int(f"{digits[:place]}{other}{digits[place + 1 :]}"), number.decimals)
        if not _is_explained(_scaled(altered.plain), known):
            return _with_value(sample, number, altered)


def has_date(sample: MadeSample) -> bool:
    return sample.recipe.kind == "eligible" and _span_with(sample.draft, Day) is not None


def altered_date(sample: MadeSample, rng: Random) -> Planted:
    """The same day of another month."""
    day = _first(sample.draft, Day)
    other = (day.month + rng.randrange(11)) % 12 + 1
    return _with_value(sample, day, Day(day.year, other, day.day), is_firm=False)


def is_number_probe(sample: MadeSample) -> bool:
    return is_probe(sample) and has_number(sample)


def wrong_locale_form(sample: MadeSample, rng: Random) -> Planted:
    number = _first(sample.draft, Number)
    planted = _with_value(sample, number, Misformed(number), is_firm=False)
    return Planted(planted.answer, {**planted.moved, "locale_ok": 0})


def has_one_step(sample: MadeSample) -> bool:
    answer = sample.draft.answer
    eligible = sample.recipe.kind == "eligible" and not is_probe(sample)
    return eligible and len(answer.turns) == 1 and bool(answer.spans)


def result_not_yet_seen(sample: MadeSample, rng: Random) -> Planted:
    """The answer is written beside the call, before any result can be read: no statement of the
    results, but values that nothing supports."""
    draft = sample.draft
    answer = draft.answer
    early = Answer((), "", answer.spans).final
    judged = [TrueScores(0, len(span.values)) for span in answer.spans]
    return Planted(
        Answer((replace(answer.turns[0], text=early),), pick(rng, REMARKS)),
        {**integration_truth(draft, judged, draft.facts), **statements_truth(0)},
    )


def _echo_of(draft: Draft) -> str:
    for name, value in draft.calls[0].arguments.items():
        if name in _ECHOES:
            return _ECHOES[name].format(value)
    return ""


def _with_one_span(sample: MadeSample, text: str) -> Planted:
    """The only span says this instead, which nothing supports and which states no new value."""
    draft = sample.draft
    answer = replace(draft.answer, spans=(Span(text, (), english()),))
    return Planted(answer, integration_truth(draft, [TrueScores(0)], draft.facts))


def _span_with(draft: Draft, kind: type[Stated]) -> int | None:
    for at, span in enumerate(draft.answer.spans):
        if any(isinstance(value, kind) for value in span.values):
            return at
    return None


def _first(draft: Draft, kind: type[_Kind]) -> _Kind:
    return next(
        value for span in draft.answer.spans for value in span.values if isinstance(value, kind)
    )


def _with_value(
    sample: MadeSample, value: Number | Day, instead: Stated, *, is_firm: bool = True
) -> Planted:
    """One value is stated otherwise. The others of its span still ground it. `is_firm`: the rule
    that flags it counts."""
    draft = sample.draft
    spans, judged = [], []
    for span in draft.answer.spans:
        wrong = value in span.values
        stated = tuple(instead if each == value else each for each in span.values)
        spans.append(replace(span, values=stated))
        judged.append(TrueScores(len(stated) - wrong, int(wrong)))
    truth: Truth = integration_truth(draft, judged, (value,))
    if not is_firm:
        supported, wrong = (sum(column) for column in zip(*judged, strict=True))
        truth |= statements_truth(supported, advisory=wrong)
    return Planted(replace(draft.answer, spans=tuple(spans)), truth)


def _known_numbers(draft: Draft) -> set[int]:
    """Every number that the model was shown or wrote into a call, in thousandths."""
    shown = canonical_json([draft.prompt, [[call.arguments, call.result] for call in draft.calls]])
    return {_scaled(text) for text in _NUMBER.findall(shown)}


def _scaled(text: str) -> int:
    whole, _, fraction = text.partition(".")
    return int(whole) * _SCALE + int(fraction.ljust(3, "0") or 0)


def _is_explained(number: int, known: set[int]) -> bool:
    if number in known:
        return True
    small = [factor for factor in range(2, _LARGEST_FACTOR + 1) if factor * _SCALE in known]
    return any(
        number - other in known
        or other - number in known
        or other + number in known
        or any(other * factor == number for factor in small)
        for other in known
    )


GROUNDING_FAULTS = (
    PlantedFault(
        name="ungrounded_span",
        gate="integration_f1_macro_lax",
        effect=GROUNDING | STATEMENTS,
        applies=has_one_span,
        plant=ungrounded_span,
    ),
    PlantedFault(
        name="altered_number",
        gate="unsupported_value_rate",
        effect=GROUNDING | STATEMENTS | {"unsupported"},
        applies=has_number,
        plant=altered_number,
    ),
    PlantedFault(
        name="altered_date",
        gate="unsupported_value_rate",
        effect=GROUNDING | STATEMENTS | {"unsupported"},
        applies=has_date,
        plant=altered_date,
    ),
    PlantedFault(
        name="wrong_locale_form",
        gate="locale_probe_ok_rate",
        effect=GROUNDING | STATEMENTS | {"unsupported", "locale_ok"},
        applies=is_number_probe,
        plant=wrong_locale_form,
    ),
    PlantedFault(
        name="echoed_argument",
        gate="grounded_coverage",
        effect=GROUNDING | STATEMENTS,
        applies=has_echo,
        plant=echoed_argument,
    ),
    PlantedFault(
        name="result_not_yet_seen",
        gate="grounded_coverage",
        effect=GROUNDING | STATEMENTS | {"unsupported"},
        applies=has_one_step,
        plant=result_not_yet_seen,
    ),
)
