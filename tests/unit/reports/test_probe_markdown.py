"""A probe in a pull request: the answer first, and no case's name breaks out of its place."""

import msgspec
import pytest
from tests.hostile import HOSTILE
from tests.unit.compare.test_compare_reports import COMPARISON
from tests.unit.probe.asking import probe
from tests.unit.reports.test_markdown import check_is_ours, tables_of

from callmark.probe.records import FidelityResult, ProbeReport, ProbeResult
from callmark.reports.html.probe import probe_head
from callmark.reports.markdown import LIMIT
from callmark.reports.probe import decision_lines, probe_markdown


def report_of(result: dict, names: list[str], **more: object) -> ProbeReport:
    made = ProbeResult(
        result=msgspec.convert(result, FidelityResult), case_names=tuple(map(str, names))
    )
    known = {"callmark_version": "0", "models": {}, "seed": 0, "views": {}, "exit_code": 1}
    return ProbeReport(**known, results=(made,), **more)


def test_the_answer_comes_first_and_the_rest_is_folded():
    text = probe_markdown(report_of(probe(tuned_valid=2), [f"case {n}" for n in range(20)]))
    assert text.startswith("### ❌ REGRESSION: valid calls: 20 of 20 before the fine-tune, 2 after")
    assert "<details><summary>Signals and cases</summary>" in text
    assert "| valid calls | 1.000 | 0.100 | -0.900 |" in text
    assert "18 cases lost" in text
    check_is_ours(text)


def test_no_regression_is_green():
    text = probe_markdown(report_of(probe(80, 80, 80), [f"case {n}" for n in range(80)]))
    assert text.startswith("### ✅ NO REGRESSION: ")


def test_f21_no_drop_seen_is_not_green_and_says_what_is_not_ruled_out():
    text = probe_markdown(report_of(probe(), [f"case {n}" for n in range(20)]))
    assert text.startswith("### ⚠️ NO DROP SEEN: ")
    assert "a drop of up to 11.9% is not ruled out" in text


@pytest.mark.parametrize("hostile", HOSTILE.values(), ids=HOSTILE)
def test_hostile_names_stay_in_their_place(hostile: str):
    report = report_of(probe(tuned_valid=2), [hostile] * 20, warnings=(hostile,))
    text = probe_markdown(report)
    check_is_ours(text)
    assert len(text) <= LIMIT
    for rows in tables_of(text):
        assert len({row.count("|") for row in rows}) == 1, rows


def test_a_regression_of_the_dataset_is_what_a_probe_answers_with():
    report = report_of(probe(), [f"case {n}" for n in range(20)], comparison=COMPARISON)
    words = [line.cells[0].text for line in decision_lines(report)]
    assert words == ["NO DROP SEEN", "REGRESSION"]
    head = probe_head(report, "a probe")
    assert (head.word, head.style) == ("REGRESSION", "bad")
