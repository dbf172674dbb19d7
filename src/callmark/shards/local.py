"""The engine `local`: one process on this machine for each shard."""

from __future__ import annotations

import os
import selectors
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

import callmark
from callmark.errors import Incomplete
from callmark.shards.engine import Event, Lines, LostShard, Saw, Task, decode_message, encode_task
from callmark.store.streams import keep_streams

LENGTH = struct.Struct("<Q")


def main() -> int:
    out = os.dup(1)
    os.dup2(2, 1)
    keep_streams()
    data = _task_from(0)
    if data is None:
        return 1
    threading.Thread(target=_watch_driver, daemon=True).start()
    # Heavy imports only now: the driver does not wait for them while it hands out tasks.
    from callmark.shards.engine import Message, decode_task, encode_message, play_or_fail

    def send(message: Message) -> None:
        encoded = encode_message(message)
        _write(out, LENGTH.pack(len(encoded)) + encoded)

    try:
        play_or_fail(decode_task(data), send)
    except KeyboardInterrupt:
        return 1
    return 0


def _task_from(fd: int) -> bytes | None:
    head = _read(fd, LENGTH.size)
    return None if head is None else _read(fd, LENGTH.unpack(head)[0])


def _read(fd: int, size: int) -> bytes | None:
    parts = []
    while size:
        part = os.read(fd, min(size, 1 << 20))
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _watch_driver() -> None:
    if os.read(0, 1):
        # A real signal, not a flag: it also wakes a thread that waits for a server.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    sys.exit(main())


_WORKER = (sys.executable, "-P", "-m", "callmark.shards.local")
_READ = 1 << 20
_PACKAGES = str(Path(callmark.__file__).parents[1])


class LocalEngine:
    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._workers: dict[int, _Worker] = {}

    def default_shards(self) -> int:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else _cores()

    def start(self, task: Task) -> None:
        try:
            worker = _Worker(task.shard)
        except OSError as error:
            raise Incomplete(
                f"--engine local: no process could be started for shard {task.shard} of"
                f" {task.num_shards}: {error.strerror}; what is finished is kept: try again with"
                " fewer --num-shards"
            ) from None
        self._workers[task.shard] = worker
        self._selector.register(worker.out, selectors.EVENT_READ, worker)
        worker.send(task)

    def events(self, seconds: float) -> Sequence[tuple[int, Event]]:
        found: list[tuple[int, Event]] = []
        for key, _ in self._selector.select(seconds):
            worker: _Worker = key.data
            events = worker.received()
            found += ((worker.shard, event) for event in events)
            if events and not isinstance(events[-1], Lines | Saw):
                self._selector.unregister(worker.out)
                del self._workers[worker.shard]
                worker.end()
        return found

    def stop(self) -> None:
        for worker in self._workers.values():
            worker.ask_to_end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers.values():
            worker.end()
        self._workers.clear()
        self._selector.close()


class _Worker:
    """A process, and what came from it that is not a whole message yet."""

    def __init__(self, shard: int) -> None:
        self.shard = shard
        paths = (_PACKAGES, os.environ.get("PYTHONPATH"))
        self._process = subprocess.Popen(  # noqa: S603 - our own module, by our own interpreter
            _WORKER,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            # Ctrl-C is for the driver: it asks the workers to end.
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        )
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        self._in = self._process.stdin.fileno()
        self.out = self._process.stdout.fileno()
        self._buffer = bytearray()

    def send(self, task: Task) -> None:
        data = encode_task(task)
        self._write(LENGTH.pack(len(data)) + data)

    def ask_to_end(self) -> None:
        self._write(b"!")

    def received(self) -> list[Event]:
        data = os.read(self.out, _READ)
        if not data:
            return [LostShard(_why(self._process.wait()))]
        self._buffer += data
        found: list[Event] = []
        at = 0
        while len(self._buffer) >= at + LENGTH.size:
            start = at + LENGTH.size
            end = start + LENGTH.unpack_from(self._buffer, at)[0]
            if len(self._buffer) < end:
                break
            found.append(decode_message(bytes(self._buffer[start:end])))
            at = end
        del self._buffer[:at]
        return found

    def end(self) -> None:
        """By force: whatever it would still tell is not wanted."""
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()

    def _write(self, data: bytes) -> None:
        view = memoryview(data)
        # One that is gone is noticed where its messages are read.
        with suppress(BrokenPipeError):
            while view:
                view = view[os.write(self._in, view) :]


def _cores() -> int:
    return os.cpu_count() or 1


def _why(code: int) -> str:
    if code >= 0:
        return f"its process ended with exit code {code}"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hint = " (was there enough memory?)" if name == "SIGKILL" else ""
    return f"its process was ended by {name}{hint}"
