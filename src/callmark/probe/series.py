"""A fine-tune on its way: one decision for each checkpoint, and the first one that loses.

Checkpoints are tested in a fixed sequence, from the last one backwards, until one is no regression.
Each test has the whole 5 %: to confirm anything at all, the last one has to be called a regression
first, so the chance of a false word about the series is that of one test. A checkpoint beyond the
end of the sequence that looks worse is told as a dip, which is an observation and no finding."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from callmark.errors import UsageError
from callmark.probe.records import (
    Checkpoint,
    CheckpointStanding,
    FidelityResult,
    SeriesPoint,
    SeriesResult,
    exit_code,
)
from callmark.probe.spec import ModelSpec
from callmark.runners.hf.loading import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    CONFIG,
    adapter_folder,
    file_sha256,
    model_folder,
)
from callmark.stats.estimates import Z_TWO_SIDED, wilson

FINAL = "final"
_NUMBER = re.compile(r"(\d{1,18})$")


def find_checkpoints(folder: Path) -> tuple[Checkpoint, ...]:
    """The checkpoints that a trainer left in a folder, by their steps; what it saved in the folder
    itself at the end comes last, unless it is the last checkpoint again."""
    if not folder.is_dir():
        raise UsageError(f"--checkpoints: {folder}: there is no such folder")
    folders = sorted(one for one in folder.iterdir() if one.is_dir() and _kind_of(one))
    unnumbered = [one for one in folders if _NUMBER.search(one.name) is None]
    if unnumbered:
        raise UsageError(
            f"--checkpoints: {unnumbered[0]}: has no number at the end of its name, so its"
            " place in the series is not known. Rename it (checkpoint-100), or give each"
            " --adapter in order."
        )
    folders.sort(key=lambda one: (_step_of(one) or 0, one.name))
    if _kind_of(folder) is not None and not (folders and _is_same(folder, folders[-1])):
        folders.append(folder)
    if len(folders) < 2:
        raise UsageError(
            f"--checkpoints: {folder}: holds {len(folders) or 'no'} checkpoint"
            f"{'' if len(folders) == 1 else 's'}: a series takes two or more folders like"
            " checkpoint-100 with an adapter or a model in them"
        )
    kind = _kind_of(folders[0])
    other = next((one for one in folders if _kind_of(one) != kind), None)
    if other is not None:
        raise UsageError(
            f"--checkpoints: {other}: is no {kind}, but {folders[0]} is: a series holds either"
            " adapters or whole models"
        )
    return tuple(
        Checkpoint(label=FINAL, path=str(one))
        if one == folder
        else Checkpoint(label=one.name, path=str(one), step=_step_of(one))
        for one in folders
    )


def name_checkpoints(paths: Sequence[str]) -> tuple[Checkpoint, ...]:
    """Adapters in the order in which they were given; equal names get their number."""
    names = [Path(path).name or path for path in paths]
    labels = [
        name if names.count(name) == 1 else f"{name} ({at})"
        for at, name in enumerate(names, start=1)
    ]
    for path in paths:
        adapter_folder(path)  # what is missing is said before anything is loaded
    return tuple(
        Checkpoint(label=label, path=path) for label, path in zip(labels, paths, strict=True)
    )


def model_of(folder: str, base: ModelSpec) -> ModelSpec:
    """A checkpoint as a view: an adapter on top of the base, or a model of its own."""
    if _kind_of(Path(folder)) == "model":
        return ModelSpec(base=folder)
    return msgspec.structs.replace(base, adapter=folder)


def judge_series(
    checkpoints: Sequence[Checkpoint], results: Sequence[FidelityResult]
) -> SeriesResult:
    """One result for each checkpoint, in their order."""
    standings = _stand(results)
    points = tuple(
        SeriesPoint(
            checkpoint=checkpoint,
            standing=standing,
            valid_ci_95=_interval(result),
            result=result,
        )
        for checkpoint, standing, result in zip(checkpoints, standings, results, strict=True)
    )
    losing = [one.checkpoint.label for one in points if one.standing == "loses"]
    return SeriesResult(points=points, first_losing=losing[0] if losing else None)


def series_exit_code(series: SeriesResult, *, require_power: bool) -> int:
    """That of the last checkpoint; one that could not be asked leaves the series undecided."""
    last = exit_code(series.points[-1].result, require_power=require_power)
    broken = any(one.standing == "error" for one in series.points)
    return 5 if broken and last == 0 else last


def _stand(results: Sequence[FidelityResult]) -> list[CheckpointStanding]:
    found: list[CheckpointStanding] = []
    in_sequence = True
    for result in reversed(results):
        if result.decision is None:
            in_sequence = False
            found.append("error")
        elif result.decision == "regression":
            found.append("loses" if in_sequence else "dips")
        else:
            in_sequence = False
            found.append("holds")
    return found[::-1]


def _interval(result: FidelityResult) -> tuple[float, float] | None:
    evidence = result.evidence
    if evidence is None:
        return None
    return wilson(evidence.num_valid_ft, evidence.num_cases, Z_TWO_SIDED)


def _step_of(folder: Path) -> int | None:
    number = _NUMBER.search(folder.name)
    return None if number is None else int(number[1])


def _kind_of(folder: Path) -> str | None:
    # An adapter's folder may hold a copy of the base's config too, so that is looked at second.
    if (folder / ADAPTER_CONFIG).is_file():
        return "adapter"
    return "model" if (folder / CONFIG).is_file() else None


def _is_same(one: Path, other: Path) -> bool:
    """Whether two folders hold the same weights: trainers save the last step twice."""
    if _kind_of(one) != _kind_of(other):
        return False
    if _kind_of(one) == "adapter":
        files = [folder / ADAPTER_WEIGHTS for folder in (one, other)]
        return all(path.is_file() for path in files) and len(set(map(file_sha256, files))) == 1
    both = [model_folder(str(folder)).weights for folder in (one, other)]
    return [*map(file_sha256, both[0])] == [*map(file_sha256, both[1])]
