"""One recording from its calls to its files: of calls that somebody lists, or, with live tools in
the place of fixtures, of what a model asks for during a run. Fields that differ from call to call
(times, ids) get one value for ever: `--pin`."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import Any, Literal

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry
from callmark.errors import BadInput, Incomplete, UsageError
from callmark.live.cleaning import SecretFilter, Surrogates
from callmark.live.mcp import McpTarget, McpTools
from callmark.live.python import PlannedCall, PythonTools
from callmark.live.recorder import (
    PINS,
    REGISTRY,
    SURROGATES,
    AsWritten,
    Called,
    Entry,
    LiveTools,
    LostCall,
    Mode,
    NoSuchTool,
    NotCalled,
    Outcome,
    Recorder,
    RecordingSession,
    Replayed,
    file_of,
    items_for_copy,
    open_fixtures,
    read_specs,
    read_texts,
    with_surrogates,
    write_copy,
    write_entries,
    write_specs,
    write_texts,
)
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    digest,
    parse_json,
    want_list,
    want_object,
    want_text,
)
from callmark.records.seams import Hit, Miss, Observed
from callmark.records.trace import is_error_result, is_mcp_result, json_inside, text_of
from callmark.run.offers import GivenTools, Offers
from callmark.run.prepare import resolve_text

SERVED_LIVE = "live"


def refuse_in_ci() -> None:
    """A build must not depend on tools that answer as they like."""
    if os.environ.get("CI", "").lower() not in ("", "0", "false"):
        raise UsageError(
            "--record: calls live tools, which CI must not depend on (CI is set in the"
            " environment); record on your own machine and commit the fixtures"
        )


class LiveSource:
    """The tools of a recording run."""

    def __init__(self, recorder: Recorder, live: LiveTools) -> None:
        self._recorder = recorder
        self._live = live

    def session(self, sample_id: str | None = None) -> LiveSession:
        return LiveSession(self._recorder.session(sample_id))

    def observed(self) -> Observed:
        """What a report must say: these tools were alive."""
        calls, origin = self._recorder.calls, self._live.origin
        return Observed(
            provenance={"live_tools": {"origin": origin, "calls": calls}},
            warnings=(
                f"live tools were called ({origin}, {calls} calls): this run records fixtures;"
                " judge a model by a run on them",
            ),
        )


class LiveSession:
    """One trial. A tool that cannot be reached ends the run, which --resume goes on with."""

    def __init__(self, session: RecordingSession) -> None:
        self._session = session

    def has_answer(self, name: str, arguments: Json | None) -> bool:
        return False  # only asking a live tool could tell

    def answer(self, name: str, arguments: Json) -> Hit | Miss:
        if not isinstance(arguments, dict):
            return Miss(name, arguments, None)
        match self._session.ask(name, arguments):
            case Replayed(hit=Hit() as hit):
                return hit
            case Replayed(result=result) | Called(result=result):
                line = {"name": name, "key": arguments, "result": result}
                return Hit(result, SERVED_LIVE, digest(line))
            case NotCalled(key=key) | NoSuchTool(key=key):
                return Miss(name, arguments, key)
            case LostCall(reason=reason):
                raise Incomplete(
                    f"{reason}; what was answered is written: fix that and continue with --resume"
                )


LONG_WORD = 8  # of a header's value: no name of a scheme, so perhaps a secret


class LiveOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`env` are names of variables that an MCP command is given; `headers` are `Name: value` for
    a URL, with `${NAME}` for what is secret."""

    mcp: str | None = None
    python: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    timeout: float = 30.0

    @property
    def secrets(self) -> tuple[str, ...]:
        """Values that must not reach any file."""
        found: list[str] = []
        for text in self.resolve_headers(found):
            found += [word for word in _header(text)[1].split() if len(word) >= LONG_WORD]
        return (*_variables(self.env).values(), *found)

    def resolve_headers(self, secrets: list[str]) -> list[str]:
        return [resolve_text(header, "header", secrets) for header in self.headers]


