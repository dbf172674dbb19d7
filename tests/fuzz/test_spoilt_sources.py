"""Spoilt files of other programs: `dataset import` ends with a dataset that can be read, in which
everything is accounted for, or with a named error. Never with a traceback, never half."""

import json
import random
import traceback
from collections import Counter
from pathlib import Path

import pytest
from tests.fuzz.mutations import JSON_FILE, LINE_FILE, mutated
from tests.pace import few
from tests.unit.datasets.importing import sessions
from tests.unit.datasets.importing.conftest import places_in
from tests.unit.datasets.importing.talks import ASKED_TWICE, WEATHER
from tests.unit.datasets.importing.test_bfcl import FUNCTION, QUESTION
from tests.unit.datasets.importing.test_inspect import LOG, archive_of, eval_log
from tests.unit.datasets.importing.test_tau import results, run_of, simulation

from callmark.broker.broker import ToolBroker
from callmark.datasets.importing.importing import import_dataset
from callmark.datasets.reader import open_dataset
from callmark.errors import CallmarkError
from callmark.run.offers import open_registry
from callmark.store.recorded import RecordedIndex

FEW, MANY = 40, 2_000
READ = "read"


def lines(*values: object) -> bytes:
    return "".join(json.dumps(value) + "\n" for value in values).encode()


TALK = {"id": "a", "trial": 0, "tools": [WEATHER], "messages": ASKED_TWICE}
ACCEPTED = [{"area": {"base": [1, 2.5], "unit": ["cm", ""], "options": [{"type": ["x", "y"]}]}}]
ROW = {"id": "simple_0", "question": QUESTION, "function": [FUNCTION], "ground_truth": ACCEPTED}
SOURCES = {
    "openai": (lines(TALK, {**TALK, "trial": 1}, ASKED_TWICE), LINE_FILE),
    "tau-bench": (json.dumps([run_of(0, 0), run_of(0, 1)], indent=1).encode(), JSON_FILE),
    "tau2": (json.dumps(results(simulation()), indent=1).encode(), JSON_FILE),
    "bfcl": (lines(ROW, {**ROW, "id": "irrelevance_1", "ground_truth": []}), LINE_FILE),
    "inspect": (LOG.read_bytes(), JSON_FILE),
    "jsonl": (lines({"__header__": True, "seed": 1}, {"prompt": "x"}, {"prompt": "y"}), LINE_FILE),
}
# Every shape of a message or session format, spoilt likewise.
SESSIONS = {
    name: (known_as, data, JSON_FILE if data.lstrip()[:2] in (b"{\n", b"[\n") else LINE_FILE)
    for name, (known_as, data) in sessions.SOURCES.items()
}


def flipped(rng: random.Random, data: bytes) -> bytes:
    spoilt = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        spoilt[rng.randrange(len(spoilt))] = rng.randrange(256)
    return bytes(spoilt[: rng.randrange(len(spoilt)) if rng.random() < 0.2 else None])


def imported(path: Path, folder: Path, name: str) -> str:
    places = places_in(folder)
    refused = None
    try:
        report = import_dataset(path, places, format=name)
    except CallmarkError as error:
        refused = error
    if refused is not None:
        assert str(refused).startswith(str(path)), refused
        assert not [made for made in folder.rglob("*") if made.is_file()]
        return type(refused).__name__
    with open_dataset(places.dataset) as dataset:
        assert dataset.facts.samples == report.counts.samples
        assert dataset.header.dataset_sha256 == dataset.sha256
    registry = open_registry(str(places.registry) if report.counts.tools else None)
    if report.counts.fixtures:
        loaded = ToolBroker(places.fixtures, registry)
        assert len(list(loaded.index.groups())) <= report.counts.fixtures
    if report.counts.answers:
        with RecordedIndex(places.answers) as index:
            assert index.count == report.counts.answers
    return READ


def try_many(name: str, numbers: range, folder: Path) -> Counter[str]:
    if name in SESSIONS:
        chosen, good, ways = SESSIONS[name]
    else:
        good, ways = SOURCES.get(name) or (archive_of(eval_log()), None)
        chosen = "inspect" if ways is None else name
    ends: Counter[str] = Counter()
    for number in numbers:
        rng = random.Random(f"{name} {number}")
        path = folder / f"{number}.source"
        path.write_bytes(flipped(rng, good) if ways is None else mutated(rng, good, ways))
        try:
            ends[imported(path, folder / f"made-{number}", chosen)] += 1
        except Exception:
            pytest.fail(f"{name} {number}:\n{traceback.format_exc(limit=-8)}")
    return ends


@pytest.mark.parametrize("name", few(["archive", *SESSIONS, *SOURCES], 10))
def test_a_spoilt_source_is_imported_or_refused_by_name(name, tmp_path):
    ends = try_many(name, range(FEW), tmp_path)
    assert 0 < ends[READ] < FEW, ends


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SOURCES, *SESSIONS, "archive"])
def test_many_thousand_spoilt_sources(name, tmp_path):
    try_many(name, range(FEW, FEW + MANY), tmp_path)
