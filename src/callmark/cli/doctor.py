"""`callmark doctor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from callmark.cli.options import (
    INPUTS,
    LOCAL,
    RUNNER,
    SERVED,
    CommandParser,
    Group,
    add_groups,
    flags_given,
)
from callmark.reports.layout import Block, Cell, Style, TextLine, line, write

if TYPE_CHECKING:
    from callmark.run.doctor import Check, Examination, Finding, Verdict

GROUPS: dict[str, Group] = {
    "your files": INPUTS,
    "who answers": RUNNER,
    "a served model": SERVED,
    "a local model (hf_local)": LOCAL,
}
MARKS: dict[Verdict, tuple[str, Style]] = {
    "ok": ("ok", "good"),
    "note": ("NOTE", "warn"),
    "wrong": ("WRONG", "bad"),
    "unchecked": ("open", "quiet"),
}
MARK_WIDTH, NAME_WIDTH = 6, 22
COMMON = (
    "--in",
    "--fixtures",
    "--registry",
    "--config",
    "--runner",
    "--model",
    "--base-url",
    "--repeat",
    "--json",
)  # what most people need


def build_parser() -> CommandParser:
    parser = CommandParser(
        "doctor",
        """
        Check this machine: Python, all dependencies, and the files that ship with
        callmark.

        With a callmark.yaml in this folder, or with options, your own dataset,
        fixtures and tools are checked too. So are the hashes that the dataset's
        header pins.

        With --runner, it is opened as `callmark run` would. Is it reachable, does it
        answer, call a tool and use what the tool returned? Can it make two calls at
        once, and does its chat template keep the tools? Are answers equal on repeat
        (5 times, or --repeat K, at temperature 0), and which settings does a server
        ignore?

        Exit code: 0 all is well, 1 something is wrong, 2 a wrong setting, 4
        infrastructure.
        """,
        """
        callmark doctor
        callmark doctor --in dataset.jsonl --fixtures fixtures/
        callmark doctor --runner openai_http --model my-model --base-url http://localhost:8000/v1
        callmark doctor --runner anthropic_messages --model my-model
        """,
        common=COMMON,
    )
    add_groups(parser, GROUPS)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.run.doctor import examine

    if hasattr(options, "runner"):
        return _on_runner(options)
    checks = list(examine(getattr(options, "config", None), flags_given(options, [INPUTS])))
    is_ok = all(check.ok for check in checks)
    if options.json:
        _print_json({"ok": is_ok, "checks": checks})
    else:
        write(_machine_blocks(checks), sys.stdout)
    return 0 if is_ok else 1


def _on_runner(options: argparse.Namespace) -> int:
    from callmark.config import load_config
    from callmark.run.doctor import examine_runner

    config = load_config(getattr(options, "config", None), flags_given(options, [*GROUPS.values()]))
    found = examine_runner(config)
    if options.json:
        _print_json(found)
    else:
        write(_runner_blocks(found), sys.stdout)
    return found.exit_code


def _print_json(value: Examination | dict[str, object]) -> None:
    import msgspec

    print(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _machine_blocks(checks: Iterable[Check]) -> Iterator[Block]:
    for check in checks:
        yield from _block("ok" if check.ok else "wrong", f"{check.subject:<18}", check.detail)


def _runner_blocks(found: Examination) -> Iterator[Block]:
    import msgspec

    for name, finding in found.findings.items():
        yield from _block(finding.verdict, f"{name.replace('_', ' '):<{NAME_WIDTH}}", finding.found)
        yield from _advice(finding)
    for name, value in {**found.provenance, **found.measured}.items():
        shown = value if isinstance(value, str) else msgspec.json.encode(value).decode()
        yield line(f"{name}: {shown}", "quiet", indent=MARK_WIDTH)


def _advice(finding: Finding) -> Iterator[Block]:
    for label, text in (("it means", finding.means), ("next", finding.next)):
        if text:
            yield line(f"{label}: {text}", "quiet", indent=MARK_WIDTH + NAME_WIDTH)


def _block(verdict: Verdict, subject: str, detail: str) -> Iterator[Block]:
    word, style = MARKS[verdict]
    first, *more = detail.splitlines() or [""]
    yield TextLine((Cell(f"{word:<{MARK_WIDTH}}", style), Cell(f"{subject}{first}")))
    yield from (line(text, indent=MARK_WIDTH + len(subject)) for text in more)
