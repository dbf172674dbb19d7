"""What a dataset is made of, and which gates its size can decide. One more reading, in a stream."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Literal

import msgspec

from callmark.datasets.reader import Dataset
from callmark.errors import UsageError
from callmark.records.jsontext import Json
from callmark.records.report import GateRule
from callmark.records.samples import CHECK_KINDS, CheckKind, Header, Kind, Sample, demand_of
from callmark.resources import default_gates
from callmark.summary.gates import PERF_BUDGET, is_idle, resolve_rules, rules_on_answers
from callmark.summary.metrics import MAX_SAMPLES, populations_of
from callmark.summary.trials import TrialPlace, Trials

LONG_CONTEXT = "long_context"
LONG_BYTES = 24_000  # what a prompt must have to be a long context
NOTHING = "-"  # a cell whose scenario or complexity is not named

Cell = tuple[str, str]  # scenario, complexity
Decided = Literal["yes", "open", "n/a"]


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """UTF-8 bytes of the text of the prompts. `long`: how many have LONG_BYTES or more."""

    smallest: int
    median: int
    largest: int
    total: int
    long: int


class GateReach(msgspec.Struct, frozen=True):
    """`n`: how many samples a gate can have behind it at most. `decided` open: too few."""

    name: str
    n: int
    needed: int
    decided: Decided


class DatasetStats(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of samples throughout, by value where a field is a table."""

    dataset: str
    dataset_sha256: str
    has_header: bool
    samples: int
    kinds: dict[Kind, int]
    cells: dict[str, dict[str, int]]
    behaviours: dict[str, int]
    structures: dict[str, int]
    adversarial: dict[str, int]
    languages: dict[str, int]
    locales: dict[str, int]
    locale_probes: dict[str, int]
    slices: dict[str, int]
    expected_calls: dict[str, int]
    tools: dict[str, int]
    offered: dict[str, int]
    with_teacher_text: int
    with_required_facts: int
    with_user_turns: int
    with_checks: int
    checks: dict[CheckKind, int]  # samples by the kind of check that they have
    clusters: int
    prompt_bytes: Sizes
    gates: tuple[GateReach, ...]


def dataset_stats(dataset: Dataset, *, min_eligible: int = 15) -> DatasetStats:
    tally = _Tally(dataset.header)
    for sample in dataset.samples():
        tally.add(sample)
    facts, tables = dataset.facts, tally.tables
    return DatasetStats(
        dataset=dataset.name,
        dataset_sha256=dataset.sha256,
        has_header=dataset.has_header,
        samples=facts.samples,
        kinds=facts.kinds,
        cells=_nest(tally.cells),
        behaviours=_order(tables["expected_behaviour"]),
        structures=_order(tables["structure"]),
        adversarial=_order(tally.adversarial),
        languages=_order(tables["language"]),
        locales=facts.locales,
        locale_probes=facts.locale_probes,
        slices=facts.slices,
        expected_calls={str(number): n for number, n in sorted(tally.calls.items())},
        tools=facts.tools,
        offered=facts.offered,
        with_teacher_text=tally.numbers["teacher_text"],
        with_required_facts=facts.with_facts,
        with_user_turns=tally.numbers["user_turns"],
        with_checks=tally.numbers["checks"],
        checks={kind: tally.checks[kind] for kind in CHECK_KINDS if tally.checks[kind]},
        clusters=len(tally.clusters),
        prompt_bytes=tally.sizes(),
        gates=_reaches(_rules_of(dataset), tally.places, facts.samples, min_eligible),
    )


def prompt_bytes(prompt: str | list[dict[str, Json]]) -> int:
    """The size of all text that a model is given first; images and the like do not count."""
    if isinstance(prompt, str):
        return _size(prompt)
    return sum(_content_bytes(message.get("content")) for message in prompt)


def cell_of(metadata: Mapping[str, Json]) -> Cell | None:
    """The scenario and the complexity of an item that names one of them at least."""
    named = metadata.get("scenario"), metadata.get("complexity")
    if named == (None, None):
        return None
    scenario, complexity = (NOTHING if value is None else str(value) for value in named)
    return scenario, complexity


def _content_bytes(content: Json) -> int:
    if isinstance(content, str):
        return _size(content)
    parts = content if isinstance(content, list) else ()
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return sum(_size(text) for text in texts if isinstance(text, str))


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


