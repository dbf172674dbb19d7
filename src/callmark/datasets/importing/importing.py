"""One import: the source is read once, entry by entry, and everything is written or nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import chain
from pathlib import Path
from typing import NamedTuple, cast

import msgspec

from callmark.calls.registry import Registry
from callmark.datasets.importing import CHOICES, Format
from callmark.datasets.importing.anthropic import anthropic_exchanges, is_anthropic, read_blocks
from callmark.datasets.importing.atif import is_atif, read_atif
from callmark.datasets.importing.bfcl import read_bfcl
from callmark.datasets.importing.choosing import ALL, Choice, NearDuplicates, StrataSample
from callmark.datasets.importing.claude_code import is_claude_code, read_claude_code
from callmark.datasets.importing.codex import is_codex, read_codex
from callmark.datasets.importing.desk import (
    Desk,
    Imported,
    Notes,
    Object,
    Reader,
    Record,
    ToolCatalogue,
    Unmapped,
)
from callmark.datasets.importing.gemini_cli import is_gemini_cli, read_gemini_cli
from callmark.datasets.importing.histories import (
    Histories,
    ModelExchange,
    exchanges_of,
    is_whole_session,
)
from callmark.datasets.importing.inspect_log import read_inspect
from callmark.datasets.importing.langchain import is_langchain, read_langchain
from callmark.datasets.importing.mini_swe_agent import is_mini_swe_agent, read_mini_swe_agent
from callmark.datasets.importing.openai_chat import (
    chat_exchanges,
    claims_chat,
    is_chat,
    read_conversation,
)
from callmark.datasets.importing.responses import is_responses, read_items_of, responses_exchanges
from callmark.datasets.importing.sharegpt import is_sharegpt, read_sharegpt
from callmark.datasets.importing.sources import (
    Container,
    LogFile,
    container_of,
    list_files,
    records_of,
)
from callmark.datasets.importing.span_logs import dialect_of, read_span_log
from callmark.datasets.importing.tau_bench import read_tau2, read_tau_bench
from callmark.datasets.importing.writing import ImportCounts, ImportPaths, Writer, check_places
from callmark.datasets.reader import header_fields
from callmark.datasets.schema import (
    HEADER_KEY,
    BadHeader,
    header_keys,
    header_of,
    is_header,
    item_problems,
)
from callmark.errors import BadInput, PluginError, UsageError
from callmark.records.jsontext import Json, want_object
from callmark.records.problems import Problems, show_value
from callmark.records.samples import sample_id_of
from callmark.records.seams import PluginRow
from callmark.resources import load_registry_file
from callmark.store.files import atomic_writer


class _Api(NamedTuple):
    """`claims`: an entry that can be of no other; `read_whole`: one that holds no exchange."""

    name: str
    claims: Callable[[Object], bool]
    exchanges: Callable[[Object, int, Desk], Iterator[ModelExchange]]
    read_whole: Callable[[Object, int, Desk], Iterator[Imported]]


_APIS = (
    _Api("anthropic", is_anthropic, anthropic_exchanges, read_blocks),
    _Api("responses", is_responses, responses_exchanges, read_items_of),
    _Api("openai", claims_chat, chat_exchanges, read_conversation),
)


def reader_of_api(name: str) -> Reader:
    """Exchanges with a model's API, or whole conversations. A gateway writes several APIs into one
    file: each entry is read as what it is. `name`: whose it is, if it does not say so."""
    asked = next(api for api in _APIS if api.name == name)
    order = (asked, *(api for api in _APIS if api is not asked))

    def read(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
        running = Histories(desk)
        for line, value in records:
            entry = {"messages": value} if isinstance(value, list) else value
            if not isinstance(entry, dict):
                raise BadInput(f"{desk.place(line)}: must be a JSON object or a list of messages")
            api = next((one for one in order if one.claims(entry)), asked)
            desk.meet(api.name)
            if exchanges_of(entry) is None:
                yield from api.read_whole(entry, line, desk)
                continue
            # A row that holds a whole conversation stands for itself.
            own = Histories(desk, session=True) if is_whole_session(entry) else None
            for exchange in api.exchanges(entry, line, desk):
                yield from (own or running).take(exchange)
            yield from own.finish() if own else ()
        yield from running.finish()

    return read


def read_items(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
    """Everything as it is; the header's own fields stay, its hash is made anew."""
    problems = Problems()
    for number, (line, item) in enumerate(records):
        if not isinstance(item, dict):
            problems.add(f"{desk.source}:{line}", "must be a JSON object")
        elif number == 0 and _takes_header(item, line, desk):
            continue
        else:
            wrong = item_problems(item) or _second_header(item)
            problems.add(f"{desk.source}:{line}", wrong)
            if not wrong:
                yield Imported(line=line, sample_id=sample_id_of(item), item=item)
        if problems.is_enough:
            break
    problems.raise_if_any()


