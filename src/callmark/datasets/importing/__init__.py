"""Datasets out of what others have: conversations, benchmark results, logs, tables."""

from callmark.datasets.importing.importing import (
    CHOICES,
    ImportReport,
    import_dataset,
    recognise,
)
from callmark.datasets.importing.writing import ImportPaths

__all__ = ["CHOICES", "ImportPaths", "ImportReport", "import_dataset", "recognise"]
