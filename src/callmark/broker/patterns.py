"""Fixtures that answer more than one argument set: `match`, one rule per argument."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import partial
from typing import assert_never

import msgspec

from callmark.core.jsontext import Json, canonical_json
from callmark.core.keys import KeySet

MAX_TEXT = 100_000  # characters of a value; a longer one fits no expression
MAX_MEMORY = 2 << 20  # bytes for one expression; a larger one is refused

# What normalisation makes of one value of one argument; None: it drops the argument.
NormaliseArgument = Callable[[str, Json], Json]


class MatchError(ValueError):
    """A rule that cannot be used. `field` is its place below the entry."""

    def __init__(self, field: str, what: str) -> None:
        self.field = field
        super().__init__(what)


class Ignore(msgspec.Struct, frozen=True):
    """Any value, and none at all."""


class OneOf(msgspec.Struct, frozen=True):
    """One of these values (canonical JSON). `null` among them: the argument may be absent."""

    values: tuple[str, ...]


class Regex(msgspec.Struct, frozen=True):
    """The whole normalised string, from its first character to its last. The engine's time grows
    with the text and with the expression, and with nothing else; both are bounded."""

    pattern: str
    fullmatch: Callable[[bytes], object]


class Contains(msgspec.Struct, frozen=True):
    text: str


class Near(msgspec.Struct, frozen=True):
    """A number no further than `tolerance` from the one in the entry's key."""

    target: Decimal
    tolerance: Decimal


Rule = Ignore | OneOf | Regex | Contains | Near


class Pattern(msgspec.Struct, frozen=True):
    """`rules` per argument, sorted; `fixed` is the rest of the key, which must be equal.
    `identity` is equal for two entries that fit the same calls by the same words."""

    rules: tuple[tuple[str, Rule], ...]
    fixed: str
    identity: str

    @property
    def arguments(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.rules)

    def fits(self, key: Mapping[str, Json]) -> bool:
        """Whether the ruled arguments of a normalised key fit; `fixed` is compared elsewhere."""
        return all(rule_fits(rule, key.get(name)) for name, rule in self.rules)


def rule_fits(rule: Rule, value: Json) -> bool:
    """`value` None: the argument is absent (normalised keys hold no null)."""
    match rule:
        case Ignore():
            return True
        case OneOf(values=values):
            return canonical_json(value) in values
        case Regex(fullmatch=fullmatch):
            if not isinstance(value, str) or len(value) > MAX_TEXT:
                return False
            return fullmatch(value.encode("utf-8", "surrogatepass")) is not None
        case Contains(text=text):
            return isinstance(value, str) and text in value
        case Near(target=target, tolerance=tolerance):
            return _is_number(value) and abs(_decimal(value) - target) <= tolerance
        case _:
            assert_never(rule)


class _Argument(msgspec.Struct, frozen=True):
    """One ruled argument: its value in the entry's key, and what normalisation does to others."""

    in_key: Json
    normalise: Callable[[Json], Json]


def pattern_of(
    match: Mapping[str, Json],
    given: Mapping[str, Json],
    key: Mapping[str, Json],
    normalise: NormaliseArgument,
) -> Pattern:
    """The pattern that an entry's `match` object describes, or MatchError. `given` is the entry's
    key as written, `key` the same normalised."""
    if not match:
        raise MatchError("match", "is empty: name an argument in it, or leave it out")
    rules = tuple((name, _rule_of(name, match[name], key, normalise)) for name in sorted(match))
    for name, rule in rules:
        if given.get(name) is not None and not rule_fits(rule, key.get(name)):
            shown = canonical_json(given[name])
            raise MatchError(f"match.{name}", f"does not fit the entry's own key, {shown}")
    fixed = canonical_json({name: value for name, value in key.items() if name not in match})
    targets = [str(rule.target) for _, rule in rules if isinstance(rule, Near)]
    return Pattern(rules, fixed, canonical_json([fixed, match, targets]))


