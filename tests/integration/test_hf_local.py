"""A local model through the whole run: it calls, sees the results, answers, and is scored."""

import hashlib
import json
import shutil
import socket
from pathlib import Path

import pytest
import torch
from tests.local_models import (
    FULL_TEMPLATE,
    PLAIN_TEMPLATE,
    RESPONSE_TEMPLATE,
    chain_model,
    edit_json,
    make_adapter,
    make_tokenizer,
    random_model,
)
from tests.unit.runners.test_hf_prompts import NASTY
from transformers import AutoTokenizer

from callmark.cli import main
from callmark.errors import FingerprintMismatch, UsageError
from callmark.records.results import Decoding
from callmark.records.seams import Conversation, Failure
from callmark.run.conclude import run
from callmark.run.loop import drive_at_once
from callmark.runners.hf.loading import adapter_folder
from callmark.runners.hf.local import open_local
from callmark.runners.options import LocalOptions, RunnerOptions

CALL = '<tool_call>\n{"name": "web.search", "arguments": {"q": "open issues", "top_k": 3}}\n</tool_call>'
ANSWER = "I looked it up. Integration: There are 4711 open issues."
# After a result the template begins the turn with another mark than before one.
ACTING = FULL_TEMPLATE.replace(
    "<|start|>assistant\n{% endif %}",
    "<|start|>assistant\n{{ '<|tell|>' if messages[-1].role == 'tool' else '<|act|>' }}{% endif %}",
)
ACTING_PLAINLY = PLAIN_TEMPLATE.replace(
    "<|start|>assistant\n{% endif %}",
    "<|start|>assistant\n"
    "{{ '<|tell|>' if '<tool_response>' in messages[-1].content else '<|act|>' }}{% endif %}",
)
CHAIN = {"<|act|>": CALL, "<|tell|>": ANSWER}
SAMPLES = 12


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tmp_path_factory.mktemp("models")


@pytest.fixture(scope="module")
def acting(models):
    return chain_model(models / "acting", CHAIN, template=ACTING)


@pytest.fixture(scope="module")
def babbling(models):
    return random_model(models / "babbling")


@pytest.fixture(scope="module")
def adapter(babbling):
    return make_adapter(babbling.parent / "adapter", babbling, scale=0.5)


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)


