"""Tools that are no longer what they were when recorded, and which samples that touches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal

import msgspec

from callmark.broker.broker import ToolBroker
from callmark.calls.registry import Registry, ToolSpec
from callmark.records.jsontext import Json, canonical_json, parse_json
from callmark.records.problems import quote_name, show_value
from callmark.records.samples import Sample, brought_tools

# `vanished`: there is no such tool any more. `changed`: it takes other arguments. `described`: only
# what a model is told of it is another. `unknown`: nobody says what it was.
Change = Literal["vanished", "changed", "described", "unknown"]
MAX_LISTED = 20


class RefusedCall(msgspec.Struct, frozen=True):
    """A recorded or expected call that the tool as it is now would refuse. `place`: the fixture's
    file and line, or the sample that expects it."""

    place: str
    why: str


class ToolChange(msgspec.Struct, frozen=True, kw_only=True):
    """`samples`: those that expect a call of the tool, bring its spec along, or have fixtures of
    their own for it; only those whose spec is no longer the tool's."""

    tool: str
    change: Change
    differences: tuple[str, ...]
    fixtures: int
    samples: tuple[str, ...]
    refused: tuple[RefusedCall, ...]  # the first MAX_LISTED
    refused_count: int


class ToolChanges(msgspec.Struct, frozen=True, kw_only=True):
    """`compared`: tools whose answers were recorded or are expected. `added`: tools that nobody
    has recorded."""

    compared: int
    changes: tuple[ToolChange, ...]
    added: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """A tool that is only described otherwise still answers as it did, and one that nothing was
        recorded of and nobody calls is not missed."""
        return not any(
            one.change != "described" and (one.fixtures or one.samples) for one in self.changes
        )


def find_changes(
    now: Registry, recorded: Registry | None, broker: ToolBroker, samples: Iterable[Sample] = ()
) -> ToolChanges:
    """`now`: the tools as they are; `recorded`: as they were, None if nobody kept that (a sample
    may still bring its own specs along). `broker` answers with `now`."""
    seen: dict[str, _ToolUse] = {}

    def use_of(name: str) -> _ToolUse:
        tool = now.resolve(name) or (recorded and recorded.resolve(name)) or name
        if tool not in seen:
            seen[tool] = _ToolUse(tool, name, now, recorded)
        return seen[tool]

    for spec in () if recorded is None else recorded.specs:
        use_of(spec.name)
    for name, fixtures in sorted(broker.index.by_tool.items()):
        use = use_of(name)
        for fixture in fixtures:
            use.fixtures += 1
            if fixture.sample_id is not None:
                use.samples[fixture.sample_id] = None
            if fixture.match == "exact" and not now.key_rules(use.tool).ignored:
                use.check(fixture.place, parse_json(fixture.key_json))
    for sample in samples:
        _note_sample(sample, use_of)
    changes = [use.change() for _, use in sorted(seen.items())]
    return ToolChanges(
        compared=len(seen),
        changes=tuple(one for one in changes if one is not None),
        added=tuple(sorted(set(now.names) - set(seen))),
    )


def _note_sample(sample: Sample, use_of: Callable[[str], _ToolUse]) -> None:
    expectation, name = sample.expectation, sample.sample_id
    own: Mapping[str, ToolSpec] = {}
    if brought_tools(expectation):
        registry = Registry(()).offering((), expectation.specs)
        own = {spec.name: spec for spec in registry.specs}
    for spec in own.values():
        use_of(spec.name).bring(name, spec)
    for call in expectation.calls:
        use = use_of(call.name)
        if call.name not in own:
            use.samples[name] = None
        if call.arguments is not None:
            use.check(f"sample {name}", call.arguments)


