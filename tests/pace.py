"""`make test` has six minutes. Of many rows that cost seconds each, a few are tried with every commit
and all by `make test-slow`."""

from collections.abc import Iterable
from typing import Any

import pytest


def few(rows: Iterable[Any], number: int = 1) -> list[Any]:
    """The first ones as they are, the others marked slow."""
    found = list(rows)
    return found[:number] + [
        pytest.param(*(row if isinstance(row, tuple) else (row,)), marks=pytest.mark.slow)
        for row in found[number:]
    ]
