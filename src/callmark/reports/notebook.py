"""What a notebook shows of a report and of a trial: a little HTML, without scripts, in which every
text of a model or a dataset is text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from callmark.records.jsontext import canonical_json
from callmark.records.report import Report
from callmark.records.results import Result, Statement
from callmark.records.trace import TraceEntry
from callmark.reports.layout import neutralise, round_text
from callmark.reports.terminal import gates_of, verdict_text
from callmark.summary.failing import explain_flag
from callmark.summary.gates import wanted_text
from callmark.summary.metrics import in_words, label_of, label_words, sentence_of
from callmark.summary.reasons import why_failed

LONGEST = 2000  # characters of one text
_COLOURS = {"pass": "#1a7f37", "fail": "#c62828", "warn": "#9a6700", "inconclusive": "#9a6700"}
_CELL = "text-align:left;padding:.1em .8em .1em 0;vertical-align:top"


def draw_report(report: Report) -> str:
    """The verdict and the gates that say something, the most urgent first."""
    gates = [gate for gate in gates_of(report) if gate.status != "n/a"]
    rows = [
        (
            _coloured(gate.status),
            f'<span title="{_text(sentence_of(gate.name))}">{_text(label_of(gate.name))}</span>',
            _text("no value" if gate.value is None else round_text(gate.value, gate.bound)),
            _text(wanted_text(gate.op, gate.bound)),
            str(gate.n),
            _text(in_words(gate.reason or "")),
        )
        for gate in gates
    ]
    counts = report.counts
    return (
        f"<div><p><b>{_coloured(report.verdict)}</b> {_text(verdict_text(report))}</p>"
        f"<p>{counts.samples} samples, {counts.eligible} of them need a tool;"
        f" {counts.trials} trials</p>"
        f"{_table(('', 'gate', 'value', 'wanted', 'n', ''), rows)}</div>"
    )


def draw_result(result: Result) -> str:
    """The answer first, with its flags, then the calls that it rests on."""
    reasons = why_failed(result)
    state = _coloured("fail" if reasons else "pass")
    scores = result.scores
    statements = () if scores is None else scores.statements
    flags = [f"<li>{_text(explain_flag(one))}</li>" for one in statements if one.is_flag]
    told = "".join(f"<li>{_text(in_words(reason))}</li>" for reason in reasons)
    calls = "".join(f"<li>{_call(entry)}</li>" for entry in result.tool_trace)
    return (
        f"<div><p><b>{_text(result.sample_id)}</b>, trial {result.trial}: {state}</p>"
        f"<ul>{told}</ul><p>{''.join(_marked(result.model_output, statements))}</p>"
        f"<ul>{''.join(flags)}</ul><ol start='0'>{calls}</ol></div>"
    )


def _marked(output: str, statements: Sequence[Statement]) -> Iterator[str]:
    """The answer with its statements underlined: flags in red (firm) or amber (advisory)."""
    data = output.encode("utf-8", "surrogatepass")[: 4 * LONGEST]
    at = 0
    for one in sorted(statements, key=lambda one: (one.start, one.end)):
        if one.start < at or one.end > len(data):
            continue
        colour = "#1a7f37" if not one.is_flag else "#c62828" if one.is_firm else "#9a6700"
        if one.label == "unchecked":
            colour = "#8c959f"
        yield _bytes(data[at : one.start])
        style, title = f"border-bottom:2px solid {colour}", _text(label_words(one.label))
        yield f'<span style="{style}" title="{title}">{_bytes(data[one.start : one.end])}</span>'
        at = one.end
    yield _bytes(data[at:])


def _call(entry: TraceEntry) -> str:
    call = f"{entry.name or '(no name)'} {canonical_json(entry.arguments)}"
    result = "" if entry.result is None else f" → {canonical_json(entry.result)}"
    return f"<code>{_text(call)}</code>{_text(result)} ({_text(entry.status)})"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Cells are HTML already."""
    lines = [_row("th", head), *(_row("td", row) for row in rows)]
    return f"<table>{''.join(lines)}</table>"


def _row(kind: str, cells: Sequence[str]) -> str:
    inner = "".join(f'<{kind} style="{_CELL}">{cell}</{kind}>' for cell in cells)
    return f"<tr>{inner}</tr>"


def _coloured(status: str) -> str:
    return f'<span style="color:{_COLOURS.get(status, "#57606a")}">{_text(status.upper())}</span>'


def _bytes(data: bytes) -> str:
    return _text(data.decode("utf-8", "replace"))


def _text(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return escape(neutralise(cut)).replace("\n", "<br>")
