"""Where an answer says something: integration spans (what follows a marker, or the sentences that
claim something), its outline of lines, sentences and clauses, and the sentences that it takes back.

Offsets here are characters; `extract_spans` gives UTF-8 bytes."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator
from itertools import accumulate

from callmark.errors import UsageError
from callmark.grounding.cues import CUE_SIGNS, Cue, cued_by
from callmark.grounding.dates import may_go_on_with
from callmark.grounding.denials import DENYING, ONE_TURN, TurnsTaken, find_denied
from callmark.grounding.text import (
    ABBREVIATIONS,
    BEFORE_DIGITS,
    BEFORE_LOWER,
    ByteOffsets,
    Frozen,
    PlacedWords,
    blank_signs,
    break_literal_newlines,
    lower,
    once,
    place_tokens,
    place_words,
)
from callmark.grounding.values import Value, find_values
from callmark.records.samples import Extractor

Span = tuple[int, int]

_MARKER = re.compile(r"(?<![^\W_])Integration(?:\*\*|__|[*_`])?[:：](?:\*\*|__|[*_`])*")
# A mark inside quotation marks or brackets (`.”`, `.)`) ends what they hold, not the sentence that
# they stand in. Emphasis is no text: what follows it counts. East Asian marks need no white space.
_END = re.compile(
    r"[.!?…。！？](?:(?<=[.!?…])(?<![.!?…][.!?…])[.!?…]*+[*_]*+(?=\s|$)"
    r"|(?<=[。！？])[。！？]*+(?![\"'”’»›)\]}`」』）】〉》])[*_]*+)"
)
_TRIM_END = " \t\r\n\u00a0\u202f\u3000.!?…。！？*"
_TRIM_START = " \t\r\u00a0\u202f\u3000"
_LAST_WORD = re.compile(r"[^\W\d_]+(?:\.[^\W\d_]+)*$")
_ITEM = re.compile(r"[ \t>]*(?:[-*+•‣–]|\(?\d{1,3}[.)]|#{1,6})[ \t]+")
_ORDINAL = re.compile(r"(?<![\w.,])\d{1,2}$")
_INITIAL = re.compile(r"(?:^|[\s(])[^\W\d_]$")


class Insides:
    """The inner parts of spans. Those that overlap are one, so that a look-up reads one of them."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start < self._ends[-1]:
                self._ends[-1] = max(end, self._ends[-1])
            else:
                self._starts.append(start)
                self._ends.append(end)

    def cut_by(self, place: Span) -> bool:
        """Whether a place begins or ends inside one of them."""
        for position in place:
            at = bisect_left(self._starts, position) - 1
            if at >= 0 and position < self._ends[at]:
                return True
        return False


def marker_spans(text: str) -> list[Span]:
    """After `Integration:`, to the first sentence end, the line end, or the next marker."""
    spans: list[Span] = []
    if "Integration" not in text:
        return spans
    text = break_literal_newlines(text)
    markers = list(_MARKER.finditer(text))
    for index, marker in enumerate(markers):
        limit = markers[index + 1].start() if index + 1 < len(markers) else len(text)
        line_end = text.find("\n", marker.end(), limit)
        stop = _sentence_end(text, marker.end(), limit if line_end < 0 else line_end)
        emphasised = text[marker.start() - 1 : marker.start()] == "_"
        span = _trim(text, marker.end(), stop, _TRIM_END + "_" * emphasised)
        if span is not None:
            spans.append(span)
    return spans


def sentences(text: str) -> list[Span]:
    """Every sentence, list item and table cell of the text."""
    plain = break_literal_newlines(text)
    found: list[Span] = []
    start = 0
    for line in plain.split("\n"):
        if line:
            found += _line_sentences(plain, line, start)
        start += len(line) + 1
    return found


