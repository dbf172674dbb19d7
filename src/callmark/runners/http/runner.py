"""The runner for a served model, whatever protocol its endpoint speaks."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from typing import assert_never

import msgspec
from msgspec.structs import replace

from callmark.errors import (
    CallmarkError,
    FingerprintMismatch,
    Incomplete,
    UsageError,
    fault_of_ours,
)
from callmark.records.jsontext import Json, NotJson, digest, parse_json, want_object
from callmark.records.seams import Conversation, Failure, Observed, Reply, Runner
from callmark.records.trace import RepairedCall, TraceEntry
from callmark.runners.http.client import Lost, Response, Secrets, Transport, endpoint_of
from callmark.runners.http.protocol import (
    NeverAnswer,
    NoAnswer,
    ServerAnswer,
    WireProtocol,
    join_pieces,
)
from callmark.runners.http.trouble import (
    Complaint,
    Refused,
    Retry,
    RetryPolicy,
    Situation,
    complaint_of,
    judge_complaint,
    wait_before,
)
from callmark.runners.options import RunnerOptions


class AdaptiveLimit:
    """Between `least` and `most`. Starts quickly (one more for every answer), and after the first
    sign of too much goes up by one per round trip. `patience`: answers that took longer than this
    many seconds are no reason for more requests."""

    def __init__(
        self,
        *,
        start: int,
        least: int,
        most: int,
        patience: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limit = float(start)
        self._least = least
        self._most = most
        self._patience = patience
        self._clock = clock
        self._cut_at: float | None = None
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.highest = 0

    @property
    def now(self) -> int:
        return int(self._limit)

    async def enter(self) -> float:
        """Waits for room; the time at which it was there."""
        if self._under_way < self.now and not self._waiting:
            self._take()
        else:
            await self._queue()
        return self._clock()

    def leave(self) -> None:
        self._under_way -= 1
        self._admit()

    def answered(self, since: float) -> None:
        # A slow answer is the first sign of a full queue at the server, long before it says 429.
        if self._limit < self._most and self._clock() - since <= self._patience:
            # As TCP does it: fast until the first loss, then one more per round trip.
            step = 1.0 if self._cut_at is None else 1.0 / self._limit
            self._limit = min(float(self._most), self._limit + step)
            self._admit()

    def too_much(self, since: float) -> None:
        """Half as many. What was sent before the last cut says nothing about what holds now."""
        if self._cut_at is None or since >= self._cut_at:
            self._limit = max(float(self._least), min(self._limit, self._under_way) / 2)
            self._cut_at = self._clock()

    async def _queue(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.leave()  # the room had been given just before
            raise

    def _admit(self) -> None:
        while self._waiting and self._under_way < self.now:
            place = self._waiting.popleft()
            if not place.done():
                self._take()
                place.set_result(None)

    def _take(self) -> None:
        self._under_way += 1
        self.highest = max(self.highest, self._under_way)


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
        provenance: dict[str, Json] = {
            "base_url": self._base_url,
            "served_models": sorted(self._models),
            "system_fingerprints": sorted(self._fingerprints),
        }
        if self._server_tools:
            provenance["server_tools"] = sorted(self._server_tools)
        return Observed(
            provenance=provenance,
            measured={
                "requests": self.requests,
                "retries": self.retries,
                "highest_concurrency": highest,
                "prompt_tokens": self._prompt_tokens,
                "completion_tokens": self._completion_tokens,
            },
            warnings=tuple(warnings),
        )

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
