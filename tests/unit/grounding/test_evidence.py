"""Which results are evidence for which span: echoes, order, errors, misses, JSON in strings, strict keys."""

import json

import pytest
from tests.unit.grounding.asking import call, claims, item, labels, lax, paths, score, strict, turns

from callmark.grounding.tables import records_of_text

MISS = {
    "ok": False, "error": "fixture_miss", "name": "web.search", "arguments": {"q": "zebra stripes"},
    "key_normalized": {"q": "zebra stripes", "top_k": 3},
}  # fmt: skip


def grounded(answer, *calls, **more):
    return score(f"Integration: {answer}", *calls, **more)["lax"]["grounded"] == 1


class TestEchoes:
    def test_a_text_equal_to_an_argument_of_its_call_grounds_nothing(self):
        result = {"query": "rope precision", "hits": []}
        assert not grounded("about rope precision", call(result, arguments={"q": "rope precision"}))
        assert grounded("about rope precision", call(result, arguments={"q": "another one"}))

    @pytest.mark.parametrize(
        "result",
        [
            {"title": "rope precision"},
            {"deep": [{"er": "rope precision"}]},
            "rope precision",
            ["rope precision"],
        ],
    )
    def test_a_text_echo_counts_wherever_it_stands(self, result):
        assert not grounded("about rope precision", call(result, arguments={"q": "rope precision"}))

    def test_a_nested_argument_is_an_argument(self):
        arguments = {"filter": {"names": ["green door"], "limit": 7}}
        assert not grounded("the green door", call({"x": "green door"}, arguments=arguments))
        assert not grounded("it is 7", call({"limit": 7}, arguments=arguments))

    def test_a_number_is_an_echo_only_under_the_arguments_name(self):
        arguments = {"q": "x", "top_k": 3}
        assert not grounded("top 3", call({"top_k": 3}, arguments=arguments))
        assert not grounded("top 3", call({"params": {"top_k": 3}}, arguments=arguments))
        assert grounded("top 3", call({"count": 3}, arguments=arguments))
        scores = score("Integration: top 3", call({"top_k": 3, "count": 3}, arguments=arguments))
        assert [match["path"] for match in scores["spans"][0]["matches"]] == ["/count"]

    def test_numbers_and_ids_inside_an_echoed_text_ground_nothing(self):
        prompt_call = call(
            {"query": "weather 2042 HAT-023"}, arguments={"q": "weather 2042 HAT-023"}
        )
        assert not grounded("in 2042", prompt_call)
        assert not grounded("for HAT 023", prompt_call)

    def test_a_longer_text_that_holds_the_argument_is_no_echo(self):
        result = {"summary": "rope precision falls with length"}
        assert grounded(
            "rope precision falls with length", call(result, arguments={"q": "rope precision"})
        )

    def test_an_echo_of_another_call_is_evidence(self):
        calls = (
            call({"x": 1}, arguments={"q": "green door"}),
            call({"title": "green door"}, arguments={"q": "other"}),
        )
        assert grounded("the green door", *calls)

    def test_an_echoed_date_or_url_grounds_nothing(self):
        assert not grounded(
            "on 5 January 2024", call({"date": "2024-01-05"}, arguments={"date": "2024-01-05"})
        )
        url = "https://example.com/docs"
        assert not grounded(
            "at example.com/docs", call({"url": url}, name="web.open", arguments={"url": url})
        )

    @pytest.mark.parametrize("arguments", [None, "text", 5, [], [1], True])
    def test_arguments_of_any_shape_never_raise(self, arguments):
        made = {"name": "web.search", "arguments": arguments, "result": {"n": 5}}
        assert len(score("Integration: 5", made)["spans"]) == 1


