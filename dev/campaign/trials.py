"""Scored trials to alter: real episodes, and generated samples with good answers."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.calls.registry import Registry
from callmark.datasets.generate import AnswersWanted, generate
from callmark.records.results import Result, Scores
from callmark.records.samples import Sample, expectation_of
from callmark.records.trace import Trace
from callmark.run.conclude import run
from callmark.run.rescore import score_file
from callmark.scorers.score import ScoreSettings, sample_of_result, score_trial
from callmark.store.files import read_results

GENERATED, REAL = "generated", "real"
NO_TOOLS = Registry(())


class Trial(msgspec.Struct, frozen=True):
    """`scores` are those of the trace as it is."""

    sample: Sample
    trace: Trace
    settings: ScoreSettings
    scores: Scores

    def scored(self, trace: Trace) -> Scores:
        return score_trial(self.sample, trace, self.settings)


def generated_trials(total: int, seed: int) -> list[Trial]:
    with tempfile.TemporaryDirectory(prefix="callmark-campaign-") as name:
        folder = Path(name)
        dataset, fixtures, out = folder / "d.jsonl", folder / "fixtures", folder / "results.jsonl"
        answers = AnswersWanted(folder / "answers.jsonl", {})
        generate(total, seed, out=dataset, fixtures=fixtures, answers=answers)
        places = {"dataset": str(dataset), "fixtures": str(fixtures), "out": str(out)}
        run({**places, "runner": "replay", "model": str(answers.path)})
        return list(_trials(read_results(out)))


# The 314 that the page speaks of, whatever else lies beside them.
EPISODES = ("tau2_main_retail", "tau_bench_airline_gpt4o")


def real_trials(folder: Path) -> list[Trial]:
    """The episodes; what was called there is what is expected."""
    trials: list[Trial] = []
    with tempfile.TemporaryDirectory(prefix="callmark-campaign-") as name:
        for source in EPISODES:
            path = folder / "episodes" / f"{source}.jsonl"
            out = Path(name, path.name)
            score_file(path, {"out": str(out)})
            trials += _trials(read_results(out))
    return trials


def _trials(results: Iterator[Result]) -> Iterator[Trial]:
    for result in results:
        if result.scores is None:
            continue
        turns = result.turns
        trace = Trace(
            model_output=result.model_output,
            tool_trace=result.tool_trace,
            turns=None if turns is None else tuple((part.start, part.end) for part in turns),
            said=result.said,
            stop=result.stop,
        )
        sample = _with_calls(sample_of_result(result), trace)
        settings = ScoreSettings(registry=NO_TOOLS, extractor=result.span_extractor)
        yield Trial(sample, trace, settings, score_trial(sample, trace, settings))


def _with_calls(sample: Sample, trace: Trace) -> Sample:
    if (
        sample.expectation.calls
        or not trace.tool_trace
        or sample.expectation.kind != "unclassified"
    ):
        return sample
    calls = [
        {"name": entry.name, "arguments": entry.arguments}
        for entry in trace.tool_trace
        if entry.name is not None and isinstance(entry.arguments, dict)
    ]
    metadata = {**sample.metadata, "call_sequence": calls}
    return msgspec.structs.replace(sample, metadata=metadata, expectation=expectation_of(metadata))
