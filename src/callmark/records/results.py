"""One line of a results file, and how a record shows itself in a notebook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Literal

import msgspec

from callmark.records.jsontext import Json, digest, replace_surrogates
from callmark.records.samples import DEFAULT_SPAN_CAP, CheckScore, Extractor, ExtractorBy, Kind
from callmark.records.statements import StatementLabel, Tier
from callmark.records.trace import FaultyCall, Stop, ThoughtCall, TraceEntry, UserTurn

# Who draws a record is said from above, since records know no form of a report:
# type of record -> what makes HTML of it; `callmark.api` fills it
DRAWN_BY: dict[type, Callable[[Any], str]] = {}


class Drawn:
    """None where nobody draws it: a notebook then shows the plain form."""

    __slots__ = ()

    def _repr_html_(self) -> str | None:
        draw = DRAWN_BY.get(type(self))
        return None if draw is None else draw(self)


MatchClass = Literal["value", "derived", "error"]
Severity = Literal["high", "medium", "low", "contextual"]
# Held by whoever reads a line: no file may bring in a number that no scorer gives.
Count = Annotated[int, msgspec.Meta(ge=0, lt=1 << 32)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Better = Literal["higher", "lower"]
Measures = dict[str, bool | float | None]
Origin = Literal["said", "served", "default", "derived", "invented"]


class Match(msgspec.Struct, frozen=True):
    """Where in the answer stands what which result said. `call` indexes `tool_trace`; -1 is a
    result that stood in the prompt. `path` is a JSON pointer into the result."""

    start: int
    end: int
    call: int
    path: str
    value: Json
    kind: str
    cls: MatchClass
    strict: bool


class ValueMark(msgspec.Struct, frozen=True):
    start: int
    end: int
    kind: str
    label: StatementLabel


class SpanScore(msgspec.Struct, frozen=True):
    """`lax`, `strict`: it holds a value of the evidence, of a keyed leaf. `counted`: it is in the
    denominator of precision, and `good` if it is in the (lax) numerator too."""

    start: int
    end: int
    scored: bool
    lax: bool
    strict: bool
    counted: bool
    good: bool
    matches: tuple[Match, ...] = ()
    values: tuple[ValueMark, ...] = ()


class Grounding(msgspec.Struct, frozen=True):
    """`grounded` of the sample's `spans_counted`, `found` of its `facts_required`."""

    precision: Share
    recall: Share
    f1: Share
    grounded: Count
    found: Count


class CallDifferences(msgspec.Struct, frozen=True):
    """Expected calls that were missing, observed ones that were extra, pairs that differ only in
    arguments, and whether the matched ones came in another order. Calls are `name {arguments}`."""

    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    differing: tuple[str, ...] = ()
    reordered: bool = False


class CallScore(msgspec.Struct, frozen=True, kw_only=True):
    expected: Count
    observed: Count
    matched: Count
    attempts: Count
    valid_attempts: Count
    looked_up: Count  # parsed, offered, within the schema: what the fixtures had to answer
    hits: Count
    misses: Count
    wrong_calls: Count = 0  # no fixture, and no call that was expected; every expected one has one
    differences: CallDifferences
    errors: tuple[str, ...] = ()  # `call 1: /top_k: …`, with the index into `tool_trace`


class PrivacyFinding(msgspec.Struct, frozen=True):
    """`where` is `answer` or `call N`. Offsets are bytes into the answer, 0 for arguments."""

    kind: str
    severity: Severity
    where: str
    start: int
    end: int
    echoed: bool


class PrivacyScore(msgspec.Struct, frozen=True):
    ok: bool
    findings: tuple[PrivacyFinding, ...] = ()
    invented_urls: tuple[str, ...] = ()


