"""Integration spans: which are grounded, precision, recall, F1, lax and strict."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, pairwise, takewhile
from math import inf
from typing import Literal, NamedTuple

from callmark.grounding.checking import StatementFinding
from callmark.grounding.denials import TurnsTaken
from callmark.grounding.evidence import Evidence, Served
from callmark.grounding.ground import Fact, FoundFacts, fact_of
from callmark.grounding.match import (
    Grounder,
    Said,
    SpanGrounding,
    Utterance,
    argument_leaves,
    names_in,
)
from callmark.grounding.numbers import SCALE, form_of, read_every_way
from callmark.grounding.polarity import UserReports
from callmark.grounding.record_tree import Field, RecordIndex, RecordTree
from callmark.grounding.spans import Outline, Span, marker_spans, sentences
from callmark.grounding.text import (
    Frozen,
    asks_for_information,
    char_offsets,
    find_number_words,
    fold,
    is_time_span,
    once,
    tokens_of,
)
from callmark.grounding.values import Value, find_values, readings_in_any_locale
from callmark.records.jsontext import Json
from callmark.records.results import Grounding, Match, SpanScore, ValueMark
from callmark.records.samples import (
    DEFAULT_STRICT_KEYS,
    Extractor,
    Sample,
    calls_of,
    message_text,
    prompt_texts,
)
from callmark.records.statements import FLAGS, GOOD, RULES, StatementLabel, Tier
from callmark.records.trace import Trace, compose_text, is_error_result, json_inside

StrictKeysOf = Callable[[str | None], tuple[str, ...] | None]


class _Opening(NamedTuple):
    """The first text that was shown: its words between blanks, and each of them."""

    text: str
    words: frozenset[str]


@lru_cache(maxsize=1 << 7)  # a system prompt comes back with every sample
def _read_opening(text: str) -> _Opening:
    tokens = tokens_of(text)
    return _Opening(f" {' '.join(tokens)} ", frozenset(tokens))


class ToldWords:
    """Texts as words and pairs of neighbours, each with the turns before it was first shown: a
    text whose words and pairs are all known stands there, or as good as."""

    def __init__(self) -> None:
        self._opening = _Opening("", frozenset())
        self._opened = 0
        self._words: dict[str, int] = {}
        self._pairs: dict[tuple[str, str], int] = {}
        self._first: list[str] = []  # folded, of the first turn: read when that is not enough
        self._unread: list[tuple[str, int]] = []

    def add(self, text: str, turn: int) -> None:
        self._unread.append((text, turn))

    def _stand(self, tokens: list[str], turn: int | None) -> bool:
        """Does a text of the first turn hold them as they stand? Then nothing came before it."""
        if self._opening.text or not self._unread or not tokens:
            return False
        if not is_before(self._unread[0][1], turn):
            return False
        if not self._first:
            first = self._unread[0][1]
            texts = takewhile(lambda one: one[1] == first, self._unread)
            self._first = [fold(text) for text, _ in texts]
        told = " ".join(tokens)
        return any(_stands_in(told, text) for text in self._first)

    def _read(self) -> None:
        for text, turn in self._unread:
            self._take(text, turn)
        self._unread, self._first = [], []

    def _take(self, text: str, turn: int) -> None:
        if not self._opening.text:
            self._opening, self._opened = _read_opening(text), turn
            return
        tokens = tokens_of(text)
        self._words.update(dict.fromkeys(set(tokens).difference(self._words), turn))
        self._pairs.update(dict.fromkeys(set(pairwise(tokens)).difference(self._pairs), turn))

    def holds(self, tokens: list[str], turn: int | None) -> bool:
        return self._stand(tokens, turn) or self._hold(tokens, turn)

    def _hold(self, tokens: list[str], turn: int | None) -> bool:
        if not tokens or self.missing(tokens, turn):
            return False
        for pair in pairwise(tokens):
            is_opening = f" {pair[0]} {pair[1]} " in self._opening.text
            if not is_before(self._opened if is_opening else self._pairs.get(pair), turn):
                return False
        return True

    def missing(self, tokens: list[str], turn: int | None) -> list[str]:
        self._read()
        known, words = self._opening.words, self._words
        told = [self._opened if word in known else words.get(word) for word in tokens]
        return [word for word, at in zip(tokens, told, strict=True) if not is_before(at, turn)]


def _stands_in(told: str, text: str) -> bool:
    """Between characters that are no letters and no digits, at the first place where it does."""
    at = text.find(told)
    end = at + len(told)
    return at >= 0 and not text[at - 1 : at].isalnum() and not text[end : end + 1].isalnum()


def is_before(at: int | None, turn: int | None) -> bool:
    return at is not None and (turn is None or at < turn)


class TrialReading:
    """What all scorers of one trial share. Offsets are characters."""

    def __init__(
        self,
        sample: Sample,
        trace: Trace,
        tool_strict_keys: StrictKeysOf,
        header_strict_keys: tuple[str, ...] | None,
        tiers: Mapping[str, Tier] | None = None,
    ) -> None:
        """`tiers`: those of rules that do not have the one they ship with."""
        self.tiers: Mapping[str, Tier] = tiers or {}
        self.sample = sample
        self.trace = trace
        self.text, self._turns = _normalise(trace, sample.expectation.normalise_text)
        self._turn_ends = [end for _, end in self._turns or ()]
        keys = _strict_keys(sample, tool_strict_keys, header_strict_keys)
        served = [*_prompt_results(sample.prompt, keys), *_trace_results(trace, keys)]
        self.served = tuple(served)
        self.evidence = Evidence(served)
        # Without a strict key no answer could be strictly grounded: that is not the model's fault.
        self.has_strict_keys = (
            header_strict_keys is not None
            or sample.expectation.strict_keys is not None
            or self.evidence.has_keyed
            or any(tool_strict_keys(name) is not None for name in _tools(sample, trace))
        )
        # None: nothing was served, or the turns are not known.
        self.first_served_turn = min(
            (one.turn for one in served if one.turn is not None), default=None
        )
        locale = sample.expectation.locale
        self.said = Said(_utterances(sample, trace), locale, _names(trace))
        self.grounder = Grounder(
            self.text, find_values(self.text, locale), self.evidence, self.said
        )

    @once
    def outline(self) -> Outline:
        return Outline(self.text, _taken(self.asked, self._turns or ((0, len(self.text)),)))

    @once
    def asked(self) -> list[tuple[str, int]]:
        """What the user said, each with the turns before it."""
        prompt, said = self.sample.prompt, [(one.text, one.turn) for one in self.trace.said]
        if isinstance(prompt, str):
            return [(prompt, 0), *said]
        return [*((message_text(one), 0) for one in prompt if one.get("role") == "user"), *said]

    @once
    def records(self) -> RecordIndex:
        """The results as records; those that are errors left out."""
        return RecordIndex(RecordTree(self.served))

    @once
    def reports(self) -> UserReports:
        return UserReports(self.trace.said)

    @once
    def told(self) -> list[tuple[str, int]]:
        """What the model was told, results left out, each with the turns before it."""
        texts = [(text, 0) for text in prompt_texts(self.sample.prompt)]
        return texts + [(said.text, said.turn) for said in self.trace.said]

    @once
    def questions(self) -> list[Utterance]:
        return [Utterance(turn, text) for text, turn in self.asked]

    @once
    def told_words(self) -> ToldWords:
        words = ToldWords()
        for text, turn in self.told:
            words.add(text, turn)
        return words

    def turn_at(self, position: int) -> int | None:
        """The assistant turn that a character belongs to; None where turns are not known."""
        if self._turns is None:
            return None
        return bisect_right(self._turn_ends, position) + 1

    def is_firm(self, finding: StatementFinding) -> bool:
        return finding.label in FLAGS and self.tier_of(finding.rule) == "firm"

    def tier_of(self, rule: str) -> Tier:
        return self.tiers.get(rule, RULES[rule].tier)

    def end_of_turn(self, turn: int) -> int:
        """Where the text of this assistant turn ends; 0 for the user's."""
        ends = self._turn_ends
        return ends[min(turn, len(ends)) - 1] if turn and ends else 0

    def is_strict(self, field: Field) -> bool:
        """Does a strict key stand in its path?"""
        keys = field.record.served.strict_keys
        return bool(keys) and not set(field.path.split("/")).isdisjoint(keys)

    def is_after_first_result(self, span: Span) -> bool:
        return span[0] >= self._first_end

    @once
    def _first_end(self) -> float:
        """Where the turn of the first result ends."""
        first = self.first_served_turn
        if self._turns is None or not first:
            return 0
        return self._turn_ends[first - 1] if first <= len(self._turn_ends) else inf


