"""Where a run goes that nobody gave a place: `runs/NAME-N`, with `runs/latest` pointing there."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from callmark.errors import BadInput, CannotWrite, UsageError
from callmark.records.jsontext import NotJson
from callmark.records.results import Result
from callmark.store.files import (
    filled_lines,
    make_folder,
    parse_line,
    read_results,
)
from callmark.store.journal import ENDING, finished_trials, journal_path

RUNS = Path("runs")
RESULTS = "results.jsonl"
LATEST = RUNS / "latest"
LONGEST_NAME = 100
_ODD = re.compile(r"[^\w.+-]+")


@contextmanager
def new_run_folder(name: str) -> Iterator[Path]:
    """A folder of its own, which is the latest from now on: whoever is stopped finds it there. One
    that stays empty is taken back, since nothing was run."""
    folder = _claim(_plain(name))
    before = _target()
    _point(Path(folder.name))
    try:
        yield folder
    finally:
        with suppress(OSError):  # it is not empty
            folder.rmdir()
            if _target() == Path(folder.name):
                _restore(before)


def latest_run_folder() -> Path | None:
    """Where the latest run went; None: there is none at all."""
    target = _target()
    if target is not None and (RUNS / target).is_dir():
        return Path(os.path.normpath(RUNS / target))
    if not RUNS.is_dir() or not any(RUNS.iterdir()):
        return None
    raise UsageError(f"--resume: {LATEST} does not point to a run: name its results with --out")


def as_it_is_now(path: str) -> str:
    """A path through `runs/latest`, as it will still be right when that leads elsewhere."""
    target, parts = _target(), Path(path).parts
    if target is None or parts[:2] != LATEST.parts:
        return path
    return os.path.normpath(RUNS.joinpath(target, *parts[2:]))


def _claim(name: str) -> Path:
    try:
        make_folder(RUNS)
        number = _highest_number(name)
        while True:  # somebody else may start at the same moment: whoever makes a folder has it
            number += 1
            with suppress(FileExistsError):
                folder = RUNS / f"{name}-{number}"
                folder.mkdir(parents=True)
                return folder
    except OSError as error:
        raise CannotWrite(
            f"{RUNS}: no folder for this run could be made: {error.strerror}. Say with --out where"
            " its results shall go."
        ) from None


def _highest_number(name: str) -> int:
    try:
        taken = [path.name.rpartition("-") for path in RUNS.iterdir()]
    except FileNotFoundError:  # a run that was refused has just taken it back
        return 0
    numbers = [int(end) for start, _, end in taken if start == name and end.isdecimal()]
    return max(numbers, default=0)


def _plain(name: str) -> str:
    """As a name that can stand in any shell."""
    return _ODD.sub("-", name).strip(".-")[:LONGEST_NAME] or "run"


def _target() -> Path | None:
    """From `runs` on."""
    try:
        return LATEST.readlink()
    except OSError:
        return None


def _point(target: Path) -> None:
    """Replaced in one step. Where links are not possible, or somebody has put something else
    there, nothing points to the run: its place is printed anyway."""
    # Made beside it and renamed: there is no moment at which `runs/latest` leads nowhere.
    link = RUNS / f".latest-{secrets.token_hex(6)}"
    with suppress(OSError):
        link.symlink_to(target)
        try:
            if LATEST.is_symlink() or not LATEST.exists():
                link.replace(LATEST)
        finally:
            link.unlink(missing_ok=True)


def _restore(before: Path | None) -> None:
    if before is None:
        LATEST.unlink()
        with suppress(OSError):
            RUNS.rmdir()
    else:
        _point(before)


REPORT = "report.json"


def file_of(run: Path) -> Path:
    """The file of a run: a folder stands for its results, or for its report."""
    if not run.is_dir():
        return run
    for name in (RESULTS, REPORT):
        if (run / name).is_file():
            return run / name
    raise unfinished(run) or BadInput(f"{run}: holds neither {RESULTS} nor {REPORT}: name a file")


def results_of(run: Path) -> Path:
    """The results of a run; a report will not do."""
    path = file_of(run)
    if is_report(path):
        raise unfinished(path.parent) or BadInput(
            f"{path}: is a report; results are needed, one line for each trial"
        )
    return path


UNFINISHED = (
    "the run is not finished: the same command with --resume goes on (and with --max-errors N it"
    " ends although N trials are lost)"
)


def unfinished(folder: Path) -> BadInput | None:
    """What to say of a run that has a journal and no results; None: it is none."""
    journal = journal_path(folder / RESULTS)
    if not journal.is_file() or (folder / RESULTS).is_file():
        return None
    return BadInput(f"{journal}: {UNFINISHED}")


def trials_of(run: Path) -> Path:
    """The file with the trials of a run: its results or, while it is not finished, its journal."""
    results = run / RESULTS if run.is_dir() else run
    journal = journal_path(results)
    return journal if journal.is_file() and not results.is_file() else results_of(run)


def read_trials(path: Path) -> Iterator[Result]:
    """Those of results, or of a journal."""
    return finished_trials(path) if is_journal(path) else read_results(path)


def is_journal(path: Path) -> bool:
    return path.name.endswith(ENDING)


def is_report(path: Path) -> bool:
    """By what is in it: a report is one JSON value over many lines, or says its version."""
    for line in filled_lines(path):
        try:
            value = parse_line(line.json)
        except NotJson:
            # Our reports are indented, so their first line alone is no JSON.
            return line.json.strip() in (b"{", b"[")
        return isinstance(value, dict) and "report_version" in value
    raise BadInput(f"{path}: has no results to compare")
