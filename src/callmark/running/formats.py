"""The call formats in force."""

from __future__ import annotations

from functools import lru_cache

from callmark.calls.formats import FORMATS, Format
from callmark.plugins import with_formats


@lru_cache(maxsize=1)
def installed_formats() -> tuple[Format, ...]:
    """The built-in ones and those of installed plug-ins; looked up once."""
    return with_formats(FORMATS)
