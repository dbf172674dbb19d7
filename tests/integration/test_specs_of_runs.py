"""One run, one number: the specs of its tools stand beside its results, and whoever scores those
again uses them."""

import hashlib
import json

import pytest
from tests.integration.conftest import item, read_lines, write_lines

from callmark.api import compare
from callmark.cli import dispatch
from callmark.errors import BadInput, FingerprintMismatch
from callmark.run.rescore import score_file

PARAMETERS = {
    "type": "object",
    "properties": {"q": {"type": "string"}, "region": {"type": "string", "default": "eu"}},
    "required": ["q"],
}
# What the built-in tools do not know: a default, an argument that does not count, an alias.
SPEC = {
    "name": "web.search",
    "description": "Search.",
    "parameters": PARAMETERS,
    "x-callmark": {"ignore": ["note"], "aliases": ["lookup"]},
}
F1 = "call_f1_macro"


@pytest.fixture
def own(project):
    """A run whose call F1 depends on the specs of its tools."""
    answers = read_lines(project.answers)
    for number, line in enumerate(answers):
        for entry in line.get("tool_trace", ()):
            entry["arguments"] |= {"region": "eu"} if number % 2 else {"note": "mine"}
    items = [item(number) for number in range(25)]
    project.write(items, answers=answers)
    tools = project.folder / "own.json"
    tools.write_text(json.dumps([SPEC, {**SPEC, "name": "other", "x-callmark": {}}]), "utf-8")
    project.run(registry=str(tools))
    project.tools = tools
    return project


def f1_of(report) -> float:
    return report.metrics[F1].value


def stored(folder):
    [path] = folder.glob("tools-*.json")
    return path


def test_f4_run_score_and_compare_give_one_number(own, capsys):
    said = json.loads(own.report.read_text("utf-8"))["metrics"][F1]["value"]
    own.tools.unlink()  # the run has its own
    outcome = score_file(own.out)
    assert f1_of(outcome.report) == said == 1.0
    found = compare(own.out, own.out)
    [metric] = [one for one in (*found.primary, *found.exploratory) if one.metric == F1]
    assert metric.a == metric.b == said
    for words in (["score", str(own.out)], ["compare", str(own.out), str(own.out)]):
        dispatch([*words, "--quiet"])
        assert "tool" not in capsys.readouterr().err


def test_f4_the_hash_of_the_file_is_the_hash_that_the_lines_say(own):
    path = stored(own.folder)
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    assert {line["fingerprints"]["tool_registry_sha256"] for line in own.results()} == {sha256}
    assert path.name == f"tools-{sha256[:12]}.json"
    before = path.read_bytes(), path.stat().st_ino
    own.run(registry=str(path), restart=True)
    assert (stored(own.folder).read_bytes(), path.stat().st_ino) == before


def test_f4_scored_again_every_line_stays_as_it_is(own, tmp_path):
    again = tmp_path / "again" / "results.jsonl"
    score_file(own.out, {"out": str(again)})
    assert again.read_bytes() == own.out.read_bytes()
    own.tools.unlink()
    stored(own.folder).unlink()
    assert f1_of(score_file(again).report) == 1.0  # what is written has its specs beside it, too


def test_f4_an_allowlist_changes_no_number_either(own, tmp_path):
    allowed = tmp_path / "allowed.json"
    allowed.write_text(json.dumps(["web.search"]), "utf-8")
    own.run(registry=str(own.tools), allowlist=str(allowed), restart=True)
    again = tmp_path / "again.jsonl"
    score_file(own.out, {"out": str(again)})
    assert again.read_bytes() == own.out.read_bytes()


def test_f4_results_without_their_specs_are_refused_by_name(own, tmp_path, capsys):
    moved = tmp_path / "moved" / "results.jsonl"
    moved.parent.mkdir()
    moved.write_bytes(own.out.read_bytes())
    assert dispatch(["compare", str(moved), str(own.out)]) in (0, 5)  # this scorer scored them
    moved.write_bytes(own.out.read_bytes().replace(b'"version":"', b'"version":"0.'))
    capsys.readouterr()
    sha256 = own.results()[0]["fingerprints"]["tool_registry_sha256"]
    for words in (
        ["score", str(moved)],
        ["compare", str(moved), str(own.out)],
        ["fixtures", "suggest", str(moved), "--fixtures", str(own.fixtures)],
        ["dataset", "add", str(tmp_path / "d.jsonl"), "--from-trace", str(moved), "s001"],
    ):
        assert dispatch(words) == 3, words
        error = capsys.readouterr().err
        assert sha256 in error
        assert f"tools-{sha256[:12]}.json" in error
        assert "--registry" in error
    assert f1_of(score_file(moved, {"registry": str(own.tools)}).report) == 1.0


