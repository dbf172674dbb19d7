"""Prompt wrappers in a whole run: what the model gets, what is fingerprinted, what is refused."""

import hashlib
import json
import re
from pathlib import Path

import pytest
from tests.scripted import Scripted, plug

from callmark.cli import main
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.records.samples import shard_of
from callmark.records.seams import Failure, Reply
from callmark.resources import data_path
from callmark.run.conclude import run
from callmark.run.preview import dry_run, show_prompt
from callmark.run.rescore import score_file
from callmark.runners.wrappers import DEFAULT_SYSTEM

J2 = '{"system": "{{ system }}", "user": "<<{{ user }}>>"}'
TMPL = "[SYS] $system\n[USER] $user\n"
SYSTEM = {"role": "system", "content": "Be brief."}
DEFAULT = {"role": "system", "content": DEFAULT_SYSTEM}
FIRST = {"role": "user", "content": "Hi."}
ANSWER = {"role": "assistant", "content": "Hello."}
LAST = {"role": "user", "content": 'How "many"?'}


@pytest.fixture
def wrap(project):
    def write(text, name="w.j2") -> str:
        path = project.folder / name
        path.write_text(text, "utf-8")
        return str(path)

    return write


def with_prompts(project, *prompts) -> None:
    items = [
        {"prompt": prompt, "metadata": {"sample_id": f"p{at}"}} for at, prompt in enumerate(prompts)
    ]
    answers = [{"sample_id": f"p{at}", "model_output": "x"} for at in range(len(prompts))]
    project.write(items=items, answers=answers)


def shown(project, sample_id="p0", **settings) -> list:
    return show_prompt(project.config(**settings), sample_id).messages


def test_a40_a121_every_sample_reaches_the_model_wrapped(project, wrap, monkeypatch):
    nasty = 'a "quote"\n\\ {{ user }} $user \ue0000\ue001 👩‍👧 \u202eRTL' + "x" * 50_000
    with_prompts(project, nasty, [SYSTEM, FIRST, ANSWER, LAST])
    runner = Scripted(lambda one: Reply(text="ok"))
    named = plug(monkeypatch, project.folder, runner)
    project.run(**named, prompt_wrapper=wrap(J2), out=None, report=None)
    flat = wrap("<<$user>>", "w.tmpl")
    project.run(**named, prompt_wrapper=flat, out=None, report=None, only=["p0"])
    first, second, third = (one.messages for one in runner.seen)
    assert first == [DEFAULT, {"role": "user", "content": f"<<{nasty}>>"}]
    assert third == [{"role": "user", "content": f"<<{nasty}>>"}]
    wrapped = {"role": "user", "content": '<<How "many"?>>'}
    assert second == [SYSTEM, FIRST, ANSWER, wrapped]
    assert runner.options.raw_prompt is True  # of the .tmpl: nothing may go around it


def test_show_prompt_shows_the_wrapped_prompt(project, wrap, capsys):
    files = ["--in", str(project.dataset), "--model", str(project.answers)]
    flags = ["--prompt-wrapper", wrap(J2), "--system", "S", "--show-prompt", "s000"]
    assert main(["run", *files, *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["messages"] == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "<<How many people live in city 0?>>"},
    ]
    assert "web.search" in [tool["function"]["name"] for tool in found["tools"]]


def test_a120_the_samples_own_system_text_wins_over_the_default(project, wrap):
    with_prompts(project, "x", [SYSTEM, LAST])
    assert shown(project, prompt_wrapper=wrap(J2), system="S")[0]["content"] == "S"
    assert shown(project, "p1", prompt_wrapper=wrap(J2), system="S")[0] == SYSTEM
    flat = shown(project, "p1", prompt_wrapper=wrap(TMPL, "w.tmpl"), system="S")
    assert flat == [{"role": "user", "content": '[SYS] Be brief.\n[USER] How "many"?\n'}]


