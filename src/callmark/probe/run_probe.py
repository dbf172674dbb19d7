"""The probe: every view is asked every case, the nulls too, and the answers become one report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import msgspec

from callmark._version import __version__
from callmark.core.compare_records import Comparison
from callmark.core.fidelity_records import FidelityResult
from callmark.core.fidelity_stats import null_stats_of
from callmark.core.probe_records import (
    Calibration,
    NullRates,
    NullResult,
    ProbeReport,
    ProbeResult,
    exit_code_of,
)
from callmark.probe.fidelity import Nulls, error_result, fidelity, valid_rate
from callmark.probe.null_cache import NullCache
from callmark.probe.spec import Models, NullAdapterSpec, calibration_spec
from callmark.probe.views import CannotAsk, NullRun, Probe, Views, probe_of

# What is being asked, for people who wait: the name of the view, and how many cases.
Asking = Callable[[str, int], None]


class Suite(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is asked of one pair of models. `nulls` None: no calibration.
    `require_power`: that no drop was seen is not enough."""

    models: Models
    seed: int
    probes: tuple[Probe, ...]
    nulls: NullAdapterSpec | None = None
    require_power: bool = False


class ProbeRun:
    """One suite with one set of views."""

    def __init__(
        self, suite: Suite, views: Views, cache: NullCache, asking: Asking | None = None
    ) -> None:
        self._suite = suite
        self._views = views
        self._cache = cache
        self._asking = asking or _say_nothing
        self._calibrations: list[Calibration] = []
        self._started = time.perf_counter()

    def report(self, compare: Callable[[], Comparison] | None = None) -> ProbeReport:
        """`compare`: both models through the whole pipeline, after the single calls; not where
        these already show that there is nothing to compare."""
        results = tuple(
            ProbeResult(
                result=self._result(probe),
                case_names=tuple(question.name for question in probe.questions),
            )
            for probe in self._suite.probes
        )
        self._calibrate_on_sentinels()
        asked = time.perf_counter()
        broken = any(one.result.verdict == "error" for one in results)
        comparison = None if compare is None or broken else compare()
        return ProbeReport(
            callmark_version=__version__,
            models=msgspec.to_builtins(self._suite.models),
            seed=self._suite.seed,
            views=self._views.facts(),
            results=results,
            nulls=self._null_result(),
            comparison=comparison,
            warnings=self._views.warnings(),
            exit_code=exit_code_of(
                [one.result for one in results],
                comparison,
                require_power=self._suite.require_power,
            ),
            timing={
                "probe_sec": asked - self._started,
                "pipeline_sec": time.perf_counter() - asked,
                "nulls_from_cache": self._cache.found,
                **self._views.measured(),
            },
        )

    def _result(self, probe: Probe) -> FidelityResult:
        spec, questions = probe.spec, probe.questions
        if not questions:
            return fidelity(spec, (), ())
        try:
            self._views.check(questions)
        except CannotAsk as why:
            return error_result(spec.name, str(why))
        self._asking("base", len(questions))
        base = self._views.base(questions)
        self._asking("tuned", len(questions))
        tuned = self._views.tuned(questions)
        return fidelity(spec, base, tuned, nulls=self._nulls_of(probe), seed=self._suite.seed)

    def _nulls_of(self, probe: Probe) -> Nulls | None:
        """The rates of the trained rank decide; other ranks are told apart."""
        calibration = self._calibrated(probe)
        if calibration is None:
            return None
        ranks = calibration.ranks
        own = next((one for one in ranks if one.rank_multiplier == 1), ranks[0])
        stats = {f"{one.rank_multiplier:g}": null_stats_of(one.rates) for one in ranks}
        known = {name: found for name, found in stats.items() if found is not None}
        return Nulls(rates=own.rates, by_rank=known)

    def _calibrated(self, probe: Probe, *, sentinels: bool = False) -> Calibration | None:
        nulls = self._suite.nulls
        if nulls is None or self._views.why_no_nulls is not None or not nulls.rank_multipliers:
            return None
        made = Calibration(
            probe=probe.spec.name,
            num_cases=len(probe.questions),
            sentinels=sentinels,
            ranks=tuple(
                NullRates(
                    rank_multiplier=multiplier, rates=tuple(self._rates(probe, nulls, multiplier))
                )
                for multiplier in dict.fromkeys(nulls.rank_multipliers)
            ),
        )
        self._calibrations.append(made)
        return made

    def _rates(self, probe: Probe, nulls: NullAdapterSpec, multiplier: float) -> Iterator[float]:
        identity = self._views.identity()
        for number in range(1, nulls.runs + 1):
            run = NullRun(
                spec=nulls, seed=self._suite.seed, number=number, rank_multiplier=multiplier
            )
            self._asking(f"null {number} of {nulls.runs}", len(probe.questions))
            texts = self._cache.texts(identity, probe.questions, run, self._views.null)
            yield valid_rate(probe.spec, texts)

    def _calibrate_on_sentinels(self) -> None:
        if not any(probe.questions for probe in self._suite.probes):
            self._calibrated(probe_of(calibration_spec()), sentinels=True)

    def _null_result(self) -> NullResult | None:
        nulls = self._suite.nulls
        if nulls is None:
            return None
        return NullResult(
            name=nulls.name,
            method=nulls.method,
            init_scale=nulls.init_scale if nulls.method == "init_scale" else None,
            runs=nulls.runs,
            unavailable=self._views.why_no_nulls,
            calibrations=tuple(self._calibrations),
        )


def _say_nothing(view: str, cases: int) -> None:
    return


def report_bytes(report: ProbeReport) -> bytes:
    return msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
