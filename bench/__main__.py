"""`make bench`: every module of this folder, or those that are named, in one table."""

from __future__ import annotations

import operator
import sys
from importlib import import_module
from pathlib import Path

APART = {"peers", "stub_server"}  # needs more than is installed; is no measurement
IS_MET = {"<=": operator.le, ">=": operator.ge}


def verdict(figure: str, bound: str) -> str:
    """Whether a figure keeps its bound, in words; nothing where there is none."""
    if not bound:
        return ""
    sign, limit = bound.split()
    return "met" if IS_MET[sign](float(figure), float(limit)) else "NOT MET"


def main() -> None:
    every = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    every = [name for name in every if name not in APART]
    modules = sys.argv[1:] or every
    print(f"{'measured':<56}{'figure':>8}   bound")
    for module in modules:
        for what, figure, bound in import_module(f"bench.{module}").rows():
            print(
                f"{what:<56}{figure:>8}   {bound:<8}{verdict(figure, bound)}".rstrip(), flush=True
            )


if __name__ == "__main__":
    main()
