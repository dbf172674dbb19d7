"""The pages that people look at, measured in a real browser: at four widths, light and dark,
nothing lies over anything else, no text is cut, the page never scrolls sideways, axe finds nothing
serious, and the Tab key reaches whatever can be clicked."""

from __future__ import annotations

import pytest
from tests.browser.conftest import TAB
from tests.browser.looked_at import (
    make_comparison,
    make_demo,
    make_example,
    make_failing,
    make_five_runs,
    make_logs,
    make_matrix,
    make_probe,
    make_series,
)
from tests.browser.view_world import viewing
from tests.pace import few

WIDTHS = (390, 1024, 1440, 1920)
THEMES = ("light", "dark")
# page -> the places to look at: its top, and samples of every looks
PLACES = {
    "failing": ("", "s=search-battery-01&t=0", "view=samples&like=a+required+fact+is+not+stated"),
    "comparison": ("", "s=search-rope-02&t=0", "view=samples&both=integration_f1_macro_lax"),
    "demo": ("", "s=search-gemma-01&t=0"),
    "example": ("", "view=samples"),
    "five runs": ("",),
    "matrix": ("",),
    "probe": ("", "s=Execute+this+code%3A+%60print%28664+%2A+2%29%60&t=0"),
    "series": ("", "view=samples&checkpoint=checkpoint-400"),
    "logs": ("", "s=cancel-it&t=0"),
}
# What is cut on purpose, with an ellipsis: a row of the list is an excerpt of its sample, and the
# name of a run in the bar stands in full below it.
EXCERPTS = ".row, .bar h1"
MEASURE = """
const [excerpts] = arguments, found = [], wide = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > wide + 1) found.push(`the page is ${document.documentElement.scrollWidth} wide`);
const name = (one) => `${one.tagName.toLowerCase()}.${one.className?.baseVal ?? one.className} "${one.textContent.trim().slice(0, 40)}"`;
const boxes = new Map();
const boxOf = (one) => {
  if (!one || one === document.documentElement) return null;
  if (!boxes.has(one)) {
    const above = boxOf(one.parentElement), style = getComputedStyle(one);
    const clips = style.overflowX !== 'visible' || style.overflowY !== 'visible';
    let box = above;
    if (clips && one !== document.body) {
      const own = one.getBoundingClientRect();
      box = above === null ? own : { left: Math.max(own.left, above.left), right: Math.min(own.right, above.right),
        top: Math.max(own.top, above.top), bottom: Math.min(own.bottom, above.bottom) };
    }
    boxes.set(one, box);
  }
  return boxes.get(one);
};
for (const one of document.querySelectorAll('main *')) {
  if (one.closest(excerpts) || one.closest('svg') || !one.checkVisibility()) continue;
  const style = getComputedStyle(one), hides = ['hidden', 'clip'].includes(style.overflowX);
  if ((hides || one.matches('.scroll')) && one.clientWidth > 1 && one.scrollWidth > one.clientWidth + 1) found.push(`cut: ${name(one)} ${one.scrollWidth} > ${one.clientWidth}`);
}
const rects = [], walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const parent = node.parentElement;
  if (!node.data.trim() || parent.closest('option, select, noscript') || !parent.checkVisibility() || getComputedStyle(parent).position === 'fixed' || parent.closest('.peek')) continue;
  if (parent.closest('thead') && parent.closest('thead').getBoundingClientRect().width < 2) continue;
  const range = document.createRange();
  range.selectNodeContents(node);
  const clip = boxOf(parent);
  for (const { left, right, top, bottom } of range.getClientRects()) {
    const box = clip === null ? { left, right, top, bottom } : { left: Math.max(left, clip.left), right: Math.min(right, clip.right), top: Math.max(top, clip.top), bottom: Math.min(bottom, clip.bottom) };
    if (box.right - box.left < 2 || box.bottom - box.top < 2) continue;
    if (box.right > wide + 1 && !parent.closest(excerpts)) found.push(`outside: ${name(parent)}`);
    rects.push({ ...box, node, parent });
  }
}
rects.sort((a, b) => a.top - b.top);
for (let at = 0; at < rects.length; at += 1) {
  for (let next = at + 1; next < rects.length && rects[next].top < rects[at].bottom - 3; next += 1) {
    const [a, b] = [rects[at], rects[next]];
    if (a.node === b.node) continue;
    if (Math.min(a.right, b.right) - Math.max(a.left, b.left) > 3 && Math.min(a.bottom, b.bottom) - b.top > 4) found.push(`overlap: ${name(a.parent)} and ${name(b.parent)}`);
  }
}
return [...new Set(found)].slice(0, 12);
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Makes each page when it is asked for first: page -> its address."""
    root, made = tmp_path_factory.mktemp("looked-at"), {}

    def folder(name):
        path = root / name.replace(" ", "-")
        path.mkdir(exist_ok=True)
        return path

    makers = {
        "demo": make_demo,
        "example": make_example,
        "failing": make_failing,
        "comparison": lambda path: make_comparison(path, get("demo"), get("failing")),
        "five runs": make_five_runs,
        "matrix": lambda path: make_matrix(path, get("five runs")),
        "probe": make_probe,
        "series": make_series,
        "logs": make_logs,
    }

    def get(name):
        if name not in made:
            made[name] = makers[name](folder(name))
        return made[name]

    return get


