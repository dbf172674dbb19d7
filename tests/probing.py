"""Models for the probe that answer each kind of case as they are told, and adapters that change
exactly one kind."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.local_models import FULL_TEMPLATE, PLAIN_TEMPLATE, chain_model

KINDS = ("<|a|>", "<|b|>")


def by_kind(template: str) -> str:
    """The last token of a prompt says of which kind its question is, or that a result came."""
    return template.replace(
        "<|start|>assistant\n{% endif %}",
        "<|start|>assistant\n{{ '<|t|>' if messages[-1].role == 'tool' else"
        " '<|a|>' if '<|a|>' in messages[-1].content else '<|b|>' }}{% endif %}",
    )


KIND_TEMPLATE = by_kind(FULL_TEMPLATE)
WITHOUT_TOOLS = by_kind(PLAIN_TEMPLATE)  # as many in the wild: drops `tools` without a word
SPEC = {
    "name": "web.search",
    "description": "Search.",
    "parameters": {
        "type": "object",
        "properties": {"q": {"type": "string"}},
        "required": ["q"],
        "additionalProperties": False,
    },
}
GOOD = '<tool_call>\n{"name": "web.search", "arguments": {"q": "rope"}}\n</tool_call>'
OTHER = '<tool_call>\n{"name": "web.search", "arguments": {"q": "sail"}}\n</tool_call>'
WRONG = '<tool_call>\n{"name": "web.find", "arguments": {"q": "rope"}}\n</tool_call>'
BROKEN = '<tool_call>\n{"name": "web.search", "arguments": {"query": 1}}\n</tool_call>'
BARE = '{"name": "web.search", "arguments": {"q": "rope"}}'
TALK = "I would rather talk."
SAID = (GOOD, OTHER, WRONG, BROKEN, BARE, TALK)


def probed_model(folder: Path, a: str, b: str, template: str = KIND_TEMPLATE) -> Path:
    """Says `a` to questions of the first kind and `b` to those of the second."""
    chain = {"<|a|>": a, "<|b|>": b, "<|t|>": TALK}
    known = {**chain, **dict.fromkeys(SAID, "<|end|>")}
    return chain_model(folder, known, template=template)


def steering_adapter(folder: Path, base: Path, changes: Mapping[str, str]) -> Path:
    """A LoRA on the last layer: after each kind of question it says something else."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    ids = AutoTokenizer.from_pretrained(base).convert_tokens_to_ids
    config = LoraConfig(
        r=2, lora_alpha=2, target_modules=["lm_head"], task_type="CAUSAL_LM", bias="none"
    )
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(base), config)
    layer = adapted.base_model.model.lm_head
    with torch.no_grad():
        a, b = layer.lora_A["default"].weight.zero_(), layer.lora_B["default"].weight.zero_()
        for row, (kind, said) in enumerate(changes.items()):
            a[row, ids(kind)] = 1.0
            b[ids(said), row] = 4.0
    adapted.save_pretrained(folder, save_embedding_layers=False)
    return folder


def case(number: int, kind: str, **changes) -> dict:
    return {
        "prompt": f"Question {number} {kind}",
        "tool_spec": SPEC,
        "gold_tool_name": "web.search",
        "max_new_tokens": 8,
        **changes,
    }


def cases(a: int, b: int = 0) -> list[dict]:
    kinds = [KINDS[0]] * a + [KINDS[1]] * b
    return [case(number, kind) for number, kind in enumerate(kinds)]


def write_cases(path: Path, given: Sequence[dict]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in given), "utf-8")
    return path
