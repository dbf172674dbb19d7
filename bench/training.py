"""Looking at tool calls while training, at the interval that is chosen where none is given."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import callmark
from callmark.runners.hf.loading import quiet_libraries
from callmark.training import ToolUseCallback

SHIPPED = Path(callmark.__file__).parent / "data" / "tiny"
STEPS, BATCH, LENGTH, CASES = 160, 8, 128, 8
BOUND = 1.1
NOTES = (
    f"LoRA on the shipped model, {STEPS} steps of {BATCH} × {LENGTH} tokens, {CASES} cases: the"
    " first look, as many as can be afforded, and the one at the end.",
)


def rows() -> list[tuple[str, str, str]]:
    """(what, figure, bound)."""
    with quiet_libraries():
        plain, _ = trained(None)
        watched, looks = trained(ToolUseCallback(SHIPPED / "cases.jsonl", limit=CASES))
    what = "CPU: a training with its tool calls looked at ÷ without"
    return [(what, f"{watched / plain:.2f}", f"<= {BOUND:g}"), (" looks in it", str(looks), "")]


def trained(watch: ToolUseCallback | None) -> tuple[float, int]:
    """CPU seconds of one training, and how often it was looked at."""
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        PrinterCallback,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    torch.set_num_threads(1)
    set_seed(0)
    model = AutoModelForCausalLM.from_pretrained(SHIPPED / "model", dtype=torch.float32)
    config = LoraConfig(r=4, task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj"])
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model=get_peft_model(model, config),
            args=TrainingArguments(
                output_dir=folder,
                max_steps=STEPS,
                per_device_train_batch_size=BATCH,
                learning_rate=0.0,  # it goes on answering as before: a look costs what it costs
                save_strategy="no",
                logging_strategy="no",
                report_to=[],
                use_cpu=True,
                disable_tqdm=True,
            ),
            train_dataset=lessons(),
            processing_class=AutoTokenizer.from_pretrained(SHIPPED / "model"),
        )
        trainer.remove_callback(PrinterCallback)
        if watch is not None:
            watch.attach(trainer)
        started = time.process_time()
        trainer.train()
        return time.process_time() - started, 0 if watch is None else len(watch.results)


def lessons() -> list[dict[str, Any]]:
    import torch

    drawn = torch.randint(5, 400, (STEPS * BATCH, LENGTH), generator=torch.manual_seed(0))
    return [{"input_ids": one, "labels": one} for one in drawn]
