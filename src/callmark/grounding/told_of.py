"""A value that is told of a record which has another there: `the e-mail of Ana is …`, and what
answers a question about Ana."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from callmark.grounding.binding import Binder, Mention, Names, is_like
from callmark.grounding.match import Said, Utterance, is_earlier
from callmark.grounding.record_tree import (
    Field,
    RecordSubject,
    RecordTree,
    ResultRecord,
    key_words,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import once
from callmark.grounding.values import Value
from callmark.records.statements import StatementLabel

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
MOST_OF_RECORD = 30  # fields of one record that are looked at
MOST_OF_LIST = 200
LONGEST_KIND = 30  # characters of a text that says what kind something is
_KIND = re.compile(r"[^\W\d_]{3,}(?:[ &-]{1,3}[^\W\d_]{2,}){0,2}")
_YEAR = re.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)")
_TOTAL = re.compile(
    r"\b(?:total(?:l?ed|s)?|altogether|in all|overall|sum|summe|insgesamt|gesamt\w*|suma|en total"
    r"|somme|au total)\b",
    re.IGNORECASE,
)
# `the total of this order is $5`, `a total of 3 hotels`
_NO_TOTAL = re.compile(
    r"\b(?:each|per|this|that|average|order|booking|trip|cart|bill|invoice|reservation|item|purchase"
    r"|a total of|subtotal|largest|smallest|highest|lowest|most|least)\b",
    re.IGNORECASE,
)
_TOTALS = frozenset(
    "total totals sum subtotal overall gesamt summe insgesamt suma somme all cumulative".split()
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
    """`own` is what the record has that is spoken of, or the part that is told as the whole."""

    label: StatementLabel
    rule: str
    own: Field
    because: str


def _of_another(rule: str, own: Field, other: Field) -> ToldOf:
    because = f"{other.value} is {other.key} of {other.path}"
    return ToldOf("misattributed", rule, own, because)


NamedBefore = Callable[[str, int | None], bool]  # a name, by its key, and the turn that says it


class Beside(NamedTuple):
    """What stands beside an answer. `failed`: what results that are errors say; they support
    nothing. `named`: does the model itself name it (by its key) in a call that was served before
    the turn, such as a file that it made? `questions`: what the user said, in turn."""

    failed: Said | None = None
    named: NamedBefore = lambda key, turn: False
    questions: Sequence[Utterance] = ()


States = Callable[[Field, Value], bool]


class TellingOf:
    """One answer, with what the user asked before each turn."""

    def __init__(
        self,
        outline: Outline,
        values: Sequence[Value],
        tree: RecordTree,
        binder: Binder,
        states: States,
        turn_at: Callable[[int], int | None],
        questions: Sequence[Utterance] = (),
    ) -> None:
        self._outline, self._values = outline, values
        self._tree, self._binder = tree, binder
        self._states, self._turn_at, self._questions = states, turn_at, questions
        self._starts = [one.start for one in binder.all_mentions]

    def judge(
        self,
        value: Value,
        sentence: Span,
        fields: Sequence[Field],
        subject: RecordSubject | None,
    ) -> ToldOf | None:
        """What is told of a thing, a kind or a total that the question names, or the sentence by
        other words than a name. `subject`: the records that the sentence names."""
        if not 0 < len(fields) <= MOST_FIELDS:
            return None
        is_dated = all(map(_year_of, fields))
        is_alone = subject is None and self._is_alone(value)
        if not (is_dated or is_alone) or self._outline.is_proposed(sentence):
            return None
        if is_dated and (told := self._find_field(value, sentence, fields)):
            return told
        if not is_alone or self._names_any(sentence, value):
            return None
        return (
            self._find_asked(value, sentence, fields)
            or self._find_kind(value, sentence, fields)
            or self._find_part(value, sentence, fields)
        )

    def judge_named(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """By the words between a name and the value: `the e-mail of Ana is bo@example.org`."""
        if not 0 < len(fields) <= MOST_FIELDS:
            return None
        start = max(sentence[0], value.start - WIDE)
        mention = self._named_before(start, value)
        # Nearly always the value is that of what is named: the patterns are asked last.
        others = [] if mention is None else list(self._others(mention.records, fields, value))
        if mention is None or not others or self._outline.is_proposed(sentence):
            return None
        tells = _TELLS.search(self._outline.text, start, value.start)
        if tells is None:
            return None
        before = self._words(start, mention.start)
        between = self._words(mention.end, value.start)
        said = self._outline.text[mention.start : mention.end].casefold()
        for own, other in others:
            named = set(key_words(own.key)) | {own.key.casefold()}
            if f"{own.value}".casefold() in said or not _are_of(between, named):
                continue  # `from item 17 to item 18`: what names it is its own value there
            if self._outline.tells_a_change(value, sentence) and named.isdisjoint(_CHANGED):
                continue
            verb = tells["verb"] or ""
            if _names_field(named, [*before, *between]) or _are_akin(verb, named):
                return _of_another("record", own, other)
        return None

    def _find_asked(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """By the question: `How many points did Ana get?` `You got 42 points.`"""
        asked = self._asked_before(self._turn_at(value.start))
        if not asked or _RECKONS.search(self._outline.text, *sentence):
            return None
        found = next(self._others(asked, fields, value), None)
        return None if found is None else _of_another("binding", *found)

    def _find_kind(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """`You spent $387 on shopping`, which is of another category than shopping; the question
        may name it as well."""
        text = self._outline.text
        if _RECKONS.search(text, *sentence):
            return None
        asked = self._question_at(self._turn_at(value.start))
        asked = "" if _SET_AGAINST.search(asked) else asked[:LONGEST_QUESTION]
        for said in (text[slice(*sentence)], asked):
            words = set(_WORD.findall(said.casefold()))
            for field in fields:
                meant = self._of_kind(field, words)
                if meant and not any(self._states(one, value) for one in meant):
                    fits = all(_may_be_told(one, value) for one in meant)
                    return _of_another("binding", meant[0], field) if fits else None
        return None

    def _of_kind(self, field: Field, words: set[str]) -> list[Field]:
        """What the records of its list have there that are of the kind that is named, if its own
        record is of another one."""
        group = self._groups.get(field.record.number, ())
        for kind in field.record.fields[:MOST_OF_RECORD] if group else ():
            if not is_kind(kind) or _is_said(kind, words):
                continue
            like = [
                one
                for one in group
                if (other := _field(one, kind.key)) is not None and _is_said(other, words)
            ]
            found = [one for each in like if (one := _field(each, field.key)) is not None]
            if found and len(like) < len(group):
                return found
        return []

    def _find_part(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """`The total was $87.25`, which is what one of several is."""
        text = self._outline.text
        asked = self._question_at(self._turn_at(value.start))[-LONGEST_QUESTION:]
        near = (max(sentence[0], value.start - 60), value.end + 20)
        is_total = _TOTAL.search(text, *near) or _TOTAL.search(asked)
        if not is_total or _NO_TOTAL.search(text, *sentence):
            return None
        said = set(_WORD.findall(f"{asked} {text[slice(*sentence)]}".casefold()))
        for field in fields:
            group = self._groups.get(field.record.number, ())
            like = [one for one in group if _field(one, field.key) is not None]
            told = (one for one in field.record.fields[:MOST_OF_RECORD] if is_kind(one))
            if len(like) < 2 or field.echo or not _TOTALS.isdisjoint(key_words(field.key)):
                return None
            if any(_is_said(one, said) for one in told) or _is_sum_row(field.record):
                return None
        because = f"{fields[0].key} of one of several, {fields[0].path}"
        return ToldOf("misattributed", "binding", fields[0], because)

    def _is_alone(self, value: Value) -> bool:
        """Is it all that its turn states? A longer answer tells of more than it was asked for."""
        at = bisect_left(self._values, value.start, key=lambda one: one.start)
        near = (*self._values[max(0, at - 1) : at], *self._values[at + 1 : at + 2])
        turn = self._turn_at(value.start)
        return all(self._turn_at(one.start) != turn for one in near)

    def _find_field(self, value: Value, sentence: Span, fields: Sequence[Field]) -> ToldOf | None:
        """`the income in 2023 was 39370`, which is that of 2021, where there is one of 2023."""
        years = self._years_in(sentence)
        if len(years) != 1 or value.text in years:
            return None
        [year] = years
        meant = None
        for field in fields:
            own = _year_of(field)
            if own in years:
                return None
            other = _field(field.record, field.key.replace(own, year))
            if other is None or self._states(other, value):
                return None
            meant = meant or other
        if meant is None:
            return None
        because = f"{fields[0].value} is {fields[0].key} of {fields[0].path}"
        return ToldOf("wrong_field", "field", meant, because)

    def _years_in(self, sentence: Span) -> frozenset[str]:
        if sentence not in self._years:
            self._years[sentence] = frozenset(_YEAR.findall(self._outline.text, *sentence))
        return self._years[sentence]

    @once
    def _years(self) -> dict[Span, frozenset[str]]:
        return {}

    @once
    def _groups(self) -> dict[int, list[ResultRecord]]:
        groups = [one for one in self._tree.groups if len(one) <= MOST_OF_LIST]
        return {record.number: group for group in groups for record in group}

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
        return self._records_asked(self._question_at(turn))

    def _question_at(self, turn: int | None) -> str:
        """What the user said last before that turn."""
        said = [one for one in self._questions if is_earlier(one.turn, turn)]
        return str(said[-1].text) if said else ""

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


def _year_of(field: Field) -> str:
    """The only year in its key, if there is one."""
    years = _YEAR.findall(field.key)
    return years[0] if len(years) == 1 else ""


def _field(record: ResultRecord, key: str) -> Field | None:
    return next((one for one in record.fields[:MOST_OF_RECORD] if one.key == key), None)


def is_kind(field: Field) -> bool:
    """A short text in words, such as a category."""
    text = field.value
    return isinstance(text, str) and len(text) <= LONGEST_KIND and bool(_KIND.fullmatch(text))


def _is_said(field: Field, words: set[str]) -> bool:
    return is_kind(field) and words.issuperset(_WORD.findall(f"{field.value}".casefold()))


def _is_sum_row(record: ResultRecord) -> bool:
    """`{"name": "TOTAL", …}`"""
    texts = (one.value for one in record.fields[:MOST_OF_RECORD] if isinstance(one.value, str))
    return any(
        not _TOTALS.isdisjoint(_WORD.findall(text[:LONGEST_KIND].casefold())) for text in texts
    )


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
