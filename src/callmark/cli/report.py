"""`callmark report`."""

from __future__ import annotations

from pathlib import Path

from callmark.cli.options import INPUTS, CommandParser, add_groups
from callmark.cli.reporting import add_form_options, forms_of, open_finished
from callmark.errors import UsageError
from callmark.reports.layout import one_line


def build_parser() -> CommandParser:
    parser = CommandParser(
        "report",
        """
        Write the report of a run as a page, JUnit XML, Markdown, CSV, Parquet or
        JSON.

        The page (.html) has plots and every conversation. JUnit (.xml) has a case for
        each gate and each failing trial. CSV and Parquet have one row per trial.
        Nothing is run or scored again.

        For a results file, the report.json beside it is used; without one, the
        default gates judge its lines. A report on its own has no trials. JUnit and
        Markdown then name samples by gate, and the page shows the numbers.
        """,
        """
        callmark report runs --html report.html
        callmark report runs/results.jsonl -o junit.xml -o summary.md
        callmark report runs -o trials.csv
        callmark report report.json --junit junit.xml --fail-on-inconclusive
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, report, or the folder of a run"
    )
    parser.add_argument(
        "--report",
        type=Path,
        metavar="FILE",
        help="the report of these results (default: the one beside them)",
    )
    add_groups(parser, {"plug-ins": {"--plugin": INPUTS["--plugin"]}})
    add_form_options(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page to browse")
    parser.add_argument(
        "--fail-on-inconclusive",
        action="store_true",
        help="in JUnit, count inconclusive gates as errors",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.plugins import add_plugins
    from callmark.reports.finished_run import wanted_form, write_forms
    from callmark.store.files import check_writable
    from callmark.store.runs import file_of

    add_plugins(getattr(options, "plugin", ()))
    forms = forms_of(options)
    if options.html is not None:
        check_writable(options.html)
        forms = (*forms, wanted_form(options.html, ".html"))
    if not forms:
        raise UsageError(
            "-o: which format? Give -o FILE, --html FILE, --junit FILE or --markdown FILE"
        )
    read = file_of(options.run).absolute()
    for form in forms:
        if form.path.absolute() == read:
            raise UsageError(f"{form.path}: is the file being read: choose another one")
    finished = open_finished(
        options.run, options.report, fail_on_inconclusive=options.fail_on_inconclusive
    )
    write_forms(finished, forms)
    for form in forms:
        print(one_line(str(form.path)))
    return 0
