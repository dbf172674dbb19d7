"""What scoring one record costs, in units of a stdlib `json` round trip of that record."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import callmark
from callmark import resources
from callmark.api import builtin_registry
from callmark.records.results import Result
from callmark.records.trace import Trace
from callmark.scorers.score import ScoreSettings, sample_of_result, score_trial
from callmark.store.files import read_results

ROUNDS = 9
BOUND = 6.0


def _records(folder: Path) -> list[tuple[str, Trace, Result]]:
    demo = resources.demo_paths()
    out = folder / "results.jsonl"
    config = {
        "runner": "replay",
        "model": str(demo.answers),
        "in": str(demo.dataset),
        "fixtures": str(demo.fixtures),
        "out": str(out),
        "report": str(folder / "report.json"),
    }
    callmark.run(config)
    lines = out.read_text("utf-8").splitlines()
    found = []
    for line, result in zip(lines, read_results(out), strict=True):
        turns = None if result.turns is None else tuple((t.start, t.end) for t in result.turns)
        trace = Trace(
            model_output=result.model_output,
            tool_trace=result.tool_trace,
            turns=turns,
            said=result.said,
        )
        found.append((line, trace, result))
    return found


def _cpu(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def rows() -> list[tuple[str, str, str]]:
    """(what, ratio, bound): the best of several rounds on both sides, taking turns."""
    with TemporaryDirectory() as name:
        records = _records(Path(name))
    settings = ScoreSettings(registry=builtin_registry())
    claims = ScoreSettings(registry=builtin_registry(), extractor="claims")
    samples = [(sample_of_result(result), trace) for _, trace, result in records]
    lines = [line for line, _, _ in records]

    def round_trip() -> None:
        for line in lines:
            json.dumps(json.loads(line))

    def score(with_settings: ScoreSettings) -> None:
        for sample, trace in samples:
            score_trial(sample, trace, with_settings)

    best = {"json": 1e9, "marker": 1e9, "claims": 1e9}
    for _ in range(ROUNDS):
        best["json"] = min(best["json"], _cpu(round_trip))
        best["marker"] = min(best["marker"], _cpu(lambda: score(settings)))
        best["claims"] = min(best["claims"], _cpu(lambda: score(claims)))
    size = sum(map(len, lines)) / len(lines) / 1000
    return [
        (
            f"score a record ({extractor}, {size:.1f} kB) ÷ json round trip",
            f"{best[extractor] / best['json']:.2f}",
            f"<= {BOUND:g}",
        )
        for extractor in ("marker", "claims")
    ]
