"""Strict JSON in, canonical JSON out: the one place that decides what is JSON."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

import msgspec

PathInJson = tuple[str | int, ...]
# Path inside a file -> `file:line`, for messages.
Locate = Callable[[PathInJson], str]

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[][{}:,]|[^\s\]\[{}:,"]+', re.DOTALL)
_BLANK = re.compile(r"[ \t\n\r]+")


def members(text: str) -> Iterator[tuple[PathInJson, int]]:
    """Every value with its path and line, in the order of the text, which must be JSON."""
    path: list[str | int] = []  # of each open object its key, of each open list its position
    key_is_due = False
    for mark, line in _tokens(text):
        if mark in ("}", "]"):
            path.pop()
            key_is_due = False
        elif mark == ",":
            here = path[-1]
            key_is_due = isinstance(here, str)
            if isinstance(here, int):
                path[-1] = here + 1
        elif key_is_due:
            path[-1] = json.loads(mark)
            key_is_due = False
        elif mark != ":":
            yield tuple(path), line
            if mark in ("{", "["):
                path.append("" if mark == "{" else 0)
                key_is_due = mark == "{"


def line_of(text: str, path: PathInJson) -> int:
    """The line on which the value at this path begins, or the one that should have held it. Of
    two values under one name the last: it is the one that counts."""
    lines = dict(members(text))
    return next(lines[path[:size]] for size in range(len(path), -1, -1) if path[:size] in lines)


def lines_of_entries(text: str) -> Iterator[int]:
    """The line on which each entry of a list begins; a list may be long, so this one is fast."""
    decode = json.JSONDecoder().raw_decode
    line, before = 1, 0
    at = text.index("[") + 1
    while text[at := _end_of_blank(text, at)] != "]":
        line += text.count("\n", before, at)
        before = at
        yield line
        at = _end_of_blank(text, decode(text, at)[1])
        at += text[at] == ","


def repeated_name(text: str) -> tuple[PathInJson, int, int] | None:
    """The first value whose name stands there for the second time: path, line, line before."""
    if not _repeats_a_name(text):
        return None
    seen: dict[PathInJson, int] = {}
    for path, line in members(text):
        if path in seen:
            return path, line, seen[path]
        seen[path] = line
    return None


def line_of_token(text: str, wanted: str) -> int:
    """Where a number or a word stands first."""
    return next((line for mark, line in _tokens(text) if mark == wanted), 1)


def line_too_deep(text: str, max_depth: int) -> int:
    """Where more lists and objects are open than may be."""
    depth = 0
    for mark, line in _tokens(text):
        depth += (mark in ("{", "[")) - (mark in ("}", "]"))
        if depth > max_depth:
            return line
    return 1


def _end_of_blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return at if found is None else found.end()


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    line, before = 1, 0
    for found in _TOKEN.finditer(text):
        line += text.count("\n", before, found.start())
        before = found.start()
        yield found[0], line


def _repeats_a_name(text: str) -> bool:
    repeats = False

    def notice(pairs: list[tuple[str, object]]) -> dict[str, object]:
        nonlocal repeats
        names = dict(pairs)
        repeats = repeats or len(names) < len(pairs)
        return names

    # The numbers are not looked at: some are too long for `int`.
    json.loads(text, object_pairs_hook=notice, parse_int=str, parse_float=str)
    return repeats


# Any value that JSON can hold. Real payloads (prompts, arguments, results, metadata) stay plain;
# whoever looks into one asks first what it is.
Json = object

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Json).decode
_decode_object = msgspec.json.Decoder(dict[str, Json]).decode
_encode_sorted = msgspec.json.Encoder(order="sorted").encode
# Inside of a value: with the start of the text as another beginning it takes three times as long.
_LIKE_A_FRACTION = re.compile(rb"[:,[]-?\d+[.e]")
_canonical = json.JSONEncoder(
    sort_keys=True, ensure_ascii=False, separators=(",", ":"), allow_nan=False
).encode


# Deeper values could be parsed, but not be walked or written again.
MAX_DEPTH = 100


class NotJson(ValueError):
    """The text is not JSON. The message is one short clause, without a position prefix; `line` is
    the one of the text where that shows."""

    def __init__(self, what: str, line: int = 1) -> None:
        super().__init__(what)
        self.line = line


class _BadNumber(ValueError):
    """A number that JSON does not know, or that is out of range."""

    def __init__(self, token: str, what: str) -> None:
        super().__init__(what)
        self.token = token


def parse_json(data: bytes | str, *, max_depth: int = MAX_DEPTH) -> Json:
    """Parse RFC 8259 JSON. NaN, Infinity and numbers out of range are refused, lone surrogate
    escapes become U+FFFD, nesting too deep for the parser is an error like any other."""
    try:
        value = _decode(data)
    except (msgspec.MsgspecError, UnicodeError, RecursionError, ValueError):
        value = _parse_slowly(data, max_depth)
    brackets = (b"[", b"{") if isinstance(data, bytes) else ("[", "{")
    if sum(map(data.count, brackets)) > max_depth and _is_deeper(value, max_depth):  # type: ignore[arg-type]
        raise _too_deep(data if isinstance(data, str) else data.decode(), max_depth)
    return value


def canonical_json(value: Json) -> str:
    """Sorted keys, no blanks, no escapes beyond the needed ones: equal values, equal text."""
    return _canonical(value)


def encode_json(value: Json) -> bytes:
    """Any value in the order in which it stands, also one with lone surrogates or integers of any
    size."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        return json.dumps(value, separators=(",", ":")).encode()


