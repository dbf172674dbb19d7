"""`callmark dataset add`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from callmark.cli.options import CommandParser
from callmark.reports.layout import Block, line, write

if TYPE_CHECKING:
    from callmark.datasets.add import Added


def build_parser() -> CommandParser:
    parser = CommandParser(
        "dataset add",
        """
        Turn a failure from a run into a sample, so that every later run asks it
        again.

        The sample gets the prompt, user turns and metadata of the trial. The results
        that it was served become fixtures that only it sees (added.jsonl in
        --fixtures).

        The expected calls are those in the metadata; if there are none, the observed
        ones are put there for you to edit. Existing entries are not changed. A
        dataset that does not exist is created.
        """,
        """
        callmark dataset add dataset.jsonl --from-trace run/ search-01 --id search-01b --fixtures f
        callmark dataset add bugs.jsonl --from-trace results.jsonl chat-7 --trial 2 --fixtures f/
        """,
    )
    parser.add_argument("dataset", type=Path, metavar="DATASET")
    parser.add_argument(
        "--from-trace",
        nargs=2,
        required=True,
        metavar=("RUN", "ID"),
        help="results file, folder with results.jsonl, or a log; and the sample's id in it",
    )
    parser.add_argument(
        "--trial", type=int, default=0, metavar="N", help="which trial (default: 0)"
    )
    parser.add_argument(
        "--fixtures", type=Path, metavar="DIR", help="folder to keep the served results in"
    )
    parser.add_argument("--id", metavar="NEW", help="id of the new sample (default: the same)")
    parser.add_argument(
        "--registry",
        metavar="PATH",
        help="tool specs, a file or a folder (default: those of the run)",
    )
    return parser


def main(arguments: list[str]) -> int:
    options = build_parser().parse_args(arguments)

    from callmark.cli.score import results_of_log
    from callmark.datasets.add import add_from_trace
    from callmark.run.offers import ToolsOfResults
    from callmark.store.files import find_result
    from callmark.store.runs import results_of

    run, sample_id = Path(options.from_trace[0]), options.from_trace[1]
    with results_of_log(run) as scored:
        results = scored or results_of(run)
        number, result = find_result(results, sample_id, options.trial)
        tools = ToolsOfResults(results, options.registry, instead=options.registry is not None)
        added = add_from_trace(
            options.dataset,
            result,
            fixtures=options.fixtures,
            new_id=options.id,
            registry=tools.of(result.fingerprints.tool_registry_sha256).registry,
            where=f"{run if scored else f'{results}:{number}'}: {sample_id}",
        )
    write(_blocks(added, options.fixtures), sys.stdout)
    return 0


def _blocks(added: Added, folder: Path | None) -> Iterator[Block]:
    yield line(f"{added.dataset}:{added.line}: {added.sample_id} is added")
    if added.fixtures is not None:
        yield line(f"{added.fixtures}: {added.fixtures_added} fixtures are added")
    if added.guessed_calls:
        calls = f"the {added.guessed_calls} calls that were observed"
        yield line(f"call_sequence holds {calls}: edit what is wrong in it", "warn")
    for call in added.without_result:
        yield line(f"expected, but not called in that trial, so no result is known: {call}", "warn")
    yield line()
    yield line("next", "strong")
    fixtures = "" if folder is None else f" --fixtures {folder}"
    yield line(f"callmark dataset seal {added.dataset}{fixtures}", indent=2)
