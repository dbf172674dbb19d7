"""Makes the pictures of README.md and of docs/page.md, view.md, compare.md and probe.md: the log
that the README describes, runs over the bundled dataset from recorded answers, and a training that
goes wrong, opened in chromium. In the checkout, after `make browser`:
`PYTHONPATH=. python docs/screenshots.py`."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlencode

from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.support.ui import WebDriverWait
from tests.browser.view_world import make_run, viewing

from callmark.cli import main

IMAGES = Path(__file__).parent / "images"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --hide-scrollbars --window-size=1440,900"
).split()
RUN = (
    "run --runner replay --in data/contextual_final.s0.jsonl --fixtures eval/tool_broker/fixtures"
    " --model src/callmark/data/demo/answers.jsonl --quiet --out"
).split()
LOG, CAUGHT = "examples/support-log.jsonl", "caught-mistake"
LOST_CASE = 'Search the web for "rondis kanrur", top 1 hits.'
# name -> (fragment of the address, theme, height of the window, what the mouse points at)
SHOTS = {
    "page-overview": ("", "light", 947, None),
    "page-sample": ("s=search-gemma-01&t=0", "dark", 900, "mark.value"),
}


def take(folder: Path) -> None:
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or "chromium"
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        for name, (fragment, theme, height, target) in SHOTS.items():
            driver.set_window_size(1440, height)
            driver.get("about:blank")
            driver.get(f"{(folder / 'demo-run' / 'report.html').as_uri()}#{fragment}")
            WebDriverWait(driver, 20).until(
                lambda page: page.execute_script("return document.body.dataset.ready === 'yes'")
            )
            driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
            driver.execute_script("document.getElementById('title').textContent = 'demo-run'")
            if target is not None:
                found = driver.find_element("css selector", target)
                driver.execute_script("arguments[0].scrollIntoView({block: 'nearest'})", found)
                ActionChains(driver).move_to_element(found).perform()
            driver.save_screenshot(str(IMAGES / f"{name}.png"))
        take_log(driver, folder)
        take_view(driver, folder)
        take_matrix(driver, folder)
        take_probe(driver, folder)
    finally:
        driver.quit()


def take_log(driver: webdriver.Chrome, folder: Path) -> None:
    """What the README describes: a wrong amount, and a cancellation that never happened."""
    page = folder / "log" / "report.html"
    main(["score", LOG, "--out", str(page.with_name("results.jsonl")), "-o", str(page), "--quiet"])
    driver.set_window_size(1440, 820)
    driver.get("about:blank")
    driver.get(f"{page.as_uri()}#{urlencode({'s': 'cancel-it', 't': 0})}")
    WebDriverWait(driver, 20).until(
        lambda shown: shown.execute_script("return document.body.dataset.ready === 'yes'")
    )
    driver.execute_script("document.documentElement.dataset.theme = 'light'")
    driver.execute_script("document.getElementById('title').textContent = 'support-log'")
    marks = driver.find_elements("css selector", "mark")
    ActionChains(driver).move_to_element(marks[0]).perform()
    driver.save_screenshot(str(IMAGES / f"{CAUGHT}.png"))


def take_view(driver: webdriver.Chrome, folder: Path) -> None:
    """Two models, one of them in four runs of growing skill; the first and the last are chosen."""
    (folder / "scratch").mkdir()
    make_run(folder / "runs" / "small" / "results.jsonl", worse=3, age=1, model="small")
    for number, worse in enumerate((4, 9, 20, 0)):
        out = folder / "runs" / f"large-step-{number}" / "results.jsonl"
        make_run(out, worse=worse, age=-number, model="large")
    driver.set_window_size(1200, 1000)
    with viewing(folder / "runs", folder / "scratch") as server:
        driver.get(server.guard.address)
        WebDriverWait(driver, 20).until(
            lambda page: page.execute_script("return document.body.dataset.ready === 'yes'")
        )
        driver.execute_script("document.getElementById('title').textContent = '5 runs in runs'")
        for at in (3, 0):
            driver.find_elements("css selector", "#runs input[type=checkbox]")[at].click()
        driver.execute_script("document.getElementById('title').textContent = '5 runs in runs'")
        driver.save_screenshot(str(IMAGES / "view-list.png"))


def take_matrix(driver: webdriver.Chrome, folder: Path) -> None:
    """The runs of the viewer on one page, each against the last and best."""
    page, runs = folder / "models.html", folder / "runs"
    names = ("large-step-3", "large-step-2", "large-step-1", "large-step-0", "small")
    main(["compare", *(str(runs / name) for name in names), "--html", str(page), "--quiet"])
    driver.set_window_size(1200, 1000)
    driver.get(page.as_uri())
    WebDriverWait(driver, 20).until(
        lambda shown: shown.execute_script("return document.body.dataset.ready === 'yes'")
    )
    driver.save_screenshot(str(IMAGES / "compare-many.png"))


def take_probe(driver: webdriver.Chrome, folder: Path) -> None:
    """The training of docs/probe.md: its curve, and a case that it lost."""
    example = Path(__file__).parents[1] / "examples" / "harmful_finetune.py"
    subprocess.run([sys.executable, example, folder / "outputs"], check=True)  # noqa: S603 - ours
    page, tiny = folder / "series.html", "src/callmark/data/tiny"
    words = ["--base", f"{tiny}/model", "--cases", f"{tiny}/cases.jsonl", "--html", str(page)]
    main(["probe", *words, "--checkpoints", str(folder / "outputs"), "--quiet"])
    for name, theme, fragment, height in (
        ("probe-series", "light", "", 1347),
        ("probe-case", "dark", urlencode({"s": LOST_CASE, "t": 7}), 640),
    ):
        driver.set_window_size(1440, height)
        driver.get("about:blank")
        driver.get(f"{page.as_uri()}#{fragment}")
        WebDriverWait(driver, 20).until(
            lambda page: page.execute_script("return document.body.dataset.ready === 'yes'")
        )
        driver.execute_script("document.documentElement.dataset.theme = arguments[0]", theme)
        driver.execute_script("document.getElementById('title').textContent = 'outputs'")
        driver.save_screenshot(str(IMAGES / f"{name}.png"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        code = main([*RUN, str(Path(made) / "demo-run" / "results.jsonl")])
        if code != 0:
            sys.exit(code)
        IMAGES.mkdir(exist_ok=True)
        take(Path(made))
