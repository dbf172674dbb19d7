"""How often the decisions of probe and compare are wrong, by simulation with fixed seeds.
`python -m dev.prove.decisions` writes the tables into docs/statistics.md (minutes)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from callmark.compare.metrics import decide, rulings
from callmark.probe.stats import validity_change
from callmark.stats.estimates import Pairs
from callmark.store.files import atomic_writer

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"
BEGIN, END = "<!-- simulated -->", "<!-- end of simulated -->"
TRIALS = 2_000
RATES = (0.5, 0.6, 0.7, 0.9, 0.98)
SIZES = (20, 50, 200)
DROP, FLOOR, MARGIN = 0.15, -0.05, 0.03
F1_VALUES = (0.0, 0.5, 2 / 3, 1.0)
F1_OF_THE_REST = 0.5 / 4 + 2 / 3 / 4  # the mean of those that are not perfect
CLUSTER = 4

Values = NDArray[np.float64]


class World:
    """Outcomes of two sides with given rates, independent of each other."""

    def __init__(self, seed: str) -> None:
        self._rng = np.random.default_rng(list(seed.encode()))

    def flags(self, n: int, rate: float | Values) -> Values:
        return (self._rng.random(n) < rate).astype(np.float64)

    def f1(self, n: int, mean: float) -> Values:
        """Most answers are perfect, the others have some F1 or none."""
        rest = (1 - mean) / (1 - F1_OF_THE_REST)
        shares = [rest / 2, rest / 4, rest / 4, 1 - rest]
        return self._rng.choice(F1_VALUES, size=n, p=shares)

    def clustered(self, n: int, rate: float, spread: float) -> Values:
        """Clusters that succeed and fail together."""
        shift = self._rng.choice([-spread, spread], size=n // CLUSTER).repeat(CLUSTER)
        return self.flags(n // CLUSTER * CLUSTER, np.clip(rate + shift, 0, 1))


def decision(*primary: Pairs) -> str:
    """What compare says about these metrics together."""
    metrics = {f"metric {at}": pairs for at, pairs in enumerate(primary)}
    return decide(rulings(metrics, margin=MARGIN, seed=42))[0]


def probe(world: World, n: int, before: float, after: float) -> str:
    return validity_change(
        world.flags(n, before).tolist(), world.flags(n, after).tolist(), FLOOR
    ).decision


def only_lost(world: World, n: int, before: float, after: float) -> str:
    """The tuned side does what its base did, but for the calls that it lost."""
    base = world.flags(n, before)
    tuned = base * world.flags(n, after / before)
    return validity_change(base.tolist(), tuned.tolist(), FLOOR).decision


def rate(world: World, n: int, before: float, after: float) -> str:
    return decision(rate_pairs(world, n, before, after))


def clusters(world: World, n: int, before: float, after: float) -> str:
    # As far apart as the rates allow where nothing changes; a drop is looked for in milder ones.
    spread = min(0.4, (1 - before) * 0.9) if before == after else min(0.1, (1 - before) / 2)
    gains = world.clustered(n, after, spread) - world.clustered(n, before, spread)
    return decision(Pairs(gains.tolist(), True, [at // CLUSTER for at in range(len(gains))]))


def mean(world: World, n: int, before: float, after: float) -> str:
    return decision(mean_pairs(world, n, before, after))


def four(world: World, n: int, before: float, *, mean: float, rate: float, rest: float) -> str:
    """The four primary metrics, Holm over them, and what each is afterwards."""
    return decision(
        mean_pairs(world, n, before, mean),
        rate_pairs(world, n, before, rate),
        rate_pairs(world, n, before, rest),
        rate_pairs(world, n // 4, before, rest),
    )


def all_four(world: World, n: int, before: float, after: float) -> str:
    return four(world, n, before, mean=after, rate=after, rest=after)


def rate_of_four(world: World, n: int, before: float, after: float) -> str:
    return four(world, n, before, mean=before, rate=after, rest=before)


def mean_of_four(world: World, n: int, before: float, after: float) -> str:
    return four(world, n, before, mean=after, rate=before, rest=before)


def rate_pairs(world: World, n: int, before: float, after: float) -> Pairs:
    return Pairs((world.flags(n, after) - world.flags(n, before)).tolist(), True)


def mean_pairs(world: World, n: int, before: float, after: float) -> Pairs:
    return Pairs((world.f1(n, after) - world.f1(n, before)).tolist(), False)


Decide = Callable[[World, int, float, float], str]
SUBJECTS: dict[str, Decide] = {
    "the probe": probe,
    "compare, a rate": rate,
    "compare, a rate in clusters of four": clusters,
    "compare, mean F1": mean,
    "compare, four primary metrics together": all_four,
    "of four primary metrics a rate falls, alone": rate_of_four,
    "of four primary metrics mean F1 falls, alone": mean_of_four,
}
ONE_QUESTION = tuple(SUBJECTS)[:5]
SKEWED = {"the probe, calls only lost": only_lost}


class Table(NamedTuple):
    """How often `said` is the decision where the rate changes by `change`."""

    title: str
    said: str
    change: float
    subjects: tuple[str, ...]
    sizes: tuple[int, ...]


TABLES = (
    Table(
        "`regression` where nothing changed; rate of both sides",
        "regression",
        0.0,
        ONE_QUESTION,
        SIZES,
    ),
    Table(
        "`regression` where B is 15 points lower; rate of A",
        "regression",
        -DROP,
        tuple(SUBJECTS),
        (200,),
    ),
    Table(
        "`non_inferior` where B is worse by exactly the margin; rate of A",
        "non_inferior",
        -MARGIN,
        ONE_QUESTION[1:4],
        SIZES,
    ),
    Table(
        "`no_regression` where the probe's rate falls by exactly the floor; rate of the base",
        "no_regression",
        FLOOR,
        ("the probe", *SKEWED),
        (20, 60, 200),
    ),
)
ROWS = [(table, subject, n) for table in TABLES for subject in table.subjects for n in table.sizes]


def cell(table: Table, subject: str, n: int, before: float, trials: int = TRIALS) -> float:
    world = World(f"{table.said} {table.change} {subject} {n} {before}")
    decide = (SUBJECTS | SKEWED)[subject]
    hits = (decide(world, n, before, before + table.change) == table.said for _ in range(trials))
    return sum(hits) / trials


def row(place: tuple[Table, str, int]) -> tuple[str, list[float]]:
    """A line of a table, and its numbers."""
    table, subject, n = place
    shares = [cell(table, subject, n, before) for before in RATES]
    cells = " | ".join(f"{share:.1%}".replace("%", " %") for share in shares)
    return f"| {subject}, n = {n} | {cells} |", shares


def page(lines: Sequence[str]) -> Iterator[str]:
    found = iter(lines)
    for table in TABLES:
        yield f"| {table.title} | {' | '.join(f'{rate:g}' for rate in RATES)} |"
        yield "|---" * (len(RATES) + 1) + "|"
        for _ in range(len(table.subjects) * len(table.sizes)):
            yield next(found)
        yield ""


def main() -> int:
    with ProcessPoolExecutor(os.cpu_count(), mp_context=get_context("spawn")) as pool:
        lines = [line for line, _ in pool.map(row, ROWS)]
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    after = rest.partition(END)[2]
    tables = "\n".join(page(lines))
    with atomic_writer(PAGE) as stream:
        stream.write(f"{before}{BEGIN}\n\n{tables}\n{END}{after}".encode())
    print(tables)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
