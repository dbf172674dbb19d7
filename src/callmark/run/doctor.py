"""Does a runner do what a run needs of it? Asked through the same seam as a run asks it, so that
any runner can be examined; what is special to one comes out of its own fingerprint parts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.broker.check import check_fixtures
from callmark.calls.formats import FORMATS
from callmark.config import RunConfig, load_config, place_error
from callmark.datasets.reader import open_dataset
from callmark.errors import BadInput, CallmarkError, Incomplete, UsageError
from callmark.grounding.ground import ground
from callmark.plugins import find_runner, with_formats
from callmark.records.jsontext import Json, canonical_json
from callmark.records.results import Fingerprints
from callmark.records.samples import Sample, expectation_of
from callmark.records.seams import Hit, Observed, Runner
from callmark.records.trace import TraceEntry
from callmark.resources import allowlist, default_gates, demo_paths, schema
from callmark.run.loop import Drive, driver
from callmark.run.offers import Offers, open_offers, open_registry
from callmark.run.play import Played, PlaySettings, TrialInput, play, play_in_step
from callmark.run.prepare import Prompts, decoding_of, open_prompts, runner_options
from callmark.run.resume import compare_pinned, refuse_other_pins
from callmark.runners.options import SERVED, RunnerOptions

Verdict = Literal["ok", "note", "wrong", "unchecked"]

REPEATS = 5
PLAIN_ID, TOOL_ID = "doctor-plain", "doctor-tool"
MOST_RETRIES = 2
PARALLEL_ID, SETTINGS_ID = "doctor-parallel", "doctor-settings"
PLAIN_PROMPT = "Say hello in one short sentence."
PREFERRED_TOOL = "web.search"
PREFERRED_PROMPT = 'Search the web for "open issues" and tell me what you find.'
OTHER_PROMPT = "Call the tool {name} once, with arguments that fit it, and tell me what it returns."
PARALLEL_PROMPT = (
    "Call the tool {name} twice in one go, with different arguments that fit it: make both calls"
    " before you see a result, then compare the results."
)
LONG_PROMPT = "Count from 1 to 200. Write all the numbers, with blanks between them."
FEW_TOKENS = 16  # fewer are refused by some
LEAST_OF_A_TOOL = 15  # tokens; a name and a schema are never less
FACT = "there are 4217 open issues"
RESULT: dict[str, Json] = {"ok": True, "summary": FACT}
SHOWN = 80
# Where a runner says in its fingerprint parts how the prompt holds the tools.
TOOLS_BLOCK = "tools_block"

_NO_CALL = (
    "samples that expect a call would all fail",
    "is the model trained to call tools? Does its server pass `tools` on and read calls"
    " (vLLM: --enable-auto-tool-choice --tool-call-parser)? A prompt wrapper that lists the tools"
    " may help",
)
_BAD_CALL = (
    "such calls count as invalid",
    "look at what it wrote; docs/runners.md says which forms of calls are read",
)
_UNEQUAL = (
    "two runs of this model differ by chance alone",
    "compare runs with --repeat, or serve it without batching and with a fixed seed",
)


class Finding(msgspec.Struct, frozen=True):
    """`note`: works, but worth knowing. `unchecked`: could not be looked at, never a pass."""

    verdict: Verdict
    found: str
    means: str = ""
    next: str = ""


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """`exit_code`: 0 all is well, 1 something is wrong, else that of the error that ended it."""

    runner: str
    model: str | None
    exit_code: int
    findings: dict[str, Finding]
    provenance: dict[str, Json]
    measured: dict[str, Json]


def examine_runner(config: RunConfig) -> Examination:
    """Opens the runner as a run would and asks it, check by check, until one cannot go on. Who asks
    a doctor waits: what fails is tried again once or twice, not as often as in a run."""
    config = msgspec.structs.replace(config, max_retries=min(config.max_retries, MOST_RETRIES))
    findings: dict[str, Finding] = {}
    observed = Observed()
    code = 0
    try:
        with _open(config) as session:
            for name, look in CHECKS.items():
                findings[name] = look(session)
            observed = session.runner.observed()
    except CallmarkError as error:
        told = place_error(config, error) if isinstance(error, UsageError) else error
        ended = next((name for name in CHECKS if name not in findings), "closing")
        findings[ended] = Finding("wrong", str(told))
        code = error.exit_code
    unseen = Finding("unchecked", "was not looked at")
    findings |= {name: unseen for name in CHECKS if name not in findings}
    if observed.warnings:
        findings["warnings"] = Finding("note", "; ".join(observed.warnings))
    is_wrong = any(finding.verdict == "wrong" for finding in findings.values())
    return Examination(
        runner=config.runner,
        model=config.model,
        exit_code=code or int(is_wrong),
        findings=findings,
        provenance=observed.provenance,
        measured=observed.measured,
    )


@contextmanager
def _open(config: RunConfig) -> Iterator[_Session]:
    offers = open_offers(config.registry, config.allowlist)
    prompts = open_prompts(config.prompt_wrapper, config.system)
    decoding = decoding_of(config)
    if decoding.temperature is not None:
        decoding = msgspec.structs.replace(decoding, temperature=0.0)
    options = runner_options(config, offers, decoding, raw_prompt=prompts.raw)
    with find_runner(config.runner)(options) as runner, driver(runner) as drive:
        yield _Session(config, offers, prompts, runner, drive, options)


class _FixedResult:
    """The only tool: whatever is asked, it answers the same."""

    def session(self, sample_id: str | None = None) -> _FixedResult:
        return self

    def answer(self, name: str, arguments: Json) -> Hit:
        return Hit(RESULT, "doctor", "")

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        return True


class _Session:
    """An opened runner, and what it was asked already."""

    def __init__(
        self,
        config: RunConfig,
        offers: Offers,
        prompts: Prompts,
        runner: Runner,
        drive: Drive[Any],
        options: RunnerOptions,
    ) -> None:
        self.config = config
        self.options = options
        self.runner = runner
        self.drive = drive
        self._prompts = prompts
        self._settings = PlaySettings(
            registry=offers.registry,
            allowed=offers.allowed,
            max_turns=1 if config.max_turns == 1 else 3,
            parse_text=config.parse_text,
            formats=with_formats(FORMATS),
        )
        self.tool = _tool_of(offers)
        self.tools = offers.registry.openai_tools([self.tool])
        self._with_tool: Played | None = None

    def plain(self) -> Played:
        return self._asked(PLAIN_ID, PLAIN_PROMPT, frozenset(), [], times=1)[0]

    def with_tool(self) -> Played:
        if self._with_tool is None:
            self._with_tool = self.repeated(1)[0]
        return self._with_tool

    def repeated(self, times: int) -> list[Played]:
        return self._asked(TOOL_ID, self.question, frozenset({self.tool}), self.tools, times=times)

    def twice_at_once(self) -> Played:
        prompt = PARALLEL_PROMPT.format(name=self.tool)
        [played] = self._asked(PARALLEL_ID, prompt, frozenset({self.tool}), self.tools, times=1)
        return played

    def prompt_tokens(self, *, with_tool: bool) -> int | None:
        """How long the prompt of the tool's question is, as the server counts it."""
        offered = frozenset({self.tool} if with_tool else ())
        tools = self.tools if with_tool else []
        [played] = self._asked(SETTINGS_ID, self.question, offered, tools, times=1, max_turns=1)
        spent = _require_finished(played).spent
        return None if spent is None or spent.usage is None else spent.usage.prompt_tokens

    def with_settings(self, prompt: str, *, offer: bool, **decoding: Any) -> Played:
        """One answer of the same server to a request with other settings."""
        changed = msgspec.structs.replace(self.options.decoding, **decoding)
        options = msgspec.structs.replace(self.options, decoding=changed)
        with find_runner(self.config.runner)(options) as runner, driver(runner) as drive:
            other = copy(self)
            other.runner, other.drive = runner, drive
            offered = frozenset({self.tool} if offer else ())
            tools = self.tools if offer else []
            return other._asked(SETTINGS_ID, prompt, offered, tools, times=1, max_turns=1)[0]

    @property
    def question(self) -> str:
        is_known = self.tool == PREFERRED_TOOL
        return PREFERRED_PROMPT if is_known else OTHER_PROMPT.format(name=self.tool)

    def _asked(
        self,
        sample_id: str,
        prompt: str,
        offered: frozenset[str],
        tools: Sequence[dict[str, Json]],
        *,
        times: int,
        max_turns: int | None = None,
    ) -> list[Played]:
        """The same trial so many times, as many at once as a run would have."""
        sample = Sample(
            index=0,
            sample_id=sample_id,
            prompt=prompt,
            metadata={},
            expectation=expectation_of({}),
        )
        trial = TrialInput(sample, 0, offered, tools, self._prompts.opening(sample, tools))
        settings = self._settings
        if max_turns is not None:
            settings = msgspec.structs.replace(settings, max_turns=max_turns)
        return self._play([trial] * times, settings)

    def _play(self, trials: Sequence[TrialInput], settings: PlaySettings) -> list[Played]:
        runner, source = self.runner, _FixedResult()
        if not runner.suspends:

            def answer(batch: Any) -> Any:
                return self.drive(runner.answer(batch))

            return list(play_in_step(iter(trials), answer, runner.max_batch, source, settings))
        chunks = _chunks(trials, runner.max_batch)
        return [one for chunk in chunks for one in self._at_once(chunk, settings)]

    def _at_once(self, trials: Sequence[TrialInput], settings: PlaySettings) -> list[Played]:
        import asyncio  # opens a socket pair, so only where it is needed

        async def work() -> list[list[Played]]:
            return await asyncio.gather(
                *(play([trial], self.runner, _FixedResult(), settings) for trial in trials)
            )

        return [one for played in self.drive(work()) for one in played]


