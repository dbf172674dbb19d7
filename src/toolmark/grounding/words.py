"""Word lists for en, de, es, fr: words too common to be evidence, words that admit a failure,
abbreviations whose full stop ends no sentence. Plain tuples, so that scoring reads no file."""

from __future__ import annotations

import re

_STOP = """
a an and are as at be been but by can could did do does for from had has have he her his how i if in
into is it its may me more most my no none not null nil of off ok on one or our out over she so some
such than that the their them then there these they this to too true false undefined up us was we
were what when where which while who will with would yes you your unknown error success
aber als am an auch auf aus bei bin bis da das dass dem den der des die dies du ein eine einem einen
einer er es für hat ich ihr im in ist ja kein mit nach nein nicht noch nur oder sein sich sie sind
so über um und uns vom von vor war was wenn wer wie wir wird zu zum zur wahr falsch
al como con de del el ella en es esa ese esta este la las lo los más mi muy ni no nos o para pero
por que se si sin su sus también te tu un una uno y ya sí verdadero falso
à au aux avec ce ces cette dans de des du elle en est et eux il ils je la le les leur lui ma mais me
mes moi mon ne nos notre nous ou où par pas pour qu que qui sa se ses son sur ta te tes toi ton tu
un une vos votre vous oui non vrai faux
"""
STOP_WORDS = frozenset(_STOP.casefold().split())

# Stems: each is looked for at the start of a word, so that inflected forms count.
_FAILURE = """
fail error unable unavailable cannot couldn can't could\\snot couldn't wasn't\\sable unsuccessful
timeout timed\\sout not\\sfound no\\sresult no\\sluck denied refused unreachable problem issue
went\\swrong did\\snot\\swork didn't\\swork not\\savailable nothing\\sfound nothing\\swas\\sfound
fehl gescheitert nicht\\smöglich konnte\\snicht konnten\\snicht nicht\\sgefunden nicht\\sverfügbar
zeitüberschreitung abgelehnt verweigert leider\\snicht unmöglich keine\\sergebnisse
falló fallo fallar falla imposible no\\spude no\\sse\\spudo no\\sfue\\sposible no\\sencontr
no\\sdisponible denegad rechazad tiempo\\sde\\sespera sin\\sresultados
échec échou erreur impossible n'ai\\spas\\spu n’ai\\spas\\spu n'a\\spas\\spu n’a\\spas\\spu
introuvable indisponible refusé délai\\sdépassé aucun\\srésultat pas\\strouvé
"""
_FAILURE_RE = re.compile(
    r"(?<!\w)(?:" + "|".join(sorted(_FAILURE.split(), key=len, reverse=True)) + ")",
    re.IGNORECASE,
)

# No sentence ends after the first kind; after the second, none ends before a digit; after the
# third, none ends before a lower-case letter.
ABBREVIATIONS = frozenset(
    """
    e.g i.e eg ie vs cf approx dept dr mr mrs ms prof st gen sen capt lt mt ave blvd ph.d
    z.b d.h o.ä bzw ca evtl ggf inkl exkl zzgl hr fr str p.ej sra dra ud uds aprox av mme mlle env
    p.ex
    """.split()
)
BEFORE_DIGITS = frozenset(
    """
    no nos nr art fig vol min max est ed abs al tel p pp pág núm ex jan feb mar apr jun jul aug sep
    sept oct nov dec mio mrd mind
    """.split()
)
BEFORE_LOWER = frozenset("etc inc ltd co corp jr sr usw u.a a.m p.m u.s u.k ej m".split())


def admits_failure(text: str) -> bool:
    """Does the text hold a word that says that something did not work?"""
    return _FAILURE_RE.search(text) is not None
