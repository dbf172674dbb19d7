"""The pages of a comparison and of a probe: both sides, and what flipped."""

import json

import msgspec
import pytest
from tests.pace import few

from callmark.cli import main
from callmark.probe.records import (
    CaseOutcome,
    Checkpoint,
    FidelityResult,
    ProbeEvidence,
    ProbeReport,
    ProbeResult,
    ViewAnswer,
    ViewCall,
)
from callmark.probe.run import judge_series
from callmark.reports.html.probe import write_probe_page
from callmark.resources import demo_paths


@pytest.fixture(scope="module")
def compare_page(tmp_path_factory, demo_page):
    """The demo run against one whose figures are wrong in every seventh answer."""
    folder, paths = tmp_path_factory.mktemp("compare"), demo_paths()
    answers = [json.loads(line) for line in paths.answers.read_text("utf-8").splitlines()]
    for answer in answers[3::7]:
        wrong = answer["model_output"].replace("1", "7").replace("2", "9")
        answer["model_output"] = wrong
    spoilt = folder / "answers.jsonl"
    spoilt.write_text("".join(json.dumps(answer) + "\n" for answer in answers), "utf-8")
    words = ["run", "--runner", "replay", "--in", paths.dataset, "--fixtures", paths.fixtures]
    words += ["--model", spoilt, "--out", folder / "results.jsonl", "--quiet", "--no-html"]
    main([str(word) for word in words])
    assert not (folder / "report.html").exists()
    page, data = folder / "comparison.html", folder / "comparison.json"
    words = ["compare", demo_page.parent, folder, "--html", page, "--json", data, "--quiet"]
    assert main([str(word) for word in words]) == 1
    return page


@pytest.mark.slow
def test_the_flips_of_a_comparison_lead_to_both_sides(browser, compare_page):
    comparison = json.loads(compare_page.with_suffix(".json").read_text("utf-8"))
    lost = comparison["flips"]["integration_f1_macro_lax"]["lost"]["sample_ids"]
    browser.open(compare_page)
    assert "REGRESSION" in browser.texts("#overview .word")[0]
    assert browser.texts("#table-flips tbody td")[1] == str(len(lost))
    browser.one("#table-flips tbody button").click()
    browser.wait("document.body.dataset.view === 'samples'")
    assert sorted(browser.texts(".row .id")) == sorted(lost)
    browser.one(".row").click()
    browser.wait("document.querySelectorAll('#sample .one').length === 2")
    before, after = browser.texts("#sample .one .answer")[:2]
    assert before != after
    assert browser.requests() == []
    assert browser.complaints() == []


def test_a_value_lights_up_only_on_its_own_side(browser, compare_page):
    browser.open(compare_page, "s=search-gemma-01&t=0")
    browser.js("document.querySelectorAll('#sample .one')[1].querySelector('mark.value').focus()")
    lit = browser.js(
        "return [...document.querySelectorAll('#sample .one')]"
        ".map((one) => one.querySelectorAll('.active').length)"
    )
    assert lit == [0, 1]
    # Both sides made the same call: its result stands there once, folded, and is lit in it.
    assert len(browser.texts("#sample .shared .leaf.lit")) == 1


def test_flips_come_first_unless_the_order_of_the_run_is_asked_for(browser, compare_page):
    browser.open(compare_page, "view=samples")
    comparison = json.loads(compare_page.with_suffix(".json").read_text("utf-8"))
    flips = comparison["flips"].values()
    sides = ("lost", "gained")
    flipped = {one for both in flips for side in sides for one in both[side]["sample_ids"]}
    shown = browser.texts(".row .id")
    assert set(shown[: len(flipped)]) == flipped
    browser.open(compare_page, "view=samples&order=run")
    assert browser.texts(".row .id")[:2] == ["search-rope-01", "search-rope-02"]


def test_the_largest_drop_comes_first(browser, compare_page):
    browser.open(compare_page, "view=samples&order=drop")
    assert "F1 A 1.000  F1 B 0.000" in browser.texts(".row .small")[0]


@pytest.mark.slow
@pytest.mark.parametrize("theme", few(["light", "dark"]))
@pytest.mark.parametrize("view", ["", "s=open-trail-01&t=0"])
def test_axe_finds_nothing_serious(browser, compare_page, theme, view):
    browser.open(compare_page, view)
    browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert browser.violations() == []


def test_two_reports_without_results_have_a_page_without_samples(
    browser, tmp_path, demo_page, compare_page
):
    reports = [folder.parent / "report.json" for folder in (demo_page, compare_page)]
    page = tmp_path / "page.html"
    assert main(["compare", *map(str, reports), "--html", str(page), "--quiet"]) == 5
    browser.open(page)
    assert "INCONCLUSIVE" in browser.texts("#overview .word")[0]