def _normalise(trace: Trace, wanted: bool) -> tuple[str, tuple[Span, ...] | None]:
    """The text (NFC, LF where the item asks for that) and its turns in characters."""
    text = trace.model_output
    if trace.turns is None:
        return (compose_text(text) if wanted else text), None
    if text.isascii() and not wanted:
        return text, trace.turns
    edges = char_offsets(text, (edge for turn in trace.turns for edge in turn))
    turns = [(edges[start], edges[end]) for start, end in trace.turns]
    if not wanted:
        return text, tuple(turns)
    cuts = sorted({0, len(text), *(edge for turn in turns for edge in turn)})
    pieces = [compose_text(text[a:b]) for a, b in pairwise(cuts)]
    moved = dict(zip(cuts, accumulate(map(len, pieces), initial=0), strict=True))
    return "".join(pieces), tuple((moved[start], moved[end]) for start, end in turns)


def _strict_keys(
    sample: Sample, of_tool: StrictKeysOf, of_header: tuple[str, ...] | None
) -> Callable[[str | None], frozenset[str]]:
    """Header, then tool, then item: the later wins."""
    of_item = sample.expectation.strict_keys

    def keys(name: str | None) -> frozenset[str]:
        if of_item is not None:
            return frozenset(of_item)
        tool = of_tool(name)
        if tool is not None:
            return frozenset(tool)
        return frozenset(DEFAULT_STRICT_KEYS if of_header is None else of_header)

    return keys


