"""Generation in batches: the same tokens as one prompt at a time, several times faster.

A pass computes prompts side by side, with a beginning that is computed only once; the tokens that
come out of it become the reply of one turn."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from callmark.calls.ledger import read_turn
from callmark.records.jsontext import Json
from callmark.records.seams import Reply
from callmark.runners.hf.prompts import RAW_TEXT
from callmark.runners.response_template import PARSING_ERRORS, ResponseTemplate

if TYPE_CHECKING:
    import torch


Tokens = Sequence[int]
# What a model bears without other results: a shared beginning with padding behind it; padding on
# the left; or only prompts of one length beside each other.
Batching = Literal["prefix", "padded", "equal"]

WIDEST = 64
# Tokens that are kept in memory at once, if nobody says how many prompts fit.
BUDGET = 32_768
# How much longer a prompt is expected to get, at most.
GROWTH = 256
SHORTEST_PREFIX = 8
# Fewer prompts than this are better off in a wider batch than with a longer shared beginning.
SMALLEST_FAMILY = 8


class Family(msgspec.Struct, frozen=True):
    """Prompts that begin with the same `prefix` tokens, in batches of their positions."""

    prefix: int
    batches: tuple[tuple[int, ...], ...]


def plan(
    prompts: Sequence[Tokens], batching: Batching, batch_size: int | None, growth: int
) -> list[Family]:
    """Every prompt in exactly one batch. `batch_size` None: as many as the budget holds."""
    made = []
    for rows in _families(prompts) if batching == "prefix" else [range(len(prompts))]:
        if not rows:
            continue
        shared = _share(prompts, rows) if batching == "prefix" and len(rows) > 1 else 0
        prefix = shared if shared >= SHORTEST_PREFIX else 0
        batches = _batches(prompts, rows, batching, batch_size, min(growth, GROWTH))
        made.append(Family(prefix, tuple(batches)))
    return made


def _families(prompts: Sequence[Tokens]) -> list[list[int]]:
    """Prompts with a long common beginning together; all others in one family, the last."""
    families: list[list[int]] = []
    others: list[int] = []
    current: list[int] = []
    length = 0
    for row in sorted(range(len(prompts)), key=lambda row: list(prompts[row])):
        common = _common(prompts[current[0]], prompts[row]) if current else 0
        enough = SHORTEST_PREFIX if len(current) < SMALLEST_FAMILY else max(8, length // 2)
        if current and common < enough:
            (families.append if len(current) >= SMALLEST_FAMILY else others.extend)(current)
            current = []
        length = min(length, common) if current else len(prompts[row])
        current = [*current, row]
    (families.append if len(current) >= SMALLEST_FAMILY else others.extend)(current)
    return [*families, others]


def _batches(
    prompts: Sequence[Tokens],
    rows: Sequence[int],
    batching: Batching,
    batch_size: int | None,
    growth: int,
) -> Iterator[tuple[int, ...]]:
    """The longest first, so that what does not fit into memory is known at once."""
    batch: list[int] = []
    for row in sorted(rows, key=lambda row: (-len(prompts[row]), row)):
        longest = len(prompts[batch[0]] if batch else prompts[row])
        full = len(batch) >= (batch_size or WIDEST) or (
            batch_size is None and (len(batch) + 1) * (longest + growth) > BUDGET
        )
        differs = batching == "equal" and longest != len(prompts[row])
        if batch and (full or differs):
            yield tuple(batch)
            batch = []
        batch.append(row)
    yield tuple(batch)


def _share(prompts: Sequence[Tokens], rows: Sequence[int]) -> int:
    """The length of what all begin with; of each prompt at least one token is left."""
    first, *others = (prompts[row] for row in rows)
    common = min((_common(first, other) for other in others), default=len(first))
    return min(common, *(len(prompts[row]) - 1 for row in rows))


def _common(one: Tokens, other: Tokens) -> int:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))


_ROOM = 64  # tokens for which memory is taken at a time
# How far two ways to compute one number may lie apart; the larger is for short floats.
_CLOSE = {"float32": 1e-3}
_ROUGHLY_CLOSE = 0.05
_SAMPLE = 32


class Passes:
    """What one model takes and gives. `sample`: tokens to try it with."""

    def __init__(self, model: Any, sample: Tokens) -> None:
        from transformers import DynamicCache
        from transformers.cache_utils import DynamicLayer

        self._model = model
        taken = inspect.signature(model.forward).parameters
        self._has_positions = "position_ids" in taken
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in taken else {}
        layers = DynamicCache(config=model.config).layers
        # Sliding windows and recurrent states count places, so nothing may lie in between.
        self.can_share = all(type(layer) is DynamicLayer for layer in layers)
        self._sample = (list(sample) * _SAMPLE)[:_SAMPLE]
        self._remembers = True
        self._remembers = self._memory_is_used()
        self.can_share = self.can_share and self._remembers

    def begin(self, prompts: Sequence[Tokens], shared: Any = None) -> Running:
        """Prompts side by side, before their first pass. `shared` is what `keep` gave for the
        tokens that all of them begin with."""
        memory = self._memory()
        done = 0
        if shared is not None:
            done = shared.get_seq_length()
            for layer, source in zip(memory.layers, shared.layers, strict=True):
                layer.begin_with(source, len(prompts))
        return Running(self, [ids[done:] for ids in prompts], memory, done)

    def keep(self, beginning: Tokens) -> Any:
        """The model's memory of these tokens."""
        running = self.begin([beginning])
        running.logits()
        return running.memory

    def alone(self, ids: Tokens) -> torch.Tensor:
        """The logits after these tokens, by a pass that remembers nothing."""
        return Running(self, [ids], None, 0).logits()

    def run(
        self, tokens: torch.Tensor, places: torch.Tensor, mask: torch.Tensor | None, memory: Any
    ) -> torch.Tensor:
        inputs: dict[str, Any] = {"position_ids": places} if self._has_positions else {}
        logits: torch.Tensor = self._model(
            input_ids=tokens,
            attention_mask=mask,
            past_key_values=memory,
            use_cache=memory is not None,
            **inputs,
            **self._last_only,
        ).logits
        return logits[:, -1].float()

    @property
    def device(self) -> Any:
        return self._model.device

    def bears(self) -> Batching:
        """Which batches, found by computing the same in different ways."""
        import torch

        ids = self._sample
        prompts = [ids[:32], ids[:19], ids[:27]]
        with torch.inference_mode():
            alone = torch.cat([_two_steps(self.begin([prompt]), ids[0]) for prompt in prompts], 1)
            if self.can_share and self._close(
                _two_steps(self.begin(prompts, self.keep(ids[:12])), ids[0]), alone
            ):
                return "prefix"
            padded = self._close(_two_steps(self.begin(prompts), ids[0]), alone)
            return "padded" if padded else "equal"

    def _memory_is_used(self) -> bool:
        """Some models take their memory by another name: without it they forget the prompt."""
        import torch

        ids = self._sample
        with torch.inference_mode():
            step = _two_steps(self.begin([ids[:20]]), ids[20])[1]
            return self._close(step, self.alone(ids[:21]))

    def _close(self, one: torch.Tensor, other: torch.Tensor) -> bool:
        dtype = str(self._model.dtype).removeprefix("torch.")
        allowed = _CLOSE.get(dtype, _ROUGHLY_CLOSE) * max(1.0, float(other.abs().max()))
        return float((one - other).abs().max()) <= allowed

    def _memory(self) -> Any:
        from transformers import DynamicCache

        if not self._remembers:
            return None
        made = DynamicCache(config=self._model.config)
        if self.can_share:
            made.layers = [_growing_layer()() for _ in made.layers]
        return made


