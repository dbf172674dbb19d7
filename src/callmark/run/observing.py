"""Which values a recorded answer states, and whether it keeps what was observed in it."""

from __future__ import annotations

import msgspec

from callmark.config import RunConfig
from callmark.datasets.importing.desk import Desk, Imported
from callmark.records.jsontext import Json, canonical_json, want_object
from callmark.records.results import Decoding, Fingerprints, Result
from callmark.records.samples import sample_of
from callmark.run.loop import drive_at_once
from callmark.run.offers import Offers
from callmark.run.play import (
    Evaluator,
    Origin,
    PlaySettings,
    TrialInput,
    opening_messages,
    play,
)
from callmark.runners.replay import OneRecording, recorded_replies
from callmark.store.recorded import messages_of

MOST_FACTS = 40
# Rules that find a value of a result in the answer; others find names, deeds, yes and no.
_OF_VALUES = frozenset(("match", "bound", "unbound", "joined"))
_NOT_KNOWN = Decoding(
    temperature=None, top_p=None, max_tokens=None, seed=None, max_turns=None, tool_choice=None
)


class RecordingJudge:
    """Scores what an import made, as a run would score its recorded answer."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._evaluator = Evaluator(config)

    def find_facts(self, entry: Imported, desk: Desk) -> list[Json] | None:
        """The values of the last turn that states any, as far as a scorer finds them again. None:
        the recording does otherwise than its own sample says it did."""
        result = self._score(entry, desk)
        if result.scores is None or result.scores.changes:
            return None
        facts = _stated(result)
        if not facts:
            return []
        metadata = {**want_object(entry.item["metadata"]), "required_facts": facts}
        stating = msgspec.structs.replace(entry, item={**entry.item, "metadata": metadata})
        again = self._score(stating, desk).scores
        changes = () if again is None or again.changes is msgspec.UNSET else again.changes
        return [fact for fact in facts if f"does not state {canonical_json(fact)}" not in changes]

    def _score(self, entry: Imported, desk: Desk) -> Result:
        metadata = want_object(entry.item["metadata"])
        registry = desk.tools.registry_of(metadata.get("tools"))
        sample = sample_of(entry.item, index=0, sample_id=entry.sample_id, item_sha256="")
        offers = Offers(registry, frozenset(registry.names))
        offer = offers.to(sample)
        settings = PlaySettings(
            registry=registry,
            allowed=offers.allowed,
            max_turns=None,
            parse_text=self._config.parse_text,
        )
        recorded = messages_of(want_object(entry.answer), entry.line)
        replies = recorded_replies(recorded, opening_messages(sample), registry.sha256)
        trial = TrialInput(sample, 0, offer.names, offer.tools)
        [played] = drive_at_once(play([trial], OneRecording(replies), None, settings))
        return self._evaluator.result(played, offer, Origin(Fingerprints(), _NOT_KNOWN))


def _stated(result: Result) -> list[Json]:
    """As the answer words them."""
    statements = () if result.scores is None else result.scores.statements
    answer = result.model_output.encode("utf-8", "surrogatepass")
    for turn in reversed(result.turns or ()):
        facts: dict[Json, None] = dict.fromkeys(
            answer[one.start : one.end].decode("utf-8", "replace")
            for one in statements
            if turn.start <= one.start < turn.end
            and one.label == "supported"
            and one.rule in _OF_VALUES
        )
        if facts:
            return [*facts][:MOST_FACTS]
    return []
