"""Cases for a user's own tools: prompts that name every argument, made from the tools' schemas.

A number and a seed give the same cases everywhere. Each says in words which values the call should
have; enums, required and optional arguments take turns, other tools of the registry stand beside
the right one, and now and then nothing is to be called at all."""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random

import msgspec

from callmark.calls.registry import Registry, ToolSpec
from callmark.calls.schema import compile_once, schema_errors
from callmark.errors import UsageError
from callmark.probe.spec import ToolUseCase
from callmark.records.jsontext import Json, canonical_json, want_list, want_object

MOST_OTHERS = 3
NO_CALL_EVERY = 8  # one case of so many asks for no call
_TRIES = 20
_WORDS = "rope sail anchor harbour lantern compass tide pilot cargo beacon mast hull".split()
_FORMATS = {
    "date": "2024-0{m}-1{d}",
    "date-time": "2024-0{m}-1{d}T0{d}:30:00Z",
    "time": "0{d}:30:00Z",
    "email": "{w}{d}@example.com",
    "uri": "https://example.org/{w}/{d}",
    "url": "https://example.org/{w}/{d}",
    "uuid": "00000000-0000-4000-8000-00000000000{d}",
    "ipv4": "192.0.2.{d}",
    "hostname": "{w}.example.org",
}
_ASKING = (
    "{what} {values}",
    "Please do this: {what} {values}",
    "I need the following. {what} {values} Use the right tool.",
    "Call {name}. {values}",
)
_NO_CALL = (
    "Thank you, that was all I needed. See you on day {n}.",
    "Without looking anything up: is {n} an even number?",
    "Write one friendly sentence about the word {w}.",
    "Say the word {w} backwards, nothing else.",
    "What do you think of the name {w} for ship number {n}? Just your opinion.",
)


class CasesMade(msgspec.Struct, frozen=True, kw_only=True):
    """`left_out`: tools for which no valid arguments were found, and why."""

    cases: tuple[ToolUseCase, ...]
    left_out: dict[str, str]


def make_cases(registry: Registry, total: int, seed: int) -> CasesMade:
    """So many cases over all tools of a registry, in turn."""
    if total < 1:
        raise UsageError(f"--cases: {total}: at least one case is needed")
    usable: list[ToolSpec] = []
    left_out: dict[str, str] = {}
    for spec in sorted(registry.specs, key=lambda one: one.name):
        why = _why_not(spec)
        if why is None:
            usable.append(spec)
        else:
            left_out[spec.name] = why
    if not usable:
        what = "; ".join(f"{name}: {why}" for name, why in left_out.items()) or "it holds no tools"
        raise UsageError(f"--registry: no tool can be called with made-up arguments: {what}")
    tools = {one.name: registry.openai_tools([one.name])[0] for one in usable}
    cases = tuple(_case(usable, tools, number, seed) for number in range(total))
    return CasesMade(cases=cases, left_out=left_out)


def cases_text(cases: Sequence[ToolUseCase]) -> str:
    return "".join(f"{canonical_json(_plain(case))}\n" for case in cases)


def _plain(case: ToolUseCase) -> dict[str, Json]:
    made = want_object(msgspec.to_builtins(case))
    return {key: value for key, value in made.items() if key != "other_tools" or value}


