"""The trials of one run: those of an earlier run from the journal, the others from the runner."""

from __future__ import annotations

import gc
import signal
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import msgspec

from callmark.errors import BadInput, CallmarkError, Incomplete, UsageError, fault_of_ours
from callmark.records.jsontext import Json
from callmark.records.results import Result
from callmark.records.samples import Expectation
from callmark.records.seams import Failure, Progress, Runner, Standing
from callmark.run.indexing import IndexRows
from callmark.run.offers import store_specs
from callmark.run.play import (
    Evaluator,
    Origin,
    Played,
    PlaySettings,
    TrialInput,
    lose_trial,
    play_alone,
    play_in_step,
)
from callmark.run.resume import (
    MAY_GROW,
    FinishedOutput,
    FinishedTrials,
    Origins,
    TrialsAsked,
    finished_output,
)
from callmark.store.files import encode_result, read_results
from callmark.store.journal import Journal, Mode, OutputLines, WrongTrials, open_journal
from callmark.store.run_index import ENDING
from callmark.store.spending import encode_spending, spending_of
from callmark.summary.summary import Summariser, SummaryState

if TYPE_CHECKING:
    import asyncio

    from callmark.run.prepare import Setup

Value = TypeVar("Value")
Drive = Callable[[Coroutine[Any, Any, Value]], Value]


def drive_at_once(coroutine: Coroutine[Any, Any, Value]) -> Value:
    """Run a coroutine that never waits. No event loop, so no socket either."""
    try:
        coroutine.send(None)
    except StopIteration as finished:
        value: Value = finished.value
        return value
    coroutine.close()
    raise RuntimeError("the runner says that it never waits (suspends = False), but it did")


@contextmanager
def driver(runner: Runner) -> Iterator[Drive[Any]]:
    """What runs the loop for this runner; one event loop for the whole run if it needs one."""
    if not runner.suspends:
        with _closing(runner, drive_at_once):
            yield drive_at_once
        return
    import asyncio  # opens a socket pair, so only where it is needed

    with asyncio.Runner() as loop:
        drive = _interruptible(loop)
        with _closing(runner, drive):
            yield drive


@contextmanager
def _closing(runner: Runner, drive: Drive[Any]) -> Iterator[None]:
    try:
        yield
    finally:
        drive(runner.close())


def _interruptible(loop: asyncio.Runner) -> Drive[Any]:
    """Ctrl-C breaks out of the event loop and leaves its tasks as they are: they are ended before
    anything that they use is closed."""

    def drive(coroutine: Coroutine[Any, Any, Value]) -> Value:
        try:
            return loop.run(coroutine)
        except KeyboardInterrupt:
            _end_tasks(loop.get_loop())
            raise

    return drive


def _end_tasks(loop: asyncio.AbstractEventLoop) -> None:
    import asyncio

    while tasks := asyncio.all_tasks(loop):
        for task in tasks:
            task.cancel()
        with suppress(KeyboardInterrupt):  # that of the task which was interrupted
            loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))


async def side_by_side(step: Callable[[], Awaitable[bool]], width: Callable[[], int]) -> None:
    """`step` again and again, so many at once as `width` says at that moment, until one returns
    False and all others have ended; the first failure ends them all."""
    import asyncio

    workers = 0
    is_over = False

    async def work() -> None:
        nonlocal workers, is_over
        while not is_over and workers <= (wanted := width()):
            if workers < wanted:
                fill()
            is_over = not await step() or is_over
        workers -= 1

    def fill() -> None:
        nonlocal workers
        while workers < width() and not is_over:
            workers += 1
            group.create_task(work())

    try:
        async with asyncio.TaskGroup() as group:
            fill()
    except BaseExceptionGroup as failures:
        raise _first(failures) from None


