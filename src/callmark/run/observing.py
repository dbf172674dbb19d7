"""Which values a recorded answer states, and whether it keeps what was observed in it."""

from __future__ import annotations

from callmark.config import RunConfig
from callmark.datasets.importing.desk import Desk, Imported
from callmark.records.jsontext import Json, want_object
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

MOST_FACTS = 10
_NOT_KNOWN = Decoding(
    temperature=None, top_p=None, max_tokens=None, seed=None, max_turns=None, tool_choice=None
)


class RecordingJudge:
    """Scores what an import made, as a run would score its recorded answer."""

    def __init__(self, config: RunConfig) -> None:
        self._config = config
        self._evaluator = Evaluator(config)

    def find_facts(self, entry: Imported, desk: Desk) -> list[Json] | None:
        """The values of the last turn that states any, as it writes them. None: the recording
        does otherwise than its own sample says it did."""
        result = self._score(entry, desk)
        if result.scores is None or result.scores.changes:
            return None
        answer = result.model_output.encode("utf-8", "surrogatepass")
        stated = [
            (one.start, answer[one.start : one.end].decode("utf-8", "replace"))
            for one in result.scores.statements
            if one.label == "supported" and one.rule == "match" and one.path is not None
        ]
        ranges = [(turn.start, turn.end) for turn in result.turns or ()]
        for start, end in reversed(ranges):
            texts = [text for at, text in stated if start <= at < end]
            if texts:
                facts: list[Json] = list(dict.fromkeys(texts))
                return facts[:MOST_FACTS]
        return []

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
