"""Kinds, places and people: a text that a field of another record holds, said of a record that has
another one under that key; or one of the record's own, said under the name of another field."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from callmark.grounding import field_words
from callmark.grounding.binding import Binder
from callmark.grounding.kinship import NEAREST, RecordSubject, find_joined, find_kin
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    ResultRecord,
    key_words,
)
from callmark.grounding.siblings import words_of_name
from callmark.grounding.spans import Outline, Span
from callmark.grounding.states import is_stated
from callmark.grounding.text import fold
from callmark.grounding.values import Value
from callmark.grounding.words import STOP_WORDS

SHORTEST, LONGEST = 3, 40  # characters of such a text
MOST_WORDS = 4
MOST_FIELDS = 60  # with one text; with more of them it tells nothing
MOST_OWN = 4  # texts of one record under one key; with more, which is meant?
LONGEST_RECORD = 10000  # characters; what a longer one tells, nobody looks for
MOST_PARTS = 200  # of a record
BESIDE = 30  # characters around a text in which its key is named
_WORD = re.compile(r"[^\W_]+")
_DIGIT = re.compile(r"\d")
# Keys whose texts say many things, or name the record itself.
_FREE = frozenset(
    """
    description text message note notes comment comments body content url link title name id ids
    summary reason currency unit units timezone code sku key token hash version email phone address
    """.split()
)
# What is compared, wished for, left open or changed is not said of a record.
_UNSURE = re.compile(
    r"\b(?:from|instead|chang\w+|swap\w*|updat\w+|mov(?:e|ed|ing)|exchang\w+|replac\w+|new"
    r"|previous\w*"
    r"|originally|versus|vs|compared|differen\w+|upgrad\w+|downgrad\w+|convert\w*|switched"
    r"|switching|select\w*|cho[os]s?en?|than|like|unlike|similar|or|either|neither|nor|other"
    r"|others|another|both|every|any|no|not|never|without|if|whether|unless|would|could|should|may"
    r"|might|prefer\w*|want\w*|ask\w*|request\w*|look\w* for|need\w*|filter\w*|search\w*|near"
    r"|nearby"
    r"|close to|next to|towards|via|rather|except|excluding|besides|eligible|also"
    r"|oder|nicht|kein\w*|als|statt|wenn|o|sin|ni|otro|otra|si|ou|pas|sans|autre|que)\b"
    r"|n['’]t\b|->|→|➝|\?",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[^\w\n]*(?:\w+[^\w\n]+){0,5}")


class SaidKind(NamedTuple):
    """From `start` to `end` stands the text of `taken`, where `field` has another one. `rule` is
    `field` where both are fields of one record."""

    start: int
    end: int
    field: Field
    taken: Field
    rule: str


class KindFields:
    """The short texts of the results that an answer, of which these are the `words`, may state."""

    def __init__(self, index: RecordIndex, words: frozenset[str]) -> None:
        self._fields: dict[tuple[str, ...], list[Field]] = {}
        self._lengths: dict[str, set[int]] = {}
        for field in index.tree.fields:
            if isinstance(field.value, str) and is_kind(field.key, field.value):
                name = words_of_name(field.value)
                if words.issuperset(name):
                    known = self._fields.setdefault(name, [])
                    if len(known) <= MOST_FIELDS:
                        known.append(field)
                    self._lengths.setdefault(name[0], set()).add(len(name))
        self._texts: dict[int, str] = {}

    def said_in(
        self, outline: Outline, binder: Binder, turn_at: Callable[[int], int | None]
    ) -> Iterator[SaidKind]:
        for start, end, fields in self._places(outline.text):
            sentence = outline.sentence_at(start)
            turn = turn_at(start)
            fields = [field for field in fields if field.counts_for(turn)]
            if not fields or len(fields) > MOST_FIELDS or outline.is_proposed(sentence):
                continue
            place = Value(start, end, "quote", outline.text[start:end])
            subject = _subject(binder, place, sentence)
            if subject is None or subject.distant:
                continue
            found = self._wrong(outline, binder, place, sentence, subject, fields)
            if found is not None:
                yield found

    def _places(self, text: str) -> Iterator[tuple[int, int, list[Field]]]:
        if not self._fields:
            return
        spans = list(_WORD.finditer(text))
        words = [fold(one[0]) for one in spans]
        end = 0
        for at, word in enumerate(words):
            for length in sorted(self._lengths.get(word, ()), reverse=True) if at >= end else ():
                fields = self._fields.get(tuple(words[at : at + length]))
                if fields:
                    end = at + length
                    yield spans[at].start(), spans[end - 1].end(), fields
                    break

    def _wrong(
        self,
        outline: Outline,
        binder: Binder,
        place: Value,
        sentence: Span,
        subject: RecordSubject,
        fields: Sequence[Field],
    ) -> SaidKind | None:
        clause = outline.clause_at(place.start)
        kin = find_kin(fields, subject)
        if kin is not None or find_joined(fields, subject) is not None:
            return None
        if _UNSURE.search(outline.text, *outline.near(place, clause)):
            return None
        keys = {field.key for field in fields}
        own = [
            one
            for record in subject.records[:NEAREST]
            for one in binder.own_fields(record, fields, widely=False)
            if isinstance(one.value, str)
            and is_kind(one.key, one.value)
            and any(_is_same_column(one, other) for other in fields[:NEAREST])
        ]
        if not 0 < len(own) <= MOST_OWN or len(keys) != 1:
            return None
        said = fold(outline.text[slice(*outline.near(place, sentence))])
        if any(_holds(said, str(one.value)) for one in own):
            return None
        is_category = len(fields) > 1  # other records share it: it says what something is
        if not is_category and not self._is_linked(outline, place, own[0]):
            return None
        if any(self._tells(record, place.text) for record in subject.records[:NEAREST]):
            return None
        return SaidKind(place.start, place.end, own[0], fields[0], "state")

    def _is_linked(self, outline: Outline, place: Value, field: Field) -> bool:
        """Is it said to be so, or under the name of the field?"""
        line = outline.line_at(place.start)
        start, end = max(line.start, place.start - BESIDE), min(line.end, place.end + BESIDE)
        words = field_words.words_of_key(field.key)
        around = field_words.words_said(outline.text, start, end)
        return not words.isdisjoint(around) or is_stated(outline, place.start, place.end)

    def _tells(self, record: ResultRecord, text: str) -> bool:
        """Does any other text or key of the record speak of it?"""
        known = self._texts.get(record.number)
        if known is None:
            inside = islice(record.within(), MOST_PARTS)
            parts = [one for inner in inside for one in inner.fields[:100]]
            above = [one for inner in record.ancestors() for one in inner.fields[:100]]
            known = " ".join(
                f"{' '.join(key_words(one.key))} {one.value if isinstance(one.value, str) else ''}"
                for one in (*parts, *above)
            )
            known = self._texts[record.number] = fold(known[: LONGEST_RECORD + 1])
        return len(known) > LONGEST_RECORD or _holds(known, text)


def _is_same_column(one: Field, other: Field) -> bool:
    """Are they what records of one kind have under one key?"""
    if one.key != other.key or one.record.kind != other.record.kind:
        return False
    if one.record.parent is not None and other.record.parent is not None:
        return one.record.key == other.record.key or one.record.parent is other.record.parent
    keys, others = ({field.key for field in record.fields} for record in (one.record, other.record))
    return 2 * len(keys & others) >= len(keys | others)


def _subject(binder: Binder, place: Value, sentence: Span) -> RecordSubject | None:
    """Of several records that are named, only one right before it is meant."""
    subject = binder.subject_of(place, sentence)
    if subject is not None and len({tuple(one.names) for one in subject.records}) > 1:
        return binder.adjacent_to(place, sentence)
    return subject


@lru_cache(maxsize=1 << 13)
def is_kind(key: str, text: str) -> bool:
    """A few words that are no number, under a key that is no name and no story."""
    words = key_words(key)
    if not words or words[-1] in _FREE or not SHORTEST <= len(text) <= LONGEST:
        return False
    name = words_of_name(text)
    return (
        0 < len(name) <= MOST_WORDS
        and not _DIGIT.search(text)
        and text[-1] not in ".!?"
        and any(word not in STOP_WORDS for word in name)
    )


def _holds(text: str, part: str) -> bool:
    words = r"[\W_]+".join(map(re.escape, words_of_name(part)))
    return re.search(rf"(?<![^\W_]){words}(?![^\W_])", text) is not None
