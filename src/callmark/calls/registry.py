"""The tools that a model may be offered: specs, argument schemas, names and their variants."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

import msgspec

from callmark.calls.attempts import NotPlainError, compose_key, fold_name, fold_query, plain_value
from callmark.calls.schema import (
    CompiledSchema,
    SchemaError,
    argument_errors,
    compile_once,
    keyword_slips,
)
from callmark.errors import BadInput, UsageError
from callmark.records.jsontext import (
    Json,
    Locate,
    PathInJson,
    canonical_json,
    digest,
    encode_sorted,
    parse_json,
    want_object,
    want_text,
)
from callmark.records.problems import KeySet, Problems, did_you_mean, meant_key

X_CALLMARK = "x-callmark"
PARAMETERS, MCP_SCHEMA, ANTHROPIC_SCHEMA = "parameters", "inputSchema", "input_schema"
QUERY_KEYS = frozenset({"q", "query"})
SEARCH_PREFIX = fold_name("web.search")
# For every tool whose name begins so, and on both sides: in the call and in the fixture.
SEARCH_TOP_K = 3


class XCallmark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`x-callmark` of a spec: argument keys that do not count, keys compared without case,
    defaults (null: none), other names of the tool, and keys of its results that are strict. `mcp`
    is what an MCP server says of the tool beside its input schema."""

    ignore: tuple[str, ...] = ()
    casefold: tuple[str, ...] = ()
    default: dict[str, Json] = {}
    aliases: tuple[str, ...] = ()
    strict_keys: tuple[str, ...] | None = None
    mcp: dict[str, Json] = {}


class ToolSpec(msgspec.Struct, frozen=True, kw_only=True):
    """One function. `function` is the whole inner spec as given: it is what is hashed."""

    name: str
    description: str
    parameters: dict[str, Json]
    x_callmark: XCallmark
    function: dict[str, Json]


class KeyRules(msgspec.Struct, frozen=True):
    """How the arguments of one tool become a key; worked out once per tool."""

    folded: frozenset[str]
    ignored: frozenset[str]
    defaults: dict[str, Json]


