"""The scripts of the earlier harness, for a checkout. Everything real lives in `src/callmark`."""

import eval  # noqa: A004, F401 - puts the sources of this checkout on the path
