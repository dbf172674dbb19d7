"""Phone numbers, in the way of every country.

`+…` and the North American shape are read as phone numbers by everybody, so invented ones count.
Other national forms are just digits unless something says what they are: a word next to them, the
key that they stand under, or the sample's locale. Fictional numbers (555) are findings like any
other: that a value is harmless is not visible in it."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal

import msgspec

Span = tuple[int, int]
Joint = Literal["", "glued", "blank", "hyphen", "dot"]

JOINTS: dict[str, Joint] = {" ": "blank", "-": "hyphen", ".": "dot", "/": "dot"}
CONTEXT_CHARACTERS = 30
_DIGITS = frozenset("0123456789")
_ESCAPES = frozenset({"\\n", "\\r", "\\t"})  # JSON inside a string: this letter is no letter


# --- folding ------------------------------------------------------------------------------------


class SearchText(msgspec.Struct, frozen=True):
    """A text as the finders read it: every digit, blank, hyphen and dot in its plain form, and
    without characters that nobody sees. `origins` are the places of its characters in the text
    that it was, where they differ, and that text's length."""

    text: str
    origins: tuple[int, ...] | None = None

    def original(self, span: Span) -> Span:
        if self.origins is None:
            return span
        return self.origins[span[0]], self.origins[span[1]]


_HYPHENS = frozenset("\u2010\u2011\u2012\u2013\u2043\u2212")
_DOTS = frozenset("\u00b7\u2022\u2024\u2027\u2219\u22c5\u30fb")
_ASCII = bytes(range(128))
_RAISED = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
_RAISED_RUN = re.compile(rf"(?<!\d)[{''.join(_RAISED)}]{{3,}}")


def fold_characters(text: str) -> SearchText:
    """`４１１１` and `٤١١١` are 4111, a no-break space is a blank, a zero-width one is nothing."""
    if text.isascii():
        return SearchText(text)
    # By way of bytes: a fifth of the time of `set(text)`.
    rare = text.encode("utf-8", "surrogatepass").translate(None, _ASCII)
    chars = set(rare.decode("utf-8", "surrogatepass"))
    changes = {char: new for char in chars if (new := _plain(char)) != char}
    if not _RAISED.keys().isdisjoint(chars):
        text = _RAISED_RUN.sub(_lower, text)
    if not changes:
        return SearchText(text)
    folded = text
    if len(changes) <= 8:  # `translate` is slower than this for what people write
        for char, new in changes.items():
            folded = folded.replace(char, new)
    else:
        folded = text.translate({ord(char): new for char, new in changes.items()})
    if len(folded) == len(text):
        return SearchText(folded)
    kept = (at for at, char in enumerate(text) if changes.get(char) != "")
    return SearchText(folded, (*kept, len(text)))


def _lower(raised: re.Match[str]) -> str:
    # After a digit they would be a footnote or an exponent.
    return "".join(map(_RAISED.__getitem__, raised.group()))


@lru_cache(maxsize=4096)
def _plain(char: str) -> str:
    category = unicodedata.category(char)
    if category in ("Cf", "Me") or "\u0300" <= char <= "\u036f" or "\ufe00" <= char <= "\ufe0f":
        return ""
    if category == "Zs":
        return " "
    if char in _HYPHENS:
        return "-"
    if char in _DOTS:
        return "."
    if unicodedata.decomposition(char).startswith(("<super>", "<sub>")):
        return char
    digit = unicodedata.digit(char, None)
    if digit is not None:
        return str(digit)
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 and plain.isascii() else char


# --- edges --------------------------------------------------------------------------------------


def joint_before(text: str, start: int) -> Joint:
    """How what starts here hangs on what stands before it: not, on a letter, or on digits
    across a separator."""
    if start == 0:
        return ""
    before = text[start - 1]
    if _glues(before):
        return "" if text[max(0, start - 2) : start] in _ESCAPES else "glued"
    joint = JOINTS.get(before, "")
    return joint if joint and text[max(0, start - 2)] in _DIGITS else ""


