"""Statements of a run for people to judge: drawn rule by rule, shown without a verdict."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Container, Iterable, Iterator
from hashlib import sha256

from callmark.grounding.spans import Span, sentences
from callmark.grounding.text import char_offset
from callmark.records.jsontext import canonical_json
from callmark.records.results import Result, Statement
from callmark.records.samples import prompt_texts
from callmark.records.statements import LabelKeys, LabelLine, ShownResult, StatementKey
from callmark.scorers.score import SCORER_VERSION

LONGEST_RESULT = 2000  # characters; `callmark show` has the rest
LONGEST_SAID = 1000
MOST_RESULTS = 12


def keys_of(result: Result) -> Iterator[StatementKey]:
    """The statements of one trial. An id is a hash: it tells nothing of the rule."""
    if result.scores is None:
        return
    text = _hash(result.model_output)
    for one in result.scores.statements:
        parts = (result.sample_id, result.trial, text, one.start, one.end, one.rule, one.label)
        yield StatementKey(
            statement_id=_hash(repr(parts))[:16],
            text_sha256=text,
            start=one.start,
            end=one.end,
            rule=one.rule,
            label=one.label,
            stratum=one.rule if one.is_flag else f"no flag: {one.label}",
            is_flag=one.is_flag,
        )


def keys_of_run(results: Iterable[Result], wanted: Container[str]) -> LabelKeys:
    """The keys of these statements, out of the run that they were drawn from."""
    population: dict[str, int] = {}
    found: dict[str, StatementKey] = {}
    for result in results:
        for key in keys_of(result):
            population[key.stratum] = population.get(key.stratum, 0) + 1
            if key.statement_id in wanted:
                found[key.statement_id] = key
    return LabelKeys(
        scorer_version=SCORER_VERSION,
        population=dict(sorted(population.items())),
        keys=tuple(key for _, key in sorted(found.items())),
    )


def draw(results: Iterable[Result], number: int) -> tuple[LabelKeys, list[LabelLine]]:
    """As many statements of each stratum as of the others, as far as there are so many, from as
    many trials as possible; in an order that no stratum has a part in. `results` is read once and
    kept only as far as it is drawn."""
    population: dict[str, int] = {}
    drawn: dict[str, list[tuple[int, str, StatementKey, LabelLine]]] = {}
    for result in results:
        seen: dict[str, int] = {}
        shown = _Shown(result)
        statements = result.scores.statements if result.scores else ()
        for key, statement in zip(keys_of(result), statements, strict=True):
            population[key.stratum] = population.get(key.stratum, 0) + 1
            nth = seen[key.stratum] = seen.get(key.stratum, 0) + 1
            rows = drawn.setdefault(key.stratum, [])
            row = (nth, key.statement_id)
            if len(rows) < number or row < rows[-1][:2]:
                rows.append((*row, key, shown.line(key, statement)))
                rows.sort(key=lambda one: one[:2])
                del rows[number:]
    kept = _take_turns([rows for _, rows in sorted(drawn.items())], number)
    kept.sort(key=lambda one: _hash(f"order {one[0].statement_id}"))
    keys = tuple(sorted((key for key, _ in kept), key=lambda one: one.statement_id))
    found = LabelKeys(
        scorer_version=SCORER_VERSION, population=dict(sorted(population.items())), keys=keys
    )
    return found, [line for _, line in kept]


def _take_turns(
    strata: list[list[tuple[int, str, StatementKey, LabelLine]]], number: int
) -> list[tuple[StatementKey, LabelLine]]:
    kept: dict[str, tuple[StatementKey, LabelLine]] = {}
    for place in range(max(map(len, strata), default=0)):
        for rows in strata:
            if place < len(rows) and len(kept) < number:
                key, line = rows[place][2:]
                kept.setdefault(key.statement_id, (key, line))
    return list(kept.values())


class _Shown:
    """What a reader of one trial has to see."""

    def __init__(self, result: Result) -> None:
        self._result = result
        self._text = result.model_output.encode("utf-8", "surrogatepass")
        self._spans: list[Span] | None = None

    def line(self, key: StatementKey, one: Statement) -> LabelLine:
        turn = self._turn_at(one.start)
        return LabelLine(
            statement_id=key.statement_id,
            sample_id=self._result.sample_id,
            trial=self._result.trial,
            statement=self._text[one.start : one.end].decode("utf-8", "replace"),
            sentence=self._sentence(one),
            said=tuple(_cut(text, LONGEST_SAID) for text in self._said(turn)),
            results=tuple(self._results(turn)),
        )

    def _sentence(self, one: Statement) -> str:
        text = self._result.model_output
        if self._spans is None:
            self._spans = sentences(text)
        at = char_offset(text, one.start)
        place = bisect_right(self._spans, at, key=lambda span: span[0]) - 1
        start, end = self._spans[place] if place >= 0 else (0, len(text))
        return text[start : max(end, char_offset(text, one.end))]

    def _turn_at(self, place: int) -> int | None:
        if self._result.turns is None:
            return None
        return bisect_right([turn.end for turn in self._result.turns], place) + 1

    def _said(self, turn: int | None) -> Iterator[str]:
        prompt = self._result.prompt
        if isinstance(prompt, str):
            yield prompt
        else:
            yield from prompt_texts([one for one in prompt if one.get("role") == "user"])
        for said in self._result.said:
            if turn is None or said.turn < turn:
                yield said.text

    def _results(self, turn: int | None) -> list[ShownResult]:
        shown = [
            ShownResult(
                call=call,
                tool=entry.name,
                arguments=_cut(canonical_json(entry.arguments), LONGEST_SAID),
                result=_cut(
                    entry.result if isinstance(entry.result, str) else canonical_json(entry.result),
                    LONGEST_RESULT,
                ),
            )
            for call, entry in enumerate(self._result.tool_trace)
            if entry.served and (turn is None or entry.turn is None or entry.turn < turn)
        ]
        return shown[-MOST_RESULTS:]


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def _hash(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
