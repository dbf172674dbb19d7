"""The ToolBroker: tools that answer from recorded fixtures, and from nothing else."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from callmark.broker.fixtures import (
    NO_NAME,
    Fixture,
    Pattern,
    given_name,
    load_folder,
    read_by,
)
from callmark.calls.attempts import fold_name
from callmark.calls.registry import NormalisedCall, Registry, ToolSpecs, canonical_name, normalise
from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json, parse_json
from callmark.records.problems import Problems
from callmark.records.seams import Hit, Miss
from callmark.store.files import LINE_DEPTH

if TYPE_CHECKING:
    from callmark.broker.nearest import Neighbours

# Entries that differ only in `seq`, in its order: mostly one.
Steps = tuple[Fixture, ...]

Key = TypeVar("Key", bound=Hashable)

REMEMBERED = 1024  # sets of tools that samples bring along; most datasets have a handful

SERVED_EXACT = "fixture:exact"
SERVED_PATTERN = "fixture:pattern"
SERVED_ANY = "fixture:any"


class FoundFixture(msgspec.Struct, frozen=True, gc=False):
    steps: Steps
    served_by: str


class _Patterns:
    """The patterns of one tool in one scope, by the arguments that they rule and then by the
    rest of the key, so that a call is tried only on patterns whose fixed part it has."""

    def __init__(self) -> None:
        self._by_shape: dict[tuple[str, ...], dict[str, dict[str, Steps]]] = {}

    def group(self, pattern: Pattern) -> dict[str, Steps]:
        by_fixed = self._by_shape.setdefault(pattern.arguments, {})
        return by_fixed.setdefault(pattern.fixed, {})

    def fitting(self, key: Mapping[str, Json]) -> list[Steps]:
        found: list[Steps] = []
        for ruled, by_fixed in self._by_shape.items():
            # One look-up per shape, not one match per pattern: ten thousand of them stay fast.
            rest = {name: value for name, value in key.items() if name not in ruled}
            for steps in by_fixed.get(canonical_json(rest), {}).values():
                pattern = steps[0].match
                if isinstance(pattern, Pattern) and pattern.fits(key):
                    found.append(steps)
        return found

    def __iter__(self) -> Iterator[Steps]:
        for by_fixed in self._by_shape.values():
            for by_identity in by_fixed.values():
                yield from by_identity.values()


class FixtureIndex:
    """Built once, never changed. Contradictions among the fixtures are BadInput. `is_part`: of
    fixtures that were all read before, by other tools, which may take two of their calls for one
    and number the answers through."""

    def __init__(self, fixtures: Iterable[Fixture], *, is_part: bool = False) -> None:
        self._exact: dict[tuple[str | None, str, str], Steps] = {}
        self._any: dict[tuple[str | None, str], Steps] = {}
        self._patterns: dict[tuple[str | None, str], _Patterns] = {}
        self.by_tool: dict[str, list[Fixture]] = {}
        self._scopes: set[tuple[str | None, str]] = set()
        problems = Problems()
        for fixture in fixtures:
            problem = self._add(fixture)
            if problem is not None:
                problems.add("", problem)
        if not is_part:
            problems.add("", _gaps(self.groups()))
        problems.raise_if_any()

    def find(self, call: NormalisedCall, sample_id: str | None) -> FoundFixture | None:
        """What answers this call. Two patterns that fit it equally are BadInput."""
        # A fixture of the sample's own wins over all that are for everybody, even over an exact
        # one.
        if sample_id is not None and (found := self._find_in(sample_id, call)) is not None:
            return found
        return self._find_in(None, call)

    def has_tool(self, tool: str, sample_id: str | None) -> bool:
        """Whether any fixture of this tool is there for the sample."""
        return (None, tool) in self._scopes or (sample_id, tool) in self._scopes

    def groups(self) -> Iterator[Steps]:
        """All sequences, single answers included."""
        yield from self._exact.values()
        for patterns in self._patterns.values():
            yield from patterns
        yield from self._any.values()

    def _find_in(self, scope: str | None, call: NormalisedCall) -> FoundFixture | None:
        steps = self._exact.get((scope, call.name, call.key_json))
        if steps is not None:
            return FoundFixture(steps, SERVED_EXACT)
        patterns = self._patterns.get((scope, call.name)) if self._patterns else None
        if patterns is not None and (fitting := patterns.fitting(call.key)):
            # Which one is right, nobody can say, and the order of files must not decide.
            if len(fitting) > 1:
                raise BadInput(_ambiguous(fitting, call))
            return FoundFixture(fitting[0], SERVED_PATTERN)
        steps = self._any.get((scope, call.name)) if self._any else None
        return None if steps is None else FoundFixture(steps, SERVED_ANY)

    def _add(self, fixture: Fixture) -> str | None:
        scope = (fixture.sample_id, fixture.name)
        self._scopes.add(scope)
        match fixture.match:
            case "exact":
                key = (*scope, fixture.key_json)
                return self._put(self._exact, key, fixture)
            case "any":
                return self._put(self._any, scope, fixture)
            case Pattern() as pattern:
                patterns = self._patterns.setdefault(scope, _Patterns())
                return self._put(patterns.group(pattern), pattern.identity, fixture)

    def _put(self, groups: dict[Key, Steps], key: Key, fixture: Fixture) -> str | None:
        steps = groups.get(key)
        if steps is None:
            groups[key] = (fixture,)
        else:
            # Never "the last one wins": what a run is served must not depend on the order of files.
            same = next((step for step in steps if step.seq == fixture.seq), None)
            if same is not None:
                return _contradiction(fixture, same)
            groups[key] = tuple(sorted((*steps, fixture), key=lambda step: step.seq))
        self.by_tool.setdefault(fixture.name, []).append(fixture)
        return None


def _contradiction(fixture: Fixture, earlier: Fixture) -> str | None:
    """Nothing is wrong with a repeat; two different answers to one call cannot both be right."""
    if canonical_json(parse_json(fixture.result)) == canonical_json(parse_json(earlier.result)):
        return None
    what = f"answers the same calls as {earlier.place}, with another result"
    return f"{fixture.place}: key: {what}; remove one, or number them with seq"


def _gaps(groups: Iterable[Steps]) -> Iterator[str]:
    for steps in groups:
        last = steps[-1]
        if last.seq != len(steps):
            here = {step.seq for step in steps}
            missing = next(seq for seq in range(1, last.seq) if seq not in here)
            what = f"{last.seq} is here, but no entry with this key has seq {missing}"
            yield f"{last.place}: seq: {what}"


def _ambiguous(fitting: Sequence[Steps], call: NormalisedCall) -> str:
    first, second = fitting[0][0], fitting[1][0]
    what = f"fits the call {call.name} {call.key_json} as well as {second.place} does"
    return f"{first.place}: match: {what}; make one of them narrower"


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
    only ever looked up in memory, so no name or argument of it can reach the disk.

    Args:
        fixtures_dir: the folder.
        registry: a Registry or OpenAI-style function specs; None: no tool has a schema.

    Returns:
        A broker with `.call(name, arguments)` and `.lookup`, `.normalize`, `.session()` (one
        trial) and `.stats` (hits and misses).

    Raises:
        BadInput: an entry that is none; file and line are named.
        UsageError: there is no such folder.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> broker = callmark.ToolBroker(demo_paths().fixtures)
    >>> broker.lookup("web.search", {"q": "something that nobody recorded"}) is None
    True
    >>> broker.stats["misses"]
    1
    """

    def __init__(
        self, fixtures_dir: str | PathLike[str], registry: Registry | ToolSpecs | None = None
    ) -> None:
        if registry is not None and not isinstance(registry, Registry):
            registry = Registry.from_specs(registry, where="registry")
        loaded = load_folder(Path(fixtures_dir), registry)
        self.registry = registry
        self.folder = loaded.folder
        self.fixtures_sha256 = loaded.sha256
        self.index = FixtureIndex(loaded.fixtures)
        self._names = loaded.names
        self._tally = BrokerTally()
        self._own = self.session()
        self._shared: dict[str, FixtureIndex] = {}

    def call(self, name: str, arguments: Json) -> Any:
        """The recorded result, or a `fixture_miss` object. Sequences go on from call to call."""
        match self._own.answer(name, arguments):
            case Hit(result=result):
                return result
            # As the old harness gave it. It is never evidence: a miss would ground itself.
            case Miss(name=tool, key_normalized=key):
                return {
                    "ok": False,
                    "error": "fixture_miss",
                    "name": tool,
                    "arguments": arguments,
                    "key_normalized": key,
                }

    def lookup(self, name: str, arguments: Json) -> Any:
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
    def stats(self) -> dict[str, Any]:
        """Hits and misses so far, in all sessions, in total and by tool."""
        return self._tally.as_json()

    @cached_property
    def neighbours(self) -> Neighbours:
        from callmark.broker.nearest import Neighbours  # a run without misses needs none

        return Neighbours(self.index)

    def index_for(self, registry: Registry, sample_id: str | None) -> _BroughtIndex:
        """The fixtures of the tools that a sample brings along, read by the specs of its own."""
        spellings = sorted({fold_name(name) for name in registry.spellings(registry.names)})
        shared = self._shared.get(registry.sha256)
        if shared is None:
            while len(self._shared) >= REMEMBERED:
                del self._shared[next(iter(self._shared))]
            shared = self._index_of(None, spellings, registry)
            self._shared[registry.sha256] = shared
        return _BroughtIndex(self._index_of(sample_id, spellings, registry), shared, registry)

    def _index_of(
        self, scope: str | None, spellings: Iterable[str], registry: Registry
    ) -> FixtureIndex:
        named = self._as_given
        found = (named.get((scope, spelling), ()) for spelling in spellings)
        return FixtureIndex(read_by(chain.from_iterable(found), registry), is_part=True)

    @cached_property
    def _as_given(self) -> dict[tuple[str | None, str], list[Fixture]]:
        """Fixtures by scope and by the name that they have in their file."""
        named: dict[tuple[str | None, str], list[Fixture]] = {}
        for fixture in chain.from_iterable(self.index.by_tool.values()):
            scope = (fixture.sample_id, fold_name(given_name(fixture)))
            named.setdefault(scope, []).append(fixture)
        return named

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


