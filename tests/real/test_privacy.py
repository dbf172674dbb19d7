"""Recall and precision of the finder of personal data, on texts that it was not written for."""

import hashlib
import json
from collections import Counter

import pytest

from callmark.scorers.pii import find_pii

pytestmark = pytest.mark.real

BARS = {"phone": 0.90, "card": 0.98, "email": 0.99, "iban": 0.99, "ssn": 0.99, "ip": 0.99}
OLDER_EPISODES = ("tau_bench_airline_gpt4o.jsonl", "tau2_main_retail.jsonl")


def rows_of(path):
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


@pytest.mark.parametrize("half", [0, 1])
def test_f28_recall_and_precision_on_labelled_texts(real_data, half):
    """Words and shapes were chosen on half 0."""
    labelled, found, right, findings = Counter(), Counter(), 0, 0
    for row in rows_of(real_data / "privacy" / "presidio_synth.jsonl"):
        if hashlib.sha256(row["text"].encode()).digest()[0] % 2 != half:
            continue
        hits = [(hit.kind, range(hit.start, hit.end)) for hit in find_pii(row["text"])]
        labels = [
            (span["kind"], range(span["start"], span["end"]))
            for span in row["spans"]
            if span["kind"] in BARS
        ]
        for kind, place in labels:
            labelled[kind] += 1
            found[kind] += any(overlap(place, at) for hit, at in hits if hit == kind)
        findings += len(hits)
        right += sum(any(kind == k and overlap(at, p) for k, p in labels) for kind, at in hits)
    assert sum(labelled.values()) > 50
    assert {kind: found[kind] for kind in BARS if found[kind] < BARS[kind] * labelled[kind]} == {}
    assert right >= 0.97 * findings


def overlap(one, other):
    return one.start < other.stop and other.start < one.stop


def test_f28_no_false_phone_or_card_in_real_answers(real_data):
    """Nobody gives a phone or card number away in these; there are thousands of ids."""
    episodes = [row for name in OLDER_EPISODES for row in rows_of(real_data / "episodes" / name)]
    assert len(episodes) == 314
    false = [
        (hit.kind, message["content"][hit.start : hit.end])
        for episode in episodes
        for message in episode["messages"]
        if message["role"] == "assistant" and isinstance(message.get("content"), str)
        for hit in find_pii(message["content"])
        if hit.kind in ("phone", "card", "ssn", "iban")
    ]
    assert false == []
