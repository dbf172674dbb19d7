"""RESULTS.md: each command writes its own section and leaves the others as they are."""

import pytest
from bench import results
from bench.__main__ import verdict
from bench.results import Row, write_section


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "PLACE", tmp_path / "RESULTS.md")
    return results.PLACE


def test_a_command_replaces_its_own_section_only(place):
    write_section("make bench-peers", [Row("CPU: theirs ÷ ours", "60", ">= 30", "met")], ["How."])
    peers = place.read_text("utf-8").partition("## make bench-peers")[2]
    write_section("make bench", [Row("start-up", "2.00"), Row("  of it", "1.00")])
    write_section("make bench", [Row("start-up", "3.00")])
    text = place.read_text("utf-8")
    assert text.startswith(results.HEAD)
    assert text.partition("## make bench-peers")[2] == peers
    assert text.index("## make bench\n") < text.index("## make bench-peers\n")
    assert "| start-up | 3.00 |  |  |" in text
    assert "2.00" not in text
    assert "\n\nHow.\n" in text


def test_writing_the_same_again_changes_nothing(place):
    for _ in range(3):
        write_section("make bench", [Row("a", "1.00")])
        write_section("make bench-size", [Row("b", "2.00")], ["Note."])
        written = place.read_text("utf-8")
    write_section("make bench", [Row("a", "1.00")])
    assert place.read_text("utf-8") == written


@pytest.mark.parametrize(
    ("figure", "bound", "said"),
    [("2.00", "<= 2", "met"), ("2.01", "<= 2", "NOT MET"), ("31", ">= 30", "met"), ("9", "", "")],
)
def test_a_bound_is_met_or_it_is_not(figure, bound, said):
    assert verdict(figure, bound) == said
