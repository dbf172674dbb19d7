"""Progress goes to stderr, and only where somebody looks."""

import io

import pytest

from callmark.records.seams import Standing
from callmark.reports import layout as progress
from callmark.reports.layout import RunProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def drive(stream: io.StringIO, **options: bool) -> str:
    with RunProgress(stream, **options) as report:
        for finished in range(1, 21):
            report(Standing(finished, 20, misses=2, errors=1))
    return stream.getvalue()


def test_a_short_run_into_a_file_says_nothing():
    assert drive(io.StringIO()) == ""


def test_a_long_run_into_a_file_says_a_line_now_and_then(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    lines = drive(io.StringIO()).splitlines()
    assert lines[9].startswith("10 of 20 trials, ")
    assert lines[9].endswith("/s, 0:00 left, 2 misses, 1 error")
    assert len(lines) == 20


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.0)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    shown = drive(Terminal())
    assert "20/20" in shown
    assert "/s, 2 misses, 1 error" in shown


@pytest.mark.parametrize(
    ("standing", "seconds", "rate", "left"),
    [
        (Standing(100, 500), 50.0, 2.0, "3:20"),
        (Standing(1, 50_001), 1.0, 1.0, "13:53:20"),
        (Standing(9_100, 10_000, resumed=9_000), 50.0, 2.0, "7:30"),
        (Standing(30, 30), 10.0, 3.0, None),  # finished, or nobody knows how many there are
        (Standing(5, 10, resumed=5), 0.0, 0.0, None),
    ],
)
def test_the_pace_is_that_of_this_run(standing, seconds, rate, left):
    """Trials of an earlier run are done, but took no time now."""
    pace = progress.pace_of(standing, seconds)
    assert (pace.rate, pace.left) == (rate, left)


def test_where_the_end_is_not_known_a_line_now_and_then_is_enough():
    """Comparing reads files whose length nobody counted."""
    stream = io.StringIO()
    with RunProgress(stream) as report:
        for finished in range(1, 1000):
            report(Standing(finished, finished))
    assert stream.getvalue() == ""


def test_quiet_is_quiet(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    assert drive(io.StringIO(), silent=True) == ""
