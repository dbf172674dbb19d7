"""Statements that are drawn for people: of every rule, blind, and always the same."""

import json
import sys
from io import StringIO

import msgspec
import pytest

from callmark.cli import main
from callmark.cli.agree import put_tiers
from callmark.cli.label import ask
from callmark.config import load_config
from callmark.errors import UsageError
from callmark.records.statements import RULES, LabelKeys, LabelLine, StatementKey
from callmark.scorers.labels import draw, keys_of, keys_of_run
from callmark.store.files import read_results
from callmark.store.labels import read_labels
from callmark.summary.labels import agree, judgements_of, kappa


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Three answers with flags of three rules, scored by the command."""
    folder = tmp_path_factory.mktemp("labels")
    calls = [{"id": "1", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    orders = [{"order_id": "W1001", "price": 120.5}, {"order_id": "W2002", "price": 57.25}]
    answers = (
        "Order W1001 costs 120.50 and order W2002 costs 57.25.",
        "Order W1001 costs 57.25. Order W9009 is lost. It costs 77.75.",
        "There are 5 orders. Order W2002 costs 57.25. The fee is 31.99.",
    )
    with (folder / "in.jsonl").open("w") as stream:
        for number, answer in enumerate(answers):
            messages = [
                {"role": "user", "content": "What do my orders cost?"},
                {"role": "assistant", "content": "", "tool_calls": calls},
                {"role": "tool", "tool_call_id": "1", "content": json.dumps({"orders": orders})},
                {"role": "assistant", "content": answer},
            ]
            stream.write(json.dumps({"id": f"s{number}", "messages": messages}) + "\n")
    main(["score", str(folder / "in.jsonl"), "--out", str(folder / "out.jsonl")])
    return folder / "out.jsonl"


def test_every_stratum_is_drawn_from_in_turn(results):
    keys, lines = draw(read_results(results), 6)
    strata = {key.stratum for key in keys.keys}
    assert len(lines) == 6 == len(keys.keys)
    assert "no flag: supported" in strata
    assert len(strata) >= min(6, len(keys.population))
    assert sum(keys.population.values()) == sum(
        len(one.scores.statements) for one in read_results(results)
    )


def test_drawing_twice_gives_the_same_and_more_gives_all(results):
    assert draw(read_results(results), 5) == draw(read_results(results), 5)
    keys, lines = draw(read_results(results), 1000)
    every = {key.statement_id for one in read_results(results) for key in keys_of(one)}
    assert {line.statement_id for line in lines} == every
    assert keys_of_run(read_results(results), every) == keys


def test_a_line_shows_what_is_needed_and_no_verdict(results):
    keys, lines = draw(read_results(results), 1000)
    for line in lines:
        assert line.statement in line.sentence
        assert line.said == ("What do my orders cost?",)
        assert "W1001" in line.results[0].result
    data = msgspec.json.encode(lines).decode()
    fields = {name for line in msgspec.json.decode(data) for name in line}
    assert not fields & {"rule", "label", "tier", "because", "expected"}
    assert not [label for label in ("misattributed", "unsupported", "advisory") if label in data]
    order = [line.statement_id for line in lines]
    flagged = {key.statement_id for key in keys.keys if key.is_flag}
    assert flagged
    assert {one in flagged for one in order[: len(order) // 2]} == {True, False}


def line(number, verdict=None, verdict_2=None):
    return LabelLine(
        statement_id=str(number), sample_id="s", trial=0, statement="57", sentence="It costs 57.",
        verdict=verdict, verdict_2=verdict_2,
    )  # fmt: skip


def key(number, stratum):
    is_flag = stratum in RULES
    return StatementKey(
        statement_id=str(number), text_sha256="00", start=number, end=number + 2, is_flag=is_flag,
        rule=stratum if is_flag else "match", stratum=stratum,
        label=RULES[stratum].label if is_flag else "supported",
    )  # fmt: skip


def test_precision_counts_what_was_read_and_recall_what_it_stands_for():
    lines = [line(n, "wrong") for n in range(3)] + [line(3, "right"), line(4, "unclear"), line(5)]
    lines += [line(6, "wrong"), line(7, "right")]
    strata = ["value"] * 6 + ["no flag: supported"] * 2
    keys = LabelKeys(
        scorer_version="4",
        population={"value": 8, "no flag: supported": 100},
        keys=tuple(key(n, stratum) for n, stratum in enumerate(strata)),
    )
    found = agree(lines, keys)
    assert (found.judged, found.unclear, found.unread, found.wrong) == (6, 1, 1, 4)
    assert (found.wrong_unflagged, found.judged_unflagged) == (1, 2)
    [value] = found.rules
    assert (value.right, value.judged, value.proposed) == (3, 4, None)
    # Three flags stand for two statements each, the one that was missed for fifty.
    assert value.recall == pytest.approx(6 / 56)
    assert found.all_flags.recall == value.recall
    [label] = found.labels
    assert (label.name, label.right) == ("unsupported", 3)


@pytest.mark.parametrize(
    ("right", "judged", "proposed"),
    [
        (9, 9, "firm"),
        (8, 8, None),
        (0, 8, None),
        (0, 9, "advisory"),
        (6, 9, None),
        (35, 40, "firm"),
    ],
)
def test_a_tier_is_proposed_where_the_verdicts_decide(right, judged, proposed):
    lines = [line(n, "wrong" if n < right else "right") for n in range(judged)]
    keys = LabelKeys(
        scorer_version="4",
        population={"deed": 100},
        keys=tuple(key(n, "deed") for n in range(judged)),
    )
    [deed] = agree(lines, keys).rules
    assert (deed.tier, deed.proposed) == (RULES["deed"].tier, proposed)


def test_two_readers_who_differ_are_not_believed():
    lines = [line(0, "wrong", "wrong"), line(1, "wrong", "right"), line(2, "right", "right")]
    keys = LabelKeys(
        scorer_version="4",
        population={"value": 3},
        keys=tuple(key(n, "value") for n in range(3)),
    )
    found = agree(lines, keys)
    assert (found.judged, found.unclear, found.read_twice, found.alike) == (2, 1, 3, 2)
    assert found.kappa == pytest.approx(0.4)
    assert [one.verdict for one in judgements_of(lines, keys, "x")] == ["wrong", "unclear", "right"]


def test_kappa():
    assert kappa([]) is None
    assert kappa([("right", "right")]) is None  # both always said the same: nothing to agree on
    assert kappa([("right", "right"), ("wrong", "wrong")]) == 1
    assert kappa([("right", "wrong"), ("wrong", "right")]) == -1


def test_a_reader_is_asked_until_he_quits():
    lines = [line(0), line(1, "right"), line(2), line(3), line(4)]
    screen = StringIO()
    judged = list(ask(lines, StringIO("x\nW\ns\nunclear\nq\n"), screen))
    assert [(place, one.verdict) for place, one in judged] == [(0, "wrong"), (3, "unclear")]
    assert screen.getvalue().count("Is it right?") == 5
    assert list(ask(lines, StringIO(""), StringIO())) == []
    second = list(ask(lines, StringIO("r\n"), StringIO(), second=True))
    assert [(place, one.verdict_2) for place, one in second] == [(0, "right")]


def test_hostile_text_does_not_reach_the_screen():
    screen = StringIO()
    hostile = msgspec.structs.replace(line(0), sentence="\x1b[2Jgone", statement="\x1b]0;x\x07")
    list(ask([hostile], StringIO("q\n"), screen))
    assert "\x1b" not in screen.getvalue()


def label(results, folder, number="1000"):
    out = folder / "mine.jsonl"
    assert main(["label", str(results), "--sample", number, "-o", str(out)]) == 0
    return out


def test_from_the_run_to_the_figures(results, tmp_path, capsys):
    out = label(results, tmp_path)
    assert main(["label", str(results), "-o", str(out)]) == 2
    assert "exists already, and is left as it is" in capsys.readouterr().err
    assert main(["agree", "--labels", str(out)]) == 2
    assert "no verdict is set in it yet" in capsys.readouterr().err
    out.write_text(out.read_text().replace('"verdict":null', '"verdict":"wrong"'))
    written = ["--json", str(tmp_path / "a.json"), "--markdown", str(tmp_path / "a.md")]
    hashes = ["--judgements", str(tmp_path / "j.jsonl"), "--source", "mine"]
    assert main(["agree", "--labels", str(out), *written, *hashes]) == 0
    shown = capsys.readouterr().out
    assert "by rule" in shown
    figures = json.loads((tmp_path / "a.json").read_text())
    assert figures["all_flags"]["right"] == figures["all_flags"]["judged"] > 0
    assert "| record |" in (tmp_path / "a.md").read_text()
    published = (tmp_path / "j.jsonl").read_text()
    assert "W1001" not in published
    assert published.count('"verdict":"wrong"') == len(read_labels(out))


def test_the_run_stands_in_for_a_lost_key(results, tmp_path, capsys):
    out = label(results, tmp_path, "5")
    out.write_text(out.read_text().replace('"verdict":null', '"verdict":"right"'))
    assert main(["agree", "--labels", str(out)]) == 0
    before = capsys.readouterr().out
    (tmp_path / "mine.key.json").unlink()
    assert main(["agree", "--labels", str(out)]) == 2
    assert "mine.key.json: is missing" in capsys.readouterr().err
    assert main(["agree", "--labels", str(out), str(results)]) == 0
    assert capsys.readouterr().out in before  # `label` spoke before it


class Terminal(StringIO):
    def isatty(self):
        return True


@pytest.fixture
def typed(monkeypatch):
    """What a person types, and what he is shown."""

    def type_in(text):
        screen = Terminal()
        monkeypatch.setattr(sys, "stdin", Terminal(text))
        monkeypatch.setattr(sys, "stdout", screen)
        return screen

    return type_in


def ends_with(words, screen):
    """However long the name of the file makes the line."""
    return " ".join(screen.getvalue().split()).endswith(f"mine.jsonl: {words}")


def test_on_a_terminal_verdicts_are_kept_at_once_and_gone_on_with(results, tmp_path, typed):
    screen = typed("w\nr\nq\n")
    out = label(results, tmp_path, "4")
    shown = screen.getvalue()
    assert "  user: What do my orders cost?\n  call 0 look {}\n    " in shown
    assert "W1001" in shown.partition("sentence: ")[0]
    assert ends_with("2 judged, 2 left", screen)
    assert [one.verdict for one in read_labels(out)] == ["wrong", "right", None, None]
    screen = typed("u\nu\n")
    assert main(["label", str(results), "-o", str(out)]) == 0
    assert "1 of 2" in screen.getvalue()
    assert ends_with("4 judged, 0 left", screen)
    screen = typed("r\n")
    assert main(["label", str(results), "-o", str(out), "--second"]) == 0
    assert ends_with("1 judged, 3 left", screen)
    assert [one.verdict for one in read_labels(out)] == ["wrong", "right", "unclear", "unclear"]
    assert [one.verdict_2 for one in read_labels(out)] == ["right", None, None, None]


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (("wrong", "wrong"), "4 of 4 verdicts alike, κ not computable"),
        (("wrong", "right"), "0 of 4 verdicts alike, κ 0.00"),
    ],
)
def test_the_verdicts_of_two_files_are_those_of_two_readers(
    results, tmp_path, capsys, verdicts, said
):
    out = label(results, tmp_path, "4")
    other = tmp_path / "other.jsonl"
    text = out.read_text()
    for path, verdict in zip((out, other), verdicts, strict=True):
        path.write_text(text.replace('"verdict":null', f'"verdict":"{verdict}"'))
    assert main(["agree", "--labels", str(out), "--labels", str(other)]) == 0
    assert said in capsys.readouterr().out


@pytest.mark.parametrize(
    ("copies", "said", "kept"),
    [
        (1, "tiers.yaml: not changed: the verdicts are too few to decide on a rule", None),
        (10, "tiers.yaml: tiers: ", "firm"),
    ],
)
def test_tiers_are_written_where_the_verdicts_decide(results, tmp_path, capsys, copies, said, kept):
    """Ten runs of the same answers make a rule's flags enough of them."""
    many = tmp_path / "many.jsonl"
    lines = [json.loads(one) for one in results.read_text().splitlines()]
    rows = [{**one, "sample_id": f"{one['sample_id']}-{n}"} for n in range(copies) for one in lines]
    many.write_text("".join(json.dumps(row) + "\n" for row in rows))
    out = label(many, tmp_path)
    out.write_text(out.read_text().replace('"verdict":null', '"verdict":"wrong"'))
    path = tmp_path / "tiers.yaml"
    capsys.readouterr()
    assert main(["agree", "--labels", str(out), "--write-tiers", str(path)]) == 0
    assert said in capsys.readouterr().out
    assert path.exists() == (kept is not None)
    if kept:
        tiers = load_config(path, {}).tiers
        assert tiers
        assert set(tiers.values()) == {kept}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"verdict":null', '"verdict":"rigth"', "verdict: must be right, wrong, unclear or null"),
        ('"trial":0', '"trial":"x"', "trial"),
        ('{"statement_id":"', '{"statement_id":"0', "has nothing about statement 0"),
        ("{", "[{", "mine.jsonl:1: "),
    ],
)
def test_what_is_wrong_with_labels_is_said_where_it_stands(
    results, tmp_path, capsys, old, new, said
):
    out = label(results, tmp_path, "2")
    out.write_text(out.read_text().replace(old, new, 1))
    assert main(["agree", "--labels", str(out)]) == 2
    assert said in capsys.readouterr().err


