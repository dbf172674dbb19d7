"""A whole run: dataset, fixtures and recorded answers in; results, report and exit code out."""

import json
import socket
from pathlib import Path

import jsonschema_rs
import msgspec
import pytest
from tests.integration.conftest import answer, fixture

import callmark
from callmark.cli import main
from callmark.errors import BadInput, CallmarkError, FingerprintMismatch, UsageError
from callmark.resources import schema
from callmark.run.conclude import run
from callmark.run.preview import dry_run, show_prompt


def without_timing(path) -> dict:
    report = json.loads(Path(path).read_text("utf-8"))
    report.pop("timing")
    return report


def test_a1_two_runs_give_equal_bytes_and_equal_reports(demo, tmp_path):
    first = run(demo)
    again = {**demo, "out": str(tmp_path / "again.jsonl"), "report": str(tmp_path / "again.json")}
    run(again)
    assert first.exit_code == 0
    assert Path(demo["out"]).read_bytes() == Path(again["out"]).read_bytes()
    assert without_timing(demo["report"]) == without_timing(again["report"])


def test_a15_a50_results_hold_what_the_fixtures_say_and_fit_their_schema(project):
    outcome = project.run()
    validator = jsonschema_rs.Draft202012Validator(schema("eval_result"))
    results = project.results()
    assert [error for line in results for error in validator.iter_errors(line)] == []
    assert results[0]["tool_trace"][0]["result"]["count"] == 1000
    assert results[0]["tool_trace"][0]["served_by"] == "fixture:exact"
    assert results[0]["scores"]["lax"]["f1"] == 1.0
    assert [line["index"] for line in results] == list(range(25))
    assert outcome.report.verdict == "pass"
    assert outcome.exit_code == 0


def test_a14_a141_a_replayed_run_opens_no_socket(demo, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket, "socket", refuse)
    monkeypatch.setattr(socket, "socketpair", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert run(demo).exit_code == 0


def test_d38_nothing_is_written_into_the_package(demo):
    package = Path(callmark.__file__).parent

    def files():
        found = (path for path in package.rglob("*") if "__pycache__" not in path.parts)
        return {path: path.stat().st_mtime_ns for path in found}

    before = files()
    run(demo)
    assert files() == before


def test_a34_an_unknown_runner_is_named(project):
    with pytest.raises(UsageError, match="no 'opnai_http'"):
        project.run(runner="opnai_http")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"dataset": "missing.jsonl"}, "missing.jsonl: no such file"),
        ({"dataset": None}, "--in: which dataset"),
        ({"fixtures": "missing"}, "missing: no such fixture folder"),
        ({"model": "missing.jsonl"}, "missing.jsonl: no such file"),
        ({"model": None}, "--model FILE"),
        ({"registry": "missing.json"}, "missing.json"),
        ({"out": "/proc/nowhere/out.jsonl"}, "cannot be written"),
        ({"gates": {"no_such_gate": {"bound": 1}}}, "no.such.gate: unknown gate"),
        ({"nonsense": 1}, "nonsense"),
    ],
)
def test_a36_a39_mistakes_of_the_user_end_with_a_sentence(project, changed, message):
    with pytest.raises(CallmarkError, match=message) as caught:
        run({key: value for key, value in project.config(**changed).items() if value is not None})
    assert caught.value.exit_code == 2
    assert not project.out.exists()


def test_d48_an_empty_dataset_is_bad_input(project):
    project.write(items=[])
    with pytest.raises(BadInput, match="empty"):
        project.run()


@pytest.mark.slow
def test_a44_a67_a138_d51_every_pin_of_the_header_is_compared(project):
    project.run()
    good = project.results()[0]["fingerprints"]
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    for name in ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256"):
        project.write(items, header={name: good[name]})
        assert project.run().report.provenance["pinned"] == {name: "equal"}
        project.write(items, header={name: "0" * 64})
        with pytest.raises(FingerprintMismatch) as caught:
            project.run()
        assert caught.value.exit_code == 3
        assert "0" * 64 in str(caught.value)
        assert good[name] in str(caught.value)
        explored = project.run(fail_on_fingerprint_mismatch=False)
        assert explored.exit_code == 0
        assert explored.report.provenance["pinned"] == {name: "different"}
        assert any(name in warning for warning in explored.report.warnings)
        assert getattr(explored.report.header, name) == good[name], "computed, never copied"


