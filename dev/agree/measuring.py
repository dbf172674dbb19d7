"""What the rules say of answers as they are: against people's marks and against rewards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from callmark.grounding.checking import StatementFinding
from callmark.records.statements import FLAGS, GOOD, RULES, FlaggedTogether
from callmark.scorers.integration import TrialReading
from dev.agree.material import RealTrial


class JudgedFlags(msgspec.Struct, frozen=True):
    """`right` of the `flags` lie on something that a person marked."""

    flags: int = 0
    right: int = 0


class LabelledCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of one half of a source in which people marked `spans`: `found` of them are flagged,
    `found_firm` by a firm rule. `clean`: answers in which nobody marked anything; `combinations`:
    which rules flagged so many of these together. `flags_on_clean` are single flags."""

    source: str
    half: int
    answers: int
    spans: int
    found: int
    found_firm: int
    types: dict[str, tuple[int, int]]  # kind of span -> how many, and how many are flagged
    rules: dict[str, JudgedFlags]
    labels: dict[str, JudgedFlags]
    all_flags: JudgedFlags
    firm_flags: JudgedFlags
    clean: int
    clean_flagged: int
    clean_flagged_firm: int
    flags_on_clean: int
    combinations: tuple[FlaggedTogether, ...]


class RewardCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Episodes of one half of a source with one kind of reward. `scores` are, for each episode, its
    flags and its firm flags as shares of what was checked in it. `turns`: answers after the first
    result; `combinations`: which rules flagged so many of them."""

    source: str
    half: int
    reward: int  # 1: a reward of 1; 0: anything less
    episodes: int
    flagged: int
    flagged_firm: int
    scores: tuple[tuple[float, float], ...]
    turns: int
    combinations: tuple[FlaggedTogether, ...]
    labels: dict[str, int]
    rules: dict[str, int]


def is_firm(rule: str) -> bool:
    return RULES[rule].tier == "firm"


def measure_labelled(trials: Sequence[RealTrial]) -> LabelledCounts:
    """All of one source and one half."""
    tally = _LabelledTally()
    for trial in trials:
        _, statements = trial.check()
        tally.add(trial, [one for one in statements.findings if one.label in FLAGS])
    return tally.counts(trials[0].source, trials[0].half, len(trials))


class _LabelledTally:
    def __init__(self) -> None:
        self.spans: Counter[str] = Counter()
        self.found: Counter[str] = Counter()
        self.found_firm = 0
        self.flags: Counter[str] = Counter()
        self.right: Counter[str] = Counter()
        self.combinations: Counter[tuple[str, ...]] = Counter()
        self.clean = self.flags_on_clean = 0

    def add(self, trial: RealTrial, flags: list[StatementFinding]) -> None:
        marked = trial.marked or ()
        for span in marked:
            hits = {one.rule for one in flags if one.start < span.end and one.end > span.start}
            self.spans[span.type] += 1
            self.found[span.type] += bool(hits)
            self.found_firm += any(map(is_firm, hits))
        for one in flags:
            self.flags[one.rule] += 1
            self.right[one.rule] += any(
                one.start < span.end and one.end > span.start for span in marked
            )
        if not marked:
            self.clean += 1
            self.flags_on_clean += len(flags)
            self.combinations[tuple(sorted({one.rule for one in flags}))] += 1

    def counts(self, source: str, half: int, answers: int) -> LabelledCounts:
        labels = sorted({RULES[rule].label for rule in self.flags})
        flagged = [(rules, number) for rules, number in self.combinations.items() if rules]
        return LabelledCounts(
            source=source,
            half=half,
            answers=answers,
            spans=self.spans.total(),
            found=self.found.total(),
            found_firm=self.found_firm,
            types={kind: (self.spans[kind], self.found[kind]) for kind in sorted(self.spans)},
            rules={rule: self._judged([rule]) for rule in sorted(self.flags)},
            labels={
                label: self._judged([rule for rule in self.flags if RULES[rule].label == label])
                for label in labels
            },
            all_flags=self._judged(self.flags),
            firm_flags=self._judged([rule for rule in self.flags if is_firm(rule)]),
            clean=self.clean,
            clean_flagged=sum(number for _, number in flagged),
            clean_flagged_firm=sum(number for rules, number in flagged if any(map(is_firm, rules))),
            flags_on_clean=self.flags_on_clean,
            combinations=combinations_of(self.combinations),
        )

    def _judged(self, rules: Iterable[str]) -> JudgedFlags:
        names = list(rules)
        return JudgedFlags(sum(self.flags[one] for one in names), sum(self.right[r] for r in names))


def combinations_of(found: Counter[tuple[str, ...]]) -> tuple[FlaggedTogether, ...]:
    return tuple(
        FlaggedTogether(rules=rules, answers=number)
        for rules, number in sorted(found.items())
        if rules
    )


def measure_rewards(trials: Sequence[RealTrial], reward: int) -> RewardCounts:
    """All of one source, one half and one kind of reward."""
    flagged = flagged_firm = turns = 0
    scores: list[tuple[float, float]] = []
    combinations: Counter[tuple[str, ...]] = Counter()
    labels: Counter[str] = Counter()
    rules: Counter[str] = Counter()
    for trial in trials:
        reading, statements = trial.check()
        flags = [one for one in statements.findings if one.label in FLAGS]
        firm = [one for one in flags if is_firm(one.rule)]
        flagged += bool(flags)
        flagged_firm += bool(firm)
        checked = sum(one.label in GOOD or one.label in FLAGS for one in statements.findings)
        scores.append((len(flags) / max(1, checked), len(firm) / max(1, checked)))
        labels.update(one.label for one in statements.findings)
        rules.update(one.rule for one in flags)
        by_turn: dict[int | None, set[str]] = {turn: set() for turn in _turns(trial, reading)}
        for one in flags:
            by_turn.setdefault(reading.turn_at(one.start), set()).add(one.rule)
        turns += len(by_turn)
        combinations.update(tuple(sorted(found)) for found in by_turn.values())
    return RewardCounts(
        source=trials[0].source,
        half=trials[0].half,
        reward=reward,
        episodes=len(trials),
        flagged=flagged,
        flagged_firm=flagged_firm,
        scores=tuple(scores),
        turns=turns,
        combinations=combinations_of(combinations),
        labels=dict(sorted(labels.items())),
        rules=dict(sorted(rules.items())),
    )


def _turns(trial: RealTrial, reading: TrialReading) -> list[int]:
    """The turns that say something after the first result."""
    first = reading.first_served_turn
    return [
        turn
        for turn, (start, end) in enumerate(trial.trace.turns or (), start=1)
        if end > start and first is not None and turn > first
    ]


def area_under_curve(wrong: Sequence[float], right: Sequence[float]) -> float | None:
    """How often a failed episode has the higher score than one that succeeded; ties are halves."""
    if not wrong or not right:
        return None
    wins = sum((bad > good) + (bad == good) / 2 for bad in wrong for good in right)
    return wins / (len(wrong) * len(right))
