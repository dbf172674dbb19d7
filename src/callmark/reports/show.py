"""One conversation as a person reads it: prompt, turns, calls with their results, the answer with
its spans and flags marked, and what each of its statements rests on."""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import msgspec
from msgspec import UNSET

from callmark.records.jsontext import Json, canonical_json
from callmark.records.results import (
    CallDifferences,
    Match,
    Result,
    Scores,
    SpanScore,
    Statement,
    list_invented,
)
from callmark.records.samples import ExtractorBy, describe_check
from callmark.records.statements import GOOD
from callmark.records.trace import EntryStatus, TraceEntry
from callmark.reports.layout import Block, Cell, Style, Table, TextLine, line, one_line, round_text
from callmark.summary.failing import (
    ORDER,
    StatementList,
    explain_flag,
)
from callmark.summary.metrics import label_words, rule_words
from callmark.summary.reasons import missing_facts, show_measure

SHOWN_JSON = 600
SHOWN_VALUE = 60
RECALL_WORDS = {"facts": "facts", "presence": "by presence"}
EXTRACTOR_WHY: dict[ExtractorBy, str] = {
    "flag": "an option says so",
    "config": "the settings file says so",
    "header": "the dataset's header says so",
    "wrapper": "the prompt wrapper asks for lines with Integration:",
    "system_message": "a system message asks for lines with Integration:",
    "teacher_text": "teacher_text has lines with Integration:",
    "default": "no prompt asks for lines with Integration:",
}
STATUS_STYLE: dict[EntryStatus, Style] = {
    "ok": "good",
    "error": "warn",
    "miss": "bad",
    "wrong_call": "bad",
    "malformed": "bad",
    "tool_not_offered": "bad",
    "tool_not_allowed": "bad",
    "invalid_arguments": "bad",
    "unanswered": "quiet",
}


# What a word of the table above does not say by itself.
STATUS_WHY: dict[EntryStatus, str] = {
    "miss": "no fixture answers it",
    "wrong_call": "this sample does not expect it, and no fixture answers it",
    "unanswered": "the recording has no result of it",
}


def show_blocks(result: Result, *, full: bool = False) -> Iterator[Block]:
    """`full`: results and arguments are not cut."""
    limit = None if full else SHOWN_JSON
    yield from _head(result)
    yield from _prompt(result, limit)
    yield from _conversation(result, limit)
    yield from _thought_calls(result, limit)
    if result.scores is not None:
        yield from _evidence(result)
        yield from _scores(result.scores, missing_facts(result))


def _ending(result: Result) -> str:
    """A log may end with a call: no limit was met then, though the trial wanted to go on."""
    limit = result.decoding.max_turns
    own = result.metadata.get("max_turns")
    turns = len(result.turns or ())
    if result.stop == "max_turns" and own is None and (limit is None or turns < limit):
        return "its recording ends with a call"
    return f"stopped by {result.stop}"


def _head(result: Result) -> Iterator[Block]:
    kind = "not scored" if result.scores is None else result.scores.kind
    about = f"  trial {result.trial}, {kind}, {result.status}, {_ending(result)}"
    yield TextLine((Cell(result.sample_id, "strong"), Cell(about)))
    if result.error:
        yield line(f"error: {result.error}", "bad", indent=2)


def _prompt(result: Result, limit: int | None) -> Iterator[Block]:
    messages: Sequence[dict[str, Json]]
    if isinstance(result.prompt, str):
        messages = [{"role": "user", "content": result.prompt}]
    else:
        messages = result.prompt
    for message in messages:
        content = message.get("content")
        text = content if isinstance(content, str) else canonical_json(content)
        yield from _say(str(message.get("role")), text, limit)


def _say(role: str, text: str, limit: int | None) -> Iterator[Block]:
    yield line()
    yield line(role, "strong")
    cut = text if limit is None or len(text) <= 4 * limit else text[: 4 * limit] + "…"
    yield from (line(part, indent=2) for part in cut.split("\n"))


