"""Every checkable value of a span is supported, said by the user, derived, or unsupported."""

import pytest
from tests.unit.grounding.asking import call, item, labels, score, statements, turns

from callmark.grounding.values import find_values


def label(answer, *calls, **more):
    [one] = labels(score(f"Integration: {answer}", *calls, **more))
    return one


class TestUserSaid:
    def test_what_the_prompt_says_is_user_said_and_grounds_nothing(self):
        scores = score(
            "Integration: the 55 of them", call({"count": 42}), of=item("I have 55 things")
        )
        assert labels(scores) == ["user_said"]
        assert scores["lax"]["f1"] == 0

    def test_an_argument_of_an_earlier_call_is_user_said(self):
        assert (
            label("the 55", call({"count": 42}, arguments={"q": "x", "top_k": 55})) == "user_said"
        )
        assert label("the 55", call({"count": 42}, arguments={"q": "room 55"})) == "user_said"
        answer, ranges = turns("Integration: the 55.", "Integration: the 55.")
        scores = score(answer, call({"n": 1}, arguments={"q": "room 55"}, turn=1), turns=ranges)
        assert labels(scores)[1] == "user_said"

    def test_an_argument_of_a_later_call_is_not(self):
        answer, ranges = turns("Integration: the 55.", "Done.")
        scores = score(answer, call({"n": 1}, arguments={"q": "room 55"}, turn=2), turns=ranges)
        assert labels(scores) == ["unsupported"]

    def test_what_was_said_early_and_again_later_counts_from_the_first_time(self):
        answer, ranges = turns("", "Integration: the 55 in room_id.", "Integration: the 55.")
        scores = score(
            answer,
            call({"room_id": True}, arguments={"q": "room 55"}, turn=1),
            of={**item(), "user_turns": ["I said 55, and room_id."]},
            turns=ranges,
        )
        assert labels(scores) == ["user_said", "user_said", "user_said"]

    def test_evidence_wins_over_what_the_user_said(self):
        assert label("the 42", call({"count": 42}), of=item("Are there 42?")) == "supported"

    @pytest.mark.parametrize(
        ("answer", "prompt"),
        [
            ("1,234 of them", "I have 1234"), ("on January 5, 2024", "it is 2024-01-05"), ("for HAT 023", "about HAT-023"),
            ("at https://example.com/docs", "see example.com/docs"), ("for “green door”", "about the green door"),
            ("in `main.py`", "open main.py please"), ("to joe@example.org", "mail Joe@example.org"),
        ],
    )  # fmt: skip
    def test_forms_do_not_matter(self, answer, prompt):
        assert label(answer, call({"count": 9}), of=item(prompt)) == "user_said"

    def test_earlier_user_messages_and_content_parts_count(self):
        prompt = [
            {"role": "system", "content": "You are kind"},
            {
                "role": "user",
                "content": [
                    {"type": "text", "text": "I have 55"},
                    {"type": "image_url", "image_url": {"url": "x"}},
                ],
            },
        ]
        assert label("the 55", call({"count": 42}), of=item(prompt)) == "user_said"

    def test_user_turns_count_once_they_were_sent(self):
        of = item("Hello there")
        of["user_turns"] = ["I have 55"]
        answer, ranges = turns("Integration: the 55.", "Integration: the 55.")
        scores = score(answer, of=of, turns=ranges)
        assert labels(scores) == ["unsupported", "user_said"]

    def test_part_of_a_number_in_the_prompt_is_not_said(self):
        assert (
            label("the 55", call({"count": 42}), of=item("I have 1555 and 55.5")) == "unsupported"
        )


PRICES = {"items": [{"price": 110, "name": "pen"}, {"price": 250, "name": "book"}]}


