"""`callmark show`: statements with label, rule and tier, and every flag in one sentence."""

import json

import pytest
from tests.stated_run import FLAGS, recorded_lines, write_run

from callmark.cli import main, show
from callmark.errors import UsageError
from callmark.run.rescore import score_file
from callmark.store.files import read_results
from callmark.summary.failing import flags_of, list_statements

ORDER = {"order": "W5166363", "items": [{"price": 47.84}, {"price": 52.03}], "status": "sent"}
LATER = {"price": 99.5}


def call(number, name):
    function = {"name": name, "arguments": "{}"}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": number, "function": function}],
    }


def answer(text):
    return {"role": "assistant", "content": text}


def tool(number, result):
    return {"role": "tool", "tool_call_id": number, "content": json.dumps(result)}


@pytest.fixture
def results(tmp_path):
    messages = [
        {"role": "user", "content": "What of my 3 orders?"},
        call("a", "look"),
        tool("a", ORDER),
        answer(
            "Of 3 orders, W5166363 costs 47.84. Both cost 99.87. It weighs 99.4 kg; see W5166364."
        ),
        {"role": "user", "content": "And the other?"},
        call("b", "look_again"),
        tool("b", LATER),
        answer("It costs 99.5."),
    ]
    path, out = tmp_path / "talks.jsonl", tmp_path / "results.jsonl"
    path.write_text(json.dumps({"sample_id": "s1", "messages": messages}) + "\n")
    score_file(path, {"out": str(out), "span_extractor": "claims"})
    return out


@pytest.fixture(scope="module")
def stated(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("stated"))


def test_the_nearest_evidence_came_before_the_sentence(results):
    """99.5 is nearer, but it was served later."""
    flags = {flag.text: flag for flag in flags_of(next(read_results(results)))}
    weight, order = flags["99.4"], flags["W5166364"]
    assert weight.label == "unsupported"
    assert weight.because == (
        "says “99.4”; no result has it; nearest: 52.03 at call 0 /items/1/price"
    )
    assert (order.label, order.path) == ("altered", "/order")


def test_each_kind_of_mistake_has_its_flag(stated):
    listed = list_statements(read_results(stated))
    assert {flag.sample_id: (flag.label, flag.rule) for flag in listed.flags} == FLAGS
    assert [flag.tier for flag in listed.flags] == [*["firm"] * 2, *["advisory"] * 3]
    assert listed.by_label["unchecked"] == 2
    assert sum(listed.by_label.values()) == listed.statements == 17
    assert sum(row.statements for row in listed.by_rule) == 17


def test_a_flag_names_call_path_value_and_what_was_expected(stated, capsys):
    assert show.main([str(stated), "other-record"]) == 0
    said = capsys.readouterr().out
    assert "HAT009 costs ${?257?}" in said
    assert (
        "  advisory  wrong record: says “257”; call 0 /flights/0/price has 120; "
        "257 is price of /flights/1/price (rule: named record)"
    ) in said
    assert "statements: 1 supported, 1 wrong record" in said
    assert show.main([str(stated), "yes-for-no"]) == 0
    said = capsys.readouterr().out
    assert "[+You paid 1840.5, and {?bags?} are included+]." in said
    assert "  advisory  contradicted: says “bags”; call 0 /bags_included has false" in said


def test_what_is_unchecked_is_shown_and_counts_for_neither_side(stated, capsys):
    assert show.main([str(stated), "nothing-checked"]) == 0
    said = capsys.readouterr().out
    assert "statements: 2 unchecked" in said
    assert "unchecked (small number)" in said
    assert "  There are 2 `lovely` rooms.\n" in said


@pytest.mark.parametrize("option", ["--statements", "--claims"])
def test_the_terminal_shows_counts_and_sentences(stated, option, capsys):
    assert show.main([str(stated), option]) == 0
    said = capsys.readouterr().out
    assert "17 statements in the answers of 7 trials" in said
    assert "  wrong record   named record         advisory           1" in said
    assert "1 altered, 2 unchecked" in said
    assert said.index("firm flags: they count (2)") < said.index("advisory flags: shown (3)")
    assert "  sum, trial 0  miscalculated: says “399”; it comes to 377 (rule: equation)" in said


