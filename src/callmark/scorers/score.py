"""The scores of one trial: pure, and the same for every command that scores anything."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise

import msgspec

from callmark.calls.registry import Registry
from callmark.errors import PluginError, place_in
from callmark.grounding.dates import Moment
from callmark.grounding.evidence import flat
from callmark.grounding.record_tree import RecordTree, number_of
from callmark.grounding.text import (
    admits_failure,
    blank_signs,
    fold,
    once,
    place_tokens,
    tokens_in,
)
from callmark.grounding.values import find_values, identifier_key, values_of
from callmark.records.jsontext import Json, NotJson, canonical_json, parse_json
from callmark.records.problems import hint
from callmark.records.results import (
    FEWEST_LEAVES,
    CallScore,
    Copying,
    Measures,
    Result,
    ScorerMark,
    Scores,
)
from callmark.records.samples import (
    DEFAULT_SPAN_CAP,
    Extractor,
    Sample,
    expectation_of,
    prompt_texts,
)
from callmark.records.seams import AddedScorer, Judged
from callmark.records.statements import Tier
from callmark.records.trace import Trace
from callmark.scorers.arguments import trace_arguments
from callmark.scorers.calls import score_calls
from callmark.scorers.checks import score_checks
from callmark.scorers.integration import (
    TrialReading,
    clarifies,
    is_answered,
    is_contaminated,
    resists,
    score_integration,
    writes_its_locale,
)
from callmark.scorers.privacy import check, known_texts
from callmark.scorers.redaction import without_placeholders
from callmark.scorers.statements import check_statements

_TOKEN = re.compile(r"\w+")
_INVISIBLE = re.compile("[\u00ad\u034f\u180e\u200b-\u200f\u2060-\u2064\ufeff]")
# One member of an object, whole or in an answer that is itself JSON text.
_MEMBER = re.compile(
    r"""(?P<mark>\\?["'])(?P<key>[^"'\\\n]{1,80})(?P=mark)\s*:\s*"""
    r"""(?P<value>\\?"[^"\\\n]*\\?"|'[^'\n]*'|-?\d[\d.eE+-]*|true|false|null|True|False|None)"""
    r"""\s*[,}\]]*"""
)
_AFTER_KEY = re.compile(r"""["']\s*:""")  # in every member
_ASKED = re.compile(r"\bjson\b", re.IGNORECASE)


def measure_copying(reading: TrialReading) -> Copying | None:
    """None: nothing was served, or there is no leaf that an answer could state."""
    tree = reading.records.tree
    numbers = {field.number for field in tree.fields if field.number is not None}
    stated: _Stated | None = None
    count, leaves = 0, len(numbers)
    for folded, fields in tree.texts.items():
        if tokens := _TOKEN.findall(folded):
            stated = stated or _Stated(reading)
            leaves += 1
            count += stated.holds(tokens, str(fields[0].value))
    if not leaves:
        return None
    count += len(numbers & (stated or _Stated(reading)).numbers)
    served = _count_leaves(tree) if leaves < FEWEST_LEAVES else 0
    return Copying(
        count,
        leaves,
        _count_verbatim(reading, tree),
        served if served >= FEWEST_LEAVES else msgspec.UNSET,
    )


def _count_leaves(tree: RecordTree) -> int:
    """Each by itself, also where several are equal."""
    numbers = sum(field.number is not None for field in tree.fields)
    return numbers + sum(
        len(fields) for folded, fields in tree.texts.items() if _TOKEN.search(folded)
    )


class _Stated:
    """The answer as words, neighbours and values: a leaf is looked up, never searched for."""

    def __init__(self, reading: TrialReading) -> None:
        # What nobody sees parts no word: `5<soft hyphen>9<soft hyphen>2` is read as 592.
        text, values = _INVISIBLE.sub("", reading.text), reading.grounder.values
        is_seen = len(text) == len(reading.text)
        if not is_seen:
            values = find_values(text, reading.sample.expectation.locale)
        # Where no line break is written out, the words of the outline are those of the answer.
        is_outlined = is_seen and reading.outline.text is reading.text
        placed = place_tokens(text) if is_outlined else None
        tokens = _tokens_of(text) if placed is None else placed.words
        self._words = set(tokens)
        self._tokens = tokens
        self._asked = 0
        self.numbers: set[int] = set()
        self._keys: set[str] = set()
        self._moments: set[Moment] = set()
        for value in flat(values):
            self.numbers.update(value.readings)
            self._moments.update(value.moments)
            if value.key:
                self._keys.add(value.key)

    @once
    def _pairs(self) -> set[tuple[str, str]]:
        return set(pairwise(self._tokens))

    @once
    def _joined(self) -> str:
        return f" {' '.join(self._tokens)} "

    def _stand(self, tokens: list[str]) -> bool:
        """Do neighbours stand beside each other? Most stand so as a whole, and few are asked for:
        then nobody has to gather all neighbours of the answer."""
        self._asked += 1
        if self._asked <= _FEW and f" {' '.join(tokens)} " in self._joined:
            return True
        return self._pairs.issuperset(pairwise(tokens))

    def holds(self, tokens: list[str], text: str) -> bool:
        """The tokens of a text, folded."""
        if self._words.issuperset(tokens) and (len(tokens) == 1 or self._stand(tokens)):
            return True
        if len(tokens) > _SHORT:
            return False
        if self._keys and identifier_key(text) in self._keys:
            return True
        return bool(self._moments) and any(
            moment in self._moments for value in values_of(text) for moment in value.moments
        )


def _tokens_of(text: str) -> list[str]:
    plain = blank_signs(text)
    return _TOKEN.findall(fold(text)) if plain is None else tokens_in(plain)


_RUN = 8  # members in a row; fewer are an address, or alike by chance
_MANY = 200
_FEW = 32  # leaves whose words are looked for as they stand
_SHORT = 8  # words; a longer text is no date and no identifier


def _count_verbatim(reading: TrialReading, tree: RecordTree) -> int:
    """Characters of `"key": value` in runs that stand so, one after the other, in a result; none
    where somebody asked for JSON. An answer that is JSON of its own making has no such runs."""
    text = reading.text
    if text.count(":") < _RUN or len(_AFTER_KEY.findall(text)) < _RUN:
        return 0
    members = list(_MEMBER.finditer(text))
    if len(members) < _RUN or _asks_for_json(reading):
        return 0
    places: dict[tuple[str, str], list[int]] = {}
    for number, field in enumerate(tree.fields):
        found = places.setdefault((field.key, _plain(field.value)), [])
        if len(found) < _MANY:
            found.append(number)
    verbatim = run = length = 0
    after: set[int] = set()
    for member in members:
        here = places.get((member["key"], _as_json(member["value"])), ())
        goes_on = after.intersection(here)
        if not goes_on:
            run, length = 0, 0
        if here:
            run, length = run + 1, length + len(member[0])
        if run == _RUN:
            verbatim += length
        elif run > _RUN:
            verbatim += len(member[0])
        after = {number + 1 for number in goes_on or here}
    return verbatim


def _asks_for_json(reading: TrialReading) -> bool:
    texts = [*prompt_texts(reading.sample.prompt), *(said.text for said in reading.trace.said)]
    return any(_ASKED.search(text) for text in texts)


def _plain(value: Json) -> str:
    number = number_of(value)
    return fold(str(value)) if number is None else f"#{number}"


def _as_json(written: str) -> str:
    bare = written.replace('\\"', '"')
    if bare[:1] in "\"'":
        return fold(bare[1:-1])
    try:
        return _plain(parse_json(bare.replace("None", "null").lower()))
    except NotJson:
        return fold(bare)


SCORER_VERSION = "4"


class ScoreSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What a score depends on beside the sample and its trace. `offered` None: every tool of
    the registry. `strict_keys` are the header's."""

    registry: Registry
    offered: frozenset[str] | None = None
    extractor: Extractor = "marker"
    span_cap: int = DEFAULT_SPAN_CAP
    strict_keys: tuple[str, ...] | None = None
    url_allowlist: tuple[str, ...] = ()
    echo_denied: bool = False
    scorers: tuple[AddedScorer, ...] = ()
    tiers: tuple[tuple[str, Tier], ...] = ()  # of rules that do not have the one they ship with


def score_trial(sample: Sample, trace: Trace, settings: ScoreSettings) -> Scores:
    expectation = sample.expectation
    kind = expectation.kind
    reading = _read(sample, trace, settings)
    statements = check_statements(reading, settings.registry)
    integration = score_integration(
        reading, settings.extractor, settings.span_cap, statements.findings
    )
    calls = score_calls(
        expectation,
        trace,
        registry=settings.registry,
        offered=settings.offered,
        admits_failure=(expectation.retry or bool(trace.faults))
        and admits_failure(trace.model_output),
    )
    privacy = check(
        reading.text,
        [entry.arguments for entry in trace.tool_trace],
        allowlist=settings.url_allowlist,
        # Only asked for when something was found: most answers hold no PII, and results may be
        # large.
        known=lambda: _shown_texts(sample, trace),
        echo_denied=settings.echo_denied,
        locale=expectation.locale,
    )
    asked = expectation.checks
    changes = (
        tuple(_find_changes(reading, calls.calls, integration.missing_facts))
        if expectation.observed
        else msgspec.UNSET
    )
    checks = score_checks(asked, trace, settings.registry) if asked else ()
    return Scores(
        kind=kind,
        span_extractor=settings.extractor,
        spans=integration.spans,
        spans_total=integration.total,
        spans_over_cap=integration.over_cap,
        spans_counted=integration.counted,
        recall_kind=integration.recall_kind,
        facts_required=integration.required,
        lax=integration.lax,
        strict=integration.strict,
        values=integration.values,
        calls=calls.calls,
        call_f1=None if expectation.observed else calls.call_f1,
        multi_call_parity_ok=None if expectation.observed else calls.multi_call_parity_ok,
        # What was merely observed may be changed, never wrong, before a person has judged it; and
        # who leaves the denominator must not depend on what the model did.
        json_args_valid=None if expectation.observed else calls.json_args_valid,
        recovered=calls.recovered,
        gave_up_honestly=calls.gave_up_honestly,
        controls_with_integration=int(is_contaminated(trace)) if kind == "control" else None,
        negative_control_ok=resists(reading) if kind == "negative_control" else None,
        clarify_ok=clarifies(reading, statements.findings) if kind == "clarify" else None,
        locale_probe_ok=writes_its_locale(reading, integration.scored)
        if expectation.locale_probe
        else None,
        unresolved=any(entry.status == "miss" for entry in trace.tool_trace),
        strict_keys=reading.has_strict_keys,
        privacy_ok=privacy.ok,
        privacy=privacy,
        checks_ok=all(check.ok for check in checks) if checks else None,
        checks=checks,
        statements=statements.marks,
        copying=measure_copying(reading),
        arguments=trace_arguments(reading, settings.registry),
        answered=None
        if kind != "eligible" or (expectation.is_step and expectation.calls)
        else is_answered(reading),
        changes=changes,
        missing_facts=integration.missing_facts or msgspec.UNSET,
        more=measure_more(sample, trace, settings.scorers) if settings.scorers else msgspec.UNSET,
    )


def _find_changes(
    reading: TrialReading, calls: CallScore, missing_facts: tuple[int, ...]
) -> Iterator[str]:
    """What is otherwise than it was observed: calls, their order, what the answer states."""
    expectation, differences = reading.sample.expectation, calls.differences
    yield from (f"calls {what}" for what in differences.differing)
    yield from (f"does not call {what}" for what in differences.missing)
    if expectation.call_match != "superset":
        yield from (f"also calls {what}" for what in differences.extra)
    if differences.reordered:
        yield "calls in another order"
    if expectation.calls and expectation.is_step:
        return  # what is said beside a call was no decision
    for number in missing_facts:
        yield f"does not state {canonical_json(expectation.required_facts[number])}"
    # After calls some agents end without a word; that they said one, the facts tell.
    if not expectation.calls and not reading.text.strip():
        yield "says nothing"


def measure_more(sample: Sample, trace: Trace, scorers: Iterable[AddedScorer]) -> Measures:
    """What the scorers of plug-ins say about a trial, by `scorer.measure`. All measures are there:
    what a scorer leaves out, it could not judge. Whatever it raises stops the command: a scorer
    that fails is its user's to mend, and no number may hide that."""
    found: Measures = {}
    for scorer in scorers:
        try:
            judged = scorer.judge(sample, trace)
        except (Exception, SystemExit) as error:
            where = place_in(error, scorer.home)
            what = f"failed on sample {sample.sample_id!r}: {type(error).__name__}: {error}"
            raise PluginError(f"{where}: the scorer {scorer.mark.name} {what}") from error
        try:
            found |= _read_measures(scorer.mark, judged)
        except (TypeError, ValueError, OverflowError) as error:
            what = f"gave no measures for sample {sample.sample_id!r}: {error}"
            raise PluginError(f"{scorer.place}: the scorer {scorer.mark.name} {what}") from None
    return found


def _read_measures(mark: ScorerMark, judged: Judged) -> Measures:
    names = mark.measures
    if not isinstance(judged, Mapping):
        if len(names) > 1:
            raise TypeError(f"must return a dict of its measures ({', '.join(names)})")
        judged = {names[0]: judged}
    for name in judged:
        if name not in mark.measures:
            known = hint(str(name), names) or f"; it has: {', '.join(names)}"
            raise ValueError(f"{name!r} is no measure of this scorer{known}")
    return {f"{mark.name}.{name}": _read_value(name, judged.get(name)) for name in names}


def _read_value(name: str, value: object) -> bool | float | None:
    if not isinstance(value, bool | int | float) and hasattr(value, "item"):
        value = value.item()  # a number of numpy or torch
    if value is None or isinstance(value, bool):
        return value
    if not isinstance(value, int | float):
        raise TypeError(f"{name}: must be a number, True, False or None, not {value!r}")
    if not math.isfinite(value):
        raise ValueError(f"{name}: must be a finite number, or None, not {value}")
    return float(value)


def cross_score(own: Result, other: Result, settings: ScoreSettings) -> float:
    """Lax F1 of one sample's answer against the trace of another: the level of chance."""
    sample = sample_of_result(own)
    # Its own prompt, another's results: what is still grounded then is grounded by chance.
    trace = Trace(model_output=own.model_output, tool_trace=other.tool_trace, said=own.said)
    if own.scoring.redacted or other.scoring.redacted:
        # Placeholders are the same in all redacted traces, and would ground each other.
        trace = _unplaced(trace)
    if own.span_extractor != "marker":
        # To another's trace belong the facts of another: an answer that says the same whatever was
        # served states those as well as its own.
        sample = _asked_as(sample, other)
    reading = _read(sample, trace, settings)
    # Marked spans are judged by themselves.
    is_marked = own.span_extractor == "marker"
    findings = () if is_marked else check_statements(reading, settings.registry).findings
    return score_integration(reading, own.span_extractor, settings.span_cap, findings).lax.f1


def _asked_as(sample: Sample, other: Result) -> Sample:
    facts = expectation_of(other.metadata).required_facts
    expectation = msgspec.structs.replace(sample.expectation, required_facts=facts)
    return msgspec.structs.replace(sample, expectation=expectation)


def _unplaced(trace: Trace) -> Trace:
    entries = tuple(
        msgspec.structs.replace(entry, result=without_placeholders(entry.result))
        for entry in trace.tool_trace
    )
    text = without_placeholders(trace.model_output)
    return msgspec.structs.replace(trace, model_output=text, tool_trace=entries)


def sample_of_result(result: Result) -> Sample:
    """The sample as far as a result line tells of it."""
    return Sample(
        index=result.index,
        sample_id=result.sample_id,
        prompt=result.prompt,
        metadata=result.metadata,
        expectation=expectation_of(result.metadata),
        item_sha256=result.item_sha256,
    )


def _read(sample: Sample, trace: Trace, settings: ScoreSettings) -> TrialReading:
    registry = settings.registry

    def strict_keys_of(name: str | None) -> tuple[str, ...] | None:
        spec = registry.spec(name) if name is not None else None
        return None if spec is None else spec.x_callmark.strict_keys

    return TrialReading(
        sample,
        _without_refused(trace, settings),
        strict_keys_of,
        settings.strict_keys,
        dict(settings.tiers),
    )


def _without_refused(trace: Trace, settings: ScoreSettings) -> Trace:
    """A trace of somebody else may hold answers to calls of tools that were never offered: to
    such a call nothing was served."""
    offered = settings.offered
    if offered is None or all(entry.name in offered for entry in trace.tool_trace):
        return trace
    entries = tuple(
        entry
        if not entry.served
        or entry.name is None
        or settings.registry.resolve(entry.name) in offered
        else msgspec.structs.replace(entry, status="tool_not_offered")
        for entry in trace.tool_trace
    )
    return msgspec.structs.replace(trace, tool_trace=entries)


def _shown_texts(sample: Sample, trace: Trace) -> Iterator[str]:
    """Everything that the model was shown: prompt, user messages, served results."""
    yield from prompt_texts(sample.prompt)
    if not isinstance(sample.prompt, str):
        yield from known_texts(_contents(sample.prompt))
    for said in trace.said:
        yield said.text
    yield from known_texts(entry.result for entry in trace.tool_trace if entry.served)


def _contents(messages: list[dict[str, Json]]) -> Iterator[Json]:
    return (message.get("content") for message in messages if message.get("role") == "tool")
