"""The dataset's own gates: texts, cells, controls, long contexts and stated spans."""

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.integration.verified import (
    Dataset,
    call,
    control,
    good,
    items,
    outcome_of,
    status_of,
    write_lines,
)

from callmark.grounding.spans import extract_spans
from callmark.records.report import GateOutcome
from callmark.run.verify import combined_verdict

TEXTS = "dataset_teacher_texts"


@pytest.fixture
def dataset(tmp_path):
    return Dataset(tmp_path)


def test_an_item_that_cannot_be_verified_is_listed_and_keeps_the_dataset_from_passing(dataset):
    lines = items()
    lines[7]["teacher_text"] = None
    del lines[9]["teacher_text"]
    outcome = dataset.verify(lines)
    gate = outcome_of(outcome, TEXTS)
    assert (gate.status, gate.value, gate.n) == ("inconclusive", 38 / 40, 40)
    assert gate.reason == "2 of 40 items cannot be verified: s007, s009"
    assert outcome.report.failing[TEXTS].sample_ids == ("s007", "s009")
    assert [one.error for one in outcome.report.errors.first] == ["there is no teacher_text"] * 2
    assert (outcome.report.verdict, outcome.report.gates_ok) == ("inconclusive", None)
    assert outcome.report.verdict_reason == gate.reason
    assert outcome.exit_code == 5


def test_whoever_wants_to_do_without_some_texts_has_to_say_so(dataset):
    lines = items()
    lines[7]["teacher_text"] = None
    outcome = dataset.verify(lines, gates={TEXTS: {"bound": 0.9}})
    assert (status_of(outcome, TEXTS), outcome.report.verdict) == ("pass", "pass")
    assert outcome_of(outcome, TEXTS).loosened
    assert f"gate {TEXTS} is LOOSENED by flag" in outcome.report.warnings


def test_a_failure_is_not_hidden_by_what_could_not_be_verified(dataset):
    lines = items()
    lines[7]["teacher_text"] = None
    lines[4]["teacher_text"] = "Integration: 5"
    outcome = dataset.verify(lines)
    assert (outcome.report.verdict, outcome.exit_code) == ("fail", 1)


def test_f50_a_dataset_without_any_text_is_judged_by_what_it_expects(dataset):
    """An ordinary eval set has no answers: its calls and facts are checked, no answer is."""
    lines = [{**item, "teacher_text": None} for item in items(long=0)]
    lines[0]["metadata"]["required_facts"] = [1000]
    outcome = dataset.verify(lines, composition=False)
    report = outcome.report
    assert (report.verdict, outcome.exit_code) == ("pass", 0)
    assert report.verdict_reason == "passed: dataset_calls, dataset_facts"
    assert outcome_of(outcome, TEXTS).status == "n/a"
    assert outcome_of(outcome, "dataset_calls").n == 32
    assert outcome_of(outcome, "dataset_facts").n == 1
    judged = {one.name for one in report.gates if one.status != "n/a"}
    assert judged == {"dataset_calls", "dataset_facts"}
    assert not report.errors.count
    assert report.counts.samples == 40


def test_f50_quotas_are_judged_where_they_are_asked_for(dataset):
    """Forty items without a control or a long context: nobody said that there have to be any."""
    lines = [good(at) for at in range(40)]
    quotas = {"dataset_cells", "dataset_controls", "dataset_long_contexts"}
    ordinary = dataset.verify(lines, composition=False).report
    assert ordinary.verdict == "pass"
    assert not quotas & {one.name for one in ordinary.gates}
    assert dataset.verify(lines).report.verdict == "fail"
    assert dataset.verify(header={"composition": True}, lines=lines, composition=False).report.verdict == "fail"  # fmt: skip
    one = dataset.verify(lines, composition=False, gates={"dataset_controls": {"bound": 0.05}})
    assert status_of(one, "dataset_controls") == "fail"
    assert quotas & {gate.name for gate in one.report.gates} == {"dataset_controls"}


@pytest.mark.parametrize(
    ("metadata", "gate", "reason"),
    [
        (
            {"call_sequence": [{"name": "web.search", "arguments": {"query": 7}}]},
            "dataset_calls",
            's001: expected call web.search {"query":7} breaks its schema: /: "q" is a required property',
        ),
        (
            {"call_sequence": [{"name": "web.search", "arguments": {"q": "people of Atlantis"}}]},
            "dataset_calls",
            's001: expected call web.search {"q":"people of Atlantis"} has no fixture',
        ),
        (
            {"tools": ["web.open"]},
            "dataset_calls",
            "s001: expects a call of 'web.search', which it is not offered",
        ),
        (
            {"required_facts": [1007, 1008]},
            "dataset_facts",
            "s001: required fact 1008 is in no result of the expected calls",
        ),
    ],
    ids=["schema", "fixture", "tool", "fact"],
)
@pytest.mark.parametrize("has_text", [True, False])
def test_f50_an_expectation_that_no_model_could_meet_fails(
    dataset, metadata, gate, reason, has_text
):
    lines = [good(at) for at in range(40)]
    lines[1] = good(1, metadata=metadata)
    lines = lines if has_text else [{**item, "teacher_text": None} for item in lines]
    outcome = dataset.verify(lines, composition=False)
    found = outcome_of(outcome, gate)
    assert (found.status, outcome.report.verdict, outcome.exit_code) == ("fail", "fail", 1)
    assert found.reason.startswith(reason)
    assert outcome.report.failing[gate].sample_ids == ("s001",)