class Running:
    """One batch while it is computed: the tokens of the next pass, and where they stand. Padding
    lies before a prompt, but behind what was shared."""

    def __init__(self, passes: Passes, prompts: Sequence[Tokens], memory: Any, done: int) -> None:
        import torch

        self._passes = passes
        self.memory = memory
        longest = max(map(len, prompts))
        pads = [longest - len(ids) for ids in prompts]
        padded = [[0] * pad + list(ids) for pad, ids in zip(pads, prompts, strict=True)]
        device = passes.device
        self._tokens = torch.tensor(padded, device=device)
        absent = torch.tensor(pads, device=device)[:, None]
        columns = torch.arange(longest, device=device)[None]
        self._places = done + (columns - absent).clamp_min(0)
        self._mask: torch.Tensor | None = None
        if any(pads):
            before = torch.ones(len(pads), done, dtype=torch.long, device=device)
            self._mask = torch.cat([before, (columns >= absent).long()], 1)

    def logits(self) -> torch.Tensor:
        """What the model makes of the tokens so far: one row for each prompt."""
        return self._passes.run(self._tokens, self._places, self._mask, self.memory)

    def extend(self, tokens: Sequence[int]) -> None:
        import torch

        more = torch.tensor(tokens, device=self._tokens.device)[:, None]
        place = self._places[:, -1:] + 1
        if self.memory is None:
            more = torch.cat([self._tokens, more], 1)
            place = torch.cat([self._places, place], 1)
        self._tokens, self._places = more, place
        if self._mask is not None:
            self._mask = torch.cat([self._mask, self._mask.new_ones(len(tokens), 1)], 1)

    def drop_all_but(self, rows: Sequence[int]) -> None:
        import torch

        chosen = torch.tensor(rows, device=self._places.device)
        self._places = self._places[chosen]
        if self._mask is not None:
            self._mask = self._mask[chosen]
        self.memory.batch_select_indices(chosen)


