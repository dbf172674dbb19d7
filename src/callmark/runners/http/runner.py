"""The runner for a served model, and the seam between it and the protocols of endpoints: how a
conversation becomes a request, and a body what the model said. A protocol is a file beside this."""

from __future__ import annotations

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import ClassVar, Generic, TypeGuard, TypeVar, assert_never

import msgspec
from msgspec.structs import replace

from callmark.calls.attempts import NameCodec, entry_for, native_call
from callmark.calls.registry import name_of_tool
from callmark.errors import (
    CallmarkError,
    FingerprintMismatch,
    Incomplete,
    UsageError,
    fault_of_ours,
)
from callmark.records.jsontext import (
    MAX_DEPTH,
    Json,
    NotJson,
    digest,
    encode_json,
    parse_json,
    want_object,
)
from callmark.records.seams import (
    Conversation,
    Failure,
    Observed,
    Reply,
    Runner,
    Usage,
)
from callmark.records.trace import RepairedCall, TraceEntry
from callmark.runners.http.client import AdaptiveLimit, Secrets, Transport, endpoint_of
from callmark.runners.http.trouble import (
    Complaint,
    Lost,
    Refused,
    Response,
    Retry,
    RetryPolicy,
    Situation,
    complaint_of,
    judge_complaint,
    wait_before,
)
from callmark.runners.options import Address, RunnerOptions
from callmark.store.spending import add_usage

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
            outline = self._decode_outline(body)
        except (msgspec.MsgspecError, ValueError) as error:
            raise NoAnswer(f"the answer is no {self._what}: {error}") from None
        except RecursionError:
            raise NoAnswer(f"the answer is nested deeper than {MAX_DEPTH} levels") from None
        if _length(outline) > MOST_READ:  # measured where it stands: a copy would be as large
            raise NoAnswer(f"the answer says more than {MOST_READ >> 20} MB")
        read = msgspec.json.encode(outline)
        if read.count(b"{") + read.count(b"[") > MOST_BRACKETS:
            raise NoAnswer(TOO_MANY)
        return read


def _length(outline: object) -> int:
    """Bytes of the fields that were not read."""
    match outline:
        case msgspec.Raw():
            return memoryview(outline).nbytes
        case msgspec.Struct():
            return sum(map(_length, msgspec.structs.astuple(outline)))
        case list():
            return sum(map(_length, outline))
        case _:
            return 0


def count_tokens(prompt: Json, completion: Json, cached: Json = 0) -> Usage | None:
    """None: the server does not say it in a form that can be counted."""
    if type(prompt) is type(completion) is int and prompt >= 0 <= completion and not cached:
        return Usage(prompt, completion)
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


MOST_NAMES = 20
LONGEST_TOOL = 100


