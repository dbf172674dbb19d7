"""`make bench`: every module of this folder, or those that are named, in one table."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

APART = {"peers", "stub_server"}  # needs more than is installed; is no measurement


def main() -> None:
    every = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    every = [name for name in every if name not in APART]
    modules = sys.argv[1:] or every
    print(f"{'measured':<52}{'ratio':>8}   bound")
    for module in modules:
        for what, ratio, bound in import_module(f"bench.{module}").rows():
            print(f"{what:<52}{ratio:>8}   {bound}")


if __name__ == "__main__":
    main()
