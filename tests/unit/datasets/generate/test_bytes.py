"""Two numbers decide every byte, on whatever machine."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callmark.broker.fixtures import load_folder
from callmark.calls.registry import Registry
from callmark.datasets.generate import AnswersWanted, generate
from callmark.datasets.generate.write import SortedHash
from callmark.resources import builtin_tools

SRC = Path(__file__).parents[4] / "src"
CHILD = """
import sys
from pathlib import Path
from callmark.datasets.generate import AnswersWanted, generate
folder = Path(sys.argv[1])
wanted = AnswersWanted(folder / "a.jsonl", {"altered_number": 0.2, "leaked_card": 0.1})
generate(150, 7, out=folder / "d.jsonl", fixtures=folder / "f", answers=wanted)
"""


SMALL_DATASET = "1a662d591cb3337db738bde5757e5bed018fa20d0d350d8746267910b1b785ec"
WHOLE_FIXTURES = "495a8bae5e15763057c365138dd8dc78bc0395c12bb421aecfc084af4e2daced"


def digests(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.jsonl"))
    }


@pytest.mark.parametrize(
    "changed",
    [{"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "77", "TZ": "Asia/Tokyo", "LC_ALL": "C"}],
)
def test_equal_bytes_in_another_environment(tmp_path, changed):
    faults = {"leaked_card": 0.1, "altered_number": 0.2}  # in another order, too
    here, there = tmp_path / "here", tmp_path / "there"
    wanted = AnswersWanted(here / "a.jsonl", faults)
    generate(150, 7, out=here / "d.jsonl", fixtures=here / "f", answers=wanted)
    environment = {**os.environ, "PYTHONPATH": str(SRC), **changed}
    subprocess.run([sys.executable, "-c", CHILD, str(there)], check=True, env=environment)
    assert digests(here) == digests(there)
    assert len(digests(here)) == 9


def test_another_seed_gives_other_bytes_and_answers_do_not_change_the_dataset(tmp_path):
    made = []
    for name, seed in (("a", 1), ("b", 2), ("c", 1)):
        folder = tmp_path / name
        answers = AnswersWanted(folder / "answers.jsonl") if name == "c" else None
        made.append(
            generate(30, seed, out=folder / "d.jsonl", fixtures=folder / "f", answers=answers)
        )
    assert made[0].dataset_sha256 != made[1].dataset_sha256
    assert made[0].fixtures_sha256 != made[1].fixtures_sha256
    assert made[0].dataset_sha256 == made[2].dataset_sha256


def test_this_version_writes_these_bytes(tmp_path):
    """Whoever changes them gives the generator another version. Both leave out what a later CLDR
    may write otherwise: fixtures hold no localised form, five samples are all English."""
    small = generate(5, 1, out=tmp_path / "a.jsonl", fixtures=tmp_path / "a")
    whole = generate(60, 1, out=tmp_path / "b.jsonl", fixtures=tmp_path / "b")
    assert (small.dataset_sha256, whole.fixtures_sha256) == (SMALL_DATASET, WHOLE_FIXTURES)


def test_the_fixtures_hash_is_the_one_that_the_broker_computes(tmp_path):
    made = generate(80, 3, out=tmp_path / "d.jsonl", fixtures=tmp_path / "f")
    registry = Registry.from_specs(builtin_tools(), where="tools")
    loaded = load_folder(tmp_path / "f", registry)
    assert loaded.sha256 == made.fixtures_sha256
    assert len(loaded.fixtures) == made.fixtures


@given(
    st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]))),
    st.integers(1, 40),
)
@settings(max_examples=60, deadline=None)
def test_lines_sorted_in_parts_have_the_hash_of_lines_sorted_at_once(lines, part):
    """As JSON lines, none of which is the beginning of another."""
    encoded = [f'"{line}"'.encode() for line in lines]
    with SortedHash(part) as parts:
        for line in encoded:
            parts.add(line + b"\n")
        assert parts.hexdigest() == hashlib.sha256(b"\n".join(sorted(encoded))).hexdigest()
