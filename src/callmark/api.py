"""The library's functions. What a command does returns a record; the smaller ones plain JSON."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Unpack, overload

import msgspec

from callmark import resources
from callmark.calls import ledger
from callmark.calls.registry import Registry, ToolSpecs
from callmark.compare.records import MARGIN, PRIMARY
from callmark.datasets.schema import metadata_problems
from callmark.errors import UsageError
from callmark.plugins import add_plugins, add_runner, plugin_scope
from callmark.records.jsontext import Json, plain_object, want_list, want_object, well_formed
from callmark.records.problems import typed_problem
from callmark.records.report import Report
from callmark.records.results import DRAWN_BY, Result
from callmark.records.samples import DEFAULT_SPAN_CAP, Extractor, sample_id_of, sample_of
from callmark.records.trace import Trace, TraceEntry, UserTurn, entry_of
from callmark.run.offers import installed_formats
from callmark.scorers.score import ScoreSettings, cross_score, score_trial
from callmark.store import files, runs
from callmark.summary import summary
from callmark.summary.gates import resolve_rules

if TYPE_CHECKING:
    from callmark.compare.records import Comparison
    from callmark.config import RunSettings
    from callmark.run.preview import DryRun
    from callmark.shards.validate import ShardingSettings, Validation


def _draw_report(report: Report) -> str:
    from callmark.reports.notebook import draw_report

    return draw_report(report)


def _draw_result(result: Result) -> str:
    from callmark.reports.notebook import draw_result

    return draw_result(result)


DRAWN_BY.update({Report: _draw_report, Result: _draw_result})


@lru_cache(maxsize=1)
def builtin_registry() -> Registry:
    return Registry.from_specs(resources.builtin_tools(), where="the built-in tools")


def read_results(run: str | PathLike[str]) -> Iterator[Result]:
    """Read the trials of a run, one at a time. In a notebook each shows itself.

    Args:
        run: a results file, or the folder of a run.

    Returns:
        An iterator of `Result`: the prompt, the calls, the answer and its scores.

    Raises:
        BadInput: there is no such file, or a line that is no result.

    >>> import pathlib, tempfile
    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = pathlib.Path(folder, "results.jsonl")
    ...     report = callmark.verify_dataset(demo.dataset, fixtures=demo.fixtures, out=out)
    ...     len(list(callmark.read_results(out)))
    153
    """
    return files.read_results(runs.results_of(Path(run)))


def statements(run: str | PathLike[str]) -> list[dict[str, Any]]:
    """List what the answers of a run state, one row a statement: `pandas.DataFrame` takes it.

    Args:
        run: a results file, or the folder of a run.

    Returns:
        Rows with `sample_id`, `trial`, `text`, `label`, `rule`, `tier`, where it rests (`call`,
        `path`), what is there (`expected`) and the sentence (`because`).

    Raises:
        BadInput: there is no such file, or a line that is no result.

    >>> import pathlib, tempfile
    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = pathlib.Path(folder, "results.jsonl")
    ...     report = callmark.verify_dataset(demo.dataset, fixtures=demo.fixtures, out=out)
    ...     callmark.statements(out)[0]["label"]
    'supported'
    """
    from callmark.reports.tables import STATEMENT_COLUMNS, statement_rows

    return [
        dict(zip(STATEMENT_COLUMNS, row, strict=True))
        for result in read_results(run)
        for row in statement_rows(result)
    ]


def parse_tool_calls(
    text: str | None,
    tools: Collection[str] | ToolSpecs | None = None,
    format: str = "auto",  # noqa: A002 - the public name of the option
) -> list[dict[str, Any]]:
    """Find the tool calls that a model wrote into a text, well formed or not.

    Args:
        text: what the model wrote; None is the empty text.
        tools: what it was offered, by name or as specs. None: every name counts as offered.
        format: `auto`, or the name of one format (docs/call-formats.md lists them).

    Returns:
        One entry per attempt, in the order of the text: `name`, `arguments`, `format`, `raw`,
        `status` (`ok`, `repaired`, `malformed`, `unparsed`, `in_reasoning`) and `reason`.

    Raises:
        UsageError: a format that there is not, or tools without a name.

    >>> import callmark
    >>> text = '<tool_call>{"name": "web.search", "arguments": {"q": "boats"}}</tool_call>'
    >>> [call] = callmark.parse_tool_calls(text)
    >>> call["name"], call["arguments"], call["status"]
    ('web.search', {'q': 'boats'}, 'ok')
    """
    return ledger.parse_tool_calls(text, tools, format, formats=installed_formats())


def score_item(
    item: Mapping[str, Json],
    model_output: str | None,
    tool_trace: Sequence[Json] | None,
    *,
    turns: Sequence[Mapping[str, int]] | None = None,
    integration_span_cap: int = DEFAULT_SPAN_CAP,
    span_extractor: Extractor = "marker",
    registry: Registry | ToolSpecs | None = None,
) -> dict[str, Any]:
    """Score one answer, with the tools that it called.

    Args:
        item: an item of a dataset: `prompt`, `metadata`, …
        model_output: what the model answered; None is the empty text.
        tool_trace: its calls, each with `name`, `arguments` and `result`; None: there were none.
        turns: `{"start", "end"}` of every assistant turn in the answer, in UTF-8 bytes. None: any
            result counts for any statement.
        integration_span_cap: how many spans of an answer are scored.
        span_extractor: `marker` (spans that begin with `Integration:`) or `claims` (sentences
            that say something which can be checked).
        registry: the specs of the tools; None: the built-in ones.

    Returns:
        The `scores` object of a results line: `lax`, `strict`, `spans`, `calls`, `call_f1`, …

    Raises:
        UsageError: an extractor that there is not.
        BadInput: specs that are none.

    >>> import callmark
    >>> call = {"name": "web.search", "arguments": {"q": "boats"}}
    >>> item = {"prompt": "How many boats?", "metadata": {"call_sequence": [call]}}
    >>> trace = [{**call, "result": {"count": 12}}]
    >>> scores = callmark.score_item(item, "There are 12 boats.", trace, span_extractor="claims")
    >>> scores["lax"]["f1"], scores["call_f1"]
    (1.0, 1.0)
    """
    if span_extractor not in ("marker", "claims"):
        raise UsageError(f"span_extractor must be 'marker' or 'claims', not {span_extractor!r}")
    if registry is None:
        registry = builtin_registry()
    elif not isinstance(registry, Registry):
        registry = Registry.from_specs(registry, where="registry")
    checks = want_object(item.get("metadata")).get("checks")
    if checks is not None and (problems := metadata_problems({"checks": checks})):
        raise UsageError(problems[0])
    sample = sample_of(item, index=0, sample_id=sample_id_of(item), item_sha256="")
    tools = sample.expectation.tools
    registry = registry.offering(tools or (), sample.expectation.specs)
    entries = tuple(entry_of(raw) for raw in tool_trace or ())
    trace = Trace(
        model_output=well_formed(model_output or ""),
        tool_trace=entries,
        turns=None if turns is None else tuple((turn["start"], turn["end"]) for turn in turns),
        said=_script(sample.user_turns, entries, len(turns) if turns is not None else 0),
    )
    settings = ScoreSettings(
        registry=registry,
        offered=None if tools is None else frozenset(tools),
        extractor=span_extractor,
        span_cap=integration_span_cap,
    )
    return plain_object(score_trial(sample, trace, settings))


def summarize_results(
    results: Iterable[Result | Mapping[str, Json]], **header: Json
) -> dict[str, Any]:
    """Make the report of results, judged by the shipped gates. They are read as a stream.

    Args:
        results: lines of a results file, as objects or records; of other people's only
            `sample_id` and `scores` have to be there.
        header: fields of the report's header, such as `seed`; and `gates`, which overrides bounds
            and policies: `{"integration_f1_macro_lax": {"bound": 0.9}}`.

    Returns:
        The report, as `report.json` has it.

    Raises:
        UsageError: a field of the header, or a gate, that there is not.
        BadInput: a result that cannot be read; its number is named.

    >>> import callmark
    >>> scores = callmark.score_item({"prompt": "Hello"}, "Hello!", None)
    >>> report = callmark.summarize_results([{"sample_id": "a", "scores": scores}])
    >>> report["verdict"], report["counts"]["samples"]
    ('inconclusive', 1)
    """
    gates, cap = header.pop("gates", None), header.get("integration_span_cap")
    if not isinstance(gates, Mapping | None):
        raise UsageError(f"gates: must be an object {{gate: bound}}, not {type(gates).__name__}")
    rules = resolve_rules(resources.default_gates(), config=gates)
    span_cap = cap if isinstance(cap, int) and cap else DEFAULT_SPAN_CAP
    settings = ScoreSettings(registry=builtin_registry(), span_cap=span_cap)
    return summary.summarize_results(
        results,
        rules=rules,
        cross_score=lambda own, other: cross_score(own, other, settings),
        header=header,
    )


@overload
def run(
    config: Mapping[str, Json] | None = None,
    *,
    dry_run: Literal[False] = False,
    runner: object = None,
    plugins: Sequence[object] = (),
    **settings: Unpack[RunSettings],
) -> Report: ...


@overload
def run(
    config: Mapping[str, Json] | None = None,
    *,
    dry_run: Literal[True],
    runner: object = None,
    plugins: Sequence[object] = (),
    **settings: Unpack[RunSettings],
) -> DryRun: ...


def run(
    config: Mapping[str, Json] | None = None,
    *,
    dry_run: bool = False,
    runner: object = None,
    plugins: Sequence[object] = (),
    **settings: Unpack[RunSettings],
) -> Report | DryRun:
    """Ask a model about every sample of a dataset, score its answers and judge them: what
    `callmark run` does.

    Args:
        config: the keys of a `callmark.yaml`, such as a parsed one. No file of the current folder
            is read. With neither `out` nor `report` nothing is written.
        dry_run: check everything that can be checked before a model is asked, and stop there.
        runner: what answers: the name of a runner, or an object or a class like
            `callmark.records.seams.Runner`, or a function from a conversation to a text.
        plugins: files with scorers, runners, call formats or reports of your own, or what a
            decorator of callmark marked.
        settings: the same keys as keyword arguments, which win: `dataset` (`in` in a file),
            `model`, `fixtures`, `gates`, `out`, `report`, … (`RunSettings` has all).

    Returns:
        The report, as `report.json` has it; with `dry_run`, what would be run. `.to_dict()` gives
        either as plain JSON values.

    Raises:
        UsageError: a setting that there is not, or a value that it cannot have.
        BadInput: a dataset, fixture or recording that cannot be read; file and line are named.
        FingerprintMismatch: a pinned hash, or the run to be resumed, is another one.
        MissingExtra: the runner needs something that is not installed.
        Incomplete: infrastructure failed, so that there is no report.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> report = callmark.run(
    ...     runner="replay", dataset=demo.dataset, fixtures=demo.fixtures, model=demo.answers
    ... )
    >>> report.verdict, report.counts.eligible, report.to_dict()["gates_ok"]
    ('pass', 104, True)
    """
    # They need far more than the rest of this module.
    from callmark.config import plain_paths
    from callmark.run import conclude
    from callmark.run.prepare import complete_config
    from callmark.run.preview import dry_run as preview

    chosen = plain_paths({**(config or {}), **settings})
    if chosen.get("baseline") is not None:
        raise UsageError("baseline: compare afterwards: callmark.compare(baseline, out)")
    if chosen.pop("dry_run", None):
        raise UsageError("dry_run: give it by name: callmark.run(config, dry_run=True)")
    objects = [one for one in plugins if not isinstance(one, str | PathLike)]
    is_object = runner is not None and not isinstance(runner, str)
    if chosen.get("engine") is not None and (objects or is_object):
        raise UsageError(
            "engine: an object of this process cannot answer or score in another one: put it into"
            " a file, and name that in `plugins`"
        )
    with plugin_scope():
        add_plugins(objects)
        files = [fspath(one) for one in plugins if isinstance(one, str | PathLike)]
        if files:
            before = chosen.get("plugins") or []
            named = [before] if isinstance(before, str) else want_list(before)
            chosen["plugins"] = [*named, *files]
        if runner is not None:
            chosen["runner"] = runner if isinstance(runner, str) else add_runner(runner)
        whole = complete_config(chosen)
        return preview(whole) if dry_run else conclude.run(whole).report


def compare(  # noqa: PLR0913 - the options of the command
    a: str | PathLike[str],
    b: str | PathLike[str],
    *,
    primary_metrics: Sequence[str] = PRIMARY,
    margin: float = MARGIN,
    common: bool = False,
    as_stored: bool = False,
    max_f1_delta: float | None = None,
    max_ratio: Mapping[str, float] | None = None,
    registry: str | None = None,
    plugins: Sequence[object] = (),
) -> Comparison:
    """Is run B worse than run A? What `callmark compare` does: what another version scored
    is scored again, both are paired by sample, and decided on.

    Args:
        a: the results file of the run before, its folder, or its report.
        b: the same of the run after.
        primary_metrics: what the decision is made on.
        margin: the loss that does not matter.
        common: compare the samples that both have, where they do not have the same.
        as_stored: take the scores that the files hold instead of scoring again.
        max_f1_delta: also check that macro F1 differs by no more than this.
        max_ratio: how many times the `tokens`, `latency` or `cost` of A's trials B's may take.
        registry: the tools' specs, where the runs do not say where theirs are.
        plugins: files with scorers, or the scorers themselves.

    Returns:
        The comparison: `decision`, `primary`, `pairs`, `flips`, …; `.to_dict()` is what
        `callmark compare --json` writes.

    Raises:
        UsageError: an option with a value that it cannot have, or a metric that there is not.
        BadInput: a file that cannot be read; file and line are named.
        FingerprintMismatch: the two are no runs of the same dataset.

    >>> import tempfile, callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = f"{folder}/results.jsonl"
    ...     report = callmark.run(runner="replay", dataset=demo.dataset, fixtures=demo.fixtures,
    ...                           model=demo.answers, out=out)
    ...     comparison = callmark.compare(out, out)
    >>> comparison.pairs.paired, comparison.primary[0].difference
    (153, 0.0)
    """
    from callmark.compare.compare import CompareOptions, Tools, compare_runs

    given = {
        "primary": tuple(dict.fromkeys(primary_metrics)),
        "margin": margin,
        "common": common,
        "as_stored": as_stored,
        "max_f1_delta": max_f1_delta,
        "max_ratio": dict(max_ratio or {}),
    }
    try:
        options = msgspec.convert(given, CompareOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"compare: {typed_problem(error)}") from None
    tools = Tools(registry, instead=registry is not None)
    with plugin_scope():
        add_plugins(plugins)
        return compare_runs(Path(a), Path(b), options, tools=tools)


def merge(
    paths: Sequence[str | PathLike[str]],
    *,
    out: str | PathLike[str] | None = None,
    report: str | PathLike[str] | None = None,
    dataset: str | PathLike[str] | None = None,
) -> Report:
    """Put the shards of a run together: what `callmark merge` does.

    Args:
        paths: the results files of all shards, or folders of them.
        out: where to write the results of the whole run.
        report: where to write its report.
        dataset: the dataset, to check that every sample of it is there.

    Returns:
        The report of the whole run, the same as without shards; `.to_dict()` gives it as plain
        JSON values.

    Raises:
        BadInput: a file that cannot be read, or a shard or sample that is missing.
        FingerprintMismatch: the files are not of one run.
        UsageError: a file that cannot be written.

    >>> import tempfile, callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for shard in (0, 1):
    ...         part = callmark.run(runner="replay", dataset=demo.dataset, fixtures=demo.fixtures,
    ...                             model=demo.answers, num_shards=2, shard_index=shard,
    ...                             out=f"{folder}/{shard}.jsonl",
    ...                             report=f"{folder}/{shard}.report.json")
    ...     whole = callmark.merge([f"{folder}/0.jsonl", f"{folder}/1.jsonl"])
    >>> whole.verdict, whole.counts.samples
    ('pass', 153)
    """
    from callmark.shards.merge import merge_shards

    outcome = merge_shards(
        [Path(path) for path in paths],
        out=None if out is None else Path(out),
        report=None if report is None else Path(report),
        dataset=None if dataset is None else Path(dataset),
    )
    return outcome.report


def validate_sharding(
    config: Mapping[str, Json] | None = None, /, **settings: Unpack[ShardingSettings]
) -> Validation:
    """Run a dataset whole and in shards, and compare every result: what `callmark
    validate-sharding` does.

    Args:
        config: its options as keys.
        settings: the same as keyword arguments, which win: `dataset`, `model`, `runner`,
            `num_shards`, `fixtures`, `prompt_wrapper`, `config` (a settings file for all runs),
            `seed`, `atol`, `rtol`, `output` (the file that is written), `temp_dir`.

    Returns:
        The validation; `.to_dict()` is what was written to `output`.

    Raises:
        UsageError: an option that there is not, or a value that it cannot have.
        CallmarkError: one of the runs failed, and said why.

    >>> import tempfile, callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     validation = callmark.validate_sharding(
    ...         dataset=demo.dataset, fixtures=demo.fixtures, model=demo.answers, runner="replay",
    ...         num_shards=2, output=f"{folder}/validation.json")
    >>> validation.ok, validation.per_example_mismatches
    (True, 0)
    """
    from callmark.config import plain_paths
    from callmark.shards.validate import validate_sharding as validate

    return validate(plain_paths({**(config or {}), **settings})).validation


def _script(
    user_turns: Sequence[str], entries: Sequence[TraceEntry], turns: int
) -> tuple[UserTurn, ...]:
    """Each scripted follow-up is sent after the next assistant turn that makes no call."""
    calling = {entry.turn for entry in entries}
    answers = [turn for turn in range(1, turns + 1) if turn not in calling]
    answers += [turns] * len(user_turns)
    return tuple(UserTurn(turn, text) for turn, text in zip(answers, user_turns, strict=False))
