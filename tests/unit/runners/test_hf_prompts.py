"""What a local model reads: every tool, every call and every byte of the prompt."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.local_models import FULL_TEMPLATE, PLAIN_TEMPLATE, make_tokenizer

from callmark.api import builtin_registry
from callmark.errors import UsageError
from callmark.runners.hf.prompts import CannotRender, ChatPrompts, RawPrompts, open_prompts
from callmark.runners.wrappers import render_prompt

TOOLS = builtin_registry().openai_tools(sorted(builtin_registry().names))
NAMES = [tool["function"]["name"] for tool in TOOLS]
USER = {"role": "user", "content": "How many open issues?"}
NASTY = {
    "quotes": "\"double\" 'single' `back` «guillemets»",
    "newlines": "one\ntwo\r\nthree\n\n\nfour\t",
    "backslashes": "C:\\new\\table \\n \\\\ \\u0041 \\",
    "jinja": "{{ messages }} {% raise %} {# no #} {{ '{{' }}",
    "dollars": "$user $$ ${system} $tools $1",
    "emoji": "👩‍👩‍👧‍👦 🇩🇪 ☃️ 𝔘𝔫𝔦𝔠𝔬𝔡𝔢",
    "right to left": "שלום مرحبا \u202eabc\u202c",
    "html": "<b>&amp;&#34;</b> <s>x</s>",
    "control": "\x00\x01\x7f\u2028\u2029\ufeff",
    "spaces": "  leading, \u00a0 inner and trailing  ",
    "combining": "e\u0301 vs é, A\u030a vs Å",
    "50 kB": "All work and no play makes a model dull. " * 1250,
}


def call(number, name="web.search", **arguments):
    function = {"name": name, "arguments": json.dumps(arguments)}
    return {"id": f"call_{number}", "type": "function", "function": function}


def turn(*calls, content=""):
    results = [
        {"role": "tool", "tool_call_id": one["id"], "content": f"result of {one['id']}"}
        for one in calls
    ]
    return [{"role": "assistant", "content": content, "tool_calls": list(calls)}, *results]


def prompts(template=FULL_TEMPLATE, tools=TOOLS, **tokens):
    return ChatPrompts(make_tokenizer(template, **tokens), tools, "folder")


def test_a_template_that_renders_tools_gets_them_as_they_are_named():
    made = prompts()
    text = made.text([USER], TOOLS)
    assert made.tools_block == "native"
    assert all(f'"{name}"' in text for name in NAMES)
    assert text.endswith(f"{USER['content']}<|end|>\n<|start|>assistant\n")


def test_d39_schemas_reach_the_model_whole():
    text = prompts().text([USER], TOOLS)
    for tool in TOOLS:
        assert json.dumps(tool["function"]["parameters"], ensure_ascii=False) in text


def test_a_template_that_drops_tools_gets_the_documented_block():
    made = prompts(PLAIN_TEMPLATE)
    text = made.text([{"role": "system", "content": "Be brief."}, USER], TOOLS)
    assert made.tools_block == "fallback"
    assert all(f'"name":"{name}"' in text for name in NAMES)
    assert text.count("<|start|>system") == 1
    assert text.index("</tools>") < text.index("Be brief.") < text.index(USER["content"])


def test_only_what_a_sample_is_offered_is_shown():
    for template in (FULL_TEMPLATE, PLAIN_TEMPLATE):
        text = prompts(template).text([USER], TOOLS[:1])
        assert NAMES[0] in text
        assert not any(name in text for name in NAMES[1:])
        assert "tool" not in prompts(template).text([USER], ()).lower()


def test_calls_and_results_of_earlier_turns_are_shown_by_both_kinds_of_template():
    messages = [USER, *turn(call(1, q="open issues")), {"role": "user", "content": "And now?"}]
    for template in (FULL_TEMPLATE, PLAIN_TEMPLATE):
        text = prompts(template).text(messages, TOOLS)
        found = [
            text.index(part)
            for part in ("open issues?", '"open issues"', "result of call_1", "And now?")
        ]
        assert found == sorted(found)
        assert '"arguments": {"q"' in text or '"arguments":{"q"' in text  # an object, no string


def test_the_fallback_reads_like_a_hermes_dialogue():
    text = prompts(PLAIN_TEMPLATE).text([USER, *turn(call(1, q="a"), call(2, q="b"))], TOOLS)
    assert (
        "<|start|>assistant\n"
        '<tool_call>\n{"name":"web.search","arguments":{"q":"a"}}\n</tool_call>\n'
        '<tool_call>\n{"name":"web.search","arguments":{"q":"b"}}\n</tool_call><|end|>\n'
        "<|start|>user\n<tool_response>\nresult of call_1\n</tool_response>\n\n"
        "<tool_response>\nresult of call_2\n</tool_response><|end|>\n"
        "<|start|>assistant\n"
    ) in text


REFUSING = {
    "one call at a time": "{% for m in messages %}{% if (m.tool_calls or []) | length > 1 %}"
    "{{ raise_exception('only one call at once') }}{% endif %}{% endfor %}",
    "ids of nine": "{% for m in messages %}{% for c in m.tool_calls or [] %}"
    "{% if c.id | length != 9 %}{{ raise_exception('nine') }}{% endif %}{% endfor %}{% endfor %}",
    "names at results": "{% for m in messages %}{% if m.role == 'tool' and not m.name %}"
    "{{ raise_exception('name') }}{% endif %}{% endfor %}",
    "arguments are objects": "{% for m in messages %}{% for c in m.tool_calls or [] %}"
    "{% for k, v in c.function.arguments.items() %}{% endfor %}{% endfor %}{% endfor %}",
    "contents are text": "{% for m in messages %}{{ '' if m.content + '' else '' }}{% endfor %}",
}


@pytest.mark.parametrize("refusal", REFUSING.values(), ids=REFUSING)
def test_particular_templates_still_get_their_tools_natively(refusal):
    made = prompts(refusal + FULL_TEMPLATE)
    conversation = [USER, *turn(call(1, q="first"), call(2, q="second"))]
    conversation[1]["content"] = None
    text = made.text(conversation, TOOLS)
    parts = ("<tool_call>", "first", "result of call_1", "second", "result of call_2")
    assert made.tools_block == "native"
    assert all(part in text for part in parts)
    assert "<tools>" not in text


def test_calls_side_by_side_become_calls_in_a_row_where_a_template_wants_that():
    made = prompts(REFUSING["one call at a time"] + FULL_TEMPLATE)
    text = made.text([USER, *turn(call(1, q="first"), call(2, q="second"))], TOOLS)
    order = [text.index(part) for part in ('"first"', "result of call_1", '"second"', "of call_2")]
    assert order == sorted(order)


def test_calls_that_a_template_would_drop_are_split_too():
    made = prompts(
        FULL_TEMPLATE.replace("message.tool_calls or []", "(message.tool_calls or [])[:1]")
    )
    text = made.text([USER, *turn(call(1, q="first"), call(2, q="second"))], TOOLS)
    assert made.tools_block == "native"
    assert text.index('"first"') < text.index('"second"') < text.index("result of call_2")


def test_a_template_that_knows_tools_but_no_calls_shows_them_in_the_models_own_words():
    made = prompts(FULL_TEMPLATE.replace("message.tool_calls or []", "[]"))
    later = turn(call(1, q="first"))
    later[0]["raw_text"] = "[search(q='first')]"
    text = made.text([USER, *later], TOOLS)
    assert made.tools_block == "native"
    assert "<|start|>assistant\n[search(q='first')]<|end|>\n<|start|>tool\nresult of" in text


@pytest.mark.parametrize(
    "refusal",
    [
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
        "{% set messages = messages | rejectattr('role', 'equalto', 'system') | list %}",
    ],
    ids=["raises", "drops"],
)
def test_without_a_system_role_its_text_stands_before_the_users_first_words(refusal):
    made = prompts(refusal + PLAIN_TEMPLATE)
    text = made.text([{"role": "system", "content": "Be brief."}, USER], TOOLS)
    first = text.index("<|start|>user\n")
    assert first < text.index("</tools>") < text.index("Be brief.") < text.index(USER["content"])
    assert made.fingerprint_parts()["system_role"] is False


def test_the_date_in_a_prompt_does_not_come_from_the_clock():
    template = "{{ strftime_now('%A, %d %b %Y, %Y-%m-%d') }}|" + PLAIN_TEMPLATE
    text = prompts(template, ()).text([USER], ())
    assert text.startswith("Friday, 26 Jul 2024, 2024-07-26|<|start|>")
    assert prompts("\n" + template, ()).text([USER], ()).startswith("\nFriday")


def test_the_template_is_part_of_the_fingerprint():
    one, other = prompts(), prompts(FULL_TEMPLATE + " ")
    assert one.fingerprint_parts()["chat_template"] != other.fingerprint_parts()["chat_template"]
    assert one.fingerprint_parts() == prompts().fingerprint_parts()


@pytest.mark.parametrize(
    ("template", "said"),
    [
        (None, "folder: has no chat template: add chat_template.jinja"),
        ("{{ raise_exception('not today') }}", "its chat template fails: not today; fix it"),
        ("{% if %}", "its chat template fails: Expected an expression"),
        ("{{ messages[7].content }}", "its chat template fails: list object has no element 7"),
        (
            "{% if messages | length > 1 %}{{ raise_exception('once') }}{% endif %}x",
            "takes no conversation with tools",
        ),
    ],
)
def test_templates_that_fail_are_told_before_the_run(template, said):
    with pytest.raises(UsageError, match=said) as caught:
        open_prompts(make_tokenizer(template), TOOLS, raw=False, where="folder")
    assert "\n" not in str(caught.value)


def test_without_a_chat_template_a_raw_prompt_needs_none():
    made = open_prompts(make_tokenizer(None), TOOLS, raw=True, where="folder")
    assert made.text([USER], TOOLS) == USER["content"]


def test_a_conversation_that_no_form_fits_is_no_answer_of_the_model():
    template = "{% if messages[-1].content == 'x' %}{{ raise_exception('no x') }}{% endif %}"
    with pytest.raises(CannotRender, match="no x"):
        prompts(template + FULL_TEMPLATE).text([{"role": "user", "content": "x"}], TOOLS)
    picture = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(CannotRender, match=r"a part that is no text \(image_url\)"):
        prompts().text(picture, TOOLS)


def test_text_parts_are_text():
    parts = [{"type": "text", "text": "How many"}, {"type": "text", "text": "open issues?"}]
    text = prompts().text([{"role": "user", "content": parts}], TOOLS)
    assert "<|start|>user\nHow many\nopen issues?<|end|>" in text


def test_broken_calls_of_the_model_are_shown_back_to_it():
    broken = {"id": "call_1", "type": "function"}
    broken["function"] = {"name": "web.search", "arguments": '{"q": '}
    for template in (FULL_TEMPLATE, PLAIN_TEMPLATE):
        assert "web.search" in prompts(template).text([USER, *turn(broken)], TOOLS)


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
@pytest.mark.parametrize("template", [FULL_TEMPLATE, PLAIN_TEMPLATE], ids=["native", "fallback"])
def test_nasty_prompts_arrive_unchanged_through_the_j2_wrapper(tmp_path, text, template):
    wrapper = tmp_path / "wrapper.j2"
    wrapper.write_text('{"system": "{{ system }}", "user": "{{ user }}"}', "utf-8")
    messages = render_prompt(wrapper, user=text, system="Be brief.", tools=TOOLS)
    tokenizer = make_tokenizer(template)
    rendered = ChatPrompts(tokenizer, TOOLS, "folder").text(messages, TOOLS)
    ids = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert f"<|start|>user\n{text}<|end|>\n" in tokenizer.decode(ids)


@pytest.mark.parametrize("text", NASTY.values(), ids=NASTY)
def test_nasty_prompts_arrive_unchanged_through_the_tmpl_wrapper(tmp_path, text):
    wrapper = tmp_path / "wrapper.tmpl"
    wrapper.write_text("System: $system\nUser: $user\nAssistant:", "utf-8")
    messages = render_prompt(wrapper, user=text, system="Be brief.")
    tokenizer = make_tokenizer(None)
    ids = tokenizer(RawPrompts().text(messages, ()), add_special_tokens=False)["input_ids"]
    assert tokenizer.decode(ids) == f"System: Be brief.\nUser: {text}\nAssistant:"


def test_later_turns_of_a_raw_prompt_are_appended_as_documented():
    said = 'I look. <tool_call>{"name": "web.search", "arguments": {}}</tool_call>'
    later = turn(call(1), content="I look.")
    later[0]["raw_text"] = said
    text = RawPrompts().text([USER, *later, {"role": "user", "content": "Thanks"}], TOOLS)
    assert text == (
        f"{USER['content']}{said}\n<tool_response>\nresult of call_1\n</tool_response>\n\nThanks\n"
    )


@pytest.fixture(scope="module")
def tokenizer():
    return make_tokenizer()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=80))
def test_any_text_arrives_unchanged(tokenizer, text):
    rendered = ChatPrompts(tokenizer, (), "folder").text([{"role": "user", "content": text}], ())
    ids = tokenizer(rendered, add_special_tokens=False)["input_ids"]
    assert f"<|start|>user\n{text}<|end|>\n" in tokenizer.decode(ids)


def test_the_end_of_a_turn_is_what_the_template_writes_after_it():
    assert prompts().end_of_turn() == "<|end|>\n"
    assert prompts(PLAIN_TEMPLATE.replace("<|end|>", "")).end_of_turn() == "\n"
