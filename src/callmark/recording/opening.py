"""From what a command line says to live tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import msgspec

from callmark.errors import UsageError
from callmark.recording.live import LiveTools
from callmark.recording.mcp_live import McpTarget, McpTools
from callmark.recording.python_live import PythonTools
from callmark.running.wiring import resolved

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
        for text in resolved(list(self.headers), "header", found):
            found += [word for word in _header(text)[1].split() if len(word) >= LONG_WORD]
        return (*_variables(self.env).values(), *found)


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
        headers=dict(map(_header, resolved(list(options.headers), "header", []))),
        timeout=options.timeout,
    )
    with McpTools(target) as tools:
        yield tools


def _variables(names: Sequence[str]) -> dict[str, str]:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise UsageError(f"--env {missing[0]}: the environment has no such variable")
    return {name: os.environ[name] for name in names}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"--header {name}: write 'Name: value', a secret as ${{VARIABLE}}")
    return name.strip(), value.strip()