def _conversation(result: Result, limit: int | None) -> Iterator[Block]:
    """Turn by turn where the turns are known, else all calls and then the answer."""
    answer = _PaintedAnswer(result)
    numbered = list(enumerate(result.tool_trace))
    notes = _notes_of_calls(result)
    if result.turns is None:
        yield from _calls(numbered, notes, limit)
        yield from _answer("answer", answer.pieces(0, answer.length))
        return
    for turn, part in enumerate(result.turns, start=1):
        if part.end > part.start:
            yield from _answer(f"assistant, turn {turn}", answer.pieces(part.start, part.end))
        here = [pair for pair in numbered if pair[1].turn == turn]
        yield from _calls(here, notes, limit)
        for said in result.said:
            if said.turn == turn:
                yield from _say("user", said.text, limit)
    placed = range(1, len(result.turns) + 1)
    elsewhere = [pair for pair in numbered if pair[1].turn not in placed]
    yield from _calls(elsewhere, notes, limit)


def _notes_of_calls(result: Result) -> Mapping[int, Sequence[Cell]]:
    """What is wrong with each call: with itself, for the scorer (a tool that was not offered), and
    with where its arguments come from."""
    notes: dict[int, list[Cell]] = {}
    errors = () if result.scores is None else result.scores.calls.errors
    for number, entry in enumerate(result.tool_trace):
        why = STATUS_WHY.get(entry.status)
        found = [*(entry.schema_errors or filter(None, [entry.reason or why]))]
        head = f"call {number}: "
        scored = [error.removeprefix(head) for error in errors if error.startswith(head)]
        known = [*found, *(error for error in scored if error not in found)]
        notes[number] = [Cell(text, "bad") for text in known]
    for one in list_invented(result):
        said = f" “{one.source}” in" if one.source else ""
        notes.setdefault(one.call, []).append(Cell(f"nobody gave{said} {one.path}", "warn"))
    return notes


def _thought_calls(result: Result, limit: int | None) -> Iterator[Block]:
    for one in () if result.thought_calls is msgspec.UNSET else result.thought_calls:
        what = f"{one.name or '(no name)'} {_json(one.arguments, limit)}"
        yield line(f"in reasoning, not made: {what}", "quiet")


def _calls(
    numbered: Sequence[tuple[int, TraceEntry]],
    notes: Mapping[int, Sequence[Cell]],
    limit: int | None,
) -> Iterator[Block]:
    for number, entry in numbered:
        served = f" by {entry.served_by}" if entry.served_by else ""
        yield line()
        yield TextLine(
            (
                Cell(f"call {number}  ", "strong"),
                Cell(entry.status, STATUS_STYLE[entry.status]),
                Cell(f"{served}  {entry.name or '(no name)'} {_json(entry.arguments, limit)}"),
            )
        )
        yield from (TextLine((note,), indent=2) for note in notes.get(number, ()))
        if entry.raw is not None and entry.status == "malformed":
            yield line(f"written: {one_line(entry.raw, limit)}", indent=2)
        if entry.repaired is not None:
            fixed = f"{entry.repaired.name} {_json(entry.repaired.arguments, limit)}"
            yield line(f"repaired, not scored: {fixed}", "quiet", indent=2)
        if entry.served:
            yield line(f"result: {_json(entry.result, limit)}", indent=2)


def _json(value: Json, limit: int | None) -> str:
    return one_line(canonical_json(value), limit)


def _answer(title: str, pieces: Iterator[Cell]) -> Iterator[Block]:
    yield line()
    yield line(title, "strong")
    cells: list[Cell] = []
    for text, style in pieces:
        for number, part in enumerate(text.split("\n")):
            if number:
                yield TextLine(tuple(cells), indent=2)
                cells = []
            if part:
                cells.append(Cell(part, style))
    yield TextLine(tuple(cells), indent=2)


class _Mark(NamedTuple):
    """Bytes of the answer and how they look. Of two that overlap the lower `rank` is seen."""

    rank: int
    start: int
    end: int
    style: Style
    before: str = ""
    after: str = ""


