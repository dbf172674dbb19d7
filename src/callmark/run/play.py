"""The only loop: model turn, call attempts, answers, next turn."""

from __future__ import annotations

import json
import time
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Literal, assert_never

import msgspec

from callmark.broker.broker import BrokerSession
from callmark.calls.attempts import Attempt, ToolCall, entry_for
from callmark.calls.formats import FORMATS, Format
from callmark.calls.ledger import PLAIN_WORDS, TurnText, read_turn
from callmark.calls.registry import Registry
from callmark.config import RunConfig
from callmark.errors import CallmarkError, UsageError, fault_of_ours
from callmark.plugins import added_scorers
from callmark.records.jsontext import Json, digest, sha256_hex, well_formed
from callmark.records.results import ByteRange, Decoding, Fingerprints, Result, Scoring
from callmark.records.samples import CALL_FREE, Extractor, ExtractorBy, Sample
from callmark.records.seams import (
    AddedScorer,
    Conversation,
    Failure,
    Finish,
    Hit,
    Miss,
    Reply,
    Runner,
    Spent,
    ToolSession,
    ToolSource,
    Usage,
)
from callmark.records.trace import (
    UNPARSED,
    EntryStatus,
    Stop,
    ThoughtCall,
    Trace,
    TraceEntry,
    UserTurn,
    answer_entry,
    is_mcp_result,
    text_of,
)
from callmark.run.faults import FAILED, ToolFaults
from callmark.run.offers import REMEMBERED, NoFixtures, Offer
from callmark.scorers.calls import expected_call, is_same_call, observed_call
from callmark.scorers.redaction import redact_result
from callmark.scorers.score import SCORER_VERSION, ScoreSettings, cross_score, score_trial
from callmark.store.spending import add_usage
from callmark.summary.metrics import CrossScore

if TYPE_CHECKING:
    from callmark.runners.response_template import ResponseTemplate

ParseText = Literal["auto", "on", "off"]

# Finishes that end a trial whatever the turn held.
STOP_OF: dict[Finish, Stop] = {
    "length": "truncated",
    "content_filter": "filtered",
    "context_exceeded": "context_exceeded",
}
NAMELESS_CALL = "malformed_call"

_encode = msgspec.json.Encoder().encode


class PlaySettings(msgspec.Struct, frozen=True, kw_only=True):
    """`allowed` None: every tool of the registry may be offered. `max_turns` None: as many as the
    runner answers (a recording ends by itself); 1 is the single shot."""

    registry: Registry
    allowed: frozenset[str] | None = None
    max_turns: int | None = 8
    parse_text: ParseText = "auto"
    formats: tuple[Format, ...] = FORMATS
    template: ResponseTemplate | None = None  # reads what a server left in the text
    miss_reply: str = '{"ok": false, "error": "no result available"}'
    faults: ToolFaults | None = None
    plain_hints: tuple[str, ...] = ()  # of the formats: those that plain words can hold

    def __post_init__(self) -> None:
        hints = dict.fromkeys(row.hint for row in self.formats if PLAIN_WORDS.fullmatch(row.hint))
        msgspec.structs.force_setattr(self, "plain_hints", tuple(hints))


class TrialInput(msgspec.Struct, frozen=True):
    """One sample to be run once. `tools` are the specs of the `offered` names; `opening` is what
    the model is sent first (None: the sample's prompt as it stands)."""

    sample: Sample
    trial: int
    offered: frozenset[str] | None  # None: nothing says what was offered
    tools: Sequence[dict[str, Json]]
    opening: Sequence[dict[str, Json]] | None = None
    registry: Registry | None = None  # as this sample sees it; None: the run's


class Played(msgspec.Struct, frozen=True):
    """`error` not None: infrastructure failed, the trace is what was there until then. `spent`
    None: nobody counted."""

    sample: Sample
    trial: int
    trace: Trace
    used_fixtures_sha256: str
    error: str | None = None
    spent: Spent | None = None


Answer = Callable[[Sequence[Conversation]], Sequence[Reply | Failure]]


async def play(
    trials: Sequence[TrialInput],
    runner: Runner,
    source: ToolSource | None,
    settings: PlaySettings,
) -> list[Played]:
    """Play every trial to its end. Without a source nothing answers what is not recorded."""
    playing = [_Play(trial, source, settings, runner.without_secrets) for trial in trials]
    live = playing
    while live:
        replies = await runner.answer([one.conversation() for one in live])
        for one, reply in zip(live, replies, strict=True):
            one.take(reply)
        live = [one for one in live if one.stop is None]
    return [one.played() for one in playing]


