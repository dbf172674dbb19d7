"""Does a trial keep the small assertions that its sample makes?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from callmark.calls.attempts import plain_value
from callmark.calls.registry import Registry, canonical_name
from callmark.grounding.text import once
from callmark.records.jsontext import (
    Json,
    NotJson,
    canonical_json,
    parse_json,
    want_number,
    want_object,
    want_text,
    want_texts,
)
from callmark.records.samples import (
    CheckKind,
    CheckScore,
    SampleCheck,
    compile_linear,
    parse_path,
    tools_of_checks,
)
from callmark.records.trace import Trace, compose_text
from callmark.scorers.calls import steps_of

# Attempts that called nothing: they do not count as calls, but as attempts where none is allowed.
_NO_CALL = frozenset({"malformed", "tool_not_offered", "tool_not_allowed"})
_SHOWN = 60


def score_checks(
    checks: Sequence[SampleCheck], trace: Trace, registry: Registry
) -> tuple[CheckScore, ...]:
    """One score for each, in their order."""
    judge = _Judge(trace, registry, tools_of_checks(checks))
    scores = []
    for check in checks:
        reason = _RULES[check.kind](judge, check.wanted)
        scores.append(CheckScore(check.kind, check.wanted, reason is None, reason))
    return tuple(scores)


class _Attempt(NamedTuple):
    """`tool` None: it could not be read. Attempts of one turn share their `step`."""

    tool: str | None
    called: bool
    step: int


class _Judge:
    """One trial, read as far as its checks ask. Each rule gives the reason why a check fails;
    None: it holds."""

    def __init__(self, trace: Trace, registry: Registry, tools: Iterable[str]) -> None:
        self._trace = trace
        self._registry = registry
        known = frozenset(self._canonical(tool) for tool in tools)
        self._attempts = [
            _Attempt(
                None if entry.name is None else self._canonical(entry.name, known),
                entry.status not in _NO_CALL,
                step,
            )
            for entry, step in zip(trace.tool_trace, steps_of(trace.tool_trace), strict=True)
        ]

    def contains(self, wanted: Json) -> str | None:
        return (
            None
            if compose_text(want_text(wanted)) in self._text
            else "the answer does not contain it"
        )

    def not_contains(self, wanted: Json) -> str | None:
        return "the answer contains it" if compose_text(want_text(wanted)) in self._text else None

    def regex(self, wanted: Json) -> str | None:
        found = compile_linear(compose_text(want_text(wanted))).search(self._bytes)
        return None if found else "nothing in the answer matches"

    def equals(self, wanted: Json) -> str | None:
        text = self._text.strip()
        return (
            None
            if compose_text(want_text(wanted)).strip() == text
            else f"the answer is {_show(text)}"
        )

    def max_words(self, most: Json) -> str | None:
        return _too_many(len(self._text.split()), most, "the answer has {} words")

    def json_path(self, wanted: Json) -> str | None:
        asked = want_object(wanted)
        value = self._json
        if isinstance(value, NotJson):
            return str(value)
        for step in parse_path(compose_text(want_text(asked["path"]))):
            match value:
                case dict() if step in value:
                    value = value[step]
                case list() if isinstance(step, int) and step < len(value):
                    value = value[step]
                case _:
                    return f"the JSON of the answer has no {asked['path']}"
        same = _comparable(value) == _comparable(asked["equals"])
        return None if same else f"it is {_show(value)}"

    def called(self, wanted: Json) -> str | None:
        tool = want_text(wanted)
        if self._first_call(tool) is not None:
            return None
        tried = self._first_attempt(tool)
        if tried is None or self._attempts[tried].tool is None:
            return "it was not called"
        status = self._trace.tool_trace[tried].status.replace("_", " ")
        return f"it was not called: call {tried} is {status}"

    def not_called(self, wanted: Json) -> str | None:
        tool = want_text(wanted)
        tried = self._first_attempt(tool)
        if tried is None:
            return None
        if self._attempts[tried].tool is None:
            return f"call {tried} could not be read, so it may have been this tool"
        return f"call {tried} calls it"

    def calls_at_most(self, most: Json) -> str | None:
        return _too_many(len(self._attempts), most, "{} calls were attempted")

    def before(self, wanted: Json) -> str | None:
        """Calls of one turn have no order: the second could not have been made by what the first
        one found."""
        first, then = tools = want_texts(wanted)
        one, other = self._first_call(first), self._first_attempt(then)
        for tool in tools:
            if self._first_call(tool) is None:
                return f"{tool} was not called"
        if one is None or other is None or self._attempts[one].step < self._attempts[other].step:
            return None
        if self._attempts[other].tool is None:
            return f"call {other} could not be read, so it may have been {then}"
        if self._attempts[one].step == self._attempts[other].step:
            return f"calls {one} and {other} are of one turn"
        return f"call {other} is {then}, call {one} the first {first}"

    def max_turns(self, most: Json) -> str | None:
        turns = self._trace.turns
        if turns is None:
            return "the turns of this trial are not known"
        return _too_many(len(turns), most, "the model took {} turns")

    @once
    def _text(self) -> str:
        return compose_text(self._trace.model_output)

    @once
    def _bytes(self) -> bytes:
        return self._text.encode("utf-8", "replace")

    @once
    def _json(self) -> Json | NotJson:
        try:
            return parse_json(self._text)
        except NotJson as error:
            whole = error
        block = first_fenced_block(self._text)
        if block is None:
            return NotJson(f"the answer is {whole}, and has no fenced block")
        try:
            return parse_json(block)
        except NotJson as error:
            return NotJson(f"the first fenced block of the answer is {error}")

    def _canonical(self, tool: str, known: frozenset[str] = frozenset()) -> str:
        return canonical_name(tool, registry=self._registry, known_names=known)

    def _first_call(self, tool: str) -> int | None:
        name = self._canonical(tool)
        calls = (at for at, one in enumerate(self._attempts) if one.called and one.tool == name)
        return next(calls, None)

    def _first_attempt(self, tool: str) -> int | None:
        """Also one that could not be read: it may have been this tool."""
        names = (self._canonical(tool), None)
        return next((at for at, one in enumerate(self._attempts) if one.tool in names), None)


# Every kind of check, and what judges it.
_RULES: dict[CheckKind, Callable[[_Judge, Json], str | None]] = {
    "contains": _Judge.contains,
    "not_contains": _Judge.not_contains,
    "regex": _Judge.regex,
    "equals": _Judge.equals,
    "json_path": _Judge.json_path,
    "max_words": _Judge.max_words,
    "called": _Judge.called,
    "not_called": _Judge.not_called,
    "calls_at_most": _Judge.calls_at_most,
    "before": _Judge.before,
    "max_turns": _Judge.max_turns,
}


def first_fenced_block(text: str) -> str | None:
    """What stands between the first line of ``` or ~~~ and the next one that closes it, or the end;
    None: there is no such line."""
    lines = text.split("\n")
    fence, start = "", 0
    for at, line in enumerate(lines):
        mark = line.strip()
        if fence:
            if mark.startswith(fence) and not mark.strip(fence[0]):
                return "\n".join(lines[start:at])
        elif mark.startswith(("```", "~~~")):
            fence, start = mark[: len(mark) - len(mark.lstrip(mark[0]))], at + 1
    return "\n".join(lines[start:]) if fence else None


def _too_many(number: int, most: Json, said: str) -> str | None:
    return None if number <= want_number(most) else said.format(number)


def _comparable(value: Json) -> str:
    # 3 and 3.0 are one number, true and 1 are not; a null inside an object is not the same as none.
    return canonical_json(_plain(value))


def _plain(value: Json) -> Json:
    if isinstance(value, dict):
        return {plain_value(key): _plain(member) for key, member in value.items()}
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return plain_value(value)


def _show(value: Json) -> str:
    text = canonical_json(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"
