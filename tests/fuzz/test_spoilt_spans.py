"""Spoilt logs of spans, in every dialect: bytes and values as of any file, and what only spans can
have wrong (ids, parents, times, attributes that are too large). A dataset comes out or a named error."""

import json
import random
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.fuzz.mutations import LINE_FILE, mutated
from tests.fuzz.spoilt_json import spoil_json
from tests.fuzz.test_spoilt_sources import READ, imported
from tests.pace import few
from tests.unit.datasets.importing.span_rows import DIALECTS, agents_response

ROWS: dict[str, tuple[Callable[[], list[dict]], str]] = {
    **DIALECTS,
    "agents response": (agents_response, "openai-agents"),
}
FEW, MANY = 12, 400
IDS = frozenset({"spanId", "span_id", "id", "traceId", "trace_id"})
PARENTS = frozenset({"parentSpanId", "parent_span_id", "parent_id", "parentObservationId"})
TIMES = frozenset({"startTimeUnixNano", "timestamp", "startTime", "started_at", "start_time"})
ODD_TIMES = ("", "0", "-5", "later", "9" * 40, 1e400, None, [], "9999-12-31T23:59:59+00:00")


def objects_in(value: object) -> Iterator[dict]:
    if isinstance(value, dict):
        yield value
        for inner in value.values():
            yield from objects_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from objects_in(inner)


def fields(rows: list[dict], names: frozenset[str]) -> list[tuple[dict, str]]:
    return [(one, name) for row in rows for one in objects_in(row) for name in one if name in names]


def spoil_text(rng: random.Random, rows: list[dict]) -> None:
    """Something inside a text that holds JSON, as most attributes with messages do."""
    texts = [
        (one, name)
        for row in rows
        for one in objects_in(row)
        for name in one
        if isinstance(one[name], str) and one[name][:1] in ("[", "{")
    ]
    if texts:
        holder, name = rng.choice(texts)
        spoilt_json = spoil_json(rng, holder[name].encode("utf-8", "surrogatepass"))
        holder[name] = spoilt_json.decode("utf-8", "replace").strip()


def spoil_spans(rng: random.Random, rows: list[dict]) -> list[dict]:
    """One of the things that go wrong with spans."""
    ids, parents, times = (fields(rows, names) for names in (IDS, PARENTS, TIMES))
    holder, name = rng.choice(ids)
    match rng.randrange(12):
        case 0:
            del holder[name]
        case 1:  # two spans of one id, or two traces that are one
            other, same = rng.choice(ids)
            holder[name] = other[same]
        case 2 if parents:  # a circle, or a child that is its own parent
            below, parent = rng.choice(parents)
            below[parent] = rng.choice([holder[name], below.get("spanId"), below.get("id")])
        case 3 if parents:
            below, parent = rng.choice(parents)
            below[parent] = rng.choice(["nowhere", "", None, 7, {}])
        case 4 if times:
            when, field = rng.choice(times)
            when[field] = rng.choice(ODD_TIMES)
        case 5:
            texts = [
                (one, k)
                for row in rows
                for one in objects_in(row)
                for k in one
                if isinstance(one[k], str)
            ]
            where, key = rng.choice(texts)
            where[key] = rng.choice(
                ['[{"', "[" * 5000, "x" * 300_000, '{"a":' * 300, "\ud800", "[1, 2]", "{}"]
            )
        case 6:
            rng.shuffle(rows)
        case 7 | 8 | 9 | 10:
            spoil_text(rng, rows)
        case _:
            rows.pop(rng.randrange(len(rows)))
    return rows


def spoilt(rng: random.Random, name: str) -> bytes:
    rows = ROWS[name][0]()
    if rng.random() < 0.5:
        rows = json.loads(json.dumps(rows))
        for _ in range(rng.choice((1, 1, 2, 4))):
            if rows and fields(rows, IDS):
                rows = spoil_spans(rng, rows)
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    return mutated(rng, "".join(json.dumps(row) + "\n" for row in rows).encode(), LINE_FILE)


def try_many(name: str, numbers: range, folder: Path) -> Counter[str]:
    ends: Counter[str] = Counter()
    for number in numbers:
        rng = random.Random(f"{name} {number}")
        path = folder / f"{number}.source"
        path.write_bytes(spoilt(rng, name))
        chosen = rng.choice(("auto", ROWS[name][1]))
        try:
            ends[imported(path, folder / f"made-{number}", chosen)] += 1
        except Exception:
            pytest.fail(f"{name} {number}:\n{traceback.format_exc(limit=-8)}")
    return ends


@pytest.mark.parametrize("name", few(ROWS, 7))
def test_a_spoilt_log_of_spans_is_imported_or_refused_by_name(name, tmp_path):
    ends = try_many(name, range(FEW), tmp_path)
    assert ends[READ] > 0, ends


@pytest.mark.slow
@pytest.mark.parametrize("name", ROWS)
def test_six_thousand_spoilt_logs_of_spans(name, tmp_path):
    try_many(name, range(FEW, FEW + MANY), tmp_path)