def plain(record: object) -> Json:
    """A record as plain JSON values: dicts and lists, no tuples."""
    try:
        return _decode(msgspec.json.encode(record))
    except UnicodeEncodeError:  # names of lone surrogates, in calls that nobody read from a file
        return replace_surrogates(msgspec.to_builtins(record))


def plain_object(record: msgspec.Struct | Mapping[str, Json]) -> dict[str, Json]:
    """The same of one that is an object in JSON."""
    try:
        return _decode_object(msgspec.json.encode(record))
    except UnicodeEncodeError:
        return want_object(plain(record))


class JsonRecord(msgspec.Struct, frozen=True):
    """A record that leaves the library, or is written, as one JSON object."""

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values: what the command writes. `Any`, because who asks for
        a dict wants to index it without a check at every step; the record itself has types."""
        return plain_object(self)


def want_object(value: Json) -> dict[str, Json]:
    """A value that has to be an object, by a schema or by who wrote it; null stands for an empty
    one. Anything else is a TypeError, as it would be one to use it."""
    if isinstance(value, dict):
        return value
    if isinstance(value, Mapping):
        return dict(value)
    if not value:
        return {}
    raise TypeError(f"must be an object, not {type(value).__name__}")


def want_list(value: Json) -> Sequence[Json]:
    """The same of a list."""
    if isinstance(value, list | tuple):
        return value
    if not value:
        return ()
    raise TypeError(f"must be a list, not {type(value).__name__}")


def want_text(value: Json) -> str:
    """The same of a text, but null is none."""
    if isinstance(value, str):
        return value
    raise TypeError(f"must be a text, not {type(value).__name__}")


def want_texts(value: Json) -> tuple[str, ...]:
    return tuple(map(want_text, want_list(value))) if value else ()


def want_number(value: Json) -> int | float:
    if isinstance(value, int | float):
        return value
    raise TypeError(f"must be a number, not {type(value).__name__}")


def digest(value: Json) -> str:
    """SHA-256 (hex) of the canonical JSON."""
    return sha256_hex(_canonical(value).encode("utf-8", "surrogatepass"))


def digest_parsed(value: Json) -> str:
    """The same of a value that `parse_json` gave, at a third of the cost."""
    try:
        encoded = encode_sorted(value)
    except (UnicodeEncodeError, OverflowError):
        return digest(value)
    return digest(value) if encoded is None else sha256_hex(encoded)


def encode_sorted(value: Json) -> bytes | None:
    """The canonical JSON by a faster encoder. It writes NaN as null, and a fraction such as 1e-7 in
    its own way: None if there may be one."""
    encoded = _encode_sorted(value)
    is_fraction = isinstance(value, float) or _LIKE_A_FRACTION.search(encoded)
    return None if is_fraction else encoded


def sha256_hex(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def well_formed(text: str) -> str:
    """Lone surrogates, which no UTF-8 file can hold, become U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def texts_in(value: Json) -> Iterator[str]:
    """Every text that it holds, in order; keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from texts_in(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from texts_in(entry)


def cut_value(value: Json, longest: int = 200) -> Json:
    """A leaf's value as a match records it: long texts are cut."""
    if not isinstance(value, str):
        return value
    cut = value if len(value) <= longest else value[: longest - 1] + "…"
    return cut if cut.isascii() else well_formed(cut)


def _parse_slowly(data: bytes | str, max_depth: int) -> Json:
    # msgspec is fast but refuses lone surrogate escapes, which real servers do send.
    try:
        text = data.decode("utf-8") if isinstance(data, bytes) else data
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise NotJson(f"not UTF-8 (byte {error.start})", line) from None
    try:
        value = json.loads(
            text, parse_constant=_refuse_constant, parse_float=_finite, parse_int=_whole
        )
        return replace_surrogates(value)
    except json.JSONDecodeError as error:
        what = f"not JSON: {error.msg} (column {error.colno})"
        raise NotJson(what, error.lineno) from None
    except _BadNumber as error:
        raise NotJson(f"not JSON: {error}", line_of_token(text, error.token)) from None
    except RecursionError:
        raise _too_deep(text, max_depth) from None


def _too_deep(text: str, max_depth: int) -> NotJson:
    what = f"nested deeper than {max_depth} levels"
    return NotJson(what, line_too_deep(text, max_depth))


def _is_deeper(value: Json, max_depth: int) -> bool:
    level = [value]
    for _ in range(max_depth + 1):
        level = [
            inner
            for outer in level
            if isinstance(outer, dict | list)
            for inner in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> NoReturn:
    raise _BadNumber(name, f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise _BadNumber(text, f"the number {text[:20]} is out of range")
    return number


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError:  # Python reads no more than 4300 digits
        what = f"the number {text[:20]}… has {len(text)} digits, too many to read"
        raise _BadNumber(text, what) from None


def replace_surrogates(value: Json) -> Json:
    """The same value with `well_formed` texts in it."""
    if isinstance(value, str):
        return well_formed(value)
    if isinstance(value, list | tuple):
        return [replace_surrogates(entry) for entry in value]
    if isinstance(value, dict):
        return {well_formed(key): replace_surrogates(entry) for key, entry in value.items()}
    return value
