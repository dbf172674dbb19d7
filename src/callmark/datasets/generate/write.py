"""A generated dataset, its fixtures and recorded answers: samples as lines, streamed into files."""

from __future__ import annotations

import hashlib
import heapq
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, BinaryIO, Self

import msgspec

from callmark.calls.registry import Registry
from callmark.datasets.generate.plan import FaultPlan, plan_faults, plant, samples_of
from callmark.datasets.generate.records import (
    SPAN_CAP,
    Answer,
    Attempt,
    MadeCall,
    MadeSample,
    fact_of,
)
from callmark.datasets.generate.tools import TOOL_NAMES
from callmark.errors import OutputFailed, UsageError
from callmark.records.jsontext import Json, canonical_json
from callmark.resources import builtin_tools
from callmark.store.files import atomic_writer, check_writable

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


PART_BYTES = 16 * 1024 * 1024


class SortedHash:
    """Takes lines in any order. Parts that are too large wait in temporary files."""

    def __init__(self, part_bytes: int = PART_BYTES) -> None:
        self._part_bytes = part_bytes
        self._lines: list[bytes] = []
        self._size = 0
        self._parts: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, line: bytes) -> None:
        """`line` ends with a line feed and holds no other."""
        self._lines.append(line)
        self._size += len(line)
        if self._size >= self._part_bytes:
            self._spill()

    def hexdigest(self) -> str:
        """Of the lines in order, with a line feed between them and none at the end."""
        self._lines.sort()
        parts: list[Iterable[bytes]] = [*map(_from_start, self._parts), self._lines]
        total = hashlib.sha256()
        ending = b""
        for line in heapq.merge(*parts):
            total.update(ending)
            total.update(line[:-1])
            ending = b"\n"
        return total.hexdigest()

    def _spill(self) -> None:
        self._lines.sort()
        try:
            part: IO[bytes] = tempfile.TemporaryFile(prefix="callmark-")  # noqa: SIM115 - closed in __exit__
            self._files.enter_context(part)
            part.writelines(self._lines)
            part.flush()
        except OSError as error:
            raise OutputFailed(
                f"{tempfile.gettempdir()}: a part of the fixtures could not be sorted there:"
                f" {error.strerror}. Free some space, or let TMPDIR point to another folder."
            ) from None
        self._parts.append(part)
        self._lines.clear()
        self._size = 0


def _from_start(part: IO[bytes]) -> Iterator[bytes]:
    part.seek(0)
    return iter(part)


GENERATOR_VERSION = "1"
_HEX = 64


class AnswersWanted(msgspec.Struct, frozen=True):
    """Recorded answers: perfect ones, or with `faults` (kind → share of the samples to which it
    applies). What is true of each is written beside them."""

    path: Path
    faults: Mapping[str, float] = {}

    @property
    def truth_path(self) -> Path:
        return self.path.with_name(f"{self.path.stem}.truth.jsonl")


class GeneratedDataset(msgspec.Struct, frozen=True, kw_only=True):
    """What was written. `planted` counts samples by fault."""

    samples: int
    fixtures: int
    dataset_sha256: str
    tool_registry_sha256: str
    fixtures_sha256: str
    applicable: dict[str, int]
    planted: dict[str, int]


def generate(
    total: int,
    seed: int,
    *,
    out: Path,
    fixtures: Path,
    answers: AnswersWanted | None = None,
) -> GeneratedDataset:
    """Writes everything or nothing: files take their places when all of them are complete. The
    same `total` and `seed` give the same bytes."""
    plan = plan_faults(total, seed, {} if answers is None else answers.faults)
    _check_places(out, fixtures, answers)
    registry = Registry.from_specs(builtin_tools(), where="the built-in tools").sha256
    with ExitStack() as stack:
        writer = _Writer(stack, out, fixtures, answers, plan)
        writer.begin(_header(total, seed, registry, "0" * _HEX, "0" * _HEX))
        for sample in samples_of(total, seed):
            writer.add(sample)
        dataset_sha256, fixtures_sha256 = writer.hashes()
        writer.finish(_header(total, seed, registry, dataset_sha256, fixtures_sha256))
    return GeneratedDataset(
        samples=total,
        fixtures=writer.fixtures,
        dataset_sha256=dataset_sha256,
        tool_registry_sha256=registry,
        fixtures_sha256=fixtures_sha256,
        applicable=plan.applicable,
        planted=plan.planted,
    )


