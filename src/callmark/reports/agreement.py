"""What people's verdicts make of the rules, as a person reads it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.records.statements import LabelAgreement, RuleAgreement
from callmark.reports.layout import Block, Cell, Table, line
from callmark.reports.markdown import table

COLUMNS = ("", "right", "judged", "precision", "95 %", "recall", "95 %")
RULE_COLUMNS = (*COLUMNS, "tier", "proposed")


def agreement_blocks(found: LabelAgreement) -> Iterator[Block]:
    for number, text in enumerate(_facts(found)):
        yield line(text, "strong" if number == 0 else "plain")
    for title, columns, rows in _tables(found):
        yield line()
        yield line(title, "strong")
        cells = tuple(tuple(Cell(text) for text in row) for row in rows)
        yield Table(columns, cells, right=frozenset(range(1, len(COLUMNS))))


def agreement_markdown(found: LabelAgreement) -> str:
    lines = ["## How far the flags agree with people", ""]
    lines += [f"{text}  " for text in _facts(found)]
    for title, columns, rows in _tables(found):
        lines += ["", f"**{title}**", "", *table(columns, rows)]
    return "\n".join(lines) + "\n"


def _tables(
    found: LabelAgreement,
) -> Iterator[tuple[str, tuple[str, ...], list[tuple[str, ...]]]]:
    yield "flags", COLUMNS, [_row(one) for one in (found.all_flags, found.firm_flags)]
    if found.rules:
        rows = [(*_row(one), one.tier or "", one.proposed or "–") for one in found.rules]
        yield "by rule", RULE_COLUMNS, rows
        yield "by label", COLUMNS, [_row(one) for one in found.labels]


def _facts(found: LabelAgreement) -> Iterator[str]:
    yield (
        f"{found.judged} of {found.lines} statements are judged: {found.wrong} are wrong"
        f" ({found.unclear} unclear, {found.unread} not read)"
    )
    yield (
        f"of {found.judged_unflagged} without a flag, {found.wrong_unflagged} are wrong:"
        " these are missed"
    )
    if found.read_twice:
        value = "not computable" if found.kappa is None else f"{found.kappa:.2f}"
        yield f"two readers: {found.alike} of {found.read_twice} verdicts alike, κ {value}"
    if found.all_flags.recall is not None:
        yield "recall is estimated for the whole run, from how many of each kind were read"


def _row(one: RuleAgreement) -> tuple[str, ...]:
    share = "–" if not one.judged else f"{one.right / one.judged:.2f}"
    recall = "–" if one.recall is None else f"{one.recall:.2f}"
    return (
        one.name,
        str(one.right),
        str(one.judged),
        share,
        _interval(one.precision),
        recall,
        _interval(one.recall_interval),
    )


def _interval(bounds: Sequence[float] | None) -> str:
    return "–" if bounds is None else f"{bounds[0]:.2f} to {bounds[1]:.2f}"