class TestDerived:
    @pytest.mark.parametrize(
        ("answer", "result", "expected"),
        [
            ("360", PRICES, "derived"), ("140", PRICES, "derived"), ("-140", PRICES, "derived"),
            ("361", PRICES, "unsupported"), ("27500", PRICES, "unsupported"),
            ("360", {"a": 110, "b": 250}, "unsupported"), ("140", {"a": 110, "b": 250}, "unsupported"),
            ("50", {"price": 12.5, "qty": 4}, "derived"), ("2200", {"price": 110, "qty": 20}, "derived"),
            ("2310", {"price": 110, "qty": 21}, "unsupported"), ("27.5", {"price": 11, "qty": 2.5}, "derived"),
            ("31.25", {"price": 12.5, "qty": 2.5}, "unsupported"),
            ("600", {"sales": [100, 200, 300]}, "derived"), ("650", {"sales": [100, 200, 300]}, "unsupported"),
            ("7", {"names": ["aaa", "bbb", "ccc", "ddd", "eee", "fff", "ggg"]}, "derived"),
            ("6", {"names": ["aaa", "bbb", "ccc", "ddd", "eee", "fff", "ggg"]}, "unsupported"),
            ("2", PRICES, "derived"), ("0.30", {"x": [{"p": 0.1}, {"p": 0.2}]}, "derived"),
            ("2.27", {"x": [{"p": 250}, {"p": 110}]}, "unsupported"),
        ],
    )  # fmt: skip
    def test_each_rule(self, answer, result, expected):
        assert label(f"it is {answer}", call(result)) == expected

    def test_a_sum_over_two_results_under_one_key_is_derived(self):
        assert label("it is 360", call({"price": 110}), call({"price": 250})) == "derived"
        assert label("it is 360", call({"price": 110}), call({"cost": 250})) == "unsupported"

    def test_derived_values_ground_no_marker_span(self):
        scores = score("Integration: it is 360", call(PRICES))
        assert (scores["lax"]["grounded"], scores["values"]["derived"]) == (0, 1)

    def test_evidence_wins_over_derivation(self):
        assert label("it is 110", call(PRICES)) == "supported"

    @pytest.mark.parametrize(("count", "expected"), [(32, "derived"), (33, "unsupported")])
    def test_only_results_with_few_numbers_are_combined(self, count, expected):
        result = {"rows": [{"n": 1000 + 37 * step * step} for step in range(count)]}
        wanted = result["rows"][0]["n"] + result["rows"][5]["n"]
        assert wanted not in [row["n"] for row in result["rows"]]
        assert label(f"it is {wanted}", call(result)) == expected

    def test_the_limit_is_on_distinct_numbers(self):
        result = {"rows": [{"n": 1000 + 37 * (step % 10) ** 2} for step in range(90)]}
        assert label("it is 2037", call(result)) == "derived"

    def test_a_user_said_number_is_no_term(self):
        assert label("it is 152", call({"n": 97}), of=item("I have 55")) == "unsupported"

    def test_an_echoed_number_is_no_term(self):
        assert (
            label("it is 630", call({"top_k": 7, "price": 90}, arguments={"q": "x", "top_k": 7}))
            == "unsupported"
        )

    def test_a_derived_value_does_not_block_a_line(self):
        result = {
            "content": "Revenue grew strongly there\nCosts fell a bit",
            "sales": [100, 200, 300],
        }
        assert (
            score("Integration: Revenue grew strongly there by 600", call(result))["lax"][
                "grounded"
            ]
            == 1
        )


def test_unsupported_values_are_marked_with_their_kind_and_bytes():
    answer = "Integration: für 77 und `neu` ok"
    scores = score(answer, call({"count": 42}))
    data = answer.encode()
    marks = scores["spans"][0]["values"]
    assert [(data[m["start"] : m["end"]].decode(), m["kind"], m["label"]) for m in marks] == [
        ("77", "number", "unsupported"),
        ("`neu`", "code", "unsupported"),
    ]
    assert scores["values"] == {"supported": 0, "derived": 0, "user_said": 0, "unsupported": 2}


@pytest.mark.parametrize(
    ("answer", "leaf", "expected"),
    [
        ('it says "green door"', "behind the green door there is a room", "supported"),
        ('it says "red door"', "behind the green door there is a room", "unsupported"),
        ('it says "een doo"', "behind the green door there is a room", "unsupported"),
        ("in `src/main.py`", "src/main.py", "supported"),
        ("in `src/other.py`", "src/main.py", "unsupported"),
        ("in `main`", "open main now or later", "supported"),
        ("`True`", True, "unsupported"),
    ],
)
def test_quotations_and_code_are_supported_by_a_leaf_that_holds_them(answer, leaf, expected):
    assert label(answer, call({"x": leaf})) == expected


def test_part_of_an_identifier_in_the_prompt_is_not_said():
    result = call({"count": 42})
    assert label("it is HAT023", result, of=item("about HAT0234")) == "unsupported"
    assert label("it is HAT-023", result, of=item("about XHAT023")) == "unsupported"
    assert label("it is HAT-023", result, of=item("about HAT023")) == "user_said"


