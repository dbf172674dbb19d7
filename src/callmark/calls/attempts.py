"""A call attempt: well formed or not, out of text or out of a server's own `tool_calls`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeGuard, assert_never
from unicodedata import normalize

import msgspec
from msgspec.structs import replace

from callmark.calls.schema import describe
from callmark.errors import UsageError
from callmark.records.jsontext import MAX_DEPTH, Json, NotJson, parse_json, sha256_hex, well_formed
from callmark.records.trace import RepairedCall, TraceEntry, json_inside

# The lenient parser is quadratic on some texts, and its work is for show only.
LONGEST_REPAIR = 4_000

_LIST_WRAPPER = "tool_calls"
_WRAPPER_KEYS = ("function", "function_call", "tool_call")
_NAME_KEYS = ("name", "tool_name")
_ARGUMENT_KEYS = ("arguments", "parameters", "args")
# LangChain's agents write these two, and only together do they mean a call.
_ACTION_KEYS = ("action", "action_input")
_NAME_IN_RAW = re.compile(r'"(?:tool_)?name"\s*:\s*"([^"\\]{1,200})"')


class ToolCall(msgspec.Struct, frozen=True):
    """A call that was parsed strictly. Whether its tool exists is another question."""

    name: str
    arguments: dict[str, Json]
    raw: str
    format: str
    call_id: str | None = None


class MalformedCall(msgspec.Struct, frozen=True):
    """An attempt that no strict reading accepts. `repaired` is for people, never for scores."""

    name: str | None
    reason: str
    raw: str
    format: str
    repaired: RepairedCall | None = None
    call_id: str | None = None


Attempt = ToolCall | MalformedCall


def native_call(
    name: Json, arguments: Json, *, call_id: str | None = None, raw: str | None = None
) -> Attempt:
    """A call as a server gives it: arguments as an object, as its JSON text, or none at all."""
    written = raw if raw is not None else _as_text(arguments)
    parsed = _arguments_from(arguments)
    if isinstance(parsed, dict) and isinstance(name, str) and name.strip():
        return ToolCall(name, parsed, written, "native", call_id)
    named = name if isinstance(name, str) and name.strip() else None
    reason = "the call names no tool" if named is None else str(parsed)
    repaired = None
    if named is not None and isinstance(arguments, str):
        repaired = repaired_call(arguments, name=named)
    return MalformedCall(named, reason, written, "native", repaired, call_id)


def entry_for(attempt: Attempt, turn: int | None) -> TraceEntry:
    """The attempt as a line of the trace, before anything answered it."""
    entry = TraceEntry(
        name=attempt.name,
        arguments=attempt.arguments if isinstance(attempt, ToolCall) else None,
        result=None,
        turn=turn,
        raw=attempt.raw,
        status="unanswered",
        served_by=None,
        format=attempt.format,
        call_id=attempt.call_id,
    )
    match attempt:
        case ToolCall():
            return entry
        case MalformedCall(reason=reason, repaired=repaired):
            return replace(entry, status="malformed", reason=reason, repaired=repaired)
        case _:
            assert_never(attempt)


def members_of(value: Json) -> list[Json]:
    """The call objects that one JSON value holds: itself, or those of a `tool_calls` list."""
    if isinstance(value, dict) and isinstance(value.get(_LIST_WRAPPER), list):
        calls: list[Json] = value[_LIST_WRAPPER]
        return calls
    return [value]


def marked_attempt(member: Json, raw: str, format_name: str, *, repair: bool = True) -> Attempt:
    """What follows a format's own mark is an attempt, whatever it looks like. Arguments
    that are left out are none: the tool's schema says whether that is right."""
    call = _unwrap(member)
    if call is None:
        reason = f"a call is an object with name and arguments, not {describe(member)}"
        return MalformedCall(None, reason, raw, format_name)
    name, (_, given) = _given_name(call), _given_arguments(call)
    parsed = _arguments_from(given)
    if not isinstance(name, str) or not name.strip():
        return MalformedCall(None, "the call names no tool", raw, format_name)
    if isinstance(parsed, str):
        told = given if repair and isinstance(given, str) else None
        repaired = None if told is None else repaired_call(told, name=name)
        return MalformedCall(name, parsed, raw, format_name, repaired)
    return ToolCall(name, parsed, raw, format_name)