def _chunks(trials: Sequence[TrialInput], size: int) -> Iterator[Sequence[TrialInput]]:
    for start in range(0, len(trials), size):
        yield trials[start : start + size]


def _tool_of(offers: Offers) -> str:
    if not offers.allowed:
        raise UsageError("--allowlist: allows no tool of the registry, so none can be tried")
    return PREFERRED_TOOL if PREFERRED_TOOL in offers.allowed else min(offers.allowed)


def _reachable(session: _Session) -> Finding:
    session.drive(session.runner.ready())
    model = f" with the model {session.config.model}" if session.config.model else ""
    return Finding("ok", f"{session.runner.name} is ready{model}")


def _answers(session: _Session) -> Finding:
    trace = _require_finished(session.plain()).trace
    if trace.tool_trace:
        called = ", ".join(str(entry.name) for entry in trace.tool_trace)
        return Finding("note", f"called {called}, though no tool was offered")
    if not trace.model_output:
        return Finding(
            "wrong",
            f"an empty text (stopped by {trace.stop})",
            "nothing can be scored",
            "look at the chat template, and give a thinking model more --max-tokens",
        )
    if trace.stop == "truncated":
        return Finding("note", f"cut off: {_quote(trace.model_output)}", next="raise --max-tokens")
    return Finding("ok", _quote(trace.model_output))


