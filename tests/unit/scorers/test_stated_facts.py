"""A required fact is found where the answer says that it is so, and stands by it."""

import pytest
from msgspec.structs import replace
from tests.lines import lines_run

import callmark
from callmark.api import builtin_registry
from callmark.records.samples import sample_of
from callmark.records.trace import Trace, entry_of
from callmark.scorers.score import ScoreSettings, score_trial

RESULT = {
    "name": "Maria Keller",
    "plan": "gold",
    "points": 1219,
    "orders": [
        {"id": "ORD-10000", "total": 592.82, "sent": "2024-05-05"},
        {"id": "ORD-10007", "total": 208.93, "sent": "2024-07-19"},
    ],
}
CALL = {"name": "customer", "arguments": {"id": "C1"}, "result": RESULT}


def missing(text, facts, result=None):
    metadata = {"call_sequence": [{"name": "customer"}], "required_facts": facts}
    item = {"prompt": "Tell me about C1.", "metadata": metadata}
    call = CALL if result is None else {**CALL, "result": result}
    scores = callmark.score_item(item, text, [call], span_extractor="claims")
    return [facts[at] for at in scores.get("missing_facts", ())]


DENIED = [
    "Maria Keller does not have 1219 points.",
    "Maria Keller doesn't have exactly 1,219 points.",
    "Maria Keller never had **1219** points.",
    "There is no customer with 1219 points.",
    "Nobody has 1219 points.",
    "I could not find any customer with 1219 points.",
    "The number of points is not 1219 but much more.",
    "Neither are there 1219 points, nor is she known.",
    "Maria Keller has far more than 1219 points.",
    "Maria Keller has a number of points other than 1219.",
    "Maria Keller has anything but 1219 points.",
    "Maria Keller hat keine 1219 Punkte.",
    "Maria Keller hatte nie 1219 Punkte.",
    "Keine Kundin hat 1219 Punkte.",
    "Maria Keller no tiene 1219 puntos.",
    "Ningún cliente tiene 1219 puntos.",
    "Maria Keller n'a pas 1219 points.",
    "Maria Keller n'a jamais eu 1219 points.",
    "Aucun client n'a 1219 points.",
    "I'm sorry, I can't tell you that the points are 1219.",
]


@pytest.mark.parametrize("text", DENIED)
def test_what_is_denied_is_no_fact(text):
    assert missing(text, [1219]) == [1219]


@pytest.mark.parametrize(
    "text",
    [
        "Customer C1 is not on the gold plan.",
        "Sie ist nicht auf dem gold Tarif.",
        "Her plan is not gold.",
    ],
)
def test_a_denied_name_is_no_fact(text):
    assert missing(text, ["gold"]) == ["gold"]


@pytest.mark.parametrize(
    "text",
    [
        "Does Maria Keller have 1219 points?",
        "¿Tiene Maria Keller 1219 puntos?",
        "Who knows whether Maria Keller has 1219 points.",
        "Ich weiß nicht, ob sie 1219 Punkte hat.",
        "<!-- She has 1219 points. --> I cannot tell you.",
        "~~She has 1219 points.~~",
    ],
)
def test_what_is_only_asked_or_hidden_is_no_fact(text):
    assert missing(text, [1219]) == [1219]


@pytest.mark.parametrize(
    "text",
    [
        "She has 1219, 1630 or 1704 points.",
        "She has either 1219 or 1630 points.",
        "1219 points. Or: 1630 or 1704 points.",
        "The number is one of: 1219, 592.82, 208.93.",
    ],
)
def test_one_of_several_is_no_fact(text):
    assert missing(text, [1219]) == [1219]


@pytest.mark.parametrize("fact", ["basic", "gold", "platinum"])
def test_a_list_of_every_name_states_none(fact):
    result = {"plan": fact, "since": 2019}
    text = "Customer C1 is on basic, silver, gold or platinum."
    assert missing(text, [fact], result) == [fact]


@pytest.mark.parametrize(
    "text",
    [
        "She has 1219 points. She does not have 1219 points.",
        "She has 1219 points. No: she has 1630 points.",
        "She has 1219 points. No. She has 1630 points.",
        "She has 1219 points.\nNo, all I told you is wrong.",
        "She has 1219 points. Everything I said before was false.",
        "Sie hat 1219 Punkte. Alles, was ich gesagt habe, ist falsch.",
    ],
)
def test_what_is_taken_back_is_no_fact(text):
    assert missing(text, [1219]) == [1219]


def test_another_scale_is_another_value_though_the_rule_is_advisory():
    assert missing("Maria Keller has 1219 million points.", [1219]) == [1219]


