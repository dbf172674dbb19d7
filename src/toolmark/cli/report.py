"""`toolmark report`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from toolmark.cli.parser import CommandParser
from toolmark.comparing.opening import results_of
from toolmark.config import load_config
from toolmark.errors import UsageError
from toolmark.reports.html import write_run_page
from toolmark.running.reported import Reported, open_reported
from toolmark.store.files import check_writable
from toolmark.store.lines import read_results


class Form(NamedTuple):
    """One form of a report: its flag, and what writes it."""

    flag: str
    help: str
    write: Callable[[Path, Reported], None]

    @property
    def name(self) -> str:
        return self.flag.removeprefix("--")


def write_html(path: Path, reported: Reported) -> None:
    write_run_page(
        path,
        reported.report,
        lambda: read_results(reported.results),
        name=str(reported.results),
        cross_score=reported.cross_score,
    )


FORMS = (
    Form("--html", "one page with plots and every conversation; needs no network", write_html),
)


def build_parser() -> CommandParser:
    parser = CommandParser(
        "report",
        """
        Write the report of a run in another form. RESULTS is a results file or a folder with
        results.jsonl. The numbers are those of the report.json beside it; if there is none, or it
        belongs to other results, the lines are summarised by the gates in force here.
        """,
        """
        toolmark report results.jsonl --html report.html
        toolmark report demo-run --html demo.html
        """,
    )
    parser.add_argument(
        "results", type=Path, metavar="RESULTS", help="results file, or a folder with results.jsonl"
    )
    for form in FORMS:
        parser.add_argument(form.flag, type=Path, metavar="FILE", help=form.help)
    parser.add_argument(
        "--report", type=Path, metavar="FILE", help="the report (report.json beside the results)"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="settings, for results without a report"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = vars(build_parser().parse_args(arguments))
    wanted = [(form, options[form.name]) for form in FORMS if options[form.name] is not None]
    if not wanted:
        flags = ", ".join(f"{form.flag} FILE" for form in FORMS)
        raise UsageError(f"report: in which form? Give {flags}\n  see: toolmark report --help")
    results = results_of(options["results"])
    for form, path in wanted:
        if path.absolute() == results.absolute():
            raise UsageError(f"{form.flag}: {path} holds the results: choose another place")
        check_writable(path)
    reported = open_reported(results, options["report"], load_config(options["config"], {}))
    if reported.note:
        print(reported.note, file=sys.stderr)
    for form, path in wanted:
        form.write(path, reported)
        print(path)
    return 0
