"""Things that an answer lists, and sources that it names, of which no result says a word.

Read only where the results describe something in prose beside their fields: whoever retells a
description adds to it, and what is added stands in lists (`including omelets and pancakes`) and in
where it is said to come from (`4.5 stars on …`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from callmark.grounding.match import Said
from callmark.grounding.numbers import letters_of
from callmark.grounding.record_tree import Field, RecordIndex, RecordTree, key_words
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import (
    NUMBER_WORDS,
    STOP_WORDS,
    blank_signs,
    fold,
    once,
)

LONGEST_ITEM = 4  # words of a thing in a list, without the small ones
MOST_OF_MASS = 2  # words of what is not counted
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
# What something is like and what went wrong is told in many words; none has to be a result's.
_NO_OFFER = re.compile(
    r"\b(?:attributes?|categor(?:y|ies)|ambian?ce|ambience|atmosphere|parking|issues?|problems?"
    r"|concerns?|complaints?|drawbacks?|reasons?|factors?|aspects?)\b",
    re.IGNORECASE,
)
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
# `according to their … reviews` says where the results come from, and nothing of what they say.
_ACCORDING = re.compile(r"\b(?:according to|based on|from)\s(?:\w+\s){0,2}$", re.IGNORECASE)
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

    @once
    def _words(self) -> set[str]:
        tree = self._index.tree
        words: set[str] = set()
        for key in {one.key for one in tree.fields} | {one.key for one in tree.records}:
            parts = key_words(key)
            words.update(parts)
            words.update(first + second for first, second in pairwise(parts))
        words.update(letters_of("\n".join(dict.fromkeys(text for text, _ in tree.text_fields))))
        self._said.known()  # now its texts are known
        for _, text in self._said.texts:
            words.update(letters_of(text))
        return words

    @once
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
        if len(core) < LETTERS:  # `spa`, where a result has `Day Spas`
            return core in self._words or f"{core}s" in self._words
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
            end = sentence[0]
            for one in _lists(outline.text, sentence, known):
                yield one
                end = one.end
            for one in _sources(outline.text, sentence, known):
                if one.start >= end:  # `Thai, Chinese, and Danish food` is a list
                    yield one


def _sources(text: str, sentence: Span, known: KnownWords) -> Iterator[Unnamed]:
    """`4.5 stars on Acme`, `Acme reviews`, `Danish food`."""
    for found in _SOURCE.finditer(text, *sentence):
        start, end = found.span(found.lastgroup or 0)
        name = text[start:end]
        is_word = name.casefold() in _NO_THING or _DATES.match(name) is not None
        is_told = found["of"] and _ACCORDING.search(text, max(sentence[0], start - 25), start)
        if start > sentence[0] and not is_word and not is_told and not known.hold(name):
            yield Unnamed(start, end, (name,))


def _lists(text: str, sentence: Span, known: KnownWords) -> Iterator[Unnamed]:
    end = sentence[0]
    for cue in _CUE.finditer(text, *sentence):
        before = (max(sentence[0], cue.start() - 25), cue.start())
        if cue.start() < end or _DENIED.search(text, *before):
            continue
        if _NO_OFFER.search(text, sentence[0], cue.start()):
            break
        stop = _STOP.search(text, cue.end(), sentence[1])
        end = stop.start() if stop else sentence[1]
        items = [_words_of(text, item) for item in _items(text, cue.end(), end)]
        absent = [
            thing
            for words, after in zip(items, [*items[1:], []], strict=True)
            if (thing := _thing(words, after)) is not None and not known.hold(text[slice(*thing)])
        ]
        if len(absent) >= FEWEST:
            names = tuple(text[slice(*thing)] for thing in absent)
            yield Unnamed(absent[0][0], absent[-1][1], names)


def _items(text: str, start: int, end: int) -> Iterable[Span]:
    for found in _BETWEEN.finditer(text, start, end):
        yield start, found.start()
        start = found.end()
    yield start, end


def _words_of(text: str, item: Span) -> list[re.Match[str]]:
    return [one for one in _WORD.finditer(text, *item) if one[0].casefold() not in _SMALL]


def _thing(words: list[re.Match[str]], after: list[re.Match[str]]) -> Span | None:
    """The word that says what is listed: several of something, what a `dish` or `option` is, also
    where that word comes `after`, or some of what is not counted: `tequila and mezcal`."""
    telling = [one for one in words if one[0].casefold() not in _NO_THING]
    if not telling or len(words) > LONGEST_ITEM:
        return None
    last = telling[-1]
    word = last[0].casefold()
    if last is words[-1] and _PLURAL.search(word):
        return last.span()
    is_said_of = last is not words[-1] or (len(words) == 1 and _ends_in_no_thing(after))
    if not is_said_of and len(words) > MOST_OF_MASS:
        return None
    return None if _QUALITY.search(word) and word != "catering" else last.span()


def _ends_in_no_thing(words: list[re.Match[str]]) -> bool:
    return len(words) > 1 and words[-1][0].casefold() in _NO_THING


LONGEST_NAME = 40  # characters of a text that is a name
NAME_LETTERS = 4  # of a word by which a name is known
LONG = 5  # of a word that is misspelt rather than another one
MOST_FIELDS = 60  # of a person
MOST_NAME_WORDS = 4
MOST_NAMES_ALIKE = 200  # names with one word in common that are looked at
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][\w’']*[^\W\d_]"
# The capital first: only what begins with a set of characters is looked for quickly.
_FIRST = r"[^\W\d_a-zß-öø-ÿ]"
NAMES = re.compile(
    rf"{_FIRST}(?<![\w/@.-]{_FIRST})[\w’']*[^\W\d_](?:[ ]{_CAPITAL}){{1,3}}(?![\w@/-])"
)
_NAME_WORD = re.compile(r"[^\W\d_]+")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_RUN = re.compile(rf"{_PLAIN_WORD.pattern}(?:[ ](?:& )?{_PLAIN_WORD.pattern}){{1,40}}")
_TITLE = (
    "Dr|Mr|Mrs|Ms|Mx|Prof|Frau|Herrn?|Sra?|Señora?|Mme|Mlle|Monsieur|Madame|Doctor|Captain|Nurse"
)
_TITLES = frozenset(
    """
    mrs prof professor frau herr herrn sra señor señora senor senora mme mlle monsieur madame
    doctor doctora docteur captain nurse miss sir lady
    """.split()
)
TITLED = re.compile(
    rf"\b(?:{_TITLE})"
    rf"\.?[ ](?P<name>{_CAPITAL}(?:[ ]{_CAPITAL}){{0,2}})"
)
TITLES = frozenset(
    """
    dr mr mrs ms mx prof frau herr herrn sr sra señor señora mme mlle monsieur madame doctor captain
    nurse
    """.split()
)
_CAPITALISED = re.compile(rf"(?<![\w/@.’'-]){_CAPITAL}(?![\w@/-])")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|\*\*[^*\n]{1,60}\*\*:?\s*$)")
# Of places many names have a word in common.
_PLACES = frozenset(
    """
    city state address street location neighborhood neighbourhood region country district area
    station venue place origin destination county town province
    """.split()
)
# What often follows a name and makes no other of it.
_COMMON = frozenset(
    """
    street road avenue lane square station airport hotel city town county state island river
    lake park university college school hospital clinic company inc ltd llc corp group team
    office center centre store shop bank club service services account card order ticket plan
    class section line north south east west new old upper lower grand great january february
    march april may june july august september october november december monday tuesday
    wednesday thursday friday saturday sunday total price cost details summary status date time
    type name number option options note notes standard premium basic pro plus max mini lite
    edition series version model san santa santo los las saint mount fort port el la le les de
    del da di van von der den the
    """.split()
)


_PEOPLE = frozenset(
    """
    passenger guest doctor physician therapist client agent contact author manager employee
    customer user patient owner host driver payee recipient sender assignee reviewer organizer
    organiser attendee attendees person member candidate applicant tenant landlord
    teacher student nurse technician inspector broker buyer seller holder first last full
    """.split()
)


class Misnamed(NamedTuple):
    """From `start` to `end` a name; `field` has the one that comes nearest, if any does."""

    start: int
    end: int
    field: Field | None


class GivenNames:
    """The names in the results: short texts whose words begin with capital letters."""

    def __init__(self, tree: RecordTree, known: KnownWords) -> None:
        self._tree = tree
        self._known = known
        self._without_letter: dict[
            tuple[int, str, str], dict[tuple[int, str], dict[str, Field]]
        ] = {}

    @once
    def _by_word(self) -> dict[tuple[bool, str], list[tuple[tuple[str, ...], Field]]]:
        """By the first and by the last of their words."""
        found: dict[tuple[bool, str], list[tuple[tuple[str, ...], Field]]] = {}
        for text, field in self._tree.text_fields:
            if len(text) > LONGEST_NAME or not (text[:1].isupper() or text[:1].isspace()):
                continue
            words = [] if text.isalnum() else text.split()  # a single word is no name
            if not 1 < len(words) <= 4 or not _PLACES.isdisjoint(key_words(field.key)):
                continue
            if all(one[:1].isupper() and one.isalpha() for one in words):
                name = tuple(map(fold, words))
                for is_first in (True, False):
                    word = name[0] if is_first else name[-1]
                    if len(word) >= NAME_LETTERS and word not in _COMMON:
                        found.setdefault((is_first, word), []).append((name, field))
        for record in self._tree.records:  # first_name and last_name
            for full in record.names if len(record.fields) <= MOST_FIELDS else ():
                words = [] if full.isalnum() else full.split()
                if len(words) == 2 and full not in [one.value for one in record.fields]:
                    name = tuple(map(fold, words))
                    half = next((one for one in record.fields if one.value in words), None)
                    if half is not None and all(map(str.isalpha, name)):
                        found.setdefault((True, name[0]), []).append((name, half))
                        found.setdefault((False, name[1]), []).append((name, half))
        return found

    @once
    def _parts(self) -> dict[tuple[int, str, str], dict[str, Field]]:
        """Single words of names by their length, their first and their last letter, each with the
        first that has it."""
        found: dict[tuple[int, str, str], dict[str, Field]] = {}
        for rows in self._by_word.values():
            for name, field in rows:
                for word in name:
                    if len(word) >= LONG and word not in _COMMON:
                        found.setdefault(_edges_of(word), {}).setdefault(word, field)
        return found

    def _alike(self, edges: tuple[int, str, str]) -> dict[tuple[int, str], dict[str, Field]]:
        """Those of these edges by what is left of them without one letter."""
        known = self._without_letter.get(edges)
        if known is None:
            known = self._without_letter[edges] = {}
            for word, field in self._parts.get(edges, {}).items():
                for at in range(1, len(word)):
                    rest = known.setdefault((at, word[:at] + word[at + 1 :]), {})
                    rest.setdefault(word, field)
        return known

    @once
    def _by_gap(self) -> dict[tuple[str, ...], tuple[str, Field]]:
        """Names without one of their words: an empty text stands in its place."""
        found: dict[tuple[str, ...], tuple[str, Field]] = {}
        for value, field in self._tree.text_fields:
            if " " not in value or len(value) > LONGEST_NAME:
                continue
            if not value[0].isupper() or _RUN.fullmatch(value) is None:
                continue
            words = tuple(map(fold, _PLAIN_WORD.findall(value)))
            for at in range(len(words)) if len(words) <= MOST_NAME_WORDS else ():
                rest = words[:at] + words[at + 1 :]
                if any(len(one) >= NAME_LETTERS and one not in _COMMON for one in rest):
                    found.setdefault((*words[:at], "", *words[at + 1 :]), (words[at], field))
        return found

    @once
    def _kept(self) -> frozenset[str]:
        """The words that are left of names without one of theirs."""
        return frozenset(word for rest in self._by_gap for word in rest)

    def _with_another_word(self, outline: Outline) -> Iterator[Misnamed]:
        """`Harbour Kitchen` where the results have `Goodland Kitchen`, and nobody a harbour."""
        text, known = outline.text, self._kept
        for run in _runs_with(outline, known) if known else ():
            said = run[0]
            folded = (said.lower() if said.isascii() else fold(said)).split(" ")
            if known.isdisjoint(folded):
                continue
            plain = [one for one in folded if one != "&"]
            kept = [at for at, one in enumerate(plain) if one in known]
            line = outline.line_at(run.start())
            if _HEADING.match(text, line.start, line.end):
                continue
            words = list(_PLAIN_WORD.finditer(text, *run.span()))
            # What is no part of a name matches none: `a Danish restaurant` is no `Restaurant`.
            names = [
                one if _may_name(word[0]) else "" for word, one in zip(words, plain, strict=True)
            ]
            for at, word in enumerate(words):
                if not word[0][0].isupper() or _OF_KIND.search(word[0]):
                    continue
                if not any(0 < abs(at - one) < MOST_NAME_WORDS for one in kept):
                    continue
                near = self._near(names, at)
                if near is None or not self._is_unknown(word[0]) or self._known.hold(word[0]):
                    continue
                first, last, field = near
                yield Misnamed(words[first].start(), words[last].end(), field)

    def _near(self, words: list[str], at: int) -> tuple[int, int, Field] | None:
        """From which to which word a name is meant that has another word at this place."""
        for length in range(2, MOST_NAME_WORDS + 1):
            for first in range(max(0, at - length + 1), min(at, len(words) - length) + 1):
                end = first + length
                near = self._by_gap.get((*words[first:at], "", *words[at + 1 : end]))
                if near is not None and not _is_short_for(near[0], words[at]):
                    return first, end - 1, near[1]
        return None

    def misnamed_in(self, outline: Outline) -> Iterator[Misnamed]:
        end = 0
        found = (
            *self._other_parts(outline),
            *self._titled(outline),
            *self._with_another_word(outline),
        )
        for one in sorted(found, key=lambda one: one[:2]):
            if one.start >= end:
                end = one.end
                yield one

    def _is_unknown(self, word: str) -> bool:
        folded = fold(word)
        return (
            len(word) >= 3
            and folded not in _COMMON
            and folded not in _TITLES
            and folded not in STOP_WORDS
            and folded not in NUMBER_WORDS
            and not self._known.knows(folded)
            and not self._known.knows(folded.removesuffix("s"))
            and not self._known.knows(folded.replace("’", "'").partition("'")[0])
        )

    def _other_parts(self, outline: Outline) -> Iterator[Misnamed]:
        """One half of a name that is given, with another half that is not."""
        if not self._by_word:
            return
        for found in NAMES.finditer(outline.text):
            line = outline.line_at(found.start())
            head = outline.table_head(line)
            if _HEADING.match(outline.text, line.start, line.end) or head == line:
                continue
            words = list(_NAME_WORD.finditer(outline.text, *found.span()))
            for left, right in pairwise(words):
                near = self._half_of(left[0], right[0], outline.text)
                if near is not None:
                    yield Misnamed(left.start(), right.end(), near)
                    break

    def _half_of(self, first: str, last: str, text: str) -> Field | None:
        """Whoever has a first and a last name has just these; a firm or a thing may be called by
        half of its name, unless it is nowhere called by the whole."""
        # Whether a word is known is asked last: for that all texts are read.
        begun = self._by_word.get((True, fold(first)), ())
        if begun and self._is_unknown(last):
            for name, field in begun[:MOST_NAMES_ALIKE]:
                if len(name) == 2 and (_is_person(field) or str(field.value) not in text):
                    return field
        ended = self._by_word.get((False, fold(last)), ())
        if ended and self._is_unknown(first):
            for name, field in ended[:MOST_NAMES_ALIKE]:
                if len(name) == 2 and _is_person(field):
                    return field
        near = self._misspelt(last) or self._misspelt(first)
        is_other = near is not None and self._is_unknown(first) and self._is_unknown(last)
        return near if is_other else None

    def _misspelt(self, word: str) -> Field | None:
        """Another letter within it, as long as the word is."""
        folded = fold(word)
        alike = self._alike(_edges_of(folded)) if len(folded) >= LONG else {}
        for at in range(1, len(folded) - 1) if alike else ():
            for other, field in alike.get((at, folded[:at] + folded[at + 1 :]), {}).items():
                if other[at] != folded[at]:
                    return field
        return None

    def _titled(self, outline: Outline) -> Iterator[Misnamed]:
        """`Dr. Voss`, of whom no text speaks."""
        for found in TITLED.finditer(outline.text) if TITLES & outline.words else ():
            words = _NAME_WORD.findall(found["name"])
            if words and all(map(self._is_unknown, words)):
                yield Misnamed(*found.span(), self._misspelt(words[-1]))


# `Caribbean`, `Eastern`, `Authentic`: what kind of thing it is, not what it is called.
_OF_KIND = re.compile(
    r"(?:ese|ish|ean|ian|ican|ic|ern|ative|ional|ous|ful|ed|ing|ly)s?$", re.IGNORECASE
)


def _runs_with(outline: Outline, words: frozenset[str]) -> Iterator[re.Match[str]]:
    """The runs of the lines that may hold one of these: most lines do not."""
    text = outline.text
    if blank_signs(text) is None:
        yield from _RUN.finditer(text)
        return
    # `d’Aix` and `3pm` are no words of the outline, but runs begin in the middle of them, too.
    parts = {part for word in words for part in _NAME_WORD.findall(word)}
    placed = outline.placed
    told = [
        word
        for word in placed.by_word
        if word in parts or not (word.isalpha() or parts.isdisjoint(_NAME_WORD.findall(word)))
    ]
    lines = [outline.line_at(placed.starts[at]) for at in placed.find(told)]
    for start, end in dict.fromkeys([line.span for line in lines]):
        yield from _RUN.finditer(text, start, end)


def _edges_of(word: str) -> tuple[int, str, str]:
    return len(word), word[0], word[-1]


def _may_name(word: str) -> bool:
    return word[0].isupper() or len(word) < NAME_LETTERS


def _is_short_for(short: str, long: str) -> bool:
    """`intl` for `international`: its letters in their order, from the first one on."""
    if short[0] != long[0] or len(short) > len(long):
        return False
    letters = iter(long)
    return all(letter in letters for letter in short)


def _is_person(field: Field) -> bool:
    words = {*key_words(field.key), *key_words(field.record.key)}
    return not _PEOPLE.isdisjoint(words | {one.removesuffix("s") for one in words})
