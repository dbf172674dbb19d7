"""Asks live tools what no fixture answers, each thing once, and adds what they say to a folder of
fixtures: what is there stays, what is new stands in order."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from callmark.broker.broker import BrokerSession, ToolBroker
from callmark.calls.registry import NormalisedCall, Registry, normalise
from callmark.datasets.reader import find_header, header_fields, located_items
from callmark.datasets.schema import HEADER_KEY
from callmark.errors import BadInput, UsageError
from callmark.live.cleaning import Surrogates
from callmark.records.jsontext import Json, canonical_json, sha256_hex, want_object, want_text
from callmark.records.samples import sample_id_of
from callmark.records.seams import Hit
from callmark.resources import load_registry_file
from callmark.store.files import (
    atomic_writer,
    check_writable,
    filled_lines,
    object_of,
    open_input,
)

REGISTRY = ".registry.json"  # the dot keeps it apart from fixtures
SURROGATES = ".surrogates.json"
PINS = ".pins.json"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """One answer to be written. `seq` None: the only one to its call."""

    name: str
    key: dict[str, Json]
    result: Json
    sample_id: str | None = None
    seq: int | None = None

    def as_json(self) -> dict[str, Json]:
        line: dict[str, Json] = {"name": self.name, "key": self.key}
        if self.sample_id is not None:
            line["sample_id"] = self.sample_id
        if self.seq is not None:
            line["seq"] = self.seq
        return {**line, "result": self.result}


def open_fixtures(folder: Path, registry: Registry) -> ToolBroker | None:
    """None: the folder is not there yet, or holds no fixture."""
    found = folder.is_dir() and any(
        not any(part.startswith(".") for part in path.relative_to(folder).parts)
        for suffix in ("jsonl", "json")
        for path in folder.rglob(f"*.{suffix}")
    )
    return ToolBroker(folder, registry) if found else None


def file_of(folder: Path, tool: str) -> Path:
    """Where the answers of a tool are written."""
    plain = tool if _FILE_NAME.fullmatch(tool) else f"tool-{sha256_hex(tool.encode())[:12]}"
    return folder / f"{plain}.jsonl"


def write_entries(folder: Path, entries: Iterable[Entry], registry: Registry) -> int:
    """Add entries to the files of their tools, each file whole or not at all. An entry takes the
    place of those with its call and its scope; every other line stays. The order of lines
    depends on what they say alone."""
    by_file: dict[Path, list[Entry]] = {}
    for entry in entries:
        by_file.setdefault(file_of(folder, entry.name), []).append(entry)
    for path in sorted(by_file):
        new = [entry.as_json() for entry in by_file[path]]
        places = {_place(line, path.stem, registry) for line in new}
        kept = [line for line in _lines(path) if _place(line, path.stem, registry) not in places]
        ordered = sorted([*kept, *new], key=lambda line: _order(line, path.stem, registry))
        with atomic_writer(path) as stream:
            stream.writelines(_encode(line) for line in ordered)
    return sum(map(len, by_file.values()))


def read_specs(path: Path) -> list[dict[str, Json]]:
    """The specs that a registry file has already; none where there is no file."""
    if not path.exists():
        return []
    file = load_registry_file(path)
    registry = Registry.from_specs(file.specs, where=str(path), locate=file.locate)
    return [spec.function for spec in registry.specs]


def write_specs(path: Path, specs: Iterable[Mapping[str, Json]]) -> None:
    ordered = sorted(specs, key=lambda spec: str(spec["name"]))
    _write_json(path, {"tools": ordered})


def read_texts(folder: Path, name: str) -> list[str]:
    """What earlier recordings remembered (SURROGATES, PINS); nothing where there is no file."""
    path = folder / name
    if not path.exists():
        return []
    found = load_registry_file(path).specs
    if not isinstance(found, list) or not all(isinstance(value, str) for value in found):
        raise BadInput(f"{path}: must be a list of texts; fix it, or remove it to start over")
    return found


def write_texts(folder: Path, name: str, texts: Iterable[str]) -> None:
    _write_json(folder / name, sorted(texts))


def check_folder(folder: Path) -> None:
    """Before any tool is called: could its answer be written?"""
    check_writable(folder / REGISTRY)


def _write_json(path: Path, value: Json) -> None:
    with atomic_writer(path) as stream:
        stream.write(json.dumps(value, ensure_ascii=False, indent=1).encode() + b"\n")


def _lines(path: Path) -> Sequence[dict[str, Json]]:
    if not path.exists():
        return []
    return [object_of(line.json) for line in filled_lines(path)]


def _place(line: Mapping[str, Json], stem: str, registry: Registry) -> tuple[str, ...]:
    """What an entry answers: equal for entries of one sequence."""
    name = want_text(line.get("name", stem))
    call = normalise(name, line.get("key", {}), registry=registry, known_names=(name,))
    key = canonical_json(line.get("key")) if call is None else call.key_json
    match = canonical_json(line.get("match", "exact"))
    return (canonical_json(line.get("sample_id")), match, name if call is None else call.name, key)


def _order(line: Mapping[str, Json], stem: str, registry: Registry) -> tuple[Json, ...]:
    return (*_place(line, stem, registry), line.get("seq") or 1)


def _encode(line: Mapping[str, Json]) -> bytes:
    return json.dumps(line, ensure_ascii=False).encode("utf-8", "replace") + b"\n"


Item = dict[str, Json]

# A header's hashes are of another dataset now; places in a text are of another text.
_PINS = ("dataset_sha256", "fixtures_sha256", "tool_registry_sha256")
_PLACES = ("integration_spans_bytes", "json_args_spans_bytes")


def items_for_copy(dataset: Path | None) -> list[Item]:
    """Every item, with the id that it has now written down."""
    if dataset is None:
        raise UsageError("--out-dataset: a copy of what? Name the dataset with --in")
    with open_input(dataset) as stream:
        return [_name_item(item) for _, item in located_items(stream, str(dataset))]


def with_surrogates(item: Item, surrogates: Surrogates) -> Item:
    """Ids stay: results and fixtures are joined by them."""
    changed = want_object(surrogates.json(item))
    metadata = want_object(changed["metadata"])
    metadata["sample_id"] = want_object(item["metadata"])["sample_id"]
    for name in ("sample_id", "id"):
        if name in item:
            changed[name] = item[name]
    if changed.get("teacher_text") != item.get("teacher_text"):
        for name in _PLACES:
            metadata.pop(name, None)
    return changed


def write_copy(path: Path, dataset: Path | None, items: Sequence[Item]) -> None:
    header = None if dataset is None else _header(dataset)
    with atomic_writer(path) as stream:
        for line in (*([] if header is None else [header]), *items):
            stream.write(json.dumps(line, ensure_ascii=False).encode() + b"\n")


def _name_item(item: Item) -> Item:
    metadata = want_object(item.get("metadata"))
    return {**item, "metadata": {**metadata, "sample_id": sample_id_of(item)}}


def _header(dataset: Path) -> Item | None:
    with open_input(dataset) as stream:
        found = find_header(stream, str(dataset))
    if found is None:
        return None
    kept = {name: value for name, value in header_fields(found[1]).items() if name not in _PINS}
    return {HEADER_KEY: True, **kept}


class Answered(msgspec.Struct, frozen=True):
    """What the tool said; a tool's own error is an answer too."""

    result: Json


