"""`callmark view`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from callmark.cli.options import CommandParser
from callmark.cli.reporting import open_finished, summarise_lines
from callmark.errors import BadInput, UsageError
from callmark.reports.layout import one_line

if TYPE_CHECKING:
    from callmark.config import RunConfig
    from callmark.view.opened import JudgedRun
    from callmark.view.server import ViewServer
    from callmark.view.viewer import Accepting, Doing, WantedComparison

CALLMARK = (sys.executable, "-P", "-m", "callmark")  # -P: nothing of this folder is imported


def build_parser() -> CommandParser:
    parser = CommandParser(
        "view",
        """
        Browse the runs below FOLDER: list, trends, comparisons, every sample, and
        runs still in progress.

        The address that is printed contains a token. It can only be opened on this
        machine, and only with the token. Ctrl-C stops the viewer. Nothing is written
        to the folder. With --accept, `a` and `r` on a sample of a run accept or
        reject what that dataset merely observed.
        """,
        """
        callmark view
        callmark view runs --open
        callmark view runs --port 8123
        """,
    )
    parser.add_argument(
        "folder", type=Path, nargs="?", default=Path(), metavar="FOLDER",
        help="folder to search for runs, at any depth (default: this one)",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=0, metavar="N", help="port to listen on (default: any free one)"
    )
    parser.add_argument(
        "--accept",
        type=Path,
        metavar="DATASET",
        help="judge its observed samples in the runs over it: a is right, r is not; it is written"
        " in place",
    )
    parser.add_argument("--open", action="store_true", help="open the address in a browser")
    parser.add_argument(
        "--config",
        type=Path,
        metavar="FILE",
        help="settings file, for comparisons and the bounds shown in trends",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    import tempfile

    from callmark.config import load_config
    from callmark.view.server import ViewServer
    from callmark.view.viewer import Viewer

    folder: Path = options.folder
    if not folder.is_dir():
        what = "is a file, a folder is needed" if folder.exists() else "no such folder"
        raise BadInput(f"{folder}: {what}")
    if not 0 <= options.port < 1 << 16:
        raise UsageError(f"--port: must be a number from 1 to 65535, not {options.port}")
    doing = doing_of(load_config(options.config, {}), options.config, options.accept)
    with tempfile.TemporaryDirectory(prefix="callmark-view-") as scratch:
        viewer = Viewer(folder, Path(scratch), doing)
        with ViewServer(viewer, options.port) as server:
            serve(server, folder, browse=options.open)
    return 0


def serve(server: ViewServer, folder: Path, *, browse: bool) -> None:
    """Until somebody ends it, which is how it is meant to end."""
    import signal

    count = server.viewer.count()
    print(
        f"{one_line(str(folder))}: {count} run{'' if count == 1 else 's'}; Ctrl-C ends the viewer"
    )
    print(server.guard.address, flush=True)
    if browse:
        import webbrowser

        webbrowser.open(server.guard.address)
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        signal.signal(signal.SIGTERM, before)
        server.viewer.close()


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt


def doing_of(config: RunConfig, settings: Path | None, judged: Path | None = None) -> Doing:
    """`judged`: the dataset whose observed samples are accepted and rejected."""
    from callmark.run.prepare import rules_of
    from callmark.store.files import read_report
    from callmark.view.viewer import Doing

    def compare(wanted: WantedComparison, page: Path) -> Sequence[str]:
        """As a person would type it here: the page says these names."""
        runs = [_type(run.path) for run in (wanted.a, wanted.b)]
        more = ["--common"] if wanted.common else []
        more += [] if settings is None else ["--config", str(settings)]
        return [*CALLMARK, "compare", *runs, *more, "--html", str(page), "--quiet"]

    binding = (rule for rule in rules_of(config) if rule.policy != "warning_only")
    rules = {rule.name: rule for rule in binding}
    accepting = None if judged is None else _accepting(judged)
    return Doing(read_report, judge_run, compare, rules, accepting)


def _accepting(dataset: Path) -> Accepting:
    from callmark.datasets.accept import accept_observed
    from callmark.datasets.reader import open_dataset
    from callmark.store.files import check_writable
    from callmark.view.viewer import Accepting

    with open_dataset(dataset):  # that it is one, and that it may be written, is said at once
        check_writable(dataset)

    def judge(sample_id: str, right: bool) -> str:
        accepted, rejected = ([sample_id], []) if right else ([], [sample_id])
        done = accept_observed(dataset, accepted, rejected=rejected)
        left = f"{done.left} are still merely observed" if done.left else "none is left"
        return f"{'accepted' if right else 'rejected'} in {dataset.name}; {left}"

    return Accepting(dataset.name, judge)


def _type(path: Path) -> str:
    short = os.path.relpath(path)
    return str(path) if short.startswith(os.pardir) else f"./{short}"


def judge_run(results: Path) -> JudgedRun:
    """By a report that belongs to these results; where none does, by the shipped gates."""
    from callmark.run.play import cross_scorer
    from callmark.shards.merge import report_beside
    from callmark.store.files import read_report
    from callmark.store.runs import REPORT
    from callmark.view.opened import JudgedRun

    for named in (results.with_suffix(".json"), report_beside(results), results.with_name(REPORT)):
        if not named.is_file():
            continue
        if not results.stat().st_size:  # the share of a shard that has no sample
            return JudgedRun(read_report(named))
        with suppress(BadInput):
            finished = open_finished(results, named)
            return JudgedRun(finished.report, finished.cross_score)
    note = f"{results}: no report belongs to it: its lines were judged by the shipped gates"
    return JudgedRun(summarise_lines(results), cross_scorer(), note)
