"""Whether what an item expects can be met: its calls against their schemas and fixtures, its facts
against the results that they have to come from. No answer is needed for that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from callmark.grounding.ground import fact_of
from callmark.records.jsontext import canonical_json
from callmark.records.problems import MAX_PROBLEMS
from callmark.records.report import Failing
from callmark.records.samples import CALL_FREE, NOT_ASKED, ExpectedCall, Sample, asks_nothing
from callmark.records.seams import Failure
from callmark.records.trace import Trace, TraceEntry
from callmark.run.composition import Ids, entry_of_call, recorded_answers, share_of
from callmark.run.offers import Offer
from callmark.scorers.integration import TrialReading
from callmark.summary.metrics import Measure, count_of

CALLS = "dataset_calls"
FACTS = "dataset_facts"
RETRIES = 3  # how often an item that expects a retry may ask before the tool answers
LONGEST_CALL = 120

PlayCalls = Callable[[Sequence[TraceEntry]], Trace]


class CheckedPart(msgspec.Struct, frozen=True):
    """What was found in one item, of its calls or of its facts. `asked`: there was something to
    check. `is_open`: it could not be checked."""

    asked: bool = False
    is_open: bool = False
    problems: tuple[str, ...] = ()


class CheckedItem(msgspec.Struct, frozen=True):
    calls: CheckedPart = CheckedPart()
    facts: CheckedPart = CheckedPart()


def check_expectations(
    sample: Sample, offer: Offer, play_calls: PlayCalls, *, has_fixtures: bool
) -> CheckedItem:
    expectation = sample.expectation
    if expectation.kind in CALL_FREE:
        return CheckedItem()
    calls = expectation.calls
    whole = [call for call in calls if call.arguments is not None]
    entries = _entries(sample, whole, has_fixtures=has_fixtures)
    is_answered = has_fixtures or any(entry.served for entry in entries)
    # What was merely observed, or is one step of a conversation, may have no result at all.
    needs_answer = is_answered and not expectation.observed and not expectation.is_step
    said = "observed" if expectation.observed else "expected"
    trace = play_calls(entries * (RETRIES if expectation.retry else 1))
    made = trace.tool_trace[: len(whole)]
    problems = [
        *_not_offered(calls, offer),
        *(
            problem
            for entry in made
            if entry.name is not None
            and offer.registry.resolve(entry.name) in offer.names
            and (problem := _problem_of(entry, said, needs_answer=needs_answer)) is not None
        ),
    ]
    asks_facts = bool(expectation.required_facts) and not expectation.is_step
    # Nobody knows what a call returns of which only the name is known, or that nothing answers.
    open_facts = asks_facts and (
        not calls
        or len(whole) < len(calls)
        or not all(
            any(one.served for one in trace.tool_trace if _same(one, entry)) for entry in made
        )
    )
    missing = _missing_facts(sample, trace) if asks_facts and not open_facts else []
    absent = (
        f"required fact {canonical_json(fact)} is in no result of the expected calls"
        for fact in missing
    )
    return CheckedItem(
        CheckedPart(bool(calls), bool(calls) and not is_answered and not problems, tuple(problems)),
        CheckedPart(asks_facts, open_facts, tuple(absent)),
    )


def _missing_facts(sample: Sample, trace: Trace) -> list[str | int | float]:
    """Those that no answer could state with the evidence that the scorer asks for."""
    evidence = TrialReading(sample, trace, lambda _: None, None).evidence
    facts = sample.expectation.required_facts
    return [fact for fact in facts if not fact_of(fact).support(evidence, None)]


def _entries(
    sample: Sample, calls: Sequence[ExpectedCall], *, has_fixtures: bool
) -> list[TraceEntry]:
    recorded = None if has_fixtures else sample.metadata.get("tool_result_fields")
    answers = recorded_answers(recorded, len(calls))
    if isinstance(answers, Failure):
        answers = ()
    return [entry_of_call(call, answers[at : at + 1]) for at, call in enumerate(calls)]


def _not_offered(calls: Sequence[ExpectedCall], offer: Offer) -> Iterator[str]:
    for name in dict.fromkeys(call.name for call in calls):
        if offer.registry.resolve(name) not in offer.names:
            yield f"expects a call of {name!r}, which it is not offered"


def _problem_of(entry: TraceEntry, said: str, *, needs_answer: bool) -> str | None:
    call = f"{said} call {entry.name} {_shorten(canonical_json(entry.arguments))}"
    if entry.schema_errors:
        return f"{call} breaks its schema: {'; '.join(entry.schema_errors)}"
    if needs_answer and not entry.served:
        return f"{call} has no fixture"
    return None


def _same(one: TraceEntry, other: TraceEntry) -> bool:
    return one.name == other.name and one.arguments == other.arguments


def _shorten(text: str) -> str:
    return text if len(text) <= LONGEST_CALL else text[: LONGEST_CALL - 1] + "…"


class _Tally:
    """Of calls, or of facts: how many items ask, could not be checked, are wrong."""

    def __init__(self) -> None:
        self.asked = 0
        self.open = Ids()
        self.wrong = Ids()
        self.problems: list[str] = []

    def add(self, sample_id: str, finding: CheckedPart) -> None:
        self.asked += finding.asked
        if finding.is_open:
            self.open.add(sample_id)
        if finding.problems:
            self.wrong.add(sample_id)
            room = MAX_PROBLEMS - len(self.problems)
            self.problems += [f"{sample_id}: {what}" for what in finding.problems[:room]]

    def measure(self, absent: str) -> Measure:
        checked = self.asked - self.open.count
        share = share_of(checked - self.wrong.count, checked, population=self.asked)
        return msgspec.structs.replace(share, absent=absent)

    def why(self, unknown: str) -> str:
        if not self.wrong.count:
            return f"{self.open.count} of {self.asked} items: {unknown}: {self.open.named()}"
        more = self.wrong.count - 1
        others = f" (and {more} more item{'s' if more > 1 else ''})" if more else ""
        return f"{self.problems[0]}{others}"


class Expectations:
    """Takes what was found in every item, once, in the order of the dataset."""

    def __init__(self) -> None:
        self._calls = _Tally()
        self._facts = _Tally()
        self._unasked = self._cut = 0

    def add(self, sample: Sample, found: CheckedItem) -> None:
        self._unasked += asks_nothing(sample.prompt)
        self._cut += bool(sample.metadata.get(NOT_ASKED))
        self._calls.add(sample.sample_id, found.calls)
        self._facts.add(sample.sample_id, found.facts)

    def measures(self) -> dict[str, Measure]:
        return {
            CALLS: self._calls.measure("no item expects a call"),
            FACTS: self._facts.measure("no item has required_facts"),
        }

    def failing(self) -> dict[str, Failing]:
        lists = {CALLS: self._calls.wrong, FACTS: self._facts.wrong}
        return {name: ids.failing() for name, ids in lists.items() if ids.count}

    def reasons(self) -> Mapping[str, Callable[[], str]]:
        """What to say of a gate that did not pass."""
        no_fixtures = "no fixtures (--fixtures) answer their calls"
        no_results = "the results of their expected calls are not known"
        return {
            CALLS: lambda: self._calls.why(no_fixtures),
            FACTS: lambda: self._facts.why(no_results),
        }

    def warnings(self) -> list[str]:
        """Every problem, where a gate that names the first would hide others."""
        listed = (tally.problems for tally in (self._calls, self._facts))
        found = [problem for problems in listed if len(problems) > 1 for problem in problems]
        if self._unasked:
            found.append(
                f"{count_of(self._unasked, 'item')} without what was asked, which the log does not"
                " hold: write it into the prompt before a model is asked"
            )
        if self._cut:
            found.append(
                f"{count_of(self._cut, 'item')} with less than the user said (user_turns_lost):"
                " a model would not be asked all of it"
            )
        return found
