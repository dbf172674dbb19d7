"""What a call is answered with: normalisation on both sides, misses, and what never happens."""

import builtins
import os
from pathlib import Path

import pytest

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry
from callmark.records.seams import Hit, Miss
from callmark.records.trace import is_miss_result

SPECS = [
    {
        "name": "web.search",
        "parameters": {
            "type": "object",
            "properties": {"q": {"type": "string"}, "lang": {"type": "string", "default": "en"}},
        },
        "x-callmark": {"ignore": ["trace_id"], "casefold": ["site"], "aliases": ["lookup"]},
    },
    {"name": "read_file", "parameters": {"type": "object"}},
]


def entry(name, key, result="answer", **more):
    return {"name": name, "key": key, "result": result, **more}


def test_a29_fixture_keys_are_normalised_too(broker_of):
    broker = broker_of(entry("web.search", {"q": "  What IS\trope  Precision "}))
    assert broker.call("web.search", {"q": "what is rope precision"}) == "answer"


@pytest.mark.parametrize(
    "arguments",
    [
        {"q": "ROPE precision"},
        {"q": "\trope\u00a0precision\u3000"},
        {"q": "rope\n \u2003precision", "top_k": 3},
        {"q": "rope precision", "unused": None, "top_k": None},
    ],
)
def test_a32_odd_case_spaces_and_null_keys_still_hit(broker_of, rope, arguments):
    assert broker_of(rope).call("web.search", arguments) == rope["result"]


@pytest.mark.parametrize("space", ["\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2009", "  "])
@pytest.mark.parametrize("argument", ["q", "query"])
def test_a72_every_white_space_in_queries_collapses(broker_of, argument, space):
    broker = broker_of(entry("find", {argument: "Rope precision"}))
    assert broker.call("find", {argument: f"{space}ROPE{space}{space}PRECISION{space}"}) == "answer"


def test_a72_other_arguments_keep_their_case_and_spaces(broker_of):
    broker = broker_of(entry("read_file", {"path": "README.md"}))
    assert broker.lookup("read_file", {"path": "readme.md"}) is None
    assert broker.lookup("read_file", {"path": " README.md"}) is None


@pytest.mark.parametrize(
    "name", ["web.search", "web.search_async", "web.search_v2", "web.search.news"]
)
def test_a73_d1_top_k_defaults_to_3_for_every_search_tool(broker_of, name):
    broker = broker_of(entry(name, {"q": "x", "top_k": 3}))
    assert broker.call(name, {"q": "x"}) == "answer"
    assert broker.lookup(name, {"q": "x", "top_k": 4}) is None


def test_a73_top_k_is_not_added_to_other_tools(broker_of):
    broker = broker_of(entry("read_file", {"path": "a"}))
    assert broker.normalize("read_file", {"path": "a"}) == ("read_file", '{"path":"a"}')
    assert broker.lookup("read_file", {"path": "a", "top_k": 3}) is None


def test_a74_null_keys_are_removed_at_every_depth(broker_of):
    broker = broker_of(entry("find", {"q": "x", "filter": {"from": "2024"}}))
    assert broker.call("find", {"q": "x", "unused": None, "filter": {"from": "2024", "to": None}})
    assert broker.stats["hits"] == 1


def test_a75_d8_the_four_documented_calls_hit_one_entry(broker_of, rope):
    broker = broker_of(rope)
    calls = [
        {"q": "  ROPE  Precision  "},
        {"q": "rope precision"},
        {"q": "ROPE PRECISION", "top_k": None},
        {"q": "rope precision"},
    ]
    assert [broker.call("web.search", arguments) for arguments in calls] == [rope["result"]] * 4
    assert broker.stats == {
        "hits": 4,
        "misses": 0,
        "by_tool": {"web.search": {"hits": 4, "misses": 0}},
    }


