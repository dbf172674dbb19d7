"""An expression that could stall a run is refused, or tried on short texts only."""

import re

import pytest

from callmark.broker.regex_limits import MAX_TEXT, MIN_TEXT, text_limit
from callmark.errors import BadInput

NESTED = "repeats without end what itself can fit in several ways"
TOO_MANY = "can fit in too many ways"


@pytest.mark.parametrize(
    "pattern",
    [
        "town .*",
        r"(foo|bar|baz) \d{1,3}",
        r"https?://[^/]+/.*",
        r"(?:ab)*",
        r"\(\w+\)\*\+",
        r"[)(*|+]+[^]*+]*",
        r"(?P<year>\d{4})-(?P=year)",
        r"(?i)(?#(a+)+)x{0,5000}",
        r"{}a{,b{1,2",
        "a" * 3000,
    ],
)
def test_harmless_expressions_are_tried_on_long_texts(pattern):
    assert text_limit(pattern) == MAX_TEXT


@pytest.mark.parametrize(
    ("pattern", "what"),
    [
        ("(a+)+", NESTED),
        ("(a*)*b", NESTED),
        ("(a|aa)+", NESTED),
        ("([a-z]+ ?)*", NESTED),
        ("(?:a?){2,}", NESTED),
        ("((a{1,3}))*?", NESTED),
        ("(x(?P<n>a|b))++", NESTED),
        ("(a)(?(1)b+|c)*", NESTED),
        ("a?" * 30 + "a" * 30, TOO_MANY),
        ("(a?){30}a{30}", TOO_MANY),
        ("(a{1,40}){1,40}b", TOO_MANY),
        (".*" * 6, TOO_MANY),
        ("(?:a|b|c|d)" * 20, TOO_MANY),
        ("(?=(a+))(?=.*b)(?=.*c)(?=.*d).*e.*", TOO_MANY),
        ("(?x) a # (b", "the flag x is not supported"),
    ],
)
def test_expressions_that_could_take_for_ever_are_refused(pattern, what):
    re.compile(pattern)
    with pytest.raises(ValueError, match=re.escape(what)):
        text_limit(pattern)


def test_the_more_is_open_the_shorter_the_text():
    limits = [text_limit(".*x" * count) for count in range(1, 5)]
    assert limits == sorted(limits, reverse=True)
    assert limits[0] == limits[1] == MAX_TEXT
    assert MAX_TEXT > limits[2] > limits[3] >= MIN_TEXT


def test_a_text_at_the_limit_is_decided():
    """The worst that is let through: it ends, which the refused ones would not."""
    for pattern in ("a*" * 4 + "b", "a*?" * 3 + "b", "(?:a|a)" * 3 + "a*" * 3 + "b"):
        assert re.fullmatch(pattern, "a" * text_limit(pattern)) is None


def test_a_fixture_is_refused_with_its_place(broker_of):
    match = {"q": {"regex": "(a+)+$"}}
    with pytest.raises(BadInput) as caught:
        broker_of({"name": "t", "key": {}, "result": 1, "match": match})
    [problem] = caught.value.problems
    assert problem.endswith("such as [a-z ]*")
    assert f"all.jsonl:1: match.q.regex: {NESTED}" in problem


def test_a_text_above_the_limit_is_a_miss(broker_of):
    pattern = ".*x.*y.*"
    broker = broker_of({"name": "t", "key": {}, "result": 1, "match": {"a": {"regex": pattern}}})
    fitting = "xy".rjust(text_limit(pattern))
    assert broker.lookup("t", {"a": fitting}) == 1
    assert broker.lookup("t", {"a": f" {fitting}"}) is None
