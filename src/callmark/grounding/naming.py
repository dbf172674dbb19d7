"""Things that an answer lists, and sources that it names, of which no result says a word.

Read only where the results describe something in prose beside their fields: whoever retells a
description adds to it, and what is added stands in lists (`including omelets and pancakes`) and in
where it is said to come from (`4.5 stars on …`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from callmark.grounding.match import Said
from callmark.grounding.record_tree import RecordIndex, key_words
from callmark.grounding.spans import Outline, Span

LONGEST_ITEM = 4  # words of a thing in a list, without the small ones
FEWEST = 2  # things of one list that no result names; one alone may be another word for another
LETTERS = 4  # in which two forms of a word agree at least
MOST_ALIKE = 400  # words that begin or end alike; where there are more, nobody looks
_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_PART = re.compile(r"[^\W\d_]+")
_CUE = re.compile(
    r"\b(?:including|includes?|such as|(?:variety|range|selection|array|choice) of|offers?|offering"
    r"|serves?|serving|features?|featuring|provides?|providing|as well as|specializ\w+ in)\s",
    re.IGNORECASE,
)
_DENIED = re.compile(r"\b(?:not|no|never|without|lacks?)\b|n['’]t\b", re.IGNORECASE)
_STOP = re.compile(
    r"[.;:()\n!?]|,?\s(?:but|while|which|that|making|although|however|are|is|was|were|who|where"
    r"|when|because|so|all|from|to|for|at|in|on|by|under|with|has|have|can|ensuring)\b"
    r"|,\s(?:and\s)?(?:it|they|the|there|its|their|also|some)\b",
    re.IGNORECASE,
)
_BETWEEN = re.compile(
    r",\s*(?:and\s|or\s)?|\s(?:and|or|as well as)\s|\b(?:including|such as|like)\b", re.IGNORECASE
)
_SMALL = frozenset(
    """
    a an the of its their his her our your some any many various several other as well also both
    such that not no very highly most more all and or great good new wide large unique diverse
    multiple free high poor decent exceptional excellent among towards this these those like
    """.split()
)
# Words for no thing in particular, and for kinds of things.
_NO_THING = frozenset(
    """
    option options dish dishes item items food foods service services experience experiences
    atmosphere cuisine cuisines meal meals menu menus variety range selection choice choices fare
    treat treats ingredient ingredients flavor flavors flavour flavours offering offerings amenity
    amenities facility facilities feature features thing things more other others area areas space
    spaces setting settings environment ambiance ambience vibe value values price prices staff
    customer customers patron patrons guest guests visitor visitors local locals place places spot
    spots business businesses restaurant establishment eatery product products goods drink drinks
    beverage beverages quality deal deals special specials style styles type types kind kinds part
    parts time times day days lot lots plenty way ways mix blend combination combinations array list
    lists detail details information request requests need needs level levels size sizes portion
    portions taste tastes help attention touch touches location locations convenience review reviews
    reputation attribute attributes people family families friend friends group groups party parties
    event events dining diners occasion occasions feedback entree entrees snack snacks appetizer
    appetizers dessert desserts side sides alcohol bite bites twist twists course courses creation
    creations performance performances opportunity opportunities activity activities client clients
    genre genres focus addition access hour hours seating lovers enthusiasts individuals travelers
    preference preferences arrangement arrangements category categories topping toppings plate
    plates treatment treatments classic classics favorite favorites favourite favourites specialty
    specialties staple staples delight delights tasting tastings class classes name names number
    numbers line lines step steps question questions issue issues problem problems change changes
    benefit benefits fee fees charge charges result results record records account accounts plan
    plans order orders date dates address addresses entry entries field fields update updates
    """.split()
)
# Endings of words that say how something is, not what.
_QUALITY = re.compile(
    r"(?:ly|ed|ing|ous|ful|ant|ent|able|ible|ive|ish|less|est|er|ary|ory|ic|al|y)$"
)
_PLURAL = re.compile(r"(?<!s)(?<!ou)s$")
_SOURCE = re.compile(
    r"\b(?:rat(?:ing|ed)|stars?|score[sd]?|reviews?|reviewed)\b[^.;:!?\n]{0,25}?\son\s"
    r"(?P<on>[A-Z][A-Za-z]{2,})\b(?!\s\d)"
    r"|(?<=[a-z,]\s)(?P<of>[A-Z][A-Za-z]{2,})\s(?:reviews?|ratings?)\b"
    r"|(?<=[a-z,]\s)(?P<from>[A-Z][a-z]{2,}(?:an|ese|ish|ic|ench|eek|ai))"
    r"\s(?:cuisine|dishes|food|fare)\b"
)
_DATES = re.compile(
    r"(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)days?$|(?:Jan|Febr)uary$|(?:Septem|Octo|Novem|Decem)ber$"
    r"|(?:March|April|May|June|July|August)$"
)


class Unnamed(NamedTuple):
    """From the first to the last of them; `names` as the answer has them."""

    start: int
    end: int
    names: tuple[str, ...]


class KnownWords:
    """Every word of the results, of their keys, and of what was said, by beginning and end."""

    def __init__(self, index: RecordIndex, said: Said) -> None:
        self._index = index
        self._said = said

    @cached_property
    def _words(self) -> set[str]:
        tree = self._index.tree
        words: set[str] = set()
        for key in {one.key for one in tree.fields} | {one.key for one in tree.records}:
            parts = key_words(key)
            words.update(parts)
            words.update(first + second for first, second in pairwise(parts))
        texts = [one.value for one in tree.fields if isinstance(one.value, str)]
        self._said.holds_key("", None)  # now its texts are known
        for text in (*texts, *(text for _, text in self._said.texts)):
            words.update(_PART.findall(text.casefold()))
        return words

    @cached_property
    def _by_letters(self) -> dict[tuple[bool, str], list[str]]:
        found: dict[tuple[bool, str], list[str]] = {}
        for word in self._words:
            found.setdefault((True, word[:LETTERS]), []).append(word)
            found.setdefault((False, _singular(word)[-LETTERS:]), []).append(word)
        return found

    def knows(self, word: str) -> bool:
        """Exactly this word, in lower case."""
        return word in self._words

    def hold(self, word: str) -> bool:
        """`burgers` where a result has `burger` or `cheeseburgers`, `wi-fi` where it has `WiFi`."""
        whole = word.casefold()
        parts = [part for part in _PART.findall(whole) if len(part) > 2]
        return any(map(self._hold_one, (whole.replace("-", ""), *parts)))

    def _hold_one(self, word: str) -> bool:
        if word in self._words:
            return True
        core = _singular(word)
        if len(core) < LETTERS:
            return core in self._words
        begin = self._by_letters.get((True, core[:LETTERS]), ())
        end = self._by_letters.get((False, core[-LETTERS:]), ())
        if len(begin) > MOST_ALIKE or len(end) > MOST_ALIKE:
            return True
        short = core[: max(LETTERS, len(core) - 2)]
        return any(one.startswith(short) for one in begin) or any(
            _singular(one).endswith(core) for one in end
        )


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > LETTERS:
        return f"{word[:-3]}y"
    return word[:-2] if word.endswith(("shes", "ches")) else _PLURAL.sub("", word)


def find_unnamed(outline: Outline, known: KnownWords) -> Iterator[Unnamed]:
    for sentence in outline.sentences:
        if not outline.is_proposed(sentence):
            yield from _lists(outline.text, sentence, known)
            yield from _sources(outline.text, sentence, known)


def _sources(text: str, sentence: Span, known: KnownWords) -> Iterator[Unnamed]:
    """`4.5 stars on Acme`, `Acme reviews`, `Danish food`."""
    for found in _SOURCE.finditer(text, *sentence):
        start, end = found.span(found.lastgroup or 0)
        name = text[start:end]
        is_word = name.casefold() in _NO_THING or _DATES.match(name) is not None
        if start > sentence[0] and not is_word and not known.hold(name):
            yield Unnamed(start, end, (name,))


def _lists(text: str, sentence: Span, known: KnownWords) -> Iterator[Unnamed]:
    end = sentence[0]
    for cue in _CUE.finditer(text, *sentence):
        before = (max(sentence[0], cue.start() - 25), cue.start())
        if cue.start() < end or _DENIED.search(text, *before):
            continue
        stop = _STOP.search(text, cue.end(), sentence[1])
        end = stop.start() if stop else sentence[1]
        absent = [
            thing
            for item in _items(text, cue.end(), end)
            if (thing := _thing(text, item)) is not None and not known.hold(text[slice(*thing)])
        ]
        if len(absent) >= FEWEST:
            names = tuple(text[slice(*thing)] for thing in absent)
            yield Unnamed(absent[0][0], absent[-1][1], names)


def _items(text: str, start: int, end: int) -> Iterable[Span]:
    for found in _BETWEEN.finditer(text, start, end):
        yield start, found.start()
        start = found.end()
    yield start, end


def _thing(text: str, item: Span) -> Span | None:
    """The word that says what is listed: several of something, or what a `dish` or `option` is."""
    words = [one for one in _WORD.finditer(text, *item) if one[0].casefold() not in _SMALL]
    telling = [one for one in words if one[0].casefold() not in _NO_THING]
    if not telling or len(words) > LONGEST_ITEM:
        return None
    last = telling[-1]
    word = last[0].casefold()
    if last is words[-1]:
        return last.span() if _PLURAL.search(word) else None
    return None if _QUALITY.search(word) and word != "catering" else last.span()