def test_f33_a120_a_wrapper_has_a_default_system_message(project, wrap):
    with_prompts(project, "x", [SYSTEM, LAST])
    minimal = str(data_path("prompt_wrappers/minimal_system_user.j2"))
    asked = {"role": "user", "content": "x"}
    assert shown(project, prompt_wrapper=minimal) == [DEFAULT, asked]
    assert shown(project, prompt_wrapper=minimal, system="") == [asked]
    assert shown(project, "p1", prompt_wrapper=minimal) == [SYSTEM, LAST]
    flat = wrap(TMPL, "w.tmpl")
    text = shown(project, prompt_wrapper=flat)[0]["content"]
    assert text == f"[SYS] {DEFAULT_SYSTEM}\n[USER] x\n"
    assert shown(project, prompt_wrapper=flat, system="")[0]["content"] == "[SYS] \n[USER] x\n"
    assert shown(project) == [asked]  # without a wrapper a prompt goes out as it stands


def test_f33_the_default_is_part_of_the_fingerprint_where_it_is_sent(project, wrap):
    def fingerprint(**settings) -> str:
        return dry_run(project.config(**settings)).fingerprints.runner_fingerprint

    path = wrap(J2)
    assert fingerprint(prompt_wrapper=path) == fingerprint(
        prompt_wrapper=path, system=DEFAULT_SYSTEM
    )
    assert fingerprint(prompt_wrapper=path) != fingerprint(prompt_wrapper=path, system="")
    assert fingerprint() != fingerprint(system=DEFAULT_SYSTEM)


def test_system_text_without_a_wrapper(project):
    with_prompts(project, "x", [SYSTEM, LAST])
    assert shown(project, system="S") == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "x"},
    ]
    assert shown(project, "p1", system="S") == [SYSTEM, LAST]


def test_a122_a_wrapper_lists_the_tools_of_the_sample(project, wrap):
    items = [
        {"prompt": "x", "metadata": {"sample_id": "p0", "tools": ["read_file", "web.open"]}},
    ]
    project.write(items=items)
    names = '{"user": "{{ user }} {{ tools | map(attribute="function.name") | join(" ") }}"}'
    assert shown(project, prompt_wrapper=wrap(names))[0]["content"] == "x read_file web.open"


def test_a123_the_hash_stands_in_report_lines_and_runner_fingerprint(project, wrap):
    path = Path(wrap(J2))
    wanted = hashlib.sha256(path.read_bytes()).hexdigest()
    header = project.run(prompt_wrapper=str(path)).report.header
    lines = [line["fingerprints"] for line in project.results()]
    assert header.prompt_wrapper_sha256 == wanted
    assert {line["prompt_wrapper_sha256"] for line in lines} == {wanted}
    path.write_text(J2 + "\n", "utf-8")
    other = dry_run(project.config(prompt_wrapper=str(path))).fingerprints
    assert other.prompt_wrapper_sha256 != wanted
    assert other.runner_fingerprint != header.runner_fingerprint
    assert dry_run(project.config()).fingerprints.prompt_wrapper_sha256 is None


def test_a123_a_changed_wrapper_is_refused_on_resume_by_name(project, wrap, monkeypatch):
    is_down = True
    runner = Scripted(lambda one: Failure("down") if is_down else Reply(text="ok"))
    named = plug(monkeypatch, project.folder, runner)
    assert project.run(**named, prompt_wrapper=wrap(J2)).exit_code == 4
    with pytest.raises(FingerprintMismatch, match="prompt_wrapper_sha256"):
        project.run(**named, prompt_wrapper=wrap(J2 + "\n"), resume=True)
    with pytest.raises(FingerprintMismatch, match="prompt_wrapper_sha256"):
        project.run(**named, resume=True)
    is_down = False
    project.run(**named, prompt_wrapper=wrap(J2), resume=True)
    assert len(project.results()) == 25


