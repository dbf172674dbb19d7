"""Things that are listed, and sources that are named, of which no result says a word."""

import pytest
from tests.unit.grounding.asking import statements

INN = {
    "name": "Quay House",
    "categories": "Soup, Sandwiches, Breakfast & Brunch",
    "HouseTakeOut": True,
    "stars": 4.5,
    "review": "We came for the soup and stayed for the cheeseburger. The waiter, who had been there for "
    "years, knew every boat in the harbour by name, and told us about most of them while we waited "
    "for the coffee and the berry pie.",
}  # fmt: skip


def unnamed(answer, *results, **more):
    found = statements(answer, *(results or (INN,)), **more)
    return [text for text, label, rule in found if rule == "unnamed" and label == "unsupported"]


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("The menu includes soups, sandwiches, and burgers.", []),
        ("The menu includes soup, omelets, and pancakes.", ["omelets, and pancakes"]),
        ("It offers a variety of pies, such as berry pie and vegan options.", []),
        (
            "It serves berries, vegan dishes and gluten-free dishes.",
            ["vegan dishes and gluten-free"],
        ),
        ("It offers takeout, coffee and waiters.", []),
        # The word that they are dishes of comes after both, and some things are not counted.
        ("It offers vegan and vegetarian dishes.", ["vegan and vegetarian"]),
        ("It has a selection of vermouth and sake.", ["vermouth and sake"]),
        ("It has a warm and inviting atmosphere, serving soup.", []),
        ("Some guests had issues such as scratches, delays and strangers.", []),
        ("Its categories include bistros and pubs.", []),
        ("It serves berry, Korean and Thai food.", ["Korean and Thai"]),
        ("It does not offer omelets or pancakes.", []),
        ("Would you like me to look for places offering omelets and pancakes?", []),
        ("It offers delicious dishes and friendly services.", []),
        ("It has 4.5 stars on Harborly.", ["Harborly"]),
        # Was expected to be flagged. It says where the results come from, which whoever asked for
        # them knows better than they do, and three of four such flags were on nothing wrong.
        ("According to their Harborly reviews, it is good.", []),
        ("Its Harborly reviews are good, the many Harborly ratings are better.", ["Harborly"] * 2),
        ("It has 4.5 stars on Mondays, and a review on May 4.", []),
        ("It serves soup and Danish food.", ["Danish"]),
        ("Customer reviews praise the soup.", []),
    ],
)
def test_what_no_result_names(answer, named):
    assert unnamed(answer) == named


def test_what_the_user_named_is_his():
    assert unnamed("It includes omelets and pancakes.", prompt="Have they omelets, pancakes?") == []


def test_only_where_results_describe_something():
    bare = {"name": "Quay House", "stars": 4.5, "seats": 40, "city": "Ulm", "open": True}
    assert unnamed("It has 4.5 stars on Harborly, and serves omelets and pancakes.", bare) == []
    prose = {"text": INN["review"] * 5}
    assert unnamed("It serves omelets and pancakes.", prose) == []


PLACES = {
    "places": [
        {"name": "Goodland Kitchen", "rating": 4.5},
        {"name": "Lure Fish House", "rating": 4.0},
        {"name": "Denver Intl Airport", "rating": 3.1},
        {"name": "Jonas Brandt", "rating": 5.0},
    ]
}


def altered(answer, **more):
    return [text for text, label, rule in statements(answer, PLACES, **more) if rule == "name"]


@pytest.mark.parametrize(
    ("answer", "names"),
    [
        ("I would go to Farrow Kitchen tonight.", ["Farrow Kitchen"]),
        ("Kestrel Fish House has 4.0 stars.", ["Kestrel Fish House"]),
        ("Lure Fish Kestrel has 4.0 stars.", ["Lure Fish Kestrel"]),
        ("Of the two, Lure Wexford House is the calmer one.", ["Lure Wexford House"]),
        # A word of the results, an abbreviation written out, a title, no name at all.
        ("Lure Kitchen House has 4.0 stars.", []),
        ("You land at Denver International Airport.", []),
        ("I wrote to Herr Brandt.", []),
        ("There is a Caribbean kitchen next door to Goodland Kitchen.", []),
    ],
)
def test_a_name_with_a_word_that_nobody_gave(answer, names):
    assert altered(answer) == names


def test_a_word_that_the_user_said_is_no_invention():
    answer = "I would go to Farrow Kitchen tonight."
    assert altered(answer, prompt="Is Farrow any good?") == []