def _first(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    first = failures.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


ALLOCATIONS = 10_000


@contextmanager
def rare_collections() -> Iterator[None]:
    """Trials leave no cycles behind, and what a run has opened stays: looking for them after every
    700 allocations, and at all that was opened, is a tenth of a run."""
    before, is_frozen = gc.get_threshold(), gc.get_freeze_count() > 0
    if not is_frozen:
        gc.freeze()
    if before[0]:  # 0: never
        gc.set_threshold(max(before[0], ALLOCATIONS), *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if not is_frozen:
            gc.unfreeze()


class Interrupts:
    """Ctrl-C ends a run between two steps, never inside one that must be whole: a trial is
    scored, written and counted, or it is none of these."""

    def __init__(self) -> None:
        self.is_deferred = False
        self.is_due = False
        self._before: Any = None

    def __enter__(self) -> Self:
        # Only the main thread can have signal handlers, and only there Ctrl-C is heard.
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._heard)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def deferred(self) -> _Deferred:
        return _Deferred(self)

    def silence(self) -> None:
        """From here on nothing may be left half done: Ctrl-C is heard no more."""
        self.is_deferred = True

    def _heard(self, number: int, frame: FrameType | None) -> None:
        self.is_due = True
        if not self.is_deferred:
            raise KeyboardInterrupt


class _Deferred:
    """Entered once a trial, so no generator."""

    __slots__ = ("_interrupts",)

    def __init__(self, interrupts: Interrupts) -> None:
        self._interrupts = interrupts

    def __enter__(self) -> None:
        self._interrupts.is_deferred = True

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._interrupts.is_deferred = False
        if kind is None and self._interrupts.is_due:
            raise KeyboardInterrupt


# A server that is gone is noticed, and not asked ten thousand times more.
LOST_IN_A_ROW = 20
SHOWN_IDS = 20


class Tally:
    """Every finished trial, counted once: in the summary, and for whoever watches the run."""

    def __init__(self, summariser: Summariser, total: int, progress: Progress | None) -> None:
        self.summariser = summariser
        self.rows: IndexRows | None = None  # if there will be an index
        self.finished = self.misses = self.errors = 0
        self.resumed = 0  # of the finished ones: those of earlier runs
        # By shard: what another process has finished and not yet summed up.
        self.elsewhere: dict[int, Standing] = {}
        self._total = total
        self._progress = progress

    def add(self, result: Result, expectation: Expectation | None = None) -> None:
        self.summariser.add(result, expectation)
        if self.rows is not None:
            self.rows.add(result, expectation)
        self.finished += 1
        self.errors += result.status == "error"
        self.misses += 0 if result.scores is None else result.scores.calls.misses
        self.tell()

    def add_again(self, result: Result) -> None:
        """A trial of an earlier run."""
        self.resumed += 1
        try:
            self.add(result)
        except BadInput:
            self.resumed -= 1
            raise

    def add_summed_up(self, state: SummaryState, chance: Iterable[Result], done: Standing) -> None:
        """Trials that another process counted. `chance`: those that the level of chance needs."""
        self.summariser.extend(state)
        for result in chance:
            self.summariser.add_to_chance(result)
        self.finished += done.finished
        self.misses += done.misses
        self.errors += done.errors
        self.tell()

    def tell(self) -> None:
        if self._progress is not None:
            self._progress(self.standing())

    def standing(self) -> Standing:
        if not self.elsewhere:
            return Standing(self.finished, self._total, self.misses, self.errors, self.resumed)
        away = self.elsewhere.values()
        return Standing(
            self.finished + sum(one.finished for one in away),
            self._total,
            self.misses + sum(one.misses for one in away),
            self.errors + sum(one.errors for one in away),
            self.resumed,
        )


class Stage(msgspec.Struct, frozen=True):
    """What a run's loop and whoever plays its trials share."""

    setup: Setup
    evaluator: Evaluator
    tally: Tally
    origins: Origins
    interrupts: Interrupts


def set_stage(setup: Setup, interrupts: Interrupts, progress: Progress | None) -> Stage:
    evaluator = Evaluator(setup.config, asks_for_marker=setup.prompts.asks_for_marker)
    summariser = Summariser(evaluator.cross_score(setup.offers.registry))
    tally = Tally(summariser, setup.trials, progress)
    return Stage(setup, evaluator, tally, Origins(setup), interrupts)


class Player(Protocol):
    """Plays the trials that are not done yet, keeps and counts each: in this process (`Here`), or
    by an engine (`callmark.shards`)."""

    @property
    def scoring_sec(self) -> float: ...

    def get_ready(self) -> None:
        """Raises what the user has to mend, before anything is asked."""

    def play(self, journal: Journal | None) -> None: ...

    def measured(self) -> dict[str, Json]:
        """Tokens, requests, seconds, of all runners that were asked."""
        ...


class Here:
    """Plays in this process: asks the runner, scores, keeps, counts."""

    def __init__(self, stage: Stage, drive: Drive[Any]) -> None:
        self._setup = stage.setup
        self._evaluator = stage.evaluator
        self._tally = stage.tally
        self._origins = stage.origins
        self._interrupts = stage.interrupts
        self._drive = drive
        self._lost_in_a_row = 0
        self._has_asked = False

    @property
    def scoring_sec(self) -> float:
        return self._evaluator.seconds

    def get_ready(self) -> None:
        self._drive(self._setup.runner.ready())
        self._has_asked = True

    def play(self, journal: Journal | None) -> None:
        self.play_into(journal)
        if journal is not None:
            self._origins.note(journal)

    def measured(self) -> dict[str, Json]:
        return self._setup.runner.observed().measured if self._has_asked else {}

    def play_into(self, kept: FinishedTrials | None) -> None:
        """Those that are not done yet. None: nothing is kept but the summary."""
        setup = self._setup
        offers = setup.offers
        settings = PlaySettings(
            registry=offers.registry,
            allowed=offers.allowed,
            max_turns=setup.decoding.max_turns,
            parse_text=setup.config.parse_text,
            formats=setup.formats,
            template=setup.template,
            miss_reply=setup.config.miss_reply,
            faults=setup.faults,
        )
        waiting = self._waiting(kept)
        with rare_collections():
            self._play_all(waiting, settings, kept)

    def _play_all(
        self, waiting: Iterator[TrialInput], settings: PlaySettings, kept: FinishedTrials | None
    ) -> None:
        setup, runner = self._setup, self._setup.runner
        if runner.suspends:
            self._drive(self._at_once(waiting, settings, kept))
        else:
            drive = self._drive
            played = play_in_step(
                waiting,
                lambda batch: drive(runner.answer(batch)),
                runner.max_batch,
                setup.source,
                settings,
            )
            for one in played:
                self._finish(one, kept)

    async def _at_once(
        self, waiting: Iterator[TrialInput], settings: PlaySettings, kept: FinishedTrials | None
    ) -> None:
        """Trials side by side, each as fast as its answers come."""
        import asyncio

        runner, trials = self._setup.runner, max(1, self._setup.trials)
        ended: deque[Played] = deque()

        async def step() -> bool:
            trial = next(waiting, None)
            if trial is None:
                return False
            ended.append(await self._one(trial, settings))
            # Answers come in bursts. Scored one after the other, and not between requests, the
            # trials of a burst take a third less: the processor has the scorer at hand.
            await asyncio.sleep(0)
            while ended:
                played = ended.popleft()
                self._finish(played, kept)
                self._end_if_server_is_gone(played)
            return True

        # The runner may change its mind on how many it bears while it works.
        await side_by_side(step, lambda: min(runner.max_batch, trials))

    async def _one(self, trial: TrialInput, settings: PlaySettings) -> Played:
        setup = self._setup
        limit = setup.config.sample_timeout
        playing = play_alone(trial, setup.runner, setup.source, settings)
        if limit is None:
            return await playing
        import asyncio

        try:
            async with asyncio.timeout(limit):
                return await playing
        except TimeoutError:
            return lose_trial(trial, Failure(f"not finished within {limit:g} s (sample_timeout)"))

    def _end_if_server_is_gone(self, played: Played) -> None:
        self._lost_in_a_row = 0 if played.error is None else self._lost_in_a_row + 1
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            raise Incomplete(
                f"{LOST_IN_A_ROW} trials in a row were lost, the last one to: {played.error}."
                " What is finished is kept: run the same command with --resume when that is fixed."
            )

    def _finish(self, played: Played, kept: FinishedTrials | None) -> None:
        with self._interrupts.deferred():
            result = self._scored(played)
            if kept is not None:
                self._origins.note(kept)
                kept.append(encode_result(result), place=(result.index, result.trial))
                self._note_spent(played, kept)
            # Redacted metadata may say something else.
            is_as_read = result.metadata is played.sample.metadata
            self._tally.add(result, played.sample.expectation if is_as_read else None)

    def _note_spent(self, played: Played, kept: FinishedTrials) -> None:
        sample, spent, prices = played.sample, played.spent, self._setup.config.prices
        if spent is not None:
            line = spending_of(sample.index, sample.sample_id, played.trial, spent, prices)
            kept.note_spent(encode_spending(line))

    def _scored(self, played: Played) -> Result:
        """Scored, or lost: no answer, whatever is in it, costs more than its trial."""
        setup, score = self._setup, self._evaluator.result
        offer = setup.offers.to(played.sample)
        origin = Origin(setup.fingerprints, setup.decoding)
        try:
            return score(played, offer, origin)
        except CallmarkError:
            raise
        except Exception as error:
            why = fault_of_ours("the answer could not be scored", error)
            trial = TrialInput(played.sample, played.trial, offer.names, offer.tools)
            return score(lose_trial(trial, Failure(why)), offer, origin)

    def _waiting(self, kept: FinishedTrials | None) -> Iterator[TrialInput]:
        setup = self._setup
        done = None if kept is None else kept.done()
        for sample in setup.selection.chosen(setup.dataset):
            offer = setup.offers.to(sample)
            for trial in range(setup.config.repeat):
                found = done.find(sample.sample_id, trial) if done else None
                if found is None or kept is None:
                    try:
                        opening = setup.prompts.opening(sample, offer.tools)
                    except UsageError as error:  # named before the run began: the others go on
                        asking = TrialInput(sample, trial, offer.names, offer.tools)
                        self._finish(lose_trial(asking, Failure(f"prompt: {error}")), kept)
                    else:
                        yield TrialInput(
                            sample, trial, offer.names, offer.tools, opening, offer.registry
                        )
                    continue
                if found.index != sample.index:
                    what = f"index: is {found.index}, but the sample stands at {sample.index}"
                    raise kept.not_ours(what, found.line)


class TrialLoop:
    """The trials of one run, each counted once: those of earlier runs from the journal, the others
    as somebody plays them."""

    def __init__(self, stage: Stage, player: Player) -> None:
        self._setup = stage.setup
        self._evaluator = stage.evaluator
        self._tally = stage.tally
        self._origins = stage.origins
        self._interrupts = stage.interrupts
        self._player = player
        self.has_begun = False  # from here on there is something to report
        self.notes: tuple[str, ...] = ()  # what became of an earlier run, for whoever resumes it
        self.results_sha256: str | None = None  # of --out, once it is written
        self.written: OutputLines | None = None  # by this run

    def to_the_end(self, journal: Journal | None) -> None:
        """Finish every trial; then, unless too many failed, put the results in their place.
        `journal` is that of --out, if there is an --out."""
        setup = self._setup
        if journal is None:
            self._get_ready()
            self._player.play(None)
            return
        out = Path(str(setup.config.out))
        ended = finished_output(setup, self._evaluator, out, journal)
        if ended is not None:
            self._judge_again(out, ended, journal)
            return
        self._count_finished(journal)
        if self._tally.finished < setup.trials:
            self._go_on(journal)
        else:
            self.has_begun = True
            if self._tally.resumed:
                self.notes += (f"{journal.path}: every trial is in it: nothing was asked",)
        if self._tally.errors <= setup.config.errors_allowed(setup.trials):
            self._interrupts.silence()
            # Before the results: none of them ever stands there without its tools.
            store_specs(out, setup.offers.registry)
            with suppress(OSError):  # that of an earlier run is the index of nothing now
                out.with_name(out.name + ENDING).unlink(missing_ok=True)
            try:
                self.written = journal.finish(out, trials=setup.trials)
                self.results_sha256 = self.written.sha256
            except WrongTrials as error:
                raise journal.not_ours(str(error)) from None

    def _judge_again(self, out: Path, ended: FinishedOutput, journal: Journal) -> None:
        self.has_begun = True
        self._origins.told = ended.told
        self._know_before(journal)
        for result in read_results(out):
            self._tally.add_again(result)
        self.results_sha256 = ended.sha256
        self.notes += (f"{out}: is complete: it was judged again, and nothing was asked",)

    def _count_finished(self, journal: Journal) -> None:
        """What earlier runs wrote, each line compared with the sample that it is about."""
        setup, bad = self._setup, dict[int, str]()
        asked = TrialsAsked(setup, self._evaluator)
        done = journal.done()
        for line, result in journal.results():
            problem = asked.problem_of(result)
            if problem is None and isinstance(result, Result):
                found = done.find(result.sample_id, result.trial)
                if found is not None and found.line == line:
                    with self._interrupts.deferred():
                        problem = self._resume(result)
            if problem is not None and not setup.config.salvage:
                raise journal.not_ours(problem, line)
            if problem is not None:
                bad[line] = problem
        if bad:
            journal.leave_out(bad)
        self._know_before(journal)
        if setup.config.salvage and journal.left_out:
            self.notes += (self._salvaged(journal, bad),)

    def _know_before(self, journal: Journal) -> None:
        self._origins.before = journal.answered()
        if journal.left_out:
            lines = ", ".join(map(str, journal.left_out[:SHOWN_IDS]))
            self._origins.damage = (
                f"the journal of this run was damaged: {len(journal.left_out)} of its lines were"
                f" left out (line {lines}), and what they held was run again",
            )

    def _resume(self, result: Result) -> str | None:
        try:
            self._tally.add_again(result)
        except BadInput as error:
            return str(error)
        return None

    def _salvaged(self, journal: Journal, bad: dict[int, str]) -> str:
        numbers = ", ".join(map(str, journal.left_out[:SHOWN_IDS]))
        done = journal.done()
        ids = [
            sample.sample_id + (f" (trial {trial})" if trial else "")
            for sample in self._setup.selection.chosen(self._setup.dataset)
            for trial in range(self._setup.config.repeat)
            if (sample.sample_id, trial) not in done
        ]
        more = f" and {len(ids) - SHOWN_IDS} more" if len(ids) > SHOWN_IDS else ""
        why = "".join(f"; line {line}: {problem}" for line, problem in [*bad.items()][:SHOWN_IDS])
        return (
            f"{journal.path}: {len(done)} finished trials are kept, {len(journal.left_out)} lines"
            f" left out (line {numbers}{why}); {len(ids)} trials are run: "
            f"{', '.join(ids[:SHOWN_IDS])}{more}"
        )

    def _go_on(self, journal: Journal) -> None:
        try:
            self._origins.note(journal)
            self._get_ready()
            self._player.play(journal)
        except (UsageError, Incomplete):
            journal.remove_if_empty()
            raise
        except KeyboardInterrupt:
            if not self.has_begun:
                journal.remove_if_empty()
            raise

    def _get_ready(self) -> None:
        self._player.get_ready()
        self.has_begun = True


def journal_of(setup: Setup) -> Journal | None:
    """None: nothing is written, so nothing is journalled."""
    config = setup.config
    if config.out is None:
        return None
    mode: Mode = "resume" if config.resume else "restart" if config.restart else "new"
    return open_journal(
        Path(config.out),
        setup.resume_key,
        mode=mode,
        may_grow=MAY_GROW,
        salvage=config.salvage,
    )
