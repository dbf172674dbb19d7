"""Ranks and tallies: which record is the cheapest, the latest, the only one; how many of a list are
so. Each is counted in the results themselves."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding import field_words
from callmark.grounding.binding import Binder, Mention
from callmark.grounding.claims import is_designated
from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import read_leaf
from callmark.grounding.record_tree import (
    Field,
    RecordTree,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.siblings import words_of_name
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import NUMBER_WORDS, SIGNS, Frozen, fold, once
from callmark.grounding.values import Value

MOST_RANKED = 200  # of a list that is ranked
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
    |most recent|neueste\\w*|jüngste\\w*
    |más reciente|(?:le|la|les) plus récente?s?
- date time created updated published day year built start started since hired joined: oldest
    |earliest|älteste\\w*|früheste\\w*
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


def _find_at(pattern: re.Pattern[str], text: str, places: Iterable[int]) -> Iterator[re.Match[str]]:
    """As `finditer` does, where a match can begin at these places only: to try a long pattern at
    each character costs as much as all other rules."""
    end = 0
    for place in places:
        found = pattern.match(text, place) if place >= end else None
        if found is not None:
            end = found.end()
            yield found


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
    r"|if|ever|possible|available|when|where|per|ago|average|mean|at your)\b",
    re.IGNORECASE,
)
_IT = re.compile(
    r"\b(?:it|its|it['’]s|there|es|er|sie|esta?|este|il|elle|c['’]est)\b", re.IGNORECASE
)
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
        self, tree: RecordTree, mentions: Sequence[Mention], values: Sequence[Value]
    ) -> None:
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
        for count, found in enumerate(_find_at(_RANK, outline.text, places)):
            if count >= MOST_CLAIMS:
                return
            wrong = self._judge(outline, binder, found, turn_at(found.start()))
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
        record = self._record_of(binder, place, sentence)
        if record is None or not record.counts_for(turn):
            return None
        noun = _NOUN.match(text, found.end())
        words = superlative.words
        if not words and noun is not None:
            words = field_words.words_said(text, *noun.span(1))
        columns = list(_columns(record, words)) or list(_columns(record, superlative.also))
        measure = _MEASURE_OF.match(noun[1]) if noun is not None and not superlative.words else None
        if measure is not None:
            columns = [one for one in columns if measure[1].casefold() in key_words(one[1])]
        if "duration" in words and any(map(_is_distance, record.fields)):
            return None  # the fastest ran the furthest in his time
        if not columns and not superlative.words and _ALONE.match(text, found.end()):
            columns = list(self._stated(outline, found, record))
        among = _AMONG.match(text, found.end(), sentence[1])
        number = among and _number_of(among["number"])
        sets = self._compared.get(record.number) if columns else []
        if sets is None:
            sets = self._sets(outline, record, self._groups[record.number])
            self._compared[record.number] = sets
        if number:
            sets = [one for one in sets if len(one) == number] or sets
        return _deserved(found.span(), record, columns, sets, superlative.is_most)

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

    def _record_of(self, binder: Binder, place: Value, sentence: Span) -> ResultRecord | None:
        subject = binder.subject_of(place, sentence)
        if subject is None or subject.inherited:
            return None
        if subject.distant and not _IT.search(binder.text, sentence[0], place.start):
            return None
        records = [one for one in subject.records if one.number in self._groups]
        return records[0] if len(records) == 1 else None

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
    if moments and moments[0].year is not None:
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
        tallies = list(_find_at(_TALLY, outline.text, places))
        places = [at for at in places if not is_designated(outline.text, at)]
        kinds = [
            *_find_at(_LABEL, outline.text, lines),
            *_find_at(_KIND_OF, outline.text, places),
        ]
        counted = list(_find_at(_COUNTED_AS, outline.text, places))
        if not tallies and not any(self._may_be_kind(one["label"]) for one in (*kinds, *counted)):
            return
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

        if not self._kinds:
            return
        for found in kinds:
            wrong = self._kind(found)
            line = outline.line_at(found.start("number"))
            if outline.text.count("|", line.start, line.end) > 3:
                continue  # what a column of a table counts, its head says
            if wrong is not None and not outline.is_proposed(outline.sentence_at(wrong.start)):
                yield wrong
        yield from self._wrong_among(outline, counted)

    def _may_be_kind(self, label: str) -> bool:
        """Does some short text of the results begin with its first word?"""
        return not self._first_words.isdisjoint(words_of_name(label)[:1])

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
            number = _number_of(found["number"])
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
        return _plain(field.value) or None
    return None


@lru_cache(maxsize=1 << 12)
def _plain(text: str) -> str:
    return " ".join(words_of_name(text))
