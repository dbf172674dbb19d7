"""The runner for local models: a checkpoint folder, an adapter if one is named, no server."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from callmark.errors import UsageError
from callmark.records.jsontext import Json, parse_json, sha256_hex, want_object
from callmark.records.seams import Conversation, Failure, Observed, Reply, Runner, Usage
from callmark.runners.hf.generate import (
    Batching,
    GeneratedTokens,
    Generator,
    Prompt,
    Replies,
    TokenChoice,
)
from callmark.runners.hf.loading import (
    AdapterFolder,
    LoadedModel,
    ModelFolder,
    adapter_folder,
    device_of,
    end_tokens,
    file_sha256,
    fingerprint,
    load_model,
    load_tokenizer,
    load_tokenizer_of,
    model_folder,
    quiet_libraries,
    require_extra,
    steady_computing,
)
from callmark.runners.hf.prompts import CannotRender, ChatPrompts, RawPrompts, open_prompts
from callmark.runners.options import RunnerOptions

AT_ONCE = 64  # conversations that are handed over together, however large a batch is
ADAPTER = "adapter"
# Where nothing else bounds an answer: neither the user nor the model.
LONGEST_ANSWER = 4_096
LIBRARIES = ("torch", "transformers", "tokenizers", "safetensors", "peft")
_WORDS = re.compile(r"[a-z0-9]+")
_SAMPLE = "Which tool answers this? Call it once, then say in one sentence what it returned."


@contextmanager
def open_local(options: RunnerOptions) -> Iterator[LocalRunner]:
    require_extra()
    decoding = options.decoding
    if decoding.tool_choice not in (None, "auto", "none"):
        raise UsageError(
            f"--tool-choice: {decoding.tool_choice!r} cannot be forced upon a local model;"
            " there is: auto, none"
        )
    folder = model_folder(options.model)
    adapter = None if options.local.adapter is None else adapter_folder(options.local.adapter)
    steady = steady_computing(decoding.seed or 0, determinism_mode=options.determinism_mode)
    with quiet_libraries(), steady:
        yield LocalRunner(options, folder, adapter)


class _Asked(NamedTuple):
    """A prompt as text and as the generator takes it."""

    text: str
    prompt: Prompt


class _Written(NamedTuple):
    """A prompt and what the model wrote after it."""

    prompt: str
    generated: GeneratedTokens
    prompt_tokens: int


class LocalRunner(Runner):
    """Answers all conversations of a turn in batches. The weights are loaded by `ready`."""

    name = "hf_local"
    suspends = False
    max_batch = AT_ONCE

    def __init__(
        self, options: RunnerOptions, folder: ModelFolder, adapter: AdapterFolder | None
    ) -> None:
        self._options = options
        self._folder = folder
        self._adapter = adapter
        self._device = device_of(options.local.device)
        self._tokenizer = load_tokenizer(folder)
        self._prompts = open_prompts(
            self._tokenizer,
            self._offered(options.tools),
            raw=options.raw_prompt,
            where=str(folder.path),
        )
        self._end_ids = end_ids_of(self._tokenizer, self._prompts, end_tokens(folder.path))
        # Without a chat template nothing leads the model to the format that it declares.
        declared = getattr(self._tokenizer, "response_template", None)
        self._replies = Replies(
            self._tokenizer, self._end_ids, declared=None if options.raw_prompt else declared
        )
        self._warnings = list(self._replies.warnings)
        if self._prompts.tools_block == "fallback":
            self._warnings.append(
                f"the chat template of {folder.path} does not render tools: a system block in the"
                " prompt carries them"
            )
        if end := missing_end(self._tokenizer, self._prompts, self._end_ids):
            self._warnings.append(f"{folder.path}: {end}: only --max-tokens ends an answer")
        self._engine: tuple[LoadedModel, Generator] | None = None
        self._prompt_tokens = self._completion_tokens = 0
        self._seconds = 0.0

    @property
    def loaded(self) -> LoadedModel:
        """The model in memory, on which further adapters can be put and switched."""
        return self._ready_engine()[0]

    async def ready(self) -> None:
        """Load the weights, put the adapter on them, and try out which batches they bear. What is
        loaded stays: a second call does nothing."""
        if self._engine is not None:
            return
        local = self._options.local
        loaded = load_model(self._folder, dtype=local.dtype, device=self._device)
        sample = self.encoded(_SAMPLE)
        if max(sample) >= loaded.vocabulary:
            raise UsageError(
                f"--model: {self._folder.path}: its tokenizer has token {max(sample)}, its weights"
                f" know {loaded.vocabulary} tokens: they do not belong together"
            )
        if self._end_ids and min(self._end_ids) >= loaded.vocabulary:
            self._warnings.append(
                f"{self._folder.path}: its weights know {loaded.vocabulary} tokens, none of them an"
                f" end token ({', '.join(map(str, sorted(self._end_ids)))}): only --max-tokens ends"
                " an answer"
            )
        if not loaded.logits(sample).isfinite().all():
            raise UsageError(
                f"--model: {self._folder.path}: computes no numbers with --dtype {local.dtype};"
                " try float32"
            )
        if self._adapter is not None:
            self._put_on(loaded, self._adapter, sample)
        batching: Batching | None = "equal" if self._options.determinism_mode else None
        self._engine = loaded, Generator(loaded.model, self._choice(), sample, batching)

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        with self.loaded.adapter(None if self._adapter is None else ADAPTER):
            started = time.perf_counter()
            made = self._written(batch)
            # None of them comes before all are there.
            seconds = time.perf_counter() - started
        return [
            msgspec.structs.replace(
                self._replies.reply(one.prompt, one.generated, self._offered(conversation.tools)),
                usage=Usage(one.prompt_tokens, len(one.generated.ids)),
                seconds=seconds,
            )
            if isinstance(one, _Written)
            else one
            for one, conversation in zip(made, batch, strict=True)
        ]

    def without_adapter(self) -> LocalRunner:
        """A runner for the base model alone, on the same weights in memory."""
        base = copy(self)
        base._adapter = None
        return base

    @property
    def adapter_path(self) -> Path | None:
        return None if self._adapter is None else self._adapter.path

    @property
    def tools_block(self) -> str:
        return self._prompts.tools_block

    def with_tokenizer(self, folder: Path) -> LocalRunner:
        """A runner that renders with the tokenizer of another folder; raises UsageError."""
        other = copy(self)
        other._tokenizer = load_tokenizer_of(folder)
        tools = self._offered(self._options.tools)
        raw = self._options.raw_prompt
        other._prompts = open_prompts(other._tokenizer, tools, raw=raw, where=str(folder))
        return other

    def prompt(self, conversation: Conversation) -> str:
        """What the model is given, up to where it speaks; raises CannotRender."""
        return self._prompts.text(conversation.messages, self._offered(conversation.tools))

    def encoded(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer(text, add_special_tokens=False)["input_ids"]
        return ids

    def texts(
        self, batch: Sequence[Conversation], limits: Sequence[int] | None = None
    ) -> list[Reply | Failure]:
        """What the model writes, calls and all in the text, by the adapter that is switched on.
        `limits`: how many tokens each answer may have; None: as many as the run allows."""
        return [
            Reply(
                text=self._replies.text(one.generated),
                finish="stop" if one.generated.ended else "length",
            )
            if isinstance(one, _Written)
            else one
            for one in self._written(batch, limits)
        ]

    def model_fingerprint(self) -> str | None:
        folder, adapter = self._folder, self._adapter
        files = [*folder.weights, *folder.vocabulary, *folder.settings]
        roles = [(f"model/{path.relative_to(folder.path)}", path) for path in files]
        if adapter is not None:
            roles += [(f"adapter/{path.name}", path) for path in adapter.files]
        return fingerprint(roles)

    def tokenizer_fingerprint(self) -> dict[str, Json] | None:
        backend = getattr(self._tokenizer, "backend_tokenizer", None)
        normalizer = (
            None if backend is None else want_object(parse_json(backend.to_str()))["normalizer"]
        )
        return {
            "id": type(self._tokenizer).__name__,
            "sha256": file_sha256(self._folder.vocabulary[0]),
            "normalizer": None if normalizer is None else want_object(normalizer)["type"],
        }

    def fingerprint_parts(self) -> dict[str, Json]:
        local = self._options.local
        return {
            **self._prompts.fingerprint_parts(),
            "parsers": self._replies.parser,
            "dtype": local.dtype,
            "device": self._device.type,
            "batch_size": local.batch_size or "auto",
            "determinism_mode": self._options.determinism_mode,
        }

    def observed(self) -> Observed:
        generated = self._completion_tokens
        about: dict[str, Json] = {
            "libraries": _libraries(),
            "device": str(self._device),
            "determinism": self._determinism,
            **({} if self._folder.quantization is None else {"quantization": self._stored}),
            "tools_block": self._prompts.tools_block,
        }
        computed = 0
        if self._engine is not None:
            about["batching"] = self._engine[1].batching
            computed = self._engine[1].computed
        measured: dict[str, Json] = {
            "prompt_tokens": self._prompt_tokens,
            "computed_prompt_tokens": computed,
            "completion_tokens": generated,
            "generation_sec": self._seconds,
            "sec_per_token": self._seconds / generated if generated else None,
        }
        return Observed(
            provenance={"local_model": about},
            measured=measured,
            warnings=tuple(self._warnings),
        )

    def _written(
        self, batch: Sequence[Conversation], limits: Sequence[int] | None = None
    ) -> list[_Written | Reply | Failure]:
        """What the model wrote, or why there was nothing to write."""
        started = time.perf_counter()
        bounds: Sequence[int | None] = limits or [None] * len(batch)
        asked = list(map(self._asked, batch, bounds))
        prompts = [one.prompt for one in asked if isinstance(one, _Asked)]
        generator = self._ready_engine()[1]
        answers = iter(generator.generate(prompts, self._options.local.batch_size))
        made = [
            self._counted(one, next(answers)) if isinstance(one, _Asked) else one for one in asked
        ]
        self._seconds += time.perf_counter() - started
        return made

    def _counted(self, asked: _Asked, generated: GeneratedTokens | None) -> _Written | Failure:
        tokens = len(asked.prompt.ids)
        if generated is None:
            return Failure(f"the memory does not suffice for a prompt of {tokens} tokens")
        self._prompt_tokens += tokens
        self._completion_tokens += len(generated.ids)
        return _Written(asked.text, generated, tokens)

    def _asked(
        self, conversation: Conversation, limit: int | None = None
    ) -> _Asked | Reply | Failure:
        try:
            text = self.prompt(conversation)
        except CannotRender as error:
            return Failure(f"the prompt cannot be rendered: {error}")
        ids = self.encoded(text)
        if not ids:
            return Failure("the prompt is empty")
        if max(ids) >= self.loaded.vocabulary:
            return Failure(f"the prompt holds token {max(ids)}, which the model does not know")
        wanted = limit or self._options.decoding.max_tokens or LONGEST_ANSWER
        longest = self.loaded.longest
        room = wanted if longest is None else longest - len(ids)
        if room < 1:
            return Reply(text="", finish="context_exceeded")
        return _Asked(text, Prompt(ids, min(wanted, room), self._seed_of(conversation)))

    def _seed_of(self, conversation: Conversation) -> int:
        """Of the draws of one turn: whatever else is in the batch, it stays the same."""
        seed = self._options.decoding.seed or 0
        which = f"{seed}\n{conversation.trial}\n{conversation.turn}\n{conversation.sample_id}"
        return int(sha256_hex(which.encode("utf-8", "surrogatepass"))[:15], 16)

    def _offered(self, tools: Sequence[dict[str, Json]]) -> Sequence[dict[str, Json]]:
        return () if self._options.decoding.tool_choice == "none" else tools

    def _choice(self) -> TokenChoice:
        decoding = self._options.decoding
        return TokenChoice(
            end_ids=self._end_ids,
            temperature=decoding.temperature or 0.0,
            top_p=decoding.top_p or 1.0,
            settles=self._determinism == "strict",
        )

    @property
    def _determinism(self) -> str:
        """What may be expected of a repetition: equal tokens are promised by `strict` only."""
        if self._device.type != "cpu":
            return "loose"
        packed = self._folder.quantization is not None and self._folder.gguf is None
        plain = self._options.local.dtype == "float32" and not packed
        return "strict" if plain else "best effort"

    @property
    def _stored(self) -> str:
        """How quantised weights are stored, and what is computed with."""
        kind, dtype = self._folder.quantization, self._options.local.dtype
        return f"{kind} weights as {dtype}" if self._folder.gguf else f"{kind} with {dtype}"

    def _put_on(self, loaded: LoadedModel, adapter: AdapterFolder, sample: list[int]) -> None:
        loaded.add_adapter(ADAPTER, adapter)
        if not loaded.changes(ADAPTER, sample):
            self._warnings.append(
                f"the adapter {adapter.path} changes nothing: the logits are those of the model"
                " without it"
            )
        if adapter.base is not None and not _is_base(adapter.base, self._folder):
            self._warnings.append(
                f"the adapter {adapter.path} says that it was made for {adapter.base}:"
                f" is {self._folder.path} the same model?"
            )

    def _ready_engine(self) -> tuple[LoadedModel, Generator]:
        if self._engine is None:
            raise RuntimeError("the model is not loaded: ready() comes first")
        return self._engine


@cache
def _libraries() -> dict[str, Json]:
    return {name: version(name) for name in LIBRARIES}


def _is_base(base: str, folder: ModelFolder) -> bool:
    """Whether a checkpoint may be the one that an adapter names. A folder that is still there is
    told by its weights, a model by the words of its name, if they occur in the path; a bare name,
    without owner, says nothing about where a copy may lie."""
    if Path(base).is_dir():
        return _weights_of(model_folder(base)) == _weights_of(folder)
    owner, _, name = base.rstrip("/").rpartition("/")
    words = set(_WORDS.findall(name.casefold()))
    return not owner or words <= set(_WORDS.findall(str(folder.path.resolve()).casefold()))


def _weights_of(folder: ModelFolder) -> str:
    return fingerprint((path.name, path) for path in folder.weights)


def end_ids_of(
    tokenizer: Any, prompts: ChatPrompts | RawPrompts, own: Iterable[int]
) -> frozenset[int]:
    """The model's own end tokens, the tokenizer's, and the one its template ends a turn with."""
    found = set(own)
    if tokenizer.eos_token_id is not None:
        found.add(tokenizer.eos_token_id)
    if isinstance(prompts, ChatPrompts):
        after = tokenizer(prompts.end_of_turn().lstrip(), add_special_tokens=False)["input_ids"]
        if after and after[0] in tokenizer.added_tokens_decoder:
            found.add(after[0])
    return frozenset(found)


def missing_end(
    tokenizer: Any, prompts: ChatPrompts | RawPrompts, end_ids: frozenset[int]
) -> str | None:
    """Why a model of this checkpoint may never produce an end token: none is known, or the template
    that it was trained with ends a turn with something else."""
    if not end_ids:
        return "no end token is known"
    ends = prompts.end_of_turn() if isinstance(prompts, ChatPrompts) else ""
    written = tokenizer(ends.lstrip(), add_special_tokens=False)["input_ids"] if ends else []
    if not written or not end_ids.isdisjoint(written):
        return None
    return f"the chat template ends a turn with {ends!r}, which is no end token"
