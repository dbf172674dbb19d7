"""Faulty input of every format: a result or a named error, never a traceback.

The files are spoilt by the machinery of the tests; what is added here are wrappers, shards, specs
of probes and an endpoint that answers badly."""

from __future__ import annotations

import json
import random
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from tests.endpoints import Answer, Request, Server, completion
from tests.fuzz.material import Material
from tests.fuzz.mutations import JSON_FILE, LINE_FILE, mutated
from tests.fuzz.spoilt_bytes import BYTES
from tests.fuzz.targets import TARGETS
from tests.fuzz.test_mutated_probes import TARGETS as PROBES
from tests.fuzz.trying import try_one

from callmark.errors import CallmarkError
from callmark.run.conclude import run
from callmark.runners.wrappers import render_prompt
from callmark.shards.merge import merge_shards

WRAPPERS = sorted(Path(str(files("callmark") / "data" / "prompt_wrappers")).iterdir())
ODD_TEMPLATES = (
    b"{{ user.__class__ }}", b"{% for i in range(9) %}", b"{{ tools | tojson }}", b"$user", b"${x}",
    b"{% include 'x' %}", b"{{ system * 3 }}", b"{#", b"{%", b"}}", b"$", b"{{ user }}",
    b'{{ user | tojson }}', b"{% if", b"{% endfor %}", b"{{ 1 / 0 }}", b"{{ nothing.at.all }}",
)  # fmt: skip
TOOLS = [{"type": "function", "function": {"name": "web.search", "parameters": {}}}]
ENDPOINT, ENDPOINT_BATCH = "endpoint", 50
ENDPOINT_SETTINGS = {"runner": "openai_http", "model": "stub", "max_turns": 2, "max_retries": 0}
READ = "read"
MERGE = "shards: merge"
MARKED = "marked as error"
# The last ones are the user's mistake by themselves, and end a run.
STATUSES = (200,) * 400 + (429, 500, 502, 503, 599) * 8 + (301, 400, 404)


class Attempt(NamedTuple):
    """What a kind of input is tried with: how many read, how many refused and with which error."""

    name: str
    ends: Counter[str]
    failures: list[str]


Try = Callable[[random.Random, Path], str]


def try_wrapper(rng: random.Random, folder: Path) -> str:
    good = rng.choice(WRAPPERS)
    data = good.read_bytes()
    if rng.random() < 0.6:
        at = rng.randrange(len(data) + 1)
        data = data[:at] + rng.choice(ODD_TEMPLATES) + data[at:]
    else:
        data = mutated(rng, data, BYTES)
    path = folder / good.name
    path.write_bytes(data)
    try:
        messages = render_prompt(path, user="What? {{ 7*7 }} $x", system="Be short.", tools=TOOLS)
    except CallmarkError as error:
        return _named(error, (str(path),))
    json.dumps(messages).encode()
    return READ


def _named(error: CallmarkError, names: tuple[str, ...]) -> str:
    """The error's kind, if it says one of these."""
    assert any(name in str(error) for name in names), f"names nothing: {error}"
    return type(error).__name__


class Shards:
    """Two good shards, and one of their four files spoilt at a time."""

    def __init__(self, material: Material, folder: Path) -> None:
        self._files: dict[str, bytes] = {}
        for index in range(2):
            out = folder / f"results.shard_{index}.jsonl"
            report = folder / f"report.shard_{index}.json"
            shard = {"num_shards": 2, "shard_index": index, "max_errors": 10**6}
            run(material.config(out=str(out), report=str(report), **shard))
            self._files |= {path.name: path.read_bytes() for path in (out, report)}

    def try_merge(self, rng: random.Random, folder: Path) -> str:
        spoilt = rng.choice(sorted(self._files))
        for name, data in self._files.items():
            ways = LINE_FILE if name.endswith("jsonl") else JSON_FILE
            (folder / name).write_bytes(mutated(rng, data, ways) if name == spoilt else data)
        paths = [folder / name for name in self._files if name.endswith("jsonl")]
        try:
            merge_shards(paths, out=folder / "merged.jsonl", report=folder / "merged.json")
        except CallmarkError as error:
            return _named(error, (str(folder), "shard"))
        return READ


