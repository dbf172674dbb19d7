"""Checkable values in a text: numbers, dates, times, URLs, e-mails, quotations, code, identifiers.

One pass of one regular expression finds the tokens, another one (only where there are digits)
the dates. Offsets here are characters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Literal

from callmark.grounding import numbers
from callmark.grounding.dates import FoundMoment, Moment, find_moments
from callmark.grounding.numbers import SPACES
from callmark.grounding.text import (
    LEADING,
    SHORT,
    SIGNS,
    UNSPACED,
    Frozen,
    beyond_ascii,
    break_literal_newlines,
    fold,
    is_plain,
    joining_marks,
)

ValueKind = Literal["number", "moment", "url", "email", "quote", "code", "identifier"]
LONG_DIGITS = 5  # that many digits of an identifier stand for it by themselves
PARTIAL_DIGITS = 3  # that many stand for its end, where the text says `ending in`
WHOLE_KINDS = frozenset(("number", "moment", "url", "email", "identifier"))
_JOINTS = re.compile(r"[-_#\s]+")
_LETTER_DIGIT = re.compile(r"(?<=[^\W\d_])-(?=\d)|(?<=\d)-(?=[^\W\d_])")


class Form(Frozen, frozen=True):
    """What stands around the digits: where a minus sign is, a per cent sign, `million`."""

    sign: int | None = None
    percent: bool = False
    factor: int = 1

    def readings(self, reading: int) -> tuple[int, ...]:
        """`50 %` is 50 and 0.5; `18.4 million` is 18400000, and 18.4 of a unit of millions."""
        signed = reading if self.sign is None else -reading
        if self.percent:
            return (signed, signed // 100)
        return (signed,) if self.factor == 1 else (signed * self.factor, signed)


class Value(Frozen, frozen=True):
    """What is compared: `readings` of a number (in 10⁻¹² units), `moments`, or the `key`."""

    start: int
    end: int
    kind: ValueKind
    text: str
    readings: tuple[int, ...] = ()
    moments: tuple[Moment, ...] = ()
    key: str = ""
    inner: tuple[Value, ...] = ()
    form: Form = Form()
    own: tuple[Moment, ...] = ()
    every_way: tuple[Moment, ...] = ()
    unit: str = ""  # or currency, where it was looked for

    def shifted(self, by: int) -> Value:
        inner = tuple(value.shifted(by) for value in self.inner)
        return self._replace(start=self.start + by, end=self.end + by, inner=inner)


@lru_cache(maxsize=1 << 14)
def identifier_key(text: str) -> str:
    """Without case, and without `-`, `_`, `#` and blanks between letters and digits, so that
    `HAT 023` is `HAT023`; other such runs are all alike."""
    folded = text.casefold() if text.isascii() else unicodedata.normalize("NFC", text).casefold()
    if folded.isalnum():
        return folded
    joined = _JOINTS.sub("-", folded).strip("-")
    return _LETTER_DIGIT.sub("", joined)


def ends_in(key: str, digits: str) -> bool:
    """Is this the end of a longer identifier's digits: `7880` of `card4421487880`?"""
    if len(digits) < PARTIAL_DIGITS or not key.endswith(digits):
        return False
    last = len(key) - len(key.rstrip("0123456789"))
    return last > len(digits) and last >= LONG_DIGITS


def url_key(text: str) -> str:
    """`host/first-segment`, folded, `www.` off, port kept."""
    rest = re.sub(r"^[a-zA-Z]+://", "", text)
    host, _, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    host = host.rpartition("@")[2].casefold().removeprefix("www.").rstrip(".")
    return f"{host}/{path.split('/', 1)[0].casefold()}"


