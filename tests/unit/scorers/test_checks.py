"""The checks of a sample: each kind holds and fails, and what could not be judged is no pass."""

import pytest
from tests.builders import make_result, rules_with

import callmark
from callmark.calls.registry import Registry
from callmark.errors import UsageError
from callmark.records.report import ReportHeader
from callmark.records.results import implausible
from callmark.records.samples import CHECK_KINDS, CheckScore, checks_of, demand_of, parse_path
from callmark.records.trace import Trace
from callmark.scorers.checks import first_fenced_block, score_checks
from callmark.scorers.redaction import redact_result
from callmark.summary.summary import Summariser


def call(name="web.search", **more):
    return {"name": name, "arguments": {"q": "x"}, "result": {"count": 1}, **more}


def score(checks, answer="", trace=(), turns=None):
    item = {"prompt": "p", "metadata": {"checks": checks}}
    return callmark.score_item(item, answer, list(trace), turns=turns)


def reason(checks, answer="", trace=(), turns=None):
    """None: the only check holds."""
    [found] = score(checks, answer, trace, turns)["checks"]
    assert found["ok"] == (found["reason"] is None)
    return found["reason"]


SEARCH, OPEN = call(), call("web.open", arguments={"url": "https://example.org"})
REFUSED = call("web.search", status="tool_not_offered", result=None)
UNREAD = {"name": None, "arguments": None, "status": "malformed", "reason": "no closing brace"}
TURNS = [{"start": 0, "end": 0}, {"start": 0, "end": 2}]
FENCED = 'Here:\n```json\n{"a": {"b": [1, {"c d": 2.0}]}}\n```\nand\n```\n{"a": 9}\n```'

HOLDS = [
    ({"contains": "17"}, "There are 17."),
    ({"contains": "cafe\u0301\r\nbar"}, "caf\u00e9\nbar"),
    ({"not_contains": "sorry"}, "Sorry."),
    ({"regex": r"\b1[0-9]\b"}, "There are 17."),
    ({"regex": "(?i)^SORRY"}, "sorry"),
    ({"equals": "Yes."}, " Yes.\n"),
    ({"equals": ""}, ""),
    ({"json_path": {"path": "a.b[1]", "equals": 3}}, '{"a": {"b": [1, 3.0]}}'),
    ({"json_path": {"path": "$", "equals": [1]}}, "[1]"),
    ({"json_path": {"path": "a", "equals": None}}, '{"a": null}'),
    ({"json_path": {"path": 'a.b[1]["c d"]', "equals": 2}}, FENCED),
    ({"max_words": 3}, "one two\nthree"),
]
FAILS = [
    ({"contains": "17"}, "There are 18.", "the answer does not contain it"),
    ({"contains": "Paris"}, "paris", "the answer does not contain it"),
    ({"not_contains": "sorry"}, "I am sorry.", "the answer contains it"),
    ({"regex": "^17"}, "There are 17.", "nothing in the answer matches"),
    ({"equals": "Yes."}, "No.", 'the answer is "No."'),
    ({"json_path": {"path": "a", "equals": 1}}, '{"a": 2}', "it is 2"),
    ({"json_path": {"path": "a", "equals": 1}}, '{"a": true}', "it is true"),
    ({"json_path": {"path": "a", "equals": "1"}}, '{"a": 1}', "it is 1"),
    ({"json_path": {"path": "a", "equals": {}}}, '{"a": {"b": null}}', 'it is {"b":null}'),
    ({"json_path": {"path": "b", "equals": 1}}, '{"a": 1}', "the JSON of the answer has no b"),
    ({"json_path": {"path": "a[1]", "equals": 1}}, '{"a": [1]}', "the JSON of the answer has no a[1]"),
    ({"json_path": {"path": "[0]", "equals": 1}}, '{"0": 1}', "the JSON of the answer has no [0]"),
    (
        {"json_path": {"path": "a", "equals": 1}},
        "no JSON",
        "the answer is not JSON: Expecting value (column 1), and has no fenced block",
    ),
    (
        {"json_path": {"path": "a", "equals": 1}},
        '```\n{"a": 1\n```\n```\n{"a": 1}\n```',
        "the first fenced block of the answer is not JSON: Expecting ',' delimiter (column 8)",
    ),
    ({"max_words": 2}, "one two three", "the answer has 3 words"),
]  # fmt: skip
CALLS = [
    ({"called": "web.search"}, [SEARCH], None),
    ({"called": "web_search"}, [SEARCH], None),
    ({"called": "web.search"}, [OPEN], "it was not called"),
    ({"called": "web.search"}, [REFUSED], "it was not called: call 0 is tool not offered"),
    ({"called": "web.search"}, [UNREAD], "it was not called"),
    ({"not_called": "web.search"}, [OPEN], None),
    ({"not_called": "web.search"}, [OPEN, SEARCH], "call 1 calls it"),
    ({"not_called": "web-search"}, [REFUSED], "call 0 calls it"),
    (
        {"not_called": "web.search"},
        [UNREAD],
        "call 0 could not be read, so it may have been this tool",
    ),
    ({"calls_at_most": 2}, [SEARCH, UNREAD], None),
    ({"calls_at_most": 1}, [SEARCH, UNREAD], "2 calls were attempted"),
    ({"before": ["web.search", "web.open"]}, [SEARCH, OPEN, SEARCH], None),
    ({"before": ["web.search", "web.open"]}, [SEARCH], "web.open was not called"),
    ({"before": ["web.search", "web.open"]}, [OPEN], "web.search was not called"),
    (
        {"before": ["web.search", "web.open"]},
        [OPEN, SEARCH],
        "call 0 is web.open, call 1 the first web.search",
    ),
    (
        {"before": ["web.search", "web.open"]},
        [UNREAD, SEARCH, OPEN],
        "call 0 could not be read, so it may have been web.open",
    ),
    (
        {"before": ["web.search", "web.open"]},
        [{**SEARCH, "turn": 1}, {**OPEN, "turn": 1}],
        "calls 0 and 1 are of one turn",
    ),
]


