"""What is tried: good answers, every fault alone, all faults together; for each seed. The same for
answers about records, whose every statement is known."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from callmark.datasets.generate import FAULTS, PlantedFault, plan_faults
from callmark.records.jsontext import Json
from dev.prove.beyond import BEYOND, Beyond
from dev.prove.comparing import Compared, Difference, compare
from dev.prove.measuring import Measured, Setting, measure
from dev.prove.stated import StatedRun, compare_stated, measure_stated
from dev.prove.stated_faults import STATED

GOOD, MIXED = "good", "mixed"
ALONE: dict[str, PlantedFault | Beyond] = {**FAULTS, **BEYOND}
KINDS = (*ALONE, MIXED)
RIGHT, ALL_STATED = "right_statements", "all_statements"
STATED_KINDS = (*STATED, ALL_STATED)
EVERY_KIND = (*KINDS, *STATED_KINDS)
ALONE_RATE, MIXED_RATE = 0.20, 0.05
_GATE_FAILED = 1
_OF_MARKERS = "unsupported_value_rate"  # n/a where answers are read with `claims`
_BINDING: dict[str, Json] = {
    "flagged_sample_rate": {"policy": "hard_fail", "bound": 0.05},
    "invented_argument_rate": {"policy": "hard_fail", "bound": 0.05},
}


class Judged(msgspec.Struct, frozen=True):
    """What the gate that is named for a fault said. `shipped` is its policy for everybody; here
    it is binding. `decidable`: enough samples stand behind it."""

    gate: str
    shipped: str
    status: str
    value: float | None
    decidable: bool
    exit_code: int


class Finding(msgspec.Struct, frozen=True):
    """One run. `gate` only where a fault is alone."""

    seed: int
    kind: str
    compared: Compared
    judged: Judged | None
    differences: tuple[Difference, ...]


def prove_seed(seed: int, setting: Setting, kinds: Sequence[str] = EVERY_KIND) -> list[Finding]:
    """The runs of one seed: these kinds, and the good answers that they are planted into."""
    with tempfile.TemporaryDirectory(prefix="callmark-prove-") as name:
        folder, found = Path(name), list[Finding]()
        planted = [kind for kind in kinds if kind in KINDS]
        if planted:
            found += _findings(folder, seed, setting, planted)
        stated = [kind for kind in kinds if kind in STATED_KINDS]
        if stated:
            found += _stated_findings(folder, seed, setting, stated)
        return found


def _findings(folder: Path, seed: int, setting: Setting, kinds: Sequence[str]) -> Iterator[Finding]:
    good = _measured(folder / GOOD, setting, seed, {})
    compared = compare(seed, GOOD, good, good)
    short = _short_of_passing(seed, GOOD, good, setting)
    yield Finding(seed, GOOD, compared, None, (*compared.differences, *short))
    for kind in kinds:
        if kind == MIXED:
            run = _measured(folder / kind, setting, seed, mixed_rates(setting.total))
            compared = compare(seed, kind, run, good)
            yield Finding(seed, kind, compared, None, compared.differences)
        else:
            yield _alone(folder / kind, setting, kind, good, seed)


def _stated_findings(
    folder: Path, seed: int, setting: Setting, kinds: Sequence[str]
) -> Iterator[Finding]:
    right = measure_stated(folder / RIGHT, setting, seed, {})
    compared = compare_stated(seed, RIGHT, right, right)
    short = _short_of_passing(seed, RIGHT, right, setting)
    yield Finding(seed, RIGHT, compared, None, (*compared.differences, *short))
    for kind in kinds:
        if kind == ALL_STATED:
            run = measure_stated(folder / kind, setting, seed, dict.fromkeys(STATED, 0.0))
            compared = compare_stated(seed, kind, run, right)
            yield Finding(seed, kind, compared, None, compared.differences)
        else:
            yield _stated_alone(folder / kind, setting, kind, right, seed)


def _stated_alone(
    folder: Path, setting: Setting, kind: str, right: StatedRun, seed: int
) -> Finding:
    """One kind of mistake. Its gate is binding at the bound at which it warns as shipped; what has
    no gate passes all of them."""
    gate = STATED[kind].gate
    gates = {} if gate is None else {gate: _BINDING.get(gate, {"policy": "hard_fail"})}
    run = measure_stated(folder, setting, seed, {kind: ALONE_RATE}, gates)
    compared = compare_stated(seed, kind, run, right)
    if gate is None:
        more = _short_of_passing(seed, kind, run, setting)
        return Finding(seed, kind, compared, None, (*compared.differences, *more))
    shipped = next((one.policy for one in right.report.gates if one.name == gate), "no bound")
    judged = _judged(gate, shipped, run, setting)
    differences = (*compared.differences, *_not_failed(seed, kind, judged))
    return Finding(seed, kind, compared, judged, differences)


def mixed_rates(total: int) -> dict[str, float]:
    """The same share of each kind, and at least one."""
    possible = plan_faults(total, 0, dict.fromkeys(FAULTS, 0.0)).applicable
    return {kind: max(MIXED_RATE, 1 / possible[kind]) for kind in FAULTS}


def _alone(folder: Path, setting: Setting, kind: str, good: Measured, seed: int) -> Finding:
    """One fault, with the gate that is named for it made binding."""
    gate = ALONE[kind].gate
    shipped = next(outcome for outcome in good.report.gates if outcome.name == gate)
    policy = shipped.policy
    forgiving = policy in ("warning_only", "clear_fail")
    binding = {gate: {"policy": "hard_fail"}} if forgiving else {}
    run = _measured(folder, setting, seed, {kind: ALONE_RATE}, binding)
    compared = compare(seed, kind, run, good)
    judged = _judged(gate, policy, run, setting)
    more = [*_beyond_its_effect(seed, kind, run), *_not_failed(seed, kind, judged)]
    return Finding(seed, kind, compared, judged, (*compared.differences, *more))


def _measured(
    folder: Path,
    setting: Setting,
    seed: int,
    faults: dict[str, float],
    gates: Mapping[str, Json] | None = None,
) -> Measured:
    folder.mkdir()
    return measure(folder, setting, seed, faults, gates)


def _short_of_passing(
    seed: int, kind: str, run: Measured | StatedRun, setting: Setting
) -> Iterator[Difference]:
    """Good answers pass every gate that the dataset can decide: one with enough samples."""
    other = _OF_MARKERS if isinstance(run, StatedRun) else None
    for outcome in run.report.gates:
        decidable = outcome.n >= setting.enough and outcome.name != other
        if decidable and outcome.status != "pass":
            yield Difference(seed, kind, "gates", outcome.name, "pass", outcome.status)
    if run.exit_code:
        yield Difference(seed, kind, "gates", "exit code", "0", str(run.exit_code))


def _judged(gate: str, policy: str, run: Measured | StatedRun, setting: Setting) -> Judged:
    outcome = next(outcome for outcome in run.report.gates if outcome.name == gate)
    return Judged(
        gate=gate,
        shipped=policy,
        status=outcome.status,
        value=outcome.value,
        decidable=outcome.n >= setting.enough,
        exit_code=run.exit_code,
    )


def _not_failed(seed: int, kind: str, judged: Judged) -> Iterator[Difference]:
    if not judged.decidable:
        return
    if judged.status != "fail":
        yield Difference(seed, kind, "gates", judged.gate, "fail", judged.status)
    if judged.exit_code != _GATE_FAILED:
        yield Difference(seed, kind, "gates", "exit code", "1", str(judged.exit_code))


def _beyond_its_effect(seed: int, kind: str, run: Measured) -> Iterator[Difference]:
    """A fault moves only the columns that its row of the table declares."""
    for name, record in run.truth.items():
        for column in sorted(set(record.moved) - ALONE[kind].effect):
            yield Difference(seed, kind, name, column, "not moved", "moved by the plan")
