"""Yes or no: clauses that speak of a field which is true, false or unknown, and say otherwise."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from callmark.grounding.binding import Binder
from callmark.grounding.numbers import language_of
from callmark.grounding.record_tree import (
    Field,
    RecordTree,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import WIDE, Outline, Span
from callmark.grounding.values import Value
from callmark.grounding.words import is_denied_abroad
from callmark.records.jsontext import Json

MOST_RECORDS = 12  # that a clause may speak of
FLAGS_ALONE = 3  # so many fields that say nothing but yes, no or null are flags
NEAREST_KEYS = 40  # of the records above and below that are looked at
SHORTEST = 3  # letters in which a pair of words and a key agree at least
FURTHEST_PART = 16  # words between a kind of thing and a part of it
WIDEST = 5  # words between the first and the last word of a key
SHORT_ANSWER = 8  # a text that is shorter may say yes or no
LONG_TEXT = 40  # a longer text may assert what a field denies
_TOKEN = re.compile(r"[^\W_]+(?:['’][^\W_]+)?")
_STOP = frozenset(
    """
    a an and are as at be by for from has have in is it its of on or that the to with
    """.split()
)
# Words of keys that say that something is so, not what it is.
_GENERIC = frozenset(
    """
    is has have can are was does do should will allow allows allowed enabled enable
    available supports supported include includes included offers offer accept accepts
    accepted flag status
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
# … or, without one, nothing at all.
_VAGUE = frozenset(
    """
    open good new full live free late early number order item name status type line data
    plan service price time day date top main active due closed valid current primary
    default public private local
    """.split()
)
# What anybody says of anything: such a key needs the key above it, or one beside it.
_EVERYDAY = frozenset(
    """
    casual modern friendly quiet lively cozy cosy clean comfortable popular relaxed simple
    traditional special nice fresh large small easy quick safe warm cold
    """.split()
)
# Other words for those of keys with two words or more.
_ALIKE: dict[str, tuple[str, ...]] = {
    stem(word): tuple(map(stem, others.split()))
    for word, others in {
        "good": "great ideal perfect suitable suited excellent accommodate accommodates",
        "outdoor": "outside patio outdoors",
        "smoking": "smoke smokers",
        "pets": "dogs cats animals",
        "wheelchair": "wheelchairs",
    }.items()
}
_OTHER_NAMES = {"takeout": ("takeaway", "carryout"), "wifi": ("wirelessinternet",)}
_CONTAINERS = frozenset(
    """
    attributes properties details data result results info fields features options settings
    """.split()
)
_NO = frozenset(
    """
    no not never without lack lacks lacking neither nor none cannot unavailable nicht kein
    keine keinen ohne sin nunca ningún ninguna sans aucun aucune jamais
    """.split()
)
_TURN = frozenset("but however although though whereas yet except besides only".split())
_VERBS = frozenset(
    """
    is are was were has have had offers offer provides provide does do did accepts accept
    features feature there serves serve includes include allows allow takes take boasts
    """.split()
)
# Where what follows a comma is a consequence: `…, making it a quiet place`.
_CONSEQUENCES = frozenset("making creating giving ensuring allowing leaving".split())
# What may stand before a word for all of a kind, or after it: `no parking`, `parking options`.
_BEFORE_ALL = frozenset(
    """
    offer offers offered provide provides have has any or and nor of for with is are there
    ample plenty sufficient convenient free some dedicated own
    """.split()
)
_AFTER_ALL = frozenset(
    """
    option options service services facility facilities space spaces area areas available
    availability access is are and or nor for at on nearby
    """.split()
)
_HARDLY = re.compile(
    r"\b(?:limited|difficult|hard|tough|challeng\w+|scarce|tricky|issues?|problem\w*|nightmare)\b",
    re.IGNORECASE,
)
_BE = frozenset("is are was were be been ist sind está están est sont".split())
_AFTER_PREDICATE = frozenset(
    "and or but for at in on from to now currently right today with as because since".split()
)
_OFF = frozenset("unavailable off disabled deactivated inactive absent missing".split())
_ANSWERS = {
    "no": False, "not": False, "none": False, "false": False, "unavailable": False, "nein": False,
    "yes": True, "true": True, "available": True, "included": True, "ja": True, "sí": True,
    "oui": True, "non": False,
}  # fmt: skip
_STATES = frozenset(
    "available included offered provided allowed accepted permitted supported possible".split()
)
_AFTER_ANSWER = re.compile(r"\s?[,;.)\]\n\\—–-]")
_SINGULAR = frozenset("is isn't was wasn't has hasn't does doesn't".split())
_NOT_SAID = re.compile(
    r"\b(?:if|whether|would|could|might|may|please|unless|should|unable|cannot|can['’]t|add|adding"
    r"|polic(?:y|ies)|importance|regarding|cover|covers|optional\w*|opcional\w*|optionnel\w*)\b|\?",
    re.IGNORECASE,
)
_NO_WORD_OF = re.compile(
    r"\b(?:no|not|any)\b[^.]{0,40}\b(?:information|info|details?|data|mention\w*|specif\w+)\b"
    r"|(?:\bnot|n['’]t)\s(?:\w+\s){0,2}(?:indicat\w+|clear|listed|stated|describ\w+"
    r"|known(?!\s(?:for|as)\b))\b"
    r"|n['’]t\b[^.]{0,40}\b(?:information|details?|mention|specify|say)\b"
    r"|\b(?:unknown|unclear|unspecified)\b",
    re.IGNORECASE,
)
# That the results say nothing of it.
_SILENT = re.compile(
    r"\b(?:no|any)\s(?:\w+\s){0,2}(?:information|info|details|data|mention)\b"
    r"|(?:\bnot|n['’]t)\s(?:\w+\s){0,2}(?:mention\w*|specif\w+|stated?|indicated?|say)\b"
    r"|\b(?:unknown|unclear|unspecified)\b",
    re.IGNORECASE,
)
_ODD_STEMS = frozenset("dying lying tying".split())  # that begin otherwise: `die`
# `"pool": null` says as little as the result does.
_NOTHING = re.compile(
    r"""["'*_`]*\s?[:=|][\s"'*_`]{0,6}(?:null\b|undefined\b|n/a\b|None(?=\s*[,}\]]))"""
)


