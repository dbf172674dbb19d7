"""`match`: one fixture for many calls, and never two for one."""

import pytest

from callmark.broker.fixtures import MAX_TEXT
from callmark.errors import BadInput
from callmark.records.seams import Hit, Miss


def entry(match, key=None, result="pattern", name="t", **more):
    return {"name": name, "key": key or {}, "result": result, "match": match, **more}


def fits(broker, arguments, name="t") -> bool:
    answer = broker.session().answer(name, arguments)
    assert isinstance(answer, Miss) or answer.served_by == "fixture:pattern"
    return isinstance(answer, Hit)


@pytest.mark.parametrize(
    ("rule", "fitting", "others"),
    [
        ({"ignore": True}, [{"a": 1}, {}, {"a": None}, {"a": [1]}], [{"a": 1, "b": 2}]),
        (
            {"one_of": [1, "x", None]},
            [{"a": 1.0}, {"a": "x"}, {}, {"a": None}],
            [{"a": 2}, {"a": "X"}],
        ),
        ({"one_of": [True, [1, {"b": 2}]]}, [{"a": True}, {"a": [1.0, {"b": 2}]}], [{"a": 1}, {}]),
        (
            {"regex": r"v\d+"},
            [{"a": "v1"}, {"a": "v22"}],
            [{"a": "v1 "}, {"a": "xv1"}, {"a": 1}, {}],
        ),
        ({"regex": "caf\u00e9"}, [{"a": "cafe\u0301"}], [{"a": "CAFÉ"}]),
        ({"regex": "cafe\u0301"}, [{"a": "caf\u00e9"}], [{"a": "cafe"}]),
        ({"contains": "x y"}, [{"a": "ax yb"}], [{"a": "xy"}, {"a": "X Y"}, {"a": ["x y"]}, {}]),
    ],
)
def test_rules(broker_of, rule, fitting, others):
    broker = broker_of(entry({"a": rule}))
    assert [fits(broker, arguments) for arguments in fitting] == [True] * len(fitting)
    assert [fits(broker, arguments) for arguments in others] == [False] * len(others)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (1.1, True),
        (0.9, True),
        (1, True),
        (1.11, False),
        ("1", False),
        (True, False),
        (10**400, False),
    ],
)
def test_a_tolerance_is_measured_in_decimal_digits(broker_of, value, expected):
    broker = broker_of(entry({"a": {"number_tolerance": 0.1}}, {"a": 1}))
    assert fits(broker, {"a": value}) is expected
    assert not fits(broker, {})


def test_the_rest_of_the_key_must_be_equal(broker_of):
    broker = broker_of(entry({"q": {"contains": "rope"}}, {"lang": "en"}, name="web.search"))
    assert fits(broker, {"q": "The ROPE trick", "lang": "en"}, "web_search")
    assert not fits(broker, {"q": "rope", "lang": "de"}, "web.search")
    assert not fits(broker, {"q": "rope"}, "web.search")
    assert not fits(broker, {"q": "rope", "lang": "en", "top_k": 5}, "web.search")


@pytest.mark.parametrize(
    "rule",
    [{"contains": " ROPE  Trick"}, {"one_of": ["The ROPE\ttrick"]}, {"regex": "The ROPE .*"}],
)
def test_rules_on_queries_are_normalised_like_the_queries(broker_of, rule):
    broker = broker_of(entry({"q": rule}))
    assert fits(broker, {"q": "  the  Rope TRICK "})


def test_rules_follow_casefold_of_the_registry(broker_of):
    specs = [{"name": "t", "x-callmark": {"casefold": ["site"]}}]
    broker = broker_of(entry({"site": {"regex": r"[A-Z]+\.ORG"}}), registry=specs)
    assert fits(broker, {"site": "Example.org"})


def test_a_default_does_not_speak_against_a_rule(broker_of):
    broker = broker_of(entry({"top_k": {"one_of": [5, 10]}}, {"q": "x"}, name="web.search"))
    assert fits(broker, {"q": "x", "top_k": 10}, "web.search")
    assert not fits(broker, {"q": "x"}, "web.search")


