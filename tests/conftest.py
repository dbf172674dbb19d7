"""Property tests draw the same examples every time: a green run stays green. What became of the
spoilt files is printed at the end."""

import os
from collections import Counter

from hypothesis import settings
from tests.fuzz.table import SPOILT, table_of

os.environ.pop("GITHUB_STEP_SUMMARY", None)  # what tests run has nothing to say there

settings.register_profile("repeatable", derandomize=True, deadline=None)
settings.load_profile("repeatable")


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
