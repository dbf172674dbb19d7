"""One model seen in several ways: as it was, as it is after the fine-tune, with random adapters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

import msgspec

from callmark.core.jsontext import Json
from callmark.core.protocols import Conversation
from callmark.probe.spec import FidelitySpec, NullAdapterSpec, ToolUseCase

Tool = dict[str, Json]


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What every view is asked for one case. `name` is for people: an id, or the prompt."""

    name: str
    messages: list[dict[str, Json]]
    tools: list[Tool]
    max_new_tokens: int

    def conversation(self, number: int) -> Conversation:
        return Conversation(
            sample_id=str(number), trial=0, turn=1, messages=self.messages, tools=self.tools
        )


class Probe(msgspec.Struct, frozen=True):
    """One entry of the suite, with what the views are asked for it."""

    spec: FidelitySpec
    questions: tuple[Question, ...]


class NullRun(msgspec.Struct, frozen=True, kw_only=True):
    """One random adapter: which one, of what make, with how much of the trained one's rank."""

    spec: NullAdapterSpec
    seed: int
    number: int
    rank_multiplier: float


class CannotAsk(Exception):
    """The views cannot be compared: the text says why. A result of its own, never a pass."""


class Views(Protocol):
    """`base` and `tuned` answer every question once, greedily, in this order. `why_no_nulls`
    None: `null` answers too."""

    why_no_nulls: str | None

    def check(self, questions: Sequence[Question]) -> None:
        """Raises CannotAsk where the two views are one, or a prompt lacks its tools."""
        ...

    def base(self, questions: Sequence[Question]) -> list[str]: ...

    def tuned(self, questions: Sequence[Question]) -> list[str]: ...

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]: ...

    def facts(self) -> dict[str, Json]:
        """Who was asked, and how; part of the report. No clock."""
        ...

    def identity(self) -> dict[str, Json]:
        """All that an answer depends on beside the question."""
        ...

    def measured(self) -> dict[str, Json]: ...

    def warnings(self) -> tuple[str, ...]: ...


def probe_of(spec: FidelitySpec) -> Probe:
    return Probe(spec, tuple(map(question_of, spec.cases)))


def question_of(case: ToolUseCase) -> Question:
    """A case asks with its own tool and nothing else."""
    name = case.function.get("name")
    function = {**case.function, "name": name if isinstance(name, str) else case.gold_tool_name}
    return Question(
        name=case.prompt,
        messages=[{"role": "user", "content": case.prompt}],
        tools=[{"type": "function", "function": function}],
        max_new_tokens=case.max_new_tokens,
    )


def tools_of(questions: Iterable[Question]) -> tuple[Tool, ...]:
    """Every tool that is offered anywhere, by name; of two of one name the first."""
    found: dict[str, Tool] = {}
    for question in questions:
        for tool in question.tools:
            found.setdefault(tool["function"]["name"], tool)
    return tuple(found[name] for name in sorted(found))
