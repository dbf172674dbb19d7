"""The table of faults: what can be planted into recorded answers, one kind a row."""

from __future__ import annotations

from toolmark.datasets.generate.faults import calls, conduct, grounding, privacy
from toolmark.datasets.generate.faults.fault import Fault

FAULTS: dict[str, Fault] = {
    fault.name: fault
    for fault in (*grounding.FAULTS, *calls.FAULTS, *conduct.FAULTS, *privacy.FAULTS)
}
