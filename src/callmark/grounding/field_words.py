"""Which field of a record an answer names where it states a value: the words of keys, with others
that say the same; and what the number of a field is measured in."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from callmark.grounding.arithmetic import Rounding
from callmark.grounding.list_columns import ListColumns
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE, TOLERANCE
from callmark.grounding.reading import (
    LONGEST_LEAF,
    convert,
    dimension_of,
    ends_in_unit,
    is_measured_key,
    is_money_key,
    is_same_unit,
    read_leaf,
    scale_of_key,
    unit_called,
    unit_of_key,
    units_beside,
)
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import Span
from callmark.grounding.text import CODES, SIGNS, once
from callmark.grounding.values import Value, decimals_of

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
area size fläche superficie surface
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
    r"[,;:()|•+]|\s[-–—]\s|\b(?:and|or|but|with|und|oder|y|et|ou|mit|con|avec)\b", re.I
)


def _is_table(record: ResultRecord) -> bool:
    """`{economy: 120, business: 240}`: every key names another kind of one thing."""
    fields = record.fields[:MOST_FIELDS]
    return len(fields) > 1 and all(one.number is not None for one in fields)


# `16.0¢/kWh` says nothing of `kwh`.
_PER_UNIT = re.compile(r"[¢€$£%]?/[^\W\d_]{1,6}")


def windows(text: str, start: int, end: int, line: Span, values: Sequence[Span]) -> Iterator[Span]:
    """What stands right before a value, and right after it: up to another value, a comma, or a word
    that joins."""
    first = max([line[0], start - 60, *(stop for _, stop in values if stop <= start)])
    edges = list(_EDGE.finditer(text, first, start))
    is_right_before = edges and not text[edges[-1].end() : start].strip(" *_" + SIGNS)
    # The cell before may hold a value of its own, and its words belong to that.
    is_cell = edges and edges[-1][0] == "|" and "|" not in text[first : edges[-1].start()]
    is_cell = is_cell and any(stop == first for _, stop in values)
    if is_right_before and not is_cell and not edges[-1][0].isalpha():  # `8 taken and 2 planned`
        edges.pop()  # `Business: $50`, `Business ($50)`
    yield (edges[-1].end() if edges else first), start
    last = min([line[1], end + 40, *(begin for begin, _ in values if begin >= end)])
    per = _PER_UNIT.match(text, end, last)
    end = per.end() if per else end
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
    if own <= also:  # it is named itself; nearly always
        return None
    best: list[NamedField] = []
    most, is_table = 0, _is_table(scope)
    for other in beside(field):
        words = words_of(other, scope)
        telling = words - own
        if not telling and is_table:  # `economy` is no `basic_economy`
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


# --- what numbers are measured in

_UNIT_KEYS = (("unit",), ("units",))
_SCALE_KEYS = (*_UNIT_KEYS, ("einheit",), ("unidad",), ("unité",), ("unite",), ("scale",))
_CURRENCY_KEYS = (("currency",), ("ccy",), ("code",))
_CENTS = frozenset("cent cents ct cts pence penny minor céntimos centimes rappen".split())
# Whole numbers that are no amounts of money, whatever currency stands beside them.
_SHARES = frozenset(
    """
    pct percent percentage share rate ratio discount margin probability chance humidity level
    completion progress utilization usage interest apr apy yield tax vat fee prozent anteil quote
    porcentaje tasa taux pourcentage
    """.split()
)
_LEFT = frozenset(
    """
    balance saldo solde kontostand available disponible remaining net profit gain change delta
    """.split()
)
_NO_AMOUNTS = frozenset(
    """
    count qty quantity id ids number num no year month day created updated at time timestamp seconds
    minutes hours days nights size page pages offset version seats rooms points weight distance
    duration index rank level age score rating zip postcode phone bytes kwh km ml
    """.split()
)
# What services measure in seconds and metres without saying so.
_BY_CUSTOM = {
    "s": frozenset("duration elapsed uptime runtime spent eta".split()),
    "m": frozenset("distance length height altitude elevation".split()),
    "m/s": frozenset("speed velocity pace gust gusts wind".split()),
}
MOST = 20  # leaves with one number, and numbers near a converted one, that are looked at
MOST_ROUNDED = 20  # numbers that may be rounded to one
LONGEST_TEXT = 200  # characters of a leaf that may name the unit of its number
LONGEST_NUMBER = 24  # and of one that is little more than a number
HIGHEST = 4  # records above a leaf in which its currency may stand


@lru_cache(maxsize=1 << 8)
def _measured_in(text: str) -> dict[int, frozenset[str]]:
    found: dict[int, set[str]] = {}
    for value in read_leaf(text):
        for reading in value.readings:
            found.setdefault(reading, set()).add(value.unit)
    return {reading: frozenset(units) for reading, units in found.items()}


def _units_in_prose(text: str, readings: Sequence[int]) -> frozenset[str]:
    """All units that a long text gives one of these numbers; the empty one: none, somewhere."""
    known = _measured_in(text)
    return frozenset().union(*(known.get(reading, ()) for reading in readings))


class Measures:
    """What each leaf's number is measured in, as far as key, text or a field beside it say."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index
        self._named: dict[int, dict[str, str]] = {}
        self._cents: dict[str, bool] = {}

    def unit_of(self, field: Field, readings: Sequence[int]) -> str:
        """Empty: not known."""
        if isinstance(field.value, str):
            if len(field.value) > LONGEST_TEXT:
                units = _units_in_prose(field.value, readings)
                return "" if "" in units else min(units, default="")
            for value in read_leaf(field.value):
                if value.unit and any(reading in value.readings for reading in readings):
                    return value.unit
            if len(field.value) > LONGEST_NUMBER:
                return ""
        words = key_words(field.key)
        return unit_of_key(words) or self._unit_beside(field, words)

    def finer_than(self, value: Value, rounding: Rounding) -> list[tuple[int, list[Field]]]:
        """Each number that may be rounded to it, with its leaves; not what is as coarse itself."""
        low, high, half, _ = rounding
        near = self._index.between(low, high)
        if not near and value.form.percent:  # `42.4%` of 0.4237
            low, high, half = low // 100, high // 100, max(half // 100, 1)
            near = self._index.between(low, high) if decimals_of(value) else near
        fine = [one for one in near[:MOST_ROUNDED] if one % (2 * half)]
        return [(one, self._index.numbers[one][:8]) for one in fine]

    def may_last(self, field: Field, readings: Sequence[int]) -> bool:
        """Is it measured in nothing, or in time?"""
        unit = self.unit_of(field, readings)
        return not unit or dimension_of(unit) == "time"

    def _unit_beside(self, field: Field, words: tuple[str, ...]) -> str:
        """`currency` of the record or one above it, `unit` of the record."""
        own = self._names(field.record)
        named = own.get(f"{field.key}_unit") or own.get(f"{field.key}_currency")
        if named:
            return named
        if is_money_key(words):
            currency = self._currency_of(field)
            if currency:
                return currency
        is_measured = is_measured_key(words) or is_measured_key(key_words(field.record.key))
        return own.get("unit", "") if is_measured else ""

    def _currency_of(self, field: Field) -> str:
        """`target_currency` for `target_amount`, else the currency of the record or one above."""
        begin = key_words(field.key)[:1]
        record: ResultRecord | None = field.record
        for _ in range(HIGHEST):
            if record is None:
                break
            names = self._names(record)
            for key, unit in names.items():
                words = key_words(key)
                if words[-1:] == ("currency",) and words[:-1] == begin:
                    return unit
            if "currency" in names:
                return names["currency"]
            record = record.parent
        return ""

    def _names(self, record: ResultRecord) -> dict[str, str]:
        names = self._named.get(record.number)
        if names is None:
            names = self._named[record.number] = {}
            for field in record.fields:
                words = key_words(field.key)
                if isinstance(field.value, str) and words and len(field.value) <= 24:
                    unit = unit_called(field.value)
                    if unit and words[-1] in ("unit", "units", "currency", "code"):
                        names[field.key] = unit
                        if words in (("currency", "code"), ("currency",)):
                            names["currency"] = unit
                        elif words in (("unit",), ("units",)):
                            names["unit"] = unit
        return names

    def in_its_unit(self, value: Value, fields: Sequence[Field]) -> tuple[list[Field], list[Field]]:
        """Those that may be meant, and those whose unit or scale is another one."""
        if not value.unit and value.form.factor == 1:
            return list(fields), []
        right: list[Field] = []
        wrong: list[Field] = []
        for field in fields[:MOST]:
            (right if self._agrees(value, field) else wrong).append(field)
        right += fields[MOST:]
        return right, wrong

    def in_cents(self, value: Value) -> list[Field]:
        """`$4.41`, where a result has 441 and says that these are cents, or names a currency and
        has amounts without decimals only, as payment services do."""
        near = self._index.numbers
        found = near.get(100 * value.readings[0], []) + near.get(-100 * value.readings[0], [])
        return [one for one in found[:MOST] if self._is_in_cents(one)]

    def paid(self, value: Value, turn: int | None) -> list[Field]:
        """`€17.99 at the baker's`, where the account has -17.99."""
        if not value.readings or value.readings[0] <= 0 or value.form.sign is not None:
            return []
        other = value._replace(readings=tuple(-one for one in value.readings))
        fields, _ = self.in_its_unit(other, self._index.stating(other, turn))
        return [one for one in fields if _is_outgoing(one)]

    @once
    def scales(self) -> list[int]:
        """Thousands, millions: what keys, or a field `unit`, say that numbers are."""
        found = {scale_of_key(key_words(key)) for key in self._index.tree.keys}
        return sorted((found | {self._scale_of_all}) - {1})

    @once
    def _scale_of_all(self) -> int:
        """`"units": "in_thousands_usd"`, `"einheit": "TEUR"`."""
        for text, field in self._index.tree.text_fields:
            if key_words(field.key)[-1:] in _SCALE_KEYS:
                scale = scale_of_key(key_words(text.casefold()))
                if scale > 1:
                    return scale
        return 1

    @once
    def _units_of_keys(self) -> frozenset[str]:
        units = {unit_of_key(key_words(key)) for key in self._index.tree.keys}
        words = {word for key in self._index.tree.keys for word in key_words(key)}
        units |= {unit for unit, names in _BY_CUSTOM.items() if not names.isdisjoint(words)}
        return frozenset(units - {""})

    def as_kept(self, value: Value) -> Iterator[int]:
        """What the number is in other measures that the results use."""
        reading, dimension = value.readings[0], dimension_of(value.unit) if value.unit else ""
        if dimension == "money" and self.has_cents:
            yield 100 * reading
        for scale in self.scales:
            if abs(reading) >= scale * SCALE:
                yield reading // scale
        for unit in units_beside(value.unit) if dimension and dimension != "money" else ():
            if unit in self._units_of_keys:
                same = convert(reading, value.unit, unit)
                if same is not None:
                    yield same

    def in_scale(self, value: Value, half: int) -> Iterator[Field]:
        """The leaves of a scale of their own which come to the value, as far as it is stated."""
        for scale in self.scales if value.readings else ():
            low, high = (value.readings[0] + more for more in (-half, half))
            for number in self._index.between(low // scale, high // scale)[:MOST]:
                for field in self._index.numbers[number][:MOST]:
                    keys = (field.key, field.record.key)
                    if scale == self._scale_of_all or any(
                        scale_of_key(key_words(one)) == scale for one in keys
                    ):
                        yield field

    def _is_in_cents(self, field: Field) -> bool:
        if field.key in self._cents:
            return self._cents[field.key]
        beside = (one.value for one in _units_around(field))
        is_named = not _CENTS.isdisjoint(key_words(field.key)) or any(
            isinstance(one, str) and not _CENTS.isdisjoint(_WORD.findall(one.casefold()))
            for one in beside
        )
        is_so = is_named or (self._names_currency and field.key in self._whole_keys)
        self._cents[field.key] = is_so
        return is_so

    @once
    def held(self) -> list[int]:
        """What the results hold and come to; asked of every number without a base, so read once."""
        lengths = (len(series.items) * SCALE for series in self._index.tree.series)
        return list(
            {
                abs(one)
                for one in (*self._index.numbers, *ListColumns(self._index.tree).totals(), *lengths)
            }
            - {0}
        )

    @once
    def has_shares(self) -> bool:
        """Does any leaf state a share? Where none does, every share is worked out."""
        return any(self.is_share(one) for one in self._index.tree.fields)

    @staticmethod
    def is_share(field: Field) -> bool:
        return (
            not _SHARES.isdisjoint(key_words(field.key))
            or (isinstance(field.value, str) and "%" in field.value)
            or (isinstance(field.value, float) and 0 < abs(field.value) < 1)
        )

    @once
    def has_cents(self) -> bool:
        """Does any key hold amounts of cents?"""
        return any(self._is_in_cents(one) for one in self._index.tree.fields if one.number)

    @once
    def _names_currency(self) -> bool:
        return any(
            text.upper() in CODES and key_words(one.key)[-1:] in _CURRENCY_KEYS
            for text, one in self._index.tree.text_fields
        )

    @once
    def _whole_keys(self) -> frozenset[str]:
        """Keys of money whose numbers are whole, all of them, and not all below 100."""
        numbers: dict[str, list[int]] = {}
        for one in self._index.tree.fields:
            if one.number is not None and type(one.value) is int:
                numbers.setdefault(one.key, []).append(abs(one.number))
            else:
                numbers.setdefault(one.key, []).append(1)
        return frozenset(
            key
            for key, found in numbers.items()
            if all(one % SCALE == 0 for one in found)
            and max(found) >= 100 * SCALE
            and _NO_AMOUNTS.isdisjoint(key_words(key))
        )

    def is_of_its_kind(self, value: Value, field: Field) -> bool:
        """Both a length, both an amount of money."""
        unit = self.unit_of(field, value.readings)
        return bool(unit and value.unit) and dimension_of(unit) == dimension_of(value.unit)

    def may_be_meant(self, value: Value, field: Field) -> bool:
        """In another unit of its kind; a text may measure it in several."""
        return isinstance(field.value, str) or self.could_measure(value, field)

    def could_measure(self, value: Value, field: Field) -> bool:
        """Is nothing known of the two by which they measure other things? A page is none."""
        unit = self.unit_of(field, value.readings)
        is_like = not (unit and value.unit) or dimension_of(unit) == dimension_of(value.unit)
        return is_like and "page" not in key_words(field.key)

    def _agrees(self, value: Value, field: Field) -> bool:
        if value.form.factor > 1 and not self._has_scale(value, field):
            return False
        unit = self.unit_of(field, value.readings) if value.unit else ""
        if value.unit and dimension_of(value.unit) == "money":
            if not _CENTS.isdisjoint(key_words(field.key)) and field.number is not None:
                return False  # `price_cents: 4900` is no $4,900
            unit = unit or self._currency_of(field)
        if not unit or is_same_unit(unit, value.unit):
            return True
        if isinstance(field.value, str) and len(field.value) > LONGEST_TEXT:
            # Prose measures the same number in many things: all have to be of its kind.
            units = _units_in_prose(field.value, value.readings)
            return any(
                is_same_unit(one, value.unit) or dimension_of(one) != dimension_of(value.unit)
                for one in units
            )
        # A share may be kept as a fraction, whatever else its key names.
        return (
            value.unit == "%"
            and dimension_of(unit) != "money"
            and len(value.readings) > 1
            and (isinstance(field.value, float) and abs(field.value) <= 1)
        )

    def _has_scale(self, value: Value, field: Field) -> bool:
        """`4.5 million` is no 4.5, unless key or text say that it is one of millions."""
        if isinstance(field.value, str):
            return len(field.value) > LONGEST_TEXT or any(
                one.form.factor == value.form.factor or value.readings[0] in one.readings[:1]
                for one in read_leaf(field.value)
                if one.readings
            )
        if isinstance(field.value, int | float) and abs(
            field.value * SCALE - value.readings[0]
        ) <= max(TOLERANCE, abs(value.readings[0]) // 10**9):
            return True
        keys = (field.key, field.record.key)  # `loss_meur: {"100": 38.9}`
        return any(scale_of_key(key_words(one)) == value.form.factor for one in keys)

    def converted(self, value: Value, half: int) -> Field | None:
        """A leaf that states the same in another unit; `half` a unit of the last stated digit."""
        for unit in units_beside(value.unit):
            low = convert(value.readings[0] - half, value.unit, unit)
            high = convert(value.readings[0] + half, value.unit, unit)
            if low is None or high is None:
                continue
            for number in self._index.between(low - 1, high + 1)[:MOST]:
                for field in self._index.numbers[number][:MOST]:
                    is_so = self.unit_of(field, (number,)) == unit
                    if is_so or ends_in_unit(key_words(field.key), unit):
                        return field
                    if self.is_by_custom(field, unit):
                        return field
        return None

    def is_by_custom(self, field: Field, unit: str) -> bool:
        """`"duration": {"value": 9180}` counts seconds, unless something else is said of it."""
        words = _BY_CUSTOM.get(unit)
        return (
            words is not None
            and field.number is not None
            and not (words.isdisjoint(key_words(field.key) + key_words(field.record.key)))
            and not self.unit_of(field, (field.number,))
        )


class SaidUnits:
    """What the user measured in what."""

    def __init__(self, said: Said) -> None:
        self._said = said

    def holds(self, value: Value, turn: int | None) -> bool:
        """Was the number said in this unit? Of a text too long to be read for units: perhaps."""
        return self._said.holds(value, turn) and any(
            (turn is None or at < turn) and (unit is None or is_same_unit(unit, value.unit))
            for reading in value.readings
            for unit, at in self._units.get(reading, {}).items()
        )

    @once
    def _units(self) -> dict[int, dict[str | None, int]]:
        found: dict[int, dict[str | None, int]] = {}
        for turn, text in self._said.texts:
            for value in read_leaf(text):
                unit = value.unit if len(text) <= LONGEST_LEAF else None
                for reading in value.readings:
                    units = found.setdefault(reading, {})
                    units[unit] = min(turn, units.get(unit, turn))
        return found


def _is_outgoing(field: Field) -> bool:
    """What was paid stands in an account with a minus, and is told without one; what is left in it
    is not."""
    words = key_words(field.key)
    return field.number is not None and field.number < 0 and _LEFT.isdisjoint(words)


def _units_around(field: Field) -> Iterator[Field]:
    """The fields that name a unit, in the record of a leaf and in those above it."""
    for record in (field.record, *field.record.ancestors()):
        yield from (one for one in record.fields if key_words(one.key)[-1:] in _UNIT_KEYS)
