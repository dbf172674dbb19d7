"""What a dataset holds, counted while it is read for the first time."""

from __future__ import annotations

from collections import Counter

import msgspec

from callmark.core.jsontext import Json
from callmark.core.samples import Kind, expectation_of


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What the dataset holds, known before anything is run. Numbers of samples throughout."""

    samples: int
    kinds: dict[Kind, int]
    expecting_calls: int
    multi_call: int
    retry: int
    with_facts: int
    locale_probes: dict[str, int]  # by locale; "" where the sample names none
    locales: dict[str, int]
    slices: dict[str, int]
    clusters: bool
    tools: dict[str, int]  # by expected tool
    offered: dict[str, int]  # by tool that samples name in `metadata.tools`
    offered_line: dict[str, int]  # where such a tool is named first


class FactTally:
    """Counts for `Facts`, one item at a time."""

    def __init__(self) -> None:
        self.samples = 0
        self._kinds: Counter[Kind] = Counter()
        self._numbers: Counter[str] = Counter()
        self._probes: Counter[str] = Counter()
        self._locales: Counter[str] = Counter()
        self._slices: Counter[str] = Counter()
        self._tools: Counter[str] = Counter()
        self._offered: Counter[str] = Counter()
        self._offered_line: dict[str, int] = {}

    def count(self, item: dict[str, Json], line: int) -> None:
        expectation = expectation_of(item.get("metadata") or {})
        calls = expectation.calls
        self.samples += 1
        self._kinds[expectation.kind] += 1
        self._numbers["expecting_calls"] += bool(calls)
        self._numbers["multi_call"] += len(calls) > 1
        self._numbers["retry"] += expectation.retry
        self._numbers["with_facts"] += bool(expectation.required_facts)
        self._numbers["clusters"] += expectation.cluster is not None
        if expectation.locale_probe:
            self._probes[expectation.locale or ""] += 1
        if expectation.locale:
            self._locales[expectation.locale] += 1
        self._slices.update(expectation.slices)
        self._tools.update({call.name for call in calls})
        for tool in set(expectation.tools or ()):
            self._offered[tool] += 1
            self._offered_line.setdefault(tool, line)

    def facts(self) -> Facts:
        numbers = self._numbers
        return Facts(
            samples=self.samples,
            kinds=dict(sorted(self._kinds.items())),
            expecting_calls=numbers["expecting_calls"],
            multi_call=numbers["multi_call"],
            retry=numbers["retry"],
            with_facts=numbers["with_facts"],
            locale_probes=dict(sorted(self._probes.items())),
            locales=dict(sorted(self._locales.items())),
            slices=dict(sorted(self._slices.items())),
            clusters=bool(numbers["clusters"]),
            tools=dict(sorted(self._tools.items())),
            offered=dict(sorted(self._offered.items())),
            offered_line=dict(sorted(self._offered_line.items())),
        )
