"""`callmark baseline set`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.reports.layout import one_line

if TYPE_CHECKING:
    from callmark.records.results import Result

BASELINE = Path("baseline.jsonl")
BLOCK = 1 << 20
_SAME_PAST = (
    "dataset_sha256",
    "tool_registry_sha256",
    "fixtures_sha256",
    "model_fingerprint",
    "runner_fingerprint",
)


def build_parser() -> CommandParser:
    parser = CommandParser(
        "baseline set",
        """
        Keep the results of a run as the baseline that later runs are compared with.

        The results are read once to make sure they are complete, and copied together
        with the specs of their tools. Several runs of one model on the same data
        become one. Their trials are numbered on, so that each sample has a longer
        past.

        `callmark run --baseline FILE` then compares the new results with them.
        `baseline: FILE` in a callmark.yaml does so every time.
        """,
        """
        callmark baseline set runs/latest
        callmark baseline set runs/search-7 --out baselines/july.jsonl
        callmark baseline set runs/search-7 runs/search-8 runs/search-9
        """,
    )
    parser.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="results file, or a folder with results.jsonl; several are kept as one",
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

    runs, kept = [results_of(run) for run in options.runs], options.out
    _refuse_twice([*runs, kept])
    check_writable(kept)
    # A baseline is compared with for months: what is wrong with it is said now.
    statuses: Counter[str] = Counter()
    for results in runs:
        found, tools = _looked_at(results)
        if not found:
            raise BadInput(f"{results}: has no results to keep")
        statuses += found
        stored = ToolsOfResults(results)
        for sha256 in sorted(tools):
            if specs_beside(results, sha256).is_file():
                store_specs(kept, stored.of(sha256).registry)
    with atomic_writer(kept) as target:
        if len(runs) > 1:
            target.writelines(_joined(runs))
        else:
            with open_input(runs[0]) as source:
                while block := source.read(BLOCK):
                    target.write(block)
    name = one_line(str(kept))
    print(f"{name}: {sum(statuses.values())} trials, {statuses['error']} of them errors")
    if statuses["error"]:
        print("  their samples cannot be compared, and over 2 % of such pairs decide nothing")
    print(f"next: callmark run --baseline {name}, with the other options of that run")
    return 0


def _refuse_twice(paths: Sequence[Path]) -> None:
    *runs, kept = (path.resolve() for path in paths)
    if kept in runs:
        raise UsageError(f"{paths[-1]}: is the file of that run: choose another --out")
    for at, run in enumerate(runs):
        if run in runs[:at]:
            raise UsageError(f"{paths[at]}: is named twice: one run is no longer past than it is")


def _joined(runs: Sequence[Path]) -> Iterator[bytes]:
    """The lines of all runs; each sample's trials are numbered on from run to run."""
    import msgspec

    from callmark.store.files import encode_result, read_results

    first: tuple[Path, Result] | None = None
    before: Counter[str] = Counter()
    for run in runs:
        here: Counter[str] = Counter()
        for result in read_results(run):
            first = first or (run, result)
            _refuse_other(first, run, result)
            here[result.sample_id] += 1
            trial = before[result.sample_id] + here[result.sample_id] - 1
            yield encode_result(msgspec.structs.replace(result, trial=trial))
        before += here


def _refuse_other(first: tuple[Path, Result], run: Path, result: Result) -> None:
    """Trials of another model, or on other data, are nobody's past."""
    path, known = first
    for name in _SAME_PAST:
        ours, theirs = (getattr(one.fingerprints, name) for one in (known, result))
        if ours != theirs:
            raise FingerprintMismatch(
                f"{run}: {name}: is {theirs}, but {path} has {ours}. Runs of one model on the same"
                " dataset, tools and fixtures can be kept as one; keep others apart."
            )


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