async def play_alone(
    trial: TrialInput, runner: Runner, source: ToolSource | None, settings: PlaySettings
) -> Played:
    """Play one trial, whatever others are played beside it."""
    one = _Play(trial, source, settings, runner.without_secrets)
    while one.stop is None:
        [reply] = await runner.answer((one.conversation(),))
        one.take(reply)
    return one.played()


def play_in_step(
    trials: Iterator[TrialInput],
    answer: Answer,
    size: int,
    source: ToolSource | None,
    settings: PlaySettings,
) -> Iterator[Played]:
    """Play `size` trials at once, one turn of all of them after the other. A trial that ends makes
    room for the next one, so that batches stay full."""
    live: list[_Play] = []
    while True:
        fresh = islice(trials, size - len(live))
        live += [_Play(trial, source, settings) for trial in fresh]
        if not live:
            return
        replies = answer([one.conversation() for one in live])
        for one, reply in zip(live, replies, strict=True):
            one.take(reply)
        ended = [one for one in live if one.stop is not None]
        live = [one for one in live if one.stop is None]
        for one in ended:
            yield one.played()


def lose_trial(trial: TrialInput, failure: Failure) -> Played:
    """A trial that infrastructure lost as a whole."""
    lost = Trace(model_output="", turns=(), stop="error")
    return Played(trial.sample, trial.trial, lost, digest([]), failure.reason)


def opening_messages(sample: Sample) -> list[dict[str, Json]]:
    """What the model is sent first."""
    if isinstance(sample.prompt, str):
        return [{"role": "user", "content": sample.prompt}]
    return list(sample.prompt)


