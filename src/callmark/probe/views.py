"""One model seen in several ways: as it was, as it is after the fine-tune, with random adapters."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
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


class ModelAlone(Protocol):
    """One model that is asked by itself: a checkpoint, or one behind an endpoint."""

    # What it is, for people; why no random adapter can be put beside it.
    what: str
    why_no_nulls: str

    def look(self, questions: Sequence[Question]) -> str | None:
        """What tells it from other models, where that can be seen before it is asked; raises
        CannotAsk where a prompt lacks its tools."""
        ...

    def rendering(self, questions: Sequence[Question], other: ModelAlone) -> Rendering | None:
        """Whether the tokenizer of another model renders the prompts as this one's does."""
        ...

    def written(self, questions: Sequence[Question]) -> list[WrittenAnswer]: ...

    def of_folder(self, folder: str) -> ModelAlone:
        """The same way of asking, of another checkpoint."""
        ...

    def facts(self) -> dict[str, Json]: ...

    def measured(self) -> dict[str, Json]: ...

    def warnings(self) -> tuple[str, ...]: ...


class TwoModels:
    """Two models, each asked in its own way: full fine-tunes, merged adapters, served ones, or one
    model that is computed here and served there."""

    def __init__(self, base: ModelAlone, tuned: ModelAlone) -> None:
        self._models = {"base": base, "ft": tuned}
        self._texts: dict[str, list[WrittenAnswer]] = {}
        served = [one for one in (base, tuned) if one.what == SERVED]
        self.why_no_nulls: str | None = (served or [tuned])[0].why_no_nulls

    def check(self, questions: Sequence[Question]) -> None:
        prints = [model.look(questions) for model in self._models.values()]
        if prints[0] is not None and prints[0] == prints[1]:
            raise CannotAsk("both views are the same model: their files are equal, byte for byte")

    def rendering(self, questions: Sequence[Question]) -> Rendering | None:
        return self._models["base"].rendering(questions, self._models["ft"])

    def base(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._written(questions, "base")

    def tuned(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._written(questions, "ft")

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]:
        raise RuntimeError(self.why_no_nulls)

    @contextmanager
    def wearing(self, folder: str) -> Iterator[None]:
        last = self._models["ft"]
        self._models["ft"] = last.of_folder(folder)
        try:
            yield
        finally:
            self._models["ft"] = last

    def facts(self) -> dict[str, Json]:
        kinds = [model.what for model in self._models.values()]
        what = f"two {kinds[0]}s" if kinds[0] == kinds[1] else f"a {kinds[0]} and a {kinds[1]}"
        return {"views": what, **{view: model.facts() for view, model in self._models.items()}}

    def identity(self) -> dict[str, Json]:
        return {view: model.facts() for view, model in self._models.items()}

    def measured(self) -> dict[str, Json]:
        return {view: model.measured() for view, model in self._models.items()}

    def warnings(self) -> tuple[str, ...]:
        same = self._texts.get("base") and self._texts.get("base") == self._texts.get("ft")
        both = all(model.what == SERVED for model in self._models.values())
        told = ["both endpoints gave the same text in every case: do they serve the same model?"]
        own = [text for model in self._models.values() for text in model.warnings()]
        return tuple(dict.fromkeys([*own, *(told if same and both else ())]))

    def _written(self, questions: Sequence[Question], view: str) -> list[WrittenAnswer]:
        made = self._models[view].written(questions)
        self._texts.setdefault(view, []).extend(made)
        return made


SERVED = "served model"


class ServedModel:
    """A model behind an endpoint, whatever protocol it speaks."""

    what = SERVED
    why_no_nulls = (
        "the models are served: random adapters need a local model (--base FOLDER --adapter FOLDER)"
    )

    def __init__(self, options: RunnerOptions, open_runner: RunnerFactory) -> None:
        self._options = options
        self._open = open_runner
        self._facts: dict[str, Json] = {}
        self._measured: dict[str, Json] = {}
        self._warnings: list[str] = []

    def look(self, questions: Sequence[Question]) -> str | None:
        """Weights and prompts of a server cannot be looked at: what the answers tell is a
        warning afterwards."""
        return None

    def rendering(self, questions: Sequence[Question], other: ModelAlone) -> Rendering | None:
        return None

    def of_folder(self, folder: str) -> ModelAlone:
        raise RuntimeError("the models are served: a series needs local checkpoints")

    def facts(self) -> dict[str, Json]:
        return self._facts

    def measured(self) -> dict[str, Json]:
        return self._measured

    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def written(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        """A request says how long an answer may be, so there is one runner for each length."""
        found: dict[int, WrittenAnswer] = {}
        for limit in sorted({question.max_new_tokens for question in questions}):
            numbers = [n for n, one in enumerate(questions) if one.max_new_tokens == limit]
            replies = self._replies([questions[number] for number in numbers], limit)
            for number, reply in zip(numbers, replies, strict=True):
                if isinstance(reply, Failure):
                    name = questions[number].name[:60]
                    raise Incomplete(f"case {name!r}: no answer: {reply.reason}")
                found[number] = written_of(reply)
        return [found[number] for number in range(len(questions))]

    def _replies(self, questions: Sequence[Question], limit: int) -> Sequence[Reply | Failure]:
        options = self._options
        decoding = msgspec.structs.replace(options.decoding, max_tokens=limit)
        batch = [question.conversation(number) for number, question in enumerate(questions)]
        with self._open(msgspec.structs.replace(options, decoding=decoding)) as runner:
            with driver(runner) as drive:
                drive(runner.ready())
                replies: Sequence[Reply | Failure] = drive(runner.answer(batch))
            observed = runner.observed()
            self._facts = {
                "model": options.model,
                "model_fingerprint": runner.model_fingerprint(),
                **observed.provenance,
            }
        self._measured = observed.measured
        self._warnings += observed.warnings
        return replies


def written_of(reply: Reply) -> WrittenAnswer:
    """A reply as one text: calls that came apart from it follow it, marked as calls."""
    text = "\n".join(filter(None, (reply.text, *map(_call_text, reply.calls or ()))))
    return WrittenAnswer(text, reply.finish == "stop", structured=bool(reply.calls))


def _call_text(call: TraceEntry) -> str:
    """Arguments that are no JSON stay as they were written: the call stays malformed."""
    name = canonical_json(call.name)
    arguments = call.raw or "" if call.arguments is None else canonical_json(call.arguments)
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
