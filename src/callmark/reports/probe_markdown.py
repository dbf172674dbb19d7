"""A probe as Markdown, for a pull request or a step summary: the answer, the rest folded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from callmark.core.probe_records import ProbeReport
from callmark.reports.compare_markdown import comparison_sections
from callmark.reports.layout import Block, Style, Table, TextLine
from callmark.reports.markup import as_text, fitted, folded, table
from callmark.reports.probe import answer_lines, result_blocks

_ICONS: dict[Style, str] = {"good": "✅", "bad": "❌", "warn": "⚠️"}


def probe_markdown(report: ProbeReport) -> str:
    return fitted(_sections(report))


def _sections(report: ProbeReport) -> Iterator[Sequence[str]]:
    for answer in answer_lines(report):
        word, sentence = answer.cells
        icon = _ICONS.get(word.style, "")
        yield [f"### {icon} {as_text(word.text)}: {as_text(sentence.text.strip())}", ""]
    if not report.results:
        yield ["### ⚠️ Nothing probed", ""]
    yield [*(f"- **warning:** {as_text(warning)}" for warning in report.warnings), ""]
    yield folded("Signals and cases", blocks_markdown(result_blocks(report)))
    if report.comparison is not None:
        yield from comparison_sections(report.comparison)


def blocks_markdown(blocks: Iterable[Block]) -> Iterator[str]:
    """What a terminal shows, line by line and table by table."""
    for block in blocks:
        match block:
            case TextLine(cells=cells):
                text = as_text("".join(cell.text for cell in cells).strip())
                yield f"- {text}" if text else ""
            case Table(columns=columns, rows=rows):
                yield ""
                yield from table(
                    [as_text(name) for name in columns],
                    [[as_text(cell.text) for cell in row] for row in rows],
                )
            case _:
                assert_never(block)
