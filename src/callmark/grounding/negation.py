"""Said or denied: how far a negation reaches in a clause, and what takes it back. In German,
Spanish and French only what stands between two commas, where a verb of having or being there says
so; of other languages nothing is said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from callmark.grounding.numbers import language_of
from callmark.grounding.polar_keys import OPPOSITES, SAYING, root
from callmark.grounding.spans import Span
from callmark.grounding.text import Frozen, beyond_ascii, place_tokens

FURTHEST_PART = 16  # words between a kind of thing and a part of it
NEAR_PREDICATE = 5  # words after a verb in which its predicate stands
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_NO = frozenset(
    """
    no not never without lack lacks lacking neither nor none nothing nobody cannot unavailable non
    excludes excluding nicht kein keine keinen ohne sin nunca ningún ninguna sans aucun aucune
    jamais
    """.split()
)
# `No, it is`, `no problem`, `not only`: they deny nothing.
_NO_DENIAL_AFTER = frozenset(
    "problem problems worries doubt wonder matter only just merely surprise".split()
)
_ARTICLES = frozenset("no without non".split())  # they deny what follows them, up to a comma
_TURN = frozenset("but however although though whereas yet besides only".split())
_EXCEPT = frozenset("except apart aside".split())
_VERBS = frozenset(
    """
    is are was were has have had offers offer provides provide does do did accepts accept
    features feature there serves serve includes include allows allow takes take boasts comes come
    needs need requires require contains contain gets get supports support covers cover can will
    """.split()
)
_CONTRACTED = re.compile(r"(?:it|there|that|he|she|they|you|we|i|here|what|who)'(?:s|re|ve)")
_HAVING = frozenset("has have had there offers provides features includes with comes".split())
# Where what follows a comma is a consequence: `…, making it a quiet place`.
_CONSEQUENCES = frozenset("making creating giving ensuring allowing leaving".split())
# What may stand before a word for all of a kind, or after it: `no parking`, `parking options`.
_BEFORE_ALL = frozenset(
    """
    offer offers offered provide provides have has any or and nor of for with is are there
    ample plenty sufficient convenient free some dedicated own
    """.split()
)
_AFTER_ALL = frozenset(
    """
    option options service services facility facilities space spaces area areas available
    availability access is are and or nor for at on nearby
    """.split()
)
_HARDLY = re.compile(
    r"\b(?:limited|difficult|hard|tough|challeng\w+|scarce|tricky|issues?|problem\w*|nightmare)\b",
    re.IGNORECASE,
)
_BE = frozenset("is are was were be been ist sind está están est sont it's they're that's".split())
_AFTER_PREDICATE = frozenset(
    "and or but for at in on from to now currently right today with as because since".split()
)
_ANSWERS = {
    "no": False, "not": False, "none": False, "false": False, "unavailable": False, "nein": False,
    "off": False, "disabled": False, "excluded": False, "prohibited": False, "forbidden": False,
    "optional": False,
    "yes": True, "true": True, "available": True, "included": True, "ja": True, "sí": True,
    "oui": True, "non": False, "on": True, "enabled": True, "required": True, "allowed": True,
}  # fmt: skip
_STATES = frozenset(
    "available included offered provided allowed accepted permitted supported possible required"
    " needed enabled".split()
)
_AFTER_ANSWER = re.compile(r"\s?[,;.)\]\n\\—–|-]")
_SINGULAR = frozenset("is isn't was wasn't has hasn't does doesn't".split())
_SWITCHED = frozenset(
    "switched turned set to currently now still strictly also fully always completely is be been"
    " not at an a on by".split()
)
_JUST_NOW = frozenset("currently now still already presently temporarily".split())


class PolarToken(Frozen, frozen=True):
    start: int
    end: int
    word: str


def tokens_of(text: str, span: Span) -> list[PolarToken]:
    return [
        PolarToken(found.start(), found.end(), found[0].casefold().replace("’", "'"))
        for found in _TOKEN.finditer(text, *span)
    ]


class ClauseWords(Frozen, frozen=True):
    """The words of one clause, and where those of a key stand among them."""

    text: str
    tokens: Sequence[PolarToken]
    first: int
    last: int

    @property
    def span(self) -> Span:
        return self.tokens[self.first].start, self.tokens[self.last].end

    def says(self, manner: str) -> bool:
        """Does anything say that it is required, allowed, included or switched on, or not?"""
        words = SAYING[manner] | OPPOSITES[manner]
        for at, token in enumerate(self.tokens):
            if token.word in words or (
                manner == "required"
                and token.word in ("have", "has")
                and [one.word for one in self.tokens[at + 1 : at + 2]] == ["to"]
            ):
                return True
        return self.is_answered

    @property
    def is_answered(self) -> bool:
        """`Pets: yes`, `no pets`, `without a referral`."""
        if self.last + 1 < len(self.tokens):
            following = self.tokens[self.last + 1]
            between = self.text[self.tokens[self.last].end : following.start]
            if following.word in _ANSWERS and ":" in between:
                return True
        before = [token.word for token in self.tokens[max(0, self.first - 2) : self.first]]
        return not _ARTICLES.isdisjoint(before)

    def is_done(self) -> bool:
        """`it is signed`, `nobody did sign it`; not `you can sign`."""
        verb = self.tokens[self.last].word
        before = [token.word for token in self.tokens[max(0, self.last - 4) : self.last]]
        may_be_infinitive = "can" in before or "to" in before
        return not may_be_infinitive or verb.endswith("ed")

    @property
    def is_had(self) -> bool:
        """`has a bow thruster`, `there is one`."""
        before = [token.word for token in self.tokens[max(0, self.first - 4) : self.first]]
        return any(word in _HAVING or _CONTRACTED.fullmatch(word) for word in before)

    @property
    def has_number_after(self) -> bool:
        """`a maximum runtime of 8 hours`."""
        following = [token.word for token in self.tokens[self.last + 1 : self.last + 4]]
        if following[:1] in (["of"], ["is"], ["was"]):
            following = following[1:]
        return bool(following) and following[0][:1].isdecimal()

    def is_denied(self, manner: str) -> bool | None:
        """None: nobody can tell."""
        is_negated = self.first > 0 and self._denies(self.first - 1)
        opposites = OPPOSITES[manner] | OPPOSITES[""]
        if self._is_off_now(opposites):
            return None if is_negated else True
        after = self._denied_after(is_negated, opposites)
        if after is not None:
            return after
        if any(self._denies(at) for at in range(self.first + 1, self.last)):
            return True
        return self._denied_before()

    def _denies(self, at: int) -> bool:
        token = self.tokens[at]
        following = self.tokens[at + 1] if at + 1 < len(self.tokens) else None
        if token.word in _NO or token.word.endswith("n't"):
            if following is None:
                return True
            if token.word in ("no", "not") and following.word in _NO_DENIAL_AFTER:
                return False
            if token.word == "no" and following.word in _BE:  # `waterproof no is available`
                return False
            # `No, breakfast is included` is an answer.
            return token.word != "no" or not re.match(
                r"\s?[,:;!.–—]", self.text[token.end : following.start]
            )
        before = self.tokens[at - 1].word if at else ""
        return (before, token.word) in (("rather", "than"), ("instead", "of"))

    def _denied_before(self) -> bool | None:
        """A negation holds until another predicate begins; that of an article (`no sauna`) reaches
        over a comma only in a list that ends with `or`."""
        denied: bool | None = False
        is_article = False
        tokens, first = self.tokens, self.first
        for at, token in enumerate(tokens[: first + 1]):
            if at and self._is_after_comma(at):
                if self._has_verb(at, len(tokens)):
                    denied = False
                elif denied and is_article and not self._ends_with_or(at):
                    denied = None
            if at == first:
                break
            if token.word == "and" and at + 1 < first and self._has_verb(at + 1, first + 1):
                denied = False
            if self._denies(at):
                denied, is_article = True, token.word in _ARTICLES
            elif token.word in _TURN or token.word in _CONSEQUENCES:
                denied = False
            elif token.word in _EXCEPT:
                denied = None
        return denied

    def _ends_with_or(self, at: int) -> bool:
        return any(token.word in ("or", "nor", "no", "and") for token in self.tokens[at:])

    def is_predicate(self) -> bool:
        """`is not available.`, not `the available variants`."""
        before = [token.word for token in self.tokens[max(0, self.first - 3) : self.first]]
        if not any(word in _BE or word.endswith("n't") for word in before):
            return False
        last = self.last
        return last + 1 == len(self.tokens) or (
            self.tokens[last + 1].word in _AFTER_PREDICATE
            or _AFTER_ANSWER.match(self.text, self.tokens[last].end) is not None
        )

    def _is_after_comma(self, at: int) -> bool:
        return "," in self.text[self.tokens[at - 1].end : self.tokens[at].start]

    def is_verb(self, at: int) -> bool:
        word = self.tokens[at].word
        return word in _VERBS or _CONTRACTED.fullmatch(word) is not None

    def _has_verb(self, at: int, end: int) -> bool:
        """Has the part up to the next comma a verb of its own?"""
        for place in range(at, end):
            if place > at and self._is_after_comma(place):
                return False
            if self.is_verb(place):
                return True
        return False

    def _ends_here(self, at: int) -> bool:
        return at + 1 == len(self.tokens) or (
            _AFTER_ANSWER.match(self.text, self.tokens[at].end) is not None
        )

    def _is_answer(self, at: int) -> bool:
        """`waterproof yes`, also in `waterproof yes is sold out`."""
        word, following = self.tokens[at].word, self.tokens[at + 1 : at + 2]
        is_told = word in ("yes", "no") and any(one.word in _BE for one in following)
        return word in _ANSWERS and (is_told or self._ends_here(at))

    def _verb_went_before(self) -> bool:
        """Has what it stands in, from the comma before it on, a verb already?"""
        for at in range(self.first - 1, -1, -1):
            if self._is_after_comma(at + 1):
                return False
            if self.is_verb(at):
                return True
        return False

    def _is_off_now(self, opposites: frozenset[str]) -> bool:
        """`with roaming currently disabled`."""
        tokens, at = self.tokens, self.last + 1
        while at < len(tokens) and tokens[at].word in _JUST_NOW:
            at += 1
        is_after = self.last + 1 < at < len(tokens)
        return is_after and tokens[at].word in opposites and self._ends_here(at)

    def _denied_after(self, is_negated: bool, opposites: frozenset[str]) -> bool | None:
        """What is said of it afterwards, up to its verb. None: nothing."""
        tokens, last = self.tokens, self.last
        before_it = [token.word for token in tokens[max(0, self.first - 3) : self.first]]
        # `the one with a lift doesn't allow it`: that is not said of the lift.
        end = last + 2 if "with" in before_it and not is_negated else len(tokens)
        is_apart = False
        has_verb = self._verb_went_before()
        for at in range(last + 1, min(end, len(tokens))):
            word, before = tokens[at].word, tokens[at - 1]
            between = self.text[before.end : tokens[at].start]
            # `water resistance: no`, and `water resistance no` where nothing follows.
            if at == last + 1 and ":" in between:
                return None if word not in _ANSWERS and is_negated else not _ANSWERS.get(word, True)
            if "," in between and has_verb:
                return None  # `there is a pool, the sauna is not open`
            if at == last + 1 and self._is_answer(at):
                # `no WiFi available`: what went before decides.
                return None if word in _STATES else not _ANSWERS[word]
            if at == last + 1 and word == "not" and at + 1 < len(tokens):
                return True if tokens[at + 1].word in _STATES else None
            if word == "unavailable":
                return True
            if word in ("but", "while"):
                return None
            is_apart = is_apart or (word == "and" and "," in between)
            if is_apart and word in _SINGULAR:
                return None  # `, and WiFi is not` is said of WiFi alone
            if word in _VERBS or word.endswith("n't"):
                if before.word in ("and", "but", "or", "which", "that", "they", "it"):
                    return None
                return self._predicate_denies(at, is_negated, opposites)
        return None

    def _predicate_denies(
        self, at: int, is_negated: bool, opposites: frozenset[str]
    ) -> bool | None:
        """`isn't`, `is not`, `is switched off`."""
        following = [token.word for token in self.tokens[at + 1 : at + 1 + NEAR_PREDICATE]]
        is_no = self.tokens[at].word.endswith("n't") or "not" in following[:2]
        for word in following:
            if word in opposites:
                return None if is_negated else not is_no
            if word not in _SWITCHED and not word.endswith("ly"):
                break
        return True if is_no or "unavailable" in following[:2] else None

    def is_of_all(self, clause: Span, parts: frozenset[str]) -> bool:
        """`no parking`, `parking is available`; not `no garage parking`, `the parking fee`."""
        tokens, first, last = self.tokens, self.first, self.last
        if first and tokens[first - 1].word not in _BEFORE_ALL | _NO:
            return False
        is_last = last + 1 == len(tokens) or (
            _AFTER_ANSWER.match(self.text, tokens[last].end) is not None
        )
        if not is_last and tokens[last + 1].word not in _AFTER_ALL:
            return False
        near = tokens[max(0, first - FURTHEST_PART) : last + FURTHEST_PART]
        return not any(root(token.word) in parts for token in near) and not _HARDLY.search(
            self.text, *clause
        )


_TURN_ABROAD = frozenset("aber sondern doch jedoch pero sino mais".split())
_DENYING = {
    "de": "nicht kein keine keinen keinem keiner keines ohne weder noch niemals nie deaktiviert"
    " ausgeschaltet",
    "es": "no sin ni tampoco nunca jamás ningún ninguna ninguno carece desactivado"
    " desactivada apagado apagada",
    "fr": "pas sans ni aucun aucune jamais non désactivé désactivée éteint éteinte",
}
_HAVING_ABROAD = {
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
_HAS = {language: frozenset(words.split()) for language, words in _HAVING_ABROAD.items()}
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
_NOT_ENGLISH = _ELSEWHERE.union(*_FOREIGN.values())
_BEYOND_LATIN_LETTER = re.compile(r"[^\W\d_\u0000-\u024f\u1e00-\u1eff]")
_BEYOND_LATIN = re.compile(rf"{_BEYOND_LATIN_LETTER.pattern}{{2}}")
_WORD = re.compile(r"\b[^\W\d_]+\b")  # `hat` is a word, in `HAT023` it is none
LEAST = 3  # common words that give a language away


@lru_cache(maxsize=8)  # asked by two rules of one answer
def grammar_of(text: str) -> str:
    """The language whose denials are known; nothing where there is none."""
    is_foreign = any(map(_BEYOND_LATIN_LETTER.match, beyond_ascii(text)))
    if is_foreign and _BEYOND_LATIN.search(text):
        return ""
    found = language_of(text)
    if found != "en":
        return found
    placed = place_tokens(text)
    # Letters between two word boundaries are a token without digits: no other is asked for.
    words = _WORD.findall(text.casefold()) if placed is None else placed.words
    if _NOT_ENGLISH.isdisjoint(words):
        return "en"
    counted = Counter(words)

    def count(known: frozenset[str]) -> int:
        return sum(map(counted.__getitem__, known & counted.keys()))

    english = count(_ENGLISH)
    if count(_ELSEWHERE) >= max(LEAST, english + 1):
        return ""
    counts = {one: count(known) for one, known in _FOREIGN.items()}
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
    return tokens[at].word in _TURN_ABROAD or any(mark in between for mark in ",;:()")
