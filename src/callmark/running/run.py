"""One dataset through one runner: streamed, journalled, resumable, summarised and judged."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from callmark.config import RunConfig
from callmark.core.gates import exit_code
from callmark.core.jsontext import Json
from callmark.core.protocols import Observed, Progress, Runner
from callmark.core.report import Report, ReportHeader, Shard, Timing
from callmark.core.summary import Scope, Summariser
from callmark.errors import Incomplete, OutputFailed, UsageError
from callmark.runners.options import RunnerFactory
from callmark.running.cached import cached
from callmark.running.driving import Interrupts, driver
from callmark.running.evaluate import Evaluator
from callmark.running.fingerprints import provenance, shard_settings
from callmark.running.loop import TrialLoop
from callmark.running.offers import GivenTools
from callmark.running.setup import Setup, completed, prepared
from callmark.running.shard_summary import write_summary
from callmark.scorers.score import SCORER_VERSION
from callmark.store.files import atomic_writer

INTERRUPTED = 130


Ending = KeyboardInterrupt | Incomplete | None
Unfinished = Callable[[Report], None]  # is told of a run that infrastructure ended


class RunOutcome(msgspec.Struct, frozen=True):
    report: Report
    exit_code: int


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
        raise UsageError("--engine: this way to run knows no engine: use `callmark.run`")
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


def write_report(path: Path, report: Report) -> None:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    with atomic_writer(path) as stream:
        stream.write(text + b"\n")


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
