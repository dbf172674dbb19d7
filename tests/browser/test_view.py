"""The viewer in a real browser, used as a person would."""

import json
import shutil

import msgspec
import pytest
from tests.browser.conftest import ENTER, TAB
from tests.browser.view_world import begin_journal, make_run, viewing
from tests.builders import make_result
from tests.endpoints import Answer, Server
from tests.hostile import HOSTILE
from tests.pace import few

from callmark.records.trace import TraceEntry
from callmark.store.files import encode_result

SPACE = "\ue00d"
TUNED = "deep/tuned.jsonl"
EVIL = '<img src=x onerror="window.evil=1"></script><script>window.evil=2</script>\u202e\x1b[31m'


@pytest.fixture(scope="module")
def folder(two_runs):
    return two_runs


@pytest.fixture(scope="module")
def address(folder, tmp_path_factory):
    with viewing(folder, tmp_path_factory.mktemp("scratch")) as server:
        yield server.guard.address


def visit(browser, address, path=""):
    """Through the door, then to a page of the viewer."""
    browser.driver.get("about:blank")
    browser.forget()
    browser.driver.get(address)
    ready(browser)
    if path:
        browser.driver.get(browser.js("return location.href") + path)
        ready(browser)


def ready(browser):
    browser.wait("document.body.dataset.ready === 'yes'")


def id_of(browser, name):
    found = browser.js(
        "return [...document.querySelectorAll('tbody a')].find((one) => one.textContent === arguments[0]).href",
        name,
    )
    return found.rpartition("/")[2]


def test_the_list_shows_the_runs_and_the_token_is_gone(browser, address, folder):
    visit(browser, address)
    assert "token" not in browser.js("return location.href")
    assert browser.texts("#runs tbody a") == [TUNED, "base"]
    assert [text[2:] for text in browser.texts("#runs tbody .badge")] == ["fail", "pass"]
    assert browser.texts("h1") == [f"2 runs in {folder.resolve()}"]
    report = json.loads((folder / "base" / "report.json").read_text("utf-8"))
    row = browser.texts("#runs tbody tr")[1]
    assert str(report["counts"]["samples"]) in row
    assert "answers.txt" in row  # the model and the dataset, not their hashes
    assert "dataset.jsonl" in row
    assert report["header"]["dataset_sha256"][:10] not in row
    assert report["header"]["fixtures_sha256"][:10] in browser.texts("#fingerprints")[0]
    browser.one("#search").send_keys("tun")
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 1")
    browser.one("#search").send_keys("nothing")
    browser.wait("document.querySelectorAll('#runs tbody tr').length === 0")
    assert browser.texts("#table") == ["No run fits."]


def test_each_metric_has_its_trend_in_the_order_of_time(browser, address, folder):
    visit(browser, address)
    reports = [
        json.loads((folder / run / "report.json").read_text("utf-8")) for run in ("base", "deep")
    ]
    valued = {
        name
        for report in reports
        for name, one in report["metrics"].items()
        if one["value"] is not None
    }
    shown = browser.js("return [...document.querySelectorAll('.trend')].map((one) => one.id)")
    assert {f"trend-{name}" for name in valued} == set(shown)
    rows = browser.js(
        "return [...document.querySelectorAll('#trend-integration_f1_macro_lax tbody tr')]"
        ".map((row) => [row.cells[0].textContent, Number(row.cells[1].textContent), row.cells[4].textContent])"
    )
    values = [report["metrics"]["integration_f1_macro_lax"]["value"] for report in reports]
    assert rows == [
        ["base", pytest.approx(values[0], abs=6e-4), "pass"],
        [TUNED, pytest.approx(values[1], abs=6e-4), "fail"],
    ]
    marks = browser.js(
        "return [...document.querySelectorAll('#trend-integration_f1_macro_lax .mark')]"
        ".map((one) => [one.tagName, one.getBBox().x, one.getBBox().y])"
    )
    assert [mark[0] for mark in marks] == ["circle", "rect"]  # not by colour alone
    assert marks[0][1] < marks[1][1]
    assert marks[0][2] < marks[1][2]  # it fell


def test_two_runs_are_compared_by_clicking(browser, address):
    visit(browser, address)
    base, tuned = id_of(browser, "base"), id_of(browser, TUNED)
    assert browser.js("return document.getElementById('compare').disabled")
    browser.one(f"#pick-{tuned}").click()
    browser.one(f"#pick-{base}").click()
    assert browser.texts("#picked") == ["Is B (base) worse than A (deep/tuned.jsonl)?"]
    browser.one("#swap").click()
    assert browser.texts("#picked") == ["Is B (deep/tuned.jsonl) worse than A (base)?"]
    assert browser.texts(".side-mark") == ["B", "A"]
    browser.one("#compare").click()
    browser.wait("location.pathname.includes('/compare/')", 60)
    ready(browser)
    assert "REGRESSION" in browser.texts("#overview .word")[0]
    browser.js("document.querySelector('#table-flips button').click()")
    browser.wait("document.body.dataset.view === 'samples'")
    browser.one(".row").click()
    browser.wait("document.querySelectorAll('#sample .sides > section').length === 2")
    assert "I do not know." in browser.texts("#sample")[0]
    browser.one("a.brand").click()
    browser.wait("/^.[0-9a-f]+.$/.test(location.pathname)")
    ready(browser)
    assert browser.complaints() == []


