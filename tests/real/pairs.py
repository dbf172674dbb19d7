"""Value pairs out of real episodes: a value as people quote it, and the same value altered."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class Pair(NamedTuple):
    episode: str
    results: tuple[object, ...]
    leaf: object
    quoted: str
    altered: str
    how: str
    excluded: bool  # the altered form is another value of the evidence


FRAMES = (
    "The value is {}.",
    "It comes to {} in total",
    "See {} for this one",
    "Here: **{}**",
    "{}",
)


def episodes(folder: Path) -> Iterator[tuple[str, list[object]]]:
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_text("utf-8").splitlines():
            episode = json.loads(line)
            results = [m["content"] for m in episode["messages"] if m["role"] == "tool"]
            yield episode["id"], [_parsed(result) for result in results]


def _parsed(text: object) -> object:
    try:
        return json.loads(text)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return text


def leaves(value: object) -> Iterator[object]:
    if isinstance(value, dict):
        for entry in value.values():
            yield from leaves(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from leaves(entry)
    elif value is not None and not isinstance(value, bool):
        yield value


ID = re.compile(r"#?[A-Za-z]+(?:_[A-Za-z]+)*_?\d{2,}")


def quotable(leaf: object) -> bool:
    if isinstance(leaf, int | float):
        return abs(leaf) >= 10
    return isinstance(leaf, str) and bool(ID.fullmatch(leaf) or re.fullmatch(r"\d{4,}", leaf))


def number_forms(leaf: int | float, rng: random.Random) -> str:
    plain = f"{leaf}" if isinstance(leaf, int) else repr(leaf)
    grouped = f"{leaf:,}"
    return rng.choice(
        [plain, f"${grouped}", grouped, f"\u202f${grouped}", f"{grouped} USD", f"€{plain}"]
    )


def id_forms(leaf: str, rng: random.Random) -> str:
    forms = [leaf, leaf.replace("_", " "), f"`{leaf}`", leaf.upper() if "_" not in leaf else leaf]
    match = re.fullmatch(r"#?([A-Za-z]+)(\d+)", leaf)
    if match:
        forms += [f"{match[1]} {match[2]}", f"{match[1]}-{match[2]}", leaf.lstrip("#")]
    return rng.choice(forms)


def altered_number(leaf: int | float, rng: random.Random) -> tuple[int | float | None, str]:
    text = repr(abs(leaf))
    how = rng.choice(["changed", "added", "dropped", "sign", "scale"])
    if how == "sign":
        return -leaf, how
    if how == "scale":
        factor = rng.choice([10, 100, 1000])
        return (leaf * factor if rng.random() < 0.5 else leaf / factor), how
    return _number(alter_digits(text, how, rng)), how


def _number(text: str) -> int | float | None:
    if text.startswith("0") and not text.startswith("0."):
        return None
    return float(text) if "." in text else int(text)


def alter_digits(text: str, how: str, rng: random.Random) -> str:
    places = [i for i, char in enumerate(text) if char.isdigit()]
    place = rng.choice(places)
    if how == "dropped":
        return text[:place] + text[place + 1 :]
    digit = rng.choice([d for d in "123456789" if d != text[place]])
    return text[:place] + digit + text[place + (how == "changed") :]


def pairs(folder: Path, seed: int, per_episode: int = 5) -> Iterator[Pair]:
    rng = random.Random(seed)
    for name, results in episodes(folder):
        candidates = sorted({repr(x): x for x in leaves(results) if quotable(x)}.items())
        rng.shuffle(candidates)
        for _, leaf in candidates[:per_episode]:
            frame = rng.choice(FRAMES)
            if isinstance(leaf, str):
                digits = re.search(r"\d+", leaf)
                how = rng.choice(["changed", "added", "dropped"])
                wrong = alter_digits(leaf, how, rng)
                assert digits
                state = rng.getstate()
                quoted = id_forms(leaf, rng)
                rng.setstate(state)
                altered = id_forms(wrong, rng)
            else:
                value, how = altered_number(leaf, rng)
                if value is None:
                    continue
                state = rng.getstate()
                quoted = number_forms(leaf, rng)
                rng.setstate(state)
                altered = number_forms(value, rng)
            taken = _is_taken(wrong if isinstance(leaf, str) else value, results)
            quoted, altered = frame.format(quoted), frame.format(altered)
            yield Pair(name, tuple(results), leaf, quoted, altered, how, taken)


def _is_taken(altered: object, results: list[object]) -> bool:
    """By a means of its own: all digits of the altered form stand in the evidence as a whole."""
    for leaf in leaves(results):
        if isinstance(altered, str):
            squeezed = re.sub(r"[\W_]", "", str(leaf)).lower()
            if re.sub(r"[\W_]", "", altered).lower() == squeezed:
                return True
        elif isinstance(leaf, int | float):
            if abs(leaf - altered) <= 1e-6:  # type: ignore[operator]
                return True
        else:
            found = re.findall(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\w])", str(leaf))
            if any(abs(float(each) - altered) <= 1e-6 for each in found):  # type: ignore[operator]
                return True
    return False
