"""All counts of one measurement, as `docs/agreement.json` holds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import msgspec

import callmark
from callmark.records.statements import (
    RULES,
    AgreementCounts,
    Judgement,
    PeoplesAnswers,
    Rule,
    RuleCounts,
    SourceCounts,
)
from callmark.scorers.score import SCORER_VERSION
from dev.agree.material import (
    EPISODES,
    HELD_BACK,
    LABELLED,
    OLDER,
    OTHER,
    SOURCES,
    TUNED,
    RealTrial,
    trials_of,
)
from dev.agree.measuring import (
    JudgedFlags,
    LabelledCounts,
    RewardCounts,
    measure_labelled,
    measure_rewards,
)
from dev.agree.mutations import KINDS_OF
from dev.agree.planting import PlantedCounts, plant
from dev.agree.trail import TrailCounts
from dev.agree.written import NAMES, WrittenCounts

PLANTED_IN = frozenset(one.name for one in (*EPISODES, *HELD_BACK)) | {"data2txt"}
# `unsupported` on the 314 older episodes before there were statements.
UNSUPPORTED_BEFORE = {"airline": 70, "retail": 224}


class Job(msgspec.Struct, frozen=True):
    """One source. `most`: mutations of each kind in each half; `limit`: trials, None for all."""

    source: str
    most: int
    limit: int | None = None


class Part(msgspec.Struct, frozen=True, kw_only=True):
    """What one job measured."""

    labelled: tuple[LabelledCounts, ...] = ()
    planted: tuple[PlantedCounts, ...] = ()
    rewards: tuple[RewardCounts, ...] = ()


class Agreement(AgreementCounts, frozen=True, kw_only=True):
    """The whole file: what carries the tiers, and what the page shows beside it."""

    labelled: tuple[LabelledCounts, ...] = ()
    planted: tuple[PlantedCounts, ...] = ()
    rewards: tuple[RewardCounts, ...] = ()
    written: tuple[WrittenCounts, ...] = ()
    trail: TrailCounts | None = None
    unsupported_before: dict[str, int] = msgspec.field(default_factory=dict)


def hash_of_rules() -> str:
    """SHA-256 over the source of everything that makes a flag: all modules of `grounding/` and the
    scorer of statements, names and bytes, in the order of their names. The tiers are not in it."""
    home = Path(callmark.__file__).parent
    files = [*sorted((home / "grounding").glob("*.py")), home / "scorers" / "statements.py"]
    total = sha256()
    for file in files:
        total.update(f"{file.parent.name}/{file.name}\n".encode())
        total.update(file.read_bytes().replace(b"\r\n", b"\n"))
    return total.hexdigest()


def measure(folder: Path, job: Job) -> Part:
    trials = trials_of(folder, job.source, job.limit)
    halves = [half for half in (TUNED, OTHER) if any(one.half == half for one in trials)]
    planted = plant(trials, job.most) if job.source in PLANTED_IN else []
    if SOURCES[job.source] in LABELLED:
        labelled = [measure_labelled([one for one in trials if one.half == h]) for h in halves]
        return Part(labelled=tuple(labelled), planted=tuple(planted))
    return Part(planted=tuple(planted), rewards=tuple(_rewards(trials, halves)))


def _rewards(trials: Sequence[RealTrial], halves: Iterable[int]) -> Iterator[RewardCounts]:
    for half in halves:
        for reward in (1, 0):
            kept = [
                one
                for one in trials
                if one.half == half and one.reward is not None and (one.reward >= 1) == reward
            ]
            if kept:
                yield measure_rewards(kept, reward)


def put_together(
    parts: Iterable[Part],
    judgements: Iterable[Judgement] = (),
    written: Iterable[WrittenCounts] = (),
    trail: TrailCounts | None = None,
) -> Agreement:
    every = list(parts)
    authored = tuple(written)
    labelled = tuple(one for part in every for one in part.labelled)
    planted = tuple(one for part in every for one in part.planted)
    rewards = tuple(one for part in every for one in part.rewards)
    judged = list(judgements)
    return Agreement(
        scorer_version=SCORER_VERSION,
        trail=trail,
        rules_sha256=hash_of_rules(),
        rules=tuple(
            RuleCounts(
                rule=rule.name,
                label=rule.label,
                tier=rule.tier,
                sources=tuple(_sources(rule, labelled, planted, rewards, judged, authored)),
            )
            for rule in RULES.values()
        ),
        people=tuple(
            PeoplesAnswers(
                source=one.source,
                tuned=is_tuned(one.source, one.half),
                answers=one.clean,
                flagged=one.combinations,
            )
            for one in labelled
        ),
        labelled=labelled,
        planted=planted,
        rewards=rewards,
        written=authored,
        unsupported_before=UNSUPPORTED_BEFORE,
    )


def is_tuned(source: str, half: int) -> bool:
    return half == TUNED and SOURCES[source] not in HELD_BACK


class _Sum(msgspec.Struct):
    right: int = 0
    judged: int = 0
    caught: int = 0
    planted: int = 0
    flagged: int = 0
    answers: int = 0


def _sources(
    rule: Rule,
    labelled: Iterable[LabelledCounts],
    planted: Iterable[PlantedCounts],
    rewards: Iterable[RewardCounts],
    judgements: Iterable[Judgement],
    written: Iterable[WrittenCounts],
) -> Iterator[SourceCounts]:
    """A right answer is one in which people marked nothing, one turn of an episode with a reward
    of 1, or one that an author wrote as right."""
    sums: dict[tuple[str, bool], _Sum] = {}

    def at(source: str, half: int) -> _Sum:
        return sums.setdefault((source, is_tuned(source, half)), _Sum())

    for one in labelled:
        found = one.rules.get(rule.name, JudgedFlags())
        row = at(one.source, one.half)
        row.right, row.judged = row.right + found.right, row.judged + found.flags
        row.answers += one.clean
        row.flagged += sum(c.answers for c in one.combinations if rule.name in c.rules)
    for kind in planted:
        if kind.kind in KINDS_OF.get(rule.name, ()):
            row = at(kind.source, kind.half)
            # Where another rule was there first, this one was not asked.
            row.planted += kind.rules.get(rule.name, 0) + kind.planted - kind.caught
            row.caught += kind.rules.get(rule.name, 0)
    for reward in rewards:
        if reward.reward == 1:
            row = at(reward.source, reward.half)
            row.answers += reward.turns
            row.flagged += sum(c.answers for c in reward.combinations if rule.name in c.rules)
    for authored in written:
        row = sums.setdefault((NAMES[authored.half], authored.half == TUNED), _Sum())
        row.answers += authored.answers
        row.flagged += sum(c.answers for c in authored.combinations if rule.name in c.rules)
    for judgement in judgements:
        if judgement.rule == rule.name and judgement.verdict != "unclear":
            row = sums.setdefault((judgement.source, False), _Sum())
            row.judged += 1
            row.right += judgement.verdict == "wrong"
    for (source, tuned), row in sorted(sums.items()):
        yield SourceCounts(source=source, tuned=tuned, **msgspec.structs.asdict(row))


def unsupported_now(agreement: Agreement, rules: Iterable[str] | None = None) -> dict[str, int]:
    """On the older episodes, by these rules (None: by all that give the label)."""
    names = [one.name for one in RULES.values() if one.label == "unsupported"]
    kept = names if rules is None else list(rules)
    return {
        source: sum(
            one.rules.get(rule, 0)
            for one in agreement.rewards
            if one.source == source
            for rule in kept
        )
        for source in OLDER
    }