class Polar(NamedTuple):
    """A field that is true, false or (None) unknown. `stems` are the words that mean it, `joined`
    the same as one word, `needed` one of which has to stand in the sentence too. `parts`: it is
    all of a kind (`parking`), and these are words for some of it (`street`, `garage`)."""

    field: Field
    state: bool | None
    stems: tuple[str, ...]
    joined: str
    needed: tuple[str, ...]
    parts: frozenset[str] = frozenset()


class PolarClause(NamedTuple):
    """A clause that speaks of such a field. `asserted` None: it says that nobody knows."""

    start: int
    end: int
    polar: Polar
    asserted: bool | None

    @property
    def agrees(self) -> bool:
        return self.polar.state is self.asserted


class PolarToken(NamedTuple):
    start: int
    end: int
    word: str


class PolarKey:
    """All fields that are spoken of with the same words, in the order of their records."""

    __slots__ = ("is_generic", "joined", "names", "needed", "numbers", "parts", "rows", "stems")

    def __init__(self, first: Polar) -> None:
        self.stems = first.stems
        self.joined = first.joined
        self.names = (first.joined, *_OTHER_NAMES.get(first.joined, ()))
        self.needed = first.needed
        self.parts = first.parts
        words = () if first.parts else key_words(first.field.key)
        self.is_generic = bool(words) and all(word in _GENERIC for word in words)
        self.rows: list[Polar] = []
        self.numbers: list[int] = []

    def add(self, row: Polar) -> None:
        self.rows.append(row)
        self.numbers.append(row.field.record.number)

    def meant(self, records: Sequence[ResultRecord]) -> Polar | None:
        """The field of these records; None where they have none, or say different things."""
        found: list[Polar] = []
        for record in records[:MOST_RECORDS]:
            first = bisect_left(self.numbers, record.number)
            last = bisect_right(self.numbers, record.last)
            found += self.rows[first : min(last, first + MOST_RECORDS)]
            for above in record.ancestors():
                at = bisect_left(self.numbers, above.number)
                if at < len(self.numbers) and self.numbers[at] == above.number:
                    found.append(self.rows[at])
        states = {row.state for row in found}
        return found[0] if len(states) == 1 else None


_PolarWords = tuple[tuple[str, ...], str, tuple[str, ...]]  # stems, joined, needed


