"""Results that are found by their id: only where they stand is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO, NamedTuple, Self

from callmark.core.jsontext import NotJson
from callmark.core.results import Result
from callmark.errors import BadInput
from callmark.store.jsonl import lines_of, open_input
from callmark.store.lines import decode_result


class Located(NamedTuple):
    """`file` is the number of the file among those that were read."""

    sample_id: str
    trial: int
    file: int
    offset: int

    @property
    def key(self) -> tuple[str, int]:
        return self.sample_id, self.trial


class LocatedResults:
    """All lines of some files, sorted by id; lines of one id keep their order."""

    def __init__(self, paths: Sequence[Path]) -> None:
        with ExitStack() as stack:
            self._streams = [stack.enter_context(open_input(path)) for path in paths]
            found = [
                one
                for file, path in enumerate(paths)
                for one in _lines(file, path, self._streams[file])
            ]
            self._opened = stack.pop_all()
        self.lines = sorted(found, key=lambda one: one.sample_id)

    def read(self, one: Located) -> Result:
        stream = self._streams[one.file]
        stream.seek(one.offset)
        return decode_result(stream.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._opened.close()


def _lines(file: int, path: Path, stream: BinaryIO) -> Iterator[Located]:
    for line in lines_of(stream, str(path)):
        try:
            result = decode_result(line.data)
        except NotJson as error:
            raise BadInput(f"{path}:{line.number}: {error}") from None
        yield Located(result.sample_id, result.trial, file, line.offset)
