"""The file that a page is: self-contained, bounded, the same every time, and without any markup
but its own."""

import base64
import hashlib
import json
import re
from pathlib import Path

import msgspec
import pytest
from dev.campaign.determinism import without_timing
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import make_error, make_result, missed_call, rules_with, served_call, silent
from tests.stated_run import stated

from callmark.records.report import ReportHeader, Timing
from callmark.reports.html import page as html_choice
from callmark.reports.html.page import (
    SCRIPTS,
    START,
    Candidates,
    IndexBuilder,
    bin_of,
    page_json,
    row_of,
    write_run_page,
)
from callmark.resources import data_path
from callmark.summary.summary import Summariser

PAGE = data_path("page")
VIEW = {
    "list.html",
    "view.css",
    "served.js",
    "view-list.js",
    "trends.js",
    "view-run.js",
    "view-live.js",
}
ANY_TEXT = st.text(st.characters(), max_size=60)


def report_of(results, **header):
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(**header), rules_with())


def page_of(folder: Path, results, **header) -> str:
    path = folder / "report.html"
    report = report_of(results, **header)
    with path.open("wb") as stream:
        write_run_page(stream, report, lambda: iter(results), name="results.jsonl")
    return path.read_text("utf-8")


def data_of(page: str, name: str):
    [data] = re.findall(rf'<script type="application/json" id="{name}">(.*?)</script>', page)
    return json.loads(data)


def samples_of(page: str) -> list[dict]:
    chunks = re.findall(r'class="chunk" data-first="(\d+)">(.*?)</script>', page)
    found = []
    for first, data in chunks:
        assert int(first) == len(found)
        found += json.loads(data)
    return found


def test_f41_what_a_clock_measured_stands_in_one_block(tmp_path, results):
    """Slow or fast, warned of or not: the rest of the page is the same."""
    pages, rules = [], rules_with(perf_budget_sec_per_100={"bound": 50})
    for number, seconds in enumerate((0.5, 4000.25)):
        summariser = Summariser()
        for result in results:
            summariser.add(result)
        more = {"tokens": int(seconds * 7)}
        timing = Timing(wall_time_sec=seconds, scoring_sec=seconds / 2, more=more)
        report = summariser.report(ReportHeader(), rules, timing=timing)
        path = tmp_path / f"{number}.html"
        with path.open("wb") as stream:
            write_run_page(stream, report, lambda: iter(results), name="results.jsonl")
        pages.append(path.read_bytes())
    assert pages[0] != pages[1]
    assert without_timing(pages[0]) == without_timing(pages[1])
    assert b"4000" not in without_timing(pages[1])
    shown = data_of(pages[1].decode(), "timing")
    [table] = shown["tables"]  # the budget is told with the time, and neither is drawn as well
    told = {row[0]["text"]: row[1]["text"] for row in table["rows"]}
    assert told["wall_time_sec"] == "4000.250"
    assert told["tokens"] == str(int(4000.25 * 7))
    assert any("wanted at most 50" in text for text in told.values())
    assert shown["plots"] == []


@pytest.fixture
def results():
    good = [make_result(at, trace=[served_call()]) for at in range(20)]
    return [*good, silent(20), make_error(21), make_result(22, misses=1, trace=[missed_call()])]


def test_every_trial_has_a_row_and_every_row_its_sample(tmp_path, results):
    page = page_of(tmp_path, results)
    index = data_of(page, "index")
    assert index["ids"] == [result.sample_id for result in results]
    samples = samples_of(page)
    for row, place in enumerate(index["at"]):
        assert samples[place]["sides"][0]["result"]["sample_id"] == index["ids"][row]
    assert data_of(page, "head")["left_out"] == ""


def test_the_same_run_gives_the_same_bytes(tmp_path, results):
    assert page_of(tmp_path, results) == page_of(tmp_path, results)


def test_a_sample_falls_short_of_what_the_report_says(tmp_path, results):
    index = data_of(page_of(tmp_path, results), "index")
    [fails] = [facet for facet in index["facets"] if facet["key"] == "fails"]
    found: dict[str, list[str]] = {}
    for name, code in zip(index["ids"], fails["codes"], strict=True):
        for gate in fails["sets"][code]:
            found.setdefault(fails["names"][gate], []).append(name)
    report = report_of(results)
    gated = {outcome.name for outcome in report.gates} - report.warning_gates
    assert found == {
        name: list(failing.sample_ids) for name, failing in report.failing.items() if name in gated
    }


