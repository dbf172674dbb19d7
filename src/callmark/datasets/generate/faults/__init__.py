"""The table of faults: what can be planted into recorded answers, one kind a row."""

from __future__ import annotations

from callmark.datasets.generate.conduct_faults import CALL_FAULTS, CONDUCT_FAULTS, LEAKS
from callmark.datasets.generate.grounding_faults import GROUNDING_FAULTS
from callmark.datasets.generate.truth import PlantedFault

FAULTS: dict[str, PlantedFault] = {
    fault.name: fault for fault in (*GROUNDING_FAULTS, *CALL_FAULTS, *CONDUCT_FAULTS, *LEAKS)
}
