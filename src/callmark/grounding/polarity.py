"""Yes or no: clauses that speak of a field which is true, false or unknown, and say otherwise."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from callmark.grounding.binding import Binder
from callmark.grounding.cues import Cue
from callmark.grounding.match import is_earlier
from callmark.grounding.negation import (
    ClauseWords,
    PolarToken,
    grammar_of,
    is_asserted_abroad,
    tokens_of,
)
from callmark.grounding.polar_keys import (
    ALIKE,
    SAME,
    SHORT_ANSWER,
    KeyWords,
    Polar,
    PolarKey,
    PolarShape,
    opposites_of,
    root,
    shape_with,
    state_of,
    without_prefix,
)
from callmark.grounding.quantifiers import LONGEST_HEAD, AnswerTables, find_exception, find_other
from callmark.grounding.record_tree import Field, RecordTree, ResultRecord, key_words
from callmark.grounding.spans import WIDE, Outline, Span
from callmark.grounding.tables import prose_of
from callmark.grounding.text import once
from callmark.grounding.values import Value
from callmark.records.trace import UserTurn

MOST_RECORDS = 12  # that a clause may speak of
FLAGS_ALONE = 3  # so many fields that say nothing but yes, no or null are flags
NEAREST_KEYS = 40  # of the records above and below that are looked at
SHORTEST = 3  # letters in which a pair of words and a key agree at least
WIDEST = 5  # words between the first and the last word of a key
LONG_TEXT = 40  # a longer text may assert what a field denies
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
# A clause with one of these says nothing of how things are …
_NOT_SAID = Cue(
    r"\b(?:if|whether|would|could|might|(?<!\d\s)may(?!\s\d)|unless|should|add|adding|importance|regarding"
    r"|recommend|securing|obtaining|purchasing|buying|only (?:with|for|if|on)"
    r"|please(?!\s(?:note|be\saware|keep\sin\smind|remember)))\b|\?",
    "if whether would could might may unless should add adding importance regarding please"
    " recommend securing obtaining purchasing buying only",
    "?",
)
_CANNOT = Cue(r"\b(?:unable|cannot|can['’]t)\b", "unable cannot can")
# … or with one of these, unless the results themselves speak of them.
_OF_RULES = Cue(r"\b(?:polic(?:y|ies)|covers?)\b", "policy policies cover covers")
# What has not happened yet, or only may happen.
_LATER = frozenset("once when until before after soon will to being".split())
_NO_PART = frozenset("a i is it are as".split())  # of a word that is written as two
_SENTENCE = re.compile(r"[^.!?\n]+[.!?\n]?")
_QUESTION = re.compile(r"[*_\s]*[?？]")
# What is said of these is not said of what they are about.
_MATTERS = frozenset(
    """
    terms provider providers rules rule requirement requirements cost costs fee fees price prices
    charge charges coverage claim claims policy policies request requests question questions
    conflict conflicts
    """.split()
)
_BY_US = frozenset("i we i've we've".split())
_PRONOUNS = frozenset("they he she it you".split())
_NO_WORD_OF = Cue(
    r"\b(?:no|not|any)\b[^.]{0,40}\b(?:information|info|details?|data|mention\w*|specif\w+)\b"
    r"|(?:\bnot|n['’]t)\s(?:\w+\s){0,2}(?:indicat\w+|clear|listed|stated|describ\w+"
    r"|known(?!\s(?:for|as)\b))\b"
    r"|n['’]t\b[^.]{0,40}\b(?:information|details?|mention|specify|say)\b"
    r"|(?:\bnot|n['’]t)\s(?:\w+\s){0,3}(?:issues?|problems?|causes?|culprits?)\b"
    r"|\b(?:unknown|unclear|unspecified)\b",
    "no not any unknown unclear unspecified",
    "n't n’t",
)
# That the results say nothing of it.
_SILENT = Cue(
    r"(?:\bno|(?:\bnot|n['’]t|\bwithout)\b[^.!?\n]{0,40}\bany)\s(?:\w+\s){0,2}"
    r"(?:information|info|details|data|mention)\b"
    r"|(?:\bnot|n['’]t)\s(?:\w+\s){0,2}(?:mention\w*|specif\w+|stated?|indicated?|say)\b"
    r"|\b(?:unknown|unclear|unspecified)\b",
    "no not without unknown unclear unspecified",
    "n't n’t",
)
# `one guest celebrated there, with live music`: so it was then, whatever the field says of now.
_ONCE = re.compile(
    r"\b(?:one|another|an?|first|second|third|other)\s(?:customer|guest|review|reviewer|visitor|user"
    r"|client|diner|patron|tenant|patient|member)s?\b[^.;!?\n]{0,80}\b(?:visit(?:ed)?|celebrat\w+"
    r"|attended|dinner|party|wedding|anniversary|birthday)\b",
    re.IGNORECASE,
)
_NO_MENTION = re.compile(r"\bno mention of\b", re.IGNORECASE)  # so one speaks of what is not there
_ODD_STEMS = frozenset("dying lying tying".split())  # that begin otherwise: `die`
# `"pool": null` says as little as the result does.
_NOTHING = re.compile(
    r"""["'*_`]*\s?[:=|][\s"'*_`]{0,6}(?:null\b|undefined\b|n/a\b|None(?=\s*[,}\]]))"""
)