def extract_spans(text: str, extractor: Extractor = "marker") -> list[list[int]]:
    """Cut the spans that are scored out of an answer.

    Args:
        text: the answer.
        extractor: `marker` (what follows `Integration:`) or `claims`, which knows no results
            here and so gives the sentences that hold a checkable value.

    Returns:
        `[[start, end], …]` in UTF-8 bytes.

    Raises:
        UsageError: an extractor that there is not.

    >>> import callmark
    >>> callmark.extract_spans("Hello. There are 12 boats.", "claims")
    [[7, 25]]
    """
    if extractor == "marker":
        spans = marker_spans(text)
    elif extractor == "claims":
        starts = [value.start for value in find_values(text)]
        spans = [
            (start, end)
            for start, end in sentences(text)
            if bisect_left(starts, start) < bisect_left(starts, end)
        ]
    else:
        raise UsageError(f"extractor must be 'marker' or 'claims', not {extractor!r}")
    to_bytes = ByteOffsets(text)
    return [[to_bytes(start), to_bytes(end)] for start, end in spans]


def _line_sentences(text: str, line: str, start: int) -> list[Span]:
    end = start + len(line)
    found: list[Span | None] = []
    if line.count("|") > 1 and line.lstrip().startswith("|"):
        position = start
        for cell in line.split("|"):
            found.append(_trim(text, position, position + len(cell)))
            position += len(cell) + 1
        return [one for one in found if one is not None]
    item = None if line[0].isalpha() else _ITEM.match(line)
    if item and _is_ordinal_before_month(item[0].strip().rstrip("."), line[item.end() :]):
        item = None
    position = start + (item.end() if item else 0)
    for match in _END.finditer(text, position, end):
        if not _is_inner_stop(text, position, match, end):
            found.append(_trim(text, position, match.end()))
            position = match.end()
    if position < end:
        found.append(_trim(text, position, end))
    return [one for one in found if one is not None]


def _sentence_end(text: str, start: int, stop: int) -> int:
    for match in _END.finditer(text, start, stop):
        if not _is_inner_stop(text, start, match, stop):
            return match.end()
    return stop


def _is_inner_stop(text: str, start: int, mark: re.Match[str], stop: int) -> bool:
    """A full stop that ends no sentence: after an abbreviation or an initial, or an ordinal."""
    dot = mark.start()
    if text[dot] != ".":
        return False
    head = text[max(start, dot - 20) : dot]
    last = head[head.rfind(" ") + 1 :]
    found = None if last.isalpha() else _LAST_WORD.search(last)
    word = last if last.isalpha() else "" if found is None else found[0]
    after = text[dot + 1 : min(stop, dot + 40)].lstrip()
    if word:
        folded = word.casefold()
        return (
            folded in ABBREVIATIONS
            or (folded in BEFORE_DIGITS and after[:1].isdecimal())
            or (folded in BEFORE_LOWER and after[:1].islower())
            or (word.isupper() and _INITIAL.search(head) is not None and bool(after))
        )
    return head[-1:].isdecimal() and _is_ordinal_before_month(head, after)


def _is_ordinal_before_month(head: str, after: str) -> bool:
    digits = _ORDINAL.search(head[-3:])
    if digits is None or not after[:1].isalpha() or not may_go_on_with(after):
        return False
    values = find_values(f"{digits[0]}. {after[:20]}")
    return bool(values) and values[0].kind == "moment" and values[0].start == 0


def _trim(text: str, start: int, end: int, edge: str = _TRIM_END) -> Span | None:
    piece = text[start:end]
    kept = piece.rstrip(edge)
    stripped = kept.lstrip(_TRIM_START)
    if not stripped:
        return None
    begin = start + len(kept) - len(stripped)
    if stripped.startswith("**") and "**" not in stripped[2:]:
        begin += 2
    return begin, start + len(kept)


