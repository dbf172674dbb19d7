"""Faults planted into runs of the shipped dataset: recovery is measured as it was planted."""

import json

import pytest

from callmark import run
from callmark.cli import main
from callmark.errors import FingerprintMismatch, UsageError
from callmark.resources import demo_paths
from callmark.run.faults import FaultRule
from callmark.store.files import encode_result, read_results

KINDS = ("fail", "timeout", "error", "empty", "truncated")
FAILED = ("fail", "timeout", "error")
DEMO = demo_paths()
ANSWERS = [json.loads(line) for line in DEMO.answers.read_text("utf-8").splitlines()]


def retrying(answer: dict, times: int = 1) -> dict:
    """The same answer of a model that makes the first call of each tool again, `times` times."""
    trace, turns, known = [], [], set()
    for number, turn in enumerate(answer["turns"], start=1):
        turns.append(turn)
        calls = [call for call in answer["tool_trace"] if call["turn"] == number]
        trace += [{**call, "turn": len(turns)} for call in calls]
        first = [call for call in calls if call["name"] not in known]
        struck = list({call["name"]: call for call in reversed(first)}.values())
        known |= {call["name"] for call in calls}
        for _ in range(times if struck else 0):
            turns.append({"start": turn["end"], "end": turn["end"]})
            trace += [{**call, "turn": len(turns)} for call in struck]
    return {**answer, "tool_trace": trace, "turns": turns}


@pytest.fixture
def play(tmp_path):
    return lambda answers, *rules, **settings: play_in(tmp_path, answers, *rules, **settings)


def play_in(folder, answers, *rules, **settings):
    (folder / "answers.jsonl").write_text("\n".join(map(json.dumps, answers)), "utf-8")
    if rules:
        (folder / "faults.yaml").write_text(json.dumps({"faults": rules}), "utf-8")
        settings = {"faults": str(folder / "faults.yaml"), **settings}
    given = {
        "in": str(DEMO.dataset),
        "fixtures": str(DEMO.fixtures),
        "model": str(folder / "answers.jsonl"),
        "out": str(folder / "out.jsonl"),
        **settings,
    }
    report = run(given)
    return {one.sample_id: one for one in read_results(folder / "out.jsonl")}, report


