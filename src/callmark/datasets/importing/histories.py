"""Exchanges with a model that carry the growing history become conversations: each of them once,
however often its beginning was sent."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from itertools import takewhile

import msgspec

from callmark.datasets.importing.conversation import (
    Talk,
    imported_session,
    name_by_content,
    object_or_empty,
    objects_of,
    text_or_none,
)
from callmark.datasets.importing.desk import Desk, Imported, Object
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    digest,
    parse_json,
)
from callmark.runners.messages import text_of

MAX_OPEN = 256  # conversations that may still go on; the one that rested longest is closed
ROLLOUT = "responses_create_params"
_REQUEST = ("messages", "model", "system", "tools")
_BAD_STATUS = 400
_LONG_ID = 12
_BODIES = frozenset({"messages", "input", "content", "output", "choices", "error"})


class ModelExchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what came back, as messages. `answer_id` and `after` name answers, where a
    request sends only what is new; `thread` a conversation that the provider keeps. `error`: why
    there is no answer. `tools` None: the request does not say."""

    line: int
    sent: Sequence[Object]
    answer: Sequence[Object] = ()
    tools: Sequence[Json] | None = None
    answer_id: str | None = None
    after: str | None = None
    thread: str | None = None
    error: str | None = None
    sample_id: str | None = None
    about: Object = {}
    scores: Object = {}
    metadata: Object = {}


class _Conversation:
    """One that may go on. `system`: what its first request began with; `context`: how many of its
    messages are another conversation's; `marks`: a hash of it up to each message."""

    def __init__(self, first: ModelExchange, parent: _Conversation | None) -> None:
        self.first = first
        self.system, self.messages = split_system(first.sent)
        self.context = len(self.messages) if parent is not None else 0
        self.marks: list[bytes] = []
        self.tools: dict[str, Json] = {}
        self.lists_tools = False
        self.error: str | None = None
        self.keys: set[bytes | str] = set()
        told = [*self.system, *self.messages, *first.answer]
        self.parent: str | None = parent.name if parent is not None else None
        self.name: str = first.sample_id or name_by_content(told)

    def grow(self, whole: Sequence[Object], exchange: ModelExchange) -> None:
        """`whole`: the history as it was sent last, without its system message."""
        sent = list(whole)
        for at, known in enumerate(self.messages[: len(sent)]):
            if known["role"] == "assistant" == sent[at]["role"]:
                sent[at] = _as_answered(known, sent[at])
        self.messages = [*sent, *exchange.answer]
        self.marks = marks_of(self.messages)
        self.error = exchange.error
        if exchange.tools is not None:
            self.lists_tools = True
            self.tools |= {digest(tool): tool for tool in exchange.tools}

    def talk(self, desk: Desk) -> Talk:
        messages = [*self.system, *self.messages]
        has_calls = any(message.get("tool_calls") for message in messages)
        offered = list(self.tools.values())
        first = self.first
        linked: Object = {} if self.parent is None else {"parent": self.parent}
        spoke = any(one["role"] == "assistant" for one in self.messages[self.context :])
        return Talk(
            line=first.line,
            sample_id=self.name,
            named=False,
            messages=messages,
            context=self.context and len(self.system) + self.context,
            tools=offered if self.lists_tools and (offered or not has_calls) else None,
            lists_all=False,
            metadata=first.metadata,
            about={**first.about, **linked},
            scores=first.scores,
            error=None if spoke else self.error,
        )


