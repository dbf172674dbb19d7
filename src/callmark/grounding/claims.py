"""What claims nothing of the results though it is a number: promises, proposals, examples, and what
something is given per, or out of."""

from __future__ import annotations

import re
from collections.abc import Sequence

from callmark.grounding.numbers import SCALE
from callmark.grounding.reading import convert, dimension_of
from callmark.grounding.record_tree import Field, RecordIndex, key_words
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import SIGNS, once
from callmark.grounding.values import Value, identifier_key
from callmark.records.statements import StatementLabel

DURATION = re.compile(
    r"[\s-]?(?:business[\s-])?(?:minutes?|mins?|hours?|hrs?|days?|weeks?|months?|years?|seconds?)\b"
)
_PROMISE = re.compile(
    r"\b(?:within|in|last|past|next|up to|at least|about|around|after|every|takes?|allow|for)\s"
    r"(?:the\s)?(?:\d+\s?(?:-|–|to)\s?)?$",
    re.IGNORECASE,
)
_OWN_TEXT = re.compile(
    r"[\s-](?:words?|characters?|sentences?|bullets?|bullet points?|paragraphs?|lines?|wörter\w*"
    r"|palabras|mots)\b",
    re.IGNORECASE,
)
# `the 17:14 on line 9 is cancelled`, `size 8 boots`: which one, not how many
_DESIGNATED = re.compile(
    r"\b(?:sizes?|line|route|bus|tram|train|platform|gate|room|suite|table|seat|row|flight|step"
    r"|stage|round|phase|version|release|page|passage|paragraph|section|chapter|part|option|choice|item|ticket"
    r"|case|number|no\.|nr\.|level|grade|tier|class|floor|zone|area|district|unit|lane|terminal"
    r"|building|block|box|slot|port|channel|lot|week|day|year|season|episode|figure|group|team|type"
    r"|größe|linie|gleis|zimmer|schritt|seite|stufe|nummer|woche|tag|teil|kapitel|taille|pointure"
    r"|ligne|quai|chambre|étape|page|numéro|semaine|jour|talla|línea|sala|habitación|paso|página"
    r"|número|semana|día|jan\w*|feb\w*|mar\w*|apr\w*|may|june?|july?|aug\w*|sep\w*|oct\w*|nov\w*"
    r"|dec\w*)\s(?:#\s?)?$",
    re.IGNORECASE,
)
# What is proposed may be open; what it costs, or has, is a fact.
_DESCRIBED = re.compile(
    r"\b(?:balance|price|cost|difference|total|refund|fee|charge|additional|remaining|ending|amount)\w*"
    rf"(?:\s(?:of|is|was|in|the|a|amount))*\s?[(:]?\s?[-+]?[{SIGNS}]?$",
    re.IGNORECASE,
)
EXAMPLE = re.compile(
    r"(?:e\.g\.,?|for example,?|for instance,?|such as|like|,\ssay,?|z\. ?B\.|zum Beispiel"
    r"|beispielsweise|p\. ?ej\.|por ejemplo,?|par exemple,?|p\. ?ex\.|^\W*for an?)\s?[\"“(]?"
    r"(?:[\w.-]{1,12},?\s(?:or|and|oder|und|o|y|ou|et)\s)?$",  # `for example, 19104 or 19107`
    re.I,
)
# `if the price were 1234567`
_SUPPOSED = re.compile(rf"\bif\b[^.;:!?\n]{{1,60}}\bwere\s[{SIGNS}\"“'`(]{{0,2}}$", re.IGNORECASE)

