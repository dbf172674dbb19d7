"""Scoring is not interrupted by searches for garbage, and leaves the setting as it was."""

import gc

import pytest

from callmark.run.offers import in_peace


@pytest.fixture(autouse=True)
def _as_before():
    yield
    gc.enable()


@pytest.mark.parametrize("is_enabled", [True, False])
def test_what_was_set_is_set_again(is_enabled: bool):
    (gc.enable if is_enabled else gc.disable)()
    assert in_peace(lambda one, *, more: (gc.isenabled(), one, more), 1, more=2) == (False, 1, 2)
    assert gc.isenabled() is is_enabled


def test_also_after_an_error():
    gc.enable()
    with pytest.raises(ZeroDivisionError):
        in_peace(lambda: 1 // 0)
    assert gc.isenabled()
