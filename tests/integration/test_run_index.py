"""The index that a run leaves beside its results: whoever reads it sees what the results say, and
nobody believes one that is of other results, spoilt, or made up."""

import hashlib
import io
import json
import random
import sys
from array import array
from pathlib import Path

import msgspec
import pytest
from tests.integration.test_same_bytes import generated

from callmark._version import __version__
from callmark.cli import main
from callmark.compare.compare import CompareOptions, SideLines, compare_runs, comparison_bytes
from callmark.records.report import ReportHeader
from callmark.reports.html.indexed_run import (
    IndexedSurvey,
    find_index,
    samples_as_written,
    survey_of_run,
)
from callmark.reports.html.page import write_run_page
from callmark.run.indexing import IndexRows
from callmark.run.play import cross_scorer
from callmark.store.files import read_report, read_results
from callmark.store.journal import OutputLines
from callmark.store.run_index import index_path, read_index
from callmark.summary.summary import Summariser
from callmark.view.catalogue import RunCatalogue
from callmark.view.opened import JudgedRun, Openings

CONCLUDE = sys.modules["callmark.run.conclude"]
MODULES = ("run.conclude", "compare.compare", "reports.html.page", "reports.html.indexed_run")


@pytest.fixture(autouse=True)
def of_small_runs_too(monkeypatch):
    for name in MODULES:
        module = sys.modules[f"callmark.{name}"]
        if hasattr(module, "SMALLEST"):
            monkeypatch.setattr(module, "SMALLEST", 0)
        if hasattr(module, "INDEXED"):
            monkeypatch.setattr(module, "INDEXED", range(1, 1000))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A run of 400 generated samples with planted faults, and its index."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("indexed"))
        patch.setattr(CONCLUDE, "INDEXED", range(1, 1000))
        folder = Path.cwd() / generated()
    assert index_path(folder / "results.jsonl").is_file()
    return folder


@pytest.fixture
def run(played, tmp_path):
    """A copy that a test may spoil."""
    folder = tmp_path / "run"
    folder.mkdir()
    for path in played.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    return folder / "results.jsonl"


def page_of(results: Path) -> bytes:
    stream = io.BytesIO()
    report = read_report(results.with_name("report.json"))
    read = lambda: read_results(results)  # noqa: E731
    survey = survey_of_run(results, report, cross_scorer())
    samples = None if survey is None else samples_as_written(results)
    write_run_page(
        stream,
        report,
        read,
        name="run",
        cross_score=cross_scorer(),
        survey=survey,
        samples=samples,
    )
    return stream.getvalue()


def view_of(results: Path, scratch: Path) -> tuple[bytes, bytes]:
    report = read_report(results.with_name("report.json"))
    scratch.mkdir()
    openings = Openings(scratch, lambda _: JudgedRun(report, cross_scorer()))
    (found,) = RunCatalogue(results.parent).scan().runs
    ready = openings.open(found)
    return ready.head.read_bytes(), ready.index.read_bytes()


def comparison_of(a: Path, b: Path) -> bytes:
    options = CompareOptions()
    with SideLines(a, options) as one, SideLines(b, options) as other:
        return comparison_bytes(compare_runs(one, other, options))


@pytest.mark.slow
def test_f71_every_reader_sees_with_the_index_what_it_sees_without(run, tmp_path):
    lines = run.read_bytes().splitlines(keepends=True)
    other = tmp_path / "other" / "results.jsonl"
    other.parent.mkdir()
    worse = [json.loads(line) for line in lines]
    for line in worse[::20]:
        line["scores"]["answered"] = False
    other.write_text("".join(json.dumps(line) + "\n" for line in worse), "utf-8")
    assert find_index(run) is not None
    found = page_of(run), view_of(run, tmp_path / "one"), comparison_of(run, other)
    index_path(run).unlink()
    assert find_index(run) is None
    assert found == (page_of(run), view_of(run, tmp_path / "two"), comparison_of(run, other))


def test_the_index_tells_where_each_line_begins(run):
    index = find_index(run)
    data = run.read_bytes()
    assert len(index) == 400
    for offset, one in zip(index.offsets, index.listed(), strict=True):
        assert json.loads(data[offset : data.index(b"\n", offset)])["sample_id"] == one.sample_id


@pytest.mark.slow
def test_trials_may_end_in_any_order(run):
    before = [*find_index(run).listed()]
    results = [*read_results(run)]
    random.Random(7).shuffle(results)
    summariser = Summariser(cross_scorer())
    sizes = array("I", map(len, run.read_bytes().splitlines(keepends=True)))
    written = OutputLines(hashlib.sha256(run.read_bytes()).hexdigest(), sizes)
    with IndexRows(run) as rows:
        for result in results:
            summariser.add(result)
            rows.add(result, None)
        summariser.report(ReportHeader(), ())
        rows.write(written, summariser)
    again = find_index(run)
    assert again.numbers.order is not None
    assert [*again.listed()] == before


def test_a_run_that_lost_trials_has_none(run):
    summariser = Summariser(cross_scorer())
    index_path(run).unlink()
    with IndexRows(run) as rows:
        for result in read_results(run):
            lost = msgspec.structs.replace(result, scores=None, status="error", error="timeout")
            summariser.add(lost)
            rows.add(lost, None)
        rows.write(OutputLines("0" * 64, array("I")), summariser)
    assert not index_path(run).exists()