def join_turns(texts: Sequence[str]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """The non-empty turns joined by one newline, and the UTF-8 byte range of every turn. An empty
    turn is an empty range at the end of what stands before it."""
    ranges: list[tuple[int, int]] = []
    end = 0
    for text in texts:
        start = end + 1 if text and end else end
        end = start + len(text.encode("utf-8"))
        ranges.append((start, end))
    return "\n".join(filter(None, texts)), tuple(ranges)


def _session(trial: TrialInput, source: ToolSource | None) -> ToolSession | None:
    """What answers the calls of one trial. Fixtures are read by the specs that it brings along."""
    session = None if source is None else source.session(trial.sample.sample_id)
    brought = trial.registry if trial.sample.expectation.specs else None
    if brought is not None and isinstance(session, BrokerSession | NoFixtures):
        return session.with_tools(brought)
    return session


@lru_cache(1024)
def _spellings(registry: Registry, offered: frozenset[str]) -> frozenset[str]:
    return registry.spellings(offered)


class _Play:
    """One trial while it is played."""

    def __init__(
        self,
        trial: TrialInput,
        source: ToolSource | None,
        settings: PlaySettings,
        conceal: Callable[[str], str] | None = None,
    ) -> None:
        self.input = trial
        self._conceal = conceal
        self.settings = settings
        self._registry = trial.registry or settings.registry
        self.session = _session(trial, source)
        self._faulty = None
        if settings.faults is not None and self.session is not None:
            self._faulty = settings.faults.plant(self.session, trial.sample, self._registry)
            self.session = self._faulty
        self.messages = list(
            opening_messages(trial.sample) if trial.opening is None else trial.opening
        )
        self.texts: list[str] = []
        self.reasoning: list[str] = []
        self.thought_calls: list[ThoughtCall] = []
        self.entries: list[TraceEntry] = []
        self.said: list[UserTurn] = []
        self.fixtures: list[str] = []
        self.scripted = list(trial.sample.user_turns)
        # The results of a single shot are put in after its only turn: no order rules any of them
        # out.
        self.ordered = settings.max_turns != 1
        # An alias of an offered tool names it too.
        offered = trial.offered
        self._spellings = None if offered is None else _spellings(self._registry, offered)
        self.stop: Stop | None = None
        self.error: str | None = None
        self._usage: list[Usage] = []
        self._seconds: list[float] = []

    def conversation(self) -> Conversation:
        return Conversation(
            sample_id=self.input.sample.sample_id,
            trial=self.input.trial,
            turn=len(self.texts) + 1,
            messages=self.messages,
            tools=self.input.tools,
        )

    def take(self, reply: Reply | Failure) -> None:
        """One turn: what it says, what it calls, what answers, and whether another one follows.
        No answer, whatever is in it, costs more than this trial."""
        try:
            if not isinstance(reply, Failure):
                self._count(reply)
                self._take(reply)
                return
            lost = reply.reason
        except CallmarkError:
            raise
        except Exception as error:
            lost = fault_of_ours("the answer could not be read", error)
        self.error, self.stop = lost, "error"

    def _count(self, reply: Reply) -> None:
        if reply.usage is not None:
            self._usage.append(reply.usage)
        if reply.seconds is not None:
            self._seconds.append(reply.seconds)

    def _spent(self) -> Spent | None:
        answers = max(len(self._usage), len(self._seconds))
        seconds = sum(self._seconds) if self._seconds else None
        return Spent(answers, add_usage(self._usage), seconds) if answers else None

    def _take(self, reply: Reply) -> None:
        turn = len(self.texts) + 1
        template = self.settings.template
        if template is not None and reply.text and not reply.calls:
            made = template.read(reply.text, self.input.tools)
            if made is not None:
                thought = "\n".join(filter(None, (reply.reasoning, made.reasoning)))
                reply = msgspec.structs.replace(
                    reply, text=made.text, calls=made.calls, reasoning=thought
                )
        text, reasoning, calls = self._read(reply, turn)
        self.texts.append(self._normal(text))
        self.reasoning += filter(None, (well_formed(reply.reasoning), reasoning))
        entries = [self._settle(call, turn if reply.ordered else None) for call in calls]
        self.entries += entries
        self.ordered = self.ordered and reply.ordered
        self.stop = self._stop_after(reply, turn, called=bool(entries))
        if self.stop is None:
            self._continue(reply, entries)
        elif not reply.ordered:
            # The recording is the whole trial: all that the user was to say has been said.
            self._say(self.scripted if reply.then_said is None else reply.then_said)

    def played(self) -> Played:
        output, ranges = join_turns(self.texts)
        trace = Trace(
            model_output=output,
            tool_trace=tuple(self.entries),
            turns=ranges if self.ordered else None,
            said=tuple(self.said),
            reasoning="\n".join(self.reasoning),
            stop=self.stop or "answer",
            thought_calls=tuple(self.thought_calls),
            faults=() if self._faulty is None else self._faulty.faults(),
        )
        used = _hash_of_all(tuple(sorted(set(self.fixtures))))
        return Played(self.input.sample, self.input.trial, trace, used, self.error, self._spent())

    def _turn(self, text: str) -> TurnText:
        settings = self.settings
        return read_turn(
            text,
            offered=self._spellings,
            formats=() if settings.parse_text == "off" else settings.formats,
            schema_of=self._registry.parameters,
        )

    def _is_plain(self, text: str) -> bool:
        """Does it hold no call in any format, no thinking and no token, by its looks alone?"""
        if PLAIN_WORDS.fullmatch(text) is None:
            return False
        for hint in self.settings.plain_hints:  # noqa: SIM110 - a third of what any() takes
            if hint in text:
                return False
        return True

    def _think(self, attempts: Iterable[Attempt], turn: int | None) -> None:
        for one in attempts:
            arguments = one.arguments if isinstance(one, ToolCall) else None
            made = ThoughtCall(turn, one.name, arguments, one.raw, one.format)
            if self._conceal is not None and self._conceal(one.raw) != one.raw:
                made = ThoughtCall(turn, None, None, self._conceal(one.raw), one.format)
            self.thought_calls.append(made)

    def _read(self, reply: Reply, turn: int) -> tuple[str, str, list[TraceEntry]]:
        """Clean text, thinking and calls. Structured calls win over the same calls in the text."""
        settings = self.settings
        at = turn if reply.ordered else None
        if reply.reasoning:
            # What a server tells apart as thinking is closed, whatever marks it has left in it.
            apart = self._turn(reply.reasoning)
            known = (one for one in apart.attempts if one.format != UNPARSED)
            self._think((*apart.thought_of, *known), at)
        if not reply.text or self._is_plain(reply.text):
            return reply.text.strip(), "", list(reply.calls or ())
        found = self._turn(reply.text)
        self._think(found.thought_of, at)
        calls = list(reply.calls or ())
        if settings.parse_text == "on" or not reply.calls:
            written = [entry_for(attempt, None) for attempt in found.attempts]
            for position, result in enumerate(reply.answers[: len(written)]):
                written[position] = answer_entry(written[position], result)
            calls += written
        if self._conceal is not None:
            # What was cut out of a text may have parted a secret.
            return self._conceal(found.text), self._conceal(found.reasoning), calls
        return found.text, found.reasoning, calls

    def _normal(self, text: str) -> str:
        text = well_formed(text).strip()
        if self.input.sample.expectation.normalise_text:
            text = text.replace("\r\n", "\n").replace("\r", "\n")
            text = unicodedata.normalize("NFC", text)
        return text

    def _settle(self, call: TraceEntry, turn: int | None) -> TraceEntry:
        """The call with the tool's own name, the schema's verdict and an answer."""
        registry = self._registry
        name = None if call.name is None else registry.resolve(call.name)
        errors = call.schema_errors
        if errors is None and name is not None and isinstance(call.arguments, dict):
            errors = registry.validate(name, call.arguments)
        # Servers invent a new id for every call: kept, no two runs would be equal.
        entry = msgspec.structs.replace(
            call, name=name or call.name, turn=turn, schema_errors=errors, call_id=None
        )
        if entry.status == "malformed" and entry.result is None:
            return _refuse(entry, "malformed", f"the call could not be read: {entry.reason}")
        if entry.status == "unanswered":
            return self._answer(entry)
        if entry.served and self._faulty is not None and self._faulty.may_strike(entry.name):
            raise UsageError(
                f"--faults: sample {self.input.sample.sample_id}: the recording holds what"
                f" {entry.name} answered, so nothing can go wrong with it. Leave the results out of"
                " the recording, so that the fixtures answer."
            )
        return entry

    def _answer(self, entry: TraceEntry) -> TraceEntry:
        name, offered, allowed = entry.name, self.input.offered, self.settings.allowed
        if offered is not None and name not in offered:
            known = name is not None and self.settings.registry.spec(name) is not None
            if known and allowed is not None and name not in allowed:
                return _refuse(entry, "tool_not_allowed", f"the tool {name} is not allowed")
            return _refuse(entry, "tool_not_offered", f"there is no tool {name}")
        if self.session is None or name is None:
            return entry
        match self.session.answer(name, entry.arguments):
            case Hit(result=result, served_by=served_by, fixture_sha256=fixture):
                self.fixtures.append(fixture)
                answered = answer_entry(entry, result, served_by)
                if served_by in FAILED:  # in whatever words
                    return msgspec.structs.replace(answered, status="error", served_by=served_by)
                return answered
            # Not a gap in the fixtures: no tool would have answered these arguments.
            case Miss() if entry.schema_errors:
                what = "invalid arguments: " + "; ".join(entry.schema_errors)
                return _refuse(entry, "invalid_arguments", what)
            case Miss() as miss:
                is_wrong = self._is_wrong(entry)
                if not is_wrong and self._was_unanswered(entry):
                    return entry
                return msgspec.structs.replace(
                    entry,
                    status="wrong_call" if is_wrong else "miss",
                    result=_miss_record(miss),
                    key_normalized=miss.key_normalized,
                )
            case other:
                assert_never(other)

    def _was_unanswered(self, entry: TraceEntry) -> bool:
        """Whether the call was made like this, and nothing was recorded that answered it."""
        expectation, registry = self.input.sample.expectation, self._registry
        if expectation.is_step or expectation.observed:
            return True
        if not expectation.unanswered:
            return False
        left = [expected_call(call, registry) for call in expectation.unanswered]
        seen = observed_call(entry, registry, frozenset(call.name for call in left))
        return any(is_same_call(call, seen) for call in left)

    def _is_wrong(self, entry: TraceEntry) -> bool:
        """Whether a call without a fixture is the model's mistake: the fixtures hold an answer to
        every call that is expected, and this is none of those."""
        session, expectation = self.session, self.input.sample.expectation
        calls = () if expectation.kind in CALL_FREE else expectation.calls
        is_whole = expectation.observed or expectation.is_step
        if session is None or not (calls or is_whole):
            return False
        registry, offered = self._registry, self.input.offered
        wanted = [expected_call(call, registry) for call in calls]
        known = frozenset(call.name for call in wanted) | (offered or frozenset())
        seen = observed_call(entry, registry, known)
        if any(is_same_call(want, seen) for want in wanted):
            return False
        # Of what was observed all calls are known: another one is another way, not a gap.
        return is_whole or all(session.has_answer(call.name, call.arguments) for call in calls)

    def _stop_after(self, reply: Reply, turn: int, *, called: bool) -> Stop | None:
        if reply.finish in STOP_OF:
            return STOP_OF[reply.finish]
        expectation = self.input.sample.expectation
        if self.settings.max_turns == 1 or expectation.is_step or not reply.ordered:
            return "answer"
        goes_on = called or reply.then_said is not None or bool(self.scripted)
        if reply.ends:
            return "max_turns" if called else "answer"
        if turn in (self.settings.max_turns, expectation.max_turns):
            return "max_turns" if goes_on else "answer"
        return None if goes_on else "answer"

    def _continue(self, reply: Reply, entries: Sequence[TraceEntry]) -> None:
        """Extend the conversation: this turn, the answers to its calls, the user's next word."""
        first = len(self.entries) - len(entries) + 1
        # Ours, not the server's: the same conversation gives the same request, and the same cache
        # key.
        ids = [f"call_{first + position}" for position in range(len(entries))]
        message: dict[str, Json] = {"role": "assistant", "content": self.texts[-1]}
        message |= reply.carried
        if entries:
            message["tool_calls"] = [
                _tool_call(call_id, entry) for call_id, entry in zip(ids, entries, strict=True)
            ]
        self.messages.append(message)
        for call_id, entry in zip(ids, entries, strict=True):
            shown = self._shown(entry)
            self.messages.append({"role": "tool", "tool_call_id": call_id, "content": shown})
        said = reply.then_said or ()
        if not entries and self.scripted:
            # The script goes on with every answer, also where a recording leaves it out.
            scripted = self.scripted.pop(0)
            said = said or (scripted,)
        self._say(said)

    def _shown(self, entry: TraceEntry) -> str:
        if entry.status in ("miss", "wrong_call", "unanswered"):
            return self.settings.miss_reply
        if is_mcp_result(entry.result):
            return text_of(entry.result)
        return entry.result if isinstance(entry.result, str) else _json_text(entry.result)

    def _say(self, texts: Sequence[str]) -> None:
        for text in texts:
            self.said.append(UserTurn(len(self.texts), text))
            self.messages.append({"role": "user", "content": text})


@lru_cache(1024)
def _hash_of_all(hashes: tuple[str, ...]) -> str:
    return sha256_hex(_encode(hashes))  # plain hex: this is canonical


def _refuse(entry: TraceEntry, status: EntryStatus, why: str) -> TraceEntry:
    result = {"ok": False, "error": why}
    return msgspec.structs.replace(entry, status=status, result=result, reason=entry.reason or why)


def _miss_record(miss: Miss) -> dict[str, Json]:
    return {
        "ok": False,
        "error": "fixture_miss",
        "name": miss.name,
        "arguments": miss.arguments,
        "key_normalized": miss.key_normalized,
    }


def _json_text(value: Json) -> str:
    try:
        return _encode(value).decode()
    except (UnicodeEncodeError, OverflowError):  # lone surrogates, which only Python strings hold
        return json.dumps(value)


def _tool_call(call_id: str, entry: TraceEntry) -> dict[str, Json]:
    # Chat templates parse the arguments of past calls: broken ones go back inside an object.
    arguments = entry.arguments if isinstance(entry.arguments, dict) else {"malformed": entry.raw}
    function = {
        "name": entry.name or NAMELESS_CALL,
        "arguments": _json_text(arguments),
    }
    return {"id": call_id, "type": "function", "function": function}


class ExtractorChoice(msgspec.Struct, frozen=True):
    """How spans are found, and who decided that. None: a line that does not say."""

    extractor: Extractor
    by: ExtractorBy | None


def extractor_of(sample: Sample, run_asks: ExtractorBy | None) -> ExtractorChoice:
    """What `auto` means for a sample: `marker` where somebody asks the model for it. What the user
    says asks for nothing, and the answer is never looked at. `run_asks`: the wrapper around every
    prompt does, or the system message of the run, which a sample with its own is not sent."""
    own = sample.asks_for_marker()
    if own is not None:
        return ExtractorChoice("marker", own)
    if run_asks == "wrapper" or (run_asks is not None and not any(sample.system_messages())):
        return ExtractorChoice("marker", run_asks)
    return ExtractorChoice("claims", "default")


class Origin(msgspec.Struct, frozen=True):
    """Where an answer comes from, as its line says it."""

    fingerprints: Fingerprints
    decoding: Decoding


_NO_TOOLS = Registry(())


def cross_scorer(registry: Registry = _NO_TOOLS) -> CrossScore:
    """What the level of chance needs. Lax grounding looks at no tool spec, so that any will do."""
    settings = lru_cache(REMEMBERED)(_settings)
    return lambda own, other: cross_score(
        own, other, settings(registry, own.span_extractor, None, own.scoring)
    )


class Evaluator:
    """Scores with the settings of one run, and counts the seconds that takes."""

    def __init__(self, config: RunConfig, *, asks_for_marker: ExtractorBy | None = None) -> None:
        """`asks_for_marker`: what is put around every prompt does."""
        self.seconds = 0.0
        self._asks_for_marker = asks_for_marker
        scorers = added_scorers()
        self.scoring = Scoring(
            integration_span_cap=config.integration_span_cap,
            strict_keys=config.strict_keys,
            url_allowlist=config.url_allowlist,
            privacy_echo=config.privacy_echo,
            scorers=tuple(one.mark for one in scorers) or msgspec.UNSET,
            tiers=tuple(sorted(config.tiers.items())) or msgspec.UNSET,
        ).marked(SCORER_VERSION)
        self._config = config
        self._settings = lru_cache(REMEMBERED)(partial(_settings, scorers=scorers))

    def result(
        self,
        played: Played,
        offer: Offer,
        origin: Origin,
        *,
        extractor: ExtractorChoice | None = None,
        scoring: Scoring | None = None,
    ) -> Result:
        """`extractor` and `scoring` None: the run's own settings and the sample decide."""
        sample, trace = played.sample, played.trace
        choice = extractor or self._extractor(sample)
        scoring = scoring or self.scoring
        settings = self._settings(offer.registry, choice.extractor, offer.names, scoring)
        started = time.perf_counter()
        # A trial that infrastructure lost has no score, not a bad one: the model was never heard.
        scores = None if played.error is not None else score_trial(sample, trace, settings)
        self.seconds += time.perf_counter() - started
        result = Result(
            index=sample.index,
            sample_id=sample.sample_id,
            trial=played.trial,
            prompt=sample.prompt,
            metadata=sample.metadata,
            said=trace.said,
            model_output=trace.model_output,
            turns=_ranges_of(trace),
            reasoning=trace.reasoning,
            thought_calls=trace.thought_calls or msgspec.UNSET,
            faults=trace.faults or msgspec.UNSET,
            tool_trace=trace.tool_trace,
            span_extractor=choice.extractor,
            span_extractor_by=choice.by,
            scores=scores,
            status="ok" if played.error is None else "error",
            stop=trace.stop,
            error=played.error,
            item_sha256=sample.item_sha256,
            used_fixtures_sha256=played.used_fixtures_sha256,
            offered_tools_sha256=offer.sha256,
            fingerprints=origin.fingerprints,
            decoding=origin.decoding,
            scoring=scoring,
        )
        return redact_result(result) if self._config.redact_pii else result

    def _extractor(self, sample: Sample) -> ExtractorChoice:
        setting = self._config.span_extractor
        if setting == "auto":
            return extractor_of(sample, self._asks_for_marker)
        return ExtractorChoice(setting, self._config.source_of("span_extractor"))

    def cross_score(self, registry: Registry) -> CrossScore:
        """What the summary needs for the level of chance."""
        return cross_scorer(registry)


def _settings(
    registry: Registry,
    extractor: Extractor,
    offered: frozenset[str] | None,
    scoring: Scoring,
    scorers: tuple[AddedScorer, ...] = (),
) -> ScoreSettings:
    return ScoreSettings(
        registry=registry,
        offered=offered,
        extractor=extractor,
        span_cap=scoring.integration_span_cap,
        strict_keys=scoring.strict_keys,
        url_allowlist=scoring.url_allowlist,
        echo_denied=scoring.privacy_echo == "deny",
        scorers=scorers,
        tiers=() if scoring.tiers is msgspec.UNSET else scoring.tiers,
    )


def _ranges_of(trace: Trace) -> tuple[ByteRange, ...] | None:
    if trace.turns is None:
        return None
    return tuple(ByteRange(start, end) for start, end in trace.turns)
