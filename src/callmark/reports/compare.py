"""A comparison as a person reads it: the decision, the primary metrics, then where it changed. Of
several runs: which are worse than the first, then metric by metric."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from callmark.compare.records import (
    Compared,
    Comparison,
    Decision,
    Flips,
    Listed,
    MeasuredRun,
    OwnPast,
    PointCheck,
    RunMatrix,
    SpendingPair,
    exit_code,
    matrix_exit_code,
)
from callmark.records.report import Metric
from callmark.reports.layout import Block, Cell, Style, Table, TextLine, line, one_line, round_text
from callmark.reports.markdown import as_code, as_text, fit_sections, fold_lines, table
from callmark.reports.terminal import interval
from callmark.store.files import run_names
from callmark.summary.metrics import in_words, label_of

DECISION_STYLE: dict[Decision, Style] = {
    "regression": "bad",
    "inconclusive": "warn",
    "non_inferior": "good",
}
DECISION_WORDS: dict[Decision, str] = {
    "regression": "worse",
    "inconclusive": "inconclusive",
    "non_inferior": "not worse",
}
CHECK_WORD: dict[bool | None, tuple[str, Style]] = {
    True: ("POINT CHECK OK", "good"),
    False: ("POINT CHECK EXCEEDED", "bad"),
    None: ("POINT CHECK NOT COMPUTABLE", "warn"),
}
OTHER_WAYS = "--verbose shows all metrics, by tool, slice and locale; --html FILE both answers"
SHOWN_IDS = 6
LONGEST_ID = 60
GROUPS = {"tool": "by_tool", "slice": "by_slice", "locale": "by_locale"}


def comparison_blocks(comparison: Comparison, *, verbose: bool = False) -> Iterator[Block]:
    """The decision and what it rests on; `verbose`: what was not tested, too."""
    yield decision_line(comparison)
    yield from (line(text, indent=2) for text in facts(comparison))
    yield from (line(f"warning: {text}", "warn", indent=2) for text in comparison.warnings)
    yield from _primary(comparison)
    yield from _flips(comparison.flips)
    if verbose:
        yield from _exploratory(comparison)
        for title, field in GROUPS.items():
            yield from _groups(title, getattr(comparison, field))
    yield from _edits(comparison)
    if not verbose and any(one.difference for one in comparison.exploratory):
        yield line()
        yield line(OTHER_WAYS, "quiet")


def decision_line(comparison: Comparison) -> TextLine:
    check = comparison.point_check
    if check is not None and check_leads(comparison):
        word, style = CHECK_WORD[check.ok]
        return TextLine((Cell(word, style), Cell(f"  {check_text(check)}")))
    decision = Cell(comparison.decision.upper(), DECISION_STYLE[comparison.decision])
    return TextLine((decision, Cell(f"  {in_words(comparison.decision_reason)}")))


def check_leads(comparison: Comparison) -> bool:
    """Whoever asks for a point check reads its answer first, unless the tests found worse."""
    return comparison.point_check is not None and comparison.decision != "regression"


def check_text(check: PointCheck) -> str:
    return (
        f"{label_of(check.metric)} differs by {round_text(check.delta, check.limit)},"
        f" {check.limit:g} is allowed (a plain limit, no test)"
    )


_AGAIN = {
    (False, False): "as they were scored",
    (True, False): "A scored again",
    (False, True): "B scored again",
    (True, True): "both scored again",
}


def facts(comparison: Comparison) -> Iterator[str]:
    """Who was compared, how, and of the point check and the decision the one that does not lead."""
    yield f"A {comparison.a.path}"
    yield f"B {comparison.b.path}"
    pairs = comparison.pairs
    if comparison.paired:
        scored = _AGAIN[comparison.a.scored_again, comparison.b.scored_again]
        yield f"{pairs.paired} pairs, {pairs.dropped.count} dropped with an error; {scored}"
    else:
        yield "not paired: these are differences of two reports, nothing is tested"
    if pairs.quarantined.count:
        yield f"in quarantine, left out: {ids(pairs.quarantined)}"
    yield from past_texts(comparison.own_past)
    yield from (timing_text(name, pair) for name, pair in comparison.timing.items())
    check = comparison.point_check
    if check is None:
        return
    if not check_leads(comparison):
        yield f"{CHECK_WORD[check.ok][0].lower()}: {check_text(check)}"
    elif comparison.paired:
        yield f"the tests: {comparison.decision}; {in_words(comparison.decision_reason)}"


def past_texts(past: OwnPast) -> Iterator[str]:
    """Each sample against its own past, where there is more than one trial."""
    if past.status == "n/a":
        return
    if past.fallen:
        shown = [
            f"{one_line(one.sample_id, LONGEST_ID)} ({one.passed_a}/{one.trials_a} →"
            f" {one.passed_b}/{one.trials_b}, p {p_text(one.p_adjusted)})"
            for one in past.fallen[:SHOWN_IDS]
        ]
        left = past.fallen_count - len(shown)
        yield f"fell below their own past: {', '.join(shown)}{f' and {left} more' if left else ''}"
    if past.open.count:
        yield f"OPEN: pass less often, with too few trials to tell: {ids(past.open)}"
    if past.within.count:
        yield f"pass less often, within their own noise: {ids(past.within)}"
    if past.status == "pass":
        yield "no sample fell below its own past"


def timing_text(name: str, pair: SpendingPair) -> str:
    """One line of what a trial took."""
    unit = " s" if name == "latency" else ""
    a, b = ("unknown" if one is None else f"{one:.4g}{unit}" for one in (pair.a, pair.b))
    ratio = "" if pair.ratio is None else f" (× {pair.ratio:.2f})"
    kept = {True: "kept", False: "EXCEEDED", None: "cannot be checked"}[pair.ok]
    limit = "" if pair.limit is None else f"; limit × {pair.limit:g}: {kept}"
    return f"{name} of a trial: A {a}, B {b}{ratio}{limit}"


def sign_text(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def signed_interval(compared: Compared) -> str:
    if compared.ci_95 is None:
        return ""
    low, high = compared.ci_95
    return f"{low:+.3f} to {high:+.3f}"


def p_text(p: float | None) -> str:
    if p is None:
        return ""
    return f"{p:.3f}" if p >= 0.001 else "< 0.001"


def count_text(compared: Compared) -> str:
    """Samples that are worse and better."""
    return "" if compared.worse is None else f"{compared.worse} / {compared.better}"


def ids(listed: Listed) -> str:
    shown = [one_line(name, LONGEST_ID) for name in listed.sample_ids[:SHOWN_IDS]]
    more = f" and {listed.count - len(shown)} more" if listed.count > len(shown) else ""
    return ", ".join(shown) + more


def _primary(comparison: Comparison) -> Iterator[Block]:
    if not comparison.primary:
        return
    yield line()
    yield Table(
        ("decided by", "A", "B", "B - A", "n", ""),
        tuple(_primary_row(one) for one in comparison.primary),
        frozenset({1, 2, 3, 4}),
        elastic=frozenset({0}),
        notes=tuple(tuple(_primary_notes(one)) for one in comparison.primary),
    )


def _primary_row(one: Compared) -> tuple[Cell, ...]:
    decision = Cell("")
    if one.decision is not None:
        word = DECISION_WORDS[one.decision]
        decision = Cell(
            word if one.decision == "non_inferior" else word.upper(), DECISION_STYLE[one.decision]
        )
    return (*_numbers(one), decision)


def _primary_notes(one: Compared) -> Iterator[str]:
    """How sure the difference is, and why it was decided so."""
    found = (
        f"95 % interval {signed_interval(one)}" if one.ci_95 is not None else "",
        f"{one.worse} worse, {one.better} better" if one.worse is not None else "",
        f"p {p_text(one.p_adjusted)} (Holm)" if one.p_adjusted is not None else "",
    )
    told = "; ".join(filter(None, found))
    if told:
        yield told
    if one.reason is not None:
        yield in_words(one.reason)


def _numbers(one: Compared) -> tuple[Cell, ...]:
    return (
        Cell(label_of(one.metric)),
        Cell(round_text(one.a)),
        Cell(round_text(one.b)),
        Cell(sign_text(one.difference)),
        Cell(str(one.n)),
    )


def _exploratory(comparison: Comparison) -> Iterator[Block]:
    known = [one for one in comparison.exploratory if one.difference is not None]
    if not known:
        return
    yield line()
    yield Table(
        ("not tested", "A", "B", "B - A", "n", "worse / better"),
        tuple((*_numbers(one), Cell(count_text(one))) for one in known),
        frozenset({1, 2, 3, 4, 5}),
        elastic=frozenset({0}),
        notes=tuple((f"{one.metric}{_in_interval(one)}",) for one in known),
    )


def _in_interval(one: Compared) -> str:
    return f"; 95 % interval {signed_interval(one)}" if one.ci_95 is not None else ""


def _groups(title: str, groups: Mapping[str, Sequence[Compared]]) -> Iterator[Block]:
    rows = tuple(
        (Cell(name), *_numbers(one), Cell(count_text(one)))
        for name, metrics in groups.items()
        for one in metrics
        if one.difference or one.worse or one.better  # what stayed the same is in the JSON
    )
    if rows:
        columns = (title, "metric", "A", "B", "B - A", "n", "worse / better")
        yield line()
        yield Table(columns, rows, frozenset({2, 3, 4, 5, 6}), elastic=frozenset({0, 1}))


def _flips(flips: Mapping[str, Flips]) -> Iterator[Block]:
    found = {name: both for name, both in flips.items() if both.lost.count + both.gained.count}
    if not found:
        return
    yield line()
    yield line("samples that flipped", "strong")
    for name, both in found.items():
        if both.lost.count:
            text = f"{label_of(name)}, lost ({both.lost.count}): {ids(both.lost)}"
            yield line(text, "bad", indent=2)
        if both.gained.count:
            text = f"{label_of(name)}, gained ({both.gained.count}): {ids(both.gained)}"
            yield line(text, "good", indent=2)


def _edits(comparison: Comparison) -> Iterator[Block]:
    if not comparison.common:
        return
    pairs = comparison.pairs
    yield line()
    yield line(
        f"left out: {pairs.added.count} added, {pairs.removed.count} removed,"
        f" {pairs.changed.count} changed samples",
        "strong",
    )
    for word in ("added", "removed", "changed"):
        listed = getattr(pairs, word)
        if listed.count:
            where = ", ".join(f"{name} {n}" for name, n in pairs.changed_in.items())
            what = f" ({where})" if word == "changed" else ""
            yield line(f"{word}{what}: {ids(listed)}", indent=2)


MARKDOWN_IDS = 50
_WORDS = {
    "regression": "❌ Regression",
    "inconclusive": "⚠️ Inconclusive",
    "non_inferior": "✅ Not worse",
}
_CHECK_SIGN = {True: "✅", False: "❌", None: "⚠️"}
_NUMBERS = ("A", "B", "B − A", "95 % interval", "n", "worse / better")


def comparison_markdown(comparison: Comparison) -> str:
    return fit_sections(comparison_sections(comparison))


def comparison_sections(comparison: Comparison) -> Iterator[Sequence[str]]:
    yield [f"### {_headline(comparison)}", ""]
    warnings = (f"- **warning:** {as_text(warning)}" for warning in comparison.warnings)
    yield [*(f"- {as_text(fact)}" for fact in facts(comparison)), *warnings, ""]
    yield table(
        ("primary metric", *_NUMBERS, "p (Holm)", "decision"),
        [
            (*_row(one), p_text(one.p_adjusted), as_text((one.decision or "-").replace("_", " ")))
            for one in comparison.primary
        ],
    )
    for name, both in comparison.flips.items():
        for word, listed in (("lost", both.lost), ("gained", both.gained)):
            yield _samples(f"{label_of(name)}: {listed.count} {word}", listed)
    if comparison.common:
        for word in ("added", "removed", "changed"):
            listed = getattr(comparison.pairs, word)
            yield _samples(f"{listed.count} samples {word}, left out", listed)
    explored = [one for one in comparison.exploratory if one.difference is not None]
    yield fold_lines(
        "Exploratory metrics (not tested)",
        table(("metric", *_NUMBERS), [_row(one) for one in explored]),
    )
    for title, field in GROUPS.items():
        yield fold_lines(f"By {title}", _group(title, getattr(comparison, field)))


def _headline(comparison: Comparison) -> str:
    check = comparison.point_check
    if check is not None and check_leads(comparison):
        word = CHECK_WORD[check.ok][0].capitalize()
        return f"{_CHECK_SIGN[check.ok]} {word}: {as_text(check_text(check))}"
    word, reason = _WORDS[comparison.decision], in_words(comparison.decision_reason)
    return f"{word}: {as_text(reason.removeprefix('not worse: '))}"


def _row(one: Compared) -> tuple[str, ...]:
    return (
        f"{as_text(label_of(one.metric))} ({as_code(one.metric)})",
        round_text(one.a),
        round_text(one.b),
        sign_text(one.difference),
        signed_interval(one),
        str(one.n),
        count_text(one),
    )


def _group(title: str, groups: Mapping[str, Sequence[Compared]]) -> list[str]:
    rows = [
        (as_code(name, LONGEST_ID), *_row(one))
        for name, metrics in groups.items()
        for one in metrics
        if one.difference is not None
    ]
    return table((title, "metric", *_NUMBERS), rows)


def _samples(title: str, listed: Listed) -> list[str]:
    shown = [f"- {as_code(name, LONGEST_ID)}" for name in listed.sample_ids[:MARKDOWN_IDS]]
    if listed.count > len(shown):
        shown.append(f"- and {listed.count - len(shown)} more")
    return fold_lines(title, shown)


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
        _run_row(name, run, metric, one)
        for name, run, one in zip(names_of(matrix), matrix.runs, against, strict=True)
    )
    columns = ("run", "value", "95 % interval", "difference", "n", "")
    yield Table(columns, rows, frozenset({1, 2, 3, 4}), elastic=frozenset({0}))


def _alike(metric: Metric | None) -> str:
    if metric is None:
        return "no data in any run"
    spread = f" ({interval(metric)})" if metric.ci_95 else ""
    return f"{round_text(metric.value)}{spread} in all runs, n {metric.n}"


def _run_row(name: str, run: MeasuredRun, metric: str, one: Compared | None) -> tuple[Cell, ...]:
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