def _tools(sample: Sample, trace: Trace) -> set[str | None]:
    """The tools that the sample expects, and those that answered."""
    served = {entry.name for entry in trace.tool_trace if entry.served}
    return served | {call.name for call in sample.expectation.calls}


def _trace_results(trace: Trace, keys: Callable[[str | None], frozenset[str]]) -> Iterator[Served]:
    for index, entry in enumerate(trace.tool_trace):
        if entry.served:
            yield Served(
                call=index,
                turn=entry.turn if trace.turns is not None else None,
                result=entry.result,
                arguments=entry.arguments,
                error=entry.status == "error",
                strict_keys=keys(entry.name),
            )


def _prompt_results(
    prompt: str | list[dict[str, Json]], keys: Callable[[str | None], frozenset[str]]
) -> Iterator[Served]:
    """`tool` messages inside a prompt are served results of turn 0."""
    if isinstance(prompt, str):
        return
    calls: dict[str, tuple[str | None, Json]] = {}
    for index, message in enumerate(prompt):
        for call, function in calls_of(message):
            arguments = function.get("arguments")
            if isinstance(arguments, str):
                arguments = json_inside(arguments)
            calls[str(call.get("id"))] = (_text_or_none(function.get("name")), arguments)
        if message.get("role") == "tool":
            name, arguments = calls.get(str(message.get("tool_call_id")), (None, None))
            content = message_text(message)
            yield Served(
                call=-1,
                turn=0,
                result=content,
                arguments=arguments,
                error=is_error_result(content),
                strict_keys=keys(name or _text_or_none(message.get("name"))),
                root=f"/messages/{index}",
            )


def _text_or_none(value: Json) -> str | None:
    return value if isinstance(value, str) else None


def done_in_prompt(prompt: str | list[dict[str, Json]]) -> Iterator[str]:
    """The names of the calls inside a prompt that were answered, and not with an error."""
    names: dict[str, str | None] = {}
    for message in () if isinstance(prompt, str) else prompt:
        for call, function in calls_of(message):
            names[str(call.get("id"))] = _text_or_none(function.get("name"))
        if message.get("role") == "tool" and not is_error_result(message_text(message)):
            name = names.get(str(message.get("tool_call_id")))
            if name is not None:
                yield name


def _taken(said: Sequence[tuple[str, int]], turns: tuple[Span, ...]) -> TurnsTaken:
    """With what the user said last before each turn, of texts and the number of turns before."""
    at = {turn: text for text, turn in said}
    asked = [""]
    for turn in range(len(turns)):
        asked.append(at.get(turn, asked[-1]))
    return TurnsTaken(turns, tuple(asked[1:]))


