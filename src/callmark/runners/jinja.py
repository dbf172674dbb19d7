"""`.j2` prompt wrappers. The template is JSON text with holes in it; what a hole prints is escaped
for the place where it stands, so that any prompt arrives unchanged. Loaded only where one is used.

The template runs in a sandbox: it reaches its variables and nothing else, and it ends. That guards
against slips; it does not make a template that means harm harmless to the memory."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence, Sized
from pathlib import Path
from traceback import walk_tb
from typing import Any, Self

from jinja2 import (
    StrictUndefined,
    Template,
    TemplateError,
    TemplateRuntimeError,
    TemplateSyntaxError,
    Undefined,
    UndefinedError,
    nodes,
    pass_context,
)
from jinja2.meta import find_undeclared_variables
from jinja2.sandbox import ImmutableSandboxedEnvironment

from callmark.errors import UsageError
from callmark.records.jsontext import Json, NotJson, parse_json
from callmark.runners.wrappers import VARIABLES, Messages

MOST_STEPS = 100_000  # rounds of loops and calls for one prompt
LONGEST = 10_000_000  # characters of one prompt

_ONE_FILE = "a wrapper is one file"
_NO_PLACE = "its text has no place in the JSON; use {% set name %}…{% endset %} and {{ name }}"
_REFUSED: dict[type[nodes.Node], tuple[str, str]] = {
    nodes.Include: ("include", _ONE_FILE),
    nodes.Import: ("import", _ONE_FILE),
    nodes.FromImport: ("from", _ONE_FILE),
    nodes.Extends: ("extends", _ONE_FILE),
    nodes.FilterBlock: ("filter", _NO_PLACE),
    nodes.CallBlock: ("call", _NO_PLACE),
    nodes.ScopedEvalContextModifier: ("autoescape", "a prompt is not HTML"),
}
# Give another result every time.
_RANDOM_GLOBAL, _RANDOM_FILTER = "lipsum", "random"
# Makes any amount of blanks, which no prompt needs.
_PADDING_FILTER = "center"

# Whole escapes of a JSON string, and one that the end of the text cuts off.
_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_CUT_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,3})?\Z")

# What the code of a template may raise by itself: its own errors, and those of Python's operators.
_FAILURES = (
    TemplateError,
    TypeError,
    ValueError,
    ArithmeticError,
    LookupError,
    AttributeError,
    RecursionError,
)


class JinjaWrapper:
    """The result is `{"system", "user"}`; either may be missing."""

    raw = False

    def __init__(self, path: Path, source: str, sha256: str) -> None:
        self.source, self.sha256 = source, sha256
        self._path = path
        self._environment = _Environment()
        try:
            self._template, self.variables = _compile(self._environment, path, source)
        except TemplateSyntaxError as error:
            raise UsageError(f"{path}:{error.lineno}: not a template: {error.message}") from None
        except (SyntaxError, ValueError, OverflowError, RecursionError) as error:
            # What Python says of the code that Jinja2 made: loops in loops in loops, mostly.
            raise UsageError(f"{path}: too complicated a template: {error}") from None

    def render(self, *, user: str, system: str, tools: Sequence[Json]) -> Messages:
        self._environment.steps = 0
        values = {"user": user, "system": system, "tools": list(tools)}
        try:
            text = _json_text(self._template.generate(values))
        except UndefinedError as error:
            raise UsageError(f"{self._place(error)}: {error}; {_there_is()}") from None
        except _FAILURES as error:
            raise UsageError(f"{self._place(error)}: the template fails: {error}") from None
        except MemoryError as error:
            raise UsageError(f"{self._place(error)}: the template needs too much memory") from None
        return self._messages(text)

    def _messages(self, text: str) -> Messages:
        try:
            made = parse_json(text)
        except NotJson as error:
            what = f"the result is {error} of line {_bad_line(text)}"
            advice = r"a line break inside quotes is written \n"
            raise UsageError(f"{self._path}: {what}; {advice}") from None
        if not isinstance(made, dict) or not made or set(made) - {"system", "user"}:
            raise UsageError(f'{self._path}: the result must be {{"system": …, "user": …}}')
        for name, value in made.items():
            if not isinstance(value, str):
                raise UsageError(f"{self._path}: {name}: must be text; put quotes around it")
        # No system text, no system message; but an empty prompt is a prompt.
        roles = [*(["system"] if made.get("system") else []), *(["user"] if "user" in made else [])]
        return [{"role": role, "content": made[role]} for role in roles]

    def _place(self, error: Exception) -> str:
        """The file, with the line where the template failed if that is known."""
        frames = walk_tb(error.__traceback__)
        lines = [line for frame, line in frames if frame.f_code.co_filename == str(self._path)]
        return f"{self._path}:{lines[-1]}" if lines else str(self._path)


class _Piece(str):
    """What one `{{ … }}` prints. `is_json`: a JSON value already, else a text."""

    is_json: bool

    @classmethod
    def of(cls, text: str, *, is_json: bool) -> Self:
        piece = cls(text)
        piece.is_json = is_json
        return piece

    def __str__(self) -> str:  # Jinja2 calls str() on all that is printed: it must stay a piece
        return self


class _Environment(ImmutableSandboxedEnvironment):
    """Counts what a template does, so that it ends."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, finalize=_print, autoescape=False)
        self.steps = 0
        self.globals.pop(_RANDOM_GLOBAL)
        self.filters.pop(_RANDOM_FILTER)
        self.filters.pop(_PADDING_FILTER)
        self.filters |= {"tojson": _to_json, "safe": _unchanged, "counted": self._counted}

    def call(self, /, *args: Any, **kwargs: Any) -> Any:
        self._step()
        _, function, *given = args
        if isinstance(getattr(function, "__self__", None), str) and any(
            isinstance(size, int) and size > LONGEST for size in (*given, *kwargs.values())
        ):
            raise TemplateRuntimeError(f"a text of more than {LONGEST} characters is too long")
        return super().call(*args, **kwargs)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if _size_after(operator, left, right) > LONGEST:
            raise TemplateRuntimeError(f"the result of {operator} is too large")
        return super().call_binop(context, operator, left, right)

    def _counted(self, values: Iterable[Any]) -> Iterator[Any]:
        for value in values:
            self._step()
            yield value

    def _step(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TemplateRuntimeError(f"no end after {MOST_STEPS} steps")


def _compile(environment: _Environment, path: Path, source: str) -> tuple[Template, frozenset[str]]:
    """The template, and which variables it uses, branches that are never taken included."""
    tree = environment.parse(source)
    for node in tree.find_all(tuple(_REFUSED)):
        word, why = _REFUSED[type(node)]
        raise UsageError(f"{path}:{node.lineno}: {{% {word} %}} cannot be used here: {why}")
    used = find_undeclared_variables(tree)
    for node in tree.find_all(nodes.Name):
        if node.name in used - set(VARIABLES):
            raise UsageError(f"{path}:{node.lineno}: {node.name} is unknown; {_there_is()}")
    for loop in tree.find_all(nodes.For):
        loop.iter = nodes.Filter(loop.iter, "counted", [], [], None, None, lineno=loop.lineno)
    code = environment.compile(tree, filename=str(path))
    made = Template.from_code(environment, code, environment.make_globals(None))
    return made, frozenset(used)


# With the context as an argument nothing is folded into the template when it is compiled.
@pass_context
def _print(context: Any, value: Any) -> _Piece:
    if isinstance(value, _Piece):
        return value
    if isinstance(value, Undefined):
        value = str(value)  # a strict one raises here; `x if y` without else is empty
    return _Piece.of(value, is_json=False) if isinstance(value, str) else _to_json(value)


def _to_json(value: Any, indent: int | None = None) -> _Piece:
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except TypeError as error:
        advice = "try `| list`, or `| join(', ')`"
        raise TemplateRuntimeError(f"no JSON can hold this: {error}; {advice}") from None
    return _Piece.of(text, is_json=True)


def _unchanged(value: Any) -> Any:
    return value


def _json_text(pieces: Iterable[str]) -> str:
    """Pieces are escaped inside a JSON string, and JSON outside of one."""
    parts: list[str] = []
    inside, cut, size = False, "", 0
    for piece in pieces:
        if not isinstance(piece, _Piece):
            parts.append(piece)
            bare = _ESCAPE.sub("", cut + piece)
            inside ^= bare.count('"') % 2 == 1
            found = _CUT_ESCAPE.search(bare)
            cut = found.group() if found else ""
        elif cut:
            raise TemplateRuntimeError(rf"{cut} right before a value; write \\ for the character")
        elif inside:
            parts.append(json.dumps(piece, ensure_ascii=False)[1:-1])
        else:
            parts.append(piece if piece.is_json else json.dumps(piece, ensure_ascii=False))
        size += len(parts[-1])
        if size > LONGEST:
            raise TemplateRuntimeError(f"the prompt has more than {LONGEST} characters")
    return "".join(parts)


def _size_after(operator: str, left: Any, right: Any) -> int:
    """Characters, or digits of a number, of a result before it is computed."""
    match left, right:
        case (int(), int()) if operator == "**":
            return left.bit_length() * right
        case (int(), int()):
            return left.bit_length() + right.bit_length()
        case (int() as times, Sized() as what) | (Sized() as what, int() as times):
            return len(what) * times
    return 0


def _bad_line(text: str) -> int:
    try:
        json.loads(text)
    except json.JSONDecodeError as error:
        return error.lineno
    return 1


def _there_is() -> str:
    return f"there is: {', '.join(VARIABLES)}"
