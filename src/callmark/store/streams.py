"""Standard output and standard error that never end the work: whoever reads them may go away."""

from __future__ import annotations

import errno
import io
import os
import select
import stat
import sys
from contextlib import suppress

TYPE_CHECKING = False  # every command comes by here, and `typing` costs as much as all of this
if TYPE_CHECKING:
    from typing import TextIO

    from _typeshed import ReadableBuffer

_IN, _OUT, _ERR = 0, 1, 2


def keep_streams() -> None:
    """From now on this process prints to whoever is still there, and goes on where nobody is. A
    stream that somebody put in the place of the real one, such as a test, is left alone."""
    for fd in (_IN, _OUT, _ERR):
        _occupy(fd)
    if sys.stdin is None:
        sys.stdin = open(_IN, closefd=False, encoding="utf-8")  # noqa: SIM115
    if sys.stdout is sys.__stdout__:
        sys.stdout = _keep(sys.stdout, _OUT)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _keep(sys.stderr, _ERR)


def lead_nowhere(fd: int) -> None:
    """What is written from now on is dropped, also what Python flushes while it ends."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, fd)
    if nowhere != fd:
        os.close(nowhere)


class _Kept(io.FileIO):
    def __init__(self, fd: int) -> None:
        super().__init__(fd, "wb", closefd=False)

    def write(self, data: ReadableBuffer, /) -> int:
        while True:
            try:
                written: int | None = super().write(data)
            except OSError as error:
                if not _has_no_reader(self.fileno(), error):
                    raise
                lead_nowhere(self.fileno())
                continue
            if written is not None:
                return written
            # Another program made the pipe that we share non-blocking, and it is full.
            select.select((), (self.fileno(),), ())


def _has_no_reader(fd: int, error: OSError) -> bool:
    """A full disk below standard output is still an error: somebody wants to have it."""
    if fd == _ERR or error.errno in (errno.EPIPE, errno.EBADF):
        return True
    # A terminal whose window was closed.
    return error.errno == errno.EIO and stat.S_ISCHR(os.fstat(fd).st_mode)


def _occupy(fd: int) -> None:
    # A number that is free would be given to the next file that is opened, a journal perhaps,
    # and every print would go into it.
    try:
        os.fstat(fd)
    except OSError:
        lead_nowhere(fd)
        os.set_inheritable(fd, True)


def _keep(stream: TextIO | None, fd: int) -> TextIO:
    real = stream if isinstance(stream, io.TextIOWrapper) else None
    if real is not None:
        with suppress(OSError):
            real.flush()
    return io.TextIOWrapper(
        io.BufferedWriter(_Kept(fd)),
        encoding="utf-8" if real is None else real.encoding,
        # A terminal that cannot show a character must not end a run that took hours.
        errors="backslashreplace",
        line_buffering=fd == _ERR or (real is not None and real.line_buffering),
        write_through=real is not None and real.write_through,
    )
