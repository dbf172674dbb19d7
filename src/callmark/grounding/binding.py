"""Whose value is it: the records that an answer speaks of where it states a value, and the fields
of theirs that it names, with what their numbers are measured in."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice

from callmark.grounding.record_fields import MAX_FIELDS, RecordFields
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    RecordSubject,
    ResultRecord,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.spans import WIDE, Outline, OutlineLine, Span
from callmark.grounding.text import Frozen, fold_once, once, place_words
from callmark.grounding.values import Value, values_of

FAR = 90  # the same after an identifier, where nothing else is spoken of in between
NEAR = 40  # characters between a name and what stands in brackets or after a comma behind it
LONGEST_VALUE = 40  # characters of a text that is one value
SHORT = 4  # words of a label
MOST_COLUMNS = 30  # of a table
_WORD = re.compile(r"[^\W\d_]{2,}")
_BESIDE = re.compile(r"[*_`\"'”]*(?:\s*[(\[][^()\[\]]*|\s*[,:—–-]\s[^,;()]*)")
_RIGHT_BESIDE = re.compile(r"[*_`\"'”]*(?:\s*[(\[][^()\[\]]*|\s*[:—–-]\s[^,;()]{0,20})")
_BEFORE = re.compile(r"[*_`]*\s?\(\s?(?:[^\W\d_]{2,10}(?:[ _]?id)?[ :#]{0,2})?", re.IGNORECASE)
_APART = re.compile(
    r"[.;→➝](?:\s|$)|->|\b(?:to|from|minus|plus|and|or|with|for|instead|versus|vs|than|previous\w*|original\w*"
    r"|difference|refund\w*|total\w*|charg\w+|balance|paid|new|current\w*)\b",
    re.IGNORECASE,
)
_LATER = re.compile(
    r"[;]|[,)*][*_]*\s(?:with|and|while|whereas|but|und|mit|während|aber|y|con|mientras|pero|et"
    r"|avec|tandis|mais)\s",
    re.IGNORECASE,
)
_THAN = re.compile(
    r"\b(?:than|als|compared (?:to|with)|versus|vs\.?|gegenüber"
    r"|(?:más|menos|plus|moins)\b[^.;,]{0,20}\bque)\s"
    r"(?:the\s|der\s|die\s|das\s|el\s|la\s|le\s)?[*_`\"“]{0,3}$",
    re.IGNORECASE,
)
_NEAR_THAN = 34
_COMPARING = frozenset("than als compared versus vs gegenüber más menos plus moins".split())
_NOT_ADJACENT = re.compile(rf"\d|{_APART.pattern}|(?:[^\W\d_]+\W+){{5}}", re.IGNORECASE)
# Of a long run of signs only the first ones are read, and once.
_LABELLED = re.compile(
    r"[\s>*•‣+–#-]{0,99}+(?:\(?\d{1,3}[.)]\s)?[*_\"`]{0,9}+(?:[^\n:]{1,60}|(?<=[^\n:])):"
    r"[*_\"`]{0,9}+(?:\s|$)"
)
_NOUNS_AFTER = re.compile(r"[*_]{0,2}[ -](?:[^\W\d_]{2,} ?){1,2}")
_JSON_KEY = re.compile(r'\s*"([^"]+)"\s*:\s*\{')
# Words that say how something is said, not what.
_EMPTY = frozenset(
    map(stem, "the your you our is are was of for in at on to and with per from by this".split())
)


NEAREST = 12  # records of one name that are looked at
MOST_PARTS = 12  # of a record
_COUNTS = frozenset("count counts total num number amount quantity hits size length".split())
LONGEST_NAME = 8  # words
MOST_NAMED = 40  # records of one name; with more of them it names nothing
SHORT_CODE = 4
_NAME_WORDS = re.compile(r"[^\W_]+")


@lru_cache(maxsize=1 << 13)
def words_of_name(name: str) -> tuple[str, ...]:
    return tuple(_NAME_WORDS.findall(fold_once(name)))


class Names:
    """The names of records, and where a text mentions them."""

    def __init__(
        self,
        records: Iterable[ResultRecord],
        names_of: Callable[[ResultRecord], Iterable[str]] = lambda record: record.names,
    ) -> None:
        self._by_words: dict[tuple[str, ...], list[ResultRecord]] = {}
        self._lengths: dict[str, tuple[int, ...]] = {}  # of the names that begin so, longest first
        self._codes: set[str] = set()  # `TIME` is a code; `time` in an answer is a word
        for record in records:
            for name in names_of(record):
                words = words_of_name(name)
                if words and len(words) <= LONGEST_NAME:
                    named = self._by_words.get(words)
                    if named is None:
                        named = self._by_words[words] = []
                        known = self._lengths.get(words[0], ())
                        if len(words) not in known:
                            lengths = sorted((*known, len(words)), reverse=True)
                            self._lengths[words[0]] = tuple(lengths)
                    if len(named) <= MOST_NAMED and (not named or named[-1] is not record):
                        named.append(record)
                    if len(name) <= SHORT_CODE and name.isupper() and name.isalpha():
                        self._codes.add(words[0])

    def mentions(self, text: str) -> list[Mention]:
        """From left to right, the longest name at each place."""
        if not self._lengths:
            return []
        placed = place_words(text)
        words = placed.words
        mentions: list[Mention] = []
        end = 0
        for at in placed.find(self._lengths.keys()):
            for length in self._lengths[words[at]] if at >= end else ():
                name = tuple(words[at : at + length])
                records = self._by_words.get(name, ())
                is_code = length == 1 and name[0] in self._codes
                if is_code and text[placed.starts[at] : placed.end_of(at)].islower():
                    continue
                if at + length <= len(words) and 0 < len(records) <= MOST_NAMED:
                    end = at + length
                    mentions.append(
                        Mention(placed.starts[at], placed.end_of(end - 1), tuple(records))
                    )
                    break
        return mentions


class Mention(Frozen, frozen=True):
    """A place in the answer that names records: more than one where they share the name; `is_part`:
    by a part of their name."""

    start: int
    end: int
    records: tuple[ResultRecord, ...]
    is_day: bool = False
    is_part: bool = False


def descend(subject: RecordSubject, loose: Sequence[Mention]) -> RecordSubject:
    """To the parts of these records that are told apart by what they are."""
    inner = {
        record.number: record
        for mention in loose
        for record in mention.records
        if any(one.holds(record) and one is not record for one in subject.records)
    }
    kept = tuple(record for _, record in sorted(inner.items()))
    return subject._replace(records=kept, loose=True) if kept else subject


class Binder:
    """One answer's mentions of records."""

    def __init__(self, outline: Outline, index: RecordIndex, loose: Sequence[Mention] = ()) -> None:
        """`loose`: mentions by what is no name, but tells a record from its siblings."""
        self.outline, self.text = outline, outline.text
        self._index = index
        self._fields: dict[int, RecordFields] = {}
        self._labels: dict[int, re.Match[str] | None] = {}
        self._labelled: dict[tuple[int, int], bool] = {}
        self._subjects: dict[tuple[int, int, Span], RecordSubject | None] = {}
        self._mentions = Names(index.tree.records).mentions(outline.text)
        self._starts = [mention.start for mention in self._mentions]
        self._loose = loose
        self._loose_starts = [mention.start for mention in loose]

    @once
    def all_mentions(self) -> list[Mention]:
        return sorted((*self._mentions, *self._loose), key=lambda one: (one.start, one.end))

    def is_name(self, value: Value) -> bool:
        """Does the value name a record itself?"""
        at = bisect_left(self._starts, value.end) - 1
        return at >= 0 and self._mentions[at].end > value.start

    def is_whole_name(self, value: Value) -> bool:
        """The same, with nothing before or after it: `#W1-CNL` is not W1."""
        at = bisect_left(self._starts, value.end) - 1
        return (
            at >= 0
            and self._mentions[at].end >= value.end
            and self._mentions[at].start <= value.start + 1
        )

    def subject_of(self, value: Value, sentence: Span) -> RecordSubject | None:
        """The record right beside it, else those that its clause names, else its sentence, else
        its line, else what the line stands under and after."""
        if not self._mentions and not self._loose:
            return None
        asked = (value.start, value.end, sentence)
        if asked not in self._subjects:
            self._subjects[asked] = self._find_subject(value, sentence)
        return self._subjects[asked]

    def _find_subject(self, value: Value, sentence: Span) -> RecordSubject | None:
        line = self.outline.line_at(value.start)
        beside = self._beside(value, sentence) or self._loosely_beside(value, sentence)
        if beside is not None:
            return RecordSubject(_most_specific([beside]), beside=True)
        for near in self._named_near(value, sentence):
            found = self._spoken_of(self._within(*near, value))
            loose = self._spoken_of(self._loosely_within(*near, value))
            if not (found or loose):
                continue
            later = _LATER.search(self.text, value.end, near[1])
            if later is not None:  # what is named there is spoken of there
                found = [one for one in found if one.start < later.start()]
                loose = [one for one in loose if one.start < later.start()]
            if found:
                return descend(RecordSubject(_most_specific(found)), loose)
            if loose:
                return self._under_heads(RecordSubject(_most_specific(loose), loose=True), line)
        head = self.head_cell(value, line)
        is_prose = head is None and not self.text.startswith("|", line.start)
        before = (max(line.start, value.start - WIDE), value.start)
        places: list[Span] = [before] if head is None else [before, head]
        for place in places:
            found = self._spoken_of(self._within(*place, value))
            if found:
                return RecordSubject(_most_specific(found[-1:]), distant=is_prose)
            loose = self._spoken_of(self._loosely_within(*place, value))
            if loose:
                return RecordSubject(_most_specific(loose[-1:]), loose=True, distant=is_prose)
        for start, end in self._above(line):
            found = self._within(start, end, value)
            if found:
                return RecordSubject(_most_specific(found), inherited=True)
        return None

    def _named_near(self, value: Value, sentence: Span) -> list[Span]:
        """What stands near it in its clause, then in its sentence; none where nothing is named."""
        clause = self.outline.clause_at(value.start)
        near = [self.outline.near(value, span) for span in dict.fromkeys((clause, sentence))]
        around = min([at for at, _ in near]), max([at for _, at in near])
        is_named = _is_any_in(self._starts, *around) or _is_any_in(self._loose_starts, *around)
        return near if is_named else []

    def _spoken_of(self, mentions: list[Mention]) -> list[Mention]:
        """Without those that something else is compared with: `231 m higher than Mount Logan`."""
        if not self._may_compare:
            return mentions
        return mentions and [
            one
            for one in mentions
            if _THAN.search(self.text, max(0, one.start - _NEAR_THAN), one.start) is None
        ]

    @once
    def _may_compare(self) -> bool:
        return not _COMPARING.isdisjoint(self.outline.words)

    def mentions_in(self, span: Span) -> list[Mention]:
        """What this part of the answer names records with, in its order."""
        nowhere = Value(span[1], span[1], "quote", "")
        return self._within(*span, nowhere) or self._loosely_within(*span, nowhere)

    def records_in(self, span: Span) -> tuple[ResultRecord, ...]:
        return _most_specific(self.mentions_in(span))

    @once
    def mentioned(self) -> frozenset[int]:
        """The numbers of all records that the answer names."""
        return frozenset(
            record.number for one in (*self._mentions, *self._loose) for record in one.records
        )

    def _under_heads(self, subject: RecordSubject, line: OutlineLine) -> RecordSubject:
        """Under the name of a record only what lies in it is told by a day or a kind."""
        nobody = Value(line.end, line.end, "quote", "")
        for start, end in reversed(line.heads):
            named = self._within(start, end, nobody)
            if named:
                above = _most_specific(named)
                kept = tuple(
                    one for one in subject.records if any(one.is_kin(other) for other in above)
                )
                if kept:
                    return subject._replace(records=kept)
                # `Porto` in a headline is the place of all days, not one beside them.
                if any(one.children or one.kind.endswith("/*") for one in above):
                    return RecordSubject(above, inherited=True)
        return subject

    def narrow(self, subject: RecordSubject, value: Value) -> RecordSubject:
        """Of several records with one name, those inside what the lines above speak of."""
        records = subject.records
        line = self.outline.line_at(value.start)
        for start, end in islice(self._above(line), NEAREST) if len(records) > 1 else ():
            around = [
                record
                for mention in self._within(start, end, value)
                for record in mention.records[:NEAREST]
            ]
            kept = tuple(one for one in records if any(other.is_kin(one) for other in around))
            records = kept or records
        return subject._replace(records=records)

    def _beside(self, value: Value, sentence: Span) -> Mention | None:
        """`HAT 023 ($364)`, `$364 (HAT 023)`, and the last identifier before it, unless something
        else is spoken of in between."""
        at = bisect_left(self._starts, value.start) - 1
        if at >= 0:
            mention = self._mentions[at]
            if mention.start >= sentence[0]:
                between = (mention.end, value.start)
                if value.start - mention.end <= NEAR and _BESIDE.fullmatch(self.text, *between):
                    return mention
        return self._right_after(value, sentence) or self._last_identifier(at, value, sentence)

    def _loosely_beside(self, value: Value, sentence: Span) -> Mention | None:
        """`Kaffee Kern – €7.60`, of the only record that has this whole text."""
        at = bisect_left(self._loose_starts, value.start) - 1
        mention = self._loose[at] if at >= 0 else None
        if mention is None or mention.is_part or mention.is_day or mention.start < sentence[0]:
            return None
        is_near = 0 <= value.start - mention.end <= NEAR and self.text[mention.start].isupper()
        is_beside = is_near and _RIGHT_BESIDE.fullmatch(self.text, mention.end, value.start)
        return mention if is_beside else None

    def _last_identifier(self, at: int, value: Value, sentence: Span) -> Mention | None:
        if at < 0 or self._mentions[at].start < sentence[0]:
            return None
        mention = self._mentions[at]
        if value.start - mention.end > FAR or not self._is_identifier(mention):
            return None
        return None if _APART.search(self.text, mention.end, value.start) else mention

    def _right_after(self, value: Value, sentence: Span) -> Mention | None:
        after = bisect_left(self._starts, value.end)
        if after < len(self._mentions):
            mention = self._mentions[after]
            if mention.start < sentence[1] and _BEFORE.fullmatch(
                self.text, value.end, mention.start
            ):
                return mention if self._is_identifier(mention) else None
        return None

    def _is_identifier(self, mention: Mention) -> bool:
        return any(map(str.isdecimal, self.text[mention.start : mention.end]))

    def _above(self, line: OutlineLine) -> Iterator[Span]:
        """Lines before it in its block, the nearest first; then what it stands under, and what
        stands before that. A plain sentence inherits nothing from sentences before it."""
        if self._is_labelled(line):
            yield from reversed(line.siblings)
            if line.level > 0:  # `- Item ID: …` may come last
                after = self.outline.lines_after(line)
                yield from ((one.start, one.end) for one in after if self._is_labelled(one))
        is_json = self.text.startswith('"', line.start + int(line.level))
        for head in reversed(line.heads):
            if is_json and not self._is_part(head):
                return  # another object speaks of another record
            yield head
            above = self.outline.line_at(head[0])
            if self._is_labelled(above):
                yield from reversed(above.siblings)

    def _is_part(self, head: Span) -> bool:
        """`"options": {` is a part of the record whose fields stand before it, if any result has
        records with such a part."""
        found = _JSON_KEY.match(self.text, *head)
        return found is not None and found[1] in self._part_keys

    @once
    def _part_keys(self) -> frozenset[str]:
        return frozenset(
            record.key
            for record in self._index.tree.records
            if record.parent is not None and not record.names
        )

    def _label(self, line: OutlineLine) -> re.Match[str] | None:
        if line.start not in self._labels:
            self._labels[line.start] = _LABELLED.match(self.text, line.start, line.end)
        return self._labels[line.start]

    def _is_labelled(self, line: OutlineLine) -> bool:
        """`- Price: $54`, or `- Cabin prices:` over a list; not a sentence before a list."""
        found = self._label(line)
        return found is not None and (
            found.end() < line.end or len(_WORD.findall(found[0])) <= SHORT
        )

    def _within(self, start: int, end: int, but: Value) -> list[Mention]:
        return _between(self._mentions, self._starts, start, end, but)

    def _loosely_within(self, start: int, end: int, but: Value) -> list[Mention]:
        found = _between(self._loose, self._loose_starts, start, end, but) if self._loose else []
        if but.kind == "moment":  # `from May 3 to May 5`: no day is said of another
            return [one for one in found if not one.is_day]
        return found

    def adjacent_to(self, value: Value, sentence: Span) -> RecordSubject | None:
        """`Netflix €10.99, Spotify €9.99`: what is named right before it, whatever else is named
        around."""
        last = self.adjacent_mention(value, sentence)
        return None if last is None else RecordSubject(_most_specific([last]), loose=True)

    def adjacent_mention(self, value: Value, sentence: Span) -> Mention | None:
        start = max(sentence[0], value.start - NEAR)
        before = (start, value.start)
        found = self._within(*before, value) + self._loosely_within(*before, value)
        last = max(self._spoken_of(found), key=lambda one: one.end, default=None)
        if last is None or _NOT_ADJACENT.search(self.text, last.end, value.start):
            return None
        return last

    def columns_around(self, value: Value) -> list[list[int]]:
        """What the records that the block of a value names have under each of their keys."""
        columns: dict[tuple[str, str], list[int]] = {}
        for record in self._around(value):
            for inner in record.within():
                for field in inner.fields[:40]:
                    if field.number is not None:
                        columns.setdefault((inner.key, field.key), []).append(field.number)
        return [column[:12] for column in columns.values() if len(column) > 1]

    def _around(self, value: Value) -> list[ResultRecord]:
        line = self.outline.line_at(value.start)
        records: dict[int, ResultRecord] = {}
        for start, end in (self.outline.near(value, line.span), *line.siblings, *line.heads):
            for mention in self._within(start, end, value):
                # A flight that stands in three offers is one flight.
                alike = {tuple(self.fields_of(one).numbers): one for one in mention.records[3::-1]}
                records.update((one.number, one) for one in alike.values())
        return [records[number] for number in sorted(records)][:20]

    def fields_of(self, record: ResultRecord) -> RecordFields:
        found = self._fields.get(record.number)
        if found is None:
            found = self._fields[record.number] = RecordFields(record)
        return found

    def numbers_of(self, subject: RecordSubject) -> Iterator[int]:
        for record in subject.records[:NEAREST]:
            yield from self.fields_of(record).numbers

    def counted_fields(self, subject: RecordSubject, unit: str) -> list[Field]:
        """The texts of the records that are a number of the same things: `8GB`, `15-inch`."""
        return [
            field
            for record in subject.records[:NEAREST]
            for field in self.fields_of(record).by_unit.get(unit, ())[:NEAREST]
        ]

    def named_fields(
        self, subject: RecordSubject, words: frozenset[str], value: Value
    ) -> list[Field]:
        """The fields of the records, else of what holds them, that all these words name: none
        where they name two kinds."""
        if value.kind not in ("number", "moment") or not words:
            return []
        records = subject.records[:NEAREST]
        inside = [
            field
            for record in records
            for word in sorted(words)
            for field in self.fields_of(record).by_stem.get(word, ())[:NEAREST]
        ]
        found = best_named(inside, words, value)
        if found:
            return found
        above = {one.number: one for record in records for one in record.ancestors()}
        outside = [field for one in above.values() for field in one.fields[:MAX_FIELDS]]
        return best_named(outside, words, value)

    @staticmethod
    def fields_of_part(subject: RecordSubject, words: frozenset[str]) -> list[Field]:
        """All that lies under the key that these words name: `Available seats: 5`, where there are
        some in each of three classes."""
        return [
            field
            for record in subject.records[:NEAREST]
            for part in record.children[:MOST_PARTS]
            if words and part.fields and words <= set(key_stems(part.key))
            for field in part.fields[:MOST_PARTS]
        ]

    def own_fields(
        self, record: ResultRecord, like: Sequence[Field], *, widely: bool
    ) -> list[Field]:
        """The fields of the record that say of it what these say of others; `widely`: else those
        of what it is a part of. A part with a name of its own must be of their kind."""
        keys = sorted({field.key for field in like})
        groups = {_group(field.record) for field in like}
        for one in (record, *record.ancestors()) if widely else (record,):
            by_key = self.fields_of(one).by_key
            found = [
                field
                for key in keys
                for field in by_key.get(key, ())[:NEAREST]
                if field.record is one or not field.record.names or _group(field.record) in groups
            ]
            if found:
                return found
        return []

    def label_of(self, value: Value) -> frozenset[str]:
        """The words of `Departure:` in a line, else those of the clause before the value."""
        line = self.outline.line_at(value.start)
        head = self.head_cell(value, line)
        labelled = self._label(line)
        if head is not None:
            start, end = head
        elif labelled is not None and labelled.end() <= value.start + 2:
            start, end = labelled.span()
        else:
            start, end = self.outline.clause_at(value.start)[0], value.start
            start = max(start, end - 60)
        words = {stem(word) for word in _WORD.findall(self.text[start:end])}
        return frozenset(words - _EMPTY)

    def head_cell(self, value: Value, line: OutlineLine) -> Span | None:
        """The cell at the head of the column of a Markdown table."""
        if not self.text.startswith("|", line.start):
            return None
        head = self.outline.table_head(line)
        if head is None or head.start == line.start:
            return None
        column = self.outline.column_of(line, value.start)
        start = head.start
        for _ in range(min(column, MOST_COLUMNS)):
            start = self.text.find("|", start, head.end) + 1
            if not start:
                return None
        end = self.text.find("|", start, head.end)
        return start, end if end >= 0 else head.end

    def is_in_list(self, value: Value) -> bool:
        """In a row of a table, or an item of a list?"""
        line = self.outline.line_at(value.start)
        return line.level > 0 or self.text.startswith("|", line.start)

    def linked(self, value: Value, fields: Sequence[Field], sentence: Span) -> list[Field]:
        """Those with words of their key, or with the words beside the number in them, near it."""
        if not fields:
            return []
        start, end = max(sentence[0], value.start - 60), min(sentence[1], value.end + 40)
        near = {stem(word) for word in _WORD.findall(self.text[start:end])}
        after = _WORD.search(self.text, value.end, min(len(self.text), value.end + 20))
        noun = stem(after[0]) if after else None
        keys = {field.key for field in fields}
        spoken_of = {key for key in keys if near.intersection(key_stems(key))}
        if noun is not None:  # `12 boats` is what a count may be a count of
            counts = {key for key in keys if not _COUNTS.isdisjoint(key_words(key))}
            if "size" in counts and any(
                one.key == "size" and isinstance(one.value, str) for one in fields
            ):  # it is worn
                counts.remove("size")
            spoken_of |= counts
        if len(spoken_of) == len(keys):
            return list(fields)
        return [
            field
            for field in fields
            if field.key in spoken_of
            or (
                noun is not None
                and isinstance(field.value, str)
                and noun in map(stem, _WORD.findall(field.value[:60]))
            )
        ]

    def words_beside(self, value: Value) -> frozenset[str]:
        """`Business ($338)`, `231 customers`: what stands right before and after it in its line."""
        start = max(self.outline.line_at(value.start).start, value.start - 25)
        after = _NOUNS_AFTER.match(self.text, value.end)
        beside = self.text[start : value.start] + (after[0] if after else "")
        return frozenset(map(stem, _WORD.findall(beside)))

    def is_labelled(self, value: Value) -> bool:
        """Is it what a line `Label: value` says, and all that it says?"""
        place = value.start, value.end
        found = self._labelled.get(place)
        if found is None:
            found = self._labelled[place] = self._find_labelled(value)
        return found

    def _find_labelled(self, value: Value) -> bool:
        line = self.outline.line_at(value.start)
        if self.head_cell(value, line) is not None:
            return True
        labelled = self._label(line)
        return (
            labelled is not None
            and 0 <= value.start - labelled.end() <= 2
            and '"' not in labelled[0]  # in JSON the keys above it belong to the label
            and not self._within(*labelled.span(), value)  # `Item ID 8470360507:` is a name
        )


