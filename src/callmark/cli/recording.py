"""What `fixtures record` and `run --record` share: the live tools, and how answers are kept."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import Group
from callmark.errors import UsageError

if TYPE_CHECKING:
    from callmark.live.record import Keeping
    from callmark.live.recorder import Mode
    from callmark.live.source import LiveOptions

# Those of `live.recorder`, which would bring the whole recorder along.
MODES: tuple[Mode, ...] = ("none", "once", "new", "all")
LIVE: Group = {
    "--mcp": {"metavar": "CMD|URL", "help": "the live MCP server: a command, or a URL"},
    "--python": {
        "action": "append",
        "metavar": "MODULE:NAME",
        "help": "a Python function as a live tool; may be repeated",
    },
    "--env": {
        "action": "append",
        "metavar": "NAME",
        "help": "environment variable for the MCP command; its value is kept out of every file",
    },
    "--header": {
        "action": "append",
        "metavar": "TEXT",
        "help": "header for the MCP URL, as 'Name: ${VARIABLE}'; may be repeated",
    },
    "--timeout": {
        "type": float,
        "metavar": "S",
        "help": "seconds allowed for one call, and for an MCP server to start (default: 30)",
    },
}
KEPT: Group = {
    "--pin": {
        "action": "append",
        "metavar": "TOOL:PATH=VALUE",
        "help": "give a field that differs from call to call this value; may be repeated",
    },
    "--pii": {
        "choices": ("surrogate", "keep"),
        "help": "replace personal data with made-up data of the same shape (default), or keep it",
    },
    "--pii-key": {
        "metavar": "NAME",
        "help": "environment variable that holds a key only you know, for the surrogates",
    },
    "--error-text": {
        "metavar": "REGEX",
        "help": "treat MCP answers whose text matches as errors, whatever isError says",
    },
    "--out-dataset": {
        "type": Path,
        "metavar": "FILE",
        "help": "write a copy of --in with the same surrogates",
    },
}


def live_options(options: argparse.Namespace) -> LiveOptions:
    from callmark.live.source import LiveOptions

    return LiveOptions(
        mcp=getattr(options, "mcp", None),
        python=tuple(getattr(options, "python", ())),
        env=tuple(getattr(options, "env", ())),
        headers=tuple(getattr(options, "header", ())),
        timeout=getattr(options, "timeout", LiveOptions().timeout),
    )


def keeping(
    options: argparse.Namespace, folder: Path, dataset: Path | None, registry: Path | None
) -> Keeping:
    from callmark.live.record import Keeping, read_pin

    return Keeping(
        folder=folder,
        registry=registry,
        pins=tuple(read_pin(text) for text in getattr(options, "pin", ())),
        pii=getattr(options, "pii", "surrogate"),
        pii_key=_key(getattr(options, "pii_key", None)),
        secrets=live_options(options).secrets,
        error_text=_pattern(getattr(options, "error_text", None)),
        dataset=dataset,
        out_dataset=getattr(options, "out_dataset", None),
    )


def _key(name: str | None) -> str:
    if name is None:
        return ""
    if not os.environ.get(name):
        raise UsageError(f"--pii-key {name}: no such environment variable is set")
    return os.environ[name]


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"--error-text: not a regular expression: {error}") from None
