"""True statements that are written from what real tools returned."""

import json
from collections import Counter
from pathlib import Path

import pytest
from tests.true_statements import write_true
from tests.unit.scorers.test_true_statements import (
    CAUGHT_AT_LEAST,
    PASSED_AT_LEAST,
    labels_of,
    passes,
)
from tests.wrong_statements import write_wrong

from callmark.records.statements import FLAGS

pytestmark = pytest.mark.real
EPISODES = ("tau_bench_airline_gpt4o", "tau2_retail", "tau2_main_retail")
LARGEST = 20_000  # characters of a result


def real_results(folder: Path) -> list[object]:
    """Results with something to speak of, each once."""
    found: dict[str, object] = {}
    for text in _texts(folder):
        try:
            result = json.loads(text)
        except ValueError:
            continue
        if isinstance(result, dict | list) and result and len(text) <= LARGEST:
            found.setdefault(json.dumps(result, sort_keys=True), result)
    return [found[key] for key in sorted(found)]


def _texts(folder: Path):
    for name in EPISODES:
        for line in (folder / "episodes" / f"{name}.jsonl").read_text("utf-8").splitlines():
            for message in json.loads(line)["messages"]:
                if message["role"] == "tool" and isinstance(message["content"], str):
                    yield message["content"]
    for line in (folder / "mcp_recordings.jsonl").read_text("utf-8").splitlines():
        result = json.loads(line).get("result")
        for block in result.get("content", []) if isinstance(result, dict) else ():
            if isinstance(block.get("text"), str):
                yield block["text"]
    for line in (folder / "openai_responses.jsonl").read_text("utf-8").splitlines():
        for message in json.loads(line)["request"].get("messages", []):
            if message.get("role") == "tool" and isinstance(message.get("content"), str):
                yield message["content"]


def test_what_is_true_of_real_results_passes(real_data: Path):
    made: Counter[str] = Counter()
    failed = []
    for one in write_true(real_results(real_data), seed=21, per_form=20):
        made[one.form] += 1
        if not passes(one):
            failed.append((one.form, one.text))
    share = 1 - len(failed) / made.total()
    figures = f"{made.total()} statements, {len(made)} forms, passed {share:.4f}"
    print(figures)  # noqa: T201 - the figures are the point of this test
    assert made.total() >= 1000
    assert len(made) >= 40
    assert share >= PASSED_AT_LEAST, (figures, failed[:20])


def test_the_same_made_wrong_is_caught(real_data: Path):
    written: Counter[str] = Counter()
    caught: Counter[str] = Counter()
    for one in write_wrong(real_results(real_data), 22, 60):
        written[one.form] += 1
        caught[one.form] += bool(labels_of(one) & FLAGS)
    print(dict(caught), dict(written))  # noqa: T201 - as above
    assert all(caught[kind] >= CAUGHT_AT_LEAST * many for kind, many in written.items())
