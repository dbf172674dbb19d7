"""What a rule makes of what an answer says: labels, the table of rules, how firm each is, and what
was measured to earn it that tier."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

import msgspec

from callmark.records.jsontext import Json, well_formed
from callmark.records.problems import hint, show_value
from callmark.stats.estimates import Z_ONE_SIDED, wilson

StatementLabel = Literal[
    "supported",  # a result says so
    "rounded",
    "converted",  # in another unit
    "calculated",  # an equation that is written out, and right
    "derived",  # a count, sum, difference, product that a word announces
    "user_said",
    "not_claimed",  # a plan, an offer, a question, a promise
    "unsupported",
    "misattributed",  # true of another record
    "wrong_field",  # true of another field of the record
    "contradicted",
    "miscalculated",
    "miscounted",
    "unit_mismatch",
    "altered",  # a name or an identifier near a real one
    "unchecked",  # no rule can decide: counted, shown, never a pass
]
Tier = Literal["firm", "advisory"]

GOOD: frozenset[StatementLabel] = frozenset(
    ("supported", "rounded", "converted", "calculated", "derived")
)
NEUTRAL: frozenset[StatementLabel] = frozenset(("user_said", "not_claimed"))
FLAGS: frozenset[StatementLabel] = frozenset(
    (
        "unsupported",
        "misattributed",
        "wrong_field",
        "contradicted",
        "miscalculated",
        "miscounted",
        "unit_mismatch",
        "altered",
    )
)


class Rule(NamedTuple):
    """One row of the table of rules that raise flags. `tier` holds for a scorer version: a rule is
    firm only while the counts in `docs/agreement.json` carry it."""

    name: str
    label: StatementLabel
    tier: Tier
    what: str


RULES: dict[str, Rule] = {
    rule.name: rule
    for rule in (
        Rule(
            "equation", "miscalculated", "advisory", "a sum that is written out does not come out"
        ),
        Rule("count", "miscounted", "advisory", "more things are counted than the results list"),
        Rule("misread", "unsupported", "firm", "a number a slip away from one that a result gives"),
        Rule("value", "unsupported", "advisory", "a value that nothing served, said or implied"),
        Rule("baseless", "unsupported", "firm", "values among which hardly one was served"),
        Rule("prose", "unsupported", "advisory", "a value that the long texts served do not hold"),
        Rule("link", "unsupported", "advisory", "an address that nothing served or said"),
        Rule("identifier", "altered", "firm", "an identifier of the right form that no one gave"),
        Rule(
            "record", "misattributed", "advisory", "another record's value, said of one by its name"
        ),
        Rule("binding", "misattributed", "advisory", "the value of another record"),
        Rule("field", "wrong_field", "advisory", "the value of another field of the record"),
        Rule("unit", "unit_mismatch", "advisory", "the right number in the wrong unit or currency"),
        Rule("polarity", "contradicted", "advisory", "yes where the results say no, or no for yes"),
        Rule("unknown", "unsupported", "advisory", "yes or no where the results know nothing"),
        Rule("hours", "contradicted", "advisory", "days or times that the opening hours deny"),
        Rule("weekday", "contradicted", "advisory", "the wrong day of the week for a date"),
        Rule("state", "contradicted", "advisory", "another state or kind than the results give"),
        Rule("rank", "contradicted", "advisory", "a superlative that another record deserves"),
        Rule("name", "altered", "advisory", "a name or quotation near one of the results"),
        Rule("unnamed", "unsupported", "advisory", "things or a source that no result names"),
        Rule("deed", "unsupported", "advisory", "a deed that no call has done"),
        Rule("denial", "contradicted", "firm", "a value that a result gives is denied"),
    )
}


LONGEST_QUOTE = 80  # characters of a value in a sentence


def quote_said(text: str) -> str:
    """How the sentence of a flag begins: `says “57”`."""
    said = " ".join(text.split())
    said = said if len(said) <= LONGEST_QUOTE else f"{said[: LONGEST_QUOTE - 1]}…"
    return well_formed(f"says “{said}”")


def tier_problems(tiers: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with `{rule: tier}` as a file has it: where, and what."""
    for rule, tier in tiers.items() if isinstance(tiers, dict) else ():
        if rule not in RULES:
            near = hint(str(rule), RULES) or f"; there are {', '.join(RULES)}"
            yield (str(rule),), f"unknown rule{near}"
        elif tier not in get_args(Tier):
            yield (str(rule),), f"must be firm or advisory, not {show_value(tier)}"


Verdict = Literal["right", "wrong", "unclear"]

FEWEST_SOURCES = 2
FEWEST_JUDGED = 40
LOWEST_PRECISION = 0.75  # of the one-sided 95 % bound
FEWEST_PLANTED = 200
LOWEST_CAUGHT = 0.8
MOST_FLAGGED = 0.005  # of right answers, by one rule
MOST_FLAGGED_TOGETHER = 0.02  # of answers that people judged right, by all firm rules


class SourceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """One rule on one source. `right` of its `judged` flags were right, `caught` of the mistakes
    `planted` for it were found by it, and it `flagged` so many of the `answers` that were right.
    `tuned`: the rule was written while looking at this material, which then proves nothing."""

    source: str
    tuned: bool
    right: int = 0
    judged: int = 0
    caught: int = 0
    planted: int = 0
    flagged: int = 0
    answers: int = 0


