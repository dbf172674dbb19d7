"""Turns put together from the pieces in which other programs keep them: texts, thoughts, calls and
results, each an entry of its own."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from callmark.datasets.importing.conversation import function_call
from callmark.datasets.importing.desk import Object
from callmark.records.jsontext import Json, canonical_json, digest
from callmark.records.trace import is_error_result

PARAGRAPH = "\n\n"
# What providers call a part that is nothing but text. Such lists are no sets, for what is looked up
# in them comes from outside and may be anything.
TEXT_PARTS = ("text", "input_text", "output_text", "summary_text", "reasoning_text")


def objects_of(value: Json) -> list[Object]:
    """The objects of a list; of anything else none."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def object_or_empty(value: Json) -> Object:
    return value if isinstance(value, dict) else {}


def name_by_content(messages: Sequence[Object]) -> str:
    """What a conversation is called to which its source gives no name."""
    return f"talk-{digest([*messages])[:16]}"


def rows_about(entry: Object, read: Collection[str]) -> tuple[str | None, Object]:
    """The name that a row gives its conversation, and everything in it that is not read."""
    named = (entry.get(key) for key in ("sample_id", "id"))
    name = next((one for one in named if isinstance(one, str | int) and one != ""), None)
    taken = {*read, "sample_id", "id"} if name is not None else read
    about = {key: value for key, value in entry.items() if key not in taken}
    return None if name is None else str(name), about


def text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def text_of_part(part: Json) -> str | None:
    """None: the part is no text."""
    if isinstance(part, str):
        return part
    if not isinstance(part, dict) or part.get("type", "text") not in TEXT_PARTS:
        return None
    text = part.get("text")
    return text if isinstance(text, str) else None


def content_of(value: Json) -> Json:
    """What somebody said: one text where there is nothing else in it, or the parts as they are."""
    if value is None or isinstance(value, str):
        return value or ""
    if not isinstance(value, list):
        return canonical_json(value)
    texts = [text_of_part(part) for part in value]
    if None not in texts:
        return "\n".join(text for text in texts if text)
    return [part if isinstance(part, dict | str) else canonical_json(part) for part in value]


def result_of(value: Json) -> Json:
    """What a tool returned: a text where it is nothing else, the parts where pictures are among
    them, and everything else as the JSON that it is."""
    content = content_of(value)
    if isinstance(content, str):
        return content
    has_text = any(text_of_part(part) is not None for part in objects_of(value))
    return content if has_text else canonical_json(value)


def failed_result(content: Json) -> str:
    """A result that its source marks as an error beside the text says so itself."""
    if isinstance(content, str) and is_error_result(content):
        return content
    texts = content if isinstance(content, list) else [content]
    said = "\n".join(text for part in texts if (text := text_of_part(part)))
    return canonical_json({"error": said or "error"})


class Turns:
    """Messages of the OpenAI style while their pieces arrive. What the model says, thinks and calls
    is one turn until somebody else speaks or a result comes."""

    def __init__(self) -> None:
        self.messages: list[Object] = []
        self._is_open = False
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._calls: list[Object] = []
        self._waiting: list[str | None] = []  # the calls of all turns that nothing answered

    @property
    def is_waiting(self) -> bool:
        """Whether a call is without its result."""
        return bool(self._waiting)

    def tell(self, role: str, content: Json) -> None:
        """Somebody who is not the model."""
        self.close()
        self.messages.append({"role": role, "content": content_of(content)})

    def speak(self, text: str, glue: str = PARAGRAPH) -> None:
        self._is_open = True
        if text and self._texts:
            self._texts.append(glue)
        if text:
            self._texts.append(text)

    def think(self, text: str) -> None:
        self._is_open = True
        if text:
            self._thoughts.append(text)

    def call(self, name: Json, arguments: Json, call_id: Json = None) -> None:
        self._is_open = True
        self._calls.append(function_call(name, arguments, call_id))
        self._waiting.append(call_id if isinstance(call_id, str) else None)

    def answer(
        self, content: Json, call_id: Json = None, name: Json = None, *, failed: bool = False
    ) -> None:
        """A result. `content` None: the tool returned nothing that was kept."""
        self.close()
        made = result_of(content)
        message: Object = {"role": "tool", "content": failed_result(made) if failed else made}
        if isinstance(call_id, str):
            message["tool_call_id"] = call_id
        if isinstance(name, str):
            message["name"] = name
        self.messages.append(message)
        known = call_id if isinstance(call_id, str) and call_id in self._waiting else None
        if known in self._waiting:
            self._waiting.remove(known)
        elif self._waiting:
            self._waiting.pop(0)

    def add(self, messages: Sequence[Object]) -> None:
        """Messages that are whole already."""
        self.close()
        self.messages += messages

    def close(self) -> None:
        """The model's turn is over, if one is open."""
        if not self._is_open:
            return
        made: Object = {"role": "assistant", "content": "".join(self._texts)}
        if self._thoughts:
            made["reasoning_content"] = "\n".join(self._thoughts)
        if self._calls:
            made["tool_calls"] = self._calls
            made["content"] = made["content"] or None
        self.messages.append(made)
        self._is_open = False
        self._texts, self._thoughts, self._calls = [], [], []
