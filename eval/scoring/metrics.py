from callmark.summary.metrics import DEFINITIONS, measures
from callmark.summary.summary import Summariser

__all__ = ["DEFINITIONS", "Summariser", "measures"]
