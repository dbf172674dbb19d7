"""Verifying a dataset: what its items expect can be met, and its own answers (`teacher_text`), if
it has any, are played, scored and judged as a model's are."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import Literal, TypedDict, Unpack

import msgspec

from callmark.config import RunConfig, load_config, plain_paths, with_header
from callmark.datasets.reader import Dataset, open_dataset
from callmark.errors import UsageError
from callmark.plugins import plugin_scope
from callmark.records.jsontext import Json
from callmark.records.report import (
    Errors,
    GateOutcome,
    GateRule,
    Report,
    ReportHeader,
    Status,
    Timing,
    Verdict,
    exit_code,
    gates_ok_of,
)
from callmark.records.results import Fingerprints, Result
from callmark.records.samples import Sample
from callmark.records.seams import Failure, Progress, Reply, Standing
from callmark.records.statements import Tier
from callmark.records.trace import Trace, TraceEntry
from callmark.run.composition import NO_TEXTS, Composition, teacher_reply
from callmark.run.conclude import RunOutcome, write_report
from callmark.run.expectations import CALLS, FACTS, Expectations, check_expectations
from callmark.run.loop import drive_at_once
from callmark.run.offers import (
    Offer,
    check_tools,
    installed_formats,
    open_offers,
    open_source,
    store_specs,
)
from callmark.run.play import Evaluator, Origin, Played, PlaySettings, TrialInput, play
from callmark.run.prepare import rules_of
from callmark.run.rescore import NOT_KNOWN
from callmark.run.resume import compare_pinned, provenance, refuse_other_pins
from callmark.runners.replay import OneRecording
from callmark.scorers.redaction import redact_result
from callmark.scorers.score import SCORER_VERSION
from callmark.store.files import atomic_writer, check_writable, encode_result
from callmark.summary.gates import JudgeContext, judge, rules_on_dataset
from callmark.summary.summary import NOT_SCORED, Scope, Summariser

TEACHER_TEXTS = "dataset_teacher_texts"
# What judging by the numbers alone gives, where the truth is that something was not checked:
# items without a text to look at, and spans that no tokenizer was held against.
_NOT_CHECKED: dict[str, Status] = {TEACHER_TEXTS: "fail", "dataset_spans": "pass"}
_SETTLED: frozenset[Status] = frozenset({"pass", "n/a"})
# How a dataset is composed is its maker's business: asked for, or not judged.
QUOTAS = frozenset({"dataset_cells", "dataset_controls", "dataset_long_contexts"})


def rules_in_force(rules: Sequence[GateRule], *, composition: bool) -> tuple[GateRule, ...]:
    """Quotas are judged where somebody asks for all of them, or gives one a bound."""
    return tuple(
        rule
        for rule in rules_on_dataset(rules)
        if composition or rule.name not in QUOTAS or rule.source != "default"
    )


def with_dataset_gates(
    report: Report,
    composition: Composition,
    expectations: Expectations,
    rules: Sequence[GateRule],
) -> Report:
    """The report on the answers, and what the dataset's own gates add to it."""
    named = {rule.name for rule in rules}
    measures = {**expectations.measures(), **composition.measures()}
    measures = {name: measure for name, measure in measures.items() if name in named}
    reasons = {**expectations.reasons(), **composition.reasons()}
    context = JudgeContext(min_eligible=report.header.min_eligible_for_gates)
    outcomes = tuple(_explain(outcome, reasons) for outcome in judge(rules, measures, context))
    if composition.texts:
        verdict, reason = combined_verdict(report.verdict, report.verdict_reason, outcomes)
    else:
        report = _without_answers(report)
        verdict, reason = verdict_on_expectations(report.verdict, outcomes)
    loosened = [f"gate {rule.name} is LOOSENED by {rule.source}" for rule in rules if rule.loosened]
    gates = {**report.header.gates, **{rule.name: rule for rule in rules}}
    metrics = {name: measure.metric for name, measure in measures.items()}
    return msgspec.structs.replace(
        report,
        header=msgspec.structs.replace(report.header, gates=gates),
        verdict=verdict,
        verdict_reason=reason,
        gates_ok=gates_ok_of(verdict),
        metrics={**report.metrics, **metrics},
        gates=(*report.gates, *outcomes),
        failing=dict(
            sorted(
                (name, failing)
                for name, failing in {
                    **report.failing,
                    **composition.failing(),
                    **expectations.failing(),
                }.items()
                if name in named or name in report.failing
            )
        ),
        warnings=(*report.warnings, *expectations.warnings(), *composition.warnings(), *loosened),
    )


