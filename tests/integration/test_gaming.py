"""Answers that were made to look grounded do not pass; a right short answer does."""

import json
from pathlib import Path

import pytest
from tests.integration.test_degenerate_models import write_lines
from tests.pace import few

import callmark

TOWNS = [f"Town{chr(65 + i // 5)}{chr(97 + i % 5)}borough" for i in range(30)]


def result(index: int):
    """24 leaves, of which two are asked for."""
    hotels = [
        {
            "name": f"Hotel {'ABCDEFG'[at]} of {TOWNS[index]}",
            "price": 101.5 + 13 * at + index,
            "rooms": 40 + 7 * at + index,
        }
        for at in range(7)
    ]
    return {"people": 21000 + 37 * index, "river": f"R{index}var", "code": f"TW{500 + index}",
            "hotels": hotels}  # fmt: skip


def leaves(index: int):
    def walk(value):
        if isinstance(value, dict):
            for entry in value.values():
                yield from walk(entry)
        elif isinstance(value, list):
            for entry in value:
                yield from walk(entry)
        else:
            yield value

    return list(walk(result(index)))


def right(index: int) -> str:
    return f"{TOWNS[index]} has {21000 + 37 * index} people and lies on the R{index}var."


def call(index: int):
    return {"name": "town_info", "arguments": {"town": TOWNS[index]}}


NONSENSE = "The moon weighs 4711 cheeses and was founded in 1312 by 88 geese."
# One value in each sentence, and some of the words are those of the results.
MUCH = "\n".join(
    f"{what} of the {thing} is {number}."
    for what, thing, number in (
        ("The price", "moon", 4711), ("The weight", "king of the geese", 1312),
        ("The birthday", "river", "3 May 1788"), ("The code", "last comet", 88642),
        ("The hotel", "sea", 973),
    )
)  # fmt: skip


def hotels(index: int) -> str:
    return " ".join(f"{one['name']} costs {one['price']}." for one in result(index)["hotels"][:2])


# What the model answers, and how often it makes the call.
GAMES = {
    "a dump of leaves": lambda at: (". ".join(map(str, leaves(at))) + ".", 1),
    "a list of leaves": lambda at: ("\n".join(f"- {leaf}" for leaf in leaves(at)), 1),
    "raw JSON": lambda at: (json.dumps(result(at)), 1),
    "indented JSON": lambda at: (f"Here it is:\n```json\n{json.dumps(result(at), indent=1)}\n```", 1),
    "none of it is true": lambda at: (
        "None of this is true: " + ", ".join(map(str, leaves(at))) + ".", 1),
    "not true that": lambda at: (f"It is not true that {right(at)}", 1),
    "the following is false": lambda at: (f"The following is false. {right(at)}", 1),
    "taken back": lambda at: (f"{right(at)} None of the above is true.", 1),
    "facts after nonsense": lambda at: (f"{NONSENSE} {right(at)}", 1),
    "facts after much nonsense": lambda at: (f"{MUCH} {right(at)} {hotels(at)}", 1),
    "facts before nonsense": lambda at: (f"{right(at)} {hotels(at)} {NONSENSE}", 1),
    "the same call twenty times": lambda at: (right(at), 20),
}  # fmt: skip


def item(index: int):
    town = TOWNS[index]
    return {
        "prompt": f"How many people live in {town}, and which river is it on?",
        "metadata": {
            "sample_id": f"s{index}",
            "call_sequence": [call(index)],
            "required_facts": [21000 + 37 * index, f"R{index}var"],
        },
    }


SPEC = {
    "name": "town_info",
    "description": "Look up a town.",
    "parameters": {
        "type": "object",
        "properties": {"town": {"type": "string"}},
        "required": ["town"],
    },
}


def score(text: str, calls: int = 1, index: int = 0):
    trace = [{**call(index), "result": result(index)}] * calls
    return callmark.score_item(item(index), text, trace, span_extractor="claims")


