"""Everything that a run needs: opened, checked and fingerprinted before anything is generated."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Literal

import msgspec

from callmark.calls.formats import FORMATS, Format
from callmark.config import RunConfig, load_config, place_error, with_header
from callmark.datasets.reader import Dataset, NoteItem, PartOfDataset, open_dataset
from callmark.errors import UsageError
from callmark.plugins import (
    added_gates,
    added_measures,
    added_scorers,
    find_runner,
    format_marks,
    runner_mark,
    with_formats,
)
from callmark.records.jsontext import Json
from callmark.records.report import GateRule
from callmark.records.results import Decoding, Fingerprints, ScorerMark
from callmark.records.seams import Runner, ToolSource
from callmark.run.fingerprints import (
    Check,
    compare_pinned,
    refuse_other_pins,
    resume_key,
    runner_fingerprint,
)
from callmark.run.offers import (
    GivenTools,
    Offers,
    check_allowed,
    check_tools,
    open_offers,
    open_source,
)
from callmark.run.prompts import Prompts, check_prompts, open_prompts
from callmark.run.selection import Selection, everything, select
from callmark.run.wiring import refuse_unused, runner_options
from callmark.runners.options import RunnerFactory
from callmark.store.files import check_writable
from callmark.summary.gates import AddedGates, resolve_rules

DEFAULT_MAX_TURNS = 8
# Runners whose trials end by themselves: without --max-turns nothing cuts them short.
OWN_LENGTH = frozenset({"replay"})


def decoding_of(config: RunConfig) -> Decoding:
    own_length = config.runner in OWN_LENGTH
    fixed = config.determinism_mode
    return Decoding(
        temperature=0.0 if fixed else config.temperature,
        top_p=1.0 if fixed else config.top_p,
        max_tokens=config.max_tokens,
        seed=config.seed,
        max_turns=config.max_turns or (None if own_length else DEFAULT_MAX_TURNS),
        tool_choice=config.tool_choice,
    )


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a run needs, opened, checked and fingerprinted."""

    config: RunConfig
    dataset: Dataset
    selection: Selection
    offers: Offers
    prompts: Prompts
    source: ToolSource
    runner: Runner
    formats: tuple[Format, ...]
    decoding: Decoding
    fingerprints: Fingerprints
    pinned: dict[str, Check]
    rules: tuple[GateRule, ...]
    scorers: tuple[ScorerMark, ...] = ()
    warnings: tuple[str, ...]

    @property
    def trials(self) -> int:
        return self.selection.count * self.config.repeat

    @property
    def resume_key(self) -> dict[str, Json]:
        return resume_key(
            self.config,
            self.fingerprints,
            self.decoding,
            self.offers.allowed,
            self.selection.only,
            self.scorers,
        )


@contextmanager
def prepare(
    config: RunConfig | Mapping[str, Json],
    open_runner: RunnerFactory | None = None,
    tools: GivenTools | None = None,
    *,
    note: NoteItem | None = None,
    asked: Callable[[str], bool] | None = None,
) -> Iterator[Setup]:
    """Open, check and fingerprint everything; nothing has been generated yet. `note` is told of
    every item, `asked` which samples the runner will be asked about."""
    config = complete_config(config)
    if config.engine is not None:  # its shards are its own affair: this is about all of them
        config = msgspec.structs.replace(config, num_shards=1)
    for written in (config.out, config.report):
        if written is not None and not config.dry_run:
            check_writable(Path(written))
    with ExitStack() as stack:
        try:
            unused = refuse_unused(config) if open_runner is None else []
            dataset = stack.enter_context(open_dataset(_dataset_of(config), note))
            open_runner = open_runner or find_runner(config.runner)
            setup = _open(config, dataset, stack, open_runner, asked, tools)
            setup = msgspec.structs.replace(setup, warnings=(*unused, *setup.warnings))
        except UsageError as error:
            raise place_error(config, error) from None
        yield setup


@contextmanager
def prepared_part(
    config: RunConfig, dataset: PartOfDataset, asked: Callable[[str], bool]
) -> Iterator[Setup]:
    """The same for some samples of a run that somebody else has prepared and checked."""
    with ExitStack() as stack:
        stack.enter_context(dataset)
        yield _open(config, dataset, stack, find_runner(config.runner), asked)


