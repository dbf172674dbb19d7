"""A hundred thousand samples in one file."""

import hashlib
import subprocess
import sys

import msgspec
import pytest

from callmark.store.files import encode_result, read_results

MANY = 100_000
# Not getrusage: its peak is also that of the process which started this one.
MEASURED = """
import re, sys
from pathlib import Path
from callmark.cli import main
code = main(["report", sys.argv[1], "--html", sys.argv[2]])
print(re.search("VmHWM:\\\\s+([0-9]+)", Path("/proc/self/status").read_text())[1])
sys.exit(code)
"""


@pytest.fixture(scope="module")
def big(tmp_path_factory, demo_page):
    folder = tmp_path_factory.mktemp("big")
    some = list(read_results(demo_page.with_name("results.jsonl")))
    with (folder / "results.jsonl").open("wb") as file:
        for at in range(MANY):
            name = hashlib.sha256(b"%d" % at).hexdigest()
            changed = msgspec.structs.replace(some[at % len(some)], index=at, sample_id=name)
            file.write(encode_result(changed))
    return folder


@pytest.mark.slow
def test_100_000_samples_are_listed_opened_and_searched(browser, big):
    """At most 60 MB and 400 MB of memory; in the browser it opens and searches in 3 seconds."""
    page = big / "report.html"
    finished = subprocess.run(
        [sys.executable, "-c", MEASURED, big, page], capture_output=True, text=True, check=True
    )
    assert int(finished.stdout.split()[-1]) / 1024 < 400
    assert page.stat().st_size <= 60_000_000
    times = [opened_and_searched(browser, page) for _ in range(3)]
    assert min(opened for opened, _ in times) < 3000, times
    assert min(searched for _, searched in times) < 3000, times
    assert "are here in full" in browser.texts(".left-out")[0]
    assert browser.complaints() == []


def opened_and_searched(browser, page):
    """Both in milliseconds, as the page's own clock has them."""
    browser.open(page, "view=samples")
    assert browser.texts("#found") == ["100,000 trials"]
    opened = browser.js("return performance.now()")
    searched = browser.driver.execute_async_script(
        "const done = arguments[0], search = document.getElementById('search'), start = performance.now();"
        "new MutationObserver(() => requestAnimationFrame(() => done(performance.now() - start)))"
        ".observe(document.getElementById('found'), {childList: true});"
        "search.value = 'rope'; search.dispatchEvent(new Event('input'));"
    )
    return opened, searched
