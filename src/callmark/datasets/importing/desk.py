"""What every format works with: the notes, the tools, and what comes out of one entry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from callmark.datasets.importing.catalogue import Notes, ToolCatalogue
from callmark.records.jsontext import Json
from callmark.records.problems import show_value
from callmark.stats.columns import KeyIndex

Object = dict[str, Json]


class Record(NamedTuple):
    """One entry of a source. `line` is where it begins; of an archive or a table its number."""

    line: int
    value: Json


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One sample, or a further trial of one. `named`: the source itself gave the id. `fixtures`
    come with the normalised call that each of them answers."""

    line: int
    sample_id: str
    item: Object
    trial: int = 0
    named: bool = True
    answer: Object | None = None
    fixtures: tuple[tuple[str, Object], ...] = ()


class Desk:
    """One import while it goes on. `source`: the file that is read now; `header`: fields that it
    gives its own dataset."""

    def __init__(
        self, source: Path, tools: ToolCatalogue, notes: Notes, accepted: Path | None = None
    ) -> None:
        self.source = source
        self.tools = tools
        self.notes = notes
        self.accepted = accepted
        self.header: Object = {}
        self._sessions = KeyIndex(numbers_only=True)
        self._names = KeyIndex(numbers_only=True)
        self._again: dict[str, int] = {}  # names that several sessions have, and how many of them
        self.is_header_written = False
        self.met: dict[str, None] = {}  # what its entries turned out to be, where they may differ
        self.file = 0  # its number; two files may hold one id

    def name_session(self, wanted: str, content: str) -> str | None:
        """A name that no other session has; None: one with this name and content was there.
        `content`: a hash of it."""
        if not _is_new(self._sessions, f"{content} {wanted}"):
            return None
        name = wanted
        while not _is_new(self._names, name):
            self._again[wanted] = self._again.get(wanted, 1) + 1
            name = f"{wanted}-{self._again[wanted]}"
        return name

    def turn_to(self, source: Path, name: str | None) -> None:
        """The next file. `name`: how notes call it; None: it is the only one."""
        self.source = source
        self.file += 1
        self.met = {}
        if name is not None:
            self.notes.source = name

    def objects_in(self, value: Json, line: int, what: str) -> list[Object]:
        """The objects of a list that should hold nothing else: what else it holds is counted."""
        found: list[Object] = []
        for one in value if isinstance(value, list) else () if value is None else (value,):
            if isinstance(one, dict) and isinstance(value, list):
                found.append(one)
            else:
                self.notes.add("part_left_out", line, f"{what}: {show_value(one)}")
        return found

    def meet(self, format_name: str) -> None:
        """An entry of this format; a file may hold several."""
        self.met[format_name] = None

    def place(self, line: int) -> str:
        source, own = self.notes.locate(line)
        return f"{self.source if source is msgspec.UNSET else source}:{own}"


def _is_new(index: KeyIndex, key: str) -> bool:
    before = len(index)
    index.setdefault(key, 0)
    return len(index) > before


Reader = Callable[[Iterator[Record], Desk], Iterator[Imported]]
