"""The one normaliser of calls: for fixture keys, the model's calls and expected calls.

1. The tool's name: the registry's spelling (exact, then a `.`/`_`/`-` variant of exactly one
   name, then an alias); for a tool that the registry does not know, the same among the names
   that occur in fixtures.
2. Keys whose value is null are removed, at every depth. (A null inside a list keeps its place.)
3. `q` and `query` at the top level: NFC, casefolded, white space collapsed, trimmed. The zero-width
   characters U+200B, U+2060 and U+FEFF are dropped there, and nowhere else: in a path or in code
   they are part of the value.
4. Missing keys get `top_k` 3 (tools whose name starts with `web.search`), then the defaults of the
   tool's schema; `x-callmark` of its spec wins over both.
5. 3 and 3.0 are one number, "3" and true are none; strings NFC; canonical JSON with sorted keys.
"""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

from callmark.calls.names import NotPlainError, compose_key, fold_name, fold_query, plain_value
from callmark.calls.registry import Registry, rules_without_spec
from callmark.records.jsontext import Json, canonical_json

_encode_sorted = msgspec.json.Encoder(order="sorted").encode
_LIKE_A_FRACTION = re.compile(rb"[:,[]-?\d+[.e]")


class NormalisedCall(msgspec.Struct, frozen=True):
    """`key` may share values with the spec's defaults: read it, do not change it."""

    name: str
    key: dict[str, Json]
    key_json: str


def normalise(
    name: Json, arguments: Json, *, registry: Registry | None, known_names: Collection[str] = ()
) -> NormalisedCall | None:
    """The canonical name and key of a call. None: the name is no text or the arguments are no
    JSON object, so that nothing can ever match it."""
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    canonical = canonical_name(name, registry=registry, known_names=known_names)
    rules = rules_without_spec(canonical) if registry is None else registry.key_rules(canonical)
    folded, ignored = rules.folded, rules.ignored
    key: dict[str, Json] = {}
    try:
        for raw_argument, value in arguments.items():
            if value is None:
                continue
            argument = compose_key(raw_argument)
            if argument in ignored:
                continue
            if argument in folded and isinstance(value, str):
                key[argument] = fold_query(value)
            else:
                key[argument] = plain_value(value)
        for argument, value in rules.defaults.items():
            if argument not in key:
                key[argument] = value
        return NormalisedCall(canonical, key, _canonical_text(key))
    except (NotPlainError, RecursionError):
        return None


def canonical_name(
    name: str, *, registry: Registry | None, known_names: Collection[str] = ()
) -> str:
    """The registry comes first: a fixture that spells a tool's name otherwise still means it."""
    if registry is not None:
        resolved = registry.resolve(name)
        if resolved is not None:
            return resolved
    if not known_names or name in known_names:
        return name
    folded = fold_name(name)
    fitting = {known for known in known_names if fold_name(known) == folded}
    return fitting.pop() if len(fitting) == 1 else name


def _canonical_text(key: dict[str, Json]) -> str:
    try:
        encoded = _encode_sorted(key)
        # The fast encoder writes a fraction such as 1e-7 in its own way, and NaN as null.
        if b"null" in encoded or _LIKE_A_FRACTION.search(encoded):
            return canonical_json(key)
        return encoded.decode()
    except (ValueError, TypeError) as error:
        raise NotPlainError(str(error)) from None
