"""How many samples of which recipe, and in which order; and which of them gets which fault: exact
counts, at most one each. One byte per sample is all that either plan keeps."""

from __future__ import annotations

import heapq
from array import array
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from random import Random

import msgspec

from callmark.datasets.generate.chains import CHAINS, RETRIES
from callmark.datasets.generate.controls import CONVERSATIONS, NOTHING_FOUND
from callmark.datasets.generate.faults import FAULTS
from callmark.datasets.generate.lookups import ADVERSARIAL, LOCALE_PROBES, LOOKUPS, REPORTS
from callmark.datasets.generate.records import Complexity, MadeSample, Recipe, World, offsets_of
from callmark.datasets.generate.truth import Planted, PlantedFault, Truth, truth_of
from callmark.errors import UsageError

RECIPES: tuple[Recipe, ...] = (
    *LOOKUPS,
    *CHAINS,
    *RETRIES,
    *REPORTS,
    *LOCALE_PROBES,
    *ADVERSARIAL,
    *CONVERSATIONS,
    *NOTHING_FOUND,
)
MIN_PER_CELL = 3
_WHOLE = 1 << 62  # places in the dataset are whole numbers below this: no rounding decides


class PlanCell(msgspec.Struct, frozen=True):
    """Scenario × complexity. `weight` is its share of the samples, `least` the smallest share
    that it may have, and it never has fewer than three."""

    scenario: str
    complexity: Complexity
    weight: int
    least: Fraction = Fraction(0)

    def floor(self, total: int) -> int:
        return max(MIN_PER_CELL, -(-total * self.least.numerator // self.least.denominator))


# In this order cells come in where there are too few samples for all of them: 60 are enough, 61
# (where shares are rounded up) are one too few, 62 and more are enough again.
CELLS: tuple[PlanCell, ...] = (
    PlanCell("lookup", "simple", 105),
    PlanCell("control", "simple", 110, Fraction(1, 10)),
    PlanCell("nothing_found", "simple", 50),
    PlanCell("clarify", "simple", 45),
    PlanCell("long", "complex", 55, Fraction(1, 20)),
    PlanCell("locale_report", "simple", 180),
    PlanCell("file", "simple", 40),
    PlanCell("note", "moderate", 45),
    PlanCell("retry", "moderate", 55),
    PlanCell("compare", "moderate", 30),
    PlanCell("code", "simple", 35),
    PlanCell("chain", "moderate", 40),
    PlanCell("dense", "complex", 50),
    PlanCell("adversarial", "moderate", 30),
    PlanCell("cross_check", "moderate", 45),
    PlanCell("page", "simple", 35),
    PlanCell("workflow", "complex", 35),
    PlanCell("repository", "simple", 30),
    PlanCell("compare", "complex", 15),
)


def counts_of(total: int) -> dict[PlanCell, int]:
    """How many samples each cell gets. Cells that would have fewer than three are left out, but
    for the first, which takes what there is."""
    if total < 1:
        raise UsageError(f"--total must be at least 1, not {total}")
    admitted: list[PlanCell] = []
    room = total
    for cell in CELLS:
        room -= cell.floor(total)
        if room < 0 and admitted:
            break
        admitted.append(cell)
    return _share(total, admitted)


def _share(total: int, cells: Sequence[PlanCell]) -> dict[PlanCell, int]:
    """By weight, but none below its floor: what floors take more, the others have less."""
    counts: dict[PlanCell, int] = {}
    free, room = list(cells), total
    while True:
        weights = sum(cell.weight for cell in free)
        low = [cell for cell in free if cell.floor(total) * weights > room * cell.weight]
        if not low or len(free) == 1:
            break
        for cell in low:
            counts[cell] = cell.floor(total)
            room -= counts[cell]
            free.remove(cell)
    shares = apportion(room, [cell.weight for cell in free])
    counts |= zip(free, shares, strict=True)
    return {cell: counts[cell] for cell in cells}


def apportion(total: int, weights: Sequence[int]) -> list[int]:
    """Whole numbers with this sum, as near to the weights as they can be (largest remainder)."""
    whole = sum(weights)
    counts = [total * weight // whole for weight in weights]
    by_remainder = sorted(range(len(weights)), key=lambda at: (-(total * weights[at] % whole), at))
    for at in by_remainder[: total - sum(counts)]:
        counts[at] += 1
    return counts


def order_of(total: int) -> array[int]:
    """The recipe of every sample, by its position in `RECIPES`. Each recipe is spread evenly, so
    that every part of the dataset is a small picture of the whole."""
    counts = {recipe: count for recipe, count in _recipe_counts(total) if count}
    heap = [(_WHOLE // (2 * count), recipe, 1) for recipe, count in counts.items()]
    heapq.heapify(heap)
    order = array("B")
    while heap:
        _, recipe, done = heap[0]
        order.append(recipe)
        if done < counts[recipe]:
            place = _WHOLE * (2 * done + 1) // (2 * counts[recipe])
            heapq.heapreplace(heap, (place, recipe, done + 1))
        else:
            heapq.heappop(heap)
    return order


def _recipe_counts(total: int) -> Iterator[tuple[int, int]]:
    for cell, count in counts_of(total).items():
        members = [
            at
            for at, recipe in enumerate(RECIPES)
            if (recipe.scenario, recipe.complexity) == (cell.scenario, cell.complexity)
        ]
        yield from zip(
            members, apportion(count, [RECIPES[at].share for at in members]), strict=True
        )


def samples_of(total: int, seed: int) -> Iterator[MadeSample]:
    """Every sample, one at a time."""
    offsets = offsets_of(seed)
    for index, code in enumerate(order_of(total)):
        recipe = RECIPES[code]
        draft = recipe.make(World(offsets, index))
        yield MadeSample(index, f"{recipe.scenario}-{index:06}", recipe, draft)


_NAMES = tuple(FAULTS)


class FaultPlan(msgspec.Struct, frozen=True):
    """`applicable` and `planted`: numbers of samples by kind of fault."""

    seed: int
    codes: bytearray
    applicable: dict[str, int]
    planted: dict[str, int]

    def fault_of(self, index: int) -> PlantedFault | None:
        code = self.codes[index]
        return FAULTS[_NAMES[code - 1]] if code else None


class TruthRecord(msgspec.Struct, frozen=True):
    """What is true of one recorded answer. `moved` names the numbers that the fault changed."""

    sample_id: str
    fault: str | None
    moved: tuple[str, ...]
    truth: Truth


def plan_faults(total: int, seed: int, rates: Mapping[str, float]) -> FaultPlan:
    """`round(rate × applicable)` samples for each kind. Kinds with fewer samples to choose from
    choose first; samples that have a fault are out of the question for the others."""
    check_rates(rates)
    if not rates:
        return FaultPlan(seed, bytearray(total), {}, {})
    order = order_of(total)
    sizes = {name: sum(map(order.count, _fitting(name))) for name in rates}
    wanted = {name: round(rates[name] * sizes[name]) for name in rates}
    codes = bytearray(total)
    for name in sorted(rates, key=lambda name: (sizes[name], name)):
        fitting = _fitting(name)
        free = array(
            "I", (at for at, code in enumerate(order) if code in fitting and not codes[at])
        )
        if len(free) < wanted[name]:
            raise UsageError(
                f"--fault {name}={rates[name]}: wants {wanted[name]} samples, and only {len(free)}"
                " without another fault are left: lower a rate, or raise --total"
            )
        for at in _chosen(free, wanted[name], Random(f"{seed}:faults:{name}")):  # noqa: S311
            codes[at] = _NAMES.index(name) + 1
    return FaultPlan(seed, codes, sizes, wanted)


def check_rates(rates: Mapping[str, float]) -> None:
    for name, rate in rates.items():
        if name not in FAULTS:
            raise UsageError(f"--fault {name}: no such fault; known: {', '.join(FAULTS)}")
        if not 0 <= rate <= 1:
            raise UsageError(f"--fault {name}={rate}: the rate must be between 0 and 1")


def plant(sample: MadeSample, plan: FaultPlan) -> tuple[Planted, TruthRecord]:
    """The answer of one sample as planned, and what is true of it."""
    fault, truth = plan.fault_of(sample.index), truth_of(sample)
    if fault is None:
        return Planted(sample.draft.answer, {}), TruthRecord(sample.sample_id, None, (), truth)
    rng = Random(f"{plan.seed}:fault:{sample.index}")  # noqa: S311 - reproducible on purpose
    planted = fault.plant(sample, rng)
    moved = tuple(name for name, value in planted.moved.items() if value != truth[name])
    return planted, TruthRecord(sample.sample_id, fault.name, moved, {**truth, **planted.moved})


@cache
def _fitting(name: str) -> frozenset[int]:
    """The recipes whose samples can have this fault. One sample shows it for all of a recipe."""
    fitting = set()
    for code, recipe in enumerate(RECIPES):
        example = MadeSample(0, "", recipe, recipe.make(World(offsets_of(0), 0)))
        if FAULTS[name].applies(example):
            fitting.add(code)
    return frozenset(fitting)


def _chosen(free: array[int], wanted: int, rng: Random) -> Iterator[int]:
    """Exactly so many, each as likely as any other, in order."""
    left = len(free)
    for at in free:
        if rng.random() * left < wanted:
            yield at
            wanted -= 1
        left -= 1
