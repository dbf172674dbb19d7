"""A dataset's own answers are judged by the scorer and the gates that models are judged by."""

import io
import json
import random
import re
import socket
import sys

import msgspec
import pytest
from tests.builders import ROOT
from tests.integration.verified import (
    Dataset,
    call,
    control,
    good,
    items,
    outcome_of,
    read_lines,
    status_of,
    write_lines,
)
from tests.pace import few

import callmark
from callmark.cli import main
from callmark.errors import BadInput, CannotWrite, FingerprintMismatch, UsageError
from callmark.resources import demo_paths
from callmark.run.conclude import run
from callmark.run.preview import dry_run
from callmark.summary.gates import GATES


@pytest.fixture
def dataset(tmp_path):
    return Dataset(tmp_path)


def recorded(lines):
    """The teachers' texts as the answers of a model in a single shot: no turns are known."""
    for item in lines:
        metadata = item["metadata"]
        calls = [
            {"name": one["name"], "arguments": one["arguments"]}
            for one in metadata.get("call_sequence") or ()
        ]
        yield {
            "sample_id": metadata["sample_id"],
            "model_output": item["teacher_text"],
            "tool_trace": calls,
        }


def without_echo(result: dict) -> dict:
    """All that one trial says, but whether repeating PII is a breach: `verify` says it is."""
    kept = {
        name: value
        for name, value in result.items()
        if name not in ("fingerprints", "decoding", "scoring")
    }
    scores = {name: value for name, value in kept["scores"].items() if name != "privacy_ok"}
    privacy = {name: value for name, value in scores["privacy"].items() if name != "ok"}
    return {**kept, "scores": {**scores, "privacy": privacy}}


