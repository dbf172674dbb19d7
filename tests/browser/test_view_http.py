"""What the viewer answers, over a real socket."""

import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.browser.view_world import Client, begin_journal, make_run, viewing
from tests.builders import make_result

from callmark.errors import BadInput
from callmark.store.files import encode_result, placed_results, result_at
from callmark.view.catalogue import MAX_DEPTH, NoSuchRun, RunCatalogue
from callmark.view.opened import read_piece


@pytest.fixture(scope="module")
def folder(two_runs):
    return two_runs


def test_the_list_has_verdict_n_fingerprints_and_metrics(client, folder):
    runs = client.runs()
    assert list(runs) == ["deep/tuned.jsonl", "base"]  # the latest first
    base, tuned = runs["base"], runs["deep/tuned.jsonl"]
    report = json.loads((folder / "base" / "report.json").read_text("utf-8"))
    assert (base["word"], base["samples"], tuned["word"]) == (
        "pass",
        report["counts"]["samples"],
        "fail",
    )
    assert report["header"]["dataset_sha256"].startswith(base["pins"]["dataset"])
    assert len(base["pins"]["dataset"]) == 10
    assert base["written"] == pytest.approx((folder / "base" / "results.jsonl").stat().st_mtime)
    f1 = base["metrics"]["integration_f1_macro_lax"]
    assert f1["value"] == report["metrics"]["integration_f1_macro_lax"]["value"]
    assert [f1["low"], f1["high"]] == report["metrics"]["integration_f1_macro_lax"]["ci_95"]


def test_every_sample_is_read_from_its_place(client, folder):
    run = client.runs()["base"]["id"]
    index = client.json(f"/run/{run}/index")
    lines = [
        json.loads(line)
        for line in (folder / "base" / "results.jsonl").read_text("utf-8").splitlines()
    ]
    assert index["ids"] == [line["sample_id"] for line in lines]
    for at, line in list(zip(index["at"], lines, strict=True))[::17]:
        [side] = client.json(f"/run/{run}/sample?at={at}")["sides"]
        for name in ("sample_id", "prompt", "model_output", "tool_trace", "scores"):
            assert side["result"][name] == line[name]
        assert client.json(f"/run/{run}/sample?s={line['sample_id']}&t=0")["sides"] == [side]
    assert client.known(f"/run/{run}/sample?at=7").status == 422
    assert client.known(f"/run/{run}/sample?s=nobody&t=0").status == 422


def test_the_page_of_a_run_has_the_head_of_the_file(client, folder):
    from callmark.cli import main

    run = client.runs()["base"]["id"]
    head = client.json(f"/run/{run}/head")
    page = folder / "page.html"
    assert main(["report", str(folder / "base"), "--html", str(page)]) == 0
    text = page.read_text("utf-8")
    page.unlink()
    written, timing = (
        json.loads(text.split(f'id="{block}">')[1].split("</script>")[0])
        for block in ("head", "timing")
    )
    assert {**head, "title": ""} == {**written, "title": "", "timing": timing}


@pytest.mark.slow
def test_comparing_writes_the_page_of_both_sides_once(client, folder):
    before = sorted(folder.rglob("*"))
    runs = client.runs()
    a, b = runs["base"]["id"], runs["deep/tuned.jsonl"]["id"]
    state = client.compared(a, b)
    assert state["word"] == "done", state
    page = client.known(f"/compare/{state['id']}")
    assert "REGRESSION" in page.text.upper()
    assert '<a class="brand" href="../">' in page.text
    assert int(page.getheader("Content-Length")) == len(page.text.encode())
    assert client.compared(a, b)["id"] == state["id"]
    assert client.compared(b, a)["id"] != state["id"]
    assert sorted(folder.rglob("*")) == before