@pytest.mark.slow
def test_a_resumed_run_that_was_complete_keeps_its_index(played, monkeypatch):
    monkeypatch.chdir(played.parent)
    path = index_path(played / "results.jsonl")
    before = path.read_bytes()
    given = ["--in", "data.jsonl", "--fixtures", "fixtures", "--model", "data.answers.jsonl"]
    words = ["run", *given, "--out", "run/results.jsonl", "--no-html", "--quiet", "--resume"]
    assert main(words) in (0, 1, 5)
    assert path.read_bytes() == before


def spoil_results(results: Path) -> None:
    data = results.read_bytes()
    at = data.index(b'"trial":0', len(data) // 2)
    results.write_bytes(data[: at + 8] + b"7" + data[at + 9 :])  # as large as before


def add_a_line(results: Path) -> None:
    data = results.read_bytes()
    results.write_bytes(data + data.splitlines(keepends=True)[-1])


def cut_index(results: Path) -> None:
    path = index_path(results)
    path.write_bytes(path.read_bytes()[:-10])


def flip_a_byte(results: Path) -> None:
    path = index_path(results)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def write_nonsense(results: Path) -> None:
    index_path(results).write_bytes(b"\xff" * 5000)


def empty_it(results: Path) -> None:
    index_path(results).write_bytes(b"")


def make_a_folder_of_it(results: Path) -> None:
    index_path(results).unlink()
    index_path(results).mkdir()


@pytest.mark.parametrize(
    "spoil",
    [
        spoil_results, add_a_line, cut_index, flip_a_byte, write_nonsense, empty_it,
        make_a_folder_of_it,
    ],
)  # fmt: skip
def test_a_stale_or_spoilt_index_is_as_good_as_none(run, spoil):
    assert find_index(run) is not None
    spoil(run)
    assert find_index(run) is None


def forge(results: Path, change) -> None:
    """An index with all the right hashes that says something else."""
    parts = read_index(results, version=__version__)
    numbers, rows = change(msgspec.msgpack.decode(parts.numbers), parts.rows)
    body = msgspec.msgpack.encode(numbers) + rows
    path = index_path(results)
    head = json.loads(path.read_bytes().split(b"\n", 1)[0])
    head["numbers_bytes"], head["rows_bytes"] = len(body) - len(rows), len(rows)
    head["sha256"] = hashlib.sha256(body).hexdigest()
    path.write_bytes(json.dumps(head).encode() + b"\n" + body)


def say_other_words(numbers, rows):
    return numbers, rows.replace(b'"passes"', b'"flagged"')


def swap_codes(numbers, rows):
    typecode, data = numbers["trials"]["codes"]
    numbers["trials"]["codes"] = [typecode, bytes(len(data))]
    return numbers, rows


def point_beyond(numbers, rows):
    typecode, data = numbers["trials"]["codes"]
    numbers["trials"]["codes"] = [typecode, b"\xff" * len(data)]
    return numbers, rows


def lose_a_row(numbers, rows):
    return numbers, rows.split(b"\n", 1)[1]


def claim_other_sizes(numbers, rows):
    typecode, data = numbers["line_sizes"]
    numbers["line_sizes"] = [typecode, data[4:] + data[:4]]
    return numbers, rows


def write_letters(numbers, rows):
    numbers["trials"]["index"] = ["u", numbers["trials"]["index"][1]]
    return numbers, rows


def use_no_type(numbers, rows):
    numbers["trials"]["trial"] = ["z", b""]
    return numbers, rows


def leave_out_places(numbers, rows):
    numbers["trials"]["places"] = []
    return numbers, rows


def nest_deeply(numbers, rows):
    return numbers, b"[" * 20_000 + b"\n"


def order_twice(numbers, rows):
    numbers["order"] = ["I", bytes(4 * 400)]
    return numbers, rows


@pytest.mark.parametrize(
    "change",
    [
        say_other_words, swap_codes, point_beyond, lose_a_row, claim_other_sizes, write_letters,
        use_no_type, leave_out_places, nest_deeply, order_twice,
    ],
)  # fmt: skip
def test_an_index_that_somebody_made_up_is_not_believed(run, change):
    forge(run, lambda numbers, rows: (numbers, rows))
    assert find_index(run) is not None
    forge(run, change)
    assert find_index(run) is None


def test_another_version_does_not_believe_it(run):
    assert read_index(run, version=__version__) is not None
    assert read_index(run, version="9.9.9") is None


def test_a_run_that_replaces_the_results_takes_the_old_index_away(run, tmp_path, monkeypatch):
    monkeypatch.setattr(CONCLUDE, "INDEXED", range(0))
    items = run.with_name("one.jsonl")
    items.write_text('{"prompt": "Hello", "metadata": {"sample_id": "a"}}\n', "utf-8")
    answers = run.with_name("answers.jsonl")
    answers.write_text('{"sample_id": "a", "model_output": "Hello."}\n', "utf-8")
    fixtures = tmp_path / "one"
    fixtures.mkdir()
    one = {"name": "web.search", "key": {"q": "a"}, "result": {}}
    (fixtures / "all.jsonl").write_text(json.dumps(one) + "\n", "utf-8")
    words = ["run", "--in", items, "--fixtures", fixtures, "--model", answers, "--out", run]
    assert main([*map(str, words), "--no-html", "--quiet"]) in (0, 1, 5)
    assert not index_path(run).exists()


@pytest.mark.slow
def test_the_viewer_and_the_page_take_it(run, tmp_path, monkeypatch):
    taken = []
    listed = IndexedSurvey.list_all
    monkeypatch.setattr(IndexedSurvey, "list_all", lambda *a: taken.append(1) or listed(*a))
    view_of(run, tmp_path / "scratch")
    assert taken == [1]
