"""The real material: found through CALLMARK_REAL_DATA, never part of the repository."""

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def real_data() -> Path:
    folder = os.environ.get("CALLMARK_REAL_DATA")
    if not folder:
        pytest.skip("CALLMARK_REAL_DATA is not set")
    return Path(folder)