def unmarked_call(member: Json, raw: str, format_name: str) -> ToolCall | None:
    """JSON without a mark is a call only if it has a name and an arguments object (or the JSON
    text of one). A tool's own spec, which also has name and parameters, is none."""
    call = _unwrap(member)
    if call is None:
        return None
    name, (key, given) = _given_name(call), _given_arguments(call)
    arguments = json_inside(given) if isinstance(given, str) else given
    if not isinstance(name, str) or not name.strip() or not is_shallow_object(arguments):
        return None
    if key == "parameters" and "properties" in arguments and "type" in arguments:
        return None
    return ToolCall(name, arguments, raw, format_name)


def malformed(
    body: str, reason: str, raw: str, format_name: str, *, name: str | None = None, repair: bool
) -> MalformedCall:
    """An attempt whose text is broken, with what a lenient parser makes of it. With a `name` the
    body should have been its arguments."""
    repaired = repaired_call(body, name=name) if repair else None
    if repaired is not None:
        return MalformedCall(repaired.name, reason, raw, format_name, repaired)
    if name is not None:
        return MalformedCall(name, reason, raw, format_name)
    named = _NAME_IN_RAW.search(body[:LONGEST_REPAIR])
    return MalformedCall(named.group(1) if named else None, reason, raw, format_name)


def repaired_call(body: str, *, name: str | None = None) -> RepairedCall | None:
    """What a lenient parser makes of a broken call, or of broken arguments if the name is known."""
    if "{" not in body or len(body) > LONGEST_REPAIR:
        return None
    import json_repair  # 30 ms to load, and most runs never need it

    try:
        value: Json = json_repair.loads(body)
    except (ValueError, RecursionError):
        return None
    if name is not None:
        return RepairedCall(name, value) if is_shallow_object(value) else None
    if isinstance(value, list):
        value = next((entry for entry in value if isinstance(entry, dict)), None)
    attempt = marked_attempt(value, "", "") if is_shallow_object(value) else None
    return RepairedCall(attempt.name, attempt.arguments) if isinstance(attempt, ToolCall) else None


def is_shallow_object(value: Json) -> TypeGuard[dict[str, Json]]:
    return isinstance(value, dict) and not is_nested_too_deeply(value)


def is_nested_too_deeply(value: dict[str, Json] | list[Json]) -> bool:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            child
            for container in level
            for child in (container.values() if isinstance(container, dict) else container)
            if isinstance(child, dict | list)
        ]
        if not level:
            return False
    return True


def _unwrap(member: Json) -> dict[str, Json] | None:
    if not isinstance(member, dict):
        return None
    if all(key in member for key in _ACTION_KEYS):
        return {"name": member["action"], "arguments": member["action_input"]}
    if not any(key in member for key in _NAME_KEYS):
        for key in _WRAPPER_KEYS:
            if isinstance(member.get(key), dict):
                inner: dict[str, Json] = member[key]
                return inner
    return member


def _given_name(call: dict[str, Json]) -> Json:
    return next((call[key] for key in _NAME_KEYS if key in call), None)


def _given_arguments(call: dict[str, Json]) -> tuple[str | None, Json]:
    for key in _ARGUMENT_KEYS:
        if key in call:
            return key, call[key]
    return None, None


def _arguments_from(given: Json) -> dict[str, Json] | str:
    """The arguments object, or the reason why there is none. Nothing at all means no arguments."""
    value = given
    if isinstance(value, str):
        if not value.strip():
            return {}
        try:
            value = parse_json(value)
        except NotJson as error:
            return f"the arguments are {error}"
    if value is None:
        return {}
    if not isinstance(value, dict):
        return f"the arguments are {describe(value)}, not an object"
    if is_nested_too_deeply(value):
        return f"the arguments are nested deeper than {MAX_DEPTH} levels"
    return value


