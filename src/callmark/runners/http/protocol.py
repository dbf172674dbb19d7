"""The seam between the one client and the protocols that it speaks: how a conversation becomes a
request, and a body what the model said. A protocol is one file beside this one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeGuard, TypeVar

import msgspec
from msgspec.structs import replace

from callmark.calls.attempts import NameCodec, entry_for, native_call
from callmark.calls.registry import name_of_tool
from callmark.errors import UsageError
from callmark.records.jsontext import MAX_DEPTH, Json, NotJson, encode_json, parse_json
from callmark.records.seams import Conversation, Reply, Usage, add_usage
from callmark.records.trace import TraceEntry
from callmark.runners.http.trouble import Complaint
from callmark.runners.options import Address, RunnerOptions

Message = dict[str, Json]

CHOICES = frozenset({"auto", "none", "required", "any"})
NOT_STREAMED = "answers are not streamed"
FROM_DATASET = "it comes from the dataset"
FROM_REGISTRY = "they come from the registry"
REMEMBERED = 4096  # frames: different offers × trials
# Bodies beyond this are stripped of what is not read (log probabilities, padding) first; what is
# left has bounds, because values take up to fifty times the room of their text.
LARGE = 256 << 10
MOST_READ = 4 << 20
MOST_BRACKETS = 100_000
TOO_MANY = f"the answer holds more than {MOST_BRACKETS:,} lists and objects"


class NoAnswer(ValueError):
    """The body is not what an answer looks like; it may be one the next time. The message is one
    clause."""


class NeverAnswer(ValueError):
    """The same, and asking again would not help."""


class ServerAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What a good response says. `server_tools`: what the server ran by itself, which nobody
    scores. `paused`: it goes on if it is sent back what it said so far."""

    reply: Reply
    model: Json = None
    system_fingerprint: Json = None
    server_tools: tuple[str, ...] = ()
    paused: bool = False


class WireProtocol(ABC):
    """Names leave in the endpoint's alphabet; `codec` leads back."""

    name: ClassVar[str]
    address: ClassVar[Address]
    # Fields that a user cannot add to a request, and why.
    refused: ClassVar[Mapping[str, str]]
    # Where the conversation stands: an error about these is about one sample.
    spoken_in: ClassVar[frozenset[str]]

    def __init__(self, options: RunnerOptions) -> None:
        for field, why in self.refused.items():
            if field in options.served.extra_body:
                raise UsageError(f"--extra-body.{field}: cannot be set here: {why}")
        self.options = options
        self.codec = NameCodec(map(name_of_tool, options.tools))
        self._tails: dict[tuple[int, int], tuple[Sequence[Message], bytes]] = {}

    @abstractmethod
    def spoken(self, messages: Sequence[Message]) -> dict[str, Json]:
        """The fields of a request that hold the conversation."""

    @abstractmethod
    def framed(self, tools: Sequence[Message], trial: int) -> dict[str, Json]:
        """All other fields; those that are None are left out."""

    @abstractmethod
    def read(self, body: bytes) -> ServerAnswer | Complaint:
        """What a response with a good status says. Raises NoAnswer and NeverAnswer."""

    @property
    def fields(self) -> frozenset[str]:
        """The names of all fields that a request may have, and of those inside the user's own."""
        extra = self.options.served.extra_body.values()
        inner = {name for value in extra if isinstance(value, dict) for name in value}
        return frozenset(self._fields(self.options.tools, 0)) | self.spoken_in | inner

    def body(self, conversation: Conversation) -> bytes:
        said = encode_json(self.spoken(conversation.messages))
        return said[:-1] + self._tail(conversation.tools, conversation.trial)

    def _tail(self, tools: Sequence[Message], trial: int) -> bytes:
        # Samples that are offered the same share one list; holding on to it keeps its id its own.
        key = id(tools), trial
        known = self._tails.get(key)
        if known is None:
            if len(self._tails) >= REMEMBERED:
                self._tails.clear()
            tail = b"," + encode_json(self._fields(tools, trial))[1:]
            known = self._tails[key] = (tools, tail)
        return known[1]

    def _fields(self, tools: Sequence[Message], trial: int) -> dict[str, Json]:
        fields = self.framed(tools, trial)
        given = {name: value for name, value in fields.items() if value is not None}
        extra = self.options.served.extra_body
        # A null for what we would send by ourselves leaves it out; other nulls are the user's own.
        dropped = {name for name, value in extra.items() if value is None and name in fields}
        return {name: one for name, one in (given | extra).items() if name not in dropped}

    def wanted(self, tools: Sequence[Message]) -> tuple[str | None, str | None]:
        """The tool choice: a word that servers know, or the name under which a tool is sent."""
        word = self.options.decoding.tool_choice
        if not tools or word is None:
            return None, None
        if word in CHOICES:
            return word, None
        if word in map(name_of_tool, tools):
            return None, self.codec.encode(word)
        return "auto" if word in map(name_of_tool, self.options.tools) else word, None

    def entry(self, name: Json, arguments: Json) -> TraceEntry:
        """A call of an answer as a line of the trace."""
        decoded = self.codec.decode(name) if isinstance(name, str) else name
        return entry_for(native_call(decoded, arguments), None)


