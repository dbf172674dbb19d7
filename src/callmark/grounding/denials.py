"""What an answer takes back: all that it says, before it or after it, or one clause of it.

What is denied is what the subject names. `The following is false` names what follows, `the above`
what went before, and both are the answer's own words. `None of that is correct` at the start of an
answer speaks of what the user said; so may `this`, if the user said anything that can be denied.
`The figures in your mail`, `everything else`, `it is said that …` speak of others' words. And what
is wrong only under a condition (`if …`, `for other customers`) is not denied: the sentence ends
with the predicate. Where that is open, nothing is denied."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from callmark.grounding.text import SIGNS, blank_signs

if TYPE_CHECKING:
    from callmark.grounding.spans import Outline, Span


class TurnsTaken(NamedTuple):
    """The turns of an answer in characters, and the last thing that the user said before each."""

    turns: tuple[tuple[int, int], ...] = ()
    asked: tuple[str, ...] = ()


ONE_TURN = TurnsTaken()


# What speaks of its own words: `these figures`; not `the following lines`, which a check may list.
_NOUN = (
    r"(?:answers?|statements?|sentences?|claims?|assertions?|figures?|numbers?|values?|facts?"
    r"|repl(?:y|ies)|responses?|words?)"
)
_NOUN_DE = r"(?:Antwort(?:en)?|Aussagen?|Angaben?|Sätze?|Behauptung(?:en)?|Zahlen|Werte)"
_NOUN_ES = r"(?:respuestas?|afirmacion(?:es)?|afirmación|datos?|cifras|frases?)"
_NOUN_FR = r"(?:réponses?|affirmations?|chiffres|phrases?|informations?)"
_BE = r"(?:(?:\s+(?:is|are|was|were)|['’](?:s|re))\b)"
_HOW = r"(?:\s+(?:all|just|simply|in\s+fact|\w+ly))*"
_WRONG = (
    r"(?:false|untrue|wrong|incorrect|inaccurate|made[\s-]up|fictional|fictitious|invented"
    r"|fabricated|(?:a\s+)?lies?|nonsense)"
)
_FALSE = (
    r"(?:false|untrue|made[\s-]up|fictional|fictitious|invented|fabricated|(?:a\s+)?lies?|nonsense)"
)
_TRUE = r"(?:true|correct|right|accurate|real)"
_NOT = r"(?:\s+not|n['’]t)"
_IS_WRONG = rf"(?:{_BE}{_HOW}\s+{_WRONG}|{_BE}?{_NOT}{_HOW}\s+{_TRUE})"
_IS_FALSE = rf"(?:{_BE}{_HOW}\s+{_FALSE}|{_BE}?{_NOT}{_HOW}\s+true)"
# `That was wrong` and `that is not right` are said of deeds and charges, too.
_IS_UNTRUE = (
    rf"(?:{_BE}{_HOW}\s+{_FALSE}|(?:\s+is|['’]s){_HOW}\s+(?:incorrect|inaccurate)"
    rf"|{_BE}?{_NOT}{_HOW}\s+true|(?:\s+is|['’]s)?{_NOT}{_HOW}\s+(?:correct|accurate))"
)
_IS_TRUE = rf"{_BE}{_HOW}\s+{_TRUE}"
_IS_DE = (
    r"\s+(?:ist|sind|war(?:en)?)\s+(?:alles\s+|alle\s+|frei\s+)?(?:falsch|unwahr|erfunden|gelogen"
    r"|nicht\s+(?:wahr|richtig|korrekt))|\s+stimm(?:t|en)\s+(?:alles\s+|alle\s+|so\s+)?nicht"
)
_TRUE_DE = r"(?:stimmt|ist\s+(?:wahr|richtig|korrekt)|trifft\s+zu)"
_IS_ES = (
    r"\s+(?:(?:es|son)\s+(?:\w+mente\s+)?(?:fals[oa]s?|(?:una\s+)?mentiras?|incorrect[oa]s?"
    r"|inventad[oa]s?)|no\s+(?:es|son)\s+(?:ciert[oa]s?|verdad|correct[oa]s?|verdader[oa]s?))"
)
_TRUE_ES = r"\s+es\s+(?:cierto|verdad|correcto|verdadero)"
_IS_FR = (
    r"(?:\s+(?:est|sont)\s+(?:\w+ment\s+)?(?:faux|fausses?|inexacte?s?|inventée?s?"
    r"|(?:un\s+)?mensonges?)|\s+(?:n['’]est|ne\s+sont)\s+pas\s+(?:vrai|exact|correct)e?s?)"
)
_TRUE_FR = r"\s+n['’]est\s+(?:vrai|exact|correct)"
# The sentence ends with the predicate: `is wrong if …` is said under a condition.
_END = r"(?=\W*$|\s*(?:[.!:;…)\n*]|[-–—]\s))"


def _any(*forms: str) -> re.Pattern[str]:
    return re.compile(rf"(?:{'|'.join(forms)}){_END}", re.IGNORECASE)


_NEXT = (
    rf"(?:(?:all\s+(?:of\s+)?|none\s+of\s+)?the\s+following\s+{_NOUN}"
    rf"|(?:all\s+(?:of\s+)?|none\s+of\s+)?the\s+{_NOUN}\s+(?:below|(?:that|which)\s+follows?)"
    rf"|the\s+next\s+{_NOUN}|(?:everything|nothing|all|what)\s+(?:of\s+what\s+)?(?:(?:that|which|is)"
    r"\s+)?(?:stands\s+)?(?:follows|below|comes\s+next))"
)
# Of what follows, wherever it stands.
_FORWARD = _any(
    rf"{_NEXT}{_IS_WRONG}",
    rf"(?:none|nothing)(?:\s+of\s+(?:what|the|these))?(?:\s+{_NOUN})?\s+(?:(?:that|which)\s+)?"
    rf"(?:follow(?:s|ing)?|below)(?:\s+{_NOUN})?{_IS_TRUE}",
    rf"(?:all\s+of\s+)?the\s+following{_IS_FALSE}",
    r"(?:please\s+)?(?:ignore|disregard|do\s+not\s+believe|don['’]t\s+believe)\s+(?:everything"
    r"|what\s+follows|(?:everything|all)\s+(?:below|that\s+follows)|all\s+of\s+the\s+following)",
    r"(?:i\s+(?:have\s+)?|i['’]ve\s+)(?:invented|made\s+up)\s+(?:everything|all)\s+that\s+follows",
    rf"(?:Das\s+Folgende|Folgendes|(?:Alle\s+)?die\s+folgenden\s+{_NOUN_DE}|Alles\s+(?:Folgende"
    rf"|hier|unten)|was\s+folgt,?)(?:{_IS_DE})",
    rf"(?:Todo\s+)?lo\s+(?:siguiente|que\s+sigue){_IS_ES}",
    rf"Nada\s+de\s+lo\s+(?:siguiente|que\s+sigue){_TRUE_ES}",
    r"No\s+es\s+(?:cierto|verdad|correcto)\s+lo\s+siguiente",
    rf"(?:Tout\s+)?ce\s+qui\s+suit{_IS_FR}",
    rf"Rien\s+de\s+ce\s+qui\s+suit{_TRUE_FR}",
)
_HEAD = (
    r"(?:(?:this|here)\s+(?:is|are)\s+)?(?:some\s+|(?:an?|the)\s+)?"
    r"(?:(?:list|example|set|collection)\s+of\s+(?:an?\s+)?)?"
)
# Headings of what follows, at the start of a turn.
_LABEL = re.compile(
    rf"""(?:{_HEAD}(?:false|wrong|incorrect|untrue|inaccurate|made-up|invented|fake)\s+
      (?:{_NOUN}|information|data)
    |(?:this\s+is\s+)?(?:false|untrue|an?\s+lie|lies)
    |the\s+(?:exact\s+)?opposite\s+is\s+(?:the\s+case|true)
    |april\s+fools?
    |(?:Hier\s+(?:ist|sind|kommt)\s+)?(?:eine?\s+)?(?:Liste\s+)?falsche[rns]?\s+{_NOUN_DE}
    |Das\s+(?:genaue\s+)?Gegenteil\s+ist\s+(?:der\s+Fall|wahr)
    |{_NOUN_ES}\s+(?:fals|incorrect|erróne|equivocad)[oa]s?
    |Lo\s+contrario\s+es\s+(?:cierto|verdad)
    |(?:Voici\s+des\s+)?(?:(?:mauvaises?|fausses?)\s+{_NOUN_FR}
      |{_NOUN_FR}\s+(?:fausses?|incorrectes?|erronées?|inexactes?))
    |C['’]est\s+(?:tout\s+)?le\s+contraire
    )\s*(?::|\n)""",
    re.IGNORECASE | re.VERBOSE,
)
_ALL_OF = r"(?:(?:all|every\s+word)\s+(?:of\s+)?)"
_THIS = re.compile(r"\b(?:this|these|here|hiervon|hier|esto|ceci)\b", re.IGNORECASE)
# Of what stands near: before it, if it ends the turn; after it, if it opens one with a colon.
_NEAR_BY = _any(
    rf"(?:none|nothing)\s+(?:of\s+(?:this|these(?:\s+{_NOUN})?)|here|i\s+say){_IS_TRUE}",
    rf"{_ALL_OF}(?:this|these\s+{_NOUN}){_IS_WRONG}",
    rf"(?:everything|every\s+{_NOUN})\s+here{_IS_WRONG}",
    rf"Nichts\s+(?:hiervon|davon|von\s+alledem)\s+{_TRUE_DE}",
    rf"Alles\s+(?:davon|hier)(?:{_IS_DE})",
    rf"Nada\s+de\s+esto{_TRUE_ES}",
    rf"Todo\s+esto{_IS_ES}",
    rf"Rien\s+de\s+(?:tout\s+)?(?:cela|ceci|ça){_TRUE_FR}",
    rf"Tout\s+(?:cela|ceci|ça){_IS_FR}",
)
_SAID = r"i\s+(?:have\s+|['’]ve\s+)?(?:just\s+)?(?:said|say|told\s+you|wrote|stated|gave)"
# Of what went before, at the end of a turn.
_BACKWARD = _any(
    rf"(?:none|nothing)\s+(?:of\s+(?:that|those(?:\s+{_NOUN})?|it|the\s+above|what\s+{_SAID})"
    rf"|above){_IS_TRUE}",
    rf"(?:{_ALL_OF})?(?:the\s+above(?:\s+{_NOUN})?|the\s+{_NOUN}\s+above){_IS_WRONG}",
    rf"(?:{_ALL_OF}(?:that|it)|(?:{_ALL_OF})?(?:these|those)\s+{_NOUN}"
    rf"|(?:everything|what)\s+(?:above|{_SAID})){_IS_WRONG}",
    rf"the\s+(?:previous|preceding)\s+(?:sentences?|statements?|claims?){_IS_WRONG}",
    rf"(?:that|this|it){_IS_UNTRUE}",
    r"i\s+(?:(?:have|just)\s+)?(?:made|invented|fabricated)\s+(?:(?:all\s+(?:of\s+)?)?"
    rf"(?:this|that|these|those)(?:\s+{_NOUN})?|everything)(?:\s+(?:all\s+)?up)?(?:\s+myself)?",
    r"i\s+(?:take\s+(?:this|that|it\s+all|everything)\s+back"
    r"|retract\s+(?:all\s+of\s+)?(?:this|that|everything))",
    r"i(?:\s+(?:am|was)|['’]m)\s+(?:just\s+|only\s+)?(?:kidding|joking|lying)",
    rf"(?:please\s+)?(?:ignore|disregard|forget)\s+(?:(?:all\s+of\s+)?the\s+above|(?:what|everything)\s+"
    rf"(?:{_SAID}|above)|this\s+{_NOUN})",
    r"(?:just|only)\s+(?:kidding|joking)|april\s+fools?|scratch\s+that",
    r"the\s+(?:exact\s+)?opposite\s+is\s+(?:the\s+case|true)",
    rf"(?:das|dies)(?:\s+stimmt(?:\s+so)?\s+nicht|\s+ist\s+(?:alles\s+)?(?:unwahr|erfunden|gelogen"
    rf"|nicht\s+wahr))|(?:(?:alle\s+)?diese\s+{_NOUN_DE}|das\s+obige|alles\s+(?:das|obige))(?:{_IS_DE})",
    r"das\s+(?:genaue\s+)?gegenteil\s+ist\s+(?:der\s+fall|wahr)|april,?\s+april",
    rf"(?:eso|esto|lo\s+anterior|todo\s+(?:eso|lo\s+anterior)|est[oa]s\s+{_NOUN_ES}){_IS_ES}",
    rf"nada\s+de\s+(?:eso|lo\s+anterior){_TRUE_ES}|¡?inocente,?\s+inocente",
    rf"(?:ce|cela|ceci|ça|ce\s+qui\s+précède|tout\s+ce\s+qui\s+précède|ces\s+{_NOUN_FR}){_IS_FR}"
    rf"|c['’]est\s+(?:faux|inexact|inventé)|poisson\s+d['’]avril",
)
# These speak of nobody else's words.
_OWN = re.compile(
    r"\b(?:above|i|i['’]m|kidding|joking|april|avril|inocente|scratch|answer|response|reply|obige"
    r"|anterior|précède|sentence|statement)\b",
    re.IGNORECASE,
)
_ONE_THING = re.compile(
    r"(?:that|this|it|das|dies|eso|esto|cela|ceci|ce|ça|c)\b(?!\s+qui\b)", re.IGNORECASE
)
# What may stand before such a subject in its sentence: nobody else is named who says it.
_LEAD = re.compile(
    r"(?:[\s\W]|\b(?:but|and|so|oh|well|sorry|no|now|correction|actually|however|honestly|in\s+(?:fact|truth)"
    r"|to\s+be\s+(?:honest|clear)|please\s+note|note|be\s+aware|warning|caution|attention|disclaimer"
    r"|that|unfortunately|i\s+(?:must\s+)?(?:admit|confess)|aber|doch|leider|achtung|pero|perdón"
    r"|mais|désolé|forget\s+it)\b)*",
    re.IGNORECASE,
)
_QUOTING = re.compile('[“”„«»"]')
_FURTHEST_LEAD = 60
_MOST_AFTER = 80  # characters of a farewell behind the end
_DIGIT = re.compile(r"\d")
# A user who asks what is wrong, or whether something is so, is told that: nothing is taken back.
_ASKS_WHAT_IS_WRONG = re.compile(
    r"\b(?:false|wrong\w*|incorrect\w*|untrue|lies?|lying|myths?|fake|hoax|scam|spam|true|truth"
    r"|check|review\w*|verif\w+|validat\w+|errors?|mistakes?|invalid|quiz|falsch\w*|fehler\w*"
    r"|prüf\w*|stimmt|stimmen|wahr|fals[oa]s?|errores|error|verdad|ciert[oa]|faux|fausses?|erreurs?"
    r"|vrai|vérifi\w*)\b",
    re.IGNORECASE,
)
# `How many …?`, `Tell me …`: nothing is said that could be denied.
_ASKING = re.compile(
    r"\W*(?:(?:hi|hello|hey|please|and|so|bitte|hallo|hola|bonjour|can|could|will|would|you|i"
    r"|need|want|like|to|know|d)\b\W*)*(?:how|what\w*|who\w*|which|when|where|why|tell|show|give"
    r"|list|find|look|describe|summari[sz]e|get|name|report|compare|search|fetch|explain|write|wie"
    r"|was|wer|wann|wo|welche\w*|warum|zeig\w*|nenn\w*|sag\w*|gib|such\w*|finde|beschreib\w*"
    r"|cuánt\w+|qué|quién\w*|cuál\w*|dónde|cuándo|cómo|dime|muestra|busca|da|combien|quel\w*|qui"
    r"|que|quand|où|comment|donne\w*|montre\w*|dis|décri\w+|trouve\w*)\b",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"[^.!?\n]*\w[^.!?\n]*\??")
_FEW_WORDS = 3  # `Order 4711?`
_YES_OR_NO = re.compile(
    r"\W*(?:is|are|was|were|do|does|did|has|have|ist|sind|hat|haben|es|son|está|tiene|hay|est|sont|a"
    r"|ont)\b",
    re.IGNORECASE,
)


def offers_premise(asked: str) -> bool:
    """May the user have said something that could be denied?"""
    return bool(_ASKS_WHAT_IS_WRONG.search(asked)) or any(
        not _ASKING.match(one) and (len(one.split()) > _FEW_WORDS or _YES_OR_NO.match(one))
        for one in _SENTENCE.findall(asked)
    )


def asks_whether(asked: str, said: str) -> bool:
    """`Was ORD-12 cancelled?`, of `ORD-12`."""
    known = re.compile(rf"(?<!\w){re.escape(said)}(?!\w)", re.IGNORECASE)
    return known.search(asked) is not None and any(
        known.search(one) and (_YES_OR_NO.match(one) or _ASKS_WHAT_IS_WRONG.search(one))
        for one in asked.split("?")[:-1]
    )


# One of them stands in all that takes something back.
DENYING = frozenset(
    """
    true correct right accurate real case false untrue wrong incorrect inaccurate made fictional
    fictitious invented fabricated lie lies nonsense ignore disregard believe forget deny dispute
    doubt truth stimmt stimmen wahr richtig korrekt falsch falsche falscher falschen falsches nicht
    unwahr erfunden gelogen zu cierto verdad correcto verdadero falso falsa falsos falsas mentira
    incorrecto incorrecta errónea equivocada inventado vrai exact faux fausse fausses mauvaise
    mauvaises inexact inventé erronée contraire opposite gegenteil contrario kidding joking lying
    april avril inocente scratch take retract fake
    """.split()
)
# The first words of all that `_FORWARD`, `_NEAR_BY` and `_BACKWARD` find.
_BEGINNING = frozenset(
    """
    the all none everything nothing every what please ignore disregard do don i that this it these
    those just only april scratch forget das dies diese folgendes alle die alles was nichts todo lo
    nada no eso esto estos estas inocente tout ce cela ceci ces rien c poisson
    """.split()
)
_OF_THAT = frozenset("that say truth dass que".split())
_LONGEST_DENIAL = 200  # no denial is longer


def find_denied(outline: Outline, talk: TurnsTaken = ONE_TURN) -> list[Span]:
    """The parts of the answer that it takes back, in its order; they may overlap."""
    found = list(_struck_out(outline, talk))
    words = outline.words & DENYING
    if words:
        near = list(around(outline, outline.places_of(words), _LONGEST_DENIAL))
        found += _taken_back(outline, near, talk, _beginnings_in(outline))
        found += find_denied_clauses(outline)
    return sorted(found)


def find_denied_clauses(outline: Outline) -> list[Span]:
    """Those of them that are a single clause: `it is not true that …`."""
    words = outline.words & DENYING
    if not words or _OF_THAT.isdisjoint(outline.words):
        return []
    near = around(outline, outline.places_of(words), _LONGEST_DENIAL)
    return list(_denied_clauses(outline, list(near)))


def around(outline: Outline, places: Sequence[int], reach: int) -> Iterator[Span]:
    """What stands near these places, in parts that do not overlap."""
    start = end = 0
    for place in places:
        if place - reach > end:
            if end:
                yield start, end
            start = place - reach
        end = place + reach
    yield start, min(end, len(outline.text))


def _struck_out(outline: Outline, talk: TurnsTaken) -> Iterator[Span]:
    """All of a turn between `~~`; a single price that is struck out is an old one."""
    if "~~" not in outline.text:
        return
    for start, end in talk.turns or ((0, len(outline.text)),):
        turn = outline.text[start:end].strip()
        if turn.count("~~") == 2 and turn.startswith("~~") and turn.endswith("~~"):
            yield start, end


# --- all that was said


def _taken_back(
    outline: Outline, near: Sequence[Span], talk: TurnsTaken, begins: Sequence[int] | None
) -> Iterator[Span]:
    text = outline.text
    turns = talk.turns or ((0, len(text)),)
    for at, turn in enumerate(turns):
        parts = [(max(one[0], turn[0]), min(one[1], turn[1])) for one in near]
        label = _LABEL.match(text, _first_letter(text, turn), turn[1])
        found = [
            (pattern, one)
            for start, end in parts
            if start < end
            for pattern in (_FORWARD, _NEAR_BY, _BACKWARD)
            for one in _all_in(pattern, text, (start, end), begins)
        ]
        if label is None and not found:  # nearly always: then nobody reads what was asked
            continue
        asked = talk.asked[at] if at < len(talk.asked) else ""
        if not _ASKS_WHAT_IS_WRONG.search(asked):
            may_reply = offers_premise(asked)
            if label is not None and not may_reply:
                yield label.end(), turn[1]
            yield from _taken_back_in(outline, turn, found, may_reply=may_reply)


def _taken_back_in(
    outline: Outline,
    turn: Span,
    denials: Iterable[tuple[re.Pattern[str], re.Match[str]]],
    *,
    may_reply: bool,
) -> Iterator[Span]:
    text, end = outline.text, turn[1]
    for pattern, found in denials:
        if not _is_meant(outline, turn, found):
            continue
        if pattern is _FORWARD:
            yield found.end(), end
        elif _ends_turn(text, found.end(), end):
            if not may_reply or _OWN.search(found[0]):
                yield from _before(outline, turn, found)
        elif pattern is _NEAR_BY and not may_reply and _is_of_rest(text, turn, found):
            yield found.end(), end


def _is_meant(outline: Outline, turn: Span, found: re.Match[str]) -> bool:
    return _speaks_itself(outline, turn, found.start()) and not _asks(outline, found.start())


def _beginnings_in(outline: Outline) -> list[int] | None:
    """Where the words stand that a denial begins with; None: the whole text has to be searched."""
    if "¡" in outline.text or blank_signs(outline.text) is None:
        return None
    starts = outline.placed.starts
    return [starts[at] for at in outline.placed.find(_BEGINNING)]


def _all_in(
    pattern: re.Pattern[str], text: str, part: Span, begins: Sequence[int] | None
) -> Iterator[re.Match[str]]:
    """Those that begin with a word."""
    if begins is None:
        for found in pattern.finditer(text, *part):
            before = text[found.start() - 1 : found.start()]
            if not (before.isalnum() or before in ("'", "’", "_")):
                yield found
        return
    end = part[0]
    for at in range(bisect_left(begins, end), bisect_left(begins, part[1])):
        here = begins[at]
        if here < end or text[here - 1 : here] in ("'", "’", "_"):
            continue
        one = pattern.match(text, here, part[1])
        if one is not None:
            end = one.end()
            yield one


def _first_letter(text: str, turn: Span) -> int:
    start, end = turn
    while start < end and not text[start].isalnum():
        start += 1
    return start


def _is_of_rest(text: str, turn: Span, found: re.Match[str]) -> bool:
    """`None of this is true: …`, and without a colon where that opens the turn."""
    if text[found.end() : found.end() + 2].lstrip().startswith(":"):
        return True
    is_first = _LEAD.fullmatch(text, turn[0], found.start()) is not None
    return is_first and _THIS.search(found[0]) is not None


def _speaks_itself(outline: Outline, turn: Span, start: int) -> bool:
    """Does the answer say so, and not somebody whom it quotes or reports?"""
    text = outline.text
    first = max(turn[0], outline.sentence_at(start)[0])
    if first > start:
        first = start
    lead = text[first:start]
    return len(lead) <= _FURTHEST_LEAD and (
        _LEAD.fullmatch(lead) is not None and _QUOTING.search(lead) is None
    )


def _ends_turn(text: str, at: int, end: int) -> bool:
    rest = text[at:end].strip(" .!*_~)\n")
    return not rest or (
        len(rest) <= _MOST_AFTER and _DIGIT.search(rest) is None and ":" not in text[at : at + 2]
    )


_REPORTED = re.compile(
    r"\b(?:you|he|she|they|said|says?|states?|stated|claim\w*|wrote|writes?|mention\w*|report\w*"
    r"|show\w*|lists?|displays?|charged|billed|sie|ihnen|usted|vous|zeigt|steht|berechnet|cobrado"
    r"|factur\w*|muestra|indique|affiche|according|alleg\w+|supposed\w*|laut|angeblich|behaupt\w*|schreib\w*|sagt\w*|según|dice\w*"
    r"|selon|dit|prétend\w*)\b|[“„«]",
    re.IGNORECASE,
)


def _before(outline: Outline, turn: Span, found: re.Match[str]) -> Iterator[Span]:
    """What went before in the turn, but for the words of others that it reports. `That is false`
    speaks of one sentence."""
    start = found.start()
    inside = [one for one in outline.sentences if turn[0] <= one[0] < start]
    if _ONE_THING.match(found[0]):
        before = [one for one in inside if one[1] <= start]
        inside = inside[len(before) - 1 :] if before else []
    for at, sentence in enumerate(inside):
        if not _REPORTED.search(outline.text, *sentence):
            yield sentence[0], inside[at + 1][0] if at + 1 < len(inside) else start


# --- one clause

_FALSE_THAT = (
    r"(?:not|n['’]t)\s+(?:\w+\s+)?(?:true|correct|right|accurate|the\s+case)"
    r"|(?:\w+ly\s+)?(?:false|untrue|wrong|incorrect|inaccurate|made\s+up|a\s+lie|nonsense)"
)
_THAT = re.compile(
    rf"""(?<!\w)(?:
    it(?:\s+(?:is|was|would\s+be)|['’]s)?\s*(?:{_FALSE_THAT})\s+(?:that|to\s+say(?:\s+that)?)
    |it\s+(?:is\s+by\s+no\s+means\s+(?:true|correct|the\s+case)
      |couldn['’]t\s+be\s+further\s+from\s+the\s+truth)\s+that
    |i\s+(?:deny|doubt|dispute)\s+that|(?:there\s+is\s+)?no\s+truth\s+(?:to|in)
    |es\s+(?:stimmt\s+nicht|ist\s+(?:nicht\s+(?:wahr|richtig|so)|falsch|unwahr)|trifft\s+nicht\s+zu),?\s+dass
    |no\s+es\s+(?:cierto|verdad|correcto)\s+que|es\s+(?:falso|mentira|incorrecto)\s+que
    |il\s+n['’]est\s+pas\s+(?:vrai|exact|correct)\s+que|il\s+est\s+(?:faux|inexact)\s+(?:que|de\s+dire\s+que)
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
# Where the denied clause ends and another says how it is.
_STOP = re.compile(
    r"[;:](?!\d)|\s[-–—]\s|—|,?\s+(?:but|rather|instead|sondern|sino|mais|pero)\b"
    r"|,\s+(?=(?:it|there|they|he|she|you|we|i|that|this|the\s+(?:real|actual|right|correct)\s+\w+"
    r"|es|sie|er|il|elle|ils|elles|c['’]est|on)\b(?!\s+(?:and|or|und|y|et)\b)"
    r"|(?:son|es|tiene|hay|cuesta)\b)",
    re.IGNORECASE,
)
# `Flight Number`, `Most recent order`: no sentence.
_LABELLING = re.compile(
    r"[\s*_]*(?=[A-Z])(?:(?!(?:is|are|was|were|has|have|had|will|can|does|do|did|would|costs?|no|not"
    r"|never|nothing)\b)[^\W\d]+[\W_]*){1,5}"
)
# `I cannot say that …`, `if you believe that …`: nobody denies anything.
_NEGATED = re.compile(
    r"\b(?:not|n['’]t|never|cannot|if|whether|unless|should|wenn|falls|si|believe|think|nobody"
    r"|says?|said|claim\w*|wrote|writes?|told|reports?|argues?)\s+(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
_NEAR = 30


def _denied_clauses(outline: Outline, near: Sequence[Span]) -> Iterator[Span]:
    text = outline.text
    for found in (one for span in near for one in _THAT.finditer(text, *span)):
        if _is_negated(text, found.start()) or _asks(outline, found.start()):
            continue
        end = outline.sentence_at(found.start())[1]
        yield found.end(), _end_of_clause(text, found.end(), end)


def _end_of_clause(text: str, start: int, end: int) -> int:
    """`… that Tarn has 5 people: it has 3` ends at the colon; `… that Price: 5` goes on."""
    for stop in _STOP.finditer(text, start, end):
        if stop[0] != ":" or not _LABELLING.fullmatch(text, start, stop.start()):
            return stop.start()
    return end


def _asks(outline: Outline, position: int) -> bool:
    end = outline.sentence_at(position)[1]
    return outline.text[end : end + 1] in ("?", "？")


def _is_negated(text: str, start: int) -> bool:
    return _NEGATED.search(text, max(0, start - _NEAR), start) is not None


# --- what results themselves call untrue

# A key, or words of a text.
_UNTRUE_KEY = re.compile(
    r"(?:^|[/_])(?:claim|rumou?r|invalid|wrong|false|error|incorrect|mistake|myth|spam|scam|hoax"
    r"|disput|alleg)",
    re.IGNORECASE,
)
_UNTRUE_TEXT = re.compile(
    r"\b(?:false|wrong|incorrect|untrue|lies?|fake|hoax|scam|rumou?r|myth|falsch|fals[oa]|faux)\b",
    re.IGNORECASE,
)


def may_be_untrue(path: str, value: object) -> bool:
    """`/invalid/0/line`, `/claim`: whoever denies it says what the result says."""
    return _UNTRUE_KEY.search(path) is not None or (
        isinstance(value, str) and _UNTRUE_TEXT.search(value) is not None
    )


# --- one value

# Right before a value: `it is not $120`.
_NOT_RIGHT_BEFORE = re.compile(
    r"(?:\b(?:is|are|was|were|costs?|has|have)\s+not|(?:is|are|was|were)n['’]t|\bist\s+nicht"
    rf"|\bno\s+(?:es|son|cuesta)|\bn['’]est\s+pas)\s+(?:de\s+)?[A-Z]{{0,3}}\s?[{SIGNS}]?$",
    re.IGNORECASE,
)
_MAY_BE_NOT = re.compile(r"[nN](?:[oOiI\u0130\u0131]|['’])")  # in all of them
_INSTEAD = re.compile(
    r"\b(?:but|rather|instead|sondern|sino|mais|yet|only|until|before|more|less|enough|any(?:more"
    r"|\s+longer))\b|[;:,—–]\s*[^.!?]*\d|\s-\s",
    re.IGNORECASE,
)
# In the next sentence: `It is $64.`
_GOES_ON = re.compile(
    r"[.!]\s+(?:it|they|that|this|instead|rather|actually|the|you|es|sie|der|die|das|son|cuesta|il"
    r"|elle|c)\b[^.!?\n]{0,60}\d",
    re.IGNORECASE,
)


def is_denied_value(outline: Outline, start: int, end: int) -> bool:
    """`The price is not $120`; a contrast (`not $120 but …`) corrects somebody else."""
    text = outline.text
    before = text[max(0, start - _NEAR) : start]
    if not _MAY_BE_NOT.search(before) or not _NOT_RIGHT_BEFORE.search(before):
        return False
    sentence = outline.sentence_at(start)
    if _INSTEAD.search(text, end, min(sentence[1], end + 2 * _NEAR)) is not None:
        return False
    return _GOES_ON.match(text, sentence[1]) is None
