"""Asks live tools what no fixture answers, each thing once, and keeps what they say."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from callmark.broker.broker import BrokerSession, ToolBroker
from callmark.calls.registry import NormalisedCall, Registry, normalise
from callmark.live.folder import Entry
from callmark.records.jsontext import Json, canonical_json
from callmark.records.seams import Hit


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
