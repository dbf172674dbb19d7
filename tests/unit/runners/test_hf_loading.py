"""Loading: what does not fit is told in one sentence, what fits is switched and never loaded again."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from tests.local_models import edit_json, make_adapter, make_tokenizer, random_model
from transformers import AutoModelForCausalLM

from callmark.errors import UsageError
from callmark.runners.hf.generate import Generator, Prompt, TokenChoice
from callmark.runners.hf.loading import (
    adapter_folder,
    device_of,
    load_model,
    load_tokenizer,
    model_folder,
    quiet_libraries,
    steady_computing,
)

ROOT = Path(__file__).parents[3]
IDS = list(range(30, 60))
EXTRA = ("torch", "transformers", "peft", "safetensors", "functorch")


@pytest.fixture(scope="module", autouse=True)
def quiet():
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # two spin beside other work
    with quiet_libraries():
        yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return random_model(tmp_path_factory.mktemp("models") / "base")


@pytest.fixture(scope="module")
def adapters(base):
    return [
        make_adapter(base.parent / f"adapter-{seed}", base, seed=seed, scale=0.5) for seed in (1, 2)
    ]


@pytest.fixture
def copied(base, tmp_path):
    return Path(shutil.copytree(base, tmp_path / "base"))


def loaded_from(folder):
    return load_model(model_folder(str(folder)), dtype="float32", device=torch.device("cpu"))


def test_adapters_are_switched_on_one_model_that_stays_in_memory(base, adapters):
    loaded = loaded_from(base)
    alone = loaded.logits(IDS)
    model = loaded.model
    for name, folder in zip(("one", "two"), adapters, strict=True):
        loaded.add_adapter(name, adapter_folder(str(folder)))
    assert torch.equal(loaded.logits(IDS), alone)  # loaded is not yet switched on
    seen = {}
    for name in ("one", "two", None, "one"):
        with loaded.adapter(name):
            logits = loaded.logits(IDS)
        assert torch.equal(seen.setdefault(name, logits), logits)
    assert torch.equal(seen[None], alone)
    assert not torch.equal(seen["one"], seen["two"])
    assert loaded.model is model


def test_an_adapter_computes_as_if_it_were_the_only_one(base, adapters):
    loaded = loaded_from(base)
    for name, folder in zip(("one", "two"), adapters, strict=True):
        loaded.add_adapter(name, adapter_folder(str(folder)))
    from peft import PeftModel

    alone = PeftModel.from_pretrained(AutoModelForCausalLM.from_pretrained(base), adapters[1])
    with torch.inference_mode(), loaded.adapter("two"):
        wanted = alone.eval()(input_ids=torch.tensor([IDS])).logits[0, -1]
        assert torch.allclose(loaded.logits(IDS), wanted, atol=1e-5)


def test_views_in_batches_equal_one_view_and_one_prompt_at_a_time(base, adapters):
    """Adapters switched between batches with a shared beginning give what each gives alone."""
    loaded = loaded_from(base)
    for name, folder in zip(("one", "two"), adapters, strict=True):
        loaded.add_adapter(name, adapter_folder(str(folder)))
    generator = Generator(loaded.model, TokenChoice(end_ids=frozenset({2})), IDS)
    prompts = [Prompt([*IDS, 60 + number, *IDS[: number % 5]], 8) for number in range(10)]
    for name in ("one", None, "two"):
        with loaded.adapter(name):
            together = generator.generate(prompts)
        alone = loaded_from(base)
        if name is not None:
            alone.add_adapter(name, adapter_folder(str(adapters[("one", "two").index(name)])))
        single = Generator(alone.model, TokenChoice(end_ids=frozenset({2})), IDS, "equal")
        with alone.adapter(name):
            assert together == [single.generate([prompt])[0] for prompt in prompts]


def test_an_adapter_that_changes_nothing_is_found_out(base, adapters, tmp_path):
    loaded = loaded_from(base)
    loaded.add_adapter("real", adapter_folder(str(adapters[0])))
    nothing = make_adapter(tmp_path / "nothing", base, scale=0.0)
    loaded.add_adapter("nothing", adapter_folder(str(nothing)))
    assert loaded.changes("real", IDS)
    assert not loaded.changes("nothing", IDS)


def fit(folder, adapter):
    loaded_from(folder).add_adapter("x", adapter_folder(str(adapter)))


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"hidden_size": 64}, "size mismatch"),
        ({"num_hidden_layers": 3}, "the model has no place for .*layers.2"),
        ({"num_hidden_layers": 1}, "it lacks weights for .*layers.1"),
    ],
    ids=["other width", "more layers", "fewer layers"],
)
def test_an_adapter_for_another_base_is_refused(base, tmp_path, config, said):
    other = random_model(tmp_path / "other", **config)
    adapter = make_adapter(tmp_path / "adapter", other)
    with pytest.raises(UsageError, match=rf"--adapter: .*does not fit.*other\): .*{said}") as error:
        fit(base, adapter)
    assert "\n" not in str(error.value)


def test_an_adapter_for_another_architecture_is_refused(base, tmp_path):
    adapter = make_adapter(tmp_path / "adapter", base)
    edit_json(adapter / "adapter_config.json", target_modules=["c_attn"])
    with pytest.raises(UsageError, match=r"does not fit the model .*c_attn"):
        fit(base, adapter)


def test_an_adapter_that_is_a_prompt_is_refused(base, tmp_path):
    adapter = make_adapter(tmp_path / "adapter", base)
    settings = '{"peft_type": "PROMPT_TUNING", "task_type": "CAUSAL_LM", "num_virtual_tokens": 4}'
    (adapter / "adapter_config.json").write_text(settings)
    with pytest.raises(UsageError, match="PROMPT_TUNING puts tokens into the prompt; use LoRA"):
        fit(base, adapter)


def test_broken_weights_are_refused(copied):
    weights = copied / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:200])
    with pytest.raises(UsageError, match="the model cannot be loaded") as error:
        loaded_from(copied)
    assert "\n" not in str(error.value)


def test_weights_that_are_not_all_there_are_refused_instead_of_drawn(copied):
    edit_json(copied / "config.json", num_hidden_layers=3)
    with pytest.raises(UsageError, match=r"its weights lack model\.layers\.2"):
        loaded_from(copied)


@pytest.mark.parametrize(
    "change",
    [
        {"model_type": "never-heard-of"},
        {"model_type": "mine", "auto_map": {"AutoConfig": "code.Config"}},
        {"hidden_size": "wide"},
        {"hidden_size": 64},
    ],
    ids=["unknown", "own code", "wrong type", "wrong shape"],
)
def test_a_config_that_does_not_work_is_refused(copied, change):
    (copied / "code.py").write_text("raise SystemExit('its code was run')\n")
    edit_json(copied / "config.json", **change)
    with pytest.raises(UsageError, match="cannot be loaded") as error:
        loaded_from(copied)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"version": "1.0", "model": {"type": "X"}}'])
def test_a_broken_tokenizer_is_refused(copied, text):
    (copied / "tokenizer.json").write_text(text)
    with pytest.raises(UsageError, match="its tokenizer cannot be loaded"):
        load_tokenizer(model_folder(str(copied)))


@pytest.mark.parametrize("name", ["tpu", "cuda:99", "", "CPU", "cuda:x"])
def test_an_unknown_device_is_refused_with_those_that_are_there(name):
    with pytest.raises(UsageError, match=f"--device: there is no {name!r} here; there is: cpu"):
        device_of(name)


def test_auto_is_the_fastest_device_that_is_there(monkeypatch):
    assert device_of("auto") == torch.device("cpu")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert device_of("auto").type == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert device_of("auto").type == "cuda"


def test_a96_a97_threads_flags_and_seed_are_set_and_given_back(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    torch.set_num_threads(2)
    with steady_computing(7, determinism_mode=True):
        assert torch.get_num_threads() == 1
        assert torch.are_deterministic_algorithms_enabled()
        assert torch.initial_seed() == 7
    assert torch.get_num_threads() == 2
    assert not torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(1)


def test_one_thread_unless_somebody_asks_for_more(monkeypatch):
    torch.set_num_threads(2)
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with steady_computing(0, determinism_mode=False):
        assert torch.get_num_threads() == 2
    with steady_computing(0, determinism_mode=True):
        assert torch.get_num_threads() == 1
    monkeypatch.delenv("OMP_NUM_THREADS")
    with steady_computing(0, determinism_mode=False):
        assert torch.get_num_threads() == 1
    torch.set_num_threads(1)


def test_short_floats_bear_batches_too(base):
    loaded = load_model(model_folder(str(base)), dtype="bfloat16", device=torch.device("cpu"))
    choice = TokenChoice(end_ids=frozenset({2}), settles=False)
    assert Generator(loaded.model, choice, IDS).batching == "prefix"


@pytest.fixture(scope="module")
def bare_packages(tmp_path_factory):
    """The installed packages without those of the extra."""
    folder = tmp_path_factory.mktemp("packages")
    for path in Path(sysconfig.get_paths()["purelib"]).iterdir():
        if not path.name.startswith(EXTRA) and not (folder / path.name).exists():
            (folder / path.name).symlink_to(path)
    return folder


def python(packages, *arguments):
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{packages}"}
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def test_a22_the_runner_can_be_imported_without_torch(bare_packages):
    code = "import callmark.runners.hf.local, sys; assert 'torch' not in sys.modules"
    finished = python(bare_packages, "-c", code)
    assert finished.returncode == 0, finished.stderr


def test_a_missing_extra_is_named_in_one_sentence(bare_packages, base, tmp_path):
    dataset = tmp_path / "dataset.jsonl"
    dataset.write_text('{"__header__": true}\n{"prompt": "Hello", "metadata": {}}\n')
    out = tmp_path / "results.jsonl"
    words = ["run", "--in", dataset, "--runner", "hf_local", "--model", base, "--out", out]
    finished = python(bare_packages, "-m", "callmark", *map(str, words))
    assert finished.returncode == 2
    said = "callmark: error: hf_local needs an extra: in a checkout, pip install '.[hf]'\n"
    assert finished.stderr == said
    assert [path.name for path in tmp_path.iterdir()] == ["dataset.jsonl"]


def test_the_tokenizer_is_the_one_of_the_folder(base):
    found = load_tokenizer(model_folder(str(base)))
    assert found("Größe 7")["input_ids"] == make_tokenizer()("Größe 7")["input_ids"]


def test_a_gguf_file_is_a_checkpoint_and_two_in_a_folder_have_to_be_named(tmp_path):
    file = tmp_path / "model-Q4.gguf"
    file.write_bytes(b"GGUF")
    for name in (file, tmp_path):
        found = model_folder(str(name))
        assert (found.gguf, found.quantization, found.weights) == (file.name, "gguf", (file,))
        assert found.tokenizer == file
    (tmp_path / "model-Q8.gguf").write_bytes(b"GGUF")
    with pytest.raises(UsageError, match="holds 2 GGUF files: name one of them"):
        model_folder(str(tmp_path))
    assert model_folder(str(file)).gguf == file.name


def test_safetensors_beside_a_gguf_file_are_the_model(copied):
    (copied / "model-Q4.gguf").write_bytes(b"GGUF")
    assert model_folder(str(copied)).gguf is None


def test_how_quantised_weights_are_stored_is_known_before_they_are_loaded(copied):
    assert model_folder(str(copied)).quantization is None
    edit_json(copied / "config.json", quantization_config={"quant_method": "bitsandbytes"})
    assert model_folder(str(copied)).quantization == "bitsandbytes"