def _two_steps(running: Running, next_token: int) -> torch.Tensor:
    import torch

    first = running.logits()
    running.extend([next_token] * len(first))
    return torch.stack([first, running.logits()])


@cache
def _growing_layer() -> Any:
    from transformers.cache_utils import DynamicLayer

    class GrowingLayer(DynamicLayer):  # type: ignore[misc]
        """Takes memory in steps: the original copies all of it for every token."""

        keys: torch.Tensor
        values: torch.Tensor

        def __init__(self) -> None:
            super().__init__()
            self.used = 0

        def begin_with(self, source: GrowingLayer, rows: int) -> None:
            keys, values = (
                one[..., : source.used, :].expand(rows, -1, -1, -1)
                for one in (source.keys, source.values)
            )
            self.update(keys, values)

        def update(
            self, key_states: torch.Tensor, value_states: torch.Tensor, *_: Any, **__: Any
        ) -> tuple[torch.Tensor, torch.Tensor]:
            if not self.is_initialized:
                self.lazy_initialization(key_states, value_states)
            start, self.used = self.used, self.used + key_states.shape[-2]
            self.keys = _with_room(self.keys, key_states, start)
            self.values = _with_room(self.values, value_states, start)
            return self.keys[..., : self.used, :], self.values[..., : self.used, :]

        def get_seq_length(self) -> int:
            return self.used

    return GrowingLayer


def _with_room(held: torch.Tensor, new: torch.Tensor, start: int) -> torch.Tensor:
    """`held` with `new` written behind its first `start` tokens, moved if it is too small."""
    end = start + new.shape[-2]
    if start == 0 or held.shape[-2] < end:
        larger = new.new_empty((*new.shape[:-2], end + _ROOM, new.shape[-1]))
        if start:
            larger[..., :start, :] = held[..., :start, :]
        held = larger
    held[..., start:end, :] = new
    return held


# Logits nearer to each other than this share of the largest could change places with the shape of
# a batch (rounding reaches a tenth of it in 24 layers): they are computed again, alone.
_NEAR = 5e-5
# Prompts that are done leave the batch when no more than this share is left.
_SPARSE = 0.75
_CPU_MEMORY = "DefaultCPUAllocator"


class Prompt(msgspec.Struct, frozen=True):
    """`limit`: how many tokens may follow. `seed`: of the draws, where tokens are drawn."""

    ids: Tokens
    limit: int
    seed: int = 0


class GeneratedTokens(msgspec.Struct, frozen=True):
    """`ended`: the model ended its turn by itself (the last token says so)."""

    ids: tuple[int, ...]
    ended: bool


