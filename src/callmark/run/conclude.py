"""One dataset through one runner: streamed, journalled, resumable, summarised and judged."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

import msgspec

from callmark._version import __version__
from callmark.config import RunConfig
from callmark.errors import Incomplete, OutputFailed, UsageError
from callmark.records.jsontext import Json, sha256_hex
from callmark.records.report import Report, ReportHeader, Shard, Timing
from callmark.records.seams import Observed, Progress, Runner
from callmark.run.cached import add_cache
from callmark.run.evaluate import Evaluator
from callmark.run.fingerprints import shard_settings
from callmark.run.loop import Interrupts, TrialLoop, driver, journal_of
from callmark.run.offers import GivenTools
from callmark.run.prepare import Setup, complete_config, prepare
from callmark.runners.options import RunnerFactory
from callmark.scorers.score import SCORER_VERSION
from callmark.store.files import atomic_writer
from callmark.store.journal import Journal, journal_path
from callmark.summary.gates import exit_code
from callmark.summary.summary import Scope, Summariser
from callmark.summary.trials import SummaryState


class _Head(msgspec.Struct, frozen=True):
    """Whose summary it is, and who can read it."""

    callmark: str
    byteorder: str
    results_sha256: str
    summary_sha256: str


class _File(msgspec.Struct, frozen=True):
    head: _Head
    summary: bytes


def summary_path(results: Path) -> Path:
    return results.with_name(f"{results.name}.summary")


def write_summary(results: Path, report: Report, summariser: Summariser) -> None:
    """Nothing is written for a shard whose lines have to be read in any case."""
    path = summary_path(results)
    state = None if report.shard is None else summariser.state()
    if report.shard is None or state is None:
        path.unlink(missing_ok=True)
        return
    summary = msgspec.msgpack.encode(state)
    file = _File(_head(report.shard.results_sha256, summary), summary)
    with atomic_writer(path) as stream:
        stream.write(msgspec.msgpack.encode(file))


def read_summary(results: Path, results_sha256: str) -> SummaryState | None:
    """The summary of these very results, if there is one that this version wrote."""
    try:
        file = msgspec.msgpack.decode(summary_path(results).read_bytes(), type=_File)
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return None
    if file.head != _head(results_sha256, file.summary):
        return None
    return msgspec.msgpack.decode(file.summary, type=SummaryState)


def _head(results_sha256: str, summary: bytes) -> _Head:
    return _Head(__version__, sys.byteorder, results_sha256, sha256_hex(summary))


INTERRUPTED = 130


Ending = KeyboardInterrupt | Incomplete | None
# Makes more of a report, while the journal is still there; whether the results are whole.
Publish = Callable[[Report, bool], None]


class RunOutcome(msgspec.Struct, frozen=True):
    """`notes`: what became of the earlier run that this one went on with, for people."""

    report: Report
    exit_code: int
    notes: tuple[str, ...] = ()


def run(
    config: RunConfig | Mapping[str, Json],
    *,
    progress: Progress | None = None,
    open_runner: RunnerFactory | None = None,
    publish: Publish | None = None,
    tools: GivenTools | None = None,
) -> RunOutcome:
    """Run, score and judge. Results, report, whatever `publish` makes of it: then the journal goes,
    so that a run which ends anywhere before can be resumed. An interrupt ends with a report of
    what is finished and exit code 130; what infrastructure ended is published before that is
    raised. `open_runner` None: by the name that the config says; `tools` None: registry and
    fixtures of the config."""
    started = time.perf_counter()
    config = complete_config(config)
    if config.engine is not None:
        raise UsageError("--engine: this way to run knows no engine: use `callmark.run`")
    if config.num_shards > 1 and config.source_of("shard_index") == "default":
        raise UsageError(
            f"--num-shards: which of the {config.num_shards} shards? Add --shard-index I (from 0),"
            " or --engine local, which runs them all"
        )
    with Interrupts() as interrupts, ExitStack() as stack:
        with prepare(config, open_runner, tools) as opened, add_cache(opened) as setup:
            journal = journal_of(setup)
            if journal is not None:
                stack.enter_context(journal)
            evaluator = Evaluator(setup.config, asks_for_marker=setup.prompts.asks_for_marker)
            summariser = Summariser(evaluator.cross_score(setup.offers.registry))
            with driver(setup.runner) as drive:
                loop = TrialLoop(setup, evaluator, summariser, interrupts, drive, progress)
                ending = ending_of(loop, journal)
            observed = _observe(loop, setup.runner, tools)
        # What the trials needed is closed: the report of a million needs the room.
        interrupts.silence()
        timing = Timing(
            wall_time_sec=time.perf_counter() - started,
            scoring_sec=evaluator.seconds if loop.is_timed_whole else None,
            more=observed.measured,
        )
        report = report_of(setup, summariser, timing, observed, shard_written(setup, loop))
        if setup.config.out is not None and setup.config.num_shards > 1:
            with suppress(OutputFailed):  # merging can do without it
                write_summary(Path(setup.config.out), report, summariser)
        code = conclude(setup.config, report, ending, publish)
        if journal is not None and loop.results_sha256 is not None:
            journal.remove()
        return RunOutcome(report, code, loop.notes)


def conclude(
    config: RunConfig, report: Report, ending: Ending, publish: Publish | None = None
) -> int:
    """The report in its place, and the exit code."""
    if isinstance(ending, Incomplete):
        # An older report must not speak for this run; if it cannot be written either, the
        # first failure is the one to tell.
        with suppress(OutputFailed):
            _publish(config, report, publish, whole=False)
        raise ending
    try:
        _publish(config, report, publish, whole=report.complete and ending is None)
    except OutputFailed as error:
        raise _still_there(config, report, error) from None
    code = exit_code(
        report,
        fail_on_gate_failure=config.fail_on_gate_failure,
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    return code if ending is None else INTERRUPTED


def ending_of(loop: TrialLoop, journal: Journal | None) -> Ending:
    """None: every trial is finished. What else ends a run that has begun still leaves a report."""
    try:
        loop.to_the_end(journal)
    except (KeyboardInterrupt, Incomplete) as ending:
        if not loop.has_begun and isinstance(ending, Incomplete):
            raise
        return ending
    return None


def _publish(config: RunConfig, report: Report, publish: Publish | None, *, whole: bool) -> None:
    if config.report is not None:
        write_report(Path(config.report), report)
    if publish is not None:
        publish(report, whole)


def _still_there(config: RunConfig, report: Report, error: OutputFailed) -> OutputFailed:
    """The trials are not lost with a report that could not be written."""
    if config.out is None:
        return error
    if not report.complete:
        return OutputFailed(
            error.what,
            f"What is finished is in {journal_path(Path(config.out))}. Free some space or choose"
            " another place, then run the same command with --resume.",
        )
    return OutputFailed(
        error.what,
        f"Nothing is lost: every trial is in {config.out}. `callmark score {config.out}` judges it,"
        " and so does the same command with --resume once there is room; no model is asked again.",
    )


def write_report(path: Path, report: Report) -> None:
    text = msgspec.json.format(msgspec.json.encode(report), indent=2)
    with atomic_writer(path) as stream:
        stream.write(text + b"\n")


def _observe(loop: TrialLoop, runner: Runner, tools: GivenTools | None) -> Observed:
    """Who answered, what was measured, and what was seen of tools that a caller brought along."""
    seen = loop.origin()
    more = Observed() if tools is None else tools.observed()
    return Observed(
        provenance={**seen.provenance, **more.provenance},
        measured=runner.observed().measured if loop.has_asked else {},
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
        provenance=observed.provenance,
        warnings=tuple(dict.fromkeys((*setup.warnings, *observed.warnings))),
        shard=shard,
    )
