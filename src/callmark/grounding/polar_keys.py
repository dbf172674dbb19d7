"""Fields that say yes, no or nothing: with which words one of them is spoken of, in what manner it
holds, which words say the opposite, and what has to be said for it to be meant."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from callmark.grounding.record_tree import Field, ResultRecord, key_words, stem
from callmark.grounding.text import Frozen
from callmark.records.jsontext import Json

SHORTEST_ROOT = 4  # letters
_ENDINGS = ("abl", "ibl", "atur", "ship", "er", "e")
_VERBAL = ("eri", "ifi", "iri")  # delivery, notify, expiry; not touristy, and no tourist
_ODD_ROOTS = {"subscript": "subscrib", "inclus": "includ", "exclus": "exclud"}


@lru_cache(maxsize=1 << 16)
def root(word: str) -> str:
    """`delivery` is `delivered`, `refundable` is `refund`, `signature` is `sign`."""
    found = stem(word)
    if len(found) > 5 and found.endswith(_VERBAL):
        found = found[:-1]
    for ending in _ENDINGS:
        if found.endswith(ending) and len(found) - len(ending) >= SHORTEST_ROOT:
            found = found[: -len(ending)].removesuffix("e")  # changeable
            break
    return _ODD_ROOTS.get(found, found)


# Words of keys that say that something is so, not what it is …
GENERIC = frozenset(
    """
    is has have can are was does do should will allow allows allowed permit permits permitted
    enabled enable available supports supported support include includes included offers offer
    accept accepts accepted ok okay friendly flag status required require requires needed needs
    mandatory more next
    """.split()
)
# … and those of them that say how: `pets_allowed` is no more than named by `pets`.
_MANNERS = {
    word: manner
    for manner, words in {
        "required": "required require requires needed needs mandatory",
        "allowed": "allow allows allowed permit permits permitted friendly",
        "included": "include includes included",
        "enabled": "enabled enable",
    }.items()
    for word in words.split()
}
# What says so in a sentence, and what says the opposite.
SAYING: dict[str, frozenset[str]] = {
    manner: frozenset(words.split())
    for manner, words in {
        "required": "need needs needed require requires required requiring must mandatory"
        " obligatory compulsory necessary",
        "allowed": "allow allows allowed allowing permit permits permitted welcome welcomes accept"
        " accepts accepted ok okay fine can may possible friendly",
        "included": "include includes included including inclusive part comes come covered covers"
        " free complimentary with get gets",
        "enabled": "enabled enable on active activated use uses using have has",
    }.items()
}
OPPOSITES: dict[str, frozenset[str]] = {
    "": frozenset(
        "unavailable off disabled deactivated excluded missing absent lacking impossible".split()
    ),
    "required": frozenset("optional voluntary unnecessary waived".split()),
    "allowed": frozenset("prohibited forbidden banned disallowed unwelcome".split()),
    "included": frozenset("extra separate separately additional".split()),
    "enabled": frozenset("off disabled deactivated inactive".split()),
}
# `in_stock` is a phrase: `stock` alone is something else.
PLACING = frozenset("in on at under out off".split())
_OUT_OF: dict[tuple[str, ...], tuple[tuple[str, ...], ...]] = {("in", "stock"): (("sold", "out"),)}
SAME: dict[str, tuple[str, ...]] = {
    one: tuple(other for other in group if other != one)
    for words in (
        "elevator lift", "television tv", "refrigerator fridge", "tyre tire", "aircon ac",
        "gym fitness", "washer washing", "children kids", "maximum max", "minimum min",
        "average avg", "temperature temp",
    )
    for group in [tuple(map(root, words.split()))]
    for one in group
}  # fmt: skip
# Other words for those of keys with two words or more.
ALIKE: dict[str, tuple[str, ...]] = {
    root(word): tuple(map(root, others.split()))
    for word, others in {
        "good": "great ideal perfect suitable suited excellent accommodate accommodates",
        "outdoor": "outside patio outdoors",
        "smoking": "smoke smokers",
        "pets": "dogs cats animals",
        "wheelchair": "wheelchairs",
    }.items()
}
_PREFIXES = ("non", "dis", "un", "in", "im", "ir", "il")
# Words that begin so and deny nothing.
_NO_PREFIX = frozenset(
    """
    disclosed discount discounted discounts discover discovered discharge discharged dispatch
    dispatched display displayed displays disposed dispose include included includes including
    income incoming inform informed insured input inside install installed instead interest
    interested invoice invoiced invited involved unit units union under until united
    import imported important improve improved impressed immediate display distance
    """.split()
)

_ANTONYMS = {
    word: other
    for first, second in (
        ("enabled", "disabled"), ("open", "closed"), ("online", "offline"),
        ("activated", "deactivated"), ("allowed", "forbidden"),
    )
    for word, other in ((first, second), (second, first))
}  # fmt: skip


def manner_of(words: tuple[str, ...]) -> str:
    """In what manner it holds: the last such word of the key decides."""
    return next((_MANNERS[word] for word in reversed(words) if word in _MANNERS), "")


@lru_cache(maxsize=1 << 14)
def without_prefix(word: str) -> str:
    """`verified` of `unverified`, `open` of `closed`; nothing where it denies nothing."""
    if word in _NO_PREFIX:
        return ""
    if word in _ANTONYMS:
        return _ANTONYMS[word]
    for prefix in _PREFIXES:
        if word.startswith(prefix) and len(word) - len(prefix) >= SHORTEST_ROOT:
            return word[len(prefix) :]
    return ""


def opposites_of(phrase: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """`out of stock`, `sold out`."""
    away: tuple[tuple[str, ...], ...] = ()
    if phrase[0] == "in":
        away = (("out", "of", *phrase[1:]),)
    elif phrase[:2] == ("out", "of"):
        away = (("in", *phrase[2:]),)
    return (*away, *_OUT_OF.get(phrase, ()))


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


class KeyWords(Frozen, frozen=True):
    """`stems` are the words that mean a key, `joined` the same as one word, `needed` one of which
    has to stand in the sentence too. `manner`: required, allowed, included or enabled; `phrase`:
    words that stand together (`in stock`); `is_state`: what it says, it says of the record."""

    stems: tuple[str, ...]
    joined: str
    needed: tuple[str, ...] = ()
    manner: str = ""
    phrase: tuple[str, ...] = ()
    is_state: bool = False


class Polar(Frozen, frozen=True):
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


MOST_ASKED = 1 << 10


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
            if len(self._known) >= MOST_ASKED:
                self._known.clear()  # a shape is kept, and records may have any key
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


@lru_cache(maxsize=1 << 9)  # a tool's results have the same keys, sample after sample
def shape_with(keys: tuple[str, ...], around: tuple[str, ...]) -> PolarShape:
    return PolarShape(keys, around)


def _spellings(key: str) -> Iterator[str]:
    """`ambience` is `ambiance`."""
    for one in map(root, key_words(key)):
        yield one
        if one.endswith(("enc", "anc")):
            yield f"{one[:-3]}{'a' if one[-3] == 'e' else 'e'}nc"


# Words that say yes or no, and in what manner.
YES_OR_NO = {
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
        return _state_of_text(value)
    return _OTHER


_OTHER = ("other", "")


@lru_cache(maxsize=1 << 12)
def _state_of_text(text: str) -> tuple[str, str]:
    return YES_OR_NO.get(plain_answer(text), _OTHER)


def plain_answer(text: str) -> str:
    """`not_available`; also of `u'no'`, as programs write a text that they hold."""
    text = text.strip()
    plain = text[1:] if text[:2] in ("u'", 'u"') else text
    return plain.strip(" '\"").casefold().replace(" ", "_").replace("-", "_")