@contextmanager
def open_live(options: LiveOptions) -> Iterator[LiveTools]:
    if (options.mcp is None) == (not options.python):
        raise UsageError("which live tools? Give either --mcp COMMAND|URL or --python MODULE:NAME")
    if options.timeout <= 0:
        raise UsageError(f"--timeout {options.timeout:g}: must be above 0 seconds")
    if options.mcp is None:
        yield PythonTools(options.python, timeout=options.timeout)
        return
    target = McpTarget(
        address=options.mcp,
        env=_variables(options.env),
        headers=dict(map(_header, options.resolve_headers([]))),
        timeout=options.timeout,
    )
    with McpTools(target) as tools:
        yield tools


def _variables(names: Sequence[str]) -> dict[str, str]:
    missing = [name for name in names if name not in os.environ]
    if missing:
        raise UsageError(f"--env {missing[0]}: no such environment variable is set")
    return {name: os.environ[name] for name in names}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise UsageError(f"--header {name}: write 'Name: value', a secret as ${{VARIABLE}}")
    return name.strip(), value.strip()


_PIN = re.compile(r"(?P<tool>[^:]+):(?P<path>[$/][^=]*)=(?P<value>.*)", re.DOTALL)
_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+|\*)\]|\['([^']*)'\]")

PinPath = tuple[str, ...]


class Pin(msgspec.Struct, frozen=True):
    """`path` leads into what the tool said: the structured content and JSON inside a text of an
    MCP result, the result itself of any other tool. `*` is every element."""

    written: str
    tool: str
    path: PinPath
    value: Json


def read_pin(text: str) -> Pin:
    """`TOOL:$.a.b[0]=VALUE` or `TOOL:/a/b/0=VALUE`; a value that is no JSON is a text."""
    found = _PIN.fullmatch(text)
    if found is None:
        raise UsageError(f"--pin {text}: write TOOL:PATH=VALUE, such as clock:$.now=2026-01-01")
    value = found["value"]
    try:
        parsed = parse_json(value)
    except NotJson:
        parsed = value
    return Pin(text, found["tool"], _path_of(found["path"], text), parsed)


class Pins:
    """All pins of a recording: those that were given, and of `earlier` recordings those for other
    places. `unused` are the given ones that nothing fitted."""

    def __init__(self, given: Sequence[Pin], earlier: Iterable[Pin] = ()) -> None:
        places = {(pin.tool, pin.path) for pin in given}
        self._given = given
        self._pins = (*(one for one in earlier if (one.tool, one.path) not in places), *given)
        self._used: set[str] = set()

    @property
    def written(self) -> tuple[str, ...]:
        return tuple(pin.written for pin in self._pins)

    @property
    def unused(self) -> tuple[str, ...]:
        return tuple(pin.written for pin in self._given if pin.written not in self._used)

    def apply(self, tool: str, result: Json) -> Json:
        for pin in self._pins:
            if pin.tool == tool:
                result = self._applied(pin, result)
        return result

    def _applied(self, pin: Pin, result: Json) -> Json:
        if not is_mcp_result(result):
            return self._set(pin, result)
        changed = dict(result)
        if "structuredContent" in changed:
            changed["structuredContent"] = self._set(pin, changed["structuredContent"])
        changed["content"] = [
            self._in_block(pin, want_object(block)) for block in want_list(changed["content"])
        ]
        return changed

    def _in_block(self, pin: Pin, block: dict[str, Json]) -> dict[str, Json]:
        text = block.get("text")
        if not isinstance(text, str) or (inside := json_inside(text)) is text:
            return block
        pinned = self._set(pin, inside)
        return block if pinned is inside else {**block, "text": _written_like(text, pinned)}

    def _set(self, pin: Pin, value: Json) -> Json:
        pinned = _with(value, pin.path, pin.value)
        if pinned is not value:
            self._used.add(pin.written)
        return pinned


def _with(value: Json, path: PinPath, new: Json) -> Json:
    """The value with `new` at the path; the very same value where there is no such place."""
    if not path:
        return new
    if not isinstance(value, dict | list):
        return value
    step, *rest = path
    changed = value
    for place in _places(value, step):
        below = _with(value[place], tuple(rest), new)
        if below is not value[place]:
            changed = value.copy() if changed is value else changed
            changed[place] = below
    return changed


def _places(value: dict[str, Json] | list[Json], step: str) -> Sequence[Any]:
    """Keys of an object, or places in a list."""
    if isinstance(value, dict):
        return list(value) if step == "*" else [step] if step in value else []
    if step == "*":
        return range(len(value))
    return [int(step)] if step.isdecimal() and int(step) < len(value) else []


