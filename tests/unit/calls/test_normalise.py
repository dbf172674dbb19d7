"""The one normaliser: five rules, the same for fixture keys and for calls."""

import json
from pathlib import Path

import pytest

import callmark
from callmark.calls.attempts import fold_query
from callmark.calls.registry import Registry, normalise

BUILTIN = Registry.from_specs(
    json.loads((Path(callmark.__file__).parent / "data/tools/builtin.json").read_text("utf-8")),
    where="builtin.json",
)


def key_of(name, arguments, registry=BUILTIN, known_names=()):
    call = normalise(name, arguments, registry=registry, known_names=known_names)
    assert call is not None
    return call.key


def tool(**fields):
    return Registry.from_specs([{"name": "f", **fields}], where="test")


def test_a75_the_four_spellings_of_a_query_are_one_key():
    keys = [
        normalise("web.search", arguments, registry=BUILTIN).key_json
        for arguments in (
            {"q": "rope precision", "top_k": 3},
            {"q": "  Rope   Precision  "},
            {"q": "ROPE PRECISION", "top_k": None},
            {"q": "rope precision"},
        )
    ]
    assert keys == ['{"q":"rope precision","top_k":3}'] * 4


@pytest.mark.parametrize(
    "query",
    ["rope precision", "ROPE\tPRECISION", "\nrope\u00a0precision ", "rope\u3000\u2009precision",
     "rope\u2028precision", "\u200brope precision\ufeff", "rope \u2060precision"],
)  # fmt: skip
def test_a72_case_and_every_unicode_space_are_folded_in_queries(query):
    assert key_of("t", {"q": query})["q"] == "rope precision"
    assert key_of("t", {"query": query})["query"] == "rope precision"


def test_queries_fold_beyond_ascii():
    assert fold_query("STRASSE") == fold_query("straße") == "strasse"
    assert fold_query("CAFE\u0301") == fold_query("café") == "café"
    assert fold_query("ΟΔΟΣ") == fold_query("οδος")


def test_d9_zero_width_characters_go_only_where_nobody_means_them():
    """Dropped in queries; kept in other arguments; joiners, which change the text, always stay."""
    assert key_of("t", {"path": "a\u200bb"}) == {"path": "a\u200bb"}
    assert key_of("t", {"q": "می\u200cخواهم"})["q"] == "می\u200cخواهم"


def test_other_strings_keep_case_and_blanks():
    assert key_of("t", {"path": " Docs/READ me.md "}) == {"path": " Docs/READ me.md "}
    assert key_of("t", {"filter": {"q": "Big Case"}}) == {"filter": {"q": "Big Case"}}


@pytest.mark.parametrize(
    "name", ["web.search", "web.search_v2", "web.search.news", "web_search", "web-search.images"]
)
def test_d1_top_k_is_3_for_every_tool_that_starts_with_web_search(name):
    assert key_of(name, {"q": "x"}, registry=None) == {"q": "x", "top_k": 3}
    assert key_of(name, {"q": "x", "top_k": 5}, registry=None) == {"q": "x", "top_k": 5}


def test_a73_other_tools_get_no_top_k():
    assert key_of("read_file", {"path": "x"}) == {"path": "x"}
    assert key_of("my.web.search", {"q": "x"}) == {"q": "x"}


def test_d2_names_meet_from_both_sides():
    """A fixture may spell the name as the endpoint does, a call as the dataset does, and back."""
    for fixture_name in ("web.search", "web_search", "web-search"):
        for call_name in ("web.search", "web_search", "web-search"):
            known = {fixture_name}
            for registry in (BUILTIN, None):
                fixture = normalise(fixture_name, {"q": "x"}, registry=registry, known_names=known)
                call = normalise(call_name, {"q": "X"}, registry=registry, known_names=known)
                assert call == fixture


def test_names_that_only_fixtures_know_resolve_among_them():
    known = {"kb.lookup", "a.b", "a_b"}
    assert normalise("kb_lookup", {}, registry=BUILTIN, known_names=known).name == "kb.lookup"
    assert normalise("a_b", {}, registry=BUILTIN, known_names=known).name == "a_b"
    assert normalise("a-b", {}, registry=BUILTIN, known_names=known).name == "a-b"
    assert normalise("code.execute", {"code": "1"}, registry=BUILTIN).name == "code_exec"


