"""Deeds: what an answer says was done, against the calls that were served."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import Literal, NamedTuple

from callmark.grounding.record_tree import key_stems, stem
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import SIGNS, Frozen, fold, once
from callmark.records.jsontext import Json, texts_in
from callmark.records.trace import read_inside

# `write`: any call that changes something will do. The others need a call of their own kind.
DeedKind = Literal["cancel", "book", "exchange", "send", "transfer", "ship", "delete", "write"]
# `modify` and `create` write too. `run`: code, a shell, a tool that may do anything.
CallKind = DeedKind | Literal["modify", "create", "read", "run"]

_VERBS: dict[CallKind, str] = {
    "cancel": "cancel canceled void annul revoke",
    "book": "book reserve rebook purchase buy bought",
    "exchange": "exchange return",
    "send": "send sent email mail notify text forward inform contact alert message invite",
    "transfer": "transfer escalate handoff",
    "ship": "ship dispatch",
    "delete": "delete erase purge destroy trash",
    "modify": "update change modify edit adjust correct swap replace switch",
    "create": "create make made place",
    "write": """
        set reset put move rename write wrote save store refund reimburse credit charge bill debit
        pay paid compensate waive add attach remove drop clear upgrade downgrade apply
        process submit issue initiate start complete confirm finalize schedule reschedule enable
        disable activate deactivate reactivate suspend resume pause lock unlock block unblock
        register enroll grant approve assign close merge upload install deploy publish post restart
        reboot configure redeem extend renew replenish refuel insert append commit
        push arm disarm arrange archive restore subscribe unsubscribe stop halt acknowledge queue
        enqueue mute unmute pair launch retry rerun revert rotate reorder
    """,
    "read": """
        get find list search calculate check think read look lookup fetch query show view retrieve
        describe count compute convert validate verify estimate translate summarize classify analyze
        browse open load inspect compare locate detect predict recommend suggest weather is has
    """,
    "run": "exec execute run eval shell bash python terminal command invoke script sql",
}
_KINDS: dict[str, CallKind] = {
    stem(word): kind for kind, words in _VERBS.items() for word in words.split()
}
# In the name of a tool these are things: a page, a file.
_SAID: dict[str, CallKind] = {stem("paged"): "send", stem("pinged"): "send", stem("filed"): "write"}
# A pending order is exchanged by changing it, and a booking is created; a parcel is shipped by
# whatever creates or sends something, and what `remove_item` removed is deleted.
_DOES: dict[DeedKind, frozenset[CallKind]] = {
    "exchange": frozenset(("exchange", "modify")),
    "book": frozenset(("book", "create")),
    "delete": frozenset(("delete", "cancel")),
    "ship": frozenset(("ship", "create", "send", "write")),
}
# What these verbs do is said by a noun: `your exchange has been submitted`.
_LIGHT = frozenset(
    map(
        stem,
        "process complete confirm issue initiate finalize submit make made place start create set"
        " schedule apply".split(),
    )
)
_NOUN_LISTS: dict[DeedKind, str] = {
    "cancel": "cancellation cancelation",
    "book": "booking reservation",
    "exchange": "exchange return",
    "send": "email notification",
    "transfer": "transfer escalation",
    "write": "refund charge payment change update upgrade modification adjustment",
}
_NOUNS: dict[str, DeedKind] = {
    stem(word): kind for kind, words in _NOUN_LISTS.items() for word in words.split()
}
_REMOVING = frozenset(map(stem, "remove drop clear discard unsubscribe uninstall".split()))
# Whoever did the one did not do the other.
_OPPOSITE_LISTS = """
credit add grant award = reverse deduct remove subtract debit revoke
enable activate = disable deactivate
lock = unlock
arm = disarm
approve accept = reject deny decline
increase raise = decrease reduce lower
upgrade = downgrade
pause = resume
block = unblock
subscribe = unsubscribe
"""
_OPPOSITES: dict[str, tuple[frozenset[str], frozenset[str]]] = {}
for _line in _OPPOSITE_LISTS.strip().splitlines():
    _sides = [frozenset(map(stem, side.split())) for side in _line.split("=")]
    for _own, _other in (_sides, _sides[::-1]):
        _OPPOSITES.update((_verb, (_own, _other)) for _verb in _own)
# What is opened so is made; a file, a page or a door is not.
_OPENED = re.compile(
    r"\s+(?:a|an|the|your|another)\s+(?:new\s+)?(?:\w+\s+)?"
    r"(?:pr|pull request|ticket|issue|case|dispute|account|claim|request)\b",
    re.IGNORECASE,
)
_OPEN = stem("opened")
_MADE_BY_OPENING = frozenset(
    map(stem, "pr pull ticket issue case dispute account claim request position".split())
)
# `I made a mistake`, `we have completed the analysis`, `I applied the weights`: thinking leaves no
# trace in any call.
_NO_DEED = re.compile(
    r"(?:made\s+{0}(?:mistakes?|errors?|typos?|slips?|assumptions?|sure|sense|progress|calculations?"
    r"|comparisons?|guess\w*|attempts?)|completed\s+{0}(?:tasks?|steps?|analys[ei]s|research"
    r"|search\w*|reviews?|investigations?|calculations?|checks?)|applied\s+{0}(?:weight\w*|filters?"
    r"|formulas?|rates?|thresholds?|criteria|definitions?|rules?|polic(?:y|ies)|caps?))\b".format(
        r"(?:(?:an?|the|this|that|my|our|your|some|all|these|any|every|both|of)\s+)*(?:\w+\s+)?"
    ),
    re.IGNORECASE,
)
# Verbs of one meaning: a call that did so speaks of it, or of what it was done to.
_SPECIAL = frozenset(
    map(
        stem,
        "arm disarm waive upgrade downgrade reserve lock unlock enable disable activate deactivate"
        " subscribe unsubscribe extend renew redeem invite".split(),
    )
)
_EN_ADVERBS = (
    r"(?:(?:now|just|also|already|successfully|fully|both|been|indeed|then|since|immediately"
    r"|gone ahead and)\s+)*"
)
DEED_ENDINGS = ("ed", "ent", "ade", "put", "et", "aid", "ought", "rote")
_EN_VERB = rf"[a-z]+(?:{'|'.join(DEED_ENDINGS)})"
_PLAIN_VERB = "complete|completed|confirmed|submitted|processed|finalized|set|cancelled|canceled"
_OTHER_VERBS: tuple[tuple[DeedKind, str], ...] = (
    ("cancel", r"storniert|gekündigt|abgesagt|annulliert|cancelad[oa]s?|anulad[oa]s?|annulée?s?"),
    ("book", r"gebucht|reserviert|reservad[oa]s?|comprad[oa]s?|réservée?s?|achetée?s?"),
    (
        "exchange",
        r"umgetauscht|ausgetauscht|ersetzt|zurückgegeben|reemplazad[oa]s?|devuelt[oa]s?|échangée?s?"
        r"|remplacée?s?|retournée?s?",
    ),
    (
        "send",
        r"gesendet|geschickt|verschickt|versandt|benachrichtigt|enviad[oa]s?|notificad[oa]s?"
        r"|envoyée?s?|notifiée?s?",
    ),
    ("transfer", r"weitergeleitet|transferid[oa]s?|transférée?s?"),
    (
        "write",
        r"erstattet|zurückerstattet|belastet|abgebucht|hinzugefügt|geändert|aktualisiert|angepasst"
        r"|entfernt|gelöscht|erstellt|angelegt|bearbeitet|eingetragen|freigeschaltet|gutgeschrieben"
        r"|reembolsad[oa]s?|cargad[oa]s?|cobrad[oa]s?|añadid[oa]s?|agregad[oa]s?|actualizad[oa]s?"
        r"|modificad[oa]s?|cambiad[oa]s?|eliminad[oa]s?|cread[oa]s?|procesad[oa]s?|tramitad[oa]s?"
        r"|remboursée?s?|débitée?s?|facturée?s?|ajoutée?s?|modifiée?s?|mise?s?\sà\sjour|changée?s?"
        r"|supprimée?s?|créée?s?|traitée?s?|effectuée?s?",
    ),
)
_OTHER_VERB = "|".join(f"(?P<{kind}>{words})" for kind, words in _OTHER_VERBS)


def _forms(word: str) -> Iterator[str]:
    """Of a pattern with optional letters (`s?`) and choices (`[oa]`), every word that it fits."""
    found = re.search(r"\[(\w+)\]|(\w)\?", word)
    if found is None:
        yield word
        return
    for letter in found[1] or (found[2], ""):
        yield from _forms(word[: found.start()] + letter + word[found.end() :])


# Of a deed that is told in another language one of them is the last word.
_OTHER_WORDS = frozenset(
    form for _, words in _OTHER_VERBS for one in words.split("|") for form in _forms(one)
) | {"jour"}
# Whoever tells of a deed uses one of these, or a word with one of the `DEED_ENDINGS`.
DEED_WORDS = _OTHER_WORDS | set(_PLAIN_VERB.split("|"))
_DONE = re.compile(
    rf"\b(?:i|we)(?:['’]ve|\s+have)?\s+{_EN_ADVERBS}(?P<active>{_EN_VERB})\b"
    rf"|\b(?:has|have)\s+{_EN_ADVERBS}been\s+{_EN_ADVERBS}(?P<passive>{_EN_VERB})\b"
    rf"|\b(?:is|are|was|were)\s+(?:(?:all|both)\s+)?(?:now|successfully)\s+{_EN_ADVERBS}"
    rf"(?P<state>{_EN_VERB})\b"
    rf"|\b(?:is|are)\s+(?P<plain>{_PLAIN_VERB})"
    r"\b(?!\s+(?:on|by|under|to|at|when|if|once|per|only)\b)",
    re.IGNORECASE,
)
_ANY_VERB = re.compile(f"{_EN_VERB}|{_PLAIN_VERB}", re.IGNORECASE)
_DONE_ELSEWHERE = re.compile(
    r"(?<!\w)(?:(?:ich\s+habe|wir\s+haben|habe\s+ich|haben\s+wir|(?:wurde|wurden)\s"
    r"|(?:ist|sind)\s+(?:jetzt|nun))\b[^.;:!?\n]{0,120}?"
    r"|(?:he|hemos|(?:ha|han)\s+sido|se\s+(?:ha|han))\s+(?:ya\s+)?"
    r"|(?:j['’]ai|nous\s+avons|(?:a|ont)\s+(?:bien\s+|déjà\s+)?été)\s+(?:bien\s+|déjà\s+)?)"
    rf"(?<!\w)(?:{_OTHER_VERB})(?!\w)",
    re.IGNORECASE,
)
_AND_THEN = re.compile(
    rf"(?:,|\band)\s+{_EN_ADVERBS}(?P<active>{_EN_VERB})\s+(?:the|your|an?|it|them|\$|\d)",
    re.IGNORECASE,
)
# Before it in the clause: not so, not yet, not now, or not by us.
_UNSAID = re.compile(
    r"\b(?:if|once|when|whenever|after|before|until|unless|whether|not|no|none|nothing|neither"
    r"|never|will|would|can|cannot|could|should|(?-i:may)|might|please|must|need|needs|previously"
    r"|originally|had|any|(?:confirm|confirmation|verify|ensure) that"
    r"|wenn|falls|sobald|nachdem|nicht|kein\w*|si|cuando|nunca|aucun\w*"
    r"|quand|lorsque)\b|n['’]t\b",
    re.IGNORECASE,
)
_RELATIVE = re.compile(r"\b(?:that|which|who|whose|as|than|die|das|der|que|qui)\s+$", re.IGNORECASE)
_YOURS = re.compile(r"\byour\b[^,.;:]{0,80}$", re.IGNORECASE)
_CONFIRM = stem("confirm")
_WORD = re.compile(r"[^\W\d_]{2,}")
# A mail that confirms what was done goes out with it, and money that is returned is a refund.
_ALONG = re.compile(
    r"\b(?:e-?mails?|confirmation|instructions|receipt|summary|notification|label|refund\w*|amounts?)\b"
    rf"|[{SIGNS}]\s?\d",
    re.IGNORECASE,
)
MOST_KEYS = 200  # of one call that say what it did
LONGEST_ABOUT = 400  # characters of a text about a call
_OBJECT = 50
_NEAR_OBJECT = 60
_NEAR = 200  # characters of a clause; or a long one would be read again for each verb
_ANY_OBJECT = frozenset(
    map(stem, "you your the also and now for this that with have been from account for new".split())
)
_NO_DEEDS = ("read", "run")
_UNKNOWN: frozenset[CallKind] = frozenset(("run",))
_FIRST_SENTENCE = re.compile(r"[^.\n]*")


class Deed(NamedTuple):
    """`verb` is what was done, as it is written; `is_served`: a call did it, or a result says
    that it was done."""

    start: int
    end: int
    verb: str
    is_served: bool
    calls: tuple[DoneCall, ...] = ()


class DoneCall:
    """A call that was answered and did not fail; `given` are its arguments and its result, read
    when somebody asks what it says: most deeds are told by the tool's name."""

    def __init__(
        self,
        turn: int | None,
        name: str,
        description: str,
        words: frozenset[str] = frozenset(),
        given: tuple[Json, Json] | None = None,
    ) -> None:
        self.turn, self.name, self.description = turn, name, description
        self._known, self._given = words, given

    @once
    def _texts(self) -> list[str]:
        return [] if self._given is None else list(islice(texts_in(self._given[0]), MOST_TEXTS))

    @once
    def words(self) -> frozenset[str]:
        """Stems of all that it says of itself, keys of arguments and result included."""
        if self._given is None:
            return self._known
        return words_of_call(self.name, self.description, self._texts, self._given)

    @once
    def named(self) -> frozenset[str]:
        """The texts of its arguments, folded."""
        return frozenset(map(fold, self._texts))


