"""Channels: thinking, calls and the answer are told apart by their headers."""

import pytest

from callmark.calls.attempts import ToolCall
from callmark.calls.ledger import read_turn

CALL = '<|message|>{"a": 1}'


@pytest.mark.parametrize(
    "header",
    [
        "<|channel|>commentary to=functions.f <|constrain|>json",
        "<|channel|>commentary to=functions.f<|constrain|>json",
        "<|channel|>commentary to=functions.f json",
        "<|channel|>commentary to=functions.f",
        "<|channel|>analysis to=functions.f code",
        "<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json",
        "<|start|>assistant to=functions.f<|channel|>commentary json",
        " to=functions.f<|channel|>commentary <|constrain|>json",
    ],
)
@pytest.mark.parametrize("end", ["<|call|>", "<|end|>", ""])
def test_a_recipient_makes_a_call(header, end):
    turn = read_turn(f"{header}{CALL}{end}", offered={"f"})
    (call,) = turn.attempts
    assert isinstance(call, ToolCall)
    assert (call.name, call.arguments, call.format) == ("f", {"a": 1}, "harmony")
    assert (turn.text, turn.reasoning) == ("", "")


def test_a_whole_turn():
    turn = read_turn(
        "<|channel|>analysis<|message|>They want f, maybe <tool_call>.<|end|>"
        "<|start|>assistant<|channel|>commentary<|message|>Let me look.<|end|>"
        f"<|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json{CALL}<|call|>"
        f"<|start|>assistant<|channel|>commentary to=functions.web.search{CALL}<|call|>"
        "<|start|>assistant<|channel|>final<|message|>It is 5.<|return|>",
        offered={"f"},
    )
    assert turn.reasoning == "They want f, maybe <tool_call>."
    assert turn.text == "Let me look.It is 5."
    assert [call.name for call in turn.attempts] == ["f", "web.search"]


def test_a_call_without_arguments():
    for end in ("<|call|>", "<|end|>"):
        (call,) = read_turn(
            f"<|channel|>commentary to=functions.f<|message|>{end}", offered=None
        ).attempts
        assert call.arguments == {}


@pytest.mark.parametrize(
    ("text", "clean", "thought"),
    [
        ("<|channel|>final<|message|>Five.<|return|>", "Five.", ""),
        ("<|start|>assistant<|channel|>final<|message|>Five.", "Five.", ""),
        ("<|channel|>analysis<|message|>cut off", "", "cut off"),
        ("<|channel|>analysis<|message|>Hm.<|channel|>final<|message|>Five.", "Five.", "Hm."),
        ("<|channel|>final", "", ""),
        ("Five.<|channel|>ana", "Five.", ""),
        ("<|start|>assistant", "", ""),
    ],
)
def test_text_and_thinking(text, clean, thought):
    turn = read_turn(text, offered=None)
    assert (turn.text, turn.reasoning, turn.attempts) == (clean, thought, ())