@pytest.mark.parametrize(
    "text", ["Order ORD-10007 came to 592.82.", "- ORD-10000: 208.93\n- ORD-10007: 592.82"]
)
def test_only_a_firm_flag_takes_a_fact_away(text):
    """SPEC 5.2 and 5.3: advisory flags are shown and counted apart. For some weeks they took facts
    away as well; so a false alarm of an unproven rule failed a right answer."""
    metadata = {"call_sequence": [{"name": "customer"}], "required_facts": [592.82]}
    item = {"prompt": "Tell me about C1.", "metadata": metadata}
    sample = sample_of(item, index=0, sample_id="C1", item_sha256="")
    trace = Trace(model_output=text, tool_trace=(entry_of(CALL),))
    settings = ScoreSettings(registry=builtin_registry(), extractor="claims")
    assert not score_trial(sample, trace, settings).missing_facts
    rules = (("record", "firm"), ("binding", "firm"))
    scores = score_trial(sample, trace, replace(settings, tiers=rules))
    assert scores.missing_facts == (0,)


def test_an_advisory_flag_makes_no_sentence_wrong():
    metadata = {"call_sequence": [{"name": "customer"}], "required_facts": [592.82]}
    item = {"prompt": "Tell me about C1.", "metadata": metadata}
    text = "Order ORD-10007 came to 592.82."
    scores = callmark.score_item(item, text, [CALL], span_extractor="claims")
    labels = [(one["label"], one["rule"]) for one in scores["statements"]]
    assert labels == [("supported", "name"), ("misattributed", "record")]
    assert scores["lax"]["precision"] == 1.0


STATED = [
    ("She has 1219 points, not 2,500.", 1219),
    ("She has not only 1219 points.", 1219),
    ("No, she has 1219 points.", 1219),
    ("No problem: she has 1219 points.", 1219),
    ("She has no fewer than 1219 points.", 1219),
    ("I cannot see her address, but she has 1219 points.", 1219),
    ("Does she have 1219 points? Yes.", 1219),
    ("She has 1219 points, would you like to spend them?", 1219),
    ("She has 1219 points, right?", 1219),
    ("I checked whether she is known, and she has 1219 points.", 1219),
    ("She has 1219 points, or 1.2k.", 1219),
    ("Everything I said before was false. She has 1219 points.", 1219),
    ("She has 1219 points. No, she is not on the silver plan.", 1219),
    ("It's no surprise with 1219 points.", 1219),
    ("Elle n'a que 1219 points.", 1219),
    ("Sie hat nicht nur 1219 Punkte.", 1219),
    ("Die Steuer ist nicht in den 592,82 enthalten.", 592.82),
    ("Order ORD-10000 has not been paid; it came to 592.82.", 592.82),
    ("Order ORD-10000 is not refundable after 5 May 2024.", "2024-05-05"),
    ("There is no invoice for order ORD-10000.", "ORD-10000"),
    ("Order ORD-10000 has not been cancelled.", "ORD-10000"),
    ("Would you like anything else? The plan is gold.", "gold"),
    ("She is on the gold plan, which is better than basic or silver.", "gold"),
    ("Nobody but Maria Keller is on the gold plan.", "Maria Keller"),
]


@pytest.mark.parametrize(("text", "fact"), STATED)
def test_what_is_stated_is_a_fact(text, fact):
    assert missing(text, [fact]) == []


def test_names_that_are_all_served_or_required_are_stated():
    sizes = {"name": "shirt", "sizes": ["S", "M", "XL"], "colours": ["red", "blue", "green"]}
    text = "It comes in red, blue or green."
    assert missing(text, ["red", "blue", "green"], sizes) == []
    assert missing(text, ["blue"], sizes) == []
    assert missing("It has a collar, comes in white or blue, and is soft.", ["blue"], sizes) == []


def test_a_fact_that_is_negative_itself_is_stated():
    policy = {"fee": "no fee", "pets": "not allowed"}
    assert (
        missing("There is no fee, and pets are not allowed.", ["no fee", "not allowed"], policy)
        == []
    )


def test_marked_spans_are_read_as_before():
    """What the seeds measure with `marker` does not change."""
    metadata = {"call_sequence": [{"name": "customer"}], "required_facts": [1219]}
    item = {"prompt": "Tell me about C1.", "metadata": metadata}
    for text in ("Integration: not 1219 points", "Integration: 1219 or 1630 points"):
        assert callmark.score_item(item, text, [CALL])["lax"]["recall"] == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "She has 1219 points. She does not have 1219 points. ",
        "She has 1219 points. No: she has 1630 points. ",
        "1219 or ",
        "~~1219~~ <!-- 1219 --> ",
        "basic, silver, gold or platinum. ",
    ],
)
def test_four_times_the_answer_is_four_times_the_work(text):
    def lines(times):
        return lines_run(lambda: missing(text * times, [1219, "gold", 592.82]))

    lines(2)
    assert lines(240) / lines(60) <= 4.5
