"""Scoring again what is already there: results files, or recorded conversations."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import Literal

import msgspec

from callmark.calls.formats import FORMATS, Format
from callmark.calls.registry import Registry
from callmark.config import RunConfig, load_config, with_header
from callmark.datasets.reader import Dataset, open_dataset
from callmark.datasets.schema import metadata_problems
from callmark.errors import BadInput, UsageError
from callmark.plugins import with_formats
from callmark.records.jsontext import Json, digest
from callmark.records.problems import refuse_problems, show_value
from callmark.records.report import GateRule, Report, ReportHeader, Timing, exit_code
from callmark.records.results import Decoding, Fingerprints, Result, ScorerMark, Scoring
from callmark.records.samples import Sample, expectation_of
from callmark.records.seams import Progress, Standing
from callmark.records.trace import Trace, TraceEntry
from callmark.run.conclude import RunOutcome, write_report
from callmark.run.loop import drive_at_once
from callmark.run.offers import Offer, Offers, ToolsOfResults, check_allowed, store_specs
from callmark.run.play import (
    Evaluator,
    ExtractorChoice,
    Origin,
    Played,
    PlaySettings,
    TrialInput,
    opening_messages,
    play,
)
from callmark.run.prepare import rules_of
from callmark.run.resume import (
    compare_pinned,
    locate_conflict,
    provenance,
    refuse_other_pins,
    unasked,
)
from callmark.runners.messages import split_prompt
from callmark.runners.replay import OneRecording, recorded_replies
from callmark.scorers.score import SCORER_VERSION
from callmark.stats.columns import ConflictingResults, KeyIndex
from callmark.store.files import atomic_writer, check_writable, encode_result
from callmark.store.recorded import (
    Recorded,
    RecordedAnswer,
    RecordedIndex,
    RecordedMessages,
    read_recorded,
)
from callmark.summary.metrics import CrossScore
from callmark.summary.summary import Scope, Summariser

NOT_KNOWN = Decoding(
    temperature=None, top_p=None, max_tokens=None, seed=None, max_turns=None, tool_choice=None
)


def score_file(
    path: Path | str,
    config: RunConfig | Mapping[str, Json] | None = None,
    *,
    progress: Progress | None = None,
) -> RunOutcome:
    """Score every line of a results file, or of a file of message lists. With `dataset` in the
    config, prompts and metadata come from there, joined by id; `out` and `report` are written if
    they are named."""
    started = time.perf_counter()
    if not isinstance(config, RunConfig):
        config = load_config(Path(os.devnull), config or {})
    for written in (config.out, config.report):
        if written is not None:
            check_writable(Path(written))
            _refuse_overwriting(Path(path), Path(written))
    with ExitStack() as stack:
        dataset = None
        if config.dataset is not None:
            dataset = stack.enter_context(open_dataset(_dataset_path(config.dataset)))
            config = with_header(config, dataset.header, dataset.header_place)
        rules = rules_of(config)
        scoring = _Scoring(Path(path), config, dataset)
        scoring.compare_pins()
        summariser = Summariser(scoring.cross_score)
        out = None
        if config.out is not None:
            out = stack.enter_context(atomic_writer(Path(config.out)))
        for done, result in enumerate(scoring.results(), start=1):
            if out is not None:
                out.write(encode_result(result))
            summariser.add(result)
            if progress is not None:
                progress(Standing(done, max(done, scoring.expected)))
        if config.out is not None:
            scoring.store_specs(Path(config.out))
        timing = Timing(
            wall_time_sec=time.perf_counter() - started, scoring_sec=scoring.evaluator.seconds
        )
        try:
            report = scoring.report(summariser, rules, timing)
        except ConflictingResults as conflict:
            raise locate_conflict(conflict, Path(path)) from None
    if config.report is not None:
        write_report(Path(config.report), report)
    code = exit_code(
        report,
        fail_on_gate_failure=config.fail_on_gate_failure,
        fail_on_inconclusive=config.fail_on_inconclusive,
    )
    return RunOutcome(report, code)


class Rescored(msgspec.Struct, frozen=True):
    """Every line of a file, scored by the installed scorer, one at a time; what the level of
    chance needs; and, once all lines were read, what there is to say about the tools."""

    cross_score: CrossScore
    results: Iterator[Result]
    warnings: Callable[[], list[str]]


def rescore(path: Path, config: RunConfig) -> Rescored:
    scoring = _Scoring(path, config, None)
    return Rescored(
        scoring.cross_score,
        scoring.results(),
        lambda: [*scoring.tools.warnings(), *scoring.kept_warnings()],
    )


class _Scoring:
    """One file, with or without the dataset that it belongs to."""

    def __init__(self, path: Path, config: RunConfig, dataset: Dataset | None) -> None:
        self._path = path
        self._config = config
        self._dataset = dataset
        self.tools = ToolsOfResults(
            path,
            config.registry,
            config.allowlist,
            instead=config.source_of("registry") == "flag",
        )
        self._offers = self.tools.at_hand
        self._used: dict[str, Registry] = {}
        self._no_tools = Offers(Registry(()), frozenset())
        self._tools_of_lines: dict[str, Offers] = {}
        self.evaluator = Evaluator(config)
        self.cross_score = self.evaluator.cross_score(self._offers.registry)
        self.expected = 0 if dataset is None else dataset.facts.samples
        self._warnings: list[str] = []
        self._partial = False
        self._trials = 0
        self._unloaded: dict[str, None] = {}

    def compare_pins(self) -> None:
        """What the dataset pins and scoring uses: the data and the tools."""
        if self._dataset is None:
            return
        try:
            tools = self._tools_of_first_line()
        except BadInput:
            return  # said with all other lines that cannot be read, when they are read
        computed = Fingerprints(
            dataset_sha256=self._dataset.sha256, tool_registry_sha256=tools.registry.sha256
        )
        header = msgspec.structs.replace(self._dataset.header, fixtures_sha256=None)
        self._warnings += refuse_other_pins(
            self._dataset.header_place,
            header,
            computed,
            compare_pinned(header, computed),
            may_differ=not self._config.fail_on_fingerprint_mismatch,
        )

    def _tools_of_first_line(self) -> Offers:
        return self.tools.of(_registry_of(next(read_recorded(self._path), None)))

    def store_specs(self, results: Path) -> None:
        """The specs of the tools that the lines were scored with, beside where they are written."""
        for registry in self._used.values():
            store_specs(results, registry)

    def results(self) -> Iterator[Result]:
        recorded = self._alone() if self._dataset is None else self._joined(self._dataset)
        for sample, line in recorded:
            self._trials += 1
            offers = self._offers_of(line)
            if offers is not self._no_tools:
                self._used[offers.registry.sha256] = offers.registry
            if isinstance(line, RecordedAnswer) and line.fingerprints is not None:
                yield self._own_line(sample, line, offers)
            else:
                yield self._played(sample, line, offers)

    def _own_line(self, sample: Sample, line: RecordedAnswer, offers: Offers) -> Result:
        """A line that callmark wrote: its trace stays as it is."""
        offer, trace = _as_offered(line, offers.to(sample))
        error = None if line.status == "ok" else line.error or "no reason is given"
        used = line.used_fixtures_sha256 or digest([])
        played = Played(sample, line.trial, trace, used, error)
        result = self.evaluator.result(
            played,
            offer,
            self._origin(line, offers),
            extractor=self._extractor(line),
            scoring=self._scoring(line),
        )
        result = self._with_kept_measures(result, line)
        if line.scoring is None or not line.scoring.redacted:
            return result
        return _with_stored_privacy(result, line)

    def _played(self, sample: Sample, line: Recorded, offers: Offers) -> Result:
        """Anybody else's line: calls may stand in the text, thinking too."""
        registry = offers.registry
        offer = offers.to(sample)
        settings = PlaySettings(
            registry=registry,
            allowed=offers.allowed,
            max_turns=None,
            parse_text=self._config.parse_text,
            formats=self._formats,
        )
        offered = None if offers is self._no_tools else offer.names
        replies = recorded_replies(line, opening_messages(sample), registry.sha256)
        trial = TrialInput(sample, line.trial, offered, offer.tools, registry=offer.registry)
        [played] = drive_at_once(play([trial], OneRecording(replies), None, settings))
        if offered is None:
            offer = _named_in(played.trace, offer)
        extractor = self._extractor(line)
        origin = self._origin(line, offers)
        return self.evaluator.result(played, offer, origin, extractor=extractor)

    @cached_property
    def _formats(self) -> tuple[Format, ...]:
        """Lines of our own need none."""
        return with_formats(FORMATS)

    def _extractor(self, line: Recorded) -> ExtractorChoice | None:
        """A line knows what its dataset and its wrapper had decided, unless somebody decides anew.
        A dataset alone cannot: it does not know the wrapper."""
        if not isinstance(line, RecordedAnswer) or line.span_extractor is None:
            return None
        marks = line.fingerprints
        decided = ExtractorChoice(line.span_extractor, line.span_extractor_by)
        if marks and marks.prompt_wrapper_sha256 and self._config.span_extractor == "auto":
            return decided
        if self._dataset is not None or self._config.source_of("span_extractor") != "default":
            return None
        return decided

    def _scoring(self, line: RecordedAnswer) -> Scoring:
        """What the line was scored with, except where a dataset or an option decides anew."""
        asked = self.evaluator.scoring
        if self._dataset is not None or line.scoring is None:
            return asked
        decided = {
            name: getattr(asked, name)
            for name in Scoring.__struct_fields__
            if self._config.source_of(name) != "default"
        }
        decided["scorers"] = asked.scorers
        return msgspec.structs.replace(line.scoring, **decided).marked(SCORER_VERSION)

    def _with_kept_measures(self, result: Result, line: RecordedAnswer) -> Result:
        """What a scorer said that is not at hand now is kept, not computed again; so is what this
        very scorer said of an answer before personal data were taken out of it."""
        marks = () if line.scoring is None else line.scoring.added
        ours = {mark.name: mark for mark in self.evaluator.scoring.added}
        is_redacted = line.scoring is not None and line.scoring.redacted
        kept = [
            mark
            for mark in marks
            if mark.name not in ours or (is_redacted and mark == ours[mark.name])
        ]
        if result.scores is None or not kept:
            return result
        self._unloaded.update({mark.name: None for mark in kept if mark.name not in ours})
        if self._dataset is not None:  # what it was judged by may be another now
            kept = [mark for mark in kept if mark.name in ours]
        names = [name for mark in kept for name in mark.named()]
        more = {**result.scores.added, **{name: line.more.get(name) for name in names}}
        scorers = sorted(({one.name: one for one in kept} | ours).values(), key=_name_of)
        return msgspec.structs.replace(
            result,
            scores=msgspec.structs.replace(result.scores, more=dict(sorted(more.items()))),
            scoring=_with_scorers(result.scoring, tuple(scorers)),
        )

    def kept_warnings(self) -> list[str]:
        """That the measures of a scorer are as they were, or are not there any more."""
        return [measures_kept(name, self._dataset is None) for name in self._unloaded]

    def _origin(self, line: Recorded, offers: Offers) -> Origin:
        """What a line depends on, with what was put in the place of the dataset or the tools."""
        recorded = line if isinstance(line, RecordedAnswer) else None
        fingerprints = (recorded and recorded.fingerprints) or Fingerprints()
        if self._dataset is not None:
            fingerprints = msgspec.structs.replace(
                fingerprints, dataset_sha256=self._dataset.sha256
            )
        if offers is not self._no_tools:
            fingerprints = msgspec.structs.replace(
                fingerprints, tool_registry_sha256=offers.registry.sha256
            )
        return Origin(fingerprints, (recorded and recorded.decoding) or NOT_KNOWN)

    def _offers_of(self, line: Recorded) -> Offers:
        """The tools that a line is read with: its own, the ones that were named, or none."""
        if not isinstance(line, RecordedMessages):
            return self.tools.of(_registry_of(line))
        if line.tools is None:
            # Another tool of a built-in name may have other arguments: unknown is unchecked.
            named = self._config.registry is not None or self._dataset is not None
            return self._offers if named else self._no_tools
        key = digest(line.tools)
        found = self._tools_of_lines.get(key)
        if found is None:
            registry = Registry.from_specs(line.tools, where=f"{self._path}:{line.line}: tools")
            found = self._tools_of_lines[key] = Offers(registry, frozenset(registry.names))
        return found

    def _alone(self) -> Iterator[tuple[Sample, Recorded]]:
        places = KeyIndex(numbers_only=True)
        line = None
        for line in read_recorded(self._path):
            where = f"{self._path}:{line.line}"
            index = line.index if isinstance(line, RecordedAnswer) else None
            new = len(places) if index is None else index
            place = places.setdefault(line.sample_id, new).value
            if index is not None and place != index:
                known = f"sample {show_value(line.sample_id)} was at {place} on an earlier line"
                raise BadInput(f"{where}: index: is {index}, but {known}")
            yield _sample_of(line, place, where), line
        if line is None:
            raise self._nothing()

    def _joined(self, dataset: Dataset) -> Iterator[tuple[Sample, Recorded]]:
        """In the order of the dataset. Answers to other samples are refused; samples without an
        answer make the run a part of the whole."""
        found = answered = 0
        with RecordedIndex(self._path) as index:
            if not index.count:
                raise self._nothing()
            for sample in dataset.samples():
                trial = 0
                while (line := index.get(sample.sample_id, trial)) is not None:
                    yield sample, line
                    trial += 1
                found += trial
                answered += trial > 0
            if found < index.count:
                raise unasked(index, dataset, index.count - found)
        if answered < dataset.facts.samples:
            missing = dataset.facts.samples - answered
            self._warnings.append(f"{missing} samples of {dataset.name} have no answer here")
            self._partial = True

    def _nothing(self) -> BadInput:
        return BadInput(f"{self._path}: has nothing to score")

    def report(self, summariser: Summariser, rules: tuple[GateRule, ...], timing: Timing) -> Report:
        config, dataset = self._config, self._dataset
        header = ReportHeader(
            dataset_version=None if dataset is None else dataset.header.dataset_version,
            dataset_sha256=None if dataset is None else dataset.sha256,
            integration_span_cap=config.integration_span_cap,
            span_extractor=config.span_extractor,
            min_eligible_for_gates=config.min_eligible_for_gates,
            fail_on_fingerprint_mismatch=config.fail_on_fingerprint_mismatch,
            scorer_version=SCORER_VERSION,
            quarantine=config.judge_quarantine(),
        )
        return summariser.report(
            header,
            rules,
            scope=Scope(
                partial=self._partial,
                errors_allowed=config.errors_allowed(self._trials),
                own_tools=bool(self._tools_of_lines),
            ),
            timing=timing,
            provenance=provenance({}),
            warnings=(
                *(dataset.warnings if dataset else ()),
                *check_allowed(self._offers),
                *self.tools.warnings(),
                *self.kept_warnings(),
                *self._warnings,
            ),
        )


