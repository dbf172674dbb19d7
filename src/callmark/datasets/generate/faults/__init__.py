"""The table of faults: what can be planted into recorded answers, one kind a row."""

from __future__ import annotations

from callmark.datasets.generate.faults import calls, conduct, grounding
from callmark.datasets.generate.faults.fault import PlantedFault

FAULTS: dict[str, PlantedFault] = {
    fault.name: fault
    for fault in (*grounding.FAULTS, *calls.FAULTS, *conduct.FAULTS, *conduct.LEAKS)
}
