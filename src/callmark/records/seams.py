"""The seams: what answers a turn (Runner), what answers a call (ToolSource), and what a plug-in
adds to the tables of the house (PluginRow)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal, Protocol

import msgspec

from callmark.records.jsontext import Json
from callmark.records.results import Measures, ScorerMark
from callmark.records.samples import Sample
from callmark.records.trace import Trace, TraceEntry

Finish = Literal["stop", "length", "content_filter", "context_exceeded"]


class Conversation(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner sees of one trial at one turn. `tools` are OpenAI-style function specs."""

    sample_id: str
    trial: int
    turn: int  # the turn to be answered, from 1
    messages: Sequence[dict[str, Json]]
    tools: Sequence[dict[str, Json]]


_Count = Annotated[int, msgspec.Meta(ge=0)]


class Usage(msgspec.Struct, frozen=True):
    """Tokens of one answer, as whoever gave it counts them. `cached_tokens` are part of those of
    the prompt."""

    prompt_tokens: _Count = 0
    completion_tokens: _Count = 0
    cached_tokens: _Count = 0


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """One assistant turn. `calls` None: nothing structured was given, the text may hold calls.
    Entries of `calls` with status `unanswered` go to the broker, all others are recorded answers.
    `ends`: no further turn exists (a recording ends here); `ordered` False: it is not known how
    this text and these calls were interleaved. `then_said` not None: the recording goes on after
    this turn, with these user messages first. `answers`: recorded answers, in order, to calls that
    only the text holds. `carried`: fields of the assistant message that a server wants to see
    again in the next request. `usage` and `seconds`: what it took; None if nobody says."""

    text: str
    calls: tuple[TraceEntry, ...] | None = None
    reasoning: str = ""
    finish: Finish = "stop"
    ends: bool = False
    ordered: bool = True
    then_said: tuple[str, ...] | None = None
    answers: tuple[Json, ...] = ()
    carried: dict[str, Json] = {}
    usage: Usage | None = None
    seconds: float | None = None


class Spent(msgspec.Struct, frozen=True):
    """What the answers of one trial took together, as far as somebody counted."""

    answers: int
    usage: Usage | None = None
    seconds: float | None = None


class Failure(msgspec.Struct, frozen=True):
    """Infrastructure failed for this trial: it is not scored."""

    reason: str


class Observed(msgspec.Struct, frozen=True, kw_only=True):
    """What a runner saw by the end of a run. `provenance` is shown and never a key; `measured`
    (tokens, requests, seconds) stands below `timing`; `warnings` are for the user."""

    provenance: dict[str, Json] = {}
    measured: dict[str, Json] = {}
    warnings: tuple[str, ...] = ()


class Runner(Protocol):
    """Answers one turn for a batch of conversations, in order. `suspends` says whether `answer`
    ever awaits: one that does not is driven without an event loop, so without any socket, and
    gets up to `max_batch` conversations at once. One that does gets one conversation at a time,
    from up to `max_batch` trials side by side."""

    name: str
    suspends: bool
    max_batch: int

    async def answer(self, batch: Sequence[Conversation]) -> Sequence[Reply | Failure]: ...

    async def ready(self) -> None:
        """Called once, before the first turn and before anything is written: raises what the user
        has to fix (no such model, wrong key)."""
        return

    async def close(self) -> None:
        """Called once, at the end, where `answer` was called."""
        return

    def fingerprint_parts(self) -> dict[str, Json]:
        """What belongs in `runner_fingerprint` beside the settings of the run itself."""
        return {}

    def model_fingerprint(self) -> str | None:
        return None

    def tokenizer_fingerprint(self) -> dict[str, Json] | None:
        return None

    def observed(self) -> Observed:
        return Observed()

    def without_secrets(self, text: str) -> str:
        """The text without what the runner was given in confidence. Replies come without it; this
        is for text that was joined out of one."""
        return text


Seam = Literal["runner", "call_format", "scorer", "report", "importer"]
Judged = Measures | bool | float | None


class PluginRow(msgspec.Struct, frozen=True, kw_only=True):
    """One row that a plug-in adds to one table. `target` is the user's function or class, `given`
    what its decorator was told; `home` is where it comes from, for messages, and `sha256` that of
    its source: None where nobody can read it."""

    seam: Seam
    name: str
    target: Callable[..., object]
    version: str | None = None
    given: dict[str, object] = {}
    home: str = ""
    sha256: str | None = None

    def mark(self) -> dict[str, Json]:
        """What a fingerprint and a report know of it."""
        return {
            "seam": self.seam,
            "name": self.name,
            "version": self.version,
            "sha256": self.sha256,
        }


class AddedScorer(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in's scorer: judges one trial and gives its measures by name (one that has only one
    measure may give just its value). None: it cannot tell. `home`: its file."""

    mark: ScorerMark
    judge: Callable[[Sample, Trace], Judged]
    home: str = ""

    @property
    def place(self) -> str:
        """Where it is written, as `file:line`."""
        code = getattr(self.judge, "__code__", None)
        return self.home if code is None else f"{self.home}:{code.co_firstlineno}"


class Standing(msgspec.Struct, frozen=True):
    """How far a run is, after each trial. `resumed` of the finished ones were done before; a
    `total` that is not above `finished` is not known."""

    finished: int
    total: int
    misses: int = 0
    errors: int = 0
    resumed: int = 0


Progress = Callable[[Standing], None]


class Hit(msgspec.Struct, frozen=True):
    result: Json
    served_by: str  # fixture:exact, fixture:pattern, fixture:any
    fixture_sha256: str  # of the canonical fixture line


class Miss(msgspec.Struct, frozen=True):
    name: str
    arguments: Json
    key_normalized: Json


class ToolSession(Protocol):
    """The tools as one trial sees them: sequences count within it."""

    def answer(self, name: str, arguments: Json) -> Hit | Miss: ...

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        """Whether a call has an answer here, without making it. `arguments` None: any call of
        this tool. False where that cannot be told."""
        ...


class ToolSource(Protocol):
    def session(self, sample_id: str | None = None) -> ToolSession: ...
