"""Numbers as people write them, in digits by locale and in words. Values are integers in units of
10⁻¹², so that integers of any size stay exact and equality is cheap."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from operator import add
from typing import TYPE_CHECKING, NamedTuple

from callmark.grounding.text import blank_signs, letters_in, place_letters

if TYPE_CHECKING:
    import babel

SCALE_DIGITS = 12
SCALE: int = 10**SCALE_DIGITS
TOLERANCE: int = SCALE // 10**6
MAX_DIGITS = 4000  # longer runs are no numbers that anybody states; int() of them is slow

MOST_BITS = 13_000  # of an integer: Python writes none with more than 4,300 digits

SPACES = "\u00a0\u202f\u2009"
APOSTROPHES = "'’"
_ENGLISH = re.compile(r"(?:\d+|[1-9]\d{0,2}(?:,\d{3})+)(?:\.\d+)?")
_INDIAN = re.compile(r"[1-9]\d?(?:,\d{2})+,\d{3}(?:\.\d+)?")
_DOT_GROUPS = re.compile(r"[1-9]\d{0,2}(?:(?:\.\d{3})+,\d+|(?:\.\d{3}){2,})")
_COMMA_DECIMAL = re.compile(r"\d+,\d+")
_SPACE_GROUPS = re.compile(rf"[1-9]\d{{0,2}}(?:[ {SPACES}]\d{{3}})+(?:[.,]\d+)?")
_APOSTROPHE_GROUPS = re.compile(rf"[1-9]\d{{0,2}}(?:[{APOSTROPHES}]\d{{3}})+(?:[.,]\d+)?")
_DOT_GROUP_ONCE = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_EXPONENT = re.compile(r"\d+(?:\.\d+)?[eE][+-]?\d+")
_NOT_DIGIT = re.compile(r"\D")
_ARABIC = str.maketrans({"٫": ".", "٬": ","})


def decimal_text(scaled: int) -> str:
    """As a person writes it, without needless zeros; of one that nobody would, how long it is."""
    if scaled.bit_length() > MOST_BITS:
        return f"{'-' * (scaled < 0)}10^{scaled.bit_length() * 3 // 10 - SCALE_DIGITS}"
    whole, rest = divmod(abs(scaled), SCALE)
    text = f"{whole}.{rest:012d}".rstrip("0").rstrip(".")
    return f"-{text}" if scaled < 0 else text


def ascii_digits(text: str) -> str:
    """Digits of every script as ASCII digits."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.digit(c)) if c.isdecimal() else c for c in text)


def of_json(value: int | float) -> int:
    if isinstance(value, int):
        return value * SCALE
    return _of_float(value)


@lru_cache(maxsize=1 << 12)
def _of_float(value: float) -> int:
    return _of_decimal(Decimal(repr(value)))


def _of_decimal(value: Decimal) -> int:
    sign, digits, exponent = value.as_tuple()
    whole = int("".join(map(str, digits)) or "0")
    shift = int(exponent) + SCALE_DIGITS
    if abs(shift) > MAX_DIGITS:
        return 0 if shift < 0 else whole * 10**MAX_DIGITS
    scaled: int = whole * 10**shift if shift >= 0 else whole // 10**-shift
    return -scaled if sign else scaled


def _of_parts(whole: str, fraction: str) -> int:
    padded = fraction[:SCALE_DIGITS].ljust(SCALE_DIGITS, "0")
    return int(_NOT_DIGIT.sub("", whole)) * SCALE + int(padded)


def _split_decimal(run: str, decimal: str) -> int:
    whole, _, fraction = run.rpartition(decimal) if decimal in run else (run, "", "")
    return _of_parts(whole, fraction)


def read_unlocalised(run: str) -> int | None:
    """The one unambiguous reading of a run of digits and separators; `1.234` and `1,234` are
    read as English. None: it has none."""
    if run.isdigit() and run.isascii():
        return int(run) * SCALE if len(run) <= MAX_DIGITS else None
    run = ascii_digits(run).translate(_ARABIC)
    if len(run) > MAX_DIGITS:
        return None
    if _ENGLISH.fullmatch(run) or _INDIAN.fullmatch(run):
        return _split_decimal(run, ".")
    if _DOT_GROUPS.fullmatch(run) or _COMMA_DECIMAL.fullmatch(run):
        return _split_decimal(run, ",")
    if _SPACE_GROUPS.fullmatch(run) or _APOSTROPHE_GROUPS.fullmatch(run):
        return _split_decimal(run, "," if "," in run else ".")
    return None


