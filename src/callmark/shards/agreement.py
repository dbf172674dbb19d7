"""Do these shards make up one run? Whatever differs is named with both values."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from callmark.core.jsontext import Json, canonical_json
from callmark.core.report import Report, ReportHeader
from callmark.core.summary import counted_warnings
from callmark.errors import BadInput, FingerprintMismatch
from callmark.running.provenance import SHARDS, agreed
from callmark.shards.files import ShardFile

# Where a model lies may differ from machine to machine: its fingerprint says which one it is.
_OWN = frozenset({"num_shards", "shard_index", "model", "gates"})


def one_run(files: Sequence[ShardFile]) -> tuple[ShardFile, ...]:
    """The shards by their index, if all are there, once, and of one and the same run."""
    if not files:
        raise BadInput("merge: no shard was named")
    files = sorted(files, key=lambda file: file.index)
    first = files[0]
    for before, file in pairwise(files):
        if file.report.header.num_shards != first.report.header.num_shards:
            raise BadInput(f"{file}, but {first}: these are shards of different runs")
        if file.index == before.index:
            raise BadInput(f"{file} is there twice: also {before.results}; name each shard once")
    for file in files[1:]:
        _refuse_other(first, file)
    number = first.report.header.num_shards
    missing = sorted(set(range(number)) - {file.index for file in files})
    if missing:
        shown = ", ".join(map(str, missing[:20]))
        raise BadInput(
            f"merge: of {number} shards these are missing: {shown}; run them, or name their files"
        )
    return tuple(files)


def _refuse_other(first: ShardFile, other: ShardFile) -> None:
    ours, theirs = _values_of(first), _values_of(other)
    differing = [
        f"  {name}: shard {first.index} has {_shown(ours.get(name))},"
        f" shard {other.index} {_shown(theirs.get(name))}"
        for name in {**ours, **theirs}
        if ours.get(name) != theirs.get(name)
    ]
    if differing:
        raise FingerprintMismatch(
            f"{other}: belongs to another run than {first.results}:\n"
            + "\n".join(differing)
            + "\nRun both shards with the same dataset, tools, fixtures, model and settings."
        )


def _values_of(file: ShardFile) -> dict[str, Json]:
    header = file.report.header
    values = {
        name: getattr(header, name) for name in ReportHeader.__struct_fields__ if name not in _OWN
    }
    if header.model_fingerprint is None:
        values["model"] = header.model
    return {
        **values,
        **{f"gates.{name}": rule for name, rule in header.gates.items()},
        **file.facts.settings,
        "partial": file.report.partial,
        "selected_samples": file.facts.selected_samples,
    }


def _shown(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(msgspec.to_builtins(value))


def joined_warnings(files: Sequence[ShardFile]) -> list[str]:
    """What the shards warn of beside what follows from their numbers, each once."""
    found: dict[str, None] = {}
    for file in files:
        report = file.report
        counted = counted_warnings(report.header.gates.values(), report.counts)
        given = len(report.warnings) - len(counted)
        found.update(dict.fromkeys(report.warnings[:given]))
    return list(found)


def joined_provenance(files: Sequence[ShardFile]) -> tuple[dict[str, Json], list[str]]:
    """Where the shards come from, and what they do not agree in. A shard without a sample saw
    nothing that it could tell of."""
    telling = [file.report for file in files if file.report.counts.trials]
    reports: Sequence[Report] = telling or [files[0].report]
    settings = files[0].facts.settings
    return agreed(
        [report.provenance for report in reports],
        SHARDS,
        deterministic=bool(settings.get("determinism_mode")),
    )


def summed_measures(files: Sequence[ShardFile]) -> dict[str, Json]:
    return summed([file.report.timing.more for file in files])


def summed(measured: Sequence[dict[str, Json]]) -> dict[str, Json]:
    """What the runners counted: whole numbers and seconds add up, a highest stays the highest."""
    totals: dict[str, Json] = {}
    for name, value in _adding_up(measured):
        if name.startswith("highest"):
            totals[name] = max(value, totals.get(name, value))
        else:
            totals[name] = value + totals.get(name, 0)
    return totals


def _adding_up(measured: Sequence[dict[str, Json]]) -> Iterator[tuple[str, int | float]]:
    for one in measured:
        for name, value in one.items():
            adds_up = isinstance(value, int) or (isinstance(value, float) and name.endswith("_sec"))
            if adds_up and not isinstance(value, bool):
                yield name, value