def test_statuses_tell_lost_missed_and_failing_trials_apart(tmp_path, results):
    index = data_of(page_of(tmp_path, results), "index")
    [status] = [facet for facet in index["facets"] if facet["key"] == "status"]
    names = [[status["names"][at] for at in status["sets"][code]] for code in status["codes"]]
    assert names[0] == ["passes"]
    assert names[20][0] == "falls short"
    assert names[21] == ["not scored"]
    assert "call without a fixture" in names[22]


def standings_of(tmp_path, results):
    index = data_of(page_of(tmp_path, results), "index")
    [status] = [facet for facet in index["facets"] if facet["key"] == "status"]
    return [status["names"][status["sets"][code][0]] for code in status["codes"]]


def test_f24_a_warning_is_not_a_shortfall(tmp_path):
    results = [make_result(at, strict=0.0, trace=[served_call()]) for at in range(20)]
    page = page_of(tmp_path, results)
    assert set(standings_of(tmp_path, results)) == {"only warns"}
    facets = {facet["key"]: facet["names"] for facet in data_of(page, "index")["facets"]}
    assert facets["warns"] == ["integration_f1_macro_strict"]
    assert "fails" not in facets


def test_f3_what_nobody_expects_is_marked_by_its_worst_label(tmp_path):
    answers = [
        stated("supported", "rounded"), stated("supported", "misattributed"), stated("unsupported"),
        stated("supported", "contradicted", tier="advisory"), (), stated("user_said", "unchecked"),
        stated("derived"),
    ]  # fmt: skip
    results = [
        make_result(at, "unclassified", statements=statements)
        for at, statements in enumerate(answers)
    ]
    assert standings_of(tmp_path, results) == [
        "passes", "flagged", "flagged", "only warns", "nothing checked", "nothing checked",
        "passes",
    ]  # fmt: skip


def test_f3_a_marked_span_is_judged_by_its_values_too(tmp_path):
    marked = {"extractor": "marker", "values": {"supported": 1, "unsupported": 1}}
    results = [make_result(0, "unclassified", statements=stated("supported"), **marked)]
    assert standings_of(tmp_path, results) == ["flagged"]


def test_rows_can_be_chosen_by_label_and_by_rule(tmp_path):
    results = [
        make_result(0, statements=stated("supported")),
        make_result(1, statements=stated("supported", "altered")),
    ]
    facets = {one["key"]: one for one in data_of(page_of(tmp_path, results), "index")["facets"]}
    assert facets["label"]["names"] == ["altered", "supported"]
    assert [facets["label"]["sets"][code] for code in facets["label"]["codes"]] == [[1], [0, 1]]
    assert facets["rule"]["names"] == ["value"]


def test_the_policy_allows_this_style_and_this_script_and_nothing_else(tmp_path, results):
    page = page_of(tmp_path, results)
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy
    [style] = re.findall(r"<style>(.*?)</style>", page, re.S)
    [script] = re.findall(r"<script>(.*?)</script>", page, re.S)
    for kind, text in (("style", style), ("script", script)):
        hashed = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{hashed}'" in policy


def test_the_page_is_ours_and_holds_no_way_to_run_text():
    """No framework, no address, no handler in an attribute, nothing that parses text as markup. Only
    what the viewer adds to the scripts may ask for anything, in one place."""
    names = {path.name for path in PAGE.iterdir()}
    assert names == {"page.html", "page.css", "sample.css", *SCRIPTS, START, *VIEW}
    for path in PAGE.iterdir():
        text = path.read_text("utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function",
                     "DOMParser", "srcdoc", ".href =", "fetch(", "XMLHttpRequest", "import("):  # fmt: skip
            asks = word == "fetch(" and path.name == "served.js"
            assert asks or word not in text, f"{path.name}: {word}"
        addresses = set(re.findall(r"https?://[^\s\"']+", text))
        assert addresses <= {"http://www.w3.org/2000/svg"}
        assert not re.search(r"\son[a-z]+=", text), path.name
        assert "<!--" not in text or path.suffix == ".html"
        assert len(text.splitlines()) < 400


