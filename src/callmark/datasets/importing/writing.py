"""The files of an import: dataset, registry, fixtures and answers, streamed, all or none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.calls.registry import normalise
from callmark.datasets.generate.write import SortedHash
from callmark.datasets.importing.desk import Desk, Imported, Object, ToolCatalogue, name_of_spec
from callmark.datasets.schema import HEADER_KEY, item_problems
from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import (
    Json,
    canonical_json,
    digest,
    want_list,
    want_object,
    want_text,
)
from callmark.records.problems import refuse_problems, show_value
from callmark.stats.columns import KeyIndex, trial_key
from callmark.store.files import atomic_writer, check_writable
from callmark.store.recorded import BadLine, messages_of

FIXTURES_FILE = "imported.jsonl"
_NO_HASH = "0" * 64
_HASHES = ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256")


class ImportPaths(msgspec.Struct, frozen=True, kw_only=True):
    """Where everything goes. `fixtures` is a folder."""

    dataset: Path
    registry: Path
    fixtures: Path
    answers: Path
    report: Path | None = None

    @property
    def fixtures_file(self) -> Path:
        return self.fixtures / FIXTURES_FILE

    @property
    def files(self) -> tuple[Path, ...]:
        files = (self.dataset, self.registry, self.answers, self.fixtures_file)
        return files if self.report is None else (*files, self.report)


class ImportCounts(msgspec.Struct, frozen=True, kw_only=True):
    """What came out. `calls` and `results`: in the answers."""

    samples: int
    trials: int
    answers: int
    fixtures: int
    tools: int
    turns: int  # of the longest answer
    calls: int
    results: int


def check_places(places: ImportPaths, sources: Iterable[Path]) -> None:
    """Before anything is read: all of them different, writable, and nothing but our own file in
    the folder of the fixtures, where everything is read as a fixture."""
    resolved = [path.resolve() for path in places.files]
    is_read = {source.resolve() for source in sources}
    if len(set(resolved)) < len(resolved) or not is_read.isdisjoint(resolved):
        raise UsageError("the source, --out, --registry, --answers and --report must differ")
    folder = places.fixtures.resolve()
    for path in (places.dataset, places.registry, places.answers, places.report):
        if path is not None and folder in path.resolve().parents:
            raise UsageError(f"{path}: lies below --fixtures and would be read as a fixture")
    for path in sorted(places.fixtures.rglob("*.json*")) if places.fixtures.is_dir() else ():
        if path != places.fixtures_file:
            raise UsageError(
                f"--fixtures {places.fixtures}: {path} is there already and would be read as a"
                " fixture: name a folder of its own"
            )
    if places.dataset.exists() and not places.dataset.is_file():
        raise UsageError(f"{places.dataset}: is no regular file, and its header is written last")
    for path in (places.dataset, places.registry, places.answers, places.report):
        if path is not None:
            check_writable(path)


class Writer:
    """Takes one entry after the other. Files that get nothing are not made."""

    def __init__(
        self, stack: ExitStack, places: ImportPaths, desk: Desk, *, answered: bool = False
    ) -> None:
        """`answered`: what nobody answered is left out, and each answer brings along what its
        sample says, and the specs of its tools: it is scored without the dataset."""
        self._stack = stack
        self._answered = answered
        self._places = places
        self._desk = desk
        self._open: dict[Path, BinaryIO] = {}
        self._hasher = hashlib.sha256()
        self._fixture_hash = stack.enter_context(SortedHash())
        self._seen = _Seen(desk)
        self._header_size = 0
        self._samples = self._trials = self._answers = self._fixtures = self._turns = 0
        self._calls = self._results = 0

    @property
    def trials(self) -> int:
        """So far."""
        return self._trials

    def add(self, entry: Imported) -> None:
        self._check(entry)
        if self._answered and entry.answer is None:
            self._desk.notes.add("no_answer", entry.line, entry.sample_id)
            return
        if not self._header_size:
            self._begin()
        entry = self._seen.name_apart(entry)
        is_new_trial, is_new_sample = self._seen.take(entry)
        if not is_new_trial:
            return
        self._trials += 1
        if is_new_sample:
            line = _line(entry.item)
            self._hasher.update(line)
            self._file(self._places.dataset).write(line)
            self._samples += 1
        if entry.answer is not None:
            answer = self._whole(entry) if self._answered else entry.answer
            self._file(self._places.answers).write(_line(answer))
            self._answers += 1
            self._count_messages(entry.answer, entry.item)
        for fixture in self._seen.new_fixtures(entry):
            text = canonical_json(fixture).encode() + b"\n"
            self._file(self._places.fixtures_file).write(text)
            self._fixture_hash.add(text)
            self._fixtures += 1

    def _whole(self, entry: Imported) -> Object:
        metadata = want_object(entry.item.get("metadata"))
        answer = {**want_object(entry.answer), "metadata": metadata}
        listed = metadata.get("tools")
        if listed is None or "messages" not in answer:
            return answer
        return {**answer, "tools": self._desk.tools.specs_of(want_list(listed))}

    def _count_messages(self, answer: Object, item: Object) -> None:
        """Of a step only what the model wrote or caused, not what it was given."""
        is_step = want_object(item.get("metadata")).get("max_turns") == 1
        given = len(want_list(item["prompt"])) if is_step else 0
        messages = [want_object(one) for one in want_list(answer.get("messages"))[given:]]
        spoken = [one for one in messages if one["role"] == "assistant"]
        self._turns = max(self._turns, len(spoken))
        self._calls += sum(len(want_list(one.get("tool_calls"))) for one in spoken)
        self._results += sum(one["role"] == "tool" for one in messages)

    def _check(self, entry: Imported) -> None:
        """What is written can be read again, whatever the source held."""
        problems = item_problems(entry.item)
        if not problems and entry.answer is not None and "messages" in entry.answer:
            try:
                messages_of(entry.answer, entry.line)
            except BadLine as error:
                problems = list(error.problems)
        refuse_problems(self._desk.place(entry.line), problems)

    def finish(self, tools: ToolCatalogue, where: str) -> ImportCounts:
        if not self._samples:
            why = ", ".join(f"{one.count} {one.kind}" for one in self._desk.notes.unmapped())
            what = f"holds nothing that could be imported{f' ({why})' if why else ''}"
            raise BadInput(f"{where}: {what}")
        pins: dict[str, str] = {"dataset_sha256": self._hasher.hexdigest()}
        specs = tools.specs
        if specs:
            self._file(self._places.registry).write(_document(specs))
            pins["tool_registry_sha256"] = tools.registry().sha256
        if self._fixtures:
            pins["fixtures_sha256"] = self._fixture_hash.hexdigest()
        dataset = self._file(self._places.dataset)
        dataset.seek(0)
        # As long as the one that was written first: blanks at the end of a line say nothing.
        dataset.write(_header(self._desk.header, pins).ljust(self._header_size) + b"\n")
        return ImportCounts(
            samples=self._samples,
            trials=self._trials,
            answers=self._answers,
            fixtures=self._fixtures,
            tools=len(specs),
            turns=self._turns,
            calls=self._calls,
            results=self._results,
        )

    def _begin(self) -> None:
        """The hashes are known last and stand first: their place is kept free."""
        longest = _header(self._desk.header, dict.fromkeys(_HASHES, _NO_HASH))
        self._header_size = len(longest)
        self._desk.is_header_written = True
        self._file(self._places.dataset).write(longest + b"\n")

    def _file(self, path: Path) -> BinaryIO:
        if path not in self._open:
            self._open[path] = self._stack.enter_context(atomic_writer(path))
        return self._open[path]


class _Seen:
    """Which samples and trials there were. Of each only short hashes are kept."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._first = KeyIndex()  # sample → line, what it asks
        self._trials = KeyIndex()  # sample and trial → line, file
        self._homes = KeyIndex(numbers_only=True)  # sample → the file that named it, of several
        self._whole = KeyIndex(numbers_only=True)  # hash of what there was
        self._results = KeyIndex()  # sample and call → its results
        self._offers = KeyIndex()  # sample → the tools that its first trial was offered

    def name_apart(self, entry: Imported) -> Imported:
        """An id that another file gave away is no mistake: each of them counts for itself. The same
        conversation under the same id is one."""
        if self._desk.notes.source is msgspec.UNSET:
            return entry  # there is only one file
        known = self._trials.find(trial_key(entry.sample_id, entry.trial))
        mark = digest([entry.sample_id, entry.trial, entry.item, entry.answer])
        seen = len(self._whole)
        self._whole.setdefault(mark, 0)
        home = self._homes.setdefault(entry.sample_id, self._desk.file).value
        if home == self._desk.file or not entry.named:
            return entry
        if known is None and self._is_further_trial(entry):
            return entry
        if known is not None and known.value == self._desk.file:
            return entry
        if len(self._whole) == seen:
            return msgspec.structs.replace(entry, named=False)
        own = next(name for name in self._names_apart(entry.sample_id) if self._is_free(name))
        self._desk.notes.add("id_taken", entry.line, f"{entry.sample_id} is {own}")
        return rename_sample(entry, own)

    def _is_further_trial(self, entry: Imported) -> bool:
        """Of a sample that another file has: it asks the same, and is none of a sample whose first
        trial got a name of its own."""
        first = self._first.find(entry.sample_id)
        is_apart = any(
            home is not None and home.value == self._desk.file
            for home in map(self._homes.find, self._names_apart(entry.sample_id))
        )
        return first is not None and first.value == _asked(entry) and not is_apart

    def _names_apart(self, sample_id: str) -> Iterator[str]:
        name = self._desk.source.name
        for suffix in ("", *(f"-{number}" for number in range(2, self._desk.file + 2))):
            yield f"{name}{suffix}/{sample_id}"

    def _is_free(self, name: str) -> bool:
        """Whether this file may give the name: no other did."""
        return self._homes.setdefault(name, self._desk.file).value == self._desk.file

    def take(self, entry: Imported) -> tuple[bool, bool]:
        """Whether this trial is new, and whether its sample is."""
        notes, known_trials = self._desk.notes, len(self._trials)
        earlier = self._trials.setdefault(
            trial_key(entry.sample_id, entry.trial), self._desk.file, entry.line
        ).line
        if len(self._trials) == known_trials:
            if not entry.named:
                notes.add("duplicate", entry.line, f"as on line {earlier}")
                return False, False
            raise BadInput(
                f"{self._desk.place(entry.line)}: sample_id: {show_value(entry.sample_id)}, trial"
                f" {entry.trial} stands on line {earlier} too"
            )
        asked = _asked(entry)
        known_samples = len(self._first)
        first = self._first.setdefault(entry.sample_id, asked, entry.line)
        if len(self._first) > known_samples:
            return True, True
        if first.value != asked:
            notes.add("other_prompt_in_trial", entry.line, f"{entry.sample_id}: line {first.line}")
        return True, False

    def new_fixtures(self, entry: Imported) -> list[Object]:
        """Fixtures belong to a sample, not to a trial: the first trial that made a call decides.
        What is the same call is said by the tools of the sample, which are its first trial's."""
        tools = want_object(entry.item.get("metadata")).get("tools")
        brought = [one for one in tools if isinstance(one, dict)] if isinstance(tools, list) else []
        offer = _mark(*brought)
        if self._offers.setdefault(entry.sample_id, offer).value != offer:
            if entry.fixtures:
                self._desk.notes.add("other_tools_in_trial", entry.line, entry.sample_id)
            return []
        grouped: dict[str, list[Object]] = {}
        for call, fixture in entry.fixtures:
            grouped.setdefault(call, []).append(fixture)
        fresh: dict[str, list[Object]] = {}
        for call, fixtures in grouped.items():
            results, known_calls = _mark(*(one["result"] for one in fixtures)), len(self._results)
            first = self._results.setdefault(canonical_json([entry.sample_id, call]), results)
            if len(self._results) > known_calls:
                fresh[call] = fixtures
            elif first.value != results:
                self._note_other_result(entry, fixtures[0])
        if brought:
            return self._told_apart(entry, fresh, [name_of_spec(one) for one in brought])
        return [one for fixtures in fresh.values() for one in fixtures]

    def _told_apart(
        self, entry: Imported, fresh: dict[str, list[Object]], brought: list[Json]
    ) -> list[Object]:
        """Two calls of a tool that the sample brings may be one by the tool of that name in the
        registry, say where that has a default: the file is read by both, so they are numbered."""
        registry = self._desk.tools.registry_of(brought)
        shared: dict[str, list[list[Object]]] = {}
        for own, fixtures in fresh.items():
            name, key = want_text(fixtures[0]["name"]), fixtures[0]["key"]
            call = normalise(name, key, registry=registry, known_names=(name,))
            there = own if call is None else f"{call.name} {call.key_json}"
            shared.setdefault(there, []).append(fixtures)
        told: list[Object] = []
        for there, groups in shared.items():
            known = len(self._results)
            self._results.setdefault(canonical_json([entry.sample_id, there, "shared"]), 0)
            if len(self._results) == known:  # an earlier trial has numbered its own
                self._note_other_result(entry, groups[0][0])
            elif len(groups) == 1:
                told += groups[0]
            else:
                flat = [one for fixtures in groups for one in fixtures]
                told += [{**one, "seq": seq} for seq, one in enumerate(flat, start=1)]
        return told

    def _note_other_result(self, entry: Imported, fixture: Object) -> None:
        what = f"{entry.sample_id}: {fixture['name']}"
        self._desk.notes.add("other_result_in_trial", entry.line, what)


def _asked(entry: Imported) -> int:
    return _mark(entry.item.get("prompt"), entry.item.get("user_turns"))


def _mark(*parts: Json) -> int:
    """Of two that differ it is not the same: once in 280 million million times."""
    return int.from_bytes(hashlib.sha256(canonical_json(parts).encode()).digest()[:6], "big")


def rename_sample(entry: Imported, sample_id: str) -> Imported:
    """The same under another id, wherever that stands."""
    metadata = {**want_object(entry.item.get("metadata")), "sample_id": sample_id}
    item = {name: value for name, value in entry.item.items() if name != "sample_id"}
    answer = None if entry.answer is None else {**entry.answer, "sample_id": sample_id}
    return msgspec.structs.replace(
        entry,
        sample_id=sample_id,
        item={**item, "metadata": metadata},
        answer=answer,
        fixtures=tuple((call, {**one, "sample_id": sample_id}) for call, one in entry.fixtures),
    )


def _header(own: Object, pins: dict[str, str]) -> bytes:
    kept = {name: value for name, value in own.items() if name != "dataset_sha256"}
    return json.dumps({HEADER_KEY: True, **kept, **pins}, ensure_ascii=False).encode()


def _line(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _document(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1, sort_keys=True).encode() + b"\n"
