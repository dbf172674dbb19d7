"""How turns end, what is said to results, and what the saved tokenizer shows: before statistics."""

import json
import shutil
from pathlib import Path

import pytest
from tests.probing import (
    BARE,
    GOOD,
    KINDS,
    OTHER,
    TALK,
    cases,
    probed_model,
    steering_adapter,
    write_cases,
)
from tests.unit.probe.asking import GOOD as CALL
from tests.unit.probe.asking import case
from tests.unit.reports.test_probe_markdown import report_of

from callmark import tool_use_fidelity
from callmark.cli import main
from callmark.probe.fidelity import fidelity
from callmark.probe.records import WrittenAnswer
from callmark.probe.spec import FidelitySpec, ToolUseCase
from callmark.reports.layout import plain_text
from callmark.reports.probe import probe_blocks

A, B = KINDS
MARKED = f"<tool_call>\n{CALL}\n</tool_call>"


def checks_of(base: str, tuned: str, n: int = 4) -> dict:
    found = tool_use_fidelity([case()] * n, [base] * n, [tuned] * n)
    return {
        one["name"]: (one["base"], one["tuned"], one["n"]) for one in found["evidence"]["checks"]
    }


@pytest.mark.parametrize(
    ("tuned", "runs_on", "repeats"),
    [
        (MARKED, 0, 0),
        (f"{MARKED}<|im_end|>\n", 0, 0),
        (f"I will look. {MARKED}", 0, 0),
        (f"{MARKED}\nuser\nAnd now?", 4, 0),
        (f"{CALL} and so on", 4, 0),
        (f"{MARKED}\n{MARKED}\n{MARKED}", 0, 4),
        (f"{MARKED}\n{MARKED.replace('rope', 'sail')}", 0, 0),
    ],
)
def test_what_follows_a_call_is_counted(tuned, runs_on, repeats):
    assert checks_of(MARKED, tuned) == {"runs_on": (0, runs_on, 4), "repeats": (0, repeats, 4)}


def test_a_turn_that_never_ends_is_counted_where_it_is_known():
    asked = ToolUseCase(prompt="p", tool_spec={"name": "t"}, gold_tool_name="t")
    text = '{"name": "t", "arguments": {}}'
    ended, endless = WrittenAnswer(text, True), WrittenAnswer(text, False)
    found = fidelity(FidelitySpec(cases=(asked,) * 2), [ended] * 2, [ended, endless])
    assert found.evidence is not None
    assert next((one.name, one.tuned) for one in found.evidence.checks) == ("never_ends", 1)


def test_the_checks_stand_before_the_statistics():
    found = tool_use_fidelity([case()] * 4, [MARKED] * 4, [f"{MARKED} and more"] * 4)
    shown = plain_text(probe_blocks(report_of(found, ["x"] * 4)))
    assert "text after the call" in shown
    assert shown.index("text after the call") < shown.index("signal ")


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    return probed_model(tmp_path_factory.mktemp("turns") / "base", GOOD, GOOD)


def probed(base: Path, folder: Path, adapter: Path) -> dict:
    asked = write_cases(folder / "cases.jsonl", cases(12, 12))
    words = ["--base", base, "--adapter", adapter, "--cases", asked, "--nulls", 0, "--quiet"]
    main(["probe", *map(str, words), "--json", str(folder / "p.json")])
    report = json.loads((folder / "p.json").read_text("utf-8"))
    evidence = report["results"][0]["result"]["evidence"]
    return {one["name"]: one for one in evidence["checks"]}


def test_a_model_that_says_nothing_to_results_is_found(base, tmp_path):
    """The base talks when a result came; the adapter makes the same call again."""
    adapter = steering_adapter(tmp_path / "again", base, {A: OTHER, "<|t|>": OTHER})
    found = probed(base, tmp_path, adapter)["ignores_results"]
    assert (found["base"], found["tuned"], found["n"]) == (0, 8, 8)
    harmless = steering_adapter(tmp_path / "harmless", base, {A: OTHER, "<|t|>": TALK})
    assert probed(base, tmp_path, harmless)["ignores_results"]["tuned"] == 0


@pytest.mark.parametrize(("schema", "code", "word"), [("full", 0, "warn"), ("minimal", 1, "fail")])
def test_f22_an_adapter_that_writes_calls_in_another_format(
    base, tmp_path, capsys, schema, code, word
):
    """Every call stays valid; who parses only what the base wrote sees none of them."""
    adapter = steering_adapter(tmp_path / "bare", base, {A: BARE, B: BARE})
    asked = write_cases(tmp_path / "cases.jsonl", cases(12, 12))
    words = ["--base", base, "--adapter", adapter, "--cases", asked, "--nulls", 0]
    assert main(["probe", *map(str, words), "--schema", schema]) == code
    shown = capsys.readouterr().out
    assert (
        f"format_kept {word}: format changed in 24 of 24: base writes hermes (24), tuned json (24)"
        in " ".join(shown.split())  # lines are folded
    )
    assert shown.startswith("FORMAT CHANGED" if code else "NO DROP SEEN")


def test_a_tokenizer_that_shows_other_prompts_is_found(base, tmp_path):
    adapter = steering_adapter(tmp_path / "adapter", base, {A: OTHER})
    assert "renders_otherwise" not in probed(base, tmp_path, adapter)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (base / name).is_file():
            shutil.copy(base / name, adapter)
    assert probed(base, tmp_path, adapter)["renders_otherwise"]["tuned"] == 0
    template = adapter / "chat_template.jinja"
    template.write_text("{% for m in messages %}{{ m.content }}{% endfor %}", "utf-8")
    found = probed(base, tmp_path, adapter)["renders_otherwise"]
    assert (found["tuned"], found["n"]) == (24, 24)
    assert "shows tools by a fallback block" in found["note"]
    template.write_text("{{ raise_exception('no') }}", "utf-8")
    assert probed(base, tmp_path, adapter)["renders_otherwise"]["tuned"] == 24
