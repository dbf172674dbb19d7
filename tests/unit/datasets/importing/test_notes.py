"""What could not be mapped: every kind has a meaning and stands in the docs."""

from pathlib import Path
from typing import get_args

from callmark.datasets.importing.desk import MAX_LISTED, MEANING, Kind, Notes

DOCS = Path(__file__).parents[4] / "docs" / "import.md"


def test_every_kind_is_explained_once_and_documented():
    assert tuple(MEANING) == get_args(Kind) == tuple(sorted(MEANING))
    text = DOCS.read_text("utf-8")
    for kind, meaning in MEANING.items():
        assert f"| `{kind}` | {meaning} |" in text


def test_all_are_counted_and_the_first_ones_listed():
    notes = Notes()
    for line in range(MAX_LISTED + 5):
        notes.add("duplicate", line, "x\ny " * 200)
    [found] = notes.unmapped()
    assert found.count == MAX_LISTED + 5
    assert len(found.places) == MAX_LISTED
    assert len(found.places[0].detail) <= 200
    assert "\n" not in found.places[0].detail
