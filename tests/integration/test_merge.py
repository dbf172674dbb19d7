"""What the shards of a run wrote becomes what the run itself would have written, or is refused."""

import json
import random
import socket
from pathlib import Path

import pytest
from tests.integration.sharded import (
    change_report,
    rewrite,
    run_shard,
    run_shards,
    without_timing,
)
from tests.pace import few

from callmark.errors import BadInput, FingerprintMismatch, Incomplete, UsageError
from callmark.records.results import Fingerprints
from callmark.records.samples import shard_of
from callmark.run.conclude import read_summary, run, summary_path
from callmark.shards.merge import merge_shards, report_beside

FINGERPRINTS = Fingerprints.__struct_fields__


def whole_run(config: dict, folder: Path) -> tuple[Path, Path]:
    out, report = folder / "results.jsonl", folder / "report.json"
    run({**config, "out": str(out), "report": str(report)})
    return out, report


def merged(paths: list[Path], folder: Path, **more) -> tuple[Path, Path, object]:
    folder.mkdir(exist_ok=True)
    out, report = folder / "results.jsonl", folder / "report.json"
    return out, report, merge_shards(paths, out=out, report=report, **more)


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def assert_same(config: dict, tmp_path: Path, number: int, **more) -> None:
    out, report = whole_run(config, tmp_path)
    shards = run_shards(config, tmp_path / "shards", number)
    random.Random(number).shuffle(shards)
    merged_out, merged_report, outcome = merged(shards, tmp_path / "merged", **more)
    assert merged_out.read_bytes() == out.read_bytes()
    assert without_timing(merged_report) == without_timing(report)
    assert outcome.report.header.num_shards == 1
    for path in shards:
        summary_path(path).unlink(missing_ok=True)
    read_out, read_report, _ = merged(shards, tmp_path / "read", **more)
    assert read_out.read_bytes() == out.read_bytes()
    assert without_timing(read_report) == without_timing(report)


@pytest.fixture
def settings(demo):
    return {name: value for name, value in demo.items() if name not in ("out", "report")}


@pytest.mark.slow
@pytest.mark.parametrize("number", few([3, 1, 2, 7, 16]))
def test_merged_bytes_are_those_of_an_unsharded_run(settings, tmp_path, number):
    assert_same(settings, tmp_path, number, dataset=Path(settings["dataset"]))


@pytest.mark.slow
def test_repeated_trials_merge(settings, tmp_path):
    lines = [json.loads(line) for line in Path(settings["model"]).read_text("utf-8").splitlines()]
    again = [{**line, "trial": 1} for line in lines]
    for line in again[::3]:
        line.update(model_output="Nothing was found.", turns=None)
    answers = tmp_path / "answers.jsonl"
    answers.write_text("".join(json.dumps(line) + "\n" for line in [*lines, *again]), "utf-8")
    assert_same({**settings, "model": str(answers), "repeat": 2}, tmp_path, 3)


def test_a_shard_without_a_sample_merges(project):
    project.write(items=[json.loads(lines_of(project.dataset)[1])])
    config = {**project.config()}
    shards = run_shards(config, project.folder / "shards", 7)
    assert sum(path.read_bytes() == b"" for path in shards) == 6
    assert_same(config, project.folder, 7, dataset=project.dataset)


def test_misses_errors_and_warnings_merge(project):
    """What a report lists first, and what it warns of, is that of the whole."""
    answers = [json.loads(line) for line in lines_of(project.answers)]
    for answer in answers[::3]:
        for call in answer.get("tool_trace", ()):
            call["arguments"] = {"q": "nobody knows"}
    project.write(answers=answers[:-6])
    gates = {"integration_coverage": {"bound": 0.1}}
    assert_same({**project.config(), "max_errors": "90%", "gates": gates}, project.folder, 3)


def test_misses_with_numbers_of_any_size_merge(project):
    answers = [json.loads(line) for line in lines_of(project.answers)]
    for answer in answers[::2]:
        for call in answer.get("tool_trace", ()):
            call["arguments"] = {"q": "nobody knows", "top_k": 10**30}
    project.write(answers=answers)
    assert_same(project.config(), project.folder, 2)


@pytest.mark.parametrize("part", [{"limit": 11}, {"only": ["s003", "s004", "s020"]}])
def test_a_part_of_the_dataset_merges(project, part):
    assert_same({**project.config(), **part}, project.folder, 3, dataset=project.dataset)


def test_the_registry_of_the_run_is_not_needed(project, tmp_path):
    """The level of chance is lax grounding: the keys that a tool calls strict have no say."""
    spec = {"name": "web.search", "parameters": {"type": "object"}}
    spec["x-callmark"] = {"strict_keys": ["nothing"]}
    registry = tmp_path / "tools.json"
    registry.write_text(json.dumps([spec]), "utf-8")
    assert_same({**project.config(), "registry": str(registry)}, project.folder, 2)