WIDE = 300  # characters around a value that are looked at, whatever its sentence is as long as
NEAREST_HEADS = 4
FEW_WORDS = 8  # that are looked for one by one
NEAREST_SIBLINGS = 8
_ANY_WORD = re.compile(r"\w+")
_PLACED_WORD = re.compile(r"[^\W_]+")
_LIST_MARK = re.compile(r"(?:[-*•‣–+]|\(?\d{1,3}[.)])\s")
_HEADING = re.compile(r"#{1,6}\s|\*\*[^*]+\*\*:?$|__[^_]+__:?$")
# Where a new predicate begins, whose negation is its own.
_TURN = r"(?=[bhatwe])(?:but|however|although|though|whereas|while|except)\b"
# It is looked for where a run of blanks begins, or each of them would read the rest of the run.
_BREAK = re.compile(
    rf"[;(),\s](?:(?<=[;()])|(?<=\s)(?:[-–—]\s|(?:(?<!\s\s)|(?<=[-–—]\s\s))\s*+{_TURN})|(?<=,)\s+(?:{_TURN}"
    r"|(?=(?:and\s+)?(?:there|it|they|which|who|the|this|these|you|we|i|he|she)\b"
    r"(?!\s+(?:and|or)\b))))",
    re.IGNORECASE,
)
_MAY_BE_FORMULA = re.compile(
    r"\\[(\[a-z]|\$\$|<\w+>\s*\n\s*(?:def|import)|^\s*(?:def|class) ", re.M
)
_OF_FORMULAS = ("\\", "$$", "<", "def ", "class ")  # one in each of them
# LaTeX, lines of LaTeX, and code that is set between tags or begins with a definition.
_FORMULA = re.compile(
    r"\\\[.{0,4000}?\\\]|\\\(.{0,400}?\\\)|\$\$.{0,2000}?\$\$|<(?P<tag>\w{1,40})>\s*\n\s*(?:def|import|from)\b"
    r".{0,8000}?</(?P=tag)>|^[ \t]*(?:def|class) \w+[^\n]*:[ \t]*\n(?:[ \t]+[^\n]*\n|[ \t]*\n)*"
    r"|^[^\n]*\\(?:frac|times|cdot|sqrt|approx|text|boxed)\b[^\n]*$",
    re.DOTALL | re.MULTILINE,
)
_FRAMED = re.compile(r"\\boxed\{\\?[-$]?$")
_BAR = re.compile(r"\|")
_QUESTION = re.compile(r"[?？؟]")
_PROPOSED = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|may i|can you|could you|please|let me know"
    r"|i(?:['’]ll| will| can| could| would| need|['’]d)|we(?:['’]ll| will| can| could)|you can"
    r"|let me|if you|if we|to proceed|in order to|would|could|might)\b"
    r"|\b(?:möchten sie|soll ich|bitte|ich (?:werde|kann|würde)|wenn sie|falls sie)\b"
    r"|\b(?:quiere|quisiera|por favor|puedo|voy a|si desea|podría)\b"
    r"|\b(?:voulez-vous|souhaitez-vous|veuillez|je (?:vais|peux)|si vous|pourriez-vous)\b",
    re.IGNORECASE,
)


# The first words of all that it finds, but for those with letters beyond ASCII.
_PROPOSING = frozenset(
    """
    would do shall should may can could please let i we you if to in might soll bitte ich wenn falls
    quiere quisiera por puedo voy si voulez souhaitez veuillez je pourriez
    """.split()
)


# What may be open before a value: not what `would be kept`, or until when `you can cancel`.
_OFFERED = re.compile(
    r"\b(?:would you like|do you want|shall i|should i|may i|can you|could you|please|let me know"
    r"|i(?:['’]ll| will| can| could| would| need|['’]d)|we(?:['’]ll| will| can| could)|let me"
    r"|if you(?:['’]d)? (?:like|want|prefer|wish)|to proceed|in order to)\b"
    r"|\b(?:möchten sie|soll ich|bitte|ich (?:werde|kann|könnte|würde)|wenn sie (?:möchten|wollen)"
    r"|quiere|quisiera|por favor|puedo|podría|voy a|si (?:desea|quiere)|voulez-vous|souhaitez-vous"
    r"|veuillez|je (?:vais|peux|pourrais)|si vous (?:voulez|souhaitez)|pourriez-vous)\b",
    re.IGNORECASE,
)


