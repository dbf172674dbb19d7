"""What the dataset says: the header, and one sample with what is expected of the model.

Regular expressions of datasets and fixtures run on an engine whose time grows with the text and
with the expression, and with nothing else."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Iterator, Mapping
from functools import lru_cache
from typing import Literal, Protocol, assert_never, get_args

import msgspec

from callmark.errors import UsageError
from callmark.records.jsontext import (
    Json,
    canonical_json,
    parse_json,
    want_list,
    want_number,
    want_object,
    want_text,
    want_texts,
)
from callmark.records.problems import KeySet, is_own
from callmark.records.trace import compose_text

MAX_MEMORY = 2 << 20  # bytes for one expression; a larger one is refused


class LinearPattern(Protocol):
    """A compiled expression. It is asked about UTF-8 bytes."""

    def search(self, text: bytes, /) -> object: ...

    def fullmatch(self, text: bytes, /) -> object: ...


@lru_cache(1024)
def compile_linear(pattern: str, *, fold: bool = False) -> LinearPattern:
    """The expression, or ValueError. Python's own engine tries one way to fit after the other, so
    an expression can keep it busy for years; RE2 follows all ways at once."""
    import re2

    if found := re.search(r"(?<!\\)\{,\d+\}", pattern):
        # RE2 takes it literally, Python as a number of repeats: nobody means the former.
        raise ValueError(f"write {{0{found[0][1:]} instead of {found[0]}")
    options = re2.Options()
    options.case_sensitive = not fold
    options.log_errors = False
    options.max_mem = MAX_MEMORY
    options.never_capture = True
    try:
        compiled: LinearPattern = re2.compile(pattern.encode(), options)
    except (re2.error, UnicodeError) as error:
        reason = error.args[0] if isinstance(error, re2.error) else "a lone surrogate"
        what = reason.decode("utf-8", "replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(
            f"cannot be used: {what}; it must be an expression in the syntax of RE2,"
            " which has no look-around and no back-references"
        ) from None
    return compiled


CheckKind = Literal[
    "contains",
    "not_contains",
    "regex",
    "equals",
    "json_path",
    "max_words",
    "called",
    "not_called",
    "calls_at_most",
    "before",
    "max_turns",
]
CHECK_KINDS: tuple[CheckKind, ...] = get_args(CheckKind)
# Whether an empty answer without a call passes what a sample asks for. `nothing`: it has no checks.
Demand = Literal["nothing", "silence", "speech"]
# Where a list stands for several checks of its kind.
_MANY: frozenset[CheckKind] = frozenset(
    {"contains", "not_contains", "regex", "json_path", "called", "not_called"}
)
_NAMES_TOOLS: frozenset[CheckKind] = frozenset({"called", "not_called", "before"})
CHECK_KEYS = KeySet(
    known=CHECK_KINDS,
    synonyms={
        **dict.fromkeys(("includes", "mustcontain", "has", "substring"), "contains"),
        **dict.fromkeys(
            ("excludes", "notincludes", "mustnotcontain", "doesnotcontain", "containsnot"),
            "not_contains",
        ),
        **dict.fromkeys(("pattern", "matches", "match", "regexp"), "regex"),
        **dict.fromkeys(("exact", "is", "equalto"), "equals"),
        **dict.fromkeys(("json", "jsonpointer"), "json_path"),
        **dict.fromkeys(("wordsatmost", "words", "wordlimit"), "max_words"),
        **dict.fromkeys(("calls", "toolcalled", "mustcall", "usedtool"), "called"),
        **dict.fromkeys(("mustnotcall", "toolnotcalled", "nevercalled"), "not_called"),
        **dict.fromkeys(("maxcalls", "atmostcalls", "calllimit"), "calls_at_most"),
        **dict.fromkeys(("order", "calledbefore"), "before"),
        **dict.fromkeys(("turnsatmost", "turnlimit"), "max_turns"),
    },
)
JSON_PATH_KEYS = KeySet(
    known=("path", "equals"),
    synonyms={
        **dict.fromkeys(("value", "is", "expected", "equal"), "equals"),
        **dict.fromkeys(("jsonpath", "pointer", "key", "at"), "path"),
    },
)
_STEP = re.compile(r'\.(?P<key>[^.\[\]"]+)|\[(?P<at>\d{1,9})\]|\["(?P<quoted>[^"]+)"\]')
_SHOWN = 120


class SampleCheck(msgspec.Struct, frozen=True):
    """One assertion. `wanted` is what the dataset says after its kind."""

    kind: CheckKind
    wanted: Json


class CheckScore(msgspec.Struct, frozen=True):
    """What became of one check. `reason`: why it failed; None: it passed."""

    kind: CheckKind
    wanted: Json
    ok: bool
    reason: str | None


def checks_of(given: Json) -> tuple[SampleCheck, ...]:
    """The checks of an item that passed the schema: one object, or a list of them."""
    if not given:
        return ()
    entries = [given] if isinstance(given, dict) else want_list(given)
    return tuple(check for entry in entries for check in _checks_of_entry(want_object(entry)))


def _checks_of_entry(entry: dict[str, Json]) -> Iterator[SampleCheck]:
    for kind, wanted in entry.items():
        if wanted is None or is_own(kind):
            continue
        if kind not in CHECK_KINDS:
            raise TypeError(f"checks: no such check: {kind}")
        many = wanted if kind in _MANY and isinstance(wanted, list) else [wanted]
        yield from (SampleCheck(kind, one) for one in many)


def unknown_keys(given: Json) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Keys below `checks` that are none: each would be an assertion that nobody makes."""
    entries = given if isinstance(given, list) else [given]
    for at, entry in enumerate(entries):
        place = (at,) if isinstance(given, list) else ()
        if not isinstance(entry, dict):
            continue
        yield from (((*place, key), what) for key, what in _refuse(entry, CHECK_KEYS))
        paths = entry.get("json_path")
        for number, one in enumerate(paths if isinstance(paths, list) else [paths]):
            below = (*place, "json_path", *((number,) if isinstance(paths, list) else ()))
            if isinstance(one, dict):
                yield from (((*below, key), what) for key, what in _refuse(one, JSON_PATH_KEYS))


