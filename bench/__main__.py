"""`make bench`: every module of this folder that has `rows()`, in one table."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path


def main() -> None:
    modules = sorted(path.stem for path in Path(__file__).parent.glob("[!_]*.py"))
    print(f"{'measured':<52}{'ratio':>8}   bound")
    for module in modules:
        for what, ratio, bound in import_module(f"bench.{module}").rows():
            print(f"{what:<52}{ratio:>8}   {bound}")


if __name__ == "__main__":
    main()
