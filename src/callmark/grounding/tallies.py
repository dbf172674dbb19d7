"""How many records of a list are said to be so: `three of them are closed`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding import field_words
from callmark.grounding.binding import words_of_name
from callmark.grounding.claims import is_designated
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import (
    Field,
    RecordTree,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import (
    NUMBER_WORDS,
    SIGNS,
    Frozen,
    find_at,
    number_in_words,
    once,
)

MOST_COUNTED = 2000  # of a list that is counted
MOST_COLUMNS = 300  # of all lists; which of more is meant?
MOST_KINDS = 12  # texts under one key that are kinds of something
LONGEST = 30  # characters of such a text
_NUMBER_WORDS = frozenset(NUMBER_WORDS) - {"dozen"}
_DIGITS = re.compile(r"\d\d*(?=\s)")
_NUMBER = "|".join(sorted(_NUMBER_WORDS, key=len, reverse=True))
_OF_SO_MANY = re.compile(
    r"\b(?:out\s)?of\s(?:the|his|her|its|their|your|our|my|those|these)\s$", re.IGNORECASE
)
_TALLY = re.compile(
    rf"(?<![\w.,{SIGNS}–-])(?P<number>\d{{1,3}}|{_NUMBER})\s+"
    r"(?P<of>of\s+(?:the|these|those|them|your|our|my|his|her|its|their|all)\s+(?:(?P<all>\d{1,3}|[^\W\d_]+)\s+)?)?"
    r"(?:[^\W\d_]+\s+){0,2}?"
    r"(?P<verb>have|has|are|is|were|was|offers?|includes?|allows?|provides?|accepts?|come with)\s+"
    r"(?P<rest>[^,.;:()!?\n–—]{2,60})",
    re.IGNORECASE,
)
# `two of your three plans renew`
_TALLY_PLAIN = re.compile(
    rf"(?<![\w.,{SIGNS}–-])(?P<number>\d{{1,3}}|{_NUMBER})\s+"
    r"(?P<of>of\s+(?:the|these|those|your|our|my|his|her|its|their)\s+(?P<all>\d{1,3}|[^\W\d_]+)\s+)"
    r"[^\W\d_]+\s+(?!(?:do|did|have|has|are|is|were|was|can|will)\b)(?P<rest>[^\W\d_][\w-]+(?:\s[\w-]+){0,2})(?=\s*(?:[.;:!(\n–—]|$))",
    re.IGNORECASE,
)
_OUT_OF = re.compile(
    r"\bof (?:the|these|all|your|his|her|its|their) (\d{1,3}|[^\W\d_]+)\b", re.IGNORECASE
)
_NOT = re.compile(r"(?:no|not|without)\b\s*", re.IGNORECASE)
_ADVERBS = re.compile(
    r"(?:(?:currently|now|still|already|also|both|all|actually|marked|listed|as|in|a|an|the)\s+)*",
    re.I,
)
_LIMITED = re.compile(
    r"\b(?:under|over|above|below|within|more|less|than|at|between|and|or|but|only|from|for|to"
    r"|by|if"
    r"|with|that|which|per|either)\b|\d",
    re.IGNORECASE,
)
# `- **Delivered:** 17`, and `17 delivered orders`.
_LABEL = re.compile(
    r"^[\s>*•‣|+–-]*(?P<label>[^\W\d_][^:|\n*]{1,30}?)[*_]*(?::|\|)[*_]*\s*(?P<number>\d{1,3})"
    r"(?=\s*(?:$|\(|[.,](?!\d)|\|\s*$))",
    re.MULTILINE,
)
# `19 running, 3 stopped`, `17 are closed, 9 in progress`
_COUNTED_AS = re.compile(
    rf"(?<![\w.,{SIGNS}-])(?P<number>\d{{1,3}}|{_NUMBER})\s+(?:(?:are|is|were|was|in|on|sind|ist|waren|im"
    r"|están|son|en|sont|est)\s){0,2}(?P<label>[^\W\d_][\w-]+(?:\s[^\W\d_][\w-]+){0,2})",
    re.IGNORECASE,
)
_LABELLED = re.compile(r"[:|][*_]*\s*\d")
_KIND_OF = re.compile(
    rf"(?<![\w.,{SIGNS}-])(?P<number>\d{{1,3}}|{_NUMBER})\s+(?P<label>[^\W\d_][\w-]+(?:\s[\w-]+)?)\s+"
    r"(?P<noun>[^\W\d_]{3,})",
    re.IGNORECASE,
)
# `Five rides were longer than 50 km`, `two of the four rooms cost more than $110`
_COMPARED = re.compile(
    rf"(?<![\w.,{SIGNS}–-])(?P<number>\d{{1,3}}|{_NUMBER})\s+"
    r"(?:of\s+(?:the|these|those|your|our|its|their|his|her)\s+(?:(?:\d{1,3}|[^\W\d_]+)\s)?)?"
    r"(?P<noun>[^\W\d_]{3,})\s(?P<verb>(?:[^\W\d_]+\s){0,4}?)"
    r"(?P<than>above|over|below|under|exceed(?:ed|s)?|(?:more|less|fewer|longer|shorter|higher|lower"
    rf"|greater|cheaper|heavier|older)\sthan)\s[{SIGNS}]?(?P<limit>\d[\d,]*(?:\.\d+)?)"
    r"(?P<unit>\s?%|\s?°[CF]?|\s[^\W\d_]+)?(?=\s*(?:[.;:!(\n–—]|$))",
    re.IGNORECASE,
)
_MORE_THAN = re.compile(
    r"above|over|exceed|more|longer|higher|greater|heavier|older", re.IGNORECASE
)
_SOME_MORE = re.compile(
    r"\b(?:other|another|more|first|last|next|top|least|about|around|nearly|almost|up to|if"
    r"|these)\s$",
    re.IGNORECASE,
)
_VERBS = frozenset(
    """
    are is were was have has had scored score cost costs earn earned took take ran run sold weigh
    weighed with that a an the of currently now all each still went which came come lie lies stand
    """.split()
)
_PLAIN_UNITS = frozenset(("°", "°c", "°f"))
MOST_ROWS = 400  # of a list whose numbers are compared
MOST_NUMBERS = 30  # keys of one record
_MORE = 2  # words beside those of the key


class WrongTally(NamedTuple):
    """From `start` to `end` the number; `counted` of the `total` records are so, as `field` is."""

    start: int
    end: int
    counted: int
    total: int
    field: Field


class _Column(Frozen, frozen=True):
    """Under one key of one list: how many records say what."""

    records: int
    counts: dict[str, tuple[int, Field]]  # `true`, `false`, or a text in lower case


class Tallies:
    def __init__(self, tree: RecordTree) -> None:
        self._tree = tree

    @once
    def _columns(self) -> dict[str, list[_Column]]:
        """By key; those of objects that a record holds are its own."""
        found: dict[str, list[_Column]] = {}
        for group in self._tree.groups:
            if len(group) <= MOST_COUNTED:
                for key, column in _columns_of(group).items():
                    found.setdefault(key, []).append(column)
        return found if sum(map(len, found.values())) <= MOST_COLUMNS else {}

    def wrong_in(self, outline: Outline) -> Iterator[WrongTally]:
        words = _NUMBER_WORDS & outline.words
        digits = [one.start() for one in _DIGITS.finditer(outline.text)]
        places = sorted((*digits, *outline.places_of(words)))
        colons = [one.start() for one in _LABELLED.finditer(outline.text)]
        lines = dict.fromkeys(outline.text.rfind("\n", 0, at) + 1 for at in colons)
        tallies = list(find_at(_TALLY, outline.text, places))
        kinds = [
            *find_at(_LABEL, outline.text, lines),
            *_find_counting(_KIND_OF, outline.text, places),
        ]
        counted = list(_find_counting(_COUNTED_AS, outline.text, places))
        yield from self._wrong_compared(outline, places)
        if not tallies and not any(self._may_be_kind(one["label"]) for one in (*kinds, *counted)):
            return
        if self._columns:
            tallies += find_at(_TALLY_PLAIN, outline.text, places)
        for found in tallies:
            sentence = outline.sentence_at(found.start())
            at = found.start("number")
            if _OF_SO_MANY.search(outline.text[max(0, at - 24) : at]):
                continue  # `two of his four vaccines`: four is all that there are
            if is_designated(outline.text, at):
                continue
            if not outline.is_proposed(sentence):
                wrong = self._judge(outline.text, found, sentence[0])
                if wrong is not None:
                    yield wrong

        for found in kinds:
            wrong = self._kind(found)
            line = outline.line_at(found.start("number"))
            if outline.text.count("|", line.start, line.end) > 3:
                continue  # what a column of a table counts, its head says
            if wrong is not None and not outline.is_proposed(outline.sentence_at(wrong.start)):
                yield wrong
        yield from self._wrong_among(outline, counted)

    def _wrong_compared(self, outline: Outline, places: Iterable[int]) -> Iterator[WrongTally]:
        """`Five rides were longer than 50 km`, and whatever is compared, so many are not."""
        for found in _find_counting(_COMPARED, outline.text, places):
            sentence = outline.sentence_at(found.start())
            before = outline.text[max(sentence[0], found.start() - 24) : found.start()]
            if _SOME_MORE.search(before) or outline.is_proposed(sentence):
                continue
            if wrong := self._compare(found):
                yield wrong

    def _compare(self, found: re.Match[str]) -> WrongTally | None:
        number = number_in_words(found["number"])
        nouns = {stem(one) for one in found["noun"].split()[-1:]}
        named = {stem(one) for one in words_of_name(found["verb"] or "") if one not in _VERBS}
        limit = float(found["limit"].replace(",", ""))
        groups = [
            group
            for group in self._tree.groups
            if not nouns.isdisjoint(key_stems(group[0].key or "")[-1:]) and len(group) <= MOST_ROWS
        ]
        if number is None or number < 2 or len(groups) != 1:
            return None
        columns = _numbers_of(groups[0], named)
        unit = (found["unit"] or "").strip().casefold()
        if unit and unit not in _PLAIN_UNITS:
            columns = [one for one in columns if stem(unit) in map(stem, key_words(one[0].key))]
        nearest: tuple[int, Field] | None = None
        for fields in columns:
            numbers = [(one.number or 0) / SCALE for one in fields]
            if not min(numbers) < limit < max(numbers):
                continue  # measured in something else, perhaps
            is_more = _MORE_THAN.match(found["than"]) is not None
            over = sum(one > limit for one in numbers), sum(one >= limit for one in numbers)
            counts = over if is_more else tuple(len(numbers) - one for one in over)
            if number in counts:
                return None
            nearest = counts[0], fields[0]
        if nearest is None:
            return None
        return WrongTally(*found.span("number"), nearest[0], len(groups[0]), nearest[1])

    def _may_be_kind(self, label: str) -> bool:
        """Does some short text of the results begin with its first word?"""
        first = words_of_name(label)[:1]
        return not self._first_words.isdisjoint(first) or not self._keys.isdisjoint(first)

    @once
    def _keys(self) -> frozenset[str]:
        return frozenset(key.casefold() for key in self._tree.keys)

    @once
    def _first_words(self) -> frozenset[str]:
        texts = {text for text, _ in self._tree.text_fields if 2 < len(text) <= LONGEST}
        return frozenset(words[0] for words in map(words_of_name, texts) if words)

    def _wrong_among(
        self, outline: Outline, tallied: Iterable[re.Match[str]]
    ) -> Iterator[WrongTally]:
        """Of the counts of one sentence that say how many are what, the one that is wrong, where
        others under that key are right."""
        counted: dict[tuple[Span, int], list[tuple[bool, WrongTally]]] = {}
        for found in tallied:
            number = number_in_words(found["number"])
            words = words_of_name(found["label"])
            for length in range(len(words), 0, -1):
                columns = self._kinds.get(" ".join(words[:length]), ())
                if len(columns) == 1 and number is not None:
                    count, field = columns[0].counts[" ".join(words[:length])]
                    tally = WrongTally(*found.span("number"), count, columns[0].records, field)
                    sentence = outline.sentence_at(found.start())
                    told = counted.setdefault((sentence, id(columns[0])), [])
                    told.append((number == count, tally))
                    break
        for (sentence, _), told in counted.items():
            wrong = [tally for is_right, tally in told if not is_right]
            if len(wrong) == 1 and len(told) > 1 and not outline.is_proposed(sentence):
                yield wrong[0]

    @once
    def _kinds(self) -> dict[str, list[_Column]]:
        """The columns in which a text is one of a few."""
        kinds: dict[str, list[_Column]] = {}
        for columns in self._columns.values():
            for column in columns:
                for state in column.counts:
                    if state not in ("true", "false"):
                        kinds.setdefault(state, []).append(column)
        return kinds

    def _kind(self, found: re.Match[str]) -> WrongTally | None:
        state = " ".join(words_of_name(found["label"]))
        columns = self._kinds.get(state, ())
        number = number_in_words(found["number"])
        if number is None:
            return None
        if not columns and found.re is _KIND_OF:  # `three unread messages`
            columns = [one for one in self._columns.get(state, ()) if "true" in one.counts]
            state = "true"
        if len(columns) != 1:
            return None
        count, field = columns[0].counts[state]
        if found.re is _KIND_OF:
            group = field.record.key or ""
            if stem(found["noun"]) not in key_stems(group) or number <= count:
                return None
        if number == count:
            return None
        return WrongTally(*found.span("number"), count, columns[0].records, field)

    def _judge(self, text: str, found: re.Match[str], start: int) -> WrongTally | None:
        number = number_in_words(found["number"])
        said = self._meant(found["rest"])
        if number is None or said is None or (number == 1 and not found["of"]):
            return None
        column, count, field = said
        names_all = {
            number_in_words(one)
            for one in (found["all"], *_OUT_OF.findall(text, start, found.start()))
        }
        is_exact = column.records in names_all or "of them" in (found["of"] or "")
        if number > count or (is_exact and number < count):
            return WrongTally(*found.span("number"), count, column.records, field)
        return None

    def _meant(self, rest: str) -> tuple[_Column, int, Field] | None:
        denied = _NOT.match(rest)
        rest = rest[denied.end() :] if denied else rest
        whole = " ".join(words_of_name(rest))  # `in service` may be a state
        adverbs = _ADVERBS.match(rest)
        rest = rest[adverbs.end() :] if adverbs else rest
        if _LIMITED.search(rest):
            return None
        words = field_words.words_said(rest, 0, len(rest))
        folded = " ".join(words_of_name(rest))
        meant: list[tuple[_Column, int, Field]] = []
        for key, columns in self._columns.items():
            named = field_words.words_of_key(key)
            for column in columns:
                for state, (count, field) in column.counts.items():
                    if state == "false":
                        continue
                    if state == "true":
                        if named and named <= words and len(words - named) <= _MORE:
                            other = column.counts.get("false", (0, field))
                            meant.append((column, *(other if denied else (count, field))))
                    elif not denied and state in (folded, whole, _without(folded, key)):
                        meant.append((column, count, field))
        return meant[0] if len(meant) == 1 else None


def _find_counting(
    pattern: re.Pattern[str], text: str, places: Iterable[int]
) -> Iterator[re.Match[str]]:
    """Not at numbers that say which one is meant; few places are worth that question."""
    likely = [at for at in places if pattern.match(text, at) and not is_designated(text, at)]
    return find_at(pattern, text, likely)


def _without(said: str, key: str) -> str:
    """`high priority`, of which the key says `priority`."""
    stems = key_stems(key)
    return " ".join(one for one in said.split() if stem(one) not in stems)


def _numbers_of(group: Sequence[ResultRecord], named: set[str]) -> list[list[Field]]:
    """The numbers under each key that every record has, if the key has the `named` words."""
    columns: dict[str, list[Field]] = {}
    for record in group:
        for field in record.fields[:MOST_NUMBERS]:
            if field.number is not None and named <= set(key_stems(field.key)):
                columns.setdefault(field.key, []).append(field)
    return [fields for fields in columns.values() if len(fields) == len(group)]


def _columns_of(group: Sequence[ResultRecord]) -> dict[str, _Column]:
    counts: dict[str, dict[str, tuple[int, Field]]] = {}
    filled: dict[str, int] = {}
    for record in group:
        children = [one for one in record.children[:20] if not one.kind.endswith("/*")]
        for one in (record, *children):
            for field in one.fields[:60]:
                state = _state(field)
                if state is not None:
                    column = counts.setdefault(field.key, {})
                    number, first = column.get(state, (0, field))
                    column[state] = (number + 1, first)
                    filled[field.key] = filled.get(field.key, 0) + 1
    for column in counts.values():
        if "false" in column and "true" not in column:
            column["true"] = (0, column["false"][1])
    return {
        key: _Column(len(group), column)
        for key, column in counts.items()
        if filled[key] == len(group)
        and len(column) <= MOST_KINDS
        and ("true" in column or len(column) < len(group))
    }


def _state(field: Field) -> str | None:
    if isinstance(field.value, bool):
        return str(field.value).lower()
    if isinstance(field.value, str) and 2 < len(field.value) <= LONGEST:
        return _plain(field.value) or None
    return None


@lru_cache(maxsize=1 << 12)
def _plain(text: str) -> str:
    return " ".join(words_of_name(text))
