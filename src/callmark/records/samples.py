"""What the dataset says: the header, and one sample with what is expected of the model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Literal

import msgspec

from callmark.errors import UsageError
from callmark.records.checks import SampleCheck, checks_of
from callmark.records.jsontext import (
    Json,
    want_list,
    want_number,
    want_object,
    want_text,
    want_texts,
)

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
    metadata = want_object(item.get("metadata"))
    prompt, teacher_text = item.get("prompt") or "", item.get("teacher_text")
    return Sample(
        index=index,
        sample_id=sample_id,
        prompt=prompt if isinstance(prompt, str) else list(map(want_object, want_list(prompt))),
        metadata=metadata,
        expectation=expectation_of(metadata),
        user_turns=want_texts(item.get("user_turns")),
        teacher_text=None if teacher_text is None else want_text(teacher_text),
        item_sha256=item_sha256,
    )


def expectation_of(metadata: Mapping[str, Json]) -> Expectation:
    get = metadata.get
    lenient = get("string_match") == "lenient"
    calls = tuple(_expected_call(entry, lenient) for entry in want_list(get("call_sequence")))
    behaviour = get("expected_behaviour") or "normal"
    locale = get("locale")
    if get("locale_probe"):
        locale = locale or get("language")
    strict_keys = get("strict_keys")
    tools = get("tools")
    cluster = get("cluster")
    return Expectation(
        kind=_kind_of(metadata, behaviour, expects_calls=bool(calls)),
        calls=calls,
        call_match=_call_match_of(get("call_match")),
        retry=behaviour == "retry",
        required_facts=_facts_of(get("required_facts")),
        strict_keys=None if strict_keys is None else want_texts(strict_keys),
        decoy_values=_facts_of(get("decoy_values")),
        locale=None if locale is None else want_text(locale),
        locale_probe=bool(get("locale_probe")),
        tools=None if tools is None else want_texts(tools),
        slices=_slices_of(metadata),
        cluster=None if cluster is None else str(cluster),
        normalise_text=str(get("text_norm") or "").upper() == "NFC"
        or str(get("line_endings") or "").upper() == "LF",
        checks=checks_of(get("checks")),
    )


def _expected_call(entry: Json, lenient: bool) -> ExpectedCall:
    if isinstance(entry, str):
        return ExpectedCall(entry)
    call = want_object(entry)
    arguments, accept = call.get("arguments"), want_object(call.get("accept"))
    return ExpectedCall(
        name=want_text(call["name"]),
        arguments=None if arguments is None else want_object(arguments),
        accept={pointer: list(want_list(values)) for pointer, values in accept.items()},
        optional=want_texts(call.get("optional")),
        lenient=lenient,
    )


def _call_match_of(given: Json) -> CallMatch:
    match given:
        case "unordered" | "superset":
            return given
    return "exact"


def _facts_of(given: Json) -> tuple[str | int | float, ...]:
    return tuple(fact if isinstance(fact, str) else want_number(fact) for fact in want_list(given))


def _kind_of(metadata: Mapping[str, Json], behaviour: Json, *, expects_calls: bool) -> Kind:
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
    names = list(want_texts(metadata.get("slices")))
    for flag in ("long_context", "teacher_heavy"):
        if metadata.get(flag) and flag not in names:
            names.append(flag)
    return tuple(names)


def sample_id_of(item: Mapping[str, Json]) -> str:
    """Name a sample as every file does.

    Args:
        item: an item of a dataset.

    Returns:
        The `sample_id` that it gives itself, below `metadata` or beside it, else a hash of the
        whole item.

    Raises:
        TypeError: the item has no id, and is no JSON value that could be hashed.

    >>> import callmark
    >>> callmark.sample_id_of({"prompt": "Hello", "metadata": {"sample_id": "greeting-1"}})
    'greeting-1'
    """
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
    """Say which shard a sample belongs to.

    Args:
        sample_id: its id.
        num_shards: how many shards there are.

    Returns:
        A number from 0. Only the id decides, whatever the order of the dataset.

    Raises:
        UsageError: no whole number of shards, or an id that is no text.

    >>> import callmark
    >>> callmark.shard_of("issues-01", 4)
    1
    """
    if not isinstance(num_shards, int) or num_shards < 1:
        raise UsageError(f"--num-shards must be a whole number from 1, not {num_shards!r}")
    if not isinstance(sample_id, str):
        raise UsageError(f"a sample_id is a text, not {sample_id!r}; see sample_id_of")
    head = hashlib.sha256(sample_id.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "little") % num_shards
