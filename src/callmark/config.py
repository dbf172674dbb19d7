"""The settings of a run: shipped defaults < header of the dataset < config file < flags."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict, get_type_hints

import msgspec

from callmark.errors import UsageError
from callmark.plugins import add_plugins, added_measures
from callmark.records.jsontext import Json, want_list
from callmark.records.problems import (
    KeySet,
    field_path,
    hint,
    join_or,
    show_value,
    typed_problem,
    word_problem,
    words_of,
)
from callmark.records.report import (
    Quarantine,
    day_problem,
    quarantine_problems,
)
from callmark.records.samples import Header
from callmark.records.statements import Tier, tier_problems
from callmark.resources import config_template, default_config, default_gates
from callmark.store.files import atomic_writer, check_writable
from callmark.store.settings import read_settings
from callmark.store.spending import Price

AUTOMATIC = Path("callmark.yaml")

Source = Literal["default", "header", "config", "flag"]
_Count = Annotated[int, msgspec.Meta(ge=0)]
_Positive = Annotated[int, msgspec.Meta(ge=1)]
_Temperature = Annotated[float, msgspec.Meta(ge=0, le=100)]
_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Amount = Annotated[float, msgspec.Meta(ge=0)]
_Share = Annotated[float, msgspec.Meta(gt=0, le=1)]
_Margin = Annotated[float, msgspec.Meta(gt=0, lt=1)]


class GateLayer(msgspec.Struct, frozen=True):
    """What one source says about gates: {gate: fields}. The shipped layer holds all of them."""

    source: Source
    gates: dict[str, dict[str, Json]]


class RunSettings(TypedDict, total=False):
    """The keys of a `callmark.yaml` as keyword arguments of `callmark.run`: what is left out is as
    shipped. The meaning of each stands in docs/running.md; `in` is `dataset` here. `runner` and
    `plugins` are arguments of their own."""

    model: str | PathLike[str] | None
    dataset: str | PathLike[str] | None
    name: str | None
    out: str | PathLike[str] | None
    report: str | PathLike[str] | None
    html: bool
    fixtures: str | PathLike[str] | None
    registry: str | PathLike[str] | None
    allowlist: str | PathLike[str] | None
    seed: int | None
    temperature: float | None
    top_p: float | None
    max_tokens: int | None
    max_turns: int | None
    tool_choice: str | None
    prompt_wrapper: str | PathLike[str] | None
    response_template: str | PathLike[str] | None
    faults: str | PathLike[str] | None
    system: str | None
    determinism_mode: bool
    base_url: str | None
    api_key: str | None
    headers: Mapping[str, str]
    extra_body: Mapping[str, Json]
    max_connections: int | Literal["auto"]
    request_timeout: float
    sample_timeout: float | None
    max_retries: int
    model_revision: str | None
    prices: Mapping[Price, float]
    adapter: str | PathLike[str] | None
    dtype: Literal["float32", "bfloat16", "float16"]
    device: str
    batch_size: int | Literal["auto"]
    cache: str | PathLike[str] | None
    repeat: int
    parse_text: Literal["auto", "on", "off"]
    span_extractor: Literal["auto", "marker", "claims"]
    integration_span_cap: int
    strict_keys: Sequence[str] | None
    url_allowlist: Sequence[str]
    privacy_echo: Literal["allow", "deny"]
    tiers: Mapping[str, Literal["firm", "advisory"]]
    redact_pii: bool
    miss_reply: str
    max_errors: int | str
    min_eligible_for_gates: int
    fail_on_fingerprint_mismatch: bool
    fail_on_gate_failure: bool
    fail_on_inconclusive: bool
    primary_metrics: Sequence[str]
    margin: float
    num_shards: int
    shard_index: int
    engine: Literal["local", "ray"] | None
    num_cpus: float | None
    num_gpus: float | None
    limit: int | None
    only: Sequence[str]
    slice: Sequence[str]
    failed_from: str | PathLike[str] | None
    resume: bool
    restart: bool
    salvage: bool
    gates: Mapping[str, Mapping[str, Json]]
    quarantine: Mapping[str, Mapping[str, Json]]
    today: str | date | None


class RunConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Every setting of a run. `gates` are layers, lowest first; `sources` knows what was set."""

    runner: str
    model: str | None = None
    dataset: str | None = None
    plugins: tuple[str, ...] = ()
    name: str | None = None
    out: str | None = None
    report: str | None = None
    html: bool = True
    fixtures: str | None
    registry: str | None
    allowlist: str | None
    seed: int | None
    temperature: _Temperature | None
    top_p: _Share | None
    max_tokens: _Positive | None
    max_turns: _Positive | None
    tool_choice: str | None
    prompt_wrapper: str | None
    response_template: str | None = None
    faults: str | None = None
    system: str | None
    determinism_mode: bool
    base_url: str | None
    api_key: str | None
    headers: dict[str, str]
    extra_body: dict[str, Json]
    max_connections: _Positive | Literal["auto"]
    request_timeout: _Seconds
    sample_timeout: _Seconds | None
    max_retries: _Count
    model_revision: str | None
    prices: dict[Price, _Amount] = {}
    adapter: str | None
    dtype: Literal["float32", "bfloat16", "float16"]
    device: str
    batch_size: _Positive | Literal["auto"]
    cache: str | None = None
    repeat: _Positive
    parse_text: Literal["auto", "on", "off"]
    span_extractor: Literal["auto", "marker", "claims"]
    integration_span_cap: _Positive
    strict_keys: tuple[str, ...] | None = None
    url_allowlist: tuple[str, ...]
    privacy_echo: Literal["allow", "deny"]
    tiers: dict[str, Tier] = {}
    redact_pii: bool
    miss_reply: str
    max_errors: _Count | str
    min_eligible_for_gates: _Count
    fail_on_fingerprint_mismatch: bool
    fail_on_gate_failure: bool
    fail_on_inconclusive: bool
    baseline: str | None = None
    primary_metrics: tuple[str, ...]
    margin: _Margin
    num_shards: _Positive
    shard_index: _Count
    engine: Literal["local", "ray"] | None = None
    num_cpus: _Amount | None = None
    num_gpus: _Amount | None = None
    limit: _Positive | None = None
    only: tuple[str, ...] = ()
    slice: tuple[str, ...] = ()
    failed_from: str | None = None
    resume: bool = False
    restart: bool = False
    salvage: bool = False
    dry_run: bool = False
    gates: tuple[GateLayer, ...]
    quarantine: dict[str, Quarantine] = {}
    today: date | None = None
    sources: dict[str, Source] = {}
    places: dict[str, str] = {}  # dotted key -> `file:line` where a file sets it
    config_file: str | None = None

    def source_of(self, field: str) -> Source:
        return self.sources.get(field, "default")

    def errors_allowed(self, trials: int) -> int:
        """How many of so many trials may fail for reasons of infrastructure."""
        return errors_allowed(self.max_errors, trials)

    def judge_quarantine(self) -> dict[str, Quarantine]:
        """Every entry, and whether it has expired. No other clock decides about a report."""
        today = self.today or datetime.now(UTC).date()
        return {
            sample_id: msgspec.structs.replace(entry, expired=entry.until < today)
            for sample_id, entry in self.quarantine.items()
        }


