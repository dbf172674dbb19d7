"""Parity, call F1, argument validity and recovery of one trial."""

import json
from pathlib import Path

import pytest

import callmark
from callmark.calls.registry import Registry
from callmark.records.results import CallDifferences
from callmark.records.samples import expectation_of
from callmark.records.trace import Trace, entry_of
from callmark.scorers.calls import score_calls

BUILTIN = Registry.from_specs(
    json.loads((Path(callmark.__file__).parent / "data/tools/builtin.json").read_text("utf-8")),
    where="builtin.json",
)
OK = {"ok": True, "count": 1}
FAILED = {"ok": False, "error": "timeout"}
SEARCH = {"name": "web.search", "arguments": {"q": "rope"}}
READ = {"name": "read_file", "arguments": {"path": "README.md"}}
OPEN = {"name": "web.open", "arguments": {"url": "https://example.com"}}


def verdict(expected, observed, *, offered=None, admits=False, turns=None, **metadata):
    """Observed calls without a result are served ok."""
    entries = tuple(entry_of({"result": OK, **call}) for call in observed)
    return score_calls(
        expectation_of({"call_sequence": expected, **metadata}),
        Trace(model_output="", tool_trace=entries, turns=turns),
        registry=BUILTIN,
        offered=offered,
        admits_failure=admits,
    )


def turn(number, call):
    return {**call, "turn": number}


def called(name, **arguments):
    return {"name": name, "arguments": arguments}


# ---------------------------------------------------------------- parity


@pytest.mark.parametrize(
    ("observed", "ok"),
    [
        ([SEARCH, READ], True),
        ([READ, SEARCH], False),
        ([SEARCH], False),
        ([], False),
        ([SEARCH, READ, READ], False),
        ([SEARCH, OPEN], False),
        ([called("web.search", q="something else"), READ], True),
    ],
    ids=["same", "swapped", "missing", "none", "extra", "another tool", "other arguments"],
)
def test_a6_parity_is_same_names_same_number_same_order(observed, ok):
    assert verdict([SEARCH, READ], observed).multi_call_parity_ok is ok


def test_parity_is_asked_only_where_several_calls_are_expected():
    assert verdict([SEARCH], [SEARCH]).multi_call_parity_ok is None
    assert verdict([], []).multi_call_parity_ok is None


def test_parallel_calls_have_no_order():
    expected = [SEARCH, READ, OPEN]
    together = [turn(1, READ), turn(1, SEARCH), turn(2, OPEN)]
    assert verdict(expected, together).multi_call_parity_ok is True
    across = [turn(1, READ), turn(2, SEARCH), turn(2, OPEN)]
    assert verdict(expected, across).multi_call_parity_ok is False
    unknown = [turn(None, READ), turn(None, SEARCH), turn(None, OPEN)]
    assert verdict(expected, unknown).multi_call_parity_ok is False


def test_call_match_relaxes_parity():
    swapped, more = [READ, SEARCH], [OPEN, READ, SEARCH]
    assert verdict([SEARCH, READ], swapped, call_match="unordered").multi_call_parity_ok is True
    assert verdict([SEARCH, READ], more, call_match="unordered").multi_call_parity_ok is False
    assert verdict([SEARCH, READ], more, call_match="superset").multi_call_parity_ok is True
    assert verdict([SEARCH, SEARCH], more, call_match="superset").multi_call_parity_ok is False
    assert verdict([SEARCH, READ], [READ], call_match="superset").multi_call_parity_ok is False


def test_a_variant_spelling_is_the_same_tool():
    observed = [called("web_search", q="rope"), called("read-file", path="README.md")]
    found = verdict([SEARCH, READ], observed)
    assert found.multi_call_parity_ok is True
    assert found.call_f1 == 1.0
    other = verdict([called("kb.get"), called("kb.put")], [called("kb_get"), called("kb_put")])
    assert other.multi_call_parity_ok is True


def test_a_malformed_attempt_counts_by_its_name():
    broken = {"name": "read_file", "arguments": None, "status": "malformed", "reason": "not JSON"}
    found = verdict([SEARCH, READ], [SEARCH, broken])
    assert found.multi_call_parity_ok is True
    assert found.json_args_valid is False
    assert found.calls.matched == 1
    nameless = verdict([SEARCH, READ], [SEARCH, {**broken, "name": None}])
    assert nameless.multi_call_parity_ok is False