def _written_like(text: str, value: Json) -> str:
    """JSON with the indentation of the text that it replaces."""
    indent = re.match(r"\s*[\[{]\n( +)", text)
    if indent is None:
        compact = ": " not in text and ", " not in text
        separators = (",", ":") if compact else None
        return json.dumps(value, ensure_ascii=False, separators=separators)
    return json.dumps(value, ensure_ascii=False, indent=len(indent[1]))


def _path_of(written: str, text: str) -> PinPath:
    if written.startswith("/"):
        parts = written[1:].split("/") if written != "/" else []
        return tuple(part.replace("~1", "/").replace("~0", "~") for part in parts)
    steps: list[str] = []
    position = 1
    while position < len(written):
        step = _STEP.match(written, position)
        if step is None:
            raise UsageError(f"--pin {text}: cannot read the path from {written[position:]!r} on")
        steps.append(next(group for group in step.groups() if group is not None))
        position = step.end()
    return tuple(steps)


# Texts of servers that report a failure as if it were none.
LOOKS_FAILED = re.compile(r"\s*(?:\w+ )?(?:error|exception|failed|failure)\b", re.IGNORECASE)


WITHOUT_COPY = "a dataset that holds them needs --out-dataset, or --pii keep"


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """How answers are kept. `error_text`: a text that it fits makes the result an error.
    `plain_results`: a run writes what its model saw, personal data included."""

    folder: Path
    registry: Path | None = None
    pins: tuple[Pin, ...] = ()
    pii: Literal["surrogate", "keep"] = "surrogate"
    pii_key: str = ""
    secrets: tuple[str, ...] = ()
    error_text: re.Pattern[str] | None = None
    dataset: Path | None = None
    out_dataset: Path | None = None
    plain_results: bool = False

    @property
    def registry_file(self) -> Path:
        return self.registry or self.folder / REGISTRY


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """What a recording did. `repeated` were asked before in it, `lost` were asked and not answered,
    `missing` may not be asked, for `unknown` there is no such tool, and `unasked` came after the
    server had gone."""

    planned: int = 0
    calls: int = 0
    known: int = 0
    repeated: int = 0
    written: int = 0
    lost: tuple[str, ...] = ()
    missing: tuple[NotCalled, ...] = ()
    unknown: tuple[NoSuchTool, ...] = ()
    unasked: int = 0
    warnings: tuple[str, ...] = ()

    @property
    def unanswered(self) -> int:
        return len(self.lost) + self.unasked


class Opened(msgspec.Struct, frozen=True):
    """The tools and the fixtures that a recording begins with."""

    registry: Registry
    specs: Sequence[dict[str, Json]]
    broker: ToolBroker | None
    warnings: tuple[str, ...]


def open_registry_of(keeping: Keeping, live: LiveTools | None) -> Opened:
    """The registry as it will be: the tools that are known, those of the server in their place."""
    path = keeping.registry_file
    known = {want_text(spec["name"]): spec for spec in read_specs(path)}
    listed = {want_text(spec["name"]): spec for spec in (live.specs if live else ())}
    changed = sorted(name for name in listed if name in known and known[name] != listed[name])
    # Fixtures that were recorded under the old spec may be normalised otherwise now.
    warnings = tuple(f"{path}: {name}: the tool has another spec now" for name in changed)
    specs = list({**known, **listed}.values())
    registry = Registry.from_specs(specs, where=str(path) if live is None else live.origin)
    return Opened(registry, specs, open_fixtures(keeping.folder, registry), warnings)


@contextmanager
def recording(
    live: LiveTools, keeping: Keeping, mode: Mode, done: Callable[[int, Sequence[str]], None]
) -> Iterator[GivenTools]:
    """Live tools for a run. What they answered is written when the block ends, however it does;
    `done` is told how much that was, and what else there is to say."""
    begun = open_registry_of(keeping, live)
    settling = Settling(keeping)
    recorder = Recorder(
        live,
        begun.registry,
        begun.broker,
        mode,
        as_written=as_written(keeping),
        settle=settling.answer,
    )
    source = LiveSource(recorder, live)
    offers = Offers(begun.registry, frozenset(want_text(spec["name"]) for spec in live.specs))

    def observed() -> Observed:
        seen = source.observed()
        return msgspec.structs.replace(seen, warnings=(*seen.warnings, *begun.warnings))

    try:
        yield GivenTools(offers, source, observed)
    finally:
        done(*keep(recorder, begun, keeping, settling))


