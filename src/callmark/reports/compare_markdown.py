"""A comparison as Markdown, for a pull request or a step summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from callmark.core.compare_records import Compared, Comparison, Listed
from callmark.reports.compare_terminal import (
    CHECK_WORD,
    GROUPS,
    LONGEST_ID,
    check_leads,
    check_text,
    counted,
    facts,
    interval,
    p_text,
    signed,
)
from callmark.reports.markup import as_code, as_text, fitted, folded, table
from callmark.reports.terminal import rounded

MARKDOWN_IDS = 50
_WORDS = {
    "regression": "❌ Regression",
    "inconclusive": "⚠️ Inconclusive",
    "non_inferior": "✅ Not worse",
}
_CHECK_SIGN = {True: "✅", False: "❌", None: "⚠️"}
_NUMBERS = ("A", "B", "B − A", "95 % interval", "n", "worse / better")


def comparison_markdown(comparison: Comparison) -> str:
    return fitted(comparison_sections(comparison))


def comparison_sections(comparison: Comparison) -> Iterator[Sequence[str]]:
    yield [f"### {_headline(comparison)}", ""]
    warnings = (f"- **warning:** {as_text(warning)}" for warning in comparison.warnings)
    yield [*(f"- {as_text(fact)}" for fact in facts(comparison)), *warnings, ""]
    yield table(
        ("primary metric", *_NUMBERS, "p (Holm)", "decision"),
        [
            (*_row(one), p_text(one.p_adjusted), as_text((one.decision or "-").replace("_", " ")))
            for one in comparison.primary
        ],
    )
    for name, both in comparison.flips.items():
        for word, listed in (("lost", both.lost), ("gained", both.gained)):
            yield _samples(f"{name}: {listed.count} {word}", listed)
    if comparison.common:
        for word in ("added", "removed", "changed"):
            listed = getattr(comparison.pairs, word)
            yield _samples(f"{listed.count} samples {word}, left out", listed)
    explored = [one for one in comparison.exploratory if one.difference is not None]
    yield folded(
        "Exploratory metrics (not tested)",
        table(("metric", *_NUMBERS), [_row(one) for one in explored]),
    )
    for title, field in GROUPS.items():
        yield folded(f"By {title}", _group(title, getattr(comparison, field)))


def _headline(comparison: Comparison) -> str:
    check = comparison.point_check
    if check is not None and check_leads(comparison):
        word = CHECK_WORD[check.ok][0].capitalize()
        return f"{_CHECK_SIGN[check.ok]} {word}: {as_text(check_text(check))}"
    word, reason = _WORDS[comparison.decision], comparison.decision_reason
    return f"{word}: {as_text(reason.removeprefix('not worse: '))}"


def _row(one: Compared) -> tuple[str, ...]:
    return (
        as_code(one.metric),
        rounded(one.a),
        rounded(one.b),
        signed(one.difference),
        interval(one),
        str(one.n),
        counted(one),
    )


def _group(title: str, groups: Mapping[str, Sequence[Compared]]) -> list[str]:
    rows = [
        (as_code(name, LONGEST_ID), *_row(one))
        for name, metrics in groups.items()
        for one in metrics
        if one.difference is not None
    ]
    return table((title, "metric", *_NUMBERS), rows)


def _samples(title: str, listed: Listed) -> list[str]:
    shown = [f"- {as_code(name, LONGEST_ID)}" for name in listed.sample_ids[:MARKDOWN_IDS]]
    if listed.count > len(shown):
        shown.append(f"- and {listed.count - len(shown)} more")
    return folded(title, shown)
