"""Ways to spoil JSON: one value, wherever it stands."""

import json
import random

from tests.fuzz.odd_values import ODD_JSON, ODD_KEYS


class Raw(str):
    """Text that is put into the file as it is."""


def spoil_json(rng: random.Random, data: bytes) -> bytes:
    """One line (or the whole file, where that is one value) with one of its values spoilt."""
    whole = _parsed(data)
    if whole is not None:
        indent = 1 if b"\n" in data.strip() else None
        return _dumped(rng, spoil_value(rng, whole), indent) + b"\n"
    lines = data.splitlines(keepends=True)
    at = rng.randrange(len(lines)) if lines else 0
    value = _parsed(lines[at]) if lines else None
    if value is None:
        return data
    lines[at] = _dumped(rng, spoil_value(rng, value)) + b"\n"
    return b"".join(lines)


def spoil_value(rng: random.Random, value: object) -> object:
    """The value with something else at a place somewhere in it."""
    places = list(places_in(value))
    holder, key = rng.choice(places) if places else (None, None)
    if holder is None:
        return Raw(rng.choice(ODD_JSON))
    match rng.randrange(9):
        case 0:
            del holder[key]
        case 1:
            holder[key] = kin(rng, holder[key])
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


def kin(rng: random.Random, value: object) -> object:
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


def places_in(value: object) -> list[tuple[object, object]]:
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


def _dumped(rng: random.Random, value: object, indent: int | None = None) -> bytes:
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

    escaped, ordered = rng.random() < 0.5, rng.random() < 0.2
    text = json.dumps(marked(value), ensure_ascii=escaped, sort_keys=ordered, indent=indent)
    for mark, raw in marks.items():
        text = text.replace(f'"{mark}"', raw)
    return text.encode("utf-8", "surrogatepass")


JSON = (*(spoil_json,) * 12, repeat_key)
