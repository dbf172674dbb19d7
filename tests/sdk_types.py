"""Requests checked against the parameter types of the official SDKs: readers that are not ours."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest


@cache
def _adapter(protocol: str) -> Any:
    pydantic = pytest.importorskip("pydantic")
    if protocol == "openai_responses":
        pytest.importorskip("openai")
        from openai.types.responses.response_create_params import ResponseCreateParamsNonStreaming

        return pydantic.TypeAdapter(ResponseCreateParamsNonStreaming)
    if protocol == "anthropic_messages":
        pytest.importorskip("anthropic")
        from anthropic.types.message_create_params import MessageCreateParamsNonStreaming

        return pydantic.TypeAdapter(MessageCreateParamsNonStreaming)
    pytest.importorskip("openai")
    from openai.types.chat.completion_create_params import CompletionCreateParamsNonStreaming

    return pydantic.TypeAdapter(CompletionCreateParamsNonStreaming)


def check_request(protocol: str, body: dict) -> None:
    """Raises where a field is missing or of another type than the SDK says."""
    _walk(_adapter(protocol).validate_python(body))


def _walk(value: object) -> None:
    """Lists are checked only when somebody goes through them."""
    match value:
        case dict():
            for inner in value.values():
                _walk(inner)
        case str() | bytes():
            pass
        case list() | tuple() | Iterator():
            for inner in value:
                _walk(inner)
        case _ if hasattr(value, "__iter__"):
            for inner in value:
                _walk(inner)
        case _:
            pass
