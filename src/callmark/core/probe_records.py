"""The report of a probe. What a clock measured stands below `timing`, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from callmark.core.compare_records import Comparison
from callmark.core.compare_records import exit_code as exit_code_of_comparison
from callmark.core.fidelity_records import FidelityResult, exit_code
from callmark.core.jsontext import Json

PROBE_VERSION = "1.0.0"


class NullRates(msgspec.Struct, frozen=True, kw_only=True):
    """What the nulls of one rank reached: the share of cases with a valid call, one for each."""

    rank_multiplier: float
    rates: tuple[float, ...]


class Calibration(msgspec.Struct, frozen=True, kw_only=True):
    """The nulls of one probe. `sentinels`: there were no cases, so two trivial ones were asked."""

    probe: str
    num_cases: int
    sentinels: bool = False
    ranks: tuple[NullRates, ...]


class NullResult(msgspec.Struct, frozen=True, kw_only=True):
    """`kind: null_adapter`. `unavailable`: why no null was made."""

    name: str
    kind: str = "null_adapter"
    method: str
    init_scale: float | None
    runs: int
    unavailable: str | None = None
    calibrations: tuple[Calibration, ...] = ()


class ProbeResult(msgspec.Struct, frozen=True, kw_only=True):
    """One entry of the suite, with the names of its cases, in their order."""

    result: FidelityResult
    case_names: tuple[str, ...]


class ProbeReport(msgspec.Struct, frozen=True, kw_only=True):
    """`comparison`: base and tuned through the whole pipeline, where a dataset was given."""

    probe_version: str = PROBE_VERSION
    callmark_version: str
    models: dict[str, Json]
    seed: int
    views: dict[str, Json]
    results: tuple[ProbeResult, ...]
    nulls: NullResult | None = None
    comparison: Comparison | None = None
    warnings: tuple[str, ...] = ()
    exit_code: int
    timing: dict[str, Json] = {}


def exit_code_of(
    results: Iterable[FidelityResult],
    comparison: Comparison | None,
    *,
    require_power: bool = False,
) -> int:
    """The gravest of all: 1, then 5, then 0. A probe that was skipped has decided nothing."""
    codes = {exit_code(result, require_power=require_power) for result in results}
    if comparison is not None:
        codes.add(exit_code_of_comparison(comparison))
    return next((code for code in (1, 5) if code in codes), 0 if codes else 5)