def test_f4_specs_that_were_changed_are_refused(own):
    path = stored(own.folder)
    path.write_text(path.read_text("utf-8").replace("Search.", "Look."), "utf-8")
    with pytest.raises(FingerprintMismatch, match="was changed since the run wrote it"):
        score_file(own.out)


def test_f4_other_tools_are_used_where_somebody_says_so_and_that_is_said(own, tmp_path):
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{**SPEC, "x-callmark": {}}]), "utf-8")
    scored = tmp_path / "scored.jsonl"
    report = score_file(own.out, {"registry": str(other), "out": str(scored)}).report
    assert f1_of(report) < 1.0
    [warning] = [text for text in report.warnings if "instead of the tools of the run" in text]
    assert str(other) in warning
    assert warning in compare(own.out, own.out, registry=str(other)).warnings
    # What was made with these tools says so, and gives the same number again.
    assert f1_of(score_file(scored).report) == f1_of(report)


def test_f4_a_settings_file_is_no_word_on_a_finished_run(own, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other.json"
    other.write_text(json.dumps([{**SPEC, "x-callmark": {}}]), "utf-8")
    (tmp_path / "callmark.yaml").write_text(f"registry: {other}\n", "utf-8")
    dispatch(["score", str(own.out), "--report", "again.json", "--quiet"])
    assert json.loads((tmp_path / "again.json").read_text("utf-8"))["metrics"][F1]["value"] == 1.0


def test_f4_a_baseline_and_merged_shards_bring_their_specs_along(own, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert dispatch(["baseline", "set", str(own.out), "--out", "kept/base.jsonl"]) == 0
    assert f1_of(score_file(tmp_path / "kept" / "base.jsonl").report) == 1.0
    shards = tmp_path / "shards"
    for index in range(2):
        settings = {"num_shards": 2, "shard_index": index, "registry": str(own.tools)}
        out = shards / f"results.shard_{index}.jsonl"
        own.run(**settings, out=str(out), report=str(shards / f"report.shard_{index}.json"))
    own.tools.unlink()
    assert dispatch(["merge", "shards", "--out", "whole/results.jsonl"]) in (0, 1, 5)
    assert stored(tmp_path / "whole").read_bytes() == stored(own.folder).read_bytes()
    assert f1_of(score_file(tmp_path / "whole" / "results.jsonl").report) == 1.0


def test_f4_fixtures_are_suggested_by_the_keys_of_the_run(own, tmp_path, capsys):
    """`note` is ignored by the run's own spec: the calls have fixtures."""
    lines = own.results()
    for line in lines:
        for entry in line["tool_trace"]:
            entry["status"] = "miss"
    write_lines(own.folder / "missed.jsonl", lines)
    words = ["fixtures", "suggest", str(own.folder / "missed.jsonl")]
    assert dispatch([*words, "--fixtures", str(own.fixtures)]) == 0
    assert capsys.readouterr().out == ""


def test_f4_lines_of_others_are_read_with_the_tools_at_hand(project):
    assert score_file(project.answers).report.counts.samples == 25


def test_files_of_the_old_name_are_refused_in_one_sentence(own, tmp_path, capsys):
    report = json.loads(own.report.read_text("utf-8"))
    report["provenance"]["another"] = report["provenance"].pop("callmark")
    own.report.write_text(json.dumps(report), "utf-8")
    for words in (["report", str(own.folder), "-o", str(tmp_path / "x.md")],
                  ["compare", str(own.report), str(own.report)]):  # fmt: skip
        assert dispatch(words) == 2
        [line] = capsys.readouterr().err.splitlines()
        assert "an older version of this program under another name: run it again" in line
    tools = [{**SPEC, "x-anothermark": SPEC["x-callmark"]}]
    del tools[0]["x-callmark"]
    own.tools.write_text(json.dumps(tools), "utf-8")
    with pytest.raises(BadInput, match="x-anothermark: has the fields of x-callmark: rename it"):
        own.run(registry=str(own.tools))
