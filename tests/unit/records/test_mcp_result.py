"""MCP results: what counts as one, and what a model is shown of it."""

import pytest

from callmark.records.trace import is_mcp_result, text_of

TEXT = {"type": "text", "text": "21 degrees"}
IMAGE = {"type": "image", "data": "aGVsbG8=", "mimeType": "image/png"}
LINK = {"type": "resource_link", "name": "Manual", "uri": "demo://7"}
INSIDE = {"type": "resource", "resource": {"uri": "demo://n", "text": "a note"}}
BYTES = {"type": "resource", "resource": {"uri": "demo://b", "blob": "AAAA"}}


@pytest.mark.parametrize(
    "result",
    [
        {"content": [TEXT]},
        {"content": [TEXT, IMAGE], "isError": False},
        {"content": [], "isError": True},
        {"content": [], "structuredContent": {"a": 1}, "resultType": "complete", "_meta": {}},
    ],
)
def test_what_is_an_mcp_result(result):
    assert is_mcp_result(result)


@pytest.mark.parametrize(
    "result",
    [
        None, "text", [TEXT], {}, {"content": "a page"}, {"content": []},
        {"content": [TEXT], "title": "a page"}, {"content": [{"type": "paragraph", "text": "x"}]},
        {"content": ["a", "b"]}, {"content": [{"text": "x"}]}, {"content": [{"type": "text"}]},
        {"content": [{"type": ["text"], "text": "x"}]},
    ],
)  # fmt: skip
def test_what_is_none(result):
    assert not is_mcp_result(result)


def test_a_model_is_shown_the_texts_and_no_bytes():
    shown = text_of({"content": [TEXT, IMAGE, LINK, INSIDE, BYTES]})
    assert shown.splitlines() == [
        "21 degrees",
        "[image image/png]",
        "[Manual](demo://7)",
        "a note",
        "[resource demo://b]",
    ]


def test_structured_content_stands_in_for_no_text():
    assert text_of({"content": [], "structuredContent": {"b": 1, "a": 2}}) == '{"a":2,"b":1}'
