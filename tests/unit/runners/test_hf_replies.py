"""Generated tokens become a turn: calls once each and in order, nothing repaired in silence."""

import json

import pytest
from tests.local_models import RESPONSE_TEMPLATE, make_tokenizer

from callmark.calls.ledger import read_turn
from callmark.runners.hf.generate import GeneratedTokens, Replies

TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "web.search",
            "parameters": {"type": "object", "properties": {"top_k": {"type": "integer"}}},
        },
    }
]
PROMPT = "<|start|>user\nHow many?<|end|>\n<|start|>assistant\n"
NESTED = {"q": 'a {brace} and "quotes"', "filter": {"any": [{"x": 1}, [2, [3]]]}}
BLOCK = "<tool_call>\n{}\n</tool_call>"


def written(name="web.search", **arguments):
    return BLOCK.format(json.dumps({"name": name, "arguments": arguments}))


@pytest.fixture(scope="module", params=["text", "response template"])
def replies(request):
    return made(RESPONSE_TEMPLATE if request.param == "response template" else None)


def made(response_template=None, ends=("<|end|>", "<|stop|>")):
    tokenizer = make_tokenizer(words=["</tool_call>"])
    ids = frozenset(tokenizer.convert_tokens_to_ids(list(ends)))
    return Replies(tokenizer, ids, declared=response_template)


def reply(replies, text, *, ended=True, prompt=PROMPT):
    ids = replies._tokenizer(text, add_special_tokens=False)["input_ids"]
    return replies.reply(prompt, GeneratedTokens(tuple(ids), ended), TOOLS)


def calls_of(found):
    """As the loop reads a reply: structured calls win over those in the text."""
    if found.calls is not None:
        return [(one.name, one.arguments, one.status) for one in found.calls]
    attempts = read_turn(found.text, offered={"web.search"}).attempts
    return [(one.name, getattr(one, "arguments", None), type(one).__name__) for one in attempts]


def test_a69_several_nested_calls_come_out_once_each_and_in_order(replies):
    text = f"I look.\n{written(**NESTED)}\n{written(q='second')}<|end|>"
    found = reply(replies, text)
    assert [one[:2] for one in calls_of(found)] == [
        ("web.search", NESTED),
        ("web.search", {"q": "second"}),
    ]
    assert read_turn(found.text, offered={"web.search"}).text == "I look."


def test_an_answer_is_text_without_the_token_that_ended_it(replies):
    for end in ("<|end|>", "<|stop|>"):
        found = reply(replies, f"There are 17. Use <b>&amp;</b>{end}")
        assert (found.text, found.calls, found.finish) == (
            "There are 17. Use <b>&amp;</b>",
            None,
            "stop",
        )


def test_what_was_cut_off_is_flagged_and_kept(replies):
    found = reply(replies, "There are", ended=False)
    assert (found.text, found.finish) == ("There are", "length")


@pytest.mark.parametrize(
    "text",
    [
        BLOCK.format('{"name": "web.search", "arguments": {"q": "x"'),
        BLOCK.format("{'name': 'web.search'}"),
        '<tool_call>\n{"name": "web.search", "arguments": {"q": "x"}',
        "<tool_call>",
        BLOCK.format("[1]"),
        BLOCK.format('{"arguments": {}}'),
        BLOCK.format('{"name": "web.search", "arguments": [1]}'),
    ],
)
def test_a_malformed_call_is_never_mended_by_the_parser_of_the_checkpoint(replies, text):
    calls = calls_of(reply(replies, text + "<|end|>"))
    assert len(calls) == 1
    assert calls[0][2] in ("malformed", "MalformedCall")


def test_arguments_keep_the_types_that_the_model_wrote(replies):
    found = calls_of(reply(replies, written(top_k="3") + "<|end|>"))
    assert found[0][1] == {"top_k": "3"}  # against the schema, and seen as that


def test_formats_without_types_get_those_of_the_schema():
    template = json.loads(json.dumps(RESPONSE_TEMPLATE))
    template["fields"]["tool_calls"] = {
        "open_pattern": r"<call name=(?P<name>[^>]+)>",
        "close": "</call>",
        "repeats": True,
        "content": "xml-inline",
        "content_args": {"tag_pattern": r"<(?P<key>\w+)>(?P<value>.*?)</\w+>"},
        "transform": {
            "type": "function",
            "function": {"name": "{name}", "arguments": "{content}"},
        },
    }
    text = "<call name=web.search><top_k>3</top_k><q>7</q></call><|end|>"
    assert calls_of(reply(made(template), text)) == [
        ("web.search", {"top_k": 3, "q": "7"}, "unanswered")
    ]


def test_what_was_written_stays_with_each_call():
    found = reply(made(RESPONSE_TEMPLATE), f"{written(q='a')}{written(q='b')}<|end|>")
    assert [json.loads(one.raw)["arguments"] for one in found.calls] == [{"q": "a"}, {"q": "b"}]


def test_text_on_both_sides_of_a_call_is_kept():
    found = reply(made(RESPONSE_TEMPLATE), f"Before.{written(q='a')}After.<|end|>")
    assert found.text == "Before.\nAfter."


@pytest.mark.parametrize("prompt", [PROMPT, PROMPT + "<think>\n"], ids=["own mark", "prefilled"])
def test_thinking_is_kept_apart_and_given_back_to_the_template(replies, prompt):
    mark = "" if prompt.endswith("<think>\n") else "<think>"
    found = reply(replies, f"{mark}Seventeen, I guess.</think>There are 17.<|end|>", prompt=prompt)
    turn = read_turn(found.text, offered=())
    assert (found.reasoning or turn.reasoning) == "Seventeen, I guess."
    assert turn.text == "There are 17."
    assert found.carried["reasoning_content"] == "Seventeen, I guess."


def test_the_models_own_words_are_carried_to_the_next_turn(replies):
    text = f"I look. {written(q='a')}"
    assert reply(replies, text + "<|end|>").carried == {"raw_text": text}


def test_an_end_token_that_closes_a_call_stays():
    ends = ("<|end|>", "</tool_call>")
    found = calls_of(reply(made(ends=ends), written(q="a")))
    assert found == [("web.search", {"q": "a"}, "ToolCall")]


def test_a_response_template_that_cannot_be_used_is_told_and_left_aside():
    found = made({"fields": 7})
    assert found.warnings[0].startswith("the tokenizer's response_template is not used: ")
    assert found.parser == "text"
    assert calls_of(reply(found, written(q="a") + "<|end|>"))[0][1] == {"q": "a"}


def test_who_reads_the_calls_is_part_of_the_fingerprint():
    assert made().parser == "text"
    assert made(RESPONSE_TEMPLATE).parser.startswith("response_template ")


def test_no_tokens_are_an_empty_turn(replies):
    assert reply(replies, "", ended=False).text == ""
