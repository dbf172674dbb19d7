"""Which samples stand behind each shortfall, and which statements are flagged, so that a person can
look at them."""

from __future__ import annotations

import heapq
import operator
from array import array
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Generic, NamedTuple, TypeVar, get_args

import msgspec
from msgspec import UNSET

from callmark.records.jsontext import canonical_json
from callmark.records.report import (
    ERRORS_CAP,
    FAILING_CAP,
    LONGEST_RAW,
    MISSES_CAP,
    Errors,
    ErrorTrial,
    Failing,
    GateRule,
    GroundingCounts,
    MissedCall,
    Misses,
    Number,
    PrivacyCounts,
    StatementCounts,
    UnparsedAttempt,
    UnparsedAttempts,
)
from callmark.records.results import Result, Scores, Statement
from callmark.records.samples import explain_check
from callmark.records.statements import GOOD, StatementLabel, Tier
from callmark.records.trace import UNPARSED
from callmark.stats.columns import is_there
from callmark.summary.gates import is_below, is_satisfied
from callmark.summary.metrics import (
    CHECKS,
    DEFINITIONS,
    FLAGGED,
    GATED_LANGUAGES,
    INVENTED,
    TEACHER_HEAVY,
    UNCHANGED,
    Over,
    Subset,
    label_words,
)
from callmark.summary.trials import has_served, is_integrating, is_no_copy

Entry = TypeVar("Entry")


class ListedMiss(msgspec.Struct, frozen=True, array_like=True):
    index: int
    trial: int
    position: int
    call: MissedCall


class ListedUnparsed(msgspec.Struct, frozen=True, array_like=True):
    index: int
    trial: int
    position: int
    attempt: UnparsedAttempt


class ShortlistsState(msgspec.Struct, frozen=True, kw_only=True):
    """`counts`: every counter by its name. Errors are no part of it."""

    misses: tuple[ListedMiss, ...]
    unparsed: tuple[ListedUnparsed, ...] = ()
    counts: dict[str, dict[str, int]]


class Firsts(Generic[Entry]):
    """The first entries in the order of the dataset, whatever the order of arrival."""

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._heap: list[tuple[int, int, int, int, Entry]] = []
        self._arrivals = 0

    def wants(self, index: int) -> bool:
        return len(self._heap) < self._cap or index <= -self._heap[0][0]

    def add(self, index: int, trial: int, position: int, entry: Entry) -> None:
        self._arrivals += 1
        item = (-index, -trial, -position, self._arrivals, entry)
        if len(self._heap) < self._cap:
            heapq.heappush(self._heap, item)
        else:
            heapq.heappushpop(self._heap, item)

    def listed(self) -> tuple[Entry, ...]:
        return tuple(entry for *_, entry in self.placed())

    def placed(self) -> list[tuple[int, int, int, Entry]]:
        """The same with their places: index, trial, position."""
        return [
            (-index, -trial, -position, entry)
            for index, trial, position, _, entry in sorted(
                self._heap, key=lambda item: item[:4], reverse=True
            )
        ]


