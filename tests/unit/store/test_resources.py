"""What ships is there and readable, and files of the same shapes are read with clear errors."""

import json

import pytest

from callmark.calls.registry import Registry
from callmark.errors import BadInput
from callmark.resources import (
    allowlist,
    builtin_tools,
    default_config,
    demo_paths,
    load_registry_file,
)

SPEC = {"name": "lookup", "description": "d", "parameters": {"type": "object"}}


def problems_of(path):
    with pytest.raises(BadInput) as caught:
        load_registry_file(path)
    return list(caught.value.problems)


def test_a18_a19_the_shipped_files_are_there():
    assert default_config()["gates"]
    assert "web.search" in allowlist()
    demo = demo_paths()
    assert demo.dataset.is_file()
    assert demo.answers.is_file()
    assert demo.fixtures.is_dir()


def test_a59_the_registry_hash_is_computed_from_the_shipped_specs():
    registry = Registry.from_specs(builtin_tools(), where="built-in")
    assert set(allowlist()) == set(registry.names)


def test_d51_the_hash_changes_with_a_schema(tmp_path):
    path = tmp_path / "tools.json"
    hashes = set()
    for kind in ("object", ["object"]):
        path.write_text(json.dumps([{**SPEC, "parameters": {"type": kind}}]), "utf-8")
        hashes.add(Registry.from_specs(load_registry_file(path).specs, where="x").sha256)
    assert len(hashes) == 2


def test_a_folder_of_specs_is_one_registry(tmp_path):
    (tmp_path / "b.json").write_text(json.dumps({"type": "function", "function": SPEC}), "utf-8")
    (tmp_path / "a.json").write_text(json.dumps([{**SPEC, "name": "one"}]), "utf-8")
    (tmp_path / "c.json").write_text(json.dumps({"tools": [{**SPEC, "name": "two"}]}), "utf-8")
    (tmp_path / "readme.md").write_text("no spec", "utf-8")
    specs = load_registry_file(tmp_path).specs
    assert list(specs) == ["one", "lookup", "two"]
    assert Registry.from_specs(specs, where=str(tmp_path)).names == ("lookup", "one", "two")


def test_a_file_and_a_folder_give_the_same_hash(tmp_path):
    file = tmp_path / "tools.json"
    folder = tmp_path / "tools"
    folder.mkdir()
    specs = [SPEC, {**SPEC, "name": "other"}]
    file.write_text(json.dumps({"tools": specs}), "utf-8")
    for spec in specs:
        (folder / f"{spec['name']}.json").write_text(json.dumps(spec), "utf-8")
    one, other = (
        Registry.from_specs(load_registry_file(p).specs, where="x") for p in (file, folder)
    )
    assert one.sha256 == other.sha256


def test_wrong_files_of_a_folder_are_named(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps(SPEC), "utf-8")
    (tmp_path / "b.json").write_text(json.dumps([SPEC, {"description": "no name"}]), "utf-8")
    (tmp_path / "c.json").write_bytes(b"?")
    (tmp_path / "d.json").write_bytes(b"\xff")
    assert problems_of(tmp_path) == [
        f"{tmp_path}/b.json:1: lookup: also stands at {tmp_path}/a.json:1",
        f"{tmp_path}/b.json:1: tool 2: name: is missing",
        f"{tmp_path}/c.json:1: not JSON: Expecting value (column 1)",
        f"{tmp_path}/d.json:1: not UTF-8 (byte 0)",
    ]


def test_a_missing_registry_and_an_empty_folder_are_named(tmp_path):
    assert problems_of(tmp_path / "no.json") == [f"{tmp_path}/no.json: no such file"]
    assert problems_of(tmp_path) == [f"{tmp_path}: has no *.json file with a tool in it"]


def test_an_allowlist_of_ones_own(tmp_path):
    path = tmp_path / "allow.json"
    for value in (["a", "b"], {"tools": ["a", "b"]}):
        path.write_text(json.dumps(value), "utf-8")
        assert allowlist(path) == ("a", "b")
    for value in ({"tool": []}, "a", None):
        path.write_text(json.dumps(value), "utf-8")
        with pytest.raises(BadInput, match=r"allow.json:1: must be a list of tool names"):
            allowlist(path)
    path.write_text('["a",\n"b",\n7]', "utf-8")
    with pytest.raises(BadInput, match=r"allow.json:3: entry 3: must be the name of a tool"):
        allowlist(path)
    with pytest.raises(BadInput, match="is a folder, a file is needed"):
        allowlist(tmp_path)