def _without_answers(report: Report) -> Report:
    """No item has an answer: there is nothing that the gates on answers could judge, and no trial
    that failed."""
    return msgspec.structs.replace(
        report,
        gates=tuple(
            msgspec.structs.replace(outcome, status="n/a", reason=NO_TEXTS)
            for outcome in report.gates
        ),
        counts=msgspec.structs.replace(report.counts, trials=0, trials_error=0),
        errors=Errors(0, ()),
        warnings=(
            *(one for one in report.warnings if not one.endswith(NOT_SCORED)),
            f"{NO_TEXTS}: only expected calls and required facts were checked",
        ),
    )


def verdict_on_expectations(
    verdict: Verdict, outcomes: Sequence[GateOutcome]
) -> tuple[Verdict, str]:
    """Of a dataset without answers of its own: what it expects can be met, or cannot."""
    if verdict == "empty":
        return verdict, "there is no sample"
    binding = [outcome for outcome in outcomes if outcome.policy != "warning_only"]
    failed = [outcome.name for outcome in binding if outcome.status == "fail"]
    if failed:
        return "fail", f"failed: {', '.join(failed)}"
    asked = [outcome for outcome in binding if outcome.name in (CALLS, FACTS)]
    left = [outcome.reason or outcome.name for outcome in asked if outcome.status == "inconclusive"]
    if left:
        return "inconclusive", left[0]
    passed = [outcome.name for outcome in binding if outcome.status == "pass"]
    if not any(outcome.status == "pass" for outcome in asked):
        return "inconclusive", "nothing to verify: no item expects a call or has required_facts"
    return "pass", f"passed: {', '.join(passed)}"


def combined_verdict(
    verdict: Verdict, reason: str, outcomes: Sequence[GateOutcome]
) -> tuple[Verdict, str]:
    """A dataset fails if its answers do or one of its own gates does. Items that could not be
    verified keep it from passing."""
    binding = [outcome for outcome in outcomes if outcome.policy != "warning_only"]
    failed = [outcome.name for outcome in binding if outcome.status == "fail"]
    passed = [outcome.name for outcome in binding if outcome.status == "pass"]
    unverified = [
        outcome.reason or outcome.name
        for outcome in binding
        if outcome.name == TEACHER_TEXTS and outcome.status == "inconclusive"
    ]
    if verdict in ("incomplete", "empty"):
        return verdict, reason
    if failed:
        before = reason if verdict == "fail" else "failed:"
        return "fail", f"{before}{',' if verdict == 'fail' else ''} {', '.join(failed)}"
    if verdict != "pass":
        return verdict, reason
    if unverified:
        return "inconclusive", unverified[0]
    return "pass", ", ".join([reason, *passed])


def _explain(outcome: GateOutcome, reasons: Mapping[str, Callable[[], str]]) -> GateOutcome:
    status = outcome.status
    if _NOT_CHECKED.get(outcome.name) == status:
        status = "inconclusive"
    if status in _SETTLED:
        return outcome
    why = reasons[outcome.name]()
    return msgspec.structs.replace(outcome, status=status, reason=why)


RUNNER = "teacher_text"


# What a caller of the library may set; everything else has no meaning without a model.
class VerifySettings(TypedDict, total=False):
    fixtures: str | PathLike[str] | None
    registry: str | PathLike[str] | None
    allowlist: str | PathLike[str] | None
    out: str | PathLike[str] | None
    report: str | PathLike[str] | None
    gates: Mapping[str, Mapping[str, Json]]
    seed: int | None
    span_extractor: Literal["auto", "marker", "claims"]
    integration_span_cap: int
    strict_keys: Sequence[str] | None
    url_allowlist: Sequence[str]
    tiers: Mapping[str, Tier]
    redact_pii: bool
    min_eligible_for_gates: int
    fail_on_fingerprint_mismatch: bool
    plugins: Sequence[str | PathLike[str]]
    composition: bool


