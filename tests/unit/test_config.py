"""Settings: what wins over what, and every wrong key or value named with its place."""

import os
import re
from pathlib import Path

import pytest

from callmark.config import RunConfig, load_config, with_header, write_template
from callmark.errors import CannotWrite, UsageError
from callmark.plugins import plugin_scope
from callmark.records.samples import Header
from callmark.resources import config_template, default_config


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def yaml(folder):
    def write(text, name="settings.yaml"):
        path = folder / name
        path.write_text(text, "utf-8")
        return path

    return write


def message_of(config, flags=None) -> str:
    with pytest.raises(UsageError) as caught:
        load_config(config, flags or {})
    return str(caught.value).removeprefix(f"{config}")


def test_a18_the_shipped_file_is_what_a_run_has_by_default():
    """Every key of it is a setting, and a bare run has exactly its values."""
    config = load_config(None, {})
    shipped = default_config()
    gates = shipped.pop("gates")
    for key, value in shipped.items():
        ours = getattr(config, key)
        assert (list(ours) if isinstance(ours, tuple) else ours) == value, key
        assert config.source_of(key) == "default"
    assert [(layer.source, layer.gates) for layer in config.gates] == [("default", gates)]
    assert config.config_file is None


def test_flags_win_over_the_file_and_the_file_over_the_defaults(yaml):
    path = yaml("seed: 1\ntemperature: 0.5\nin: data.jsonl\n")
    config = load_config(path, {"seed": 2, "out": "o.jsonl"})
    assert (config.seed, config.temperature, config.max_tokens) == (2, 0.5, 1024)
    assert (config.dataset, config.out) == ("data.jsonl", "o.jsonl")
    sources = [config.source_of(name) for name in ("seed", "temperature", "max_tokens", "dataset")]
    assert sources == ["flag", "config", "default", "config"]
    assert config.config_file == str(path)


def test_callmark_yaml_in_the_folder_is_read_unless_another_is_named(yaml):
    yaml("seed: 7\n", "callmark.yaml")
    other = yaml("repeat: 2\n", "other.yaml")
    assert load_config(None, {}).seed == 7
    assert load_config(other, {}).seed == 42


def test_the_header_stands_between_defaults_and_config(yaml):
    header = Header(
        integration_span_cap=5,
        span_extractor="claims",
        seed=1,
        strict_keys=("a",),
        gates={"integration_coverage": {"bound": 0.5}},
    )
    path = yaml("span_extractor: marker\ngates: {integration_coverage: {bound: 0.7}}\n")
    config = with_header(load_config(path, {"seed": 9}), header)
    assert (config.integration_span_cap, config.span_extractor, config.seed) == (5, "marker", 9)
    assert config.strict_keys == ("a",)
    sources = [config.source_of(n) for n in ("integration_span_cap", "span_extractor", "seed")]
    assert sources == ["header", "config", "flag"]
    assert [layer.source for layer in config.gates] == ["default", "header", "config"]
    bounds = [layer.gates["integration_coverage"]["bound"] for layer in config.gates]
    assert bounds == [0.95, 0.5, 0.7]


def test_a_header_that_says_nothing_changes_nothing():
    config = load_config(None, {})
    assert with_header(config, Header()) == config


def test_a64_the_span_cap_is_three_by_default_and_the_headers_if_it_has_one():
    config = load_config(None, {})
    assert config.integration_span_cap == 3
    assert with_header(config, Header(integration_span_cap=5)).integration_span_cap == 5


def test_a_gate_without_a_shipped_bound_can_be_given_one_everywhere(yaml):
    bound = {"invented_argument_rate": {"bound": 0.05}}
    written = yaml("gates:\n  invented_argument_rate: {bound: 0.05}\n")
    for config in (
        load_config(None, {"gates": bound}),
        load_config(written, {}),
        with_header(load_config(None, {}), Header(gates=bound)),
    ):
        assert any(layer.gates == bound for layer in config.gates)