def _case(
    usable: Sequence[ToolSpec], tools: dict[str, dict[str, Json]], number: int, seed: int
) -> ToolUseCase:
    # A stream of its own for each: more cases leave the first ones as they are.
    random = Random(f"{seed}/{number}")  # noqa: S311
    # One after the other, and not the same tools at the places where no call is asked for.
    spec = usable[(number + number // NO_CALL_EVERY) % len(usable)]
    others = [one.name for one in usable if one.name != spec.name]
    beside = random.sample(others, min(len(others), number % (MOST_OTHERS + 1)))
    no_call = number % NO_CALL_EVERY == NO_CALL_EVERY - 1
    filled = {"n": random.randrange(10, 1000), "w": random.choice(_WORDS)}
    prompt = _NO_CALL[number // NO_CALL_EVERY % len(_NO_CALL)].format(**filled)
    if not no_call:
        prompt = _prompt(spec, arguments_for(spec, random, number), random)
    return ToolUseCase(
        prompt=prompt,
        tool_spec=tools[spec.name],
        other_tools=tuple(tools[name] for name in sorted(beside)),
        gold_tool_name=None if no_call else spec.name,
    )


def arguments_for(spec: ToolSpec, random: Random, number: int = 0) -> dict[str, Json] | None:
    """Arguments that the tool's schema accepts: the required ones, in every second case optional
    ones too; None: none were found."""
    schema = want_object(spec.parameters)
    validator = compile_once(schema)
    for attempt in range(_TRIES):
        # What the optional ones break is tried without them.
        made = _object(schema, random, with_optional=number % 2 == 1 and attempt < _TRIES // 2)
        if isinstance(made, dict) and not schema_errors(validator, made):
            return made
    return None


def _why_not(spec: ToolSpec) -> str | None:
    if arguments_for(spec, Random(spec.name)) is None:  # noqa: S311
        return "its schema asks for values that cannot be made up; give it `examples`"
    return None


def _prompt(spec: ToolSpec, arguments: dict[str, Json] | None, random: Random) -> str:
    told = (spec.description or "").strip() or f"Use {spec.name}."
    what = re.split(r"(?<=[.!?])\s", told, maxsplit=1)[0]
    values = "; ".join(f"{key}: {_spoken(value)}" for key, value in (arguments or {}).items())
    given = f"With these values: {values}." if values else "It needs no values."
    return random.choice(_ASKING).format(what=what, values=given, name=spec.name)


def _spoken(value: Json) -> str:
    return canonical_json(value)


def _value(schema: Json, random: Random) -> Json:
    """A value that fits, as far as its schema is plain; whether it does is checked afterwards."""
    if not isinstance(schema, dict):
        return random.choice(_WORDS)
    for key in ("examples", "enum"):
        choices = [one for one in want_list(schema.get(key)) if one is not None]
        if choices:
            return random.choice(choices)
    if "const" in schema:
        return schema["const"]
    for key in ("anyOf", "oneOf", "allOf"):
        parts = [one for one in want_list(schema.get(key)) if _type(one) != "null"]
        if parts:
            return _value({**schema, **want_object(parts[0]), key: None}, random)
    match _type(schema):
        case "integer" | "number":
            return _number(schema, random)
        case "boolean":
            return random.random() < 0.5
        case "array":
            least = _bound(schema, "minItems", 1)
            return [_value(schema.get("items"), random) for _ in range(max(1, least))]
        case "object":
            return _object(schema, random, with_optional=False)
        case _:
            return _text(schema, random)


def _type(schema: Json) -> str | None:
    given = schema.get("type") if isinstance(schema, dict) else None
    names = given if isinstance(given, list) else [given]
    return next((one for one in names if isinstance(one, str) and one != "null"), None) or (
        "null" if names == ["null"] else None
    )


def _object(schema: dict[str, Json], random: Random, *, with_optional: bool) -> Json:
    for key in ("anyOf", "oneOf"):
        if parts := [one for one in want_list(schema.get(key)) if isinstance(one, dict)]:
            schema = _join(schema, random.choice(parts))
    for part in want_list(schema.get("allOf")):
        schema = _join(schema, want_object(part))
    properties = want_object(schema.get("properties"))
    required = [str(one) for one in want_list(schema.get("required"))]
    optional = [name for name in properties if name not in required] if with_optional else []
    kept = random.sample(optional, random.randint(1, len(optional))) if optional else []
    short = _bound(schema, "minProperties", 0) - len(required) - len(kept)
    spare = [name for name in properties if name not in required and name not in kept]
    kept += random.sample(spare, min(len(spare), max(0, short)))
    order = [name for name in properties if name in required or name in kept]
    names = dict.fromkeys([*order, *required])
    return {name: _value(properties.get(name), random) for name in names}


def _join(schema: dict[str, Json], part: dict[str, Json]) -> dict[str, Json]:
    """An object's schema with what one of its alternatives adds."""
    return {
        **schema,
        "properties": {
            **want_object(schema.get("properties")),
            **want_object(part.get("properties")),
        },
        "required": [*want_list(schema.get("required")), *want_list(part.get("required"))],
    }


def _number(schema: dict[str, Json], random: Random) -> Json:
    step = schema.get("multipleOf")
    unit = step if isinstance(step, int) and step > 0 else 1
    low = _bound(schema, "minimum", _bound(schema, "exclusiveMinimum", 0) + 1)
    high = _bound(schema, "maximum", _bound(schema, "exclusiveMaximum", low + 100) - 1)
    first = -(-low // unit)
    return unit * random.randint(first, max(first, high // unit))


def _text(schema: dict[str, Json], random: Random) -> str:
    word, digits = random.choice(_WORDS), {"m": random.randint(1, 9), "d": random.randint(0, 9)}
    form = _FORMATS.get(str(schema.get("format")))
    if form is not None:
        return form.format(w=word, **digits)
    least, most = _bound(schema, "minLength", 1), _bound(schema, "maxLength", 40)
    text = f"{word} {random.choice(_WORDS)}"
    while len(text) < least:
        text += f" {random.choice(_WORDS)}"
    return text[:most].strip() if most >= least else text


def _bound(schema: dict[str, Json], key: str, default: int) -> int:
    found = schema.get(key)
    if isinstance(found, bool) or not isinstance(found, int | float):
        return default
    return int(found)