def test_a76_optional_parameters_of_the_schema_may_be_left_out(broker_of):
    broker = broker_of(entry("web.search", {"q": "x", "lang": "en"}), registry=SPECS)
    assert broker.call("web_search", {"q": "X"}) == "answer"
    assert broker.call("lookup", {"q": "x", "trace_id": "77"}) == "answer"
    assert broker.lookup("web.search", {"q": "x", "lang": "de"}) is None


@pytest.mark.parametrize("registry", [None, SPECS, {"tools": SPECS}])
@pytest.mark.parametrize("recorded", ["web.search", "web_search", "web-search"])
@pytest.mark.parametrize("called", ["web.search", "web_search", "web-search"])
def test_d2_dots_and_underscores_meet_from_both_sides(broker_of, recorded, called, registry):
    broker = broker_of(entry(recorded, {"q": "x"}), registry=registry)
    assert broker.call(called, {"q": "x", "top_k": 3}) == "answer"
    assert broker.call(called, {"q": "x"}) == "answer"


def test_d2_a_spelling_that_fits_two_tools_fits_none(broker_of):
    broker = broker_of(entry("a.b", {}, 1), entry("a_b", {}, 2))
    assert (broker.call("a.b", {}), broker.call("a_b", {})) == (1, 2)
    assert is_miss_result(broker.call("a-b", {}))


def test_d3_a_recorded_null_is_an_answer(broker_of):
    broker = broker_of(entry("find", {}, None), entry("find", {"q": "x"}, 1))
    assert broker.call("find", {}) is None
    assert isinstance(broker.session().answer("find", {}), Hit)
    assert broker.stats["misses"] == 0


def test_d3_call_and_lookup_find_the_same(broker_of):
    broker = broker_of(entry("web.search", {"q": "x"}, 1), entry("web.search", {}, 2, match="any"))
    for arguments in ({"q": "x"}, {"q": "other"}, {}):
        assert broker.call("web_search", arguments) == broker.lookup("web_search", arguments)


@pytest.mark.parametrize(
    "arguments", ["README.md", ["path", "README.md"], [["path", "README.md"]], 3, True, None]
)
def test_d4_arguments_that_are_no_object_miss(broker_of, arguments):
    broker = broker_of(entry("read_file", {"path": "README.md"}), entry("x", {}, match="any"))
    assert broker.lookup("read_file", arguments) is None
    assert broker.lookup("x", arguments) is None
    assert broker.call("read_file", arguments) == {
        "ok": False,
        "error": "fixture_miss",
        "name": "read_file",
        "arguments": arguments,
        "key_normalized": None,
    }
    assert broker.normalize("read_file", arguments) == ("read_file", None)


@pytest.mark.parametrize("name", [None, 7, ["read_file"], {"name": "read_file"}])
def test_d4_a_name_that_is_no_text_misses(broker_of, name):
    broker = broker_of(entry("read_file", {}))
    assert broker.call(name, {})["name"] == name
    assert broker.lookup(name, {}) is None
    assert broker.stats["misses"] == 2


@pytest.mark.parametrize(("given", "hits"), [(3, True), (3.0, True), ("3", False), (True, False)])
def test_d9_3_and_3_0_are_one_number_and_text_is_none(broker_of, given, hits):
    broker = broker_of(entry("find", {"n": 3, "deep": [{"n": 3}]}))
    answer = broker.session().answer("find", {"n": given, "deep": [{"n": given}]})
    assert isinstance(answer, Hit) is hits


def test_d9_composed_and_decomposed_text_are_one(broker_of):
    broker = broker_of(entry("open", {"path": "caf\u00e9.txt"}))
    assert broker.call("open", {"path": "cafe\u0301.txt"}) == "answer"


def test_d9_zero_width_characters_in_queries_do_not_count(broker_of):
    broker = broker_of(entry("find", {"q": "rope"}))
    assert broker.call("find", {"q": "\ufeffro\u200bpe"}) == "answer"


