"""A dialogue as chat messages, in the ways in which it may reach the model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from random import Random
from typing import Literal

from callmark.api import builtin_registry
from callmark.calls.attempts import endpoint_name
from callmark.records.jsontext import Json, want_object
from dev.training import phrases
from dev.training.world import TOOLS, Call, Dialogue

Message = dict[str, Json]
Spelling = Literal["dotted", "endpoint"]  # as the registry has them, as endpoints allow them


def as_line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def write_lines(path: Path, lines: Iterable[Json]) -> None:
    path.write_text("".join(f"{as_line(one)}\n" for one in lines), "utf-8")


def compact(value: Json) -> str:
    """JSON as the loop shows it to a model."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def messages_of(
    dialogue: Dialogue, spelling: Spelling = "dotted", system: str = ""
) -> list[Message]:
    """The whole conversation."""
    messages: list[Message] = [{"role": "system", "content": system}] if system else []
    messages.append({"role": "user", "content": dialogue.prompt})
    for step in dialogue.steps:
        calls = [_tool_call(call, spelling) for call in step if call.tagged]
        said = "\n".join(_said_call(call, spelling) for call in step if not call.tagged)
        messages.append({"role": "assistant", "content": said, "tool_calls": calls})
        messages += [{"role": "tool", "content": compact(call.result)} for call in step]
    return [*messages, {"role": "assistant", "content": dialogue.answer}]


def _tool_call(call: Call, spelling: Spelling) -> Json:
    name, arguments = call.written or (call.name, call.arguments)
    function = {"name": spelt(name, spelling), "arguments": arguments}
    return {"type": "function", "function": function}


def _said_call(call: Call, spelling: Spelling) -> str:
    name = json.dumps(spelt(call.name, spelling))
    return f'{{"name": {name}, "arguments": {compact(call.arguments)}}}'


def spelt(name: str, spelling: Spelling) -> str:
    return name if spelling == "dotted" else endpoint_name(name)


def tools_named(names: Sequence[str], spelling: Spelling = "dotted") -> list[Json]:
    """The specs that the model is offered, by name."""
    tools = builtin_registry().openai_tools(names)
    return [
        {
            "type": "function",
            "function": {**want_object(tool["function"]), "name": spelt(name, spelling)},
        }
        for name, tool in zip(names, tools, strict=True)
    ]


def training_offer(random: Random, needed: list[str]) -> list[str]:
    """The three tools of the dataset, only the needed ones, or those and others in any order;
    a conversation may also go without."""
    draw = random.random()
    if draw < 0.25:
        return list(TOOLS)
    if draw < 0.7:
        return needed
    others = [name for name in builtin_registry().names if name not in needed]
    offered = [*needed, *random.sample(others, random.choice((1, 1, 2, 3)))]
    random.shuffle(offered)
    return offered


def training_view(random: Random, dialogue: Dialogue) -> tuple[list[Message], list[Json]]:
    """The messages and tools of one training example."""
    spelling: Spelling = "dotted" if random.random() < 0.5 else "endpoint"
    system = random.choice(phrases.SYSTEM) if random.random() < 0.15 else ""
    offered = training_offer(random, dialogue.needs)
    return messages_of(dialogue, spelling, system), tools_named(offered, spelling)
