"""Whatever stands in prompts, answers, calls, results and names: nothing of it runs, and nothing
of it is anything but text."""

import os
import re
from urllib.parse import quote

import msgspec
import pytest
from tests.builders import make_error, make_result, rules_with
from tests.hostile import HOSTILE
from tests.pace import few

from callmark.compare.records import (
    Compared,
    Comparison,
    Flips,
    Listed,
    MeasuredRun,
    RunMatrix,
    SideFacts,
)
from callmark.records.report import Metric, ReportHeader
from callmark.records.results import Match, SpanScore, Statement, ValueMark
from callmark.records.trace import RepairedCall, ThoughtCall, TraceEntry, UserTurn
from callmark.reports.html.compare import write_matrix_page
from callmark.reports.html.page import write_run_page
from callmark.reports.layout import neutralise
from callmark.store.files import decode_result, encode_result
from callmark.summary.summary import Summariser

NAMES = [name for name in HOSTILE if name != "long"]


def hostile_result(index, text):
    """A trial with the text in every place that a person gets to see."""
    short = text[:3000]
    end = len(text.encode("utf-8", "replace"))
    span = SpanScore(
        0, end, True, True, True, True, True,
        (Match(0, end, 0, "/" + short.replace("~", "~0").replace("/", "~1"), text, "text", "value", True),),
        (ValueMark(0, min(1, end), "number", "unsupported"),),
    )  # fmt: skip
    flag = Statement(
        start=min(1, end), end=min(2, end), label="misattributed", rule=short, tier="firm", call=0,
        path=short, expected=text, because=text,
    )  # fmt: skip
    entry = TraceEntry(
        name=short, arguments={short: text, "url": text}, result={short: text, "list": [text]}, turn=1, raw=text,
        status="ok", served_by="fixture:exact", format=short, reason=text, repaired=RepairedCall(short, {short: text}),
        schema_errors=(text,), key_normalized={short: text}, call_id=short,
    )  # fmt: skip
    result = make_result(
        index,
        sample_id=f"{index} {short}",
        output=text,
        trace=[entry, msgspec.structs.replace(entry, status="malformed", served_by=None)],
        metadata={"slices": [short], "locale": short, "note": text},
    )
    return msgspec.structs.replace(
        result,
        prompt=[
            {"role": "system", "content": text},
            {"role": text, "content": [{"type": text, "text": text}]},
            {"role": "tool", "content": text},
            {"role": "user", "content": text},
        ],
        said=(UserTurn(1, text),),
        reasoning=text,
        thought_calls=(ThoughtCall(1, short, {short: text}, text, "hermes"),),
        scores=msgspec.structs.replace(result.scores, spans=(span,), statements=(flag,)),
    )


def written(folder, names):
    results = [hostile_result(at, HOSTILE[name]) for at, name in enumerate(names)]
    lost = make_error(len(results), sample_id="lost")
    results.append(msgspec.structs.replace(lost, error=HOSTILE["end of script"]))
    # As they are read back from a file, which cannot hold a lone surrogate.
    results = [decode_result(encode_result(result)) for result in results]
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    report = summariser.report(
        ReportHeader(model=HOSTILE["event handler"]),
        rules_with(),
        warnings=tuple(HOSTILE[name] for name in names),
    )
    path = folder / "report.html"
    with path.open("wb") as stream:
        write_run_page(stream, report, lambda: iter(results), name=HOSTILE["end of script"])
    return path


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory):
    return written(tmp_path_factory.mktemp("hostile"), NAMES)


@pytest.fixture(scope="module")
def long_page(tmp_path_factory):
    """A line of a megabyte in a dozen places of one sample."""
    return written(tmp_path_factory.mktemp("long"), ["long"])


def test_nothing_in_the_file_is_markup_but_ours(hostile_page):
    text = hostile_page.read_text("utf-8")
    scripts = re.findall(r"<script[^>]*>", text)
    assert scripts.count("<script>") == 1
    assert all('type="application/json"' in one for one in scripts if one != "<script>")
    assert "\x00" not in text
    assert "\u2028" not in text


@pytest.mark.parametrize("name", few(NAMES, 6))
def test_it_is_text_and_nothing_else(browser, hostile_page, name):
    check_sample(browser, hostile_page, NAMES.index(name), HOSTILE[name])


def test_a_line_of_a_megabyte_is_cut_and_can_be_had_in_pieces(browser, long_page):
    check_sample(browser, long_page, 0, HOSTILE["long"])
    assert len(browser.texts("#sample")[0]) < 200_000
    shown = len(browser.texts("#sample .answer .value.supported")[0])
    browser.js("document.querySelector('.answer .more').click()")
    assert len(browser.texts("#sample .answer")[0]) > 2 * shown