def test_no_socket_is_opened(project, monkeypatch):
    shards = run_shards(project.config(), project.folder / "shards", 2)

    def refuse(*_, **__):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    assert merged(shards, project.folder / "merged")[2].report.complete


class Shards:
    """Three shards of a small run; `of`: the shard of a sample."""

    def __init__(self, project) -> None:
        self.project = project
        self.paths = run_shards(project.config(), project.folder / "shards", 3)

    def of(self, sample_id: str) -> Path:
        return self.paths[shard_of(sample_id, 3)]

    def refused(self, kind: type[Exception], **more) -> str:
        out = self.project.folder / "merged" / "results.jsonl"
        with pytest.raises(kind) as caught:
            merged(self.paths, out.parent, **more)
        assert not out.exists()
        assert not out.with_name("report.json").exists()
        return str(caught.value)


@pytest.fixture
def shards(project):
    return Shards(project)


def test_a_summary_of_other_results_is_not_used(shards):
    facts = [json.loads(report_beside(path).read_bytes())["shard"] for path in shards.paths]
    hashes = [one["results_sha256"] for one in facts]
    assert read_summary(shards.paths[0], hashes[0]) is not None
    assert read_summary(shards.paths[0], hashes[1]) is None
    expected = merge_shards(shards.paths, out=None, report=None).report.metrics
    summary_path(shards.paths[1]).write_bytes(summary_path(shards.paths[0]).read_bytes())
    assert merge_shards(shards.paths, out=None, report=None).report.metrics == expected


@pytest.mark.parametrize(
    "spoil",
    [lambda data: data[:-9], lambda data: b"", lambda data: data[:80] + b"\xff" * 9 + data[89:]],
)
def test_a_spoilt_summary_is_not_used(shards, spoil):
    path = summary_path(shards.paths[1])
    expected = merge_shards(shards.paths, out=None, report=None).report.metrics
    path.write_bytes(spoil(path.read_bytes()))
    assert merge_shards(shards.paths, out=None, report=None).report.metrics == expected


def test_a_shard_that_lost_trials_has_no_summary(project):
    answers = [json.loads(line) for line in lines_of(project.answers)]
    project.write(answers=answers[:-1])
    paths = run_shards(project.config(max_errors=1), project.folder / "shards", 2)
    lost = shard_of(answers[-1]["sample_id"], 2)
    assert [summary_path(path).exists() for path in paths] == [lost == 1, lost == 0]


@pytest.mark.parametrize("name", few(FINGERPRINTS, 3))
@pytest.mark.parametrize("shard", [0, 2])
def test_a98_a_fingerprint_that_differs_in_one_shard_is_refused_by_name(shards, name, shard):
    value = {"id": "other"} if name == "tokenizer_fingerprint" else "other"
    change_report(shards.paths[shard], "header", name, value=value)
    message = shards.refused(FingerprintMismatch)
    assert f"{name}: shard 0 has " in message
    assert "other" in message
    assert str(shards.paths[shard or 1]) in message


@pytest.mark.parametrize("name", FINGERPRINTS)
def test_a_fingerprint_that_differs_in_one_line_is_refused_by_name(shards, name):
    path = shards.paths[1]
    first, *rest = lines_of(path)
    line = json.loads(first)
    line["fingerprints"][name] = {"id": "x"} if name == "tokenizer_fingerprint" else "other"
    rewrite(path, [json.dumps(line).encode() + b"\n", *rest], honest=True)
    message = shards.refused(FingerprintMismatch)
    assert str(path) in message
    assert repr(line["sample_id"]) in message
    assert f"{name}: is " in message


@pytest.mark.parametrize(
    ("path", "value", "named"),
    [
        (("header", "min_eligible_for_gates"), 3, "min_eligible_for_gates: shard 0 has 15"),
        (("header", "repeat"), 2, "repeat: "),
        (("header", "scorer_version"), "0", "scorer_version: "),
        (("header", "gates", "call_f1_macro", "bound"), 0.1, "gates.call_f1_macro: "),
        (("shard", "settings", "privacy_echo"), "deny", "privacy_echo: "),
        (("shard", "settings", "limit"), 20, "limit: "),
        (("shard", "selected_samples"), 24, "selected_samples: shard 0 has 25, shard 1 24"),
    ],
)
def test_shards_with_other_settings_are_refused(shards, path, value, named):
    change_report(shards.paths[1], *path, value=value)
    assert named in shards.refused(FingerprintMismatch)


