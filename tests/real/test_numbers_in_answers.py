"""The numbers of real answers: those that an earlier result holds are supported, and altered they
are not. What an earlier result holds is found by means of its own."""

import random
import re
from decimal import Decimal
from pathlib import Path

import pytest
from dev.campaign.altering import Place
from dev.campaign.answers import replaced
from dev.campaign.trials import real_trials

from callmark.records.jsontext import canonical_json

pytestmark = pytest.mark.real

NUMBER = re.compile(r"(?<![\w.,/:#-])\$?(\d[\d,]*(?:\.\d+)?)(?![\w:/%-]|\.\d)")
DATE = re.compile(r"\d{4}-\d\d-\d\d|\d\d?:\d\d(?::\d\d)?")
ALTERED = 400


def numbers_of(text: str) -> set[Decimal]:
    found = re.findall(r"(?<![\d.])\d+(?:\.\d+)?(?![\d])", DATE.sub(" ", text))
    return {Decimal(one) for one in found}


@pytest.fixture(scope="module")
def stated(real_data: Path):
    """(trial, place in characters, digits) of every number that an earlier result holds."""
    found = []
    for trial in real_trials(real_data):
        text = trial.trace.model_output
        served = [
            (entry.turn, numbers_of(canonical_json(entry.result)))
            for entry in trial.trace.tool_trace
            if entry.turn is not None and entry.status == "ok"
        ]
        for turn, (start, end) in enumerate(trial.trace.turns, start=1):
            seen = set().union(*(numbers for at, numbers in served if at < turn))
            low, high = (len(text.encode()[:at].decode("utf-8", "ignore")) for at in (start, end))
            for match in NUMBER.finditer(text, low, high):
                digits = match[1].rstrip(",")
                if len(digits) > 1 and Decimal(digits.replace(",", "")) in seen:
                    found.append((trial, match.start(1), digits))
    return found


def label_at(scores, text: str, start: int) -> str | None:
    place = len(text[:start].encode())
    for span in scores.spans:
        for mark in span.values:
            if mark.start <= place < mark.end:
                return mark.label
    return None


def test_numbers_that_an_earlier_result_holds_are_supported(stated):
    labels = [label_at(trial.scores, trial.trace.model_output, at) for trial, at, _ in stated]
    checked = [label for label in labels if label is not None]
    share = checked.count("supported") / len(checked)
    print(f"{len(labels)} numbers, {len(checked)} checkable, {share:.4f} supported")  # noqa: T201
    assert len(checked) > 2000
    assert len(checked) / len(labels) > 0.97
    assert share >= 0.97


def test_altered_they_are_not(stated):
    rng = random.Random(5)
    kept, tried = [], 0
    for trial, at, digits in rng.sample(stated, ALTERED):
        place = rng.randrange(len(digits))
        if not digits[place].isdigit():
            continue
        other = rng.choice([digit for digit in "123456789" if digit != digits[place]])
        altered = digits[:place] + other + digits[place + 1 :]
        everything = canonical_json([entry.result for entry in trial.trace.tool_trace])
        if altered.replace(",", "").lstrip("0") in re.findall(r"[1-9]\d*(?:\.\d+)?", everything):
            continue  # another value of the evidence
        trace = replaced(trial.trace, Place(at, at + len(digits), altered))
        tried += 1
        if label_at(trial.scored(trace), trace.model_output, at) == "supported":
            kept.append(f"{digits} -> {altered} in {trial.sample.sample_id}")
    print(f"{tried} altered, {len(kept)} still supported")  # noqa: T201
    assert tried > 0.8 * ALTERED
    assert len(kept) / tried <= 0.01, kept