def errors_allowed(max_errors: int | str, trials: int) -> int:
    if isinstance(max_errors, str):
        return int(trials * float(max_errors.removesuffix("%")) / 100)
    return max_errors


# What a dataset's header may say; its gates are a layer of their own.
_HEADER_FIELDS = (
    "integration_span_cap",
    "span_extractor",
    "strict_keys",
    "url_allowlist",
    "privacy_echo",
    "seed",
)
_SPELLINGS = {"in": "dataset"}
_LISTS = frozenset({"only", "plugins", "primary_metrics", "slice", "strict_keys", "url_allowlist"})
_SECRET = frozenset({"api_key", "headers", "extra_body"})  # never shown, not even a wrong one
_TYPES: dict[str, Any] = get_type_hints(RunConfig, include_extras=True)
_SETTABLE = tuple(name for name in _TYPES if name not in ("sources", "places", "config_file"))
_SYNONYMS = {
    **dict.fromkeys(("apibase", "baseuri", "endpoint", "url", "host", "server"), "base_url"),
    **dict.fromkeys(("timeout", "requesttimeoutsec"), "request_timeout"),
    **dict.fromkeys(("retries", "maxtries"), "max_retries"),
    **dict.fromkeys(("concurrency", "parallel", "workers", "threads"), "max_connections"),
    **dict.fromkeys(("temp",), "temperature"),
    **dict.fromkeys(("maxnewtokens", "maxcompletiontokens", "maxoutputtokens"), "max_tokens"),
    **dict.fromkeys(("tools", "toolregistry", "toolspecs"), "registry"),
    **dict.fromkeys(("input", "inputs", "data", "inputfile"), "in"),
    **dict.fromkeys(("output", "outfile", "results", "outputfile"), "out"),
    **dict.fromkeys(("wrapper", "template", "prompttemplate"), "prompt_wrapper"),
    **dict.fromkeys(("systemprompt", "systemmessage"), "system"),
    **dict.fromkeys(("lora", "peft"), "adapter"),
    **dict.fromkeys(("trials", "samples", "runs"), "repeat"),
    **dict.fromkeys(("shards",), "num_shards"),
    **dict.fromkeys(("deterministic",), "determinism_mode"),
    **dict.fromkeys(("revision",), "model_revision"),
    **dict.fromkeys(("backend", "provider"), "runner"),
    **dict.fromkeys(("fixture", "fixturesdir", "fixturesfolder"), "fixtures"),
    **dict.fromkeys(("thresholds", "bounds"), "gates"),
    **dict.fromkeys(("quarantined", "flaky", "muted", "skip"), "quarantine"),
    **dict.fromkeys(("plugin", "extensions", "scorers", "scorer"), "plugins"),
}
_SETTING = re.compile(r"(--|config: |dataset header: )(.*?): (.*)", re.DOTALL)
_HEADER = "the header of the dataset"
_PERCENT = re.compile(r"\d{1,3}(\.\d+)?%")
# Files that a run reads, and the two that it writes: the latter must not be any other.
_READ = ("dataset", "model", "registry", "allowlist", "failed_from", "prompt_wrapper",
         "response_template", "faults", "baseline", "cache")  # fmt: skip
