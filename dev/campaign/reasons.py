"""Why an altered answer may keep its score. The label comes from the scorer; whether the value is
there is looked up in the results and in what was said, with means of its own. That a name is no
value, and what is not claimed, are rules and not looked up."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation

from callmark.records.jsontext import Json, canonical_json, want_object
from callmark.records.results import Match, SpanScore, Statement
from callmark.records.trace import json_inside
from dev.campaign.altering import MONTHS, Place
from dev.campaign.trials import Trial

SAME = "the altered text states the same value"
UNIT = "no result says in which unit or currency the number is"
LONG = "the number stands in a text of more than 200 characters, whose units are not read"
NOT_CLAIMED = "proposed, asked or promised: it is not claimed"
SMALL = "a whole number below 13 that no key or noun links to anything"
UNSIGNED = "the sign of a sum or a difference is not compared"
OTHER = "the altered value is another value of the evidence"
SAID = "the altered value is one that the user or an argument said"
DERIVED = "the altered value follows from the evidence by one step of arithmetic"
BESIDE = "an altered name is no checkable value, and other evidence grounds the sentence"
HYPHEN = "`-` before or in an identifier, or digits of a text, is not compared"
OFFSET = "what follows a time (`+1`) is not compared"
NO_VALUE = "what is left is no checkable value (an ordinal, a list number)"
UNEXPLAINED = "unexplained"
REASONS = (
    SAME, UNIT, LONG, OTHER, SAID, DERIVED, BESIDE, HYPHEN, OFFSET, NO_VALUE, NOT_CLAIMED, SMALL,
    UNSIGNED, UNEXPLAINED,
)  # fmt: skip
_LONGEST_TEXT = 200
_UNIT_STATED = re.compile(
    r"[$€£]\s?\d|\d\s?-?(?:GB|TB|MB|ml|L|kg|km|m|cm|inch(?:es)?|ft|W|mAh|hours?|h|USD|EUR|GBP|%|°C)"
    r"(?!\w)",
)
_UNIT_KEY = re.compile(r"(?i)(?:currency|usd|eur|gbp|kg|km|ml|inch|hours|percent)")
_NUMBER = re.compile(r"\d+(?:,\d{3}(?!\d))*(?:\.\d+)?|\.\d+")
_COMMA = re.compile(r"\d+,\d{1,2}|\d+,\d{4,}")  # `1,5` has one reading only
_LOOSE = re.compile(r"[\W_]+")


def reason_for(
    kind: str,
    original: str,
    place: Place,
    trial: Trial,
    span: SpanScore,
    stated: Sequence[Statement],
) -> str:
    """Why this value of the span still counts as supported; `stated` is what the rules made of the
    altered place."""
    if kind == "name":
        return BESIDE
    labels = {one.label for one in stated}
    if "not_claimed" in labels:
        return NOT_CLAIMED
    if kind == "unit":
        stating = [one for one in stated if _states_unit(one, trial)]
        is_long = all(len(str(_leaf_of(one, trial))) > _LONGEST_TEXT for one in stating)
        return UNIT if not stating else LONG if is_long else UNEXPLAINED
    reason = _reason_of_value(kind, original, place, trial, span)
    if reason != UNEXPLAINED:
        return reason
    if any(one.rule == "small number" for one in stated):
        return SMALL
    if kind == "sign" and "derived" in labels:
        return UNSIGNED
    if kind == "sign" and all(_holds_digits(one, place, trial) for one in stated):
        return HYPHEN
    return UNEXPLAINED


def _leaf_of(one: Statement, trial: Trial) -> Json:
    if one.call is None or one.path is None or one.call < 0:
        return None
    return leaf_at(trial.trace.tool_trace[one.call].result, one.path)


def _states_unit(one: Statement, trial: Trial) -> bool:
    """Does the leaf, its key or a field beside it name a unit?"""
    leaf = _leaf_of(one, trial)
    if leaf is None or one.path is None or one.call is None:
        return False
    if isinstance(leaf, str):
        return _UNIT_STATED.search(leaf) is not None
    above, _, key = one.path.rpartition("/")
    beside = leaf_at(trial.trace.tool_trace[one.call].result, above)
    keys = [key, *(beside if isinstance(beside, dict) else ())]
    return _UNIT_KEY.search(key) is not None or any("currency" in name for name in keys)


def _holds_digits(one: Statement, place: Place, trial: Trial) -> bool:
    leaf = _leaf_of(one, trial)
    return isinstance(leaf, str) and "".join(re.findall(r"\d", place.text)) in _squeezed(leaf)


def _reason_of_value(kind: str, original: str, place: Place, trial: Trial, span: SpanScore) -> str:
    start = len(_before(trial, place))
    end = start + len(place.text.encode("utf-8", "surrogatepass"))
    marks = [mark for mark in span.values if mark.end > start and mark.start < end]
    matches = [match for match in span.matches if match.end > start and match.start < end]
    labels = {mark.label for mark in marks}
    if _same(original, place.text):
        return SAME
    if not marks:
        return NO_VALUE
    if "user_said" in labels and _stands_in(place.text, _said(trial)):
        return SAID
    if "derived" in labels and _follows(place.text, trial):
        return DERIVED
    if kind == "sign" and any(match.kind == "identifier" for match in matches):
        return HYPHEN
    supported = [match for match in matches if match.cls != "derived"]
    if supported and all(
        _leaf_says(_part(place, start, match), match, trial) for match in supported
    ):
        return OTHER
    time, plus, _ = place.text.partition("+")
    if kind == "date" and plus and all(_leaf_says(time, match, trial) for match in supported):
        return OFFSET
    return UNEXPLAINED


def _part(place: Place, start: int, match: Match) -> str:
    """What of the altered text the match covers: it may have become two values."""
    encoded = place.text.encode("utf-8", "surrogatepass")
    covered = encoded[max(0, match.start - start) : max(0, match.end - start)]
    return covered.decode("utf-8", "replace")


def _before(trial: Trial, place: Place) -> bytes:
    return trial.trace.model_output[: place.start].encode("utf-8", "surrogatepass")


def _numbers(text: str) -> list[Decimal]:
    if _COMMA.fullmatch(text.strip()):
        return [Decimal(text.strip().replace(",", "."))]
    found = []
    for match in _NUMBER.finditer(text):
        try:
            found.append(Decimal(match[0].replace(",", "")))
        except InvalidOperation:
            continue
    return found


def _same(original: str, altered: str) -> bool:
    def parts(text: str) -> list[object]:
        numbers = _numbers(text)
        negative = any(numbers) and text.strip()[:1] in "-−"
        return [*numbers, negative, *re.findall(r"[^\W\d_]+", text)]

    return parts(original) == parts(altered)


def _squeezed(text: str) -> str:
    return _LOOSE.sub("", text).casefold()


def _stands_in(altered: str, texts: Iterator[str]) -> bool:
    wanted, bare = set(_month_numbers(altered)), _squeezed(altered)
    return any(
        bare in _squeezed(text) or (wanted and wanted <= set(_month_numbers(text)))
        for text in texts
    )


def _said(trial: Trial) -> Iterator[str]:
    yield canonical_json(trial.sample.prompt)
    for said in trial.trace.said:
        yield said.text
    for entry in trial.trace.tool_trace:
        yield canonical_json(entry.arguments)
        yield canonical_json(entry.result)  # its field names


def _leaf_says(altered: str, match: Match, trial: Trial) -> bool:
    """Does the leaf that the match names hold the altered value, read by other means?"""
    if match.call < 0:
        leaf: Json = canonical_json(trial.sample.prompt)
    else:
        leaf = leaf_at(trial.trace.tool_trace[match.call].result, match.path)
    text = leaf if isinstance(leaf, str) else canonical_json(leaf)
    if "-" in altered.strip()[:2] and "-" not in text:
        return False
    return _stands_in(altered, iter([text])) or _tail(altered, text)


def _tail(altered: str, text: str) -> bool:
    digits = "".join(re.findall(r"\d", altered))
    return bool(digits) and _squeezed(text).endswith(digits)


def _month_numbers(text: str) -> Iterator[Decimal]:
    """The numbers of a text, those of its months and clock times too."""
    afternoon = re.search(r"\d\s?[pP]\.?[mM]", text) is not None
    for index, number in enumerate(_numbers(text)):
        yield number + 12 if afternoon and not index and number < 12 else number
    for index, name in enumerate(MONTHS, 1):
        if name in text:
            yield Decimal(index)


def leaf_at(value: Json, path: str) -> Json:
    for step in path.split("/")[1:]:
        if isinstance(value, str):
            value = json_inside(value)
        name = step.replace("~1", "/").replace("~0", "~")
        value = value[int(name)] if isinstance(value, list) else want_object(value)[name]
    return value


def _follows(altered: str, trial: Trial) -> bool:
    """Any sum, difference, product, list length or list sum over all results gives it."""
    numbers: set[Decimal] = set()
    lists: set[Decimal] = set()
    for entry in trial.trace.tool_trace:
        _collect(entry.result, numbers, lists)
    negative = "-" in altered.strip()[:2]
    for wanted in _numbers(altered):
        wanted = -wanted if negative else wanted
        pairs = (
            wanted - a in numbers or a - wanted in numbers or (a and wanted / a in numbers)
            for a in numbers
        )
        if wanted in lists or any(pairs):
            return True
    return False


def _collect(value: Json, numbers: set[Decimal], lists: set[Decimal]) -> None:
    if isinstance(value, str):
        inside = json_inside(value)
        if inside is not value:
            _collect(inside, numbers, lists)
        else:
            numbers.update(_numbers(value))
    elif isinstance(value, dict):
        for entry in value.values():
            _collect(entry, numbers, lists)
    elif isinstance(value, list):
        lists.add(Decimal(len(value)))
        fields: dict[str, Decimal] = {}
        for entry in value:
            for name, number in (entry if isinstance(entry, dict) else {"": entry}).items():
                if isinstance(number, int | float) and not isinstance(number, bool):
                    fields[name] = fields.get(name, Decimal(0)) + Decimal(str(number))
            _collect(entry, numbers, lists)
        lists.update(fields.values())
    elif isinstance(value, int | float) and not isinstance(value, bool):
        numbers.add(Decimal(str(value)))
