"""Calls in the text of a served or recorded model, read by a template that is given."""

import json

import pytest

from callmark import run
from callmark.errors import BadInput, UsageError
from callmark.resources import data_path

pytest.importorskip("transformers")

# Marks that no format of callmark has.
TEMPLATE = {
    "defaults": {"role": "assistant"},
    "start_anchor": "assistant:",
    "fields": {
        "thinking": {"open": "((", "close": "))", "content": "text"},
        "content": {"close_pattern": r"\s*<end>", "content": "text"},
        "tool_calls": {
            "open_pattern": r"\s*~~>",
            "close": "<~~",
            "repeats": True,
            "content": "json",
            "transform": {"function": "{content}", "type": "function"},
        },
    },
}
CALL = {"name": "web.search", "arguments": {"q": "boats"}}
TEXT = f"(( Hm. ))Let me look. ~~> {json.dumps(CALL)} <~~"


@pytest.fixture
def play(tmp_path):
    def play(template=TEMPLATE, text=TEXT, **settings):
        (tmp_path / "t.json").write_text(json.dumps(template), "utf-8")
        item = {"prompt": "Boats?", "metadata": {"sample_id": "a", "call_sequence": [CALL]}}
        (tmp_path / "d.jsonl").write_text(json.dumps(item) + "\n", "utf-8")
        said = {
            "sample_id": "a",
            "messages": [
                {"role": "user", "content": "Boats?"},
                {"role": "assistant", "content": text},
            ],
        }
        (tmp_path / "m.jsonl").write_text(json.dumps(said) + "\n", "utf-8")
        named = {
            "runner": "replay",
            "in": "d.jsonl",
            "model": "m.jsonl",
            "out": "o.jsonl",
            "response_template": "t.json",
        }
        paths = {key: str(tmp_path / value) for key, value in named.items() if "." in value}
        report = run({**named, **paths, **settings})
        return json.loads((tmp_path / "o.jsonl").read_text("utf-8")), report

    return play


def test_a_template_reads_calls_and_thinking_in_the_text(play):
    line, _ = play()
    assert [(one["name"], one["arguments"]) for one in line["tool_trace"]] == [
        ("web.search", {"q": "boats"})
    ]
    assert (line["model_output"], line["reasoning"]) == ("Let me look.", "Hm.")
    assert line["scores"]["call_f1"] == 1.0


def test_what_it_does_not_accept_is_read_as_ever(play):
    line, _ = play(text=f"<tool_call>{json.dumps(CALL)}</tool_call>")
    assert line["scores"]["call_f1"] == 1.0


def test_the_file_may_be_the_config_of_a_tokenizer(play):
    shipped = json.loads(data_path("tiny", "model", "tokenizer_config.json").read_text("utf-8"))
    line, _ = play(shipped, f"<tool_call>{json.dumps(CALL)}</tool_call>")
    assert line["scores"]["call_f1"] == 1.0


def test_it_is_part_of_the_fingerprint(play):
    def mark(**settings):
        return play(**settings)[0]["fingerprints"]["runner_fingerprint"]

    other = {
        **TEMPLATE,
        "fields": {
            **TEMPLATE["fields"],
            "thinking": {"open": "[[", "close": "]]", "content": "text"},
        },
    }
    assert len({mark(), mark(template=other), mark(response_template=None)}) == 3


@pytest.mark.parametrize("template", [[], {"fields": 3}, {"fields": {"x": {"open": 1}}}])
def test_a_file_that_is_none_is_refused(play, template):
    with pytest.raises(BadInput, match=r"--response-template: .*t\.json: is no response template"):
        play(template)


def test_where_it_could_do_nothing_it_is_refused(play):
    with pytest.raises(UsageError, match="--parse-text off"):
        play(parse_text="off")
    with pytest.raises(BadInput, match="No such file"):
        play(response_template="/nowhere/t.json")