class TokenChoice(msgspec.Struct, frozen=True, kw_only=True):
    """How the next token is chosen, and when it is the last. `temperature` 0: the likeliest.
    `settles`: near ties are computed alone."""

    end_ids: frozenset[int]
    temperature: float = 0.0
    top_p: float = 1.0
    settles: bool = True


class Generator:
    """Decodes with one model, whichever of its adapters is switched on."""

    def __init__(
        self, model: Any, choice: TokenChoice, sample: Tokens, batching: Batching | None = None
    ) -> None:
        """`batching` None: what the model bears, found out with the tokens of `sample`."""
        self._passes = Passes(model, sample)
        self._choice = choice
        self.batching: Batching = batching or self._passes.bears()
        self.computed = 0  # tokens of prompts; shared ones count once

    def generate(
        self, prompts: Sequence[Prompt], batch_size: int | None = None
    ) -> list[GeneratedTokens | None]:
        """One answer for each prompt, in their order; None: the memory does not suffice for it."""
        import torch

        found: dict[int, GeneratedTokens | None] = {}
        growth = max((prompt.limit for prompt in prompts), default=0)
        ids = [prompt.ids for prompt in prompts]
        with torch.inference_mode():
            for family in plan(ids, self.batching, batch_size, growth) if prompts else ():
                found |= self._family(prompts, family)
        return [found[row] for row in range(len(prompts))]

    def _family(
        self, prompts: Sequence[Prompt], family: Family
    ) -> dict[int, GeneratedTokens | None]:
        shared = None
        if family.prefix:
            shared = self._passes.keep(prompts[family.batches[0][0]].ids[: family.prefix])
            self.computed += family.prefix
        found: dict[int, GeneratedTokens | None] = {}
        for batch in family.batches:
            self.computed += sum(len(prompts[row].ids) - family.prefix for row in batch)
            made = self._as_many_as_fit([prompts[row] for row in batch], shared)
            found.update(zip(batch, made, strict=True))
        return found

    def _as_many_as_fit(
        self, prompts: Sequence[Prompt], shared: Any
    ) -> Sequence[GeneratedTokens | None]:
        try:
            return self._batch(prompts, shared)
        except RuntimeError as error:
            if not _is_out_of_memory(error):
                raise
        if len(prompts) == 1:
            return [None]
        half = len(prompts) // 2
        return [
            made
            for part in (prompts[:half], prompts[half:])
            for made in self._as_many_as_fit(part, shared)
        ]

    def _batch(self, prompts: Sequence[Prompt], shared: Any) -> list[GeneratedTokens]:
        rows = [_Row(prompt, draws=self._choice.temperature > 0) for prompt in prompts]
        running = self._passes.begin([prompt.ids for prompt in prompts], shared)
        live = rows
        while True:
            for row, token in zip(live, self._chosen(running.logits(), live), strict=True):
                row.take(token, self._choice.end_ids)
            left = [position for position, row in enumerate(live) if not row.is_done]
            if not left:
                return [GeneratedTokens(tuple(row.ids), row.ended) for row in rows]
            if len(left) <= _SPARSE * len(live) and self._passes.can_share:
                live = [live[position] for position in left]
                running.drop_all_but(left)
            running.extend([row.ids[-1] for row in live])

    def _chosen(self, logits: torch.Tensor, rows: Sequence[_Row]) -> list[int]:
        scores = self._scores(logits, [row.draw(logits.shape[-1]) for row in rows])
        tokens: list[int] = scores.argmax(-1).tolist()
        if not self._choice.settles:
            return tokens
        best = scores.topk(2).values
        nearness = logits.abs().amax(-1) * _NEAR / (self._choice.temperature or 1.0)
        near: list[bool] = (best[:, 0] - best[:, 1] <= nearness).tolist()
        for position, row in enumerate(rows):
            if near[position] and not row.is_done:
                tokens[position] = self._settled(row)
        return tokens

    def _settled(self, row: _Row) -> int:
        alone = self._passes.alone([*row.prompt.ids, *row.ids])
        return int(self._scores(alone, [row.noise]).argmax())

    def _scores(self, logits: torch.Tensor, noise: list[torch.Tensor | None]) -> torch.Tensor:
        """The highest score is the next token; with noise added, that is a draw."""
        import torch

        drawn = [one for one in noise if one is not None]
        if not drawn:
            return logits
        logits = logits / self._choice.temperature
        if self._choice.top_p < 1:
            logits = _nucleus(logits, self._choice.top_p)
        return logits + torch.stack(drawn).to(logits.device)


