"""Whether an answer says of something that it is so: not where the same clause denies it, asks for
it, refuses to say it or offers it as one of several, and not where it is taken back further on.

Only what stands right before a value, or right after it, denies it (`does not have 1219`): what is
`not available until 5 May`, or costs `not only 20`, is told. Of the languages that ship (en, de,
es, fr)."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import SIGNS, fold, once
from callmark.grounding.values import Value

_REACH = 120  # characters before a value in which its denial begins
_LONGEST_TAIL = 300
# Between the words of a denial and what it denies: `not **$592.82**`.
_OPEN = rf"(?:(?:USD|EUR|GBP|CHF)\s?)?[\s*_`\"'“”‘’(\[~≈{SIGNS}-]*$"
_HAS_EN = (
    r"have|has|had|having|hold|holds|held|own|owns|owned|be|been|is|are|was|were|costs?|come\s+to"
    r"|comes\s+to|came\s+to|amount(?:s|ed)?\s+to|add(?:s|ed)?\s+up\s+to|totals?|totall?ed|equals?"
    r"|equall?ed|weighs?|weighed|numbers?|numbered|live(?:s|d)?\s+in|on|in|at"
)
_NOT_EN = r"(?:\b(?:not|never|cannot|no\s+longer|hardly|by\s+no\s+means|neither|nor)|n['’]t)"
_ES = (
    r"tiene|tienen|tenía|tenían|tuvo|tuvieron|tengo|cuesta|costó|costaba|es|son|era|fue|está"
    r"|estaba|vale|valía|suma|sumó|pesa|pesaba|ha\s+\w+|asciende\s+a|ascendió\s+a|llega\s+a"
    r"|llegó\s+a|hay"
)
_DENIED = re.compile(
    rf"""(?:
    {_NOT_EN}\s+(?:(?:ever|actually|really|exactly|currently|yet)\s+){{0,2}}(?:(?:{_HAS_EN})\s+){{0,2}}
      (?:(?:exactly|about|around|roughly|of|on|in|at|a|an|any)\s+){{0,3}}
    |(?:\b(?:is|are|was|were)\s+not|\b(?:is|are|was|were)n['’]t)\s+(?:(?:on|in|at)\s+)?the\s+
    |\b(?:no|not\s+a\s+single|nobody|no\s+one|none|nothing)(?:\s+[^\W\d_]+){{0,2}}?\s+
      (?:has|have|had|is|are|was|were|costs?|came\s+to|comes\s+to|amounts\s+to|totall?ed)
      \s+(?:(?:on|in|of|the)\s+){{0,2}}
    |\b(?:neither|nor)\s+(?:(?:is|are|was|were)\s+there\s+|(?:did|does|do|has|have|had)\s+
      (?:[^\W\d_]+\s+){{1,4}}?(?:{_HAS_EN})\s+)
    |\b(?:nicht|nie|niemals|keineswegs|kein\w{{0,2}})\s+(?:(?:genau|etwa|rund|exakt|bei|gleich)\s+){{0,2}}
    |\bkein\w{{0,2}}\s+(?:[^\W\d_]+\s+){{1,2}}(?:hat|hatte|haben|kostete|kostet|beträgt|betrug)\s+
    |\b(?:niemand|nichts)\s+(?:hat|hatte|kostete|kostet)\s+
    |\b(?:no|nunca|jamás|tampoco|ni)\s+(?:{_ES})\s+(?:(?:de|en|el|la|un|una|exactamente)\s+){{0,2}}
    |\b(?:ning[uú]na?|nadie|nada)\s+(?:[^\W\d_]+\s+){{0,2}}?(?:{_ES})\s+(?:(?:de|en)\s+)?
    |\bn(?:e\s+|['’]\s?)(?:[^\W\d_]+\s+){{1,2}}?(?:pas|jamais|point|plus)\s+
      (?:(?:eu|coûté|été|atteint|valu|totalisé)\s+)?(?:(?:de|à|exactement|dans)\s+|d['’]){{0,2}}
    |\b(?:aucune?|personne|rien)\s+(?:[^\W\d_]+\s+){{0,2}}?n(?:e\s+|['’])(?:a|coûte|vaut|est)\s+
      (?:(?:eu|coûté|été)\s+)?
    |\b(?:far|much|way|considerably|significantly|vastly|a\s+lot)\s+
      (?:more|less|fewer|higher|lower|greater|smaller)\s+than\s+
    |\b(?:something|anything|a\s+\w+(?:\s+of\s+\w+)?)\s+other\s+than\s+
    |\b(?:anything\s+but|nowhere\s+near|nothing\s+like)\s+
    ){_OPEN}""",
    re.IGNORECASE | re.VERBOSE,
)
# `no customer with 1219 points`: said of an amount, not of a place or a name.
_NONE_WITH = re.compile(
    rf"""(?:
    \b(?:no|(?:not|n['’]t)\s+(?:\w+\s+)?any)\s+(?!surprise|wonder|problem|doubt|matter)
      (?:[^\W\d_]+\s+){{1,2}}(?:with|of)\s+
    |\bkein\w{{0,2}}\s+(?:[^\W\d_]+\s+){{1,2}}(?:mit|über|von)\s+
    |\bning[uú]na?\s+(?:[^\W\d_]+\s+){{1,2}}(?:con|de)\s+
    |\baucune?\s+(?:[^\W\d_]+\s+){{1,2}}(?:avec|de)\s+
    ){_OPEN}""",
    re.IGNORECASE | re.VERBOSE,
)
# `nicht auf dem Gold-Tarif`: of a name, not of an amount, which something may not be applied to.
_NOT_ON = re.compile(
    rf"\b(?:nicht|nie|niemals)\s+(?:auf|im|in|bei)\s+(?:(?:dem|der|den|das|die)\s+)?{_OPEN}",
    re.IGNORECASE,
)
_MAY_DENY = re.compile(r"n|other\s+than|anything\s+but|(?:far|much|way|lot|ly)\s+\w+\s+than", re.I)
# Left open, or not told at all, up to the next comma.
_OPEN_OR_KEPT = re.compile(
    r"(?:\b(?:whether|ob)|\b(?:cannot|can['’]t|could\s+not|couldn['’]t|won['’]t|will\s+not"
    r"|unable\s+to|refuse\s+to|not\s+going\s+to)\s+(?:\w+\s+)?(?:tell|say|confirm|verify|claim"
    r"|guarantee|state|prove)(?:\s+you)?\s+(?:that|if))\b[^,;:—–()]*$",
    re.IGNORECASE,
)
_ASKED = re.compile(r"[\"”’»)*_\s]{0,4}[?？؟]")
_YES = re.compile(r"[\"”’»)*_\s?？؟]*(?:yes|yep|correct|indeed|ja|sí|oui|si)\b", re.IGNORECASE)
# What follows asks something else: `The total is $20, would you like to pay?`
_ASKS_ELSE = re.compile(
    r"[;—–¿]|\s-\s|[.!][\"”)]+\s|,\s+(?:(?:and|so|but|then|und|y|et)\s+)?(?:would|shall|do|does|did|should|can|could|may"
    r"|is|are|will|what|which|how|who|when|where|why|right|correct|ok|okay|yes|isn|aren|don|soll"
    r"|möchten|kann|ist|oder|nicht|quiere|desea|verdad|voulez|souhaitez)\b",
    re.IGNORECASE,
)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|~~(?=\S).{1,2000}?~~", re.DOTALL)

_OR = r"(?:or|oder|ou|o|bzw\.)"
_LINK = re.compile(
    rf"\s?(?:[^\W\d_]+\s?){{0,2}}(?:,\s*(?P<late>{_OR}\s)?|\s(?P<or>{_OR})\s)\s*[*_`\"“({SIGNS}]*",
    re.IGNORECASE,
)
_UNIT = re.compile(r"\s?([^\W\d_]+)")
_ONE_OF = re.compile(
    rf"\b(?:either|one\s+of|any\s+of|maybe|perhaps|possibly|(?:may|might|could)\s+be|entweder"
    rf"|vielleicht|eine?[rs]?\s+von|quizás?|uno\s+de|peut-être|l['’]une?\s+de)\b[^.;,\d]{{0,40}}?:?\s*{_OPEN}",
    re.IGNORECASE,
)
_NEXT_OR = re.compile(rf"[\s.]*{_OR}\b[\s:,]*(?:[^\W\d_]+\s){{0,2}}[{SIGNS}]?(?=\d)", re.IGNORECASE)
_MOST_BESIDE = 20
_ITEM = r"[^\W\d_][\w’'-]*(?:\s[\w’'-]+){0,2}"
_SHORT = r"[^\W\d_][\w’'-]*(?:\s[\w’'-]+)?"
_LIST_AFTER = re.compile(rf"(?P<items>(?:,\s+{_ITEM}){{0,40}}),?\s+{_OR}\s+(?P<last>{_ITEM})", re.I)
_LIST_BEFORE = re.compile(
    rf"(?P<items>{_ITEM}(?:,\s+{_SHORT}){{0,40}})(?:,\s+|\s+(?={_OR}\s))(?P<or>{_OR}\s+)?$",
    re.IGNORECASE,
)


# All that was said before is taken back.
_FALSE = (
    r"(?:all\s+)?(?:wrong|false|untrue|incorrect|made\s+up|invented|a\s+lie|nonsense|falsch|gelogen"
    r"|erfunden|falso|mentira|faux|inventé)"
)
_TAKEN_BACK = re.compile(
    rf"""(?<!\w)(?:
    (?:all|everything|what|anything)\s+(?:that\s+)?(?:i|we)\s+(?:have\s+|just\s+)?(?:told|said|wrote|gave|stated)
      (?:\s+(?:you|so\s+far|before|above|earlier)){{0,2}}\s+(?:is|was|were)\s+{_FALSE}
    |alles,?\s+was\s+ich\s+(?:\w+\s+){{0,2}}(?:gesagt|geschrieben)\s+habe,?\s+(?:ist|war)\s+{_FALSE}
    |todo\s+lo\s+que\s+(?:\w+\s+){{0,2}}dije\s+(?:es|era)\s+{_FALSE}
    |tout\s+ce\s+que\s+(?:j['’]ai|je\s+vous\s+ai)\s+dit\s+(?:est|était)\s+{_FALSE}
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_CORRECTS = re.compile(
    r"[\s*_\"“]*(?:no|wrong|correction|actually|wait|sorry|nein|falsch|korrektur|non|perdón|pardon)"
    r"\b\s*[,:;.!–—-]",
    re.IGNORECASE,
)
_WORD = re.compile(r"\w+")
_LITTLE = frozenset(
    """
    no not never n t s do does did have has had is are was were be been come came comes to the a an
    of and und y et or actually wait correction wrong sorry nein hat haben hatte nicht kein keine
    tiene es son non a pas ne n est
    """.split()
)
_NEXT = 20  # sentences, or values of one, that may take a value back
_MOSTLY = 0.6  # of the words of a clause that stand in another one too


class _Run(NamedTuple):
    """Values of one list, by their numbers; open: only one of them is said to be so."""

    first: int
    last: int
    is_open: bool


class Assertions:
    """One answer, asked of many places."""

    def __init__(self, outline: Outline, values: Sequence[Value]) -> None:
        self._outline, self._text = outline, outline.text
        self._values = values
        self._starts = [value.start for value in values]

    @once
    def _hidden(self) -> list[Span]:
        if "<!--" not in self._text and "~~" not in self._text:
            return []
        return [found.span() for found in _HIDDEN.finditer(self._text)]

    @once
    def _taken_back_to(self) -> int:
        """Where the last sentence begins that takes back all before it; 0: none does."""
        ends = [
            found.start()
            for found in _TAKEN_BACK.finditer(self._text)
            if not self._is_asked((found.end(), found.end()))
        ]
        return max(ends, default=0)

    def _is_hidden(self, position: int) -> bool:
        """In a comment, or struck out."""
        at = bisect_right(self._hidden, (position, len(self._text))) - 1
        return at >= 0 and position < self._hidden[at][1]

    def states(self, place: Span, is_amount: bool) -> bool:
        """Does the answer say of what stands here that it is so?"""
        start = place[0]
        if start < self._taken_back_to or self._is_hidden(start):
            return False
        return not (
            self._outline.is_denied(start)
            or self.denies(place, is_amount)
            or self._is_left_open(start)
            or self._is_asked(place)
        )

    def denies(self, place: Span, is_amount: bool) -> bool:
        """`does not have 1219 points`, `no customer with 1219 points`."""
        before = self._before(place[0])
        if not _MAY_DENY.search(before):
            return False
        more = _NONE_WITH if is_amount else _NOT_ON
        return _DENIED.search(before) is not None or more.search(before) is not None

    def _before(self, start: int) -> str:
        sentence = self._outline.sentence_at(start)
        return self._text[max(sentence[0], start - _REACH) : start]

    def _is_left_open(self, start: int) -> bool:
        return _OPEN_OR_KEPT.search(self._before(start)) is not None

    def _is_asked(self, place: Span) -> bool:
        end = self._outline.sentence_at(place[0])[1]
        if not _ASKED.match(self._text, end) or _YES.match(self._text, end):
            return False
        return _ASKS_ELSE.search(self._text, place[1], min(end, place[1] + _LONGEST_TAIL)) is None

    def alternatives(self, place: Span) -> Iterator[Value]:
        """The values that are offered beside the one that stands here: `1219, 1630 or 1704`."""
        at = bisect_left(self._starts, place[0])
        if at == len(self._values) or self._values[at].start >= place[1]:
            return
        run = self._runs[at]
        if run.is_open:
            for one in range(
                max(run.first, at - _MOST_BESIDE), min(run.last, at + _MOST_BESIDE) + 1
            ):
                if one != at:
                    yield self._values[one]
        if run.last + 1 < len(self._values):
            end = self._outline.sentence_at(place[0])[1]
            if found := _NEXT_OR.match(self._text, end):
                following = bisect_left(self._starts, found.end() - 1)
                yield from self._values[following : following + 1]

    @once
    def _runs(self) -> list[_Run]:
        """For each value the list that it stands in."""
        runs: list[_Run] = []
        first, is_open = 0, False
        for at in range(len(self._values)):
            link = self._link(at) if at + 1 < len(self._values) else None
            is_open = is_open or link == "or"
            if link is not None:
                continue
            if not is_open and at > first:
                is_open = _ONE_OF.search(self._before(self._values[first].start)) is not None
            runs += [_Run(first, at, is_open)] * (at + 1 - first)
            first, is_open = at + 1, False
        return runs

    def is_one_of(self, place: Span) -> bool:
        """Is it said that only one of those beside it is so?"""
        return _ONE_OF.search(self._before(place[0])) is not None

    def _link(self, at: int) -> str | None:
        """What joins a value of a list with the next one: `,` or `or`; None: they are in none."""
        value, following = self._values[at], self._values[at + 1]
        if following.start - value.end > _REACH or value.kind != following.kind:
            return None
        found = _LINK.fullmatch(self._text, value.end, following.start)
        if found is None:
            return None
        units = [_UNIT.match(self._text, one.end) for one in (value, following)]
        if (
            (found["or"] or found["late"])
            and all(units)
            and len({one[1].casefold() for one in units if one}) == 2
        ):
            own = units[0]
            if own is not None and fold(own[1]) not in ("or", "oder", "ou", "o"):
                return None  # `12 km or 7.46 miles`
        return "or" if found["or"] or found["late"] else ","

    def texts_beside(self, place: Span) -> list[list[str]]:
        """The other names of a list of three or more that is joined by `or`; each in all ways in
        which it may be told from the words around it."""
        sentence = self._outline.sentence_at(place[0])
        after = _LIST_AFTER.match(self._text, place[1], min(sentence[1], place[1] + _LONGEST_TAIL))
        head = self._text[max(sentence[0], place[0] - _LONGEST_TAIL) : place[0]]
        before = _LIST_BEFORE.search(head)
        if after is None and (before is None or not before["or"]):
            return []
        names: list[list[str]] = []
        if before is not None:
            names += [_endings(item.split()) for item in before["items"].split(",")]
        if after is not None:
            items = [item.split() for item in after["items"].split(",")[1:]]
            names += [_beginnings(item) for item in [*items, after["last"].split()]]
        return names if len(names) >= 2 else []

    def takes_back(self, place: Span, denied: Sequence[Span]) -> bool:
        """Is the same said again to be denied, as in `She has 12 points. She does not have 12
        points.`? `denied`: the places where it is, in their order."""
        first = bisect_right(denied, place)
        if first == len(denied):
            return False
        own = self._words(place)
        return any(_is_like(own, self._words(one)) for one in denied[first : first + _NEXT])

    def corrected_by(self, place: Span) -> Iterator[Value]:
        """The values that later sentences put in its place: `No: she has 14 points.`"""
        first = bisect_right(self._corrections, place)
        for start, end in self._corrections[first : first + _NEXT]:
            own = self._words(place)
            at = bisect_left(self._starts, start)
            for value in self._values[at : min(at + _NEXT, bisect_left(self._starts, end))]:
                if _is_like(own, self._words((value.start, value.end))):
                    yield value

    @once
    def _corrections(self) -> list[Span]:
        """Sentences that begin by taking something back, and those right after such a word."""
        found: list[Span] = []
        is_next = False
        for start, end in self._outline.sentences:
            opened = _CORRECTS.match(self._text, start, end + 1)
            if opened is not None or is_next:
                found.append((start, end))
            is_next = opened is not None and opened.end() >= end
        return found

    def _words(self, place: Span) -> frozenset[str]:
        """What the clause says beside it."""
        start, end = self._outline.clause_at(place[0])
        start, end = max(start, place[0] - _REACH), min(end, place[1] + _REACH)
        said = self._text[start : place[0]] + " " + self._text[place[1] : end]
        # A new subject begins after `, and`.
        parts = re.split(r",\s+(?:and|und|y|et)\s+", said)
        before = len(self._text[start : place[0]])
        length = 0
        for part in parts:
            length += len(part) + 5
            if length > before:
                said = part
                break
        return frozenset(_WORD.findall(fold(said))) - _LITTLE


def _beginnings(words: list[str]) -> list[str]:
    return [" ".join(words[:end]) for end in range(1, len(words) + 1)]


def _endings(words: list[str]) -> list[str]:
    return [" ".join(words[start:]) for start in range(len(words))]


def _is_like(own: frozenset[str], later: frozenset[str]) -> bool:
    """Does the later clause speak of the same, if of less?"""
    shared = len(own & later)
    return shared > 0 and (
        shared >= _MOSTLY * len(own | later) or (shared > 1 and shared >= _MOSTLY * len(later))
    )
