"""Where personal data stands in a text, and how severe it is among its words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

import msgspec

from callmark.records.results import Severity
from callmark.scorers.pii_phones import (
    DATE,
    JOINTS,
    Joint,
    Span,
    find_phones,
    fold_characters,
    is_free,
    is_whole_word,
    joint_after,
    joint_before,
    words_near,
)

# Patterns that see the whole of a text start with a digit or a literal: the regex engine then
# skips prose at 5 ns a character. What must not stand around a match is asked afterwards.
_NEXT_DIGIT = r"[ \-()./]{0,3}[0-9]"
_RUN = re.compile(f"[0-9]{_NEXT_DIGIT * 6}(?:{_NEXT_DIGIT})*")  # unrolled: a third faster
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_GROUP = re.compile(r"[0-9]+")


def digit_runs(text: str) -> list[list[Span]]:
    """Stretches of seven or more digits with phone or card punctuation between, as groups of
    digits; dates are left out."""
    # Counting digits costs a tenth of looking for them, and most texts have fewer than seven.
    if len(text.encode("utf-8", "surrogatepass").translate(None, _NO_DIGITS)) < 7:
        return []
    return [
        [group.span() for group in _GROUP.finditer(text, run.start(), run.end())]
        for run in _RUN.finditer(text)
        if not DATE.fullmatch(text, run.start(), run.end())
    ]


# --- cards --------------------------------------------------------------------------------------


class Issuer(msgspec.Struct, frozen=True):
    """Numbers that start with `low` to `high` (same width) and have a length in `lengths`."""

    low: int
    high: int
    lengths: frozenset[int]


_L15 = frozenset({15})
_L16 = frozenset({16})
_L16_19 = frozenset(range(16, 20))
_DINERS = frozenset({14, 16})
_MAESTRO = frozenset(range(12, 20))
ISSUERS: tuple[Issuer, ...] = (
    Issuer(4, 4, frozenset({13, 16, 19})),  # Visa
    Issuer(51, 55, _L16),  # Mastercard
    Issuer(2221, 2720, _L16),
    Issuer(34, 34, _L15),  # American Express
    Issuer(37, 37, _L15),
    Issuer(300, 305, _DINERS),  # Diners
    Issuer(36, 36, _DINERS),
    Issuer(38, 39, _DINERS),
    Issuer(35, 35, _L16_19),  # JCB
    Issuer(1800, 1800, _L15),
    Issuer(2131, 2131, _L15),
    Issuer(6011, 6011, _L16_19),  # Discover
    Issuer(644, 659, _L16_19),
    Issuer(62, 62, _L16_19),  # UnionPay
    Issuer(81, 82, _L16_19),  # UnionPay, RuPay
    Issuer(2200, 2204, _L16_19),  # Mir
    Issuer(50, 50, _MAESTRO),  # Maestro, RuPay
    Issuer(56, 58, _MAESTRO),
    Issuer(60, 61, _MAESTRO),
    Issuer(63, 63, _MAESTRO),
    Issuer(67, 67, _MAESTRO),
)
_CARD_WORDS = re.compile(
    r"(?<![^\W_])(?<!\[)(?:(?:kredit|bank|debet)?(?:cards?|karten?|kaart|kort)|cc|pan|credit|debit"
    r"|visa|master ?card|maestro|amex|american express|discover|diners|jcb|union ?pay|rupay|carte"
    r"|tarjeta|carta|cart[ãa]o|karta|kortti|kreditkartennummer|карт[аыуе])(?![^\W_])"
    r"|卡号|信用卡|カード|카드",
    re.IGNORECASE,
)
_PARCEL_WORDS = re.compile(
    r"(?<![^\W_])(?:tracking|shipment|parcel|order|orders|item|product|id|ids|invoice|reference"
    r"|ref|serial|upc|account|timestamp)(?![^\W_])",
    re.IGNORECASE,
)
SHORTEST_CARD = 12
_CARD_DIGITS = range(SHORTEST_CARD, 20)
_WRITTEN = frozenset(
    {(4, 6, 5), (4, 6, 4), (4, 5, 6)}
    | {(4,) * (n // 4) + (n % 4,) * (n % 4 > 0) for n in _CARD_DIGITS}
)
_ORDER = (3, 7, 7)  # a shop's order number


def find_cards(text: str, groups: Sequence[Span], label: str) -> Iterator[Span]:
    """Numbers that pass the Luhn check, of an issuer and written as cards are. Where a word says
    that it is a card, of any issuer and however its digits are grouped."""
    named = _names_a_card(text, groups, label)
    for first in range(len(groups)):
        for last, digits, usual in reversed(list(_card_ends(text, groups, first, named))):
            start, end = groups[first][0], groups[last][1]
            by_itself = usual and _is_issued(digits) and not _is_parcel(text, start, end, label)
            if (named or by_itself) and _is_luhn(digits):
                yield start, end
                break


def _names_a_card(text: str, groups: Sequence[Span], label: str) -> bool:
    return _CARD_WORDS.search(label) is not None or any(
        words_near(text, groups[0][0], groups[-1][1], _CARD_WORDS)
    )


def _card_ends(
    text: str, groups: Sequence[Span], first: int, named: bool
) -> Iterator[tuple[int, str, bool]]:
    """Where a number that starts with this group can end, its digits, and whether it is written
    as a card: in the usual groups, or in groups of three and more with one joint between. Groups
    of fewer are tried only where a word names a card."""
    digits = ""
    sizes: tuple[int, ...] = ()
    joints: set[str] = set()
    for last, (start, end) in enumerate(groups[first : first + _CARD_DIGITS[-1]], first):
        if last > first:
            between = text[groups[last - 1][1] : start]
            if not JOINTS.get(between.strip(" ") or " ") or (sizes[-1] < 3 and not named):
                return
            joints.add(between)
        digits += text[start:end]
        sizes += (end - start,)
        if len(digits) > _CARD_DIGITS[-1]:
            return
        if len(digits) in _CARD_DIGITS and _stands_alone(text, groups, first, last):
            one_joint = not joints or joints <= {" "} or joints <= {"-"}
            usual = one_joint and min(sizes[:-1], default=3) >= 3 and sizes != _ORDER
            yield last, digits, usual or sizes in _WRITTEN


def _is_issued(digits: str) -> bool:
    return any(
        issuer.low <= int(digits[: len(str(issuer.low))]) <= issuer.high
        and len(digits) in issuer.lengths
        for issuer in ISSUERS
    )


def _is_parcel(text: str, start: int, end: int, label: str) -> bool:
    """Twelve digits in a row are also how parcels are numbered, and one in a hundred would pass."""
    return end - start == SHORTEST_CARD and (
        _PARCEL_WORDS.search(label) is not None or any(words_near(text, start, end, _PARCEL_WORDS))
    )


def _is_luhn(digits: str) -> bool:
    if digits.startswith("89") or digits.count("0") == len(digits):  # a SIM card; a placeholder
        return False
    from stdnum import luhn

    return bool(luhn.is_valid(digits))


def _stands_alone(text: str, groups: Sequence[Span], first: int, last: int) -> bool:
    """Not a piece of a longer number. A neighbour across a blank belongs to it if it has the
    size of a group of this one (a tracking number) or is glued to letters (an IBAN)."""
    if not is_free(text, groups[first][0], groups[last][1]):
        return False
    if first == last:
        return True
    size = groups[first][1] - groups[first][0]
    neighbours = []
    if joint_before(text, groups[first][0]):
        neighbours.append(groups[first - 1])
    if joint_after(text, groups[last][1]):
        neighbours.append(groups[last + 1])
    return not any(
        end - start == size or joint_before(text, start) == "glued" for start, end in neighbours
    )


# --- social security numbers --------------------------------------------------------------------

SHORTEST_SSN = 9
_SSN_WORDS = re.compile(r"(?<![^\W_])(?<!\[)(?:ssn|social security)(?![^\W_])", re.IGNORECASE)


def find_ssns(text: str, groups: Sequence[Span], label: str) -> Iterator[Span]:
    """123-45-6789 anywhere; nine digits in a row or with dots where a word says what they are."""
    for first, (start, end) in enumerate(groups):
        if end - start == SHORTEST_SSN:
            if _names_an_ssn(text, start, end, label) and is_free(text, start, end):
                yield from _if_ssn(text, start, end)
        elif end - start == 3 and [b - a for a, b in groups[first : first + 3]] == [3, 2, 4]:
            parts = groups[first : first + 3]
            end = parts[-1][1]
            joints = {
                JOINTS.get(text[a:b].strip(" ") or " ", "") for (_, a), (b, _) in pairwise(parts)
            }
            allowed: tuple[Joint, ...] = ("",) if joints == {"blank"} else ("", "blank")
            clear = joints in ({"blank"}, {"hyphen"}) and is_free(text, start, end, allowed)
            if clear or ("" not in joints and _names_an_ssn(text, start, end, label)):
                yield from _if_ssn(text, start, end)


def _names_an_ssn(text: str, start: int, end: int, label: str) -> bool:
    named = _SSN_WORDS.search(label) is not None
    return named or any(words_near(text, start, end, _SSN_WORDS))


def _if_ssn(text: str, start: int, end: int) -> Iterator[Span]:
    from stdnum.us import ssn

    if ssn.is_valid("".join(_GROUP.findall(text, start, end))):
        yield start, end


# --- bank accounts ------------------------------------------------------------------------------

_IBAN_CUE = re.compile(r"[0-9](?<=[A-Za-z]{2}[0-9])[0-9]")
_IBAN_GROUP = re.compile(r"[0-9A-Za-z]+(?:[ \-.](?=[0-9A-Za-z]))?")


def find_ibans(text: str) -> Iterator[Span]:
    for cue in _IBAN_CUE.finditer(text):
        start = cue.start() - 2
        if joint_before(text, start) == "glued":
            continue
        ends: list[int] = []
        letters = ""
        position = start
        while group := _IBAN_GROUP.match(text, position, position + 36):
            part = group.group().rstrip(" -.")
            letters += part
            if len(letters) > 34:
                break
            if len(letters) >= 15 and joint_after(text, position + len(part)) != "glued":
                ends.append(position + len(part))
            position = group.end()
            if len(part) == len(group.group()):
                break
        for end in reversed(ends):
            if _is_iban(text[start:end]):
                yield start, end
                break


def _is_iban(candidate: str) -> bool:
    number = "".join(char for char in candidate if char.isalnum()).upper()
    # The checksum first: 96 of 100 candidates end here, before the library is asked or loaded.
    if int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 != 1:
        return False
    from stdnum import iban

    # Not the country's own rules: they know only the banks of the day the library was made.
    return bool(iban.is_valid(number, check_country=False))


_CASED = "A-Za-z\u00c0-\u024f\u0370-\u04ff"
_LOCAL_REVERSED = re.compile(rf"[{_CASED}0-9_.%+'\-]{{1,64}}")
_DOMAIN = re.compile(
    rf"(?:[{_CASED}0-9]+(?:-+[{_CASED}0-9]+)*\.)+(xn--[A-Za-z0-9-]+|[{_CASED}]{{2,63}})(?![{_CASED}0-9])"
)
_BEFORE_USERINFO = re.compile(r"//[^\s/?#@]*\Z")
_ESCAPED_LETTERS = re.compile(r"[nrtbf]|u[0-9A-Fa-f]{4}")
_FILE_SUFFIXES = frozenset({"png", "jpg", "jpeg", "gif", "svg", "webp", "ico", "css", "js", "pdf"})


def find_emails(text: str) -> Iterator[Span]:
    at = text.find("@")
    while at >= 0:
        local = _LOCAL_REVERSED.match(text[max(0, at - 64) : at][::-1])
        domain = _DOMAIN.match(text, at + 1) if local else None
        if local and domain and domain.group(1).lower() not in _FILE_SUFFIXES:
            start = _mailbox_start(text, at - local.end(), at)
            is_mailbox = start < at and text[start:at] != "git"
            if is_mailbox and not _BEFORE_USERINFO.search(text, max(0, start - 64), start):
                yield start, domain.end()
        at = text.find("@", at + 1)


def _mailbox_start(text: str, start: int, at: int) -> int:
    if start and text[start - 1] == "\\" and (escape := _ESCAPED_LETTERS.match(text, start, at)):
        start = escape.end()
    return at - len(text[start:at].lstrip("._%+'-"))


_UUID_MIDDLE = re.compile(r"-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}")
_HEX8 = re.compile(r"[0-9A-Fa-f]{8}")


def find_uuids(text: str) -> Iterator[Span]:
    for middle in _UUID_MIDDLE.finditer(text):
        start, end = middle.start() - 8, middle.end()
        if start >= 0 and _HEX8.match(text, start) and is_whole_word(text, start, end):
            yield start, end


_QUAD_TAIL = re.compile(r"\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}")
_QUAD_HEAD = re.compile(r"[0-9]{1,3}\Z")
_OCTETS = re.compile(r"(?:(?:25[0-5]|2[0-4][0-9]|1?[1-9][0-9]|1[0-9]{2}|[0-9])(?:\.|\Z)){4}")
_BEFORE_A_VERSION = re.compile(
    r"(?<![^\W_])(?:v|ver|versions?|release|build|section)[.:=]? *\Z", re.IGNORECASE
)


def find_ipv4(text: str) -> Iterator[Span]:
    for tail in _QUAD_TAIL.finditer(text):
        head = _QUAD_HEAD.search(text, max(0, tail.start() - 3), tail.start())
        if head is None or not _OCTETS.fullmatch(text, head.start(), tail.end()):
            continue
        start, end = head.start(), tail.end()
        before = text[max(0, start - 12) : start]
        if _BEFORE_A_VERSION.search(before):
            continue
        in_path = before.endswith("/") and not before.endswith("//")  # `Chrome/120.0.0.0`
        has_fifth = text[end : end + 1] == "." and text[end + 1 : end + 2].isdigit()
        if in_path or has_fifth or joint_before(text, start) in ("glued", "dot"):
            continue
        if joint_after(text, end) != "glued":
            yield start, end


_V6_CUE = re.compile(r":(?::|[0-9A-Fa-f]{1,4}:)")
_V6_TOKEN = re.compile(r"[0-9A-Fa-f:.]{3,}")
_V6_GROUP = re.compile(r"[0-9A-Fa-f]{1,4}")


def find_ipv6(text: str) -> Iterator[Span]:
    if not _V6_CUE.search(text):
        return
    for token in _V6_TOKEN.finditer(text):
        found = token.group()
        if found.count(":") < 2 or len(found) > 64:
            continue
        start, end = token.span()
        if found.startswith(":") and (found.startswith(":::") or not found.startswith("::")):
            start += 1
        found = text[start:end].rstrip(".")
        if found.endswith(":") and not found.endswith("::"):
            found = found[:-1]
        if _is_ipv6(found) and is_whole_word(text, start, start + len(found)):
            yield start, start + len(found)


def _is_ipv6(found: str) -> bool:
    """Valid, and not what code looks like: `a::b` is a name, `x[1::2]` a slice."""
    head, _, last = found.rpartition(":")
    if "." in last:
        if not _OCTETS.fullmatch(last):
            return False
        found = f"{head}:0:0"
    sides = [side.split(":") if side else [] for side in found.split("::")]
    groups = [group for side in sides for group in side]
    if not all(_V6_GROUP.fullmatch(group) for group in groups):
        return False
    if len(groups) != 8 if len(sides) == 1 else len(sides) > 2 or len(groups) > 7:
        return False
    plausible = any(len(group) >= 3 for group in groups) and any(map(str.isdigit, found))
    return plausible or len(sides) == 1 or found == "::1"


Comparison = Literal["digits", "squeezed", "text"]


class PiiKind(msgspec.Struct, frozen=True):
    """`comparison` says what makes two spellings one value: the digits alone, the characters
    without blanks and hyphens, or the text without case."""

    severity: Severity
    comparison: Comparison


KINDS: dict[str, PiiKind] = {
    "card": PiiKind("high", "digits"),
    "ssn": PiiKind("high", "digits"),
    "iban": PiiKind("high", "squeezed"),
    "email": PiiKind("medium", "text"),
    "phone": PiiKind("medium", "digits"),
    "uuid": PiiKind("low", "text"),
    "ip": PiiKind("low", "text"),
}


class PiiHit(msgspec.Struct, frozen=True):
    """One piece of personal data. Offsets are characters, not bytes."""

    kind: str
    start: int
    end: int
    base_severity: Severity


def find_pii(text: str, *, locale: str | None = None, label: str = "") -> tuple[PiiHit, ...]:
    """Every finding, sorted, none overlapping another: the longest wins, then the more severe.

    `locale` adds its country's way to write phone numbers to the American one. `label` is the
    key that the text stands under: `{"ssn": "536904399"}` names its number there."""
    if text.isascii():
        found = _find_all(text, locale, label)
        spans = _without_overlaps(found) if found else []
    else:
        folded = fold_characters(text)
        found = _find_all(folded.text, locale, label)
        spans = [(kind, folded.original(span)) for kind, span in _without_overlaps(found)]
    return tuple(PiiHit(kind, *span, KINDS[kind].severity) for kind, span in spans)


def _find_all(text: str, locale: str | None, label: str) -> list[tuple[str, Span]]:
    found: list[tuple[str, Span]] = []
    if "@" in text:
        found += [("email", span) for span in find_emails(text)]
    if runs := digit_runs(text):
        after = -1
        for groups in runs:
            length = groups[-1][1] - groups[0][0]
            if length >= SHORTEST_CARD:
                found += [("card", span) for span in find_cards(text, groups, label)]
            if length >= SHORTEST_SSN:
                found += [("ssn", span) for span in find_ssns(text, groups, label)]
            phones = find_phones(text, groups, locale=locale, label=label, after=after)
            found += [("phone", span) for span in phones]
            after = phones[-1][1] if phones else after
        found += [("iban", span) for span in find_ibans(text)]
    if text.count("-") >= 4:
        found += [("uuid", span) for span in find_uuids(text)]
    if text.count(".") >= 3:
        found += [("ip", span) for span in find_ipv4(text)]
    if text.count(":") >= 2:
        found += [("ip", span) for span in find_ipv6(text)]
    return found


_RANK = {"high": 0, "medium": 1, "low": 2}


def _without_overlaps(found: list[tuple[str, Span]]) -> list[tuple[str, Span]]:
    # Sets of characters: findings are short, and this is linear.
    high = {at for kind, span in found if KINDS[kind].severity == "high" for at in range(*span)}

    def preference(entry: tuple[str, Span]) -> tuple[bool, int, int, int]:
        kind, (start, end) = entry
        # A card number with more digits beside it is still a card number, not a long phone.
        masks = kind == "phone" and not high.isdisjoint(range(start, end))
        return masks, start - end, _RANK[KINDS[kind].severity], start

    taken: set[int] = set()
    kept: list[tuple[str, Span]] = []
    for kind, (start, end) in sorted(found, key=preference):
        if taken.isdisjoint(range(start, end)):
            taken.update(range(start, end))
            kept.append((kind, (start, end)))
    return sorted(kept, key=lambda entry: entry[1])


LIFTING = ("invoice", "ssn", "patient", "claim", "medical", "financial")
SOFTENING = ("contact", "support", "careers", "press", "help", "info")
_LIFTED: dict[Severity, Severity] = {"low": "medium", "medium": "high", "high": "high"}
_CONTEXT = re.compile(
    rf"(?<![^\W_])(?:(?P<lifts>{'|'.join(LIFTING)})|{'|'.join(SOFTENING)})(?![^\W_])", re.IGNORECASE
)


def severities(text: str, hits: tuple[PiiHit, ...], *, label: str = "") -> Iterator[Severity]:
    """The severity of each hit among its words. Words inside a hit say nothing about it or its
    neighbours; only a role mailbox (`support@…`) speaks for itself. Lifting beats softening, and
    softening is for medium severity alone: no word excuses a card number. A label lifts and never
    softens: else any invented address passed as `contact_email`."""
    pieces: list[str] = []
    position = 0
    for hit in hits:
        pieces += [text[position : hit.start], " " * (hit.end - hit.start)]
        position = hit.end
    masked = "".join([*pieces, text[position:]])
    label_lifts = any(match["lifts"] for match in _CONTEXT.finditer(label))
    for hit in hits:
        words = list(words_near(masked, hit.start, hit.end, _CONTEXT))
        local, at, _ = text[hit.start : hit.end].partition("@")
        if label_lifts or any(word["lifts"] for word in words):
            yield _LIFTED[hit.base_severity]
        elif hit.base_severity == "medium" and (words or (at and local.lower() in SOFTENING)):
            yield "contextual"
        else:
            yield hit.base_severity
