"""Thousands of spoilt files: each gives a result or a named error with its place, never a
traceback, and no line of it is left out without a word."""

import pytest
from tests.fuzz.material import Material
from tests.fuzz.table import READ, SPOILT
from tests.fuzz.targets import TARGETS
from tests.fuzz.trying import try_many
from tests.pace import few

FEW, MANY = 20, 1_000  # of each of 20 kinds: 400 in the normal suite, 20,000 in the slow one


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return Material(tmp_path_factory.mktemp("good"))


@pytest.fixture
def spoilt(material, tmp_path, record_property):
    def use(name: str, numbers: range) -> None:
        ends, failures = try_many(material, tmp_path, name, numbers)
        record_property(SPOILT, (name, dict(ends)))
        assert not failures, f"{len(failures)} of {len(numbers)}\n\n" + "\n".join(failures[:10])
        # Both ends are met: a fuzzer whose files are all refused at once tries nothing.
        assert 0 < ends[READ] < len(numbers)

    return use


@pytest.mark.parametrize("name", few(TARGETS, 4))
def test_a_spoilt_file_is_read_or_refused_by_name(spoilt, name):
    spoilt(name, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_twenty_thousand_spoilt_files(spoilt, name):
    spoilt(name, range(FEW, FEW + MANY))
