"""Hand-made results: a right answer by default, with whatever a test wants to be different."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import yaml

from callmark.records.report import GateRule
from callmark.records.results import (
    CallDifferences,
    CallScore,
    Decoding,
    Fingerprints,
    Grounding,
    PrivacyScore,
    Result,
    Scores,
    SpanScore,
)
from callmark.records.samples import Extractor, Kind
from callmark.records.trace import TraceEntry
from callmark.summary.gates import resolve_rules

ROOT = Path(__file__).parents[1]
DEFAULT_CONFIG = ROOT / "src" / "callmark" / "data" / "config" / "eval.default.yaml"

METADATA: dict[Kind, dict] = {
    "eligible": {
        "call_sequence": [{"name": "web.search", "arguments": {"q": "x"}}],
        "required_facts": ["x"],
    },
    "control": {"expected_behaviour": "no_tool"},
    "negative_control": {"negative_control": True},
    "clarify": {"adversarial": {"type": "ambiguity", "expected": "ask_clarify"}},
    "unclassified": {},
}


def default_gates() -> dict:
    return yaml.safe_load(DEFAULT_CONFIG.read_text("utf-8"))["gates"]


def rules_with(**overrides: object) -> tuple[GateRule, ...]:
    """The shipped rules, with overrides as a config file would give them."""
    return resolve_rules(default_gates(), config=overrides)


def grounding(f1: float, *, grounded: int | None = None, found: int | None = None) -> Grounding:
    hit = int(f1 > 0)
    return Grounding(
        f1, f1, f1, hit if grounded is None else grounded, hit if found is None else found
    )


def call_score(*, attempts: int = 1, valid: int | None = None, misses: int = 0) -> CallScore:
    valid = attempts if valid is None else valid
    return CallScore(
        expected=1,
        observed=attempts,
        matched=valid,
        attempts=attempts,
        valid_attempts=valid,
        looked_up=valid,
        hits=valid - misses,
        misses=misses,
        differences=CallDifferences(),
    )


def make_scores(
    kind: Kind = "eligible",
    *,
    f1: float = 1.0,
    strict: float | None = None,
    spans: int = 1,
    extractor: Extractor = "claims",
    attempts: int | None = None,
    valid: int | None = None,
    misses: int = 0,
    **changes: object,
) -> Scores:
    strict_f1 = f1 if strict is None else strict
    is_eligible = kind == "eligible"
    attempts = max(int(is_eligible), misses) if attempts is None else attempts
    calls = call_score(attempts=attempts, valid=valid, misses=misses)
    spans = spans if is_eligible else 0
    scores = Scores(
        kind=kind,
        span_extractor=extractor,
        spans=tuple(
            SpanScore(at, at + 1, True, f1 > 0, strict_f1 > 0, True, f1 > 0) for at in range(spans)
        ),
        spans_total=spans,
        spans_over_cap=0,
        spans_counted=spans,
        recall_kind="facts",
        facts_required=1,
        lax=grounding(f1 if is_eligible else 0.0),
        strict=grounding(strict_f1 if is_eligible else 0.0),
        values={"supported": 1} if is_eligible else {},
        calls=calls,
        call_f1=1.0 if is_eligible else None,
        multi_call_parity_ok=None,
        json_args_valid=calls.valid_attempts == attempts if attempts else None,
        recovered=None,
        gave_up_honestly=None,
        controls_with_integration=0 if kind == "control" else None,
        negative_control_ok=True if kind == "negative_control" else None,
        clarify_ok=True if kind == "clarify" else None,
        locale_probe_ok=None,
        unresolved=misses > 0,
        privacy_ok=True,
        privacy=PrivacyScore(True),
    )
    return msgspec.structs.replace(scores, **changes)


def make_result(
    index: int = 0,
    kind: Kind = "eligible",
    *,
    trial: int = 0,
    sample_id: str | None = None,
    metadata: dict | None = None,
    output: str | None = None,
    trace: Sequence[TraceEntry] = (),
    fingerprints: Fingerprints | None = None,
    **scores: object,
) -> Result:
    """A scored trial; `scores` are the arguments of `make_scores`."""
    return Result(
        index=index,
        sample_id=f"s{index}" if sample_id is None else sample_id,
        trial=trial,
        prompt="p",
        metadata=METADATA[kind] | (metadata or {}),
        said=(),
        model_output=f"answer {index}" if output is None else output,
        turns=None,
        reasoning="",
        tool_trace=tuple(trace),
        span_extractor="claims",
        scores=make_scores(kind, **scores),
        status="ok",
        stop="answer",
        item_sha256="",
        used_fixtures_sha256="",
        offered_tools_sha256="",
        fingerprints=fingerprints or Fingerprints(),
        decoding=Decoding(),
    )


def make_error(
    index: int = 0, kind: Kind = "eligible", *, trial: int = 0, **more: object
) -> Result:
    """A trial that infrastructure lost."""
    result = make_result(index, kind, trial=trial, output="", **more)
    return msgspec.structs.replace(
        result, scores=None, status="error", stop="error", error="timeout"
    )


def served_call(name: str = "web.search", result: object = None) -> TraceEntry:
    return TraceEntry(
        name=name,
        arguments={},
        result={"count": 1} if result is None else result,
        turn=1,
        raw=None,
        status="ok",
        served_by="fixture:exact",
    )


def missed_call(name: str = "web.search", key: object = None) -> TraceEntry:
    return TraceEntry(
        name=name,
        arguments={"q": "x"},
        result=None,
        turn=1,
        raw=None,
        status="miss",
        served_by=None,
        key_normalized={"q": "x"} if key is None else key,
    )


def silent(index: int = 0, **more: object) -> Result:
    """An eligible sample that the model answered with nothing."""
    return make_result(
        index, output="", f1=0.0, spans=0, attempts=0, values={}, call_f1=0.0, **more
    )


def numbered(results: Iterable[Result]) -> list[Result]:
    """Gives each result its place in the list as index and id."""
    return [
        msgspec.structs.replace(result, index=at, sample_id=f"s{at}")
        for at, result in enumerate(results)
    ]
