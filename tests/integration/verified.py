"""Datasets with teacher texts, made for one test each, and a way to verify them."""

import json
import os
from pathlib import Path

from callmark.config import load_config
from callmark.run.conclude import RunOutcome
from callmark.run.verify import verify


def write_lines(path: Path, lines) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), "utf-8")
    return path


def read_lines(path) -> list:
    return [json.loads(line) for line in Path(path).read_text("utf-8").splitlines()]


def call(number: int) -> dict:
    return {"name": "web.search", "arguments": {"q": f"people of city {number}"}}


def good(number: int, **changes) -> dict:
    """An item whose teacher is right; `metadata` is merged, other fields replace."""
    metadata = {
        "sample_id": f"s{number:03}",
        "scenario": "lookup",
        "complexity": "simple",
        "call_sequence": [call(number)],
        **changes.pop("metadata", {}),
    }
    text = f"There live {1000 + 7 * number} people there."
    prompt = f"How many people live in city {number}?"
    return {"prompt": prompt, "teacher_text": text, "metadata": metadata, **changes}


def control(number: int, **changes) -> dict:
    metadata = {"expected_behaviour": "no_tool", "call_sequence": None}
    metadata |= changes.pop("metadata", {})
    return good(number, teacher_text="No tool is needed.", metadata=metadata, **changes)


def items(size: int = 40, *, long: int = 2) -> list[dict]:
    """A dataset that passes its own gates: every fifth a control, `long` long contexts."""
    made = [control(at) if at % 5 == 4 else good(at) for at in range(size)]
    for item in made[:long]:
        item["metadata"]["long_context"] = True
        item["prompt"] += " No hurry." * 2400
    return made


def fixture(number: int) -> dict:
    result = {"ok": True, "count": 1000 + 7 * number, "summary": f"City {number} is large."}
    return {"name": "web.search", "key": call(number)["arguments"], "result": result}


class Dataset:
    """A dataset on disk with the fixtures of every city."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "dataset.jsonl"
        self.fixtures = folder / "fixtures"
        write_lines(self.fixtures / "all.jsonl", [fixture(number) for number in range(80)])

    def write(self, lines, header=None) -> Path:
        return write_lines(self.path, [{"__header__": True, **(header or {})}, *lines])

    def verify(self, lines=None, *, header=None, composition=True, **options) -> RunOutcome:
        """`fixtures=None` verifies without them; `composition=False` without the quotas."""
        if lines is not None:
            self.write(lines, header)
        settings = {"dataset": str(self.path), "fixtures": str(self.fixtures), **options}
        return verify(load_config(Path(os.devnull), settings), composition=composition)

    def results(self, lines, **options) -> list[dict]:
        out = self.folder / "verified.jsonl"
        self.verify(lines, out=str(out), **options)
        return read_lines(out)


def outcome_of(outcome: RunOutcome, gate: str):
    return next(one for one in outcome.report.gates if one.name == gate)


def status_of(outcome: RunOutcome, gate: str) -> str:
    return outcome_of(outcome, gate).status
