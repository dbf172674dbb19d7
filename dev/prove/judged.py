"""`python -m dev.prove.judged REPORT GATE …`: were these gates judged, and what did they say?

A gate without a sample behind it (`n/a`), or with too few, fails no run. A hook that exists for
this gate has then checked nothing, and must not pass."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from callmark.records.report import GateOutcome

PASSED, FAILED, USAGE, OPEN = 0, 1, 2, 5
_CODE = {"pass": PASSED, "warn": PASSED, "fail": FAILED, "inconclusive": OPEN, "n/a": OPEN}


class _Judged(msgspec.Struct, frozen=True):
    """What is read of a report."""

    gates: tuple[GateOutcome, ...]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser("python -m dev.prove.judged", description=__doc__)
    parser.add_argument("report", type=Path, help="report.json of a run")
    parser.add_argument("gates", nargs="+", metavar="GATE")
    options = parser.parse_args(arguments)
    report = msgspec.json.decode(options.report.read_bytes(), type=_Judged)
    outcomes = {outcome.name: outcome for outcome in report.gates}
    unknown = [name for name in options.gates if name not in outcomes]
    if unknown:
        print(f"{options.report}: gates: no outcome of {', '.join(unknown)}")
        return USAGE
    judged = [outcomes[name] for name in options.gates]
    for outcome in judged:
        print(_line(outcome))
    codes = {_CODE[outcome.status] for outcome in judged}
    return next(code for code in (FAILED, OPEN, PASSED) if code in codes)


def _line(outcome: GateOutcome) -> str:
    value = "none" if outcome.value is None else f"{outcome.value:.4g}"
    bound = f"{outcome.op} {outcome.bound:.4g}"
    reason = f" ({outcome.reason})" if outcome.reason else ""
    status = outcome.status.upper()
    return f"{status:<12} {outcome.name}: {value}, {bound}, n = {outcome.n}{reason}"


if __name__ == "__main__":
    raise SystemExit(main())
