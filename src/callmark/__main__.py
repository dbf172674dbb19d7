"""`python -m callmark` and the installed command `callmark`."""

from __future__ import annotations

import sys

from callmark.cli import main

if __name__ == "__main__":
    sys.exit(main())
