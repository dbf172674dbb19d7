"""Lists that an answer introduces with a number: `three of them are late:`, and four items."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callmark.grounding.binding import Binder
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import ResultRecord
from callmark.grounding.spans import Outline, OutlineLine, Span
from callmark.grounding.text import NUMBER_WORDS
from callmark.grounding.values import Value

MOST_ITEMS = 60
NAMED_WITHIN = 90  # characters of an item that say what it is about
_ITEM = re.compile(r"\s*(?:[-*+•‣–]|\(?\d{1,3}[.)])\s")
_RULED = re.compile(r"[\s|:-]+")
_OPENS = re.compile(r":\s|\s[–—-]\s|\(")
_WORD = re.compile(r"\w+")
_NUMBER = re.compile(r"\d|,")
_FOR = re.compile(r"\b(?:for|für|para|pour)\s(?:the\s|your\s)?$", re.IGNORECASE)
_APART = re.compile(r",\s*(?:and|und|y|et)\s|,\s|\s(?:and|und|y|et)\s")


def _number_of(word: str) -> int | None:
    return int(word) if word.isdecimal() else NUMBER_WORDS.get(word)


class IntroducedLists:
    """The lists of one answer whose items each name another record of one list of the results."""

    def __init__(self, outline: Outline, binder: Binder) -> None:
        self._outline, self._binder = outline, binder
        self._starts = {line.start: at for at, line in enumerate(outline.lines)}
        self._named: dict[Span, list[ResultRecord]] = {}

    def find_miscount(self, value: Value, sentence: Span) -> str:
        """How many the list has, if neither this nor another number of its sentence says so, and
        it is not how many there are in all."""
        text = self._outline.text
        if _FOR.search(text, max(sentence[0], value.start - 12), value.start):
            return ""
        records = self._listed_below(sentence) or self._listed_within(value, sentence)
        stated = {word.casefold() for word in _WORD.findall(text, *sentence)}
        if len(records) < 2 or any(_number_of(word) == len(records) for word in stated):
            return ""
        parent = records[0].parent
        siblings = [] if parent is None else parent.children
        if len([one for one in siblings if one.kind == records[0].kind]) in (
            value.readings[0] // SCALE,
            0,
        ):
            return ""
        return f"the answer lists {len(records)}"

    def _listed_below(self, sentence: Span) -> list[ResultRecord]:
        line = self._outline.line_at(sentence[0])
        if sentence in self._named:
            return self._named[sentence]
        text = self._outline.text
        found: list[ResultRecord] = []
        if sentence[1] <= line.end and text[sentence[1] - 1 : line.end].strip(" *_") in (":", "::"):
            found = self._one_each([(one.start, one.end) for one in self._items_after(line)])
        self._named[sentence] = found
        return found

    def _items_after(self, line: OutlineLine) -> list[OutlineLine]:
        text = self._outline.text
        following = self._outline.lines[self._starts[line.start] + 1 :][:MOST_ITEMS]
        items: list[OutlineLine] = []
        for one in following:
            if text.startswith("|", one.start):
                if not _RULED.fullmatch(text, one.start, one.end):
                    items.append(one)
                continue
            if items and text.startswith("|", items[0].start):
                break
            if not _ITEM.match(text, one.start, one.end):
                if not items or one.level <= items[0].level:
                    break
                continue
            if items and one.level < items[0].level:
                break
            if not items or one.level == items[0].level:
                items.append(one)
        is_table = bool(items) and text.startswith("|", items[0].start)
        return items[1:] if is_table else items

    def _listed_within(self, value: Value, sentence: Span) -> list[ResultRecord]:
        """`two of them are down: Vexxil, Aelith and SableFox`"""
        text = self._outline.text
        opening = _OPENS.search(text, value.end, min(sentence[1], value.end + NAMED_WITHIN))
        if opening is None or _NUMBER.search(text, value.end, opening.start()):
            return []
        end = sentence[1]
        if opening[0] == "(":
            end = text.find(")", opening.end(), sentence[1])
        parts: list[Span] = []
        start = opening.end()
        for apart in _APART.finditer(text, start, max(start, end)):
            parts.append((start, apart.start()))
            start = apart.end()
        return self._one_each([*parts, (start, max(start, end))]) if parts else []

    def _one_each(self, spans: Sequence[Span]) -> list[ResultRecord]:
        """The record that each of them names: none unless all do, and all are of one list."""
        found: dict[int, ResultRecord] = {}
        for start, end in spans:
            named = self._binder.mentions_in((start, min(end, start + NAMED_WITHIN)))
            if not named or len(named[0].records) != 1:
                return []
            record = named[0].records[0]
            found[record.number] = record
        kinds = {(one.parent and one.parent.number, one.kind) for one in found.values()}
        return list(found.values()) if len(found) == len(spans) and len(kinds) == 1 else []
