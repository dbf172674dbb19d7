"""Digits that are personal: card numbers, social security numbers, phone numbers.

Digits are ASCII digits. Fictional numbers (555) are findings like any other: that a value is
harmless is not visible in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice, pairwise

import msgspec

from callmark.scorers.pii_edges import (
    BLANKS,
    HYPHENS,
    IN_CLASS,
    JOINTS,
    Joint,
    Span,
    is_free,
    joint_after,
    joint_before,
    words_near,
)

# Patterns that see the whole of a text start with a digit or a literal: the regex engine then
# skips prose at 5 ns a character. What must not stand around a match is asked afterwards.
_NEXT_DIGIT = rf"[{IN_CLASS}()./]{{0,3}}[0-9]"
_RUN = re.compile(f"[0-9]{_NEXT_DIGIT * 6}(?:{_NEXT_DIGIT})*")  # unrolled: a third faster
_NO_DIGITS = bytes(set(range(256)) - set(b"0123456789"))
_GROUP = re.compile(r"[0-9]+")
_YEAR = "(?:19|20)[0-9]{2}"
_DATE = re.compile(
    rf"(?:{_YEAR}[-./ ][0-9]{{1,2}}[-./ ][0-9]{{1,2}}|[0-9]{{1,2}}[-./ ][0-9]{{1,2}}[-./ ]{_YEAR})"
    r"(?![0-9])"
)


class Issuer(msgspec.Struct, frozen=True):
    """Numbers that start with `low` to `high` (same width) and have a length in `lengths`."""

    low: int
    high: int
    lengths: frozenset[int]


_L16 = frozenset({16})
_L16_19 = frozenset(range(16, 20))
_DINERS = frozenset({14, 16})
_MAESTRO = frozenset(range(13, 20))
ISSUERS: tuple[Issuer, ...] = (
    Issuer(4, 4, frozenset({13, 16, 19})),  # Visa
    Issuer(51, 55, _L16),  # Mastercard
    Issuer(2221, 2720, _L16),
    Issuer(34, 34, frozenset({15})),  # American Express
    Issuer(37, 37, frozenset({15})),
    Issuer(300, 305, _DINERS),  # Diners
    Issuer(36, 36, _DINERS),
    Issuer(38, 39, _DINERS),
    Issuer(3528, 3589, _L16_19),  # JCB
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


def digit_runs(text: str) -> list[Span]:
    """Stretches of seven or more digits with phone or card punctuation between, dates left out."""
    # Counting digits costs a tenth of looking for them, and most texts have fewer than seven.
    if len(text.encode("utf-8", "surrogatepass").translate(None, _NO_DIGITS)) < 7:
        return []
    return [
        run.span()
        for run in _RUN.finditer(text)
        if not _DATE.fullmatch(text, run.start(), run.end())
    ]


def find_numbers(
    text: str, run: Span, *, locale: str | None, label: str
) -> Iterator[tuple[str, Span]]:
    """The cards, social security and phone numbers of one run of digits."""
    start, end = run
    groups = [match.span() for match in _GROUP.finditer(text, start, end)]
    for first in range(len(groups)):
        if card := _card_at(text, groups, first):
            yield "card", card
        if ssn := _ssn_at(text, groups, first, label):
            yield "ssn", ssn
    for phone in _north_american(text, start, end):
        yield "phone", phone
    if international := _international(text, groups):
        yield "phone", international
    elif locale is not None:
        for phone in _regional(text, groups, locale):
            yield "phone", phone


def _card_at(text: str, groups: list[Span], first: int) -> Span | None:
    """The longest card number that starts with this group of digits."""
    best: Span | None = None
    digits, joint = "", ""
    for last in range(first, len(groups)):
        start, end = groups[last]
        if last > first:
            before_start, before_end = groups[last - 1]
            found = JOINTS.get(text[before_end:start], "")
            if found not in ("blank", "hyphen") or joint not in ("", found):
                break
            if before_end - before_start < 3:
                break
            joint = found
        if len(digits) + end - start > 19:
            break
        digits += text[start:end]
        if len(digits) >= 13 and _is_card(digits) and _stands_alone(text, groups, first, last):
            best = groups[first][0], end
    return best


def _is_card(digits: str) -> bool:
    if not any(
        issuer.low <= int(digits[: len(str(issuer.low))]) <= issuer.high
        and len(digits) in issuer.lengths
        for issuer in ISSUERS
    ):
        return False
    from stdnum import luhn

    return bool(luhn.is_valid(digits))


def _stands_alone(text: str, groups: list[Span], first: int, last: int) -> bool:
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


_SSN_WORDS = re.compile(r"(?<![^\W_])(?<!\[)(?:ssn|social security)(?![^\W_])", re.IGNORECASE)


def _ssn_at(text: str, groups: list[Span], first: int, label: str) -> Span | None:
    start, end = groups[first]
    if end - start == 9:
        named = _SSN_WORDS.search(label) or any(words_near(text, start, end, _SSN_WORDS))
        free = named and is_free(text, start, end)
        return (start, end) if free and _is_ssn(text[start:end]) else None
    parts = groups[first : first + 3]
    if end - start != 3 or [b - a for a, b in parts] != [3, 2, 4]:
        return None
    joints = {JOINTS.get(text[a:b], "") for (_, a), (b, _) in pairwise(parts)}
    end = parts[-1][1]
    allowed: tuple[Joint, ...] = ("",) if joints == {"blank"} else ("", "blank")
    if joints not in ({"blank"}, {"hyphen"}) or not is_free(text, start, end, allowed):
        return None
    return (start, end) if _is_ssn("".join(text[a:b] for a, b in parts)) else None


def _is_ssn(digits: str) -> bool:
    from stdnum.us import ssn

    return bool(ssn.is_valid(digits))


_AREA = rf"(?:\([0-9]{{3}}\)[{IN_CLASS}.]?|[0-9]{{3}}[{IN_CLASS}.])"
_NORTH_AMERICAN = re.compile(
    rf"(?<![0-9])(?:1[{IN_CLASS}.]?)?{_AREA}[0-9]{{3}}[{IN_CLASS}.][0-9]{{4}}(?![0-9])"
)


def _north_american(text: str, start: int, end: int) -> Iterator[Span]:
    """(415) 555-2671 and its kin: this shape with punctuation is read as a phone number by
    everybody, so invented area codes count; with blanks alone it has to be a real number."""
    for match in _NORTH_AMERICAN.finditer(text, max(0, start - 1), min(len(text), end + 1)):
        found = match.group()
        in_brackets = found.startswith("(")
        punctuated = in_brackets or any(char not in BLANKS for char in found if not char.isdigit())
        allowed: tuple[Joint, ...] = ("", "blank") if punctuated else ("",)
        left = "" if in_brackets else joint_before(text, match.start())
        if left not in allowed or joint_after(text, match.end()) not in allowed:
            continue
        if _is_phone(found, "US", fictional=punctuated):
            yield match.span()


def _international(text: str, groups: list[Span]) -> Span | None:
    """A number with its `+`, cut before whatever digits follow it."""
    start = groups[0][0] - 1
    if text[max(0, start - 1) : start + 1] == "+(":
        start -= 1
    if start < 0 or text[start] != "+" or joint_before(text, start) == "glued":
        return None
    for end in _ends(text, groups, 0):
        if _is_phone(text[start:end], None, fictional=True):
            return start, end
    return None


def _regional(text: str, groups: list[Span], locale: str) -> Iterator[Span]:
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


_THOUSANDS = re.compile(r"[0-9]{1,3}(?:[ \u00a0\u2009\u202f.][0-9]{3})+")


def _looks_written_as_phone(candidate: str) -> bool:
    return (
        not candidate.isdigit()
        and not _DATE.match(candidate)
        and (candidate.startswith("0") or not _THOUSANDS.fullmatch(candidate))
    )


def _ends(text: str, groups: list[Span], first: int) -> list[int]:
    """Where a phone number of 7 to 15 digits that starts here could end, longest first."""
    ends: list[int] = []
    digits = 0
    for start, end in islice(groups, first, first + 15):
        digits += end - start
        if digits > 15:
            break
        if digits >= 7 and joint_after(text, end) in ("", "blank"):
            ends.append(end)
    return ends[::-1]


_PLAIN = str.maketrans(dict.fromkeys(BLANKS, " ") | dict.fromkeys(HYPHENS, "-"))


@lru_cache(maxsize=4096)
def _is_phone(candidate: str, region: str | None, *, fictional: bool) -> bool:
    """`fictional`: a North American number of the right length will do (555-123-4567)."""
    import phonenumbers

    try:
        number = phonenumbers.parse(candidate.translate(_PLAIN), region)
    except phonenumbers.NumberParseException:
        return False
    if phonenumbers.is_valid_number(number):
        return True
    possible = phonenumbers.is_possible_number_with_reason(number)
    return (
        fictional
        and number.country_code == 1
        and bool(possible == phonenumbers.ValidationResult.IS_POSSIBLE)
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