@pytest.fixture
def opened(browser, pages, tmp_path):
    """Opens a place of a page, at a width and in a theme."""
    servers = []

    def open_(page, place):
        path = pages(page)
        if path.is_file():
            browser.open(path, place)
            return
        if not servers:
            servers.append(viewing(path, tmp_path))
            server = servers[0].__enter__()
            browser.driver.get(server.guard.address)
        browser.wait("document.body.dataset.ready === 'yes'")

    yield open_
    for server in servers:
        server.__exit__(None, None, None)
    browser.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def look(browser, width, theme):
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    browser.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    browser.js("document.documentElement.dataset.theme = arguments[0]", theme)
    # Two frames: the list of samples draws itself anew when its box has changed.
    browser.driver.execute_async_script(
        "const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
    )


@pytest.mark.parametrize("page", few(PLACES))
def test_f58_nothing_overlaps_is_cut_or_scrolls_sideways(browser, opened, page):
    found = {}
    for place in PLACES[page]:
        opened(page, place)
        for folded in (True, False):
            if not folded:
                browser.js(
                    "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
                )
            for width in WIDTHS:
                for theme in THEMES:
                    look(browser, width, theme)
                    if problems := browser.js(MEASURE, EXCERPTS):
                        found[place, width, theme, folded] = problems
    assert found == {}


@pytest.mark.slow
@pytest.mark.parametrize("page", few(PLACES))
def test_f58_axe_finds_nothing_serious(browser, opened, page):
    found = {}
    for place in PLACES[page]:
        opened(page, place)
        browser.js(
            "document.querySelectorAll('main details').forEach((one) => { one.open = true; })"
        )
        for width, theme in ((390, "dark"), (1440, "light")):
            look(browser, width, theme)
            if problems := browser.violations():
                found[place, width, theme] = problems
    assert found == {}


CLICKABLE = (
    "return [...document.querySelectorAll('a[href], button:enabled, input, select, summary, [role=button], [role=listbox]')]"
    ".filter((one) => one.checkVisibility() && !one.closest('#list > .space'))"
)


@pytest.mark.parametrize("page", few(PLACES))
def test_f58_the_tab_key_reaches_whatever_can_be_clicked(browser, opened, page):
    for place in PLACES[page]:
        opened(page, place)
        look(browser, 1440, "light")
        browser.js("window.reached = new Set(); document.activeElement?.blur();")
        count = len(browser.js(CLICKABLE))
        for _ in range(3 * count + 60):  # boxes that scroll have the focus too
            browser.type(TAB)
            if browser.js(
                "const at = document.activeElement, known = reached.has(at) || at === document.body;"
                "reached.add(at); return known && reached.size > 3"
            ):
                break
        missed = browser.js(
            "return "
            + CLICKABLE.removeprefix("return ")
            + ".filter((one) => !reached.has(one)).map((one) => one.outerHTML.slice(0, 120))"
        )
        assert missed == [], place


def test_the_measure_finds_what_it_looks_for(browser, opened):
    """Planted: a text over another one, one that is cut, and a page that is too wide."""
    opened("logs", "")
    look(browser, 1024, "light")
    assert browser.js(MEASURE, EXCERPTS) == []
    browser.js(
        "const add = (style, text) => { const one = document.createElement('p'); Object.assign(one.style, style);"
        "one.textContent = text; document.querySelector('#overview').append(one); };"
        "add({ position: 'absolute', top: '90px', left: '60px' }, 'over the verdict');"
        "add({ width: '40px', overflow: 'hidden', whiteSpace: 'nowrap' }, 'a text that is cut');"
        "add({ width: '1500px' }, 'wide '.repeat(80));"
    )
    found = " ".join(browser.js(MEASURE, EXCERPTS))
    for planted in ("overlap: ", 'cut: p. "a text that is cut"', "the page is 1", "outside: "):
        assert planted in found