# Does a result tell, as a state of what the sentence speaks of, what this word says?
Tells = Callable[[str, Span], bool]


MOST_TEXTS = 40  # of one call that say what it did


def writes(name: str, description: str) -> bool:
    """Does a tool of that name do anything but read?"""
    return bool(_call_kinds(name, description))


def find_deeds(
    outline: Outline,
    calls: Iterable[DoneCall],
    turn_at: Callable[[int], int | None],
    tells: Tells,
    *,
    can_write: bool = True,
) -> Iterator[Deed]:
    """What the answer says was done, one after the other. Where no tool `can_write`, only what was
    done for somebody: `the CEO has been replaced` is news of others."""
    done: list[tuple[DoneCall, frozenset[CallKind]]] | None = None
    for one in _claims(outline, can_write):
        if done is None:  # most answers tell of no deed
            done = [(call, _call_kinds(call.name, call.description)) for call in calls]
        turn = turn_at(one.start)
        before = [
            (call, kinds)
            for call, kinds in done
            if turn is None or call.turn is None or call.turn < turn
        ]
        said = frozenset(
            stem(word[0])
            for word in _WORD.finditer(
                outline.text, one.start, min(one.sentence[1], one.end + _NEAR_OBJECT)
            )
        )
        did = tuple(call for call, kinds in before if _did(call, kinds, one.kind, said))
        if one.is_active and not _SPECIAL.isdisjoint(said) and all(call.words for call in did):
            did = tuple(call for call in did if not call.words.isdisjoint(said - _ANY_OBJECT))
        verb = outline.text[one.start : one.end]
        served = bool(did) and not _is_reversed(verb, [call for call, _ in before])
        served = served or (bool(one.told_by) and tells(one.told_by, one.sentence))
        if not served and outline.is_denied(one.start):
            continue  # `it is not true that I have cancelled it`: so it is
        yield Deed(one.start, one.end, verb, served, did)