def _second_header(item: dict[str, object]) -> list[str]:
    return [f"{HEADER_KEY}: stands on the first line only"] if item.get(HEADER_KEY) else []


def _takes_header(item: dict[str, object], line: int, desk: Desk) -> bool:
    try:
        if not is_header(item):
            return False
        header_of(item)
        if slips := header_keys(item).slips:
            raise BadHeader(slips[0])
    except BadHeader as error:
        raise BadInput(f"{desk.place(line)}: {error}") from None
    if desk.is_header_written:
        desk.notes.add("header_left_out", line)
    else:
        desk.header = header_fields(item)
    return True


def reader_of(row: PluginRow) -> Reader:
    """A plug-in's importer as a reader: what it makes of an entry is read as a conversation or as
    an item of a dataset."""

    def read(records: Iterator[Record], desk: Desk) -> Iterator[Imported]:
        for record in records:
            for value in _made_by(row, record, desk):
                reader = READERS["openai" if "messages" in value else "jsonl"]
                yield from reader(iter((Record(record.line, value),)), desk)

    return read


def _made_by(row: PluginRow, record: Record, desk: Desk) -> Iterator[Object]:
    made = row.target(record.value)
    for value in made if isinstance(made, list | tuple) else (made,):
        if value is None:
            desk.notes.add("left_out", record.line, row.name)
        elif not isinstance(value, dict) or not {"messages", "prompt"} & value.keys():
            what = "must return an object with `prompt` or `messages`, a list of these, or None"
            raise PluginError(
                f"{row.home}: the importer {row.name} {what}; of {desk.place(record.line)} it made"
                f" {show_value(value)}"
            )
        else:
            yield value


READERS: dict[Format, Reader] = {
    "openai": reader_of_api("openai"),
    "anthropic": reader_of_api("anthropic"),
    "responses": reader_of_api("responses"),
    "atif": read_atif,
    "claude-code": read_claude_code,
    "codex": read_codex,
    "gemini-cli": read_gemini_cli,
    "mini-swe-agent": read_mini_swe_agent,
    "langchain": read_langchain,
    "sharegpt": read_sharegpt,
    "tau-bench": read_tau_bench,
    "tau2": read_tau2,
    "bfcl": read_bfcl,
    "inspect": read_inspect,
    "otel-genai": read_span_log,
    "openinference": read_span_log,
    "langfuse": read_span_log,
    "openai-agents": read_span_log,
    "jsonl": read_items,
}
# How the first entry of each looks; the first that fits.
SHAPES: tuple[tuple[Format, Callable[[dict[str, Json]], bool]], ...] = (
    ("inspect", lambda entry: isinstance(entry.get("eval"), dict) and "version" in entry),
    ("tau2", lambda entry: "tasks" in entry and "info" in entry),
    ("tau-bench", lambda entry: "traj" in entry),
    ("bfcl", lambda entry: "question" in entry and "id" in entry),
    ("otel-genai", lambda entry: dialect_of(entry) == "otel-genai"),
    ("openinference", lambda entry: dialect_of(entry) == "openinference"),
    ("langfuse", lambda entry: dialect_of(entry) == "langfuse"),
    ("openai-agents", lambda entry: dialect_of(entry) == "openai-agents"),
    ("atif", is_atif),
    ("codex", is_codex),
    ("gemini-cli", is_gemini_cli),
    ("claude-code", is_claude_code),
    ("mini-swe-agent", is_mini_swe_agent),
    ("langchain", is_langchain),
    ("sharegpt", is_sharegpt),
    ("anthropic", is_anthropic),
    ("responses", is_responses),
    ("openai", lambda entry: "messages" in entry or is_chat(entry)),
    ("jsonl", lambda entry: "prompt" in entry or "__header__" in entry),
)
MOST_KEYS = 12  # of an entry that nobody knows
# Formats whose source is one document (or archive): the first record is its frame.
_FRAMED: frozenset[str] = frozenset({"inspect", "tau2"})


