"""The contents page says what the commands say; the commands explain themselves."""

import re
from importlib import import_module

import pytest

from callmark.cli import CONTENTS, MODULES, main, overview
from callmark.cli.completion import words_by_command
from callmark.cli.run import shard_of_this_process
from callmark.errors import UsageError

COMMANDS = sorted(MODULES)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_contents_exists_and_teaches(name, capsys):
    assert main([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: callmark {name} ")
    assert f"examples:\n  {'eval' if name == 'completion' else f'callmark {name}'}" in shown
    assert import_module(MODULES[name]).build_parser().description


def sentences_of(text: str) -> list[str]:
    """A list of names in a row is one word of its sentence."""
    plain = re.sub(r"\b[\w-]+(?:, [\w-]+){5,}", "names", " ".join(text.split()))
    return re.split(r"(?<=[.!?])\s+", plain)


@pytest.mark.parametrize("name", COMMANDS)
def test_f57_help_is_short_and_help_all_is_whole(name, capsys):
    assert main([*name.split(), "--help-all"]) == 0
    whole = capsys.readouterr().out
    assert main([*name.split(), "--help"]) == 0
    short = capsys.readouterr().out
    parser = import_module(MODULES[name]).build_parser()
    for flag in parser._option_string_actions:
        assert flag in whole
    assert max(map(len, short.splitlines())) <= 80
    shown = [flag for flag in re.findall(r"^  (-[-\w]+)", short, re.M) if flag != "-h"]
    assert len(shown) <= 20
    assert len(short.splitlines()) <= 66
    named = re.findall(r"^  (-.*?)(?:  |$)", short.partition("examples:")[0], re.M)
    listed = {flag for text in named for flag in re.findall(r"(?<![\w-])-[-\w]+", text)}
    hidden = [one for one in parser._actions if not listed & set(one.option_strings)]
    hidden = [one for one in hidden if one.option_strings]
    assert (f"{len(hidden)} more options: callmark {name} --help-all" in short) == bool(hidden)


@pytest.mark.parametrize("name", COMMANDS)
def test_f57_no_sentence_of_a_help_text_is_long_or_foreign(name):
    parser = import_module(MODULES[name]).build_parser()
    texts = [parser.description or "", *(action.help or "" for action in parser._actions)]
    for sentence in (one for text in texts for one in sentences_of(text)):
        assert len(sentence.split()) <= 25, sentence
        assert not re.search(r"\b(rightly|mend\w*|stands? behind)\b", sentence), sentence


def test_the_overview_names_every_command_and_exit_code(capsys):
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert shown == overview() + "\n"
    for group, commands in CONTENTS.items():
        assert f"{group}:\n" in shown
        for name, (_, purpose) in commands.items():
            assert f"  {name:<18}{purpose}" in shown
    for code in (0, 1, 2, 3, 4, 5, 130):
        assert f" {code} " in shown


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.startswith("callmark 0.")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["rnu"], "Did you mean `callmark run`?"),
        (["fixtures"], "needs one of: fixtures record, fixtures serve, fixtures check"),
        (["fixtures", "chekc"], "needs one of"),
        (["run", "--no-such-flag"], "unrecognized arguments: --no-such-flag"),
        (["run", "--seed", "x"], "--seed: invalid int value: 'x'"),
        (["run", "--limi", "3"], "unrecognized arguments: --limi"),
        (["run", "--gate", "call_f1_macro"], "write NAME=BOUND"),
        (["run", "--gate", "call_f1_macro=high"], "the bound is not a number"),
        (["run", "--parse-text", "maybe"], "invalid choice: 'maybe'"),
        (["show"], "the following arguments are required"),
    ],
)
def test_wrong_usage_is_one_sentence_and_exit_2(words, message, capsys):
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith("callmark: error: ")
    assert message in captured.err
    assert captured.out == ""


def test_no_command_shows_the_overview_and_is_wrong_usage(capsys):
    assert main([]) == 2
    assert overview() in capsys.readouterr().err


def test_a_message_cannot_steer_the_terminal(capsys):
    assert main(["\x1b[2Jrun"]) == 2
    assert "\x1b" not in capsys.readouterr().err


def test_run_takes_every_flag_of_the_earlier_harness_by_name():
    flags = set(words_by_command()["run"])
    earlier = """--runner --model --in --out --report --fixtures --seed --temperature
        --min-eligible-for-gates --fail-on-fingerprint-mismatch --no-fail-on-fingerprint-mismatch
        --num-shards --shard-index --max-tokens --fail-on-gate-failure --no-fail-on-gate-failure
        --prompt-wrapper --determinism-mode"""
    ours = """--config --registry --allowlist --parse-text --max-turns --repeat --span-extractor
        --integration-span-cap --only --slice --failed-from --limit --dry-run --show-prompt --resume
        --restart --redact-pii --max-errors --fail-on-inconclusive --gate --privacy-echo --top-p
        --quiet"""
    assert set(earlier.split()) | set(ours.split()) <= flags


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_names_commands_and_options(shell, capsys):
    assert main(["completion", shell]) == 0
    shown = capsys.readouterr().out
    for word in ("doctor", "suggest", "max-turns", "only"):
        assert word in shown


@pytest.mark.parametrize(
    ("environment", "shard"),
    [
        ({"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4"}, (4, 2)),
        (
            {
                "SLURM_ARRAY_TASK_ID": "5",
                "SLURM_ARRAY_TASK_COUNT": "3",
                "SLURM_ARRAY_TASK_MIN": "1",
                "SLURM_ARRAY_TASK_STEP": "2",
            },
            (3, 2),
        ),
        ({"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETIONS": "2"}, (2, 1)),
    ],
)
def test_shards_from_the_cluster(environment, shard):
    assert shard_of_this_process(environment) == shard


def slurm_array(task: int, count: int, first: int, last: int) -> dict[str, str]:
    given = {"ID": task, "COUNT": count, "MIN": first, "MAX": last, "STEP": 1}
    return {f"SLURM_ARRAY_TASK_{name}": str(value) for name, value in given.items()}


def test_some_tasks_of_an_array_do_not_take_themselves_for_all_shards():
    """`--array=3,5` and `--array=3` after two of eight tasks failed."""
    assert shard_of_this_process(slurm_array(3, 8, 0, 7)) == (8, 3)
    for array in (slurm_array(3, 2, 3, 5), slurm_array(3, 1, 3, 3)):
        with pytest.raises(UsageError, match=r"is a part of one: .* --shard-index 3"):
            shard_of_this_process(array)


@pytest.mark.parametrize(
    "environment",
    [{}, {"SLURM_ARRAY_TASK_ID": "2"}, {"JOB_COMPLETION_INDEX": "1", "JOB_COMPLETIONS": "two"}],
)
def test_shards_that_the_cluster_does_not_tell_are_an_error(environment):
    with pytest.raises(UsageError, match="--num-shards auto"):
        shard_of_this_process(environment)
