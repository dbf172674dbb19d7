"""A finished run as the forms of a report see it: the report, and its trials where they are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, get_args

import msgspec

from callmark.errors import PluginError, UsageError
from callmark.records.report import GateOutcome, Report
from callmark.records.results import Result, Scores
from callmark.records.seams import PluginRow
from callmark.records.statements import GOOD, Statement, StatementLabel, Tier
from callmark.store.files import atomic_writer, check_writable, read_results
from callmark.summary.failing import why_failed
from callmark.summary.metrics import CrossScore, label_words

ORDER: tuple[StatementLabel, ...] = get_args(StatementLabel)
SHOWN_FLAGS = 20  # of one trial, where trials are listed


class ListedFlag(msgspec.Struct, frozen=True, kw_only=True):
    """One flag with what the answer says there. `call`, `path`: the leaf that says otherwise."""

    sample_id: str
    trial: int
    text: str
    label: StatementLabel
    rule: str
    tier: Tier
    because: str
    call: int | None = None
    path: str | None = None


class RuleCount(msgspec.Struct, frozen=True):
    label: StatementLabel
    rule: str
    tier: Tier | None
    statements: int


class StatementList(msgspec.Struct, frozen=True):
    """Labels and rules that occur, in the order of the labels; flags in the order of the run,
    the firm ones first."""

    trials: int
    statements: int
    by_label: dict[StatementLabel, int]
    by_rule: tuple[RuleCount, ...]
    flags: tuple[ListedFlag, ...]


class TierCounts(msgspec.Struct, frozen=True):
    """How many statements of one trial are good, flagged by a firm or an advisory rule, and
    unchecked; what only repeats the user or claims nothing is none of these."""

    good: int
    firm: int
    advisory: int
    unchecked: int


def list_statements(results: Iterable[Result]) -> StatementList:
    """One pass over the trials."""
    counts: Counter[tuple[StatementLabel, str, Tier | None]] = Counter()
    firm: list[ListedFlag] = []
    advisory: list[ListedFlag] = []
    trials = 0
    for result in results:
        trials += 1
        for one in () if result.scores is None else result.scores.statements:
            counts[one.label, one.rule, one.tier] += 1
        for flag in flags_of(result):
            (firm if flag.tier == "firm" else advisory).append(flag)
    labels: Counter[StatementLabel] = Counter()
    for (label, _, _), count in counts.items():
        labels[label] += count
    return StatementList(
        trials,
        counts.total(),
        {label: labels[label] for label in ORDER if labels[label]},
        tuple(RuleCount(*key, counts[key]) for key in sorted(counts, key=_rank)),
        (*firm, *advisory),
    )


def _rank(key: tuple[StatementLabel, str, Tier | None]) -> tuple[int, str, str]:
    label, rule, tier = key
    return ORDER.index(label), rule, tier or ""


def flags_of(result: Result) -> Iterator[ListedFlag]:
    answer = result.model_output.encode("utf-8", "surrogatepass")
    for one in () if result.scores is None else result.scores.statements:
        if one.tier is not None:
            yield ListedFlag(
                sample_id=result.sample_id,
                trial=result.trial,
                text=answer[one.start : one.end].decode("utf-8", "replace"),
                label=one.label,
                rule=one.rule,
                tier=one.tier,
                because=one.because,
                call=one.call,
                path=one.path,
            )


def count_tiers(scores: Scores) -> TierCounts:
    good = firm = advisory = unchecked = 0
    for one in scores.statements:
        good += one.label in GOOD
        firm += one.tier == "firm"
        advisory += one.tier == "advisory"
        unchecked += one.label == "unchecked"
    return TierCounts(good, firm, advisory, unchecked)


def explain_firm(scores: Scores | None, told: str = "") -> tuple[str, ...]:
    """The sentences of the firm flags of a trial that are not `told` already: the first ones, and
    how many more there are."""
    statements = () if scores is None else scores.statements
    found = [one for one in statements if one.is_firm and explain_flag(one) not in told]
    sentences = [explain_flag(one) for one in found[:SHOWN_FLAGS]]
    if len(found) > SHOWN_FLAGS:
        sentences.append(f"and {len(found) - SHOWN_FLAGS} more flags")
    return tuple(sentences)


def explain_flag(one: Statement | ListedFlag) -> str:
    """`wrong record: says “257”; call 0 /flights/0/price has 120; …`"""
    return f"{label_words(one.label)}: {one.because}"


LISTED_TRIALS = 1000  # failing trials that a form names; the number of all stands beside them


class FinishedRun(msgspec.Struct, frozen=True, kw_only=True):
    """`results`: the file with the trials; None: there is only the report. `cross_score` gives
    the distribution of chance that a page shows beside the answers' own."""

    report: Report
    results: Path | None = None
    cross_score: CrossScore | None = None
    fail_on_inconclusive: bool = False

    @property
    def gates(self) -> tuple[GateOutcome, ...]:
        """All of them, the budget that a clock measured last."""
        budget = self.report.timing.perf_budget
        return self.report.gates if budget is None else (*self.report.gates, budget)

    def trials(self) -> Iterator[Result]:
        """Every trial, one at a time; none where there is only a report."""
        return iter(()) if self.results is None else read_results(self.results)

    def file_of_trials(self, form: str) -> Path:
        if self.results is None:
            raise UsageError(f"{form}: needs the trials, a report has none: name the results file")
        return self.results


