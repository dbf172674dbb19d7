"""The way of a run, from its settings to its exit code: everything that runs a dataset calls
`run`.

prepare   `prepare.py`   open, check and fingerprint dataset, tools, fixtures, runner
play      `play.py`      one trial: the runner answers, the broker answers its calls
loop      `loop.py`      all trials: what the journal has is not played again
score     `evaluate.py`  a played trial becomes a result line, kept and counted at once
conclude  below          the report, the page, the exit code; the journal goes last"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from callmark._version import __version__
from callmark.config import RunConfig
from callmark.errors import Incomplete, OutputFailed, UsageError
from callmark.plugins import find_players
from callmark.records.jsontext import Json, sha256_hex
from callmark.records.report import Report, ReportHeader, Shard, Timing, exit_code
from callmark.records.seams import Observed, Progress
from callmark.run.indexing import IndexRows
from callmark.run.loop import (
    Here,
    Interrupts,
    Player,
    Stage,
    TrialLoop,
    driver,
    journal_of,
    rare_collections,
    set_stage,
)
from callmark.run.offers import GivenTools
from callmark.run.prepare import Setup, add_cache, complete_config, prepare
from callmark.run.resume import shard_settings
from callmark.runners.options import RunnerFactory
from callmark.scorers.score import SCORER_VERSION
from callmark.store.files import atomic_writer
from callmark.store.journal import Journal, journal_path
from callmark.store.run_index import INDEXED
from callmark.store.spending import cost_of, read_spending, sum_up_spending
from callmark.summary.summary import Scope, Summariser, SummaryState

INTERRUPTED = 130


Ending = KeyboardInterrupt | Incomplete | None
# Makes more of a report, while the journal is still there; whether the results are whole.
Publish = Callable[[Report, bool], None]


class RunOutcome(msgspec.Struct, frozen=True):
    """`notes`: what became of the earlier run that this one went on with, for people."""

    report: Report
    exit_code: int
    notes: tuple[str, ...] = ()


class Players(Protocol):
    """Who plays the trials of a run: this process, or an engine (`callmark.shards.run`)."""

    def prepare(self, config: RunConfig) -> AbstractContextManager[Setup]: ...

    def begin(self, stage: Stage) -> AbstractContextManager[Player]: ...


def run(
    config: RunConfig | Mapping[str, Json],
    *,
    progress: Progress | None = None,
    publish: Publish | None = None,
    open_runner: RunnerFactory | None = None,
    tools: GivenTools | None = None,
    players: Players | None = None,
) -> RunOutcome:
    """Run, score and judge. Results, report, whatever `publish` makes of it: then the journal goes,
    so that a run which ends anywhere before can be resumed. An interrupt ends with a report of
    what is finished and exit code 130; what infrastructure ended is published before that is
    raised. `open_runner` None: by the name that the config says; `tools` None: registry and
    fixtures of the config; `players` None: this process, or the engine that the config names."""
    started = time.perf_counter()
    config = complete_config(config)
    with ExitStack() as opened:
        if players is None:
            players = opened.enter_context(_open_players(config, open_runner, tools))
        interrupts = opened.enter_context(Interrupts())
        with players.prepare(config) as setup:
            journal = journal_of(setup)
            if journal is not None:
                opened.enter_context(journal)
            stage = set_stage(setup, interrupts, progress)
            out = setup.config.out
            # An engine's trials are seen by nobody here.
            if out is not None and setup.trials in INDEXED and isinstance(players, InThisProcess):
                stage.tally.rows = opened.enter_context(IndexRows(Path(out)))
            with players.begin(stage) as player, rare_collections():
                loop = TrialLoop(stage, player)
                ending = ending_of(loop, journal)
            observed = _observe(stage, player, tools)
        # What the trials needed is closed: the report of a million needs the room.
        interrupts.silence()
        is_timed_whole = not stage.tally.resumed  # else its seconds say nothing about all trials
        timing = Timing(
            wall_time_sec=time.perf_counter() - started,
            scoring_sec=player.scoring_sec if is_timed_whole else None,
            more=observed.measured | _spending_of(setup.config, observed.measured),
        )
        summariser = stage.tally.summariser
        report = report_of(setup, summariser, timing, observed, shard_written(setup, loop))
        if setup.config.out is not None and setup.config.num_shards > 1:
            with suppress(OutputFailed):  # merging can do without it
                write_summary(Path(setup.config.out), report, summariser)
        if stage.tally.rows is not None and loop.written is not None:
            stage.tally.rows.write(loop.written, summariser)
        code = conclude(setup.config, report, ending, publish)
        if journal is not None and loop.results_sha256 is not None:
            journal.remove()
        return RunOutcome(report, code, loop.notes)


def _spending_of(config: RunConfig, measured: Mapping[str, Json]) -> dict[str, Json]:
    """What all trials took, those of earlier runs included. Without results there is no file of
    it, only what the runner itself counted."""
    if config.out is not None:
        return sum_up_spending(read_spending(Path(config.out)))
    match measured:
        case {"prompt_tokens": int(prompt), "completion_tokens": int(completion)}:
            cost = cost_of(prompt, completion, 0, config.prices)
            return {} if cost is None else {"cost": cost}
        case _:
            return {}


@contextmanager
def _open_players(
    config: RunConfig, open_runner: RunnerFactory | None, tools: GivenTools | None
) -> Iterator[Players]:
    is_here = open_runner is not None or tools is not None
    if config.engine is not None:
        if is_here:
            raise UsageError(
                "--engine: a runner or tools that the caller brings along stay in this process:"
                " leave it out"
            )
        with find_players(config.engine)(config) as players:
            yield players
        return
    if config.num_shards > 1 and config.source_of("shard_index") == "default":
        raise UsageError(
            f"--num-shards: which of the {config.num_shards} shards? Add --shard-index I (from 0),"
            " or --engine local, which runs them all"
        )
    yield InThisProcess(open_runner, tools)


class InThisProcess:
    def __init__(self, open_runner: RunnerFactory | None, tools: GivenTools | None) -> None:
        self._open_runner = open_runner
        self._tools = tools

    @contextmanager
    def prepare(self, config: RunConfig) -> Iterator[Setup]:
        with (
            prepare(config, self._open_runner, self._tools) as opened,
            add_cache(opened) as setup,
        ):
            yield setup

    @contextmanager
    def begin(self, stage: Stage) -> Iterator[Player]:
        with driver(stage.setup.runner) as drive:
            yield Here(stage, drive)


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


def _observe(stage: Stage, player: Player, tools: GivenTools | None) -> Observed:
    """Who answered, what was measured, and what was seen of tools that a caller brought along."""
    seen = stage.origins.joined()
    more = Observed() if tools is None else tools.observed()
    return Observed(
        provenance={**seen.provenance, **more.provenance},
        measured=player.measured(),
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


def _dataset_name(config: RunConfig) -> dict[str, Json]:
    """What people call the dataset: its file, without the folders of this machine."""
    name = Path(config.dataset).name if config.dataset else ""
    return {"dataset": name} if name and name != "-" else {}


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
        quarantine=config.judge_quarantine(),
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
        provenance={**observed.provenance, **_dataset_name(config)},
        warnings=tuple(dict.fromkeys((*setup.warnings, *observed.warnings))),
        shard=shard,
    )


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