class Seen:
    """`one_server`: a second system_fingerprint ends the run."""

    def __init__(self, base_url: str, secrets: Secrets, *, one_server: bool) -> None:
        self._base_url = base_url
        self._secrets = secrets
        self._one_server = one_server
        self._models: set[str] = set()
        self._fingerprints: set[str] = set()
        self._server_tools: Counter[str] = Counter()
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None
        self._told_of: tuple[object, ...] | None = None
        self._provenance: dict[str, Json] = {}
        self._warnings: tuple[str, ...] = ()
        self.requests = 0
        self.retries = 0
        self.answers = 0

    def note(self, answer: ServerAnswer) -> None:
        self.answers += 1
        self._add(self._models, answer.model)
        self._add(self._fingerprints, answer.system_fingerprint)
        for name in answer.server_tools:
            name = self._secrets.clean(name)[:LONGEST_TOOL]
            if name in self._server_tools or len(self._server_tools) < MOST_NAMES:
                self._server_tools[name] += 1
        # Two builds of a server round differently: what they answer cannot be equal on repeat.
        if self._one_server and len(self._fingerprints) > 1:
            raise FingerprintMismatch(
                f"{self._base_url}: {self._differing()}; in determinism mode one server must answer"
                " all requests"
            )
        usage = answer.reply.usage
        if usage is not None:
            self._prompt_tokens = (self._prompt_tokens or 0) + usage.prompt_tokens
            self._completion_tokens = (self._completion_tokens or 0) + usage.completion_tokens

    def observed(self, *, highest: int, model: str, listed: tuple[str, ...]) -> Observed:
        """Asked for after every trial: made anew where there is something new."""
        names = len(self._models), len(self._fingerprints), self._server_tools.total()
        state = (*names, self.answers > 0, model, listed)
        if state != self._told_of:
            self._told_of = state
            self._provenance = self._where_from()
            self._warnings = self._warn(model, listed)
        return Observed(
            provenance=self._provenance,
            measured={
                "requests": self.requests,
                "retries": self.retries,
                "highest_concurrency": highest,
                "prompt_tokens": self._prompt_tokens,
                "completion_tokens": self._completion_tokens,
            },
            warnings=self._warnings,
        )

    def _warn(self, model: str, listed: tuple[str, ...]) -> tuple[str, ...]:
        warnings = []
        if len(self._fingerprints) > 1:
            warnings.append(f"{self._differing()}: not one and the same server answered")
        if len(self._models) > 1:
            warnings.append(f"several models answered: {', '.join(sorted(self._models))}")
        if self.answers and listed and not _is_listed(model, listed):
            shown = ", ".join(listed[:10])
            warnings.append(f"the server answers for {model!r}, but lists only: {shown}")
        if self._server_tools:
            ran = ", ".join(f"{name} ({n})" for name, n in sorted(self._server_tools.items()))
            warnings.append(f"the server ran tools of its own, which are not scored: {ran}")
        return tuple(warnings)

    def _where_from(self) -> dict[str, Json]:
        found: dict[str, Json] = {
            "base_url": self._base_url,
            "served_models": sorted(self._models),
            "system_fingerprints": sorted(self._fingerprints),
        }
        if self._server_tools:
            found["server_tools"] = sorted(self._server_tools)
        return found

    def _add(self, names: set[str], name: Json) -> None:
        # Bounded: a server that makes up a new name for every answer must not fill the report.
        if name and isinstance(name, str) and name not in names and len(names) < MOST_NAMES:
            names.add(self._secrets.clean(name)[:200])

    def _differing(self) -> str:
        return f"system_fingerprint differs: {', '.join(sorted(self._fingerprints))}"


def _is_listed(model: str, listed: tuple[str, ...]) -> bool:
    """Servers add a tag or a folder to the names that they take."""
    return any(
        model == name or name.startswith(f"{model}:") or name.endswith(f"/{model}")
        for name in listed
    )


NAME_CODEC_VERSION = 1
FIRST_CONNECTIONS = 16
MOST_CONNECTIONS = 256
# An answer that took longer than this share of the time limit is no reason for more requests.
PATIENCE = 0.25
READY_TRIES = 3
MOST_PAUSES = 10
LONGEST_LIST = 1 << 20  # of models; a longer one is not read
POLICY = RetryPolicy()


class Paused(msgspec.Struct, frozen=True):
    """A piece of a turn: the server wants to see it again before it goes on."""

    reply: Reply