class FailedTrial(msgspec.Struct, frozen=True):
    """`trial` None: a report names only the sample. `lost`: infrastructure failed, not a model.
    `flags`: the sentences of its firm flags that no reason tells already."""

    sample_id: str
    trial: int | None
    reasons: tuple[str, ...]
    lost: bool = False
    flags: tuple[str, ...] = ()


class FailedTrials(msgspec.Struct, frozen=True):
    count: int
    first: tuple[FailedTrial, ...]


def failed_trials(finished: FinishedRun) -> FailedTrials:
    """Read as a stream: the first are kept, all are counted. Without trials, what the report
    says about the samples behind each shortfall."""
    if finished.results is None:
        return _of_report(finished.report)
    count, warnings = 0, finished.report.warning_gates
    first: list[FailedTrial] = []
    left_out = finished.report.in_quarantine
    for result in read_results(finished.results):
        reasons = why_failed(result, warnings, finished.report.header.gates)
        if not reasons or (result.sample_id in left_out and result.scores is not None):
            continue
        count += 1
        if len(first) < LISTED_TRIALS:
            lost = result.scores is None
            flags = explain_firm(result.scores, told="\n".join(reasons))
            first.append(FailedTrial(result.sample_id, result.trial, reasons, lost, flags))
    return FailedTrials(count, tuple(first))


def _of_report(report: Report) -> FailedTrials:
    short: dict[str, list[str]] = {}
    binding = {outcome.name for outcome in report.gates} - report.warning_gates
    for name, failing in report.failing.items():
        if name not in binding:
            continue
        for sample_id in failing.sample_ids:
            short.setdefault(sample_id, []).append(name)
    found = [
        FailedTrial(sample_id, None, (f"short of {', '.join(names)}",))
        for sample_id, names in short.items()
    ]
    lost = [
        FailedTrial(one.sample_id, one.trial, (f"not scored: {one.error}",), lost=True)
        for one in report.errors.first
    ]
    both = [*found, *lost]
    return FailedTrials(len(both), tuple(both[:LISTED_TRIALS]))


Writer = Callable[[FinishedRun, BinaryIO], None]


def write_json(finished: FinishedRun, stream: BinaryIO) -> None:
    stream.write(msgspec.json.format(msgspec.json.encode(finished.report), indent=2) + b"\n")


# Where the writer of each form is: a run loads those that somebody asked for.
FORMATS: dict[str, str] = {
    ".html": "callmark.reports.html.page:write_html",
    ".xml": "callmark.reports.junit:write_junit",
    ".md": "callmark.reports.markdown:write_markdown",
    ".csv": "callmark.reports.tables:write_csv",
    ".parquet": "callmark.reports.tables:write_parquet",
    ".json": "callmark.reports.finished_run:write_json",
}
_OF_TRIALS = frozenset({".csv", ".parquet"})


class WantedForm(msgspec.Struct, frozen=True):
    """A file that somebody asked for, and what writes it. `of_trials`: it holds nothing but
    trials: without them there is nothing to write."""

    path: Path
    write: Writer
    of_trials: bool = False


def wanted_form(path: Path, form: str | None = None, added: Sequence[PluginRow] = ()) -> WantedForm:
    """`form`: one of FORMATS, by default the ending of the name; an unknown one is refused before
    anything is run. `added`: the reports of plug-ins, which `NAME:FILE` chooses too."""
    for row in added:
        own = str(row.given["ending"]).lower()
        if own in FORMATS:
            raise UsageError(f"{row.home}: report {row.name}: {own} is a form of callmark's own")
        name, colon, file = str(path).partition(":")
        if colon and file and name == row.name:
            return WantedForm(Path(file), _write_with(row))
        if path.name.lower().endswith(own):
            return WantedForm(path, _write_with(row))
    ending = form or path.suffix.lower()
    if ending not in FORMATS:
        known = ", ".join((*FORMATS, *(str(row.given["ending"]) for row in added)))
        raise UsageError(f"-o: {path}: cannot tell the format from the name; it can end in {known}")
    module, _, name = FORMATS[ending].partition(":")
    return WantedForm(path, getattr(import_module(module), name), ending in _OF_TRIALS)


def _write_with(row: PluginRow) -> Writer:
    def write(finished: FinishedRun, stream: BinaryIO) -> None:
        written = row.target(finished)
        if isinstance(written, str):
            written = written.encode("utf-8", "surrogatepass")
        if not isinstance(written, bytes):
            what = f"must return text or bytes, not {type(written).__name__}"
            raise PluginError(f"{row.home}: the report {row.name} {what}")
        stream.write(written)

    return write


def check_forms(forms: Sequence[WantedForm]) -> None:
    for form in forms:
        check_writable(form.path)


def write_forms(finished: FinishedRun, forms: Sequence[WantedForm]) -> None:
    for form in forms:
        with atomic_writer(form.path) as stream:
            form.write(finished, stream)