class LostCall(msgspec.Struct, frozen=True):
    """Infrastructure failed: nothing is recorded. `gone`: no later call can be answered either."""

    reason: str
    gone: bool = False


class LiveTools(Protocol):
    """`specs` are OpenAI-style function specs; `origin` names the tools without any secret."""

    @property
    def origin(self) -> str: ...

    @property
    def specs(self) -> Sequence[dict[str, Json]]: ...

    def call(self, name: str, arguments: dict[str, Json]) -> Answered | LostCall: ...


Mode = Literal["none", "once", "new", "all"]
MODES: tuple[Mode, ...] = ("none", "once", "new", "all")


class Replayed(msgspec.Struct, frozen=True):
    """A fixture (`hit`), or an earlier call of this recording, had the answer."""

    result: Json
    hit: Hit | None = None


class Called(msgspec.Struct, frozen=True):
    """The live tool was asked."""

    result: Json


class NotCalled(msgspec.Struct, frozen=True):
    """Nothing answers, and the mode forbids to ask."""

    name: str
    key: Json


class NoSuchTool(msgspec.Struct, frozen=True):
    """Nothing answers, and no live tool has this name: whatever a server said to it would be the
    answer of no tool."""

    name: str
    key: Json


# What stands in the folder instead of these arguments: personal data may have been replaced.
AsWritten = Callable[[dict[str, Json]], dict[str, Json]]
# (tool, answer) -> the answer as everybody gets it: a model, its results, the folder.
Settle = Callable[[str, Json], Json]
Outcome = Replayed | Called | NotCalled | NoSuchTool | LostCall