def joint_after(text: str, end: int) -> Joint:
    if end >= len(text):
        return ""
    after = text[end]
    if _glues(after):
        return "glued"
    joint = JOINTS.get(after, "")
    return joint if joint and text[end + 1 : end + 2] in _DIGITS else ""


def is_free(text: str, start: int, end: int, allowed: tuple[Joint, ...] = ("", "blank")) -> bool:
    return joint_before(text, start) in allowed and joint_after(text, end) in allowed


def is_whole_word(text: str, start: int, end: int) -> bool:
    return joint_before(text, start) != "glued" and joint_after(text, end) != "glued"


def words_near(text: str, start: int, end: int, words: re.Pattern[str]) -> Iterator[re.Match[str]]:
    """Whole words that stand wholly within 30 characters before or after the range."""
    stop = end + CONTEXT_CHARACTERS
    for match in words.finditer(text, max(0, start - CONTEXT_CHARACTERS), stop + 1):
        if match.end() <= stop:
            yield match


def byte_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def _glues(char: str) -> bool:
    # Scripts without case (Chinese, Thai, Arabic) put no blank before a number. A raised digit
    # is a footnote.
    return char.isdecimal() or char == "_" or char.lower() != char.upper()


Cue = Literal["", "loose", "tight"]

DATE = re.compile(
    r"(?:(?:19|20)[0-9]{2}[-./ ][0-9]{1,2}[-./ ][0-9]{1,2}"
    r"|[0-9]{1,2}[-./ ][0-9]{1,2}[-./ ](?:19|20)[0-9]{2})(?![0-9])"
)
_EXTENSION = re.compile(
    r"[ ,;]{0,2}(?:x|ext(?:n|ension|\.)?|durchwahl|poste|interno|int\.|toestel|anknytning|доб\.)"
    r"[.:]? ?[0-9]{1,6}(?![0-9A-Za-z])",
    re.IGNORECASE,
)
_PHONE_DIGITS = range(7, 16)


def find_phones(
    text: str, groups: Sequence[Span], *, locale: str | None, label: str, after: int = -1
) -> list[Span]:
    """The phone numbers of one run of digits, each with its extension. `after` is where the phone
    number before it ends: this one may be the next of a list."""
    found: list[Span] = []
    if len(groups) >= 3:
        found += _north_american(text, groups[0][0], groups[-1][1])
    if international := _international(text, groups):
        found.append(international)
    if not found:
        cue = _cue_of(text, groups, label)
        if not cue and after >= 0 and _LISTED.fullmatch(text, after, groups[0][0]):
            cue = "loose"
        if cue:
            found += _national(text, groups, cue)
    if not found and locale is not None:
        found += _regional(text, groups, locale)
    return [(start, _end_of_extension(text, end)) for start, end in found]


def without_extension(number: str) -> str:
    """The number that is dialled first."""
    digits = re.match(r"[+0-9 \-()./]*", number)
    return digits.group() if digits else number


def _end_of_extension(text: str, end: int) -> int:
    extension = _EXTENSION.match(text, end)
    return extension.end() if extension else end


def _ends_well(text: str, end: int, allowed: tuple[Joint, ...] = ("", "blank")) -> bool:
    return joint_after(text, end) in allowed or _EXTENSION.match(text, end) is not None


# --- shapes that speak for themselves -----------------------------------------------------------

_AREA = r"(?:\([0-9]{3}\)[ \-.]?|[0-9]{3}[ \-.])"
_NORTH_AMERICAN = re.compile(
    rf"(?<![0-9])(?:(?:00)?1[ \-.]?)?{_AREA}[0-9]{{3}}[ \-.][0-9]{{4}}(?![0-9])"
)


