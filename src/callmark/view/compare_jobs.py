"""Comparing two runs takes a while: it is done in a process of its own, one after the other."""

from __future__ import annotations

import secrets
import subprocess
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from callmark.reports.layout import neutralise
from callmark.view.catalogue import FoundRun, Stamp

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
            if job not in self._states:
                return
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
