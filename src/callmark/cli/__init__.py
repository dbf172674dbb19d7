"""The command line: which command lives in which module, from words to one of them, and from an
exception to a sentence and an exit code.

A module is imported only when its command is called, and the overview needs none of them (nor
argparse): `callmark --help` has to answer at once."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper

from callmark.errors import CallmarkError, Fault, Incomplete, PluginError, UsageError

INTERRUPTED = 130
NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EIO}

# group -> command -> (module, what it is for)
CONTENTS: dict[str, dict[str, tuple[str, str]]] = {
    "start here": {
        "demo": ("callmark.cli.demo", "evaluate the small model that ships"),
        "init": ("callmark.cli.init", "write a small evaluation that runs, to make your own"),
        "tools": ("callmark.cli.tools", "specs of your tools: Python, MCP or OpenAPI"),
        "dataset new": ("callmark.cli.dataset_new", "add a sample from a prompt and calls"),
    },
    "evaluate": {
        "run": ("callmark.cli.run", "run a dataset, score the answers, judge the gates"),
        "score": ("callmark.cli.score", "score logs, conversations or recorded answers"),
        "show": ("callmark.cli.show", "one conversation with its calls and its evidence"),
        "label": ("callmark.cli.label", "draw statements of a run for a person to judge"),
        "agree": ("callmark.cli.agree", "are the flags right? precision and recall of each rule"),
        "report": ("callmark.cli.report", "a run as a page, JUnit, Markdown, CSV, Parquet"),
        "view": ("callmark.cli.view", "a folder of runs in a browser: trend, compare, live"),
    },
    "scale": {
        "merge": ("callmark.cli.merge", "the shards of a run become the whole"),
        "validate-sharding": ("callmark.cli.validate_sharding", "do shards change anything?"),
    },
    "compare": {
        "probe": ("callmark.cli.probe", "what did a fine-tune do to the tool calls?"),
        "compare": ("callmark.cli.compare", "two or more runs, sample by sample: is one worse?"),
        "baseline set": ("callmark.cli.baseline", "keep a run to compare later ones with"),
    },
    "datasets": {
        "verify": ("callmark.cli.verify", "can what a dataset expects be met?"),
        "dataset generate": ("callmark.cli.dataset_generate", "make one, with its fixtures"),
        "dataset import": ("callmark.cli.dataset_import", "from logs, benchmarks, conversations"),
        "dataset export": ("callmark.cli.dataset_export", "to Inspect, Parquet or plain JSONL"),
        "dataset stats": ("callmark.cli.dataset_stats", "what it holds, which gates it decides"),
        "dataset diff": ("callmark.cli.dataset_diff", "samples that are new, gone or changed"),
        "dataset add": ("callmark.cli.dataset_add", "a trial of a run becomes a sample"),
        "dataset accept": ("callmark.cli.dataset_accept", "say that what was observed is right"),
        "dataset seal": ("callmark.cli.dataset_seal", "pin items, tools and fixtures by hash"),
    },
    "fixtures": {
        "fixtures record": (
            "callmark.cli.fixtures_record",
            "ask live tools once, keep the answers",
        ),
        "fixtures serve": ("callmark.cli.fixtures_serve", "the recorded answers as an MCP server"),
        "fixtures check": (
            "callmark.cli.fixtures_check",
            "is every expected call answered?",
        ),
        "fixtures suggest": ("callmark.cli.fixtures_suggest", "turn a run's misses into fixtures"),
    },
    "this machine": {
        "doctor": ("callmark.cli.doctor", "is everything installed and readable?"),
        "completion": ("callmark.cli.completion", "tab completion for bash, zsh or fish"),
    },
}
MODULES = {name: module for group in CONTENTS.values() for name, (module, _) in group.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    from callmark.store.streams import keep_streams

    keep_streams()
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] in (["-h"], ["--help"], ["--help-all"], ["help"]):
        return _say(overview())
    if words[:1] in (["-V"], ["--version"]):
        from callmark._version import __version__

        return _say(f"callmark {__version__}")
    return dispatch(words)


def _say(text: str) -> int:
    try:
        print(text, flush=True)
    except OSError as error:
        return _cannot_go_on(error)
    return 0


def overview() -> str:
    lines = [
        "usage: callmark COMMAND [options]",
        "",
        "Does a model call its tools correctly, and build its answer on what they returned?",
    ]
    for group, commands in CONTENTS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<18}{purpose}" for name, (_, purpose) in commands.items()]
    lines += [
        "",
        "`callmark COMMAND --help` explains one command. Try `callmark demo` first.",
        "exit codes: 0 passed, 1 a gate failed, 2 usage or bad input, 3 fingerprint mismatch,",
        "            4 incomplete, 5 inconclusive, 70 a fault of callmark, 130 interrupted",
    ]
    return "\n".join(lines)


def dispatch(words: list[str]) -> int:
    """Run the command that `words` begins with. Expected failures never show a traceback. The
    plug-ins of a command end with it."""
    _accept_any_character()
    # Most commands load no plug-in, and `--help` not even the module that would.
    earlier = sys.modules.get("callmark.plugins")
    if earlier is not None:
        with earlier.plugin_scope():
            return _dispatch(words)
    try:
        return _dispatch(words)
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
        return _cannot_go_on(error) if _plugin_behind(error) is None else _unexpected(error)
    except Exception as error:
        return _unexpected(error)
    return code


def _cannot_go_on(error: OSError) -> int:
    from callmark.store.streams import lead_nowhere

    lead_nowhere(sys.stdout.fileno())
    where = f"{error.filename}: " if error.filename else ""
    return _fail(f"{where}{error.strerror or error}", 4 if error.errno in NO_ROOM else 2)


def _unexpected(error: Exception) -> int:
    """An exception that nobody planned for: the traceback for whoever fixes it, then a sentence."""
    from traceback import format_exception

    what = _show_traceback("".join(format_exception(error)))
    plugin = _plugin_behind(error)
    if plugin is None:
        return _fault(what)
    return _fail(f"{plugin} failed: {what}\nThe traceback above is for its author.", 2)


def _show_traceback(text: str) -> str:
    """Without secrets that the environment holds; its last line is given back, which says what
    happened."""
    import re

    from callmark.live.cleaning import SecretFilter
    from callmark.reports.layout import neutralise

    secret = re.compile(r"key|token|secret|pass|auth|cred|cookie", re.IGNORECASE)
    named = (value for name, value in os.environ.items() if secret.search(name))
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
    from importlib import import_module

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
    from callmark.reports.layout import neutralise

    print(f"callmark: error: {neutralise(message)}", file=sys.stderr)
    return code