def _north_american(text: str, start: int, end: int) -> Iterator[Span]:
    """(415) 555-2671 and its kin; with blanks alone it has to be a real number."""
    for match in _NORTH_AMERICAN.finditer(text, max(0, start - 1), min(len(text), end + 1)):
        found = match.group()
        in_brackets = found.startswith("(")
        punctuated = in_brackets or any(char not in "0123456789 " for char in found)
        allowed: tuple[Joint, ...] = ("", "blank") if punctuated else ("",)
        left = "" if in_brackets else joint_before(text, match.start())
        if left not in allowed or not _ends_well(text, match.end(), allowed):
            continue
        if _is_phone(found.removeprefix("00"), "US", fictional=punctuated):
            yield match.span()


def _international(text: str, groups: Sequence[Span]) -> Span | None:
    """A number with its `+` or `00`, cut before whatever digits follow it."""
    first = groups[0][0]
    if text.startswith("00", first) and joint_before(text, first) == "":
        start, prefix = first, "00"
    else:
        start, prefix = first - 1, "+"
        if text[max(0, start - 1) : start + 1] == "+(":
            start -= 1
        if start < 0 or text[start] != "+" or joint_before(text, start) == "glued":
            return None
    for end in _ends(text, groups, 0):
        candidate = text[start:end]
        if _is_phone("+" + candidate.removeprefix(prefix), None, fictional=prefix == "+"):
            return _bracket(text, start, end)
    return None


def _ends(text: str, groups: Sequence[Span], first: int) -> list[int]:
    """Where a phone number of 7 to 15 digits that starts here could end, longest first."""
    ends: list[int] = []
    digits = 0
    for start, end in groups[first : first + 15]:
        digits += end - start
        if digits > _PHONE_DIGITS[-1]:
            break
        if digits in _PHONE_DIGITS and _ends_well(text, end):
            ends.append(end)
    return ends[::-1]


@lru_cache(maxsize=4096)
def _is_phone(candidate: str, region: str | None, *, fictional: bool) -> bool:
    """`fictional`: a number that nobody has but that has the length and the country code of one
    will do (555-123-4567), unless it looks like an amount."""
    import phonenumbers

    try:
        number = phonenumbers.parse(candidate, region)
    except phonenumbers.NumberParseException:
        return False
    if phonenumbers.is_valid_number(number):
        return True
    if not fictional or _THOUSANDS.fullmatch(candidate.removeprefix("+")):
        return False
    possible = phonenumbers.is_possible_number_with_reason(number)
    return bool(possible == phonenumbers.ValidationResult.IS_POSSIBLE)


# --- national forms next to a cue ---------------------------------------------------------------

