"""What stands in the package, parsed once for all the tests that read it."""

import ast
from functools import cache
from pathlib import Path


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())
