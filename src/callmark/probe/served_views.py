"""Views over served models: an endpoint for each, asked as any run asks it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callmark.core.jsontext import Json, canonical_json
from callmark.core.protocols import Failure, Reply
from callmark.core.trace import TraceEntry
from callmark.errors import Incomplete
from callmark.probe.views import NullRun, Question
from callmark.runners.openai_http import open_openai
from callmark.runners.options import RunnerOptions
from callmark.running.driving import driver


class ServedViews:
    """Two models behind OpenAI-compatible endpoints."""

    why_no_nulls: str | None = (
        "the models are served: random adapters need a local model (--base FOLDER --adapter FOLDER)"
    )

    def __init__(self, base: RunnerOptions, tuned: RunnerOptions) -> None:
        self._options = {"base": base, "ft": tuned}
        self._facts: dict[str, Json] = {}
        self._measured: dict[str, Json] = {}
        self._warnings: list[str] = []
        self._texts: dict[str, list[str]] = {}

    def check(self, questions: Sequence[Question]) -> None:
        """Weights and prompts of a server cannot be looked at: what the answers tell is a
        warning afterwards."""

    def base(self, questions: Sequence[Question]) -> list[str]:
        return self._asked(questions, "base")

    def tuned(self, questions: Sequence[Question]) -> list[str]:
        texts = self._asked(questions, "ft")
        if texts and texts == self._texts["base"]:
            self._warnings.append(
                "both endpoints gave the same text in every case: do they serve the same model?"
            )
        return texts

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]:
        raise RuntimeError(self.why_no_nulls)

    def facts(self) -> dict[str, Json]:
        return {"views": "two served models", **self._facts}

    def identity(self) -> dict[str, Json]:
        return self._facts

    def measured(self) -> dict[str, Json]:
        return self._measured

    def warnings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self._warnings))

    def _asked(self, questions: Sequence[Question], view: str) -> list[str]:
        """A request says how long an answer may be, so there is one runner for each length."""
        found: dict[int, str] = {}
        for limit in sorted({question.max_new_tokens for question in questions}):
            numbers = [n for n, one in enumerate(questions) if one.max_new_tokens == limit]
            replies = self._replies([questions[number] for number in numbers], view, limit)
            for number, reply in zip(numbers, replies, strict=True):
                if isinstance(reply, Failure):
                    name = questions[number].name[:60]
                    raise Incomplete(f"case {name!r}: no answer: {reply.reason}")
                found[number] = text_of(reply)
        self._texts[view] = [found[number] for number in range(len(questions))]
        return self._texts[view]

    def _replies(
        self, questions: Sequence[Question], view: str, limit: int
    ) -> Sequence[Reply | Failure]:
        options = self._options[view]
        decoding = msgspec.structs.replace(options.decoding, max_tokens=limit)
        batch = [question.conversation(number) for number, question in enumerate(questions)]
        with open_openai(msgspec.structs.replace(options, decoding=decoding)) as runner:
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


def text_of(reply: Reply) -> str:
    """A reply as one text: calls that came apart from it stand behind it, marked as calls."""
    return "\n".join(filter(None, (reply.text, *map(_call_text, reply.calls or ()))))


def _call_text(call: TraceEntry) -> str:
    """Arguments that are no JSON stay as they were written: the call stays malformed."""
    name = canonical_json(call.name)
    arguments = call.raw or "" if call.arguments is None else canonical_json(call.arguments)
    return f'<tool_call>\n{{"name": {name}, "arguments": {arguments}}}\n</tool_call>'
