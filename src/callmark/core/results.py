"""One line of a results file."""

from __future__ import annotations

from typing import Literal

import msgspec

from callmark.core.jsontext import Json
from callmark.core.samples import DEFAULT_SPAN_CAP, Extractor, ExtractorBy
from callmark.core.scores import Scores
from callmark.core.trace import Stop, TraceEntry, UserTurn


class ByteRange(msgspec.Struct, frozen=True):
    start: int
    end: int


class Fingerprints(msgspec.Struct, frozen=True, kw_only=True):
    """What a result depends on. None: not there, or not computable."""

    dataset_sha256: str | None = None
    tool_registry_sha256: str | None = None
    fixtures_sha256: str | None = None
    tokenizer_fingerprint: dict[str, Json] | None = None
    prompt_wrapper_sha256: str | None = None
    runner_fingerprint: str | None = None
    model_fingerprint: str | None = None


class Decoding(msgspec.Struct, frozen=True, kw_only=True):
    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = 1024
    seed: int | None = 42
    max_turns: int | None = 8
    tool_choice: str | None = "auto"


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """What the scores depend on beside the sample and its trace, so that a line can be scored
    again by itself."""

    integration_span_cap: int = DEFAULT_SPAN_CAP
    strict_keys: tuple[str, ...] | None = None
    url_allowlist: tuple[str, ...] = ()
    privacy_echo: Literal["allow", "deny"] = "allow"
    redacted: bool = False  # personal data were replaced after scoring


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """Identified by (sample_id, trial). Holds no time. `scores` is None where status is error."""

    index: int
    sample_id: str
    trial: int
    prompt: str | list[dict[str, Json]]
    metadata: dict[str, Json]
    said: tuple[UserTurn, ...]
    model_output: str
    turns: tuple[ByteRange, ...] | None
    reasoning: str
    tool_trace: tuple[TraceEntry, ...]
    span_extractor: Extractor
    span_extractor_by: ExtractorBy | None = None
    scores: Scores | None
    status: Literal["ok", "error"]
    stop: Stop
    error: str | None = None
    item_sha256: str
    used_fixtures_sha256: str
    offered_tools_sha256: str
    fingerprints: Fingerprints
    decoding: Decoding
    scoring: Scoring = Scoring()
