"""Tokens that a model generated, as the reply of one turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from callmark.calls.attempts import entry_for, native_call
from callmark.calls.ledger import read_turn
from callmark.records.jsontext import Json, digest, want_object
from callmark.records.seams import Reply
from callmark.records.trace import TraceEntry
from callmark.runners.hf.generate import GeneratedTokens
from callmark.runners.hf.prompts import RAW_TEXT

_CALLS = "tool_calls"
_SAID = "content"
_THOUGHT = ("reasoning_content", "thinking", "reasoning")
# What a parser that came with a checkpoint can raise on what a model wrote.
_PARSING_ERRORS = (ValueError, LookupError, TypeError, AttributeError, RecursionError)


class _Region(msgspec.Struct):
    """A part of the text that the response template tells apart."""

    field: str
    text: str = ""
    value: Json = None
    is_closed: bool = False  # by its own mark, before the text ended


class Replies:
    """Decodes. Calls are read by the tokenizer's own response template where it declares one and
    it accepts the text; everywhere else they are left in the text, for the ledger."""

    def __init__(self, tokenizer: Any, end_ids: frozenset[int], *, declared: Json = None) -> None:
        """`declared`: the response template, where it is to be used."""
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        # An end token that is text, such as the closing mark of a call, stays.
        self._unsaid = frozenset(
            one for one in end_ids if one not in added or getattr(added[one], "special", True)
        )
        self._template: dict[str, Json] | None = None
        self.warnings: tuple[str, ...] = ()
        if declared is not None:
            self._declare(declared)

    @property
    def parser(self) -> str:
        """For the fingerprint: who reads calls."""
        return "text" if self._template is None else f"response_template {digest(self._template)}"

    def reply(self, prompt: str, generated: GeneratedTokens, tools: Sequence[Json]) -> Reply:
        text = self.text(generated)
        end = self._decoded([one for one in generated.ids[-1:] if one in self._unsaid])
        made = self._structured(prompt, text, end, tools) or Reply(text=text)
        thought = made.reasoning or read_turn(made.text, offered=(), formats=()).reasoning
        carried: dict[str, Json] = {RAW_TEXT: text}
        if thought:
            carried["reasoning_content"] = thought
        finish = "stop" if generated.ended else "length"
        return msgspec.structs.replace(made, finish=finish, carried=carried)

    def text(self, generated: GeneratedTokens) -> str:
        """All that the model wrote, without the token that ended it."""
        ids = generated.ids
        return self._decoded(ids[:-1] if ids and ids[-1] in self._unsaid else ids)

    def _declare(self, declared: Json) -> None:
        try:
            self._tokenizer.get_response_parser(declared, prefix="")
        except _PARSING_ERRORS as error:
            said = " ".join(str(error).split())
            self.warnings = (f"the tokenizer's response_template is not used: {said}",)
        else:
            self._template = want_object(declared)

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text

    def _structured(self, prompt: str, text: str, end: str, tools: Sequence[Json]) -> Reply | None:
        if self._template is None:
            return None
        try:
            # With its end, because only that tells the parser that the last mark is whole.
            regions = self._regions(prompt, text + end, tools)
            calls = [entry for one in regions if one.field == _CALLS for entry in _entries(one)]
        except _PARSING_ERRORS:
            return None
        if any(one.field == _CALLS and not one.is_closed for one in regions):
            return None  # a call without its end is for the ledger to judge
        return Reply(
            text=_join(regions, (_SAID,)).removesuffix(end),
            calls=tuple(calls) or None,
            reasoning=_join(regions, _THOUGHT),
        )

    def _regions(self, prompt: str, text: str, tools: Sequence[Json]) -> list[_Region]:
        calls = want_object(want_object((self._template or {})["fields"]).get(_CALLS))
        # JSON has types of its own: there, nothing may be made to fit the tool's schema.
        cast = None if calls.get("content") == "json" else list(tools)
        parser = self._tokenizer.get_response_parser(self._template, prefix=prompt, tools=cast)
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
