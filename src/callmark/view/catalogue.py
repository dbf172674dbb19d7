"""Which runs a folder holds, with what a person noted about each in `NAME.notes.json` beside its
results. Whoever asks names a run by its number, never by a path."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import NotJson
from callmark.records.report import Number, Report
from callmark.records.results import Fingerprints
from callmark.reports.layout import Style, one_line
from callmark.reports.terminal import VERDICT_STYLE, verdict_line
from callmark.store.files import atomic_writer, decode_result
from callmark.store.journal import MAGIC
from callmark.store.spending import is_timing
from callmark.summary.gates import wanted_text
from callmark.summary.metrics import label_of, sentence_of
from callmark.summary.summary import differing_fingerprint

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


RESULTS = "results.jsonl"
REPORT = "report.json"
JOURNAL = ".journal"
MAX_DEPTH = 8
MAX_ENTRIES = 50_000
MAX_RUNS = 1000
FIRST_LINE_BYTES = 256 << 20  # the trial of a long session is one line


class Stamp(msgspec.Struct, frozen=True):
    """A file that has the same is taken for the same."""

    inode: int
    size: int
    mtime_ns: int


def stamp_of(path: Path) -> Stamp | None:
    """None: it is not there, or cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return None
    return Stamp(status.st_ino, status.st_size, status.st_mtime_ns)


def report_paths(results: Path) -> tuple[Path, ...]:
    """Where the report of a results file may stand: under its own name, or as report.json."""
    return results.with_suffix(".json"), results.with_name(REPORT)


class FoundRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `path` is its results file, or its journal while it is not finished; `first` is
    what its first line depends on, None in a journal and in a file without a line."""

    id: str
    name: str
    path: Path
    finished: bool
    stamp: Stamp
    first: Fingerprints | None = None


class Folder(msgspec.Struct, frozen=True):
    """`left_out`: what a person should know about runs that are not here."""

    runs: tuple[FoundRun, ...]
    left_out: str = ""


class NoSuchRun(LookupError):
    """Nobody has a run of this name, or it is no longer where it was."""


class RunCatalogue:
    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._lock = threading.Lock()
        self._known: dict[str, FoundRun] = {}
        self._peeks: dict[Path, tuple[Stamp, FoundRun | None]] = {}

    def scan(self) -> Folder:
        """All runs, the latest first. Files that have not changed are not opened again."""
        with self._lock:
            return self._scan()

    def _scan(self) -> Folder:
        walk = _Walk(self.root)
        peeks: dict[Path, tuple[Stamp, FoundRun | None]] = {}
        for path in walk.files():
            stamp = stamp_of(path)
            if stamp is None or not self._is_inside(path):
                continue
            before = self._peeks.get(path)
            same = before is not None and before[0] == stamp
            peeks[path] = before if before and same else (stamp, self._peek(path, stamp))
        self._peeks = peeks
        runs = sorted(
            (found for _, found in peeks.values() if found is not None),
            key=lambda run: (-run.stamp.mtime_ns, run.name),
        )
        self._known |= {run.id: run for run in runs}
        left_out = walk.left_out
        if len(runs) > MAX_RUNS:
            left_out = f"{len(runs)} runs were found; the latest {MAX_RUNS} are listed."
        return Folder(tuple(runs[:MAX_RUNS]), left_out)

    def find(self, number: str) -> FoundRun:
        """A run that a scan has found, as it is now."""
        known = self._known.get(number)
        stamp = None if known is None else stamp_of(known.path)
        if known is None or stamp is None or not self._is_inside(known.path):
            raise NoSuchRun
        return msgspec.structs.replace(known, stamp=stamp)

    def successor(self, number: str) -> FoundRun:
        """The results that a journal has become."""
        known = self._known.get(number)
        if known is None or known.finished:
            raise NoSuchRun
        results = known.path.with_name(known.path.name.removesuffix(JOURNAL))
        self.scan()
        return self.find(self._number(results))

    def _is_inside(self, path: Path) -> bool:
        """Wherever links lead: the file itself is below the folder."""
        try:
            return path.resolve(strict=True).is_relative_to(self.root)
        except (OSError, RuntimeError):
            return False

    def _peek(self, path: Path, stamp: Stamp) -> FoundRun | None:
        name = self._name(path)
        number = self._number(path)
        try:
            with path.open("rb") as stream:
                line = stream.readline(FIRST_LINE_BYTES)
        except OSError:
            return None
        if path.name.endswith(JOURNAL):
            if not line.startswith(MAGIC):
                return None
            return FoundRun(id=number, name=name, path=path, finished=False, stamp=stamp)
        first = _first_fingerprints(line)
        if first is None and (path.name != RESULTS or line.strip()):
            return None
        return FoundRun(id=number, name=name, path=path, finished=True, stamp=stamp, first=first)

    def _name(self, path: Path) -> str:
        """A folder stands for the results in it."""
        name = str(path.relative_to(self.root)).removesuffix(JOURNAL)
        return name.removesuffix(f"/{RESULTS}")

    def _number(self, path: Path) -> str:
        name = os.fsencode(path.relative_to(self.root))
        return hashlib.sha256(name).hexdigest()[:16]


def _first_fingerprints(line: bytes) -> Fingerprints | None:
    try:
        return decode_result(line.removeprefix(b"\xef\xbb\xbf")).fingerprints
    except (NotJson, BadInput):
        return None


class _Walk:
    """The files that may be runs, with bounds: a home folder must not keep anybody waiting."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._entries = 0
        self.left_out = ""

    def files(self) -> Iterator[Path]:
        return self._below(self._root, 0)

    def _below(self, folder: Path, depth: int) -> Iterator[Path]:
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in found:
            self._entries += 1
            if self._entries > MAX_ENTRIES:
                self.left_out = f"Only the first {MAX_ENTRIES} files and folders were looked at."
                return
            if entry.is_dir(follow_symlinks=False):
                if entry.name.startswith("."):
                    continue
                if depth < MAX_DEPTH:
                    yield from self._below(Path(entry.path), depth + 1)
                else:
                    self.left_out = f"Folders more than {MAX_DEPTH} deep were not looked at."
            elif entry.name.endswith((".jsonl", JOURNAL)) and entry.is_file():
                path = Path(entry.path)
                yield from () if is_timing(path) else (path,)


