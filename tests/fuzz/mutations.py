"""Ways to spoil a file: its bytes, its lines, its JSON or its YAML. Everything comes from a seeded
generator, so that a case is named by its number alone."""

import json
import random
from collections.abc import Callable

import yaml

Mutate = Callable[[random.Random, bytes], bytes]

DEEP = 150  # deeper than a value may be, not deeper than a parser can go
TOO_DEEP = 5_000

# What may stand where something else is expected. Each is JSON text: some are no JSON at all.
ODD_JSON = (
    *("null true false 0 -0 -1 1 1.0 3.0 0.5 -1.5 1e5 1E400 -1e400 1e-400 1e308 5e-324".split()),
    *("9007199254740993 2147483648 4294967295 4294967296 9223372036854775808".split()),
    *("18446744073709551615 18446744073709551616 -9223372036854775809".split()),
    "1" * 400,
    "-" + "7" * 5000,
    "NaN",
    "-Infinity",
    "01",
    "1.",
    "'x'",
    "undefined",
    "[]",
    "{}",
    "[[]]",
    "[null]",
    "[1, [2, {}], true]",
    '{"": null}',
    '{"a": {"b": [0.1, "c"]}}',
    '{"name": "web.search", "arguments": {"q": "x"}}',
    '{"__header__": true}',
    '{"$ref": "#"}',
    '{"$ref": "file:///etc/passwd"}',
    '{"pattern": "(a+)+$", "type": "string"}',
    "[" * DEEP + "]" * DEEP,
    '{"a":' * DEEP + "1" + "}" * DEEP,
    "[" * TOO_DEEP + "]" * TOO_DEEP,
    '""',
    '" "',
    '"0"',
    '"-1"',
    '"true"',
    '"null"',
    '"[1, 2"',
    '"{\\"q\\": \\"x\\"}"',
    '"' + "x" * 20_000 + '"',
    '"Integration: 7 of 1,234.56 on 2024-02-30 at https://example.com/%zz?x#y."',
    '"\\ud800"',
    '"\\udc00\\ud800"',
    '"\\ud83d\\ude00"',
    '"\\u0000"',
    '"\\ufeff\\u200b\\u202e\\u2028"',
    '"e\\u0301 \\u00e9 \\u0130 \\u00df \\ufb01 \\u1e9e"',
    '"\\u0661\\u0662\\u0663 \\u0967\\u0968 \\uff11 \\u00bd \\u216b"',
    '"\\ud834\\udd1e\\ud83d\\udc68\\u200d\\ud83d\\udc69"',
    '"\\u3002\\uff01\\uff1f \\u061f \\u3042\\u4e2d"',
    '"(?P<x>[a"',
    '"../../etc/passwd"',
    '"%s {} {0} ${HOME} {{ x }}"',
    '"\\u001b[31mred\\u001b[0m\\r\\n"',
)
ODD_KEYS = (
    "",
    " ",
    "Prompt",
    "__header__",
    "_note",
    "sample_id",
    "trial",
    "é",
    "a.b",
    "0",
    "\u202e",
)
ODD_BYTES = (
    b"\x00",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\r",
    b"\n",
    b"\r\n",
    b"\n\n\n",
    b"\xe2\x80\xa8",
    b"\x1a",
    b"\t",
    b"{",
    b"}",
    b"[",
    b'"',
    b"\\",
    b",",
    b"#",
    b"[" * 400,
)
ODD_YAML = (
    "!!python/object/apply:os.system [true]",
    "!!binary aGVsbG8=",
    "!!set {a, b}",
    "!!timestamp 2024-02-30",
    "2024-01-01",
    "2024-01-01 10:00:00",
    ".nan",
    "-.inf",
    "0o17",
    "1_000",
    "1:30",
    "*nowhere",
    "&here [*here]",
    "{? [1, 2] : x}",
    "{? {a: b} : x}",
    "yes",
    "~",
    "|\n  text",
    "'it''s'",
    "[1, 2",
    "{a: 1, a: 2}",
    "@x",
    "%TAG",
    '"\\ud800"',
    '"\\x00"',
    "[" * TOO_DEEP,
    "{a: " * 400,
    "1" * 5000,
)


# Bytes --------------------------------------------------------------------------------------


