"""Ranks: which record is the cheapest, the latest, the only one, by the results themselves."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding import field_words
from callmark.grounding.binding import Binder, Mention
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import read_leaf
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    ResultRecord,
    key_words,
)
from callmark.grounding.spans import WIDE, Outline, Span
from callmark.grounding.text import SIGNS, find_at, number_in_words, place_words
from callmark.grounding.values import Value

MOST_RANKED = 200  # of a list that is ranked
MOST_OF_ONE = 6  # places in which one thing stands
MOST_CLAIMS = 40  # superlatives of one answer that are looked at
MOST_FIELDS = 40  # of one record
_LONGEST_TEXT = 40

# Superlatives, whether they are the most of something, and the words of keys that say of what;
# those after a comma count where none of the others is there.
_TABLE = """
- price cost fare rent, fee: cheapest|least expensive|most affordable
    |lowest-priced|lowest priced|günstigste\\w*|billigste\\w*|preiswerteste\\w*|más (?:barat
    |económic)[oa]s?|(?:le|la|les) moins ch(?:er|ère)s?
+ price cost fare rent, fee: most expensive|priciest|dearest|costliest
    |highest-priced|highest priced|teuerste\\w*|más car[oa]s?|(?:le|la|les) plus ch(?:er|ère)s?
+ rating score stars: best[- ]rated|highest[- ]rated|top[- ]rated|bestbewertete\\w*
    |mejor (?:valorad|puntuad)[oa]s?|(?:le|la|les) mieux notée?s?
- rating score stars: worst[- ]rated|lowest[- ]rated|schlechtestbewertete\\w*|peor (?:valorad
    |puntuad)[oa]s?|(?:le|la|les) moins bien notée?s?
- distance: nearest|closest|nächstgelegene\\w*|más (?:cercan|próxim)[oa]s?|(?:le|la
    |les) plus proches?
+ distance: farthest|furthest|most distant|entfernteste\\w*|más lejan[oa]s?|(?:le|la
    |les) plus éloignée?s?
- duration time minutes hours transit delivery days: fastest|quickest|schnellste\\w*
    |más rápid[oa]s?|(?:le|la|les) plus rapides?
+ duration time minutes hours transit delivery days: slowest|langsamste\\w*|más lent[oa]s?|(?:le
    |la|les) plus lente?s?
+ date time created updated published day start started since hired joined: latest|newest
    |most recent(?:ly)?
    |(?:left|arrived|came in|starts|started|departs|departed|opened|finished|ended) last
    |neueste\\w*|jüngste\\w*
    |más reciente|(?:le|la|les) plus récente?s?
- date time created updated published day year built start started since hired joined: oldest
    |earliest|(?:left|arrived|came in|starts|started|departs|departed|opened|finished|ended) first
    |älteste\\w*|früheste\\w*
    |más antigu[oa]s?|(?:le|la|les) plus ancien(?:ne)?s?
+ temperature high: hottest|warmest|wärmste\\w*|heißeste\\w*|más (?:cálid|caluros)[oa]s?|(?:le
    |la|les) plus chaude?s?
- temperature low: coldest|coolest|kälteste\\w*|más frí[oa]s?|(?:le|la|les) plus froide?s?
+ weight: heaviest|schwerste\\w*|más pesad[oa]s?|(?:le|la|les) plus lourde?s?
- weight: lightest|leichteste\\w*|más ligero|(?:le|la|les) plus légère?s?
+ population: most populous
+ reviews review: most[- ]reviewed|most reviews|meistbewertete\\w*|más reseñad[oa]s?
+ depth: deepest|tiefste\\w*|más profund[oa]s?|(?:le|la|les) plus profonde?s?
- depth: shallowest|flachste\\w*
+ area size, amount value total volume: largest|biggest|größte\\w*
    |más grandes?|(?:le|la|les) plus grande?s?
- area size, amount value total volume: smallest|kleinste\\w*
    |más pequeñ[oa]s?|(?:le|la|les) plus petite?s?
+ length distance duration pages: longest|längste\\w*|más larg[oa]s?|(?:le|la|les) plus longue?s?
- length distance duration pages: shortest|kürzeste\\w*|más cort[oa]s?|(?:le|la|les) plus courte?s?
+ *: highest|most|best|greatest|höchste\\w*|meisten|más alt[oa]s?|mayor|mejor|(?:le|la
    |les) plus élevée?s?
