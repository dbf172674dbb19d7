"""The lines of a journal beside its results: whose journal it is, who answered, what was written.

The first line is the fingerprint set of the run. Every other line ends with a hash of itself, so
that a line which is not what was written is noticed, wherever it stands."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from callmark.core.jsontext import Json, canonical_json, sha256_hex, well_formed
from callmark.core.protocols import Observed
from callmark.errors import FingerprintMismatch

VERSION = 2
MAGIC = b'{"journal":'
_STAMP = b',"line_sha256":"%s"}\n'
_STAMP_SIZE = len(_STAMP % (b"0" * 64))


def head_line(fingerprints: Mapping[str, Json]) -> bytes:
    text = canonical_json(dict(fingerprints))
    return b'%s%d,"fingerprints":%s}\n' % (MAGIC, VERSION, text.encode())


def segment_line(number: int, seen: Observed) -> bytes:
    """Who answers from here on; the latest line of one number counts for all of that run."""
    return _stamped_record(
        {"segment": number, "provenance": seen.provenance, "warnings": list(seen.warnings)}
    )


def salvage_line(left_out: Iterable[int]) -> bytes:
    """These lines are garbled, and somebody said that the others are to be kept."""
    return _stamped_record({"salvaged": sorted(left_out)})


def written_line(sha256: str) -> bytes:
    """Everything above is in `--out`, which has this hash."""
    return _stamped_record({"written": sha256})


def stamp(line: bytes) -> bytes:
    """A line that is a JSON object, with a hash of itself as its last field."""
    return line[:-2] + _STAMP % sha256_hex(line).encode()


def unstamped(line: bytes) -> bytes | None:
    """What was stamped; None if this is something else."""
    inner = line[:-_STAMP_SIZE] + b"}\n"
    return inner if stamp(inner) == line else None


def _stamped_record(record: Mapping[str, Json]) -> bytes:
    # Not canonical: a report shows the fields in the order in which they stand.
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    return stamp(well_formed(text).encode() + b"\n")


def compare_heads(
    where: str,
    before: Mapping[str, Json],
    now: Mapping[str, Json],
    may_differ: Collection[str],
    may_grow: Collection[str],
) -> None:
    differing = [
        f"  {name}: the journal has {canonical_json(before.get(name))},"
        f" this run {canonical_json(now.get(name))}"
        for name in sorted(before.keys() | now.keys())
        if name not in may_differ
        and before.get(name) != now.get(name)
        and not (name in may_grow and _grew(before.get(name), now.get(name)))
    ]
    if differing:
        raise FingerprintMismatch(
            f"{where}: belongs to another run:\n"
            + "\n".join(differing)
            + "\nUse the earlier settings, or throw its results away (--restart)."
        )


def _grew(before: Json, now: Json) -> bool:
    return now is None or (before is not None and bool(now > before))
