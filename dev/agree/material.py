"""What is measured on: real episodes, and answers in which people marked what is wrong."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec

from callmark.calls.registry import Registry
from callmark.config import load_config
from callmark.records.jsontext import Json
from callmark.records.results import Result
from callmark.records.samples import Sample, sample_of
from callmark.records.trace import Trace, entry_of
from callmark.run.rescore import rescore
from callmark.scorers.integration import TrialReading
from callmark.scorers.score import sample_of_result
from callmark.scorers.statements import Statements, check_statements

TUNED, OTHER = 0, 1  # halves: rules were written while looking at the first
NO_TOOLS = Registry(())


class Source(NamedTuple):
    """`name` is what pages call it, `salt` goes before the key that decides the half."""

    name: str
    file: str
    salt: str


EPISODES = (
    Source("airline", "episodes/tau_bench_airline_gpt4o.jsonl", "airline"),
    Source("retail", "episodes/tau2_main_retail.jsonl", "retail"),
    Source("retail_2", "episodes/tau2_retail.jsonl", "retail2"),
)
OLDER = ("airline", "retail")  # the 314 whose unsupported values were counted before
# No rule is written while looking at these: they are opened once, when the rules are frozen.
HELD_BACK = (
    Source("telecom", "episodes/tau2_telecom.jsonl", "telecom"),
    Source("nemo_gym", "episodes/nemo_gym.jsonl", "nemo_gym"),
)
LABELLED = (
    Source("data2txt", "labels/ragtruth_data2txt.jsonl", ""),
    Source("qa", "labels/ragtruth_qa.jsonl", ""),
    Source("summary", "labels/ragtruth_summary.jsonl", ""),
)
SOURCES = {one.name: one for one in (*EPISODES, *HELD_BACK, *LABELLED)}


class MarkedText(msgspec.Struct, frozen=True):
    """Characters of an answer that a person marked as wrong."""

    start: int
    end: int
    type: str


class RealTrial(msgspec.Struct, frozen=True):
    """`reward` is an episode's, `marked` are the spans of a labelled answer."""

    source: str
    key: str
    half: int
    sample: Sample
    trace: Trace
    registry: Registry = NO_TOOLS
    reward: float | None = None
    marked: tuple[MarkedText, ...] | None = None

    def check(self, trace: Trace | None = None) -> tuple[TrialReading, Statements]:
        reading = TrialReading(self.sample, trace or self.trace, lambda _: None, None)
        return reading, check_statements(reading, self.registry)


class _LabelledRow(msgspec.Struct, frozen=True):
    id: str
    source: Json
    answer: str
    labels: list[dict[str, Json]]


class _EpisodeRow(msgspec.Struct, frozen=True):
    id: str
    task_id: str | None = None
    reward: float | None = None
    tools: list[Json] = []


_Row = TypeVar("_Row", bound=msgspec.Struct)


def half_of(key: str) -> int:
    return int(sha256(key.encode()).hexdigest(), 16) % 2


def trials_of(folder: Path, name: str, limit: int | None = None) -> list[RealTrial]:
    """The trials of a source; with `limit` that many lines of its file, those of the smallest
    hashes."""
    source = SOURCES[name]
    lines = (folder / source.file).read_bytes().splitlines(keepends=True)
    if limit is not None:
        lines = sorted(lines, key=lambda one: sha256(one).digest())[:limit]
    with tempfile.TemporaryDirectory(prefix="callmark-agree-") as scratch:
        path = Path(scratch, Path(source.file).name)
        path.write_bytes(b"".join(lines))
        if source in LABELLED:
            return [_labelled(source, row) for row in _rows(path, _LabelledRow)]
        return list(_episodes(path, source))


def _rows(path: Path, kind: type[_Row]) -> list[_Row]:
    return msgspec.json.Decoder(kind).decode_lines(path.read_bytes())


def _labelled(source: Source, row: _LabelledRow) -> RealTrial:
    # All answers to one record stand in one half: whoever saw one of them saw the record.
    record = row.id.split("-")[1]
    call = {"name": "look_up", "arguments": {}}
    item: dict[str, Json] = {"prompt": "Describe it.", "metadata": {"call_sequence": [call]}}
    sample = sample_of(item, index=0, sample_id=row.id, item_sha256="")
    entry = entry_of({**call, "result": row.source})
    trace = Trace(model_output=row.answer, tool_trace=(entry,))
    marked = tuple(msgspec.convert(one, MarkedText) for one in row.labels)
    half = half_of(source.salt + record)
    return RealTrial(source.name, row.id, half, sample, trace, marked=marked)


def _episodes(path: Path, source: Source) -> Iterator[RealTrial]:
    results = rescore(path, load_config(Path(os.devnull), {})).results
    for row, result in zip(_rows(path, _EpisodeRow), results, strict=True):
        yield RealTrial(
            source.name,
            row.id,
            half_of(source.salt + (row.task_id or row.id)),
            sample_of_result(result),
            trace_of(result),
            Registry.from_specs(row.tools, where=path.name) if row.tools else NO_TOOLS,
            reward=row.reward,
        )


def trace_of(result: Result) -> Trace:
    turns = result.turns
    return Trace(
        model_output=result.model_output,
        tool_trace=result.tool_trace,
        turns=None if turns is None else tuple((part.start, part.end) for part in turns),
        said=result.said,
        stop=result.stop,
    )