class ServedRunner(Runner):
    """One conversation, one request; tried again where that may help. What the user has to mend
    (a key, a parameter, the model's name) is raised and ends the run."""

    suspends = True

    def __init__(
        self,
        options: RunnerOptions,
        protocol: type[WireProtocol],
        policy: RetryPolicy | None = None,
    ) -> None:
        self.name = protocol.name
        if not options.model:
            raise UsageError(
                f"--model: which one? {self.name} needs the name that the server knows"
            )
        served = options.served
        self._options = options
        self._model = options.model
        self._policy = policy or POLICY
        self._endpoint = endpoint_of(served, protocol.address)
        self._protocol = protocol(options)
        self._secrets = self._endpoint.secrets
        self._transport = Transport(
            self._endpoint,
            timeout=served.request_timeout,
            keep_alive=not options.determinism_mode,
        )
        fixed = served.max_connections
        self._limit = AdaptiveLimit(
            start=fixed or FIRST_CONNECTIONS,
            least=fixed or 1,
            most=fixed or MOST_CONNECTIONS,
            patience=served.request_timeout * PATIENCE,
        )
        self.max_batch = self._limit.now
        self._seen = Seen(self._endpoint.base, self._secrets, one_server=options.determinism_mode)
        self._listed: tuple[str, ...] = ()

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        if len(batch) == 1:
            return (await self._answer(batch[0]),)
        return await asyncio.gather(*map(self._answer, batch))

    async def ready(self) -> None:
        """Is anybody there, and are we let in? Not every server lists its models."""
        found = await self._transport.models()
        for _ in range(READY_TRIES - 1):
            if not (isinstance(found, Lost) and found.unreachable):
                break
            await asyncio.sleep(self._policy.first_wait)
            found = await self._transport.models()
        if isinstance(found, Lost) and found.unreachable:
            raise Incomplete(
                f"{self._endpoint.base}: cannot be reached: {found.reason};"
                " start the server, or give another --base-url"
            )
        # Only 401: some servers forbid the list (403, 404) and still answer chats.
        if isinstance(found, Response) and found.status == 401:
            self._judged(complaint_of(401, found.body))
        if isinstance(found, Response) and found.status == 200:
            self._listed = tuple(map(self._secrets.clean, _names_in(found.body)))

    def without_secrets(self, text: str) -> str:
        return self._secrets.clean(text)

    async def close(self) -> None:
        await self._transport.close()

    def fingerprint_parts(self) -> dict[str, Json]:
        return {
            "extra_body": self._options.served.extra_body_written,
            "name_codec": NAME_CODEC_VERSION,
        }

    def model_fingerprint(self) -> str:
        return digest({"name": self._model, "revision": self._options.served.model_revision})

    def tokenizer_fingerprint(self) -> None:
        """No endpoint tells."""

    def observed(self) -> Observed:
        return self._seen.observed(
            highest=self._limit.highest, model=self._model, listed=self._listed
        )

    async def _answer(self, conversation: Conversation) -> Reply | Failure:
        body = self._protocol.body(conversation)
        pieces: list[Reply] = []
        retries = 0
        while True:
            outcome = await self._request(body)
            match outcome:
                case Reply():
                    return join_pieces([*pieces, outcome]) if pieces else outcome
                case Paused(reply=piece):
                    if len(pieces) == MOST_PAUSES:
                        return Failure(f"the server paused {MOST_PAUSES + 1} times in one turn")
                    pieces.append(piece)
                    said: dict[str, Json] = {"role": "assistant", "content": piece.text}
                    so_far = [*conversation.messages, said | piece.carried]
                    conversation = replace(conversation, messages=so_far)
                    body = self._protocol.body(conversation)
                    continue
                case Refused(reason=reason):
                    return Failure(reason)
                case Retry(reason=reason, asked=asked):
                    # A second try may meet another state of the server, and would hide that the
                    # first one failed.
                    if self._options.determinism_mode:
                        return Failure(f"retry needed in determinism mode: {reason}")
                    if retries >= self._options.served.max_retries:
                        tries = f" ({retries + 1} tries)" if retries else ""
                        return Failure(f"{reason}{tries}")
                case _:
                    assert_never(outcome)
            retries += 1
            self._seen.retries += 1
            # Chance decides only how long a request waits, never what it says.
            chance = random.random()  # noqa: S311
            await asyncio.sleep(wait_before(self._policy, retries, asked, chance))

    async def _request(self, body: bytes) -> Reply | Paused | Retry | Refused:
        since = await self._limit.enter()
        try:
            received = await self._transport.post(body)
            self._seen.requests += 1
            outcome = self._outcome_of(received)
        except CallmarkError:
            raise
        except Exception as error:  # whatever it is, it concerns this answer only
            outcome = Refused(fault_of_ours("the answer could not be read", error))
        finally:
            self._limit.leave()
        took = time.monotonic() - since
        if isinstance(outcome, Paused):
            outcome = Paused(replace(outcome.reply, seconds=took))
            self._limit.answered(since)
        elif isinstance(outcome, Reply):
            outcome = replace(outcome, seconds=took)
            self._limit.answered(since)
        elif isinstance(outcome, Retry) and outcome.overloaded:
            self._limit.too_much(since)
        self.max_batch = self._limit.now
        return outcome

    def _outcome_of(self, received: Response | Lost) -> Reply | Paused | Retry | Refused:
        if isinstance(received, Lost):
            if received.for_good:
                return Refused(received.reason)
            return Retry(received.reason, overloaded=received.timed_out)
        if not 200 <= received.status < 300:
            return self._judged(complaint_of(received.status, received.body), received.asked)
        if _is_stream(received):
            return Refused("the server streams its answer, which was not asked for")
        try:
            answer = self._protocol.read(received.body)
        except NoAnswer as trouble:
            return Retry(self._secrets.clean(str(trouble)))
        except NeverAnswer as trouble:
            return Refused(self._secrets.clean(str(trouble)))
        if isinstance(answer, Complaint):
            return self._judged(answer)
        self._seen.note(answer)
        reply = _conceal(answer.reply, self._secrets) if self._secrets else answer.reply
        return Paused(reply) if answer.paused else reply

    def _judged(self, complaint: Complaint, asked: float | None = None) -> Reply | Retry | Refused:
        """What it says is clean before it is cut, quoted or raised."""
        clean, generated = self._secrets.clean, complaint.generated
        complaint = replace(
            complaint,
            message=clean(complaint.message),
            code=clean(complaint.code),
            param=clean(complaint.param),
            generated=None if generated is None else clean(generated),
        )
        return judge_complaint(complaint, self._situation(), asked)

    def _situation(self) -> Situation:
        return Situation(
            where=self._endpoint.base,
            model=self._model,
            fields=self._protocol.fields,
            listed=self._listed,
            has_key=self._endpoint.has_key,
            has_answered=self._seen.answers > 0,
            address=self._protocol.address,
            spoken_in=self._protocol.spoken_in,
        )


