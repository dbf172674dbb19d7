"""Real benchmarks and real episodes go through `dataset import`, and what comes out replays."""

import json
import re
from collections import Counter
from pathlib import Path

import msgspec
import pytest

from callmark.broker.broker import ToolBroker
from callmark.broker.nearest import suggest
from callmark.datasets.importing.importing import import_dataset
from callmark.datasets.importing.writing import ImportPaths
from callmark.run.conclude import run
from callmark.run.offers import open_registry
from callmark.run.rescore import score_file
from callmark.store.files import read_results

pytestmark = pytest.mark.real

EPISODES = {"tau_bench_airline_gpt4o": (200, 1164), "tau2_main_retail": (114, 873)}


def imported(source: Path, folder: Path):
    places = ImportPaths(
        dataset=folder / "data.jsonl",
        registry=folder / "tools.json",
        fixtures=folder / "fixtures",
        answers=folder / "answers.jsonl",
    )
    return places, import_dataset(source, places)


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def write_lines(path: Path, values: list[dict]) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(json.dumps(value) + "\n" for value in values), "utf-8")
    return path


def replayed(places: ImportPaths, answers: Path, out: Path, **settings):
    config = {
        "runner": "replay",
        "model": str(answers),
        "in": str(places.dataset),
        "registry": str(places.registry),
        "out": str(out),
        "max_turns": 1000,
        **settings,
    }
    report = run(config).report
    return report, list(read_results(out))


# --- BFCL ------------------------------------------------------------------------------------

# Rows whose accepted answer does not pass the schema of its own function, and why: with every
# argument given, and with every argument left out that may be.
ALWAYS_BROKEN = {
    "parallel_multiple_21": "program text where the schema says array",
    "parallel_multiple_94": "strings in a list of integers",
}
BROKEN = {
    "given": {
        **ALWAYS_BROKEN,
        "simple_python_307": "true where the schema says string",
        "parallel_152": "null where the schema says number",
    },
    "left out": {
        **ALWAYS_BROKEN,
        **dict.fromkeys(
            (
                "parallel_88",
                "parallel_multiple_119",
                "parallel_multiple_87",
                "simple_python_17",
                "simple_python_200",
            ),
            "may be left out by the answers, and is required by the schema",
        ),
    },
}


