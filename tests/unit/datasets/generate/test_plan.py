"""How many of what, in which order, and that nothing is drawn twice."""

import datetime
from collections import Counter
from itertools import pairwise

import pytest
from babel.dates import format_date
from babel.numbers import format_decimal
from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.datasets.generate.plan import CELLS, RECIPES, apportion, counts_of, order_of
from callmark.datasets.generate.records import NAME_ENDINGS, NAME_STEMS, World, offsets_of
from callmark.datasets.generate.topics import PROBES, english, form_of
from callmark.errors import UsageError


@given(st.integers(1, 5000))
@settings(max_examples=150, deadline=None)
def test_strata(total):
    counts = {(cell.scenario, cell.complexity): n for cell, n in counts_of(total).items()}
    assert sum(counts.values()) == total
    if total >= 3:
        assert min(counts.values()) >= 3
    if total >= 6:
        assert counts["control", "simple"] * 10 >= total
    if total >= 40:
        assert counts["long", "complex"] * 20 >= total
    if total == 60 or total >= 62:
        assert len(counts) == len(CELLS)


@given(st.integers(1, 3000))
@settings(max_examples=30, deadline=None)
def test_the_order_has_exactly_the_counts_and_spreads_them(total):
    order = order_of(total)
    cells = Counter((RECIPES[code].scenario, RECIPES[code].complexity) for code in order)
    assert cells == {(cell.scenario, cell.complexity): n for cell, n in counts_of(total).items()}
    for code, count in Counter(order).items():
        places = [at for at, other in enumerate(order) if other == code]
        widest = max((b - a for a, b in pairwise(places)), default=0)
        assert widest <= 2 * total / count + len(RECIPES)


@given(st.integers(0, 10**6), st.lists(st.integers(1, 1000), min_size=1, max_size=30))
def test_whole_shares_add_up_and_are_off_by_less_than_one(total, weights):
    counts = apportion(total, weights)
    assert sum(counts) == total
    for count, weight in zip(counts, weights, strict=True):
        assert abs(count - total * weight / sum(weights)) < 1


def test_every_recipe_has_a_cell_and_every_cell_a_recipe():
    cells = {(cell.scenario, cell.complexity) for cell in CELLS}
    assert cells == {(recipe.scenario, recipe.complexity) for recipe in RECIPES}
    assert len({recipe.name for recipe in RECIPES}) == len(RECIPES) < 256


@pytest.mark.parametrize("total", [0, -3])
def test_no_samples_are_no_dataset(total):
    with pytest.raises(UsageError, match="--total must be at least 1"):
        order_of(total)


@given(st.integers(0, 2**60), st.integers(0, 90_000))
@settings(max_examples=30, deadline=None)
def test_what_one_sample_has_no_other_has(seed, first):
    """So no answer can be right by chance for another sample."""
    worlds = [World(offsets_of(seed), first + step) for step in range(400)]
    units = [world.units(slot) for world in worlds for slot in range(8)]
    places = [world.place(slot) for world in worlds for slot in range(4)]
    days = [world.day(slot) for world in worlds for slot in range(2)]
    for drawn in (units, places, days):
        assert len(set(drawn)) == len(drawn)
    assert all(100_000 <= number <= 999_999 and number % 10 for number in units)
    assert all(datetime.date(*day) for day in days)
    for world in worlds:
        assert len({world.place(slot).name for slot in range(4)}) == 4


def test_no_name_of_a_place_holds_another():
    names = [f"{stem}{ending}".casefold() for stem in NAME_STEMS for ending in NAME_ENDINGS]
    text = " ".join(names)
    assert all(text.count(name) == 1 for name in names)


@pytest.mark.parametrize("locale", [*PROBES, "en-GB"])
def test_numbers_and_dates_are_written_as_cldr_has_them(locale):
    form = form_of(locale)
    digits = str.maketrans("٠١٢٣٤٥٦٧٨٩", "0123456789")
    name = locale.replace("-", "_")
    for units, decimals in ((412563, 0), (412561, 1), (412569, 2), (998123, 3), (100001, 0)):
        number = units / 10**decimals if decimals else units
        expected = format_decimal(number, locale=name, numbering_system="default")
        assert form.number(units, decimals).translate(digits) == expected
        assert form.foreign_number(units, decimals) != form.number(units, decimals)
    for month in range(1, 13):
        expected = format_date(datetime.date(1987, month, 5), "long", locale=name)
        assert form.date(1987, month, 5).translate(digits) == expected


def test_tools_write_english_dates_with_the_day_first():
    assert english().date(1987, 5, 14) == "14 May 1987"
    assert english().number(1234567, 2) == "12,345.67"
