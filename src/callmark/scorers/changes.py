"""Which calls changed something, and whether a field may be another one since."""

from __future__ import annotations

import re
from bisect import bisect_right

from callmark.calls.registry import Registry
from callmark.grounding.deeds import writes
from callmark.grounding.record_tree import Field, ResultRecord
from callmark.grounding.text import once
from callmark.grounding.values import identifier_key
from callmark.records.jsontext import texts_in
from callmark.scorers.integration import TrialReading

_CODE = re.compile(r"[#\w][\w-]*")


class ChangesMade:
    """`written`: turn and place in the trace of every call that changed something, the last one
    first."""

    def __init__(self, reading: TrialReading, registry: Registry) -> None:
        self._entries = reading.trace.tool_trace
        found = []
        for call, entry in enumerate(self._entries):
            if entry.status == "ok" and entry.name is not None:
                spec = registry.spec(entry.name)
                if writes(entry.name, "" if spec is None else spec.description):
                    found.append((entry.turn or 0, call))
        self.written = found[::-1]

    def may_have_changed(self, field: Field, turn: int | None) -> bool:
        """Was there a change after it was served, and before that turn, that names the record or
        what it is a part of?"""
        if not self.written or self.written[0][1] <= field.call:
            return False
        codes = _codes_of(field.record)
        every = [self._by_code.get(code, ()) for code in ("", *sorted(codes))]
        for changes in every if codes else [self.written[::-1]]:
            # The first one that came later: turns do not run backwards.
            first = bisect_right(changes, field.call, key=lambda one: one[1])
            if first < len(changes) and (turn is None or changes[first][0] < turn):
                return True
        return False

    @once
    def _by_code(self) -> dict[str, list[tuple[int, int]]]:
        """What the arguments of the changes name with digits in it, in their order; under nothing
        those that name nothing: who knows what they changed."""
        found: dict[str, list[tuple[int, int]]] = {}
        for at, call in reversed(self.written):
            words = (
                identifier_key(word)
                for text in texts_in(self._entries[call].arguments)
                for word in _CODE.findall(text)
            )
            for code in dict.fromkeys(filter(_is_code, words)) or ("",):
                found.setdefault(code, []).append((at, call))
        return found


def _codes_of(record: ResultRecord) -> frozenset[str]:
    names = (name for one in (record, *record.ancestors()) for name in one.names)
    return frozenset(identifier_key(name) for name in names if _is_code(name))


def _is_code(name: str) -> bool:
    return any(map(str.isdecimal, name))
