"""Four times the size is four times the work, counted in lines of Python that run: a clock would
tell of the machine. The shapes are those of `bench/shapes.py`, which measures CPU."""

import pytest
from bench import shapes
from tests.lines import lines_run
from tests.unit.grounding.asking import call, claims

MOST = 4.5
# Those that were quadratic once, and quick enough for every commit.
QUICK = {
    "a table of records": 60,
    "quotations against texts": 60,
    "one sentence of many names": 60,
    "quotations that are alike": 60,
    "texts that begin alike": 60,
    "unsupported numbers against small lists": 40,
    "columns that are lists": 150,
    "numbers that are taken back": 150,
}
ALL = [shape for shape in shapes.SHAPES if shape.name not in QUICK]


def growth(shape: shapes.Shape, size: int) -> float:
    small, large = shape.make(size), shape.make(shapes.TIMES * size)
    return lines_run(lambda: shapes.score(large)) / lines_run(lambda: shapes.score(small))


@pytest.mark.parametrize(
    "shape", [one for one in shapes.SHAPES if one.name in QUICK], ids=lambda one: one.name
)
def test_f70_four_times_the_size_is_four_times_the_work(shape):
    assert growth(shape, QUICK[shape.name]) <= MOST


@pytest.mark.slow
@pytest.mark.parametrize("shape", ALL, ids=lambda one: one.name)
def test_f70_every_shape_is_linear(shape):
    assert growth(shape, shape.size // 2) <= MOST


def test_a_quotation_that_goes_on_where_the_text_of_a_result_ends_is_scored():
    said = 'The sign says "Guests must leave by noon every day of the whole week".'
    served = {"rule": "Guests must leave by noon every day"}
    scores = claims(said, call(served))
    assert "supported" not in {one["label"] for one in scores["statements"]}
