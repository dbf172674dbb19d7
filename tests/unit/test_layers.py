"""The map of who may import whom, held as data. Adding an import upwards fails here."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.sources import tree_of

SRC = Path(__file__).parents[2] / "src" / "callmark"

PURE_STDLIB = {
    "__future__", "abc", "array", "bisect", "collections", "dataclasses", "datetime", "decimal",
    "difflib", "enum", "fractions", "functools", "hashlib", "heapq", "html", "itertools", "json",
    "math", "operator", "re", "statistics", "string", "struct", "types", "typing", "unicodedata",
}  # fmt: skip
PURE_TOO = {"stats": {"numpy"}}
PURE_LIBS = {
    "msgspec",
    "jsonschema_rs",
    "json_repair",
    "babel",
    "phonenumbers",
    "stdnum",
    "re2",
    "snowballstemmer",
}

RECORDS = {"errors", "records", "stats"}
CALLS = RECORDS | {"calls"}
GROUNDING = CALLS | {"grounding"}
SCORERS = GROUNDING | {"scorers"}
FILES = {"store", "resources", "_version"}
# What a run is made of; what is done with runs; what shows them.
PARTS = SCORERS | FILES | {"summary", "broker", "runners", "datasets", "config", "plugins"}
WORK = PARTS | {"run", "compare", "probe", "shards", "live"}
SHOWN = RECORDS | FILES | {"summary", "reports"}

# layer -> (callmark layers it may import, whether only pure third-party and stdlib modules)
ALLOWED: dict[str, tuple[set[str], bool]] = {
    "errors": (set(), True),
    "_version": (set(), True),
    "stats": ({"errors"}, True),
    "records": (RECORDS, True),
    "calls": (RECORDS, True),
    "grounding": (CALLS, True),
    "scorers": (GROUNDING, True),
    "summary": (RECORDS, True),
    "store": (RECORDS, False),
    "resources": (RECORDS | {"store"}, False),
    "config": (RECORDS | {"store", "resources", "plugins"}, False),
    "plugins": (RECORDS | {"runners"}, False),
    "broker": (CALLS | {"store"}, False),
    "runners": (CALLS | {"store"}, False),
    "datasets": (CALLS | FILES | {"summary", "runners"}, False),
    "run": (PARTS, False),
    "compare": (PARTS | {"run"}, False),
    "probe": (PARTS | {"run", "compare"}, False),
    "shards": (PARTS | {"run"}, False),
    "live": (PARTS | {"run"}, False),
    "reports": (SHOWN, False),
    "view": (SHOWN, False),
    "cli": (WORK | {"reports", "view", "api"}, False),
    "api": (WORK | {"reports"}, False),
    "training": (WORK | {"reports"}, False),
    "pytest_plugin": (WORK | {"reports", "api", "pytest_runs"}, False),
    "pytest_runs": (WORK | {"reports", "api"}, False),
    "__init__": (WORK | {"api"}, False),
    "__main__": ({"cli", "errors"}, False),
}
# Modules of a higher layer that hold nothing but records: whoever shows them may import them.
SHARED = {"callmark.compare.records", "callmark.probe.records"}


def layer_of(path: Path) -> str:
    parts = path.relative_to(SRC).parts
    return parts[0].removesuffix(".py")


def imports_of(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree_of(path)):
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


def test_imports_follow_the_map():
    assert [one for path in MODULES for one in against_the_map(path)] == []


def against_the_map(path: Path) -> Iterator[str]:
    layers, is_pure = ALLOWED[layer_of(path)]
    allowed = layers | {layer_of(path)}
    for name in sorted(imports_of(path) - SHARED):
        head, _, rest = name.partition(".")
        if head == "callmark":
            if rest.split(".")[0] not in allowed:
                yield f"{path.relative_to(SRC)} imports {name}"
        elif is_pure and head not in PURE_STDLIB | PURE_LIBS | PURE_TOO.get(layer_of(path), set()):
            yield f"{path.relative_to(SRC)} imports {name}, which is not pure"


def test_heavy_modules_are_imported_only_where_they_are_used():
    heavy = {"numpy", "rich", "aiohttp", "torch", "transformers", "ray", "mcp", "pyarrow"}
    assert [
        f"{path.relative_to(SRC)} imports {name}"
        for path in MODULES
        for name in imports_at_top(path) & heavy
    ] == []


def imports_at_top(path: Path) -> set[str]:
    return {
        alias.name.split(".")[0]
        for node in tree_of(path).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in (
            node.names if isinstance(node, ast.Import) else [ast.alias(node.module or "")]
        )
    }