def flip_bits(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.randint(1, 4) if data else 0):
        changed[rng.randrange(len(changed))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def change_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + rng.randbytes(rng.randint(1, 4)) + data[at + rng.randint(0, 4) :]


def insert_odd_bytes(rng: random.Random, data: bytes) -> bytes:
    at = rng.choice((0, len(data), rng.randint(0, len(data))))
    return data[:at] + rng.choice(ODD_BYTES) + data[at:]


def cut_out(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at + rng.randint(1, 60) :]


def truncate(rng: random.Random, data: bytes) -> bytes:
    return data[: rng.randint(0, len(data))]


def repeat_part(rng: random.Random, data: bytes) -> bytes:
    at = rng.randint(0, len(data))
    return data[:at] + data[at : at + rng.randint(1, 300)] + data[at:]


def empty(rng: random.Random, data: bytes) -> bytes:
    return rng.choice((b"", b"\n", b" \t\r\n", b"\xef\xbb\xbf", b"\x00", b"null\n", b"\n\n{}\n"))


def other_line_ends(rng: random.Random, data: bytes) -> bytes:
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\n \n", b" \n", b"")))


def other_encoding(rng: random.Random, data: bytes) -> bytes:
    text = data.decode("utf-8", "replace")
    return text.encode(
        rng.choice(("utf-16", "utf-16-le", "utf-32", "utf-8-sig", "cp1252")), "replace"
    )


BYTES: tuple[Mutate, ...] = (
    flip_bits,
    change_bytes,
    insert_odd_bytes,
    cut_out,
    truncate,
    repeat_part,
    empty,
    other_line_ends,
    other_encoding,
)


# Lines --------------------------------------------------------------------------------------


def repeat_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    lines.insert(rng.randint(0, len(lines)), rng.choice(lines))
    return b"".join(lines)


def drop_line(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True) or [b""]
    lines.pop(rng.randrange(len(lines)))
    return b"".join(lines)


def shuffle_lines(rng: random.Random, data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    rng.shuffle(lines)
    return b"".join(lines)


def join_lines(rng: random.Random, data: bytes) -> bytes:
    at = [place for place, byte in enumerate(data) if byte == 10] or [0]
    place = rng.choice(at)
    return data[:place] + rng.choice((b"", b" ", b",")) + data[place + 1 :]


LINES: tuple[Mutate, ...] = (repeat_line, drop_line, shuffle_lines, join_lines)


# JSON ---------------------------------------------------------------------------------------


class Raw(str):
    """Text that is put into the file as it is."""


def spoil_json(rng: random.Random, data: bytes) -> bytes:
    """One line (or the whole file, where that is one value) with one of its values spoilt."""
    whole = _parsed(data)
    if whole is not None:
        return _dumped(rng, spoil_value(rng, whole)) + b"\n"
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines)) if lines else 0
    value = _parsed(lines[at]) if lines else None
    if value is None:
        return data
    lines[at] = _dumped(rng, spoil_value(rng, value)) + b"\n"
    return b"".join(lines)


def spoil_value(rng: random.Random, value: object) -> object:
    """The value with something else at a place somewhere in it."""
    places = list(_places(value))
    holder, key = rng.choice(places) if places else (None, None)
    if holder is None:
        return Raw(rng.choice(ODD_JSON))
    match rng.randrange(9):
        case 0:
            del holder[key]
        case 1:
            holder[key] = _kin(rng, holder[key])
        case 2:
            holder[key] = rng.choice(([holder[key]], {"value": holder[key]}, [holder[key]] * 2))
        case 3:
            other, other_key = rng.choice(places)
            holder[key], other[other_key] = other[other_key], holder[key]
        case 4 if isinstance(holder, dict):
            holder[rng.choice((*ODD_KEYS, str(key).upper(), f"{key}s"))] = holder.pop(key)
        case 5 if isinstance(holder, dict):
            holder[rng.choice((*ODD_KEYS, "unknown"))] = Raw(rng.choice(ODD_JSON))
        case _:
            holder[key] = Raw(rng.choice(ODD_JSON))
    return value


def repeat_key(rng: random.Random, data: bytes) -> bytes:
    """`{"a": 1, … "a": 2}`: two values under one name."""
    names = [name for name in (b'"prompt"', b'"metadata"', b'"name"', b'"key"') if name in data]
    if not names:
        return data.replace(b"{", b'{"sample_id": "s1", "sample_id": 2,', 1)
    name = rng.choice(names)
    return data.replace(name, name + b": " + rng.choice((b"1", b"{}", b'"x"')) + b"," + name, 1)


