"""The statements of one answer: every rule asked, every finding told in one sentence."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from callmark.calls.registry import Registry
from callmark.grounding.binding import Binder, Mention
from callmark.grounding.checking import Checker, StatementFinding
from callmark.grounding.comparing import find_wrong_ways
from callmark.grounding.deeds import (
    DEED_ENDINGS,
    DEED_WORDS,
    Deed,
    DoneCall,
    Tells,
    find_deeds,
    writes,
)
from callmark.grounding.match import Said, Utterance
from callmark.grounding.mismatches import Currencies
from callmark.grounding.naming import NAMES, TITLES, GivenNames, KnownWords, find_unnamed
from callmark.grounding.negation import grammar_of
from callmark.grounding.polar_keys import SHORT_ANSWER, YES_OR_NO, plain_answer, root
from callmark.grounding.polarity import PolarFields
from callmark.grounding.quantifiers import AMOUNT_WORDS, Amounts, IntroducedLists
from callmark.grounding.reading import read_stated
from callmark.grounding.record_tree import (
    Field,
    RecordIndex,
    RecordTree,
    key_stems,
    key_words,
    stem,
)
from callmark.grounding.schedule import (
    DAY_KEYS,
    WEEKDAYS,
    KnownDays,
    find_days,
    schedules_of,
    wrong_hours,
)
from callmark.grounding.siblings import SiblingNames, has_measured_table
from callmark.grounding.spans import Outline, Span
from callmark.grounding.states import STATE_WORDS, KindFields, StateFields
from callmark.grounding.text import fold
from callmark.grounding.told_of import Beside, NamedBefore
from callmark.grounding.values import Value, identifier_key
from callmark.records.jsontext import Json, canonical_json, cut_value, texts_in
from callmark.records.results import Statement
from callmark.records.samples import CALL_FREE
from callmark.records.statements import FLAGS, GOOD, LONGEST_QUOTE, RULES, quote_said
from callmark.records.trace import TraceEntry
from callmark.scorers.changes import ChangesMade
from callmark.scorers.integration import TrialReading, done_in_prompt
from callmark.scorers.shown import NearestLeaf, place_of

MOST_SIBLINGS = 200  # of a record that a deed is told of
_OF_ANYTHING = frozenset(map(stem, "created updated modified made set".split()))
_LONGEST_STATE = 40
_STATE_WORD = re.compile(r"[^\W\d_]{4,}")
SHORTEST_SEALED = 32  # characters
_WORD = re.compile(r"[\w-]+")
# What a person is asked to look at; `I can confirm that it is on` says that it is.
_TO_CHECK = re.compile(
    r"(?:(?:^\W*|[,;:]\s+|\b(?:please|you|then|and)\s+)(?:check|verify|confirm|ensure|make sure)"
    r"|\b(?:see|check|know|verify|confirm)\s(?:if|whether))\b[^.!?\n]*$",
    re.IGNORECASE,
)
_SWITCH = re.compile(r"(?:enable|disable|toggle|turn|switch|set|reset|activate|deactivate)", re.I)
_BY_US = re.compile(r"(?:i|we)\b", re.IGNORECASE)
_CODE = re.compile(r"#?\w*\d[\w-]*")
_NUMBERED = re.compile(r"#\d+\b|\b[A-Z]{1,6}-?\d{2,}\b")


class Statements(NamedTuple):
    """In the order of the answer. `findings` are the same with characters and leaves."""

    findings: tuple[StatementFinding, ...]
    marks: tuple[Statement, ...]


def check_statements(reading: TrialReading, registry: Registry) -> Statements:
    """What the answer states after the first result was served. Where none was and none was asked
    for, there is nothing that it could speak of."""
    outline = reading.outline
    findings: list[StatementFinding] = []
    binder: Binder | None = None
    if reading.served or reading.sample.expectation.kind not in CALL_FREE:
        tree = reading.records.tree
        index = reading.records
        values = read_stated(
            reading.text, reading.grounder.values, reading.sample.expectation.locale
        )
        loose: list[Mention] = []
        if _has_lists(tree) or any(" " in name for one in tree.records for name in one.names):
            loose = SiblingNames(tree, outline.words).mentions(reading.text, values)
        binder = Binder(outline, index, loose)
        findings += _check_values(reading, outline, index, binder, values)
        findings += _check_rules(reading, outline, index, binder, values, registry)
        # What few answers need is loaded where one does: here, and below.
        if _has_lists(tree) and "\n" in outline.text:
            findings = _check_rows(reading, binder, values, registry, findings)
    if _may_tell_deeds(outline):
        findings += _check_deeds(reading, outline, registry, binder)
    told = {(one.start, one.end) for one in findings if one.rule == "record"}
    findings = [one for one in findings if one.rule != "state" or (one.start, one.end) not in told]
    altered = {one.start for one in findings if one.label == "altered"}
    findings = [one for one in findings if one.rule != "quotation" or one.start not in altered]
    if outline.takes_back or outline.may_deny:
        from callmark.scorers.denying import deny

        findings = list(deny(reading, outline, findings))
    kept = [one for one in findings if reading.is_after_first_result((one.start, one.end))]
    tree = reading.records.tree
    if any(key.startswith("encrypted_") for key in tree.keys) and any(map(_is_sealed, tree.fields)):
        kept = [_leave_unchecked(one) for one in kept]
    kept.sort(key=lambda one: (one.start, one.end, one.rule))
    if sum(one.rule == "value" for one in kept) > 1:
        from callmark.grounding.baseless import find_baseless

        known = KnownWords(reading.records, reading.said)
        asked = "\n".join(text for text, _ in reading.asked)
        kept = list(find_baseless(outline, kept, known, reading.turn_at, reading.records, asked))
    if any(map(_may_be_reckoned, kept)) and has_measured_table(tree.groups):
        read = reading.grounder.values
        dated = {one.start for one in read if any(each.has_day for each in one.moments)}
        kept = [
            one._replace(label="unchecked", rule="worked out", because="")
            if _may_be_reckoned(one) and one.start not in dated
            else one
            for one in kept
        ]
    return Statements(tuple(kept), tuple(_mark(reading, one) for one in kept))


def _check_rows(
    reading: TrialReading,
    binder: Binder,
    values: list[Value],
    registry: Registry,
    findings: list[StatementFinding],
) -> list[StatementFinding]:
    from callmark.grounding.listing import Listing, has_rows
    from callmark.grounding.rows import findings_of_rows

    if not has_rows(reading.outline):
        return findings
    rows = Listing(reading.outline, values, reading.records, binder, reading.turn_at)
    changes = ChangesMade(reading, registry)
    return findings_of_rows(rows, findings, reading.said, changes.written)


def _may_be_reckoned(one: StatementFinding) -> bool:
    """Not so what is one slip away from a number of the very record that is spoken of."""
    is_loose = one.rule == "binding" or (one.rule == "value" and not one.fields)
    return is_loose and one.label in FLAGS


def _is_sealed(field: Field) -> bool:
    """Pages that a server found come back encrypted: the model could read them, nobody else can.
    A flag such as `encrypted_at_rest` seals nothing."""
    is_long = isinstance(field.value, str) and len(field.value) >= SHORTEST_SEALED
    return is_long and field.key.startswith("encrypted_")


def _leave_unchecked(one: StatementFinding) -> StatementFinding:
    if one.label != "unsupported" or one.rule == "deed":
        return one
    return StatementFinding(one.start, one.end, "unchecked", "sealed")


def _check_rules(
    reading: TrialReading,
    outline: Outline,
    index: RecordIndex,
    binder: Binder,
    values: list[Value],
    registry: Registry,
) -> Iterator[StatementFinding]:
    """A rule is asked where the results and the answer have what it is about."""
    tree = index.tree
    if not WEEKDAYS.isdisjoint(outline.words) and any(one.kind == "moment" for one in values):
        yield from _check_weekdays(reading, index, values)
    if any(map(_may_say_yes_or_no, tree.fields)):
        yield from _check_polarity(reading, outline, tree, binder, registry)
    states: list[StatementFinding] = []
    if not STATE_WORDS.isdisjoint(outline.words):
        states = list(_check_states(reading, outline, index, binder, registry))
        yield from states
    if not AMOUNT_WORDS.isdisjoint(outline.words):
        yield from _check_amounts(reading, outline, tree, binder)
    if len({field.key for field in tree.fields}) < len(tree.fields):  # two records have one
        told = {one.start for one in states}
        for kind in _check_kinds(reading, outline, index, binder, registry):
            if kind.start not in told:
                yield kind
    if _has_lists(tree):
        yield from _check_ranks(reading, outline, index, binder, values)
        yield from _check_tallies(reading, outline, tree, binder)
    if not DAY_KEYS.isdisjoint(map(str.casefold, tree.keys)):
        yield from _check_hours(reading, outline, tree)
    yield from _check_wording(reading, outline, index, values)


def _check_wording(
    reading: TrialReading, outline: Outline, index: RecordIndex, values: list[Value]
) -> Iterator[StatementFinding]:
    if any(value.kind == "quote" and " " in value.text for value in values):
        yield from _check_quotes(reading, index.tree, values)
    if len(values) > 1:
        yield from _check_comparisons(outline, values)
    if index.describes:
        yield from _check_names(outline, KnownWords(index, reading.said))
    if NAMES.search(reading.text) or not TITLES.isdisjoint(outline.words):
        names = GivenNames(index.tree, KnownWords(index, reading.said))
        yield from _check_given_names(reading, outline, names)


def _may_say_yes_or_no(field: Field) -> bool:
    """Also `null`, and a short text: `no`."""
    value = field.value
    if isinstance(value, str):
        if len(value) >= SHORT_ANSWER:  # the longest is `not available`
            return False
        plain = value.strip(" '\"").casefold().replace(" ", "_").replace("-", "_")
        return plain in YES_OR_NO or (plain[:1] == "u" and plain_answer(value) in YES_OR_NO)
    return value is None or isinstance(value, bool)


def _has_lists(tree: RecordTree) -> bool:
    """Records that could be told apart, ranked and counted."""
    return any(len(one.children) > 1 for one in tree.records)


def _may_tell_deeds(outline: Outline) -> bool:
    words = outline.words
    return not DEED_WORDS.isdisjoint(words) or any(word.endswith(DEED_ENDINGS) for word in words)


def _check_values(
    reading: TrialReading,
    outline: Outline,
    index: RecordIndex,
    binder: Binder,
    values: list[Value],
) -> Iterator[StatementFinding]:
    failed = [
        Utterance(one.turn or 0, text)
        for one in reading.served
        if one.error
        for text in texts_in(one.result)
    ]
    checker = Checker(
        outline,
        values,
        index,
        binder,
        reading.said,
        reading.turn_at,
        Beside(
            Said(failed, reading.sample.expectation.locale) if failed else None,
            _named_in_calls(reading),
            reading.questions,
        ),
    )
    findings = _find_foreign(reading, index.tree, values, checker.check())
    return _tell_nearest(reading, index, findings)


def _find_foreign(
    reading: TrialReading,
    tree: RecordTree,
    values: Sequence[Value],
    findings: Iterable[StatementFinding],
) -> Iterator[StatementFinding]:
    """Amounts that are right but for their currency, be they copied or worked out."""
    units = {one.start: one.unit for one in values if one.unit}
    currencies = Currencies(tree, reading.said) if units else None
    for one in findings:
        unit = units.get(one.start, "") if one.label in GOOD and one.label != "user_said" else ""
        own = currencies.instead_of(unit) if currencies is not None and unit else ""
        if own:
            because = f"the results name {own}, nothing names {unit}"
            one = one._replace(label="unit_mismatch", rule="unit", because=because)
        yield one


def _named_in_calls(reading: TrialReading) -> NamedBefore:
    """Identifiers in the arguments of calls that were served, each with the first turn that has it.
    They are no evidence, but what a model makes and names is nothing that it altered either."""
    names: dict[str, int] = {}
    is_read = False

    def named(key: str, turn: int | None) -> bool:
        nonlocal is_read
        if not is_read:
            is_read = True
            for one in reading.served:
                for text in () if one.error else texts_in(one.arguments):
                    for word in _WORD.findall(text):
                        names.setdefault(identifier_key(word), one.turn or 0)
        at = names.get(key)
        return at is not None and (turn is None or at <= turn)

    return named


def _tell_nearest(
    reading: TrialReading, index: RecordIndex, findings: Iterable[StatementFinding]
) -> Iterator[StatementFinding]:
    """What no result has gets the number or the day beside it that comes nearest."""
    nearest: NearestLeaf | None = None  # most values stand in a result
    values = {value.start: value for value in reading.grounder.values}
    for one in findings:
        if one.rule in ("value", "prose", "link") and one.label == "unsupported":
            value = values.get(one.start)
            if value is not None and _may_close_at(index.tree, value):
                yield StatementFinding(one.start, one.end, "unchecked", "doubtful")
                continue
            nearest = nearest or NearestLeaf(index)
            field = None if value is None else nearest.find(value, reading.turn_at(one.start))
            near = (
                ""
                if field is None
                else f"; nearest: {_show(field)} at {place_of(field.call, field.path)}"
            )
            one = one._replace(because=f"no result has it{near}")
        yield one


def _check_weekdays(
    reading: TrialReading, index: RecordIndex, values: list[Value]
) -> Iterator[StatementFinding]:
    for day in find_days(reading.text, values, KnownDays(index, reading.said)):
        if day.named == day.actual:
            yield StatementFinding(day.start, day.end, "derived", "weekday")
        else:
            because = f"that day is a {day.expected}"
            yield StatementFinding(day.start, day.end, "contradicted", "weekday", (), because)


def _check_comparisons(outline: Outline, values: list[Value]) -> Iterator[StatementFinding]:
    from callmark.grounding.worded import find_wrong_steps

    found = [(one.start, one.end, one.because) for one in find_wrong_ways(outline, values)]
    found += find_wrong_steps(outline, values)
    for start, end, because in found:
        yield StatementFinding(start, end, "miscalculated", "equation", (), because)


def _check_polarity(
    reading: TrialReading,
    outline: Outline,
    tree: RecordTree,
    binder: Binder,
    registry: Registry,
) -> Iterator[StatementFinding]:
    changes: list[tuple[int | None, int | None, set[str]]] | None = None  # hardly ever asked for
    for said in PolarFields(tree).said_in(outline, binder):
        field = said.polar.field
        turn = reading.turn_at(said.start)
        if not field.counts_for(turn):
            continue
        if said.agrees:
            yield StatementFinding(said.start, said.end, "supported", "polarity", (field,))
            continue
        before = outline.text[max(outline.sentence_at(said.start)[0], said.start - 80) : said.start]
        if said.asserted is not None and _TO_CHECK.search(
            before
        ):  # `please check whether it is on`
            continue
        since = field.record.served.turn
        if changes is None:
            changes = list(_changes(reading, registry))
        if any(
            (turn is None or at is None or at < turn)
            and (at is None or since is None or at >= since)
            and call != field.call  # what a change itself returned is of after it
            and not stems.isdisjoint(said.polar.words.stems)
            for at, call, stems in changes
        ):
            yield StatementFinding(said.start, said.end, "unchecked", "changed", (field,))
            continue
        clause = outline.text[outline.clause_at(said.start)[0] : said.start]
        if not _may_be_meant(field, clause):
            continue
        rule = "unknown" if said.polar.state is None else "polarity"
        verb = {True: "asserts", False: "denies", None: "knows nothing of"}[said.asserted]
        because = f"the answer {verb} {field.key}"
        yield StatementFinding(said.start, said.end, RULES[rule].label, rule, (field,), because)


def _may_be_meant(field: Field, clause: str) -> bool:
    """Not so: `#322 couldn't be merged`, where the record is that of 318."""
    named = {one.lstrip("#").casefold() for one in _NUMBERED.findall(clause)}
    return not named or any(str(one.value).casefold() in named for one in field.record.fields)


def _check_states(
    reading: TrialReading,
    outline: Outline,
    index: RecordIndex,
    binder: Binder,
    registry: Registry,
) -> Iterator[StatementFinding]:
    changes = ChangesMade(reading, registry)
    for said in StateFields(index).said_in(outline, binder, reading.turn_at):
        turn = reading.turn_at(said.start)
        if changes.may_have_changed(said.field, turn):
            continue
        words = _WORD.findall(outline.text[said.start : said.end])
        if reading.reports.hold([root(word.casefold()) for word in words], turn):
            continue
        because = f"{said.field.key} is {canonical_json(said.field.value)}"
        yield StatementFinding(
            said.start, said.end, "contradicted", "state", (said.field,), because
        )


def _check_kinds(
    reading: TrialReading,
    outline: Outline,
    index: RecordIndex,
    binder: Binder,
    registry: Registry,
) -> Iterator[StatementFinding]:
    changes = ChangesMade(reading, registry)
    for said in KindFields(index, outline.words).said_in(outline, binder, reading.turn_at):
        if changes.may_have_changed(said.field, reading.turn_at(said.start)):
            continue
        because = (
            f"{said.field.key} is {canonical_json(said.field.value)}, this is that of"
            f" {place_of(said.taken.call, said.taken.path)}"
        )
        yield StatementFinding(
            said.start, said.end, RULES[said.rule].label, said.rule, (said.field,), because
        )


def _check_amounts(
    reading: TrialReading, outline: Outline, tree: RecordTree, binder: Binder
) -> Iterator[StatementFinding]:
    if grammar_of(outline.text) != "en":
        return
    for said in Amounts(tree).said_in(outline, binder):
        field = said.amount.shown
        if not field.counts_for(reading.turn_at(said.start)):
            continue
        if said.asserted is said.amount.is_some:
            if not said.asserted:  # that there are some is little to say
                yield StatementFinding(said.start, said.end, "supported", "polarity", (field,))
        else:
            because = f"the answer says that there {'is some' if said.asserted else 'is none'}"
            yield StatementFinding(
                said.start, said.end, "contradicted", "polarity", (field,), because
            )


def _check_ranks(
    reading: TrialReading,
    outline: Outline,
    index: RecordIndex,
    binder: Binder,
    values: list[Value],
) -> Iterator[StatementFinding]:
    from callmark.grounding.ranking import Ranks

    asked = " ".join(str(one.text) for one in reading.questions)
    ranks = Ranks(index, binder.all_mentions, values, asked)
    for wrong in ranks.wrong_in(outline, binder, reading.turn_at):
        because = (
            f"{wrong.field.key} is {_show(wrong.field)}, but {_show(wrong.other)} at"
            f" {place_of(wrong.other.call, wrong.other.path)}"
        )
        yield StatementFinding(
            wrong.start, wrong.end, "contradicted", "rank", (wrong.field,), because
        )


def _check_tallies(
    reading: TrialReading, outline: Outline, tree: RecordTree, binder: Binder
) -> Iterator[StatementFinding]:
    from callmark.grounding.tallies import Tallies

    told = set()
    for wrong in Tallies(tree).wrong_in(outline):
        if not wrong.field.counts_for(reading.turn_at(wrong.start)):
            continue
        told.add(wrong.start)
        because = f"{wrong.field.key}: {wrong.counted} of {wrong.total}"
        yield StatementFinding(
            wrong.start, wrong.end, "miscounted", "count", (wrong.field,), because
        )
    for part in IntroducedLists(outline, binder).wrong_parts():
        if part.start not in told:
            yield StatementFinding(part.start, part.end, "miscounted", "count", (), part.because)


def _changes(
    reading: TrialReading, registry: Registry
) -> Iterator[tuple[int | None, int | None, set[str]]]:
    """Calls that changed something, by the words of their names: `enable_roaming`. What a result
    said of it before need not be so any more. Turn and place in the trace, if they stand there."""
    places = {id(entry): place for place, entry in enumerate(reading.trace.tool_trace)}
    for call, entry in _called(reading, registry):
        if writes(call.name, call.description) or _SWITCH.match(call.name):
            yield call.turn, places.get(id(entry)), set(map(root, key_words(call.name)))


def _check_hours(
    reading: TrialReading, outline: Outline, tree: RecordTree
) -> Iterator[StatementFinding]:
    schedules = schedules_of(tree)
    if len(schedules) != 1:  # whose hours are meant, nobody can tell
        return
    for wrong in wrong_hours(outline, schedules[0]):
        fields = () if wrong.field is None else (wrong.field,)
        if schedules[0].record.counts_for(reading.turn_at(wrong.start)):
            yield StatementFinding(
                wrong.start, wrong.end, "contradicted", "hours", fields, wrong.because
            )


def _may_close_at(tree: RecordTree, value: Value) -> bool:
    if value.kind != "moment" or DAY_KEYS.isdisjoint(map(str.casefold, tree.keys)):
        return False
    return any(one.may_close_at(value) for one in schedules_of(tree))


def _check_names(outline: Outline, known: KnownWords) -> Iterator[StatementFinding]:
    for one in find_unnamed(outline, known):
        because = f"no result names {', '.join(one.names)}"
        yield StatementFinding(one.start, one.end, "unsupported", "unnamed", (), because)


def _check_quotes(
    reading: TrialReading, tree: RecordTree, values: list[Value]
) -> Iterator[StatementFinding]:
    written = (text for one in reading.served for text in texts_in(one.arguments))
    from callmark.grounding.quoting import Quotations

    for one in Quotations(tree, reading.said, written).altered_in(values):
        if one.field.counts_for(reading.turn_at(one.start)):
            because = f"“{one.said}” where the result says “{one.given}”"
            yield StatementFinding(one.start, one.end, "altered", "name", (one.field,), because)


def _check_given_names(
    reading: TrialReading, outline: Outline, names: GivenNames
) -> Iterator[StatementFinding]:
    for one in names.misnamed_in(outline):
        field = one.field
        if field is None:
            yield StatementFinding(
                one.start, one.end, "altered", "name", (), "no one gave this name"
            )
        elif field.counts_for(reading.turn_at(one.start)):
            because = f"a name near {_show(field)} at {place_of(field.call, field.path)}"
            yield StatementFinding(one.start, one.end, "altered", "name", (field,), because)


def _check_deeds(
    reading: TrialReading, outline: Outline, registry: Registry, binder: Binder | None
) -> Iterator[StatementFinding]:
    calls = (call for call, _ in _called(reading, registry))
    can_write = any(writes(spec.name, spec.description) for spec in registry.specs) or any(
        writes(call.name, call.description) for call, _ in _called(reading, registry)
    )
    told = _told_states(reading)
    for deed in find_deeds(outline, calls, reading.turn_at, told, can_write=can_write):
        other = None if binder is None else _done_to_another(deed, outline, binder)
        if not deed.is_served:
            because = "no call that was served did so"
            yield StatementFinding(deed.start, deed.end, "unsupported", "deed", (), because)
        elif other is not None:
            because = f"no call that was served did so to {other}"
            yield StatementFinding(deed.start, deed.end, "unsupported", "deed", (), because)
        else:
            yield StatementFinding(deed.start, deed.end, "supported", "deed")


def _done_to_another(deed: Deed, outline: Outline, binder: Binder) -> str | None:
    """The identifier of the one record that the deed is told of, if every call that did such a
    thing names another record of its list."""
    place = Value(deed.start, deed.end, "quote", "")
    clause = outline.clause_at(deed.start)
    subject = binder.subject_of(place, clause)
    if subject is None or subject.inherited or subject.distant or len(subject.records) != 1:
        return None
    if subject.loose and not _BY_US.match(deed.verb):
        return None
    record = subject.records[0]
    own = {fold(one) for one in record.names if _CODE.search(one)}
    siblings = record.parent.children if record.parent is not None else []
    others = {
        fold(name)
        for one in siblings[:MOST_SIBLINGS]
        if one is not record and one.kind == record.kind
        for name in one.names
        if _CODE.search(name)
    }
    if not own or not deed.calls:
        return None
    is_other = all(
        own.isdisjoint(call.named) and not others.isdisjoint(call.named) for call in deed.calls
    )
    return min(own) if is_other else None


def _told_states(reading: TrialReading) -> Tells:
    """Short texts of results, word by word: `status: cancelled` says that something was, as does
    the key of `amount_refunded: 299`. Everything was created and updated some day."""
    states: dict[str, list[Field]] = {}
    names: set[str] = set()
    said_in: dict[Span, set[str]] = {}

    def tells(word: str, sentence: Span) -> bool:
        if not names:
            names.add("")
            for field in reading.records.tree.fields:
                names.update(map(identifier_key, field.record.names))
                if isinstance(field.value, str) and len(field.value) <= _LONGEST_STATE:
                    words = _STATE_WORD.findall(field.value)
                    for one in {*words, *(part for word in words for part in key_words(word))}:
                        states.setdefault(stem(one.casefold()), []).append(field)
                if field.value:
                    for one in set(key_stems(field.key)) - _OF_ANYTHING:
                        states.setdefault(one, []).append(field)
        turn = reading.turn_at(sentence[0])
        said = said_in.get(sentence)
        if said is None:
            codes = _CODE.findall(reading.text, *sentence)
            said = said_in[sentence] = names.intersection(map(identifier_key, codes))
        return any(
            field.counts_for(turn)
            and (not said or any(identifier_key(one) in said for one in field.record.names))
            for field in states.get(stem(word), ())
        )

    return tells


def _called(
    reading: TrialReading, registry: Registry
) -> Iterator[tuple[DoneCall, TraceEntry | None]]:
    """Calls that were answered; those of the prompt have no entry."""
    for name in done_in_prompt(reading.sample.prompt):
        spec = registry.spec(name)
        yield DoneCall(0, name, "" if spec is None else spec.description), None
    for entry in reading.trace.tool_trace:
        if entry.status == "ok" and entry.name is not None and not _reads_as_error(entry.result):
            spec = registry.spec(entry.name)
            turn = entry.turn if reading.trace.turns is not None else None
            given = (entry.arguments, entry.result)
            about = "" if spec is None else spec.description
            yield DoneCall(turn, entry.name, about, given=given), entry


def _reads_as_error(result: Json) -> bool:
    """Some tools answer `Error: …` in plain text."""
    return isinstance(result, str) and result[:5].casefold() == "error"


def _mark(reading: TrialReading, one: StatementFinding) -> Statement:
    to_bytes = reading.grounder.to_bytes
    field = one.fields[0] if one.fields else None
    is_flag = one.label in FLAGS
    return Statement(
        start=to_bytes(one.start),
        end=to_bytes(one.end),
        label=one.label,
        rule=one.rule,
        tier=reading.tier_of(one.rule) if is_flag else None,
        call=None if field is None else field.call,
        path=None if field is None else field.path,
        expected=cut_value(field.value, LONGEST_QUOTE) if is_flag and field is not None else None,
        because=explain(reading.text, one) if is_flag else one.because,
    )


def explain(text: str, one: StatementFinding) -> str:
    """`says “57”; call 1 /flights/0/price has 120; 57 is price of /flights/1/price`."""
    parts = [quote_said(text[one.start : one.end])]
    if one.fields:
        parts.append(_place(one.fields[0]))
    if one.because:
        parts.append(one.because)
    return "; ".join(parts)


def _place(field: Field) -> str:
    return f"{place_of(field.call, field.path)} has {_show(field)}"


def _show(field: Field) -> str:
    return canonical_json(cut_value(field.value, LONGEST_QUOTE))
