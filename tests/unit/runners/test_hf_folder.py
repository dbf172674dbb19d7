"""What a folder must hold is checked before anything is loaded, and said in one sentence."""

import json

import pytest

from callmark.errors import UsageError
from callmark.runners.hf.loading import adapter_folder, end_tokens, model_folder

MODEL = {"config.json": "{}", "model.safetensors": "", "tokenizer.json": "{}"}
ADAPTER = {"adapter_config.json": '{"base_model_name_or_path": "org/base"}'}
SHARDS = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}


def written(folder, files):
    for name, text in files.items():
        (folder / name).write_text(text, "utf-8")
    return str(folder)


def without(name, **more):
    return {key: text for key, text in MODEL.items() if key != name} | more


BAD = {
    "no config": (without("config.json"), "has no config.json"),
    "an adapter": (ADAPTER, "this is an adapter: name it with --adapter"),
    "both": ({**MODEL, **ADAPTER}, "holds a model and an adapter"),
    "broken config": ({**MODEL, "config.json": "{"}, r"config.json: not JSON"),
    "config is a list": ({**MODEL, "config.json": "[]"}, "must be a JSON object"),
    "no weights": (without("model.safetensors"), "has no weights: model.safetensors is missing"),
    "other pickles": (
        without("model.safetensors") | {"training_args.bin": ""},
        "has no weights",
    ),
    "pickled": (
        without("model.safetensors") | {"pytorch_model.bin": ""},
        r"only pickled weights \(pytorch_model.bin\), which can run code",
    ),
    "a shard is missing": (
        without("model.safetensors")
        | {"model.safetensors.index.json": json.dumps(SHARDS), "model-1.safetensors": ""},
        r"model-2.safetensors is missing \(1 of 2",
    ),
    "index without a map": (
        without("model.safetensors") | {"model.safetensors.index.json": "{}"},
        "has no weight_map",
    ),
    "no tokenizer": (without("tokenizer.json"), "has no tokenizer: save it into this folder"),
}


@pytest.mark.parametrize(("files", "said"), BAD.values(), ids=BAD)
def test_bad_model_folders_get_one_sentence(tmp_path, files, said):
    with pytest.raises(UsageError, match=said) as caught:
        model_folder(written(tmp_path, files))
    assert "\n" not in str(caught.value)
    assert str(caught.value).startswith(f"--model: {tmp_path}")


def test_no_folder_a_file_and_no_name_are_told_apart(tmp_path):
    with pytest.raises(UsageError, match="hf_local needs one"):
        model_folder(None)
    with pytest.raises(UsageError, match="there is no such folder"):
        model_folder("org/some-model")
    (tmp_path / "model.safetensors").write_text("")
    with pytest.raises(UsageError, match="is a file: name the folder"):
        model_folder(str(tmp_path / "model.safetensors"))


def test_all_that_decides_an_answer_belongs_to_the_folder(tmp_path):
    more = {"chat_template.jinja": "", "generation_config.json": "{}", "README.md": ""}
    written(tmp_path, {**MODEL, **more})
    (tmp_path / "additional_chat_templates").mkdir()
    written(tmp_path / "additional_chat_templates", {"tool_use.jinja": ""})
    found = model_folder(str(tmp_path))
    names = {path.name for path in (*found.weights, *found.vocabulary, *found.settings)}
    assert names == {*MODEL, "chat_template.jinja", "generation_config.json", "tool_use.jinja"}


def test_sharded_weights_are_all_found(tmp_path):
    shards = dict.fromkeys(SHARDS["weight_map"].values(), "")
    index = {"model.safetensors.index.json": json.dumps(SHARDS)}
    found = model_folder(written(tmp_path, without("model.safetensors") | index | shards))
    assert [path.name for path in found.weights] == sorted(shards)


BAD_ADAPTERS = {
    "no config": ({"adapter_model.safetensors": ""}, "has no adapter_config.json"),
    "no weights": (ADAPTER, "adapter_model.safetensors is missing"),
    "pickled": ({**ADAPTER, "adapter_model.bin": ""}, "only pickled weights"),
    "broken": ({"adapter_config.json": "nonsense"}, "adapter_config.json: not JSON"),
}


@pytest.mark.parametrize(("files", "said"), BAD_ADAPTERS.values(), ids=BAD_ADAPTERS)
def test_bad_adapter_folders_get_one_sentence(tmp_path, files, said):
    with pytest.raises(UsageError, match=f"--adapter: .*{said}"):
        adapter_folder(written(tmp_path, files))


def test_an_adapter_knows_its_base(tmp_path):
    found = adapter_folder(written(tmp_path, {**ADAPTER, "adapter_model.safetensors": ""}))
    assert found.base == "org/base"


@pytest.mark.parametrize(
    ("config", "generation", "ends"),
    [
        ("{}", None, set()),
        ('{"eos_token_id": 2}', None, {2}),
        ('{"eos_token_id": 2}', '{"eos_token_id": [3, 4]}', {2, 3, 4}),
        ('{"eos_token_id": null}', '{"eos_token_id": "x"}', set()),
    ],
)
def test_the_models_own_end_tokens_are_read(tmp_path, config, generation, ends):
    files = {"config.json": config} | ({"generation_config.json": generation} if generation else {})
    written(tmp_path, files)
    assert end_tokens(tmp_path) == ends