@pytest.mark.parametrize(
    ("settings", "extractor"),
    [
        ({"prompt_wrapper": str(data_path("prompt_wrappers/integration_marker.j2"))}, "marker"),
        ({"prompt_wrapper": str(data_path("prompt_wrappers/minimal_system_user.j2"))}, "claims"),
        ({"system": "Write a line that begins with Integration: please."}, "marker"),
        ({}, "claims"),
    ],
)
def test_the_wrapper_decides_how_answers_are_read(project, settings, extractor):
    project.run(**settings)
    assert {line["span_extractor"] for line in project.results()} == {extractor}


def test_scoring_again_reads_wrapped_answers_as_the_run_did(project):
    wrapper = str(data_path("prompt_wrappers/integration_marker.j2"))
    before = project.run(prompt_wrapper=wrapper).report
    for settings in ({}, {"in": str(project.dataset)}):
        again = score_file(project.out, settings).report
        assert again.metrics == before.metrics
    other = {"in": str(project.dataset), "span_extractor": "claims"}
    assert score_file(project.out, other).report.metrics != before.metrics


PARTS = [{"type": "text", "text": "x"}, {"type": "image_url", "image_url": {"url": "data:,"}}]


@pytest.mark.parametrize(
    ("prompt", "what"),
    [
        ([FIRST, ANSWER], "prompt: cannot be wrapped: the last message must be the user's"),
        ([SYSTEM], "prompt: cannot be wrapped: the last message must be the user's"),
        (
            [SYSTEM, SYSTEM, LAST],
            "prompt: cannot be wrapped: only the first message may be a system",
        ),
        (
            [FIRST, SYSTEM, LAST],
            "prompt: cannot be wrapped: only the first message may be a system",
        ),
        (
            [{"role": "user", "content": PARTS}],
            "prompt: cannot be wrapped: system and user content must",
        ),
    ],
)
def test_f33_a_prompt_that_cannot_be_wrapped_is_named_and_the_others_go_on(
    project, wrap, monkeypatch, prompt, what
):
    with_prompts(project, "fine", prompt, "fine", prompt)
    runner = Scripted(lambda one: Reply(text="ok"))
    named = plug(monkeypatch, project.folder, runner)
    outcome = project.run(**named, prompt_wrapper=wrap(J2), max_errors=2)
    first, second = (text for text in outcome.report.warnings if "cannot be wrapped" in text)
    assert first.startswith(f"{project.dataset}:3: {what}")
    assert second.startswith(f"{project.dataset}:5: {what}")
    assert [one.messages[-1]["content"] for one in runner.seen] == ["<<fine>>", "<<fine>>"]
    assert [line["status"] for line in project.results()] == ["ok", "error", "ok", "error"]
    assert project.results()[1]["error"].startswith(what)


def test_f33_without_leave_such_a_run_is_incomplete_and_keeps_the_others(project, wrap):
    with_prompts(project, "fine", [FIRST, ANSWER, LAST], "fine")
    outcome = project.run(prompt_wrapper=wrap(TMPL, "w.tmpl"))
    assert (outcome.exit_code, outcome.report.verdict) == (4, "incomplete")
    assert not project.out.exists()
    again = project.run(prompt_wrapper=wrap(TMPL, "w.tmpl"), resume=True, max_errors=1)
    assert again.report.counts.trials_error == 1
    assert [line["status"] for line in project.results()] == ["ok", "error", "ok"]


def test_f33_many_in_a_row_are_no_server_that_is_gone(project, wrap, monkeypatch):
    with_prompts(project, "fine", *[[FIRST, ANSWER]] * 30, "fine")
    runner = Scripted(lambda one: Reply(text="ok"))
    named = plug(monkeypatch, project.folder, runner)
    report = project.run(**named, prompt_wrapper=wrap(J2), max_errors=30).report
    assert (report.counts.trials_error, len(runner.seen)) == (30, 2)
    assert f"{project.dataset}: 10 more samples cannot be wrapped" in report.warnings


