"""What plug-ins add to the tables of the house: runners, call formats, scorers, reports, importers.

A decorator marks a function or a class as a row. A row takes part where its file is named
(`--plugin FILE.py`, `plugins:` in a settings file), where it is passed to `callmark.run`, or where
an installed package has an entry point for it. A dataset can name none."""

from __future__ import annotations

import hashlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from traceback import walk_tb
from types import ModuleType
from typing import Any, TypeVar, cast, overload

import msgspec

from callmark.errors import PluginError, UsageError, place_in
from callmark.records.jsontext import Json
from callmark.records.problems import hint
from callmark.records.results import Better, ScorerMark
from callmark.records.seams import (
    AddedScorer,
    Judged,
    PluginRow,
    Seam,
)
from callmark.runners.custom import runner_factory

RUNNERS = {
    "openai_http": "callmark.runners.http.chat:open_chat",
    "openai_responses": "callmark.runners.http.responses:open_responses",
    "anthropic_messages": "callmark.runners.http.messages_api:open_messages",
    "hf_local": "callmark.runners.hf.local:open_local",
    "replay": "callmark.runners.replay:open_replay",
}
ENGINES = {
    "local": "callmark.shards.run:open_players",
    "ray": "callmark.shards.run:open_players",
}
GROUPS: dict[Seam, str] = {
    "runner": "callmark.runners",
    "call_format": "callmark.formats",
    "scorer": "callmark.scorers",
    "report": "callmark.reports",
    "importer": "callmark.importers",
}
_MARK = "__callmark_row__"
_NAME = re.compile(r"[a-z][a-z0-9_-]*", re.IGNORECASE)
_ENDING = re.compile(r"\.[a-z0-9][a-z0-9_.-]*", re.IGNORECASE)

Target = TypeVar("Target", bound=Callable[..., object])


@overload
def runner(name: Target) -> Target: ...


@overload
def runner(
    name: str | None = None, *, version: str | None = None
) -> Callable[[Target], Target]: ...


def runner(
    name: str | Target | None = None, *, version: str | None = None
) -> Callable[[Target], Target] | Target:
    """Mark what answers a turn.

    It is a function that takes a `Conversation` and returns a text (or a `Reply`, or a `Failure`),
    or a class like `callmark.records.seams.Runner`, made with the options of the run if it takes
    any. `--runner NAME` chooses it.

    Args:
        name: what it is called; its own name by default.
        version: goes into the fingerprint, beside the hash of its source.

    Returns:
        The function or class, as it was.

    Raises:
        PluginError: a name that cannot be one.

    >>> import callmark
    >>> @callmark.runner
    ... def parrot(conversation):
    ...     return conversation.messages[-1]["content"]
    """
    return _decorate("runner", name, version, {})


def call_format(
    name: str | None = None, *, opening: str, hint: str = "", version: str | None = None
) -> Callable[[Target], Target]:
    """Mark a function that reads calls out of a model's text.

    `(reading, start, mark_end)` gives a `callmark.calls.formats.TextBlock`, or None if there is no
    call here.

    Args:
        name: what it is called; its own name by default.
        opening: the regular expression of the mark that a call begins with.
        hint: a text without which no answer holds one.
        version: goes into the fingerprint, beside the hash of its source.

    Returns:
        What to put above the function.

    Raises:
        PluginError: an expression or a name that cannot be one.

    >>> import callmark
    >>> @callmark.call_format(opening="ASK ", hint="ASK ")
    ... def ask(reading, start, mark_end):
    ...     return None
    """
    return _with_name("call_format", name, version, {"opening": opening, "hint": hint})


