"""Folding text for comparison, token boundaries, character ↔ byte offsets; and word lists for en,
de, es, fr: words too common to be evidence, words that admit a failure, abbreviations whose full
stop ends no sentence; currencies. Plain tuples, so that scoring reads no file."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate, compress, count
from operator import add
from typing import Any, Generic, Self, TypeVar, overload

import msgspec

Owner = TypeVar("Owner")
T = TypeVar("T")
# Scripts written without blanks: there is a token boundary between any two of their characters.
UNSPACED = (
    "\u0e00-\u0e7f\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\uff66-\uff9f\U00020000-\U0003ffff"
)
# A sign may stand for several currencies.
CURRENCIES = {
    "$": "USD CAD AUD NZD SGD HKD MXN ARS CLP COP", "€": "EUR", "£": "GBP EGP", "¥": "JPY CNY",
    "₹": "INR", "₽": "RUB", "₩": "KRW", "₺": "TRY", "₪": "ILS", "₫": "VND", "฿": "THB",
    "₴": "UAH", "₦": "NGN", "₱": "PHP", "₵": "GHS", "₨": "PKR LKR NPR", "₸": "KZT", "₾": "GEL",
    "₡": "CRC", "₲": "PYG", "₭": "LAK", "₼": "AZN", "৳": "BDT", "₿": "BTC",
}  # fmt: skip
SIGNS = "".join(CURRENCIES)
# No code that is a word as well, such as COP, PEN, ALL, TOP.
CODES = frozenset(
    """
    USD EUR GBP CHF JPY INR CAD AUD CNY BRL MXN SEK NOK DKK PLN CZK HUF RUB KRW ZAR TRY NZD SGD HKD
    THB ILS AED SAR IDR MYR PHP TWD VND UAH RON EGP NGN KES GHS PKR ISK QAR
    """.split()
)
# Those that lead an amount: `PHP 8.2` is a language.
LEADING = CODES - {"PHP"}
CURRENCY_NAMES = {
    "dollar": "$", "dollars": "$", "dólar": "$", "dólares": "$", "bucks": "$", "us$": "USD",
    "euro": "EUR", "euros": "EUR", "yen": "JPY", "yuan": "CNY", "rupees": "INR", "rupee": "INR",
    "francs": "CHF", "franken": "CHF", "pesos": "MXN",
}  # fmt: skip
SHORT = 64  # characters; what is read out of shorter texts is remembered
_NOT_ASCII = re.compile(r"[^\x00-\x7f]")
_PLAIN_TOKEN = re.compile(r"\w+")
_PLACED_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=1)
def joining_marks() -> str:
    """Combining marks as a character class: no \\w for Python, but part of the letter before."""
    ranges: list[str] = []
    start = None
    for code in range(0x0300, 0x1_0000):
        is_mark = unicodedata.category(chr(code))[0] == "M" and not _unspaced().match(chr(code))
        if is_mark and start is None:
            start = code
        elif not is_mark and start is not None:
            ranges.append(f"{chr(start)}-{chr(code - 1)}")
            start = None
    return "".join(ranges)


@lru_cache(maxsize=1)
def _unicode_token() -> re.Pattern[str]:
    return re.compile(rf"[{UNSPACED}]|(?:[^\W{UNSPACED}]|[{joining_marks()}])+")


@lru_cache(maxsize=1)
def _unspaced() -> re.Pattern[str]:
    return re.compile(f"[{UNSPACED}]")


def token_pattern(text: str) -> re.Pattern[str]:
    """What a token is in this text; `\\w+` is enough, and fast, where it is plain."""
    return _PLAIN_TOKEN if is_plain(text) else _unicode_token()


def is_plain(text: str) -> bool:
    """No combining marks, and no script without blanks: `’` and `é` are as plain as ASCII."""
    return text.isascii() or all(map(_is_plain, beyond_ascii(text)))


@lru_cache(maxsize=1 << 7)  # several questions are asked of one text
def beyond_ascii(text: str) -> frozenset[str]:
    return frozenset(_NOT_ASCII.findall(text))


@lru_cache(maxsize=1 << 10)
def _is_plain(char: str) -> bool:
    return unicodedata.category(char)[0] != "M" and not _unspaced().match(char)


# What a pattern that ignores case takes for `i`, `s` and `k`, and `lower` does not.
_LIKE_ASCII = str.maketrans({"\u0130": "i", "\u0131": "i", "\u017f": "s", "\u212a": "k"})
_IS_LIKE_ASCII = re.compile("[\u0130\u0131\u017f\u212a]")


def lower(text: str) -> str:
    """In lower case, as a pattern that ignores case sees it. Lengths stay."""
    if not text.isascii() and _IS_LIKE_ASCII.search(text):
        text = text.translate(_LIKE_ASCII)
    return text.lower()


_ESCAPED_LINE = re.compile(r'^\s*[\[{"]|\\n\\n|\\n[-*\d]')


def break_literal_newlines(text: str) -> str:
    """A two-character backslash-n, which answers written as JSON hold, is a line break there.
    Lengths stay. In `C:\\new` it is none."""
    if "\\n" not in text:
        return text
    return "\n".join(
        line.replace("\\n", "\n\n") if _ESCAPED_LINE.search(line) else line
        for line in text.split("\n")
    )


def fold(text: str) -> str:
    """NFC, casefolded, white space folded to single blanks and trimmed."""
    # Several questions are asked of every leaf, and one leaf is like another.
    return _fold_short(text) if len(text) <= SHORT else fold_once(text)


def fold_once(text: str) -> str:
    """The same, not remembered: for whoever remembers what comes of it, or asks but once."""
    if text.isascii():
        folded = text.lower()
    else:
        folded = unicodedata.normalize("NFC", unicodedata.normalize("NFC", text).casefold())
    return " ".join(folded.split())


_fold_short = lru_cache(maxsize=1 << 14)(fold_once)


def fold_words(words: Sequence[str]) -> list[str]:
    """Each of them folded: an answer has few different words."""
    folded = {one: one.lower() if one.isascii() else fold(one) for one in set(words)}
    return list(map(folded.__getitem__, words))


class Frozen(msgspec.Struct, frozen=True, gc=False):
    """What is made by the hundred for one answer: a third of what a `NamedTuple` costs to make, and
    half of it to read. Nothing that it holds may hold it, or say `gc=True`: the collector does not
    look at it, which is what keeps large inputs linear."""

    def _replace(self, **changes: Any) -> Self:
        return msgspec.structs.replace(self, **changes)


class once(Generic[Owner, T]):  # noqa: N801 - a decorator, written as `property` is
    """`functools.cached_property` without its lock, which costs more than most that is worked out
    here. One answer is scored by one thread."""

    def __init__(self, work: Callable[[Owner], T]) -> None:
        self._work = work
        self.__doc__ = work.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, one: None, owner: type) -> once[Owner, T]: ...

    @overload
    def __get__(self, one: Owner, owner: type) -> T: ...

    def __get__(self, one: Owner | None, owner: type) -> once[Owner, T] | T:
        if one is None:
            return self
        found = one.__dict__[self._name] = self._work(one)
        return found


@lru_cache(maxsize=1 << 8)
def _is_sign(char: str) -> bool:
    """No letter and no digit, and none with what stands beside it or once it is folded."""
    folded = fold(char)
    return (
        _is_plain(char)
        and not char.isalnum()
        and len(folded) <= 1
        and not any(map(str.isalnum, folded))
    )


@lru_cache(maxsize=8)  # several rules ask for the words of one answer
def blank_signs(text: str) -> str | None:
    """The text with blanks for the signs beyond ASCII: `’`, `–`, `•`. None where it has letters or
    digits beyond it, whose words only a pattern can tell."""
    if not text.isascii():
        for char in beyond_ascii(text):
            if not _is_sign(char):
                return None
            text = text.replace(char, " ")
    return text


def _table(kept: Callable[[str], bool]) -> dict[int, str]:
    return {code: char.lower() if kept(char) else " " for code in range(128) if (char := chr(code))}


# Two to three times as fast as a pattern, where there are none but ASCII letters.
_TOKENS = _table(lambda char: char.isalnum() or char == "_")
_WORDS = _table(str.isalnum)
_LETTERS = _table(str.isalpha)


def tokens_in(plain: str) -> list[str]:
    """What `\\w+` finds in a text without signs, in lower case."""
    return plain.translate(_TOKENS).split()


def words_in(plain: str) -> list[str]:
    """What `[^\\W_]+` finds in it, in lower case."""
    return plain.translate(_WORDS).split()


def letters_in(plain: str) -> list[str]:
    """What `[^\\W\\d_]+` finds in it, in lower case."""
    return plain.translate(_LETTERS).split()


class PlacedWords:
    """The words of a text, folded, and where each of them begins and ends in it. Most names stand
    nowhere in it: then nobody asks where."""

    def __init__(
        self, words: list[str], written: list[str], find_starts: Callable[[], list[int]]
    ) -> None:
        self.words = words
        self._written, self._find_starts = written, find_starts

    @once
    def starts(self) -> list[int]:
        return self._find_starts()

    def end_of(self, at: int) -> int:
        return self.starts[at] + len(self._written[at])

    @once
    def by_word(self) -> dict[str, list[int]]:
        """Each different word, with which of the words are it: many rules look for some."""
        found: dict[str, list[int]] = {}
        for at, word in enumerate(self.words):
            if word in found:
                found[word].append(at)
            else:
                found[word] = [at]
        return found

    def find(self, words: Collection[str]) -> list[int]:
        """Which of the words are one of these, in order."""
        known: dict[str, list[int]] | None = self.__dict__.get("by_word")
        if known is None:  # to look once is cheaper than to gather them
            return [at for at, word in enumerate(self.words) if word in words]
        return sorted([at for word in known.keys() & words for at in known[word]])


@lru_cache(maxsize=4)  # several rules look for names in one answer
def place_words(text: str) -> PlacedWords:
    plain = blank_signs(text)
    if plain is None:
        found: list[str] = _PLACED_WORD.findall(text)
        return PlacedWords(
            fold_words(found),
            found,
            lambda: [one.start() for one in _PLACED_WORD.finditer(text)],
        )
    return _place_all(plain.translate(_WORDS))


@lru_cache(maxsize=4)
def place_tokens(text: str) -> PlacedWords | None:
    """The same of what `\\w+` finds; None where only a pattern can tell."""
    if "_" not in text:
        return None if blank_signs(text) is None else place_words(text)
    plain = blank_signs(text)
    return None if plain is None else _place_all(plain.translate(_TOKENS))


def place_letters(plain: str) -> PlacedWords:
    """The same of what `letters_in` finds in a text without signs."""
    return _place_all(plain.translate(_LETTERS))


def _place_all(spaced: str) -> PlacedWords:
    # Pieces between single blanks, some of them empty: each begins one after the end of the last.
    pieces = spaced.split(" ")
    words = list(filter(None, pieces))

    def find_starts() -> list[int]:
        sizes = accumulate(map(len, pieces), initial=0)
        return list(compress(map(add, sizes, count()), pieces))

    return PlacedWords(words, words, find_starts)


class Folded:
    """A folded text that can say where a position lies in the original."""

    __slots__ = ("_origin", "original", "text")

    def __init__(self, original: str) -> None:
        self.original = original
        self.text = fold(original)
        self._origin: Sequence[int] | None = None

    def origin(self, position: int) -> int:
        """The offset in the original of the folded character at `position`."""
        if self._origin is None:
            self._origin = self._origins()
        return self._origin[position]

    def _origins(self) -> Sequence[int]:
        if len(self.text) == len(self.original) and _keeps_lengths(self.original):
            return range(len(self.text) + 1)
        origins: list[int] = []
        previous_blank = True
        for start, end in _clusters(self.original):
            piece = self.original[start:end]
            if not piece.isascii():
                piece = fold(piece)
            if not piece or piece.isspace():
                if not previous_blank:
                    origins.append(start)
                previous_blank = True
                continue
            previous_blank = False
            origins.extend([start] * len(piece))
        # A trailing blank is trimmed; folding across clusters may differ by a character.
        origins = origins[: len(self.text)]
        end = len(self.original.rstrip())
        origins.extend([end] * (len(self.text) + 1 - len(origins)))
        return origins


def _keeps_lengths(text: str) -> bool:
    """Does no character become two? Then none is lost either, if the whole keeps its length."""
    return text.isascii() or all(
        len(fold(char)) <= 1 and not unicodedata.combining(char)
        for char in set(_NOT_ASCII.findall(text))
    )


def _clusters(text: str) -> list[tuple[int, int]]:
    """Base characters with the combining marks that follow them."""
    clusters: list[tuple[int, int]] = []
    for index, char in enumerate(text):
        if clusters and not char.isascii() and unicodedata.combining(char):
            clusters[-1] = (clusters[-1][0], index + 1)
        else:
            clusters.append((index, index + 1))
    return clusters


_APART = frozenset(" \n\t.,;:!?*|-\"'()")  # nothing is one token with these


def is_boundary(text: str, position: int) -> bool:
    """A boundary lies between two characters unless both are letters, marks, digits or `_`;
    between CJK, kana or Thai characters always."""
    if position <= 0 or position >= len(text):
        return True
    before, after = text[position - 1], text[position]
    if before in _APART or after in _APART:
        return True
    if not (_is_word(before) and _is_word(after)):
        return True
    if before.isascii() and after.isascii():
        return False
    unspaced = _unspaced()
    return bool(unspaced.match(before) or unspaced.match(after))


def joins(char: str) -> bool:
    """Would this character be one token with a digit beside it?"""
    if char.isascii():
        return char.isalnum() or char == "_"
    return _is_word(char) and not _unspaced().match(char)


def _is_word(char: str) -> bool:
    if char.isascii():
        return char.isalnum() or char == "_"
    return char.isalnum() or char == "_" or unicodedata.category(char)[0] == "M"


def find_at_boundaries(needle: str, haystack: str) -> int:
    """The first place where `needle` stands between token boundaries, or -1."""
    position = haystack.find(needle)
    while position >= 0:
        if is_boundary(haystack, position) and is_boundary(haystack, position + len(needle)):
            return position
        position = haystack.find(needle, position + 1)
    return -1


class ByteOffsets:
    """Character offset → UTF-8 byte offset, for many offsets of one text."""

    __slots__ = ("_more", "_places", "_text")

    def __init__(self, text: str) -> None:
        self._text = None if text.isascii() else text
        self._places: list[int] | None = None  # right after each character of several bytes
        self._more = [0]  # so many bytes more than characters up to each of them

    def __call__(self, position: int) -> int:
        if self._text is None:
            return position
        if self._places is None:
            self._places = [one.end() for one in _NOT_ASCII.finditer(self._text)]
            wide = map(_width, _NOT_ASCII.findall(self._text))
            self._more = list(accumulate(wide, initial=0))
        return position + self._more[bisect_right(self._places, position)]


def _width(char: str) -> int:
    """Its bytes, but for the first."""
    code = ord(char)
    return 1 if code < 0x800 else 2 if code < 0x10000 else 3


def char_offset(text: str, byte_offset: int) -> int:
    """UTF-8 byte offset → character offset (an offset inside a character: that character's)."""
    return char_offsets(text, (byte_offset,))[byte_offset]


def char_offsets(text: str, byte_offsets: Iterable[int]) -> dict[int, int]:
    """The same for many of one text, which is read once."""
    wanted = sorted(set(byte_offsets))
    if text.isascii():
        return {one: one for one in wanted}
    data = text.encode("utf-8", "surrogatepass")
    found: dict[int, int] = {}
    whole = count = 0  # so many bytes before the last offset between characters are so many of them
    for one in wanted:
        found[one] = count + len(data[whole:one].decode("utf-8", "ignore"))
        if 0 < one < len(data) and data[one] & 0xC0 != 0x80:
            whole, count = one, found[one]
    return found


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

# Whole words and phrases; `(…)` are the endings that a word may have, `_` is a blank.
_FAILURE = """
fail(s|ed|ing|ure|ures) error(s|ed) unable unavailable unsuccessful(ly) cannot can't can’t can_not
couldn't couldn’t could_not wasn't_able wasn’t_able was_not_able did_not_work didn't_work
didn’t_work timeout(s) time-out timed_out not_found no_result(s) nothing_found nothing_was_found
not_available denied refused rejected unreachable problem(s) issue(s) went_wrong invalid aborted
fehler(s|n|haft) fehlgeschlagen fehlschlag fehlschlug fehlte fehlt gescheitert scheiterte
nicht_möglich unmöglich konnte_nicht konnten_nicht kann_nicht nicht_gefunden nicht_verfügbar
nicht_erreichbar zeitüberschreitung abgelehnt verweigert leider_nicht keine_ergebnisse
falló fallo(s) fallar falla(n|do) fallado error(es) imposible no_pude no_pudo no_pudieron no_se_pudo
no_se_puede no_fue_posible no_es_posible no_encontr(é|ó|amos|ado|ada) no_se_encontr(ó|aron)
no_disponible denegad(o|a) rechazad(o|a) tiempo_de_espera sin_resultados
échec(s) échou(é|ée|er|e) erreur(s) impossible(s) n'ai_pas_pu n’ai_pas_pu n'a_pas_pu n’a_pas_pu
n'avons_pas_pu n’avons_pas_pu introuvable(s) indisponible(s) refusé(e) délai_dépassé aucun_résultat
pas_trouvé(e) a_échoué pas_disponible
"""


def _alternative(word: str) -> str:
    body, _, endings = word.partition("(")
    pattern = re.escape(body).replace("_", r"\s+")
    return f"{pattern}(?:{endings.rstrip(')')})?" if endings else pattern


_FAILURE_RE = re.compile(
    r"(?<!\w)(?:"
    + "|".join(map(_alternative, sorted(_FAILURE.split(), reverse=True)))
    + r")(?!\w)",
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

# Numbers as words. Left out: what is another word in another of these languages (once, sept, cent).
NUMBER_WORDS: dict[str, int] = {
    word: number
    for line in """
    1 one ein eine uno una un une
    2 two both zwei beide dos deux
    3 three drei tres trois
    4 four vier cuatro quatre
    5 five fünf cinco cinq
    6 six sechs seis
    7 seven sieben siete
    8 eight acht ocho huit
    9 nine neun nueve neuf
    10 ten zehn diez dix
    11 eleven onze
    12 twelve dozen zwölf doce douze
    13 thirteen dreizehn trece treize
    14 fourteen vierzehn catorce quatorze
    15 fifteen fünfzehn quince quinze
    16 sixteen sechzehn dieciséis seize
    17 seventeen siebzehn diecisiete
    18 eighteen achtzehn dieciocho
    19 nineteen neunzehn diecinueve
    20 twenty zwanzig veinte vingt
    30 thirty dreißig treinta trente
    40 forty vierzig cuarenta quarante
    50 fifty fünfzig cincuenta cinquante
    60 sixty sechzig sesenta soixante
    70 seventy siebzig setenta
    80 eighty achtzig ochenta
    90 ninety neunzig noventa
    100 hundred hundert cien
    1000 thousand tausend mil mille
    """.strip().splitlines()
    for number, words in [(int(line.split()[0]), line.split()[1:])]
    for word in words
}

# Codes that do not look like the city that they stand for: nobody has to be told that JFK is one
# of New York's.
AIRPORT_CITIES: dict[str, str] = {
    code: city
    for line in """
    JFK LGA EWR NYC new york|ORD MDW CHI chicago|IAH HOU houston|DTW detroit|MCO ORL orlando
    DFW DAL dallas|IAD DCA BWI WAS washington|CVG cincinnati|MSY new orleans|BNA nashville
    YYZ YTO toronto|YUL YMQ montreal|YVR vancouver|YYC calgary|YOW ottawa|SDF louisville
    LHR LGW STN LTN LCY LON london|CDG ORY PAR paris|FCO CIA ROM rome|MXP LIN milan|SVO moscow
    HND NRT TYO tokyo|KIX ITM osaka|ICN GMP SEL seoul|PEK PKX BJS beijing|PVG SHA shanghai
    GRU sao paulo|GIG RIO rio de janeiro|EZE BUE buenos aires|BER TXL berlin|VIE vienna
    CAN guangzhou|DEL delhi|BOM mumbai|BLR bangalore|MAA chennai|CPT cape town|JNB johannesburg
    """.strip()
    .replace("\n", "|")
    .split("|")
    for code in re.findall(r"\b[A-Z]{3}\b", line)
    for city in [re.sub(r"\b[A-Z]{3}\b", "", line).strip()]
}

# `ending in 7880`: after these words digits may be the end of an identifier.
_ENDING_RE = re.compile(
    r"(?<!\w)(?:end(?:ing|s)(?:[ ](?:in|with|on))?|last[ ](?:four|three|five|six)(?:[ ]digits)?:?"
    r"|end(?:et|en|end|ung)(?:[ ](?:auf|mit))?|letzten[ ]vier[ ]Ziffern:?"
    r"|termina(?:d[ao]|n)?(?:[ ](?:en|con))|termin(?:ant|e|ée)[ ]par|finissant[ ]par)"
    r"[ \u00a0]+[*_`(#•…x]{0,8}$",
    re.IGNORECASE,
)


def names_an_ending(text: str, start: int) -> bool:
    """Do the words before this place say that the end of something follows?"""
    return _ENDING_RE.search(text[max(0, start - 40) : start]) is not None


# What carries a minus sign in words.
_LESS_RE = re.compile(
    r"(?<!\w)(?:ow(?:e|es|ed|ing)|debts?|outstanding|overdrawn|spen[dt]\w*|paid|pays?|paying|payments?"
    r"|costs?|charg\w+|debit\w*|deduct\w*|withdr\w+|went[ ]out|going[ ]out|expenses?|loss(?:es)?"
    r"|lost|lose[sd]?|negative|minus|below|fell|falls?|fallen|falling|dropp?\w*|down|declin\w+|decreas\w+"
    r"|lower|less|slipp?\w*|shr[aiu]nk\w*|refund\w*|discount\w*|reduc\w+|off|sent|bought|purchas\w+"
    r"|schuld\w*|ausgegeben|ausgaben?|bezahl\w+|gezahlt|zahl\w+|abgebucht|belastet|verlust\w*|verlor\w*"
    r"|gefallen|gesunken|sank|niedriger|weniger|rabatt|gekauft|kostet\w*"
    r"|deb(?:e|es|en)|adeud\w+|deuda|gast\w+|pag\w+|cargo\w*|pérdida\w*|perd\w+|baj\w+|cay\w+|menos"
    r"|descuento\w*|reembols\w+|compr\w+|cost\w+"
    r"|doi[st]|devez|dett\w+|dépens\w+|pay\w+|débit\w*|pert\w+|perd\w+|baiss\w+|moins|remis\w+"
    r"|rembours\w+|achet\w+|achat\w*|coût\w*)(?!\w)",
    re.IGNORECASE,
)


def says_less(text: str) -> bool:
    """Do the words say that something was owed, spent, lost or fell?"""
    return _LESS_RE.search(text) is not None


def admits_failure(text: str) -> bool:
    """Does the text hold a word that says that something did not work?"""
    return _FAILURE_RE.search(text) is not None


# What asks for information without a question mark. `Let me know if you need anything` does not.
_REQUEST_RE = re.compile(
    r"""(?<!\w)(?:
    please[ ,]+(?:also[ ])?(?:tell|let[ ]me[ ]know|provide|specify|share|clarify|confirm|give|send
      |indicate|choose|select|enter|state|describe|explain|name|supply|reply)
    |let[ ]me[ ]know[ ,]+(?:please[ ])?(?:which|what|when|where|who|whom|how|whether|the|your|more)
    |tell[ ]me[ ](?:which|what|when|where|who|how|whether|the|your|more)
    |(?:i|we)(?:['’]ll|[ ]will|['’]d|[ ]would)?[ ](?:still[ ])?need[ ](?:to[ ]know|your|the|more
      |some|a[ ]few|further|additional|an?[ ]\w+|you[ ]to)
    |bitte[ ](?:nenn|sag|gib|geb|teil|wähl|bestätig|präzisier|beschreib)\w*
    |(?:teilen|sagen|nennen|geben)[ ]sie[ ](?:mir|bitte)|lassen[ ]sie[ ]mich[ ]wissen
    |ich[ ](?:brauche|benötige)
    |por[ ]favor,?[ ](?:díga|dime|indi|proporcion|especifi|confirm|env[ií]|aclar|d[ae])\w*
    |(?:dígame|dime|indíqueme|indícame|hágame[ ]saber|especifique|aclare)
    |necesito[ ](?:saber|su|tu|el|la|más|que)|necesitaría
    |veuillez[ ](?:me[ ])?(?:préciser|indiquer|fournir|dire|confirmer|donner|choisir)
    |merci[ ]de[ ](?:me[ ])?(?:préciser|indiquer|fournir|dire|confirmer|donner)
    |(?:dites|indiquez|donnez|précisez)(?:-moi)?|faites-moi[ ]savoir
    |j['’]ai[ ]besoin[ ]d|j['’]aurais[ ]besoin[ ]d|il[ ]me[ ]faut
    )""",
    re.IGNORECASE | re.VERBOSE,
)
_TIME_SPAN_RE = re.compile(
    r"[\s-]?(?:business[\s-]|working[\s-])?(?:seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|weeks?"
    r"|months?|years?|Sekunden?|Minuten?|Stunden?|Tage?n?|Werktage?n?|Wochen?|Monate?n?|Jahre?n?"
    r"|segundos?|minutos?|horas?|días?|semanas?|mes(?:es)?|años?|secondes?|heures?|jours?"
    r"|semaines?|mois|ans?)(?!\w)",
    re.IGNORECASE,
)
_WORD_RE = re.compile(r"[^\W\d_]+")
# `two questions`, `three things`: words about the talk itself.
_TALK = frozenset(
    "question questions thing things detail details piece pieces point points step steps way ways"
    " of more other others fragen dinge angaben preguntas cosas datos questions choses".split()
)


def asks_for_information(text: str) -> bool:
    """Does the text ask for something in words?"""
    return _REQUEST_RE.search(text) is not None


def is_time_span(text: str, end: int) -> bool:
    """Does a unit of time follow the number that ends here: `30 days`, `5-minute`?"""
    return _TIME_SPAN_RE.match(text, end) is not None


def find_number_words(text: str) -> Iterator[tuple[int, int, int]]:
    """Start, end and number of each number that is written as a word; `one` is none."""
    words = list(_WORD_RE.finditer(text))
    for at, word in enumerate(words):
        number = NUMBER_WORDS.get(word[0].casefold(), 0)
        follows = words[at + 1][0].casefold() if at + 1 < len(words) else ""
        if number > 1 and follows not in _TALK:
            yield word.start(), word.end(), number


_TOLD_TOKEN = re.compile(r"[^\W_]+")
LONG_TOLD = 1000  # characters


def tokens_of(text: str) -> list[str]:
    return list(_long_tokens(text)) if len(text) > LONG_TOLD else _TOLD_TOKEN.findall(fold(text))


@lru_cache(maxsize=1 << 7)
def _long_tokens(text: str) -> tuple[str, ...]:
    """Remembered: a system prompt comes back with every sample."""
    plain = blank_signs(text)
    return tuple(_TOLD_TOKEN.findall(fold(text)) if plain is None else words_in(plain))


def find_at(pattern: re.Pattern[str], text: str, places: Iterable[int]) -> Iterator[re.Match[str]]:
    """As `finditer` does, where a match can begin at these places only: to try a long pattern at
    each character costs as much as all other rules."""
    end = 0
    for place in places:
        found = pattern.match(text, place) if place >= end else None
        if found is not None:
            end = found.end()
            yield found


def number_in_words(word: str | None) -> int | None:
    if not word or len(word) > LONG_TOLD:  # nobody counts so many
        return None
    return int(word) if word.isdecimal() else NUMBER_WORDS.get(fold(word))