def _did(call: DoneCall, kinds: frozenset[CallKind], deed: DeedKind, said: frozenset[str]) -> bool:
    """A tool whose verb nobody knows may have done what it speaks of."""
    if kinds == _UNKNOWN and call.words:
        return not call.words.isdisjoint(said)
    return _covers(kinds, deed)


def _is_reversed(verb: str, calls: Iterable[DoneCall]) -> bool:
    """`credited`, where points were reversed and nothing was credited."""
    own, other = _OPPOSITES.get(stem(verb.split()[-1]), (frozenset[str](), frozenset[str]()))
    words = frozenset[str]().union(*(call.words for call in calls)) if own else frozenset[str]()
    return not words.isdisjoint(other) and words.isdisjoint(own)


class _Claim(Frozen, frozen=True):
    """`told_by`: the word by which a result could tell of it, without that we did it."""

    start: int
    end: int
    kind: DeedKind
    sentence: Span
    told_by: str = ""
    is_active: bool = False


def _claims(outline: Outline, can_write: bool) -> Iterator[_Claim]:
    text = outline.text
    is_elsewhere = not _OTHER_WORDS.isdisjoint(outline.words)
    verbs = outline.places_of(set(filter(_is_deed, outline.words)))
    for sentence in outline.sentences if is_elsewhere or verbs else ():
        is_told = bisect_left(verbs, sentence[0]) < bisect_left(verbs, sentence[1])
        if not (is_elsewhere or is_told) or text[sentence[1] : sentence[1] + 1] in ("?", "？"):
            continue
        for clause in outline.clauses(sentence):
            if bisect_left(verbs, clause[0]) < bisect_left(verbs, clause[1]):
                yield from _claims_in(outline, clause, sentence, can_write)
            if is_elsewhere:
                yield from _claims_elsewhere(outline, clause, sentence)