_SEP = rf"[.,'’٫٬{SPACES}]"
ANY_SEPARATOR = re.compile(rf"{_SEP}|[ ]")
_TLD = "com|org|net|io|dev|edu|gov|ai|app|info"
_IN_URL = r"[^\s<>\"“”`|]"
_OPEN_CLOSE = (
    ("“", "”"), ("„", "“”"), ("«", "»"), ("‹", "›"), ("「", "」"), ("『", "』"),
    ("‘", "’"),
)  # fmt: skip
_QUOTES = "|".join(rf"{o}[^{o}{c}\n]{{2,300}}[{c}]" for o, c in _OPEN_CLOSE)
# Inside a JSON string the marks are escaped, and pair with each other only.
_QUOTES += r'|\\"[^"\n]{2,300}?\\"|(?<!\\)"(?:[^"\\\n]|\\.){2,300}"'
_HTTP = rf"(?P<url>(?i:https?|ftp)://{_IN_URL}+|(?<![\w@.])(?i:www)\.{_IN_URL}+)|"
_EMAIL = r"(?P<email>(?<![\w.+@-])[\w.+-]{1,64}@(?:[\w-]+\.)+[^\W\d_]{2,})|"
_DOMAIN = (
    rf"(?P<domain>(?<![\w.@/-])(?:[a-zA-Z0-9][a-zA-Z0-9-]*\.)+(?i:{_TLD})(?![\w@-])(?!\.\w)"
    rf"(?::\d+)?(?:/{_IN_URL}*)?)|"
)
_REST = (
    r"(?P<code>(?<!`)`[^`\n]{1,300}`(?!`))"
    r'|(?P<key>(?<![\w\\])"[^"\n]{1,80}"\s?:)'
    rf"|(?P<quote>(?<!\w)(?:{_QUOTES})|(?<!\w)'[^'\n]{{2,200}}'(?!\w))"
    r"|(?P<hash>(?<![\w&])\#\w[\w-]*)"
    r"|(?P<word>(?<!\w)(?<!\w-)(?:_+[^\W_]\w*|[^\W\d_]+(?:[\d_]\w*|(?:-[^\W\d_]+)*-(?=\w*\d)\w+))"
    r"(?:(?<=\d)\.\w*\d\w*|-\w*\d\w*)*)"
    rf"|(?P<number>(?<!\w)(?:(?<!\.)\.(?=\d))?\d+(?:{_SEP}\d+|[ ]\d{{3}}(?!\d))*)"
    r"(?P<exponent>[eE][+-]?\d+(?!\w))?(?P<tail>[^\W\d_]*[²³]?)(?P<more>\w*)"
)
_DOMAIN_SIGN = re.compile(rf"\.(?i:{_TLD})")


@lru_cache(maxsize=32)
def _compile(
    plain: bool, at: bool, scheme: bool, domain: bool, apostrophe: bool
) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """The token pattern with only the alternatives that the text can need, and the characters
    one of which stands in every token: between them whole words are skipped."""
    token = (_HTTP if scheme or domain else "") + (_EMAIL if at else "")
    token += (_DOMAIN if domain else "") + _REST
    if plain:  # only these begin right after a letter; elsewhere in a word none is tried
        token = rf"(?:(?<![^\W\d_])|(?=[`{'hHfF' if scheme or domain else ''}]))(?:{token})"
    else:
        # `1,234円` is a number beside a word: scripts without blanks join nothing.
        token = token.replace(r"(?<!\w)", rf"(?<![^\W{UNSPACED}])(?<![{joining_marks()}])")
        token = token.replace(r"[^\W\d_]", rf"(?:[^\W\d_{UNSPACED}]|[{joining_marks()}])")
        token = token.replace(r"(?P<more>\w*)", rf"(?P<more>[^\W{UNSPACED}]*)")
    signs = '\\d_#`"“„«‹「『‘' + ("@" if at else "") + ("/" if scheme else "")
    hot = f"[{signs}]"
    if domain or apostrophe:
        # One set of characters at its head: only so a pattern skips what is none of them.
        hot = f"[{signs}{'.' * domain}{chr(39) * apostrophe}](?:(?<=[{signs}])"
        hot += r"|(?<=\.)(?=\S)" if domain else ""
        if apostrophe:  # `don't` quotes nothing
            hot += rf"|(?<=')(?<![^\W{'' if plain else UNSPACED}]')"
        hot += ")"
    return re.compile(token), re.compile(hot)


