"""A small real run whose answers are right and wrong in known ways: what reports say of
statements is tested on it."""

from __future__ import annotations

import json
from pathlib import Path

from callmark.cli import main
from callmark.records.results import Statement
from callmark.records.statements import FLAGS as FLAG_LABELS
from callmark.records.statements import StatementLabel, Tier

FLIGHTS = {
    "flights": [
        {"flight_number": "HAT009", "price": 120, "refundable": True, "seats_left": 31},
        {"flight_number": "HAT258", "price": 257, "refundable": False, "seats_left": 48},
    ]
}
RESERVATION = {"reservation_id": "R7K2M9", "bags_included": False, "paid": 1840.5}
SEARCH = {"name": "web.search", "arguments": {"q": "flights on Thursday"}}
LOOK_UP = {"name": "web.search", "arguments": {"q": "my reservation"}}
ANSWERS = {
    "right": (SEARCH, FLIGHTS, "HAT009 costs $120. HAT258 costs $257."),
    "shifted": (LOOK_UP, RESERVATION, "You paid $1840.6 for R7K2M9."),
    "other-record": (SEARCH, FLIGHTS, "HAT009 costs $257."),
    "yes-for-no": (LOOK_UP, RESERVATION, "You paid 1840.5, and bags are included."),
    "sum": (SEARCH, FLIGHTS, "Both together: $120 + $257 = $399."),
    "invented-id": (LOOK_UP, RESERVATION, "Your reservation R7K2M8 is paid: 1840.5."),
    "nothing-checked": (LOOK_UP, RESERVATION, "There are 2 `lovely` rooms."),
}
# sample -> the label and rule of its flag
FLAGS = {
    "shifted": ("unsupported", "misread"),
    "other-record": ("misattributed", "record"),
    "yes-for-no": ("contradicted", "polarity"),
    "sum": ("miscalculated", "equation"),
    "invented-id": ("altered", "identifier"),
}


def recorded_lines() -> list[dict]:
    return [
        {
            "sample_id": name,
            "prompt": "What is there?",
            "metadata": {"call_sequence": [call]},
            "model_output": text,
            "tool_trace": [{**call, "result": result}],
        }
        for name, (call, result, text) in ANSWERS.items()
    ]


def write_run(folder: Path, *options: str, lines: list[dict] | None = None) -> Path:
    """The results file of the answers, scored by the command; its report stands beside it."""
    answers, out = folder / "answers.jsonl", folder / "results.jsonl"
    recorded = recorded_lines() if lines is None else lines
    answers.write_text("".join(f"{json.dumps(line)}\n" for line in recorded), "utf-8")
    main(["score", str(answers), "--out", str(out), "--quiet", *options])
    return out


def stated(*labels: StatementLabel, tier: Tier = "firm") -> tuple[Statement, ...]:
    """Hand-made statements, one byte each; what is a flag has the tier."""
    return tuple(
        Statement(
            start=at,
            end=at + 1,
            label=label,
            rule="value",
            tier=tier if label in FLAG_LABELS else None,
            because="says “9”; no result has it" if label in FLAG_LABELS else "",
        )
        for at, label in enumerate(labels)
    )
