"""The options of a run and of recording, as tables: each that is a setting has its row here,
whoever takes it. An option that was not given leaves no trace, so that flags can win over the
config file and the config file over the dataset's header."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

from callmark.errors import UsageError

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from callmark.live.record import Keeping, LiveOptions
    from callmark.live.recorder import Mode
    from callmark.records.jsontext import Json


Settings = dict[str, Any]  # what argparse.add_argument takes
Group = dict[str, Settings]

SWITCH: Settings = {"action": argparse.BooleanOptionalAction}
FLAG: Settings = {"action": "store_true"}


def number_or_null(text: str) -> float | None:
    """`null` leaves the field out of the request."""
    return None if text in ("null", "none") else float(text)


def count_or_percent(text: str) -> int | str:
    return text if text.endswith("%") else int(text)


def number_or_auto(text: str) -> int | str:
    return text if text == "auto" else int(text)


number_or_null.__name__ = "number"  # argparse names the type in its message
count_or_percent.__name__ = number_or_auto.__name__ = "whole number"

INPUTS: Group = {
    "--in": {"metavar": "FILE", "help": "the dataset, JSONL; - is standard input"},
    "--fixtures": {"metavar": "DIR", "help": "folder with the recorded tool answers"},
    "--registry": {
        "metavar": "PATH",
        "help": "tool specs, a file or a folder (default: the built-in tools)",
    },
    "--allowlist": {
        "metavar": "FILE",
        "help": "names of the tools that may be offered",
    },
    "--config": {
        "metavar": "FILE",
        "type": Path,
        "help": "settings file (default: callmark.yaml in this folder, if there is one); flags win",
    },
    "--plugin": {
        "action": "append",
        "metavar": "FILE",
        "help": "Python file with a scorer, runner, call format or report of your own; its code is"
        " run; may be repeated",
    },
}
RUNNER: Group = {
    "--runner": {
        "metavar": "NAME",
        "help": "who answers: `openai_http`, `openai_responses` or `anthropic_messages` (a server),"
        " `hf_local` (a checkpoint), `replay` (recorded answers)",
    },
    "--model": {"metavar": "NAME", "help": "model name or path; for replay, the file of answers"},
    "--max-turns": {
        "type": int,
        "metavar": "N",
        "help": "most assistant turns in a trial; 1 is a single shot (default: 8)",
    },
    "--repeat": {"type": int, "metavar": "K", "help": "trials per sample (default: 1)"},
    "--parse-text": {
        "choices": ("auto", "on", "off"),
        "help": "look for calls in the text (default: auto, only where the server returned none)",
    },
    "--seed": {
        "type": int,
        "metavar": "N",
        "help": "seed, recorded and passed to the runner (default: 42)",
    },
    "--temperature": {
        "type": number_or_null,
        "metavar": "T",
        "help": "sampling temperature; null leaves it out of the request (default: 0.0)",
    },
    "--top-p": {
        "type": number_or_null,
        "metavar": "P",
        "help": "nucleus sampling (default: left out of the request)",
    },
    "--max-tokens": {
        "type": int,
        "metavar": "N",
        "help": "most tokens in one answer (default: 1024)",
    },
    "--tool-choice": {"metavar": "WORD", "help": "tool_choice of the request (default: auto)"},
    "--prompt-wrapper": {
        "metavar": "FILE",
        "help": "a .j2 or .tmpl template to wrap every prompt in",
    },
    "--response-template": {
        "metavar": "FILE",
        "help": "a transformers response_template (JSON) that reads calls and thinking in the text",
    },
    "--system": {
        "metavar": "TEXT",
        "help": 'system message where the prompt has none; "" for none',
    },
    "--determinism-mode": {
        **SWITCH,
        "help": "temperature 0, top_p 1, one thread, no retries; fails if a repeat differs",
    },
}
SERVED: Group = {
    "--base-url": {
        "metavar": "URL",
        "help": "the endpoint (default: OPENAI_BASE_URL, or ANTHROPIC_BASE_URL)",
    },
    "--max-connections": {
        "type": number_or_auto,
        "metavar": "N",
        "help": "concurrent requests (default: auto, as many as the server can take)",
    },
    "--request-timeout": {
        "type": float,
        "metavar": "S",
        "help": "seconds allowed for one request (default: 120)",
    },
    "--sample-timeout": {
        "type": float,
        "metavar": "S",
        "help": "seconds allowed for one trial (default: no limit)",
    },
    "--max-retries": {
        "type": int,
        "metavar": "N",
        "help": "retries after a failed request (default: 5)",
    },
    "--model-revision": {"metavar": "TEXT", "help": "which version of the model is served"},
}
LOCAL: Group = {
    "--adapter": {"metavar": "DIR", "help": "a PEFT adapter (LoRA) on top of --model"},
    "--dtype": {
        "choices": ("float32", "bfloat16", "float16"),
        "help": "type of the weights (default: float32)",
    },
    "--device": {"metavar": "NAME", "help": "cpu, cuda, mps, or auto: the fastest that is there"},
    "--batch-size": {
        "type": number_or_auto,
        "metavar": "N",
        "help": "prompts per batch (default: auto)",
    },
}
SCORING: Group = {
    "--span-extractor": {
        "choices": ("auto", "marker", "claims"),
        "help": "which parts of an answer are scored (default: auto, the dataset decides)",
    },
    "--integration-span-cap": {
        "type": int,
        "metavar": "N",
        "help": "with marker: most spans scored per answer (default: 3)",
    },
    "--privacy-echo": {
        "choices": ("allow", "deny"),
        "help": "whether an answer may repeat PII from its prompt or a result (default: allow)",
    },
    "--redact-pii": {**SWITCH, "help": "replace PII in everything that is written"},
}
GATES: Group = {
    "--gate": {
        "action": "append",
        "metavar": "NAME=BOUND",
        "help": "set the bound of a gate, or of a plug-in's measure (NAME>=BOUND and NAME<=BOUND"
        " work too); a looser one is marked LOOSENED; may be repeated",
    },
    "--min-eligible-for-gates": {
        "type": int,
        "metavar": "N",
        "help": "samples that a gate needs; with fewer it is inconclusive (default: 15)",
    },
    "--fail-on-gate-failure": {**SWITCH, "help": "exit 1 if a gate fails (default: on)"},
    "--fail-on-inconclusive": {
        **SWITCH,
        "help": "exit 5 if any gate is inconclusive (default: off)",
    },
    "--fail-on-fingerprint-mismatch": {
        **SWITCH,
        "help": "exit 3 if the dataset pins a different hash (default: on)",
    },
    "--today": {
        "metavar": "DATE",
        "help": "the day by which a quarantine has expired, YYYY-MM-DD (default: today, UTC)",
    },
    "--max-errors": {
        "type": count_or_percent,
        "metavar": "N|PCT%",
        "help": "trials that may be lost to infrastructure errors (default: 0)",
    },
}
# The answers are there: none can fail to come.
GATES_ON_ANSWERS: Group = {
    flag: settings for flag, settings in GATES.items() if flag != "--max-errors"
}
PART: Group = {
    "--only": {"action": "append", "metavar": "ID", "help": "only this sample; may be repeated"},
    "--slice": {"action": "append", "metavar": "NAME", "help": "only this slice; may be repeated"},
    "--failed-from": {"metavar": "RUN", "help": "only samples that failed in this results file"},
    "--limit": {"type": int, "metavar": "N", "help": "only the first N samples"},
    "--num-shards": {
        "type": number_or_auto,
        "metavar": "N",
        "help": "split by a hash of the sample id; auto: as SLURM or a Kubernetes job says",
    },
    "--shard-index": {"type": int, "metavar": "I", "help": "which shard to run, counted from 0"},
}
ENGINE: Group = {
    "--engine": {
        "choices": ("local", "ray"),
        "help": "run all shards: local, as processes on this machine; ray, on a Ray cluster",
    },
    "--num-cpus": {"type": float, "metavar": "N", "help": "ray: CPUs per shard (default: 1)"},
    "--num-gpus": {"type": float, "metavar": "N", "help": "ray: GPUs per shard (default: 0)"},
}

OUTPUT: Group = {
    "--name": {
        "metavar": "TEXT",
        "help": "name of the folder below runs/ (default: that of the settings file, or of the"
        " dataset)",
    },
    "--out": {
        "metavar": "FILE",
        "help": "results, one line per trial (default: runs/NAME-N/results.jsonl, with runs/latest"
        " pointing there; for a shard, results.shard_I.jsonl)",
    },
    "--report": {
        "metavar": "FILE",
        "help": "the report (default: report.json beside --out; for a shard, report.shard_I.json)",
    },
    "--html": {
        **SWITCH,
        "help": "a page to browse, report.html (default: written beside the report)",
    },
    "--resume": {
        **FLAG,
        "help": "continue an unfinished run from its journal (without --out, that of runs/latest)",
    },
    "--salvage": {
        **FLAG,
        "help": "with --resume: skip the damaged lines of a journal and run their trials again",
    },
    "--restart": {**FLAG, "help": "discard that journal and start over"},
    "--cache": {
        "metavar": "DIR",
        "help": "keep the model's answers in this folder, and never ask for the same one twice",
    },
    "--no-cache": {**FLAG, "help": "use no cache, whatever the settings file says"},
    "--dry-run": {**FLAG, "help": "check everything, run nothing"},
}
FAULTS: Group = {
    "--faults": {
        "metavar": "FILE",
        "help": "plant faults in tool answers, to measure recovery: errors, timeouts, empty or"
        " partial answers (YAML or JSON)",
    },
}
BASELINE: Group = {
    "--baseline": {
        "metavar": "RUN",
        "help": "then compare with this earlier run; writes comparison.json beside the report",
    },
}


def add_groups(parser: argparse.ArgumentParser, groups: Mapping[str, Group]) -> None:
    for title, group in groups.items():
        section = parser.add_argument_group(title)
        for flag, settings in group.items():
            section.add_argument(flag, default=argparse.SUPPRESS, **settings)


def flags_given(options: argparse.Namespace, groups: Sequence[Group]) -> dict[str, Json]:
    """The settings that stood on the command line, under the names of the config file."""
    names = [flag.removeprefix("--").replace("-", "_") for group in groups for flag in group]
    found = {name: getattr(options, name) for name in names if hasattr(options, name)}
    found.pop("config", None)
    bounds = found.pop("gate", None)
    if bounds:
        found["gates"] = dict(map(_read_bound, bounds))
    if "plugin" in found:
        found["plugins"] = found.pop("plugin")
    return found


def _read_bound(text: str) -> tuple[str, dict[str, Json]]:
    name, equals, bound = text.partition("=")
    field = f"{name[-1:]}=" if name.endswith(("<", ">")) else "bound"
    try:
        return name.rstrip("<> "), {field: float(bound)}
    except ValueError:
        what = "the bound is not a number" if equals else "there is no ="
        raise UsageError(
            f"--gate {text}: {what}; write NAME=BOUND, such as call_f1_macro=0.8"
        ) from None


class _WholeHelp(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> NoReturn:
        assert isinstance(parser, CommandParser)  # noqa: S101 - there is no other
        sys.stdout.write(parser.format_whole())
        parser.exit()


class CommandParser(argparse.ArgumentParser):
    """`--help` shows the first paragraph of the purpose and the options in `common` (none named:
    all of them); `--help-all` shows everything. Options are never abbreviated: a new option must
    not change what an old script means."""

    def __init__(
        self, command: str, purpose: str, examples: str, common: Iterable[str] = ()
    ) -> None:
        super().__init__(
            prog=f"callmark {command}",
            description=dedent(purpose).strip(),
            epilog=_show_examples(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        self._common = frozenset(common)
        self._first_examples = _show_examples(examples, SHOWN_EXAMPLES)
        self.add_argument("--help-all", action=_WholeHelp, nargs=0, help="show every option")

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        (file or sys.stdout).write(self.format_help())  # argparse itself hides a full disk

    def format_whole(self) -> str:
        return super().format_help()

    def format_help(self) -> str:
        """The short one. Of a command with few options it differs only in its usage."""
        formatter = self._get_formatter()
        formatter.add_text((self.description or "").partition("\n\n")[0])
        left = 0
        for group in self._action_groups:
            shown = [action for action in group._group_actions if self._is_common(action)]
            left += len(group._group_actions) - len(shown)
            formatter.start_section(group.title)
            formatter.add_arguments(shown)
            formatter.end_section()
        formatter.add_text(self._first_examples)
        if left:
            formatter.add_text(f"{left} more options: {self.prog} --help-all")
        named = "".join(
            f" {_MANY.get(one.nargs, '{}').format(one.metavar or one.dest)}"
            for one in self._actions
            if not one.option_strings
        )
        return f"usage: {self.prog}{named} [options]\n\n{formatter.format_help()}"

    def _is_common(self, action: argparse.Action) -> bool:
        flags = set(action.option_strings)
        always = not flags or bool(flags & _ALWAYS)
        return always or not self._common or bool(flags & self._common)

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n  see: {self.prog} --help")


_ALWAYS = {"--help", "--help-all", "--quiet", "--verbose"}
_MANY: dict[int | str | None, str] = {"+": "{} …", "*": "[{} …]", "?": "[{}]"}
SHOWN_EXAMPLES = 3
EXAMPLE_WIDTH = 76


def _show_examples(text: str, most: int | None = None) -> str:
    """Each command on lines of its own, broken before an option where it is too long."""
    whole = dedent(text).strip().replace(" \\\n", " ").splitlines()
    return "\n".join(("examples:", *(f"  {_fold(' '.join(one.split()))}" for one in whole[:most])))


def _fold(command: str) -> str:
    at = command.rfind(" --", 0, EXAMPLE_WIDTH)
    if len(command) <= EXAMPLE_WIDTH or at < 0:
        return command
    return f"{command[:at]} \\\n      {_fold(command[at + 1 :])}"


def refuse_options(options: argparse.Namespace, flags: Iterable[str], why: str) -> None:
    """No option that does nothing."""
    given = [flag for flag in flags if hasattr(options, flag[2:].replace("-", "_"))]
    if given:
        raise UsageError(f"{', '.join(given)}: {why}")


# Those of `live.recorder`, which would bring the whole recorder along.
MODES: tuple[Mode, ...] = ("none", "once", "new", "all")
LIVE: Group = {
    "--mcp": {"metavar": "CMD|URL", "help": "the live MCP server: a command, or a URL"},
    "--python": {
        "action": "append",
        "metavar": "MODULE:NAME",
        "help": "a Python function as a live tool; may be repeated",
    },
    "--env": {
        "action": "append",
        "metavar": "NAME",
        "help": "environment variable for the MCP command; its value is kept out of every file",
    },
    "--header": {
        "action": "append",
        "metavar": "TEXT",
        "help": "header for the MCP URL, as 'Name: ${VARIABLE}'; may be repeated",
    },
    "--timeout": {
        "type": float,
        "metavar": "S",
        "help": "seconds allowed for one call, and for an MCP server to start (default: 30)",
    },
}
KEPT: Group = {
    "--pin": {
        "action": "append",
        "metavar": "TOOL:PATH=VALUE",
        "help": "give a field that differs from call to call this value; may be repeated",
    },
    "--pii": {
        "choices": ("surrogate", "keep"),
        "help": "replace personal data with made-up data of the same shape (default), or keep it",
    },
    "--pii-key": {
        "metavar": "NAME",
        "help": "environment variable that holds a key only you know, for the surrogates",
    },
    "--error-text": {
        "metavar": "REGEX",
        "help": "treat MCP answers whose text matches as errors, whatever isError says",
    },
    "--out-dataset": {
        "type": Path,
        "metavar": "FILE",
        "help": "write a copy of --in with the same surrogates",
    },
}


def live_options(options: argparse.Namespace) -> LiveOptions:
    from callmark.live.record import LiveOptions

    return LiveOptions(
        mcp=getattr(options, "mcp", None),
        python=tuple(getattr(options, "python", ())),
        env=tuple(getattr(options, "env", ())),
        headers=tuple(getattr(options, "header", ())),
        timeout=getattr(options, "timeout", LiveOptions().timeout),
    )


def keeping(
    options: argparse.Namespace, folder: Path, dataset: Path | None, registry: Path | None
) -> Keeping:
    from callmark.live.record import Keeping, read_pin

    return Keeping(
        folder=folder,
        registry=registry,
        pins=tuple(read_pin(text) for text in getattr(options, "pin", ())),
        pii=getattr(options, "pii", "surrogate"),
        pii_key=_key(getattr(options, "pii_key", None)),
        secrets=live_options(options).secrets,
        error_text=_pattern(getattr(options, "error_text", None)),
        dataset=dataset,
        out_dataset=getattr(options, "out_dataset", None),
    )


def _key(name: str | None) -> str:
    if name is None:
        return ""
    if not os.environ.get(name):
        raise UsageError(f"--pii-key {name}: no such environment variable is set")
    return os.environ[name]


def _pattern(text: str | None) -> re.Pattern[str] | None:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"--error-text: not a regular expression: {error}") from None


def asking_command(dataset: str, registry: str | None, fixtures: str | None) -> str:
    """A run with a served model, whose address and name are left to the reader."""
    given = {"in": dataset, "registry": registry, "fixtures": fixtures}
    files = "".join(f" --{name} {shlex.quote(one)}" for name, one in given.items() if one)
    return f"callmark run{files} --runner openai_http --base-url URL --model NAME"
