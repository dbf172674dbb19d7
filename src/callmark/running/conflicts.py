"""On which lines of a file stand results that do not go together, or with the dataset. The file
is read again to find out: of a million lines no place is kept."""

from __future__ import annotations

from pathlib import Path

from callmark.core.numbering import Numbering
from callmark.core.trial_keys import ConflictingResults
from callmark.datasets.reader import Dataset
from callmark.errors import BadInput
from callmark.store.problems import shown
from callmark.store.recorded import Recorded, RecordedIndex, read_recorded


def located(conflict: ConflictingResults, path: Path) -> BadInput:
    """The same with file and lines."""
    if not path.is_file():
        return BadInput(f"{path}: {conflict}")
    first, second = conflict.sample_ids
    found = [line for line in read_recorded(path) if _is_meant(line, conflict)]
    line = found[-1].line
    if first == second:
        what = f"sample_id: {shown(first)}, trial {conflict.trial}"
        advice = "number repeated answers with `trial`"
        return BadInput(f"{path}:{line}: {what} stands on line {found[0].line} too: {advice}")
    other = next(entry for entry in found if entry.sample_id != found[-1].sample_id)
    what = f"index: {conflict.index} is that of {shown(other.sample_id)} on line {other.line} too"
    advice = "results of different datasets cannot be summarised together"
    return BadInput(f"{path}:{line}: {what}: {advice}")


def unasked(index: RecordedIndex, dataset: Dataset, count: int) -> BadInput:
    """Some lines have an id or a trial that no sample of the dataset asked for: names the first."""
    trials = Numbering()
    for sample in dataset.samples():
        found = 0
        while index.get(sample.sample_id, found) is not None:
            found += 1
        trials.setdefault(sample.sample_id, found + 1)
    for line in read_recorded(index.path):
        asked = trials.setdefault(line.sample_id, 0)
        if line.trial >= asked - 1:
            break
    what = f"sample_id: {shown(line.sample_id)} is no sample of {dataset.name}"
    if asked:
        what = f"trial: is {line.trial}, but {shown(line.sample_id)} has no trial {asked - 1}"
    more = f" ({count - 1} more such lines)" if count > 1 else ""
    return BadInput(f"{index.path}:{line.line}: {what}{more}: is it the right dataset?")


def _is_meant(line: Recorded, conflict: ConflictingResults) -> bool:
    first, second = conflict.sample_ids
    if first == second:
        return line.sample_id == first and line.trial == conflict.trial
    return line.sample_id in conflict.sample_ids
