"""A miss is explained by the fixtures that it came nearest to."""

import random

import pytest

from callmark.broker.nearest import MAX_COMPARED, SHOWN, explain_miss


def entry(key, name="web.search", result=1, **more):
    return {"name": name, "key": key, "result": result, **more}


def test_a136_the_message_shows_where_what_and_what_next(broker_of, rope):
    broker = broker_of({"web.search.jsonl": [rope]})
    text = explain_miss(broker, "web_search", {"q": "Rope  precison"}).text()
    assert text.replace(broker.folder, "fixtures") == (
        'fixtures/web.search.jsonl: no entry for {"q":"rope precison","top_k":3}\n'
        '  nearest: {"q":"rope precision","top_k":3}   (line 1, differs in q)\n'
        "  add one: callmark fixtures suggest results.jsonl"
    )


def test_the_nearest_comes_first_and_names_the_leaves_that_differ(broker_of):
    broker = broker_of(
        entry({"q": "weather in Paris"}),
        entry({"q": "rope precision", "filter": {"days": [1, 7]}, "top_k": 5}),
        entry({"q": "rope precision", "filter": {"days": [1, 2]}}),
        entry({"q": "banana bread"}),
        entry({"q": "stock prices"}),
    )
    found = explain_miss(broker, "web.search", {"q": "rope precision", "filter": {"days": [1, 7]}})
    assert [near.line for near in found.nearest[:2]] == [2, 3]
    assert [near.differs for near in found.nearest[:2]] == [("top_k",), ("filter.days[1]",)]
    assert len(found.nearest) == SHOWN


def test_missing_and_extra_arguments_are_differences(broker_of):
    broker = broker_of(entry({"path": "a", "mode": "r"}, "read_file"))
    found = explain_miss(broker, "read_file", {"path": "a", "lines": 3})
    assert found.nearest[0].differs == ("lines", "mode")
    assert explain_miss(broker, "read_file", {}).nearest[0].differs == ("mode", "path")


def test_a_fixture_of_another_sample_is_shown_as_such(broker_of):
    broker = broker_of(entry({"q": "x"}, sample_id="s1"))
    found = explain_miss(broker, "web.search", {"q": "x"}, "s2")
    assert found.nearest[0].differs == ()
    assert "(line 1, only for sample s1)" in found.text()


def test_visible_fixtures_win_over_equally_near_ones_of_other_samples(broker_of):
    broker = broker_of(entry({"q": "xa"}, sample_id="s1"), entry({"q": "xb"}), entry({"q": "xc"}))
    assert [near.line for near in explain_miss(broker, "web.search", {"q": "x"}, "s2").nearest] == [
        2,
        3,
        1,
    ]


def test_a_tool_without_fixtures_is_told_of_similarly_named_ones(broker_of, rope):
    text = explain_miss(broker_of(rope), "web.serch", {"q": "rope precision", "top_k": 3}).text()
    assert "no entry for the tool web.serch" in text
    assert "nearest: web.search " in text


def test_a_tool_like_no_other_is_told_which_there_are(broker_of, rope):
    text = explain_miss(broker_of(rope), "zzz", {}).text()
    assert "tools with fixtures: web.search" in text
    assert "nearest" not in text


@pytest.mark.parametrize("arguments", [None, "x", [["q", "rope precision"]]])
def test_arguments_that_are_no_object_are_said_to_be_so(broker_of, rope, arguments):
    found = explain_miss(broker_of(rope), "web.search", arguments)
    assert (found.key_json, found.nearest) == (None, ())
    assert "its arguments are not an object" in found.text()
    assert "add one" not in found.text()


def test_what_a_model_wrote_cannot_steer_a_terminal(broker_of):
    hostile = "\x1b[2J\u202e\x9b\ufeff\U000e0001"
    broker = broker_of(entry({"path": hostile, hostile: 1}, "open", sample_id="x\x1b"))
    for name in ("open", hostile):
        text = explain_miss(broker, name, {"path": hostile + "b", "\x1b": 2}).text()
        assert all(line.isprintable() for line in text.split("\n"))


def test_many_fixtures_are_sketched_and_few_compared(broker_of, monkeypatch):
    import difflib

    words = random.Random(7)
    letters = "abcdefghijklmnopqrstuvwxyz"
    keys = ["".join(words.choices(letters, k=12)) for _ in range(2_000)]
    broker = broker_of(*(entry({"path": key}, "open") for key in keys))
    compared = []
    real = difflib.SequenceMatcher
    monkeypatch.setattr(
        difflib, "SequenceMatcher", lambda *given: compared.append(1) or real(*given)
    )
    typo = keys[1_500][:5] + "é" + keys[1_500][6:]
    found = explain_miss(broker, "open", {"path": typo})
    assert found.nearest[0].line == 1_501
    assert 0 < len(compared) <= MAX_COMPARED


def test_explaining_twice_gives_the_same_and_counts_nothing(broker_of, rope):
    broker = broker_of(rope, entry({"q": "a"}), entry({"q": "b"}))
    first = explain_miss(broker, "web.search", {"q": "c"})
    assert first == explain_miss(broker, "web.search", {"q": "c"})
    assert broker.stats == {"hits": 0, "misses": 0, "by_tool": {}}


def test_a_huge_call_is_explained_too(broker_of, rope):
    huge = {"q": "x" * 1_000_000, "list": list(range(10_000)), "deep": {"a": [{"b": [1] * 1_000}]}}
    assert explain_miss(broker_of(rope), "web.search", huge).nearest[0].line == 1


@pytest.mark.parametrize("name", [None, 3, ["open"]])
def test_a_name_that_is_no_text_is_explained_too(broker_of, rope, name):
    assert "no entry for (no name)" in explain_miss(broker_of(rope), name, {}).text()
