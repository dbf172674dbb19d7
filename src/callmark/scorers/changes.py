"""Which calls changed something, and whether a field may be another one since."""

from __future__ import annotations

import re

from callmark.calls.registry import Registry
from callmark.grounding.deeds import writes
from callmark.grounding.record_tree import Field, ResultRecord
from callmark.grounding.values import identifier_key
from callmark.records.jsontext import texts_in
from callmark.scorers.integration import TrialReading

_CODE = re.compile(r"[#\w][\w-]*")


class ChangesMade:
    """`written`: turn and place in the trace of every call that changed something, the last one
    first."""

    def __init__(self, reading: TrialReading, registry: Registry) -> None:
        self._entries = reading.trace.tool_trace
        self._codes: dict[int, frozenset[str]] = {}
        self.written: list[tuple[int, int]] = []
        for call, entry in enumerate(self._entries):
            if entry.status == "ok" and entry.name is not None:
                spec = registry.spec(entry.name)
                if writes(entry.name, "" if spec is None else spec.description):
                    self.written.insert(0, (entry.turn or 0, call))

    def may_have_changed(self, field: Field, turn: int | None) -> bool:
        """Was there a change after it was served, and before that turn, that names the record or
        what it is a part of?"""
        own: frozenset[str] | None = None
        for at, call in self.written:
            if call <= field.call:
                return False
            if turn is None or at < turn:
                own = _codes_of(field.record) if own is None else own
                changed = self._codes_in(call)
                if not own or not changed or not own.isdisjoint(changed):
                    return True
        return False

    def _codes_in(self, call: int) -> frozenset[str]:
        """What its arguments name with digits in it; nothing: who knows what it changed."""
        if call not in self._codes:
            found = [
                identifier_key(word)
                for text in texts_in(self._entries[call].arguments)
                for word in _CODE.findall(text)
            ]
            self._codes[call] = frozenset(filter(_is_code, found))
        return self._codes[call]


def _codes_of(record: ResultRecord) -> frozenset[str]:
    names = (name for one in (record, *record.ancestors()) for name in one.names)
    return frozenset(identifier_key(name) for name in names if _is_code(name))


def _is_code(name: str) -> bool:
    return any(map(str.isdecimal, name))
