"""The engine `ray`: shards as tasks on a Ray cluster, or on one that is started for the run.

Ray's own retries are off: it would begin a lost shard anew, while the driver knows which of its
trials are finished and asks only for the others.

Inputs are shipped to the other machines as bundles, files with their hashes, named by what they
hold: whoever has a bundle of that name already needs no byte of it."""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.util import find_spec
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import msgspec

from callmark.config import RunConfig
from callmark.errors import BadInput, CallmarkError, Incomplete, MissingExtra, OutputFailed
from callmark.records.jsontext import digest
from callmark.runners.options import SERVED
from callmark.shards.engine import (
    Event,
    Failed,
    Lines,
    LostShard,
    Message,
    Plan,
    Saw,
    Task,
    decode_message,
    decode_plan,
    decode_task,
    encode_message,
    encode_plan,
    encode_task,
    play_or_fail,
)

# Settings that name a file or a folder which whoever plays a shard reads.
INPUTS = (
    "fixtures",
    "registry",
    "allowlist",
    "prompt_wrapper",
    "response_template",
    "faults",
    "model",
    "adapter",
)
PART_BYTES = 1 << 26

Put = Callable[[bytes], object]  # gives a part of a file away, and a handle on it
Get = Callable[[object], bytes]


class ShippedFile(msgspec.Struct, frozen=True):
    place: str  # below the bundle
    sha256: str
    parts: tuple[object, ...]


class Bundle(msgspec.Struct, frozen=True):
    """`name`: what the file or folder itself is called."""

    name: str
    sha256: str
    files: tuple[ShippedFile, ...]


class Shipment(msgspec.Struct, frozen=True):
    dataset: Bundle
    inputs: dict[str, Bundle]
    plugins: tuple[Bundle, ...] = ()


def ship(plan: Plan, put: Put) -> Shipment:
    return Shipment(
        _bundle(Path(plan.dataset.path), put),
        {name: _bundle(path, put) for name, path in _inputs_of(plan.config)},
        tuple(_bundle(Path(path), put) for path in plan.config.plugins),
    )


def unpack(plan: Plan, shipment: Shipment, get: Get) -> Plan:
    """The same plan, about the files as they lie on this machine."""
    store = _store()
    paths = {name: str(_unpack(store, bundle, get)) for name, bundle in shipment.inputs.items()}
    dataset = str(_unpack(store, shipment.dataset, get))
    plugins = tuple(str(_unpack(store, bundle, get)) for bundle in shipment.plugins)
    return msgspec.structs.replace(
        plan,
        config=msgspec.structs.replace(plan.config, **paths, plugins=plugins),
        dataset=msgspec.structs.replace(plan.dataset, path=dataset),
    )


def _inputs_of(config: RunConfig) -> Iterator[tuple[str, Path]]:
    for name in INPUTS:
        given = getattr(config, name)
        if given is None or (name == "model" and config.runner in SERVED):
            continue
        if Path(given).exists():  # else the runner knows what the name means
            yield name, Path(given)


def _bundle(path: Path, put: Put) -> Bundle:
    folder = path if path.is_dir() else path.parent
    found = sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]
    files = tuple(_ship(one, str(one.relative_to(folder)), put) for one in found)
    name = path.resolve().name
    content = {"name": name, "folder": path.is_dir()}
    listed = [[file.place, file.sha256] for file in files]
    return Bundle(name, digest({**content, "files": listed}), files)


def _ship(path: Path, place: str, put: Put) -> ShippedFile:
    hasher = hashlib.sha256()
    parts = []
    try:
        with path.open("rb") as stream:
            while data := stream.read(PART_BYTES):
                hasher.update(data)
                parts.append(put(data))
    except OSError as error:
        raise BadInput(f"{path}: cannot be read: {error.strerror}") from None
    return ShippedFile(place, hasher.hexdigest(), tuple(parts))


def _store() -> Path:
    """A folder of this user alone: nobody else may lay anything there."""
    store = Path(tempfile.gettempdir()) / f"callmark-inputs-{os.getuid()}"
    store.mkdir(mode=0o700, exist_ok=True)
    status = store.lstat()
    if status.st_uid != os.getuid() or status.st_mode & 0o077:
        raise OutputFailed(f"{store}: belongs to somebody else; let TMPDIR name another folder")
    return store


def _unpack(store: Path, bundle: Bundle, get: Get) -> Path:
    target = store / bundle.sha256
    if not target.is_dir():
        made = Path(tempfile.mkdtemp(dir=store))
        try:
            _write_files(made / bundle.name, bundle, get)
            _move(made, target)
        finally:
            shutil.rmtree(made, ignore_errors=True)
    return target / bundle.name


