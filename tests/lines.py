"""Work counted in lines of Python that run: a clock would tell of the machine."""

import sys
from collections.abc import Callable
from types import FrameType

from bench.scoring import forget


def lines_run(work: Callable[[], object]) -> int:
    lines = 0

    def note_line(frame: FrameType, event: str, arg: object):
        nonlocal lines
        lines += 1
        return note_line

    work()  # what is loaded when it is first needed is not counted
    forget()  # or a smaller input would be remembered, a larger one not
    before = sys.gettrace()
    sys.settrace(note_line)
    try:
        work()
    finally:
        sys.settrace(before)
    return lines
