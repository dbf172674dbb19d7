"""Why a call missed: the fixture keys nearest to it, and the leaves in which they differ."""

from __future__ import annotations

import difflib
import heapq
import itertools
import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from callmark.broker.fixtures import NO_NAME, PLACEHOLDER, Fixture
from callmark.records.jsontext import Json, canonical_json, parse_json
from callmark.records.trace import TraceEntry

if TYPE_CHECKING:
    from callmark.broker.broker import FixtureIndex, ToolBroker

# The cost of one explanation is bounded by these, however large folder and call are.
MAX_SKETCHED = 50_000  # fixtures of a tool, in load order
MAX_COMPARED = 24  # of those, leaf by leaf
MAX_LEAVES = 200
MAX_TEXT = 400
SHOWN = 3
SHOWN_TOOLS = 5

_SKETCH_BITS = 1024
_TOOL_CUTOFF = 0.6


class NearKey(msgspec.Struct, frozen=True, kw_only=True):
    """A fixture near to a missed call. `differs` names leaves such as `q` or `filter.days[0]`."""

    name: str
    key_json: str
    file: str
    line: int
    sample_id: str | None
    differs: tuple[str, ...]


class MissExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """`key_json` None: the arguments were no object. `tool_known`: the tool has fixtures."""

    folder: str
    name: str
    key_json: str | None
    sample_id: str | None
    tool_known: bool
    nearest: tuple[NearKey, ...] = ()
    tools: tuple[str, ...] = ()

    def text(self, results: str = "results.jsonl") -> str:
        """Where, what, what next: fit for a terminal whatever the model wrote."""
        where = self.nearest[0].file if self.nearest and self.tool_known else self.folder
        lines = [f"{where}: {self._what()}"]
        lines += [f"  nearest: {self._near(near, where)}" for near in self.nearest]
        if self.tools and not self.nearest:
            lines.append(f"  tools with fixtures: {', '.join(map(printable, self.tools))}")
        if self.key_json is not None:
            lines.append(f"  add one: callmark fixtures suggest {results}")
        return "\n".join(lines)

    def _what(self) -> str:
        name = printable(self.name)
        if self.key_json is None:
            return f"no entry for {name}: its arguments are not an object"
        if self.tool_known:
            return f"no entry for {printable(self.key_json)}"
        return f"no entry for the tool {name} {printable(self.key_json)}"

    def _near(self, near: NearKey, where: str) -> str:
        parts = [] if near.file == where else [near.file]
        parts.append(f"{'entry' if near.file.endswith('.json') else 'line'} {near.line}")
        if near.sample_id not in (None, self.sample_id):
            parts.append(f"only for sample {printable(str(near.sample_id))}")
        if near.differs:
            parts.append(f"differs in {', '.join(map(printable, near.differs))}")
        tool = "" if self.tool_known else f"{near.name} "
        return f"{tool}{printable(near.key_json)}   ({', '.join(parts)})"


def explain_miss(
    broker: ToolBroker, name: str, arguments: Json, sample_id: str | None = None
) -> MissExplanation:
    """The fixtures that this call came nearest to. Equal input gives equal output."""
    call = broker.normalised(name, arguments)
    resolved = call.name if call is not None else name if isinstance(name, str) else NO_NAME
    tool_known = resolved in broker.index.by_tool
    tools = (resolved,) if tool_known else broker.neighbours.tools_like(resolved)
    near = () if call is None else broker.neighbours.nearest(tools, call.key, sample_id)
    return MissExplanation(
        folder=broker.folder,
        name=resolved,
        key_json=None if call is None else call.key_json,
        sample_id=sample_id,
        tool_known=tool_known,
        nearest=near,
        tools=tuple(sorted(broker.index.by_tool)[:SHOWN_TOOLS]),
    )


class Neighbours:
    """Finds near keys. Keeps a sketch of each key of a tool from the tool's first miss on."""

    def __init__(self, index: FixtureIndex) -> None:
        self._by_tool = index.by_tool
        self._sketches: dict[str, list[int]] = {}

    def tools_like(self, name: str) -> tuple[str, ...]:
        known = sorted(self._by_tool)
        close = difflib.get_close_matches(name[:MAX_TEXT], known, n=2, cutoff=_TOOL_CUTOFF)
        return tuple(close)

    def nearest(
        self, tools: tuple[str, ...], key: dict[str, Json], sample_id: str | None
    ) -> tuple[NearKey, ...]:
        wanted = _leaves_of(key)
        ranked: list[tuple[float, bool, int, Fixture, tuple[str, ...]]] = []
        for tool in tools:
            for position in self._likely(tool, canonical_json(key)):
                fixture = self._by_tool[tool][position]
                leaves = _leaves_of(parse_json(fixture.key_json))
                differs = _differing(wanted, leaves)
                hidden = fixture.sample_id not in (None, sample_id)
                distance = sum(_distance(wanted.get(leaf), leaves.get(leaf)) for leaf in differs)
                ranked.append((distance, hidden, len(ranked), fixture, differs))
        best = heapq.nsmallest(SHOWN, ranked, key=lambda row: row[:3])
        return tuple(_near(fixture, differs) for *_, fixture, differs in best)

    def _likely(self, tool: str, key_json: str) -> list[int]:
        """Positions of the keys that share most pairs of neighbouring characters."""
        sketches = self._sketches.get(tool)
        if sketches is None:
            fixtures = self._by_tool[tool][:MAX_SKETCHED]
            sketches = self._sketches[tool] = [_sketch(fixture.key_json) for fixture in fixtures]
        mine = _sketch(key_json)

        def shared(position: int) -> float:
            other = sketches[position]
            return (mine & other).bit_count() / max(1, (mine | other).bit_count())

        return heapq.nlargest(MAX_COMPARED, range(len(sketches)), key=shared)