@pytest.fixture(scope="module")
def bfcl(real_data: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("bfcl")
    source = real_data / "bfcl.jsonl"
    places, report = imported(source, folder)
    return places, report, lines_of(source), lines_of(places.dataset)[1:]


def first_accepted(values: list) -> object:
    value = values[0]
    if isinstance(value, dict):
        return {key: first_accepted(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [first_accepted([entry]) for entry in value]
    return value


def calls_of(row: dict, way: str = "given") -> list[dict]:
    """The first accepted value of each argument, under the names that were published. An empty
    string among them says that it may be left out."""
    return [
        {
            "name": name,
            "arguments": arguments_of(accepted, way),
        }
        for one in row["ground_truth"]
        for name, accepted in one.items()
    ]


def arguments_of(accepted: dict, way: str) -> dict:
    given = {key: [one for one in values if one != ""] for key, values in accepted.items()}
    left_out = {key for key, values in accepted.items() if way == "left out" and "" in values}
    return {
        key: first_accepted(values)
        for key, values in given.items()
        if values and key not in left_out
    }


def answer(sample_id: str, calls: list[dict]) -> dict:
    trace = [{**call, "turn": 1} for call in calls]
    turns = [{"start": 0, "end": 0}]
    return {"sample_id": sample_id, "model_output": "", "tool_trace": trace, "turns": turns}


def test_every_row_is_a_sample(bfcl):
    _, report, rows, items = bfcl
    assert report.format == "bfcl"
    assert [item["metadata"]["sample_id"] for item in items] == [row["id"] for row in rows]
    assert len(items) == report.counts.samples == 1240
    kinds = {entry.kind: entry.count for entry in report.unmapped}
    assert kinds == {"accepted_answer_breaks_schema": 3, "tool_brought_along": 476}
    broken = next(one for one in report.unmapped if one.kind.startswith("accepted"))
    listed = {place.detail.partition(":")[0] for place in broken.places}
    assert listed == set(BROKEN["given"]) - {"parallel_152"}  # a null is taken as left out


@pytest.mark.parametrize("way", sorted(BROKEN))
def test_f80_accepted_answers_get_full_marks_unless_they_break_their_own_schema(
    bfcl, tmp_path, way
):
    places, _, rows, _ = bfcl
    answers = [answer(row["id"], calls_of(row, way)) for row in rows]
    path = write_lines(tmp_path / "answers.jsonl", answers)
    _, results = replayed(places, path, tmp_path / "out.jsonl")
    assert len(results) == 1240
    expecting = [result for result in results if result.scores.calls.expected]
    assert len(expecting) == 1000
    wrong_calls = {result.sample_id for result in expecting if result.scores.call_f1 != 1}
    assert wrong_calls == set()
    parity = {result.sample_id for result in results if result.scores.multi_call_parity_ok is False}
    assert parity == set()
    invalid = {result.sample_id for result in expecting if not result.scores.json_args_valid}
    assert invalid == set(BROKEN[way])
    assert not any(result.scores.controls_with_integration for result in results)


def test_a_call_where_none_is_relevant_contaminates_the_control(bfcl, tmp_path):
    places, _, rows, _ = bfcl
    answers = [
        answer(row["id"], [{"name": row["functions"][0]["name"], "arguments": {}}])
        for row in rows
        if row["category"] == "irrelevance"
    ]
    path = write_lines(tmp_path / "answers.jsonl", answers)
    out = tmp_path / "out.jsonl"
    named = {"in": str(places.dataset), "registry": str(places.registry), "out": str(out)}
    score_file(path, named)
    assert [result.scores.controls_with_integration for result in read_results(out)] == [1] * 240


def test_another_value_is_no_accepted_one(bfcl, tmp_path):
    """Full marks are not given to everything: one argument of each call altered, none is right."""
    places, _, rows, _ = bfcl
    answers = []
    for row in rows:
        calls = calls_of(row)
        if len(calls) == 1 and calls[0]["arguments"]:
            arguments = calls[0]["arguments"]
            required = next(iter(arguments))
            arguments[required] = "something that nobody accepts"
            answers.append(answer(row["id"], calls))
    path = write_lines(tmp_path / "answers.jsonl", answers)
    out = tmp_path / "out.jsonl"
    named = {"in": str(places.dataset), "registry": str(places.registry), "out": str(out)}
    score_file(path, named)
    results = list(read_results(out))
    assert len(results) > 500
    assert [result.sample_id for result in results if result.scores.call_f1] == []


# --- episodes --------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=sorted(EPISODES))
def episodes(request, real_data: Path, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp(request.param)
    places, report = imported(real_data / "episodes" / f"{request.param}.jsonl", folder)
    return places, report, EPISODES[request.param]


def without_results(answers: Path, to: Path) -> Path:
    """The same turns and calls; what answers them has to come from the fixtures."""
    kept = []
    for line in lines_of(answers):
        messages = [one for one in line["messages"] if one["role"] != "tool"]
        kept.append({**line, "messages": messages})
    return write_lines(to, kept)


def comparable(result) -> dict:
    """What must not depend on where the results came from."""
    plain = msgspec.to_builtins(result)
    for entry in plain["tool_trace"]:
        entry.pop("served_by", None)
    for name in ("looked_up", "hits"):  # a recorded result is no question to the fixtures
        plain["scores"]["calls"].pop(name)
    for name in ("fingerprints", "used_fixtures_sha256", "decoding", "index"):
        plain.pop(name)
    return plain


def test_every_episode_is_imported(episodes):
    places, report, (count, calls) = episodes
    assert report.counts.samples == report.counts.answers == count
    assert {entry.kind for entry in report.unmapped} == {"said_at_the_end"}
    made = sum(
        len(m.get("tool_calls") or ()) for a in lines_of(places.answers) for m in a["messages"]
    )
    assert made == calls


@pytest.mark.slow
def test_imported_fixtures_answer_every_call_of_their_own_trial(episodes, tmp_path):
    """Without any recorded result: hit rate 1.0, the same results, and so the same scores as
    those of the recorded conversations, replayed or scored."""
    places, _, (count, calls) = episodes
    asked = without_results(places.answers, tmp_path / "asked.jsonl")
    fixtures = str(places.fixtures)
    report, served = replayed(places, asked, tmp_path / "served.jsonl", fixtures=fixtures)
    entries = [entry for result in served for entry in result.tool_trace]
    assert len(entries) == calls
    assert {entry.served_by for entry in entries} == {"fixture:exact"}
    assert report.metrics["fixture_hit_rate"].value == 1.0
    _, recorded = replayed(places, places.answers, tmp_path / "recorded.jsonl", fixtures=fixtures)
    out = tmp_path / "scored.jsonl"
    named = {"in": str(places.dataset), "registry": str(places.registry), "out": str(out)}
    score_file(places.answers, named)
    scored = list(read_results(out))
    assert len(scored) == count
    assert list(map(comparable, recorded)) == list(map(comparable, scored))
    assert list(map(comparable, served)) == list(map(comparable, scored))


# --- recorded on one trial, replayed on the others -----------------------------------------------

TRIAL = re.compile(r"(.+)-r(\d+)")


@pytest.mark.slow
def test_fixtures_of_the_first_trial_answer_the_others_after_suggest(
    real_data: Path, tmp_path: Path
):
    """Each airline task was run four times. Recorded on the first trial of each task, the fixtures
    answer part of the calls of the others; `fixtures suggest` names the rest, and filled in with
    what the tools really said, all are answered."""
    places, _ = imported(real_data / "episodes" / "tau_bench_airline_gpt4o.jsonl", tmp_path)
    trials = {
        line["metadata"]["sample_id"]: TRIAL.fullmatch(line["metadata"]["sample_id"]).groups()
        for line in lines_of(places.dataset)[1:]
    }
    later = [name for name, (_, trial) in trials.items() if trial != "0"]
    assert Counter(trial for _, trial in trials.values()) == dict.fromkeys("0123", 50)
    recorded = lines_of(places.fixtures_file)
    shared = tmp_path / "shared"
    of_first = [
        {**fixture, "sample_id": name}
        for fixture in recorded
        for name in later
        if fixture["sample_id"] == f"{trials[name][0]}-r0"
    ]
    write_lines(shared / "first.jsonl", of_first)
    subset = part_of(places, later, tmp_path)
    asked = without_results(subset.answers, tmp_path / "asked.jsonl")
    before, results = replayed(subset, asked, tmp_path / "before.jsonl", fixtures=str(shared))
    misses = [(result.sample_id, entry) for result in results for entry in result.tool_trace]
    broker = ToolBroker(shared, open_registry(str(subset.registry)))
    suggested = [json.loads(line) for line in suggest(misses, broker)]
    write_lines(shared / "suggested.jsonl", [filled(line, recorded) for line in suggested])
    after, _ = replayed(subset, asked, tmp_path / "after.jsonl", fixtures=str(shared))
    rates = [report.metrics["fixture_hit_rate"] for report in (before, after)]
    assert [(rate.numerator, rate.denominator) for rate in rates] == [(443, 882), (882, 882)]
    assert len(suggested) == 343


def part_of(places: ImportPaths, ids: list[str], folder: Path) -> ImportPaths:
    wanted = set(ids)
    items = [
        line for line in lines_of(places.dataset)[1:] if line["metadata"]["sample_id"] in wanted
    ]
    answers = [line for line in lines_of(places.answers) if line["sample_id"] in wanted]
    return msgspec.structs.replace(
        places,
        dataset=write_lines(folder / "part.jsonl", [{"__header__": True}, *items]),
        answers=write_lines(folder / "part.answers.jsonl", answers),
    )


def filled(line: dict, recorded: list[dict]) -> dict:
    """The placeholder replaced by what the tool said to the first sample that asked."""
    result = next(
        fixture["result"]
        for fixture in recorded
        if (fixture["sample_id"], fixture["name"]) == (line["_asked_by"][0], line["name"])
        and fixture["key"] == line["key"]
    )
    return {**line, "result": result}
