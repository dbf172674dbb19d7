"""How many of a list are so: `six have parking`, `three are pending`, counted over its records."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from callmark.grounding import field_words
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord, key_stems, stem
from callmark.grounding.siblings import groups_of, words_of_name
from callmark.grounding.spans import Outline
from callmark.grounding.text import fold
from callmark.grounding.words import NUMBER_WORDS

MOST_RECORDS = 2000  # of a list that is counted
MOST_COLUMNS = 300  # of all lists; which of more is meant?
MOST_KINDS = 12  # texts under one key that are kinds of something
LONGEST = 30  # characters of such a text
_NUMBER = "|".join(sorted((one for one in NUMBER_WORDS if one != "dozen"), key=len, reverse=True))
_TALLY = re.compile(
    rf"(?<![\w.,$€£-])(?P<number>\d{{1,3}}|{_NUMBER})\s+"
    r"(?P<of>of\s+(?:the|these|those|them|your|our|all)\s+(?:(?P<all>\d{1,3}|[^\W\d_]+)\s+)?)?"
    r"(?:[^\W\d_]+\s+){0,2}?"
    r"(?P<verb>have|has|are|is|were|was|offers?|includes?|allows?|provides?|accepts?|come with)\s+"
    r"(?P<rest>[^,.;:()!?\n–—]{2,60})",
    re.IGNORECASE,
)
_OUT_OF = re.compile(r"\bof (?:the|these|all|your) (\d{1,3}|[^\W\d_]+)\b", re.IGNORECASE)
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
    r"(?=\s*(?:$|[|(.,]))",
    re.MULTILINE,
)
_KIND_OF = re.compile(
    rf"(?<![\w.,$€£-])(?P<number>\d{{1,3}}|{_NUMBER})\s+(?P<label>[^\W\d_][\w-]+(?:\s[\w-]+)?)\s+"
    r"(?P<noun>[^\W\d_]{3,})",
    re.IGNORECASE,
)
_MORE = 2  # words beside those of the key


class WrongTally(NamedTuple):
    """From `start` to `end` the number; `counted` of the `total` records are so, as `field` is."""

    start: int
    end: int
    counted: int
    total: int
    field: Field


class _Column(NamedTuple):
    """Under one key of one list: how many records say what."""

    records: int
    counts: dict[str, tuple[int, Field]]  # `true`, `false`, or a text in lower case


class Tallies:
    def __init__(self, tree: RecordTree) -> None:
        self._tree = tree

    @cached_property
    def _columns(self) -> dict[str, list[_Column]]:
        """By key; those of objects that a record holds are its own."""
        found: dict[str, list[_Column]] = {}
        for group in groups_of(self._tree):
            if len(group) <= MOST_RECORDS:
                for key, column in _columns_of(group).items():
                    found.setdefault(key, []).append(column)
        return found if sum(map(len, found.values())) <= MOST_COLUMNS else {}

    def wrong_in(self, outline: Outline) -> Iterator[WrongTally]:
        for found in _TALLY.finditer(outline.text):
            sentence = outline.sentence_at(found.start())
            if not outline.is_proposed(sentence):
                wrong = self._judge(outline.text, found, sentence[0])
                if wrong is not None:
                    yield wrong

        for pattern in (_LABEL, _KIND_OF) if self._kinds else ():
            for found in pattern.finditer(outline.text):
                wrong = self._kind(found)
                if wrong is not None and not outline.is_proposed(outline.sentence_at(wrong.start)):
                    yield wrong

    @cached_property
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
        number = _number_of(found["number"])
        if len(columns) != 1 or number is None:
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
        number = _number_of(found["number"])
        said = self._meant(found["rest"])
        if number is None or said is None or (number == 1 and not found["of"]):
            return None
        column, count, field = said
        names_all = {
            _number_of(one) for one in (found["all"], *_OUT_OF.findall(text, start, found.start()))
        }
        is_exact = column.records in names_all or "of them" in (found["of"] or "")
        if number > count or (is_exact and number < count):
            return WrongTally(*found.span("number"), count, column.records, field)
        return None

    def _meant(self, rest: str) -> tuple[_Column, int, Field] | None:
        denied = _NOT.match(rest)
        rest = rest[denied.end() :] if denied else rest
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
                    if state == "true":
                        if named and named <= words and len(words - named) <= _MORE:
                            other = column.counts.get("false", (0, field))
                            meant.append((column, *(other if denied else (count, field))))
                    elif state != "false" and not denied and folded == state:
                        meant.append((column, count, field))
        return meant[0] if len(meant) == 1 else None


def _number_of(word: str | None) -> int | None:
    if not word:
        return None
    return int(word) if word.isdecimal() else NUMBER_WORDS.get(fold(word))


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
        return " ".join(words_of_name(field.value)) or None
    return None