_CHANGE = Cue(
    r"\b(?:from|instead|chang\w+|swap\w*|updat\w+|mov(?:e|ed|ing)|exchang\w+|replac\w+|new"
    r"|current\w*|originally|previous\w*|versus|vs|compared|differen\w+)\b|->|→|➝",
    "from instead chang* swap* updat* mov* exchang* replac* new current* originally previous*"
    " versus vs compared differen*",
    "-> → ➝",
)
_NEGATING = frozenset("not nicht no pas".split())
TOLD_CHANGE = Cue(
    r"\b(?:instead|chang\w+|swap\w*|updat\w+|mov(?:e|ed|ing)|exchang\w+|replac\w+|originally"
    r"|previous\w*|versus|vs|compared|differen\w+|than|down from|up from)\b|->|→|➝",
    "instead chang* swap* updat* mov* exchang* replac* originally previous* versus vs compared"
    " differen* than down up",
    "-> → ➝",
)
_CHANGE_ABOVE = Cue(
    r"\b(?:chang\w+|swap\w*|exchang\w+|replac\w+|modif\w+|proposed|target|requested)\b",
    "chang* swap* exchang* replac* modif* proposed target requested",
)


class OutlineLine(Frozen, frozen=True):
    """`heads`: the lines that it stands under, outermost first; `siblings`: those before it in the
    same block, the nearest last."""

    start: int
    end: int
    heads: tuple[Span, ...]
    siblings: tuple[Span, ...] = ()
    level: float = 0

    @property
    def span(self) -> Span:
        return self.start, self.end


