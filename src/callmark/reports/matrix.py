"""Several runs as a person reads them: which are worse than the first, then metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from callmark.compare.records import (
    Compared,
    Comparison,
    MeasuredRun,
    RunMatrix,
    exit_code,
    matrix_exit_code,
)
from callmark.records.report import Metric
from callmark.reports.compare import (
    DECISION_STYLE,
    DECISION_WORDS,
    comparison_sections,
    decision_line,
    facts,
    sign_text,
)
from callmark.reports.layout import Block, Cell, Style, Table, TextLine, line, one_line, round_text
from callmark.reports.markdown import as_code, as_text, fit_sections, table
from callmark.reports.terminal import interval
from callmark.store.files import run_names
from callmark.summary.metrics import label_of

LONGEST_NAME = 60
BY_ITSELF = (
    "each run is tested against the first by itself: of many equal runs, some look worse by chance"
)


def names_of(matrix: RunMatrix) -> tuple[str, ...]:
    names = run_names([run.facts.path for run in matrix.runs])
    return tuple(one_line(name, LONGEST_NAME) for name in names)


def headline(matrix: RunMatrix) -> tuple[str, Style, str]:
    """The word for all of them, its style, and whom it is about."""
    base, *others = names_of(matrix)
    codes = [exit_code(one) for one in matrix.comparisons]
    code = matrix_exit_code(matrix)
    told = ", ".join(name for name, one in zip(others, codes, strict=True) if one == code)
    if matrix.decision == "regression":
        return "regression", "bad", f"worse than {base}: {told}"
    if code == 1:
        return "limit exceeded", "bad", f"beyond a limit against {base}: {told}"
    if code:
        return "inconclusive", "warn", f"nobody can tell whether worse than {base}: {told}"
    return "non_inferior", "good", f"not worse than {base}: {told}"


def matrix_line(matrix: RunMatrix) -> TextLine:
    word, style, told = headline(matrix)
    return TextLine((Cell(word.upper(), style), Cell(f"  {told}")))


def matrix_blocks(matrix: RunMatrix, *, verbose: bool = False) -> Iterator[Block]:
    """Who is worse, then each metric that decides, with all runs below it; `verbose`: the other
    metrics, too."""
    _, *others = names_of(matrix)
    yield matrix_line(matrix)
    shared = shared_facts(matrix)
    for name, comparison in zip(others, matrix.comparisons, strict=True):
        word, reason = decision_line(comparison).cells
        yield TextLine((Cell(f"{name}  ", "strong"), word, reason), indent=2)
        yield from (line(text, indent=4) for text in run_facts(comparison) if text not in shared)
    yield from (line(text, indent=2) for text in (*shared, BY_ITSELF))
    yield from (line(f"warning: {text}", "warn", indent=2) for text in matrix.warnings)
    for metric in metrics_of(matrix) if verbose else matrix.primary:
        yield line()
        yield from _metric(matrix, metric)
    if not verbose:
        yield line()
        yield line("--verbose shows all metrics, --html FILE draws them", indent=2)


def run_facts(comparison: Comparison) -> Iterator[str]:
    """What is to be said of one comparison besides its decision and its paths."""
    return islice(facts(comparison), 2, None)


def shared_facts(matrix: RunMatrix) -> list[str]:
    """What is the same in all comparisons, and has to be said only once."""
    first, *rest = (list(run_facts(one)) for one in matrix.comparisons)
    return [text for text in first if all(text in other for other in rest)]


def metrics_of(matrix: RunMatrix) -> tuple[str, ...]:
    """Those that decide, then whatever a run has."""
    found = (name for run in matrix.runs for name in run.metrics)
    return tuple(dict.fromkeys((*matrix.primary, *found)))


def compared_of(comparison: Comparison, metric: str) -> Compared | None:
    every = (*comparison.primary, *comparison.exploratory)
    return next((one for one in every if one.metric == metric), None)


def _metric(matrix: RunMatrix, metric: str) -> Iterator[Block]:
    against = (None, *(compared_of(one, metric) for one in matrix.comparisons))
    found = [run.metrics.get(metric) for run in matrix.runs]
    if all(one == found[0] for one in found):
        yield TextLine((Cell(label_of(metric), "strong"), Cell(f": {_alike(found[0])}")), indent=2)
        return
    yield line(label_of(metric), "strong", indent=2)
    rows = tuple(
        _row(name, run, metric, one)
        for name, run, one in zip(names_of(matrix), matrix.runs, against, strict=True)
    )
    columns = ("run", "value", "95 % interval", "difference", "n", "")
    yield Table(columns, rows, frozenset({1, 2, 3, 4}), elastic=frozenset({0}))


def _alike(metric: Metric | None) -> str:
    if metric is None:
        return "no data in any run"
    spread = f" ({interval(metric)})" if metric.ci_95 else ""
    return f"{round_text(metric.value)}{spread} in all runs, n {metric.n}"


def _row(name: str, run: MeasuredRun, metric: str, one: Compared | None) -> tuple[Cell, ...]:
    measured = run.metrics.get(metric)
    return (
        Cell(name),
        Cell("no data" if measured is None else round_text(measured.value)),
        Cell(interval(measured)),
        Cell("" if one is None else sign_text(one.difference)),
        Cell("" if measured is None else str(measured.n)),
        decision_cell(one),
    )


def decision_cell(one: Compared | None) -> Cell:
    if one is None or one.decision is None:
        return Cell("")
    word = DECISION_WORDS[one.decision]
    return Cell(
        word if one.decision == "non_inferior" else word.upper(), DECISION_STYLE[one.decision]
    )


def matrix_markdown(matrix: RunMatrix) -> str:
    return fit_sections(_sections(matrix))


def _sections(matrix: RunMatrix) -> Iterator[Sequence[str]]:
    word, style, told = headline(matrix)
    sign = {"bad": "❌", "warn": "⚠️", "good": "✅"}[style]
    yield [f"### {sign} {word.replace('_', ' ').capitalize()}: {as_text(told)}", ""]
    warnings = (f"- **warning:** {as_text(warning)}" for warning in matrix.warnings)
    yield [f"- {BY_ITSELF}", *warnings, ""]
    yield table(
        ("run", *(as_text(label_of(metric)) for metric in matrix.primary), "against the first"),
        [_markdown_row(matrix, at) for at in range(len(matrix.runs))],
    )
    for name, comparison in zip(names_of(matrix)[1:], matrix.comparisons, strict=True):
        yield [f"#### {as_code(name)}", ""]
        for section in comparison_sections(comparison):
            yield [part.replace("### ", "##### ", 1) for part in section]


def _markdown_row(matrix: RunMatrix, at: int) -> tuple[str, ...]:
    run = matrix.runs[at]
    found = [run.metrics.get(metric) for metric in matrix.primary]
    told = ("-" if one is None else f"{round_text(one.value)} ({interval(one)})" for one in found)
    decision = matrix.comparisons[at - 1].decision.replace("_", " ") if at else ""
    return as_code(names_of(matrix)[at]), *told, decision