def _refuse(given: dict[str, Json], keys: KeySet) -> Iterator[tuple[str, str]]:
    for key in given:
        if key not in keys.names and not is_own(key):
            yield key, keys.refusal(key, given.keys())


def check_problems(given: Json) -> Iterator[str]:
    """What no schema can say against the checks of an item: `[0]: what is wrong`."""
    if any(unknown_keys(given)):
        return
    for at, entry in enumerate(given if isinstance(given, list) else [given]):
        if entry is not None and not any(_checks_of_entry(entry)):
            yield f"{f'[{at}]' if isinstance(given, list) else ''}: holds no check"
    for check in checks_of(given):
        try:
            match check:
                case SampleCheck("regex", str(pattern)):
                    compile_linear(compose_text(pattern))
                case SampleCheck("json_path", {"path": str(path)}):
                    parse_path(compose_text(path))
                case SampleCheck("before", [one, other]):
                    if one == other:
                        raise ValueError("names one tool twice: none is called before itself")
                case SampleCheck("before", _):
                    yield ".before: must be a list of two tools, the first one first"
                    return
        except ValueError as error:
            yield f": {describe_check(check)}: {error}"


def tools_of_checks(checks: Collection[SampleCheck]) -> set[str]:
    """The tools that they name."""
    named = [check.wanted for check in checks if check.kind in _NAMES_TOOLS]
    return {tool for one in named for tool in want_texts(one if isinstance(one, list) else [one])}


def demand_of(checks: Collection[SampleCheck]) -> Demand:
    if not checks:
        return "nothing"
    return "speech" if any(map(fails_on_silence, checks)) else "silence"


def fails_on_silence(check: SampleCheck) -> bool:
    """Whether a model that says nothing and calls nothing fails it."""
    match check.kind:
        case "contains" | "json_path" | "called" | "before":
            return True
        case "not_contains" | "max_words" | "not_called" | "calls_at_most" | "max_turns":
            return False
        case "equals":
            return bool(compose_text(want_text(check.wanted)).strip())
        case "regex":
            return not compile_linear(compose_text(want_text(check.wanted))).search(b"")
        case _:
            assert_never(check.kind)


@lru_cache(1024)
def parse_path(path: str) -> tuple[str | int, ...]:
    """`a.b[0]["c d"]` as its steps; `$` is the whole value. ValueError: it cannot be read."""
    rest = path[1:] if path.startswith("$") else path if path[:1] in (".", "[") else f".{path}"
    end, steps = 0, list[str | int]()
    while step := _STEP.match(rest, end):
        steps.append(int(step["at"]) if step["at"] else step["key"] or step["quoted"])
        end = step.end()
    if end != len(rest):
        raise ValueError(
            f"cannot be read from {rest[end : end + 20]!r} on; a path is keys with dots between"
            ' them, [n] for an entry of a list (from 0), ["a key"] for one with dots or brackets'
        )
    return tuple(steps)


