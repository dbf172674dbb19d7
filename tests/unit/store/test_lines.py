"""Results lines: written and read back without loss, wrong ones named."""

import json

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.errors import BadInput
from callmark.resources import schema
from callmark.store.files import decode_result, encode_result, read_results
from callmark.store.recorded import read_recorded


@pytest.fixture(scope="module")
def validator():
    return jsonschema_rs.Draft202012Validator(schema("eval_result"))


def test_a21_a49_an_encoded_result_matches_the_schema(make_result, validator):
    for result in (
        make_result(),
        make_result(status="error", scores=None, stop="error", error="timeout", turns=None),
        make_result(prompt=[{"role": "user", "content": None}], tool_trace=()),
    ):
        line = encode_result(result)
        assert line.endswith(b"\n")
        assert line.count(b"\n") == 1
        validator.validate(json.loads(line))
        assert decode_result(line) == result


def test_a1_equal_results_are_equal_bytes(make_result):
    assert encode_result(make_result()) == encode_result(make_result())


def test_what_no_file_can_hold_is_replaced_and_big_numbers_stay(make_result):
    """A lone surrogate in a model's text must not end a run."""
    entry = make_result().tool_trace[0]
    odd = type(entry)(
        name="a\ud800",
        arguments={"\udfff": 10**30},
        result=[2**70],
        turn=None,
        raw=None,
        status="unanswered",
        served_by=None,
    )
    again = decode_result(encode_result(make_result(model_output="x\ud83d", tool_trace=(odd,))))
    assert again.model_output == "x\ufffd"
    assert again.tool_trace[0].name == "a\ufffd"
    assert again.tool_trace[0].arguments == {"\ufffd": 10**30}
    assert again.tool_trace[0].result == [2**70]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)  # fmt: skip


@given(text=st.text(), metadata=st.dictionaries(st.text(), json_values, max_size=4))
def test_any_text_and_metadata_survive(make_result, text, metadata):
    line = encode_result(make_result(model_output=text, metadata=metadata))
    again = decode_result(line)
    assert again.model_output == text
    assert again.metadata == metadata
    assert encode_result(again) == line


def written(tmp_path, *lines: bytes):
    path = tmp_path / "results.jsonl"
    path.write_bytes(b"".join(lines))
    return path


def test_results_are_read_in_order_and_blank_lines_skipped(tmp_path, make_result):
    results = [make_result(index=n, sample_id=str(n)) for n in range(3)]
    lines = [encode_result(result) for result in results]
    path = written(tmp_path, lines[0], b"\n", lines[1], lines[2].rstrip())
    assert list(read_results(path)) == results
    assert [recorded.sample_id for recorded in read_recorded(path)] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"trial": "0"}, "trial: must be a whole number, not a string"),
        ({"status": "maybe"}, "status: invalid enum value 'maybe'"),
        ({"turns": [{"start": 0}]}, "turns[0].end: is missing"),
        ({"model_output": None}, "model_output: must be a string, not null"),
        ({"scores": {"kind": "eligible"}}, "scores.span_extractor: is missing"),
        ({"prompt": 3}, "prompt: must be a string or a list, not a whole number"),
    ],
)
def test_a_wrong_line_is_named_with_its_field(tmp_path, make_result, change, problem):
    good = encode_result(make_result())
    bad = json.dumps({**json.loads(good), **change}).encode()
    path = written(tmp_path, good, bad)
    with pytest.raises(BadInput) as caught:
        list(read_results(path))
    assert str(caught.value) == f"{path}:2: {problem}"


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"{", "not JSON"),
        (b"\xff", "not UTF-8"),
        (b"3", "must be an object, not a whole number"),
        (b"{}", "index: is missing"),
        (b'{"metadata":{"x":' + b"[" * 3000, "nested deeper"),
    ],
)
def test_a_line_that_is_no_result(tmp_path, line, problem):
    path = written(tmp_path, line)
    with pytest.raises(BadInput, match=problem):
        list(read_results(path))


def test_a_field_of_a_later_version_is_ignored(make_result):
    line = json.dumps({**json.loads(encode_result(make_result())), "new": 1}).encode()
    assert decode_result(line) == make_result()


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInput, match="no such file"):
        list(read_results(tmp_path / "no.jsonl"))


def test_a_name_that_is_nearly_there_is_offered(tmp_path):
    (tmp_path / "eval.jsonl").write_text("{}\n")
    with pytest.raises(BadInput, match=r"evals\.jsonl: no such file; did you mean eval\.jsonl\?$"):
        list(read_results(tmp_path / "evals.jsonl"))
    with pytest.raises(BadInput, match=r"no such file$"):
        list(read_results(tmp_path / "nowhere" / "eval.jsonl"))
