"""Numbers that follow from others: equations that are written out, and sums, differences and
products that a word announces."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, pairwise
from typing import NamedTuple

from callmark.grounding.evidence import Evidence, Leaf
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.reading import dimension_of
from callmark.grounding.record_tree import Field, stem
from callmark.grounding.text import SIGNS, Frozen, lower
from callmark.grounding.values import Value, decimals_of

LONGEST_GAP = 80  # characters between two numbers of one equation
RECENT = 14  # numbers that were stated before, as operands
NEAR = 8  # one of the two operands of a difference is among so many
FAR = 60  # the same for numbers with decimals
LEAST = 13  # what is less is a sum of anything
CENTS = 2  # decimals that tell amounts apart
MAX_TERMS = 10
_BETWEEN = re.compile(
    r"[\s*_]*(?:\([^()\n]{0,60}\)|\[[^\]\n]{0,40}\]"
    r"|[^\W\d_]{1,20}(?:[ /][^\W\d_]{1,20}){0,3})?[\s*_]*"
    r"(?P<op>[+\-−–×x*/÷=]|plus|minus|times|mal|más|menos|por|plus|moins|fois)"
    rf"[\s*_]*\(?[A-Z]{{0,3}}[{SIGNS}]?\s?",
)
_OPERATIONS = {
    "+": "+", "plus": "+", "más": "+", "-": "-", "−": "-", "–": "-", "minus": "-", "menos": "-",
    "moins": "-", "×": "*", "x": "*", "*": "*", "times": "*", "mal": "*", "por": "*", "fois": "*",
    "/": "/", "÷": "/", "=": "=",
}  # fmt: skip

_HEDGE = re.compile(
    r"(?:\b(?:about|around|approx\w*\.?|roughly|nearly|almost|over|under|more than|less than|some"
    r"|at least|above|below|at most|mehr als|mindestens|über|weniger als|unter|más de|al menos"
    r"|menos de|plus de|moins de|circa|ca\.|etwa|rund|ungefähr|fast|unos|unas|aproximadamente"
    r"|casi|environ|près de)\s|[~≈])"
    rf"[{SIGNS}]?$",
    re.IGNORECASE,
)
_HEDGE_AFTER = re.compile(
    rf"\s?(?:[{SIGNS}%]|°\s?[CF]?|[^\W\d_]{{1,12}})?\s(?:environ|approximately|approx|or so"
    r"|ungefähr|aproximadamente|más o menos)\b",
    re.IGNORECASE,
)
_ABOVE = re.compile(
    r"\b(?:over|more than|at least|above|mehr als|über|mindestens|más de|al menos|plus de)\s"
    rf"[{SIGNS}]?$",
    re.IGNORECASE,
)
_BELOW = re.compile(
    r"\b(?:under|less than|almost|nearly|below|at most|up to|fast|weniger als|unter|casi|menos de"
    rf"|moins de|près de)\s[{SIGNS}]?$",
    re.IGNORECASE,
)


class _Cue:
    """Any of these words, `_` for a blank; also after Markdown's underscores."""

    def __init__(self, words: str) -> None:
        alternatives = words.split()
        pattern = "|".join(alternatives).replace("_", "[ ]")
        self.pattern = re.compile(rf"(?<![^\W_])(?:{pattern})", re.IGNORECASE)
        first = "|".join(one.partition("_")[0].partition("[")[0] for one in alternatives)
        self.first = re.compile(first)
        self._bit = 1 << len(_CUES)
        _CUES.append(self)

    def search(self, text: str) -> re.Match[str] | None:
        return self.pattern.search(text) if _announced_in(text) & self._bit else None


_CUES: list[_Cue] = []
_ANY_WORD = re.compile(r"[^\W_]+")


@lru_cache(maxsize=16)  # several cues are looked for in one text
def _announced_in(text: str) -> int:
    found = 0
    for word in set(_ANY_WORD.findall(lower(text))):
        found |= _announced_by(word)
    return found


@lru_cache(maxsize=1 << 14)
def _announced_by(word: str) -> int:
    """Which cues may begin with this word: one bit for each."""
    return sum(1 << at for at, cue in enumerate(_CUES) if cue.first.match(word))


