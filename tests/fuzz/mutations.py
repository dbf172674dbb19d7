"""Ways to spoil a file, by the kind of file. Everything comes from a seeded generator, so that a case
is named by its number alone."""

import random
from collections.abc import Callable

from tests.fuzz.spoilt_bytes import BYTES, LINES
from tests.fuzz.spoilt_json import JSON
from tests.fuzz.spoilt_yaml import YAML

Mutate = Callable[[random.Random, bytes], bytes]


def mutated(rng: random.Random, data: bytes, ways: tuple[Mutate, ...]) -> bytes:
    """Mostly one change, sometimes a few."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = rng.choice(ways)(rng, data)
    return data


LINE_FILE = (*BYTES, *LINES, *LINES, *JSON, *JSON)
JSON_FILE = (*BYTES, *JSON, *JSON)
YAML_FILE = (*BYTES, *LINES, *YAML, *YAML)