class PolarClause(NamedTuple):
    """A clause that speaks of such a field. `asserted` None: it says that nobody knows."""

    start: int
    end: int
    polar: Polar
    asserted: bool | None

    @property
    def agrees(self) -> bool:
        if self.polar.is_absent:
            return self.asserted is not True
        return self.polar.state is self.asserted


class _Place(NamedTuple):
    """From the first to the last word of a key. `is_opposite`: one of them says its opposite."""

    first: int
    last: int
    is_opposite: bool = False


class PolarFields:
    """The yes-or-no fields of the results, by the words that they are spoken of with."""

    def __init__(self, tree: RecordTree) -> None:
        self._keys: dict[tuple[KeyWords, bool], PolarKey] = {}
        self._by_stem: dict[str, list[PolarKey]] = {}
        self._beginnings: set[str] = set()  # of keys that are written as two words as well
        self._flags: dict[int, bool] = {}
        self._shape_by_record: dict[int, PolarShape] = {}
        self._tree = tree
        for record in tree.records:
            self._add(record)
        self._is_told_of: dict[str, bool] = {}

    @once
    def _valued(self) -> set[str]:
        """Where other records have a text, a number or a part, null says that this one has none."""
        valued = {one.key for one in self._tree.fields if state_of(one.value)[0] == "other"}
        valued.update(one.key for one in self._tree.records if one.fields)
        return valued

    def _add(self, record: ResultRecord) -> None:
        states = [
            (field, *state_of(field.value))
            for field in record.fields
            if field.number is None
            and (not isinstance(field.value, str) or len(field.value) < SHORT_ANSWER)
        ]
        polar = [one for one in states if one[1] != "other"]
        if not polar:
            return
        # Where nothing is yes or no, null says that something is not there, not that it is unknown.
        is_all_flags = len(polar) == len(record.fields)
        is_of_flags = (is_all_flags and len(polar) >= FLAGS_ALONE) or any(
            state != "unknown" for _, state, _ in polar
        )
        if not (is_of_flags or self._is_of_flags(record.parent)):
            return
        shape = self._shape_of(record)
        is_listed = record.kind.endswith("/*")
        for field, state, manner in polar:
            words = shape.words_meaning(
                field.key, record.key, is_unknown=state == "unknown", is_listed=is_listed
            )
            if words is None:
                continue
            is_absent = state == "unknown" and (not is_all_flags or field.key in self._valued)
            if is_absent and len(words.stems) == 1:
                continue
            yes = None if state == "unknown" else state == "yes"
            if manner and not words.is_state:
                words = words._replace(manner=manner)
            self._add_row(Polar(field, yes, words, is_absent=is_absent))
        if is_all_flags and len(polar) > 1 and record.parent is not None:
            self._add_kind(record, record.parent, polar)

    def _add_kind(
        self, record: ResultRecord, parent: ResultRecord, polar: Sequence[tuple[Field, str, str]]
    ) -> None:
        """`parking: {street: true, garage: false}`: there is some."""
        states = {state for _, state, _ in polar}
        words = self._shape_of(parent).words_meaning(
            record.key, parent.key, is_unknown=False, is_listed=parent.kind.endswith("/*")
        )
        if words is None or ("yes" not in states and "unknown" in states):
            return
        shown = next((field for field, state, _ in polar if state == "yes"), polar[0][0])
        parts = frozenset(root(one) for field, *_ in polar for one in key_words(field.key))
        self._add_row(Polar(shown, "yes" in states, words, parts))

    def _add_row(self, row: Polar) -> None:
        key = self._keys.get((row.words, bool(row.parts)))
        if key is None:
            key = self._keys[row.words, bool(row.parts)] = PolarKey(row)
            self._note(key)
        key.add(row)

    def _note(self, key: PolarKey) -> None:
        stems = key.words.stems
        meaning = {stems[0], f"~{stems[0]}", *SAME.get(stems[0], ())}
        if stems[0] in key.bases:
            meaning.add(key.bases[stems[0]])
        if key.words.phrase:
            meaning.update(root(other[0]) for other in opposites_of(key.words.phrase))
        if len(stems) > 1:
            meaning.update(ALIKE.get(stems[0], ()))
            meaning.update(key.names)
            if key.is_done:
                meaning.update((stems[-1], f"~{stems[-1]}"))
            for name in key.names:
                # A stem may end in two letters that its word does not have.
                self._beginnings.add(name[:-2][:SHORTEST])
        for one in sorted(meaning):
            self._by_stem.setdefault(one, []).append(key)

    def _shape_of(self, record: ResultRecord) -> PolarShape:
        known = self._shape_by_record.get(record.number)
        if known is not None:
            return known
        keys = tuple(field.key for field in record.fields)
        above = record.parent.fields[:NEAREST_KEYS] if record.parent is not None else ()
        around = (
            *(field.key for field in above),
            *dict.fromkeys(child.key for child in record.children[:NEAREST_KEYS]),
        )
        shape = self._shape_by_record[record.number] = shape_with(keys, around)
        return shape

    def _is_of_flags(self, record: ResultRecord | None) -> bool:
        """Does it, or a part of it, say yes or no of anything?"""
        if record is None:
            return False
        known = self._flags.get(record.number)
        if known is None:
            known = self._flags[record.number] = any(
                field.value is True
                or field.value is False
                or (field.number is None and state_of(field.value)[0] in ("yes", "no"))
                for one in (record, *record.children[:MOST_RECORDS])
                for field in one.fields[:40]
            )
        return known

    def said_in(self, outline: Outline, binder: Binder) -> Iterator[PolarClause]:
        if not self._by_stem:
            return
        spoken = self._places_in(outline)
        if not spoken and "|" not in outline.text:  # nor in a table
            return
        language = grammar_of(outline.text)
        if not language:
            return
        tables = AnswerTables(outline)
        yield from self._said_in_tables(tables, outline.text, binder)
        for sentence in outline.sentences:
            if bisect_left(spoken, sentence[0]) == bisect_left(spoken, sentence[1]):
                continue
            if tables.is_head(sentence) or _QUESTION.match(outline.text, sentence[1]):
                continue
            for clause in outline.clauses(sentence):
                if bisect_left(spoken, clause[0]) < bisect_left(spoken, clause[1]):
                    if language == "en":
                        yield from self._said_in_clause(outline.text, sentence, clause, binder)
                    else:
                        yield from self._said_abroad(language, outline.text, sentence, binder)
                        break

    def _places_in(self, outline: Outline) -> list[int]:
        """Where words stand that may be those of a key."""
        words = outline.words
        if "_" in outline.text:
            words = frozenset(outline.placed.by_word)
        heads, beginnings = self._heads, self._beginnings
        if beginnings:
            short = [word for word in words if len(word) < SHORTEST]
            if any(one.startswith(tuple(short)) for one in beginnings):
                return self._places_of_all(outline.text)
        if not self._has_short_keys:
            words = frozenset(
                [
                    one
                    for one in words
                    if one[:2] in heads or one[:SHORTEST] in beginnings or without_prefix(one)
                ]
            ) | (words & _ODD_STEMS)
        return outline.places_of({word for word in words if self._may_mean(word)})

    def _places_of_all(self, text: str) -> list[int]:
        """The same, where a short word may be the beginning of what is written as two."""
        words = [_plain(word) for word in _TOKEN.findall(text)]
        meant = {word for word in set(words) if self._may_mean(word)}
        places = [
            at
            for at, (word, after) in enumerate(zip(words, [*words[1:], ""], strict=True))
            if word in meant or (len(word) < SHORTEST and self._may_join(word, after))
        ]
        starts = [found.start() for found in _TOKEN.finditer(text)] if places else []
        return [starts[at] for at in places]

    def _may_mean(self, word: str) -> bool:
        may_be = word[:2] in self._heads or word in _ODD_STEMS
        base = without_prefix(word)
        return (
            (may_be and root(word) in self._by_stem)
            or (base != "" and f"~{root(base)}" in self._by_stem)
            or self._may_join(word, "")
        )

    @once
    def _heads(self) -> frozenset[str]:
        """Stems begin as their words do: most words need not be stemmed."""
        return frozenset(one[:2] for one in self._by_stem)

    def _may_join(self, head: str, after: str) -> bool:
        """Could these be the two words of a key?"""
        if len(head) < SHORTEST:
            head += after
        return head[:SHORTEST] in self._beginnings or (
            self._has_short_keys and not self._beginnings.isdisjoint((head[:2], head[:1], ""))
        )

    @once
    def _has_short_keys(self) -> bool:
        return any(len(one) < SHORTEST for one in self._beginnings)

    def _said_in_clause(
        self,
        text: str,
        sentence: Span,
        clause: Span,
        binder: Binder,
    ) -> Iterator[PolarClause]:
        tokens = tokens_of(text, clause)
        found = {id(key): (key, at) for at, key in self._spoken_of(tokens)}
        outline = binder.outline
        is_silent = bool(found) and outline.finds(_SILENT, *clause)
        if not found or (not is_silent and self._claims_nothing(outline, clause)):
            return
        around: set[str] = set()
        if any(key.words.needed for key, _ in found.values()):
            start, end = max(sentence[0], clause[0] - WIDE), min(sentence[1], clause[1] + WIDE)
            around = {root(one) for one in _TOKEN.findall(text, start, end)}
        is_unnamed = is_silent and _NO_MENTION.search(text, *clause) is not None
        cannot = outline.finds(_CANNOT, *clause)
        for key, place in found.values():
            if key.words.needed and not around.intersection(key.words.needed):
                continue
            if _NOTHING.match(text, tokens[place.last].end) or _is_about(tokens, place.last):
                continue
            if place.first and tokens[place.first - 1].word == "last":  # `last online at 06:43`
                continue
            words = ClauseWords(text, tokens, place.first, place.last)
            if is_silent:
                row = self._row_of(key, words, sentence, binder)
                if row is None or row.state is None:
                    continue
                if row.state or not is_unnamed:
                    yield PolarClause(*words.span, row, None)
            elif not cannot or key.is_able or key.words.manner == "allowed":
                said = self._said_of(key, words, place, sentence, clause, binder)
                if said is not None:
                    yield said

    def _said_of(
        self,
        key: PolarKey,
        words: ClauseWords,
        place: _Place,
        sentence: Span,
        clause: Span,
        binder: Binder,
    ) -> PolarClause | None:
        row = self._row_of(key, words, sentence, binder)
        is_denied = words.is_denied(key.words.manner)
        if is_denied is None:
            return None
        asserted = is_denied is place.is_opposite
        if row is None and not key.parts:
            row = find_exception(key, words, clause, binder, asserted=asserted)
        if row is None or not self._is_said(key, row, words, asserted=asserted):
            return None
        if row.is_absent and words.has_number_after:
            asserted = True
        said = PolarClause(*words.span, row, asserted)
        if asserted and said.agrees:
            other = find_other(key, words, binder)
            if other is not None:
                return PolarClause(*words.span, other, False)
        if key.parts and (said.agrees or not words.is_of_all(clause, key.parts)):
            return None
        if said.agrees or not asserted:
            return said
        was_once = _ONCE.search(words.text, sentence[0], said.start)
        return None if was_once or self._is_told(row) else said

    def _said_in_tables(
        self, tables: AnswerTables, text: str, binder: Binder
    ) -> Iterator[PolarClause]:
        """`| Lift | yes | no |` under the names of two houses, or the other way round."""
        for cell in tables.cells:
            for asked, named in (cell.heads, cell.heads[::-1]):
                records = binder.records_in(named)
                tokens = tokens_of(text, asked)
                if not records or not 0 < len(tokens) <= LONGEST_HEAD:
                    continue
                for place, key in self._spoken_of(tokens):
                    row = key.meant(records)
                    if row is not None and row.state is not None and not key.parts:
                        asserted = cell.answer is not place.is_opposite
                        yield PolarClause(cell.start, cell.end, row, asserted)
                        break

    def _said_abroad(
        self, language: str, text: str, sentence: Span, binder: Binder
    ) -> Iterator[PolarClause]:
        tokens = tokens_of(text, sentence)
        found = {id(key): (key, at) for at, key in self._spoken_of(tokens)}
        for key, place in found.values():
            words = ClauseWords(text, tokens, place.first, place.last)
            asserted = is_asserted_abroad(language, text, tokens, place.first, place.last)
            if asserted is None or place.is_opposite or not key.is_thing:
                continue
            row = self._row_of(key, words, sentence, binder)
            if row is not None and row.state is not None:
                yield PolarClause(*words.span, row, asserted)

    def _claims_nothing(self, outline: Outline, clause: Span) -> bool:
        return (
            outline.finds(_NOT_SAID, *clause)
            or outline.finds(_NO_WORD_OF, *clause)
            or (
                outline.finds(_OF_RULES, *clause)
                and any(
                    root(found[0]) not in self._key_roots
                    for found in _OF_RULES.pattern.finditer(outline.text, *clause)
                )
            )
        )

    @once
    def _key_roots(self) -> frozenset[str]:
        return frozenset(root(word) for key in self._tree.keys for word in key_words(key))

    def _is_said(self, key: PolarKey, row: Polar, words: ClauseWords, *, asserted: bool) -> bool:
        """Do the words of the key, where they stand, say whether it is so?"""
        tokens, first = words.tokens, words.first
        manner = key.words.manner
        if key.words.is_state and not words.is_predicate():
            return False
        before = [token.word for token in tokens[max(0, first - 4) : first]]
        if not asserted and not _BY_US.isdisjoint(before):
            return False  # `I haven't changed anything` is no word of what has changed by itself
        if (
            before
            and before[-1].isdecimal()
            and words.last + 1 < len(tokens)
            and words.text[tokens[first - 1].end : tokens[first].start] == " "
        ):
            return False  # `480 planned minutes`
        if row.is_absent:  # `set a maximum runtime` does not say that there is one
            if not (words.has_number_after or words.is_answered or words.is_had):
                return False
        elif key.is_able and not tokens[first].word.endswith(("able", "ible")):
            if not (words.is_answered or any(word.startswith("can") for word in before)):
                return False  # `a refund` says nothing of what is refundable
        elif key.is_done and (not _LATER.isdisjoint(before) or not words.is_done()):
            return False
        # `breakfast` is no more than named, unless something says that it is included.
        return not (asserted and row.state is not True and manner and not words.says(manner))

    def _row_of(
        self, key: PolarKey, words: ClauseWords, sentence: Span, binder: Binder
    ) -> Polar | None:
        """With several records that say different things, the one that is meant has to be named;
        where all say the same, any of them would do, and the one that is named is told."""
        if len(key.rows) == 1 and self._is_alone(key):
            return key.rows[0]
        subject = binder.subject_of(Value(*words.span, "quote", ""), sentence)
        named = None if subject is None else key.meant(subject.records)
        if self._is_alone(key):
            return named or key.rows[0]
        if subject is None or (key.words.is_state and subject.inherited):
            return None
        return named

    def _is_alone(self, key: PolarKey) -> bool:
        """Is there nothing else that could be meant, or would it say the same?"""
        is_one = len(key.rows) == 1 or (
            not key.words.is_state
            and len(key.rows) <= NEAREST_KEYS
            and len({(row.state, row.field.call) for row in key.rows}) == 1
        )
        return is_one and (
            bool(key.parts)
            or sum(self._counts[one] for one in {row.field.key for row in key.rows})
            == len(key.rows)
        )

    @once
    def _counts(self) -> Counter[str]:
        return Counter(field.key for field in self._tree.fields)

    def _spoken_of(self, tokens: Sequence[PolarToken]) -> Iterator[tuple[_Place, PolarKey]]:
        roots = [root(token.word) for token in tokens]
        places: dict[str, list[int]] = {}
        for at, one in enumerate(roots):
            places.setdefault(one, []).append(at)
            base = without_prefix(tokens[at].word)
            if base:
                places.setdefault(f"~{root(base)}", []).append(at)
        for one in [one for one in places if one in self._by_stem]:
            for at in places[one]:
                for key in self._by_stem[one]:
                    where = _find_place(key, one, at, tokens, places)
                    if where is not None:
                        yield where, key
        for at in range(len(tokens) - 1):
            after = tokens[at + 1].word
            if after not in _NO_PART and self._may_join(tokens[at].word, after):
                pair = root(tokens[at].word + tokens[at + 1].word)
                for key in self._by_stem.get(pair, ()):
                    # `take out` is takeout; `in time` is not intimate.
                    if pair in key.names and len(key.words.stems) > 1:
                        yield _Place(at, at + 1), key

    @once
    def _prose(self) -> str:
        texts = [prose_of(text) for text, _ in self._tree.text_fields]
        return "\n".join(text.casefold() for text in texts if len(text) > LONG_TEXT)

    @once
    def _told(self) -> set[str]:
        return {root(word) for word in set(_TOKEN.findall(self._prose))}

    def _is_told(self, row: Polar) -> bool:
        """Some prose of the results speaks of it too: then nobody knows which of them is right."""
        stems, joined = row.words.stems, row.words.joined
        known = self._is_told_of.get(joined)
        if known is None:
            words = stems if row.parts else key_words(row.field.key)
            known = self._is_told_of[joined] = self._told.issuperset(stems) and (
                len(stems) == 1 or " ".join(words[-2:]) in self._prose or joined in self._prose
            )
        return known