@lru_cache(maxsize=1 << 14)
def _is_deed(word: str) -> bool:
    """Could a deed be told with this word?"""
    return _ANY_VERB.fullmatch(word) is not None and (
        word == "opened" or stem(word) in _SAID or _KINDS.get(stem(word), "read") not in _NO_DEEDS
    )


# What is done for somebody who is spoken to, or to a thing that is named by its number.
_OURS = re.compile(
    r"\b(?:you|your|yours|we|our|i|ihr\w*|sie|su|tu|votre|vos)\b|#\w*\d{3}|\b[A-Z]+\d{3}|\b\d{6}",
    re.IGNORECASE,
)


def _claims_in(outline: Outline, clause: Span, sentence: Span, can_write: bool) -> Iterator[_Claim]:
    text = outline.text
    is_active = False
    position = clause[0]
    while True:
        pattern = _AND_THEN if is_active else _DONE
        found = pattern.search(text, position, clause[1])
        if found is None:
            break
        position = found.end()
        is_unsaid = _is_unsaid(outline, clause, found.start())
        kind = None if is_unsaid else _meant(found, text, clause)
        if kind is not None:
            is_active = is_active or found.lastgroup == "active"
            is_ours = can_write or found.lastgroup == "active" or outline.says(_OURS, sentence)
            if not is_ours:
                continue
            verb = found[found.lastgroup or 0]
            is_status = stem(verb) not in _LIGHT or "already" in found[0]
            is_told = found.lastgroup != "active" and is_status
            told_by = verb if is_told else ""
            yield _Claim(*found.span(), kind, sentence, told_by, found.lastgroup == "active")