@pytest.mark.parametrize(("checks", "answer"), HOLDS)
def test_a_check_of_the_text_holds(checks, answer):
    assert reason(checks, answer) is None


@pytest.mark.parametrize(("checks", "answer", "why"), FAILS)
def test_a_check_of_the_text_fails_and_says_why(checks, answer, why):
    assert reason(checks, answer) == why


@pytest.mark.parametrize(("checks", "trace", "why"), CALLS)
def test_a_check_of_the_calls(checks, trace, why):
    assert reason(checks, "", trace) == why


def test_turns_are_counted_and_those_not_known_are_no_pass():
    assert reason({"max_turns": 2}, "ok", turns=TURNS) is None
    assert reason({"max_turns": 1}, "ok", turns=TURNS) == "the model took 2 turns"
    assert reason({"max_turns": 9}, "ok") == "the turns of this trial are not known"


def test_every_kind_is_tried_both_ways():
    text = {kind for checks, *_ in HOLDS for kind in checks}
    text_against = {kind for checks, *_ in FAILS for kind in checks}
    calls = {kind for checks, _, why in CALLS if why is None for kind in checks}
    calls_against = {kind for checks, _, why in CALLS if why is not None for kind in checks}
    assert text | calls | {"max_turns"} == set(CHECK_KINDS)
    assert text_against | calls_against | {"max_turns"} == set(CHECK_KINDS)


def test_all_checks_together_decide_and_each_is_told():
    checks = [{"contains": ["a", "b"], "max_words": 1}, {"not_contains": "z", "x_note": "why"}]
    found = score(checks, "a c")
    assert [(one["kind"], one["wanted"], one["ok"]) for one in found["checks"]] == [
        ("contains", "a", True),
        ("contains", "b", False),
        ("max_words", 1, False),
        ("not_contains", "z", True),
    ]
    assert found["checks_ok"] is False
    assert score(checks, "ab")["checks_ok"] is True
    for none in (None, [], [{"contains": None, "max_words": 5}]):
        assert score(none, "")["checks_ok"] in (None, True)
    assert score([], "")["checks_ok"] is None


