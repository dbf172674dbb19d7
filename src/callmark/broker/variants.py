"""How runners and models write one and the same call: a table of ways that must not matter."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import msgspec

from callmark.calls.registry import KeyRules
from callmark.core.jsontext import Json, canonical_json

ODD_SPACES = "\t\u00a0\u3000\n"

_LARGEST_EXACT_FLOAT = 2**53


class Written(msgspec.Struct, frozen=True):
    """A call as somebody writes it, and the rules of its tool."""

    name: str
    arguments: dict[str, Json]
    rules: KeyRules


# None: this call cannot be written in that way.
Variant = Callable[[Written], Written | None]


def _as_recorded(call: Written) -> Written | None:
    return call


def _upper_case_query(call: Written) -> Written | None:
    return _with_queries(call, _upper)


def _odd_spaces_in_query(call: Written) -> Written | None:
    return _with_queries(call, _spread)


def _null_arguments(call: Written) -> Written | None:
    unused = "unused"
    while unused in call.arguments:
        unused += "_"
    return _with_arguments(call, {**call.arguments, unused: None})


def _ignored_arguments(call: Written) -> Written | None:
    ignored = dict.fromkeys(sorted(call.rules.ignored), "anything")
    return _with_arguments(call, {**call.arguments, **ignored}) if ignored else None


def _defaults_left_out(call: Written) -> Written | None:
    defaults = call.rules.defaults
    kept = {
        name: value
        for name, value in call.arguments.items()
        if name not in defaults or canonical_json(value) != canonical_json(defaults[name])
    }
    return _with_arguments(call, kept) if len(kept) < len(call.arguments) else None


def _numbers_as_floats(call: Written) -> Written | None:
    return _with_leaves(call, _as_float)


def _decomposed_text(call: Written) -> Written | None:
    return _with_leaves(call, _decomposed)


def _other_key_order(call: Written) -> Written | None:
    turned = _reordered(call.arguments)
    return _with_arguments(call, turned) if repr(turned) != repr(call.arguments) else None


def _underscores_in_name(call: Written) -> Written | None:
    return _renamed(call, call.name.replace(".", "_").replace("-", "_"))


def _dots_in_name(call: Written) -> Written | None:
    return _renamed(call, call.name.replace("_", ".").replace("-", "."))


VARIANTS: dict[str, Variant] = {
    "as_recorded": _as_recorded,
    "upper_case_query": _upper_case_query,
    "odd_spaces_in_query": _odd_spaces_in_query,
    "null_arguments": _null_arguments,
    "ignored_arguments": _ignored_arguments,
    "defaults_left_out": _defaults_left_out,
    "numbers_as_floats": _numbers_as_floats,
    "decomposed_text": _decomposed_text,
    "other_key_order": _other_key_order,
    "underscores_in_name": _underscores_in_name,
    "dots_in_name": _dots_in_name,
}


def _with_arguments(call: Written, arguments: dict[str, Json]) -> Written:
    return Written(call.name, arguments, call.rules)


def _renamed(call: Written, name: str) -> Written | None:
    return None if name == call.name else Written(name, call.arguments, call.rules)


def _with_queries(call: Written, change: Callable[[str], str]) -> Written | None:
    changed = {
        name: change(value)
        for name in sorted(call.rules.folded)
        if isinstance(value := call.arguments.get(name), str)
    }
    return _with_arguments(call, {**call.arguments, **changed}) if changed else None


def _with_leaves(call: Written, change: Callable[[Json], Json]) -> Written | None:
    changed = _deep(call.arguments, change)
    return _with_arguments(call, changed) if repr(changed) != repr(call.arguments) else None


def _deep(value: Json, change: Callable[[Json], Json]) -> Json:
    if isinstance(value, dict):
        return {name: _deep(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_deep(inner, change) for inner in value]
    return change(value)


def _reordered(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _reordered(value[name]) for name in reversed(value)}
    if isinstance(value, list):
        return [_reordered(inner) for inner in value]
    return value


def _upper(text: str) -> str:
    # Only letters that lose nothing by it: the upper case of a dotless ı is the one of i.
    return "".join(
        sign.upper() if sign.upper().casefold() == sign.casefold() else sign for sign in text
    )


def _spread(text: str) -> str:
    return f"{ODD_SPACES}{text.replace(' ', ODD_SPACES)}{ODD_SPACES}"


def _as_float(value: Json) -> Json:
    whole = isinstance(value, int) and not isinstance(value, bool)
    return float(value) if whole and abs(value) <= _LARGEST_EXACT_FLOAT else value


def _decomposed(value: Json) -> Json:
    return unicodedata.normalize("NFD", value) if isinstance(value, str) else value