@pytest.mark.parametrize("arguments", [{"q": "room 55"}, '{"q": "room 55"}'])
def test_arguments_of_calls_in_the_prompt_are_said_in_both_forms(arguments):
    function = {"name": "web.search", "arguments": arguments}
    made = {"role": "assistant", "content": None, "tool_calls": [{"id": "1", "function": function}]}
    of = item([{"role": "user", "content": "x"}, made])
    assert label("the 55", call({"count": 42}), of=of) == "user_said"


LAPTOP = {"item_id": "9844888101", "options": {"screen size": "15-inch", "battery": "20 hours"}}
PROSE = {
    "text": "The county paid $45 million for the bridge, which took 60 days to build, and the ferry "
    "runs for 20 minutes. "
    + "Nobody had asked for it, and few have used it since it was opened. "
    * 4
}


@pytest.mark.parametrize(
    ("answer", "result", "flagged"),
    [
        ("The laptop has a 15 mm screen.", LAPTOP, ["15"]),
        ("The laptop has a 15-inch screen.", LAPTOP, []),
        ("Its battery lasts 20 minutes.", LAPTOP, ["20"]),
        ("The bridge cost £45 million.", PROSE, ["45 million"]),
        ("The bridge cost $45 million.", PROSE, []),
        ("It took 60 hours to build.", PROSE, ["60"]),
        ("It took 60 days to build.", PROSE, []),
        ("The ferry runs for about 20 days.", PROSE, ["20"]),
    ],
)
def test_another_unit_is_found_in_prose_and_where_the_user_named_the_right_one(
    answer, result, flagged
):
    prompt = "Which laptop of 15 inch with a battery of 20 hours is there?"
    found = statements(answer, result, prompt=prompt)
    units = [text for text, label, _ in found if label == "unit_mismatch"]
    assert [text.strip("$£") for text in units] == flagged


def test_a_unit_that_the_user_named_is_his():
    found = statements("Your 20 minutes are noted.", LAPTOP, prompt="I have 20 minutes.")
    assert [(label, rule) for _, label, rule in found] == [("user_said", "said")]


BOOKINGS = [
    {"booking_id": "BK-4411", "travellers": [{"first": "Ana"}]},
    {"booking_id": "BK-7702", "travellers": [{"first": "Bo"}, {"first": "Cy"}, {"first": "Di"}]},
]


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("Booking BK-4411 has 1 traveller.", "derived"),
        ("Booking BK-4411 includes only 3 travellers.", "miscounted"),
        ("Booking BK-7702 has 3 travellers.", "derived"),
        ("Booking BK-7702 (4 travellers) is confirmed.", "miscounted"),
        ("There are 9 travellers.", "miscounted"),
        ("I could change booking BK-4411 to 3 travellers.", "derived"),
    ],
)
def test_a_count_is_that_of_the_record_it_is_said_of(answer, label):
    found = statements(answer, *BOOKINGS, prompt="Is there room for 9 in 3 cabins?")
    assert [one for text, one, _ in found if text in "1349"] == [label]


def test_a_number_that_the_user_counted_is_no_miscount():
    prompt = "We are 9 travellers."
    assert statements("9 travellers are noted.", *BOOKINGS, prompt=prompt)[0][1] == "user_said"


@pytest.mark.parametrize("prompt", ["What is left?", "I paid 247 in all."])
def test_a_scale_that_nobody_named_is_a_mismatch(prompt):
    found = statements("You paid $247 million.", {"paid": 247}, prompt=prompt)
    assert [(label, rule) for _, label, rule in found] == [("unit_mismatch", "unit")]
    found = statements("You paid $247 million.", {"paid": 247}, prompt="I paid 247 million.")
    assert [label for _, label, _ in found] == ["user_said"]


CAMERAS = {
    "variants": [
        {"id": "A1", "resolution": "4K", "zoom": "2x", "battery": "500 ml", "price": 481.5},
        {"id": "A2", "resolution": "5K", "zoom": "5x", "battery": "750 ml", "price": 466.75},
    ]
}


