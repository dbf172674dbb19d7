"""Calls that a fixture should answer, made up from its key and its rules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from callmark.broker.fixtures import Fixture
from callmark.broker.patterns import Contains, Ignore, Near, OneOf, Pattern, Regex, Rule, rule_fits
from callmark.core.jsontext import Json, parse_json

ANYTHING = "anything"


def examples_of(fixture: Fixture) -> Iterator[dict[str, Json]]:
    """The likeliest first. None at all where a rule does not tell what would fit it."""
    key: dict[str, Json] = parse_json(fixture.key_json)
    match fixture.match:
        case "exact":
            yield key
        case "any":
            yield key
            yield {**key, ANYTHING: ANYTHING}
        case Pattern(rules=rules):
            yield from _fitting(key, rules)
        case _:
            assert_never(fixture.match)


def _fitting(
    key: dict[str, Json], rules: tuple[tuple[str, Rule], ...]
) -> Iterator[dict[str, Json]]:
    base = dict(key)
    for name, rule in rules:
        if not rule_fits(rule, base.get(name)):
            value = next(_values_for(rule), None)
            if value is None:
                return
            base[name] = value
    yield base
    # An exact fixture may rightly take the first one: then another shows that this one is alive.
    for name, rule in rules:
        for value in _values_for(rule):
            yield {**base, name: value}


def _values_for(rule: Rule) -> Iterator[Json]:
    match rule:
        case Ignore():
            values: list[Json] = [ANYTHING]
        case OneOf(values=texts):
            values = [parse_json(text) for text in texts]
        case Contains(text=text):
            values = [text, f"{text} {ANYTHING}"]
        case Regex(pattern=pattern):
            values = [pattern.removeprefix("^").removesuffix("$")]  # many fit themselves
        case Near(target=target, tolerance=tolerance):
            values = [float(target + tolerance / 2)]
        case _:
            assert_never(rule)
    return (value for value in values if value is not None and rule_fits(rule, value))