# Logs of spans, whichever dialect they speak.
SPAN_FORMATS = frozenset(name for name, reader in READERS.items() if reader is read_span_log)

Take = Callable[[Imported], None]
# What becomes of a conversation: itself, with what is expected of it, or a sample for each step.
Each = Callable[[Imported, Desk], Iterable[Imported]]


class SourceCount(msgspec.Struct, frozen=True, kw_only=True):
    """One file: what it was taken for, how many entries it has, and what became of them."""

    source: str
    format: str
    entries: int
    trials: int


class ImportReport(msgspec.Struct, frozen=True, kw_only=True):
    """What came out, and everything that could not be mapped. `provenance`: which plug-in read it,
    if one did."""

    source: str
    format: str
    counts: ImportCounts
    sources: tuple[SourceCount, ...]
    unmapped: tuple[Unmapped, ...]
    provenance: dict[str, Json] | msgspec.UnsetType = msgspec.UNSET


def import_dataset(  # noqa: PLR0913 - the options of the command
    source: Path | Sequence[str | Path],
    places: ImportPaths,
    *,
    format: str = "auto",  # noqa: A002 - the option's own name
    tools: Path | None = None,
    accepted: Path | None = None,
    added: Sequence[PluginRow] = (),
    choice: Choice = ALL,
    each: Each | None = None,
    hide: Callable[[str], str] | None = None,
) -> ImportReport:
    """`source`: a file, a folder or a pattern, `-` for standard input, or several of these.
    `format`: one of CHOICES, or the name of one of `added`, the importers of plug-ins. `tools`:
    a registry for sources that hold no specs. `accepted`: BFCL's file of accepted answers, if it is
    not beside the questions. `choice`: which conversations are taken; `each`: what becomes of
    them; `hide`: takes out of the report's quotations what must not be told."""
    named = [source] if isinstance(source, Path) else list(source)
    with ExitStack() as stack:
        files = list_files(named, stack)
        check_places(places, [file.path for file in files])
        chosen = None
        if choice.sample is not None:
            drawn = StrataSample(choice.sample, choice.seed)
            seen = _Importing(_desk(named[0], tools, accepted), format, added, choice)
            seen.read(files, lambda entry: drawn.see(seen.number, entry))
            chosen = drawn.chosen()
        desk = _desk(named[0], tools, accepted, hide)
        notes, catalogue = desk.notes, desk.tools
        writer = Writer(stack, places, desk, answered=choice.answered)
        importing = _Importing(desk, format, added, choice, chosen)

        def take(entry: Imported) -> None:
            for made in (entry,) if each is None else each(entry, desk):
                writer.add(made)

        importing.read(files, take, writer)
        report = ImportReport(
            source=", ".join(map(str, named)),
            format=", ".join(importing.formats()) or format,
            counts=importing.finish(writer, catalogue),
            sources=tuple(importing.sources),
            unmapped=notes.unmapped(),
            provenance=importing.provenance(),
        )
        if places.report is not None:
            text = msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n"
            stack.enter_context(atomic_writer(places.report)).write(text)
    return report