def describe_check(check: SampleCheck | CheckScore) -> str:
    """`contains "17"`, for people."""
    wanted = check.wanted
    if check.kind == "json_path":
        asked = want_object(wanted)
        shown = f"{asked['path']} = {canonical_json(asked['equals'])}"
    elif check.kind == "before":
        shown = ", ".join(want_texts(wanted))
    else:
        shown = want_text(wanted) if check.kind in _NAMES_TOOLS else canonical_json(wanted)
    shown = shown if len(shown) <= _SHOWN else shown[: _SHOWN - 1] + "…"
    return f"{check.kind} {shown}"


def explain_check(score: CheckScore) -> str:
    """The same with what became of it."""
    return f"{describe_check(score)}: {'ok' if score.ok else score.reason}"


Kind = Literal["control", "negative_control", "clarify", "eligible", "unclassified"]
# Where the right answer makes no call, whatever the item lists.
CALL_FREE: frozenset[Kind] = frozenset({"control", "clarify"})
Extractor = Literal["marker", "claims"]
# Who decided on the extractor; `default`: nobody asked for the marker.
ExtractorBy = Literal[
    "flag", "config", "header", "wrapper", "system_message", "teacher_text", "default"
]
CallMatch = Literal["exact", "unordered", "superset"]

DEFAULT_SPAN_CAP = 3
# The prompt of a log that does not say what was asked: nobody can tell what the user gave.
NOT_RECORDED = "(what was asked is not recorded)"
# What an import puts down of the calls that nothing answers in the log.
UNANSWERED = "unanswered_calls"
# What an import puts down where the user said more than `user_turns` can ask.
NOT_ASKED = "user_turns_lost"
# What an import puts down where the model's provider ran a tool of its own.
PROVIDER_CALLS = "provider_calls"
# What an import puts down where nothing is said after the last result.
NO_ANSWER = "ends_without_answer"
DEFAULT_STRICT_KEYS = ("summary", "lines", "count", "top_k", "results", "hits", "content")
MARKER = "Integration:"


class Header(msgspec.Struct, frozen=True, kw_only=True):
    """The dataset's first line. Unknown fields are ignored here and kept in the file."""

    dataset_version: str | int | float | None = None
    dataset_sha256: str | None = None
    tool_registry_sha256: str | None = None
    fixtures_sha256: str | None = None
    tokenizer_fingerprint: dict[str, Json] | None = None
    integration_span_cap: int | None = None
    span_extractor: Literal["marker", "claims", "auto"] | None = None
    strict_keys: tuple[str, ...] | None = None
    gates: dict[str, Json] | None = None
    url_allowlist: tuple[str, ...] = ()
    privacy_echo: Literal["allow", "deny"] | None = None
    seed: int | None = None
    composition: bool | None = None  # `verify` judges how the dataset is composed


class ExpectedCall(msgspec.Struct, frozen=True):
    """`arguments` None: only the name is expected. `accept` maps a JSON pointer below the
    arguments to the values that are right there; `optional` names keys that may be absent;
    `unordered` those whose lists have no order; `lenient`: the item asks for lenient comparison of
    texts."""

    name: str
    arguments: dict[str, Json] | None = None
    accept: dict[str, list[Json]] = {}
    optional: tuple[str, ...] = ()
    lenient: bool = False
    unordered: tuple[str, ...] = ()


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """The scored part of an item's metadata, parsed once. `observed`: it says what some model did,
    and nobody has said yet that this is right: other calls are a change, not a mistake.
    `unanswered`: calls whose results the log does not hold, so that no fixture can."""

    kind: Kind
    calls: tuple[ExpectedCall, ...] = ()
    unanswered: tuple[ExpectedCall, ...] = ()
    call_match: CallMatch = "exact"
    retry: bool = False
    required_facts: tuple[str | int | float, ...] = ()
    strict_keys: tuple[str, ...] | None = None
    decoy_values: tuple[str | int | float, ...] = ()
    locale: str | None = None
    locale_probe: bool = False
    tools: tuple[str, ...] | None = None
    specs: tuple[str, ...] = ()  # of `tools` those that the sample brings along, as canonical JSON
    slices: tuple[str, ...] = ()
    cluster: str | None = None
    normalise_text: bool = False
    checks: tuple[SampleCheck, ...] = ()
    observed: bool = False
    max_turns: int | None = None

    @property
    def is_step(self) -> bool:
        """One decision of a longer conversation, which the prompt holds: what comes after the
        model's turn is not asked."""
        return self.max_turns == 1


