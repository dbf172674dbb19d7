"""Does every fixture answer its call in all the ways in which a runner may write it? And which
tools are no longer what they were when recorded, and which samples does that touch?"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Literal, assert_never

import msgspec

from callmark.broker.broker import BrokerSession, BrokerTally, Steps, ToolBroker
from callmark.broker.fixtures import (
    Contains,
    Fixture,
    Ignore,
    Near,
    OneOf,
    Pattern,
    Regex,
    Rule,
    rule_fits,
)
from callmark.broker.nearest import explain_miss
from callmark.calls.registry import KeyRules, Registry, ToolSpec, rules_without_spec
from callmark.errors import BadInput
from callmark.records.jsontext import Json, canonical_json, parse_json, want_object
from callmark.records.problems import quote_name, show_value
from callmark.records.samples import Sample, brought_tools
from callmark.records.seams import Hit, Miss

ANYTHING = "anything"


def examples_of(fixture: Fixture) -> Iterator[dict[str, Json]]:
    """The likeliest first. None at all where a rule does not tell what would fit it."""
    key = want_object(parse_json(fixture.key_json))
    match fixture.match:
        case "exact":
            yield key
        case "any":
            yield key
            yield {**key, ANYTHING: ANYTHING}
        case Pattern(rules=rules):
            yield from _fitting(key, rules)
        case _:
            assert_never(fixture.match)


def _fitting(
    key: dict[str, Json], rules: tuple[tuple[str, Rule], ...]
) -> Iterator[dict[str, Json]]:
    base = dict(key)
    for name, rule in rules:
        if not rule_fits(rule, base.get(name)):
            value = next(_values_for(rule), None)
            if value is None:
                return
            base[name] = value
    yield base
    # An exact fixture may well take the first one: then another shows that this one is alive.
    for name, rule in rules:
        for value in _values_for(rule):
            yield {**base, name: value}


def _values_for(rule: Rule) -> Iterator[Json]:
    match rule:
        case Ignore():
            values: list[Json] = [ANYTHING]
        case OneOf(values=texts):
            values = [parse_json(text) for text in texts]
        case Contains(text=text):
            values = [text, f"{text} {ANYTHING}"]
        case Regex(pattern=pattern):
            values = [pattern.removeprefix("^").removesuffix("$")]  # many fit themselves
        case Near(target=target, tolerance=tolerance):
            values = [float(target + tolerance / 2)]
        case _:
            assert_never(rule)
    return (value for value in values if value is not None and rule_fits(rule, value))


ODD_SPACES = "\t\u00a0\u3000\n"

# 3 and 3.0 are one key, but a larger number would lose digits, and be another call.
_LARGEST_EXACT_FLOAT = 2**53


class Written(msgspec.Struct, frozen=True):
    """A call as somebody writes it, and the rules of its tool."""

    name: str
    arguments: dict[str, Json]
    rules: KeyRules


# None: this call cannot be written in that way.
Variant = Callable[[Written], Written | None]


def _as_recorded(call: Written) -> Written | None:
    return call


def _upper_case_query(call: Written) -> Written | None:
    return _with_queries(call, _upper)


def _odd_spaces_in_query(call: Written) -> Written | None:
    return _with_queries(call, _spread)


def _null_arguments(call: Written) -> Written | None:
    unused = "unused"
    while unused in call.arguments:
        unused += "_"
    return _with_arguments(call, {**call.arguments, unused: None})


def _ignored_arguments(call: Written) -> Written | None:
    ignored = dict.fromkeys(sorted(call.rules.ignored), "anything")
    return _with_arguments(call, {**call.arguments, **ignored}) if ignored else None


def _defaults_left_out(call: Written) -> Written | None:
    defaults = call.rules.defaults
    kept = {
        name: value
        for name, value in call.arguments.items()
        if name not in defaults or canonical_json(value) != canonical_json(defaults[name])
    }
    return _with_arguments(call, kept) if len(kept) < len(call.arguments) else None


def _numbers_as_floats(call: Written) -> Written | None:
    return _with_leaves(call, _as_float)


def _decomposed_text(call: Written) -> Written | None:
    return _with_leaves(call, _decompose)


def _other_key_order(call: Written) -> Written | None:
    turned = {name: _reorder(call.arguments[name]) for name in reversed(call.arguments)}
    return _with_arguments(call, turned) if repr(turned) != repr(call.arguments) else None


def _underscores_in_name(call: Written) -> Written | None:
    return _rename(call, call.name.replace(".", "_").replace("-", "_"))


def _dots_in_name(call: Written) -> Written | None:
    return _rename(call, call.name.replace("_", ".").replace("-", "."))


VARIANTS: dict[str, Variant] = {
    "as_recorded": _as_recorded,
    "upper_case_query": _upper_case_query,
    "odd_spaces_in_query": _odd_spaces_in_query,
    "null_arguments": _null_arguments,
    "ignored_arguments": _ignored_arguments,
    "defaults_left_out": _defaults_left_out,
    "numbers_as_floats": _numbers_as_floats,
    "decomposed_text": _decomposed_text,
    "other_key_order": _other_key_order,
    "underscores_in_name": _underscores_in_name,
    "dots_in_name": _dots_in_name,
}


def _with_arguments(call: Written, arguments: dict[str, Json]) -> Written:
    return Written(call.name, arguments, call.rules)


def _rename(call: Written, name: str) -> Written | None:
    return None if name == call.name else Written(name, call.arguments, call.rules)


def _with_queries(call: Written, change: Callable[[str], str]) -> Written | None:
    changed = {
        name: change(value)
        for name in sorted(call.rules.folded)
        if isinstance(value := call.arguments.get(name), str)
    }
    return _with_arguments(call, {**call.arguments, **changed}) if changed else None


def _with_leaves(call: Written, change: Callable[[Json], Json]) -> Written | None:
    changed = {name: _deep(value, change) for name, value in call.arguments.items()}
    return _with_arguments(call, changed) if repr(changed) != repr(call.arguments) else None


def _deep(value: Json, change: Callable[[Json], Json]) -> Json:
    if isinstance(value, dict):
        return {name: _deep(inner, change) for name, inner in value.items()}
    if isinstance(value, list):
        return [_deep(inner, change) for inner in value]
    return change(value)


def _reorder(value: Json) -> Json:
    if isinstance(value, dict):
        return {name: _reorder(value[name]) for name in reversed(value)}
    if isinstance(value, list):
        return [_reorder(inner) for inner in value]
    return value


def _upper(text: str) -> str:
    # Only letters that lose nothing by it: the upper case of a dotless ı is the one of i.
    return "".join(
        sign.upper() if sign.upper().casefold() == sign.casefold() else sign for sign in text
    )


def _spread(text: str) -> str:
    return f"{ODD_SPACES}{text.replace(' ', ODD_SPACES)}{ODD_SPACES}"


def _as_float(value: Json) -> Json:
    if not isinstance(value, int) or isinstance(value, bool):
        return value
    return float(value) if abs(value) <= _LARGEST_EXACT_FLOAT else value


def _decompose(value: Json) -> Json:
    return unicodedata.normalize("NFD", value) if isinstance(value, str) else value


FLOOR = 0.95
MAX_FAILURES = 200
EXPECTED = "expected_call"


class HitRate(msgspec.Struct, frozen=True):
    hits: int
    calls: int

    @property
    def share(self) -> float | None:
        return self.hits / self.calls if self.calls else None


class ExpectedUse(msgspec.Struct, frozen=True):
    """A call that a dataset expects of the model in this sample."""

    sample_id: str
    name: str
    arguments: Json


class FailedCall(msgspec.Struct, frozen=True):
    """`place` is the fixture's file and line, or the sample that expects the call."""

    place: str
    variant: str
    name: str
    arguments: Json
    why: str


