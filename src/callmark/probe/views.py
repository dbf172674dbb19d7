"""One model seen in several ways: as it was, as it is after the fine-tune, with random adapters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Protocol

import msgspec

from callmark.calls.registry import name_of_tool
from callmark.errors import Incomplete
from callmark.probe.records import Rendering, WrittenAnswer
from callmark.probe.spec import FidelitySpec, NullAdapterSpec, ToolUseCase
from callmark.records.jsontext import Json, canonical_json
from callmark.records.seams import Conversation, Failure, Reply
from callmark.records.trace import TraceEntry
from callmark.run.loop import driver
from callmark.runners.options import RunnerFactory, RunnerOptions

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

    def rendering(self, questions: Sequence[Question]) -> Rendering | None:
        """Whether the tuned model's own tokenizer renders the prompts as the base's does; None:
        it has none of its own, or it cannot be looked at."""
        ...

    def base(self, questions: Sequence[Question]) -> list[WrittenAnswer]: ...

    def tuned(self, questions: Sequence[Question]) -> list[WrittenAnswer]: ...

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]: ...

    def wearing(self, folder: str) -> AbstractContextManager[None]:
        """Within it, another checkpoint than the one the views were opened with is the tuned
        view."""
        ...

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
    """A case asks with its own tool and those that it names beside it, in the order of their
    names: where the right one stands must say nothing."""
    name = case.function.get("name")
    named = name if isinstance(name, str) else case.gold_tool_name or "tool"
    tools: list[Tool] = [{"type": "function", "function": {**case.function, "name": named}}]
    for other in case.other_tools:
        inner = other.get("function")
        function = inner if isinstance(inner, dict) else other
        tools.append({"type": "function", "function": function})
    return Question(
        name=case.prompt,
        messages=[{"role": "user", "content": case.prompt}],
        tools=sorted(tools, key=name_of_tool),
        max_new_tokens=case.max_new_tokens,
    )


def tools_of(questions: Iterable[Question]) -> tuple[Tool, ...]:
    """Every tool that is offered anywhere, by name; of two of one name the first."""
    found: dict[str, Tool] = {}
    for question in questions:
        for tool in question.tools:
            found.setdefault(name_of_tool(tool), tool)
    return tuple(found[name] for name in sorted(found))


class ServedViews:
    """Two models behind endpoints that speak one protocol."""

    why_no_nulls: str | None = (
        "the models are served: random adapters need a local model (--base FOLDER --adapter FOLDER)"
    )

    def __init__(
        self, base: RunnerOptions, tuned: RunnerOptions, open_runner: RunnerFactory
    ) -> None:
        self._open = open_runner
        self._options = {"base": base, "ft": tuned}
        self._facts: dict[str, Json] = {}
        self._measured: dict[str, Json] = {}
        self._warnings: list[str] = []
        self._texts: dict[str, list[WrittenAnswer]] = {}

    def check(self, questions: Sequence[Question]) -> None:
        """Weights and prompts of a server cannot be looked at: what the answers tell is a
        warning afterwards."""

    def rendering(self, questions: Sequence[Question]) -> Rendering | None:
        return None

    def base(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._asked(questions, "base")

    def tuned(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._asked(questions, "ft")

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]:
        raise RuntimeError(self.why_no_nulls)

    def wearing(self, folder: str) -> AbstractContextManager[None]:
        raise RuntimeError("the models are served: a series needs local checkpoints")

    def facts(self) -> dict[str, Json]:
        return {"views": "two served models", **self._facts}

    def identity(self) -> dict[str, Json]:
        return self._facts

    def measured(self) -> dict[str, Json]:
        return self._measured

    def warnings(self) -> tuple[str, ...]:
        same = self._texts.get("base") and self._texts.get("base") == self._texts.get("ft")
        told = ["both endpoints gave the same text in every case: do they serve the same model?"]
        return tuple(dict.fromkeys([*self._warnings, *(told if same else ())]))

    def _asked(self, questions: Sequence[Question], view: str) -> list[WrittenAnswer]:
        """A request says how long an answer may be, so there is one runner for each length."""
        found: dict[int, WrittenAnswer] = {}
        for limit in sorted({question.max_new_tokens for question in questions}):
            numbers = [n for n, one in enumerate(questions) if one.max_new_tokens == limit]
            replies = self._replies([questions[number] for number in numbers], view, limit)
            for number, reply in zip(numbers, replies, strict=True):
                if isinstance(reply, Failure):
                    name = questions[number].name[:60]
                    raise Incomplete(f"case {name!r}: no answer: {reply.reason}")
                found[number] = written_of(reply)
        made = [found[number] for number in range(len(questions))]
        self._texts.setdefault(view, []).extend(made)
        return made

    def _replies(
        self, questions: Sequence[Question], view: str, limit: int
    ) -> Sequence[Reply | Failure]:
        options = self._options[view]
        decoding = msgspec.structs.replace(options.decoding, max_tokens=limit)
        batch = [question.conversation(number) for number, question in enumerate(questions)]
        with self._open(msgspec.structs.replace(options, decoding=decoding)) as runner:
            with driver(runner) as drive:
                drive(runner.ready())
                replies: Sequence[Reply | Failure] = drive(runner.answer(batch))
            observed = runner.observed()
            self._facts[view] = {
                "model": options.model,
                "model_fingerprint": runner.model_fingerprint(),
                **observed.provenance,
            }
        self._measured[view] = observed.measured
        self._warnings += observed.warnings
        return replies


def written_of(reply: Reply) -> WrittenAnswer:
    """A reply as one text: calls that came apart from it stand behind it, marked as calls."""
    text = "\n".join(filter(None, (reply.text, *map(_call_text, reply.calls or ()))))
    return WrittenAnswer(text, reply.finish == "stop", structured=bool(reply.calls))


def _call_text(call: TraceEntry) -> str:
    """Arguments that are no JSON stay as they were written: the call stays malformed."""
    name = canonical_json(call.name)
    arguments = call.raw or "" if call.arguments is None else canonical_json(call.arguments)
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
