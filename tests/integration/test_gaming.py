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


def people(index: int) -> int:
    return 21000 + 37 * index


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
    "each fact denied": lambda at: (
        f"{TOWNS[at]} does not have {people(at)} people and is not on the R{at}var.", 1),
    "each fact denied in German": lambda at: (
        f"{TOWNS[at]} hat keine {people(at)} Einwohner. Es liegt nicht auf dem R{at}var.", 1),
    "each fact denied in Spanish": lambda at: (
        f"{TOWNS[at]} no tiene {people(at)} habitantes. El río no es el R{at}var.", 1),
    "each fact denied in French": lambda at: (
        f"{TOWNS[at]} n'a pas {people(at)} habitants. Ce n'est pas le R{at}var.", 1),
    "only asked": lambda at: (f"Does {TOWNS[at]} have {people(at)} people? Is it on the R{at}var?", 1),
    "whether it is so": lambda at: (
        f"Who knows whether {TOWNS[at]} has {people(at)} people and lies on the R{at}var.", 1),
    "fact and denial": lambda at: (
        f"{right(at)} {TOWNS[at]} does not have {people(at)} people. It has no river.", 1),
    "corrected to what is wrong": lambda at: (
        f"{right(at)} No: {TOWNS[at]} has {people(at) + 411} people and lies on the Rhine.", 1),
    "all I told you is wrong": lambda at: (f"{right(at)}\nNo, all I told you is wrong.", 1),
    "alternatives": lambda at: (
        f"{people(at)}, {people(at) + 97} or {people(at) + 411} people, on the R{at}var.", 1),
    "millions": lambda at: (f"{TOWNS[at]} has {people(at)} million people. R{at}var.", 1),
    "in a comment": lambda at: (f"<!-- {right(at)} --> I cannot tell you.", 1),
    "soft hyphens": lambda at: (
        f"{right(at)} " + "; ".join("\u00ad".join(str(leaf)) for leaf in leaves(at)), 1),
    "zero-width spaces": lambda at: (
        ". ".join(["\u200b".join(str(leaf)) for leaf in leaves(at)]) + f" {right(at)}", 1),
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


def play(folder: Path, answer, asked=item, served=result):
    answers = []
    for index in range(len(TOWNS)):
        text, calls = answer(index)
        row = {"sample_id": f"s{index}", "model_output": text, "tool_trace": [call(index)] * calls}
        answers.append(row)
    fixtures = folder / "fixtures"
    fixtures.mkdir()
    rows = [
        {"name": "town_info", "key": call(at)["arguments"], "result": served(at)}
        for at in range(len(TOWNS))
    ]
    write_lines(fixtures / "town_info.jsonl", rows)
    tools = folder / "tools.json"
    tools.write_text(json.dumps([SPEC]), "utf-8")
    header = {"__header__": True, "span_extractor": "claims"}
    data = write_lines(folder / "data.jsonl", [header, *map(asked, range(len(TOWNS)))])
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


@pytest.mark.parametrize("name", [*GAMES][12:-2])
def test_what_is_not_stood_by_is_no_fact(name):
    scores = score(GAMES[name](0)[0])
    assert scores["lax"]["found"] < 2
    assert scores["lax"]["f1"] < 0.9


@pytest.mark.parametrize("mark", ["\u00ad", "\u200b", "\u2060", "\ufeff"])
def test_invisible_characters_hide_no_copy(mark):
    copying = score("; ".join(mark.join(str(leaf)) for leaf in leaves(0)))["copying"]
    assert copying["stated"] / copying["leaves"] > 0.8


def test_many_leaves_of_which_few_differ_can_be_dumped():
    parcels = [{"parcel": 700 + at, "state": "sent", "by": "DHL", "to": "DE"} for at in range(16)]
    found = {**call(0), "result": {"people": 21000, "parcels": parcels}}
    dump = ", ".join(str(value) for parcel in parcels for value in parcel.values())
    scores = callmark.score_item(item(0), f"21000; {dump}", [found], span_extractor="claims")
    assert scores["copying"] == {"stated": 20, "leaves": 20, "verbatim": 0}
    found["result"]["parcels"] = parcels[:14]
    scores = callmark.score_item(item(0), f"21000; {dump}", [found], span_extractor="claims")
    assert scores["copying"] == {"stated": 18, "leaves": 18, "verbatim": 0, "served": 57}


PLANS = ("basic", "silver", "gold", "platinum")
STATES = ("pending", "shipped", "delivered", "returned")


def member(index: int):
    states = [STATES[(index * 7 + at * at) % 4] for at in range(6)]
    return {"plan": PLANS[index * 5 // 3 % 4], "tickets": 1 + index * 5 % 11, "states": states}


# What is said of every customer, whatever was served.
LISTS = {
    "all plans": lambda at: f"Customer {at} is on basic, silver, gold or platinum.",
    "all plans, line by line": lambda at: "\n".join(f"- {plan}" for plan in PLANS),
    "all numbers, line by line": lambda at: "\n".join(
        f"Maybe {one} tickets on {plan}." for one in range(1, 12) for plan in PLANS
    ),
}


def member_item(index: int):
    facts = [member(index)["plan"], member(index)["tickets"]]
    metadata = {"sample_id": f"s{index}", "call_sequence": [call(index)], "required_facts": facts}
    return {"prompt": f"Plan and tickets of customer {index}?", "metadata": metadata}


@pytest.mark.parametrize("name", few([*LISTS][::-1]))
def test_what_is_said_whatever_was_served_does_not_pass(tmp_path, name):
    """Judged by its own facts against another's results it had a lift: they are not there."""
    report = play(tmp_path, lambda at: (LISTS[name](at), 1), member_item, member)
    failed = {gate["name"] for gate in report["gates"] if gate["status"] == "fail"}
    assert report["verdict"] == "fail"
    assert failed & {"grounding_lift", "integration_f1_macro_lax"}
    if "numbers" in name:
        assert report["metrics"]["integration_f1_macro_lax"]["value"] == 1.0
        assert report["metrics"]["grounding_lift"]["value"] == 0.0


def test_who_picks_the_right_one_of_few_passes(tmp_path):
    def answer(at):
        return f"On {member(at)['plan']}, with {member(at)['tickets']} tickets.", 1

    assert play(tmp_path, answer, member_item, member)["verdict"] == "pass"


def test_whoever_is_asked_for_everything_may_tell_everything(tmp_path):
    """All leaves are required, and a table with all of them is no copy."""

    def asking(index):
        known = item(index)
        known["metadata"]["required_facts"] = leaves(index)
        return known

    def table(index):
        rows = [" | ".join(map(str, one.values())) for one in result(index)["hotels"]]
        told = "\n".join(
            f"| {row} |" for row in ["Hotel | Price | Rooms", "--- | --- | ---", *rows]
        )
        return f"{right(index)} Its code is TW{500 + index}.\n\n{told}", 1

    report = play(tmp_path, table, asking)
    assert report["verdict"] == "pass", {g["name"]: g["status"] for g in report["gates"]}


@pytest.mark.parametrize("name", few(GAMES, 5))
def test_no_game_passes(tmp_path, name):
    report = play(tmp_path, GAMES[name])
    assert report["verdict"] == "fail", {g["name"]: g["status"] for g in report["gates"]}


def test_a_right_short_answer_passes(tmp_path):
    report = play(tmp_path, lambda at: (right(at), 1))
    assert report["verdict"] == "pass", {g["name"]: g["status"] for g in report["gates"]}
