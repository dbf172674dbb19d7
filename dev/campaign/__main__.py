"""`make campaign`: mutate, spoil, attack, repeat, kill. Exit 1 if anything is found."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from callmark.store.files import atomic_writer
from dev.campaign.page import document, terminal
from dev.campaign.parts import PARTS, QUICK, WHOLE, Findings, jobs_of, parts_done

PAGE = Path(__file__).parents[2] / "docs" / "campaign.md"


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    real = os.environ.get("CALLMARK_REAL_DATA")
    size = QUICK if options.quick else WHOLE
    wanted = [part for part in options.only or PARTS if part not in options.skip]
    jobs = jobs_of(size, options.seed, real, wanted)
    with ProcessPoolExecutor(options.jobs, mp_context=get_context("spawn")) as pool:
        findings = Findings()
        for done, part in enumerate(pool.map(parts_done, jobs), start=1):
            findings.add(part)
            print(f"{done} of {len(jobs)}", file=sys.stderr)
    for line in terminal(findings):
        print(line)
    whole = not (options.quick or options.only) and real is not None
    if whole and not findings.problems:
        with atomic_writer(PAGE) as stream:
            stream.write(document(findings, options.seed, options.skip).encode())
    elif not options.quick and not options.only:
        print("docs/campaign.md is not written: it needs CALLMARK_REAL_DATA and no problem")
    return int(bool(findings.problems))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m dev.campaign", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a small one; writes no page")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="(1)")
    parser.add_argument("--only", action="append", choices=PARTS, metavar="PART", help="this part")
    parser.add_argument(
        "--skip",
        action="append",
        default=[],
        choices=PARTS,
        metavar="PART",
        help="all but this part; the page says so",
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