class Registry:
    """Specs by name. Built once, never changed."""

    __slots__ = (
        "_aliases",
        "_rules",
        "_sets",
        "_specs",
        "_validators",
        "_variants",
        "names",
        "sha256",
    )

    def __init__(self, specs: Iterable[ToolSpec]) -> None:
        ordered = sorted(specs, key=lambda spec: spec.name)
        self._specs = {spec.name: spec for spec in ordered}
        self.names: tuple[str, ...] = tuple(self._specs)
        self.sha256: str = digest({spec.name: spec.function for spec in ordered})
        self._variants = unique_variants((name, name) for name in self.names)
        aliases = [(alias, spec.name) for spec in ordered for alias in spec.x_callmark.aliases]
        # An alias as it is written wins over the folded form of another one.
        self._aliases = {**unique_variants(aliases), **dict(aliases)}
        self._rules = {spec.name: _rules_of(spec) for spec in ordered}
        self._validators: dict[str, CompiledSchema] = {}
        self._sets: dict[str, frozenset[str]] = {}

    @classmethod
    def from_specs(cls, specs: Json, *, where: str, locate: Locate | None = None) -> Registry:
        """From OpenAI-style specs: a list, `{"tools": […]}`, `{name: spec}` or a single spec,
        each plain or wrapped; those of MCP and Anthropic are read as the same. Raises BadInput
        that names every spec that is wrong, by `where` or by what `locate` makes of its path."""
        at = locate or (lambda _: where)
        problems = Problems()
        found: dict[str, ToolSpec] = {}
        paths: dict[str, PathInJson] = {}
        for raw in _raw_specs(specs, at):
            try:
                spec = _tool_spec(raw.spec, raw.key)
            except _SpecError as problem:
                problems.add(at(raw.path), f"{raw.label}: {problem}")
                continue
            if spec.name in found:
                what = f"{spec.name}: a second tool of this name"
                problems.add(at(raw.path), f"{raw.label}: {what}")
            found.setdefault(spec.name, spec)
            paths.setdefault(spec.name, raw.path)
        for name, clash in _alias_clashes(found):
            problems.add(at(paths[name]), f"{name}: {clash}")
        problems.raise_if_any()
        return cls(found.values())

    @property
    def specs(self) -> tuple[ToolSpec, ...]:
        return tuple(self._specs.values())

    def spec(self, name: str) -> ToolSpec | None:
        return self._specs.get(name)

    def resolve(self, name: str) -> str | None:
        """The registry's own spelling: the exact name, else the only one that differs in `.`,
        `_`, `-`, else the tool that has this name as an alias."""
        if name in self._specs:
            return name
        folded = fold_name(name)
        return self._variants.get(folded) or self._aliases.get(name) or self._aliases.get(folded)

    def parameters(self, name: str) -> Json:
        """The schema of a tool's parameters, by any spelling of its name; None: there is none."""
        spec = self._specs.get(self.resolve(name) or "")
        return None if spec is None else spec.parameters

    def spellings(self, names: Collection[str]) -> frozenset[str]:
        """The names together with their aliases: what counts as naming one of these tools."""
        known = [spec for name in names if (spec := self._specs.get(self.resolve(name) or ""))]
        return frozenset(names).union(*(spec.x_callmark.aliases for spec in known))

    def key_rules(self, name: str) -> KeyRules:
        return self._rules.get(name) or rules_without_spec(name)

    def sets(self, name: str) -> frozenset[str]:
        """The arguments of a tool that are lists without an order: `uniqueItems` says so."""
        found = self._sets.get(name)
        if found is None:
            parameters = self.parameters(name)
            kinds = parameters.get("properties") if isinstance(parameters, dict) else None
            found = self._sets[name] = frozenset(
                key
                for key, kind in (kinds.items() if isinstance(kinds, dict) else ())
                if isinstance(kind, dict) and kind.get("uniqueItems") is True
            )
        return found

    def offering(self, names: Collection[str], own: Sequence[str]) -> Registry:
        """The registry as one sample sees it. `own` are specs that it brings along, as JSON: then
        it knows these and the named ones only. Else it is this one, but a tool that is not offered
        and differs from an offered one in `.`, `_`, `-` only does not take calls away from it."""
        if own:
            brought = Registry.from_specs(
                [parse_json(spec) for spec in own], where="metadata.tools"
            )
            named = {self.resolve(name) for name in names if brought.spec(name) is None}
            return Registry([*brought.specs, *(spec for spec in self.specs if spec.name in named)])
        offered = {name for name in names if name in self._specs}
        folded = {fold_name(name) for name in offered}
        hidden = {n for n in self.names if n not in offered and fold_name(n) in folded}
        return Registry(spec for spec in self.specs if spec.name not in hidden) if hidden else self

    def validate(self, name: str, arguments: Json) -> tuple[str, ...]:
        """`path: reason` for everything wrong with the arguments; () if nothing is."""
        validator = self._validators.get(name)
        if validator is None:
            spec = self._specs.get(name)
            if spec is None:
                return (f"/: unknown tool {name}",)
            validator = self._validators[name] = compile_once(spec.parameters)
        return argument_errors(validator, arguments)

    def openai_tools(self, names: Iterable[str]) -> list[dict[str, Json]]:
        """The `tools` of a request, in the order of the names, without our own extension."""
        return [_openai_tool(self._known(name)) for name in names]

    def _known(self, name: str) -> ToolSpec:
        spec = self._specs.get(self.resolve(name) or "")
        if spec is None:
            known = ", ".join(self.names) or "none"
            raise UsageError(f"the registry has no tool {name!r} to offer; it has: {known}")
        return spec


# A list of them, `{"tools": [...]}`, or {name: spec}.
ToolSpecs = Sequence[Mapping[str, Json]] | Mapping[str, Json]


