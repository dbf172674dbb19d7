"""What people's verdicts make of the rules: precision, recall, whether two readers agree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from callmark.records.statements import (
    LOWEST_PRECISION,
    RULES,
    Judgement,
    LabelAgreement,
    LabelKeys,
    LabelLine,
    RuleAgreement,
    StatementKey,
    Tier,
    Verdict,
)
from callmark.stats.estimates import Z_ONE_SIDED, Z_TWO_SIDED, wilson

FEWEST_OWN = 9  # fewer flags could not make a rule firm, were they all right


class _Judged(NamedTuple):
    """A statement that was found right or wrong, and how many of the run it stands for."""

    key: StatementKey
    is_wrong: bool
    weight: float


def verdict_of(line: LabelLine) -> Verdict | None:
    """Of two readers who differ nobody is believed."""
    first, second = line.verdict, line.verdict_2
    if first is None or second is None or first == second:
        return first or second
    return "unclear"


def agree(
    lines: Sequence[LabelLine], keys: LabelKeys, tiers: Mapping[str, Tier] | None = None
) -> LabelAgreement:
    """`tiers`: those of rules that do not have the one they ship with."""
    by_id = {key.statement_id: key for key in keys.keys}
    verdicts = [(by_id[line.statement_id], verdict_of(line)) for line in lines]
    judged = _weigh(verdicts, keys.population)
    in_force = {name: (tiers or {}).get(name, rule.tier) for name, rule in RULES.items()}
    flags = [one for one in judged if one.key.is_flag]
    firm = [one for one in flags if in_force[one.key.rule] == "firm"]
    rules = sorted({one.key.rule for one in flags}, key=list(RULES).index)
    pairs = [(one.verdict, one.verdict_2) for one in lines if one.verdict and one.verdict_2]
    unflagged = [one for one in judged if not one.key.is_flag]
    return LabelAgreement(
        lines=len(lines),
        judged=len(judged),
        unclear=sum(verdict == "unclear" for _, verdict in verdicts),
        unread=sum(verdict is None for _, verdict in verdicts),
        wrong=sum(one.is_wrong for one in judged),
        wrong_unflagged=sum(one.is_wrong for one in unflagged),
        judged_unflagged=len(unflagged),
        all_flags=_figures("all flags", flags, judged),
        firm_flags=_figures("firm flags", firm, judged),
        rules=tuple(
            _with_tier(
                _figures(rule, [one for one in flags if one.key.rule == rule], judged),
                in_force[rule],
            )
            for rule in rules
        ),
        labels=tuple(
            _figures(label, [one for one in flags if one.key.label == label], judged)
            for label in sorted({one.key.label for one in flags})
        ),
        kappa=kappa(pairs),
        read_twice=len(pairs),
        alike=sum(first == second for first, second in pairs),
    )


def _weigh(
    verdicts: Iterable[tuple[StatementKey, Verdict | None]], population: Mapping[str, int]
) -> list[_Judged]:
    """Each that was judged stands for an equal share of its stratum."""
    decided = [(key, verdict) for key, verdict in verdicts if verdict in ("right", "wrong")]
    read = Counter(key.stratum for key, _ in decided)
    return [
        _Judged(key, verdict == "wrong", population[key.stratum] / read[key.stratum])
        for key, verdict in decided
    ]


def _figures(name: str, flags: Sequence[_Judged], judged: Sequence[_Judged]) -> RuleAgreement:
    right = sum(one.is_wrong for one in flags)
    wrong = [one.weight for one in judged if one.is_wrong]
    found = sum(one.weight for one in flags if one.is_wrong)
    recall = found / sum(wrong) if wrong else None
    # Kish: so many equal weights would tell as much as these do.
    effective = sum(wrong) ** 2 / sum(one * one for one in wrong) if wrong else 0.0
    return RuleAgreement(
        name=name,
        right=right,
        judged=len(flags),
        precision=wilson(right, len(flags), Z_TWO_SIDED) if flags else None,
        recall=recall,
        recall_interval=None
        if recall is None
        else wilson(recall * effective, effective, Z_TWO_SIDED),
    )


def _with_tier(figures: RuleAgreement, tier: Tier) -> RuleAgreement:
    """Firm, if the flags are surely right often enough; advisory, if they surely are not; else the
    verdicts are too few, and nothing is proposed."""
    low, high = wilson(figures.right, figures.judged, Z_ONE_SIDED)
    proposed: Tier | None = None
    if figures.judged < FEWEST_OWN:
        pass
    elif low >= LOWEST_PRECISION:
        proposed = "firm"
    elif high < LOWEST_PRECISION:
        proposed = "advisory"
    return RuleAgreement(
        name=figures.name,
        right=figures.right,
        judged=figures.judged,
        precision=figures.precision,
        recall=figures.recall,
        recall_interval=figures.recall_interval,
        tier=tier,
        proposed=proposed,
    )


def kappa(pairs: Sequence[tuple[Verdict | None, Verdict | None]]) -> float | None:
    """Cohen's. None: nothing was read twice, or both readers always said the same one thing."""
    if not pairs:
        return None
    total = len(pairs)
    first, second = Counter(one for one, _ in pairs), Counter(two for _, two in pairs)
    alike = sum(one == two for one, two in pairs) / total
    by_chance = sum(first[one] * second[one] for one in first) / (total * total)
    return None if by_chance == 1 else (alike - by_chance) / (1 - by_chance)


def judgements_of(lines: Iterable[LabelLine], keys: LabelKeys, source: str) -> list[Judgement]:
    """The verdicts without a word of what they are about."""
    by_id = {key.statement_id: key for key in keys.keys}
    found = []
    for line in lines:
        verdict, key = verdict_of(line), by_id[line.statement_id]
        if verdict is not None:
            found.append(
                Judgement(
                    source=source,
                    text_sha256=key.text_sha256,
                    start=key.start,
                    end=key.end,
                    rule=key.rule if key.is_flag else "",
                    verdict=verdict,
                )
            )
    return sorted(found, key=lambda one: (one.text_sha256, one.start, one.end, one.rule))