def _conceal(reply: Reply, secrets: Secrets) -> Reply:
    """The reply as it may be kept. What goes back to the server may be in pieces that are only
    joined in the reasoning: where that held a secret, nothing goes back."""
    reasoning = secrets.clean(reply.reasoning)
    is_same = reasoning == reply.reasoning
    return replace(
        reply,
        text=secrets.clean(reply.text),
        calls=reply.calls and tuple([_concealed_call(call, secrets) for call in reply.calls]),
        reasoning=reasoning,
        carried=secrets.clean_json(reply.carried) if is_same and reply.carried else {},
    )


def _concealed_call(call: TraceEntry, secrets: Secrets) -> TraceEntry:
    clean, repaired = secrets.clean, call.repaired
    return replace(
        call,
        name=call.name and clean(call.name),
        arguments=secrets.clean_json(call.arguments),
        raw=call.raw and clean(call.raw),
        reason=call.reason and clean(call.reason),
        repaired=repaired
        and RepairedCall(clean(repaired.name), want_object(secrets.clean_json(repaired.arguments))),
    )


def _is_stream(response: Response) -> bool:
    return response.content_type.startswith("text/event-stream") or response.body.startswith(
        (b"data:", b"event:")
    )


def _names_in(body: bytes) -> tuple[str, ...]:
    """The models that a server lists."""
    if len(body) > LONGEST_LIST:
        return ()
    try:
        match parse_json(body):
            case {"data": [*models]}:
                pass
            case _:
                return ()
    except NotJson:
        return ()
    return tuple(
        model["id"]
        for model in models
        if isinstance(model, dict) and isinstance(model.get("id"), str)
    )
