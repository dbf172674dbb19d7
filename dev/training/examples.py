"""Dialogues as tokens: what the model reads, and which of it it has to learn to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TYPE_CHECKING

import msgspec

from callmark.records.jsontext import Json
from dev.training.rendering import training_view
from dev.training.world import Dialogue

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

BATCH = 32
_TOGETHER = 4  # batches that are sorted by length together, so that little is padding

Draw = Callable[[Random, float], Dialogue]  # at which share of the course
View = tuple[list[dict[str, Json]], list[Json]]


class Example(msgspec.Struct, frozen=True):
    """`said` marks the tokens of the assistant's turns, the end mark included."""

    tokens: list[int]
    said: list[bool]


def examples_of(tokenizer: PreTrainedTokenizerFast, views: Sequence[View]) -> list[Example]:
    texts = [
        tokenizer.apply_chat_template(messages, tools=tools, tokenize=False)
        for messages, tools in views
    ]
    start, end = tokenizer.convert_tokens_to_ids(["<|im_start|>", "<|im_end|>"])
    opening = tokenizer("assistant\n").input_ids
    encoded = tokenizer(texts).input_ids
    return [Example(tokens, _said(tokens, start, end, opening)) for tokens in encoded]


def _said(tokens: Sequence[int], start: int, end: int, opening: list[int]) -> list[bool]:
    said = [False] * len(tokens)
    at, width = 0, 1 + len(opening)
    while at < len(tokens):
        if tokens[at] != start or tokens[at + 1 : at + width] != opening:
            at += 1
            continue
        at += width
        while at < len(tokens):
            said[at] = True
            at += 1
            if tokens[at - 1] == end:
                break
    return said


def batches(
    tokenizer: PreTrainedTokenizerFast, draw: Draw, seed: int, first: int, last: int
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Tokens and marks of the batches of the steps `first` to `last` - 1, the same for every way
    of getting there."""
    for group in range(first // _TOGETHER, -(-last // _TOGETHER)):
        random = Random(f"batches {seed} {group}")
        progress = group * _TOGETHER / last
        dialogues = [draw(random, progress) for _ in range(BATCH * _TOGETHER)]
        made = examples_of(tokenizer, [training_view(random, one) for one in dialogues])
        made.sort(key=lambda example: len(example.tokens))
        order = list(range(_TOGETHER))
        random.shuffle(order)
        for at, place in enumerate(order):
            if first <= group * _TOGETHER + at < last:
                yield padded(made[place * BATCH : (place + 1) * BATCH], tokenizer.pad_token_id)


def padded(examples: Sequence[Example], pad: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Filled up on the right: what stands after a token never changes what it predicts."""
    import torch

    width = max(len(example.tokens) for example in examples)
    tokens = torch.full((len(examples), width), pad)
    said = torch.zeros((len(examples), width), dtype=torch.bool)
    for row, example in enumerate(examples):
        tokens[row, : len(example.tokens)] = torch.tensor(example.tokens)
        said[row, : len(example.said)] = torch.tensor(example.said)
    return tokens, said