def rate(report):
    metric = report.metrics["error_recovery_rate"]
    return metric.numerator, metric.denominator


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The shipped dataset without faults; with each kind in a fifth of its samples, of a model that
    tries again, and of one that goes on."""
    plain, _ = play_in(tmp_path_factory.mktemp("plain"), ANSWERS)
    rules = [
        {"tool": "*", "kind": kind, "samples": sorted(plain)[at :: len(KINDS)]}
        for at, kind in enumerate(KINDS)
    ]
    patient = play_in(tmp_path_factory.mktemp("patient"), list(map(retrying, ANSWERS)), *rules)
    hasty = play_in(tmp_path_factory.mktemp("hasty"), ANSWERS, *rules)
    return plain, patient, hasty


def expecting(plain):
    return {
        name
        for name, one in plain.items()
        if one.metadata.get("call_sequence") and one.scores.kind not in ("control", "clarify")
    }


@pytest.fixture(scope="module")
def flawless(runs):
    """Samples without a recovery of their own whose calls the tools all answered."""
    plain = runs[0]
    return {
        name
        for name in expecting(plain)
        if plain[name].scores.recovered is None
        and all(entry.served for entry in plain[name].tool_trace)
    }


@pytest.mark.slow
def test_every_sample_that_expects_a_call_has_its_fault(runs):
    plain, (again, patient), (gone_on, hasty) = runs
    for results, report in ((again, patient), (gone_on, hasty)):
        planted = {name for name, one in results.items() if isinstance(one.faults, tuple)}
        assert planted == expecting(plain)
        assert rate(report)[1] == len(planted)


@pytest.mark.parametrize("kind", KINDS)
def test_a_model_that_tries_again_recovers_and_one_that_goes_on_does_not(runs, flawless, kind):
    _, (again, _), (gone_on, _) = runs
    names = {name for name in flawless if again[name].faults[0].kind == kind}
    assert len(names) > 10
    for name in names:
        assert again[name].scores.recovered is True, name
        assert gone_on[name].scores.recovered is False, name
        struck = [entry for entry in gone_on[name].tool_trace if entry.is_faulty]
        assert {entry.served_by for entry in struck} == {f"fault:{kind}"}
        assert {entry.status for entry in struck} == {"error" if kind in FAILED else "ok"}


def test_trying_again_costs_no_other_score(runs, flawless):
    """What went wrong by our doing counts once, and the answer has the same evidence."""
    plain, (again, _), _ = runs
    for name in flawless:
        ours, theirs = again[name].scores, plain[name].scores
        assert ours.call_f1 == theirs.call_f1, name
        assert ours.multi_call_parity_ok == theirs.multi_call_parity_ok, name
        assert ours.json_args_valid == theirs.json_args_valid, name
        assert ours.lax == theirs.lax, name


def test_going_on_without_an_answer_is_not_grounded(runs, flawless):
    _, _, (gone_on, _) = runs
    for one in map(gone_on.get, flawless):
        is_alone = len(one.tool_trace) == 1 and isinstance(one.prompt, str)
        if is_alone and one.faults[0].kind != "truncated":
            assert one.scores.lax.grounded == 0, one.sample_id


ONE = "search-rope-01"
ANSWER = next(one for one in ANSWERS if one["sample_id"] == ONE)


def test_what_the_model_is_told(play):
    rules = {
        "fail": {"ok": False, "error": "the tool failed and gave no answer"},
        "timeout": {"ok": False, "error": "timeout: the tool did not answer in time"},
        "error": {"ok": False, "error": "internal error"},
        "empty": {},
    }
    for kind, told in rules.items():
        results, _ = play([ANSWER], {"tool": "web.search", "kind": kind}, only=[ONE])
        assert results[ONE].tool_trace[0].result == told
    whole = json.dumps(play([ANSWER], only=[ONE])[0][ONE].tool_trace[0].result)
    cut, _ = play([ANSWER], {"tool": "web_search", "kind": "truncated", "keep": 9}, only=[ONE])
    assert len(cut[ONE].tool_trace[0].result) == 9 < len(whole)
    own = {"tool": "web.search", "kind": "error", "result": "HTTP 503"}
    told, _ = play([ANSWER], own, only=[ONE])
    assert (told[ONE].tool_trace[0].result, told[ONE].tool_trace[0].status) == ("HTTP 503", "error")


def test_two_faults_in_a_row_need_two_further_tries(play):
    rules = [{"tool": "web.search", "kind": "timeout", "call": call} for call in (1, 2)]
    once, _ = play([retrying(ANSWER)], *rules, only=[ONE])
    twice, _ = play([retrying(ANSWER, 2)], *rules, only=[ONE])
    assert (once[ONE].scores.recovered, twice[ONE].scores.recovered) == (False, True)
    assert twice[ONE].scores.call_f1 == 1.0


def test_a_fault_in_wait_for_a_call_that_is_never_made_is_no_recovery(play):
    silent = {**ANSWER, "tool_trace": [], "turns": ANSWER["turns"][1:]}
    results, report = play([silent], {"tool": "web.search", "kind": "fail"}, only=[ONE])
    assert results[ONE].scores.recovered is False
    assert rate(report) == (0, 1)


def test_an_honest_end_is_reported_apart(play):
    text = "The search timed out, I could not find it."
    honest = {**ANSWER, "model_output": text, "turns": [{"start": 0, "end": 0}]}
    honest["turns"].append({"start": 0, "end": len(text)})
    results, _ = play([honest], {"tool": "web.search", "kind": "timeout"}, only=[ONE])
    assert results[ONE].scores.recovered is False
    assert results[ONE].scores.gave_up_honestly is True


def test_scoring_the_lines_again_gives_the_same(runs, tmp_path, capsys):
    _, _, (gone_on, _) = runs
    path = tmp_path / "lines.jsonl"
    path.write_bytes(b"".join(map(encode_result, gone_on.values())))
    assert main(["score", str(path), "--out", str(tmp_path / "again.jsonl"), "--quiet"]) in (0, 1)
    again = {one.sample_id: one for one in read_results(tmp_path / "again.jsonl")}
    assert {name: one.scores for name, one in again.items()} == {
        name: one.scores for name, one in gone_on.items()
    }


def test_faults_are_part_of_the_fingerprints_and_pin_a_resumption(play):
    def mark(*rules):
        return play([ANSWER], *rules, only=[ONE])[1].header.faults_sha256

    timeout = {"tool": "web.search", "kind": "timeout"}
    assert mark() is None
    assert mark(timeout) == mark({"tool": "web_search", "kind": "timeout", "call": 1})
    assert (
        len({mark(timeout), mark({**timeout, "call": 2}), mark({**timeout, "kind": "fail"})}) == 3
    )
    _, report = play([ANSWER], timeout, only=[ONE, "search-rope-02"])
    assert not report.complete
    with pytest.raises(FingerprintMismatch, match="faults_sha256"):
        play([ANSWER], {**timeout, "call": 2}, only=[ONE, "search-rope-02"], resume=True)


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        ({"tool": "web.serch", "kind": "fail"}, r"faults\[0\]\.tool: \"web.serch\" is not a tool"),
        ({"tool": "web.search", "kind": "brake"}, r"faults\[0\]\.kind: must be fail"),
        ({"tool": "web.search", "fault": "fail"}, r"faults\[0\]\.fault: .*kind"),
        ({"kind": "fail"}, r"faults\[0\]\.tool: is missing"),
        ({"tool": "web.search", "kind": "fail", "call": 0}, r"faults\[0\]\.call"),
        ({"tool": "web.search", "kind": "fail", "keep": 3}, r"keep: is for the kind truncated"),
        ({"tool": "web.search", "kind": "fail", "result": 3}, r"result: is for the kind error"),
        ({"tool": "web.search", "kind": "fail", "samples": ["x"]}, r"has no sample x"),
        (3, r"faults\[0\]: must be an object"),
    ],
)
def test_a_rule_that_plants_nothing_is_refused(play, rule, said):
    with pytest.raises(UsageError, match=said):
        play([ANSWER], rule)


def test_one_call_has_one_fault(play):
    rules = [{"tool": name, "kind": "fail"} for name in ("web.search", "web_search")]
    with pytest.raises(UsageError, match=r"faults\[1\]: another entry is about the same call"):
        play([ANSWER], *rules)


def test_where_nobody_could_try_again_faults_are_refused(play):
    rule = {"tool": "web.search", "kind": "fail"}
    with pytest.raises(UsageError, match="--max-turns 1"):
        play([ANSWER], rule, max_turns=1)
    recorded = {**ANSWER, "tool_trace": [{**ANSWER["tool_trace"][0], "result": {"hits": []}}]}
    with pytest.raises(UsageError, match=f"sample {ONE}: the recording holds what web.search"):
        play([recorded], rule, only=[ONE])


@pytest.mark.parametrize("text", ["", "[]", "faults: []", "faults: {}", "faults: [a]\nmore: 1"])
def test_a_file_that_is_none_is_refused(play, tmp_path, text):
    (tmp_path / "odd.yaml").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"odd\.yaml"):
        play([ANSWER], faults=str(tmp_path / "odd.yaml"))


def test_a_date_is_no_result(play, tmp_path):
    text = "faults: [{tool: web.search, kind: error, result: {day: 2024-05-06}}]"
    (tmp_path / "date.yaml").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"faults\[0\]\.result: must be JSON: put a date into quo"):
        play([ANSWER], faults=str(tmp_path / "date.yaml"))


MCP = {"content": [{"type": "text", "text": "12 boats"}], "isError": False}


@pytest.mark.parametrize(
    ("kind", "result", "instead"),
    [
        ("empty", {"boats": 12}, {}),
        ("empty", [12], []),
        ("empty", "12 boats", ""),
        ("empty", 12, None),
        ("empty", MCP, {"content": [], "isError": False}),
        ("truncated", MCP, "12 b"),
        ("truncated", "12 boats", "12 b"),
        ("truncated", "", ""),
        ("truncated", [12, 34], "[12"),
    ],
)
def test_a_spoilt_result_keeps_the_shape_of_the_whole_one(kind, result, instead):
    assert FaultRule(tool="*", kind=kind).spoil(result) == instead
