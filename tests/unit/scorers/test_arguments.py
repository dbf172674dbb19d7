"""Where the arguments of calls come from."""

import pytest
from tests.lines import lines_run
from tests.unit.grounding.asking import call, item, score, turns

import callmark
from callmark.records.samples import NOT_RECORDED

TOOLS = [
    {
        "name": "book",
        "description": "Book a flight.",
        "parameters": {
            "type": "object",
            "properties": {
                "cabin": {"type": "string", "enum": ["economy", "business"]},
                "reason": {"type": "string", "description": "'no longer needed' or 'mistake'"},
                "limit": {"type": "integer", "default": 25},
                "kind": {"$ref": "#/$defs/kind"},
                "legs": {
                    "type": "array",
                    "items": {"type": "object", "properties": {"class": {"const": "first"}}},
                },
            },
            "$defs": {"kind": {"anyOf": [{"enum": ["fast", "slow"]}, {"type": "null"}]}},
        },
    }
]
PROMPT = (
    "It is 2024-05-15. I am Mia Li (mia_li_3668), and I fly with two others from New York"
    " to Seattle on May 20th, for at most $480.50. My code is 9502127."
)
RESULT = {
    "flights": [{"number": "HAT023", "price": 152.25}, {"number": "HAT039", "price": 103.5}],
    "cards": {"card_44871": {"brand": "visa", "refund": -50}},
    "note": "Bring your blue boarding pass to gate seven.",
}


def origins(arguments, prompt=PROMPT, result=RESULT, said=()):
    """Of the second call; the first one served the result."""
    text, ranges = turns("", "", "Done.")
    trace = [
        {"name": "find", "arguments": {}, "result": result, "turn": 1},
        {"name": "book", "arguments": arguments, "result": {"ok": True}, "turn": 2},
    ]
    scores = callmark.score_item(
        {"prompt": prompt, "metadata": {"call_sequence": ["find", "book"]}},
        text,
        trace,
        registry=TOOLS,
        turns=ranges,
    )
    return {
        one["path"]: (one["origin"], one.get("source", ""))
        for one in scores["arguments"] or ()
        if one["call"] == 1
    }


def origin(value, key="value", **more):
    return origins({key: value}, **more)[f"/{key}"][0]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Mia", "said"),
        ("mia_li_3668", "said"),
        ("new york", "said"),
        (480.5, "said"),
        (2, "said"),
        ("2024-05-15", "said"),
        ("HAT023", "served"),
        ("card_44871", "served"),
        ("visa", "served"),
        (152.25, "served"),
        ("blue boarding pass", "served"),
        (50, "served"),
        (None, "default"),
        ("", "default"),
        (True, "default"),
        (0, "default"),
        ([], "default"),
        ("2024-05-20", "derived"),
        ("20 May 2024", "derived"),
        (255.75, "derived"),
        ("#W9502127", "derived"),
        ("JFK", "derived"),
        ("SEA", "derived"),
        ("Seattle, New York", "derived"),
        ("2024-05-21", "invented"),
        ("2023-05-20", "derived"),
        ("HAT024", "invented"),
        ("card_44872", "invented"),
        (153.25, "invented"),
        (77, "invented"),
        ("LAX", "invented"),
        ("Noah", "invented"),
        ("mia_li_3669", "invented"),
        ("9502128", "invented"),
    ],
)
def test_every_leaf_has_an_origin(value, expected):
    assert origin(value) == expected


def test_the_leaf_that_served_it_is_named():
    found = origins({"flights": [{"id": "HAT039"}], "price": 103.5})
    assert found["/flights/0/id"] == ("served", "call 0 /flights/1/number")
    assert found["/price"] == ("served", "call 0 /flights/1/price")


@pytest.mark.parametrize(
    ("key", "value"),
    [("cabin", "business"), ("reason", "no longer needed"), ("limit", 25), ("kind", "slow")],
)
def test_what_the_tool_offers_is_a_default(key, value):
    assert origin(value, key) == "default"
    assert origin(value, "other") == "invented"


def test_defaults_are_found_inside_lists():
    assert origins({"legs": [{"class": "first"}]})["/legs/0/class"][0] == "default"


def test_a_count_of_what_the_call_lists_is_derived():
    found = origins({"names": ["Mia", "Li", "Mia"], "n": 3, "m": 9})
    assert found["/n"] == ("derived", "a count")
    assert found["/m"][0] == "invented"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cheap flights to the west with a nice view", ("derived", "its own words")),
        ("flights for about $480.50 on May 20", ("derived", "its own words")),
        ("152.25 + 103.5 = 255.75", ("derived", "its own words")),
        ("top 10 of 2024", ("derived", "its own words")),
        ("write to mia@invented.org", ("invented", "mia@invented.org")),
        ("flight HAT077 please", ("invented", "HAT077")),
        ("she has 318 points", ("invented", "318")),
    ],
)
def test_in_prose_only_the_values_can_be_invented(text, expected):
    assert origins({"query": text})["/query"] == expected