class _Importing:
    """The files of one import, one after the other."""

    def __init__(
        self,
        desk: Desk,
        asked: str,
        added: Sequence[PluginRow],
        choice: Choice,
        chosen: frozenset[int] | None = None,
    ) -> None:
        """`chosen`: the numbers of the conversations that are taken; None: all."""
        self._desk = desk
        self._asked = asked
        self._added = added
        self._known = NearDuplicates(desk.notes) if choice.dedupe else None
        self._chosen = chosen
        self.number = 0  # of the conversation that is read now
        self._plugins: dict[str, PluginRow] = {}
        self._strangers: list[str] = []
        self._span_files: list[tuple[LogFile, str]] = []
        self.sources: list[SourceCount] = []

    def formats(self) -> list[str]:
        """Each once, in the order in which they came."""
        return list(dict.fromkeys(one.format for one in self.sources))

    def provenance(self) -> dict[str, Json] | msgspec.UnsetType:
        marks: list[Json] = [row.mark() for row in self._plugins.values()]
        return {"plugins": marks} if marks else msgspec.UNSET

    def finish(self, writer: Writer, catalogue: ToolCatalogue) -> ImportCounts:
        if self._strangers and not self.sources:
            raise BadInput(self._strangers[:20])
        return writer.finish(catalogue, ", ".join(one.source for one in self.sources[:3]))

    def read(self, files: Sequence[LogFile], take: Take, writer: Writer | None = None) -> None:
        """All of them; those of spans last and as one, for a trace may lie in several files."""
        for file in files:
            self._desk.turn_to(file.path, None if len(files) == 1 else file.name)
            before = 0 if writer is None else writer.trials
            try:
                found = self._read(file, take, len(files) == 1)
            except (BadInput, UsageError) as error:
                if file.name == str(file.path):
                    raise
                shown = str(error).replace(str(file.path), file.name)
                raise BadInput(shown.splitlines()) from None
            if found is not None and writer is not None:
                self.sources.append(msgspec.structs.replace(found, trials=writer.trials - before))
        if self._span_files:
            self._read_spans(take, writer)

    def _read(self, file: LogFile, take: Take, is_only: bool) -> SourceCount | None:
        try:
            container, first, records = _open(file.path, self._asked)
            plugin = _plugin(self._asked, first, self._added)
            chosen: str = (
                plugin.name if plugin else _format(self._asked, first, file.path, self._added)
            )
        except (BadInput, UsageError) as error:
            if not file.found:
                raise
            # A folder may hold anything; what is no log is counted, and said.
            self._strangers.append(str(error))
            self._desk.notes.add("not_a_log", 0, str(error).removeprefix(f"{file.path}: "))
            return None
        _check_container(chosen, container, file.path)
        if chosen in SPAN_FORMATS and not is_only:
            self._span_files.append((file, chosen))
            return None
        reader = reader_of(plugin) if plugin else READERS[cast("Format", chosen)]
        if plugin is not None:
            self._plugins[plugin.name] = plugin
        entries = 0

        def counted() -> Iterator[Record]:
            nonlocal entries
            for record in chain((first,), records):
                entries += 1
                yield record

        for entry in reader(counted(), self._desk):
            if self._is_taken(entry):
                take(entry)
        met = chosen if plugin else ", ".join(self._desk.met) or chosen
        return SourceCount(source=file.name, format=met, entries=entries, trials=0)

    def _read_spans(self, take: Take, writer: Writer | None) -> None:
        """A conversation counts for the file where it begins."""
        files = [file for file, _ in self._span_files]
        entries, trials = Counter[str](), Counter[str]()
        met: dict[str, dict[str, None]] = {file.name: {} for file in files}

        def joined() -> Iterator[Record]:
            start = 0
            for file in files:
                self._desk.notes.join(file.name, start)
                last = 0
                for line, value in records_of(file.path, container_of(file.path)):
                    entries[file.name] += 1
                    last = line
                    yield Record(start + line, value)
                start += last + 1

        for entry in read_span_log(joined(), self._desk):
            if not self._is_taken(entry):
                continue
            before = 0 if writer is None else writer.trials
            take(entry)
            name = str(self._desk.notes.locate(entry.line)[0])
            trials[name] += 0 if writer is None else writer.trials - before
            about = want_object(want_object(entry.item["metadata"]).get("imported_from"))
            met[name][str(about.get("format"))] = None
        self.sources += [
            SourceCount(
                source=file.name,
                format=", ".join(met[file.name]) or chosen,
                entries=entries[file.name],
                trials=trials[file.name],
            )
            for file, chosen in self._span_files
        ]

    def _is_taken(self, entry: Imported) -> bool:
        if self._known is not None and not self._known.is_new(entry):
            return False
        self.number += 1
        if self._chosen is None or self.number in self._chosen:
            return True
        self._desk.notes.add("not_sampled", entry.line, entry.sample_id)
        return False


