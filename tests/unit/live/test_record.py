"""A recording: which calls are made in which mode, and what the folder holds afterwards."""

import itertools
import json
import re
from pathlib import Path

import msgspec
import pytest

from callmark.broker.broker import ToolBroker
from callmark.errors import BadInput, Incomplete, UsageError
from callmark.live.cleaning import Surrogates
from callmark.live.python import PlannedCall, calls_of_file
from callmark.live.record import (
    Keeping,
    LiveOptions,
    Pins,
    open_live,
    read_pin,
    record,
    recording,
)
from callmark.live.recorder import Answered, LostCall, items_for_copy, read_texts, with_surrogates
from callmark.records.seams import Miss
from callmark.run.offers import open_registry

EMAIL = "ada@acme.com"


class Counting:
    """Live tools that answer with how often they were asked."""

    origin = "counting"
    specs = (
        {"name": "count", "parameters": {"type": "object"}},
        {"name": "echo", "parameters": {"type": "object"}},
        {"name": "gone", "parameters": {"type": "object"}},
    )

    def __init__(self):
        self.asked = []
        self.numbers = itertools.count(1)

    def call(self, name, arguments):
        self.asked.append(name)
        if name == "gone":
            return LostCall("the server is gone", gone=True)
        return Answered({"n": next(self.numbers)} if name == "count" else {"said": arguments})


def planned(*calls, sample=None):
    return [PlannedCall(name, arguments, sample, "here") for name, arguments in calls]


COUNT = ("count", {})


@pytest.fixture
def kept(tmp_path: Path) -> Keeping:
    return Keeping(folder=tmp_path / "fixtures", pii="keep")


def lines(kept: Keeping, tool: str):
    return [json.loads(line) for line in (kept.folder / f"{tool}.jsonl").read_text().splitlines()]


def test_none_calls_nothing_and_names_what_is_missing(kept):
    live = Counting()
    done = record(planned(COUNT, COUNT, ("echo", {"q": "A"})), None, kept, "none")
    assert [one.name for one in done.missing] == ["count", "echo"]
    assert live.asked == []
    assert not kept.folder.exists()


def test_f53_a_tool_that_nobody_has_is_not_asked_and_leaves_no_fixture(kept):
    """A server may say anything to a name that it does not know: it is the answer of no tool."""
    live = Counting()
    done = record(
        planned(COUNT, ("mystery", {"q": "A"}), ("mystery", {"q": "A"})), live, kept, "new"
    )
    assert live.asked == ["count"]
    assert (done.written, done.missing, done.lost) == (1, (), ())
    assert [(one.name, one.key) for one in done.unknown] == [("mystery", {"q": "a"})]
    assert sorted(path.name for path in kept.folder.glob("*.jsonl")) == ["count.jsonl"]


def test_once_fills_an_empty_folder_and_then_never_calls(kept):
    live = Counting()
    assert record(planned(COUNT), live, kept, "once").written == 1
    again = record(planned(COUNT, ("echo", {})), live, kept, "once")
    assert (again.known, len(again.missing)) == (1, 1)
    assert live.asked == ["count"]


def test_new_asks_only_what_has_no_fixture(kept):
    live = Counting()
    record(planned(("echo", {"q": "Rope"})), live, kept, "new")
    done = record(planned(("echo", {"q": "  rope "}), ("echo", {"q": "fp8"})), live, kept, "new")
    assert (done.known, done.calls, done.written) == (1, 1, 1)
    assert [line["key"] for line in lines(kept, "echo")] == [{"q": "fp8"}, {"q": "Rope"}]


def test_all_asks_everything_anew_and_keeps_the_rest(kept):
    live = Counting()
    record(planned(COUNT, ("echo", {"a": 1})), live, kept, "all")
    record(planned(COUNT), live, kept, "all")
    assert [line["result"] for line in lines(kept, "count")] == [{"n": 2}]
    assert len(lines(kept, "echo")) == 1


def test_answers_that_change_are_a_sequence(kept):
    record(planned(COUNT, COUNT, ("echo", {}), ("echo", {})), Counting(), kept, "new")
    assert [(line["seq"], line["result"]["n"]) for line in lines(kept, "count")] == [(1, 1), (2, 2)]
    assert "seq" not in lines(kept, "echo")[0]
    broker = ToolBroker(kept.folder, open_registry(str(kept.registry_file)))
    session = broker.session()
    assert [session.answer("count", {}).result["n"] for _ in range(3)] == [1, 2, 2]


