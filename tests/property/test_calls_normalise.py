"""Invariants of the normaliser and of the name codec."""

import json
import re
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import callmark
from callmark.calls.attempts import NameCodec
from callmark.calls.registry import Registry, normalise
from callmark.errors import UsageError
from callmark.records.jsontext import canonical_json, digest, digest_parsed, parse_json

UNHURRIED = settings(deadline=None)  # a busy machine is no failure
BUILTIN = Registry.from_specs(
    json.loads((Path(callmark.__file__).parent / "data/tools/builtin.json").read_text("utf-8")),
    where="builtin.json",
)
LEAVES = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=12)
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
NAMES = st.sampled_from(["web.search", "web_search", "read_file", "code.execute", "other"])
KEYS = st.sampled_from(["q", "query", "top_k", "path", "x"]) | st.text(max_size=5)
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=5)


@UNHURRIED
@given(NAMES, ARGUMENTS)
def test_a_key_is_canonical_and_stays_what_it_is(name, arguments):
    """The text is the canonical JSON of the key, and a pasted key finds itself again."""
    call = normalise(name, arguments, registry=BUILTIN)
    assert call.key_json == canonical_json(call.key)
    assert json.loads(call.key_json) == call.key
    assert normalise(call.name, call.key, registry=BUILTIN) == call


@UNHURRIED
@given(NAMES, ARGUMENTS, st.randoms(use_true_random=False))
def test_order_nulls_and_integral_floats_make_no_difference(name, arguments, random):
    def varied(value):
        if isinstance(value, dict):
            members = [(key, varied(member)) for key, member in value.items()]
            random.shuffle(members)
            return {**dict(members), "nobody wrote this": None}
        if isinstance(value, list):
            return [varied(entry) for entry in value]
        if type(value) is int and abs(value) < 2**53:
            return float(value)
        return value

    one = normalise(name, arguments, registry=BUILTIN)
    other = normalise(name, varied(arguments), registry=BUILTIN)
    assert one.key_json == other.key_json


@UNHURRIED
@given(st.text(max_size=20))
def test_a_query_is_found_whatever_its_case_and_blanks(query):
    def key(text):
        return normalise("web.search", {"q": text}, registry=BUILTIN).key_json

    assert key(query) == key(f"\u3000 {query}\t") == key(query.replace(" ", "\u00a0 "))
    assert key(query) == key(key_text(query))


def key_text(query):
    return normalise("t", {"q": query}, registry=None).key["q"]


@UNHURRIED
@given(st.text(max_size=5), VALUES)
def test_nothing_that_json_can_hold_crashes_and_only_objects_have_a_key(name, value):
    assert (normalise(name, value, registry=BUILTIN) is None) == (not isinstance(value, dict))


@UNHURRIED
@given(st.lists(st.text(min_size=1, max_size=80), max_size=6))
def test_names_go_to_the_endpoint_and_back(names):
    try:
        codec = NameCodec(names)
    except UsageError:
        encoded = [NameCodec([name]).encode(name) for name in set(names)]
        assert len(set(encoded)) < len(encoded)
        return
    for name in names:
        sent = codec.encode(name)
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", sent)
        assert codec.decode(sent) == name
        if re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", name):
            assert sent == name


@UNHURRIED
@given(VALUES)
def test_the_faster_hash_of_what_was_parsed_is_the_same(value):
    parsed = parse_json(json.dumps(value))
    assert digest_parsed(parsed) == digest(parsed)