def test_f50_all_problems_are_named_where_there_are_several(dataset):
    lines = [{**good(at, metadata={"required_facts": [5]}), "teacher_text": None} for at in (1, 2)]
    outcome = dataset.verify(lines, composition=False)
    gate = outcome_of(outcome, "dataset_facts")
    assert gate.reason.endswith("(and 1 more item)")
    told = [one for one in outcome.report.warnings if "required fact 5" in one]
    assert [one.split(":")[0] for one in told] == ["s001", "s002"]


def test_f50_what_cannot_be_checked_has_not_passed(dataset):
    """No fixtures, a call of which only the name is known, and nothing expected at all."""
    lines = [{**good(at), "teacher_text": None} for at in range(3)]
    open_calls = dataset.verify(lines, composition=False, fixtures=None)
    assert (open_calls.report.verdict, open_calls.exit_code) == ("inconclusive", 5)
    assert "no fixtures (--fixtures) answer their calls" in open_calls.report.verdict_reason
    lines[0]["metadata"] |= {"call_sequence": ["web.search"], "required_facts": [1000]}
    open_facts = dataset.verify(lines, composition=False)
    assert status_of(open_facts, "dataset_calls") == "pass"
    assert status_of(open_facts, "dataset_facts") == "inconclusive"
    assert open_facts.report.verdict == "inconclusive"
    nothing = dataset.verify([{"prompt": "Hello"}], composition=False)
    assert "nothing to verify" in nothing.report.verdict_reason


def test_f50_a_retry_is_asked_until_the_tool_answers(dataset):
    """The first answer is an error by design; the fact stands in the second."""
    error, again = {"ok": False, "error": "busy"}, {"ok": True, "count": 4321}
    scoped = {"name": "web.search", "key": call(1)["arguments"], "sample_id": "s001"}
    write_lines(
        dataset.fixtures / "retry.jsonl",
        [{**scoped, "seq": 1, "result": error}, {**scoped, "seq": 2, "result": again}],
    )
    line = good(1, metadata={"expected_behaviour": "retry", "required_facts": [4321]})
    outcome = dataset.verify([{**line, "teacher_text": None}], composition=False)
    assert outcome.report.verdict == "pass"


def test_an_empty_text_is_a_text_and_scores_nothing(dataset):
    outcome = dataset.verify([{**item, "teacher_text": ""} for item in items()])
    assert status_of(outcome, TEXTS) == "pass"
    assert outcome.report.verdict == "fail"


@pytest.mark.parametrize(("rare", "status"), [(1, "fail"), (2, "fail"), (3, "pass")])
def test_each_cell_that_occurs_has_three_items(dataset, rare, status):
    lines = items()
    for item in lines[:rare]:
        item["metadata"] |= {"scenario": "rare", "complexity": 3}
    outcome = dataset.verify(lines)
    gate = outcome_of(outcome, "dataset_cells")
    assert (gate.status, gate.value, gate.bound) == (status, min(rare, 37), 3)
    if status == "fail":
        assert gate.reason == f"rare × 3 has {rare}"
        assert outcome.report.failing["dataset_cells"].count == rare
        assert outcome.exit_code == 1


def test_a_cell_may_have_half_a_name_and_no_cell_is_no_gate(dataset):
    lines = items()
    lines[0]["metadata"]["complexity"] = None
    assert outcome_of(dataset.verify(lines), "dataset_cells").reason == "lookup × - has 1"
    for item in lines:
        item["metadata"] |= {"scenario": None, "complexity": None}
    assert status_of(dataset.verify(lines), "dataset_cells") == "n/a"


@pytest.mark.parametrize(("controls", "status"), [(0, "fail"), (3, "fail"), (4, "pass")])
def test_a_tenth_are_controls(dataset, controls, status):
    lines = [control(at) if at < controls else good(at) for at in range(40)]
    outcome = dataset.verify(lines)
    gate = outcome_of(outcome, "dataset_controls")
    assert (gate.status, gate.value) == (status, controls / 40)
    metric = outcome.report.metrics["dataset_controls"]
    assert (metric.numerator, metric.denominator) == (controls, 40)