class UserReports:
    """What the user told in the course of the conversation, sentence by sentence, questions left
    out. He may look at what no tool of the model can see: `mobile data is off`, on a phone whose
    account is active."""

    def __init__(self, said: Iterable[UserTurn]) -> None:
        self._said = said

    def hold(self, stems: Sequence[str], turn: int | None) -> bool:
        """Did one sentence before this turn speak of all of these?"""
        sentences = sorted((self._sentences.get(one, {}) for one in stems), key=len)
        return bool(sentences) and any(
            is_earlier(at, turn) and all(number in others for others in sentences[1:])
            for number, at in sentences[0].items()
        )

    @once
    def _sentences(self) -> dict[str, dict[int, int]]:
        """By the stem of each word the sentences that have it, with their turns."""
        found: dict[str, dict[int, int]] = {}
        number = 0
        for one in self._said:
            for sentence in _SENTENCE.findall(one.text):
                number += 1
                if not sentence.endswith("?"):
                    for word in set(_TOKEN.findall(sentence.casefold())):
                        found.setdefault(root(word), {})[number] = one.turn
        return found


def _is_about(tokens: Sequence[PolarToken], last: int) -> bool:
    """`insurance terms` are terms."""
    return last + 1 < len(tokens) and tokens[last + 1].word in _MATTERS


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")


