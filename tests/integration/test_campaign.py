"""The campaign, small: it finds what it looks for, and a scorer that is wrong does not pass."""

import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from dev.agree.material import RealTrial
from dev.agree.planting import MutationVerdict
from dev.agree.sites import Mutation
from dev.campaign.altering import ALTERATIONS, Place, Target, targets_of
from dev.campaign.answers import mutate_answers, replaced
from dev.campaign.calls import mutate_calls
from dev.campaign.faults import kinds, try_files
from dev.campaign.page import document, terminal
from dev.campaign.parts import HELD, PARTS, QUICK, REFUSED, Findings, Part, jobs_of
from dev.campaign.reasons import OTHER, UNEXPLAINED, leaf_at
from dev.campaign.redteam import CASES
from dev.campaign.statements import mutate_statements, reason_for
from dev.campaign.trials import Trial, generated_trials
from dev.prove.stating import Scene, answer_of

from callmark.records.results import Scores
from callmark.records.samples import sample_of
from callmark.records.trace import Trace, entry_of

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trials():
    return generated_trials(120, 3)


@pytest.mark.slow
def test_altered_answers_are_found_out(trials):
    tally = mutate_answers(trials, 600, "test")
    assert tally.unexplained == []
    assert tally.total() > 400
    for kind in ("value", "sign", "date", "identifier"):
        assert tally.killed[kind] / tally.of(kind) > 0.95, kind
    assert tally.killed["unit"] / tally.of("unit") > 0.5  # the others stand in long texts


@pytest.mark.slow
def test_altered_calls_are_found_out(trials):
    tally = mutate_calls(trials, 300, "test")
    assert tally.unexplained == []
    for kind in ("tool", "argument", "argument left out", "call left out", "call made twice"):
        assert tally.killed[kind] == tally.of(kind) > 0, kind


def stated_trials(number: int) -> list[RealTrial]:
    """Right answers about records, as the proof makes them."""
    made = []
    for at in range(number):
        scene = Scene("campaign", at)
        calls = [{"name": call.name, "arguments": call.arguments} for call in scene.calls]
        item = {"prompt": scene.prompt, "metadata": {"call_sequence": calls}}
        sample = sample_of(item, index=at, sample_id=f"{at}", item_sha256="")
        entries = [
            entry_of({**call, "result": one.result})
            for call, one in zip(calls, scene.calls, strict=True)
        ]
        text = answer_of(scene.right_answer().values()).text
        trace = Trace(model_output=text, tool_trace=tuple(entries))
        made.append(RealTrial("scenes", f"{at}", at % 2, sample, trace))
    return made


@pytest.mark.slow
def test_planted_statements_are_found_or_have_a_class():
    tally = mutate_statements(stated_trials(6), 4)
    assert tally.unexplained == []
    for kind in ("shift_number", "swap_within_key", "negate", "weekday", "equation", "denial"):
        assert tally.killed[kind] == tally.of(kind) > 0, kind
    classes = {reason for _, reason in tally.survived}
    assert classes
    findings = Findings()
    findings.add(Part("statements", "scenes", tally))
    page = document(findings, 1, ["kills"])
    assert f"| scenes | weekday | {tally.of('weekday')} |" in page
    assert all(reason in page for reason in classes)
    assert page.endswith("Left out of this run, and empty above: kills.\n")


def test_a_value_of_which_nothing_was_made_has_no_class():
    verdict = MutationVerdict(frozenset(), 0, 0, 0, frozenset())
    place = (Place(0, 1, "7"),)
    assert reason_for(Mutation("shift_number", place, 0), verdict) == UNEXPLAINED
    assert "superlative" in reason_for(Mutation("rank", place, 0), verdict)


class Blind(Trial, frozen=True):
    """A scorer that never looks again."""

    def scored(self, trace) -> Scores:
        return self.scores


def test_a_scorer_that_sees_nothing_is_found_out(trials):
    blind = [Blind(**{name: getattr(t, name) for name in Trial.__struct_fields__}) for t in trials]
    assert any(UNEXPLAINED in problem for problem in mutate_answers(blind, 100, "x").unexplained)
    assert mutate_calls(blind, 100, "x").unexplained


def test_an_alteration_moves_the_turns_after_it(trials):
    trial = next(trial for trial in trials if trial.trace.turns and len(trial.trace.turns) > 1)
    trace = replaced(trial.trace, Place(0, 0, "äé"))
    assert trace.turns[-1][1] == trial.trace.turns[-1][1] + 4
    assert trace.turns[-1][1] == len(trace.model_output.encode())


def test_every_alteration_changes_its_text(trials):
    rng = random.Random(1)
    made = dict.fromkeys(ALTERATIONS, 0)
    for trial in trials:
        answer = trial.trace.model_output
        for span in trial.scores.spans:
            for target in targets_of(answer, span):
                for name, (alter, fitting) in ALTERATIONS.items():
                    place = alter(rng, answer, target) if target.kind in fitting else None
                    made[name] += (
                        place is not None and answer[place.start : place.end] != place.text
                    )
    assert all(made[name] for name in ("value", "unit", "sign", "date", "identifier"))
    span = next(span for trial in trials for span in trial.scores.spans)
    name = Target(span, 0, 6, "text")
    assert ALTERATIONS["name"][0](rng, "Boston", name).text == "Notsob"


def test_a_leaf_is_looked_up_inside_json_texts():
    assert leaf_at({"a": ['{"b/c": 3}']}, "/a/0/b~1c") == 3


@pytest.mark.parametrize("kind", ["wrapper", "shards: merge", "probe: specs"])
def test_spoilt_files_of_the_kinds_that_the_campaign_adds(kind):
    [attempt] = try_files(20, 500, [kind])
    assert attempt.failures == []
    assert attempt.ends.total() == 20
    assert 0 < attempt.ends["read"] < 20


QUICK_ATTACKS = (
    "templates in a user's text",
    "regex bombs in fixtures",
    "references out of a schema",
    "names of tools as paths",
)


@pytest.mark.parametrize(
    ("group", "name"), [(group, name) for group in QUICK_ATTACKS for name in CASES[group]]
)
def test_attacks_are_held_or_refused(group, name, tmp_path):
    """The quick ones, in this process; `make campaign` tries all, with limits."""
    assert CASES[group][name](tmp_path) in (HELD, REFUSED)


def test_jobs_cover_every_part_and_every_kind_of_file():
    jobs = jobs_of(msgspec.structs.replace(QUICK, attacks=True), 1, "/real", PARTS)
    assert {job.part for job in jobs} == set(PARTS)
    assert {job.name for job in jobs if job.part == "faults"} == set(kinds())


def test_the_page_holds_every_number_and_no_clock(trials):
    findings = Findings()
    findings.add(Part("answers", "generated", mutate_answers(trials, 60, "page")))
    findings.add(Part("attacks", "files", ends={"files": {}}))
    page = document(findings, 1)
    assert page == document(findings, 1)
    assert "| answers | generated | value | 10 |" in page
    assert list(terminal(findings))[-1] == "0 problems"
    assert OTHER not in page or "reason" in page


@pytest.mark.slow
def test_the_small_campaign_finds_nothing():
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"}
    environment.pop("CALLMARK_REAL_DATA", None)
    done = subprocess.run(
        [sys.executable, "-m", "dev.campaign", "--quick"], cwd=ROOT, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.rstrip().endswith("0 problems")
