"""How much of the results an answer merely repeats."""

from __future__ import annotations

import re
from itertools import pairwise

from callmark.grounding.dates import Moment
from callmark.grounding.evidence import flat
from callmark.grounding.record_tree import RecordTree, number_of
from callmark.grounding.text import fold
from callmark.grounding.values import identifier_key, values_of
from callmark.records.jsontext import Json, NotJson, parse_json
from callmark.records.results import Copying
from callmark.scorers.integration import TrialReading, prompt_texts

_TOKEN = re.compile(r"\w+")
# One member of an object, whole or in an answer that is itself JSON text.
_MEMBER = re.compile(
    r"""(?P<mark>\\?["'])(?P<key>[^"'\\\n]{1,80})(?P=mark)\s*:\s*"""
    r"""(?P<value>\\?"[^"\\\n]*\\?"|'[^'\n]*'|-?\d[\d.eE+-]*|true|false|null|True|False|None)"""
    r"""\s*[,}\]]*"""
)
_ASKED = re.compile(r"\bjson\b", re.IGNORECASE)


def measure_copying(reading: TrialReading) -> Copying | None:
    """None: nothing was served, or there is no leaf that an answer could state."""
    tree = reading.records.tree
    leaves = _distinct_leaves(tree)
    if not leaves:
        return None
    stated = _Stated(reading)
    count = sum(
        key in stated.numbers if isinstance(key, int) else stated.holds(key, text)
        for key, text in leaves.items()
    )
    return Copying(count, len(leaves), _count_verbatim(reading, tree))


def _distinct_leaves(tree: RecordTree) -> dict[int | str, str]:
    """By their number, or by their folded text."""
    leaves: dict[int | str, str] = {
        field.number: "" for field in tree.fields if field.number is not None
    }
    for folded, fields in tree.texts.items():
        if _TOKEN.search(folded):
            leaves[folded] = str(fields[0].value)
    return leaves


class _Stated:
    """The answer as words, neighbours and values: a leaf is looked up, never searched for."""

    def __init__(self, reading: TrialReading) -> None:
        tokens = _TOKEN.findall(fold(reading.text))
        self._words = set(tokens)
        self._pairs = set(pairwise(tokens))
        self.numbers: set[int] = set()
        self._keys: set[str] = set()
        self._moments: set[Moment] = set()
        for value in flat(reading.grounder.values):
            self.numbers.update(value.readings)
            self._moments.update(value.moments)
            if value.key:
                self._keys.add(value.key)

    def holds(self, folded: str, text: str) -> bool:
        tokens = _TOKEN.findall(folded)
        if self._words.issuperset(tokens) and self._pairs.issuperset(pairwise(tokens)):
            return True
        if len(tokens) > _SHORT:
            return False
        return identifier_key(text) in self._keys or any(
            moment in self._moments for value in values_of(text) for moment in value.moments
        )


_RUN = 8  # members in a row; fewer are an address, or alike by chance
_MANY = 200
_SHORT = 8  # words; a longer text is no date and no identifier


def _count_verbatim(reading: TrialReading, tree: RecordTree) -> int:
    """Characters of `"key": value` in runs that stand so, one after the other, in a result; none
    where somebody asked for JSON. An answer that is JSON of its own making has no such runs."""
    members = list(_MEMBER.finditer(reading.text))
    if len(members) < _RUN or _asks_for_json(reading):
        return 0
    places: dict[tuple[str, str], list[int]] = {}
    for number, field in enumerate(tree.fields):
        found = places.setdefault((field.key, _plain(field.value)), [])
        if len(found) < _MANY:
            found.append(number)
    verbatim = run = length = 0
    after: set[int] = set()
    for member in members:
        here = places.get((member["key"], _read(member["value"])), ())
        goes_on = after.intersection(here)
        if not goes_on:
            run, length = 0, 0
        if here:
            run, length = run + 1, length + len(member[0])
        if run == _RUN:
            verbatim += length
        elif run > _RUN:
            verbatim += len(member[0])
        after = {number + 1 for number in goes_on or here}
    return verbatim


def _asks_for_json(reading: TrialReading) -> bool:
    texts = [*prompt_texts(reading.sample.prompt), *(said.text for said in reading.trace.said)]
    return any(_ASKED.search(text) for text in texts)


def _plain(value: Json) -> str:
    number = number_of(value)
    return fold(str(value)) if number is None else f"#{number}"


def _read(written: str) -> str:
    bare = written.replace('\\"', '"')
    if bare[:1] in "\"'":
        return fold(bare[1:-1])
    try:
        return _plain(parse_json(bare.replace("None", "null").lower()))
    except NotJson:
        return fold(bare)