def test_a60_what_cannot_be_computed_is_unchecked_and_copied(project):
    pinned = {"id": "tok", "sha256": "1" * 64}
    project.write([json.loads(project.dataset.read_text("utf-8").splitlines()[1])])
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    project.write(items, header={"tokenizer_fingerprint": pinned, "fixtures_sha256": "0" * 64})
    config = {key: value for key, value in project.config().items() if key != "fixtures"}
    report = run(config).report
    assert report.header.tokenizer_fingerprint == pinned
    assert report.provenance["pinned"] == {
        "fixtures_sha256": "unchecked",
        "tokenizer_fingerprint": "unchecked",
    }
    assert sum("unchecked" in warning for warning in report.warnings) == 2


def test_a61_to_a66_the_report_says_what_it_depends_on(project):
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    project.write(items, header={"integration_span_cap": 5, "seed": 7})
    header = project.run(temperature=0.5, min_eligible_for_gates=3).report.header
    assert header.integration_span_cap == 5
    assert header.seed == header.decoding.seed == 7
    assert header.decoding.temperature == 0.5
    assert header.min_eligible_for_gates == 3
    assert header.fail_on_fingerprint_mismatch is True
    assert header.runner == "replay"
    assert len(header.runner_fingerprint) == len(header.model_fingerprint) == 64
    flag_wins = project.run(integration_span_cap=2).report.header
    assert flag_wins.integration_span_cap == 2
    assert project.run(max_turns=1).report.header.runner_fingerprint != header.runner_fingerprint
    project.answers.write_text(project.answers.read_text("utf-8") + "\n", "utf-8")
    assert project.run().report.header.model_fingerprint != header.model_fingerprint


def test_d6_missed_fixtures_fail_the_gates(project):
    project.write(fixtures=[{"name": "web.search", "key": {"q": "else"}, "result": {}}])
    outcome = project.run()
    hits = next(gate for gate in outcome.report.gates if gate.name == "fixture_hit_rate")
    assert (hits.status, hits.value) == ("fail", 0.0)
    assert outcome.report.misses.count == 20
    assert outcome.report.gates_ok is False
    assert outcome.exit_code == 1


def test_without_fixtures_what_is_not_recorded_is_missed(project):
    config = {key: value for key, value in project.config().items() if key != "fixtures"}
    outcome = run(config)
    assert outcome.report.misses.count == 20
    assert outcome.exit_code == 1
    assert project.results()[0]["tool_trace"][0]["key_normalized"] == {"q": "city 0", "top_k": 3}


def test_a137_contaminated_controls_are_listed(project):
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    lines[4]["tool_trace"] = [{"name": "web.search", "arguments": {"q": "city 1"}}]
    project.write(answers=lines)
    outcome = project.run()
    assert outcome.report.failing["controls_with_integration"].sample_ids == ("s004",)
    assert outcome.exit_code == 1


def test_d36_nulls_from_other_programs_are_read(project):
    items = [
        {"prompt": "Hi", "metadata": {"sample_id": "s000", "call_sequence": None}},
        {"prompt": "Hi", "metadata": {"sample_id": "s001", "call_sequence": ["web.search"]}},
        {"prompt": "Hi there", "metadata": None},
    ]
    project.write(items)
    project.run(max_errors=5)
    null = {"role": "assistant", "content": None, "tool_calls": None}
    project.write(
        answers=[
            {"sample_id": "s000", "model_output": None, "tool_trace": None},
            {"sample_id": "s001", "messages": [{"role": "user", "content": "Hi"}, null]},
            {"sample_id": project.results()[2]["sample_id"], "model_output": "x"},
        ]
    )
    outcome = project.run()
    assert [line["status"] for line in project.results()] == ["ok"] * 3
    assert outcome.report.counts.trials_error == 0


def test_a80_d54_a_missing_id_is_made_from_the_item_and_stands_in_the_results(project):
    item = {"prompt": "No id", "metadata": {}}
    project.write([item, {"prompt": "int id", "sample_id": 7}])
    project.run(max_errors="100%")
    assert [line["sample_id"] for line in project.results()] == [callmark_id(item), "7"]


def callmark_id(item) -> str:
    from callmark.records.samples import sample_id_of

    return sample_id_of(item)


def test_samples_without_an_answer_are_errors_that_are_never_scored(project):
    lines = project.answers.read_text("utf-8").splitlines()
    project.answers.write_text("\n".join(lines[:-2]) + "\n", "utf-8")
    outcome = project.run()
    assert outcome.exit_code == 4
    assert outcome.report.verdict == "incomplete"
    assert outcome.report.complete is False
    assert not project.out.exists()
    assert Path(f"{project.out}.journal").exists()
    forgiven = project.run(max_errors=2, restart=True)
    assert forgiven.exit_code == 0
    assert [line["status"] for line in project.results()].count("error") == 2
    assert project.results()[-1]["scores"] is None
    assert forgiven.report.counts.trials_error == 2
    assert project.run(max_errors="4%").exit_code == 4
    assert project.run(max_errors="8%", restart=True).exit_code == 0


