"""What both views wrote is kept, failures are grouped by reason, and every case says what it is."""

import json

import pytest
from tests.unit.probe.asking import GOOD, PROSE, SEARCH, both, call, case, probe
from tests.unit.reports.test_probe_markdown import report_of

from callmark import tool_use_fidelity
from callmark.cli import main
from callmark.probe.records import is_probe_report, read_probe_report
from callmark.probe.run import report_bytes
from callmark.reports.html.probe import probe_head
from callmark.reports.layout import diff_words, plain_text
from callmark.reports.probe import next_blocks, probe_blocks

UNCLOSED = GOOD.removesuffix("}")


def causes(*tuned: str, base: str = GOOD, cases: list | None = None, **spec) -> dict:
    asked = cases or [case()] * len(tuned)
    found = tool_use_fidelity(asked, [base] * len(tuned), list(tuned), spec=spec)
    return {one["cause"]: one["count"] for one in found["evidence"]["failures"]}


def test_f51_both_raw_texts_are_in_the_result():
    row = both(GOOD, f"Let me see. {UNCLOSED}")["evidence"]["cases"][0]
    assert row["base"]["text"] == GOOD
    assert row["tuned"]["text"] == f"Let me see. {UNCLOSED}"
    assert row["standing"] == "lost"


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (f"<tool_call>{UNCLOSED}</tool_call>", "JSON not closed"),
        (f"<tool_call>{UNCLOSED}\n", "JSON not closed"),
        ('<tool_call>{"name": "search_web", "arguments": {"query": "ro', "JSON not closed"),
        ('<tool_call>{"name": "search_web", "arguments": {query}}</tool_call>', "not JSON: Expecting property name enclosed in double quotes"),
        (PROSE, "no call, prose instead"),
        ("", "no call, and no text either"),
        (f"<think>{GOOD}</think>", "the call stands in the thinking only"),
        ("<think>hm</think>", "nothing but thinking"),
        (call(), 'arguments do not fit: "query" is a required property'),
        (call(query=7), "argument /query does not fit"),
        (call("find", what=1), "tool that no case offers (find)"),
        (call("find", query="x"), "tool that no case offers (find)"),
    ],
)  # fmt: skip
def test_f51_a_failure_has_a_reason_that_others_share(text, cause):
    assert causes(text) == {cause: 1}


def test_f51_failures_are_counted_by_reason_the_most_frequent_first():
    other = case({**SEARCH, "name": "read_file"}, gold="read_file")
    tuned = [UNCLOSED] * 2 + [PROSE] * 3 + [call("read_file", query="x"), call(query="x")]
    tuned = [f"<tool_call>{one}</tool_call>" if one == UNCLOSED else one for one in tuned]
    found = causes(*tuned, cases=[case()] * 6 + [other])
    assert list(found.items()) == [
        ("no call, prose instead", 3),
        ("JSON not closed", 2),
        ("tool of another case (read_file)", 1),
        ("tool of another case (search_web)", 1),
    ]


def test_f51_minimal_says_which_other_format_a_call_has():
    text = 'Sure: [search_web(query="rope")]'
    assert causes(text, schema="minimal") == {"a call in another format (pythonic)": 1}


def test_f51_a_case_that_fails_in_both_views_is_marked_as_that():
    found = probe(20, 18, 16)
    standings = [one["standing"] for one in found["evidence"]["cases"]]
    assert standings == ["kept"] * 16 + ["lost"] * 2 + ["both_fail"] * 2
    assert found["evidence"]["num_both_fail"] == 2
    assert found["evidence"]["failures"][0] == {
        "cause": "no call, prose instead", "count": 4, "num_lost": 2, "num_both_fail": 2,
        "cases": [17, 18, 19, 20],
    }  # fmt: skip
    shown = plain_text(probe_blocks(report_of(found, [f"case {n}" for n in range(20)])))
    assert "4 × no call, prose instead, 2 of them with no valid call before either" in shown
    assert "2 cases wrong in both views" in shown