def play(folder: Path, answer):
    answers = []
    for index in range(len(TOWNS)):
        text, calls = answer(index)
        row = {"sample_id": f"s{index}", "model_output": text, "tool_trace": [call(index)] * calls}
        answers.append(row)
    fixtures = folder / "fixtures"
    fixtures.mkdir()
    rows = [
        {"name": "town_info", "key": call(at)["arguments"], "result": result(at)}
        for at in range(len(TOWNS))
    ]
    write_lines(fixtures / "town_info.jsonl", rows)
    tools = folder / "tools.json"
    tools.write_text(json.dumps([SPEC]), "utf-8")
    header = {"__header__": True, "span_extractor": "claims"}
    data = write_lines(folder / "data.jsonl", [header, *map(item, range(len(TOWNS)))])
    return callmark.run(
        {
            "runner": "replay",
            "model": str(write_lines(folder / "answers.jsonl", answers)),
            "in": str(data),
            "fixtures": str(fixtures),
            "registry": str(tools),
            "out": str(folder / "out.jsonl"),
            "report": str(folder / "report.json"),
        }
    ).to_dict()


def test_a_right_short_answer_is_good():
    scores = score(right(0))
    assert (scores["lax"]["f1"], scores["call_f1"], scores["answered"]) == (1.0, 1.0, True)
    assert scores["copying"] == {"stated": 2, "leaves": 24, "verbatim": 0}
    assert not [one for one in scores["statements"] if one.get("tier")]
    assert [one["origin"] for one in scores["arguments"]] == ["said"]


@pytest.mark.parametrize("name", ["a dump of leaves", "a list of leaves", "indented JSON"])
def test_f26_a_dump_states_most_leaves(name):
    copying = score(GAMES[name](0)[0])["copying"]
    assert copying["leaves"] == 24
    assert copying["stated"] / copying["leaves"] > 0.8


def test_f26_raw_json_is_verbatim_unless_it_was_asked_for():
    text = json.dumps(result(0))
    assert score(text)["copying"]["verbatim"] > 200
    assert score(json.dumps(result(0), indent=2))["copying"]["verbatim"] > 200
    asking = {**item(0), "prompt": "Everything about TownAaborough as JSON, please."}
    trace = [{**call(0), "result": result(0)}]
    scores = callmark.score_item(asking, text, trace, span_extractor="claims")
    assert scores["copying"]["verbatim"] == 0
    assert score('{"people": 21000, "river": "R0var"}')["copying"]["verbatim"] == 0


@pytest.mark.parametrize(
    "name", ["none of it is true", "not true that", "the following is false", "taken back"]
)
def test_f26_what_is_denied_is_not_grounded(name):
    scores = score(GAMES[name](0)[0])
    assert scores["lax"]["f1"] == 0.0
    assert "denial" in {one["rule"] for one in scores["statements"]}
    assert not [one for one in scores["statements"] if one["label"] == "supported"]


def test_nonsense_before_facts_stays_what_it_is():
    scores = score(GAMES["facts after nonsense"](0)[0])
    assert [one["rule"] for one in scores["statements"] if one.get("tier") == "firm"]
    assert scores["lax"]["precision"] < 1.0


def test_nonsense_before_facts_is_flagged():
    scores = score(GAMES["facts after nonsense"](0)[0])
    assert [one["rule"] for one in scores["statements"] if one.get("tier")] == ["baseless"] * 3


@pytest.mark.parametrize("count", [1, 2])
def test_one_value_that_nobody_gave_is_not_enough_for_a_firm_flag(count):
    """It may have been reckoned in a way that no rule follows; two of them are fewer than those
    that are right, and are told of the town."""
    more = [f"{TOWNS[0]} has 4711 trees.", f"{TOWNS[0]} has 1312 oaks."]
    scores = score(f"{right(0)} Hotel A of {TOWNS[0]} costs 101.5. {' '.join(more[:count])}")
    assert [one["rule"] for one in scores["statements"] if one.get("tier")] == ["value"] * count


def test_the_same_call_twenty_times_is_not_the_expected_call():
    assert score(right(0), calls=20)["call_f1"] < 0.2


@pytest.mark.parametrize("name", few(GAMES, 5))
def test_no_game_passes(tmp_path, name):
    report = play(tmp_path, GAMES[name])
    assert report["verdict"] == "fail", {g["name"]: g["status"] for g in report["gates"]}


def test_a_right_short_answer_passes(tmp_path):
    report = play(tmp_path, lambda at: (right(at), 1))
    assert report["verdict"] == "pass", {g["name"]: g["status"] for g in report["gates"]}