# `35.1 l/100 km`, `7.6 g per 100 g`: what a rate is given per.
_PER = re.compile(
    r"(?:\b(?:per|pro|por|par|je|every|cada|chaque|sur|auf|all[es]?"
    r"|out\sof)\s|\d\s(?:of|von|de)\s|/\s?)$",
    re.IGNORECASE,
)
_RATE = re.compile(rf"\s?(?:[A-Z]{{3}}|[{SIGNS}]|[^\W\d_]+)\s?(?:=|≈)\s")  # `1 USD = 0.92 EUR`
_POWER = re.compile(r"10{0,6}|1[,. ]?000(?:[,. ]000)?")
MULTIPLIED = re.compile(
    r"\b(?:multipl\w+|scal\w+|factor|faktor|facteur)\b[^.\n]{0,30}\b(?:by|of|mit|um|von|por|de|par)"
    r"\s$",
    re.IGNORECASE,
)
_BOUND = re.compile(rf"[<>≤≥]=?\s?[{SIGNS}]?$")  # what the answer sorts by
_SORTED_BY = re.compile(
    r"\b(?:only|none|no|nothing|all|every|each|both|most|several|neither|nobody|kein\w*|alle|jede\w*|nur"
    r"|aucune?|tous|toutes|seule?s?|todos|todas|ning[uú]n\w*|solo|sólo)\b[^.;:\d]{0,50}"
    r"\b(?:than|above|below|under|over|exceed\w*|pass(?:ed|es)?|top(?:ped|s)?|beyond|least|most|reach\w*"
    r"|hit|als|über|unter|mindestens|höchstens|plus\sde|moins\sde|más\sde|menos\sde|dépass\w+|super\w+)"
    rf"\s(?:the\s)?[{SIGNS}]?\s?$",
    re.IGNORECASE,
)
# What something is measured by, or told apart by: `exceed 120 cm`, `the two 60 cm probes`.
MEASURE = re.compile(
    r"\b(?:exceed\w*|over|above|below|under|than|limits?|least|most|within|target|cap|threshold|maximum"
    r"|minimum|two|three|four|five|six|both|über|unter|mindestens|höchstens|grenzwert|zwei|drei|vier"
    r"|beiden|límite|máximo|limite|seuil|deux|trois|dos|tres)"
    rf"(?:\s(?:of|the|von|de))?\s[({SIGNS}]?\s?$",
    re.IGNORECASE,
)
_OR_MORE = re.compile(
    r"[^\S\n]?(?:%|[^\W\d_]{1,6}\s)?\s?(?:or|oder|o|ou)\s(?:more|higher|above|less|lower|below|older|fewer|mehr"
    r"|höher|weniger|más|menos|plus|moins)\b",
    re.IGNORECASE,
)
_FRACTION = re.compile(
    r"[\s-](?:thirds?|quarters?|fifths?|halves|tenths?|drittel|viertel|tiers)\b", re.I
)
_NAMED_BEFORE = re.compile(
    r"\b(?:other|these|those|all|both|remaining|anderen|diese|übrigen|autres|ces|otros|otras|esos)\s$",
    re.I,
)
_WEEKDAY = re.compile(
    r"\b(?:mon|tue|tues|wed|thu|thur|thurs|fri|sat|sun|(?:mon|tues|wednes|thurs|fri|satur|sun)day|montag"
    r"|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag|lundi|mardi|mercredi|jeudi|vendredi|samedi"
    r"|dimanche|lunes|martes|miércoles|jueves|viernes|sábado|domingo)\.?,?\s(?:the\s|den\s|le\s|el\s)?$",
    re.IGNORECASE,
)
# `el día 30`, `le 30`: a day of the month, unless something is counted.
_DATE_ARTICLE = re.compile(r"\b(?:(?:el |del |al )?d[ií]a|el|al|del|le|au|du)\s$", re.IGNORECASE)
_NOTHING_COUNTED = re.compile(
    r"(?!\s?[%€$£°]|[.,]\d|\w|\s(?!(?:y|et|ou|o|con|a|à|de|por|avec|pour|se|te|à)\s)\w)"
)
LAST_DAY = 31
MOST_DAY_DIGITS = 2
# `the 52-week high`: what a figure is taken over.
_PERIOD_OF = re.compile(
    r"-(?:day|week|month|year|hour|minute)\s(?:\w+\s)?"
    r"(?:high|low|average|avg|mean|median|moving|rolling|range|window|trend|period|total|maximum"
    r"|minimum|change|return|volatility|forecast)\b",
    re.IGNORECASE,
)
# `a $10 bet would return $25`: an amount to reckon with.
_ROUND = re.compile(r"[125]0{0,4}|[125],?000")
_HYPOTHETICAL = re.compile(
    r"\b(?:would|if you|bekäme|würde\w*|ergäbe\w*|kämen|serait|donnerait|auriez|sería\w*|daría\w*"
    r"|obtendría\w*)\b",
    re.IGNORECASE,
)
_SOME = re.compile(rf"\b(?:mid|low|high|early|late|upper|lower)[ -][{SIGNS}]?$", re.IGNORECASE)
_NEARLY = re.compile(
    r"(?:\b(?:about|around|approx\w*\.?|roughly|nearly|almost|some|circa|ca\.|etwa|rund|gegen"
    r"|ungefähr|fast|unos|unas|aproximadamente|casi|hacia|sobre|environ|près de|vers)|[~≈])\s?$",
    re.IGNORECASE,
)
# `three quarters of an hour after` is worked out; `5:16 per mile` is no time of day.
_PACE = re.compile(r"\s?(?:/|per\b|pro\b|por\b|par\b|je\b|a\s)\s?(?:km|mi|miles?|laps?|100)", re.I)

