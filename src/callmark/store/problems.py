"""What a validator says, as one short sentence with the field in front: `field: what is wrong`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, Literal, get_args, get_origin

import jsonschema_rs
import msgspec

from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json
from callmark.records.keys import hint

MAX_PROBLEMS = 20
_SHOWN = 60
_PLAIN_KEY = re.compile(r"[\w.-]{1,60}")
_WORDS = {  # in the order in which a message names them
    "string": "a string",
    "array": "a list",
    "object": "an object",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
}  # "null" stands for absent: it is never what a person is told to write
_MSGSPEC_WORDS = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
}
_BOUNDS = {">=": "of at least", "<=": "of at most", ">": "above", "<": "below"}


class Problems:
    """Collects `file:line: field: what is wrong` until there are enough to show."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._found: list[str] = []

    def add(self, line: int, what: str | Iterable[str]) -> None:
        for sentence in (what,) if isinstance(what, str) else what:
            if len(self._found) < MAX_PROBLEMS:
                self._found.append(f"{self._name}:{line}: {sentence}")

    @property
    def enough(self) -> bool:
        return len(self._found) == MAX_PROBLEMS

    def raise_if_any(self) -> None:
        if self._found:
            raise BadInput(self._found)


def schema_problems(validator: jsonschema_rs.Draft202012Validator, value: Json) -> list[str]:
    """Everything that the schema says against a value, `[]` if nothing."""
    if validator.is_valid(value):
        return []
    return [_schema_problem(error) for error in validator.iter_errors(value)]


def typed_problem(error: msgspec.ValidationError) -> str:
    """A decoding error of a typed record, for example `turns[0].end: must be a whole number`."""
    text, _, path = str(error).partition(" - at `$")
    missing = re.fullmatch(r"Object missing required field `(.+)`", text)
    field = path.rstrip("`").removeprefix(".")
    if missing:
        return f"{f'{field}.' if field else ''}{missing[1]}: is missing"
    return _join(field, _plain(text))


def show_value(value: Json) -> str:
    """A value as a message shows it: JSON, cut if long."""
    try:
        text = canonical_json(value)
    except (ValueError, TypeError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def join_or(words: Sequence[str]) -> str:
    """`a, b or c`."""
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def word_problem(options: Sequence[str], value: Json) -> str:
    """What is wrong with a value where only certain words are right; "" if nothing."""
    if not options or value in options:
        return ""
    meant = hint(value, options) if isinstance(value, str) else ""
    return f"must be {join_or(options)}, not {show_value(value)}{meant}"


def words_of(kind: Any) -> tuple[str, ...]:
    """The words that a type allows, if it allows nothing else but null."""
    if get_origin(kind) is Literal:
        options = get_args(kind)
        return options if all(isinstance(option, str) for option in options) else ()
    parts = [part for part in get_args(kind) if part is not type(None)]
    return words_of(parts[0]) if len(parts) == 1 and len(get_args(kind)) == 2 else ()


def _schema_problem(error: jsonschema_rs.ValidationError) -> str:
    field = field_path(error.instance_path)
    kind = error.kind.as_dict()
    match error.kind.name:
        case "required":
            return f"{field_path([*error.instance_path, kind['property']])}: is missing"
        case "type":
            wanted = [word for name, word in _WORDS.items() if name in kind["types"]]
            return _join(field, f"must be {join_or(wanted)}, not {show_value(error.instance)}")
        case "enum":
            options = [str(option) for option in kind["options"] if option is not None]
            return _join(field, word_problem(options, error.instance))
        case "minLength" | "minItems":
            return _join(field, "must not be empty")
        case "minimum":
            return _join(
                field, f"must be at least {kind['limit']}, not {show_value(error.instance)}"
            )
        case "maximum":
            return _join(
                field, f"must be at most {kind['limit']}, not {show_value(error.instance)}"
            )
        case "additionalProperties":
            return _join(
                field, f"unknown field {join_or([quote_name(name) for name in kind['unexpected']])}"
            )
    text = error.message
    return _join(field, text if len(text) <= 160 else f"{text[:80]} … {text[-79:]}")


def field_path(path: Sequence[str | int]) -> str:
    """`metadata.call_sequence[0].name`."""
    parts = (f"[{part}]" if isinstance(part, int) else f".{quote_name(part)}" for part in path)
    return "".join(parts).removeprefix(".")


def quote_name(name: str) -> str:
    """A name as it is, or quoted where it could be taken for something else."""
    return name if _PLAIN_KEY.fullmatch(name) else show_value(name)


def _join(field: str, what: str) -> str:
    sentence = f"{field}: {what}" if field else what
    return " ".join(sentence.splitlines())  # one problem, one line, whatever it quotes


def _plain(text: str) -> str:
    if got := re.fullmatch(r"Expected (.+), got `(.+)`", text):
        wanted = [name for name in re.findall(r"\w+", got[1]) if name in _MSGSPEC_WORDS]
        names = [_MSGSPEC_WORDS[name] for name in wanted if name != "null"] or [got[1]]
        return f"must be {join_or(names)}, not {_MSGSPEC_WORDS.get(got[2], got[2])}"
    if bound := re.fullmatch(r"Expected `(\w+)` (>=|<=|>|<) (\S+)", text):
        what = _MSGSPEC_WORDS.get(bound[1], bound[1])
        return f"must be {what} {_BOUNDS[bound[2]]} {bound[3]}"
    return text[:1].lower() + text[1:].replace("`", "")