def test_a_run_opens_with_its_gates_and_any_sample(browser, address, folder):
    visit(browser, address)
    run = id_of(browser, "base")
    browser.js(
        "[...document.querySelectorAll('tbody a')].find((one) => one.textContent === 'base').click()"
    )
    browser.wait("location.pathname.includes('/run/')")
    ready(browser)
    assert "PASS" in browser.texts("#overview .word")[0]
    assert browser.texts("#table-gates tbody tr")
    assert "network for nothing" not in browser.texts("#overview")[0]
    visit(browser, address, f"run/{run}#s=search-gemma-01&t=0")
    browser.wait("document.querySelector('#sample h2')")
    assert browser.texts("#sample h2") == ["search-gemma-01"]
    browser.js("document.querySelector('mark.value').focus()")
    assert browser.texts(".leaf.lit .exact") == ["768"]
    visit(browser, address, f"run/{run}#s=nobody&t=0")
    browser.wait("document.querySelector('#sample .empty')?.textContent.includes('no sample')")
    assert browser.texts("#sample") == ["This page has no sample nobody, trial 0."]
    own = address.partition("?")[0]
    assert all(url.startswith(own) for url in browser.requests())


@pytest.mark.slow
def test_a_sample_that_the_list_leaves_out_can_be_opened(browser, folder, tmp_path, monkeypatch):
    monkeypatch.setattr("callmark.reports.html.page.INDEX_BYTES", 4000)
    with viewing(folder, tmp_path) as server:
        visit(browser, server.guard.address)
        run = id_of(browser, "base")
        visit(browser, server.guard.address, f"run/{run}#view=samples")
        listed = browser.js(
            "return Number(/\\d+/.exec(document.getElementById('found').textContent)[0])"
        )
        assert listed < 60
        assert "put #s=ID&t=0" in browser.texts(".left-out")[0]
        lines = (folder / "base" / "results.jsonl").read_text("utf-8").splitlines()
        ids = browser.js(
            "return [...document.querySelectorAll('.row .id')].map((one) => one.textContent)"
        )
        absent = next(
            one for one in (json.loads(line)["sample_id"] for line in lines[100:]) if one not in ids
        )
        visit(browser, server.guard.address, f"run/{run}#s={absent}&t=0")
        browser.wait("document.querySelector('#sample h2')")
        assert browser.texts("#sample h2") == [absent]


