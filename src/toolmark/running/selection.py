"""Which samples of a dataset a run is about: filters, then the limit, then the shard."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec

from toolmark.config import RunConfig
from toolmark.core.identity import shard_of
from toolmark.core.results import Result
from toolmark.core.samples import Sample
from toolmark.datasets.reader import Dataset
from toolmark.errors import UsageError
from toolmark.store.lines import read_results

PASSING_F1 = 0.90
RESULTS = "results.jsonl"


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

    def chosen(self, samples: Iterable[Sample]) -> Iterator[Sample]:
        limit = None if self.limit is None else min(self.limit, sys.maxsize)
        for sample in islice(filter(self._passes_filters, samples), limit):
            if self.num_shards == 1 or self.is_here(sample):
                yield sample

    def _passes_filters(self, sample: Sample) -> bool:
        if self.only is not None and sample.sample_id not in self.only:
            return False
        return not self.slices or not self.slices.isdisjoint(sample.expectation.slices)

    def is_here(self, sample: Sample) -> bool:
        return shard_of(sample.sample_id, self.num_shards) == self.shard_index


def everything(count: int) -> Selection:
    return Selection(
        only=None, slices=frozenset(), limit=None, num_shards=1, shard_index=0, count=count
    )


def select(config: RunConfig, dataset: Dataset) -> Selection:
    """Work out what is chosen. Reads the dataset once more only if not everything is."""
    size = dataset.facts.samples
    selection = Selection(
        only=_wanted_ids(config),
        slices=frozenset(config.slice),
        limit=config.limit,
        num_shards=config.num_shards,
        shard_index=config.shard_index,
        count=size,
        before_shards=size,
    )
    limited = config.limit is not None and config.limit < size
    if selection.only is None and not selection.slices and not limited and config.num_shards == 1:
        return selection
    unsharded = msgspec.structs.replace(selection, num_shards=1)
    here = before_shards = 0
    missing = set(config.only)
    for sample in unsharded.chosen(dataset.samples()):
        before_shards += 1
        here += config.num_shards == 1 or selection.is_here(sample)
        missing.discard(sample.sample_id)
    _check(config, dataset, before_shards, missing)
    return msgspec.structs.replace(
        selection,
        count=here,
        before_shards=before_shards,
        partial=before_shards < size,
    )


def has_failed(result: Result) -> bool:
    """Whether a person who asks for the failed samples wants to see this one again."""
    scores = result.scores
    if scores is None or result.status == "error":
        return True
    verdicts = (
        scores.json_args_valid,
        scores.multi_call_parity_ok,
        scores.recovered,
        scores.negative_control_ok,
        scores.clarify_ok,
        scores.locale_probe_ok,
        scores.privacy_ok,
    )
    if False in verdicts or scores.controls_with_integration or scores.unresolved:
        return True
    return scores.kind == "eligible" and scores.lax.f1 < PASSING_F1 - 1e-9


def _wanted_ids(config: RunConfig) -> frozenset[str] | None:
    wanted = frozenset(config.only) or None
    if config.failed_from is None:
        return wanted
    path = Path(config.failed_from)
    path = path / RESULTS if path.is_dir() else path
    failed = frozenset(result.sample_id for result in read_results(path) if has_failed(result))
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
