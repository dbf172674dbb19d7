"""Deeds: what an answer says was done, against the calls that were served."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from callmark.grounding.outline import Outline
from callmark.grounding.record_tree import key_stems, stem

# Words for one deed, in the forms in which tools and people name it. The first names the family.
_FAMILIES = tuple(
    tuple(line.split())
    for line in """
    cancel cancellation void annul
    book booking reserve reservation
    create order place open make
    modify update change edit set switch correct adjust apply
    refund reimburse credit return
    exchange swap replace replacement
    send email mail notify forward message sms
    transfer escalate
    charge pay payment bill debit
    add attach include
    remove delete drop
    schedule reschedule
    enable activate resume reactivate unlock
    disable suspend deactivate pause lock block
    upgrade downgrade
    ship dispatch
    submit file register
    """.strip().splitlines()
)
_FAMILY: dict[str, int] = {
    stem(word): number for number, family in enumerate(_FAMILIES) for word in family
}
# What these do is said by the noun: `the refund has been processed`.
_LIGHT = frozenset(
    stem(word)
    for word in (
        "process complete issue initiate confirm finalize handle do perform execute submit make"
        " place".split()
    )
)
_DONE = re.compile(
    r"\b(?:i|we)(?:['’]ve|\s+have)\s+(?:(?:now|just|also|already|successfully|gone ahead and)\s+)*"
    r"(?P<first>[a-z]+(?:ed|ent|ade|ut|et|aid))\b"
    r"|\b(?:has|have)\s+(?:(?:now|also|already|successfully)\s+)*been\s+"
    r"(?:(?:now|successfully|fully)\s+)*"
    r"(?P<passive>[a-z]+(?:ed|ent|ade|ut|et|aid))\b"
    r"|\b(?:is|are)\s+now\s+(?P<state>[a-z]+ed)\b",
    re.IGNORECASE,
)
_UNSAID = re.compile(
    r"\b(?:if|once|when|after|before|until|unless|whether|not|never|n['’]t|will|would|can|could"
    r"|should|may|might|please|must|need|needs|already|previously|originally)\b|\?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[^\W\d_]{2,}")


class Deed(NamedTuple):
    """`verb` is what was done in one word; `is_served`: a call did something of the kind."""

    start: int
    end: int
    verb: str
    is_served: bool


class DoneCall(NamedTuple):
    """A call that was answered and did not fail."""

    turn: int | None
    name: str
    words: str  # its description, if the registry has one, and the texts of its result


def find_deeds(
    outline: Outline, calls: Iterable[DoneCall], turn_at: Callable[[int], int | None]
) -> Iterator[Deed]:
    done = [(call.turn, _families(call.name, call.words)) for call in calls]
    for sentence in outline.sentences:
        for clause in outline.clauses(sentence):
            for found in _DONE.finditer(outline.text, *clause):
                if _UNSAID.search(outline.text, clause[0], found.start()):
                    continue
                wanted = _meant(found, outline.text[clause[0] : clause[1]])
                if not wanted:
                    continue
                turn = turn_at(found.start())
                served = any(
                    wanted & families
                    for at, families in done
                    if turn is None or at is None or at < turn
                )
                yield Deed(found.start(), found.end(), found[0], served)


def _meant(found: re.Match[str], clause: str) -> frozenset[int]:
    verb = stem(next(filter(None, found.groups())))
    if verb in _LIGHT:
        return frozenset(_FAMILY[one] for one in map(stem, _WORD.findall(clause)) if one in _FAMILY)
    return frozenset((_FAMILY[verb],)) if verb in _FAMILY else frozenset()


def _families(name: str, words: str) -> frozenset[int]:
    stems = {*key_stems(name), *map(stem, _WORD.findall(words))}
    return frozenset(_FAMILY[one] for one in stems if one in _FAMILY)