def test_samples_share_answers_unless_they_are_kept_apart(kept, tmp_path):
    calls = planned(COUNT, sample="a") + planned(COUNT, sample="b")
    assert record(calls, Counting(), kept, "new").calls == 1
    apart = Keeping(folder=tmp_path / "apart", pii="keep")
    record(calls, Counting(), apart, "new", per_sample=True)
    assert [(line["sample_id"], line["result"]["n"]) for line in lines(apart, "count")] == [
        ("a", 1),
        ("b", 2),
    ]


def test_what_was_answered_before_the_server_went_is_written(kept):
    done = record(planned(COUNT, ("gone", {}), ("echo", {})), Counting(), kept, "new")
    assert done.lost == ("here: the server is gone",)
    assert (done.calls, done.written) == (2, 1)
    assert len(lines(kept, "count")) == 1


def test_the_order_of_lines_does_not_depend_on_the_order_of_calls(kept, tmp_path):
    calls = planned(*(("echo", {"n": number}) for number in range(9)))
    other = Keeping(folder=tmp_path / "other", pii="keep")
    record(calls, Counting(), kept, "new")
    for call in reversed(calls):
        record([call], Counting(), other, "new")
    for name in ("echo.jsonl", ".registry.json"):
        assert (kept.folder / name).read_bytes() == (other.folder / name).read_bytes()


def test_lines_of_others_stay_with_their_notes(kept):
    kept.folder.mkdir()
    mine = {"name": "echo", "key": {"x": 1}, "result": None, "_note": "by hand"}
    pattern = {"name": "echo", "key": {"x": 2}, "match": "any", "result": 5}
    (kept.folder / "echo.jsonl").write_text(f"{json.dumps(mine)}\n\n{json.dumps(pattern)}\n")
    record(planned(("echo", {"x": 1}), ("count", {})), Counting(), kept, "all")
    assert pattern in lines(kept, "echo")
    assert mine not in lines(kept, "echo")
    (kept.folder / "echo.jsonl").write_text(f"{json.dumps(mine)}\n")
    record(planned(("echo", {"x": 7})), Counting(), kept, "all")
    assert mine in lines(kept, "echo")


def test_all_does_not_touch_a_file_of_somebody_else(kept):
    kept.folder.mkdir()
    (kept.folder / "mine.jsonl").write_text('{"name": "count", "key": {}, "result": 1}\n')
    live = Counting()
    with pytest.raises(BadInput, match=r"mine\.jsonl:1: answers count already"):
        record(planned(COUNT), live, kept, "all")
    assert live.asked == []


def test_personal_data_are_replaced_and_the_calls_still_known(tmp_path):
    kept = Keeping(folder=tmp_path / "fixtures")
    live = Counting()
    calls = planned(("echo", {"to": EMAIL}))
    done = record(calls, live, kept, "new")
    assert any("surrogates" in text for text in done.warnings)
    written = (kept.folder / "echo.jsonl").read_text()
    assert EMAIL not in written
    [line] = lines(kept, "echo")
    assert line["key"] == line["result"]["said"]
    assert record(calls, live, kept, "new").known == 1
    surrogate = planned(("echo", line["key"]))
    assert record(surrogate, live, kept, "new").known == 1
    assert live.asked == ["echo"]


def test_a_copy_of_the_dataset_has_the_same_surrogates(tmp_path):
    items = [
        {"__header__": True, "dataset_version": "3", "dataset_sha256": "0" * 64},
        {
            "prompt": f"Write to {EMAIL}",
            "metadata": {"call_sequence": [{"name": "echo", "arguments": {"to": EMAIL}}]},
        },
    ]
    dataset = tmp_path / "d.jsonl"
    dataset.write_text("\n".join(map(json.dumps, items)))
    copy = tmp_path / "copy.jsonl"
    kept = Keeping(folder=tmp_path / "f", dataset=dataset, out_dataset=copy)
    record(planned(("echo", {"to": EMAIL})), Counting(), kept, "new")
    header, item = map(json.loads, copy.read_text().splitlines())
    assert header == {"__header__": True, "dataset_version": "3"}
    key = lines(kept, "echo")[0]["key"]
    assert item["metadata"]["call_sequence"][0]["arguments"] == key
    assert item["prompt"] == f"Write to {key['to']}"
    assert item["metadata"]["sample_id"]


def test_secrets_are_gone_pins_applied_and_failures_marked(tmp_path):
    kept = Keeping(
        folder=tmp_path / "f",
        pins=(read_pin("echo:$.said.now=then"), read_pin("echo:$.nowhere=1")),
        secrets=("opensesame",),
    )
    call = ("echo", {"now": "today", "key": "opensesame"})
    done = record(planned(call), Counting(), kept, "new")
    [line] = lines(kept, "echo")
    assert line["key"] == {"now": "today", "key": "[secret]"}
    assert line["result"]["said"] == {"now": "then", "key": "[secret]"}
    assert any("nowhere" in text for text in done.warnings)
    assert any("secrets were removed" in text for text in done.warnings)