def _open(
    config: RunConfig,
    dataset: Dataset,
    stack: ExitStack,
    open_runner: RunnerFactory,
    asked: Callable[[str], bool] | None,
    tools: GivenTools | None = None,
) -> Setup:
    config = with_header(config, dataset.header, dataset.header_place)
    offers = tools.offers if tools else open_offers(config.registry, config.allowlist)
    warnings = [*dataset.warnings, *check_allowed(offers), *check_tools(dataset, offers)]
    prompts = open_prompts(config.prompt_wrapper, config.system)
    if isinstance(dataset, PartOfDataset):
        selection = everything(dataset.count)
    else:
        selection = select(config, dataset, rules_of(config))
        warnings += check_prompts(prompts, dataset, selection, offers)
    source = open_source(None if tools else config.fixtures, offers.registry)
    decoding = decoding_of(config)
    _check_cache(config)
    options = runner_options(config, offers, decoding, raw_prompt=prompts.raw, asked=asked)
    runner = stack.enter_context(open_runner(options))
    formats = with_formats(FORMATS)
    computed = Fingerprints(
        dataset_sha256=dataset.sha256,
        tool_registry_sha256=offers.registry.sha256,
        fixtures_sha256=source.fixtures_sha256,
        tokenizer_fingerprint=runner.tokenizer_fingerprint(),
        prompt_wrapper_sha256=prompts.sha256,
        runner_fingerprint=runner_fingerprint(
            config,
            runner,
            decoding,
            wrapper_sha256=prompts.sha256,
            system=prompts.system,
            formats=formats,
            plugins=[*_marks_of(config.runner), *format_marks()],
        ),
        model_fingerprint=runner.model_fingerprint(),
    )
    warnings += _why_no_cache(config, computed)
    pinned = compare_pinned(dataset.header, computed)
    warnings += refuse_other_pins(
        dataset.header_place,
        dataset.header,
        computed,
        pinned,
        may_differ=not config.fail_on_fingerprint_mismatch,
    )
    return Setup(
        config=config,
        dataset=dataset,
        selection=selection,
        offers=offers,
        prompts=prompts,
        source=tools.source if tools else source,
        runner=runner,
        formats=formats,
        decoding=decoding,
        fingerprints=msgspec.structs.replace(
            computed,
            tokenizer_fingerprint=computed.tokenizer_fingerprint
            or dataset.header.tokenizer_fingerprint,
        ),
        pinned=pinned,
        rules=rules_of(config),
        scorers=tuple(one.mark for one in added_scorers()),
        warnings=tuple(warnings),
    )


def _check_cache(config: RunConfig) -> None:
    if config.cache is not None:
        from callmark.run.cached import check_cache

        check_cache(config)


def _why_no_cache(config: RunConfig, fingerprints: Fingerprints) -> tuple[str, ...]:
    if config.cache is None:
        return ()
    from callmark.run.cached import why_unused

    return why_unused(config, fingerprints)


@contextmanager
def add_cache(setup: Setup) -> Iterator[Setup]:
    """The same with a cache around its runner, where one was asked for."""
    if setup.config.cache is None:
        yield setup
        return
    from callmark.run.cached import open_cache

    with open_cache(setup) as cached:
        yield cached


def _marks_of(name: str) -> list[Json]:
    mark = runner_mark(name)
    return [] if mark is None else [mark]


def complete_config(config: RunConfig | Mapping[str, Json]) -> RunConfig:
    # What a caller gives is all there is: no file of the current folder is read.
    return config if isinstance(config, RunConfig) else load_config(Path(os.devnull), config)


def _dataset_of(config: RunConfig) -> Path | Literal["-"]:
    if config.dataset is None:
        raise UsageError("--in: which dataset? Name a JSONL file, or - for standard input")
    return "-" if config.dataset == "-" else Path(config.dataset)


def rules_of(config: RunConfig) -> tuple[GateRule, ...]:
    layers = {layer.source: layer.gates for layer in config.gates}
    try:
        return resolve_rules(
            layers["default"],
            layers.get("header"),
            layers.get("config"),
            layers.get("flag"),
            AddedGates(added_measures(), added_gates()),
        )
    except UsageError as error:
        raise place_error(config, error) from None