def record(
    calls: Iterable[PlannedCall],
    live: LiveTools | None,
    keeping: Keeping,
    mode: Mode,
    *,
    per_sample: bool = False,
) -> Recorded:
    """Ask for every call, then write. A server that goes away ends the asking, and what it has
    answered is written."""
    begun = open_registry_of(keeping, live)
    settling = Settling(keeping)
    recorder = Recorder(
        live,
        begun.registry,
        begun.broker,
        mode,
        per_sample=per_sample,
        as_written=as_written(keeping),
        settle=settling.answer,
    )
    planned = list(calls)
    if mode == "all" and begun.broker is not None:
        _refuse_other_files(planned, begun.broker, keeping.folder)
    known = repeated = seen = 0
    lost: list[str] = []
    missing: dict[str, NotCalled] = {}
    unknown: dict[str, NoSuchTool] = {}
    try:
        for outcome in _ask(planned, recorder):
            seen += 1
            match outcome:
                case Called():
                    pass
                case Replayed(hit=None):
                    repeated += 1
                case Replayed():
                    known += 1
                case NotCalled(name=name, key=key):
                    missing.setdefault(f"{name} {json.dumps(key, sort_keys=True)}", outcome)
                case NoSuchTool(name=name, key=key):
                    unknown.setdefault(f"{name} {json.dumps(key, sort_keys=True)}", outcome)
                case LostCall(reason=reason):
                    lost.append(reason)
    finally:
        # Also when somebody has had enough: what was answered need not be asked again.
        written, warnings = (0, ()) if live is None else keep(recorder, begun, keeping, settling)
    return Recorded(
        planned=len(planned),
        calls=recorder.calls,
        known=known,
        repeated=repeated,
        written=written,
        lost=tuple(lost),
        missing=tuple(missing.values()),
        unknown=tuple(unknown.values()),
        unasked=len(planned) - seen,
        warnings=(*begun.warnings, *warnings),
    )


def _ask(planned: Sequence[PlannedCall], recorder: Recorder) -> Iterable[Outcome]:
    for sample_id, calls in groupby(planned, key=lambda call: call.sample_id):
        session = recorder.session(sample_id)
        for call in calls:
            outcome = session.ask(call.name, call.arguments)
            if isinstance(outcome, LostCall):
                outcome = LostCall(f"{call.where}: {outcome.reason}", outcome.gone)
            yield outcome
            if isinstance(outcome, LostCall) and outcome.gone:
                return


def as_written(keeping: Keeping) -> AsWritten:
    """The key under which a call would stand in the folder."""
    secrets = SecretFilter(keeping.secrets)
    surrogates = Surrogates(key=keeping.pii_key, made=read_texts(keeping.folder, SURROGATES))

    def key_of(arguments: dict[str, Json]) -> dict[str, Json]:
        key = want_object(secrets.json(arguments))
        if keeping.pii == "surrogate":
            surrogates.learn(key)
            key = want_object(surrogates.json(key))
        return key

    return key_of


class Settling:
    """What an answer goes through before anybody sees it, the model included: it would be told
    the same on replay, and no secret comes into its results."""

    def __init__(self, keeping: Keeping) -> None:
        self._error_text = keeping.error_text
        self.pins = Pins(keeping.pins, map(read_pin, read_texts(keeping.folder, PINS)))
        self.secrets = SecretFilter(keeping.secrets)

    def answer(self, name: str, result: Json) -> Json:
        if self._error_text is not None and is_mcp_result(result):
            failed = self._error_text.search(text_of(result)) is not None
            result = {**result, "isError": result.get("isError") is True or failed}
        return self.secrets.json(self.pins.apply(name, result))

    def entry(self, entry: Entry) -> Entry:
        return msgspec.structs.replace(entry, key=self.secrets.json(entry.key))


