"""What a line of a dataset may be: the header in its two forms, or an item of the schema."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache, lru_cache
from typing import get_type_hints

import jsonschema_rs
import msgspec

from callmark.calls.registry import Registry
from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json, parse_json, want_list, want_object
from callmark.records.problems import (
    KeySet,
    field_path,
    is_own,
    meant_key,
    schema_problems,
    show_value,
    typed_problem,
    word_problem,
    words_of,
)
from callmark.records.samples import Header, check_problems, unknown_keys
from callmark.resources import default_config, schema

HEADER_KEY = "__header__"
ASK_CLARIFY = "ask_clarify"
YOUR_OWN = " (a key of your own starts with x_)"

Path = tuple[str | int, ...]


class BadHeader(BadInput):
    """`field: what is wrong`, still without its place."""


class KeysOfLine(msgspec.Struct, frozen=True):
    """What is to be said of the unknown keys of a line: `slips` are refused, `kept` are the
    owner's (without the numbers of list entries) and named once."""

    slips: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()


_ALL_KNOWN = KeysOfLine()


def is_header(line: dict[str, Json]) -> bool:
    """`{"__header__": true, …}` or `{"__header__": {…}}`. Any other value that is not false is
    refused: read as a header by one program and as an item by another it would change hashes."""
    mark = line.get(HEADER_KEY)
    if mark is True or isinstance(mark, dict):
        return True
    if mark:
        raise BadHeader(f"{HEADER_KEY}: must be true or an object, not {show_value(mark)}")
    return False


def header_of(line: dict[str, Json]) -> Header:
    """The header's fields. Null stands for absent, unknown fields are ignored: `header_keys` looks
    at them."""
    mark = line[HEADER_KEY]
    fields = mark if isinstance(mark, dict) else line
    given = {name: value for name, value in fields.items() if value is not None}
    for name, kind in get_type_hints(Header).items():
        if name in given and (problem := word_problem(words_of(kind), given[name])):
            raise BadHeader(f"{name}: {problem}")
    try:
        header = msgspec.convert(given, Header)
    except msgspec.ValidationError as error:
        raise BadHeader(typed_problem(error)) from None
    if header.integration_span_cap is not None and header.integration_span_cap < 1:
        raise BadHeader(
            f"integration_span_cap: must be at least 1, not {header.integration_span_cap}"
        )
    return header


def header_keys(line: dict[str, Json]) -> KeysOfLine:
    """The unknown keys of a header."""
    mark = line[HEADER_KEY]
    inner = mark if isinstance(mark, dict) else line
    found = list(_strays((), inner, _key_sets().header))
    if isinstance(mark, dict):
        found += _strays((), line, _key_sets().beside_header)
    if isinstance(tokenizer := inner.get("tokenizer_fingerprint"), dict):
        found += _strays(("tokenizer_fingerprint",), tokenizer, _key_sets().tokenizer)
    return _tell(found)


def item_keys(item: dict[str, Json]) -> KeysOfLine:
    """The unknown keys of an item, of its messages, its checks and its expected calls."""
    sets = _key_sets()
    found = list(_strays((), item, sets.item))
    if isinstance(metadata := item.get("metadata"), dict):
        found += _strays(("metadata",), metadata, sets.metadata)
        adversarial, calls = metadata.get("adversarial"), metadata.get("call_sequence")
        if isinstance(adversarial, dict):
            found += _strays(("metadata", "adversarial"), adversarial, sets.adversarial)
        if metadata.get("checks") is not None:
            refused = unknown_keys(metadata["checks"])
            found += [(("metadata", "checks", *path), what) for path, what in refused]
        for at, call in enumerate(calls if isinstance(calls, list) else ()):
            if isinstance(call, dict):
                found += _strays(("metadata", "call_sequence", at), call, sets.call)
    prompt = item.get("prompt")
    for at, message in enumerate(prompt if isinstance(prompt, list) else ()):
        if isinstance(message, dict):
            # What else a message holds passes through to the model: it is not for us to list.
            strays = _strays(("prompt", at), message, sets.message)
            found += [(path, slip) for path, slip in strays if slip is not None]
    return _tell(found)