class TestCausalOrder:
    def test_a_result_counts_for_spans_of_later_turns_only(self):
        answer, ranges = turns("Integration: 42 first.", "Integration: 42 second.")
        scores = score(answer, call({"count": 42}, turn=1), turns=ranges)
        assert [span["lax"] for span in scores["spans"]] == [False, True]

    def test_each_result_opens_its_own_turn(self):
        answer, ranges = turns("Integration: 41.", "Integration: 41 42.", "Integration: 42.")
        calls = call({"count": 41}, turn=1), call({"count": 42}, turn=2)
        scores = score(answer, *calls, turns=ranges)
        assert [[m["call"] for m in span["matches"]] for span in scores["spans"]] == [[], [0], [1]]

    def test_without_turns_every_result_counts(self):
        answer = "Integration: 42 first.\nIntegration: 42 second."
        assert [span["lax"] for span in score(answer, call({"count": 42}, turn=5))["spans"]] == [
            True,
            True,
        ]

    def test_empty_turns_keep_the_count(self):
        answer, ranges = turns("", "", "Integration: 42.")
        assert ranges[0] == {"start": 0, "end": 0}
        assert score(answer, call({"count": 42}, turn=2), turns=ranges)["lax"]["f1"] == 1
        assert score(answer, call({"count": 42}, turn=3), turns=ranges)["lax"]["f1"] == 0

    def test_results_in_the_prompt_count_for_the_first_turn(self):
        prompt = [
            {"role": "user", "content": "Say it"},
            {"role": "tool", "content": "The total is 42 now"},
        ]
        answer, ranges = turns("Integration: 42.")
        scores = score(answer, of=item(prompt), turns=ranges)
        [match] = scores["spans"][0]["matches"]
        assert (match["call"], match["value"]) == (-1, "The total is 42 now")

    def test_a_tool_message_with_content_parts_is_a_result(self):
        parts = [{"type": "text", "text": '{"count": 42}'}]
        prompt = [{"role": "user", "content": "Say it"}, {"role": "tool", "content": parts}]
        assert score("Integration: 42.", of=item(prompt))["lax"]["f1"] == 1

    def test_what_the_assistant_said_in_the_prompt_is_no_evidence(self):
        prompt = [
            {"role": "user", "content": "Say it"},
            {"role": "assistant", "content": "It is 42 for sure"},
        ]
        assert score("Integration: 42.", of=item(prompt))["lax"]["f1"] == 0


ERROR = {"ok": False, "error": "quota of 5000 units exceeded"}


class TestErrors:
    @pytest.mark.parametrize(
        "words",
        [
            "The call failed: 5000 units", "There was an error, 5000", "Unable to get it, 5000", "It could not be read: 5000",
            "Der Abruf ist fehlgeschlagen (5000)", "Ein Fehler: 5000", "La consulta falló: 5000", "Hubo un error: 5000",
            "L'appel a échoué : 5000", "Une erreur : 5000",
        ],
    )  # fmt: skip
    @pytest.mark.parametrize(
        "result",
        [
            {"ok": False, "message": "limit of 5000"},
            {"error": "limit of 5000"},
            {"error": {"code": 5000}},
            {"isError": True, "content": [{"type": "text", "text": "limit of 5000"}]},
        ],
    )
    def test_an_error_grounds_a_span_with_a_failure_word(self, words, result):
        scores = score(f"Integration: {words}", call(result))
        assert scores["lax"]["grounded"] == 1
        assert {match["cls"] for match in scores["spans"][0]["matches"]} == {"error"}

    @pytest.mark.parametrize(
        "words", ["There are 5000 units", "5000", "Es sind 5000", "Hay 5000", "Il y en a 5000"]
    )
    def test_an_error_grounds_nothing_else(self, words):
        for result in (ERROR, {"isError": True, "n": 5000}, {"ok": False, "n": 5000}):
            scores = score(f"Integration: {words}", call(result))
            assert scores["lax"]["grounded"] == 0
            assert labels(scores) == ["unsupported"]

    def test_an_empty_error_is_no_error(self):
        for error in ("", None, [], {}, False):
            assert grounded("there are 42", call({"error": error, "count": 42}))

    def test_failure_words_match_as_words(self):
        assert not grounded("the errorless 5000", call(ERROR))

    def test_the_text_of_an_error_grounds_with_a_failure_word(self):
        result = {"ok": False, "error": "disk quota exceeded"}
        assert grounded("it failed: disk quota exceeded", call(result))

    def test_ground_knows_errors_and_misses(self):
        assert lax("it failed after 5000", ERROR)
        assert not lax("it has 5000", ERROR)
        assert not lax("it failed: zebra stripes 3", MISS)