def _find_place(
    key: PolarKey,
    one: str,
    at: int,
    tokens: Sequence[PolarToken],
    places: dict[str, list[int]],
) -> _Place | None:
    if key.words.phrase:
        return _find_phrase(key.words.phrase, at, tokens)
    if one in key.names:
        return _Place(at, at)
    return _together(key, at, places) or _said_of_pronoun(key, one, at, tokens)


def _find_phrase(phrase: tuple[str, ...], at: int, tokens: Sequence[PolarToken]) -> _Place | None:
    """`in stock`, which ends here; `out of stock` and `sold out` are its opposites."""
    for words, is_opposite in (
        (phrase, False),
        *((other, True) for other in opposites_of(phrase)),
    ):
        for start in (at - len(words) + 1, at):
            stated = tuple(token.word for token in tokens[max(0, start) : start + len(words)])
            if stated == words:
                return _Place(start, start + len(words) - 1, is_opposite)
    return None


def _said_of_pronoun(
    key: PolarKey, one: str, at: int, tokens: Sequence[PolarToken]
) -> _Place | None:
    """`they have been notified`, where the key is `client_notified`."""
    if len(key.words.stems) != 2 or not key.is_done or one.lstrip("~") != key.words.stems[1]:
        return None
    before = {token.word.partition("'")[0] for token in tokens[max(0, at - 4) : at]}
    return None if _PRONOUNS.isdisjoint(before) else _Place(at, at, one.startswith("~"))


def _together(key: PolarKey, at: int, places: dict[str, list[int]]) -> _Place | None:
    """Where all words of the key stand near each other, from its first word at `at` on."""
    nearest: list[tuple[int, bool]] = []
    stems = key.words.stems
    for one in stems:
        near: list[tuple[int, bool]] = []
        alike = (*SAME.get(one, ()), *(ALIKE.get(one, ()) if len(stems) > 1 else ()))
        opposite = (f"~{one}", *([key.bases[one]] if one in key.bases else ()))
        for name in (one, *alike, *opposite):
            where = places.get(name, ())
            right = bisect_left(where, at)
            near += [(place, name in opposite) for place in where[max(0, right - 1) : right + 1]]
        if not near:
            return None
        nearest.append(min(near, key=lambda place: abs(place[0] - at)))
    first, last = min(nearest)[0], max(nearest)[0]
    is_opposite = sum(opposite for _, opposite in nearest) % 2 == 1
    return _Place(first, last, is_opposite) if last - first <= WIDEST else None