class Statement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Bytes `start` to `end` of the answer. `rule` gave the label; `tier` is that of a flag. `call`
    and `path` are the leaf that it rests on, or should have: `expected` is what stands there, and
    `because` the whole of it in one sentence. `call` -1 is a result that stood in the prompt."""

    start: int
    end: int
    label: StatementLabel
    rule: str
    tier: Tier | None = None
    call: int | None = None
    path: str | None = None
    expected: Json = None
    because: str = ""

    @property
    def is_flag(self) -> bool:
        return self.tier is not None

    @property
    def is_firm(self) -> bool:
        return self.tier == "firm"


class ArgumentOrigin(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where a leaf of a call's arguments comes from. `call` indexes `tool_trace`, `path` is a JSON
    pointer into its arguments; `source` names the leaf of the result that served it, or how it was
    derived, or the value in a longer text that nobody gave."""

    call: int
    path: str
    origin: Origin
    source: str = ""


FEWEST_LEAVES = 20  # of fewer, a right answer may state most


class Copying(msgspec.Struct, frozen=True):
    """How many of the `leaves` of the evidence the answer states, and how many characters of JSON
    it repeats word for word. Equal leaves are one; `served` counts each of them, and is there only
    where they are many, and few of them differ."""

    stated: int
    leaves: int
    verbatim: int = 0
    served: int | msgspec.UnsetType = msgspec.UNSET

    @property
    def ratio(self) -> float | None:
        return self.stated / self.leaves if self.leaves else None


class Scores(msgspec.Struct, frozen=True, kw_only=True):
    """One trial's numbers. None means: does not apply to this sample, or no data. `more`: what the
    scorers of plug-ins say, by `scorer.measure`; absent where there are none."""

    kind: Kind
    span_extractor: Extractor
    spans: tuple[SpanScore, ...]
    spans_total: Count  # before the cap
    spans_over_cap: Count
    spans_counted: Count  # denominator of precision
    recall_kind: Literal["facts", "presence"]
    facts_required: Count
    lax: Grounding
    strict: Grounding
    values: dict[StatementLabel, Count]
    calls: CallScore
    call_f1: Share | None
    multi_call_parity_ok: bool | None
    json_args_valid: bool | None
    recovered: bool | None
    gave_up_honestly: bool | None
    controls_with_integration: Count | None
    negative_control_ok: bool | None
    clarify_ok: bool | None
    locale_probe_ok: bool | None
    unresolved: bool  # a call of this trial was a miss
    # A strict key is set (header, tool, item) or occurs in a result; else `strict` says nothing.
    strict_keys: bool = True
    privacy_ok: bool
    privacy: PrivacyScore
    checks_ok: bool | None = None  # all of them
    checks: tuple[CheckScore, ...] = ()
    statements: tuple[Statement, ...] = ()
    # None: nothing was served, or there is no leaf that an answer could state.
    copying: Copying | None = None
    # Of every leaf of the arguments of well-formed calls; None: there was none.
    arguments: tuple[ArgumentOrigin, ...] | None = None
    # There is text after the last result, or anywhere if nothing was served; None: not eligible.
    answered: bool | None = None
    # What is otherwise than it was observed; absent where the expectation is more than that.
    changes: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET
    # Which of the required facts were not found, by their place; absent where none is missing.
    missing_facts: tuple[Count, ...] | msgspec.UnsetType = msgspec.UNSET
    more: Measures | msgspec.UnsetType = msgspec.UNSET

    @property
    def added(self) -> Measures:
        return {} if self.more is msgspec.UNSET else self.more


def implausible(scores: Scores) -> str | None:
    """What no scorer gives although each number by itself could be: `field: what is wrong`."""
    calls = scores.calls
    parts: tuple[tuple[str, int, str, int], ...] = (
        ("lax.grounded", scores.lax.grounded, "spans_counted", scores.spans_counted),
        ("strict.grounded", scores.strict.grounded, "spans_counted", scores.spans_counted),
        ("lax.found", scores.lax.found, "facts_required", scores.facts_required),
        ("strict.found", scores.strict.found, "facts_required", scores.facts_required),
        ("spans_over_cap", scores.spans_over_cap, "spans_total", scores.spans_total),
        ("calls.matched", calls.matched, "calls.expected", calls.expected),
        ("calls.matched", calls.matched, "calls.observed", calls.observed),
        ("calls.valid_attempts", calls.valid_attempts, "calls.attempts", calls.attempts),
        ("calls.hits", calls.hits, "calls.looked_up", calls.looked_up),
    )
    for name, part, of, whole in parts:
        if part > whole:
            return f"scores.{name}: is {part}, but {of} is {whole}"
    passed = all(check.ok for check in scores.checks) if scores.checks else None
    if scores.checks_ok != passed:
        return "scores.checks_ok: is not what the checks below scores.checks come to"
    return None