# ---------------------------------------------------------------- call F1


@pytest.mark.parametrize(
    ("observed", "f1"),
    [
        ([SEARCH], 1.0),
        ([], 0.0),
        ([SEARCH] * 5, 2 / 6),
        ([called("web.search", q="other")], 0.0),
        ([READ], 0.0),
    ],
)
def test_d33_one_expected_call_is_compared_with_arguments_and_number(observed, f1):
    """Five calls or none for one expected, and other arguments, all show."""
    assert verdict([SEARCH], observed).call_f1 == pytest.approx(f1)


def test_call_f1_is_none_only_where_no_call_is_expected():
    assert verdict([], []).call_f1 is None
    assert verdict([], [SEARCH]).call_f1 is None
    assert verdict([SEARCH], []).call_f1 == 0.0


def test_arguments_are_compared_in_the_form_of_the_broker():
    expected = [called("web.search", q="RoPE  precision", top_k=3)]
    for arguments in ({"q": "rope precision"}, {"q": " ROPE precision ", "top_k": 3.0}):
        assert verdict(expected, [{"name": "web.search", "arguments": arguments}]).call_f1 == 1.0
    assert verdict(expected, [called("web.search", q="rope precision", top_k=5)]).call_f1 == 0.0


def test_strings_are_trimmed_and_white_space_is_folded():
    expected = [called("t", text="Two  words\n", deep={"x": ["a\u00a0b"]})]
    assert verdict(expected, [called("t", text="Two words", deep={"x": [" a b"]})]).call_f1 == 1.0
    assert verdict(expected, [called("t", text="two words", deep={"x": ["a b"]})]).call_f1 == 0.0
    assert verdict([called("t", s="café")], [called("t", s="cafe\u0301")]).call_f1 == 1.0


def test_true_is_not_one_and_text_is_no_number():
    for wrong in (True, "1", 1.5, [1]):
        assert verdict([called("t", n=1)], [called("t", n=wrong)]).call_f1 == 0.0
    assert verdict([called("t", n=1)], [called("t", n=1.0)]).call_f1 == 1.0
    big = [called("t", n=9007199254740993)]
    assert verdict(big, [called("t", n=9007199254740992)]).call_f1 == 0.0


def test_a_name_alone_expects_any_arguments():
    assert verdict(["web.search"], [SEARCH]).call_f1 == 1.0
    assert verdict([{"name": "web.search"}], [called("web.search", q="x", top_k=9)]).call_f1 == 1.0


def f1_of(expected, **arguments):
    return verdict([expected], [called(expected["name"], **arguments)]).call_f1


def test_accept_adds_values_that_are_right_at_a_pointer():
    expected = {
        "name": "t",
        "arguments": {"unit": "km", "filter": {"a/b": 1}, "ids": [1, 2], "q": "Rope"},
        "accept": {
            "/unit": ["mi", "m"],
            "/filter/a~1b": [2],
            "/ids/1": [3],
            "/q": ["RoPE  scaling"],
        },
    }
    right = expected["arguments"]
    assert f1_of(expected, **right) == 1.0
    assert f1_of(expected, **{**right, "unit": "mi"}) == 1.0
    assert f1_of(expected, **{**right, "unit": "ft"}) == 0.0
    assert f1_of(expected, **{**right, "filter": {"a/b": 2.0}}) == 1.0
    assert f1_of(expected, **{**right, "filter": {"a/b": 3}}) == 0.0
    assert f1_of(expected, **{**right, "ids": [1, 3]}) == 1.0
    assert f1_of(expected, **{**right, "ids": [3, 2]}) == 0.0
    assert f1_of(expected, **{**right, "ids": [1, 2, 3]}) == 0.0
    assert f1_of(expected, **{**right, "q": "rope scaling"}) == 1.0
    assert f1_of(expected, **{**right, "extra": 1}) == 0.0
    assert f1_of(expected, unit="km") == 0.0