def scorer(
    name: str | None = None,
    *,
    measures: Mapping[str, Better] | Sequence[str],
    gates: Mapping[str, object] | None = None,
    version: str | None = None,
) -> Callable[[Target], Target]:
    """Mark a function that judges one trial.

    `(sample, trace)` gives its measures by name, each a number, True, False, or None for what it
    cannot tell.

    Args:
        name: what it is called; its own name by default.
        measures: which way each is better, "higher" or "lower"; a list of names means higher.
        gates: what each has to reach, unless the settings say otherwise.
        version: goes into the fingerprint, beside the hash of its source.

    Returns:
        What to put above the function.

    Raises:
        PluginError: no measure, or a name that cannot be one.

    >>> import callmark
    >>> @callmark.scorer(measures=["short_enough"], gates={"short_enough": {">=": 0.95}})
    ... def brevity(sample, trace):
    ...     return {"short_enough": len(trace.model_output.split()) <= 40}
    """
    ways = dict(measures) if isinstance(measures, Mapping) else dict.fromkeys(measures, "higher")
    return _with_name("scorer", name, version, {"measures": ways, "gates": dict(gates or {})})


def report(
    name: str | None = None, *, ending: str, version: str | None = None
) -> Callable[[Target], Target]:
    """Mark a function that writes a finished run in another form.

    It takes a `FinishedRun` (its `report`, its `trials()`) and returns text or bytes. `-o FILE`
    chooses it by the ending of the file's name, `-o NAME:FILE` by its own.

    Args:
        name: what it is called; its own name by default.
        ending: the ending of its files, such as `.txt`.
        version: goes into the provenance, beside the hash of its source.

    Returns:
        What to put above the function.

    Raises:
        PluginError: an ending or a name that cannot be one.

    >>> import callmark
    >>> @callmark.report(ending=".txt")
    ... def one_line(run):
    ...     return f"{run.report.verdict}: {run.report.counts.samples} samples"
    """
    return _with_name("report", name, version, {"ending": ending})


@overload
def importer(name: Target) -> Target: ...


@overload
def importer(
    name: str | None = None,
    *,
    recognise: Callable[[dict[str, Json]], bool] | None = None,
    version: str | None = None,
) -> Callable[[Target], Target]: ...


def importer(
    name: str | Target | None = None,
    *,
    recognise: Callable[[dict[str, Json]], bool] | None = None,
    version: str | None = None,
) -> Callable[[Target], Target] | Target:
    """Mark a function that reads one entry of a foreign file.

    It returns an item of a dataset (an object with `prompt`), a conversation (an object with
    `messages`), a list of these, or None to leave the entry out. `--format NAME` chooses it.

    Args:
        name: what it is called; its own name by default.
        recognise: says yes to the first entry of a file that `--format auto` should read with it.
        version: goes into the provenance, beside the hash of its source.

    Returns:
        The function, as it was.

    Raises:
        PluginError: a name that cannot be one.

    >>> import callmark
    >>> @callmark.importer(recognise=lambda entry: "question" in entry)
    ... def quiz(entry):
    ...     return {"prompt": entry["question"]}
    """
    return _decorate("importer", name, version, {"recognise": recognise})


def _decorate(
    seam: Seam, name: str | Target | None, version: str | None, given: dict[str, object]
) -> Callable[[Target], Target] | Target:
    """With or without brackets behind the decorator."""
    if name is None or isinstance(name, str):
        return _with_name(seam, name, version, given)
    return _with_name(seam, None, version, given)(name)


def _with_name(
    seam: Seam, name: str | None, version: str | None, given: dict[str, object]
) -> Callable[[Target], Target]:
    def mark(target: Target) -> Target:
        row = PluginRow(
            seam=seam,
            name=name or str(getattr(target, "__name__", "")),
            target=target,
            version=None if version is None else str(version),
            given=given,
        )
        _check(row)
        setattr(target, _MARK, row)
        _executed.append(row)
        return target

    return mark


