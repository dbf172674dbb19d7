"""One dataset through one runner: streamed, journalled, resumable, summarised and judged."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec

from toolmark.calls.formats import FORMATS, Format
from toolmark.config import RunConfig, load_config, placed, with_header
from toolmark.core.gate_rules import rules_on_answers
from toolmark.core.gates import exit_code, resolve_rules
from toolmark.core.jsontext import Json
from toolmark.core.protocols import Observed, Progress, Runner, ToolSource
from toolmark.core.report import GateRule, Report, ReportHeader, Shard, Timing
from toolmark.core.results import Decoding, Fingerprints
from toolmark.core.samples import Kind
from toolmark.core.summary import Scope, Summariser
from toolmark.datasets.reader import Dataset, NoteItem, PartOfDataset, open_dataset
from toolmark.errors import Incomplete, OutputFailed, UsageError
from toolmark.plugins import find_runner, with_formats
from toolmark.runners.options import RunnerFactory
from toolmark.running.cached import cached, check_cache, why_unused
from toolmark.running.decoding import decoding_of
from toolmark.running.driving import Interrupts, driver
from toolmark.running.evaluate import Evaluator
from toolmark.running.fingerprints import (
    Check,
    compare_pinned,
    provenance,
    refuse_other_pins,
    resume_key,
    runner_fingerprint,
    shard_settings,
)
from toolmark.running.loop import TrialLoop
from toolmark.running.offers import (
    GivenTools,
    Offers,
    check_allowed,
    check_tools,
    open_offers,
    open_source,
)
from toolmark.running.prompts import Prompts, check_prompts, open_prompts
from toolmark.running.selection import Selection, everything, select
from toolmark.running.shard_summary import write_summary
from toolmark.running.wiring import runner_options
from toolmark.scorers.score import SCORER_VERSION
from toolmark.store.files import atomic_writer, check_writable

INTERRUPTED = 130


Ending = KeyboardInterrupt | Incomplete | None
Unfinished = Callable[[Report], None]  # is told of a run that infrastructure ended


class RunOutcome(msgspec.Struct, frozen=True):
    report: Report
    exit_code: int


class DryRun(msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do, after everything that can be checked without it was checked."""

    dataset: str
    samples: int
    chosen: int
    trials: int
    partial: bool
    kinds: dict[Kind, int]
    runner: str
    model: str | None
    fingerprints: Fingerprints
    pinned: dict[str, Check]
    decoding: Decoding
    gates: tuple[GateRule, ...]
    warnings: tuple[str, ...]