def _write_files(root: Path, bundle: Bundle, get: Get) -> None:
    is_file = len(bundle.files) == 1 and bundle.files[0].place == bundle.name
    if not is_file:
        root.mkdir()
    for file in bundle.files:
        path = root if is_file else root / file.place
        path.parent.mkdir(parents=True, exist_ok=True)
        hasher = hashlib.sha256()
        with path.open("wb") as stream:
            for part in file.parts:
                data = get(part)
                hasher.update(data)
                stream.write(data)
        if hasher.hexdigest() != file.sha256:
            raise BadInput(f"{file.place}: did not arrive as it was sent: run it again")


def _move(made: Path, target: Path) -> None:
    try:
        made.rename(target)
    except OSError:
        if not target.is_dir():  # else another shard was faster, with the same files
            raise


KNOCK_SECONDS = 10.0


class RayEngine:
    def __init__(self, config: RunConfig) -> None:
        if find_spec("ray") is None:
            raise MissingExtra("--engine ray", "ray")
        self._cpus = 1.0 if config.num_cpus is None else config.num_cpus
        self._gpus = config.num_gpus or 0.0
        self._streams: dict[int, Any] = {}  # shard -> the generator of its messages
        self._shipment: Shipment | None = None
        self._is_ours = False  # whether the connection is

    def default_shards(self) -> int:
        there = _ray().cluster_resources()
        by_cpu = there.get("CPU", 1) // self._cpus if self._cpus else 1
        by_gpu = there.get("GPU", 0) // self._gpus if self._gpus else by_cpu
        return max(1, int(min(by_cpu, by_gpu)))

    def start(self, task: Task) -> None:
        ray = _ray()
        if self._shipment is None:
            self._shipment = ship(decode_plan(task.plan), ray.put)
        remote = ray.remote(
            num_cpus=self._cpus, num_gpus=self._gpus, max_retries=0, num_returns="streaming"
        )(played_remotely)
        self._streams[task.shard] = remote.remote(encode_task(task), self._shipment)

    def events(self, seconds: float) -> Sequence[tuple[int, Event]]:
        streams = {stream: shard for shard, stream in self._streams.items()}
        if not streams:
            return []
        ready, _ = _ray().wait(list(streams), num_returns=1, timeout=seconds)
        found = [(streams[stream], _next(stream)) for stream in ready]
        for shard, event in found:
            if not isinstance(event, Lines | Saw):
                del self._streams[shard]
        return found

    def stop(self) -> None:
        # A task that only hears of it would go on until its answer is there.
        for stream in self._streams.values():
            _ray().cancel(stream, force=True)

    def __enter__(self) -> Self:
        if not _ray().is_initialized():
            self._is_ours = True
            _connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
        self._streams.clear()
        if self._is_ours:
            _ray().shutdown()


def _ray() -> Any:
    import ray

    return ray


def _connect() -> None:
    """To the cluster that RAY_ADDRESS names; else to one that lives as long as this run."""
    ray = _ray()
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    try:
        if address := os.environ.get("RAY_ADDRESS"):
            _knock_at(address)
            ray.init(**quiet)
            return
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        ray.init("local", include_dashboard=False, _node_ip_address="127.0.0.1", **quiet)
    except (OSError, ValueError) as error:
        address = os.environ.get("RAY_ADDRESS", "a cluster of its own")
        raise Incomplete(
            f"--engine ray: no connection to {address}: {error};"
            " start the cluster, or set RAY_ADDRESS to one that runs"
        ) from None


def _knock_at(address: str) -> None:
    """Ray itself goes on trying for minutes where nobody answers."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():  # and not `auto`
        socket.create_connection((host, int(port)), KNOCK_SECONDS).close()


def _next(stream: Any) -> Event:
    ray = _ray()
    try:
        return decode_message(ray.get(next(stream)))
    except StopIteration:
        return LostShard("its task ended without a word")
    except ray.exceptions.RayError as error:
        first, *_ = [*str(error).strip().splitlines(), type(error).__name__]  # some say nothing
        return LostShard(f"Ray says: {first}")


def played_remotely(data: bytes, shipment: Shipment) -> Iterator[bytes]:
    """The task: the messages of one shard, while it is played in another thread."""
    messages: SimpleQueue[Message | BaseException | None] = SimpleQueue()
    thread = threading.Thread(target=_play, args=(data, shipment, messages), daemon=True)
    thread.start()
    while (message := messages.get()) is not None:
        if isinstance(message, BaseException):
            raise message
        yield encode_message(message)


def _play(
    data: bytes, shipment: Shipment, messages: SimpleQueue[Message | BaseException | None]
) -> None:
    try:
        task = decode_task(data)
        plan = unpack(decode_plan(task.plan), shipment, _ray().get)
        play_or_fail(msgspec.structs.replace(task, plan=encode_plan(plan)), messages.put)
    except CallmarkError as error:
        messages.put(Failed(error.exit_code, str(error)))
    except BaseException as error:
        messages.put(error)  # raised again where Ray sees it
    messages.put(None)
