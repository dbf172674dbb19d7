"""Pieces of Markdown for GitHub that no text of a model, a tool or a dataset can break out of.

GitHub links mentions, issues, commits and addresses wherever they stand, whatever is escaped; only
code is left alone. So words that it would link become code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape

from callmark.reports.neutral import one_line

# A comment may have 65,536 characters, a step summary 1 MiB.
LIMIT = 60_000
LONGEST_CODE = 300
LONGEST_TEXT = 2000
_LINKED = re.compile(r"[@#]|:/|www\.|\bGH-\d|(?<![\w.])[0-9a-f]{7,40}\b", re.IGNORECASE)
_MARKUP = re.compile(r"([\\`*_\[\]<>|~!$&])")
_LEFT_OUT = "_{} parts are left out: a comment may not be longer. The report has them all._"


def as_code(text: str, limit: int = LONGEST_CODE) -> str:
    """In a code span nothing means anything, except what ends it, or ends the cell of a table."""
    shown = one_line(text, limit).replace("`", "'").replace("|", "¦")
    return f"`{shown}`" if shown.strip() else "`(empty)`"


def as_text(text: str, limit: int = LONGEST_TEXT) -> str:
    """Prose with names in it: no markup, no HTML, no mention of a person, no link."""
    words = re.split(r"( +)", one_line(text, limit))
    return "".join(
        as_code(word) if _LINKED.search(word) else _MARKUP.sub(r"\\\1", word) for word in words
    )


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The cells are Markdown already. Nothing without a row."""
    if not rows:
        return []
    return [
        f"| {' | '.join(columns)} |",
        f"|{'---|' * len(columns)}",
        *(f"| {' | '.join(row)} |" for row in rows),
        "",
    ]


def folded(title: str, lines: Iterable[str]) -> list[str]:
    """Nothing without a line. A summary is HTML, not Markdown: there other things are escaped."""
    inner = list(lines)
    if not inner:
        return []
    return [
        f"<details><summary>{_html(title)}</summary>",
        "",
        *inner,
        *([""] if inner[-1] else []),
        "</details>",
        "",
    ]


def fitted(sections: Iterable[Sequence[str]], limit: int = LIMIT) -> str:
    """One text, shorter than the limit: a section that has no room is left out as a whole."""
    kept: list[str] = []
    left_out, room = 0, limit - 2 * len(_LEFT_OUT)
    for section in sections:
        text = "".join(f"{line}\n" for line in section)
        if len(text) > room:
            left_out += 1
            continue
        room -= len(text)
        kept.append(text)
    if left_out:
        kept.append(_LEFT_OUT.format(left_out) + "\n")
    return "".join(kept)


def _html(title: str) -> str:
    return "".join(_html_words(one_line(title, LONGEST_TEXT)))


def _html_words(title: str) -> Iterator[str]:
    for word in re.split(r"( +)", title):
        safe = escape(word)
        yield f"<code>{safe}</code>" if _LINKED.search(word) else safe