def test_bad_checks_are_an_error_of_the_caller():
    with pytest.raises(UsageError, match=r"metadata.checks.contain: unknown key; did you mean"):
        score({"contain": "x"})
    with pytest.raises(UsageError, match=r"metadata.checks: regex \"\(\": cannot be used"):
        score({"regex": "("})


def test_a_hostile_pattern_takes_no_time():
    assert reason({"regex": "(a|aa)+$"}, "a" * 200_000 + "b") == "nothing in the answer matches"


@pytest.mark.parametrize(
    ("path", "steps"),
    [("a", ("a",)), ("$", ()), ("$.a[0].b", ("a", 0, "b")), ("[2][3]", (2, 3)),
     ('a["b.c"].d e', ("a", "b.c", "d e")), ("a.$id", ("a", "$id")), ("1.x", ("1", "x"))],
)  # fmt: skip
def test_paths(path, steps):
    assert parse_path(path) == steps


@pytest.mark.parametrize(
    "path", ["a..b", "a[", "a[-1]", "a[x]", "a[0]b", "a.", "$a", 'a["b]', "*["]
)
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="cannot be read from"):
        parse_path(path)


def test_fences():
    assert first_fenced_block("no fence, only `code`") is None
    assert first_fenced_block("  ```json\n1\n  ```\n2") == "1"
    assert first_fenced_block("~~~\n```\n1\n```\n~~~") == "```\n1\n```"
    assert first_fenced_block("````\n```\n````") == "```"
    assert first_fenced_block("```\n[1,") == "[1,"


@pytest.mark.parametrize(
    ("checks", "demand"),
    [
        ([], "nothing"),
        ({"not_contains": "x", "max_words": 3, "not_called": "t", "calls_at_most": 1}, "silence"),
        ({"max_turns": 1, "equals": " ", "regex": "x*"}, "silence"),
        *(({"max_words": 3, **one}, "speech") for one in (
            {"contains": "x"}, {"regex": "x+"}, {"equals": "x"}, {"called": "t"},
            {"before": ["a", "b"]}, {"json_path": {"path": "a", "equals": None}},
        )),
    ],
)  # fmt: skip
def test_what_an_empty_answer_passes_is_known_before_anybody_answers(checks, demand):
    assert demand_of(checks_of(checks)) == demand
    if demand != "nothing":
        said = score(checks, "", turns=[{"start": 0, "end": 0}])
        assert said["checks_ok"] is (demand == "silence")


def test_what_redaction_replaces_stays_out_of_the_checks_too():
    checks = checks_of({"equals": "Write to jane.doe@corp.example"})
    [found] = score_checks(checks, Trace(model_output="No: joe@corp.example"), Registry(()))
    result = make_result(checks_ok=False, checks=(found,))
    [clean] = redact_result(result).scores.checks
    assert (clean.wanted, clean.ok) == ("Write to [email]", False)
    assert clean.reason == 'the answer is "No: [email]"'


def test_a_trial_with_a_broken_check_does_not_pass_its_repetition():
    broken = CheckScore("contains", "17", False, "the answer does not contain it")
    results = [
        make_result(at, trial=trial, checks_ok=not trial, checks=(broken,) if trial else ())
        for at in range(2)
        for trial in range(2)
    ]
    summariser = Summariser()
    for result in results:
        summariser.add(result)
    repeat = summariser.report(ReportHeader(), rules_with()).repeat
    assert (repeat.pass_at_1.value, repeat.pass_hat_k.value) == (0.5, 0.0)


def test_a_line_whose_checks_do_not_come_to_its_verdict_is_implausible():
    broken = CheckScore("contains", "17", False, "the answer does not contain it")
    assert implausible(make_result(checks_ok=False, checks=(broken,)).scores) is None
    assert "checks_ok" in implausible(make_result(checks_ok=True, checks=(broken,)).scores)
