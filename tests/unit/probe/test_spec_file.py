"""Spec files: what they may hold, what it means when it is left out, and where mistakes are."""

import json
from pathlib import Path

import pytest
from tests.unit.probe.asking import SEARCH

from callmark.errors import BadInput
from callmark.probe.spec import (
    Defaults,
    FidelitySpec,
    ModelSpec,
    NullAdapterSpec,
    read_cases,
    read_spec,
)

WHOLE = """\
version: 1
models:
  base: {kind: hf, base: models/small}
  ft: {kind: hf, base: models/small, adapter: adapters/mine}
defaults: {seed: 7}
suite:
  - name: nulls
    kind: null_adapter
    runs: 3
    method: init_scale
    init_scale: 0.02
    rank_multipliers: [0.5, 1.0, 2.0]
  - name: calls
    kind: tool_use_fidelity
    allowed_tools: [search_web]
    assert_validity_delta_gte: -0.1
    assert_hallucination_lte: 0.2
    assert_z_gte: 2
    weight: 2.0
    schema: minimal
    ordered_lists: true
    cases:
      - prompt: Find the capital of France.
        gold_tool_name: search_web
        max_new_tokens: 64
        tool_spec:
          name: search_web
          parameters:
            type: object
            properties: {query: {type: string}}
            required: [query]
"""
SHORT = """\
version: 1
models: {base: small, ft: tuned}
suite:
  - kind: tool_use_fidelity
"""


@pytest.fixture
def spec_file(tmp_path):
    def write(text: str | bytes, name: str = "probe.yaml") -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return path

    return write


def test_a_whole_spec_is_read(spec_file):
    spec = read_spec(spec_file(WHOLE))
    assert spec.models.ft.adapter == "adapters/mine"
    assert spec.defaults.seed == 7
    nulls, calls = spec.suite
    assert nulls == NullAdapterSpec(
        name="nulls", runs=3, method="init_scale", rank_multipliers=(0.5, 1.0, 2.0)
    )
    assert isinstance(calls, FidelitySpec)
    assert (calls.assert_z_gte, calls.schema, calls.ordered_lists) == (2.0, "minimal", True)
    assert calls.cases[0].max_new_tokens == 64


def test_b15_b18_b19_b20_what_is_left_out_has_its_default(spec_file):
    spec = read_spec(spec_file(SHORT))
    assert spec.defaults == Defaults(seed=0)
    assert spec.models.base == ModelSpec(kind="hf", base="small")
    [calls] = spec.suite
    assert calls == FidelitySpec()
    assert calls.cases == ()
    assert calls.allowed_tools is None
    assert (calls.assert_validity_delta_gte, calls.assert_hallucination_lte) == (-0.05, 0.10)
    assert (calls.assert_z_gte, calls.weight, calls.schema) == (3.0, 1.0, "full")
    assert NullAdapterSpec().method == "matched"


def changed(text: str, old: str, new: str) -> str:
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("version: 1", "version: 2", ":1: version: must be 1, not 2"),
        ("version: 1", "version: true", ":1: version: must be 1, not true"),
        ("version: 1\n", "", ":1: version: must be 1, not null"),
        ("defaults: {seed: 7}", "defaults: {seed: x}", ":5: defaults.seed: must be a whole number"),
        ("defaults: {seed: 7}", "default: {seed: 7}", ":5: default: unknown key"),
        ("  base: {kind: hf, base: models/small}\n", "", ":2: models: must name two models"),
        ("{kind: hf, base: models/small}", "{kind: mlx, base: x}", ":3: models.base.kind: must be hf, openai, openai_responses or anthropic_messages"),
        ("{kind: hf, base: models/small}", "{kind: hf}", ":3: models.base.base: is missing"),
        ("adapter: adapters/mine", "adaptor: adapters/mine", ":4: models.ft.adaptor: unknown key; did you mean adapter?"),
        ("ft: {kind: hf,", "ft: {kind: openai,", ":4: models.ft.adapter: a served model takes no adapter"),
        ("adapter: adapters/mine", "endpoint: http://x", ":4: models.ft.endpoint: only served models"),
        ("kind: null_adapter", "kind: null_adaptor", ":8: suite[0].kind: must be null_adapter or tool_use_fidelity"),
        ("    kind: null_adapter\n", "", ":7: suite[0].kind: is missing"),
        ("runs: 3", "runs: 0", ":9: suite[0].runs: must be a whole number of at least 1"),
        ("runs: 3", "runs: 3\n    runs: 4", ":10: suite[0].runs: stands on line 9 too"),
        ("method: init_scale", "method: random", ":10: suite[0].method: must be matched or init_scale"),
        ("init_scale: 0.02", "init_scale: 0", ":11: suite[0].init_scale: must be a number above 0"),
        ("[0.5, 1.0, 2.0]", "[0.5, -1]", ":12: suite[0].rank_multipliers[1]: must be a number above 0"),
        ("name: calls", "name: nulls", ":13: suite[1].name: is the name of suite[0] too"),
        ("assert_z_gte: 2", "assert_z_gte: .nan", ":18: suite[1].assert_z_gte: must be a finite number"),
        ("gold_tool_name: search_web", "gold_tool_name: 5", ":24: suite[1].cases[0].gold_tool_name: must be a string"),
        ("        gold_tool_name: search_web\n", "", ":23: suite[1].cases[0].gold_tool_name: is missing"),
        ("max_new_tokens: 64", "max_tokens: 64", ":25: suite[1].cases[0].max_tokens: unknown key; did you mean max_new_tokens?"),
        ("required: [query]", "required: {query: true}", ":31: suite[1].cases[0].tool_spec.parameters.required: must be a list of names"),
        ("type: string", "type: 2024-01-01", ":30: suite[1].cases[0].tool_spec.parameters.properties.query.type: a date is no value"),
        ("properties: {query:", "properties: {1:", ":30: suite[1].cases[0].tool_spec.parameters.properties.1: the key must be a string"),
        ("suite:\n", "suite: [", ":"),
        ("version: 1", "version: [", ":"),
        ("suite:", "suit:", ":6: suit: unknown key"),
    ],
)  # fmt: skip
def test_every_mistake_has_its_line_and_its_field(spec_file, old, new, message):
    path = spec_file(changed(WHOLE, old, new))
    with pytest.raises(BadInput) as caught:
        read_spec(path)
    assert any(one.startswith(f"{path}{message}") for one in caught.value.problems), caught.value