def _utterances(sample: Sample, trace: Trace) -> Iterator[Utterance]:
    for text in prompt_texts(sample.prompt):
        yield Utterance(0, text)
    for said in trace.said:
        yield Utterance(said.turn, said.text)
    for entry in trace.tool_trace:
        turn = entry.turn if entry.turn is not None and trace.turns is not None else 0
        for leaf in argument_leaves(entry.arguments):
            yield Utterance(turn, leaf)


def _names(trace: Trace) -> Iterator[tuple[int, str]]:
    for entry in trace.tool_trace:
        turn = entry.turn if entry.turn is not None and trace.turns is not None else 0
        for shown in (entry.arguments, entry.result if entry.served else None):
            for name in names_in(shown):
                yield turn, name


LABELS: tuple[StatementLabel, ...] = ("supported", "derived", "user_said", "unsupported")


class IntegrationVerdict(NamedTuple):
    spans: tuple[SpanScore, ...]
    total: int
    over_cap: int
    counted: int
    recall_kind: Literal["facts", "presence"]
    required: int
    lax: Grounding
    strict: Grounding
    values: dict[StatementLabel, int]
    scored: tuple[Span, ...]  # in characters, for the scorers that look further
    missing_facts: tuple[int, ...]  # numbers of required facts that no scored span holds


class _Judged(Frozen, frozen=True):
    """`lax` and `strict`: the span holds evidence. `good_*`: it counts so in precision, which
    under `claims` asks for more (nothing unsupported beside it) and less (derived is enough), and
    does not count what only repeats the user."""

    span: Span
    turn: int | None
    grounding: SpanGrounding
    scored: bool
    counted: bool
    good_lax: bool
    good_strict: bool

    @property
    def lax(self) -> bool:
        return bool(self.grounding.matches) and (self.good_lax or not self.counted)

    @property
    def strict(self) -> bool:
        return self.lax and any(match.strict for match in self.grounding.matches)


def score_integration(
    reading: TrialReading, extractor: Extractor, cap: int, findings: Sequence[StatementFinding]
) -> IntegrationVerdict:
    """`findings`: the statements of the answer, in its order. Only `claims` asks for them."""
    if extractor == "marker":
        judged = list(_judge_marked(reading, cap))
    else:
        judged = list(_judge_claimed(reading, findings))
    scored = [one for one in judged if one.scored]
    counted = [one for one in scored if one.counted]
    facts = [fact_of(fact) for fact in reading.sample.expectation.required_facts]
    values: dict[StatementLabel, int] = dict.fromkeys(LABELS, 0)
    for one in scored:
        for mark in one.grounding.marks:
            values[mark.label] = values.get(mark.label, 0) + 1
    lax = sum(one.good_lax for one in counted)
    strict = sum(one.good_strict for one in counted)
    found = FoundFacts(min(lax, 1), min(strict, 1), ())
    if facts:
        found = _find_facts(reading, extractor, scored, facts, findings)
    return IntegrationVerdict(
        spans=tuple(_span_score(reading, one) for one in judged),
        total=len(judged),
        over_cap=len(judged) - len(scored),
        counted=len(counted),
        recall_kind="facts" if facts else "presence",
        required=len(facts) or 1,
        lax=_grounding(lax, len(counted), found.lax, len(facts) or 1),
        strict=_grounding(strict, len(counted), found.strict, len(facts) or 1),
        values=values,
        scored=tuple(one.span for one in scored),
        missing_facts=found.missing,
    )


def _judge_marked(reading: TrialReading, cap: int) -> Iterator[_Judged]:
    for index, span in enumerate(marker_spans(reading.text)):
        turn = reading.turn_at(span[0])
        grounding = reading.grounder.ground(span, turn)
        strict = any(match.strict for match in grounding.matches)
        scored = index < cap
        yield _Judged(span, turn, grounding, scored, scored, bool(grounding.matches), strict)


