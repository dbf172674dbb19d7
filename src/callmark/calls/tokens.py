"""Special tokens and other marks that are no part of what a model says."""

from __future__ import annotations

import re

_PIPED = (
    # ends and beginnings of turns
    "im_end eot_id eom_id end_of_text begin_of_text endoftext end return eot eos assistant"
    " end_of_turn END_OF_TURN_TOKEN START_OF_TURN_TOKEN CHATBOT_TOKEN end_of_role end_message"
    # marks of call formats that stand around or inside calls
    " python_tag python_start python_end tool_call tool_call_start tool_call_begin"
    " tool_call_argument_begin tool_call_end tool_calls_section_begin tool_calls_section_end"
    " tool_call_section_begin tool_call_section_end START_ACTION END_ACTION START_RESPONSE"
    " END_RESPONSE START_TEXT END_TEXT START_THINKING END_THINKING action_start action_end plugin"
    " interpreter function_call message_sep role_sep call start channel message constrain"
).split()
_WIDE = (
    "end▁of▁sentence begin▁of▁sentence Assistant tool▁calls▁begin tool▁calls▁end tool▁call▁begin"
    " tool▁call▁end tool▁sep tool▁outputs▁begin tool▁outputs▁end tool▁output▁begin tool▁output▁end"
    " tool_calls_begin tool_calls_end tool_call_begin tool_call_end tool_sep"
).split()

_ANYWHERE = re.compile(
    r"<\|im_start\|>(?:assistant\b\n?)?"
    r"|<\|start_header_id\|>(?:assistant)?<\|end_header_id\|>\n{0,2}"
    r"|<\|start_of_role\|>(?:assistant)?<\|end_of_role\|>"
    r"|<\|start\|>(?:assistant\b)?"
    # the header of a channel, whole or cut off
    r"|<\|channel\|>[^<]{0,256}(?:<\|constrain\|>[^<]{0,64})?(?:<\|message\|>|\Z)"
    rf"|<\|(?:{'|'.join(_PIPED)})\|>"
    r"|<(?:start_of_turn>model\b\n?|end_of_turn>)"
    rf"|<｜(?:{'|'.join(_WIDE)})｜>"
    r"|</?｜DSML｜(?:function_calls|tool_calls)>"
)
# Words of other languages too (`<s>` strikes through in HTML): tokens only at the ends of a turn.
_AT_START = re.compile(r"\s*(?:<(?:s|bos|pad)>\s*)+")
_AT_END = ("</s>", "<eos>", "<pad>")

_WRAPPERS = re.compile(
    r"</?(?:tool_calls?|function_calls|minimax:tool_call|seed:tool_call|dots_function_call)>"
    r"|```\w*+\s*+```"
)


def without_tokens(text: str) -> str:
    """The text as a reader would see it, trimmed."""
    if "<" in text:
        text = _ANYWHERE.sub("", text).strip()
        opening = _AT_START.match(text)
        text = text[opening.end() :] if opening else text
        text = text[: _end(text)]
    return text.strip()


def _end(text: str) -> int:
    """Where the last tokens of a turn begin."""
    end = len(text)
    while True:
        while end and text[end - 1].isspace():
            end -= 1
        token = next((token for token in _AT_END if text.endswith(token, 0, end)), "")
        if not token:
            return end
        end -= len(token)


def without_wrappers(text: str) -> str:
    """Without the tags (or the fence) that stood around calls: only where there were calls, for
    they are plain text otherwise."""
    return _WRAPPERS.sub("", text) if "<" in text or "`" in text else text
