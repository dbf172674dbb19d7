"""The index of a run: its rows are written while the run goes on, the rest when it ends."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Self

import msgspec

from callmark._version import __version__
from callmark.errors import OutputFailed
from callmark.records.results import Result, Scoring
from callmark.records.samples import Expectation
from callmark.stats.columns import Packed
from callmark.store.files import has_place, make_folder
from callmark.store.journal import OutputLines
from callmark.store.run_index import write_index
from callmark.summary.run_index import IndexNumbers, index_row
from callmark.summary.summary import Summariser


class IndexRows:
    """A row for each trial, in the order in which they end: on disk, for memory stays flat. Nobody
    misses them: where they cannot be written there is no index."""

    def __init__(self, out: Path) -> None:
        self._out = out
        self._scorings: dict[Scoring, None] = {}
        self._latest: Scoring | None = None
        self._has_failed = not has_place(out)
        with suppress(OSError):
            make_folder(out.parent)
        try:
            self._rows = TemporaryFile(dir=out.parent)  # noqa: SIM115 - closed by __exit__
        except OSError:
            self._rows = TemporaryFile()  # noqa: SIM115

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk: what was not written is lost, and nobody misses it
            self._rows.close()

    def add(self, result: Result, expectation: Expectation | None) -> None:
        if self._has_failed:
            return
        if result.scoring is not self._latest:
            self._latest = result.scoring
            self._scorings[result.scoring] = None
        try:
            self._rows.write(index_row(result, expectation))
        except (OSError, ValueError, OverflowError):
            self._has_failed = True

    def write(self, written: OutputLines, summariser: Summariser) -> None:
        """Beside the results; of a run that lost trials there is none."""
        first = summariser.inputs.first
        if self._has_failed or first is None or summariser.trials.lost:
            return
        state, order = summariser.trials.state(), summariser.trials.arrival
        fingerprints, decoding = first
        numbers = IndexNumbers(
            trials=state,
            order=None if order is None else Packed.of(order),
            line_sizes=Packed.of(written.line_sizes),
            fingerprints=fingerprints,
            decoding=decoding,
            conflicts=tuple(sorted(summariser.inputs.conflicts)),
            scorings=tuple(self._scorings),
            chance=summariser.pairs,
        )
        with suppress(OutputFailed, OSError):  # readers can do without it
            parts = msgspec.msgpack.encode(numbers), self._rows
            write_index(self._out, written.sha256, parts, version=__version__)
