"""The trials of a run, played by an engine; everything else is as in one process.

The driver checks all inputs, keeps the one journal of the run, and adds up what the shards sum
up. So a run may be resumed with another number of shards, by another engine or by none."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import assert_never

from callmark._version import __version__
from callmark.config import RunConfig
from callmark.errors import Incomplete, UsageError
from callmark.records.jsontext import Json
from callmark.records.results import Result
from callmark.records.seams import Observed, Standing
from callmark.run.loop import Stage
from callmark.run.prepare import Setup, prepare
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
from callmark.store.files import decode_result
from callmark.store.journal import Journal, journal_path

# A worker that dies is replaced, unless so many in a row died without finishing a trial.
TRIES = 3
END_SECONDS = 10.0
HEARD_SECONDS = 0.2  # so long Ctrl-C may go unheard while nothing happens


@contextmanager
def open_players(config: RunConfig) -> Iterator[ByEngine]:
    """The engine that the config names, opened."""
    with open_engine(config) as engine:
        yield ByEngine(engine)


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


class ByEngine:
    """Has the trials of a run played by an engine; see `callmark.run.conclude`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._places: SamplePlaces | None = None
        self._config: RunConfig | None = None

    @contextmanager
    def prepare(self, config: RunConfig) -> Iterator[Setup]:
        if config.out is None:
            raise UsageError("--engine: needs --out: finished trials are journalled beside it")
        given = config.source_of("num_shards") != "default"
        places = SamplePlaces(config.num_shards if given else self._engine.default_shards())
        with prepare(config, note=places.add, asked=lambda _: False) as setup:
            self._places, self._config = places, config
            yield setup

    @contextmanager
    def begin(self, stage: Stage) -> Iterator[ShardPlayer]:
        setup, places, config = stage.setup, self._places, self._config
        if places is None or config is None:
            raise RuntimeError("nothing begins before it is prepared")
        if setup.selection.partial:
            chosen = setup.selection.chosen(setup.dataset)
            places.keep_only({sample.index for sample in chosen})
        journal = str(journal_path(Path(str(config.out))))
        plan = Plan(
            __version__,
            config,
            setup.dataset.checked,
            setup.fingerprints,
            journal,
            setup.scorers,
        )
        yield ShardPlayer(stage, encode_plan(plan), places, self._engine)


class _Shard:
    """One shard while it is played: where its lines stand in the journal."""

    def __init__(self) -> None:
        self.chunks: list[tuple[int, int]] = []
        self.finished = 0
        self.died = 0  # times in a row without a finished trial

    def begin(self) -> None:
        self.chunks = []
        self.finished = 0


class ShardPlayer:
    """Has an engine play the shards; journals and counts what they send."""

    def __init__(self, stage: Stage, plan: bytes, places: SamplePlaces, engine: Engine) -> None:
        self.scoring_sec = 0.0
        self._config = stage.setup.config
        self._tally = stage.tally
        self._origins = stage.origins
        self._interrupts = stage.interrupts
        self._plan = plan
        self._places = places
        self._engine = engine
        self._measured: list[dict[str, Json]] = []
        self._seen: dict[int, Observed] = {}  # by shard: who answers, as far as it told
        self._playing: dict[int, _Shard] = {}

    def get_ready(self) -> None:
        """Whoever plays a shard asks its own runner."""

    def measured(self) -> dict[str, Json]:
        return add_up_measured(self._measured)

    def play(self, journal: Journal | None) -> None:
        if journal is None:
            raise RuntimeError("an engine needs a journal")
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
        self._begin(number)
        task = Task(
            plan=self._plan,
            shard=number,
            num_shards=self._places.num_shards,
            places=self._places.packed(number),
            done=journal.done().packed(),
        )
        self._engine.start(task)

    def _begin(self, number: int) -> None:
        self._playing[number].begin()
        self._tally.elsewhere.pop(number, None)

    def _take_all(self, journal: Journal) -> None:
        # What an engine has handed over it does not hand over again: Ctrl-C waits for all of it.
        with self._interrupts.deferred():
            for number, event in self._engine.events(HEARD_SECONDS):
                self._take(number, event, journal)

    def _take(self, number: int, event: Event, journal: Journal) -> None:
        match event:
            case Lines():
                self._keep(number, event, journal)
            case Saw():
                self._take_origin_of(number, event, journal)
            case Ended():
                self._add_up(number, event, journal)
                if event.incomplete is not None:
                    raise Incomplete(event.incomplete)
            case Failed():
                # It has ended: whoever lets the others end need not wait for it.
                self._count_lines_of(number, journal)
                del self._playing[number]
                raise event.error()
            case LostShard(why=why):
                self._count_lines_of(number, journal)
                shard = self._playing[number]
                shard.died += 1
                if shard.died >= TRIES:
                    del self._playing[number]
                    raise self._given_up(number, why)
                self._start(number, journal)
            case _:
                assert_never(event)

    def _keep(self, number: int, lines: Lines, journal: Journal) -> None:
        shard = self._playing[number]
        shard.chunks.append(journal.append(lines.data, lines.count))
        journal.note_spent(lines.spent)
        shard.finished += lines.count
        shard.died = 0
        self._tally.elsewhere[number] = Standing(shard.finished, 0, lines.misses, lines.errors)
        self._tally.tell()

    def _take_origin_of(self, number: int, saw: Saw, journal: Journal) -> None:
        """Refused now if at all: once the results are in their place, they need a report."""
        self._seen[number] = observed_of(saw)
        everybody = [self._seen[one] for one in sorted(self._seen)]
        deterministic = self._config.determinism_mode
        self._origins.take(joined_origin(everybody, SHARDS, deterministic=deterministic), journal)

    def _add_up(self, number: int, ended: Ended, journal: Journal) -> None:
        shard = self._playing.pop(number)
        self._tally.elsewhere.pop(number, None)
        self._measured.append(observed_of(ended).measured)
        self.scoring_sec += ended.scoring_sec
        state = summary_of(ended)
        if state is None:
            for result in _results_in(shard.chunks, journal):
                self._tally.add(result)
            return
        chance = map(decode_result, ended.chance.splitlines(keepends=True))
        done = Standing(ended.finished, 0, ended.misses, ended.errors)
        self._tally.add_summed_up(state, chance, done)

    def _count_lines_of(self, number: int, journal: Journal) -> None:
        """Whoever played them cannot sum them up any more, and nobody needs to play them again."""
        chunks = self._playing[number].chunks
        self._begin(number)
        for result in _results_in(chunks, journal):
            self._tally.add(result)
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
                        self._keep(number, event, journal)
                    case Saw():
                        self._take_origin_of(number, event, journal)
                    case Ended():
                        self._add_up(number, event, journal)
                    case Failed() | LostShard():
                        self._count_lines_of(number, journal)
                        del self._playing[number]
        for number in self._playing:
            self._count_lines_of(number, journal)
        self._playing.clear()

    def _given_up(self, number: int, why: str) -> Incomplete:
        return Incomplete(
            f"shard {number} of {self._places.num_shards}: {TRIES} times in a row it was lost"
            f" before it finished a trial, the last time because {why}."
            " What is finished is kept: run the same command with --resume when that is fixed."
        )


def _results_in(chunks: Sequence[tuple[int, int]], journal: Journal) -> Iterator[Result]:
    """The trials whose lines stand there."""
    for offset, size in chunks:
        yield from map(decode_result, journal.read(offset, size).splitlines(keepends=True))
