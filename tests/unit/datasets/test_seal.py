"""Sealing: the header pins what belongs together, and nothing else in the file changes."""

import hashlib
import json
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry
from callmark.cli import main
from callmark.datasets.reader import dataset_sha256, open_dataset
from callmark.datasets.seal import check_seal, examine_seal, write_seal
from callmark.errors import BadInput, FingerprintMismatch
from callmark.resources import builtin_tools, demo_paths
from callmark.run.conclude import run

ITEMS = b'{"prompt": "a",  "metadata": {"sample_id": "1"}}\r\n\n{"prompt":"\xc3\xa9"}'
REGISTRY = Registry.from_specs(builtin_tools(), where="built in").sha256
PINS = {"tool_registry_sha256": "r" * 64, "fixtures_sha256": "f" * 64}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "data.jsonl"


@pytest.fixture
def fixtures(tmp_path):
    folder = tmp_path / "fixtures"
    folder.mkdir()
    (folder / "a.jsonl").write_text('{"name": "web.search", "key": {"q": "x"}, "result": 1}\n')
    return folder


def sealed(path: Path, pins=PINS, out: Path | None = None) -> bool:
    with open_dataset(path) as dataset:
        seal = examine_seal(dataset, pins)
    return write_seal(seal, out)


def first_line(path: Path) -> dict:
    return json.loads(path.read_bytes().splitlines()[0].removeprefix(b"\xef\xbb\xbf"))


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (b'{"__header__": true, "dataset_version": "2", "own": [1]}\n', {"__header__": True}),
        (b'{"__header__": {"dataset_version": "2", "own": [1]}}\n', {}),
    ],
)
def test_a47_both_forms_of_the_header_keep_their_form_and_their_fields(file, header, expected):
    file.write_bytes(header + ITEMS)
    assert sealed(file)
    line = first_line(file)
    fields = line["__header__"] if isinstance(line["__header__"], dict) else line
    sha256 = hashlib.sha256(ITEMS).hexdigest()
    assert fields == {
        **expected, "dataset_version": "2", "own": [1], "dataset_sha256": sha256, **PINS,
    }  # fmt: skip
    assert file.read_bytes().partition(b"\n")[2] == ITEMS
    assert dataset_sha256(file) == sha256


def test_a_dataset_without_a_header_gets_one(file):
    file.write_bytes(ITEMS)
    assert sealed(file)
    assert first_line(file)["__header__"] is True
    assert file.read_bytes().partition(b"\n")[2] == ITEMS
    with open_dataset(file) as dataset:
        assert dataset.header.dataset_sha256 == dataset.sha256
        assert dataset.facts.samples == 2


def test_sealing_twice_changes_nothing_not_even_the_file(file):
    file.write_bytes(b'{"__header__": {"x": 1.50}}\n' + ITEMS)
    assert sealed(file)
    before, stamp = file.read_bytes(), file.stat().st_ino
    assert not sealed(file)
    assert (file.read_bytes(), file.stat().st_ino) == (before, stamp)


@pytest.mark.parametrize(
    "start",
    [b"", b"\n  \n", b"\xef\xbb\xbf"],
    ids=["plain", "blank lines", "byte order mark"],
)
@pytest.mark.parametrize("header", [b"", b'{"__header__": true}\r\n'], ids=["none", "header"])
def test_whatever_stands_before_the_items_the_sealed_file_is_read_as_pinned(file, start, header):
    file.write_bytes(start + header + ITEMS)
    assert sealed(file)
    assert not sealed(file)
    with open_dataset(file) as dataset:
        assert dataset.header.dataset_sha256 == dataset.sha256
        assert dataset.facts.samples == 2
    assert file.read_bytes().endswith(ITEMS)


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
OWN = st.dictionaries(
    TEXT.map(lambda name: f"own {name}"), st.none() | st.integers() | st.floats(-9, 9) | TEXT
)


