"""Yes and no in German, Spanish and French, as far as a few words tell: a negation may stand before
what it denies or after it, and holds between two commas or joining words."""

from __future__ import annotations

import re

from callmark.grounding.spans import Span

_NO = re.compile(
    r"\b(?:nicht|kein(?:e[mnrs]?)?|nie(?:mals)?|ohne|weder|deaktiviert|ausgeschaltet|aus"
    r"|no|nunca|jamás|sin|tampoco|ni|ningún\w*|desactivad[oa]s?|apagad[oa]s?"
    r"|pas|jamais|sans|aucune?|ne|désactivée?s?|éteinte?s?)\b|\bn['’]",
    re.IGNORECASE,
)
_EDGE = re.compile(
    r"[,;:()]|\s[-–—]\s|\b(?:aber|sondern|jedoch|allerdings|dafür|und|pero|sino|aunque|y|mais"
    r"|tandis que|et)\b",
    re.IGNORECASE,
)


def is_denied_abroad(text: str, sentence: Span, start: int, end: int) -> bool | None:
    """Is what stands here denied? None: the sentence denies something, and nobody can say what."""
    before = [one.end() for one in _EDGE.finditer(text, sentence[0], start)]
    after = _EDGE.search(text, end, sentence[1])
    part = (before[-1] if before else sentence[0], after.start() if after else sentence[1])
    if _NO.search(text, *part):
        return True
    return None if _NO.search(text, *sentence) else False
