"""What we have, in files that others read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from toolmark.datasets.exporting.inspect_log import export_inspect
from toolmark.datasets.exporting.items import export_jsonl, export_parquet

# format -> (what it reads, how it is written)
EXPORTS: dict[str, tuple[str, Callable[[Path, Path], int]]] = {
    "inspect": ("results", export_inspect),
    "jsonl": ("dataset", export_jsonl),
    "parquet": ("dataset", export_parquet),
}
FORMAT_OF_SUFFIX = {
    ".eval": "inspect",
    ".json": "inspect",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
}
