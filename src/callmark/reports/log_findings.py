"""What a scored log shows: statements, deeds, arguments and calls that nothing backs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice, zip_longest

import msgspec

from callmark.records.jsontext import canonical_json
from callmark.records.results import Result, Statement, list_invented
from callmark.records.statements import StatementLabel
from callmark.records.trace import TraceEntry
from callmark.summary.metrics import label_words

SHOWN = 3  # places of each kind
MOST_TO_LOOK_AT = 4  # conversations of any kind
LONGEST = 160
_NO_CALL = {
    "malformed": "cannot be read",
    "tool_not_offered": "is no tool that was offered",
    "tool_not_allowed": "is no tool that is allowed",
}


class FindingKind(msgspec.Struct, frozen=True):
    """One kind of finding: how many there are, and the first of them as sentences. `to_look_at`:
    their conversations, where the sentences do not tell what was found."""

    what: str
    count: int
    first: tuple[str, ...]
    to_look_at: tuple[str, ...] = ()


class LogFindings(msgspec.Struct, frozen=True):
    """`by_label`: all statements, `flagged` those that any rule flags; `silent`: conversations in
    which the model writes no answer; `to_look_at`: the first conversations with a finding."""

    conversations: int
    calls: int
    kinds: tuple[FindingKind, ...]
    by_label: Mapping[StatementLabel, int]
    flagged: int
    silent: int
    to_look_at: tuple[str, ...] = ()


def find_in_log(results: Iterable[Result]) -> LogFindings:
    """One pass over the trials; of each kind only the first sentences are kept."""
    counts = dict.fromkeys(KINDS, 0)
    first: dict[str, list[str]] = {what: [] for what in KINDS}
    places: dict[str, dict[str, None]] = {what: {} for what in KINDS}
    labels: Counter[StatementLabel] = Counter()
    conversations = calls = flagged = silent = 0
    for result in results:
        conversations += 1
        calls += len(result.tool_trace)
        silent += not result.model_output.strip()
        stated = () if result.scores is None else result.scores.statements
        labels.update(one.label for one in stated)
        flagged += sum(one.tier is not None for one in stated)
        for what, find in KINDS.items():
            for sentence in find(result):
                counts[what] += 1
                if len(places[what]) < SHOWN:
                    places[what][result.sample_id] = None
                text = " ".join(f"{result.sample_id}: {sentence}".split())
                text = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
                if len(first[what]) < SHOWN and text not in first[what]:
                    first[what].append(text)
    kinds = tuple(
        FindingKind(
            what, counts[what], tuple(first[what]), tuple(places[what]) if find is _privacy else ()
        )
        for what, find in KINDS.items()
    )
    return LogFindings(conversations, calls, kinds, labels, flagged, silent, _first_of(places))


def _first_of(places: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """One of each kind before a second of any."""
    ranks = zip_longest(*places.values())
    found = dict.fromkeys(one for rank in ranks for one in rank if one is not None)
    return tuple(islice(found, MOST_TO_LOOK_AT))


def _flags(result: Result, *, deeds: bool) -> Iterator[Statement]:
    for one in () if result.scores is None else result.scores.statements:
        if one.is_flag and (one.rule == "deed") == deeds:
            yield one


def _statements(result: Result) -> Iterator[str]:
    for one in _flags(result, deeds=False):
        if one.is_firm:
            yield f"{label_words(one.label)}: {one.because}"


def _doubtful(result: Result) -> Iterator[str]:
    for one in _flags(result, deeds=False):
        if not one.is_firm:
            yield f"{label_words(one.label)}: {one.because}"


def _deeds(result: Result) -> Iterator[str]:
    for one in _flags(result, deeds=True):
        yield one.because


def _arguments(result: Result) -> Iterator[str]:
    for one in list_invented(result):
        entry = result.tool_trace[one.call]
        where = f"{one.path} of call {one.call}, {_call(entry)}"
        yield f"nobody gave “{one.source}” in {where}" if one.source else f"nobody gave {where}"


def _calls(result: Result) -> Iterator[str]:
    for at, entry in enumerate(result.tool_trace):
        if entry.status in _NO_CALL:
            why = f": {entry.reason}" if entry.reason else ""
            yield f"call {at}, {entry.name or entry.raw or ''}: {_NO_CALL[entry.status]}{why}"
        for error in entry.schema_errors or ():
            yield f"call {at}, {_call(entry)}: {error}"
        if entry.status == "ok" and entry.schema_errors is None and _is_invalid(result):
            yield f"call {at}, {_call(entry)}: is no tool that was offered"


def _is_invalid(result: Result) -> bool:
    return result.scores is not None and result.scores.json_args_valid is False


def _privacy(result: Result) -> Iterator[str]:
    """Without what was found: personal data do not belong on one more screen."""
    if result.scores is not None and not result.scores.privacy_ok:
        found = result.scores.privacy
        told = [f"{one.kind} in {one.where}" for one in found.findings if not one.echoed]
        told += ["a URL"] * bool(found.invented_urls)
        yield ", ".join(dict.fromkeys(told)) or "personal data, repeated"


def _call(entry: TraceEntry) -> str:
    return f"{entry.name} {canonical_json(entry.arguments)}"


# In the order in which they are told.
KINDS: dict[str, Callable[[Result], Iterator[str]]] = {
    "statements that the tools do not back": _statements,
    "deeds reported but not done": _deeds,
    "arguments that came from nowhere": _arguments,
    "calls that break their schema": _calls,
    "answers with personal data or addresses that nobody gave": _privacy,
    "statements worth a look (advisory rules)": _doubtful,
}