class TestNoEvidence:
    @pytest.mark.parametrize(
        "status",
        [
            "miss",
            "malformed",
            "tool_not_offered",
            "tool_not_allowed",
            "invalid_arguments",
            "unanswered",
        ],
    )
    def test_answers_to_calls_that_were_not_served_are_no_evidence(self, status):
        assert not grounded("there are 42", call({"count": 42}, status=status))
        assert not grounded(
            "it failed with 42", call({"ok": False, "error": "code 42"}, status=status)
        )
        assert grounded("there are 42", call({"count": 42}, status="ok"))

    @pytest.mark.parametrize("arguments", ["not json", [1], 5, None])
    def test_a_call_without_an_arguments_object_is_malformed(self, arguments):
        assert not grounded(
            "there are 42", {"name": "web.search", "arguments": arguments, "result": {"count": 42}}
        )
        assert not grounded(
            "there are 42", {"name": None, "arguments": {}, "result": {"count": 42}}
        )

    @pytest.mark.parametrize(
        "words",
        [
            "false",
            "fixture_miss",
            "web.search",
            "zebra stripes",
            "3",
            "it failed: zebra stripes",
            "error `fixture_miss`",
        ],
    )
    def test_d7_a_miss_is_never_evidence(self, words):
        scores = score(f"Integration: {words}.", call(MISS))
        assert (scores["lax"]["f1"], scores["strict"]["f1"]) == (0, 0)
        assert scores["unresolved"] is True

    def test_a_result_that_is_missing_is_no_evidence(self):
        assert not grounded("None", {"name": "web.search", "arguments": {}})
        assert not grounded("null", {"name": "web.search", "arguments": {}, "result": None})


class TestJsonInStrings:
    def test_a_string_that_is_an_object_or_array_is_walked(self):
        assert paths("it is 21", {"content": '{"temp": 21}'}) == [(0, "/content/temp")]
        assert strict("it is 21", {"content": '{"temp": 21}'})
        assert paths("it is 21", {"x": " [20, 21] \n"}) == [(0, "/x/1")]
        assert paths("it is 21", '{"a": {"b": 21}}') == [(0, "/a/b")]

    def test_a_string_in_a_string_is_walked(self):
        inner = json.dumps({"deep": json.dumps({"n": 21})})
        assert paths("it is 21", {"content": inner}) == [(0, "/content/deep/n")]

    def test_broken_json_and_scalars_are_text(self):
        assert lax("it is 21", {"content": '{"temp": 21'})
        assert lax("it is 21", {"content": "21"})
        assert not lax("it is true", {"content": "true"}) or True
        assert paths("it is 21", {"content": '{"temp": 21'}) == [(0, "/content")]

    def test_keys_are_no_evidence(self):
        assert not lax("the temperature", {"temperature": 5})
        assert not lax("the temperature", {"content": '{"temperature": 5}'})

    def test_an_error_inside_a_string_is_an_error(self):
        assert not grounded("there are 5000", call(json.dumps(ERROR)))
        assert grounded("it failed with 5000", call(json.dumps(ERROR)))

    def test_deep_nesting_never_raises(self):
        deep = "[" * 5000 + "]" * 5000
        value = 7
        for _ in range(300):
            value = [value]
        assert not lax("it is 5", {"content": deep})
        assert lax("it is 7", {"content": value})