@pytest.mark.parametrize(
    ("size", "long", "status"),
    [(39, 0, "n/a"), (40, 0, "fail"), (40, 1, "fail"), (40, 2, "pass")],
)
def test_a_twentieth_are_long_contexts_from_40_items_on(dataset, size, long, status):
    outcome = dataset.verify(items(size, long=long))
    assert status_of(outcome, "dataset_long_contexts") == status
    assert not any("long contexts" in warning for warning in outcome.report.warnings)


def test_a_long_context_that_is_short_is_reported(dataset):
    lines = items()
    lines[1]["prompt"] = [
        {"role": "user", "content": [{"type": "text", "text": "x" * 23_999}, {"type": "image"}]}
    ]
    warning = "1 of 2 items that call themselves long contexts have a prompt of fewer than 24000 bytes: s001"  # fmt: skip
    assert warning in dataset.verify(lines).report.warnings
    lines[1]["prompt"][0]["content"][0]["text"] += "é"
    assert warning not in dataset.verify(lines).report.warnings


def test_a_text_that_calls_otherwise_than_its_item_says_is_reported(dataset):
    lines = items()
    other = '<tool_call>{"name": "web.search", "arguments": {"q": "%s"}}</tool_call>\nIt is 1014.'
    lines[2]["teacher_text"] = other % "weather"
    lines[3]["teacher_text"] = (other % " People of  CITY 3").replace("1014", "1021")
    warnings = dataset.verify(lines).report.warnings
    assert "1 items: teacher_text makes other calls than call_sequence says: s002" in warnings


def spans_item(text: str, metadata: dict, **changes) -> dict:
    return good(1, teacher_text=text, metadata=metadata, **changes)


def spans_gate(dataset, item):
    others = [at for at in range(40) if at != 1]
    rest = [control(at) if at % 5 == 4 else good(at) for at in others]
    return outcome_of(dataset.verify([item, *rest]), "dataset_spans")


TEXT = "Größe: ja.\nIntegration: In München wohnen 1007 Leute."
START = TEXT.encode().index(b"In M")
END = len(TEXT.encode()) - 1


def test_right_spans_stay_open_without_a_tokenizer(dataset):
    for spans in ([[START, END]], [{"start": START, "end": END}]):
        gate = spans_gate(dataset, spans_item(TEXT, {"integration_spans_bytes": spans}))
        assert (gate.status, gate.value, gate.n) == ("inconclusive", 1.0, 1)
        assert gate.reason.startswith("no tokenizer")


def test_no_stated_span_is_no_gate(dataset):
    assert status_of(dataset.verify(items()), "dataset_spans") == "n/a"


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([[START, END + 1]], "marker finds"),
        ([], "marker finds"),
        ([[START, END], [0, 2]], "marker finds"),
        ([[START, 999]], "is no piece of a text of"),
        ([[END, START]], "is no piece"),
        ([[3, 5]], "is no piece"),  # inside the ö
    ],
)
def test_wrong_spans_fail_with_their_reason(dataset, spans, reason):
    item = spans_item(TEXT, {"integration_spans_bytes": spans})
    gate = spans_gate(dataset, item)
    assert (gate.status, gate.value) == ("fail", 0.0)
    assert gate.reason.startswith("s001: integration_spans_bytes:")
    assert reason in gate.reason


def test_spans_count_in_the_text_as_the_item_wants_it_normalised(dataset):
    decomposed = unicodedata.normalize("NFD", TEXT).replace("\n", "\r\n")
    metadata = {"integration_spans_bytes": [[START, END]], "text_norm": "NFC"}
    assert spans_gate(dataset, spans_item(decomposed, metadata)).value == 1.0


def test_spans_behind_a_call_that_is_cut_out_of_the_text(dataset):
    call_text = (
        '<tool_call>{"name": "web.search", "arguments": {"q": "people of city 1"}}</tool_call>'
    )
    text = f"I look it up.\n{call_text}\nIntegration: 1007 people."
    start = text.index("1007")
    arguments = text.index('{"q"'), text.index("}}") + 1
    metadata = {
        "integration_spans_bytes": [[start, len(text) - 1]],
        "json_args_spans_bytes": [list(arguments)],
    }
    assert spans_gate(dataset, spans_item(text, metadata)).value == 1.0
    metadata["integration_spans_bytes"] = [[start + 1, len(text) - 1]]
    assert spans_gate(dataset, spans_item(text, metadata)).value == 0.0