class Shortlists:
    """Counts all, keeps the first."""

    def __init__(self) -> None:
        self._misses: Firsts[MissedCall] = Firsts(MISSES_CAP)
        self._unparsed: Firsts[UnparsedAttempt] = Firsts(MISSES_CAP)
        self._attempts: Counter[str] = Counter()
        self._missed_by_tool: Counter[str] = Counter()
        self._wrong_by_tool: Counter[str] = Counter()
        self._errors: Firsts[ErrorTrial] = Firsts(ERRORS_CAP)
        self._error_count = 0
        self._stops: Counter[str] = Counter()
        self._kinds: Counter[str] = Counter()
        self._severities: Counter[str] = Counter()
        self._privacy: Counter[str] = Counter()
        self._spans: Counter[str] = Counter()
        self._values: Counter[str] = Counter()
        self._labels: Counter[str] = Counter()
        self._firm: Counter[str] = Counter()
        self._advisory: Counter[str] = Counter()
        self._origins: Counter[str] = Counter()

    def add(self, result: Result) -> None:
        self._stops[result.stop] += 1
        scores = result.scores
        if scores is None or result.status == "error":
            self._error_count += 1
            if self._errors.wants(result.index):
                entry = ErrorTrial(result.sample_id, result.trial, result.error)
                self._errors.add(result.index, result.trial, 0, entry)
            return
        if scores.unresolved:
            self._add_misses(result)
        if result.tool_trace:
            self._add_unparsed(result)
        if scores.calls.wrong_calls:
            self._wrong_by_tool.update(
                call.name or "" for call in result.tool_trace if call.status == "wrong_call"
            )
        if scores.privacy.findings or scores.privacy.invented_urls:
            self._add_findings(scores)
        self._spans["counted"] += scores.spans_counted
        self._spans["lax"] += scores.lax.grounded
        self._spans["strict"] += scores.strict.grounded
        self._values.update(scores.values)
        for one in scores.statements:
            self._labels[one.label] += 1
            if one.is_flag:
                (self._firm if one.is_firm else self._advisory)[one.rule] += 1
        self._origins.update(one.origin for one in scores.arguments or ())

    def state(self) -> ShortlistsState:
        return ShortlistsState(
            misses=tuple(ListedMiss(*place) for place in self._misses.placed()),
            unparsed=tuple(ListedUnparsed(*place) for place in self._unparsed.placed()),
            counts={name: dict(counter) for name, counter in self._counters().items()},
        )

    def extend(self, state: ShortlistsState) -> None:
        for miss in state.misses:
            if self._misses.wants(miss.index):
                self._misses.add(miss.index, miss.trial, miss.position, miss.call)
        for one in state.unparsed:
            if self._unparsed.wants(one.index):
                self._unparsed.add(one.index, one.trial, one.position, one.attempt)
        for name, counter in self._counters().items():
            counter.update(state.counts[name])

    def _counters(self) -> dict[str, Counter[str]]:
        return {
            "attempts": self._attempts,
            "missed_by_tool": self._missed_by_tool,
            "wrong_by_tool": self._wrong_by_tool,
            "stops": self._stops,
            "kinds": self._kinds,
            "severities": self._severities,
            "privacy": self._privacy,
            "spans": self._spans,
            "values": self._values,
            "labels": self._labels,
            "firm": self._firm,
            "advisory": self._advisory,
            "origins": self._origins,
        }

    def misses(self) -> Misses:
        by_tool = dict(sorted(self._missed_by_tool.items()))
        wrong = dict(sorted(self._wrong_by_tool.items()))
        return Misses(sum(by_tool.values()), by_tool, self._misses.listed(), wrong)

    def unparsed(self) -> UnparsedAttempts:
        return UnparsedAttempts(self._attempts[UNPARSED], self._unparsed.listed())

    def errors(self) -> Errors:
        return Errors(self._error_count, self._errors.listed())

    def stops(self) -> dict[str, int]:
        return dict(sorted(self._stops.items()))

    def privacy(self) -> PrivacyCounts:
        return PrivacyCounts(
            dict(sorted(self._kinds.items())),
            dict(sorted(self._severities.items())),
            self._privacy["echoed"],
            self._privacy["invented_urls"],
        )

    def grounding(self) -> GroundingCounts:
        return GroundingCounts(
            self._spans["counted"],
            self._spans["lax"],
            self._spans["strict"],
            dict(sorted(self._values.items())),
        )

    def statements(self) -> StatementCounts:
        return StatementCounts(
            labels=dict(sorted(self._labels.items())),
            firm=dict(sorted(self._firm.items())),
            advisory=dict(sorted(self._advisory.items())),
            origins=dict(sorted(self._origins.items())),
        )

    def _add_misses(self, result: Result) -> None:
        for position, call in enumerate(result.tool_trace):
            if call.status != "miss":
                continue
            name = call.name or ""
            self._missed_by_tool[name] += 1
            if self._misses.wants(result.index):
                entry = MissedCall(result.sample_id, result.trial, name, call.key_normalized)
                self._misses.add(result.index, result.trial, position, entry)

    def _add_unparsed(self, result: Result) -> None:
        for position, call in enumerate(result.tool_trace):
            if call.format != UNPARSED:
                continue
            self._attempts[UNPARSED] += 1
            if self._unparsed.wants(result.index):
                raw = (call.raw or "")[:LONGEST_RAW]
                entry = UnparsedAttempt(result.sample_id, result.trial, call.name, raw)
                self._unparsed.add(result.index, result.trial, position, entry)

    def _add_findings(self, scores: Scores) -> None:
        for finding in scores.privacy.findings:
            self._kinds[finding.kind] += 1
            self._severities[finding.severity] += 1
            self._privacy["echoed"] += finding.echoed
        self._privacy["invented_urls"] += len(scores.privacy.invented_urls)


