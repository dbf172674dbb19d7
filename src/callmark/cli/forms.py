"""Which files a command writes beside its report, and the summary of a step on GitHub."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from callmark.errors import UsageError
from callmark.reports.forms import FORMATS, WantedForm, check_forms, wanted_form
from callmark.reports.junit import write_junit
from callmark.reports.markdown import write_markdown
from callmark.store.files import atomic_writer, check_writable

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"
OWN_FORMS = (".json", ".md", ".html")


def add_form_options(parser: argparse.ArgumentParser) -> None:
    section = parser.add_argument_group("other forms of the report")
    _add_o(section, "also write this", FORMATS)
    section.add_argument("--junit", type=Path, metavar="FILE", help="write JUnit XML")
    section.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write it for a pull request"
    )


def _add_o(section: argparse._ArgumentGroup, what: str, endings: Iterable[str]) -> None:
    section.add_argument(
        "-o",
        dest="forms",
        action="append",
        default=[],
        type=Path,
        metavar="FILE",
        help=f"{what}, the form by its ending ({', '.join(endings)}); may be repeated",
    )


def forms_of(options: argparse.Namespace, *, has_trials: bool = True) -> tuple[WantedForm, ...]:
    """The forms that were asked for; that they can be written is checked now. `has_trials`: the
    command writes the lines that a table is made of."""
    named = {options.junit: write_junit, options.markdown: write_markdown}
    forms = [wanted_form(path) for path in options.forms]
    forms += [WantedForm(path, writer) for path, writer in named.items() if path is not None]
    if not has_trials and any(form.of_trials for form in forms):
        raise UsageError("-o: a table is made of the scored lines: say with --out where they go")
    check_forms(forms)
    return tuple(forms)


def add_own_forms(parser: argparse.ArgumentParser, what: str) -> None:
    """For what is no report of a run: JSON, Markdown, a page."""
    section = parser.add_argument_group("output")
    _add_o(section, f"write the {what}", OWN_FORMS)
    section.add_argument("--json", type=Path, metavar="FILE", help=f"write the {what} as JSON")
    section.add_argument(
        "--markdown", type=Path, metavar="FILE", help="write it for a pull request"
    )
    section.add_argument("--html", type=Path, metavar="FILE", help="write a page with both sides")


def own_forms_of(options: argparse.Namespace) -> dict[Path, str]:
    """Files and their endings; that they can be written is checked now."""
    forms = {path: path.suffix.lower() for path in options.forms}
    for path, ending in forms.items():
        if ending not in OWN_FORMS:
            known = ", ".join(OWN_FORMS)
            raise UsageError(
                f"-o: {path}: cannot tell the form from the name; it may end in {known}"
            )
    named = {options.json: ".json", options.markdown: ".md", options.html: ".html"}
    forms |= {path: ending for path, ending in named.items() if path is not None}
    for path in forms:
        check_writable(path)
    return forms


def write_own_forms(
    forms: Mapping[Path, str], writers: Mapping[str, Callable[[BinaryIO], object]]
) -> None:
    for path, ending in forms.items():
        with atomic_writer(path) as stream:
            writers[ending](stream)


def append_step_summary(markdown: Callable[[], str]) -> None:
    """On GitHub a step may say something in Markdown. If that cannot be written, the run is as
    good as it was."""
    path = os.environ.get(STEP_SUMMARY)
    if not path:
        return
    text = f"{markdown()}\n"
    try:
        with Path(path).open("a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError as error:
        reason = error.strerror or error
        print(f"warning: {STEP_SUMMARY}: {path}: not written: {reason}", file=sys.stderr)
