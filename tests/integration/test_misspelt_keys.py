"""No silent typo: a key that is misspelt, in another style or in the wrong place is refused by the
real commands, with its place and the key that was meant. Keys of one's own are kept."""

import json
import re

import pytest

from callmark.cli import main
from callmark.records.problems import edits_between, meant_key

DATASET = """\
{"__header__": true, "dataset_version": "1", "span_extractor": "claims", "strict_keys": ["count"], \
"gates": {"call_f1_macro": {"bound": 0.8}}}
{"prompt": "How many?", "teacher_text": "17.", "user_turns": ["And?"], "metadata": {"sample_id": \
"a", "expected_behaviour": "normal", "call_match": "exact", "tools": ["web.search"], \
"required_facts": [17], "locale": "en", "slices": ["s"], "cluster": "c", "negative_control": false, \
"adversarial": {"type": "ambiguity", "expected": "answer"}, "call_sequence": [{"name": \
"web.search", "arguments": {"q": "x"}, "accept": {"/q": ["y"]}, "optional": ["top_k"]}]}}
{"prompt": [{"role": "user", "content": "Hello"}], "metadata": {"sample_id": "b", \
"expected_behaviour": "no_tool"}}
"""
ANSWERS = """\
{"sample_id": "a", "model_output": "There are 17.", "tool_trace": [{"name": "web.search", \
"arguments": {"q": "x"}}]}
{"sample_id": "b", "model_output": "Hello!"}
"""
FIXTURES = """\
{"name": "web.search", "key": {"q": "x"}, "result": {"count": 17}, "sample_id": "a", "seq": 1}
{"name": "web.search", "key": {"q": "z"}, "result": 1, "match": {"q": {"regex": "z+"}}}
{"name": "web.search", "key": {"q": "n", "top_k": 5}, "result": 1, "match": \
{"top_k": {"number_tolerance": 2}}}
"""
REGISTRY = """\
[
 {"name": "web.search",
  "description": "Searches.",
  "parameters": {"type": "object",
   "properties": {"q": {"type": "string", "description": "what", "minLength": 1, "enum": ["x", "z"]},
                  "top_k": {"type": "integer", "minimum": 1}, "hint": {}},
   "required": ["q", "top_k"], "additionalProperties": false},
  "x-callmark": {"ignore": ["hint"], "casefold": ["q"], "default": {}, "aliases": ["search"]}},
 {"type": "function",
  "function": {"name": "other", "parameters": {"type": "object"}}}
]
"""
CONFIG = """\
runner: replay
temperature: 0
max_turns: 8
span_extractor: auto
min_eligible_for_gates: 1
fail_on_gate_failure: true
url_allowlist: [example.com]
parse_text: auto
gates:
  call_f1_macro: {bound: 0.5, policy: warning_only}
  integration_f1_macro_lax: {bound: 0.8, policy: count_based_misses, pct: 0.1}
"""
SPEC = """\
version: 1
models:
  base: {kind: hf, base: small}
  ft: {kind: hf, base: small, adapter: mine}
defaults: {seed: 7}
suite:
  - kind: null_adapter
    runs: 3
    method: matched
  - kind: tool_use_fidelity
    allowed_tools: [find]
    assert_z_gte: 2
    schema: full
    cases:
      - prompt: Find it.
        gold_tool_name: find
        max_new_tokens: 64
        tool_spec: {name: find, description: d, parameters: {type: object, required: []}}
"""
CASES = (
    '{"prompt": "Find it.", "gold_tool_name": "find", "max_new_tokens": 9,'
    ' "tool_spec": {"name": "find", "parameters": {"type": "object"}}}\n'
)
FILES = {
    "dataset": ("data.jsonl", DATASET),
    "fixtures": ("fixtures/all.jsonl", FIXTURES),
    "registry": ("tools.json", REGISTRY),
    "config": ("settings.yaml", CONFIG),
    "spec": ("probe.yaml", SPEC),
    "cases": ("cases.jsonl", CASES),
}