def _calls_tools(session: _Session) -> Finding:
    played = session.with_tool()
    trace = played.trace
    calls = [entry for entry in trace.tool_trace if entry.turn in (1, None)]
    if not calls:
        _require_finished(played)
        came = "cut off before a call came" if trace.stop == "truncated" else "no call came"
        return Finding("wrong", f"{came}, but {_quote(trace.model_output)}", *_NO_CALL)
    bad = next((call for call in calls if _what_is_wrong(call)), None)
    if bad is not None:
        return Finding("wrong", f"{_what_is_wrong(bad)}: {_quote(bad.raw or '')}", *_BAD_CALL)
    first = calls[0]
    shown = f"{first.name} {canonical_json(first.arguments)}"
    if first.format == "native":
        return Finding("ok", f"{shown}, as a structured call")
    return Finding("ok", f"{shown}, written in the text ({first.format})", "callmark reads it")


def _uses_results(session: _Session) -> Finding:
    trace = _require_finished(session.with_tool(), "with the result of a tool: ").trace
    if not any(entry.served for entry in trace.tool_trace):
        return Finding("unchecked", "no call that could be answered came")
    if trace.turns is None or len(trace.turns) < 2:
        return Finding("unchecked", "it had only one turn, so it never saw a result")
    start, end = trace.turns[-1]
    last = trace.model_output.encode()[start:end].decode()
    if ground(last, [RESULT])["lax"]:
        return Finding("ok", _quote(last))
    said = _quote(last) if last else "an empty text"
    return Finding(
        "note",
        f"was told that {FACT}, and answered {said}",
        "it may not see what tools return, or not make use of it",
        "try `callmark run` on a few samples, and look at one with `callmark show`",
    )


def _calls_in_parallel(session: _Session) -> Finding:
    played = session.twice_at_once()
    if played.error is not None:
        return Finding(
            "unchecked",
            played.error,
            "some servers give up where a model writes a call that they cannot parse",
            "look at the server's log; in a run such a trial is an error and is not scored",
        )
    first = [entry for entry in played.trace.tool_trace if entry.turn in (1, None)]
    if len(first) > 1:
        return Finding("ok", f"{len(first)} calls in one turn")
    if len(played.trace.tool_trace) > 1:
        found = "was asked for two calls at once, and made them one after the other"
    else:
        found = f"was asked for two calls at once, and made {len(first)}"
    return Finding(
        "note",
        found,
        "samples that expect calls at once take more turns, or fail",
        "some servers cut off all calls but the first: look at its options for parallel calls",
    )