PERIOD = re.compile(r"[QHT][1-4]|(?:FY|KW)\d{2}(?:\d\d)?", re.IGNORECASE)
_IN_A_PERIOD = re.compile(r"\b[QHT][1-4]\s$", re.IGNORECASE)
_PLACE = re.compile(r"#[1-9]\d{0,3}")
MOST_PLACES = 200

# A site that is recommended says nothing of the results; a page of it may.
SITE = re.compile(r"(?:https?://)?[^/?#\s]+/?", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]{2,}")
# Up to three words before a place, read from there: most places have none.
_WORDS_BACKWARDS = re.compile(r"\n?[ #]{1,2}[^\W\d_]+(?: [^\W\d_]+){0,2}")
# `4K`, `1TB SSD`, `2-piece`
_SIZE = re.compile(r"\d{1,6}(?:([A-Za-z]{1,3})(?: [A-Z]{2,6}){0,2}|[-\u2010\u2011]([a-z]{3,8}))")
_APART = re.compile(r"\d{1,6} ([A-Za-z]{1,3})")
_LETTERS = re.compile(r" ?([A-Za-z]{1,3})(?![A-Za-z0-9])|[-\u2010\u2011 ]([a-z]{3,8})\b")
_LONGEST_SIZE = 14
# Times and multiples are worked out; places in an order are counted.
_LASTING = frozenset(
    """
    h m s d w y hrs min sec am pm AM PM x X st nd rd th second minute hour day night week month year
    star
    """.split()
)

Unclaimed = tuple[StatementLabel, str]


def why_not_claimed(outline: Outline, value: Value, sentence: Span) -> Unclaimed | None:
    """The label and the rule of a value that is no claim."""
    text = outline.text
    before = text[max(sentence[0], value.start - 30) : value.start]
    if DURATION.match(text, value.end) and _PROMISE.search(before):
        return "not_claimed", "duration"
    if outline.is_offered(value) and not (_DESCRIBED.search(before) or _is_measured(value)):
        return "not_claimed", "proposal"
    supposed = text[max(sentence[0], value.start - 80) : value.start]
    if EXAMPLE.search(before) or _SUPPOSED.search(supposed):
        return "not_claimed", "example"
    if _OWN_TEXT.match(text, value.end):
        return "not_claimed", "own text"
    if _POWER.fullmatch(value.text) and (_PER.search(before) or _RATE.match(text, value.end)):
        return "not_claimed", "basis"
    if value.kind == "number" and (_BOUND.search(before) or _is_sorted_by(text, value, sentence)):
        return "unchecked", "threshold"
    if value.kind == "number" and value.text.isdecimal() and _IN_A_PERIOD.search(before):
        return "unchecked", "month"
    if value.kind == "number" and value.text.isdecimal() and _is_day(text, value, before):
        return "unchecked", "day"
    if value.kind == "number" and MULTIPLIED.search(text[max(0, value.start - 40) : value.start]):
        return "unchecked", "factor"
    if value.kind == "number" and _SOME.search(before):  # `the mid-$130s`
        return "unchecked", "rough"
    if value.moments:
        return _of_moment(text, value, before)
    return _of_manner(outline, value, sentence)


