"""The formats in which models write calls into text: one row each, read from left to right.

A format is found by its opening mark; where several begin at one place, the first row that
accepts it reads it. Further formats (also from plug-ins) are further rows."""

from __future__ import annotations

from collections.abc import Sequence

from callmark.calls.formats.marked_json import (
    APERTUS,
    COMMAND_R,
    FUNCTOOLS,
    GRANITE,
    HERMES,
    INKLING,
    K2_HORIZON_JSON,
    OTHERS,
    TOOL_CALL_PREFIX,
)
from callmark.calls.formats.named_json import (
    DEEPSEEK_V3,
    FUNCTION_TAG,
    FUNCTIONARY_V2,
    GEMMA,
    HARMONY,
    KIMI_K2,
    LINES_IN_TAGS,
    MCP_TAGS,
    MESSAGES,
    MISTRAL,
    NAME_JSON,
    PLAMO,
    QWEN_AGENT,
    REACT,
    SOLAR_OPEN,
)
from callmark.calls.formats.pythonic import PYTHON_TAG, PYTHONIC, PYTHONIC_IN_TAGS, TOOL_CODE
from callmark.calls.formats.reading import Format, TextBlock, TurnReading
from callmark.calls.formats.tagged import (
    CWM,
    GLM45,
    INVOKE,
    K2_HORIZON,
    KIMI_K3,
    LONGCAT,
    MINIMAX_M3,
    QWEN3_CODER,
    SOLAR_OPEN2,
)
from callmark.calls.formats.unmarked_json import BARE, FENCED
from callmark.errors import UsageError

# Several formats open with <tool_call> or <function=: the one that asks for least comes last.
FORMATS: tuple[Format, ...] = (
    FUNCTION_TAG,
    QWEN3_CODER,
    *GLM45,
    LINES_IN_TAGS,
    PYTHONIC_IN_TAGS,
    *GRANITE,
    HERMES,
    PYTHON_TAG,
    MISTRAL,
    *DEEPSEEK_V3,
    *KIMI_K2,
    *HARMONY,
    FUNCTOOLS,
    COMMAND_R,
    *GEMMA,
    *KIMI_K3,
    *MINIMAX_M3,
    APERTUS,
    INKLING,
    PLAMO,
    K2_HORIZON,
    K2_HORIZON_JSON,
    SOLAR_OPEN2,
    SOLAR_OPEN,
    FUNCTIONARY_V2,
    QWEN_AGENT,
    MCP_TAGS,
    CWM,
    MESSAGES,
    *INVOKE,
    LONGCAT,
    *OTHERS,
    TOOL_CALL_PREFIX,
    REACT,
    *TOOL_CODE,
    FENCED,
    *PYTHONIC,
    *NAME_JSON,
    *BARE,
)

# Names under which servers and model families know these formats. A family that writes in several
# has several.
_FAMILIES: tuple[tuple[tuple[str, ...], str], ...] = (
    (("hermes", "qwen3_coder"), "qwen3 qwen3vl qwen3_8"),
    (
        ("hermes",),
        "qwen qwen2_5 qwen25 ernie45 ernie45_moe trinity kolibri1 exaone exaone4 intellect3",
    ),
    (
        ("qwen3_coder",),
        "qwen3_xml qwen3coder qwen3xml qwen35 qwen36 seed_oss step3p5 nemotron_v3 nemotron3nano"
        " mimo mimov2 mimov2_flash",
    ),
    (("hermes", "fenced", "bare"), "rwkv qwen25_coder qwen2_5_coder"),
    (("llama", "bare"), "llama llama3 llama3_json llama3_1 llama3_2 llama32 llama4_json"),
    (
        ("pythonic",),
        "llama4 llama4_pythonic olmo3 olmo3_think lfm2 lfm2_5 pangu openpangu openpangu_v2"
        " openpanguv2 granite_pythonic toolace",
    ),
    (("deepseek_v3",), "deepseek deepseek3 deepseek_r1 deepseek_v3_1 deepseekv31 cogito"),
    (
        ("invoke",),
        "deepseek_v3_2 deepseekv32 dsv32 deepseek_v4 deepseek_v4_1 minimax minimax_m2"
        " minimax_m2_sanitized minicpm4 minicpm4xml minicpm5 minicpm5xml dots step3 muse"
        " muse_glimmer glimmer gigachat35",
    ),
    (
        ("glm45",),
        "glm glm4_moe glm46 glm47 glm47_moe glm52 hy_v3 hy_v4 poolside_v1 laguna ling3 bailing"
        " spark3 iquest_coder iquest_coder_v2",
    ),
    (("glm45", "jamba"), "hunyuan hunyuan_a13b"),
    (("glm45", "bare"), "hyperclovax hyperclovax_seed_think"),
    (("bare", "name_json"), "hyperclovax_seed_think_14b"),
    (("name_json",), "glm4 functionary functionary_v3_2 step_audio_2"),
    (("llama",), "functionary_v3_1"),
    (("kimi_k2",), "kimi kimi_k2_func kimik2"),
    (("harmony",), "gpt_oss gptoss openai"),
    (("granite", "hermes", "bare"), "granite granite_20b_fc granite4 granite_thinking"),
    (("gemma",), "gemma4 function_gemma"),
    (("tool_code", "pythonic"), "gemma3"),
    (("gigachat",), "gigachat3"),
    (("plamo",), "plamo3"),
    (("functools",), "phi4 phi4_mini phi4_mini_json phi4mini firefunction"),
    (("command_r", "fenced"), "command_r command_a cohere cohere_command3 cohere_command4"),
    (("hermes", "mistral", "fenced", "bare"), "xlam"),
    (("react", "pythonic", "fenced", "bare"), "react react_thought_action_json"),
    (("apertus",), "apertus2509 apertus1_5 apertus15"),
    (("mistral",), "mistral3 ministral ministral3 magistral devstral"),
    (("nemotron",), "nemotron_json nemotron_nano_v2 nemotron_deci"),
    (("internlm",), "internlm2 intern_s1"),
    (("jamba",), "apriel apriel1_5"),
    (("k2_horizon",), "k2_v3 k2v3"),
    (("mcp_tags",), "mirothinker"),
    (("solar_open",), "solar"),
    (("cwm",), "csm"),
    (("bare", "fenced"), "json json_list json_list_tool_choice_required plain_text"),
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
