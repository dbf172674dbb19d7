"""Denial: which part of an answer says of itself, or of a value, that it is not so."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callmark.grounding.outline import Outline
from callmark.grounding.spans import Span

_FALSE_EN = (
    r"(?:not|n['’]t)\s+(?:\w+\s+)?(?:true|correct|right|accurate|real|the\s+case)"
    r"|(?:\w+ly\s+)?(?:false|untrue|wrong|incorrect|inaccurate|made\s+up|made-up|fictional|invented"
    r"|fabricated|a\s+lie|lies|nonsense)"
)
# All that the answer says: before it or after it.
_WHOLESALE = re.compile(
    rf"""(?<!\w)(?:
    (?:none|nothing)\s+(?:of\s+(?:this|that|it|these|those|the|what)\b[^.:;!?\n]{{0,40}}?
      |here|above|below|i\s+say)\s*(?:is|are|was|were)\s+(?:true|correct|right|accurate|real)
    |(?:all\s+(?:of\s+)?(?:this|that|these|the)|everything|every\s+(?:word|value|statement|fact)
      |the\s+following|what\s+follows|the\s+above)\b[^.:;!?\n]{{0,40}}?\s(?:is|are|was|were)\s*(?:all\s+)?(?:{_FALSE_EN})
    |(?:ignore|disregard|do\s+not\s+(?:believe|trust))\s+(?:all|everything|anything|the\s+following
      |what\s+follows|the\s+above)
    |nichts\s+(?:davon|hiervon|von\s+dem)\b[^.:;!?\n]{{0,30}}?(?:stimmt|ist\s+(?:wahr|richtig|korrekt))
    |(?:das\s+folgende|folgendes|alles\s+(?:folgende|davon|hier)?)\s*(?:ist|stimmt)\s+(?:alles\s+)?
      (?:falsch|nicht|unwahr|erfunden|gelogen)
    |nada\s+de\s+(?:esto|eso|lo\s+\w+)\b[^.:;!?\n]{{0,20}}?es\s+(?:cierto|verdad|correcto|verdadero)
    |(?:lo\s+siguiente|todo\s+(?:esto|lo\s+\w+))\s+es\s+(?:falso|mentira|incorrecto|inventado)
    |rien\s+de\s+(?:tout\s+)?(?:cela|ceci|ça|ce\s+qui\s+\w+)\b[^.:;!?\n]{{0,20}}?n['’]est\s+(?:vrai
      |exact|correct)
    |(?:ce\s+qui\s+suit|tout\s+(?:cela|ceci|ce\s+qui\s+suit))\s+est\s+(?:faux|inexact|inventé)
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
_BACKWARDS = re.compile(r"\babove\b|\bI\s+said\b|\bobige\b|\banterior\b|\bprécède\b", re.IGNORECASE)
# The rest of the sentence.
_THAT = re.compile(
    rf"""(?<!\w)(?:
    it(?:\s+(?:is|was)|['’]s|\s+is)?\s*(?:{_FALSE_EN})\s+(?:that|to\s+say)
    |i\s+(?:deny|doubt|dispute)\s+that|(?:there\s+is\s+)?no\s+truth\s+(?:to|in)
    |es\s+(?:stimmt\s+nicht|ist\s+(?:nicht\s+(?:wahr|richtig|so)|falsch|unwahr)),?\s+dass
    |no\s+es\s+(?:cierto|verdad|correcto)\s+que|es\s+(?:falso|mentira|incorrecto)\s+que
    |il\s+n['’]est\s+pas\s+(?:vrai|exact|correct)\s+que|il\s+est\s+faux\s+que
    )(?!\w)""",
    re.IGNORECASE | re.VERBOSE,
)
# Right before a value: `it is not $120`.
_NOT = re.compile(
    r"(?:\b(?:is|are|was|were|costs?|has|have)\s+not|(?:is|are|was|were)n['’]t|\bist\s+nicht"
    r"|\bno\s+(?:es|son|cuesta)|\bn['’]est\s+pas)\s+(?:de\s+)?[A-Z]{0,3}\s?[$€£¥]?$",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:but|rather|instead|sondern|sino|mais|yet|only|until|before|more|less|enough)\b",
    re.IGNORECASE,
)
# `I cannot say that …`, `if you believe that …`: nobody denies anything.
_NEGATED = re.compile(
    r"\b(?:not|n['’]t|never|cannot|if|whether|unless|should|wenn|falls|si|believe|think)\s+"
    r"(?:\w+\s+){0,3}$",
    re.IGNORECASE,
)
_NEAR = 30


def find_denied(outline: Outline) -> list[Span]:
    """The parts of the answer that it takes back, in its order; they may overlap."""
    text = outline.text
    return sorted((*_taken_back(outline), *_denied_sentences(text, outline)))


def _taken_back(outline: Outline) -> Iterator[Span]:
    """`None of this is true:` speaks of what follows, unless it says otherwise or ends the text."""
    text = outline.text
    for found in _WHOLESALE.finditer(text):
        if _is_negated(text, found.start()) or _asks(outline, found.start()):
            continue
        is_last = not text[found.end() :].strip(" .!*_\n")
        if _BACKWARDS.search(found[0]) or is_last:
            yield 0, outline.sentence_at(found.start())[0]
        else:
            yield found.end(), len(text)


def _denied_sentences(text: str, outline: Outline) -> Iterator[Span]:
    for found in _THAT.finditer(text):
        if not _is_negated(text, found.start()) and not _asks(outline, found.start()):
            yield found.end(), outline.sentence_at(found.start())[1]


def _asks(outline: Outline, position: int) -> bool:
    end = outline.sentence_at(position)[1]
    return outline.text[end : end + 1] in ("?", "？")


def _is_negated(text: str, start: int) -> bool:
    return _NEGATED.search(text, max(0, start - _NEAR), start) is not None


def is_denied_value(outline: Outline, start: int, end: int) -> bool:
    """`The price is not $120`; a contrast (`not $120 but …`) corrects somebody else."""
    text = outline.text
    if not _NOT.search(text[max(0, start - _NEAR) : start]):
        return False
    sentence = outline.sentence_at(start)
    return _INSTEAD.search(text, end, min(sentence[1], end + 2 * _NEAR)) is None
