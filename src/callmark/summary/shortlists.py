"""Bounded lists of what a person wants to see first: misses, errors, findings of PII."""

from __future__ import annotations

import heapq
from collections import Counter
from typing import Generic, TypeVar

from callmark.records.report import (
    ERRORS_CAP,
    MISSES_CAP,
    Errors,
    ErrorTrial,
    GroundingCounts,
    MissedCall,
    Misses,
    PrivacyCounts,
)
from callmark.records.results import Result, Scores
from callmark.summary.trials import ListedMiss, ShortlistsState

Entry = TypeVar("Entry")


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

    def state(self) -> ShortlistsState:
        return ShortlistsState(
            misses=tuple(ListedMiss(*place) for place in self._misses.placed()),
            counts={name: dict(counter) for name, counter in self._counters().items()},
        )

    def extend(self, state: ShortlistsState) -> None:
        for miss in state.misses:
            if self._misses.wants(miss.index):
                self._misses.add(miss.index, miss.trial, miss.position, miss.call)
        for name, counter in self._counters().items():
            counter.update(state.counts[name])

    def _counters(self) -> dict[str, Counter[str]]:
        return {
            "missed_by_tool": self._missed_by_tool,
            "wrong_by_tool": self._wrong_by_tool,
            "stops": self._stops,
            "kinds": self._kinds,
            "severities": self._severities,
            "privacy": self._privacy,
            "spans": self._spans,
            "values": self._values,
        }

    def misses(self) -> Misses:
        by_tool = dict(sorted(self._missed_by_tool.items()))
        wrong = dict(sorted(self._wrong_by_tool.items()))
        return Misses(sum(by_tool.values()), by_tool, self._misses.listed(), wrong)

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

    def _add_misses(self, result: Result) -> None:
        for position, call in enumerate(result.tool_trace):
            if call.status != "miss":
                continue
            name = call.name or ""
            self._missed_by_tool[name] += 1
            if self._misses.wants(result.index):
                entry = MissedCall(result.sample_id, result.trial, name, call.key_normalized)
                self._misses.add(result.index, result.trial, position, entry)

    def _add_findings(self, scores: Scores) -> None:
        for finding in scores.privacy.findings:
            self._kinds[finding.kind] += 1
            self._severities[finding.severity] += 1
            self._privacy["echoed"] += finding.echoed
        self._privacy["invented_urls"] += len(scores.privacy.invented_urls)
