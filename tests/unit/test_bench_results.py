"""RESULTS.md: each module writes its own table and leaves the others as they are."""

import pytest
from bench import results
from bench.__main__ import verdict
from bench.results import Row, write_table


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "PLACE", tmp_path / "RESULTS.md")
    return results.PLACE


def test_a_module_replaces_its_own_table_only(place):
    theirs = [Row("CPU: theirs ÷ ours", "60", ">= 30", "met")]
    write_table("make bench-peers", "peers", theirs, ["How."])
    write_table("make bench", "startup", [Row("start-up", "2.00"), Row("  of it", "1.00")])
    write_table("make bench", "http", [Row("served", "1.50")])
    before = place.read_text("utf-8")
    write_table("make bench", "startup", [Row("start-up", "3.00"), Row("  of it", "1.00")])
    text = place.read_text("utf-8")
    assert text == before.replace("| start-up | 2.00 |", "| start-up | 3.00 |")
    titles = ["## make bench", "### http", "### startup", "## make bench-peers", "### peers"]
    assert [line for line in text.splitlines() if line.startswith("##")] == titles
    assert text.startswith(results.HEAD)
    assert "| – of it | 1.00 |  |  |" in text
    assert text.endswith("\n\nHow.\n")


def test_no_table_has_a_title_of_its_own_making(place):
    """Notes stand below a table and are kept with it, whatever they say."""
    for _ in range(2):
        write_table("make bench-size", "size", [Row("b", "2.00")], ["Note # 1.", "And `## this`."])
        write_table("make bench", "cache", [Row("a", "1.00")])
    assert place.read_text("utf-8").count("Note # 1.\n\nAnd `## this`.\n") == 1


@pytest.mark.parametrize(
    ("figure", "bound", "said"),
    [("2.00", "<= 2", "met"), ("2.01", "<= 2", "NOT MET"), ("31", ">= 30", "met"), ("9", "", "")],
)
def test_a_bound_is_met_or_it_is_not(figure, bound, said):
    assert verdict(figure, bound) == said
