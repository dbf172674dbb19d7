"""Calls without a fixture as the terminal lists them."""

import json

from tests.builders import make_result, missed_call, numbered
from tests.unit.reports.finished_runs import report_of

from callmark.cli.reporting import RunPaths, explained_misses


def test_a_call_that_was_missed_again_and_again_is_explained_once(tmp_path):
    line = {"name": "web.search", "key": {"q": "rope"}, "result": {"count": 1}}
    (tmp_path / "web.search.jsonl").write_text(json.dumps(line) + "\n")
    keys = ["same", "same", "same", "other"]
    results = numbered(make_result(trace=[missed_call(key={"q": key})], misses=1) for key in keys)
    texts = explained_misses(report_of(results), RunPaths(fixtures=str(tmp_path)))
    assert ["same" in text for text in texts] == [True, False]
