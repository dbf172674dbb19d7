"""`make prove`: plant faults, run, compare. Exit 1 on any difference."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from callmark.store.files import atomic_writer
from dev.prove.experiments import EVERY_KIND, Finding, prove_seed
from dev.prove.measuring import Setting
from dev.prove.page import document, terminal

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
SEEDS, WHOLE = 20, Setting(total=400, enough=15, stated=30)
QUICK_SEEDS, QUICK = 1, Setting(total=120, enough=3, stated=24)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    is_own = any((options.quick, options.seeds, options.total, options.only))
    seeds = options.seeds or (QUICK_SEEDS if options.quick else SEEDS)
    usual = QUICK if options.quick else WHOLE
    setting = Setting(options.total or usual.total, usual.enough, usual.stated)
    findings: list[Finding] = []
    prove = partial(prove_seed, setting=setting, kinds=options.only or EVERY_KIND)
    for found in _proved(prove, range(1, seeds + 1), options.jobs):
        findings += found
        print(f"seed {found[0].seed} of {seeds}", file=sys.stderr)
    for line in terminal(findings):
        print(line)
    differ = any(finding.differences for finding in findings)
    if not is_own and not differ:
        with atomic_writer(PAGE) as stream:
            stream.write(document(findings, setting).encode())
    return int(differ)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m dev.prove", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one seed, small; writes no page")
    parser.add_argument("--seeds", type=_at_least(1), metavar="N", help=f"seeds 1 to N ({SEEDS})")
    parser.add_argument(
        "--total",
        type=_at_least(QUICK.total),
        metavar="N",
        help=f"samples of each dataset ({WHOLE.total})",
    )
    parser.add_argument(
        "--only",
        action="append",
        choices=EVERY_KIND,
        metavar="KIND",
        help="this fault; may be repeated",
    )
    parser.add_argument(
        "--jobs", type=_at_least(1), default=os.cpu_count() or 1, metavar="N", help="processes"
    )
    return parser


def _at_least(least: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {text}")
        return int(text)

    return number


def _proved(
    prove: Callable[[int], list[Finding]], seeds: Sequence[int], jobs: int
) -> Iterator[list[Finding]]:
    """Seed by seed, in their order."""
    if jobs == 1 or len(seeds) == 1:
        yield from map(prove, seeds)
        return
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield from pool.map(prove, seeds)


if __name__ == "__main__":
    raise SystemExit(main())