def _of_manner(outline: Outline, value: Value, sentence: Span) -> Unclaimed | None:
    """`the 52-week high`, `a $10 bet would return $25`."""
    if value.text.isdecimal() and _PERIOD_OF.match(outline.text, value.end):
        return "unchecked", "period"
    if _ROUND.fullmatch(value.text) and outline.says(_HYPOTHETICAL, sentence):
        return "not_claimed", "example"
    return None


def _is_day(text: str, value: Value, before: str) -> bool:
    if _WEEKDAY.search(before):
        return True
    is_short = len(value.text) <= MOST_DAY_DIGITS
    is_date = is_short and int(value.text) <= LAST_DAY and _DATE_ARTICLE.search(before) is not None
    return is_date and _NOTHING_COUNTED.match(text, value.end) is not None


def is_word(text: str) -> bool:
    """No identifier: it has no digit, or is `Q1` of a year."""
    return not any(map(str.isdecimal, text)) or PERIOD.fullmatch(text) is not None


def is_word_of_some(text: str, value: Value) -> bool:
    """`two thirds`, `your other two orders`: a word that counts what was named before."""
    if not value.text.isalpha():
        return False
    before = text[max(0, value.start - 20) : value.start]
    return _FRACTION.match(text, value.end) is not None or _NAMED_BEFORE.search(before) is not None


def _is_sorted_by(text: str, value: Value, sentence: Span) -> bool:
    """`only these three passed 40,000`, `none runs longer than 35 minutes`."""
    before = text[max(sentence[0], value.start - 80) : value.start]
    digits = "".join(filter(str.isdecimal, value.text))
    if digits[-1:] not in ("0", "5"):
        return False
    return _SORTED_BY.search(before) is not None or _OR_MORE.match(text, value.end) is not None


def _is_measured(value: Value) -> bool:
    """`Shall I exchange the 500 ml bottle?`: how large a thing is stays a fact in an offer. What
    it may cost, or how long it may take, is open."""
    return bool(value.unit) and dimension_of(value.unit) not in ("money", "time")


def _of_moment(text: str, value: Value, before: str) -> Unclaimed | None:
    if not any(moment.groundable for moment in value.moments):
        return "unchecked", "month"
    moment = value.moments[0]
    if moment.has_day or moment.hour is None:
        return None
    if _PACE.match(text, value.end):
        return "unchecked", "pace"
    if _NEARLY.search(before) and not (moment.minute or 0) % 10:
        return "unchecked", "rough"
    return None


def read_place(outline: Outline, value: Value, index: RecordIndex, turn: int | None) -> Value:
    """`#18` is the 18th, where a record with this number is named beside it and nothing is called
    so."""
    if not _PLACE.fullmatch(value.text) or index.stating(value, turn):
        return value
    digits = value.text[1:]
    number = value._replace(kind="number", text=digits, readings=(int(digits) * SCALE,))
    said = outline.text[slice(*outline.near(value, outline.sentence_at(value.start)))]
    is_named = any(
        isinstance(one.value, str) and len(one.value) > 2 and one.value in said
        for field in index.stating(number, turn)[:MOST_PLACES]
        for one in field.record.fields
    )
    return number if is_named else value