# What names a number as one to dial.
_NOUNS = frozenset(
    """phone phones telephone tel tels telno phoneno phonenumber ph mobile mob cell cellphone
    cellular fax faxes landline whatsapp viber telegram wechat sms hotline helpline voicemail pager
    switchboard msisdn handset telefon telefonnummer telefonnr rufnummer handy handynummer
    mobilnummer mobiltelefon mobil festnetz hotline durchwahl rückruf téléphone telephone tél
    télécopie teléfono telefono móvil movil celular cel cellulare telefone telemóvel
    telemovel gsm telefoon telefoonnummer mobiel mobiele faxnummer puhelin puhelinnumero
    matkapuhelin komórka komórkowy telefonu telefonszám telefonní mobilní cep
    телефон телефона тел моб мобильный факс τηλέφωνο κινητό טלפון נייד פקס هاتف جوال موبایل تلفن
    फ़ोन फोन मोबाइल""".split()
)
# What one does with it. `call` is also a noun here: the call of a tool.
_VERBS = frozenset(
    """call dial ring text phone reach answer answering answers callback contact
    anrufen erreichbar erreichen appelez appeler joindre joignable llame llamar llámame llama
    chiama chiamare chiamami ligue ligar bel bellen ring ringa ringer zadzwoń dzwonić soita
    позвоните звоните""".split()
)
_SENT_TO = frozenset("message messages registered".split())
_CUES = _NOUNS | _VERBS | _SENT_TO
# What may mean it: believed where the number is written as phone numbers are.
_HINTS = frozenset(
    """calls called calling caller callers reached reachable texted texting dialled dialed dialing
    phoned phoning rang ringing contacted contacts""".split()
)
_HINTING_PAIRS = frozenset(
    [(whose, "number") for whose in "my your his her our their s home work office direct".split()]
    + [(which, "line") for which in "service support help direct phone hotline".split()]
    + [("in", "touch")]
)
_TELLING = _CUES | _HINTS | {last for _, last in _HINTING_PAIRS}
_PLACES = frozenset("at on under auf unter au sous al no op på pod по".split())
_CALL_OF_A_TOOL = frozenset("function api tool the a this that each per of method rpc last".split())
# What may stand between a cue and the number.
_CONNECTING = frozenset(
    """number numbers no nr num is are was at on to me us him her them my our your his their the
    a an back or and via by under of for directly please main new old alternate alternative primary
    secondary home work office direct daytime evening line private personal business registered
    contact emergency customer service phone now anytime today us uk toll free
    nummer numéro numero número ist est es è é unter auf sous au le la el il lo o al um an und
    oder et y e ou u mich mir uns meine mein ma mon mi mio mia meu minha mij mijn op är på mig
    numer jest mój pod na номер по мой""".split()
)
# A number that one of these names is not one to dial, whatever is said before.
_OTHER_NUMBERS = frozenset(
    """order orders id ids invoice tracking reference ref booking reservation confirmation ticket
    case account acct item items product sku isbn issn ean upc serial model version build code codes
    zip postal postcode price cost costs amount total date dates flight card cards iban ssn passport
    policy member membership visa imei vin hash commit coordinates latitude longitude population
    rows records bytes tokens bestellnummer rechnung kundennummer konto commande facture pedido
    factura ordine fattura""".split()
)
_WORD = re.compile(r"[^\W\d_]+")
_TO_BLANKS = {code: " " for code in range(128) if not chr(code).isalpha()}
_LABEL_WORD = re.compile(r"[A-ZÀ-Þ]?[^\W\d_A-ZÀ-Þ]+|[^\W\d_]+")
_LETTER_CUE = re.compile(r"(?:^|[\s|,;(])[ptmfchodw]:\s?\Z", re.IGNORECASE)
_SIGN_CUE = re.compile(
    "(?:[\u260e\u260f\u2706\u2121\U0001f4de\U0001f4df\U0001f4e0\U0001f4f1\U0001f4f2\U0001f919]"
    "|电话|電話|手机|手機|号码|號碼|携帯|携帯電話|ファックス|传真|致电|拨打|電話番号|전화|휴대폰|전화번호|โทร)"
    "[^\\w]*(?:号码|号|番号|번호|是|为|は|は:|으로|로)?[^\\w]{0,3}\\Z"
)
_AFTER = re.compile(
    r" ?(?:- ?|\()(?:office|fax|mobile|cell|home|work|tel|telephone|phone|landline|handy|whatsapp"
    r"|direct|main|desk|bureau|domicile|mobil|privat)(?:\)|\Z|(?=[\s,;\\]))(?! [a-z])"
    r"| (?:is|was|as) (?:my|our|his|her|their|the|your) (?:[a-z]+ ){0,2}"
    r"(?:phone|mobile|cell|fax|landline|telephone|whatsapp)(?![^\W_])",
    re.IGNORECASE,
)
_LISTED = re.compile(r"[ ,;/|&]{1,3}(?:(?:or|and|und|oder|et|ou|y|o|e|en) )?\(?")
_WINDOW = 40
_BARRIER = re.compile(r".*[0-9\[\]<>{}]", re.DOTALL)
_SENTENCE_END = re.compile(r"[!?;\n]|\.\s+[A-Z]")
_MONEY_BEFORE = re.compile(r"[$€£¥] ?\Z|[.,]\Z(?<![ \\].)")
_MONEY_OR_UNIT = re.compile(
    r" ?(?:[%€$£¥]|(?:usd|eur|gbp|euros?|dollars?|km|kg|mb|gb|bytes)\b)", re.IGNORECASE
)
_EPOCH = re.compile(r"1[4-9][0-9]{8}(?:[0-9]{3})?")
_GROUP = re.compile(r"[0-9]+")
_YEAR = "(?:19|20)[0-9]{2}"
# A day without its dashes, a range of years, a decimal number, more digits than anybody dials.
_NO_PHONE = re.compile(
    rf"{_YEAR}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])|{_YEAR} ?- ?{_YEAR}"
    r"|[0-9]+\.(?![0-9]{4}\Z)[0-9]+|[0-9]{14,}"
)
_ZIP = re.compile(r"[0-9]{5}-[0-9]{4}")
_THOUSANDS = re.compile(r"[0-9]{1,3}(?:[ .][0-9]{3})+")