def item_problems(item: Json, keys: KeysOfLine | None = None) -> list[str]:
    """What speaks against an item: the shipped schema, and keys that were meant to be others.
    `[]` if nothing. `keys`: its unknown ones, where somebody has looked for them."""
    if keys is None and isinstance(item, dict):
        keys = item_keys(item)
    slips = keys.slips if keys is not None else ()
    problems = schema_problems(_validator(), item)
    if slips:  # a key that is missing because it was misspelt is said once
        missing = [problem for problem in problems if problem.endswith(": is missing")]
        problems = [
            problem
            for problem in problems
            if problem not in missing or not any(_names(slip, problem) for slip in slips)
        ]
    if not problems and isinstance(item, dict):
        problems = list(_value_slips(item))
    return [*slips, *problems]


def metadata_problems(metadata: dict[str, Json]) -> list[str]:
    """The same for metadata that stand without their item, as in a result."""
    return item_problems({"prompt": "-", "metadata": metadata}) if metadata else []


def _names(slip: str, missing: str) -> bool:
    """Whether a slip speaks of the key that a problem calls missing."""
    key = missing.removesuffix(": is missing").rpartition(".")[2]
    return f"did you mean {key}?" in slip


def _value_slips(item: dict[str, Json]) -> Iterator[str]:
    """A word that may be any, but looks like the one that decides what a sample is; a check that
    cannot be made."""
    metadata = want_object(item.get("metadata"))
    if metadata.get("checks") is not None:
        yield from (f"metadata.checks{what}" for what in check_problems(metadata["checks"]))
    own = [tool for tool in want_list(metadata.get("tools")) if isinstance(tool, dict)]
    yield from _spec_problems(canonical_json(own)) if own else ()
    adversarial = want_object(metadata.get("adversarial"))
    expected = adversarial.get("expected")
    if isinstance(expected, str) and meant_key(expected, (ASK_CLARIFY,)):
        yield (
            f"metadata.adversarial.expected: {show_value(expected)} asks for nothing;"
            f" did you mean {ASK_CLARIFY}?"
        )


@lru_cache(maxsize=256)
def _spec_problems(specs: str) -> tuple[str, ...]:
    """What is wrong with the specs that a sample brings along."""
    try:
        Registry.from_specs(parse_json(specs), where="metadata.tools")
    except BadInput as error:
        return tuple(str(error).splitlines())
    return ()


def _strays(path: Path, given: dict[str, Json], keys: KeySet) -> Iterator[tuple[Path, str | None]]:
    """The unknown keys of one object, each with what is wrong with it if something is."""
    if given.keys() <= keys.names:
        return
    for key in given:
        if key not in keys.names:
            slip = keys.slip(key, given.keys())
            if slip is not None or not is_own(key):
                yield (*path, key), slip


def _tell(found: list[tuple[Path, str | None]]) -> KeysOfLine:
    if not found:
        return _ALL_KNOWN
    return KeysOfLine(
        tuple(f"{field_path(path)}: {slip}{YOUR_OWN}" for path, slip in found if slip is not None),
        tuple(
            field_path([part for part in path if isinstance(part, str)])
            for path, slip in found
            if slip is None
        ),
    )


class _KeySets(msgspec.Struct, frozen=True, kw_only=True):
    """What each object of a dataset knows: from the schema, so that nothing is said twice."""

    header: KeySet
    beside_header: KeySet
    tokenizer: KeySet
    item: KeySet
    metadata: KeySet
    adversarial: KeySet
    call: KeySet
    message: KeySet


