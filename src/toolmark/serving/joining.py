"""What an agent asked and what it answered, in one line: a trace and a file of answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from toolmark.core.jsontext import Json
from toolmark.errors import BadInput
from toolmark.store.recorded import RecordedAnswer, read_recorded


def join_answers(trace: Path, answers: Path, joined: BinaryIO) -> None:
    """Every session of the trace with the answer of its sample and trial. An answer without a
    session is one of an agent that never asked for a tool; a session without an answer is an
    error."""
    said = dict(_answers(answers))
    problems: list[str] = []
    for line in _trace_lines(trace):
        answer = said.pop((line.sample_id, line.trial), None)
        if answer is None:
            what = f"sample {line.sample_id}, trial {line.trial} has no answer in {answers}"
            problems.append(f"{trace}:{line.line}: {what}")
            continue
        joined.write(_line(line.sample_id, line.trial, answer, line))
    if problems:
        raise BadInput(problems[:20])
    for (sample_id, trial), answer in said.items():
        joined.write(_line(sample_id, trial, answer, None))


def _answers(path: Path) -> Iterator[tuple[tuple[str, int], str]]:
    for line in read_recorded(path):
        if not isinstance(line, RecordedAnswer):
            raise BadInput(f"{path}:{line.line}: must hold sample_id and model_output")
        yield (line.sample_id, line.trial), line.model_output


def _trace_lines(path: Path) -> Iterator[RecordedAnswer]:
    for line in read_recorded(path):
        if not isinstance(line, RecordedAnswer):
            raise BadInput(f"{path}:{line.line}: is no line of a trace")
        yield line


def _line(sample_id: str, trial: int, answer: str, asked: RecordedAnswer | None) -> bytes:
    line: dict[str, Json] = {"sample_id": sample_id, "trial": trial, "model_output": answer}
    line["tool_trace"] = [] if asked is None else msgspec.to_builtins(asked.tool_trace)
    return msgspec.json.encode(line) + b"\n"
