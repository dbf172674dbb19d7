"""What scoring one record costs, in units of a stdlib `json` round trip of what goes in: the item,
the answer and the calls with their results as one JSON line; of a real episode, its own line."""

from __future__ import annotations

import cProfile
import json
import os
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import callmark
from callmark import api, resources
from callmark.config import load_config
from callmark.grounding.binding import Binder
from callmark.grounding.reading import read_stated
from callmark.records.jsontext import plain_object
from callmark.records.results import Result
from callmark.records.samples import Extractor, Sample
from callmark.records.trace import Trace
from callmark.run import play
from callmark.run.rescore import rescore
from callmark.scorers.score import ScoreSettings, _read, score_trial
from callmark.store.files import read_results

ROUNDS = 5
COLD_ROUNDS = 2
TRIPS = 5  # in a row, so that the first of them does not flatter the scorer
SYNTHETIC = 200
EPISODES = 60  # of each source
REAL = {"airline": "tau_bench_airline_gpt4o", "retail": "tau2_main_retail"}
BOUNDS = {"demo": 6, "synthetic": 8, "airline": 25, "retail": 25}
RUNS = 2
INSIDE = "  inside a run"
REMEMBERED = 64  # what keeps more entries than that keeps texts; the others keep patterns
NOTES = (
    "Every second record is measured, after all that was remembered of texts is forgotten and the"
    " other records are scored: so it costs here what it costs in the middle of a run. Cold: all is"
    " forgotten before each record, as if it were the only one. No record is scored twice without"
    " that, so that none finds what was remembered of itself.",
    "The floor: reading alone finds the values of answer, prompt and results, the sentences of the"
    " answer and the records of the results, and asks no rule. It is Python over every word and"
    " leaf where `json` is C over bytes: on short records that alone is above the bounds, on real"
    " episodes most of them. Above it no rule stands out (shares as `cProfile` sees them), so that"
    " no single change reaches the bounds.",
    "Compiled, the same source is no way there either. Tried in November 2026, outside the"
    " repository, on the machine that the other figures are from: Cython 3.3 gains 5 to 10 %, mypyc"
    " (mypy 2.4) 24 to 41 % of the µs, with structs and constants made native as well, 1.5 to 3"
    " minutes of building and 15 MB. Of its time 85 % is inside CPython (allocation, strings,"
    " patterns, dicts), 9 % in what was compiled. It gave one wrong label silently (`==` of two"
    " structs compared pointers), ended the process on deeply nested arguments, and made lists of"
    " 147 generators. Only less work would reach the bounds: fewer strings, objects and searches.",
    "Airline and retail are episodes of tau-bench and tau2, measured where `CALLMARK_REAL_DATA`"
    " names the folder that holds them.",
)


class Input(NamedTuple):
    """One record: as the line that it comes in, and as `score_item` takes it."""

    line: str
    item: dict[str, Any]
    answer: str
    calls: list[dict[str, Any]]
    turns: list[dict[str, int]] | None

    def round_trip(self) -> None:
        for _ in range(TRIPS):
            json.dumps(json.loads(self.line))

    def score(self, extractor: Extractor) -> None:
        callmark.score_item(
            self.item, self.answer, self.calls, turns=self.turns, span_extractor=extractor
        )


def _input(
    item: dict[str, Any], answer: str, calls: Any, turns: Any = None, line: str = ""
) -> Input:
    given = {"item": item, "model_output": answer, "tool_trace": calls, "turns": turns}
    return Input(line or json.dumps(given), item, answer, calls, turns)


def _input_of(result: Result, line: str = "") -> Input:
    one: dict[str, Any] = plain_object(result)
    said = [each["text"] for each in one.get("said") or ()]
    item = {"prompt": one["prompt"], "metadata": one["metadata"], "user_turns": said}
    return _input(item, one["model_output"], one["tool_trace"], one.get("turns"), line)


def demo() -> list[Input]:
    with TemporaryDirectory() as name:
        return [_input_of(result) for result in read_results(_play_demo(Path(name)))]


def _play_demo(folder: Path) -> Path:
    paths = resources.demo_paths()
    out = folder / "results.jsonl"
    config = {
        "runner": "replay",
        "model": str(paths.answers),
        "in": str(paths.dataset),
        "fixtures": str(paths.fixtures),
        "out": str(out),
        "report": str(folder / "report.json"),
    }
    callmark.run(config)
    return out


def synthetic(size: int = SYNTHETIC) -> list[Input]:
    """Answers of about 600 characters to two calls."""
    return [_make(number) for number in range(size)]


