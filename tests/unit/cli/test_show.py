"""One conversation: what was said, called and served, and what the answer is built on."""

from typing import Any

import msgspec

from callmark.records.results import (
    ByteRange,
    CallDifferences,
    CallScore,
    Decoding,
    Fingerprints,
    Grounding,
    Match,
    PrivacyFinding,
    PrivacyScore,
    Result,
    Scores,
    SpanScore,
    ValueMark,
)
from callmark.records.trace import RepairedCall, TraceEntry, UserTurn
from callmark.reports.layout import plain_text
from callmark.reports.show import show_blocks

ANSWER = "Größe: 17 rows.\nAlso 99 columns."
FIRST, SECOND = ANSWER.encode().split(b"\n")
END = len(FIRST)


def span(text: bytes, lax: bool, **more: Any) -> SpanScore:
    start = ANSWER.encode().index(text)
    return SpanScore(start, start + len(text), True, lax, lax, True, lax, **more)


def scores() -> Scores:
    seventeen = ANSWER.encode().index(b"17")
    ninety = ANSWER.encode().index(b"99")
    match = Match(seventeen, seventeen + 2, 0, "/count", 17, "number", "value", True)
    spans = (
        span(FIRST[:-1], True, matches=(match,),
             values=(ValueMark(seventeen, seventeen + 2, "number", "supported"),)),
        span(SECOND[:-1], False, values=(ValueMark(ninety, ninety + 2, "number", "unsupported"),)),
    )  # fmt: skip
    grounding = Grounding(0.5, 1.0, 2 / 3, 1, 1)
    calls = CallScore(
        expected=1, observed=2, matched=1, attempts=2, valid_attempts=1, looked_up=1, hits=1,
        misses=0, differences=CallDifferences(extra=('web.open {"url":"x"}',)),
    )  # fmt: skip
    finding = PrivacyFinding("email", "medium", "answer", 0, 5, True)
    return Scores(
        kind="eligible", span_extractor="claims", spans=spans, spans_total=2, spans_over_cap=0,
        spans_counted=2, recall_kind="presence", facts_required=1, lax=grounding, strict=grounding,
        values={"supported": 1, "unsupported": 1}, calls=calls, call_f1=2 / 3,
        multi_call_parity_ok=None, json_args_valid=False, recovered=None, gave_up_honestly=None,
        controls_with_integration=None, negative_control_ok=None, clarify_ok=None,
        locale_probe_ok=None, unresolved=False, privacy_ok=True,
        privacy=PrivacyScore(True, (finding,), ("http://made.up",)),
    )  # fmt: skip


def entry(**more: Any) -> TraceEntry:
    plain = {
        "name": "web.search", "arguments": {"q": "rows"}, "result": {"count": 17}, "turn": 1,
        "raw": None, "status": "ok", "served_by": "fixture:exact",
    }  # fmt: skip
    return TraceEntry(**{**plain, **more})


def result(**more: Any) -> Result:
    broken = entry(status="malformed", result=None, served_by=None, name=None, arguments=None,
                   raw='<tool_call>{"name": ', reason="the JSON ends too early",
                   repaired=RepairedCall("web.open", {"url": "x"}))  # fmt: skip
    plain: dict[str, Any] = {
        "index": 0, "sample_id": "rows-01", "trial": 0, "prompt": "How many rows?", "metadata": {},
        "said": (UserTurn(2, "And columns?"),), "model_output": ANSWER,
        "turns": (ByteRange(0, 0), ByteRange(0, END), ByteRange(END + 1, len(ANSWER.encode()))),
        "reasoning": "", "tool_trace": (entry(), broken), "span_extractor": "claims",
        "scores": scores(), "status": "ok", "stop": "answer", "item_sha256": "",
        "used_fixtures_sha256": "", "offered_tools_sha256": "", "fingerprints": Fingerprints(),
        "decoding": Decoding(),
    }  # fmt: skip
    return Result(**{**plain, **more})


