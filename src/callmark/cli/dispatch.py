"""From words to a command, and from an exception to a sentence and an exit code."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from io import TextIOWrapper

from callmark.cli import MODULES, overview
from callmark.errors import CallmarkError, Fault, Incomplete, PluginError, UsageError
from callmark.reports.layout import neutralise
from callmark.store.streams import lead_nowhere

INTERRUPTED = 130
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
_SECRET_NAMES = re.compile(r"key|token|secret|pass|auth|cred|cookie", re.IGNORECASE)


def dispatch(words: list[str]) -> int:
    """Run the command that `words` begins with. Expected failures never show a traceback. The
    plug-ins of a command end with it."""
    _accept_any_character()
    with _plugin_scope():
        return _dispatch(words)


@contextmanager
def _plugin_scope() -> Iterator[None]:
    """Most commands load no plug-in, and `--help` not even the module that would."""
    earlier = sys.modules.get("callmark.plugins")
    if earlier is not None:
        with earlier.plugin_scope():
            yield
        return
    try:
        yield
    finally:
        loaded = sys.modules.get("callmark.plugins")
        if loaded is not None:
            loaded.forget_plugins()


def _plugin_behind(error: BaseException) -> str | None:
    loaded = sys.modules.get("callmark.plugins")
    name: str | None = None if loaded is None else loaded.plugin_behind(error)
    return name


def _dispatch(words: list[str]) -> int:
    try:
        code = _call(words)
        sys.stdout.flush()
    except Fault as error:
        return _fault(_show_traceback(str(error)))
    except CallmarkError as error:
        return _fail(str(error), error.exit_code)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED)
    except MemoryError:
        what = "the memory of this machine is used up. What is finished is on disk"
        return _fail(what, Incomplete.exit_code)
    except OSError as error:
        return cannot_go_on(error) if _plugin_behind(error) is None else unexpected(error)
    except Exception as error:
        return unexpected(error)
    return code


def cannot_go_on(error: OSError) -> int:
    lead_nowhere(sys.stdout.fileno())
    where = f"{error.filename}: " if error.filename else ""
    return _fail(f"{where}{error.strerror or error}", 4 if error.errno in NO_ROOM else 2)


def unexpected(error: Exception) -> int:
    """An exception that nobody planned for: the traceback for whoever mends it, then a sentence."""
    from traceback import format_exception

    what = _show_traceback("".join(format_exception(error)))
    plugin = _plugin_behind(error)
    if plugin is None:
        return _fault(what)
    return _fail(f"{plugin} failed: {what}\nThe traceback above is for its author.", 2)


def _show_traceback(text: str) -> str:
    """Without secrets that the environment holds; its last line is given back, which says what
    happened."""
    from callmark.live.record import SecretFilter

    named = (value for name, value in os.environ.items() if _SECRET_NAMES.search(name))
    shown = neutralise(SecretFilter(named).text(text)).rstrip()
    print(shown, file=sys.stderr)
    return shown.rpartition("\n")[2][:300]


def _fault(what: str) -> int:
    message = (
        f"a fault of callmark itself, not of your files: {what}\n"
        "Please report it where you got callmark from, with the traceback above and the command."
        " Finished trials stay in the journal: --resume goes on from there."
    )
    return _fail(message, Fault.exit_code)


def _call(words: list[str]) -> int:
    if not words:
        print(overview(), file=sys.stderr)
        return UsageError.exit_code
    # `callmark dataset` is no command, but people ask it for help.
    family = [name for name in MODULES if name.startswith(f"{words[0]} ")]
    if family and words[1:] in (["-h"], ["--help"]):
        print("\n".join(f"callmark {name} --help" for name in family))
        return 0
    name, rest = _split(words, family)
    try:
        code: int = import_module(MODULES[name]).main(rest)
    except SystemExit as finished:  # how argparse ends after --help
        if (plugin := _plugin_behind(finished)) is not None:
            raise PluginError(f"{plugin} ended the process: {finished}") from finished
        code = finished.code if isinstance(finished.code, int) else 0
    except ModuleNotFoundError as missing:
        # A command imports its work after it has read its options, so this may be any import of
        # ours. What a plug-in or another package fails to find is not ours to explain.
        package = (missing.name or "").partition(".")[0]
        if package == "callmark" or not _is_ours(missing):
            raise
        what = f"the Python package {package} is not installed"
        raise UsageError(f"{what}; in a checkout, `pip install .` installs it") from missing
    return code


def _is_ours(error: Exception) -> bool:
    """Whether it was raised by a line of callmark, not by something that callmark called."""
    from pathlib import Path
    from traceback import walk_tb

    *_, (frame, _) = walk_tb(error.__traceback__)
    return Path(__file__).parents[1] in Path(frame.f_code.co_filename).parents


def _split(words: list[str], family: list[str]) -> tuple[str, list[str]]:
    for size in (2, 1):
        name = " ".join(words[:size])
        if name in MODULES:
            return name, words[size:]
    if family:
        raise UsageError(f"`callmark {words[0]}` needs one of: {', '.join(family)}")
    from difflib import get_close_matches

    near = get_close_matches(words[0], MODULES, 1)
    hint = f" Did you mean `callmark {near[0]}`?" if near else ""
    raise UsageError(f"there is no command {words[0]!r}.{hint} See: callmark --help")


def _accept_any_character() -> None:
    # A terminal that cannot show a character must not end a run that took hours.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def _fail(message: str, code: int) -> int:
    print(f"callmark: error: {neutralise(message)}", file=sys.stderr)
    return code