def _between(
    mentions: Sequence[Mention], starts: Sequence[int], start: int, end: int, but: Value
) -> list[Mention]:
    first, stop = bisect_left(starts, start), min(end, start + 2 * WIDE)
    if first == len(starts) or starts[first] >= stop:  # as often as not
        return []
    last = bisect_left(starts, stop, first)
    return [
        one
        for one in mentions[first:last]
        if not (one.start < but.end <= one.end or but.start <= one.start < but.end)
    ]


def _is_any_in(places: Sequence[int], start: int, end: int) -> bool:
    at = bisect_left(places, start)
    return at < len(places) and places[at] < end


def best_named(fields: Sequence[Field], words: frozenset[str], value: Value) -> list[Field]:
    best: dict[str, Field] = {}
    most = 0
    for field in fields:
        stems = frozenset(key_stems(field.key))
        known = stems.union(key_stems(field.record.key))
        own = words & stems
        if not own or not words <= known or not is_like(field, value):
            continue
        score = 2 * len(words) + (own == stems)
        if score > most:
            best, most = {}, score
        if score == most:
            best[f"{field.call} {field.path}"] = field
    kinds = {(field.record.key, field.key) for field in best.values()}
    return list(best.values()) if len(kinds) == 1 else []


def _most_specific(mentions: Sequence[Mention]) -> tuple[ResultRecord, ...]:
    """Without those that merely hold another one: an order, where one of its items is named."""
    if len(mentions) == 1 and len(mentions[0].records) == 1:  # nearly always
        return mentions[0].records
    records = {record.number: record for one in mentions for record in one.records}
    ordered = sorted(records)
    kept = []
    for place, number in enumerate(ordered):
        following = ordered[place + 1] if place + 1 < len(ordered) else None
        if following is None or following > records[number].last:
            kept.append(records[number])
    return tuple(kept)


def is_named_by(label: frozenset[str], field: Field) -> bool:
    return not label.isdisjoint(key_stems(field.key) + key_stems(field.record.key))


def is_like(field: Field, value: Value, *, partly: bool = False) -> bool:
    """Could the field have held such a value, or a day and an hour of which it is a part? Prose
    says many things, under one key."""
    if value.kind == "number" and field.number is not None:
        return True
    if not isinstance(field.value, str) or len(field.value) > LONGEST_VALUE:
        return False
    if len(_WORD.findall(field.value)) > SHORT:
        return False
    if value.kind == "moment":
        return any(
            (stated.has_day == moment.has_day and (stated.hour is None) == (moment.hour is None))
            or (partly and moment.has_day and moment.hour is not None)
            for stated in value.moments
            for other in values_of(field.value)
            for moment in other.moments
        )
    return any(map(str.isdecimal, field.value))


def _group(record: ResultRecord) -> str:
    """What a record is called together with its like: the key of its list, or of its table."""
    if any(map(str.isdecimal, record.key)) and record.parent is not None:
        return record.parent.key
    return record.key