def _as_text(arguments: Json) -> str:
    if isinstance(arguments, str):
        return arguments
    try:
        return msgspec.json.encode(arguments).decode()
    except (TypeError, ValueError, RecursionError):
        return describe(arguments)


_SEPARATORS = str.maketrans(".-", "__")

# They show nothing and mean nothing in a query. Joiners (U+200C, U+200D) stay: in Persian, Hindi
# or an emoji they change what is written.
_INVISIBLE = dict.fromkeys((0x200B, 0x2060, 0xFEFF))


class NotPlainError(ValueError):
    """A value that no JSON text can hold: another type, or a key that is no string."""


def fold_name(name: str) -> str:
    """Tool names that differ only in `.`, `_` and `-` fold to one text."""
    return name.translate(_SEPARATORS)


def fold_query(text: str) -> str:
    """NFC, without case, every Unicode space collapsed to one blank, trimmed; the zero-width
    characters U+200B, U+2060 and U+FEFF removed."""
    if text.isascii():
        return " ".join(text.lower().split())
    # Folded on the decomposed form, as Unicode defines caseless matching: folding once is enough.
    folded = normalize("NFD", well_formed(text).translate(_INVISIBLE)).casefold()
    return " ".join(normalize("NFC", folded).split())


def fold_spaces(text: str) -> str:
    """Every run of Unicode white space is one blank; none at the ends."""
    return " ".join(text.split())


def compose(text: str) -> str:
    """NFC; lone surrogates become U+FFFD as in every text that was read from a file."""
    return text if text.isascii() else normalize("NFC", well_formed(text))


def plain_value(value: Json) -> Json:
    """Null members removed at every depth, strings NFC, 3.0 and 3 one number (3)."""
    if type(value) is str:
        return value if value.isascii() else compose(value)
    if type(value) is int or type(value) is bool or value is None:
        return value
    if type(value) is float:
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {
            compose_key(key): plain_value(member)
            for key, member in value.items()
            if member is not None
        }
    if isinstance(value, list | tuple):
        return [plain_value(entry) for entry in value]
    raise NotPlainError(f"{type(value).__name__} is no JSON value")


def compose_key(key: Json) -> str:
    if not isinstance(key, str):
        raise NotPlainError("an object key is not a string")
    return key if key.isascii() else compose(key)


LONGEST_NAME = 64
_ALLOWED = re.compile(rf"[a-zA-Z0-9_-]{{1,{LONGEST_NAME}}}")
_REFUSED = re.compile(r"[^a-zA-Z0-9_-]")
_DIGEST_CHARS = 8


class NameCodec:
    """A two-way table for the names that are offered. A name that the endpoint allows stays as it
    is; another gets `_` for what is refused (`web.search` → `web_search`), which reads naturally
    to a model; a name that is too long ends in a digest of the whole."""

    __slots__ = ("_decoded", "_encoded")

    def __init__(self, names: Iterable[str]) -> None:
        self._encoded: dict[str, str] = {}
        self._decoded: dict[str, str] = {}
        for name in dict.fromkeys(names):
            encoded = endpoint_name(name)
            other = self._decoded.setdefault(encoded, name)
            if other != name:
                raise UsageError(
                    f"the tools {other!r} and {name!r} would both be sent as {encoded!r}: "
                    "rename one, or offer only one of them (metadata.tools)"
                )
            self._encoded[name] = encoded

    def encode(self, name: str) -> str:
        """The name to send. A name outside the table (an old call in a prompt) is encoded too."""
        return self._encoded.get(name) or endpoint_name(name)

    def decode(self, name: str) -> str:
        """The dataset's name. What the model made up stays as it wrote it."""
        return self._decoded.get(name, name)


def endpoint_name(name: str) -> str:
    """One name in the endpoint's alphabet, by itself: only a table can lead back."""
    if _ALLOWED.fullmatch(name):
        return name
    safe = _REFUSED.sub("_", name)
    if len(safe) <= LONGEST_NAME and safe:
        return safe
    mark = sha256_hex(name.encode("utf-8", "surrogatepass"))[:_DIGEST_CHARS]
    return f"{safe[: LONGEST_NAME - _DIGEST_CHARS - 1]}_{mark}"
