"""`python -m tests.fuzz [FILES OF EACH KIND] [FIRST NUMBER] [KIND …]`: other numbers than the tests
take, to look for what they do not find."""

import sys
import tempfile
import time
from pathlib import Path

from tests.fuzz.material import Material
from tests.fuzz.table import table_of
from tests.fuzz.targets import TARGETS
from tests.fuzz.trying import try_many


def main(words: list[str]) -> int:
    many, first = (int(word) for word in (*words, "100", "0")[:2]) if words else (100, 0)
    kinds = words[2:] or list(TARGETS)
    started = time.perf_counter()
    ends, failures = {}, []
    with tempfile.TemporaryDirectory() as folder:
        good = Path(folder, "good")
        good.mkdir()
        material = Material(good)
        for at, name in enumerate(kinds):
            spoilt = Path(folder, f"spoilt-{at}")  # what one kind writes is no input of another
            spoilt.mkdir()
            ends[name], failed = try_many(material, spoilt, name, range(first, first + many))
            failures += failed
    seconds = f"{time.perf_counter() - started:.0f} s, {time.process_time():.0f} s of one core"
    lines = [*failures, *table_of(ends), f"{len(failures)} failures, {seconds}"]
    sys.stdout.write("\n".join(lines) + "\n")
    return 1 if failures else 0


sys.exit(main(sys.argv[1:]))
