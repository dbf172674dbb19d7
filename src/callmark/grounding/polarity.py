"""Yes or no: clauses that speak of a field which is true, false or unknown, and say otherwise."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.outline import Outline
from callmark.grounding.record_tree import (
    Field,
    Mention,
    Record,
    RecordTree,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import Span
from callmark.records.jsontext import Json

WIDEST = 5  # words between the first and the last word of a key
MOST = 8  # records that one clause names
LONG_TEXT = 40  # a longer text may assert what a field denies
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_STOP = frozenset(
    """
    a an and are as at be by for from has have in is it its of on or that the to with
    """.split()
)
# Words of keys that say that something is so, not what it is.
_GENERIC = frozenset(
    """
    is has have can are was does do should will allow allows allowed enabled enable
    available supports supported include includes included offers offer accept accepts
    accepted flag status
    """.split()
)
# A key that is one of these says nothing without the key above it (`lot` of `parking`) …
_COMMON = frozenset(
    """
    street lot open good new full live free late early number order item name status type
    line data plan service price time day date room bed table seat seats point points side
    top main active garage music parking food drink drinks water air car bus train phone
    card bank account bill payment address home house office store shop area city state
    country place group groups party kids dogs pets hour hours return returns exchange
    refund direct stop stops paid due closed valid current primary default public private
    local
    """.split()
)
# … or, without one, nothing at all.
_VAGUE = frozenset(
    """
    open good new full live free late early number order item name status type line data
    plan service price time day date top main active due closed valid current primary
    default public private local
    """.split()
)
_CONTAINERS = frozenset(
    """
    attributes properties details data result results info fields features options settings
    """.split()
)
_NO = frozenset(
    """
    no not never without lack lacks lacking neither nor none cannot unavailable nicht kein
    keine keinen ohne sin nunca ningún ninguna sans aucun aucune jamais
    """.split()
)
_TURN = frozenset("but however although though whereas yet except besides only".split())
_VERBS = frozenset(
    """
    is are was were has have had offers offer provides provide does do did accepts accept
    features feature there serves serve includes include allows allow takes take boasts
    """.split()
)
_NOT_SAID = re.compile(
    r"\b(?:if|whether|would|could|might|may|please|unless|should)\b|\?", re.IGNORECASE
)
_NO_WORD_OF = re.compile(
    r"\b(?:no|not|any)\b[^.]{0,40}\b(?:information|info|details?|data|mention\w*|specif\w+|indicat\w+"
    r"|clear|known|provided|listed|stated)\b|n['’]t\b[^.]{0,40}\b(?:information|details?|mention|specify|say)\b"
    r"|\b(?:unknown|unclear|unspecified)\b",
    re.IGNORECASE,
)


class Polar(NamedTuple):
    """A field that is true, false or (None) unknown. `stems` are the words that mean it, `joined`
    the same as one word, `needed` one of which has to stand in the sentence too."""

    field: Field
    state: bool | None
    stems: tuple[str, ...]
    joined: str
    needed: tuple[str, ...]


class PolarKind:
    """One such field of all records of one kind. With several of them an answer has to name the
    record that it speaks of."""

    def __init__(self, first: Polar) -> None:
        self.first = first
        self._rows: list[Polar] = []
        self._numbers: list[int] = []

    def add(self, row: Polar) -> None:
        self._rows.append(row)
        self._numbers.append(row.field.record.number)

    @property
    def is_single(self) -> bool:
        return len(self._rows) == 1

    def of(self, records: Iterable[Record]) -> list[Polar]:
        """Those of the records, of what lies inside them, else of what they lie in."""
        found: dict[int, Polar] = {}
        for record in records:
            at = bisect_left(self._numbers, record.number)
            while at < len(self._rows) and self._numbers[at] <= record.last and len(found) < MOST:
                found[at] = self._rows[at]
                at += 1
            above = record.parent if not found else None
            while above is not None:
                at = bisect_left(self._numbers, above.number)
                if at < len(self._rows) and self._numbers[at] == above.number:
                    found[at] = self._rows[at]
                    break
                above = above.parent
        return list(found.values())


class PolarClause(NamedTuple):
    """A clause that speaks of such a field."""

    start: int
    end: int
    polar: Polar
    asserted: bool

    @property
    def agrees(self) -> bool:
        return self.polar.state is self.asserted


class PolarToken(NamedTuple):
    start: int
    end: int
    word: str


class PolarFields:
    """The yes-or-no fields of the results, by the words that they are spoken of with."""

    def __init__(self, tree: RecordTree) -> None:
        self._by_stem: dict[str, list[PolarKind]] = {}
        self._kinds: dict[tuple[str, str, tuple[str, ...]], PolarKind] = {}
        for record in tree.records:
            self._add(record)
        texts = [one.value for one in tree.fields if isinstance(one.value, str)]
        long = [text.casefold() for text in texts if len(text) > LONG_TEXT]
        self._told = {stem(found[0]) for text in long for found in _TOKEN.finditer(text)}
        self._texts = "\n".join(long)

    def _add(self, record: Record) -> None:
        states = [(field, state_of(field.value)) for field in record.fields]
        polar = [(field, state) for field, state in states if state != "other"]
        if not polar:
            return
        shared = Counter(word for field in record.fields for word in set(key_words(field.key)))
        for field, state in polar:
            row = _row(field, None if state == "unknown" else state == "yes", shared)
            if row is not None:
                key = (record.kind, field.key, row.stems)
                if key not in self._kinds:
                    kind = self._kinds[key] = PolarKind(row)
                    for one in {row.stems[0]: 0, row.joined: 0}:
                        self._by_stem.setdefault(one, []).append(kind)
                self._kinds[key].add(row)

    def __bool__(self) -> bool:
        return bool(self._by_stem)

    def said_in(self, outline: Outline, mentions: Sequence[Mention]) -> Iterator[PolarClause]:
        """`mentions` of records in the text, from left to right."""
        if not self:
            return
        named = _Named(outline, mentions)
        for sentence in outline.sentences:
            for clause in outline.clauses(sentence):
                yield from self._said_in_clause(outline.text, sentence, clause, named)

    def _said_in_clause(
        self, text: str, sentence: Span, clause: Span, named: _Named
    ) -> Iterator[PolarClause]:
        tokens = [
            PolarToken(found.start(), found.end(), found[0].casefold().replace("’", "'"))
            for found in _TOKEN.finditer(text, *clause)
        ]
        stems = [stem(token.word) for token in tokens]
        found = {id(kind): (kind, at) for at, kind in self._spoken_of(tokens, stems)}
        if not found or _NOT_SAID.search(text, *clause) or _NO_WORD_OF.search(text, *clause):
            return
        around = {stem(one[0]) for one in _TOKEN.finditer(text, *sentence)}
        for kind, (first, last) in found.values():
            if kind.first.needed and not around.intersection(kind.first.needed):
                continue
            rows = [kind.first] if kind.is_single else named.rows_of(kind, sentence, clause)
            asserted = not _is_denied(text, tokens, first, last)
            for row in rows:
                said = PolarClause(tokens[first].start, tokens[last].end, row, asserted)
                if said.agrees or not (asserted and self._is_told(row)):
                    yield said

    def _spoken_of(
        self, tokens: Sequence[PolarToken], stems: Sequence[str]
    ) -> Iterator[tuple[tuple[int, int], PolarKind]]:
        places: dict[str, list[int]] = {}
        for at, one in enumerate(stems):
            places.setdefault(one, []).append(at)
        for at, one in enumerate(stems):
            for kind in self._by_stem.get(one, ()):
                is_joined = one == kind.first.joined
                where = (at, at) if is_joined else _together(kind.first, at, places)
                if where is not None:
                    yield where, kind
            if at + 1 < len(tokens):
                pair = stem(tokens[at].word + tokens[at + 1].word)
                for kind in self._by_stem.get(pair, ()):
                    if pair == kind.first.joined:
                        yield (at, at + 1), kind

    def _is_told(self, row: Polar) -> bool:
        """Some prose of the results speaks of it too: then nobody knows which of them is right."""
        if not self._told.issuperset(row.stems):
            return False
        words = key_words(row.field.key)
        return (
            len(row.stems) == 1 or " ".join(words[-2:]) in self._texts or row.joined in self._texts
        )


class _Named:
    """Which records a clause speaks of: those that it names, else its sentence, else the lines that
    it stands under."""

    def __init__(self, outline: Outline, mentions: Sequence[Mention]) -> None:
        self._outline = outline
        self._mentions = mentions
        self._starts = [mention.start for mention in mentions]

    def rows_of(self, kind: PolarKind, sentence: Span, clause: Span) -> list[Polar]:
        line = self._outline.line_at(clause[0])
        nearest = ((line.start, clause[0]), *reversed(line.heads))
        for start, end in (clause, sentence, *nearest):
            rows = kind.of(self._records(start, end))
            if rows:
                return rows
        return []

    def _records(self, start: int, end: int) -> Iterator[Record]:
        at = bisect_left(self._starts, start)
        while at < len(self._mentions) and self._starts[at] < end:
            yield from self._mentions[at].records[:MOST]
            at += 1


def state_of(value: Json) -> str:
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if value is None:
        return "unknown"
    if isinstance(value, str) and len(value) < 8:
        folded = value.strip(" '\"").casefold()
        if folded in ("yes", "true", "free", "paid"):
            return "yes"
        if folded in ("no", "false", "none"):
            return "no"
    return "other"


def _row(field: Field, state: bool | None, shared: Counter[str]) -> Polar | None:
    words = [word for word in key_words(field.key) if word not in _STOP]
    own = [word for word in words if shared[word] < 2 or len(words) == 1] or words
    core = [word for word in own if word not in _GENERIC] or own
    if not core or (state is None and core[-1] in ("id", "ids")):
        return None
    needed: tuple[str, ...] = ()
    if len(core) == 1 and core[0] in _COMMON:
        above = field.record.key
        if above.casefold() not in _CONTAINERS:
            needed = tuple(one for one in key_stems(above) if one not in _GENERIC)
        if not needed and core[0] in _VAGUE:
            return None
    return Polar(field, state, tuple(map(stem, core)), stem("".join(core)), needed)


def _together(row: Polar, at: int, places: dict[str, list[int]]) -> tuple[int, int] | None:
    """Where all words of the key stand near each other, from its first word at `at` on."""
    nearest = []
    for one in row.stems:
        where = places.get(one)
        if where is None:
            return None
        nearest.append(min(where, key=lambda place: abs(place - at)))
    first, last = min(nearest), max(nearest)
    return (first, last) if last - first <= WIDEST else None


def _is_denied(text: str, tokens: Sequence[PolarToken], first: int, last: int) -> bool:
    after = _denied_after(text, tokens, last)
    return _denied_before(text, tokens, first) if after is None else after


def _denied_before(text: str, tokens: Sequence[PolarToken], first: int) -> bool:
    """A negation holds until another predicate begins."""
    denied = False
    for at, token in enumerate(tokens[:first]):
        if at and "," in text[tokens[at - 1].end : token.start] and _has_verb(text, tokens, at):
            denied = False
        if token.word == "and" and tokens[at + 1].word in _VERBS:
            denied = False
        if token.word in _NO or token.word.endswith("n't"):
            denied = True
        elif token.word in _TURN:
            denied = False
    return denied


def _has_verb(text: str, tokens: Sequence[PolarToken], at: int) -> bool:
    """Has the part up to the next comma a verb of its own?"""
    for place in range(at, len(tokens)):
        if place > at and "," in text[tokens[place - 1].end : tokens[place].start]:
            return False
        if tokens[place].word in _VERBS:
            return True
    return False


def _denied_after(text: str, tokens: Sequence[PolarToken], last: int) -> bool | None:
    """What is said of it afterwards, up to its verb. None: nothing."""
    for at in range(last + 1, len(tokens)):
        word, before = tokens[at].word, tokens[at - 1]
        if at == last + 1 and ":" in text[before.end : tokens[at].start]:
            return word in ("no", "not", "none", "false", "unavailable")
        if word == "unavailable":
            return True
        if word in _VERBS or word.endswith("n't"):
            if before.word in ("and", "but", "or", "which", "that", "they", "it"):
                return None
            following = [token.word for token in tokens[at + 1 : at + 3]]
            is_no = "not" in following or "unavailable" in following
            return True if word.endswith("n't") or is_no else None
    return None
