"""What an import could not map: counted by kind, listed with its place, never silently lost."""

from __future__ import annotations

from typing import Literal, get_args

import msgspec

Kind = Literal[
    "accepted_answer_breaks_schema",
    "assertion",
    "bad_tool",
    "call_of_unknown_tool",
    "call_without_result",
    "duplicate",
    "failed_trial",
    "malformed_call",
    "metadata_kept_apart",
    "multi_turn_question",
    "no_accepted_answer",
    "no_prompt",
    "not_text",
    "other_prompt_in_trial",
    "other_result_in_trial",
    "result_too_deep",
    "result_without_call",
    "said_at_the_end",
    "script_cut",
    "too_many_alternatives",
    "tool_renamed",
    "tool_without_schema",
    "unknown_type",
    "user_call",
]
MEANING: dict[Kind, str] = {
    "accepted_answer_breaks_schema": "the accepted call does not pass its own tool's schema",
    "assertion": "an assertion on the environment or for a judge: not checked here",
    "bad_tool": "the tool's spec cannot be used as it is: any arguments pass, or it is left out",
    "call_of_unknown_tool": "the call names a tool that was not offered: no fixture",
    "call_without_result": "nothing answered the call: no fixture",
    "duplicate": "the same conversation again: left out",
    "failed_trial": "the trial failed there: an answer with status error",
    "malformed_call": "the call cannot be read: it stays in the answers, no fixture",
    "metadata_kept_apart": "the metadata do not fit ours: kept below imported_from",
    "multi_turn_question": "several turns with calls as program text: left out",
    "no_accepted_answer": "no accepted answer is given: a sample that expects nothing",
    "no_prompt": "nothing is asked: left out",
    "not_text": "content that is not text: kept in the answers, not in the script",
    "other_prompt_in_trial": "a further trial was asked something else: the first prompt stays",
    "other_result_in_trial": "a further trial got another result for a call: the first one stays",
    "result_too_deep": "the result is nested deeper than a fixture may be: no fixture",
    "result_without_call": "a tool message that answers no structured call: no fixture",
    "said_at_the_end": "said after the model's last turn: kept in the answers only",
    "script_cut": "the user spoke out of turn: user_turns ends before that",
    "too_many_alternatives": "more combinations of accepted values than are kept",
    "tool_renamed": "another tool of this name was there already: it got a name of its own",
    "tool_without_schema": "the source has no spec of this tool: any arguments pass",
    "unknown_type": "a type that is not JSON Schema's: any value passes",
    "user_call": "a call that the simulated user made: left out",
}
MAX_LISTED = 10_000  # of one kind; all of them are counted
_SHOWN = 200


class SourcePlace(msgspec.Struct, frozen=True):
    """`line` of the source; of an archive or a table the number of the sample."""

    line: int
    detail: str


class Unmapped(msgspec.Struct, frozen=True):
    """One kind of thing, how often, and where (the first ten thousand)."""

    kind: str
    meaning: str
    count: int
    places: tuple[SourcePlace, ...]


class Notes:
    """Collects while the source is read."""

    def __init__(self) -> None:
        self._counts: dict[Kind, int] = {}
        self._places: dict[Kind, list[SourcePlace]] = {}

    def add(self, kind: Kind, line: int, detail: str = "") -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        places = self._places.setdefault(kind, [])
        if len(places) < MAX_LISTED:
            text = " ".join(detail.split())
            places.append(
                SourcePlace(line, text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
            )

    def unmapped(self) -> tuple[Unmapped, ...]:
        return tuple(
            Unmapped(kind, MEANING[kind], self._counts[kind], tuple(self._places[kind]))
            for kind in get_args(Kind)
            if kind in self._counts
        )