def _claims_elsewhere(outline: Outline, clause: Span, sentence: Span) -> Iterator[_Claim]:
    for found in _DONE_ELSEWHERE.finditer(outline.text, *clause):
        if found.lastgroup is not None and not _is_unsaid(outline, clause, found.end()):
            yield _Claim(*found.span(), _named_kind(found.lastgroup), sentence)


def _is_unsaid(outline: Outline, clause: Span, start: int) -> bool:
    """What is said and taken back was said: `it is not true that I have cancelled it`."""
    text = outline.text
    return not outline.is_denied(start) and (
        _UNSAID.search(text, max(clause[0], start - _NEAR), start) is not None
        or _RELATIVE.search(text, max(clause[0], start - 12), start) is not None
    )


def _named_kind(group: str) -> DeedKind:
    return next(kind for kind, _ in _OTHER_VERBS if kind == group)


def _meant(found: re.Match[str], text: str, clause: Span) -> DeedKind | None:
    verb = stem(found[found.lastgroup or 0])
    if verb == _OPEN and found.lastgroup == "active" and _OPENED.match(text, found.end()):
        return "write"
    known = _SAID.get(verb) or _KINDS.get(verb)
    if known is None or known == "read" or known == "run":
        return None
    kind: DeedKind = "write" if known == "modify" or known == "create" else known
    if kind in ("send", "exchange") and _ALONG.search(text, *_near(found, clause)):
        return "write"
    if verb not in _LIGHT:
        return kind
    is_active, is_plain = found.lastgroup == "active", found.lastgroup == "plain"
    if is_active and _NO_DEED.match(text, found.start("active"), clause[1]):
        return None
    around = (max(clause[0], found.start() - _NEAR), found.start())
    if is_active:
        around = found.end(), min(clause[1], found.end() + _OBJECT)
    if is_plain:
        subject = _YOURS.search(text, max(clause[0], found.start() - 100), found.start())
        around = subject.span() if subject else (0, 0)
    nouns = (_NOUNS.get(stem(word[0])) for word in _WORD.finditer(text, *around))
    return next(filter(None, nouns), None if is_plain or verb == _CONFIRM else kind)