def test_json_holds_the_same(stated, capsys):
    assert show.main([str(stated), "shifted", "--statements", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["by_label"] == {"supported": 1, "unsupported": 1}
    (flag,) = said["flags"]
    assert (flag["text"], flag["rule"], flag["tier"]) == ("1840.6", "misread", "firm")


def test_without_an_id_show_lists_the_samples(stated, results, capsys):
    assert show.main([str(stated)]) == 0
    said = capsys.readouterr().out
    lines = said.splitlines()
    assert lines[0] == "2 of 7 samples failed"
    assert lines[2].split() == ["sample", "calls", "statements", "flagged", "unchecked"]
    # What failed comes first, each with its reasons.
    assert [one.split()[0] for one in lines[3:7:2]] == ["shifted", "invented-id"]
    assert lines[4].startswith("    unsupported: says “1840.6”; call 0 /paid has 1840.5")
    assert lines[6].startswith("    altered: says “R7K2M8”; call 0 /reservation_id has")
    assert [one.split()[0] for one in lines[7:9]] == ["right", "other-record"]
    assert f"next: callmark show {stated} ID" in said
    with pytest.raises(UsageError, match="--json is for --statements"):
        show.main([str(results), "s1", "--json"])


def test_a_flag_is_seen_over_what_else_stands_there():
    """A long text that is grounded does not hide a wrong number in it."""
    from callmark.reports.show import _Mark, _visible_marks

    marks = [
        _Mark(4, 0, 20, "supported"),
        _Mark(0, 5, 8, "unsupported", "{!", "!}"),
        _Mark(1, 6, 10, "warn", "{?", "?}"),
    ]
    seen = [(mark.start, mark.end, mark.style) for mark in _visible_marks(iter(marks))]
    assert seen == [
        (0, 5, "supported"),
        (5, 8, "unsupported"),
        (8, 10, "warn"),
        (10, 20, "supported"),
    ]


def test_junit_and_markdown_list_the_firm_flags_of_what_failed(stated, tmp_path):
    junit, markdown = tmp_path / "j.xml", tmp_path / "m.md"
    assert main(["report", str(stated), "-o", str(junit), "-o", str(markdown)]) == 0
    sentence = "altered: says “R7K2M8”; call 0 /reservation_id has "
    assert sentence in junit.read_text("utf-8")
    assert f"`invented-id`: `{sentence}" in markdown.read_text("utf-8")
    # An advisory flag fails nothing.
    assert "bags_included" not in junit.read_text("utf-8")
    assert "257 is price of" not in junit.read_text("utf-8")


def test_the_end_of_a_command_shows_counts_and_the_first_flags(stated, capsys):
    lines = stated.with_name("answers.jsonl")
    main(["score", str(lines), "--out", str(stated.with_name("again.jsonl"))])
    said = capsys.readouterr().out
    at = said.index("statements: 10 supported, 1 unsupported, 1 wrong record, ")
    first = said.index("\n  firm ", at)
    assert first < said.index("\n  advisory ", at)
    assert said.startswith("\n  firm      shifted: unsupported: says “1840.6”; ", first)
    assert said.index("firm      invented-id") < said.index("\n  advisory  ")


def test_redacted_lines_say_the_same_without_what_is_personal(tmp_path):
    """The whole way: labels and counts stay, sentences name no phone."""
    lines = recorded_lines()[:3]
    for line in lines:
        line["model_output"] += " Call me at (415) 555-2671, or 415-555-2672, which costs $777.25."
    open_run = write_run(folder(tmp_path, "open"), lines=lines)
    shut_run = write_run(folder(tmp_path, "shut"), "--redact-pii", lines=lines)
    opened, shut = (list_statements(read_results(path)) for path in (open_run, shut_run))
    assert opened.by_rule == shut.by_rule
    assert [flag.label for flag in opened.flags] == [flag.label for flag in shut.flags]
    assert any("555" in flag.because for flag in opened.flags)
    assert "555" not in shut_run.read_text("utf-8")
    for result in read_results(shut_run):
        answer = result.model_output.encode()
        for one in result.scores.statements:
            if one.is_flag:
                assert one.because.startswith(f"says “{answer[one.start : one.end].decode()}”")


def folder(parent, name):
    made = parent / name
    made.mkdir()
    return made
