"""Views over one loaded model: adapters are switched, nothing is ever loaded twice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

import msgspec

from callmark.calls.registry import name_of_tool
from callmark.errors import Incomplete, UsageError
from callmark.probe.nulls import NullAdapters
from callmark.probe.records import Rendering, WrittenAnswer
from callmark.probe.views import CannotAsk, ModelAlone, NullRun, Question, written_of
from callmark.records.jsontext import Json
from callmark.records.seams import Failure, Reply
from callmark.run.loop import drive_at_once
from callmark.runners.hf.loading import adapter_folder
from callmark.runners.hf.local import ADAPTER, LIBRARIES, LocalRunner, open_local
from callmark.runners.hf.prompts import CannotRender
from callmark.runners.options import RunnerOptions

CHECKPOINT = "checkpoint"  # one of a series, while it is asked
TOKENIZER_CONFIG = "tokenizer_config.json"
EARLIER = "earlier"  # the adapter of the base view, where it has one


@contextmanager
def open_adapted(options: RunnerOptions, earlier: str | None = None) -> Iterator[AdaptedViews]:
    """One checkpoint, with and without the adapter of the options. `earlier`: an adapter that
    the base view wears."""
    with open_local(options) as runner:
        yield adapted_views(runner, earlier)


def adapted_views(runner: LocalRunner, earlier: str | None = None) -> AdaptedViews:
    """Views over a runner that has an adapter; loads it if that is still to be done."""
    drive_at_once(runner.ready())
    if earlier is not None:
        runner.loaded.add_adapter(EARLIER, adapter_folder(earlier))
    return AdaptedViews(runner, None if earlier is None else EARLIER)


class AdaptedViews:
    """Base, tuned and nulls of one model in memory."""

    def __init__(self, runner: LocalRunner, before: str | None) -> None:
        self._runner = runner
        self._before = before
        self._worn = ADAPTER
        self._nulls = NullAdapters(runner.loaded, ADAPTER)
        self.why_no_nulls = self._nulls.why_not()

    def check(self, questions: Sequence[Question]) -> None:
        prompts = [prompt_of(self._runner, question) for question in questions]
        loaded = self._runner.loaded
        ids = (self._runner.encoded(prompt) for prompt in prompts)
        if questions and not any(loaded.changes(self._worn, one, self._before) for one in ids):
            raise CannotAsk(
                "the adapter is not applied: for every prompt the logits are those of the base"
                " view (are all of its weights zero, or its target modules not in this model?)"
            )

    def rendering(self, questions: Sequence[Question]) -> Rendering | None:
        folder = self._runner.adapter_path
        if folder is None or not (folder / TOKENIZER_CONFIG).is_file():
            return None
        return compare_rendering(self._runner, questions, folder)

    def base(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._written(questions, self._before)

    def tuned(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        return self._written(questions, self._worn)

    def null(self, questions: Sequence[Question], run: NullRun) -> list[str]:
        written = self._written(questions, self._nulls.switched_to(run))
        return [one.text for one in written]

    @contextmanager
    def wearing(self, folder: str) -> Iterator[None]:
        # One place for all: a long training leaves more adapters than a memory holds.
        loaded, given = self._runner.loaded, adapter_folder(folder)
        if not loaded.refill_adapter(CHECKPOINT, given):
            if CHECKPOINT in loaded.peft.peft_config:
                loaded.drop_adapter(CHECKPOINT)
            loaded.add_adapter(CHECKPOINT, given)
        self._worn = CHECKPOINT
        try:
            yield
        finally:
            self._worn = ADAPTER

    def facts(self) -> dict[str, Json]:
        return {"views": "adapters on one loaded model", **facts_of(self._runner)}

    def identity(self) -> dict[str, Json]:
        return {
            "model": self._runner.model_fingerprint(),
            "runner": self._runner.fingerprint_parts(),
            "libraries": {name: version(name) for name in LIBRARIES},
        }

    def measured(self) -> dict[str, Json]:
        return self._runner.observed().measured

    def warnings(self) -> tuple[str, ...]:
        return self._runner.observed().warnings

    def _written(self, questions: Sequence[Question], adapter: str | None) -> list[WrittenAnswer]:
        with self._runner.loaded.adapter(adapter):
            return written_by(self._runner, questions)


class LocalModel:
    """A checkpoint in a folder, with an adapter if the options name one; in memory only while it
    is asked, so that two of them need the room of one."""

    what = "checkpoint"
    why_no_nulls = "no adapter was given: nulls are random adapters of the trained one's shape"

    def __init__(self, options: RunnerOptions) -> None:
        self._options = options
        self._facts: dict[str, Json] = {}
        self._measured: dict[str, Json] = {}
        self._warnings: list[str] = []

    def look(self, questions: Sequence[Question]) -> str | None:
        with open_local(self._options) as runner:
            for question in questions:
                prompt_of(runner, question)
            return f"{runner.model_fingerprint()} {self._options.local.dtype}"

    def rendering(self, questions: Sequence[Question], other: ModelAlone) -> Rendering | None:
        if not isinstance(other, LocalModel):
            return None
        with open_local(self._options) as runner:
            return compare_rendering(runner, questions, Path(other._options.model or ""))

    def of_folder(self, folder: str) -> LocalModel:
        return LocalModel(msgspec.structs.replace(self._options, model=folder))

    def facts(self) -> dict[str, Json]:
        return self._facts

    def measured(self) -> dict[str, Json]:
        return self._measured

    def warnings(self) -> tuple[str, ...]:
        return tuple(self._warnings)

    def written(self, questions: Sequence[Question]) -> list[WrittenAnswer]:
        with open_local(self._options) as runner:
            drive_at_once(runner.ready())
            own = None if self._options.local.adapter is None else ADAPTER
            with runner.loaded.adapter(own):
                written = written_by(runner, questions)
            observed = runner.observed()
            self._facts = facts_of(runner)
        self._measured = observed.measured
        self._warnings += observed.warnings
        return written


def written_by(runner: LocalRunner, questions: Sequence[Question]) -> list[WrittenAnswer]:
    """What the view that is switched on answers; every question with its own bound."""
    batch = [question.conversation(number) for number, question in enumerate(questions)]
    made = runner.texts(batch, [question.max_new_tokens for question in questions])
    return [_or_raise(reply, question) for reply, question in zip(made, questions, strict=True)]


def _or_raise(reply: Reply | Failure, question: Question) -> WrittenAnswer:
    if isinstance(reply, Failure):
        raise Incomplete(f"case {question.name[:60]!r}: no answer: {reply.reason}")
    return written_of(reply)


def compare_rendering(
    runner: LocalRunner, questions: Sequence[Question], folder: Path
) -> Rendering:
    """The prompts of a runner beside those of the tokenizer in another folder: texts and tokens."""
    different, note = 0, f"the tokenizer in {folder}"
    try:
        own = runner.with_tokenizer(folder)
    except UsageError as error:
        return Rendering(prompts=len(questions), different=len(questions), note=f"{note}: {error}")
    for question in questions:
        given = question.conversation(0)
        try:
            text, other = runner.prompt(given), own.prompt(given)
            different += text != other or runner.encoded(text) != own.encoded(other)
        except CannotRender:
            different += 1
    if own.tools_block != runner.tools_block:
        note += (
            f" shows tools by a {own.tools_block} block, the base's by a {runner.tools_block} one"
        )
    return Rendering(prompts=len(questions), different=different, note=note)


def prompt_of(runner: LocalRunner, question: Question) -> str:
    """The prompt as the model reads it, every offered tool in it."""
    where = f"the tools are not in the prompt of case {question.name[:60]!r}"
    try:
        prompt = runner.prompt(question.conversation(0))
    except CannotRender as error:
        raise CannotAsk(f"{where}: {error}") from None
    missing = [name for tool in question.tools if (name := name_of_tool(tool)) not in prompt]
    if missing:
        raise CannotAsk(
            f"{where}: {missing[0]} is missing; does the prompt wrapper use `tools`, and is"
            " --tool-choice auto?"
        )
    return prompt


def facts_of(runner: LocalRunner) -> dict[str, Json]:
    return {
        "model_fingerprint": runner.model_fingerprint(),
        "tokenizer_fingerprint": runner.tokenizer_fingerprint(),
        "runner": runner.fingerprint_parts(),
        **runner.observed().provenance,
    }
