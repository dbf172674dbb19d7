"""With which words a yes-or-no key is spoken of: what it is about, in what manner it holds, and
which words say the opposite."""

from __future__ import annotations

from functools import lru_cache

from callmark.grounding.record_tree import stem

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
    mandatory
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