def _kin(rng: random.Random, value: object) -> object:
    """Nearly the same value, of another type or size."""
    match value:
        case bool():
            return rng.choice((int(value), str(value), None))
        case int() | float():
            larger = value * 10**9 if abs(value) < 1e200 else 0
            text = str(value) if abs(value) < 1e200 else "1e200"
            return rng.choice((text, -value, larger, larger + 0.5, [value]))
        case str():
            return rng.choice((value.upper(), f" {value}\n", value * 3, value[::-1], value[:1], 7))
        case list():
            return rng.choice((value[::-1], value * 3, value[:1], dict(enumerate(value)), []))
        case dict():
            return rng.choice((list(value.items()), list(value), {**value, "x": 1}, {}))
    return rng.choice((0, "", [], {}))


def _places(value: object) -> list[tuple[object, object]]:
    """(holder, key) of everything that stands inside."""
    found: list[tuple[object, object]] = []
    waiting, seen = [value], set()
    while waiting:
        holder = waiting.pop()
        if isinstance(holder, Raw) or id(holder) in seen:
            continue  # an alias of YAML may lead back to where it stands
        if isinstance(holder, dict | list):
            seen.add(id(holder))
        entries = enumerate(holder) if isinstance(holder, list) else ()
        for key, inner in holder.items() if isinstance(holder, dict) else entries:
            found.append((holder, key))
            waiting.append(inner)
    return found


def _parsed(data: bytes) -> object:
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


def _dumped(rng: random.Random, value: object) -> bytes:
    """JSON with the raw parts as they are; sometimes escaped, sometimes not, keys in any order."""
    marks: dict[str, str] = {}

    def marked(inner: object) -> object:
        match inner:
            case Raw():
                marks[f"raw-{len(marks)}-raw"] = str(inner)
                return f"raw-{len(marks) - 1}-raw"
            case dict():
                return {str(key): marked(entry) for key, entry in inner.items()}
            case list() | tuple():
                return [marked(entry) for entry in inner]
        return inner

    text = json.dumps(marked(value), ensure_ascii=rng.random() < 0.5, sort_keys=rng.random() < 0.2)
    for mark, raw in marks.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


JSON: tuple[Mutate, ...] = (*(spoil_json,) * 12, repeat_key)


# YAML ---------------------------------------------------------------------------------------


def spoil_yaml(rng: random.Random, data: bytes) -> bytes:
    """The settings with one value that is odd JSON (which is YAML too) or odd YAML."""
    try:
        value = yaml.safe_load(data)
        places = list(_places(value))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return data
    if not places:
        return rng.choice((*ODD_YAML, *ODD_JSON)).encode("utf-8", "surrogatepass")
    holder, key = rng.choice(places)
    match rng.randrange(5):
        case 0:
            holder[key] = _kin(rng, holder[key])
        case 1 if isinstance(holder, dict):
            holder[rng.choice((*ODD_KEYS, f"{key}s", 7, None, True, 1.5))] = holder.pop(key)
        case _:
            holder[key] = "put-it-here"
    text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=False)
    return text.replace("put-it-here", rng.choice((*ODD_YAML, *ODD_JSON))).encode(
        "utf-8", "surrogatepass"
    )


def spoil_layout(rng: random.Random, data: bytes) -> bytes:
    """Documents, anchors, tabs and other things that stand between the values."""
    piece = rng.choice(
        (
            b"---\n",
            b"...\n",
            b"\t",
            b"- x\n",
            b"? [a]\n: b\n",
            b"<<: *x\n",
            b"a: &a {b: *a}\n",
            b"# \xff\n",
        )
    )
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randint(0, len(lines)), piece)
    return b"".join(lines)


YAML: tuple[Mutate, ...] = (*(spoil_yaml,) * 10, spoil_layout, spoil_layout)


def mutated(rng: random.Random, data: bytes, ways: tuple[Mutate, ...]) -> bytes:
    """Mostly one change, sometimes a few."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(ways)(rng, data)
    return data


LINE_FILE = (*BYTES, *LINES, *LINES, *JSON, *JSON)
JSON_FILE = (*BYTES, *JSON, *JSON)
YAML_FILE = (*BYTES, *LINES, *YAML, *YAML)
