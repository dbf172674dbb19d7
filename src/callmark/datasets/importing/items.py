"""Items of our own: a dataset, with or without a header, or a table of it."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.core.identity import sample_id_of
from callmark.datasets.importing.desk import Desk, Imported, Record
from callmark.datasets.located import header_fields
from callmark.datasets.schema import (
    HEADER_KEY,
    BadHeader,
    header_keys,
    header_of,
    is_header,
    item_problems,
)
from callmark.errors import BadInput
from callmark.store.problems import Problems


def read_items(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """Everything as it is; the header's own fields stay, its hash is made anew."""
    problems = Problems(str(desk.source))
    for number, (line, item) in enumerate(records):
        if not isinstance(item, dict):
            problems.add(line, "must be a JSON object")
        elif number == 0 and _takes_header(item, line, desk):
            continue
        else:
            wrong = item_problems(item) or _second_header(item)
            problems.add(line, wrong)
            if not wrong:
                yield Imported(line=line, sample_id=sample_id_of(item), item=item)
        if problems.enough:
            break
    problems.raise_if_any()


def _second_header(item: dict[str, object]) -> list[str]:
    return [f"{HEADER_KEY}: stands on the first line only"] if item.get(HEADER_KEY) else []


def _takes_header(item: dict[str, object], line: int, desk: Desk) -> bool:
    try:
        if not is_header(item):
            return False
        header_of(item)
        if slips := header_keys(item).slips:
            raise BadHeader(slips[0])
    except BadHeader as error:
        raise BadInput(f"{desk.place(line)}: {error}") from None
    desk.header = header_fields(item)
    return True