def probe_try(name: str) -> Try:
    def try_probe(rng: random.Random, folder: Path) -> str:
        return READ if PROBES[name](rng, folder) else "BadInput"

    return try_probe


def kinds() -> list[str]:
    return [*TARGETS, "wrapper", *(f"probe: {kind}" for kind in PROBES), MERGE]


def try_files(many: int, first: int = 0, wanted: list[str] | None = None) -> Iterator[Attempt]:
    """`many` files of each kind."""
    with tempfile.TemporaryDirectory(prefix="callmark-campaign-") as name:
        root = Path(name)
        good = root / "good"
        good.mkdir()
        material = Material(good)
        tries: dict[str, Try] = {"wrapper": try_wrapper}
        tries |= {f"probe: {kind}": probe_try(kind) for kind in PROBES}
        shards = root / "shards"
        shards.mkdir()
        tries[MERGE] = Shards(material, shards).try_merge
        for at, kind in enumerate(wanted or kinds()):
            folder = root / f"spoilt {at}"
            folder.mkdir()
            numbers = range(first, first + many)
            if kind in TARGETS:
                yield _tried(kind, numbers, partial(try_one, material, folder, kind))
            else:
                yield _tried(kind, numbers, _seeded(kind, tries[kind], folder))


def _seeded(kind: str, one: Try, folder: Path) -> Callable[[int], str]:
    return lambda number: one(random.Random(f"{kind} {number}"), folder)


def _tried(name: str, numbers: range, one: Callable[[int], str]) -> Attempt:
    ends: Counter[str] = Counter()
    failures: list[str] = []
    for number in numbers:
        try:
            ends[one(number)] += 1
        except Exception:  # whatever it is, it is a finding
            ends["traceback"] += 1
            failures.append(f"{name} {number}:\n{traceback.format_exc(limit=-6)}")
    return Attempt(name, ends, failures)


class BadEndpoint:
    """Answers every request with a spoilt body, and sometimes breaks off."""

    def __init__(self, seed: str) -> None:
        self._rng = random.Random(f"endpoint {seed}")
        good = (
            completion("It has 1,007 people."),
            completion(None, [("web_search", {"q": "city 1"}), ("web_search", {"q": "x"})]),
            completion("a", message={"reasoning_content": "hm", "refusal": None}),
        )
        self._bodies = [json.dumps(one.body).encode() for one in good]

    def __call__(self, request: Request) -> Answer:
        rng = self._rng
        body = mutated(rng, rng.choice(self._bodies), JSON_FILE)
        status = rng.choice(STATUSES)
        keep = rng.randrange(200) if rng.random() < 0.03 else None
        return Answer(status, body, {"Retry-After": "0"}, keep=keep)


def try_endpoint(many: int, seed: int = 0) -> Attempt:
    """As many samples as bad answers; each trial ends as a result or as a marked error, or all of
    them with a named error of the run."""
    ends: Counter[str] = Counter()
    failures: list[str] = []
    for batch, first in enumerate(range(0, many, ENDPOINT_BATCH)):
        number = min(ENDPOINT_BATCH, many - first)
        try:
            ends += _served_badly(number, f"{seed} {batch}")
        except Exception:  # whatever it is, it is a finding
            ends["traceback"] += number
            failures.append(f"{ENDPOINT} {batch}:\n{traceback.format_exc(limit=-8)}")
    return Attempt(ENDPOINT, ends, failures)


def _served_badly(number: int, seed: str) -> Counter[str]:
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="callmark-campaign-") as name:
        dataset, out = Path(name, "dataset.jsonl"), Path(name, "results.jsonl")
        lines = [
            {"prompt": f"How many live in city {n}?", "sample_id": f"s{n}"} for n in range(number)
        ]
        dataset.write_text("".join(json.dumps(line) + "\n" for line in lines))
        places = {"dataset": str(dataset), "out": str(out)}
        with Server(BadEndpoint(seed), ["stub"]) as server:
            try:
                run({**places, **ENDPOINT_SETTINGS, "base_url": server.url, "max_errors": number})
            except CallmarkError as error:
                return Counter({type(error).__name__: number})
        for line in out.read_bytes().splitlines():
            ends[READ if json.loads(line)["status"] == "ok" else MARKED] += 1
    assert ends.total() == number, f"{ends.total()} results of {number} samples"
    return ends
