"""Samples as lines: the dataset's item, its fixtures, the recorded answer."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from callmark.datasets.generate.records import Answer, Attempt, MadeCall, MadeSample, fact_of
from callmark.records.jsontext import Json, canonical_json

encode = msgspec.json.Encoder().encode


def item_line(sample: MadeSample) -> bytes:
    return encode(item_of(sample)) + b"\n"


def item_of(sample: MadeSample) -> dict[str, Json]:
    """The item as the dataset's schema wants it."""
    draft, recipe = sample.draft, sample.recipe
    metadata: dict[str, Json] = {
        "sample_id": sample.sample_id,
        "expected_behaviour": "normal",
        "scenario": recipe.scenario,
        "complexity": recipe.complexity,
        "structure": recipe.structure,
        "language": "en",
        **draft.metadata,
    }
    if draft.calls:
        metadata["call_sequence"] = [_expect(call) for call in draft.calls]
    if draft.facts:
        metadata["required_facts"] = [fact_of(fact) for fact in draft.facts]
    return {"prompt": draft.prompt, "metadata": metadata, "teacher_text": draft.answer.final}


def _expect(call: MadeCall) -> dict[str, Json]:
    expected: dict[str, Json] = {"name": call.name, "arguments": call.arguments}
    if call.optional:
        expected["optional"] = list(call.optional)
    return expected


def fixture_lines(sample: MadeSample) -> Iterator[tuple[str, bytes]]:
    """The tool and the canonical line of each fixture, seen by this sample only."""
    for call in (*sample.draft.calls, *sample.draft.tempting):
        entry: dict[str, Json] = {
            "name": call.name,
            "key": call.arguments,
            "result": call.result,
            "sample_id": sample.sample_id,
        }
        if call.match is not None:
            entry["match"] = call.match
        if call.seq is not None:
            entry["seq"] = call.seq
        yield call.name, canonical_json(entry).encode() + b"\n"


def answer_line(sample_id: str, answer: Answer) -> bytes:
    return encode(record_answer(sample_id, answer)) + b"\n"


def record_answer(sample_id: str, answer: Answer) -> dict[str, Json]:
    """A results line without results: those come from the fixtures."""
    output, ranges = _join(answer.texts)
    return {
        "sample_id": sample_id,
        "trial": 0,
        "model_output": output,
        "tool_trace": [
            _attempt(attempt, turn)
            for turn, made in enumerate(answer.turns, start=1)
            for attempt in made.attempts
        ],
        "turns": ranges,
    }


def _attempt(attempt: Attempt, turn: int) -> dict[str, Json]:
    entry: dict[str, Json] = {"name": attempt.name, "arguments": attempt.arguments, "turn": turn}
    if attempt.malformed is not None:
        entry["status"] = "malformed"
        entry["raw"] = attempt.malformed
        entry["reason"] = "the arguments are not JSON"
    return entry


def _join(texts: tuple[str, ...]) -> tuple[str, list[dict[str, int]]]:
    """The turns joined by a newline, empty ones dropped, and the bytes that each of them takes."""
    ranges: list[dict[str, int]] = []
    end = 0
    for text in texts:
        start = end + 1 if text and end else end
        end = start + len(text.encode())
        ranges.append({"start": start, "end": end})
    return "\n".join(filter(None, texts)), ranges