class _Row:
    """One prompt while its answer grows."""

    def __init__(self, prompt: Prompt, *, draws: bool) -> None:
        import torch

        self.prompt = prompt
        self.ids: list[int] = []
        self.is_done = self.ended = False
        self.noise: torch.Tensor | None = None
        self._generator = torch.Generator().manual_seed(prompt.seed) if draws else None

    def draw(self, size: int) -> torch.Tensor | None:
        """Gumbel noise, from the prompt's own seed: other prompts never change it."""
        import torch

        if self._generator is not None and not self.is_done:
            waited = torch.empty(size).exponential_(generator=self._generator)
            self.noise = waited.clamp_min_(torch.finfo(torch.float32).tiny).log_().neg_()
        return self.noise

    def take(self, token: int, end_ids: frozenset[int]) -> None:
        if self.is_done:
            return
        self.ids.append(token)
        self.ended = token in end_ids
        self.is_done = self.ended or len(self.ids) >= self.prompt.limit


def _nucleus(logits: torch.Tensor, top_p: float) -> torch.Tensor:
    """Only the likeliest tokens that together reach `top_p`, the first one always."""
    ordered, places = logits.softmax(-1).sort(descending=True, stable=True)
    beyond = ordered.cumsum(-1) - ordered >= top_p
    return logits.masked_fill(beyond.scatter(-1, places, beyond), float("-inf"))


def _is_out_of_memory(error: RuntimeError) -> bool:
    import torch

    return isinstance(error, torch.OutOfMemoryError) or _CPU_MEMORY in str(error)


class Replies:
    """Decodes. Calls are read by the tokenizer's own response template where it declares one and
    it accepts the text; everywhere else they are left in the text, for the ledger."""

    def __init__(self, tokenizer: Any, end_ids: frozenset[int], *, declared: Json = None) -> None:
        """`declared`: the response template, where it is to be used."""
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        # An end token that is text, such as the closing mark of a call, stays.
        self._unsaid = frozenset(
            one for one in end_ids if one not in added or getattr(added[one], "special", True)
        )
        self._template: ResponseTemplate | None = None
        self.warnings: tuple[str, ...] = ()
        if declared is not None:
            self._declare(declared)

    @property
    def parser(self) -> str:
        """For the fingerprint: who reads calls."""
        return "text" if self._template is None else f"response_template {self._template.sha256}"

    def reply(self, prompt: str, generated: GeneratedTokens, tools: Sequence[Json]) -> Reply:
        text = self.text(generated)
        end = self._decoded([one for one in generated.ids[-1:] if one in self._unsaid])
        made = None
        if self._template is not None:
            made = self._template.read(text, tools, prompt=prompt, end=end)
        made = made or Reply(text=text)
        thought = made.reasoning or read_turn(made.text, offered=(), formats=()).reasoning
        carried: dict[str, Json] = {RAW_TEXT: text}
        if thought:
            carried["reasoning_content"] = thought
        finish = "stop" if generated.ended else "length"
        return msgspec.structs.replace(made, finish=finish, carried=carried)

    def text(self, generated: GeneratedTokens) -> str:
        """All that the model wrote, without the token that ended it."""
        ids = generated.ids
        return self._decoded(ids[:-1] if ids and ids[-1] in self._unsaid else ids)

    def _declare(self, declared: Json) -> None:
        try:
            self._template = ResponseTemplate(declared)
        except PARSING_ERRORS as error:
            said = " ".join(str(error).split())
            self.warnings = (f"the tokenizer's response_template is not used: {said}",)

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text
