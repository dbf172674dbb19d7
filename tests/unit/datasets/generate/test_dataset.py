"""What a generated dataset holds: strata, kinds, languages, and fixtures that answer every call."""

import json
import re
from collections import Counter

import pytest

from callmark.broker.broker import ToolBroker
from callmark.datasets.generate import item_of, samples_of
from callmark.datasets.generate.lookups import LONG_BYTES
from callmark.datasets.reader import open_dataset
from callmark.records.samples import expectation_of
from callmark.records.seams import Hit
from callmark.records.trace import is_error_result
from callmark.run.conclude import run
from callmark.scorers.privacy import check_privacy, known_texts


@pytest.fixture(scope="module")
def items():
    """Six hundred items as the dataset has them."""
    return [item_of(made) for made in samples_of(600, 4)]


def of_kind(items, kind):
    return [one for one in items if expectation_of(one["metadata"]).kind == kind]


@pytest.mark.slow
def test_no_two_prompts_and_no_two_ids_are_alike_in_five_thousand():
    made = [item_of(one) for one in samples_of(5000, 9)]
    assert len({json.dumps(one["prompt"]) for one in made}) == 5000
    assert len({one["metadata"]["sample_id"] for one in made}) == 5000


def test_the_reader_takes_every_item_and_the_header_pins_what_is_there(bench_of):
    setup = bench_of(1).setup
    assert setup.pinned == dict.fromkeys(
        ("dataset_sha256", "tool_registry_sha256", "fixtures_sha256"), "equal"
    )
    header = setup.dataset.header
    assert (header.seed, header.span_extractor, header.integration_span_cap) == (1, "marker", 3)
    assert setup.dataset.facts.samples == 400
    assert setup.warnings == ()


def test_every_expected_call_is_answered_in_its_order(bench_of):
    """A retry gets its error first; nothing else does."""
    bench = bench_of(1)
    broker = ToolBroker(bench.files["fixtures"], bench.setup.offers.registry)
    with open_dataset(bench.files["dataset"]) as dataset:
        for sample in dataset.samples():
            session = broker.session(sample.sample_id)
            errors = 0
            for call in sample.expectation.calls:
                answer = session.answer(call.name, call.arguments)
                assert isinstance(answer, Hit), sample.sample_id
                assert broker.registry.validate(call.name, call.arguments) == ()
                errors += is_error_result(answer.result)
            assert errors == sample.expectation.retry


@pytest.mark.slow
def test_good_answers_pass_every_gate(bench_of, tmp_path):
    outcome = run({**bench_of(1).files, "out": str(tmp_path / "results.jsonl")})
    assert outcome.exit_code == 0
    assert outcome.report.verdict == "pass"
    others = {gate.name: gate.status for gate in outcome.report.gates if gate.status != "pass"}
    # A generator knows more than checks could say, and its results are small.
    unasked = ("checks_ok_rate", "copy_ratio_ok_rate", "unchanged_rate")
    assert others == dict.fromkeys(unasked, "n/a")
    assert all(gate.n >= 15 for gate in outcome.report.gates if gate.status == "pass")
    assert outcome.report.metrics["chance_f1"].value == 0
    assert outcome.report.counts.unresolved == outcome.report.counts.unclassified == 0


def test_kinds_and_slices(items):
    kinds = Counter(expectation_of(one["metadata"]).kind for one in items)
    assert kinds["control"] >= 60
    assert min(kinds["negative_control"], kinds["clarify"]) >= 15
    behaviours = Counter(one["metadata"]["expected_behaviour"] for one in items)
    assert min(behaviours[name] for name in ("retry", "no_tool", "decline")) >= 15
    slices = Counter(name for one in items for name in expectation_of(one["metadata"]).slices)
    assert slices["long_context"] >= 30
    assert slices["teacher_heavy"] >= 15


def test_long_contexts_are_long(items):
    for one in items:
        is_long = one["metadata"].get("long_context", False)
        size = len(json.dumps(one["prompt"], ensure_ascii=False).encode())
        assert is_long == (size >= LONG_BYTES >= 24_000)


def test_probes_of_seven_languages(items):
    probes = Counter(
        one["metadata"]["locale"].split("-")[0]
        if "pt" not in one["metadata"]["locale"]
        else "pt-BR"
        for one in items
        if one["metadata"].get("locale_probe")
    )
    assert set(probes) == {"de", "es", "fr", "hi", "ar", "ja", "pt-BR"}
    assert min(probes["de"], probes["es"], probes["fr"]) >= 15
    assert {"en", "de", "es", "fr", "pt", "hi", "ja", "ar"} <= {
        one["metadata"]["language"] for one in items
    }


def test_adversarial_requests(items):
    found = Counter(
        (one["metadata"]["adversarial"]["type"], one["metadata"]["adversarial"]["expected"])
        for one in items
        if "adversarial" in one["metadata"]
    )
    assert set(found) == {
        ("range", "clamp_to_maximum"),
        ("malformed", "correct_and_call"),
        ("ambiguity", "ask_clarify"),
    }


def test_calls_side_by_side_and_in_a_row():
    shapes = {
        tuple(len(turn.attempts) for turn in made.draft.answer.turns) for made in samples_of(600, 4)
    }
    assert {(), (1,), (2,), (3,), (1, 1), (1, 1, 1)} <= shapes


def test_negative_controls_get_nothing_or_a_decoy():
    negative = [one for one in samples_of(600, 4) if one.recipe.kind == "negative_control"]
    decoys = [one for one in negative if "decoy_values" in one.draft.metadata]
    assert min(len(decoys), len(negative) - len(decoys)) >= 10
    for made in negative:
        found = json.dumps(made.draft.calls[0].result)
        number = made.draft.claim.values[0].plain
        assert (number in found) == (made in decoys)


def test_metadata_that_is_there_sometimes(items):
    eligible = of_kind(items, "eligible")
    with_tools = [one for one in eligible if "tools" in one["metadata"]]
    assert len(eligible) > len(with_tools) > len(eligible) // 10
    for one in with_tools:
        needed = {call["name"] for call in one["metadata"]["call_sequence"]}
        assert needed < set(one["metadata"]["tools"])
    assert 0.5 < sum("required_facts" in one["metadata"] for one in eligible) / len(eligible) < 1
    assert all(one["teacher_text"] for one in items)


def test_nothing_personal_and_no_foreign_link():
    """Neither in prompts, nor in results, nor in answers."""
    for made in samples_of(400, 6):
        draft = made.draft
        calls = (*draft.calls, *draft.tempting)
        results = list(known_texts([[call.arguments, call.result] for call in calls]))
        prompt = list(known_texts([draft.prompt]))
        for text in (*prompt, *results, *draft.answer.texts):
            found = check_privacy(text)
            assert found["ok"], (made.sample_id, found)
            for host in re.findall(r"https?:/+([\w.-]+)", text):
                assert host in ("example.com", "example.org", "example.net")
