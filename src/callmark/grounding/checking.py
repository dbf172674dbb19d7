"""Statements: what an answer says of the results, value by value and clause by clause."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

from callmark.grounding import arithmetic, claims
from callmark.grounding.arithmetic import Worked, says_the_same
from callmark.grounding.attribution import MOST_OWN, Attribution, Slips, place_of_field
from callmark.grounding.binding import (
    Binder,
    is_named_by,
)
from callmark.grounding.chains import is_within_reach
from callmark.grounding.counting import CountedThings
from callmark.grounding.field_words import Measures
from callmark.grounding.further import FurtherWorkings
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.quantifiers import IntroducedLists
from callmark.grounding.reading import dimension_of, read_otherwise, unit_called
from callmark.grounding.record_fields import (
    find_all_kin,
    find_first_and_all_kin,
    find_joined,
    find_kin,
)
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    RecordSubject,
    ResultRecord,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import Frozen, names_an_ending, once
from callmark.grounding.told_of import Beside, TellingOf
from callmark.grounding.values import Value, decimals_of, is_one_value, is_small
from callmark.grounding.workings import FEW_NUMBERS, TurnAt
from callmark.records.statements import FLAGS, GOOD, StatementLabel

if TYPE_CHECKING:
    from callmark.grounding.contrasts import Contrasts
    from callmark.grounding.mismatches import Mismatches

LONG_TEXT = 200  # characters; small numbers of a longer one measure many things
NEAR_STATED = 4  # numbers before one that may be the same in another unit
_SERVED_FLAGS: frozenset[StatementLabel] = frozenset(("misattributed", "wrong_field"))
_OF_SO_MANY = re.compile(r"\s(?:out )?of\s(?:[^\W\d_]+\s){0,3}\d[\d.,]*\s?([^\W\d_]{1,12})\b")
_OF = re.compile(r"\s(?:of|out of|von|der|de|des|sur|aus)\s", re.IGNORECASE)


class StatementFinding(Frozen, frozen=True, gc=True):
    """One statement and its label. `fields` are the leaves that it rests on, or that it should
    have; `because` names what was expected; `reach`: do two steps lead to it from short results?"""

    start: int
    end: int
    label: StatementLabel
    rule: str
    fields: tuple[Field, ...] = ()
    because: str = ""
    reach: Callable[[], bool] = lambda: False


class Checker:
    """One answer against the records and what the user said."""

    def __init__(
        self,
        outline: Outline,
        values: list[Value],
        index: RecordIndex,
        binder: Binder,
        said: Said,
        turn_at: TurnAt,
        beside: Beside,
    ) -> None:
        self.text = outline.text
        self.outline = outline
        self.values = values
        self._starts = [value.start for value in values]
        self.index = index
        self.binder = binder
        self.said = said
        self.turn_at = turn_at
        self.remembered: list[Value] = []  # numbers that later ones may be worked out from
        self._told: list[tuple[int, ResultRecord]] = []
        self.failed, self.names, self._questions = beside
        self._worked_out: dict[int, tuple[Value, StatementFinding]] = {}
        self._equations = arithmetic.find_equations(self.text, values) if "=" in self.text else {}
        if outline.formulas:  # few answers have any
            from callmark.grounding.formulas import find_in_formulas

            self._equations |= find_in_formulas(outline.text, outline.formulas, values)

    @once
    def _sizes(self) -> claims.LetteredSizes:
        return claims.LetteredSizes(self.index)

    @once
    def _listed(self) -> IntroducedLists:
        return IntroducedLists(self.outline, self.binder)

    @once
    def measures(self) -> Measures:
        return Measures(self.index)

    @once
    def _slips(self) -> Slips:
        return Slips(self.index)

    @once
    def workings(self) -> FurtherWorkings:
        given = (self.outline, self.values, self.index, self.binder, self.said, self.turn_at)
        workings = FurtherWorkings(*given, self._things)
        for value in self.remembered:
            workings.remember(value)
        workings.told = self._told
        return workings

    @once
    def _told_of(self) -> TellingOf:
        given = (self.outline, self.values, self.index.tree, self.binder, self.states)
        return TellingOf(*given, self.turn_at, self._questions)

    @once
    def _things(self) -> CountedThings:
        tree = self.index.tree
        given = (self.outline, tree.series, tree.groups, self.said, self.binder, self.turn_at)
        return CountedThings(*given)

    @once
    def _mismatches(self) -> Mismatches:
        from callmark.grounding.mismatches import Mismatches  # of units that results state

        return Mismatches(self)

    @once
    def contrasts(self) -> Contrasts:
        from callmark.grounding.contrasts import Contrasts  # of what few answers state

        return Contrasts(self)

    @once
    def _attribution(self) -> Attribution:
        return Attribution(self)

    def check(self) -> Iterator[StatementFinding]:
        for at, value in enumerate(self.values):
            finding = self._judge(at, value)
            # What is said of the wrong thing was served all the same.
            is_known = finding.label not in FLAGS or finding.label in _SERVED_FLAGS
            if finding.fields and finding.label in GOOD:
                self._told.append((value.start, finding.fields[0].record))
            if value.readings and is_known:
                self._remember(value)
                if finding.label in ("calculated", "derived"):
                    self._worked_out.setdefault(abs(value.readings[0]), (value, finding))
            yield finding

    def _remember(self, value: Value) -> None:
        self.remembered.append(value)
        workings: FurtherWorkings | None = self.__dict__.get("workings")
        if workings is not None:
            workings.remember(value)

    # --- one value

    def _judge(self, at: int, value: Value) -> StatementFinding:
        equation = self._equations.get(at)
        if equation is not None:
            label: StatementLabel = "calculated" if equation.holds else "miscalculated"
            because = "" if equation.holds else f"it comes to {decimal_text(equation.result)}"
            return StatementFinding(value.start, value.end, label, "equation", (), because)
        turn = self.turn_at(value.start)
        sentence = self.outline.sentence_at(value.start)
        if value.kind == "identifier" and value.text.startswith("#"):
            value = claims.read_place(self.outline, value, self.index, turn)
        fields, wrong = self.index.stating(value, turn), list[Field]()
        if value.unit or value.form.factor > 1:
            fields, wrong = self.measures.in_its_unit(value, fields)
        apart = self._find_written_apart(value, turn, is_known=bool(fields))
        if apart is not None:
            return self.found(value, "supported", "name", apart)
        if self._is_small(value):
            return self._small(value, sentence, fields, wrong)
        if self.text.startswith("s", value.end) and claims.is_decade(self.text, value):
            year = claims.year_in(value, self.index, turn)
            known = None if year is None else self.found(value, "rounded", "match", year)
            return known or self._said(value, turn) or self.found(value, "unsupported", "value")
        if fields:
            lists = self.index.tree.groups
            why = self._things.counts_no_field(value, sentence, fields) if lists else ""
            is_wrong = self.found(value, "miscounted", "count", because=why) if why else None
            return is_wrong or self.bind(value, sentence, fields)
        if self.binder.is_whole_name(value):
            return self.found(value, "supported", "name")
        return (
            self._converted(value, turn)
            or self._in_scale(value, turn)
            or self._in_another_unit(value, wrong, turn)
            or self._reread(value, turn)
            or self._rounded(value, sentence)
            or self._ending(value, turn)
            or self._quoted(value, turn)
            or self._restated(value)
            or self.contrasts.find_set_against(value, sentence)
            or self._attribution.find_other_than_named(value, sentence)
            or self._said(value, turn)
            or self._implied(value, sentence)
            or self._implied_elsewhere(value, sentence)
            or self._mismatched(
                value, [one for one in wrong if self.measures.may_be_meant(value, one)]
            )
            or self.contrasts.find_code(value, sentence)
            or self._not_claimed(value, sentence)
            or self._implied(value, sentence, in_two=True)
            or self._of_few(value)
            or self._mismatched(value, wrong)
            or self._nearly(value, sentence)
            or self._miscounted(value, sentence)
            or self._unsupported(value)
        )

    def _said(self, value: Value, turn: int | None) -> StatementFinding | None:
        if value.form.factor > 1:  # whoever said 3 did not say 3K
            value = value._replace(readings=value.readings[:1])
        if self.said.holds(value, turn):
            return self.found(value, "user_said", "said")
        if value.kind == "moment":  # `May 24`, to which the answer adds the year
            days = tuple(one._replace(year=None) for one in value.moments if one.has_day)
            if days and self.said.holds(value._replace(moments=days), turn):
                return self.found(value, "user_said", "said")
        if self.failed is not None and self.failed.holds(value, turn):
            return self.found(value, "user_said", "failure")
        return None

    def _unsupported(self, value: Value) -> StatementFinding:
        turn = self.turn_at(value.start)
        if value.kind == "url" and claims.SITE.fullmatch(value.text):
            return self.found(value, "unchecked", "site")
        if value.kind in ("url", "email"):
            return self.found(value, "unsupported", "link")
        if (ordinal := claims.find_ordinal(value, self.index)) and ordinal.counts_for(turn):
            return self.found(value, "supported", "match", ordinal)
        if "".join(filter(str.isdecimal, value.text)) in self.index.numbers_of_keys:
            return self.found(value, "unchecked", "word")  # `residents_2023`
        if self.index.is_prose:
            whole = self.index.parts_of_texts.get(value.text)
            if value.kind == "identifier" and whole and whole.counts_for(turn):
                return self.found(value, "supported", "ending", whole)
            if claims.counts_lines(value, self.index):
                return self.found(value, "derived", "count")
            return self.found(value, "unsupported", "prose")
        sentence = self.outline.sentence_at(value.start)
        subject = self.binder.subject_of(value, sentence)
        is_tied = subject is not None or self.binder.is_labelled(value)
        is_open = not is_tied and len(self.index.numbers) > claims.FEW
        if is_open and claims.may_be_worked_out(self.text, sentence, value):
            return self.found(value, "unchecked", "worked out")
        if (
            value.start in self.workings.unclear
            or (value.readings and abs(value.readings[0]) in self._worked_out)
            or self._attribution.is_other_share(value)
            or claims.is_reckoned_by_clock(self.text, value, self.index)
        ):
            return self.found(value, "unchecked", "worked out")
        is_copied = not (claims.is_hedged(self.text, value) or claims.is_year(self.text, value))
        near = self._slips.leaf_near(value, turn) if is_copied else None
        if near is not None and not self.contrasts.is_counted_on(value, near, sentence):
            return self.found(value, "unsupported", "misread", near)
        own = self._slips.leaf_of(value, subject) if is_copied and subject is not None else []
        return self.found(value, "unsupported", "value", *own)._replace(
            reach=lambda: is_within_reach(value, self.measures.held)
        )

    def _is_small(self, value: Value) -> bool:
        return is_small(value) and not self.workings.is_money(value)

    def _find_written_apart(
        self, value: Value, turn: int | None, *, is_known: bool
    ) -> Field | None:
        if value.kind not in ("number", "identifier") or (is_known and not value.text.isdecimal()):
            return None
        return claims.find_written_apart(self.text, value, self.index, turn, is_known=is_known)

    def _small(
        self, value: Value, sentence: Span, fields: Sequence[Field], wrong: Sequence[Field]
    ) -> StatementFinding:
        if because := self._miscounts_its_list(value, sentence):
            return self.found(value, "miscounted", "count", because=because)
        if counted := self._counted(value, sentence):
            return counted
        if letters := self._sizes.letters_of(self.text, value):
            fields = [field for field in fields if self._sizes.is_size(field, letters)]
        if claims.DURATION.match(self.text, value.end):  # `5 to 7 business days` are no `7 ft`
            fields = [one for one in fields if self.measures.may_last(one, value.readings)]
        linked = self.binder.linked(value, fields, sentence)
        linked = linked or self._attribution.fields_of_part(value, sentence, fields)
        linked = self._things.may_count(value, linked)
        if linked:
            return self.bind(value, sentence, linked)
        if other := self._attribution.find_other_than_named(value, sentence):
            return other
        turn = self.turn_at(value.start)
        near = [field for field in wrong if self.measures.is_of_its_kind(value, field)]
        near = near or self.binder.linked(value, wrong, sentence)
        near = [one for one in near if one.number is not None or len(str(one.value)) < LONG_TEXT]
        said = self._said(value, turn)
        found = (
            self._converted(value, turn)
            or self._in_another_unit(value, wrong, turn)
            or self._miscounted(value, sentence, fewer=False)
            or self._size(value, letters, fields, turn)
            or (said if self._things.may_be_said(value) else None)
            or (None if said else self._miscounted(value, sentence))
            or self._mismatched(value, near)
            or self._attribution.find_unlike_any(value, sentence)
        )
        if found is None and claims.DURATION.match(self.text, value.end):
            return self.found(value, "not_claimed", "duration")
        return found or self.found(value, "unchecked", "small number")

    def _miscounts_its_list(self, value: Value, sentence: Span) -> str:
        if value.readings[0] < 2 * SCALE or value.unit or self.workings.is_money(value):
            return ""
        if not (self._things.nouns_after(value) or _OF.match(self.text, value.end)):
            return ""
        return self._listed.find_miscount(value, sentence)

    def _size(
        self, value: Value, letters: str, fields: Sequence[Field], turn: int | None
    ) -> StatementFinding | None:
        """`3K`, where all that has these letters is `4K` or `5K`, and the user asked for none."""
        if not letters or self.said.holds_text(f"{value.text}{letters}".casefold(), turn):
            return None
        if fields:
            return self.found(value, "supported", "match", *fields[:3])
        return self.found(value, "unsupported", "value")

    def _counted(self, value: Value, sentence: Span) -> StatementFinding | None:
        known = self._things.count(value, sentence)
        if known is None:
            return None
        label: StatementLabel = "derived" if known.holds else "miscounted"
        found = self.found(value, label, "count", because=known.because)
        if known.holds or value.text.isdecimal():
            return found
        # `for each of three passengers` speaks of the user's plan as often as not.
        if self._things.was_counted_by_user(value):
            return self.found(value, "user_said", "said")
        is_told = self._things.are_told(value, sentence)
        return (None if is_told else self._not_claimed(value, sentence)) or found

    def _miscounted(
        self, value: Value, sentence: Span, *, fewer: bool = True
    ) -> StatementFinding | None:
        because = self._things.find_miscount(value, sentence, fewer=fewer)
        if not because or self.workings.counts_a_kind(value, sentence):
            return None
        return self.found(value, "miscounted", "count", because=because)

    # --- matching

    def _converted(self, value: Value, turn: int | None) -> StatementFinding | None:
        if not value.unit:
            whole = _OF_SO_MANY.match(self.text, value.end)  # `2.5 of the estimated 4 hours`
            unit = unit_called(whole[1]) if whole is not None and value.readings else ""
            if not unit:
                return None
            value = value._replace(unit=unit)
        if dimension_of(value.unit) == "money":
            cents = [one for one in self.measures.in_cents(value) if one.counts_for(turn)]
            if cents:
                return self._bind_converted(value, cents, 100)
        half = arithmetic.half_unit(value)
        rounding = arithmetic.rounding_of(value, *arithmetic.words_around(self.text, value))
        if rounding is not None and rounding.is_hedged:  # `roughly 20,300 feet`
            half = max(half, (rounding.high - rounding.low) // 2)
        field = self.measures.converted(value, half)
        if field is not None and field.counts_for(turn):
            return self.found(value, "converted", "unit", field)
        pair = claims.find_pair(self.text, self.workings.stated[-NEAR_STATED:], value, half)
        return self.found(value, "converted", "unit", because=pair) if pair else None

    def _in_scale(self, value: Value, turn: int | None) -> StatementFinding | None:
        """`$3.4 million`, where `claims_kusd` is 3420."""
        for field in self.measures.in_scale(value, arithmetic.half_unit(value)):
            if field.counts_for(turn):
                return self.found(value, "converted", "unit", field)
        return None

    def _bind_converted(
        self, value: Value, fields: Sequence[Field], factor: int
    ) -> StatementFinding:
        """The value in the unit of the results may be that of another record, too."""
        scaled = value._replace(readings=tuple(factor * one for one in value.readings), unit="")
        bound = self.bind(scaled, self.outline.sentence_at(value.start), fields)
        if bound.label in _SERVED_FLAGS:
            return bound
        return self.found(value, "converted", "unit", *(bound.fields or fields)[:1])

    def _in_another_unit(
        self, value: Value, wrong: Sequence[Field], turn: int | None
    ) -> StatementFinding | None:
        return self._mismatches.find_in_another_unit(value, wrong, turn) if wrong else None

    def _mismatched(self, value: Value, wrong: Sequence[Field]) -> StatementFinding | None:
        return self._mismatches.find(value, wrong) if wrong else None

    def _nearly(self, value: Value, sentence: Span) -> StatementFinding | None:
        noted: Mismatches | None = self.__dict__.get("_mismatches")
        return None if noted is None else noted.find_nearly(value, sentence)

    def _reread(self, value: Value, turn: int | None) -> StatementFinding | None:
        window = self.index.window_at(value) if value.kind == "moment" else None
        for read in (window, claims.reads_as_hour(value, self.index)):
            if read is not None and read.counts_for(turn):
                return self.found(value, "supported", "reread", read)
        later = claims.read_in_the_afternoon(self.text, value)
        if later is not None and (stating := self.index.stating(later, turn)):
            return self.found(value, "supported", "reread", *stating[:3])
        listed, less = self.binder.is_in_list(value), self.index.may_be_less(value)
        other = read_otherwise(self.text, value, is_listed=listed, may_be_less=less)
        if other is None:
            paid = self.measures.paid(value, turn) if self.workings.is_money(value) else []
            return self.found(value, "supported", "reread", *paid[:3]) if paid else None
        stating = self.index.stating(other, turn)
        if not stating:
            return self._in_scale(other, turn)
        fields, wrong = self.measures.in_its_unit(other, stating)
        if not fields:
            return self._mismatched(value, wrong)
        return self.found(value, "supported", "reread", *fields[:3])

    def _rounded(self, value: Value, sentence: Span) -> StatementFinding | None:
        if value.kind != "number" or not value.readings:
            return None
        rounding = arithmetic.rounding_of(value, *arithmetic.words_around(self.text, value))
        if rounding is None:
            return None
        finer = self.measures.finer_than(value, rounding)
        is_alone = len(finer) == 1 and len(self.index.numbers) <= FEW_NUMBERS
        is_clear = rounding.is_hedged or decimals_of(value) or is_alone
        for number, fields in finer:
            exact = value._replace(readings=(number,))
            fields, wrong = self.measures.in_its_unit(exact, fields)
            if wrong:
                self._mismatches.note(exact, wrong)
            alike = [one for one in fields if self.measures.is_of_its_kind(value, one)]
            alike = alike or [one for one in fields if self.measures.is_by_custom(one, value.unit)]
            linked = fields if is_clear else alike or self.binder.linked(value, fields, sentence)
            if not linked and value.unit:  # `9–16 °C`, said of the day that has 16.2
                subject = self.binder.subject_of(value, sentence)
                linked = [] if subject is None else find_all_kin(fields, subject)
            if linked:
                return self.found(value, "rounded", "match", linked[0])
        return None

    def _ending(self, value: Value, turn: int | None) -> StatementFinding | None:
        """`ending in 7880`, and four digits or more of an identifier; `pricing-…-q2wlz`; `B1`,
        where one is called `GH-B1`."""
        if claims.may_be_an_ending(self.text, value):
            return self._ends(value, self.index.ends_with(value.key), turn)
        if not value.text.isdecimal() or len(value.text) < 3:
            return None
        if len(value.text) < 5 and not names_an_ending(self.text, value.start):
            return None
        return self._ends(value, self.index.ending_in(value.text), turn)

    def _ends(self, value: Value, field: Field | None, turn: int | None) -> StatementFinding | None:
        if field is None or not field.counts_for(turn):
            return None
        return self.found(value, "supported", "ending", field)

    def _quoted(self, value: Value, turn: int | None) -> StatementFinding | None:
        if value.kind in ("quote", "code"):
            return self.found(value, "unchecked", "quotation")
        if not self.outline.is_formula(value):
            return None
        # What is worked out there is not followed; what was miscopied into it is seen.
        near = None if self.index.is_prose else self._slips.leaf_near(value, turn)
        sentence = self.outline.sentence_at(value.start)
        if (
            near is not None
            and not self.said.holds(value, turn)
            and not self.contrasts.is_counted_on(value, near, sentence)
        ):
            return self.found(value, "unsupported", "misread", near)
        return self._restated(value) or self.found(value, "unchecked", "formula")

    def _not_claimed(self, value: Value, sentence: Span) -> StatementFinding | None:
        found = claims.why_not_claimed(self.outline, value, sentence)
        if found is not None:
            return self.found(value, *found)
        if self.workings.is_rough(value):
            if worked := self._implied(value, sentence, in_two=True):
                return worked
            self.workings.rough.add(value.start)
            mismatch = self._nearly(value, sentence)
            return mismatch or self.found(value, "unchecked", "rough")
        if self.workings.is_filtered(value):
            return self.found(value, "unchecked", "some of them")
        return None

    # --- binding

    def bind(self, value: Value, sentence: Span, fields: Sequence[Field]) -> StatementFinding:
        found = self._bind(value, sentence, fields)
        if found.label != "supported" or found.rule == "name" or not self.index.tree.groups:
            return found
        return self._attribution.find_of_described(value, sentence, fields) or found

    def _other_field(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """Asked only of leaves that are one value each: what a text says is under no key."""
        if not 0 < len(fields) <= MOST_OWN:
            return None
        if not all(is_one_value(one.value, value.kind) for one in fields):
            return None
        return self._attribution.find_other_field(value, sentence, fields)

    def _bind(self, value: Value, sentence: Span, fields: Sequence[Field]) -> StatementFinding:
        lists = self.index.tree.groups  # without any, nobody else could be meant
        if lists and (told := self._told_of.judge_named(value, sentence, fields)):
            return self.found(value, told.label, told.rule, told.own, because=told.because)
        if self.binder.is_name(value):
            return self.found(value, "supported", "name", *fields[:3])
        subject = self.binder.subject_of(value, sentence)
        fields = claims.without_whole_texts(fields) if self.index.has_bare else fields
        # What a calculator gives is nobody's.
        is_bare = self.index.has_bare and any(not field.key for field in fields)
        if is_bare or value.kind in ("quote", "code", "url", "email"):
            return self.found(value, "supported", "match", *fields[:3])
        told = self._told_of.judge(value, sentence, fields, subject) if lists else None
        if told is not None:
            return self.found(value, told.label, told.rule, told.own, because=told.because)
        if subject is None:
            return (
                self._other_field(value, sentence, fields)
                or self._attribution.find_of_line(value, sentence, fields)
                or self.found(value, "supported", "match", *fields[:3])
            )
        only = fields[0] if len(fields) == 1 and fields[0].record is subject.records[0] else None
        kin, all_kin = (only, fields) if only else find_first_and_all_kin(fields, subject)
        if kin is not None and len(subject.records) > 1 and not subject.beside:
            other = self._of_another(value, sentence, fields)
            other = other or self._attribution.find_of_line(value, sentence, fields)
            if other is not None:
                return other
        if kin is not None:
            return (
                self._wrong_field(value, sentence, subject, fields)
                or self._other_field(value, sentence, all_kin)
                or self.found(value, "supported", "bound", kin)
            )
        joined = find_joined(fields, subject)
        if joined is not None:
            return self.found(value, "supported", "joined", joined)
        if not subject.beside and self.outline.tells_a_change(value, sentence):
            return self.found(value, "supported", "change", *fields[:3])
        return (
            self._attribution.find_of_subject(value, subject, fields)
            or self._other_field(value, sentence, fields)
            or self._attribution.find_of_line(value, sentence, fields)
            or self.found(value, "supported", "unbound", *fields[:3])
        )

    def _of_another(
        self, value: Value, sentence: Span, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """`Netflix €10.99, Spotify €15.99`: each is said of what stands before it."""
        nearest = self.binder.adjacent_to(value, sentence)
        if (
            nearest is None
            or find_kin(fields, nearest) is not None
            or find_joined(fields, nearest) is not None
            or self.outline.tells_a_change(value, sentence)
        ):
            return None
        return self._attribution.find_of_subject(value, nearest, fields)

    def _wrong_field(
        self, value: Value, sentence: Span, subject: RecordSubject, fields: Sequence[Field]
    ) -> StatementFinding | None:
        """`Departure: 10:00`, where 10:00 is the arrival and the departure is another time."""
        if not self.binder.is_labelled(value) or self.outline.tells_a_change(value, sentence):
            return None
        label = self.binder.label_of(value)
        if not label or is_named_by(label, fields[0]):
            return None
        named = self.binder.named_fields(self.binder.narrow(subject, value), label, value)
        named = [field for field in named if self.measures.may_be_meant(value, field)]
        if not named or any(self.states(field, value) for field in named):
            return None
        if any(is_named_by(label, field) for field in fields):  # last: there may be many
            return None
        return self.grouped(value, sentence, named[0].key) or self.found(
            value, "wrong_field", "field", named[0], because=place_of_field(fields[0])
        )

    def values_around(self, value: Value, span: Span) -> Iterator[Value]:
        """The other values of the span, those near it."""
        at = bisect_left(self._starts, value.start)
        for one in self.values[max(0, at - 3) : at + 4]:
            if one is not value and span[0] <= one.start and one.end <= span[1]:
                yield one

    def states(self, field: Field, value: Value) -> bool:
        """Does the leaf state the value, be it as an echo, or rounded?"""
        number = field.number
        if number is not None and value.readings:
            return any(abs(number - one) <= arithmetic.half_unit(value) for one in value.readings)
        return any(one is field for one in self.index.stating(value, None, echoes=True))

    def found(
        self, value: Value, label: StatementLabel, rule: str, *fields: Field, because: str = ""
    ) -> StatementFinding:
        return StatementFinding(value.start, value.end, label, rule, fields, because)

    def _implied_elsewhere(self, value: Value, sentence: Span) -> StatementFinding | None:
        """Worked out of leaves that are measured in something else: cents, thousands, seconds."""
        if value.kind != "number" or not value.readings or value.form.percent:
            return None
        for reading in self.measures.as_kept(value):
            found = self._implied(value._replace(readings=(reading,), unit=""), sentence)
            if found is not None:
                return found
        return None

    def grouped(self, value: Value, sentence: Span, key: str = "") -> StatementFinding | None:
        """What records come to together; under this `key`, all of them."""
        worked = self.workings.find_grouped(value, sentence)
        worked = worked or self.workings.find_of_percent(value)
        if worked is None and key:
            worked = self.workings.total_of(value, key)
        if worked is None:
            return None
        return self.found(value, "derived", worked.rule, because=worked.because)

    # --- arithmetic

    def _restated(self, value: Value) -> StatementFinding | None:
        """What was worked out once is evidence from then on, of what is measured alike."""
        if value.kind != "number" or not value.readings or not value.readings[0]:
            return None
        before = self._worked_out.get(abs(value.readings[0]))
        if before is None or not says_the_same(self.text, before[0], value):
            return None
        return before[1]._replace(start=value.start, end=value.end)

    def _implied(
        self, value: Value, sentence: Span, *, in_two: bool = False
    ) -> StatementFinding | None:
        if in_two and self._slips.leaf_near(value, self.turn_at(value.start)) is not None:
            return self.grouped(value, sentence)  # a slip is likelier than two steps
        find = self.workings.find_in_two if in_two else self.workings.find
        return self._derived(value, find(value, sentence))

    def _of_few(self, value: Value) -> StatementFinding | None:
        worked = None if self.index.is_prose else self.workings.find_among_few(value)
        return self._derived(value, worked)

    def _derived(self, value: Value, worked: Worked | None) -> StatementFinding | None:
        if worked is None or claims.is_no_sum(self.text, value, worked.rule):
            return None
        return self.found(value, "derived", worked.rule, *worked.fields, because=worked.because)