class _Sequence(msgspec.Struct):
    """The answers to one call in the order in which one trial asked for them."""

    name: str
    key: dict[str, Json]
    sample_id: str | None
    results: list[Json] = msgspec.field(default_factory=list)


class Recorder:
    """One recording. `broker` holds the fixtures that are there already (None: none)."""

    def __init__(
        self,
        live: LiveTools | None,
        registry: Registry,
        broker: ToolBroker | None,
        mode: Mode,
        *,
        per_sample: bool = False,
        as_written: AsWritten = lambda arguments: arguments,
        settle: Settle = lambda name, result: result,
    ) -> None:
        self._live = live
        self._names = frozenset(spec["name"] for spec in live.specs) if live else frozenset()
        self._settle = settle
        self.as_written = as_written
        self.registry = registry
        self._broker = None if mode == "all" else broker
        self._may_call = live is not None and (
            mode in ("new", "all") or (mode == "once" and broker is None)
        )
        self._per_sample = per_sample
        self._sequences: dict[tuple[str | None, str, str], _Sequence] = {}
        self.calls = 0

    def session(self, sample_id: str | None = None) -> RecordingSession:
        """One trial: the second time that it asks the same, the tool may say something else."""
        known = None if self._broker is None else self._broker.session(sample_id)
        return RecordingSession(self, known, sample_id)

    def entries(self) -> Iterator[Entry]:
        """What was recorded. Answers that repeat the one before at the end of a sequence are
        left out: the last one is served again anyway."""
        for sequence in self._sequences.values():
            results = list(sequence.results)
            while len(results) > 1 and _same(results[-1], results[-2]):
                results.pop()
            for seq, result in enumerate(results, start=1):
                yield Entry(
                    name=sequence.name,
                    key=sequence.key,
                    result=result,
                    sample_id=sequence.sample_id,
                    seq=seq if len(results) > 1 else None,
                )

    def ask(
        self, call: NormalisedCall, arguments: dict[str, Json], sample_id: str | None, position: int
    ) -> Outcome:
        """The answer at this position of the call's sequence."""
        scope = sample_id if self._per_sample else None
        place = (scope, call.name, call.key_json)
        sequence = self._sequences.get(place)
        if sequence is not None and position < len(sequence.results):
            return Replayed(sequence.results[position])
        if not self._may_call or self._live is None:
            return NotCalled(call.name, call.key)
        if call.name not in self._names:
            return NoSuchTool(call.name, call.key)
        self.calls += 1
        answer = self._live.call(call.name, arguments)
        if isinstance(answer, LostCall):
            return answer
        if sequence is None:
            sequence = self._sequences[place] = _Sequence(call.name, arguments, scope)
        sequence.results.append(self._settle(call.name, answer.result))
        return Called(sequence.results[-1])


class RecordingSession:
    """One trial of a recording."""

    def __init__(
        self, recorder: Recorder, known: BrokerSession | None, sample_id: str | None
    ) -> None:
        self._recorder = recorder
        self._known = known
        self._sample_id = sample_id
        self._asked: dict[tuple[str, str], int] = {}

    def ask(self, name: str, arguments: dict[str, Json]) -> Outcome:
        if self._known is not None:
            found = self._known.answer(name, self._recorder.as_written(arguments))
            if isinstance(found, Hit):
                return Replayed(found.result, found)
        call = normalise(name, arguments, registry=self._recorder.registry)
        if call is None:
            return NotCalled(name, None)
        position = self._asked.get((call.name, call.key_json), 0)
        outcome = self._recorder.ask(call, arguments, self._sample_id, position)
        if isinstance(outcome, Replayed | Called):
            self._asked[call.name, call.key_json] = position + 1
        return outcome


def _same(one: Json, other: Json) -> bool:
    return canonical_json(one) == canonical_json(other)
