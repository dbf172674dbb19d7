"""Every public name, used as a reader of the docs would: checked by mypy --strict and by pyright, never
run. `assert_type` says what each of them gives."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import callmark
from callmark import Comparison, DryRun, Report, Result, ToolBroker, Validation

Plain = dict[str, Any]

assert_type(callmark.__version__, str)


def running(settings: Mapping[str, object]) -> None:
    report = callmark.run(settings)
    assert_type(report, Report)
    assert_type(report.verdict == "pass", bool)
    assert_type(report.metrics["integration_f1_macro_lax"].n, int)
    assert_type(report.to_dict(), Plain)
    assert_type(
        callmark.run(
            runner="openai_http",
            model="my-model",
            base_url="http://localhost:8000/v1",
            dataset=Path("data.jsonl"),
            fixtures="fixtures",
            temperature=0.2,
            gates={"call_f1": {"bound": 0.9}},
            out=Path("results.jsonl"),
        ),
        Report,
    )
    assert_type(callmark.run(settings, seed=7, dry_run=True), DryRun)
    assert_type(callmark.run(settings, dry_run=True).trials, int)
    assert_type(callmark.run(settings, dry_run=True).to_dict(), Plain)


def reading(run: Path) -> None:
    assert_type(next(callmark.read_results(run)), Result)
    assert_type(callmark.statements("runs/latest"), list[Plain])


def comparing(before: Path, after: str) -> None:
    comparison = callmark.compare(before, after, margin=0.05, common=True)
    assert_type(comparison, Comparison)
    assert_type(comparison.pairs.paired, int)
    assert_type(comparison.primary[0].difference, float | None)
    assert_type(comparison.to_dict(), Plain)


def sharding() -> None:
    assert_type(callmark.merge([Path("a.jsonl"), Path("b.jsonl")], out="whole.jsonl"), Report)
    validation = callmark.validate_sharding(dataset="data.jsonl", num_shards=3)
    assert_type(validation, Validation)
    assert_type(validation.ok, bool)
    assert_type(callmark.validate_sharding({"dataset": "data.jsonl"}).to_dict(), Plain)
    assert_type(callmark.shard_of("a", 3), int)


def datasets(path: Path, item: Plain) -> None:
    assert_type(callmark.verify_dataset(path, fixtures=Path("fixtures"), seed=1), Report)
    assert_type(callmark.dataset_sha256(path), str)
    assert_type(callmark.sample_id_of(item), str)
    assert_type(callmark.registry_sha256([{"name": "f"}]), str)


def answers(item: Plain, trace: list[Plain]) -> None:
    scores = callmark.score_item(item, "There are 12.", trace, span_extractor="claims")
    assert_type(scores, Plain)
    assert_type(callmark.summarize_results([{"sample_id": "a", "scores": scores}], seed=1), Plain)
    assert_type(callmark.extract_spans("There are 12.", "claims"), list[list[int]])
    assert_type(callmark.ground("There are 12.", [{"count": 12}], locale="en"), Plain)
    assert_type(callmark.parse_tool_calls("f()", tools=["f"]), list[Plain])
    assert_type(callmark.validate_arguments({"name": "f"}, {"q": 1}), list[str])
    assert_type(callmark.check_privacy("a@b.example", known=["a@b.example"]), Plain)
    assert_type(callmark.redact_pii("a@b.example"), str)
    assert_type(callmark.render_prompt("short.tmpl", user="Hello"), list[Plain])
    fidelity = callmark.tool_use_fidelity([item], ["f()"], [None], null_rates=[0.1])
    assert_type(fidelity, Plain)


def tools(folder: Path) -> None:
    broker = ToolBroker(folder, registry=[{"name": "web.search"}])
    assert_type(broker.call("web.search", {"q": "boats"})["count"] == 12, Any)
    assert_type(broker.normalize("web.search", {}), tuple[str, str | None])
    assert_type(broker.stats, Plain)


@callmark.runner
def parrot(conversation: object) -> str:
    return "again"


@callmark.call_format(opening="ASK ", hint="ASK ")
def ask(reading: object, start: int, mark_end: int) -> None:
    return None


@callmark.scorer(measures={"words": "lower"}, gates={"words": {"<=": 40}})
def brevity(sample: object, trace: object) -> dict[str, float]:
    return {"words": 3.0}


@callmark.report(ending=".txt")
def one_line(run: object) -> str:
    return "one"


@callmark.importer(recognise=lambda entry: "question" in entry)
def quiz(entry: Plain) -> Plain:
    return {"prompt": entry["question"]}


def with_plugins() -> None:
    assert_type(callmark.run(runner=parrot, plugins=[brevity, Path("more.py")]), Report)
    assert_type(callmark.compare("a.jsonl", "b.jsonl", plugins=[brevity]), Comparison)
    assert_type(parrot(None), str)
    assert_type(brevity(None, None), dict[str, float])
