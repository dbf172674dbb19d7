"""What can be asked of the viewer, and what it answers. It knows no socket.

Comparing two runs takes a while: it is done in a process of its own, one after the other."""

from __future__ import annotations

import re
import secrets
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from callmark.errors import CallmarkError
from callmark.records.report import GateRule
from callmark.reports.html.page import (
    page_json,
    page_sample,
    page_script,
    page_style,
    policy_of,
    shell,
)
from callmark.reports.layout import neutralise
from callmark.store.files import find_result, result_at
from callmark.view.catalogue import (
    FoundRun,
    Lister,
    NoSuchRun,
    ReadReport,
    RunCatalogue,
    RunNotes,
    Stamp,
    write_notes,
)
from callmark.view.opened import Judge, Openings, read_piece

KEPT = 16
Word = Literal["running", "done", "failed"]


class WantedComparison(msgspec.Struct, frozen=True):
    """B against A; `common`: only samples that are the same on both sides."""

    a: FoundRun
    b: FoundRun
    common: bool = False

    @property
    def key(self) -> tuple[str, Stamp, str, Stamp, bool]:
        return self.a.id, self.a.stamp, self.b.id, self.b.stamp, self.common


class JobState(msgspec.Struct, frozen=True):
    id: str
    word: Word
    message: str = ""


# The command that compares and writes the page to this place.
Command = Callable[[WantedComparison, Path], Sequence[str]]


class NoSuchJob(LookupError):
    """Nobody asked for this comparison, or it is too long ago."""


