"""`make bench`: every module of this folder, or those that are named, in one table.
`--into COMMAND` writes them into that section of RESULTS.md."""

from __future__ import annotations

import argparse
import operator
import subprocess
import sys
from importlib import import_module
from pathlib import Path

from bench.results import ORDER, Row, write_table

APART = {"peers", "results", "stub_server"}  # needs more than is installed; is no measurement
IS_MET = {"<=": operator.le, ">=": operator.ge}


def verdict(figure: str, bound: str) -> str:
    """Whether a figure keeps its bound, in words; nothing where there is none."""
    if not bound:
        return ""
    sign, limit = bound.split()
    return "met" if IS_MET[sign](float(figure), float(limit)) else "NOT MET"


def measured(name: str, into: str | None) -> None:
    """Each row is printed as soon as it is known; the table is written when it is whole."""
    module = import_module(f"bench.{name}")
    rows: list[Row] = []
    for what, figure, bound in module.rows():
        row = Row(what, figure, bound, verdict(figure, bound))
        rows.append(row)
        print(f"{what:<60}{figure:>8}   {bound:<8}{row.verdict}".rstrip(), flush=True)
    if into is not None:
        write_table(into, name, rows, getattr(module, "NOTES", ()))


def main() -> None:
    every = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("modules", nargs="*", help="all but peers, if none is named")
    parser.add_argument("--into", choices=ORDER, help="the section of RESULTS.md to write")
    given = parser.parse_args()
    names = given.modules or [name for name in every if name not in APART]
    if len(names) == 1:
        print(f"{'measured':<60}{'figure':>8}   bound")
        measured(names[0], given.into)
        return
    # Each in a process of its own: the peak of a child is never less than what its parent held.
    into = [] if given.into is None else ["--into", given.into]
    for name in names:
        subprocess.run([sys.executable, "-m", "bench", name, *into], check=True)


if __name__ == "__main__":
    main()
