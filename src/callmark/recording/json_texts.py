"""Every text of a JSON value, and the same value with its texts changed."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from callmark.core.jsontext import Json
from callmark.core.trace import json_inside

# (text, the key it stands under) -> the text that takes its place
ChangeText = Callable[[str, str], str]
ChangeNumber = Callable[[int | float, str], Json]


def labelled_leaves(value: Json, label: str = "") -> Iterator[tuple[str, Json]]:
    """(key above, leaf) of texts and numbers; also what a text spells out as JSON, and keys."""
    if isinstance(value, dict):
        for name, entry in value.items():
            yield "", name
            if not _is_binary(value, name):
                yield from labelled_leaves(entry, name)
    elif isinstance(value, list):
        for entry in value:
            yield from labelled_leaves(entry, label)
    elif isinstance(value, str):
        yield label, value
        inside = json_inside(value)
        if inside is not value:
            yield from labelled_leaves(inside, label)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield label, value


def with_changes(value: Json, text: ChangeText, number: ChangeNumber, label: str = "") -> Json:
    """The value with every text, key and number changed; bytes in base64 stay as they are."""
    if isinstance(value, dict):
        return {
            text(name, ""): entry
            if _is_binary(value, name)
            else with_changes(entry, text, number, name)
            for name, entry in value.items()
        }
    if isinstance(value, list):
        return [with_changes(entry, text, number, label) for entry in value]
    if isinstance(value, str):
        return text(value, label)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number(value, label)
    return value


def _is_binary(holder: dict[str, Json], name: str) -> bool:
    """`data` of a picture or sound, `blob` of a resource."""
    if name == "data":
        return holder.get("type") in ("image", "audio")
    return name == "blob" and "uri" in holder
