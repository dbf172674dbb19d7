"""The table of faults that can be planted into recorded answers, one kind a row; and which sample
gets which: exact counts, at most one fault each, one byte per sample."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from functools import cache
from random import Random

import msgspec

from callmark.datasets.generate.conduct_faults import CALL_FAULTS, CONDUCT_FAULTS, LEAKS
from callmark.datasets.generate.grounding_faults import GROUNDING_FAULTS
from callmark.datasets.generate.plan import RECIPES, order_of
from callmark.datasets.generate.records import MadeSample
from callmark.datasets.generate.truth import Planted, PlantedFault, Truth, truth_of
from callmark.datasets.generate.world import World, offsets_of
from callmark.errors import UsageError

FAULTS: dict[str, PlantedFault] = {
    fault.name: fault for fault in (*GROUNDING_FAULTS, *CALL_FAULTS, *CONDUCT_FAULTS, *LEAKS)
}


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
