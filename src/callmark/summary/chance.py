"""How well would an answer be grounded in another sample's results? What chance alone gives.

The answers of at most 500 eligible samples are scored against the trace of another sample that
used the same tools. The samples are chosen and paired by the hash of their ids, so neither the
order of arrival nor the model has a say."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Callable, Sequence

import msgspec

from callmark.records.report import Metric
from callmark.records.results import Result
from callmark.stats.estimates import SampledValue
from callmark.summary.metrics import Measure, metric_of

MAX_SAMPLES = 500

# (own, other) -> lax F1 of own's answer against other's tool_trace
CrossScore = Callable[[Result, Result], float]


class Pair(msgspec.Struct, frozen=True):
    own: float
    chance: float
    cluster: str | None
    sample_id: str = ""


class ChanceSample:
    """Keeps the first trial of the eligible samples with the smallest hashes."""

    def __init__(self) -> None:
        self._kept: dict[int, Result] = {}
        self._largest: list[int] = []  # a heap of negated hashes

    def add(self, result: Result) -> None:
        digest = hashlib.sha256(result.sample_id.encode("utf-8", "surrogatepass")).digest()
        key = int.from_bytes(digest, "big")
        known = self._kept.get(key)
        if known is not None:
            # Trials arrive in any order, and merged shards in yet another: the first trial is
            # always taken.
            if result.trial < known.trial:
                self._kept[key] = result
        elif len(self._kept) < MAX_SAMPLES:
            self._kept[key] = result
            heapq.heappush(self._largest, -key)
        elif key < -self._largest[0]:
            del self._kept[-heapq.heappushpop(self._largest, -key)]
            self._kept[key] = result

    def kept(self) -> tuple[Result, ...]:
        return tuple(self._kept.values())

    def places(self) -> tuple[tuple[int, int], ...]:
        """(index, trial) of what is kept."""
        return tuple(sorted((result.index, result.trial) for result in self._kept.values()))

    def pairs(self, cross_score: CrossScore) -> list[Pair]:
        """Each answer with the trace of the next sample of its group, cyclic. A group is the
        samples with results from the same set of tools; a group of one has no other."""
        groups: dict[frozenset[str | None], list[Result]] = {}
        for _, result in sorted(self._kept.items()):
            tools = frozenset(entry.name for entry in result.tool_trace if entry.served)
            groups.setdefault(tools, []).append(result)
        return [
            Pair(_own_f1(own), cross_score(own, other), _cluster_of(own), own.sample_id)
            for members in groups.values()
            if len(members) > 1
            for own, other in zip(members, [*members[1:], members[0]], strict=True)
        ]


def chance_measures(
    pairs: Sequence[Pair] | None, population: int, seed: int
) -> tuple[Measure, Measure]:
    """The chance level, and by how much the answers are better grounded in their own results."""
    if pairs is None:
        unknown = Metric(value=None, n=0, reason="not computed")
        nothing_seen = Measure(unknown, population, lambda: SampledValue("mean", ((),)))
        return nothing_seen, nothing_seen
    chance = [pair.chance for pair in pairs]
    lift = [pair.own - pair.chance for pair in pairs]
    clusters = _clusters(pairs)
    return (
        _mean_measure(SampledValue("mean", (chance,), clusters), population, seed),
        _mean_measure(SampledValue("mean", (lift,), clusters), population, seed),
    )


def _mean_measure(observed: SampledValue, population: int, seed: int) -> Measure:
    nothing = "no two samples have results of the same tools"
    return Measure(metric_of(observed, nothing, seed), population, lambda: observed)


def _clusters(pairs: Sequence[Pair]) -> list[int] | None:
    if all(pair.cluster is None for pair in pairs):
        return None
    names: dict[str, int] = {}
    return [
        # Negative numbers cannot meet those of named clusters.
        -1 - at if pair.cluster is None else names.setdefault(pair.cluster, len(names))
        for at, pair in enumerate(pairs)
    ]


def _own_f1(result: Result) -> float:
    return 0.0 if result.scores is None else result.scores.lax.f1


def _cluster_of(result: Result) -> str | None:
    cluster = result.metadata.get("cluster")
    return None if cluster is None else str(cluster)
