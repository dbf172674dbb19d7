"""What an MCP result is evidence of: what the tool said, once, and nothing of its wrapping."""

import json

import pytest

from callmark import ground


def mcp(*texts, structured=None, **more):
    result = {"content": [{"type": "text", "text": text} for text in texts], **more}
    return result if structured is None else {**result, "structuredContent": structured}


def test_a_value_is_found_in_structured_content_by_its_path():
    found = ground("It is 21 degrees", [mcp('{"t": 21}', structured={"t": 21})])
    assert [match["path"] for match in found["matches"]] == ["/structuredContent/t"]
    assert found["lax"]
    assert found["strict"]


def test_json_inside_a_text_block_is_walked():
    found = ground("It is 21 degrees", [mcp('{"t": 21}')])
    assert [match["path"] for match in found["matches"]] == ["/content/0/text/t"]
    assert found["strict"]


def test_what_python_prints_is_walked_too():
    """Some servers answer with repr() of rows: names in them are texts of their own."""
    text = "[{'id': 1, 'name': 'Ada Lovelace', 'paid': None}]"
    assert ground("Ada Lovelace has not paid", [mcp(text)])["lax"]
    assert not ground("Grace Hopper has not paid", [mcp(text)])["lax"]


@pytest.mark.parametrize("span", ["the text", "an image/png", "this resource", "aGVsbG8="])
def test_the_wrapping_and_the_bytes_ground_nothing(span):
    image = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
    resource = {"type": "resource", "resource": {"uri": "a://b", "blob": "aGVsbG8="}}
    result = {"content": [{"type": "text", "text": "21"}, image, resource], "isError": False}
    assert not ground(span, [result])["lax"]


def test_a_text_that_repeats_structured_content_counts_once():
    """Else 7 + 7 could be derived from one 7."""
    value = {"items": 7}
    result = mcp(json.dumps(value), structured=value)
    found = ground("There are 14 items", [result])
    assert found["unsupported_values"]


def test_a_text_that_says_more_than_the_structured_content_counts():
    result = mcp("Deleted 3 files in 12 ms", structured={"ok": True})
    assert ground("It took 12 ms", [result])["lax"]


def test_an_error_grounds_only_words_of_failure():
    result = mcp("order W100 was not found", isError=True)
    assert not ground("The order is W100", [result])["lax"]
    assert ground("I could not find order W100", [result])["lax"]


def test_links_and_embedded_texts_count():
    link = {"type": "resource_link", "name": "Lamp manual", "uri": "demo://manual/7"}
    note = {"type": "resource", "resource": {"uri": "a://n", "text": "the lamp needs 40 W"}}
    result = {"content": [link, note], "isError": False}
    assert ground("It needs 40 W", [result])["lax"]
    assert ground("See the Lamp manual", [result])["lax"]
