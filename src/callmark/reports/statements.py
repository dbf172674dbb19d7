"""The statements of answers as reports list them: counts, and every flag with its sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import get_args

import msgspec

from callmark.records.results import Result, Scores
from callmark.records.statements import GOOD, Statement, StatementLabel, Tier

ORDER: tuple[StatementLabel, ...] = get_args(StatementLabel)
SHOWN_FLAGS = 20  # of one trial, where trials are listed


class ListedFlag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag with what the answer says there. `call`, `path`: the leaf that says otherwise."""

    sample_id: str
    trial: int
    text: str
    label: StatementLabel
    rule: str
    tier: Tier
    because: str
    call: int | None = None
    path: str | None = None


class RuleCount(msgspec.Struct, frozen=True):
    label: StatementLabel
    rule: str
    tier: Tier | None
    statements: int


class StatementList(msgspec.Struct, frozen=True):
    """Labels and rules that occur, in the order of the labels; flags in the order of the run,
    the firm ones first."""

    trials: int
    statements: int
    by_label: dict[StatementLabel, int]
    by_rule: tuple[RuleCount, ...]
    flags: tuple[ListedFlag, ...]


class TierCounts(msgspec.Struct, frozen=True):
    """How many statements of one trial are good, flagged by a firm or an advisory rule, and
    unchecked; what only repeats the user or claims nothing is none of these."""

    good: int
    firm: int
    advisory: int
    unchecked: int


def list_statements(results: Iterable[Result]) -> StatementList:
    """One pass over the trials."""
    counts: Counter[tuple[StatementLabel, str, Tier | None]] = Counter()
    firm: list[ListedFlag] = []
    advisory: list[ListedFlag] = []
    trials = 0
    for result in results:
        trials += 1
        for one in () if result.scores is None else result.scores.statements:
            counts[one.label, one.rule, one.tier] += 1
        for flag in flags_of(result):
            (firm if flag.tier == "firm" else advisory).append(flag)
    labels: Counter[StatementLabel] = Counter()
    for (label, _, _), count in counts.items():
        labels[label] += count
    return StatementList(
        trials,
        counts.total(),
        {label: labels[label] for label in ORDER if labels[label]},
        tuple(RuleCount(*key, counts[key]) for key in sorted(counts, key=_rank)),
        (*firm, *advisory),
    )


def _rank(key: tuple[StatementLabel, str, Tier | None]) -> tuple[int, str, str]:
    label, rule, tier = key
    return ORDER.index(label), rule, tier or ""


def flags_of(result: Result) -> Iterator[ListedFlag]:
    answer = result.model_output.encode("utf-8", "surrogatepass")
    for one in () if result.scores is None else result.scores.statements:
        if one.tier is not None:
            yield ListedFlag(
                sample_id=result.sample_id,
                trial=result.trial,
                text=answer[one.start : one.end].decode("utf-8", "replace"),
                label=one.label,
                rule=one.rule,
                tier=one.tier,
                because=one.because,
                call=one.call,
                path=one.path,
            )


def count_tiers(scores: Scores) -> TierCounts:
    good = firm = advisory = unchecked = 0
    for one in scores.statements:
        good += one.label in GOOD
        firm += one.tier == "firm"
        advisory += one.tier == "advisory"
        unchecked += one.label == "unchecked"
    return TierCounts(good, firm, advisory, unchecked)


def explain_firm(scores: Scores | None, told: str = "") -> tuple[str, ...]:
    """The sentences of the firm flags of a trial that are not `told` already: the first ones, and
    how many more there are."""
    statements = () if scores is None else scores.statements
    found = [one for one in statements if one.is_firm and f"{one.label}: {one.because}" not in told]
    sentences = [explain_flag(one) for one in found[:SHOWN_FLAGS]]
    if len(found) > SHOWN_FLAGS:
        sentences.append(f"and {len(found) - SHOWN_FLAGS} more flags")
    return tuple(sentences)


def explain_flag(one: Statement | ListedFlag) -> str:
    """`misattributed: says “257”; call 0 /flights/0/price has 120; …`"""
    return f"{one.label}: {one.because}"
