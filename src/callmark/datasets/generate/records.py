"""What a generated sample is made of, before it becomes lines of files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

import msgspec

from callmark.datasets.generate.languages import LocaleForm
from callmark.datasets.generate.world import World
from callmark.records.jsontext import Json
from callmark.records.samples import DEFAULT_SPAN_CAP, MARKER, Kind

SPAN_CAP = DEFAULT_SPAN_CAP
Complexity = Literal["simple", "moderate", "complex"]


class Number(msgspec.Struct, frozen=True, gc=False):
    """A decimal: `units` of its last digit."""

    units: int
    decimals: int

    @property
    def json(self) -> int | float:
        return self.units / 10**self.decimals if self.decimals else self.units

    @property
    def plain(self) -> str:
        return plain_number(self.units, self.decimals)


class Misformed(msgspec.Struct, frozen=True, gc=False):
    """A number in the form of another locale."""

    number: Number


class Day(msgspec.Struct, frozen=True, gc=False):
    year: int
    month: int
    day: int

    @property
    def iso(self) -> str:
        return f"{self.year}-{self.month:02}-{self.day:02}"


class Label(msgspec.Struct, frozen=True, gc=False):
    """An identifier such as `KX-48213`."""

    text: str


Stated = Number | Misformed | Day | Label


class Span(msgspec.Struct, frozen=True, gc=False):
    """One integration: a pattern with `{n}`, `{d}`, `{i}` for what it states. Nothing else in
    the pattern is a checkable value, so that their number is known."""

    pattern: str
    values: tuple[Stated, ...]
    form: LocaleForm

    @property
    def text(self) -> str:
        return self.pattern.format_map(dict(write_value(value, self.form) for value in self.values))


def write_value(value: Stated, form: LocaleForm) -> tuple[str, str]:
    """The slot of a pattern that a value fills, and with which text."""
    match value:
        case Number(units=units, decimals=decimals):
            return "n", form.number(units, decimals)
        case Misformed(number=Number(units=units, decimals=decimals)):
            return "n", form.foreign_number(units, decimals)
        case Day(year=year, month=month, day=day):
            return "d", form.date(year, month, day)
        case Label(text=text):
            return "i", text
        case _:
            assert_never(value)


def fact_of(value: Number | Day | Label) -> Json:
    """A value as `required_facts` holds it."""
    match value:
        case Number():
            return value.json
        case Day():
            return value.iso
        case Label():
            return value.text
        case _:
            assert_never(value)


class MadeCall(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """An expected call with the fixture that answers it. `match` is the fixture's. `other` are
    arguments that are wrong and yet served. `spare`: nothing in the answer rests on this call.
    `step`: calls of one step are made in one turn."""

    name: str
    arguments: dict[str, Json]
    result: Json
    step: int = 0
    match: Json = None
    seq: int | None = None
    optional: tuple[str, ...] = ()
    other: dict[str, Json] | None = None
    spare: bool = False


class Attempt(msgspec.Struct, frozen=True, gc=False):
    """A call as the answer makes it. `malformed` not None: what the model wrote instead of it."""

    name: str
    arguments: dict[str, Json] | None
    malformed: str | None = None


class Turn(msgspec.Struct, frozen=True, gc=False):
    """An assistant turn that ends in calls."""

    text: str
    attempts: tuple[Attempt, ...]


class Answer(msgspec.Struct, frozen=True, gc=False):
    """Turns with calls, then the last turn: text, one line for each span, text."""

    turns: tuple[Turn, ...]
    before: str = ""
    spans: tuple[Span, ...] = ()
    after: str = ""

    @property
    def final(self) -> str:
        spans = (f"{MARKER} {span.text}{span.form.stop}" for span in self.spans)
        lines = [self.before, *spans, self.after]
        return "\n".join(filter(None, lines))

    @property
    def texts(self) -> tuple[str, ...]:
        return (*(turn.text for turn in self.turns), self.final)


class Draft(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One sample: what is asked, which calls are right, and the perfect answer. `claim` is what
    a negative control is tempted to say. `spare_span` could be said beyond the cap."""

    prompt: str | list[dict[str, Json]]
    answer: Answer
    calls: tuple[MadeCall, ...] = ()
    facts: tuple[Number | Day | Label, ...] = ()
    metadata: dict[str, Json] = {}
    tempting: tuple[MadeCall, ...] = ()
    claim: Span | None = None
    spare_span: Span | None = None


class Recipe(msgspec.Struct, frozen=True):
    """How samples of one shape are made. Every draft of one recipe has the same shape: as many
    calls, spans and values of the same kinds. `share` is its weight within its cell."""

    name: str
    scenario: str
    complexity: Complexity
    structure: str  # of the arguments
    make: Callable[[World], Draft]
    kind: Kind = "eligible"
    share: int = 1


class MadeSample(msgspec.Struct, frozen=True, gc=False):
    """A draft with its place in the dataset."""

    index: int
    sample_id: str
    recipe: Recipe
    draft: Draft


def plain_number(units: int, decimals: int) -> str:
    """As programs write it: no groups, a full stop."""
    if not decimals:
        return str(units)
    whole, fraction = divmod(units, 10**decimals)
    return f"{whole}.{fraction:0{decimals}}"


def made_turns(calls: tuple[MadeCall, ...], texts: tuple[str, ...] = ()) -> tuple[Turn, ...]:
    """The turns that make the expected calls, step by step, with what is said beside them."""
    steps: dict[int, list[Attempt]] = {}
    for call in calls:
        steps.setdefault(call.step, []).append(Attempt(call.name, call.arguments))
    return tuple(
        Turn(texts[at] if at < len(texts) else "", tuple(attempts))
        for at, attempts in enumerate(steps.values())
    )
