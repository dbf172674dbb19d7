"""A generated dataset with its files, and a way to score any recorded answer to its samples."""

from contextlib import ExitStack
from pathlib import Path

from callmark.datasets.generate import AnswersWanted, answer_line, generate, plant, samples_of
from callmark.records.report import ReportHeader
from callmark.records.results import Result
from callmark.run.loop import driver
from callmark.run.play import Evaluator, Origin, PlaySettings, TrialInput, opening_messages, play
from callmark.run.prepare import prepare
from callmark.runners.replay import OneRecording, recorded_replies
from callmark.store.files import Line
from callmark.store.recorded import recorded_of
from callmark.summary.summary import Summariser
from callmark.summary.trials import Trials

NOT_APPLICABLE = -1


class Bench:
    """Plays and scores answers without a results file, each as `callmark run` would."""

    def __init__(self, folder: Path, total: int, seed: int) -> None:
        self.total, self.seed = total, seed
        self.files = {
            "dataset": str(folder / "data.jsonl"),
            "fixtures": str(folder / "fixtures"),
            "model": str(folder / "answers.jsonl"),
        }
        wanted = AnswersWanted(Path(self.files["model"]))
        generate(
            total,
            seed,
            out=Path(self.files["dataset"]),
            fixtures=Path(self.files["fixtures"]),
            answers=wanted,
        )
        self.made = list(samples_of(total, seed))
        self._stack = ExitStack()
        self.setup = self._stack.enter_context(prepare(self.files))
        self._samples = list(self.setup.dataset.samples())
        self._evaluator = Evaluator(self.setup.config)
        self.good = [self.scored(at, one.draft.answer) for at, one in enumerate(self.made)]
        self.good_columns = columns_of(self.good)

    def close(self) -> None:
        self._stack.close()

    def scored(self, index: int, answer) -> Result:
        setup, sample = self.setup, self._samples[index]
        line = Line(1, 0, answer_line(sample.sample_id, answer))
        sha256 = setup.offers.registry.sha256
        replies = recorded_replies(recorded_of(line), opening_messages(sample), sha256)
        offer = setup.offers.to(sample)
        settings = PlaySettings(
            registry=setup.offers.registry, allowed=setup.offers.allowed, max_turns=None
        )
        runner = OneRecording(replies)
        trial = TrialInput(sample, 0, offer.names, offer.tools)
        with driver(runner) as drive:
            (played,) = drive(play([trial], runner, setup.source, settings))
        origin = Origin(setup.fingerprints, setup.decoding)
        return self._evaluator.result(played, offer, origin)

    def flawed(self, plan) -> list[Result]:
        """The good results, but for the samples that the plan gives a fault."""
        return [
            self.scored(at, plant(self.made[at], plan)[0].answer) if plan.fault_of(at) else result
            for at, result in enumerate(self.good)
        ]

    def columns(self, results) -> list[dict]:
        """Results that are the good ones, untouched, need not be read again."""
        other = [at for at, result in enumerate(results) if result is not self.good[at]]
        again = dict(zip(other, columns_of([results[at] for at in other]), strict=True))
        return [again.get(at, good) for at, good in enumerate(self.good_columns)]

    def report(self, results):
        summariser = Summariser()
        for result in results:
            summariser.add(result)
        return summariser.report(ReportHeader(), self.setup.rules)


def columns_of(results) -> list[dict]:
    """What the report is made of, for every sample; None: does not apply."""
    trials = Trials()
    for result in results:
        trials.add(result)
    samples = trials.samples()
    return [
        {
            name: None if (value := samples.column(name)[at]) == NOT_APPLICABLE else value
            for name in COLUMNS
        }
        for at in range(len(results))
    ]


COLUMNS = (
    "f1_lax f1_strict call_f1 spans_total over_cap spans required grounded_lax grounded_strict "
    "found_lax found_strict unsupported values looked_up hits has_span has_grounded valid_call "
    "args_valid parity recovered gave_up contaminated negative_ok clarify_ok locale_ok privacy_ok "
    "checks_ok answered flagged unchecked judged unresolved presence marker"
).split()
