"""What can be asked of the viewer, and what it answers. It knows no socket."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path

import msgspec

from callmark.core.report import Number
from callmark.errors import CallmarkError
from callmark.reports.html import page_sample
from callmark.reports.html_file import page_json
from callmark.store.lines import find_result, result_at
from callmark.view.catalogue import FoundRun, NoSuchRun, RunCatalogue
from callmark.view.compare_jobs import Command, Jobs, NoSuchJob, WantedComparison
from callmark.view.listing import Lister, ReadReport
from callmark.view.live import read_piece
from callmark.view.opened import Judge, Openings
from callmark.view.pages import Page, list_page, live_page, run_page, written_page

MAX_OFFSET_DIGITS = 15


class Doing(msgspec.Struct, frozen=True):
    """What the viewer needs done by parts that it does not know. `bounds`: of the gates by which
    the samples of an unfinished run are marked."""

    read_report: ReadReport
    judge: Judge
    compare: Command
    bounds: Mapping[str, Number]


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


class Viewer:
    def __init__(self, root: Path, scratch: Path, doing: Doing) -> None:
        self._catalogue = RunCatalogue(root)
        self._doing = doing
        self._lister = Lister(self._catalogue.root, doing.read_report)
        self._openings = Openings(scratch, doing.judge)
        self._jobs = Jobs(scratch, doing.compare)
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
            return ServedJson(page_json(read_piece(run.path, int(start), self._doing.bounds)))
        except (NoSuchRun, FileNotFoundError):
            return ServedJson(page_json({"became": self._catalogue.successor(number).id}))

    def _compare(self, asked: Asked) -> Answer:
        try:
            body = msgspec.json.decode(asked.body or b"", type=CompareBody)
        except (msgspec.MsgspecError, UnicodeError) as error:
            return ServedProblem(400, f"compare: {error}")
        a, b = self._finished(body.a), self._finished(body.b)
        return ServedJson(page_json(self._jobs.start(WantedComparison(a, b, body.common))))

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
    (re.compile(r"/compare"), True, Viewer._compare),
    (re.compile(r"/compare/([0-9a-f]{16})"), False, Viewer._compared),
    (re.compile(r"/compare/([0-9a-f]{16})/state"), False, Viewer._compare_state),
)