def test_a_run_without_statements_and_wrong_options(tmp_path, capsys):
    messages = [{"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]
    (tmp_path / "in.jsonl").write_text(json.dumps({"id": "a", "messages": messages}) + "\n")
    main(["score", str(tmp_path / "in.jsonl"), "--out", str(tmp_path / "out.jsonl")])
    assert main(["label", str(tmp_path / "out.jsonl"), "-o", str(tmp_path / "x.jsonl")]) == 2
    assert "no statement about a result is in it" in capsys.readouterr().err
    assert not (tmp_path / "x.jsonl").exists()
    assert main(["label", "run", "--sample", "0"]) == 2
    assert main(["agree", "--labels", "a", "--labels", "b", "--labels", "c"]) == 2
    assert main(["agree", "--labels", "a", "--judgements", "j"]) == 2


def test_two_files_of_other_statements_are_refused(results, tmp_path, capsys):
    out = label(results, tmp_path, "4")
    other = tmp_path / "other.jsonl"
    other.write_text("".join(out.read_text().splitlines(keepends=True)[1:]))
    assert main(["agree", "--labels", str(out), "--labels", str(other)]) == 2
    assert "its statements are not those of" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "tiers:\n  deed: firm\n"),
        ("seed: 3", "seed: 3\ntiers:\n  deed: firm\n"),
        (
            "# mine\ntiers:\n  value: advisory\n  deed: advisory\n\nseed: 3 # three\n",
            "# mine\nseed: 3 # three\ntiers:\n  deed: firm\n  value: advisory\n",
        ),
        (
            "tiers: {value: advisory}\nseed: 3\n",
            "seed: 3\ntiers:\n  deed: firm\n  value: advisory\n",
        ),
    ],
)
def test_tiers_are_put_into_the_settings_and_nothing_else_changes(tmp_path, before, after):
    path = tmp_path / "callmark.yaml"
    if before is not None:
        path.write_text(before)
    put_tiers(path, {"deed": "firm"})
    assert path.read_text() == after
    assert load_config(path, {}).tiers["deed"] == "firm"


