"""The registry that an import builds: the specs of a source, one tool per name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

import msgspec

from callmark.calls.registry import Registry
from callmark.errors import BadInput
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    digest,
    parse_json,
    want_text,
    want_texts,
)

Kind = Literal[
    "accepted_answer_breaks_schema",
    "assertion",
    "bad_tool",
    "call_of_unknown_tool",
    "call_without_result",
    "duplicate",
    "empty_turn",
    "failed_trial",
    "header_left_out",
    "id_taken",
    "left_out",
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
    "other_prompt_in_trial",
    "other_result_in_trial",
    "result_too_deep",
    "result_without_call",
    "said_at_the_end",
    "script_cut",
    "step_left_out",
    "too_many_alternatives",
    "tool_renamed",
    "tool_without_schema",
    "unknown_type",
    "user_call",
]
MEANING: dict[Kind, str] = {
    "accepted_answer_breaks_schema": "the accepted call does not pass its own tool's schema",
    "assertion": "an assertion on the environment or for a judge: not checked here",
    "bad_tool": "the tool's spec cannot be used as it is: any arguments pass, or it is left out",
    "call_of_unknown_tool": "the call names a tool that was not offered: no fixture",
    "call_without_result": "nothing answered the call: no fixture",
    "duplicate": "the same conversation again: left out",
    "empty_turn": "the model neither said nor called anything: no step",
    "failed_trial": "the trial failed there: an answer with status error",
    "header_left_out": "a further dataset has a header of its own: the first one stays",
    "id_taken": "another file has this id for something else: the file's name stands before it",
    "left_out": "the importer of a plug-in made nothing of it",
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
    "other_prompt_in_trial": "a further trial was asked something else: the first prompt stays",
    "other_result_in_trial": "a further trial got another result for a call: the first one stays",
    "result_too_deep": "the result is nested deeper than a fixture may be: no fixture",
    "result_without_call": "a tool message that answers no structured call: no fixture",
    "said_at_the_end": "said after the model's last turn: kept in the answers only",
    "script_cut": "the user spoke out of turn: user_turns ends before that",
    "step_left_out": "the steps of one conversation would take more than 64 MB: left out",
    "too_many_alternatives": "more combinations of accepted values than are kept",
    "tool_renamed": "another tool of this name was there already: it got a name of its own",
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
    """Collects while the source is read. `source`: the file that is read now, if there are more."""

    def __init__(self) -> None:
        self.source: str | msgspec.UnsetType = msgspec.UNSET
        self._counts: dict[Kind, int] = {}
        self._places: dict[Kind, list[SourcePlace]] = {}

    def add(self, kind: Kind, line: int, detail: str = "") -> None:
        self._counts[kind] = self._counts.get(kind, 0) + 1
        places = self._places.setdefault(kind, [])
        if len(places) < MAX_LISTED:
            text = " ".join(detail.split())
            shown = text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
            places.append(SourcePlace(line, shown, self.source))

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


class SourceOffer(msgspec.Struct, frozen=True):
    """What one sample is offered. `names`: from the source's names to the registry's; `listed`
    None: the source does not say, so the whole registry is offered."""

    names: Mapping[str, str]
    registry: Registry
    listed: tuple[str, ...] | None


class ToolCatalogue:
    """The same name with the same spec is one tool; with another spec it is another tool, and
    gets a name of its own: `area`, `area__2`, `area__3`."""

    def __init__(self, notes: Notes, given: Iterable[Spec] = ()) -> None:
        self._notes = notes
        self._specs: dict[str, Spec] = {}
        self._known: dict[tuple[str, str], str] = {}
        self._offers: dict[str, SourceOffer] = {}
        self._registries: dict[tuple[str, ...], Registry] = {}
        for spec in given:
            self._named(spec, line=0)
        self._given = bool(self._specs)

    @property
    def specs(self) -> list[Spec]:
        return [self._specs[name] for name in sorted(self._specs)]

    def specs_of(self, names: Iterable[str]) -> list[Spec]:
        return [self._specs[name] for name in names if name in self._specs]

    def registry_of(self, listed: Json) -> Registry:
        """The tools of these names; None: all that there are so far."""
        names = tuple(sorted(self._specs)) if listed is None else want_texts(listed)
        if names not in self._registries:
            if len(self._registries) == REMEMBERED:
                self._registries.clear()
            specs = self.specs_of(names)
            self._registries[names] = Registry.from_specs(specs, where="the tools of the source")
        return self._registries[names]

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

    def called(self, names: Iterable[str], line: int) -> SourceOffer:
        """Where the source lists no tools: those that are called, with or without a spec."""
        used: dict[str, str] = {}
        for name in names:
            if name not in self._specs:
                self._specs[name] = {"name": name, "description": "", "parameters": _ANYTHING}
                self._notes.add("tool_without_schema", line, name)
            used[name] = name
        specs = self.specs if self._given else [self._specs[name] for name in sorted(used)]
        return SourceOffer(used, Registry.from_specs(specs, where="the tools of the source"), None)

    def _offered(self, tools: Sequence[Json], line: int) -> SourceOffer:
        names: dict[str, str] = {}
        for raw in tools:
            spec = self._usable(raw, line)
            if spec is None:
                continue
            name = want_text(spec["name"])
            if name in names:
                self._notes.add("bad_tool", line, f"{name}: a second tool of this name")
                continue
            names[name] = self._named(spec, line)
        offered = [self._specs[name] for name in names.values()]
        registry = Registry.from_specs(offered, where="the tools of the source")
        return SourceOffer(names, registry, tuple(names.values()))

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
            return {"name": name, "description": "", "parameters": _ANYTHING}
        return spec

    def _named(self, spec: Spec, line: int) -> str:
        name = want_text(spec["name"])
        key = (name, digest(spec))
        if key in self._known:
            return self._known[key]
        own, number = name, 1
        while own in self._specs:
            number += 1
            own = f"{name}__{number}"
        if own != name:
            self._notes.add("tool_renamed", line, f"{name} is {own}")
        self._known[key] = own
        self._specs[own] = {**spec, "name": own}
        return own
