"""What the dataset says: the header, and one sample with what is expected of the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal

import msgspec

from callmark.errors import UsageError
from callmark.records.checks import SampleCheck, checks_of
from callmark.records.jsontext import Json

Kind = Literal["control", "negative_control", "clarify", "eligible", "unclassified"]
# Where the right answer makes no call, whatever the item lists.
CALL_FREE: frozenset[Kind] = frozenset({"control", "clarify"})
Extractor = Literal["marker", "claims"]
# Who decided on the extractor; `default`: nobody asked for the marker.
ExtractorBy = Literal[
    "flag", "config", "header", "wrapper", "system_message", "teacher_text", "default"
]
CallMatch = Literal["exact", "unordered", "superset"]

DEFAULT_SPAN_CAP = 3
DEFAULT_STRICT_KEYS = ("summary", "lines", "count", "top_k", "results", "hits", "content")
MARKER = "Integration:"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset's first line. Unknown fields are ignored here and kept in the file."""

    dataset_version: str | int | float | None = None
    dataset_sha256: str | None = None
    tool_registry_sha256: str | None = None
    fixtures_sha256: str | None = None
    tokenizer_fingerprint: dict[str, Json] | None = None
    integration_span_cap: int | None = None
    span_extractor: Literal["marker", "claims", "auto"] | None = None
    strict_keys: tuple[str, ...] | None = None
    gates: dict[str, Json] | None = None
    url_allowlist: tuple[str, ...] = ()
    privacy_echo: Literal["allow", "deny"] | None = None
    seed: int | None = None


class ExpectedCall(msgspec.Struct, frozen=True):
    """`arguments` None: only the name is expected. `accept` maps a JSON pointer below the
    arguments to the values that are right there; `optional` names keys that may be absent;
    `lenient`: the item asks for lenient comparison of texts."""

    name: str
    arguments: dict[str, Json] | None = None
    accept: dict[str, list[Json]] = {}
    optional: tuple[str, ...] = ()
    lenient: bool = False


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The scored part of an item's metadata, parsed once."""

    kind: Kind
    calls: tuple[ExpectedCall, ...] = ()
    call_match: CallMatch = "exact"
    retry: bool = False
    required_facts: tuple[str | int | float, ...] = ()
    strict_keys: tuple[str, ...] | None = None
    decoy_values: tuple[str | int | float, ...] = ()
    locale: str | None = None
    locale_probe: bool = False
    tools: tuple[str, ...] | None = None
    slices: tuple[str, ...] = ()
    cluster: str | None = None
    normalise_text: bool = False
    checks: tuple[SampleCheck, ...] = ()


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the dataset. `prompt` and `metadata` are verbatim."""

    index: int
    sample_id: str
    prompt: str | list[dict[str, Json]]
    metadata: dict[str, Json]
    expectation: Expectation
    user_turns: tuple[str, ...] = ()
    teacher_text: str | None = None
    item_sha256: str = ""


def sample_of(item: Mapping[str, Json], *, index: int, sample_id: str, item_sha256: str) -> Sample:
    """An item that passed the schema, as a record. Nulls stand for absent fields."""
    metadata = item.get("metadata") or {}
    return Sample(
        index=index,
        sample_id=sample_id,
        prompt=item.get("prompt") or "",
        metadata=metadata,
        expectation=expectation_of(metadata),
        user_turns=tuple(item.get("user_turns") or ()),
        teacher_text=item.get("teacher_text"),
        item_sha256=item_sha256,
    )


def expectation_of(metadata: Mapping[str, Json]) -> Expectation:
    get = metadata.get
    lenient = get("string_match") == "lenient"
    calls = tuple(_expected_call(entry, lenient) for entry in get("call_sequence") or ())
    behaviour = get("expected_behaviour") or "normal"
    locale = get("locale")
    strict_keys = get("strict_keys")
    tools = get("tools")
    cluster = get("cluster")
    return Expectation(
        kind=_kind_of(metadata, behaviour, expects_calls=bool(calls)),
        calls=calls,
        call_match=get("call_match") or "exact",
        retry=behaviour == "retry",
        required_facts=tuple(get("required_facts") or ()),
        strict_keys=None if strict_keys is None else tuple(strict_keys),
        decoy_values=tuple(get("decoy_values") or ()),
        locale=locale or get("language") if get("locale_probe") else locale,
        locale_probe=bool(get("locale_probe")),
        tools=None if tools is None else tuple(tools),
        slices=_slices_of(metadata),
        cluster=None if cluster is None else str(cluster),
        normalise_text=str(get("text_norm") or "").upper() == "NFC"
        or str(get("line_endings") or "").upper() == "LF",
        checks=checks_of(get("checks")),
    )


def _expected_call(entry: Json, lenient: bool) -> ExpectedCall:
    if isinstance(entry, str):
        return ExpectedCall(entry)
    return ExpectedCall(
        name=entry["name"],
        arguments=entry.get("arguments"),
        accept=entry.get("accept") or {},
        optional=tuple(entry.get("optional") or ()),
        lenient=lenient,
    )


def _kind_of(metadata: Mapping[str, Json], behaviour: str, *, expects_calls: bool) -> Kind:
    # The dataset decides, never what the model did: a silent model must not leave the denominator.
    if behaviour in ("no_tool", "decline"):
        return "control"
    if metadata.get("negative_control"):
        return "negative_control"
    adversarial = metadata.get("adversarial")
    if isinstance(adversarial, dict) and adversarial.get("expected") == "ask_clarify":
        return "clarify"
    return "eligible" if expects_calls or behaviour == "retry" else "unclassified"


def _slices_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    names = list(metadata.get("slices") or ())
    for flag in ("long_context", "teacher_heavy"):
        if metadata.get(flag) and flag not in names:
            names.append(flag)
    return tuple(names)


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
