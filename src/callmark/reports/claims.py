"""What the answers of a run claim: counts, then every sentence with a value that no result has."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.core.claims import LABELS, Claim, Claims
from callmark.core.jsontext import canonical_json
from callmark.reports.layout import Block, Cell, Table, TextLine, line
from callmark.reports.neutral import one_line

SHOWN_SENTENCE = 200


def claims_blocks(claims: Claims) -> Iterator[Block]:
    yield line(f"{claims.values} values in the answers of {claims.trials} trials", "strong")
    if not claims.values:
        return
    yield line()
    rows = [*claims.by_kind.items(), ("all", claims.by_label)]
    yield Table(
        ("kind of value", "values", *LABELS),
        tuple(
            (
                Cell(kind),
                Cell(str(sum(counts.values()))),
                *(Cell(str(counts[label])) for label in LABELS),
            )
            for kind, counts in rows
        ),
        right=frozenset(range(1, len(LABELS) + 2)),
    )
    if claims.unsupported:
        yield line()
        yield line("supported by no result, said by nobody", "bad")
    before = None
    for claim in claims.unsupported:
        place = claim.sample_id, claim.trial, claim.sentence
        if place != before:
            yield line()
            yield line(f"{claim.sample_id}, trial {claim.trial}", "strong")
            yield line(one_line(claim.sentence, SHOWN_SENTENCE), indent=2)
        before = place
        yield TextLine((Cell(claim.value, "unsupported"), Cell(f"  {_nearest(claim)}")), indent=4)


def _nearest(claim: Claim) -> str:
    near = claim.nearest
    if near is None:
        return f"({claim.kind}) nothing in the results is near"
    value = near.value if isinstance(near.value, str) else canonical_json(near.value)
    return f"({claim.kind}) nearest: {one_line(value)}, call {near.call} {near.path or '/'}"
