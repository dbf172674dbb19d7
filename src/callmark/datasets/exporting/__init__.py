"""What we have, in files that others read."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from callmark.datasets.exporting.inspect_log import export_inspect
from callmark.datasets.exporting.items import export_jsonl, export_parquet

INSPECT = "inspect"
# Of a dataset; results go to `export_inspect`.
DATASET_EXPORTS: dict[str, Callable[[Path, Path], int]] = {
    "jsonl": export_jsonl,
    "parquet": export_parquet,
}
FORMATS = (INSPECT, *DATASET_EXPORTS)
FORMAT_OF_SUFFIX = {
    ".eval": INSPECT,
    ".json": INSPECT,
    ".jsonl": "jsonl",
    ".parquet": "parquet",
}

__all__ = ["DATASET_EXPORTS", "FORMATS", "FORMAT_OF_SUFFIX", "INSPECT", "export_inspect"]
