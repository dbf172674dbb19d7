"""An import into a folder of its own, and what it wrote."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from callmark.datasets.importing.importing import ImportReport, import_dataset
from callmark.datasets.importing.writing import ImportPaths


class Made(NamedTuple):
    places: ImportPaths
    report: ImportReport

    @property
    def header(self) -> dict:
        return lines_of(self.places.dataset)[0]

    @property
    def items(self) -> list[dict]:
        return lines_of(self.places.dataset)[1:]

    @property
    def answers(self) -> list[dict]:
        return lines_of(self.places.answers)

    @property
    def fixtures(self) -> list[dict]:
        return lines_of(self.places.fixtures_file)

    @property
    def tools(self) -> dict[str, dict]:
        return {spec["name"]: spec for spec in json.loads(self.places.registry.read_text("utf-8"))}

    @property
    def kinds(self) -> dict[str, int]:
        return {entry.kind: entry.count for entry in self.report.unmapped}


def lines_of(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def places_in(folder: Path) -> ImportPaths:
    return ImportPaths(
        dataset=folder / "data.jsonl",
        registry=folder / "tools.json",
        fixtures=folder / "fixtures",
        answers=folder / "answers.jsonl",
    )


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Made]:
    """From a path, from lines (a list), or from a document (anything else)."""

    def call(source, *, name: str = "source.jsonl", **options) -> Made:
        path = source if isinstance(source, Path) else tmp_path / name
        if isinstance(source, list):
            path.write_text("".join(json.dumps(line) + "\n" for line in source), "utf-8")
        elif isinstance(source, bytes):
            path.write_bytes(source)
        elif not isinstance(source, Path):
            path.write_text(json.dumps(source, indent=1), "utf-8")
        places = places_in(tmp_path / "made")
        return Made(places, import_dataset(path, places, **options))

    return call