def _check(row: PluginRow) -> None:
    what = f"@callmark.{row.seam}"
    if not callable(row.target):
        raise PluginError(f"{what}: goes above a function or a class, not {row.target!r}")
    if not _NAME.fullmatch(row.name):
        raise PluginError(f"{what}: {row.name!r} is no name: letters, digits, _ and -")
    if inspect.iscoroutinefunction(row.target) and row.seam != "runner":
        raise PluginError(f"{what} {row.name}: must be a plain function, not an async one")
    match row.seam:
        case "scorer":
            _check_measures(row, what)
        case "report":
            ending = row.given["ending"]
            if not isinstance(ending, str) or not _ENDING.fullmatch(ending):
                raise PluginError(f"{what} {row.name}: ending: must look like .txt: {ending!r}")
        case "call_format":
            try:
                re.compile(str(row.given["opening"]))
            except re.error as error:
                raise PluginError(f"{what} {row.name}: opening: {error}") from None
        case _:
            return


def _check_measures(row: PluginRow, what: str) -> None:
    ways = cast("dict[str, object]", row.given["measures"])
    gates = cast("dict[str, object]", row.given["gates"])
    if not ways:
        raise PluginError(f'{what} {row.name}: measures: name at least one, such as ["ok"]')
    for name, better in ways.items():
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise PluginError(f"{what} {row.name}: measures: {name!r} is no name")
        if better not in ("higher", "lower"):
            raise PluginError(
                f'{what} {row.name}: measures: {name}: is "higher" or "lower" better?'
                f" Not {better!r}"
            )
    for name in gates:
        if name not in ways:
            raise PluginError(
                f"{what} {row.name}: gates: {name!r} is none of its measures{hint(name, [*ways])}"
            )


# What is in force: rows of files and of objects that somebody named, in that order.
_active: list[PluginRow] = []
_files: dict[Path, ModuleType] = {}
_executed: list[PluginRow] = []  # every row that a decorator made, until somebody takes it


@contextmanager
def plugin_scope() -> Iterator[None]:
    """What is added inside ends with it: one command, one call of the library, one shard."""
    before, files = list(_active), dict(_files)
    try:
        yield
    finally:
        _active[:] = before
        for path in [path for path in _files if path not in files]:
            sys.modules.pop(_files.pop(path).__name__, None)


def forget_plugins() -> None:
    """As if none had been named."""
    _active.clear()
    while _files:
        sys.modules.pop(_files.popitem()[1].__name__, None)


def add_plugins(given: Iterable[object]) -> None:
    """Files by their paths, and decorated functions or classes."""
    for one in given:
        if isinstance(one, str | Path):
            _add_file(Path(one))
        else:
            row = row_of(one)
            if row is None:
                raise UsageError(
                    f"plugins: {one!r} is neither a file nor decorated with callmark.scorer, …"
                )
            if row not in _active:
                _activate(row)


def add_runner(given: object) -> str:
    """A runner that somebody passes as an object, a class or a function: its name from here on."""
    marked = _mark_of(given)
    name = marked.name if marked else getattr(given, "name", None)
    if not isinstance(name, str):
        name = str(getattr(given, "__name__", type(given).__name__)).strip("<>")
    row = marked or PluginRow(seam="runner", name=name, target=cast("Callable[..., object]", given))
    if not _NAME.fullmatch(row.name):
        raise UsageError(f"runner: {row.name!r} is no name: letters, digits, _ and -")
    _activate(_located(row))
    return row.name


def _add_file(path: Path) -> None:
    path = path.resolve()
    if path in _files:
        return
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"--plugin: {path}: cannot be read: {error.strerror}") from None
    sha256 = hashlib.sha256(source).hexdigest()
    module = ModuleType(f"callmark_plugin_{path.stem}_{sha256[:12]}")
    module.__file__ = str(path)
    _executed.clear()
    sys.modules[module.__name__] = module  # where records and pickle look for their classes
    try:
        # Not by the import system: what it keeps in __pycache__ need not be what was hashed here.
        exec(compile(source, str(path), "exec"), module.__dict__)  # noqa: S102
    except (Exception, SystemExit) as error:
        sys.modules.pop(module.__name__, None)
        raise PluginError(_why_not_loaded(error, path)) from error
    marked = (row for value in vars(module).values() if (row := _mark_of(value)) is not None)
    rows = list({id(row): row for row in (*_executed, *marked)}.values())
    if not rows:
        raise PluginError(
            f"--plugin: {path}: adds nothing: put @callmark.scorer, runner, call_format, report or"
            " importer above a function"
        )
    _files[path] = module
    for row in rows:
        _activate(msgspec.structs.replace(row, home=str(path), sha256=sha256))


