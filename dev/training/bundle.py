"""The held-out dataset with its fixtures, and the cases for the fidelity probe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from callmark.api import builtin_registry
from callmark.cli import dataset_seal
from callmark.records.jsontext import Json
from dev.training.dialogues import FAMILIES
from dev.training.rendering import as_line, write_lines
from dev.training.world import TOOLS, Dialogue, Task, World

# Nobody trains a model of this size on prompts of 24 kB.
_GATES = {"dataset_long_contexts": {"policy": "warning_only"}}
_CASES = ((World.search, 5), (World.search_top, 3), (World.read, 8), (World.code, 8))
_CASE_TOKENS = 64


def held_out(seed: int) -> list[tuple[str, Dialogue]]:
    """(sample_id, dialogue), no prompt and no call twice, in the order of the dataset."""
    random = Random(f"held out {seed}")
    seen: set[str] = set()
    found = [
        (f"{name}-{number:02}", _unseen(World(random, "held_out"), name, seen))
        for name, family in FAMILIES.items()
        for number in range(1, family.held_out + 1)
    ]
    random.shuffle(found)
    return found


def _unseen(world: World, family: str, seen: set[str]) -> Dialogue:
    while True:
        dialogue = FAMILIES[family].make(world, family)
        marks = {dialogue.prompt, *(as_line(call.arguments) for call in dialogue.calls)}
        if not marks & seen:
            seen |= marks
            return dialogue


def write_dataset(folder: Path, fixtures: Path, seed: int) -> None:
    """`dataset.jsonl`, and its fixtures beside the others that ship, sealed with all of them."""
    samples = held_out(seed)
    dataset = folder / "dataset.jsonl"
    header = {
        "__header__": True,
        "dataset_version": "1.0",
        "integration_span_cap": 3,
        "span_extractor": "marker",
        "gates": _GATES,
    }
    items = [_item(sample_id, dialogue) for sample_id, dialogue in samples]
    write_lines(dataset, [header, *items])
    entries = [entry for _, dialogue in samples for entry in _fixtures(dialogue)]
    for name in TOOLS:
        mine = [entry for entry in entries if entry["name"] == name]
        write_lines(fixtures / f"tiny.{name}.jsonl", mine)
    dataset_seal.main([str(dataset), "--fixtures", str(fixtures)])


def write_cases(path: Path, seed: int) -> None:
    """Single calls for the probe, each with the one tool that it needs."""
    random = Random(f"cases {seed}")
    world = World(random, "held_out")
    specs = {spec.name: spec.function for spec in builtin_registry().specs}
    tasks = [kind(world) for kind, count in _CASES for _ in range(count)]
    random.shuffle(tasks)
    write_lines(path, [_case(task, specs[task.call.name]) for task in tasks])


def _case(task: Task, spec: dict[str, Json]) -> dict[str, Json]:
    return {
        "prompt": task.prompt,
        "tool_spec": {key: spec[key] for key in ("name", "description", "parameters")},
        "gold_tool_name": task.call.name,
        "max_new_tokens": _CASE_TOKENS,
    }


def _item(sample_id: str, dialogue: Dialogue) -> dict[str, Json]:
    family = FAMILIES[dialogue.family]
    metadata: dict[str, Json] = {
        "sample_id": sample_id,
        "scenario": family.scenario,
        "complexity": family.complexity,
        **dialogue.metadata,
        "tools": list(TOOLS),
    }
    if dialogue.calls:
        metadata["call_sequence"] = [
            {"name": call.name, "arguments": call.arguments} for call in dialogue.calls
        ]
    return {"prompt": dialogue.prompt, "metadata": metadata, "teacher_text": dialogue.answer}


def _fixtures(dialogue: Dialogue) -> Iterator[dict[str, Json]]:
    """A call that is made twice is answered in order."""
    keys = [as_line([call.name, call.arguments]) for call in dialogue.calls]
    often, so_far = Counter(keys), Counter[str]()
    for key, call in zip(keys, dialogue.calls, strict=True):
        entry: dict[str, Json] = {"name": call.name, "key": call.arguments}
        if often[key] > 1:
            so_far[key] += 1
            entry["seq"] = so_far[key]
        yield {**entry, "result": call.result}
