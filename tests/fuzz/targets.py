"""What is done with a spoilt file, and what must come of it: a result in which every line of the
file is accounted for, or a named error that says where."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec
from tests.fuzz.material import Material
from tests.fuzz.mutations import JSON_FILE, LINE_FILE, YAML_FILE, Mutate

from toolmark.broker.broker import ToolBroker
from toolmark.broker.check import ExpectedUse, check_fixtures
from toolmark.broker.fixtures import load_folder
from toolmark.broker.suggest import suggest
from toolmark.config import load_config
from toolmark.core.samples import Sample
from toolmark.datasets.reader import dataset_sha256, open_dataset
from toolmark.errors import BadInput, ToolmarkError
from toolmark.reports.show import show_blocks
from toolmark.reports.terminal import report_blocks
from toolmark.resources import allowlist
from toolmark.running.offers import check_allowed, open_offers, open_registry
from toolmark.running.rescore import score_file
from toolmark.running.run import rules_of, run
from toolmark.store.lines import read_results
from toolmark.store.recorded import RecordedIndex, read_recorded

LINE = r":\d+: \S"
ENTRY = r"(:\d+|: entry \d+): \S"
TOOL = r": \S"
CALLS = [("web.search", {"q": "city 1"}), ("web.search", {"q": "town x", "lang": 3}), ("noop", {})]


class Target(NamedTuple):
    good: str  # which material it starts from
    file: str
    ways: tuple[Mutate, ...]
    use: Callable[[Material, Path], None]
    place: str  # what follows the file's name in a message


def lines_with_content(path: Path) -> int:
    data = path.read_bytes().removeprefix(b"\xef\xbb\xbf")
    return sum(bool(line) and not line.isspace() for line in data.split(b"\n"))


def use_dataset(material: Material, path: Path) -> None:
    with open_dataset(path) as dataset:
        samples = list(dataset.samples())
    lines = lines_with_content(path) - dataset.has_header
    assert len(samples) == dataset.facts.samples == lines
    assert len({sample.sample_id for sample in samples}) == lines
    assert dataset.sha256 == dataset_sha256(path)
    report = run(material.config(dataset=str(path), max_errors=10**6)).report
    assert report.counts.samples == report.counts.trials == lines
    list(report_blocks(report))
    check_fixtures(ToolBroker(material.fixtures), expected=_uses(samples))


def use_fixtures(material: Material, path: Path) -> None:
    registry = open_registry(str(material.registry))
    loaded = load_folder(path.parent, registry)
    assert len(loaded.fixtures) == _entries(path)
    broker = ToolBroker(path.parent, registry)
    kept = sum(map(len, broker.index.groups()))
    assert kept == len({(f.name, f.sample_id, f.key_json, f.seq, f.match) for f in loaded.fixtures})
    for name, arguments in CALLS:
        broker.call(name, arguments)
    check_fixtures(broker)
    run(material.config(fixtures=str(path.parent)))


def use_answers(material: Material, path: Path) -> None:
    """As a model that is replayed, and scored as they are."""
    with RecordedIndex(path) as index:
        assert index.count == lines_with_content(path)
        for recorded in read_recorded(path):
            assert index.get(recorded.sample_id, recorded.trial) == recorded
    assert run(material.config(model=str(path), repeat=2)).report.counts.trials == 14
    use_scored(material, path)


def use_scored(material: Material, path: Path) -> None:
    report = score_file(path, material.config(dataset=None, registry=None)).report
    assert report.counts.trials == lines_with_content(path)
    list(report_blocks(report))


def use_results(material: Material, path: Path) -> None:
    results = list(read_results(path))
    assert len(results) == lines_with_content(path)
    for result in results:
        list(show_blocks(result))
    calls = [(result.sample_id, call) for result in results for call in result.tool_trace]
    suggest(calls, ToolBroker(material.fixtures))
    use_scored(material, path)
    joined = score_file(path, material.config()).report.counts
    assert joined.trials == len(results)


def use_registry(material: Material, path: Path) -> None:
    registry = open_registry(str(path))
    assert len(registry.names) == _specs(json.loads(path.read_bytes().decode("utf-8-sig")))
    for name in registry.names:
        registry.validate(name, {"q": "x", "top_k": 2})
    run(material.config(registry=str(path)))


def use_allowlist(material: Material, path: Path) -> None:
    names = allowlist(path)
    offers = open_offers(str(material.registry), str(path))
    unknown = [name for name in set(names) if offers.registry.resolve(name) is None]
    assert len(check_allowed(offers)) == len(unknown)
    run(material.config(allowlist=str(path)))


def use_config(material: Material, path: Path) -> None:
    files = {
        "dataset": str(material.dataset),
        "fixtures": str(material.fixtures),
        "model": str(material.answers),
    }
    config = load_config(path, files)
    rules_of(config)
    if config.repeat < 4:
        run(msgspec.structs.replace(config, out=None, report=None, max_errors=9))


def use_journal(material: Material, path: Path) -> None:
    out = path.with_name(path.name.removesuffix(".journal"))
    try:
        run(material.config(out=str(out), resume=True))
    finally:
        written = out.read_bytes() if out.exists() else None
        out.unlink(missing_ok=True)
    keys = [(line["sample_id"], line["trial"]) for line in map(json.loads, written.splitlines())]
    assert len(keys) == len(set(keys)) == 7


def _uses(samples: list[Sample]) -> list[ExpectedUse]:
    return [
        ExpectedUse(sample.sample_id, call.name, call.arguments)
        for sample in samples
        for call in sample.expectation.calls
        if call.arguments is not None
    ]


def _entries(path: Path) -> int:
    if path.suffix == ".jsonl":
        return lines_with_content(path)
    value = json.loads(path.read_bytes().decode("utf-8-sig"))
    return len(value) if isinstance(value, list) else 1


def _specs(value: object) -> int:
    if isinstance(value, dict) and isinstance(value.get("tools"), list):
        value = value["tools"]
    is_one = isinstance(value, dict) and (
        isinstance(value.get("name"), str) or isinstance(value.get("function"), dict)
    )
    return 1 if is_one else len(value)


TARGETS = {
    "dataset": Target("dataset", "dataset.jsonl", LINE_FILE, use_dataset, LINE),
    "fixtures": Target("fixtures", "fixtures/web.search.jsonl", LINE_FILE, use_fixtures, ENTRY),
    "fixtures list": Target(
        "fixtures list", "list/web.search.json", JSON_FILE, use_fixtures, ENTRY
    ),
    "answers": Target("answers", "answers.jsonl", LINE_FILE, use_answers, LINE),
    "conversations": Target("conversations", "talks.jsonl", LINE_FILE, use_answers, LINE),
    "results": Target("results", "results.jsonl", LINE_FILE, use_results, LINE),
    "registry": Target("registry", "registry.json", JSON_FILE, use_registry, TOOL),
    "allowlist": Target("allowlist", "allowlist.json", JSON_FILE, use_allowlist, TOOL),
    "config": Target("config", "toolmark.yaml", YAML_FILE, use_config, r"(:\d+)?: \S"),
    "journal": Target("journal", "out.jsonl.journal", LINE_FILE, use_journal, ".*"),
}


def check_named(error: ToolmarkError, path: Path, place: str, others: list[Path]) -> None:
    """Every problem stands on one line and begins with the file and a place in it, or with
    another file of the run that does not go with it."""
    problems = error.problems if isinstance(error, BadInput) else str(error).splitlines()[:1]
    assert 1 <= len(problems) <= 20
    for problem in problems:
        assert "\n" not in problem, problem
        file = next(name for name in (path, *others) if problem.startswith(str(name)))
        rest = problem.removeprefix(str(file))
        empty = (": the dataset is empty", ": holds no")
        assert file != path or re.match(place, rest) or rest.startswith(empty), problem
