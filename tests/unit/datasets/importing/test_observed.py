"""What was done becomes what is expected, of whole conversations and of each step."""

import json
import os
from pathlib import Path

import pytest

from callmark.cli.dataset_accept import main as accept_main
from callmark.cli.dataset_import import main as import_main
from callmark.cli.show import main as show_main
from callmark.cli.verify import main as verify_main
from callmark.config import load_config
from callmark.datasets.accept import accept_item, accept_observed
from callmark.datasets.reader import open_dataset
from callmark.errors import UsageError
from callmark.records.samples import NOT_RECORDED
from callmark.run.conclude import run
from callmark.store.files import read_results

TOOLS = [
    {"name": name, "description": about, "parameters": {
        "type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"]}}
    for name, about in (("get_order", "Look up an order."), ("cancel_order", "Cancel an order."))
]  # fmt: skip


def call(name, order, number):
    function = {"name": name, "arguments": json.dumps({"order_id": order})}
    return {"id": f"c{number}", "type": "function", "function": function}


def talk(name="one", order="A-1071", total=84.5, mail="ann.lee@mail.example"):
    return {
        "id": name,
        "tools": TOOLS,
        "messages": [
            {"role": "user", "content": f"I am {mail}. How much was {order}?"},
            {"role": "assistant", "content": None, "tool_calls": [call("get_order", order, 1)]},
            {"role": "tool", "tool_call_id": "c1",
             "content": json.dumps({"order_id": order, "total": total, "mail": mail})},
            {"role": "assistant", "content": f"The total was ${total:.2f}. Shall I cancel it?"},
            {"role": "user", "content": "Yes, cancel it."},
            {"role": "assistant", "content": None, "tool_calls": [call("cancel_order", order, 2)]},
            {"role": "tool", "tool_call_id": "c2", "content": json.dumps({"status": "cancelled"})},
            {"role": "assistant", "content": f"I have cancelled order {order}."},
        ],
    }  # fmt: skip