class Failing(Counting):
    def call(self, name, arguments):
        text = "Database error: no such table: cat"
        return Answered({"content": [{"type": "text", "text": text}], "isError": False})


def test_a_failure_that_says_it_is_none_is_named_and_can_be_marked(tmp_path):
    plain = Keeping(folder=tmp_path / "plain")
    done = record(planned(COUNT), Failing(), plain, "new")
    assert any("--error-text" in text for text in done.warnings)
    assert lines(plain, "count")[0]["result"]["isError"] is False
    marked = Keeping(folder=tmp_path / "marked", error_text=re.compile("^Database error"))
    done = record(planned(COUNT), Failing(), marked, "new")
    assert done.warnings == ("1 answer is an error: count {}",)
    assert lines(marked, "count")[0]["result"]["isError"] is True


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("[]", "must be a JSON object"),
        ('{"arguments": {}}', "name: must be"),
        ('{"name": "a", "arguments": 1}', "arguments: must be an object"),
        ('{"name": "a", "args": {}}', "args: unknown field"),
        ('{"name": "a", "sample_id": 3}', "sample_id: must be a text"),
    ],
)
def test_a_file_of_calls_is_read_strictly(tmp_path, line, what):
    path = tmp_path / "calls.jsonl"
    path.write_text(f'{{"name": "ok"}}\n{line}\n')
    with pytest.raises(BadInput, match=f"calls.jsonl:2: {what}"):
        list(calls_of_file(path))


def test_what_another_file_answers_is_not_written_a_second_time(kept):
    """Else the folder would contradict itself. A run learns only at its end what was asked."""
    kept.folder.mkdir()
    (kept.folder / "mine.jsonl").write_text('{"name": "count", "key": {}, "result": 1}\n')
    live, said = Counting(), []
    with recording(live, kept, "all", lambda written, remarks: said.extend(remarks)) as tools:
        session = tools.source.session("s")
        assert session.answer("count", {}).served_by == "live"
        assert session.answer("echo", {"a": 1}).result == {"said": {"a": 1}}
        assert isinstance(session.answer("echo", "no object"), Miss)
        with pytest.raises(Incomplete, match="the server is gone"):
            session.answer("gone", {})
    assert [text for text in said if "mine.jsonl:1: answers count already" in text]
    ToolBroker(kept.folder, open_registry(str(kept.registry_file)))
    assert len(lines(kept, "echo")) == 1


def test_only_tools_that_live_are_offered(kept):
    kept.folder.mkdir()
    old = {"tools": [{"name": "old", "parameters": {"type": "object"}}]}
    kept.registry_file.write_text(json.dumps(old))
    with recording(Counting(), kept, "new", lambda *_: None) as tools:
        assert tools.offers.allowed == {"count", "echo", "gone"}
    assert "old" in open_registry(str(kept.registry_file)).names


def test_pins_are_remembered_and_the_newer_one_of_a_place_counts(kept):
    def pinned(*texts: str) -> Keeping:
        return msgspec.structs.replace(kept, pins=tuple(map(read_pin, texts)))

    record(planned(COUNT), Counting(), pinned("count:$.n=7"), "new")
    again = record(planned(COUNT), Counting(), kept, "all")
    assert lines(kept, "count")[0]["result"] == {"n": 7}
    assert again.warnings == ()
    record(planned(COUNT), Counting(), pinned("count:$.n=8", "echo:$.x=1"), "all")
    assert lines(kept, "count")[0]["result"] == {"n": 8}
    remembered = json.loads((kept.folder / ".pins.json").read_text())
    assert remembered == ["count:$.n=8", "echo:$.x=1"]


NOW = "2026-01-01T00:00:00Z"


def pinned(tool, result, *pins):
    return Pins([read_pin(pin) for pin in pins]).apply(tool, result)


@pytest.mark.parametrize("path", ["$.now", "/now"])
def test_a_path_or_a_pointer_in_a_plain_result(path):
    result = {"now": "today", "zone": "UTC"}
    assert pinned("web.time", result, f"web.time:{path}={NOW}") == {"now": NOW, "zone": "UTC"}
    assert result["now"] == "today"


def test_structured_content_and_the_text_that_repeats_it_stay_equal():
    value = {"now": "today", "n": 1}
    text = json.dumps(value, indent=2)
    result = {"content": [{"type": "text", "text": text}], "structuredContent": value}
    changed = pinned("clock", result, f"clock:$.now={NOW}")
    assert changed["structuredContent"] == {"now": NOW, "n": 1}
    assert changed["content"][0]["text"] == text.replace("today", NOW)


