"""Nothing of a spoilt file vanishes: what cannot be read by itself is named by its line."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from callmark.errors import BadInput, CallmarkError
from callmark.records.jsontext import Json, NotJson, parse_json

MAX_PROBLEMS = 20
BOM = b"\xef\xbb\xbf"
# What may be said of a file as a whole: there is nothing in it that could have a line.
WHOLE_FILE = re.compile(
    r": (the dataset is empty: it has|has nothing to score|no sample |\S+ has no trial "
    r"|has no (results|cases|header\.json|\*\.json file|\.jsonl or \.json file))"
)

Read = Callable[[Path], object]


def lines_of(path: Path) -> list[bytes]:
    return path.read_bytes().removeprefix(BOM).split(b"\n")


def lines_with_content(path: Path) -> int:
    return sum(bool(line.strip(b" \t\r\n\v\f")) for line in lines_of(path))


def check_named(error: CallmarkError, path: Path, others: list[Path]) -> None:
    """Every problem stands on one line and begins with the file and a line of it, or with those of
    another file of the run that does not go with it."""
    problems = error.problems if isinstance(error, BadInput) else str(error).splitlines()[:1]
    assert 1 <= len(problems) <= MAX_PROBLEMS
    for problem in problems:
        assert problem == " ".join(problem.splitlines())
        file = next((name for name in (path, *others) if problem.startswith(f"{name}:")), None)
        assert file is not None, f"names no file: {problem}"
        rest = problem.removeprefix(str(file))
        if not WHOLE_FILE.match(rest):
            assert (place := re.match(r":(\d+): \S", rest)), f"names no line: {problem}"
            assert 1 <= int(place[1]) <= _line_count(file), f"no such line: {problem}"


def _line_count(path: Path) -> int:
    # In YAML a carriage return ends a line, too.
    return max(len(lines_of(path)), len(path.read_bytes().decode("utf-8", "replace").splitlines()))


@contextmanager
def every_line_named(path: Path, read: Read, *, only_first: bool = False) -> Iterator[None]:
    """If the block refuses the file, then it names each line that `read` refuses where no other
    stands in the file (`only_first`: at least the first of them)."""
    try:
        yield
    except BadInput as error:
        missing = bad_lines(path, read)
        missing = {min(missing)} if missing and only_first else missing
        _check_lines(missing, error, path)
        raise


def _check_lines(bad: set[int], error: BadInput, path: Path) -> None:
    if len(error.problems) < MAX_PROBLEMS:
        missing = sorted(bad - _lines_named(error, path))
        assert not missing, f"lines {missing} are not named: {error}"


def bad_lines(path: Path, read: Read) -> set[int]:
    """The lines that are refused although all others, the header excepted, are blank."""
    lines = lines_of(path)
    first = next((at for at, line in enumerate(lines) if line.strip()), 0)
    header = first if b"__header__" in lines[first] else None
    alone = _alone(path)
    found: set[int] = set()
    for at, line in enumerate(lines):
        if not line.strip():
            continue
        kept = [text if other in (at, header) else b"" for other, text in enumerate(lines)]
        alone.write_bytes(b"\n".join(kept))
        try:
            read(alone)
        except BadInput as error:
            if at + 1 in _lines_named(error, alone):
                found.add(at + 1)
    return found


def every_entry_named(path: Path, read: Read) -> Json:
    """The same for a file that is one JSON list: it has at least as many problems as it has entries
    that are refused alone. Gives what the file holds."""
    try:
        value = parse_json(path.read_bytes().removeprefix(BOM))
    except NotJson:
        return None
    alone = _alone(path)
    bad = 0
    for entry in value if isinstance(value, list) else [value]:
        alone.write_text(json.dumps([entry]))
        try:
            read(alone)
        except BadInput:
            bad += 1
    if bad:
        with pytest.raises(BadInput) as caught:
            read(path)
        assert len(caught.value.problems) >= min(bad, MAX_PROBLEMS)
    return value


def _alone(path: Path) -> Path:
    """A file of the same name in a folder of its own."""
    folder = path.parent.with_name(f"{path.parent.name}-alone")
    folder.mkdir(exist_ok=True)
    return folder / path.name


def _lines_named(error: BadInput, path: Path) -> set[int]:
    found = (re.match(rf"{re.escape(str(path))}:(\d+): ", problem) for problem in error.problems)
    return {int(place[1]) for place in found if place}
