"""Accepted values become an expected call: the first of each argument stands there, the others
are accepted, and an empty string among them says that it may be left out."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice, product

from callmark.core.jsontext import Json
from callmark.datasets.importing.desk import Object

MAX_SPELLINGS = 64  # of one alternative that holds alternatives itself
_LEFT_OUT = ""


class Alternatives:
    """The accepted values by JSON pointer. `cut`: there were more spellings than are kept."""

    def __init__(self) -> None:
        self.accept: dict[str, list[Json]] = {}
        self.cut = False

    def choose(self, values: Json, pointer: str) -> tuple[bool, Json]:
        """(whether a value stands there, the first one); the others go to `accept`."""
        listed = values if isinstance(values, list) else [values]
        # A null argument is an absent one wherever calls are compared.
        absent = [_LEFT_OUT, None] if _LEFT_OUT in listed else [None] if None in listed else []
        given = [value for value in listed if value not in (_LEFT_OUT, None)]
        others = [spelling for value in given[1:] for spelling in self._spellings(value)]
        others += absent
        if others:
            self.accept[pointer] = others
        return (True, self._first(given[0], pointer)) if given else (False, None)

    def _first(self, value: Json, pointer: str) -> Json:
        if isinstance(value, dict):
            return self.members(value, pointer)
        if isinstance(value, list):
            return [self._first(entry, f"{pointer}/{at}") for at, entry in enumerate(value)]
        return value

    def members(self, accepted: Object, pointer: str = "") -> Object:
        made: Object = {}
        for key, values in accepted.items():
            stands, value = self.choose(values, f"{pointer}/{_escaped(key)}")
            if stands:
                made[key] = value
        return made

    def _spellings(self, value: Json) -> list[Json]:
        found = list(islice(_all_spellings(value), MAX_SPELLINGS + 1))
        self.cut = self.cut or len(found) > MAX_SPELLINGS
        return found[:MAX_SPELLINGS]


def expected_call(name: str, accepted: Object, schema: Json, alternatives: Alternatives) -> Object:
    """One entry of `call_sequence`."""
    arguments = alternatives.members(accepted)
    properties = schema.get("properties") if isinstance(schema, dict) else None
    accept, optional = {}, []
    for pointer, values in alternatives.accept.items():
        key = _top(pointer)
        if key is not None and key in arguments and None in values:
            optional.append(key)
            values = [value for value in values if value is not None]
            if not _is_text(properties, key):
                values = [value for value in values if value != _LEFT_OUT]
        if values:
            accept[pointer] = values
    call: Object = {"name": name, "arguments": arguments}
    if accept:
        call["accept"] = accept
    return {**call, "optional": optional} if optional else call


def _all_spellings(value: Json) -> Iterator[Json]:
    if isinstance(value, dict):
        choices = [list(islice(_member(values), MAX_SPELLINGS + 1)) for values in value.values()]
        for chosen in product(*choices):
            yield {key: one for key, one in zip(value, chosen, strict=True) if one is not _LEFT_OUT}
    elif isinstance(value, list):
        parts = [list(islice(_all_spellings(entry), MAX_SPELLINGS + 1)) for entry in value]
        yield from (list(chosen) for chosen in product(*parts))
    else:
        yield value


def _member(values: Json) -> Iterator[Json]:
    for value in values if isinstance(values, list) else [values]:
        if value == _LEFT_OUT:
            yield _LEFT_OUT
        else:
            yield from _all_spellings(value)


def _is_text(properties: Json, key: str) -> bool:
    schema = properties.get(key) if isinstance(properties, dict) else None
    return isinstance(schema, dict) and schema.get("type") == "string"


def _escaped(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _top(pointer: str) -> str | None:
    """The argument that a pointer names, if it names nothing inside of one."""
    first, rest = pointer[1:].partition("/")[::2]
    return None if rest else first.replace("~1", "/").replace("~0", "~")
