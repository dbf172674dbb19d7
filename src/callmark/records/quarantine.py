"""Samples that somebody set aside: they are run and shown, and count for no gate for a while.

A quarantine without an owner, an end and a reason would never be lifted: it needs all three."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

import msgspec

from callmark.records.jsontext import Json
from callmark.records.problems import KeySet, show_value


class Quarantine(msgspec.Struct, frozen=True, kw_only=True):
    """Why a sample counts for no gate, up to and including which day, and who sees to it.
    `expired`: that day is over, and the sample counts again."""

    owner: str
    until: date
    why: str
    expired: bool = False


class Quarantined(msgspec.Struct, frozen=True, kw_only=True):
    """A sample that the settings put into quarantine, and how its scored trials did. `trials` 0:
    it has none here."""

    sample_id: str
    owner: str
    until: date
    why: str
    expired: bool
    passed: int
    trials: int


_FIELDS = {"owner": "who sees to it", "until": "its last day", "why": "the reason"}


def quarantine_problems(entries: Json) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with `{id: {owner, until, why}}` as a file has it: where, and what."""
    for name, entry in entries.items() if isinstance(entries, Mapping) else ():
        path = (str(name),)
        if not isinstance(entry, Mapping):
            yield path, f"must be {{owner, until, why}}, not {show_value(entry)}"
            continue
        for key in entry:
            if key not in _FIELDS:
                keys = KeySet(known=tuple(_FIELDS))
                yield (*path, str(key)), keys.refusal(str(key), entry.keys())
        for key, what in _FIELDS.items():
            given = entry.get(key)
            if given is None or given == "":
                yield path, f"says no {key}: {what}"
            elif key == "until":
                if problem := day_problem(given):
                    yield (*path, key), problem
            elif not isinstance(given, str):
                yield (*path, key), f"must be text, not {show_value(given)}"


def day_problem(value: Json) -> str | None:
    """Why this is no day; None: it is one."""
    what = f"must be a day such as 2027-01-31, not {show_value(str(value))}"
    # YAML reads 2027-01-31 as a date, and one with a time as a datetime, which is a date as well.
    if not isinstance(value, str):
        return None if type(value) is date else what
    try:
        return None if date.fromisoformat(value).isoformat() == value else what
    except ValueError:
        return what