class Outline:
    """One answer, split once. Offsets are characters."""

    def __init__(self, text: str, talk: TurnsTaken = ONE_TURN) -> None:
        self.text = text = break_literal_newlines(text)
        self._talk = talk
        self.sentences = sentences(text)
        self._sentence_starts = [start for start, _ in self.sentences]
        self.lines = list(_lines(text))
        self._line_starts = [line.start for line in self.lines]
        self._clauses: dict[Span, list[Span]] = {}
        self._proposed: dict[Span, bool] = {}
        self._changes: dict[Span, bool] = {}
        self._said: dict[tuple[re.Pattern[str], Span], bool] = {}

    @once
    def _lower(self) -> str:
        return lower(self.text)

    @once
    def words(self) -> frozenset[str]:
        """In lower case. A rule whose words are not among them need not look any further."""
        placed = place_tokens(self.text)
        return frozenset(_ANY_WORD.findall(self._lower) if placed is None else placed.words)

    @once
    def placed(self) -> PlacedWords:
        """The words in lower case."""
        if blank_signs(self.text) is not None:
            return place_words(self.text)
        lowered = self._lower
        words: list[str] = _PLACED_WORD.findall(lowered)
        return PlacedWords(
            words, words, lambda: [one.start() for one in _PLACED_WORD.finditer(lowered)]
        )

    def places_of(self, words: Collection[str]) -> list[int]:
        """Where any of these words begins, in order; parts of longer words may be among them."""
        if len(words) > FEW_WORDS:
            starts = self.placed.starts
            return [starts[at] for at in self.placed.find(words)]
        places: list[int] = []
        for word in words:
            at = self._lower.find(word)
            while at >= 0:
                places.append(at)
                at = self._lower.find(word, at + len(word))
        return sorted(places)

    @once
    def _cued(self) -> tuple[list[int], list[int]]:
        """Where words and signs stand that cues begin with, and which cues."""
        by_word, starts = self.placed.by_word, self.placed.starts
        found: list[tuple[int, int]] = []
        for word, bits in cued_by(by_word):
            found += [(starts[at], bits) for at in by_word[word]]
        for sign, bits in CUE_SIGNS.items():
            if sign in self._lower:
                found += [(at, bits) for at in self.places_of((sign,))]
        found.sort()
        return [at for at, _ in found], [bits for _, bits in found]

    def finds(self, cue: Cue, start: int, end: int) -> bool:
        """Does this part of the answer hold it?"""
        places, bits = self._cued
        for at in range(bisect_left(places, start), bisect_left(places, end)):
            if bits[at] & cue.bit:
                return cue.pattern.search(self.text, places[at], end) is not None
        return False

    def says(self, pattern: re.Pattern[str], span: Span) -> bool:
        """The same of any pattern, remembered: all values of a long sentence may ask."""
        found = self._said.get((pattern, span))
        if found is None:
            found = self._said[pattern, span] = pattern.search(self.text, *span) is not None
        return found

    def sentence_at(self, position: int) -> Span:
        at = bisect_right(self._sentence_starts, position) - 1
        return self.sentences[at] if at >= 0 else (0, len(self.text))

    @once
    def _denied(self) -> list[Span]:
        if DENYING.isdisjoint(self.words) and "~~" not in self.text:
            return []
        return find_denied(self, self._talk)

    @once
    def _denied_ends(self) -> list[int]:
        return list(accumulate((end for _, end in self._denied), max))

    @property
    def may_deny(self) -> bool:
        """Is there a word for no in it?"""
        return not _NEGATING.isdisjoint(self.words) or "n't" in self.text or "n’t" in self.text

    @property
    def takes_back(self) -> bool:
        return bool(self._denied)

    def is_denied(self, position: int) -> bool:
        """Does the answer say of what stands here that it is not so?"""
        at = bisect_right(self._denied, (position, len(self.text))) - 1
        return at >= 0 and position < self._denied_ends[at]

    def tells_a_change(self, value: Value, sentence: Span) -> bool:
        """`from $5 to $7`, `instead of`: what is said near this value may be of either side."""
        near = self.near(value, sentence)
        found = self._changes.get(near)
        if found is None:
            found = self._changes[near] = self.finds(_CHANGE, *near)
        return found or any(
            self.finds(_CHANGE_ABOVE, start, min(end, start + WIDE))
            for start, end in self.line_at(value.start).heads[-1:]
        )

    def line_at(self, position: int) -> OutlineLine:
        at = bisect_right(self._line_starts, position) - 1
        return self.lines[at] if at >= 0 else OutlineLine(0, len(self.text), ())

    def is_formula(self, value: Value) -> bool:
        """Does it stand in mathematics or code, which state nothing unless it is framed?"""
        at = bisect_right(self.formulas, (value.start, len(self.text))) - 1
        is_inside = at >= 0 and value.start < self.formulas[at][1]
        return is_inside and not _FRAMED.search(self.text, max(0, value.start - 9), value.start)

    @once
    def formulas(self) -> list[Span]:
        text = self.text
        if not (any(sign in text for sign in _OF_FORMULAS) and _MAY_BE_FORMULA.search(text)):
            return []
        return [found.span() for found in _FORMULA.finditer(self.text)]

    def table_head(self, line: OutlineLine) -> OutlineLine | None:
        """The first line of the table that a line stands in."""
        return self._table_heads.get(line.start)

    @once
    def _table_heads(self) -> dict[int, OutlineLine]:
        heads: dict[int, OutlineLine] = {}
        above: OutlineLine | None = None
        end = -2
        for line in self.lines:
            if not self.text.startswith("|", line.start):
                above = None
            elif above is None or line.start != end + 1:
                above = line
            if above is not None:
                heads[line.start] = above
            end = line.end
        return heads

    def column_of(self, line: OutlineLine, position: int) -> int:
        """How many bars of a table stand before it in its line."""
        return bisect_left(self._bars, position) - bisect_left(self._bars, line.start)

    @once
    def _bars(self) -> list[int]:
        return [found.start() for found in _BAR.finditer(self.text)]

    def lines_after(self, line: OutlineLine) -> Iterator[OutlineLine]:
        """Those beside it that follow, under the same heads."""
        at = bisect_right(self._line_starts, line.start)
        for following in self.lines[at : at + NEAREST_SIBLINGS]:
            if following.level < line.level or following.heads[-1:] != line.heads[-1:]:
                return
            if following.level == line.level:
                yield following

    def clauses(self, sentence: Span) -> list[Span]:
        found = self._clauses.get(sentence)
        if found is None:
            found = self._clauses[sentence] = list(_clauses(self.text, *sentence))
        return found

    def clause_at(self, position: int) -> Span:
        sentence = self.sentence_at(position)
        clauses = self.clauses(sentence)
        at = bisect_right(clauses, (position, len(self.text) + 1)) - 1
        return clauses[at] if at >= 0 and position < clauses[at][1] else sentence

    def near(self, value: Value, span: Span) -> Span:
        """The part of the span that stands near the value."""
        return max(span[0], value.start - WIDE), min(span[1], value.end + WIDE)

    def is_proposed(self, sentence: Span) -> bool:
        """A question, an offer, a plan, a request: nothing that is claimed to be so."""
        found = self._proposed.get(sentence)
        if found is None:
            found = self._proposed[sentence] = _QUESTION.match(
                self.text, sentence[1]
            ) is not None or self._proposes(_PROPOSED, *sentence)
        return found

    def _proposes(self, pattern: re.Pattern[str], start: int, end: int) -> bool:
        places = self._proposing
        if places is None:
            return pattern.search(self.text, start, end) is not None
        first = bisect_left(places, start)
        last = bisect_left(places, end, lo=first)
        return any(pattern.match(self.text, at, end) for at in places[first:last])

    @once
    def _proposing(self) -> list[int] | None:
        """Where words stand that may begin an offer; None: the whole text has to be searched."""
        if blank_signs(self.text) is None:
            return None
        starts = self.placed.starts
        return [starts[at] for at in self.placed.find(_PROPOSING)]

    def is_offered(self, value: Value) -> bool:
        """The same of one value: in a question, or after the words of an offer in its clause."""
        end = self.sentence_at(value.start)[1]
        start = max(self.clause_at(value.start)[0], value.start - WIDE)
        return _QUESTION.match(self.text, end) is not None or self._proposes(
            _OFFERED, start, value.start
        )


