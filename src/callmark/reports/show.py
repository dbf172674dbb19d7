"""One conversation as a person reads it: prompt, turns, calls with their results, the answer with
its spans marked, and the evidence behind each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from callmark.records.claims import LABELS, Claim, Claims
from callmark.records.jsontext import Json, canonical_json
from callmark.records.results import CallDifferences, Result, Scores, SpanScore
from callmark.records.samples import ExtractorBy, describe_check
from callmark.records.trace import EntryStatus, TraceEntry
from callmark.reports.layout import Block, Cell, Style, Table, TextLine, line, one_line, round_text
from callmark.summary.failing import show_measure

SHOWN_JSON = 600
SHOWN_VALUE = 60
EXTRACTOR_WHY: dict[ExtractorBy, str] = {
    "flag": "an option says so",
    "config": "the settings file says so",
    "header": "the dataset's header says so",
    "wrapper": "the prompt wrapper asks for Integration:",
    "system_message": "a system message asks for Integration:",
    "teacher_text": "teacher_text has Integration:",
    "default": "nothing asks the model for Integration:",
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


def show_blocks(result: Result, *, full: bool = False) -> Iterator[Block]:
    """`full`: results and arguments are not cut."""
    limit = None if full else SHOWN_JSON
    yield from _head(result)
    yield from _prompt(result, limit)
    yield from _conversation(result, limit)
    if result.scores is not None:
        yield from _evidence(result)
        yield from _scores(result.scores)


def _head(result: Result) -> Iterator[Block]:
    kind = "not scored" if result.scores is None else result.scores.kind
    about = f"  trial {result.trial}, {kind}, {result.status}, stopped by {result.stop}"
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
    spans = () if result.scores is None else result.scores.spans
    answer = result.model_output.encode("utf-8")
    numbered = list(enumerate(result.tool_trace))
    if result.turns is None:
        yield from _calls(numbered, limit)
        yield from _answer("answer", answer, spans, 0, len(answer))
        return
    for turn, part in enumerate(result.turns, start=1):
        if part.end > part.start:
            yield from _answer(f"assistant, turn {turn}", answer, spans, part.start, part.end)
        yield from _calls([pair for pair in numbered if pair[1].turn == turn], limit)
        for said in result.said:
            if said.turn == turn:
                yield from _say("user", said.text, limit)
    placed = range(1, len(result.turns) + 1)
    yield from _calls([pair for pair in numbered if pair[1].turn not in placed], limit)


def _calls(numbered: Sequence[tuple[int, TraceEntry]], limit: int | None) -> Iterator[Block]:
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
        for problem in entry.schema_errors or filter(None, [entry.reason]):
            yield line(problem, "bad", indent=2)
        if entry.raw is not None and entry.status == "malformed":
            yield line(f"written: {one_line(entry.raw, limit)}", indent=2)
        if entry.repaired is not None:
            fixed = f"{entry.repaired.name} {_json(entry.repaired.arguments, limit)}"
            yield line(f"repaired, not scored: {fixed}", "quiet", indent=2)
        if entry.served:
            yield line(f"result: {_json(entry.result, limit)}", indent=2)


def _json(value: Json, limit: int | None) -> str:
    return one_line(canonical_json(value), limit)


def _answer(
    title: str, answer: bytes, spans: Sequence[SpanScore], start: int, end: int
) -> Iterator[Block]:
    yield line()
    yield line(title, "strong")
    cells: list[Cell] = []
    for text, style in _pieces(answer, spans, start, end):
        for number, part in enumerate(text.split("\n")):
            if number:
                yield TextLine(tuple(cells), indent=2)
                cells = []
            if part:
                cells.append(Cell(part, style))
    yield TextLine(tuple(cells), indent=2)


def _pieces(
    answer: bytes, spans: Sequence[SpanScore], start: int, end: int
) -> Iterator[tuple[str, Style]]:
    place = start
    for span in sorted(spans, key=lambda span: span.start):
        low, high = max(span.start, place), min(span.end, end)
        if low >= high:
            continue
        yield answer[place:low].decode("utf-8", "replace"), "plain"
        yield from _span_pieces(answer, span, low, high)
        place = high
    yield answer[place:end].decode("utf-8", "replace"), "plain"


def _span_pieces(
    answer: bytes, span: SpanScore, low: int, high: int
) -> Iterator[tuple[str, Style]]:
    """A span between marks, and in it the values with and without evidence. What a colour says to
    one reader, the marks say to another."""
    if not span.scored:
        yield answer[low:high].decode("utf-8", "replace"), "quiet"
        return
    style: Style = "grounded" if span.good else "ungrounded"
    before, after = ("[+", "+]") if span.good else ("[-", "-]")
    yield before, style
    place = low
    for start, end, label in _values(span):
        if place <= start < end <= high:
            yield answer[place:start].decode("utf-8", "replace"), style
            yield answer[start:end].decode("utf-8", "replace"), label
            place = end
    yield answer[place:high].decode("utf-8", "replace"), style
    yield after, style


def _values(span: SpanScore) -> list[tuple[int, int, Style]]:
    """Where in the answer something stands that a result proves, or that none does."""
    proved: set[tuple[int, int, Style]] = {
        (match.start, match.end, "supported") for match in span.matches
    }
    invented: set[tuple[int, int, Style]] = {
        (value.start, value.end, "unsupported")
        for value in span.values
        if value.label == "unsupported"
    }
    return sorted(proved | invented)


def _evidence(result: Result) -> Iterator[Block]:
    scores = result.scores
    if scores is None or not scores.spans:
        yield line()
        yield line(f"no span was found in the answer, {_read_with(result)}", "warn")
        return
    answer = result.model_output.encode("utf-8")
    rows = tuple(row for span in scores.spans for row in _span_rows(answer, span))
    yield line()
    yield line(f"[+…+] counts as grounded, [-…-] does not; {_read_with(result)}", "quiet")
    columns = ("bytes", "in the answer", "is", "call", "path", "value", "strict")
    yield Table(columns, rows, elastic=frozenset({1, 4, 5}))


def _read_with(result: Result) -> str:
    why = (
        "" if result.span_extractor_by is None else f" ({EXTRACTOR_WHY[result.span_extractor_by]})"
    )
    return f"read with {result.span_extractor}{why}"


def _span_rows(answer: bytes, span: SpanScore) -> Iterator[tuple[Cell, ...]]:
    for match in span.matches:
        yield (
            Cell(f"{match.start}-{match.end}"),
            Cell(_quote(answer, match.start, match.end)),
            Cell(f"{'supported' if match.cls == 'value' else match.cls} ({match.kind})", "good"),
            Cell("prompt" if match.call < 0 else str(match.call)),
            Cell(match.path or "/"),
            Cell(_excerpt(match.value, _quote(answer, match.start, match.end))),
            Cell("yes" if match.strict else "no"),
        )
    proved = {(match.start, match.end) for match in span.matches}
    for value in span.values:
        if (value.start, value.end) in proved:
            continue
        style: Style = "bad" if value.label == "unsupported" else "plain"
        yield (
            Cell(f"{value.start}-{value.end}"),
            Cell(_quote(answer, value.start, value.end)),
            Cell(f"{value.label} ({value.kind})", style),
            *(Cell("") for _ in range(4)),
        )


def _excerpt(value: Json, quoted: str) -> str:
    """A value, or of a long text the part around what the answer took from it."""
    text = value if isinstance(value, str) else canonical_json(value)
    if len(text) <= SHOWN_VALUE:
        return one_line(text)
    place = max(0, text.casefold().find(quoted.casefold()))
    start = max(0, place - SHOWN_VALUE // 6)
    end = start + SHOWN_VALUE
    return f"{'…' if start else ''}{one_line(text[start:end])}{'…' if end < len(text) else ''}"


def _quote(answer: bytes, start: int, end: int) -> str:
    return one_line(answer[start:end].decode("utf-8", "replace"), SHOWN_VALUE)


def _scores(scores: Scores) -> Iterator[Block]:
    yield line()
    if scores.kind != "eligible" and scores.spans_counted:
        found = f"{scores.lax.grounded} of {scores.spans_counted} spans grounded"
        yield line(f"{found}, {scores.strict.grounded} strictly" if scores.strict_keys else found)
    f1_counts = (("lax", scores.lax), *([("strict", scores.strict)] if scores.strict_keys else []))
    for name, part in f1_counts if scores.kind == "eligible" else ():
        yield line(
            f"{name:<6}  F1 {round_text(part.f1)}  precision {round_text(part.precision)} "
            f"({part.grounded} of {scores.spans_counted})  recall {round_text(part.recall)} "
            f"({part.found} of {scores.facts_required} by {scores.recall_kind})"
        )
    for name, verdict in _verdicts(scores):
        if verdict is not None:
            yield TextLine(
                (Cell(f"{name}: "), Cell("yes", "good") if verdict else Cell("no", "bad"))
            )
    for check in scores.checks:
        style: Style = "good" if check.ok else "bad"
        said = Cell("ok" if check.ok else str(check.reason), style)
        yield TextLine((Cell(f"{describe_check(check)}: "), said), indent=2)
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


SHOWN_SENTENCE = 200


def claims_blocks(claims: Claims) -> Iterator[Block]:
    yield line(f"{claims.values} values in the answers of {claims.trials} trials", "strong")
    if not claims.values:
        return
    yield line()
    rows = [*claims.by_kind.items(), ("all", claims.by_label)]
    yield Table(
        ("kind of value", "values", *LABELS),
        tuple(
            (
                Cell(kind),
                Cell(str(sum(counts.values()))),
                *(Cell(str(counts[label])) for label in LABELS),
            )
            for kind, counts in rows
        ),
        right=frozenset(range(1, len(LABELS) + 2)),
    )
    if claims.unsupported:
        yield line()
        yield line("supported by no result, said by nobody", "bad")
    before = None
    for claim in claims.unsupported:
        place = claim.sample_id, claim.trial, claim.sentence
        if place != before:
            yield line()
            yield line(f"{claim.sample_id}, trial {claim.trial}", "strong")
            yield line(one_line(claim.sentence, SHOWN_SENTENCE), indent=2)
        before = place
        yield TextLine((Cell(claim.value, "unsupported"), Cell(f"  {_nearest(claim)}")), indent=4)


def _nearest(claim: Claim) -> str:
    near = claim.nearest
    if near is None:
        return f"({claim.kind}) nothing in the results is near"
    value = near.value if isinstance(near.value, str) else canonical_json(near.value)
    return f"({claim.kind}) nearest: {one_line(value)}, call {near.call} {near.path or '/'}"
