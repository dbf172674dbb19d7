"""Mistakes of every kind planted in real answers, as `make agree` plants them, and why those that
no rule found were not found."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from callmark.records.statements import FLAGS, RULES
from dev.agree.material import RealTrial, trials_of
from dev.agree.planting import MutationVerdict, plant_each
from dev.agree.sites import Mutation
from dev.campaign.reasons import UNEXPLAINED
from dev.campaign.tally import Tally

SOURCES = ("airline", "retail")
STANDING = "the sentence had this flag before"
SAID = "the user, or an argument, said the new value"
NOT_CLAIMED = "proposed, asked or promised: it is not claimed"
# What a rule made of the altered place, where it found nothing wrong.
_BY_RULE = {
    "small number": "a whole number below 13 that no key or noun links to anything",
    "quotation": "a quotation that no result has",
    "word": "a word that is a key of the results",
    "month": "a month alone is no date",
    "masked": "an identifier of which only the end is shown",
    "count": "another list of these things has as many",
    "equation": "the equation comes out all the same",
    "name": "it is an identifier of another record, and names that one",
    "bound": "the record that is spoken of has the value too, in another field",
    "joined": "a record that names the one that is spoken of has the value",
    "match": "another leaf has the value, and nothing says whose it is meant to be",
    "unbound": "another leaf has the value, and the record that is spoken of has no such field",
    "change": "a change is told: one of two values may be the old one",
    "echo": "the record that is spoken of has the value as an argument repeats it",
    "ending": "the digits end an identifier",
    "deed": "a call was made that does such things",
    "polarity": "the clause agrees with another yes or no",
}
_BY_LABEL = {
    "rounded": "another leaf rounds to it",
    "converted": "another leaf is as much in another unit",
    "derived": "it follows from values beside it by arithmetic that a word announces",
    "calculated": "it follows from values beside it by arithmetic that a word announces",
}
# What is altered is no value: where no rule has anything to say, that is why.
_UNREAD = {
    "unit_unstated": "no result says in which unit or currency its number is",
    "currency_unstated": "no result says in which unit or currency its number is",
    "name": "a name that nobody has is a word like others",
    "enum": "one word of a few for another: nothing says which exclude each other",
    "rank": "the superlative is not about a column that a list has",
    "deed": "the new verb is not read as a deed",
    "denial": "the denied sentence states no value, and no text of a result",
    "negate": "the other clause is not read as yes or no",
    "unit": "the new unit is not read as one",
    "currency": "the new unit is not read as one",
}


def mutate_source(folder: Path, source: str, most: int, limit: int | None) -> Tally:
    return mutate_statements(trials_of(folder, source, limit), most)


def mutate_statements(trials: Sequence[RealTrial], most: int) -> Tally:
    """Up to `most` of each kind in each half; `lowered` are those that a firm rule found, which
    alone lower a score."""
    tally = Tally()
    for trial, mutation, verdict in plant_each(trials, most):
        if verdict.rules:
            tally.killed[mutation.kind] += 1
            tally.lowered[mutation.kind] += any(RULES[one].tier == "firm" for one in verdict.rules)
        else:
            tally.note(mutation.kind, reason_for(mutation, verdict), _show(trial.key, mutation))
    return tally


def reason_for(mutation: Mutation, verdict: MutationVerdict) -> str:
    """By what the rules made of the altered place; of several the first in this order."""
    labels = {label for label, _ in verdict.labels}
    if labels & FLAGS:
        return STANDING
    if "user_said" in labels:
        return SAID
    if "not_claimed" in labels:
        return NOT_CLAIMED
    if mutation.kind in _UNREAD and not _says_why(mutation.kind, verdict):
        return _UNREAD[mutation.kind]
    for label, rule in sorted(verdict.labels):
        if reason := _BY_LABEL.get(label, "") if rule not in _BY_RULE else _BY_RULE[rule]:
            return reason
    return UNEXPLAINED


def _says_why(kind: str, verdict: MutationVerdict) -> bool:
    """A deed that a call has done; beside a name or a unit values may stand that are right."""
    return kind == "deed" and any(rule == "deed" for _, rule in verdict.labels)


def _show(key: str, mutation: Mutation) -> str:
    return f"{mutation.kind} at {mutation.places[0].start}: {mutation.places[0].text!r} in {key}"
