"""Our own items: plain lines, a dataset with a header, Parquet; there and back."""

import json
import sys

import pytest

from callmark.datasets.exporting import DATASET_EXPORTS
from callmark.datasets.generate import generate
from callmark.errors import BadInput, MissingExtra

ITEMS = [
    {"prompt": "How many?", "metadata": {"sample_id": "a", "required_facts": [3]}},
    {
        "sample_id": "b",
        "prompt": [{"role": "user", "content": "Hi"}],
        "user_turns": ["more"],
        "teacher_text": "x",
        "own": {"kept": [1, None]},
    },
    {"prompt": "true"},
]


def export(name: str, source, out) -> int:
    return DATASET_EXPORTS[name](source, out)


def test_items_stay_as_they_are_and_are_sealed(make):
    header = {"__header__": True, "dataset_version": "3", "dataset_sha256": "old", "gates": {}}
    made = make([header, *ITEMS])
    assert made.report.format == "jsonl"
    assert made.items == ITEMS
    assert made.header["dataset_version"] == "3"
    assert made.header["dataset_sha256"] != "old"


@pytest.mark.parametrize("name", ["parquet", "jsonl"])
def test_what_is_exported_is_imported_again(make, tmp_path, name):
    made = make([{"__header__": True, "dataset_version": "3"}, *ITEMS])
    out = tmp_path / f"out.{name}"
    assert export(name, made.places.dataset, out) == 3
    again = make(out)
    if name == "parquet":
        assert again.items == ITEMS
        assert again.header["dataset_version"] == "3"
    else:
        named = [{**item, "sample_id": item.get("sample_id")} for item in again.items]
        assert [one["prompt"] for one in named] == [one["prompt"] for one in ITEMS]
        assert named[1]["own"] == ITEMS[1]["own"]
        assert all(one["sample_id"] for one in named)


@pytest.mark.parametrize("name", sorted(DATASET_EXPORTS))
def test_results_are_not_taken_for_a_dataset(tmp_path, name):
    source, out = tmp_path / "results.jsonl", tmp_path / "out"
    line = {"prompt": "x", "metadata": {}, "model_output": "y", "tool_trace": [], "scores": None}
    source.write_text(json.dumps(line) + "\n")
    with pytest.raises(BadInput, match="these are results, not a dataset; `callmark report"):
        export(name, source, out)
    assert not out.exists()


@pytest.mark.parametrize("name", sorted(DATASET_EXPORTS))
def test_a_generated_dataset_goes_there_and_back_in_the_same_bytes(make, tmp_path, name):
    source = tmp_path / "made.jsonl"
    generate(40, 3, out=source, fixtures=tmp_path / "of-source")
    first, second = tmp_path / f"1.{name}", tmp_path / f"2.{name}"
    export(name, source, first)
    made = make(first)
    export(name, made.places.dataset, second)
    items = [json.loads(line) for line in source.read_text("utf-8").splitlines()][1:]
    if name == "parquet":
        assert made.items == items
    else:
        assert first.read_bytes() == second.read_bytes()


def test_any_table_with_messages_is_read(make, tmp_path):
    import pyarrow as arrow
    from pyarrow import parquet

    rows = [
        {"id": "a", "messages": [{"role": "user", "content": "x", "name": None}]},
        {"id": "b", "messages": [{"role": "user", "content": "y", "name": "ann"}]},
    ]
    path = tmp_path / "talks.parquet"
    parquet.write_table(arrow.Table.from_pylist(rows), path)
    made = make(path, format="parquet")
    assert made.report.format == "openai"
    assert [item["metadata"]["sample_id"] for item in made.items] == ["a", "b"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (
            b'{"prompt": "x"}\n{"prompt": 5}\n{"metadata": {}}\n',
            r":2: prompt.*\n.*:3: prompt: is mis",
        ),
        (b'{"__header__": true, "seed": "x"}\n{"prompt": "x"}\n', r":1: seed: must be a whole"),
        (b"PAR1" + b"\0" * 40, "cannot be read as Parquet"),
    ],
)
def test_bad_items_are_named(make, data, message):
    with pytest.raises(BadInput, match=message):
        make(data, format="jsonl")


def test_a_table_needs_an_extra_and_says_so(make, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"\.\[parquet\]"):
        make(b"PAR1" + b"\0" * 40)
    made = make(ITEMS)
    with pytest.raises(MissingExtra, match=r"\.\[parquet\]"):
        export("parquet", made.places.dataset, tmp_path / "x.parquet")


def test_lines_are_no_table(make):
    with pytest.raises(BadInput, match="is not a Parquet file"):
        make(ITEMS, format="parquet")
