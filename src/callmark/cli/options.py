"""The options of `run` and `score`, as tables. An option that was not given leaves no trace, so
that flags can win over the config file and the config file over the dataset's header."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NoReturn

from callmark.errors import UsageError
from callmark.records.jsontext import Json

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

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
    "--registry": {"metavar": "PATH", "help": "tool specs, file or folder (default: built in)"},
    "--allowlist": {"metavar": "FILE", "help": "names of the tools that may be offered"},
    "--config": {
        "metavar": "FILE",
        "type": Path,
        "help": "settings (default: callmark.yaml in this folder, if there is one); flags win",
    },
    "--plugin": {
        "action": "append",
        "metavar": "FILE",
        "help": "Python file with a scorer, runner, call format or report of your own; its code is"
        " run; may be repeated",
    },
}
RUNNER: Group = {
    "--runner": {"metavar": "NAME", "help": "what answers; replay: recorded answers"},
    "--model": {"metavar": "NAME", "help": "model name or path; for replay the file of answers"},
    "--max-turns": {
        "type": int,
        "metavar": "N",
        "help": "assistant turns of one trial (8); 1 is a single shot",
    },
    "--repeat": {"type": int, "metavar": "K", "help": "trials of each sample (1)"},
    "--parse-text": {
        "choices": ("auto", "on", "off"),
        "help": "look for calls in the text (auto: where a server gave none)",
    },
    "--seed": {"type": int, "metavar": "N", "help": "recorded, and given to the runner (42)"},
    "--temperature": {
        "type": number_or_null,
        "metavar": "T",
        "help": "0.0; null leaves it out of the request",
    },
    "--top-p": {"type": number_or_null, "metavar": "P", "help": "left out by default"},
    "--max-tokens": {"type": int, "metavar": "N", "help": "tokens of one answer (1024)"},
    "--tool-choice": {"metavar": "WORD", "help": "auto; what a server takes"},
    "--prompt-wrapper": {"metavar": "FILE", "help": "a .j2 or .tmpl file around every prompt"},
    "--system": {"metavar": "TEXT", "help": 'system message where there is none; "" for none'},
    "--determinism-mode": {
        **SWITCH,
        "help": "temperature 0, top_p 1, one thread, no retries: equal on repeat or failed",
    },
}
SERVED: Group = {
    "--base-url": {"metavar": "URL", "help": "the endpoint (default: OPENAI_BASE_URL)"},
    "--max-connections": {
        "type": number_or_auto,
        "metavar": "N",
        "help": "requests at once (auto: as many as the server bears)",
    },
    "--request-timeout": {"type": float, "metavar": "S", "help": "seconds for one request (120)"},
    "--sample-timeout": {"type": float, "metavar": "S", "help": "seconds for one trial"},
    "--max-retries": {"type": int, "metavar": "N", "help": "tries after a failed request (5)"},
    "--model-revision": {"metavar": "TEXT", "help": "which version of the model is served"},
}
LOCAL: Group = {
    "--adapter": {"metavar": "DIR", "help": "a PEFT adapter (LoRA) on top of --model"},
    "--dtype": {"choices": ("float32", "bfloat16", "float16"), "help": "of the weights (float32)"},
    "--device": {"metavar": "NAME", "help": "cpu, cuda, mps"},
    "--batch-size": {"type": number_or_auto, "metavar": "N", "help": "prompts at once (auto)"},
}
SCORING: Group = {
    "--span-extractor": {
        "choices": ("auto", "marker", "claims"),
        "help": "which parts of an answer are looked at (auto: the dataset decides)",
    },
    "--integration-span-cap": {
        "type": int,
        "metavar": "N",
        "help": "with marker: spans of an answer that are scored (3)",
    },
    "--privacy-echo": {
        "choices": ("allow", "deny"),
        "help": "is repeating PII of the prompt or a result a breach? (allow)",
    },
    "--redact-pii": {**SWITCH, "help": "replace PII in all that is written"},
}
GATES: Group = {
    "--gate": {
        "action": "append",
        "metavar": "NAME=BOUND",
        "help": "another bound for a gate, or one for a plug-in's measure (NAME>=BOUND and"
        " NAME<=BOUND are taken too); a looser one is marked LOOSENED",
    },
    "--min-eligible-for-gates": {
        "type": int,
        "metavar": "N",
        "help": "samples that a gate needs behind it (15), else it is inconclusive",
    },
    "--fail-on-gate-failure": {**SWITCH, "help": "exit 1 when a gate fails (on)"},
    "--fail-on-inconclusive": {**SWITCH, "help": "exit 5 when any gate is open (off)"},
    "--fail-on-fingerprint-mismatch": {
        **SWITCH,
        "help": "exit 3 when the dataset pins another hash (on)",
    },
    "--max-errors": {
        "type": count_or_percent,
        "metavar": "N|PCT%",
        "help": "trials that infrastructure may lose (0)",
    },
}
PART: Group = {
    "--only": {"action": "append", "metavar": "ID", "help": "only this sample; may be repeated"},
    "--slice": {"action": "append", "metavar": "NAME", "help": "only this slice; may be repeated"},
    "--failed-from": {"metavar": "RUN", "help": "only samples that failed in this results file"},
    "--limit": {"type": int, "metavar": "N", "help": "only the first N samples"},
    "--num-shards": {
        "type": number_or_auto,
        "metavar": "N",
        "help": "split by a hash of the id; auto: from SLURM or a Kubernetes job",
    },
    "--shard-index": {"type": int, "metavar": "I", "help": "which shard, from 0"},
}
ENGINE: Group = {
    "--engine": {
        "choices": ("local", "ray"),
        "help": "play all shards: local, in processes here; ray, on a Ray cluster",
    },
    "--num-cpus": {"type": float, "metavar": "N", "help": "ray: processors for a shard (1)"},
    "--num-gpus": {"type": float, "metavar": "N", "help": "ray: GPUs for a shard (0)"},
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


class CommandParser(argparse.ArgumentParser):
    """Options are never abbreviated: a new option must not change what an old script means."""

    def __init__(self, command: str, purpose: str, examples: str) -> None:
        super().__init__(
            prog=f"callmark {command}",
            description=dedent(purpose).strip(),
            epilog="examples:\n" + _indent(examples),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )

    def print_help(self, file: SupportsWrite[str] | None = None) -> None:
        (file or sys.stdout).write(self.format_help())  # argparse itself hides a full disk

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}\n  see: {self.prog} --help")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}" for line in dedent(text).strip().splitlines())
