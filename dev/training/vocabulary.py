"""The tokenizer and the chat template of the shipped model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from callmark.records.jsontext import Json
from dev.training.dialogues import training_dialogue
from dev.training.rendering import training_view
from dev.training.world import World

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

VOCABULARY = 768
_SAMPLE = 4000  # dialogues from which the tokenizer learns its pieces
_START, _END, _PAD = "<|im_start|>", "<|im_end|>", "<|endoftext|>"
_SPECIAL = (_PAD, _START, _END)
# One token each, but text: a parser of calls has to see them.
_MARKS = ("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
# Digits stand alone; a blank belongs to the word after it, so that copying goes token by token.
_PIECES = r" ?\p{L}+| ?\p{N}| ?[^\s\p{L}\p{N}]+|\s"

TEMPLATE = (Path(__file__).parent / "chat_template.jinja").read_text("utf-8")

# By this a server that uses transformers turns the model's text into real `tool_calls`.
RESPONSE_TEMPLATE: dict[str, Json] = {
    "defaults": {"role": "assistant"},
    "start_anchor": "<|im_start|>assistant\n",
    "fields": {
        "tool_calls": {
            "open_pattern": r"\s*<tool_call>",
            "close": "</tool_call>",
            "repeats": True,
            "content": "json",
            "transform": {"type": "function", "function": "{content}"},
        },
        "content": {
            "close_pattern": r"\s*(?:<\|im_end\|>|<\|endoftext\|>)",
            "content": "text",
        },
    },
}


def apply_template(messages: Sequence[Json], tools: list[Json]) -> str:
    """The text of a whole conversation, with every mark that the template puts around it."""
    from transformers.utils.chat_template_utils import render_jinja_template

    texts, _ = render_jinja_template([messages], tools=tools, chat_template=TEMPLATE)
    return str(texts[0])


def make_tokenizer(folder: Path, seed: int) -> PreTrainedTokenizerFast:
    """Learn the pieces from generated dialogues, and write the tokenizer with its template."""
    from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    split = pre_tokenizers.Split(Regex(_PIECES), behavior="isolated")
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, bytes_of])
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(_MARKS),
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(_texts(seed), trainer)
    tokenizer.add_tokens([AddedToken(mark, normalized=False, special=False) for mark in _MARKS])
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=_PAD,
        eos_token=_END,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
        chat_template=TEMPLATE,
        response_template=RESPONSE_TEMPLATE,
    )
    fast.save_pretrained(folder)
    return fast


def _texts(seed: int) -> Iterator[str]:
    """What a model reads, each frame with ten times as many words: frames are few."""
    random = Random(f"pieces {seed}")
    for _ in range(_SAMPLE):
        messages, tools = training_view(random, training_dialogue(random, 1.0))
        yield apply_template(messages, tools)
        world = World(random, "training")
        yield " ".join(world.words.word() for _ in range(10))
