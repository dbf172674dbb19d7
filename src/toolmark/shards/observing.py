"""What several runners saw, told as one would."""

from __future__ import annotations

from collections.abc import Sequence

from toolmark.core.jsontext import Json
from toolmark.core.protocols import Observed


def put_together(seen: Sequence[Observed]) -> Observed:
    """Counts and seconds add up, lists of values are united, warnings are said once. What can
    neither be added nor united, such as a time per token, is kept where all agree."""
    return Observed(
        provenance=_united([one.provenance for one in seen]),
        measured=_added([one.measured for one in seen]),
        warnings=tuple(dict.fromkeys(text for one in seen for text in one.warnings)),
    )


def _united(seen: Sequence[dict[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for one in seen:
        for name, value in one.items():
            known = found.setdefault(name, value)
            if isinstance(known, list) and isinstance(value, list):
                found[name] = [*known, *(entry for entry in value if entry not in known)]
    return {name: sorted(value) if _is_texts(value) else value for name, value in found.items()}


def _added(seen: Sequence[dict[str, Json]]) -> dict[str, Json]:
    found: dict[str, Json] = {}
    for name in dict.fromkeys(name for one in seen for name in one):
        values = [one[name] for one in seen if name in one]
        if all(isinstance(value, int) for value in values) or name.endswith("_sec"):
            found[name] = sum(values)
        elif all(value == values[0] for value in values):
            found[name] = values[0]
    return found


def _is_texts(value: Json) -> bool:
    return isinstance(value, list) and all(isinstance(entry, str) for entry in value)
