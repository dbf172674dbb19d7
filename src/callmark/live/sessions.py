"""What clients ask, answered from fixtures, and remembered session by session."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.broker.broker import BrokerSession, ToolBroker
from callmark.broker.nearest import explain_miss, printable
from callmark.errors import BadInput
from callmark.live.mcp import ProtocolError, result_to_wire
from callmark.records.jsontext import Json, digest
from callmark.records.problems import Problems
from callmark.records.results import Fingerprints
from callmark.records.seams import Hit, Miss
from callmark.records.trace import EntryStatus, TraceEntry, answer_entry
from callmark.store.files import (
    atomic_writer,
    check_writable,
    is_blank,
    lines_of,
    make_folder,
    object_of,
    open_input,
    output_failed,
)
from callmark.store.recorded import RecordedAnswer, read_recorded, recorded_of

UNKNOWN_TOOL = -32602  # JSON-RPC's "invalid params", which MCP servers answer with
NO_SAMPLE = "session"

MAX_SESSIONS = 100_000
LONGEST_ID = 1_000  # characters

Answer = dict[str, Json] | ProtocolError


class TooManySessions(Exception):
    """A client names more samples than any dataset that one server is meant for."""


class Session:
    """One trial of one sample, as a client sees the tools. `trial` None: the next free one.
    `keeps_calls`: for a trace; a server without one would only fill its memory."""

    def __init__(
        self,
        broker: ToolBroker,
        sample_id: str | None,
        trial: int | None,
        *,
        keeps_calls: bool = True,
    ) -> None:
        self.sample_id = sample_id
        self.trial = trial
        self.entries: list[TraceEntry] = []
        self._keeps_calls = keeps_calls
        self._broker = broker
        self._tools: BrokerSession = broker.session(sample_id)

    def call(self, name: str, arguments: dict[str, Json]) -> Answer:
        entry, answer = self._settled(name, arguments)
        if self._keeps_calls:
            self.entries.append(entry)
        return answer

    def as_line(self, trial: int) -> dict[str, Json]:
        """A results line; what the agent said is not known here."""
        registry_sha256 = None if self._broker.registry is None else self._broker.registry.sha256
        fingerprints = Fingerprints(
            tool_registry_sha256=registry_sha256, fixtures_sha256=self._broker.fixtures_sha256
        )
        return {
            "sample_id": self.sample_id or NO_SAMPLE,
            "trial": trial,
            "model_output": "",
            "tool_trace": msgspec.to_builtins(self.entries),
            "used_fixtures_sha256": digest(list(self._tools.used)),
            "offered_tools_sha256": registry_sha256,
            "fingerprints": msgspec.to_builtins(fingerprints),
        }

    def _settled(self, name: str, arguments: dict[str, Json]) -> tuple[TraceEntry, Answer]:
        registry = self._broker.registry
        tool = None if registry is None else registry.resolve(name)
        entry = TraceEntry(
            name=tool or name,
            arguments=arguments,
            result=None,
            turn=None,
            raw=None,
            status="unanswered",
            served_by=None,
        )
        if registry is None or tool is None:
            what = f"Unknown tool: {name}"
            refused = _refuse(entry, "tool_not_offered", what)
            return refused, ProtocolError(UNKNOWN_TOOL, what, None)
        errors = registry.validate(tool, arguments)
        entry = msgspec.structs.replace(entry, schema_errors=errors)
        try:
            found = self._tools.answer(tool, arguments)
        except BadInput as error:  # two patterns that fit equally: whoever wrote them must choose
            return msgspec.structs.replace(entry, reason=str(error)), _failure(str(error))
        match found:
            case Hit(result=result, served_by=served_by):
                return answer_entry(entry, result, served_by), result_to_wire(result)
            case Miss() if errors:
                what = "invalid arguments: " + "; ".join(errors)
                return _refuse(entry, "invalid_arguments", what), _failure(what)
            case Miss() as miss:
                return _miss(entry, miss), _failure(self._why(miss))

    def _why(self, miss: Miss) -> str:
        """The nearest keys, without a place on this machine's disk."""
        why = explain_miss(self._broker, miss.name, miss.arguments, self.sample_id)
        head = f"no recorded answer for {why.name} {printable(why.key_json or '')}"
        near = {
            f"nearest: {one.name} {printable(one.key_json)}"
            f" (differs in {', '.join(map(printable, one.differs))})": None
            for one in why.nearest
        }
        return "\n".join([head, *near])


