"""Invariants of reading calls out of text, and of matching calls."""

import json
from itertools import permutations
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

import callmark
from callmark.calls.attempts import ToolCall
from callmark.calls.ledger import parse_tool_calls, read_turn
from callmark.calls.registry import Registry
from callmark.records.samples import expectation_of
from callmark.records.trace import Trace, entry_of
from callmark.scorers.calls import score_calls

UNHURRIED = settings(deadline=None)  # a busy machine is no failure
BUILTIN = Registry.from_specs(
    json.loads((Path(callmark.__file__).parent / "data/tools/builtin.json").read_text("utf-8")),
    where="builtin.json",
)
MARKS = (
    "{", "}", "[", "]", '"', "\\", ":", ",", "<tool_call>", "</tool_call>", "TOOL_CALL:", "```",
    "```json\n", "```tool_call\n", "<think>", "</think>", '"name"', '"arguments"',
    '{"name": "f", "arguments": {}}', "<|im_end|>", "</s>", "\n", " ", "x", "\ud800", "é",
)  # fmt: skip
MARKED_TEXT = st.lists(st.sampled_from([mark for mark in MARKS if mark != "\ud800"]), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20) | MARKED_TEXT.map("".join),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["web.search", "f", "g-h"])
ARGUMENTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=3)
CALLS = st.lists(st.tuples(NAMES, ARGUMENTS), min_size=1, max_size=4)
WRITERS = (
    lambda call: f"<tool_call>\n{call}\n</tool_call>",
    lambda call: f"TOOL_CALL: {call}",
    lambda call: f"```json\n{call}\n```",
    lambda call: call,
)


@UNHURRIED
@given(CALLS, st.sampled_from(WRITERS))
def test_what_is_written_is_read_once_each_in_order(calls, write):
    """Whatever strings the arguments hold, marks of the format included."""
    texts = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    turn = read_turn(
        "Well.\n" + "\n".join(map(write, texts)) + "\nDone.", offered=["web.search", "f", "g.h"]
    )
    assert [(call.name, call.arguments) for call in turn.attempts] == calls
    assert turn.text.split() == ["Well.", "Done."]


@UNHURRIED
@given(st.lists(st.sampled_from(MARKS), max_size=25).map("".join))
def test_any_text_is_read_without_an_error(text):
    turn = read_turn(text, offered={"f"})
    assert turn.text == turn.text.strip()
    assert "\ud800" not in turn.text
    assert read_turn(text, offered={"f"}) == turn
    rows = [row for row in parse_tool_calls(text, ["f"]) if row["status"] != "in_reasoning"]
    assert len(rows) == len(turn.attempts)
    for row, attempt in zip(rows, turn.attempts, strict=True):
        assert (row["status"] == "ok") == isinstance(attempt, ToolCall)
        assert (row["status"] == "malformed") == (row["arguments"] is None)


@UNHURRIED
@given(st.text(max_size=60))
def test_plain_prose_stays_as_it_is(text):
    if not set(text) & set("<{[`") and "TOOL_CALL:" not in text:
        assert read_turn(text, offered=None).text == text.strip().replace("\ud800", "\ufffd")


SMALL = st.lists(st.integers(0, 3), max_size=4)
ACCEPTED = st.lists(
    st.tuples(st.integers(0, 3), st.lists(st.integers(0, 3), max_size=2)), max_size=4
)


@UNHURRIED
@given(ACCEPTED, SMALL)
def test_the_matching_is_as_large_as_the_best_of_all(expected, observed):
    """Compared with trying every assignment."""
    verdict = score_calls(
        expectation_of(
            {
                "call_sequence": [
                    {"name": "t", "arguments": {"x": value}, "accept": {"/x": others}}
                    for value, others in expected
                ]
            }
        ),
        Trace(
            model_output="",
            tool_trace=tuple(
                entry_of({"name": "t", "arguments": {"x": value}}) for value in observed
            ),
        ),
        registry=BUILTIN,
        offered=None,
    )
    slots = [*observed, *[None] * len(expected)]
    best = max(
        sum(value in (one, *others) for (one, others), value in zip(expected, order, strict=False))
        for order in permutations(slots, len(expected))
    )
    assert verdict.calls.matched == best
    if expected:
        assert verdict.call_f1 == 2 * best / (len(expected) + len(observed))