def read_exponent(text: str) -> int | None:
    """`1e5`, `1.5E-3`."""
    if len(text) > 40 or not _EXPONENT.fullmatch(text):
        return None
    return _of_decimal(Decimal(text))


class NumberForm(NamedTuple):
    """How one locale writes numbers."""

    pattern: re.Pattern[str]
    decimal: str
    native: re.Pattern[str] | None
    native_decimal: str
    spaced: bool  # groups are set apart by blanks


@lru_cache(maxsize=64)
def form_of(locale: str) -> NumberForm | None:
    """None: CLDR knows no such locale."""
    import babel  # large, and most answers have no locale of their own

    try:
        parsed = babel.Locale.parse(locale.replace("-", "_"))
    except (ValueError, babel.UnknownLocaleError, TypeError):
        return None
    symbols = parsed.number_symbols
    pattern, decimal = _form(parsed, symbols.get("latn") or {})
    native, native_decimal = (None, "")
    system = parsed.other_numbering_systems.get("native", "latn")
    if system != "latn" and system in symbols:
        native, native_decimal = _form(parsed, symbols[system])
    return NumberForm(pattern, decimal, native, native_decimal, " " in pattern.pattern)


def _form(locale: babel.Locale, symbols: dict[str, str]) -> tuple[re.Pattern[str], str]:
    decimal, group = symbols.get("decimal", "."), symbols.get("group", ",")
    groups = group
    if group in SPACES + " ":
        groups = " " + SPACES  # people type any of them
    elif group in APOSTROPHES:
        groups = APOSTROPHES
    secondary = 3
    standard = locale.decimal_formats.get(None)
    if standard is not None and len(set(standard.grouping)) > 1:
        secondary = standard.grouping[1]
    g, d = re.escape(groups), re.escape(decimal)
    grouped = rf"[1-9]\d{{0,{secondary - 1}}}(?:[{g}]\d{{{secondary}}})*[{g}]\d{{3}}"
    return re.compile(rf"(?:\d+|{grouped})(?:[{d}]\d+)?"), decimal


def read_in_locale(run: str, locale: str) -> int | None:
    form = form_of(locale)
    if form is None:
        return read_unlocalised(run)
    if len(run) > MAX_DIGITS:
        return None
    plain = ascii_digits(run)
    if form.pattern.fullmatch(plain):
        return _split_decimal(plain, form.decimal)
    if form.native is not None and form.native.fullmatch(plain):
        return _split_decimal(plain, form.native_decimal)
    return None


def read_every_way(run: str) -> set[int]:
    """Every value that some locale would read: for telling a wrong form from a wrong value."""
    readings = {read_unlocalised(run)}
    plain = ascii_digits(run).translate(_ARABIC)
    if len(plain) <= MAX_DIGITS and (_DOT_GROUP_ONCE.fullmatch(plain)):
        readings.add(int(plain.replace(".", "")) * SCALE)
    if len(plain) <= MAX_DIGITS and _COMMA_DECIMAL.fullmatch(plain):
        readings.add(_split_decimal(plain, ","))
    readings.discard(None)
    return {reading for reading in readings if reading is not None}


