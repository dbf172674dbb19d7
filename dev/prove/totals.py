"""All metrics of a report, added up here once more from the rows, in exact fractions.

Nothing of callmark's own summary is used: this is the second opinion that a report is compared
with."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction

import msgspec

from callmark.records.report import Metric
from dev.prove.rows import HEAVY, Row

PROBED = ("es", "de", "fr")
DRAWN = 500  # samples that the level of chance is taken from
_EXACT = 1e-12  # between a fraction and the double that a report holds


class Total(msgspec.Struct, frozen=True):
    """`upper` ÷ `lower` over `n` samples. Counts have no quotient, and the F1 of pooled counts
    has no parts of its own. None: no data."""

    value: Fraction | None
    upper: Fraction | None
    lower: Fraction | None
    n: int

    def agrees(self, metric: Metric) -> bool:
        """Is this what a report says? To the unit in counts, to the last digits in shares."""
        if self.n != metric.n or not _same(self.value, metric.value):
            return False
        if self.n == 0:
            return True
        return _same(self.upper, metric.numerator) and _same(self.lower, metric.denominator)

    def __str__(self) -> str:
        value = "none" if self.value is None else f"{float(self.value):.12g}"
        parts = "" if self.upper is None or self.lower is None else f" = {self.upper}/{self.lower}"
        return f"{value}{parts} (n = {self.n})"


def totals_of(rows: Sequence[Row]) -> dict[str, Total]:
    """Every metric by name. Chance is taken to be 0: no generated answer fits the results of
    another sample, and a report that says otherwise differs."""
    eligible = [row for row in rows if row.place.kind == "eligible"]
    integrating = [row for row in rows if row.integrates]
    heavy = [row for row in rows if HEAVY in row.place.slices]
    found = dict(_on_grounding(integrating)) | _on_calls(rows, eligible) | _on_conduct(rows)
    found |= _on_statements(rows, eligible)
    for language in PROBED:
        probes = [
            row for row in integrating if row.place.is_probe and row.place.language == language
        ]
        found[f"locale_delta_{language}"] = _mean(map(_delta, probes))
    found["teacher_heavy_spans_over_cap"] = _count([row.count("over_cap") for row in heavy])
    found["teacher_heavy_f1_lax"] = _mean(row.f1("lax") for row in heavy if row.integrates)
    paired = list(_paired(eligible))
    found["chance_f1"] = _mean(Fraction(0) for _ in paired)
    found["grounding_lift"] = _mean(row.f1("lax") for row in paired)
    return found


def _on_grounding(rows: Sequence[Row]) -> Iterator[tuple[str, Total]]:
    for side in ("lax", "strict"):
        precision = _pooled(rows, f"grounded_{side}", "spans")
        recall = _pooled(rows, f"found_{side}", "required")
        yield f"integration_f1_macro_{side}", _mean(row.f1(side) for row in rows)
        yield f"integration_precision_micro_{side}", precision
        yield f"integration_recall_micro_{side}", recall
        yield f"integration_f1_micro_{side}", _harmonic(precision, recall, len(rows))
    yield "integration_delta_lax_minus_strict", _mean(map(_delta, rows))
    yield "integration_coverage", _rate(rows, "has_span")
    yield "grounded_coverage", _rate(rows, "has_grounded")


def _on_statements(rows: Sequence[Row], eligible: Sequence[Row]) -> dict[str, Total]:
    ratios = [row.copy_ratio for row in rows]
    selecting = [row.is_no_copy for row in rows]
    told = [Fraction(one) for one in selecting if one is not None]
    return {
        "unsupported_value_rate": _pooled(eligible, "unsupported", "values"),
        "flagged_sample_rate": _rate(rows, "flagged"),
        "unchecked_share": _pooled(rows, "unchecked", "judged"),
        "answered_rate": _rate(eligible, "answered"),
        "copy_ratio": _mean(ratio for ratio in ratios if ratio is not None),
        "copy_ratio_ok_rate": _share(sum(told, Fraction(0)), len(told), len(told)),
        "invented_argument_rate": _pooled(rows, "invented", "arguments"),
    }


def _on_calls(rows: Sequence[Row], eligible: Sequence[Row]) -> dict[str, Total]:
    others = [row for row in rows if row.place.kind != "control"]
    shares = (row.share("call_f1") for row in rows)
    return {
        "multi_call_parity_rate": _rate(rows, "parity"),
        "call_f1_macro": _mean(share for share in shares if share is not None),
        "valid_call_rate": _rate(eligible, "valid_call"),
        "json_args_valid_rate": _rate(rows, "args_valid"),
        "error_recovery_rate": _rate(rows, "recovered"),
        "fixture_hit_rate": _pooled(others, "hits", "looked_up"),
    }


def _on_conduct(rows: Sequence[Row]) -> dict[str, Total]:
    controls = [row.count("contaminated") for row in rows if row.place.kind == "control"]
    return {
        "controls_with_integration": _count(controls),
        "negative_control_ok_rate": _rate(rows, "negative_ok"),
        "clarify_ok_rate": _rate(rows, "clarify_ok"),
        "privacy_ok_rate": _rate(rows, "privacy_ok"),
        "locale_probe_ok_rate": _rate(rows, "locale_ok"),
        "checks_ok_rate": _rate(rows, "checks_ok"),
        "unchanged_rate": _rate((), "unchanged"),  # nothing that is generated was observed
    }


def _paired(eligible: Sequence[Row]) -> Iterator[Row]:
    """Of the samples with the smallest hashes those that have another one with results of the
    same tools."""
    by_hash = sorted(eligible, key=lambda row: hashlib.sha256(row.sample_id.encode()).digest())
    drawn = by_hash[:DRAWN]
    groups = Counter(row.place.served_by for row in drawn)
    return (row for row in drawn if groups[row.place.served_by] > 1)


def _delta(row: Row) -> Fraction:
    return row.f1("lax") - row.f1("strict")


def _mean(values: Iterable[Fraction]) -> Total:
    listed = list(values)
    return _share(sum(listed, Fraction(0)), len(listed), len(listed))


def _rate(rows: Iterable[Row], name: str) -> Total:
    flags = [flag for flag in (row.flag(name) for row in rows) if flag is not None]
    return _share(Fraction(sum(flags)), len(flags), len(flags))


def _pooled(rows: Iterable[Row], upper: str, lower: str) -> Total:
    """Samples without a denominator are not behind the value."""
    pairs = [(row.count(upper), row.count(lower)) for row in rows if row.count(lower)]
    total = Fraction(sum(count for count, _ in pairs))
    return _share(total, sum(count for _, count in pairs), len(pairs))


def _share(upper: Fraction, lower: int, n: int) -> Total:
    return Total(upper / lower if lower else None, upper, Fraction(lower), n)


def _harmonic(precision: Total, recall: Total, n: int) -> Total:
    one, other = precision.value or Fraction(0), recall.value or Fraction(0)
    total = one + other
    return Total(2 * one * other / total if total else Fraction(0), None, None, n)


def _count(numbers: Sequence[int]) -> Total:
    total = Fraction(sum(numbers)) if numbers else None
    return Total(total, total, Fraction(len(numbers)), len(numbers))


def _same(one: Fraction | None, other: float | None) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return abs(float(one) - other) <= _EXACT * max(1.0, abs(other))
