"""Playing the model in the real loop: greedy, in batches, one pass after the other."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmark.core.jsontext import Json
from toolmark.core.protocols import Conversation, Reply

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_NEW_TOKENS = 160


class GreedyRunner:
    """Answers with a model that is already loaded."""

    name = "tiny"
    suspends = False
    max_batch = 64

    def __init__(self, model: Any, tokenizer: PreTrainedTokenizerFast) -> None:
        self._model = model
        self._tokenizer = tokenizer

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply]:
        views = [(one.messages, one.tools) for one in batch]
        return [Reply(text=text) for text in generate(self._model, self._tokenizer, views)]

    def fingerprint_parts(self) -> dict[str, Json]:
        return {}

    def model_fingerprint(self) -> str | None:
        return None


def generate(
    model: Any, tokenizer: PreTrainedTokenizerFast, views: Sequence[tuple[Any, Any]]
) -> list[str]:
    """The next turn of each conversation."""
    import torch

    model.eval()
    texts = [
        tokenizer.apply_chat_template(
            list(messages), tools=list(tools), tokenize=False, add_generation_prompt=True
        )
        for messages, tools in views
    ]
    inputs = tokenizer(texts, return_tensors="pt", padding=True)
    with torch.no_grad():
        found = model.generate(
            input_ids=inputs.input_ids,
            attention_mask=inputs.attention_mask,
            max_new_tokens=_MAX_NEW_TOKENS,
            do_sample=False,
        )
    said = found[:, inputs.input_ids.shape[1] :]
    return list(tokenizer.batch_decode(said, skip_special_tokens=True))
