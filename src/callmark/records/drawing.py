"""How a record shows itself in a notebook: who draws it is said from above, since records know no
form of a report."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# type of record -> what makes HTML of it; `callmark.api` fills it
DRAWN_BY: dict[type, Callable[[Any], str]] = {}


class Drawn:
    """None where nobody draws it: a notebook then shows the plain form."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        draw = DRAWN_BY.get(type(self))
        return None if draw is None else draw(self)
