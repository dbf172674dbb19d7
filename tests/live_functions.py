"""Python functions that the tests record as live tools."""

from __future__ import annotations

import time
from typing import Literal, TypedDict


def add(a: int, b: int = 2) -> dict[str, int]:
    """Add two numbers.

    The sum is in `sum`."""
    return {"sum": a + b}


async def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    """Words on the weather."""
    return f"{city}: 21 {unit}"


def breaks(reason: str) -> None:
    raise LookupError(reason)


def sleeps() -> None:
    time.sleep(60)


def odd() -> object:
    return object()


def account(name: str) -> dict[str, str]:
    """What is kept of a person."""
    return {"mail": f"{name}@acme.com", "password": "open-sesame-77", "phrase": "the lamp is lit"}


class Place(TypedDict):
    city: str


def distance(start: Place, end: Place) -> int:
    return len(start["city"]) + len(end["city"])
