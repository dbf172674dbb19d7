"""Said or denied in German, Spanish and French: what stands between two commas, where a verb of
having or being there says so. Of other languages nothing is said."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callmark.grounding.negation import PolarToken
from callmark.grounding.numbers import language_of

_TURN = frozenset("aber sondern doch jedoch pero sino mais".split())
_DENYING = {
    "de": "nicht kein keine keinen keinem keiner keines ohne weder noch niemals nie deaktiviert"
    " ausgeschaltet",
    "es": "no sin ni tampoco nunca jamás ningún ninguna ninguno carece desactivado"
    " desactivada apagado apagada",
    "fr": "pas sans ni aucun aucune jamais non désactivé désactivée éteint éteinte",
}
_HAVING = {
    "de": "gibt hat haben verfügt verfügen bietet bieten vorhanden verfügbar inklusive inbegriffen"
    " enthalten erlaubt gestattet möglich aktiv aktiviert",
    "es": "hay tiene tienen ofrece ofrecen cuenta cuentan dispone disponen incluye incluyen"
    " incluido incluida disponible disponibles permite permiten permitido permitida acepta activo"
    " activa activado activada",
    "fr": "dispose disposent offre offrent propose proposent possède possèdent compris comprise"
    " inclus incluse disponible disponibles autorisé autorisés accepté acceptés actif active"
    " activé activée y",
}
_DENIES = {language: frozenset(words.split()) for language, words in _DENYING.items()}
_HAS = {language: frozenset(words.split()) for language, words in _HAVING.items()}
_NOT_SAID = re.compile(
    r"\b(?:wenn|falls|ob|könnte\w*|würde\w*|sollte\w*|bitte|si|podría\w*|sería\w*|debería\w*"
    r"|pourrai\w*|serai\w*|devrai\w*|nur|solo|sólo|seulement|außer|salvo|excepto|sauf)\b|[?¿]",
    re.IGNORECASE,
)
# Common words of languages of which no rule here knows how they deny.
_ELSEWHERE = frozenset(
    """
    il della delle degli che è sono con non anche nel gli uma não são dos das também você seu o
    het een van niet zijn dat voor ook geen de met och är inte för att det som jest nie się na
    oraz dla czy ve bir için var yok ile
    """.split()
)
_ENGLISH = frozenset("the and is are of with for your you has have was there this from it".split())
_FOREIGN = {
    "de": frozenset("der die das ein eine einen und nicht kein keine mit für gibt es hat".split()),
    "es": frozenset("el la los las un una y no con sin pero hay tiene".split()),
    "fr": frozenset("le la les un une et pas de avec sans mais il y dispose".split()),
}
_BEYOND_LATIN = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]{2}")
_WORD = re.compile(r"[^\W\d_]+")
LEAST = 3  # common words that give a language away


def grammar_of(text: str) -> str:
    """The language whose denials are known; nothing where there is none."""
    if _BEYOND_LATIN.search(text):
        return ""
    found = language_of(text)
    if found != "en":
        return found
    words = _WORD.findall(text.casefold())
    english = sum(word in _ENGLISH for word in words)
    if sum(word in _ELSEWHERE for word in words) >= max(LEAST, english + 1):
        return ""
    counts = {one: sum(word in known for word in words) for one, known in _FOREIGN.items()}
    best = max(counts, key=lambda one: counts[one])
    return best if counts[best] > english + 1 else "en"


def is_asserted_abroad(
    language: str, text: str, tokens: Sequence[PolarToken], first: int, last: int
) -> bool | None:
    """None: nobody can tell."""
    start, end = first, last
    while start and not _is_apart(text, tokens, start):
        start -= 1
    while end + 1 < len(tokens) and not _is_apart(text, tokens, end + 1):
        end += 1
    if _NOT_SAID.search(text, tokens[start].start, tokens[end].end + 1):
        return None
    words = {token.word for token in tokens[start : end + 1]}
    if words & _DENIES[language]:
        return False
    return True if words & _HAS[language] else None


def _is_apart(text: str, tokens: Sequence[PolarToken], at: int) -> bool:
    """Does something else begin here?"""
    between = text[tokens[at - 1].end : tokens[at].start]
    return tokens[at].word in _TURN or any(mark in between for mark in ",;:()")