class FixtureCheck(msgspec.Struct, frozen=True, kw_only=True):
    """`unreachable`: no way of writing its call is answered with this fixture. `unchecked`: no
    call could be made up for it (a regex, and no example of it in the key). `unknown_tools`: a
    registry was given and has no such tool, so that no model is offered it."""

    floor: float
    fixtures: int
    total: HitRate
    by_tool: dict[str, HitRate]
    by_variant: dict[str, HitRate]
    expected: HitRate
    failures: tuple[FailedCall, ...]  # the first MAX_FAILURES
    failed: int
    unreachable: tuple[str, ...]
    unchecked: tuple[str, ...]
    unknown_tools: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """One dead fixture fails the check, however many others there are."""
        rates = [self.total, self.expected] if self.expected.calls else [self.total]
        enough = all(rate.calls and rate.hits >= self.floor * rate.calls for rate in rates)
        return enough and not self.unreachable


def check_fixtures(
    broker: ToolBroker, *, floor: float = FLOOR, expected: Iterable[ExpectedUse] = ()
) -> FixtureCheck:
    """Calls every fixture in all variants, in its own scope and order, and then whatever a
    dataset expects. A hit is an answer with the fixture's own result."""
    counts = _Counts()
    for steps in broker.index.groups():
        _check_group(broker, steps, counts)
    _check_expected(broker, expected, counts)
    registry = broker.registry
    tools = sorted(broker.index.by_tool)
    return FixtureCheck(
        floor=floor,
        fixtures=sum(map(len, broker.index.by_tool.values())),
        total=HitRate(counts.tool_hits.total(), counts.tool_calls.total()),
        by_tool={tool: HitRate(counts.tool_hits[tool], counts.tool_calls[tool]) for tool in tools},
        by_variant={
            variant: HitRate(counts.variant_hits[variant], counts.variant_calls[variant])
            for variant in VARIANTS
        },
        expected=HitRate(counts.variant_hits[EXPECTED], counts.variant_calls[EXPECTED]),
        failures=tuple(counts.failures),
        failed=counts.failed,
        unreachable=tuple(counts.unreachable),
        unchecked=tuple(counts.unchecked),
        unknown_tools=tuple(
            tool for tool in tools if registry is not None and registry.spec(tool) is None
        ),
    )