class _PaintedAnswer:
    """Spans stand between marks, and in them the values with and without evidence. What a colour
    says to one reader, the marks say to another."""

    def __init__(self, result: Result) -> None:
        scores = result.scores
        self._answer = result.model_output.encode("utf-8", "surrogatepass")
        self.length = len(self._answer)
        self._spans = [] if scores is None else sorted(scores.spans, key=lambda span: span.start)
        self._marks = [] if scores is None else _visible_marks(_marks_of(scores))
        self._starts = [mark.start for mark in self._marks]

    def pieces(self, start: int, end: int) -> Iterator[Cell]:
        place = start
        for span in self._spans:
            low, high = max(span.start, place), min(span.end, end)
            if low >= high:
                continue
            yield from self._paint(place, low, "plain")
            yield from self._span(span, low, high)
            place = high
        yield from self._paint(place, end, "plain")

    def _span(self, span: SpanScore, low: int, high: int) -> Iterator[Cell]:
        if not span.scored:
            yield from self._paint(low, high, "quiet")
            return
        if not span.counted:
            yield from self._paint(low, high, "plain")
            return
        style: Style = "grounded" if span.good else "ungrounded"
        before, after = ("[+", "+]") if span.good else ("[-", "-]")
        yield Cell(before, style)
        yield from self._paint(low, high, style)
        yield Cell(after, style)

    def _paint(self, start: int, end: int, style: Style) -> Iterator[Cell]:
        place = start
        at = max(0, bisect_right(self._starts, start) - 1)
        while at < len(self._marks) and self._marks[at].start < end:
            mark = self._marks[at]
            low, high = max(mark.start, place), min(mark.end, end)
            if low < high:
                yield Cell(self._text(place, low), style)
                yield Cell(f"{mark.before}{self._text(low, high)}{mark.after}", mark.style)
                place = high
            at += 1
        yield Cell(self._text(place, end), style)

    def _text(self, start: int, end: int) -> str:
        return self._answer[start:end].decode("utf-8", "replace")


def _marks_of(scores: Scores) -> Iterator[_Mark]:
    """What is wrong is seen before what is right, the firm before the advisory."""
    for one in scores.statements:
        if one.tier is not None:
            firm = one.tier == "firm"
            signs = ("{!", "!}") if firm else ("{?", "?}")
            style: Style = "unsupported" if firm else "warn"
            yield _Mark(0 if firm else 1, one.start, one.end, style, *signs)
        elif one.label in GOOD:
            yield _Mark(3, one.start, one.end, "supported")
    for span in scores.spans:
        for value in span.values if span.scored else ():
            if value.label == "unsupported":
                yield _Mark(2, value.start, value.end, "unsupported")
    for span in scores.spans:
        for match in span.matches if span.scored else ():
            yield _Mark(4, match.start, match.end, "supported")


def _visible_marks(marks: Iterator[_Mark]) -> list[_Mark]:
    """In the order of the answer, none over another: what lies under one is cut."""
    waiting = sorted(marks, key=lambda mark: mark.start)
    edges = sorted({edge for mark in waiting for edge in (mark.start, mark.end)})
    seen: list[_Mark] = []
    over: list[_Mark] = []
    at = 0
    for start, end in pairwise(edges):
        while at < len(waiting) and waiting[at].start <= start:
            heapq.heappush(over, waiting[at])
            at += 1
        while over and over[0].end <= start:
            heapq.heappop(over)
        if not over:
            continue
        top = over[0]
        last = seen[-1] if seen else None
        if last is not None and last.end == start and last[3:] == top[3:] and top.start < start:
            seen[-1] = last._replace(end=end)
        else:
            seen.append(top._replace(start=start, end=end))
    return seen


def _evidence(result: Result) -> Iterator[Block]:
    scores = result.scores
    if scores is None:
        return
    yield line()
    if not scores.spans:
        yield line(f"no span was found in the answer, {_read_with(result)}", "warn")
    else:
        yield line(f"[+…+] counts as grounded, [-…-] does not; {_read_with(result)}", "quiet")
    rows = _evidence_rows(result.model_output.encode("utf-8", "surrogatepass"), scores)
    if rows:
        columns = ("bytes", "in the answer", "is", "call", "path", "value", "strict")
        yield Table(columns, rows, elastic=frozenset({1, 4, 5}))
    yield from _flags(scores)


def _flags(scores: Scores) -> Iterator[Block]:
    """What is wrong in one sentence each, the firm ones first; then what all statements are."""
    if not scores.statements:
        return
    flags = sorted(
        (one for one in scores.statements if one.is_flag), key=lambda one: one.tier != "firm"
    )
    if flags:
        yield line()
        yield line(
            "{!…!} is a firm flag: it counts. {?…?} is an advisory one: it is only shown", "quiet"
        )
    for one in flags:
        style: Style = "bad" if one.is_firm else "warn"
        told = f"  {explain_flag(one)} (rule: {rule_words(one.rule)})"
        yield TextLine((Cell(f"{one.tier:<8}", style), Cell(told)), indent=2)
    counts = Counter(one.label for one in scores.statements)
    told = ", ".join(f"{counts[label]} {label_words(label)}" for label in ORDER if counts[label])
    yield line()
    yield line(f"statements: {told}")


