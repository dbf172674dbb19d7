"""Logs as their writers write them: Python's NaN and Infinity, which are no JSON, stand for
nothing."""

from __future__ import annotations

import json
import re

from callmark.core.jsontext import Json, NotJson, parse_json
from callmark.store.jsonl import LINE_DEPTH

# What is written of an entry wraps it once more, and has to be read again.
MAX_DEPTH = LINE_DEPTH - 20
_NOT_A_NUMBER = re.compile(rb"\b(?:NaN|Infinity)\b")


def parse_log(data: bytes) -> Json:
    try:
        return parse_json(data, max_depth=MAX_DEPTH)
    except NotJson:
        if not _NOT_A_NUMBER.search(data):
            raise
    try:
        value = json.loads(data.decode(), parse_constant=lambda _: None)
        return parse_json(json.dumps(value), max_depth=MAX_DEPTH)
    except (ValueError, RecursionError):
        return parse_json(data, max_depth=MAX_DEPTH)  # says what is wrong and where