def test_several_mistakes_are_said_at_once(spec_file):
    text = changed(changed(WHOLE, "runs: 3", "runs: x"), "max_new_tokens: 64", "max_new_tokens: -1")
    with pytest.raises(BadInput) as caught:
        read_spec(spec_file(text))
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"\xff\xfe",
        b"[1, 2]",
        b"x",
        b"a: &a [*a]\n",
        b"{a: 1, a: 2}",
        b"? [1, 2]\n: x",
        b"!!python/object/apply:os.system [true]",
        b"[" * 5000,
        b"a: " + b"[" * 150 + b"]" * 150,
        b"\x00",
        "\n".join(["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40))]).encode(),
    ],
)  # fmt: skip
def test_what_is_no_spec_at_all_is_refused_with_a_line(spec_file, text):
    path = spec_file(text)
    with pytest.raises(BadInput) as caught:
        read_spec(path)
    assert all(one.startswith(f"{path}:") for one in caught.value.problems)


def test_a_missing_file_is_said(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        read_spec(tmp_path / "none.yaml")


def test_one_tool_may_be_written_once_and_used_often(spec_file):
    text = """\
version: 1
models: {base: a, ft: b}
suite:
  - kind: tool_use_fidelity
    cases:
      - {prompt: one, gold_tool_name: t, tool_spec: &tool {name: t, parameters: {type: object}}}
      - {prompt: two, gold_tool_name: t, tool_spec: *tool}
"""
    [spec] = read_spec(spec_file(text)).suite
    assert spec.cases[0].tool_spec == spec.cases[1].tool_spec


def test_cases_may_stand_in_a_file_of_their_own(spec_file):
    one = {"prompt": "p", "tool_spec": SEARCH, "gold_tool_name": "search_web"}
    lines = json.dumps(one) + "\n\n" + json.dumps({**one, "prompt": "q"}) + "\n"
    for path in (
        spec_file(lines, "cases.jsonl"),
        spec_file(json.dumps([one, one]), "cases.json"),
        spec_file(json.dumps({"cases": [one, one]}), "cases.yaml"),
    ):
        assert len(read_cases(path)) == 2
    wrong = spec_file(lines + '{"prompt": 1}\n[]\nx\n', "wrong.jsonl")
    with pytest.raises(BadInput) as caught:
        read_cases(wrong)
    assert [problem.split(": ")[0] for problem in caught.value.problems] == [
        f"{wrong}:4", f"{wrong}:5", f"{wrong}:6"]  # fmt: skip
    bad_tool = {**one, "tool_spec": {"parameters": {"type": "objekt"}}}
    with pytest.raises(BadInput, match=r"bad.jsonl:1: tool_spec.parameters: "):
        read_cases(spec_file(json.dumps(bad_tool), "bad.jsonl"))
    with pytest.raises(BadInput, match="has no cases"):
        read_cases(spec_file("\n", "empty.jsonl"))