_SUM = _Cue(
    r"""
    (?:sub)?total\w* sum\b altogether\b combined\b in_all\b overall\b together\b adds?_up\b
    comes?_to\b brings?_(?:\w+_){0,3}to\b makes?\b giving\b round[-\s]trip\b gesamt\w*
    insgesamt\b zusammen\b summe\b suma\b juntos\b
    somme\b ensemble\b au_total\b en_total\b en_tout\b
    """
)
_DIFFERENCE = _Cue(
    r"""
    differen\w+ refund\w* remain\w* left\b leaves?\b leaving\b balance\b extra\b additional\w*
    more\b less\b cheaper\b reduc\w+ sav(?:e|es|ed|ing|ings)\b owe[sd]?\b due\b rest\b increase\w*
    decrease\w* credit\w* charge\w* drop\w* up_by\b down\b discount\w* upgrade\w* higher\b lower\b
    differenz\b unterschied\w* rückerstatt\w* verbleib\w* übrig\w* restlich\w* aufpreis\b
    ersparnis\b range\b spread\b headroom\b shortfall\b surplus\b
    diferencia\b reembolso\b restante\w* quedan?\b ahorr\w+ différence\b écart\b
    rembours\w* rest(?:e|ent|ant|ants|ante|antes)\b économi\w+ supplément\w*
    """
)
_COMPARED = _Cue(
    r"""
    differen\w+ remain\w* left\b leaves?\b leaving\b more\b less\b fewer\b cheaper\b dearer\b
    sav(?:e|es|ed|ing|ings)\b higher\b lower\b longer\b shorter\b cooler\b warmer\b colder\b
    hotter\b faster\b slower\b
    older\b larger\b smaller\b closer\b points?\b above\b below\b ahead\b behind\b gap\b short\b
    over\b under\b exceed\w* other\b rose\b fell\b gain\w* grew\b adding\b added\b lost\b drop\w*
    differs?\b extra\b another\b by\b hold\b margin\b net\b discount\w* refund\w*
    range\b spread\b headroom\b shortfall\b surplus\b too\b past\b overdue\b beyond\b late\b
    available\b free\b unsold\b
    differenz\b unterschied\w* verbleib\w* übrig\w* restlich\w* mehr\b weniger\b günstiger\b
    billiger\b teurer\b aufpreis\b prozentpunkte?n?\b punkte?n?\b höher\b niedriger\b
    gesunken\b gestiegen\b um\b fehl\w+
    diferencia\b restante\w* quedan?\b más\b menos\b
    puntos?\b fall\w+ baj\w+ sub\w+ aument\w+ sobra\w* différence\b écart\b baiss\w+ hausse\b
    augment\w+ rest(?:e|ent|ant|ants|ante|antes|er\w+)\b moins\b plus\b
    """
)
_MANY = (
    "passengers?|people|persons?|nights?|travell?ers?|items?|tickets?|bags?|months?|days?|hours?"
    "|units?"
)
_PRODUCT = _Cue(
    rf"""
    each\b per\b for_(?:all|both|the|\w+)_(?:\w+_)?(?:{_MANY})\b total\w* both\b everyone\b
    jeweils\b pro\b je\b cada\b por\b par\b chaque\b rate\b at\b taux\b tasa\b kurs\b
    """
)
_TIMES = re.compile(r"[×x]\s?\d|\d\s?[×x]")
_SIGNED = re.compile(r"(?<![\w.,])[+−-]\d")
_SHARE = _Cue(
    r"""
    of\b out_of\b share\w* rate\w* proportion\w* percentage\w* up\b down\b more\b less\b higher\b
    lower\b ris\w+ rose\b fell\b fall\w* drop\w* slipp?\w* gain\w* los[est]\w* gr[eo]w\w* increas\w+
    decreas\w+ declin\w+ improv\w+ jump\w* climb\w* discount\w* off\b cheaper\b plus\b saving\w*
    over\b return\w* change\w* makes?\b account\w* anteil\w* quote\b mehr\b weniger\b davon\b
    von\b gestiegen\b gesunken\b anstieg\b rückgang\b rabatt\b höher\b niedriger\b
    del?\b cuota\b tasa\b más\b menos\b sub\w+ baj\w+ aument\w+ descuento\b part\b taux\b hausse\b
    baisse\b moins\b remise\b augment\w+
    """
)
_BETWEEN_TIMES = _Cue(
    r"""
    between\b gap\b layover\w* connect\w+ transfer\w* change\b changing\b wait\w* break\b buffer\b
    cushion\b apart\b later\b after\b before\b spare\b zwischen\b umstieg\w* umsteig\w* wart\w+
    pause\b später\b entre\b transbordo\w* espera\w* después\b antes\b correspondance\w*
    attente\w* après\b
    avant\b
    """
)
_PLUS = re.compile(r"[^\W\d_] ?\+ ?[^\W\d_]")
_AVERAGE = _Cue(
    r"average\w* averaging\b mean\b durchschnitt\w* schnitt\b mittel\b promedio\b media\b moyenne\b"
)
_UNKNOWN = re.compile(r"\d[xyzn](?:[\^_²³]|\s*(?:[+=−-]|$))")

