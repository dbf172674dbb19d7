"""Who a sample is and which shard it belongs to."""

from __future__ import annotations

import hashlib
import json

from callmark.core.jsontext import Json
from callmark.errors import UsageError


def sample_id_of(item: Json) -> str:
    """The id that the item gives itself (metadata first), else a hash of the whole item."""
    metadata = item.get("metadata")
    for holder in (metadata if isinstance(metadata, dict) else {}, item):
        given = holder.get("sample_id")
        if isinstance(given, str) and given:
            return given
        if isinstance(given, int | float) and not isinstance(given, bool):
            return json.dumps(given)
    text = json.dumps(item, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shard_of(sample_id: str, num_shards: int) -> int:
    """Stable whatever the order of the dataset: only the id decides."""
    if not isinstance(num_shards, int) or num_shards < 1:
        raise UsageError(f"--num-shards must be a whole number from 1, not {num_shards!r}")
    if not isinstance(sample_id, str):
        raise UsageError(f"a sample_id is a text, not {sample_id!r}; see sample_id_of")
    head = hashlib.sha256(sample_id.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "little") % num_shards
