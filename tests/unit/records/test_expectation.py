"""What is expected of a sample, by the keys of its metadata."""

from __future__ import annotations

from callmark.records import samples
from callmark.records.samples import Expectation, ExpectedCall, expectation_of


class Noting(dict):
    """Notes which keys were asked for."""

    def __init__(self, *given, **fields):
        super().__init__(*given, **fields)
        self.asked = set()

    def get(self, key, default=None):
        self.asked.add(key)
        return super().get(key, default)


def test_every_key_but_the_calls_is_told_apart_from_plain_metadata():
    metadata = Noting(locale_probe=True, call_sequence=["look_up"])
    expectation_of(metadata)
    assert metadata.asked - {"call_sequence"} == samples._RARE


def test_plain_metadata_expect_the_same_as_with_an_empty_key():
    call = {"name": "look_up", "arguments": {"q": "x"}}
    for calls in ([], [call], ["look_up"], [{"name": "look_up"}], [call | {"optional": ["q"]}]):
        plain = {"sample_id": "one", "call_sequence": calls}
        assert expectation_of(plain) == expectation_of(plain | {"checks": None})


def test_a_call_with_arguments():
    given = {"call_sequence": [{"name": "look_up", "arguments": {"q": "x"}}]}
    calls = (ExpectedCall("look_up", {"q": "x"}),)
    assert expectation_of(given) == Expectation(kind="eligible", calls=calls)
