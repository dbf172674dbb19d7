"""The statements of one answer: every rule asked, every finding told in one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from callmark.calls.registry import Registry
from callmark.grounding.checking import Checker, Finding
from callmark.grounding.deeds import DoneCall, find_deeds
from callmark.grounding.match import Said, Utterance, cut_value
from callmark.grounding.outline import Outline
from callmark.grounding.polarity import PolarFields
from callmark.grounding.reading import read_stated
from callmark.grounding.record_index import RecordIndex
from callmark.grounding.record_tree import Field, RecordTree, texts_in
from callmark.grounding.schedule import schedules_of, wrong_hours
from callmark.grounding.values import Value
from callmark.grounding.weekdays import find_days
from callmark.records.samples import CALL_FREE
from callmark.records.statements import FLAGS, RULES, Statement
from callmark.scorers.integration import TrialReading

_LONGEST = 80  # characters of a value in a sentence


class Statements(NamedTuple):
    """In the order of the answer. `findings` are the same with characters and leaves."""

    findings: tuple[Finding, ...]
    marks: tuple[Statement, ...]


def check_statements(reading: TrialReading, registry: Registry) -> Statements:
    """What the answer states after the first result was served. Where none was and none was asked
    for, there is nothing that it could speak of."""
    outline = Outline(reading.text)
    findings: list[Finding] = []
    if reading.served or reading.sample.expectation.kind not in CALL_FREE:
        tree = RecordTree(reading.served)
        index = RecordIndex(tree)
        values = read_stated(
            reading.text, reading.grounder.values, reading.sample.expectation.locale
        )
        findings += _check_values(reading, outline, index, values)
        findings += _check_weekdays(reading, index, values)
        findings += _check_polarity(reading, outline, index)
        findings += _check_hours(reading, outline, tree)
    findings += _check_deeds(reading, outline, registry)
    kept = [one for one in findings if reading.is_after_first_result((one.start, one.end))]
    kept.sort(key=lambda one: (one.start, one.end, one.rule))
    return Statements(tuple(kept), tuple(_mark(reading, one) for one in kept))


def _check_values(
    reading: TrialReading, outline: Outline, index: RecordIndex, values: list[Value]
) -> Iterator[Finding]:
    failed = [
        Utterance(one.turn or 0, text)
        for one in reading.served
        if one.error
        for text in texts_in(one.result)
    ]
    checker = Checker(
        outline,
        values,
        index,
        reading.said,
        reading.turn_at,
        Said(failed, reading.sample.expectation.locale) if failed else None,
    )
    return checker.check()


def _check_weekdays(
    reading: TrialReading, index: RecordIndex, values: list[Value]
) -> Iterator[Finding]:
    for day in find_days(reading.text, values, index.years_of):
        if day.named == day.actual:
            yield Finding(day.start, day.end, "derived", "weekday")
        else:
            because = f"that day is a {day.expected}"
            yield Finding(day.start, day.end, "contradicted", "weekday", (), because)


def _check_polarity(
    reading: TrialReading, outline: Outline, index: RecordIndex
) -> Iterator[Finding]:
    polar = PolarFields(index.tree)
    for said in polar.said_in(outline, index.names.mentions(reading.text) if polar else ()):
        field = said.polar.field
        if not field.counts_for(reading.turn_at(said.start)):
            continue
        if said.agrees:
            yield Finding(said.start, said.end, "supported", "polarity", (field,))
            continue
        rule = "unknown" if said.polar.state is None else "polarity"
        verb = "asserts" if said.asserted else "denies"
        because = f"the answer {verb} {field.key}"
        yield Finding(said.start, said.end, RULES[rule].label, rule, (field,), because)


def _check_hours(reading: TrialReading, outline: Outline, tree: RecordTree) -> Iterator[Finding]:
    schedules = schedules_of(tree)
    if len(schedules) != 1:  # whose hours are meant, nobody can tell
        return
    for wrong in wrong_hours(outline, schedules[0]):
        fields = () if wrong.field is None else (wrong.field,)
        if schedules[0].record.counts_for(reading.turn_at(wrong.start)):
            yield Finding(wrong.start, wrong.end, "contradicted", "hours", fields, wrong.because)


def _check_deeds(reading: TrialReading, outline: Outline, registry: Registry) -> Iterator[Finding]:
    for deed in find_deeds(outline, _done_calls(reading, registry), reading.turn_at):
        if deed.is_served:
            yield Finding(deed.start, deed.end, "supported", "deed")
        else:
            because = f"no call that was served did so ({deed.verb})"
            yield Finding(deed.start, deed.end, "unsupported", "deed", (), because)


def _done_calls(reading: TrialReading, registry: Registry) -> Iterator[DoneCall]:
    for entry in reading.trace.tool_trace:
        if entry.status == "ok" and entry.name is not None:
            spec = registry.spec(entry.name)
            turn = entry.turn if reading.trace.turns is not None else None
            yield DoneCall(turn, entry.name, "" if spec is None else spec.description)


def _mark(reading: TrialReading, one: Finding) -> Statement:
    to_bytes = reading.grounder.to_bytes
    field = one.fields[0] if one.fields else None
    is_flag = one.label in FLAGS
    return Statement(
        start=to_bytes(one.start),
        end=to_bytes(one.end),
        label=one.label,
        rule=one.rule,
        tier=RULES[one.rule].tier if is_flag else None,
        call=None if field is None else field.call,
        path=None if field is None else field.path,
        expected=cut_value(field.value, _LONGEST) if is_flag and field is not None else None,
        because=explain(reading.text, one) if is_flag else one.because,
    )


def explain(text: str, one: Finding) -> str:
    """`says 57; call 1 /flights/0/price has 120 (57 is the price of /flights/1)`."""
    said = " ".join(text[one.start : one.end].split())
    said = said if len(said) <= _LONGEST else f"{said[: _LONGEST - 1]}…"
    parts = [f"says “{said}”"]
    if one.fields:
        parts.append(_place(one.fields[0]))
    if one.because:
        parts.append(one.because)
    return "; ".join(parts)


def _place(field: Field) -> str:
    where = f"call {field.call}" if field.call >= 0 else "the prompt"
    return f"{where} {field.path or '/'} has {cut_value(field.value, _LONGEST)!r}"


def flagged(statements: Iterable[Statement]) -> list[Statement]:
    return [one for one in statements if one.is_flag]
