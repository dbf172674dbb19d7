"""What an answer counts and names in one breath: `three orders (W1, W2 and W3)`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from callmark.grounding.binding import Binder
from callmark.grounding.record_tree import ResultRecord, key_stems, stem
from callmark.grounding.spans import Outline, Span
from callmark.grounding.values import Value

NEAR = 70  # characters between a number and what it counts
LONGEST = 400  # characters of what is named
MOST_NAMED = 12
# What comes before the first name …
_OPENS = re.compile(
    r"(?P<bracket>\s?[*_]{0,2}\()|:[*_]{0,2}\s|,?\s[–—-]\s"
    r"|,?\s(?:namely|called|named|nämlich|llamad[oa]s|nommée?s)\s"
    r"|(?P<copula>\s(?:are|were|sind|son|sont)\s)"
    r"|,?\s(?P<ids>(?:(?:with|under|having)\s)?(?:the\s)?(?:[^\W\d_]+\s)?(?:IDs|ids|numbers|codes):?\s)"
)
# … and what stands between two of them.
_APART = re.compile(r"\s*(?:,|;|/|&)?\s*(?:\b(?:and|und|y|e|et)\b|&|,|;|/)\s*")
_BARE = re.compile(
    r"[\s*_`\"'“”#(]*(?:(?:the|a|an|your|order|flight|reservation|booking|item|no)\b\.?\s?[*_`#]*)?(?:(?:ID|number|code)[\s:]{1,2})?",
    re.IGNORECASE,
)
_ID = re.compile(r"[\s*_#(]*(?:[^\W\d_]+\s)?(?:ID|number|no\.|nr\.|code)[\s:#]", re.IGNORECASE)
_REST = re.compile(r"[\s*_`\"'“”.!)]*(?:\([^()\n]*\)[\s*_.!]*)?")
_BRACKETS = re.compile(r"\([^()\n]*\)")
_WORDS = re.compile(r"(?:[ \u00a0-][^\W\d_][\w'’-]*){1,7}")
_OTHER_COUNT = re.compile(r"(?<![\w.,:/-])\d{1,2}\s[a-z]")
_NOT_ALL = re.compile(
    r"\b(?:includ\w+|such|like|example|e\.g|mainly|mostly|among|except|besides|without|not|no|nor|or|plus"
    r"|and|each|every|per|between|more|less|fewer|than|top|darunter|außer|salvo|sauf|und|y|et)\b",
    re.IGNORECASE,
)
_PART_OF = re.compile(
    r"\b(?:of|from|von|aus|de|des|sur|top|first|last|latest|next|least|most|to|about|than|every"
    r"|or|for)\s(?:(?:the|your|his|her|their|its|these|those|our|my|all|den|der|ihren|los|las|sus|les)\s)?$",
    re.IGNORECASE,
)


class Enumerations:
    """The lists that one answer writes out beside the number of their items."""

    def __init__(self, outline: Outline, binder: Binder) -> None:
        self._outline, self._binder = outline, binder
        self._text = outline.text

    def find_miscount(self, value: Value, stated: int, sentence: Span) -> str:
        """How many are named, where nothing but names stands there, and it is another number."""
        text = self._text
        if _PART_OF.search(text, max(sentence[0], value.start - 24), value.start):
            return ""  # `two of the four rooms (101 and 201)`
        for opening in _OPENS.finditer(text, value.end, min(sentence[1], value.end + NEAR)):
            if _NOT_ALL.search(text, value.end, opening.start()):
                return ""
            if opening["ids"]:
                if _OTHER_COUNT.search(text, value.end, opening.start()):
                    return ""
            elif _WORDS.fullmatch(text, value.end, opening.start()) is None:
                return ""
            records = self._named_in(self._listed(opening, sentence))
            if not records:
                continue
            if len(records) == 1 and not self._are_called(records[0], value, opening.start()):
                return ""
            return "" if len(records) == stated else f"the answer names {len(records)}"
        return ""

    def _listed(self, opening: re.Match[str], sentence: Span) -> Span:
        end = sentence[1]
        if opening["bracket"]:
            end = self._text.find(")", opening.end(), sentence[1])
        return opening.end(), min(end, opening.end() + LONGEST)

    def _are_called(self, record: ResultRecord, value: Value, end: int) -> bool:
        """`2 passengers: Ana Ruiz`, who stands in a list of passengers."""
        words = {stem(one) for one in self._text[value.end : end].split()}
        return not words.isdisjoint(key_stems(record.key)[-1:])

    def _named_in(self, span: Span) -> list[ResultRecord]:
        """One of each name, if they all stand in one list, and nothing else does there."""
        parts: list[Span] = []
        start = span[0]
        bracketed = [one.span() for one in _BRACKETS.finditer(self._text, *span)]
        for apart in _APART.finditer(self._text, *span):
            if any(begin < apart.start() < end for begin, end in bracketed):
                continue
            parts.append((start, apart.start()))
            start = apart.end()
        parts.append((start, span[1]))
        if span[1] <= span[0] or len(parts) > MOST_NAMED:
            return []
        named = [self._named_by(part) for part in parts]
        lists: set[tuple[int | None, str]] = set()
        for at, own in enumerate(named):
            lists = lists & set(map(_list_of, own)) if at else set(map(_list_of, own))
        for kind in sorted(lists, key=lambda one: (not one[1].endswith("/*"), repr(one))):
            found: dict[int, ResultRecord] = {}
            for part, own in zip(parts, named, strict=True):
                record = next(one for one in own if _list_of(one) == kind)
                if record.number in found and _ID.match(self._text, *part) is None:
                    break  # two of one name, or one that is named twice
                found[record.number] = record
            else:
                if not _have_amounts(found.values()):
                    return list(found.values())
        return []

    def _named_by(self, part: Span) -> Sequence[ResultRecord]:
        """What is called so, if the part is a name and nothing else."""
        end = self._text.find("(", part[0] + 2, part[1])
        mentions = self._binder.mentions_in((part[0], (part[1] if end < 0 else end) + 1))
        if len(mentions) != 1:
            return ()
        before = _BARE.fullmatch(self._text, part[0], mentions[0].start)
        after = _REST.fullmatch(self._text, min(mentions[0].end, part[1]), part[1])
        return mentions[0].records if before and after else ()


def _list_of(record: ResultRecord) -> tuple[int | None, str]:
    return None if record.parent is None else record.parent.number, record.kind


def _have_amounts(records: Iterable[ResultRecord]) -> bool:
    """`five items (Lamp and Desk)`, where the results have two lamps and three desks."""
    return any(
        "qty" in field.key or "quantity" in field.key or "count" in field.key
        for record in records
        for field in record.fields[:40]
        if field.number is not None
    )
