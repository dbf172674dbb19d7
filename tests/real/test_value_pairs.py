"""Values of real tool results, quoted as people write them, are found; altered ones are not."""

from pathlib import Path

import pytest
from tests.real.pairs import pairs

import callmark

pytestmark = pytest.mark.real

FOUND_AT_LEAST = REFUSED_AT_LEAST = 0.995


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_quoted_values_are_found_and_altered_ones_refused(real_data: Path, seed: int):
    lost: list[str] = []
    accepted: list[str] = []
    total = altered = left_out = 0
    for pair in pairs(real_data / "episodes", seed):
        total += 1
        if not callmark.ground(pair.quoted, pair.results)["lax"]:
            lost.append(f"{pair.quoted!r} for {pair.leaf!r}")
        if pair.excluded:
            left_out += 1
            continue
        altered += 1
        if callmark.ground(pair.altered, pair.results)["lax"]:
            accepted.append(f"{pair.altered!r} for {pair.leaf!r} ({pair.how})")
    found, refused = 1 - len(lost) / total, 1 - len(accepted) / altered
    figures = f"{total} pairs, found {found:.4f}, refused {refused:.4f}, left out {left_out}"
    print(figures)  # noqa: T201 - the figures are the point of this test
    assert total >= 1000
    assert found >= FOUND_AT_LEAST, (figures, lost[:10])
    assert refused >= REFUSED_AT_LEAST, (figures, accepted[:10])
