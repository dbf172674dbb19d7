"""Names that nobody gave, where results give another: `Holden Motors` for Holden Foods, `Mehra` for
Mehta, `Frau Yıldız` where no text names her."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from callmark.grounding.naming import KnownWords
from callmark.grounding.record_tree import Field, RecordTree, key_words
from callmark.grounding.spans import Outline
from callmark.grounding.text import fold
from callmark.grounding.words import NUMBER_WORDS, STOP_WORDS

LONGEST_NAME = 40  # characters of a text that is a name
LETTERS = 4  # of a word by which a name is known
LONG = 5  # of a word that is misspelt rather than another one
MOST_FIELDS = 60  # of a person
MOST_ALIKE = 200  # names with one word in common that are looked at
_CAPITAL = r"[^\W\d_a-zß-öø-ÿ][\w’']*[^\W\d_]"
_NAMES = re.compile(rf"(?<![\w/@.-]){_CAPITAL}(?:[ ]{_CAPITAL}){{1,3}}(?![\w@/-])")
_WORD = re.compile(r"[^\W\d_]+")
_TITLED = re.compile(
    r"\b(?:Dr|Mr|Mrs|Ms|Mx|Prof|Frau|Herrn?|Sra?|Señora?|Mme|Mlle|Monsieur|Madame|Doctor|Captain|Nurse)"
    rf"\.?[ ](?P<name>{_CAPITAL}(?:[ ]{_CAPITAL}){{0,2}})"
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

    @cached_property
    def _by_word(self) -> dict[tuple[bool, str], list[tuple[tuple[str, ...], Field]]]:
        """By the first and by the last of their words."""
        found: dict[tuple[bool, str], list[tuple[tuple[str, ...], Field]]] = {}
        for field in self._tree.fields:
            if not isinstance(field.value, str) or len(field.value) > LONGEST_NAME:
                continue
            if not _PLACES.isdisjoint(key_words(field.key)):
                continue
            words = field.value.split()
            if 1 < len(words) <= 4 and all(one[:1].isupper() and one.isalpha() for one in words):
                name = tuple(map(fold, words))
                for is_first in (True, False):
                    word = name[0] if is_first else name[-1]
                    if len(word) >= LETTERS and word not in _COMMON:
                        found.setdefault((is_first, word), []).append((name, field))
        for record in self._tree.records:  # first_name and last_name
            for full in record.names if len(record.fields) <= MOST_FIELDS else ():
                name = tuple(map(fold, full.split()))
                if len(name) == 2 and full not in (one.value for one in record.fields):
                    half = next((one for one in record.fields if one.value in full.split()), None)
                    if half is not None and all(map(str.isalpha, name)):
                        found.setdefault((True, name[0]), []).append((name, half))
                        found.setdefault((False, name[1]), []).append((name, half))
        return found

    @cached_property
    def _capitalised(self) -> dict[tuple[int, str], list[tuple[str, Field]]]:
        """Single words of names by their length and by what is left of them without one letter."""
        found: dict[tuple[int, str], list[tuple[str, Field]]] = {}
        for rows in self._by_word.values():
            for name, field in rows:
                for word in name:
                    if len(word) >= LONG and word not in _COMMON:
                        for at in range(1, len(word)):
                            key = (at, word[:at] + word[at + 1 :])
                            found.setdefault(key, []).append((word, field))
        return found

    def misnamed_in(self, outline: Outline) -> Iterator[Misnamed]:
        end = 0
        for one in sorted((*self._other_parts(outline), *self._titled(outline))):
            if one.start >= end:
                end = one.end
                yield one

    def _is_unknown(self, word: str) -> bool:
        folded = fold(word)
        return (
            len(word) >= 3
            and folded not in _COMMON
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
        for found in _NAMES.finditer(outline.text):
            line = outline.line_at(found.start())
            head = outline.table_head(line)
            if _HEADING.match(outline.text, line.start, line.end) or head == line:
                continue
            words = list(_WORD.finditer(outline.text, *found.span()))
            for left, right in pairwise(words):
                near = self._half_of(left[0], right[0], outline.text)
                if near is not None:
                    yield Misnamed(left.start(), right.end(), near)
                    break

    def _half_of(self, first: str, last: str, text: str) -> Field | None:
        """Whoever has a first and a last name has just these; a firm or a thing may be called by
        half of its name, unless it is nowhere called by the whole."""
        if self._is_unknown(last):
            for name, field in self._by_word.get((True, fold(first)), ())[:MOST_ALIKE]:
                if len(name) == 2 and (_is_person(field) or str(field.value) not in text):
                    return field
        if self._is_unknown(first):
            for name, field in self._by_word.get((False, fold(last)), ())[:MOST_ALIKE]:
                if len(name) == 2 and _is_person(field):
                    return field
        if self._is_unknown(first) and self._is_unknown(last):
            return self._misspelt(last) or self._misspelt(first)
        return None

    def _misspelt(self, word: str) -> Field | None:
        """Another letter within it, as long as the word is."""
        folded = fold(word)
        for at in range(1, len(folded)) if len(folded) >= LONG else ():
            for other, field in self._capitalised.get((at, folded[:at] + folded[at + 1 :]), ()):
                if len(other) == len(folded) and other[at] != folded[at] and at + 1 < len(folded):
                    return field
        return None

    def _titled(self, outline: Outline) -> Iterator[Misnamed]:
        """`Dr. Voss`, of whom no text speaks."""
        for found in _TITLED.finditer(outline.text):
            words = _WORD.findall(found["name"])
            if words and all(map(self._is_unknown, words)):
                yield Misnamed(*found.span(), self._misspelt(words[-1]))


def _is_person(field: Field) -> bool:
    words = {*key_words(field.key), *key_words(field.record.key)}
    return not _PEOPLE.isdisjoint(words | {one.removesuffix("s") for one in words})
