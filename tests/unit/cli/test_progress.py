"""Progress goes to stderr, and only where somebody looks."""

import io

import pytest

from toolmark.core.protocols import Standing
from toolmark.reports import progress
from toolmark.reports.progress import RunProgress


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
    assert lines[-1].startswith("20 of 20 trials, ")
    assert lines[-1].endswith("about 0 s left, 2 misses, 1 errors")


def test_a_terminal_gets_a_bar(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "BAR_SECONDS", 0.0)
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")
    shown = drive(Terminal())
    assert "20/20" in shown


def test_quiet_is_quiet(monkeypatch):
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    assert drive(io.StringIO(), silent=True) == ""
