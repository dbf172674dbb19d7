"""Everything that a run needs: opened, checked and fingerprinted before anything is generated."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Literal

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
from callmark.records.jsontext import Json, want_object
from callmark.records.problems import Problems
from callmark.records.report import GateRule
from callmark.records.results import Decoding, Fingerprints, Result, ScorerMark
from callmark.records.samples import MARKER, ExtractorBy, Sample, shard_of
from callmark.records.seams import Runner, ToolSource
from callmark.run.faults import ToolFaults, open_faults
from callmark.run.offers import (
    GivenTools,
    Offers,
    check_allowed,
    check_tools,
    open_offers,
    open_source,
)
from callmark.run.play import opening_messages
from callmark.run.resume import (
    Check,
    compare_pinned,
    refuse_other_pins,
    resume_key,
    runner_fingerprint,
)
from callmark.runners.options import (
    SERVED,
    LocalOptions,
    RunnerFactory,
    RunnerOptions,
    ServedOptions,
)
from callmark.runners.wrappers import DEFAULT_SYSTEM, Messages, Wrapper, open_wrapper
from callmark.store.files import check_writable, read_results
from callmark.store.runs import RESULTS
from callmark.summary.gates import AddedGates, resolve_rules
from callmark.summary.reasons import why_failed

if TYPE_CHECKING:
    from callmark.runners.response_template import ResponseTemplate


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


class Prompts:
    """Opening messages for samples. `system` is put before prompts that have none; a wrapper, whose
    template may speak of it, has a default for it, which an empty one switches off."""

    def __init__(self, wrapper: Wrapper | None, system: str | None) -> None:
        self._wrapper = wrapper
        self.system = DEFAULT_SYSTEM if system is None and wrapper is not None else system
        self.sha256 = None if wrapper is None else wrapper.sha256
        self.raw = wrapper is not None and wrapper.raw
        self.asks_for_marker: ExtractorBy | None = None
        if wrapper is not None and MARKER in wrapper.source:
            self.asks_for_marker = "wrapper"
        elif MARKER in (system or ""):
            self.asks_for_marker = "system_message"
        self.loses_prompt = wrapper is not None and "user" not in wrapper.variables

    def opening(self, sample: Sample, tools: Sequence[Json]) -> Messages:
        messages = opening_messages(sample)
        first = messages[0] if messages and messages[0].get("role") == "system" else None
        if self._wrapper is not None:
            return self._wrapped(self._wrapper, first, messages, tools)
        if self.system and first is None:
            return [{"role": "system", "content": self.system}, *messages]
        return messages

    def _wrapped(
        self,
        wrapper: Wrapper,
        first: dict[str, Json] | None,
        messages: Messages,
        tools: Sequence[Json],
    ) -> Messages:
        """The first system and the last user message through the wrapper; between them the
        conversation stays as it is."""
        others = messages if first is None else messages[1:]
        system = self.system or "" if first is None else first.get("content")
        last: dict[str, Json] = others[-1] if others else {}
        if last.get("role") != "user":
            raise UsageError("cannot be wrapped: the last message must be the user's")
        if any(message.get("role") == "system" for message in others):
            raise UsageError("cannot be wrapped: only the first message may be a system message")
        if wrapper.raw and len(others) > 1:
            raise UsageError("is a conversation, which no flat text can hold; use a .j2 wrapper")
        user = last.get("content")
        if not isinstance(system, str) or not isinstance(user, str):
            raise UsageError("cannot be wrapped: system and user content must be plain text")
        made = wrapper.render(user=user, system=system, tools=tools)
        before = [message for message in made if message["role"] == "system"]
        opening = [*before, *others[:-1], *(one for one in made if one["role"] == "user")]
        if not opening:
            raise UsageError("the wrapper leaves nothing of it")
        return opening


def open_prompts(path: str | None, system: str | None) -> Prompts:
    return Prompts(None if path is None else open_wrapper(Path(path)), system)


def check_prompts(
    prompts: Prompts, dataset: Dataset, selection: Selection, offers: Offers
) -> list[str]:
    """Warns of samples that cannot be wrapped, each named by its line: they end as errors, the
    others are run. Refuses a run of which nothing would be left. Warns of a wrapper that leaves the
    prompt out."""
    if prompts.sha256 is None:
        return []
    problems = Problems()
    for sample in selection.chosen(dataset):
        try:
            prompts.opening(sample, offers.to(sample).tools)
        except UsageError as error:
            where = "" if problems.is_enough else f"{dataset.name}:{dataset.line_of(sample)}"
            problems.add(where, f"prompt: {error}")
    # A shard may be unlucky: whether anything is left is a question for all of them.
    if problems.count == selection.count and selection.num_shards == 1:
        problems.raise_if_any()
    warnings = [
        f"{problem}; it counts as an error (--max-errors), the others are run"
        for problem in problems.found
    ]
    more = problems.count - len(problems.found)
    if more:
        warnings.append(f"{dataset.name}: {more} more samples cannot be wrapped")
    if prompts.loses_prompt:
        warnings.append("the prompt wrapper never uses `user`: every sample gets the same prompt")
    return warnings


_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
# Headers whose value is a secret by its nature: never written out in a config file.
_SECRET_HEADERS = re.compile(r"authorization|cookie|token|secret|key", re.IGNORECASE)
_PASSWORD = re.compile(r"//[^/@]*:(?!\$\{)[^/@]+@")


_SERVED = (
    "base_url", "api_key", "headers", "extra_body", "max_connections", "request_timeout",
    "sample_timeout", "max_retries", "model_revision",
)  # fmt: skip
_LOCAL = ("adapter", "dtype", "device", "batch_size")
# What the built-in runners never look at. Decoding is recorded whoever answers, and is not here.
_UNUSED = {
    **dict.fromkeys(SERVED, _LOCAL),
    "hf_local": _SERVED,
    "replay": (*_SERVED, *_LOCAL),
}


def refuse_unused(config: RunConfig) -> list[str]:
    """Refuses settings that do nothing for the runner. Where a flag chose another runner than the
    settings file is for, what the file says for its own is left aside with a warning."""
    left: list[str] = []
    for name in _UNUSED.get(config.runner, ()):
        source = config.source_of(name)
        if source == "default" or getattr(config, name) in (None, {}):
            continue
        if source == "config" and config.source_of("runner") == "flag":
            left.append(f"{config.places.get(name, config.config_file)}: {name}")
            continue
        raise UsageError(
            f"--{name.replace('_', '-')}: does nothing for the runner {config.runner}:"
            f" leave it out, or choose --runner {'hf_local' if name in _LOCAL else 'openai_http'}"
        )
    if not left:
        return []
    return [f"left aside, because --runner {config.runner} does not use it: {', '.join(left)}"]


def runner_options(
    config: RunConfig,
    offers: Offers,
    decoding: Decoding,
    *,
    raw_prompt: bool = False,
    asked: Callable[[str], bool] | None = None,
) -> RunnerOptions:
    return RunnerOptions(
        model=config.model,
        decoding=decoding,
        tool_registry_sha256=offers.registry.sha256,
        tools=tuple(offers.registry.openai_tools(sorted(offers.allowed))),
        parse_text=config.parse_text,
        determinism_mode=config.determinism_mode,
        raw_prompt=raw_prompt,
        asked=asked,
        served=_served_options(config),
        local=LocalOptions(
            adapter=config.adapter,
            dtype=config.dtype,
            device=config.device,
            batch_size=None if config.batch_size == "auto" else int(config.batch_size),
        ),
    )


def _served_options(config: RunConfig) -> ServedOptions:
    if config.source_of("base_url") == "config" and _PASSWORD.search(config.base_url or ""):
        raise UsageError("--base-url: a password must not stand in a file: write ${NAME}")
    if config.api_key is not None and not _VARIABLE.fullmatch(config.api_key):
        raise UsageError("--api-key: a key must not stand in a file: write ${NAME_OF_A_VARIABLE}")
    for name, value in config.headers.items():
        if _SECRET_HEADERS.search(name) and not _VARIABLE.search(value):
            raise UsageError(
                f"--headers.{name}: a secret must not stand in a file: write ${{NAME}}"
            )
    auto = config.max_connections == "auto"
    # A runner of somebody else is given what most servers want.
    address = SERVED.get(config.runner, SERVED["openai_http"])
    secrets: list[str] = []
    return ServedOptions(
        base_url=resolve_text(config.base_url or "", "base_url", secrets)
        or os.environ.get(address.url_variable),
        api_key=(
            os.environ.get(address.key_variable)
            if config.api_key is None
            else resolve_text(config.api_key, "api_key", secrets)
        ),
        headers={
            name: resolve_text(value, f"headers.{name}", secrets)
            for name, value in config.headers.items()
        },
        extra_body=want_object(resolve_secrets(config.extra_body, "extra_body", secrets)),
        extra_body_written=config.extra_body,
        secrets=tuple(secrets),
        max_connections=None if auto else int(config.max_connections),
        request_timeout=config.request_timeout,
        max_retries=0 if config.determinism_mode else config.max_retries,
        model_revision=config.model_revision,
    )


def resolve_text(text: str, where: str, secrets: list[str]) -> str:
    """`${NAME}` replaced by the environment's value. What was put in is added to `secrets`."""
    return _VARIABLE.sub(lambda found: _variable(found.group(1), where, secrets), text)