@settings(max_examples=60, deadline=None)
@given(OWN, st.lists(TEXT, min_size=1, max_size=4), st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_any_dataset_keeps_its_items_and_its_own_fields(tmp_path_factory, own, prompts, end):
    file = tmp_path_factory.mktemp("d") / "data.jsonl"
    items = [
        {"prompt": text, "metadata": {"sample_id": f"s{at}"}} for at, text in enumerate(prompts)
    ]
    lines = [json.dumps(line, ensure_ascii=False) for line in [{"__header__": True, **own}, *items]]
    file.write_bytes((end.join(lines) + end).encode())
    body = file.read_bytes().partition(b"\n")[2]
    assert sealed(file)
    assert file.read_bytes().partition(b"\n")[2] == body
    header = first_line(file)
    assert {name: header[name] for name in own} == own
    assert header["dataset_sha256"] == hashlib.sha256(body).hexdigest() == dataset_sha256(file)
    assert not sealed(file)


def test_another_place_leaves_the_dataset_as_it_was(file, tmp_path):
    file.write_bytes(ITEMS)
    out = tmp_path / "new" / "sealed.jsonl"
    assert sealed(file, out=out)
    assert file.read_bytes() == ITEMS
    assert out.read_bytes().endswith(ITEMS)
    copy = tmp_path / "copy.jsonl"
    assert sealed(out, out=copy)
    assert copy.read_bytes() == out.read_bytes()


def test_what_nobody_computed_stays_pinned_as_it_was(file):
    file.write_bytes(b'{"__header__": true, "fixtures_sha256": "old"}\n' + ITEMS)
    sealed(file, {"tool_registry_sha256": "r", "fixtures_sha256": None})
    assert first_line(file)["fixtures_sha256"] == "old"


def test_a_file_that_changes_meanwhile_is_not_written(file):
    file.write_bytes(ITEMS)
    with open_dataset(file) as dataset:
        seal = examine_seal(dataset, PINS)
    changed = ITEMS + b'\n{"prompt": "new"}\n'
    file.write_bytes(changed)
    with pytest.raises(Exception, match="changed while it was sealed"):
        write_seal(seal)
    assert file.read_bytes() == changed


def test_only_a_file_can_be_sealed(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="is a pipe, not a regular file"):
        open_dataset(pipe)


def test_check_names_both_values_and_exits_3(file, fixtures, capsys):
    file.write_bytes(ITEMS)
    words = ["dataset", "seal", str(file), "--fixtures", str(fixtures)]
    assert main([*words, "--check"]) == 3
    assert (
        f"tool_registry_sha256: the header has none, computed {REGISTRY}" in capsys.readouterr().err
    )
    assert file.read_bytes() == ITEMS
    assert main(words) == 0
    assert main([*words, "--check"]) == 0
    assert "the seal is whole" in capsys.readouterr().out
    with (fixtures / "a.jsonl").open("a") as stream:
        stream.write('{"name": "web.search", "key": {"q": "y"}, "result": 2}\n')
    assert main([*words, "--check"]) == 3
    assert "fixtures_sha256: the header has" in capsys.readouterr().err
    with file.open("ab") as stream:
        stream.write(b'\n{"prompt": "b"}\n')
    assert main([*words, "--check"]) == 3
    assert "dataset_sha256: the header has" in capsys.readouterr().err


def test_check_does_not_pass_what_it_could_not_check(file, fixtures, capsys):
    file.write_bytes(ITEMS)
    assert main(["dataset", "seal", str(file), "--fixtures", str(fixtures)]) == 0
    assert main(["dataset", "seal", str(file), "--check"]) == 2
    assert "name the folder with --fixtures" in capsys.readouterr().err
    assert main(["dataset", "seal", str(file), "--check", "--out", "x"]) == 2


def test_a58_a59_a67_a_sealed_dataset_runs_until_something_changes(
    file, fixtures, tmp_path, capsys
):
    """What seal writes is what a run computes: items, tools and fixtures."""
    file.write_bytes(b'{"prompt": "a", "metadata": {"sample_id": "1"}}\n')
    registry = tmp_path / "tools.json"
    registry.write_text('[{"name": "web.search", "parameters": {"type": "object"}}]')
    words = ["dataset", "seal", str(file), "--fixtures", str(fixtures), "--registry", str(registry)]
    assert main(words) == 0
    header = first_line(file)
    specs = Registry.from_specs(json.loads(registry.read_text()), where="")
    assert header["fixtures_sha256"] == ToolBroker(fixtures, specs).fixtures_sha256
    (tmp_path / "a.jsonl").write_text('{"sample_id": "1", "model_output": "b"}\n')
    config = {"dataset": str(file), "fixtures": str(fixtures), "registry": str(registry)}
    config |= {"model": str(tmp_path / "a.jsonl"), "out": str(tmp_path / "out.jsonl")}
    report = run(config).report
    assert set(report.provenance["pinned"].values()) == {"equal"}
    registry.write_text('[{"name": "web.search", "parameters": {"type": "object", "title": "x"}}]')
    with pytest.raises(FingerprintMismatch, match="tool_registry_sha256"):
        run(config)
    capsys.readouterr()
    assert main(words) == 0
    assert f"(was {header['tool_registry_sha256']})" in capsys.readouterr().out


def test_the_bundled_dataset_is_sealed():
    demo = demo_paths()
    with open_dataset(demo.dataset) as dataset:
        registry = Registry.from_specs(builtin_tools(), where="built in")
        fixtures = ToolBroker(demo.fixtures, registry).fixtures_sha256
        pins = {"tool_registry_sha256": registry.sha256, "fixtures_sha256": fixtures}
        check_seal(examine_seal(dataset, pins))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the dataset is empty"),
        (b'{"__header__": true}\n', "has a header, but no items"),
        (b'{"prompt": 3}\n', "data.jsonl:1: prompt: must be"),
        (b'{"__header__": 1}\n{"prompt": ""}\n', "data.jsonl:1: __header__"),
        (b'{"prompt": "a"}\n{"prompt": "a"}\n', "data.jsonl:2: sample_id"),
        (b'\xff{"prompt": "a"}\n', "data.jsonl:1: not UTF-8"),
        (b'{"prompt": "a", "metadata": {"tools": ["fly"]}}\n', "(samples: 1) is not a tool"),
    ],
)
def test_a_broken_dataset_is_not_sealed(file, capsys, content, message):
    file.write_bytes(content)
    assert main(["dataset", "seal", str(file)]) == 2
    assert message in capsys.readouterr().err
    assert file.read_bytes() == content


def test_missing_files_are_named(file, capsys):
    assert main(["dataset", "seal", str(file)]) == 2
    assert f"{file}: no such file" in capsys.readouterr().err
    file.write_bytes(ITEMS)
    assert main(["dataset", "seal", str(file), "--fixtures", "nowhere"]) == 2
    assert "no such fixture folder" in capsys.readouterr().err
    assert main(["dataset", "seal", str(file), "--registry", "nowhere.json"]) == 2
    assert main(["dataset", "seal", str(file), "--out", str(file.parent)]) == 2
    assert "is a folder" in capsys.readouterr().err