def _rule_of(name: str, spec: Json, key: Mapping[str, Json], normalise: NormaliseArgument) -> Rule:
    field = f"match.{name}"
    for kind in spec if isinstance(spec, dict) else ():
        if kind not in RULES:
            raise MatchError(f"{field}.{kind}", _RULE_KEYS.refusal(kind))
    if not isinstance(spec, dict) or len(spec) != 1:
        raise MatchError(field, f"must be an object with exactly one of {', '.join(RULES)}")
    ((kind, given),) = spec.items()
    if kind != "ignore" and normalise(name, "x") is None:
        raise MatchError(
            field, "the registry's x-callmark.ignore drops this argument: it never fits"
        )
    try:
        return RULES[kind](given, _Argument(key.get(name), partial(normalise, name)))
    except ValueError as error:
        raise MatchError(f"{field}.{kind}", str(error)) from None


def _ignore(given: Json, argument: _Argument) -> Rule:
    if given is not True:
        raise ValueError("must be true")
    return Ignore()


def _one_of(given: Json, argument: _Argument) -> Rule:
    if not isinstance(given, list) or not given:
        raise ValueError("must be a list with at least one value")
    values = (None if value is None else argument.normalise(value) for value in given)
    return OneOf(tuple(dict.fromkeys(canonical_json(value) for value in values)))


def _regex(given: Json, argument: _Argument) -> Rule:
    if not isinstance(given, str) or not given:
        raise ValueError("must be a regular expression, as a string")
    # The tested value was casefolded if this argument is: capitals in the expression must not
    # shut it out.
    fold = argument.normalise("A") == "a"
    pattern = unicodedata.normalize("NFC", given)
    return Regex(pattern, _compile_linear(pattern, fold=fold))


def _compile_linear(pattern: str, *, fold: bool) -> Callable[[bytes], object]:
    """`fullmatch` of an expression, or ValueError. Python's own engine tries one way to fit after
    the other, so an expression can keep it busy for years; RE2 follows all ways at once."""
    import re2

    if found := re.search(r"(?<!\\)\{,\d+\}", pattern):
        # RE2 takes it literally, Python as a number of repeats: nobody means the former.
        raise ValueError(f"write {{0{found[0][1:]} instead of {found[0]}")
    options = re2.Options()
    options.case_sensitive = not fold
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = True
    try:
        compiled = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else "a lone surrogate"
        what = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"cannot be used: {what}; it must be an expression in the syntax of RE2,"
            " which has no look-around and no back-references"
        ) from None
    fullmatch: Callable[[bytes], object] = compiled.fullmatch
    return fullmatch


def _contains(given: Json, argument: _Argument) -> Rule:
    text = argument.normalise(given) if isinstance(given, str) else None
    if not isinstance(text, str) or not text:
        raise ValueError("must be a text of at least one character that is no white space")
    return Contains(text)


def _number_tolerance(given: Json, argument: _Argument) -> Rule:
    if not _is_number(given) or given < 0:
        raise ValueError("must be a number, 0 or more")
    if not _is_number(argument.in_key):
        raise ValueError("needs a number to be near to: put one into the entry's key")
    return Near(_decimal(argument.in_key), _decimal(given))


RULES: dict[str, Callable[[Json, _Argument], Rule]] = {
    "ignore": _ignore,
    "one_of": _one_of,
    "regex": _regex,
    "contains": _contains,
    "number_tolerance": _number_tolerance,
}
_RULE_KEYS = KeySet(
    known=tuple(RULES),
    synonyms={
        **dict.fromkeys(("anyof", "in", "enum", "values", "oneofthese"), "one_of"),
        **dict.fromkeys(("re", "regexp", "pattern", "matches"), "regex"),
        **dict.fromkeys(("substring", "includes", "has"), "contains"),
        **dict.fromkeys(("tolerance", "abs", "near", "delta", "within"), "number_tolerance"),
        **dict.fromkeys(("any", "skip", "anything"), "ignore"),
    },
)


def _is_number(value: Json) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _decimal(number: float) -> Decimal:
    # By the digits that stand in the file: 1.1 is as near to 1 as 0.1 says.
    return Decimal(repr(number))
