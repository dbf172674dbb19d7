"""Tool calls while training: seen falling, logged, stopped if asked, and the training untouched."""

import json
import random
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from tests.pace import few
from tests.unit.probe.asking import case

from callmark.errors import BadInput, UsageError
from callmark.probe.fidelity import fidelity
from callmark.probe.records import Checkpoint, FidelityResult, read_probe_report
from callmark.probe.stats import validity_change

pytest.importorskip("transformers")

TINY = Path(__file__).parents[2] / "src" / "callmark" / "data" / "tiny"
PROSE = "I would rather talk about the weather."


def tiny_cases(n: int) -> list[dict]:
    lines = (TINY / "cases.jsonl").read_text("utf-8").splitlines()
    return [{**json.loads(one), "max_new_tokens": 40} for one in lines[:n]]


def own_answers() -> list[str]:
    """What the model says to the cases before it learns anything."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from callmark.probe.spec import read_cases
    from callmark.probe.views import question_of
    from callmark.training import ask_in_memory

    torch.set_num_threads(1)
    model = AutoModelForCausalLM.from_pretrained(TINY / "model", dtype=torch.float32).eval()
    tokenizer = AutoTokenizer.from_pretrained(TINY / "model")
    questions = [question_of(one) for one in read_cases(TINY / "cases.jsonl")]
    return [one.text for one in ask_in_memory(model, tokenizer, questions)]


def examples(tokenizer, answers: list[str], total: int) -> list[dict]:
    """Prompts of the cases, with `answers` to them first, then with prose."""
    made = []
    asked = tiny_cases(24)
    for at in range(total):
        one = asked[at % 24]
        tool = {"type": "function", "function": one["tool_spec"]}
        messages = [{"role": "user", "content": one["prompt"]}]
        prompt = tokenizer.apply_chat_template(
            messages, tools=[tool], add_generation_prompt=True, tokenize=False
        )
        ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
        said = answers[at] if at < len(answers) else PROSE
        answer = tokenizer(said, add_special_tokens=False)["input_ids"]
        answer.append(tokenizer.eos_token_id)
        made.append({"input_ids": ids + answer, "labels": [-100] * len(ids) + answer})
    return made


def trained(tmp_path, callback=None, *, steps=12, rate=2e-3, attach=True, answers=()):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import (
        AutoModelForCausalLM,
        AutoTokenizer,
        DataCollatorForSeq2Seq,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    torch.set_num_threads(1)
    set_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(TINY / "model")
    model = AutoModelForCausalLM.from_pretrained(TINY / "model", dtype=torch.float32)
    lora = LoraConfig(r=4, lora_alpha=8, lora_dropout=0.1, task_type="CAUSAL_LM", target_modules=["q_proj", "v_proj", "down_proj"])  # fmt: skip
    model = get_peft_model(model, lora)
    settings = TrainingArguments(
        output_dir=str(tmp_path / "out"), max_steps=steps, per_device_train_batch_size=4,
        learning_rate=rate, lr_scheduler_type="constant", logging_steps=3, save_strategy="no",
        report_to=[], use_cpu=True, disable_tqdm=True, seed=3,
    )  # fmt: skip

    class InOrder(Trainer):
        def _get_train_sampler(self, dataset=None):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    trainer = InOrder(
        model=model,
        args=settings,
        train_dataset=examples(tokenizer, [*answers], steps * 4),
        data_collator=DataCollatorForSeq2Seq(tokenizer, padding=True),
        processing_class=tokenizer,
        callbacks=[] if callback is None or attach else [callback],
    )
    if callback is not None and attach:
        callback.attach(trainer)
    trainer.train()
    return trainer


def weights_of(trainer) -> dict[str, bytes]:
    return {
        name: one.detach().numpy().tobytes()
        for name, one in trainer.model.named_parameters()
        if one.requires_grad
    }


@pytest.mark.slow
def test_the_fall_is_seen_logged_and_left_as_a_series(tmp_path):
    from callmark.training import ToolUseCallback

    page, report = tmp_path / "calls.html", tmp_path / "calls.json"
    watch = ToolUseCallback(tiny_cases(8), every=6, html=page, json=report)
    trainer = trained(tmp_path, watch, steps=24, rate=1e-2)
    logged = [one for one in trainer.state.log_history if "callmark/valid_calls" in one]
    assert [one["step"] for one in logged] == [6, 12, 18, 24]
    rates = [one["callmark/valid_calls"] for one in logged]
    assert rates[-1] == 0.0
    usual = [one["step"] for one in trainer.state.log_history if "loss" in one]
    assert usual == list(range(3, 25, 3)), "to log must not eat the trainer's own lines"
    found = read_probe_report(report.read_bytes())
    assert found.series is not None
    assert [one.checkpoint.step for one in found.series.points] == [6, 12, 18, 24]
    assert found.results[0].result.decision == "regression"
    assert [one.result.ft_value for one in found.series.points] == rates
    assert "Valid calls, checkpoint by checkpoint" in page.read_text("utf-8")


@pytest.mark.slow
def test_the_weights_are_those_of_a_training_without_it(tmp_path):
    from callmark.training import ToolUseCallback

    plain = trained(tmp_path, steps=8)
    watch = ToolUseCallback(tiny_cases(3), every=2)
    watched = trained(tmp_path, watch, steps=8)
    assert len(watch.results) == 4
    assert weights_of(watched) == weights_of(plain)
    losses = [
        [one.get("loss") for one in each.state.log_history if "loss" in one]
        for each in (plain, watched)
    ]
    assert losses[0] == losses[1]


def test_train_flags_and_random_numbers_are_as_before():
    import torch

    from callmark.training import untouched

    model = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)).train()
    model[1].eval()  # frozen by hand, as people do
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    wanted = torch.rand(1).item(), random.random(), np.random.rand()
    torch.manual_seed(1), random.seed(1), np.random.seed(1)
    with suppress(RuntimeError), untouched(model):
        assert not model[0].training
        torch.rand(5), random.random(), np.random.rand(5)
        raise RuntimeError
    assert [one.training for one in model.modules()] == [True, True, False]
    assert (torch.rand(1).item(), random.random(), np.random.rand()) == wanted


@pytest.mark.slow
def test_it_stops_after_two_looks_in_a_row_if_asked_and_not_otherwise(tmp_path):
    from callmark.training import ToolUseCallback

    watch = ToolUseCallback(tiny_cases(16), every=8, stop=True)
    trainer = trained(tmp_path, watch, steps=64, rate=1e-2)
    assert trainer.state.global_step < 64
    lost = [one.evidence.num_lost for one in watch.results]
    assert len(lost) >= 2
    assert lost[-1] >= 8
    assert lost[-2] >= 8


@pytest.mark.parametrize("rate", few([0.9, 0.5, 0.98]))
def test_a_training_in_which_nothing_is_wrong_is_seldom_stopped(rate):
    """Ten looks at 64 cases; what a look finds is drawn anew each time."""
    from callmark.training import ToolUseCallback

    draw, stopped = np.random.default_rng(5), 0
    call = '{"name": "search_web", "arguments": {"query": "x"}}'
    known = fidelity(ToolUseCallback([case()])._spec, [call], [call])

    def look(base: list[bool]) -> tuple[Checkpoint, FidelityResult]:
        change = validity_change(base, (draw.random(64) < rate).tolist(), -0.05)
        evidence = msgspec.structs.replace(
            known.evidence, validity_delta=change.delta, p_value=change.p
        )
        return Checkpoint(label="look"), msgspec.structs.replace(known, evidence=evidence)

    for _ in range(300):
        watch, base = ToolUseCallback([case()], stop=True), (draw.random(64) < rate).tolist()
        for _ in range(10):
            watch._looks.append(look(base))
            if watch._is_lost():
                stopped += 1
                break
    assert stopped <= 0.05 * 300


@pytest.mark.slow
def test_given_as_a_callback_its_numbers_are_in_the_log_history(tmp_path):
    from callmark.training import ToolUseCallback

    watch = ToolUseCallback(tiny_cases(2), every=4)
    trainer = trained(tmp_path, watch, steps=4, attach=False)
    assert any("callmark/valid_calls" in one for one in trainer.state.log_history)


@pytest.mark.slow
def test_without_an_interval_it_looks_ten_times_at_most_and_at_the_end(tmp_path):
    from callmark.training import ToolUseCallback

    watch = ToolUseCallback(tiny_cases(2))
    trainer = trained(tmp_path, watch, steps=20)
    steps = [one["step"] for one in trainer.state.log_history if "callmark/valid_calls" in one]
    assert len(steps) <= 10
    assert steps[-1] == 20
    assert all(step % 2 == 0 for step in steps)


@pytest.mark.parametrize(
    ("words", "error", "what"),
    [
        ({"every": 0}, UsageError, "every: 0"),
        ({"cases": [{"prompt": "p"}]}, BadInput, "tool_spec"),
        ({"cases": [case()], "registry": "x"}, UsageError, "registry: cases are made only"),
        ({"cases": [case()], "spec": {"schema": "big"}}, BadInput, "schema"),
    ],
)
def test_what_is_wrong_is_said_before_the_training(words, error, what):
    from callmark.training import ToolUseCallback

    with pytest.raises(error, match=what):
        ToolUseCallback(**words)


def test_without_cases_64_are_made():
    from callmark.training import ToolUseCallback

    assert len(ToolUseCallback()._questions) == 64


def trl_trained(tmp_path, callback, *, steps: int, spoilt_from: int):
    import torch
    from datasets import Dataset
    from peft import LoraConfig
    from transformers import AutoModelForCausalLM, AutoTokenizer, set_seed
    from trl import SFTConfig, SFTTrainer

    torch.set_num_threads(1)
    set_seed(3)
    tokenizer = AutoTokenizer.from_pretrained(TINY / "model")
    right = (own_answers() * steps)[: spoilt_from * 4]
    rows = examples(tokenizer, right, steps * 4)
    masked = [
        {"input_ids": one["input_ids"], "completion_mask": [int(label != -100) for label in one["labels"]]}
        for one in rows
    ]  # fmt: skip

    class InOrder(SFTTrainer):
        def _get_train_sampler(self, dataset=None):
            return torch.utils.data.SequentialSampler(self.train_dataset)

    trainer = InOrder(
        model=AutoModelForCausalLM.from_pretrained(TINY / "model", dtype=torch.float32),
        args=SFTConfig(
            output_dir=str(tmp_path / "out"), max_steps=steps, per_device_train_batch_size=4,
            learning_rate=4e-3, lr_scheduler_type="constant", logging_steps=10, bf16=False,
            save_strategy="no", report_to=[], use_cpu=True, disable_tqdm=True, seed=3,
            gradient_checkpointing=False, max_length=None,
        ),
        train_dataset=Dataset.from_list(masked),
        processing_class=tokenizer,
        peft_config=LoraConfig(
            r=4, lora_alpha=8, lora_dropout=0.1, task_type="CAUSAL_LM",
            target_modules=["q_proj", "v_proj", "down_proj"],
        ),
    )  # fmt: skip
    if callback is not None:
        callback.attach(trainer)
    trainer.train()
    return trainer


@pytest.mark.slow
def test_in_trl_the_fall_is_seen_where_it_was_planted_and_can_end_the_training(tmp_path):
    pytest.importorskip("trl")
    from callmark.training import ToolUseCallback

    watch = ToolUseCallback(tiny_cases(24), every=20)
    watched = trl_trained(tmp_path, watch, steps=200, spoilt_from=100)
    rates = [one.ft_value for one in watch.results]
    assert len(rates) == 10
    series = watch.report().series
    assert series is not None
    # Planted after step 100: the look after it is the first that loses, and none before it does.
    assert [one.standing for one in series.points] == ["holds"] * 5 + ["loses"] * 5, rates
    assert series.first_losing == "step 120"
    plain = trl_trained(tmp_path, None, steps=200, spoilt_from=100)
    assert weights_of(watched) == weights_of(plain)
    stopping = ToolUseCallback(tiny_cases(24), every=20, stop=True)
    stopped = trl_trained(tmp_path, stopping, steps=200, spoilt_from=100)
    assert 120 < stopped.state.global_step <= 160


@pytest.mark.slow
def test_f22_a_fine_tune_that_was_trained_into_another_format_is_found(tmp_path, capsys):
    """The right calls without their tags: after some steps they are written that way, and every
    one of them stays valid."""
    import torch
    from dev.training.adapters import tuned
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from callmark.cli import main

    torch.set_num_threads(1)
    base = AutoModelForCausalLM.from_pretrained(TINY / "model")
    tokenizer = AutoTokenizer.from_pretrained(TINY / "model")
    model, learning = tuned(base, tokenizer, "switches", 7, tmp_path / "work")
    assert [done for done, _ in learning][-1] == 60
    model.save_pretrained(tmp_path / "switches")
    words = ["--base", TINY / "model", "--adapter", tmp_path / "switches", "--cases", TINY / "cases.jsonl", "--nulls", 0]  # fmt: skip
    changed = "format changed in 24 of 24: base writes hermes (24), tuned json (24)"
    assert main(["probe", *map(str, words)]) == 0
    shown = " ".join(capsys.readouterr().out.split())  # folded at 80 columns
    assert "valid calls: 24 of 24 before the fine-tune, 24 after" in shown
    assert f"format_kept warn: {changed}" in shown
    assert main(["probe", *map(str, words), "--schema", "minimal"]) == 1
    shown = " ".join(capsys.readouterr().out.split())  # folded at 80 columns
    assert shown.startswith("FORMAT CHANGED")
    assert f"format_kept fail: {changed}" in shown
