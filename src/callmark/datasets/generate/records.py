"""What a generated sample is made of, before it becomes lines of files: the world it draws from,
values, calls, answers, recipes.

Only `random()` and `randrange()` of Python's generator are used, and strings seed it: both are the
same on every platform and in every later version. Names, numbers and dates are not drawn but
counted: a walk through all of them that comes back to none before all were used, so that no answer
can be right by chance for another sample. Names of places that do not exist are composed of a stem
and an ending; none holds another one, since a fixture that asks for `contains` must fit one place
only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Literal, TypeVar, assert_never

import msgspec

from callmark.datasets.generate.topics import LocaleForm
from callmark.records.jsontext import Json
from callmark.records.samples import DEFAULT_SPAN_CAP, MARKER, Kind

NAME_STEMS = (
    "Ald Ash Bark Bel Bern Birk Brad Bren Brom Carl Chel Colm Cors Dag Dal Dorn Drav Dun Egg Elm "
    "Esk Fal Fen Fern Gar Glen Gorm Hal Ham Hark Hol Horn Ing Jarl Keld Kop Kirn Lang Lind Lorn "
    "Mal Marl Mel Mork Nor Oak Ott Pell Quor Rud Rosk Sel Skel Stav Tarn Thor Ull Vel Wex Yar"
).split()
NAME_ENDINGS = (
    "aby acombe adale afell agate ahaven akirk amere anby asted avik aworth beck borough brook "
    "burn by cester cliff cote den dorp ersett ersund estad fjord gard gill ham heim hythe keld "
    "land leigh low marsh minster moor ness pool rigg scar skerry thorpe toft vale "
    "water wick wold wyke"
).split()
QUALIFIERS = ("", "Upper ", "Lower ", "New ", "Old ")

REGION_STEMS = (
    "Aster Balt Calder Cumber Dover Ember Fair Gann Harrow Isel Jasper Kestrel Lanner Lomond "
    "Mersel Nether Nordal Oster Pender Quill Raven Rother Sable Silver Soder Stern Tamar Teviot "
    "Thistle Tolmer Umber Vester Wender Wester Winter Wyver Yarrow Zeller Amber Brecon Cobalt "
    "Drummer Estuar Fallow Granit Heather Juniper Kelpie Linnet Merlin"
).split()
REGION_ENDINGS = ("ia", "land", "mark", "shire", "wald", "feld", "gau", "more", "dale", "holm",
                  "ness", "strand")  # fmt: skip


PLACES_EACH = 4  # places that one sample may use
NUMBERS_EACH = 8
DATES_EACH = 2

_NAMES = len(NAME_STEMS) * len(NAME_ENDINGS)
_REGIONS = len(REGION_STEMS) * len(REGION_ENDINGS)
_PLACES = _NAMES * _REGIONS
_FIRST_YEAR, _YEARS, _DAYS = 1912, 110, 28
_DATES = _YEARS * 12 * _DAYS
_NUMBERS = 90_000 * 9  # six digits, of which the last is not 0
# Steps without a common divisor with the above; from sample to sample near the golden ratio of
# the whole, so that neighbours have nothing in common.
_PLACE_STEP, _NUMBER_STEP, _DATE_STEP = 728_117, 163_829, 29_903

Row = TypeVar("Row")


class SamplePlace(msgspec.Struct, frozen=True, gc=False):
    name: str
    region: str


class Offsets(msgspec.Struct, frozen=True, gc=False):
    """Where the walks of one dataset begin."""

    seed: int
    places: int
    numbers: int
    dates: int


def offsets_of(seed: int) -> Offsets:
    draw = Random(f"{seed}:offsets")  # noqa: S311 - reproducible on purpose
    return Offsets(seed, draw.randrange(_PLACES), draw.randrange(_NUMBERS), draw.randrange(_DATES))


class World:
    """What one sample draws from."""

    __slots__ = ("_offsets", "index", "rng")

    def __init__(self, offsets: Offsets, index: int) -> None:
        self._offsets = offsets
        self.index = index
        self.rng = Random(f"{offsets.seed}:{index}")  # noqa: S311 - reproducible on purpose

    def pick(self, table: Sequence[Row]) -> Row:
        return table[self.rng.randrange(len(table))]

    def place(self, slot: int = 0) -> SamplePlace:
        count = self.index * PLACES_EACH + slot
        at = (count * _PLACE_STEP + self._offsets.places) % _PLACES
        name, region = at % _NAMES, at // _NAMES
        qualifier = QUALIFIERS[count // _PLACES % len(QUALIFIERS)]
        stem, ending = divmod(name, len(NAME_ENDINGS))
        region_stem, region_ending = divmod(region, len(REGION_ENDINGS))
        return SamplePlace(
            f"{qualifier}{NAME_STEMS[stem]}{NAME_ENDINGS[ending]}",
            REGION_STEMS[region_stem] + REGION_ENDINGS[region_ending],
        )

    def units(self, slot: int = 0) -> int:
        """Six digits that no other sample and no other slot has."""
        count = self.index * NUMBERS_EACH + slot
        at = (count * _NUMBER_STEP + self._offsets.numbers) % _NUMBERS
        head, last = divmod(at, 9)
        return (10_000 + head) * 10 + 1 + last

    def day(self, slot: int = 0) -> tuple[int, int, int]:
        """Year, month, day."""
        count = self.index * DATES_EACH + slot
        at = (count * _DATE_STEP + self._offsets.dates) % _DATES
        year, rest = divmod(at, 12 * _DAYS)
        month, day = divmod(rest, _DAYS)
        return _FIRST_YEAR + year, month + 1, day + 1


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