def test_a_missing_shard_is_named(shards):
    lost = shards.paths.pop(1)
    assert "of 3 shards these are missing: 1" in shards.refused(BadInput)
    assert lost.exists()


def test_a_shard_that_is_named_twice_is_refused(shards):
    shards.paths.append(shards.paths[2])
    message = shards.refused(BadInput)
    assert f"{shards.paths[2]}: shard 2 of 3 is there twice" in message


def test_shards_of_other_numbers_are_refused(shards):
    other = run_shards(shards.project.config(), shards.project.folder / "four", 4)
    shards.paths[1] = other[1]
    assert f"{other[1]}: shard 1 of 4, but" in shards.refused(BadInput)


def test_an_incomplete_shard_is_refused(shards):
    change_report(shards.paths[1], "complete", value=False)
    message = shards.refused(Incomplete)
    assert f"{shards.paths[1]}: shard 1 of 3 is incomplete" in message
    assert "--resume" in message


def test_an_interrupted_shard_of_a_folder_is_refused_as_incomplete(project):
    answers = [json.loads(line) for line in lines_of(project.answers)]
    project.write(answers=answers[:-1])
    lost = shard_of(answers[-1]["sample_id"], 2)
    folder = project.folder / "shards"
    folder.mkdir()
    codes = [run_shard(project.config(), folder, 2, index).exit_code for index in range(2)]
    assert codes[lost] == 4
    with pytest.raises(Incomplete, match=f"shard {lost} of 2 is incomplete"):
        merged([folder], project.folder / "merged")


@pytest.mark.parametrize("cut", [1, 30])
def test_a_truncated_file_is_refused(shards, cut):
    path = shards.paths[1]
    path.write_bytes(path.read_bytes()[:-cut])
    assert f"{path}: shard 1 of 3, line" in (message := shards.refused(BadInput))
    assert "is cut off" in message


def test_a_file_that_lost_whole_lines_is_refused(shards):
    path = shards.paths[1]
    lines = lines_of(path)
    rewrite(path, lines[:-1])
    message = shards.refused(BadInput)
    assert f"{path}: shard 1 of 3: holds {len(lines) - 1} lines, but {len(lines)}" in message


@pytest.mark.parametrize("owner", [0, 1])
def test_a_line_behind_the_last_one_is_refused(shards, owner):
    """With the shard's summary too, which knows its lines and would not look for more."""
    path = shards.paths[1]
    extra = lines_of(shards.paths[owner])[-1]
    path.write_bytes(path.read_bytes() + extra)
    name = json.loads(extra)["sample_id"]
    assert f"sample '{name}', trial 0: " in (message := shards.refused(BadInput))
    assert f"{path}: shard 1 of 3, line " in message


def test_results_and_report_need_a_place_each(shards):
    place = shards.paths[0].with_name("both.jsonl")
    with pytest.raises(UsageError, match="is the file of --out"):
        merge_shards(shards.paths, out=place, report=place)
    assert not place.exists()


def test_a_changed_byte_is_refused(shards):
    path = shards.paths[1]
    data = path.read_bytes()
    path.write_bytes(data.replace(b"There live", b"There were", 1))
    assert f"{path}: shard 1 of 3: was changed since" in shards.refused(BadInput)


def test_a_missing_sample_is_named_if_the_dataset_is_at_hand(shards):
    path = shards.paths[1]
    lines = lines_of(path)
    gone = json.loads(lines[2])
    rewrite(path, [*lines[:2], *lines[3:]], honest=True)
    assert f"sample at place {gone['index']} of the dataset" in shards.refused(BadInput)
    message = shards.refused(BadInput, dataset=shards.project.dataset)
    assert message.startswith(f"{path}: shard 1 of 3: sample '{gone['sample_id']}' of ")


def test_the_last_sample_may_not_be_missing_either(shards):
    path = shards.of("s024")
    rewrite(path, lines_of(path)[:-1], honest=True)
    assert "hold 24 trials together, but the run has 25" in shards.refused(BadInput)
    message = shards.refused(BadInput, dataset=shards.project.dataset)
    assert "sample 's024'" in message


def test_a_sample_that_is_there_twice_is_named(shards):
    path = shards.paths[0]
    first, *rest = lines_of(path)
    rewrite(path, [first, first, *rest], honest=True)
    message = shards.refused(BadInput)
    assert f"sample '{json.loads(first)['sample_id']}', trial 0: is there twice" in message


