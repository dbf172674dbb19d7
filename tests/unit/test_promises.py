"""Promises of the harness that no single part holds by itself."""

import hashlib
import json

import pytest

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
    report = callmark.run(config)
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
    assert (
        callmark.run(changed)["header"]["model_fingerprint"]
        != report["header"]["model_fingerprint"]
    )


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
        "ToolBroker", "call_format", "check_privacy", "compare", "dataset_sha256", "extract_spans", "ground",
        "importer", "merge", "parse_tool_calls", "redact_pii", "registry_sha256", "render_prompt", "report", "run",
        "runner", "sample_id_of", "score_item", "scorer", "shard_of", "summarize_results", "tool_use_fidelity", "validate_arguments",
        "validate_sharding", "verify_dataset",
    ]  # fmt: skip
    assert all(
        callable(getattr(callmark, name)) for name in callmark.__all__ if name != "__version__"
    )