@pytest.mark.slow
def test_runs_that_are_not_comparable_say_why(folder, tmp_path):
    root = tmp_path / "runs"
    one, two = root / "a.jsonl", root / "b.jsonl"
    root.mkdir()
    results = [result for _, result in placed_results(folder / "base" / "results.jsonl")][:40]
    import msgspec

    other = msgspec.structs.replace(results[0].fingerprints, dataset_sha256="0" * 64)
    one.write_bytes(b"".join(map(encode_result, results)))
    two.write_bytes(
        b"".join(encode_result(msgspec.structs.replace(r, fingerprints=other)) for r in results)
    )
    (tmp_path / "s").mkdir()
    with viewing(root, tmp_path / "s") as server:
        client = Client(server)
        runs = client.runs()
        state = client.compared(runs["a.jsonl"]["id"], runs["b.jsonl"]["id"])
        assert state["word"] == "failed"
        assert "--common" in state["message"]
        assert client.known(f"/compare/{state['id']}").status == 404
        common = client.compared(runs["a.jsonl"]["id"], runs["b.jsonl"]["id"], common=True)
        assert common["word"] == "done"
        assert runs["a.jsonl"]["word"] == "no report"
        head = client.json(f"/run/{runs['a.jsonl']['id']}/head")
        assert "judged by the shipped gates" in head["warnings"][0]