class _PolarShape:
    """Records with the same keys, as those of a list are."""

    def __init__(self, keys: Sequence[str], around: Sequence[str]) -> None:
        """`around`: the keys of its parts, and of what it is a part of."""
        self._keys = keys
        self._shared = Counter(word for key in (*keys, *around) for word in set(key_words(key)))
        self._known: dict[tuple[str, str, bool], _PolarWords | None] = {}

    def words_meaning(self, key: str, above: str, is_unknown: bool) -> _PolarWords | None:
        """What means the field of a record, `above` being that record's key. None: nothing does
        that anybody would say."""
        asked = (key, above, is_unknown)
        if asked not in self._known:
            self._known[asked] = self._find_words(key, above, is_unknown)
        return self._known[asked]

    def _find_words(self, key: str, above: str, is_unknown: bool) -> _PolarWords | None:
        words = [word for word in key_words(key) if word not in _STOP]
        own = [word for word in words if self._shared[word] < 2 or len(words) == 1] or words
        core = [word for word in own if word not in _GENERIC] or own
        if not core or (is_unknown and core[-1] in ("id", "ids")):
            return None
        needed: tuple[str, ...] = ()
        if len(core) == 1 and core[0] in _EVERYDAY:
            beside = (one for other in self._keys if other != key for one in key_stems(other))
            needed = tuple(dict.fromkeys((*_spellings(above), *beside)))
        elif len(core) == 1 and core[0] in _COMMON:
            if above.casefold() not in _CONTAINERS:
                needed = tuple(one for one in key_stems(above) if one not in _GENERIC)
            if not needed and core[0] in _VAGUE:
                return None
        return tuple(map(stem, core)), stem("".join(core)), needed


def _spellings(key: str) -> Iterator[str]:
    """`ambience` is `ambiance`."""
    for one in key_stems(key):
        yield one
        if one.endswith(("enc", "anc")):
            yield f"{one[:-3]}{'a' if one[-3] == 'e' else 'e'}nc"


