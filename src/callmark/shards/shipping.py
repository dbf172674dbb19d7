"""Inputs of a run on their way to other machines: named by what they hold, kept where they land.

A file or a folder becomes a bundle: its files with their hashes. Whoever has a bundle of that name
already needs no byte of it."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from callmark.config import RunConfig
from callmark.errors import BadInput, OutputFailed
from callmark.records.jsontext import digest
from callmark.runners.options import SERVED
from callmark.shards.engine import Plan

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
