"""None, some, both, all: several records said of at once, tables whose heads name them, and lists,
counts and charges of which an answer says that there are none, or that there are some."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice, pairwise
from typing import NamedTuple

from callmark.grounding.binding import Binder
from callmark.grounding.counting import Enumerations
from callmark.grounding.negation import ClauseWords, PolarToken, tokens_of
from callmark.grounding.numbers import SCALE
from callmark.grounding.polar_keys import Polar, PolarKey, root
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord, key_words
from callmark.grounding.spans import Outline, OutlineLine, Span
from callmark.grounding.text import NUMBER_WORDS, SIGNS, Frozen, once
from callmark.grounding.values import Value

MOST_ROWS = 40
MOST_DIGITS = 15  # of what counts anything
_ALL = frozenset("all both each every neither none".split())
_SOME_ONLY = re.compile(
    r"\b(?:except|but|other|others|rest|remaining|apart|besides|almost|nearly|not\s+(?:all|both)"
    r"|most|either|different|if|any)\b",
    re.IGNORECASE,
)
# `all rooms with a projector` are not all rooms.
_NARROWING = frozenset(
    "with without that which who whose having under over from for in at near above below".split()
)
_BETWEEN = re.compile(r"[\s,*_(\"”“]*(?:(?:and|&|as\swell\sas|nor)\s+)?(?:the\s+)?[*_\"“]*")
_ONLY = re.compile(r"\bonly\s+(?:the\s+)?[*_\"“]*$", re.IGNORECASE)


@lru_cache(maxsize=1)  # asked of every key that one clause names
def _is_of_some(text: str, clause: Span) -> bool:
    return _SOME_ONLY.search(text, *clause) is not None


def find_exception(
    key: PolarKey, words: ClauseWords, clause: Span, binder: Binder, *, asserted: bool
) -> Polar | None:
    """The field that is not as the clause says of all of them; else one that is, if it speaks of
    several. None: it speaks of nothing that could be told."""
    if len(key.rows) > MOST_ROWS or _is_of_some(words.text, clause):
        return None
    rows = _coordinated(key, words, clause, binder) or _quantified(key, words, binder)
    wrong = [row for row in rows if row.state is not asserted and row.state is not None]
    if len(rows) < 2 or any(row.state is None for row in rows):
        return None
    return wrong[0] if wrong else rows[0]


def _coordinated(
    key: PolarKey, words: ClauseWords, clause: Span, binder: Binder
) -> Sequence[Polar]:
    """`Aspen and Birch have a projector`."""
    end = words.tokens[words.first].start
    mentions = binder.mentions_in((clause[0], end))
    if len(mentions) < 2 or any(len(one.records) > 1 for one in mentions):
        return ()
    for left, right in pairwise(mentions):
        if not _BETWEEN.fullmatch(words.text, left.end, right.start):
            return ()
    return key.rows_of([record for one in mentions for record in one.records])


def _quantified(key: PolarKey, words: ClauseWords, binder: Binder) -> Sequence[Polar]:
    before = [token.word for token in words.tokens[: words.first]]
    places = [at for at, word in enumerate(before) if word in _ALL]
    if len(places) != 1:
        return ()
    at = places[0]
    verb = next((one for one in range(at, words.first) if words.is_verb(one)), words.first)
    if not _NARROWING.isdisjoint(before[at:verb]):
        return ()
    named = [row for row in key.rows if _is_mentioned(row.field.record, binder)]
    group = named if len(named) > 1 else key.rows
    following = before[at + 1 : at + 5]
    size = 2 if before[at] in ("both", "neither") else None
    for word in following:
        size = NUMBER_WORDS.get(word, size) if word not in ("a", "one") else size
    if size is not None:
        return group if len(group) == size else key.rows if len(key.rows) == size else ()
    kinds = {root(word) for row in group for word in key_words(row.field.record.key)}
    is_kind = not kinds.isdisjoint(map(root, following))
    return group if len(named) > 1 or is_kind else ()


def _is_mentioned(record: ResultRecord, binder: Binder) -> bool:
    return any(one.number in binder.mentioned for one in (record, *record.ancestors()))


def find_other(key: PolarKey, words: ClauseWords, binder: Binder) -> Polar | None:
    """`Only Birch has a projector`, though another one that the answer speaks of has one too."""
    end = words.tokens[words.first].start
    mentions = binder.mentions_in((words.tokens[0].start, end))
    if not mentions or not _ONLY.search(words.text[: mentions[0].start][-40:]):
        return None
    own = {record.number for one in mentions for record in one.records}
    for row in key.rows[:MOST_ROWS]:
        kin = {one.number for one in (row.field.record, *row.field.record.ancestors())}
        if row.state is True and not kin & own and _is_mentioned(row.field.record, binder):
            return row
    return None


MOST_CELLS = 30  # of a row
MOST_ROWS = 400
LONGEST_HEAD = 5  # words of a cell that says what is asked
_RULE = re.compile(r"[\s|:+-]+")
_DRESS = " \t*_`~"
_CELL_WORD = re.compile(r"[^\W_]+")
_CELL_ANSWERS = {
    answer: state
    for answers, state in (
        ("yes|y|✓|✔|✔️|✅|☑|true|included|available|allowed|required|ja|sí|si|oui|on|enabled", True),
        ("no|n|✗|✘|✕|❌|✖|×|false|not included|not available|unavailable|not allowed|not required"
         "|none|nein|non|off|disabled|excluded", False),
    )
    for answer in answers.split("|")
}  # fmt: skip


class TableCell(NamedTuple):
    """A cell that answers yes or no, under one head and behind another."""

    start: int
    end: int
    heads: tuple[Span, Span]
    answer: bool


class AnswerTables:
    """The tables of one answer."""

    def __init__(self, outline: Outline) -> None:
        self._outline = outline
        self._text = outline.text

    def is_head(self, span: Span) -> bool:
        """Is it the head of a column or of a row, which says nothing by itself?"""
        line = self._outline.line_at(span[0])
        if not self._text.startswith("|", line.start):
            return False
        head = self._outline.table_head(line)
        is_first = self._text.find("|", line.start + 1, span[0]) < 0
        is_short = len(_CELL_WORD.findall(self._text, *span)) <= LONGEST_HEAD
        return (head is not None and head.start == line.start) or (is_first and is_short)

    @once
    def cells(self) -> list[TableCell]:
        return list(self._find_cells())

    def _find_cells(self) -> Iterator[TableCell]:
        if "|" not in self._text:
            return
        heads: dict[int, list[Span]] = {}
        rows = 0
        for line in self._outline.lines:
            head = self._outline.table_head(line)
            if head is None or rows > MOST_ROWS:
                continue
            rows += 1
            cells = _cells_of(self._text, line.start, line.end)
            if head.start == line.start:
                heads[head.start] = cells
            elif not _RULE.fullmatch(self._text, line.start, line.end):
                yield from self._answers_in(cells, heads.get(head.start, []))

    def _answers_in(self, cells: Sequence[Span], heads: Sequence[Span]) -> Iterator[TableCell]:
        for at, (start, end) in enumerate(cells[1 : len(heads)], start=1):
            answer = _CELL_ANSWERS.get(self._text[start:end].strip(_DRESS).casefold())
            if answer is not None:
                yield TableCell(start, end, (heads[at], cells[0]), answer)


def _cells_of(text: str, start: int, end: int) -> list[Span]:
    bars = [at.start() for at in re.finditer(r"\|", text[start:end])][: MOST_CELLS + 1]
    return [
        (start + left + 1, start + right)
        for left, right in zip(bars, [*bars[1:], end - start], strict=True)
        if text[start + left + 1 : start + right].strip() or right < end - start
    ]


MOST_FIELDS = 40  # fields of one name; with more of them nobody knows which is meant
LONGEST_NOUN = 3  # words
# What is charged, held back or lost: a number of it that is not 0 says that there is some.
_CHARGES = frozenset(
    map(
        root,
        """
        fee fees charge charges surcharge surcharges deposit tax taxes penalty penalties fine fines
        commission discount discounts interest delay delays tip debt debts overtime deductible
        copay excess
        """.split(),
    )
)
# Words of keys that say how it is counted, not what.
_COUNTING = frozenset(
    """
    count number num no total amount qty quantity n of in per the eur usd gbp chf jpy cad aud min
    mins minutes hours pct percent list ids
    """.split()
)
# Lists that hold whatever was asked for, not things of a kind.
_NO_KIND = frozenset(
    map(
        root,
        """
        results result data items rows entries values records list hits content lines columns
        details options fields points readings series
        """.split(),
    )
)
# What may stand between `no` and its noun without narrowing it down …
_NO_NARROWING = frozenset("known recorded".split())
# … what says afterwards which are meant: `no interaction was found with levothyroxine` …
NEAR_NOUN = 6  # words
_NARROWED_AFTER = frozenset("with between against".split())
# … and what may follow it.
_AFTER = frozenset(
    """
    is are was were and or but yet currently now here applies apply charged listed recorded
    required needed due has have so
    """.split()
)
_AFTER_TWO = frozenset(
    (
        ("on", "file"), ("on", "record"), ("at", "all"), ("at", "present"), ("at", "the"),
        ("so", "far"), ("right", "now"),
    )
)  # fmt: skip
_SOME = frozenset("a an some several many few various two three four five six multiple".split())
# Without one of these, nothing is said to be there or not.
AMOUNT_WORDS = _SOME | {"no", "zero", "without", "any"}
_EXIST = frozenset("there there's applies apply charged has have exists exist due required".split())
# One of them stands in every clause that says so.
_TELLING = frozenset(("no", "zero", "without", "any", "there", *_EXIST))
_ENDS = re.compile(r"\s?[,;.:!)\]\n|—–]|\s*$")
_NOT_SAID = re.compile(
    r"\b(?:if|whether|would|could|might|may|unless|should|until|before|after|when|once|except|than"
    r"|other|others|another|else|additional|extra|hidden|further|more|new|will|usually|normally"
    r"|only|instead|apart|information|details?)\b|\?",
    re.IGNORECASE,
)


_WAIVED = re.compile(r"\bwaive[ds]?\b", re.IGNORECASE)
_PRICE = re.compile(rf"[{SIGNS}]\s?\d|\d\s?[{SIGNS}]")


class Amount(Frozen, frozen=True):
    """What a result holds of something; `shown` is a leaf that says so."""

    stems: tuple[str, ...]
    shown: Field
    is_some: bool


class AmountClause(NamedTuple):
    """A clause that says that there is something, or that there is none."""

    start: int
    end: int
    amount: Amount
    asserted: bool


class Amounts:
    """Lists, counts and charges of the results, by the words of their keys."""

    def __init__(self, tree: RecordTree) -> None:
        self._by_noun: dict[str, list[Amount]] = {}
        for field in tree.fields:
            if field.number is not None:
                stems = _stems_of(field.key)
                if stems and _is_amount(field, stems[-1]):
                    self._add(Amount(stems, field, field.number > 0))
        for series in tree.series:
            stems = _stems_of(series.key)
            if stems and stems[-1] not in _NO_KIND and series.key.endswith("s"):
                record = series.record
                shown = Field(record, series.path, series.key, series.items[:3], False, None)
                self._add(Amount(stems, shown, bool(series.items)))

    def _add(self, amount: Amount) -> None:
        found = self._by_noun.setdefault(amount.stems[-1], [])
        if len(found) <= MOST_FIELDS:
            found.append(amount)

    @once
    def _heads(self) -> frozenset[str]:
        return frozenset(noun[:2] for noun in self._by_noun)

    def _rows_of(self, word: str) -> list[Amount] | None:
        """Stems begin as their words do, but for `dying`: most words need not be stemmed."""
        is_other = word[:2] not in self._heads and word[:1] not in self._heads
        if is_other and word[-4:] != "ying" and word.isascii():
            return None
        return self._by_noun.get(root(word))

    def said_in(self, outline: Outline, binder: Binder) -> Iterator[AmountClause]:
        heads = self._heads
        if not heads:
            return
        likely = [
            one
            for one in outline.words
            if one[:2] in heads or one[:1] in heads or one[-4:] == "ying" or not one.isascii()
        ]
        words = {word for word in likely if root(word) in self._by_noun}
        places = outline.places_of(words) if words else []
        # Parts of a word with `_` are words here, and stand by themselves nowhere else.
        telling = _TELLING if "_" in outline.text else _TELLING & outline.words
        told = outline.places_of(telling) if places else []
        for sentence in outline.sentences if told else ():
            if not (_is_in(places, sentence) and _is_in(told, sentence)):
                continue
            for clause in outline.clauses(sentence):
                if _is_in(places, clause) and _is_in(told, clause):
                    yield from self._said_in_clause(outline, sentence, clause, binder)

    def _said_in_clause(
        self, outline: Outline, sentence: Span, clause: Span, binder: Binder
    ) -> Iterator[AmountClause]:
        text = outline.text
        if _NOT_SAID.search(text, *clause) or outline.says(_WAIVED, sentence):
            return
        tokens = tokens_of(text, clause)
        denies = any(one.word in ("not", "no") or one.word.endswith("n't") for one in tokens)
        is_priced = outline.says(_PRICE, sentence)
        for at, token in enumerate(tokens):
            rows = self._rows_of(token.word)
            if rows is None:
                continue
            for amount in self._meant(rows, token, tokens, at, sentence, binder):
                first = at - len(amount.stems) + 1
                if is_priced and first and tokens[first - 1].word == "without":
                    continue  # `without tax it comes to $91.40`: what is counted, not what there is
                asserted = _asserted(text, tokens, first, at)
                if asserted is not None and not (asserted and denies):
                    yield AmountClause(tokens[first].start, token.end, amount, asserted)

    def _meant(
        self,
        rows: Sequence[Amount],
        token: PolarToken,
        tokens: Sequence[PolarToken],
        at: int,
        sentence: Span,
        binder: Binder,
    ) -> Iterator[Amount]:
        """The one amount whose words stand here; with several, that of the record that is named."""
        before = [root(one.word) for one in tokens[max(0, at - LONGEST_NOUN) : at + 1]]
        fitting = [one for one in rows if before[-len(one.stems) :] == list(one.stems)]
        longest = max((len(one.stems) for one in fitting), default=0)
        fitting = [one for one in fitting if len(one.stems) == longest]
        if not fitting or len(rows) > MOST_FIELDS:
            return
        if len({one.stems for one in rows}) > 1 and longest == 1:
            return  # `fee`, where there are a `cleaning_fee` and a `service_fee` too
        if len(fitting) > 1:
            subject = binder.subject_of(Value(token.start, token.end, "quote", ""), sentence)
            if subject is None or subject.inherited:
                return
            fitting = [
                one
                for one in fitting
                if any(record.holds(one.shown.record) for record in subject.records)
            ]
        if len(fitting) == 1:
            yield fitting[0]


def _is_in(places: Sequence[int], span: Span) -> bool:
    return bisect_left(places, span[0]) < bisect_left(places, span[1])


@lru_cache(maxsize=1 << 12)
def _stems_of(key: str) -> tuple[str, ...]:
    return tuple(root(word) for word in key_words(key) if word not in _COUNTING)


def _is_amount(field: Field, noun: str) -> bool:
    """A charge, or a whole number of things."""
    if noun in _CHARGES:
        return True
    return type(field.value) is int and _is_of_things(field.key)


@lru_cache(maxsize=1 << 12)
def _is_of_things(key: str) -> bool:
    words = [word for word in key_words(key) if word not in _COUNTING]
    return len(words) > 1 and words[-1].endswith("s")


def _asserted(text: str, tokens: Sequence[PolarToken], first: int, last: int) -> bool | None:
    """`no fee`, `without any allergies`, `a small fee applies`, `there are several blockers`."""
    following = [token.word for token in tokens[last + 1 : last + 3]]
    ends = last + 1 == len(tokens) or _ENDS.match(text, tokens[last].end) is not None
    is_whole = ends or following[0] in _AFTER or tuple(following) in _AFTER_TWO
    at = first - 1
    while at >= 0 and tokens[at].word in _NO_NARROWING:
        at -= 1
    before = [token.word for token in tokens[max(0, at - 2) : at + 1]]
    if before[-1:] in (["no"], ["zero"], ["without"]) or (
        before[-1:] == ["any"]
        and any(word.endswith("n't") or word in ("without", "not") for word in before)
    ):
        later = {token.word for token in tokens[last + 1 : last + NEAR_NOUN]}
        is_narrowed = not ends and not _NARROWED_AFTER.isdisjoint(later)
        return False if is_whole and not is_narrowed else None
    words = [token.word for token in tokens[max(0, first - 4) : first]]
    if any(
        word in ("no", "not", "without", "zero", "any") or word.endswith("n't") for word in words
    ):
        return None
    near = {token.word for token in tokens[max(0, first - 4) : last + 4]}
    if not _SOME.isdisjoint(words) and not _EXIST.isdisjoint(near):
        return True
    return None


# --- lists that an answer introduces with a number

MOST_LIST_ITEMS = 60
LONGEST_SENTENCE = 600  # characters: longer ones introduce no list
NAMED_WITHIN = 90  # characters of an item that say what it is about
_LIST_ITEM = re.compile(r"\s*(?:[-*+•‣–]|\(?\d{1,3}[.)])\s")
_RULED = re.compile(r"[\s|:-]+")
_OPENS = re.compile(r":\s|\s[–—-]\s|\(")
_ANY_WORD = re.compile(r"\w+")
_HAS_NUMBER = re.compile(r"\d|,")
_HAS_COMMA = re.compile(r",(?!\d)")
_MEASURED = re.compile(
    r"\s(?:[^\W\d_]+\s)?(?:points?|goals?|places?|percent|minutes?|hours?|days?|weeks?|months?|years?"
    r"|times|steps?|cuts?|changes?|increases?)\b",
    re.IGNORECASE,
)
_FOR = re.compile(r"\b(?:for|für|para|pour)\s(?:the\s|your\s)?$", re.IGNORECASE)
# `two of your five orders are late:`
_PART = re.compile(
    r"(?<!\w)[^\W\d_]+\s(?:of|von|de)\s(?:the|these|those|them|your|our|my|his|her|its|their|all"
    r"|den|diesen|ihren|deinen|los|las|sus|tus|les|ces|vos|tes)\b",
    re.IGNORECASE,
)
_ENUMERATED = re.compile(r",\s*(?:and|und|y|et)\s|,\s|\s(?:and|und|y|et)\s")


def _come_to(records: Sequence[ResultRecord], number: int) -> bool:
    """Do their numbers come to it, under one key, or one key less another?"""
    rows = [{one.key: one.number or 0 for one in record.fields[:MOST_FIELDS]} for record in records]
    totals = [sum(row.get(key, 0) for row in rows) for key in rows[0]]
    return number in totals or any(one - other == number for one in totals for other in totals)


def _number_of(word: str) -> int | None:
    if word.isdecimal():
        return int(word) if len(word) <= MOST_DIGITS else None
    return NUMBER_WORDS.get(word)


def _first_count(text: str, line: OutlineLine) -> int:
    """How many it stands for, if it says so at its beginning."""
    words = islice(_ANY_WORD.finditer(text, *line.span), FIRST_WORDS)
    return next((one for word in words if (one := _number_of(word[0].casefold()) or 0) > 0), 0)


FIRST_WORDS = 6
MOST_PLAIN = 12  # items of a list that somebody counts
# `booked payments` and `rooms on floor 4 are still dirty`, up to the colon
_ITEMS_OF = re.compile(
    r"\s(?:[^\W\d_]+[ -]){0,2}[^\W\d_]+(?:s|en|er|n|x)\b[^.;:!?\n]{0,60}:?[*_]{0,2}",
    re.IGNORECASE,
)
_SOME_OF = re.compile(
    r"\b(?:includ\w+|such as|e\.g|for example|mainly|mostly|among|top|latest|first|last|best"
    r"|days?|weeks?|hours?|minutes?|months?|years?|nights?|people|guests?|passengers?|points?|steps?"
    r"|ways?|reasons?|things?|darunter|unter anderem|zum beispiel|tage?|stunden?|wochen?|davon"
    r"|entre ellos|por ejemplo|días|horas|dont|par exemple|jours|heures"
    r"|of (?:the|your|these|them))\b",
    re.IGNORECASE,
)
_TOTALS = re.compile(
    r"[|\s*_•-]*(?:(?:sub|grand )?total|sum|summe|gesamt|insgesamt|suma|somme)\b", re.IGNORECASE
)


class MiscountedPart(NamedTuple):
    start: int
    end: int
    because: str


class IntroducedLists:
    """The lists of one answer whose items each name another record of one list of the results."""

    def __init__(self, outline: Outline, binder: Binder) -> None:
        self._outline, self._binder = outline, binder
        self._beside = Enumerations(outline, binder)
        self._starts = {line.start: at for at, line in enumerate(outline.lines)}
        self._named: dict[Span, list[ResultRecord]] = {}
        self._counts: dict[tuple[int, str], int] = {}

    def find_miscount(self, value: Value, sentence: Span) -> str:
        """How many the list has, if neither this nor another number of its sentence says so, and
        it is not how many there are in all."""
        text = self._outline.text
        if sentence[1] - sentence[0] > LONGEST_SENTENCE or _FOR.search(
            text, max(sentence[0], value.start - 12), value.start
        ):
            return ""
        if _MEASURED.match(text, value.end):
            return ""  # `lead by two points:` counts nothing that is listed
        if because := self._beside.find_miscount(value, value.readings[0] // SCALE, sentence):
            return because
        within = self._listed_within(value.end, sentence, _HAS_NUMBER)
        because = self._miscount(value.readings[0], sentence, within)
        return because or ("" if within else self._miscount_items(value, sentence))

    def _miscount_items(self, value: Value, sentence: Span) -> str:
        """`in five booked payments:`, over four items, whatever they name."""
        text = self._outline.text
        line = self._outline.line_at(value.start)
        if (
            _ITEMS_OF.fullmatch(text, value.end, sentence[1]) is None
            or _SOME_OF.search(text, *sentence)
            or sentence[1] > line.end
            or not text.startswith(":", sentence[1] - 1)
            or self._listed_below(sentence)
        ):
            return ""
        items = self._items_after(line)
        listed = sum(_TOTALS.match(text, one.start, one.end) is None for one in items)
        stated = {_number_of(word.casefold()) for word in _ANY_WORD.findall(text, *sentence)}
        number = value.readings[0] // SCALE
        if not 2 <= listed <= MOST_PLAIN or not stated.isdisjoint({listed, len(items)}):
            return ""
        # `Six say why:`, over `- price – three of them`; or each has a column of a table.
        columns = text.count("|", *items[0].span) - 1
        if number in (columns, columns - 1):
            return ""
        if number <= sum(_first_count(text, one) for one in items) <= MOST_PLAIN:
            return ""
        return f"the answer lists {listed}"

    def wrong_parts(self) -> Iterator[MiscountedPart]:
        """Numbers in words that say how many of several the list has."""
        outline = self._outline
        for start in outline.places_of(NUMBER_WORDS.keys() & outline.words):
            number = _PART.match(outline.text, start)
            sentence = outline.sentence_at(start)
            if number is None or sentence[1] - sentence[0] > LONGEST_SENTENCE:
                continue
            end = start + len(number[0].split()[0])
            counted = NUMBER_WORDS.get(outline.text[start:end].casefold())
            if counted is None or counted < 2 or outline.is_proposed(sentence):
                continue
            because = self._miscount(
                counted * SCALE, sentence, self._listed_within(number.end(), sentence, _HAS_COMMA)
            )
            if because:
                yield MiscountedPart(start, end, because)

    def _miscount(self, number: int, sentence: Span, within: list[ResultRecord]) -> str:
        text = self._outline.text
        records = self._listed_below(sentence) or within
        stated = {word.casefold() for word in _ANY_WORD.findall(text, *sentence)}
        if len(records) < 2 or any(_number_of(word) == len(records) for word in stated):
            return ""
        if self._count_like(records[0]) == number // SCALE:
            return ""
        if any(_number_of(word) == len(records) - number // SCALE for word in stated):
            return ""  # `one critical and three high findings:`
        if _come_to(records, number):
            return ""  # `5 sessions left:`, 1 of one package and 4 of another
        return f"the answer lists {len(records)}"

    def _count_like(self, record: ResultRecord) -> int:
        """How many there are in its list."""
        parent = record.parent
        if parent is None:
            return 0
        asked = (parent.number, record.kind)
        if asked not in self._counts:
            self._counts[asked] = sum(one.kind == record.kind for one in parent.children)
        return self._counts[asked]

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
        first = self._starts[line.start] + 1
        following = self._outline.lines[first : first + MOST_LIST_ITEMS]
        items: list[OutlineLine] = []
        for one in following:
            if text.startswith("|", one.start):
                if not _RULED.fullmatch(text, one.start, one.end):
                    items.append(one)
                continue
            if items and text.startswith("|", items[0].start):
                break
            if not _LIST_ITEM.match(text, one.start, one.end):
                if not items or one.level <= items[0].level:
                    break
                continue
            if items and one.level < items[0].level:
                break
            if not items or one.level == items[0].level:
                items.append(one)
        is_table = bool(items) and text.startswith("|", items[0].start)
        return items[1:] if is_table else items

    def _listed_within(
        self, after: int, sentence: Span, ending: re.Pattern[str]
    ) -> list[ResultRecord]:
        """`two of them are down: Vexxil, Aelith and SableFox`"""
        text = self._outline.text
        opening = _OPENS.search(text, after, min(sentence[1], after + NAMED_WITHIN))
        if opening is None or ending.search(text, after, opening.start()):
            return []
        end = sentence[1]
        if opening[0] == "(":
            end = text.find(")", opening.end(), sentence[1])
        parts: list[Span] = []
        start = opening.end()
        for apart in _ENUMERATED.finditer(text, start, max(start, end)):
            parts.append((start, apart.start()))
            start = apart.end()
        return self._one_each([*parts, (start, max(start, end))]) if parts else []

    def _one_each(self, spans: Sequence[Span]) -> list[ResultRecord]:
        """The record that each of them names: none unless all do, and all are of one list."""
        named: list[frozenset[ResultRecord]] = []
        kinds: set[tuple[int | None, str]] = set()
        for start, end in spans:
            mentions = self._binder.mentions_in((start, min(end, start + NAMED_WITHIN) + 1))
            if not mentions:
                return []
            own = frozenset(mentions[0].records)
            for other in mentions[1:]:
                if own.isdisjoint(other.records) and not _kinds_of(own).isdisjoint(
                    _kinds_of(other.records)
                ):
                    return []  # `- **Accepted:** Ana and Ben`: an item of several
            kinds = kinds & _lists_of(own) if named else _lists_of(own)
            named.append(own)
        # One thing may stand in several results: there is a list in which each of them is another.
        for kind in sorted(kinds, key=repr):
            found = [next(one for one in own if _list_of(one) == kind) for own in named]
            if len({one.number for one in found}) == len(spans):
                return found
        return []


def _list_of(record: ResultRecord) -> tuple[int | None, str]:
    return None if record.parent is None else record.parent.number, record.kind


def _lists_of(records: Iterable[ResultRecord]) -> set[tuple[int | None, str]]:
    return set(map(_list_of, records))


def _kinds_of(records: Iterable[ResultRecord]) -> set[str]:
    return {one.kind for one in records}