def find_joined_name(text: str, value: Value, index: RecordIndex, turn: int | None) -> Field | None:
    """`HAT 023`: digits that are an identifier with the words before them."""
    if len(value.text) < 2:
        return None
    if text[value.start - 1 : value.start] not in ("", " ", "#", "\n"):
        return None
    words = _WORDS_BACKWARDS.match(text[max(0, value.start - 40) : value.start][::-1])
    if words is None:
        return None
    start = value.start - words.end()
    for found in _WORD.finditer(text, start, value.start):
        key = identifier_key(text[found.start() : value.end])
        for field in index.identifiers.get(key, ()):
            if field.counts_for(turn) and not field.echo:
                return field
    return None


def find_written_apart(
    text: str, value: Value, index: RecordIndex, turn: int | None, *, is_known: bool
) -> Field | None:
    """The code that it is a part of; what a leaf states by itself is seldom one."""
    named = find_joined_name(text, value, index, turn) if value.text.isdecimal() else None
    return named or (None if is_known else find_spelt_out(text, value, index, turn))


def find_spelt_out(text: str, value: Value, index: RecordIndex, turn: int | None) -> Field | None:
    """`DE89 3704 0044`, `+1 555-0134`: one part of a code that is written in groups."""
    before = _GROUPS_BACKWARDS.match(text[max(0, value.start - MOST_SPELT) : value.start][::-1])
    after = _GROUPS_AFTER.match(text, value.end, value.end + MOST_SPELT)
    first = value.start - (before.end() if before else 0)
    last = after.end() if after else value.end
    starts = [one.start() for one in _GROUP.finditer(text, first, value.start + 1)]
    ends = [one.end() for one in _GROUP.finditer(text, value.start, last)]
    for start in starts[-MOST_GROUPS:]:
        for end in ends[:MOST_GROUPS]:
            key = "".join(filter(str.isalnum, text[start:end])).casefold()
            if end - start <= value.end - value.start or len(key) < FEWEST_SPELT:
                continue
            known = index.identifiers
            for field in known.get(key) or known.get(f"+{key}") or ():
                if field.counts_for(turn) and not field.echo:
                    return field
    return None


_DECADE = re.compile(r"[12]\d\d0")


def is_decade(text: str, value: Value) -> bool:
    """`the 1970s`"""
    return (
        text.startswith("s", value.end)
        and _DECADE.fullmatch(value.text) is not None
        and not text[value.end + 1 : value.end + 2].isalnum()
    )


def year_in(value: Value, index: RecordIndex, turn: int | None) -> Field | None:
    """What has a year of that decade, and was served before."""
    decade = int(value.text)
    for year in range(decade, decade + 10):
        fields: list[Field] = [
            *index.numbers.get(year * SCALE, ()),
            *index.years.get(str(year), ()),
        ]
        for field in fields:
            if field.counts_for(turn):
                return field
    return None


def find_ordinal(value: Value, index: RecordIndex) -> Field | None:
    """`40 years`, where it is the 40th anniversary; the 21st is a day."""
    if value.kind != "number" or not value.text.isdecimal() or len(value.text) > 4:
        return None
    if int(value.text) <= _LAST_DAY:
        return None
    parts = index.parts_of_texts
    return next((parts[value.text + end] for end in _ORDINALS if value.text + end in parts), None)


_ORDINALS = ("th", "st", "nd", "rd")
_LAST_DAY = 31
_FIVE = 5 * SCALE


def find_pair(text: str, stated: Sequence[Value], value: Value, half: int) -> str:
    """The number before it that it is, in another unit: `55 °F to 52 °F (13 °C to 11 °C)`."""
    for at, one in enumerate(stated):
        unit = one.unit
        if not unit and at + 1 < len(stated):  # `60-75°F`
            is_range = _RANGE.fullmatch(text, one.end, stated[at + 1].start)
            unit = stated[at + 1].unit if is_range else ""
        if not unit or unit == value.unit:
            continue
        same = convert(one.readings[0], unit, value.unit)
        within = max(half, _coarseness(text, one, value))
        if same is not None and abs(same - value.readings[0]) <= within:
            return f"{one.text} {unit}"
    return ""


_RANGE = re.compile(r"\s?(?:[-–—]|to|bis|a|à)\s?")