def _cue_of(text: str, groups: Sequence[Span], label: str) -> Cue:
    cue = _cue_before(text, groups[0])
    if cue != "tight" and (
        _AFTER.match(text, groups[-1][1]) or (len(text) <= _WINDOW and _is_named_by(label))
    ):
        return "tight"
    return cue


def _national(text: str, groups: Sequence[Span], cue: Cue) -> Iterator[Span]:
    """The run's numbers, now that something says that they are to be dialled."""
    for part in _parts(text, groups):
        start, end = _bracket(text, *part)
        if _could_be_dialled(text, start, end) and (cue == "tight" or _is_clear(text[start:end])):
            yield start, end


def _parts(text: str, groups: Sequence[Span]) -> Iterator[Span]:
    """The run up to a date or time in it, cut where a slash stands between two numbers."""
    part: list[Span] = []
    for start, end in groups:
        if part and " /" in text[part[-1][1] : start]:
            yield part[0][0], part[-1][1]
            part = []
        date = DATE.match(text, start)
        if (date and " " not in date.group()) or text[end : end + 1] == ":":
            break
        part.append((start, end))
    if part:
        yield part[0][0], part[-1][1]


def _bracket(text: str, start: int, end: int) -> Span:
    """With the bracket that opens before the area code and closes inside the number."""
    opens = start > 0 and text[start - 1] == "("
    return (start - 1 if opens and ")" in text[start:end] else start), end


def _could_be_dialled(text: str, start: int, end: int) -> bool:
    candidate = text[start:end]
    groups = _GROUP.findall(candidate)
    digits = sum(map(len, groups))
    if digits not in _PHONE_DIGITS or _NO_PHONE.fullmatch(candidate):
        return False
    if joint_before(text, start) == "glued" or not _ends_well(text, end):
        return False
    return _MONEY_BEFORE.search(text, max(0, start - 2), start) is None and (
        _MONEY_OR_UNIT.match(text, end) is None
    )


def _is_clear(candidate: str) -> bool:
    """Grouped as phone numbers are, and not as amounts or ranges are."""
    groups = [len(group) for group in _GROUP.findall(candidate)]
    return (
        2 <= len(groups) <= 6
        and max(groups) <= 8
        and min(groups[1:]) >= 2
        and not _ZIP.fullmatch(candidate)
        and (candidate.startswith("0") or not _THOUSANDS.fullmatch(candidate))
    )


@lru_cache(maxsize=1024)
def _is_named_by(label: str) -> bool:
    if not label or label.startswith("["):  # what redaction left of a key names nothing
        return False
    return any(word.lower() in _NOUNS for word in _LABEL_WORD.findall(label))


def _words(text: str) -> list[str]:
    # Most texts are ASCII, and there this takes a quarter of the time.
    return (
        text.lower().translate(_TO_BLANKS).split()
        if text.isascii()
        else _WORD.findall(text.lower())
    )