def test_repeated_trials_stay_with_their_sample(project):
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    project.write(answers=[{**line, "trial": trial} for trial in (1, 0) for line in lines])
    outcome = project.run(repeat=2)
    keys = [(line["index"], line["trial"]) for line in project.results()]
    assert keys == [(index, trial) for index in range(25) for trial in (0, 1)]
    assert outcome.report.counts.samples == 25
    assert outcome.report.counts.trials == 50
    assert outcome.report.repeat.trials == 2


def decided(project) -> list[tuple[str, str]]:
    return [(line["span_extractor"], line["span_extractor_by"]) for line in project.results()]


def test_f23_auto_takes_the_extractor_that_somebody_asks_the_model_for(project):
    def says(role: str, content) -> dict:
        return {"role": role, "content": content}

    asks = "Write a line `Integration: …`"
    prompts = [
        "Slack Integration: timeouts since Monday. How many?",
        [says("user", asks)],
        [says("assistant", asks), says("user", "b")],
        [says("system", "Be brief."), says("user", asks)],
        [says("system", asks), says("user", "b")],
        [says("system", [{"type": "text", "text": asks}]), says("user", "b")],
        "b",
    ]
    items = [
        {"prompt": prompt, "metadata": {"sample_id": f"s{at:03}"}}
        for at, prompt in enumerate(prompts)
    ]
    items[-1]["teacher_text"] = "Integration: x"
    project.write(items)
    project.run()
    by_system = ("marker", "system_message")
    by_nobody = ("claims", "default")
    found = [*[by_nobody] * 4, by_system, by_system, ("marker", "teacher_text")]
    assert decided(project) == found
    project.run(system=asks)  # a sample with a system message of its own is not sent this one
    assert decided(project) == [*[by_system] * 3, by_nobody, *found[4:]]
    project.write(items, header={"span_extractor": "marker"})
    project.run()
    assert set(decided(project)) == {("marker", "header")}
    project.run(span_extractor="claims")
    assert set(decided(project)) == {("claims", "flag")}


def test_f23_a_word_in_the_prompt_takes_no_points_from_a_right_answer(project):
    items = read_items(project)
    project.run()
    before = [line["scores"]["lax"]["f1"] for line in project.results() if line["scores"]]
    for item in items:
        item["prompt"] = f"Slack Integration: timeouts. {item['prompt']}"
    project.write(items)
    project.run()
    assert [line["scores"]["lax"]["f1"] for line in project.results()] == before


def test_f23_show_names_the_extractor_and_why(project, capsys):
    project.run()
    assert main(["show", str(project.out), "s000"]) == 0
    assert (
        "read with claims (no prompt asks for lines with Integration:)" in capsys.readouterr().out
    )
    project.write(read_items(project), header={"span_extractor": "marker"})
    project.run()
    assert main(["show", str(project.out), "s000"]) == 0
    assert "read with marker (the dataset's header says so)" in capsys.readouterr().out


def test_the_header_loosens_gates_and_is_named(project):
    items = [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]
    project.write(items, header={"gates": {"integration_coverage": {"bound": 0.5}}})
    rule = project.run().report.header.gates["integration_coverage"]
    assert (rule.bound, rule.source, rule.loosened) == (0.5, "header", True)
    flagged = project.run(gates={"integration_coverage": {"bound": 0.99}})
    rule = flagged.report.header.gates["integration_coverage"]
    assert (rule.bound, rule.source, rule.loosened) == (0.99, "flag", False)


def test_every_sample_is_offered_its_own_tools_or_the_whole_registry(project):
    items = [item for _, item in zip(range(2), read_items(project), strict=False)]
    items[1]["metadata"]["tools"] = ["read_file"]
    project.write(items)
    shown = show_prompt(project.config(), "s000")
    assert "web.search" in {tool["function"]["name"] for tool in shown.tools}
    assert len(shown.tools) > 1
    assert shown.messages == [{"role": "user", "content": items[0]["prompt"]}]
    [tool] = show_prompt(project.config(), "s001").tools
    assert tool["function"]["name"] == "read_file"
    assert tool["function"]["parameters"]["properties"], "a model is sent the real schema"
    project.run(max_errors=99)
    assert project.results()[1]["tool_trace"][0]["status"] == "tool_not_offered"
    with pytest.raises(UsageError, match="no sample nobody"):
        show_prompt(project.config(), "nobody")