def _make(number: int) -> Input:
    flights: list[dict[str, Any]] = [
        {
            "flight": f"HX{number * 7 % 900 + 10 * at + 100}",
            "price": 80 + (number * 37 + at * 53) % 400,
            "departs": f"{(number + 3 * at) % 24:02d}:{number * 11 % 60:02d}",
            "seats_left": (number + at) % 9 + 1,
            "meal": bool((number + at) % 2),
        }
        for at in range(5)
    ]
    hotels: list[dict[str, Any]] = [
        {
            "name": f"{street} {kind}",
            "nightly_rate": 60 + (number * 29 + at * 41) % 200,
            "rating": round(3 + (number * 13 + at * 7) % 20 / 10, 1),
            "check_in": f"2025-0{number % 9 + 1}-1{at}",
            "pool": bool((number + at) % 3),
        }
        for at, (street, kind) in enumerate(
            (("Harbour", "Inn"), ("Mill", "House"), ("Park", "Hotel"))
        )
    ]
    first, second, hotel = flights[0], flights[1], hotels[0]
    answer = (
        f"I looked for flights and hotels for you. The cheapest way is flight {first['flight']},"
        f" which leaves at {first['departs']} and costs ${first['price']}; there are"
        f" {first['seats_left']} seats left. Flight {second['flight']} costs ${second['price']}"
        f" instead. {'It comes with a meal.' if second['meal'] else 'It comes without a meal.'}\n\n"
        f"- **{hotel['name']}**: ${hotel['nightly_rate']} per night, rated {hotel['rating']}\n"
        f"- **{hotels[1]['name']}**: ${hotels[1]['nightly_rate']} per night\n\n"
        f"You could check in on {hotel['check_in']}. Three nights at the {hotel['name']} come to"
        f" ${3 * hotel['nightly_rate']} in total, and with the flight you would pay"
        f" ${3 * hotel['nightly_rate'] + first['price']}."
        f" {'It has a pool' if hotel['pool'] else 'It has no pool'},"
        " and it lies near the old town, a short walk from the station and the fish market. If you"
        " would rather travel later in the day, I can look for other flights. Would you like me to"
        " book it?"
    )
    calls = [
        {"name": "search_flights", "arguments": {"to": "Bergen", "day": number % 28 + 1}},
        {"name": "search_hotels", "arguments": {"city": "Bergen", "nights": 3}},
    ]
    item = {
        "prompt": "Find me a flight to Bergen and a hotel for three nights, please.",
        "metadata": {"call_sequence": calls},
    }
    results = ({"flights": flights}, {"hotels": hotels})
    served = [call | {"result": result} for call, result in zip(calls, results, strict=True)]
    return _input(item, answer, served)


def episodes(folder: Path, name: str) -> list[Input]:
    lines = (folder / "episodes" / f"{REAL[name]}.jsonl").read_text("utf-8").splitlines()
    return [
        _input_of(one, line) for one, line in zip(_rescore(lines[:EPISODES]), lines, strict=False)
    ]


def _rescore(lines: Sequence[str]) -> list[Result]:
    with TemporaryDirectory() as scratch:
        path = Path(scratch, "episodes.jsonl")
        path.write_text("\n".join(lines) + "\n", "utf-8")
        return list(rescore(path, load_config(Path(os.devnull), {})).results)