# (the file, what stands there, what somebody wrote instead, the key that was meant)
MEANT = [
    # The header
    ("dataset", '"span_extractor"', '"span_extracter"', "span_extractor"),
    ("dataset", '"span_extractor"', '"spanExtractor"', "span_extractor"),
    ("dataset", '"dataset_version"', '"dataset-version"', "dataset_version"),
    ("dataset", '"strict_keys"', '"strict_key"', "strict_keys"),
    ("dataset", '"gates"', '"gate"', "gates"),
    ("dataset", '"gates": {', '"tokeniser_fingerprint": {}, "gates": {', "tokenizer_fingerprint"),
    ("dataset", '"gates": {', '"tokenizer_fingerprint": {"sha265": ""}, "gates": {', "sha256"),
    ("dataset", '"gates": {', '"call_f1_macro": 1, "gates": {', "gates"),
    ("dataset", '"gates": {', '"privacy_echoe": "deny", "gates": {', "privacy_echo"),
    ("dataset", '"gates": {', '"expected_behaviour": "no_tool", "gates": {', "metadata"),
    ("dataset", '"gates": {', '"min_eligible_for_gates": 1, "gates": {', "callmark.yaml"),
    ("dataset", '"call_f1_macro"', '"call_f1"', "call_f1_macro"),
    ("dataset", '"bound"', '"threshold"', "bound"),
    ("dataset", '"claims"', '"claim"', "claims"),
    ("dataset", '"__header__"', '"_header_"', "__header__"),
    # Items
    ("dataset", '"prompt": "How', '"promt": "How', "prompt"),
    ("dataset", '"prompt": "How', '"question": "How', "prompt"),
    ("dataset", '"teacher_text"', '"teacherText"', "teacher_text"),
    ("dataset", '"user_turns"', '"user_turn"', "user_turns"),
    ("dataset", '"metadata": {"sample_id": "a"', '"meta_data": {"sample_id": "a"', "metadata"),
    ("dataset", '"user_turns"', '"call_sequence": [], "user_turns"', "metadata"),
    ("dataset", '"user_turns"', '"required_fact": [], "user_turns"', "required_facts"),
    ("dataset", '"user_turns"', '"span_extractor": "marker", "user_turns"', "header"),
    ("dataset", '"role"', '"rloe"', "role"),
    ("dataset", '"content"', '"contents"', "content"),
    ("dataset", '"content"', '"text"', "content"),
    # Metadata
    ("dataset", '"call_sequence"', '"call_sequences"', "call_sequence"),
    ("dataset", '"call_sequence"', '"callSequence"', "call_sequence"),
    ("dataset", '"call_sequence"', '"call-sequence"', "call_sequence"),
    ("dataset", '"call_sequence"', '"sequence_call"', "call_sequence"),
    ("dataset", '"call_sequence"', '"expected_calls"', "call_sequence"),
    ("dataset", '"call_sequence"', '"Call Sequence"', "call_sequence"),
    ("dataset", '"expected_behaviour"', '"expected_behavior"', "expected_behaviour"),
    ("dataset", '"expected_behaviour"', '"expectedBehavior"', "expected_behaviour"),
    ("dataset", '"no_tool"', '"notool"', "no_tool"),
    ("dataset", '"sample_id": "a"', '"sampleId": "a"', "sample_id"),
    ("dataset", '"tools"', '"tool"', "tools"),
    ("dataset", '"tools"', '"toosl"', "tools"),
    ("dataset", '"tools"', '"available_tools"', "tools"),
    ("dataset", '"required_facts"', '"facts"', "required_facts"),
    ("dataset", '"required_facts"', '"reqired_fact"', "required_facts"),
    ("dataset", '"locale"', '"local"', "locale"),
    ("dataset", '"slices"', '"slice"', "slices"),
    ("dataset", '"cluster"', '"clusters"', "cluster"),
    ("dataset", '"negative_control"', '"negativ_control"', "negative_control"),
    ("dataset", '"adversarial"', '"adverserial"', "adversarial"),
    ("dataset", '"expected": "answer"', '"expects": "answer"', "expected"),
    ("dataset", '"expected": "answer"', '"expected": "ask_clarfy"', "ask_clarify"),
    ("dataset", '"call_match": "exact"', '"call_match": "exect"', "exact"),
    ("dataset", '"locale"', '"teacher_text": "x", "locale"', "beside prompt"),
    ("dataset", '"locale"', '"url_allowlist": [], "locale"', "header"),
    ("dataset", '"locale"', '"accept": {}, "locale"', "metadata.call_sequence"),
    # Expected calls
    ("dataset", '"arguments"', '"args"', "arguments"),
    ("dataset", '"arguments"', '"parameters"', "arguments"),
    ("dataset", '"arguments"', '"input"', "arguments"),
    ("dataset", '"arguments"', '"argument"', "arguments"),
    ("dataset", '"accept"', '"accepts"', "accept"),
    ("dataset", '"optional"', '"optionals"', "optional"),
    ("dataset", '"name": "web', '"tool_name": "web', "name"),
    ("dataset", '"optional"', '"call_match": "superset", "optional"', "metadata"),
    # Fixtures
    ("fixtures", '"key": {"q": "x"}', '"arguments": {"q": "x"}', "key"),
    ("fixtures", '"key": {"q": "x"}', '"keys": {"q": "x"}', "key"),
    ("fixtures", '"result": {"count"', '"results": {"count"', "result"),
    ("fixtures", '"result": {"count"', '"response": {"count"', "result"),
    ("fixtures", '"sample_id"', '"sampleId"', "sample_id"),
    ("fixtures", '"seq"', '"sequence"', "seq"),
    ("fixtures", '"match": {"q"', '"matches": {"q"', "match"),
    ("fixtures", '"match": {"q": {"regex": "z+"}}', '"regex": "z+"', "match"),
    ("fixtures", '"regex"', '"regexp"', "regex"),
    ("fixtures", '"number_tolerance"', '"numberTolerance"', "number_tolerance"),
    ("fixtures", '"number_tolerance"', '"tolerance"', "number_tolerance"),
    ("fixtures", '"match": {"q": {"regex": "z+"}}', '"match": "anny"', "any"),
    ("fixtures", '{"top_k": {"number_tolerance"', '{"topk": {"number_tolerance"', "top_k"),
    # Registries
    ("registry", '"parameters": {"type": "object",', '"parameter": {"type": "object",', "parameters"),
    ("registry", '"parameters": {"type": "object",', '"args": {"type": "object",', "parameters"),
    ("registry", '"description": "Searches', '"discription": "Searches', "description"),
    ("registry", '"name": "web.search"', '"nmae": "web.search"', "name"),
    ("registry", '"x-callmark"', '"x_callmark"', "x-callmark"),
    ("registry", '"x-callmark"', '"x-calmark"', "x-callmark"),
    ("registry", '"ignore"', '"ignores"', "ignore"),
    ("registry", '"casefold"', '"case_fold"', "casefold"),
    ("registry", '"aliases"', '"alias"', "aliases"),
    ("registry", '"ignore": ["hint"]', '"ignore": ["hints"]', "hint"),
    ("registry", '"properties"', '"propertys"', "properties"),
    ("registry", '"required"', '"requierd"', "required"),
    ("registry", '["q", "top_k"]', '["q", "topk"]', "top_k"),
    ("registry", '"minLength"', '"min_length"', "minLength"),
    ("registry", '"enum"', '"enums"', "enum"),
    ("registry", '"minimum"', '"minimun"', "minimum"),
    ("registry", '"additionalProperties"', '"additional_properties"', "additionalProperties"),
    ("registry", '"x-callmark": {', '"required": ["q"], "x-callmark": {', "parameters"),
    ("registry", '"function": {"name"', '"funtion": {"name"', "function"),
    # Settings
    ("config", "temperature", "temprature", "temperature"),
    ("config", "temperature", "temp", "temperature"),
    ("config", "max_turns", "maxTurns", "max_turns"),
    ("config", "max_turns", "max-turn", "max_turns"),
    ("config", "span_extractor", "span_extracter", "span_extractor"),
    ("config", "span_extractor: auto", "span_extractor: markers", "marker"),
    ("config", "url_allowlist", "url_allow_list", "url_allowlist"),
    ("config", "min_eligible_for_gates", "min_eligible_for_gate", "min_eligible_for_gates"),
    ("config", "\ngates:", "\ngate:", "gates"),
    ("config", "\ngates:", "\nthresholds:", "gates"),
    ("config", "  call_f1_macro", "  call_f1_marco", "call_f1_macro"),
    ("config", "bound: 0.5", "bond: 0.5", "bound"),
    ("config", "bound: 0.5", "threshold: 0.5", "bound"),
    ("config", "policy: warning_only", "polcy: warning_only", "policy"),
    ("config", "pct", "percent", "pct"),
    ("config", "parse_text: auto", "call_f1_macro: 0.5", "gates"),
    ("config", "parse_text: auto", "dataset_version: 1", "header"),
    ("config", "  call_f1_macro", "  max_turns: {bound: 1}\n  call_f1_macro", "beside gates"),
    # Probe specs and cases
    ("spec", "models:", "model:", "models"),
    ("spec", "suite:", "suit:", "suite"),
    ("spec", "defaults:", "default:", "defaults"),
    ("spec", "seed: 7", "sed: 7", "seed"),
    ("spec", "  ft:", "  tuned:", "ft"),
    ("spec", "adapter: mine", "adaptor: mine", "adapter"),
    ("spec", "kind: null_adapter", "kind: nul_adapter", "null_adapter"),
    ("spec", "runs: 3", "run: 3", "runs"),
    ("spec", "method: matched", "method: match", "matched"),
    ("spec", "assert_z_gte", "assert_z_get", "assert_z_gte"),
    ("spec", "allowed_tools", "allowed_tool", "allowed_tools"),
    ("spec", "cases:", "case:", "cases"),
    ("spec", "assert_z_gte: 2", "max_new_tokens: 2", "a case"),
    ("spec", "gold_tool_name", "goldToolName", "gold_tool_name"),
    ("spec", "parameters:", "parameter:", "parameters"),
    ("spec", "required: []", "require: []", "required"),
    ("cases", '"gold_tool_name"', '"gold_tool"', "gold_tool_name"),
    ("cases", '"max_new_tokens"', '"max_tokens"', "max_new_tokens"),
    ("cases", '"tool_spec"', '"toolspec"', "tool_spec"),
]  # fmt: skip

