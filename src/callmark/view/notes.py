"""What a person notes about a run: a small file beside its results, `NAME.notes.json`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from callmark.errors import UsageError
from callmark.reports.layout import one_line
from callmark.store.files import atomic_writer

SUFFIX = ".notes.json"
MOST_BYTES = 64_000
LONGEST_NOTE, LONGEST_TAG, MOST_TAGS = 2000, 40, 20


class RunNotes(msgspec.Struct, frozen=True):
    note: str = ""
    tags: tuple[str, ...] = ()


NO_NOTES = RunNotes()


def notes_path(results: Path) -> Path:
    return results.with_suffix(SUFFIX)


def read_notes(results: Path) -> RunNotes:
    """None where there is no such file, or something else stands in it: a note is never worth an
    error. A link is not followed: it could lead anywhere."""
    path = notes_path(results)
    try:
        if path.is_symlink() or path.stat().st_size > MOST_BYTES:
            return NO_NOTES
        return _tidy(msgspec.json.decode(path.read_bytes(), type=RunNotes))
    except (OSError, msgspec.MsgspecError, UnicodeError):
        return NO_NOTES


def write_notes(results: Path, notes: RunNotes) -> RunNotes:
    """As it was written; a run of which nothing is noted has no such file."""
    path, tidy = notes_path(results), _tidy(notes)
    if path.is_symlink():
        raise UsageError(f"{path.name}: is a link, and was left as it is")
    if tidy == NO_NOTES:
        path.unlink(missing_ok=True)
        return tidy
    with atomic_writer(path) as stream:
        stream.write(msgspec.json.format(msgspec.json.encode(tidy), indent=2) + b"\n")
    return tidy


def _tidy(notes: RunNotes) -> RunNotes:
    tags = dict.fromkeys(one_line(tag.strip(), LONGEST_TAG) for tag in notes.tags)
    return RunNotes(
        one_line(notes.note.strip(), LONGEST_NOTE), tuple(tag for tag in tags if tag)[:MOST_TAGS]
    )
