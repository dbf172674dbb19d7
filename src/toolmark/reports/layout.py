"""Lines and tables for people: built as records, then written plain or with colours.

Everything that reaches a stream goes through `one_line`, so no text of a model steers it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Literal, TextIO, assert_never
from unicodedata import combining, east_asian_width

import msgspec

from toolmark.reports.neutral import one_line

Style = Literal["plain", "strong", "quiet", "good", "bad", "warn", "grounded", "ungrounded"]

_COLOURS: dict[Style, str] = {
    "plain": "",
    "strong": "bold",
    "quiet": "bright_black",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "grounded": "green underline",
    "ungrounded": "red underline",
}
# What a colour says to one reader, these marks say to another.
_MARKS: dict[Style, tuple[str, str]] = {"grounded": ("[+", "+]"), "ungrounded": ("[-", "-]")}


class Cell(msgspec.Struct, frozen=True):
    text: str
    style: Style = "plain"


class Line(msgspec.Struct, frozen=True):
    cells: tuple[Cell, ...]
    indent: int = 0


class Table(msgspec.Struct, frozen=True):
    """`right` holds the numbers of the columns that are aligned to the right."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: frozenset[int] = frozenset()


Block = Line | Table
Painted = list[Cell]  # one line of the screen


def line(text: str = "", style: Style = "plain", indent: int = 0) -> Line:
    return Line((Cell(text, style),), indent)


def write(blocks: Iterable[Block], stream: TextIO) -> None:
    """Colours on a terminal, plain text everywhere else."""
    if wants_colour(stream):
        _write_colours(blocks, stream)
    else:
        stream.write(plain_text(blocks))


def wants_colour(stream: TextIO) -> bool:
    """https://no-color.org: any value that is not empty turns colours off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain_text(blocks: Iterable[Block]) -> str:
    lines = ("".join(cell.text for cell in painted) for painted in _screen_lines(blocks))
    return "".join(f"{text.rstrip()}\n" for text in lines)


def _write_colours(blocks: Iterable[Block], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=True)
    for painted in _screen_lines(blocks):
        console.print(Text.assemble(*((cell.text, _COLOURS[cell.style]) for cell in painted)))


def _screen_lines(blocks: Iterable[Block]) -> Iterator[Painted]:
    for block in blocks:
        match block:
            case Line(cells=cells, indent=indent):
                yield [Cell(" " * indent), *map(_safe, cells)]
            case Table():
                yield from _table_lines(block)
            case _:
                assert_never(block)


def _table_lines(table: Table) -> Iterator[Painted]:
    head = [Cell(title, "quiet") for title in table.columns]
    grid = [head, *([_safe(cell) for cell in row] for row in table.rows)]
    widths = [max(_width(cell.text) for cell in column) for column in zip(*grid, strict=True)]
    for row in grid:
        painted = [Cell("  ")]
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            gap = Cell(" " * (width - _width(cell.text)))
            painted += [gap, cell] if number in table.right else [cell, gap]
            painted.append(Cell("  "))
        yield painted


def _safe(cell: Cell) -> Cell:
    before, after = _MARKS.get(cell.style, ("", ""))
    return Cell(before + one_line(cell.text) + after, cell.style)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )
