"""The names of the earlier harness, for a checkout. Everything real lives in `src/callmark`."""

import sys
from pathlib import Path

_SRC = str(Path(__file__).resolve().parents[1] / "src")
if _SRC in sys.path:
    sys.path.remove(_SRC)
sys.path.insert(0, _SRC)  # first: this checkout, whatever else is installed
