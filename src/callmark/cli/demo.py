"""`callmark demo`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import SWITCH, CommandParser
from callmark.cli.reporting import add_detail_options
from callmark.cli.run import REPORT, run_and_present
from callmark.errors import MissingExtra

if TYPE_CHECKING:
    from callmark.records.jsontext import Json
    from callmark.resources import ShippedModel


def build_parser() -> CommandParser:
    parser = CommandParser(
        "demo",
        """
        Evaluate the tiny model that ships with callmark, on a dataset whose words it
        has never seen.

        The model is loaded and asked, its calls are answered from the bundled
        fixtures, and its answers are scored and judged. No network, no GPU; it takes
        about a minute. Without the extra `hf` (torch, transformers), its recorded
        answers are replayed instead.
        """,
        """
        callmark demo
        callmark demo --out-dir /tmp/demo
        """,
    )
    parser.add_argument("--out-dir", type=Path, default=Path("demo-run"), metavar="DIR")
    parser.add_argument(
        "--html", **SWITCH, default=True, help="write report.html, a page to browse"
    )
    parser.add_argument(
        "--replay", action="store_true", help="replay the recorded answers; does not need torch"
    )
    add_detail_options(parser, "verdict", "all gates and metrics, tools, locales and slices")
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.config import load_config
    from callmark.resources import shipped_model
    from callmark.store.runs import RESULTS

    folder: Path = options.out_dir
    shipped = shipped_model()
    config = load_config(
        Path(os.devnull),  # the demo is the same wherever it is run
        {
            **_who_answers(shipped, replay=options.replay),
            "dataset": str(shipped.dataset),
            "fixtures": str(shipped.fixtures),
            "out": str(folder / RESULTS),
            "report": str(folder / REPORT),
            "html": options.html,
            "restart": True,
        },
    )
    own = "callmark init my-eval: a small evaluation to make your own"
    return run_and_present(config, quiet=options.quiet, verbose=options.verbose, more=(own,))


def _who_answers(shipped: ShippedModel, *, replay: bool) -> dict[str, Json]:
    from callmark.runners.hf.loading import require_extra

    if not replay:
        try:
            require_extra()
        except MissingExtra as missing:
            print(f"{missing}\nUntil then: the recorded answers of that model.", file=sys.stderr)
            replay = True
    if replay:
        return {"runner": "replay", "model": str(shipped.answers)}
    # Its answers are short; what does not end is cut off soon.
    return {"runner": "hf_local", "model": str(shipped.folder), "max_tokens": 128}