def measures_kept(scorer: str, is_kept: bool = True) -> str:
    did = "are those of the lines" if is_kept else "are left out, because of --in"
    return f"the measures of {scorer} {did}: its scorer is not loaded (--plugin FILE)"


def _name_of(mark: ScorerMark) -> str:
    return mark.name


def _with_scorers(scoring: Scoring, scorers: tuple[ScorerMark, ...]) -> Scoring:
    return msgspec.structs.replace(scoring, scorers=scorers).marked(SCORER_VERSION)


def _as_offered(line: RecordedAnswer, offer: Offer) -> tuple[Offer, Trace]:
    """The tools and the trace that a line of our own is scored with. The verdicts on its arguments
    are made anew with the tools that it was offered, and kept if those are not at hand."""
    entries = line.tool_trace
    if offer.sha256 == line.offered_tools_sha256:
        entries = tuple(_validate(entry, offer.registry) for entry in entries)
    trace = Trace(
        model_output=line.model_output,
        tool_trace=entries,
        turns=None if line.turns is None else tuple((turn.start, turn.end) for turn in line.turns),
        said=line.said,
        reasoning=line.reasoning,
        thought_calls=line.thought_calls,
        faults=line.faults,
        stop=line.stop or "answer",
    )
    if offer.sha256 != line.offered_tools_sha256:
        offer = _named_in(trace, offer, line.offered_tools_sha256 or "")
    return offer, trace