def printable(text: str) -> str:
    """The text with every character that could steer a terminal written as a JSON escape."""
    if text.isprintable():
        return text
    return "".join(sign if sign.isprintable() else json.dumps(sign)[1:-1] for sign in text)


def _near(fixture: Fixture, differs: tuple[str, ...]) -> NearKey:
    return NearKey(
        name=fixture.name,
        key_json=fixture.key_json,
        file=fixture.file,
        line=fixture.line,
        sample_id=fixture.sample_id,
        differs=differs,
    )


def _sketch(text: str) -> int:
    bits = 0
    codes = [ord(sign) for sign in text[:MAX_TEXT]]
    for first, second in itertools.pairwise(codes):
        bits |= 1 << ((first * 31 + second) % _SKETCH_BITS)
    return bits


def _differing(wanted: dict[str, Json], leaves: dict[str, Json]) -> tuple[str, ...]:
    names = [*wanted, *(name for name in leaves if name not in wanted)]
    return tuple(
        name
        for name in names
        if name not in wanted
        or name not in leaves
        or canonical_json(wanted[name]) != canonical_json(leaves[name])
    )


def _distance(one: Json, other: Json) -> float:
    """Between two differing leaves: 1 for unrelated ones, less for similar texts and numbers."""
    if isinstance(one, str) and isinstance(other, str):
        return 1.0 - difflib.SequenceMatcher(None, one[:MAX_TEXT], other[:MAX_TEXT]).ratio()
    kinds = {type(one), type(other)}
    return 0.5 if kinds <= {int, float} else 1.0


def _leaves_of(key: Json) -> dict[str, Json]:
    leaves: dict[str, Json] = {}
    for path, value in _walk(key):
        leaves[path] = value
        if len(leaves) == MAX_LEAVES:
            break
    return leaves


def _walk(key: Json) -> Iterator[tuple[str, Json]]:
    # A stack of its own: a model may nest its arguments as deep as the parser lets it.
    waiting: list[tuple[str, Json]] = [("", key)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, dict) and value:
            below = [(f"{path}.{name}" if path else name, value[name]) for name in value]
        elif isinstance(value, list) and value:
            below = [(f"{path}[{place}]", inner) for place, inner in enumerate(value)]
        else:
            if path:
                yield path, value
            continue
        waiting.extend(reversed(below))


MAX_SAMPLES = 3


def suggest(
    entries: Iterable[tuple[str, TraceEntry]], broker: ToolBroker | None = None
) -> list[str]:
    """One JSONL line per different call that missed, sorted by tool and key. Its result is a
    placeholder that loading refuses. With a broker, calls that hit by now are left out, and each
    line notes the nearest fixture that exists."""
    asked: dict[tuple[str, str], set[str]] = {}
    keys: dict[tuple[str, str], dict[str, Json]] = {}
    for sample_id, entry in entries:
        if entry.status != "miss" or entry.name is None:
            continue
        found = _call_of(entry, sample_id, broker)
        if found is None:
            continue
        name, key = found
        identity = (name, canonical_json(key))
        keys.setdefault(identity, key)
        asked.setdefault(identity, set()).add(sample_id)
    return [
        _line(name, keys[name, key_json], sorted(samples), broker)
        for (name, key_json), samples in sorted(asked.items())
    ]


def _call_of(
    entry: TraceEntry, sample_id: str, broker: ToolBroker | None
) -> tuple[str, dict[str, Json]] | None:
    """The call to write a fixture for; None: no fixture could answer it, or one does by now."""
    name = entry.name or ""
    if broker is None:
        key = entry.arguments if entry.key_normalized is None else entry.key_normalized
        return (name, key) if isinstance(key, dict) else None
    call = broker.normalised(name, entry.arguments)
    if call is None or broker.index.find(call, sample_id) is not None:
        return None
    return call.name, call.key


def _line(name: str, key: dict[str, Json], samples: list[str], broker: ToolBroker | None) -> str:
    line: dict[str, Json] = {
        "name": name,
        "key": key,
        "result": {PLACEHOLDER: "put the tool's answer here"},
        "_asked_by": samples[:MAX_SAMPLES],
    }
    if broker is not None:
        near = explain_miss(broker, name, key, samples[0]).nearest
        if near:
            line["_nearest"] = f"{near[0].name} {near[0].key_json}"
    return printable(json.dumps(line, ensure_ascii=False))
