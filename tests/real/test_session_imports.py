"""Real sessions and exchanges of nine formats: what `dataset import` makes of each file equals what
an independent reading of the raw file counts, which shares no code with the importers."""

import json
import re
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from callmark.datasets.importing.importing import import_dataset
from callmark.datasets.importing.writing import ImportPaths

pytestmark = pytest.mark.real


class Numbers(NamedTuple):
    conversations: int
    calls: int
    results: int
    errors: int
    turns: int
    tools: int


# --- what came out ---------------------------------------------------------------------------


def imported(source: Path, folder: Path) -> tuple[Numbers, dict[str, int]]:
    places = ImportPaths(
        dataset=folder / "data.jsonl",
        registry=folder / "tools.json",
        fixtures=folder / "fixtures",
        answers=folder / "answers.jsonl",
    )
    report = import_dataset(source, places)
    items = rows_of(places.dataset)[1:]
    answers = {one["sample_id"]: one for one in rows_of(places.answers)}
    messages = [one for item in items for one in messages_of(item, answers)]
    results = [one for one in messages if one["role"] == "tool"]
    specs = json.loads(places.registry.read_text("utf-8")) if report.counts.tools else []
    found = Numbers(
        conversations=len(items),
        calls=sum(len(one.get("tool_calls") or ()) for one in messages),
        results=len(results),
        errors=sum(is_error(one["content"]) for one in results),
        turns=sum(one["role"] == "assistant" for one in messages),
        tools=len({re.sub(r"__\d+$", "", spec["name"]) for spec in specs}),
    )
    return found, {one.kind: one.count for one in report.unmapped}


def messages_of(item: dict, answers: dict[str, dict]) -> list[dict]:
    answer = answers.get(item["metadata"]["sample_id"])
    if answer is not None:
        return answer["messages"]
    return item["prompt"] if isinstance(item["prompt"], list) else []


def is_error(content: object) -> bool:
    try:
        value = json.loads(content) if isinstance(content, str) else None
    except ValueError:
        return False
    return isinstance(value, dict) and bool(value.get("error"))


def rows_of(path: Path) -> list[dict]:
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


# --- what is in the raw files ----------------------------------------------------------------


def anthropic(path: Path) -> Numbers:
    calls, results, errors, tools, turns = set(), set(), set(), set(), 0
    rows = rows_of(path)
    for number, row in enumerate(rows):
        blocks, streamed = [], ""
        for exchange in row["interactions"]:
            request, response = exchange["request"], exchange["response"]
            tools |= {tool["name"] for tool in request.get("tools", ())}
            blocks += [one for message in request["messages"] if isinstance(message["content"], list)
                       for one in message["content"]]  # fmt: skip
            if isinstance(response, str):
                streamed += response
            else:
                blocks += response["content"]
        calls |= {(number, one) for one in re.findall(r'"tool_use","id":"(\w+)"', streamed)}
        calls |= {(number, b["id"]) for b in blocks if b["type"] in ("tool_use", "server_tool_use")}
        ended = [b for b in blocks if b["type"].endswith("tool_result")]
        results |= {(number, b["tool_use_id"]) for b in ended}
        errors |= {(number, b["tool_use_id"]) for b in ended if b.get("is_error")}
        answered = {b["tool_use_id"] for b in ended if not b.get("is_error")}
        tools |= {b["name"] for b in blocks if b.get("id") in answered}  # not all were listed
        last = row["interactions"][-1]
        said = [m["content"] for m in last["request"]["messages"] if m["role"] == "assistant"]
        answer = last["response"] if isinstance(last["response"], dict) else {"content": []}
        within = [b["type"] for content in (*said, answer["content"]) for b in content
                  if isinstance(b, dict)]  # fmt: skip
        turns += len(said) + 1 + sum(kind.endswith("_tool_result") for kind in within)
    return Numbers(len(rows), len(calls), len(results), len(errors), turns, len(tools))


def item_numbers(items: list[dict]) -> tuple[int, int, int, int]:
    """Calls, results, errors and turns of a list of items."""
    kinds = [item.get("type") or "message" for item in items]
    calls = sum(kind.endswith("_call") for kind in kinds)
    outputs = [item for item, kind in zip(items, kinds, strict=True) if kind.endswith("_output")]
    errors = sum(is_error(item.get("output")) for item in outputs)
    turns, speaking = 0, False
    for item, kind in zip(items, kinds, strict=True):
        own = kind in ("reasoning",) or kind.endswith("_call") or item.get("role") == "assistant"
        turns += own and not speaking
        speaking = own if kind != "additional_tools" else speaking
    return calls, len(outputs), errors, turns


def responses(path: Path) -> Numbers:
    rows, totals, tools = rows_of(path), [0, 0, 0, 0], set()
    for row in rows:
        if "interactions" in row:
            exchanges = [(one["request"], one["response"]) for one in row["interactions"]]
        else:
            exchanges = [(row["responses_create_params"], row["response"])]
        chained = any(
            request.get("previous_response_id") or request.get("conversation")
            for request, _ in exchanges
        )
        used = exchanges if chained else exchanges[-1:]
        items = [
            one for request, response in used for one in (*request["input"], *response["output"])
        ]
        totals = [a + b for a, b in zip(totals, item_numbers(items), strict=True)]
        named = [
            tool.get("name") or tool["type"]
            for request, response in exchanges
            for tool in (
                *(request.get("tools") or ()),
                *(t for i in (*request["input"], *response["output"]) for t in i.get("tools", ())),
            )
        ]
        tools |= set(named) or {
            item["name"] for item in items if item.get("type") == "function_call"
        }
    return Numbers(len(rows), *totals, len(tools))


