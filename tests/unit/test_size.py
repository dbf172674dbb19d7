"""A million records fit because little is kept of each: here is how little, in bytes."""

import hashlib
import tracemalloc
from collections.abc import Callable

import msgspec
import pytest
from tests.builders import make_result

from callmark.stats.columns import KeyIndex
from callmark.summary.summary import Summariser

MANY = 20_000
RESULT = make_result(0)


def bytes_each(add: Callable[[int, str], object]) -> float:
    """What stays in memory of one sample whose id is a SHA-256, the default."""
    add(0, "the first, which brings what is there only once")
    tracemalloc.start()
    try:
        for index in range(1, MANY):
            add(index, hashlib.sha256(b"%d" % index).hexdigest())
        return tracemalloc.get_traced_memory()[0] / MANY
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_a_scored_trial_is_kept_in_60_bytes():
    """32 of them are its id: reports name the samples that fail."""
    summariser = Summariser()

    def add(index: int, sample_id: str) -> None:
        summariser.add(msgspec.structs.replace(RESULT, index=index, sample_id=sample_id))

    assert bytes_each(add) <= 60


@pytest.mark.slow
def test_the_number_of_a_name_is_kept_in_40_bytes():
    numbers = KeyIndex(numbers_only=True)
    assert bytes_each(lambda index, name: numbers.setdefault(name, index)) <= 40


def test_the_place_of_a_key_is_kept_in_40_bytes():
    index = KeyIndex()
    assert bytes_each(lambda line, key: index.add(key, line, 1000 * line)) <= 40
