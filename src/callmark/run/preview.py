"""What a run would do and ask, without running it."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from callmark.config import RunConfig
from callmark.errors import UsageError
from callmark.records.jsontext import Json, JsonRecord
from callmark.records.report import GateRule
from callmark.records.results import Decoding, Fingerprints
from callmark.records.samples import Kind
from callmark.run.prepare import prepare
from callmark.run.resume import Check
from callmark.summary.gates import rules_on_answers


class DryRun(JsonRecord, msgspec.Struct, frozen=True, kw_only=True):
    """What a run would do, after everything that can be checked without it was checked. What
    `callmark.run(…, dry_run=True)` returns; `.to_dict()` gives it as plain JSON values.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> planned = callmark.run(dataset=demo.dataset, fixtures=demo.fixtures, runner="replay",
    ...                        model=demo.answers, dry_run=True)
    >>> planned.trials, planned.partial
    (153, False)
    """

    dataset: str
    samples: int
    chosen: int
    trials: int
    partial: bool
    kinds: dict[Kind, int]
    runner: str
    model: str | None
    fingerprints: Fingerprints
    pinned: dict[str, Check]
    decoding: Decoding
    gates: tuple[GateRule, ...]
    warnings: tuple[str, ...]


class ShownPrompt(msgspec.Struct, frozen=True):
    """The first request of one sample, exactly."""

    sample_id: str
    messages: list[dict[str, Json]]
    tools: list[dict[str, Json]]


def dry_run(config: RunConfig | Mapping[str, Json]) -> DryRun:
    with prepare(config) as setup:
        return DryRun(
            dataset=setup.dataset.name,
            samples=setup.dataset.facts.samples,
            chosen=setup.selection.count,
            trials=setup.trials,
            partial=setup.selection.partial,
            kinds=setup.dataset.facts.kinds,
            runner=setup.config.runner,
            model=setup.config.model,
            fingerprints=setup.fingerprints,
            pinned=setup.pinned,
            decoding=setup.decoding,
            gates=rules_on_answers(setup.rules),
            warnings=setup.warnings,
        )


def show_prompt(config: RunConfig | Mapping[str, Json], sample_id: str) -> ShownPrompt:
    """What a runner would be sent first for one sample."""
    with prepare(config) as setup:
        for sample in setup.dataset.samples():
            if sample.sample_id == sample_id:
                tools = setup.offers.to(sample).tools
                try:
                    return ShownPrompt(sample_id, setup.prompts.opening(sample, tools), tools)
                except UsageError as error:
                    place = f"{setup.dataset.name}:{setup.dataset.line_of(sample)}"
                    raise UsageError(f"{place}: prompt: {error}") from None
        raise UsageError(f"--show-prompt: {setup.dataset.name} has no sample {sample_id}")
