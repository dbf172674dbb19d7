"""`callmark show RUN --claims`: counts, and the sentences with what nothing supports."""

import json

import pytest

from callmark.cli import show
from callmark.errors import UsageError
from callmark.records.claims import add_up_claims
from callmark.run.rescore import score_file
from callmark.scorers.claims import claims_of
from callmark.store.files import read_results

ORDER = {"order": "W5166363", "items": [{"price": 47.84}, {"price": 52.03}], "status": "sent"}
LATER = {"price": 99.5}


def call(number, name):
    function = {"name": name, "arguments": "{}"}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": number, "function": function}],
    }


def answer(text):
    return {"role": "assistant", "content": text}


def tool(number, result):
    return {"role": "tool", "tool_call_id": number, "content": json.dumps(result)}


@pytest.fixture
def results(tmp_path):
    messages = [
        {"role": "user", "content": "What of my 3 orders?"},
        call("a", "look"),
        tool("a", ORDER),
        answer(
            "Of 3 orders, W5166363 costs 47.84. Both cost 99.87. It weighs 99.4 kg; see W5166364."
        ),
        {"role": "user", "content": "And the other?"},
        call("b", "look_again"),
        tool("b", LATER),
        answer("It costs 99.5."),
    ]
    path, out = tmp_path / "talks.jsonl", tmp_path / "results.jsonl"
    path.write_text(json.dumps({"sample_id": "s1", "messages": messages}) + "\n")
    score_file(path, {"out": str(out), "span_extractor": "claims"})
    return out


def test_each_value_has_its_label_and_its_sentence(results):
    claims = list(claims_of(next(read_results(results))))
    assert [(claim.value, claim.label) for claim in claims] == [
        ("3", "user_said"),
        ("W5166363", "supported"),
        ("47.84", "supported"),
        ("99.87", "derived"),
        ("99.4", "unsupported"),
        ("W5166364", "unsupported"),
        ("99.5", "supported"),
    ]
    assert claims[4].sentence == "It weighs 99.4 kg; see W5166364"


def test_the_nearest_evidence_came_before_the_sentence(results):
    """99.5 is nearer, but it was served later."""
    weight, order = add_up_claims(map(claims_of, read_results(results))).unsupported
    assert (weight.nearest.path, weight.nearest.value) == ("/items/1/price", 52.03)
    assert (order.nearest.call, order.nearest.path) == (0, "/order")


def test_the_terminal_shows_counts_and_sentences(results, capsys):
    assert show.main([str(results), "--claims"]) == 0
    said = capsys.readouterr().out
    assert "7 values in the answers of 1 trials" in said
    assert "  all                 7          3        1          1            2" in said
    assert said.count("It weighs 99.4 kg") == 1
    assert "nearest: 52.03, call 0 /items/1/price" in said


def test_json_holds_the_same(results, capsys):
    assert show.main([str(results), "s1", "--claims", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["by_label"] == {"supported": 3, "derived": 1, "user_said": 1, "unsupported": 2}
    assert [claim["value"] for claim in said["unsupported"]] == ["99.4", "W5166364"]


def test_without_an_id_show_needs_claims(results):
    with pytest.raises(UsageError, match="name a sample"):
        show.main([str(results)])
    with pytest.raises(UsageError, match="name a sample"):
        show.main([str(results), "s1", "--json"])