def test_a_report_of_another_run_and_a_broken_one_are_not_believed(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    for name, report in (("other", "tuned"), ("broken", None)):
        (root / name).mkdir(parents=True)
        (root / name / "results.jsonl").write_bytes(
            (folder / "base" / "results.jsonl").read_bytes()
        )
        source = folder / "deep" / "report.json"
        (root / name / "report.json").write_bytes(source.read_bytes() if report else b"{")
    (root / "dataset.jsonl").write_text('{"prompt": "x", "metadata": {}}\n', "utf-8")
    with viewing(root, scratch) as server:
        runs = Client(server).runs()
        assert runs.keys() == {"other", "broken"}
        assert all(run["word"] == "no report" and not run["metrics"] for run in runs.values())
        assert "another run (model_fingerprint)" in runs["other"]["reason"]
        assert "is no report" in runs["broken"]["reason"]


def test_a_report_of_its_own_name_goes_with_each_file(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    for name, source in (("a", "base/results.jsonl"), ("b", "deep/tuned.jsonl")):
        (root / f"{name}.jsonl").write_bytes((folder / source).read_bytes())
        report = (folder / source).with_name("report.json")
        (root / f"{name}.json").write_bytes(report.read_bytes())
    with viewing(root, scratch) as server:
        client = Client(server)
        runs = client.runs()
        assert {name: run["word"] for name, run in runs.items()} == {
            "a.jsonl": "pass",
            "b.jsonl": "fail",
        }
        for run in runs.values():
            assert client.json(f"/run/{run['id']}/verdict")["word"] == run["word"]
            head = client.json(f"/run/{run['id']}/head")
            assert (head["word"], head["warnings"]) == (run["word"], [])


@pytest.mark.slow
def test_a_report_that_comes_after_its_results_is_seen(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    (root / "results.jsonl").write_bytes((folder / "base" / "results.jsonl").read_bytes())
    with viewing(root, scratch) as server:
        client = Client(server)
        [run] = client.runs().values()
        for part in ("verdict", "head"):
            assert client.json(f"/run/{run['id']}/{part}")["warnings"]
        (root / "report.json").write_bytes((folder / "base" / "report.json").read_bytes())
        for part in ("verdict", "head"):
            assert client.json(f"/run/{run['id']}/{part}")["warnings"] == []


def test_the_verdict_is_the_head_without_what_needs_all_lines(client):
    run = client.runs()["base"]["id"]
    verdict, head = client.json(f"/run/{run}/verdict"), client.json(f"/run/{run}/head")
    assert head["plots"][0]["id"] == "f1"
    assert {**head, "plots": head["plots"][1:]} == verdict


def test_results_that_cannot_be_read_say_where_and_why(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    lines = (folder / "base" / "results.jsonl").read_bytes().splitlines(keepends=True)
    (root / "results.jsonl").write_bytes(lines[0] + b"{broken\n" + lines[1])
    with viewing(root, scratch) as server:
        client = Client(server)
        [run] = client.runs().values()
        answer = client.known(f"/run/{run['id']}/index")
        assert answer.status == 422
        assert "results.jsonl:2: " in answer.text


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path):
    outside, root = tmp_path / "outside", tmp_path / "runs"
    outside.mkdir()
    root.mkdir()
    line = encode_result(make_result())
    (outside / "results.jsonl").write_bytes(line)
    (root / "linked").symlink_to(outside)
    (root / "results.jsonl").symlink_to(outside / "results.jsonl")
    (root / "loop").symlink_to(root)
    (root / "real.jsonl").write_bytes(line)
    (root / "inside.jsonl").symlink_to(root / "real.jsonl")
    (root / ".hidden").mkdir()
    (root / ".hidden" / "results.jsonl").write_bytes(line)
    catalogue = RunCatalogue(root)
    found = {run.name: run for run in catalogue.scan().runs}
    assert found.keys() == {"real.jsonl", "inside.jsonl"}
    real = found["real.jsonl"]
    assert catalogue.find(real.id).path == root.resolve() / "real.jsonl"
    (root / "real.jsonl").unlink()
    (root / "real.jsonl").symlink_to(outside / "results.jsonl")  # after it was listed
    with pytest.raises(NoSuchRun):
        catalogue.find(real.id)


def test_the_search_for_runs_has_bounds(tmp_path, monkeypatch):
    deep = tmp_path.joinpath(*"abcdefghijkl")
    deep.mkdir(parents=True)
    line = encode_result(make_result())
    (deep / "results.jsonl").write_bytes(line)
    folder = RunCatalogue(tmp_path).scan()
    assert folder.runs == ()
    assert f"more than {MAX_DEPTH} deep" in folder.left_out
    for number in range(12):
        (tmp_path / f"{number}.jsonl").write_bytes(line)
    monkeypatch.setattr("callmark.view.catalogue.MAX_RUNS", 5)
    folder = RunCatalogue(tmp_path).scan()
    assert len(folder.runs) == 5
    assert "12 runs were found; the latest 5" in folder.left_out
    monkeypatch.setattr("callmark.view.catalogue.MAX_ENTRIES", 3)
    folder = RunCatalogue(tmp_path).scan()
    assert len(folder.runs) == 3
    assert "first 3 files" in folder.left_out


@given(st.lists(st.text(max_size=40), min_size=1, max_size=8), st.data())
def test_any_place_gives_its_line_or_nothing(tmp_path_factory, outputs, data):
    path = tmp_path_factory.mktemp("lines") / "results.jsonl"
    results = [
        make_result(at, output=text.encode("utf-8", "replace").decode())
        for at, text in enumerate(outputs)
    ]
    path.write_bytes(b"".join(map(encode_result, results)))
    places = dict(placed_results(path))
    assert [*places.values()] == results
    offset = data.draw(st.integers(0, path.stat().st_size + 3))
    if offset in places:
        assert result_at(path, offset) == places[offset]
    else:
        with pytest.raises(BadInput):
            result_at(path, offset)


@given(st.lists(st.integers(0, 12), min_size=1, max_size=30), st.integers(100, 3000), st.booleans())
def test_pieces_of_a_journal_are_all_of_it(tmp_path_factory, indexes, piece, torn):
    """Read with any size of piece: every whole line is there once, the torn one is not."""
    import callmark.view.opened as live

    path = tmp_path_factory.mktemp("journal") / "results.jsonl.journal"
    lines = [encode_result(make_result(index, trial=at)) for at, index in enumerate(indexes)]
    head = b'{"journal":2,"fingerprints":{"dataset_sha256":"d"}}\n'
    path.write_bytes(head + b"".join(lines) + (lines[0][:50] if torn else b""))
    before, live.PIECE_BYTES = live.PIECE_BYTES, piece
    try:
        found, start, pins = [], 0, []
        while True:
            part = read_piece(path, start, {})
            assert part.start == start
            found += zip(part.index.ids, part.index.trials, part.index.at, strict=True)
            pins += part.pins
            start = part.next
            if not part.more:
                break
    finally:
        live.PIECE_BYTES = before
    assert [(name, trial) for name, trial, _ in found] == [
        (f"s{i}", at) for at, i in enumerate(indexes)
    ]
    assert all(result_at(path, at).trial == trial for _, trial, at in found)
    assert pins == [("dataset_sha256", "d")]


def test_a_run_goes_on_and_becomes_results(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    out = root / "new" / "results.jsonl"
    journal, lines = begin_journal(out, folder / "base" / "results.jsonl")
    with viewing(root, scratch) as server, journal:
        client = Client(server)
        run = client.runs()["new"]
        assert (run["finished"], run["word"]) == (False, "unfinished")
        for line in lines[:10]:
            journal.append(line)
        first = client.json(f"/run/{run['id']}/piece")
        assert len(first["index"]["ids"]) == 10
        assert (
            dict(first["pins"])["dataset_sha256"]
            == json.loads(lines[0])["fingerprints"]["dataset_sha256"]
        )
        assert first["index"]["facets"][1]["names"].count("passes") == 0
        journal.append(lines[10])
        second = client.json(f"/run/{run['id']}/piece?from={first['next']}")
        assert second["index"]["ids"] == [json.loads(lines[10])["sample_id"]]
        [side] = client.json(f"/run/{run['id']}/sample?at={second['index']['at'][0]}")["sides"]
        assert side["result"]["model_output"] == json.loads(lines[10])["model_output"]
        assert client.json(f"/run/{run['id']}/piece?from={second['next']}")["index"]["ids"] == []
        anew = client.json(f"/run/{run['id']}/piece?from=999999999")
        assert (anew["start"], len(anew["index"]["ids"])) == (0, 11)
        assert client.known(f"/run/{run['id']}/head").status == 404
        assert client.post({"a": run["id"], "b": run["id"]}).status == 404
        for line in lines[11:]:
            journal.append(line)
        journal.finish(out)
        journal.remove()
        became = client.json(f"/run/{run['id']}/piece?from={second['next']}")["became"]
        assert became == client.runs()["new"]["id"]
        assert len(client.json(f"/run/{became}/index")["ids"]) == len(lines)
        out.unlink()
        assert client.known(f"/run/{run['id']}/piece").status == 404


def test_hostile_names_are_written_out(tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    name = os.fsdecode("<img src=x onerror=alert(1)>\u202e\x1b[31m".encode() + b"\xff")
    (root / name).mkdir(parents=True)
    (root / name / "results.jsonl").write_bytes(encode_result(make_result()))
    with viewing(root, scratch) as server:
        client = Client(server)
        answer = client.known("/runs")
        assert "<" not in answer.text
        [shown] = client.runs()
        assert shown == "<img src=x onerror=alert(1)>\\u202e\\x1b[31m\ufffd"
        page = client.known(f"/run/{client.runs()[shown]['id']}").text
        assert "<img" not in page
        assert "<title>&lt;img src=x" in page


def test_an_empty_folder_is_a_list_of_nothing(tmp_path):
    (tmp_path / "s").mkdir()
    (tmp_path / "r").mkdir()
    with viewing(tmp_path / "r", tmp_path / "s") as server:
        assert Client(server).json("/runs")["runs"] == []


@pytest.mark.slow
def test_a_file_that_changed_is_read_again(folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    out: Path = make_run(root / "one" / "results.jsonl")
    with viewing(root, scratch) as server:
        client = Client(server)
        run = client.runs()["one"]
        f1 = run["metrics"]["integration_f1_macro_lax"]["value"]
        assert client.json(f"/run/{run['id']}/head")["word"] == "pass"
        make_run(out, worse=3)
        again = client.runs()["one"]
        assert again["id"] == run["id"]
        assert again["metrics"]["integration_f1_macro_lax"]["value"] < f1
        assert client.json(f"/run/{run['id']}/head")["word"] == "fail"


def test_a_run_whose_first_trial_is_a_long_session_is_listed(tmp_path):
    """Its line has more bytes than most files."""
    line = encode_result(make_result(output="word " * (3 << 20)))
    (tmp_path / "results.jsonl").write_bytes(line.rstrip(b"\n") + b"\n")
    [found] = RunCatalogue(tmp_path).scan().runs
    assert found.finished
    assert found.first is not None
