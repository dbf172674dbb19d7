"""Learning from scratch and from a checkpoint: the same steps, whether interrupted or not."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from dev.training.examples import Draw, Example, batches, padded

if TYPE_CHECKING:
    import torch
    from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

_STATE = "state.safetensors"
_WARM_UP = 0.05
_MOMENTS = ("exp_avg", "exp_avg_sq", "step")


class Course(msgspec.Struct, frozen=True, kw_only=True):
    """How long and how fast to learn."""

    steps: int
    peak: float
    seed: int
    decay: float = 0.01

    def rate(self, step: int) -> float:
        """One cycle: up in a straight line, down along a cosine."""
        warm = max(1, int(self.steps * _WARM_UP))
        if step < warm:
            return self.peak * (step + 1) / warm
        return self.peak * 0.5 * (1 + math.cos(math.pi * (step - warm) / (self.steps - warm)))


def new_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(seed)
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=160,
            intermediate_size=448,
            num_hidden_layers=4,
            num_attention_heads=5,
            num_key_value_heads=5,
            max_position_embeddings=1024,
            initializer_range=0.05,
            tie_word_embeddings=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
            dtype="float32",
        )
    )


def learn(
    model: Any,
    tokenizer: PreTrainedTokenizerFast,
    draw: Draw,
    course: Course,
    work: Path,
    *,
    save_every: int = 50,
) -> Iterator[tuple[int, float]]:
    """Yields (steps done, mean loss since the last yield) at every checkpoint; goes on where the
    folder `work` says that an earlier process stopped."""
    import torch

    trained = {name: one for name, one in model.named_parameters() if one.requires_grad}
    optimiser = torch.optim.AdamW(
        trained.values(), lr=course.peak, betas=(0.9, 0.95), weight_decay=course.decay
    )
    done = _resume(trained, optimiser, course, work)
    losses: list[float] = []
    model.train()
    drawn = batches(tokenizer, draw, course.seed, done, course.steps)
    for step, (tokens, said) in enumerate(drawn, start=done):
        for group in optimiser.param_groups:
            group["lr"] = course.rate(step)
        loss = loss_of(model, tokens, said)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained.values(), 1.0)
        optimiser.step()
        optimiser.zero_grad()
        losses.append(loss.item())
        if (step + 1) % save_every == 0 or step + 1 == course.steps:
            _save(trained, optimiser, step + 1, course, work)
            yield step + 1, sum(losses) / len(losses)
            losses.clear()
            model.train()


def loss_of(model: Any, tokens: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    from torch.nn.functional import cross_entropy

    return cross_entropy(_logits(model, tokens, said), tokens[:, 1:][said[:, 1:]])


def _logits(model: Any, tokens: torch.Tensor, said: torch.Tensor) -> torch.Tensor:
    """Of the said tokens only: the others need no prediction."""
    base = model.get_base_model() if hasattr(model, "get_base_model") else model
    hidden = base.model(input_ids=tokens[:, :-1], use_cache=False).last_hidden_state
    logits: torch.Tensor = base.lm_head(hidden[said[:, 1:]])
    return logits


def exact(model: Any, examples: list[Example], pad: int) -> list[bool]:
    """Whether greedy decoding would say every turn of an example word for word. Each turn is
    predicted after the right history, so one pass tells."""
    import torch

    model.eval()
    tokens, said = padded(examples, pad)
    with torch.no_grad():
        right = _logits(model, tokens, said).argmax(-1) == tokens[:, 1:][said[:, 1:]]
    counts = said[:, 1:].sum(1).tolist()
    return [bool(part.all()) for part in right.split(counts)]


def _save(
    trained: dict[str, torch.nn.Parameter],
    optimiser: torch.optim.Optimizer,
    done: int,
    course: Course,
    work: Path,
) -> None:
    from safetensors.torch import save_file

    tensors = {name: one.detach() for name, one in trained.items()}
    for name, one in trained.items():
        for moment in _MOMENTS:
            tensors[f"{moment}:{name}"] = optimiser.state[one][moment]
    work.mkdir(parents=True, exist_ok=True)
    half = work / f"{_STATE}.new"
    metadata = {"done": str(done), "course": json.dumps(msgspec.structs.asdict(course))}
    save_file(tensors, half, metadata=metadata)
    half.replace(work / _STATE)


def _resume(
    trained: dict[str, torch.nn.Parameter],
    optimiser: torch.optim.Optimizer,
    course: Course,
    work: Path,
) -> int:
    import torch
    from safetensors import safe_open

    if not (work / _STATE).exists():
        return 0
    with safe_open(work / _STATE, "pt") as state:
        said = state.metadata()
        if said["course"] != json.dumps(msgspec.structs.asdict(course)):
            raise SystemExit(f"{work}: holds another course: {said['course']}; delete the folder")
        for name, one in trained.items():
            with torch.no_grad():
                one.copy_(state.get_tensor(name))
            optimiser.state[one] = {
                moment: state.get_tensor(f"{moment}:{name}") for moment in _MOMENTS
            }
    return int(said["done"])
