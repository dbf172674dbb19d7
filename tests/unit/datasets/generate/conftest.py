import pytest
from tests.unit.datasets.generate.measuring import Bench


@pytest.fixture(scope="package")
def bench_of(tmp_path_factory):
    """Benches by seed: made once, used by every test that asks for the same one."""
    made: dict[int, Bench] = {}

    def bench(seed: int) -> Bench:
        if seed not in made:
            made[seed] = Bench(tmp_path_factory.mktemp(f"seed{seed}"), 400, seed)
        return made[seed]

    yield bench
    for one in made.values():
        one.close()
