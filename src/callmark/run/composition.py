"""What the dataset's own gates ask: is every kind of item there, often enough, and checkable?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from callmark.calls.attempts import ToolCall, entry_for
from callmark.calls.ledger import read_turn
from callmark.calls.registry import Registry
from callmark.datasets.stats import LONG_BYTES, LONG_CONTEXT, Cell, cell_of, prompt_bytes
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    parse_json,
    want_list,
    want_number,
)
from callmark.records.problems import MAX_PROBLEMS
from callmark.records.report import FAILING_CAP, Failing, Metric, Number
from callmark.records.results import Result, Scores
from callmark.records.samples import ExpectedCall, Sample, explain_check
from callmark.records.seams import Failure, Reply
from callmark.records.trace import TraceEntry, answer_entry, compose_text
from callmark.run.offers import Offer, installed_formats
from callmark.scorers.calls import expected_call, match_calls, observed_call
from callmark.stats.estimates import SampledValue
from callmark.summary.metrics import Measure

INTEGRATION = "integration_spans_bytes"
ARGUMENTS = "json_args_spans_bytes"
# What `spans_target` calls the text that is at hand.
TEACHER = frozenset({None, "teacher", "teacher_text"})

ByteSpan = tuple[int, int]


def gives_spans(sample: Sample) -> bool:
    return any(sample.metadata.get(field) is not None for field in (INTEGRATION, ARGUMENTS))


def can_be_checked(sample: Sample, result: Result) -> bool:
    return result.scores is not None and sample.metadata.get("spans_target") in TEACHER


def span_problems(sample: Sample, result: Result, offered: frozenset[str]) -> list[str]:
    """What is wrong with the spans of an item that has a score; [] if nothing is."""
    text = sample.teacher_text or ""
    if sample.expectation.normalise_text:
        text = compose_text(text)
    data = text.encode("utf-8", "surrogatepass")
    problems: list[str] = []
    for field in (INTEGRATION, ARGUMENTS):
        given = sample.metadata.get(field)
        if given is None:
            continue
        spans = [_span(entry) for entry in want_list(given)]
        bad = next((span for span in spans if not _is_text(data, span)), None)
        if bad is not None:
            problems.append(f"{field}: {list(bad)} is no piece of a text of {len(data)} bytes")
        elif field == INTEGRATION:
            problems += _integration_problem(spans, data, result)
        else:
            problems += _arguments_problem(spans, data, _arguments(sample, text, offered))
    return problems


def _integration_problem(spans: Sequence[ByteSpan], data: bytes, result: Result) -> list[str]:
    """Given spans must be those that the extractor finds, no more and no fewer."""
    output = result.model_output.encode("utf-8", "surrogatepass")
    found = _found_spans(result.scores)
    shift = data.find(output)
    if shift >= 0:
        found = [(start + shift, end + shift) for start, end in found]
        same = sorted(spans) == sorted(found)
    else:  # calls or thinking were cut out of the text: places moved, pieces did not
        pieces = [output[start:end] for start, end in found]
        same = [data[start:end] for start, end in sorted(spans)] == pieces
    if same:
        return []
    there = [list(span) for span in found]
    what = f"{[list(span) for span in spans]} are given, {result.span_extractor} finds {there}"
    return [f"{INTEGRATION}: {what}"]


def _arguments_problem(
    spans: Sequence[ByteSpan], data: bytes, arguments: Sequence[Json]
) -> list[str]:
    """Each must hold the JSON of the arguments of one call, in the order of the calls."""
    if len(spans) != len(arguments):
        return [f"{ARGUMENTS}: {len(spans)} are given for {len(arguments)} calls with arguments"]
    for (start, end), wanted in zip(spans, arguments, strict=True):
        try:
            value = parse_json(data[start:end])
        except NotJson as error:
            return [f"{ARGUMENTS}: {[start, end]} is {error}"]
        if canonical_json(value) != canonical_json(wanted):
            return [f"{ARGUMENTS}: {[start, end]} holds other arguments than the call"]
    return []


def _arguments(sample: Sample, text: str, offered: frozenset[str]) -> list[dict[str, Json]]:
    attempts = read_turn(text, offered=offered, formats=installed_formats()).attempts
    written = [attempt.arguments for attempt in attempts if isinstance(attempt, ToolCall)]
    expected = [call.arguments for call in sample.expectation.calls if call.arguments is not None]
    return written or expected


def _found_spans(scores: Scores | None) -> list[ByteSpan]:
    return [] if scores is None else [(span.start, span.end) for span in scores.spans]


def _span(entry: Json) -> ByteSpan:
    pair = (entry["start"], entry["end"]) if isinstance(entry, dict) else want_list(entry)
    start, end = map(want_number, pair)
    return int(start), int(end)  # JSON Schema takes 3.0 for an integer


def _is_text(data: bytes, span: ByteSpan) -> bool:
    """In range, not empty, and no character is cut in two."""
    start, end = span
    if not start < end <= len(data):
        return False
    return not any(at < len(data) and data[at] & 0xC0 == 0x80 for at in span)


NO_TEXT = "there is no teacher_text"
NO_TEXTS = "no item has an answer of its own (teacher_text)"


def teacher_reply(
    sample: Sample, offered: frozenset[str], *, has_fixtures: bool
) -> Reply | Failure:
    """The calls of `call_sequence`, or those that the text holds. Without fixtures they are
    answered by `tool_result_fields`: the k-th entry of a list answers the k-th call, an object
    answers every call. Failure: what cannot be verified, and why."""
    text = sample.teacher_text
    if text is None:
        return Failure(NO_TEXT)
    recorded = None if has_fixtures else sample.metadata.get("tool_result_fields")
    expected, formats = sample.expectation.calls, installed_formats()
    if recorded is None and any(call.arguments is None for call in expected):
        if not read_turn(text, offered=offered, formats=formats).attempts:
            return Failure("call_sequence: a call has no arguments, and teacher_text makes none")
        expected = ()
    count = len(expected)
    if recorded is not None and not expected:
        count = len(read_turn(text, offered=offered, formats=formats).attempts)
    answers = recorded_answers(recorded, count)
    if isinstance(answers, Failure):
        return answers
    calls = tuple(entry_of_call(call, answers[at : at + 1]) for at, call in enumerate(expected))
    return Reply(
        text=text,
        calls=calls or None,
        answers=() if calls else tuple(answers),
        ends=True,
        ordered=False,
    )


def calls_disagree(sample: Sample, offered: frozenset[str], registry: Registry) -> bool:
    """Whether the text makes calls, but not those that the item says the teacher made."""
    text, schema_of = sample.teacher_text or "", registry.parameters
    attempts = read_turn(
        text, offered=offered, formats=installed_formats(), schema_of=schema_of
    ).attempts
    if not attempts or not sample.expectation.calls:
        return False
    expected = [expected_call(call, registry) for call in sample.expectation.calls]
    known = offered | {call.name for call in expected}
    written = [observed_call(entry_for(attempt, None), registry, known) for attempt in attempts]
    return not len(match_calls(expected, written)) == len(expected) == len(written)


def recorded_answers(recorded: Json, calls: int) -> Sequence[Json] | Failure:
    """Recorded results in the order of the calls; calls beyond them find no answer."""
    if not isinstance(recorded, list):
        return () if recorded is None else [recorded] * calls
    if len(recorded) > calls:
        return Failure(f"tool_result_fields: {len(recorded)} results for {calls} calls")
    return recorded


def entry_of_call(call: ExpectedCall, answer: Sequence[Json]) -> TraceEntry:
    # Where any arguments are right, there is nothing that the schema could be held against.
    unknown = call.arguments is None
    entry = TraceEntry(
        name=call.name,
        arguments={} if unknown else call.arguments,
        result=None,
        turn=None,
        raw=None,
        status="unanswered",
        served_by=None,
        schema_errors=() if unknown else None,
    )
    return answer_entry(entry, answer[0]) if answer else entry


LONG_FROM = 40  # items: a smaller dataset needs no long context
NAMED = 5  # cells or ids in one sentence


class Ids:
    """Counts all, keeps the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[str] = []

    def add(self, sample_id: str) -> None:
        self.count += 1
        if len(self.first) < FAILING_CAP:
            self.first.append(sample_id)

    def failing(self) -> Failing:
        return Failing(self.count, tuple(self.first))

    def named(self) -> str:
        more = f" and {self.count - NAMED} more" if self.count > NAMED else ""
        return ", ".join(self.first[:NAMED]) + more


