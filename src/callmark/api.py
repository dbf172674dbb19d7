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
from callmark.datasets.schema import metadata_problems
from callmark.errors import UsageError
from callmark.records.jsontext import Json, plain_object, want_object, well_formed
from callmark.records.results import Result
from callmark.records.samples import DEFAULT_SPAN_CAP, Extractor, sample_id_of, sample_of
from callmark.records.trace import Trace, TraceEntry, UserTurn, entry_of
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
    checks = want_object(item.get("metadata")).get("checks")
    if checks is not None and (problems := metadata_problems({"checks": checks})):
        raise UsageError(problems[0])
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
    return plain_object(score_trial(sample, trace, settings))


def summarize_results(
    results: Iterable[Result | Mapping[str, Json]], **header: Json
) -> dict[str, Json]:
    """The report of a stream of results, judged by the shipped gates. `header` takes fields of
    the report's header; `gates` overrides bounds and policies."""
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


def run(config: Mapping[str, Json]) -> dict[str, Json]:
    """What `callmark run` does, with the keys of a callmark.yaml: the report (or, with `dry_run`,
    what would be run). Results and report are written where `out` and `report` say."""
    if config.get("baseline") is not None:
        raise UsageError("baseline: compare afterwards: callmark.compare(baseline, out)")
    # They need far more than the rest of this module.
    from callmark.run import conclude
    from callmark.run.prepare import complete_config
    from callmark.run.preview import dry_run

    whole = complete_config(config)
    return plain_object(dry_run(whole) if whole.dry_run else conclude.run(whole).report)


def compare(
    a: Path | str,
    b: Path | str,
    *,
    primary_metrics: Sequence[str] = PRIMARY,
    margin: float = MARGIN,
    common: bool = False,
    as_stored: bool = False,
    max_f1_delta: float | None = None,
    registry: str | None = None,
) -> dict[str, Json]:
    """What `callmark compare` does: is B worse than A? Results files, or reports."""
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
    return plain_object(compare_runs(Path(a), Path(b), options, tools=tools))


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
    return plain_object(outcome.report)


def validate_sharding(config: Mapping[str, Json]) -> dict[str, Json]:
    """What `callmark validate-sharding` does, with its options as keys: `dataset`, `model`,
    `runner`, `num_shards`, `fixtures`, `prompt_wrapper`, `config`, `seed`, `atol`, `rtol`,
    `output`, `temp_dir`. Returns what it wrote to `output`."""
    from callmark.shards.validate import validate_plainly

    return validate_plainly(config)


def _script(
    user_turns: Sequence[str], entries: Sequence[TraceEntry], turns: int
) -> tuple[UserTurn, ...]:
    """Each scripted follow-up is sent after the next assistant turn that makes no call."""
    calling = {entry.turn for entry in entries}
    answers = [turn for turn in range(1, turns + 1) if turn not in calling]
    answers += [turns] * len(user_turns)
    return tuple(UserTurn(turn, text) for turn, text in zip(answers, user_turns, strict=False))
