r"""Equations in mathematics that is set: `\frac{12.5}{2.5} \times 3 = 15\text{ m}`. Every side is
reckoned as an interval, as what is stated there was mostly rounded; a side with a letter in it says
nothing, and what two units or a power of ten may explain is left alone."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from callmark.grounding.arithmetic import Equation
from callmark.grounding.numbers import SCALE
from callmark.grounding.spans import Span
from callmark.grounding.values import Value

DEEPEST = 12
LARGEST_EXPONENT = 40
LARGEST = 1e15
_SLACK = 1e-9
_TOKEN = re.compile(
    r"(?P<number>\d+(?:(?:\{,\}|,|\\,)\d{3}(?!\d))*(?:\.\d+)?|\.\d+)(?P<percent>\s?\\?%)?"
    r"|(?P<text>\\(?:text|mathrm|operatorname|mathit|textbf|mbox)\s?\{(?P<unit>[^{}]{0,60})\})"
    r"|(?P<frac>\\[dtc]?frac(?![a-z]))|(?P<root>\\sqrt(?![a-z\[]))|(?P<box>\\boxed(?![a-z]))"
    r"|(?P<times>\\(?:times|cdot|ast)(?![a-z])|[×·*⋅])|(?P<over>\\div(?![a-z])|[÷/])"
    r"|(?P<is>\\(?:approx|simeq|sim|eq|equiv)(?![a-z])|[=≈])"
    r"|(?P<row>\\\\|\\?[\[\]]|\\[()]|(?<!\\)\$+)"
    r"|(?P<open>(?:\\(?:left|[bB]igl?)\s?)?\()|(?P<close>(?:\\(?:right|[bB]igr?)\s?)?\))"
    r"|(?P<begin>\{)|(?P<end>\})|(?P<power>\^)|(?P<plus>\+)|(?P<minus>[-−–])"
    r"|(?P<blank>\\[,;:!> ]|\\q?quad(?![a-z])|\\displaystyle|\\\$|[\s&~€£])"
    r"|(?P<other>\\[A-Za-z]+|[^\W\d]+|.)",
    re.DOTALL,
)
_UNIT_WORD = re.compile(r"[^\W\d_]+")
# What one unit is of another: hours of minutes, km/h of m/s, metres of feet.
_FACTORS = (60.0, 3600.0, 24.0, 1440.0, 86400.0, 7.0, 12.0, 3.6, 365.0)


class _Side(NamedTuple):
    """From `low` to `high`; `at`: where its first number stands. `steps`: what is done to it."""

    low: float
    high: float
    at: int
    steps: int
    is_share: bool = False
    is_rough: bool = False
    units: frozenset[str] = frozenset()


class _NotReckoned(Exception):
    pass


def find_in_formulas(
    text: str, formulas: Sequence[Span], values: Sequence[Value]
) -> dict[int, Equation]:
    """By the place of the value that an equation states, in the list of values."""
    return {one.value: one for one in _find(text, formulas, values)}


def _find(text: str, formulas: Sequence[Span], values: Sequence[Value]) -> Iterator[Equation]:
    starts = [value.start for value in values]
    for start, end in formulas:
        for left, right in _pairs(text, start, end):
            at = bisect_right(starts, right.at) - 1
            if at < 0 or right.at >= values[at].end or not values[at].readings:
                continue
            holds = _agree(left, right)
            if not holds and not (right.units <= left.units and not _may_be_converted(left, right)):
                continue
            result = round(float(f"{(left.low + left.high) / 2:.6g}") * SCALE)
            yield Equation(at, result, holds, ())


def _pairs(text: str, start: int, end: int) -> Iterator[tuple[_Side, _Side]]:
    """Sides that are set equal: the left one is reckoned."""
    tokens = list(_TOKEN.finditer(text, start, end))
    sides: list[_Side | None] = []
    part: list[re.Match[str]] = []
    is_rough = False
    for token in (*tokens, None):
        kind = token.lastgroup if token is not None else "row"
        if token is not None and kind not in ("is", "row") and not _is_word(token):
            part.append(token)
            continue
        side = _reckon(part)
        sides.append(side and side._replace(is_rough=is_rough))
        part, is_rough = [], token is not None and token[0] != "="
        if kind != "is":
            yield from _set_equal(sides)
            sides = []


def _set_equal(sides: Sequence[_Side | None]) -> Iterator[tuple[_Side, _Side]]:
    for left, right in pairwise(sides):
        if left is not None and right is not None and left.steps:
            yield left, right


def _is_word(token: re.Match[str]) -> bool:
    return token.lastgroup == "other" and len(token[0]) > 1 and token[0].isalpha()


def _reckon(tokens: Sequence[re.Match[str]]) -> _Side | None:
    parser = _Parser([one for one in tokens if one.lastgroup != "blank"])
    try:
        side = parser.read_sum(0)
    except (_NotReckoned, ArithmeticError, ValueError):
        return None
    if parser.has_sums and len(set(parser.units)) > 1:
        return None
    if parser.at < len(parser.tokens) or not math.isfinite(side.low + side.high):
        return None
    if max(abs(side.low), abs(side.high)) > LARGEST:
        return None
    return side._replace(units=frozenset(parser.units))


class _Parser:
    def __init__(self, tokens: list[re.Match[str]]) -> None:
        self.tokens = tokens
        self.at = 0
        self.units: list[str] = []
        self.has_sums = False

    def _next(self) -> str:
        """The kind of the next token that is no unit; the units are kept."""
        while self.at < len(self.tokens) and self.tokens[self.at].lastgroup == "text":
            self.units += _UNIT_WORD.findall(self.tokens[self.at]["unit"].casefold())
            self.at += 1
        if self.at == len(self.tokens):
            return ""
        kind = self.tokens[self.at].lastgroup or ""
        return "number" if kind == "percent" else kind

    def _take(self, *kinds: str) -> re.Match[str]:
        if self._next() not in kinds:
            raise _NotReckoned
        self.at += 1
        return self.tokens[self.at - 1]

    def read_sum(self, depth: int) -> _Side:
        if depth > DEEPEST:
            raise _NotReckoned
        side = self._read_product(depth)
        while (kind := self._next()) in ("plus", "minus"):
            self.at += 1
            self.has_sums = True
            other = self._read_product(depth)
            low, high = (other.low, other.high) if kind == "plus" else (-other.high, -other.low)
            side = _Side(side.low + low, side.high + high, side.at, side.steps + other.steps + 1)
        return side

    def _read_product(self, depth: int) -> _Side:
        side = self._read_power(depth)
        while True:
            kind = self._next()
            if kind in ("times", "over"):
                self.at += 1
                other = self._read_power(depth)
            elif kind in ("open", "frac", "root"):  # `3(4 + 5)`
                kind, other = "times", self._read_power(depth)
            else:
                return side
            side = _times(side, other) if kind == "times" else _over(side, other)

    def _read_power(self, depth: int) -> _Side:
        side = self._read_one(depth)
        if self._next() != "power":
            return side
        self.at += 1
        power = self._read_argument(depth)
        if power.low != power.high or abs(power.low) > LARGEST_EXPONENT:
            raise _NotReckoned
        if side.low < 0 or (side.low == 0 and power.low <= 0):
            raise _NotReckoned
        low, high = sorted((side.low**power.low, side.high**power.low))
        return _Side(low, high, side.at, side.steps + 1)

    def _read_argument(self, depth: int) -> _Side:
        """`{…}`, or a single number."""
        if self._next() != "begin":
            return self._number(self._take("number"))
        return self._read_within("begin", "end", depth)

    def _read_within(self, first: str, last: str, depth: int) -> _Side:
        self._take(first)
        side = self.read_sum(depth + 1)
        self._take(last)
        return side

    def _read_one(self, depth: int) -> _Side:
        match self._next():
            case "number":
                return self._number(self._take("number"))
            case "minus":
                self.at += 1
                side = self._read_power(depth + 1 if depth < DEEPEST else depth)
                return side._replace(low=-side.high, high=-side.low)
            case "open":
                return self._read_within("open", "close", depth)
            case "begin":
                return self._read_within("begin", "end", depth)
            case "frac":
                self.at += 1
                above = self._read_argument(depth)
                return _over(above, self._read_argument(depth))
            case "box":
                self.at += 1
                return self._read_argument(depth)
            case "root":
                self.at += 1
                side = self._read_argument(depth)
                if side.low < 0:
                    raise _NotReckoned
                return _Side(math.sqrt(side.low), math.sqrt(side.high), side.at, side.steps + 1)
            case _:
                raise _NotReckoned

    @staticmethod
    def _number(token: re.Match[str]) -> _Side:
        digits = re.sub(r"[^\d.]", "", token["number"])
        if len(digits) > 17:
            raise _NotReckoned
        one = float(digits)
        _, point, decimals = digits.partition(".")
        unit = 10.0 ** -len(decimals) if point else 0.0  # rounded, or cut off
        is_share = token["percent"] is not None
        return _Side(one - unit, one + unit, token.start(), 0, is_share)


def _times(one: _Side, other: _Side) -> _Side:
    one, other = _as_part(one), _as_part(other)
    found = [low * high for low in (one.low, one.high) for high in (other.low, other.high)]
    return _Side(min(found), max(found), one.at, one.steps + other.steps + 1)


def _over(one: _Side, other: _Side) -> _Side:
    one, other = _as_part(one), _as_part(other)
    if other.low <= 0 <= other.high:
        raise _NotReckoned
    found = [above / below for above in (one.low, one.high) for below in (other.low, other.high)]
    return _Side(min(found), max(found), one.at, one.steps + other.steps + 1)


def _as_part(side: _Side) -> _Side:
    """15% of something is 0.15 of it."""
    if not side.is_share:
        return side
    return side._replace(low=side.low / 100, high=side.high / 100, is_share=False)


def _agree(left: _Side, right: _Side) -> bool:
    slack = _SLACK * max(abs(right.low), abs(right.high), 1.0)
    half = slack
    if right.low == right.high and not right.steps:  # `= 33`, `\\approx 1,200`
        half += 0.5 * (_last_place(right.high) if right.is_rough else 1.0)
    factors = (1.0, 0.01) if right.is_share else (1.0,)
    return any(
        left.low <= factor * (right.high + half) and factor * (right.low - half) <= left.high
        for factor in factors
    )


def _last_place(number: float) -> float:
    digits = f"{abs(number):.0f}"
    return 10.0 ** (len(digits) - len(digits.rstrip("0") or "0"))


def _may_be_converted(left: _Side, right: _Side) -> bool:
    for factor in _FACTORS:
        for one in (factor, 1 / factor):
            if _agree(left, right._replace(low=right.low * one, high=right.high * one)):
                return True
    return any(
        _agree(left, right._replace(low=right.low * 10.0**power, high=right.high * 10.0**power))
        for power in range(-12, 13)
    )
