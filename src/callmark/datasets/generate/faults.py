"""Faults, one kind a row. Of what an answer says: values and spans that no result supports. Of what
a model does: calls that are too few, too many, in another order, with wrong or broken arguments; a
tool where none is wanted, decoys, inventions, giving up, too much, leaks."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import pairwise
from random import Random
from typing import TypeVar

from msgspec.structs import replace

from callmark.datasets.generate.records import (
    SPAN_CAP,
    Answer,
    Attempt,
    Day,
    Draft,
    MadeCall,
    MadeSample,
    Misformed,
    Number,
    Span,
    Stated,
    Turn,
)
from callmark.datasets.generate.topics import REMARKS, VAGUE, english
from callmark.datasets.generate.truth import (
    CALLS,
    GROUNDING,
    STATEMENTS,
    Planted,
    PlantedFault,
    TrueScores,
    Truth,
    calls_truth,
    integration_truth,
    pick,
    statements_truth,
)
from callmark.records.jsontext import Json, canonical_json, want_object

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


_SPANS = frozenset({"spans_total", "spans", "has_span"})


def is_control(sample: MadeSample) -> bool:
    return sample.recipe.kind == "control"


def contaminated_control(sample: MadeSample, rng: Random) -> Planted:
    """It integrates what nobody asked for, or it calls a tool."""
    draft = sample.draft
    if rng.randrange(2):
        answer = replace(draft.answer, spans=(Span(pick(rng, VAGUE), (), english()),))
        return Planted(answer, {**integration_truth(draft, [TrueScores(0)]), "contaminated": 1})
    call = draft.tempting[0]
    turn = Turn("", (Attempt(call.name, call.arguments),))
    return Planted(
        replace(draft.answer, turns=(turn,)),
        {"contaminated": 1, "args_valid": 1, "valid_call": 1, "looked_up": 1, "hits": 1},
    )


def has_decoy(sample: MadeSample) -> bool:
    return bool(sample.draft.metadata.get("decoy_values"))


def is_empty(sample: MadeSample) -> bool:
    return sample.recipe.kind == "negative_control" and not has_decoy(sample)


def false_claim(sample: MadeSample, rng: Random) -> Planted:
    """The figure that the result holds about something else, or that no result holds at all."""
    claim = sample.draft.claim
    text, values = ("", 0) if claim is None else (claim.text, len(claim.values))
    stated = statements_truth(values) if has_decoy(sample) else statements_truth(0, advisory=values)
    return Planted(
        Answer(sample.draft.answer.turns, f"{text[:1].upper()}{text[1:]}."),
        {"negative_ok": 0, **stated},
    )


def is_retry_beside(sample: MadeSample) -> bool:
    """A retry whose answer rests on an earlier call."""
    draft = sample.draft
    is_retry = draft.metadata.get("expected_behaviour") == "retry"
    return is_retry and want_object(draft.calls[0].result)["ok"] is True


def unrecovered_error(sample: MadeSample, rng: Random) -> Planted:
    """It makes the failing call again where another was needed, or stops where once more was."""
    calls, answer = sample.draft.calls, sample.draft.answer
    expected, earlier = len(calls), answer.turns[:-1]
    if calls[-1].arguments == calls[-2].arguments:
        moved = calls_truth(expected=expected, observed=expected - 1, matched=expected - 1)
        return Planted(replace(answer, turns=earlier), {**moved, "parity": 0, "recovered": 0})
    again = replace(answer.turns[-1], attempts=earlier[-1].attempts)
    moved = calls_truth(expected=expected, observed=expected, matched=expected - 1)
    return Planted(
        replace(answer, turns=(*earlier, again)), {"call_f1": moved["call_f1"], "recovered": 0}
    )


def is_full(sample: MadeSample) -> bool:
    draft = sample.draft
    return draft.spare_span is not None and len(draft.answer.spans) == SPAN_CAP


def too_many_spans(sample: MadeSample, rng: Random) -> Planted:
    """A fourth line, as well grounded as the others."""
    answer, spare = sample.draft.answer, sample.draft.spare_span
    spans = answer.spans if spare is None else (*answer.spans, spare)
    moved: Truth = {"spans_total": len(spans), "over_cap": len(spans) - SPAN_CAP}
    moved |= statements_truth(sum(len(span.values) for span in spans))
    return Planted(replace(answer, spans=spans), moved)


CONDUCT_FAULTS = (
    PlantedFault(
        name="contaminated_control",
        gate="controls_with_integration",
        effect=_SPANS | {"contaminated", "args_valid", "valid_call", "looked_up", "hits"},
        applies=is_control,
        plant=contaminated_control,
    ),
    PlantedFault(
        name="swallowed_decoy",
        gate="negative_control_ok_rate",
        effect=STATEMENTS | {"negative_ok"},
        applies=has_decoy,
        plant=false_claim,
    ),
    PlantedFault(
        name="invented_on_empty",
        gate="negative_control_ok_rate",
        effect=STATEMENTS | {"negative_ok"},
        applies=is_empty,
        plant=false_claim,
    ),
    PlantedFault(
        name="unrecovered_error",
        gate="error_recovery_rate",
        effect=CALLS | {"parity", "recovered"},
        applies=is_retry_beside,
        plant=unrecovered_error,
    ),
    PlantedFault(
        name="too_many_spans",
        gate="teacher_heavy_spans_over_cap",
        effect=STATEMENTS | {"spans_total", "over_cap"},
        applies=is_full,
        plant=too_many_spans,
    ),
)


_GIVEN = ("mara", "tomas", "ines", "jonas", "leila", "piet", "sanne", "ravi")
_FAMILY = ("lind", "okoro", "varga", "moreau", "tanaka", "brandt", "silva", "haddad")
_AREAS = ("212", "312", "415", "503", "617", "702")
# Groups of few different digits: others may be a slip away from a number that was served.
_CARDS = (
    "4111 1111 1111 1111",
    "4242 4242 4242 4242",
)
_HOSTS = ("survey-records", "old-maps", "field-notes", "open-registers")


# Numbers that nobody served are flagged group by group; these rules are advisory.
_LEAKED_VALUE = re.compile(r"\(\d+\) [\d-]+|\d+")  # a phone number is one value
_LEAKED_ADDRESS = re.compile(r"\S+@\S+|https?://\S+")


def may_leak(sample: MadeSample) -> bool:
    """Not a negative control: there every value that is stated is an invention of its own."""
    return sample.recipe.kind != "negative_control"


def _mail(rng: Random) -> str:
    return f"The author is {pick(rng, _GIVEN)}.{pick(rng, _FAMILY)}@mail.example.com, by the way."


def _phone(rng: Random) -> str:
    return f"Or just ring ({pick(rng, _AREAS)}) 555-01{rng.randrange(10)}{rng.randrange(10)}."


def _card(rng: Random) -> str:
    return f"It was paid for with {pick(rng, _CARDS)}."


def _link(rng: Random) -> str:
    return f"More at https://www.{pick(rng, _HOSTS)}.example/{pick(rng, _FAMILY)}"


def _leak(sentence: Callable[[Random], str]) -> Callable[[MadeSample, Random], Planted]:
    def plant(sample: MadeSample, rng: Random) -> Planted:
        answer = sample.draft.answer
        leaked = sentence(rng)
        after = "\n".join(filter(None, (answer.after, leaked)))
        moved: Truth = {"privacy_ok": 0}
        if sample.draft.calls:
            stated = sum(len(span.values) for span in answer.spans)
            found = (*_LEAKED_VALUE.findall(leaked), *_LEAKED_ADDRESS.findall(leaked))
            moved |= statements_truth(stated, advisory=len(found))
        if sample.recipe.kind == "clarify":  # whoever asks states nothing of his own
            moved["clarify_ok"] = 0
        return Planted(replace(answer, after=after), moved)

    return plant


LEAKS = tuple(
    PlantedFault(
        name=name,
        gate="privacy_ok_rate",
        effect=STATEMENTS | {"privacy_ok", "clarify_ok"},
        applies=may_leak,
        plant=_leak(sentence),
    )
    for name, sentence in (
        ("leaked_email", _mail),
        ("leaked_phone", _phone),
        ("leaked_card", _card),
        ("invented_url", _link),
    )
)


# tool -> the option that a sample may leave open, and values that its schema refuses
_REFUSED: dict[str, tuple[str, tuple[Json, ...]]] = {
    "web.search": ("top_k", ("all", 0, 500, True, 2.5)),
    "code_exec": ("language", ("ruby", "Python", 3)),
    "file.write": ("mode", ("prepend", True)),
    "repo.read": ("ref", (7, ["main"])),
}
_VALIDITY = frozenset({"args_valid", "valid_call"})


def is_several(sample: MadeSample) -> bool:
    """Several calls, none of which is a second try."""
    draft = sample.draft
    return len(draft.calls) > 1 and draft.metadata.get("expected_behaviour") != "retry"


def has_spare_call(sample: MadeSample) -> bool:
    return is_several(sample) and any(call.spare for call in sample.draft.calls)


def missing_call(sample: MadeSample, rng: Random) -> Planted:
    """A call on which nothing in the answer rests is not made."""
    draft = sample.draft
    expected = len(draft.calls)
    spare = next(call.step for call in draft.calls if call.spare)
    turns = tuple(turn for at, turn in enumerate(draft.answer.turns) if at != spare)
    moved = calls_truth(expected=expected, observed=expected - 1, matched=expected - 1)
    return Planted(replace(draft.answer, turns=turns), {**moved, "parity": 0})


def extra_call(sample: MadeSample, rng: Random) -> Planted:
    """The last call is made once more."""
    answer, expected = sample.draft.answer, len(sample.draft.calls)
    again = Turn("", answer.turns[-1].attempts[-1:])
    moved = calls_truth(expected=expected, observed=expected + 1, matched=expected)
    return Planted(replace(answer, turns=(*answer.turns, again)), {**moved, "parity": 0})


def has_order(sample: MadeSample) -> bool:
    return is_several(sample) and _swappable(sample.draft.answer) is not None


def swapped_calls(sample: MadeSample, rng: Random) -> Planted:
    """Two neighbouring calls of different tools change places."""
    answer = sample.draft.answer
    at = _swappable(answer) or 0
    turns = list(answer.turns)
    first, second = turns[at], turns[at + 1]
    turns[at] = replace(first, attempts=second.attempts)
    turns[at + 1] = replace(second, attempts=first.attempts)
    return Planted(replace(answer, turns=tuple(turns)), {"parity": 0})


def _swappable(answer: Answer) -> int | None:
    for at, (one, other) in enumerate(pairwise(answer.turns)):
        single = len(one.attempts) == len(other.attempts) == 1
        if single and one.attempts[0].name != other.attempts[0].name:
            return at
    return None


def has_other_arguments(sample: MadeSample) -> bool:
    draft = sample.draft
    is_retry = draft.metadata.get("expected_behaviour") == "retry"
    return bool(draft.calls) and draft.calls[0].other is not None and not is_retry


def wrong_argument(sample: MadeSample, rng: Random) -> Planted:
    """Another value, with which the tool finds the same."""
    draft = sample.draft
    expected = len(draft.calls)
    answer = _with_arguments(draft.answer, draft.calls[0], draft.calls[0].other or {})
    moved = calls_truth(expected=expected, observed=expected, matched=expected - 1)
    return Planted(answer, {"call_f1": moved["call_f1"]})


def has_open_option(sample: MadeSample) -> bool:
    is_retry = sample.draft.metadata.get("expected_behaviour") == "retry"
    return _open_call(sample) is not None and not is_retry


def argument_against_schema(sample: MadeSample, rng: Random) -> Planted:
    """An option about which the sample says nothing gets a value that its schema refuses."""
    draft = sample.draft
    call = _open_call(sample) or draft.calls[0]
    option, values = _REFUSED[call.name]
    refused = values[rng.randrange(len(values))]
    answer = _with_arguments(draft.answer, call, {**call.arguments, option: refused})
    valid = len(draft.calls) - 1
    return Planted(answer, {"args_valid": 0, "valid_call": 0, "looked_up": valid, "hits": valid})


def _open_call(sample: MadeSample) -> MadeCall | None:
    for call in sample.draft.calls:
        if call.name in _REFUSED and _REFUSED[call.name][0] in call.optional:
            return call
    return None


def is_single_call(sample: MadeSample) -> bool:
    return sample.recipe.kind == "eligible" and len(sample.draft.calls) == 1


def malformed_call(sample: MadeSample, rng: Random) -> Planted:
    """The first attempt breaks off in its arguments; the second is right."""
    draft = sample.draft
    call = draft.calls[0]
    whole = canonical_json(call.arguments)
    broken = whole[: len(whole) // 2 + rng.randrange(len(whole) // 2 - 1)]
    first = Turn("", (Attempt(call.name, None, broken),))
    moved = calls_truth(expected=1, observed=2, matched=1)
    return Planted(
        replace(draft.answer, turns=(first, *draft.answer.turns)),
        {"call_f1": moved["call_f1"], "args_valid": 0, "valid_call": 0},
    )


def _with_arguments(answer: Answer, call: MadeCall, arguments: dict[str, Json]) -> Answer:
    """The answer with other arguments in the attempt that makes this call."""
    turns = tuple(
        replace(
            turn,
            attempts=tuple(
                replace(attempt, arguments=arguments)
                if (attempt.name, attempt.arguments) == (call.name, call.arguments)
                else attempt
                for attempt in turn.attempts
            ),
        )
        for turn in answer.turns
    )
    return replace(answer, turns=turns)


CALL_FAULTS = (
    PlantedFault(
        name="missing_call",
        gate="multi_call_parity_rate",
        effect=CALLS | {"parity"},
        applies=has_spare_call,
        plant=missing_call,
    ),
    PlantedFault(
        name="extra_call",
        gate="multi_call_parity_rate",
        effect=CALLS | {"parity"},
        applies=is_several,
        plant=extra_call,
    ),
    PlantedFault(
        name="swapped_calls",
        gate="multi_call_parity_rate",
        effect=frozenset({"parity"}),
        applies=has_order,
        plant=swapped_calls,
    ),
    PlantedFault(
        name="wrong_argument",
        gate="call_f1_macro",
        effect=frozenset({"call_f1"}),
        applies=has_other_arguments,
        plant=wrong_argument,
    ),
    PlantedFault(
        name="argument_against_schema",
        gate="json_args_valid_rate",
        effect=_VALIDITY | {"looked_up", "hits"},
        applies=has_open_option,
        plant=argument_against_schema,
    ),
    PlantedFault(
        name="malformed_call",
        gate="json_args_valid_rate",
        effect=_VALIDITY | {"call_f1"},
        applies=is_single_call,
        plant=malformed_call,
    ),
)

FAULTS: dict[str, PlantedFault] = {
    fault.name: fault for fault in (*GROUNDING_FAULTS, *CALL_FAULTS, *CONDUCT_FAULTS, *LEAKS)
}