def resolve_secrets(value: Json, where: str, secrets: list[str]) -> Json:
    """The same at every depth."""
    if isinstance(value, str):
        return resolve_text(value, where, secrets)
    if isinstance(value, list):
        return [resolve_secrets(one, where, secrets) for one in value]
    if isinstance(value, dict):
        return {key: resolve_secrets(one, f"{where}.{key}", secrets) for key, one in value.items()}
    return value


def _variable(name: str, where: str, secrets: list[str]) -> str:
    try:
        found = os.environ[name]
    except KeyError:
        raise UsageError(f"--{where}: the environment variable {name} is not set") from None
    secrets.append(found)
    return found


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
    template: ResponseTemplate | None = None
    faults: ToolFaults | None = None
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
    unmet = check_tools(dataset, offers, are_live=tools is not None)
    warnings = [*dataset.warnings, *check_allowed(offers), *unmet]
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
    template = _response_template(config)
    faults = None
    if config.faults is not None:
        faults = open_faults(Path(config.faults), config, offers.registry, dataset)
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
            template=None if template is None else template.sha256,
        ),
        model_fingerprint=runner.model_fingerprint(),
        faults_sha256=None if faults is None else faults.sha256,
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
        template=template,
        faults=faults,
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


def _response_template(config: RunConfig) -> ResponseTemplate | None:
    if config.response_template is None:
        return None
    if config.runner == "hf_local":
        raise UsageError(
            "--response-template: hf_local reads answers by the response_template of the"
            " tokenizer: put it into the tokenizer_config.json of the model"
        )
    if config.parse_text == "off":
        raise UsageError(
            "--response-template: reads calls in the text, which --parse-text off forbids"
        )
    # Few servers leave calls in the text: who needs no template does not load it.
    from callmark.runners.response_template import open_response_template

    return open_response_template(config.response_template)


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