def _keeps_settings(session: _Session) -> Finding:
    """What a server leaves aside without a word."""
    if session.config.runner not in SERVED:
        return Finding("unchecked", "only what a server is sent can be left aside by it")
    found: list[str] = []
    long = session.with_settings(LONG_PROMPT, offer=False, max_tokens=FEW_TOKENS)
    if long.error is None and long.trace.stop != "truncated" and _is_long(long):
        found.append(f"max_tokens ({FEW_TOKENS} were allowed, more came, and no word of that)")
    for choice, is_wanted in (("required", True), ("none", False)):
        prompt = PLAIN_PROMPT if is_wanted else session.question
        try:
            asked = session.with_settings(prompt, offer=True, tool_choice=choice)
        except CallmarkError as error:
            found.append(f"tool_choice {choice!r}, which it refuses ({error})")
            continue
        if asked.error is None and bool(asked.trace.tool_trace) != is_wanted:
            found.append(f"tool_choice {choice!r}")
    if long.spent is None or long.spent.usage is None:
        found.append("usage: tokens and cost of a run will not be known")
    if not found:
        return Finding("ok", "max_tokens and tool_choice are kept, tokens are counted")
    return Finding(
        "note",
        f"does without: {'; '.join(found)}",
        "what a run asks for there has no effect",
        "leave these settings alone, or choose a server that knows them",
    )


def _is_long(played: Played) -> bool:
    usage = None if played.spent is None else played.spent.usage
    if usage is not None:
        return usage.completion_tokens > FEW_TOKENS
    return len(played.trace.model_output.split()) > FEW_TOKENS


def _tools_reach_the_model(session: _Session) -> Finding:
    with_tool = session.prompt_tokens(with_tool=True)
    without = session.prompt_tokens(with_tool=False)
    if with_tool is None or without is None:
        return Finding("unchecked", "this runner does not show the prompt that the model gets")
    more = with_tool - without
    if more >= LEAST_OF_A_TOOL:
        return Finding("ok", f"a tool makes the prompt {more} tokens longer")
    return Finding(
        "wrong",
        f"a tool makes the prompt {more} tokens longer: the model never hears of it",
        "samples that expect a call would all fail",
        "serve the model with a chat template that has tools (docs/serving.md)",
    )


def _keeps_tools(session: _Session) -> Finding:
    match session.runner.fingerprint_parts().get(TOOLS_BLOCK):
        case "native":
            return Finding("ok", "the chat template itself puts the tools into the prompt")
        case "fallback":
            return Finding(
                "note",
                "the chat template drops the tools: a block of callmark's own carries them",
                "the model may know another form of tools from its training",
                "if it was trained with another form, write that form into a prompt wrapper",
            )
        case "raw":
            return Finding(
                "note",
                "the prompt is the text of the wrapper: only $tools brings tools into it",
            )
    if session.config.runner in SERVED:
        return _tools_reach_the_model(session)
    return Finding("unchecked", "this runner does not show the prompt that the model gets")


def _is_equal(session: _Session) -> Finding:
    first = _say(session.with_tool())
    asked = session.config.repeat if session.config.repeat > 1 else REPEATS
    flips = sum(_say(_require_finished(other)) != first for other in session.repeated(asked))
    found = f"{flips} of {asked} repeats differ ({flips / asked:.0%})"
    if not flips:
        return Finding("ok", found)
    return Finding("wrong" if session.config.determinism_mode else "note", found, *_UNEQUAL)


CHECKS: dict[str, Callable[[_Session], Finding]] = {
    "reachable": _reachable,
    "answers": _answers,
    "calls_tools": _calls_tools,
    "uses_results": _uses_results,
    "parallel_calls": _calls_in_parallel,
    "template_keeps_tools": _keeps_tools,
    "equal_on_repeat": _is_equal,
    "keeps_settings": _keeps_settings,
}


def _require_finished(played: Played, when: str = "") -> Played:
    if played.error is not None:
        raise Incomplete(when + played.error)
    return played


def _what_is_wrong(call: TraceEntry) -> str | None:
    if call.status == "malformed":
        return f"a call that cannot be read ({call.reason})"
    if not call.served:
        return f"a call of {call.name}, which was not offered"
    if call.schema_errors:
        return f"arguments that the tool does not take ({'; '.join(call.schema_errors)})"
    return None


