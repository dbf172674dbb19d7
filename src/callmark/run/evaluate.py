"""One played trial becomes one result line: scored, fingerprinted, redacted if asked for."""

from __future__ import annotations

import time
from functools import lru_cache, partial

import msgspec

from callmark.calls.registry import Registry
from callmark.config import RunConfig
from callmark.plugins import added_scorers
from callmark.records.jsontext import Json
from callmark.records.results import ByteRange, Decoding, Fingerprints, Result, Scoring
from callmark.records.samples import MARKER, Extractor, ExtractorBy, Sample
from callmark.records.seams import AddedScorer
from callmark.records.trace import Trace
from callmark.run.offers import REMEMBERED, Offer
from callmark.run.play import Played
from callmark.scorers.redaction import redact_result
from callmark.scorers.score import ScoreSettings, cross_score, score_trial
from callmark.summary.chance import CrossScore


class ExtractorChoice(msgspec.Struct, frozen=True):
    """How spans are found, and who decided that. None: a line that does not say."""

    extractor: Extractor
    by: ExtractorBy | None


def extractor_of(sample: Sample, run_asks: ExtractorBy | None) -> ExtractorChoice:
    """What `auto` means for a sample: `marker` where somebody asks the model for it. What the user
    says asks for nothing, and the answer is never looked at. `run_asks`: the wrapper around every
    prompt does, or the system message of the run, which a sample with its own is not sent."""
    # Never by the user's words: "Slack Integration: timeouts" in a prompt asks for no marker.
    if MARKER in (sample.teacher_text or ""):
        return ExtractorChoice("marker", "teacher_text")
    system = (
        []
        if isinstance(sample.prompt, str)
        else [message for message in sample.prompt if message.get("role") == "system"]
    )
    if any(MARKER in _text_of(message.get("content")) for message in system):
        return ExtractorChoice("marker", "system_message")
    if run_asks == "wrapper" or (run_asks is not None and not system):
        return ExtractorChoice("marker", run_asks)
    return ExtractorChoice("claims", "default")


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text") or "") for part in parts)


class Origin(msgspec.Struct, frozen=True):
    """Where an answer comes from, as its line says it."""

    fingerprints: Fingerprints
    decoding: Decoding


_NO_TOOLS = Registry(())


def cross_scorer(registry: Registry = _NO_TOOLS) -> CrossScore:
    """What the level of chance needs. Lax grounding looks at no tool spec, so that any will do."""
    settings = lru_cache(REMEMBERED)(_settings)
    return lambda own, other: cross_score(
        own, other, settings(registry, own.span_extractor, None, own.scoring)
    )


class Evaluator:
    """Scores with the settings of one run, and counts the seconds that takes."""

    def __init__(self, config: RunConfig, *, asks_for_marker: ExtractorBy | None = None) -> None:
        """`asks_for_marker`: what is put around every prompt does."""
        self.seconds = 0.0
        self._asks_for_marker = asks_for_marker
        scorers = added_scorers()
        self.scoring = Scoring(
            integration_span_cap=config.integration_span_cap,
            strict_keys=config.strict_keys,
            url_allowlist=config.url_allowlist,
            privacy_echo=config.privacy_echo,
            scorers=tuple(one.mark for one in scorers) or msgspec.UNSET,
        )
        self._config = config
        self._settings = lru_cache(REMEMBERED)(partial(_settings, scorers=scorers))

    def result(
        self,
        played: Played,
        offer: Offer,
        origin: Origin,
        *,
        extractor: ExtractorChoice | None = None,
        scoring: Scoring | None = None,
    ) -> Result:
        """`extractor` and `scoring` None: the run's own settings and the sample decide."""
        sample, trace = played.sample, played.trace
        choice = extractor or self._extractor(sample)
        scoring = scoring or self.scoring
        settings = self._settings(offer.registry, choice.extractor, offer.names, scoring)
        started = time.perf_counter()
        # A trial that infrastructure lost has no score, not a bad one: the model was never heard.
        scores = None if played.error is not None else score_trial(sample, trace, settings)
        self.seconds += time.perf_counter() - started
        result = Result(
            index=sample.index,
            sample_id=sample.sample_id,
            trial=played.trial,
            prompt=sample.prompt,
            metadata=sample.metadata,
            said=trace.said,
            model_output=trace.model_output,
            turns=_ranges_of(trace),
            reasoning=trace.reasoning,
            tool_trace=trace.tool_trace,
            span_extractor=choice.extractor,
            span_extractor_by=choice.by,
            scores=scores,
            status="ok" if played.error is None else "error",
            stop=trace.stop,
            error=played.error,
            item_sha256=sample.item_sha256,
            used_fixtures_sha256=played.used_fixtures_sha256,
            offered_tools_sha256=offer.sha256,
            fingerprints=origin.fingerprints,
            decoding=origin.decoding,
            scoring=scoring,
        )
        return redact_result(result) if self._config.redact_pii else result

    def _extractor(self, sample: Sample) -> ExtractorChoice:
        setting = self._config.span_extractor
        if setting == "auto":
            return extractor_of(sample, self._asks_for_marker)
        return ExtractorChoice(setting, self._config.source_of("span_extractor"))

    def cross_score(self, registry: Registry) -> CrossScore:
        """What the summary needs for the level of chance."""
        return cross_scorer(registry)


def _settings(
    registry: Registry,
    extractor: Extractor,
    offered: frozenset[str] | None,
    scoring: Scoring,
    scorers: tuple[AddedScorer, ...] = (),
) -> ScoreSettings:
    return ScoreSettings(
        registry=registry,
        offered=offered,
        extractor=extractor,
        span_cap=scoring.integration_span_cap,
        strict_keys=scoring.strict_keys,
        url_allowlist=scoring.url_allowlist,
        echo_denied=scoring.privacy_echo == "deny",
        scorers=scorers,
    )


def _ranges_of(trace: Trace) -> tuple[ByteRange, ...] | None:
    if trace.turns is None:
        return None
    return tuple(ByteRange(start, end) for start, end in trace.turns)
