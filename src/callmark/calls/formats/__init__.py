"""The formats in which models write calls into text: one row each, read from left to right.

A format is found by its opening mark; where several begin at one place, the first row that
accepts it reads it. Further formats (also from plug-ins) are further rows."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.calls.formats.bare import BARE
from callmark.calls.formats.fenced import FENCED
from callmark.calls.formats.gemma import GEMMA
from callmark.calls.formats.harmony import HARMONY
from callmark.calls.formats.llama import PYTHON_TAG
from callmark.calls.formats.marked_json import (
    COMMAND_R,
    FUNCTOOLS,
    GRANITE,
    HERMES,
    OTHERS,
    TOOL_CALL_PREFIX,
)
from callmark.calls.formats.mistral import MISTRAL
from callmark.calls.formats.named_json import DEEPSEEK_V3, FUNCTION_TAG, KIMI_K2
from callmark.calls.formats.pythonic import PYTHONIC
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.calls.formats.tagged import GLM45, INVOKE, QWEN3_CODER
from callmark.errors import UsageError

# Several formats open with <tool_call> or <function=: the one that asks for least comes last.
FORMATS: tuple[Format, ...] = (
    FUNCTION_TAG,
    QWEN3_CODER,
    GLM45,
    *GRANITE,
    HERMES,
    PYTHON_TAG,
    MISTRAL,
    *DEEPSEEK_V3,
    *KIMI_K2,
    HARMONY,
    FUNCTOOLS,
    COMMAND_R,
    *GEMMA,
    *INVOKE,
    *OTHERS,
    TOOL_CALL_PREFIX,
    FENCED,
    *PYTHONIC,
    BARE,
)

# Names under which servers and model families know these formats. A family that writes in several
# has several.
_FAMILIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("hermes",), "qwen qwen2_5 qwen3 ernie45 ernie45_moe"),
    (("qwen3_coder",), "qwen3_xml seed_oss step3p5"),
    (("llama", "bare"), "llama llama3 llama3_json llama3_1 llama3_2 llama4_json"),
    (("pythonic",), "llama4 llama4_pythonic olmo3 lfm2"),
    (("deepseek_v3",), "deepseek deepseek_r1 deepseek_v3_1"),
    (("invoke",), "deepseek_v3_2 deepseek_v4 minimax minimax_m2 minicpm5xml dots step3"),
    (("glm45",), "glm glm4_moe glm47 glm47_moe hunyuan hunyuan_a13b hy_v3 poolside_v1"),
    (("kimi_k2",), "kimi kimi_k2_func"),
    (("harmony",), "gpt_oss openai"),
    (("granite", "hermes", "bare"), "granite granite_20b_fc granite4"),
    (("gemma",), "gemma4 function_gemma"),
    (("gigachat",), "gigachat3"),
    (("functools",), "phi4 phi4_mini phi4_mini_json"),
    (("command_r", "fenced"), "command_r command_a cohere"),
    (("hermes", "mistral", "fenced", "bare"), "xlam"),
    (("bare", "fenced"), "json"),
)


def _fold(name: str) -> str:
    return "".join(filter(str.isalnum, name.casefold()))


_ROWS_OF = {_fold(other): rows for rows, others in _FAMILIES for other in others.split()}


def named_formats(name: str, formats: Sequence[Format]) -> Sequence[Format]:
    """The rows that a name stands for: a row's own name, or one of a family."""
    wanted = _ROWS_OF.get(_fold(name), (_fold(name),))
    names = {_fold(row) for row in wanted}
    chosen = [row for row in formats if _fold(row.name) in names]
    if not chosen:
        known = ", ".join(dict.fromkeys(row.name for row in formats))
        raise UsageError(f"unknown call format {name!r}; known: auto, {known}")
    return chosen


__all__ = ["FORMATS", "Format", "TextBlock", "TurnReading", "named_formats"]
