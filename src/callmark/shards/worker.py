"""The process of one shard: `python -m callmark.shards.worker`, started by the local engine.

The task comes on standard input, which then stays open: a byte means that it should end, its end
that the driver is gone. Messages leave on what was standard output; prints go to stderr."""

from __future__ import annotations

import os
import signal
import struct
import sys
import threading

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
    from callmark.shards.messages import Message, decode_task, encode_message
    from callmark.shards.playing import play_or_fail

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