_WRITTEN = ("out", "report")


class _Layer(msgspec.Struct, frozen=True):
    """Raw settings of one source, and the lines on which a file has its keys."""

    source: Source
    values: Mapping[str, Json]
    file: str = ""
    lines: Mapping[tuple[str, ...], int] = {}

    def error(self, path: tuple[str, ...], what: str) -> UsageError:
        match self.source:
            case "flag":
                if path[0] == "gates" and len(path) > 1:
                    return UsageError(f"--gate {'.'.join(path[1:])}: {what}")
                return UsageError(f"--{'.'.join(path).replace('_', '-')}: {what}")
            case "header":
                return UsageError(f"{self.file}: {field_path(path)}: {what}")
        line = self.lines.get(path)
        where = f"{self.file}:{line}" if line else self.file
        return UsageError(f"{where}: {field_path(path)}: {what}")


def load_config(config: Path | None, flags: Mapping[str, Json]) -> RunConfig:
    """`flags`: only those that were given. Without `config`, a `callmark.yaml` in the current
    folder is read if there is one."""
    if config is None and AUTOMATIC.is_file():
        config = AUTOMATIC
    # The shipped file holds every setting and every gate: defaults stand in one place, and
    # readable.
    layers = [_Layer("default", default_config(), "eval.default.yaml")]
    if config is not None:
        settings = read_settings(config)
        layers.append(_Layer("config", settings.values, str(config), settings.lines))
    layers.append(_Layer("flag", flags))
    values: dict[str, Any] = {}  # each of its field's type: see _type
    sources: dict[str, Source] = {}
    for layer in layers:
        for field, value in _fields(layer):
            if field == "plugins":  # those of a flag come on top: the file's gates may need its own
                value = tuple(dict.fromkeys((*values.get(field, ()), *want_list(value))))
            values[field] = value
            sources[field] = layer.source
    _load_plugins(values.get("plugins", ()), layers)
    values["gates"] = tuple(_gate_layers(layers))
    file = None if config is None else str(config)
    places = {
        ".".join(_SPELLINGS.get(key, key) for key in path): f"{layer.file}:{line}"
        for layer in layers
        for path, line in layer.lines.items()
    }
    if sources["runner"] == "default" and values["base_url"] is not None:
        values["runner"] = "openai_http"  # who names a server means it
    made = RunConfig(**values, sources=sources, places=places, config_file=file)
    try:
        return _check(made)
    except UsageError as error:
        raise place_error(made, error) from None


def plain_paths(settings: Mapping[str, Json]) -> dict[str, Json]:
    """Settings as a file would hold them: a path is a text there."""
    return {
        name: fspath(value) if isinstance(value, PathLike) else value
        for name, value in settings.items()
    }


