"""`callmark baseline set`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from callmark.cli.options import CommandParser
from callmark.errors import BadInput, UsageError
from callmark.reports.layout import one_line

BASELINE = Path("baseline.jsonl")
BLOCK = 1 << 20


def build_parser() -> CommandParser:
    parser = CommandParser(
        "baseline set",
        """
        Keep the results of a run as the baseline for later ones: they are read once to make sure
        that they are complete, and copied together with the specs of their tools. `callmark run
        --baseline FILE` then compares the new results with them; `baseline: FILE` in a
        callmark.yaml does so every time.
        """,
        """
        callmark baseline set runs/latest
        callmark baseline set runs/search-7 --out baselines/july.jsonl
        """,
    )
    parser.add_argument(
        "run", type=Path, metavar="RUN", help="results file, or a folder with results.jsonl"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=BASELINE,
        metavar="FILE",
        help="where to keep it (default: baseline.jsonl)",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.run.offers import ToolsOfResults, specs_beside, store_specs
    from callmark.store.files import atomic_writer, check_writable, open_input
    from callmark.store.runs import results_of

    results, kept = results_of(options.run), options.out
    if results.absolute() == kept.absolute():
        raise UsageError(f"{kept}: is the file of that run: choose another --out")
    check_writable(kept)
    # A baseline is compared with for months: what is wrong with it is said now.
    statuses, tools = _looked_at(results)
    if not statuses:
        raise BadInput(f"{results}: has no results to keep")
    stored = ToolsOfResults(results)
    for sha256 in sorted(tools):
        if specs_beside(results, sha256).is_file():
            store_specs(kept, stored.of(sha256).registry)
    with open_input(results) as source, atomic_writer(kept) as target:
        while block := source.read(BLOCK):
            target.write(block)
    name = one_line(str(kept))
    print(f"{name}: {sum(statuses.values())} trials, {statuses['error']} of them errors")
    if statuses["error"]:
        print("  their samples cannot be compared, and over 2 % of such pairs decide nothing")
    print(f"next: callmark run --baseline {name}")
    return 0


def _looked_at(results: Path) -> tuple[Counter[str], set[str]]:
    """How its trials ended, and the hashes of the tools that they were made with."""
    from callmark.store.recorded import RecordedAnswer, read_recorded

    statuses: Counter[str] = Counter()
    tools: set[str] = set()
    for line in read_recorded(results):
        ours = line if isinstance(line, RecordedAnswer) else None
        statuses["ok" if ours is None else ours.status] += 1
        if ours is not None and ours.fingerprints is not None:
            tools.add(ours.fingerprints.tool_registry_sha256 or "")
    return statuses, tools - {""}