def probe_report() -> ProbeReport:
    good, bad = (
        ViewAnswer(True, ViewCall("web.search", {"q": "x"}), text="<call> one <b>"),
        ViewAnswer(False, None, "not a call <b>", text="<call> two <b>"),
    )
    cases = tuple(
        CaseOutcome(
            gold_tool_name="web.search",
            standing="lost" if at == 2 else "kept",
            base=good,
            tuned=bad if at == 2 else good,
            disagreement=None,
            hallucinated=None if at == 2 else False,
        )
        for at in range(4)
    )
    evidence = ProbeEvidence(
        json_valid_rate_base=1.0, json_valid_rate_ft=0.75, validity_delta=-0.25, mean_arg_disagreement=0.0,
        hallucination_rate=0.0, num_cases=4, num_arg_pairs_compared=3, num_hallucinated=0, z_by_rank=None,
        raw_ci_95=(0.25, 1.0), weight=1.0, num_valid_base=4, num_valid_ft=3, num_lost=1, num_gained=0, num_both_fail=0,
        p_value=0.5, smallest_drop=None, validity_delta_lower_95=-0.9, null_mean=None, null_std=None, num_nulls=None, null_rank=None,
        z_gate_applied=False, cases=cases,
    )  # fmt: skip
    result = FidelityResult(
        name="tools",
        verdict="fail",
        decision="inconclusive",
        hallucination_ok=True,
        evidence=evidence,
        message="m",
    )
    return ProbeReport(
        callmark_version="0",
        models={"base": {"base": "b"}, "ft": {"base": "b", "adapter": "<i>a"}},
        seed=0,
        views={},
        results=(ProbeResult(result=result, case_names=("one", "two", "three", "four")),),
        exit_code=5,
    )


def test_a_series_draws_a_curve_and_lists_the_cases_of_every_checkpoint(browser, tmp_path):
    report, page = probe_report(), tmp_path / "series.html"
    result = msgspec.structs.replace(report.results[0].result, ft_value=0.75)
    named = [Checkpoint(label=f"step {at}") for at in (1, 2)]
    series = judge_series(named, [result, result])
    with page.open("wb") as stream:
        write_probe_page(stream, msgspec.structs.replace(report, series=series))
    browser.open(page)
    # It is there for a wide and for a narrow page, and one of them is shown.
    shown = "[...document.querySelectorAll('#plot-series circle')].filter((one) => one.checkVisibility())"
    assert browser.js(f"return {shown}.length") == 2
    assert browser.violations() == []
    browser.open(page, "view=samples&fails=valid+call+lost&checkpoint=step+1")
    assert browser.texts(".row .text") == ["step 1: expects web.search"]
    assert browser.complaints() == []


def test_a_probe_shows_each_case_of_both_models(browser, tmp_path):
    page = tmp_path / "probe.html"
    with page.open("wb") as stream:
        write_probe_page(stream, probe_report())
    browser.open(page)
    assert "INCONCLUSIVE" in browser.texts("#overview .word")[0]
    browser.open(page, "view=samples&fails=valid+call+lost")
    assert browser.texts(".row .id") == ["three"]
    browser.open(page, "s=three&t=0")
    base, tuned = browser.texts("#sample .one")
    assert "✓ valid call" in base
    assert "not a call <b>" in tuned
    assert browser.texts("#sample mark.differs") == ["one", "two"]
    assert browser.violations() == []
    assert browser.complaints() == []


def test_f58_what_is_equal_stands_there_once_and_changed_words_are_marked(browser, compare_page):
    browser.open(compare_page, "s=search-rope-02&t=0")
    assert len(browser.texts("#sample .message.user")) == 1
    assert browser.texts("#sample .shared > summary") == [
        "The same on both sides: 1 call with its result"
    ]
    assert not browser.js("return document.querySelector('#sample .shared').open")
    answers = browser.texts("#sample .one .answer")
    changed = browser.texts("#sample .answer .differs")
    if answers[0] == answers[1]:
        assert changed == []
    else:
        assert changed
        assert len("".join(changed)) < len("".join(answers)) / 2


def test_f58_what_is_wrong_on_both_sides_is_marked_as_such(browser, compare_page):
    comparison = json.loads(compare_page.with_suffix(".json").read_text("utf-8"))
    neither = comparison["flips"]["integration_f1_macro_lax"]["neither"]["sample_ids"]
    assert neither
    browser.open(compare_page, "view=samples&both=integration_f1_macro_lax&order=run")
    assert browser.texts(".row .id") == neither
    assert set(browser.texts(".row .sign")) == {"✗"}