class RuleCounts(msgspec.Struct, frozen=True, kw_only=True):
    """`tier` is what the rule shipped with when it was measured."""

    rule: str
    label: str
    tier: Tier
    sources: tuple[SourceCounts, ...]


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a reader said of one statement, without its text: `text_sha256` is the hash of the
    answer, `start` to `end` are bytes of it. `verdict` is about the statement: where it is
    `wrong`, the flag of `rule` is right."""

    source: str
    text_sha256: str
    start: int
    end: int
    rule: str
    verdict: Verdict


class FlaggedTogether(msgspec.Struct, frozen=True, kw_only=True):
    """How many answers that people judged right were flagged by exactly these rules."""

    rules: tuple[str, ...]
    answers: int


class PeoplesAnswers(msgspec.Struct, frozen=True, kw_only=True):
    """Answers of one source that people judged right, and what flagged them."""

    source: str
    tuned: bool
    answers: int
    flagged: tuple[FlaggedTogether, ...] = ()

    def flagged_by(self, firm: Iterable[str]) -> int:
        wanted = set(firm)
        return sum(one.answers for one in self.flagged if wanted.intersection(one.rules))


class AgreementCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The part of `docs/agreement.json` that carries the tiers."""

    scorer_version: str
    rules_sha256: str
    rules: tuple[RuleCounts, ...]
    people: tuple[PeoplesAnswers, ...]


def earned_tier(sources: Sequence[SourceCounts]) -> Tier:
    """Firm, if flags on two untuned sources were judged and their precision is surely 0.75, or if
    the rule finds 0.8 of the mistakes planted there and leaves 99.5 % of right answers alone."""
    proven = [one for one in sources if not one.tuned]
    is_firm = _is_judged_right(proven) or _finds_what_is_planted(proven)
    return "firm" if is_firm else "advisory"


def _is_judged_right(sources: Sequence[SourceCounts]) -> bool:
    judged = sum(one.judged for one in sources)
    if judged < FEWEST_JUDGED or sum(one.judged > 0 for one in sources) < FEWEST_SOURCES:
        return False
    right = sum(one.right for one in sources)
    return wilson(right, judged, Z_ONE_SIDED)[0] >= LOWEST_PRECISION


def _finds_what_is_planted(sources: Sequence[SourceCounts]) -> bool:
    planted = sum(one.planted for one in sources)
    answers = sum(one.answers for one in sources)
    if planted < FEWEST_PLANTED or sum(one.planted > 0 for one in sources) < FEWEST_SOURCES:
        return False
    caught = sum(one.caught for one in sources)
    flagged = sum(one.flagged for one in sources)
    # No right answer was looked at: then nobody knows how many false alarms there are.
    return answers > 0 and caught >= LOWEST_CAUGHT * planted and flagged <= MOST_FLAGGED * answers


def unearned_tiers(counts: AgreementCounts, tiers: Mapping[str, Tier]) -> list[str]:
    """What the counts do not carry, a sentence each."""
    measured = {one.rule: one for one in counts.rules}
    firm = sorted(name for name, tier in tiers.items() if tier == "firm")
    problems = []
    for name in firm:
        if name not in measured:
            problems.append(f"{name}: is firm, and was never measured")
        elif earned_tier(measured[name].sources) != "firm":
            problems.append(f"{name}: is firm, but its counts make it advisory")
    people = [one for one in counts.people if not one.tuned]
    answers = sum(one.answers for one in people)
    flagged = sum(one.flagged_by(firm) for one in people)
    if firm and not answers:
        problems.append("no answer that people judged right was looked at")
    elif flagged > MOST_FLAGGED_TOGETHER * answers:
        problems.append(
            f"the firm rules together flag {flagged} of {answers} answers that people judged right:"
            f" more than {MOST_FLAGGED_TOGETHER:.0%}"
        )
    return problems


class ShownResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result that had been served before the statement, as JSON text, cut where it is long."""

    call: int
    tool: str | None
    arguments: str
    result: str


class LabelLine(msgspec.Struct, frozen=True, kw_only=True):
    """One statement for a person to judge, without what a rule says of it. `statement_id` is the
    key to that; `verdict` is the first reader's, `verdict_2` the second one's."""

    statement_id: str
    sample_id: str
    trial: int
    statement: str
    sentence: str
    said: tuple[str, ...] = ()
    results: tuple[ShownResult, ...] = ()
    verdict: Verdict | None = None
    verdict_2: Verdict | None = None


class StatementKey(msgspec.Struct, frozen=True, kw_only=True):
    """What a label line does not show. `stratum` is what it was drawn from: a rule whose flag it
    is, or a label that is no flag."""

    statement_id: str
    text_sha256: str
    start: int
    end: int
    rule: str
    label: str
    stratum: str
    is_flag: bool


class LabelKeys(msgspec.Struct, frozen=True, kw_only=True):
    """Beside a file of label lines: the keys of its lines, and how many statements of each stratum
    the run has, so that a few that were read can stand for all of them."""

    scorer_version: str
    population: dict[str, int]
    keys: tuple[StatementKey, ...]


class RuleAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """One rule, or one label, or all flags. `right` of `judged` flags lie on a statement that is
    wrong. `recall`: which share of all wrong statements of the run it finds, estimated from those
    that were read; None where none of them was wrong."""

    name: str
    right: int
    judged: int
    precision: tuple[float, float] | None
    recall: float | None
    recall_interval: tuple[float, float] | None
    tier: Tier | None = None
    proposed: Tier | None = None


class LabelAgreement(msgspec.Struct, frozen=True, kw_only=True):
    """What two readers, or one, make of the flags of a run."""

    lines: int
    judged: int
    unclear: int
    unread: int
    wrong: int
    wrong_unflagged: int
    judged_unflagged: int
    all_flags: RuleAgreement
    firm_flags: RuleAgreement
    rules: tuple[RuleAgreement, ...]
    labels: tuple[RuleAgreement, ...]
    kappa: float | None = None
    read_twice: int = 0
    alike: int = 0
