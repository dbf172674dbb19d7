"""Prompt wrappers: template files that say how system and user text become a prompt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any, Protocol

import msgspec

from toolmark.core.jsontext import Json, NotJson, parse_json, sha256_hex
from toolmark.errors import UsageError

VARIABLES = ("system", "user", "tools")
SUFFIXES = (".j2", ".tmpl")
# Around the number of a value whose place in the JSON is not known before the text is whole.
_OPEN, _CLOSE = "\ue000", "\ue001"
_MARK = re.compile(f"{_OPEN}(\\d+){_CLOSE}")

Messages = list[dict[str, Json]]


class Wrapper(Protocol):
    """`raw`: the text is the exact prompt, nothing may be put around it."""

    sha256: str
    raw: bool
    source: str

    def render(self, *, user: str, system: str, tools: Sequence[Json]) -> Messages: ...


def open_wrapper(path: Path) -> Wrapper:
    """Reads, compiles and tries the template, so that its mistakes are known before a run."""
    if path.suffix not in SUFFIXES:
        raise UsageError(f"{path}: a prompt wrapper ends in .j2 (Jinja2, JSON) or .tmpl (text)")
    try:
        data = path.read_bytes()
        source = data.decode("utf-8")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not UTF-8 at byte {error.start}") from None
    made = JinjaWrapper if path.suffix == ".j2" else TextWrapper
    wrapper: Wrapper = made(path, source, sha256_hex(data))
    wrapper.render(user="user", system="system", tools=())
    return wrapper


class TextWrapper:
    """`.tmpl`: `$system`, `$user` and `$tools` (as JSON) in a flat text."""

    raw = True

    def __init__(self, path: Path, source: str, sha256: str) -> None:
        self.path, self.source, self.sha256 = path, source, sha256
        self._template = Template(source)
        unknown = sorted(set(self._identifiers()) - set(VARIABLES))
        if unknown:
            raise _unknown(path, unknown[0])

    def render(self, *, user: str, system: str, tools: Sequence[Json]) -> Messages:
        text = self._template.substitute(user=user, system=system, tools=_json(tools))
        return [{"role": "user", "content": text}]

    def _identifiers(self) -> list[str]:
        if not self._template.is_valid():
            line = self._line_of_stray_dollar()
            raise UsageError(f"{self.path}:{line}: a lone $ (write $$ for the character itself)")
        return self._template.get_identifiers()

    def _line_of_stray_dollar(self) -> int:
        for match in Template.pattern.finditer(self.source):
            if match.group("invalid") is not None:
                return self.source.count("\n", 0, match.start()) + 1
        return 1


class JinjaWrapper:
    """`.j2`: a sandboxed Jinja2 template whose result is `{"system", "user"}` as JSON. A value is
    escaped for the place where it stands, so that any prompt arrives unchanged."""

    raw = False

    def __init__(self, path: Path, source: str, sha256: str) -> None:
        import jinja2
        from jinja2.sandbox import ImmutableSandboxedEnvironment
        from markupsafe import Markup

        self.path, self.source, self.sha256 = path, source, sha256
        self._error: type[Exception] = jinja2.TemplateError
        self._undefined: type[Exception] = jinja2.UndefinedError
        values: list[Json] = []

        # With the context as an argument nothing is folded into the template when it is compiled.
        @jinja2.pass_context
        def remember(context: Any, value: Any) -> str:
            if isinstance(value, Markup):  # the result of `| tojson`: JSON already
                return str(value)
            if isinstance(value, jinja2.Undefined):
                str(value)  # a strict one raises here
            values.append(value)
            return f"{_OPEN}{len(values) - 1}{_CLOSE}"

        self._values = values
        environment = ImmutableSandboxedEnvironment(
            undefined=jinja2.StrictUndefined, finalize=remember, autoescape=False
        )
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise UsageError(f"{path}:{error.lineno}: not a template: {error.message}") from None

    def render(self, *, user: str, system: str, tools: Sequence[Json]) -> Messages:
        self._values.clear()
        try:
            text = self._template.render(user=user, system=system, tools=list(tools))
        except self._undefined as error:
            raise UsageError(f"{self.path}: {error}; there is: {', '.join(VARIABLES)}") from None
        except (self._error, TypeError, ValueError, ArithmeticError, LookupError) as error:
            raise UsageError(f"{self.path}: the template fails: {error}") from None
        return self._messages(_filled(text, self._values))

    def _messages(self, text: str) -> Messages:
        try:
            made = parse_json(text)
        except NotJson as error:
            raise UsageError(f"{self.path}: the result is not JSON: {error}") from None
        if not isinstance(made, dict) or not made or set(made) - {"system", "user"}:
            raise UsageError(f'{self.path}: the result must be {{"system": …, "user": …}}')
        for name, value in made.items():
            if not isinstance(value, str):
                raise UsageError(f"{self.path}: {name}: must be text")
        roles = [role for role in ("system", "user") if made.get(role)]
        return [{"role": role, "content": made[role]} for role in roles]


def render_prompt(
    wrapper_path: str | Path, *, user: str, system: str = "", tools: Sequence[Json] = ()
) -> Messages:
    """The chat messages that a wrapper makes of one prompt."""
    return open_wrapper(Path(wrapper_path)).render(user=user, system=system, tools=tools)


def _filled(text: str, values: Sequence[Json]) -> str:
    """The marks replaced by their values: escaped inside a JSON string, as JSON outside."""
    parts: list[str] = []
    inside = False
    copied = 0
    for mark in _MARK.finditer(text):
        literal = text[copied : mark.start()]
        parts.append(literal)
        inside = _ends_inside(literal, inside)
        value = values[int(mark.group(1))]
        if isinstance(value, str) and _MARK.search(value):
            value = _MARK.sub(lambda inner: _plain(values[int(inner.group(1))]), value)
        parts.append(_json(_plain(value))[1:-1] if inside else _json(value))
        copied = mark.end()
    return "".join([*parts, text[copied:]])


def _ends_inside(literal: str, inside: bool) -> bool:
    """Whether a piece of JSON text ends inside a string."""
    at = 0
    while at < len(literal):
        if inside and literal[at] == "\\":
            at += 1
        elif literal[at] == '"':
            inside = not inside
        at += 1
    return inside


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else _json(value)


def _json(value: Json) -> str:
    return msgspec.json.encode(value).decode()


def _unknown(path: Path, name: str) -> UsageError:
    return UsageError(f"{path}: ${name} is unknown; there is: $" + ", $".join(VARIABLES))


def context_of(messages: Sequence[Mapping[str, Json]]) -> tuple[Json, Json]:
    """The system text and the last user text of a conversation, None where there is none."""
    systems = [message.get("content") for message in messages if message.get("role") == "system"]
    users = [message.get("content") for message in messages if message.get("role") == "user"]
    return (systems[0] if systems else None), (users[-1] if users else None)