_PER = re.compile(r"\s(?:per|each|apiece|pro|je|cada|par|chacune?)\b", re.IGNORECASE)


class Sum(NamedTuple):
    """How a number came about: the rule, and the numbers that it was made of."""

    rule: str
    operands: tuple[int, ...]


class Equation(NamedTuple):
    """`value` stands on its right; `result` is what its left comes to."""

    value: int
    result: int
    holds: bool
    operands: tuple[int, ...]


def find_equations(text: str, values: Sequence[Value]) -> dict[int, Equation]:
    """By the place of the value that an equation states, in the list of values."""
    found: dict[int, Equation] = {}
    at = 0
    while at < len(values):
        chain, operations = _chain(text, values, at)
        if (
            "=" in operations
            and not _is_algebra(text, values[at], values[chain[-1]])
            and not _mixes_rates(text, [values[one] for one in chain], operations)
        ):
            for equation in _judge(values, chain, operations):
                found[equation.value] = equation
        at = chain[-1] + 1
    return found


def _is_algebra(text: str, first: Value, last: Value) -> bool:
    """`x^2 - 4x + 1 = 0`, where letters stand for numbers."""
    return (
        text[max(0, first.start - 1) : first.start] in ("^", "_")
        or _UNKNOWN.search(text, first.start, last.end) is not None
    )


def _mixes_rates(text: str, values: Sequence[Value], operations: Sequence[str]) -> bool:
    """`£72 for you plus £36 per child = £144`: for how many children, it does not say."""
    gaps = [(one.end, other.start) for one, other in pairwise(values)]
    rates = {_PER.search(text, *gap) is not None for gap in gaps}
    return len(rates) > 1 and "*" not in operations


def _chain(text: str, values: Sequence[Value], first: int) -> tuple[list[int], list[str]]:
    chain, operations = [first], []
    while values[chain[-1]].readings and chain[-1] + 1 < len(values):
        left, right = values[chain[-1]], values[chain[-1] + 1]
        if not right.readings or right.start - left.end > LONGEST_GAP:
            break
        between = _BETWEEN.fullmatch(text, left.end, right.start)
        if between is None or "\n" in between[0]:
            break
        operations.append(_OPERATIONS[between["op"].casefold()])
        chain.append(chain[-1] + 1)
    return chain, operations


def _judge(values: Sequence[Value], chain: list[int], operations: list[str]) -> list[Equation]:
    sides: list[tuple[list[int], list[str]]] = [([], [])]
    for place, at in enumerate(chain):
        sides[-1][0].append(at)
        if place < len(operations):
            if operations[place] == "=":
                sides.append(([], []))
            else:
                sides[-1][1].append(operations[place])
    judged = []
    for (left, left_operations), (right, _) in pairwise(sides):
        if len(left) > 1 and len(right) == 1:
            result = _evaluate([values[at].readings[0] for at in left], left_operations)
            stated = values[right[0]]
            if result is not None:
                holds = any(abs(result - one) <= half_unit(stated) for one in stated.readings)
                operands = tuple(values[at].readings[0] for at in left)
                judged.append(Equation(right[0], result, holds, operands))
    return judged