- *: lowest|fewest|least|niedrigste\\w*|geringste\\w*|wenigsten|más baj[oa]s?|menor|(?:le|la
    |les) plus (?:bas|basse|faible)s?
? *: worst|strongest|weakest|top|cleanest|dirtiest|busiest|quietest|safest|toughest
    |schlechteste\\w*|beste\\w*|stärkste\\w*|schwächste\\w*|peor|(?:le|la|les) (?:meilleur
    |pire)e?s?
"""


_Path = tuple[str, str]  # the key of an object in the record, or none, and that of a value


class _Superlative(NamedTuple):
    """`is_most` None: of what is best, nobody can say whether it is the most or the least."""

    is_most: bool | None
    words: frozenset[str]  # empty: the noun that follows names the key
    also: frozenset[str] = frozenset()


def _words_in(words: str) -> frozenset[str]:
    return field_words.words_of_key(words.replace(" ", "_")) | frozenset(words.split())


_FORM = re.compile(r"(?:\(\?:[^)]*\)|[^|(])+")
_FIRST_WORD = re.compile(r"(?:\(\?:[^)]*\)|[^ \[(-])+")


def _read_table() -> tuple[dict[str, _Superlative], str, str]:
    """The superlatives by the groups of a pattern, that pattern, and that of their first words."""
    groups: dict[str, _Superlative] = {}
    patterns = []
    first_words: set[str] = set()
    for number, line in enumerate(_TABLE.replace("\n    ", "").strip().splitlines()):
        sign = line[0]
        words, _, forms = line[2:].partition(": ")
        name = f"s{number}"
        first, _, rest = words.partition(", ")
        # Here `date` and `time` say what is meant, though in other keys they hardly do.
        named = frozenset() if words == "*" else _words_in(first)
        also = field_words.words_of_key(rest)
        groups[name] = _Superlative({"+": True, "-": False}.get(sign), named, also)
        patterns.append(f"(?P<{name}>{forms})")
        first_words.update(
            found[0] for form in _FORM.findall(forms) if (found := _FIRST_WORD.match(form))
        )
    return groups, "|".join(patterns), "|".join(sorted(first_words))


_SUPERLATIVES, _PATTERN, _FIRST_WORDS = _read_table()
_RANK = re.compile(rf"(?<![\w-])(?:{_PATTERN})(?!\w)", re.IGNORECASE)
_BEGINS = re.compile(_FIRST_WORDS)


@lru_cache(maxsize=1 << 14)
def _begins_rank(word: str) -> bool:
    return _BEGINS.fullmatch(word) is not None


_NOUN = re.compile(r"[-\s*]+((?:[^\W\d_][\w.%-]*\s?){1,3})")
# `the second cheapest`, `one of the cheapest`, `at most`, `almost the cheapest`.
_NOT_FIRST = re.compile(
    r"\b(?:second|third|fourth|next|2nd|3rd|one of(?: the)?|among(?: the)?|not(?: the)?|at"
    r"|almost(?: the)?"
    r"|nearly(?: the)?|isn['’]t the|no|zweit|dritt|nicht der|segund[oa]|no es el|deuxième"
    r"|pas le|the two"
    r"|the three|two|three|if|would|your|you)\s*$",
    re.IGNORECASE,
)
_AMONG = re.compile(
    r"[^.;:!?\n]{0,40}?\b(?:of|among|out of|von|unter|de|entre|parmi)\s(?:the|these|those|all"
    r"|den|diesen"
    r"|allen|los|las|estos|les|ces|tous les)?\s?(?P<number>[^\W\d_]+|\d{1,3})\b",
    re.IGNORECASE,
)
# Words that narrow what is compared in a way that no field need say.
_NARROWED = re.compile(
    r"\b(?:with|without|under|over|above|below|that|which|who|within|between|less than"
    r"|more than|for"
    r"|after|before|until|still|mit|ohne|unter|über|con|sin|bajo|que|avec|sans|sous|qui|pour"
    r"|para|für"
    r"|if|ever|possible|when|where|per|ago|average|mean|at your)\b",
    re.IGNORECASE,
)
_IT = re.compile(
    r"\b(?:it|its|it['’]s|there|es|er|sie|esta?|este|il|elle|c['’]est)\b", re.IGNORECASE
)
_VARIANT = re.compile(
    r"\b(?:variant|model|version|configuration|colou?r|size|style|replacement)s?\b", re.IGNORECASE
)
# Up to where it is said which one it is: `variant of the same lamp` of `… is item 17`.
# `price in this period was 43.2`: up to the value that is given as the least or the most.
_GIVEN_AS = re.compile(
    r"(?P<what>[^.,;:!?\n()\d]{0,50}?)"
    rf"(?:\b(?:is|was|are|were|ist|war|est|était|es|era|fue)\s|:\s?)[*_\"“'`{SIGNS}]{{0,3}}(?=\d)",
    re.IGNORECASE,
)
_AT_SOME_TIME = re.compile(
    r"\b(?:to(?:day|night|morrow)|yesterday|morning|afternoon|evening|night|week|month|year|now"
    r"|so far|heute|morgen|woche|monat|hoy|mañana|semana|mes|aujourd|demain|semaine"
    r"|mois)\b",
    re.IGNORECASE,
)
_PHRASE = re.compile(r"(?:(?!\b(?:is|are|was|were|would|would be)\b)[^.,;:(!?\n—–]){0,60}")
# No noun follows that would say what is ranked.
_ALONE = re.compile(r"[*_]*\s*(?:[,.;:)!]|$|\n|(?:of|in|among|so far|von|de|del|du|des)\b)")
_BLANK = re.compile(r"\n\s*\n")
# `the highest order value` is not the most orders.
_MEASURE_OF = re.compile(
    r"[^\W\d_]+\s(value|rate|ratio|share|size|volume|growth|change|average)s?\b", re.IGNORECASE
)


class WrongRank(NamedTuple):
    """From `start` to `end` a superlative, said of the record of `field`; `other` is more of it."""

    start: int
    end: int
    field: Field
    other: Field


class Ranks:
    """The lists of the results whose records could be ranked."""

    def __init__(
        self,
        index: RecordIndex,
        mentions: Sequence[Mention],
        values: Sequence[Value],
        asked: str = "",
    ) -> None:
        """`asked`: what the user said."""
        self._asked = frozenset(place_words(asked).words)
        tree = index.tree
        self._index = index
        self._groups: dict[int, list[ResultRecord]] = {}
        for group in tree.groups:
            if len(group) <= MOST_RANKED:
                self._groups.update((record.number, group) for record in group)
        self._mentions = mentions
        self._values = values
        self._starts = [one.start for one in mentions]
        self._compared: dict[int, list[list[ResultRecord]]] = {}

    def wrong_in(
        self, outline: Outline, binder: Binder, turn_at: Callable[[int], int | None]
    ) -> Iterator[WrongRank]:
        if not self._groups:
            return
        places = outline.places_of(set(filter(_begins_rank, outline.words)))
        for count, found in enumerate(find_at(_RANK, outline.text, places)):
            if count >= MOST_CLAIMS:
                return
            turn = turn_at(found.start())
            wrong = self._judge(outline, binder, found, turn)
            wrong = wrong or self._judge_value(outline, found, turn)
            if wrong is not None:
                yield wrong

    def _judge(
        self, outline: Outline, binder: Binder, found: re.Match[str], turn: int | None
    ) -> WrongRank | None:
        text = outline.text
        sentence = outline.sentence_at(found.start())
        if not _is_claimed(outline, found, sentence):
            return None
        superlative = _SUPERLATIVES[found.lastgroup or ""]
        place = Value(found.start(), found.end(), "quote", found[0])
        noun = _NOUN.match(text, found.end())
        wrong: WrongRank | None = None
        phrase = _PHRASE.match(text, found.end())
        for record in self._records_of(binder, place, sentence, turn):
            if phrase is not None and _are_unlike(phrase[0], record, self._groups[record.number]):
                return None
            columns = self._paths(outline, found, record)
            if not columns:
                return None
            sets = self._sets_of(outline, record)
            if noun is not None:
                sets = _narrowed(sets, self._groups[record.number], record, noun[1])
            among = _AMONG.match(text, found.end(), sentence[1])
            if number := among and number_in_words(among["number"]):
                sets = [one for one in sets if len(one) == number] or sets
            judged = _deserved(found.span(), record, columns, sets, superlative.is_most)
            if judged is None:
                return None  # one thing may stand in several results, and may deserve it in one
            wrong = wrong or judged
        return wrong

    def _judge_value(
        self, outline: Outline, found: re.Match[str], turn: int | None
    ) -> WrongRank | None:
        """`The lowest price was 43.2`, where it is that of a record with a lower one: wrong only
        if it is the first in no column in which it stands."""
        sentence = outline.sentence_at(found.start())
        given = _GIVEN_AS.match(outline.text, found.end(), sentence[1])
        is_most = _SUPERLATIVES[found.lastgroup or ""].is_most
        if given is None or is_most is None or not _is_claimed(outline, found, sentence):
            return None
        if _NARROWED.search(given["what"]) or _AT_SOME_TIME.search(given["what"]):
            return None
        at = bisect_left(self._values, given.end(), key=lambda one: one.end - len(one.text))
        value = self._values[at] if at < len(self._values) else None
        if value is None or value.start > given.end() or value.kind != "number":
            return None
        wrong: WrongRank | None = None
        for field in self._index.stating(value, turn)[:MOST_OF_ONE]:
            group = self._groups.get(field.record.number)
            path = ("", field.key)
            if group is None or any(
                (own := _value(one, path)) is not None and own[0] < 0 for one in group
            ):
                return None
            sets = [group, *_of_one_month(group, field.record)]
            sets += self._spoken_of(outline, field.record, group)
            words = (*given["what"].split(), found[0])
            sets += _narrowed(sets, group, field.record, " ".join(words))
            judged = _deserved(found.span(), field.record, [path], sets, is_most)
            if judged is None:
                return None
            wrong = wrong or judged
        return wrong

    def _spoken_of(
        self, outline: Outline, record: ResultRecord, group: list[ResultRecord]
    ) -> list[list[ResultRecord]]:
        """Those that are as the record is in a way that the answer or the user speaks of."""
        sets = []
        for like in _plain_fields(record):
            said = str(like[1].value).casefold()
            words = said.split() if isinstance(like[1].value, str) else key_words(like[1].key)
            told = outline.words.__contains__
            if all(told(word) or word in self._asked for word in words):
                sets.append([one for one in group if _holds(one, like)])
        return [one for one in sets if len(one) > 1]

    def _paths(
        self, outline: Outline, found: re.Match[str], record: ResultRecord
    ) -> Sequence[_Path]:
        """The columns in which the record may be the first."""
        text, superlative = outline.text, _SUPERLATIVES[found.lastgroup or ""]
        noun = _NOUN.match(text, found.end())
        words = superlative.words
        if not words and noun is not None:
            words = field_words.words_said(text, *noun.span(1))
        columns = list(_columns(record, words)) or list(_columns(record, superlative.also))
        if not columns and "date" in words:  # `last_modified`, `Clock-in`: all that is a time
            columns = list(_times(record))
        measure = _MEASURE_OF.match(noun[1]) if noun is not None and not superlative.words else None
        if measure is not None:
            columns = [one for one in columns if measure[1].casefold() in key_words(one[1])]
        if "duration" in words and any(map(_is_distance, record.fields)):
            return []  # the fastest ran the furthest in his time
        if not columns and not superlative.words and _ALONE.match(text, found.end()):
            columns = list(self._stated(outline, found, record))
        return columns

    def _sets_of(self, outline: Outline, record: ResultRecord) -> list[list[ResultRecord]]:
        if record.number not in self._compared:
            found = self._sets(outline, record, self._groups[record.number])
            self._compared[record.number] = found
        return self._compared[record.number]

    def _stated(
        self, outline: Outline, found: re.Match[str], record: ResultRecord
    ) -> Iterator[_Path]:
        """`−9.6%, the weakest of the group`: what is ranked is what was stated right before it, or
        is right after it."""
        sentence = outline.sentence_at(found.start())
        near = (max(sentence[0], found.start() - 30), min(sentence[1], found.end() + 40))
        first = bisect_left(self._values, near[0], key=lambda one: one.start)
        last = bisect_left(self._values, near[1], key=lambda one: one.start)
        readings = {abs(one) for value in self._values[first:last] for one in value.readings}
        for above, field in _near_fields(record):
            if field.number is not None and abs(field.number) in readings:
                yield above, field.key

    def _records_of(
        self, binder: Binder, place: Value, sentence: Span, turn: int | None
    ) -> Sequence[ResultRecord]:
        """What the superlative is said of, wherever it stands in the results so far."""
        subject = binder.subject_of(place, sentence)
        if subject is None or subject.inherited:
            return ()
        start = max(sentence[0], place.start - WIDE)
        if subject.distant and not _IT.search(binder.text, start, place.start):
            return ()
        ranked = [one for one in subject.records if one.number in self._groups]
        records = [one for one in ranked if one.counts_for(turn)]
        shared = set[str].intersection(*(set(one.names) for one in records)) if records else ()
        is_one = len(records) == 1 or bool(shared)
        return records if is_one and len(records) <= MOST_OF_ONE else ()

    def _sets(
        self, outline: Outline, record: ResultRecord, group: list[ResultRecord]
    ) -> list[list[ResultRecord]]:
        """All that the record may have been compared with: its list, those of them that the answer
        or a part of it names, and those that are in some way as it is."""
        numbers = {one.number for one in group}
        named = self._named(0, len(outline.text), numbers)
        sets = [group, [one for one in group if one.number in named]]
        for start, end in _blocks(outline.text):
            inside = self._named(start, end, numbers)
            if record.number in inside:
                sets.append([one for one in group if one.number in inside])
        for field in _plain_fields(record):
            alike = [one for one in group if _holds(one, field)]
            sets += [alike, [one for one in alike if one.number in named]]
        kept = {tuple(one.number for one in members): members for members in sets}
        return [members for members in kept.values() if len(members) > 1]

    def _named(self, start: int, end: int, numbers: set[int]) -> set[int]:
        first = bisect_left(self._starts, start)
        last = bisect_left(self._starts, end)
        return {
            record.number
            for mention in self._mentions[first:last]
            for record in mention.records
            if record.number in numbers
        }


def _is_distance(field: Field) -> bool:
    return field.number is not None and "distance" in key_words(field.key)


def _is_claimed(outline: Outline, found: re.Match[str], sentence: Span) -> bool:
    """Not proposed, not the second, and not of those that are narrowed down by other words."""
    text = outline.text
    clause = outline.clause_at(found.start())
    noun = _NOUN.match(text, found.end())
    end = noun.end() if noun is not None else found.end()
    return (
        not outline.is_proposed(sentence)
        and not _NOT_FIRST.search(text, max(sentence[0], found.start() - 24), found.start())
        and not _NARROWED.search(text, found.end(), min(clause[1], end + 30))
    )


def _deserved(
    span: Span,
    record: ResultRecord,
    columns: Sequence[_Path],
    sets: Sequence[Sequence[ResultRecord]],
    is_most: bool | None,
) -> WrongRank | None:
    """Wrong only where it holds in no column, among none that it may be compared with."""
    first: WrongRank | None = None
    for path in columns:
        own = _value(record, path)
        for members in sets:
            best = _best(members, path)
            if best is None or own is None:
                return None
            is_first = (own[0] == best[0][0], own[0] == best[1][0])
            if is_first[is_most] if is_most is not None else any(is_first):
                return None
            other = best[0] if is_most is False else best[1]
            first = first or WrongRank(*span, own[1], other[1])
    return first


def _narrowed(
    sets: Sequence[list[ResultRecord]],
    group: Sequence[ResultRecord],
    record: ResultRecord,
    noun: str,
) -> list[list[ResultRecord]]:
    """`the cheapest green variant`: those that are green, too."""
    words = noun.casefold().split()
    for like in _plain_fields(record):
        value = like[1].value
        if isinstance(value, str) and value.isalpha() and value.casefold() in words:
            alike = [one for one in group if _holds(one, like)]
            others = _plain_fields(record)
            sets = [alike, *([one for one in alike if _holds(one, each)] for each in others)]
            return [one for one in sets if len(one) > 1]
    return list(sets)


def _of_one_month(group: Sequence[ResultRecord], record: ResultRecord) -> list[list[ResultRecord]]:
    """Those of the same month as the record: who asked for October need not say so again."""
    sets = []
    for path in _times(record):
        own = _month_of(record, path)
        alike = [one for one in group if own is not None and _month_of(one, path) == own]
        sets.append(alike)
    return [one for one in sets if len(one) > 1]


def _month_of(record: ResultRecord, path: _Path) -> int | None:
    """Its year and month."""
    found = _value(record, path)
    return None if found is None else found[0] // SCALE // 10**6


def _are_unlike(phrase: str, record: ResultRecord, group: Sequence[ResultRecord]) -> bool:
    """`the cheapest lamp`, `the cheapest variant of the lamp`: not of all that was ordered."""
    names = {_kind_name(one) for one in group}
    if len(names) < 2:
        return False
    own = _kind_name(record)
    variant = _VARIANT.search(phrase)
    # A size that the record itself has is what is ranked.
    is_key = variant and any(variant[0].casefold() == one.key for one in record.fields)
    return (variant is not None and not is_key) or (own != "" and own in phrase.casefold())


def _kind_name(record: ResultRecord) -> str:
    """What it is called, by words."""
    named = (name for name in record.names if not any(map(str.isdecimal, name)))
    return next(named, "").casefold()


def _blocks(text: str) -> Iterator[Span]:
    start = 0
    for found in _BLANK.finditer(text):
        yield start, found.start()
        start = found.end()
    yield start, len(text)


def _near_fields(record: ResultRecord) -> Iterator[tuple[str, Field]]:
    for field in record.fields[:MOST_FIELDS]:
        yield "", field
    for child in record.children[:MOST_FIELDS]:
        if not child.kind.endswith("/*"):
            for field in child.fields[:MOST_FIELDS]:
                yield child.key, field


def _columns(record: ResultRecord, words: frozenset[str]) -> Iterator[_Path]:
    """Where the record has numbers or days under keys with one of these words."""
    for above, field in _near_fields(record):
        named = field_words.words_of_key(field.key) | frozenset(key_words(field.key))
        if not words.isdisjoint(named) and _rank_of(field) is not None:
            yield above, field.key


def _times(record: ResultRecord) -> Iterator[_Path]:
    for above, field in _near_fields(record):
        if isinstance(field.value, str) and _is_time(field.value[:_LONGEST_TEXT]):
            yield above, field.key


@lru_cache(maxsize=1 << 12)
def _is_time(text: str) -> bool:
    values = read_leaf(text)
    return len(values) == 1 and bool(values[0].moments)


def _value(record: ResultRecord, path: _Path) -> tuple[int, Field] | None:
    for above, field in _near_fields(record):
        if (above, field.key) == path:
            rank = _rank_of(field)
            return None if rank is None else (rank, field)
    return None


def _rank_of(field: Field) -> int | None:
    if field.number is not None:
        return field.number
    if not isinstance(field.value, str) or len(field.value) > _LONGEST_TEXT:
        return None
    return _rank_of_text(field.value)


@lru_cache(maxsize=1 << 12)
def _rank_of_text(text: str) -> int | None:
    values = read_leaf(text)
    if len(values) != 1:
        return None
    moments = values[0].moments
    if moments and (moments[0].year is not None or not moments[0].has_day):
        one = moments[0]
        parts = (one.year or 0, one.month or 0, one.day or 0, one.hour or 0, one.minute or 0)
        rank = 0
        for part in parts:
            rank = rank * 100 + part
        return rank * SCALE
    return values[0].readings[0] if values[0].readings else None


def _best(
    members: Sequence[ResultRecord], path: _Path
) -> tuple[tuple[int, Field], tuple[int, Field]] | None:
    """The least and the most."""
    values = [found for one in members if (found := _value(one, path)) is not None]
    if len(values) < 2:
        return None
    return min(values, key=lambda found: found[0]), max(values, key=lambda found: found[0])


def _plain_fields(record: ResultRecord) -> Iterator[tuple[str, Field]]:
    """What it may have in common with others: yes or no, and short texts."""
    for above, field in _near_fields(record):
        if isinstance(field.value, bool) or (
            isinstance(field.value, str) and len(field.value) <= _LONGEST_TEXT
        ):
            yield above, field


def _holds(record: ResultRecord, like: tuple[str, Field]) -> bool:
    above, wanted = like
    near = (
        [record]
        if not above
        else [one for one in record.children[:MOST_FIELDS] if one.key == above]
    )
    return any(
        field.key == wanted.key and field.value == wanted.value
        for one in near
        for field in one.fields[:MOST_FIELDS]
    )
