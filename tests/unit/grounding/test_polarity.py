"""Yes, no, and what nobody knows."""

import json

import pytest

from callmark.calls.registry import Registry
from callmark.records.samples import sample_of
from callmark.records.trace import Trace, entry_of
from callmark.scorers.score import ScoreSettings, score_trial

BOAT = {"boat_id": "BT-4821", "life_raft": True, "diesel_heater": False, "bow_thruster": None}
CALL = {"name": "find_boat", "arguments": {}}


def flags(answer: str) -> list[tuple[str, str]]:
    item = {"prompt": "What is known?", "metadata": {"call_sequence": [CALL]}}
    sample = sample_of(item, index=0, sample_id="boat", item_sha256="")
    trace = Trace(model_output=answer, tool_trace=(entry_of({**CALL, "result": BOAT}),))
    marks = score_trial(sample, trace, ScoreSettings(registry=Registry(()))).statements
    return [(one.rule, answer[one.start : one.end]) for one in marks if one.is_flag]


@pytest.mark.parametrize(
    "answer",
    [
        json.dumps(BOAT),
        json.dumps(BOAT, indent=2),
        str(BOAT),
        "BT-4821\n- Life raft: yes\n- Diesel heater: no\n- Bow thruster: null",
        "BT-4821\n- **Bow thruster:** n/a",
    ],
)
def test_null_for_null_claims_nothing(answer):
    assert flags(answer) == []


def test_what_a_result_does_not_know_is_no_yes():
    assert flags("BT-4821 has a bow thruster.") == [("unknown", "bow thruster")]
    assert flags(json.dumps({**BOAT, "bow_thruster": True})) == [("unknown", "bow_thruster")]
    assert flags("BT-4821 has a diesel heater.") == [("polarity", "diesel heater")]
