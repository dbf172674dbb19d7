"""The samples of a comparison: the same trial of both runs, side by side, flips first."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO

import msgspec

from callmark.core.compare_records import Comparison
from callmark.core.results import Result
from callmark.reports.html import page_result
from callmark.reports.html_choice import Candidates, TrialChoice
from callmark.reports.html_file import PageFile, page_json
from callmark.reports.html_index import (
    NOT_IN_THE_FILE,
    IndexBuilder,
    Row,
    excerpt_of,
    facets_of,
)

LABELS: dict[str, str] = {
    "fails": "lost",
    "gained": "gained",
    "status": "answer",
    "kind": "kind",
    "tool": "tool",
    "locale": "locale",
    "slice": "slice",
}
NUMBERS = ("F1 A", "F1 B")
SEED = 42
Key = tuple[str, int]


class Flipped(msgspec.Struct, frozen=True):
    """The metrics that each sample lost and gained, as far as the comparison lists them."""

    lost: Mapping[str, tuple[str, ...]]
    gained: Mapping[str, tuple[str, ...]]


def flipped(comparison: Comparison) -> Flipped:
    lost: dict[str, tuple[str, ...]] = {}
    gained: dict[str, tuple[str, ...]] = {}
    for metric, both in comparison.flips.items():
        for listed, found in ((both.lost, lost), (both.gained, gained)):
            for sample_id in listed.sample_ids:
                found[sample_id] = (*found.get(sample_id, ()), metric)
    return Flipped(lost, gained)


class _Kept(msgspec.Struct, frozen=True):
    start: int
    size: int
    lax: float | None
    answer: bytes


@contextmanager
def pairs_of(
    comparison: Comparison, a: Iterable[Result], b: Iterable[Result]
) -> Iterator[PagePairs]:
    """`a` and `b`: the results of both sides, as they were compared; each is read once."""
    with tempfile.TemporaryFile() as of_a, tempfile.TemporaryFile() as of_b:
        pairs = PagePairs(flipped(comparison), (of_a, of_b))
        pairs.read(a, b)
        yield pairs


class PagePairs:
    """Both sides are read once; what of them is shown waits in temporary files until it is known
    what fits."""

    def __init__(self, flips: Flipped, spools: tuple[IO[bytes], IO[bytes]]) -> None:
        self._flips = flips
        self._spools = spools
        self._of_a: dict[Key, _Kept] = {}
        self._pairs: list[tuple[_Kept, _Kept]] = []
        self._rows: list[Row] = []
        self._candidates = Candidates(SEED)

    def read(self, a: Iterable[Result], b: Iterable[Result]) -> None:
        for result in a:
            self._of_a[result.sample_id, result.trial] = self._kept(0, result)
        for result in b:
            before = self._of_a.pop((result.sample_id, result.trial), None)
            if before is None:
                continue
            after = self._kept(1, result)
            row = self._row(result, before, after)
            self._candidates.offer(
                result.sample_id, result.trial, row=row.cost, size=before.size + after.size + 60
            )
            self._pairs.append((before, after))
            self._rows.append(row)

    def write(self, page: PageFile, labels: tuple[str, str]) -> None:
        """The chosen samples, and the index. The head must have been written."""
        choice = self._choice()
        index = IndexBuilder(LABELS, NUMBERS)
        for at, row in enumerate(self._rows):
            place = NOT_IN_THE_FILE
            if choice.full[at]:
                place = page.sample(self._encoded(self._pairs[at], labels))
            if choice.rows[at]:
                index.add(row, place)
        page.index(index.built())

    def counts(self) -> tuple[int, int, int]:
        return self._choice().counts()

    def _choice(self) -> TrialChoice:
        tiers = bytearray(map(self._tier, self._rows))
        return self._candidates.chosen(tiers)

    def _tier(self, row: Row) -> int:
        if row.facets["fails"]:
            return 0
        return 1 if row.facets["gained"] else 2 + ("same answer" in row.facets["status"])

    def _kept(self, side: int, result: Result) -> _Kept:
        spool = self._spools[side]
        data = page_json(page_result(result))
        start = spool.tell()
        spool.write(data)
        scores = result.scores
        eligible = scores is not None and scores.kind == "eligible"
        lax = scores.lax.f1 if scores is not None and eligible else None
        answer = hashlib.sha256(result.model_output.encode("utf-8", "surrogatepass")).digest()
        return _Kept(start, len(data), lax, answer)

    def _row(self, result: Result, before: _Kept, after: _Kept) -> Row:
        same = before.answer == after.answer
        facets = facets_of(result, self._flips.lost.get(result.sample_id, ()))
        gained = self._flips.gained.get(result.sample_id, ())
        status = "same answer" if same else "another answer"
        return Row(
            sample_id=result.sample_id,
            trial=result.trial,
            text=excerpt_of(result),
            facets={**facets, "gained": gained, "status": (status,)},
            numbers=(before.lax, after.lax),
        )

    def _encoded(self, pair: tuple[_Kept, _Kept], labels: tuple[str, str]) -> bytes:
        sides = [
            b'{"label":%s,"result":%s}' % (page_json(label), _read(spool, kept))
            for spool, kept, label in zip(self._spools, pair, labels, strict=True)
        ]
        return b'{"sides":[%s]}' % b",".join(sides)


def _read(spool: IO[bytes], kept: _Kept) -> bytes:
    spool.seek(kept.start)
    return spool.read(kept.size)
