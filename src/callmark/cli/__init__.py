"""The contents page of the command line: which command lives in which module.

A module is imported only when its command is called, and the overview needs none of them (nor
argparse): `callmark --help` has to answer at once."""

from __future__ import annotations

import sys

# group -> command -> (module, what it is for)
CONTENTS: dict[str, dict[str, tuple[str, str]]] = {
    "start here": {
        "demo": ("callmark.cli.demo", "evaluate the small model that ships"),
        "init": ("callmark.cli.init", "write a callmark.yaml for your own dataset"),
    },
    "evaluate": {
        "run": ("callmark.cli.run", "run a dataset, score the answers, judge the gates"),
        "score": ("callmark.cli.score", "score recorded answers or conversations again"),
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
        "compare": ("callmark.cli.compare", "two runs, sample by sample: is the second one worse?"),
        "baseline set": ("callmark.cli.baseline", "keep a run to compare later ones with"),
    },
    "datasets": {
        "verify": ("callmark.cli.verify", "judge a dataset's own answers by the same gates"),
        "dataset generate": ("callmark.cli.dataset_generate", "make one, with its fixtures"),
        "dataset import": ("callmark.cli.dataset_import", "from logs, benchmarks, conversations"),
        "dataset export": ("callmark.cli.dataset_export", "to Inspect, Parquet or plain JSONL"),
        "dataset stats": ("callmark.cli.dataset_stats", "what it holds, which gates it decides"),
        "dataset diff": ("callmark.cli.dataset_diff", "samples that are new, gone or changed"),
        "dataset add": ("callmark.cli.dataset_add", "a trial of a run becomes a sample"),
        "dataset accept": ("callmark.cli.dataset_accept", "what was observed is right"),
        "dataset seal": ("callmark.cli.dataset_seal", "pin items, tools and fixtures by hash"),
    },
    "fixtures": {
        "fixtures record": (
            "callmark.cli.fixtures_record",
            "ask live tools once, keep the answers",
        ),
        "fixtures serve": ("callmark.cli.fixtures_serve", "the recorded answers as an MCP server"),
        "fixtures check": ("callmark.cli.fixtures_check", "do the recorded tool answers answer?"),
        "fixtures suggest": ("callmark.cli.fixtures_suggest", "turn a run's misses into lines"),
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
    from callmark.cli.dispatch import dispatch

    return dispatch(words)


def _say(text: str) -> int:
    try:
        print(text, flush=True)
    except OSError as error:
        from callmark.cli.dispatch import cannot_go_on

        return cannot_go_on(error)
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