# (the file, what stands there, with what instead; whether it is listed as a warning)
KEPT = [
    ("dataset", '"gates": {', '"made_by": "us", "gates": {', True),
    ("dataset", '"gates": {', '"licence": "CC0", "gates": {', True),
    ("dataset", '"gates": {', '"x_gate": 1, "gates": {', False),
    ("dataset", '"gates": {', '"x_span_extractor": 1, "gates": {', False),
    ("dataset", '"user_turns"', '"answer": "17", "user_turns"', True),
    ("dataset", '"user_turns"', '"source_url": "u", "user_turns"', True),
    ("dataset", '"user_turns"', '"x_call_sequence": [], "user_turns"', False),
    ("dataset", '"locale"', '"author": "me", "locale"', True),
    ("dataset", '"locale"', '"difficulty": 3, "locale"', True),
    ("dataset", '"locale"', '"notes": "n", "locale"', True),
    ("dataset", '"locale"', '"topic": "t", "locale"', True),
    ("dataset", '"locale"', '"date": "d", "locale"', True),
    ("dataset", '"locale"', '"scale": 2, "locale"', True),
    ("dataset", '"locale"', '"id": 7, "locale"', True),
    ("dataset", '"locale"', '"reviews": [], "locale"', True),
    ("dataset", '"locale"', '"checks": [{"contains": "1", "x_why": 1}], "locale"', False),
    ("dataset", '"locale"', '"x_tool": 1, "locale"', False),
    ("dataset", '"locale"', '"imported_from": {"a": 1}, "locale"', False),
    ("dataset", '"type": "ambiguity"', '"type": "ambiguity", "severity": 2', True),
    ("dataset", '"optional"', '"comment": "why", "optional"', True),
    ("dataset", '"optional"', '"x_args": {}, "optional"', False),
    ("dataset", '"role"', '"cache_control": {}, "reasoning_content": "", "role"', False),
    ("fixtures", '"seq": 1', '"seq": 1, "_why": "a note"', False),
    ("fixtures", '"seq": 1', '"seq": 1, "x_keys": "a note"', False),
    ("registry", '"description": "Searches', '"strict": true, "description": "Searches', False),
    ("registry", '"description": "Searches', '"returns": {}, "description": "Searches', False),
    ("registry", '"minLength"', '"note": "n", "x-order": 1, "example": "x", "minLength"', False),
]


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "answers.jsonl").write_text(ANSWERS, "utf-8")
    for name, text in FILES.values():
        (tmp_path / name).write_text(text, "utf-8")
    return tmp_path