SHORT = 10
SHOWN_PINS = {
    "dataset": "dataset_sha256",
    "fixtures": "fixtures_sha256",
    "tools": "tool_registry_sha256",
    "model": "model_fingerprint",
    "runner": "runner_fingerprint",
}
ReadReport = Callable[[Path], Report]


class Point(msgspec.Struct, frozen=True):
    """One metric of one run; `low` and `high` are the ends of its 95 % interval."""

    value: Number
    n: int
    low: float | None = None
    high: float | None = None


class Bound(msgspec.Struct, frozen=True):
    op: str
    bound: Number
    status: str
    wanted: str  # the same in words


class RunRow(msgspec.Struct, frozen=True, kw_only=True):
    """`written`: when the file was changed last, in seconds since 1970; only the viewer shows a
    time. `pins` are the first digits of fingerprints; `reason` says why there is no verdict.
    `dataset` is the name of its file with its version, as far as the report knows them; `note`
    and `tags` are a person's."""

    id: str
    name: str
    finished: bool
    written: float
    word: str
    style: Style
    reason: str
    samples: int | None = None
    trials: int | None = None
    errors: int | None = None
    model: str = ""
    dataset: str = ""
    note: str = ""
    tags: tuple[str, ...] = ()
    pins: dict[str, str] = {}
    metrics: dict[str, Point] = {}
    gates: dict[str, Bound] = {}


class RunListing(msgspec.Struct, frozen=True):
    """`words`: the label and the sentence of each metric that a run has."""

    folder: str
    runs: tuple[RunRow, ...]
    left_out: str
    words: dict[str, tuple[str, str]] = {}


