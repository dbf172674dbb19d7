"""BFCL's verdict on calls, as its rules are published: what the importer's verdicts are compared
to. It is strict about types and lenient about texts."""

from __future__ import annotations

import re
from typing import Any

Call = tuple[str, dict[str, Any]]

_TYPES = {
    "string": str, "integer": int, "float": float, "number": float, "boolean": bool, "array": list,
    "tuple": list, "dict": dict, "object": dict,
}  # fmt: skip
_IGNORED = re.compile(r"[ ,./\-_*^]")


def accepts(row: dict, calls: list[Call]) -> bool:
    """Every accepted call is made once, in any order, and no other."""
    functions = {function["name"]: function for function in row["functions"]}
    left = list(calls)
    for accepted in row["ground_truth"]:
        ((name, values),) = accepted.items()
        made = next(
            (c for c in left if c[0] == name and _fits(functions[name], c[1], values)), None
        )
        if made is None:
            return False
        left.remove(made)
    return not left


def _fits(function: dict, given: dict, accepted: dict) -> bool:
    parameters = function["parameters"]
    properties = parameters.get("properties", {})
    if any(key not in given for key in parameters.get("required", [])):
        return False
    if any("" not in values and key not in given for key, values in accepted.items()):
        return False
    return all(
        key in properties and key in accepted and _value_fits(value, accepted[key], properties[key])
        for key, value in given.items()
    )


def _value_fits(value: Any, accepted: list, schema: dict) -> bool:
    kind = _type_of(schema)
    if kind is float and type(value) is int:
        value = float(value)
    # An accepted value of another type than the schema's stands for a variable.
    known = next((type(one) for one in accepted if one != ""), None)
    if type(value) is not kind:
        return type(value) is known and value in accepted
    if known is not None and known is not kind:
        return value in accepted
    if kind is dict:
        return any(_dict_fits(value, one) for one in accepted if one != "")
    if kind is list:
        return any(_list_fits(value, one, schema) for one in accepted if isinstance(one, list))
    return _plain(value) in [_plain(one) for one in accepted]


def _list_fits(value: list, accepted: list, schema: dict) -> bool:
    if _type_of(schema.get("items") or {}) is dict:
        pairs = zip(value, accepted, strict=False)
        return len(value) == len(accepted) and all(_dict_fits(*pair) for pair in pairs)
    same_types = [type(one) for one in value] == [type(one) for one in accepted]
    return same_types and list(map(_plain, value)) == list(map(_plain, accepted))


def _dict_fits(value: dict, accepted: dict) -> bool:
    known = all(
        key in accepted and _plain(one) in list(map(_plain, accepted[key]))
        for key, one in value.items()
    )
    return known and all("" in values or key in value for key, values in accepted.items())


def _type_of(schema: dict) -> type | None:
    return _TYPES.get(schema.get("x-bfcl-type") or schema.get("type") or "")


def _plain(value: Any) -> Any:
    return _IGNORED.sub("", value).lower().replace("'", '"') if isinstance(value, str) else value