def _coarseness(text: str, stated: Value, value: Value) -> int:
    """Half of how coarsely degrees are converted beside the number that they are of: `60 °F
    (15 °C)`, `350 °F (175 °C)`."""
    between = text[stated.end : value.start]
    if dimension_of(value.unit) != "heat" or len(between) > 40 or "(" not in between:
        return 0
    return _FIVE // 2 if value.readings[0] % _FIVE == 0 else SCALE


def is_designated(text: str, start: int) -> bool:
    """Does a number there say which one is meant, and not how many there are?"""
    low, end = max(0, start - 14), start
    if text[end - 1 : end] == "\n":
        return _DESIGNATED.search(text, low, start) is not None
    # Nothing but one word stands between, so that it can begin at one place only.
    if text[end - 1 : end] == "#" or text[end - 2 : end - 1] == "#":
        end = text.rfind("#", 0, end)
    if not text[end - 1 : end].isspace():
        return False
    at = end - 1 - (text[end - 2 : end - 1] == ".")
    while at > low and (text[at - 1].isalnum() or text[at - 1] == "_"):
        at -= 1
    return _DESIGNATED.match(text, at, start) is not None


class LetteredSizes:
    """Leaves such as `4K` or `1080p`, by the letters that stand right after their digits. A small
    number that has the same letters is one of these, whoever else says the number."""

    def __init__(self, index: RecordIndex) -> None:
        self._index = index

    def letters_of(self, text: str, value: Value) -> str:
        """Empty: the results have no such sizes."""
        letters = _tail(_LETTERS.match(text, value.end))  # `30 MP`
        return letters if letters in self._known else ""

    @staticmethod
    def is_size(field: Field, letters: str) -> bool:
        if not isinstance(field.value, str) or len(field.value) > _LONGEST_SIZE:
            return False
        found = _APART.fullmatch(field.value) or _SIZE.fullmatch(field.value)
        return _tail(found) == letters

    @once
    def _known(self) -> frozenset[str]:
        texts = {text for text, _ in self._index.tree.text_fields}
        found = (_SIZE.fullmatch(text) for text in texts if len(text) <= _LONGEST_SIZE)
        return frozenset(map(_tail, found)) - _LASTING - {""}


def _tail(found: re.Match[str] | None) -> str:
    return "" if found is None else next(filter(None, found.groups()), "")


# A number that stands for no record and under no label, with one of these near it, was worked out
# by somebody: an estimate, a mean, a part. In more ways than anybody could follow.
_WORKED_OUT = re.compile(
    r"(?:\b(?:about|around|approx\w*|roughly|nearly|almost|just (?:over|under)|averag\w+|works? out"
    r"|altogether|combined|twice|half|third|quarter|equivalent|etwa|rund|circa|ca\.|ungefähr|knapp"
    r"|durchschnittlich|im schnitt|zusammen|unos|unas|aproximadamente|alrededor|promedio|juntos"
    r"|environ|près de|en moyenne|ensemble|soit)\b|[≈~÷×])",
    re.IGNORECASE,
)
_BEFORE, _AFTER = 50, 24  # characters
FEW = 12  # different numbers in the results: what follows from so few is found


def may_be_worked_out(text: str, sentence: Span, value: Value) -> bool:
    """Is it a share, or is it said beside it that somebody reckoned? Days are seldom reckoned."""
    if value.kind not in ("number", "moment") or any(one.has_day for one in value.moments):
        return False
    start, end = max(sentence[0], value.start - _BEFORE), min(sentence[1], value.end + _AFTER)
    return value.form.percent or _WORKED_OUT.search(text, start, end) is not None


_LETTERED = re.compile(r"([A-Z])(\d{1,3}(?:\.\d{1,2})?)")


def read_lettered(value: Value, index: RecordIndex) -> Field | None:
    """`M6.1`, where a `magnitude` is 6.1."""
    found = _LETTERED.fullmatch(value.text)
    if found is None:
        return None
    letter, number = found[1].lower(), round(float(found[2]) * SCALE)
    held = index.numbers.get(number, ())
    return next((one for one in held if one.key[:1].lower() == letter), None)


