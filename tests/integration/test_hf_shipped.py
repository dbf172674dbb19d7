"""The bar of local generation, on the model that ships."""

import pytest
from bench.local import BOUND, SHIPPED, rows

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (SHIPPED / "model").exists(), reason="no model is shipped"),
]


def test_64_prompts_with_one_tool_prefix_equal_and_faster_than_one_at_a_time():
    """Ends if a batch changes an answer. CPU, not wall time, and a ratio of what takes turns."""
    ((_, ratio, _),) = rows()
    assert float(ratio) >= BOUND
