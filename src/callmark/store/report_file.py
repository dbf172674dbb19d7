"""Reading a report, or another record, from a JSON file."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import msgspec

from callmark.core.jsontext import Json, NotJson, parse_json
from callmark.core.report import Report
from callmark.errors import BadInput
from callmark.store.jsonl import LINE_DEPTH, open_input
from callmark.store.problems import typed_problem

Record = TypeVar("Record", bound=msgspec.Struct)


def read_report(path: Path) -> Report:
    return read_json_record(path, Report, "report of a run")


def read_json_record(path: Path, kind: type[Record], what: str) -> Record:
    """`what` it should have been, for the message."""
    with open_input(path) as stream:
        data = stream.read()
    try:
        value = parse_json(data.removeprefix(b"\xef\xbb\xbf"), max_depth=LINE_DEPTH)
        if _is_of_old_name(value):
            raise BadInput(
                f"{path}: was written by an older version of this program under another name:"
                " run it again"
            )
        return msgspec.convert(value, kind)
    except NotJson as error:
        raise BadInput(f"{path}: is no {what}: {error}") from None
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: is no {what}: {typed_problem(error)}") from None


def _is_of_old_name(value: Json) -> bool:
    """A report says which program wrote it, beside the libraries that it used."""
    match value:
        case {"provenance": {"libraries": _, "python": _, **more}}:
            return "callmark" not in more
    return False
