"""The summaries of the parts of a run, put together, are the summary of the whole."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import make_result, missed_call, rules_with, served_call

from callmark.records.report import ReportHeader
from callmark.records.results import Decoding
from callmark.summary.summary import Summariser, SummaryState

KINDS = ("eligible", "eligible", "control", "negative_control", "clarify", "unclassified")
SAMPLES = st.lists(
    st.fixed_dictionaries(
        {
            "kind": st.sampled_from(KINDS),
            "f1": st.sampled_from([0.0, 0.25, 1 / 3, 1.0]),
            "misses": st.integers(0, 2),
            "cluster": st.sampled_from([None, "a", "b"]),
            "locale": st.sampled_from([None, "de", "fr"]),
            "output": st.sampled_from(["same", "other"]),
            "id": st.sampled_from(["short", "hash"]),
            "part": st.integers(0, 3),
        }
    ),
    max_size=24,
)


# A run says these itself: they are not summed up.
HEADER = ReportHeader(decoding=Decoding(), seed=42)


def cross_score(own, other) -> float:
    return 0.25


def result_of(index: int, trial: int, drawn: dict):
    metadata = {name: drawn[name] for name in ("cluster", "locale") if drawn[name] is not None}
    sample_id = f"{index:064x}" if drawn["id"] == "hash" else f"s{index}"
    misses = drawn["misses"] if drawn["kind"] == "eligible" else 0
    return make_result(
        index,
        drawn["kind"],
        trial=trial,
        sample_id=sample_id,
        metadata=metadata,
        output=drawn["output"],
        f1=drawn["f1"],
        misses=misses,
        trace=[missed_call()] * misses or [served_call()],
    )


def reported(summariser: Summariser) -> bytes:
    return msgspec.json.encode(summariser.report(HEADER, rules_with()))


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(SAMPLES, st.integers(1, 2), st.randoms(use_true_random=False))
def test_parts_make_the_whole(samples, repeat, random):
    results = [
        (drawn["part"], result_of(index, trial, drawn))
        for index, drawn in enumerate(samples)
        for trial in range(repeat)
    ]
    whole = Summariser(cross_score)
    for _, result in results:
        whole.add(result)
    random.shuffle(results)
    together = Summariser(cross_score)
    for part in range(4):
        one = Summariser(cross_score)
        mine = [result for place, result in results if place == part]
        for result in mine:
            one.add(result)
        state = msgspec.msgpack.decode(msgspec.msgpack.encode(one.state()), type=SummaryState)
        together.extend(state)
        for result in mine:
            if (result.index, result.trial) in state.chance:
                together.add_to_chance(result)
    assert reported(together) == reported(whole)