def _load_plugins(files: Iterable[str], layers: Iterable[_Layer]) -> None:
    """Their code runs here, because somebody named them: in a settings file or by a flag."""
    for file in files:
        try:
            add_plugins([file])
        except UsageError as error:
            layer = next(one for one in layers if file in _listed(one.values.get("plugins")))
            what = str(error).removeprefix("--plugin: ")
            if layer.source == "config":
                raise layer.error(("plugins",), what) from error
            raise UsageError(f"--plugin: {what}") from error


def _listed(value: Json) -> list[Json]:
    return [*value] if isinstance(value, list | tuple) else [value]


def place_error(config: RunConfig, error: UsageError) -> UsageError:
    """What is wrong with a setting is said where it stands, if it stands in a file."""
    found = _SETTING.fullmatch(str(error)) if type(error) is UsageError else None
    if found is None:
        return error
    origin, name, what = found.groups()
    field, *below = name.split(".")
    field = field.replace("-", "_") if origin == "--" else field
    key = ".".join((field, *below))
    field = _SPELLINGS.get(field, field)
    if origin == "--" and config.source_of(field) != "config":
        return error
    start = ("header",) if origin.startswith("dataset") else ()
    path = (*start, field, *below)
    known = (config.places.get(".".join(path[:size])) for size in range(len(path), 0, -1))
    place = next(filter(None, known), None)
    return error if place is None else UsageError(f"{place}: {key}: {what}")


def with_header(config: RunConfig, header: Header, where: str = _HEADER) -> RunConfig:
    """The dataset's word on everything that neither the config file nor a flag has set. `where`
    is the place of the header, for messages."""
    given = {
        name: value
        for name in _HEADER_FIELDS
        if config.source_of(name) == "default"
        and (value := getattr(header, name)) not in (None, ())
    }
    shipped, *above = config.gates
    layer = _Layer("header", {"gates": header.gates}, where)
    return msgspec.structs.replace(
        config,
        **given,
        gates=(shipped, *_gate_layers([layer], known=_known_gates(shipped.gates)), *above),
        sources={**config.sources, **dict.fromkeys(given, "header")},
        places={**config.places, "header": where} if header.gates else config.places,
    )


def write_template(path: Path, *, own_tools: bool = False) -> None:
    """A commented `callmark.yaml` to start from. Never overwrites. `own_tools`: those of
    `data/tools.json`, not the built-in ones."""
    if path.exists():
        raise UsageError(f"{path}: exists already, and is left as it is")
    check_writable(path)
    with atomic_writer(path) as file:
        text = config_template()
        file.write((text.replace("# registry: ", "registry: ", 1) if own_tools else text).encode())


def _fields(layer: _Layer) -> Iterator[tuple[str, Json]]:
    known = (*_SETTABLE, *_SPELLINGS) if layer.source != "flag" else _SETTABLE
    for key, value in layer.values.items():
        field = _SPELLINGS.get(key, key)
        if field not in _SETTABLE:
            raise layer.error((str(key),), _keys(known).refusal(str(key), layer.values.keys()))
        if field != key and field in layer.values:
            raise layer.error((key,), f"the same as {field}: give one of them")
        problems_of = {"tiers": tier_problems, "quarantine": quarantine_problems}.get(field)
        for path, what in () if problems_of is None else problems_of(value):
            raise layer.error((field, *path), what)
        if field != "gates":
            yield field, _type(layer, key, field, value)


def _type(layer: _Layer, key: str, field: str, value: Json) -> Json:
    if field in _LISTS and isinstance(value, str | int | float) and not isinstance(value, bool):
        value = [value]
    if field == "only" and isinstance(value, list | tuple):
        value = [str(entry) if isinstance(entry, int) else entry for entry in value]
    if field == "parse_text" and isinstance(value, bool):
        value = "on" if value else "off"  # what YAML makes of these two words
    if field == "max_errors" and isinstance(value, str) and value.isdecimal():
        value = int(value)
    if field == "today" and value is not None and (problem := day_problem(value)):
        raise layer.error((key,), problem)
    try:
        return msgspec.convert(value, _TYPES[field])
    except UnicodeEncodeError:
        raise layer.error((key,), "is not valid text") from None
    except msgspec.ValidationError as error:
        if problem := word_problem(words_of(_TYPES[field]), value):
            raise layer.error((key,), problem) from None
        found = "" if field in _SECRET else f": {show_value(value)}"
        raise layer.error((key,), f"{typed_problem(error)}{found}") from None


