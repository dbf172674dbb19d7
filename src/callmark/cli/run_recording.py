"""`callmark run --record`: the one kind of run that may call live tools."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec

from callmark.cli.options import Group
from callmark.cli.recording import KEPT, LIVE, keeping, live_options, refuse_options
from callmark.config import RunConfig
from callmark.errors import UsageError
from callmark.recording.folder import check_folder
from callmark.recording.opening import open_live
from callmark.recording.record import recording
from callmark.recording.recorder import MODES
from callmark.recording.source import refuse_in_ci
from callmark.reports.neutral import neutralise
from callmark.running.offers import GivenTools

RECORDING: Group = {
    "--record": {
        "nargs": "?",
        "const": "new",
        "choices": MODES[1:],
        "help": "call live tools for what --fixtures does not answer (new), and keep the answers"
        " there; once: only into an empty folder, all: everything anew; never in CI",
    },
    **LIVE,
    **KEPT,
}
_NOT_WITH_RECORD = {
    "registry": "which offers the live tools",
    "allowlist": "which offers the live tools",
    "baseline": "whose tools may have answered otherwise",
    "engine": "which keeps one connection to the live tools",
}


@contextmanager
def live_tools(options: argparse.Namespace, config: RunConfig) -> Iterator[GivenTools | None]:
    """The live tools of a run that records; what they answer becomes fixtures, however the run
    ends. None: no live tool is ever called."""
    if not hasattr(options, "record"):
        refuse_options(options, (*LIVE, *KEPT), "are for --record; add it, or leave them out")
        yield None
        return
    refuse_in_ci()
    if config.fixtures is None or config.dataset in (None, "-"):
        raise UsageError("--record: needs --fixtures, the folder to record into, and --in, a file")
    for name, why in _NOT_WITH_RECORD.items():
        if getattr(config, name) is not None:
            raise UsageError(f"--{name}: not with --record, {why}; leave it out")
    kept = msgspec.structs.replace(
        keeping(options, Path(config.fixtures), Path(str(config.dataset)), None),
        plain_results=not config.redact_pii,
    )
    check_folder(kept.folder)
    with (
        open_live(live_options(options)) as live,
        recording(live, kept, options.record, _say_kept) as tools,
    ):
        yield tools


def _say_kept(written: int, remarks: Sequence[str]) -> None:
    for text in (f"{written} answers of live tools were written", *remarks):
        print(neutralise(text), file=sys.stderr)
