"""Mistakes planted in real answers: which are found, and what happens to everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256

import msgspec

from callmark.grounding.checking import StatementFinding
from callmark.grounding.spans import Span
from callmark.records.statements import FLAGS, RULES
from callmark.records.trace import Trace
from dev.agree.material import RealTrial
from dev.agree.mutations import PLANTS
from dev.agree.sites import Mutation, Sites
from dev.campaign.answers import replaced


class PlantedCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Mistakes of one kind in the answers of one half of a source, in so many `statements`.
    `caught`: a flag that was not there before stands in the sentence; `firm`: one of a firm rule.
    `rules`: how many each rule found. Of the `untouched` statements of the same answers `changed`
    got another label, `spoilt` of them a flag: a total may rightly not come out any more."""

    kind: str
    source: str
    half: int
    planted: int = 0
    statements: int = 0
    caught: int = 0
    firm: int = 0
    rules: dict[str, int] = {}
    untouched: int = 0
    changed: int = 0
    spoilt: int = 0


class MutationVerdict(msgspec.Struct, frozen=True):
    """`rules` that found it. `labels` are what the altered places have afterwards, with the rule
    that gave each."""

    rules: frozenset[str]
    untouched: int
    changed: int
    spoilt: int
    labels: frozenset[tuple[str, str]]


_BESIDE = 2  # characters: a unit stands beside its number
# Kind, source, half.
_Key = tuple[str, str, int]
_Chosen = dict[_Key, list[tuple[bytes, int, Mutation]]]


def plant(trials: Sequence[RealTrial], most: int) -> list[PlantedCounts]:
    """Up to `most` mutations of each kind in each half of each source, those of the smallest
    hashes."""
    kept = _choose(trials, most)
    verdicts: dict[_Key, list[MutationVerdict]] = {key: [] for key in sorted(kept)}
    for key, _, _, verdict in _judge_all(trials, kept):
        verdicts[key].append(verdict)
    return [
        _count(key, found, {(number, one.statement) for _, number, one in kept[key]})
        for key, found in verdicts.items()
    ]


def plant_each(
    trials: Sequence[RealTrial], most: int
) -> Iterator[tuple[RealTrial, Mutation, MutationVerdict]]:
    """The same mutations, one by one."""
    for _, number, mutation, verdict in _judge_all(trials, _choose(trials, most)):
        yield trials[number], mutation, verdict


def _choose(trials: Sequence[RealTrial], most: int) -> _Chosen:
    chosen: _Chosen = {}
    for number, trial in enumerate(trials):
        if not trial.trace.model_output:
            continue
        sites = Sites(trial)
        for plant_kind in PLANTS:
            for mutation in plant_kind(sites):
                seed = f"{mutation.kind} {trial.key} {mutation.places}"
                row = (sha256(seed.encode()).digest(), number, mutation)
                chosen.setdefault((mutation.kind, trial.source, trial.half), []).append(row)
    return {key: sorted(rows)[:most] for key, rows in chosen.items()}


def _judge_all(
    trials: Sequence[RealTrial], kept: _Chosen
) -> Iterator[tuple[_Key, int, Mutation, MutationVerdict]]:
    """Trial by trial, so that each is read as it was only once."""
    by_trial: dict[int, list[tuple[_Key, Mutation]]] = {}
    for key, rows in sorted(kept.items()):
        for _, number, mutation in rows:
            by_trial.setdefault(number, []).append((key, mutation))
    for number, mutations in sorted(by_trial.items()):
        sites = Sites(trials[number])
        for key, mutation in mutations:
            yield key, number, mutation, _judge(sites, mutation)


def _count(
    key: _Key, found: Sequence[MutationVerdict], statements: set[tuple[int, int]]
) -> PlantedCounts:
    rules = Counter(rule for one in found for rule in one.rules)
    return PlantedCounts(
        kind=key[0],
        source=key[1],
        half=key[2],
        planted=len(found),
        statements=len(statements),
        caught=sum(bool(one.rules) for one in found),
        firm=sum(any(RULES[rule].tier == "firm" for rule in one.rules) for one in found),
        rules=dict(sorted(rules.items())),
        untouched=sum(one.untouched for one in found),
        changed=sum(one.changed for one in found),
        spoilt=sum(one.spoilt for one in found),
    )


def mutate(trace: Trace, mutation: Mutation) -> Trace:
    for place in sorted(mutation.places, reverse=True):
        trace = replaced(trace, place)
    return trace


def _judge(sites: Sites, mutation: Mutation) -> MutationVerdict:
    _, after = sites.trial.check(mutate(sites.trial.trace, mutation))
    touched = [sites.outline.sentence_at(place.start) for place in mutation.places]
    moved = _Moves(mutation)
    touched_after = [moved.forth(span) for span in touched]
    before = _flags_in(sites.text, sites.findings, touched)
    text = _apply(sites.text, mutation)
    new = _flags_in(text, after.findings, touched_after) - before
    old = _elsewhere(sites.findings, touched)
    now = _elsewhere(after.findings, touched_after)
    still = Counter((*moved.forth((start, end)), label) for start, end, label in old.elements())
    lost, gained = still - now, now - still
    places = [moved.forth((one.start - _BESIDE, one.end + _BESIDE)) for one in mutation.places]
    return MutationVerdict(
        frozenset(rule for rule, _ in new),
        old.total(),
        lost.total(),
        sum(number for (_, _, label), number in gained.items() if label in FLAGS),
        frozenset((one.label, one.rule) for one in after.findings if _is_in(one, places)),
    )


def _apply(text: str, mutation: Mutation) -> str:
    for place in sorted(mutation.places, reverse=True):
        text = text[: place.start] + place.text + text[place.end :]
    return text


class _Moves:
    """Where what stood in the text before stands after it."""

    def __init__(self, mutation: Mutation) -> None:
        self._places = sorted(mutation.places)

    def forth(self, span: Span) -> Span:
        start = end = 0
        for place in self._places:
            by = len(place.text) - (place.end - place.start)
            start += by if place.start < span[0] else 0
            end += by if place.start < span[1] else 0
        return span[0] + start, span[1] + end


def _is_in(one: StatementFinding, spans: Sequence[Span]) -> bool:
    return any(one.start < end and one.end > start for start, end in spans)


def _flags_in(
    text: str, findings: Iterable[StatementFinding], spans: Sequence[Span]
) -> Counter[tuple[str, str]]:
    return Counter(
        (one.rule, text[one.start : one.end])
        for one in findings
        if one.label in FLAGS and _is_in(one, spans)
    )


def _elsewhere(
    findings: Iterable[StatementFinding], spans: Sequence[Span]
) -> Counter[tuple[int, int, str]]:
    return Counter((one.start, one.end, one.label) for one in findings if not _is_in(one, spans))
