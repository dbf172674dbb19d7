"""Model output is hostile text: it never steers the terminal that shows it."""

import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.hostile import STEERING

from callmark.reports.layout import (
    Cell,
    Table,
    TextLine,
    line,
    neutralise,
    one_line,
    plain_text,
    write,
)

any_text = st.text(
    st.one_of(st.characters(), st.sampled_from(STEERING), st.sampled_from("\n\t[]m;"))
)


@given(any_text)
def test_no_control_or_bidi_character_survives(text: str):
    for character in neutralise(text):
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(character) not in (
            "LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI",
        )  # fmt: skip
        assert character not in STEERING


@given(any_text)
def test_neutral_text_stays_as_it_is(text: str):
    once = neutralise(text)
    assert neutralise(once) == once
    assert once.count("\n") == text.count("\n")


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"])))
def test_ordinary_text_is_untouched(text: str):
    assert neutralise(text) == text


@given(any_text, st.integers(1, 50))
def test_one_line_is_one_line_and_within_its_limit(text: str, limit: int):
    shown = one_line(text, limit)
    assert "\n" not in shown
    assert len(shown) <= limit


@pytest.mark.parametrize(
    ("hostile", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "\\x1b[31mred\\x1b[0m"),
        (
            "\x1b]8;;http://evil\x07click\x1b]8;;\x07",
            "\\x1b]8;;http://evil\\x07click\\x1b]8;;\\x07",
        ),
        ("abc\u202egnp.exe", "abc\\u202egnp.exe"),
        ("pass\rfail", "pass\\x0dfail"),
        ("\x9b2J", "\\x9b2J"),
        ("\U000e0041", "\\U000e0041"),
        ("\ud800", "\ufffd"),
    ],
)
def test_steering_characters_are_written_out(hostile: str, shown: str):
    assert neutralise(hostile) == shown


def test_persian_and_emoji_joiners_stay():
    assert neutralise("می\u200cخواهم 👩\u200d🚀") == "می\u200cخواهم 👩\u200d🚀"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def hostile_blocks() -> list[TextLine | Table]:
    cell = Cell("\x1b[2J[bold]x[/bold] :smile:\nsecond", "bad")
    return [TextLine((cell,)), Table(("id", "n"), ((cell, Cell("1")),), frozenset({1}))]


def test_plain_text_holds_no_escape_and_no_markup_is_read():
    text = plain_text(hostile_blocks())
    assert "\x1b" not in text
    assert text.count("\\x1b[2J[bold]x[/bold] :smile:\\nsecond") == 2


def test_colours_come_from_us_alone(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    stream = Terminal()
    write(hostile_blocks(), stream)
    assert "\x1b[1;31m" in stream.getvalue()
    assert "\x1b[2J" not in stream.getvalue()
    assert "[bold]x[/bold] :smile:" in stream.getvalue()


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colours_can_be_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv(name, value)
    stream = Terminal()
    write([line("fine", "good")], stream)
    assert stream.getvalue() == "fine\n"


def test_columns_line_up_also_with_wide_characters():
    rows = ((Cell("日本"), Cell("1")), (Cell("abc"), Cell("22")))
    table = Table(("id", "n"), rows, frozenset({1}))
    assert plain_text([table]) == "  id     n\n  日本   1\n  abc   22\n"
