"""The shipped model, 64 prompts with one tool prefix: in batches, in units of one at a time."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

import callmark
from callmark.api import builtin_registry
from callmark.datasets.reader import open_dataset
from callmark.records.results import Decoding
from callmark.records.seams import Conversation, Reply
from callmark.run.loop import drive_at_once
from callmark.runners.hf.local import LocalRunner, open_local
from callmark.runners.options import RunnerOptions

SHIPPED = Path(callmark.__file__).parent / "data" / "tiny"
PROMPTS = 64
ROUNDS = 3
BOUND = 2.5


def rows(folder: Path = SHIPPED) -> list[tuple[str, str, str]]:
    """(what, ratio, bound): CPU time, the best of several rounds that take turns."""
    asked = conversations(folder)
    together, alone = [], []
    with ready_runner(folder) as runner:
        for _ in range(ROUNDS):
            seconds, batched = timed(runner, [asked])
            together.append(seconds)
            seconds, single = timed(runner, [[one] for one in asked])
            alone.append(seconds)
            if batched != single:
                sys.exit("bench.local: a batch changed an answer")
    ratio = min(alone) / min(together)
    what = f"{PROMPTS} prompts in batches ÷ one at a time (tokens per CPU s)"
    return [(what, f"{ratio:.2f}", f">= {BOUND:g}")]


def conversations(folder: Path, count: int = PROMPTS) -> list[Conversation]:
    """The first turns of the held-out dataset, all with the same tools."""
    registry = builtin_registry()
    made = []
    with open_dataset(folder / "dataset.jsonl") as dataset:
        for sample in dataset.samples():
            tools = registry.openai_tools(sorted(sample.expectation.tools or registry.names))
            asked: list[dict[str, Any]] = [{"role": "user", "content": sample.prompt}]
            made.append(
                Conversation(
                    sample_id=sample.sample_id, trial=0, turn=1, messages=asked, tools=tools
                )
            )
    return made[:count]


@contextmanager
def ready_runner(folder: Path) -> Iterator[LocalRunner]:
    registry = builtin_registry()
    options = RunnerOptions(
        model=str(folder / "model"),
        decoding=Decoding(max_tokens=128),
        tool_registry_sha256=registry.sha256,
        tools=tuple(registry.openai_tools(sorted(registry.names))),
    )
    with open_local(options) as runner:
        drive_at_once(runner.ready())
        yield runner


def timed(
    runner: LocalRunner, batches: Sequence[Sequence[Conversation]]
) -> tuple[float, list[Reply]]:
    started = time.process_time()
    replies = [reply for batch in batches for reply in drive_at_once(runner.answer(batch))]
    spent = time.process_time() - started
    answered = [reply for reply in replies if isinstance(reply, Reply)]
    assert len(answered) == len(replies)
    return spent, [msgspec.structs.replace(reply, seconds=None) for reply in answered]