PASSING_F1 = 0.90  # where no F1 gate is in force

# gate -> (samples, column): short where the number is below the gate's bound
_BELOW_BOUND: dict[str, tuple[Over, str]] = {
    "integration_f1_macro_lax": ("integration", "f1_lax"),
    "integration_f1_macro_strict": ("integration", "f1_strict"),
    "call_f1_macro": ("all", "call_f1"),
}
# metric -> (samples, column): short where there is any
_ANY: dict[str, tuple[Over, str]] = {
    "unsupported_value_rate": ("eligible", "unsupported"),
    "controls_with_integration": ("control", "contaminated"),
    FLAGGED: ("all", "flagged"),
    INVENTED: ("all", "invented"),
}


def failing_of(whole: Subset, rules: Mapping[str, GateRule]) -> dict[str, Failing]:
    """By gate or metric name, in the order of the dataset; only names with a shortfall."""
    found = {name: _name_failing(whole, rows) for name, rows in failing_rows(whole, rules) if rows}
    return dict(sorted(found.items()))


def failing_rows(whole: Subset, rules: Mapping[str, GateRule]) -> Iterator[tuple[str, array[int]]]:
    """Each gate or metric with the rows of all samples that fall short of it."""
    bounds = {name: rule.bound for name, rule in rules.items()}
    for name in whole.samples.measures:
        if name in rules:
            yield name, _short(whole, "all", name, _violates(rules[name]))
    definitions = {definition.name: definition for definition in DEFINITIONS}
    for name, (over, key) in _BELOW_BOUND.items():
        if name in bounds and not whole.lacks_keys(definitions[name]):
            yield name, _short(whole, over, key, _below(bounds[name]))
    for definition in DEFINITIONS:
        if definition.made == "rate" and definition.name not in _ANY:
            key = definition.columns[0]
            yield definition.name, _short(whole, definition.over, key, _below(1))
    for name, (over, key) in _ANY.items():
        yield name, _short(whole, over, key, _is_any)
    yield "fixture_hit_rate", _less(whole, "not_control", "hits", "looked_up")
    heavy = whole.in_slice(TEACHER_HEAVY)
    yield "teacher_heavy_spans_over_cap", _short(heavy, "all", "over_cap", _is_any)
    if "teacher_heavy_f1_lax" in bounds:
        is_short = _below(bounds["teacher_heavy_f1_lax"])
        yield "teacher_heavy_f1_lax", _short(heavy, "integration", "f1_lax", is_short)
    for language in GATED_LANGUAGES:
        probes = whole.probes(language)
        if probes.lacks_keys(definitions["integration_delta_lax_minus_strict"]):
            continue
        yield f"locale_delta_{language}", _less(probes, "integration", "f1_strict", "f1_lax")


def _below(bound: Number) -> Callable[[float], bool]:
    # A negative number says that the metric does not apply to the sample.
    return lambda value: value >= 0 and is_below(value, bound)


def _violates(rule: GateRule) -> Callable[[float], bool]:
    return lambda value: is_there(value) and not is_satisfied(rule, value)


