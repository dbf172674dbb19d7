"""The checks of a sample: small assertions about its answer and its calls."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import lru_cache
from typing import Literal, assert_never, get_args

import msgspec

from callmark.records.jsontext import (
    Json,
    canonical_json,
    want_list,
    want_object,
    want_text,
    want_texts,
)
from callmark.records.patterns import compile_linear
from callmark.records.problems import KeySet, is_own
from callmark.records.trace import compose_text

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