def _with_stored_privacy(result: Result, line: RecordedAnswer) -> Result:
    """The personal data of a redacted line are gone: what was found then still holds."""
    if result.scores is None or line.privacy is None:
        return result
    scores = msgspec.structs.replace(
        result.scores, privacy=line.privacy, privacy_ok=line.privacy.ok
    )
    scoring = msgspec.structs.replace(result.scoring, redacted=True)
    return msgspec.structs.replace(result, scores=scores, scoring=scoring)


def _validate(entry: TraceEntry, registry: Registry) -> TraceEntry:
    name = entry.name
    if name is None or registry.spec(name) is None or not isinstance(entry.arguments, dict):
        return entry
    errors = registry.validate(name, entry.arguments)
    if errors == entry.schema_errors:
        return entry
    return msgspec.structs.replace(entry, schema_errors=errors)


def _named_in(trace: Trace, offer: Offer, sha256: str = "") -> Offer:
    """Nothing says what was offered: every call that was not refused counts as offered."""
    names = frozenset(entry.name for entry in trace.tool_trace if entry.name is not None)
    return Offer(offer.registry, names, [], sha256)


def _sample_of(line: Recorded, place: int, where: str) -> Sample:
    """The sample as far as the line tells of it."""
    metadata = line.metadata or {}
    refuse_problems(where, metadata_problems(metadata))
    if isinstance(line, RecordedMessages):
        prompt: str | list[dict[str, Json]] = split_prompt(line.messages)[0]
        item_sha256 = digest(prompt)
    else:
        prompt, item_sha256 = line.prompt or "", line.item_sha256 or ""
    return Sample(
        index=place,
        sample_id=line.sample_id,
        prompt=prompt,
        metadata=metadata,
        expectation=expectation_of(metadata),
        item_sha256=item_sha256,
    )


def _registry_of(line: Recorded | None) -> str | None:
    """The hash of the tools that a line was made with, if it says so."""
    if not isinstance(line, RecordedAnswer) or line.fingerprints is None:
        return None
    return line.fingerprints.tool_registry_sha256


def _dataset_path(name: str) -> Path | Literal["-"]:
    return "-" if name == "-" else Path(name)


def _refuse_overwriting(path: Path, written: Path) -> None:
    if path.absolute() == written.absolute():
        raise UsageError(f"{written}: is the file being scored: choose another one")
