"""What the answers of a run claim, value by value, and what stands behind it."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from callmark.records.jsontext import Json
from callmark.records.statements import StatementLabel

LABELS: tuple[StatementLabel, ...] = ("supported", "derived", "user_said", "unsupported")


class Nearest(msgspec.Struct, frozen=True):
    """The value of a result that comes nearest to one that no result supports."""

    call: int
    path: str
    value: Json


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """One checkable value of one scored sentence. `nearest` only where it is unsupported."""

    sample_id: str
    trial: int
    value: str
    kind: str
    label: StatementLabel
    sentence: str
    nearest: Nearest | None = None


class Claims(msgspec.Struct, frozen=True):
    """How many values of each kind have each label, and those that nothing supports."""

    trials: int
    values: int
    by_label: dict[StatementLabel, int]
    by_kind: dict[str, dict[StatementLabel, int]]
    unsupported: tuple[Claim, ...]


def add_up_claims(trials: Iterable[Iterable[Claim]]) -> Claims:
    """One pass over the claims of each trial."""
    by_kind: dict[str, dict[StatementLabel, int]] = {}
    unsupported: list[Claim] = []
    number = 0
    for claims in trials:
        number += 1
        for claim in claims:
            counts = by_kind.setdefault(claim.kind, dict.fromkeys(LABELS, 0))
            counts[claim.label] = counts.get(claim.label, 0) + 1
            if claim.label == "unsupported":
                unsupported.append(claim)
    by_label = {label: sum(row[label] for row in by_kind.values()) for label in LABELS}
    ordered = dict(sorted(by_kind.items()))
    return Claims(number, sum(by_label.values()), by_label, ordered, tuple(unsupported))
