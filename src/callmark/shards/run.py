"""A run whose trials are played by an engine; everything else is as in one process.

The driver checks all inputs, keeps the one journal of the run, and adds up what the shards sum
up. So a run may be resumed with another number of shards, by another engine or by none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import assert_never

import msgspec

from callmark._version import __version__
from callmark.config import RunConfig
from callmark.errors import Incomplete, UsageError
from callmark.records.jsontext import Json, plain
from callmark.records.report import Timing
from callmark.records.results import Result
from callmark.records.seams import Observed, Progress, Standing
from callmark.run.conclude import (
    Publish,
    RunOutcome,
    conclude,
    ending_of,
    report_of,
    run,
    shard_written,
)
from callmark.run.evaluate import Evaluator
from callmark.run.loop import Interrupts, TrialLoop, drive_at_once, journal_of
from callmark.run.offers import GivenTools
from callmark.run.prepare import Setup, complete_config, prepare
from callmark.run.preview import dry_run
from callmark.run.resume import SHARDS, joined_origin
from callmark.shards.engine import (
    Ended,
    Engine,
    Event,
    Failed,
    Lines,
    LostShard,
    Plan,
    SamplePlaces,
    Saw,
    Task,
    encode_plan,
    observed_of,
    summary_of,
)
from callmark.shards.merge import add_up_measured
from callmark.store.journal import Journal, journal_path
from callmark.store.lines import decode_result
from callmark.summary.summary import Summariser

# A worker that dies is replaced, unless so many in a row died without finishing a trial.
TRIES = 3
END_SECONDS = 10.0
HEARD_SECONDS = 0.2  # so long Ctrl-C may go unheard while nothing happens


def run_anywhere(
    config: RunConfig | Mapping[str, Json],
    *,
    progress: Progress | None = None,
    publish: Publish | None = None,
    tools: GivenTools | None = None,
) -> RunOutcome:
    """In this process, or by the engine that the config names; see `callmark.run.conclude.run`.
    Tools that a caller brings along stay in this process."""
    config = complete_config(config)
    if config.engine is None or tools is not None:
        return run(config, progress=progress, publish=publish, tools=tools)
    with open_engine(config) as engine:
        return run_on(engine, config, progress=progress, publish=publish)


def run_plainly(config: RunConfig | Mapping[str, Json]) -> dict[str, Json]:
    """The same for those who want plain JSON values: the report, or what a dry run found out."""
    config = complete_config(config)
    found: dict[str, Json] = plain(
        dry_run(config) if config.dry_run else run_anywhere(config).report
    )
    return found


def open_engine(config: RunConfig) -> Engine:
    match config.engine:
        case "ray":
            from callmark.shards.ray import RayEngine

            return RayEngine(config)
        case "local" | None:
            from callmark.shards.local import LocalEngine

            return LocalEngine()
        case _:
            assert_never(config.engine)


def run_on(
    engine: Engine,
    config: RunConfig,
    *,
    progress: Progress | None = None,
    publish: Publish | None = None,
) -> RunOutcome:
    """Run, score and judge; see `callmark.run.conclude.run`."""
    started = time.perf_counter()
    if config.out is None:
        raise UsageError("--engine: needs --out: finished trials are journalled beside it")
    given = config.source_of("num_shards") != "default"
    places = SamplePlaces(config.num_shards if given else engine.default_shards())
    with Interrupts() as interrupts, ExitStack() as stack:
        with prepare(config, note=places.add, asked=lambda _: False) as setup:
            journal = journal_of(setup)
            if journal is not None:
                stack.enter_context(journal)
            if setup.selection.partial:
                chosen = setup.selection.chosen(setup.dataset)
                places.keep_only({sample.index for sample in chosen})
            loop = ShardedLoop(setup, config, places, engine, interrupts, progress)
            ending = ending_of(loop, journal)
        interrupts.silence()
        observed = loop.observed()
        timing = Timing(
            wall_time_sec=time.perf_counter() - started,
            scoring_sec=loop.scoring_sec if loop.is_timed_whole else None,
            more=observed.measured,
        )
        report = report_of(setup, loop.summariser, timing, observed, shard_written(setup, loop))
        code = conclude(setup.config, report, ending, publish)
        if journal is not None and loop.results_sha256 is not None:
            journal.remove()
        return RunOutcome(report, code, loop.notes)


class _Shard:
    """One shard while it is played: where its lines stand in the journal, how far it is."""

    def __init__(self) -> None:
        self.chunks: list[tuple[int, int]] = []
        self.finished = self.misses = self.errors = 0
        self.died = 0  # times in a row without a finished trial

    def begin(self) -> None:
        self.chunks = []
        self.finished = self.misses = self.errors = 0


class ShardedLoop(TrialLoop):
    """The trials of one run, played by an engine."""

    def __init__(
        self,
        setup: Setup,
        config: RunConfig,
        places: SamplePlaces,
        engine: Engine,
        interrupts: Interrupts,
        progress: Progress | None,
    ) -> None:
        evaluator = Evaluator(setup.config, asks_for_marker=setup.prompts.asks_for_marker)
        self.summariser = Summariser(evaluator.cross_score(setup.offers.registry))
        super().__init__(setup, evaluator, self.summariser, interrupts, drive_at_once, progress)
        self.scoring_sec = 0.0
        self._measured: list[dict[str, Json]] = []
        self._origins: dict[int, Observed] = {}  # by shard, as far as it told
        self._places = places
        self._engine = engine
        self._playing: dict[int, _Shard] = {}
        self._plan = encode_plan(
            Plan(
                __version__,
                config,
                setup.dataset.checked,
                setup.fingerprints,
                str(journal_path(Path(str(config.out)))),
                setup.scorers,
            )
        )

    def observed(self) -> Observed:
        """What the runners of all shards saw, told as one would."""
        return msgspec.structs.replace(self.origin(), measured=add_up_measured(self._measured))

    def _get_ready(self) -> None:
        self.has_begun = True  # whoever plays a shard asks its own runner

    def _run_journalled(self, journal: Journal) -> None:
        for number in range(self._places.num_shards):
            if self._places.size_of(number):
                self._playing[number] = _Shard()
                self._start(number, journal)
        try:
            while self._playing:
                self._take_all(journal)
        except (KeyboardInterrupt, Incomplete):
            self._let_all_end(journal)
            raise

    def _start(self, number: int, journal: Journal) -> None:
        self._playing[number].begin()
        task = Task(
            plan=self._plan,
            shard=number,
            num_shards=self._places.num_shards,
            places=self._places.packed(number),
            done=journal.done().packed(),
        )
        self._engine.start(task)

    def _take_all(self, journal: Journal) -> None:
        # What an engine has handed over it does not hand over again: Ctrl-C waits for all of it.
        with self._interrupts.deferred():
            for number, event in self._engine.events(HEARD_SECONDS):
                self._take(number, event, journal)

    def _take(self, number: int, event: Event, journal: Journal) -> None:
        shard = self._playing[number]
        match event:
            case Lines():
                self._keep(shard, event, journal)
            case Saw():
                self._take_origin_of(number, event, journal)
            case Ended():
                self._add_up(number, event, journal)
                if event.incomplete is not None:
                    raise Incomplete(event.incomplete)
            case Failed():
                raise event.error()
            case LostShard(why=why):
                self._count_lines_of(shard, journal)
                shard.died += 1
                if shard.died >= TRIES:
                    del self._playing[number]
                    raise self._given_up(number, why)
                self._start(number, journal)
            case _:
                assert_never(event)

    def _keep(self, shard: _Shard, lines: Lines, journal: Journal) -> None:
        shard.chunks.append(journal.append(lines.data, lines.count))
        shard.finished += lines.count
        shard.misses, shard.errors = lines.misses, lines.errors
        shard.died = 0
        self._tell()

    def _take_origin_of(self, number: int, saw: Saw, journal: Journal) -> None:
        """Refused now if at all: once the results are in their place, they need a report."""
        self._origins[number] = observed_of(saw)
        everybody = [self._origins[one] for one in sorted(self._origins)]
        deterministic = self._setup.config.determinism_mode
        self._take_origin(joined_origin(everybody, SHARDS, deterministic=deterministic), journal)

    def _add_up(self, number: int, ended: Ended, journal: Journal) -> None:
        shard = self._playing.pop(number)
        self._measured.append(observed_of(ended).measured)
        self.scoring_sec += ended.scoring_sec
        state = summary_of(ended)
        if state is None:
            for result in _results_in(shard.chunks, journal):
                self._count(result)
            return
        self.summariser.extend(state)
        for line in ended.chance.splitlines(keepends=True):
            self.summariser.add_to_chance(decode_result(line))
        self._finished += ended.finished
        self._misses += ended.misses
        self._errors += ended.errors
        self._tell()

    def _count_lines_of(self, shard: _Shard, journal: Journal) -> None:
        """Whoever played them cannot sum them up any more, and nobody needs to play them again."""
        chunks = shard.chunks
        shard.begin()
        for result in _results_in(chunks, journal):
            self._count(result)
            journal.note_done(result)

    def _let_all_end(self, journal: Journal) -> None:
        """The run is over; what is finished is still counted."""
        self._interrupts.silence()
        self._engine.stop()
        until = time.monotonic() + END_SECONDS
        while self._playing and (left := until - time.monotonic()) > 0:
            for number, event in self._engine.events(left):
                match event:
                    case Lines():
                        self._keep(self._playing[number], event, journal)
                    case Saw():
                        self._take_origin_of(number, event, journal)
                    case Ended():
                        self._add_up(number, event, journal)
                    case Failed() | LostShard():
                        self._count_lines_of(self._playing.pop(number), journal)
        for shard in self._playing.values():
            self._count_lines_of(shard, journal)
        self._playing.clear()

    def _standing(self) -> Standing:
        playing = self._playing.values()
        return Standing(
            self._finished + sum(shard.finished for shard in playing),
            self._setup.trials,
            self._misses + sum(shard.misses for shard in playing),
            self._errors + sum(shard.errors for shard in playing),
            self._resumed,
        )

    def _given_up(self, number: int, why: str) -> Incomplete:
        return Incomplete(
            f"shard {number} of {self._places.num_shards}: {TRIES} times in a row it was lost"
            f" before it finished a trial, the last time because {why};"
            " what is finished is kept: run the same command with --resume when that is mended"
        )


def _results_in(chunks: Sequence[tuple[int, int]], journal: Journal) -> Iterator[Result]:
    """The trials whose lines stand there."""
    for offset, size in chunks:
        yield from map(decode_result, journal.read(offset, size).splitlines(keepends=True))