def test_accept_of_null_lets_a_key_be_absent_and_of_the_root_gives_whole_alternatives():
    expected = {"name": "t", "arguments": {"a": 1, "b": 2}, "accept": {"/b": [None]}}
    assert f1_of(expected, a=1) == 1.0
    assert f1_of(expected, a=1, b=3) == 0.0
    whole = {"name": "t", "arguments": {"a": 1}, "accept": {"": [{"b": 2}]}}
    assert f1_of(whole, b=2.0) == 1.0
    assert f1_of(whole, a=1, b=2) == 0.0
    added = {"name": "t", "arguments": {"a": 1}, "accept": {"/b": [2]}}
    assert f1_of(added, a=1) == f1_of(added, a=1, b=2) == 1.0
    assert f1_of(added, a=1, b=3) == 0.0


def test_optional_keys_may_be_absent_but_not_wrong():
    expected = {"name": "web.search", "arguments": {"q": "x", "top_k": 5}, "optional": ["top_k"]}
    assert f1_of(expected, q="x") == f1_of(expected, q="x", top_k=5) == 1.0
    assert f1_of(expected, q="x", top_k=None) == 1.0
    assert f1_of(expected, q="x", top_k=7) == 0.0
    free = {"name": "web.search", "arguments": {"q": "x"}, "optional": ["top_k", "lang"]}
    assert f1_of(free, q="x", top_k=9, lang="de") == f1_of(free, q="x") == 1.0
    assert f1_of(free, q="x", other=1) == 0.0


def test_the_matching_is_the_largest_not_the_first():
    """The first expected call could take either: taking the only one that fits the second must not
    cost a match, also not through a chain of three."""
    loose = {"name": "t", "arguments": {"x": 1}, "accept": {"/x": [2]}}
    assert verdict([loose, called("t", x=1)], [called("t", x=1), called("t", x=2)]).call_f1 == 1.0
    chain = [
        {"name": "t", "arguments": {"x": 1}, "accept": {"/x": [2]}},
        {"name": "t", "arguments": {"x": 2}, "accept": {"/x": [3]}},
        {"name": "t", "arguments": {"x": 1}, "accept": {"/x": [2]}},
    ]
    observed = [called("t", x=2), called("t", x=1), called("t", x=3)]
    assert verdict(chain, observed).call_f1 == 1.0
    assert verdict(["t", called("t", x=1)], [called("t", x=1), called("t", x=5)]).call_f1 == 1.0


def test_missing_extra_differing_and_reordered_calls_are_listed():
    found = verdict([SEARCH, READ], [called("web.search", q="ropes"), OPEN]).calls.differences
    assert found.missing == ('read_file {"path":"README.md"}',)
    assert found.extra == ('web.open {"url":"https://example.com"}',)
    (differing,) = found.differing
    assert "ropes" in differing
    assert 'instead of web.search {"q":"rope","top_k":3}' in differing
    assert verdict([SEARCH, READ], [READ, SEARCH]).calls.differences.reordered is True
    parallel = verdict([SEARCH, READ], [turn(1, READ), turn(1, SEARCH)])
    assert parallel.calls.differences.reordered is False
    assert parallel.call_f1 == 1.0
    assert verdict([SEARCH], [SEARCH]).calls.differences == CallDifferences()


def test_a_flood_of_calls_is_counted_in_full_and_listed_in_part():
    found = verdict([SEARCH], [called("nope", n=n) for n in range(2_000)])
    assert found.calls.observed == found.calls.attempts == 2_000
    assert len(found.calls.differences.extra) == len(found.calls.errors) == 51
    assert found.calls.errors[-1] == "and 1950 more"


# ---------------------------------------------------------------- argument validity


def test_json_args_valid_is_none_without_an_attempt():
    assert verdict([SEARCH], []).json_args_valid is None


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (called("web.search", q="x", top_k=True), "/top_k: true is not of types"),
        (called("web.search"), '/: "q" is a required property'),
        (called("code_exec", code="x", language="klingon"), "/language: "),
        ({"name": "web.search", "arguments": "x"}, "arguments are not an object"),
        ({"name": "web.search", "arguments": [["q", "x"]]}, "arguments are not an object"),
        ({"name": None, "arguments": {}}, "no tool name"),
        (called("nope"), "unknown tool nope"),
        ({**SEARCH, "status": "malformed", "reason": "not JSON"}, "not JSON"),
        ({**SEARCH, "status": "tool_not_offered"}, "was not offered"),
        ({**SEARCH, "status": "tool_not_allowed"}, "is not allowed"),
        ({**SEARCH, "status": "invalid_arguments"}, "do not fit the schema"),
        ({**SEARCH, "schema_errors": ["/q: too short"]}, "/q: too short"),
    ],
)
def test_a7_each_way_of_being_invalid(call, error):
    found = verdict([SEARCH, READ], [READ, call])
    assert found.json_args_valid is False
    assert (found.calls.attempts, found.calls.valid_attempts) == (2, 1)
    (listed,) = found.calls.errors
    assert listed.startswith("call 1: ")
    assert error in listed


