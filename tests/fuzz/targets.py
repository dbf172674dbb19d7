"""What is done with a spoilt file, and what must come of it: a result in which every line of the
file is accounted for, or a named error that says where."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml
from tests.fuzz import commands
from tests.fuzz.accounting import every_entry_named, every_line_named, lines_with_content
from tests.fuzz.commands import read_answers, read_dataset, read_fixtures, read_results_file
from tests.fuzz.material import Material
from tests.fuzz.mutations import JSON_FILE, LINE_FILE, YAML_FILE, Mutate

from callmark.broker.broker import ToolBroker
from callmark.broker.check import check_fixtures
from callmark.broker.fixtures import load_folder
from callmark.broker.nearest import suggest
from callmark.config import load_config
from callmark.datasets.reader import dataset_sha256, open_dataset
from callmark.reports.show import show_blocks
from callmark.reports.terminal import report_blocks
from callmark.resources import allowlist
from callmark.run.conclude import run
from callmark.run.offers import check_allowed, open_offers, open_registry
from callmark.run.prepare import rules_of
from callmark.run.rescore import score_file
from callmark.store.files import read_results
from callmark.store.recorded import RecordedIndex, read_recorded

CALLS = [
    ("web.search", {"q": "city 1"}),
    ("web.search", {"q": "town x", "lang": 3}),
    ("web.search", {"q": "a" * 1_000}),  # would keep some expressions busy for ever
    ("noop", {}),
]
SAMPLES = 7


class Target(NamedTuple):
    good: str  # which material it starts from
    file: str
    ways: tuple[Mutate, ...]
    use: Callable[[Material, Path], None]


def use_dataset(material: Material, path: Path) -> None:
    with every_line_named(path, read_dataset):
        report = run(material.config(dataset=str(path), max_errors=10**6, **_written(path))).report
    with open_dataset(path) as dataset:
        samples = list(dataset.samples())
    lines = lines_with_content(path) - dataset.has_header
    assert len(samples) == dataset.facts.samples == lines
    assert len({sample.sample_id for sample in samples}) == lines
    assert dataset.sha256 == dataset_sha256(path)
    assert report.counts.samples == report.counts.trials == lines
    assert lines_with_content(path.with_name("out.jsonl")) == lines
    list(report_blocks(report))


def _written(path: Path) -> dict[str, object]:
    """Places for what a run writes: it must be possible to write all that was read."""
    folder = path.parent
    places = {"out": str(folder / "out.jsonl"), "report": str(folder / "report.json")}
    return {**places, "restart": True}


def use_fixtures(material: Material, path: Path) -> None:
    with every_line_named(path, read_fixtures):
        _answer_from(material, path, lines_with_content(path))


def use_fixture_list(material: Material, path: Path) -> None:
    registry = open_registry(str(material.registry))
    value = every_entry_named(path, lambda file: load_folder(file.parent, registry))
    _answer_from(material, path, len(value) if isinstance(value, list) else 1)


def _answer_from(material: Material, path: Path, entries: int) -> None:
    registry = open_registry(str(material.registry))
    loaded = load_folder(path.parent, registry)
    assert len(loaded.fixtures) == entries
    broker = ToolBroker(path.parent, registry)
    kept = sum(map(len, broker.index.groups()))
    # Two fixtures with one pattern are one, whatever example of it their keys are.
    assert kept == len(
        {
            (f.name, f.sample_id, f.key_json if isinstance(f.match, str) else "", f.seq, f.match)
            for f in loaded.fixtures
        }
    )
    for name, arguments in CALLS:
        broker.call(name, arguments)
    check_fixtures(broker)
    run(material.config(fixtures=str(path.parent)))


def use_answers(material: Material, path: Path) -> None:
    """As a model that is replayed, and scored as they are."""
    with every_line_named(path, read_answers):
        report = run(material.config(model=str(path), repeat=2)).report
    assert report.counts.trials == 2 * SAMPLES
    with RecordedIndex(path) as index:
        assert index.count == lines_with_content(path)
        for recorded in read_recorded(path):
            assert index.get(recorded.sample_id, recorded.trial) == recorded
    _score(material, path)


def use_results(material: Material, path: Path) -> None:
    with every_line_named(path, read_results_file, only_first=True):
        results = list(read_results(path))
    assert len(results) == lines_with_content(path)
    for result in results:
        list(show_blocks(result))
    calls = [(result.sample_id, call) for result in results for call in result.tool_trace]
    suggest(calls, ToolBroker(material.fixtures))
    _score(material, path)


def _score(material: Material, path: Path) -> None:
    report = score_file(path, material.config(dataset=None, registry=None)).report
    assert report.counts.trials == lines_with_content(path)
    list(report_blocks(report))


def use_registry(material: Material, path: Path) -> None:
    registry = open_registry(str(path))
    value = json.loads(path.read_bytes().decode("utf-8-sig"))
    assert len(registry.names) == _specs(value)
    for name in registry.names:
        registry.validate(name, {"q": "x", "top_k": 2})
    run(material.config(registry=str(path)))


def use_registry_folder(material: Material, path: Path) -> None:
    """The spoilt file beside a good one."""
    path.with_name("other.json").write_text('{"name": "other"}')
    registry = open_registry(str(path.parent))
    value = json.loads(path.read_bytes().decode("utf-8-sig"))
    assert len(registry.names) == _specs(value) + 1
    run(material.config(registry=str(path.parent)))


def use_allowlist(material: Material, path: Path) -> None:
    names = allowlist(path)
    offers = open_offers(str(material.registry), str(path))
    unknown = [name for name in set(names) if offers.registry.resolve(name) is None]
    assert len(check_allowed(offers)) == len(unknown)
    run(material.config(allowlist=str(path)))


def use_config(material: Material, path: Path) -> None:
    flags = {
        "dataset": str(material.dataset),
        "fixtures": str(material.fixtures),
        "model": str(material.answers),
    }
    config = load_config(path, flags)
    set_here = {{"in": "dataset"}.get(key, key) for key in yaml.safe_load(path.read_bytes()) or ()}
    for field in set_here - flags.keys() - {"gates"}:
        assert config.source_of(field) == "config", f"{field} is not heeded"
    rules_of(config)
    if config.repeat < 4:
        written = _written(path)
        run(msgspec.structs.replace(config, **written, resume=False, max_errors=9))
        assert lines_with_content(path.with_name("out.jsonl")) or config.num_shards > 1


def use_journal(material: Material, path: Path) -> None:
    commands.use_run_resumed(material, path)
    results = list(read_results(path.with_name(path.name.removesuffix(".journal"))))
    assert [(result.sample_id, result.trial) for result in results] == material.trials
    assert [result.index for result in results] == list(range(SAMPLES))


def _specs(value: object) -> int:
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    if not isinstance(value, dict) or isinstance(value.get("name"), str):
        return len(value) if isinstance(value, list) else 1
    specs = {key for key, inner in value.items() if isinstance(inner, dict)} - {"x-callmark"}
    return 1 if specs == {"function"} else len(value)


FIXTURES = "fixtures/web.search.jsonl"
TARGETS = {
    "dataset: run": Target("dataset", "dataset.jsonl", LINE_FILE, use_dataset),
    "dataset: verify": Target("dataset", "taught.jsonl", LINE_FILE, commands.use_verify),
    "dataset: stats": Target("dataset", "counted.jsonl", LINE_FILE, commands.use_dataset_stats),
    "dataset: diff": Target("dataset", "compared.jsonl", LINE_FILE, commands.use_dataset_diff),
    "dataset: seal": Target("dataset", "unsealed.jsonl", LINE_FILE, commands.use_dataset_seal),
    "dataset: add": Target("dataset", "grown.jsonl", LINE_FILE, commands.use_dataset_add),
    "fixtures: run": Target("fixtures", FIXTURES, LINE_FILE, use_fixtures),
    "fixtures: check": Target("fixtures", FIXTURES, LINE_FILE, commands.use_fixtures_check),
    "fixtures: suggest": Target("fixtures", FIXTURES, LINE_FILE, commands.use_fixtures_suggest),
    "fixtures: list": Target("fixtures list", "list/web.search.json", JSON_FILE, use_fixture_list),
    "answers": Target("answers", "answers.jsonl", LINE_FILE, use_answers),
    "conversations": Target("conversations", "talks.jsonl", LINE_FILE, use_answers),
    "results": Target("results", "results.jsonl", LINE_FILE, use_results),
    "results: other uses": Target("results", "other.jsonl", LINE_FILE, commands.use_results),
    "results: score --in": Target("results", "again.jsonl", LINE_FILE, commands.use_score_in),
    "results: journal": Target("journal", "out.jsonl.journal", LINE_FILE, use_journal),
    "registry": Target("registry", "registry.json", JSON_FILE, use_registry),
    "registry: folder": Target(
        "registry in a folder", "tools/registry.json", JSON_FILE, use_registry_folder
    ),
    "allowlist": Target("allowlist", "allowlist.json", JSON_FILE, use_allowlist),
    "config": Target("config", "callmark.yaml", YAML_FILE, use_config),
}
