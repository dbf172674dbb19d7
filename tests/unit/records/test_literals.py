"""Objects and lists as Python writes them, handed on as texts."""

import json

import pytest
from tests.unit.grounding.asking import statements

from callmark.records.trace import json_of_literal, read_inside


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("{'pool': True, 'owner': None}", {"pool": True, "owner": None}),
        ("[u'red', 'it\\'s', \"o'clock\"]", ["red", "it's", "o'clock"]),
        ("{lift: False, stops: [1, -2.5, 3e2]}", {"lift": False, "stops": [1, -2.5, 300.0]}),
        ("  {'a': {'b': []}}  ", {"a": {"b": []}}),
    ],
)
def test_what_python_writes_is_read_as_the_json_that_it_means(text, meant):
    assert read_inside(text) == meant
    assert json.loads(json_of_literal(text.strip()) or "") == meant


@pytest.mark.parametrize(
    "text",
    [
        "{color: red}",
        "{'open'",
        "{'a': datetime.date(2026, 5, 1)}",
        "{1: 'one'}",
        "['\\x41']",
        "[see the appendix]",
        "{name} {surname}",
        "(1, 2)",
        "[" * 100_000,
        "no literal",
    ],
)
def test_anything_else_stays_a_text(text):
    assert read_inside(text) == text


def test_what_stands_in_such_a_text_is_a_field():
    house = {"name": "Quay House", "beds": 4, "extras": "{'sauna': False, 'bikes': True}"}
    said = [(text, rule) for text, _, rule in statements("It has a sauna and bikes.", house)]
    assert said == [("sauna", "polarity"), ("bikes", "polarity")]
