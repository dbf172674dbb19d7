"""Generation in batches: the same tokens as one prompt at a time, several times faster."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from callmark.runners.hf.passes import Batching, Family, Passes, Tokens, plan

if TYPE_CHECKING:
    import torch

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
