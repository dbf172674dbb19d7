"""The tables of a report that a terminal shows on request: every gate with its numbers, metrics
without a gate, tools, locales and slices, and the samples behind each shortfall."""

from __future__ import annotations

from collections.abc import Iterator

from callmark.records.report import Failing, GateOutcome, Metric, MetricBlock, Report
from callmark.reports.layout import Block, Cell, Style, Table, line, one_line, round_text
from callmark.reports.terminal import (
    SHOWN_IDS,
    STATUS_STYLE,
    absent_gates,
    gates_of,
    interval,
    policy_text,
    repeat_text,
)
from callmark.summary.gates import wanted_text
from callmark.summary.metrics import in_words, label_of, labels_of, sentence_of

_BLOCK_COLUMNS = (
    "integration_f1_macro_lax",
    "integration_f1_macro_strict",
    "call_f1_macro",
    "privacy_ok_rate",
)


def table_blocks(report: Report) -> Iterator[Block]:
    yield from _gates(report)
    yield from _ungated(report)
    yield from _per_tool(report)
    yield from _groups("locale", report.locales)
    yield from _groups("slice", report.slices)
    yield from _failing(report)


def _gates(report: Report) -> Iterator[Block]:
    outcomes = gates_of(report)
    judged = [outcome for outcome in outcomes if outcome.status != "n/a"]
    if judged:
        yield line()
        yield Table(
            ("status", "gate", "value", "wanted", "n"),
            tuple(_gate_row(outcome) for outcome in judged),
            frozenset({2, 4}),
            elastic=frozenset({1}),
            notes=tuple(_gate_notes(one, report.metrics.get(one.name)) for one in judged),
        )
    for why, names in absent_gates(outcomes):
        yield line(f"n/a ({why}): {labels_of(names)} ({', '.join(names)})", "quiet", indent=2)


def _gate_row(outcome: GateOutcome) -> tuple[Cell, ...]:
    loud = outcome.status in ("inconclusive", "fail")
    style: Style = STATUS_STYLE[outcome.status]
    low = " (low end)" if outcome.compared == "ci_95_low" else ""
    return (
        Cell(outcome.status.upper() if loud else outcome.status, style),
        Cell(label_of(outcome.name)),
        Cell(round_text(outcome.value, outcome.bound)),
        Cell(wanted_text(outcome.op, outcome.bound) + low),
        Cell(str(outcome.n)),
    )


def _gate_notes(outcome: GateOutcome, metric: Metric | None) -> tuple[str, ...]:
    """Its key, for whoever sets its bound; how sure the value is; when it fails."""
    shown = interval(metric)
    loosened = " LOOSENED" if outcome.loosened else ""
    parts = [
        outcome.name,
        f"95 % interval {shown}" if shown else "",
        policy_text(outcome),
        f"from {outcome.source}{loosened}",
    ]
    reason = () if not outcome.reason else (in_words(outcome.reason),)
    return ("; ".join(filter(None, parts)), *reason)


def _ungated(report: Report) -> Iterator[Block]:
    gated = {outcome.name for outcome in report.gates}
    free = {name: metric for name, metric in report.metrics.items() if name not in gated}
    known = {name: metric for name, metric in free.items() if metric.value is not None}
    if known:
        yield line()
        yield Table(
            ("without a gate", "value", "n", "95 % interval"),
            tuple(
                (
                    Cell(label_of(name)),
                    Cell(round_text(metric.value)),
                    Cell(str(metric.n)),
                    Cell(interval(metric), "quiet"),
                )
                for name, metric in known.items()
            ),
            frozenset({1, 2}),
            notes=tuple((f"{name}: {sentence_of(name)}",) for name in known),
        )
    if report.repeat is not None:
        repeat = report.repeat
        yield line(repeat_text(repeat), indent=2)
        floors = {name: noise.floor for name, noise in repeat.noise.items() if name in gated}
        moving = ", ".join(
            f"{label_of(name)} {one:.3f}" for name, one in floors.items() if one >= 5e-4
        )
        if moving:
            what = "noise floor (95 of 100 pairs of equal runs of one trial differ by less)"
            yield line(f"{what}: {moving}", indent=2)


def _per_tool(report: Report) -> Iterator[Block]:
    if not report.per_tool_deltas:
        return
    yield line()
    yield Table(
        ("tool", "F1 lax", "F1 strict", "lax - strict", "n"),
        tuple(
            (
                Cell(tool),
                Cell(round_text(delta.lax)),
                Cell(round_text(delta.strict)),
                Cell(round_text(delta.delta_lax_minus_strict)),
                Cell(str(delta.sample_count)),
            )
            for tool, delta in report.per_tool_deltas.items()
        ),
        frozenset({1, 2, 3, 4}),
    )


def _groups(title: str, blocks: dict[str, MetricBlock]) -> Iterator[Block]:
    if not blocks:
        return
    yield line()
    yield Table(
        (title, "samples", "eligible", "F1 lax", "F1 strict", "call F1", "privacy"),
        tuple(
            (
                Cell(name),
                Cell(str(block.n)),
                Cell(str(block.num_eligible)),
                *(Cell(_value(block.metrics.get(column))) for column in _BLOCK_COLUMNS),
            )
            for name, block in blocks.items()
        ),
        frozenset(range(1, 7)),
    )


def _value(metric: Metric | None) -> str:
    return round_text(None if metric is None else metric.value)


def _failing(report: Report) -> Iterator[Block]:
    """What falls short of a gate that can fail, apart from what none decides about."""
    binding = {outcome.name for outcome in report.gates} - report.warning_gates
    failed = {name: short for name, short in report.failing.items() if name in binding}
    others = {name: short for name, short in report.failing.items() if name not in binding}
    yield from _list("samples to look at", failed)
    yield from _list("not failed, but worth a look (warnings, no gate)", others)


def _list(title: str, found: dict[str, Failing]) -> Iterator[Block]:
    found = {name: samples for name, samples in found.items() if samples.count}
    if not found:
        return
    yield line()
    yield line(title, "strong")
    for name, samples in found.items():
        ids = [one_line(sample_id, 60) for sample_id in samples.sample_ids[:SHOWN_IDS]]
        more = f" and {samples.count - len(ids)} more" if samples.count > len(ids) else ""
        yield line(f"{label_of(name)} ({samples.count}): {', '.join(ids)}{more}", indent=2)
