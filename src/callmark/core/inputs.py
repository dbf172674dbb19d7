"""What the results say they depend on: fingerprints and decoding, as far as they agree."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from callmark.core.report import GateRule, ReportHeader
from callmark.core.results import Decoding, Fingerprints, Result


class Inputs:
    """Fills the report's header from the results where the caller left it open."""

    def __init__(self) -> None:
        self._fingerprints: Fingerprints | None = None
        self._decoding: Decoding | None = None
        self._conflicts: set[str] = set()

    def add(self, result: Result) -> None:
        if self._fingerprints is None or self._decoding is None:
            self._fingerprints, self._decoding = result.fingerprints, result.decoding
            return
        if result.fingerprints != self._fingerprints:
            for name in Fingerprints.__struct_fields__:
                if getattr(result.fingerprints, name) != getattr(self._fingerprints, name):
                    self._conflicts.add(name)
        if result.decoding != self._decoding:
            self._conflicts.add("decoding")

    @property
    def conflicts(self) -> frozenset[str]:
        """What the results do not agree in."""
        return frozenset(self._conflicts)

    def filled(self, header: ReportHeader, most: int, rules: Sequence[GateRule]) -> ReportHeader:
        known = msgspec.structs.asdict(self._fingerprints) if self._fingerprints else {}
        known["decoding"] = self._decoding
        fill = {
            name: value
            for name, value in known.items()
            if getattr(header, name) is None and name not in self._conflicts
        }
        decoding = fill.get("decoding", header.decoding)
        if header.seed is None and decoding is not None:
            fill["seed"] = decoding.seed
        return msgspec.structs.replace(
            header,
            repeat=max(header.repeat, most),
            gates={rule.name: rule for rule in rules},
            **fill,
        )

    def warnings(self) -> list[str]:
        return [f"the results do not agree in {name}" for name in sorted(self._conflicts)]