def _why_not_loaded(error: BaseException, path: Path) -> str:
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return f"--plugin: {path}:{error.lineno}: {error.msg}"
    if isinstance(error, PluginError):
        return f"--plugin: {place_in(error, str(path))}: {error}"
    where = place_in(error, str(path))
    return f"--plugin: {where}: cannot be loaded: {type(error).__name__}: {error}"


def _activate(row: PluginRow) -> None:
    for other in (*_active, *_entry_rows(row.seam)):
        if (other.seam, other.name) == (row.seam, row.name):
            raise PluginError(
                f"{row.home}: there are two of {row.seam} {row.name!r}: {other.home} has one too"
            )
    if row.seam == "runner" and row.name in RUNNERS:
        raise PluginError(f"{row.home}: runner {row.name!r}: ships with callmark: choose a name")
    _active.append(row)


def row_of(given: object) -> PluginRow | None:
    """The row of a decorated object, with the hash of its source."""
    row = _mark_of(given)
    return None if row is None else _located(row)


def _mark_of(given: object) -> PluginRow | None:
    try:
        row = vars(given).get(_MARK)
    except TypeError:
        return None
    return row if isinstance(row, PluginRow) and row.target is given else None


def _located(row: PluginRow) -> PluginRow:
    """With the file that it stands in. In a notebook that is the source of the object itself."""
    subject = row.target if hasattr(row.target, "__name__") else type(row.target)
    module = sys.modules.get(getattr(subject, "__module__", ""))
    file = getattr(module, "__file__", None)
    if file is not None and Path(file).is_file():
        data = Path(file).read_bytes()
        return msgspec.structs.replace(row, home=file, sha256=hashlib.sha256(data).hexdigest())
    home = getattr(getattr(subject, "__code__", None), "co_filename", "") or row.name
    try:
        text = inspect.getsource(subject)
    except (OSError, TypeError):
        return msgspec.structs.replace(row, home=home)
    return msgspec.structs.replace(
        row, home=home, sha256=hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    )


def rows_of(seam: Seam) -> tuple[PluginRow, ...]:
    """What plug-ins add to this table: of files and objects, then of installed packages."""
    named = tuple(row for row in _active if row.seam == seam)
    return (*named, *_entry_rows(seam))


def plugin_marks() -> list[dict[str, Json]]:
    """All that is in force by name, version and source: for the provenance of a report."""
    named = [row.mark() for seam in GROUPS for row in rows_of(seam)]
    return sorted(named, key=lambda mark: (mark["seam"], mark["name"]))


def added_scorers() -> tuple[AddedScorer, ...]:
    """The scorers in force, by name."""
    return tuple(
        AddedScorer(
            mark=ScorerMark(
                name=row.name,
                version=row.version,
                sha256=row.sha256,
                measures=tuple(ways := cast("dict[str, Better]", row.given["measures"])),
                lower=tuple(name for name, better in ways.items() if better == "lower"),
            ),
            judge=cast("Callable[..., Judged]", row.target),
            home=row.home,
        )
        for row in sorted(rows_of("scorer"), key=lambda row: row.name)
    )


def added_measures() -> dict[str, Better]:
    """The measures of the scorers in force, by `scorer.measure`: which way each is better."""
    return {name: way for one in added_scorers() for name, way in one.mark.named().items()}


def added_gates() -> dict[str, Json]:
    """What the scorers in force ask of their own measures."""
    return {
        f"{row.name}.{measure}": rule
        for row in sorted(rows_of("scorer"), key=lambda row: row.name)
        for measure, rule in cast("dict[str, Json]", row.given["gates"]).items()
    }


