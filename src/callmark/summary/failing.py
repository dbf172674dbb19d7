"""Which samples account for each shortfall, and which statements are flagged, so that a person can
look at them."""

from __future__ import annotations

import heapq
import operator
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import compress
from typing import Generic, TypeVar, get_args

import msgspec

from callmark.records.jsontext import Json
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
from callmark.records.results import (
    ListedTrial,
    Result,
    Scores,
    Statement,
    TrialTraits,
    list_invented,
)
from callmark.records.samples import Expectation, expectation_of
from callmark.records.statements import GOOD, StatementLabel, Tier
from callmark.records.trace import UNPARSED, TraceEntry
from callmark.stats.columns import is_there
from callmark.summary.gates import better_is, is_below, is_satisfied
from callmark.summary.metrics import (
    DEFINITIONS,
    GATED_LANGUAGES,
    INVENTED,
    TEACHER_HEAVY,
    Over,
    Subset,
    label_words,
)
from callmark.summary.wording import LABELS, RULES

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
        for label, count in scores.values.items():
            self._values[label] += count
        for one in scores.statements:
            self._labels[one.label] += 1
            if one.is_flag:
                (self._firm if one.is_firm else self._advisory)[one.rule] += 1
        for argument in scores.arguments or ():
            self._origins[argument.origin] += 1

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
# metric -> (samples, column): short where there is any; a rate says so by its direction
_ANY: dict[str, tuple[Over, str]] = {
    "unsupported_value_rate": ("eligible", "unsupported"),
    "controls_with_integration": ("control", "contaminated"),
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
        if definition.made == "rate":
            is_short = _below(1) if better_is(definition.name) == "higher" else _is_any
            yield (
                definition.name,
                _short(whole, definition.over, definition.columns[0], is_short),
            )
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


NOT_SCORED, FALLS_SHORT, ONLY_WARNS, PASSES = "not scored", "falls short", "only warns", "passes"
ASKED, ANSWERED = 256, 144  # characters of both that a list of trials takes


def list_trial(result: Result, expectation: Expectation | None = None) -> ListedTrial:
    """`expectation`: what its metadata say, where somebody has read them already."""
    scores = result.scores
    is_eligible = scores is not None and scores.kind == "eligible"
    return ListedTrial(
        result.index,
        result.trial,
        result.sample_id,
        last_question(result.prompt)[:ASKED],
        result.model_output[:ANSWERED],
        scores.lax.f1 if scores is not None and is_eligible else None,
        scores.strict.f1 if scores is not None and is_eligible and scores.strict_keys else None,
        _traits_of(result, expectation or expectation_of(result.metadata)),
    )


def last_question(prompt: str | list[dict[str, Json]]) -> str:
    """What the user said last in the prompt."""
    if isinstance(prompt, str):
        return prompt
    for message in reversed(prompt):
        content = message.get("content")
        if message.get("role") == "user" and isinstance(content, str):
            return content
    return ""


def _traits_of(result: Result, expectation: Expectation) -> TrialTraits:
    scores, entries = result.scores, result.tool_trace
    tools = {entry.name for entry in entries if entry.name}
    tools.update(call.name for call in expectation.calls)
    is_lost = scores is None or result.status == "error"
    statements = () if scores is None else scores.statements
    flags = [one for one in statements if one.is_flag]
    return TrialTraits(
        NOT_SCORED if scores is None or is_lost else _standing(scores, flags),
        () if scores is None or is_lost else _remarks(result, scores, flags),
        expectation.kind if scores is None else scores.kind,
        tuple(sorted(tools)),
        expectation.locale,
        expectation.slices,
        tuple(sorted({one.label for one in statements})),
        tuple(sorted({one.rule for one in flags})),
        failure_kinds(result, flags),
        is_lost or bool(flags),
        result.stop,
    )


def _standing(scores: Scores, flags: Sequence[Statement]) -> str:
    """What the mark of a row says. An answer of which nothing is expected is marked by the worst
    label of what it states: no gate looks at it, and nothing checked is nothing passed."""
    if scores.kind == "unclassified":
        if _is_flagged(scores, flags):
            return "flagged"
        if flags:
            return ONLY_WARNS
        if not scores.checks_ok and not any(one.label in GOOD for one in scores.statements):
            return "nothing checked"
    return PASSES


def _is_flagged(scores: Scores, flags: Sequence[Statement]) -> bool:
    """A firm flag; where spans are marked, also a value in one that nothing supports."""
    marked = scores.span_extractor == "marker" and scores.values.get("unsupported", 0) > 0
    return marked or any(one.is_firm for one in flags)


def _remarks(result: Result, scores: Scores, flags: Sequence[Statement]) -> tuple[str, ...]:
    found = []
    if scores.unresolved:
        found.append("call without a fixture")
    if scores.calls.wrong_calls:
        found.append("wrong call")
    if any(entry.status == "malformed" for entry in result.tool_trace):
        found.append("malformed call")
    if scores.json_args_valid is False:
        found.append("invalid arguments")
    if _is_flagged(scores, flags):
        found.append("firm flag")
    return tuple(found)


def failure_kinds(result: Result, flags: Sequence[Statement]) -> tuple[str, ...]:
    """What went wrong in a trial, in words that are the same for all trials of a kind: wrong record
    for `price`, no call of `web.search`."""
    scores = result.scores
    if scores is None or result.status == "error":
        return (f"not scored: {result.error or 'no reason given'}",)
    missed = scores.calls.differences
    found = [_flag_kind(one) for one in flags]
    if scores.kind != "unclassified":
        found += [f"no call of `{call.partition(' ')[0]}`" for call in missed.missing]
        found += [f"extra call of `{call.partition(' ')[0]}`" for call in missed.extra]
        found += [f"other arguments for `{call.partition(' ')[0]}`" for call in missed.differing]
    if any(entry.status == "malformed" for entry in result.tool_trace):
        found.append("malformed call")
    if scores.json_args_valid is False:
        found += [
            f"invalid call of `{entry.name}`" for entry in result.tool_trace if _breaks(entry)
        ]
    if scores.missing_facts:
        found.append("a required fact is not stated")
    found += [
        f"argument from nowhere for `{result.tool_trace[one.call].name}`"
        for one in list_invented(result)
    ]
    if not result.model_output.strip():
        found.append("no text in the answer")
    if not scores.privacy_ok:
        found.append("personal data or an address that nobody gave")
    return tuple(dict.fromkeys(found))


def _breaks(entry: TraceEntry) -> bool:
    """Of a call that has a name: no tool that was offered, or arguments that do not fit."""
    is_refused = entry.status in ("tool_not_offered", "tool_not_allowed", "invalid_arguments")
    is_unknown = entry.status == "ok" and entry.schema_errors is None
    return bool(entry.name) and (is_refused or is_unknown or bool(entry.schema_errors))


def _flag_kind(one: Statement) -> str:
    """By the field that it is about, or by the rule where there is none."""
    names = [part for part in (one.path or "").split("/") if part and not part.isdigit()]
    word = LABELS[one.label].label
    if names:
        return f"{word} for `{names[-1]}`"
    return f"{word}: {RULES[one.rule].label if one.rule in RULES else one.rule}"