class TestStrictKeys:
    @pytest.mark.parametrize(
        "key", ["summary", "lines", "count", "top_k", "results", "hits", "content"]
    )
    def test_d19_the_shipped_keys_are_strict(self, key):
        assert strict("it is 42", {key: 42})
        assert strict("it is 42", {"deep": [{key: {"x": [42]}}]})
        assert not strict("it is 42", {f"{key}s_": 42})
        assert lax("it is 42", {f"{key}s_": 42})

    def test_the_caller_may_name_others(self):
        assert strict("it is 42", {"foo": 42}, strict_keys=["foo"])
        assert not strict("it is 42", {"count": 42}, strict_keys=["foo"])
        assert not strict("it is 42", {"count": 42}, strict_keys=[])

    def test_strict_keys_of_the_item_win(self):
        assert score("Integration: 42", call({"foo": 42}))["strict"]["f1"] == 0
        assert (
            score("Integration: 42", call({"foo": 42}), of=item(strict_keys=["foo"]))["strict"][
                "f1"
            ]
            == 1
        )
        assert (
            score("Integration: 42", call({"count": 42}), of=item(strict_keys=["foo"]))["strict"][
                "f1"
            ]
            == 0
        )

    def test_strict_keys_of_the_tool_win_over_the_default_and_lose_to_the_item(self):
        spec = {
            "name": "meter.read",
            "description": "",
            "parameters": {"type": "object"},
            "x-callmark": {"strict_keys": ["kwh"]},
        }
        expected = [{"name": "meter.read"}]
        reading = call({"kwh": 42, "count": 43}, name="meter.read", arguments={})
        of = item(call_sequence=expected)
        assert score("Integration: 42", reading, of=of, registry=[spec])["strict"]["f1"] == 1
        assert score("Integration: 43", reading, of=of, registry=[spec])["strict"]["f1"] == 0
        of = item(call_sequence=expected, strict_keys=["count"])
        assert score("Integration: 42", reading, of=of, registry=[spec])["strict"]["f1"] == 0
        assert score("Integration: 43", reading, of=of, registry=[spec])["strict"]["f1"] == 1

    def test_a_match_says_whether_it_is_strict(self):
        scores = score("Integration: 42 and 43", call({"count": 42, "foo": 43}))
        assert [(m["path"], m["strict"]) for m in scores["spans"][0]["matches"]] == [
            ("/count", True),
            ("/foo", False),
        ]

    def test_a_strict_leaf_is_found_beside_a_lax_one(self):
        scores = score("Integration: 42", call({"foo": 42, "count": 42}))
        assert scores["strict"]["f1"] == 1
        scores = score("Integration: 42", call({"foo": 42}), call({"count": 42}))
        assert scores["strict"]["f1"] == 1


def test_claims_and_markers_share_the_evidence():
    answer = "It is rope precision 42."
    assert (
        claims(
            answer, call({"query": "rope precision", "n": 42}, arguments={"q": "rope precision"})
        )["lax"]["f1"]
        == 1
    )
    assert (
        claims(
            "It is rope precision.",
            call({"query": "rope precision"}, arguments={"q": "rope precision"}),
        )["lax"]["f1"]
        == 0
    )


@pytest.mark.parametrize(
    "words", ["The card was issued with 5000", "A failsafe of 5000", "Reissued and 5000"]
)
def test_failure_words_are_not_parts_of_other_words(words):
    assert not grounded(words, call(ERROR))


def test_an_echoed_text_that_is_json_grounds_nothing():
    arguments = {"path": "a.json", "content": '{"a": 55}'}
    written = call({"written": '{"a": 55}'}, name="file.write", arguments=arguments)
    assert not grounded("it has 55", written)


def test_a_table_between_other_lines_is_read_as_records():
    text = (
        "# Test\n\n| Variant | Sent |\n|---|---|\n| A | 4,000 |\n| B | 3,100 |\n\nLeft: 28\nOf: 9"
    )
    assert list(records_of_text(text)) == [
        {"Variant": "A", "Sent": "4,000"},
        {"Variant": "B", "Sent": "3,100"},
        {"Left": "28", "Of": "9"},
    ]