def _lines(text: str) -> Iterator[OutlineLine]:
    """A line stands under the nearest one before it that is indented less, an item under what
    introduces its list."""
    above: list[tuple[float, int, int]] = []
    before: dict[float, list[Span]] = {}
    start = 0
    for raw in text.split("\n"):
        end = start + len(raw)
        body = raw.strip()
        if body:
            level: float = len(raw) - len(raw.lstrip(" \t")) if raw[0].isspace() else 0
            if not body[0].isalpha():  # else it is neither
                if _LIST_MARK.match(body):
                    level += 1
                elif _HEADING.match(body):
                    level -= 0.5
            while above and above[-1][0] >= level:
                above.pop()
            for deeper in [one for one in before if one > level]:
                del before[deeper]
            siblings = before.setdefault(level, [])
            heads = tuple([head[1:] for head in above[-NEAREST_HEADS:]])
            yield OutlineLine(start, end, heads, tuple(siblings[-NEAREST_SIBLINGS:]), level)
            siblings.append((start, end))
            above.append((level, start, end))
        elif not above or above[-1][0] <= 0:
            before.clear()  # a blank line ends a block of plain lines
        start = end + 1


def _clauses(text: str, start: int, end: int) -> Iterator[Span]:
    position = start
    for found in _BREAK.finditer(text, start, end):
        if found.start() > position:
            yield position, found.start()
        # A joining word belongs to what it joins on.
        position = found.start() if found[0].strip(" ,").isalpha() else found.end()
    if position < end:
        yield position, end
