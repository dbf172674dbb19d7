"""What a person named: a results file, a report, or the folder of a run."""

from __future__ import annotations

from pathlib import Path

from callmark.core.jsontext import NotJson
from callmark.errors import BadInput
from callmark.running.selection import RESULTS
from callmark.store.journal import journal_path
from callmark.store.jsonl import is_blank, lines_of, open_input, parse_line

REPORT = "report.json"


def file_of(run: Path) -> Path:
    """The file of a run: a folder stands for its results, or for its report."""
    if not run.is_dir():
        return run
    for name in (RESULTS, REPORT):
        if (run / name).is_file():
            return run / name
    raise _unfinished(run) or BadInput(f"{run}: holds neither {RESULTS} nor {REPORT}: name a file")


def results_of(run: Path) -> Path:
    """The results of a run; a report will not do."""
    path = file_of(run)
    if is_report(path):
        raise _unfinished(path.parent) or BadInput(
            f"{path}: is a report; results are needed, one line for each trial"
        )
    return path


def _unfinished(folder: Path) -> BadInput | None:
    journal = journal_path(folder / RESULTS)
    if not journal.is_file() or (folder / RESULTS).is_file():
        return None
    return BadInput(f"{journal}: the run is not finished: `callmark run --resume` goes on")


def is_report(path: Path) -> bool:
    """By what is in it: a report is one JSON value over many lines, or says its version."""
    with open_input(path) as stream:
        for line in lines_of(stream, str(path)):
            if is_blank(line.json):
                continue
            try:
                value = parse_line(line.json)
            except NotJson:
                return line.json.strip() in (b"{", b"[")
            return isinstance(value, dict) and "report_version" in value
    raise BadInput(f"{path}: holds no line to compare")