class Jobs:
    def __init__(self, folder: Path, command: Command) -> None:
        self._folder = folder
        self._command = command
        self._lock = threading.Lock()
        self._turn = threading.Lock()
        self._states: dict[str, JobState] = {}
        self._ids: dict[tuple[str, Stamp, str, Stamp, bool], str] = {}
        self._process: subprocess.Popen[str] | None = None
        self._closed = False

    def start(self, wanted: WantedComparison) -> JobState:
        """What is under way, or was done on the same files, is not done again."""
        with self._lock:
            known = self._states.get(self._ids.get(wanted.key, ""))
            if known is not None and known.word != "failed":
                return known
            state = JobState(secrets.token_hex(8), "running")
            self._ids[wanted.key] = state.id
            self._states[state.id] = state
            self._forget_old()
        threading.Thread(target=self._work, args=(state.id, wanted), daemon=True).start()
        return state

    def state(self, job: str) -> JobState:
        try:
            return self._states[job]
        except KeyError:
            raise NoSuchJob from None

    def page(self, job: str) -> Path:
        if self.state(job).word != "done":
            raise NoSuchJob
        return self._path(job)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            if self._process is not None:
                self._process.terminate()

    def _path(self, job: str) -> Path:
        return self._folder / f"compare-{job}.html"

    def _work(self, job: str, wanted: WantedComparison) -> None:
        with self._turn:
            failure = self._compare(self._command(wanted, self._path(job)))
        with self._lock:
            if self._path(job).is_file():
                self._states[job] = JobState(job, "done")
            else:
                self._states[job] = JobState(job, "failed", failure)

    def _compare(self, command: Sequence[str]) -> str:
        """What it complained about; a comparison that found a regression complains, too."""
        with self._lock:
            if self._closed:
                return "the viewer has ended"
            self._process = subprocess.Popen(  # noqa: S603 - ourselves, with paths that a scan found
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
        _, complaint = self._process.communicate()
        shown = neutralise(complaint).strip().removeprefix("callmark: error: ")
        return shown or f"the comparison ended with {self._process.returncode}"

    def _forget_old(self) -> None:
        ended = [job for job, state in self._states.items() if state.word != "running"]
        for job in ended[: max(0, len(self._states) - KEPT)]:
            del self._states[job]
            self._path(job).unlink(missing_ok=True)


# In a file the name of the program is text; here it leads back to the list.
_BRAND = b'<span class="brand">callmark</span>'
_HOME = b'<a class="brand" href="../">callmark</a>'
_TOP_BYTES = 1 << 17  # the bar stands in them, after style and title
PLAIN = "default-src 'none'; base-uri 'none'; form-action 'none'"


class Page(msgspec.Struct, frozen=True):
    """HTML with the policy that it needs. `rest`: a file that follows, from this byte on."""

    policy: str
    data: bytes
    rest: Path | None = None
    rest_from: int = 0


def list_page(folder: str) -> Page:
    return _serve_page(folder, ("trends.js", "view-list.js"), "list.html")


def run_page(name: str) -> Page:
    return _serve_page(name, ("view-run.js",))


def live_page(name: str) -> Page:
    return _serve_page(name, ("view-live.js",))


def _serve_page(title: str, start: tuple[str, ...], template: str = "page.html") -> Page:
    style, script = page_style("view.css"), page_script("served.js", *start)
    parts = shell(title=title, style=style, script=script, connects=True, template=template)
    policy = policy_of(style, script, connects=True)
    return Page(policy, "".join(parts).encode().replace(_BRAND, _HOME, 1))


def written_page(path: Path) -> Page:
    """A page that is a file, with a way back."""
    with path.open("rb") as stream:
        top = stream.read(_TOP_BYTES)
    policy = policy_of(page_style(), page_script())
    return Page(policy, top.replace(_BRAND, _HOME, 1), path, len(top))


MAX_OFFSET_DIGITS = 15


class Accepting(msgspec.Struct, frozen=True):
    """The dataset whose observed samples a person judges here. `judge`: a sample's id, and whether
    it is right; gives what was done."""

    dataset: str
    judge: Callable[[str, bool], str]


class Doing(msgspec.Struct, frozen=True):
    """What the viewer needs done by parts that it does not know. `rules`: the gates by which the
    samples of an unfinished run are marked."""

    read_report: ReadReport
    judge: Judge
    compare: Command
    rules: Mapping[str, GateRule]
    accepting: Accepting | None = None


class Asked(msgspec.Struct, frozen=True):
    """`body` is None in a GET."""

    path: str
    query: Mapping[str, str] = {}
    body: bytes | None = None


class ServedJson(msgspec.Struct, frozen=True):
    data: bytes


class ServedFile(msgspec.Struct, frozen=True):
    path: Path


class ServedProblem(msgspec.Struct, frozen=True):
    status: int
    text: str


Answer = Page | ServedJson | ServedFile | ServedProblem
NOT_HERE = ServedProblem(404, "There is nothing here.")


class CompareBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    a: str
    b: str
    common: bool = False


class JudgeBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    sample_id: str
    right: bool


class NoteBody(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    note: str = ""
    tags: tuple[str, ...] = ()


class Viewer:
    def __init__(self, root: Path, scratch: Path, doing: Doing) -> None:
        self._catalogue = RunCatalogue(root)
        self._doing = doing
        self._lister = Lister(self._catalogue.root, doing.read_report)
        self._openings = Openings(scratch, doing.judge)
        self._jobs = Jobs(scratch, doing.compare)
        self._judging = threading.Lock()  # each judgement writes the dataset anew, and notes a file
        self._catalogue.scan()

    def close(self) -> None:
        self._jobs.close()

    def count(self) -> int:
        return len(self._catalogue.scan().runs)

    def answer(self, asked: Asked) -> Answer:
        for pattern, posts, respond in ROUTES:
            found = pattern.fullmatch(asked.path)
            if found is None:
                continue
            if posts != (asked.body is not None):
                return ServedProblem(405, "Not in this way.")
            try:
                return respond(self, asked, *found.groups())
            except (NoSuchRun, NoSuchJob):
                return NOT_HERE
            except CallmarkError as error:
                return ServedProblem(422, str(error))
            except OSError as error:  # a file that went away, or may not be read
                return ServedProblem(422, error.strerror or str(error))
        return NOT_HERE

    def _list_page(self, _asked: Asked) -> Answer:
        return list_page(self._catalogue.root.name)

    def _list(self, _asked: Asked) -> Answer:
        return ServedJson(page_json(self._lister.listing(self._catalogue.scan())))

    def _run_page(self, _asked: Asked, number: str) -> Answer:
        run = self._catalogue.find(number)
        return run_page(run.name) if run.finished else live_page(run.name)

    def _verdict(self, _asked: Asked, number: str) -> Answer:
        return ServedJson(self._openings.verdict(self._finished(number)))

    def _head(self, _asked: Asked, number: str) -> Answer:
        return ServedFile(self._openings.open(self._finished(number)).head)

    def _index(self, _asked: Asked, number: str) -> Answer:
        return ServedFile(self._openings.open(self._finished(number)).index)

    def _finished(self, number: str) -> FoundRun:
        run = self._catalogue.find(number)
        if not run.finished:
            raise NoSuchRun
        return run

    def _sample(self, asked: Asked, number: str) -> Answer:
        """By its place (`at`), or by its name (`s`, `t`) where the list does not have it."""
        run = self._catalogue.find(number)
        match asked.query:
            case {"at": place} if _is_number(place):
                return ServedJson(page_sample(result_at(run.path, int(place))))
            case {"s": sample_id, "t": trial} if run.finished and _is_number(trial):
                return ServedJson(page_sample(find_result(run.path, sample_id, int(trial))[1]))
        return NOT_HERE

    def _piece(self, asked: Asked, number: str) -> Answer:
        start = asked.query.get("from", "0")
        if not _is_number(start):
            return NOT_HERE
        try:
            run = self._catalogue.find(number)
            if run.finished:
                return NOT_HERE
            return ServedJson(page_json(read_piece(run.path, int(start), self._doing.rules)))
        except (NoSuchRun, FileNotFoundError):
            return ServedJson(page_json({"became": self._catalogue.successor(number).id}))

    def _compare(self, asked: Asked) -> Answer:
        try:
            body = msgspec.json.decode(asked.body or b"", type=CompareBody)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return ServedProblem(400, f"compare: {error}")
        a, b = self._finished(body.a), self._finished(body.b)
        return ServedJson(page_json(self._jobs.start(WantedComparison(a, b, body.common))))

    def _note(self, asked: Asked, number: str) -> Answer:
        """A person's words about a run, kept beside it."""
        run = self._finished(number)
        try:
            body = msgspec.json.decode(asked.body or b"", type=NoteBody)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return ServedProblem(400, f"note: {error}")
        with self._judging:
            return ServedJson(page_json(write_notes(run.path, RunNotes(body.note, body.tags))))

    def _accepting(self, _asked: Asked) -> Answer:
        accepting = self._doing.accepting
        return ServedJson(page_json({"dataset": None if accepting is None else accepting.dataset}))

    def _accept(self, asked: Asked) -> Answer:
        accepting = self._doing.accepting
        if accepting is None:
            return ServedProblem(404, "Start the viewer with --accept DATASET to judge here.")
        try:
            body = msgspec.json.decode(asked.body or b"", type=JudgeBody)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return ServedProblem(400, f"accept: {error}")
        with self._judging:
            return ServedJson(page_json({"did": accepting.judge(body.sample_id, body.right)}))

    def _compared(self, _asked: Asked, job: str) -> Answer:
        return written_page(self._jobs.page(job))

    def _compare_state(self, _asked: Asked, job: str) -> Answer:
        return ServedJson(page_json(self._jobs.state(job)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_OFFSET_DIGITS


Respond = Callable[..., Answer]
# path, whether it does something (POST), what answers
ROUTES: tuple[tuple[re.Pattern[str], bool, Respond], ...] = (
    (re.compile(r"/"), False, Viewer._list_page),
    (re.compile(r"/runs"), False, Viewer._list),
    (re.compile(r"/run/([0-9a-f]{16})"), False, Viewer._run_page),
    (re.compile(r"/run/([0-9a-f]{16})/verdict"), False, Viewer._verdict),
    (re.compile(r"/run/([0-9a-f]{16})/head"), False, Viewer._head),
    (re.compile(r"/run/([0-9a-f]{16})/index"), False, Viewer._index),
    (re.compile(r"/run/([0-9a-f]{16})/sample"), False, Viewer._sample),
    (re.compile(r"/run/([0-9a-f]{16})/piece"), False, Viewer._piece),
    (re.compile(r"/run/([0-9a-f]{16})/note"), True, Viewer._note),
    (re.compile(r"/accepting"), False, Viewer._accepting),
    (re.compile(r"/accept"), True, Viewer._accept),
    (re.compile(r"/compare"), True, Viewer._compare),
    (re.compile(r"/compare/([0-9a-f]{16})"), False, Viewer._compared),
    (re.compile(r"/compare/([0-9a-f]{16})/state"), False, Viewer._compare_state),
)