def _near(found: re.Match[str], clause: Span) -> Span:
    return max(clause[0], found.start() - _OBJECT), min(clause[1], found.end() + _OBJECT)


@lru_cache(maxsize=1 << 12)
def _call_kinds(name: str, description: str) -> frozenset[CallKind]:
    """By the verbs of the tool's name, else by those of the first sentence about it."""
    first = _FIRST_SENTENCE.match(description)
    for words in (key_stems(name), [stem(one) for one in _WORD.findall(first[0] if first else "")]):
        kinds = [_KINDS[word] for word in words if word in _KINDS]
        if _OPEN in words[:1] and not _MADE_BY_OPENING.isdisjoint(words):
            kinds.insert(0, "create")
        if kinds:
            if not _REMOVING.isdisjoint(words):
                kinds.append("delete")
            return frozenset() if kinds[0] == "read" else frozenset(kinds) - {"read"}
    return _UNKNOWN


def _covers(kinds: frozenset[CallKind], deed: DeedKind) -> bool:
    if "run" in kinds:
        return True
    if deed == "write":
        return bool(kinds - {"transfer"})
    return not kinds.isdisjoint(_DOES.get(deed, {deed}))


def words_of_call(
    name: str, about: str, texts: Sequence[str], values: Iterable[Json]
) -> frozenset[str]:
    """Stems of its name, of what is said of it, of the texts of its arguments, and of the keys of
    its arguments and its result."""
    words = [one for text in (about, *texts) for one in _WORD.findall(text[:LONGEST_ABOUT])]
    keys = [key for value in values for key in _keys_in(value)]
    of_keys = (one for key in (name, *keys) for one in key_stems(key))
    return frozenset((*of_keys, *map(stem, words)))


def _keys_in(value: Json) -> list[str]:
    """The keys of an object and of what lies in it, as many as anybody would read."""
    found: list[str] = []
    left = [read_inside(value) if isinstance(value, str) else value]
    while left and len(found) < MOST_KEYS:
        one = left.pop()
        if isinstance(one, dict):
            found += one
            left += [below for below in one.values() if isinstance(below, (dict, list))]
        elif isinstance(one, list):
            left += one[:2]
    return found[:MOST_KEYS]
