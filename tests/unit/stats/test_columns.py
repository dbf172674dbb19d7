"""Rows that are kept once read back as if each had been kept by itself."""

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.stats import columns
from callmark.stats.columns import Growing, Rows

ROWS = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0])), max_size=60)
TYPES = {"count": "I", "share": "d"}


def rows_of(given_rows):
    rows = Rows(TYPES)
    for row in given_rows:
        rows.add(row)
    return rows


@given(ROWS, st.integers(1, 4))
def test_every_number_is_there_in_its_order(given_rows, remembered):
    """However few rows are remembered, and so however often one is kept again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "REMEMBERED", remembered)
        rows = rows_of(given_rows)
    assert len(rows) == len(given_rows)
    for at, name in enumerate(TYPES):
        column = rows.column(name)
        expected = [row[at] for row in given_rows]
        assert list(column) == expected
        assert [column[place] for place in range(len(column))] == expected
        assert list(column[:]) == list(column[0 : len(column)]) == expected


@given(ROWS, st.data())
def test_columns_at_some_places_read_as_if_there_were_no_others(given_rows, data):
    places = data.draw(st.lists(st.sampled_from(range(len(given_rows))))) if given_rows else []
    count, share = rows_of(given_rows).columns(("count", "share"), places)
    assert list(count) == [given_rows[at][0] for at in places]
    assert list(share[1:3]) == [given_rows[at][1] for at in places][1:3]
    assert len(share) == len(places)


def test_the_difference_of_two_columns():
    rows = Rows({"lax": "d", "strict": "d"})
    for row in ((1.0, 0.5), (0.5, 0.5), (1.0, 0.5)):
        rows.add(row)
    assert list(rows.column("lax").minus(rows.column("strict"))) == [0.5, 0.0, 0.5]


@given(ROWS, st.randoms())
def test_rows_can_be_put_into_another_order(given_rows, rng):
    rows = rows_of(given_rows)
    order = list(range(len(given_rows)))
    rng.shuffle(order)
    rows.reorder(array("I", order))
    assert list(rows.column("count")) == [given_rows[at][0] for at in order]


@given(ROWS)
def test_a_condition_on_the_numbers_finds_their_places(given_rows):
    column = rows_of(given_rows).column("share")
    places = range(0, len(given_rows), 2)
    found = column.where(lambda number: number > 0, places)
    assert list(found) == [at for at in places if given_rows[at][1] > 0]


def test_equal_rows_are_kept_once():
    rows = rows_of([(1, 0.5), (2, 0.5)] * 500)
    assert list(rows.codes[:4]) == [0, 1, 0, 1]
    assert len(rows._numbers["share"]) == 2


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_numbers_are_as_wide_as_the_largest_needs(numbers):
    growing = Growing()
    for number in numbers:
        growing.append(number)
    assert list(growing.numbers) == numbers
    largest = max(numbers, default=0)
    assert growing.numbers.itemsize == next(n for n in (1, 2, 4, 8) if largest < 256**n)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_what_fits_no_width_is_refused(number):
    with pytest.raises(OverflowError):
        Growing().append(number)
