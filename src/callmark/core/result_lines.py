"""Results as plain JSON values, ours or somebody else's, as records.

A line of a results file has every field. Of what another harness or a notebook hands over, only
the `scores` have to be there: whatever else is missing is filled in with nothing."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from callmark.core.identity import sample_id_of
from callmark.core.jsontext import Json
from callmark.core.numbering import Numbering
from callmark.core.results import Decoding, Fingerprints, Result
from callmark.core.samples import expectation_of
from callmark.core.trace import entry_of
from callmark.errors import BadInput

_UNKNOWN_DECODING = Decoding(
    temperature=None, top_p=None, max_tokens=None, seed=None, max_turns=None, tool_choice=None
)
_NOTHING: dict[str, Json] = {
    "trial": 0,
    "prompt": "",
    "metadata": {},
    "said": (),
    "model_output": "",
    "turns": None,
    "reasoning": "",
    "tool_trace": (),
    "scores": None,
    "item_sha256": "",
    "used_fixtures_sha256": "",
    "offered_tools_sha256": "",
    "fingerprints": Fingerprints(),
    "decoding": _UNKNOWN_DECODING,
}


class ResultReader:
    """Gives results without an `index` one, by the order in which their samples appear."""

    def __init__(self) -> None:
        self._indexes = Numbering()

    def read(self, given: Mapping[str, Json], number: int) -> Result:
        """`number` is the place in the stream, for messages."""
        if not isinstance(given, Mapping):
            raise BadInput(f"result {number}: must be an object, not {type(given).__name__}")
        if given.get("sample_id") is None and not isinstance(given.get("scores"), Mapping):
            raise BadInput(f"result {number}: holds neither a sample_id nor scores")
        try:
            expectation_of(given.get("metadata") or {})
            return msgspec.convert(self._filled(given), Result)
        except msgspec.ValidationError as error:
            raise BadInput(f"result {number}: {error}") from None
        except (KeyError, TypeError, AttributeError) as error:
            raise BadInput(
                f"result {number}: metadata: cannot be read ({error!r}); "
                "see the schema of a dataset item"
            ) from None

    def _filled(self, given: Mapping[str, Json]) -> dict[str, Json]:
        line = _NOTHING | {name: value for name, value in given.items() if value is not None}
        scores = line["scores"]
        has_scores = isinstance(scores, Mapping)
        line.setdefault("status", "ok" if has_scores else "error")
        line.setdefault("stop", "answer" if has_scores else "error")
        extractor = scores.get("span_extractor") if has_scores else None
        line.setdefault("span_extractor", extractor or "claims")
        line["sample_id"] = sample_id_of(given)
        if "index" not in line:
            line["index"] = self._indexes.setdefault(line["sample_id"], len(self._indexes))
        if isinstance(line["tool_trace"], list):
            line["tool_trace"] = [entry_of(entry) for entry in line["tool_trace"]]
        return line
