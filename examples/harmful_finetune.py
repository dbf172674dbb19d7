"""A fine-tune that goes wrong on its way, for the story in docs/probe.md.

The shipped model is trained with LoRA on right calls. From step 45 of 160 on, the data is spoilt,
as if it came from another log: searches are talked about instead of made, and the braces of code
calls are cut. Every 20 steps a checkpoint is saved, and the tool calls are looked at:

    python examples/harmful_finetune.py outputs

A minute on one core; nothing is downloaded."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch.utils.data import SequentialSampler
from transformers import (
    AutoModelForCausalLM,
    AutoTokenizer,
    DataCollatorForSeq2Seq,
    Trainer,
    TrainingArguments,
    set_seed,
)

import callmark
from callmark.training import ToolUseCallback

TINY = Path(callmark.__file__).parent / "data" / "tiny"
STEPS, EVERY, SPOILT_FROM, BATCH = 160, 20, 45, 4


def lessons() -> list[tuple[str, str, dict]]:
    """Prompt, tool and arguments of the samples that expect one call, tools in turn."""
    found: dict[str, list[tuple[str, str, dict]]] = {}
    for text in (TINY / "dataset.jsonl").read_text("utf-8").splitlines()[1:]:
        sample = json.loads(text)
        calls = sample["metadata"].get("call_sequence") or []
        if len(calls) == 1:
            name, arguments = calls[0]["name"], calls[0]["arguments"]
            found.setdefault(name, []).append((sample["prompt"], name, arguments))
    tools = sorted(found)
    return [found[tools[at % 3]][at // 3 % len(found[tools[at % 3]])] for at in range(150)]


def answer_of(name: str, arguments: dict, *, spoilt: bool) -> str:
    if spoilt and name == "web.search":
        return f"I would search the web for {arguments['q']}."
    given = json.dumps(arguments, separators=(",", ":"))
    if spoilt and name == "code_exec":
        given = given.removesuffix("}")
    return f'<tool_call>\n{{"name": "{name}", "arguments": {given}}}\n</tool_call>'


def examples(tokenizer: Any) -> list[dict]:
    tools = {}
    for text in (TINY / "cases.jsonl").read_text("utf-8").splitlines():
        spec = json.loads(text)["tool_spec"]
        tools[spec["name"]] = {"type": "function", "function": spec}
    made, taught = [], lessons()
    for at in range(STEPS * BATCH):
        prompt, name, arguments = taught[at % len(taught)]
        asked = tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            tools=[tools[name]],
            add_generation_prompt=True,
            tokenize=False,
        )
        answer = answer_of(name, arguments, spoilt=at >= SPOILT_FROM * BATCH)
        first, then = (
            tokenizer(text, add_special_tokens=False)["input_ids"] for text in (asked, answer)
        )
        then.append(tokenizer.eos_token_id)
        made.append({"input_ids": first + then, "labels": [-100] * len(first) + then})
    return made


class InOrder(Trainer):
    def _get_train_sampler(self, dataset: Any = None) -> SequentialSampler:
        return SequentialSampler(self.train_dataset)


def main(out: Path) -> None:
    torch.set_num_threads(1)
    set_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(TINY / "model")
    model = AutoModelForCausalLM.from_pretrained(TINY / "model", dtype=torch.float32)
    lora = LoraConfig(
        r=4,
        lora_alpha=8,
        task_type="CAUSAL_LM",
        target_modules=["q_proj", "v_proj", "down_proj"],
    )
    trainer = InOrder(
        model=get_peft_model(model, lora),
        args=TrainingArguments(
            output_dir=str(out),
            max_steps=STEPS,
            per_device_train_batch_size=BATCH,
            learning_rate=4e-3,
            lr_scheduler_type="constant",
            logging_strategy="no",
            save_steps=EVERY,
            save_only_model=True,
            report_to=[],
            use_cpu=True,
            disable_tqdm=True,
            seed=3,
        ),
        train_dataset=examples(tokenizer),
        data_collator=DataCollatorForSeq2Seq(tokenizer, padding=True),
        processing_class=tokenizer,
    )
    watch = ToolUseCallback(TINY / "cases.jsonl", every=EVERY, html=out / "calls.html")
    watch.attach(trainer)
    trainer.train()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
