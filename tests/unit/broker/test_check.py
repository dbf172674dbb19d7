"""`fixtures check`: every fixture is reached however its call is written, or the check fails."""

import subprocess
import sys
from pathlib import Path

import pytest

from callmark.broker.broker import ToolBroker
from callmark.broker.check import VARIANTS, ExpectedUse, check_fixtures
from callmark.errors import BadInput

SHIPPED = Path(__file__).parents[3] / "src" / "callmark" / "data" / "fixtures"
SPECS = [
    {
        "name": "web.search",
        "parameters": {
            "type": "object",
            "properties": {"q": {"type": "string"}, "lang": {"type": "string", "default": "en"}},
        },
        "x-callmark": {"ignore": ["trace_id"]},
    },
    {"name": "read_file", "parameters": {"type": "object"}},
]


def ten_entries():
    names = ["rope", "café au lait", "straße 7", "naïve bayes", "ＦＵＬＬ width", "İstanbul", "ǰ"]
    searches = [{"name": "web.search", "key": {"q": q}, "result": {"hits": [q]}} for q in names]
    files = [
        {"name": "read_file", "key": {"path": f"é{n}.md", "from": n}, "result": n} for n in range(3)
    ]
    return searches + files


@pytest.mark.parametrize("registry", [None, SPECS])
def test_a128_sound_fixtures_are_hit_in_every_variant(broker_of, registry):
    check = check_fixtures(broker_of(*ten_entries(), registry=registry))
    assert check.ok
    assert check.fixtures == 10
    assert check.total.share == 1.0
    assert (check.failures, check.unreachable, check.unchecked) == ((), (), ())
    assert set(check.by_tool) == {"web.search", "read_file"}
    without_registry = {"ignored_arguments"} if registry is None else set()
    assert {name for name, rate in check.by_variant.items() if not rate.calls} == without_registry
    assert check.by_variant.keys() == VARIANTS.keys()


@pytest.mark.parametrize(
    "broken",
    [
        '{"name": "web.search", "key": {"q": "rope"},',
        '{"name": "web.search", "kye": {"q": "rope"}, "result": 1}',
        '{"name": "web.search", "key": "rope", "result": 1}',
        '{"name": "read_file", "key": {"path": "é1.md", "from": 1}, "result": "other"}',
    ],
)
def test_a128_a_broken_line_among_ten_is_an_error(broker_of, broken):
    with pytest.raises(BadInput, match=r"all\.jsonl:\d+: "):
        broker_of(*ten_entries()[1:], broken)


def test_a128_one_fixture_of_ten_that_nothing_reaches_fails_the_check(broker_of):
    """Each call that fits the first pattern fits the second too, so that neither answers."""
    key = {"path": "rope"}
    shadowed = [
        {"name": "read_file", "key": key, "result": n, "match": {"path": {"regex": expression}}}
        for n, expression in enumerate(["rope", "rope|rope"])
    ]
    check = check_fixtures(broker_of(*ten_entries()[:9], *shadowed))
    assert not check.ok
    assert [place.rpartition(":")[2] for place in check.unreachable] == ["10", "11"]
    assert all("make one of them narrower" in failure.why for failure in check.failures)


def test_a128_one_dead_fixture_among_many_still_fails_the_check(broker_of):
    many = [{"name": "web.search", "key": {"q": f"q{n}"}, "result": n} for n in range(200)]
    own = [
        {
            "name": "web.search",
            "key": {"q": "q1"},
            "result": "never",
            "match": {"q": {"one_of": ["q1"]}},
        }
    ]
    check = check_fixtures(broker_of(*many, *own))
    assert check.total.share > 0.99
    assert not check.ok
    (place,) = check.unreachable
    assert place.endswith(":201")
    assert {failure.why for failure in check.failures} == {"another fixture answers it"}


def test_a128_a_call_that_the_dataset_expects_and_nothing_answers_fails_the_check(broker_of):
    broker = broker_of(*ten_entries())
    uses = [ExpectedUse(f"s{n}", "read_file", {"path": f"é{n}.md", "from": n}) for n in range(3)]
    assert check_fixtures(broker, expected=uses).ok
    broken = check_fixtures(broker, expected=[*uses, ExpectedUse("s3", "read_file", {"path": "x"})])
    assert not broken.ok
    assert broken.total.share == 1.0
    assert (broken.expected.hits, broken.expected.calls) == (3, 4)
    (failure,) = broken.failures
    assert (failure.place, failure.variant) == ("sample s3", "expected_call")
    assert "nearest: " in failure.why