class Sessions:
    """All sessions of one server, by sample and trial: at most so many, as clients name them."""

    def __init__(self, broker: ToolBroker, *, keeps_calls: bool = True) -> None:
        self.broker = broker
        self._keeps_calls = keeps_calls
        self._by_trial: dict[tuple[str | None, int | None], Session] = {}

    def of(self, sample_id: str | None, trial: int | None) -> Session:
        """The session of this sample and trial, which begins now if there is none."""
        found = self._by_trial.get((sample_id, trial))
        if found is None:
            if len(self._by_trial) >= MAX_SESSIONS or len(sample_id or "") > LONGEST_ID:
                raise TooManySessions
            found = Session(self.broker, sample_id, trial, keeps_calls=self._keeps_calls)
            self._by_trial[sample_id, trial] = found
        return found

    def __iter__(self) -> Iterator[Session]:
        """Those that belong to a sample or asked something, in the order of their beginning."""
        for session in self._by_trial.values():
            if session.sample_id is not None or session.entries:
                yield session


def _failure(text: str) -> dict[str, Json]:
    return {"content": [{"type": "text", "text": text}], "isError": True}


def _refuse(entry: TraceEntry, status: EntryStatus, why: str) -> TraceEntry:
    result = {"ok": False, "error": why}
    return msgspec.structs.replace(entry, status=status, result=result, reason=why)


def _miss(entry: TraceEntry, miss: Miss) -> TraceEntry:
    result = {
        "ok": False,
        "error": "fixture_miss",
        "name": miss.name,
        "arguments": miss.arguments,
        "key_normalized": miss.key_normalized,
    }
    return msgspec.structs.replace(
        entry, status="miss", result=result, key_normalized=miss.key_normalized
    )


def join_answers(trace: Path, answers: Path, joined: BinaryIO) -> None:
    """Every session of the trace with the answer of its sample and trial. An answer without a
    session is one of an agent that never asked for a tool; a session without an answer is an
    error."""
    said = {(one.sample_id, one.trial): one.model_output for one in _lines(answers)}
    problems = Problems()
    for asked, line in zip(_lines(trace), _objects(trace), strict=True):
        answer = said.pop((asked.sample_id, asked.trial), None)
        if answer is None:
            what = f"sample {asked.sample_id}, trial {asked.trial} has no answer in {answers}"
            problems.add(f"{trace}:{asked.line}", what)
        else:
            joined.write(_encode({**line, "model_output": answer}))
    problems.raise_if_any()
    for (sample_id, trial), answer in said.items():
        joined.write(_encode({"sample_id": sample_id, "trial": trial, "model_output": answer}))


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


def _encode(line: dict[str, Json]) -> bytes:
    return msgspec.json.encode(line) + b"\n"


_NEXT = "Free some space or choose another place."
Place = tuple[str, int]  # sample and trial


class TraceFile:
    """What is in the file already stays, whoever wrote it. Servers that run side by side, as an
    agent starts one per sample, may share one file: no two lines of it are about one trial."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._locked():
            check_writable(path)
        self._mine: dict[int, Place] = {}  # by the id of a session

    def write(self, sessions: Iterable[Session]) -> None:
        """Write all of them, in the place of what this server had written of them before."""
        with self._locked():
            mine = set(self._mine.values())
            others = [(line, place) for line, place in self._lines() if place not in mine]
            taken = mine.union(place for _, place in others)
            placed = [(session, self._place(session, taken)) for session in sessions]
            with atomic_writer(self.path) as stream:
                stream.writelines(line for line, _ in others)
                for session, (_, trial) in placed:
                    stream.write(msgspec.json.encode(session.as_line(trial)) + b"\n")

    def _place(self, session: Session, taken: set[Place]) -> Place:
        """The trial that the client named, or the first one; if the file has that of another server
        or an earlier one, the next that is free. It stays what it was when it was first written."""
        found = self._mine.get(id(session))
        if found is None:
            sample_id, trial = session.sample_id or NO_SAMPLE, session.trial or 0
            while (sample_id, trial) in taken:
                trial += 1
            found = self._mine[id(session)] = (sample_id, trial)
            taken.add(found)
        return found

    def _lines(self) -> Iterator[tuple[bytes, Place]]:
        if not self.path.exists():
            return
        with open_input(self.path) as stream:
            for line in lines_of(stream, str(self.path)):
                if not is_blank(line.json):
                    try:
                        found = recorded_of(line)
                    except BadInput as error:
                        raise BadInput(f"{self.path}:{line.number}: {error}") from None
                    end = b"" if line.data.endswith(b"\n") else b"\n"
                    yield line.data + end, (found.sample_id, found.trial)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        lock = self.path.with_name(f".{self.path.name}.lock")
        try:
            make_folder(lock.parent)
            fd = os.open(lock, os.O_RDWR | os.O_CREAT, 0o666)
        except OSError as error:
            raise output_failed(self.path, error, _NEXT) from None
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            os.close(fd)
