"""Which field of a record an answer names where it states a value: the words of keys, with others
that say the same."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.record_tree import Field, ResultRecord, key_stems, stem
from callmark.grounding.spans import Span

MOST_FIELDS = 60  # of one record that are looked at
_WORD = re.compile(r"[^\W\d_]{2,}")
# One line for each thing that keys speak of, in en, de, es, fr.
_CLASSES = """
arrival arr arrive arrives arriving arrived land lands landing ankunft llegada llega arrivée
departure dep depart departs departing leave leaves leaving takeoff abfahrt abflug salida départ
minimum min lowest low lows mínimo mínima minimal tiefst tiefstwert
maximum max highest high highs peak máximo máxima maximal höchst höchstwert
opening open opens opened eröffnung apertura ouverture
closing close closes closed schluss cierre clôture fermeture
start starts starting begin begins beginning beginn anfang inicio comienza début
end ends ending finish finishes ende fin
fee fees charge surcharge gebühr gebühren comisión recargo frais
price prices priced cost costs costing fare fares preis preise kostet precio cuesta prix coûte
tax taxes vat steuer mwst impuesto impuestos iva taxe taxes tva
refund refunds refunded refundable back erstattung rückerstattung erstattet reembolso remboursement
deposit deposits kaution anzahlung fianza depósito caution acompte
discount discounts rabatt descuento remise
balance kontostand saldo solde
available verfügbar disponible
paid payment bezahlt zahlung pagado pago payé paiement
due owed owe owes outstanding fällig debe dû
billed invoiced berechnet facturado facturé
net netto neto
gross brutto bruto brut
subtotal zwischensumme subtotal
width wide breite ancho largeur
height tall high höhe altura hauteur
depth deep tiefe profundidad profondeur
length long länge longitud longueur
weight weighs weighing gewicht peso poids
gust gusts gusting böe böen ráfaga ráfagas rafale rafales
wind winds wind viento vent
humidity luftfeuchtigkeit humedad humidité
temperature temp temps temperatur temperatura température
sunrise sonnenaufgang amanecer lever
sunset sonnenuntergang atardecer coucher
addition additions added
deletion deletions deleted removed
rating rated rates bewertung valoración calificación
score scores scored
review reviews reviewed
distance away entfernung distancia
duration lasts lasting dauer dura durée
month monthly monatlich mensual mensuel mensuelle
day daily täglich tag diario diaria quotidien quotidienne journalier
week weekly wöchentlich semanal hebdomadaire
year yearly annual annually jährlich jahr anual annuel annuelle
hour hourly stündlich
night nightly nacht noche nuit
quantity qty menge cantidad quantité
issued ausgestellt emitido émis
created angelegt creado créé
updated aktualisiert actualizado
shipped versandt enviado expédié
delivered delivery zugestellt geliefert entregado livré
population einwohner población
revenue sales umsatz ingresos
profit gewinn beneficio bénéfice
salary gehalt salario salaire
bonus bonus
adult adults erwachsene adultos adultes
child children kinder niños enfants
bedroom bedrooms schlafzimmer dormitorios chambres
bathroom bathrooms bath baths badezimmer baños
interest zinsen interés intérêt
principal
limit limits grenze limit límite plafond
used verbraucht usado utilisé
remaining left verbleibend restante restant
taken genommen tomado
planned geplant previsto prévu
bid bids
ask asks
economy coach
first
"""
# What arrives also ends.
_IMPLIED = {"arrival": "end", "closing": "end", "departure": "start", "opening": "start"}
_CLASS_OF: dict[str, str] = {}
for _line in _CLASSES.strip().splitlines():
    _names = _line.split()
    for _name in _names:
        _CLASS_OF.setdefault(stem(_name), _names[0])
# Words of keys that say nothing of what is meant.
_GENERIC = frozenset(
    stem(word)
    for word in """
    value amount number id code usd eur gbp chf pct percent percentage km mi miles m cm mm kg g
    lb lbs ml l c f min mins minutes hrs hours sec seconds mph kmh kph scheduled est utc local
    iso at of the in on to is and per by from total current item items count time date datetime
    timestamp info details data figure unit units
    """.split()
)


@lru_cache(maxsize=1 << 14)
def _class_of(one: str) -> str:
    return _CLASS_OF.get(one, one)


@lru_cache(maxsize=1 << 12)
def words_of_key(key: str) -> frozenset[str]:
    """What a key speaks of."""
    return frozenset(_class_of(one) for one in key_stems(key) if one not in _GENERIC)


def words_said(text: str, start: int, end: int) -> frozenset[str]:
    return classes_of(frozenset(stem(word) for word in _WORD.findall(text, start, end)))


def classes_of(stems: frozenset[str]) -> frozenset[str]:
    classes = frozenset(map(_class_of, stems))
    return classes | {_IMPLIED[one] for one in classes if one in _IMPLIED}


def words_of(field: Field, within: ResultRecord) -> frozenset[str]:
    """What a field of a record speaks of, or of an object in it: `refund: {value: …}`."""
    words = words_of_key(field.key)
    return words if field.record is within else words | words_of_key(field.record.key)


def scope_of(field: Field) -> ResultRecord:
    """The record whose fields could be taken for each other."""
    record = field.record
    if record.parent is not None and not record.kind.endswith("/*") and not words_of_key(field.key):
        return record.parent
    return record


def beside(field: Field) -> Iterator[Field]:
    """The other fields of its record, and of the objects in it that are no list."""
    record = scope_of(field)
    near = [record, *(one for one in record.children if not one.kind.endswith("/*"))]
    left = MOST_FIELDS
    for one in near:
        for other in one.fields[:left]:
            if other is not field:
                yield other
        left -= len(one.fields)
        if left <= 0:
            return


_EDGE = re.compile(
    r"[,;:()|•]|\s[-–—]\s|\b(?:and|or|but|with|und|oder|y|et|ou|mit|con|avec)\b", re.I
)


def _is_table(record: ResultRecord) -> bool:
    """`{economy: 120, business: 240}`: every key names another kind of one thing."""
    return len(record.fields) > 1 and all(one.number is not None for one in record.fields)


def windows(text: str, start: int, end: int, line: Span, values: Sequence[Span]) -> Iterator[Span]:
    """What stands right before a value, and right after it: up to another value, a comma, or a word
    that joins."""
    first = max([line[0], start - 60, *(stop for _, stop in values if stop <= start)])
    edges = list(_EDGE.finditer(text, first, start))
    is_right_before = edges and not text[edges[-1].end() : start].strip(" $€£*_")
    if is_right_before and not edges[-1][0].isalpha():  # `8 taken and 2 planned` are two
        edges.pop()  # `Business: $50`, `Business ($50)`
    yield (edges[-1].end() if edges else first), start
    last = min([line[1], end + 40, *(begin for begin, _ in values if begin >= end)])
    edge = _EDGE.search(text, end, last)
    yield end, (edge.start() if edge else last)


# What may stand between the name of a field and its value: `departing from JFK at`, `high of the
# week was`.
_FILLER = frozenset(
    """
    of is was are were be been at for to from in on by the a an your its their this that will
    about around approximately roughly only just now currently up as per each with it set comes
    go goes going get being coming listed recorded reported stands currently class price prices
    time date amount day week month year already still usually local est ist war sind am um von bis
    bei der die das den dem ein eine ihr ihre auf para de del la el en es son un una a las los por
    est sont le les des du à au aux une votre vos
    """.split()
)


class NamedField(NamedTuple):
    """`telling`: the words that name it, and not the one that it was taken for; `shared`: those
    that name both, and what they are parts of."""

    field: Field
    telling: frozenset[str]
    shared: frozenset[str] = frozenset()


def is_adjacent(text: str, span: Span, named: NamedField, *, after: bool) -> bool:
    """Is nothing else spoken of between a word that names the field and the value that the span
    ends at, or after which it begins?"""
    words = list(_WORD.finditer(text, *span))
    for word in words if after else reversed(words):
        classes = classes_of(frozenset((stem(word[0]),)))
        if not named.telling.isdisjoint(classes):
            return True
        is_filler = word[0].casefold() in _FILLER or word[0][0].isupper()
        is_filler = is_filler or not named.shared.isdisjoint(classes)
        if not is_filler or (after and word[0].casefold() in ("that", "at", "to", "from", "for")):
            return False
    return False


def find_named(
    fields: Sequence[Field],
    said: frozenset[str],
    also: frozenset[str],
    could_be: Callable[[Field], bool],
) -> list[NamedField]:
    """For each of these fields another one; nothing, where one of them has none."""
    found: list[NamedField] = []
    for field in fields if said else ():
        named = _find_other(field, said, also, could_be)
        if named is None:
            return []
        found.append(named)
    return found


def _find_other(
    field: Field, said: frozenset[str], also: frozenset[str], could_be: Callable[[Field], bool]
) -> NamedField | None:
    """Another field beside this one that the words `said` name, and not this one; `also` are words
    further off, by which this one may be named."""
    scope = scope_of(field)
    own = words_of(field, scope)
    best: list[NamedField] = []
    most = 0
    for other in beside(field):
        words = words_of(other, scope)
        telling = words - own
        if not telling and _is_table(scope):  # `economy` is no `basic_economy`
            telling = words
        if (
            telling
            and telling <= said
            and own - words
            and (own - words).isdisjoint(said | also)
            and len(words & said) >= most
            and could_be(other)
        ):
            if len(words & said) > most:
                best, most = [], len(words & said)
            best.append(NamedField(other, telling, (words & own) | words_of_key(scope.key)))
    return best[0] if len({one.field.key for one in best}) == 1 else None