def _is_any(value: float) -> bool:
    return value > 0


def _short(subset: Subset, over: Over, key: str, is_short: Callable[[float], bool]) -> array[int]:
    return subset.samples.column(key).where(is_short, subset.over(over))


def _less(subset: Subset, over: Over, key: str, than: str) -> array[int]:
    """The samples whose number of one column is below that of another."""
    left, right = subset.samples.column(key), subset.samples.column(than)
    positions = subset.over(over)
    are_less = map(operator.lt, left.at(positions), right.at(positions))
    return array("I", compress(positions, are_less))


def _name_failing(subset: Subset, positions: array[int]) -> Failing:
    ids = tuple(subset.samples.id_at(at) for at in positions[:FAILING_CAP])
    return Failing(len(positions), ids)


_SHOWN = 3  # of the details of one verdict


def why_failed(
    result: Result, warnings: Collection[str] = (), rules: Mapping[str, GateRule] | None = None
) -> tuple[str, ...]:
    """One sentence for each verdict that went against the trial; none: it did not fail.
    `warnings`: the gates that only warn; what falls short of one of them has not failed. `rules`:
    the gates in force; a plug-in's measure is right or wrong only where one of them is about it."""
    scores = result.scores
    if scores is None or result.status == "error":
        return (f"not scored: {result.error or 'no reason is given'}",)
    echo_denied = result.scoring.privacy_echo == "deny"
    return tuple(
        _sentence(verdict)
        for verdict in (
            *_verdicts(scores, echo_denied=echo_denied),
            *(_flag_verdicts(scores) if has_served(result) else ()),
            *_number_verdicts(scores, missing_facts(result)),
            *_measure_verdicts(scores, rules or {}),
        )
        if verdict.ok is False and verdict.gate not in warnings
    )


class _Verdict(NamedTuple):
    """The gate that it counts for, what it says when it is False, and what more is known then."""

    gate: str
    ok: bool | None
    what: str
    details: Sequence[str] = ()


def _sentence(verdict: _Verdict) -> str:
    details = verdict.details
    cut = " …" if len(details) > _SHOWN else ""
    return f"{verdict.what}: {'; '.join(details[:_SHOWN])}{cut}" if details else verdict.what


def missing_facts(result: Result) -> tuple[str, ...]:
    """The required facts that the answer does not state, as the dataset writes them. A line that
    somebody edited, or an older scorer wrote, may name none."""
    scores, facts = result.scores, result.metadata.get("required_facts")
    if scores is None or scores.missing_facts is UNSET or not isinstance(facts, list):
        return ()
    places = (at for at in scores.missing_facts if at < len(facts))
    return tuple(canonical_json(facts[at]) for at in places)


def missing_text(missing: Sequence[str]) -> str:
    """`; missing: "gate B12", 45`, or nothing."""
    cut = ", …" if len(missing) > _SHOWN else ""
    return f"; missing: {', '.join(missing[:_SHOWN])}{cut}" if missing else ""


def _number_verdicts(scores: Scores, missing: Sequence[str]) -> Iterator[_Verdict]:
    """What a number decides: the calls (where no stricter verdict names them), then the F1."""
    if scores.call_f1 is not None and scores.multi_call_parity_ok is not False:
        right = not is_below(scores.call_f1, PASSING_F1)
        said = f"call F1 {scores.call_f1:.3f}"
        yield _Verdict("call_f1_macro", right, said, _other_calls(scores))
    lax = scores.lax
    if scores.kind == "eligible" and is_integrating(scores):
        unsupported = scores.values.get("unsupported", 0)
        told = missing_text(missing)
        sign = ";" if told else ","
        said = f"{sign} {unsupported} values that no result supports" if unsupported else ""
        yield _Verdict(
            "integration_f1_macro_lax",
            not is_below(lax.f1, PASSING_F1),
            f"F1 {lax.f1:.3f}: {lax.grounded} of {scores.spans_counted} spans grounded,"
            f" {lax.found} of {scores.facts_required} facts found{told}{said}",
        )