def _cpu(work: Callable[[], None]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def forget() -> None:
    """Empty what the scorers remember of texts."""
    for name, module in sorted(sys.modules.items()):
        for one in vars(module).values() if name.startswith("callmark.") else ():
            size = one.cache_parameters()["maxsize"] if hasattr(one, "cache_parameters") else None
            if size is not None and size > REMEMBERED:
                one.cache_clear()


class Measured(NamedTuple):
    """Seconds of CPU for all records: what was done with each, and the round trip of its line."""

    done: float
    tripped: float
    records: int

    @property
    def ratio(self) -> float:
        return self.done / self.tripped

    def in_words(self) -> str:
        """Numerator ÷ denominator."""
        done, tripped = (seconds / self.records * 1e6 for seconds in (self.done, self.tripped))
        return f"{done:,.0f} µs ÷ {tripped:,.1f} µs"


def measure(inputs: Sequence[Input], work: Callable[[Input], None]) -> Measured:
    """Of each record the best of several rounds on both sides, which take turns. In a round no
    record is met twice: what was remembered of it is forgotten before."""
    measured, others = inputs[1::2], inputs[::2]
    best = [[1e9, 1e9] for _ in measured]
    for _ in range(ROUNDS):
        forget()
        for one in others:
            work(one)
        for one, known in zip(measured, best, strict=True):
            known[0] = min(known[0], _cpu(partial(work, one)))
            known[1] = min(known[1], _cpu(one.round_trip))
    done, tripped = map(sum, zip(*best, strict=True))
    return Measured(done, tripped / TRIPS, len(measured))


def measure_cold(inputs: Sequence[Input], work: Callable[[Input], None]) -> Measured:
    """Each record by itself, as the first one that this process would ever see."""
    best = [[1e9, 1e9] for _ in inputs]
    for _ in range(COLD_ROUNDS):
        for one, known in zip(inputs, best, strict=True):
            forget()
            known[0] = min(known[0], _cpu(partial(work, one)))
            known[1] = min(known[1], _cpu(one.round_trip))
    done, tripped = map(sum, zip(*best, strict=True))
    return Measured(done, tripped / TRIPS, len(inputs))


@contextmanager
def reading_only() -> Iterator[None]:
    """While this is open, scoring ends before the first rule: all texts and records are read."""
    vars(api).update(score_trial=_read_trial, plain_object=dict)
    try:
        yield
    finally:
        vars(api).update(score_trial=score_trial, plain_object=plain_object)


def _read_trial(sample: Sample, trace: Trace, settings: ScoreSettings) -> dict[str, Any]:
    reading = _read(sample, trace, settings)
    locale = sample.expectation.locale
    values = read_stated(reading.text, reading.grounder.values, locale)
    Binder(reading.outline, reading.records)
    reading.said.known()
    return {"words": len(reading.outline.words), "values": len(values)}


STAGES = {
    "statements: values held against the results": "check",
    "statements: yes and no": "_check_polarity",
    "statements: states and kinds": "_check_states _check_kinds",
    "statements: amounts, ranks, tallies": "_check_amounts _check_ranks _check_tallies",
    "statements: names, quotations, comparisons": "_check_wording",
    "statements: deeds": "_check_deeds",
    "reading: results as records": "records",
    "reading: answer, its outline, what was said": "_read outline read_stated _index",
    "integration": "score_integration",
    "copying": "measure_copying",
    "arguments": "trace_arguments",
    "calls": "score_calls",
    "privacy": "find_pii",
}


def profile(inputs: Sequence[Input]) -> Iterator[tuple[str, str, str]]:
    """Where the time goes, as `cProfile` sees it: a stage may hold part of another."""
    measured, others = inputs[1::2], inputs[::2]
    forget()
    for one in others:
        one.score("claims")
    profiler = cProfile.Profile()
    profiler.enable()
    for one in measured:
        one.score("claims")
    profiler.disable()
    seen = pstats.Stats(profiler)
    calls: int = seen.total_calls  # type: ignore[attr-defined]
    yield "  calls of functions a record", f"{calls / len(measured):.0f}", ""
    rows: dict[Any, Any] = seen.stats  # type: ignore[attr-defined]
    spent: dict[str, float] = {}
    for (file, _, name), (_, _, _, cumulative, _) in rows.items():
        if "callmark" in file or name == "score_trial":
            spent[name] = max(spent.get(name, 0.0), cumulative)
    for stage, names in STAGES.items():
        share = sum(spent.get(name, 0.0) for name in names.split()) / spent["score_trial"]
        yield f"  % of it: {stage}", f"{100 * share:.0f}", ""
    searched = sum(own for (_, _, name), (_, _, own, _, _) in rows.items() if "re.Pattern" in name)
    yield "  % of it: inside patterns", f"{100 * searched / spent['score_trial']:.0f}", ""


@contextmanager
def timed() -> Iterator[list[float]]:
    """The CPU time of every scoring of a trial in a run, while this is open."""
    seconds: list[float] = []

    def score(*given: Any) -> Any:
        start = time.process_time()
        scores = score_trial(*given)
        seconds.append(time.process_time() - start)
        return scores

    vars(play).update(score_trial=score)
    try:
        yield seconds
    finally:
        vars(play).update(score_trial=score_trial)


def inside(work: Callable[[], object], inputs: Sequence[Input]) -> float:
    """Scoring as a run does it: the best of some runs, in units of what goes in."""
    best, tripped = 1e9, 1e9
    for _ in range(RUNS):
        forget()
        with timed() as seconds:
            work()
        best = min(best, sum(seconds))
        tripped = min(tripped, sum(_cpu(one.round_trip) for one in inputs))
    return best / tripped * TRIPS


def _run_demo() -> None:
    with TemporaryDirectory() as name:
        _play_demo(Path(name))


def _rows_of(
    name: str, inputs: Sequence[Input], extractor: Extractor
) -> Iterator[tuple[str, str, str]]:
    size = sum(len(one.line) for one in inputs) / len(inputs) / 1000

    def score(one: Input) -> None:
        one.score(extractor)

    bound = f"<= {BOUNDS[name]}" if extractor == "claims" else ""
    found = measure(inputs, score)
    what = f"score a record ({name}, {extractor}, {size:.1f} kB) ÷ json round trip"
    yield what, f"{found.ratio:.1f}", bound
    yield f"  that is {found.in_words()}", "", ""
    if extractor == "claims":
        cold = measure_cold(inputs, score)
        yield f"  cold: {cold.in_words()}", f"{cold.ratio:.1f}", bound
        with reading_only():
            read = measure(inputs, score)
        yield f"  of it reading, without a rule: {read.in_words()}", f"{read.ratio:.1f}", ""


def rows() -> Iterator[tuple[str, str, str]]:
    """(what, ratio, bound)"""
    shipped = demo()
    yield from _rows_of("demo", shipped, "marker")
    yield from _rows_of("demo", shipped, "claims")
    yield f"{INSIDE} (demo)", f"{inside(_run_demo, shipped):.1f}", "<= 6"
    yield from _rows_of("synthetic", synthetic(), "claims")
    folder = os.environ.get("CALLMARK_REAL_DATA")
    for name in REAL if folder else ():
        inputs = episodes(Path(folder or ""), name)
        yield from _rows_of(name, inputs, "claims")
        lines = [one.line for one in inputs]
        figure = inside(partial(_rescore, lines), inputs)
        yield f"{INSIDE} ({name}, `callmark score`)", f"{figure:.1f}", "<= 25"
        yield from profile(inputs)
