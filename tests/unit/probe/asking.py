"""Cases and answers of the probe, as short as they can be written."""

import json

from callmark.probe.fidelity import tool_use_fidelity

SEARCH = {
    "name": "search_web",
    "description": "Search.",
    "parameters": {
        "type": "object",
        "properties": {"query": {"type": "string"}, "max_results": {"type": "integer"}},
        "required": ["query"],
    },
}
PROSE = "I cannot help with that."


def case(tool: dict = SEARCH, gold: str = "search_web", **more) -> dict:
    return {"prompt": "Find it.", "tool_spec": tool, "gold_tool_name": gold, **more}


def call(name: str = "search_web", **arguments) -> str:
    return json.dumps({"name": name, "arguments": arguments})


GOOD = call(query="rope")


def views(n: int, base_valid: int, tuned_valid: int) -> tuple[list, list, list]:
    """n cases; the first so many are answered rightly by each view."""
    outputs = ([GOOD] * valid + [PROSE] * (n - valid) for valid in (base_valid, tuned_valid))
    return [case()] * n, *outputs


def probe(n: int = 20, base_valid: int = 20, tuned_valid: int = 20, **options) -> dict:
    return tool_use_fidelity(*views(n, base_valid, tuned_valid), **options)


def both(base: str, tuned: str, tool: dict = SEARCH, **spec) -> dict:
    """One case in both views."""
    return tool_use_fidelity([case(tool)], [base], [tuned], spec=spec)


def is_valid(text: str, tool: dict = SEARCH, **spec) -> bool:
    return both(text, text, tool, **spec)["ft_value"] == 1.0


def parameters(**properties) -> dict:
    return {"name": "t", "parameters": {"type": "object", "properties": properties}}
