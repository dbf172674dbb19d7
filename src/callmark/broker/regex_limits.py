"""How long a text a regular expression may be given, so that no expression can stall a run.

Python tries one way to fit after the other. A bound on the number of ways follows from what stands
in the expression; a longer text than that bound allows is never tried."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

MAX_TEXT = 2_000  # characters
MIN_TEXT = 100  # an expression that could not even read so many is refused
MAX_WAYS = 10**7  # about a second

_MANY = 100  # more choices than this depend on the length of the text
_TOKEN = re.compile(
    r"""
      \\.                                       # an escape
    | \[\^?\]?(?:\\.|[^]\\])*\]                 # a class of characters
    | \(\?(?:\#[^)]*|[aiLmsux]+|P=[^)]*)\)      # a comment, flags, what a group took
    | \((?:\?(?:P?<\w+>|<[=!]|[:=!>]|\([^)]*\)|[aiLmsux-]+:))?
    | (?:[*+?]|\{\d+\}|\{\d*,\d*\})[?+]?        # how often
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_BOUNDS = {"*": (0, math.inf), "+": (1, math.inf), "?": (0, 1)}


class _Freedom(NamedTuple):
    """The number of ways to fit: e to the power of `fixed`, times the ways to lay `loose` parts of
    any length into the text."""

    fixed: float
    loose: int

    def then(self, other: _Freedom) -> _Freedom:
        return _Freedom(self.fixed + other.fixed, self.loose + other.loose)

    def ways(self, size: int) -> float:
        """For a text of this size, as a logarithm."""
        laid = math.lgamma(size + self.loose + 1) - math.lgamma(size + 1)
        return self.fixed + laid - math.lgamma(self.loose + 1)


_NONE = _Freedom(0, 0)


def text_limit(pattern: str) -> int:
    """The most characters that a valid expression is tried on; ValueError if they are too few."""
    if re.search(r"\(\?[aiLmsu]*x", pattern):
        raise ValueError("the flag x is not supported")
    freedom = _freedom(match[0] for match in _TOKEN.finditer(pattern))
    sizes = range(MIN_TEXT, MAX_TEXT + 1)
    allowed = bisect_right(sizes, math.log(MAX_WAYS), key=freedom.ways)
    if not allowed:
        raise ValueError("a text can fit in too many ways: use fewer of * + ? { } and |")
    return sizes[allowed - 1]


def _freedom(tokens: Iterator[str]) -> _Freedom:
    """Of everything up to the end of a group, or of the expression."""
    branches: list[_Freedom] = []
    before = last = _NONE
    for token in tokens:
        if token[0] == ")":
            break
        if token[0] == "|":
            branches.append(before.then(last))
            before = last = _NONE
        elif _is_repeat(token):
            last = _repeated(last, token)
        else:
            before = before.then(last)
            opens = (token[0] == "(" and token[-1] != ")") or token.startswith("(?(")
            last = _freedom(tokens) if opens else _NONE
    branches.append(before.then(last))
    return _Freedom(
        max(branch.fixed for branch in branches) + math.log(len(branches)),
        max(branch.loose for branch in branches),
    )


def _is_repeat(token: str) -> bool:
    return token[0] in "*+?" or (token[0] == "{" and len(token) > 1)


def _repeated(part: _Freedom, token: str) -> _Freedom:
    least, most = _bounds(token)
    if most == math.inf and part != _NONE:
        raise ValueError(
            "repeats without end what itself can fit in several ways:"
            " repeat a class of characters instead, such as [a-z ]*"
        )
    choices = most - least + 1
    times = 1 if most == math.inf else most
    fixed, loose = part.fixed * times, part.loose * int(times)
    if choices > _MANY:
        return _Freedom(fixed, loose + 1)
    return _Freedom(fixed + math.log(choices), loose)


def _bounds(token: str) -> tuple[float, float]:
    if token[0] in _BOUNDS:
        return _BOUNDS[token[0]]
    least, comma, most = token.strip("{}?+").partition(",")
    if not comma:
        return int(least), int(least)
    return int(least or 0), int(most) if most else math.inf