ARGUMENTS = 'Search: {"q":"people of city 1"}, not {"q":"x"}: 1007 people.'
RIGHT = [ARGUMENTS.index("{"), ARGUMENTS.index(", not")]
OTHER = [ARGUMENTS.rindex("{"), ARGUMENTS.index(": 1007")]


@pytest.mark.parametrize(
    ("spans", "reason"),
    [
        ([RIGHT], None),
        ([[RIGHT[0], RIGHT[1] - 1]], "not JSON"),
        ([RIGHT, RIGHT], "2 are given for 1 calls with arguments"),
        ([OTHER], "holds other arguments"),
    ],
)
def test_spans_of_arguments_hold_the_arguments(dataset, spans, reason):
    gate = spans_gate(dataset, spans_item(ARGUMENTS, {"json_args_spans_bytes": spans}))
    if reason is None:
        assert gate.status == "inconclusive"
    else:
        assert gate.status == "fail"
        assert reason in gate.reason


def test_spans_of_another_text_are_not_checked_and_never_pass(dataset):
    metadata = {"integration_spans_bytes": [[0, 5000]], "spans_target": "rendered"}
    gate = spans_gate(dataset, spans_item(TEXT, metadata))
    assert (gate.status, gate.value) == ("inconclusive", None)
    assert "the text of 1 items is not at hand" in gate.reason
    absent = spans_item(TEXT, {"integration_spans_bytes": [[0, 3]]})
    assert spans_gate(dataset, {**absent, "teacher_text": None}).status == "inconclusive"


def test_redaction_does_not_move_what_is_compared(dataset):
    text = "Ask a.b@corp.test.\nIntegration: 1007 people."
    spans = extract_spans(text)
    item = spans_item(text, {"integration_spans_bytes": spans})
    outcome = dataset.verify([item], redact_pii=True)
    assert outcome_of(outcome, "dataset_spans").value == 1.0


def test_what_is_written_can_be_redacted(dataset):
    lines = items()
    lines[0] |= {"prompt": "Write to a.b@corp.test", "teacher_text": "1000: a.b@corp.test"}
    out, report = dataset.folder / "v.jsonl", dataset.folder / "v.json"
    outcome = dataset.verify(lines, redact_pii=True, out=str(out), report=str(report))
    assert status_of(outcome, "privacy_ok_rate") == "fail"
    assert "a.b@corp.test" not in out.read_text() + report.read_text()


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.text("aé漢 ", max_size=6), st.integers(0, 99), st.sampled_from(".!。")),
        min_size=1,
        max_size=3,
    )
)
def test_the_extractors_own_spans_are_never_wrong(tmp_path_factory, pieces):
    """Whatever the text: spans that `extract_spans` gives are those that the verifier finds."""
    text = "\n".join(f"{word}\nIntegration: {number} {word}{end}" for word, number, end in pieces)
    made = Dataset(tmp_path_factory.mktemp("d"))
    item = spans_item(text, {"integration_spans_bytes": extract_spans(text)})
    outcome = made.verify([item])
    assert outcome_of(outcome, "dataset_spans").value == 1.0, text


def outcome(name: str, status, policy="hard_fail") -> GateOutcome:
    return GateOutcome(
        name=name, status=status, value=1.0, op=">=", bound=1.0, policy=policy, n=1,
        source="default", loosened=False, reason="why",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("verdict", "outcomes", "expected"),
    [
        ("pass", [], ("pass", "before")),
        ("pass", [outcome("a", "pass")], ("pass", "before, a")),
        ("pass", [outcome("a", "fail")], ("fail", "failed: a")),
        ("pass", [outcome("a", "warn", "warning_only")], ("pass", "before")),
        ("pass", [outcome("a", "inconclusive")], ("pass", "before")),
        ("pass", [outcome(TEXTS, "inconclusive")], ("inconclusive", "why")),
        ("fail", [outcome("a", "fail")], ("fail", "before, a")),
        ("fail", [outcome(TEXTS, "inconclusive")], ("fail", "before")),
        ("inconclusive", [outcome("a", "pass")], ("inconclusive", "before")),
        ("inconclusive", [outcome("a", "fail")], ("fail", "failed: a")),
        ("incomplete", [outcome("a", "fail")], ("incomplete", "before")),
    ],
)
def test_one_verdict_of_two_kinds_of_gates(verdict, outcomes, expected):
    assert combined_verdict(verdict, "before", outcomes) == expected


def test_calls_are_expected_with_their_alternatives(dataset):
    """`accept` and `optional` are for models; the teacher makes the call that stands there."""
    metadata = {"call_sequence": [{**call(1), "accept": {"/q": ["other"]}, "optional": ["q"]}]}
    [result] = dataset.results([good(1, metadata=metadata)])
    assert result["scores"]["call_f1"] == 1.0
    assert result["tool_trace"][0]["arguments"] == call(1)["arguments"]
