"""Whole commands on a spoilt file: they end with one of their exit codes, or with a named error."""

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path
from xml.etree import ElementTree

from tests.fuzz.accounting import every_line_named, lines_with_content
from tests.fuzz.material import Material

from callmark.broker.fixtures import load_folder
from callmark.cli import MODULES
from callmark.datasets.diff import diff_datasets
from callmark.datasets.reader import open_dataset
from callmark.datasets.seal import examine_seal, write_seal
from callmark.datasets.stats import dataset_stats
from callmark.store.files import read_results
from callmark.store.recorded import RecordedIndex

PASSED, FAILED, INCOMPLETE, INCONCLUSIVE = 0, 1, 4, 5


def called(command: str, *words: object) -> int:
    """One command as `callmark` would run it; what it prints must be text."""
    said = io.StringIO()
    with redirect_stdout(said), redirect_stderr(said):
        code = import_module(MODULES[command]).main([str(word) for word in words])
    said.getvalue().encode("utf-8", "backslashreplace")
    return code


def read_dataset(path: Path) -> None:
    open_dataset(path).close()


def read_fixtures(path: Path) -> None:
    load_folder(path.parent, None)


def read_answers(path: Path) -> None:
    RecordedIndex(path).close()


def read_results_file(path: Path) -> None:
    list(read_results(path))


def use_dataset_stats(material: Material, path: Path) -> None:
    with every_line_named(path, read_dataset):
        called("dataset stats", path)
    with open_dataset(path) as dataset:
        stats = dataset_stats(dataset)
    assert stats.samples == lines_with_content(path) - dataset.has_header
    assert sum(stats.kinds.values()) == sum(stats.expected_calls.values()) == stats.samples


def use_dataset_diff(material: Material, path: Path) -> None:
    with every_line_named(path, read_dataset):
        called("dataset diff", material.dataset, path)
    diff = diff_datasets(material.dataset, path)
    assert diff.same + diff.changed_count + diff.added_count == diff.samples_b
    assert diff.same + diff.changed_count + diff.removed_count == diff.samples_a
    back = diff_datasets(path, material.dataset)
    assert (back.added_count, back.removed_count) == (diff.removed_count, diff.added_count)
    assert back.changed_count == diff.changed_count


def use_dataset_seal(material: Material, path: Path) -> None:
    out = path.with_name("sealed.jsonl")
    with every_line_named(path, read_dataset):
        called("dataset seal", path, "--registry", material.registry, "--out", out)
    with open_dataset(path) as before, open_dataset(out) as after:
        assert [s.item_sha256 for s in after.samples()] == [s.item_sha256 for s in before.samples()]
        seal = examine_seal(after, {})
    assert not write_seal(seal)  # sealed is sealed


def use_dataset_add(material: Material, path: Path) -> None:
    """A trial of the good results becomes a line of the spoilt dataset, which keeps its own."""
    before = path.read_bytes()
    words = ("--from-trace", material.results, "s1", "--id", "s1-again", "--fixtures")
    with every_line_named(path, read_dataset):
        called("dataset add", path, *words, path.with_name("kept"))
    assert path.read_bytes().startswith(before)
    with open_dataset(path) as dataset:
        assert [sample.sample_id for sample in dataset.samples()][-1] == "s1-again"


def use_verify(material: Material, path: Path) -> None:
    words = ("--fixtures", material.fixtures, "--registry", material.registry)
    out = path.with_name("verified.jsonl")
    with every_line_named(path, read_dataset):
        code = called("verify", path, *words, "--out", out)
    assert code in (PASSED, FAILED, INCONCLUSIVE)
    with open_dataset(path) as dataset:
        assert lines_with_content(out) == dataset.facts.samples


def use_fixtures_check(material: Material, path: Path) -> None:
    words = (path.parent, "--in", material.dataset, "--registry", material.registry)
    with every_line_named(path, read_fixtures):
        code = called("fixtures check", *words)
    assert code in (PASSED, FAILED)


def use_fixtures_suggest(material: Material, path: Path) -> None:
    with every_line_named(path, read_fixtures):
        code = called("fixtures suggest", material.results, "--fixtures", path.parent)
    assert code == PASSED


def use_score_in(material: Material, path: Path) -> None:
    words = ("--in", material.dataset, "--registry", material.registry)
    out = path.with_name("scored.jsonl")
    with every_line_named(path, read_answers):
        code = called("score", path, *words, "--out", out)
    assert code in (PASSED, FAILED, INCOMPLETE, INCONCLUSIVE)
    assert lines_with_content(out) == lines_with_content(path)
    first = json.loads(out.read_text("utf-8").partition("\n")[0])
    assert called("show", out, first["sample_id"], "--trial", first["trial"]) == PASSED


def use_results(material: Material, path: Path) -> None:
    """Everything else that reads the results of a run."""
    added, kept = path.with_name("added.jsonl"), path.with_name("kept-too")
    added.unlink(missing_ok=True)
    shutil.rmtree(kept, ignore_errors=True)
    for tools in material.results.parent.glob("tools-*.json"):
        shutil.copy(tools, path.parent)
    words = ("--in", material.dataset, "--fixtures", material.fixtures, "--model", material.answers)
    with every_line_named(path, read_results_file, only_first=True):
        called("fixtures suggest", path, "--fixtures", material.fixtures)
    called("show", path, "s1")
    forms = [path.with_name(f"{path.name}.{ending}") for ending in ("xml", "md", "csv")]
    called("report", path, *(word for form in forms for word in ("-o", form)))
    ElementTree.parse(forms[0])  # noqa: S314 - our own file
    called("dataset add", added, "--from-trace", path, "s1", "--fixtures", kept, "--id", path.name)
    read_dataset(added)
    called("run", *words, "--failed-from", path, "--dry-run")


def use_run_resumed(material: Material, path: Path) -> None:
    """`path` is the journal of `out.jsonl`, killed before its end."""
    out = path.with_name(path.name.removesuffix(".journal"))
    out.unlink(missing_ok=True)
    words = ("--in", material.dataset, "--fixtures", material.fixtures, "--model", material.answers)
    code = called("run", *words, "--registry", material.registry, "--out", out, "--resume",
                  "--max-errors", 9)  # fmt: skip
    assert code in (PASSED, FAILED, INCONCLUSIVE)