def keep(
    recorder: Recorder, begun: Opened, keeping: Keeping, settling: Settling
) -> tuple[int, tuple[str, ...]]:
    """Write fixtures, registry and the copy of the dataset, with secrets and personal data gone."""
    copied = keeping.out_dataset
    secrets = settling.secrets
    entries = [settling.entry(entry) for entry in recorder.entries()]
    copies = items_for_copy(keeping.dataset) if copied else []
    items = [want_object(secrets.json(item)) for item in copies]
    surrogates = Surrogates(key=keeping.pii_key, made=read_texts(keeping.folder, SURROGATES))
    if keeping.pii == "surrogate":
        for value in (*items, *(value for entry in entries for value in (entry.key, entry.result))):
            surrogates.learn(value)
        entries = [
            msgspec.structs.replace(
                entry, key=surrogates.json(entry.key), result=surrogates.json(entry.result)
            )
            for entry in entries
        ]
        items = [with_surrogates(item, surrogates) for item in items]
    entries, elsewhere = _without_others(entries, begun.broker, keeping.folder)
    written = write_entries(keeping.folder, entries, begun.registry)
    write_specs(keeping.registry_file, begun.specs)
    if surrogates.replaced:
        write_texts(keeping.folder, SURROGATES, surrogates.made)
    if keeping.pins:
        write_texts(keeping.folder, PINS, settling.pins.written)
    if copied is not None:
        write_copy(copied, keeping.dataset, items)
    remarks = _remarks(entries, settling, surrogates, keeping)
    return written, (*elsewhere, *remarks)


def _remarks(
    entries: Sequence[Entry], settling: Settling, surrogates: Surrogates, keeping: Keeping
) -> Iterable[str]:
    secrets = settling.secrets
    for pin in settling.pins.unused:
        yield f"--pin {pin}: no recorded answer has this place"
    if secrets.removed:
        yield f"{secrets.removed} secrets were removed; a call that needs one finds no fixture"
    if surrogates.replaced:
        copy = f"{keeping.out_dataset} has the same" if keeping.out_dataset else WITHOUT_COPY
        yield f"{surrogates.replaced} personal values were replaced by surrogates; {copy}"
        if keeping.plain_results:
            yield "results and report of the run hold them as they are; --redact-pii takes them out"
    failed = [entry for entry in entries if is_error_result(entry.result)]
    if failed:
        are = "answer is an error" if len(failed) == 1 else "answers are errors"
        yield f"{len(failed)} {are}: {failed[0].name} {canonical_json(failed[0].key)}"
    unmarked = sorted({entry.name for entry in entries if _looks_failed(entry.result)})
    if unmarked:
        names = ", ".join(unmarked)
        yield f"answers of {names} read like failures but say isError: false; see --error-text"


def _looks_failed(result: Json) -> bool:
    if not is_mcp_result(result) or result.get("isError") is True:
        return False
    return LOOKS_FAILED.match(text_of(result)) is not None


def _refuse_other_files(planned: Sequence[PlannedCall], broker: ToolBroker, folder: Path) -> None:
    """What is recorded anew must take the place of the old answer, which only the file of its
    tool allows: another file is somebody's own."""
    found = (
        _in_other_file(one.name, one.arguments, one.sample_id, broker, folder) for one in planned
    )
    problems = dict.fromkeys(filter(None, found))
    if problems:
        raise BadInput(list(problems)[:20])


def _without_others(
    entries: Sequence[Entry], broker: ToolBroker | None, folder: Path
) -> tuple[list[Entry], list[str]]:
    """The entries that can be written, and why others cannot."""
    kept: list[Entry] = []
    problems: dict[str, None] = {}
    for entry in entries:
        problem = None
        if broker is not None:
            problem = _in_other_file(entry.name, entry.key, entry.sample_id, broker, folder)
        if problem is None:
            kept.append(entry)
        else:
            problems.setdefault(f"not written: {problem}")
    return kept, list(problems)


def _in_other_file(
    name: str, key: dict[str, Json], sample_id: str | None, broker: ToolBroker, folder: Path
) -> str | None:
    call = broker.normalised(name, key)
    found = None if call is None else broker.index.find(call, sample_id)
    for step in found.steps if found else ():
        mine = file_of(folder, step.name)
        is_mine = step.match != "exact" or Path(step.file).absolute() == mine.absolute()
        if not is_mine and step.sample_id == sample_id:
            what = f"answers {name} already; move it to {mine}, or use --mode new"
            return f"{step.place}: {what}"
    return None