class _CellTally:
    """One cell: how many items, and who they are as long as that are few."""

    __slots__ = ("count", "ids")

    def __init__(self) -> None:
        self.count = 0
        self.ids: list[str] = []


class Composition:
    """Takes every item with its verdict, once, in the order of the dataset."""

    def __init__(self, smallest_cell: Number) -> None:
        self._smallest_cell = smallest_cell
        self._cells: dict[Cell, _CellTally] = {}
        self._items = 0
        self.texts = 0
        self._controls = 0
        self._long = 0
        self._with_spans = 0
        self._checked_spans = 0
        self.unverified = Ids()
        self.short = Ids()
        self.other_calls = Ids()
        self.wrong_spans = Ids()
        self.unjudged_turns = Ids()
        self.broken_checks: list[str] = []
        self.first_wrong_span = ""

    def add(self, sample: Sample, result: Result, offer: Offer) -> None:
        self._items += 1
        self.texts += sample.teacher_text is not None
        self._controls += sample.expectation.kind == "control"
        if result.scores is None:
            self.unverified.add(sample.sample_id)
        else:
            self.broken_checks += (
                f"{sample.sample_id}: {explain_check(one)}"
                for one in result.scores.checks
                if not one.ok and len(self.broken_checks) < MAX_PROBLEMS
            )
        if LONG_CONTEXT in sample.expectation.slices:
            self._long += 1
            if prompt_bytes(sample.prompt) < LONG_BYTES:
                self.short.add(sample.sample_id)
        cell = cell_of(sample.metadata)
        if cell is not None:
            self._count_cell(cell, sample.sample_id)
        if gives_spans(sample):
            self._check_spans(sample, result, offer.names)
        if calls_disagree(sample, offer.names, offer.registry):
            self.other_calls.add(sample.sample_id)

    def measures(self) -> dict[str, Measure]:
        smallest = min((cell.count for cell in self._cells.values()), default=None)
        items = self._items
        return {
            "dataset_teacher_texts": msgspec.structs.replace(
                share_of(items - self.unverified.count, items if self.texts else 0),
                absent=NO_TEXTS,
            ),
            "dataset_cells": _measure(
                Metric(value=smallest, n=sum(cell.count for cell in self._cells.values()))
            ),
            "dataset_controls": share_of(self._controls, items),
            "dataset_long_contexts": share_of(self._long, items if items >= LONG_FROM else 0),
            "dataset_spans": share_of(
                self._checked_spans - self.wrong_spans.count,
                self._checked_spans,
                population=self._with_spans,
            ),
        }

    def failing(self) -> dict[str, Failing]:
        small = Ids()
        for _, cell in self._small_cells():
            for sample_id in cell.ids:
                small.add(sample_id)
        lists = {
            "dataset_teacher_texts": self.unverified,
            "dataset_cells": small,
            "dataset_spans": self.wrong_spans,
        }
        return {name: ids.failing() for name, ids in lists.items() if ids.count}

    def reasons(self) -> Mapping[str, Callable[[], str]]:
        """What to say of a gate that did not pass."""
        return {
            "dataset_teacher_texts": self._why_unverified,
            "dataset_cells": self._why_cells,
            "dataset_spans": self._why_spans,
            "dataset_long_contexts": lambda: f"{self._long} of {self._items} items",
            "dataset_controls": lambda: f"{self._controls} of {self._items} items",
        }

    def warnings(self) -> list[str]:
        found = {
            f"of {self._long} items that call themselves long contexts have a prompt of fewer than"
            f" {LONG_BYTES} bytes": self.short,
            "items: teacher_text makes other calls than call_sequence says": self.other_calls,
            "items: a teacher_text has no turns, so max_turns of their checks was not judged": (
                self.unjudged_turns
            ),
        }
        named = [f"{ids.count} {what}: {ids.named()}" for what, ids in found.items() if ids.count]
        return [*named, *(f"teacher_text fails a check: {what}" for what in self.broken_checks)]

    def _count_cell(self, key: Cell, sample_id: str) -> None:
        cell = self._cells.get(key)
        if cell is None:
            cell = self._cells[key] = _CellTally()
        cell.count += 1
        if cell.count >= self._smallest_cell:
            cell.ids.clear()
        elif len(cell.ids) < FAILING_CAP:
            cell.ids.append(sample_id)

    def _check_spans(self, sample: Sample, result: Result, offered: frozenset[str]) -> None:
        self._with_spans += 1
        if not can_be_checked(sample, result):
            return
        self._checked_spans += 1
        problems = span_problems(sample, result, offered)
        if problems:
            self.first_wrong_span = self.first_wrong_span or f"{sample.sample_id}: {problems[0]}"
            self.wrong_spans.add(sample.sample_id)

    def _small_cells(self) -> list[tuple[Cell, _CellTally]]:
        return [
            (key, cell)
            for key, cell in sorted(self._cells.items())
            if cell.count < self._smallest_cell
        ]

    def _why_unverified(self) -> str:
        count = self.unverified.count
        return f"{count} of {self._items} items cannot be verified: {self.unverified.named()}"

    def _why_cells(self) -> str:
        small = self._small_cells()
        named = [f"{key[0]} × {key[1]} has {cell.count}" for key, cell in small[:NAMED]]
        more = f" and {len(small) - NAMED} more cells" if len(small) > NAMED else ""
        return ", ".join(named) + more

    def _why_spans(self) -> str:
        if self.wrong_spans.count:
            return self.first_wrong_span
        unchecked = self._with_spans - self._checked_spans
        others = f"; the text of {unchecked} items is not at hand" if unchecked else ""
        return f"no tokenizer: whether spans begin and end with a token was not checked{others}"


def share_of(part: int, whole: int, *, population: int | None = None) -> Measure:
    metric = Metric(
        value=part / whole if whole else None, numerator=part, denominator=whole, n=whole
    )
    return msgspec.structs.replace(
        _measure(metric), population=whole if population is None else population
    )


def _measure(metric: Metric) -> Measure:
    """Exact numbers, no estimate: there is nothing to draw an interval from."""
    return Measure(metric, metric.n, lambda: SampledValue("mean", ((),)))
