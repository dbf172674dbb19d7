from callmark.core.metrics import DEFINITIONS, measures
from callmark.core.summary import Summariser

__all__ = ["DEFINITIONS", "Summariser", "measures"]