class PolarFields:
    """The yes-or-no fields of the results, by the words that they are spoken of with."""

    def __init__(self, tree: RecordTree) -> None:
        self._keys: dict[tuple[tuple[str, ...], tuple[str, ...], bool], PolarKey] = {}
        self._by_stem: dict[str, list[PolarKey]] = {}
        self._beginnings: set[str] = set()  # of keys that are written as two words as well
        self._flags: dict[int, bool] = {}
        self._shape_by_record: dict[int, _PolarShape] = {}
        self._shapes: dict[tuple[tuple[str, ...], tuple[str, ...]], _PolarShape] = {}
        # Where other records have a text or a number, null says that this one has none.
        self._valued = {one.key for one in tree.fields if state_of(one.value) == "other"}
        self._valued.update(one.key for one in tree.records if one.fields)
        for record in tree.records:
            self._add(record)
        self._tree = tree
        self._is_told_of: dict[str, bool] = {}
        self._language = "en"

    def _add(self, record: ResultRecord) -> None:
        states = [
            (field, state_of(field.value))
            for field in record.fields
            if field.number is None
            and (not isinstance(field.value, str) or len(field.value) < SHORT_ANSWER)
            and (field.value is not None or field.key not in self._valued)
        ]
        polar = [(field, state) for field, state in states if state != "other"]
        # Where nothing is yes or no, null says that something is not there, not that it is unknown.
        is_of_flags = len(polar) == len(record.fields) >= FLAGS_ALONE or any(
            state != "unknown" for _, state in polar
        )
        if not polar or not (is_of_flags or self._is_of_flags(record.parent)):
            return
        shape = self._shape_of(record)
        for field, state in polar:
            words = shape.words_meaning(field.key, record.key, state == "unknown")
            if words is not None:
                self._add_row(Polar(field, None if state == "unknown" else state == "yes", *words))
        if len(polar) == len(record.fields) > 1 and record.parent is not None:
            self._add_kind(record, record.parent, polar)

    def _add_kind(
        self, record: ResultRecord, parent: ResultRecord, polar: Sequence[tuple[Field, str]]
    ) -> None:
        """`parking: {street: true, garage: false}`: there is some."""
        states = {state for _, state in polar}
        words = self._shape_of(parent).words_meaning(record.key, parent.key, False)
        if words is None or ("yes" not in states and "unknown" in states):
            return
        shown = next((field for field, state in polar if state == "yes"), polar[0][0])
        parts = frozenset(one for field, _ in polar for one in key_stems(field.key))
        self._add_row(Polar(shown, "yes" in states, *words, parts))

    def _add_row(self, row: Polar) -> None:
        key = self._keys.get((row.stems, row.needed, bool(row.parts)))
        if key is None:
            key = self._keys[row.stems, row.needed, bool(row.parts)] = PolarKey(row)
            self._by_stem.setdefault(row.stems[0], []).append(key)
            if len(row.stems) > 1:
                for other in _ALIKE.get(row.stems[0], ()):
                    self._by_stem.setdefault(other, []).append(key)
                for name in key.names:
                    self._by_stem.setdefault(name, []).append(key)
                    # A stem may end in two letters that its word does not have.
                    self._beginnings.add(name[:-2][:SHORTEST])
        key.add(row)

    def _shape_of(self, record: ResultRecord) -> _PolarShape:
        known = self._shape_by_record.get(record.number)
        if known is not None:
            return known
        keys = tuple(field.key for field in record.fields)
        above = record.parent.fields[:NEAREST_KEYS] if record.parent is not None else ()
        around = (
            *(field.key for field in above),
            *dict.fromkeys(child.key for child in record.children[:NEAREST_KEYS]),
        )
        shape = self._shapes.get((keys, around))
        if shape is None:
            shape = self._shapes[keys, around] = _PolarShape(keys, around)
        self._shape_by_record[record.number] = shape
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
                or (field.number is None and state_of(field.value) in ("yes", "no"))
                for one in (record, *record.children[:MOST_RECORDS])
                for field in one.fields[:40]
            )
        return known

    def said_in(self, outline: Outline, binder: Binder) -> Iterator[PolarClause]:
        if not self._by_stem:
            return
        spoken = self._places_in(outline)
        self._language = language_of(outline.text) if spoken else "en"
        for sentence in outline.sentences:
            if bisect_left(spoken, sentence[0]) == bisect_left(spoken, sentence[1]):
                continue
            for clause in outline.clauses(sentence):
                if bisect_left(spoken, clause[0]) < bisect_left(spoken, clause[1]):
                    yield from self._said_in_clause(outline.text, sentence, clause, binder)

    def _places_in(self, outline: Outline) -> list[int]:
        """Where words stand that may be those of a key."""
        words = outline.words
        if "_" in outline.text:
            words = frozenset(part for word in words for part in word.split("_") if part)
        heads, beginnings = self._heads, self._beginnings
        if beginnings:
            short = [word for word in words if len(word) < SHORTEST]
            if any(one.startswith(tuple(short)) for one in beginnings):
                return self._places_of_all(outline.text)
        if not self._has_short_keys:
            words = frozenset(
                [one for one in words if one[:2] in heads or one[:SHORTEST] in beginnings]
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
        return (may_be and stem(word) in self._by_stem) or self._may_join(word, "")

    @cached_property
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

    @cached_property
    def _has_short_keys(self) -> bool:
        return any(len(one) < SHORTEST for one in self._beginnings)

    def _said_in_clause(
        self,
        text: str,
        sentence: Span,
        clause: Span,
        binder: Binder,
    ) -> Iterator[PolarClause]:
        tokens = [
            PolarToken(found.start(), found.end(), found[0].casefold().replace("’", "'"))
            for found in _TOKEN.finditer(text, *clause)
        ]
        stems = [stem(token.word) for token in tokens]
        found = {id(key): (key, at) for at, key in self._spoken_of(tokens, stems)}
        is_silent = bool(found) and _SILENT.search(text, *clause) is not None
        if not found or (
            not is_silent and (_NOT_SAID.search(text, *clause) or _NO_WORD_OF.search(text, *clause))
        ):
            return
        around = {
            stem(one)
            for one in _TOKEN.findall(
                text, max(sentence[0], clause[0] - WIDE), min(sentence[1], clause[1] + WIDE)
            )
        }
        for key, (first, last) in found.values():
            if key.needed and not around.intersection(key.needed):
                continue
            place = Value(tokens[first].start, tokens[last].end, "quote", "")
            if _NOTHING.match(text, place.end):
                continue
            row = key.rows[0] if len(key.rows) == 1 else self._bound(key, place, sentence, binder)
            if row is None:
                continue
            if is_silent:
                if row.state is not None:
                    yield PolarClause(place.start, place.end, row, None)
                continue
            if key.is_generic and not _is_predicate(text, tokens, first, last):
                continue
            denied = self._is_denied(text, sentence, tokens, first, last)
            if denied is None:
                continue
            asserted = not denied
            said = PolarClause(place.start, place.end, row, asserted)
            if key.parts and (
                said.agrees or not _is_of_all(text, clause, tokens, (first, last), key.parts)
            ):
                continue
            if said.agrees or not (asserted and self._is_told(row)):
                yield said

    def _is_denied(
        self, text: str, sentence: Span, tokens: Sequence[PolarToken], first: int, last: int
    ) -> bool | None:
        if self._language == "en":
            return _is_denied(text, tokens, first, last)
        return is_denied_abroad(text, sentence, tokens[first].start, tokens[last].end)

    def _bound(self, key: PolarKey, place: Value, sentence: Span, binder: Binder) -> Polar | None:
        """With several records, the one that is meant has to be named."""
        subject = binder.subject_of(place, sentence)
        if subject is None or (key.is_generic and subject.inherited):
            return None
        return key.meant(subject.records)

    def _spoken_of(
        self, tokens: Sequence[PolarToken], stems: Sequence[str]
    ) -> Iterator[tuple[tuple[int, int], PolarKey]]:
        places: dict[str, list[int]] = {}
        for at, one in enumerate(stems):
            places.setdefault(one, []).append(at)
        for at, one in enumerate(stems):
            for key in self._by_stem.get(one, ()):
                where = (at, at) if one in key.names else _together(key, at, places)
                if where is not None:
                    yield where, key
            if at + 1 < len(tokens) and self._may_join(tokens[at].word, tokens[at + 1].word):
                pair = stem(tokens[at].word + tokens[at + 1].word)
                for key in self._by_stem.get(pair, ()):
                    # `take out` is takeout; `in time` is not intimate.
                    if pair in key.names and len(key.stems) > 1:
                        yield (at, at + 1), key

    @cached_property
    def _prose(self) -> str:
        fields = self._tree.fields
        texts = [one.value for one in fields if isinstance(one.value, str)]
        return "\n".join(text.casefold() for text in texts if len(text) > LONG_TEXT)

    @cached_property
    def _told(self) -> set[str]:
        return {stem(word) for word in set(_TOKEN.findall(self._prose))}

    def _is_told(self, row: Polar) -> bool:
        """Some prose of the results speaks of it too: then nobody knows which of them is right."""
        known = self._is_told_of.get(row.joined)
        if known is None:
            words = row.stems if row.parts else key_words(row.field.key)
            known = self._is_told_of[row.joined] = self._told.issuperset(row.stems) and (
                len(row.stems) == 1
                or " ".join(words[-2:]) in self._prose
                or row.joined in self._prose
            )
        return known


def _plain(word: str) -> str:
    return word.casefold().replace("’", "'")


def state_of(value: Json) -> str:
    if value is True:
        return "yes"
    if value is False:
        return "no"
    if value is None:
        return "unknown"
    if isinstance(value, str) and len(value) < SHORT_ANSWER:
        folded = value.strip(" '\"").casefold()
        if folded in ("yes", "true", "free", "paid"):
            return "yes"
        if folded in ("no", "false", "none"):
            return "no"
    return "other"


def _together(key: PolarKey, at: int, places: dict[str, list[int]]) -> tuple[int, int] | None:
    """Where all words of the key stand near each other, from its first word at `at` on."""
    nearest = []
    for one in key.stems:
        near: list[int] = []
        for name in (one, *_ALIKE.get(one, ())) if len(key.stems) > 1 else (one,):
            where = places.get(name, ())
            right = bisect_left(where, at)
            near += where[max(0, right - 1) : right + 1]
        if not near:
            return None
        nearest.append(min(near, key=lambda place: abs(place - at)))
    first, last = min(nearest), max(nearest)
    return (first, last) if last - first <= WIDEST else None


def _is_of_all(
    text: str,
    clause: Span,
    tokens: Sequence[PolarToken],
    place: tuple[int, int],
    parts: frozenset[str],
) -> bool:
    """`no parking`, `ample parking is available`; not `no garage parking`, `the parking fee`."""
    first, last = place
    if first and tokens[first - 1].word not in _BEFORE_ALL | _NO:
        return False
    is_last = last + 1 == len(tokens) or _AFTER_ANSWER.match(text, tokens[last].end) is not None
    if not is_last and tokens[last + 1].word not in _AFTER_ALL:
        return False
    near = tokens[max(0, first - FURTHEST_PART) : last + FURTHEST_PART]
    return not any(stem(token.word) in parts for token in near) and not _HARDLY.search(
        text, *clause
    )


def _is_denied(text: str, tokens: Sequence[PolarToken], first: int, last: int) -> bool:
    before = [token.word for token in tokens[max(0, first - 2) : first]]
    if before == ["out", "of"]:
        return True
    is_negated = first > 0 and tokens[first - 1].word in _NO
    after = _denied_after(text, tokens, last, is_negated)
    return _denied_before(text, tokens, first) if after is None else after


def _denied_before(text: str, tokens: Sequence[PolarToken], first: int) -> bool:
    """A negation holds until another predicate begins."""
    denied = False
    for at, token in enumerate(tokens[: first + 1]):
        if at and "," in text[tokens[at - 1].end : token.start] and _has_verb(text, tokens, at):
            denied = False
        if at == first:
            break
        if token.word == "and" and at + 1 < first and _has_verb(text, tokens[: first + 1], at + 1):
            denied = False
        before = tokens[at - 1].word if at else ""
        if (
            token.word in _NO
            or token.word.endswith("n't")
            or (before, token.word) in (("rather", "than"), ("instead", "of"))
        ):
            denied = True
        elif token.word in _TURN or token.word in _CONSEQUENCES:
            denied = False
    return denied


def _is_predicate(text: str, tokens: Sequence[PolarToken], first: int, last: int) -> bool:
    """`is not available.`, not `the available variants`."""
    before = [token.word for token in tokens[max(0, first - 3) : first]]
    if not any(word in _BE or word.endswith("n't") for word in before):
        return False
    return last + 1 == len(tokens) or (
        tokens[last + 1].word in _AFTER_PREDICATE
        or _AFTER_ANSWER.match(text[tokens[last].end : tokens[last].end + 3]) is not None
    )


def _has_verb(text: str, tokens: Sequence[PolarToken], at: int) -> bool:
    """Has the part up to the next comma a verb of its own?"""
    for place in range(at, len(tokens)):
        if place > at and "," in text[tokens[place - 1].end : tokens[place].start]:
            return False
        if tokens[place].word in _VERBS:
            return True
    return False


def _ends_here(text: str, tokens: Sequence[PolarToken], at: int) -> bool:
    following = text[tokens[at].end : tokens[at].end + 3]
    return at + 1 == len(tokens) or _AFTER_ANSWER.match(following) is not None


def _denied_after(
    text: str, tokens: Sequence[PolarToken], last: int, is_negated: bool
) -> bool | None:
    """What is said of it afterwards, up to its verb. None: nothing."""
    is_apart = False
    for at in range(last + 1, len(tokens)):
        word, before = tokens[at].word, tokens[at - 1]
        # `water resistance: no`, and `water resistance no` where nothing follows.
        if at == last + 1 and ":" in text[before.end : tokens[at].start]:
            return None if word not in _ANSWERS and is_negated else not _ANSWERS.get(word, True)
        if at == last + 1 and word in _ANSWERS and _ends_here(text, tokens, at):
            # `no WiFi available`: what went before decides.
            return None if word in _STATES else not _ANSWERS[word]
        if at == last + 1 and word == "not" and at + 1 < len(tokens):
            return True if tokens[at + 1].word in _STATES else None
        if word == "unavailable":
            return True
        if word in ("but", "while"):
            return None
        is_apart = is_apart or (word == "and" and "," in text[before.end : tokens[at].start])
        if is_apart and word in _SINGULAR:
            return None  # `, and WiFi is not` is said of WiFi alone
        if word in _VERBS or word.endswith("n't"):
            if before.word in ("and", "but", "or", "which", "that", "they", "it"):
                return None
            following = [token.word for token in tokens[at + 1 : at + 3]]
            is_no = "not" in following or not _OFF.isdisjoint(following)
            return True if word.endswith("n't") or is_no else None
    return None