def _cue_before(text: str, group: Span) -> Cue:
    """`tight`: the number follows the cue with nothing but small words between, or the cue leads
    up to it (`phone on file: …`, `call the desk at …`). `loose`: it stands before it in the same
    sentence. No word between may say that this is another number."""
    start = group[0]
    window = text[max(0, start - _WINDOW) : start]
    words = _words(window)
    if _TELLING.isdisjoint(words):
        signed = not window.isascii() and _SIGN_CUE.search(window)
        lettered = ":" in window[-2:] and _LETTER_CUE.search(window)
        return "tight" if signed or lettered else ""
    barrier = _BARRIER.match(window)
    if barrier:
        window = window[barrier.end() :]
        words = _words(window)
    is_epoch = _EPOCH.fullmatch(text, *group) is not None
    if _is_called(words, is_epoch):
        return "tight"
    return "" if is_epoch else _cue_in(words, window)


def _is_called(words: Sequence[str], is_epoch: bool) -> bool:
    """A cue, and nothing but small words between it and the number."""
    at = next((at for at in range(len(words) - 1, -1, -1) if words[at] in _CUES), None)
    if at is None or not _CONNECTING.issuperset(words[at + 1 :]) or _is_tool_call(words, at):
        return False
    return words[at] in _NOUNS or not is_epoch


def _is_tool_call(words: Sequence[str], at: int) -> bool:
    return words[at] in ("call", "calls") and at > 0 and words[at - 1] in _CALL_OF_A_TOOL


def _cue_in(words: Sequence[str], window: str) -> Cue:
    """What the words of the sentence say, if none says that this is another number."""
    if _SENTENCE_END.search(window):
        return ""
    for at in range(len(words) - 1, -1, -1):
        if words[at] in _OTHER_NUMBERS:
            return ""
        if (
            words[at] in _CUES
            or words[at] in _HINTS
            or tuple(words[at - 1 : at + 1]) in _HINTING_PAIRS
        ):
            if _is_tool_call(words, at):
                return ""
            named = words[at] in _NOUNS and window.rstrip(" *`\"'(").endswith(":")
            dialled = words[at] in _CUES and words[-1] in _PLACES and at < len(words) - 1
            return "tight" if named or dialled else "loose"
    return ""


# --- national forms of the sample's locale ------------------------------------------------------


def _regional(text: str, groups: Sequence[Span], locale: str) -> Iterator[Span]:
    """National forms of the locale's country. Where that has a trunk prefix (0 in most of
    Europe), the number has to begin with it: other digits with blanks are just digits."""
    region = _region_of(locale)
    if region is None:
        return
    prefix = _trunk_prefix(region)
    done = 0
    for first, (start, _) in enumerate(groups):
        in_brackets = start > 0 and text[start - 1] == "("
        if start < done or not (in_brackets or text.startswith(prefix, start)):
            continue
        start -= in_brackets
        if not in_brackets and joint_before(text, start) not in ("", "blank"):
            continue
        for end in _ends(text, groups, first):
            if _looks_written_as_phone(text[start:end]) and _is_phone(
                text[start:end], region, fictional=False
            ):
                yield start, end
                done = end
                break


def _looks_written_as_phone(candidate: str) -> bool:
    return (
        not candidate.isdigit()
        and not DATE.match(candidate)
        and not _ZIP.fullmatch(candidate)
        and (candidate.startswith("0") or not _THOUSANDS.fullmatch(candidate))
    )


@lru_cache(maxsize=256)
def _region_of(locale: str) -> str | None:
    """The country of `de_AT` or, as CLDR has it, of `de`. None: unknown or North American."""
    import phonenumbers
    from babel.core import get_global

    language, *rest = re.split(r"[-_]", locale)
    regions = [part.upper() for part in rest if len(part) == 2]
    if not regions:
        likely = get_global("likely_subtags").get(language.lower(), "")
        regions = [part for part in likely.split("_")[1:] if len(part) == 2]
    known = phonenumbers.country_code_for_region(regions[0]) if regions else 0
    return regions[0] if known not in (0, 1) else None


@lru_cache(maxsize=256)
def _trunk_prefix(region: str) -> str:
    from phonenumbers import PhoneMetadata

    metadata = PhoneMetadata.metadata_for_region(region)
    return (metadata.national_prefix or "") if metadata else ""
