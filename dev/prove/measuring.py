"""One generated dataset with recorded answers, through the whole pipeline, into memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from callmark.datasets.generate import FAULTS, AnswersWanted, TruthRecord, generate
from callmark.records.jsontext import Json
from callmark.records.report import Report
from callmark.records.results import Result, Scores
from callmark.run.conclude import run
from dev.prove.beyond import plant
from dev.prove.rows import Row, row_of

_TRUTH = msgspec.json.Decoder(TruthRecord)
_RESULT = msgspec.json.Decoder(Result)


class Setting(msgspec.Struct, frozen=True):
    """`total` samples in each dataset, `stated` in each of those about records; a gate needs
    `enough` behind it."""

    total: int
    enough: int
    stated: int


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """What was planted, what is true, and what the pipeline says; by sample id, in order."""

    dataset_sha256: str
    planted: dict[str, int]
    truth: dict[str, TruthRecord]
    rows: dict[str, Row]
    scores: dict[str, Scores | None]
    report: Report
    exit_code: int

    def true_rows(self) -> list[Row]:
        """The rows as they ought to be. Which tools answered is taken from the run: it says only
        which samples are compared with which for the level of chance."""
        return [
            Row(name, self.rows[name].place, record.truth, self.rows[name].recounted)
            for name, record in self.truth.items()
        ]


def measure(
    folder: Path,
    setting: Setting,
    seed: int,
    faults: Mapping[str, float],
    gates: Mapping[str, Json] | None = None,
) -> Measured:
    """Generate, run with the replay runner, read back. `faults` are shares by kind; one that the
    generator does not know comes alone. `gates` are overrides of the shipped."""
    dataset, fixtures, results = folder / "dataset.jsonl", folder / "fixtures", folder / "results"
    known = {kind: rate for kind, rate in faults.items() if kind in FAULTS}
    answers = AnswersWanted(folder / "answers.jsonl", known)
    made = generate(setting.total, seed, out=dataset, fixtures=fixtures, answers=answers)
    planted = dict(made.planted)
    for kind in faults.keys() - known.keys():
        planted[kind] = plant(kind, faults[kind], seed, dataset, answers)
    outcome = run(
        {
            "dataset": str(dataset),
            "fixtures": str(fixtures),
            "runner": "replay",
            "model": str(answers.path),
            "out": str(results),
            "min_eligible_for_gates": setting.enough,
            "gates": dict(gates or {}),
        }
    )
    truth = [_TRUTH.decode(line) for line in answers.truth_path.read_bytes().splitlines()]
    lines = [_RESULT.decode(line) for line in results.read_bytes().splitlines()]
    return Measured(
        dataset_sha256=made.dataset_sha256,
        planted=planted,
        truth={record.sample_id: record for record in truth},
        rows={line.sample_id: row_of(line) for line in lines},
        scores={line.sample_id: line.scores for line in lines},
        report=outcome.report,
        exit_code=outcome.exit_code,
    )