def test_an_overlap_is_named(shards):
    """A sample of one shard stands in another one too."""
    path, other = shards.paths[0], shards.paths[1]
    line = json.loads(lines_of(other)[-1])
    lines = sorted([*lines_of(path), lines_of(other)[-1]], key=lambda one: json.loads(one)["index"])
    rewrite(path, lines, honest=True)
    message = shards.refused(BadInput)
    assert str(path) in message
    assert f"sample '{line['sample_id']}', trial 0: does not belong here, but to shard 1" in message


def test_a_sample_that_is_not_of_the_dataset_is_named(shards):
    added = next(f"new-{at}" for at in range(99) if shard_of(f"new-{at}", 3) == 0)
    path = shards.paths[0]
    lines = lines_of(path)
    extra = json.loads(lines[-1])
    extra.update(index=25, sample_id=added)
    rewrite(path, [*lines, json.dumps(extra).encode() + b"\n"], honest=True)
    assert "hold 26 trials together, but the run has 25" in shards.refused(BadInput)
    message = shards.refused(BadInput, dataset=shards.project.dataset)
    assert f"{path}: shard 0 of 3: sample '{added}', trial 0: is no sample of" in message


def test_lines_out_of_order_are_refused(shards):
    path = shards.paths[0]
    rewrite(path, lines_of(path)[::-1], honest=True)
    assert "is not in the order of the dataset" in shards.refused(BadInput)


def test_another_dataset_is_refused(shards):
    other = shards.project.folder / "other.jsonl"
    other.write_bytes(b"".join(lines_of(shards.project.dataset)[:-1]))
    assert "dataset_sha256: is " in shards.refused(FingerprintMismatch, dataset=other)


def test_a_file_of_a_shard_is_never_overwritten(shards):
    before = shards.paths[0].read_bytes()
    for place in ({"out": shards.paths[0]}, {"report": report_beside(shards.paths[0])}):
        with pytest.raises(UsageError, match="is a file of a shard"):
            merge_shards(shards.paths, **{"out": None, "report": None, **place})
    assert shards.paths[0].read_bytes() == before


def test_reports_may_stand_elsewhere(shards):
    reports = [path.rename(path.with_name(f"r{at}.json")) for at, path in
               enumerate(map(report_beside, shards.paths))]  # fmt: skip
    assert "name it with --reports" in shards.refused(BadInput)
    assert merge_shards(shards.paths, out=None, report=None, reports=reports).report.complete
    with pytest.raises(UsageError, match="3 results files, but 2 reports"):
        merge_shards(shards.paths, out=None, report=None, reports=reports[:2])


def test_a_report_that_was_written_without_results_will_not_do(shards):
    change_report(shards.paths[0], "shard", value=None)
    assert "was not written together with results" in shards.refused(BadInput)


def test_where_the_shards_come_from_is_kept_and_differences_are_warned_of(shards):
    change_report(shards.paths[1], "provenance", "python", value="3.99")
    report = merge_shards(shards.paths, out=None, report=None).report
    [warning] = [text for text in report.warnings if "do not agree" in text]
    assert warning.startswith("the shards do not agree in python: 3.")
    assert warning.endswith(" and 3.99")
    assert [one["python"] for one in report.provenance["segments"]][-1] == "3.99"
    for path in shards.paths:
        change_report(path, "shard", "settings", "determinism_mode", value=True)
    assert "do not agree in python" in shards.refused(FingerprintMismatch)


@pytest.mark.parametrize(
    ("results", "report"),
    [
        ("results.jsonl", "report.json"),
        ("results.shard_3.jsonl", "report.shard_3.json"),
        ("mine.jsonl", "mine.report.json"),
        ("resultset.jsonl", "resultset.report.json"),
    ],
)
def test_every_results_file_has_one_place_for_its_report(results, report):
    assert report_beside(Path("a") / results) == Path("a") / report


QUARANTINE = {"search-rope-01": {"owner": "kim", "until": "2027-01-31", "why": "flaky"}}


@pytest.mark.slow
def test_shards_with_a_quarantine_merge_to_the_run_with_it(settings, tmp_path):
    assert_same({**settings, "quarantine": QUARANTINE, "today": "2027-01-31"}, tmp_path, 2)
    report = json.loads((tmp_path / "merged" / "report.json").read_bytes())
    assert report["counts"]["quarantined"] == 1
    assert report["warnings"].count("1 sample in quarantine counts for no gate") == 1


def test_shards_that_were_judged_on_both_sides_of_its_last_day_are_refused(settings, tmp_path):
    shards = [
        run_shards({**settings, "quarantine": QUARANTINE, "today": day}, tmp_path / day, 2)[index]
        for index, day in enumerate(("2027-01-31", "2027-02-01"))
    ]
    with pytest.raises(FingerprintMismatch, match="quarantine"):
        merge_shards(shards, out=None, report=None)