class Histories:
    """Takes one exchange after the other; conversations come out when they can go on no more.
    `session`: all are of one, so that what does not go on from its first is a sub-agent's."""

    def __init__(self, desk: Desk, *, session: bool = False) -> None:
        self._desk = desk
        self._is_session = session
        self._root: str | None = None
        self._open: dict[str | int, _Conversation] = {}
        self._at: dict[
            bytes | str, tuple[int, int]
        ] = {}  # a place → conversation, its length there
        self._count = 0

    def take(self, exchange: ModelExchange) -> Iterator[Imported]:
        number, conversation, whole = self._find(exchange)
        if self._is_told(exchange, whole):
            self._desk.notes.add("recorded_twice", exchange.line, "an exchange")
            return
        if exchange.error is not None:
            self._desk.notes.add("failed_exchange", exchange.line, exchange.error)
        if conversation is None:
            number, conversation = self._begin(exchange, None)
        elif number is None:
            self._desk.notes.add("other_branch", exchange.line, conversation.name)
            branch = msgspec.structs.replace(exchange, sent=[*conversation.system, *whole])
            number, conversation = self._begin(branch, conversation)
        else:
            self._open[number] = self._open.pop(number)
        self._compare_system(conversation, exchange)
        conversation.grow(whole, exchange)
        self._remember(number, conversation, exchange)
        while len(self._open) > MAX_OPEN:
            yield from self._close(next(iter(self._open)))

    def finish(self) -> Iterator[Imported]:
        for number in sorted(self._open):
            yield from self._close(number)

    def _find(
        self, exchange: ModelExchange
    ) -> tuple[int | None, _Conversation | None, Sequence[Object]]:
        """Which conversation goes on, and the whole history; no number: it goes on from an earlier
        place of that one."""
        _, sent = split_system(exchange.sent)
        for key in (f"after {exchange.after}", f"thread {exchange.thread}"):
            if key in self._at:
                number, length = self._at[key]
                known = self._open[number]
                goes_on = length == len(known.messages) or key.startswith("thread")
                before = known.messages if goes_on else known.messages[:length]
                return number if goes_on else None, known, [*before, *sent]
        if exchange.after is not None:
            self._desk.notes.add("history_missing", exchange.line, exchange.after)
            return None, None, sent
        nearest: _Conversation | None = None
        for mark in reversed(marks_of(sent)):
            if mark in self._at:
                number, length = self._at[mark]
                nearest = self._open[number]
                if length == len(nearest.messages):
                    return number, nearest, sent
                break
        return self._find_by_call(sent, nearest)

    def _find_by_call(
        self, sent: Sequence[Object], nearest: _Conversation | None
    ) -> tuple[int | None, _Conversation | None, Sequence[Object]]:
        """Clients send back what they understood of an answer, not what it was; the ids of its
        calls stay."""
        places = (self._at.get(f"call {one}") for message in sent for one in _call_ids(message))
        found = next((place for place in places if place is not None), None)
        if found is None:
            return None, nearest, sent
        known = self._open[found[0]]
        pairs = list(zip(known.messages, sent, strict=False))
        goes_on = len(pairs) == len(known.messages) and all(
            map(_is_same, *zip(*pairs, strict=True))
        )
        return found[0] if goes_on else None, known, sent

    def _begin(
        self, exchange: ModelExchange, parent: _Conversation | None
    ) -> tuple[int, _Conversation]:
        self._count += 1
        made = self._open[self._count] = _Conversation(exchange, parent)
        if self._root is None:
            self._root = made.name
        elif self._is_session and made.parent is None:
            self._desk.notes.add("sub_agent", exchange.line, made.name)
            made.parent = self._root
        return self._count, made

    def _is_told(self, exchange: ModelExchange, whole: Sequence[Object]) -> bool:
        """Whether all of it stands in a conversation already: exports may begin with the newest."""
        marks = marks_of([*whole, *exchange.answer])
        if exchange.error is not None or not marks:
            return False
        number, length = self._at.get(marks[-1], (0, 0))
        if length != len(whole) + len(exchange.answer):
            return False
        return exchange.sample_id in (None, self._open[number].first.sample_id)

    def _compare_system(self, conversation: _Conversation, exchange: ModelExchange) -> None:
        system, _ = split_system(exchange.sent)
        if system and system != conversation.system:
            self._desk.notes.add("other_instructions", exchange.line, conversation.name)

    def _remember(self, number: int, conversation: _Conversation, exchange: ModelExchange) -> None:
        """Where it can be taken up again: after each turn of the model, and where one failed."""
        places: dict[bytes | str, int] = {}
        spoken = False
        for at, message in enumerate(conversation.messages):
            spoken = spoken or message["role"] == "assistant"
            if spoken:
                places[conversation.marks[at]] = at + 1
            places |= {f"call {one}": at + 1 for one in _call_ids(message)}
        length = len(conversation.messages)
        if exchange.error is not None and conversation.marks:
            places[conversation.marks[-1]] = length
        if exchange.answer_id is not None:
            places[f"after {exchange.answer_id}"] = length
        if exchange.thread is not None:
            places[f"thread {exchange.thread}"] = length
        conversation.keys |= places.keys()
        self._at |= {place: (number, at) for place, at in places.items()}

    def _close(self, number: str | int) -> Iterator[Imported]:
        conversation = self._open.pop(number)
        for key in conversation.keys:
            if self._at.get(key, (0, 0))[0] == number:
                del self._at[key]
        imported = imported_session(conversation.talk(self._desk), self._desk)
        if imported is not None:
            yield imported


def split_system(messages: Sequence[Object]) -> tuple[list[Object], list[Object]]:
    """The instructions that a history begins with, and the rest."""
    system = list(takewhile(lambda one: one.get("role") in ("system", "developer"), messages))
    return system, list(messages[len(system) :])