def check_sample(browser, page, at, text):
    name = f"{at} {text[:3000]}".encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    browser.open(page, "view=samples")
    browser.js("location.hash = 's=' + arguments[0] + '&t=0'", quote(name))
    browser.wait("document.querySelector('#sample h2')")
    browser.js("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    browser.js("document.querySelectorAll('mark, .tag').forEach((one) => one.focus())")
    assert browser.js("return window.pwned") is None
    assert browser.js("return document.querySelectorAll('script:not([type])').length") == 1
    active = "a, img, iframe, script, style, object, embed, form, link, base"
    assert browser.js(f"return document.querySelectorAll('#sample :is({active})').length") == 0
    assert browser.js("return document.querySelectorAll('a[href]:not([href^=\"#\"])').length") == 0
    shown = browser.texts("#sample")[0]
    start = text[:40].encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    assert neutralise(start) in shown
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", shown)
    assert browser.requests() == []
    assert browser.complaints() == []


def test_the_overview_is_text_too(browser, hostile_page):
    browser.open(hostile_page)
    assert browser.js("return window.pwned") is None
    assert (
        browser.js(
            "return document.querySelectorAll('#overview :is(img, iframe, script, a)').length"
        )
        == 0
    )
    assert "<script>window.pwned=1</script>" in browser.texts(".warnings")[0]
    assert browser.complaints() == []


def test_the_page_writes_out_the_same_characters_as_the_terminal(browser, hostile_page):
    """Every code point that `neutralise` changes, and no other, is changed here too."""
    browser.open(hostile_page, "view=samples")
    browser.one("#search").send_keys("nothing fits this")
    changed = [
        code
        for code in range(0x20000)
        if not 0xD800 <= code < 0xE000 and neutralise(chr(code)) != chr(code)
    ]
    pattern = browser.js(
        "return [...document.scripts].find((one) => !one.type).textContent.match(/const STEERING =\\s*(\\/.*\\/gu);/)[1]"
    )
    found = browser.js(
        f"const steering = {pattern}; const found = [];"
        "for (let code = 0; code < 0x20000; code += 1) {"
        " if (code >= 0xd800 && code < 0xe000) continue;"
        " if (String.fromCodePoint(code).replace(steering, '') === '') found.push(code); }"
        "return found"
    )
    assert found == changed


def test_kinds_of_failures_are_text_whatever_a_field_or_an_error_is_called(browser, tmp_path):
    evil = HOSTILE["event handler"]
    wrong = Statement(
        start=0, end=1, label="misattributed", rule="binding", tier="firm", call=0,
        path=f"/rows/0/{evil.replace('/', '~1')}", because=evil,
    )  # fmt: skip
    lost = msgspec.structs.replace(make_error(1), error=evil)
    results = [make_result(0, statements=(wrong,)), lost]
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    page = tmp_path / "page.html"
    with page.open("wb") as stream:
        write_run_page(
            stream, summariser.report(ReportHeader(), {}), lambda: iter(results), name="kinds"
        )
    browser.open(page)
    assert len(browser.texts("#clusters li")) == 2
    assert all(evil[:20].replace("`", "") in text for text in browser.texts("#clusters li"))
    assert browser.js("return window.pwned === undefined")
    assert (
        browser.js("return document.querySelectorAll('main img, main iframe, main script').length")
        == 0
    )
    browser.js("document.querySelector('#clusters button').click()")
    browser.wait("document.body.dataset.view === 'samples'")
    assert len(browser.texts(".row .id")) == 1
    assert browser.js("return window.pwned === undefined")
    assert browser.complaints() == []


def can_be_a_folder(text):
    """No system has a path with a zero byte, or with half a character that was no byte."""
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


@pytest.mark.parametrize("name", few((one for one in NAMES if can_be_a_folder(HOSTILE[one])), 12))
def test_f58_the_name_of_a_run_is_text_on_the_page_of_many(browser, tmp_path, name):
    text = HOSTILE[name][:60].replace("/", "∕")
    matrix = compared_by_names([f"{text} {at}" for at in range(3)])
    page = tmp_path / "many.html"
    with page.open("wb") as stream:
        write_matrix_page(stream, matrix)
    browser.open(page)
    assert browser.complaints() == []
    assert browser.requests() == []
    assert (
        browser.js(
            "return document.querySelectorAll('#overview script, #overview img, #overview iframe').length"
        )
        == 0
    )
    shown = browser.texts("#table-runs td:nth-child(2) .strong")
    assert len(shown) == 3
    assert shown[2].endswith("2") or shown[2].endswith("…")


def compared_by_names(names):
    """Runs of these names, which all say the same."""
    metric = "integration_f1_macro_lax"
    facts = [SideFacts(path=f"{name}/results.jsonl") for name in names]
    one = Compared(
        metric=metric, role="primary", better_is="higher", a=0.5, b=0.5, difference=0.0, n=9, decision="inconclusive"
    )  # fmt: skip
    flips = Flips(Listed(1, (names[0],)), Listed())
    comparisons = tuple(
        Comparison(
            decision="inconclusive", decision_reason=f"open: {names[0]}", paired=True, a=facts[0], b=side,
            comparable={}, primary=(one,), flips={metric: flips}, warnings=(names[0],),
        )
        for side in facts[1:]
    )  # fmt: skip
    measured = {metric: Metric(value=0.5, n=9, ci_95=(0.2, 0.8))}
    runs = tuple(MeasuredRun(facts=side, metrics=measured) for side in facts)
    return RunMatrix(decision="inconclusive", runs=runs, comparisons=comparisons)
