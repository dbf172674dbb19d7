"""How many things of a kind there are: `4 passengers`, against the lists of the results."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from callmark.grounding.binding import Binder
from callmark.grounding.claims import is_designated
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import (
    Field,
    ResultRecord,
    Series,
    is_naming,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import once
from callmark.grounding.values import Value

_COUNTED = re.compile(
    r"(?:\sof\s(?:your|the|these|those|my|our|his|her|their|all))?"
    r"[ \u00a0-]([^\W\d_]{2,})(?:[ \u00a0]([^\W\d_]{2,}))?"
)


MOST_COMPARED = 4  # things of a list by which it is known again
MOST_LISTS = 200  # of one noun that are looked through for those of a record
_ALL_OF_THEM = re.compile(
    r"\b(?:there (?:are|is|were)|found|(?:have|has|had|lists?|shows?|returned|includes?|contains?"
    r"|holds?)(?: a total of| all)?|total of|all|es gibt|hat|hay|tiene|il y a)\s(?:the\s)?$",
    re.IGNORECASE,
)


# What a number counts or measures: one or two words behind it.
_BESIDE = re.compile(r"[ \u00a0-]?([^\W\d_]+)(?:[ \u00a0-]([^\W\d_]{2,}))?")
_THERE_ARE = re.compile(
    r"\b(?:there (?:are|were)|you have|i found|es gibt|hay|tienes|il y a|vous avez)\s"
    r"(?:a total of |in total |only |exactly |currently |insgesamt |un total de )?$",
    re.IGNORECASE,
)
# Words of keys under which nothing is counted.
_NO_COUNTS = frozenset("size id day date month year price amount cost time age zip phone".split())
_IF = re.compile(r"\b(?:if|whether|unless|would|wenn|falls|ob|si)\b", re.IGNORECASE)
_DEFINITE = re.compile(
    r"\b(?:all|these|those|the|your|his|her|their|our|alle|diese|die|los|las|estos|estas|sus|les|ces|vos)"
    r"(?:\s(?:other|remaining|anderen|otros|otras|autres))?\s$",
    re.IGNORECASE,
)


# `an order with five items`, `the reservation (4WQ150) for two passengers`
_OF_ONE = re.compile(
    r"\b(?:an?|one|the|this|that|your|my|ein\w*|der|die|das|una?|el|la|une?|le)"
    r"\s(?:[^\W\d_]+\s){0,2}?[^\W\d_]*[^\W\d_s]\s(?:#?[\w-]*\d[\w-]*\s|\([^()\n]{1,30}\)\s)?"
    r"(?:with|containing|contains|has|had|holds|holding|includes|including|mit|con|avec)\s(?:only\s)?$",
    re.IGNORECASE,
)


_CHOSEN = re.compile(
    r"\s(?:on|departing|leaving|scheduled|dated|before|after|between|starting|am|vor|nach|zwischen"
    r"|del|el|antes|después|le|avant|après)\s",
    re.IGNORECASE,
)
# `Order W1 with five items`, `W1 (five items)`, `W1: five items`: all that it has.
_HOLDS = re.compile(
    r"(?:\b(?:with|has|had|have|contains|containing|holds|holding|includes|lists|shows|mit|enthält|hat"
    r"|con|tiene|contiene|avec|contient|a)\s(?:only\s|just\s|exactly\s|a\stotal\sof\s)?|\(|:[*_]*\s)$",
    re.IGNORECASE,
)
FAR = 90  # characters of a sentence, before what holds so many
_ONLY_MARKS = re.compile(r"[\s*_)\]\"'”`,]*(?:\((?:which|that)\s)?")
# `the other two orders`: there is one more at least.
_OTHER = re.compile(
    r"\b(?:other|remaining|anderen|restlichen|otros|otras|autres)\s$", re.IGNORECASE
)
_BEHIND = re.compile(r"[ -][^\W\d_]+[*_]{0,2}\s\(([^()\n]{2,40})\)")
_ALL = re.compile(
    r"\b(?:all|alle|todos|todas|tous|toutes)\s(?:(?:of\s)?(?:the|your|these)\s)?$", re.I
)
# Behind the noun, what does not say which of them are meant.
_WHOLE = re.compile(
    r"[*_]{0,3}\s?(?:$|[.,;:!?()\n|–—]|(?:has|is|was|will|hat|ist|wurde|in\s(?:total|all)|altogether|overall|insgesamt|en\stotal|au\stotal"
    r"|(?:on|in|under|for|with|to|at)\s(?:your|his|her|their|this|the|our|my)\s(?:[^\W\d_]+\s)?"
    r"(?:account|profile|list|lists|calendar|inbox|orders?|records?|results?|file|name|library|cart|basket"
    r"|queue|folder|project|database|system|portfolio|schedule|reservation|booking|trip|response"
    r"|search|data|user\sid))\b)",
    re.IGNORECASE,
)


class Counted(NamedTuple):
    """Whether as many as stated are there; `because` names the list."""

    holds: bool
    because: str


def _counts_nothing(field: Field) -> bool:
    return is_naming(field.key) or not _NO_COUNTS.isdisjoint(key_words(field.key))


def _reach_none(number: int, sizes: Sequence[int]) -> bool:
    """Do no few of the lists hold so many together?"""
    reached = 1  # bit n: some of them hold n
    for size in sizes:
        reached |= reached << size
    return not reached >> number & 1


# What may stand between a number and its noun without saying which of them are counted.
_ANY_KIND = frozenset(
    map(
        stem,
        "total different separate individual distinct unique whole single recent".split(),
    )
)
# Nouns that count the same things.
_SAME = {
    word: frozenset(words) - {word}
    for line in (
        "passenger traveler traveller", "order purchase", "item product article",
        "flight segment leg", "message email mail", "file document", "ticket issue",
        "booking reservation",
        "event meeting appointment", "listing property", "student pupil", "transaction payment",
        "employee worker staff", "shipment delivery", "parcel package", "guest visitor",
        "result hit", "medication medicine drug", "comment reply", "photo picture image",
        "car vehicle", "server host machine", "game match", "review rating", "task todo",
        "song track", "film movie", "store shop", "alert alarm warning", "participant attendee",
    )
    for words in (list(map(stem, line.split())),)
    for word in words
}  # fmt: skip
_EACH = re.compile(r"\b(?:each|apiece|jeweils|je|chacune?|cada)\b", re.IGNORECASE)


class CountedThings:
    """The lists of the results by the noun that counts what is in them."""

    def __init__(
        self,
        outline: Outline,
        lists: Sequence[Series],
        groups: Sequence[Sequence[ResultRecord]],
        said: Said,
        binder: Binder,
        turn_at: Callable[[int], int | None],
    ) -> None:
        self._outline = outline
        self._text = outline.text
        self._lists, self._groups = lists, groups
        self._said = said
        self._binder = binder
        self._turn_at = turn_at

    def _sizes_of(self, lists: Sequence[Series]) -> list[int]:
        """How many things each holds; what a record is called by, or what the list holds, tells
        that it is served again."""
        sizes: dict[frozenset[str], int] = {}
        known: dict[object, frozenset[str]] = {}
        for series in lists:
            names = frozenset(
                series.record.names or (series.record.path, str(series.record.number))
            )
            held = self._held_in(series)
            again = [known[held, one] for one in names if (held, one) in known]
            key = known.get(names) or (again[0] if again else names)
            known[names] = key
            known.update(dict.fromkeys(((held, one) for one in names), key))
            sizes[key] = max(sizes.get(key, 0), len(series.items))
        return list(sizes.values())

    def _held_in(self, series: Series) -> tuple[str, int, str]:
        """By what it is known again: looked at once, as results may be long."""
        known = self._seen.get(id(series))
        if known is None:
            text = repr(series.items[:MOST_COMPARED])
            known = self._seen[id(series)] = series.path, len(series.items), text
        return known

    @once
    def _seen(self) -> dict[int, tuple[str, int, str]]:
        return {}

    def count(self, value: Value, sentence: Span) -> Counted | None:
        """`4 passengers`, where some list of passengers has four, and more than the record has of
        which it is said."""
        stated = value.readings[0] // SCALE
        nouns = self.nouns_after(value)
        own = self._lists_of_subject(value, sentence, nouns)
        if (
            own
            and stated > sum(self._sizes_of(own))
            and (self.are_told(value, sentence) or not self._outline.is_proposed(sentence))
        ):
            return Counted(False, f"{own[0].path} has {len(own[0].items)}")
        whole = self._size_of_whole(value, sentence, nouns) if nouns else None
        if whole is not None:
            return Counted(False, f"{whole.path} has {len(whole.items)}")
        kind = "" if len(nouns) < 2 or nouns[0] in _ANY_KIND else nouns[0]
        before = self._text[max(sentence[0], value.start - 16) : value.start]
        stated += _OTHER.search(before) is not None
        lists = self._lists_called(nouns, self._turn_at(value.start))
        if not own and self._are_some_of(value, lists):
            return None
        # `1 passenger` of a reservation is no `saved_passengers` of its user.
        others = () if lists else self.lists_of(nouns, self._turn_at(value.start))
        for series in (*own, *lists, *others):
            stems = key_stems(series.key)
            # `2 matching items`, `2 per passenger`: those of a kind, not all that the list has.
            if len(series.items) == stated and (not kind or kind in stems):
                return Counted(True, f"the length of {series.path}")
        if lists and stated == sum(self._sizes_of(lists)):  # `five items in the two orders`
            return Counted(True, f"what all {lists[0].path} hold")
        return None

    def _are_some_of(self, value: Value, lists: Sequence[Series]) -> bool:
        """`two flights on May 17`, where several have flights: of whichever they are, the length of
        no one list tells."""
        counted = _COUNTED.match(self._text, value.end)
        if counted is None or len({len(one.items) for one in lists}) < 2:
            return False
        return _CHOSEN.match(self._text, counted.end(1)) is not None

    def _size_of_whole(self, value: Value, sentence: Span, nouns: Sequence[str]) -> Series | None:
        """`W111 has two items`, where it has three, and the answer speaks of all that it has."""
        before = self._text[max(sentence[0], value.start - 40) : value.start]
        are_all = _ALL.search(before) is not None
        holds = _HOLDS.search(before)
        if not are_all and holds is None:
            return None
        records = self._held_by(value, sentence, None if holds is None else len(holds[0]))
        named = self._named_by(nouns)
        turn = self._turn_at(value.start)
        own = [
            one
            for one in islice(self.lists_of(nouns, turn), MOST_LISTS)
            if key_stems(one.key) in named and any(one.record is record for record in records)
        ]
        stated = value.readings[0] // SCALE
        if not own or len({len(one.items) for one in own}) > 1 or len(own[0].items) == stated:
            return None
        if are_all or self._is_whole(value, nouns, key_stems(own[0].key)[0]):
            return own[0]
        return None

    def _held_by(self, value: Value, sentence: Span, length: int | None) -> Sequence[ResultRecord]:
        """Of what is it said that it holds so many? What stands right before the verb, `length`
        characters before the number, else what the sentence names."""
        if length is not None:
            end = value.start - length
            mentions = self._binder.mentions_in((max(sentence[0], end - FAR), end + 1))
            if mentions and _ONLY_MARKS.fullmatch(self._text, mentions[-1].end, end):
                return mentions[-1].records
            behind = _BEHIND.match(self._text, value.end)
            if behind is not None:  # `an order with two items (W111)`
                mentions = self._binder.mentions_in((behind.start(1), behind.end(1) + 1))
                if mentions:
                    return mentions[0].records
        subject = self._binder.subject_of(value, sentence)
        if subject is None or subject.inherited or subject.distant:
            return ()
        return subject.records

    def _is_whole(self, value: Value, nouns: Sequence[str], noun: str) -> bool:
        """Does nothing behind the noun say which of them are counted?"""
        counted = _COUNTED.match(self._text, value.end)
        if counted is None:
            return False
        end = counted.end(1) if nouns[0] == noun else counted.end()
        return _WHOLE.match(self._text, end) is not None

    def _named_by(self, nouns: Sequence[str]) -> list[tuple[str, ...]]:
        named = nouns[1:] if nouns and nouns[0] in _ANY_KIND else nouns[:1]
        return [*((noun,) for noun in named), tuple(nouns)]

    def find_miscount(self, value: Value, sentence: Span, *, fewer: bool) -> str:
        """More than any list of them has; fewer only where all of them are meant. Without `fewer`,
        what the user counted is left alone as well."""
        if value.unit or "." in value.text or not value.readings:
            return ""
        nouns = self.nouns_after(value)
        turn = self._turn_at(value.start)
        lists = self._lists_called(nouns, turn)
        after = self._text[value.end : min(sentence[1], value.end + 30)]
        if not lists or not value.readings or _EACH.search(after):
            return ""
        stated = value.readings[0] // SCALE
        most = max(lists, key=lambda series: len(series.items))
        before = self._text[max(sentence[0], value.start - 40) : value.start]
        stated += _OTHER.search(before) is not None
        sizes = self._sizes_of(lists)
        most_held = max(sizes) if _OF_ONE.search(before) else sum(sizes)
        if self._outline.is_proposed(sentence):
            is_open = not self.are_told(value, sentence) or self._said.counts(stated, nouns, turn)
            is_wrong = not is_open and stated > most_held
            return f"{most.path} has {len(most.items)}" if is_wrong else ""
        is_all = _ALL.search(before) is not None
        is_total = (len(set(sizes)) == 1 or (is_all and _reach_none(stated, sizes))) and (
            _ALL_OF_THEM.search(before) is not None
            and (is_all or self._is_whole(value, nouns, key_stems(most.key)[0]))
            and key_stems(most.key)[0] in nouns
        )
        if stated > len(most.items):
            are_all = _ALL_OF_THEM.search(before) is not None
            is_no_count = stated > most_held or (are_all and _reach_none(stated, sizes))
            is_wrong = is_no_count and (fewer or not self._said.counts(stated, nouns, turn))
        elif len(sizes) > 1 and _OF_ONE.search(before) and stated not in sizes:
            is_whole = self._is_whole(value, nouns, key_stems(most.key)[0])
            is_wrong = is_whole and (fewer or not self._said.counts(stated, nouns, turn))
        else:
            is_open = not fewer and self._said.counts(stated, nouns, turn)
            is_wrong = is_total and not is_open and stated < len(most.items)
        return f"{most.path} has {len(most.items)}" if is_wrong else ""

    def may_count(self, value: Value, fields: Sequence[Field]) -> list[Field]:
        """Not `2-piece`, where the items of an order are counted."""
        nouns = self.nouns_after(value)
        if not fields or not any(map(self._by_noun.get, nouns[:1])):
            return list(fields)
        return [
            field
            for field in fields
            if not isinstance(field.value, str) or not set(nouns).isdisjoint(key_stems(field.key))
        ]

    def _lists_called(self, nouns: Sequence[str], turn: int | None) -> list[Series]:
        """Those whose whole key is what is counted, or says the same in another word."""
        named = nouns[1:] if nouns and nouns[0] in _ANY_KIND else nouns[:1]
        found = [one for noun in named for one in self._called((noun,), turn)]
        if len(nouns) == 2 and not found:  # `4 payment methods`
            found = list(self._called(tuple(nouns), turn))
        if found or not named or any(True for _ in self.lists_of(named, turn)):
            return found
        others = [
            called
            for other in sorted(_SAME.get(named[0], ()))
            if (called := list(self._called((other,), turn)))
        ]
        return others[0] if len(others) == 1 else []

    def _called(self, nouns: tuple[str, ...], turn: int | None) -> Iterator[Series]:
        for series in islice(self.lists_of(nouns[-1:], turn), MOST_LISTS):
            if key_stems(series.key) == nouns:
                yield series

    def counts_no_field(self, value: Value, sentence: Span, fields: Sequence[Field]) -> str:
        """`There are 14 files`, where 14 is the id of one of three: the number of which records
        there are so many, which no leaf says that it counts. Empty: it may be."""
        if value.kind != "number" or not value.text.isdecimal() or value.unit:
            return ""
        if not all(map(_counts_nothing, fields)):
            return ""
        before = self._text[max(sentence[0], value.start - 40) : value.start]
        nouns = self.nouns_after(value)
        if not nouns or not _THERE_ARE.search(before) or self._outline.is_proposed(sentence):
            return ""
        if any(not set(nouns).isdisjoint(key_stems(field.key)) for field in fields):
            return ""
        most = self._most_records(self._turn_at(value.start))
        return f"there are {most} at most" if 0 < most < value.readings[0] // SCALE else ""

    def _most_records(self, turn: int | None) -> int:
        """How many the longest list has: of things of one kind there are no more."""
        if turn not in self._most:
            longest = (len(one) for one in self._groups if one[0].counts_for(turn))
            self._most[turn] = max(longest, default=0)
        return self._most[turn]

    @once
    def _most(self) -> dict[int | None, int]:
        return {}

    def are_told(self, value: Value, sentence: Span) -> bool:
        """`Shall I cancel all three orders?` says how many there are, and so does `Since there are
        two passengers, you could take four bags`."""
        before = self._text[max(sentence[0], value.start - 40) : value.start]
        if _DEFINITE.search(before) or _OF_ONE.search(before):
            return True
        return _ALL_OF_THEM.search(before) is not None and _IF.search(before) is None

    def _lists_of_subject(self, value: Value, sentence: Span, nouns: Sequence[str]) -> list[Series]:
        """The lists of such things that the records hold of which the number is said."""
        lists = list(islice(self.lists_of(nouns, self._turn_at(value.start)), MOST_LISTS))
        subject = self._binder.subject_of(value, sentence) if lists else None
        if subject is None or (subject.inherited and len(subject.records) > 1):
            return []
        if not subject.beside and self._outline.tells_a_change(value, sentence):
            return []
        return [one for one in lists if any(one.record is record for record in subject.records)]

    def nouns_after(self, value: Value) -> list[str]:
        counted = _COUNTED.match(self._text, value.end)
        if counted is None or is_designated(self._text, value.start):
            return []
        return [stem(word) for word in counted.groups() if word]

    def lists_of(self, nouns: Sequence[str], turn: int | None) -> Iterator[Series]:
        """Those that were served before that turn."""
        for noun in nouns:
            for series in self._by_noun.get(noun, ()):
                if series.record.counts_for(turn):
                    yield series

    @once
    def _by_noun(self) -> dict[str, list[Series]]:
        found: dict[str, list[Series]] = {}
        for series in self._lists:
            stems = key_stems(series.key)
            if stems:
                found.setdefault(stems[-1], []).append(series)
        return found

    def may_be_said(self, value: Value) -> bool:
        """Who asked for 3 bags did not say `3 TB`."""
        beside = _BESIDE.match(self._text, value.end)
        if beside is None:
            return True
        nouns = [stem(one) for one in beside.groups() if one]
        turn = self._turn_at(value.start)
        return self._said.counts(value.readings[0] // SCALE, (*nouns, ""), turn)

    def was_counted_by_user(self, value: Value) -> bool:
        """Did the user count as many of the same things?"""
        nouns = self.nouns_after(value)
        return self._said.counts(value.readings[0] // SCALE, nouns, self._turn_at(value.start))


# --- what an answer counts and names in one breath: `three orders (W1, W2 and W3)`

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
_BARE_NAME = re.compile(
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
        before = _BARE_NAME.fullmatch(self._text, part[0], mentions[0].start)
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
