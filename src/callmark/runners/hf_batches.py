"""Which prompts are computed together, and what they share. Results never depend on it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

Tokens = Sequence[int]
# What a model bears without other results: a shared beginning with padding behind it; padding on
# the left; or only prompts of one length beside each other.
Batching = Literal["prefix", "padded", "equal"]

WIDEST = 64
# Tokens that are kept in memory at once, if nobody says how many prompts fit.
BUDGET = 32_768
# How much longer a prompt is expected to get, at most.
GROWTH = 256
SHORTEST_PREFIX = 8
# Fewer prompts than this are better off in a wider batch than with a longer shared beginning.
SMALLEST_FAMILY = 8


class Family(msgspec.Struct, frozen=True):
    """Prompts that begin with the same `prefix` tokens, in batches of their positions."""

    prefix: int
    batches: tuple[tuple[int, ...], ...]


def plan(
    prompts: Sequence[Tokens], batching: Batching, batch_size: int | None, growth: int
) -> list[Family]:
    """Every prompt in exactly one batch. `batch_size` None: as many as the budget holds."""
    made = []
    for rows in _families(prompts) if batching == "prefix" else [range(len(prompts))]:
        if not rows:
            continue
        shared = _shared(prompts, rows) if batching == "prefix" and len(rows) > 1 else 0
        prefix = shared if shared >= SHORTEST_PREFIX else 0
        batches = _batches(prompts, rows, batching, batch_size, min(growth, GROWTH))
        made.append(Family(prefix, tuple(batches)))
    return made


def _families(prompts: Sequence[Tokens]) -> list[list[int]]:
    """Prompts with a long common beginning together; all others in one family, the last."""
    families: list[list[int]] = []
    others: list[int] = []
    current: list[int] = []
    length = 0
    for row in sorted(range(len(prompts)), key=lambda row: list(prompts[row])):
        common = _common(prompts[current[0]], prompts[row]) if current else 0
        enough = SHORTEST_PREFIX if len(current) < SMALLEST_FAMILY else max(8, length // 2)
        if current and common < enough:
            (families.append if len(current) >= SMALLEST_FAMILY else others.extend)(current)
            current = []
        length = min(length, common) if current else len(prompts[row])
        current = [*current, row]
    (families.append if len(current) >= SMALLEST_FAMILY else others.extend)(current)
    return [*families, others]


def _batches(
    prompts: Sequence[Tokens],
    rows: Sequence[int],
    batching: Batching,
    batch_size: int | None,
    growth: int,
) -> Iterator[tuple[int, ...]]:
    """The longest first, so that what does not fit into memory is known at once."""
    batch: list[int] = []
    for row in sorted(rows, key=lambda row: (-len(prompts[row]), row)):
        longest = len(prompts[batch[0]] if batch else prompts[row])
        full = len(batch) >= (batch_size or WIDEST) or (
            batch_size is None and (len(batch) + 1) * (longest + growth) > BUDGET
        )
        differs = batching == "equal" and longest != len(prompts[row])
        if batch and (full or differs):
            yield tuple(batch)
            batch = []
        batch.append(row)
    yield tuple(batch)


def _shared(prompts: Sequence[Tokens], rows: Sequence[int]) -> int:
    """The length of what all begin with; of each prompt at least one token is left."""
    first, *others = (prompts[row] for row in rows)
    common = min((_common(first, other) for other in others), default=len(first))
    return min(common, *(len(prompts[row]) - 1 for row in rows))


def _common(one: Tokens, other: Tokens) -> int:
    for position, (left, right) in enumerate(zip(one, other, strict=False)):
        if left != right:
            return position
    return min(len(one), len(other))
