"""Datasets out of what others have: conversations, benchmark results, logs, tables."""

from toolmark.datasets.importing.importing import CHOICES, ImportReport, import_dataset
from toolmark.datasets.importing.writing import Places

__all__ = ["CHOICES", "ImportReport", "Places", "import_dataset"]