def verify_dataset(path: str | PathLike[str], **options: Unpack[VerifySettings]) -> Report:
    """Check that what a dataset expects can be met, score its own answers (`teacher_text`) where it
    has any, and judge it by the shipped gates: what `callmark verify` does.

    Args:
        path: the dataset, a JSONL file.
        options: keys of a `callmark.yaml`, such as `fixtures`, `registry`, `gates` (bounds to
            override), `out` and `report` (files to write); `composition` also judges how the
            dataset is composed. No settings file is read.

    Returns:
        The verification report; `.to_dict()` is what `--report` writes.

    Raises:
        UsageError: an option that there is not, or a value that it cannot have.
        BadInput: the dataset, or a fixture, cannot be read; file and line are named.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> report = callmark.verify_dataset(demo.dataset, fixtures=demo.fixtures)
    >>> report.verdict, report.metrics["integration_f1_macro_lax"].value
    ('pass', 1.0)
    """
    known = VerifySettings.__annotations__
    unknown = sorted(options.keys() - known.keys())
    if unknown:
        raise UsageError(
            f"verify_dataset: no option {unknown[0]}; there is: {', '.join(sorted(known))}"
        )
    composition = options.pop("composition", False)
    with plugin_scope():
        config = load_config(Path(os.devnull), {**plain_paths(options), "dataset": str(path)})
        return verify(config, composition=composition).report


