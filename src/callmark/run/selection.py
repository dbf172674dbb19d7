"""Which samples of a dataset a run is about: filters, then the limit, then the shard."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path

import msgspec

from callmark.config import RunConfig
from callmark.datasets.reader import Dataset
from callmark.errors import UsageError
from callmark.records.report import GateRule
from callmark.records.results import Result
from callmark.records.samples import Sample, shard_of
from callmark.store.lines import read_results
from callmark.store.runs import RESULTS
from callmark.summary.failing import why_failed


class Selection(msgspec.Struct, frozen=True, kw_only=True):
    """`count` samples are chosen of the `before_shards` that all shards have together; `partial`
    if the dataset has more than these."""

    only: frozenset[str] | None
    slices: frozenset[str]
    limit: int | None
    num_shards: int
    shard_index: int
    count: int = 0
    before_shards: int = 0
    partial: bool = False

    def chosen(self, dataset: Dataset) -> Iterator[Sample]:
        if self.limit is None:
            # Nothing is made of the samples of other shards: they are most of the dataset.
            is_wanted = None if self.num_shards == 1 else self.is_here
            return filter(self._passes_filters, dataset.samples(is_wanted))
        first = islice(
            filter(self._passes_filters, dataset.samples()), min(self.limit, sys.maxsize)
        )
        return (sample for sample in first if self.is_here(sample.sample_id))

    def _passes_filters(self, sample: Sample) -> bool:
        if self.only is not None and sample.sample_id not in self.only:
            return False
        return not self.slices or not self.slices.isdisjoint(sample.expectation.slices)

    def is_here(self, sample_id: str) -> bool:
        return self.num_shards == 1 or shard_of(sample_id, self.num_shards) == self.shard_index


def everything(count: int) -> Selection:
    return Selection(
        only=None, slices=frozenset(), limit=None, num_shards=1, shard_index=0, count=count
    )


def select(config: RunConfig, dataset: Dataset, rules: Sequence[GateRule] = ()) -> Selection:
    """Work out what is chosen. Reads the dataset once more only if not everything is. `rules`:
    the gates in force, for what counts as failed."""
    size = dataset.facts.samples
    selection = Selection(
        only=_wanted_ids(config, rules),
        slices=frozenset(config.slice),
        limit=config.limit,
        num_shards=config.num_shards,
        shard_index=config.shard_index,
        count=size,
        before_shards=size,
    )
    limited = config.limit is not None and config.limit < size
    if selection.only is None and not selection.slices and not limited:
        if config.num_shards > 1:
            here = sum(map(selection.is_here, dataset.ids()))
            return msgspec.structs.replace(selection, count=here)
        return selection
    unsharded = msgspec.structs.replace(selection, num_shards=1)
    here = before_shards = 0
    missing = set(config.only)
    for sample in unsharded.chosen(dataset):
        before_shards += 1
        here += selection.is_here(sample.sample_id)
        missing.discard(sample.sample_id)
    _check(config, dataset, before_shards, missing)
    return msgspec.structs.replace(
        selection,
        count=here,
        before_shards=before_shards,
        partial=before_shards < size,
    )


def has_failed(
    result: Result, warnings: Collection[str] = (), rules: Mapping[str, GateRule] | None = None
) -> bool:
    """Whether a person who asks for the failed samples wants to see this one again. `warnings`:
    the gates that only warn; `rules`: all that are in force."""
    return bool(why_failed(result, warnings, rules))


def _wanted_ids(config: RunConfig, rules: Sequence[GateRule]) -> frozenset[str] | None:
    wanted = frozenset(config.only) or None
    if config.failed_from is None:
        return wanted
    path = Path(config.failed_from)
    path = path / RESULTS if path.is_dir() else path
    warnings = {rule.name for rule in rules if rule.policy == "warning_only"}
    in_force = {rule.name: rule for rule in rules}
    failed = frozenset(
        result.sample_id for result in read_results(path) if has_failed(result, warnings, in_force)
    )
    if not failed:
        raise UsageError(f"--failed-from: no sample failed in {path}: there is nothing to run")
    return failed if wanted is None else failed & wanted


def _check(config: RunConfig, dataset: Dataset, chosen: int, missing: set[str]) -> None:
    name = dataset.name
    if missing and not config.slice and config.failed_from is None and config.limit is None:
        shown = ", ".join(sorted(missing)[:5])
        raise UsageError(f"--only: {name} has no sample {shown}")
    unknown = [one for one in config.slice if one not in dataset.facts.slices]
    if unknown:
        known = ", ".join(dataset.facts.slices) or "none"
        raise UsageError(f"--slice: {name} has no slice {unknown[0]!r}; it has: {known}")
    if not chosen:
        raise UsageError(f"{name}: no sample fits all of --only, --slice, --failed-from: relax one")
