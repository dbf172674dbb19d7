"""Two reports without their results: differences, and no decision."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec

from callmark.compare.compare import GROUP_METRICS, CompareOptions, point_check, refuse_others
from callmark.compare.records import Check, Compared, Comparison, SideFacts
from callmark.compare.sides import COMPARED_INPUTS, check_values
from callmark.plugins import added_measures
from callmark.store.files import read_json_record
from callmark.summary.gates import better_is, is_measure

F1_OF_TOOL = {"integration_f1_macro_lax": "lax", "integration_f1_macro_strict": "strict"}
_COUNTS = frozenset({"controls_with_integration", "teacher_heavy_spans_over_cap"})


class ReportValue(msgspec.Struct, frozen=True):
    """A metric as any version of a report has it."""

    value: float | None = None
    numerator: float | None = None
    denominator: float | None = None
    n: int = 0


class Group(msgspec.Struct, frozen=True):
    metrics: dict[str, ReportValue] = {}


class ToolF1(msgspec.Struct, frozen=True):
    lax: float
    strict: float
    sample_count: int = 0


class ReportHead(msgspec.Struct, frozen=True):
    dataset_sha256: str | None = None
    tool_registry_sha256: str | None = None
    fixtures_sha256: str | None = None
    span_extractor: str | None = None
    integration_span_cap: int | None = None
    model_fingerprint: str | None = None
    runner_fingerprint: str | None = None
    scorer_version: str | None = None


class Totals(msgspec.Struct, frozen=True):
    samples: int | None = None
    trials: int | None = None
    trials_error: int | None = None


class ReportValues(msgspec.Struct, frozen=True):
    """What a comparison takes from a report; fields that it does not know are left alone."""

    report_version: str
    header: ReportHead
    metrics: dict[str, ReportValue]
    counts: Totals = Totals()
    per_tool_deltas: dict[str, ToolF1] = {}
    slices: dict[str, Group] = {}
    locales: dict[str, Group] = {}


def compare_reports(path_a: Path, path_b: Path, options: CompareOptions) -> Comparison:
    """What they say of the same metrics, B beside A."""
    a, b = (read_json_record(path, ReportValues, "report") for path in (path_a, path_b))
    mine, theirs = msgspec.structs.asdict(a.header), msgspec.structs.asdict(b.header)
    checks: dict[str, Check] = {
        name: check_values(mine[name], theirs[name])
        for name in (*COMPARED_INPUTS, "span_extractor", "integration_span_cap")
    }
    refuse_others(checks, mine, theirs, common=False)
    ways = added_measures()
    unknown = [name for name in a.metrics if is_measure(name) and name not in ways]
    compared = _differences(
        {name: value for name, value in a.metrics.items() if name not in unknown}, b.metrics
    )
    found = {one.metric: one for one in compared}
    f1 = found.get("integration_f1_macro_lax")
    return Comparison(
        decision="inconclusive",
        # A difference of two means has no error of its own: without pairs nothing can be decided.
        decision_reason="two reports hold no samples to pair: differences only",
        paired=False,
        a=_facts(a, str(path_a)),
        b=_facts(b, str(path_b)),
        comparable=checks,
        as_stored=True,
        margin=options.margin,
        primary=tuple(
            msgspec.structs.replace(found[name], role="primary")
            for name in options.primary
            if name in found
        ),
        exploratory=tuple(one for one in compared if one.metric not in options.primary),
        by_tool=_report_groups(_tools(a), _tools(b)),
        by_slice=_report_groups(a.slices, b.slices),
        by_locale=_report_groups(a.locales, b.locales),
        point_check=point_check(None if f1 is None else f1.difference, options.max_f1_delta),
        warnings=tuple(
            f"{name}: not known on both sides, so unchecked"
            for name, check in checks.items()
            if check == "unchecked"
        )
        + tuple(
            f"{name}: not compared: which way it is better, its scorer says (--plugin FILE)"
            for name in unknown
        ),
    )


def _facts(report: ReportValues, path: str) -> SideFacts:
    return SideFacts(
        path=path,
        samples=report.counts.samples,
        trials=report.counts.trials,
        errors=report.counts.trials_error,
        model_fingerprint=report.header.model_fingerprint,
        runner_fingerprint=report.header.runner_fingerprint,
    )


def _differences(
    a: Mapping[str, ReportValue], b: Mapping[str, ReportValue]
) -> tuple[Compared, ...]:
    return tuple(_difference(name, a[name], b[name]) for name in a if name in b)


def _difference(name: str, a: ReportValue, b: ReportValue) -> Compared:
    before, now = _share(name, a), _share(name, b)
    known = before is not None and now is not None
    return Compared(
        metric=name,
        role="exploratory",
        better_is=added_measures().get(name) or better_is(name),
        a=before,
        b=now,
        difference=now - before if before is not None and now is not None else None,
        n=min(a.n, b.n),
        reason=None if known else "a side has no value",
    )


def _share(name: str, found: ReportValue) -> float | None:
    # Counts of two runs of different size say nothing beside each other; shares do.
    if name in _COUNTS and found.value is not None and found.denominator:
        return found.value / found.denominator
    return found.value


def _tools(report: ReportValues) -> dict[str, Group]:
    return {
        tool: Group(
            {
                name: ReportValue(getattr(delta, field), n=delta.sample_count)
                for name, field in F1_OF_TOOL.items()
            }
        )
        for tool, delta in report.per_tool_deltas.items()
    }


def _report_groups(
    a: Mapping[str, Group], b: Mapping[str, Group]
) -> dict[str, tuple[Compared, ...]]:
    return {
        name: tuple(
            one
            for one in _differences(a[name].metrics, b[name].metrics)
            if one.metric in GROUP_METRICS
        )
        for name in sorted(a.keys() & b.keys())
    }