@pytest.fixture
def made(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def make(*options, talks=None):
        lines = talks or [talk(), talk("two", "B-2", 12.25, "bo@mail.example")]
        Path("log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        import_main(["log.jsonl", "--out", "set.jsonl", "--report", "report.json", *options])
        items = [json.loads(line) for line in Path("set.jsonl").read_text().splitlines()[1:]]
        return {item["metadata"]["sample_id"]: item for item in items}

    return make


def answers():
    return [json.loads(line) for line in Path("set.answers.jsonl").read_text().splitlines()]


def play(lines=None, **settings):
    """The recorded answers, or altered ones, as `callmark run` plays them."""
    Path("alt.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines or answers()))
    config = load_config(
        Path(os.devnull),
        {"in": "set.jsonl", "registry": "set.tools.json", "fixtures": "set.fixtures",
         "model": "alt.jsonl", "out": "out.jsonl", "report": "out.json", **settings},
    )  # fmt: skip
    outcome = run(config)
    results = {one.sample_id: one for one in read_results(Path("out.jsonl"))}
    return outcome.report, results


def statuses(report):
    return {gate.name: gate.status for gate in report.gates}


def unmapped():
    report = json.loads(Path("report.json").read_text())
    return {kind["kind"]: kind["count"] for kind in report["unmapped"]}


def test_f52_what_was_done_is_expected(made):
    items = made("--expect", "observed")
    metadata = items["one"]["metadata"]
    assert metadata["observed"] is True
    assert [one["name"] for one in metadata["call_sequence"]] == ["get_order", "cancel_order"]
    assert metadata["call_sequence"][0]["arguments"] == {"order_id": "A-1071"}
    assert items["one"]["user_turns"] == ["Yes, cancel it."]
    report, results = play()
    assert statuses(report)["unchanged_rate"] == "pass"
    assert "fail" not in statuses(report).values()
    assert results["one"].scores.changes == ()


def test_a_step_asks_for_one_decision_on_the_recorded_path(made):
    items = made("--per-step")
    assert list(items) == [f"{name}#{step}" for name in ("one", "two") for step in (1, 2, 3, 4)]
    second = items["one#2"]
    assert [message["role"] for message in second["prompt"]] == ["user", "assistant", "tool"]
    assert second["metadata"]["call_sequence"] == []
    assert second["metadata"]["required_facts"] == ["84.50"]
    assert second["metadata"]["cluster"] == "one"
    assert items["one#3"]["metadata"]["call_sequence"][0]["name"] == "cancel_order"
    report, results = play()
    assert statuses(report)["unchanged_rate"] == "pass"
    assert "fail" not in statuses(report).values()
    assert not [one for one in results["one#4"].scores.statements if one.is_firm]


def altered(sample, change):
    lines = answers()
    [line] = [line for line in lines if line["sample_id"] == sample]
    at = max(at for at, one in enumerate(line["messages"]) if one["role"] == "assistant")
    line["messages"] = line["messages"][: at + 1]
    change(line["messages"][at])
    return lines


def other_argument(message):
    message["tool_calls"][0]["function"]["arguments"] = '{"order_id": "A-9"}'


def no_deed(message):
    message.pop("tool_calls")
    message["content"] = "I have cancelled it."


def other_call(message):
    message["tool_calls"] = [call("get_order", "A-1071", 1)]


@pytest.mark.parametrize(
    ("sample", "change", "said"),
    [
        ("one#1", other_argument,
         'calls get_order {"order_id":"A-9"} instead of get_order {"order_id":"A-1071"}'),
        ("one#2", lambda one: one.update(content="The total was $94.50. Shall I cancel it?"),
         'does not state "84.50"'),
        ("one#3", no_deed, 'does not call cancel_order {"order_id":"A-1071"}'),
        ("one#2", other_call, 'also calls get_order {"order_id":"A-1071"}'),
        ("one#4", lambda one: one.update(content=""), "says nothing"),
    ],
)  # fmt: skip
def test_each_change_is_named_and_no_fixture_is_missed(made, sample, change, said):
    made("--per-step", "--pii", "keep")
    report, results = play(altered(sample, change))
    assert said in results[sample].scores.changes
    assert report.failing["unchanged_rate"].sample_ids == (sample,)
    assert statuses(report)["unchanged_rate"] == "warn"
    assert statuses(report)["call_f1_macro"] == "n/a"
    assert report.misses.count == 0
    assert not any(one.scores.changes for name, one in results.items() if name != sample)


def test_what_is_accepted_is_right_and_another_call_wrong(made):
    made("--per-step", "--pii", "keep")
    done = accept_observed(Path("set.jsonl"), ["one#1", "one#2"])
    assert (done.accepted, done.left) == (2, 6)
    open_dataset(Path("set.jsonl")).close()
    report, results = play(altered("one#1", other_argument))
    assert results["one#1"].scores.call_f1 == 0
    assert results["one#1"].scores.kind == "eligible"
    assert report.metrics["answered_rate"].value is None
    _, results = play(altered("one#2", other_call))
    assert results["one#2"].scores.checks_ok is False
    with pytest.raises(UsageError, match="'one#1' expects nothing that was merely observed"):
        accept_observed(Path("set.jsonl"), ["one#1"])
    accept_observed(Path("set.jsonl"))
    report, _ = play()
    assert "fail" not in statuses(report).values()


def without_order(message):
    message["tool_calls"][0]["function"]["arguments"] = "{}"


def test_calls_are_valid_or_not_only_where_somebody_has_judged(made):
    """Until then a broken call is at most a change, and no sample leaves the gate by its calls."""
    broken = talk("two", "B-2", 12.25, "bo@mail.example")
    without_order(broken["messages"][1])
    made("--expect", "observed", talks=[talk(), broken])
    sound, spoilt = answers(), answers()
    without_order(spoilt[0]["messages"][1])
    for lines, changed in ((sound, 0), (spoilt, 1)):
        report, results = play(lines)
        assert report.metrics["json_args_valid_rate"].n == 0
        assert statuses(report)["json_args_valid_rate"] == "n/a"
        assert [one.scores.json_args_valid for one in results.values()] == [None, None]
        assert sum(bool(one.scores.changes) for one in results.values()) == changed
    accept_observed(Path("set.jsonl"), (), rejected=["two"])
    rejected = play()[0].metrics["json_args_valid_rate"]
    assert (rejected.value, rejected.n) == (0, 1)
    accept_observed(Path("set.jsonl"))
    judged = play()[0].metrics["json_args_valid_rate"]
    assert (judged.value, judged.n) == (0.5, 2)


def test_what_is_removed_is_asked_no_more_whatever_it_expects(made, capsys):
    made("--expect", "observed", talks=[talk(), talk("two", "B-2", 12.25, "bo@mail.example")])
    assert accept_main(["set.jsonl", "--all", "--reject", "two"]) == 0
    said = capsys.readouterr().out
    assert "1 sample accepted, 1 rejected\n" in said
    assert "What is rejected is still asked" in said
    assert "--remove ID takes a sample out." in said
    assert accept_main(["set.jsonl", "--remove", "two"]) == 0
    assert "0 samples accepted, 1 removed\n" in capsys.readouterr().out
    with open_dataset(Path("set.jsonl")) as opened:  # which its header pins anew
        assert [one.sample_id for one in opened.samples()] == ["one"]
    with pytest.raises(UsageError, match="'two' is no sample of it"):
        accept_observed(Path("set.jsonl"), (), removed=["two"])
    with pytest.raises(UsageError, match="nothing is left of it"):
        accept_observed(Path("set.jsonl"), (), removed=["one"])


def test_who_accepts_all_may_remove_some_at_once(made):
    made("--expect", "observed", talks=[talk(), talk("two", "B-2", 12.25, "bo@mail.example")])
    done = accept_observed(Path("set.jsonl"), removed=["two"])
    assert (done.accepted, done.rejected, done.left, done.removed) == (1, 0, 0, 1)


def test_accepting_while_importing_is_the_same(made):
    accepted = made("--per-step", "--accept")
    observed = made("--per-step")
    assert accepted == {name: accept_item(item) for name, item in observed.items()}


def test_what_nobody_was_asked_is_accepted_by_name_only(made, capsys):
    lost = talk("lost", "C-3", 3.5, "cy@mail.example")
    for message in lost["messages"]:
        if message["role"] == "user":  # as an import of spans says it
            message["content"] = NOT_RECORDED
    talks = [talk(), lost]
    assert made("--expect", "observed", "--accept", talks=talks)["lost"]["metadata"]["observed"]
    made("--expect", "observed", talks=talks)
    capsys.readouterr()
    accept_main(["set.jsonl", "--all"])
    said = capsys.readouterr().out
    assert "1 sample accepted, 1 still merely observed" in said
    assert "1 not accepted, because the log does not hold what was asked: lost." in said
    assert accept_observed(Path("set.jsonl"), ["lost"]).accepted == 1


def test_a_set_that_asks_nothing_says_so_before_a_model_is_asked(made, capsys):
    lost, cut = talk("lost"), talk("cut", "C-3", 3.5, "cy@mail.example")
    for message in lost["messages"]:
        if message["role"] == "user":
            message["content"] = NOT_RECORDED
    at = next(at for at, one in enumerate(cut["messages"]) if one["role"] == "tool")
    cut["messages"].insert(at + 1, {"role": "user", "content": "And only then the refund."})
    made("--expect", "observed", talks=[lost, cut])
    capsys.readouterr()
    assert verify_main(["set.jsonl", "--registry", "set.tools.json"]) in (0, 5)
    said = " ".join(capsys.readouterr().out.split())
    assert "1 item without what was asked, which the log does not hold" in said
    assert "1 item with less than the user said (user_turns_lost)" in said


def test_who_spoke_out_of_turn_is_accepted_by_name_or_step_by_step_only(made, capsys):
    """A model would be asked the first thing only, and judged by what came of the second."""
    cut = talk("cut", "C-3", 3.5, "cy@mail.example")
    at = next(at for at, one in enumerate(cut["messages"]) if one["role"] == "tool")
    cut["messages"].insert(at + 1, {"role": "user", "content": "And only then the refund."})
    talks = [talk(), cut]
    for options in (("--expect", "observed"), ("--expect", "observed", "--accept")):
        items = made(*options, talks=talks)
        assert items["cut"]["metadata"]["user_turns_lost"]
        assert items["cut"]["metadata"]["observed"]
        assert "user_turns_lost" not in items[talk()["id"]]["metadata"]
    made("--expect", "observed", talks=talks)
    capsys.readouterr()
    accept_main(["set.jsonl", "--all"])
    assert "1 not accepted, because the user spoke out of turn" in capsys.readouterr().out
    assert accept_observed(Path("set.jsonl"), ["cut"]).accepted == 1
    steps = made("--per-step", "--accept", talks=talks)
    assert not any("user_turns_lost" in one["metadata"] for one in steps.values())
    assert not any(one["metadata"].get("observed") for one in steps.values())


def test_a_hole_of_the_log_is_no_gap_in_the_fixtures(made, capsys):
    """A call that nothing answered in the log: its own recording runs, whether or not what was
    observed is expected, and nobody accepts the sample by accident."""
    cut = talk("cut", "C-3", 3.5, "cy@mail.example")
    cut["messages"] = cut["messages"][:-2]
    talks = [talk(), cut]
    for options in ((), ("--expect", "observed"), ("--expect", "observed", "--accept")):
        item = made(*options, talks=talks)["cut"]
        assert [one["name"] for one in item["metadata"]["unanswered_calls"]] == ["cancel_order"]
        assert bool(item["metadata"].get("observed")) == bool(options)
        report, results = play()
        assert report.counts.unresolved == 0
        assert "fail" not in statuses(report).values()
        assert [one.status for one in results["cut"].tool_trace] == ["ok", "unanswered"]

    made("--expect", "observed", talks=talks)
    capsys.readouterr()
    accept_main(["set.jsonl", "--all"])
    said = capsys.readouterr().out
    assert "1 sample accepted, 1 still merely observed" in said
    assert "the log lacks the result of a call: cut." in said
    assert accept_observed(Path("set.jsonl"), ["cut"]).accepted == 1  # by name: on purpose

    # Another call than the one that the log left open is missed as ever.
    made(talks=talks)
    others = answers()
    others[1]["messages"][-1]["tool_calls"] = [call("cancel_order", "C-4", 2)]
    assert play(others)[0].counts.unresolved == 1


def test_a_step_has_no_hole(made):
    cut = talk()
    cut["messages"] = cut["messages"][:-2]
    items = made("--per-step", "--accept", talks=[cut])
    assert not any("unanswered_calls" in item["metadata"] for item in items.values())
    assert not any(item["metadata"].get("observed") for item in items.values())


def submits(name="sub", order="D-4", said=None):
    """Ends with a call, as an agent does that answers through a tool."""
    line = talk(name, order, 4.25, "dee@mail.example")
    line["messages"] = line["messages"][:-1]
    line["messages"][-2]["content"] = said
    return line


@pytest.mark.parametrize("said", [None, "I cancel it now."])
def test_who_answers_through_a_tool_is_not_asked_for_words(made, capsys, said):
    """An accepted sample wants text after the last result, and this recording has none."""
    talks = [talk(), submits(said=said)]
    items = made("--expect", "observed", talks=talks)
    assert items["sub"]["metadata"]["ends_without_answer"] is True
    assert "ends_without_answer" not in items["one"]["metadata"]
    assert unmapped()["ends_without_answer"] == 1
    assert made("--expect", "observed", "--accept", talks=talks) == {
        "one": accept_item(items["one"]),
        "sub": items["sub"],
    }

    made("--expect", "observed", talks=talks)
    capsys.readouterr()
    accept_main(["set.jsonl", "--all"])
    told = capsys.readouterr().out
    assert "1 sample accepted, 1 still merely observed" in told
    assert "1 not accepted, because nothing is said after the last result" in told
    assert "wants an answer: sub." in " ".join(told.split())
    report, results = play()
    assert "fail" not in statuses(report).values()
    assert results["sub"].scores.changes == ()

    # By name somebody says that words belong there: that is what is measured then.
    assert accept_observed(Path("set.jsonl"), ["sub"]).left == 0
    _, results = play()
    assert results["sub"].scores.answered is False
    assert results["one"].scores.answered is True
    with open_dataset(Path("set.jsonl")) as dataset:
        assert not [one for one in dataset.samples() if "ends_without_answer" in one.metadata]


def test_a_recording_that_ends_with_a_call_met_no_limit(made, capsys):
    made("--expect", "observed", talks=[submits()])
    for limit, told in ((None, "its recording ends with a call"), (9, "its recording ends with"),
                        (2, "stopped by max_turns")):  # fmt: skip
        play(**({"max_turns": limit} if limit else {}))
        capsys.readouterr()
        show_main(["out.jsonl", "sub"])
        assert told in capsys.readouterr().out.splitlines()[0]


def test_the_steps_of_such_a_recording_are_right_and_silence_is_wrong(made):
    items = made("--per-step", "--accept", talks=[submits()])
    assert not any(item["metadata"].get("observed") for item in items.values())
    report, results = play()
    assert "fail" not in statuses(report).values()
    assert results["sub#3"].scores.call_f1 == 1

    def fall_silent(message):
        message.pop("tool_calls")
        message["content"] = ""

    report, results = play(altered("sub#3", fall_silent))
    assert results["sub#3"].scores.call_f1 == 0
    assert report.failing["call_f1_macro"].sample_ids == ("sub#3",)


def test_what_ends_without_an_answer_can_be_rejected(made):
    made("--expect", "observed", talks=[talk(), submits()])
    done = accept_observed(Path("set.jsonl"), rejected=["sub"])
    assert (done.accepted, done.rejected, done.left, done.silent) == (1, 1, 0, ())
    with open_dataset(Path("set.jsonl")) as dataset:
        assert not [one for one in dataset.samples() if "ends_without_answer" in one.metadata]


def test_secrets_and_personal_data_are_gone_everywhere(made):
    lines = [talk()]
    lines[0]["messages"][0]["content"] += " My key is sk-abcdefghijklmnopqrstuvwxyz."
    items = made("--per-step", talks=lines)
    for name in ("set.jsonl", "set.answers.jsonl", "set.fixtures/imported.jsonl"):
        text = Path(name).read_text()
        assert "ann.lee@mail.example" not in text
        assert "abcdefghijklmnop" not in text
    first, last = items["one#1"]["prompt"][0]["content"], items["one#4"]["prompt"][0]["content"]
    assert first == last
    report, _ = play()
    assert statuses(report)["unchanged_rate"] == "pass"
    assert "ann.lee@mail.example" in str(made("--per-step", "--pii", "keep"))


@pytest.mark.parametrize("options", [(), ("--pii", "keep"), ("--pii", "surrogate")])
def test_f12_no_secret_of_a_log_reaches_a_file_of_its_import(made, capsys, options):
    line = talk()
    first, asked, told, *_ = line["messages"]
    first["content"] += " My key is sk-abcdefghijklmnopqrstuvwxyz, my password Open-sesame9."
    arguments = {"order_id": "A-1071", "password": "Open-sesame9"}
    asked["tool_calls"][0]["function"]["arguments"] = json.dumps(arguments)
    told["content"] = json.dumps({"headers": "Authorization: Bearer qwertyuiop", "total": 84.5})
    line["messages"].append({"role": "user", "content": [{"type": "sk-abcdefghijklmnopqrstuvwx"}]})
    items = made(*options, talks=[line])
    texts = [path.read_text() for path in Path().rglob("set*") if path.is_file()]
    texts += [
        Path("report.json").read_text(),
        *(one.read_text() for one in Path("set.fixtures").iterdir()),
    ]
    assert len(texts) == 5
    for text in (*texts, capsys.readouterr().out):
        assert not [one for one in ("abcdefghij", "sesame", "qwertyuiop") if one in text]
    # What a call hands on is the same in the prompt, so that it can be asked again.
    assert "my password [secret]." in items["one"]["prompt"]
    assert ("ann.lee@mail.example" in items["one"]["prompt"]) == (options != ("--pii", "surrogate"))
    first_fixture = Path("set.fixtures/imported.jsonl").read_text().splitlines()[0]
    assert json.loads(first_fixture)["key"] == {**arguments, "password": "[secret]"}


def test_a_call_that_could_not_be_read_leaves_the_others_expected(made):
    lines = [talk()]
    broken = {"id": "c9", "type": "function", "function": {"name": "get_order", "arguments": "{"}}
    lines[0]["messages"][1]["tool_calls"].append(broken)
    items = made("--expect", "observed", talks=lines)
    assert items["one"]["metadata"]["call_match"] == "superset"
    report, _ = play()
    assert statuses(report)["unchanged_rate"] == "pass"


def test_what_a_source_expects_itself_is_kept_beside_it(made):
    lines = [
        {**talk(), "metadata": {"call_sequence": ["get_order"], "expected_behaviour": "retry"}}
    ]
    metadata = made("--expect", "observed", talks=lines)["one"]["metadata"]
    assert "expected_behaviour" not in metadata
    assert metadata["imported_from"]["expected"] == {
        "call_sequence": ["get_order"],
        "expected_behaviour": "retry",
    }


def test_nothing_is_expected_where_nothing_was_observed(made):
    asked = {"id": "asked", "messages": [{"role": "user", "content": "Hello?"}]}
    items = made("--expect", "observed", talks=[talk(), asked])
    assert "observed" not in items["asked"]["metadata"]
    assert unmapped()["nothing_observed"] == 1


def test_near_duplicates_are_folded_into_the_first(made):
    long, other = (" ".join(f"{word}{at}" for at in range(200)) for word in ("word", "other"))
    lines = []
    for number, more in enumerate(("", " please", f" {other}")):
        line = talk(f"talk-{number}")
        line["messages"][0]["content"] = f"{long}{more} How much was A-1071?"
        lines.append(line)
    assert list(made("--dedupe", talks=lines)) == ["talk-0", "talk-2"]
    assert unmapped()["near_duplicate"] == 1


def asked(name, answer, *, city="Ulm", blank="", system="Be brief.", **more):
    function = {"name": "weather", "arguments": f'{{"city":{blank}"{city}"}}'}
    call_id = f"id-{name}"  # each conversation has its own
    return {"id": name, **more, "messages": [
        {"role": "system", "content": system},
        {"role": "user", "content": "Weather?"},
        {"role": "assistant", "content": None,
         "tool_calls": [{"id": call_id, "type": "function", "function": function}]},
        {"role": "tool", "tool_call_id": call_id, "content": '{"temp_c": 19}'},
        {"role": "assistant", "content": answer},
    ]}  # fmt: skip


def test_the_same_deeds_in_other_words_are_a_copy(made):
    spoken = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello there."}]
    lines = [
        asked("first", "It is 19 degrees."),
        asked("words", "The current weather is 19 degrees, and sunny."),
        asked("blanks", "19.", blank=" ", system="Be someone else."),
        asked("city", "The current weather is 19 degrees.", city="Bonn"),
        {"id": "hi", "messages": spoken},
        {"id": "hi again", "messages": [spoken[0], {"role": "assistant", "content": "Good day."}]},
    ]
    assert list(made("--dedupe", talks=lines)) == ["first", "city", "hi"]
    assert unmapped()["near_duplicate"] == 3
    result = asked("result", "It is 21 degrees.")
    result["messages"][-2]["content"] = '{"temp_c": 21}'
    assert list(made("--dedupe", talks=[lines[0], result])) == ["first", "result"]


def test_what_a_text_or_an_image_holds_is_no_copy(made):
    """Calls that are written into a text, and what is asked in another form than text."""
    written = [
        {"id": command, "messages": [
            {"role": "user", "content": "Go on."},
            {"role": "assistant", "content": f"run({command})"},
            {"role": "user", "content": "done"},
            {"role": "assistant", "content": "All is done."}]}
        for command in ("ls", "rm")
    ]  # fmt: skip
    shown = [
        {"id": name, "messages": [
            {"role": "user", "content": [
                {"type": "text", "text": "What is it?"},
                {"type": "image_url", "image_url": {"url": f"https://pictures.example/{name}"}}]},
            {"role": "assistant", "content": f"It is a {name} in the grass."}]}
        for name in ("cat", "dog")
    ]  # fmt: skip
    assert list(made("--dedupe", talks=[*written, *shown])) == ["ls", "rm", "cat", "dog"]


def test_trials_and_questions_that_nobody_knows_are_no_copies(made):
    trials = [asked("one", f"It is {word} degrees.", trial=at) for at, word in enumerate("ab")]
    made("--dedupe", talks=trials)
    assert [one["trial"] for one in answers()] == [0, 1]
    unknown = [
        {"id": name, "messages": [{"role": "user", "content": NOT_RECORDED},
                                  {"role": "assistant", "content": said}]}
        for name, said in (("a", "Yes, of course."), ("b", "It rains."))
    ]  # fmt: skip
    assert list(made("--dedupe", talks=unknown)) == ["a", "b"]


def test_a_sample_is_seeded_and_takes_from_every_set_of_tools(made):
    common = [talk(f"talk-{number}", f"A-{number}") for number in range(30)]
    rare = {"id": "rare", "tools": TOOLS, "messages": [
        {"role": "user", "content": "Hello"}, {"role": "assistant", "content": "Hello!"}]}  # fmt: skip
    first = list(made("--sample", "5", talks=[*common, rare]))
    assert len(first) == 5
    assert "rare" in first
    assert list(made("--sample", "5", talks=[*common, rare])) == first
    assert list(made("--sample", "5", "--seed", "7", talks=[*common, rare])) != first
    assert unmapped()["not_sampled"] == 26
    assert len(made("--sample", "50", talks=[*common, rare])) == 31


def test_options_that_would_do_nothing_are_refused(made):
    with pytest.raises(UsageError, match="--accept: needs"):
        made("--accept")
    with pytest.raises(UsageError, match="--sample: must be"):
        made("--sample", "0")