def _gate_layers(
    layers: Iterable[_Layer], known: Mapping[str, Json] | None = None
) -> Iterator[GateLayer]:
    for layer in layers:
        gates = layer.values.get("gates")
        if not gates and not isinstance(gates, dict | None):
            gates = [gates]  # an empty list is as wrong as a full one
        if not gates:
            continue
        if not isinstance(gates, dict):
            raise layer.error(("gates",), "must be an object {gate: {field: value}}")
        known = known or _known_gates(gates)
        for name, fields in gates.items():
            if name not in known:
                raise layer.error(("gates", str(name)), _unknown_gate(str(name), known))
            if not isinstance(fields, dict):
                raise layer.error(("gates", name), f"must be an object, not {show_value(fields)}")
        yield GateLayer(layer.source, gates)


GATES_ON_REQUEST = ("invented_argument_rate",)  # in force where somebody gives them a bound


def _known_gates(shipped: Mapping[str, Json]) -> dict[str, Json]:
    return {**shipped, **dict.fromkeys(GATES_ON_REQUEST), **added_measures()}


def _check(config: RunConfig) -> RunConfig:
    if config.shard_index >= config.num_shards:
        raise UsageError(
            f"--shard-index: {config.shard_index} is out of range:"
            f" with --num-shards {config.num_shards} it is 0 to {config.num_shards - 1}"
        )
    if config.engine is not None and config.source_of("shard_index") != "default":
        raise UsageError("--shard-index: an engine runs every shard: leave it out, or --engine")
    for name in ("num_cpus", "num_gpus"):
        if getattr(config, name) is not None and config.engine != "ray":
            raise UsageError(f"--{name.replace('_', '-')}: is for --engine ray only")
    if config.resume and config.restart:
        raise UsageError("--resume: cannot be combined with restart: give one or the other")
    if config.salvage and not config.resume:
        raise UsageError("--salvage: goes with --resume: it says what to do with a damaged journal")
    if isinstance(config.max_errors, str) and not _PERCENT.fullmatch(config.max_errors):
        raise UsageError(
            f"--max-errors: must be a number such as 3, or a share such as 2%,"
            f" not {show_value(config.max_errors)}"
        )
    # Found out now: after hours of running, a run would replace its own dataset.
    for at, written in enumerate(_WRITTEN):
        path = getattr(config, written)
        for other in (*_READ, *_WRITTEN[:at]):
            if path and _same_file(path, getattr(config, other)):
                name = {"dataset": "in"}.get(other, other).replace("_", "-")
                raise UsageError(f"--{written}: {path} is the file of --{name}: choose another one")
    return config


def _same_file(path: str, other: str | None) -> bool:
    return other is not None and Path(path).absolute() == Path(other).absolute()


def _keys(known: Iterable[str]) -> KeySet:
    """What a settings file knows, and what in it belongs elsewhere."""
    of_header = (name for name in Header.__struct_fields__ if name not in _SETTABLE)
    return KeySet(
        known=tuple(known),
        synonyms=_SYNONYMS,
        elsewhere={
            **dict.fromkeys(of_header, "the header of the dataset"),
            **dict.fromkeys(("bound", "policy", "pct"), "gates, below the name of a gate"),
            **dict.fromkeys(default_gates(), "gates"),
        },
    )


def _gate_keys(known: Iterable[str]) -> KeySet:
    return KeySet(
        known=tuple(known),
        elsewhere={
            **dict.fromkeys(_SETTABLE, "the settings, beside gates"),
            **dict.fromkeys(("bound", "policy", "pct"), "the object of one gate"),
        },
    )


def _unknown_gate(name: str, known: Iterable[str]) -> str:
    """Gates have long names, and people give a part of them: `call_f1` is `call_f1_macro`."""
    scorer, dot, _ = name.partition(".")
    measures = [gate for gate in known if "." in gate]
    own = [gate for gate in measures if gate.startswith(f"{scorer}.")]
    if dot and own:
        near = hint(name, own) or f"; this scorer has {', '.join(own)}"
        return f"unknown gate{near}"
    if dot:
        near = hint(name, measures)
        return f"unknown gate; no scorer {scorer!r} is loaded: --plugin names its file{near}"
    words = set(name.lower().replace("-", "_").split("_"))
    named = sorted(gate for gate in known if words <= set(gate.split("_")))
    if named:
        return f"unknown gate; did you mean {join_or(named)}?"
    return _gate_keys(known).refusal(name).replace("unknown key", "unknown gate", 1)