def find_runner(name: str) -> Any:
    """The factory of the runner of this name; built-in ones cannot be replaced."""
    for row in _active:
        if (row.seam, row.name) == ("runner", name):
            return runner_factory(row.target, row.name)
    return _find(name, RUNNERS, GROUPS["runner"], "--runner")


def find_players(engine: str) -> Any:
    """Who has the trials of a run played by this engine: what opens them, given its config."""
    return _load_builtin(ENGINES[engine])


def runner_names() -> tuple[str, ...]:
    named = [row.name for row in _active if row.seam == "runner"]
    return tuple(sorted({*named, *_names(RUNNERS, GROUPS["runner"])}))


def runner_mark(name: str) -> dict[str, Json] | None:
    """Of a runner that does not ship with callmark; what a fingerprint knows of it."""
    if name in RUNNERS:
        return None
    for row in rows_of("runner"):
        if row.name == name:
            return row.mark()
    point = next((point for point in _points(GROUPS["runner"]) if point.name == name), None)
    return None if point is None else _plain_row("runner", point, find_runner(name)).mark()


def with_formats(builtin: tuple[Any, ...]) -> tuple[Any, ...]:
    """The rows of the table of call formats: the built-in ones, then those of plug-in files, then
    those of other packages in the order of their names. An entry point is one row or several, all
    of its own name."""
    points = _points(GROUPS["call_format"])
    added = [row for row in _active if row.seam == "call_format"]
    if not points and not added:
        return builtin
    rows, kind = list(builtin), type(builtin[0])
    for one in added:
        if any(row.name == one.name for row in rows):
            raise UsageError(
                f"{one.home}: call format {one.name!r}: there is a format of this name already"
            )
        rows.append(_format_row(one, kind))
    for point in points:
        if any(row.name == point.name for row in rows):
            raise UsageError(f"{_format(point)}: there is a format of this name already")
        rows += _rows(point, kind)
    return tuple(rows)


def format_marks() -> list[dict[str, Json]]:
    """Of the call formats that do not ship with callmark."""
    marks = [row.mark() for row in rows_of("call_format")]
    known = {mark["name"] for mark in marks}
    marks += [
        _plain_row("call_format", point, None).mark()
        for point in _points(GROUPS["call_format"])
        if point.name not in known
    ]
    return sorted(marks, key=lambda mark: str(mark["name"]))


def plugin_behind(error: BaseException) -> str | None:
    """Which plug-in raised this; None if it was callmark. Of all frames of both the innermost
    decides: a plug-in may call us as well."""
    homes: dict[Path, str | None] = {Path(__file__).parent: None}
    for seam, group in GROUPS.items():
        for point in entry_points(group=group):
            home = _home(point)
            if home is not None:
                homes[home] = f"the {seam.replace('_', ' ')} {point.name!r} of {_owner(point)}"
    for path in _files:
        homes[path] = f"the plug-in {path}"
    for row in _active:
        if row.home:
            homes.setdefault(Path(row.home), f"the {row.seam.replace('_', ' ')} {row.name!r}")
    for frame, line in reversed(list(walk_tb(error.__traceback__))):
        file = Path(frame.f_code.co_filename)
        for home, name in homes.items():
            if file == home or home in file.parents:
                return name if name is None else f"{file}:{line}: {name}"
    return None


def _home(point: EntryPoint) -> Path | None:
    """The folder of a loaded plug-in's package, or its only file."""
    names = (point.module.partition(".")[0], point.module)  # a namespace package has no file
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    file = next(filter(None, files), None)
    if file is None:
        return None
    return Path(file).parent if Path(file).name == "__init__.py" else Path(file)


