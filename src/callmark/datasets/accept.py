"""Accepting: what was merely observed becomes what is right. Rejecting: it is expected no more.
Removing: it is asked no more."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from callmark.datasets.reader import Item, find_header, header_fields, open_dataset
from callmark.datasets.seal import DATASET, sealed_line
from callmark.errors import UsageError
from callmark.records.jsontext import want_object
from callmark.records.problems import hint
from callmark.records.samples import (
    NO_ANSWER,
    NOT_ASKED,
    PROVIDER_CALLS,
    UNANSWERED,
    asks_nothing,
    sample_id_of,
)
from callmark.store.files import (
    Line,
    atomic_writer,
    check_writable,
    is_blank,
    lines_of,
    object_of,
    open_input,
)

# What `dataset import` puts down of a recording that shows less than there was.
_MARKS = (UNANSWERED, NO_ANSWER, NOT_ASKED, PROVIDER_CALLS)
# What `dataset import` puts down because it was observed.
_OBSERVED = ("observed", "call_sequence", "call_match", "required_facts", NO_ANSWER)


class Acceptance(msgspec.Struct, frozen=True):
    """How many samples were accepted and rejected, and how many are still merely observed. `holes`,
    `silent` and `unasked` of these were to be accepted too, but the log lacks the result of a call
    of theirs, an answer after the last result, or what was asked; in those of `cut` the user spoke
    out of turn, in those of `provided` the model's provider ran a tool of its own."""

    accepted: int
    rejected: int
    left: int
    holes: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()
    unasked: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    provided: tuple[str, ...] = ()
    removed: int = 0


Judge = Callable[[Item], Item | None]  # None: the line is left out


def accept_item(item: Item) -> Item:
    """The item with what was observed as what is right. Where no call was made, none is right."""
    metadata = dict(want_object(item.get("metadata")))
    if not metadata.pop("observed", None):
        return item
    metadata.pop(NO_ANSWER, None)  # who accepts it wants an answer there
    metadata.pop(NOT_ASKED, None)
    metadata.pop(PROVIDER_CALLS, None)
    if not metadata.get("call_sequence"):
        metadata.pop("call_sequence", None)
        given = metadata.get("checks") or []
        checks = given if isinstance(given, list) else [given]
        metadata["checks"] = [*checks, {"calls_at_most": 0}]
    return {**item, "metadata": metadata}


def is_incomplete(item: Item) -> bool:
    """Whether the log that the item comes from lacks the result of a call, an answer after the last
    one, or what was asked, be it that `user_turns` cannot ask it. Nobody can build an answer on the
    first, of the second its own recording has none, and no model can be asked the third, so the
    item stays what was observed, unless somebody accepts it by name. So does one in which the
    provider ran a tool of its own: that no call was made says nothing there."""
    metadata = want_object(item.get("metadata"))
    marked = any(metadata.get(name) for name in _MARKS)
    return marked or asks_nothing(item.get("prompt"))


def reject_item(item: Item) -> Item:
    """The item without what was observed: it is asked, and expects nothing."""
    metadata = want_object(item.get("metadata"))
    if not metadata.get("observed"):
        return item
    kept = {name: value for name, value in metadata.items() if name not in _OBSERVED}
    return {**item, "metadata": kept}


def remove_item(_: Item) -> None:
    """Neither asked nor expected."""


def accept_observed(
    dataset: Path,
    ids: Collection[str] | None = None,
    out: Path | None = None,
    *,
    rejected: Collection[str] = (),
    removed: Collection[str] = (),
) -> Acceptance:
    """Writes the dataset to `out`, or in its own place, with the samples of these ids accepted;
    None: all that are merely observed, not `rejected`, not `removed` and not incomplete. Other
    lines stay as they are, byte for byte; a header that pins the items pins the new ones."""
    refused, gone = frozenset(rejected), frozenset(removed)
    with open_dataset(dataset) as opened:
        _check_removed(dataset, gone, opened.ids())
        samples = (one for one in opened.samples() if one.sample_id not in gone)
        seen = [one for one in samples if one.expectation.observed]
    observed = [one.sample_id for one in seen]
    left = [one for one in seen if ids is None and one.sample_id not in refused]
    holes = tuple(one.sample_id for one in left if one.metadata.get(UNANSWERED))
    silent = tuple(one.sample_id for one in left if one.metadata.get(NO_ANSWER))
    unasked = tuple(one.sample_id for one in left if asks_nothing(one.prompt))
    cut = tuple(one.sample_id for one in left if one.metadata.get(NOT_ASKED))
    provided = tuple(one.sample_id for one in left if one.metadata.get(PROVIDER_CALLS))
    without = {*refused, *holes, *silent, *unasked, *cut, *provided}
    chosen = frozenset({*observed} - without if ids is None else ids)
    unknown = sorted((chosen | refused).difference(observed))
    if unknown:
        what = "expects nothing that was merely observed, or is not there"
        raise UsageError(f"{dataset}: {unknown[0]!r} {what}{hint(unknown[0], observed)}")
    if both := sorted(chosen & refused):
        raise UsageError(f"{dataset}: {both[0]!r} is accepted and rejected at once")
    judged: dict[str, Judge] = dict.fromkeys(chosen, accept_item)
    judged |= dict.fromkeys(refused, reject_item)
    still = len(observed) - len(judged)
    judged |= dict.fromkeys(gone, remove_item)
    target = out or dataset
    check_writable(target)
    header = _header_of(dataset)
    hasher = hashlib.sha256()
    for data in _body(dataset, judged, header):
        hasher.update(data)
    with atomic_writer(target) as stream:
        if header is not None:
            is_pinned = DATASET in header_fields(header[1])
            stream.write(sealed_line(*header, {DATASET: hasher.hexdigest()} if is_pinned else {}))
        for data in _body(dataset, judged, header):
            stream.write(data)
    numbers = (len(chosen), len(refused), still)
    return Acceptance(*numbers, holes, silent, unasked, cut, provided, len(gone))


def _check_removed(dataset: Path, gone: Collection[str], ids: Iterable[str]) -> None:
    known = list(ids)
    if unknown := sorted(set(gone).difference(known)):
        told = f"is no sample of it{hint(unknown[0], known)}"
        raise UsageError(f"{dataset}: {unknown[0]!r} {told}")
    if len(set(gone)) == len(known):
        raise UsageError(f"{dataset}: without these samples nothing is left of it")


def _header_of(dataset: Path) -> tuple[Line, Item] | None:
    with open_input(dataset) as stream:
        return find_header(stream, str(dataset))


def _body(
    dataset: Path, judged: Mapping[str, Judge], header: tuple[Line, Item] | None
) -> Iterator[bytes]:
    with open_input(dataset) as stream:
        for line in lines_of(stream, str(dataset)):
            if header is not None and line.number <= header[0].number:
                continue
            item = None if is_blank(line.json) else object_of(line.json)
            judge = None if item is None else judged.get(sample_id_of(item))
            if item is None or judge is None:
                yield line.data
            elif (made := judge(item)) is not None:
                yield json.dumps(made, ensure_ascii=False).encode() + b"\n"
