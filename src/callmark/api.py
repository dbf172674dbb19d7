"""The library's functions that take and give plain JSON values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import msgspec

from callmark import resources
from callmark.calls import ledger
from callmark.calls.registry import Registry
from callmark.compare.compare import CompareOptions
from callmark.compare.records import MARGIN, PRIMARY
from callmark.errors import UsageError
from callmark.plugins import add_plugins, add_runner, plugin_scope
from callmark.records.jsontext import Json, plain, well_formed
from callmark.records.results import Result
from callmark.records.samples import DEFAULT_SPAN_CAP, Extractor, sample_id_of, sample_of
from callmark.records.trace import Trace, UserTurn, entry_of
from callmark.run.offers import installed_formats
from callmark.scorers.score import ScoreSettings, cross_score, score_trial
from callmark.store.problems import typed_problem
from callmark.summary import summary
from callmark.summary.gates import resolve_rules


@lru_cache(maxsize=1)
def builtin_registry() -> Registry:
    return Registry.from_specs(resources.builtin_tools(), where="the built-in tools")


def parse_tool_calls(
    text: str | None,
    tools: Json = None,
    format: str = "auto",  # noqa: A002 - the public name of the option
) -> list[dict[str, Json]]:
    """The ledger of one text. `tools`, names or specs, are those that the model was offered (None:
    every name counts); `format` is `auto` or the name of one."""
    return ledger.parse_tool_calls(text, tools, format, formats=installed_formats())


def score_item(
    item: Mapping[str, Json],
    model_output: str | None,
    tool_trace: Sequence[Json] | None,
    *,
    turns: Sequence[Mapping[str, int]] | None = None,
    integration_span_cap: int = DEFAULT_SPAN_CAP,
    span_extractor: Extractor = "marker",
    registry: Registry | Json | None = None,
) -> dict[str, Json]:
    """The `scores` object of one result. `item` is a dataset item; `tool_trace` needs `name`,
    `arguments` and `result` of each call; `turns` are byte ranges of the assistant turns."""
    if span_extractor not in ("marker", "claims"):
        raise UsageError(f"span_extractor must be 'marker' or 'claims', not {span_extractor!r}")
    if registry is None:
        registry = builtin_registry()
    elif not isinstance(registry, Registry):
        registry = Registry.from_specs(registry, where="registry")
    sample = sample_of(item, index=0, sample_id=sample_id_of(item), item_sha256="")
    tools = sample.expectation.tools
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
    scores: dict[str, Json] = plain(score_trial(sample, trace, settings))
    return scores


def summarize_results(
    results: Iterable[Result | Mapping[str, Json]], **header: Json
) -> dict[str, Json]:
    """The report of a stream of results, judged by the shipped gates. `header` takes fields of
    the report's header; `gates` overrides bounds and policies."""
    rules = resolve_rules(resources.default_config()["gates"], config=header.pop("gates", None))
    cap = header.get("integration_span_cap") or DEFAULT_SPAN_CAP
    settings = ScoreSettings(registry=builtin_registry(), span_cap=cap)
    return summary.summarize_results(
        results,
        rules=rules,
        cross_score=lambda own, other: cross_score(own, other, settings),
        **header,
    )


def run(
    config: Mapping[str, Json], *, runner: object = None, plugins: Sequence[object] = ()
) -> dict[str, Json]:
    """What `callmark run` does, with the keys of a callmark.yaml: the report (or, with `dry_run`,
    what would be run). Results and report are written where `out` and `report` say. `runner`: what
    answers, in the place of a name: an object or a class like `callmark.records.seams.Runner`, or a
    function from a conversation to a text. `plugins`: files, or what a decorator of callmark
    marked."""
    if config.get("baseline") is not None:
        raise UsageError("baseline: compare afterwards: callmark.compare(baseline, out)")
    from callmark.shards.run import run_plainly  # needs far more than the rest of this module

    given = [one for one in plugins if not isinstance(one, str | Path)]
    is_object = runner is not None and not isinstance(runner, str)
    if config.get("engine") is not None and (given or is_object):
        raise UsageError(
            "engine: an object of this process cannot answer or score in another one: put it into"
            " a file, and name that in `plugins`"
        )
    with plugin_scope():
        add_plugins(given)
        files = [str(one) for one in plugins if isinstance(one, str | Path)]
        named: dict[str, Json] = dict(config)
        if files:
            before = config.get("plugins") or []
            named["plugins"] = [*([before] if isinstance(before, str) else before), *files]
        if runner is not None:
            named["runner"] = runner if isinstance(runner, str) else add_runner(runner)
        return run_plainly(named)


def compare(  # noqa: PLR0913 - the options of the command
    a: Path | str,
    b: Path | str,
    *,
    primary_metrics: Sequence[str] = PRIMARY,
    margin: float = MARGIN,
    common: bool = False,
    as_stored: bool = False,
    max_f1_delta: float | None = None,
    registry: str | None = None,
    plugins: Sequence[object] = (),
) -> dict[str, Json]:
    """What `callmark compare` does: is B worse than A? Results files, or reports. `plugins`: files
    with scorers, or the scorers themselves."""
    from callmark.compare.compare import Tools, compare_runs

    given = {
        "primary": tuple(dict.fromkeys(primary_metrics)),
        "margin": margin,
        "common": common,
        "as_stored": as_stored,
        "max_f1_delta": max_f1_delta,
    }
    try:
        options = msgspec.convert(given, CompareOptions)
    except msgspec.ValidationError as error:
        raise UsageError(f"compare: {typed_problem(error)}") from None
    tools = Tools(registry, instead=registry is not None)
    with plugin_scope():
        add_plugins(plugins)
        found: dict[str, Json] = plain(compare_runs(Path(a), Path(b), options, tools=tools))
    return found


def merge(
    paths: Sequence[Path | str],
    *,
    out: Path | str | None = None,
    report: Path | str | None = None,
    dataset: Path | str | None = None,
) -> dict[str, Json]:
    """What `callmark merge` does: the report of the whole run from the results files of its
    shards, or from folders of them. Files are written where `out` and `report` say."""
    from callmark.shards.merge import merge_shards

    outcome = merge_shards(
        [Path(path) for path in paths],
        out=None if out is None else Path(out),
        report=None if report is None else Path(report),
        dataset=None if dataset is None else Path(dataset),
    )
    found: dict[str, Json] = plain(outcome.report)
    return found


def validate_sharding(config: Mapping[str, Json]) -> dict[str, Json]:
    """What `callmark validate-sharding` does, with its options as keys: `dataset`, `model`,
    `runner`, `num_shards`, `fixtures`, `prompt_wrapper`, `config`, `seed`, `atol`, `rtol`,
    `output`, `temp_dir`. Returns what it wrote to `output`."""
    from callmark.shards.validate import validate_plainly

    return validate_plainly(config)


def _script(user_turns: Sequence[str], entries: Sequence[Json], turns: int) -> tuple[UserTurn, ...]:
    """Each scripted follow-up is sent after the next assistant turn that makes no call."""
    calling = {entry.turn for entry in entries}
    answers = [turn for turn in range(1, turns + 1) if turn not in calling]
    answers += [turns] * len(user_turns)
    return tuple(UserTurn(turn, text) for turn, text in zip(answers, user_turns, strict=False))
