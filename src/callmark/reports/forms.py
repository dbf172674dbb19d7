"""The forms that a report can be written in, by the ending of the file's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.errors import PluginError, UsageError
from callmark.records.seams import PluginRow
from callmark.reports.finished_run import FinishedRun
from callmark.reports.html.page import write_html
from callmark.reports.junit import write_junit
from callmark.reports.markdown import write_markdown
from callmark.reports.tables import write_csv, write_parquet
from callmark.store.files import atomic_writer, check_writable

Writer = Callable[[FinishedRun, BinaryIO], None]


def write_json(finished: FinishedRun, stream: BinaryIO) -> None:
    stream.write(msgspec.json.format(msgspec.json.encode(finished.report), indent=2) + b"\n")


FORMATS: dict[str, Writer] = {
    ".html": write_html,
    ".xml": write_junit,
    ".md": write_markdown,
    ".csv": write_csv,
    ".parquet": write_parquet,
    ".json": write_json,
}


_OF_TRIALS = frozenset({write_csv, write_parquet})


class WantedForm(msgspec.Struct, frozen=True):
    """A file that somebody asked for, and what writes it."""

    path: Path
    write: Writer

    @property
    def of_trials(self) -> bool:
        """It holds nothing but trials: without them there is nothing to write."""
        return self.write in _OF_TRIALS


def wanted_form(path: Path, added: Sequence[PluginRow] = ()) -> WantedForm:
    """By the ending of the name; refused before anything is run. `added`: the reports of plug-ins,
    which `NAME:FILE` chooses too."""
    for row in added:
        ending = str(row.given["ending"]).lower()
        if ending in FORMATS:
            raise UsageError(f"{row.home}: report {row.name}: {ending} is a form of callmark's own")
        name, colon, file = str(path).partition(":")
        if colon and file and name == row.name:
            return WantedForm(Path(file), _write_with(row))
        if path.name.lower().endswith(ending):
            return WantedForm(path, _write_with(row))
    writer = FORMATS.get(path.suffix.lower())
    if writer is None:
        known = ", ".join((*FORMATS, *(str(row.given["ending"]) for row in added)))
        raise UsageError(f"-o: {path}: cannot tell the form from the name; it may end in {known}")
    return WantedForm(path, writer)


def _write_with(row: PluginRow) -> Writer:
    def write(finished: FinishedRun, stream: BinaryIO) -> None:
        written = row.target(finished)
        if isinstance(written, str):
            written = written.encode("utf-8", "surrogatepass")
        if not isinstance(written, bytes):
            what = f"must return text or bytes, not {type(written).__name__}"
            raise PluginError(f"{row.home}: the report {row.name} {what}")
        stream.write(written)

    return write


def check_forms(forms: Sequence[WantedForm]) -> None:
    for form in forms:
        check_writable(form.path)


def write_forms(finished: FinishedRun, forms: Sequence[WantedForm]) -> None:
    for form in forms:
        with atomic_writer(form.path) as stream:
            form.write(finished, stream)
