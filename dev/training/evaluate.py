"""What the model says: greedy, on the cases of the probe and in the real loop."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from callmark.api import run
from callmark.calls.ledger import parse_tool_calls
from callmark.calls.registry import validate_arguments
from callmark.records.jsontext import Json, want_list, want_object
from dev.training.rendering import write_lines

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MAX_NEW_TOKENS = 128
_CALL = ("name", "arguments", "turn", "raw")


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
        fits = not validate_arguments(want_object(case["tool_spec"]), calls[0]["arguments"])
        valid += fits
        named += fits and calls[0]["name"] == case["gold_tool_name"]
    return {"valid": valid, "right_tool": named}


def record_answers(tiny: Path, out: Path, work: Path) -> str:
    """Writes what the shipped model says and calls on the shipped dataset; returns the verdict.
    Results are left out: whoever replays the calls has the fixtures answer them again."""
    results = work / "results.jsonl"
    report = run(
        {
            "runner": "hf_local",
            "model": str(tiny / "model"),
            "max_tokens": _MAX_NEW_TOKENS,
            "dataset": str(tiny / "dataset.jsonl"),
            "fixtures": str(tiny.parent / "fixtures"),
            "out": str(results),
            "restart": True,
        }
    )
    lines = results.read_text("utf-8").splitlines()
    write_lines(out, [_recorded(json.loads(line)) for line in lines])
    return report.verdict


def _recorded(result: dict[str, Json]) -> dict[str, Json]:
    kept = {key: result[key] for key in ("sample_id", "model_output", "turns")}
    calls = [
        {key: call[key] for key in _CALL}
        for call in map(want_object, want_list(result["tool_trace"]))
    ]
    return {**kept, "tool_trace": calls}