def test_unknown_gates_of_header_and_config_are_refused(yaml):
    config = load_config(None, {})
    with pytest.raises(UsageError) as caught:
        with_header(config, Header(gates={"privacy_ok": {}}))
    assert str(caught.value) == (
        "the header of the dataset: gates.privacy_ok: unknown gate; did you mean privacy_ok_rate?"
    )
    assert message_of(yaml("gates:\n  clarify_rate: {bound: 1}\n")) == (
        ":2: gates.clarify_rate: unknown gate; did you mean clarify_ok_rate?"
    )
    assert message_of(yaml("gates:\n  clarify_ok_rate: 0.5\n")) == (
        ":2: gates.clarify_ok_rate: must be an object, not 0.5"
    )
    for wrong in ("gates: [1]\n", "gates: []\n", "gates: 3\n"):
        assert message_of(yaml(wrong)) == ":1: gates: must be an object {gate: {field: value}}"
    assert len(load_config(yaml("gates:\n"), {}).gates) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("seed: 1\ntemprature: 0\n", ":2: temprature: unknown key; did you mean temperature?"),
        ("colour: red\n", ":1: colour: unknown key"),
        ("sources: {}\n", ":1: sources: unknown key"),
        ("repeat: many\n", ':1: repeat: must be a whole number, not a string: "many"'),
        ("repeat: 0\n", ":1: repeat: must be a whole number of at least 1: 0"),
        ("repeat:\n", ":1: repeat: must be a whole number, not null: null"),
        ("redact_pii: 1\n", ":1: redact_pii: must be true or false, not a whole number: 1"),
        ("seed: true\n", ":1: seed: must be a whole number, not true or false: true"),
        ("top_p: 1.5\n", ":1: top_p: must be a number of at most 1.0: 1.5"),
        ("temperature: .nan\n", ":1: temperature: must be a number of at least 0.0: a float"),
        ("temperature: .inf\n", ":1: temperature: must be a number of at most 100.0: a float"),
        ("privacy_echo: maybe\n", ':1: privacy_echo: must be allow or deny, not "maybe"'),
        ("parse_text: some\n", ':1: parse_text: must be auto, on or off, not "some"'),
        ("only: {a: 1}\n", ':1: only: must be a list, not an object: {"a":1}'),
        ("in: a\ndataset: b\n", ":1: in: the same as dataset: give one of them"),
        ("seed: 1\nseed: 2\n", ":2: seed: stands on line 1 too"),
        ("gates:\n  call_f1_macro: {bound: 1, bound: 2}\n",
         ":2: gates.call_f1_macro.bound: stands on line 2 too"),
        ("- seed\n", ":1: must hold `key: value` lines, see `callmark init`"),
        ("seed: [1\n", ":2: not YAML: expected ',' or ']', but got '<stream end>'"),
        ("seed: !!python/object:os.system {}\n",
         ":1: not YAML: could not determine a constructor for the tag"
         " 'tag:yaml.org,2002:python/object:os.system'"),
        ("? [a]\n: 1\n", None),
        ("1: 2\n", ":1: a key must be text: put it into quotes"),
        ("\x07\n", None),
    ],
)  # fmt: skip
def test_wrong_settings_are_named_with_file_line_and_key(yaml, text, message):
    found = message_of(yaml(text))
    assert message is None or found == message


def test_parse_text_off_is_text_although_yaml_reads_a_boolean(yaml):
    """`off` without quotes is false in YAML 1.1; what was meant is clear."""
    assert load_config(yaml("parse_text: off\n"), {}).parse_text == "off"
    assert load_config(yaml("parse_text: on\n"), {}).parse_text == "on"
    assert load_config(yaml("parse_text: 'off'\n"), {}).parse_text == "off"


def test_config_files_that_cannot_be_read(folder):
    assert message_of(folder / "no.yaml") == ": no such file"
    assert message_of(folder) == ": is a folder, a file is needed"
    (folder / "bytes.yaml").write_bytes(b"seed: \xff\xfe\n")
    assert message_of(folder / "bytes.yaml") == ":1: not UTF-8 (byte 6)"


def test_an_empty_file_changes_nothing(yaml):
    config = load_config(yaml("# nothing\n"), {})
    assert config.seed == 42


def test_wrong_flags_are_named_as_flags():
    expected = "--max-tokens: must be a whole number of at least 1: 0"
    assert message_of(None, {"max_tokens": 0}) == expected


@pytest.mark.parametrize(("index", "shards"), [(4, 4), (1, 1), (7, 2)])
def test_d53_a_shard_out_of_range_is_refused(index, shards):
    with pytest.raises(UsageError) as caught:
        load_config(None, {"num_shards": shards, "shard_index": index})
    assert str(caught.value) == (
        f"--shard-index: {index} is out of range:"
        f" with --num-shards {shards} it is 0 to {shards - 1}"
    )


@pytest.mark.parametrize("flags", [{"num_shards": 0}, {"shard_index": -1}, {"num_shards": -2}])
def test_d53_no_shards_and_negative_ones_are_refused(flags):
    with pytest.raises(
        UsageError, match=r"--(num-shards|shard-index): must be a whole number of at"
    ):
        load_config(None, flags)


def test_resume_and_restart_exclude_each_other():
    with pytest.raises(
        UsageError, match="--resume: cannot be combined with restart: give one or the other"
    ):
        load_config(None, {"resume": True, "restart": True})


@pytest.mark.parametrize("other", ["dataset", "model", "registry", "cache"])
def test_the_output_is_never_an_input(other):
    with pytest.raises(UsageError) as caught:
        load_config(None, {other: "x.jsonl", "out": "./x.jsonl"})
    name = other.replace("dataset", "in")
    assert str(caught.value) == (f"--out: ./x.jsonl is the file of --{name}: choose another one")
    with pytest.raises(UsageError, match="--report: y is the file of --out"):
        load_config(None, {"out": "y", "report": "y"})