def test_f51_arguments_that_changed_are_listed_with_both_values():
    tuned = call(query="sail", max_results=3)
    found = both(call(query="rope"), tuned)
    assert found["evidence"]["cases"][0]["changes"] == [
        {"path": "/max_results", "tuned": 3},
        {"path": "/query", "base": "rope", "tuned": "sail"},
    ]
    shown = plain_text(probe_blocks(report_of(found, ["case"])))
    assert '/max_results: (not given) → 3; /query: "rope" → "sail"' in shown


def test_f51_every_case_worth_a_look_has_its_number_and_the_command_that_shows_it(tmp_path):
    found = probe(20, 18, 16)
    report = report_of(found, [f"name {n}" for n in range(1, 21)])
    shown = plain_text(probe_blocks(report))
    assert "case 17, name 17: " in shown
    kept, page = tmp_path / "probe.json", tmp_path / "probe.html"
    kept.write_bytes(report_bytes(report))
    told = plain_text(next_blocks(report, kept, page))
    assert f"{page}: both answers to every case" in told
    asked = next(text for text in told.splitlines() if "callmark show" in text).split()
    assert asked == ["callmark", "show", str(kept), "17", "18"]
    assert main(asked[1:]) == 0
    assert "--json FILE" in plain_text(next_blocks(report, None, None))
    is_open = report.results[0].result.decision == "inconclusive"
    assert ("callmark probe --plan 10" in told) == is_open


def test_a_probe_that_cannot_decide_says_how_many_cases_would():
    found = report_of(probe(5, 5, 4), [f"case {n}" for n in range(5)])
    assert found.results[0].result.decision == "inconclusive"
    assert "callmark probe --plan 10" in plain_text(next_blocks(found, None, None))


def test_what_the_answer_says_is_not_said_again():
    report = report_of(both(PROSE, PROSE), ["x"])
    shown = plain_text(probe_blocks(report))
    assert shown.count("nothing was preserved and nothing lost") == 1
    assert "fail by the point rule\n" in shown


def test_f51_show_has_both_texts_side_by_side(tmp_path, capsys):
    path = tmp_path / "probe.json"
    found = tool_use_fidelity([case()] * 2, [GOOD] * 2, [GOOD, UNCLOSED])
    report = report_of(found, ["first", "second"])
    path.write_bytes(report_bytes(report))
    assert is_probe_report(path.read_bytes())
    assert read_probe_report(path.read_bytes()) == report
    assert main(["show", str(path)]) == 0
    assert "2  lost" in capsys.readouterr().out
    for wanted in ("2", "second"):
        assert main(["show", str(path), wanted]) == 0
        shown = capsys.readouterr().out
        assert "case 2  lost: valid before the fine-tune, not after" in shown
        assert GOOD.removesuffix("}") + "[-}-]" in shown
        assert f"  {UNCLOSED}\n" in shown


def test_show_says_of_a_case_without_a_call_that_none_was_asked_for(tmp_path, capsys):
    path = tmp_path / "probe.json"
    asked = [case(), *[case(gold=None)] * 2]
    found = tool_use_fidelity(asked, [GOOD, PROSE, GOOD], [GOOD, GOOD, PROSE])
    report = report_of(found, ["call", "silent", "gained"])
    # They take no part in the decision, so they are no cases that it calls lost or gained.
    told = plain_text(probe_blocks(report))
    assert "decision: 0 of 1 cases lost, 0 gained" in told
    assert "\n1 case with a call that nobody asked for\n  case 2, silent: " in told
    assert "\n1 case without the call that nobody asked for\n  case 3, gained: " in told
    assert "case lost\n" not in told
    path.write_bytes(report_bytes(report))
    assert main(["show", str(path), "silent", "gained"]) == 0
    lost, gained = capsys.readouterr().out.split("─" * 72)
    assert "case 2  lost: a call after the fine-tune, where none was asked for\n" in lost
    assert "\nbase  no call, and none was asked for\n" in lost
    assert "\ntuned  a call that nobody asked for\n" in lost
    assert "case 3  gained: no call after the fine-tune, and none was asked for\n" in gained


