"""What an agent asked and what it answered, in one line: a trace and a file of answers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.core.jsontext import Json
from callmark.errors import BadInput
from callmark.store.jsonl import is_blank, lines_of, object_of, open_input
from callmark.store.recorded import RecordedAnswer, read_recorded


def join_answers(trace: Path, answers: Path, joined: BinaryIO) -> None:
    """Every session of the trace with the answer of its sample and trial. An answer without a
    session is one of an agent that never asked for a tool; a session without an answer is an
    error."""
    said = {(one.sample_id, one.trial): one.model_output for one in _lines(answers)}
    problems: list[str] = []
    for asked, line in zip(_lines(trace), _objects(trace), strict=True):
        answer = said.pop((asked.sample_id, asked.trial), None)
        if answer is None:
            what = f"sample {asked.sample_id}, trial {asked.trial} has no answer in {answers}"
            problems.append(f"{trace}:{asked.line}: {what}")
        else:
            joined.write(_encoded({**line, "model_output": answer}))
    if problems:
        raise BadInput(problems[:20])
    for (sample_id, trial), answer in said.items():
        joined.write(_encoded({"sample_id": sample_id, "trial": trial, "model_output": answer}))


def _lines(path: Path) -> Iterator[RecordedAnswer]:
    for line in read_recorded(path):
        if not isinstance(line, RecordedAnswer):
            raise BadInput(f"{path}:{line.line}: must hold sample_id and model_output")
        yield line


def _objects(path: Path) -> Iterator[dict[str, Json]]:
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if not is_blank(line.json):
                yield object_of(line.json)


def _encoded(line: dict[str, Json]) -> bytes:
    return msgspec.json.encode(line) + b"\n"