class SentIds:
    """Which id a call goes back under: the server's own, so that what it said goes back as it was,
    unless it gave that one to an earlier call of the conversation."""

    def __init__(self) -> None:
        self._sent: dict[str, str] = {}
        self._used: set[str] = set()
        self._waiting: list[str] = []

    def call(self, ours: Json, theirs: Json = None) -> str:
        known = ours if isinstance(ours, str) and ours else f"call_{len(self._used) + 1}"
        chosen = theirs if isinstance(theirs, str) and theirs else known
        if chosen in self._used:
            chosen = known
        while chosen in self._used:
            chosen += "_"
        self._used.add(chosen)
        self._sent[known] = chosen
        self._waiting.append(chosen)
        return chosen

    def result(self, ours: Json) -> str:
        """Of a result that names no call it is the first one without a result."""
        found = self._sent.get(ours) if isinstance(ours, str) else None
        if found is None and isinstance(ours, str) and ours:
            return ours
        if found is None:
            return self._waiting.pop(0) if self._waiting else "call_0"
        if found in self._waiting:
            self._waiting.remove(found)
        return found


Body = TypeVar("Body", bound=msgspec.Struct)


class BodyReader(Generic[Body]):
    """Reads a body as far as it matters. `outline`: where the fields of that record stand, none of
    them read, for bodies that are too large to be read before they are stripped; None: each of
    them by itself."""

    def __init__(
        self, record: type[Body], what: str, outline: type[msgspec.Struct] | None = None
    ) -> None:
        if outline is None:
            unread = [(name, msgspec.Raw, msgspec.Raw()) for name in record.__struct_fields__]
            outline = msgspec.defstruct("Outline", unread, omit_defaults=True)
        self._record = record
        self._what = what
        self._decode = msgspec.json.Decoder(record).decode
        self._decode_outline = msgspec.json.Decoder(outline).decode

    def __call__(self, body: bytes) -> Body:
        if len(body) > LARGE:
            body = self._strip(body)
        try:
            # So few brackets cannot be nested too deeply to be walked.
            if body.count(b"{") + body.count(b"[") <= MAX_DEPTH:
                return self._decode(body)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            pass
        try:
            # Slower, and the only one that takes lone surrogates; it also says best what is wrong.
            return msgspec.convert(parse_json(body), self._record)
        except NotJson as error:
            raise NoAnswer(f"the answer is {error}") from None
        except msgspec.ValidationError as error:
            raise NoAnswer(f"the answer is no {self._what}: {error}") from None

    def _strip(self, body: bytes) -> bytes:
        """Only the fields that are read, if they are not too much."""
        if body.count(b"{") > 5 * MOST_BRACKETS:
            raise NoAnswer(TOO_MANY)
        try:
            read = msgspec.json.encode(self._decode_outline(body))
        except (msgspec.MsgspecError, ValueError) as error:
            raise NoAnswer(f"the answer is no {self._what}: {error}") from None
        except RecursionError:
            raise NoAnswer(f"the answer is nested deeper than {MAX_DEPTH} levels") from None
        if len(read) > MOST_READ:
            raise NoAnswer(f"the answer says more than {MOST_READ >> 20} MB")
        if read.count(b"{") + read.count(b"[") > MOST_BRACKETS:
            raise NoAnswer(TOO_MANY)
        return read


def count_tokens(prompt: Json, completion: Json, cached: Json = 0) -> Usage | None:
    """None: the server does not say it in a form that can be counted."""
    said = {"prompt_tokens": prompt, "completion_tokens": completion}
    try:
        return msgspec.convert({**said, "cached_tokens": cached or 0}, Usage)
    except msgspec.ValidationError:
        return count_tokens(prompt, completion) if cached else None


def past_calls(message: Message) -> list[Message]:
    """The calls of an earlier turn, as chat completions write them."""
    calls = message.get("tool_calls")
    return [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []


def are_parts(content: Json) -> TypeGuard[list[Json]]:
    """Whether a tool's result is a list of content parts, not just a list."""
    return isinstance(content, list) and all(
        isinstance(part, dict) and "type" in part for part in content
    )


def join_pieces(pieces: Sequence[Reply]) -> Reply:
    """One turn that came in several responses. It ended as the last of them did."""
    calls = tuple(call for piece in pieces for call in piece.calls or ())
    carried: dict[str, Json] = {}
    for piece in pieces:
        for name, held in piece.carried.items():
            before = carried.get(name)
            if isinstance(before, list) and isinstance(held, list):
                held = [*before, *held]
            carried[name] = held
    counted = [piece.usage for piece in pieces if piece.usage is not None]
    return replace(
        pieces[-1],
        text="\n".join(filter(None, (piece.text for piece in pieces))),
        calls=calls or None,
        reasoning="\n".join(filter(None, (piece.reasoning for piece in pieces))),
        carried=carried,
        usage=add_usage(counted),
        seconds=sum(piece.seconds or 0.0 for piece in pieces),
    )


def kind_of(part: Message) -> str:
    """The type of an item or a block; servers may send anything there."""
    kind = part.get("type")
    return kind if isinstance(kind, str) else ""