_SHORT_CODE = re.compile(r"[A-Za-z]{1,3}\d{1,3}")
_SUFFIX = re.compile(
    r"(?![a-z]+\d+$)(?=[a-z]*\d)[a-z\d]{5,10}"
)  # `mvt5w`, of `checkout-7d9f6-mvt5w`
_CUT = re.compile(r"(?:…|\.\.\.)[-_/:]?$")


def may_be_an_ending(text: str, value: Value) -> bool:
    return value.kind == "identifier" and bool(
        _SHORT_CODE.fullmatch(value.text)
        or _SUFFIX.fullmatch(value.text)
        or _CUT.search(text[max(0, value.start - 4) : value.start])
    )


_ADDING = frozenset(("sum", "difference", "product", "ratio", "rest", "pair"))
# Nobody adds ratings or ages up, or takes one from another without saying so.
_LEVEL_BEFORE = re.compile(
    r"\b(?:rat(?:ed|ings?)|scor(?:ed?|es)|stars(?:\sout\sof)?|aged?|version|bewert\w+|valora\w+|not[ée]e?)"
    r"(?:\s(?:it|is|was|of|at|as|with|a|an|solid|overall|average|von|de|mit|con|es|ist))*[\s:*(~]*$",
    re.IGNORECASE,
)
_LEVEL_AFTER = re.compile(
    r"(?:[\s-](?:stars?|out of (?:5|10|100|five|ten)|sterne|estrellas|étoiles|years? old)"
    r"\b|/(?:5|10)\b)(?!\s(?:higher|lower|better|worse|above|below|more|less))",
    re.IGNORECASE,
)
# How many somebody has room for is told by himself, and no product of what else he tells.
_ROOM_FOR = re.compile(
    r"(?<!total )(?<!combined )\bcapacity (?:of|for)(?: up to| about| around| over)?\s$"
    r"|\bseats (?:up to )?$",
    re.IGNORECASE,
)
_PEOPLE = re.compile(r"\s(?:people|persons?|guests?|visitors|attendees|seats)\b", re.IGNORECASE)


def is_no_sum(text: str, value: Value, rule: str) -> bool:
    """`a rating of 4.5 stars`, `aged 41`, `a capacity of 75 people`"""
    if rule not in _ADDING:
        return False
    if _LEVEL_AFTER.match(text, value.end):
        return True
    before = (max(0, value.start - 40), value.start)
    if rule == "product" and _ROOM_FOR.search(text, *before) and _PEOPLE.match(text, value.end):
        return True
    return _LEVEL_BEFORE.search(text, *before) is not None


def is_hedged(text: str, value: Value) -> bool:
    """`roughly €3,504`: nobody says so of what was copied."""
    return _NEARLY.search(text[max(0, value.start - 20) : value.start].rstrip(SIGNS)) is not None


def without_whole_texts(fields: Sequence[Field]) -> Sequence[Field]:
    """A text that is a table states what its rows state: the rows say of what."""
    told = {field.call for field in fields if field.key}
    return [field for field in fields if field.key or field.call not in told]


MOST_SPELT = 40  # characters of the groups before and after
MOST_GROUPS = 8
FEWEST_SPELT = 7  # letters and digits: fewer come together by chance
_GROUP = re.compile(r"[A-Za-z\d]+")
_GROUPS_BACKWARDS = re.compile(r"(?:[ -][A-Z\d]{1,6}(?![a-z]))+\+?")
_GROUPS_AFTER = re.compile(r"(?:[ -][A-Z\d]{1,6}\b)+")
# `56 hours away`, `2 hours 40 minutes late`: from a time that the answer knows.
_FROM_NOW = re.compile(
    r"(?:\s?(?:hours?|hrs?|minutes?|mins?|days?|weeks?|months?))?"
    r"\s(?:away|late|early|ago|from now|to go|until then|spät\w*|tarde|retard)\b",
    re.IGNORECASE,
)
_ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::[\d.]+)?(?:Z|[+-]\d\d:?\d\d)")
# `18:30 Berlin time`, `2:00 p.m. in Denver, local time`
_ZONE = re.compile(
    r"[^.;\n]{0,40}?\b(?:local(?:\stime)?|[A-Z][a-z]+\stime|C?E[SD]?T|[CMP][SD]T|BST|IST|JST|AE[SD]T"
    r"|Ortszeit|heure\slocale|hora\slocal)\b"
)


