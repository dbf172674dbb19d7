"""Results that are tables: rows of cells, whose names stand beside them."""

from __future__ import annotations

from callmark.records.jsontext import Json

_HEADS = ("columns", "headers", "header", "fields", "column_names", "schema")


def width_of(value: Json) -> int:
    """How many cells each row of a table has; 0: it is none."""
    if not isinstance(value, list) or len(value) < 2 or not isinstance(value[0], list):
        return 0
    width = len(value[0])
    is_even = width > 1 and all(
        isinstance(row, list)
        and len(row) == width
        and not any(isinstance(cell, dict | list) for cell in row)
        for row in value
    )
    return width if is_even else 0


def head_of(beside: dict[str, Json], width: int) -> list[str] | None:
    """The names of the columns, as a list of texts or of objects with a name beside the rows."""
    for key in _HEADS:
        names = beside.get(key)
        if isinstance(names, list) and len(names) == width:
            texts = [one.get("name") if isinstance(one, dict) else one for one in names]
            known = [one for one in texts if isinstance(one, str)]
            if len(set(known)) == width:
                return known
    return None
