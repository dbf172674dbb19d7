"""MCP's JSON into fixtures and registries, and back."""

from hypothesis import given
from hypothesis import strategies as st

from callmark.calls.registry import Registry
from callmark.live.mcp import (
    ProtocolError,
    error_from_wire,
    result_from_wire,
    result_to_wire,
    spec_from_wire,
    spec_to_wire,
)

BLOCKS = st.lists(
    st.builds(lambda text: {"type": "text", "text": text}, st.text())
    | st.builds(
        lambda data: {"type": "image", "data": data, "mimeType": "image/png"}, st.text("AB=")
    ),
    max_size=3,
)
VALUES = st.dictionaries(st.text(), st.integers() | st.text() | st.none())


@given(BLOCKS, VALUES | st.none(), st.booleans())
def test_a_result_comes_back_as_it_came(content, structured, failed):
    wire = {"content": content, "isError": failed}
    if structured is not None:
        wire["structuredContent"] = structured
    assert result_to_wire(result_from_wire({**wire, "resultType": "complete"})) == wire


def test_the_stamp_of_the_protocol_is_left_out_and_other_notes_stay():
    meta = {"io.modelcontextprotocol/serverInfo": {"name": "x"}, "cost": 3}
    kept = result_from_wire({"content": [], "_meta": meta})
    assert kept == {"content": [], "isError": False, "_meta": {"cost": 3}}


def test_a_json_rpc_error_stays_one():
    assert result_to_wire(error_from_wire(-32010, "no", {"a": 1})) == ProtocolError(
        -32010, "no", {"a": 1}
    )
    assert result_to_wire(error_from_wire(-32010, "no", None)) == ProtocolError(-32010, "no", None)


def test_results_of_other_tools_are_text_and_structured_content():
    assert result_to_wire("21 degrees") == {
        "content": [{"type": "text", "text": "21 degrees"}],
        "isError": False,
    }
    failed = {"ok": False, "error": "no row"}
    assert result_to_wire(failed) == {
        "content": [{"type": "text", "text": '{"error":"no row","ok":false}'}],
        "structuredContent": failed,
        "isError": True,
    }
    assert result_to_wire([1, None])["content"][0]["text"] == "[1,null]"


def test_a_tool_comes_back_as_it_was_listed_and_a_model_is_sent_only_its_function():
    tool = {
        "name": "find",
        "title": "Find",
        "description": "d",
        "inputSchema": {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"},
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "_meta": {"io.modelcontextprotocol/x": 1, "own": 2},
    }
    registry = Registry.from_specs([spec_from_wire(tool)], where="here")
    assert spec_to_wire(registry.specs[0]) == {**tool, "_meta": {"own": 2}}
    [sent] = registry.openai_tools(["find"])
    assert set(sent["function"]) == {"name", "description", "parameters"}
    bare = {"name": "bare", "inputSchema": {"type": "object"}}
    assert spec_to_wire(Registry.from_specs([spec_from_wire(bare)], where="x").specs[0]) == bare
