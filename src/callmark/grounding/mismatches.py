"""The right number in another unit, currency or scale."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import TYPE_CHECKING

from callmark.grounding.field_words import SaidUnits
from callmark.grounding.match import Said
from callmark.grounding.reading import dimension_of, is_same_unit, unit_of_key
from callmark.grounding.record_fields import find_all_kin
from callmark.grounding.record_tree import Field, RecordTree, key_words
from callmark.grounding.spans import Span
from callmark.grounding.text import (
    CODES,
    CURRENCY_NAMES,
    SIGNS,
    blank_signs,
    once,
    words_in,
)
from callmark.grounding.values import Value
from callmark.grounding.workings import FEW_NUMBERS

if TYPE_CHECKING:
    from callmark.grounding.checking import Checker, StatementFinding

FEWEST = 2  # amounts of texts, unless a key or a field names the currency
MOST_TEXTS = 5000
_NAMES = sorted(CODES) + sorted(name for name in CURRENCY_NAMES if name.isalpha())
_FOLDED = frozenset(map(str.casefold, _NAMES))
_NAMED = re.compile(rf"[{SIGNS}]|(?<![^\W_])(?:{'|'.join(_NAMES)})(?![^\W_])", re.IGNORECASE)


class Mismatches:
    """Asked where a leaf states the number, and measures it in something else."""

    def __init__(self, checker: Checker) -> None:
        self._checker = checker
        self._measures = checker.measures
        self._nearly: tuple[Value, list[Field]] | None = None

    @once
    def _said_units(self) -> SaidUnits:
        return SaidUnits(self._checker.said)

    def find_in_another_unit(
        self, value: Value, wrong: Sequence[Field], turn: int | None
    ) -> StatementFinding | None:
        """`15 mm`, where results and user say 15 inches; `247 million` for 247."""
        if value.form.factor > 1:
            is_said = self._checker.said.holds_number(value.readings[0], turn)
            return None if is_said else self.find(value, wrong)
        near = [field for field in wrong if self._measures.is_of_its_kind(value, field)]
        if not near or self._said_units.holds(value, turn):
            return None
        return self.find(value, near)

    def find(self, value: Value, wrong: Sequence[Field]) -> StatementFinding | None:
        return self._mismatched(value, value, wrong)

    def note(self, exact: Value, wrong: Sequence[Field]) -> None:
        """The value as the leaves have it that it may be rounded from, but for their unit."""
        near = [one for one in wrong if self._measures.is_of_its_kind(exact, one)]
        if near:
            self._nearly = (exact, near)

    def find_nearly(self, value: Value, sentence: Span) -> StatementFinding | None:
        """`just under 25 mm`, where it is 24.8 cm. Of many numbers one is as near by chance."""
        exact, wrong = self._nearly or (value, [])
        if exact.start != value.start or not wrong:
            return None
        if len(self._checker.index.numbers) > FEW_NUMBERS:
            subject = self._checker.binder.subject_of(value, sentence)
            wrong = [] if subject is None else find_all_kin(wrong, subject)
        return self._mismatched(value, exact, wrong)

    def _mismatched(
        self, value: Value, exact: Value, wrong: Sequence[Field]
    ) -> StatementFinding | None:
        if not wrong or (value.form.percent and not self._measures.is_share(wrong[0])):
            return None
        unit = self._measures.unit_of(wrong[0], exact.readings)
        is_text = isinstance(wrong[0].value, str)
        if is_text and dimension_of(unit) == "time" != dimension_of(value.unit):
            return None  # `720 ml`, where something takes `PT12H`
        because = f"it is in {unit}, not {value.unit}" if unit and value.unit else "another scale"
        return self._checker.found(value, "unit_mismatch", "unit", wrong[0], because=because)


class Currencies:
    """Amounts in a currency that nobody named, where the results name theirs: `$1,200 in all` of
    bookings in euros, be it copied or worked out."""

    def __init__(self, tree: RecordTree, said: Said) -> None:
        self._tree = tree
        self._said = said
        self._foreign: dict[str, str] = {}

    def instead_of(self, unit: str) -> str:
        """The currency of the results, if there is but one and the answer's is another; else
        empty."""
        if unit not in self._foreign:
            self._foreign[unit] = self._find(unit)
        return self._foreign[unit]

    def _find(self, unit: str) -> str:
        if dimension_of(unit) != "money":
            return ""
        named, own = self._of_results, self._one_of_results
        if not own or any(is_same_unit(one, unit) for one in (*named, *self._of_talk)):
            return ""
        return own

    @once
    def _one_of_results(self) -> str:
        """`$` and `USD` are one."""
        first = min(self._of_results, default="")
        is_one = all(is_same_unit(first, other) for other in self._of_results)
        return first if is_one and sum(self._of_results.values()) >= FEWEST else ""

    @once
    def _of_results(self) -> Counter[str]:
        units = {unit_of_key(key_words(key)) for key in self._tree.keys} - {""}
        found = Counter({one: FEWEST for one in units if dimension_of(one) == "money"})
        texts: list[str] = []
        for text, field in islice(self._tree.text_fields, MOST_TEXTS):
            if text.upper() in CODES and "currency" in key_words(field.key):
                found[text.upper()] += FEWEST
            else:
                texts.append(text)
        found.update(_named_in("\n".join(texts)))
        return found

    @once
    def _of_talk(self) -> frozenset[str]:
        self._said.known()
        return frozenset(one for _, text in self._said.texts for one in _named_in(text))


def _named_in(text: str) -> list[str]:
    plain = blank_signs(text)
    if plain is None:
        found: list[str] = _NAMED.findall(text)
    else:  # word by word: the pattern tries all names at each character
        found = [one for one in words_in(plain) if one in _FOLDED]
        found += [sign for sign in SIGNS if sign in text for _ in range(text.count(sign))]
    return [CURRENCY_NAMES.get(one.casefold(), one.upper()) for one in found]