@given(
    st.recursive(
        ANY_TEXT | st.none() | st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(ANY_TEXT, inner, max_size=3),
    )
)
def test_data_in_the_page_cannot_leave_its_element(value):
    data = page_json(value).decode()
    assert not set(data) & set("<>&\u2028\u2029\x00")
    whole = json.loads(json.dumps(value).encode("utf-8", "surrogatepass"))
    assert json.loads(data) == whole


def test_lone_surrogates_and_huge_integers_get_into_the_page():
    assert json.loads(page_json({"a": "\ud800<", "b": 10**30})) == {"a": "\ud800<", "b": 10**30}


@given(st.text(max_size=300), st.text(max_size=300))
def test_an_excerpt_is_short_whatever_the_text(prompt, answer):
    result = msgspec.structs.replace(make_result(0, output=answer), prompt=prompt)
    row = row_of(result)
    assert len(row.text.encode()) <= 110
    assert row.text.count("\n") == 1


def test_failing_samples_come_first_and_the_page_says_what_it_left_out(tmp_path, monkeypatch):
    results = [make_result(at, output="x" * 500) for at in range(200)]
    results += [silent(at) for at in range(200, 230)]
    monkeypatch.setattr(html_choice, "SAMPLE_BYTES", 100_000)
    page = page_of(tmp_path, results)
    index = data_of(page, "index")
    assert len(index["ids"]) == 230
    shown = {one["sides"][0]["result"]["sample_id"] for one in samples_of(page)}
    assert {f"s{at}" for at in range(200, 230)} < shown
    assert 30 < len(shown) < 110
    said = data_of(page, "head")["left_out"]
    assert said.startswith(f"230 trials, all are listed, and {len(shown)} are here in full")
    assert "`callmark view` has the rest" in said
    again = {
        one["sides"][0]["result"]["sample_id"] for one in samples_of(page_of(tmp_path, results))
    }
    assert again == shown
    other = samples_of(page_of(tmp_path, results, seed=7))
    assert {one["sides"][0]["result"]["sample_id"] for one in other} != shown


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), st.integers(0, 2)), max_size=30))
def test_a_choice_fits_and_leaves_out_nothing_that_would_fit_before_a_later_tier(sizes):
    """No row and no sample is over its budget; what is in full has a row."""
    candidates = Candidates(1)
    for at, (row, size, _) in enumerate(sizes):
        candidates.offer(f"s{at}", 0, row=row, size=size)
    before = html_choice.INDEX_BYTES, html_choice.SAMPLE_BYTES
    html_choice.INDEX_BYTES, html_choice.SAMPLE_BYTES = 300, 200
    try:
        choice = candidates.chosen(bytes(tier for _, _, tier in sizes))
    finally:
        html_choice.INDEX_BYTES, html_choice.SAMPLE_BYTES = before
    assert sum(row for (row, _, _), has in zip(sizes, choice.rows, strict=True) if has) <= 300
    assert sum(size for (_, size, _), has in zip(sizes, choice.full, strict=True) if has) <= 200
    assert all(row >= full for row, full in zip(choice.rows, choice.full, strict=True))


@given(st.floats(0, 1))
def test_every_f1_has_one_bin(f1):
    place = bin_of(f1)
    assert 0 <= place <= 11
    assert (place == 0) == (f1 == 0)
    assert (place == 11) == (f1 == 1)
    if 0 < place < 11:
        assert (place - 1) / 10 <= f1 + 1e-9
        assert f1 <= place / 10 + 1e-9


def test_a_run_without_results_has_a_page_that_says_so(tmp_path):
    page = page_of(tmp_path, [])
    assert data_of(page, "index")["ids"] == []
    assert data_of(page, "head")["left_out"].startswith("No trials")


def test_trials_of_one_sample_are_rows_of_their_own():
    builder = IndexBuilder()
    for trial in range(3):
        builder.add(row_of(make_result(0, trial=trial)), trial)
    assert builder.built().trials == [0, 1, 2]