def altered(lines, seed: int) -> list[dict]:
    """About half of the texts with another digit, another word or nothing in them."""
    chance = random.Random(seed)
    for item in lines:
        text = item["teacher_text"]
        match chance.randrange(6):
            case 0:
                text = re.sub(r"\d", lambda _: str(chance.randrange(10)), text)
            case 1:
                text = text[: len(text) // 2]
            case 2:
                text += '\n<tool_call>{"name": "web.search", "arguments": {"q": "x"}}</tool_call>'
        item["teacher_text"] = text
    return lines


@pytest.mark.parametrize("seed", few([None, 1, 2]))
def test_a126_a127_one_text_gets_one_number_from_verify_and_from_run(tmp_path, seed):
    """The bundled dataset, as it is and with broken texts: verified, and replayed as a model."""
    demo = demo_paths()
    header, *lines = read_lines(demo.dataset)
    if seed is not None:
        lines, header = altered(lines, seed), {"__header__": True, "span_extractor": "marker"}
    path = write_lines(tmp_path / "d.jsonl", [header, *lines])
    answers = write_lines(tmp_path / "a.jsonl", recorded(lines))
    common = {"fixtures": str(demo.fixtures)}
    ran = run({**common, "dataset": str(path), "model": str(answers), "out": str(tmp_path / "r")})
    report = callmark.verify_dataset(path, **common, out=str(tmp_path / "v"))
    verified, replayed = read_lines(tmp_path / "v"), read_lines(tmp_path / "r")
    assert len(verified) == len(lines)
    assert [without_echo(one) for one in verified] == [without_echo(one) for one in replayed]
    for name, metric in ran.report.metrics.items():
        if name != "privacy_ok_rate":
            assert report.metrics[name] == metric, name


def test_a28_the_bundled_dataset_passes_its_verification(capsys):
    """The seed's path of a sample dataset, and its fixtures."""
    data, fixtures = ROOT / "data" / "contextual_final.s0.jsonl", "eval/tool_broker/fixtures"
    assert main(["verify", str(data), "--fixtures", str(ROOT / fixtures)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("PASS")
    assert "153 samples (104 need a tool)" in shown
    # What is right is asked next; the command breaks at a backslash.
    asked = " ".join(shown.rpartition("\nnext\n")[2].replace("\\\n", " ").split())
    given = f"--in {data} --fixtures {ROOT / fixtures}"
    assert asked == f"callmark run {given} --runner openai_http --base-url URL --model NAME"


def test_a2_a_verification_lists_the_gates_of_a_run_and_the_datasets_own(dataset):
    report = dataset.verify(items()).report
    answers = write_lines(dataset.folder / "a.jsonl", recorded(items()))
    settings = {"dataset": str(dataset.path), "fixtures": str(dataset.fixtures)}
    ran = run({**settings, "model": str(answers), "out": str(dataset.folder / "o")}).report
    own = {name for name, kind in GATES.items() if kind.of_dataset}
    judged = {one.name: (one.op, one.bound, one.policy, one.source) for one in report.gates}
    in_run = {one.name: (one.op, one.bound, one.policy, one.source) for one in ran.gates}
    assert judged.keys() == in_run.keys() | own
    assert all(judged[name] == rule for name, rule in in_run.items())
    shipped = {name for name, kind in GATES.items() if not kind.on_request}
    assert report.header.gates.keys() == shipped
    assert report.timing.perf_budget is not None
    assert report.verdict == "pass"


def test_a140_the_report_has_the_fields_of_every_report(dataset):
    report = json.loads(msgspec.json.encode(dataset.verify(items()).report))
    golden = json.loads((ROOT / "tests/golden/report_2.0.0.json").read_text("utf-8"))
    assert report["report_version"] == golden["report_version"]
    for part in ("", "header", "counts", "timing", "summary"):
        ours, theirs = (report[part], golden[part]) if part else (report, golden)
        assert ours.keys() == theirs.keys(), part
    assert {frozenset(one) for one in report["gates"]} == {frozenset(golden["gates"][0])}


def test_the_gates_of_a_dataset_say_nothing_in_a_run(dataset):
    """A header may speak of them all the same."""
    dataset.write(items(), {"gates": {"dataset_cells": {"bound": 2}}})
    answers = write_lines(dataset.folder / "a.jsonl", recorded(items()))
    settings = {"dataset": str(dataset.path), "fixtures": str(dataset.fixtures)}
    settings |= {"model": str(answers), "out": str(dataset.folder / "o")}
    own = {name for name, kind in GATES.items() if kind.of_dataset}
    ran = run(settings).report
    assert not own & ran.header.gates.keys()
    assert not own & {one.name for one in ran.gates}
    assert not any("LOOSENED" in warning for warning in ran.warnings)
    assert not own & {rule.name for rule in dry_run(settings).gates}
    verified = dataset.verify(registry=None)
    assert outcome_of(verified, "dataset_cells").source == "header"
    assert "gate dataset_cells is LOOSENED by header" in verified.report.warnings


@pytest.mark.parametrize(
    "fields",
    [
        [{"count": 1007}],
        {"count": 1007},
        ['{"count": 1007}'],
    ],
    ids=["list", "object", "text"],
)
def test_results_come_from_the_metadata_where_there_are_no_fixtures(dataset, fields):
    line = good(1, metadata={"tool_result_fields": fields})
    [result] = dataset.results([line], fixtures=None)
    assert result["tool_trace"][0]["served_by"] == "recorded"
    assert result["scores"]["lax"]["f1"] == 1.0
    assert result["scores"]["unresolved"] is False


def test_an_object_answers_every_call_and_a_list_each_its_own(dataset):
    calls = {"call_sequence": [call(1), call(2)]}
    [both] = dataset.results(
        [good(1, metadata={**calls, "tool_result_fields": {"count": 1007}})], fixtures=None
    )
    assert [entry["result"] for entry in both["tool_trace"]] == [{"count": 1007}] * 2
    listed = {**calls, "tool_result_fields": [{"count": 1}, {"count": 1007}]}
    [each] = dataset.results([good(1, metadata=listed)], fixtures=None)
    assert [entry["result"] for entry in each["tool_trace"]] == listed["tool_result_fields"]


def test_a_list_that_is_too_short_leaves_a_miss_and_one_too_long_cannot_be_verified(dataset):
    calls = {"call_sequence": [call(1), call(2)]}
    short = good(1, metadata={**calls, "tool_result_fields": [{"count": 1007}]})
    [result] = dataset.results([short], fixtures=None)
    assert [entry["status"] for entry in result["tool_trace"]] == ["ok", "miss"]
    long = good(1, metadata={"tool_result_fields": [1, 2, 3]})
    outcome = dataset.verify([long], fixtures=None)
    assert outcome.report.errors.first[0].error == "tool_result_fields: 3 results for 1 calls"


def test_without_fixtures_and_without_results_every_call_is_a_miss(dataset):
    outcome = dataset.verify(items(), fixtures=None)
    assert status_of(outcome, "fixture_hit_rate") == "fail"
    assert outcome.report.misses.count == 32
    assert outcome.exit_code == 1


def test_fixtures_win_and_their_sequences_are_walked(dataset):
    error = {"ok": False, "error": "busy"}
    again = {"ok": True, "count": 4321}
    key = call(1)["arguments"]
    scoped = {"name": "web.search", "key": key, "sample_id": "s001"}
    write_lines(
        dataset.fixtures / "retry.jsonl",
        [{**scoped, "seq": 1, "result": error}, {**scoped, "seq": 2, "result": again}],
    )
    metadata = {
        "expected_behaviour": "retry",
        "call_sequence": [call(1), call(1)],
        "tool_result_fields": {"count": 5},
    }
    line = good(1, teacher_text="After a retry: 4321 people.", metadata=metadata)
    [result] = dataset.results([line])
    assert [entry["result"] for entry in result["tool_trace"]] == [error, again]
    assert result["scores"]["recovered"] is True
    assert result["scores"]["lax"]["f1"] == 1.0


def test_calls_that_only_the_text_makes_are_read_from_it(dataset):
    text = '<tool_call>{"name": "web.search", "arguments": {"q": "people of city 1"}}</tool_call>'
    line = good(
        1, teacher_text=f"{text}\nThere live 1007 people.", metadata={"call_sequence": None}
    )
    [result] = dataset.results([line])
    assert [entry["status"] for entry in result["tool_trace"]] == ["ok"]
    assert result["model_output"] == "There live 1007 people."
    [served] = dataset.results(
        [good(1, teacher_text=line["teacher_text"], metadata={
            "call_sequence": None, "tool_result_fields": {"count": 1007},
        })],
        fixtures=None,
    )  # fmt: skip
    assert served["tool_trace"][0]["result"] == {"count": 1007}


def test_a_call_of_which_only_the_name_is_known(dataset):
    """Its arguments stand in the text, or its result in the metadata; else nobody can tell."""
    named = {"call_sequence": ["web.search"]}
    text = '<tool_call>{"name": "web.search", "arguments": {"q": "people of city 1"}}</tool_call>'
    [read] = dataset.results([good(1, teacher_text=f"{text}\nIt is 1007.", metadata=named)])
    assert read["tool_trace"][0]["arguments"] == {"q": "people of city 1"}
    told = good(1, metadata={**named, "tool_result_fields": [{"count": 1007}]})
    [told] = dataset.results([told], fixtures=None)
    assert told["scores"]["json_args_valid"] is True
    assert told["scores"]["call_f1"] == 1.0
    outcome = dataset.verify([good(1, metadata=named)])
    assert "has no arguments" in outcome.report.errors.first[0].error


@pytest.mark.parametrize(
    "text",
    [
        "Integration: there live 1003 people.",
        '{"name": "web.search", "arguments": {"q": "x"}}',
        "<tool_call>{broken</tool_call>",
    ],
)
def test_a_control_that_is_taught_to_call_or_to_integrate_fails_at_any_size(dataset, text):
    outcome = dataset.verify([good(0), {**control(4), "teacher_text": text}])
    assert status_of(outcome, "controls_with_integration") == "fail"
    assert outcome.report.failing["controls_with_integration"].sample_ids == ("s004",)
    assert outcome.exit_code == 1


@pytest.mark.parametrize("header", [{}, {"privacy_echo": "allow"}])
def test_repeating_pii_of_the_prompt_is_a_breach_here(dataset, header):
    lines = items()
    lines[0] |= {"prompt": "Write to a.b@corp.test", "teacher_text": "1000: a.b@corp.test"}
    outcome = dataset.verify(lines, header=header)
    assert status_of(outcome, "privacy_ok_rate") == "fail"
    assert outcome.report.failing["privacy_ok_rate"].sample_ids == ("s000",)


def test_a134_a_locale_that_loses_strict_grounding_fails(dataset):
    """16 German probes whose values stand under no strict key."""
    probe = {"locale": "de", "locale_probe": True}
    lines = [good(at, metadata=probe | {"required_facts": [1000 + 7 * at]}) for at in range(16)]
    lines += items()[16:]
    assert status_of(dataset.verify(lines), "locale_delta_de") == "pass"
    write_lines(
        dataset.fixtures / "all.jsonl",
        [{"name": "web.search", "match": "any", "result": {"people": [1000 + 7 * at for at in range(80)], "count": 80}}],
    )  # fmt: skip
    assert status_of(dataset.verify(lines), "locale_delta_de") == "fail"


def test_a135_a_teacher_heavy_slice_warns_of_spans_and_fails_on_f1(dataset):
    heavy = {"slices": ["teacher_heavy"]}
    many = "\n".join(["Integration: there live {} people."] * 4)
    lines = [
        good(at, metadata=heavy, teacher_text=many.format(*[1000 + 7 * at] * 4)) for at in range(16)
    ]
    outcome = dataset.verify(lines)
    assert status_of(outcome, "teacher_heavy_spans_over_cap") == "warn"
    assert status_of(outcome, "teacher_heavy_f1_lax") == "pass"
    for item in lines[:3]:
        item["teacher_text"] = "Integration: there live 77 people."
    assert status_of(dataset.verify(lines), "teacher_heavy_f1_lax") == "fail"


def test_a14_a141_verifying_opens_no_socket(dataset, monkeypatch):
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a socket was opened")

    for name in ("socket", "socketpair", "getaddrinfo"):
        monkeypatch.setattr(socket, name, refuse)
    assert dataset.verify(items()).exit_code == 0


def test_a1_two_verifications_are_equal_but_for_timing(dataset):
    one, two = (dataset.verify(items(), out=str(dataset.folder / name)) for name in "ab")
    assert msgspec.structs.replace(one.report, timing=two.report.timing) == two.report
    assert (dataset.folder / "a").read_bytes() == (dataset.folder / "b").read_bytes()


def test_the_lines_can_be_shown_and_scored_again(dataset, capsys):
    out = dataset.folder / "v.jsonl"
    dataset.verify(items(), out=str(out))
    assert main(["show", str(out), "s003"]) == 0
    assert main(["score", str(out)]) == 0
    assert "PASS" in capsys.readouterr().out


def test_what_was_not_scored_is_listed_as_that_and_did_not_fail(dataset, capsys):
    out = dataset.folder / "v.jsonl"
    silent = [
        {key: value for key, value in one.items() if key != "teacher_text"} for one in items()
    ]
    dataset.verify(silent, out=str(out))
    assert main(["show", str(out)]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"0 of {len(silent)} samples failed, {len(silent)} not scored\n")
    assert "\n    not scored: there is no teacher_text\n" in shown


def test_the_library_gives_the_report_and_refuses_what_has_no_meaning(dataset):
    dataset.write(items())
    assert "verify_dataset" in callmark.__all__
    report = callmark.verify_dataset(
        str(dataset.path), fixtures=str(dataset.fixtures), gates={"dataset_cells": {"bound": 99}},
        composition=True,
    )  # fmt: skip
    assert report.verdict == report.to_dict()["verdict"] == "fail"
    assert json.loads(json.dumps(report.to_dict())) == report.to_dict()
    with pytest.raises(
        UsageError, match="no option max_turns; there is: allowlist, composition, fail_on"
    ):
        callmark.verify_dataset(dataset.path, max_turns=1)
    with pytest.raises(UsageError, match="unknown gate"):
        callmark.verify_dataset(dataset.path, gates={"datset_cells": {"bound": 1}})


def test_the_command_line(dataset, capsys, monkeypatch):
    dataset.write(items())
    words = ["verify", str(dataset.path), "--fixtures", str(dataset.fixtures)]
    report = dataset.folder / "deep" / "report.json"
    assert main([*words, "--report", str(report), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("PASS  ")
    assert json.loads(report.read_text())["verdict"] == "pass"
    assert main([*words, "--gate", "dataset_controls=0.5"]) == 1
    shown = capsys.readouterr().out
    assert "FAIL  failed: items that need no tool" in shown
    assert "items that need no tool: 0.200, wanted at least 0.5 (40 samples)" in shown
    assert main([*words, "--gate", "dataset_controls=0.5", "--no-fail-on-gate-failure"]) == 0
    stdin = io.TextIOWrapper(io.BytesIO(dataset.path.read_bytes()))
    monkeypatch.setattr(sys, "stdin", stdin)
    assert main(["verify", "-", *words[2:], "--quiet"]) == 0


def test_the_settings_of_a_run_serve_a_verification_but_its_files_stay_untouched(
    dataset, monkeypatch, capsys
):
    dataset.write(items())
    (dataset.folder / "callmark.yaml").write_text(
        "dataset: other.jsonl\nfixtures: fixtures\nout: results.jsonl\nreport: report.json\n"
        "gates: {dataset_controls: {bound: 0.5}}\n"
    )
    monkeypatch.chdir(dataset.folder)
    assert main(["verify", "dataset.jsonl", "--quiet"]) == 1
    assert "items that need no tool" in capsys.readouterr().out
    assert not (dataset.folder / "results.jsonl").exists()
    assert not (dataset.folder / "report.json").exists()


def test_what_the_header_pins_is_compared_first(dataset):
    with pytest.raises(FingerprintMismatch, match="tool_registry_sha256"):
        dataset.verify(items(), header={"tool_registry_sha256": "0" * 64})
    outcome = dataset.verify(fail_on_fingerprint_mismatch=False)
    assert any("tool_registry_sha256" in warning for warning in outcome.report.warnings)
    unchecked = dataset.verify(items(), header={"fixtures_sha256": "0" * 64}, fixtures=None)
    assert any("fixtures_sha256" in one for one in unchecked.report.warnings)


def test_bad_input_is_named_by_file_line_and_field(dataset):
    with pytest.raises(
        BadInput, match=r"dataset\.jsonl:3: metadata\.call_sequence: must be a list"
    ):
        dataset.verify([good(0), good(1, metadata={"call_sequence": 3})])
    dataset.write(items())
    with pytest.raises(BadInput, match="no such fixture folder"):
        dataset.verify(fixtures=str(dataset.folder / "none"))
    with pytest.raises(CannotWrite, match="is a folder"):
        dataset.verify(report=str(dataset.folder))
    with pytest.raises(UsageError, match="is the file of --in"):
        dataset.verify(out=str(dataset.path))
    with pytest.raises(BadInput, match="is not a tool in the registry"):
        dataset.verify([good(0, metadata={"tools": ["fly"]})])
    with pytest.raises(BadInput, match=r"expects calls of 'fly', and .* with --registry"):
        dataset.verify([good(0, metadata={"call_sequence": [{"name": "fly"}]})])
    with pytest.raises(BadInput, match="has a header, but no items"):
        dataset.verify([])


def test_a_tool_that_only_some_expect_and_nobody_has_is_a_warning_with_what_was_meant(dataset):
    outcome = dataset.verify(
        [*items(), good(90, metadata={"call_sequence": [{"name": "web.serch", "arguments": {}}]})]
    )
    [told] = [one for one in outcome.report.warnings if "web.serch" in one and "expected" in one]
    assert told.endswith("the registry has no such tool; did you mean web.search?")
