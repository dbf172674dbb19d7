"""One spoilt file, or many of a kind, and a count of what became of them."""

import random
import traceback
from collections import Counter
from pathlib import Path

from tests.fuzz.accounting import check_named
from tests.fuzz.material import Material
from tests.fuzz.mutations import mutated
from tests.fuzz.table import READ
from tests.fuzz.targets import TARGETS

from callmark.errors import CallmarkError


def try_one(material: Material, folder: Path, name: str, number: int) -> str:
    """`read`, or the name of the error that it was refused with. Anything else raises."""
    target = TARGETS[name]
    rng = random.Random(f"{name} {number}")
    path = folder / target.file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(mutated(rng, rng.choice(material.good[target.good]), target.ways))
    try:
        target.use(material, path)
    except CallmarkError as error:
        check_named(error, path, material.goes_with(name))
        return type(error).__name__
    return READ


def try_many(
    material: Material, folder: Path, name: str, numbers: range
) -> tuple[Counter[str], list[str]]:
    """What became of them, and the tracebacks of those that may not end so."""
    ends: Counter[str] = Counter()
    failures: list[str] = []
    for number in numbers:
        try:
            ends[try_one(material, folder, name, number)] += 1
        except Exception:
            failures.append(f"{name} {number}:\n{traceback.format_exc(limit=-6)}")
    return ends, failures