def shown(record: Result, **more: Any) -> str:
    return plain_text(show_blocks(record, **more))


def test_the_conversation_comes_in_order():
    text = shown(result())
    parts = ["rows-01", "How many rows?", "call 0", "assistant, turn 2", "17 rows", "And columns?",
             "assistant, turn 3", "99 columns", "F1 0.667"]  # fmt: skip
    places = [text.index(part) for part in parts]
    assert places == sorted(places)


def test_calls_show_their_verdict_and_their_result():
    text = shown(result())
    assert 'call 0  ok by fixture:exact  web.search {"q":"rows"}' in text
    assert 'result: {"count":17}' in text
    assert "call 1  malformed" in text
    assert "the JSON ends too early" in text
    assert 'repaired, not scored: web.open {"url":"x"}' in text


def test_a_call_says_what_its_status_means_and_what_the_scorer_has_against_it():
    calls = msgspec.structs.replace(scores().calls, errors=("call 0: unknown tool web.search",))
    trace = (
        entry(),
        entry(status="wrong_call", result=None, served_by=None),
        entry(status="unanswered", result=None, served_by=None),
        entry(status="miss", result=None, served_by=None),
    )
    scored = msgspec.structs.replace(scores(), calls=calls)
    text = shown(result(tool_trace=trace, scores=scored, turns=None))
    parts = ["call 0  ok", "  unknown tool web.search\n  result: ", "call 1  wrong_call",
             "  this sample does not expect it, and no fixture answers it\n", "call 2  unanswered",
             "  the recording has no result of it\n", "call 3  miss",
             "  no fixture answers it\n"]  # fmt: skip
    places = [text.index(part) for part in parts[:-1]]
    assert places == sorted(places)
    assert text.index(parts[-1], places[-1]) > places[-1]


def test_spans_are_marked_and_their_evidence_is_listed():
    text = shown(result())
    assert "[+Größe: 17 rows+]." in text
    assert "[-Also 99 columns-]." in text
    rows = [row.split() for row in text.splitlines()]
    assert ["9-11", "17", "supported", "(number)", "0", "/count", "17", "yes"] in rows
    assert ["23-25", "99", "unsupported", "(number)"] in rows


def test_scores_calls_and_privacy_are_explained():
    text = shown(result())
    assert 'extra: web.open {"url":"x"}' in text
    assert "valid arguments: no" in text
    assert "email in answer: medium, echoed" in text
    assert "invented URL: http://made.up" in text


def test_without_known_turns_the_calls_come_before_the_answer():
    text = shown(result(turns=None))
    assert text.index("call 0") < text.index("\nanswer\n") < text.index("17 rows")


def test_an_unscored_trial_shows_its_error():
    text = shown(result(scores=None, status="error", stop="error", error="no recorded answer"))
    assert "error: no recorded answer" in text


def test_long_results_are_cut_unless_asked_for():
    long = result(tool_trace=(entry(result={"text": "x" * 5000}),))
    assert len(shown(long)) < 3000 < len(shown(long, full=True))


def test_hostile_answers_do_not_reach_the_terminal():
    evil = "\x1b[2J\u202e\x9b"
    record = result(
        model_output=evil, turns=None, prompt=evil, scores=None,
        tool_trace=(entry(name=evil, arguments={evil: evil}, result=evil),),
    )  # fmt: skip
    assert not set(shown(record, full=True)) & set(evil[0] + "\u202e\x9b")


def test_the_record_may_come_from_a_file():
    again = msgspec.json.decode(msgspec.json.encode(result()), type=Result)
    assert shown(again) == shown(result())


def test_of_a_sample_that_expects_nothing_no_call_is_one_too_many():
    unclassified = msgspec.structs.replace(scores(), kind="unclassified", call_f1=None)
    text = shown(result(scores=unclassified))
    assert "extra:" not in text
    assert "F1" not in text
    assert "1 of 2 spans grounded, 1 strictly" in text
    assert "extra:" in shown(result(scores=msgspec.structs.replace(scores(), kind="control")))
