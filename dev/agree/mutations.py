"""The mistakes that are planted: each kind a function from an answer to its mutations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date
from itertools import pairwise

from callmark.grounding.numbers import SCALE
from callmark.grounding.record_tree import Field, number_of
from dev.agree.sites import GoodValue, Mutation, Sites, kind_of_path, pick, stated_like
from dev.campaign.altering import MONTHS, Place

Plant = Callable[[Sites], Iterator[Mutation]]
DERIVED = ("sum", "difference", "product", "ratio", "mean", "share")
NAMED_BESIDE = 40  # characters
_DIGITS = re.compile(r"\d+")
_ISO = re.compile(r"\d{4}-\d\d-\d\d")
_WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
_WEEKDAY_BEFORE = re.compile(rf"\b(?:{'|'.join(_WEEKDAYS)})\b(?=,?\s(?:the\s)?$)")
_INVENTED = "Marlow Kestrel Ondine Farrow Talbot Wexford Harbin Lisbeth".split()
_UNITS = (
    "GB TB MB", "ml L", "inch inches cm mm", "ft m", "hours minutes days", "kg lbs g", "km miles",
    "W kW", "MP", "mAh Ah", "GHz MHz",
)  # fmt: skip
_OTHER_UNIT = {
    unit: [other for other in family.split() if other[:4] != unit[:4]]
    for family in _UNITS
    for unit in family.split()
}
_UNIT = re.compile(rf"[\s-]?\b({'|'.join(_OTHER_UNIT)})\b")
_CURRENCY = re.compile(r"[$€£]|\b(?:USD|EUR|GBP|dollars?|euros?)\b")
_OPPOSITES = {
    "cheapest": "most expensive", "lowest": "highest", "highest": "lowest", "least": "most",
    "most expensive": "cheapest", "earliest": "latest", "latest": "earliest",
    "shortest": "longest", "longest": "shortest", "largest": "smallest", "smallest": "largest",
}  # fmt: skip
_SUPERLATIVE = re.compile(rf"\b(?:{'|'.join(_OPPOSITES)})\b", re.IGNORECASE)
_DEEDS = {
    "cancelled": "cancel", "exchanged": "exchang swap replac", "upgraded": "upgrad downgrad",
    "shipped": "ship dispatch", "deleted": "delet remov drop", "booked": "book reserv",
    "refunded": "refund return credit reimburs",
}  # fmt: skip
_VERBS = {
    "is": "is not", "are": "are not", "was": "was not", "has": "does not have",
    "have": "do not have", "can": "cannot", "offers": "does not offer", "offer": "do not offer",
    "provides": "does not provide", "accepts": "does not accept", "features": "does not feature",
    "serves": "does not serve", "includes": "does not include", "allows": "does not allow",
}  # fmt: skip
_DENIALS = {denied: plain for plain, denied in _VERBS.items()} | {
    "isn't": "is", "aren't": "are", "doesn't offer": "offers", "doesn't have": "has",
    "do not offer": "offer", "has no": "has", "have no": "have", "no": "", "not": "",
}  # fmt: skip
_NONSENSE = (
    "The moon weighs {} cheeses and was founded in {} by {} geese. ",
    "A walrus called Ottokar ate {} umbrellas, {} trombones and {} glaciers. ",
    "Penguins elected a violin to the senate of Atlantis, by {} votes to {} in {} rounds. ",
    "Every comet carries {} teapots, which is {} more than the {} of last winter. ",
    "Gravity was sold for {} goats, {} harps and {} lanterns. ",
    "Napoleon juggled {} pumpkins over {} volcanoes for {} heartbeats. ",
    "On Neptune {} dragons knit {} sweaters out of {} rainbows. ",
)
_ODD_NUMBERS = (
    4711, 1312, 886, 5387, 2749, 977, 6143, 3361, 647, 8219, 1583, 739, 7607, 2903, 593, 9391,
)  # fmt: skip
_WORDS = "one two three four five six seven eight nine ten eleven twelve thirteen fourteen"
_IN_WORDS = dict(enumerate(_WORDS.split(), start=1))
_COUNTS = {str(number): number for number in range(1, 100)} | {
    word: number for number, word in _IN_WORDS.items()
}
MORE_COUNTED = 4
_VERB = re.compile(rf"\b(?:{'|'.join(_VERBS)})\b", re.IGNORECASE)
_DENIAL = re.compile(rf"\b(?:{'|'.join(sorted(_DENIALS, key=len, reverse=True))})\b", re.IGNORECASE)
_NEGATION = re.compile(
    r"\b(?:no|not|never|without|lacks?|neither|nor|none|cannot|unavailable|however|but)\b"
    r"|n['’]t\b",
    re.IGNORECASE,
)


def _put(kind: str, one: GoodValue, text: str) -> Mutation:
    return Mutation(kind, (Place(one.start, one.end, text),), one.finding.start)


def _is_small(one: GoodValue) -> bool:
    readings = one.value.readings
    return bool(readings) and readings[0] % SCALE == 0 and 0 <= readings[0] < 13 * SCALE


LONG = 4  # digits: what comes so near to a number of them is hardly chance


def _kind_of_shift(one: GoodValue) -> str | None:
    rule, value = one.finding.rule, one.value
    if value.kind == "moment":
        return "shift_moment"
    if rule in ("equation", "count") or value.kind not in ("number", "identifier"):
        return None
    is_long = len(value.text) > 6 and value.text.isdigit()
    if value.kind == "identifier" or rule == "name" or is_long:
        return "shift_identifier"
    if one.finding.label == "derived":
        return "shift_derived"
    if _is_small(one):
        return "shift_small"
    return "shift_long" if sum(map(str.isdigit, value.text)) >= LONG else "shift_number"


def shift(sites: Sites) -> Iterator[Mutation]:
    """Another digit, another day, another hour."""
    for one in sites.values:
        kind = _kind_of_shift(one)
        if kind is None:
            continue
        text = one.value.text
        new = _other_moment(text) if kind == "shift_moment" else _other_digit(text)
        if new is not None and new != text:
            yield _put(kind, one, new)


def _other_digit(text: str, choice: int = 0) -> str | None:
    places = [at for at, char in enumerate(text) if char.isascii() and char.isdigit()]
    if not places:
        return None
    at = pick(places, text, choice)
    digit = pick([one for one in "123456789" if one != text[at]], text, choice, at)
    return text[:at] + digit + text[at + 1 :]


def _other_moment(text: str) -> str | None:
    month = next((name for name in MONTHS if name in text), None)
    if month is not None and pick((True, False, False), text):
        return text.replace(month, pick([one for one in MONTHS if one != month], text))
    groups = list(_DIGITS.finditer(text))
    if not groups:
        return None
    found = pick(groups, text, "group")
    number, width = int(found[0]), len(found[0])
    if width == 4:
        new = number + pick((-2, -1, 1, 2), text)
    elif text[: found.start()].endswith(":"):
        new = (number + pick(range(5, 56, 5), text)) % 60
    else:
        most = 12 if number <= 12 else 28
        new = (number + pick(range(most - 1), text)) % most + 1
    return text[: found.start()] + str(new).rjust(width, "0") + text[found.end() :]


def swap_within_key(sites: Sites) -> Iterator[Mutation]:
    """The value that another record has under the same key. A name is left alone: the sentence
    would speak of the other record, and might be true."""
    for one in sites.values:
        field = one.field
        if field is None or one.finding.rule == "name" or not _states_leaf(one, field):
            continue
        turn = sites.reading.turn_at(one.start)
        clause = sites.text[slice(*sites.outline.clause_at(one.start))]
        texts = {
            text
            for other in sites.alike.get((field.key, kind_of_path(field.path)), ())
            if other.counts_for(turn)
            and not other.record.is_kin(field.record)
            and other.value != field.value
            and (text := stated_like(other.value, one.value.text)) is not None
            and text not in clause
        }
        if texts:
            new = pick(sorted(texts), one.value.text, one.start)
            yield _put("swap_within_key", one, new)
            if _is_named_beside(sites, one, field):
                yield _put("swap_named", one, new)


def _is_named_beside(sites: Sites, one: GoodValue, field: Field) -> bool:
    """Does the name of its record stand right before it, and no other number in between?"""
    start = sites.outline.clause_at(one.start)[0]
    before = sites.text[max(start, one.start - NAMED_BESIDE) : one.start]
    return one.finding.rule == "bound" and any(
        name in before and not _DIGITS.search(before.rpartition(name)[2])
        for name in field.record.names
    )


def _states_leaf(one: GoodValue, field: Field) -> bool:
    """Does the answer say the whole leaf, and not a part of a longer text?"""
    return number_of(field.value) is not None or field.value == one.value.text


def swap_between_records(sites: Sites) -> Iterator[Mutation]:
    """Two records of the answer change one of their values with each other."""
    by_key: dict[tuple[str, str, int | None], list[GoodValue]] = {}
    for one in sites.values:
        field = one.field
        if field is not None and one.finding.rule in ("bound", "joined"):
            turn = sites.reading.turn_at(one.start)
            key = (field.key, kind_of_path(field.path), turn)
            by_key.setdefault(key, []).append(one)
    for group in by_key.values():
        for first, second in pairwise(group):
            records = [one.field.record for one in (first, second) if one.field is not None]
            if first.value.text != second.value.text and not records[0].is_kin(records[1]):
                places = (
                    Place(first.start, first.end, second.value.text),
                    Place(second.start, second.end, first.value.text),
                )
                yield Mutation("swap_between_records", places, first.finding.start)


def other_field(sites: Sites) -> Iterator[Mutation]:
    """The value of another field of the same record."""
    for one in sites.values:
        field = one.field
        if field is None or one.finding.rule == "name" or not _states_leaf(one, field):
            continue
        is_number = number_of(field.value) is not None
        texts = {
            text
            for other in field.record.fields
            if other.key != field.key
            and other.value != field.value
            and (number_of(other.value) is not None) == is_number
            and isinstance(other.value, str | int | float)
            and not isinstance(other.value, bool)
            and (is_number or _DIGITS.search(str(other.value)))
            and (text := stated_like(other.value, one.value.text)) is not None
            and text not in sites.text[slice(*sites.outline.clause_at(one.start))]
        }
        if texts:
            yield _put("field", one, pick(sorted(texts), one.value.text, one.start))


def negate(sites: Sites) -> Iterator[Mutation]:
    """Yes becomes no, and no becomes yes."""
    for one in sites.good:
        if one.rule != "polarity":
            continue
        start, _ = sites.outline.clause_at(one.start)
        denied = list(_DENIAL.finditer(sites.text, start, one.start))
        if denied and _NEGATION.search(sites.text, start, one.start):
            found = denied[-1]
            new = _DENIALS[found[0].casefold()]
        elif not _NEGATION.search(sites.text, start, one.end + 12):
            verbs = list(_VERB.finditer(sites.text, start, one.start))
            if not verbs:
                continue
            found = verbs[-1]
            new = _VERBS[found[0].casefold()]
        else:
            continue
        yield Mutation("negate", (Place(found.start(), found.end(), new),), one.start)


def other_unit(sites: Sites) -> Iterator[Mutation]:
    """Another unit or currency after or before the same number."""
    for one in sites.values:
        if one.value.kind != "number" or one.field is None:
            continue
        unit = _UNIT.match(sites.text, one.end)
        others = [] if unit is None else _OTHER_UNIT[unit[1]]
        if unit is not None and others:
            stated = isinstance(one.field.value, str) and _UNIT.search(one.field.value)
            kind = "unit" if stated else "unit_unstated"
            place = Place(unit.start(1), unit.end(1), pick(others, one.value.text))
            yield Mutation(kind, (place,), one.finding.start)
        if sites.text[one.start - 1 : one.start] in ("$", "€", "£"):
            sign = pick([sign for sign in "$€£" if sign != sites.text[one.start - 1]], one.start)
            kind = "currency" if _states_currency(one.field) else "currency_unstated"
            place = Place(one.start - 1, one.start, sign)
            yield Mutation(kind, (place,), one.finding.start)


def _states_currency(field: Field) -> bool:
    if isinstance(field.value, str):
        return _CURRENCY.search(field.value) is not None
    return any(
        "currency" in other.key.casefold() for other in field.record.fields
    ) or field.key.casefold().endswith(("usd", "eur", "gbp"))


def other_scale(sites: Sites) -> Iterator[Mutation]:
    """`120 million` for 120."""
    for one in sites.values:
        if _kind_of_shift(one) in ("shift_number", "shift_long") and one.value.form.factor == 1:
            after = sites.text[one.end : one.end + 2]
            if not one.value.form.percent and re.match(r"\s?[\w%°]|[-–/:]", after) is None:
                yield _put("scale", one, f"{one.value.text} {pick(('thousand', 'million'), after)}")


def other_name(sites: Sites) -> Iterator[Mutation]:
    """A name that nobody has."""
    for mention in sites.names.mentions(sites.text):
        clause = sites.outline.clause_at(mention.start)
        text = sites.text[mention.start : mention.end]
        words = [one for one in re.finditer(r"[^\W\d_]{4,}", text) if one[0][0].isupper()]
        turn = sites.reading.turn_at(mention.start)
        if (
            clause not in sites.good_clauses
            or not words
            or re.search(r"[\d_@]", text)
            or not any(record.counts_for(turn) for record in mention.records)
        ):
            continue
        word = max(words, key=lambda one: len(one[0]))
        start = mention.start + word.start()
        place = Place(start, start + len(word[0]), pick(_INVENTED, text, mention.start))
        yield Mutation("name", (place,), mention.start)


def wrong_weekday(sites: Sites) -> Iterator[Mutation]:
    """A day of the week that the date is not."""
    for one in sites.values:
        found = one.field and _ISO.match(str(one.field.value))
        is_date = any(month[:3] in one.value.text for month in MONTHS) or _ISO.match(one.value.text)
        if one.value.kind != "moment" or not found or not is_date:
            continue
        try:
            right = _WEEKDAYS[date.fromisoformat(found[0]).weekday()]
        except ValueError:
            continue
        wrong = pick([day for day in _WEEKDAYS if day != right], found[0], one.start)
        said = _WEEKDAY_BEFORE.search(sites.text, max(0, one.start - 14), one.start)
        place = Place(one.start, one.start, f"{wrong}, ")
        if said is not None:
            place = Place(said.start(), said.end(), wrong)
        yield Mutation("weekday", (place,), one.finding.start)


def wrong_count(sites: Sites) -> Iterator[Mutation]:
    """More of them, or fewer: in digits or in words, as the answer counts."""
    for one in sites.counts:
        number = _COUNTS.get(one.value.text.casefold())
        if number is None:
            continue
        for other in range(2, number + MORE_COUNTED + 1):
            text = f"{other}" if one.value.text.isdecimal() else _IN_WORDS.get(other)
            if text is not None and other != number:
                text = text.capitalize() if one.value.text[0].isupper() else text
                yield _put("count" if other > number else "count_fewer", one, text)


def wrong_equation(sites: Sites) -> Iterator[Mutation]:
    for one in sites.values:
        if one.finding.rule == "equation":
            texts = {_other_digit(one.value.text, choice) for choice in range(8)}
            for text in sorted(filter(None, texts)):
                yield _put("equation", one, text)


def other_deed(sites: Sites) -> Iterator[Mutation]:
    """Something was done that no call has done."""
    registry = sites.trial.registry
    done = ""
    for entry in sites.trial.trace.tool_trace:
        if entry.served and entry.name is not None:
            spec = registry.spec(entry.name)
            done += f" {entry.name} {'' if spec is None else spec.description}".casefold()
    free = [verb for verb, stems in _DEEDS.items() if not any(one in done for one in stems.split())]
    for one in sites.good:
        if one.rule == "deed" and free:
            word = sites.text[one.start : one.end].split()[-1]
            place = Place(one.end - len(word), one.end, pick(free, one.start, word))
            yield Mutation("deed", (place,), one.start)


def other_of_enumeration(sites: Sites) -> Iterator[Mutation]:
    """Another value of a small set that the results use: `pending` for `delivered`."""
    sets: dict[tuple[str, str], set[str]] = {}
    for (key, path), fields in sites.alike.items():
        texts = {one.value for one in fields if isinstance(one.value, str)}
        if 2 <= len(texts) <= 6 and all(re.fullmatch(r"[a-z_ ]{4,20}", one) for one in texts):
            sets[key, path] = texts
    for clause, good in sites.good_clauses.items():
        record = good.fields[0].record if good.fields else None
        for field in () if record is None else record.fields:
            texts = sets.get((field.key, kind_of_path(field.path)), set()) - {str(field.value)}
            said = str(field.value).replace("_", " ")
            found = re.compile(rf"\b{re.escape(said)}\b", re.IGNORECASE).search(sites.text, *clause)
            if texts and found and good.rule in ("bound", "name"):
                new = pick(sorted(texts), said, clause).replace("_", " ")
                place = Place(found.start(), found.end(), new)
                yield Mutation("enum", (place,), found.start())


def other_rank(sites: Sites) -> Iterator[Mutation]:
    for clause, good in sites.good_clauses.items():
        found = _SUPERLATIVE.search(sites.text, *clause)
        if found is not None and good.fields:
            place = Place(found.start(), found.end(), _OPPOSITES[found[0].casefold()])
            yield Mutation("rank", (place,), found.start())


def deny(sites: Sites) -> Iterator[Mutation]:
    """`It is not true that` before a right sentence."""
    for sentence in sites.outline.sentences:
        start = sentence[0]
        good = sites.good_clauses.get(sites.outline.clause_at(start))
        if good is not None and good.label == "supported" and sites.text[start].isalpha():
            place = Place(start, start, "It is not true that ")
            yield Mutation("denial", (place,), start)


def talk_nonsense(sites: Sites) -> Iterator[Mutation]:
    """A sentence that has nothing to do with anything, before a right one."""
    index = sites.reading.records
    free = [number for number in _ODD_NUMBERS if number * SCALE not in index.numbers]
    for sentence in sites.outline.sentences:
        start = sentence[0]
        good = sites.good_clauses.get(sites.outline.clause_at(start))
        if good is not None and good.label == "supported" and sites.text[start].isalpha():
            at = pick(range(len(free) - 2), sites.trial.key, start)
            text = pick(_NONSENSE, sites.text[slice(*sentence)], start).format(*free[at : at + 3])
            yield Mutation("nonsense", (Place(start, start, text),), start)


PLANTS: tuple[Plant, ...] = (
    shift, swap_within_key, swap_between_records, other_field, negate, other_unit, other_scale,
    other_name, wrong_weekday, wrong_count, wrong_equation, other_deed, other_of_enumeration,
    other_rank, deny, talk_nonsense,
)  # fmt: skip
KINDS = (
    "shift_number", "shift_long", "shift_small", "shift_derived", "shift_identifier",
    "shift_moment",
    "swap_within_key", "swap_named", "swap_between_records", "field", "negate", "unit",
    "unit_unstated", "currency", "currency_unstated", "scale", "name", "weekday", "count",
    "count_fewer", "equation", "deed", "enum", "rank", "denial", "nonsense",
)  # fmt: skip
# Which kinds a rule is there for: its share of them is what its tier is judged by.
KINDS_OF: dict[str, tuple[str, ...]] = {
    "equation": ("equation",),
    "count": ("count",),
    "misread": ("shift_long",),
    "value": ("shift_number", "shift_long", "shift_moment"),
    "identifier": ("shift_identifier",),
    "record": ("swap_named",),
    "binding": ("swap_within_key", "swap_between_records"),
    "field": ("field",),
    "unit": ("unit", "currency", "scale"),
    "polarity": ("negate",),
    "weekday": ("weekday",),
    "deed": ("deed",),
    "state": ("enum",),
    "rank": ("rank",),
    "name": ("name",),
    "denial": ("denial",),
    "baseless": ("nonsense",),
}