class _BroughtIndex(NamedTuple):
    """The sample's own fixtures before those for everybody, by the sample's own tools."""

    scoped: FixtureIndex
    shared: FixtureIndex
    registry: Registry

    def find(self, call: NormalisedCall, sample_id: str | None) -> FoundFixture | None:
        own = self.scoped.find(call, sample_id) if sample_id is not None else None
        return own or self.shared.find(call, None)

    def has_tool(self, tool: str, sample_id: str | None) -> bool:
        return self.scoped.has_tool(tool, sample_id) or self.shared.has_tool(tool, None)

    def brings(self, name: str, run: Registry | None) -> str | None:
        """The tool of this name, if its spec is another than the run's."""
        tool = self.registry.resolve(name)
        spec = None if tool is None else self.registry.spec(tool)
        is_same = spec is not None and run is not None and run.spec(spec.name) == spec
        return None if is_same else tool


class BrokerSession:
    """One trial. It counts how far each sequence has been served, and what was used. `tools` are
    those that its sample sees, if they are others than the broker's."""

    __slots__ = ("_broker", "_brought", "_sample_id", "_served", "_tally", "_used")

    def __init__(
        self,
        broker: ToolBroker,
        sample_id: str | None,
        tally: BrokerTally,
        tools: Registry | None = None,
    ) -> None:
        self._broker = broker
        self._sample_id = sample_id
        self._tally = tally
        self._brought = None if tools is None else broker.index_for(tools, sample_id)
        self._served: dict[bytes, int] = {}
        self._used: set[bytes] = set()

    def with_tools(self, registry: Registry) -> BrokerSession:
        """The same trial for a sample that brings specs of its own along: their defaults and
        aliases hold for its calls and for the fixtures that answer them."""
        return BrokerSession(self._broker, self._sample_id, self._tally, registry)

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        call = self._normalised(name, arguments)
        found = None if call is None else self._index(name).find(call, self._sample_id)
        if found is None:
            return self._miss(name, arguments, call)
        steps = found.steps
        fixture = steps[0]
        if len(steps) > 1:
            position = self._served.get(fixture.digest, 0)
            self._served[fixture.digest] = position + 1
            # After the last answer it is repeated: a model that asks once more is not punished by a
            # miss.
            fixture = steps[min(position, len(steps) - 1)]
        self._used.add(fixture.digest)
        self._tally.hits[fixture.name] = self._tally.hits.get(fixture.name, 0) + 1
        # Parsed for every call: a caller that changes what it got changes only its own copy.
        return Hit(parse_json(fixture.result), found.served_by, fixture.digest.hex())

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        """Whether a fixture that this trial may see answers the call. Nothing is counted."""
        index = self._index(name)
        if arguments is None:
            tool = self._brings(name) or self._broker.tool_of(name)
            return index.has_tool(tool, self._sample_id)
        call = self._normalised(name, arguments)
        try:
            return call is not None and index.find(call, self._sample_id) is not None
        except BadInput:  # two patterns fit equally: which answer is right, nobody can say
            return False

    def _brings(self, name: Json) -> str | None:
        if self._brought is None or not isinstance(name, str):
            return None
        return self._brought.brings(name, self._broker.registry)

    def _index(self, name: Json) -> FixtureIndex | _BroughtIndex:
        brought = self._brought
        return self._broker.index if brought is None or not self._brings(name) else brought

    def _normalised(self, name: str, arguments: Json) -> NormalisedCall | None:
        if self._brought is None or not self._brings(name):
            return self._broker.normalised(name, arguments)
        return normalise(name, arguments, registry=self._brought.registry)

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
