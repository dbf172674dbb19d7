"""Which conversations of a source become samples: no near-duplicates, and so many of each kind."""

from __future__ import annotations

import hashlib
import heapq
from collections.abc import Iterator, Sequence

import msgspec

from callmark.datasets.importing.conversation import opening_length
from callmark.datasets.importing.desk import Imported, Notes, Object
from callmark.records.jsontext import Json, canonical_json, parse_json, want_list, want_object
from callmark.records.samples import NOT_RECORDED
from callmark.runners.messages import replies_of, text_of

_SHINGLE = 5  # words that a run has
_SKETCH = 128  # hashes that a conversation is known by
_LOOKED_UP = 8  # of them; two that are alike share one of so many, but for one in a million
_NEAR = 16  # conversations that one hash leads to
_ALIKE = 0.8  # the share of runs that two have in common
_SEPARATOR = "\x1f"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """`answered`: only what has an answer, and each answer tells all that it is scored by.
    `sample`: so many conversations at most, chosen by `seed`; None: all."""

    answered: bool = False
    dedupe: bool = False
    sample: int | None = None
    seed: int = 0


ALL = Choice()


class NearDuplicates:
    """Knows every conversation by the smallest hashes of its runs of words, so that finding one
    that is nearly the same costs no more however many there were; and by what was asked, called and
    returned in it: a short answer in other words shares few runs."""

    def __init__(self, notes: Notes) -> None:
        self._notes = notes
        self._near: dict[int, list[int]] = {}
        self._done: dict[int, str] = {}  # what was done → the first sample in which it was
        self._sketches: list[tuple[int, ...]] = []
        self._ids: list[str] = []

    def is_new(self, entry: Imported) -> bool:
        sketch, done = _sketch(list(_words_of(entry))), _deeds_of(entry)
        first = self._first_like(entry.sample_id, sketch, done)
        if first is not None:
            self._notes.add("near_duplicate", entry.line, f"{entry.sample_id} is like {first}")
            return False
        for one in sketch[:_LOOKED_UP]:
            near = self._near.setdefault(one, [])
            if len(near) < _NEAR:
                near.append(len(self._sketches))
        self._sketches.append(sketch)
        self._ids.append(entry.sample_id)
        if done is not None:
            self._done.setdefault(done, entry.sample_id)
        return True

    def _first_like(self, sample_id: str, sketch: tuple[int, ...], done: int | None) -> str | None:
        same = sample_id if done is None else self._done.get(done, sample_id)
        if same != sample_id:  # a further trial of a sample asks the same on purpose
            return same
        near = {at for one in sketch[:_LOOKED_UP] for at in self._near.get(one, ())}
        alike = (at for at in sorted(near) if _likeness(sketch, self._sketches[at]) >= _ALIKE)
        return next((self._ids[at] for at in alike), None)


def _deeds_of(entry: Imported) -> int | None:
    """What was asked, called and returned, whatever the model said about it. None: nobody knows
    what was asked, and nothing was done, or nothing of it is recorded."""
    held, prompt = _held(entry), entry.item.get("prompt")
    if held is None:
        return None
    messages = [want_object(one) for one in want_list(held)]
    calls = [list(_calls_of(message)) for message in messages]
    has_calls = any(calls)
    given = len(prompt) if isinstance(prompt, list) else opening_length(messages)
    spoken = [at for at, one in enumerate(messages) if one.get("role") == "assistant"]
    parts: list[Json] = []
    for at, message in enumerate(messages):
        role, content = message.get("role"), message.get("content")
        # Who makes no call as a call may have written it into a text; the last one is the answer.
        may_call = not has_calls and at not in spoken[-1:]
        counts = at < given or role != "assistant" or may_call
        if role != "system" and (counts or calls[at]):
            # What is no text, such as an image, is asked as well.
            said = content if isinstance(content, list) else text_of(content)
            parts.append([role, said if counts else "", calls[at]])
    if not has_calls and ["user", NOT_RECORDED, []] in parts:
        return None
    return _number(canonical_json(parts))


def _calls_of(message: Object) -> Iterator[Json]:
    """Name and arguments, whatever blanks these are written with."""
    older = message.get("function_call")
    for call in want_list(message.get("tool_calls") or ([older] if older else [])):
        function = want_object(want_object(call).get("function") or call)
        arguments = function.get("arguments")
        try:
            read = parse_json(arguments) if isinstance(arguments, str) else arguments
        except ValueError:
            read = arguments
        yield [function.get("name"), read]


def _held(entry: Imported) -> Json:
    return want_object(entry.answer).get("messages") if entry.answer is not None else None


def _words_of(entry: Imported) -> Iterator[str]:
    """What was said, called and returned. A system message is the same for everybody."""
    held, prompt = _held(entry), entry.item.get("prompt")
    given = held if held is not None else prompt
    if isinstance(given, str):
        yield from given.split()
        return
    for message in map(want_object, want_list(given)):
        if message.get("role") == "system":
            continue
        yield from text_of(message.get("content")).split()
        for call in want_list(message.get("tool_calls") or []):
            function = want_object(want_object(call).get("function") or call)
            yield str(function.get("name"))
            yield from str(function.get("arguments")).split()


def _sketch(words: Sequence[str]) -> tuple[int, ...]:
    runs = range(max(1, len(words) - _SHINGLE + 1))
    hashes = {_number(_SEPARATOR.join(words[at : at + _SHINGLE])) for at in runs}
    return tuple(heapq.nsmallest(_SKETCH, hashes))


def _likeness(one: Sequence[int], other: Sequence[int]) -> float:
    """Of the smallest hashes of both together, the share that both have."""
    both = set(one) & set(other)
    smallest = heapq.nsmallest(_SKETCH, set(one) | set(other))
    return sum(mark in both for mark in smallest) / len(smallest)


def _number(text: str) -> int:
    data = text.encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


class StrataSample:
    """Sees every conversation once, then says which of them are taken: those with the smallest
    hashes, in turn from every set of tools that occurs, so that a rare tool is not lost."""

    def __init__(self, wanted: int, seed: int) -> None:
        self._wanted = wanted
        self._seed = seed
        self._strata: dict[tuple[str, ...], list[tuple[int, int]]] = {}

    def see(self, number: int, entry: Imported) -> None:
        heap = self._strata.setdefault(_tools_of(entry), [])
        key = _number(_SEPARATOR.join((str(self._seed), entry.sample_id, str(entry.trial))))
        if len(heap) < self._wanted:
            heapq.heappush(heap, (-key, -number))
        else:
            heapq.heappushpop(heap, (-key, -number))

    def chosen(self) -> frozenset[int]:
        waiting = [sorted(self._strata[name], reverse=True) for name in sorted(self._strata)]
        rounds = max(map(len, waiting), default=0)
        order = [one[at] for at in range(rounds) for one in waiting if at < len(one)]
        return frozenset(-number for _, number in order[: self._wanted])


def _tools_of(entry: Imported) -> tuple[str, ...]:
    messages: list[Object] = [want_object(one) for one in want_list(_held(entry) or [])]
    calls = (call for reply in replies_of(messages) for call in reply.calls or ())
    return tuple(sorted({call.name for call in calls if call.name}))
