"""Whether the fine-tune keeps the format of the calls: the first thing that the probe is for."""

import pytest
from tests.unit.probe.asking import GOOD, PROSE, case
from tests.unit.reports.test_probe_markdown import report_of

from callmark import tool_use_fidelity
from callmark.cli import main
from callmark.errors import BadInput
from callmark.probe.fidelity import fidelity
from callmark.probe.records import WrittenAnswer, exit_code
from callmark.probe.spec import FidelitySpec, ToolUseCase
from callmark.reports.html.probe import probe_head
from callmark.reports.layout import plain_text
from callmark.reports.probe import probe_blocks

PYTHONIC = '[search_web(query="rope")]'
HERMES = f"<tool_call>\n{GOOD}\n</tool_call>"
FENCED = f"```json\n{GOOD}\n```"


def probed(base: str, tuned: str, n: int = 20, **spec) -> dict:
    return tool_use_fidelity([case()] * n, [base] * n, [tuned] * n, spec=spec)


def test_f22_another_format_is_told_though_every_call_is_valid():
    found = probed(GOOD, PYTHONIC)
    assert (found["base_value"], found["ft_value"], found["format_kept"]) == (1.0, 1.0, "warn")
    evidence = found["evidence"]
    assert (evidence["num_format_changed"], evidence["num_format_pairs"]) == (20, 20)
    assert (evidence["formats_base"], evidence["formats_ft"]) == ({"json": 20}, {"pythonic": 20})
    assert "format changed in 20 of 20" in found["message"]
    shown = plain_text(probe_blocks(report_of(found, ["x"] * 20)))
    told = (
        "format_kept warn: format changed in 20 of 20: base writes json (20), tuned pythonic (20)"
    )
    assert told in shown
    assert "calls in another format         1.000          20 of 20 pairs: warn" in shown


def test_f22_in_minimal_it_fails():
    found = probed(HERMES, GOOD, schema="minimal")
    assert (found["verdict"], found["format_kept"]) == ("fail", "fail")
    assert found["decision"] == "no_drop_seen"
    shown = plain_text(probe_blocks(report_of(found, ["x"] * 20)))
    assert shown.startswith("FORMAT CHANGED  ")


def test_f22_what_fails_ends_with_exit_code_1():
    spec = FidelitySpec(
        schema="minimal",
        cases=(ToolUseCase(prompt="p", tool_spec={"name": "t"}, gold_tool_name="t"),) * 20,
    )
    call = '{"name": "t", "arguments": {}}'
    assert exit_code(fidelity(spec, [call] * 20, [call] * 20)) == 0
    marked = f"<tool_call>{call}</tool_call>"
    assert exit_code(fidelity(spec, [marked] * 20, [call] * 20)) == 1


@pytest.mark.parametrize("schema", ["full", "minimal"])
def test_f22_a_fence_is_no_other_format(schema):
    found = probed(GOOD, FENCED, schema=schema)
    assert (found["verdict"], found["format_kept"]) == ("pass", "pass")
    assert found["evidence"]["num_format_changed"] == 0


def test_f22_only_pairs_that_are_valid_in_both_views_count():
    tuned = [PYTHONIC] * 5 + [PROSE] * 15
    found = tool_use_fidelity([case()] * 20, [GOOD] * 10 + [PROSE] * 10, tuned)
    assert found["evidence"]["num_format_pairs"] == 5
    none = probed(GOOD, PROSE)
    assert (none["format_kept"], none["evidence"]["num_format_pairs"]) == (None, 0)


@pytest.mark.parametrize(("changed", "word"), [(1, "pass"), (2, "warn")])
def test_the_bound_is_95_percent_of_the_pairs(changed, word):
    tuned = [PYTHONIC] * changed + [GOOD] * (20 - changed)
    assert tool_use_fidelity([case()] * 20, [GOOD] * 20, tuned)["format_kept"] == word


@pytest.mark.parametrize(
    ("expected", "word"), [("pythonic", "pass"), ("lfm2", "pass"), ("hermes", "fail")]
)
def test_who_expects_another_format_says_which(expected, word):
    assert probed(GOOD, PYTHONIC, expect_format=expected)["format_kept"] == word


def test_a_format_that_nobody_knows_is_named(capsys):
    with pytest.raises(BadInput, match=r"spec\.expect_format: 'yaml' is no call format; known: "):
        probed(GOOD, GOOD, expect_format="yaml")
    words = ["--base", "b", "--adapter", "a", "--expect-format", "yaml", "--cases", "/dev/null"]
    assert main(["probe", *words]) == 2


def test_calls_that_come_apart_from_the_text_have_no_format():
    spec = FidelitySpec(
        cases=(ToolUseCase(prompt="p", tool_spec={"name": "t"}, gold_tool_name="t"),)
    )
    text = '<tool_call>{"name": "t", "arguments": {}}</tool_call>'
    structured = [WrittenAnswer(text, True, structured=True)]
    found = fidelity(spec, structured, ['{"name": "t", "arguments": {}}'])
    assert found.format_kept is None
    assert found.evidence is not None
    assert found.evidence.num_format_pairs == 0


def test_the_page_draws_formats_where_they_differ():
    head = probe_head(report_of(probed(GOOD, PYTHONIC), ["x"] * 20), "a probe")
    (plot,) = (one for one in head.plots if one.id.startswith("formats"))
    assert [(bar.label, bar.values) for bar in plot.bars] == [
        ("json", (20.0, 0.0)),
        ("pythonic", (0.0, 20.0)),
    ]
    alike = probe_head(report_of(probed(GOOD, GOOD), ["x"] * 20), "a probe").plots
    assert [plot.id for plot in alike] == ["cases-0", "tools-0"]
