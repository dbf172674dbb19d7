"""Numbers with a checksum or a form of their own: cards, social security numbers, bank accounts.

They are read from folded text. Example numbers are findings like any other: that a value is
harmless is not visible in it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from callmark.scorers.pii_edges import (
    JOINTS,
    Joint,
    Span,
    is_free,
    joint_after,
    joint_before,
    words_near,
)
from callmark.scorers.pii_phones import DATE

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
