"""The formats in which models write calls into text: one row each, read from left to right.

A format is found by its opening mark; where several begin at one place, the first row that
accepts it reads it. Further formats (also from plug-ins) are further rows."""

from __future__ import annotations

from toolmark.calls.formats.bare import BARE
from toolmark.calls.formats.fenced import FENCED
from toolmark.calls.formats.hermes import HERMES
from toolmark.calls.formats.prefix import TOOL_CALL_PREFIX
from toolmark.calls.formats.reading import Block, Format, Reading

FORMATS: tuple[Format, ...] = (HERMES, TOOL_CALL_PREFIX, FENCED, BARE)

__all__ = ["FORMATS", "Block", "Format", "Reading"]
