"""Sealing: the header says by hash which items, tools and fixtures belong together."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import BinaryIO

import msgspec

from callmark.datasets.reader import Dataset, Item, find_header, header_fields
from callmark.datasets.schema import HEADER_KEY
from callmark.errors import BadInput, FingerprintMismatch, UsageError
from callmark.records.jsontext import Json
from callmark.records.problems import show_value
from callmark.store.files import Line, atomic_writer, check_writable, open_input

DATASET = "dataset_sha256"
_BOM = b"\xef\xbb\xbf"
_BLOCK = 1 << 20


class SealPin(msgspec.Struct, frozen=True):
    """One fingerprint: what the header had, and what was computed. `found` None: not computed,
    so what the header had stays."""

    name: str
    had: Json
    found: str | None

    @property
    def differs(self) -> bool:
        return self.found is not None and self.had != self.found


class Seal(msgspec.Struct, frozen=True):
    """What sealing finds out before it writes anything."""

    dataset: str
    has_header: bool
    place: str  # of the header, or the file where there is none
    pins: tuple[SealPin, ...]

    @property
    def changes(self) -> dict[str, str]:
        return {pin.name: pin.found for pin in self.pins if pin.found is not None and pin.differs}


def examine_seal(opened: Dataset, computed: Mapping[str, str | None]) -> Seal:
    """`computed`: the hashes of tools and fixtures, None where nobody named them."""
    dataset, sha256 = Path(opened.name), opened.sha256
    if not dataset.is_file():
        raise UsageError(f"{dataset}: must be a file, which can be read twice and replaced")
    header, start = _header_and_body(dataset)
    if header is None and start:
        sha256 = _copy(dataset, start, None)  # the mark goes: a header will stand before it
    has = {} if header is None else header_fields(header[1])
    found = {DATASET: sha256, **computed}
    pins = tuple(SealPin(name, has.get(name), value) for name, value in found.items())
    place = str(dataset) if header is None else opened.header_place
    return Seal(str(dataset), header is not None, place, pins)


def check_seal(seal: Seal) -> None:
    """Raises unless the header pins exactly what was computed. What it pins but nobody computed
    cannot pass."""
    unchecked = [pin.name for pin in seal.pins if pin.found is None and pin.had is not None]
    if unchecked:
        raise UsageError(
            f"--check: {seal.dataset} pins {', '.join(unchecked)}: name the folder with --fixtures"
        )
    if seal.changes:
        differing = (
            f"{pin.name}: the header has {shown_pin(pin.had)}, computed {pin.found}"
            for pin in seal.pins
            if pin.differs
        )
        raise FingerprintMismatch(
            f"{seal.place}: is not sealed with what is here:\n  "
            + "\n  ".join(differing)
            + "\nIf the change is meant, seal it again without --check."
        )


def write_seal(seal: Seal, out: Path | None = None) -> bool:
    """Writes the dataset with its pins to `out`, or in its own place; False: nothing to change.
    All bytes but the header's stay as they are."""
    dataset = Path(seal.dataset)
    target = out or dataset
    if not seal.changes and target.absolute() == dataset.absolute():
        return False
    check_writable(target)
    header, start = _header_and_body(dataset)
    expected = next(pin.found for pin in seal.pins if pin.name == DATASET)
    with atomic_writer(target) as sealed:
        if header is None:
            sealed.write(_encode({HEADER_KEY: True, **seal.changes}) + b"\n")
        else:
            line, item = header
            with open_input(dataset) as stream:
                sealed.write(stream.read(line.offset))
            sealed.write(sealed_line(line, item, seal.changes))
        if _copy(dataset, start, sealed) != expected:
            raise BadInput(f"{dataset}: the file changed while it was sealed: seal it again")
    return True


def shown_pin(value: Json) -> str:
    return "none" if value is None else value if isinstance(value, str) else show_value(value)


def _header_and_body(dataset: Path) -> tuple[tuple[Line, Item] | None, int]:
    """The header, if there is one, and where the bytes begin that it will stand before."""
    with open_input(dataset) as stream:
        header = find_header(stream, str(dataset))
        if header is not None:
            return header, header[0].offset + len(header[0].data)
        stream.seek(0)
        return None, len(_BOM) if stream.read(len(_BOM)) == _BOM else 0


def _copy(dataset: Path, start: int, target: BinaryIO | None) -> str:
    """Copies the bytes from `start` on, if somewhere, and gives their SHA-256."""
    hasher = hashlib.sha256()
    with open_input(dataset) as source:
        source.seek(start)
        while block := source.read(_BLOCK):
            hasher.update(block)
            if target is not None:
                target.write(block)
    return hasher.hexdigest()


def sealed_line(line: Line, header: Item, changes: Mapping[str, str]) -> bytes:
    """The line of a header with other hashes."""
    if not changes:
        return line.data
    mark = header[HEADER_KEY]
    new = {HEADER_KEY: {**mark, **changes}} if isinstance(mark, dict) else changes
    before = _BOM if line.json != line.data else b""
    end = b"\r\n" if line.data.endswith(b"\r\n") else b"\n"
    return before + _encode({**header, **new}) + end


def _encode(header: Item) -> bytes:
    return json.dumps(header, ensure_ascii=False).encode()
