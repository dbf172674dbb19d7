"""Does every fixture answer its call in all the ways in which a runner may write it?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import assert_never

import msgspec

from callmark.broker.broker import BrokerSession, BrokerTally, ToolBroker
from callmark.broker.examples import examples_of
from callmark.broker.fixtures import Fixture
from callmark.broker.index import Steps
from callmark.broker.nearest import explain_miss
from callmark.broker.variants import VARIANTS, Written
from callmark.calls.registry import rules_without_spec
from callmark.core.jsontext import Json, canonical_json, parse_json
from callmark.core.protocols import Hit, Miss
from callmark.errors import BadInput

FLOOR = 0.95
MAX_FAILURES = 200
EXPECTED = "expected_call"


class HitRate(msgspec.Struct, frozen=True):
    hits: int
    calls: int

    @property
    def share(self) -> float | None:
        return self.hits / self.calls if self.calls else None


class ExpectedUse(msgspec.Struct, frozen=True):
    """A call that a dataset expects of the model in this sample."""

    sample_id: str
    name: str
    arguments: Json


class FailedCall(msgspec.Struct, frozen=True):
    """`place` is the fixture's file and line, or the sample that expects the call."""

    place: str
    variant: str
    name: str
    arguments: Json
    why: str


class FixtureCheck(msgspec.Struct, frozen=True, kw_only=True):
    """`unreachable`: no way of writing its call is answered with this fixture. `unchecked`: no
    call could be made up for it (a regex, and no example of it in the key). `unknown_tools`: a
    registry was given and has no such tool, so that no model is offered it."""

    floor: float
    fixtures: int
    total: HitRate
    by_tool: dict[str, HitRate]
    by_variant: dict[str, HitRate]
    expected: HitRate
    failures: tuple[FailedCall, ...]  # the first MAX_FAILURES
    failed: int
    unreachable: tuple[str, ...]
    unchecked: tuple[str, ...]
    unknown_tools: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """One dead fixture fails the check, however many others there are."""
        rates = [self.total, self.expected] if self.expected.calls else [self.total]
        enough = all(rate.calls and rate.hits >= self.floor * rate.calls for rate in rates)
        return enough and not self.unreachable


def check_fixtures(
    broker: ToolBroker, *, floor: float = FLOOR, expected: Iterable[ExpectedUse] = ()
) -> FixtureCheck:
    """Calls every fixture in all variants, in its own scope and order, and then whatever a
    dataset expects. A hit is an answer with the fixture's own result."""
    counts = _Counts()
    for steps in broker.index.groups():
        _check_group(broker, steps, counts)
    _check_expected(broker, expected, counts)
    registry = broker.registry
    tools = sorted(broker.index.by_tool)
    return FixtureCheck(
        floor=floor,
        fixtures=sum(map(len, broker.index.by_tool.values())),
        total=HitRate(counts.tool_hits.total(), counts.tool_calls.total()),
        by_tool={tool: HitRate(counts.tool_hits[tool], counts.tool_calls[tool]) for tool in tools},
        by_variant={
            variant: HitRate(counts.variant_hits[variant], counts.variant_calls[variant])
            for variant in VARIANTS
        },
        expected=HitRate(counts.variant_hits[EXPECTED], counts.variant_calls[EXPECTED]),
        failures=tuple(counts.failures),
        failed=counts.failed,
        unreachable=tuple(counts.unreachable),
        unchecked=tuple(counts.unchecked),
        unknown_tools=tuple(
            tool for tool in tools if registry is not None and registry.spec(tool) is None
        ),
    )


class _Counts:
    def __init__(self) -> None:
        self.tool_calls: Counter[str] = Counter()
        self.tool_hits: Counter[str] = Counter()
        self.variant_calls: Counter[str] = Counter()
        self.variant_hits: Counter[str] = Counter()
        self.failures: list[FailedCall] = []
        self.failed = 0
        self.unreachable: list[str] = []
        self.unchecked: list[str] = []

    def fail(self, place: str, variant: str, call: Written | ExpectedUse, why: str) -> None:
        self.failed += 1
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(FailedCall(place, variant, call.name, call.arguments, why))


def _check_group(broker: ToolBroker, steps: Steps, counts: _Counts) -> None:
    arguments = _example_for(broker, steps)
    if arguments is None:
        counts.unchecked.extend(step.place for step in steps)
        return
    reached: set[int] = set()
    for variant, call in _written(broker, steps[0].name, arguments):
        session = BrokerSession(broker, steps[0].sample_id, BrokerTally())
        for step in steps:
            why = _why_not(session, call, step)
            counts.tool_calls[step.name] += 1
            counts.variant_calls[variant] += 1
            if why is None:
                counts.tool_hits[step.name] += 1
                counts.variant_hits[variant] += 1
                reached.add(step.seq)
            else:
                counts.fail(step.place, variant, call, why)
    counts.unreachable.extend(step.place for step in steps if step.seq not in reached)


def _check_expected(broker: ToolBroker, expected: Iterable[ExpectedUse], counts: _Counts) -> None:
    for use in expected:
        counts.variant_calls[EXPECTED] += 1
        session = BrokerSession(broker, use.sample_id, BrokerTally())
        answer = _answer(session, use)
        if isinstance(answer, Hit):
            counts.variant_hits[EXPECTED] += 1
            continue
        if isinstance(answer, Miss):
            answer = explain_miss(broker, use.name, use.arguments, use.sample_id).text()
        counts.fail(f"sample {use.sample_id}", EXPECTED, use, answer)


def _example_for(broker: ToolBroker, steps: Steps) -> dict[str, Json] | None:
    """Arguments that these steps answer; else some that they should; None: nobody can tell."""
    first: dict[str, Json] | None = None
    for arguments in examples_of(steps[0]):
        call = broker.normalised(steps[0].name, arguments)
        try:
            found = None if call is None else broker.index.find(call, steps[0].sample_id)
        except BadInput:
            found = None
        if found is not None and found.steps is steps:
            return arguments
        first = arguments if first is None else first
    return first


def _written(
    broker: ToolBroker, name: str, arguments: dict[str, Json]
) -> Iterator[tuple[str, Written]]:
    registry = broker.registry
    rules = rules_without_spec(name) if registry is None else registry.key_rules(name)
    recorded = Written(name, arguments, rules)
    for variant, write in VARIANTS.items():
        call = write(recorded)
        # Another tool may really have the name that this one would be respelt to.
        if call is not None and (call.name == name or not broker.knows(call.name)):
            yield variant, call


def _why_not(session: BrokerSession, call: Written, step: Fixture) -> str | None:
    answer = _answer(session, call)
    match answer:
        case str():
            return answer
        case Miss():
            return "no fixture answers it"
        case Hit(fixture_sha256=used) if used == step.digest.hex():
            return None
        case Hit(result=result):
            own = canonical_json(parse_json(step.result))
            return None if canonical_json(result) == own else "another fixture answers it"
        case _:
            assert_never(answer)


def _answer(session: BrokerSession, call: Written | ExpectedUse) -> Hit | Miss | str:
    """What the session says, or why two fixtures claim this call."""
    try:
        return session.answer(call.name, call.arguments)
    except BadInput as error:
        return str(error)