def verify(
    config: RunConfig, *, composition: bool = False, progress: Progress | None = None
) -> RunOutcome:
    """Check what every item expects, score its own answer and judge the dataset. PII that is only
    repeated is a breach here: a dataset is published and trained on. `composition`: the quotas are
    judged, whatever the header says."""
    started = time.perf_counter()
    for written in (config.out, config.report):
        if written is not None:
            check_writable(Path(written))
    with ExitStack() as stack:
        dataset = stack.enter_context(open_dataset(_path_of(config)))
        config = with_header(config, dataset.header, dataset.header_place)
        config = msgspec.structs.replace(config, privacy_echo="deny")
        verification = _Verification(config, dataset, composition=composition)
        out = None
        if config.out is not None:
            out = stack.enter_context(atomic_writer(Path(config.out)))
            store_specs(Path(config.out), verification.offers.registry)
        for done, result in enumerate(verification.results(), start=1):
            if out is not None:
                out.write(encode_result(result))
            if progress is not None:
                progress(Standing(done, dataset.facts.samples))
        report = verification.report(started)
    if config.report is not None:
        write_report(Path(config.report), report)
    code = exit_code(
        report,
        fail_on_gate_failure=config.fail_on_gate_failure,
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    return RunOutcome(report, code)


class _Verification:
    """One dataset with its tools, compared with what its header pins before anything is scored."""

    def __init__(self, config: RunConfig, dataset: Dataset, *, composition: bool) -> None:
        self._config = config
        self._dataset = dataset
        self.offers = open_offers(config.registry, config.allowlist)
        self._warnings = [*dataset.warnings, *check_tools(dataset, self.offers)]
        self._source = open_source(config.fixtures, self.offers.registry)
        computed = Fingerprints(
            dataset_sha256=dataset.sha256,
            tool_registry_sha256=self.offers.registry.sha256,
            fixtures_sha256=self._source.fixtures_sha256,
        )
        self._pinned = compare_pinned(dataset.header, computed)
        self._warnings += refuse_other_pins(
            dataset.header_place,
            dataset.header,
            computed,
            self._pinned,
            may_differ=not config.fail_on_fingerprint_mismatch,
        )
        self._fingerprints = msgspec.structs.replace(
            computed, tokenizer_fingerprint=dataset.header.tokenizer_fingerprint
        )
        self._rules = rules_of(config)
        self._quotas = composition or bool(dataset.header.composition)
        self._expectations = Expectations()
        bounds = {rule.name: rule.bound for rule in self._rules}
        self._composition = Composition(smallest_cell=bounds["dataset_cells"])
        # Spans are compared in the text as it is; what is written is redacted below.
        self._evaluator = Evaluator(msgspec.structs.replace(config, redact_pii=False))
        self._summariser = Summariser(self._evaluator.cross_score(self.offers.registry))

    def results(self) -> Iterator[Result]:
        settings = PlaySettings(
            registry=self.offers.registry,
            allowed=self.offers.allowed,
            max_turns=None,
            formats=installed_formats(),
        )
        origin = Origin(self._fingerprints, NOT_KNOWN)
        for sample in map(self._without_turns, self._dataset.samples()):
            offer = self.offers.to(sample)
            self._check(sample, offer, settings)
            result = self._result(sample, offer, settings, origin)
            self._composition.add(sample, result, offer)
            if self._config.redact_pii:
                result = redact_result(result)
            self._summariser.add(result)
            yield result

    def _result(
        self, sample: Sample, offer: Offer, settings: PlaySettings, origin: Origin
    ) -> Result:
        has_fixtures = self._config.fixtures is not None
        reply = teacher_reply(sample, offer.names, has_fixtures=has_fixtures)
        played = self._play(sample, offer, settings, reply)
        return self._evaluator.result(played, offer, origin)

    def _play(
        self, sample: Sample, offer: Offer, settings: PlaySettings, reply: Reply | Failure
    ) -> Played:
        recording = OneRecording((reply,) if isinstance(reply, Reply) else reply)
        trial = TrialInput(sample, 0, offer.names, offer.tools, registry=offer.registry)
        [played] = drive_at_once(play([trial], recording, self._source, settings))
        return played

    def _check(self, sample: Sample, offer: Offer, settings: PlaySettings) -> None:
        def play_calls(entries: Sequence[TraceEntry]) -> Trace:
            reply = Reply(text="", calls=tuple(entries) or None, ends=True, ordered=False)
            return self._play(sample, offer, settings, reply).trace

        has_fixtures = self._config.fixtures is not None
        found = check_expectations(sample, offer, play_calls, has_fixtures=has_fixtures)
        self._expectations.add(sample, found)

    def _without_turns(self, sample: Sample) -> Sample:
        """A teacher_text is one text: how many turns a model would have taken is not known."""
        checks = tuple(one for one in sample.expectation.checks if one.kind != "max_turns")
        if checks == sample.expectation.checks:
            return sample
        self._composition.unjudged_turns.add(sample.sample_id)
        expectation = msgspec.structs.replace(sample.expectation, checks=checks)
        return msgspec.structs.replace(sample, expectation=expectation)

    def report(self, started: float) -> Report:
        config, dataset = self._config, self._dataset
        header = ReportHeader(
            dataset_version=dataset.header.dataset_version,
            **msgspec.structs.asdict(self._fingerprints),
            runner=RUNNER,
            seed=config.seed,
            integration_span_cap=config.integration_span_cap,
            span_extractor=config.span_extractor,
            min_eligible_for_gates=config.min_eligible_for_gates,
            fail_on_fingerprint_mismatch=config.fail_on_fingerprint_mismatch,
            scorer_version=SCORER_VERSION,
        )
        timing = Timing(
            wall_time_sec=time.perf_counter() - started, scoring_sec=self._evaluator.seconds
        )
        samples = dataset.facts.samples
        answers = self._summariser.report(
            header,
            self._rules,
            # Whoever cannot be verified is the business of a gate, not of a lost connection.
            scope=Scope(expected_trials=samples, errors_allowed=samples),
            timing=timing,
            provenance=provenance(self._pinned),
            warnings=self._warnings,
        )
        rules = rules_in_force(self._rules, composition=self._quotas)
        return with_dataset_gates(answers, self._composition, self._expectations, rules)


def _path_of(config: RunConfig) -> Path | Literal["-"]:
    if config.dataset is None:
        raise UsageError("which dataset? Name a JSONL file, or - for standard input")
    return "-" if config.dataset == "-" else Path(config.dataset)
