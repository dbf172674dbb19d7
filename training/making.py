"""The stages of `python -m training`, each from what stands before it."""

from __future__ import annotations