def test_a136_a_miss_says_what_to_record(broker_of, rope):
    miss = broker_of(rope).call("web_search", {"q": " Rope  PRECISON "})
    assert miss == {
        "ok": False,
        "error": "fixture_miss",
        "name": "web.search",
        "arguments": {"q": " Rope  PRECISON "},
        "key_normalized": {"q": "rope precison", "top_k": 3},
    }
    added = broker_of(rope, entry(miss["name"], miss["key_normalized"], "added"))
    assert added.call("web.search", {"q": " Rope  PRECISON "}) == "added"


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "..\\x", "secret", "all.jsonl", "file:///etc/passwd"],
)
def test_a142_no_name_or_argument_of_a_model_reaches_the_disk(broker_of, rope, monkeypatch, name):
    broker = broker_of(rope)
    secret = '{"name": "secret", "key": {}, "result": "outside"}'
    Path(broker.folder).with_name("secret.jsonl").write_text(secret)

    def refuse(*arguments, **options):
        raise AssertionError(f"touched the disk: {arguments}")

    for module, function in ((builtins, "open"), (os, "open"), (os, "stat"), (os, "scandir")):
        monkeypatch.setattr(module, function, refuse)
    answer = broker.session().answer(name, {"path": name})
    monkeypatch.undo()
    assert answer == Miss(name, {"path": name}, {"path": name})


def test_a_caller_cannot_change_what_the_next_one_gets(broker_of, rope):
    specs = [{"name": "t", "x-callmark": {"default": {"opts": {"deep": [1]}}}}]
    broker = broker_of(rope, entry("t", {"x": 1}), registry=specs)
    broker.call("web.search", {"q": "rope precision"})["hits"].clear()
    assert broker.call("web.search", {"q": "rope precision"}) == rope["result"]
    broker.call("t", {})["key_normalized"]["opts"]["deep"].append(2)
    assert broker.call("t", {})["key_normalized"] == {"opts": {"deep": [1]}}


def test_the_arguments_of_a_call_are_left_as_they_are(broker_of, rope):
    arguments = {"q": "  ROPE precision ", "unused": None}
    broker_of(rope).call("web.search", arguments)
    assert arguments == {"q": "  ROPE precision ", "unused": None}


def test_the_result_keeps_the_order_of_its_keys(broker_of):
    broker = broker_of('{"name": "t", "key": {}, "result": {"z": 1, "a": {"y": 2, "b": 3}}}')
    assert list(broker.call("t", {})) == ["z", "a"]
    assert list(broker.call("t", {})["a"]) == ["y", "b"]


@pytest.mark.parametrize("number", ["12345678901234567890123", "0.1", "-0.0", "1e-7", "5e300"])
def test_numbers_in_results_are_exact(broker_of, number):
    broker = broker_of(f'{{"name": "t", "key": {{}}, "result": [{number}]}}')
    assert repr(broker.call("t", {})) == repr(eval(f"[{number}]"))  # noqa: S307


def test_a_registry_object_and_its_specs_do_the_same(broker_of):
    by_specs = broker_of(entry("web.search", {"q": "x"}), registry=SPECS)
    registry = Registry.from_specs(SPECS, where="here")
    by_object = ToolBroker(by_specs.folder, registry)
    arguments = {"q": "X", "site": "A.org"}
    assert by_specs.normalize("lookup", arguments) == by_object.normalize("lookup", arguments)
    assert by_object.registry is registry


def test_without_a_registry_everything_that_needs_no_schema_is_done(broker_of):
    broker = broker_of(entry("web.search", {"q": "x"}))
    name, key = broker.normalize("web_search", {"q": " X ", "n": 2.0, "none": None})
    assert (name, key) == ("web.search", '{"n":2,"q":"x","top_k":3}')


def test_hostile_arguments_are_misses(broker_of, rope):
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    session = broker_of(rope).session("s")
    for arguments in (
        {"q": deep},
        {"q": {1: 2}},
        {"q": float("nan")},
        {"q": "\ud800"},
        {"q": object()},
    ):
        assert isinstance(session.answer("web.search", arguments), Miss)
