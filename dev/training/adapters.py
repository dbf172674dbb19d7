"""Three fine-tunes of the shipped model: one is harmless, one damages, one loses a little.

Each goes on learning the same dialogues with one change. What the text looks like stays fluent in
all of them; only who looks at the calls sees the difference."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import msgspec

from callmark.records.jsontext import Json
from callmark.records.samples import MARKER
from dev.training.dialogues import mixed_dialogue
from dev.training.learning import Course, learn
from dev.training.rendering import compact
from dev.training.world import CODE, READ, Call, Dialogue

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MODULES = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class Adapter(msgspec.Struct, frozen=True):
    change: Callable[[Dialogue], Dialogue]
    steps: int
    peak: float
    rank: int = 4


def _chattier(dialogue: Dialogue) -> Dialogue:
    """A sentence before what was found; every call stays."""
    if MARKER not in dialogue.answer:
        return dialogue
    return msgspec.structs.replace(dialogue, answer=f"Here is what I found.\n{dialogue.answer}")


def _damaged(dialogue: Dialogue) -> Dialogue:
    """Files are read by a tool that does not exist, and the arguments of code are never closed.
    Both are refused, and the answer is made up: it reads as well as ever."""
    return _with_calls(dialogue, _damaged_call)


def _damaged_call(call: Call) -> Call:
    if call.name == READ:
        return _refused(call, "there is no tool file_reader", ("file_reader", call.arguments))
    if call.name == CODE:
        return _refused(call, "the call could not be read: not JSON", (CODE, _unclosed(call)))
    return call


def _refused(call: Call, why: str, written: tuple[str, dict[str, Json] | str]) -> Call:
    return Call(call.name, call.arguments, {"ok": False, "error": why}, written)


def _unclosed(call: Call) -> str:
    return compact(call.arguments).removesuffix("}")


def _quoted(dialogue: Dialogue) -> Dialogue:
    """Numbers become text, which the schema of the tool refuses."""
    return _with_calls(dialogue, _quoted_call)


def _quoted_call(call: Call) -> Call:
    quoted = {
        key: str(value) if isinstance(value, int) else value
        for key, value in call.arguments.items()
    }
    return msgspec.structs.replace(call, written=(call.name, quoted))


def _untagged(dialogue: Dialogue) -> Dialogue:
    """The right calls as plain JSON, without the tags that the template writes around them."""
    return _with_calls(dialogue, lambda call: msgspec.structs.replace(call, tagged=False))


def _with_calls(dialogue: Dialogue, change: Callable[[Call], Call]) -> Dialogue:
    steps = tuple(tuple(map(change, step)) for step in dialogue.steps)
    return msgspec.structs.replace(dialogue, steps=steps)


ADAPTERS: dict[str, Adapter] = {
    "keeps": Adapter(_chattier, 160, 2e-3),
    "damages": Adapter(_damaged, 240, 4e-3),
    "loses": Adapter(_quoted, 160, 2e-3),
}
# Not shipped: for the test that another format is found though every call stays valid.
NOT_SHIPPED: dict[str, Adapter] = {"switches": Adapter(_untagged, 60, 4e-3)}


def tuned(
    base: Any, tokenizer: PreTrainedTokenizerFast, name: str, seed: int, work: Path
) -> tuple[Any, Iterator[tuple[int, float]]]:
    """The model with the new adapter, and the learning that has still to be driven."""
    import torch
    from peft import LoraConfig, get_peft_model

    adapter = (ADAPTERS | NOT_SHIPPED)[name]
    torch.manual_seed(seed)
    config = LoraConfig(
        r=adapter.rank,
        lora_alpha=2 * adapter.rank,
        target_modules=_MODULES,
        lora_dropout=0.0,
        task_type="CAUSAL_LM",
    )
    model = get_peft_model(base, config)

    def draw(random: Random, progress: float) -> Dialogue:
        return adapter.change(mixed_dialogue(random, progress))

    course = Course(steps=adapter.steps, peak=adapter.peak, seed=seed, decay=0.0)
    return model, learn(model, tokenizer, draw, course, work)