def read_items(project):
    return [json.loads(line) for line in project.dataset.read_text("utf-8").splitlines()][1:]


def test_a19_a_tool_that_is_not_on_the_allowlist(project):
    allowlist = project.folder / "allow.json"
    allowlist.write_text('["read_file"]', "utf-8")
    outcome = project.run(allowlist=str(allowlist))
    assert project.results()[0]["tool_trace"][0]["status"] == "tool_not_allowed"
    assert any("web.search" in warning for warning in outcome.report.warnings)


def test_tools_that_nobody_has_are_refused_before_anything_is_run(project):
    items = read_items(project)
    items[3]["metadata"]["tools"] = ["weather"]
    project.write(items)
    with pytest.raises(BadInput, match=r"metadata.tools: 'weather' \(samples: 1\)"):
        project.run()


def test_another_registry_needs_no_allowlist(project):
    registry = project.folder / "tools.json"
    spec = {"name": "web.search", "parameters": {"type": "object", "required": ["nope"]}}
    registry.write_text(json.dumps([spec]), "utf-8")
    outcome = project.run(registry=str(registry))
    entry = project.results()[0]["tool_trace"][0]
    assert entry["status"] == "ok"
    assert "nope" in entry["schema_errors"][0]
    assert outcome.exit_code == 1


def test_redaction_reaches_results_and_report(project):
    address = "jane.doe@corp-mail.io"
    lines = [json.loads(line) for line in project.answers.read_text("utf-8").splitlines()]
    lines[0]["model_output"] += f" Write to {address}."
    lines[1]["tool_trace"][0]["arguments"]["q"] = address
    project.write(answers=lines)
    plain = project.run()
    assert address in project.out.read_text("utf-8")
    redacted = project.run(redact_pii=True)
    for path in (project.out, project.report):
        assert address not in path.read_text("utf-8")
    assert redacted.exit_code == plain.exit_code == 1
    assert redacted.report.metrics["privacy_ok_rate"] == plain.report.metrics["privacy_ok_rate"]


def test_a_dry_run_checks_everything_and_writes_nothing(project):
    record = dry_run(project.config(dry_run=True, repeat=3, limit=10))
    assert (record.samples, record.chosen, record.trials) == (25, 10, 30)
    assert record.kinds == {"control": 5, "eligible": 20}
    assert record.partial is True
    assert msgspec.to_builtins(record)["fingerprints"]["dataset_sha256"]
    assert sorted(path.name for path in project.folder.iterdir()) == [
        "answers.jsonl",
        "dataset.jsonl",
        "fixtures",
    ]
    with pytest.raises(BadInput):
        dry_run(project.config(fixtures="missing"))


def test_progress_counts_every_trial(project):
    seen = []
    fixtures = [fixture(number) for number in range(24) if number != 3]
    project.write(fixtures=fixtures, answers=[answer(number) for number in range(24)])
    run(project.config(max_errors=1), progress=seen.append)
    assert [(one.finished, one.total) for one in seen] == [(done, 25) for done in range(1, 26)]
    assert (seen[-1].misses, seen[-1].errors) == (1, 1)


def test_records_and_plain_values_for_those_who_want_them(project):
    report = callmark.run(project.config(), seed=3)  # a keyword wins over the config
    assert (report.verdict, report.header.seed) == ("pass", 3)
    plain = report.to_dict()
    assert json.loads(json.dumps(plain)) == plain == json.loads(project.report.read_text("utf-8"))
    planned = callmark.run(project.config(limit=2), dry_run=True)
    assert (planned.samples, planned.chosen) == (25, 2)
    assert planned.to_dict()["chosen"] == 2
    with pytest.raises(UsageError, match=r"callmark\.run\(config, dry_run=True\)"):
        callmark.run(project.config(dry_run=True))


def test_a_run_without_out_and_report_writes_nothing(project):
    config = project.config()
    outcome = run({key: config[key] for key in ("dataset", "fixtures", "model")})
    assert outcome.exit_code == 0
    assert not project.out.exists()


def test_a_settings_file_of_the_current_folder_does_not_reach_a_library_call(project, monkeypatch):
    (project.folder / "callmark.yaml").write_text("repeat: 3\n", "utf-8")
    monkeypatch.chdir(project.folder)
    assert project.run().report.counts.trials == 25
