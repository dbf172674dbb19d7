"""What all commands share: a parser that explains itself and fails with one sentence."""

from __future__ import annotations

import argparse
import sys
from textwrap import dedent
from typing import TYPE_CHECKING, NoReturn

from callmark.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite


class CommandParser(argparse.ArgumentParser):
    """Options are never abbreviated: a new option must not change what an old script means."""

    def __init__(self, command: str, purpose: str, examples: str) -> None:
        super().__init__(
            prog=f"callmark {command}",
            description=dedent(purpose).strip(),
            epilog="examples:\n" + _indented(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        (file or sys.stdout).write(self.format_help())  # argparse itself hides a full disk

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n  see: {self.prog} --help")


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in dedent(text).strip().splitlines())
