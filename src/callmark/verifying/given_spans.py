"""Byte spans that an item states about its teacher's text, against what is really there."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from callmark.calls.attempts import ToolCall
from callmark.calls.ledger import read_turn
from callmark.core.jsontext import Json, NotJson, canonical_json, parse_json
from callmark.core.results import Result
from callmark.core.samples import Sample
from callmark.core.scores import Scores
from callmark.running.formats import installed_formats

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
        text = unicodedata.normalize("NFC", text).replace("\r\n", "\n").replace("\r", "\n")
    data = text.encode("utf-8", "surrogatepass")
    problems: list[str] = []
    for field in (INTEGRATION, ARGUMENTS):
        given = sample.metadata.get(field)
        if given is None:
            continue
        spans = [_span(entry) for entry in given]
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


def _arguments(sample: Sample, text: str, offered: frozenset[str]) -> list[Json]:
    attempts = read_turn(text, offered=offered, formats=installed_formats()).attempts
    written = [attempt.arguments for attempt in attempts if isinstance(attempt, ToolCall)]
    expected = [call.arguments for call in sample.expectation.calls if call.arguments is not None]
    return written or expected


def _found_spans(scores: Scores | None) -> list[ByteSpan]:
    return [] if scores is None else [(span.start, span.end) for span in scores.spans]


def _span(entry: Json) -> ByteSpan:
    start, end = (entry["start"], entry["end"]) if isinstance(entry, dict) else entry
    return int(start), int(end)  # JSON Schema takes 3.0 for an integer


def _is_text(data: bytes, span: ByteSpan) -> bool:
    """In range, not empty, and no character is cut in two."""
    start, end = span
    if not start < end <= len(data):
        return False
    return not any(at < len(data) and data[at] & 0xC0 == 0x80 for at in span)
