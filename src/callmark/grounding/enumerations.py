"""`Option 1: …`, `Option 2: …`: numbers that an answer gives to the parts of its own list."""

from __future__ import annotations

import re

# At the start of a line, also in emphasis, as a heading or a list item; then a colon or line end.
_LABEL = re.compile(
    r"^[ \t>*_#•+-]*(?:\d{1,2}[.)][ \t]+[*_]*)?"
    r"([^\W\d_]{2,20})[ \u00a0](\d{1,2})(?=[*_]*(?::|[ \t]*$))",
    re.MULTILINE,
)
_WORD_BEFORE = re.compile(r"([^\W\d_]{2,20})[ \u00a0]$")
_LONGEST = 21

Label = tuple[str, str]


def labels_in(text: str) -> frozenset[Label]:
    """The words and numbers of the text that count from 1 upwards, at least to 2. `Gate 12:` by
    itself is a claim about a gate."""
    if " 1" not in text and "\u00a01" not in text:
        return frozenset()
    numbered = {(match[1].casefold(), match[2]) for match in _LABEL.finditer(text)}
    words = {word for word, number in numbered if number == "1"}
    return frozenset(
        (word, str(number))
        for word in words
        if (word, "2") in numbered
        for number in range(1, _count_labels(word, numbered) + 1)
    )


def _count_labels(word: str, numbered: set[Label]) -> int:
    number = 1
    while (word, str(number + 1)) in numbered:
        number += 1
    return number


def is_label(text: str, start: int, number: str, labels: frozenset[Label]) -> bool:
    """Is this number one of those labels, where it stands or where the text comes back to it?"""
    word = _WORD_BEFORE.search(text[max(0, start - _LONGEST) : start])
    return word is not None and (word[1].casefold(), number) in labels
