"""The forms that a report can be written in, by the ending of the file's name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.errors import PluginError, UsageError
from callmark.records.seams import PluginRow
from callmark.reports.finished_run import FinishedRun
from callmark.store.files import atomic_writer, check_writable

Writer = Callable[[FinishedRun, BinaryIO], None]


def write_json(finished: FinishedRun, stream: BinaryIO) -> None:
    stream.write(msgspec.json.format(msgspec.json.encode(finished.report), indent=2) + b"\n")


# Where the writer of each form is: a run loads those that somebody asked for.
FORMATS: dict[str, str] = {
    ".html": "callmark.reports.html.page:write_html",
    ".xml": "callmark.reports.junit:write_junit",
    ".md": "callmark.reports.markdown:write_markdown",
    ".csv": "callmark.reports.tables:write_csv",
    ".parquet": "callmark.reports.tables:write_parquet",
    ".json": "callmark.reports.formats:write_json",
}
_OF_TRIALS = frozenset({".csv", ".parquet"})


class WantedForm(msgspec.Struct, frozen=True):
    """A file that somebody asked for, and what writes it. `of_trials`: it holds nothing but
    trials: without them there is nothing to write."""

    path: Path
    write: Writer
    of_trials: bool = False


def wanted_form(path: Path, form: str | None = None, added: Sequence[PluginRow] = ()) -> WantedForm:
    """`form`: one of FORMATS, by default the ending of the name; an unknown one is refused before
    anything is run. `added`: the reports of plug-ins, which `NAME:FILE` chooses too."""
    for row in added:
        own = str(row.given["ending"]).lower()
        if own in FORMATS:
            raise UsageError(f"{row.home}: report {row.name}: {own} is a form of callmark's own")
        name, colon, file = str(path).partition(":")
        if colon and file and name == row.name:
            return WantedForm(Path(file), _write_with(row))
        if path.name.lower().endswith(own):
            return WantedForm(path, _write_with(row))
    ending = form or path.suffix.lower()
    if ending not in FORMATS:
        known = ", ".join((*FORMATS, *(str(row.given["ending"]) for row in added)))
        raise UsageError(f"-o: {path}: cannot tell the format from the name; it can end in {known}")
    module, _, name = FORMATS[ending].partition(":")
    return WantedForm(path, getattr(import_module(module), name), ending in _OF_TRIALS)


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