class Sample(msgspec.Struct, frozen=True, kw_only=True):
    """One item of the dataset. `prompt` and `metadata` are verbatim."""

    index: int
    sample_id: str
    prompt: str | list[dict[str, Json]]
    metadata: dict[str, Json]
    expectation: Expectation
    user_turns: tuple[str, ...] = ()
    teacher_text: str | None = None
    item_sha256: str = ""

    def asks_for_marker(self) -> Literal["teacher_text", "system_message"] | None:
        """Which part of the item asks for `Integration:`. Never the user's words: "Slack
        Integration: timeouts" in a prompt asks for no marker."""
        if MARKER in (self.teacher_text or ""):
            return "teacher_text"
        if isinstance(self.prompt, str):
            return None
        texts = (_text_of(message.get("content")) for message in self.system_messages())
        return "system_message" if any(MARKER in text for text in texts) else None

    def system_messages(self) -> Iterator[dict[str, Json]]:
        if not isinstance(self.prompt, str):
            yield from (one for one in self.prompt if one.get("role") == "system")


def _text_of(content: Json) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "".join(str(part.get("text") or "") for part in parts if isinstance(part, dict))


def sample_of(item: Mapping[str, Json], *, index: int, sample_id: str, item_sha256: str) -> Sample:
    """An item that passed the schema, as a record. Nulls stand for absent fields."""
    metadata = want_object(item.get("metadata"))
    prompt, teacher_text = item.get("prompt") or "", item.get("teacher_text")
    return Sample(
        index=index,
        sample_id=sample_id,
        prompt=prompt if isinstance(prompt, str) else list(map(want_object, want_list(prompt))),
        metadata=metadata,
        expectation=expectation_of(metadata),
        user_turns=want_texts(item.get("user_turns")),
        teacher_text=None if teacher_text is None else want_text(teacher_text),
        item_sha256=item_sha256,
    )


# What an expectation is read from, beside the calls: most items have none of it.
_RARE = frozenset(
    """
    string_match expected_behaviour locale locale_probe language strict_keys tools cluster
    unanswered_calls call_match required_facts decoy_values text_norm line_endings checks observed
    max_turns negative_control adversarial slices long_context teacher_heavy
    """.split()
)


def expectation_of(metadata: Mapping[str, Json]) -> Expectation:
    get = metadata.get
    if _RARE.isdisjoint(metadata):
        plain = tuple([_expected_call(entry, False) for entry in want_list(get("call_sequence"))])
        return Expectation(kind="eligible" if plain else "unclassified", calls=plain)
    lenient = get("string_match") == "lenient"
    calls = tuple([_expected_call(entry, lenient) for entry in want_list(get("call_sequence"))])
    behaviour = get("expected_behaviour") or "normal"
    locale = get("locale")
    if get("locale_probe"):
        locale = locale or get("language")
    strict_keys = get("strict_keys")
    tools = get("tools")
    cluster = get("cluster")
    return Expectation(
        kind=_kind_of(metadata, behaviour, expects_calls=bool(calls)),
        calls=calls,
        unanswered=tuple([_expected_call(one, lenient) for one in want_list(get(UNANSWERED))]),
        call_match=_call_match_of(get("call_match")),
        retry=behaviour == "retry",
        required_facts=_facts_of(get("required_facts")),
        strict_keys=None if strict_keys is None else want_texts(strict_keys),
        decoy_values=_facts_of(get("decoy_values")),
        locale=None if locale is None else want_text(locale),
        locale_probe=bool(get("locale_probe")),
        tools=None if tools is None else tuple(map(_tool_name, want_list(tools))),
        specs=tuple([canonical_json(one) for one in want_list(tools) if isinstance(one, dict)]),
        slices=_slices_of(metadata),
        cluster=None if cluster is None else str(cluster),
        normalise_text=str(get("text_norm") or "").upper() == "NFC"
        or str(get("line_endings") or "").upper() == "LF",
        checks=checks_of(get("checks")),
        observed=bool(get("observed")),
        max_turns=_turns_of(get("max_turns")),
    )


def brought_tools(expectation: Expectation) -> frozenset[str]:
    """The names of the tools whose specs stand in the sample itself."""
    return frozenset(_tool_name(parse_json(spec)) for spec in expectation.specs)


def _tool_name(tool: Json) -> str:
    if not isinstance(tool, dict):
        return want_text(tool)
    function = tool.get("function")
    return want_text((function if isinstance(function, dict) else tool).get("name"))


