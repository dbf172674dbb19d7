"""`callmark report`."""

from __future__ import annotations

from pathlib import Path

from callmark.cli.options import INPUTS, CommandParser, add_groups
from callmark.cli.reporting import add_form_options, forms_of, open_finished
from callmark.errors import UsageError
from callmark.plugins import add_plugins
from callmark.reports.forms import WantedForm, check_forms, write_forms
from callmark.reports.html.page import write_html
from callmark.reports.neutral import one_line
from callmark.store.runs import file_of


def build_parser() -> CommandParser:
    parser = CommandParser(
        "report",
        """
        Write the report of a run in another form: a page (.html) with plots and every conversation,
        JUnit XML (.xml) with a case for each gate and each failing trial, Markdown (.md) for a pull
        request, CSV or Parquet with a row for each trial, JSON. Nothing is run and nothing is
        scored again. Beside a results file its report.json is read; where there is none, the lines
        are judged by the shipped gates. A report alone has no trials: JUnit and Markdown then name
        the samples behind each gate, and the page shows the numbers.
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
        "--report", type=Path, metavar="FILE", help="the report of these results (beside them)"
    )
    add_groups(parser, {"plug-ins": {"--plugin": INPUTS["--plugin"]}})
    add_form_options(parser)
    parser.add_argument("--html", type=Path, metavar="FILE", help="write the page")
    parser.add_argument(
        "--fail-on-inconclusive", action="store_true", help="JUnit: open gates are errors"
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)
    add_plugins(getattr(options, "plugin", ()))
    forms = forms_of(options)
    if options.html is not None:
        forms = (*forms, WantedForm(options.html, write_html))
    if not forms:
        raise UsageError(
            "-o: in which form? Give -o FILE, --html FILE, --junit FILE or --markdown FILE"
        )
    check_forms(forms)
    read = file_of(options.run).absolute()
    for form in forms:
        if form.path.absolute() == read:
            raise UsageError(f"{form.path}: is what is read: choose another place")
    finished = open_finished(
        options.run, options.report, fail_on_inconclusive=options.fail_on_inconclusive
    )
    write_forms(finished, forms)
    for form in forms:
        print(one_line(str(form.path)))
    return 0
