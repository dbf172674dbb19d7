"""How a view's turns end: does it stop after a call, does it say something once the result is
there, and does the tokenizer that was saved with it still show the tools? Looked at before the
statistics: a model that never ends its turn is broken, however valid its calls are."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.calls.ledger import read_turn
from callmark.probe.records import CaseOutcome, Rendering, TurnCheck, ViewCall, WrittenAnswer
from callmark.probe.views import Question
from callmark.records.jsontext import Json, canonical_json
from callmark.run.offers import installed_formats

MOST_FOLLOW_UPS = 8  # each is one more answer of each view
_CALL_ID = "call00001"
_RESULT = {"ok": True, "result": "done, 3 entries, the newest is of 2 May 2024"}


def check_ends(outcomes: Sequence[CaseOutcome]) -> tuple[TurnCheck, ...]:
    """Over the answers that hold a call; whether a turn was ended is asked of all."""
    called = [one for one in outcomes if one.gold_tool_name is not None]
    known = [one for one in outcomes if one.base.ended is not None and one.tuned.ended is not None]
    found = [
        TurnCheck(
            name="runs_on",
            base=sum(one.base.runs_on for one in called),
            tuned=sum(one.tuned.runs_on for one in called),
            n=len(called),
        ),
        TurnCheck(
            name="repeats",
            base=sum(one.base.repeats > 0 for one in called),
            tuned=sum(one.tuned.repeats > 0 for one in called),
            n=len(called),
        ),
    ]
    if known:
        ends = TurnCheck(
            name="never_ends",
            base=sum(one.base.ended is False for one in known),
            tuned=sum(one.tuned.ended is False for one in known),
            n=len(known),
        )
        found.insert(0, ends)
    return tuple(found)


def follow_ups(
    questions: Sequence[Question], outcomes: Sequence[CaseOutcome], most: int = MOST_FOLLOW_UPS
) -> tuple[list[ViewCall], list[Question]]:
    """The first cases that both views answered rightly, asked again with the call and a result."""
    calls: list[ViewCall] = []
    asked: list[Question] = []
    for question, one in zip(questions, outcomes, strict=True):
        call = one.tuned.call
        if one.standing != "kept" or call is None or one.hallucinated or len(asked) >= most:
            continue
        calls.append(call)
        asked.append(_with_result(question, call))
    return calls, asked


def check_results(
    calls: Sequence[ViewCall],
    base: Sequence[WrittenAnswer],
    tuned: Sequence[WrittenAnswer],
) -> TurnCheck:
    """How many say nothing to the result of a call, or make the same call again."""
    return TurnCheck(
        name="ignores_results",
        base=sum(not _answers(one, call) for one, call in zip(base, calls, strict=True)),
        tuned=sum(not _answers(one, call) for one, call in zip(tuned, calls, strict=True)),
        n=len(calls),
    )


def check_rendering(found: Rendering) -> TurnCheck:
    return TurnCheck(
        name="renders_otherwise", base=0, tuned=found.different, n=found.prompts, note=found.note
    )


def _answers(written: WrittenAnswer, call: ViewCall) -> bool:
    turn = read_turn(written.text, offered=None, formats=installed_formats())
    again = any(
        attempt.name == call.name and getattr(attempt, "arguments", None) == call.arguments
        for attempt in turn.attempts
    )
    return bool(turn.text or turn.attempts) and not again


def _with_result(question: Question, call: ViewCall) -> Question:
    made: dict[str, Json] = {
        "role": "assistant",
        "content": "",
        "tool_calls": [
            {
                "id": _CALL_ID,
                "type": "function",
                "function": {"name": call.name, "arguments": canonical_json(call.arguments)},
            }
        ],
    }
    result: dict[str, Json] = {
        "role": "tool",
        "tool_call_id": _CALL_ID,
        "name": call.name,
        "content": canonical_json(_RESULT),
    }
    return Question(
        name=question.name,
        messages=[*question.messages, made, result],
        tools=question.tools,
        max_new_tokens=question.max_new_tokens,
    )