_WORD = re.compile(r"[^\W\d_]+")
_JOINED = re.compile(r"[ \u00a0-]")
_BEFORE_NOUN = re.compile(r"[ \u00a0](?:\*\*|_)?(?=[^\W\d_])")
_EN = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
""".split()
_EN_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_DE = """
null ein zwei drei vier fünf sechs sieben acht neun zehn elf zwölf dreizehn vierzehn fünfzehn
sechzehn siebzehn achtzehn neunzehn
""".split()
_DE_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig".split()
_ES = """
cero uno dos tres cuatro cinco seis siete ocho nueve diez once doce trece catorce quince dieciséis
diecisiete dieciocho diecinueve veinte veintiuno veintidós veintitrés veinticuatro veinticinco
veintiséis veintisiete veintiocho veintinueve
""".split()
_ES_TENS = "treinta cuarenta cincuenta sesenta setenta ochenta noventa".split()
_FR = """
zéro un deux trois quatre cinq six sept huit neuf dix onze douze treize quatorze quinze seize
dix-sept dix-huit dix-neuf
""".split()
_FR_TENS = {20: "vingt", 30: "trente", 40: "quarante", 50: "cinquante", 60: "soixante"}
_TIMES = {
    "en": {"hundred": 100, "thousand": 1000},
    "de": {"hundert": 100, "tausend": 1000},
    "es": {"mil": 1000},
    "fr": {"cent": 100, "cents": 100, "mille": 1000},
}
# What is said before a number word's noun, never after the number: `four or`, `two of the`.
_NO_NOUN = {
    "en": """
        a an and are as at be but by can cannot did do does for from had has have he how i if in
        into is it its may me more most much my no nor not of off on or other others our out
        over per she so some than that the their them then there these they this those to too up
        us was we were what when where which while who will with would you your both each only
        just also factor percent hundred thousand million
    """,
    "de": """
        aber als am an auch auf aus bei bis da das dass dem den der des die dies ein eine einem
        einen einer er es für hat ich ihr im in ist ja mit nach nicht noch nur oder sein sich
        sie sind so über um und uns vom von vor war was wenn wer wie wir wird zu zum zur davon
        prozent mal
    """,
    "es": """
        al como con de del el ella en es esa ese esta este la las lo los más mi muy ni no nos o
        para pero por que se si sin su sus también te tu un una y ya son están veces
    """,
    "fr": """
        à au aux avec ce ces cette dans de des du elle en est et eux il ils je la le les leur
        lui ma mais me mes mon ne nos notre nous ou où par pas plus pour qu que qui sa se ses
        son sur ta te tes ton tu un une vos votre vous sont ont fois
    """,
}
_FUNCTION = {language: frozenset(words.split()) for language, words in _NO_NOUN.items()}
# Words that tell the languages apart.
_TELLING = {
    "en": frozenset("the and is are of with for your you has have was there this from".split()),
    "de": frozenset("der das und ist sind mit für von nicht ein eine einen ihre sie es".split()),
    "es": frozenset("el los las y con por para su es son hay del una está tiene".split()),
    "fr": frozenset("le les des et est avec pour une votre vous du il sont sur dans".split()),
}
_UNIT_ONLY = frozenset(
    "hour minute day week month year stunde minute tag woche monat jahr hora minuto día".split()
)


class NumberWord(NamedTuple):
    start: int
    end: int
    number: int


@lru_cache(maxsize=8)
def _phrases(language: str) -> dict[tuple[str, ...], int]:
    """Every number up to 99 (a few above it in Spanish) as the words that it is written in."""
    match language:
        case "de":
            pairs = _german()
        case "es":
            pairs = _spanish()
        case "fr":
            pairs = _french()
        case _:
            pairs = _english()
    return {tuple(_WORD.findall(text)): number for text, number in pairs}


def _english() -> Iterator[tuple[str, int]]:
    yield from zip(_EN, range(20), strict=True)
    for tens, word in enumerate(_EN_TENS, start=2):
        yield word, 10 * tens
        for unit in range(1, 10):
            yield f"{word} {_EN[unit]}", 10 * tens + unit


def _german() -> Iterator[tuple[str, int]]:
    below = list(zip(_DE, range(20), strict=True))
    for tens, word in enumerate(_DE_TENS, start=2):
        below.append((word, 10 * tens))
        below += [(f"{_DE[unit]}und{word}", 10 * tens + unit) for unit in range(1, 10)]
    yield from below
    for hundreds in range(1, 10):
        for prefix in (f"{_DE[hundreds]}hundert", *(["hundert"] if hundreds == 1 else [])):
            yield prefix, 100 * hundreds
            for word, number in below[1:]:
                yield prefix + word, 100 * hundreds + number
    for word, number in below[2:]:
        yield f"{word}tausend", 1000 * number


def _spanish() -> Iterator[tuple[str, int]]:
    yield from zip(_ES, range(30), strict=True)
    yield "veintiún", 21
    for tens, word in enumerate(_ES_TENS, start=3):
        yield word, 10 * tens
        for unit in range(1, 10):
            yield f"{word} y {_ES[unit]}", 10 * tens + unit
    yield "cien", 100
    hundreds = "doscientos trescientos cuatrocientos quinientos seiscientos setecientos ochocientos"
    for number, word in enumerate([*hundreds.split(), "novecientos"], start=2):
        yield word, 100 * number
        yield word.replace("tos", "tas"), 100 * number


def _french() -> Iterator[tuple[str, int]]:
    yield from zip(_FR, range(20), strict=True)
    for tens, word in _FR_TENS.items():
        yield word, tens
        yield f"{word} et un", tens + 1
        for unit in range(2, 10):
            yield f"{word} {_FR[unit]}", tens + unit
    yield "soixante et onze", 71
    for unit in range(10, 20):
        yield f"soixante {_FR[unit]}", 60 + unit
    yield "quatre vingts", 80
    for unit in range(1, 20):
        yield f"quatre vingt {_FR[unit]}", 80 + unit


def language_of(text: str, locale: str | None = None) -> str:
    """The language that most of its common words belong to; English where nothing tells."""
    return _language_of(text, locale)


@lru_cache(maxsize=8)  # asked by two rules of one answer
def count_words(text: str) -> Counter[str]:
    """How often each of its words stands there, in lower case."""
    return Counter(letters_of(text))


def _language_of(text: str, locale: str | None) -> str:
    if locale is not None and locale[:2] in _TIMES:
        return locale[:2]
    if _not_english().isdisjoint(letters_of(text)):
        return "en"
    counted = count_words(text)
    counts = {
        language: sum(map(counted.__getitem__, telling & counted.keys()))
        for language, telling in _TELLING.items()
    }
    best = max(_TIMES, key=lambda language: (counts[language], language == "en"))
    return best if counts[best] > 1 or best == "en" else "en"


def find_number_words(text: str, locale: str | None = None) -> list[NumberWord]:
    """Number words right before what they count or measure, from left to right. `one` is a
    pronoun or an article everywhere but before a unit of time."""
    words = letters_of(text)
    if _first_words_of_all().isdisjoint(words):
        return []  # most texts hold none, in any language
    language = _language_of(text, locale)
    phrases = _phrases(language)
    first = _first_words(language)
    if first.isdisjoint(words):
        return []
    places = [
        at
        for at, word in enumerate(words)
        if word in first and (phrases.get((word,)) != 1 or _may_count_one(words, at, first))
    ]
    if not places:
        return []
    tokens = _Tokens(text, words, *_place(text))
    found: list[NumberWord] = []
    after = 0
    for at in places:
        if at < after:
            continue
        number, stop = _number_at(tokens, at, phrases, _TIMES[language])
        if number is not None and _counts(tokens, at, stop, number, language):
            found.append(NumberWord(tokens.starts[at], tokens.ends[stop - 1], number))
        after = max(stop, at + 1)
    return found


def _may_count_one(words: Sequence[str], at: int, first: frozenset[str]) -> bool:
    """`one hundred`, `one hour`; hardly any other `one` is a number."""
    noun = words[at + 1] if at + 1 < len(words) else ""
    return noun in first or any(noun.startswith(unit) for unit in _UNIT_ONLY)


@lru_cache(maxsize=32)  # several questions are asked of an answer and of what the user said
def letters_of(text: str) -> tuple[str, ...]:
    """Its words without digits, in lower case."""
    plain = blank_signs(text)
    if plain is not None:
        return tuple(letters_in(plain))
    words = _WORD.findall(text)
    folded = {word: word.casefold() for word in set(words)}
    return tuple(map(folded.__getitem__, words))


@lru_cache(maxsize=1)
def _not_english() -> frozenset[str]:
    return frozenset().union(*(words for one, words in _TELLING.items() if one != "en"))


@lru_cache(maxsize=1)
def _first_words_of_all() -> frozenset[str]:
    return frozenset().union(*map(_first_words, _TIMES))


@lru_cache(maxsize=8)
def _first_words(language: str) -> frozenset[str]:
    return frozenset(words[0] for words in _phrases(language)) | _TIMES[language].keys()


def _place(text: str) -> tuple[list[int], list[int]]:
    """Where its words begin, and where they end."""
    plain = blank_signs(text)
    if plain is not None:
        placed = place_letters(plain)
        return placed.starts, list(map(add, placed.starts, map(len, placed.words)))
    found = list(_WORD.finditer(text))
    return [one.start() for one in found], [one.end() for one in found]


MOST_TIMES = 1000  # nobody says `a thousand thousand`


class _Tokens(NamedTuple):
    """The words of a text, in lower case, and where they stand in it."""

    text: str
    words: Sequence[str]
    starts: list[int]
    ends: list[int]

    def is_joined(self, at: int) -> bool:
        """With the word before it."""
        return _JOINED.fullmatch(self.text, self.ends[at - 1], self.starts[at]) is not None


def _number_at(
    tokens: _Tokens, at: int, phrases: dict[tuple[str, ...], int], times: dict[str, int]
) -> tuple[int | None, int]:
    """The number that begins at this token, and the token after it."""
    total, current, stop = 0, None, at
    words = tokens.words
    while stop < len(words) and (stop == at or tokens.is_joined(stop)):
        word = words[stop]
        factor = times.get(word)
        if factor is not None and (current is not None or stop == at):
            if current is not None and current >= MOST_TIMES:
                break  # `twenty hundred hundred`
            current = (1 if current is None else current) * factor
            if factor == 1000:
                total, current = total + current, 0
            stop += 1
            continue
        if word == "and" and current is not None and current % 100 == 0 and current:
            length, number = _phrase_at(tokens, stop + 1, phrases)
            if number is None:
                break
            current, stop = current + number, stop + 1 + length
            continue
        length, number = _phrase_at(tokens, stop, phrases)
        if number is None or (current and (current % 100 or number > 99)):
            break
        current, stop = (current or 0) + number, stop + length
    return (None, at + 1) if current is None and not total else (total + (current or 0), stop)


def _phrase_at(
    tokens: _Tokens, at: int, phrases: dict[tuple[str, ...], int]
) -> tuple[int, int | None]:
    for length in (4, 3, 2, 1):
        if at + length <= len(tokens.words):
            number = phrases.get(tuple(tokens.words[at : at + length]))
            if number is not None and all(
                tokens.is_joined(place) for place in range(at + 1, at + length)
            ):
                return length, number
    return 0, None


def _counts(tokens: _Tokens, at: int, stop: int, number: int, language: str) -> bool:
    start = tokens.starts[at]
    if (start and tokens.text[start - 1] in "-'’") or stop >= len(tokens.words):
        return False
    noun = tokens.words[stop]
    if (
        _BEFORE_NOUN.match(tokens.text, tokens.ends[stop - 1]) is None
        or noun in _FUNCTION[language]
    ):
        return False
    if tokens.words[at] in _TIMES[language]:  # `a hundred thanks`
        return False
    return number != 1 or any(noun.startswith(unit) for unit in _UNIT_ONLY)


# What is dialled, and others in three groups of digits or more: one thing, however it is written.
_DIALLED = re.compile(
    r"(?:(?<=\+)[1-9]\d{0,2}(?:[ .-]?\(\d{1,5}\))?[ .-]?\d{2,12}(?:[ .-]\d{2,12}){0,4}"
    r"|(?<=\()\d{3}\) ?\d{3}[ .-]\d{4}|\d{3}\.\d{3}\.\d{4}|\d{1,13}(?:-\d{1,13}){2,8})"
    r"(?!\w|-\w|\.\d)",
    re.ASCII,
)
_THOUSANDS = re.compile(r"\d{1,3}(?:[ .]\d{3})+")  # `+12 345 678`
FEWEST_DIALLED, MOST_DIALLED = 9, 15  # digits: a date has eight
NATIONAL = 10  # digits in North America, where `+1` may be left out


def find_dialled(text: str, start: int, end: int) -> tuple[int, int, str] | None:
    """Where the number begins and ends whose first run of digits is from `start` to `end`, and the
    digits that tell it from others."""
    is_marked = start > 0 and text[start - 1] in "+("
    if not is_marked and text[end : end + 1] != "-" and text.count(".", start, end) != 2:
        return None
    found = _DIALLED.match(text, start)
    if found is None:
        return None
    digits = _NOT_DIGIT.sub("", found[0])
    if not FEWEST_DIALLED <= len(digits) <= MOST_DIALLED or _THOUSANDS.fullmatch(found[0]):
        return None
    key = digits[1:] if len(digits) == NATIONAL + 1 and digits[0] == "1" else digits
    return start - is_marked, found.end(), key
