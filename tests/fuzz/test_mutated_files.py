"""Thousands of spoilt files: each gives a result or a named error with its place, never a
traceback, and no line of it is left out without a word."""

import random
import traceback

import pytest
from tests.fuzz.material import Material
from tests.fuzz.mutations import mutated
from tests.fuzz.targets import TARGETS, check_named

from toolmark.errors import ToolmarkError

FEW, MANY = 30, 2_000  # of each kind: 300 in the normal suite, 20,000 in the slow one


@pytest.fixture(scope="module")
def material(tmp_path_factory):
    return Material(tmp_path_factory.mktemp("good"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("spoilt")


def try_one(material, folder, name: str, number: int) -> bool:
    """Whether the file was read. Anything that may not happen raises."""
    target = TARGETS[name]
    rng = random.Random(f"{name} {number}")
    path = folder / target.file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mutated(rng, rng.choice(material.good[target.good]), target.ways))
    try:
        target.use(material, path)
    except ToolmarkError as error:
        check_named(error, path, target.place, material.goes_with(name))
        return False
    return True


def try_many(material, folder, name: str, numbers: range) -> None:
    read, failures = 0, []
    for number in numbers:
        try:
            read += try_one(material, folder, name, number)
        except Exception:
            failures.append(f"{name} {number}:\n{traceback.format_exc(limit=-6)}")
    assert not failures, f"{len(failures)} of {len(numbers)}\n\n" + "\n".join(failures[:10])
    # Both ends are met: a fuzzer whose files are all refused at once tries nothing.
    assert 0 < read < len(numbers)


@pytest.mark.parametrize("name", TARGETS)
def test_a_spoilt_file_is_read_or_refused_by_name(material, folder, name):
    try_many(material, folder, name, range(FEW))


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_twenty_thousand_spoilt_files(material, folder, name):
    try_many(material, folder, name, range(FEW, FEW + MANY))
