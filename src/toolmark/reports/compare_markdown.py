"""A comparison as Markdown, for a pull request or a step summary."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from toolmark.core.compare_records import Compared, Comparison, Listed
from toolmark.reports.compare_terminal import (
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
from toolmark.reports.neutral import one_line
from toolmark.reports.terminal import rounded

SHOWN_IDS = 50
_WORDS = {
    "regression": "❌ Regression",
    "inconclusive": "⚠️ Inconclusive",
    "non_inferior": "✅ Not worse",
}
_CHECK_SIGN = {True: "✅", False: "❌", None: "⚠️"}
_NUMBERS = ("A", "B", "B − A", "95 % interval", "n", "worse / better")


def comparison_markdown(comparison: Comparison) -> str:
    return "\n".join(_lines(comparison)) + "\n"


def _lines(comparison: Comparison) -> Iterator[str]:
    yield f"### {_headline(comparison)}"
    yield ""
    yield from (f"- {_text(fact)}" for fact in facts(comparison))
    yield from (f"- **warning:** {_text(warning)}" for warning in comparison.warnings)
    yield ""
    yield from _table(
        ("primary metric", *_NUMBERS, "p (Holm)", "decision"),
        [
            (*_row(one), p_text(one.p_adjusted), _text((one.decision or "-").replace("_", " ")))
            for one in comparison.primary
        ],
    )
    for name, both in comparison.flips.items():
        for word, listed in (("lost", both.lost), ("gained", both.gained)):
            yield from _samples(f"{name}: {listed.count} {word}", listed)
    if comparison.common:
        for word in ("added", "removed", "changed"):
            listed = getattr(comparison.pairs, word)
            yield from _samples(f"{listed.count} samples {word}, left out", listed)
    explored = [one for one in comparison.exploratory if one.difference is not None]
    yield from _folded(
        "Exploratory metrics (not tested)",
        _table(("metric", *_NUMBERS), [_row(one) for one in explored]),
    )
    for title, field in GROUPS.items():
        yield from _folded(f"By {title}", _group(title, getattr(comparison, field)))


def _headline(comparison: Comparison) -> str:
    check = comparison.point_check
    if check is not None and check_leads(comparison):
        word = CHECK_WORD[check.ok][0].capitalize()
        return f"{_CHECK_SIGN[check.ok]} {word}: {_text(check_text(check))}"
    return f"{_WORDS[comparison.decision]}: {_text(comparison.decision_reason)}"


def _row(one: Compared) -> tuple[str, ...]:
    return (
        _code(one.metric),
        rounded(one.a),
        rounded(one.b),
        signed(one.difference),
        interval(one),
        str(one.n),
        counted(one),
    )


def _group(title: str, groups: Mapping[str, Sequence[Compared]]) -> Iterator[str]:
    rows = [
        (_code(name), *_row(one))
        for name, metrics in groups.items()
        for one in metrics
        if one.difference is not None
    ]
    return _table((title, "metric", *_NUMBERS), rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if not rows:
        return
    yield f"| {' | '.join(columns)} |"
    yield f"|{'---|' * len(columns)}"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _samples(title: str, listed: Listed) -> Iterator[str]:
    if not listed.count:
        return
    shown = [f"- {_code(name)}" for name in listed.sample_ids[:SHOWN_IDS]]
    if listed.count > len(shown):
        shown.append(f"- and {listed.count - len(shown)} more")
    yield from _folded(title, iter(shown))


def _folded(title: str, lines: Iterator[str]) -> Iterator[str]:
    inner = list(lines)
    if not inner:
        return
    yield f"<details><summary>{_text(title)}</summary>"
    yield ""
    yield from inner
    yield ""
    yield "</details>"
    yield ""


def _code(name: str) -> str:
    """Names come from datasets and models: in a code span nothing of them means anything."""
    return f"`{one_line(name, LONGEST_ID).replace('`', chr(39)).replace('|', '/')}`"


def _text(text: str) -> str:
    """Prose with names in it: no markup, no HTML, no mention of a person."""
    shown = one_line(text)
    for mark in "\\`*_[]<>|#@":
        shown = shown.replace(mark, f"\\{mark}" if mark != "@" else "(at)")
    return shown