class _Counts:
    def __init__(self) -> None:
        self.tool_calls: Counter[str] = Counter()
        self.tool_hits: Counter[str] = Counter()
        self.variant_calls: Counter[str] = Counter()
        self.variant_hits: Counter[str] = Counter()
        self.failures: list[FailedCall] = []
        self.failed = 0
        self.unreachable: list[str] = []
        self.unchecked: list[str] = []

    def fail(self, place: str, variant: str, call: Written | ExpectedUse, why: str) -> None:
        self.failed += 1
        if len(self.failures) < MAX_FAILURES:
            self.failures.append(FailedCall(place, variant, call.name, call.arguments, why))


def _check_group(broker: ToolBroker, steps: Steps, counts: _Counts) -> None:
    arguments = _example_for(broker, steps)
    if arguments is None:
        counts.unchecked.extend(step.place for step in steps)
        return
    reached: set[int] = set()
    for variant, call in _write_variants(broker, steps[0].name, arguments):
        session = BrokerSession(broker, steps[0].sample_id, BrokerTally())
        for step in steps:
            why = _why_not(session, call, step)
            counts.tool_calls[step.name] += 1
            counts.variant_calls[variant] += 1
            if why is None:
                counts.tool_hits[step.name] += 1
                counts.variant_hits[variant] += 1
                reached.add(step.seq)
            else:
                counts.fail(step.place, variant, call, why)
    counts.unreachable.extend(step.place for step in steps if step.seq not in reached)


def _check_expected(broker: ToolBroker, expected: Iterable[ExpectedUse], counts: _Counts) -> None:
    for use in expected:
        counts.variant_calls[EXPECTED] += 1
        session = BrokerSession(broker, use.sample_id, BrokerTally())
        answer = _answer(session, use)
        if isinstance(answer, Hit):
            counts.variant_hits[EXPECTED] += 1
            continue
        if isinstance(answer, Miss):
            answer = explain_miss(broker, use.name, use.arguments, use.sample_id).text()
        counts.fail(f"sample {use.sample_id}", EXPECTED, use, answer)


def _example_for(broker: ToolBroker, steps: Steps) -> dict[str, Json] | None:
    """Arguments that these steps answer; else some that they should; None: nobody can tell."""
    first: dict[str, Json] | None = None
    for arguments in examples_of(steps[0]):
        call = broker.normalised(steps[0].name, arguments)
        try:
            found = None if call is None else broker.index.find(call, steps[0].sample_id)
        except BadInput:
            found = None
        if found is not None and found.steps is steps:
            return arguments
        first = arguments if first is None else first
    return first


def _write_variants(
    broker: ToolBroker, name: str, arguments: dict[str, Json]
) -> Iterator[tuple[str, Written]]:
    registry = broker.registry
    rules = rules_without_spec(name) if registry is None else registry.key_rules(name)
    recorded = Written(name, arguments, rules)
    for variant, write in VARIANTS.items():
        call = write(recorded)
        # Another tool may really have the name that this one would be respelt to.
        if call is not None and (call.name == name or not broker.knows(call.name)):
            yield variant, call


def _why_not(session: BrokerSession, call: Written, step: Fixture) -> str | None:
    answer = _answer(session, call)
    match answer:
        case str():
            return answer
        case Miss():
            return "no fixture answers it"
        case Hit(fixture_sha256=used) if used == step.digest.hex():
            return None
        case Hit(result=result):
            own = canonical_json(parse_json(step.result))
            return None if canonical_json(result) == own else "another fixture answers it"
        case _:
            assert_never(answer)


def _answer(session: BrokerSession, call: Written | ExpectedUse) -> Hit | Miss | str:
    """What the session says, or why two fixtures claim this call."""
    try:
        return session.answer(call.name, call.arguments)
    except BadInput as error:
        return str(error)


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
