"""The exception tree. Each class carries the exit code that the command line ends with."""

from __future__ import annotations

from collections.abc import Sequence


class CallmarkError(Exception):
    """A failure that a person has to act on: its text says where, what and what next."""

    exit_code = 2


class UsageError(CallmarkError):
    """An option, a config field or a combination of them makes no sense."""


class PluginError(UsageError):
    """A plug-in, which is its user's code, raised something or gave what its seam does not take."""


class BadInput(CallmarkError):
    """One or more files hold something that cannot be read as what they should be."""

    def __init__(self, problems: str | Sequence[str]) -> None:
        given = (problems,) if isinstance(problems, str) else problems
        # One problem, one line, whatever it quotes.
        self.problems = tuple(" ".join(problem.splitlines()) for problem in given)
        super().__init__("\n".join(self.problems))


class MissingExtra(CallmarkError):
    """A feature was asked for whose optional dependencies are not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs an extra: in a checkout, pip install '.[{extra}]'")


class FingerprintMismatch(CallmarkError):
    """Something that was pinned differs from what was computed."""

    exit_code = 3


class Incomplete(CallmarkError):
    """Infrastructure failed: what is finished is on disk, the rest can be resumed."""

    exit_code = 4


class Fault(CallmarkError):
    """Something in callmark itself is wrong: nothing that its user gave to it is. The text is the
    traceback, as it came from the process where it happened."""

    exit_code = 70


class OutputFailed(Incomplete):
    """A file could not be written (full disk, no permission). Finished work stays on disk."""

    def __init__(self, what: str, what_next: str = "") -> None:
        super().__init__(f"{what} {what_next}".rstrip())
        self.what = what


class CannotWrite(UsageError):
    """The place for the output is not writable; found out before anything is run."""


def place_in(error: BaseException, file: str) -> str:
    """`file:line` of the innermost step in that file; without one, where the error was raised."""
    found = last = None
    step = error.__traceback__
    while step is not None:
        last = step
        found = step if step.tb_frame.f_code.co_filename == file else found
        step = step.tb_next
    if (at := found or last) is None:
        return file
    return f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"


def fault_of_ours(what: str, error: Exception) -> str:
    """One clause for a failure that is our mistake and costs one trial only. What the exception
    says is left out: it may quote anything."""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" at {last.tb_frame.f_code.co_name}, line {last.tb_lineno}"
    return f"{what}: {type(error).__name__}{where}: a fault of callmark's, please report it"