def _expected_call(entry: Json, lenient: bool) -> ExpectedCall:
    if isinstance(entry, str):
        return ExpectedCall(entry)
    call = want_object(entry)
    if len(call) == 2 and isinstance(call.get("arguments"), dict):  # name and arguments
        return ExpectedCall(
            want_text(call["name"]), want_object(call["arguments"]), lenient=lenient
        )
    arguments, accept = call.get("arguments"), want_object(call.get("accept"))
    return ExpectedCall(
        name=want_text(call["name"]),
        arguments=None if arguments is None else want_object(arguments),
        accept={pointer: list(want_list(values)) for pointer, values in accept.items()},
        optional=want_texts(call.get("optional")),
        lenient=lenient,
        unordered=want_texts(call.get("unordered")),
    )


def _turns_of(given: Json) -> int | None:
    return None if given is None else int(want_number(given))


def _call_match_of(given: Json) -> CallMatch:
    match given:
        case "unordered" | "superset":
            return given
    return "exact"


def _facts_of(given: Json) -> tuple[str | int | float, ...]:
    facts = want_list(given)
    return (
        tuple(one if isinstance(one, str) else want_number(one) for one in facts) if facts else ()
    )


def _kind_of(metadata: Mapping[str, Json], behaviour: Json, *, expects_calls: bool) -> Kind:
    if metadata.get("observed"):
        return "unclassified"
    # The dataset decides, never what the model did: a silent model must not leave the denominator.
    if behaviour in ("no_tool", "decline"):
        return "control"
    if metadata.get("negative_control"):
        return "negative_control"
    adversarial = metadata.get("adversarial")
    if isinstance(adversarial, dict) and adversarial.get("expected") == "ask_clarify":
        return "clarify"
    return "eligible" if expects_calls or behaviour == "retry" else "unclassified"


def _slices_of(metadata: Mapping[str, Json]) -> tuple[str, ...]:
    names = list(want_texts(metadata.get("slices")))
    for flag in ("long_context", "teacher_heavy"):
        if metadata.get(flag) and flag not in names:
            names.append(flag)
    return tuple(names)


def sample_id_of(item: Mapping[str, Json]) -> str:
    """Name a sample as every file does.

    Args:
        item: an item of a dataset.

    Returns:
        The `sample_id` that it gives itself, below `metadata` or beside it, else a hash of the
        whole item.

    Raises:
        TypeError: the item has no id, and is no JSON value that could be hashed.

    >>> import callmark
    >>> callmark.sample_id_of({"prompt": "Hello", "metadata": {"sample_id": "greeting-1"}})
    'greeting-1'
    """
    metadata = item.get("metadata")
    for holder in (metadata if isinstance(metadata, dict) else {}, item):
        given = holder.get("sample_id")
        if isinstance(given, str) and given:
            return given
        if isinstance(given, int | float) and not isinstance(given, bool):
            return json.dumps(given)
    text = json.dumps(item, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def shard_of(sample_id: str, num_shards: int) -> int:
    """Say which shard a sample belongs to.

    Args:
        sample_id: its id.
        num_shards: how many shards there are.

    Returns:
        A number from 0. Only the id decides, whatever the order of the dataset.

    Raises:
        UsageError: no whole number of shards, or an id that is no text.

    >>> import callmark
    >>> callmark.shard_of("issues-01", 4)
    1
    """
    if not isinstance(num_shards, int) or num_shards < 1:
        raise UsageError(f"--num-shards must be a whole number from 1, not {num_shards!r}")
    if not isinstance(sample_id, str):
        raise UsageError(f"a sample_id is a text, not {sample_id!r}; see sample_id_of")
    head = hashlib.sha256(sample_id.encode("utf-8", "surrogatepass")).digest()[:8]
    return int.from_bytes(head, "little") % num_shards


def asks_nothing(prompt: Json) -> bool:
    """Whether the log that the prompt comes from does not say what was asked."""
    if isinstance(prompt, str):
        return prompt == NOT_RECORDED
    return any(want_object(one).get("content") == NOT_RECORDED for one in want_list(prompt))


def calls_of(message: dict[str, Json]) -> Iterator[tuple[dict[str, Json], dict[str, Json]]]:
    """The calls of a message and their functions, as far as they have that shape."""
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if isinstance(function, dict):
            yield call, function


def message_text(message: dict[str, Json]) -> str:
    """The text of a chat message: a string, or the text parts of a list."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = (part.get("text") if isinstance(part, dict) else part for part in content)
    return "\n".join(part for part in parts if isinstance(part, str))


def prompt_texts(prompt: str | list[dict[str, Json]]) -> Iterator[str]:
    """What the prompt says, tool results left out."""
    if isinstance(prompt, str):
        yield prompt
        return
    for message in prompt:
        if message.get("role") != "tool":
            yield message_text(message)
        for _, function in calls_of(message):
            arguments = function.get("arguments")
            if arguments is not None:
                yield arguments if isinstance(arguments, str) else canonical_json(arguments)
