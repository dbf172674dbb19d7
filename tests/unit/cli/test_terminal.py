"""The report on a terminal: verdict first, nothing open called a pass, no rounding that lies."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from callmark.records.report import (
    Counts,
    Errors,
    ErrorTrial,
    Failing,
    GateOutcome,
    GroundingCounts,
    Metric,
    Misses,
    PrivacyCounts,
    Report,
    ReportHeader,
    Timing,
    ToolDelta,
)
from callmark.reports.layout import plain_text, round_text
from callmark.reports.terminal import report_blocks, table_blocks, verdict_line
from callmark.summary.failing import ListedFlag, StatementList

COUNTS = Counts(
    samples=20, scored=20, eligible=14, controls=3, negative_controls=2, clarify=1, unclassified=0,
    unresolved=1, unscored={}, trials=20, trials_error=0, trials_missing=0, gave_up_honestly=0,
    recall_by_presence=14, extractors={"claims": 20}, stops={"answer": 20},
)  # fmt: skip


def outcome(name: str, status: str, **more: Any) -> GateOutcome:
    plain: dict[str, Any] = {
        "value": 0.95, "op": ">=", "bound": 0.9, "policy": "hard_fail", "n": 14,
        "source": "default", "loosened": False,
    }  # fmt: skip
    return GateOutcome(name=name, status=status, **{**plain, **more})


def report(**more: Any) -> Report:
    plain: dict[str, Any] = {
        "header": ReportHeader(), "verdict": "pass", "verdict_reason": "no gate failed",
        "gates_ok": True, "complete": True, "partial": False, "summary": {}, "metrics": {},
        "metrics_miss_free": {}, "counts": COUNTS, "gates": (), "failing": {},
        "integration_span_count_histogram": {}, "per_tool_deltas": {}, "locales": {}, "slices": {},
        "repeat": None, "misses": Misses(0, {}, ()), "errors": Errors(0, ()),
        "privacy": PrivacyCounts({}, {}, 0, 0), "warnings": (), "provenance": {},
        "grounding": GroundingCounts(4, 3, 2, {"supported": 5, "unsupported": 1}),
        "timing": Timing(),
    }  # fmt: skip
    return Report(**{**plain, **more})


def shown(record: Report, *, verbose: bool = False, width: int | None = None, **more: Any) -> str:
    tables = table_blocks(record) if verbose else None
    return plain_text(report_blocks(record, tables=tables, **more), width)


def test_a_pass_says_how_much_is_open():
    gates = (outcome("a", "pass"), outcome("b", "inconclusive"), outcome("c", "warn"))
    said = "PASS  1 gate passed, 1 warning, 1 inconclusive\n"
    assert shown(report(gates=gates)).startswith(said)


@pytest.mark.parametrize("verdict", ["fail", "inconclusive", "incomplete", "empty"])
def test_the_verdict_comes_first(verdict):
    record = report(verdict=verdict, verdict_reason="because")
    for text in (shown(record), shown(record, verbose=True)):
        assert text.splitlines()[0] == f"{verdict.upper()}  because"
    assert "20 samples (14 need a tool), 20 trials" in shown(record)
    said = "20 samples: 14 eligible, 3 controls, 2 negative controls, 1 clarify"
    assert said in shown(record, verbose=True)


def test_f56_the_verdict_names_gates_by_their_labels():
    record = report(verdict="fail", verdict_reason="failed: privacy_ok_rate, call_f1_macro")
    assert shown(record).startswith("FAIL  failed: privacy, right calls\n")


def test_grounding_is_shown_whatever_was_expected():
    text = shown(report(), verbose=True)
    assert "3 of 4 spans grounded (2 strictly); values in them: 5 supported, 1 unsupported" in text


def test_gates_are_listed_by_urgency_and_open_ones_in_capitals():
    gates = (
        outcome("good_gate", "pass"),
        outcome("absent_gate", "n/a", value=None, n=0, reason="the dataset has no such sample"),
        outcome("warned_gate", "warn"),
        outcome("open_gate", "inconclusive", value=None, reason="3 samples, 15 are needed"),
        outcome("failed_gate", "fail", value=0.5, reason="0.5 is not >= 0.9"),
    )
    text = shown(report(gates=gates), verbose=True)
    table = text[text.index("  status") :]
    for part, names in {
        text: ("failed_gate", "open_gate", "warned_gate", "good_gate"),
        table: ("failed_gate", "open_gate", "warned_gate", "good_gate"),
    }.items():
        places = [part.index(name) for name in names]
        assert places == sorted(places)
    assert "INCONCLUSIVE  open_gate" in table
    assert "INCONCLUSIVE: not judged, so not passed\n  open_gate: 3 samples, 15 are needed" in text
    assert "n/a (the dataset has no such sample): absent_gate" in table


def test_who_falls_short_of_an_open_gate_is_named_with_that_gate():
    gates = (
        outcome("call_f1_macro", "inconclusive", value=None, reason="9 samples behind it"),
        outcome("flagged_sample_rate", "inconclusive", value=None, reason="11 samples behind it"),
    )
    failing = {"flagged_sample_rate": Failing(1, ("talk-3",))}
    text = shown(report(gates=gates, failing=failing), results="results.jsonl")
    assert "  for answers with a wrong statement:\n    callmark show results.jsonl talk-3\n" in text


def test_f57_what_failed_comes_first_with_three_samples_and_the_command():
    ids = tuple(f"id-{n}" for n in range(9))
    gates = (outcome("call_f1_macro", "fail"), outcome("privacy_ok_rate", "pass"))
    record = report(
        verdict="fail",
        verdict_reason="failed: call_f1_macro",
        gates=gates,
        failing={"call_f1_macro": Failing(9, ids)},
    )
    text = shown(record, results="runs/it's/results.jsonl")
    lines = text.splitlines()
    assert lines[2:5] == [
        "failed",
        "  right calls: 0.950, wanted at least 0.9 (14 samples)",
        "    How well the calls match the expected ones, by tool and arguments (mean F1).",
    ]
    command = "callmark show 'runs/it'\"'\"'s/results.jsonl' id-0 id-1 id-2"
    assert lines[6:8] == [f"    {command}", "    and 6 more"]
    assert text.index("20 samples") > text.index(command)
    assert "privacy" not in text  # what passed is no news
    assert "    look at: id-0, id-1, id-2 and 6 more" in shown(record)


@pytest.mark.parametrize(("f1", "is_told"), [(1.0, True), (0.9, True), (0.2, False)])
def test_a_lift_that_copies_took_away_names_the_copies(f1, is_told):
    gates = (outcome("grounding_lift", "fail"),)
    metrics = {"integration_f1_macro_lax": Metric(value=f1, n=14)}
    text = shown(report(verdict="fail", gates=gates, metrics=metrics))
    assert ("leave copies out (callmark dataset import --dedupe)." in text) is is_told
    other = (outcome("call_f1_macro", "fail"),)
    assert "--dedupe" not in shown(report(verdict="fail", gates=other, metrics=metrics))


def test_what_comes_next_can_be_copied_however_long_it_is():
    short = "callmark init my-eval: a small evaluation to make your own"
    asked = f"callmark dataset accept logs.jsonl --all --reject {'x' * 32}"
    steps = [short, f"{asked}: right, but for what no model could repeat", asked]
    text = shown(report(), next_steps=steps, width=80)
    broken = asked.replace("--reject ", "--reject \\\n      ")
    assert text.endswith(
        f"next\n  {short}\n  right, but for what no model could repeat:\n    {broken}\n"
        f"  {broken.replace('      ', '    ')}\n"
    )


def test_f57_samples_behind_open_gates_are_named_once():
    gates = (outcome("call_f1_macro", "inconclusive", reason="3 samples, 15 are needed"),)
    record = report(
        verdict="inconclusive", gates=gates, failing={"call_f1_macro": Failing(1, ("a",))}
    )
    assert "    callmark show r.jsonl a\n" in shown(record, results="r.jsonl")


def test_a_gate_shows_value_bound_n_interval_policy_and_where_it_comes_from():
    metric = Metric(value=0.95, n=14, ci_95=(0.81, 0.99), method="wilson")
    gate = outcome("g", "pass", source="flag", loosened=True, policy="count_based_misses",
                   misses=1, allowed=2)  # fmt: skip
    text = shown(report(gates=(gate,), metrics={"g": metric}), verbose=True)
    rows = text.splitlines()
    at = next(at for at, row in enumerate(rows) if row.startswith("  pass"))
    for part in ("0.950", "at least 0.9", "14"):
        assert part in rows[at]
    for part in (
        "g; 95 % interval 0.810 to 0.990;",
        "fails when more than 2 of 14 fall short and the mean is below 0.9; 1 fall short;",
        "from flag LOOSENED",
    ):
        assert part in rows[at + 1]
    assert "more than 2" not in shown(report(gates=(gate,), metrics={"g": metric}))


def test_the_budget_is_shown_with_the_gates():
    budget = outcome("perf_budget_sec_per_100", "warn", value=3.0, op="<=", bound=2.0)
    record = report(timing=Timing(perf_budget=budget))
    assert "scoring time: 3.000, wanted at most 2" in shown(record)
    assert "perf_budget_sec_per_100" in shown(record, verbose=True)


def test_what_to_look_at_is_named():
    record = report(
        failing={"call_f1_macro": Failing(9, tuple(f"id-{n}" for n in range(9)))},
        misses=Misses(2, {"web.search": 2}, ()),
        errors=Errors(1, (ErrorTrial("id-3", 0, "no recorded answer"),)),
        per_tool_deltas={"web.search": ToolDelta(0.9, 0.8, 0.1, 12)},
        warnings=("no header line",),
    )
    given = {"misses": ["f.jsonl: no entry\n  nearest: x"], "next_steps": ["callmark show"]}
    text = shown(record, verbose=True, **given)
    assert "right calls (9): id-0, id-1, id-2, id-3, id-4, id-5 and 3 more" in text
    assert "  web.search   0.900" in text
    for either in (text, shown(record, **given)):
        assert "calls without a fixture (2): web.search 2" in either
        assert "    nearest: x" in either
        assert "id-3 trial 0: no recorded answer" in either
        assert "warnings\n  no header line" in either
        assert either.rstrip().endswith("callmark show")


def test_f57_a_command_is_broken_so_that_a_shell_reads_it_as_one():
    gates = (outcome("call_f1_macro", "fail"),)
    ids = tuple(f"a-rather-long-sample-id-{n}" for n in range(3))
    record = report(verdict="fail", gates=gates, failing={"call_f1_macro": Failing(3, ids)})
    text = shown(record, results="runs/latest/results.jsonl", width=80)
    assert max(map(len, text.splitlines())) <= 80
    start = text.index("callmark show")
    words = text[start : text.index("\n\n", start)].replace("\\\n", "").split()
    assert words == ["callmark", "show", "runs/latest/results.jsonl", *ids]


def test_hostile_ids_and_errors_do_not_reach_the_terminal():
    record = report(
        gates=(outcome("g", "fail"),),
        failing={"g": Failing(1, ("\x1b[2Jid\u202e",))},
        errors=Errors(1, (ErrorTrial("\x9b1m", 0, "\x1b]0;x\x07"),)),
        misses=Misses(1, {"\x1b[31m": 1}, ()),
    )
    for text in (shown(record, results="\x1b[2Jr"), shown(record, verbose=True)):
        assert not set(text) & set("\x1b\x9b\x07\u202e")


@pytest.mark.parametrize(
    ("value", "bound", "text"),
    [
        (0.95, 0.9, "0.950"),
        (0.89996, 0.9, "0.89996"),
        (0.99999, 1, "0.99999"),
        (1.0, 1, "1.000"),
        (0.0, 0, "0.000"),
        (0.0001, 0.05, "0.0001"),
        (3, 0, "3"),
        (None, 0.9, "-"),
    ],
)
def test_d44_rounding_never_hides_a_shortfall(value, bound, text):
    assert round_text(value, bound) == text


@given(st.floats(0, 2, allow_nan=False), st.sampled_from([0.0, 0.05, 0.9, 0.95, 0.98, 1.0]))
def test_d44_a_shown_value_equals_a_bound_only_if_it_is_equal(value, bound):
    assert (float(round_text(value, bound)) == bound) == (value == bound)


def test_the_record_is_what_is_written_to_disk():
    again = msgspec.json.decode(msgspec.json.encode(report()), type=Report)
    assert shown(again) == shown(report())


@pytest.mark.parametrize(
    ("changed", "said"),
    [(0, "20 of 20 observed samples"), (1, "19 of 20 observed samples"), (None, "")],
)
def test_what_became_of_observed_samples_is_one_line(changed, said):
    rate = Metric(value=None if changed is None else 1 - changed / 20, n=0 if not said else 20)
    failing = {"unchanged_rate": Failing(1, ("s0",))} if changed else {}
    record = report(metrics={"unchanged_rate": rate}, failing=failing)
    for text in (shown(record), shown(record, verbose=True)):
        found = [row for row in text.splitlines() if "observed sample" in row]
        assert found == ([f"  unchanged: {said}"] if said else [])


def test_a_pass_on_observed_samples_takes_ten_lines():
    flag = ListedFlag(
        sample_id="s", trial=0, text="7", label="unsupported", rule="value", tier="advisory",
        because="says 7", call=None, path=None,
    )  # fmt: skip
    listed = StatementList(20, 3, {"supported": 2, "unsupported": 1}, (), (flag,))
    counts = msgspec.structs.replace(COUNTS, unresolved=0)
    record = report(metrics={"unchanged_rate": Metric(value=1.0, n=20)}, counts=counts)
    steps = ("a page", "a report", "callmark dataset accept s.jsonl --all: it is right")
    text = shown(record, statements=listed, results="r.jsonl", next_steps=steps)
    assert len(text.splitlines()) == 10
    assert "  unchanged: 20 of 20 observed samples\nstatements: 2 backed by results" in text


def test_why_nothing_could_be_judged_is_said_once_with_the_flag_to_give():
    few = "9 samples behind it, 15 are needed (min_eligible_for_gates)"
    why = f"no gate on right calls or true statements could be judged: {few}"
    gates = (outcome("call_f1_macro", "inconclusive", reason=few),)
    record = report(verdict="inconclusive", verdict_reason=why, gates=gates)
    told = "9 samples behind it, 15 are needed (--min-eligible-for-gates)"
    first, *others = shown(record).splitlines()
    assert first == "INCONCLUSIVE  no gate on right calls or true statements could be judged"
    assert [row for row in others if "needed" in row] == [f"  right calls: {told}"]
    alone = plain_text([verdict_line(record)])
    assert alone.endswith(f"could be judged: {told}\n")
