"""What the page shows before anybody clicks: text and numbers, already in the form for people."""

from __future__ import annotations

from typing import Literal

import msgspec

from callmark.reports.layout import Style

PageKind = Literal["run", "compare", "probe"]


class Pick(msgspec.Struct, frozen=True):
    """A filter of the sample browser: the samples that have `value` in `facet`."""

    facet: str
    value: str


class PageCell(msgspec.Struct, frozen=True, omit_defaults=True):
    text: str
    style: Style = "plain"
    pick: Pick | None = None


class PageTable(msgspec.Struct, frozen=True, kw_only=True):
    """`right`: the columns that hold numbers. `folded`: shown only on demand."""

    id: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[PageCell, ...], ...]
    right: tuple[int, ...] = ()
    note: str = ""
    folded: bool = False


class Bar(msgspec.Struct, frozen=True):
    """One group of bars; None: no data. `pick` leads to the samples behind it."""

    label: str
    values: tuple[float | None, ...]
    pick: Pick | None = None


class Plot(msgspec.Struct, frozen=True, kw_only=True):
    """A bar chart, which is a table as well. `top` is the end of its axis; None: the largest."""

    id: str
    title: str
    note: str
    label: str
    series: tuple[str, ...]
    bars: tuple[Bar, ...]
    top: float | None = None
    upright: bool = False
    marks: tuple[str, ...] = ()  # lines of text below the drawing


class PageTiming(msgspec.Struct, frozen=True, kw_only=True):
    """What a clock measured: in a file it is a block of its own, `<script … id="timing">`, and the
    pages of two equal runs differ nowhere else."""

    tables: tuple[PageTable, ...]
    plots: tuple[Plot, ...]


class PageHead(msgspec.Struct, frozen=True, kw_only=True):
    kind: PageKind
    title: str
    made_by: str
    word: str
    style: Style
    reason: str
    facts: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    tables: tuple[PageTable, ...] = ()
    plots: tuple[Plot, ...] = ()
    pins: tuple[tuple[str, str], ...] = ()
    left_out: str = ""
    timing: PageTiming | None = None
