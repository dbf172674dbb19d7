"""The trials of one run: those of an earlier run from the journal, the others from the runner."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from callmark.core.protocols import Failure, Progress, Standing
from callmark.core.results import Result
from callmark.core.samples import Expectation
from callmark.core.summary import Summariser
from callmark.datasets.schema import metadata_problems
from callmark.errors import BadInput, CallmarkError, Incomplete, UsageError, fault_of_ours
from callmark.play import Played, PlaySettings, TrialInput, failed, play_alone, play_in_step
from callmark.running.driving import Drive, Interrupts, side_by_side
from callmark.running.evaluate import Evaluator, Origin
from callmark.running.fingerprints import MAY_GROW
from callmark.running.offers import store_specs
from callmark.store.done_trials import DoneTrials
from callmark.store.journal import Journal, Mode, WrongTrials, open_journal
from callmark.store.key_index import KeyIndex, trial_key
from callmark.store.lines import encode_result

if TYPE_CHECKING:
    from callmark.running.setup import Setup


# A server that is gone is noticed, and not asked ten thousand times more.
LOST_IN_A_ROW = 20


class Finished(Protocol):
    """Where finished trials are kept, and which ones already were."""

    def done(self) -> DoneTrials: ...

    def append(self, lines: bytes, count: int = 1) -> object: ...

    def not_ours(self, what: str, line: int | None = None) -> BadInput: ...


class TrialLoop:
    """The trials of one run, from the journal or from the runner, each counted once."""

    def __init__(
        self,
        setup: Setup,
        evaluator: Evaluator,
        summariser: Summariser,
        interrupts: Interrupts,
        drive: Drive[Any],
        progress: Progress | None,
    ) -> None:
        self._setup = setup
        self._drive = drive
        self._evaluator = evaluator
        self._summariser = summariser
        self._interrupts = interrupts
        self._progress = progress
        self._finished = 0
        self._resumed = 0
        self.skipped = 0
        self._errors = 0
        self._lost_in_a_row = 0
        self._misses = 0
        self.results_sha256: str | None = None  # of --out, once it is written

    def to_the_end(self) -> None:
        """Finish every trial; then, unless too many failed, put the results in their place."""
        setup = self._setup
        if setup.config.out is None:
            self.run_trials(None)
            return
        out = Path(setup.config.out)
        with _journal_of(setup, out) as journal:
            store_specs(out, setup.offers.registry)
            self._count_finished(journal)
            resumed = self._finished
            try:
                self._run_journalled(journal)
            except (UsageError, Incomplete):
                journal.remove_if_empty()
                raise
            if self.skipped != resumed:
                what = f"{resumed - self.skipped} trials are of no sample of this run"
                raise self._not_ours(journal, what)
            if self._errors <= setup.config.errors_allowed(setup.trials):
                self._interrupts.silence()
                try:
                    self.results_sha256 = journal.finish(out, trials=setup.trials)
                except WrongTrials as error:
                    raise self._not_ours(journal, str(error)) from None

    def _count_finished(self, journal: Journal) -> None:
        for line, result in journal.results():
            problems = metadata_problems(result.metadata)
            if problems:
                raise journal.not_ours(problems[0], line)
            with self._interrupts.deferred():
                self._resumed += 1
                try:
                    self._count(result)
                except BadInput as error:
                    raise journal.not_ours(str(error), line) from None

    def _run_journalled(self, journal: Journal) -> None:
        self.run_trials(journal)

    def run_trials(self, kept: Finished | None) -> None:
        """Those that are not done yet."""
        setup = self._setup
        offers, runner = setup.offers, setup.runner
        settings = PlaySettings(
            registry=offers.registry,
            allowed=offers.allowed,
            max_turns=setup.decoding.max_turns,
            parse_text=setup.config.parse_text,
            formats=setup.formats,
            miss_reply=setup.config.miss_reply,
        )
        waiting = self._waiting(kept)
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
        self, waiting: Iterator[TrialInput], settings: PlaySettings, kept: Finished | None
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
            return failed(trial, Failure(f"not finished within {limit:g} s (sample_timeout)"))

    def _end_if_server_is_gone(self, played: Played) -> None:
        self._lost_in_a_row = 0 if played.error is None else self._lost_in_a_row + 1
        if self._lost_in_a_row >= LOST_IN_A_ROW:
            raise Incomplete(
                f"{LOST_IN_A_ROW} trials in a row were lost, the last one to: {played.error};"
                " what is finished is kept: run the same command with --resume when that is mended"
            )

    def _finish(self, played: Played, kept: Finished | None) -> None:
        with self._interrupts.deferred():
            result = self._scored(played)
            if kept is not None:
                kept.append(encode_result(result))
            # Redacted metadata may say something else.
            is_as_read = result.metadata is played.sample.metadata
            self._count(result, played.sample.expectation if is_as_read else None)

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
            return score(failed(trial, Failure(why)), offer, origin)

    def _waiting(self, kept: Finished | None) -> Iterator[TrialInput]:
        setup = self._setup
        done = None if kept is None else kept.done()
        for sample in setup.selection.chosen(setup.dataset):
            offer = setup.offers.to(sample)
            for trial in range(setup.config.repeat):
                found = done.find(sample.sample_id, trial) if done else None
                if found is None or kept is None:
                    asking = TrialInput(sample, trial, offer.names, offer.tools)
                    try:
                        opening = setup.prompts.opening(sample, offer.tools)
                    except UsageError as error:  # named before the run began: the others go on
                        self._finish(failed(asking, Failure(f"prompt: {error}")), kept)
                    else:
                        yield msgspec.structs.replace(asking, opening=opening)
                    continue
                if found.index != sample.index:
                    what = f"index: is {found.index}, but the sample stands at {sample.index}"
                    raise kept.not_ours(what, found.line)
                self.skipped += 1

    def _not_ours(self, journal: Journal, what: str) -> BadInput:
        """The same with its line: only now everything that was asked for is listed."""
        asked = KeyIndex()
        for sample in self._setup.selection.chosen(self._setup.dataset):
            for trial in range(self._setup.config.repeat):
                asked.add(trial_key(sample.sample_id, trial), 0, sample.index)
        return journal.not_ours(what, journal.line_not_asked(asked))

    def _count(self, result: Result, expectation: Expectation | None = None) -> None:
        self._summariser.add(result, expectation)
        self._finished += 1
        self._errors += result.status == "error"
        self._misses += 0 if result.scores is None else result.scores.calls.misses
        self._tell()

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._standing())

    def _standing(self) -> Standing:
        return Standing(
            self._finished, self._setup.trials, self._misses, self._errors, self._resumed
        )


def _journal_of(setup: Setup, out: Path) -> Journal:
    config = setup.config
    mode: Mode = "resume" if config.resume else "restart" if config.restart else "new"
    return open_journal(out, setup.resume_key, mode=mode, may_grow=MAY_GROW)
