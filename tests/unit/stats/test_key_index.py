"""The index of keys agrees with a plain dictionary."""

from hypothesis import given
from hypothesis import strategies as st

from callmark.stats.columns import KeyIndex, trial_key

KEYS = st.lists(st.text(max_size=3), max_size=40)


@given(KEYS, KEYS)
def test_it_finds_the_latest_line_of_each_key(keys, others):
    index, expected = KeyIndex(), {}
    for line, key in enumerate(keys, start=1):
        index.add(key, line, line * 10)
        expected[key] = (line, line * 10)
    for key in keys + others:
        assert index.find(key) == expected.get(key)
    assert sorted(index.latest()) == sorted(value for _, value in expected.values())


@given(KEYS)
def test_it_names_every_repetition_with_the_line_before(keys):
    index, last, expected = KeyIndex(), {}, []
    for line, key in enumerate(keys, start=1):
        if key in last:
            expected.append((line, last[key], line))
        last[key] = line
        index.add(key, line, line)
    assert index.clashes() == expected


def test_adding_after_finding_works():
    index = KeyIndex()
    index.add("a", 1, 0)
    assert index.find("a") == (1, 0)
    index.add("a", 2, 5)
    assert index.find("a") == (2, 5)


@given(st.text(), st.text(), st.integers(0, 99), st.integers(0, 99))
def test_different_trials_have_different_keys(one, other, first, second):
    same = trial_key(one, first) == trial_key(other, second)
    assert same == ((one, first) == (other, second))


def test_a_million_ids_stay_small():
    """What is kept of an id is 27 bytes, whatever its length."""
    index = KeyIndex()
    for line in range(20_000):
        index.add(f"{line}" * 50, line, line)
    kept = sum(map(len, index._buckets))
    assert kept == 20_000 * 27


@given(KEYS)
def test_numbers_without_lines_take_less(keys):
    index, expected = KeyIndex(numbers_only=True), {}
    for at, key in enumerate(keys):
        assert index.setdefault(key, at) == (0, expected.setdefault(key, at))
    assert sum(map(len, index._buckets)) == 20 * len(expected)


@given(KEYS)
def test_a_key_keeps_what_it_came_with_first(keys):
    index, expected = KeyIndex(), {}
    for at, key in enumerate(keys):
        assert index.setdefault(key, at, 2 * at) == expected.setdefault(key, (2 * at, at))
        assert len(index) == len(expected)


def test_keys_that_are_found_while_they_are_added():
    index = KeyIndex()
    for number in range(5000):
        assert index.setdefault(f"s{number}", number).value == number
    assert [index.setdefault(f"s{number}", 0).value for number in range(5000)] == [*range(5000)]
    assert len(index) == 5000


def test_lone_surrogates_are_keys_too():
    index = KeyIndex()
    assert index.setdefault("\ud800", 1).value == 1
    assert index.setdefault("\ud801", 2).value == 2
