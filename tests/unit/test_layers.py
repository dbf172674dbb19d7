"""The map of who may import whom, held as data. Adding an import upwards fails here."""

import ast
from pathlib import Path

import pytest

SRC = Path(__file__).parents[2] / "src" / "callmark"

PURE_STDLIB = {
    "__future__", "abc", "array", "bisect", "collections", "dataclasses", "datetime", "decimal",
    "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json",
    "math", "operator", "re", "statistics", "string", "struct", "types", "typing", "unicodedata",
}  # fmt: skip
PURE_LIBS = {"msgspec", "jsonschema_rs", "json_repair", "babel", "phonenumbers", "stdnum"}

CORE = {"errors", "core"}
CALLS = CORE | {"calls"}
GROUNDING = CALLS | {"grounding"}
SCORERS = GROUNDING | {"scorers"}
PIPE = SCORERS | {"store", "broker", "runners", "play", "config", "resources"}
RUN = PIPE | {"plugins", "datasets", "running", "_version"}
WORK = RUN | {"verifying", "doctor", "comparing", "probe", "shards", "recording", "serving"}

# layer -> (callmark layers it may import, whether only pure third-party and stdlib modules)
ALLOWED: dict[str, tuple[set[str], bool]] = {
    "errors": (set(), True),
    "_version": (set(), True),
    "core": (CORE, True),
    "calls": (CALLS, True),
    "grounding": (GROUNDING, True),
    "scorers": (SCORERS, True),
    "store": (CORE, False),
    "resources": (CORE | {"store"}, False),
    "config": (CORE | {"store", "resources"}, False),
    "broker": (CALLS | {"store"}, False),
    "runners": (CALLS | {"store"}, False),
    "play": (CALLS, True),
    "plugins": ({"errors"}, False),
    "datasets": (CALLS | {"store", "resources", "runners", "_version"}, False),
    "running": (RUN, False),
    "verifying": (RUN, False),
    "doctor": (RUN | {"verifying"}, False),
    "comparing": (RUN, False),
    "probe": (RUN | {"comparing"}, False),
    "shards": (RUN, False),
    "recording": (RUN, False),
    "serving": (RUN | {"recording"}, False),
    "reports": (CORE | {"store", "resources", "_version"}, False),
    "view": (CORE | {"store", "reports"}, False),
    "cli": (WORK | {"reports", "view", "api"}, False),
    "api": (WORK, False),
    "pytest_plugin": (WORK | {"reports", "api", "pytest_runs"}, False),
    "pytest_runs": (WORK | {"reports", "api"}, False),
    "__init__": ({"api", "_version", "errors"}, False),
    "__main__": ({"cli", "errors"}, False),
}


def layer_of(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            names.add(node.module or "")
            if node.module == "callmark":
                names |= {f"callmark.{alias.name}" for alias in node.names}
    return names - {"callmark"}


MODULES = sorted(
    path for path in SRC.rglob("*.py") if "data" not in path.relative_to(SRC).parts[:1]
)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_imports_follow_the_map(path: Path):
    layers, pure = ALLOWED[layer_of(path)]
    allowed = layers | {layer_of(path)}
    for name in imports_of(path):
        head, _, rest = name.partition(".")
        if head == "callmark":
            assert rest.split(".")[0] in allowed, f"{path}: imports {name}"
        elif pure:
            numpy_ok = head == "numpy" and path.name in ("stats.py", "paired.py")
            assert head in PURE_STDLIB | PURE_LIBS or numpy_ok, f"{path}: {name} is not pure"


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(SRC)))
def test_heavy_modules_are_imported_only_where_used(path: Path):
    tree = ast.parse(path.read_text("utf-8"))
    top = {
        alias.name.split(".")[0]
        for node in tree.body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in (
            node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")]
        )
    }
    heavy = {"numpy", "rich", "aiohttp", "torch", "transformers", "ray", "mcp", "pyarrow"}
    assert not top & heavy, f"{path}: {top & heavy} at module level"
