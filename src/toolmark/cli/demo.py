"""`toolmark demo`."""

from __future__ import annotations

import os
from pathlib import Path

from toolmark.cli.parser import CommandParser
from toolmark.cli.run import REPORT, run_and_present
from toolmark.config import load_config
from toolmark.resources import demo_paths
from toolmark.running.selection import RESULTS


def build_parser() -> CommandParser:
    parser = CommandParser(
        "demo",
        """
        Evaluate the dataset that ships with toolmark: its tools answer from the bundled fixtures,
        its model is a file of recorded answers, good but not perfect. No network, no model, a few
        seconds. Prints the report and says where the files are.
        """,
        """
        toolmark demo
        toolmark demo --out-dir /tmp/demo
        """,
    )
    parser.add_argument("--out-dir", type=Path, default=Path("demo-run"), metavar="DIR")
    return parser


def main(arguments: list[str]) -> int:
    folder: Path = build_parser().parse_args(arguments).out_dir
    demo = demo_paths()
    config = load_config(
        Path(os.devnull),  # the demo is the same wherever it is run
        {
            "runner": "replay",
            "model": str(demo.answers),
            "dataset": str(demo.dataset),
            "fixtures": str(demo.fixtures),
            "out": str(folder / RESULTS),
            "report": str(folder / REPORT),
            "restart": True,
        },
    )
    own = "toolmark init my-eval --example: the same with your own data"
    return run_and_present(config, quiet=False, more=(own,))
