"""Does a report speak about these results?"""

from __future__ import annotations

from callmark.core.report import ReportHeader
from callmark.core.results import Fingerprints

_SAME = ("dataset_sha256", "fixtures_sha256", "runner_fingerprint", "model_fingerprint")


def differing_fingerprint(header: ReportHeader, fingerprints: Fingerprints) -> str | None:
    """The first one that both know and that is not the same; None: there is none."""
    for name in _SAME:
        theirs, ours = getattr(header, name), getattr(fingerprints, name)
        if theirs is not None and ours is not None and theirs != ours:
            return name
    return None
