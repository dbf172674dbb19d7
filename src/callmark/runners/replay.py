"""The replay runner: answers that somebody recorded, as results lines or as message lists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import assert_never

import msgspec

from callmark.errors import UsageError
from callmark.records.results import ByteRange
from callmark.records.seams import Conversation, Failure, Finish, Reply, Runner
from callmark.records.trace import RECORDED, Stop, TraceEntry
from callmark.runners.messages import Message, replies_of, split_prompt
from callmark.runners.options import RunnerOptions
from callmark.store.recorded import Recorded, RecordedAnswer, RecordedIndex, RecordedMessages

FINISH_OF: dict[Stop, Finish] = {
    "truncated": "length",
    "filtered": "content_filter",
    "context_exceeded": "context_exceeded",
}


@contextmanager
def open_replay(options: RunnerOptions) -> Iterator[ReplayRunner]:
    if options.model is None:
        raise UsageError("the replay runner needs --model FILE: a results file or message lists")
    with RecordedIndex(Path(options.model), options.asked) as index:
        yield ReplayRunner(index, options.tool_registry_sha256)


class ReplayRunner(Runner):
    """Answers each turn with what was recorded for it. Never waits, so it needs no event loop."""

    name = "replay"
    suspends = False
    max_batch = 1

    def __init__(self, index: RecordedIndex, tool_registry_sha256: str) -> None:
        self._index = index
        self._registry = tool_registry_sha256
        self._open: dict[tuple[str, int], tuple[Reply, ...] | Failure] = {}

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        # Only what this batch needs is kept: a trial that stopped early leaves nothing behind.
        self._open = {_key(one): self._open.get(_key(one)) or self._load(one) for one in batch}
        return [_turn(self._open[_key(one)], one.turn) for one in batch]

    def model_fingerprint(self) -> str | None:
        return self._index.sha256

    def _load(self, conversation: Conversation) -> tuple[Reply, ...] | Failure:
        sample_id, trial = _key(conversation)
        found = self._index.get(sample_id, trial)
        if found is None:
            which = f"sample {sample_id}" + (f", trial {trial}" if trial else "")
            return Failure(f"no recorded answer for {which}")
        return recorded_replies(found, conversation.messages, self._registry)


class OneRecording(Runner):
    """Answers with the turns of one recording, whoever asks."""

    name = "recording"
    suspends = False
    max_batch = 1

    def __init__(self, recording: tuple[Reply, ...] | Failure) -> None:
        self._recording = recording

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]:
        return [_turn(self._recording, one.turn) for one in batch]


def recorded_replies(
    recorded: Recorded, prompt: Sequence[Message], tool_registry_sha256: str | None
) -> tuple[Reply, ...] | Failure:
    """The turns of one recording. A schema verdict is kept only if this registry gave it."""
    match recorded:
        case RecordedMessages(messages=messages):
            replies = replies_of(_after_prompt(messages, prompt))
            return replies or Failure("the recorded messages hold no assistant turn")
        case RecordedAnswer(status="error", error=error):
            return Failure(f"the recorded trial had failed: {error or 'no reason is given'}")
        case RecordedAnswer():
            made = recorded.fingerprints and recorded.fingerprints.tool_registry_sha256
            keep = made is not None and made == tool_registry_sha256
            entries = [_as_recorded(entry, keep) for entry in recorded.tool_trace]
            return _answer_replies(recorded, entries)
        case _:
            assert_never(recorded)


def _answer_replies(
    recorded: RecordedAnswer, entries: Sequence[TraceEntry]
) -> tuple[Reply, ...] | Failure:
    turns = recorded.turns or ()
    finish = FINISH_OF.get(recorded.stop or "answer", "stop")
    if not turns or any(entry.turn not in range(1, len(turns) + 1) for entry in entries):
        whole = Reply(
            text=recorded.model_output,
            calls=tuple(entries) or None,
            reasoning=recorded.reasoning,
            finish=finish,
            ends=True,
            ordered=False,
            then_said=tuple(said.text for said in recorded.said) or None,
        )
        return (whole,)
    texts = _texts_of(recorded.model_output, turns)
    if texts is None:
        return Failure("the recorded turns are not the ranges that make up model_output")
    return tuple(
        Reply(
            text=text,
            calls=tuple(entry for entry in entries if entry.turn == turn) or None,
            reasoning=recorded.reasoning if turn == 1 else "",
            finish=finish if turn == len(turns) else "stop",
            ends=turn == len(turns),
            then_said=_said_after(recorded, turn) if turn < len(turns) else None,
        )
        for turn, text in enumerate(texts, start=1)
    )


def _texts_of(output: str, turns: Sequence[ByteRange]) -> list[str] | None:
    """The text of every turn; None if the ranges overlap or leave out something that was said."""
    data = output.encode("utf-8", "surrogatepass")
    covered = 0
    gaps = b""
    for turn in turns:
        if turn.start < covered:
            return None
        gaps += data[covered : turn.start]
        covered = turn.end
    if (gaps + data[covered:]).strip():
        return None
    return [data[turn.start : turn.end].decode("utf-8", "replace") for turn in turns]


def _said_after(recorded: RecordedAnswer, turn: int) -> tuple[str, ...]:
    return tuple(said.text for said in recorded.said if said.turn == turn)


_UNSERVED = ("miss", "wrong_call")


def _as_recorded(entry: TraceEntry, keep_verdict: bool) -> TraceEntry:
    return msgspec.structs.replace(
        entry,
        served_by=RECORDED if entry.served or entry.status in _UNSERVED else None,
        schema_errors=entry.schema_errors if keep_verdict else None,
    )


def _after_prompt(messages: Sequence[Message], prompt: Sequence[Message]) -> Sequence[Message]:
    """What follows the sample's prompt, which may hold earlier assistant turns itself."""
    if len(messages) > len(prompt) and all(
        (message.get("role"), message.get("content")) == (known.get("role"), known.get("content"))
        for message, known in zip(messages, prompt, strict=False)
    ):
        return messages[len(prompt) :]
    return split_prompt(messages)[1]


def _turn(recording: tuple[Reply, ...] | Failure, turn: int) -> Reply | Failure:
    if isinstance(recording, Failure):
        return recording
    if turn > len(recording):
        return Failure(f"the recording has {len(recording)} turns, turn {turn} was asked for")
    return recording[turn - 1]


def _key(conversation: Conversation) -> tuple[str, int]:
    return conversation.sample_id, conversation.trial
