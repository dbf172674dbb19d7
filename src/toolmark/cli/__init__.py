"""The contents page of the command line: which command lives in which module.

A module is imported only when its command is called, and the overview needs none of them (nor
argparse): `toolmark --help` has to answer at once."""

from __future__ import annotations

import sys

# group -> command -> (module, what it is for)
CONTENTS: dict[str, dict[str, tuple[str, str]]] = {
    "start here": {
        "demo": ("toolmark.cli.demo", "evaluate the small model that ships"),
        "init": ("toolmark.cli.init", "write a toolmark.yaml for your own dataset"),
    },
    "evaluate": {
        "run": ("toolmark.cli.run", "run a dataset, score the answers, judge the gates"),
        "score": ("toolmark.cli.score", "score recorded answers or conversations again"),
        "show": ("toolmark.cli.show", "one conversation with its calls and its evidence"),
        "report": ("toolmark.cli.report", "a run as a page, JUnit, Markdown, CSV, Parquet"),
        "view": ("toolmark.cli.view", "a folder of runs in a browser: trend, compare, live"),
    },
    "scale": {
        "merge": ("toolmark.cli.merge", "the shards of a run become the whole"),
        "validate-sharding": ("toolmark.cli.validate_sharding", "do shards change anything?"),
    },
    "compare": {
        "probe": ("toolmark.cli.probe", "what did a fine-tune do to the tool calls?"),
        "compare": ("toolmark.cli.compare", "two runs, sample by sample: is the second one worse?"),
        "baseline set": ("toolmark.cli.baseline", "keep a run to compare later ones with"),
    },
    "datasets": {
        "verify": ("toolmark.cli.verify", "judge a dataset's own answers by the same gates"),
        "dataset generate": ("toolmark.cli.dataset_generate", "make one, with its fixtures"),
        "dataset import": ("toolmark.cli.dataset_import", "from logs, benchmarks, conversations"),
        "dataset export": ("toolmark.cli.dataset_export", "to Inspect, Parquet or plain JSONL"),
        "dataset stats": ("toolmark.cli.dataset_stats", "what it holds, which gates it decides"),
        "dataset diff": ("toolmark.cli.dataset_diff", "samples that are new, gone or changed"),
        "dataset add": ("toolmark.cli.dataset_add", "a trial of a run becomes a sample"),
        "dataset seal": ("toolmark.cli.dataset_seal", "pin items, tools and fixtures by hash"),
    },
    "fixtures": {
        "fixtures record": (
            "toolmark.cli.fixtures_record",
            "ask live tools once, keep the answers",
        ),
        "fixtures serve": ("toolmark.cli.fixtures_serve", "the recorded answers as an MCP server"),
        "fixtures check": ("toolmark.cli.fixtures_check", "do the recorded tool answers answer?"),
        "fixtures suggest": ("toolmark.cli.fixtures_suggest", "turn a run's misses into lines"),
    },
    "this machine": {
        "doctor": ("toolmark.cli.doctor", "is everything installed and readable?"),
        "completion": ("toolmark.cli.completion", "tab completion for bash, zsh or fish"),
    },
}
MODULES = {name: module for group in CONTENTS.values() for name, (module, _) in group.items()}


def main(arguments: list[str] | None = None) -> int:
    """Run one command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words[:1] in (["-h"], ["--help"], ["help"]):
        return _say(overview())
    if words[:1] in (["-V"], ["--version"]):
        from toolmark._version import __version__

        return _say(f"toolmark {__version__}")
    from toolmark.cli.dispatch import dispatch

    return dispatch(words)


def _say(text: str) -> int:
    try:
        print(text, flush=True)
    except OSError as error:
        from toolmark.cli.dispatch import cannot_go_on

        return cannot_go_on(error)
    return 0


def overview() -> str:
    lines = [
        "usage: toolmark COMMAND [options]",
        "",
        "Does a model call its tools rightly, and build its answer on what they returned?",
    ]
    for group, commands in CONTENTS.items():
        lines += ["", f"{group}:"]
        lines += [f"  {name:<18}{purpose}" for name, (_, purpose) in commands.items()]
    lines += [
        "",
        "`toolmark COMMAND --help` explains one command. Try `toolmark demo` first.",
        "exit codes: 0 passed, 1 a gate failed, 2 usage or bad input, 3 fingerprint mismatch,",
        "            4 incomplete, 5 inconclusive, 130 interrupted",
    ]
    return "\n".join(lines)
