"""The first line of a journal: the fingerprint set of its run, and who may go on with it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from callmark.core.jsontext import Json, canonical_json
from callmark.errors import FingerprintMismatch

VERSION = 1
MAGIC = b'{"journal":'


def head_line(fingerprints: Mapping[str, Json]) -> bytes:
    text = canonical_json(dict(fingerprints))
    return b'%s%d,"fingerprints":%s}\n' % (MAGIC, VERSION, text.encode())


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
