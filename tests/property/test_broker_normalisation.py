"""However a call is written, it reaches its fixture; and the folder's hash sees only its lines."""

import json
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.broker.broker import ToolBroker
from callmark.broker.check import check_fixtures
from callmark.broker.fixtures import FIELDS
from callmark.errors import BadInput
from callmark.records.seams import Hit

SPECS = [
    {
        "name": "web.search",
        "parameters": {
            "type": "object",
            "properties": {"lang": {"default": "en"}, "n": {"default": 5}},
        },
        "x-callmark": {"ignore": ["trace_id"], "casefold": ["site"]},
    }
]
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.sampled_from(["q", "query", "top_k", "lang", "n", "site", "trace_id", "path"]) | TEXT
KEYS = st.dictionaries(ARGUMENTS, VALUES, max_size=5)
NAMES = st.sampled_from(["web.search", "web_search", "web.search_v2", "read_file", "a-b"])
ENTRIES = st.builds(
    lambda name, key, result: {"name": name, "key": key, "result": result}, NAMES, KEYS, VALUES
)

on_disk = settings(deadline=None, max_examples=60)  # each example writes a folder


def broker_on(folder: str, files: dict[str, list[str]], registry=None) -> ToolBroker:
    for name, lines in files.items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("\n".join(lines), encoding="utf-8")
    return ToolBroker(folder, registry)


@on_disk
@given(entry=ENTRIES, registry=st.sampled_from([None, SPECS]), ascii_only=st.booleans())
def test_every_variant_of_any_key_hits(entry, registry, ascii_only):
    with tempfile.TemporaryDirectory() as folder:
        line = json.dumps(entry, ensure_ascii=ascii_only)
        broker = broker_on(folder, {"f.jsonl": [line]}, registry)
        check = check_fixtures(broker)
        assert (check.failures, check.unreachable, check.unchecked) == ((), (), ())
        assert check.ok
        answer = broker.session().answer(entry["name"], entry["key"])
        assert isinstance(answer, Hit)
        assert answer.result == entry["result"]


@on_disk
@given(entry=ENTRIES, query=TEXT, registry=st.sampled_from([None, SPECS]))
def test_looking_up_changes_nothing(entry, query, registry):
    with tempfile.TemporaryDirectory() as folder:
        broker = broker_on(folder, {"f.jsonl": [json.dumps(entry)]}, registry)
        call = {**entry["key"], "q": query}
        before = json.dumps(call)
        first = broker.session("s").answer(entry["name"], call)
        for result in (
            broker.call(entry["name"], entry["key"]),
            broker.lookup(entry["name"], call),
        ):
            if isinstance(result, dict | list):
                result.clear()
        assert broker.session("s").answer(entry["name"], call) == first
        assert json.dumps(call) == before
        hit = broker.session().answer(entry["name"], entry["key"])
        assert isinstance(hit, Hit)
        assert hit.result == entry["result"]


@on_disk
@given(
    entries=st.lists(st.tuples(NAMES, VALUES), max_size=6),
    order=st.randoms(use_true_random=False),
)
def test_fixtures_sha256_sees_neither_files_nor_order_nor_blank_lines(entries, order):
    lines = [
        json.dumps({"name": name, "key": {"id": number}, "result": result})
        for number, (name, result) in enumerate(entries)
    ]
    shuffled = order.sample(lines, len(lines))
    cut = order.randint(0, len(lines))
    files = {"z/one.jsonl": ["", *shuffled[:cut]], "a.jsonl": [*shuffled[cut:], "  ", ""]}
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        plain = broker_on(one, {"f.jsonl": lines})
        split = broker_on(other, files)
        assert plain.fixtures_sha256 == split.fixtures_sha256


LINES = st.binary(max_size=40) | ENTRIES.map(lambda entry: json.dumps(entry).encode())
ODD = st.fixed_dictionaries({}, optional=dict.fromkeys(FIELDS, VALUES)).map(json.dumps)


@on_disk
@given(
    lines=st.lists(LINES | ODD.map(str.encode), max_size=4),
    name=st.sampled_from(["f.json", "f.jsonl"]),
)
def test_any_bytes_load_or_are_named(lines, name):
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, name).write_bytes(b"\n".join(lines))
        try:
            ToolBroker(folder)
        except BadInput as error:
            assert all(problem.startswith(str(Path(folder, name))) for problem in error.problems)  # noqa: PT017