class Lister:
    """Reads each report once, and again when it has changed."""

    def __init__(self, root: Path, read_report: ReadReport) -> None:
        self._name = one_line(str(root), 300)
        self._read_report = read_report
        self._read: dict[Path, tuple[Stamp, Report | str]] = {}

    def listing(self, folder: Folder) -> RunListing:
        read: dict[Path, tuple[Stamp, Report | str]] = {}
        rows = tuple(_noted(self._row(found, read), found) for found in folder.runs)
        self._read = read
        names = dict.fromkeys(name for row in rows for name in row.metrics)
        words = {name: (label_of(name), sentence_of(name)) for name in names}
        return RunListing(self._name, rows, folder.left_out, words)

    def _row(self, found: FoundRun, read: dict[Path, tuple[Stamp, Report | str]]) -> RunRow:
        if not found.finished:
            return _row(found, "unfinished", "quiet", "its journal is still there")
        why = "no report beside it"
        for path in report_paths(found.path):
            stamp = stamp_of(path)
            if stamp is None:
                continue
            before = self._read.get(path)
            known = before if before and before[0] == stamp else (stamp, self._report(path))
            read[path] = known
            report = known[1]
            if isinstance(report, str):
                why = report
            elif (why_not := _stranger(report, found)) is None:
                return _reported_row(found, report)
            else:
                why = f"{one_line(path.name, 100)} is about another run ({why_not})"
        return _row(found, "no report", "quiet", why)

    def _report(self, path: Path) -> Report | str:
        try:
            return self._read_report(path)
        except BadInput as error:
            return one_line(str(error), 300)


def _noted(row: RunRow, found: FoundRun) -> RunRow:
    if not found.finished:
        return row
    notes = read_notes(found.path)
    return msgspec.structs.replace(row, note=notes.note, tags=notes.tags)


def _stranger(report: Report, found: FoundRun) -> str | None:
    if found.first is None:
        return "it has trials, the file none" if report.counts.trials else None
    return differing_fingerprint(report.header, found.first)


def _row(found: FoundRun, word: str, style: Style, reason: str) -> RunRow:
    return RunRow(
        id=found.id,
        name=one_line(found.name, 300),
        finished=found.finished,
        written=found.stamp.mtime_ns / 1e9,
        word=word,
        style=style,
        reason=reason,
        pins={} if found.first is None else _pins(found.first),
    )


def _reported_row(found: FoundRun, report: Report) -> RunRow:
    header, counts = report.header, report.counts
    return msgspec.structs.replace(
        _row(found, report.verdict, VERDICT_STYLE[report.verdict], _reason(report)),
        samples=counts.samples,
        trials=counts.trials,
        errors=counts.trials_error,
        model=one_line(_model(header.model or ""), 100),
        dataset=_dataset(report),
        pins=_pins(header),
        metrics={
            name: Point(metric.value, metric.n, *(metric.ci_95 or (None, None)))
            for name, metric in report.metrics.items()
            if metric.value is not None
        },
        gates={
            gate.name: Bound(gate.op, gate.bound, gate.status, wanted_text(gate.op, gate.bound))
            for gate in report.gates
        },
    )


def _dataset(report: Report) -> str:
    name, version = report.provenance.get("dataset"), report.header.dataset_version
    told = [name] if isinstance(name, str) else []
    return one_line(" ".join([*told, *([] if version is None else [f"v{version}"])]), 100)


def _reason(report: Report) -> str:
    return one_line(verdict_line(report).cells[1].text.strip(), 300)


def _model(name: str) -> str:
    """Of a file its last part: the rest is the same in every row."""
    return name.rpartition("/")[2] if name.startswith("/") else name


def _pins(holder: msgspec.Struct) -> dict[str, str]:
    found = {label: getattr(holder, name) for label, name in SHOWN_PINS.items()}
    return {label: one_line(pin[:SHORT]) for label, pin in found.items() if pin is not None}