class ByteRange(msgspec.Struct, frozen=True):
    start: int
    end: int


class Fingerprints(msgspec.Struct, frozen=True, kw_only=True):
    """What a result depends on. None: not there, or not computable."""

    dataset_sha256: str | None = None
    tool_registry_sha256: str | None = None
    fixtures_sha256: str | None = None
    tokenizer_fingerprint: dict[str, Json] | None = None
    prompt_wrapper_sha256: str | None = None
    runner_fingerprint: str | None = None
    model_fingerprint: str | None = None
    faults_sha256: str | None = None


class Decoding(msgspec.Struct, frozen=True, kw_only=True):
    temperature: float | None = 0.0
    top_p: float | None = None
    max_tokens: int | None = 1024
    seed: int | None = 42
    max_turns: int | None = 8
    tool_choice: str | None = "auto"


class ScorerMark(msgspec.Struct, frozen=True, kw_only=True):
    """Which scorer of a plug-in gave the measures of its name; those in `lower` are better the
    lower they are. `sha256`: of its source."""

    name: str
    version: str | None = None
    sha256: str | None = None
    measures: tuple[str, ...] = ()
    lower: tuple[str, ...] = ()

    def named(self) -> dict[str, Better]:
        """The measures by their whole names, and which way each is better."""
        return {
            f"{self.name}.{measure}": "lower" if measure in self.lower else "higher"
            for measure in self.measures
        }


class Scoring(msgspec.Struct, frozen=True, kw_only=True):
    """What the scores depend on beside the sample and its trace, so that a line can be scored
    again by itself. `scorers`: those of plug-ins, by name; absent where there are none. `version`:
    of the scorer; `sha256`: of these settings. A line in which both are equal to what it would be
    scored with now needs no second scoring."""

    integration_span_cap: int = DEFAULT_SPAN_CAP
    strict_keys: tuple[str, ...] | None = None
    url_allowlist: tuple[str, ...] = ()
    privacy_echo: Literal["allow", "deny"] = "allow"
    redacted: bool = False  # personal data were replaced after scoring
    scorers: tuple[ScorerMark, ...] | msgspec.UnsetType = msgspec.UNSET
    # Of rules that a project gave another tier than they ship with; absent where it gave none.
    tiers: tuple[tuple[str, Tier], ...] | msgspec.UnsetType = msgspec.UNSET
    version: str | msgspec.UnsetType = msgspec.UNSET
    sha256: str | msgspec.UnsetType = msgspec.UNSET

    def marked(self, version: str) -> Scoring:
        """With the scorer's version and the hash of the settings; whether personal data were
        replaced afterwards is no setting."""
        bare = msgspec.structs.replace(
            self, redacted=False, version=msgspec.UNSET, sha256=msgspec.UNSET
        )
        sha256 = digest(msgspec.to_builtins(bare))
        return msgspec.structs.replace(self, version=version, sha256=sha256)

    @property
    def added(self) -> tuple[ScorerMark, ...]:
        return () if self.scorers is msgspec.UNSET else self.scorers


