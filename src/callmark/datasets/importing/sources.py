"""What somebody names as the source of an import: files, folders, globs, standard input."""

from __future__ import annotations

import glob
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path

import msgspec

from callmark.datasets.importing.records import FRAME, SIMULATIONS
from callmark.errors import BadInput

STANDARD_INPUT = "-"
_GLOB_MARKS = frozenset("*?[")


class LogFile(msgspec.Struct, frozen=True):
    """One file to read. `name`: what people call it; `found`: in a folder or by a pattern, so that
    it may be something else than a log."""

    path: Path
    name: str
    found: bool = False


def list_files(sources: Sequence[str | Path], stack: ExitStack) -> list[LogFile]:
    """Every file that the sources stand for, each once, in the order of the sources; within one of
    them sorted by name. Standard input is spooled to a file that goes with the stack."""
    files: dict[Path, LogFile] = {}
    for source in sources:
        for file in _files_of(str(source), stack):
            files.setdefault(file.path.absolute(), file)
    if not files:
        raise BadInput(f"{', '.join(map(str, sources))}: no file in it")
    return list(files.values())


def _files_of(source: str, stack: ExitStack) -> Iterator[LogFile]:
    path = Path(source)
    if source == STANDARD_INPUT:
        yield _spool(stack)
    elif path.is_dir() and not _is_one_log(path):
        yield from _walk(path)
    elif not path.exists() and is_pattern(source):
        # A pattern may begin anywhere, which `Path.glob` does not take.
        matches = sorted(glob.glob(source, recursive=True))  # noqa: PTH207
        if not matches:
            raise BadInput(f"{source}: matches no file")
        for match in map(Path, matches):
            if match.is_dir() and not _is_one_log(match):
                # `logs/**` matches the folders and, by themselves, the files in them.
                yield from () if "**" in source else _walk(match)
            else:
                yield LogFile(match, str(match), found=True)
    else:
        yield LogFile(path, source)


def is_pattern(source: str) -> bool:
    return not _GLOB_MARKS.isdisjoint(source)


def _walk(folder: Path) -> Iterator[LogFile]:
    for place, folders, names in os.walk(folder):
        here = Path(place)
        if here != folder and _is_one_log(here):
            folders.clear()
            yield LogFile(here, str(here), found=True)
            continue
        folders.sort()
        for name in sorted(names):
            yield LogFile(here / name, str(here / name), found=True)


def _is_one_log(folder: Path) -> bool:
    """tau2 writes one run as a folder."""
    return (folder / FRAME).is_file() and (folder / SIMULATIONS).is_dir()


def _spool(stack: ExitStack) -> LogFile:
    """What it is can only be told by looking at it twice."""
    folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
    path = folder / "standard-input"
    with path.open("wb") as target:
        shutil.copyfileobj(sys.stdin.buffer, target)
    return LogFile(path, STANDARD_INPUT)
