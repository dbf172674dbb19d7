"""The report that belongs to a results file: the one beside it, or one made from its lines."""

from __future__ import annotations

from pathlib import Path

import msgspec

from toolmark.config import RunConfig
from toolmark.core.belonging import differing_fingerprint
from toolmark.core.chance import CrossScore
from toolmark.core.jsontext import NotJson
from toolmark.core.report import Report, ReportHeader
from toolmark.core.results import Result
from toolmark.core.summary import Summariser
from toolmark.core.trial_keys import ConflictingResults
from toolmark.errors import BadInput
from toolmark.running.conflicts import located
from toolmark.running.evaluate import Evaluator
from toolmark.running.offers import open_offers
from toolmark.running.run import rules_of
from toolmark.store.jsonl import is_blank, lines_of, open_input
from toolmark.store.lines import decode_result, read_results
from toolmark.store.problems import typed_problem

REPORT = "report.json"


class Reported(msgspec.Struct, frozen=True):
    """`note`: what a person should know about where the report comes from."""

    report: Report
    results: Path
    cross_score: CrossScore
    note: str = ""


def open_reported(results: Path, named: Path | None, config: RunConfig) -> Reported:
    """`named` None: the report beside the results, if there is one and it belongs to them."""
    cross_score = Evaluator(config).cross_score(
        open_offers(config.registry, config.allowlist).registry
    )
    first, trials = _first_and_count(results)
    beside = results.with_name(REPORT)
    note = f"{results}: no {REPORT} beside it: its lines were summarised by the gates in force here"
    if named is not None or beside.is_file():
        path = named or beside
        report = read_whole_report(path)
        why = _stranger(report, first, trials)
        if why is None:
            return Reported(report, results, cross_score)
        if named is not None:
            raise BadInput(f"{named}: does not belong to {results}: {why}")
        note = f"{beside}: does not belong to {results} ({why}): its lines were summarised instead"
    return Reported(_made(results, config, cross_score), results, cross_score, note)


def read_whole_report(path: Path) -> Report:
    with open_input(path) as stream:
        data = stream.read()
    try:
        return msgspec.json.decode(data.removeprefix(b"\xef\xbb\xbf"), type=Report)
    except msgspec.ValidationError as error:
        raise BadInput(f"{path}: is no report of this version: {typed_problem(error)}") from None
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise BadInput(f"{path}: is no report: {error}") from None


def _first_and_count(results: Path) -> tuple[Result, int]:
    first, count = None, 0
    with open_input(results) as stream:
        for line in lines_of(stream, str(results)):
            if is_blank(line.data):
                continue
            count += 1
            if first is None:
                try:
                    first = decode_result(line.json)
                except NotJson as error:
                    raise BadInput(f"{results}:{line.number}: {error}") from None
    if first is None:
        raise BadInput(f"{results}: holds no result")
    return first, count


def _stranger(report: Report, first: Result, trials: int) -> str | None:
    """Why a report is not about these results; None: it is."""
    if report.counts.trials != trials:
        return f"{report.counts.trials} trials there, {trials} here"
    differing = differing_fingerprint(report.header, first.fingerprints)
    return None if differing is None else f"another {differing}"


def _made(results: Path, config: RunConfig, cross_score: CrossScore) -> Report:
    summariser = Summariser(cross_score)
    for result in read_results(results):
        summariser.add(result)
    header = ReportHeader(min_eligible_for_gates=config.min_eligible_for_gates)
    try:
        return summariser.report(header, rules_of(config))
    except ConflictingResults as conflict:
        raise located(conflict, results) from None