def _evaluate(numbers: list[int], operations: list[str]) -> int | None:
    """Products first, then sums, from left to right."""
    terms, sign = [numbers[0]], 1
    for operation, number in zip(operations, numbers[1:], strict=True):
        match operation:
            case "*":
                terms[-1] = terms[-1] * number // SCALE
            case "/" if number == 0:
                return None
            case "/":
                terms[-1] = terms[-1] * SCALE // number
            case _:
                sign = 1 if operation == "+" else -1
                terms.append(sign * number)
    return sum(terms)


def half_unit(value: Value) -> int:
    """Half a unit of the last digit that is stated."""
    return SCALE * value.form.factor // (2 * int(10 ** decimals_of(value)))


class Rounding(NamedTuple):
    """What a stated number may have been before it was rounded; `half` a unit of what is kept."""

    low: int
    high: int
    half: int
    is_hedged: bool


@lru_cache(maxsize=16)  # several questions are asked of one number
def _hedged_by(before: str, after: str) -> tuple[bool, bool, bool]:
    """Is it said to be rounded, to be at least so much, to be at most so much?"""
    return (
        _HEDGE.search(before) is not None or _HEDGE_AFTER.match(after) is not None,
        _ABOVE.search(before) is not None,
        _BELOW.search(before) is not None,
    )


def rounding_of(value: Value, before: str, after: str = "") -> Rounding | None:
    """`before` and `after`: the words around it. None: too few digits to be a rounded one."""
    is_hedged, is_above, is_below = _hedged_by(before, after)
    digits = "".join(filter(str.isdecimal, value.text))
    telling = digits.lstrip("0") if decimals_of(value) else digits.strip("0")  # `0.20` has two
    if len(telling) < 2 and not is_hedged:
        return None
    half = half_unit(value)
    if is_hedged and not decimals_of(value):
        half *= 10 ** (len(digits) - len(digits.rstrip("0")))
    reading = value.readings[0]
    # `more than 240` may be 248, `under 250` as well.
    low = reading - half * (0 if is_above else 2 if is_below else 1)
    high = reading + half * (2 if is_above else 0 if is_below else 1)
    return Rounding(low, high, half, is_hedged)


def words_around(text: str, value: Value) -> tuple[str, str]:
    """What stands before and after it, without emphasis."""
    before = text[max(0, value.start - 28) : value.start].replace("*", "")
    return before, text[value.end : value.end + 24].replace("*", "")


def follows(
    value: Value,
    cues: str,
    operands: Sequence[int],
    run: Sequence[int],
    amounts: Sequence[int],
    factors: Sequence[int],
    columns: Sequence[Sequence[int]],
) -> Sum | None:
    """`cues` are the words around it, `operands` the numbers that it may be made of, `run` those
    stated right before it, the last one last, `amounts` those of the record that it is said of,
    `factors` how many there are of something, `columns`
    what the records around have under one key."""
    wanted = abs(value.readings[0])
    known = {abs(number) for number in operands if number}
    found = None
    if _DIFFERENCE.search(cues):
        found = _as_difference(wanted, known, [*run[-NEAR:], *amounts])
        for column in columns if found is None else ():
            found = found or _as_difference(wanted, set(column), ())
    if found is None and (_SUM.search(cues) or _PLUS.search(cues)):
        found = _as_sum(wanted, known, run)
        for column in columns if found is None else ():
            found = found or _as_sum(wanted, set(), column)
    if found is None and (_PRODUCT.search(cues) or _TIMES.search(cues)):
        others = [one for one in factors if str(one) != value.text]  # not 85 as 85 times 1
        found = _as_product(wanted, known, others)
    if found is None and _AVERAGE.search(cues):
        found = _as_average(wanted, run, half_unit(value))
    return found


