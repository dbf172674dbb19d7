"""Real episodes go through `score` as message lists: the older 314, whose counts are known."""

from collections import Counter
from pathlib import Path

import pytest

from callmark.run.rescore import score_file
from callmark.store.files import read_results

pytestmark = pytest.mark.real
OLDER = ("tau2_main_retail", "tau_bench_airline_gpt4o")


@pytest.fixture(scope="module")
def scored(real_data: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("episodes")
    results = []
    for name in OLDER:
        path = real_data / "episodes" / f"{name}.jsonl"
        out = folder / path.name
        score_file(path, {"out": str(out)})
        results += list(read_results(out))
    return results


def test_every_episode_is_scored(scored):
    assert len(scored) == 314
    assert all(result.status == "ok" and result.scores is not None for result in scored)


def test_every_call_of_an_episode_is_valid_and_answered(scored):
    entries = [entry for result in scored for entry in result.tool_trace]
    assert len(entries) == 1164 + 873
    assert sum(entry.status in ("ok", "error") for entry in entries) == len(entries)


def test_most_values_in_real_answers_are_supported(scored):
    """Four in five stand in an earlier result. 0.1.0 called 294 of them unsupported, nearly all of
    them wrongly: at most a quarter of that is left."""
    totals = Counter(one.label for result in scored for one in result.scores.statements)
    checked = sum(totals.values()) - totals["unchecked"]
    assert totals["supported"] / checked > 0.75, totals
    assert totals["unsupported"] <= 294 // 4, totals


def test_no_privacy_breach_is_seen_where_data_are_only_echoed(scored):
    breaches = [result.sample_id for result in scored if not result.scores.privacy_ok]
    assert breaches == []
