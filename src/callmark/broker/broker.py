"""The ToolBroker: tools that answer from recorded fixtures, and from nothing else."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

from callmark.broker.fixtures import load_folder
from callmark.broker.index import FixtureIndex
from callmark.broker.nearest import NO_NAME, Neighbours
from callmark.calls.normalise import NormalisedCall, canonical_name, normalise
from callmark.calls.registry import Registry
from callmark.core.jsontext import Json, parse_json
from callmark.core.protocols import Hit, Miss
from callmark.errors import BadInput
from callmark.store.jsonl import LINE_DEPTH


class BrokerTally:
    """Hits and misses by tool."""

    __slots__ = ("hits", "misses")

    def __init__(self) -> None:
        self.hits: dict[str, int] = {}
        self.misses: dict[str, int] = {}

    def as_json(self) -> dict[str, Json]:
        by_tool = {
            tool: {"hits": self.hits.get(tool, 0), "misses": self.misses.get(tool, 0)}
            for tool in sorted(self.hits.keys() | self.misses.keys())
        }
        hits, misses = sum(self.hits.values()), sum(self.misses.values())
        return {"hits": hits, "misses": misses, "by_tool": by_tool}


class ToolBroker:
    """Serves the fixtures below one folder. They are all read here, once: what a model writes is
    only ever looked up in memory, so no name or argument of it can reach the disk."""

    def __init__(self, fixtures_dir: str | Path, registry: Registry | Json | None = None) -> None:
        """`registry`: a Registry or OpenAI-style function specs; None: no tool has a schema."""
        if registry is not None and not isinstance(registry, Registry):
            registry = Registry.from_specs(registry, where="registry")
        loaded = load_folder(fixtures_dir, registry)
        self.registry = registry
        self.folder = loaded.folder
        self.fixtures_sha256 = loaded.sha256
        self.index = FixtureIndex(loaded.fixtures)
        self._names = loaded.names
        self._tally = BrokerTally()
        self._own = self.session()

    def call(self, name: str, arguments: Json) -> Json:
        """The recorded result, or a `fixture_miss` object. Sequences go on from call to call."""
        match self._own.answer(name, arguments):
            case Hit(result=result):
                return result
            case Miss(name=tool, key_normalized=key):
                return {
                    "ok": False,
                    "error": "fixture_miss",
                    "name": tool,
                    "arguments": arguments,
                    "key_normalized": key,
                }

    def lookup(self, name: str, arguments: Json) -> Json:
        """The recorded result, or None on a miss (and where null was recorded: see `call`)."""
        answer = self._own.answer(name, arguments)
        return answer.result if isinstance(answer, Hit) else None

    def normalize(self, name: str, arguments: Json) -> tuple[str, str | None]:
        """The tool's own name and the canonical JSON of the key; None: no object, so no key."""
        call = self.normalised(name, arguments)
        return (name, None) if call is None else (call.name, call.key_json)

    def session(self, sample_id: str | None = None) -> BrokerSession:
        """The tools as one trial of this sample sees them."""
        return BrokerSession(self, sample_id, self._tally)

    @property
    def stats(self) -> dict[str, Json]:
        """Hits and misses so far, in all sessions, in total and by tool."""
        return self._tally.as_json()

    @cached_property
    def neighbours(self) -> Neighbours:
        return Neighbours(self.index)

    def knows(self, name: str) -> bool:
        """Whether this very name, in this spelling, is a tool of the fixtures or the registry."""
        in_registry = self.registry is not None and self.registry.spec(name) is not None
        return in_registry or name in self._names

    def tool_of(self, name: str) -> str:
        """The tool's own name, whatever the spelling."""
        return canonical_name(name, registry=self.registry, known_names=self._names)

    def normalised(self, name: str, arguments: Json) -> NormalisedCall | None:
        """None: no tool name or no arguments object, which no fixture can have."""
        return normalise(name, arguments, registry=self.registry, known_names=self._names)


class BrokerSession:
    """One trial. It counts how far each sequence has been served, and what was used."""

    __slots__ = ("_broker", "_sample_id", "_served", "_tally", "_used")

    def __init__(self, broker: ToolBroker, sample_id: str | None, tally: BrokerTally) -> None:
        self._broker = broker
        self._sample_id = sample_id
        self._tally = tally
        self._served: dict[bytes, int] = {}
        self._used: set[bytes] = set()

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        call = self._broker.normalised(name, arguments)
        found = None if call is None else self._broker.index.find(call, self._sample_id)
        if found is None:
            return self._miss(name, arguments, call)
        steps = found.steps
        fixture = steps[0]
        if len(steps) > 1:
            position = self._served.get(fixture.digest, 0)
            self._served[fixture.digest] = position + 1
            fixture = steps[min(position, len(steps) - 1)]
        self._used.add(fixture.digest)
        self._tally.hits[fixture.name] = self._tally.hits.get(fixture.name, 0) + 1
        return Hit(parse_json(fixture.result), found.served_by, fixture.digest.hex())

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        """Whether a fixture that this trial may see answers the call. Nothing is counted."""
        broker = self._broker
        if arguments is None:
            return broker.index.has_tool(broker.tool_of(name), self._sample_id)
        call = broker.normalised(name, arguments)
        try:
            return call is not None and broker.index.find(call, self._sample_id) is not None
        except BadInput:  # two patterns fit equally: which answer is right, nobody can say
            return False

    def _miss(self, name: str, arguments: Json, call: NormalisedCall | None) -> Miss:
        """With the tool's own name and the key, as a fixture line would have them."""
        tool = call.name if call is not None else name if isinstance(name, str) else NO_NAME
        self._tally.misses[tool] = self._tally.misses.get(tool, 0) + 1
        if call is None:
            return Miss(name, arguments, None)
        # Parsed anew: the key of a call may share values with the registry.
        return Miss(tool, arguments, parse_json(call.key_json, max_depth=LINE_DEPTH))

    @property
    def used(self) -> tuple[str, ...]:
        """The SHA-256 of every fixture that was served in this trial, sorted."""
        return tuple(sorted(digest.hex() for digest in self._used))
