"""Regular expressions of datasets and fixtures, on an engine whose time grows with the text and
with the expression, and with nothing else."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

MAX_MEMORY = 2 << 20  # bytes for one expression; a larger one is refused


class LinearPattern(Protocol):
    """A compiled expression. It is asked about UTF-8 bytes."""

    def search(self, text: bytes, /) -> object: ...

    def fullmatch(self, text: bytes, /) -> object: ...


@lru_cache(1024)
def compile_linear(pattern: str, *, fold: bool = False) -> LinearPattern:
    """The expression, or ValueError. Python's own engine tries one way to fit after the other, so
    an expression can keep it busy for years; RE2 follows all ways at once."""
    import re2

    if found := re.search(r"(?<!\\)\{,\d+\}", pattern):
        # RE2 takes it literally, Python as a number of repeats: nobody means the former.
        raise ValueError(f"write {{0{found[0][1:]} instead of {found[0]}")
    options = re2.Options()
    options.case_sensitive = not fold
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = True
    try:
        compiled: LinearPattern = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else "a lone surrogate"
        what = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"cannot be used: {what}; it must be an expression in the syntax of RE2,"
            " which has no look-around and no back-references"
        ) from None
    return compiled