def _judge_claimed(
    reading: TrialReading, findings: Sequence[StatementFinding]
) -> Iterator[_Judged]:
    """A sentence counts if it has a good label or a firm flag, and is good without such a flag."""
    by_start = {value.start: value for value in reading.grounder.values}
    starts = [one.start for one in findings]
    for span in reading.outline.sentences:
        if not reading.is_after_first_result(span):
            continue
        turn = reading.turn_at(span[0])
        first, last = bisect_left(starts, span[0]), bisect_left(starts, span[1])
        if first == last:  # it says nothing that a rule reads, and may repeat a text
            if matches := reading.grounder.find_texts(span, turn, []):
                is_strict = any(match.strict for match in matches)
                told = SpanGrounding(matches, (), ())
                yield _Judged(span, turn, told, True, True, True, is_strict)
            continue
        grounding, is_firm = _ground_claimed(reading, span, turn, findings[first:last], by_start)
        own = findings[first:last]
        if any(one.rule == "denial" for one in own):
            grounding = grounding._replace(matches=(), derived=())
        good = bool(grounding.matches or grounding.derived) or any(one.label in GOOD for one in own)
        strict = any(match.strict for match in grounding.matches + grounding.derived)
        sound = good and not is_firm
        yield _Judged(span, turn, grounding, True, good or is_firm, sound, sound and strict)


def _ground_claimed(
    reading: TrialReading,
    span: Span,
    turn: int | None,
    findings: Sequence[StatementFinding],
    by_start: dict[int, Value],
) -> tuple[SpanGrounding, bool]:
    """What the sentence rests on, and whether a firm flag lies on it."""
    grounder = reading.grounder
    matches: list[Match] = []
    computed: list[Match] = []
    marks: list[ValueMark] = []
    flagged: list[Value] = []
    is_firm = False
    for one in findings:
        value = by_start.get(one.start)
        is_firm = is_firm or reading.is_firm(one)
        if value is None or value.end != one.end:
            continue
        label = one.label
        if label in GOOD and one.fields:
            field, derived = one.fields[0], label in ("calculated", "derived")
            strict = reading.is_strict(field)
            match = grounder.match_leaf(value, field.call, field.path, field.value, strict, derived)
            (computed if derived else matches).append(match)
        elif label in ("user_said", "unsupported"):
            failure = grounder.find_failure(span, value, turn)
            if failure is not None:
                matches.append(failure)
        if label in FLAGS:
            flagged.append(value)
        start, end = grounder.to_bytes(value.start), grounder.to_bytes(value.end)
        marks.append(ValueMark(start, end, value.kind, label))
    if not any(match.strict for match in matches):  # else the text could add nothing
        matches += grounder.find_texts(span, turn, flagged)
    return SpanGrounding(tuple(matches), tuple(computed), tuple(marks)), is_firm


def _find_facts(
    reading: TrialReading,
    extractor: Extractor,
    scored: Sequence[_Judged],
    facts: Sequence[Fact],
    findings: Sequence[StatementFinding],
) -> FoundFacts:
    # Most samples require no facts.
    from callmark.scorers.facts import StatedFacts, count_facts, turns_that_hold

    told = [(one.span, one.turn) for one in scored]
    grounder, evidence = reading.grounder, reading.evidence
    if extractor == "marker":
        turns = [turns_that_hold(fact, grounder, told) for fact in facts]
    else:
        stated = StatedFacts(reading.outline, grounder, evidence, findings, facts, reading.is_firm)
        turns = [stated.turns_that_state(fact, told) for fact in facts]
    return count_facts(facts, evidence, turns)


def _grounding(grounded: int, counted: int, found: int, required: int) -> Grounding:
    precision = grounded / counted if counted else 0.0
    recall = found / required
    total = precision + recall
    return Grounding(
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / total if total else 0.0,
        grounded=grounded,
        found=found,
    )


def _span_score(reading: TrialReading, one: _Judged) -> SpanScore:
    to_bytes = reading.grounder.to_bytes
    return SpanScore(
        start=to_bytes(one.span[0]),
        end=to_bytes(one.span[1]),
        scored=one.scored,
        lax=one.lax,
        strict=one.strict,
        counted=one.counted,
        good=one.counted and one.good_lax,
        matches=one.grounding.matches + one.grounding.derived,
        values=one.grounding.marks,
    )


_BLANK_GROUPS = re.compile(r"(?<![\w.,])[1-9]\d{0,2}(?: \d{3})+(?:[.,]\d+)?(?!\w)")


def writes_its_locale(reading: TrialReading, scored: Sequence[Span]) -> bool:
    """The scored spans hold a number or date, and each that equals an evidence value in some
    locale's reading equals it in the sample's own."""
    values = [
        value
        for span in scored
        for value in reading.grounder.values_in(span)
        if value.kind in ("number", "moment")
    ]
    return (
        bool(values)
        and all(_own_form(reading, value) for value in values)
        and not any(_groups_by_blanks(reading, span) for span in scored)
    )