def patterns_for(text: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """(token, hot) for one text."""
    domain = "." in text and (_DOMAIN_SIGN.search(text) is not None or "www" in text.lower())
    return _compile(is_plain(text), "@" in text, "://" in text, domain, "'" in text)


# One character for one, so that offsets stay. Longer dashes are hyphens only between digits, and
# an en dash is a minus sign too: `flight—12 seats` is no identifier.
_ALIKE = {"\u2010": "-", "\u2011": "-", "\u2012": "-", "．": ".", "，": ",", "：": ":", "％": "%"}
_ALIKE |= {chr(0xFF10 + digit): str(digit) for digit in range(10)}
_DASH = re.compile(
    r"[–—―](?:(?<=\d[–—―])(?=\d)|(?<=–)(?<![^\s(]–)(?=[$€£]?\d))"  # the dash first: it is rare
)
_UNITS = frozenset(
    """
    kb mb gb tb pb kib mib gib tib bps kbps mbps gbps hz khz mhz ghz w kw mw gw wh kwh mwh gwh v
    kv mv ma mah ah ohm m km cm mm nm um µm μm mi ft in yd nmi g kg mg ug µg μg lb lbs oz l ml
    cl dl gal s sec secs ms us µs μs ns min mins h hr hrs day days wk wks mo yr yrs k bn mn tn x
    px pt em rem dpi fps rpm mph kmh kph psi bar pa kpa hpa mpa kj cal kcal ev db pc pcs pp
    m² m³ km² cm² cm³ percent usd eur gbp chf jpy inr cad aud cny brl mxn sek nok dkk pln
    """.split()
)
_FRACTIONS = {
    "½": ".5", "¼": ".25", "¾": ".75", "⅛": ".125", "⅜": ".375", "⅝": ".625", "⅞": ".875",
    "⅓": ".333", "⅔": ".667", "⅕": ".2", "⅖": ".4", "⅗": ".6", "⅘": ".8",
}  # fmt: skip
_ORDINALS = frozenset("st nd rd th er re e ème eme nde º ª".split())
_TAILS = _UNITS | _ORDINALS
_DEGREES = ("C", "F")
_SIGNS = "-−"
_BEFORE_SIGN = frozenset(" \t\n\r\v\f\u00a0\u202f\u2009([{<" + SIGNS + "\"'“„«‹*|=:~≈`")

_PERCENT = re.compile(
    r"\s?(?:%|％|٪|(?:percent|per\scent|prozent|por\sciento|pour\scent|por\scento)\b)",
    re.IGNORECASE,
)
_FACTORS = {
    "thousand": 10**3, "tausend": 10**3,
    "million": 10**6, "millions": 10**6, "millionen": 10**6, "mio": 10**6, "millón": 10**6,
    "millones": 10**6, "milliard": 10**9, "milliards": 10**9, "milliarde": 10**9,
    "milliarden": 10**9, "mrd": 10**9, "billion": 10**9, "billions": 10**9,
    "trillion": 10**12,
}  # fmt: skip
_SCALE = re.compile(rf"\s({'|'.join(sorted(_FACTORS, reverse=True))})\b", re.IGNORECASE)
# `45k`, `$400.4B`; `5m` and `7B` say so only of money.
_GLUED = {"k": 10**3, "bn": 10**9, "mn": 10**6, "tn": 10**12}
_GLUED_MONEY = {"m": 10**6, "b": 10**9, "t": 10**12}
_PERCENT_STARTS = frozenset(" \u00a0\u202f%％٪")
NEARBY = 300  # how far around a token its line is looked at
_DIGIT = re.compile(r"\d")
# Every date and every time begins with one, two or four digits.
# One, two or four digits; the first of them first, as only that is looked for quickly.
_MAY_BE_MOMENT = re.compile(r"\d(?<!\d\d)(?:\d(?:\d\d)?)?(?!\d)")
_LETTER = re.compile(r"[^\W\d_]")
_NOT_DIGIT = re.compile(r"\D")
_BEFORE_MARKER = re.compile(r"[ \t>*_|#-]*\(?")
_AFTER_MARKER = re.compile(r"[.)][*_]*[ \t]+\S")
_CAPITALS_BEFORE = re.compile(r"(?<!\w)[A-Z]{2,5}\s$")
_PLAIN = re.compile(r"\d+(?:\.\d+)?")
_HYPHEN_CHAIN = re.compile(r"\d\w*(?:-\w+){1,24}")  # or each group would be read to the end


def number_values(match: re.Match[str], text: str, locale: str | None) -> Iterator[Value]:
    start, end = match.span("number")
    run, tail = match["number"], match["tail"].casefold()
    dialled = numbers.find_dialled(text, start, end)
    if dialled is not None:
        begin, stop, key = dialled
        yield Value(begin, stop, "identifier", text[begin:stop], key=key)
        return
    if end - start <= 3 and _is_list_marker(text, start, end):
        return
    if tail in _FRACTIONS and not match["more"] and _PLAIN.fullmatch(run):
        yield _with_fraction(match, text)
        return
    if run == "10" and tail in ("²", "³") and text[:start].rstrip()[-1:] in ("×", "x", "·", "*"):
        return  # `11.8 ×10³/µL`: a part of the unit
    if run[0] == "0" and run.isdecimal() and not tail and _is_code(text, start, end):
        yield Value(start, end, "identifier", run, key=run)  # nobody counts with leading zeros
        return
    chain = _HYPHEN_CHAIN.match(text, start) if text.startswith("-", match.end()) else None
    if chain and _is_identifier_chain(chain[0]):
        yield Value(start, chain.end(), "identifier", chain[0], key=identifier_key(chain[0]))
    elif match["exponent"] and not tail and not match["more"]:
        yield from _exponential(start, run + match["exponent"], text)
    elif tail and not match["more"] and (factor := _glued_factor(match, text)) > 1:
        form = Form(_sign_before(text, start), factor=factor)
        yield number(start, match.end("tail"), run, locale, form)
    elif tail == "p" and not match["more"] and (len(run) <= 2 or "." in run):  # pence
        yield from _run_values(start, end, run, text, locale)
    elif match["more"] or match["exponent"] or (tail and tail not in _TAILS):
        yield from _number_then_identifier(match, text, locale)
    elif tail not in _ORDINALS or tail in _UNITS:
        yield from _run_values(start, end, run, text, locale)


def _with_fraction(match: re.Match[str], text: str) -> Value:
    """`10¼`, and quarters of a cent: `4.41¼`."""
    start = match.start("number")
    form = Form(_sign_before(text, start))
    decimals = _FRACTIONS[match["tail"]]
    if "." in match["number"]:
        decimals = decimals[1:]
    reading = numbers.read_unlocalised(f"{numbers.ascii_digits(match['number'])}{decimals}")
    readings = () if reading is None else form.readings(reading)
    begin = start if form.sign is None else form.sign
    return Value(begin, match.end(), "number", match["number"] + decimals, readings, form=form)


def _glued_factor(match: re.Match[str], text: str) -> int:
    tail, start = match["tail"], match.start("number")
    if tail.casefold() in _GLUED:
        return _GLUED[tail.casefold()]
    is_money = text[start - 1 : start] in SIGNS if start else False
    if is_money or (tail in ("M", "B") and "." in match["number"]):
        return _GLUED_MONEY.get(tail.casefold(), 1)
    return 10**6 if tail == "M" else 1


def _is_code(text: str, start: int, end: int) -> bool:
    """`0148`, `HAT 05`; but the `05` of a list of months is a number."""
    return end - start > 2 or (
        end - start > 1 and _CAPITALS_BEFORE.search(text[max(0, start - 8) : start]) is not None
    )


def _is_list_marker(text: str, start: int, end: int) -> bool:
    """`1.` at the start of a line, or `1)` that no bracket opened."""
    if not _AFTER_MARKER.match(text, end):
        return False
    line = line_start(text, start)
    if _BEFORE_MARKER.fullmatch(text, line, start):
        return True
    before = text[line:start]
    return text[end] == ")" and before[-1:].isspace() and before.count("(") <= before.count(")")


def _number_then_identifier(match: re.Match[str], text: str, locale: str | None) -> Iterator[Value]:
    """`12ab`, `9f86d081`: the last group belongs to an identifier, groups before it do not."""
    last = ANY_SEPARATOR.split(match[0])[-1]
    start, offset = match.start(), match.end() - len(last)
    if match["tail"] in _DEGREES and not match["more"] and not match["exponent"]:
        # A seat or a temperature: whoever says `22 °C` of `Sunny, 22C` has read it.
        inner = tuple(_run_values(start, match.end("number"), match["number"], text, locale))
        key = identifier_key(match[0])
        yield Value(start, match.end(), "identifier", match[0], key=key, inner=inner)
        return
    if offset > start + 1:
        yield from _run_values(start, offset - 1, text[start : offset - 1], text, locale)
    yield Value(offset, match.end(), "identifier", last, key=identifier_key(last))


def _exponential(start: int, run: str, text: str) -> Iterator[Value]:
    reading = numbers.read_exponent(numbers.ascii_digits(run))
    form = Form(_sign_before(text, start))
    readings = () if reading is None else form.readings(reading)
    begin = start if form.sign is None else form.sign
    yield Value(begin, start + len(run), "number", run, readings, form=form)


def _is_identifier_chain(chain: str) -> bool:
    """`550e8400-e29b-…` and `123-ABC-45` are identifiers; `5-day` and `10-20` are not."""
    groups = chain.split("-")
    mixed = any(_LETTER.search(group) and _DIGIT.search(group) for group in groups[1:])
    lettered = any(
        group.isalpha() and group.isupper() and any(map(_DIGIT.search, groups[index + 1 :]))
        for index, group in enumerate(groups)
    )
    return mixed or lettered


def _run_values(start: int, end: int, run: str, text: str, locale: str | None) -> Iterator[Value]:
    """A run of digits and separators as one number, or as the several that it lists."""
    after = text[end : end + 1]
    percent = _PERCENT.match(text, end) if after in _PERCENT_STARTS else None
    scale = _SCALE.match(text, end) if after and after in " \u00a0\u202f" else None
    form = Form(_sign_before(text, start), percent is not None, _factor(scale, locale))
    stop = percent.end() if percent else scale.end() if scale and form.factor > 1 else end
    value = number(start, stop, run, locale, form)
    if run.isdecimal() or _is_one_number(value, start, run, locale, text):
        yield value
        return
    if run.count(".") > 1 and set(ANY_SEPARATOR.findall(run.lstrip("."))) == {"."}:
        yield Value(start, end, "identifier", run, key=run)  # a version, an address
        return
    parts = (
        run.split(" ") if " " in run else run.split(",") if "," in run else ANY_SEPARATOR.split(run)
    )
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        end = stop if last else start + len(part)
        part_form = Form(
            form.sign if index == 0 else None, form.percent and last, form.factor if last else 1
        )
        yield number(start, end, part, locale, part_form)
        start += len(part) + 1


def _is_one_number(value: Value, start: int, run: str, locale: str | None, text: str) -> bool:
    """Not so: numbers in a row (`1 234`, `1,2,3`), or cells between commas (`x,1874,1951`)."""
    if "," in run:
        end = start + len(run)
        glued = text[end : end + 1] == "," and text[end + 1 : end + 2].isalnum()
        if glued or text[start - 1 : start] == ",":
            return False
    if " " in run and not _blanks_group(run, locale) and not _is_measured(text, start, run, locale):
        return False
    # What only another locale reads is still one number: one without a reading here.
    return bool(value.readings) or (locale is not None and bool(numbers.read_every_way(run)))


def _is_measured(text: str, start: int, run: str, locale: str | None) -> bool:
    """`1 250 €`, `2 000 km`: what has one unit is one number."""
    end = start + len(run)
    after = text[end : end + 1] in _UNIT_BLANKS and _ONE_UNIT.match(text, end) is not None
    return locale is None and (
        after or _CODE_BEFORE.search(text[max(0, start - 5) : start]) is not None
    )


def _blanks_group(run: str, locale: str | None) -> bool:
    """Plain blanks group digits only where the locale does so, or the rest leaves no doubt."""
    form = numbers.form_of(locale) if locale else None
    if form is not None:
        return form.spaced
    return run.count(" ") > 1 or run[-4:-3] != " "


def number(start: int, end: int, run: str, locale: str | None, form: Form) -> Value:
    digits = "0" + run if run.startswith(".") else run
    reading = numbers.read_in_locale(digits, locale) if locale else numbers.read_unlocalised(digits)
    readings = () if reading is None else form.readings(reading)
    begin = start if form.sign is None else form.sign
    return Value(begin, end, "number", run, readings, form=form)


def decimals_of(value: Value) -> int:
    """How many digits are stated behind the decimal point, whatever sign that is."""
    if value.text.isdecimal():
        return 0
    last = max(map(value.text.rfind, ".,٫"))
    if last < 0:
        return 0
    places = len(value.text) - last - 1
    digits = _NOT_DIGIT.sub("", value.text)
    if not digits or not value.readings or len(digits) > numbers.SCALE_DIGITS * 4:
        return 0
    unscaled = abs(value.readings[0]) // value.form.factor
    return places if int(digits) * numbers.SCALE == unscaled * 10**places else 0


def readings_in_any_locale(value: Value) -> set[int]:
    """Every value that some locale would read out of this number, sign and percent kept."""
    return {
        number
        for reading in numbers.read_every_way(value.text)
        for number in value.form.readings(reading)
    }


def _sign_before(text: str, start: int) -> int | None:
    """Where the minus sign of a number stands, if it has one."""
    position = start - 1
    if position >= 0 and text[position] in SIGNS:
        position -= 1
    if position < 0 or text[position] not in _SIGNS:
        return None
    return position if position == 0 or text[position - 1] in _BEFORE_SIGN else None


def _factor(scale: re.Match[str] | None, locale: str | None) -> int:
    if scale is None:
        return 1
    word = scale[1].casefold()
    english = locale is None or locale.startswith("en")
    # `mıllion` without its dot fits the pattern, but is no factor.
    return 1 if word.startswith("billion") and not english else _FACTORS.get(word, 1)


def line_start(text: str, position: int) -> int:
    """Where the line begins, or as far back as matters."""
    low = max(0, position - NEARBY)
    return max(low, text.rfind("\n", low, position) + 1)


# At the start of a line, also in emphasis, as a heading or a list item; then a colon or line end.
_LABEL = re.compile(
    r"^[ \t>*_#•+-]*(?:\d{1,2}[.)][ \t]+[*_]*)?"
    r"([^\W\d_]{2,20})[ \u00a0](\d{1,2})(?=[*_]*(?::|[ \t]*$))",
    re.MULTILINE,
)
_WORD_BEFORE = re.compile(r"([^\W\d_]{2,20})[ \u00a0]$")
_LONGEST = 21

Label = tuple[str, str]


def labels_in(text: str) -> frozenset[Label]:
    """The words and numbers of the text that count from 1 upwards, at least to 2. `Gate 12:` by
    itself is a claim about a gate."""
    if " 1" not in text and "\u00a01" not in text:
        return frozenset()
    numbered = {(match[1].casefold(), match[2]) for match in _LABEL.finditer(text)}
    words = {word for word, number in numbered if number == "1"}
    return frozenset(
        (word, str(number))
        for word in words
        if (word, "2") in numbered
        for number in range(1, _count_labels(word, numbered) + 1)
    )


def _count_labels(word: str, numbered: set[Label]) -> int:
    number = 1
    while (word, str(number + 1)) in numbered:
        number += 1
    return number


def is_label(text: str, start: int, number: str, labels: frozenset[Label]) -> bool:
    """Is this number one of those labels, where it stands or where the text comes back to it?"""
    word = _WORD_BEFORE.search(text[max(0, start - _LONGEST) : start])
    return word is not None and (word[1].casefold(), number) in labels


_CODES = "|".join(sorted(LEADING))
_UNIT_BLANKS = frozenset(" \u00a0\u202f%" + SIGNS)
_ONE_UNIT = re.compile(
    rf"[ \u00a0\u202f]?(?:[{SIGNS}%]|(?:{_CODES}|kr|zł|km|kg|kWh|MWh|m²|km²|ha"
    r"|m³|euros?|Euro|francs|dollars?|Franken|coronas|couronnes|Kronen|habitants|Einwohner"
    r"|habitantes)(?!\w))"
)
_CODE_BEFORE = re.compile(rf"(?:{_CODES}|[{SIGNS}])[ \u00a0]?$")
_NUMERIC_PREFIXES = frozenset("mid pre post early late sub non top under over anti".split())
_JSON_BEFORE = re.compile(r'":\s*[\[{"]')
_BEFORE_JSON_STRING = re.compile(r'":\s*\[?\s*$')
_AFTER_JSON_STRING = re.compile(r",?[ \t]*(?:\n|$)")
_EMPHASIS_START = re.compile(r"(?<!\w)_+\w")
_EMPHASIS_END = re.compile(r"\w_+(?!\w)")
_CODE_AMOUNT = re.compile(rf"(?:{_CODES})(\d+)")
_URL_TAIL = ".,;:!?…。，！？)]}>'\"’”»*_"
_QUOTE_EDGE = ' .,;:!?…\\"'


def find_values(text: str, locale: str | None = None) -> list[Value]:
    """The checkable values of a text, in order; nested ones only inside their outer one."""
    text = fold_signs(break_literal_newlines(text))
    token, hot = patterns_for(text)
    if not hot.search(text):
        return []
    moments = find_moments(text, locale) if _MAY_BE_MOMENT.search(text) else []
    values = list(_scan(text, locale, moments, token, hot))
    labels = labels_in(text)
    if not labels:
        return values
    return [value for value in values if not is_label(text, value.start, value.text, labels)]


def fold_signs(text: str) -> str:
    """Hyphens and digits of other forms as the plain ones; lengths stay."""
    if text.isascii():
        return text
    for sign in _ALIKE.keys() & beyond_ascii(text):
        text = text.replace(sign, _ALIKE[sign])
    if "–" in text or "—" in text or "―" in text:
        return _DASH.sub("-", text)
    return text


# What most leaves are: words without any value, one identifier, one long number.
_MAY_HOLD = re.compile(r"[\d_#`\"“„«‹「『‘@/.．']")
_ONE_CODE = re.compile(r"#?[A-Za-z]+[0-9_](?:[A-Za-z0-9_]*[A-Za-z0-9])?(?<!_)")
_ONE_NUMBER = re.compile(r"[1-9][0-9]{4,30}")


def _tuple_of_values(text: str, locale: str | None) -> tuple[Value, ...]:
    if not _MAY_HOLD.search(text):
        return ()
    if _ONE_CODE.fullmatch(text) and not _CODE_AMOUNT.fullmatch(text):
        return (Value(0, len(text), "identifier", text, key=identifier_key(text)),)
    if locale is None and _ONE_NUMBER.fullmatch(text):
        return (Value(0, len(text), "number", text, (int(text) * numbers.SCALE,)),)
    return tuple(find_values(text, locale))


_short_values = lru_cache(maxsize=1 << 13)(_tuple_of_values)
_long_values = lru_cache(maxsize=1 << 10)(_tuple_of_values)


def values_of(text: str, locale: str | None = None) -> tuple[Value, ...]:
    """`find_values`, remembered: leaves are like each other, and prompts come back sample after
    sample."""
    return (_short_values if len(text) <= SHORT else _long_values)(text, locale)


def _scan(
    text: str,
    locale: str | None,
    moments: list[FoundMoment],
    token: re.Pattern[str],
    hot: re.Pattern[str],
) -> Iterator[Value]:
    position, upcoming = 0, 0
    while True:
        spot = hot.search(text, position)
        match = token.search(text, _word_start(text, position, spot.start())) if spot else None
        start = match.start() if match else len(text)
        if upcoming < len(moments) and moments[upcoming].start <= start:
            moment = moments[upcoming]
            upcoming += 1
            if moment.start >= position:
                yield _moment_value(text, moment)
                position = moment.end
            continue
        if match is None:
            return
        if match.lastgroup == "more" and upcoming < len(moments):
            begin = moments[upcoming].start
            if start < begin < match.end() and text[begin - 1] == ",":
                # `120,2024-05-01` are two cells of a line.
                match = token.match(text, start, begin) or match
        position = max(match.end(), start + 1)
        if match.lastgroup == "more":
            for value in number_values(match, text, locale):
                yield value
                position = max(position, value.end)
        elif match.lastgroup == "word":
            yield from _word_values(start, match[0], text, locale)
        else:
            yield from _plain_value(match, text, locale)


def _word_start(text: str, low: int, position: int) -> int:
    return max(low, text.rfind(" ", low, position) + 1, text.rfind("\n", low, position) + 1)


def _moment_value(text: str, found: FoundMoment) -> Value:
    return Value(
        found.start,
        found.end,
        "moment",
        text[found.start : found.end],
        moments=found.moments,
        own=found.own,
        every_way=found.every_way,
    )


def _plain_value(match: re.Match[str], text: str, locale: str | None) -> Iterator[Value]:
    start, end, found = match.start(), match.end(), match[0]
    match match.lastgroup:
        case "key":  # of a JSON object: a name, no claim
            return
        case "hash":
            yield Value(start, end, "identifier", found, key=identifier_key(found))
        case "email":
            yield Value(start, end, "email", found, key=found.casefold())
        case "code" | "quote" as kind:
            yield from _quote(start, end, text, locale, "code" if kind == "code" else "quote")
        case _:
            trimmed = found.rstrip(_URL_TAIL)
            yield Value(start, start + len(trimmed), "url", trimmed, key=url_key(trimmed))


def _quote(
    start: int, end: int, text: str, locale: str | None, kind: Literal["quote", "code"]
) -> Iterator[Value]:
    content = text[start + 1 : end - 1]
    if not any(map(str.isalnum, content)):
        return
    if text[start] == '"' and _is_json_string(text, start, end):
        for value in find_values(content, locale):
            yield value.shifted(start + 1)
        return
    inner = tuple(value.shifted(start + 1) for value in find_values(content, locale))
    bare = content.strip().rstrip(".,;:!?")
    whole = inner[0] if len(inner) == 1 and inner[0].kind in WHOLE_KINDS else None
    if whole and (bare == whole.text or (whole.form.sign is not None and bare == f"-{whole.text}")):
        yield whole
    else:
        key = fold(content).strip(_QUOTE_EDGE)
        if len(key) > 1 or kind == "code":
            yield Value(start, end, kind, content, key=key, inner=inner)


def _is_json_string(text: str, start: int, end: int) -> bool:
    """In an answer written as JSON the quotation marks quote nobody."""
    line = line_start(text, start)
    if _BEFORE_JSON_STRING.search(text, line, start):
        return True
    return (
        not text[line:start].strip()
        and _AFTER_JSON_STRING.match(text, end) is not None
        and _JSON_BEFORE.search(text, max(0, start - 10 * NEARBY), start) is not None
    )


def _word_values(start: int, found: str, text: str, locale: str | None) -> Iterator[Value]:
    bare = found
    if found[0] == "_" or found[-1] == "_":
        bare = _without_emphasis(start, found, text)
        start += found.index(bare)
    if not (_DIGIT.search(bare) or "_" in bare):
        return
    head, _, rest = bare.partition("-")
    if head.casefold() in _NUMERIC_PREFIXES and rest[:1].isdecimal():
        for value in find_values(rest, locale):
            yield value.shifted(start + len(head) + 1)
        return
    amount = _CODE_AMOUNT.fullmatch(bare)
    if amount:
        end = start + len(bare)
        yield number(start + amount.start(1), end, amount[1], locale, Form())
    else:
        end = start + len(bare)
        yield Value(start, end, "identifier", bare, key=identifier_key(bare))


def _without_emphasis(start: int, found: str, text: str) -> str:
    """`_word_` and `_two words_` are Markdown; `_private` and `tail_` are names."""
    before = text[line_start(text, start) : start]
    after = text[start + len(found) : start + len(found) + NEARBY].partition("\n")[0]
    opens = found[0] == "_" and (found[-1] == "_" or _EMPHASIS_END.search(after))
    closes = found[-1] == "_" and (found[0] == "_" or _EMPHASIS_START.search(before))
    bare = found.lstrip("_") if opens else found
    return bare.rstrip("_") if closes else bare


def is_one_value(leaf: object, kind: str) -> bool:
    """Is the leaf one value of this kind, and nothing more?"""
    if isinstance(leaf, int | float) and not isinstance(leaf, bool):
        return kind == "number"
    values = values_of(leaf) if isinstance(leaf, str) else ()
    return len(values) == 1 and values[0].kind == kind and len(values[0].text) + 4 >= len(str(leaf))


SMALL = 13  # a whole number below it stands in every result


def is_small(value: Value) -> bool:
    if value.kind != "number" or not value.readings or value.form.percent or decimals_of(value):
        return False  # `12.0` says more than `12`
    return value.readings[0] % numbers.SCALE == 0 and 0 <= value.readings[0] < SMALL * numbers.SCALE
