"""The keys of a cache: two requests have one key only if they are the same in everything that an
answer depends on."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.config import load_config
from callmark.records.results import Decoding, Fingerprints
from callmark.records.seams import Conversation, Reply
from callmark.records.trace import TraceEntry
from callmark.run.cached import Keys, _lossless

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.text(max_size=3), VALUES, max_size=3)
CONVERSATIONS = st.builds(
    Conversation,
    sample_id=st.sampled_from("ab"),
    trial=st.integers(0, 1),
    turn=st.integers(1, 2),
    messages=st.lists(OBJECTS, max_size=2),
    tools=st.lists(OBJECTS, max_size=2),
)


def keys_of(temperature=0.0, **settings) -> Keys:
    fingerprints = Fingerprints(model_fingerprint="m", runner_fingerprint="r")
    config = load_config(None, settings)
    return Keys(config, fingerprints, Decoding(temperature=temperature))


def exact(one: Conversation, drawn: bool) -> str:
    named = [one.sample_id, one.turn] if drawn else []
    return json.dumps([one.trial, one.messages, one.tools, named])


@settings(max_examples=300)
@given(one=CONVERSATIONS, other=CONVERSATIONS, temperature=st.sampled_from([0.0, 0.5, None]))
def test_equal_keys_are_equal_questions(one, other, temperature):
    keys = keys_of(temperature)
    same = exact(one, temperature != 0) == exact(other, temperature != 0)
    assert (keys.of(one) == keys.of(other)) is same
    assert keys.of(one) == keys_of(temperature).of(one)


@settings(max_examples=200)
@given(
    text=st.text(st.characters()),
    arguments=VALUES,
    carried=OBJECTS,
    finish=st.sampled_from(["stop", "length", "content_filter"]),
)
def test_a_reply_is_kept_without_loss_or_not_at_all(text, arguments, carried, finish):
    call = TraceEntry(
        name="t",
        arguments=arguments,
        result=None,
        turn=None,
        raw=text,
        status="unanswered",
        served_by=None,
    )
    reply = Reply(text=text, calls=(call,), carried=carried, finish=finish)
    data = _lossless(reply)
    if data is not None:
        from msgspec import json as fast

        again = fast.decode(data, type=Reply)
        assert (repr(again), again) == (repr(reply), reply)


def test_a_key_stays_what_it_is():
    """If this changes, every cache out there is void: raise REPLIES_VERSION instead, on purpose."""
    one = Conversation(
        sample_id="s",
        trial=1,
        turn=1,
        messages=[{"role": "user", "content": "Grüße"}],
        tools=[{"type": "function", "function": {"name": "web.search"}}],
    )
    assert keys_of().of(one) == PINNED


PINNED = "8e7cd07602d902dd1aed811dbe1a491f4ba4e954e6835acf6d5c97a68f212eb4"


@pytest.mark.parametrize("surrogate", ["\ud800", "a\udfff"])
def test_lone_surrogates_are_not_kept(surrogate):
    assert _lossless(Reply(text=surrogate)) is None
