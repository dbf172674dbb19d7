"""Values that nobody served, several together. A single one may have been reckoned in a way that no
rule follows; where hardly another value has a base, or the very words come from nowhere, that is no
longer likely."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import accumulate, combinations, islice

from callmark.grounding.checking import StatementFinding
from callmark.grounding.naming import KnownWords
from callmark.grounding.numbers import MOST_BITS
from callmark.grounding.record_tree import RecordIndex, ResultRecord
from callmark.grounding.spans import Outline, Span
from callmark.grounding.sums import number_in
from callmark.grounding.text import SIGNS, STOP_WORDS, once
from callmark.grounding.workings import TurnAt
from callmark.records.statements import GOOD

FEWEST_LOOSE = 2
MOST_ROWS = 60  # whose runs are added up
MOST_CODES = 200  # every number without a base is looked for in them
LONGEST_CODED = 2000  # characters of a text in which codes are looked for
_CODE = re.compile(r"\b(?=\w*[A-Z])(?=\w*\d)[A-Z\d]{4,}\b")
FEWEST_FOREIGN = 3  # words that say what a sentence is about
_LETTER = re.compile(r"[^\W\d_]")
_PART = re.compile(r"\d+(?:\.\d+)+|[^\W_]*\d[^\W_]{2,}|\d[^\W_]{3,}")
_WORD = re.compile(r"[^\W\d_]{3,}")


# `about 975 m`: whoever copies says no such thing.
_ABOUT = re.compile(
    r"(?:\b(?:about|around|roughly|approximately|approx\.?|some|nearly|almost|etwa|rund|circa|ca\."
    r"|ungefähr|unos|unas|aproximadamente|environ)|[~≈])\s?\W?$",
    re.IGNORECASE,
)
_AND = re.compile(r"\d\W?\s?[^\W\d]{0,12}\s(?:and|und|y|et|to|or)\s$")
_LASTING = re.compile(r"\s?(?:hours?|hrs?|h|min(?:ute)?s?|stunden?|minuten|horas?|heures?)\b", re.I)
_CLOCK = re.compile(r"\b\d{1,2}:\d\d\b")
# `Split it with 18 % tip`, `what would I pay a month?`: what nobody served was asked for.
_TO_RECKON = re.compile(
    r"\d\s?%|\b(?:split|calculat\w+|comput\w+|convert\w*|work\s+out|monthly|per\s+(?:month|person"
    r"|year|head)|interest|instal?lments?|rates?\sfor|berechne\w*|umrechne\w*|aufteilen|calcul\w+"
    r"|convierte\w*|converti\w*)\b",
    re.IGNORECASE,
)
NEAR = 24
SHORTEST_HASH = 7
_HASH = re.compile(r"(?=[a-f]*\d)[a-f\d]{7,}", re.IGNORECASE)
_ENDS = re.compile(r"\bend(?:s|ing)?\s(?:in|with)\W*$|\bendet\s(?:auf|mit)\W*$|…$", re.IGNORECASE)


def _is_loose(one: StatementFinding, text: str, given: KnownDigits) -> bool:
    """A share is reckoned, if not always as any rule would, and seldom comes alone. What has the
    digits of a leaf may be that leaf, with another sign or in another scale than we know of."""
    is_loose = one.rule == "value" and one.label == "unsupported"
    return (
        is_loose
        and "%" not in text[one.start : one.end + 1]
        and not given.hold(one, text[one.start : one.end])
        and not _is_estimated(one, text)
        and not given.hold_part(one, text)
    )


def _is_estimated(one: StatementFinding, text: str) -> bool:
    """`about 975 m and 1,460 m`."""
    before = text[max(0, one.start - NEAR) : one.start]
    listed = _AND.search(before)
    if listed is not None:
        start = listed.start() + one.start - len(before)
        while start and (text[start - 1].isdigit() or text[start - 1] in ",."):
            start -= 1
        before = text[max(0, start - NEAR) : start]
    return _ABOUT.search(before) is not None


class KnownDigits:
    """The digits of all numbers of the results, without the zeros around them."""

    def __init__(self, index: RecordIndex, asked: str = "") -> None:
        self._asked = asked
        self._numbers = index.numbers
        self._texts = (text for text, _ in index.tree.text_fields)
        self._tree = index.tree

    def hold_part(self, one: StatementFinding, text: str) -> bool:
        """The beginning of a hash, some parts of a version or a code, a time between two that are
        given; or something that the user wants worked out."""
        said = text[one.start : one.end].casefold()
        before = text[max(0, one.start - NEAR) : one.start]
        if _LASTING.match(text, one.end) and self._has_times:
            return True
        if said.replace(".", "").isdecimal():
            if said in self._parts:
                return True
        elif _HASH.fullmatch(said):
            return any(part.startswith(said) for part in self._parts)
        elif _ENDS.search(before):
            return any(part.endswith(said) for part in self._parts)
        is_amount = "." in said[-3:] or "," in said[-3:] or before.rstrip()[-1:] in tuple(SIGNS)
        return is_amount and _TO_RECKON.search(self._asked) is not None

    @once
    def _has_times(self) -> bool:
        return any(len(_CLOCK.findall(text[:LONGEST_CODED])) > 1 for text in self._own_texts)

    @once
    def _own_texts(self) -> list[str]:
        return [text for text, _ in islice(self._tree.text_fields, MOST_CODES)]

    @once
    def _parts(self) -> frozenset[str]:
        """`2.1.0` and `2.1`, `8841` of `u_8841`, the digits of a hash. A plain number is no part:
        it has its own leaf."""
        found: set[str] = set()
        for text in self._own_texts:
            for word in _PART.findall(text[:LONGEST_CODED].casefold()):
                found.add(word)
                numbers = word.split(".")
                if all(map(str.isdecimal, numbers)):
                    found.update(".".join(numbers[:at]) for at in range(2, len(numbers)))
        return frozenset(found)

    @once
    def _digits(self) -> frozenset[str]:
        return frozenset(
            str(abs(number)).strip("0")
            for number in self._numbers
            if number.bit_length() <= MOST_BITS
        )

    def hold(self, one: StatementFinding, text: str) -> bool:
        digits = "".join(filter(str.isdecimal, text)).strip("0")
        if len(digits) > 1 and (digits in self._digits or self._is_coded(digits)):
            return True
        # Most are known by their digits, and none is asked for where few come from nowhere.
        return digits in self._totals or one.reach()

    @once
    def _totals(self) -> frozenset[str]:
        """What rows come to that follow one another, such as the months of a quarter, in each
        column and in all of them."""
        found: set[int] = set()
        for group in self._tree.groups:
            if len(group) <= MOST_ROWS:
                for column in _columns_of(group):
                    sums = list(accumulate(column, initial=0))
                    found.update(abs(last - first) for first, last in combinations(sums, 2))
        return frozenset(str(one).strip("0") for one in found if one)

    def _is_coded(self, digits: str) -> bool:
        """`27` in `04015G27KT`: a text may be read as only those can who know its code."""
        return any(digits in one for one in self._codes)

    @once
    def _codes(self) -> list[str]:
        found = (one for text in self._texts for one in _CODE.findall(text[:LONGEST_CODED]))
        return list(islice(found, MOST_CODES))


def _columns_of(group: Sequence[ResultRecord]) -> Iterator[list[int]]:
    """The numbers under each key, and what each row comes to."""
    rows = [
        {one.key: number for one in record.fields if (number := number_in(one)) is not None}
        for record in group
    ]
    for key in rows[0]:
        yield [row.get(key, 0) for row in rows]
    yield [sum(row.values()) for row in rows]


def find_baseless(
    outline: Outline,
    findings: Sequence[StatementFinding],
    known: KnownWords,
    turn_at: TurnAt,
    index: RecordIndex,
    asked: str = "",
) -> Iterator[StatementFinding]:
    """All findings, which are in order; those without a base by the rule of that name: the loose
    values of a turn in which no more values rest on a leaf, and those of a sentence of foreign
    words."""
    loose: Counter[Span | int | None] = Counter()
    based: Counter[Span | int | None] = Counter()
    end: int | None = None
    given = KnownDigits(index, asked)
    for one in findings:
        here = (turn_at(one.start), outline.sentence_at(one.start))
        if _is_loose(one, outline.text, given):
            # The parts of `(212) 555-0147` are one value.
            if end is None or _LETTER.search(outline.text, end, one.start):
                loose.update(here)
            end = one.end
        elif one.label in GOOD or one.fields:
            based.update(here)
        elif one.label == "user_said":
            based[here[1]] += 1
    unfollowed = _unfollowed(outline, findings)
    for one in findings:
        because = ""
        if _is_loose(one, outline.text, given):
            turn, sentence = turn_at(one.start), outline.sentence_at(one.start)
            if loose[turn] >= max(FEWEST_LOOSE, based[turn]):
                because = _of_turn(loose[turn], based[turn])
            elif (
                loose[sentence] >= FEWEST_LOOSE
                and not based[sentence]
                and _is_foreign(outline.text, sentence, known, loose[sentence] - FEWEST_LOOSE)
            ):
                because = "nothing else in its sentence is in a result"
        if because:
            one = one._replace(rule="baseless", because=f"{one.because}; {because}")
        elif one.start in unfollowed:
            one = one._replace(label="unchecked", rule="worked out", because="")
        yield one


def _of_turn(loose: int, based: int) -> str:
    if not based:
        return f"none of the {loose} values here is in a result"
    return f"{loose} of the {loose + based} values here are in no result"


def _unfollowed(outline: Outline, findings: Sequence[StatementFinding]) -> set[int]:
    """Where several numbers of one column of a table stand that nobody served, beside as many that
    have a base: the column is worked out in a way that no rule follows. A single one that differs
    from the way of its column is wrong."""
    columns: dict[tuple[int, int], list[int]] = {}
    based: Counter[int] = Counter()
    loose: Counter[int] = Counter()
    for one in findings:
        line = outline.line_at(one.start)
        head = outline.table_head(line) if outline.text.startswith("|", line.start) else None
        if head is None:
            continue
        if one.label in GOOD:
            based[head.start] += 1
        elif one.rule == "value" and one.label == "unsupported":
            column = outline.column_of(line, one.start)
            loose[head.start] += 1
            columns.setdefault((head.start, column), []).append(one.start)
    return {
        place
        for (table, _), places in columns.items()
        if len(places) >= FEWEST_LOOSE and based[table] >= loose[table]
        for place in places
    }


def _is_foreign(text: str, sentence: Span, known: KnownWords, spare: int) -> bool:
    """Has no result, no key and nobody else used its words? With more values some may have been,
    in whatever sense."""
    words = [
        word
        for word in set(_WORD.findall(text[sentence[0] : sentence[1]].casefold()))
        if word not in STOP_WORDS
    ]
    used = sum(map(known.hold, words))
    return len(words) >= FEWEST_FOREIGN and used <= min(spare, len(words) // 3)
