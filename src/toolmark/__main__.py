"""`python -m toolmark` and the installed command `toolmark`."""

from __future__ import annotations

import sys

from toolmark.cli import main

if __name__ == "__main__":
    sys.exit(main())