class _ToolUse:
    """What is recorded and expected of one tool."""

    def __init__(self, tool: str, name: str, now: Registry, recorded: Registry | None) -> None:
        """`name`: what it was called when it was recorded, in any spelling."""
        self.tool = tool
        self.fixtures = 0
        self.samples: dict[str, None] = {}  # that go by the recorded spec
        self._registry, self._recorded = now, recorded
        self._was = None if recorded is None else recorded.spec(recorded.resolve(name) or "")
        self._now = now.spec(tool)
        self._brought: dict[str, tuple[ToolSpec, list[str]]] = {}
        self._refused: list[RefusedCall] = []
        self._refused_count = 0

    def bring(self, sample_id: str, spec: ToolSpec) -> None:
        told = canonical_json([spec.description, spec.parameters])
        self._brought.setdefault(told, (spec, []))[1].append(sample_id)

    def check(self, place: str, arguments: Json) -> None:
        if self._now is None:
            return
        errors = self._registry.validate(self.tool, arguments)
        if not errors or self._was_refused(arguments):
            return
        self._refused_count += 1
        if len(self._refused) < MAX_LISTED:
            self._refused.append(RefusedCall(place, "; ".join(errors)))

    def _was_refused(self, arguments: Json) -> bool:
        """Some calls are wrong on purpose, and were so when they were recorded."""
        was, recorded = self._was, self._recorded
        return (
            was is not None
            and recorded is not None
            and bool(recorded.validate(was.name, arguments))
        )

    def change(self) -> ToolChange | None:
        """None: it is what it was, as far as anybody knows."""
        brought = {name for _, names in self._brought.values() for name in names}
        plain = [name for name in self.samples if name not in brought]
        versions = [*self._brought.values()]
        if self._was is not None:
            versions.append((self._was, plain))
        found: Change | None = "unknown" if self._was is None and not versions else None
        touched: list[str] = plain if self._was is None else []
        differences: dict[str, None] = {}
        for spec, names in versions:
            change = "vanished" if self._now is None else _change(spec, self._now)
            if change is not None:
                found = min(found or change, change, key=_WORST_FIRST.index)
                touched = [*touched, *names]
                differences |= dict.fromkeys(_differences(spec, self._now))
        if self._now is None:
            found = "vanished"
        if found is None or (found == "unknown" and not self._refused_count):
            return None
        return ToolChange(
            tool=self.tool,
            change=found,
            differences=tuple(differences)[:MAX_LISTED],
            fixtures=self.fixtures,
            samples=tuple(sorted(set(touched))),
            refused=tuple(self._refused),
            refused_count=self._refused_count,
        )


_WORST_FIRST: tuple[Change, ...] = ("vanished", "changed", "described", "unknown")
# Of a schema: what is told of a value, not what it may be.
_NOTES = frozenset({"description", "title", "examples", "$comment"})


def _change(was: ToolSpec, now: ToolSpec) -> Change | None:
    if canonical_json(_without_notes(was.parameters)) != canonical_json(
        _without_notes(now.parameters)
    ):
        return "changed"
    same = canonical_json(was.parameters) == canonical_json(now.parameters)
    return None if same and was.description == now.description else "described"


def _without_notes(schema: Json, *, is_names: bool = False) -> Json:
    """`is_names`: the keys are names of arguments, one of which may be `title`."""
    if isinstance(schema, list):
        return [_without_notes(one) for one in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: value
        if key in ("enum", "const", "default")
        else _without_notes(value, is_names=key in ("properties", "$defs", "definitions"))
        for key, value in schema.items()
        if is_names or key not in _NOTES
    }


def _differences(was: ToolSpec, now: ToolSpec | None) -> Iterator[str]:
    if now is None:
        return
    if was.description != now.description:
        yield "its description"
    old, new = _arguments(was), _arguments(now)
    for name in sorted(old.keys() | new.keys()):
        yield from _argument_differences(name, old.get(name), new.get(name))
    for key in sorted((was.parameters.keys() | now.parameters.keys()) - _BY_ARGUMENT):
        before, after = was.parameters.get(key), now.parameters.get(key)
        if canonical_json(before) != canonical_json(after):
            yield f"{key} of its arguments: {show_value(before)} is {show_value(after)} now"


_BY_ARGUMENT = frozenset({"properties", "required"})


class _Argument(msgspec.Struct, frozen=True):
    schema: Json
    required: bool


def _arguments(spec: ToolSpec) -> dict[str, _Argument]:
    properties, required = spec.parameters.get("properties"), spec.parameters.get("required")
    needed = frozenset(required if isinstance(required, list) else ())
    named = properties if isinstance(properties, dict) else {}
    return {
        **{name: _Argument(None, True) for name in needed if name not in named},
        **{name: _Argument(schema, name in needed) for name, schema in named.items()},
    }


def _argument_differences(name: str, old: _Argument | None, new: _Argument | None) -> Iterator[str]:
    shown = quote_name(name)
    if old is None or new is None:
        if new is None:
            yield f"{shown}: is gone"
        else:
            yield f"{shown}: is new, and {'required' if new.required else 'optional'}"
        return
    if old.required != new.required:
        yield f"{shown}: is {'required' if new.required else 'optional'} now"
    before, after = old.schema, new.schema
    if not isinstance(before, dict) or not isinstance(after, dict):
        if canonical_json(before) != canonical_json(after):
            yield f"{shown}: {show_value(before)} is {show_value(after)} now"
        return
    for key in sorted(before.keys() | after.keys()):
        if canonical_json(before.get(key)) != canonical_json(after.get(key)):
            yield f"{shown}: {key} was {_shown(before, key)}, is {_shown(after, key)}"


def _shown(schema: Mapping[str, Json], key: str) -> str:
    return show_value(schema[key]) if key in schema else "not given"
