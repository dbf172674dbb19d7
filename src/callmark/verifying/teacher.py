"""What the teacher said, called and was told, as one recorded turn: the shape in which a single
shot of any model is replayed."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.calls.attempts import entry_for
from callmark.calls.ledger import read_turn
from callmark.calls.matching import expected_call, match_calls, observed_call
from callmark.calls.registry import Registry
from callmark.core.jsontext import Json
from callmark.core.protocols import Failure, Reply
from callmark.core.samples import ExpectedCall, Sample
from callmark.core.trace import TraceEntry, answered
from callmark.running.formats import installed_formats

NO_TEXT = "there is no teacher_text"


def teacher_reply(
    sample: Sample, offered: frozenset[str], *, has_fixtures: bool
) -> Reply | Failure:
    """The calls of `call_sequence`, or those that the text holds. Without fixtures they are
    answered by `tool_result_fields`: the k-th entry of a list answers the k-th call, an object
    answers every call. Failure: what cannot be verified, and why."""
    text = sample.teacher_text
    if text is None:
        return Failure(NO_TEXT)
    recorded = None if has_fixtures else sample.metadata.get("tool_result_fields")
    expected, formats = sample.expectation.calls, installed_formats()
    if recorded is None and any(call.arguments is None for call in expected):
        if not read_turn(text, offered=offered, formats=formats).attempts:
            return Failure("call_sequence: a call has no arguments, and teacher_text makes none")
        expected = ()
    count = len(expected)
    if recorded is not None and not expected:
        count = len(read_turn(text, offered=offered, formats=formats).attempts)
    answers = _answers(recorded, count)
    if isinstance(answers, Failure):
        return answers
    calls = tuple(_call(call, answers[at : at + 1]) for at, call in enumerate(expected))
    return Reply(
        text=text,
        calls=calls or None,
        answers=() if calls else tuple(answers),
        ends=True,
        ordered=False,
    )


def calls_disagree(sample: Sample, offered: frozenset[str], registry: Registry) -> bool:
    """Whether the text makes calls, but not those that the item says the teacher made."""
    text, schema_of = sample.teacher_text or "", registry.parameters
    attempts = read_turn(
        text, offered=offered, formats=installed_formats(), schema_of=schema_of
    ).attempts
    if not attempts or not sample.expectation.calls:
        return False
    expected = [expected_call(call, registry) for call in sample.expectation.calls]
    known = offered | {call.name for call in expected}
    written = [observed_call(entry_for(attempt, None), registry, known) for attempt in attempts]
    return not len(match_calls(expected, written)) == len(expected) == len(written)


def _answers(recorded: Json, calls: int) -> Sequence[Json] | Failure:
    """Recorded results in the order of the calls; calls beyond them find no answer."""
    if not isinstance(recorded, list):
        return () if recorded is None else [recorded] * calls
    if len(recorded) > calls:
        return Failure(f"tool_result_fields: {len(recorded)} results for {calls} calls")
    return recorded


def _call(call: ExpectedCall, answer: Sequence[Json]) -> TraceEntry:
    # Where any arguments are right, there is nothing that the schema could be held against.
    unknown = call.arguments is None
    entry = TraceEntry(
        name=call.name,
        arguments={} if unknown else call.arguments,
        result=None,
        turn=None,
        raw=None,
        status="unanswered",
        served_by=None,
        schema_errors=() if unknown else None,
    )
    return answered(entry, answer[0]) if answer else entry
