"""What every format works with: the notes, the registry that an import builds (the specs of a
source, one tool per name), and what comes out of one entry."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec

from callmark.calls.registry import Registry, validate_arguments
from callmark.errors import BadInput
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    digest,
    parse_json,
    want_list,
    want_text,
)
from callmark.records.problems import show_value
from callmark.stats.columns import KeyIndex

Kind = Literal[
    "accepted_answer_breaks_schema",
    "assertion",
    "bad_tool",
    "branched",
    "call_of_unknown_tool",
    "call_without_result",
    "call_written_out",
    "compacted",
    "context_step",
    "duplicate",
    "empty_message",
    "empty_turn",
    "ends_without_answer",
    "failed_exchange",
    "failed_trial",
    "header_left_out",
    "hidden_reasoning",
    "history_missing",
    "id_taken",
    "left_out",
    "line_left_out",
    "malformed_call",
    "metadata_kept_apart",
    "multi_turn_question",
    "near_duplicate",
    "no_accepted_answer",
    "no_answer",
    "no_prompt",
    "not_a_log",
    "not_repeatable",
    "not_sampled",
    "not_text",
    "nothing_observed",
    "other_branch",
    "other_choice",
    "other_instructions",
    "other_prompt_in_trial",
    "other_result_in_trial",
    "other_span",
    "other_tools_in_trial",
    "part_left_out",
    "prompt_not_recorded",
    "provider_tool",
    "recorded_twice",
    "result_too_deep",
    "result_without_call",
    "said_at_the_end",
    "script_cut",
    "session_renamed",
    "span_error",
    "span_merged",
    "span_without_content",
    "span_without_id",
    "step_left_out",
    "structure_span",
    "sub_agent",
    "text_not_recorded",
    "too_many_alternatives",
    "tool_brought_along",
    "tool_span_without_call",
    "tool_without_schema",
    "unknown_type",
    "user_call",
]
MEANING: dict[Kind, str] = {
    "accepted_answer_breaks_schema": "the accepted call does not pass its own tool's schema",
    "assertion": "an assertion on the environment or for a judge: not checked here",
    "bad_tool": "the tool's spec cannot be used as it is: any arguments pass, or it is left out",
    "branched": "the conversation went on in two ways: what came before is in both samples",
    "call_of_unknown_tool": "the call names a tool that was not offered: no fixture",
    "call_without_result": "nothing answered the call: no fixture",
    "call_written_out": "a call that the program wrote out beside the model's text: left out",
    "compacted": "the history was summarised there: the conversation goes on with the summary",
    "context_step": "repeated from an earlier conversation: kept in the prompt only",
    "duplicate": "the same conversation again: left out",
    "empty_message": "a message that says nothing: kept as it is",
    "empty_turn": "the model neither said nor called anything: no step",
    "ends_without_answer": "nothing is said after the last result: --accept leaves it observed",
    "failed_exchange": "the model gave no answer there, but an error",
    "failed_trial": "the trial failed there: an answer with status error",
    "header_left_out": "a further dataset has a header of its own: the first one stays",
    "hidden_reasoning": "reasoning that is encrypted or redacted: left out",
    "history_missing": "goes on from an answer that is not in the source: begins there",
    "id_taken": "another file has this id for something else: the file's name is before it",
    "left_out": "the importer of a plug-in made nothing of it",
    "line_left_out": "no part of the conversation, such as a setting or a counter: left out",
    "malformed_call": "the call cannot be read: it stays in the answers, no fixture",
    "metadata_kept_apart": "the metadata do not fit ours: kept below imported_from",
    "multi_turn_question": "several turns with calls as program text: left out",
    "near_duplicate": "nearly the same conversation as an earlier one: left out (--dedupe)",
    "no_accepted_answer": "no accepted answer is given: a sample that expects nothing",
    "no_answer": "the model said nothing in it: not scored",
    "no_prompt": "nothing is asked: left out",
    "not_a_log": "a file of no known kind: left out",
    "not_repeatable": "its own recording does not keep what was observed: nothing is expected",
    "not_sampled": "not among those that were drawn (--sample)",
    "not_text": "content that is not text: kept in the answers, not in the script",
    "nothing_observed": "no answer is recorded: nothing is expected, no step",
    "other_branch": "goes on from an earlier place of a conversation: a sample of its own",
    "other_choice": "further answers to the same question: the first one stays",
    "other_instructions": "the system message changed on the way: the first one stays",
    "other_prompt_in_trial": "a further trial was asked something else: the first prompt stays",
    "other_result_in_trial": "a further trial got another result for a call: the first one stays",
    "other_span": "a span of another kind (retrieval, embedding, guardrail): left out",
    "other_tools_in_trial": "a further trial had other tools: what they answered is left out",
    "part_left_out": "a part of a message that is neither text, call nor result: left out",
    "prompt_not_recorded": "the source does not say what was asked: the prompt says so",
    "provider_tool": "the model's provider ran a tool of its own: what it did is left out",
    "recorded_twice": "the same message, call or result again: taken once",
    "result_too_deep": "the result is nested deeper than a fixture may be: no fixture",
    "result_without_call": "a tool message that answers no structured call: no fixture",
    "said_at_the_end": "said after the model's last turn: kept in the answers only",
    "script_cut": "the user spoke out of turn: user_turns ends before that",
    "session_renamed": "another session of this name was there already: it got a name of its own",
    "span_error": "a span ended in an error: kept below imported_from, or with the result",
    "span_merged": "a second span of a call that another one tells: it is one call",
    "span_without_content": "a model's call that says neither its prompt nor its answer: left out",
    "span_without_id": "a span without an id or a trace: it got a name by its line",
    "step_left_out": "the steps of one conversation would take more than 64 MB: left out",
    "structure_span": "a span of an agent or a chain: it says what belongs together, no more",
    "sub_agent": "the conversation of a sub-agent: a sample of its own, which names its parent",
    "text_not_recorded": "calls are there, the model's text is not: its turns are empty",
    "too_many_alternatives": "more combinations of accepted values than are kept",
    "tool_brought_along": "another tool of this name is in the registry: the sample has its spec",
    "tool_span_without_call": "a tool ran that no structured call asked for (code does): left out",
    "tool_without_schema": "the source has no spec of this tool: any arguments pass",
    "unknown_type": "a type that is not JSON Schema's: any value passes",
    "user_call": "a call that the simulated user made: left out",
}
MAX_LISTED = 10_000  # of one kind; all of them are counted
_SHOWN = 200


class SourcePlace(msgspec.Struct, frozen=True):
    """`line` of the source; of an archive or a table the number of the sample; 0: all of it.
    `source` is there if several files were read."""

    line: int
    detail: str
    source: str | msgspec.UnsetType = msgspec.UNSET


class Unmapped(msgspec.Struct, frozen=True):
    """One kind of thing, how often, and where (the first ten thousand)."""

    kind: str
    meaning: str
    count: int
    places: tuple[SourcePlace, ...]


class Notes:
    """Collects while the source is read. `source`: the file that is read now, if there are more;
    `hide`: what a detail goes through before it is cut and kept."""

    def __init__(self, hide: Callable[[str], str] | None = None) -> None:
        self._hide = hide
        self.source: str | msgspec.UnsetType = msgspec.UNSET
        self._parts: list[tuple[int, str]] = []
        self._counts: dict[Kind, int] = {}
        self._places: dict[Kind, list[SourcePlace]] = {}

    def add(self, kind: Kind, line: int, detail: str = "") -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        places = self._places.setdefault(kind, [])
        if len(places) < MAX_LISTED:
            text = " ".join((self._hide(detail) if self._hide and detail else detail).split())
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            source, own = self.locate(line)
            places.append(SourcePlace(own, shown, source))

    def join(self, source: str, start: int) -> None:
        """A further file of several that are read as one: its lines are counted from `start`."""
        self._parts.append((start, source))

    def locate(self, line: int) -> tuple[str | msgspec.UnsetType, int]:
        """The file, and the line of that file."""
        if not self._parts:
            return self.source, line
        start, source = self._parts[bisect_right(self._parts, line, key=itemgetter(0)) - 1]
        return source, line - start

    def unmapped(self) -> tuple[Unmapped, ...]:
        return tuple(
            Unmapped(kind, MEANING[kind], self._counts[kind], tuple(self._places[kind]))
            for kind in get_args(Kind)
            if kind in self._counts
        )


Spec = dict[str, Json]

REMEMBERED = 1024  # different offers; most sources have a handful
_OTHER_NAMES_OF_PARAMETERS = ("inputSchema", "input_schema")
_ANYTHING: Spec = {"type": "object"}


def name_of_spec(spec: Json) -> Json:
    """Of a tool as a source lists it."""
    function = spec.get("function") if isinstance(spec, dict) else None
    holder = function if isinstance(function, dict) else spec
    return holder.get("name") if isinstance(holder, dict) else None


def spec_of_name(name: str) -> Spec:
    """A tool of which only the name is known takes anything."""
    return {"name": name, "description": "", "parameters": _ANYTHING}


class SourceOffer(msgspec.Struct, frozen=True):
    """What one sample is offered: names, or specs where the registry has another tool of that
    name. `listed` None: the source does not say, so the whole registry is offered."""

    registry: Registry
    listed: tuple[Json, ...] | None


class ToolCatalogue:
    """The same name with the same spec is one tool, and stands in the registry. With another spec
    it is another tool: whoever is offered that one brings its spec along."""

    def __init__(self, notes: Notes, given: Iterable[Spec] = ()) -> None:
        self._notes = notes
        self._specs: dict[str, Spec] = {}
        self._digests: dict[str, str] = {}
        self._offers: dict[str, SourceOffer] = {}
        self._registries: dict[str, Registry] = {}
        for spec in given:
            self._listed(spec, line=0)
        self._given = bool(self._specs)

    @property
    def specs(self) -> list[Spec]:
        return [self._specs[name] for name in sorted(self._specs)]

    def specs_of(self, listed: Iterable[Json]) -> list[Spec]:
        """The specs of what a sample lists: names of the registry, or tools of its own."""
        return [
            one if isinstance(one, dict) else self._specs[one]
            for one in listed
            if isinstance(one, dict) or (isinstance(one, str) and one in self._specs)
        ]

    def registry_of(self, listed: Json) -> Registry:
        """What a sample lists; None: all that there are so far."""
        named = [*sorted(self._specs)] if listed is None else list(want_list(listed))
        key = digest(named)
        if key not in self._registries:
            if len(self._registries) == REMEMBERED:
                self._registries.clear()
            specs = self.specs_of(named)
            self._registries[key] = Registry.from_specs(specs, where="the tools of the source")
        return self._registries[key]

    def registry(self) -> Registry:
        return Registry.from_specs(self.specs, where="the tools of the source")

    def offer(self, tools: Sequence[Json], line: int) -> SourceOffer:
        """The tools that one entry of the source lists."""
        key = digest(list(tools))
        found = self._offers.get(key)
        if found is None:
            if len(self._offers) == REMEMBERED:
                self._offers.clear()
            found = self._offers[key] = self._offered(tools, line)
        return found

    def called(self, calls: Iterable[tuple[str, Json]], line: int) -> SourceOffer:
        """Where the source lists no tools: those that are called, with or without a spec. What does
        not fit the spec of that name, which another conversation brought, is another tool."""
        made: dict[str, list[Json]] = {}
        for name, arguments in calls:
            made.setdefault(name, []).append(arguments)
        own: dict[str, Json] = {}
        for name, all_arguments in made.items():
            known = self._specs.get(name)
            if known is None:
                spec = spec_of_name(name)
                self._specs[name], self._digests[name] = spec, digest(spec)
                self._notes.add("tool_without_schema", line, name)
            elif not self._given and any(
                isinstance(one, dict) and validate_arguments(known, one) for one in all_arguments
            ):
                own[name] = spec_of_name(name)
                self._notes.add("tool_without_schema", line, name)
                self._notes.add("tool_brought_along", line, name)
        listed = tuple(own.get(name, name) for name in sorted(made))
        specs = self.specs if self._given else self.specs_of(listed)
        registry = Registry.from_specs(specs, where="the tools of the source")
        return SourceOffer(registry, listed if own else None)

    def _offered(self, tools: Sequence[Json], line: int) -> SourceOffer:
        offered: dict[str, Spec] = {}
        for raw in tools:
            spec = self._usable(raw, line)
            if spec is None:
                continue
            name = want_text(spec["name"])
            if name in offered:
                self._notes.add("bad_tool", line, f"{name}: a second tool of this name")
                continue
            offered[name] = spec
        listed = tuple(self._listed(spec, line) for spec in offered.values())
        specs = list(offered.values())
        return SourceOffer(Registry.from_specs(specs, where="the tools of the source"), listed)

    def _usable(self, raw: Json, line: int) -> Spec | None:
        """The spec as a registry takes it, or the nearest that it takes."""
        inner = raw.get("function") if isinstance(raw, dict) else None
        function = inner if isinstance(inner, dict) else raw
        name = function.get("name") if isinstance(function, dict) else None
        if not isinstance(function, dict) or not isinstance(name, str) or not name.strip():
            self._notes.add("bad_tool", line, "a tool without a name")
            return None
        spec = {key: value for key, value in function.items() if value is not None}
        for other in _OTHER_NAMES_OF_PARAMETERS:
            if other in spec:
                spec.setdefault("parameters", spec[other])
                del spec[other]
        try:
            Registry.from_specs([spec], where="tools")
            parse_json(canonical_json([spec]))  # as deep as a file of specs may be
        except (BadInput, NotJson) as error:
            self._notes.add("bad_tool", line, str(error).removeprefix("tools: tool 1: "))
            return spec_of_name(name)
        return spec

    def _listed(self, spec: Spec, line: int) -> Json:
        """How a sample names this tool: by its name, or with its spec."""
        name, own = want_text(spec["name"]), digest(spec)
        if self._digests.setdefault(name, own) != own:
            self._notes.add("tool_brought_along", line, name)
            return spec
        self._specs.setdefault(name, spec)
        return name


Object = dict[str, Json]


class Record(NamedTuple):
    """One entry of a source. `line` is where it begins; of an archive or a table its number."""

    line: int
    value: Json


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """One sample, or a further trial of one. `named`: the source itself gave the id. `fixtures`
    come with the normalised call that each of them answers."""

    line: int
    sample_id: str
    item: Object
    trial: int = 0
    named: bool = True
    answer: Object | None = None
    fixtures: tuple[tuple[str, Object], ...] = ()


class Desk:
    """One import while it goes on. `source`: the file that is read now; `header`: fields that it
    gives its own dataset."""

    def __init__(
        self, source: Path, tools: ToolCatalogue, notes: Notes, accepted: Path | None = None
    ) -> None:
        self.source = source
        self.tools = tools
        self.notes = notes
        self.accepted = accepted
        self.header: Object = {}
        self._sessions = KeyIndex(numbers_only=True)
        self._names = KeyIndex(numbers_only=True)
        self._again: dict[str, int] = {}  # names that several sessions have, and how many of them
        self.is_header_written = False
        self.met: dict[str, None] = {}  # what its entries turned out to be, where they may differ
        self.file = 0  # its number; two files may hold one id

    def name_session(self, wanted: str, content: str) -> str | None:
        """A name that no other session has; None: one with this name and content was there.
        `content`: a hash of it."""
        if not _is_new(self._sessions, f"{content} {wanted}"):
            return None
        name = wanted
        while not _is_new(self._names, name):
            self._again[wanted] = self._again.get(wanted, 1) + 1
            name = f"{wanted}-{self._again[wanted]}"
        return name

    def turn_to(self, source: Path, name: str | None) -> None:
        """The next file. `name`: how notes call it; None: it is the only one."""
        self.source = source
        self.file += 1
        self.met = {}
        if name is not None:
            self.notes.source = name

    def objects_in(self, value: Json, line: int, what: str) -> list[Object]:
        """The objects of a list that should hold nothing else: what else it holds is counted."""
        found: list[Object] = []
        for one in value if isinstance(value, list) else () if value is None else (value,):
            if isinstance(one, dict) and isinstance(value, list):
                found.append(one)
            else:
                self.notes.add("part_left_out", line, f"{what}: {show_value(one)}")
        return found

    def meet(self, format_name: str) -> None:
        """An entry of this format; a file may hold several."""
        self.met[format_name] = None

    def place(self, line: int) -> str:
        source, own = self.notes.locate(line)
        return f"{self.source if source is msgspec.UNSET else source}:{own}"


def _is_new(index: KeyIndex, key: str) -> bool:
    before = len(index)
    index.setdefault(key, 0)
    return len(index) > before


Reader = Callable[[Iterator[Record], Desk], Iterator[Imported]]