def test_code_is_no_claim():
    assert origin("x = [318, 77]\nprint(sum(x))", "code") == "derived"
    assert origin("get('https://evil.example.net/x')", "code") == "invented"


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        ("tomorrow", "2024-05-16", "derived"),
        ("tomorrow", "2024-05-18", "invented"),
        ("on Friday", "2024-05-17", "derived"),
        ("on Friday", "2024-05-18", "invented"),
        ("any day between May 10 and May 20", "2024-05-18", "derived"),
    ],
)
def test_days_are_counted_from_a_day_that_is_known(said, value, expected):
    assert origin(value, prompt=f"It is 2024-05-15. I fly {said}. ") == expected


def test_what_comes_later_is_no_source():
    text, ranges = turns("", "Done.")
    trace = [{"name": "find", "arguments": {"id": "HAT023"}, "result": RESULT, "turn": 1}]
    item = {"prompt": "Find it.", "metadata": {"call_sequence": ["find"]}}
    scores = callmark.score_item(item, text, trace, turns=ranges)
    assert [one["origin"] for one in scores["arguments"]] == ["invented"]


def test_malformed_calls_have_no_arguments():
    item = {"prompt": "Find it.", "metadata": {"call_sequence": ["find"]}}
    broken = {"name": "find", "arguments": "{", "status": "malformed"}
    assert callmark.score_item(item, "No.", [broken])["arguments"] is None
    assert callmark.score_item(item, "No.", [])["arguments"] is None


@pytest.mark.slow
def test_f70_many_arguments_and_long_results_are_traced_in_linear_time():
    def cost(size):
        result = {"rows": [{"id": f"R{n}", "name": f"Row {n}", "v": n + 0.5} for n in range(size)]}
        arguments = {"ids": [f"X{n}" for n in range(size)], "values": list(range(500, 500 + size))}
        return lines_run(lambda: origins(arguments, result=result))

    assert cost(400) <= 4.5 * cost(100)


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "/srv/app/hello.py", "content": "print(1)"},
        {"keystrokes": "mkdir test_dir\n"},
        {"paths": ["notes/plan7.md"]},
        {"old_string": "a1", "new_string": "b2"},
        {"queries": ["exchange rate"]},
    ],
)
def test_what_a_model_writes_or_makes_is_no_invention(arguments):
    scores = score("Done.", call({"ok": "yes"}, "tool", arguments))
    assert [one["origin"] for one in scores["arguments"] if one["origin"] == "invented"] == []


def test_where_the_prompt_is_not_recorded_nothing_is_said_of_origins():
    prompt = [{"role": "user", "content": NOT_RECORDED}]
    scores = score("It rains.", call({"weather": "rain"}, "w", {"city": "Paris"}), of=item(prompt))
    assert scores["arguments"] is None


@pytest.mark.parametrize("key", ["limit", "top_k", "page_size", "maxResults"])
def test_how_much_of_a_list_is_asked_for_needs_no_source(key):
    assert origin(7, key) == "default"
    assert origin(4711.5, key) == "invented"


def test_the_name_of_a_tool_is_no_invention():
    assert origin("book", "tool") == "default"
    assert origin("rebook", "tool") == "invented"


@pytest.mark.parametrize(
    ("said", "value", "expected"),
    [
        ("How much was it in January 2026?", "2026-01", "derived"),
        ("Was it more in January or in Feb 2026?", "2026-01", "derived"),
        ("Was it more in January or in Feb 2026?", "2026-02", "derived"),
        ("Wie viel war es im März 2026?", "2026-03", "derived"),
        ("How much was it in January 2026?", "2026-02", "invented"),
        ("How much was it in January 2026?", "2025-01", "invented"),
        ("How much was it in January?", "2026-01", "invented"),
    ],
)
def test_a_month_in_digits_is_the_month_that_was_named(said, value, expected):
    assert origin(value, prompt=said) == expected


def test_what_a_call_does_may_be_told_beside_it_and_a_plan_is_the_models_own():
    run = {"command": "cd app && python3 go.py", "description": "Runs go.py with python3"}
    assert set(origins(run).values()) == {("derived", "its own words")}
    other = origins({**run, "description": "Runs go.py with python2"})
    assert other["/description"] == ("invented", "python2")
    todo = {"id": "7", "content": "Design it", "priority": "high", "status": "pending"}
    assert set(origins({"todos": [todo]}).values()) == {("derived", "its own plan")}
    assert origins({"plan": {"tier": "gold"}})["/plan/tier"][0] == "invented"
