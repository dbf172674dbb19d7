"""Who answered the trials of a run: one server, or several behind one journal or several shards.
Shown and never a key; what differs is said, and in determinism mode refused."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callmark.core.jsontext import Json, canonical_json
from callmark.core.protocols import Observed
from callmark.errors import FingerprintMismatch

SEGMENTS = "segments"  # of a report's provenance: all of them, where they are not alike
RUNS = "the runs behind this journal"
SHARDS = "the shards"


def origin_of(seen: Observed, common: dict[str, Json]) -> Observed:
    """What is told of who answers, without what was measured. `common`: of this machine."""
    return Observed(provenance={**common, **seen.provenance}, warnings=seen.warnings)


def joined_origin(origins: Sequence[Observed], who: str, *, deterministic: bool) -> Observed:
    """All of them told as one, each listed if they differ. `who` has them, for messages."""
    provenance, differing = agreed(
        [one.provenance for one in origins], who, deterministic=deterministic
    )
    warnings = dict.fromkeys(text for one in origins for text in one.warnings)
    return Observed(provenance=provenance, warnings=(*warnings, *differing))


def agreed(
    provenances: Sequence[dict[str, Json]], who: str, *, deterministic: bool
) -> tuple[dict[str, Json], list[str]]:
    """One provenance from those of all, and warnings of what they do not agree in."""
    parts = _distinct(provenances)
    differing: dict[str, list[Json]] = {}
    joined: dict[str, Json] = _joined(parts, "", differing)
    warnings = [
        f"{who} do not agree in {path}: {' and '.join(map(_shown, values))}"
        for path, values in differing.items()
    ]
    if warnings and deterministic:
        raise FingerprintMismatch(f"{warnings[0]}; in determinism mode they must")
    return ({**joined, SEGMENTS: parts} if warnings else joined), warnings


def _distinct(provenances: Sequence[dict[str, Json]]) -> list[dict[str, Json]]:
    """Each once, those that a report lists already too."""
    found: dict[str, dict[str, Json]] = {}
    for one in provenances:
        for part in one.get(SEGMENTS) or [one]:
            found.setdefault(canonical_json(part), part)
    return list(found.values())


def _joined(values: Sequence[Json], path: str, differing: dict[str, list[Json]]) -> Json:
    first = values[0]
    if all(value == first for value in values):
        return first
    if all(isinstance(value, dict) for value in values):
        names = dict.fromkeys(name for value in values for name in value)
        return {
            name: _joined(
                [value[name] for value in values if name in value],
                f"{path}.{name}" if path else name,
                differing,
            )
            for name in names
        }
    told = {canonical_json(value): value for value in values if value != []}
    if len(told) > 1:
        differing[path] = list(told.values())
    if all(isinstance(value, list) for value in values):
        entries = {canonical_json(entry): entry for value in values for entry in value}
        return [entries[key] for key in sorted(entries)]
    return first


def _shown(value: Json) -> str:
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    return value if isinstance(value, str) else canonical_json(msgspec.to_builtins(value))