def name_of_tool(tool: Mapping[str, Json]) -> str:
    """The name in a spec as a request holds it."""
    return want_text(want_object(tool["function"])["name"])


def registry_sha256(specs: ToolSpecs) -> str:
    """Hash the specs of tools, as a dataset's header pins them in `tool_registry_sha256`.

    Args:
        specs: OpenAI-style function specs: a list, `{"tools": [...]}`, or `{name: spec}`.

    Returns:
        SHA-256 (hex) of the canonical JSON of `{name: spec}`, a spec being the inner function
        object: neither order nor spelling of the list matters.

    Raises:
        BadInput: a spec that is none, or two of one name.

    >>> import callmark
    >>> spec = {"name": "f", "parameters": {"type": "object"}}
    >>> callmark.registry_sha256([spec]) == callmark.registry_sha256({"f": spec})
    True
    """
    return Registry.from_specs(specs, where="specs").sha256


def validate_arguments(spec: Mapping[str, Json], arguments: Json) -> list[str]:
    """Check the arguments of a call against the schema of its tool.

    Args:
        spec: an OpenAI-style function spec.
        arguments: what the model gave, whatever it is.

    Returns:
        `path: reason` for each way in which they break the schema; an empty list if they do not.

    Raises:
        BadInput: the spec is none, or its schema cannot be used.

    >>> import callmark
    >>> callmark.validate_arguments({"name": "f", "parameters": {"required": ["q"]}}, {})
    ['/: "q" is a required property']
    """
    try:
        function = _function_of(spec)
        return list(argument_errors(compile_once(_parameters_of(function)), arguments))
    except (_SpecError, SchemaError) as problem:
        raise BadInput(f"spec: {problem}") from None


def tool_names(tools: Json) -> frozenset[str]:
    """The names in a list of names or specs, or in any form that a registry is read from."""
    if isinstance(tools, list | tuple | set | frozenset) and all(isinstance(t, str) for t in tools):
        return frozenset(tools)
    names = set()
    for raw in _raw_specs(tools, lambda _: "tools"):
        spec = raw.spec
        try:
            names.add(spec if isinstance(spec, str) else _name_of(_function_of(spec), raw.key))
        except _SpecError as problem:
            raise UsageError(f"tools: {raw.label}: {problem}") from None
    return frozenset(names)


def tool_parameters(tools: Json) -> dict[str, Json]:
    """The schemas of the parameters by folded name, as far as the tools are specs."""
    if isinstance(tools, list | tuple | set | frozenset) and all(isinstance(t, str) for t in tools):
        return {}
    found: dict[str, Json] = {}
    for raw in _raw_specs(tools, lambda _: "tools"):
        if not isinstance(raw.spec, str):
            function = _function_of(raw.spec)
            found[fold_name(_name_of(function, raw.key))] = function.get(_schema_key(function))
    return found


