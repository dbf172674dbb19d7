"""What `fixtures record` and `run --record` share: the live tools, and how answers are kept."""

from __future__ import annotations

import argparse
import os
import re
from pathlib import Path

from callmark.cli.options import Group
from callmark.errors import UsageError
from callmark.live.pins import read_pin
from callmark.live.record import Keeping
from callmark.live.source import LiveOptions

LIVE: Group = {
    "--mcp": {"metavar": "CMD|URL", "help": "the live MCP server: a command, or a URL"},
    "--python": {
        "action": "append",
        "metavar": "MODULE:NAME",
        "help": "a live tool that is a Python function; may be repeated",
    },
    "--env": {
        "action": "append",
        "metavar": "NAME",
        "help": "a variable that the MCP command needs; its value is kept out of every file",
    },
    "--header": {
        "action": "append",
        "metavar": "TEXT",
        "help": "'Name: ${VARIABLE}' for the MCP URL; may be repeated",
    },
    "--timeout": {
        "type": float,
        "metavar": "S",
        "help": "seconds for one call of a live tool, and for an MCP server to come up (30)",
    },
}
KEPT: Group = {
    "--pin": {
        "action": "append",
        "metavar": "TOOL:PATH=VALUE",
        "help": "a field that differs from call to call gets this value; may be repeated",
    },
    "--pii": {
        "choices": ("surrogate", "keep"),
        "help": "replace personal data by data of the same shape (surrogate), or not",
    },
    "--pii-key": {"metavar": "NAME", "help": "variable with a key that only you know"},
    "--error-text": {
        "metavar": "REGEX",
        "help": "MCP answers whose text it fits are errors, whatever isError says",
    },
    "--out-dataset": {
        "type": Path,
        "metavar": "FILE",
        "help": "a copy of --in with the same surrogates",
    },
}


def live_options(options: argparse.Namespace) -> LiveOptions:
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
        raise UsageError(f"--pii-key {name}: the environment has no such variable")
    return os.environ[name]


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"--error-text: no regular expression: {error}") from None
