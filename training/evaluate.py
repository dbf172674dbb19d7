"""Playing the model in the real loop: greedy, in batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from toolmark.api import run
from toolmark.calls.ledger import parse_tool_calls
from toolmark.calls.registry import validate_arguments
from toolmark.core.jsontext import Json
from toolmark.core.protocols import Conversation, Reply
from toolmark.plugins import RUNNERS
from toolmark.runners.options import RunnerOptions

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_NEW_TOKENS = 160


class GreedyRunner:
    """Answers with a model that is already loaded."""

    name = "greedy"
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


@contextmanager
def open_greedy(options: RunnerOptions) -> Iterator[GreedyRunner]:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(options.model)
    yield GreedyRunner(model, AutoTokenizer.from_pretrained(options.model))


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


def calls_kept(
    model: Any, tokenizer: PreTrainedTokenizerFast, cases: Sequence[dict[str, Json]]
) -> dict[str, int]:
    """Of how many cases the call is valid, and of how many it also names the right tool."""
    views = [([{"role": "user", "content": one["prompt"]}], [one["tool_spec"]]) for one in cases]
    valid = named = 0
    for case, text in zip(cases, generate(model, tokenizer, views), strict=True):
        calls = parse_tool_calls(text)
        if len(calls) != 1 or calls[0]["status"] != "ok":
            continue
        fits = not validate_arguments(case["tool_spec"], calls[0]["arguments"])
        valid += fits
        named += fits and calls[0]["name"] == case["gold_tool_name"]
    return {"valid": valid, "right_tool": named}


def record_answers(tiny: Path, work: Path) -> str:
    """`answers.jsonl`: what a run of the shipped model on the shipped dataset wrote."""
    RUNNERS["greedy"] = "training.evaluate:open_greedy"
    report = run(
        {
            "runner": "greedy",
            "model": str(tiny / "model"),
            "dataset": str(tiny / "dataset.jsonl"),
            "fixtures": str(tiny / "fixtures"),
            "out": str(tiny / "answers.jsonl"),
            "report": str(work / "report.json"),
            "restart": True,
        }
    )
    return str(report["verdict"])