class World:
    """A dataset with its fixtures, and a way to run a model on it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dataset, self.out = folder / "dataset.jsonl", folder / "out" / "results.jsonl"
        (folder / "fixtures").mkdir()
        fixture = {"name": "web.search", "key": {"q": "Open issues"}, "result": {"count": 4711}}
        (folder / "fixtures" / "all.jsonl").write_text(json.dumps(fixture) + "\n")
        self.write({})

    def write(self, header, prompts=None) -> None:
        wanted = [{"name": "web.search", "arguments": {"q": "open issues"}}]
        items = [
            {
                "prompt": f"How many open issues has project {number}?"
                if not prompts
                else prompts[number],
                "metadata": {
                    "sample_id": f"s{number:02}",
                    "call_sequence": wanted,
                    "tools": ["web.search"],
                },
            }
            for number in range(len(prompts) if prompts else SAMPLES)
        ]
        head = {"__header__": True, "dataset_version": "1", "span_extractor": "marker", **header}
        self.dataset.write_text("".join(json.dumps(one) + "\n" for one in (head, *items)), "utf-8")

    def config(self, model, **settings):
        return {
            "dataset": str(self.dataset),
            "fixtures": str(self.folder / "fixtures"),
            "runner": "hf_local",
            "model": str(model),
            "out": str(self.out),
            "report": str(self.out.with_name("report.json")),
            "max_tokens": 24,
            **settings,
        }

    def run(self, model, *, progress=None, **settings):
        return run(self.config(model, restart=True, **settings), progress=progress).report

    def results(self):
        return [json.loads(line) for line in self.out.read_text("utf-8").splitlines()]

    def outputs(self, model, **settings):
        self.run(model, **settings)
        return [(one["sample_id"], one["model_output"]) for one in self.results()]

    def refused(self, capfd, model, *flags):
        """The message of a run that must end with 2 before anything is written."""
        capfd.readouterr()
        words = ["run", "--in", self.dataset, "--runner", "hf_local", "--out", self.out, *flags]
        assert main([*map(str, words), *(["--model", str(model)] if model else [])]) == 2
        shown = capfd.readouterr()
        assert shown.out == ""
        lines = [line for line in shown.err.splitlines() if "error: " in line]
        assert len(lines) == len(shown.err.splitlines()) == 1
        assert not self.out.parent.exists() or not list(self.out.parent.iterdir())
        return lines[0]


@pytest.fixture
def world(tmp_path):
    return World(tmp_path)


def test_d60_the_model_sees_what_its_calls_returned_and_is_scored_on_it(world, acting):
    report = world.run(acting)
    for line in world.results():
        (call,) = line["tool_trace"]
        assert (call["status"], call["result"], call["turn"]) == ("ok", {"count": 4711}, 1)
        assert (line["model_output"], line["stop"]) == (ANSWER, "answer")
        assert len(line["turns"]) == 2
        assert line["scores"]["lax"]["f1"] == line["scores"]["strict"]["f1"] == 1.0
    assert report.metrics["integration_f1_macro_lax"].value == 1.0
    about = report.provenance["local_model"]
    assert (about["tools_block"], about["batching"]) == ("native", "prefix")
    assert about["determinism"] == "strict"
    assert {"torch", "transformers", "tokenizers"} <= set(about["libraries"])
    measured = report.timing.more
    assert measured["completion_tokens"] == 4 * SAMPLES
    assert measured["computed_prompt_tokens"] < measured["prompt_tokens"] / 2


@pytest.mark.parametrize("response_template", [None, RESPONSE_TEMPLATE], ids=["text", "declared"])
def test_a_template_that_drops_tools_evaluates_the_same_model_alike(
    world, models, response_template
):
    name = f"plain-{response_template is None}"
    folder = chain_model(
        models / name, CHAIN, template=ACTING_PLAINLY, response_template=response_template
    )
    report = world.run(folder)
    assert {line["model_output"] for line in world.results()} == {ANSWER}
    assert report.metrics["integration_f1_macro_lax"].value == 1.0
    assert report.provenance["local_model"]["tools_block"] == "fallback"
    assert any("does not render tools" in one for one in report.warnings)


@pytest.mark.slow
def test_batches_do_not_change_a_result_drawn_or_not(world, babbling):
    for settings in ({}, {"temperature": 1.0, "top_p": 0.9, "seed": 3}):
        single = world.outputs(babbling, batch_size=1, max_turns=2, **settings)
        assert len({output for _, output in single}) > 2
        for size in (8, "auto"):
            assert world.outputs(babbling, batch_size=size, max_turns=2, **settings) == single


def test_a41_the_seed_decides_what_is_drawn(world, babbling):
    first = world.outputs(babbling, temperature=1.0, seed=3, max_turns=1)
    assert world.outputs(babbling, temperature=1.0, seed=3, max_turns=1) == first
    assert world.outputs(babbling, temperature=1.0, seed=4, max_turns=1) != first
    assert {line["decoding"]["seed"] for line in world.results()} == {4}


def test_trials_of_one_sample_are_drawn_apart(world, babbling):
    world.run(babbling, temperature=1.0, repeat=2, max_turns=1)
    outputs = [line["model_output"] for line in world.results()]
    assert len(set(outputs)) == 2 * SAMPLES


def test_a94_a96_a97_d55_determinism_mode_is_greedy_on_one_thread(world, babbling):
    seen = set()

    def look(_):
        flags = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
        seen.add((*flags, torch.initial_seed()))

    greedy = world.outputs(babbling, max_turns=2)
    settings = {"determinism_mode": True, "temperature": 0.7, "seed": 9, "max_turns": 2}
    assert world.outputs(babbling, progress=look, **settings) == greedy
    assert seen == {(1, True, 9)}
    for line in world.results():
        assert (line["decoding"]["temperature"], line["decoding"]["top_p"]) == (0.0, 1.0)
    report = world.run(babbling, **settings)
    assert report.provenance["local_model"]["batching"] == "equal"


def test_a_run_that_was_interrupted_ends_as_if_it_had_not_been(world, babbling):
    settings = world.config(babbling, max_turns=2, temperature=1.0)
    run(settings)
    whole = world.out.read_bytes()
    world.out.unlink()

    def stop(standing):
        if standing.finished == 5:
            raise KeyboardInterrupt

    assert run(settings, progress=stop).exit_code == 130
    run({**settings, "resume": True})
    assert world.out.read_bytes() == whole


def test_a62_the_model_is_fingerprinted_by_its_bytes(world, babbling, adapter, tmp_path):
    def fingerprint(folder, **settings):
        return world.run(folder, limit=1, max_turns=1, **settings).header.model_fingerprint

    copy = Path(shutil.copytree(babbling, tmp_path / "copy"))
    plain = fingerprint(babbling)
    assert fingerprint(copy) == plain
    assert fingerprint(babbling, adapter=str(adapter)) != plain
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-2] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    changed = fingerprint(copy)
    edit_json(copy / "generation_config.json", eos_token_id=[2, 3])
    assert len({plain, changed, fingerprint(copy)}) == 3


def test_the_runner_is_fingerprinted_by_all_that_shapes_an_answer(world, babbling, models):
    other = random_model(models / "other", tokenizer=make_tokenizer(PLAIN_TEMPLATE))
    made = [
        world.run(folder, limit=1, max_turns=1, **settings).header.runner_fingerprint
        for folder, settings in (
            (babbling, {}),
            (other, {}),
            (babbling, {"dtype": "bfloat16"}),
            (babbling, {"batch_size": 4}),
            (babbling, {"determinism_mode": True}),
            (babbling, {"max_tokens": 25}),
        )
    ]
    assert len(set(made)) == len(made)


def test_a114_the_tokenizer_is_recorded_and_compared_with_what_is_pinned(world, babbling):
    found = world.run(babbling, limit=1, max_turns=1).header.tokenizer_fingerprint
    assert set(found) == {"id", "sha256", "normalizer"}
    assert found["sha256"] == hashlib.sha256((babbling / "tokenizer.json").read_bytes()).hexdigest()
    assert world.results()[0]["fingerprints"]["tokenizer_fingerprint"] == found
    world.write({"tokenizer_fingerprint": found})
    report = world.run(babbling, limit=1, max_turns=1)
    assert report.provenance["pinned"]["tokenizer_fingerprint"] == "equal"
    world.write({"tokenizer_fingerprint": {**found, "sha256": "0" * 64}})
    with pytest.raises(FingerprintMismatch, match="tokenizer_fingerprint"):
        world.run(babbling, limit=1)


def test_a14_a_local_run_opens_no_socket(world, acting, monkeypatch):
    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert world.run(acting, limit=2).counts.eligible == 2


def test_nothing_but_the_report_is_printed(world, babbling, capfd):
    world.run(babbling, limit=2, max_turns=1)
    shown = capfd.readouterr()
    assert (shown.out, shown.err) == ("", "")


def test_an_adapter_is_put_on_the_model(world, babbling, adapter):
    plain = world.outputs(babbling, max_turns=1)
    assert world.outputs(babbling, adapter=str(adapter), max_turns=1) != plain
    report = world.run(babbling, adapter=str(adapter), limit=1, max_turns=1)
    assert not report.warnings


def test_an_adapter_that_changes_nothing_or_has_another_base_is_a_warning(
    world, babbling, tmp_path
):
    nothing = make_adapter(tmp_path / "nothing", babbling, scale=0.0)
    edit_json(nothing / "adapter_config.json", base_model_name_or_path="org/another-7b")
    warnings = world.run(babbling, adapter=str(nothing), limit=1, max_turns=1).warnings
    assert any("changes nothing" in one for one in warnings)
    assert any("made for org/another-7b" in one for one in warnings)


@pytest.mark.parametrize(
    ("base", "warns"), [("babbling", False), ("other", True), ("a-name", False), ("o/a-name", True)]
)
def test_the_base_of_an_adapter_is_told_by_its_weights(
    world, babbling, adapter, models, tmp_path, monkeypatch, base, warns
):
    """A copy under another name is the same model, another model in the place that the adapter
    names is not; a bare name says nothing."""
    monkeypatch.chdir(models)
    random_model(models / "other", seed=9)
    copied, named = tmp_path / "copied", tmp_path / "named"
    shutil.copytree(babbling, copied)
    shutil.copytree(adapter, named)
    edit_json(named / "adapter_config.json", base_model_name_or_path=base)
    warnings = world.run(copied, adapter=str(named), limit=1, max_turns=1).warnings
    assert any(f"made for {base}" in one for one in warnings) is warns


def test_prompts_and_answers_beyond_the_context_are_the_models_outcome(models):
    short = random_model(models / "short", max_position_embeddings=60)
    with opened(short, max_tokens=None) as runner:
        drive_at_once(runner.ready())
        fits, exceeds = drive_at_once(
            runner.answer([conversation("Hello"), conversation("x" * 60, 2)])
        )
        assert (exceeds.text, exceeds.finish) == ("", "context_exceeded")
        assert fits.finish == "length"
        prompt = "suser\nHelloe\nsassistant\n"  # a letter for each special token
        assert runner.observed().measured["completion_tokens"] == 60 - len(prompt)


def test_an_answer_at_the_limit_is_flagged(world, babbling):
    world.run(babbling, max_turns=1, max_tokens=3, limit=1)
    assert world.results()[0]["stop"] == "truncated"


def test_end_tokens_of_the_template_and_of_the_model_end_a_turn(models):
    chain = {"<|act|>": "one ", "one ": "two", "two": "<|end|>", "<|end|>": "never"}
    for ends, tokens in ((["<|stop|>"], 3), (["<|stop|>", "two"], 2)):
        folder = chain_model(models / f"ends-{tokens}", chain, template=ACTING)
        ids = AutoTokenizer.from_pretrained(folder).convert_tokens_to_ids(ends)
        edit_json(folder / "generation_config.json", eos_token_id=ids)
        with opened(folder) as runner:
            drive_at_once(runner.ready())
            (reply,) = drive_at_once(runner.answer([conversation("Hello")]))
            assert (reply.text, reply.finish) == ("one two", "stop")
            assert runner.observed().measured["completion_tokens"] == tokens


def test_end_tokens_that_are_never_produced_are_told_before_the_run(models):
    template = PLAIN_TEMPLATE.replace("<|end|>", " (over)")
    otherwise = random_model(models / "ends-otherwise", tokenizer=make_tokenizer(template))
    unknown = random_model(models / "ends-unknown", tokenizer=make_tokenizer(template))
    edit_json(unknown / "generation_config.json", eos_token_id=100_000)
    edit_json(unknown / "config.json", eos_token_id=100_000)
    edit_json(unknown / "tokenizer_config.json", eos_token=None)
    for folder, told in (
        (otherwise, ["(over)"]),
        (unknown, ["(over)", "none of them an end token (100000)"]),
        (random_model(models / "ends-well"), []),
    ):
        with opened(folder) as runner:
            drive_at_once(runner.ready())
            warnings = [one for one in runner.observed().warnings if "only --max-tokens" in one]
        assert len(warnings) == len(told)
        assert all(part in one for part, one in zip(told, warnings, strict=True))


def opened(folder, *, raw=False, **decoding):
    return open_local(
        RunnerOptions(
            model=str(folder),
            decoding=Decoding(**{"max_tokens": 8, **decoding}),
            tool_registry_sha256="",
            raw_prompt=raw,
            local=LocalOptions(),
        )
    )


def conversation(text, number=1):
    message = {"role": "user", "content": text}
    return Conversation(sample_id=f"s{number}", trial=0, turn=1, messages=[message], tools=())


@pytest.mark.parametrize("raw", [False, True], ids=["j2", "tmpl"])
def test_nasty_prompts_reach_the_model_unchanged(world, babbling, tmp_path, raw):
    """The tokens that the model was given, decoded, hold the prompt of the dataset to the byte."""
    wrapper = tmp_path / ("wrapper.tmpl" if raw else "wrapper.j2")
    wrapper.write_text(
        "User: $user\nAssistant:" if raw else '{"user": "{{ user }}"}', encoding="utf-8"
    )
    texts = [text for name, text in NASTY.items() if name != "50 kB"]
    world.write({}, prompts=texts)
    world.run(babbling, prompt_wrapper=str(wrapper), max_turns=1)
    with opened(babbling, raw=raw) as runner:
        drive_at_once(runner.ready())
        for text in [*texts, NASTY["50 kB"][:6000]]:
            wrapped = f"User: {text}\nAssistant:" if raw else text
            ids = runner._asked(conversation(wrapped)).prompt.ids
            shown = runner._tokenizer.decode(ids)
            assert shown == wrapped if raw else f"<|start|>user\n{text}<|end|>\n" in shown


def test_a_raw_prompt_goes_on_with_the_models_own_words(world, models, tmp_path):
    chain = {":": CALL, "\n": ANSWER}
    folder = chain_model(models / "raw", chain, template=None)
    edit_json(folder / "generation_config.json", eos_token_id=2)
    wrapper = tmp_path / "wrapper.tmpl"
    wrapper.write_text("$user\nAssistant:", encoding="utf-8")
    report = world.run(folder, prompt_wrapper=str(wrapper))
    assert {line["model_output"] for line in world.results()} == {ANSWER}
    assert report.metrics["integration_f1_macro_lax"].value == 1.0
    assert report.provenance["local_model"]["tools_block"] == "raw"


def test_what_cannot_be_rendered_is_lost_by_the_infrastructure_not_by_the_model(babbling):
    with opened(babbling) as runner:
        drive_at_once(runner.ready())
        picture = [{"type": "image_url", "image_url": {"url": "x"}}]
        failed, answered = drive_at_once(
            runner.answer([conversation(picture), conversation("Hello", 2)])
        )
        assert isinstance(failed, Failure)
        assert "no text (image_url)" in failed.reason
        assert answered.text


def test_a_token_without_weights_loses_the_trial_and_not_the_run(models):
    tokenizer = make_tokenizer(words=["<odd>"])
    folder = random_model(models / "odd", tokenizer=tokenizer, vocab_size=len(tokenizer) - 1)
    with opened(folder) as runner:
        drive_at_once(runner.ready())
        odd, empty_handed = drive_at_once(
            runner.answer([conversation("<odd>"), conversation("Hello", 2)])
        )
        assert odd == Failure("the prompt holds token 260, which the model does not know")
        assert empty_handed.text


def test_the_views_of_a_probe_are_adapters_switched_on_one_model(babbling, adapter):
    asked = [conversation(f"Question {number}", number) for number in range(9)]
    with opened(babbling) as runner:
        drive_at_once(runner.ready())
        base = runner.texts(asked)
        runner.loaded.add_adapter("tuned", adapter_folder(str(adapter)))
        with runner.loaded.adapter("tuned"):
            tuned = runner.texts(asked)
        assert runner.texts(asked) == base
    assert tuned != base


def test_without_tool_choice_no_tools_are_shown(world, babbling):
    with opened(babbling, tool_choice="none") as runner:
        drive_at_once(runner.ready())
        tools = [{"type": "function", "function": {"name": "web.search"}}]
        asked = Conversation(
            sample_id="s", trial=0, turn=1, messages=conversation("Hi").messages, tools=tools
        )
        assert "web.search" not in runner._tokenizer.decode(runner._asked(asked).prompt.ids)
    with pytest.raises(UsageError, match="--tool-choice: 'required' cannot be forced"):
        world.run(babbling, tool_choice="required")


class TestBadInput:
    """One sentence before the first generation, exit 2, nothing written."""

    def test_no_model(self, world, capfd):
        assert "--model: hf_local needs one" in world.refused(capfd, None)

    def test_no_such_folder(self, world, capfd):
        assert "there is no such folder" in world.refused(capfd, "org/model")

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("model.safetensors", "has no weights: model.safetensors is missing"),
            ("config.json", "has no config.json"),
            ("tokenizer.json", "has no tokenizer"),
            ("chat_template.jinja", "has no chat template"),
        ],
    )
    def test_a_part_is_missing(self, world, babbling, capfd, tmp_path, name, said):
        copy = Path(shutil.copytree(babbling, tmp_path / "copy"))
        (copy / name).unlink()
        assert said in world.refused(capfd, copy)

    def test_pickled_weights(self, world, babbling, capfd, tmp_path):
        copy = Path(shutil.copytree(babbling, tmp_path / "copy"))
        (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
        assert "only pickled weights (pytorch_model.bin)" in world.refused(capfd, copy)

    def test_broken_weights(self, world, babbling, capfd, tmp_path):
        copy = Path(shutil.copytree(babbling, tmp_path / "copy"))
        (copy / "model.safetensors").write_bytes(b"nonsense")
        assert "the model cannot be loaded" in world.refused(capfd, copy)

    def test_a_template_that_fails(self, world, babbling, capfd, tmp_path):
        copy = Path(shutil.copytree(babbling, tmp_path / "copy"))
        (copy / "chat_template.jinja").write_text("{{ raise_exception('not today') }}")
        assert "its chat template fails: not today" in world.refused(capfd, copy)

    def test_an_adapter_for_another_base(self, world, babbling, capfd, tmp_path):
        other = random_model(tmp_path / "other", hidden_size=64)
        adapter = make_adapter(tmp_path / "adapter", other)
        said = world.refused(capfd, babbling, "--adapter", adapter)
        assert "does not fit the model" in said
        assert "size mismatch" in said

    def test_no_such_adapter(self, world, babbling, capfd):
        said = world.refused(capfd, babbling, "--adapter", "nowhere")
        assert "--adapter: nowhere: there is no such folder" in said

    def test_an_unknown_device(self, world, babbling, capfd):
        said = world.refused(capfd, babbling, "--device", "tpu")
        assert "--device: there is no 'tpu' here; there is: cpu" in said

    def test_a_tokenizer_of_another_model(self, world, capfd, tmp_path):
        folder = random_model(tmp_path / "small", vocab_size=60)
        assert "they do not belong together" in world.refused(capfd, folder)

    def test_weights_that_are_no_numbers(self, world, babbling, capfd, tmp_path):
        from safetensors.torch import load_file, save_file

        copy = Path(shutil.copytree(babbling, tmp_path / "copy"))
        weights = load_file(copy / "model.safetensors")
        weights["model.norm.weight"].fill_(float("nan"))
        save_file(weights, copy / "model.safetensors", metadata={"format": "pt"})
        assert "computes no numbers" in world.refused(capfd, copy)
