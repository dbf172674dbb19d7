"""What a model is sent first: the sample's prompt, inside a wrapper if one was given."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from callmark.datasets.reader import Dataset
from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import Json
from callmark.records.samples import MARKER, ExtractorBy, Sample
from callmark.run.offers import Offers
from callmark.run.play import opening_messages
from callmark.run.selection import Selection
from callmark.runners.wrappers import DEFAULT_SYSTEM, Messages, Wrapper, open_wrapper
from callmark.store.problems import MAX_PROBLEMS


class Prompts:
    """Opening messages for samples. `system` is put before prompts that have none; a wrapper, whose
    template may speak of it, has a default for it, which an empty one switches off."""

    def __init__(self, wrapper: Wrapper | None, system: str | None) -> None:
        self._wrapper = wrapper
        self.system = DEFAULT_SYSTEM if system is None and wrapper is not None else system
        self.sha256 = None if wrapper is None else wrapper.sha256
        self.raw = wrapper is not None and wrapper.raw
        self.asks_for_marker: ExtractorBy | None = None
        if wrapper is not None and MARKER in wrapper.source:
            self.asks_for_marker = "wrapper"
        elif MARKER in (system or ""):
            self.asks_for_marker = "system_message"
        self.loses_prompt = wrapper is not None and "user" not in wrapper.variables

    def opening(self, sample: Sample, tools: Sequence[Json]) -> Messages:
        messages = opening_messages(sample)
        first = messages[0] if messages and messages[0].get("role") == "system" else None
        if self._wrapper is not None:
            return self._wrapped(self._wrapper, first, messages, tools)
        if self.system and first is None:
            return [{"role": "system", "content": self.system}, *messages]
        return messages

    def _wrapped(
        self,
        wrapper: Wrapper,
        first: dict[str, Json] | None,
        messages: Messages,
        tools: Sequence[Json],
    ) -> Messages:
        """The first system and the last user message through the wrapper; between them the
        conversation stays as it is."""
        others = messages if first is None else messages[1:]
        system = self.system or "" if first is None else first.get("content")
        last: dict[str, Json] = others[-1] if others else {}
        if last.get("role") != "user":
            raise UsageError("cannot be wrapped: the last message must be the user's")
        if any(message.get("role") == "system" for message in others):
            raise UsageError("cannot be wrapped: only the first message may be a system message")
        if wrapper.raw and len(others) > 1:
            raise UsageError("is a conversation, which no flat text can hold; use a .j2 wrapper")
        user = last.get("content")
        if not isinstance(system, str) or not isinstance(user, str):
            raise UsageError("cannot be wrapped: system and user content must be plain text")
        made = wrapper.render(user=user, system=system, tools=tools)
        before = [message for message in made if message["role"] == "system"]
        opening = [*before, *others[:-1], *(one for one in made if one["role"] == "user")]
        if not opening:
            raise UsageError("the wrapper leaves nothing of it")
        return opening


def open_prompts(path: str | None, system: str | None) -> Prompts:
    return Prompts(None if path is None else open_wrapper(Path(path)), system)


def check_prompts(
    prompts: Prompts, dataset: Dataset, selection: Selection, offers: Offers
) -> list[str]:
    """Warns of samples that cannot be wrapped, each named by its line: they end as errors, the
    others are run. Refuses a run of which nothing would be left. Warns of a wrapper that leaves the
    prompt out."""
    if prompts.sha256 is None:
        return []
    problems: list[str] = []
    lost = 0
    for sample in selection.chosen(dataset):
        try:
            prompts.opening(sample, offers.to(sample).tools)
        except UsageError as error:
            lost += 1
            if lost <= MAX_PROBLEMS:
                problems.append(f"{dataset.name}:{dataset.line_of(sample)}: prompt: {error}")
    # A shard may be unlucky: whether anything is left is a question for all of them.
    if lost and lost == selection.count and selection.num_shards == 1:
        raise BadInput(problems)
    warnings = [
        f"{problem}; it counts as an error (--max-errors), the others are run"
        for problem in problems
    ]
    if lost > MAX_PROBLEMS:
        warnings.append(f"{dataset.name}: {lost - MAX_PROBLEMS} more samples cannot be wrapped")
    if prompts.loses_prompt:
        warnings.append("the prompt wrapper never uses `user`: every sample gets the same prompt")
    return warnings