def test_a_value_above_the_limit_fits_no_regex(broker_of):
    broker = broker_of(entry({"a": {"regex": "x+"}}))
    assert fits(broker, {"a": "x" * MAX_TEXT})
    assert not fits(broker, {"a": "x" * (MAX_TEXT + 1)})


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+$",
        "(a*)*b",
        "(a|aa)+b",
        "(?:a?){500}a{500}b",
        "a?" * 500 + "a" * 500 + "b",
        "(.*a){20}b",
        ".*" * 100 + "b",
        r"(\w+\s?)+b",
        "(?i)(A|a|[aA])*b",
    ],
)
def test_f15_no_expression_takes_for_ever(broker_of, pattern):
    """Each of these kept a backtracking engine busy for longer than anybody waits."""
    broker = broker_of(entry({"a": {"regex": pattern}}))
    assert not fits(broker, {"a": "a" * 20_000 + "!"})


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a+)(?#x)+b", "cannot be used: invalid perl operator: (?#"),
        ("(?=a+)b", "which has no look-around and no back-references"),
        ("(?<!a)b", "which has no look-around and no back-references"),
        (r"(a)\1", "which has no look-around and no back-references"),
        ("(?P<x>a)(?P=x)", "which has no look-around and no back-references"),
        ("(a{1,1000}){1,1000}", "cannot be used: invalid repetition size"),
        (r"\pL{1,900}", "cannot be used: pattern too large"),
        ("a" * 1_000_000, "cannot be used: pattern too large"),
        ("a{,3}", "write {0,3} instead of {,3}"),
    ],
)
def test_f15_what_the_engine_does_not_have_is_refused_with_its_place(broker_of, pattern, why):
    with pytest.raises(BadInput) as caught:
        broker_of(entry({"a": {"regex": pattern}}))
    [problem] = caught.value.problems
    assert "all.jsonl:1: match.a.regex: " in problem
    assert why in problem


def test_an_expression_reads_characters_not_bytes(broker_of):
    broker = broker_of(entry({"a": {"regex": r"gr.{2}e \pL+"}}))
    assert fits(broker, {"a": "größe Übung"})
    assert not fits(broker, {"a": "gröe Übung"})


def test_any_takes_what_is_left(broker_of):
    broker = broker_of(
        {"name": "t", "result": "any", "match": "any"}, entry({"a": {"ignore": True}})
    )
    assert [broker.call("t", a) for a in ({}, {"a": 1}, {"b": 1})] == ["pattern", "pattern", "any"]
    assert broker.lookup("u", {}) is None


def test_two_patterns_that_fit_one_call_are_an_error_that_names_both(broker_of):
    broker = broker_of(entry({"q": {"contains": "a"}}), entry({"q": {"contains": "b"}}, result=2))
    assert fits(broker, {"q": "xa"})
    with pytest.raises(BadInput, match=r"all\.jsonl:1: match: fits the call .*all\.jsonl:2"):
        broker.call("t", {"q": "ab"})


def test_an_exact_entry_or_a_narrower_scope_settles_what_two_patterns_claim(broker_of):
    broker = broker_of(
        entry({"q": {"contains": "a"}}),
        entry({"q": {"contains": "b"}}),
        entry({"q": {"contains": "a"}}, result="own", sample_id="s"),
        {"name": "t", "key": {"q": "ab"}, "result": "exact"},
    )
    assert broker.call("t", {"q": "AB"}) == "exact"
    assert broker.session("s").answer("t", {"q": "ab again"}).result == "own"


def test_two_targets_of_one_tolerance_are_two_patterns(broker_of):
    near = {"a": {"number_tolerance": 1}}
    broker = broker_of(entry(near, {"a": 1}, "one"), entry(near, {"a": 10}, "ten"))
    assert (broker.call("t", {"a": 2}), broker.call("t", {"a": 9.5})) == ("one", "ten")


@pytest.mark.parametrize(
    ("match", "problem"),
    [
        ({}, "match: is empty"),
        ({"a": {}}, "match.a: must be an object with exactly one of ignore, one_of, regex"),
        ({"a": True}, "match.a: must be an object"),
        ({"a": {"like": "x"}}, "match.a.like: unknown key; known: ignore, one_of, regex"),
        ({"a": {"ignore": True, "regex": "x"}}, "match.a: must be an object"),
        ({"a": {"ignore": False}}, "match.a.ignore: must be true"),
        ({"a": {"one_of": []}}, "match.a.one_of: must be a list"),
        ({"a": {"one_of": "x"}}, "match.a.one_of: must be a list"),
        ({"a": {"regex": "("}}, "match.a.regex: cannot be used: missing )"),
        ({"a": {"regex": 3}}, "match.a.regex: must be"),
        ({"a": {"contains": ""}}, "match.a.contains: must be"),
        ({"q": {"contains": " \t"}}, "match.q.contains: must be"),
        ({"a": {"number_tolerance": -1}}, "match.a.number_tolerance: must be a number"),
        ({"a": {"number_tolerance": True}}, "match.a.number_tolerance: must be a number"),
        ({"a": {"number_tolerance": 1}}, "match.a.number_tolerance: needs a number"),
        ({"b": {"regex": "x"}}, 'match.b: does not fit the entry\'s own key, "given"'),
        ({"gone": {"regex": "x"}}, "match.gone: the registry's x-callmark.ignore drops"),
    ],
)
def test_bad_rules_are_found_at_load(broker_of, match, problem):
    specs = [{"name": "t", "x-callmark": {"ignore": ["gone"]}}]
    with pytest.raises(BadInput) as caught:
        broker_of(entry(match, {"b": "given"}), registry=specs)
    assert f"all.jsonl:1: {problem}" in str(caught.value)
