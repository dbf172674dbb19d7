"""The runner for a served model: any endpoint that speaks OpenAI's chat completions."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import assert_never

from msgspec.structs import replace

from callmark.core.jsontext import Json, NotJson, digest, parse_json
from callmark.core.protocols import Conversation, Failure, Observed, Reply, Runner
from callmark.core.trace import RepairedCall, TraceEntry
from callmark.errors import CallmarkError, Incomplete, UsageError, fault_of_ours
from callmark.runners.http_answer import NoAnswer, completion_of, error_in, reply_of
from callmark.runners.http_endpoint import endpoint_of
from callmark.runners.http_limit import AdaptiveLimit
from callmark.runners.http_request import RequestWriter
from callmark.runners.http_retry import RetryPolicy, wait_before
from callmark.runners.http_secrets import Secrets
from callmark.runners.http_seen import Seen
from callmark.runners.http_transport import Lost, Response, Transport
from callmark.runners.http_trouble import (
    Complaint,
    Refused,
    Retry,
    Situation,
    complaint_in,
    complaint_of,
    judged,
)
from callmark.runners.options import RunnerOptions

NAME_CODEC_VERSION = 1
FIRST_CONNECTIONS = 16
MOST_CONNECTIONS = 256
# An answer that took longer than this share of the time limit is no reason for more requests.
PATIENCE = 0.25
READY_TRIES = 3
LONGEST_LIST = 1 << 20  # of models; a longer one is not read
POLICY = RetryPolicy()


@contextmanager
def open_openai(options: RunnerOptions) -> Iterator[OpenAIRunner]:
    yield OpenAIRunner(options)


class OpenAIRunner(Runner):
    """One conversation, one request; tried again where that may help. What the user has to mend
    (a key, a parameter, the model's name) is raised and ends the run."""

    name = "openai_http"
    suspends = True

    def __init__(self, options: RunnerOptions, policy: RetryPolicy | None = None) -> None:
        if not options.model:
            raise UsageError("--model: which one? openai_http needs the name that the server knows")
        served = options.served
        self._options = options
        self._model = options.model
        self._policy = policy or POLICY
        self._endpoint = endpoint_of(served)
        self._requests = RequestWriter(options)
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
        body = self._requests.body(conversation)
        retries = 0
        while True:
            outcome = await self._request(body)
            match outcome:
                case Reply():
                    return outcome
                case Refused(reason=reason):
                    return Failure(reason)
                case Retry(reason=reason, asked=asked):
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

    async def _request(self, body: bytes) -> Reply | Retry | Refused:
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
        if isinstance(outcome, Reply):
            self._limit.answered(since)
        elif isinstance(outcome, Retry) and outcome.overloaded:
            self._limit.too_much(since)
        self.max_batch = self._limit.now
        return outcome

    def _outcome_of(self, received: Response | Lost) -> Reply | Retry | Refused:
        if isinstance(received, Lost):
            if received.for_good:
                return Refused(received.reason)
            return Retry(received.reason, overloaded=received.timed_out)
        if not 200 <= received.status < 300:
            return self._judged(complaint_of(received.status, received.body), received.asked)
        if _is_stream(received):
            return Refused("the server streams its answer, which was not asked for")
        try:
            completion = completion_of(received.body)
            error = error_in(completion)
            if error is not None:
                return self._judged(complaint_in(_status_in(error), error))
            reply = reply_of(completion, self._requests.codec)
        except NoAnswer as trouble:
            return Retry(self._secrets.clean(str(trouble)))
        self._seen.note(completion)
        return _concealed(reply, self._secrets) if self._secrets else reply

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
        return judged(complaint, self._situation(), asked)

    def _situation(self) -> Situation:
        return Situation(
            where=self._endpoint.base,
            model=self._model,
            fields=self._requests.fields,
            listed=self._listed,
            has_key=self._endpoint.has_key,
            has_answered=self._seen.answers > 0,
        )


def _concealed(reply: Reply, secrets: Secrets) -> Reply:
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
        and RepairedCall(clean(repaired.name), secrets.clean_json(repaired.arguments)),
    )


def _is_stream(response: Response) -> bool:
    return response.content_type.startswith("text/event-stream") or response.body.startswith(
        (b"data:", b"event:")
    )


def _status_in(error: Json) -> int:
    """The status that an error in a good response gives itself; without one it may pass."""
    code = error.get("code") if isinstance(error, dict) else None
    if isinstance(code, str) and len(code) == 3 and code.isdecimal():
        code = int(code)
    return code if isinstance(code, int) and 400 <= code < 600 else 500


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