class _Tally:
    """Counts that the first reading of a dataset does not make."""

    _FIELDS = ("expected_behaviour", "structure", "language")

    def __init__(self, header: Header) -> None:
        self._header = header
        self.tables: dict[str, Counter[str]] = {name: Counter() for name in self._FIELDS}
        self.cells: Counter[Cell] = Counter()
        self.adversarial: Counter[str] = Counter()
        self.calls: Counter[int] = Counter()
        self.numbers: Counter[str] = Counter()
        self.checks: Counter[CheckKind] = Counter()
        self.clusters: set[str] = set()
        self.places: Counter[tuple[Kind, TrialPlace]] = Counter()
        self._bytes = array("Q")

    def add(self, sample: Sample) -> None:
        metadata, expectation = sample.metadata, sample.expectation
        for name, table in self.tables.items():
            value = metadata.get(name)
            if isinstance(value, str | int | float):
                table[str(value)] += 1
        cell = cell_of(metadata)
        if cell is not None:
            self.cells[cell] += 1
        adversarial = metadata.get("adversarial")
        if isinstance(adversarial, dict):
            self.adversarial[str(adversarial.get("type") or NOTHING)] += 1
        self.calls[len(expectation.calls)] += 1
        self.numbers["teacher_text"] += sample.teacher_text is not None
        self.numbers["user_turns"] += bool(sample.user_turns)
        self.numbers["checks"] += bool(expectation.checks)
        self.checks.update({check.kind for check in expectation.checks})
        if expectation.cluster is not None:
            self.clusters.add(expectation.cluster)
        self.places[expectation.kind, _place_of(sample, self._header)] += 1
        self._bytes.append(prompt_bytes(sample.prompt))

    def sizes(self) -> Sizes:
        ordered = sorted(self._bytes)
        return Sizes(
            smallest=ordered[0],
            median=ordered[len(ordered) // 2],
            largest=ordered[-1],
            total=sum(ordered),
            long=sum(size >= LONG_BYTES for size in ordered),
        )


def _place_of(sample: Sample, header: Header) -> TrialPlace:
    expectation = sample.expectation
    extractor = header.span_extractor or "auto"
    if extractor == "auto":
        extractor = "claims" if sample.asks_for_marker() is None else "marker"
    return TrialPlace(
        expectation.locale,
        expectation.locale_probe,
        expectation.slices,
        tuple(sorted({call.name for call in expectation.calls})),
        len(expectation.calls),
        expectation.retry,
        demand_of(expectation.checks),
        extractor == "marker",
        bool(expectation.required_facts),
    )


def _rules_of(dataset: Dataset) -> tuple[GateRule, ...]:
    """The shipped gates as the header changes them."""
    try:
        return resolve_rules(default_gates(), dataset.header.gates)
    except UsageError as error:
        what = str(error).removeprefix("dataset header: ")
        raise UsageError(f"{dataset.header_place}: {what}") from None


def _reaches(
    rules: Sequence[GateRule],
    places: Mapping[tuple[Kind, TrialPlace], int],
    samples: int,
    needed: int,
) -> tuple[GateReach, ...]:
    """Every gate on answers, with the samples that it is about. A model can only lower these
    numbers, by making no call for example."""
    reach: Counter[str] = Counter(populations_of(Trials().samples(), places))
    reach[PERF_BUDGET] = samples
    reach["grounding_lift"] = _pairs(places)
    all_marker = all(place.marker for kind, place in places if kind == "eligible")
    for rule in rules:
        if is_idle(rule, all_marker=all_marker):
            reach[rule.name] = 0
    return tuple(
        GateReach(rule.name, reach[rule.name], needed, _decide(rule, reach[rule.name], needed))
        for rule in rules_on_answers(rules)
    )


def _decide(rule: GateRule, n: int, needed: int) -> Decided:
    if not n:
        return "n/a"
    return "yes" if rule.any_n or n >= needed else "open"


def _pairs(places: Mapping[tuple[Kind, TrialPlace], int]) -> int:
    """Chance is measured between eligible samples with the same tools, on so many at most."""
    groups: Counter[tuple[str, ...]] = Counter()
    for (kind, place), n in places.items():
        if kind == "eligible":
            groups[place.tools] += n
    return min(MAX_SAMPLES, sum(n for n in groups.values() if n > 1))


def _nest(cells: Mapping[Cell, int]) -> dict[str, dict[str, int]]:
    nested: dict[str, dict[str, int]] = {}
    for (scenario, complexity), n in sorted(cells.items()):
        nested.setdefault(scenario, {})[complexity] = n
    return nested


def _order(table: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(table.items()))