def _desk(
    source: str | Path,
    tools: Path | None,
    accepted: Path | None,
    hide: Callable[[str], str] | None = None,
) -> Desk:
    notes = Notes(hide)
    return Desk(Path(source), ToolCatalogue(notes, _specs(tools)), notes, accepted)


def recognise(path: Path, added: Sequence[PluginRow] = ()) -> str | None:
    """The format of a file by its first entry; None: no known one."""
    _, first, _ = _open(path, "auto")
    plugin = _plugin("auto", first, added)
    try:
        return plugin.name if plugin else _format("auto", first, path, added)
    except UsageError:
        return None


def _open(path: Path, asked: str) -> tuple[Container, Record, Iterator[Record]]:
    container = container_of(path)
    if asked == "parquet" and container != "table":
        raise BadInput(f"{path}: is not a Parquet file; try --format auto")
    records = records_of(path, container)
    first = next(records, None)
    if first is None:
        raise BadInput(f"{path}: is empty")
    return container, first, records


def _plugin(asked: str, first: Record, added: Sequence[PluginRow]) -> PluginRow | None:
    """The importer that was named, or the first that knows the source by its first entry."""
    for row in added:
        if row.name in CHOICES:
            raise UsageError(f"{row.home}: importer {row.name!r}: is a format of callmark's own")
        recognises = cast("Callable[[Json], bool] | None", row.given["recognise"])
        if row.name == asked:
            return row
        may_be = asked == "auto" and isinstance(first.value, dict)
        if may_be and recognises is not None and recognises(first.value):
            return row
    return None


def _format(asked: str, first: Record, source: Path, added: Sequence[PluginRow]) -> Format:
    if asked not in ("auto", "parquet"):
        return next(name for name in READERS if name == asked)
    # A list is a conversation without anything around it.
    entry = {"messages": first.value} if isinstance(first.value, list) else first.value
    if isinstance(entry, dict):
        for name, fits in SHAPES:
            if fits(entry):
                return name
    known = ", ".join((*READERS, *(row.name for row in added)))
    raise UsageError(
        f"{source}: its first entry is {_describe(first.value)}. It looks like none of {known}. If"
        " it is one of them, say so with --format; what else there is, a function of yours reads"
        " (--plugin)"
    )


def _describe(value: Json) -> str:
    """What an entry of no known kind looks like."""
    if not isinstance(value, dict):
        return show_value(value)
    if not value:
        return "an object without any key"
    keys = ", ".join(sorted(value)[:MOST_KEYS])
    more = f" and {len(value) - MOST_KEYS} more" if len(value) > MOST_KEYS else ""
    return f"an object with the keys {keys}{more}: {show_value(value)}"


def _check_container(chosen: str, container: Container, source: Path) -> None:
    is_framed = container in ("document", "archive", "folder")
    if (chosen in _FRAMED) != is_framed and (chosen in _FRAMED or container != "document"):
        wanted = "one JSON document" if chosen in _FRAMED else "JSON lines"
        raise BadInput(f"{source}: {chosen} is read from {wanted}, and this is none")


def _specs(path: Path | None) -> Iterator[dict[str, Json]]:
    if path is None:
        return iter(())
    file = load_registry_file(path)
    registry = Registry.from_specs(file.specs, where=str(path), locate=file.locate)
    return iter([spec.function for spec in registry.specs])
