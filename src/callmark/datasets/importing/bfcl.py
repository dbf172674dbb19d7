"""Berkeley function calling: questions with functions and the answers that are accepted."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from callmark.core.jsontext import Json, NotJson
from callmark.datasets.importing.accepted import Alternatives, expected_call
from callmark.datasets.importing.bfcl_types import function_spec
from callmark.datasets.importing.catalogue import SourceOffer
from callmark.datasets.importing.desk import Desk, Imported, Object, Record
from callmark.errors import BadInput
from callmark.store.jsonl import is_blank, lines_of, object_of, open_input
from callmark.store.problems import typed_problem

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
        imported = _imported(row, truth, line, desk)
        if imported is not None:
            yield imported


def _imported(row: _Row, truth: list[Json] | None, line: int, desk: Desk) -> Imported | None:
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
    item: Object = {"prompt": _prompt(turns[0]), "metadata": metadata}
    return Imported(line=line, sample_id=row.id, item=item)


def _prompt(messages: list[Json]) -> Json:
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
        _expected(name, accepted, row, offer, line, desk)
        for one in truth or ()
        for name, accepted in _calls_in(one, desk.place(line))
    ]
    if not calls:
        desk.notes.add("no_accepted_answer", line, row.id)
        return {}
    match = {"call_match": "unordered"} if len(calls) > 1 else {}
    return {"expected_behaviour": "normal", "call_sequence": calls, **match}


def _calls_in(one: Json, place: str) -> Iterator[tuple[str, Object]]:
    if not isinstance(one, dict):
        raise BadInput(f"{place}: ground_truth: must be an object of accepted arguments by name")
    for name, accepted in one.items():
        if not isinstance(accepted, dict):
            raise BadInput(f"{place}: ground_truth.{name}: must be an object of accepted values")
        yield name, accepted


def _expected(
    name: str, accepted: Object, row: _Row, offer: SourceOffer, line: int, desk: Desk
) -> Object:
    own = offer.names.get(name, name)
    alternatives = Alternatives()
    call = expected_call(own, accepted, offer.registry.parameters(own), alternatives)
    if alternatives.cut:
        desk.notes.add("too_many_alternatives", line, row.id)
    errors = offer.registry.validate(own, call["arguments"])
    if errors:
        what = f"{row.id}: {own}: {'; '.join(errors)}"
        desk.notes.add("accepted_answer_breaks_schema", line, what)
    return call


def _accepted_answers(desk: Desk) -> dict[str, list[Json]]:
    """Upstream keeps them in a file of the same name in the folder `possible_answer`."""
    beside = desk.source.parent / ANSWERS_FOLDER / desk.source.name
    path = desk.accepted or (beside if beside.is_file() else None)
    found: dict[str, list[Json]] = {}
    if path is None:
        return found
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.json):
                continue
            try:
                entry = object_of(line.json)
            except NotJson as error:
                raise BadInput(f"{path}:{line.number}: {error}") from None
            match entry:
                case {"id": str(name), "ground_truth": list(truth)}:
                    found[name] = truth
                case _:
                    what = "must hold an id and a list ground_truth"
                    raise BadInput(f"{path}:{line.number}: {what}")
    return found