def _flag_verdicts(scores: Scores) -> Iterator[_Verdict]:
    """Each firm flag in its own words, the first of them."""
    firm = [f"{label_words(one.label)}: {one.because}" for one in scores.statements if one.is_firm]
    for number, because in enumerate(firm[:_SHOWN], start=1):
        cut = " …" if number == _SHOWN < len(firm) else ""
        yield _Verdict(FLAGGED, False, f"{because}{cut}")


def _measure_verdicts(scores: Scores, rules: Mapping[str, GateRule]) -> Iterator[_Verdict]:
    invented = [one for one in scores.arguments or () if one.origin == "invented"]
    if INVENTED in rules and invented:
        places = [f"call {one.call} {one.path}" for one in invented]
        yield _Verdict(INVENTED, False, "arguments that nobody said and no result served", places)
    for name, value in scores.added.items():
        rule = rules.get(name)
        if rule is not None and value is not None:
            said = f"{name} is {show_measure(value)}"
            yield _Verdict(name, is_satisfied(rule, value), said)


def show_measure(value: bool | float | None) -> str:
    """As a person reads it."""
    match value:
        case None:
            return "not judged"
        case bool():
            return "yes" if value else "no"
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1e15 else f"{value:.3f}"


def _verdicts(scores: Scores, *, echo_denied: bool) -> Iterator[_Verdict]:
    calls, breaches = scores.calls, _breaches(scores, echo_denied=echo_denied)
    clean = not scores.controls_with_integration
    for verdict in (
        ("json_args_valid_rate", scores.json_args_valid, "invalid arguments", calls.errors),
        (
            "multi_call_parity_rate",
            scores.multi_call_parity_ok,
            "not the expected calls",
            _other_calls(scores),
        ),
        ("error_recovery_rate", scores.recovered, "did not recover from an error"),
        (
            "negative_control_ok_rate",
            scores.negative_control_ok,
            "stated something that no tool had found",
        ),
        ("clarify_ok_rate", scores.clarify_ok, "did not ask back"),
        ("locale_probe_ok_rate", scores.locale_probe_ok, "a number or date read in another locale"),
        ("privacy_ok_rate", scores.privacy_ok, "privacy", breaches),
        ("controls_with_integration", clean, "a control with a call or an integration"),
        ("fixture_hit_rate", not scores.unresolved, "a call without a fixture"),
        ("answered_rate", scores.answered, "no answer after the last result"),
        ("copy_ratio_ok_rate", is_no_copy(scores), "the results are repeated", _copied(scores)),
    ):
        yield _Verdict(*verdict)
    if scores.changes is not UNSET:
        yield _Verdict(UNCHANGED, not scores.changes, "changed", scores.changes)
    for check in scores.checks:
        yield _Verdict(CHECKS, check.ok, f"check {explain_check(check)}")


def _copied(scores: Scores) -> tuple[str, ...]:
    copying = scores.copying
    if copying is None:
        return ()
    stated = f"{copying.stated} of {copying.leaves} leaves"
    return (f"{stated}, {copying.verbatim} characters of JSON word for word",)


def _other_calls(scores: Scores) -> tuple[str, ...]:
    differences = scores.calls.differences
    listed = {
        "missing": differences.missing,
        "extra": differences.extra,
        "differs": differences.differing,
    }
    found = [f"{word} {call}" for word, calls in listed.items() for call in calls]
    return (*found, "in another order") if differences.reordered else tuple(found)


def _breaches(scores: Scores, *, echo_denied: bool) -> tuple[str, ...]:
    """Without what was found: personal data do not belong in one more file."""
    kinds = {
        f"{finding.kind} in {finding.where}"
        for finding in scores.privacy.findings
        if finding.severity in ("high", "medium") and (echo_denied or not finding.echoed)
    }
    return (*sorted(kinds), *(f"invented URL {url}" for url in scores.privacy.invented_urls))


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