@pytest.mark.parametrize(
    ("answer", "prompt", "expected"),
    [
        ("A1 is the 4K one", "Any?", ["supported"]),
        ("A1 is the 3K one", "I have 3 of them", ["unsupported"]),  # nobody said 3K
        ("A1 is the 3K one", "I want a 3K one", ["user_said"]),
        ("Shall I send the 500 ml one?", "Any?", ["supported"]),
        ("Shall I send the 502 ml one?", "Any?", ["unsupported"]),
        ("Shall I send a voucher over $502?", "Any?", ["not_claimed"]),
    ],
)
def test_sizes_are_facts_in_offers_and_whoever_said_the_number(answer, prompt, expected):
    found = statements(answer, CAMERAS, prompt=prompt)
    assert [label for text, label, _ in found if text.lstrip("$")[:1].isdigit()] == expected


@pytest.mark.parametrize(
    ("answer", "result", "expected"),
    [
        ("The refund is $7.76", {"refund": 3.76, "nights": 4}, "unsupported"),
        ("The total is $7.76", {"refund": 3.76, "fee": 4}, "derived"),
        ("It is $3.76 and $4, a total of $7.76", {"refund": 3.76, "days": 4}, "derived"),
    ],
)
def test_a_digit_that_stands_about_makes_no_sum(answer, result, expected):
    assert statements(answer, result)[-1][1] == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("See https://example.org/ for more.", [("unchecked", "site")]),
        ("See https://example.org/a/page for more.", [("unsupported", "link")]),
    ],
)
def test_a_site_is_recommended_and_a_page_is_stated(answer, expected):
    found = statements(answer, {"count": 42})
    assert [(label, rule) for text, label, rule in found if "example" in text] == expected


def test_what_a_server_sealed_cannot_be_looked_up():
    page = {"type": "web_search_result", "url": "https://a.test", "title": "Weather"}
    answer = "The reading is 5281."
    assert {row[1] for row in statements(answer, [page])} == {"unsupported"}
    sealed = page | {"encrypted_content": "Eu8HCioIDBgCIiQ1NTc2NjExZi1hMWVlLTQyN2Mt"}
    assert {row[1:] for row in statements(answer, [sealed])} == {("unchecked", "sealed")}
    for flag in ({"encrypted_at_rest": True}, {"encrypted_by": "kms"}):
        assert {row[1] for row in statements(answer, [page | flag])} == {"unsupported"}


def test_what_is_supposed_is_an_example():
    record = {"price": 950}
    told = statements('If the price were "1234567", it is written like that.', record)
    assert [row[1:] for row in told] == [("not_claimed", "example")]
    assert statements("The price is 1234567.", record)[0][1] == "unsupported"


def test_a_number_at_the_end_of_a_line_and_one_of_a_list_are_no_day():
    assert [value.text for value in find_values("taken mod 10.\n6. Look at it.", None)] == ["10"]
    assert [value.text for value in find_values("am 10. 6. war es", None)] == ["10. 6."]


FARES = {"rows": [{"price": 1520.25}, {"price": 1030.5}, {"price": 417.75}]}


class TestServedLater:
    """What a list comes to, and how many it has, counts from the turn that was shown it."""

    def label(self, sentence, result, *, turn):
        """Of the value of the second turn, if the result was asked for in that `turn`."""
        others = [{"n": 7000 + 137 * step * step} for step in range(40)]
        answer, ranges = turns("", sentence, "Done.")
        calls = [call(others, turn=1), call(result, turn=turn)]
        scores = score(answer, *calls, span_extractor="claims", turns=ranges)
        return scores["statements"][-1]["label"]

    def test_a_total(self):
        sentence = "In total they come to 2968.5."
        assert self.label(sentence, FARES, turn=1) == "derived"
        assert self.label(sentence, FARES, turn=2) == "unsupported"

    def test_a_mean(self):
        sentence = "On average they cost 989.5."
        assert self.label(sentence, FARES, turn=1) == "derived"
        assert self.label(sentence, FARES, turn=2) == "unchecked"

    def test_a_count(self):
        sentence = "There are 4 passengers."
        result = {"passengers": ["Ann", "Bo", "Cy", "Di"]}
        assert self.label(sentence, result, turn=1) == "derived"
        assert self.label(sentence, result, turn=2) == "unchecked"


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("It lists 2 items.", "derived"),
        ("It lists 2 different items.", "derived"),
        ("It has 2 matching items.", "unchecked"),
        ("You may take 2 per item.", "unchecked"),
    ],
)
def test_some_of_a_list_are_not_all_of_it(answer, expected):
    told = statements(answer, {"items": ["a", "b"]})
    assert [label for _, label, _ in told] == [expected]
