"""A response template of transformers: which marks in a model's text mean thinking, which mean
calls. Tokenizers declare one; for a served model it can be given in a file."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from callmark.calls.attempts import entry_for, native_call
from callmark.errors import BadInput, MissingExtra
from callmark.records.jsontext import Json, NotJson, digest, parse_json, want_object
from callmark.records.seams import Reply
from callmark.records.trace import TraceEntry

_CALLS = "tool_calls"
_SAID = "content"
_THOUGHT = ("reasoning_content", "thinking", "reasoning")
# What a parser that came with a checkpoint can raise on what a model wrote.
PARSING_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
_KEY = "response_template"


class _Region(msgspec.Struct):
    """A part of the text that the response template tells apart."""

    field: str
    text: str = ""
    value: Json = None
    is_closed: bool = False  # by its own mark, before the text ended


class ResponseTemplate:
    """Reads turns by a declared template. Raises one of PARSING_ERRORS if that is none."""

    def __init__(self, declared: Json) -> None:
        self._declared = want_object(declared)
        self._parser("", None)
        self.sha256 = digest(self._declared)

    def read(
        self, text: str, tools: Sequence[Json], *, prompt: str = "", end: str = ""
    ) -> Reply | None:
        """The turn taken apart; None: the template does not accept it, or a call in it has no end,
        which is for the ledger to judge. `end` is the token that ended it: only that tells the
        parser that the last mark is whole."""
        try:
            regions = self._regions(prompt, text + end, tools)
            calls = [entry for one in regions if one.field == _CALLS for entry in _entries(one)]
        except PARSING_ERRORS:
            return None
        if any(one.field == _CALLS and not one.is_closed for one in regions):
            return None
        return Reply(
            text=_join(regions, (_SAID,)).removesuffix(end),
            calls=tuple(calls) or None,
            reasoning=_join(regions, _THOUGHT),
        )

    def _parser(self, prompt: str, tools: list[Json] | None) -> Any:
        try:
            from transformers.utils.chat_parsing import ResponseParser
        except ImportError:
            raise MissingExtra("a response template", "hf") from None
        return ResponseParser(self._declared, prefix=prompt, tools=tools)

    def _regions(self, prompt: str, text: str, tools: Sequence[Json]) -> list[_Region]:
        calls = want_object(want_object(self._declared["fields"]).get(_CALLS))
        # JSON has types of its own: there, nothing may be made to fit the tool's schema.
        parser = self._parser(prompt, None if calls.get("content") == "json" else list(tools))
        # What the template wrote before the model spoke opens regions, but is not the model's.
        opened = [one for one in parser.initial_events if one["type"] != "region_chunk"]
        seen = [*opened, *parser.feed(text)]
        _, last = parser.finalize()
        regions: list[_Region] = []
        needs_end = "close" in calls or "close_pattern" in calls
        for position, event in enumerate([*seen, *last]):
            match event:
                case {"type": "region_open", "field": field}:
                    regions.append(_Region(field))
                case {"type": "region_chunk", "text": chunk}:
                    regions[-1].text += chunk
                case {"type": "region_close", "value": value}:
                    regions[-1].value = value
                    regions[-1].is_closed = position < len(seen) or not needs_end
        return regions


def open_response_template(path: str) -> ResponseTemplate:
    """From a JSON file: the template itself, or a tokenizer_config.json that has one."""
    try:
        value = parse_json(Path(path).read_text("utf-8"))
    except OSError as error:
        raise BadInput(f"--response-template: {path}: {error.strerror or error}") from None
    except (NotJson, UnicodeDecodeError) as error:
        raise BadInput(f"--response-template: {path}: {error}") from None
    declared = value.get(_KEY, value) if isinstance(value, dict) else value
    try:
        return ResponseTemplate(declared)
    except PARSING_ERRORS as error:
        said = " ".join(str(error).split())
        raise BadInput(f"--response-template: {path}: is no response template: {said}") from None


def _join(regions: Sequence[_Region], fields: Sequence[str]) -> str:
    texts = (one.text.strip() for one in regions if one.field in fields)
    return "\n".join(filter(None, texts))


def _entries(region: _Region) -> list[TraceEntry]:
    """The calls of one region; its text is what the model wrote for all of them."""
    values = region.value if isinstance(region.value, list) else [region.value]
    functions = [want_object(want_object(value)["function"]) for value in values]
    return [
        entry_for(
            native_call(function["name"], function["arguments"], raw=region.text.strip()), None
        )
        for function in functions
    ]
