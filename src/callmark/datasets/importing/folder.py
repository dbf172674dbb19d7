"""A folder of tau2: `results.json` without its simulations, and each of them in a file of its own
below `simulations/`. Names in the index choose the order; no name ever becomes a path."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from callmark.core.jsontext import Json, NotJson
from callmark.datasets.importing.desk import Record
from callmark.datasets.importing.lenient import parse_log
from callmark.errors import BadInput
from callmark.store.jsonl import read_input

FRAME = "results.json"
SIMULATIONS = "simulations"
INDEX = "simulation_index"


def records_of_folder(folder: Path) -> Iterator[Record]:
    """The frame, then every simulation; their numbers count from 1."""
    if not (folder / FRAME).is_file() or not (folder / SIMULATIONS).is_dir():
        raise BadInput(
            f"{folder}: is a folder without {FRAME} and {SIMULATIONS}/, as tau2 writes them;"
            " name a file"
        )
    frame = _value(folder / FRAME)
    files = {path.stem: path for path in sorted((folder / SIMULATIONS).glob("*.json"))}
    listed = _listed(frame)
    missing = [name for name in listed if name not in files]
    if missing:
        raise BadInput(
            f"{folder / FRAME}: {INDEX}: {len(missing)} simulations have no file in"
            f" {SIMULATIONS}/, the first is {missing[0]!r}"
        )
    yield Record(1, frame)
    for number, name in enumerate(dict.fromkeys([*listed, *files]), start=1):
        yield Record(number, _value(files[name]))


def _listed(frame: Json) -> list[str]:
    index = frame.get(INDEX) if isinstance(frame, dict) else None
    entries = index if isinstance(index, list) else []
    return [str(entry.get("id")) for entry in entries if isinstance(entry, dict)]


def _value(path: Path) -> Json:
    try:
        return parse_log(read_input(path))
    except NotJson as error:
        raise BadInput(f"{path}:{error.line}: {error}") from None
