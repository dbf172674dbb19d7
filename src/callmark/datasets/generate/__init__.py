"""`callmark dataset generate`: a stratified dataset with its fixtures, out of two numbers.

`generate` writes files; `samples_of` streams the samples themselves. `plan_faults` and `plant`
make flawed answers, and `TruthRecord` says what is true of each."""

from callmark.datasets.generate.faults import FAULTS
from callmark.datasets.generate.plan import (
    FaultPlan,
    TruthRecord,
    plan_faults,
    plant,
    samples_of,
)
from callmark.datasets.generate.truth import Planted, PlantedFault, Truth, truth_of
from callmark.datasets.generate.write import (
    AnswersWanted,
    GeneratedDataset,
    answer_line,
    fixture_lines,
    generate,
    item_of,
    record_answer,
)

__all__ = [
    "FAULTS",
    "AnswersWanted",
    "FaultPlan",
    "GeneratedDataset",
    "Planted",
    "PlantedFault",
    "Truth",
    "TruthRecord",
    "answer_line",
    "fixture_lines",
    "generate",
    "item_of",
    "plan_faults",
    "plant",
    "record_answer",
    "samples_of",
    "truth_of",
]