_YEAR = re.compile(r"(?:19|20)\d\d")
_BEFORE_YEAR = re.compile(r"\b(?:of|in|since|from|until|by|early|mid|late|year)\s[*_(]*$", re.I)


def is_year(text: str, value: Value) -> bool:
    """`week 22 of 2022`, where a tyre is stamped 2222."""
    before = text[max(0, value.start - 12) : value.start]
    return _YEAR.fullmatch(value.text) is not None and _BEFORE_YEAR.search(before) is not None


def is_reckoned_by_clock(text: str, value: Value, index: RecordIndex) -> bool:
    if value.kind == "moment":
        return (
            any(one.hour is not None for one in value.moments)
            and _ZONE.match(text, value.end) is not None
            and any(_ZONED.fullmatch(str(one.value)) for one in index.tree.fields)
        )
    if value.kind != "number":
        return False
    # How long things take follows from when they begin and end.
    is_span = dimension_of(value.unit) == "time" and len(index.moments) >= MANY_TIMES
    return is_span or _FROM_NOW.match(text, value.end) is not None


MANY_TIMES = 10  # of the results, between any two of which something may last


def is_of_a_size(value: Value, field: Field) -> bool:
    """£129 is hardly taken for a floor, 5 events for 301 km."""
    if not value.readings or not field.number:
        return True
    less, more = sorted((abs(value.readings[0]), abs(field.number)))
    return more <= ALIKE * less


ALIKE = 20


def counts_lines(value: Value, index: RecordIndex) -> bool:
    """`all 24 requests`, of a log with so many lines, or a table with a head above them."""
    if not value.text.isdecimal() or not value.readings:
        return False
    return value.readings[0] // SCALE in index.line_counts


def reads_as_hour(value: Value, index: RecordIndex) -> Field | None:
    """`13:00`, where an `hour` is 13."""
    moment = value.moments[0] if value.moments else None
    if moment is None or moment.hour is None or moment.minute or moment.has_day:
        return None
    held = index.numbers.get(moment.hour * SCALE, ())
    return next((one for one in held if not _HOURS.isdisjoint(key_words(one.key))), None)


_HOURS = frozenset("hour hours hr stunde uhr hora heure".split())


NOON = 12
_NEAR_CLOCK = 120
_AFTERNOON = re.compile(r"\d\s?p\.?m\b", re.IGNORECASE)
_MORNING = re.compile(r"\s?[ap]\.?m\b", re.IGNORECASE)
_LATE = re.compile(
    r"\s(?:in the (?:afternoon|evening)|at night|tonight|this (?:afternoon|evening)|nachmittags"
    r"|am nachmittag|abends|am abend|de la (?:tarde|noche)|de l['’]après-midi|du soir)\b",
    re.IGNORECASE,
)


def read_in_the_afternoon(text: str, value: Value) -> Value | None:
    """`6:15, 7:30 and 9:45 pm`: all of them are, though only the last one says so."""
    moment = value.moments[0] if value.moments else None
    if moment is None or moment.hour is None or not 0 < moment.hour < NOON:
        return None
    near = text[max(0, value.start - _NEAR_CLOCK) : value.end + _NEAR_CLOCK]
    is_late = _LATE.match(text, value.end) is not None  # `2 o'clock in the afternoon`
    if not (is_late or _AFTERNOON.search(near)) or _MORNING.match(text, value.end):
        return None
    return value._replace(moments=(moment._replace(hour=moment.hour + NOON),))