class _Writer:
    """All files at once, one sample after the other."""

    def __init__(
        self,
        stack: ExitStack,
        out: Path,
        fixtures: Path,
        answers: AnswersWanted | None,
        plan: FaultPlan,
    ) -> None:
        self.fixtures = 0
        self._plan = plan
        self._items = stack.enter_context(atomic_writer(out))
        # Every tool has its file, also an empty one: what an earlier run left is replaced.
        self._tools = {
            name: stack.enter_context(atomic_writer(fixtures / f"{name}.jsonl"))
            for name in TOOL_NAMES
        }
        self._answers: tuple[BinaryIO, BinaryIO] | None = None
        if answers is not None:
            self._answers = (
                stack.enter_context(atomic_writer(answers.path)),
                stack.enter_context(atomic_writer(answers.truth_path)),
            )
        self._hasher = hashlib.sha256()
        self._fixture_hash = stack.enter_context(SortedHash())

    def begin(self, header: bytes) -> None:
        self._items.write(header)

    def add(self, sample: MadeSample) -> None:
        line = item_line(sample)
        self._hasher.update(line)
        self._items.write(line)
        for name, fixture in fixture_lines(sample):
            self._tools[name].write(fixture)
            self._fixture_hash.add(fixture)
            self.fixtures += 1
        if self._answers is not None:
            recorded, truths = self._answers
            planted, truth = plant(sample, self._plan)
            recorded.write(answer_line(sample.sample_id, planted.answer))
            truths.write(encode(truth) + b"\n")

    def hashes(self) -> tuple[str, str]:
        return self._hasher.hexdigest(), self._fixture_hash.hexdigest()

    def finish(self, header: bytes) -> None:
        """The hashes are known last and stand first: all headers of one dataset are as long."""
        self._items.seek(0)
        self._items.write(header)


def _header(total: int, seed: int, registry: str, dataset: str, fixtures: str) -> bytes:
    header: dict[str, Json] = {
        "__header__": True,
        "dataset_version": GENERATOR_VERSION,
        "dataset_sha256": dataset,
        "tool_registry_sha256": registry,
        "fixtures_sha256": fixtures,
        "integration_span_cap": SPAN_CAP,
        "span_extractor": "marker",
        "seed": seed,
        "composition": True,
        "generator": {"total": total, "version": GENERATOR_VERSION},
    }
    return encode(header) + b"\n"


def _check_places(out: Path, fixtures: Path, answers: AnswersWanted | None) -> None:
    """Before anything is made: everything below the fixtures' folder is read as a fixture, so
    nothing else may stand or come there."""
    ours = {fixtures / f"{name}.jsonl" for name in TOOL_NAMES}
    for path in sorted(fixtures.rglob("*.json*")) if fixtures.is_dir() else ():
        if path not in ours:
            raise UsageError(
                f"--fixtures {fixtures}: {path} is there already and would be read as a fixture:"
                " name a folder of its own"
            )
    written = [out] if answers is None else [out, answers.path, answers.truth_path]
    places = [path.resolve() for path in written]
    if len(set(places)) < len(places):
        raise UsageError("--out and --answers must be different files")
    for path, place in zip(written, places, strict=True):
        if fixtures.resolve() in place.parents:
            raise UsageError(f"{path}: lies below --fixtures and would be read as a fixture")
    for path in (*written, *sorted(ours)):
        check_writable(path)
        if path.exists() and not path.is_file():
            raise UsageError(f"{path}: is no regular file, and its beginning is written last")