def test_valid_calls_are_valid():
    found = verdict([SEARCH, READ], [SEARCH, READ], offered=frozenset({"web.search", "read_file"}))
    assert found.json_args_valid is True
    assert found.calls.errors == ()


def test_a_tool_that_was_not_offered_is_invalid():
    found = verdict([SEARCH], [READ], offered=frozenset({"web.search"}))
    assert found.json_args_valid is False
    assert "read_file was not offered" in found.calls.errors[0]


def test_offered_names_may_be_spelled_in_variants_and_unknown_to_the_registry():
    offered = frozenset({"web_search", "kb.lookup"})
    assert verdict([], [SEARCH], offered=offered).json_args_valid is True
    assert verdict([], [called("kb_lookup", id=1)], offered=offered).json_args_valid is True
    assert verdict([], [called("nope", id=1)], offered=offered).json_args_valid is False


def test_the_stored_verdict_on_the_schema_wins():
    assert verdict([], [{**called("web.search"), "schema_errors": []}]).json_args_valid is True


def test_hits_and_misses_count_only_well_formed_calls_that_were_answered():
    observed = [
        {**SEARCH, "served_by": "fixture:exact"},
        {**READ, "result": {"ok": False, "error": "fixture_miss"}, "status": "miss"},
        {**OPEN, "result": FAILED, "served_by": "fixture:any"},
        {**SEARCH, "status": "unanswered"},
        {**SEARCH, "status": "tool_not_offered"},
        {**called("web.search"), "status": "invalid_arguments"},
    ]
    calls = verdict([], observed).calls
    assert (calls.looked_up, calls.hits, calls.misses) == (3, 2, 1)
    assert (calls.attempts, calls.valid_attempts) == (6, 4)


def test_recorded_results_say_nothing_about_the_fixtures():
    """Neither those that hold an answer nor those that say that there was none."""
    missed = {**READ, "result": {"ok": False, "error": "fixture_miss"}}
    calls = verdict([], [SEARCH, {**OPEN, "served_by": "recorded"}, missed]).calls
    assert (calls.looked_up, calls.hits, calls.misses, calls.valid_attempts) == (0, 0, 0, 3)


# ---------------------------------------------------------------- recovery

RETRY = {"expected_behaviour": "retry"}
SEARCH_FAILED = {**SEARCH, "result": FAILED}


@pytest.mark.parametrize(
    ("observed", "recovered"),
    [
        ([SEARCH_FAILED, called("web.search", q="rope precision")], True),
        ([SEARCH_FAILED, SEARCH], True),
        ([SEARCH_FAILED, READ], True),
        ([SEARCH_FAILED, OPEN], False),
        ([SEARCH_FAILED], False),
        ([SEARCH_FAILED, SEARCH_FAILED], False),
        ([SEARCH, SEARCH_FAILED], False),
        ([SEARCH_FAILED, {**SEARCH, "result": {"ok": False, "error": "fixture_miss"}}], False),
        ([], False),
        ([SEARCH], True),
        ([{**SEARCH, "status": "unanswered"}], False),
    ],
    ids=["other arguments", "further seq", "next expected", "unrelated tool", "gave up",
         "failed again", "ok before", "miss", "never called", "no error", "nothing served"],
)  # fmt: skip
def test_a8_recovery_after_the_first_served_error(observed, recovered):
    assert verdict([SEARCH, READ], observed, **RETRY).recovered is recovered