def test_a74_nulls_are_removed_at_every_depth_but_keep_their_place_in_lists():
    arguments = {"a": None, "b": {"c": None, "d": [{"e": None, "f": 1}, None]}, "g": {"h": None}}
    assert key_of("t", arguments) == {"b": {"d": [{"f": 1}, None]}, "g": {}}


def test_d9_three_and_three_point_zero_are_one_number_and_text_is_none():
    def text(value):
        return normalise("t", {"n": value}, registry=None).key_json

    assert text(3) == text(3.0) == '{"n":3}'
    assert len({text(3), text("3"), text(True), text(3.5)}) == 4
    assert text([3.0, {"x": 4.0}]) == text([3, {"x": 4}])
    assert text(9007199254740993) != text(9007199254740992.0)
    assert text(10**30) == '{"n":' + str(10**30) + "}"
    assert text(-0.0) == text(0)
    assert text(1) != text(True)
    assert text(1e-7) == '{"n":1e-07}'


def test_strings_and_keys_are_nfc():
    assert key_of("t", {"cafe\u0301": "re\u0301sume\u0301"}) == {"café": "résumé"}
    assert key_of("t", {"x": "\ud800"}) == {"x": "\ufffd"}


def test_defaults_of_the_schema_fill_what_is_missing():
    registry = tool(
        parameters={
            "properties": {
                "lang": {"default": "en"}, "n": {"default": 2.0}, "none": {"default": None},
                "q": {"default": "  ANY "}, "odd": True,
            }
        }
    )  # fmt: skip
    assert key_of("f", {}, registry) == {"lang": "en", "n": 2, "q": "any"}
    assert key_of("f", {"lang": "de", "n": None}, registry) == {"lang": "de", "n": 2, "q": "any"}


def test_x_callmark_wins():
    registry = Registry.from_specs(
        [
            {
                "name": "web.search.docs",
                "parameters": {
                    "properties": {
                        "top_k": {"default": 7},
                        "lang": {"default": "en"},
                        "u": {"default": 1},
                    }
                },
                "x-callmark": {
                    "ignore": ["request_id", "u"],
                    "casefold": ["site"],
                    "default": {"top_k": 10, "lang": None, "site": "DOCS"},
                },
            }
        ],
        where="test",
    )
    assert key_of("web_search_docs", {"q": "A", "request_id": "r-1"}, registry) == {
        "q": "a", "top_k": 10, "site": "docs",
    }  # fmt: skip
    assert (
        key_of("web.search.docs", {"q": "A", "site": " My  Site "}, registry)["site"] == "my site"
    )


def test_top_k_3_comes_before_the_default_of_the_schema():
    registry = Registry.from_specs(
        [{"name": "web.search", "parameters": {"properties": {"top_k": {"default": 7}}}}],
        where="test",
    )
    assert key_of("web.search", {"q": "x"}, registry)["top_k"] == 3


@pytest.mark.parametrize(
    "arguments",
    [None, "x", 3, [], [["path", "README.md"]], {1: 2}, {"a": {2: 3}}, {"a": float("nan")},
     {"a": [float("inf")]}, {"a": {1, 2}}, {"a": b"x"}, {"a": 10**5000}],
    ids=lambda value: str(type(value)),
)  # fmt: skip
def test_d4_what_is_no_json_object_has_no_key(arguments):
    """It can never hit a fixture, and it never raises."""
    assert normalise("read_file", arguments, registry=BUILTIN) is None
    assert normalise(None, {}, registry=BUILTIN) is None
    assert normalise(3, {}, registry=None) is None


def test_deep_arguments_do_not_overrun_the_stack():
    deep: dict = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert normalise("t", deep, registry=None) is None


def test_folding_a_query_twice_changes_nothing_for_any_character():
    for code in range(0x110000):
        character = chr(code)
        if character.casefold() != character:
            once = fold_query(f"a{character}\u0301")
            assert fold_query(once) == once, hex(code)
