"""Whatever the bytes of a file are: samples come out, or BadInput with file and line."""

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.datasets.reader import dataset_sha256, open_dataset
from callmark.errors import BadInput
from callmark.store.files import read_results
from callmark.store.recorded import RecordedIndex, read_recorded

GOOD = (
    b'{"__header__": {"seed": 1, "gates": {"x": {"bound": 1}}, "url_allowlist": ["a"]}}\n'
    b'{"prompt": "a", "metadata": {"sample_id": 1, "call_sequence": [{"name": "t"}, "u"]}}\n'
    b'{"prompt": [{"role": "user", "content": [{"type": "text"}]}], "user_turns": ["x"]}\n'
    b'{"sample_id": "s", "model_output": "x", "turns": [{"start": 0, "end": 1}], "trial": 1}\n'
    b'{"messages": [{"role": "user", "content": "\\ud83d"}], "id": 3, "tools": [{}]}\n'
)
PLACE = re.compile(r"(:\d+: \S|: the dataset is empty)")

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    """__header__ prompt metadata sample_id user_turns teacher_text call_sequence tools slices
    integration_span_cap gates strict_keys model_output trial tool_trace turns said messages id
    status stop fingerprints decoding""".split()
)


@st.composite
def mutated(draw):
    """Known lines with bytes cut out, changed, put in or doubled."""
    data = bytearray(GOOD)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(data)))
        match draw(st.sampled_from(["cut", "change", "insert", "double"])):
            case "cut":
                del data[at : at + draw(st.integers(1, 40))]
            case "change":
                data[at : at + 1] = draw(st.binary(min_size=1, max_size=1))
            case "insert":
                data[at:at] = draw(
                    st.binary(max_size=6) | st.sampled_from([b"\n", b"{", b"[" * 400])
                )
            case "double":
                data[at:at] = data[at : at + draw(st.integers(1, 200))]
    return bytes(data)


odd_objects = st.lists(st.dictionaries(FIELDS, json_values, max_size=5), max_size=4).map(
    lambda lines: "\n".join(json.dumps(line) for line in lines).encode()
)
ANY_BYTES = mutated() | odd_objects | st.binary(max_size=200)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("bytes") / "any.jsonl"


def problems_of(error, file):
    assert 1 <= len(error.problems) <= 20
    for problem in error.problems:
        assert problem.startswith(str(file))
        assert PLACE.match(problem.removeprefix(str(file))), problem
        assert "\n" not in problem


@given(ANY_BYTES)
def test_a_dataset_is_read_or_refused_with_file_and_line(file, data):
    file.write_bytes(data)
    try:
        with open_dataset(file) as dataset:
            samples = list(dataset.samples())
    except BadInput as error:
        problems_of(error, file)
        return
    assert len(samples) == dataset.facts.samples == len({s.sample_id for s in samples}) > 0
    assert [sample.index for sample in samples] == list(range(len(samples)))
    assert dataset.sha256 == dataset_sha256(file)


@given(ANY_BYTES)
def test_recorded_answers_are_read_or_refused_with_file_and_line(file, data):
    file.write_bytes(data)
    try:
        with RecordedIndex(file) as index:
            for recorded in read_recorded(file):
                assert index.get(recorded.sample_id, recorded.trial) == recorded
    except BadInput as error:
        problems_of(error, file)


@given(ANY_BYTES)
def test_results_are_read_or_refused_with_file_and_line(file, data):
    file.write_bytes(data)
    try:
        list(read_results(file))
    except BadInput as error:
        problems_of(error, file)


@given(st.lists(st.dictionaries(st.text(max_size=4), json_values, max_size=3), max_size=6))
def test_every_well_formed_item_is_read_back(file, extras):
    items = [
        {"prompt": f"{at}", "metadata": {"mine": json.loads(_strict(extra)), "sample_id": f"{at}"}}
        for at, extra in enumerate(extras)
    ]
    file.write_text("".join(json.dumps(item) + "\n" for item in [{"__header__": True}, *items]))
    if not items:
        with pytest.raises(BadInput):
            open_dataset(file)
        return
    with open_dataset(file) as dataset:
        assert [sample.metadata for sample in dataset.samples()] == [i["metadata"] for i in items]


def _strict(value):
    return re.sub(r"\bNaN\b|-?\bInfinity\b", "0", json.dumps(value))