def test_f33_another_sample_is_shown(project, wrap):
    with_prompts(project, "fine", [FIRST, ANSWER, LAST])
    flat = wrap(TMPL, "w.tmpl")
    assert shown(project, "p0", prompt_wrapper=flat)[0]["content"].endswith("fine\n")
    with pytest.raises(UsageError, match=r"dataset.jsonl:3: prompt: is a conversation"):
        shown(project, "p1", prompt_wrapper=flat)


def test_f33_a_shard_of_which_nothing_is_left_is_no_bad_dataset(project, wrap):
    with_prompts(project, *["fine"] * 6, *[[FIRST, ANSWER]])
    lonely = "p6"
    shards = 64
    index = shard_of(lonely, shards)
    assert [at for at in range(7) if shard_of(f"p{at}", shards) == index] == [6]
    outcome = project.run(
        prompt_wrapper=wrap(J2), num_shards=shards, shard_index=index, max_errors=1
    )
    assert outcome.report.counts.trials_error == 1


def test_where_no_sample_can_be_wrapped_nothing_is_run(project, wrap):
    with_prompts(project, [FIRST, ANSWER, LAST])
    with pytest.raises(BadInput, match=r"dataset.jsonl:2: prompt: is a conversation, .* use a .j2"):
        project.run(prompt_wrapper=wrap(TMPL, "w.tmpl"))
    assert not project.out.exists()
    assert not project.out.with_name("results.jsonl.journal").exists()


def test_a_template_that_fails_for_one_sample_is_named_with_both_places(project, wrap):
    with_prompts(project, "good", "bad")
    template = '{"user":\n "{{ user }}{{ user.nothing if user == "bad" else "" }}"}'
    [warning, _] = project.run(prompt_wrapper=wrap(template), max_errors=1).report.warnings
    assert re.search(r"dataset.jsonl:3: prompt: .*w.j2:2: 'str object' has no", warning)


def test_only_samples_of_the_run_have_to_be_wrapped(project, wrap):
    with_prompts(project, "fine", [FIRST, ANSWER], "fine")
    project.run(prompt_wrapper=wrap(J2), only=["p0", "p2"])
    assert [line["sample_id"] for line in project.results()] == ["p0", "p2"]


def test_at_most_twenty_are_named(project, wrap):
    with_prompts(project, *[[FIRST, ANSWER]] * 30)
    with pytest.raises(BadInput) as caught:
        project.run(prompt_wrapper=wrap(J2))
    assert len(caught.value.problems) == 20


def test_a_wrapper_that_leaves_the_prompt_out_is_warned_of(project, wrap):
    settings = {"prompt_wrapper": wrap('{"user": "Always the same."}')}
    assert any("never uses `user`" in text for text in project.run(**settings).report.warnings)
    with pytest.raises(BadInput, match="the wrapper leaves nothing of it"):
        project.run(prompt_wrapper=wrap('{"system": "{{ system }}"}'), system="", restart=True)


@pytest.mark.parametrize(
    ("text", "name", "message"),
    [
        ("{{ usr }}", "w.j2", "w.j2:1: usr is unknown"),
        ("$usr", "w.tmpl", "w.tmpl:1: $usr is unknown"),
        ('{"user": {{ user }}', "w.j2", "the result is not JSON"),
        ("x", "w.txt", "a prompt wrapper ends in"),
    ],
)
def test_a_wrong_wrapper_ends_a_run_before_it_begins(project, wrap, text, name, message):
    with pytest.raises(UsageError) as caught:
        project.run(prompt_wrapper=wrap(text, name))
    assert message in str(caught.value)
    assert caught.value.exit_code == 2
    assert not project.out.exists()


def test_the_output_must_not_be_the_wrapper(project, wrap):
    path = wrap(J2)
    with pytest.raises(UsageError, match="is the file of --prompt-wrapper"):
        run(project.config(prompt_wrapper=path, out=path))
    assert Path(path).read_text("utf-8") == J2