def _read_with(result: Result) -> str:
    why = (
        "" if result.span_extractor_by is None else f" ({EXTRACTOR_WHY[result.span_extractor_by]})"
    )
    return f"read with {result.span_extractor}{why}"


def _evidence_rows(answer: bytes, scores: Scores) -> tuple[tuple[Cell, ...], ...]:
    """Statements, each beside the leaf that it rests on; what else grounds a span; and values of
    a marked span that no statement speaks of."""
    matches = {(match.start, match.end): match for span in scores.spans for match in span.matches}
    stated = {(one.start, one.end): one for one in scores.statements}
    rows: list[tuple[int, int, tuple[Cell, ...]]] = []
    for one in scores.statements:
        place = one.start, one.end
        match = matches.get(place) if one.label in GOOD else None
        rows.append((*place, _statement_row(answer, one, match)))
    for span in scores.spans:
        for match in span.matches:
            known = stated.get((match.start, match.end))
            if known is None or known.label not in GOOD:
                name = "supported" if match.cls == "value" else match.cls
                rows.append(
                    (match.start, match.end, _match_row(answer, match, f"{name} ({match.kind})"))
                )
        for value in span.values:
            place = value.start, value.end
            known = stated.get(place)
            if place in matches or (known is not None and known.label == value.label):
                continue
            style: Style = "bad" if value.label == "unsupported" else "plain"
            said = Cell(f"{value.label} ({value.kind})", style)
            rows.append((*place, (*_quoted(answer, *place), said, *_blank(4))))
    return tuple(row for *_, row in sorted(rows, key=lambda one: one[:2]))


def _statement_row(answer: bytes, one: Statement, match: Match | None) -> tuple[Cell, ...]:
    is_ = f"{label_words(one.label)} ({rule_words(one.rule)})"
    if match is not None:
        return _match_row(answer, match, is_)
    style: Style = "bad" if one.is_firm else "warn" if one.is_flag else "plain"
    head = (*_quoted(answer, one.start, one.end), Cell(is_, "good" if one.label in GOOD else style))
    if one.call is None:
        return (*head, *_blank(4))
    call = "prompt" if one.call < 0 else str(one.call)
    value = "" if one.expected is None else _excerpt(one.expected, "")
    return (*head, Cell(call), Cell(one.path or "/"), Cell(value), Cell(""))


def _match_row(answer: bytes, match: Match, is_: str) -> tuple[Cell, ...]:
    place, quoted = _quoted(answer, match.start, match.end)
    return (
        place,
        quoted,
        Cell(is_, "good"),
        Cell("prompt" if match.call < 0 else str(match.call)),
        Cell(match.path or "/"),
        Cell(_excerpt(match.value, quoted.text)),
        Cell("yes" if match.strict else "no"),
    )


def _quoted(answer: bytes, start: int, end: int) -> tuple[Cell, Cell]:
    text = answer[start:end].decode("utf-8", "replace")
    return Cell(f"{start}-{end}"), Cell(one_line(text, SHOWN_VALUE))


def _blank(cells: int) -> tuple[Cell, ...]:
    return (Cell(""),) * cells