def _entry_rows(seam: Seam) -> tuple[PluginRow, ...]:
    """The decorated objects that installed packages offer for a seam."""
    found: dict[str, PluginRow] = {}
    for point in _points(GROUPS[seam]):
        if seam == "runner" and f"{point.module}" not in sys.modules:
            continue  # loaded when it is chosen: it may need a large library
        row = _mark_of(loaded := _load(point, f"{seam} {point.name!r} of {_owner(point)}"))
        if row is None:
            if seam in ("runner", "call_format"):
                continue  # a factory, a row of the table of formats: known by other means
            raise UsageError(
                f"{seam} {point.name!r} of {_owner(point)}: {loaded!r} is not decorated with"
                f" @callmark.{seam}"
            )
        if point.name in found:
            raise UsageError(f"{seam} {point.name!r} is offered by several packages")
        found[point.name] = _plain_row(seam, point, row)
    return tuple(found[name] for name in sorted(found))


def _plain_row(seam: Seam, point: EntryPoint, known: object) -> PluginRow:
    """The row of an entry point; the source of its package is its source."""
    version = point.dist.version if point.dist is not None else None
    row = known
    if not isinstance(row, PluginRow):
        row = PluginRow(seam=seam, name=point.name, target=_plain_row)
    import_module(point.module)
    home = _home(point)
    return msgspec.structs.replace(
        row,
        name=point.name,
        version=row.version or version,
        home="" if home is None else str(home),
        sha256=None if home is None else _hash_sources(home),
    )


@lru_cache(maxsize=64)
def _hash_sources(home: Path) -> str:
    hasher = hashlib.sha256()
    files = [home] if home.is_file() else sorted(home.rglob("*.py"))
    for file in files:
        hasher.update(f"{file.name}\0".encode() + hashlib.sha256(file.read_bytes()).digest())
    return hasher.hexdigest()


def _points(group: str) -> tuple[EntryPoint, ...]:
    return _points_on(group, tuple(sys.path))


@lru_cache(maxsize=64)
def _points_on(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """The metadata of every package are read for it, so once for each search path."""
    found = entry_points(group=group)
    return tuple(sorted(found, key=lambda point: (point.name, _owner(point))))


def _format_row(row: PluginRow, kind: type[Any]) -> Any:
    return kind(row.name, row.given["hint"], row.given["opening"], row.target)


def _rows(point: EntryPoint, kind: type[Any]) -> Iterator[Any]:
    loaded = _load(point, _format(point))
    marked = _mark_of(loaded)
    if marked is not None:
        loaded = _format_row(marked, kind)
    for row in [loaded] if isinstance(loaded, kind) else loaded:
        if not isinstance(row, kind) or row.name != point.name:
            raise UsageError(f"{_format(point)}: {row!r} is no {kind.__name__} of this name")
        try:
            re.compile(row.opening)
        except re.error as error:
            raise UsageError(f"{_format(point)}: opening: {error}") from None
        yield row


def _format(point: EntryPoint) -> str:
    return f"call format {point.name!r} of {_owner(point)}"


def _find(name: str, builtin: Mapping[str, str], group: str, option: str) -> Any:
    # First, so that no installed package can put itself in the place of what ships.
    if name in builtin:
        return _load_builtin(builtin[name])
    found = [point for point in _points(group) if point.name == name]
    if not found:
        known = ", ".join(runner_names())
        raise UsageError(f"{option}: there is no {name!r}; there is: {known}")
    # Which of two packages was meant must not depend on the order in which they were installed.
    if len(found) > 1:
        owners = ", ".join(sorted(_owner(point) for point in found))
        raise UsageError(f"{option}: {name!r} is offered by several packages: {owners}")
    loaded = _load(found[0], f"{option}: {name!r} of {_owner(found[0])}")
    return loaded if _mark_of(loaded) is None else runner_factory(loaded, name)


def _load_builtin(place: str) -> Any:
    module, _, attribute = place.partition(":")
    return getattr(import_module(module), attribute)


def _load(point: EntryPoint, what: str) -> Any:
    try:
        return point.load()
    except Exception as error:  # its code is run, and may do anything
        reason = str(error) if isinstance(error, ImportError | AttributeError) else repr(error)
        raise UsageError(f"{what} cannot be loaded: {reason}") from error


def _names(builtin: Mapping[str, str], group: str) -> tuple[str, ...]:
    return tuple(sorted({*builtin, *(point.name for point in _points(group))}))


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else point.value