class Result(Drawn, msgspec.Struct, frozen=True, kw_only=True):
    """One trial. Identified by (sample_id, trial). Holds no time. `scores` is None where status is
    error.

    >>> import callmark
    >>> from callmark.resources import demo_paths
    >>> demo = demo_paths()
    >>> import tempfile, pathlib
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     out = pathlib.Path(folder, "results.jsonl")
    ...     report = callmark.verify_dataset(demo.dataset, fixtures=demo.fixtures, out=out)
    ...     first = next(callmark.read_results(out))
    >>> first.sample_id, first.scores.call_f1
    ('search-rope-01', 1.0)
    """

    index: int
    sample_id: str
    trial: int
    prompt: str | list[dict[str, Json]]
    metadata: dict[str, Json]
    said: tuple[UserTurn, ...]
    model_output: str
    turns: tuple[ByteRange, ...] | None
    reasoning: str
    tool_trace: tuple[TraceEntry, ...]
    span_extractor: Extractor
    span_extractor_by: ExtractorBy | None = None
    scores: Scores | None
    status: Literal["ok", "error"]
    stop: Stop
    error: str | None = None
    item_sha256: str
    used_fixtures_sha256: str
    offered_tools_sha256: str
    fingerprints: Fingerprints
    decoding: Decoding
    scoring: Scoring = Scoring()
    # Absent where the model thought of no call.
    thought_calls: tuple[ThoughtCall, ...] | msgspec.UnsetType = msgspec.UNSET
    # Absent where no fault was planted.
    faults: tuple[FaultyCall, ...] | msgspec.UnsetType = msgspec.UNSET


class TrialTraits(msgspec.Struct, frozen=True, array_like=True):
    """What a list of trials tells of one beside its texts; many trials have the same. `standing`:
    what its mark says before a gate was asked; `like`: what went wrong, in words that are the same
    for all trials of a kind; `is_wrong`: lost, or flagged by any rule."""

    standing: str
    remarks: tuple[str, ...]
    kind: Kind
    tools: tuple[str, ...]
    locale: str | None
    slices: tuple[str, ...]
    labels: tuple[str, ...]
    rules: tuple[str, ...]
    like: tuple[str, ...]
    is_wrong: bool
    stop: Stop


class ListedTrial(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A trial in a list of trials. `asked`, `answered`: the beginnings of both, as they are;
    `f1`, `f1_strict`: None where they say nothing."""

    index: int
    trial: int
    sample_id: str
    asked: str
    answered: str
    f1: float | None
    f1_strict: float | None
    traits: TrialTraits


# 64 bits of each hash of a trial; 0: not known.
TrialMarks = tuple[int, int, int, int]
MARKED = ("item", "tools", "fixtures", "answer")
UNKNOWN = 0
_SHA256 = 64  # hexadecimal digits
_encode = msgspec.json.Encoder().encode


def marks_of(result: Result) -> TrialMarks:
    """Equal for trials of the same sample, the same tools, the same fixtures, the same answer: all
    that the model said, and which calls it made."""
    calls = [(entry.turn, entry.name, entry.arguments, entry.raw) for entry in result.tool_trace]
    return (
        _mark(result.item_sha256),
        _known_mark(result.offered_tools_sha256),
        _known_mark(result.used_fixtures_sha256),
        _mark_of(_encoded([result.model_output, calls])),
    )


def _encoded(value: Json) -> bytes:
    """The same before and after a line of results was written and read."""
    try:
        return _encode(value)
    except (UnicodeEncodeError, OverflowError):
        written = replace_surrogates(value)
    try:
        return _encode(written)
    except OverflowError:
        return json.dumps(written, separators=(",", ":")).encode()


def _mark(text: str) -> int:
    if not text:
        return UNKNOWN
    if len(text) == _SHA256 and text.isalnum() and text.isascii():
        try:  # a hash in hexadecimal is one already
            return int(text[:16], 16) | 1
        except ValueError:
            pass
    return _mark_of(text.encode("utf-8", "surrogatepass"))


_known_mark = lru_cache(1024)(_mark)  # of what many trials share


def _mark_of(data: bytes) -> int:
    # Never 0, which stands for "not known".
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little") | 1


def list_invented(result: Result) -> list[ArgumentOrigin]:
    """The leaves of its arguments that nobody gave."""
    found = None if result.scores is None else result.scores.arguments
    return [one for one in found or () if one.origin == "invented"]
