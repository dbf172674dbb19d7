"""Two reports without their results: differences, and nothing that would need pairs."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from callmark.core.compare import GROUP_METRICS, CompareOptions, point_check, refuse_others
from callmark.core.compare_metrics import better_is
from callmark.core.compare_records import Check, Compared, Comparison, SideFacts
from callmark.core.compare_side import COMPARED_INPUTS, check_values

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


def compare_reports(
    a: ReportValues, b: ReportValues, paths: tuple[str, str], options: CompareOptions
) -> Comparison:
    mine, theirs = msgspec.structs.asdict(a.header), msgspec.structs.asdict(b.header)
    checks: dict[str, Check] = {
        name: check_values(mine[name], theirs[name])
        for name in (*COMPARED_INPUTS, "span_extractor", "integration_span_cap")
    }
    refuse_others(checks, mine, theirs, common=False)
    compared = _differences(a.metrics, b.metrics)
    found = {one.metric: one for one in compared}
    f1 = found.get("integration_f1_macro_lax")
    return Comparison(
        decision="inconclusive",
        decision_reason="two reports hold no samples to pair: differences only",
        paired=False,
        a=_facts(a, paths[0]),
        b=_facts(b, paths[1]),
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
        better_is=better_is(name),
        a=before,
        b=now,
        difference=now - before if before is not None and now is not None else None,
        n=min(a.n, b.n),
        reason=None if known else "a side has no value",
    )


def _share(name: str, found: ReportValue) -> float | None:
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
