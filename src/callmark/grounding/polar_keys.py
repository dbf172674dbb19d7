"""Fields that say yes, no or nothing, and what has to be said for one of them to be meant."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.polar_words import GENERIC, PLACING, manner_of, root, without_prefix
from callmark.grounding.record_tree import Field, ResultRecord, key_words
from callmark.records.jsontext import Json

MOST_RECORDS = 12  # that a clause may speak of
SHORT_ANSWER = 16  # a text that is shorter may say yes or no
_STOP = frozenset(
    """
    a an and are as at be by for from has have in is it its of on or that the to with
    """.split()
)
# The last word of a key may say what it is measured in.
_UNITS = frozenset(
    """
    min mins minutes hours h sec secs seconds s ms days eur usd gbp pct percent kg km mm cm mb gb
    """.split()
)
# A key that is one of these says nothing without the key above it (`lot` of `parking`) …
_COMMON = frozenset(
    """
    street lot open good new full live free late early number order item name status type
    line data plan service price time day date room bed table seat seats point points side
    top main active garage music parking food drink drinks water air car bus train phone
    card bank account bill payment address home house office store shop area city state
    country place group groups party kids dogs pets hour hours return returns exchange
    refund direct stop stops paid due closed valid current primary default public private
    local
    """.split()
)
# … or, without one, nothing at all …
_VAGUE = frozenset(
    """
    open good new full live free late early number order item name status type line data
    plan service price time day date top main active due closed valid current primary
    default public private local ok success
    """.split()
)
# … unless the record is said to be so.
_STATED = frozenset("active closed valid private public".split())
# What anybody says of anything: such a key needs the key above it, or one beside it.
_EVERYDAY = frozenset(
    """
    casual modern friendly quiet lively cozy cosy clean comfortable popular relaxed simple
    traditional special nice fresh large small easy quick safe warm cold
    """.split()
)
_OTHER_NAMES = {
    "takeout": ("takeaway", "carryout"),
    "wifi": ("wirelessinternet",),
}
_CONTAINERS = frozenset(
    """
    attributes properties details data result results info fields features options settings
    amenities facilities services policies policy flags permissions preferences perks extras
    """.split()
)
_DONE = frozenset("paid sent sold built done made held lost won".split())


class KeyWords(NamedTuple):
    """`stems` are the words that mean a key, `joined` the same as one word, `needed` one of which
    has to stand in the sentence too. `manner`: required, allowed, included or enabled; `phrase`:
    words that stand together (`in stock`); `is_state`: what it says, it says of the record."""

    stems: tuple[str, ...]
    joined: str
    needed: tuple[str, ...] = ()
    manner: str = ""
    phrase: tuple[str, ...] = ()
    is_state: bool = False


class Polar(NamedTuple):
    """A field that is true, false or (None) unknown. `parts`: it is all of a kind (`parking`), and
    these are words for some of it (`street`, `garage`). `is_absent`: null says that it has none."""

    field: Field
    state: bool | None
    words: KeyWords
    parts: frozenset[str] = frozenset()
    is_absent: bool = False


class PolarKey:
    """All fields that are spoken of with the same words, in the order of their records."""

    __slots__ = (
        "bases",
        "is_able",
        "is_done",
        "names",
        "numbers",
        "parts",
        "rows",
        "words",
    )

    def __init__(self, first: Polar) -> None:
        self.words = first.words
        joined = first.words.joined
        self.names = (joined, *_OTHER_NAMES.get(joined, ())) if len(joined) > 1 else (joined,)
        self.parts = first.parts
        own = () if first.parts else key_words(first.field.key)
        last = next((word for word in reversed(own) if word not in GENERIC), "")
        self.is_able = len(first.words.stems) == 1 and last.endswith(("able", "ible"))
        self.is_done = last.endswith("ed") or last in _DONE
        # `limited` where the key says `unlimited`.
        self.bases = {
            root(word): root(base) for word in own if (base := without_prefix(word)) != ""
        }
        self.rows: list[Polar] = []
        self.numbers: list[int] = []

    @property
    def is_thing(self) -> bool:
        """One thing that is there or is not: `pool`, `breakfast_included`."""
        words = self.words
        is_plain = not (words.is_state or words.needed or words.phrase or self.parts)
        return is_plain and not (self.is_done or self.is_able) and words.manner != "required"

    def add(self, row: Polar) -> None:
        self.rows.append(row)
        self.numbers.append(row.field.record.number)

    def rows_of(self, records: Sequence[ResultRecord]) -> list[Polar]:
        found: list[Polar] = []
        for record in records[:MOST_RECORDS]:
            first = bisect_left(self.numbers, record.number)
            last = bisect_right(self.numbers, record.last)
            found += self.rows[first : min(last, first + MOST_RECORDS)]
            for above in record.ancestors():
                at = bisect_left(self.numbers, above.number)
                if at < len(self.numbers) and self.numbers[at] == above.number:
                    found.append(self.rows[at])
        return found

    def meant(self, records: Sequence[ResultRecord]) -> Polar | None:
        """The field of these records; None where they have none, or say different things."""
        found = self.rows_of(records)
        states = {row.state for row in found}
        return found[0] if len(states) == 1 else None


class PolarShape:
    """Records with the same keys, as those of a list are."""

    def __init__(self, keys: Sequence[str], around: Sequence[str]) -> None:
        """`around`: the keys of its parts, and of what it is a part of."""
        self._keys = keys
        self._shared = Counter(word for key in (*keys, *around) for word in set(key_words(key)))
        self._known: dict[tuple[str, str, bool, bool], KeyWords | None] = {}

    def words_meaning(
        self, key: str, above: str, *, is_unknown: bool, is_listed: bool
    ) -> KeyWords | None:
        """What means the field of a record, `above` being that record's key. None: nothing does
        that anybody would say."""
        asked = (key, above, is_unknown, is_listed)
        if asked not in self._known:
            self._known[asked] = self._find_words(*asked)
        return self._known[asked]

    def _find_words(
        self, key: str, above: str, is_unknown: bool, is_listed: bool
    ) -> KeyWords | None:
        whole = key_words(key)
        manner = manner_of(whole)
        told = tuple(word for word in whole if word not in ("is", "was", "are"))
        if len(told) > 1 and told[0] in PLACING:
            return KeyWords((root(told[-1]),), root("".join(told)), phrase=told)
        if is_unknown and len(whole) > 1 and whole[-1] in _UNITS:
            whole = whole[:-1]
        words = [word for word in whole if word not in _STOP]
        own = [word for word in words if self._shared[word] < 2 or len(words) == 1] or words
        core = [word for word in own if word not in GENERIC]
        is_state = False
        if not core:
            over = [word for word in key_words(above) if word not in GENERIC]
            if over and not is_listed and above.casefold() not in _CONTAINERS:
                core = over  # `pets: {allowed: true}`
            else:
                core, is_state, manner = own, True, ""
        if not core or (is_unknown and core[-1] in ("id", "ids")):
            return None
        needed: tuple[str, ...] = ()
        if len(core) == 1 and core[0] in _EVERYDAY:
            beside = (one for other in self._keys if other != key for one in key_words(other))
            needed = tuple(dict.fromkeys((*_spellings(above), *map(root, beside))))
        elif len(core) == 1 and core[0] in _COMMON:
            if above.casefold() not in _CONTAINERS and not is_listed:
                needed = tuple(root(one) for one in key_words(above) if one not in GENERIC)
            if not needed and core[0] in _VAGUE:
                if core[0] not in _STATED:
                    return None
                is_state = True
        stems = tuple(map(root, core))
        return KeyWords(stems, root("".join(core)), needed, manner, (), is_state)


def _spellings(key: str) -> Iterator[str]:
    """`ambience` is `ambiance`."""
    for one in map(root, key_words(key)):
        yield one
        if one.endswith(("enc", "anc")):
            yield f"{one[:-3]}{'a' if one[-3] == 'e' else 'e'}nc"


# Words that say yes or no, and in what manner.
_SAYING = {
    word: (state, manner)
    for words, state, manner in (
        ("yes true free paid", "yes", ""),
        ("no false none", "no", ""),
        ("required mandatory compulsory obligatory", "yes", "required"),
        ("optional not_required voluntary", "no", "required"),
        ("allowed permitted", "yes", "allowed"),
        ("not_allowed prohibited forbidden", "no", "allowed"),
        ("included", "yes", "included"),
        ("not_included excluded", "no", "included"),
        ("enabled on", "yes", "enabled"),
        ("disabled off", "no", "enabled"),
        ("available", "yes", ""),
        ("unavailable not_available", "no", ""),
    )
    for word in words.split()
}


def state_of(value: Json) -> tuple[str, str]:
    """`yes`, `no`, `unknown` or `other`, and in what manner."""
    if value is True:
        return "yes", ""
    if value is False:
        return "no", ""
    if value is None:
        return "unknown", ""
    if isinstance(value, str) and len(value) < SHORT_ANSWER:
        folded = value.strip(" '\"").casefold().replace(" ", "_").replace("-", "_")
        return _SAYING.get(folded, ("other", ""))
    return "other", ""