class ShownPrompt(msgspec.Struct, frozen=True):
    """The first request of one sample, exactly."""

    sample_id: str
    messages: list[dict[str, Json]]
    tools: list[dict[str, Json]]


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run needs, opened, checked and fingerprinted."""

    config: RunConfig
    dataset: Dataset
    selection: Selection
    offers: Offers
    prompts: Prompts
    source: ToolSource
    runner: Runner
    formats: tuple[Format, ...]
    decoding: Decoding
    fingerprints: Fingerprints
    pinned: dict[str, Check]
    rules: tuple[GateRule, ...]
    warnings: tuple[str, ...]

    @property
    def trials(self) -> int:
        return self.selection.count * self.config.repeat

    @property
    def resume_key(self) -> dict[str, Json]:
        return resume_key(
            self.config, self.fingerprints, self.decoding, self.offers.allowed, self.selection.only
        )


def run(
    config: RunConfig | Mapping[str, Json],
    *,
    progress: Progress | None = None,
    open_runner: RunnerFactory | None = None,
    unfinished: Unfinished | None = None,
    tools: GivenTools | None = None,
) -> RunOutcome:
    """Run, score and judge. The report is written last; an interrupt ends with a report of what
    is finished and exit code 130. `open_runner` None: by the name that the config says; `tools`
    None: registry and fixtures of the config. `unfinished` is given the report of a run that
    infrastructure ended, before that is raised."""
    started = time.perf_counter()
    config = completed(config)
    if config.engine is not None:
        raise UsageError("--engine: this way to run knows no engine: use `toolmark.run`")
    if config.num_shards > 1 and config.source_of("shard_index") == "default":
        raise UsageError(
            f"--num-shards: which of the {config.num_shards} shards? Add --shard-index I (from 0),"
            " or --engine local, which runs them all"
        )
    with Interrupts() as interrupts:
        with prepared(config, open_runner, tools) as opened, cached(opened) as setup:
            evaluator = Evaluator(setup.config, asks_for_marker=setup.prompts.asks_for_marker)
            summariser = Summariser(evaluator.cross_score(setup.offers.registry))
            with driver(setup.runner) as drive:
                drive(setup.runner.ready())
                loop = TrialLoop(setup, evaluator, summariser, interrupts, drive, progress)
                ending = ending_of(loop)
            observed = _observed(setup.runner, tools)
        # What the trials needed is closed: the report of a million needs the room.
        interrupts.silence()
        timing = Timing(
            wall_time_sec=time.perf_counter() - started,
            scoring_sec=evaluator.seconds,
            more=observed.measured,
        )
        report = report_of(setup, summariser, timing, observed, shard_written(setup, loop))
        outcome = concluded(setup.config, report, ending, unfinished)
        if setup.config.out is not None and setup.config.num_shards > 1:
            write_summary(Path(setup.config.out), report, summariser)
        return outcome


def concluded(
    config: RunConfig, report: Report, ending: Ending, unfinished: Unfinished | None = None
) -> RunOutcome:
    """The report in its place, and how the run ended."""
    if isinstance(ending, Incomplete):
        # An older report must not speak for this run; if it cannot be written either, the
        # first failure is the one to tell.
        with suppress(OutputFailed):
            _write_wanted(config, report)
            if unfinished is not None:
                unfinished(report)
        raise ending
    _write_wanted(config, report)
    code = exit_code(
        report,
        fail_on_gate_failure=config.fail_on_gate_failure,
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    return RunOutcome(report, code if ending is None else INTERRUPTED)


def ending_of(loop: TrialLoop) -> Ending:
    """None: every trial is finished. What else ends a run still leaves a report."""
    try:
        loop.to_the_end()
    except (KeyboardInterrupt, Incomplete) as ending:
        return ending
    return None


def _write_wanted(config: RunConfig, report: Report) -> None:
    if config.report is not None:
        write_report(Path(config.report), report)


def dry_run(config: RunConfig | Mapping[str, Json]) -> DryRun:
    with prepared(config) as setup:
        return DryRun(
            dataset=setup.dataset.name,
            samples=setup.dataset.facts.samples,
            chosen=setup.selection.count,
            trials=setup.trials,
            partial=setup.selection.partial,
            kinds=setup.dataset.facts.kinds,
            runner=setup.config.runner,
            model=setup.config.model,
            fingerprints=setup.fingerprints,
            pinned=setup.pinned,
            decoding=setup.decoding,
            gates=rules_on_answers(setup.rules),
            warnings=setup.warnings,
        )


def show_prompt(config: RunConfig | Mapping[str, Json], sample_id: str) -> ShownPrompt:
    """What a runner would be sent first for one sample."""
    with prepared(config) as setup:
        for sample in setup.dataset.samples():
            if sample.sample_id == sample_id:
                tools = setup.offers.to(sample).tools
                return ShownPrompt(sample_id, setup.prompts.opening(sample, tools), tools)
        raise UsageError(f"--show-prompt: {setup.dataset.name} has no sample {sample_id}")


def write_report(path: Path, report: Report) -> None:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    with atomic_writer(path) as stream:
        stream.write(text + b"\n")


@contextmanager
def prepared(
    config: RunConfig | Mapping[str, Json],
    open_runner: RunnerFactory | None = None,
    tools: GivenTools | None = None,
    *,
    note: NoteItem | None = None,
    asked: Callable[[str], bool] | None = None,
) -> Iterator[Setup]:
    """Open, check and fingerprint everything; nothing has been generated yet. `note` is told of
    every item, `asked` which samples the runner will be asked about."""
    config = completed(config)
    if config.engine is not None:  # its shards are its own affair: this is about all of them
        config = msgspec.structs.replace(config, num_shards=1)
    for written in (config.out, config.report):
        if written is not None and not config.dry_run:
            check_writable(Path(written))
    with ExitStack() as stack:
        try:
            dataset = stack.enter_context(open_dataset(_dataset_of(config), note))
            open_runner = open_runner or find_runner(config.runner)
            setup = _opened(config, dataset, stack, open_runner, asked, tools)
        except UsageError as error:
            raise placed(config, error) from None
        yield setup


@contextmanager
def prepared_part(
    config: RunConfig, dataset: PartOfDataset, asked: Callable[[str], bool]
) -> Iterator[Setup]:
    """The same for some samples of a run that somebody else has prepared and checked."""
    with ExitStack() as stack:
        stack.enter_context(dataset)
        yield _opened(config, dataset, stack, find_runner(config.runner), asked)


def _opened(
    config: RunConfig,
    dataset: Dataset,
    stack: ExitStack,
    open_runner: RunnerFactory,
    asked: Callable[[str], bool] | None,
    tools: GivenTools | None = None,
) -> Setup:
    config = with_header(config, dataset.header, dataset.header_place)
    offers = tools.offers if tools else open_offers(config.registry, config.allowlist)
    warnings = [*dataset.warnings, *check_allowed(offers), *check_tools(dataset, offers)]
    prompts = open_prompts(config.prompt_wrapper, config.system)
    if isinstance(dataset, PartOfDataset):
        selection = everything(dataset.count)
    else:
        selection = select(config, dataset)
        warnings += check_prompts(prompts, dataset, selection, offers)
    source = open_source(None if tools else config.fixtures, offers.registry)
    decoding = decoding_of(config)
    check_cache(config)
    options = runner_options(config, offers, decoding, raw_prompt=prompts.raw, asked=asked)
    runner = stack.enter_context(open_runner(options))
    formats = with_formats(FORMATS)
    computed = Fingerprints(
        dataset_sha256=dataset.sha256,
        tool_registry_sha256=offers.registry.sha256,
        fixtures_sha256=source.fixtures_sha256,
        tokenizer_fingerprint=runner.tokenizer_fingerprint(),
        prompt_wrapper_sha256=prompts.sha256,
        runner_fingerprint=runner_fingerprint(
            config, runner, decoding, wrapper_sha256=prompts.sha256, formats=formats
        ),
        model_fingerprint=runner.model_fingerprint(),
    )
    warnings += why_unused(config, computed)
    pinned = compare_pinned(dataset.header, computed)
    warnings += refuse_other_pins(
        dataset.header_place,
        dataset.header,
        computed,
        pinned,
        may_differ=not config.fail_on_fingerprint_mismatch,
    )
    return Setup(
        config=config,
        dataset=dataset,
        selection=selection,
        offers=offers,
        prompts=prompts,
        source=tools.source if tools else source,
        runner=runner,
        formats=formats,
        decoding=decoding,
        fingerprints=msgspec.structs.replace(
            computed,
            tokenizer_fingerprint=computed.tokenizer_fingerprint
            or dataset.header.tokenizer_fingerprint,
        ),
        pinned=pinned,
        rules=rules_of(config),
        warnings=tuple(warnings),
    )


def _observed(runner: Runner, tools: GivenTools | None) -> Observed:
    """What was seen of the model, and of tools that a caller brought along."""
    seen = runner.observed()
    if tools is None:
        return seen
    more = tools.observed()
    return Observed(
        provenance={**seen.provenance, **more.provenance},
        measured=seen.measured,
        warnings=(*seen.warnings, *more.warnings),
    )


def shard_written(setup: Setup, loop: TrialLoop) -> Shard | None:
    """None: no results were written, so there is nothing to merge."""
    if loop.results_sha256 is None:
        return None
    return Shard(
        results_lines=setup.trials,
        results_sha256=loop.results_sha256,
        selected_samples=setup.selection.before_shards,
        settings=shard_settings(setup.config, setup.resume_key),
    )


def report_of(
    setup: Setup,
    summariser: Summariser,
    timing: Timing,
    observed: Observed,
    shard: Shard | None,
) -> Report:
    config = setup.config
    header = ReportHeader(
        dataset_version=setup.dataset.header.dataset_version,
        **msgspec.structs.asdict(setup.fingerprints),
        runner=config.runner,
        model=config.model,
        decoding=setup.decoding,
        seed=config.seed,
        integration_span_cap=config.integration_span_cap,
        span_extractor=config.span_extractor,
        min_eligible_for_gates=config.min_eligible_for_gates,
        fail_on_fingerprint_mismatch=config.fail_on_fingerprint_mismatch,
        scorer_version=SCORER_VERSION,
        repeat=config.repeat,
        num_shards=config.num_shards,
        shard_index=config.shard_index,
    )
    scope = Scope(
        partial=setup.selection.partial,
        expected_trials=setup.trials,
        errors_allowed=config.errors_allowed(setup.trials),
    )
    return summariser.report(
        header,
        setup.rules,
        scope=scope,
        timing=timing,
        provenance={**provenance(setup.pinned), **observed.provenance},
        warnings=(*setup.warnings, *observed.warnings),
        shard=shard,
    )


def completed(config: RunConfig | Mapping[str, Json]) -> RunConfig:
    # What a caller gives is all there is: no file of the current folder is read.
    return config if isinstance(config, RunConfig) else load_config(Path(os.devnull), config)


def _dataset_of(config: RunConfig) -> Path | Literal["-"]:
    if config.dataset is None:
        raise UsageError("--in: which dataset? Name a JSONL file, or - for standard input")
    return "-" if config.dataset == "-" else Path(config.dataset)


def rules_of(config: RunConfig) -> tuple[GateRule, ...]:
    layers = {layer.source: layer.gates for layer in config.gates}
    try:
        return resolve_rules(
            layers["default"], layers.get("header"), layers.get("config"), layers.get("flag")
        )
    except UsageError as error:
        raise placed(config, error) from None
