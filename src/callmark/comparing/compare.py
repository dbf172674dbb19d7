"""`callmark compare`: two runs from their files to one comparison."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from callmark.comparing.opening import file_of, is_report
from callmark.config import RunConfig, load_config
from callmark.core.compare import CompareOptions, check_primary, compare_sides
from callmark.core.compare_records import Comparison
from callmark.core.compare_reports import ReportValues, compare_reports
from callmark.core.compare_side import Side
from callmark.core.jsontext import Json
from callmark.core.protocols import Progress, Standing
from callmark.core.results import Result
from callmark.core.trial_keys import ConflictingResults
from callmark.errors import BadInput, UsageError
from callmark.running.conflicts import located
from callmark.running.rescore import rescore
from callmark.scorers.score import SCORER_VERSION
from callmark.store.files import atomic_writer
from callmark.store.lines import read_results
from callmark.store.report_file import read_json_record


class Tools(msgspec.Struct, frozen=True):
    """With which tools arguments are checked again where a run has stored none beside its results;
    None: the built-in ones. `instead`: in any case, because somebody said so."""

    registry: str | None = None
    allowlist: str | None = None
    instead: bool = False


def compare_runs(
    a: Path,
    b: Path,
    options: CompareOptions,
    *,
    tools: Tools | None = None,
    progress: Progress | None = None,
) -> Comparison:
    """B against A, sample by sample. Both are scored again by the installed scorer, unless the
    options keep what they have."""
    check_primary(options.primary)
    path_a, path_b = file_of(a), file_of(b)
    kinds = is_report(path_a), is_report(path_b)
    if all(kinds):
        if options.common:
            raise UsageError("--common: two reports hold no samples: name the results of both")
        return compare_reports(
            _report_of(path_a), _report_of(path_b), (str(path_a), str(path_b)), options
        )
    if any(kinds):
        report, results = (path_a, path_b) if kinds[0] else (path_b, path_a)
        raise BadInput(
            f"{report}: is a report, {results} are results: name the results of both"
            " (paired), or both reports (differences only)"
        )
    config = _config(tools or Tools())
    said: list[str] = []
    side_a = _side(path_a, config, options, progress, said)
    side_b = _side(path_b, config, options, progress, said)
    options = msgspec.structs.replace(options, scorer_version=SCORER_VERSION)
    found = compare_sides(side_a, side_b, options)
    return msgspec.structs.replace(found, warnings=(*found.warnings, *dict.fromkeys(said)))


def results_compared(
    run: Path, options: CompareOptions, tools: Tools | None = None
) -> Iterator[Result]:
    """The results of one side once more, scored as `compare_runs` scores them; none of a report."""
    path = file_of(run)
    if is_report(path):
        return iter(())
    if options.as_stored:
        return read_results(path)
    return rescore(path, _config(tools or Tools())).results


def write_comparison(path: Path, comparison: Comparison) -> None:
    with atomic_writer(path) as stream:
        stream.write(comparison_bytes(comparison))


def comparison_bytes(comparison: Comparison) -> bytes:
    return msgspec.json.format(msgspec.json.encode(comparison), indent=2) + b"\n"


def _side(
    path: Path,
    config: RunConfig,
    options: CompareOptions,
    progress: Progress | None,
    said: list[str],
) -> Side:
    """One side, read to its end. What a person should know of it is added to `said`."""
    # The level of chance is not stored: scores of another scorer and ours do not mix.
    again = None if options.as_stored else rescore(path, config)
    side = Side(str(path), None if again is None else again.cross_score)
    done = 0
    for done, result in enumerate(again.results if again else read_results(path), start=1):
        side.add(result)
        if progress is not None:
            progress(Standing(done, done))
    if not done:
        raise BadInput(f"{path}: holds no line to compare")
    said += again.warnings() if again else ()
    try:
        _ = side.samples
    except ConflictingResults as conflict:
        raise located(conflict, path) from None
    return side


def _report_of(path: Path) -> ReportValues:
    return read_json_record(path, ReportValues, "report")


def _config(tools: Tools) -> RunConfig:
    """The lines say what they were scored with; no file of the current folder has a say."""
    named: dict[str, Json] = {"registry": tools.registry, "allowlist": tools.allowlist}
    given = {name: value for name, value in named.items() if value is not None}
    config = load_config(Path(os.devnull), given)
    if tools.instead:
        return config
    return msgspec.structs.replace(config, sources={**config.sources, "registry": "config"})