@pytest.mark.parametrize(
    ("given", "allowed"), [(0, 0), (3, 3), ("3", 3), ("2%", 4), ("0.5%", 1), ("100%", 200)]
)
def test_max_errors_is_a_number_or_a_share(given, allowed):
    assert load_config(None, {"max_errors": given}).errors_allowed(200) == allowed


@pytest.mark.parametrize("given", ["many", "-1", "2 %", "%", "1e3%"])
def test_any_other_max_errors_is_refused(given):
    with pytest.raises(UsageError, match="--max-errors: must be a number such as 3"):
        load_config(None, {"max_errors": given})


def test_a_single_name_is_a_list_of_one(yaml):
    config = load_config(yaml("slice: long\nonly: 7\nurl_allowlist: a.com\n"), {})
    assert (config.slice, config.only, config.url_allowlist) == (("long",), ("7",), ("a.com",))
    assert load_config(None, {"only": ["a", "b"]}).only == ("a", "b")


# --- callmark init


def test_the_template_is_a_config_that_loads_and_is_never_overwritten(folder):
    path = folder / "new" / "callmark.yaml"
    write_template(path)
    config = load_config(path, {})
    assert config.dataset == "data/eval.jsonl"
    with pytest.raises(UsageError, match=r"callmark.yaml: exists already, and is left as it is"):
        write_template(path)
    with pytest.raises(CannotWrite, match="Not a directory"):
        write_template(path / "below")


def test_everything_that_the_template_teaches_is_true(yaml):
    """Without its comment signs it loads too, and says what the defaults are."""
    text = re.sub(r"(?m)^# (?=\w+:\s|gates:|  \w+: \{)", "", config_template())
    text = text.replace("callmark.yaml: the settings", "# callmark.yaml: the settings")
    row = "import callmark\n@callmark.scorer(measures=['ok'])\ndef brevity(sample, trace): ...\n"
    Path("brevity.py").write_text(row)
    with plugin_scope():
        config = load_config(yaml(text), {})
    defaults = load_config(None, {})
    changed = {"gates", "sources", "places", "config_file", "plugins"}
    changed |= {"max_turns", "strict_keys", "url_allowlist", "baseline", "primary_metrics"}
    changed |= {"dataset", "name", "out", "report", "fixtures", "registry", "allowlist", "model"}
    changed |= {"base_url", "api_key", "headers", "extra_body", "sample_timeout"}
    changed |= {"model_revision", "prices", "adapter", "prompt_wrapper", "system", "cache"}
    changed |= {"faults", "quarantine", "today"}
    changed |= {"engine", "num_shards", "num_cpus", "num_gpus"}
    for name in set(RunConfig.__struct_fields__) - changed:
        assert getattr(config, name) == getattr(defaults, name), name
    assert config.gates[1].gates["integration_coverage"] == {"bound": 0.98}
    assert (config.api_key, config.headers) == ("${MY_API_KEY}", {"X-Api-Token": "${MY_TOKEN}"})


def test_environment_and_locale_change_nothing(monkeypatch):
    before = load_config(None, {})
    monkeypatch.setattr(os, "environ", {"LANG": "tr_TR.UTF-8", "CALLMARK_SEED": "3"})
    assert load_config(None, {}) == before


def test_a_quarantine_is_read_with_its_owner_its_last_day_and_its_reason(yaml):
    path = yaml("quarantine:\n  order-17: {owner: kim, until: 2027-01-31, why: times out}\n")
    for today, is_over in (("2027-01-30", False), ("2027-01-31", False), ("2027-02-01", True)):
        [(name, entry)] = load_config(path, {"today": today}).judge_quarantine().items()
        assert (name, entry.owner, entry.why, entry.expired) == (
            "order-17",
            "kim",
            "times out",
            is_over,
        )


@pytest.mark.parametrize(
    ("entry", "says"),
    [
        ("{owner: kim, until: 2027-01-31}", "says no why"),
        ("{owner: '', until: 2027-01-31, why: x}", "says no owner"),
        ("{owner: kim, why: x}", "says no until"),
        ("{owner: kim, until: soon, why: x}", "until: must be a day such as 2027-01-31"),
        ("{owner: kim, until: 2027-01-31 10:00:00, why: x}", "until: must be a day"),
        ("{owner: kim, until: 20270131, why: x}", "until: must be a day"),
        ("{owner: 7, until: 2027-01-31, why: x}", "owner: must be text, not 7"),
        ("{owner: kim, until: 2027-01-31, why: x, expired: true}", "expired: unknown key"),
        ("kim", "must be {owner, until, why}"),
    ],
)
def test_a_quarantine_that_could_never_be_lifted_is_refused(yaml, entry, says):
    with pytest.raises(UsageError) as error:
        load_config(yaml(f"seed: 3\nquarantine:\n  order-17: {entry}\n"), {})
    assert ":3: quarantine." in str(error.value)
    assert says in str(error.value)


def test_the_day_of_today_must_be_one():
    with pytest.raises(UsageError, match=r"--today: must be a day such as 2027-01-31, not .now.\Z"):
        load_config(None, {"today": "now"})
