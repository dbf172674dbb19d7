"""Lines and tables for people: built as records, then written plain or with colours; and two texts
side by side, with the words that the other does not have.

Everything that reaches a stream goes through `one_line`, so no text of a model steers it."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from shutil import get_terminal_size
from types import TracebackType
from typing import TYPE_CHECKING, Literal, NamedTuple, Self, TextIO, assert_never
from unicodedata import combining, east_asian_width

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

    from callmark.records.report import Number
    from callmark.records.seams import Standing


# Left alone: \t and \n (layout), U+200C and U+200D (Persian and emoji need them to be read right).
_STEERING: tuple[tuple[int, int], ...] = (
    (0x00, 0x08),
    (0x0B, 0x1F),  # carriage return and escape among them
    (0x7F, 0x9F),  # delete, and the one-byte forms of escape sequences
    (0xAD, 0xAD),  # soft hyphen: invisible
    (0x061C, 0x061C),  # bidi: Arabic letter mark
    (0x180E, 0x180E),
    (0x200B, 0x200B),  # zero width space
    (0x200E, 0x200F),  # bidi marks
    (0x2028, 0x202E),  # line separators, bidi embeddings and overrides
    (0x2060, 0x206F),  # invisible operators, bidi isolates
    (0xFEFF, 0xFEFF),  # zero width no-break space
    (0xFFF9, 0xFFFB),  # interlinear annotation
    (0xE0000, 0xE007F),  # tags: whole hidden sentences can be written in them
)


def _visible(code: int) -> str:
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


_TABLE = {code: _visible(code) for low, high in _STEERING for code in range(low, high + 1)}
_TABLE |= dict.fromkeys(range(0xD800, 0xE000), "\ufffd")


def neutralise(text: str) -> str:
    """The same text with every character that steers a terminal written out (`\\x1b`)."""
    if text.isascii() and text.isprintable():  # as most are: nothing in it steers
        return text
    return text.translate(_TABLE)


def one_line(text: str, limit: int | None = None) -> str:
    """Neutralised, line breaks and tabs written out, and cut to `limit` characters."""
    shown = neutralise(text)
    if not shown.isprintable():
        shown = shown.replace("\n", "\\n").replace("\t", "\\t")
    if limit is not None and len(shown) > limit:
        return shown[: max(0, limit - 1)] + "…"
    return shown


Style = Literal[
    "plain",
    "strong",
    "quiet",
    "good",
    "bad",
    "warn",
    "grounded",
    "ungrounded",
    "supported",
    "unsupported",
]

_COLOURS: dict[Style, str] = {
    "plain": "",
    "strong": "bold",
    "quiet": "bright_black",
    "good": "green",
    "bad": "bold red",
    "warn": "yellow",
    "grounded": "green underline",
    "ungrounded": "red underline",
    "supported": "bold green underline",
    "unsupported": "bold red underline",
}
NARROWEST = 40
FOLD = 80  # columns of a report where there is no screen that says how many it has
SMALLEST_COLUMN = 12


# Named tuples, not msgspec records: every command builds its tables of these, and a `--help` that
# had to load msgspec for them would cost twice as much.
class Cell(NamedTuple):
    text: str
    style: Style = "plain"


class TextLine(NamedTuple):
    """`copied`: a command, which is broken so that a shell still reads it as one."""

    cells: tuple[Cell, ...]
    indent: int = 0
    copied: bool = False


class Table(NamedTuple):
    """`right` holds the numbers of the columns that are aligned to the right, `elastic` those that
    may be cut where a screen is too narrow. `notes`: what is said below each row."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    right: frozenset[int] = frozenset()
    elastic: frozenset[int] = frozenset()
    notes: tuple[tuple[str, ...], ...] = ()


Block = TextLine | Table
Painted = list[Cell]  # one line of the screen


def line(text: str = "", style: Style = "plain", indent: int = 0) -> TextLine:
    return TextLine((Cell(text, style),), indent)


def command(text: str, indent: int = 0) -> TextLine:
    return TextLine((Cell(text, "strong"),), indent, copied=True)


def write(blocks: Iterable[Block], stream: TextIO, fold: int | None = None) -> None:
    """Colours on a terminal, plain text everywhere else. Lines are broken for a screen; a file or
    another program gets them whole, or folded at `fold` columns."""
    width = max(NARROWEST, get_terminal_size().columns) if stream.isatty() else fold
    if wants_colour(stream):
        _write_colours(blocks, stream, width)
    else:
        stream.write(plain_text(blocks, width))