@pytest.mark.slow
def test_a_run_is_followed_while_it_goes_on(browser, folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    make_run(root / "before" / "results.jsonl", age=60)
    out = root / "now" / "results.jsonl"
    journal, lines = begin_journal(out, folder / "base" / "results.jsonl")
    lost = json.loads(lines[0]) | {
        "status": "error",
        "scores": None,
        "error": "the server was gone",
    }
    with viewing(root, scratch) as server, journal:
        journal.append(json.dumps(lost).encode() + b"\n")
        for line in lines[1:30]:
            journal.append(line)
        visit(browser, server.guard.address)
        assert browser.texts("#runs tbody .badge")[0].endswith("unfinished")
        visit(browser, server.guard.address, f"run/{id_of(browser, 'now')}")
        said = browser.texts("#live-said")[0]
        assert said.startswith("30 trials finished, 1 error, 0 with a call without a fixture")
        assert browser.texts("#live-bar p") == [
            "19 % of the 153 trials of before, over the same dataset"
        ]
        browser.js("location.hash = 'view=samples&s=search-gemma-01&t=0'")
        browser.wait("document.querySelector('#sample h2')?.textContent === 'search-gemma-01'")
        browser.one("#search").send_keys("search-")
        browser.wait("document.getElementById('found').textContent.includes(' of 30')")
        for line in [lines[0], *lines[30:90]]:  # the lost one is tried again
            journal.append(line)
        browser.wait("document.getElementById('found').textContent.includes(' of 90')")
        assert browser.js("return document.activeElement.id") == "search"
        assert browser.js("return document.activeElement.value") == "search-"
        assert browser.texts("#sample h2") == ["search-gemma-01"]
        assert browser.texts("#live-said")[0].startswith("90 trials finished, 0 errors, ")
        for line in lines[90:]:
            journal.append(line)
        journal.finish(out)
        journal.remove()
        browser.wait("document.getElementById('to-samples')?.textContent === 'Samples (153)'")
        ready(browser)
        browser.wait("document.querySelector('#sample h2')?.textContent === 'search-gemma-01'")
        assert browser.texts("#badge")[0] != "· UNFINISHED"
        assert browser.complaints() == []


@pytest.mark.slow
def test_a_new_run_appears_in_the_list_by_itself(browser, folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    root.mkdir()
    with viewing(root, scratch) as server:
        visit(browser, server.guard.address)
        assert "No runs here yet" in browser.texts("#table")[0]
        (root / "results.jsonl").write_bytes((folder / "base" / "results.jsonl").read_bytes())
        browser.wait("document.querySelectorAll('#runs tbody tr').length === 1")


@pytest.mark.slow
def test_the_keyboard_alone_is_enough(browser, address):
    visit(browser, address)
    browser.type("/")
    assert browser.js("return document.activeElement.id") == "search"
    seen = []
    while len(seen) < 20 and not all(
        f"pick-{id_of(browser, run)}" in seen for run in ("base", TUNED)
    ):
        browser.type(TAB)
        seen.append(browser.js("return document.activeElement.id"))
        if seen[-1].startswith("pick-"):
            browser.type(SPACE)
            assert browser.js("return document.activeElement.id") == seen[-1]  # drawn anew
    assert browser.texts(".side-mark") == ["A", "B"]
    browser.js("document.getElementById('compare').focus()")
    browser.type(ENTER)
    browser.wait("location.pathname.includes('/compare/')", 60)


@pytest.mark.slow
def test_hostile_text_stays_text(browser, tmp_path):
    """As names of files, runs and samples, in prompts, answers, calls and results; finished or
    not."""
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    name = "".join(
        HOSTILE[kind] for kind in ("event handler", "end of script", "bidi", "ansi")
    ).replace("/", "_")
    (root / name).mkdir(parents=True)
    lines = [encode_result(hostile_result(at, text)) for at, text in enumerate(HOSTILE.values())]
    (root / name / "results.jsonl").write_bytes(b"".join(lines))
    evil = json.dumps(HOSTILE["event handler"]).encode()
    head = b'{"journal":2,"fingerprints":{%s:%s}}\n' % (evil, evil)
    (root / name / "other.jsonl.journal").write_bytes(head + b"".join(lines))
    with viewing(root, scratch) as server:
        visit(browser, server.guard.address)
        links = browser.js(
            "return [...document.querySelectorAll('tbody a')].map((one) => one.getAttribute('href'))"
        )
        assert len(links) == 2
        nothing_ran(browser)
        for link in links:
            visit(browser, server.guard.address, f"{link}#view=samples")
            nothing_ran(browser)
            for place in range(len(HOSTILE)):
                if place:  # the first one is shown without being asked for
                    browser.type("j")
                browser.wait(
                    f"document.querySelector('#sample .quiet')?.textContent.startsWith('trial {place} ')"
                )
            nothing_ran(browser)
        assert browser.complaints() == []


def hostile_result(at, text):
    trace = TraceEntry(
        turn=1,
        raw=text,
        name=text,
        arguments={"q": text},
        result={"r": text},
        status="ok",
        served_by=text,
    )
    result = make_result(at, trial=at, sample_id=f"{text[:2000]}{at}", output=text, trace=[trace])
    return msgspec.structs.replace(result, prompt=text)


def nothing_ran(browser):
    assert browser.js("return window.pwned === undefined")
    assert (
        browser.js(
            "return document.querySelectorAll('img, iframe, main script, main style, svg[onload]').length"
        )
        == 0
    )


def test_the_cookie_is_not_given_to_other_servers_of_this_machine(browser, address):
    visit(browser, address)
    with Server(
        lambda _: Answer(), models=Answer(body=b"x", headers={"Content-Type": "text/plain"})
    ) as other:
        browser.driver.get(f"{other.url}/models")
        [look] = [one for one in other.looks if one.path.endswith("/models")]
        assert "cookie" not in {name.lower() for name in look.headers}
    browser.driver.get("about:blank")
    browser.forget()


def test_a_page_from_elsewhere_learns_nothing(browser, address, tmp_path):
    """It asks the viewer in the name of the person, whose browser has the cookie."""
    visit(browser, address)
    own = browser.js("return location.href")
    stranger = tmp_path / "stranger.html"
    stranger.write_text(
        "<body><script>window.said = [];"
        f"fetch('{own}runs', {{credentials: 'include'}}).then((one) => one.text()).catch(String).then((text) => said.push(text));"
        f"fetch('{own}runs', {{credentials: 'include', mode: 'no-cors'}}).then((one) => one.text()).catch(String).then((text) => said.push(text));"
        f"</script><iframe id=f src='{own}'></iframe></body>"
    )
    browser.driver.get(stranger.as_uri())
    browser.wait("said.length === 2")
    for text in browser.js("return said"):
        assert "base" not in text
    assert browser.js("try { return f.contentDocument.body.textContent } catch { return '' }") in (
        "",
        None,
    )
    browser.driver.get("about:blank")
    browser.forget()


@pytest.mark.slow
@pytest.mark.parametrize("theme", few(["light", "dark"]))
@pytest.mark.parametrize("page", ["list", "run", "live"])
def test_axe_finds_nothing_serious(browser, folder, tmp_path, theme, page):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    shutil.copytree(folder, root)
    journal, lines = begin_journal(
        root / "now" / "results.jsonl", folder / "base" / "results.jsonl"
    )
    with viewing(root, scratch) as server, journal:
        for line in lines[:30]:
            journal.append(line)
        visit(browser, server.guard.address)
        path = {
            "list": "",
            "run": f"run/{id_of(browser, 'base')}",
            "live": f"run/{id_of(browser, 'now')}",
        }[page]
        visit(browser, server.guard.address, path)
        browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
        browser.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
        if page == "list":
            browser.one(f"#pick-{id_of(browser, 'base')}").click()
        assert browser.violations() == []


@pytest.mark.slow
def test_f58_notes_and_tags_are_kept_beside_a_run(browser, folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    shutil.copytree(folder, root)
    hostile = HOSTILE["event handler"]
    with viewing(root, scratch) as server:
        visit(browser, server.guard.address)
        run = id_of(browser, "base")
        browser.one(f"#note-{run}").click()
        assert browser.js("return document.activeElement.id") == "edit-note"
        browser.type(f"before the new prompt {hostile}")
        browser.one("#edit-tags").send_keys("good, baseline, good")
        browser.type(ENTER)
        browser.wait("document.querySelectorAll('#runs .note').length === 1")
        assert browser.texts("#runs .chip") == ["good", "baseline"]
        assert browser.texts("#runs .note")[0].startswith("before the new prompt")
        nothing_ran(browser)
        kept = json.loads((root / "base" / "results.notes.json").read_text("utf-8"))
        assert kept["tags"] == ["good", "baseline"]
        visit(browser, server.guard.address)  # they are there for whoever comes next
        assert browser.texts("#runs .chip") == ["good", "baseline"]
        browser.one("#search").send_keys("baseline")
        browser.wait("document.querySelectorAll('#runs tbody tr').length === 1")
        browser.one(f"#note-{run}").click()
        for field in ("#edit-note", "#edit-tags"):
            browser.one(field).clear()
        browser.one("#save-note").click()
        browser.wait("document.querySelectorAll('#runs .note').length === 0")
        assert not (root / "base" / "results.notes.json").exists()
        assert browser.complaints() == []


@pytest.mark.slow
def test_f58_a_trend_leads_to_the_samples_that_moved(browser, address):
    visit(browser, address)
    browser.js(
        "document.querySelectorAll('#trend-integration_f1_macro_lax .mark')[1]"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    browser.wait("location.pathname.includes('/compare/')", 60)
    ready(browser)
    assert browser.js("return document.body.dataset.view") == "samples"
    assert browser.texts("#set-filters button") == ["lost: answers built on results ×"]
    assert browser.texts(".row .id")
    assert set(browser.texts(".row .sign")) == {"✗"}


@pytest.mark.slow
def test_f58_a_trend_keeps_to_one_model_and_models_stand_side_by_side(browser, folder, tmp_path):
    root, scratch = tmp_path / "runs", tmp_path / "s"
    scratch.mkdir()
    shutil.copytree(folder, root)
    make_run(root / "other" / "results.jsonl", worse=3, age=60, model="other")
    with viewing(root, scratch) as server:
        visit(browser, server.guard.address)
        rows = browser.texts("#trend-integration_f1_macro_lax tbody th")
        assert rows == ["base", TUNED]  # the other model has one run, and no trend
        heads = browser.texts("#matrix thead th")
        assert [text.partition(" ")[0] for text in heads[:3]] == [
            "metric",
            "answers.txt",
            "other.txt",
        ]
        cells = browser.js(
            "return [...document.querySelector('#matrix tbody tr').cells].map((one) => one.textContent)"
        )
        reports = [root / "deep" / "report.json", root / "other" / "report.json"]
        for cell, path in zip(cells[1:], reports, strict=True):
            metric = json.loads(path.read_text("utf-8"))["metrics"]["integration_f1_macro_lax"]
            low, high = metric["ci_95"]
            assert f"{metric['value']:.3f}" in cell
            assert f"{low:.3f} to {high:.3f}" in cell
        assert browser.js("return document.querySelectorAll('#matrix .whisker').length") > 10
        assert browser.violations() == []
