"""One case of a probe as a person reads it: how it stands, and what both views wrote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.probe.records import CaseOutcome, ProbeReport, Standing, ViewAnswer
from callmark.reports.layout import (
    Block,
    Cell,
    DiffPiece,
    Style,
    Table,
    TextLine,
    diff_words,
    line,
    one_line,
)
from callmark.reports.probe import (
    LONGEST_NAME,
    change_text,
    expected_tool,
    numbered_cases,
    why_not,
)

STANDINGS: dict[Standing, tuple[str, Style]] = {
    "kept": ("valid in both views", "good"),
    "lost": ("lost: valid before the fine-tune, not after", "bad"),
    "gained": ("gained: valid after the fine-tune, not before", "good"),
    "both_fail": ("no valid call in either view", "warn"),
}
# Where no call is asked for, a view is right that makes none.
SILENCES: dict[Standing, tuple[str, Style]] = {
    "kept": ("no call in either view, and none was asked for", "good"),
    "lost": ("lost: a call after the fine-tune, where none was asked for", "bad"),
    "gained": ("gained: no call after the fine-tune, and none was asked for", "good"),
    "both_fail": ("a call in both views, where none was asked for", "warn"),
}


def standing_of(case: CaseOutcome) -> tuple[str, str, Style]:
    """In a word and in a sentence. A valid call of another tool is no call that was kept."""
    if case.hallucinated and case.tuned.call is not None:
        return "wrong tool", f"wrong tool after the fine-tune: {case.tuned.call.name}", "bad"
    sentences = SILENCES if case.gold_tool_name is None else STANDINGS
    return case.standing.replace("_", " "), *sentences[case.standing]


def case_list_blocks(report: ProbeReport) -> Iterator[Block]:
    """Every case with its number, for who wants to look at one."""
    rows: list[tuple[Cell, ...]] = []
    for number, name, case in numbered_cases(report):
        standing, _, style = standing_of(case)
        called = case.tuned.call if case.hallucinated else None
        why = case.tuned.cause or (f"calls {called.name}" if called is not None else "")
        rows.append(
            (
                Cell(str(number)),
                Cell(standing, style),
                Cell(expected_tool(case)),
                Cell(why),
                Cell(one_line(name, LONGEST_NAME)),
            )
        )
    yield Table(
        ("case", "standing", "expected tool", "why", "prompt"),
        tuple(rows),
        frozenset({0}),
        frozenset({3, 4}),
    )


def case_blocks(number: int, name: str, case: CaseOutcome) -> Iterator[Block]:
    """What both views wrote to one case; what only one of them wrote is marked."""
    _, said, style = standing_of(case)
    yield TextLine((Cell(f"case {number}  ", "strong"), Cell(said, style)))
    yield from (line(part, indent=2) for part in name.split("\n"))
    yield line(f"expects {expected_tool(case)}", "quiet", indent=2)
    diff = diff_words(case.base.text, case.tuned.text)
    yield from _judged_blocks("base", case.base, case.gold_tool_name)
    yield from _written_blocks(diff.left, ("[-", "-]"), "good")
    yield from _judged_blocks("tuned", case.tuned, case.gold_tool_name)
    yield from _written_blocks(diff.right, ("{+", "+}"), "bad")
    if case.changes:
        yield line()
        yield line("arguments that changed", "strong")
        yield from (line(change_text(change), indent=2) for change in case.changes)


def _judged_blocks(view: str, answer: ViewAnswer, gold: str | None) -> Iterator[Block]:
    yield line()
    yield TextLine((Cell(f"{view}  ", "strong"), *_judgement(answer, gold)))


def _written_blocks(
    pieces: Sequence[DiffPiece], marks: tuple[str, str], style: Style
) -> Iterator[Block]:
    cells: list[Cell] = []
    for piece in pieces:
        text = f"{marks[0]}{piece.text}{marks[1]}" if piece.differs else piece.text
        for at, part in enumerate(text.split("\n")):
            if at:
                yield TextLine(tuple(cells), indent=2)
                cells = []
            if part:
                cells.append(Cell(part, style if piece.differs else "plain"))
    yield TextLine(tuple(cells) or (Cell("(no text)", "quiet"),), indent=2)


def judgement_of(answer: ViewAnswer, gold: str | None) -> str:
    """`gold` None: no call is asked for."""
    if gold is None:
        return "no call, and none was asked for" if answer.valid else "a call that nobody asked for"
    return "valid call" if answer.valid else "no valid call"


def _judgement(answer: ViewAnswer, gold: str | None) -> Iterator[Cell]:
    judged, call = judgement_of(answer, gold), answer.call
    if answer.valid:
        written = f", written as {answer.format}" if answer.format else ""
        named = "" if call is None else f" of {call.name}"
        yield Cell(f"{judged}{named}{written}", "good")
    else:
        yield Cell(judged, "bad")
        if gold is not None and answer.reason:
            yield Cell(f": {why_not(answer, gold, answer.reason)}")
    if answer.ended is False:
        yield Cell(", never ended", "warn")
