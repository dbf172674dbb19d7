"""The chances of one sample: what is drawn, and what no other sample has.

Only `random()` and `randrange()` of Python's generator are used, and strings seed it: both are the
same on every platform and in every later version. Names, numbers and dates are not drawn but
counted: a walk through all of them that comes back to none before all were used, so that no answer
can be right by chance for another sample. Names of places that do not exist are composed of a stem
and an ending; none holds another one, since a fixture that asks for `contains` must fit one place
only."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TypeVar

import msgspec

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