def _as_difference(wanted: int, known: set[int], run: Sequence[int]) -> Sum | None:
    near = {abs(number) for number in run} or known
    for number in sorted(near):
        for other in (number - wanted, number + wanted):
            if other > 0 and other in known and other != number:
                return Sum("difference", (max(number, other), min(number, other)))
    return None


def _as_sum(wanted: int, known: set[int], run: Sequence[int]) -> Sum | None:
    """Of what was stated right before it, signs counted or not, or of any two."""
    plain = signed = 0
    for count, number in enumerate(reversed(run[-MAX_TERMS:]), start=1):
        plain += abs(number)
        signed += number
        if count > 1 and wanted in (plain, abs(signed)):
            return Sum("sum", tuple(run[-count:]))
    for number in sorted(known):
        if number < wanted and wanted - number in known:
            return Sum("sum", (number, wanted - number))
    return None


def _as_product(wanted: int, known: set[int], factors: Sequence[int]) -> Sum | None:
    for factor in factors:
        if factor > 1 and wanted % factor == 0 and wanted // factor in known:
            return Sum("product", (factor * SCALE, wanted // factor))
    for one, other in combinations(factors, 2):  # so many persons, so many nights
        each, rest = divmod(wanted, max(one * other, 1))
        if one > 1 and other > 1 and not rest and each in known:
            return Sum("product", (one * SCALE, other * SCALE, each))
    return None


def _as_average(wanted: int, run: Sequence[int], half: int) -> Sum | None:
    total = 0
    for count, number in enumerate(reversed(run[-MAX_TERMS:]), start=1):
        total += number
        if count > 1 and abs(total - wanted * count) <= half * count:
            return Sum("average", tuple(run[-count:]))
    return None


_FACTOR = re.compile(rf"\d(?<![\w.,{SIGNS}]\d)\d?(?![\w.,%])")
_NUMBER_WORDS = {
    stem(word): number
    for number, words in (
        (2, "two both zwei dos deux"), (3, "three drei tres trois"), (4, "four vier cuatro quatre"),
        (5, "five"), (6, "six"), (7, "seven"), (8, "eight"), (9, "nine"), (10, "ten"),
        (11, "eleven"), (12, "twelve"),
    )
    for word in words.split()
}  # fmt: skip


def counts_in(cues: str, stems: set[str]) -> set[int]:
    """Small numbers that say how many there are of something; `stems` are those of the cues."""
    named = {int(found) for found in _FACTOR.findall(cues)}
    return named | {_NUMBER_WORDS[one] for one in stems & _NUMBER_WORDS.keys()}


def announces(cues: str) -> bool:
    """Any of what `follows` asks for."""
    asked = (_DIFFERENCE, _SUM, _PLUS, _PRODUCT, _TIMES, _AVERAGE)
    return any(cue.search(cues) for cue in asked)


def sets_against(words: str) -> bool:
    """Do the words right beside a number compare, or say what is left?"""
    return _COMPARED.search(words) is not None


def find_comparisons(words: str) -> Iterator[str]:
    """The words that compare, or say what is left."""
    if _COMPARED.search(words):
        yield from (found[0] for found in _COMPARED.pattern.finditer(words))


def announces_as(how: str, cues: str) -> bool:
    """Is there a word for what the number came about by?"""
    if how in ("difference", "rest"):
        return _COMPARED.search(cues) is not None
    if how in ("sum", "pair"):
        return _SUM.search(cues) is not None or _PLUS.search(cues) is not None
    if how in ("product", "ratio"):
        return _PRODUCT.search(cues) is not None or _TIMES.search(cues) is not None
    if how == "share":
        return _SHARE.search(cues) is not None or _SIGNED.search(cues) is not None
    if how == "gap":
        return _BETWEEN_TIMES.search(cues) is not None
    return how == "mean" and (
        _AVERAGE.search(cues) is not None or _PRODUCT.search(cues) is not None
    )


def announces_an_average(cues: str) -> bool:
    return _AVERAGE.search(cues) is not None


def announces_a_sum(cues: str) -> bool:
    return _SUM.search(cues) is not None


def of_two(value: Value, stated: Sequence[int]) -> Sum | None:
    """The sum or difference of two stated amounts, to the cent: no word need announce it."""
    _, point, decimals = value.text.rpartition(".")
    if not point or len(decimals) < CENTS:
        return None
    wanted = abs(value.readings[0])
    known = {abs(number) for number in stated if number % SCALE}
    for number in sorted(known):
        if wanted - number in known and wanted != 2 * number:
            return Sum("sum", (number, wanted - number))
        if number + wanted in known:
            return Sum("difference", (number + wanted, number))
    return None


MOST_OPERANDS = 60
_UNLIKE = 50  # times as large
_PERCENT = 100 * SCALE
Step = tuple[int, str, tuple[int, ...]]  # a number, how it came about, of what
Steps = Callable[[Sequence[int]], Iterator[Step]]


class Wanted(Frozen, frozen=True):
    """A number from `low` to `high`. `step`: a unit of its last digit that is no zero, since what
    is stated is one of so many such numbers."""

    low: int
    high: int
    step: int

    def chance(self, near: int) -> float:
        """How many of `near` numbers from half to twice as large are expected to hit it."""
        middle = max((self.low + self.high) // 2, 1)
        # In whole numbers: no float is as large as some that answers state.
        return 2 * near * max(self.high - self.low, self.step) / (3 * middle)

    def vicinity(self) -> tuple[int, int]:
        """From half to twice its middle."""
        return -(-(self.low + self.high) // 4), self.low + self.high


def work_out(wanted: Wanted, operands: Sequence[int], steps: Steps, at_most: float) -> Sum | None:
    """What gives the number in one of these steps; `at_most` as many others are expected to."""
    found: Sum | None = None
    near = 0
    low, high = wanted.low, wanted.high
    half, twice = wanted.vicinity()
    for number, how, used in steps(_distinct(operands)):  # thousands, of many operands
        if half <= number <= twice:
            near += 1
            if found is None and low <= number <= high and number not in used:
                found = Sum(how, used)
    return found if found and wanted.chance(near) <= at_most else None


def share_of(wanted: Wanted, part: int, wholes: Sequence[int], at_most: float) -> Sum | None:
    """A part as a share of one of a few wholes."""

    def steps(numbers: Sequence[int]) -> Iterator[Step]:
        for whole in numbers if part else ():
            if whole != part:
                yield from shares((part, whole))

    return work_out(wanted, wholes, steps, at_most)


def _distinct(operands: Iterable[int]) -> list[int]:
    """Without those that change nothing."""
    return [one for one in dict.fromkeys(map(abs, operands)) if one not in (0, SCALE)][
        :MOST_OPERANDS
    ]


def sums(numbers: Sequence[int]) -> Iterator[Step]:
    """Not of what is a hundred times as large: 485,003 is no sum of 485,000 and 3."""
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        if large <= _UNLIKE * small:
            yield one + other, "sum", (one, other)
            yield large - small, "difference", (large, small)


def added(numbers: Sequence[int]) -> Iterator[Step]:
    return (one for one in sums(numbers) if one[1] == "sum")


def is_round(number: int) -> bool:
    """`30`, `100`: any number is so much away from one that has another digit."""
    return number % SCALE == 0 and len(str(number // SCALE).rstrip("0")) < 2


def products(numbers: Sequence[int]) -> Iterator[Step]:
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        yield one * other // SCALE, "product", (one, other)
        yield large * SCALE // small, "ratio", (large, small)
        yield small * SCALE // large, "ratio", (small, large)


def shares(numbers: Sequence[int]) -> Iterator[Step]:
    for one, other in combinations(numbers, 2):
        large, small = (one, other) if one > other else (other, one)
        yield _PERCENT * small // large, "share", (small, large)
        yield _PERCENT - _PERCENT * small // large, "share", (large, small)
        yield _PERCENT * large // small - _PERCENT, "share", (large, small)
        yield _PERCENT * large // small, "share", (large, small)


# --- numbers that follow from the evidence of a few short results

MAX_FACTOR = 20
_Derivation = tuple[tuple[Leaf, ...], str]


def explain_from_few(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    """a + b or a − b of two numbers under one key, a × b with one integer ≤ 20, or the sum,
    count or length of one list; only out of results with few distinct numbers."""
    return (
        _of_a_list(evidence, wanted, turn)
        or _sum_or_difference(evidence, wanted, turn)
        or _product(evidence, wanted, turn)
    )


def _of_a_list(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    for facts in evidence.lists:
        if facts.leaf.counts_for(turn) and evidence.is_small((facts.leaf.call,)):
            if facts.length == wanted:
                return (facts.leaf,), "length of a list"
            if wanted in facts.sums:
                return (facts.leaf,), "sum of a list"
    return None


def _sum_or_difference(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    by_key: dict[str, dict[int, list[Leaf]]] = defaultdict(lambda: defaultdict(list))
    for key, number, leaf in evidence.countable(turn):
        by_key[key][number].append(leaf)
    for numbers in by_key.values():
        for a, leaves in numbers.items():
            for b, how in ((wanted - a, "a sum"), (a - wanted, "a difference")):
                pair = _two_leaves(evidence, leaves, numbers.get(b, []))
                if pair is not None:
                    return pair, how
    return None


def _product(evidence: Evidence, wanted: int, turn: int | None) -> _Derivation | None:
    numbers: dict[int, list[Leaf]] = defaultdict(list)
    for _, number, leaf in evidence.countable(turn):
        numbers[number].append(leaf)
    for factor in range(2, MAX_FACTOR + 1):
        if factor * SCALE in numbers and wanted % factor == 0 and wanted // factor in numbers:
            pair = _two_leaves(evidence, numbers[factor * SCALE], numbers[wanted // factor])
            if pair is not None:
                return pair, "a product"
    return None


def _two_leaves(
    evidence: Evidence, some: list[Leaf], others: list[Leaf]
) -> tuple[Leaf, Leaf] | None:
    for a in some:
        for b in others:
            if a is not b and evidence.is_small((a.call, b.call)):
                return a, b
    return None


SMALL = 13  # a whole number below it stands in every result
MANY = 100  # so many of one thing are seldom as many of another
_NOUN = re.compile(r"[\s\u00a0-]([^\W\d_]{3,})")


class Worked(NamedTuple):
    """How a number came about, and what shows it."""

    rule: str
    because: str
    fields: tuple[Field, ...] = ()


def digits_of(value: Value) -> int:
    """How many digits tell it from others: not the zeros before or after them, and no `.00`."""
    digits = "".join(filter(str.isdecimal, value.text)).lstrip("0")
    decimals = int(decimals_of(value))
    if decimals and digits[-decimals:].strip("0"):
        return len(digits)
    return len(digits.rstrip("0"))


def may_go_with(one: Value, other: Value) -> bool:
    """Nobody adds degrees to millimetres."""
    if not one.unit or not other.unit or one.unit == other.unit:
        return True
    kinds = {dimension_of(one.unit), dimension_of(other.unit)}
    return len(kinds) == 1 or "money" in kinds or "time" in kinds


def may_be_added(one: Value, other: Value) -> bool:
    """Both are of one dimension, or one of them does not say of which."""
    if not one.readings or not one.unit or not other.unit:
        return bool(one.readings)
    return dimension_of(one.unit) == dimension_of(other.unit)


def says_the_same(text: str, one: Value, other: Value) -> bool:
    """Two equal numbers: `48 square feet` are no `48 hours`, and no `48%`."""
    if one.form.percent != other.form.percent or not may_go_with(one, other):
        return False
    nouns = [_NOUN.match(text, value.end) for value in (one, other) if not value.unit]
    words = {stem(found[1].casefold()) for found in nouns if found is not None}
    return len(words) < 2 or abs(other.readings[0]) >= MANY * SCALE or decimals_of(other) > 0


def readings_of(values: Iterable[Value]) -> list[int]:
    return [
        abs(one.readings[0])
        for one in values
        if one.readings and one.kind == "number" and not one.form.percent
    ]


def worked_of(found: Sum) -> Worked:
    because = " and ".join(map(decimal_text, found.operands))
    return Worked(found.rule, f"a {found.rule} of {because}")
