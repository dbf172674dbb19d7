"""The page in a real browser. Without one these tests are skipped, and say so; where
CALLMARK_BROWSER=required they fail instead."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

ROOT = Path(__file__).parents[2]
AXE = ROOT / "build" / "axe" / "axe.min.js"
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run"
    " --disable-background-networking --disable-component-update --disable-sync"
    " --disable-default-apps --window-size=1280,860"
).split()
SHIFT_TAB = "\ue008\ue004\ue000"
TAB, ENTER, DOWN, END, ESCAPE = "\ue004", "\ue007", "\ue015", "\ue010", "\ue00c"


def cannot(what: str) -> NoReturn:
    message = f"{what}: `make browser` installs it"
    if os.environ.get("CALLMARK_BROWSER") == "required":
        pytest.fail(f"CALLMARK_BROWSER=required, but {message}", pytrace=False)
    pytest.skip(f"THE PAGE WAS NOT TESTED IN A BROWSER: {message}")


class Browser:
    """One chromium, driven from outside."""

    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, path: Path, fragment: str = "") -> None:
        """A new document, ready for use, even if only the fragment differs."""
        self.driver.get("about:blank")
        self.forget()
        self.driver.get(f"{path.as_uri()}#{fragment}")
        self.wait("document.body.dataset.ready === 'yes'")

    def wait(self, condition: str, seconds: float = 20) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        check = WebDriverWait(self.driver, seconds, poll_frequency=0.03)
        check.until(lambda _: self.js(f"return Boolean({condition})"), condition)

    def js(self, code: str, *arguments: object) -> Any:
        return self.driver.execute_script(code, *arguments)

    def texts(self, selector: str) -> list[str]:
        code = "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent)"
        return self.js(code, selector)

    def one(self, selector: str) -> Any:
        return self.driver.find_element("css selector", selector)

    def type(self, *keys: str) -> None:
        """Into whatever has the focus."""
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).send_keys(*keys).perform()

    def hover(self, selector: str) -> None:
        from selenium.webdriver.common.action_chains import ActionChains

        ActionChains(self.driver).move_to_element(self.one(selector)).perform()

    def choose(self, field: str, value: str) -> None:
        from selenium.webdriver.support.ui import Select

        if not self.js("return document.getElementById('more-filters').open"):
            self.one("#more-filters summary").click()
        Select(self.one(f"#by-{field}")).select_by_value(value)

    def forget(self) -> None:
        self.driver.get_log("browser")
        self.driver.get_log("performance")

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Every address that was asked for, the page's own left out."""
        events = [json.loads(e["message"])["message"] for e in self.driver.get_log("performance")]
        asked = [
            event["params"]["request"]["url"]
            for event in events
            if event["method"] == "Network.requestWillBeSent"
        ]
        return [url for url in asked if not url.startswith(("file:", "about:"))]

    def violations(self) -> list[str]:
        """What axe calls serious or critical."""
        if not AXE.is_file():
            cannot(f"{AXE} is missing")
        self.js(AXE.read_text("utf-8"))
        found = self.driver.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run(document, {resultTypes: ['violations']})"
            ".then((found) => done(found.violations), (error) => done([{id: String(error)}]));"
        )
        return [
            f"{one['id']} ({one.get('impact')}): {[node['html'][:200] for node in one.get('nodes', [])][:3]}"
            for one in found
            if one.get("impact") in ("serious", "critical", None)
        ]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    binary, service = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or service is None:
        cannot("chromium or chromedriver is not installed")
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(service))
    driver.set_script_timeout(60)
    # A window that nobody has clicked into gets no focus events.
    driver.execute_cdp_cmd("Emulation.setFocusEmulationEnabled", {"enabled": True})
    try:
        yield Browser(driver)
    finally:
        driver.quit()


Build = Callable[..., Path]


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a good run, `base`, and a later and worse one, `deep/tuned`."""
    from tests.browser.view_world import make_run

    root = tmp_path_factory.mktemp("runs")
    make_run(root / "base" / "results.jsonl", age=7200)
    make_run(root / "deep" / "tuned.jsonl", worse=5, age=3600)
    return root


@pytest.fixture(scope="session")
def client(two_runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Asks a viewer of the two runs over a real socket."""
    from tests.browser.view_world import Client, viewing

    with viewing(two_runs, tmp_path_factory.mktemp("scratch")) as server:
        yield Client(server)


@pytest.fixture(scope="session")
def demo_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `callmark run` writes for the bundled dataset and its recorded answers."""
    from callmark.cli import main
    from callmark.resources import demo_paths

    folder, paths = tmp_path_factory.mktemp("page"), demo_paths()
    words = ["run", "--runner", "replay", "--in", paths.dataset, "--fixtures", paths.fixtures]
    words += ["--model", paths.answers, "--out", folder / "results.jsonl", "--quiet"]
    assert main([str(word) for word in words]) == 0
    return folder / "report.html"