def _say(played: Played) -> tuple[str, list[list[Json]]]:
    """What is compared: text and calls, without the numbers that servers give to calls."""
    trace = played.trace
    calls = [[entry.name, entry.arguments, entry.raw] for entry in trace.tool_trace]
    return trace.model_output, calls


def _quote(text: str) -> str:
    line = " ".join(text.split())
    return f'"{line[:SHOWN]}…"' if len(line) > SHOWN else f'"{line}"'


OLDEST_PYTHON = (3, 11)
DEPENDENCIES = (
    "msgspec",
    "PyYAML",
    "jsonschema-rs",
    "json-repair",
    "Babel",
    "phonenumbers",
    "python-stdnum",
    "numpy",
    "rich",
    "httptools",
    "Jinja2",
    "google-re2",
)


class Check(msgspec.Struct, frozen=True):
    subject: str
    ok: bool
    detail: str


class Files(msgspec.Struct, frozen=True):
    """What belongs together: a dataset, and the tools and fixtures that it was made for."""

    dataset: str | None
    fixtures: str | None
    registry: str | None


def examine(config: Path | None, flags: dict[str, Json]) -> Iterator[Check]:
    """This machine and the shipped files; then the user's own, if flags or settings name some."""
    yield _python()
    yield from map(_dependency, DEPENDENCIES)
    yield from _check_shipped()
    try:
        settings = load_config(config, flags)
    except CallmarkError as error:
        yield Check("settings", False, str(error))
        return
    own = Files(settings.dataset, settings.fixtures, settings.registry)
    if own != Files(None, None, None):
        yield from _examine_files("", own)


def _python() -> Check:
    found = ".".join(map(str, sys.version_info[:3]))
    wanted = ".".join(map(str, OLDEST_PYTHON))
    return Check("Python", sys.version_info >= OLDEST_PYTHON, f"{found}; {wanted} is the oldest")


def _dependency(name: str) -> Check:
    try:
        return Check(name, True, version(name))
    except PackageNotFoundError:
        return Check(name, False, f"is not installed: pip install {name}")


def _check_shipped() -> Iterator[Check]:
    yield _check_by("default settings", lambda: f"{len(default_gates())} gates")
    yield _check_by("result schema", lambda: str(schema("eval_result")["$id"]))
    yield _check_by("allowlist", lambda: f"{len(allowlist())} tools")
    demo = demo_paths()
    yield from _examine_files("bundled ", Files(str(demo.dataset), str(demo.fixtures), None))


def _examine_files(whose: str, files: Files) -> Iterator[Check]:
    yield _check_by(f"{whose}tools", lambda: f"{len(open_registry(files.registry).names)} tools")
    if files.fixtures is not None:
        yield _check_by(f"{whose}fixtures", lambda: _fixtures(files))
    if files.dataset is not None:
        yield _check_by(f"{whose}dataset", lambda: _dataset(files))


def _check_by(subject: str, look: Callable[[], str]) -> Check:
    try:
        return Check(subject, True, look())
    except CallmarkError as error:
        return Check(subject, False, str(error))
    except OSError as error:
        return Check(subject, False, f"{error.filename}: {error.strerror}")


def _broker(files: Files) -> ToolBroker | None:
    if files.fixtures is None:
        return None
    return ToolBroker(files.fixtures, open_registry(files.registry))


def _fixtures(files: Files) -> str:
    broker = _broker(files)
    if broker is None:
        raise BadInput("no folder was named")
    check = check_fixtures(broker)
    rate = f"{check.total.hits} of {check.total.calls} calls answered"
    text = f"{files.fixtures}: {check.fixtures} fixtures, {rate}"
    if not check.ok:
        raise BadInput(f"{text}; see: callmark fixtures check {files.fixtures}")
    return text


def _dataset(files: Files) -> str:
    """Readable, and what its header pins is what is there."""
    with open_dataset(Path(files.dataset or "")) as dataset:
        broker = _broker(files)
        computed = Fingerprints(
            dataset_sha256=dataset.sha256,
            tool_registry_sha256=open_registry(files.registry).sha256,
            fixtures_sha256=None if broker is None else broker.fixtures_sha256,
        )
        pinned = compare_pinned(dataset.header, computed)
        warnings = refuse_other_pins(
            dataset.name, dataset.header, computed, pinned, may_differ=False
        )
        notes = "".join(f"; {warning}" for warning in (*dataset.warnings, *warnings))
        return f"{dataset.name}: {dataset.facts.samples} samples{notes}"
