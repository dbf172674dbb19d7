"""Statements: what an answer says of the results, value by value and clause by clause."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from callmark.grounding import arithmetic, claims
from callmark.grounding.attribution import Attribution, StatementFinding
from callmark.grounding.binding import (
    Binder,
    find_all_kin,
)
from callmark.grounding.field_words import SaidUnits
from callmark.grounding.further import FurtherWorkings
from callmark.grounding.match import Said
from callmark.grounding.numbers import SCALE, decimal_text
from callmark.grounding.quantifiers import IntroducedLists
from callmark.grounding.reading import convert, dimension_of, read_otherwise
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    shape_of,
)
from callmark.grounding.spans import Outline, Span
from callmark.grounding.text import names_an_ending, once
from callmark.grounding.values import Value, decimals_of
from callmark.grounding.workings import TurnAt, words_around
from callmark.records.statements import FLAGS, StatementLabel

NEAR_STATED = 4  # numbers before one that may be the same in another unit
SMALL = 13  # a whole number below it stands in every result
_SERVED_FLAGS: frozenset[StatementLabel] = frozenset(("misattributed", "wrong_field"))
_SHORT_CODE = re.compile(r"[A-Za-z]{1,3}\d{1,3}")
NOON = 12
_NEAR_CLOCK = 120
_AFTERNOON = re.compile(r"\d\s?p\.?m\b", re.IGNORECASE)
_MORNING = re.compile(r"\s?[ap]\.?m\b", re.IGNORECASE)
_OF = re.compile(r"\s(?:of|out of|von|der|de|des|sur|aus)\s", re.IGNORECASE)
_SUFFIX = re.compile(r"[a-z\d]{5,10}")  # `mvt5w`, of `checkout-7d9f6-mvt5w`
_CUT = re.compile(r"(?:…|\.\.\.)[-_/:]?$")


Named = Callable[[str, int | None], bool]  # a name, by its key, and the turn that says it


class Checker(Attribution):
    """One answer against the records and what the user said."""

    def __init__(
        self,
        outline: Outline,
        values: list[Value],
        index: RecordIndex,
        binder: Binder,
        said: Said,
        turn_at: TurnAt,
        failed: Said | None = None,
        named: Named = lambda key, turn: False,
    ) -> None:
        """`failed`: what results that are errors say. They support nothing. `named`: what the
        model itself named in a call that was served, such as a file that it made."""
        super().__init__(outline, values, index, binder, said, turn_at)
        self.failed, self._named = failed, named
        self._worked_out: dict[int, StatementFinding] = {}
        self._equations = (
            arithmetic.find_equations(outline.text, values) if "=" in outline.text else {}
        )

    @once
    def _said_units(self) -> SaidUnits:
        return SaidUnits(self.said)

    @once
    def _sizes(self) -> claims.LetteredSizes:
        return claims.LetteredSizes(self.index)

    @once
    def _listed(self) -> IntroducedLists:
        return IntroducedLists(self.outline, self._binder)

    def check(self) -> Iterator[StatementFinding]:
        for at, value in enumerate(self.values):
            finding = self._judge(at, value)
            # What is said of the wrong thing was served all the same.
            is_known = finding.label not in FLAGS or finding.label in _SERVED_FLAGS
            if value.readings and is_known:
                self._remember(value)
                if finding.label in ("calculated", "derived"):
                    self._worked_out.setdefault(abs(value.readings[0]), finding)
            yield finding

    def _remember(self, value: Value) -> None:
        self._remembered.append(value)
        workings: FurtherWorkings | None = self.__dict__.get("_workings")
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
        joined = self._joined(value, turn) if value.text.isdecimal() else None
        if joined is not None:
            return joined
        if self._is_small(value):
            return self._small(value, sentence, fields, wrong)
        if fields:
            return self.bind(value, sentence, fields)
        if self._binder.is_whole_name(value):
            return self._found(value, "supported", "name")
        return (
            self._converted(value, turn)
            or self._in_another_unit(value, wrong, turn)
            or self._reread(value, turn)
            or self._rounded(value, sentence)
            or self._ending(value)
            or self._quoted(value, turn)
            or self._restated(value)
            or self._other_than_named(value, sentence)
            or self._said(value, turn)
            or self._implied(value, sentence)
            or self._mismatched(
                value, [one for one in wrong if self.measures.may_be_meant(value, one)]
            )
            or self._identifier(value, sentence)
            or self._not_claimed(value, sentence)
            or self._implied(value, sentence, in_two=True)
            or self._of_few(value)
            or self._mismatched(value, wrong)
            or self._unsupported(value)
        )

    def _said(self, value: Value, turn: int | None) -> StatementFinding | None:
        if value.form.factor > 1:  # whoever said 3 did not say 3K
            value = value._replace(readings=value.readings[:1])
        if self.said.holds(value, turn):
            return self._found(value, "user_said", "said")
        if value.kind == "moment":  # `May 24`, to which the answer adds the year
            days = tuple(one._replace(year=None) for one in value.moments if one.has_day)
            if days and self.said.holds(value._replace(moments=days), turn):
                return self._found(value, "user_said", "said")
        if self.failed is not None and self.failed.holds(value, turn):
            return self._found(value, "user_said", "failure")
        return None

    def _unsupported(self, value: Value) -> StatementFinding:
        if value.kind == "url" and claims.SITE.fullmatch(value.text):
            return self._found(value, "unchecked", "site")
        if value.kind in ("url", "email"):
            return self._found(value, "unsupported", "link")
        if value.text in self.index.numbers_of_keys:
            return self._found(value, "unchecked", "word")  # `residents_2023`
        if self.index.is_prose:
            return self._found(value, "unsupported", "prose")
        sentence = self.outline.sentence_at(value.start)
        is_tied = self._binder.is_labelled(value) or self._binder.subject_of(value, sentence)
        is_open = not is_tied and len(self.index.numbers) > claims.FEW
        if is_open and claims.may_be_worked_out(self.text, sentence, value):
            return self._found(value, "unchecked", "worked out")
        is_copied = not claims.is_hedged(self.text, value)
        near = self._slips.leaf_near(value, self.turn_at(value.start)) if is_copied else None
        rule, fields = ("value", ()) if near is None else ("misread", (near,))
        return self._found(value, "unsupported", rule, *fields)

    def _is_small(self, value: Value) -> bool:
        if value.kind != "number" or not value.readings or value.form.percent:
            return False
        if decimals_of(value):  # `12.0` says more than `12`
            return False
        reading = value.readings[0]
        return (
            reading % SCALE == 0
            and 0 <= reading < SMALL * SCALE
            and not self._workings.is_money(value)
        )

    def _small(
        self, value: Value, sentence: Span, fields: Sequence[Field], wrong: Sequence[Field]
    ) -> StatementFinding:
        because = self._miscounts_its_list(value, sentence)
        if because:
            return self._found(value, "miscounted", "count", because=because)
        counted = self._counted(value, sentence)
        if counted is not None:
            if counted.label in FLAGS and not value.text.isdecimal():
                # `for each of the three passengers` speaks of the user's plan as often as not.
                return self._said(value, self.turn_at(value.start)) or (
                    self._not_claimed(value, sentence) or counted
                )
            return counted
        letters = self._sizes.letters_of(self.text, value)
        if letters:
            fields = [field for field in fields if self._sizes.is_size(field, letters)]
        linked = self._binder.linked(value, fields, sentence)
        if linked:
            return self.bind(value, sentence, linked)
        other = self._other_than_named(value, sentence)
        if other is not None:
            return other
        turn = self.turn_at(value.start)
        near = [field for field in wrong if self.measures.is_of_its_kind(value, field)]
        near = near or self._binder.linked(value, wrong, sentence)
        found = (
            self._converted(value, turn)
            or self._in_another_unit(value, wrong, turn)
            or self._miscounted(value, sentence, fewer=False)
            or self._size(value, letters, fields, turn)
            or self._said(value, turn)
            or self._miscounted(value, sentence)
            or self._mismatched(value, near)
        )
        if found is not None:
            return found
        if claims.DURATION.match(self.text, value.end):
            return self._found(value, "not_claimed", "duration")
        return self._found(value, "unchecked", "small number")

    def _miscounts_its_list(self, value: Value, sentence: Span) -> str:
        if value.readings[0] < 2 * SCALE or value.unit or self._workings.is_money(value):
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
            return self._found(value, "supported", "match", *fields[:3])
        return self._found(value, "unsupported", "value")

    def _counted(self, value: Value, sentence: Span) -> StatementFinding | None:
        known = self._things.count(value, sentence)
        if known is None:
            return None
        label: StatementLabel = "derived" if known.holds else "miscounted"
        return self._found(value, label, "count", because=known.because)

    def _miscounted(
        self, value: Value, sentence: Span, *, fewer: bool = True
    ) -> StatementFinding | None:
        because = self._things.find_miscount(value, sentence, fewer=fewer)
        if not because or self._workings.counts_a_kind(value, sentence):
            return None
        return self._found(value, "miscounted", "count", because=because)

    # --- matching

    def _converted(self, value: Value, turn: int | None) -> StatementFinding | None:
        if not value.unit:
            return None
        if dimension_of(value.unit) == "money":
            cents = [one for one in self.measures.in_cents(value) if one.counts_for(turn)]
            if cents:
                return self._bind_converted(value, cents, 100)
        half = arithmetic.half_unit(value)
        field = self.measures.converted(value, half)
        if field is not None and field.counts_for(turn):
            return self._found(value, "converted", "unit", field)
        for one in self._workings.stated[-NEAR_STATED:]:  # `55 °F to 52 °F (13 °C to 11 °C)`
            same = convert(one.readings[0], one.unit, value.unit) if one.unit else None
            if (
                same is not None
                and one.unit != value.unit
                and abs(same - value.readings[0]) <= half
            ):
                return self._found(value, "converted", "unit", because=f"{one.text} {one.unit}")
        return None

    def _bind_converted(
        self, value: Value, fields: Sequence[Field], factor: int
    ) -> StatementFinding:
        """The value in the unit of the results may be that of another record, too."""
        scaled = value._replace(readings=tuple(factor * one for one in value.readings), unit="")
        bound = self.bind(scaled, self.outline.sentence_at(value.start), fields)
        if bound.label in _SERVED_FLAGS:
            return bound
        return self._found(value, "converted", "unit", *(bound.fields or fields)[:1])

    def _in_another_unit(
        self, value: Value, wrong: Sequence[Field], turn: int | None
    ) -> StatementFinding | None:
        """`15 mm`, where results and user say 15 inches; `247 million` for 247."""
        if value.form.factor > 1:
            is_said = self.said.holds_number(value.readings[0], turn)
            return None if is_said else self._mismatched(value, wrong)
        near = [field for field in wrong if self.measures.is_of_its_kind(value, field)]
        if not near or self._said_units.holds(value, turn):
            return None
        return self._mismatched(value, near)

    def _mismatched(self, value: Value, wrong: Sequence[Field]) -> StatementFinding | None:
        """The right number in another unit, currency or scale."""
        if not wrong:
            return None
        unit = self.measures.unit_of(wrong[0], value.readings)
        because = f"it is in {unit}, not {value.unit}" if unit and value.unit else "another scale"
        return self._found(value, "unit_mismatch", "unit", wrong[0], because=because)

    def _reread(self, value: Value, turn: int | None) -> StatementFinding | None:
        window = self.index.window_at(value) if value.kind == "moment" else None
        if window is not None and window.counts_for(turn):
            return self._found(value, "supported", "reread", window)
        if value.kind == "moment" and (later := self._in_the_afternoon(value, turn)):
            return self._found(value, "supported", "reread", *later[:3])
        other = read_otherwise(self.text, value, is_listed=self._binder.is_in_list(value))
        stating = self.index.stating(other, turn) if other is not None else []
        if other is None or not stating:
            return None
        fields, wrong = self.measures.in_its_unit(other, stating)
        if not fields:
            return self._mismatched(value, wrong)
        return self._found(value, "supported", "reread", *fields[:3])

    def _in_the_afternoon(self, value: Value, turn: int | None) -> list[Field]:
        """`6:15, 7:30 and 9:45 pm`: all of them are, though only the last one says so."""
        moment = value.moments[0] if value.moments else None
        if moment is None or moment.hour is None or not 0 < moment.hour < NOON:
            return []
        near = self.text[max(0, value.start - _NEAR_CLOCK) : value.end + _NEAR_CLOCK]
        if _AFTERNOON.search(near) is None or _MORNING.match(self.text, value.end):
            return []
        later = (moment._replace(hour=moment.hour + NOON),)
        return self.index.stating(value._replace(moments=later), turn)

    def _rounded(self, value: Value, sentence: Span) -> StatementFinding | None:
        if value.kind != "number" or not value.readings:
            return None
        rounding = arithmetic.rounding_of(value, *words_around(self.text, value))
        if rounding is None:
            return None
        low, high, half, is_hedged = rounding
        near = self.index.between(low, high)[:20]
        for number in near:
            if number % (2 * half) == 0:
                continue  # not rounded: as coarse as what is stated
            fields = self.index.numbers[number][:8]
            is_clear = is_hedged or decimals_of(value)
            alike = [one for one in fields if self.measures.is_of_its_kind(value, one)]
            alike = alike or [one for one in fields if self.measures.is_by_custom(one, value.unit)]
            linked = fields if is_clear else alike or self._binder.linked(value, fields, sentence)
            if not linked and value.unit:  # `9–16 °C`, said of the day that has 16.2
                subject = self._binder.subject_of(value, sentence)
                linked = [] if subject is None else find_all_kin(fields, subject)
            if linked:
                return self._found(value, "rounded", "match", linked[0])
        return None

    def _joined(self, value: Value, turn: int | None) -> StatementFinding | None:
        field = claims.find_joined_name(self.text, value, self.index, turn)
        return None if field is None else self._found(value, "supported", "name", field)

    def _ending(self, value: Value) -> StatementFinding | None:
        """`ending in 7880`, and four digits or more of an identifier; `pricing-…-q2wlz`; `B1`,
        where one is called `GH-B1`."""
        if value.kind == "identifier" and (
            _SHORT_CODE.fullmatch(value.text)
            or _SUFFIX.fullmatch(value.text)
            or _CUT.search(self.text[max(0, value.start - 4) : value.start])
        ):
            field = self.index.ends_with(value.key)
            return None if field is None else self._found(value, "supported", "ending", field)
        if not value.text.isdecimal() or len(value.text) < 3:
            return None
        if len(value.text) < 5 and not names_an_ending(self.text, value.start):
            return None
        field = self.index.ending_in(value.text)
        return None if field is None else self._found(value, "supported", "ending", field)

    def _quoted(self, value: Value, turn: int | None) -> StatementFinding | None:
        if value.kind in ("quote", "code"):
            return self._found(value, "unchecked", "quotation")
        if not self.outline.is_formula(value):
            return None
        # What is worked out there is not followed; what was miscopied into it is seen.
        near = None if self.index.is_prose else self._slips.leaf_near(value, turn)
        if near is not None and not self.said.holds(value, turn):
            return self._found(value, "unsupported", "misread", near)
        return self._found(value, "unchecked", "formula")

    def _identifier(self, value: Value, sentence: Span) -> StatementFinding | None:
        is_number = value.kind == "number" and value.text.isdecimal() and len(value.text) >= 6
        if value.kind != "identifier" and not is_number:
            return None
        before = self.text[max(0, value.start - 40) : value.start]
        if self.index.names_a_key(value.key) or claims.is_word(value.text):
            return self._found(value, "unchecked", "word")
        if claims.EXAMPLE.search(before):
            return self._found(value, "not_claimed", "example")
        if before.endswith(("***", "•", "xx", "XX")):
            return self._found(value, "unchecked", "masked")
        if self._named(value.key, self.turn_at(value.start)):
            return self._found(value, "unchecked", "named")
        near = self.index.shapes.get(shape_of(value.text))
        return None if near is None else self._found(value, "altered", "identifier", near)

    def _not_claimed(self, value: Value, sentence: Span) -> StatementFinding | None:
        found = claims.why_not_claimed(self.outline, value, sentence)
        if found is not None:
            return self._found(value, *found)
        if self._workings.is_rough(value):
            if worked := self._implied(value, sentence, in_two=True):
                return worked
            self._workings.rough.add(value.start)
            return self._found(value, "unchecked", "rough")
        if self._workings.is_filtered(value):
            return self._found(value, "unchecked", "some of them")
        return None

    # --- binding

    # --- arithmetic

    def _restated(self, value: Value) -> StatementFinding | None:
        """What was worked out once is evidence from then on."""
        if value.kind != "number" or not value.readings:
            return None
        before = self._worked_out.get(abs(value.readings[0]))
        return before and before._replace(start=value.start, end=value.end)

    def _implied(
        self, value: Value, sentence: Span, *, in_two: bool = False
    ) -> StatementFinding | None:
        if in_two and self._slips.leaf_near(value, self.turn_at(value.start)) is not None:
            return self._grouped(value, sentence)  # a slip is likelier than two steps
        find = self._workings.find_in_two if in_two else self._workings.find
        worked = find(value, sentence)
        if worked is None:
            return None
        return self._found(value, "derived", worked.rule, *worked.fields, because=worked.because)

    def _of_few(self, value: Value) -> StatementFinding | None:
        if self.index.is_prose:
            return None
        worked = self._workings.find_among_few(value)
        if worked is None:
            return None
        return self._found(value, "derived", worked.rule, *worked.fields, because=worked.because)
