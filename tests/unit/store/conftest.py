"""A complete result that tests change where they need to."""

import pytest

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

MATCH = Match(13, 16, 0, "/hits/0/year", 1894, "number", "value", True)
SPAN = SpanScore(
    13, 20, True, True, True, True, True, (MATCH,), (ValueMark(13, 17, "number", "supported"),)
)
ENTRY = TraceEntry(
    name="web.search",
    arguments={"q": "bridge", "top_k": 3},
    result={"hits": [{"year": 1894, "snippet": "Ünïcode 桥 \u2028"}]},
    turn=1,
    raw='{"q": "bridge"}',
    status="ok",
    served_by="fixture:exact",
    schema_errors=(),
    key_normalized={"q": "bridge", "top_k": 3},
)
BROKEN = TraceEntry(
    name=None,
    arguments=None,
    result=None,
    turn=1,
    raw="<tool_call>{",
    status="malformed",
    served_by=None,
    format="hermes",
    reason="not JSON",
    repaired=RepairedCall("web.search", {"q": "b"}),
    call_id="c1",
)
SCORES = Scores(
    kind="eligible",
    span_extractor="marker",
    spans=(SPAN,),
    spans_total=1,
    spans_over_cap=0,
    spans_counted=1,
    recall_kind="presence",
    facts_required=1,
    lax=Grounding(1.0, 1.0, 1.0, 1, 1),
    strict=Grounding(1.0, 1.0, 1.0, 1, 1),
    values={"supported": 1, "derived": 0, "user_said": 0, "unsupported": 0},
    calls=CallScore(
        expected=1,
        observed=1,
        matched=1,
        attempts=2,
        valid_attempts=1,
        looked_up=1,
        hits=1,
        misses=0,
        differences=CallDifferences(missing=("x {}",)),
        errors=("call 2: not JSON",),
    ),
    call_f1=0.1 + 0.2,
    multi_call_parity_ok=None,
    json_args_valid=False,
    recovered=None,
    gave_up_honestly=None,
    controls_with_integration=None,
    negative_control_ok=None,
    clarify_ok=None,
    locale_probe_ok=None,
    unresolved=False,
    privacy_ok=True,
    privacy=PrivacyScore(True, (PrivacyFinding("email", "medium", "answer", 0, 3, True),), ("u",)),
)


@pytest.fixture(scope="session")
def make_result():
    def make(**changes) -> Result:
        fields = {
            "index": 0,
            "sample_id": "a",
            "trial": 0,
            "prompt": "How old?",
            "metadata": {"sample_id": "a", "mine": [1.5, None, {"x": "ü"}]},
            "said": (UserTurn(1, "And now?"),),
            "model_output": "Integration: 1894 it is.",
            "turns": (ByteRange(0, 0), ByteRange(0, 24)),
            "reasoning": "",
            "tool_trace": (ENTRY, BROKEN),
            "span_extractor": "marker",
            "scores": SCORES,
            "status": "ok",
            "stop": "answer",
            "item_sha256": "i",
            "used_fixtures_sha256": "u",
            "offered_tools_sha256": "o",
            "fingerprints": Fingerprints(dataset_sha256="d"),
            "decoding": Decoding(),
        }
        return Result(**{**fields, **changes})

    return make
