"""What a rule makes of what an answer says: labels, the table of rules, and how firm each is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from callmark.records.jsontext import Json, well_formed
from callmark.records.problems import hint, show_value

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
