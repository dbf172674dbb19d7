"""Berkeley function calling: questions with functions and the answers that are accepted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

import msgspec

from callmark.datasets.importing.desk import Desk, Imported, Notes, Object, Record, SourceOffer
from callmark.datasets.reader import located_object
from callmark.errors import BadInput
from callmark.records.jsontext import Json, want_list
from callmark.records.problems import typed_problem
from callmark.store.files import filled_lines

_JSON_TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")
# None: any value.
TYPE: dict[str, str | None] = {
    **{name: name for name in _JSON_TYPES},
    **dict.fromkeys(("dict", "hashmap", "hashtable", "map"), "object"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("tuple", "list", "arraylist", "queue", "stack", "set"), "array"),
    **dict.fromkeys(("int", "long", "short", "byte", "bigint"), "integer"),
    **dict.fromkeys(("str", "char"), "string"),
    "bool": "boolean",
    "any": None,
}


def function_spec(function: Object, line: int, notes: Notes) -> Object:
    """A function document with parameters that are JSON Schema."""
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        return function
    return {**function, "parameters": json_schema(parameters, line, notes)}


def json_schema(node: Object, line: int, notes: Notes) -> Object:
    schema: Object = {}
    for key, value in node.items():
        if key == "type" and isinstance(value, str):
            schema |= _type_schema(value, line, notes)
        elif key == "properties" and isinstance(value, dict):
            schema[key] = {name: _inner(one, line, notes) for name, one in value.items()}
        elif key in ("items", "additionalProperties"):
            schema[key] = _inner(value, line, notes)
        elif key != "required" or isinstance(value, list):
            # `required: true` inside a property says nothing that JSON Schema could say there.
            schema[key] = value
    return schema


def _inner(value: Json, line: int, notes: Notes) -> Json:
    return json_schema(value, line, notes) if isinstance(value, dict) else value


def _type_schema(name: str, line: int, notes: Notes) -> Object:
    if name.lower() not in TYPE:
        notes.add("unknown_type", line, name)
    found = TYPE.get(name.lower())
    return {} if found is None else {"type": found}


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
            stands, value = self.choose(values, f"{pointer}/{_escape(key)}")
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


def _escape(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1")


def _top(pointer: str) -> str | None:
    """The argument that a pointer names, if it names nothing inside of one."""
    first, rest = pointer[1:].partition("/")[::2]
    return None if rest else first.replace("~1", "/").replace("~0", "~")


NO_CALL = "irrelevance"
ANSWERS_FOLDER = "possible_answer"


class _Row(msgspec.Struct, frozen=True):
    """`functions` are JSON Schema already, `function` are as upstream writes them."""

    id: str
    question: list[Json]
    function: list[dict[str, Json]] | dict[str, Json] | None = None
    functions: list[dict[str, Json]] | None = None
    ground_truth: list[Json] | None = None
    category: str | None = None
    language: str | None = None
    control: str | None = None


def read_bfcl(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    answers = _accepted_answers(desk)
    for line, value in records:
        try:
            row = msgspec.convert(value, _Row)
        except msgspec.ValidationError as error:
            raise BadInput(f"{desk.place(line)}: {typed_problem(error)}") from None
        truth = answers.get(row.id) if row.ground_truth is None else row.ground_truth
        imported = _import_row(row, truth, line, desk)
        if imported is not None:
            yield imported


def _import_row(row: _Row, truth: list[Json] | None, line: int, desk: Desk) -> Imported | None:
    turns = row.question if row.question and isinstance(row.question[0], list) else [row.question]
    given = row.functions if row.function is None else row.function
    if len(turns) > 1 or given is None:
        desk.notes.add("multi_turn_question", line, row.id)
        return None
    listed = [given] if isinstance(given, dict) else given
    if row.functions is None:
        listed = [function_spec(one, line, desk.notes) for one in listed]
    offer = desk.tools.offer(listed, line)
    category = row.category or row.id.rpartition("_")[0]
    metadata: Object = {
        "sample_id": row.id,
        "scenario": category,
        **_expectation(row, category, truth, offer, line, desk),
        "tools": list(offer.listed or ()),
        "imported_from": {"format": "bfcl", "language": row.language or "Python"},
    }
    item: Object = {"prompt": _prompt(want_list(turns[0])), "metadata": metadata}
    return Imported(line=line, sample_id=row.id, item=item)


def _prompt(messages: Sequence[Json]) -> Json:
    match messages:
        case [{"role": "user", "content": str(text)}]:
            return text
    return messages


def _expectation(
    row: _Row, category: str, truth: list[Json] | None, offer: SourceOffer, line: int, desk: Desk
) -> Object:
    if row.control == "no_call" or NO_CALL in category:
        return {"expected_behaviour": "no_tool"}
    calls = [
        _expect_call(name, accepted, row, offer, line, desk)
        for one in truth or ()
        for name, accepted in _calls_in(one, desk.place(line))
    ]
    if not calls:
        desk.notes.add("no_accepted_answer", line, row.id)
        return {}
    match = {"call_match": "unordered"} if len(calls) > 1 else {}
    # Its own checker compares texts without case, blanks and punctuation.
    lenient = {"string_match": "lenient"}
    return {"expected_behaviour": "normal", "call_sequence": calls, **match, **lenient}


def _calls_in(one: Json, place: str) -> Iterator[tuple[str, Object]]:
    if not isinstance(one, dict):
        raise BadInput(f"{place}: ground_truth: must be an object of accepted arguments by name")
    for name, accepted in one.items():
        if not isinstance(accepted, dict):
            raise BadInput(f"{place}: ground_truth.{name}: must be an object of accepted values")
        yield name, accepted


def _expect_call(
    name: str, accepted: Object, row: _Row, offer: SourceOffer, line: int, desk: Desk
) -> Object:
    alternatives = Alternatives()
    call = expected_call(name, accepted, offer.registry.parameters(name), alternatives)
    if alternatives.cut:
        desk.notes.add("too_many_alternatives", line, row.id)
    errors = offer.registry.validate(name, call["arguments"])
    if errors:
        what = f"{row.id}: {name}: {'; '.join(errors)}"
        desk.notes.add("accepted_answer_breaks_schema", line, what)
    return call


def _accepted_answers(desk: Desk) -> dict[str, list[Json]]:
    """Upstream keeps them in a file of the same name in the folder `possible_answer`."""
    beside = desk.source.parent / ANSWERS_FOLDER / desk.source.name
    path = desk.accepted or (beside if beside.is_file() else None)
    found: dict[str, list[Json]] = {}
    if path is None:
        return found
    for line in filled_lines(path):
        match located_object(line, str(path)):
            case {"id": str(name), "ground_truth": list(truth)}:
                found[name] = truth
            case _:
                what = "must hold an id and a list ground_truth"
                raise BadInput(f"{path}:{line.number}: {what}")
    return found
