"""Tokens that a model generated, as the reply of one turn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from callmark.calls.ledger import read_turn
from callmark.records.jsontext import Json
from callmark.records.seams import Reply
from callmark.runners.hf.generate import GeneratedTokens
from callmark.runners.hf.prompts import RAW_TEXT
from callmark.runners.response_template import PARSING_ERRORS, ResponseTemplate


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
        self._template: ResponseTemplate | None = None
        self.warnings: tuple[str, ...] = ()
        if declared is not None:
            self._declare(declared)

    @property
    def parser(self) -> str:
        """For the fingerprint: who reads calls."""
        return "text" if self._template is None else f"response_template {self._template.sha256}"

    def reply(self, prompt: str, generated: GeneratedTokens, tools: Sequence[Json]) -> Reply:
        text = self.text(generated)
        end = self._decoded([one for one in generated.ids[-1:] if one in self._unsaid])
        made = None
        if self._template is not None:
            made = self._template.read(text, tools, prompt=prompt, end=end)
        made = made or Reply(text=text)
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
            self._template = ResponseTemplate(declared)
        except PARSING_ERRORS as error:
            said = " ".join(str(error).split())
            self.warnings = (f"the tokenizer's response_template is not used: {said}",)

    def _decoded(self, ids: Sequence[int]) -> str:
        text: str = self._tokenizer.decode(
            ids, skip_special_tokens=False, clean_up_tokenization_spaces=False
        )
        return text
