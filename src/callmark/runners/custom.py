"""A runner of somebody's own, whatever shape it has, as the loop opens one."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Any, cast

import msgspec

from callmark.errors import PluginError, UsageError
from callmark.records.jsontext import Json
from callmark.records.seams import Conversation, Failure, Observed, Reply, Runner

Factory = Callable[[Any], AbstractContextManager[Runner]]


def runner_factory(given: object, name: str) -> Factory:
    """Anything that can answer, as the loop opens it: a `Runner` object, a class of them, or a
    function that answers one conversation."""

    @contextmanager
    def opened(options: object) -> Iterator[Runner]:
        made = given
        if isinstance(given, type):
            made = given(options) if _takes_options(given) else given()
        yield GivenRunner(made, name)

    return opened


def _takes_options(made: type) -> bool:
    try:
        parameters = inspect.signature(made).parameters.values()
    except (TypeError, ValueError):
        return False
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return any(one.kind in positional and one.default is one.empty for one in parameters)


class GivenRunner(Runner):
    """A user's runner with what it leaves out. Its `answer` may take the batch, awaited or not; a
    function takes one conversation. A text alone is a reply."""

    def __init__(self, given: object, name: str) -> None:
        answer = getattr(given, "answer", None)
        self._answers_batches = answer is not None
        self._answer = answer if answer is not None else given
        if not callable(self._answer):
            raise UsageError(f"--runner {name}: {given!r} cannot answer: it has no `answer`")
        self._given = given
        self._is_async = inspect.iscoroutinefunction(self._answer)
        self.name = name
        self.suspends = bool(getattr(given, "suspends", self._is_async))
        self.max_batch = int(getattr(given, "max_batch", 8 if self._is_async else 1))

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        if not self._answers_batches:
            return [await self._timed(one) for one in batch]
        started = time.perf_counter()
        found = await self._said(batch)
        replies = [
            _with_time(_reply_of(one, self.name), time.perf_counter() - started)
            for one in cast("Iterable[object]", found)
        ]
        if len(replies) != len(batch):
            what = f"gave {len(replies)} replies to {len(batch)} conversations"
            raise PluginError(f"the runner {self.name} {what}")
        return replies

    async def _timed(self, asked: Conversation) -> Reply | Failure:
        started = time.perf_counter()
        reply = _reply_of(await self._said(asked), self.name)
        return _with_time(reply, time.perf_counter() - started)

    async def _said(self, asked: object) -> object:
        try:
            found = cast("Callable[[object], object]", self._answer)(asked)
            return await found if inspect.isawaitable(found) else found
        except SystemExit as error:  # who ends the process would end a run as if it had passed
            raise PluginError(f"the runner {self.name} ended the process: {error}") from error

    async def ready(self) -> None:
        await self._ask("ready", None)

    async def close(self) -> None:
        await self._ask("close", None)

    async def _ask(self, method: str, default: object) -> object:
        found = self._call(method, default)
        return await found if inspect.isawaitable(found) else found

    def fingerprint_parts(self) -> dict[str, Json]:
        return cast("dict[str, Json]", self._call("fingerprint_parts", {}))

    def model_fingerprint(self) -> str | None:
        return cast("str | None", self._call("model_fingerprint", None))

    def tokenizer_fingerprint(self) -> dict[str, Json] | None:
        return cast("dict[str, Json] | None", self._call("tokenizer_fingerprint", None))

    def observed(self) -> Observed:
        return cast("Observed", self._call("observed", Observed()))

    def without_secrets(self, text: str) -> str:
        return cast("str", self._call("without_secrets", text, text))

    def _call(self, method: str, default: object, *arguments: object) -> object:
        found = getattr(self._given, method, None)
        return default if found is None else found(*arguments)


def _with_time(reply: Reply | Failure, seconds: float) -> Reply | Failure:
    if isinstance(reply, Failure) or reply.seconds is not None:
        return reply
    return msgspec.structs.replace(reply, seconds=seconds)


def _reply_of(said: object, name: str) -> Reply | Failure:
    if isinstance(said, str):
        return Reply(text=said)
    if not isinstance(said, Reply | Failure):
        what = f"answers with a text, a Reply or a Failure, not {type(said).__name__}"
        raise PluginError(f"the runner {name} {what}")
    return said
