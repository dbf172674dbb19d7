"""The measurement of the rules, small and anew: what it plants is planted, and it repeats itself."""

import pytest
from dev.agree.counts import Job, measure, put_together
from dev.agree.material import OTHER, TUNED, trials_of
from dev.agree.mutations import KINDS, PLANTS
from dev.agree.page import document
from dev.agree.planting import mutate
from dev.agree.sites import Sites

pytestmark = pytest.mark.real


def test_mutations_alter_what_they_say_and_move_what_follows(real_data):
    for trial in trials_of(real_data, "airline", 4):
        sites = Sites(trial)
        for plant in PLANTS:
            for mutation in list(plant(sites))[:3]:
                assert mutation.kind in KINDS
                trace = mutate(trial.trace, mutation)
                assert trace.model_output != trial.trace.model_output
                grown = sum(len(one.text) - (one.end - one.start) for one in mutation.places)
                assert len(trace.model_output) == len(trial.trace.model_output) + grown
                assert len(trace.turns) == len(trial.trace.turns)


def test_a_small_sample_measures_what_the_whole_does(real_data):
    jobs = [Job("airline", 3, 12), Job("data2txt", 8, 60)]
    first, again = (put_together([measure(real_data, job) for job in jobs]) for _ in range(2))
    assert first == again
    assert document(first) == document(again)
    shifted = [one for one in first.planted if one.kind in ("shift_number", "shift_identifier")]
    assert sum(one.caught for one in shifted) >= 0.8 * sum(one.planted for one in shifted)
    assert {one.half for one in first.labelled} == {TUNED, OTHER}
    found = sum(one.found for one in first.labelled)
    assert found >= 0.4 * sum(one.spans for one in first.labelled)
    touched = sum(one.changed for one in first.planted)
    assert touched <= 0.02 * sum(one.untouched for one in first.planted)