@cache
def _key_sets() -> _KeySets:
    root = schema("eval_prompt")
    inside = {name: want_object(part) for name, part in want_object(root["$defs"]).items()}
    item, metadata = _properties(root), _properties(inside["metadata"])
    header, shipped = Header.__struct_fields__, default_config()
    in_metadata = dict.fromkeys(metadata, "metadata")
    in_header = dict.fromkeys(header, "the header")
    in_item = dict.fromkeys((*item, HEADER_KEY), "the item, beside prompt")
    in_call = dict.fromkeys(("arguments", "accept"), "an entry of metadata.call_sequence")
    in_config = dict.fromkeys(shipped, "callmark.yaml")
    in_gates = dict.fromkeys(want_object(shipped["gates"]), "the header's gates")
    return _KeySets(
        header=_key_set(
            (HEADER_KEY, *header, "generator"), in_config, in_gates, in_item, in_metadata
        ),
        beside_header=_key_set(
            (HEADER_KEY,), in_item, in_metadata, dict.fromkeys(header, f"the {HEADER_KEY} object")
        ),
        tokenizer=_key_set(("id", "sha256", "normalizer")),
        item=_key_set((*item, HEADER_KEY), in_header, in_metadata, synonyms=_ITEM_SYNONYMS),
        metadata=_key_set(metadata, in_call, in_header, in_item, synonyms=_METADATA_SYNONYMS),
        adversarial=_key_set(("type", "expected"), in_metadata, synonyms={"kind": "type"}),
        call=_key_set(_properties(inside["expected_call"]), in_metadata, synonyms=_CALL_SYNONYMS),
        message=_key_set(_properties(inside["message"]), synonyms=_MESSAGE_SYNONYMS),
    )


def _properties(part: dict[str, Json]) -> tuple[str, ...]:
    return tuple(want_object(part["properties"]))


def _key_set(
    known: tuple[str, ...], *elsewhere: dict[str, str], synonyms: dict[str, str] | None = None
) -> KeySet:
    """The last of several places of one key is the one that is named."""
    places = {key: place for others in elsewhere for key, place in others.items()}
    return KeySet(
        known=known,
        synonyms=synonyms or {},
        elsewhere={key: place for key, place in places.items() if key not in known},
    )


# What people write who come from other tools, folded: so that it is told and not only listed.
_ITEM_SYNONYMS = dict.fromkeys(
    ("messages", "question", "query", "input", "instruction", "text", "usermessage"), "prompt"
) | {
    "meta": "metadata",
    "teacher": "teacher_text",
    "teacheranswer": "teacher_text",
    "followups": "user_turns",
}
_METADATA_SYNONYMS = {
    "behaviour": "expected_behaviour",
    "behavior": "expected_behaviour",
    **dict.fromkeys(
        ("calls", "toolcalls", "expectedcalls", "expectedtoolcalls", "toolsequence",
         "functioncalls"),
        "call_sequence",
    ),
    **dict.fromkeys(("matchmode", "callmatching"), "call_match"),
    **dict.fromkeys(("offeredtools", "availabletools", "toolset", "functions"), "tools"),
    **dict.fromkeys(("facts", "expectedfacts", "mustcontain", "requiredvalues"), "required_facts"),
    **dict.fromkeys(("decoys", "decoyfacts"), "decoy_values"),
    **dict.fromkeys(("isnegativecontrol", "negativecontrols"), "negative_control"),
    **dict.fromkeys(("toolresults", "resultfields", "toolresult"), "tool_result_fields"),
}  # fmt: skip
_CALL_SYNONYMS = {
    **dict.fromkeys(
        ("args", "arg", "parameters", "params", "parameter", "input", "inputs", "kwargs",
         "toolinput", "functionarguments", "argumentsjson"),
        "arguments",
    ),
    **dict.fromkeys(("tool", "toolname", "function", "functionname", "func"), "name"),
    **dict.fromkeys(("accepted", "alternatives", "oneof", "anyof"), "accept"),
    **dict.fromkeys(("optionalkeys", "optionalarguments", "optionalargs"), "optional"),
}  # fmt: skip
_MESSAGE_SYNONYMS = {
    "text": "content",
    "speaker": "role",
    "from": "role",
    "calls": "tool_calls",
    "callid": "tool_call_id",
}


@cache
def _validator() -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema("eval_prompt"))
