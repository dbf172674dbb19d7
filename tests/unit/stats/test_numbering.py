"""The table of names agrees with a plain dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from callmark.stats.columns import Numbering

NAMES = st.lists(st.text(max_size=3), max_size=60)


@given(NAMES)
def test_a_name_keeps_its_first_number(names):
    numbering, expected = Numbering(), {}
    for at, name in enumerate(names):
        assert numbering.setdefault(name, at) == expected.setdefault(name, at)
        assert len(numbering) == len(expected)


def test_it_grows():
    numbering = Numbering()
    for number in range(5000):
        assert numbering.setdefault(f"s{number}", number) == number
    assert [numbering.setdefault(f"s{number}", 0) for number in range(5000)] == list(range(5000))
    assert len(numbering) == 5000


def test_lone_surrogates_are_names_too():
    numbering = Numbering()
    assert numbering.setdefault("\ud800", 1) == 1
    assert numbering.setdefault("\ud801", 2) == 2


def test_names_are_told_apart_by_128_bits():
    """Half the bits are found twice among some billions of names: not for certain different."""
    numbering = Numbering()
    for number in range(1000):
        numbering.setdefault(f"{number}" * 50, number)
    assert len(numbering._digests) == 1000 * 16