def test_a_call_of_another_tool_is_told_as_that_and_not_by_the_schema(tmp_path, capsys):
    path = tmp_path / "probe.json"
    wrong = call("read_file", path="x")
    report = report_of(tool_use_fidelity([case()] * 2, [GOOD, wrong], [wrong] * 2), ["a", "b"])
    path.write_bytes(report_bytes(report))
    shown = plain_text(probe_blocks(report))
    for number, name in ((1, "a"), (2, "b")):
        assert f"case {number}, {name}: calls read_file instead of search_web\n" in shown
    assert main(["show", str(path), "1"]) == 0
    said = capsys.readouterr().out
    assert "\ntuned  no valid call: calls read_file instead of search_web\n" in said


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (["3"], "3: is no case of this probe: give its number, 1 to 2"),
        (["twice"], "twice: is the name of 2 cases: give its number, 1 to 2"),
    ],
)
def test_a_case_that_is_not_there_is_named(tmp_path, capsys, words, what):
    path = tmp_path / "probe.json"
    path.write_bytes(report_bytes(report_of(probe(2, 2, 1), ["twice", "twice"])))
    assert main(["show", str(path), *words]) == 2
    assert what in capsys.readouterr().err


def test_a_report_of_another_version_is_refused_in_one_sentence(tmp_path, capsys):
    path = tmp_path / "probe.json"
    path.write_text(json.dumps({"probe_version": "0", "results": 5}))
    assert main(["show", str(path), "1"]) == 2
    assert "is no probe report of this version" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("left", "right"),
    [("", ""), ("a b c", "a x c"), ("a", ""), (" a  b", "a b"), ("x" * 10, "y z " * 500_000)],
)
def test_the_pieces_of_a_diff_are_the_texts_again(left, right):
    diff = diff_words(left, right)
    assert "".join(piece.text for piece in diff.left) == left
    assert "".join(piece.text for piece in diff.right) == right


def test_a_diff_marks_the_words_that_differ():
    diff = diff_words("call search now", "call find now")
    assert [piece.text for piece in diff.left if piece.differs] == ["search"]
    assert [piece.text for piece in diff.right if piece.differs] == ["find"]


def test_a_call_of_another_tool_that_the_prompt_showed_is_told_as_that():
    """It was there to be called: other than one that nobody offered."""
    beside = case(other_tools=[{"name": "find"}, {"type": "function", "function": {"name": "get"}}])
    found = causes(
        call("find", query="x"), call("get", query="x"), call("xy", query="x"), cases=[beside] * 3
    )
    assert found == {
        "another tool that was offered (find)": 1,
        "another tool that was offered (get)": 1,
        "tool that no case offers (xy)": 1,
    }


@pytest.mark.parametrize(
    ("tuned", "likeness"),
    [
        (GOOD, "same_text"),
        (f"Let me see.\n{GOOD}", "same_call"),
        (f"<tool_call>{GOOD}</tool_call>", "same_call"),
        (call(query="sail"), "other_call"),
        (UNCLOSED, "other_call"),
        (PROSE, "other_call"),
    ],
)
def test_what_two_answers_share(tuned, likeness):
    found = both(GOOD, tuned)["evidence"]
    assert found["cases"][0]["likeness"] == likeness
    assert (found["num_same_text"], found["num_same_call"]) == {
        "same_text": (1, 1),
        "same_call": (0, 1),
        "other_call": (0, 0),
    }[likeness]


def test_the_page_shows_a_case_of_every_failure_without_a_click():
    report = report_of(
        tool_use_fidelity([case()] * 3, [GOOD] * 3, [PROSE, PROSE, UNCLOSED]), ["a", "b", "c"]
    )
    tables = {one.title: one for one in probe_head(report, "p").tables}
    rows = [[cell.text for cell in row] for row in tables["For example"].rows]
    assert [row[0] for row in rows] == [
        row[0].text for row in tables["Why calls of the tuned model fail"].rows
    ]
    assert [GOOD, PROSE] in [row[2:] for row in rows]
