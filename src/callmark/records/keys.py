"""Which known key was meant by one that is unknown: misspelt, in another style, or misplaced."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache

import msgspec

OWN = "x_"  # a key that starts so is its owner's, and nobody asks what it means
LISTED = 12  # of more known ones a list helps nobody
LONGEST = 80  # a longer one is no slip of the pen
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W_]+")


class KeySet(msgspec.Struct, frozen=True, kw_only=True):
    """The keys that one kind of object knows. `synonyms`: what others call them, by folded name;
    `elsewhere`: keys that are known in another place, and in which; `silent`: known words that are
    so short that half the language is one letter away from them."""

    known: tuple[str, ...]
    synonyms: Mapping[str, str] = {}
    elsewhere: Mapping[str, str] = {}
    silent: frozenset[str] = frozenset()
    names: frozenset[str] = frozenset()  # `known`, to ask quickly

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "names", frozenset(self.known))

    def slip(self, key: str, beside: Collection[str] = ()) -> str | None:
        """What is wrong with an unknown key; None: nothing speaks for a mistake. `beside`: the
        keys of its object, for a synonym is no slip where the word itself stands too."""
        near = tuple(name for name in self.known if name not in self.silent)
        if is_own(key):
            found = meant_key(key, tuple(name for name in near if name.startswith("x-")))
            return None if found is None else did_you_mean(found)
        place = self.elsewhere.get(key)
        if place is not None:
            return f"does nothing here; it belongs in {place}"
        found = meant_key(key, near)
        if found is None:
            found = self.synonyms.get(fold_key(key))
            found = None if found in beside else found
        if found is not None:
            return did_you_mean(found)
        # What is misplaced and misspelt is told by longer words only.
        others = tuple(name for name in self.elsewhere if len(name) > 5)
        found = meant_key(key, others)
        if found is None:
            return None
        return f"does nothing here; did you mean {found} in {self.elsewhere[found]}?"

    def refusal(self, key: str, beside: Collection[str] = ()) -> str:
        """For an object that may hold no other keys: what was meant, or what there is."""
        slip = self.slip(key, beside)
        if slip is not None:
            return slip
        found = related_key(key, self.known)
        if found is not None:
            return did_you_mean(found)
        known = f"; known: {', '.join(self.known)}" if len(self.known) <= LISTED else ""
        return f"unknown key{known}"


def did_you_mean(key: str) -> str:
    return f"unknown key; did you mean {key}?"


def hint(word: str, known: Iterable[str]) -> str:
    """`; did you mean X?`, or nothing: for words that are refused with a list of the right ones."""
    names = tuple(known)
    found = meant_key(word, names) or related_key(word, names)
    return "" if found is None else f"; did you mean {found}?"


def is_own(key: str) -> bool:
    return key.startswith((OWN, "x-"))


@lru_cache(4096)
def meant_key(key: str, known: tuple[str, ...]) -> str | None:
    """The known key within two edits (one, where either has up to five letters), whatever its
    style: `callSequence`, `call-sequences` and `sequence_call` are all `call_sequence`."""
    if len(key) > LONGEST or key in known:
        return None
    folded, words = fold_key(key), sorted(_words(key))
    best: tuple[int, str] | None = None
    for name in known:
        other = fold_key(name)
        if folded == other or words == sorted(_words(name)):
            return name
        limit = 1 if min(len(folded), len(other)) <= 5 else 2
        limit = limit if len(other) > 2 else 0
        edits = edits_between(folded, other, limit)
        if edits is not None and (best is None or edits < best[0]):
            best = edits, name
    return None if best is None else best[1]


def related_key(key: str, known: Sequence[str]) -> str | None:
    """The shortest known key that holds the word or all its parts, or stands in it: `call_f1` of
    `call_f1_macro`, `max_tokens` of `max_new_tokens`. Only a guess: nothing is refused for it."""
    folded, words = fold_key(key), set(_words(key))
    if not 4 <= len(folded) <= LONGEST:
        return None
    related = [
        name
        for name in known
        if len(other := fold_key(name)) >= 4
        and (folded in other or other in folded or words <= set(_words(name)))
    ]
    return min(related, key=len, default=None)


def fold_key(key: str) -> str:
    """Letters and digits without case: what a key is, whatever joins its words."""
    return "".join(_words(key[: LONGEST + 1]))


def _words(key: str) -> list[str]:
    return [word.casefold() for word in _WORD.findall(key)]


def edits_between(one: str, other: str, most: int) -> int | None:
    """How many letters are wrong, missing, too many or swapped with their neighbour; None: more
    than `most`."""
    if abs(len(one) - len(other)) > most:
        return None
    before, row = list[int](), list(range(len(other) + 1))
    for at, letter in enumerate(one, start=1):
        two_before, before, row = before, row, [at]
        for to, wanted in enumerate(other, start=1):
            cost = min(row[to - 1] + 1, before[to] + 1, before[to - 1] + (letter != wanted))
            if at > 1 and to > 1 and letter == other[to - 2] and one[at - 2] == wanted:
                cost = min(cost, two_before[to - 2] + 1)
            row.append(cost)
        if min(row) > most and min(before) > most:
            return None
    return row[-1] if row[-1] <= most else None
