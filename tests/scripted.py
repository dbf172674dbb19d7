"""A runner for tests that plays what a function says, plugged in the way other packages do it."""

import asyncio
from collections.abc import Callable
from contextlib import contextmanager

from callmark.calls.attempts import entry_for, native_call
from callmark.records.seams import Conversation, Failure, Observed, Reply, Runner

Script = Callable[[Conversation], Reply | Failure]


class Scripted(Runner):
    """`seen` holds every conversation that it was asked, `options` what it was opened with."""

    name = "scripted"

    def __init__(self, script: Script, *, suspends: bool = False, max_batch: int = 3) -> None:
        self.script = script
        self.suspends = suspends
        self.max_batch = max_batch
        self.parts = {}
        self.saw = Observed()
        self.not_ready = None
        self.seen: list[Conversation] = []
        self.closed = 0
        self.options = None

    async def answer(self, batch):
        assert len(batch) <= (1 if self.suspends else self.max_batch)
        if self.suspends:
            await asyncio.sleep(0)
        self.seen += [
            # Copied: the loop goes on with the same list.
            Conversation(
                sample_id=one.sample_id,
                trial=one.trial,
                turn=one.turn,
                messages=list(one.messages),
                tools=one.tools,
            )
            for one in batch
        ]
        return [self.script(one) for one in batch]

    async def ready(self):
        if self.not_ready is not None:
            raise self.not_ready

    async def close(self):
        self.closed += 1

    def fingerprint_parts(self):
        return self.parts

    def observed(self):
        return self.saw


def calling(name, arguments, text="") -> Reply:
    return Reply(text=text, calls=(entry_for(native_call(name, arguments), None),))


# By the name of the model that a run asks for; entry points lead to `open_scripted`.
PLUGGED: dict[str, Scripted] = {}


@contextmanager
def open_scripted(options):
    runner = PLUGGED[options.model]
    runner.options = options
    yield runner


def plug(monkeypatch, folder, runner: Scripted, model: str = "the-model") -> dict[str, str]:
    """Makes the runner known as an installed package would, and gives the settings that name it."""
    package = folder / "scripted-1.0.dist-info"
    package.mkdir(exist_ok=True)
    (package / "METADATA").write_text("Metadata-Version: 2.1\nName: scripted\nVersion: 1.0\n")
    (package / "entry_points.txt").write_text(
        "[callmark.runners]\nscripted = tests.scripted:open_scripted\n"
    )
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setitem(PLUGGED, model, runner)
    return {"runner": "scripted", "model": model}