def marks_of(messages: Sequence[Object]) -> list[bytes]:
    """A hash of the conversation up to each message. Ids and thoughts are none of it: they differ
    between an answer and what is sent back of it."""
    marks: list[bytes] = []
    mark = b""
    for message in messages:
        mark = hashlib.sha256(mark + canonical_json(_essence(message)).encode()).digest()[:16]
        marks.append(mark)
    return marks


def _essence(message: Object) -> list[Json]:
    content = message.get("content")
    text = text_of(content).strip() or (content if isinstance(content, list) else "")
    calls = [call.get("function") for call in objects_of(message.get("tool_calls"))]
    return [message.get("role"), text, [_call_essence(call) for call in calls]]


def _call_ids(message: Object) -> list[str]:
    """Those that are no mere numbers within one answer."""
    ids = (call.get("id") for call in objects_of(message.get("tool_calls")))
    return [one for one in ids if isinstance(one, str) and len(one) >= _LONG_ID]


def _is_same(known: Object, sent: Object) -> bool:
    ids = _call_ids(known)
    return (bool(ids) and ids == _call_ids(sent)) or _essence(known) == _essence(sent)


def _as_answered(known: Object, sent: Object) -> Object:
    """A turn as the model gave it, under the ids by which its results are sent."""
    calls, others = objects_of(known.get("tool_calls")), objects_of(sent.get("tool_calls"))
    if len(calls) != len(others):
        return sent
    renamed = [
        {**call, "id": other["id"]} if "id" in other else call
        for call, other in zip(calls, others, strict=True)
    ]
    return {**known, "tool_calls": renamed} if renamed else known


def _call_essence(function: Json) -> Json:
    if not isinstance(function, dict):
        return function
    arguments = function.get("arguments")
    try:
        read = parse_json(arguments) if isinstance(arguments, str) else arguments
    except NotJson:
        read = arguments
    return [function.get("name"), read]


def exchanges_of(entry: Object) -> list[Object] | None:
    """The exchanges that an entry holds, one or a list of them; None: it holds none."""
    listed = entry.get("interactions")
    if isinstance(listed, list):
        found = [object_or_empty(one) for one in listed]
    elif ROLLOUT in entry:
        found = [{**entry, "request": object_or_empty(entry[ROLLOUT])}]
    elif "request" in entry and "response" in entry:
        found = [entry]
    elif isinstance(entry.get("messages"), list) and _is_answer(entry.get("response")):
        # The parts of a request beside its response, as gateways log them.
        given = object_or_empty(entry.get("model_parameters"))
        asked = {name: entry[name] for name in _REQUEST if name in entry}
        found = [{**entry, "request": {**given, **asked}}]
    else:
        return None
    return [
        {**one, "request": _body(one.get("request")), "response": _body(one.get("response"))}
        for one in found
    ]


def is_whole_session(entry: Object) -> bool:
    """Whether an entry holds all of a conversation, so that no other goes on from it."""
    return "interactions" in entry or ROLLOUT in entry


def _is_answer(response: Json) -> bool:
    match _body(response):
        case {"choices": [{}, *_]} | {"output": [{}, *_]} | {"content": list(), "role": str()}:
            return True
    return False


def _body(side: Json) -> Json:
    """What was sent: some keep it as text, or below what was said about it."""
    if isinstance(side, dict) and "body" in side and not _BODIES & side.keys():
        side = side["body"]
    if not isinstance(side, str) or not side.lstrip().startswith("{"):
        return side
    try:
        return parse_json(side)
    except NotJson:
        return side


def first_exchange(entry: Object) -> tuple[Object, Json]:
    """The first request and its response, to know a source by; an entry without any is the request
    itself, and its response None."""
    found = exchanges_of(entry)
    if not found:
        return entry, None
    return object_or_empty(found[0].get("request")), found[0].get("response")


def events_of(response: Json) -> list[Object]:
    """The events of a recorded stream: as the text that was sent, or as a list."""
    if not isinstance(response, str):
        return objects_of(response)
    events: list[Object] = []
    for line in response.splitlines():
        if line.startswith("data:") and (data := line.removeprefix("data:").strip()) != "[DONE]":
            try:
                event = parse_json(data)
            except NotJson:
                continue  # the stream was cut there, and what is missing shows by itself
            events += [event] if isinstance(event, dict) else []
    return events


def failure_of(exchange: Object, response: Object) -> str | None:
    """Why the provider gave no answer, if it gave none."""
    status, error = exchange.get("status"), response.get("error")
    if isinstance(error, dict):
        told = text_or_none(error.get("message")) or text_or_none(error.get("type"))
        return told or "no reason is given"
    if isinstance(error, str) and error:
        return error
    is_bad = isinstance(status, int) and not isinstance(status, bool) and status >= _BAD_STATUS
    return f"status {status}" if is_bad else None