def atif(path: Path) -> Numbers:
    whole = json.loads(path.read_text("utf-8"))
    steps = whole["steps"]
    calls = [call for step in steps for call in step.get("tool_calls") or ()]
    results = [
        result
        for step in steps
        for result in (step.get("observation") or {}).get("results", ())
        if result.get("content") is not None
    ]
    offered = whole["agent"].get("tool_definitions") or []
    names = {tool["function"]["name"] for tool in offered} or {
        one["function_name"] for one in calls
    }
    turns = sum(step["source"] == "agent" for step in steps)
    return Numbers(1, len(calls), len(results), 0, turns, len(names))


def claude_code(path: Path) -> Numbers:
    text = path.read_text("utf-8")
    rows = rows_of(path)
    blocks = [
        block
        for row in rows
        if isinstance((row.get("message") or {}).get("content"), list)
        for block in row["message"]["content"]
    ]
    uses = {block["id"]: block["name"] for block in blocks if block["type"] == "tool_use"}
    ended = {block["tool_use_id"] for block in blocks if block["type"] == "tool_result"}
    turns = {row["message"]["id"] for row in rows if row["type"] == "assistant"}
    errors = len(re.findall(r'"is_error": ?true', text))
    # Two answers with nothing in between are two turns of the model.
    return Numbers(1, len(uses), len(ended), errors, len(turns), len(set(uses.values())))


def codex(path: Path) -> Numbers:
    items = [row["payload"] for row in rows_of(path) if row["type"] == "response_item"]
    calls, results, _, turns = item_numbers([i for i in items if i["type"] != "ghost_snapshot"])
    outputs = [item["output"] for item in items if "output" in item]
    errors = sum(bool(re.match(r"Exit code: [1-9]", output)) for output in outputs)
    names = {item["name"] for item in items if item["type"].endswith("_call")}
    return Numbers(1, calls, results, errors, turns, len(names))


def gemini_cli(path: Path) -> Numbers:
    messages = json.loads(path.read_text("utf-8"))["messages"]
    calls = [call for message in messages for call in message.get("toolCalls", ())]
    errors = sum(call["status"] == "error" for call in calls)
    turns = sum(message["type"] == "gemini" for message in messages)
    ended = sum("result" in call for call in calls)
    return Numbers(1, len(calls), ended, errors, turns, len({call["name"] for call in calls}))


def mini_swe_agent(path: Path) -> Numbers:
    text = path.read_text("utf-8")
    return Numbers(1, 0, 0, 0, len(re.findall(r'"role": "assistant",\s+"content"', text)), 0)


def inspect_eval_log(path: Path) -> Numbers:
    if path.suffix == ".eval":
        with zipfile.ZipFile(path) as archive:
            names = [name for name in archive.namelist() if name.startswith("samples/")]
            samples = [json.loads(archive.read(name)) for name in names]
    else:
        samples = json.loads(path.read_text("utf-8"))["samples"]
    messages = [message for sample in samples for message in sample["messages"]]
    results = [message for message in messages if message["role"] == "tool"]
    calls = sum(len(message.get("tool_calls") or ()) for message in messages)
    errors = sum(message.get("error") is not None for message in results)
    turns = sum(message["role"] == "assistant" for message in messages)
    return Numbers(len(samples), calls, len(results), errors, turns, 0)


COUNTED: dict[str, Callable[[Path], Numbers]] = {
    "anthropic_messages": anthropic,
    "atif": atif,
    "claude_code": claude_code,
    "codex": codex,
    "gemini_cli": gemini_cli,
    "inspect_eval_log": inspect_eval_log,
    "mini_swe_agent": mini_swe_agent,
    "openai_responses_api": responses,
    "openai_responses_items": responses,
}
# Of each folder: files, and the sum of everything counted in them.
TOTALS: dict[str, tuple[int, Numbers]] = {
    "anthropic_messages": (1, Numbers(17, 32, 31, 0, 43, 18)),
    "atif": (5, Numbers(5, 15, 15, 0, 17, 11)),
    "claude_code": (4, Numbers(4, 9, 9, 1, 18, 5)),
    "codex": (3, Numbers(3, 5, 5, 2, 7, 2)),
    "gemini_cli": (1, Numbers(1, 5, 5, 0, 7, 2)),
    "inspect_eval_log": (3, Numbers(3, 0, 11, 11, 2, 0)),
    "mini_swe_agent": (1, Numbers(1, 0, 0, 0, 3, 0)),
    "openai_responses_api": (1, Numbers(14, 25, 24, 0, 40, 21)),
    "openai_responses_items": (4, Numbers(20, 63, 63, 0, 75, 40)),
}


def files_of(real_data: Path, name: str) -> Iterator[Path]:
    yield from sorted(one for one in (real_data / "traces" / name).iterdir() if one.is_file())


@pytest.mark.parametrize("name", sorted(COUNTED))
def test_what_is_imported_is_what_is_in_the_file(real_data: Path, tmp_path: Path, name: str):
    files = list(files_of(real_data, name))
    total = [0] * len(Numbers._fields)
    for number, path in enumerate(files):
        found, kinds = imported(path, tmp_path / str(number))
        assert (path.name, found) == (path.name, COUNTED[name](path)), kinds
        total = [a + b for a, b in zip(total, found, strict=True)]
        assert not {"other_branch", "duplicate", "session_renamed"} & kinds.keys()
    assert (len(files), Numbers(*total)) == TOTALS[name]