def test_nothing_to_check_is_not_passed(broker_of):
    check = check_fixtures(broker_of({"empty.jsonl": ""}))
    assert check.total.share is None
    assert not check.ok


def test_the_floor_counts(broker_of):
    """One respelt name of two that clash is a failing variant, not an unreachable fixture."""
    broker = broker_of(
        {"name": "a.b-c", "key": {}, "result": 1}, {"name": "a-b.c", "key": {}, "result": 2}
    )
    check = check_fixtures(broker)
    assert check.unreachable == ()
    assert 0 < check.total.share < 0.95
    assert not check.ok
    assert check_fixtures(broker, floor=0.4).ok
    assert {failure.variant for failure in check.failures} == {
        "underscores_in_name",
        "dots_in_name",
    }
    assert all(failure.place.partition("fixtures/")[2] for failure in check.failures)


def test_scopes_sequences_and_patterns_are_walked_as_a_trial_would(broker_of):
    broker = broker_of(
        {"name": "t", "key": {"q": "x"}, "result": "global"},
        {"name": "t", "key": {"q": "x"}, "result": "own", "sample_id": "s"},
        {"name": "t", "key": {"q": "x"}, "result": "own 2", "sample_id": "s", "seq": 2},
        {
            "name": "t",
            "key": {},
            "result": "ruled",
            "match": {"q": {"regex": "^y.*$"}, "n": {"ignore": True}},
        },
        {"name": "t", "key": {"q": "x"}, "result": "near x", "match": {"q": {"contains": "X"}}},
        {"name": "t", "key": {"n": 5}, "result": "near 5", "match": {"n": {"number_tolerance": 1}}},
        {"name": "t", "key": {"n": 50}, "result": "some", "match": {"n": {"one_of": [50, 60]}}},
        {"name": "t", "key": {"q": "x"}, "result": "any", "match": "any"},
    )
    check = check_fixtures(broker)
    assert check.failures == ()
    assert check.ok
    assert check.fixtures == 8


def test_a_regex_without_an_example_is_listed_as_unchecked(broker_of):
    rule = {"name": "t", "key": {}, "result": 1, "match": {"id": {"regex": r"[a-f]{8}\d+"}}}
    good = {"name": "t", "key": {"id": "x"}, "result": 1}
    check = check_fixtures(broker_of(good, rule))
    assert check.ok
    assert [place[-2:] for place in check.unchecked] == [":2"]
    assert not check_fixtures(broker_of(rule)).ok
    assert check_fixtures(broker_of({**rule, "key": {"id": "abcdefab7"}})).ok


def test_tools_that_the_registry_lacks_are_named(broker_of):
    entries = (
        {"name": "web_search", "key": {}, "result": 1},
        {"name": "mine", "key": {}, "result": 1},
    )
    assert check_fixtures(broker_of(*entries, registry=SPECS)).unknown_tools == ("mine",)
    assert check_fixtures(broker_of(*entries)).unknown_tools == ()


def test_checking_leaves_the_broker_as_it_was(broker_of):
    broker = broker_of(
        {"name": "t", "key": {}, "result": 1}, {"name": "t", "key": {}, "result": 2, "seq": 2}
    )
    assert check_fixtures(broker) == check_fixtures(broker)
    assert broker.stats["hits"] == 0
    assert broker.call("t", {}) == 1


def test_a24_a128_the_shipped_fixtures_load_and_pass():
    broker = ToolBroker(SHIPPED)
    names = {path.name for path in SHIPPED.iterdir()}
    assert {"web.search.jsonl", "read_file.jsonl", "code_exec.jsonl"} <= names
    check = check_fixtures(broker)
    assert check.failures == ()
    assert check.ok


def test_a129_checking_needs_no_model():
    program = (
        "import sys; from callmark.broker.broker import ToolBroker; "
        "from callmark.broker.check import check_fixtures; "
        f"assert check_fixtures(ToolBroker({str(SHIPPED)!r})).ok; "
        "print(sorted({'torch', 'transformers', 'httptools', 'numpy'} & sys.modules.keys()))"
    )
    path = str(SHIPPED.parents[2])
    ran = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ran.stdout.strip() == "[]"
