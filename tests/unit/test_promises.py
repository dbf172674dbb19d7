"""Promises of the harness that no single part holds by itself, and the page that lists all."""

import hashlib
import json

import pytest
from dev.promises import PAGE, ROOT, OutOfStep, codes_of, fill, find_tests

import callmark
from callmark.resources import demo_paths


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    paths = demo_paths()
    config = {
        "runner": "replay",
        "model": str(paths.answers),
        "in": str(paths.dataset),
        "fixtures": str(paths.fixtures),
        "out": str(folder / "results.jsonl"),
        "report": str(folder / "report.json"),
        "seed": 7,
        "temperature": 0.25,
        "min_eligible_for_gates": 12,
    }
    report = callmark.run(config).to_dict()
    lines = [
        json.loads(line) for line in (folder / "results.jsonl").read_text("utf-8").splitlines()
    ]
    return config, report, lines


def test_a13_every_fingerprint_stands_in_report_and_lines(demo):
    _, report, lines = demo
    names = (
        "dataset_sha256",
        "tool_registry_sha256",
        "fixtures_sha256",
        "runner_fingerprint",
        "model_fingerprint",
    )
    for name in names:
        assert len(report["header"][name]) == 64
        assert {line["fingerprints"][name] for line in lines} == {report["header"][name]}


def test_a35_a62_the_model_is_fingerprinted_by_its_bytes(demo, tmp_path):
    config, report, _ = demo
    recorded = demo_paths().answers.read_bytes()
    assert report["header"]["model_fingerprint"] == hashlib.sha256(recorded).hexdigest()
    other = tmp_path / "other.jsonl"
    other.write_bytes(recorded.replace(b"the", b"The", 1))
    changed = {**config, "model": str(other), "out": None, "report": None}
    assert callmark.run(changed).header.model_fingerprint != report["header"]["model_fingerprint"]


def test_a41_a42_seed_and_temperature_stand_in_results_and_report(demo):
    _, report, lines = demo
    for decoding in (report["header"]["decoding"], *(line["decoding"] for line in lines)):
        assert (decoding["seed"], decoding["temperature"]) == (7, 0.25)


def test_a65_a66_what_the_gates_were_judged_with_stands_in_the_header(demo):
    _, report, _ = demo
    assert report["header"]["min_eligible_for_gates"] == 12
    assert report["header"]["fail_on_fingerprint_mismatch"] is True


@pytest.mark.parametrize("sample_id", ["a", "straße-01", "0"])
def test_a79_a81_a_shard_is_the_first_eight_bytes_little_endian(sample_id):
    head = hashlib.sha256(sample_id.encode()).digest()[:8]
    assert (
        callmark.shard_of(sample_id, 7) == sum(byte << 8 * at for at, byte in enumerate(head)) % 7
    )


def test_a23_a25_the_old_modules_lead_to_the_new_ones():
    from eval.scoring import metrics, scorer
    from eval.tool_broker import broker

    assert broker.ToolBroker is callmark.ToolBroker
    assert scorer.score_item is callmark.score_item
    assert callable(metrics.measures)


def test_the_public_names_are_these():
    assert sorted(set(callmark.__all__) - {"__version__"}) == [
        "Comparison", "DryRun", "Report", "Result", "ToolBroker", "Validation", "call_format", "check_privacy", "compare",
        "dataset_sha256", "extract_spans", "ground", "importer", "merge", "parse_tool_calls", "read_results", "redact_pii",
        "registry_sha256", "render_prompt", "report", "run", "runner", "sample_id_of", "score_item", "scorer",
        "shard_of", "statements", "summarize_results", "tool_use_fidelity", "validate_arguments",
        "validate_sharding", "verify_dataset",
    ]  # fmt: skip
    assert all(
        callable(getattr(callmark, name)) for name in callmark.__all__ if name != "__version__"
    )


def test_every_promise_has_its_tests_on_the_page_and_every_code_its_promise():
    page = PAGE.read_text("utf-8")
    assert fill(page, find_tests(ROOT / "tests")) == page, "run `python -m dev.promises`"


def test_a_code_that_nobody_explains_and_a_promise_that_nobody_holds_are_named():
    page = "- **a1** Bytes are equal.\n  `test_a1_old`\n- **a2** Gates are listed.\n"
    held = {"a1": ["test_a1_new"], "a2": ["test_a2_x", "test_a2_y"]}
    assert fill(page, held).splitlines()[1::2] == ["  `test_a1_new`", "  `test_a2_x` · `test_a2_y`"]
    with pytest.raises(OutOfStep, match="a2: no test holds it"):
        fill(page, {"a1": ["test_a1_new"]})
    with pytest.raises(OutOfStep, match="what does f9 of test_f9_z promise"):
        fill(page, {**held, "f9": ["test_f9_z"]})


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("test_a43_fifteen", ["a43"]),
        ("test_a35_a62_bytes", ["a35", "a62"]),
        ("test_a57_a63_to_a66_a139_header", ["a57", "a63", "a64", "a65", "a66", "a139"]),
        ("test_a_sample", []),
        ("test_b2b_shop", []),
    ],
)
def test_a_name_says_which_promises_it_holds(name, codes):
    assert list(codes_of(name)) == codes
