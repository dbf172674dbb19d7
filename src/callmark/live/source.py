"""Live tools in the place of fixtures, for a run that records what a model asks for."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from callmark.errors import Incomplete, UsageError
from callmark.live.mcp import McpTarget, McpTools
from callmark.live.python import PythonTools
from callmark.live.recorder import (
    Called,
    LiveTools,
    LostCall,
    NoSuchTool,
    NotCalled,
    Recorder,
    RecordingSession,
    Replayed,
)
from callmark.records.jsontext import Json, digest
from callmark.records.seams import Hit, Miss, Observed
from callmark.run.prepare import resolve_text

SERVED_LIVE = "live"


def refuse_in_ci() -> None:
    """A build must not depend on tools that answer as they like."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise UsageError(
            "--record: calls live tools, which CI must not depend on (CI is set in the"
            " environment); record on your own machine and commit the fixtures"
        )


class LiveSource:
    """The tools of a recording run."""

    def __init__(self, recorder: Recorder, live: LiveTools) -> None:
        self._recorder = recorder
        self._live = live

    def session(self, sample_id: str | None = None) -> LiveSession:
        return LiveSession(self._recorder.session(sample_id))

    def observed(self) -> Observed:
        """What a report must say: these tools were alive."""
        calls, origin = self._recorder.calls, self._live.origin
        return Observed(
            provenance={"live_tools": {"origin": origin, "calls": calls}},
            warnings=(
                f"live tools were called ({origin}, {calls} calls): this run records fixtures;"
                " judge a model by a run on them",
            ),
        )


class LiveSession:
    """One trial. A tool that cannot be reached ends the run, which --resume goes on with."""

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        return False  # only asking a live tool could tell

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        if not isinstance(arguments, dict):
            return Miss(name, arguments, None)
        match self._session.ask(name, arguments):
            case Replayed(hit=Hit() as hit):
                return hit
            case Replayed(result=result) | Called(result=result):
                line = {"name": name, "key": arguments, "result": result}
                return Hit(result, SERVED_LIVE, digest(line))
            case NotCalled(key=key) | NoSuchTool(key=key):
                return Miss(name, arguments, key)
            case LostCall(reason=reason):
                raise Incomplete(
                    f"{reason}; what was answered is written: fix that and continue with --resume"
                )


LONG_WORD = 8  # of a header's value: no name of a scheme, so perhaps a secret


class LiveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`env` are names of variables that an MCP command is given; `headers` are `Name: value` for
    a URL, with `${NAME}` for what is secret."""

    mcp: str | None = None
    python: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    timeout: float = 30.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not reach any file."""
        found: list[str] = []
        for text in self.resolve_headers(found):
            found += [word for word in _header(text)[1].split() if len(word) >= LONG_WORD]
        return (*_variables(self.env).values(), *found)

    def resolve_headers(self, secrets: list[str]) -> list[str]:
        return [resolve_text(header, "header", secrets) for header in self.headers]


@contextmanager
def open_live(options: LiveOptions) -> Iterator[LiveTools]:
    if (options.mcp is None) == (not options.python):
        raise UsageError("which live tools? Give either --mcp COMMAND|URL or --python MODULE:NAME")
    if options.timeout <= 0:
        raise UsageError(f"--timeout {options.timeout:g}: must be above 0 seconds")
    if options.mcp is None:
        yield PythonTools(options.python, timeout=options.timeout)
        return
    target = McpTarget(
        address=options.mcp,
        env=_variables(options.env),
        headers=dict(map(_header, options.resolve_headers([]))),
        timeout=options.timeout,
    )
    with McpTools(target) as tools:
        yield tools


def _variables(names: Sequence[str]) -> dict[str, str]:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise UsageError(f"--env {missing[0]}: no such environment variable is set")
    return {name: os.environ[name] for name in names}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"--header {name}: write 'Name: value', a secret as ${{VARIABLE}}")
    return name.strip(), value.strip()
