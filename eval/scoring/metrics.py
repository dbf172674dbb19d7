from toolmark.core.metrics import DEFINITIONS, measures
from toolmark.core.summary import Summariser

__all__ = ["DEFINITIONS", "Summariser", "measures"]