def test_settings_that_cannot_be_edited_are_left_alone(tmp_path):
    path = tmp_path / "callmark.yaml"
    text = "tiers: {\n value: advisory\n}\nseed: 3\n"
    path.write_text(text)
    with pytest.raises(
        UsageError, match=r"cannot be edited without changing it; put this in:\ntiers"
    ):
        put_tiers(path, {"deed": "firm"})
    assert path.read_text() == text


def test_tiers_of_the_settings_decide_what_counts(results, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rules = {
        one.rule for line in read_results(results) for one in line.scores.statements if one.tier
    }
    assert rules
    for tier in ("advisory", "firm"):
        (tmp_path / "callmark.yaml").write_text(
            "tiers:\n" + "".join(f"  {rule}: {tier}\n" for rule in sorted(rules))
        )
        main(["score", str(results), "--out", str(tmp_path / f"{tier}.jsonl")])
    advisory, firm = (
        list(read_results(tmp_path / f"{tier}.jsonl")) for tier in ("advisory", "firm")
    )
    flags = [one for line in firm for one in line.scores.statements if one.is_flag]
    assert {one.tier for one in flags} == {"firm"}
    assert dict(firm[0].scoring.tiers) == dict.fromkeys(sorted(rules), "firm")
    for line in (1, 2):
        assert advisory[line].scores.lax.precision == 1.0 > firm[line].scores.lax.precision


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tiers:\n  valeu: firm\n", "callmark.yaml:2: tiers.valeu: unknown rule; did you mean"),
        ("tiers:\n  value: solid\n", "callmark.yaml:2: tiers.value: must be firm or advisory"),
        ("tiers: firm\n", "callmark.yaml:1: tiers: "),
    ],
)
def test_wrong_tiers_are_refused(tmp_path, text, said):
    path = tmp_path / "callmark.yaml"
    path.write_text(text)
    with pytest.raises(UsageError) as caught:
        load_config(path, {})
    assert said in str(caught.value)
