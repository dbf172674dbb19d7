"""What all commands share: a parser that explains itself and fails with one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from textwrap import dedent
from typing import NoReturn

from toolmark.errors import UsageError


class CommandParser(argparse.ArgumentParser):
    """Options are never abbreviated: a new option must not change what an old script means."""

    def __init__(self, command: str, purpose: str, examples: str) -> None:
        super().__init__(
            prog=f"toolmark {command}",
            description=dedent(purpose).strip(),
            epilog="examples:\n" + _indented(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n  see: {self.prog} --help")


def given(options: argparse.Namespace, names: Sequence[str]) -> dict[str, object]:
    """The options that really stood on the command line (their default is SUPPRESS)."""
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in dedent(text).strip().splitlines())
