"""The public suites for JSON and for JSON Schema (draft 2020-12, required part)."""

import json
import os
import tarfile
from pathlib import Path

import pytest

from callmark.calls.ledger import read_turn
from callmark.calls.schema import SchemaError, compile_schema, schema_errors
from callmark.records.jsontext import NotJson, parse_json

pytestmark = pytest.mark.real

REAL_DATA = os.environ.get("CALLMARK_REAL_DATA")

# Schemas that point to another document on http://localhost:1234. Nothing is ever fetched, so each
# must be refused when it is compiled. (file, description of the group)
REMOTE_REFERENCES = {
    ("dynamicRef.json", "strict-tree schema, guards against misspelled properties"),
    ("dynamicRef.json", "tests for implementation dynamic anchor and reference link"),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $defs first"),
    ("dynamicRef.json", "$ref and $dynamicAnchor are independent of order - $ref first"),
    ("dynamicRef.json", "$ref to $dynamicRef finds detached $dynamicAnchor"),
    ("refRemote.json", "remote ref"),
    ("refRemote.json", "fragment within remote ref"),
    ("refRemote.json", "anchor within remote ref"),
    ("refRemote.json", "ref within remote ref"),
    ("refRemote.json", "base URI change"),
    ("refRemote.json", "base URI change - change folder"),
    ("refRemote.json", "base URI change - change folder in subschema"),
    ("refRemote.json", "root ref in remote ref"),
    ("refRemote.json", "remote ref with ref to defs"),
    ("refRemote.json", "Location-independent identifier in remote ref"),
    ("refRemote.json", "retrieved nested refs resolve relative to their URI not $id"),
    ("refRemote.json", "remote HTTP ref with different $id"),
    ("refRemote.json", "remote HTTP ref with different URN $id"),
    ("refRemote.json", "remote HTTP ref with nested absolute ref"),
    ("refRemote.json", "$ref to $ref finds detached $anchor"),
}
# It asks to forget `minimum` because a meta-schema on the network says so: that is not fetched
# either, so the keyword keeps its meaning.
REMOTE_META_SCHEMA = {
    (
        "vocabulary.json",
        "schema that uses custom metaschema with with no validation vocabulary",
        "no validation: invalid number, but it still validates",
    )
}


def members(archive, folder):
    if REAL_DATA is None:
        pytest.skip("CALLMARK_REAL_DATA is not set: the real suites are not here")
    with tarfile.open(Path(REAL_DATA) / "suites" / archive) as tar:
        for member in sorted(tar.getmembers(), key=lambda member: member.name):
            path = Path(member.name)
            if member.isfile() and path.suffix == ".json" and path.parent == Path(folder):
                yield path.name, tar.extractfile(member).read()


def test_json_schema_test_suite_required_part():
    refused, reasons, wrong, passed = set(), [], set(), 0
    for file, content in members("json_schema_draft2020-12.tar.gz", "tests/draft2020-12"):
        for group in json.loads(content):
            try:
                validator = compile_schema(group["schema"])
            except SchemaError as error:
                reasons.append(str(error))
                refused.add((file, group["description"]))
                continue
            for case in group["tests"]:
                if (schema_errors(validator, case["data"]) == ()) == case["valid"]:
                    passed += 1
                else:
                    wrong.add((file, group["description"], case["description"]))
    assert wrong == REMOTE_META_SCHEMA
    assert refused == REMOTE_REFERENCES
    assert all("nothing is fetched" in reason for reason in reasons)
    assert passed > 1_200


def test_json_parsing_suite():
    """y_ is accepted, n_ is refused, i_ may be either; nothing but NotJson is ever raised, neither
    by the parser nor by what reads calls out of text."""
    seen = {"y": 0, "n": 0, "i": 0}
    wrong = []
    for file, content in members("JSONTestSuite_parsing.tar.gz", "test_parsing"):
        seen[file[0]] += 1
        try:
            parse_json(content)
            accepted = True
        except NotJson:
            accepted = False
        if file[0] != "i" and accepted != (file[0] == "y"):
            wrong.append(file)
        text = content.decode("utf-8", "replace")
        for wrapped in (text, f"<tool_call>{text}</tool_call>", f"TOOL_CALL: {text}"):
            read_turn(wrapped, offered=None)
    assert wrong == []
    assert seen["y"] > 90
    assert seen["n"] > 180
    assert seen["i"] > 30
