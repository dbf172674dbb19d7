"""A value that is told of a record which has another there: `the e-mail of Ana is …`, and what
answers a question about Ana."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from callmark.grounding.binding import Binder, Mention, Names, is_like
from callmark.grounding.match import Utterance, is_earlier
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord, key_words
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import once
from callmark.grounding.values import Value

MOST_FIELDS = 8  # places in which the value stands; with more, nobody can say whose it is
MOST_NAMED = 4  # records of one name
LONGEST_QUESTION = 400  # characters
SHORTEST_ROOT = 3  # letters by which `owned` is of an `owner`
WIDE = 120  # characters in which a sentence says what it tells
_WORD = re.compile(r"[^\W\d_]+(?:[-\u2010\u2011&'’][^\W\d_]+)*")
# What stands right before a value that is told: `is`, `:`, `owned by`, `modified on`.
_TELLS = re.compile(
    r"(?:\b(?:is|was|are|were|ist|war|est|était|es|era|fue)\b|[:=]"
    r"|\b(?P<verb>[^\W\d_]{3,})(?:\s(?:by|from|to|at|on|in|of|von|am|um|por|par|de|le|el))?)"
    r"[\s*_\"“”'‘`(]*[$€£]?$",
    re.IGNORECASE,
)
# Words that say nothing of which field is meant.
_PLAIN = frozenset(
    """
    the a an is was are were of by from to at on in and its their his her your s file named called
    current total address number last has have had been that which it user account customer der die
    das von am um im ist war el la de por es le est du d l
    """.split()
)
_CHANGED = frozenset("modified updated changed edited replaced moved exchanged".split())
# A question that sets one against others asks for no value of the one that it names.
_SET_AGAINST = re.compile(
    r"\b(?:other|others|another|than|except|besides|instead|compar\w+|versus|vs|difference|before|after"
    r"|since|until|between|like|similar|without|not|all|every|each|most|least|total|altogether"
    r"|andere\w*|als|außer|otr[oa]s?|que|sauf|autres?|total\w*|summe|suma|\w+est)\b",
    re.IGNORECASE,
)
# A sentence that reckons, compares or asks tells no value of the one that was asked about.
_RECKONS = re.compile(
    r"\b(?:total\w*|altogether|sum|average|mean|difference|than|other|another|instead|rest|except"
    r"|most|least|between|up to|from|if|would|could|cheapest|\w+est|per)\b|\?|[+=×]",
    re.IGNORECASE,
)


class ToldOf(NamedTuple):
    """`own` is what the record has that is spoken of, `other` what is told instead; `is_named`: the
    sentence itself names the record."""

    own: Field
    other: Field
    is_named: bool


States = Callable[[Field, Value], bool]


class TellingOf:
    """One answer, with what the user asked before each turn."""

    def __init__(
        self,
        outline: Outline,
        tree: RecordTree,
        binder: Binder,
        states: States,
        turn_at: Callable[[int], int | None],
        questions: Sequence[Utterance] = (),
    ) -> None:
        self._outline, self._tree, self._binder = outline, tree, binder
        self._states, self._turn_at, self._questions = states, turn_at, questions
        self._starts = [one.start for one in binder.all_mentions]

    def find(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """By the words between a name and the value: `the e-mail of Ana is bo@example.org`."""
        if not 0 < len(fields) <= MOST_FIELDS or self._outline.is_proposed(sentence):
            return None
        start = max(sentence[0], value.start - WIDE)
        mention = self._named_before(start, value)
        tells = _TELLS.search(self._outline.text, start, value.start) if mention else None
        if mention is None or tells is None:
            return None
        before = self._words(start, mention.start)
        between = self._words(mention.end, value.start)
        said = self._outline.text[mention.start : mention.end].casefold()
        for own, other in self._others(mention.records, fields, value):
            named = set(key_words(own.key)) | {own.key.casefold()}
            if f"{own.value}".casefold() in said or not _are_of(between, named):
                continue  # `from item 17 to item 18`: what names it is its own value there
            if self._outline.tells_a_change(value, sentence) and named.isdisjoint(_CHANGED):
                continue
            verb = tells["verb"] or ""
            if _names_field(named, [*before, *between]) or _are_akin(verb, named):
                return ToldOf(own, other, is_named=True)
        return None

    def find_asked(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """By the question: `How many points did Ana get?` `You got 42 points.`"""
        if not 0 < len(fields) <= MOST_FIELDS or not self._questions:
            return None
        asked = self._asked_before(self._turn_at(value.start))
        if not asked or self._outline.is_proposed(sentence):
            return None
        if _RECKONS.search(self._outline.text, *sentence) or self._names_any(sentence, value):
            return None
        found = next(self._others(asked, fields, value), None)
        return None if found is None else ToldOf(*found, is_named=False)

    def _others(
        self, records: Sequence[ResultRecord], fields: Sequence[Field], value: Value
    ) -> Iterator[tuple[Field, Field]]:
        """What the records have under a key under which others of their list have the value."""
        if len(records) > MOST_NAMED or any(
            one.is_kin(field.record) for one in records for field in fields
        ):
            return
        kinds = {(one.parent, one.kind) for one in records}
        for field in fields:
            if (field.record.parent, field.record.kind) not in kinds or field.echo:
                return  # it stands elsewhere too: who knows whence it was taken
        for key in dict.fromkeys(field.key for field in fields):
            own = [one for record in records for one in record.fields if one.key == key]
            if len(own) < len(records) or any(self._states(one, value) for one in own):
                return
            if not all(_may_be_told(one, value) for one in own):
                return
            yield own[0], next(field for field in fields if field.key == key)

    def _named_before(self, start: int, value: Value) -> Mention | None:
        at = bisect_left(self._starts, value.start)
        if at == 0:
            return None
        mention = self._binder.all_mentions[at - 1]
        is_apart = mention.end <= value.start and mention.start >= start
        return mention if is_apart and not mention.is_day else None

    def _names_any(self, sentence: Span, value: Value) -> bool:
        """Anything but what is the value itself."""
        first = bisect_left(self._starts, sentence[0])
        last = bisect_left(self._starts, sentence[1])
        named = islice(self._binder.all_mentions, first, min(last, first + WIDE))
        return any(one.end <= value.start or one.start >= value.end for one in named)

    def _words(self, start: int, end: int) -> list[str]:
        found = _WORD.findall(self._outline.text, start, max(start, end))
        return [one.casefold() for one in found if one.casefold() not in _PLAIN]

    def _asked_before(self, turn: int | None) -> tuple[ResultRecord, ...]:
        said = [one for one in self._questions if is_earlier(one.turn, turn)]
        return self._records_asked(str(said[-1].text)) if said else ()

    def _records_asked(self, question: str) -> tuple[ResultRecord, ...]:
        """What the question names, if that is one thing."""
        if question not in self._asked:
            records: tuple[ResultRecord, ...] = ()
            if len(question) <= LONGEST_QUESTION and not _SET_AGAINST.search(question):
                found = [one for one in self._names.mentions(question) if not one.is_day]
                if len({one.records for one in found}) == 1:
                    records = found[0].records
            self._asked[question] = records
        return self._asked[question]

    @once
    def _asked(self) -> dict[str, tuple[ResultRecord, ...]]:
        return {}

    @once
    def _names(self) -> Names:
        return Names(self._tree.records)


def _may_be_told(own: Field, value: Value) -> bool:
    if value.kind == "email":
        return isinstance(own.value, str) and "@" in own.value
    return is_like(own, value, partly=True)


def _are_of(words: Iterable[str], named: set[str]) -> bool:
    """Do all of them speak of the field?"""
    return all(_are_akin(word, named) or word in named for word in words)


def _names_field(named: set[str], words: Sequence[str]) -> bool:
    return any(word in named or word.replace("-", "") in named for word in words)


def _are_akin(word: str, named: set[str]) -> bool:
    """`owned` and `owner`, `modified` and `last_modified`"""
    root = word.casefold()[: max(SHORTEST_ROOT, len(word) - 2)]
    return len(word) >= SHORTEST_ROOT and any(one.startswith(root) for one in named)
