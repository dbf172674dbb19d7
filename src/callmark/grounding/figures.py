"""A number token as the number, numbers or identifier that it is."""

from __future__ import annotations

import re
from collections.abc import Iterator

from callmark.grounding import numbers
from callmark.grounding.tokens import ANY_SEPARATOR
from callmark.grounding.value import Form, Value, identifier_key

CURRENCY = "$€£¥₹₽₩₺₪₫฿₴₦"
_UNITS = frozenset(
    """
    kb mb gb tb pb kib mib gib tib bps kbps mbps gbps hz khz mhz ghz w kw mw gw wh kwh mwh gwh v
    kv mv ma mah ah ohm m km cm mm nm um µm μm mi ft in yd nmi g kg mg ug µg μg lb lbs oz l ml
    cl dl gal s sec secs ms us µs μs ns min mins h hr hrs day days wk wks mo yr yrs k bn mn tn x
    px pt em rem dpi fps rpm mph kmh kph psi bar pa kpa hpa mpa kj cal kcal ev db pc pcs pp
    m² m³ km² cm² cm³ percent usd eur gbp chf jpy inr cad aud cny brl mxn sek nok dkk pln
    """.split()
)
_ORDINALS = frozenset("st nd rd th er re e ème eme nde º ª".split())
_TAILS = _UNITS | _ORDINALS
_SIGNS = "-−"
_BEFORE_SIGN = frozenset(" \t\n\r\v\f\u00a0\u202f\u2009([{<" + CURRENCY + "\"'“„«‹*|=:~≈`")

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
_PERCENT_STARTS = frozenset(" \u00a0\u202f%％٪")
NEARBY = 300  # how far around a token its line is looked at
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_BEFORE_MARKER = re.compile(r"[ \t>*_|#-]*\(?")
_AFTER_MARKER = re.compile(r"[.)][*_]*[ \t]+\S")
_CAPITALS_BEFORE = re.compile(r"(?<!\w)[A-Z]{2,5}\s$")
_HYPHEN_CHAIN = re.compile(r"\d\w*(?:-\w+){1,24}")  # or each group would be read to the end


def number_values(match: re.Match[str], text: str, locale: str | None) -> Iterator[Value]:
    start, end = match.span("number")
    run, tail = match["number"], match["tail"].casefold()
    if end - start <= 3 and _is_list_marker(text, start, end):
        return
    if run[0] == "0" and run.isdecimal() and not tail and _is_code(text, start, end):
        yield Value(start, end, "identifier", run, key=run)  # nobody counts with leading zeros
        return
    chain = _HYPHEN_CHAIN.match(text, start) if text.startswith("-", match.end()) else None
    if chain and _is_identifier_chain(chain[0]):
        yield Value(start, chain.end(), "identifier", chain[0], key=identifier_key(chain[0]))
    elif match["exponent"] and not tail and not match["more"]:
        yield from _exponential(start, run + match["exponent"], text)
    elif match["more"] or match["exponent"] or (tail and tail not in _TAILS):
        yield from _number_then_identifier(match, text, locale)
    elif tail not in _ORDINALS or tail in _UNITS:
        yield from _run_values(start, end, run, text, locale)


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
    if " " in run and not _blanks_group(run, locale):
        return False
    # What only another locale reads is still one number: one without a reading here.
    return bool(value.readings) or (locale is not None and bool(numbers.read_every_way(run)))


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
    if position >= 0 and text[position] in CURRENCY:
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