def test_a_call_of_the_same_turn_did_not_react_to_the_error():
    same = [turn(1, SEARCH_FAILED), turn(1, called("web.search", q="x"))]
    assert verdict([SEARCH], same, turns=((0, 0),), **RETRY).recovered is False
    later = [turn(1, SEARCH_FAILED), turn(2, called("web.search", q="x"))]
    assert verdict([SEARCH], later, turns=((0, 0), (0, 0)), **RETRY).recovered is True
    assert verdict([SEARCH], same, turns=None, **RETRY).recovered is False
    unknown = [SEARCH_FAILED, called("web.search", q="x")]
    assert verdict([SEARCH], unknown, turns=None, **RETRY).recovered is True


def test_recovery_is_asked_only_of_samples_that_expect_a_retry():
    found = verdict([SEARCH], [SEARCH_FAILED, SEARCH])
    assert found.recovered is None
    assert found.gave_up_honestly is None


@pytest.mark.parametrize(
    ("observed", "admits", "honest"),
    [
        ([SEARCH_FAILED], True, True),
        ([SEARCH_FAILED], False, False),
        ([SEARCH_FAILED, SEARCH], True, False),
        ([SEARCH_FAILED, OPEN], True, False),
        ([SEARCH], True, False),
        ([], True, False),
    ],
)
def test_giving_up_honestly_is_reported_apart(observed, admits, honest):
    assert verdict([SEARCH], observed, admits=admits, **RETRY).gave_up_honestly is honest


def test_d36_null_and_short_forms_of_expectations_do_not_crash():
    for metadata in ({}, {"call_sequence": None}, {"call_sequence": ["web.search"]}):
        expectation = expectation_of(metadata)
        trace = Trace(model_output="", tool_trace=(entry_of("junk"), entry_of({})))
        found = score_calls(expectation, trace, registry=BUILTIN, offered=None)
        assert found.json_args_valid is False
        assert found.calls.attempts == 2


@pytest.mark.parametrize(
    ("wanted", "given", "exact"),
    [
        ("x**2 + 1", "X ** 2+1", False),
        ("the 'Old' town", "The “old”  town", False),
        ("New York", "new york", False),
        ("a b", " a  b ", True),
    ],
)
def test_string_match_lenient_forgives_case_blanks_and_quotes(wanted, given, exact):
    expected = [{"name": "code_exec", "arguments": {"code": wanted, "n": [1, wanted]}}]
    observed = [called("code_exec", code=given, n=[1, given])]
    assert verdict(expected, observed).call_f1 == (1.0 if exact else 0.0)
    assert verdict(expected, observed, string_match="lenient").call_f1 == 1.0
    other = [called("code_exec", code=given, n=[2, given])]
    assert verdict(expected, other, string_match="lenient").call_f1 == 0.0


@pytest.mark.parametrize(
    ("wanted", "given", "same"),
    [
        ("Vegan", "vegan", True), ("4x+7", "4x + 7", True), ("x**2", "x^2", True),
        ("April 1, 2024", "april 1 2024", True), ("2024-04-01", "2024/04/01", True),
        ("New York, NY", "New York NY.", True), ("it's", 'it"s', True), ("snake_case", "snake case", True),
        ("1.5", "15", False), ("-5", "5", False), ("red", "blue", False),
    ],
)  # fmt: skip
def test_f82_lenient_ignores_case_blanks_and_punctuation(wanted, given, same):
    expected = [{"name": "web.open", "arguments": {"url": wanted}}]
    observed = [called("web.open", url=given)]
    assert (verdict(expected, observed, string_match="lenient").call_f1 == 1.0) is same
    assert verdict(expected, observed).call_f1 == 0.0


def test_string_match_lenient_holds_for_accepted_values_and_shows_them_as_they_are():
    expected = [{"name": "web.open", "arguments": {"url": "A"}, "accept": {"/url": ["Be See"]}}]
    right = verdict(expected, [called("web.open", url="be  SEE")], string_match="lenient")
    assert right.call_f1 == 1.0
    wrong = verdict(expected, [called("web.open", url="No Thing")], string_match="lenient")
    assert wrong.calls.differences.differing == (
        'web.open {"url":"No Thing"} instead of web.open {"url":"A"}',
    )
    assert verdict(expected, [called("web.open", URL="a")], string_match="lenient").call_f1 == 0.0
