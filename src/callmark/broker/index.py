"""Which fixture answers which call: exact before pattern before any, the sample's own first."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from callmark.broker.fixtures import MAX_PROBLEMS, Fixture
from callmark.broker.patterns import Pattern
from callmark.calls.normalise import NormalisedCall
from callmark.core.jsontext import Json, canonical_json, parse_json
from callmark.errors import BadInput

# Entries that differ only in `seq`, in its order: mostly one.
Steps = tuple[Fixture, ...]

Key = TypeVar("Key", bound=Hashable)

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
    """Built once, never changed. Contradictions among the fixtures are BadInput."""

    def __init__(self, fixtures: Iterable[Fixture]) -> None:
        self._exact: dict[tuple[str | None, str, str], Steps] = {}
        self._any: dict[tuple[str | None, str], Steps] = {}
        self._patterns: dict[tuple[str | None, str], _Patterns] = {}
        self.by_tool: dict[str, list[Fixture]] = {}
        self._scopes: set[tuple[str | None, str]] = set()
        problems: list[str] = []
        for fixture in fixtures:
            problem = self._add(fixture)
            if problem is not None:
                problems.append(problem)
        problems.extend(_gaps(self.groups()))
        if problems:
            raise BadInput(problems[:MAX_PROBLEMS])

    def find(self, call: NormalisedCall, sample_id: str | None) -> FoundFixture | None:
        """What answers this call. Two patterns that fit it equally are BadInput."""
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
