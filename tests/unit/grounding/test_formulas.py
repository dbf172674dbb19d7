"""Equations in mathematics that is set, and what is left alone in them."""

import pytest
from tests.unit.grounding.asking import statements

SERVED = {"speed": 12.5, "width": 2.5, "name": "Lane 3"}


def labels(formula: str) -> list[tuple[str, str]]:
    found = statements(f"It follows that {formula}.", SERVED)
    return [(text, label) for text, label, rule in found if rule == "equation"]


@pytest.mark.parametrize(
    ("formula", "found"),
    [
        (r"\(\frac{12.5}{2.5} \times 3 = 15\)", [("15", "calculated")]),
        (r"\(\frac{12.5}{2.5} \times 3 = 19\)", [("19", "miscalculated")]),
        (r"\(2^5 + 1 = 33\)", [("33", "calculated")]),
        (r"\(2^5 + 1 = 35\)", [("35", "miscalculated")]),
        (r"\(\sqrt{49} \cdot 4 = 28\)", [("28", "calculated")]),
        (r"\(\sqrt{49} \cdot 4 = 24\)", [("24", "miscalculated")]),
        (r"\(12.5 + 2.5 = 15 = 3 \times 5\)", [("15", "calculated")]),
        (r"\(12.5 \div 3 \approx 4.17\)", [("4.17", "calculated")]),
        (r"\(12.5 \div 3 \approx 4.71\)", [("4.71", "miscalculated")]),
        (r"\(1{,}200 \times 12.5 = 15{,}000\)", []),  # no value is read there
        (r"\(12.5 \times 3600\text{ s} = 45\text{ km}\)", []),  # units are converted
        (r"\(x + 2.5 = 15\)", []),
        (r"\(\frac{12.5}{0} = 12\)", []),
        (r"\(12.5 \times 2.5 = \)", []),
    ],
)
def test_equations_that_are_set(formula, found):
    assert [one for one in labels(formula) if one[1] != "calculated" or one in found] == found


def test_deep_and_large_ones_end():
    deep = r"\(" + "(" * 400 + "1" + ")" * 400 + r" + 1 = 3\)"
    assert labels(deep) == []
    assert labels(r"\(9^{40} \times 9^{40} = 7\)") == []
    assert labels(r"\(9^{99999999} = 7\)") == []
