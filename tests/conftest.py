"""Property tests draw the same examples every time: a green run stays green. `make test` draws some,
`make test-slow` all of them (CALLMARK_DRAW=all). What became of the spoilt files is printed at the
end."""

import gc
import os
from collections import Counter

import pytest
from hypothesis import is_hypothesis_test, settings
from tests.fuzz.table import SPOILT, table_of

os.environ.pop("GITHUB_STEP_SUMMARY", None)  # what tests run has nothing to say there

ALL = os.environ.get("CALLMARK_DRAW") == "all"
FEW = 25
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, max_examples=100 if ALL else FEW
)
settings.load_profile("repeatable")


def pytest_collection_modifyitems(items):
    for item in items:
        test = getattr(item, "obj", None)
        if not is_hypothesis_test(test):
            continue
        item.add_marker(pytest.mark.drawn)
        asked = test._hypothesis_internal_use_settings
        if not ALL and asked.max_examples > FEW:
            test._hypothesis_internal_use_settings = settings(asked, max_examples=FEW)


def pytest_collection_finish():
    """Torch and twelve thousand tests stay to the end: no collection of garbage looks at them again,
    nor does a child that ends."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter):
    ends: dict[str, Counter[str]] = {}
    for report in (*terminalreporter.getreports("passed"), *terminalreporter.getreports("failed")):
        for what, value in report.user_properties:
            if what == SPOILT:
                name, row = value
                ends.setdefault(name, Counter()).update(row)
    if ends:
        terminalreporter.section(SPOILT)
        terminalreporter.write_line("\n".join(table_of(ends)))