def wants_colour(stream: TextIO) -> bool:
    """https://no-color.org: any value that is not empty turns colours off."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain_text(blocks: Iterable[Block], width: int | None = None) -> str:
    lines = ("".join(cell.text for cell in painted) for painted in _screen_lines(blocks, width))
    return "".join(f"{text.rstrip()}\n" for text in lines)


def _write_colours(blocks: Iterable[Block], stream: TextIO, width: int | None) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(file=stream, markup=False, emoji=False, highlight=False, soft_wrap=True)
    for painted in _screen_lines(blocks, width):
        console.print(Text.assemble(*((cell.text, _COLOURS[cell.style]) for cell in painted)))


def _screen_lines(blocks: Iterable[Block], width: int | None) -> Iterator[Painted]:
    for block in blocks:
        match block:
            case TextLine(cells=cells, indent=indent, copied=copied):
                end = " \\" if copied and not any("'" in cell.text for cell in cells) else ""
                whole = copied and not end
                safe = [_safe(cell) for cell in cells]
                yield from _wrap(safe, indent, None if whole else width, end)
            case Table():
                yield from _table_lines(block, width)
            case _:
                assert_never(block)


def _wrap(cells: Painted, indent: int, width: int | None, end: str = "") -> Iterator[Painted]:
    """Broken between words; what follows stands a little further in. `end`: of a broken line."""
    start = Cell(" " * indent)
    if width is None or indent + sum(_width(cell.text) for cell in cells) <= width:
        yield [start, *cells]
        return
    row, used, first = [start], indent, True
    for cell in cells:
        for word in re.findall(r" +|[^ ]+", cell.text):
            size = _width(word)
            if used + size + len(end) > width and not first and not word.isspace():
                while len(row) > 1 and row[-1].text.isspace():
                    row.pop()
                yield _join([*row, Cell(end)] if end else row)
                row, used, first = [Cell(" " * (indent + 2))], indent + 2, True
            if not (first and word.isspace() and len(row) == 1 and used > indent):
                row.append(Cell(word, cell.style))
                used, first = used + size, False
    yield _join(row)


def _join(row: Painted) -> Painted:
    """Neighbours of one style become one again."""
    groups = groupby(row, key=lambda cell: cell.style)
    return [Cell("".join(cell.text for cell in cells), style) for style, cells in groups]


def _table_lines(table: Table, width: int | None) -> Iterator[Painted]:
    head = [Cell(title, "quiet") for title in table.columns]
    grid = [head, *([_safe(cell) for cell in row] for row in table.rows)]
    widths = [max(_width(cell.text) for cell in column) for column in zip(*grid, strict=True)]
    if width is not None:
        widths = _narrow(widths, table.elastic, width)
    notes = ((), *table.notes) if table.notes else ((),) * len(grid)
    for row, below in zip(grid, notes, strict=True):
        painted = [Cell("  ")]
        for number, (whole, size) in enumerate(zip(row, widths, strict=True)):
            cell = Cell(_cut(whole.text, size), whole.style)
            gap = Cell(" " * (size - _width(cell.text)))
            painted += [gap, cell] if number in table.right else [cell, gap]
            painted.append(Cell("  "))
        yield painted
        for text in below:
            yield from _wrap([Cell(one_line(text), "quiet")], 4, width)


def _narrow(widths: list[int], elastic: frozenset[int], width: int) -> list[int]:
    """The widest of the elastic columns give way first."""
    narrowed = list(widths)
    while 2 + sum(size + 2 for size in narrowed) > width:
        widest = max(elastic, key=lambda number: narrowed[number], default=None)
        if widest is None or narrowed[widest] <= SMALLEST_COLUMN:
            break
        narrowed[widest] -= 1
    return narrowed


def _cut(text: str, width: int) -> str:
    if _width(text) <= width:
        return text
    kept = text[:width]
    while _width(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…"


def _safe(cell: Cell) -> Cell:
    return Cell(one_line(cell.text), cell.style)


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(
        0 if combining(character) else 2 if east_asian_width(character) in "WF" else 1
        for character in text
    )


def round_text(value: Number | None, bound: Number | None = None) -> str:
    """Three decimals, or as many more as are needed not to seem equal to a bound, to 0 or to 1."""
    if value is None:
        return "-"
    if isinstance(value, int):
        return str(value)
    for digits in range(3, 12):
        text = f"{value:.{digits}f}"
        if all(float(text) != limit or value == limit for limit in (0, 1, bound)):
            return text
    return repr(value)


BAR_SECONDS = 0.1
LINE_SECONDS = 10.0


class RunProgress:
    """Called after every trial; it looks at the clock and mostly does nothing more."""

    def __init__(self, stream: TextIO, *, silent: bool = False) -> None:
        self._stream = stream
        self._silent = silent
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self._is_bar = wants_colour(stream)
        self._pause = BAR_SECONDS if self._is_bar else LINE_SECONDS
        self._started = time.monotonic()
        self._shown = self._started

    def __call__(self, standing: Standing) -> None:
        now = time.monotonic()
        if standing.finished == standing.resumed:
            self._started = now  # what was done before says nothing about the pace
        if self._silent or now - self._shown < self._pause:
            return
        self._shown = now
        pace = pace_of(standing, now - self._started)
        if self._is_bar:
            self._draw(standing, pace)
        else:
            done = f"{standing.finished} of {standing.total}" if pace.left else standing.finished
            print(f"{done} trials{_say(pace, standing)}", file=self._stream, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def _draw(self, standing: Standing, pace: Pace) -> None:
        total = standing.total if pace.left else None
        if self._bar is None or self._task is None:
            self._bar = _bar_on(self._stream)
            self._task = self._bar.add_task("trials", total=total, said="")
            self._bar.start()
        self._bar.update(
            self._task, completed=standing.finished, total=total, said=_say(pace, standing)
        )


class Pace(NamedTuple):
    """Trials a second, and how long the rest takes at that; None: not known."""

    rate: float
    left: str | None


def pace_of(standing: Standing, seconds: float) -> Pace:
    rate = (standing.finished - standing.resumed) / max(seconds, 1e-9)
    remaining = standing.total - standing.finished
    if remaining <= 0 or not rate:
        return Pace(rate, None)
    minutes, rest = divmod(round(remaining / rate), 60)
    hours, minutes = divmod(minutes, 60)
    clock = f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
    return Pace(rate, clock)


def _say(pace: Pace, standing: Standing) -> str:
    parts = [f"{pace.rate:.1f}/s"]
    if pace.left is not None:
        parts.append(f"{pace.left} left")
    found = (("miss", "misses", standing.misses), ("error", "errors", standing.errors))
    parts += [f"{n} {one if n == 1 else several}" for one, several, n in found if n]
    return "".join(f", {part}" for part in parts)


def _bar_on(stream: TextIO) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
    )

    return Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("trials{task.fields[said]}"),
        console=Console(file=stream, highlight=False),
        transient=True,
    )


_WORD = re.compile(r"\w+|\s+|[^\w\s]")
# The matcher takes the product of both lengths; longer middles differ as a whole.
_MOST_WORD_PAIRS = 250_000


class DiffPiece(NamedTuple):
    """A stretch of a text; `differs`: the other text has something else there, or nothing."""

    text: str
    differs: bool


class WordDiff(NamedTuple):
    left: tuple[DiffPiece, ...]
    right: tuple[DiffPiece, ...]


def diff_words(left: str, right: str) -> WordDiff:
    """The pieces of both texts; each side's, joined, are that text again."""
    a, b = _WORD.findall(left), _WORD.findall(right)
    most = min(len(a), len(b))
    head = next((at for at in range(most) if a[at] != b[at]), most)
    rest = most - head
    tail = next((at for at in range(rest) if a[-1 - at] != b[-1 - at]), rest)
    same = _same_words(a[head : len(a) - tail], b[head : len(b) - tail])
    blocks = [(0, 0, head), *((i + head, j + head, size) for i, j, size in same)]
    blocks.append((len(a) - tail, len(b) - tail, tail))
    return WordDiff(
        tuple(_diff_pieces(a, [(i, size) for i, _, size in blocks])),
        tuple(_diff_pieces(b, [(j, size) for _, j, size in blocks])),
    )


def _same_words(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int, int]]:
    if not a or not b or len(a) * len(b) > _MOST_WORD_PAIRS:
        return []
    from difflib import SequenceMatcher

    matcher = SequenceMatcher(None, a, b, autojunk=False)
    return [(one.a, one.b, one.size) for one in matcher.get_matching_blocks() if one.size]


def _diff_pieces(words: Sequence[str], same: Sequence[tuple[int, int]]) -> Iterator[DiffPiece]:
    done = 0
    for start, size in same:
        if start > done:
            yield DiffPiece("".join(words[done:start]), True)
        if size:
            yield DiffPiece("".join(words[start : start + size]), False)
        done = max(done, start + size)
    if done < len(words):
        yield DiffPiece("".join(words[done:]), True)