def spoil(world, kind: str, old: str, new: str) -> tuple[str, int]:
    """Puts a mistake into a file; which file, and on which line."""
    name, text = FILES[kind]
    assert old in text
    spoilt = text.replace(old, new, 1)
    (world / name).write_text(spoilt, "utf-8")
    start = text.index(old) + len(old) - len(old.lstrip())
    return name, text.count("\n", 0, start) + 1


def command_for(kind: str) -> list[str]:
    run = "run --dry-run --in data.jsonl --fixtures fixtures --runner replay --model answers.jsonl"
    return {
        "registry": f"{run} --registry tools.json",
        "config": f"{run.replace('--runner replay', '')} --config settings.yaml",
        "spec": "probe probe.yaml",
        "cases": "probe --base small --adapter mine --cases cases.jsonl",
    }.get(kind, run).split()  # fmt: skip


def test_the_files_are_right_as_they_are(world, capsys):
    for kind in ("dataset", "fixtures", "registry", "config"):
        assert main(command_for(kind)) == 0
        assert json.loads(capsys.readouterr().out)["warnings"] == []


@pytest.mark.parametrize(("kind", "old", "new", "meant"), MEANT)
def test_f1_every_misspelt_or_misplaced_key_is_refused_with_the_one_meant(
    world, capsys, kind, old, new, meant
):
    name, line = spoil(world, kind, old, new)
    assert main(command_for(kind)) == 2
    said = capsys.readouterr().err
    where = rf"{re.escape(name)}:\d+: " if kind == "registry" else rf"{re.escape(name)}:{line}: "
    [first] = [one for one in said.splitlines() if re.search(where, one)][:1]
    assert re.search(rf"(mean|belongs in).*\b{re.escape(meant)}", first), said


@pytest.mark.parametrize(("kind", "old", "new", "listed"), KEPT)
def test_f1_keys_of_ones_own_are_kept_and_listed_once(world, capsys, kind, old, new, listed):
    name, line = spoil(world, kind, old, new)
    assert main(command_for(kind)) == 0
    warnings = json.loads(capsys.readouterr().out)["warnings"]
    if not listed:
        assert warnings == []
        return
    [warning] = warnings
    assert warning.startswith(f"{name}: unknown keys, kept and otherwise without effect: ")
    assert f"(line {line})" in warning


def test_f1_a_key_of_many_items_is_listed_once_with_its_first_line(world, capsys):
    items = DATASET.replace('"sample_id"', '"zone": 1, "sample_id"')
    (world / "data.jsonl").write_text(items, "utf-8")
    assert main(command_for("dataset")) == 0
    [warning] = json.loads(capsys.readouterr().out)["warnings"]
    assert warning.count("metadata.zone (line 2)") == 1


def test_f1_verify_and_the_fixture_check_refuse_them_too(world, capsys):
    spoil(world, "dataset", '"call_sequence"', '"call_sequences"')
    assert main(["verify", "data.jsonl", "--fixtures", "fixtures"]) == 2
    assert "did you mean call_sequence?" in capsys.readouterr().err
    spoil(world, "fixtures", '"seq"', '"sequence"')
    assert main(["fixtures", "check", "fixtures"]) == 2
    assert "did you mean seq?" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("runner", "option", "other"),
    [
        ("openai_http", "--adapter a", "hf_local"),
        ("openai_http", "--dtype float16", "hf_local"),
        ("openai_http", "--device cpu", "hf_local"),
        ("openai_http", "--batch-size 2", "hf_local"),
        ("hf_local", "--base-url http://127.0.0.1:9", "openai_http"),
        ("hf_local", "--model-revision 2", "openai_http"),
        ("replay", "--max-connections 2", "openai_http"),
        ("replay", "--request-timeout 2", "openai_http"),
        ("replay", "--sample-timeout 2", "openai_http"),
        ("replay", "--max-retries 2", "openai_http"),
        ("replay", "--adapter a", "hf_local"),
    ],
)
def test_f1_an_option_that_does_nothing_for_the_runner_is_refused(
    world, capsys, runner, option, other
):
    words = f"run --dry-run --in data.jsonl --model m --runner {runner} {option}".split()
    assert main(words) == 2
    flag = option.split()[0]
    said = capsys.readouterr().err
    assert f"{flag}: does nothing for the runner {runner}:" in said
    assert f"--runner {other}" in said


def test_f1_decoding_is_recorded_whoever_answers(world):
    seed = "--seed 1 --temperature 0 --top-p 1 --max-tokens 9 --tool-choice auto --max-turns 4"
    assert main([*command_for("dataset"), *seed.split()]) == 0


def test_f1_a_file_for_another_runner_is_left_aside_only_for_a_flag(world, capsys):
    text = CONFIG.replace("runner: replay", "runner: openai_http\nbase_url: http://127.0.0.1:9/v1")
    (world / "settings.yaml").write_text(text, "utf-8")
    assert main([*command_for("dataset"), "--config", "settings.yaml"]) == 0
    [warning] = json.loads(capsys.readouterr().out)["warnings"]
    assert "settings.yaml:2: base_url" in warning
    (world / "settings.yaml").write_text(text.replace("openai_http", "replay"), "utf-8")
    assert main(command_for("config")) == 2
    assert (
        "settings.yaml:2: base_url: does nothing for the runner replay" in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [
        ("tools", "tools", 0),
        ("tools", "tool", 1),
        ("toosl", "tools", 1),
        ("otols", "tools", 1),
        ("locales", "local", 2),
        ("abcdef", "badcfe", None),
        ("", "ab", 2),
    ],
)
def test_two_neighbours_that_changed_places_are_one_edit(one, other, edits):
    assert edits_between(one, other, 2) == edits_between(other, one, 2) == edits


def test_short_words_have_many_neighbours():
    known = ("tools", "locale", "seed", "id")
    assert meant_key("toll", known) is None
    assert meant_key("scale", known) is None
    assert meant_key("it", known) is None
    assert meant_key("x" * 100_000, known) is None