def test_every_element_an_index_and_other_values_than_text():
    result = {"rows": [{"id": "a"}, {"id": "b"}]}
    assert pinned("t", result, "t:$.rows[*].id=7") == {"rows": [{"id": 7}, {"id": 7}]}
    assert pinned("t", result, "t:/rows/1/id=null") == {"rows": [{"id": "a"}, {"id": None}]}
    assert pinned("t", {"a.b": 1}, "t:$['a.b']=2") == {"a.b": 2}


def test_other_tools_and_other_places_stay_and_an_unused_pin_is_known():
    pins = Pins([read_pin("t:$.nowhere=1"), read_pin("t:$.here=1")])
    assert pins.apply("u", {"here": 2}) == {"here": 2}
    assert pins.apply("t", {"here": 2}) == {"here": 1}
    assert pins.unused == ("t:$.nowhere=1",)


@pytest.mark.parametrize("text", ["", "clock", "clock=1", "clock:now=1", "clock:$.a..b=1"])
def test_a_pin_that_cannot_be_read_is_refused(text):
    with pytest.raises(UsageError, match="--pin"):
        read_pin(text)


def test_what_is_asked_again_is_repeated_not_known_and_errors_are_named(kept):
    class Failing(Counting):
        def call(self, name, arguments):
            return Answered({"ok": False, "error": "KeyError: 'M-99'"})

    done = record(planned(COUNT, COUNT, sample="a"), Counting(), kept, "new")
    again = record([*planned(COUNT, sample="b"), *planned(COUNT, sample="c")], None, kept, "none")
    assert (done.known, done.repeated, done.warnings) == (0, 0, ())
    assert (again.known, again.repeated) == (2, 0)
    echoes = [*planned(("echo", {"a": 1}), sample="a"), *planned(("echo", {"a": 1}), sample="b")]
    failed = record(echoes, Failing(), kept, "new")
    assert (failed.calls, failed.known, failed.repeated) == (1, 0, 1)
    assert failed.warnings == ('1 answer is an error: echo {"a":1}',)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mcp": "server", "timeout": 0}, "--timeout 0: must be above 0 seconds"),
        ({"mcp": "server", "env": ("NOBODY_SET_IT",)}, "--env NOBODY_SET_IT: no such environment"),
        ({"mcp": "http://a/", "headers": ("Accept",)}, "--header Accept: write 'Name: value'"),
        ({"mcp": " "}, "--mcp: which server"),
        ({}, "which live tools"),
    ],
)
def test_live_tools_that_cannot_be_opened_are_told_before_they_are_asked(options, said):
    with pytest.raises(UsageError, match=said), open_live(LiveOptions(**options)):
        pass


def test_a_list_of_earlier_values_that_is_none_is_not_overwritten(tmp_path):
    (tmp_path / "odd.json").write_text('["a", 1]')
    with pytest.raises(BadInput, match=r"odd.json: must be a list of texts; fix it, or remove it"):
        read_texts(tmp_path, "odd.json")


def test_a_copy_needs_a_dataset():
    with pytest.raises(UsageError, match="--out-dataset: a copy of what"):
        items_for_copy(None)


def test_ids_of_a_copied_item_stay_and_places_in_a_changed_text_go():
    metadata = {"sample_id": EMAIL, "integration_spans_bytes": [[0, 3]]}
    item = {"id": EMAIL, "prompt": f"Who is {EMAIL}?", "teacher_text": EMAIL, "metadata": metadata}
    surrogates = Surrogates()
    surrogates.learn(item)
    copy = with_surrogates(item, surrogates)
    assert (copy["id"], copy["metadata"]) == (EMAIL, {"sample_id": EMAIL})
    assert EMAIL not in copy["prompt"] + copy["teacher_text"]


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ('{"at":"now","n":1}', '{"at":"then","n":1}'),
        ('{"at": "now", "n": 1}', '{"at": "then", "n": 1}'),
        ('{\n  "at": "now"\n}', '{\n  "at": "then"\n}'),
    ],
)
def test_a_pin_leaves_the_spelling_of_a_text_as_it_was(text, after):
    pins = Pins([read_pin('clock:$.at="then"')])
    result = {"content": [{"type": "text", "text": text}]}
    assert pins.apply("clock", result) == {"content": [{"type": "text", "text": after}]}
    plain = {"content": [{"type": "text", "text": "half past nine"}]}
    assert pins.apply("clock", plain) == plain