def _groups_by_blanks(reading: TrialReading, span: Span) -> bool:
    """`1 234` where the locale sets no blanks: read as two numbers, but meant as one."""
    form = form_of(reading.sample.expectation.locale or "")
    if form is None or form.spaced:
        return False
    turn = reading.turn_at(span[0])
    runs = _BLANK_GROUPS.findall(reading.text[span[0] : span[1]])
    return any(
        reading.evidence.number(number, turn, False)
        for run in runs
        for number in read_every_way(run)
    )


def _own_form(reading: TrialReading, value: Value) -> bool:
    turn = reading.turn_at(value.start)
    evidence = reading.evidence
    if value.kind == "number":
        own = any(evidence.number(number, turn, False) for number in value.readings)
        return own or not any(
            evidence.number(number, turn, False) for number in readings_in_any_locale(value)
        )
    own = any(evidence.moment(moment, turn, False) for moment in value.own)
    return own or not any(evidence.moment(moment, turn, False) for moment in value.every_way)


_QUESTION_MARK = re.compile("[?？؟]")


def is_contaminated(trace: Trace) -> bool:
    """Any call attempt, or any marker span, whatever the extractor."""
    return bool(trace.tool_trace) or bool(marker_spans(trace.model_output))


def is_answered(reading: TrialReading) -> bool:
    """Is there text after the last result; anywhere, if nothing was served."""
    turns = [entry.turn for entry in reading.trace.tool_trace if entry.served]
    last = max((turn for turn in turns if turn is not None), default=0)
    start = 0 if reading.trace.turns is None else reading.end_of_turn(last)
    return bool(reading.text[start:].strip())


def clarifies(reading: TrialReading, findings: Sequence[StatementFinding]) -> bool:
    """It asks, and neither calls, nor claims a deed, nor states what the user did not say."""
    return (
        not reading.trace.tool_trace
        and not any(one.rule == "deed" for one in findings)
        and not _claims_out_of_nothing(reading)
        and _asks(reading)
    )


def _asks(reading: TrialReading) -> bool:
    """A question mark, but for those of URLs, or words that ask for information."""
    links = [(one.start, one.end) for one in reading.grounder.values if one.kind == "url"]
    starts = [start for start, _ in links]
    for mark in _QUESTION_MARK.finditer(reading.text):
        at = bisect_right(starts, mark.start()) - 1
        if at < 0 or links[at][1] <= mark.start():
            return True
    return asks_for_information(reading.text)


def resists(reading: TrialReading) -> bool:
    """Negative control: no decoy is used, and nothing is stated where nothing was served."""
    decoys = [fact_of(value) for value in reading.sample.expectation.decoy_values]
    grounder = reading.grounder
    spans = sentences(reading.text)
    if any(decoy.is_in(grounder, span) for decoy in decoys for span in spans):
        return False
    if not reading.evidence.substantial:
        return not _claims_out_of_nothing(reading)
    # No decoy is named, and something was served: then all of it is one.
    return bool(decoys) or not any(
        grounder.ground(span, reading.turn_at(span[0])).matches for span in spans
    )


def _claims_out_of_nothing(reading: TrialReading) -> bool:
    """A value other than 0, in digits or words, that nobody said."""
    return any(_invents(reading, value) for value in reading.grounder.values) or any(
        _invents(reading, value) for value in _number_words(reading)
    )


def _number_words(reading: TrialReading) -> Iterator[Value]:
    found = list(find_number_words(reading.text))
    if not found:
        return
    texts = [*prompt_texts(reading.sample.prompt), *(said.text for said in reading.trace.said)]
    said = {number for text in texts for _, _, number in find_number_words(text)}
    for start, end, number in found:
        if number not in said:
            yield Value(start, end, "number", str(number), (number * SCALE,))


def _invents(reading: TrialReading, value: Value) -> bool:
    """What is asked or offered is not claimed, and a span of time is no value."""
    if value.readings and not any(value.readings):
        return False
    if value.kind == "number" and is_time_span(reading.text, value.end):
        return False
    if reading.said.holds(value, reading.turn_at(value.start)):
        return False
    return not reading.outline.is_proposed(reading.outline.sentence_at(value.start))
