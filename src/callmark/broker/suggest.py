"""Turns the misses of a run into fixture lines that wait for their answers."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING

from callmark.broker.fixtures import PLACEHOLDER
from callmark.broker.nearest import explain_miss, printable
from callmark.core.jsontext import Json, canonical_json
from callmark.core.trace import TraceEntry

if TYPE_CHECKING:
    from callmark.broker.broker import ToolBroker

MAX_SAMPLES = 3


def suggest(
    entries: Iterable[tuple[str, TraceEntry]], broker: ToolBroker | None = None
) -> list[str]:
    """One JSONL line per different call that missed, sorted by tool and key. Its result is a
    placeholder that loading refuses. With a broker, calls that hit by now are left out, and each
    line notes the nearest fixture that exists."""
    asked: dict[tuple[str, str], set[str]] = {}
    keys: dict[tuple[str, str], Json] = {}
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
