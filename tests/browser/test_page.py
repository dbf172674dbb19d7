"""The page of a run, used as a person would."""

import json
from collections import Counter

import pytest
from tests.browser.conftest import DOWN, END, ENTER, TAB
from tests.builders import make_result, numbered, rules_with
from tests.pace import few
from tests.stated_run import FLAGS, stated, write_run

from callmark.cli import main
from callmark.records.report import ReportHeader
from callmark.records.statements import RULES
from callmark.reports.html.page import write_run_page
from callmark.resources import demo_paths
from callmark.summary.gates import wanted_text
from callmark.summary.metrics import label_of, label_words, rule_words, sentence_of
from callmark.summary.summary import Summariser

GROUNDED = "s=search-gemma-01&t=0"


@pytest.fixture
def results(demo_page):
    lines = demo_page.with_name("results.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_page_asks_for_nothing_and_complains_about_nothing(browser, demo_page):
    browser.open(demo_page)
    browser.one("#to-samples").click()
    browser.open(demo_page, GROUNDED)
    assert browser.requests() == []
    assert browser.complaints() == []


def test_a51_a52_verdict_gates_and_fingerprints_stand_at_the_top(browser, demo_page):
    browser.open(demo_page)
    report = json.loads(demo_page.with_suffix(".json").read_text("utf-8"))
    assert "PASS" in browser.texts("#overview .word")[0]
    rows = browser.js(
        "return [...document.querySelectorAll('#table-gates tbody tr, #table-gates-passed tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.textContent))"
    )
    shown = {row[1]: row for row in rows}
    firsts = browser.js(
        "return [...document.querySelectorAll('#table-gates tbody tr, #table-gates-passed tbody tr')]"
        ".map((row) => [...row.cells].map((cell) => cell.firstChild?.textContent ?? ''))"
    )
    values = {row[1]: first[2] for row, first in zip(rows, firsts, strict=True)}
    judged = {
        label_of(gate["name"]) + sentence_of(gate["name"]): gate
        for gate in report["gates"]
        if gate["status"] != "n/a"
    }
    assert judged.keys() <= shown.keys()
    for name, gate in judged.items():
        status, _, _, bound, n, *_ = shown[name]
        value = values[name]
        assert gate["status"] in status.lower()
        assert float(value) == pytest.approx(gate["value"], abs=6e-4)
        assert bound.startswith(wanted_text(gate["op"], gate["bound"]))
        assert int(n) == gate["n"]
    f1 = "integration_f1_macro_lax"
    assert "0.926 to 0.990" in shown[label_of(f1) + sentence_of(f1)][2]
    assert browser.js(f"return document.querySelector('[title={f1}]').textContent") == label_of(f1)
    pins = "".join(browser.texts("#pins dd"))
    for name in ("dataset_sha256", "fixtures_sha256", "runner_fingerprint", "model_fingerprint"):
        assert report["header"][name] in pins


def test_f23_a_sample_says_which_extractor_read_it_and_why(browser, demo_page):
    browser.open(demo_page, GROUNDED)
    assert "Read with marker (the dataset's header says so)." in browser.texts(
        ".one .folded > p.quiet"
    )


def test_a53_a54_a56_every_plot_has_its_numbers_as_a_table(browser, demo_page):
    browser.open(demo_page)
    report = json.loads(demo_page.with_suffix(".json").read_text("utf-8"))
    plots = browser.js("return [...document.querySelectorAll('figure.plot')].map((one) => one.id)")
    assert plots == [f"plot-{name}" for name in "f1 tools locales slices spans misses".split()]
    for plot in plots:
        assert browser.texts(f"#{plot} table tbody td"), plot
        assert browser.js(
            "return document.querySelector(arguments[0]).getAttribute('role')", f"#{plot} .drawing"
        )
    numbers = [int(text) for text in browser.texts("#plot-spans td")]
    assert numbers == list(report["integration_span_count_histogram"].values())
    shares = browser.texts("#plot-f1 td")
    assert len(shares) == 24  # own and chance, in twelve bins
    assert float(shares[1]) > 0.9 > 0.1 > float(shares[0])  # chance grounds next to nothing


def test_search_and_filters_choose_the_rows(browser, demo_page, results):
    browser.open(demo_page, "view=samples")
    assert browser.texts("#found") == [f"{len(results)} trials"]
    browser.one("#search").send_keys("rope")
    browser.wait("document.getElementById('found').textContent.includes(' of ')")
    found = browser.texts(".row .id")
    assert "search-rope-01" in found
    assert len(found) < 12
    browser.one("#search").clear()
    browser.one("#search").send_keys("no such text anywhere")
    browser.wait("!document.getElementById('none').hidden")
    assert browser.texts("#none") == ["Nothing fits these filters."]
    browser.one("#search").clear()
    browser.one("#search").send_keys(" ")
    browser.wait("document.getElementById('none').hidden")
    browser.choose("kind", "control")
    controls = [line for line in results if line["scores"]["kind"] == "control"]
    assert browser.texts("#found")[0].startswith(f"{len(controls)} of ")
    browser.choose("kind", "")
    browser.choose("tool", "web.open")
    assert all("eligible" in text for text in browser.texts(".row .small"))
    browser.choose("tool", "")
    browser.choose("status", "wrong call")
    assert browser.texts(".row .id") == ["search-ferry-01"]


def test_a137_a_gate_leads_to_the_samples_behind_it(browser, demo_page):
    browser.open(demo_page)
    report = json.loads(demo_page.with_suffix(".json").read_text("utf-8"))
    failing = report["failing"]["integration_f1_macro_lax"]
    browser.js(
        "[...document.querySelectorAll('#overview tbody tr')]"
        ".find((row) => row.querySelector('[title=integration_f1_macro_lax]'))"
        ".querySelector('button').click()"
    )
    browser.wait("document.body.dataset.view === 'samples'")
    assert sorted(browser.texts(".row .id")) == sorted(failing["sample_ids"])


@pytest.mark.parametrize("way", ["hover", "focus"])
def test_a_value_lights_up_the_exact_place_that_grounds_it(browser, demo_page, results, way):
    browser.open(demo_page, GROUNDED)
    [line] = [line for line in results if line["sample_id"] == "search-gemma-01"]
    matches = {(m["call"], m["path"]) for span in line["scores"]["spans"] for m in span["matches"]}
    assert len(matches) > 1
    marks = browser.texts("#sample mark.value")
    for at, text in enumerate(marks):
        if way == "hover":
            browser.js("document.activeElement.blur()")
            browser.js(
                "const mark = document.querySelectorAll('mark.value')[arguments[0]];"
                "mark.dispatchEvent(new MouseEvent('mouseenter'))",
                at,
            )
        else:
            browser.js("document.querySelectorAll('mark.value')[arguments[0]].focus()", at)
        lit = browser.js(
            "return [...document.querySelectorAll('.leaf.lit')].map((one) => one.dataset.path)"
        )
        assert [path for _, path in matches if path in lit] == lit
        assert len(lit) == 1
        assert browser.texts(".leaf.lit .exact") == [text]
        assert text in browser.texts(".peek")[0]
    browser.js("document.activeElement.blur()")
    browser.js(
        "document.querySelectorAll('mark.value').forEach((one) => one.dispatchEvent(new MouseEvent('mouseleave')))"
    )
    assert browser.texts(".lit") == []


def test_a_real_mouse_lights_up_too(browser, demo_page):
    browser.open(demo_page, GROUNDED)
    browser.hover("#sample mark.value")
    assert browser.texts(".leaf.lit .exact") == ["768"]


def test_two_results_with_one_value_are_told_apart_by_the_call(browser, demo_page, results):
    """Every match of every sample lights a leaf of its own call and path."""
    several = [
        line
        for line in results
        if len({m["call"] for s in line["scores"]["spans"] for m in s["matches"]}) > 1
    ][:4]
    assert several
    for line in several:
        browser.open(demo_page, f"s={line['sample_id']}&t=0")
        for number, span in enumerate(line["scores"]["spans"]):
            browser.js("document.querySelectorAll('.tag')[arguments[0]].focus()", number)
            lit = browser.js(
                "return [...document.querySelectorAll('.lit')].map((one) => ["
                "Number(/call (\\d+)/.exec(one.closest('.call').querySelector('.role').textContent)[1]),"
                "one.dataset.path])"
            )
            expected = {(m["call"], m["path"]) for m in span["matches"]}
            assert {tuple(place) for place in lit} == expected


def test_values_are_told_apart_without_colour(browser, demo_page):
    browser.open(demo_page, "s=search-battery-01&t=0")
    signs = browser.js(
        "return [...document.querySelectorAll('mark.value')].map((one) => "
        "[one.className, one.dataset.sign, getComputedStyle(one).textDecorationStyle])"
    )
    assert ["value unsupported firm", "✗", "wavy"] in signs
    assert browser.texts(".legend li") == ["✗ unsupported (firm): No tool result says so."]


def test_a_call_shows_its_ledger_and_where_its_result_came_from(browser, demo_page):
    browser.open(demo_page, "s=read-limits-01&t=0")
    ledger = browser.texts(".call .pins")[0]
    for word in ("as written", "read strictly", "repaired", "schema", "was unexpected"):
        assert word in ledger
    assert any("from a fixture, exact match" in text for text in browser.texts(".call .result"))
    browser.open(demo_page, "s=search-ferry-01&t=0")
    assert any("not a call that was expected" in text for text in browser.texts(".call"))


def test_a_deep_link_opens_its_sample_and_is_written_for_every_one(browser, demo_page):
    browser.open(demo_page, "s=de-miete-01&t=0")
    assert browser.texts("#sample h2") == ["de-miete-01"]
    assert browser.js("return document.body.dataset.view") == "samples"
    assert browser.texts(".row[aria-selected=true] .id") == ["de-miete-01"]
    browser.open(demo_page, "view=samples&kind=clarify")
    browser.one("#list").click()
    browser.type(END)
    name = browser.texts("#sample h2")[0]
    assert f"s={name}&t=0" in browser.js("return location.hash")
    assert "kind=clarify" in browser.js("return location.hash")
    browser.open(demo_page, "s=nobody&t=3")
    assert browser.texts("#sample") == ["This page has no sample nobody, trial 3."]


def test_the_keyboard_alone_is_enough(browser, demo_page):
    browser.open(demo_page)
    browser.type("/")
    assert browser.js("return document.activeElement.id") == "search"
    browser.type("gemma", TAB)
    browser.wait("document.querySelectorAll('.row').length === 1")
    for _ in range(12):
        if browser.js("return document.activeElement.id") == "list":
            break
        browser.type(TAB)
    browser.type(DOWN)
    browser.wait("document.querySelector('#sample h2')")
    assert browser.texts("#sample h2") == ["search-gemma-01"]
    browser.type(ENTER)
    for _ in range(12):
        browser.type(TAB)
        if browser.js("return document.activeElement.matches('mark.value')"):
            break
    assert browser.texts(".leaf.lit .exact") == ["768"]
    browser.type("j")
    assert browser.js("return document.activeElement.tagName") != "INPUT"


def test_dark_and_light(browser, demo_page):
    browser.open(demo_page)
    ground = "return getComputedStyle(document.body).backgroundColor"
    light = browser.js(ground)
    browser.one("#theme").click()
    assert browser.js(ground) != light
    assert (
        browser.js("return document.getElementById('theme').getAttribute('aria-pressed')") == "true"
    )
    browser.one("#theme").click()
    assert browser.js(ground) == light
    scheme = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", scheme)
    try:
        browser.open(demo_page)
        assert browser.js(ground) != light
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_can_be_printed(browser, demo_page):
    browser.open(demo_page, GROUNDED)
    browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert (
            browser.js("return getComputedStyle(document.querySelector('.finder')).display")
            == "none"
        )
        overflow = "return getComputedStyle(document.getElementById('sample')).overflowY"
        assert browser.js(overflow) == "visible"
    finally:
        browser.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


@pytest.mark.slow
@pytest.mark.parametrize("theme", few(["dark", "light"]))
@pytest.mark.parametrize(
    "view", few([GROUNDED, "", "s=search-battery-01&t=0", "view=samples&q=nothing-fits"], 2)
)
def test_axe_finds_nothing_serious(browser, demo_page, theme, view):
    browser.open(demo_page, view)
    browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
    browser.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    if view == GROUNDED:
        browser.js("document.querySelector('mark.value').focus()")
    assert browser.violations() == []


def test_a_long_system_message_is_folded_and_unexpected_calls_are_no_fault(browser, tmp_path):
    talk = {
        "id": "policy-1",
        "messages": [
            {"role": "system", "content": "Be kind. " * 200},
            {"role": "user", "content": "How warm is Ulm?"},
            {"role": "assistant", "content": None, "tool_calls": [WEATHER]},
            {"role": "tool", "tool_call_id": "a", "content": '{"temp_c": 19}'},
            {"role": "assistant", "content": "It is 19 degrees."},
        ],
    }
    source, scored = tmp_path / "talks.jsonl", tmp_path / "results.jsonl"
    source.write_text(json.dumps(talk) + "\n", "utf-8")
    main(["score", str(source), "--out", str(scored), "--quiet"])
    main(["report", str(scored), "--html", str(tmp_path / "page.html")])
    browser.open(tmp_path / "page.html", "s=policy-1&t=0")
    assert browser.texts("#sample .message.system summary") == ["1,800 characters"]
    assert browser.texts("#sample .differences") == []


WEATHER = {
    "id": "a",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Ulm"}'},
}


def test_on_a_narrow_screen_the_list_stays_short_and_a_link_leads_to_its_sample(browser, demo_page):
    browser.driver.set_window_size(520, 860)
    try:
        browser.open(demo_page, GROUNDED)
        browser.wait("document.querySelector('#sample h2')")
        assert browser.js("return document.getElementById('list').clientHeight") == 320
        assert browser.js("return document.querySelectorAll('.row').length") < 30
        top = "return document.getElementById('sample').getBoundingClientRect().top"
        assert browser.js(top) < 100
    finally:
        browser.driver.set_window_size(1280, 860)


def test_f3_f24_only_what_passed_has_a_tick(browser, tmp_path):
    """A warning is no cross, and an answer with an unsupported value shows no tick."""
    results = numbered(
        [
            make_result(kind="unclassified", statements=stated("supported", "derived")),
            make_result(kind="unclassified", statements=stated("supported", "unsupported")),
            make_result(kind="unclassified", statements=stated("unchecked")),
            make_result(strict=0.0),
            make_result(f1=0.0),
        ]
    )
    page = tmp_path / "page.html"
    report = summarised(results)
    with page.open("wb") as stream:
        write_run_page(stream, report, lambda: iter(results), name="marks")
    browser.open(page)
    browser.js("location.hash = '#s=s0&t=0'")
    browser.wait("document.querySelectorAll('.row .sign').length === 5")
    assert browser.texts(".row .sign") == ["✗", "✗", "!", "✓", "·"]  # the worst first
    browser.open(page, "view=samples&order=run")
    assert browser.texts(".row .sign") == ["✓", "✗", "·", "!", "✗"]


def summarised(results):
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    return summariser.report(ReportHeader(), rules_with())


def test_a_sample_shows_each_of_its_checks(browser, tmp_path):
    hostile = "<img src=x onerror=alert(1)>"
    item = {
        "prompt": "p",
        "metadata": {"checks": [{"contains": ["17", hostile]}, {"called": "web.open"}]},
    }
    source, out = tmp_path / "data.jsonl", tmp_path / "answers.jsonl"
    source.write_text(json.dumps(item | {"sample_id": "a"}) + "\n", "utf-8")
    out.write_text(json.dumps({"sample_id": "a", "model_output": "17"}) + "\n", "utf-8")
    results = tmp_path / "results.jsonl"
    main(["run", "--in", str(source), "--model", str(out), "--quiet", "--out", str(results)])
    main(["report", str(results), "--html", str(tmp_path / "page.html")])
    browser.open(tmp_path / "page.html", "s=a&t=0")
    browser.wait("document.querySelector('#sample .checks')")
    assert browser.texts("#sample .checks li") == [
        '✓ contains "17": ok',
        f'✗ contains "{hostile}": the answer does not contain it',
        "✗ called web.open: it was not called",
    ]
    assert "✗ checks" in browser.texts("#sample .chip")


@pytest.fixture(scope="module")
def stated_page(tmp_path_factory):
    out = write_run(tmp_path_factory.mktemp("stated"))
    assert main(["report", str(out), "--html", str(out.with_name("page.html"))]) == 0
    return out.with_name("page.html")


@pytest.mark.parametrize("name", FLAGS)
def test_each_flag_is_marked_listed_and_lights_what_was_expected(browser, stated_page, name):
    label, rule = FLAGS[name]
    browser.open(stated_page, f"s={name}&t=0")
    tier = RULES[rule].tier
    marks = browser.js(
        "return [...document.querySelectorAll('mark.value')].map((one) => "
        "[one.className, one.dataset.sign, getComputedStyle(one).textDecorationStyle])"
    )
    assert [f"value {label} {tier}", "?" if tier == "advisory" else "✗", "wavy"] in marks
    [told] = browser.texts(".flags li")
    words = label_words(label)
    assert f"{tier} {words}: says “" in told
    assert f"(rule: {rule_words(rule)})" in told
    assert any(f" {words} ({tier}): " in text for text in browser.texts(".legend li"))
    browser.js("document.querySelector('.flags li button').click()")
    browser.wait("document.activeElement.matches('mark.value')")
    assert tier in browser.texts(".peek")[0]
    paths = {
        "shifted": ["/paid"],
        "other-record": ["/flights/0/price"],
        "yes-for-no": ["/bags_included"],
        "invented-id": ["/reservation_id"],
    }
    lit = "return [...document.querySelectorAll('.leaf.lit')].map((one) => one.dataset.path)"
    assert browser.js(lit) == paths.get(name, [])
    assert browser.complaints() == []


def test_what_is_unchecked_is_counted_and_no_column_is_cut(browser, stated_page):
    browser.open(stated_page, "s=nothing-checked&t=0")
    assert browser.texts(".flags p") == ["2 statements: 2 unchecked"]
    assert browser.texts(".flags li") == []
    assert "value unchecked" in browser.js(
        "return [...document.querySelectorAll('mark.value')].map((one) => one.className)"
    )
    browser.open(stated_page, "s=other-record&t=0")
    cut = browser.js(
        "return [...document.querySelectorAll('.evidence td, .flags li')]"
        ".filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"
    )
    assert cut == []


def test_rows_are_chosen_by_label_and_rule(browser, stated_page):
    browser.open(stated_page, "s=right&t=0")
    browser.choose("label", "misattributed")
    browser.wait("document.querySelectorAll('.row').length === 1")
    assert browser.texts(".row .id") == ["other-record"]
    browser.choose("label", "")
    browser.choose("rule", "equation")
    browser.wait("document.querySelectorAll('.row').length === 1")
    assert browser.texts(".row .id") == ["sum"]


@pytest.mark.slow
@pytest.mark.parametrize("theme", few(["light", "dark"]))
def test_axe_finds_nothing_serious_in_statements(browser, stated_page, theme):
    browser.open(stated_page, "s=yes-for-no&t=0")
    browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
    assert browser.violations() == []


def test_f58_the_answer_comes_first_with_its_evidence_beside_it(browser, demo_page):
    browser.driver.set_window_size(1440, 900)
    try:
        browser.open(demo_page, GROUNDED)
        boxes = browser.js(
            "return ['.answer', '.beside .json', '.talk'].map((one) => "
            "document.querySelector(`#sample ${one}`).getBoundingClientRect().toJSON())"
        )
        answer, results, talk = boxes
        assert answer["bottom"] < 600  # on the first screen
        assert results["left"] > answer["right"]
        assert talk["top"] > answer["bottom"]
        texts = (
            "return [...document.querySelectorAll('#sample .text')].map((one) => one.textContent)"
        )
        shown = browser.js(texts)
        assert len(shown) == len(set(shown))  # nothing twice
    finally:
        browser.driver.set_window_size(1280, 860)


def test_f58_like_failures_are_told_together_and_lead_to_their_samples(browser, stated_page):
    browser.open(stated_page)
    kinds = browser.texts("#clusters li")
    assert "1 × wrong record for price" in kinds
    browser.js(
        "[...document.querySelectorAll('#clusters button')]"
        ".find((one) => one.textContent.startsWith('wrong record')).click()"
    )
    browser.wait("document.body.dataset.view === 'samples'")
    assert browser.texts(".row .id") == ["other-record"]


def test_a_run_that_failed_shows_what_failed_before_its_warnings(browser, tmp_path):
    paths = demo_paths()
    without_header = paths.dataset.read_text("utf-8").partition("\n")[2]
    (tmp_path / "data.jsonl").write_text(without_header, "utf-8")
    words = ["run", "--runner", "replay", "--in", tmp_path / "data.jsonl", "--quiet"]
    words += ["--fixtures", paths.fixtures, "--model", paths.answers]
    orders = []
    for gate, code in (("call_f1_macro=1", 1), ("call_f1_macro=0", 0)):
        out = tmp_path / gate
        more = ["--gate", gate, "--gate", "json_args_valid_rate=0", "--out", out / "results.jsonl"]
        found = main([str(word) for word in (*words, *more)])
        browser.open(out / "report.html")
        titles = browser.texts("#overview h2")
        orders.append((found == code, titles.index("Warnings"), titles[:3]))
    failed, passed = orders
    assert failed == (
        True,
        2,
        ["Failures and flags by kind", "Gates that did not pass", "Warnings"],
    )
    assert passed[:2] == (True, 0)


def test_each_label_and_rule_is_counted_and_is_a_filter(browser, stated_page):
    lines = stated_page.with_name("results.jsonl").read_text("utf-8").splitlines()
    statements = [one for line in lines for one in json.loads(line)["scores"]["statements"]]
    expected = Counter(label_words(one["label"]) for one in statements)
    expected.update(f"by rule: {rule_words(one['rule'])}" for one in statements if one.get("tier"))
    browser.open(stated_page)
    rows = browser.js(
        "return [...document.querySelectorAll('#table-statements tbody tr')]"
        ".map((row) => [row.cells[0].querySelector('button').textContent, Number(row.cells[1].textContent)])"
    )
    assert dict(map(tuple, rows)) == expected
    for at, (_, rule) in enumerate(FLAGS.values()):
        browser.open(stated_page)
        browser.js(
            "[...document.querySelectorAll('#table-statements button')]"
            ".find((one) => one.textContent === arguments[0]).click()",
            f"by rule: {rule_words(rule)}",
        )
        browser.wait("document.body.dataset.view === 'samples'")
        assert browser.texts(".row .id") == [list(FLAGS)[at]]


def test_whoever_is_led_to_samples_sees_the_first_of_them(browser, demo_page):
    browser.open(demo_page, "view=samples&kind=clarify")
    assert browser.texts("#sample h2") == browser.texts(".row[aria-selected=true] .id")
    assert browser.texts("#sample h2") == browser.texts(".row .id")[:1]
    assert browser.texts("#set-filters button") == ["kind: clarify ×"]
    browser.one("#set-filters button").click()
    assert browser.texts("#set-filters button") == []
    assert browser.texts("#found") == ["153 trials"]
