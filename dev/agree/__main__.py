"""`make agree`: measure every rule on real answers. Exit 1 if a tier is not earned."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import msgspec

from callmark.records.statements import RULES, Judgement, unearned_tiers
from callmark.store.files import atomic_writer
from dev.agree.counts import Agreement, Job, measure, put_together
from dev.agree.material import EPISODES, HELD_BACK, LABELLED
from dev.agree.page import document
from dev.agree.trail import measure_trail
from dev.agree.written import FILES, measure_written

DOCS = Path(__file__).parents[2] / "docs"
PAGE, COUNTS, JUDGEMENTS = DOCS / "agreement.md", DOCS / "agreement.json", DOCS / "judgements.jsonl"
MOST = 100  # mutations of each kind in each half of each source


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    real = os.environ.get("CALLMARK_REAL_DATA")
    if not real or not Path(real).is_dir():
        print("make agree: set CALLMARK_REAL_DATA to the folder of the real material")
        return 2
    agreement = measure_all(
        Path(real),
        options.jobs,
        held_back=options.open_held_back,
        most=10 if options.quick else options.most,
        limit=30 if options.quick else None,
    )
    page = document(agreement)
    if options.quick:
        print(page)
    else:
        for path, data in ((PAGE, page.encode()), (COUNTS, encode(agreement))):
            with atomic_writer(path) as stream:
                stream.write(data)
    problems = unearned_tiers(agreement, {rule.name: rule.tier for rule in RULES.values()})
    for problem in problems:
        print(problem)
    return int(bool(problems))


def measure_all(
    folder: Path, jobs: int, *, held_back: bool, most: int, limit: int | None
) -> Agreement:
    sources = [*EPISODES, *(HELD_BACK if held_back else ()), *LABELLED]
    wanted = [Job(one.name, most, limit) for one in sources]
    parts = []
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for done, part in enumerate(pool.map(partial(measure, folder), wanted), start=1):
            parts.append(part)
            print(f"{done} of {len(wanted)}", file=sys.stderr)
    written = [measure_written(half) for half in FILES]
    return put_together(parts, read_judgements(JUDGEMENTS), written, measure_trail(folder))


def read_judgements(path: Path) -> list[Judgement]:
    """What readers said of statements, as `callmark agree --judgements` writes it."""
    if not path.exists():
        return []
    return msgspec.json.Decoder(Judgement).decode_lines(path.read_bytes())


def encode(agreement: Agreement) -> bytes:
    return msgspec.json.format(msgspec.json.encode(agreement), indent=1) + b"\n"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m dev.agree", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="30 answers a source; prints the page")
    parser.add_argument(
        "--open-held-back",
        action="store_true",
        help="also the domains that no rule was written for, reported alone",
    )
    parser.add_argument(
        "--most", type=int, default=MOST, metavar="N", help="mutations of each kind in each half"
    )
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