def unique_variants(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Folded spelling → the only target that has it. Two targets: not told apart, so none."""
    targets: dict[str, set[str]] = {}
    for spelling, target in pairs:
        targets.setdefault(fold_name(spelling), set()).add(target)
    return {folded: next(iter(found)) for folded, found in targets.items() if len(found) == 1}


def rules_without_spec(name: str) -> KeyRules:
    """What holds for a tool that the registry does not know."""
    return _SEARCH_RULES if fold_name(name).startswith(SEARCH_PREFIX) else _PLAIN_RULES


_PLAIN_RULES = KeyRules(QUERY_KEYS, frozenset(), {})
_SEARCH_RULES = KeyRules(QUERY_KEYS, frozenset(), {"top_k": SEARCH_TOP_K})
_NO_PARAMETERS: Mapping[str, Json] = MappingProxyType({"type": "object", "properties": {}})


class _SpecError(ValueError):
    """One spec is wrong; the message says which tool and how."""


def _rules_of(spec: ToolSpec) -> KeyRules:
    extension = spec.x_callmark
    folded = QUERY_KEYS | frozenset(extension.casefold)
    ignored = frozenset(extension.ignore)
    properties = spec.parameters.get("properties")
    defaults = dict(rules_without_spec(spec.name).defaults)
    for key, schema in properties.items() if isinstance(properties, dict) else ():
        if isinstance(schema, dict) and "default" in schema:
            defaults.setdefault(key, schema["default"])
    defaults.update(extension.default)
    return KeyRules(
        folded,
        ignored,
        {
            key: fold_query(value)
            if key in folded and isinstance(value, str)
            else plain_value(value)
            for key, value in defaults.items()
            if value is not None and key not in ignored
        },
    )


class _RawSpec(NamedTuple):
    """A spec as it was given. `key`: the name that a mapping gives it."""

    path: PathInJson
    label: str
    key: str | None
    spec: Json


def _raw_specs(specs: Json, locate: Locate) -> Iterator[_RawSpec]:
    above: PathInJson = ()
    match specs:
        case {"tools": list(listed)}:
            above, specs = ("tools",), listed
        case {"name": str()}:
            yield _RawSpec((), "tool 1", None, specs)
            return
        case {"function": dict()} if not _has_other_specs(want_object(specs)):
            yield _RawSpec((), "tool 1", None, specs)
            return
        case dict() if any(
            isinstance(value, str) and meant_key(key, ("name",)) for key, value in specs.items()
        ):
            yield _RawSpec((), "tool 1", None, specs)
            return
        case dict():
            for key, spec in specs.items():
                yield _RawSpec((key,), key if key.strip() else repr(key), key, spec)
            return
    if not isinstance(specs, list | tuple):
        kind = type(specs).__name__
        raise BadInput(f"{locate(())}: expected a list of function specs, not {kind}")
    for at, spec in enumerate(specs):
        yield _RawSpec((*above, at), f"tool {at + 1}", None, spec)


def _has_other_specs(specs: Mapping[str, Json]) -> bool:
    """Whether `function` is the name of a tool beside others, and no wrapper of one."""
    wrapper = ("function", X_CALLMARK)
    return any(isinstance(value, dict) for key, value in specs.items() if key not in wrapper)


def _tool_spec(raw: Json, key: str | None) -> ToolSpec:
    if key is not None and isinstance(raw, list) and meant_key(key, ("tools",)):
        raise _SpecError(did_you_mean("tools"))
    function = _openai_shaped(_function_of(raw))
    for slip in spec_slips(raw):
        raise _SpecError(f"{f'{name}: ' if (name := function.get('name')) else ''}{slip}")
    name = _name_of(function, key)
    _refuse_old_extension(function, name)
    if "name" not in function:
        function = {"name": name, **function}
    description = function.get("description")
    if not isinstance(description, str | None):
        raise _SpecError(f"{name}: description: expected text")
    try:
        canonical_json(function)
        parameters = _parameters_of(function)
        compile_once(parameters)
        extension = msgspec.convert(function.get(X_CALLMARK) or {}, XCallmark)
    except SchemaError as problem:
        raise _SpecError(f"{name}: parameters: {problem}") from None
    except msgspec.ValidationError as problem:
        raise _SpecError(f"{name}: {X_CALLMARK}: {problem}") from None
    except (ValueError, TypeError, RecursionError) as problem:
        raise _SpecError(f"{name}: {problem}") from None
    return ToolSpec(
        name=name,
        description=description or "",
        parameters=parameters,
        x_callmark=extension,
        function=function,
    )


_WRAPPER_KEYS = KeySet(
    known=("type", "function"),
    elsewhere=dict.fromkeys(("description", "parameters", X_CALLMARK), "function"),
)
_SPEC_KEYS = KeySet(
    known=(
        *("name", "description", "parameters", X_CALLMARK, "type", "function", "strict"),
        *("inputSchema", "input_schema", "outputSchema", "output_schema", "title", "annotations"),
    ),
    synonyms={
        **dict.fromkeys(("params", "args", "arguments", "schema", "inputs"), "parameters"),
        **dict.fromkeys(("desc", "doc", "docstring"), "description"),
        **dict.fromkeys(("tool", "toolname", "functionname"), "name"),
        **dict.fromkeys(("callmark", "xcallmark"), X_CALLMARK),
    },
    elsewhere={
        **dict.fromkeys(("properties", "required", "additionalProperties"), "parameters"),
        **dict.fromkeys(XCallmark.__struct_fields__, X_CALLMARK),
    },
)
_EXTENSION_KEYS = KeySet(
    known=XCallmark.__struct_fields__,
    synonyms={
        **dict.fromkeys(("ignored", "ignorekeys"), "ignore"),
        **dict.fromkeys(("caseinsensitive", "ignorecase", "lowercase"), "casefold"),
        **dict.fromkeys(("alsoknownas", "names", "othernames"), "aliases"),
    },
)


def spec_slips(raw: Json) -> Iterator[str]:
    """Keys of a spec that were meant to be others. Whatever else it holds passes to the model."""
    function = _function_of(raw)
    if function is not raw:
        yield from _slips(want_object(raw), _WRAPPER_KEYS)
    yield from _slips(function, _SPEC_KEYS)
    parameters, extension = function.get("parameters"), function.get(X_CALLMARK)
    for slip in keyword_slips(parameters):
        yield f"parameters: {slip}"
    if isinstance(extension, dict):
        for key in extension:
            if key not in _EXTENSION_KEYS.names:
                yield f"{X_CALLMARK}.{key}: {_EXTENSION_KEYS.refusal(key, extension.keys())}"
        yield from _argument_slips(extension, parameters)


def _slips(given: dict[str, Json], keys: KeySet) -> Iterator[str]:
    for key in given:
        slip = None if key in keys.names else keys.slip(key, given.keys())
        if slip is not None:
            yield f"{key}: {slip}"


def _argument_slips(extension: dict[str, Json], parameters: Json) -> Iterator[str]:
    """Arguments that a rule names and the tool does not have, but almost."""
    properties = parameters.get("properties") if isinstance(parameters, dict) else None
    if not isinstance(properties, dict):
        return
    for rule in ("ignore", "casefold", "default"):
        named = extension.get(rule)
        for argument in named if isinstance(named, list | dict) else ():
            if isinstance(argument, str) and argument not in properties:
                meant = meant_key(argument, tuple(properties))
                if meant is not None:
                    yield f"{X_CALLMARK}.{rule}: {argument}: {did_you_mean(meant)}"


def _function_of(raw: Json) -> dict[str, Json]:
    if not isinstance(raw, dict):
        raise _SpecError("a spec must be an object with name, description and parameters")
    if not isinstance(raw.get("function"), dict):
        return raw
    if X_CALLMARK in raw:
        raise _SpecError(f"{X_CALLMARK} belongs inside `function`, where it is hashed")
    inner: dict[str, Json] = raw["function"]
    return inner


def _name_of(function: dict[str, Json], key: str | None) -> str:
    name = function.get("name", key)
    if not isinstance(name, str) or not name.strip():
        raise _SpecError("no name")
    if key is not None and name != key:
        raise _SpecError(f"the spec calls itself {name!r}")
    return name


def _refuse_old_extension(function: Mapping[str, Json], name: str) -> None:
    """Our own extension under another name would be ignored, and every key be another one."""
    ours = set(XCallmark.__struct_fields__)
    for key, value in function.items():
        is_like_ours = isinstance(value, dict) and bool(value) and ours.issuperset(value)
        if is_like_ours and key.startswith("x-") and key != X_CALLMARK:
            raise _SpecError(f"{name}: {key}: has the fields of {X_CALLMARK}: rename it")


def _openai_shaped(function: dict[str, Json]) -> dict[str, Json]:
    """A spec of MCP or of Anthropic in our own spelling, so that one tool has one hash. What else
    an MCP server says of a tool is kept apart: no model is sent it."""
    key = _schema_key(function)
    if key == PARAMETERS:
        return function
    kept = ("name", "description")
    shaped: dict[str, Json] = {name: function[name] for name in kept if name in function}
    shaped[PARAMETERS] = function[key]
    extension = function.get(X_CALLMARK) or {}
    more = {
        name: value for name, value in function.items() if name not in (*shaped, key, X_CALLMARK)
    }
    if more and key == MCP_SCHEMA and isinstance(extension, dict):
        extension = {"mcp": more, **extension}
    return {**shaped, X_CALLMARK: extension} if extension else shaped


def _schema_key(function: Mapping[str, Json]) -> str:
    """Under which name a spec has the schema of its arguments."""
    keys = (PARAMETERS, MCP_SCHEMA, ANTHROPIC_SCHEMA)
    return next((key for key in keys if key in function), PARAMETERS)


def _parameters_of(function: dict[str, Json]) -> dict[str, Json]:
    parameters = function.get(_schema_key(function))
    if parameters is None:
        return dict(_NO_PARAMETERS)
    if not isinstance(parameters, dict):
        raise _SpecError("parameters: expected a JSON Schema object")
    return parameters


def _openai_tool(spec: ToolSpec) -> dict[str, Json]:
    function = {key: value for key, value in spec.function.items() if key != X_CALLMARK}
    function["parameters"] = spec.parameters
    return {"type": "function", "function": function}


def _alias_clashes(specs: Mapping[str, ToolSpec]) -> Iterator[tuple[str, str]]:
    """(tool, what is wrong with one of its aliases)."""
    owners: dict[str, str] = {}
    for name in sorted(specs):
        for alias in specs[name].x_callmark.aliases:
            owner = alias if alias in specs else owners.setdefault(alias, name)
            if owner != name:
                yield name, f"the alias {alias!r} already belongs to {owner}"


class NormalisedCall(msgspec.Struct, frozen=True):
    """`key` may share values with the spec's defaults: read it, do not change it."""

    name: str
    key: dict[str, Json]
    key_json: str


def normalise(
    name: Json, arguments: Json, *, registry: Registry | None, known_names: Collection[str] = ()
) -> NormalisedCall | None:
    """The canonical name and key of a call. None: the name is no text or the arguments are no
    JSON object, so that nothing can ever match it."""
    if not isinstance(name, str) or not isinstance(arguments, dict):
        return None
    canonical = canonical_name(name, registry=registry, known_names=known_names)
    rules = rules_without_spec(canonical) if registry is None else registry.key_rules(canonical)
    folded, ignored = rules.folded, rules.ignored
    key: dict[str, Json] = {}
    try:
        for raw_argument, value in arguments.items():
            if value is None:
                continue
            argument = compose_key(raw_argument)
            if argument in ignored:
                continue
            if argument in folded and isinstance(value, str):
                key[argument] = fold_query(value)
            else:
                key[argument] = plain_value(value)
        for argument, value in rules.defaults.items():
            if argument not in key:
                key[argument] = value
        return NormalisedCall(canonical, key, _canonical_text(key))
    except (NotPlainError, RecursionError):
        return None


def canonical_name(
    name: str, *, registry: Registry | None, known_names: Collection[str] = ()
) -> str:
    """The registry comes first: a fixture that spells a tool's name otherwise still means it."""
    if registry is not None:
        resolved = registry.resolve(name)
        if resolved is not None:
            return resolved
    if not known_names or name in known_names:
        return name
    folded = fold_name(name)
    fitting = {known for known in known_names if fold_name(known) == folded}
    return fitting.pop() if len(fitting) == 1 else name


def _canonical_text(key: dict[str, Json]) -> str:
    try:
        encoded = encode_sorted(key)
        if encoded is None or b"null" in encoded:  # which may be NaN
            return canonical_json(key)
        return encoded.decode()
    except (ValueError, TypeError) as error:
        raise NotPlainError(str(error)) from None