def _excerpt(value: Json, quoted: str) -> str:
    """A value, or of a long text the part around what the answer took from it."""
    text = value if isinstance(value, str) else canonical_json(value)
    if len(text) <= SHOWN_VALUE:
        return one_line(text)
    place = max(0, text.casefold().find(quoted.casefold()))
    start = max(0, place - SHOWN_VALUE // 6)
    end = start + SHOWN_VALUE
    return f"{'…' if start else ''}{one_line(text[start:end])}{'…' if end < len(text) else ''}"


def _scores(scores: Scores, missing: Sequence[str]) -> Iterator[Block]:
    yield line()
    if scores.kind != "eligible" and scores.spans_counted:
        found = f"{scores.lax.grounded} of {scores.spans_counted} spans grounded"
        yield line(f"{found}, {scores.strict.grounded} strictly" if scores.strict_keys else found)
    f1_counts = (("lax", scores.lax), *([("strict", scores.strict)] if scores.strict_keys else []))
    for name, part in f1_counts if scores.kind == "eligible" else ():
        yield line(
            f"{name:<6}  F1 {round_text(part.f1)}  precision {round_text(part.precision)} "
            f"({part.grounded} of {scores.spans_counted})  recall {round_text(part.recall)} "
            f"({part.found} of {scores.facts_required} {RECALL_WORDS[scores.recall_kind]})"
        )
    if missing:
        yield line(f"missing facts: {', '.join(missing)}", "bad", indent=2)
    for name, verdict in _verdicts(scores):
        if verdict is not None:
            yield TextLine(
                (Cell(f"{name}: "), Cell("yes", "good") if verdict else Cell("no", "bad"))
            )
    for check in scores.checks:
        style: Style = "good" if check.ok else "bad"
        said = Cell("ok" if check.ok else str(check.reason), style)
        yield TextLine((Cell(f"{describe_check(check)}: "), said), indent=2)
    if scores.changes is not UNSET:
        became = "changed" if scores.changes else "unchanged"
        yield line(f"{became} from what was observed", "warn" if scores.changes else "plain")
        yield from (line(change, "warn", indent=2) for change in scores.changes)
    if scores.call_f1 is not None:
        yield line(f"call F1: {round_text(scores.call_f1)}")
    for name, value in scores.added.items():
        yield line(f"{name}: {show_measure(value)}")
    if scores.kind != "unclassified":
        yield from _differences(scores.calls.differences)
    for finding in scores.privacy.findings:
        echoed = ", echoed" if finding.echoed else ""
        yield line(f"{finding.kind} in {finding.where}: {finding.severity}{echoed}", indent=2)
    yield from (
        line(f"invented URL: {url}", "bad", indent=2) for url in scores.privacy.invented_urls
    )


def _differences(differences: CallDifferences) -> Iterator[Block]:
    for name, calls in (
        ("missing", differences.missing),
        ("extra", differences.extra),
        ("differs", differences.differing),
    ):
        yield from (line(f"{name}: {call}", "bad", indent=2) for call in calls)
    if differences.reordered:
        yield line("the calls came in another order", "bad", indent=2)


def _verdicts(scores: Scores) -> tuple[tuple[str, bool | None], ...]:
    contaminated = scores.controls_with_integration
    return (
        ("valid arguments", scores.json_args_valid),
        ("multi-call parity", scores.multi_call_parity_ok),
        ("recovered from the error", scores.recovered),
        ("control stayed clean", None if contaminated is None else contaminated == 0),
        ("negative control", scores.negative_control_ok),
        ("asked back", scores.clarify_ok),
        ("locale", scores.locale_probe_ok),
        ("privacy", scores.privacy_ok),
        ("checks", scores.checks_ok),
    )


def statement_blocks(listed: StatementList) -> Iterator[Block]:
    """Counts of all labels and rules, then every flag with its sentence."""
    yield line(f"{listed.statements} statements in the answers of {listed.trials} trials", "strong")
    if not listed.statements:
        return
    yield line()
    yield Table(
        ("label", "rule", "tier", "statements"),
        tuple(
            (
                Cell(label_words(row.label), _label_style(row.tier, row.label in GOOD)),
                Cell(rule_words(row.rule)),
                Cell(row.tier or ""),
                Cell(str(row.statements)),
            )
            for row in listed.by_rule
        ),
        right=frozenset({3}),
    )
    yield line()
    yield line(", ".join(f"{n} {label_words(label)}" for label, n in listed.by_label.items()))
    for tier, title in (("firm", "firm flags: they count"), ("advisory", "advisory flags: shown")):
        flags = [flag for flag in listed.flags if flag.tier == tier]
        if flags:
            yield line()
            yield line(f"{title} ({len(flags)})", "bad" if tier == "firm" else "warn")
        for flag in flags:
            where = f"{flag.sample_id}, trial {flag.trial}  "
            told = f"{explain_flag(flag)} (rule: {rule_words(flag.rule)})"
            yield TextLine((Cell(where, "strong"), Cell(told)), indent=2)


def _label_style(tier: str | None, is_good: bool) -> Style:
    if tier is not None:
        return "bad" if tier == "firm" else "warn"
    return "good" if is_good else "plain"
